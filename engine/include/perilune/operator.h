/* perilune/operator.h: operators that a host registers.
 *
 * A registered operator is one like those of the library: calls of it are
 * typed, printed and parsed, folded, evaluated, merged, fused, matched by
 * rules, and mapped to ONNX. */

#ifndef PERILUNE_OPERATOR_H
#define PERILUNE_OPERATOR_H

#include "perilune/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- declaration */

/* An operand. Optional operands may be omitted; the last one may be variadic:
 * it stands for any number of operands, at least one unless it is optional. */
typedef struct pln_operator_arg {
  const char *name;
  bool optional, variadic;
} pln_operator_arg;

/* An attribute: INT, BOOL, FLOAT, STRING, TENSOR, TYPE, INTS, FLOATS or
 * STRINGS. Neither required nor with a default: it may be missing. */
typedef struct pln_operator_attr {
  const char *name;
  pln_attr_kind kind;
  bool required;
  bool has_default; /* not of TENSOR and TYPE */
  pln_attr value;   /* of that kind; its name is not used */
} pln_operator_attr;

/* Traits. Without STATEFUL and RANDOM an operator is pure: its calls may be
 * folded, merged and removed. Of the four patterns, which FuseOps reads, at
 * most one; without one the operator is opaque to it. */
typedef enum pln_operator_trait {
  PLN_OPERATOR_STATEFUL = 1 << 0,    /* has effects */
  PLN_OPERATOR_RANDOM = 1 << 1,      /* a new value each time */
  PLN_OPERATOR_COMMUTATIVE = 1 << 2, /* operands may change places */
  PLN_OPERATOR_ASSOCIATIVE = 1 << 3,
  PLN_OPERATOR_IDEMPOTENT = 1 << 4, /* f(f(x)) = f(x) */
  PLN_OPERATOR_ELEMENTWISE = 1 << 5,
  PLN_OPERATOR_BROADCAST = 1 << 6,
  PLN_OPERATOR_INJECTIVE = 1 << 7,
  PLN_OPERATOR_REDUCE = 1 << 8,
  /* Operands, and the only result, may also be tuples, sequences, optionals and
   * maps. `eval` gets values instead of tensors. A call is not folded. */
  PLN_OPERATOR_VALUES = 1 << 9
} pln_operator_trait;

/* ---------------------------------------------------------------- callbacks */

/* A call to be typed: its operands are known tensors, of known rank and dtype,
 * or omitted (type 0); with PLN_OPERATOR_VALUES also of other known types,
 * whose parts may be unknown. `attrs` has the defaults of attributes that are
 * not set. The callback sets `results`, preset to 0: unknown. */
typedef struct pln_operator_typing {
  pln_engine *engine;
  pln_op op;
  uint32_t n_args;
  const pln_type *args;
  pln_attrs attrs;
  uint32_t n_results; /* of the operator; a call may use fewer */
  pln_type *results;
} pln_operator_typing;

/* A call to be computed. Operands are dense; NULL is an omitted one. The
 * callback sets each result to a new tensor; one that does not have the type in
 * `types` (0: unknown) is an error. PLN_ERR_UNSUPPORTED: there is no result;
 * the call is then not folded. */
typedef struct pln_operator_evaluation {
  pln_engine *engine;
  pln_op op;
  uint32_t n_args;
  const pln_tensor *const *args;
  pln_attrs attrs; /* with defaults */
  uint32_t n_results;
  const pln_type *types;
  pln_tensor **results; /* preset to NULL; released on failure */
  bool folding;         /* asked by a pass, not by a run */
  /* With PLN_OPERATOR_VALUES there are no `args` and `results` but these: the
   * operands, and the result, which the callback sets. */
  const struct pln_runtime_value *values;
  struct pln_runtime_value *made;
} pln_operator_evaluation;

/* How results are typed: each like operand `like`; by broadcasting all
 * operands; by the callback; or not at all. */
typedef enum pln_operator_rule {
  PLN_OPERATOR_UNTYPED,
  PLN_OPERATOR_LIKE,
  PLN_OPERATOR_BROADCASTS,
  PLN_OPERATOR_INFERS
} pln_operator_rule;

/* ONNX's name of an attribute. */
typedef struct pln_operator_onnx_attr {
  const char *name, *onnx_name;
} pln_operator_onnx_attr;

/* The node of a custom domain that a call is in ONNX. */
typedef struct pln_operator_onnx {
  const char *domain, *op_type; /* domain NULL: the operator has no such node */
  int32_t since_version;
  /* All operands by name, in the order of the node's inputs; none: in their own
   * order. */
  uint32_t n_inputs;
  const char *const *inputs;
  uint32_t n_attrs; /* attributes that ONNX names otherwise */
  const pln_operator_onnx_attr *attrs;
} pln_operator_onnx;

typedef struct pln_operator_spec {
  const char *name; /* names joined by dots: "my.op" */
  const char *doc;  /* a sentence; may be NULL */
  uint32_t n_args;
  const pln_operator_arg *args;
  uint32_t n_attrs;
  const pln_operator_attr *attrs;
  uint32_t n_results; /* 0 counts as 1; with more a call is a tuple */
  uint32_t traits;    /* pln_operator_trait */
  pln_operator_rule rule;
  uint32_t like;
  /* Called in the engine's thread only, unless `any_thread`: passes then do not
   * run on threads for functions that call the operator. They may build nodes
   * in builders of their own, run passes, and register operators. */
  pln_status (*infer)(void *ud, pln_operator_typing *call);
  pln_status (*eval)(void *ud, pln_operator_evaluation *call); /* or NULL */
  void (*release)(void *ud); /* when the engine is freed; may be NULL */
  void *ud;
  bool any_thread;
  pln_operator_onnx onnx;
} pln_operator_spec;

/* -------------------------------------------------------------------- store */

/* Adds the operator; everything in the spec is copied, `ud` is taken. An
 * operator is never removed, since graphs hold its number. PLN_ERR_NAME: a name
 * that is taken or no name; PLN_ERR_ARGUMENT: another mistake in the spec, or a
 * child engine. On failure the caller keeps `ud`. */
PLN_API pln_status pln_op_register(pln_engine *engine,
                                   const pln_operator_spec *spec,
                                   pln_op *out) PLN_CHECKED;
/* What the operator was registered with; NULL for the library's own and those
 * that only files know. Borrowed from the engine. */
PLN_API const pln_operator_spec *pln_op_registered(const pln_engine *engine,
                                                   pln_op op);

#ifdef __cplusplus
}
#endif

#endif
