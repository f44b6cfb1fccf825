/* cast_tree.c: casts values to other float dtypes (cast_tree.h). Called by
 * ToMixedPrecision.
 *
 *     (%a, %b) to float16   =>   %0 = (%a, %b); (cast(%0.0), cast(%0.1))
 *
 * Semantics: CachedCast and CastArg of TVM's to_mixed_precision.cc. */

#include "transform/precision/cast_tree.h"

#include "transform/relay_builder.h"

pln_status pln_cast_cache_new(pln_engine *engine, pln_cast_cache *out) {
  out->engine = engine;
  return pln_idmap_new(engine, &out->casts);
}

void pln_cast_cache_free(pln_cast_cache *cache) {
  pln_idmap_free(cache->casts);
}

/* The part of a target for field `i` of a tuple. */
static pln_cast_target part_of(const pln_engine *e, pln_cast_target target,
                               uint32_t i) {
  pln_type like = target.dtype ? 0 : target.like;
  bool fits = pln_type_get_kind(e, like) == PLN_TYPE_TUPLE &&
              i < pln_type_n_parts(e, like);
  target.like = fits ? pln_type_part_at(e, like, i) : 0;
  return target;
}

/* The dtype to cast a tensor to; PLN_DTYPE_NONE: it stays. */
static pln_dtype wanted_dtype(const pln_engine *e, pln_type type,
                              pln_cast_target target) {
  bool tensor = pln_type_get_kind(e, type) == PLN_TYPE_TENSOR;
  pln_dtype dtype = tensor ? pln_type_dtype(e, type) : PLN_DTYPE_NONE;
  pln_dtype wanted = target.dtype;
  if (!wanted && pln_type_get_kind(e, target.like) == PLN_TYPE_TENSOR)
    wanted = pln_type_dtype(e, target.like);
  bool cast = pln_dtype_is_float(dtype) && pln_dtype_is_float(wanted);
  return cast && dtype != wanted ? wanted : PLN_DTYPE_NONE;
}

/* ------------------------------------------------------------------ one cast
 */

static pln_status remember_cast(pln_cast_cache *cache, pln_ref node,
                                pln_dtype dtype, pln_ref cast) {
  return pln_idmap_set(cache->casts, (uint64_t)node << 8 | dtype, cast + 1);
}

static pln_status cast_tensor(pln_cast_cache *cache, pln_rewrite *rw,
                              pln_ref node, pln_dtype to, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_dtype from = pln_type_dtype(g->engine, g->nodes[node].type);
  uint32_t known = pln_idmap_get(cache->casts, (uint64_t)node << 8 | to);
  if (known) {
    *out = known - 1;
    pln_rewrite_raise(rw, *out);
    return PLN_OK;
  }
  pln_relay_attr dtype = {"dtype", {.kind = PLN_ATTR_STRING}};
  pln_relay_builder r;
  dtype.value.v.s = pln_text(pln_dtype_name(to));
  PLN_TRY(pln_relay_begin(&r, rw));
  *out = pln_relay_call_with(&r, PLN_OP_CAST, 1, &dtype, 1, &node);
  PLN_TRY(r.status);
  PLN_TRY(remember_cast(cache, node, to, *out));
  return remember_cast(cache, *out, from, node);
}

/* --------------------------------------------------------------------- trees
 */

/* A tuple being visited; the fields that are done are on top of the values. */
typedef struct cast_frame {
  pln_ref node;
  pln_type type;
  pln_cast_target target;
  uint32_t next; /* field */
  bool same;     /* nothing is cast so far */
} cast_frame;

typedef struct cast_walk {
  pln_cast_cache *cache;
  pln_rewrite *rw; /* NULL: only asks whether something is cast */
  cast_frame *frames;
  uint32_t n_frames, cap_frames;
  pln_ref *values;
  uint32_t n_values, cap_values;
  bool any;
} cast_walk;

static pln_status push_value(cast_walk *w, pln_ref value, bool same) {
  PLN_TRY(pln_mem_grow(w->cache->engine, (void **)&w->values, &w->cap_values,
                       (size_t)w->n_values + 1, sizeof *w->values));
  w->values[w->n_values++] = value;
  if (w->n_frames)
    w->frames[w->n_frames - 1].same &= same;
  return PLN_OK;
}

