/* cast_tree.h: casts tensors, and tensors in tuples, to other float dtypes.
 *
 * Invariant: a node is cast to a dtype at most once, and the cast of a cast
 * back is the node itself. */

#ifndef PLN_TRANSFORM_PRECISION_CAST_TREE_H
#define PLN_TRANSFORM_PRECISION_CAST_TREE_H

#include "ir/rewrite/rewrite.h"

/* What a value is cast to: each float tensor of it to `dtype`; or, if that is
 * PLN_DTYPE_NONE, to the dtype of the same part of the type `like`. */
typedef struct pln_cast_target {
  pln_dtype dtype;
  pln_type like;
} pln_cast_target;

/* The casts of one sweep. */
typedef struct pln_cast_cache {
  pln_engine *engine;
  pln_idmap *casts; /* node and dtype -> node + 1 */
} pln_cast_cache;

pln_status pln_cast_cache_new(pln_engine *engine,
                              pln_cast_cache *out) PLN_CHECKED;
void pln_cast_cache_free(pln_cast_cache *cache);

/* *needed: some tensor of the type has another float dtype. */
pln_status pln_cast_is_needed(pln_engine *engine, pln_type type,
                              pln_cast_target target, bool *needed) PLN_CHECKED;
/* *out: `node` of the new graph as `target` says. A tuple of which something is
 * cast becomes a tuple of its fields. */
pln_status pln_cast_tree(pln_cast_cache *cache, pln_rewrite *rw, pln_ref node,
                         pln_cast_target target, pln_ref *out) PLN_CHECKED;

#endif
