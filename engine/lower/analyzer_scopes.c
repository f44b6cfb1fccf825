/* analyzer_scopes.c: feeds an analyzer with what holds inside of the bodies of
 * statements (analyzer_scopes.h). A constraint holds from enter to leave; a
 * variable is bound again with each loop that has it. A condition on an element
 * that the function may write is not held: it may change in the body. */

#include "lower/analyzer_scopes.h"

#include <stdlib.h>

/* --------------------------------------------------------------------- terms
 */

pln_status pln_scoped_term(pln_analyzer_scopes *scopes,
                           const pln_stmt_rewrite *s, pln_ref node,
                           pln_term *out) {
  return pln_analyzer_import_more(scopes->a, pln_stmt_builder(s)->graph, node,
                                  out);
}

pln_status pln_scoped_simplify(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                               pln_ref node, pln_ref *out) {
  pln_term term, simple;
  *out = node;
  PLN_TRY(pln_scoped_term(scopes, s, node, &term));
  PLN_TRY(pln_analyzer_simplify(scopes->a, term, 2, &simple));
  return simple == term
             ? PLN_OK
             : pln_analyzer_export(scopes->a, pln_stmt_builder(s), simple, out);
}

pln_status pln_scoped_bind(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                           pln_ref let) {
  pln_ref image;
  pln_term var, value;
  PLN_TRY(pln_scoped_term(scopes, s, pln_stmt_operand(s, 0), &value));
  PLN_TRY(pln_stmt_map(s, pln_stmt_param(s, let, 0, 0), &image));
  PLN_TRY(pln_scoped_term(scopes, s, image, &var)); /* the last term if new */
  return pln_analyzer_bind(scopes->a, var, value, true);
}

pln_ref pln_likely_condition(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  return n->kind == PLN_PRIM_CALL && n->data != 0 && n->count == 1 &&
                 strcmp(pln_builtin_name(n->data), "likely") == 0
             ? graph->operands[n->first]
             : node;
}

/* ------------------------------------------------------------------ contexts
 */

static pln_status hold(pln_analyzer_scopes *scopes, pln_term condition) {
  uint32_t mark;
  return pln_analyzer_enter(scopes->a, condition, &mark);
}

static int by_identity(const void *x, const void *y) {
  uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return (a > b) - (a < b);
}

static bool is_written(const pln_analyzer_scopes *scopes, pln_term load) {
  const pln_analyzer *a = scopes->a;
  pln_term data = pln_term_operand(a, pln_term_operand(a, load, 0), 0);
  uint32_t id = (uint32_t)pln_at(a, data)->u.value;
  return scopes->writes_anything ||
         (scopes->n_written > 0 &&
          bsearch(&id, scopes->written, scopes->n_written, sizeof id,
                  by_identity));
}

/* True if the value of the condition may change in the function. */
static bool may_change(pln_analyzer_scopes *scopes, pln_term condition) {
  pln_analyzer *a = scopes->a;
  pln_term_list order;
  bool changes = false;
  if (!pln_term_order(a, condition, NULL, &order))
    return true;
  for (uint32_t i = 0; i < order.n && !changes; i++)
    changes = pln_term_kind(a, order.items[i]) == PLN_BUFFER_LOAD &&
              is_written(scopes, order.items[i]);
  pln_term_list_free(a, &order);
  return changes;
}

pln_status pln_scoped_hold(pln_analyzer_scopes *scopes, pln_term condition) {
  pln_analyzer *a = scopes->a;
  pln_term_list parts = {0};
  pln_status status = PLN_OK;
  if (!may_change(scopes, condition))
    return hold(scopes, condition);
  bool ok = pln_term_list_push(a, &parts, condition);
  for (uint32_t i = 0; i < parts.n && ok && status == PLN_OK; i++) {
    pln_term t = parts.items[i];
    if (pln_term_kind(a, t) == PLN_PRIM_AND)
      ok = pln_term_list_push(a, &parts, pln_at(a, t)->a) &&
           pln_term_list_push(a, &parts, pln_at(a, t)->b);
    else if (!may_change(scopes, t))
      status = hold(scopes, t);
  }
  pln_term_list_free(a, &parts);
  return status != PLN_OK ? status : a->status;
}

static pln_status compare(pln_analyzer_scopes *scopes, pln_kind kind,
                          pln_term x, pln_term y, pln_term *out) {
  *out = pln_fold(scopes->a, kind, x, y);
  return scopes->a->status;
}

/* min <= var < min + extent, as a range and as two constraints. */
static pln_status enter_range(pln_analyzer_scopes *scopes, pln_term var,
                              pln_term min, pln_term extent) {
  pln_term from, below;
  PLN_TRY(pln_analyzer_bind_range(scopes->a, var, min, extent, true));
  PLN_TRY(compare(scopes, PLN_PRIM_GE, var, min, &from));
  PLN_TRY(hold(scopes, from));
  PLN_TRY(compare(scopes, PLN_PRIM_LT, var, pln_add(scopes->a, min, extent),
                  &below));
  return hold(scopes, below);
}

