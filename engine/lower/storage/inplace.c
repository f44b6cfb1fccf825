/* inplace.c: whether a statement may write what it computes over what it reads
 * (storage_plan.h): TVM's InplaceOpVerifier.
 *
 * Called by storage_plan.c. */

#include "lower/storage/storage_plan.h"

typedef struct verifier {
  const pln_graph *g;
  pln_ref dst, src;
} verifier;

static bool is_data(const verifier *v, pln_ref access, pln_ref var) {
  return pln_operand(v->g, pln_operand(v->g, access, 0), 0) == var;
}

/* True if one of two nodes is in the expression. Long expressions are assumed
 * to have them. */
static bool has_one_of(const pln_graph *g, pln_ref ref, pln_ref x, pln_ref y) {
  pln_ref stack[256];
  uint32_t n = 0, steps = 0;
  stack[n++] = ref;
  while (n > 0) {
    pln_ref at = stack[--n];
    const pln_node *node = &g->nodes[at];
    if (at == x || at == y || ++steps > 4096 ||
        n + node->count > PLN_COUNT(stack))
      return true;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = pln_operands(g, node)[i];
  }
  return false;
}

/* True if the expression accesses dst or src anyhow. */
static bool mentions(const verifier *v, pln_ref ref) {
  return has_one_of(v->g, ref, v->dst, v->src);
}

/* True if the load is of the element that the store writes. */
static bool is_same_element(const verifier *v, pln_ref load, pln_ref store) {
  const pln_node *n = &v->g->nodes[load];
  pln_ref value = pln_operand(v->g, store, 1);
  if (v->g->nodes[value].type != n->type ||
      v->g->nodes[store].count != n->count + 1)
    return false;
  for (uint32_t i = 1; i < n->count; i++)
    if (!pln_same_expr(v->g, pln_operand(v->g, load, i),
                       pln_operand(v->g, store, i + 1)))
      return false;
  return true;
}

/* What a node of the value of a store reads: `store` if that writes dst. */
static bool is_safe_value(const verifier *v, pln_ref value, pln_ref store) {
  pln_ref stack[256];
  uint32_t n = 0, steps = 0;
  stack[n++] = value;
  while (n > 0) {
    pln_ref at = stack[--n];
    const pln_node *node = &v->g->nodes[at];
    uint32_t first = 0;
    if (at == v->dst || at == v->src || ++steps > 4096 ||
        n + node->count > PLN_COUNT(stack))
      return false;
    if (node->kind == PLN_BUFFER_LOAD) {
      bool of_src = is_data(v, at, v->src);
      if (is_data(v, at, v->dst) ||
          (of_src && (store == PLN_NONE || !is_same_element(v, at, store))))
        return false;
      for (first = 1; first < node->count; first++)
        if (mentions(v, pln_operand(v->g, at, first)))
          return false;
    }
    for (uint32_t i = first; i < node->count; i++)
      stack[n++] = pln_operands(v->g, node)[i];
  }
  return true;
}

static bool is_safe_store(const verifier *v, pln_ref store) {
  for (uint32_t i = 2; i < v->g->nodes[store].count; i++)
    if (mentions(v, pln_operand(v->g, store, i)))
      return false;
  return is_safe_value(v, pln_operand(v->g, store, 1),
                       is_data(v, store, v->dst) ? store : PLN_NONE);
}

static bool is_unsafe_attr(const verifier *v, pln_ref stmt) {
  pln_slice key =
      pln_attrs_string(v->g->engine, v->g->nodes[stmt].attrs, "attr_key", "");
  return pln_slice_is(key, "extern_scope") ||
         pln_slice_is(key, "volatile_scope");
}

static bool is_safe_stmt(const verifier *v, pln_ref stmt) {
  const pln_node *n = &v->g->nodes[stmt];
  if (n->kind == PLN_BUFFER_STORE)
    return is_safe_store(v, stmt);
  if (n->kind == PLN_ATTR_STMT && is_unsafe_attr(v, stmt))
    return false;
  for (uint32_t i = 0; i < n->count; i++)
    if (!is_safe_value(v, pln_operand(v->g, stmt, i), PLN_NONE))
      return false;
  return true;
}

/* True if the loop repeats the store and each round writes another element: the
 * second write of one would read what the first has written. */
static bool is_indexed_by(const verifier *v, pln_ref store, pln_ref loop) {
  const pln_graph *g = v->g;
  pln_ref var = g->scopes[g->nodes[loop].data].begin;
  for (uint32_t i = 2; i < g->nodes[store].count; i++)
    if (has_one_of(g, pln_operand(g, store, i), var, var))
      return true;
  return false;
}

static bool is_one_round(const pln_graph *g, pln_ref loop) {
  const pln_node *extent = &g->nodes[pln_operand(g, loop, 1)];
  return extent->kind == PLN_INT_IMM && pln_imm_bits(extent) == 1;
}

/* Each element of dst is written once, as far as the loops tell: TVM's verifier
 * does not ask. */
static bool writes_once(const verifier *v, pln_ref begin, pln_ref stmt) {
  const pln_graph *g = v->g;
  pln_ref store = PLN_NONE;
  for (pln_ref ref = begin; ref <= stmt; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (n->kind == PLN_BUFFER_STORE && is_data(v, ref, v->dst)) {
      if (store != PLN_NONE)
        return false;
      store = ref;
    }
    bool repeats = n->kind == PLN_WHILE || n->kind == PLN_FOR;
    if (store == PLN_NONE || !repeats || g->scopes[n->data].begin > store)
      continue;
    if (n->kind == PLN_WHILE ||
        !(is_one_round(g, ref) || is_indexed_by(v, store, ref)))
      return false;
  }
  return true;
}

bool pln_is_inplace(const pln_graph *g, pln_ref stmt, pln_ref dst,
                    pln_ref src) {
  verifier v = {.g = g, .dst = dst, .src = src};
  pln_kind kind = (pln_kind)g->nodes[stmt].kind;
  if (kind != PLN_ATTR_STMT && kind != PLN_FOR && kind != PLN_IF_THEN_ELSE &&
      kind != PLN_WHILE && kind != PLN_BUFFER_STORE)
    return false;
  pln_ref begin =
      pln_owns(&g->nodes[stmt]) ? g->scopes[g->nodes[stmt].data].begin : stmt;
  for (pln_ref ref = begin; ref <= stmt; ref++)
    if (pln_is_stmt(&g->nodes[ref]) && !is_safe_stmt(&v, ref))
      return false;
  return writes_once(&v, begin, stmt);
}
