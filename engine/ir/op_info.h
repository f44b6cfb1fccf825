/* op_info.h: what the IR knows of an operator: its row.
 *
 * op/ fills the table from ops.def when the engine is made. Unknown operators
 * of files are added as opaque rows, those of hosts and scripts as registered
 * ones. */

#ifndef PLN_IR_OP_INFO_H
#define PLN_IR_OP_INFO_H

#include "base/base.h"

/* Traits of an operator. */
enum {
  PLN_TRAIT_PURE = 1 << 0, /* no effect; without it the effect is unknown */
  PLN_TRAIT_COMMUTATIVE = 1 << 1,
  PLN_TRAIT_ASSOCIATIVE = 1 << 2,
  PLN_TRAIT_IDEMPOTENT = 1 << 3, /* f(f(x)) = f(x) */
  PLN_TRAIT_ELEMENTWISE = 1 << 4,
  PLN_TRAIT_BROADCAST = 1 << 5,
  PLN_TRAIT_INJECTIVE = 1 << 6,
  PLN_TRAIT_REDUCE = 1 << 7,
  PLN_TRAIT_RANDOM = 1 << 8, /* a new value each time: reads the random state */
  PLN_TRAIT_OPAQUE = 1 << 9, /* an unknown operator of a file */
  PLN_TRAIT_DATA = 1 << 10,  /* its kernel takes runtime values, not only
                              * tensors */
  PLN_TRAIT_UNALIGNED = 1 << 11, /* its kernel accepts unaligned floats */
  /* Operand kinds other than tensors. PLN_TRAIT_DATA operators accept
   * containers too. */
  PLN_TRAIT_JOIN = 1 << 12,      /* operands may be tuples of tensors */
  PLN_TRAIT_BODY = 1 << 13,      /* its last operand is a function, which it
                                  * calls repeatedly */
  PLN_TRAIT_ANY = 1 << 14,       /* operands of any type */
  PLN_TRAIT_CONTAINER = 1 << 15, /* sequences, optionals, maps */
  /* From here on one bit per operand, for the first PLN_INTEGER_OPERANDS: the
   * operand is a shape, an axis or an index, of integers in ONNX and in
   * Relay. */
  PLN_TRAIT_INTEGERS = 1 << 16,
  /* The operands behind the required ones are functions, which it calls at most
   * once each. An attribute names the operand of each. */
  PLN_TRAIT_FUNCTIONS = 1 << 24,
  PLN_TRAIT_PERMUTED = 1 << 25 /* its kernel reads operands by an order of
                                * axes */
};
enum { PLN_INTEGER_OPERANDS = 8 };

/* A call whose type is being inferred. Operands are nodes of `graph` and are
 * typed already. */
typedef struct pln_infer {
  pln_engine *engine;
  const pln_graph *graph;
  const pln_ref *args;
  uint32_t n_args;
  pln_op op;
  pln_attrs attrs;
  /* The operand types, when the operands are fields of a tuple without nodes of
   * their own; `args` is then unused. Else NULL. */
  const pln_type *fields;
  /* When `fields` are the types of available tensors: those tensors, NULL for
   * an omitted one. Else NULL. */
  const struct pln_tensor *const *tensors;
  uint32_t n_results; /* as pln_node_n_results */
  /* max(1, n_results) types, preset to 0. When `operands` is set, the first is
   * preset to what is known of it. */
  pln_type *results;
  pln_value value; /* the symbolic value of a plain result; preset to 0 */
  /* n_args types, preset to 0: what the call implies about operands of unknown
   * type. NULL: not requested. */
  pln_type *operands;
} pln_infer;

/* Reports PLN_ERR_TYPE: "'concatenate', operand 1: expected rank 4, got 3".
 * Messages count operands of operators from 0, as ONNX does, and arguments of
 * functions from 1. */
pln_status pln_arg_error(const pln_infer *call, uint32_t i, const char *format,
                         ...) PLN_PRINTF(3, 4);
