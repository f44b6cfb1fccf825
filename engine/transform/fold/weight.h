/* weight.h: constant operands of a product as numbers, and those that are made
 * of them; for the passes that fold into weights. */

#ifndef PLN_TRANSFORM_FOLD_WEIGHT_H
#define PLN_TRANSFORM_FOLD_WEIGHT_H

#include "transform/transform.h"

/* A Constant of floats, or a ConstantOfShape of known extents: one element that
 * stands for all, however many that are. */
typedef struct pln_weight {
  pln_ref node; /* in the new graph */
  pln_dtype dtype;
  uint32_t rank;
  const int64_t *dims;
  size_t count, bytes; /* as if written out */
  bool splat;
  bool filled;      /* a ConstantOfShape */
  const void *data; /* perhaps unaligned; of a splat one element */
} pln_weight;

/* False when the node is none, or its elements cannot be had. */
bool pln_weight_read(const pln_graph *graph, pln_ref node, pln_weight *out);
double pln_weight_at(const pln_weight *weight, size_t i);
/* The first element of a tensor of floats; false for other dtypes, or when it
 * cannot be had. */
bool pln_weight_number(const pln_tensor *tensor, double *out);

/* Which channel of the result an element of the weight belongs to: `outer` runs
 * of `channels` runs of `inner` elements. The channels of a run go on with
 * those of the run before when it is the first of its group. */
typedef struct pln_channels {
  size_t outer, channels, inner;
  size_t group; /* outer runs of a group */
} pln_channels;
static inline size_t pln_channels_count(const pln_channels *c) {
  return c->group ? c->outer / c->group * c->channels : 0;
}

/* Bytes that the weight will take when it is scaled by factors, one a channel:
 * a splat of equal factors stays one. */
size_t pln_weight_scaled_bytes(const pln_weight *weight, size_t n,
                               const double *factors);
/* The weight times the factors, rounded once, as a node of the new graph with
 * the origin of the old. PLN_NONE when a finite element would not stay so. */
pln_status pln_weight_scale(pln_rewrite *rw, const pln_weight *weight,
                            const pln_channels *channels, const double *factors,
                            pln_ref *out) PLN_CHECKED;
/* A vector of `n` numbers, each finite in `dtype`, else PLN_NONE. It gets the
 * origin of `like`. */
pln_status pln_weight_vector(pln_rewrite *rw, pln_dtype dtype, size_t n,
                             const double *numbers, pln_ref like,
                             pln_ref *out) PLN_CHECKED;

#endif
