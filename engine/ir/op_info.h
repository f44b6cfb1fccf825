/* op_info.h: what the IR must know of an operator: its row.
 *
 * op/ fills the table from ops.def when the engine is made; operators met in
 * files and known to nobody are added as opaque rows. */

#ifndef PLN_IR_OP_INFO_H
#define PLN_IR_OP_INFO_H

#include "base/base.h"

/* Traits of an operator. */
enum {
  PLN_TRAIT_PURE = 1 << 0, /* no effect; else unknown effects */
  PLN_TRAIT_COMMUTATIVE = 1 << 1,
  PLN_TRAIT_ASSOCIATIVE = 1 << 2,
  PLN_TRAIT_IDEMPOTENT = 1 << 3, /* f(f(x)) = f(x) */
  PLN_TRAIT_ELEMENTWISE = 1 << 4,
  PLN_TRAIT_BROADCAST = 1 << 5,
  PLN_TRAIT_INJECTIVE = 1 << 6,
  PLN_TRAIT_REDUCE = 1 << 7,
  PLN_TRAIT_RANDOM = 1 << 8, /* a new value each time: reads a hidden state */
  PLN_TRAIT_OPAQUE = 1 << 9, /* nobody here knows it */
  PLN_TRAIT_DATA = 1 << 10,  /* its kernel works on data, maybe no tensors */
  PLN_TRAIT_LOOSE = 1 << 11, /* its kernel reads floats at any address */
  /* What it takes beside tensors. Operators on data take containers, too. */
  PLN_TRAIT_JOIN = 1 << 12, /* its only operand may be a tuple of tensors */
  PLN_TRAIT_BODY = 1 << 13, /* its last operand is a function */
  PLN_TRAIT_ANY = 1 << 14,  /* operands of any type */
  PLN_TRAIT_CONTAINER = 1 << 15, /* sequences, optionals, maps */
  /* From here on a bit an operand, the first PLN_INTEGER_OPERANDS of them: it
   * is a shape, an axis, an index, of integers in ONNX and in Relay. */
  PLN_TRAIT_INTEGERS = 1 << 16
};
enum { PLN_INTEGER_OPERANDS = 8 };

/* A call that is being typed. Operands are nodes of `graph`, already typed. */
typedef struct pln_infer {
  pln_engine *engine;
  const pln_graph *graph;
  const pln_ref *args;
  uint32_t n_args;
  pln_op op;
  pln_attrs attrs;
  /* When the operands are the fields of one tuple whose nodes nobody knows:
   * their types, and `args` says nothing. Else NULL. */
  const pln_type *fields;
  /* When `fields` are the types of tensors that are at hand: those tensors,
   * NULL where one is omitted. Else NULL. */
  const struct pln_tensor *const *tensors;
  uint32_t n_results; /* as pln_node_n_results */
  /* max(1, n_results) of them, preset to 0; where it is asked what the call
   * says of operands, the first to what is known of it. */
  pln_type *results;
  pln_value value; /* of a plain result; preset to 0 */
  /* Of n_args, preset to 0: what the call says of operands of which nobody
   * knows anything. NULL: nobody asks. */
  pln_type *operands;
} pln_infer;

/* Booleans are integers, as in Relay, and so is what is not known. */
bool pln_dtype_is_integer(pln_dtype dtype);
/* PLN_ERR_TYPE when operand `i` is a tensor of no integers. */
pln_status pln_infer_expect_integers(const pln_infer *call,
                                     uint32_t i) PLN_CHECKED;

/* The attributes with no integer that a pln_dim takes for a symbol. */
pln_status pln_attrs_within(pln_engine *engine, pln_attrs attrs,
                            pln_attrs *out) PLN_CHECKED;

/* Fills results with what can be known. PLN_ERR_TYPE with a diagnostic when
 * the call can never be valid. */
typedef pln_status (*pln_infer_fn)(pln_infer *call);

struct pln_kernel_call; /* op/op.h */
typedef pln_status (*pln_kernel_fn)(struct pln_kernel_call *call);

