/* arg_binder.h: binds the parameters of a function to what a caller passed: a
 * list of statements that stand around its body (TVM's ArgBinder). For
 * tir.MakePackedAPI. */

#ifndef PLN_LOWER_HOST_ARG_BINDER_H
#define PLN_LOWER_HOST_ARG_BINDER_H

#include "arith/arith.h"
#include "lower/host/host.h"

/* Fields of TVM's DLTensor and TVMValue, as tvm_struct_get numbers them. */
enum {
  PLN_ARRAY_DATA = 1,
  PLN_ARRAY_SHAPE = 2,
  PLN_ARRAY_STRIDES = 3,
  PLN_ARRAY_NDIM = 4,
  PLN_ARRAY_TYPE_CODE = 5,
  PLN_ARRAY_TYPE_BITS = 6,
  PLN_ARRAY_TYPE_LANES = 7,
  PLN_ARRAY_BYTE_OFFSET = 8,
  PLN_ARRAY_DEVICE_ID = 9,
  PLN_ARRAY_DEVICE_TYPE = 10,
  PLN_VALUE_CONTENT = 12
};

/* Something around a body: a let, an attribute, an assertion, a declaration,
 * or a statement in front of it. */
typedef struct pln_nest_item {
  pln_kind kind; /* SEQ_STMT: `a` stands in front of the body */
  pln_ref a, b;
  const char *key; /* ATTR_STMT */
  pln_ref value;   /* ATTR_STMT */
} pln_nest_item;

typedef struct pln_nest {
  pln_nest_item *items;
  uint32_t n, cap;
} pln_nest;

typedef struct pln_arg_binder {
  pln_emit e;
  pln_analyzer *a;
  pln_nest init, asserts; /* in order, outermost first */
  pln_idmap *bound;       /* variable -> 1 */
} pln_arg_binder;

void pln_nest_add(pln_emit *e, pln_nest *nest, pln_nest_item item);
/* `body` inside of the items; PLN_NONE on failure. */
pln_ref pln_nest_wrap(pln_emit *e, const pln_nest *nest, pln_ref body);
void pln_nest_free(pln_engine *engine, pln_nest *nest);

pln_status pln_arg_binder_begin(pln_arg_binder *x, pln_builder *b) PLN_CHECKED;
void pln_arg_binder_end(pln_arg_binder *x);
/* arg = value: bound if it is a variable that is not bound yet, else asserted.
 * `name` is for messages. True if it was bound. */
bool pln_arg_bind(pln_arg_binder *x, pln_ref arg, pln_ref value,
                  const char *name);
/* The buffer is the tensor that `handle` points to. */
void pln_arg_bind_tensor(pln_arg_binder *x, pln_ref buffer, pln_ref device_type,
                         pln_ref device_id, pln_ref handle, const char *name);
bool pln_arg_is_bound(const pln_arg_binder *x, pln_ref var);
/* A field of what a pointer points to. */
pln_ref pln_arg_field(pln_emit *e, pln_ref pointer, int32_t index,
                      int32_t field, pln_type type);

#endif
