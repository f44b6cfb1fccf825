/* equal.c: structural equality as Relay defines it (TVM 0.14, StructuralEqual):
 * up to alpha-equivalence; a shared sub-expression differs from a duplicated
 * one; free Vars are equal when they are identical, or correspond when the
 * caller maps them.
 *
 * Called by the executor to find equal copies, by modules, and by tests.
 * Iterative: pairs to compare are on a stack, the one evaluated first on top,
 * so that the first difference is found. */

#include "ir/compare/equal.h"
#include "ir/tir/tir.h"

static pln_status push_compared_pair(pln_comparison *c, pln_pair pair) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->stack, &c->cap_stack,
                       (size_t)c->top + 1, sizeof *c->stack));
  c->stack[c->top++] = pair;
  return PLN_OK;
}

static pln_status record_mismatch(pln_comparison *c, pln_mismatch_kind why) {
  c->equal = false;
  c->why = why;
  return PLN_OK;
}

static bool correspond(pln_comparison *c, pln_ref x, pln_ref y) {
  if (c->to[x] == PLN_NONE && c->from[y] == PLN_NONE) {
    c->to[x] = y;
    c->from[y] = x;
    return true;
  }
  return c->to[x] == y && c->from[y] == x;
}

/* ------------------------------------------------------------------- scopes */

static pln_pair inside(const pln_comparison *c, pln_ref x, pln_ref y,
                       pln_edge_kind edge, uint32_t scope, uint32_t index) {
  return (pln_pair){.x = x,
                    .y = y,
                    .from = c->at.x,
                    .edge = (uint8_t)edge,
                    .scope = scope,
                    .index = index};
}

static pln_status bind_compared_vars(pln_comparison *c, pln_pair pair) {
  const pln_node *m = &c->a->nodes[pair.x], *n = &c->b->nodes[pair.y];
  bool same = false;
  PLN_TRY(pln_type_match_run(c->types, m->type, n->type, &same));
  if (same && correspond(c, pair.x, pair.y))
    return PLN_OK;
  c->at = pair;
  return record_mismatch(c, same ? PLN_MISMATCH_SHARING : PLN_MISMATCH_TYPE);
}

static pln_status bind_compared_params(pln_comparison *c,
                                       const pln_scope_row *s,
                                       const pln_scope_row *t, uint32_t scope) {
  for (uint32_t i = 0; c->equal && i < s->n_params; i++)
    PLN_TRY(bind_compared_vars(
        c, inside(c, s->begin + i, t->begin + i, PLN_EDGE_PARAM, scope, i)));
  return PLN_OK;
}

/* A let variable is bound before its uses are compared. */
static pln_status bind_let(pln_comparison *c, pln_pair let) {
  const pln_node *m = &c->a->nodes[let.x], *n = &c->b->nodes[let.y];
  if (m->kind != PLN_LET || n->kind != PLN_LET)
    return PLN_OK;
  pln_pair var = {.x = c->a->operands[m->first],
                  .y = c->b->operands[n->first],
                  .from = let.x,
                  .edge = PLN_EDGE_OPERAND};
  if (c->via)
    c->via[let.x] = let;
  return bind_compared_vars(c, var);
}

uint32_t pln_n_defined(const pln_node *n) {
  if (n->kind == PLN_BUFFER)
    return n->count;
  if (n->kind == PLN_COMM_REDUCER)
    return n->count / 2;
  return n->kind == PLN_ITER_VAR || n->kind == PLN_PRIM_LET;
}

/* Binds the Vars that an expression defines: those of a Buffer, an IterVar, a
 * PrimLet, a CommReducer. */
static void bind_var(pln_comparison *c, pln_ref x, pln_ref y) {
  const pln_node *m = &c->a->nodes[x], *n = &c->b->nodes[y];
  bool open = m->kind == PLN_VAR && n->kind == PLN_VAR &&
              !((m->flags | n->flags) & PLN_NODE_PARAM);
  if (open && m->type == n->type && m->results == n->results)
    (void)correspond(c, x, y);
}

static void bind_defined(pln_comparison *c, pln_ref x, pln_ref y) {
  const pln_node *m = &c->a->nodes[x], *n = &c->b->nodes[y];
  if (m->kind != n->kind || m->count != n->count || !pln_is_prim(m))
    return;
  uint32_t defined = pln_n_defined(m);
  for (uint32_t i = 0; i < defined; i++)
    bind_var(c, c->a->operands[m->first + i], c->b->operands[n->first + i]);
}