typedef struct pln_op_info {
  const char *name;
  int32_t min_args;
  int32_t max_args; /* -1: any number */
  uint32_t traits;
  const char *attrs;    /* schema: "axis:int=1 perm:ints epsilon:float=1e-5" */
  pln_infer_fn infer;   /* NULL: nothing is known of the result */
  pln_kernel_fn kernel; /* NULL: cannot be evaluated */
  const char *doc;
} pln_op_info;

/* An operator as Relay's text has it: a row of op/relay.def. */
typedef struct pln_relay_row {
  const char *name;
  int32_t results; /* of a call: 0 plain, k a tuple of k, -1 as `count` says */
  const char *attrs;    /* in TVM's order: "axis>axes:ints= keepdims:bool=0" */
  const char *type_key; /* of TVM's struct of them, "" when there is none */
  bool in_meta;         /* text refers to the struct: meta[type_key][i] */
  /* Of a call with these core attributes; NULL unless `results` is -1. */
  uint32_t (*count)(const pln_engine *engine, pln_attrs core);
} pln_relay_row;

/* Adds the rows, once, after pln_ops_install: each names an operator. */
pln_status pln_relay_install(pln_engine *engine, const pln_relay_row *rows,
                             uint32_t n) PLN_CHECKED;
void pln_relay_free(pln_engine *engine);
/* NULL when Relay has no such operator. */
const pln_relay_row *pln_relay_of(const pln_engine *engine, pln_op op);
/* How many results the call has, as pln_build_call takes it: what the row says,
 * unless `relay`, the attributes as text has them, tell by "n_results". */
uint32_t pln_relay_n_results(const pln_engine *engine, const pln_relay_row *row,
                             pln_attrs relay, pln_attrs core);
/* Attributes as text has them, under Relay's names or the core's own, become
 * the core's: values that the core takes for granted are dropped, defaults of
 * Relay that it does not are added; "n_results" is passed over. PLN_ERR_NAME
 * when a name is neither's, PLN_ERR_TYPE when a value is of no kind the
 * attribute has, or one is missing that cannot be None. */
pln_status pln_relay_read(pln_engine *engine, const pln_relay_row *row,
                          pln_attrs relay, pln_attrs *core) PLN_CHECKED;
/* PLN_ERR_TYPE when a call of an operator that only Relay has lacks what cannot
 * be None. */
pln_status pln_relay_expect(pln_engine *engine, pln_op op,
                            pln_attrs core) PLN_CHECKED;
/* The attribute is Relay's alone: the core has it under another name, or not.
 * Who says it means Relay's operator. */
bool pln_relay_only_attr(const pln_engine *engine, pln_op op, pln_slice name);
/* PLN_ERR_NAME: the operator has no such attribute; a name like it. */
pln_status pln_attr_unknown(pln_engine *engine, pln_op op, pln_slice name);
/* What the attribute takes, for messages: "a list of integers". Static. */
const char *pln_attr_wanted(const pln_engine *engine, pln_op op,
                            pln_slice name);
/* The other way round: a list with names, in TVM's order, of what Relay's text
 * says; then, under the core's names, what Relay has no words for, which
 * *expressible tells. `op` has a row. When text refers to the struct in the
 * metadata, the list has all of its fields; a LIST of one is an object. */
pln_status pln_relay_write(pln_engine *engine, pln_op op, pln_attrs core,
                           pln_attrs *relay, bool *expressible) PLN_CHECKED;

/* Attributes of a call of `op`, told so that two are the same, written or left
 * to their defaults, when Relay's structs are: what pln_relay_write tells, or
 * the core's own where there is no row. */
pln_status pln_relay_normal_attrs(pln_engine *engine, pln_op op, pln_attrs core,
                                  pln_attrs *normal) PLN_CHECKED;

/* Adds rows 1 .. n, once. The rows must live as long as the engine. */
pln_status pln_ops_install(pln_engine *engine, const pln_op_info *rows,
                           uint32_t n) PLN_CHECKED;
void pln_ops_free(pln_engine *engine);
/* The row of an opaque operator of that name, made when there is none. */
pln_status pln_op_opaque(pln_engine *engine, pln_slice name,
                         pln_op *out) PLN_CHECKED;
const pln_op_info *pln_op_row(const pln_engine *engine, pln_op op);

#endif