static pln_status enter_for(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                            pln_ref stmt) {
  pln_ref loop_var;
  pln_term var, min, extent;
  PLN_TRY(pln_stmt_map(s, pln_stmt_param(s, stmt, 0, 0), &loop_var));
  PLN_TRY(pln_scoped_term(scopes, s, loop_var, &var));
  PLN_TRY(pln_scoped_term(scopes, s, pln_stmt_operand(s, 0), &min));
  PLN_TRY(pln_scoped_term(scopes, s, pln_stmt_operand(s, 1), &extent));
  /* The loop runs over another expression than a variable. */
  if (pln_stmt_node(s, loop_var)->kind != PLN_VAR)
    return PLN_OK;
  return enter_range(scopes, var, min, extent);
}

static pln_status enter_branch(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                               pln_ref condition, bool holds) {
  pln_term term;
  const pln_graph *g = pln_stmt_builder(s)->graph;
  PLN_TRY(
      pln_scoped_term(scopes, s, pln_likely_condition(g, condition), &term));
  if (!pln_is_bool(scopes->a, term))
    return PLN_OK; /* an integer that is 0 or not */
  if (!holds)
    PLN_TRY(pln_analyzer_rewrite_simplify(
        scopes->a, pln_fold_not(scopes->a, term), &term));
  return pln_scoped_hold(scopes, term);
}

/* The thread variable of an AttrStmt is in [0, value). */
static pln_status enter_thread(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                               pln_ref stmt) {
  const pln_graph *g = pln_stmt_old(s);
  pln_ref var_ref;
  pln_term var, extent;
  if (!pln_binds_thread(g, &g->nodes[stmt]))
    return PLN_OK;
  PLN_TRY(
      pln_stmt_map(s, pln_operand(g, pln_operand(g, stmt, 0), 0), &var_ref));
  PLN_TRY(pln_scoped_term(scopes, s, var_ref, &var));
  PLN_TRY(pln_scoped_term(scopes, s, pln_stmt_operand(s, 1), &extent));
  return pln_analyzer_bind_range(
      scopes->a, var, pln_const_like(scopes->a, extent, 0), extent, true);
}

/* The iteration variables of a Block are in their domains. */
static pln_status enter_block(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                              pln_ref stmt) {
  uint32_t n = pln_stmt_old(s)->nodes[stmt].count;
  for (uint32_t i = 0; i < n; i++) {
    pln_ref var_ref, domain = pln_stmt_operand(s, i);
    pln_term var, min, extent;
    PLN_TRY(pln_stmt_map(s, pln_stmt_param(s, stmt, 0, i), &var_ref));
    const pln_graph *g = pln_stmt_builder(s)->graph;
    if (g->nodes[domain].kind != PLN_RANGE)
      continue;
    PLN_TRY(pln_scoped_term(scopes, s, var_ref, &var));
    PLN_TRY(pln_scoped_term(scopes, s, pln_operand(g, domain, 0), &min));
    PLN_TRY(pln_scoped_term(scopes, s, pln_operand(g, domain, 1), &extent));
    PLN_TRY(pln_analyzer_bind_range(scopes->a, var, min, extent, true));
  }
  return PLN_OK;
}

static pln_status enter_kind(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                             pln_ref stmt, uint32_t k) {
  switch (pln_stmt_old(s)->nodes[stmt].kind) {
  case PLN_FOR: return enter_for(scopes, s, stmt);
  case PLN_IF_THEN_ELSE:
  case PLN_ASSERT_STMT:
    return enter_branch(scopes, s, pln_stmt_operand(s, 0), k == 0);
  case PLN_ATTR_STMT: return enter_thread(scopes, s, stmt);
  case PLN_BLOCK: return enter_block(scopes, s, stmt);
  default: return PLN_OK;
  }
}

pln_status pln_analyzer_scopes_enter(pln_analyzer_scopes *scopes,
                                     pln_stmt_rewrite *s, pln_ref stmt,
                                     uint32_t k) {
  PLN_TRY(pln_mem_grow(scopes->a->engine, (void **)&scopes->marks, &scopes->cap,
                       (size_t)scopes->n + 1, sizeof *scopes->marks));
  scopes->marks[scopes->n++] = scopes->a->n_scopes;
  return enter_kind(scopes, s, stmt, k);
}

void pln_analyzer_scopes_leave(pln_analyzer_scopes *scopes) {
  pln_analyzer_leave(scopes->a, scopes->marks[--scopes->n]);
}

/* ---------------------------------------------------------------- begin, end
 */

