/* apply_layout_transforms.c: tir.ApplyLayoutTransforms: Buffers in the layouts
 * that their attribute layout_transforms gives, one map of indices after the
 * other.
 *
 * A step of tir.StorageFlatten.
 *
 *     T.func_attr({"layout_transform_map":
 *                  {B: [T.index_map(lambda i: (i // 4, i % 4))]}})
 *     B[i] = A[i]   =>   B[i // 4, i % 4] = A[i], B of shape (4, 4)
 *
 * Semantics: TVM's ApplyLayoutTransforms. */

#include "arith/iter/index_map.h"
#include "lower/flatten/flatten.h"

typedef struct transformer {
  const pln_graph *g;
  pln_analyzer *a; /* knows nothing of loops, as in TVM */
  uint32_t *first; /* by old Buffer: 1 + its first map */
  pln_ref *made;   /* by old Buffer: the new one, or PLN_NONE */
  pln_graph **maps;
  uint32_t n_maps, cap_maps;
} transformer;

static const pln_attr *transforms_of(const pln_graph *g, pln_ref ref) {
  const pln_attr *list;
  if (g->nodes[ref].kind != PLN_BUFFER)
    return NULL;
  list = pln_attrs_find(g->engine, g->nodes[ref].attrs, "layout_transforms");
  return list && list->kind == PLN_ATTR_STRINGS ? list : NULL;
}

static pln_status parse_maps(transformer *x, pln_ref buffer,
                             const pln_attr *list) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->maps, &x->cap_maps,
                       (size_t)x->n_maps + list->count, sizeof(pln_graph *)));
  x->first[buffer] = x->n_maps + 1;
  for (uint32_t i = 0; i < list->count; i++) {
    PLN_TRY(pln_index_map_parse(x->g->engine, list->v.strings[i],
                                &x->maps[x->n_maps]));
    x->n_maps++;
  }
  return PLN_OK;
}

static pln_status find_transforms(transformer *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_attr *list = transforms_of(x->g, ref);
    if (list)
      PLN_TRY(parse_maps(x, ref, list));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ mapping
 */

typedef pln_status (*map_fn)(const pln_graph *map, pln_analyzer *a, uint32_t n,
                             const pln_term *in, pln_term *out,
                             uint32_t *n_out);

/* Passes `n` nodes of the builder, indices or extents, through the maps of an
 * old Buffer; room for PLN_MOST_AXES. */
static pln_status map_axes(transformer *x, pln_stmt_rewrite *s, pln_ref buffer,
                           map_fn map, uint32_t n, pln_ref *axes,
                           uint32_t *n_out) {
  pln_term in[PLN_MOST_AXES], out[PLN_MOST_AXES];
  const pln_attr *list = transforms_of(x->g, buffer);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(
        pln_analyzer_import_built(x->a, pln_stmt_builder(s), axes[i], &in[i]));
  for (uint32_t i = 0; i < list->count; i++) {
    PLN_TRY(map(x->maps[x->first[buffer] - 1 + i], x->a, n, in, out, &n));
    memcpy(in, out, n * sizeof *in);
  }
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_analyzer_export(x->a, pln_stmt_builder(s), in[i], &axes[i]));
  *n_out = n;
  return PLN_OK;
}

static pln_status refuse_strides(const transformer *x, pln_ref buffer) {
  return pln_diag_error(
      x->g->engine, PLN_ERR_ARGUMENT, NULL,
      "tir.ApplyLayoutTransforms: the buffer '%s' has strides or too many "
      "dimensions",
      pln_symbol_text(x->g->engine, x->g->nodes[buffer].data).data);
}

/* The Buffer in its new layout, without the attribute. */
static pln_status transform_buffer(transformer *x, pln_stmt_rewrite *s,
                                   pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_buffer_fields f = pln_buffer_fields_of(x->g, old);
  pln_ref shape[PLN_MOST_AXES];
  uint32_t rank;
  *node = x->made[old];
  if (*node != PLN_NONE)
    return PLN_OK;
  if (f.n_strides > 0 || f.rank >= PLN_MOST_AXES)
    return refuse_strides(x, old);
  for (uint32_t i = 0; i < f.rank; i++)
    shape[i] = pln_stmt_image(s, f.shape[i]);
  PLN_TRY(map_axes(x, s, old, pln_index_map_shape, f.rank, shape, &rank));
  pln_buffer_spec spec = {.name = n->data,
                          .type = n->type,
                          .data = pln_stmt_image(s, f.data),
                          .rank = rank,
                          .shape = shape,
                          .elem_offset = pln_stmt_image(s, f.elem_offset)};
  PLN_TRY(pln_attrs_without(x->g->engine, n->attrs, "layout_transforms",
                            &spec.attrs));
  PLN_TRY(pln_build_buffer(pln_stmt_builder(s), &spec, &x->made[old]));
  *node = x->made[old];
  return PLN_OK;
}

static bool is_transformed(const transformer *x, pln_ref buffer) {
  return x->first[buffer] != 0;
}

