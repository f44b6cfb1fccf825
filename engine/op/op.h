/* op.h: the operators: their numbers, and what inference and kernels of all
 * families share. */

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

/* The call says what only Relay's form of its operator says: ONNX's definition
 * of the operator does not hold of it. */
bool pln_op_is_relay_form(const pln_graph *graph, pln_ref call);
/* ONNX's definition of the operator holds of the call, and each attribute is
 * known: none is a reference to one of the enclosing function. */
bool pln_op_is_onnx_form(const pln_graph *graph, pln_ref call);

/* Results of a call, for rows of relay.def. */
uint32_t pln_relay_count_split(const pln_engine *engine, pln_attrs core);
uint32_t pln_relay_count_topk(const pln_engine *engine, pln_attrs core);
uint32_t pln_relay_count_unique(const pln_engine *engine, pln_attrs core);
uint32_t pln_relay_count_nms(const pln_engine *engine, pln_attrs core);
uint32_t pln_relay_count_all_class_nms(const pln_engine *engine,
                                       pln_attrs core);

/* Fills the engine's table of operators. */
pln_status pln_op_install(pln_engine *engine) PLN_CHECKED;

/* A call that is being computed. Arguments are dense and of the dtypes and
 * ranks that inference accepts; NULL is an omitted one. The kernel sets each
 * result to a new tensor it makes. */
typedef struct pln_kernel_call {
  pln_engine *engine;
  pln_op op;
  pln_attrs attrs;
  uint32_t n_args;
  const pln_tensor *const *args;
  uint32_t n_results; /* at least 1 */
  pln_tensor **results;
  pln_runtime_value
      *data; /* of operators on data (PLN_TRAIT_DATA), which have no */
  pln_runtime_value
      *made;    /* args and results but these, and one result; may be taken */
  bool folding; /* what only one kind of machine defines is refused */
} pln_kernel_call;

#endif
