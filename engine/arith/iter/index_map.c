/* index_map.c: see index_map.h. Called by tir.ApplyLayoutTransforms and by
 * te/schedule/layout.c. */

#include "arith/iter/index_map.h"

#include "ir/tir/tir.h"

static pln_ref root_operand(const pln_graph *map, uint32_t i) {
  return pln_operand(map, map->root, i);
}

static uint32_t count_variables(const pln_graph *map) {
  return (uint32_t)pln_node_int(map, root_operand(map, 0));
}

static uint32_t count_indices(const pln_graph *map) {
  return map->nodes[map->root].count - 1 - count_variables(map);
}

pln_status pln_index_map_parse(pln_engine *engine, pln_slice text,
                               pln_graph **out) {
  pln_graph *map;
  static const char prefix[] = "T.index_map(";
  size_t n = sizeof prefix - 1;
  if (text.size < n || memcmp(text.data, prefix, n) != 0)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "a transform of a layout is T.index_map(lambda ...), "
                          "not '%.60s'",
                          text.data);
  PLN_TRY(pln_parse_script_expr(engine, text, "layout_transforms", &map));
  if (map->nodes[map->root].kind == PLN_PRIM_ARRAY &&
      count_variables(map) < PLN_MOST_AXES &&
      count_indices(map) < PLN_MOST_AXES) {
    *out = map;
    return PLN_OK;
  }
  pln_graph_release(map);
  return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                        "a map of indices has at most %d of them",
                        PLN_MOST_AXES - 1);
}

static pln_status refuse_node(const pln_graph *map, pln_ref ref) {
  return pln_diag_error(map->engine, PLN_ERR_ARGUMENT, NULL,
                        "a map of indices has a %s, which is no arithmetic of "
                        "its variables",
                        pln_kinds[map->nodes[ref].kind].name);
}

/* The value of a node whose operands have values. A constant has the dtype of
 * `like`, so that a map serves indices of any width. */
static pln_status map_node(const pln_graph *map, pln_ref ref, pln_analyzer *a,
                           pln_term like, pln_term *values) {
  const pln_node *n = &map->nodes[ref];
  if (n->kind == PLN_INT_IMM) {
    values[ref] = pln_const_like(a, like, pln_node_int(map, ref));
    return a->status;
  }
  if (n->kind < PLN_PRIM_ADD || n->kind > PLN_PRIM_MAX)
    return values[ref] ? PLN_OK : refuse_node(map, ref);
  values[ref] = pln_fold(a, (pln_kind)n->kind, values[pln_operand(map, ref, 0)],
                         values[pln_operand(map, ref, 1)]);
  return a->status;
}

static pln_status map_nodes(const pln_graph *map, pln_analyzer *a, uint32_t n,
                            const pln_term *indices, pln_term *values) {
  pln_term like = n > 0 ? indices[0] : pln_term_int(a, PLN_INT32, 1, 0);
  for (uint32_t i = 0; i < n; i++)
    values[root_operand(map, 1 + i)] = indices[i];
  for (pln_ref ref = 0; ref < map->root; ref++)
    PLN_TRY(map_node(map, ref, a, like, values));
  return PLN_OK;
}

/* The indices as they are, not simplified. */
static pln_status map_terms(const pln_graph *map, pln_analyzer *a, uint32_t n,
                            const pln_term *indices, pln_term *out) {
  size_t size = map->n_nodes * sizeof(pln_term);
  uint32_t expected = count_variables(map);
  if (n != expected)
    return pln_diag_error(map->engine, PLN_ERR_ARGUMENT, NULL,
                          "a map of %u indices is applied to a buffer of %u "
                          "dimensions",
                          expected, n);
  pln_term *values = pln_mem_zeroed(map->engine, size);
  if (!values)
    return pln_nomem(map->engine);
  pln_status status = map_nodes(map, a, n, indices, values);
  for (uint32_t i = 0; i < count_indices(map) && status == PLN_OK; i++)
    out[i] = values[root_operand(map, 1 + n + i)];
  pln_mem_free(map->engine, values, size);
  return status;
}

pln_status pln_index_map_apply(const pln_graph *map, pln_analyzer *a,
                               uint32_t n, const pln_term *indices,
                               pln_term *out, uint32_t *n_out) {
  PLN_TRY(map_terms(map, a, n, indices, out));
  *n_out = count_indices(map);
  for (uint32_t i = 0; i < *n_out; i++)
    PLN_TRY(pln_analyzer_simplify(a, out[i], 2, &out[i]));
  return PLN_OK;
}

static pln_status extent_of(pln_analyzer *a, uint32_t n,
                            const pln_term_domain *domains, pln_term index,
                            pln_term *out) {
  pln_term min, max;
  PLN_TRY(pln_analyzer_int_set(a, index, n, domains, false, &min, &max));
  if (max == PLN_TERM_POS_INF || max == PLN_TERM_NEG_INF)
    return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                          "a map of indices gives an index without a limit");
  return pln_analyzer_simplify(a, pln_add_const(a, max, 1), 2, out);
}

pln_status pln_index_map_shape(const pln_graph *map, pln_analyzer *a,
                               uint32_t n, const pln_term *extents,
                               pln_term *out, uint32_t *n_out) {
  pln_term_domain domains[PLN_MOST_AXES];
  pln_term vars[PLN_MOST_AXES];
  if (n >= PLN_MOST_AXES)
    return pln_diag_error(a->engine, PLN_ERR_LIMIT, NULL,
                          "a buffer has more than %d dimensions",
                          PLN_MOST_AXES - 1);
  for (uint32_t i = 0; i < n; i++) {
    vars[i] = pln_term_fresh(a, extents[i], "i");
    domains[i] = (pln_term_domain){.var = vars[i],
                                   .min = pln_const_like(a, extents[i], 0),
                                   .max = pln_add_const(a, extents[i], -1)};
  }
  PLN_TRY(map_terms(map, a, n, vars, out));
  *n_out = count_indices(map);
  for (uint32_t i = 0; i < *n_out; i++) {
    PLN_TRY(pln_analyzer_simplify(a, out[i], 2, &out[i]));
    PLN_TRY(extent_of(a, n, domains, out[i], &out[i]));
  }
  return PLN_OK;
}