/* The only variable of an expression; PLN_NONE: there is none, or several. */
static pln_ref only_var(const pln_graph *g, pln_ref ref, uint32_t depth) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_VAR)
    return ref;
  if (n->count != 2 || depth == 0)
    return PLN_NONE;
  pln_ref x = pln_operand(g, ref, 0), y = pln_operand(g, ref, 1);
  if (g->nodes[y].kind == PLN_INT_IMM)
    return only_var(g, x, depth - 1);
  return g->nodes[x].kind == PLN_INT_IMM ? only_var(g, y, depth - 1) : PLN_NONE;
}

/* extent = scale * var + offset is not negative: neither is less than
 * -offset / scale the variable (TVM's MarkGlobalNonNegValue). */
static pln_status bound_extent(pln_analyzer *a, const pln_graph *g,
                               pln_ref extent) {
  pln_term term, var, out[2];
  bool linear;
  pln_ref ref = only_var(g, extent, 8);
  if (ref == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_analyzer_import(a, g, extent, &term));
  PLN_TRY(pln_analyzer_import(a, g, ref, &var));
  PLN_TRY(pln_analyzer_linear_equation(a, term, 1, &var, out, &linear));
  if (!linear || !pln_is_const(a, out[0]) || !pln_is_const(a, out[1]) ||
      pln_const(a, out[0]) <= 0 || pln_const(a, out[1]) == INT64_MIN)
    return PLN_OK;
  int64_t least = -pln_floor_div(pln_const(a, out[1]), pln_const(a, out[0]));
  return pln_analyzer_update_bound(a, var, least, INT64_MAX, true);
}

static pln_status bound_extents(pln_analyzer *a, const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_BUFFER_BIND)
      continue;
    pln_ref buffer = pln_operand(g, ref, 1);
    for (uint32_t i = 0; i < g->nodes[buffer].results; i++)
      PLN_TRY(bound_extent(a, g, pln_operand(g, buffer, 1 + i)));
  }
  return PLN_OK;
}

static bool has_pointer(const pln_graph *g, const pln_node *call) {
  for (uint32_t i = 0; i < call->count; i++) {
    const pln_node *n = &g->nodes[g->operands[call->first + i]];
    if (n->kind != PLN_STRING_IMM &&
        (pln_type_get_kind(g->engine, n->type) != PLN_TYPE_PRIM ||
         pln_type_dtype(g->engine, n->type) == PLN_DTYPE_NONE))
      return true;
  }
  return false;
}

/* What may write through pointers that are not those of Buffers: views,
 * pointers with another name, calls. */
static bool writes_elsewhere(const pln_graph *g, const pln_node *n) {
  switch (n->kind) {
  case PLN_MATCH_BUFFER: return true;
  case PLN_LET_STMT: {
    const pln_node *var = &g->nodes[g->scopes[n->data].begin];
    return pln_type_get_kind(g->engine, var->type) != PLN_TYPE_PRIM ||
           pln_type_dtype(g->engine, var->type) == PLN_DTYPE_NONE;
  }
  case PLN_PRIM_CALL:
    return pln_flags_effect(n->flags) > PLN_EFFECT_READS && has_pointer(g, n);
  default: return false;
  }
}

static pln_status find_written(pln_analyzer_scopes *scopes,
                               const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    scopes->writes_anything = scopes->writes_anything || writes_elsewhere(g, n);
    if (n->kind != PLN_BUFFER_STORE)
      continue;
    PLN_TRY(pln_mem_grow(g->engine, (void **)&scopes->written,
                         &scopes->cap_written, (size_t)scopes->n_written + 1,
                         sizeof *scopes->written));
    pln_ref data = pln_operand(g, pln_operand(g, ref, 0), 0);
    scopes->written[scopes->n_written++] = g->nodes[data].data;
  }
  if (scopes->n_written > 1)
    qsort(scopes->written, scopes->n_written, sizeof *scopes->written,
          by_identity);
  return PLN_OK;
}

pln_status pln_analyzer_scopes_begin(pln_analyzer_scopes *scopes,
                                     const pln_graph *function) {
  *scopes = (pln_analyzer_scopes){0};
  PLN_TRY(pln_analyzer_new(function->engine, &scopes->a));
  pln_status status = pln_analyzer_reserve(scopes->a, function->n_nodes);
  if (status == PLN_OK)
    status = bound_extents(scopes->a, function);
  if (status == PLN_OK)
    status = find_written(scopes, function);
  if (status != PLN_OK)
    pln_analyzer_scopes_end(scopes);
  return status;
}

void pln_analyzer_scopes_end(pln_analyzer_scopes *scopes) {
  if (!scopes->a)
    return;
  pln_mem_free(scopes->a->engine, scopes->marks,
               scopes->cap * sizeof *scopes->marks);
  pln_mem_free(scopes->a->engine, scopes->written,
               scopes->cap_written * sizeof *scopes->written);
  pln_analyzer_free(scopes->a);
  scopes->a = NULL;
}
