/* perilune/op_attr.h: attributes of operators, registered under a key.
 *
 * Passes ask operators for them: a plain value (TOpPattern), or a function that
 * says what becomes of a call (FTVMLegalize, FTVMMixedPrecisionConversionType,
 * `target.NAME`, ...). Semantics: TVM's register_op_attr. */

#ifndef PERILUNE_OP_ATTR_H
#define PERILUNE_OP_ATTR_H

#include "perilune/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- functions */

/* An argument or a result of a function: a plain value, nodes, types, or a
 * list of values. */
typedef enum pln_op_value_kind {
  PLN_OP_NIL,
  PLN_OP_BOOL,     /* i; as a result: true unless nil or false */
  PLN_OP_INT,      /* i */
  PLN_OP_FLOAT,    /* f */
  PLN_OP_STRING,   /* s; a result is a symbol's text */
  PLN_OP_NODE,     /* node: of the new graph, when something is built */
  PLN_OP_OLD_NODE, /* node: of the old graph */
  PLN_OP_TYPE,     /* type */
  PLN_OP_ATTRS,    /* attrs */
  PLN_OP_LIST      /* items[0 .. n) */
} pln_op_value_kind;

typedef struct pln_op_value {
  pln_op_value_kind kind;
  /* A result that may be nil: its kind is then set to NIL. */
  bool optional;
  /* In a list: the item is the field of that name, not the next one; or the
   * entry of the node `key` of the old graph, or of the new one with `new_key`,
   * if `keyed`. */
  const char *name;
  bool keyed, new_key;
  pln_ref key;
  union {
    int64_t i;
    double f;
    pln_slice s;
    pln_ref node;
    pln_type type;
    pln_attrs attrs;
    struct {
      uint32_t n;
      struct pln_op_value *items;
    } list;
  } v;
} pln_op_value;

/* One call of a function. */
typedef struct pln_op_call {
  pln_engine *engine;
  const char *op, *key;   /* for messages; set by pln_op_function_call */
  const pln_graph *graph; /* the graph that the pass reads */
  pln_ref node;           /* the call in `graph` that is looked at */
  /* Set while `graph` is rewritten and `node` is visited: the function may
   * append nodes, and nodes of `graph` stand for their images. NULL: the
   * function only answers. */
  pln_rewrite *rewrite;
  pln_ref image; /* the image of `node` */
  uint32_t n_args;
  const pln_op_value *args;
  /* What is wanted: the kinds, and of lists the items. The function fills the
   * values in; PLN_ERR_TYPE when it has something else to say. */
  pln_op_value *result;
} pln_op_call;

typedef struct pln_op_function {
  pln_status (*call)(void *ud, pln_op_call *call);
  void (*release)(void *ud); /* NULL: nothing to release */
  void *ud;
} pln_op_function;

/* ------------------------------------------------------------------- store */

/* The level of an attribute that is set without one, as in TVM. */
enum { PLN_OP_ATTR_LEVEL = 10 };

typedef struct pln_op_attr {
  bool is_function;
  pln_attr value;           /* plain: INT, FLOAT, STRING or BOOL */
  pln_op_function function; /* else */
  int32_t level;
} pln_op_attr;

/* Sets the attribute `key` of the operator, and takes the function. A value of
 * a higher level stays: *set (may be NULL) is false, and the function is
 * released. Cached results of passes are not used afterwards. PLN_ERR_ARGUMENT
 * in a child engine. On failure the caller keeps the function. */
PLN_API pln_status pln_op_attr_set(pln_engine *engine, pln_op op,
                                   const char *key, const pln_op_attr *attr,
                                   bool *set) PLN_CHECKED;
/* Removes the attribute, whatever its level. */
PLN_API pln_status pln_op_attr_reset(pln_engine *engine, pln_op op,
                                     const char *key) PLN_CHECKED;
/* NULL when it is not set. Borrowed until it is set or reset. A child engine
 * sees its parent's. */
PLN_API const pln_op_attr *pln_op_attr_get(const pln_engine *engine, pln_op op,
                                           const char *key);
/* The value of a plain integer or boolean attribute, else `otherwise`. */
PLN_API int64_t pln_op_attr_int(const pln_engine *engine, pln_op op,
                                const char *key, int64_t otherwise);

/* Calls the function of the attribute `key` of the operator; only in the
 * thread of the engine that it was set in, so a pass that calls functions is
 * no parallel one. *called is false when there is none; an attribute that is
 * no function is PLN_ERR_TYPE. A failure's diagnostic names operator and
 * key. */
PLN_API pln_status pln_op_attr_call(pln_engine *engine, pln_op op,
                                    const char *key, pln_op_call *call,
                                    bool *called) PLN_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
