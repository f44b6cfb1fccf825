/* op.h: the numbers of operators, and the interface between the evaluator and
 * kernels. */

#ifndef PLN_OP_OP_H
#define PLN_OP_OP_H

#include "ir/graph/graph.h"

/* PLN_OP_ADD, ...: the rows of ops.def in order. */
enum {
  PLN_OP_NONE = 0,
#define OP(ID, name, min, max, attrs, traits, infer, kernel, doc) PLN_OP_##ID,
#include "op/ops.def"
  PLN_N_OPS
};

/* Returns true if the call uses what only Relay's form of its operator has, so
 * that ONNX's definition does not apply. */
bool pln_op_is_relay_form(const pln_graph *graph, pln_ref call);
/* Returns true if ONNX's definition applies to the call and all its attributes
 * are known: none refers to an attribute of the enclosing function. */
bool pln_op_is_onnx_form(const pln_graph *graph, pln_ref call);

/* The number of results of a call, for rows of relay.def. */
uint32_t pln_relay_count_split(const pln_engine *engine, pln_attrs core);
uint32_t pln_relay_count_topk(const pln_engine *engine, pln_attrs core);
uint32_t pln_relay_count_unique(const pln_engine *engine, pln_attrs core);
uint32_t pln_relay_count_nms(const pln_engine *engine, pln_attrs core);
uint32_t pln_relay_count_all_class_nms(const pln_engine *engine,
                                       pln_attrs core);

/* Fills the engine's table of operators from ops.def. */
pln_status pln_op_install(pln_engine *engine) PLN_CHECKED;

/* A call being computed. Arguments are dense and have dtypes and ranks that
 * inference accepts; NULL is an omitted one. The kernel sets each result to a
 * new tensor. */
typedef struct pln_kernel_call {
  pln_engine *engine;
  pln_op op;
  pln_attrs attrs;
  uint32_t n_args;
  const pln_tensor *const *args;
  uint32_t n_results; /* at least 1 */
  pln_tensor **results;
  pln_runtime_value *data; /* arguments of an operator with PLN_TRAIT_DATA,
                              which has no `args` */
  pln_runtime_value
      *made;     /* its only result; the kernel may take `data` over */
  pln_type type; /* of the call, with PLN_TRAIT_DATA; 0: unknown */
  bool folding;  /* refuse what ONNX leaves undefined */
  /* With PLN_TRAIT_PERMUTED, for each argument: its axis i is axis orders[][i]
   * of the tensor, NULL: its axes are those of the tensor; NULL: that holds for
   * all. */
  const uint32_t *const *orders;
} pln_kernel_call;

#endif
