/* weight.h: reads constant operands as numbers and builds scaled ones; for the
 * passes that fold into weights. */

#ifndef PLN_TRANSFORM_FOLD_WEIGHT_H
#define PLN_TRANSFORM_FOLD_WEIGHT_H

#include "transform/transform.h"

/* A Constant of floats, or a ConstantOfShape of known extents, which stores one
 * element for all. */
typedef struct pln_weight {
  pln_ref node; /* of the new graph */
  pln_dtype dtype;
  uint32_t rank;
  const int64_t *dims;
  size_t count, bytes; /* of the dense tensor */
  bool splat;
  bool filled;      /* a ConstantOfShape */
  const void *data; /* may be unaligned; a splat has one element */
} pln_weight;

/* Returns false if the node is no such constant or its data cannot be read. */
bool pln_weight_read(const pln_graph *graph, pln_ref node, pln_weight *out);
double pln_weight_at(const pln_weight *weight, size_t i);
/* Reads the first element of a float tensor; false for other dtypes or if the
 * data cannot be read. */
bool pln_weight_number(const pln_tensor *tensor, double *out);

/* Maps an element of the weight to a channel of the result. The weight is
 * `outer` runs of `channels` runs of `inner` elements. Channel numbers continue
 * from one outer run to the next, and start again at each group. */
typedef struct pln_channels {
  size_t outer, channels, inner;
  size_t group; /* outer runs per group */
} pln_channels;
static inline size_t pln_channels_count(const pln_channels *c) {
  return c->group ? c->outer / c->group * c->channels : 0;
}

/* Bytes of the weight after scaling by one factor per channel. A splat with
 * equal factors stays a splat. */
size_t pln_weight_scaled_bytes(const pln_weight *weight, size_t n,
                               const double *factors);
/* Builds weight * factors, each element rounded once, with the origin of the
 * old weight. *out is PLN_NONE if a finite element would become infinite. */
pln_status pln_weight_scale(pln_rewrite *rw, const pln_weight *weight,
                            const pln_channels *channels, const double *factors,
                            pln_ref *out) PLN_CHECKED;
/* Builds a vector of `n` numbers with the origin of `like`. *out is PLN_NONE if
 * one is not finite in `dtype`. */
pln_status pln_weight_vector(pln_rewrite *rw, pln_dtype dtype, size_t n,
                             const double *numbers, pln_ref like,
                             pln_ref *out) PLN_CHECKED;

#endif
