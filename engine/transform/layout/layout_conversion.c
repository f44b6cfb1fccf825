/* layout_conversion.c: converts values between layouts.
 *
 * Called by transform_layout.c. A value that lacks axes of the layout gets them
 * first, with one element each. A scalar broadcasts whatever the layout.
 *
 *     %b in "C" to "NCHW16c"   =>
 *       %0 = expand_dims(%b, axis=0, num_newaxis=3)
 *       layout_transform(%0, src_layout="NHWC", dst_layout="NCHW16c")
 *
 * Semantics: TVM's TransformMemorizer. */

#include "transform/layout/layout_conversion.h"

#include "ir/rewrite/rewrite.h"
#include "transform/relay_builder.h"

pln_status pln_layout_conversions_new(pln_engine *engine,
                                      pln_layout_conversions *out) {
  *out = (pln_layout_conversions){.engine = engine};
  PLN_TRY(pln_layout_table_new(engine, &out->table));
  PLN_TRY(pln_idmap_new(engine, &out->pairs));
  return pln_idmap_new(engine, &out->converted);
}

void pln_layout_conversions_free(pln_layout_conversions *c) {
  pln_layout_table_free(&c->table);
  pln_idmap_free(c->pairs);
  pln_idmap_free(c->converted);
}

static pln_status build_expand_dims(pln_rewrite *rw, int32_t axes,
                                    pln_ref *node) {
  const pln_relay_attr attrs[] = {pln_relay_int("axis", 0),
                                  pln_relay_int("num_newaxis", axes)};
  pln_relay_builder r;
  PLN_TRY(pln_relay_begin(&r, rw));
  *node = pln_relay_call_with(&r, PLN_OP_UNSQUEEZE, PLN_COUNT(attrs), attrs, 1,
                              node);
  return pln_relay_status(&r);
}

static pln_status build_layout_transform(const pln_layout_conversions *s,
                                         pln_rewrite *rw,
                                         pln_tensor_layout from,
                                         pln_tensor_layout to, pln_ref *node) {
  const pln_relay_attr attrs[] = {
      {"src_layout",
       {.kind = PLN_ATTR_STRING,
        .v.s = pln_tensor_layout_text(&s->table, from)}},
      {"dst_layout",
       {.kind = PLN_ATTR_STRING,
        .v.s = pln_tensor_layout_text(&s->table, to)}}};
  pln_relay_builder r;
  PLN_TRY(pln_relay_begin(&r, rw));
  *node = pln_relay_call_with(&r, PLN_OP_LAYOUT_TRANSFORM, PLN_COUNT(attrs),
                              attrs, 1, node);
  return pln_relay_status(&r);
}

void pln_layout_shape(const pln_engine *e, pln_type type, pln_shape *out) {
  pln_shape_unknown(out);
  if (pln_type_get_kind(e, type) != PLN_TYPE_TENSOR ||
      pln_type_rank(e, type) > PLN_MAX_RANK)
    return;
  out->rank = pln_type_rank(e, type);
  if (out->rank > 0)
    memcpy(out->dims, pln_type_dims(e, type),
           (size_t)out->rank * sizeof *out->dims);
}

/* Axes that the value lacks come first, with one element each. */
static void prepend_axes(pln_shape *shape, int32_t n) {
  memmove(shape->dims + n, shape->dims,
          (size_t)shape->rank * sizeof *shape->dims);
  for (int32_t i = 0; i < n; i++)
    shape->dims[i] = 1;
  shape->rank += n;
}

/* Appends the conversion of *node; *node is PLN_NONE if there is none. A scalar
 * broadcasts whatever the layout. */
static pln_status append_conversion(pln_layout_conversions *s, pln_rewrite *rw,
                                    pln_tensor_layout from,
                                    pln_tensor_layout to, pln_ref *node) {
  const pln_layout_table *t = &s->table;
  int32_t more =
      pln_tensor_layout_n_primal(t, to) - pln_tensor_layout_n_primal(t, from);
  pln_tensor_layout whole = from;
  pln_shape shape;
  pln_layout_shape(s->engine, pln_rewrite_graph(rw)->nodes[*node].type, &shape);
  if (shape.rank == 0 && more > 0)
    return PLN_OK;
  bool fits = from && to && shape.rank == pln_tensor_layout_rank(t, from);
  if (fits && more > 0) {
    PLN_TRY(pln_tensor_layout_expand(&s->table, from, to, &whole));
    prepend_axes(&shape, more);
  }
  if (!fits ||
      (whole != to && !pln_tensor_layout_converts(t, &shape, whole, to))) {
    *node = PLN_NONE;
    return PLN_OK;
  }
  if (more > 0)
    PLN_TRY(build_expand_dims(rw, more, node));
  return whole == to ? PLN_OK : build_layout_transform(s, rw, whole, to, node);
}

static pln_status pair_of(pln_layout_conversions *s, pln_tensor_layout from,
                          pln_tensor_layout to, uint32_t *out) {
  uint64_t key = (uint64_t)from << 32 | to;
  *out = pln_idmap_get(s->pairs, key);
  if (*out)
    return PLN_OK;
  *out = ++s->n_pairs;
  return pln_idmap_set(s->pairs, key, *out);
}

pln_status pln_layout_convert(pln_layout_conversions *s, pln_rewrite *rw,
                              pln_tensor_layout from, pln_tensor_layout to,
                              pln_ref *node) {
  uint32_t pair;
  if (from == to || *node == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pair_of(s, from, to, &pair));
  uint64_t key = (uint64_t)*node << 32 | pair;
  uint32_t known = pln_idmap_get(s->converted, key);
  if (known && !pln_rewrite_has_left(rw, known - 1)) {
    *node = known - 1;
    return PLN_OK;
  }
  PLN_TRY(append_conversion(s, rw, from, to, node));
  return *node == PLN_NONE ? PLN_OK
                           : pln_idmap_set(s->converted, key, *node + 1);
}
