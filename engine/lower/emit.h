/* emit.h: builds expressions and statements of TIR in a free builder, one call
 * per node; for passes of lower/ that write code.
 *
 * The first failure stays in `status`. After it each call does nothing and
 * answers PLN_NONE, so that a pass asks once, at its end. */

#ifndef PLN_LOWER_EMIT_H
#define PLN_LOWER_EMIT_H

#include "ir/tir/tir.h"

typedef struct pln_emit {
  pln_builder *b;
  pln_status status;
} pln_emit;

/* Types: a scalar, PLN_DTYPE_NONE being a handle; a pointer to elements in a
 * storage scope. */
pln_type pln_emit_type(pln_emit *e, pln_dtype dtype);
pln_type pln_emit_pointer(pln_emit *e, pln_type element, const char *scope);
pln_type pln_emit_type_of(const pln_emit *e, pln_ref node);

/* ------------------------------------------------------------- expressions */
pln_ref pln_emit_int(pln_emit *e, pln_dtype dtype, int64_t value);
pln_ref pln_emit_int_of(pln_emit *e, pln_type type, int64_t value);
pln_ref pln_emit_string(pln_emit *e, pln_slice text);
/* A new variable. */
pln_ref pln_emit_var(pln_emit *e, const char *name, pln_type type);
pln_ref pln_emit_prim(pln_emit *e, const pln_prim *spec);
/* As it is, and with constants folded as TVM's operators do. */
pln_ref pln_emit_binary(pln_emit *e, pln_kind kind, pln_ref x, pln_ref y);
pln_ref pln_emit_folded(pln_emit *e, pln_kind kind, pln_ref x, pln_ref y);
pln_ref pln_emit_not(pln_emit *e, pln_ref x);
pln_ref pln_emit_cast(pln_emit *e, pln_type type, pln_ref x);
pln_ref pln_emit_select(pln_emit *e, pln_ref condition, pln_ref x, pln_ref y);
/* A call of a builtin by TVM's name without "tir.". */
pln_ref pln_emit_call(pln_emit *e, const char *builtin, pln_type type,
                      uint32_t n, const pln_ref *args);
/* An element of a vector, by a Shuffle. */
pln_ref pln_emit_lane(pln_emit *e, pln_ref vector, uint32_t lane);
pln_ref pln_emit_load(pln_emit *e, pln_ref buffer, pln_ref index);
/* A compact buffer of one dimension over the memory of `data`. */
pln_ref pln_emit_buffer(pln_emit *e, const char *name, pln_ref data,
                        pln_type element, pln_ref extent);

/* -------------------------------------------------------------- statements */
pln_ref pln_emit_evaluate(pln_emit *e, pln_ref value);
pln_ref pln_emit_store(pln_emit *e, pln_ref buffer, pln_ref index,
                       pln_ref value);
pln_ref pln_emit_seq(pln_emit *e, uint32_t n, const pln_ref *stmts);
pln_ref pln_emit_let(pln_emit *e, pln_ref var, pln_ref value, pln_ref body);
pln_ref pln_emit_attr(pln_emit *e, pln_ref node, const char *key, pln_ref value,
                      pln_ref body);
pln_ref pln_emit_assert(pln_emit *e, pln_ref condition, pln_ref message,
                        pln_ref body);
/* A loop over [min, min + extent) that is bound to a thread: "threadIdx.x". Of
 * `attrs` it has what is not its kind. */
pln_ref pln_emit_thread_loop(pln_emit *e, pln_slice tag, pln_attrs attrs,
                             pln_ref var, pln_ref min, pln_ref extent,
                             pln_ref body);
/* The body of a Block with allocations of more Buffers, behind those that it
 * has. */
pln_ref pln_emit_with_allocations(pln_emit *e, pln_ref body, uint32_t n,
                                  const pln_ref *buffers);
/* Memory of n extents, of that type, which `var` points to. */
pln_ref pln_emit_allocate(pln_emit *e, pln_ref var, pln_type element,
                          uint32_t n, const pln_ref *extents, pln_ref body);
/* `other` may be PLN_NONE. */
pln_ref pln_emit_if(pln_emit *e, pln_ref condition, pln_ref then,
                    pln_ref other);
pln_ref pln_emit_decl_buffer(pln_emit *e, pln_ref buffer, pln_ref body);

#endif