/* True for booleans too, as in Relay, and for an unknown dtype. */
bool pln_dtype_is_integer(pln_dtype dtype);
/* PLN_ERR_TYPE when operand `i` is a tensor whose elements are not integers. */
pln_status pln_infer_expect_integers(const pln_infer *call,
                                     uint32_t i) PLN_CHECKED;

/* The attributes with integers limited to those that are not pln_dim
 * symbols. */
pln_status pln_attrs_within(pln_engine *engine, pln_attrs attrs,
                            pln_attrs *out) PLN_CHECKED;

/* Fills `results` with what can be inferred. PLN_ERR_TYPE with a diagnostic
 * when the call can never be valid. */
typedef pln_status (*pln_infer_fn)(pln_infer *call);

struct pln_kernel_call; /* op/op.h */
typedef pln_status (*pln_kernel_fn)(struct pln_kernel_call *call);

typedef struct pln_op_info {
  const char *name;
  int32_t min_args;
  int32_t max_args; /* -1: any number */
  uint32_t traits;
  const char *attrs;    /* schema: "axis:int=1 axes:ints epsilon:float=1e-5" */
  pln_infer_fn infer;   /* NULL: the result type is unknown */
  pln_kernel_fn kernel; /* NULL: cannot be evaluated */
  const char *doc;
  /* Of an operator that a host or a script registered, else NULL. */
  const struct pln_registered_op *registered; /* ir/registered_op.h */
} pln_op_info;

/* The number of operands, of n, before those that are functions which the
 * operator calls. */
static inline uint32_t pln_op_n_values(const pln_op_info *row, uint32_t n) {
  uint32_t least = (uint32_t)row->min_args;
  if (row->traits & PLN_TRAIT_FUNCTIONS)
    return n < least ? n : least;
  return n - (row->traits & PLN_TRAIT_BODY && n > 0);
}

/* The Relay form of an operator: a row of op/relay/relay.def. */
typedef struct pln_relay_row {
  const char *name;
  int32_t results;      /* results of a call: 0 plain, k a tuple of k, -1: see
                         * `count` */
  const char *attrs;    /* TVM's order: "axis>axes:ints= keepdims:bool=0" */
  const char *type_key; /* of TVM's attribute struct; "" when there is none */
  bool in_meta;         /* text refers to the struct as meta[type_key][i] */
  /* Number of results of a call with these core attributes; NULL unless
   * `results` is -1. */
  uint32_t (*count)(const pln_engine *engine, pln_attrs core);
} pln_relay_row;

/* Adds the rows, once, after pln_ops_install. Each names an operator. */
pln_status pln_relay_install(pln_engine *engine, const pln_relay_row *rows,
                             uint32_t n) PLN_CHECKED;
void pln_relay_free(pln_engine *engine);
/* NULL when Relay has no such operator. */
const pln_relay_row *pln_relay_of(const pln_engine *engine, pln_op op);
/* Number of results of the call, as pln_build_call takes it: from the row,
 * unless `relay`, the attributes in the text's form, has "n_results". */
uint32_t pln_relay_n_results(const pln_engine *engine, const pln_relay_row *row,
                             pln_attrs relay, pln_attrs core);
/* Converts attributes of text, under Relay's or the core's names, to core
 * attributes. Values equal to a core default are dropped; Relay defaults that
 * differ from the core's are added; "n_results" is skipped. PLN_ERR_NAME for an
 * unknown name; PLN_ERR_TYPE for a value of the wrong kind, or when a required
 * attribute is missing. */
pln_status pln_relay_read(pln_engine *engine, const pln_relay_row *row,
                          pln_attrs relay, pln_attrs *core) PLN_CHECKED;
/* PLN_ERR_TYPE when a call of a Relay-only operator lacks a required
 * attribute. */
pln_status pln_relay_expect(pln_engine *engine, pln_op op,
                            pln_attrs core) PLN_CHECKED;