static pln_status visit_value(cast_walk *w, pln_ref node, pln_type type,
                              pln_cast_target target) {
  pln_engine *e = w->cache->engine;
  if (pln_type_get_kind(e, type) == PLN_TYPE_TUPLE) {
    PLN_TRY(pln_mem_grow(e, (void **)&w->frames, &w->cap_frames,
                         (size_t)w->n_frames + 1, sizeof *w->frames));
    w->frames[w->n_frames++] = (cast_frame){node, type, target, 0, true};
    return PLN_OK;
  }
  pln_dtype to = wanted_dtype(e, type, target);
  w->any |= to != PLN_DTYPE_NONE;
  pln_ref out = node;
  if (to && w->rw)
    PLN_TRY(cast_tensor(w->cache, w->rw, node, to, &out));
  return push_value(w, out, !to);
}

static pln_status visit_field(cast_walk *w, const cast_frame *f, uint32_t i) {
  pln_engine *e = w->cache->engine;
  pln_type type = pln_type_part_at(e, f->type, i);
  pln_cast_target target = part_of(e, f->target, i);
  pln_ref field = PLN_NONE;
  if (w->rw) {
    pln_builder *b = pln_rewrite_builder(w->rw);
    if (!b)
      return PLN_ERR_NOMEM;
    PLN_TRY(pln_build_tuple_get_item(b, f->node, i, &field));
  }
  return visit_value(w, field, type, target);
}

static pln_status end_tuple(cast_walk *w) {
  cast_frame f = w->frames[--w->n_frames];
  pln_ref out = f.node;
  w->n_values -= f.next;
  if (w->rw && !f.same)
    PLN_TRY(pln_build_tuple(pln_rewrite_builder(w->rw), f.next,
                            w->values + w->n_values, &out));
  return push_value(w, out, f.same);
}

static pln_status walk_casts(cast_walk *w, pln_ref node, pln_type type,
                             pln_cast_target target) {
  PLN_TRY(visit_value(w, node, type, target));
  while (w->n_frames) {
    PLN_TRY(pln_poll(w->cache->engine));
    cast_frame *top = &w->frames[w->n_frames - 1];
    cast_frame f = *top;
    if (f.next == pln_type_n_parts(w->cache->engine, f.type)) {
      PLN_TRY(end_tuple(w));
      continue;
    }
    top->next++;
    PLN_TRY(visit_field(w, &f, f.next));
  }
  return PLN_OK;
}

static void free_cast_walk(const cast_walk *w) {
  pln_engine *e = w->cache->engine;
  pln_mem_free(e, w->frames, w->cap_frames * sizeof *w->frames);
  pln_mem_free(e, w->values, w->cap_values * sizeof *w->values);
}

pln_status pln_cast_is_needed(pln_engine *engine, pln_type type,
                              pln_cast_target target, bool *needed) {
  pln_cast_cache none = {.engine = engine};
  cast_walk w = {.cache = &none};
  *needed = pln_type_get_kind(engine, type) == PLN_TYPE_TENSOR &&
            wanted_dtype(engine, type, target);
  if (pln_type_get_kind(engine, type) != PLN_TYPE_TUPLE)
    return PLN_OK;
  pln_status status = walk_casts(&w, PLN_NONE, type, target);
  *needed = w.any;
  free_cast_walk(&w);
  return status;
}

pln_status pln_cast_tree(pln_cast_cache *cache, pln_rewrite *rw, pln_ref node,
                         pln_cast_target target, pln_ref *out) {
  pln_type type = pln_rewrite_graph(rw)->nodes[node].type;
  bool needed;
  *out = node;
  PLN_TRY(pln_cast_is_needed(cache->engine, type, target, &needed));
  if (!needed)
    return PLN_OK;
  cast_walk w = {.cache = cache, .rw = rw};
  pln_status status = walk_casts(&w, node, type, target);
  if (status == PLN_OK)
    *out = w.values[0];
  free_cast_walk(&w);
  return status;
}