/* Binds what a TIR statement defines before the nodes of its scopes are
 * compared. */
static void bind_stmt(pln_comparison *c, pln_ref x, pln_ref y) {
  const pln_node *m = &c->a->nodes[x], *n = &c->b->nodes[y];
  if (!pln_is_stmt(m))
    return;
  for (uint32_t i = 0; i < m->count && i < n->count; i++)
    bind_defined(c, c->a->operands[m->first + i], c->b->operands[n->first + i]);
}

/* Pushes the statements of two scopes, the last one first. */
static pln_status push_statements(pln_comparison *c, pln_scope s, pln_scope t,
                                  uint32_t scope) {
  pln_ref i = c->a->scopes[s].end, k = c->b->scopes[t].end;
  for (;;) {
    PLN_TRY(pln_effect_order_before(&c->in_a, s, i, &i));
    PLN_TRY(pln_effect_order_before(&c->in_b, t, k, &k));
    if (i == PLN_NONE || k == PLN_NONE)
      return i == k ? PLN_OK : record_mismatch(c, PLN_MISMATCH_STATEMENTS);
    pln_pair pair = inside(c, i, k, PLN_EDGE_STATEMENT, scope, 0);
    PLN_TRY(bind_let(c, pair));
    bind_stmt(c, i, k);
    if (!c->equal)
      return PLN_OK;
    PLN_TRY(push_compared_pair(c, pair));
    i = pln_skip_effect_ordered(c->a, i);
    k = pln_skip_effect_ordered(c->b, k);
  }
}

static pln_status compare_scopes(pln_comparison *c, pln_scope s, pln_scope t,
                                 uint32_t scope) {
  const pln_scope_row *x = &c->a->scopes[s], *y = &c->b->scopes[t];
  bool same = false;
  c->in_scope = scope;
  if (x->n_params != y->n_params)
    return record_mismatch(c, PLN_MISMATCH_PARAMS);
  PLN_TRY(pln_attrs_equal(c->engine, x->attrs, y->attrs, &same));
  if (!same)
    return record_mismatch(c, PLN_MISMATCH_SCOPE_ATTRS);
  PLN_TRY(bind_compared_params(c, x, y, scope));
  if (!c->equal)
    return PLN_OK;
  PLN_TRY(push_compared_pair(
      c, inside(c, x->result, y->result, PLN_EDGE_RESULT, scope, 0)));
  return push_statements(c, s, t, scope);
}

/* Reorders the pairs so that those of the first scope are on top of the
 * stack. */
static void reverse_pairs(pln_comparison *c, uint32_t first) {
  pln_mem_reverse(c->stack + first, c->top - first, sizeof *c->stack);
}

/* Reversing everything and then each scope's run restores the order inside runs
 * and reverses the order of runs. */
static pln_status push_scopes(pln_comparison *c, pln_scope s, pln_scope t) {
  pln_pair owner = c->at;
  uint32_t first = c->top, scope = 0;
  while (s != PLN_NONE && t != PLN_NONE) {
    uint32_t run = c->top;
    c->at = owner;
    PLN_TRY(compare_scopes(c, s, t, scope++));
    if (!c->equal)
      return PLN_OK;
    reverse_pairs(c, run);
    s = c->a->scopes[s].next;
    t = c->b->scopes[t].next;
  }
  reverse_pairs(c, first);
  return s == t ? PLN_OK : record_mismatch(c, PLN_MISMATCH_SCOPES);
}

/* ---------------------------------------------------------------- functions */

static pln_status bind_type_params(pln_comparison *c, pln_type x, pln_type y) {
  const pln_engine *e = c->engine;
  uint32_t n = pln_type_n_parts(e, x);
  bool same = n == pln_type_n_parts(e, y);
  for (uint32_t i = 0; same && i < n; i++)
    PLN_TRY(pln_type_match_bind(c->types, pln_type_part_at(e, x, i),
                                pln_type_part_at(e, y, i), &same));
  return same ? PLN_OK : record_mismatch(c, PLN_MISMATCH_TYPE_PARAMS);
}

