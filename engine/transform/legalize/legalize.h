/* legalize.h: the legalisations that operators have without attributes. */

#ifndef PLN_TRANSFORM_LEGALIZE_LEGALIZE_H
#define PLN_TRANSFORM_LEGALIZE_LEGALIZE_H

#include "transform/compile_target.h"
#include "transform/relay_builder.h"

/* A call to legalise. */
typedef struct pln_legalization {
  pln_engine *engine;
  const pln_compile_target *target;
  const pln_graph *graph; /* the old graph */
  pln_ref old;            /* the call in it */
  pln_rewrite *rw;
  pln_attrs attrs;
  uint32_t n_args;
  const pln_ref *args; /* in the new graph */
} pln_legalization;

/* Appends the call to use, *out; PLN_NONE: the call stays. */
typedef pln_status (*pln_legalize_fn)(const pln_legalization *l, pln_ref *out);

/* The type of argument `i` before any change; the result's. */
pln_type pln_legalize_type(const pln_legalization *l, uint32_t i);
pln_type pln_legalize_result(const pln_legalization *l);
/* Its extents; NULL unless it is a tensor of that rank and all are known. */
const pln_dim *pln_legalize_dims(const pln_legalization *l, uint32_t i,
                                 int32_t rank);
/* The text of an attribute; "" if it is none. */
pln_slice pln_legalize_text(const pln_legalization *l, const char *name);
/* The attributes with one changed, under Relay's name. */
pln_status pln_legalize_set(const pln_legalization *l, const char *name,
                            pln_attr value, pln_attrs *attrs) PLN_CHECKED;
pln_status pln_legalize_set_text(const pln_legalization *l, const char *name,
                                 const char *text,
                                 pln_attrs *attrs) PLN_CHECKED;
/* transpose(x, axes). */
pln_ref pln_legalize_transpose(pln_relay_builder *r, pln_ref x, uint32_t n,
                               const int64_t *axes);

/* legalize_layout.c */
pln_status pln_legalize_take(const pln_legalization *l,
                             pln_ref *out) PLN_CHECKED;
pln_status pln_legalize_conv2d_transpose(const pln_legalization *l,
                                         pln_ref *out) PLN_CHECKED;
pln_status pln_legalize_conv3d_transpose(const pln_legalization *l,
                                         pln_ref *out) PLN_CHECKED;
pln_status pln_legalize_conv2d_backward_weight(const pln_legalization *l,
                                               pln_ref *out) PLN_CHECKED;
/* legalize_clip.c */
pln_status pln_legalize_clip(const pln_legalization *l,
                             pln_ref *out) PLN_CHECKED;
/* legalize_int8.c */
pln_status pln_legalize_conv2d(const pln_legalization *l,
                               pln_ref *out) PLN_CHECKED;
pln_status pln_legalize_dense(const pln_legalization *l,
                              pln_ref *out) PLN_CHECKED;

#endif