/* True if only Relay has the attribute: the core has it under another name or
 * not at all. Its presence selects Relay's form of the operator. */
bool pln_relay_only_attr(const pln_engine *engine, pln_op op, pln_slice name);
/* PLN_ERR_NAME: the operator has no such attribute; suggests a similar name. */
pln_status pln_attr_unknown(pln_engine *engine, pln_op op, pln_slice name);
/* The kind of value that the attribute takes, for messages: "a list of
 * integers". Static. */
const char *pln_attr_wanted(const pln_engine *engine, pln_op op,
                            pln_slice name);
/* The inverse: a list of named values in TVM's order, in the form of Relay
 * text, followed by core attributes that Relay cannot express, under the core's
 * names. *expressible: there are none. `op` has a row. When text refers to the
 * struct in the metadata, the list has all of its fields; a LIST field is an
 * object. */
pln_status pln_relay_write(pln_engine *engine, pln_op op, pln_attrs core,
                           pln_attrs *relay, bool *expressible) PLN_CHECKED;

/* Normalised attributes of a call of `op`: equal whenever Relay's structs are
 * equal, whether values are explicit or defaults. The result of
 * pln_relay_write, or the core attributes when there is no row. */
pln_status pln_relay_normal_attrs(pln_engine *engine, pln_op op, pln_attrs core,
                                  pln_attrs *normal) PLN_CHECKED;

/* The value of an attribute of a call of `op`, which has a row, under Relay's
 * name: as stored, else the default. Kind PLN_ATTR_NONE: None, or `op` has no
 * such attribute. */
pln_status pln_relay_get(pln_engine *engine, pln_op op, pln_attrs core,
                         const char *name, pln_attr *out) PLN_CHECKED;
/* The core attributes with that value for one of Relay's, which `op` has; a
 * default and None are left out, as pln_relay_read does. The value has the kind
 * that the core stores. */
pln_status pln_relay_set(pln_engine *engine, pln_op op, pln_attrs core,
                         const char *name, pln_attr value,
                         pln_attrs *out) PLN_CHECKED;

/* Adds rows 1 .. n, once. The rows must live as long as the engine. */
pln_status pln_ops_install(pln_engine *engine, const pln_op_info *rows,
                           uint32_t n) PLN_CHECKED;
void pln_ops_free(pln_engine *engine);
/* The operators of a child engine, over its parent's. */
pln_status pln_ops_child(pln_engine *child) PLN_CHECKED;
/* The row of an opaque operator of that name; added if missing. */
pln_status pln_op_opaque(pln_engine *engine, pln_slice name,
                         pln_op *out) PLN_CHECKED;
const pln_op_info *pln_op_row(const pln_engine *engine, pln_op op);
/* Adds the row of a registered operator, whose name is new. The row is copied;
 * what it points to must live as long as the engine. */
pln_status pln_ops_add(pln_engine *engine, const pln_op_info *row,
                       pln_op *out) PLN_CHECKED;
/* Memory that lives as long as the engine's operators; NULL when out of
 * memory. */
void *pln_ops_memory(pln_engine *engine, size_t size);
/* Number of results of a new call with these core attributes, as
 * pln_build_call takes it. */
uint32_t pln_op_n_results(const pln_engine *engine, pln_op op, pln_attrs core);

/* Calls of callbacks of registered operators. They run in the engine's thread,
 * nested up to a limit; a callback that is asked for in a child engine is
 * refused, and the work of that child is done again by its parent. */
pln_status pln_op_callback_begin(pln_engine *engine, pln_op op,
                                 const char *what) PLN_CHECKED;
void pln_op_callback_end(pln_engine *engine);
/* True if a callback has been refused in this child engine. */
bool pln_op_callback_refused(const pln_engine *child);
/* Number of registered operators, without the parent's. */
uint32_t pln_ops_registered(const pln_engine *engine);
/* How many callbacks have run: a result for which one ran may depend on more
 * than its input. */
uint64_t pln_op_callbacks(const pln_engine *engine);

#endif