/* Parameters are compared as Vars; a difference of bodies is found earlier. */
static pln_status compare_result_types(pln_comparison *c) {
  const pln_engine *e = c->engine;
  pln_type x = c->a->nodes[c->at.x].type, y = c->b->nodes[c->at.y].type;
  bool same = true;
  if (pln_type_get_kind(e, x) == PLN_TYPE_FUNC &&
      pln_type_get_kind(e, y) == PLN_TYPE_FUNC) {
    x = pln_type_part_at(e, x, pln_type_n_parts(e, x) - 1);
    y = pln_type_part_at(e, y, pln_type_n_parts(e, y) - 1);
    PLN_TRY(pln_type_match_run(c->types, x, y, &same));
  }
  if (c->via)
    c->at = c->via[c->at.x];
  return same ? PLN_OK : record_mismatch(c, PLN_MISMATCH_TYPE);
}

static pln_status compare_owners(pln_comparison *c, const pln_node *m,
                                 const pln_node *n) {
  if (m->kind == PLN_FUNCTION || m->kind == PLN_PRIM_FUNC) {
    pln_pair ret = c->at;
    ret.edge = PLN_EDGE_RET;
    PLN_TRY(bind_type_params(c, c->a->scopes[m->data].type_params,
                             c->b->scopes[n->data].type_params));
    PLN_TRY(push_compared_pair(c, ret));
  }
  return c->equal ? push_scopes(c, m->data, n->data) : PLN_OK;
}

/* -------------------------------------------------------------------- nodes */

/* Several nodes may represent one free variable. */
static bool free_correspondence(const pln_comparison *c, const pln_node *m,
                                const pln_node *n) {
  pln_ref x = c->at.x, y = c->at.y;
  return (c->to[x] == PLN_NONE || c->b->nodes[c->to[x]].data == n->data) &&
         (c->from[y] == PLN_NONE || c->a->nodes[c->from[y]].data == m->data);
}

static pln_status compare_vars(pln_comparison *c, const pln_node *m,
                               const pln_node *n) {
  bool same = false;
  if (!free_correspondence(c, m, n) || (!c->map_free && m->data != n->data) ||
      !pln_bijection_allows(&c->free, m->data, n->data))
    return record_mismatch(c, PLN_MISMATCH_PAYLOAD);
  PLN_TRY(pln_type_match_run(c->types, m->type, n->type, &same));
  if (!same)
    return record_mismatch(c, PLN_MISMATCH_TYPE);
  c->to[c->at.x] = c->at.y;
  c->from[c->at.y] = c->at.x;
  return c->map_free ? pln_bijection_add(c->engine, &c->free, m->data, n->data)
                     : PLN_OK;
}

static bool same_payload(const pln_comparison *c, const pln_node *m,
                         const pln_node *n) {
  switch (pln_kinds[m->kind].payload) {
  case PLN_PAYLOAD_NONE:
  case PLN_PAYLOAD_HINT:
  case PLN_PAYLOAD_SCOPE:
  case PLN_PAYLOAD_VAR: return true;
  case PLN_PAYLOAD_BITS: return m->data == n->data && m->attrs == n->attrs;
  case PLN_PAYLOAD_TENSOR:
    return (c->types->contents ? pln_tensor_same : pln_tensor_equal)(
        c->a->tensors[m->data], c->b->tensors[n->data]);
  case PLN_PAYLOAD_SYMBOL:
  case PLN_PAYLOAD_OP:
  case PLN_PAYLOAD_BUILTIN:
  case PLN_PAYLOAD_INDEX: return m->data == n->data;
  }
  return false;
}

/* Constructor types are closed: their variables do not correspond to outer
 * ones, not even to those of the definition. */
static pln_status compare_constructors(pln_comparison *c, pln_type x,
                                       pln_type y, bool *same) {
  pln_type_match own = {.engine = c->engine, .map_free = c->map_free};
  if (x == y || !x || !y)
    return PLN_OK;
  pln_status status = pln_type_match_run(&own, x, y, same);
  pln_type_match_free(&own);
  return status;
}

/* Compares a call's attributes in the operator's normal form. */
static pln_status compare_attrs(pln_comparison *c, const pln_node *m,
                                const pln_node *n, bool *same) {
  pln_op op = m->kind == PLN_CALL ? m->data : 0;
  pln_attrs x, y;
  if (m->attrs == n->attrs)
    return PLN_OK;
  PLN_TRY(pln_relay_normal_attrs(c->engine, op, m->attrs, &x));
  PLN_TRY(pln_relay_normal_attrs(c->engine, op, n->attrs, &y));
  return pln_attrs_equal(c->engine, x, y, same);
}