static pln_status transform_load(transformer *x, pln_stmt_rewrite *s,
                                 pln_ref old, pln_ref *node) {
  pln_ref buffer = pln_operand(x->g, old, 0), operands[PLN_MOST_AXES + 1];
  uint32_t n = x->g->nodes[old].count - 1, count;
  if (!is_transformed(x, buffer) || n >= PLN_MOST_AXES)
    return PLN_OK;
  operands[0] = pln_stmt_image(s, buffer);
  for (uint32_t i = 0; i < n; i++)
    operands[1 + i] = pln_stmt_image(s, pln_operand(x->g, old, 1 + i));
  PLN_TRY(map_axes(x, s, buffer, pln_index_map_apply, n, operands + 1, &count));
  pln_prim spec = {
      .kind = PLN_BUFFER_LOAD, .n = count + 1, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static pln_status transform_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                                 pln_ref *node) {
  transformer *x = ud;
  pln_kind kind = (pln_kind)x->g->nodes[old].kind;
  if (kind == PLN_BUFFER && is_transformed(x, old))
    return transform_buffer(x, s, old, node);
  return kind == PLN_BUFFER_LOAD ? transform_load(x, s, old, node) : PLN_OK;
}

static pln_status transform_store(transformer *x, pln_stmt_rewrite *s,
                                  pln_ref stmt, pln_ref *node) {
  pln_ref operands[PLN_MOST_AXES + 2];
  uint32_t n = x->g->nodes[stmt].count - 2, count;
  for (uint32_t i = 0; i < n + 2; i++)
    operands[i] = pln_stmt_operand(s, i);
  PLN_TRY(map_axes(x, s, pln_operand(x->g, stmt, 0), pln_index_map_apply, n,
                   operands + 2, &count));
  pln_prim spec = {
      .kind = PLN_BUFFER_STORE, .n = count + 2, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

/* A Range from 0. */
static pln_status range_to(pln_stmt_rewrite *s, pln_ref extent, pln_ref *out) {
  pln_ref operands[2] = {PLN_NONE, extent};
  pln_prim spec = {.kind = PLN_RANGE, .n = 2, .operands = operands};
  PLN_TRY(pln_stmt_int_like(s, extent, 0, &operands[0]));
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

/* The whole Buffer is realised: a region is no box in the new layout. */
static pln_status transform_realize(transformer *x, pln_stmt_rewrite *s,
                                    pln_ref stmt, pln_ref *node) {
  pln_ref operands[PLN_MOST_AXES + 2];
  pln_ref extents[PLN_MOST_AXES];
  uint32_t n = x->g->nodes[stmt].count - 2, count;
  for (uint32_t i = 0; i < n; i++) {
    pln_ref range = pln_operand(x->g, stmt, 2 + i);
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, range, 1), &extents[i]));
  }
  PLN_TRY(map_axes(x, s, pln_operand(x->g, stmt, 0), pln_index_map_shape, n,
                   extents, &count));
  operands[0] = pln_stmt_operand(s, 0);
  operands[1] = pln_stmt_operand(s, 1);
  for (uint32_t i = 0; i < count; i++)
    PLN_TRY(range_to(s, extents[i], &operands[2 + i]));
  pln_prim spec = {
      .kind = PLN_BUFFER_REALIZE, .n = count + 2, .operands = operands};
  pln_body body = {.stmt = pln_stmt_body(s, 0)};
  return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &body, node);
}

static pln_status transform_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                 pln_ref *node) {
  transformer *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  bool stores = n->kind == PLN_BUFFER_STORE;
  if ((!stores && n->kind != PLN_BUFFER_REALIZE) ||
      n->count >= PLN_MOST_AXES + 2 ||
      !is_transformed(x, pln_operand(x->g, stmt, 0)))
    return PLN_OK;
  return stores ? transform_store(x, s, stmt, node)
                : transform_realize(x, s, stmt, node);
}

static pln_status run_transformer(transformer *x, pln_graph **out) {
  pln_stmt_mutator mutator = {
      .ud = x, .expr = transform_expr, .leave = transform_stmt};
  PLN_TRY(find_transforms(x));
  if (x->n_maps > 0)
    return pln_stmt_rewrite_function(x->g, &mutator, out);
  *out = pln_graph_retain(x->g);
  return PLN_OK;
}

pln_status pln_apply_layout_transforms(const pln_graph *function,
                                       pln_graph **out) {
  pln_engine *e = function->engine;
  size_t size = 2 * (size_t)function->n_nodes * sizeof(uint32_t);
  transformer x = {.g = function, .first = pln_mem_zeroed(e, size)};
  if (!x.first)
    return pln_nomem(e);
  x.made = x.first + function->n_nodes;
  memset(x.made, 0xff, function->n_nodes * sizeof *x.made);
  pln_status status = pln_analyzer_new(e, &x.a);
  if (status == PLN_OK)
    status = run_transformer(&x, out);
  if (x.a)
    pln_analyzer_free(x.a);
  for (uint32_t i = 0; i < x.n_maps; i++)
    pln_graph_release(x.maps[i]);
  pln_mem_free(e, x.maps, x.cap_maps * sizeof *x.maps);
  pln_mem_free(e, x.first, size);
  return status;
}