static pln_status compare_heads(pln_comparison *c, const pln_node *m,
                                const pln_node *n) {
  bool same = true;
  if (m->kind != n->kind)
    return record_mismatch(c, PLN_MISMATCH_KIND);
  if (!same_payload(c, m, n))
    return record_mismatch(c, PLN_MISMATCH_PAYLOAD);
  if (m->count != n->count)
    return record_mismatch(c, PLN_MISMATCH_OPERANDS);
  if (m->results != n->results)
    return record_mismatch(c, PLN_MISMATCH_RESULTS);
  if (pln_kinds[m->kind].has_attrs)
    PLN_TRY(compare_attrs(c, m, n, &same));
  if (!same)
    return record_mismatch(c, PLN_MISMATCH_ATTRS);
  if (m->kind == PLN_CONSTRUCTOR)
    PLN_TRY(compare_constructors(c, m->type, n->type, &same));
  return same ? PLN_OK : record_mismatch(c, PLN_MISMATCH_TYPE);
}

/* For kinds whose sharing Relay ignores, a node may have several partners and
 * is compared once with each. */
static pln_status met_before(pln_comparison *c, pln_ref x, pln_ref y,
                             bool *met) {
  uint64_t key = (uint64_t)x << 32 | y;
  *met = false;
  if (c->to[x] == PLN_NONE) {
    c->to[x] = y;
    return PLN_OK;
  }
  if (!c->again)
    PLN_TRY(pln_idmap_new(c->engine, &c->again));
  *met = pln_idmap_get(c->again, key) != 0;
  return *met ? PLN_OK : pln_idmap_set(c->again, key, 1);
}

static pln_status compare_below(pln_comparison *c, const pln_node *m,
                                const pln_node *n) {
  if (c->via)
    c->via[c->at.x] = c->at;
  pln_pair here = c->at;
  if (pln_owns(m) || pln_owns(n))
    PLN_TRY(compare_owners(c, m, n));
  if (!c->equal)
    return PLN_OK;
  c->at = here;
  for (uint32_t i = m->count; i-- > 0;) {
    pln_ref x = c->a->operands[m->first + i], y = c->b->operands[n->first + i];
    if (c->to[x] != y || c->from[y] != x)
      PLN_TRY(push_compared_pair(c, inside(c, x, y, PLN_EDGE_OPERAND, 0, i)));
  }
  return PLN_OK;
}

static pln_status compare_pending_pairs(pln_comparison *c) {
  pln_ref x = c->at.x, y = c->at.y;
  const pln_node *m = &c->a->nodes[x], *n = &c->b->nodes[y];
  bool shared = pln_kinds[m->kind].shared, met = false;
  if (c->to[x] == y && (!shared || c->from[y] == x))
    return PLN_OK;
  PLN_TRY(compare_heads(c, m, n));
  if (!c->equal)
    return PLN_OK;
  if (m->kind == PLN_VAR)
    return compare_vars(c, m, n);
  if (pln_is_prim(m) && m->type != n->type)
    return record_mismatch(c, PLN_MISMATCH_TYPE);
  bind_defined(c, x, y);
  if (shared && !correspond(c, x, y))
    return record_mismatch(c, PLN_MISMATCH_SHARING);
  if (!shared)
    PLN_TRY(met_before(c, x, y, &met));
  return met ? PLN_OK : compare_below(c, m, n);
}

/* ------------------------------------------------------------------- driver */

static pln_ref *clear_correspondence(const pln_graph *g) {
  size_t size = ((size_t)g->n_nodes + 1) * sizeof(pln_ref);
  pln_ref *table = pln_mem_new(g->engine, size);
  if (table)
    memset(table, 0xff, size);
  return table;
}

pln_status pln_comparison_begin(pln_comparison *c, const pln_graph *a,
                                const pln_graph *b, pln_type_match *types,
                                bool trace) {
  pln_engine *e = a->engine;
  *c = (pln_comparison){.engine = e,
                        .a = a,
                        .b = b,
                        .in_a = {a, NULL},
                        .in_b = {b, NULL},
                        .map_free = types->map_free,
                        .types = types,
                        .equal = true};
  c->to = clear_correspondence(a);
  c->from = clear_correspondence(b);
  if (trace)
    c->via = pln_mem_new(e, ((size_t)a->n_nodes + 1) * sizeof *c->via);
  return c->to && c->from && (c->via || !trace) ? PLN_OK : pln_nomem(e);
}

static pln_status has_statements(pln_effect_order *s, pln_ref node, bool *out) {
  const pln_graph *g = s->graph;
  pln_ref last = PLN_NONE;
  if (node == g->root)
    PLN_TRY(pln_effect_order_before(s, 0, g->scopes[0].end, &last));
  *out = last != PLN_NONE;
  return PLN_OK;
}

/* The root includes the statements of the whole graph: its lets. */
static pln_status begin_roots(pln_comparison *c, pln_ref x, pln_ref y) {
  c->at = (pln_pair){.x = x, .y = y, .from = PLN_NONE};
  PLN_TRY(push_compared_pair(c, c->at));
  c->in_scope = PLN_NONE;
  bool first, second;
  PLN_TRY(has_statements(&c->in_a, x, &first));
  PLN_TRY(has_statements(&c->in_b, y, &second));
  if (first != second)
    return record_mismatch(c, PLN_MISMATCH_STATEMENTS);
  return first ? push_statements(c, 0, 0, PLN_NONE) : PLN_OK;
}

/* Values with effects must be in the same order as far as both sides have
 * any. */
static void compare_order(pln_comparison *c, pln_scope s) {
  pln_ref last = PLN_NONE, at = c->a->scopes[s].end;
  while (c->equal && (at = pln_prev_effect_ordered(c->a, s, at)) != PLN_NONE) {
    pln_ref y = pln_is_used_effect(&c->in_a, at) ? c->to[at] : PLN_NONE;
    if (y != PLN_NONE && pln_is_used_effect(&c->in_b, y)) {
      c->equal = y < last;
      c->at = c->via ? c->via[at] : (pln_pair){.x = at, .y = y};
      c->why = PLN_MISMATCH_ORDER;
      last = y;
    }
    at = pln_skip_effect_ordered(c->a, at);
  }
}

static pln_status compare_all(pln_comparison *c, pln_ref x, pln_ref y) {
  PLN_TRY(begin_roots(c, x, y));
  for (size_t round = 0; c->equal && c->top > 0; round++) {
    c->at = c->stack[--c->top];
    PLN_TRY(pln_poll_round(c->engine, round));
    PLN_TRY(c->at.edge == PLN_EDGE_RET ? compare_result_types(c)
                                       : compare_pending_pairs(c));
  }
  for (pln_scope s = 0;
       c->equal && c->in_a.used && c->in_b.used && s < c->a->n_scopes; s++)
    compare_order(c, s);
  return PLN_OK;
}

pln_status pln_comparison_run(pln_comparison *c, pln_ref x, pln_ref y) {
  pln_stoppable_begin(c->engine);
  return pln_work_done(c->engine, compare_all(c, x, y));
}

void pln_comparison_end(pln_comparison *c) {
  pln_engine *e = c->engine;
  size_t a = (size_t)c->a->n_nodes + 1, b = (size_t)c->b->n_nodes + 1;
  pln_mem_free(e, c->to, a * sizeof *c->to);
  pln_mem_free(e, c->from, b * sizeof *c->from);
  if (c->via)
    pln_mem_free(e, c->via, a * sizeof *c->via);
  pln_effect_order_free(&c->in_a);
  pln_effect_order_free(&c->in_b);
  pln_bijection_free(&c->free);
  pln_idmap_free(c->again);
  pln_mem_free(e, c->stack, c->cap_stack * sizeof *c->stack);
}

pln_status pln_graph_equal(const pln_graph *a, pln_ref node_a,
                           const pln_graph *b, pln_ref node_b,
                           bool map_free_vars, bool *out) {
  pln_comparison c;
  pln_type_match types = {.engine = a->engine, .map_free = map_free_vars};
  pln_status status = pln_comparison_begin(&c, a, b, &types, false);
  if (status == PLN_OK)
    status = pln_comparison_run(&c, node_a, node_b);
  if (status == PLN_OK)
    *out = c.equal;
  pln_comparison_end(&c);
  pln_type_match_free(&types);
  return status;
}
