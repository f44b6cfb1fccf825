/* bind.c: substitutes expressions for variables (TVM's Bind).
 *
 * Called by scripts and passes. When the root is a Function, its parameters can
 * be bound; variables that the values need and nothing else binds become
 * parameters instead. Variables bound inside cannot be replaced. Invariants:
 * the substitution is simultaneous (values are not searched for variables), and
 * each value occurs once in the result, in the root function's scope, however
 * often its variable was used. */

#include "ir/graph/graph.h"

/* How the old graph binds a variable; OPEN: it is free. */
enum { OPEN, PARAM, BY_FUNCTION, BY_LET, BY_PATTERN };

/* Flag in a row of `needs`: does not become a parameter. */
#define STAYS_FREE PLN_NODE_KEEP

typedef struct binding_rewrite {
  pln_engine *engine;
  const pln_graph *old;
  uint32_t n;
  const pln_binding *bindings;
  pln_idmap *index; /* identity -> binding + 1 */
  pln_ref *image;   /* per binding: its value in the new graph, or PLN_NONE */
  uint8_t *bound;   /* per node of `old` */
  uint8_t *used;    /* per binding */
  /* Free variables of the used values, in order of use. */
  pln_node *needs;
  uint32_t n_needs, cap_needs;
  pln_idmap *need_at; /* identity -> needs + 1 */
  pln_idmap *shared;  /* identity -> its only node in the new graph + 1 */
  pln_scope scope;    /* of the root Function, or 0 */
  bool params;        /* some parameters are bound */
} binding_rewrite;

static uint32_t binding_of(const binding_rewrite *b, const pln_node *var) {
  return pln_idmap_get(b->index, var->data);
}

/* ------------------------------------------------------- what may be bound */

static pln_status check_bound(const binding_rewrite *b, pln_ref var,
                              uint8_t how) {
  static const char *const by[] = {NULL, NULL, "a function inside", "a let",
                                   "a pattern"};
  const pln_node *n = &b->old->nodes[var];
  b->bound[var] = how;
  if (how <= PARAM || !binding_of(b, n))
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                        "cannot bind '%s': it is bound by %s",
                        pln_symbol_text(b->engine, n->attrs).data, by[how]);
}

static pln_status check_params(const binding_rewrite *b, pln_scope s) {
  const pln_scope_row *row = &b->old->scopes[s];
  const pln_node *owner = &b->old->nodes[row->owner];
  uint8_t how = s == b->scope              ? PARAM
                : owner->kind == PLN_MATCH ? BY_PATTERN
                                           : BY_FUNCTION;
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(check_bound(b, row->begin + i, how));
  return PLN_OK;
}

static pln_status check_all(const binding_rewrite *b) {
  const pln_graph *g = b->old;
  for (pln_scope s = 1; s < g->n_scopes; s++)
    PLN_TRY(check_params(b, s));
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_LET)
      PLN_TRY(check_bound(b, pln_operand(g, i, 0), BY_LET));
  return PLN_OK;
}

/* -------------------------------------------------------- what values need */

static pln_status add_need(void *ud, const pln_graph *g, pln_ref var) {
  binding_rewrite *b = ud;
  const pln_node *n = &g->nodes[var];
  if (pln_idmap_get(b->need_at, n->data))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(b->engine, (void **)&b->needs, &b->cap_needs,
                       (size_t)b->n_needs + 1, sizeof *b->needs));
  PLN_TRY(pln_idmap_set(b->need_at, n->data, b->n_needs + 1));
  b->needs[b->n_needs] = *n;
  b->needs[b->n_needs++].flags = 0;
  return PLN_OK;
}

static pln_status mark_used_binding(binding_rewrite *b, pln_ref ref) {
  const pln_node *n = &b->old->nodes[ref];
  uint32_t k = n->kind == PLN_VAR ? binding_of(b, n) : 0;
  if (!k || b->used[k - 1])
    return PLN_OK;
  const pln_binding *value = &b->bindings[k - 1];
  b->used[k - 1] = 1;
  return pln_graph_vars(value->graph, value->node, PLN_VARS_FREE, add_need, b);
}

static pln_status find_uses(binding_rewrite *b) {
  const pln_graph *g = b->old;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    for (uint32_t k = 0; k < n->count; k++)
      PLN_TRY(mark_used_binding(b, g->operands[n->first + k]));
    if (pln_owns(n))
      for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
        PLN_TRY(mark_used_binding(b, g->scopes[s].result));
  }
  return mark_used_binding(b, g->root);
}

/* A variable that is free in the old graph stays free. */
static void note_free(binding_rewrite *b) {
  const pln_graph *g = b->old;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    uint32_t at = n->kind == PLN_VAR && b->bound[i] == OPEN
                      ? pln_idmap_get(b->need_at, n->data)
                      : 0;
    if (at)
      b->needs[at - 1].flags |= STAYS_FREE;
  }
}

/* ---------------------------------------------------------------- new nodes */

/* The only node of a variable that a value needs. It lies in the outermost
 * scope, so that it is visible everywhere. */
static pln_status import_bound_var(binding_rewrite *b, pln_builder *to,
                                   const pln_node *var, pln_ref *out) {
  uint32_t known = pln_idmap_get(b->shared, var->data);
  if (known) {
    *out = known - 1;
    return PLN_OK;
  }
  pln_node n = *var;
  n.flags = 0;
  PLN_TRY(pln_build_in(to, b->scope));
  pln_status status = pln_builder_append(to, &n, 0, NULL, out);
  PLN_TRY(pln_build_in(to, PLN_NONE));
  if (status != PLN_OK)
    return status;
  return pln_idmap_set(b->shared, var->data, *out + 1);
}

typedef struct value_import {
  binding_rewrite *b;
  pln_builder *to;
} value_import;

/* Maps a free variable of a value to its node in the new graph. */
static pln_status seed(void *ud, const pln_graph *g, pln_ref var) {
  const value_import *s = ud;
  pln_ref image;
  PLN_TRY(import_bound_var(s->b, s->to, &g->nodes[var], &image));
  return pln_import_seed(s->to, g, var, image);
}

static pln_status value_of(binding_rewrite *b, pln_builder *to, uint32_t k,
                           pln_ref *out) {
  const pln_binding *value = &b->bindings[k];
  value_import s = {b, to};
  if (b->image[k] == PLN_NONE) {
    PLN_TRY(pln_graph_vars(value->graph, value->node, PLN_VARS_FREE, seed, &s));
    PLN_TRY(pln_build_in(to, b->scope));
    pln_status status =
        pln_build_import(to, value->graph, value->node, &b->image[k]);
    PLN_TRY(pln_build_in(to, PLN_NONE));
    if (status != PLN_OK)
      return status;
  }
  *out = b->image[k];
  return PLN_OK;
}

/* -------------------------------------------------------------- parameters */

/* Puts a variable into slot `at` of the parameter list, growing the list if
 * needed. Only parameters have been appended to the scope so far. */
static pln_status put_param(binding_rewrite *b, pln_builder *to, uint32_t at,
                            const pln_node *var) {
  pln_ref begin = to->graph->scopes[b->scope].begin, slot = begin + at;
  pln_node n = *var;
  n.flags = PLN_NODE_PARAM;
  n.first = n.count = 0;
  if (slot < to->graph->n_nodes)
    to->graph->nodes[slot] = n;
  else
    PLN_TRY(pln_builder_append(to, &n, 0, NULL, &slot));
  return pln_idmap_set(b->shared, var->data, slot + 1);
}

/* First the parameters that are not bound, then the variables that the values
 * of the others need. */
static pln_status put_params(binding_rewrite *b, pln_builder *to, uint32_t *n) {
  const pln_scope_row *row = &b->old->scopes[b->scope];
  for (uint32_t i = 0; i < row->n_params; i++) {
    const pln_node *var = &b->old->nodes[row->begin + i];
    if (!binding_of(b, var))
      PLN_TRY(put_param(b, to, (*n)++, var));
  }
  for (uint32_t i = 0; i < b->n_needs; i++)
    if (!(b->needs[i].flags & STAYS_FREE) &&
        !pln_idmap_get(b->shared, b->needs[i].data))
      PLN_TRY(put_param(b, to, (*n)++, &b->needs[i]));
  return PLN_OK;
}

static pln_status map_params(binding_rewrite *b, pln_rewrite *rw,
                             pln_builder *to) {
  const pln_scope_row *row = &b->old->scopes[b->scope];
  for (uint32_t i = 0; i < row->n_params; i++) {
    pln_ref old = row->begin + i, image;
    uint32_t k = binding_of(b, &b->old->nodes[old]);
    image = pln_idmap_get(b->shared, b->old->nodes[old].data) - 1;
    if (k && !b->used[k - 1])
      continue;
    if (k)
      PLN_TRY(value_of(b, to, k - 1, &image));
    pln_rewrite_bind(rw, old, image);
  }
  return PLN_OK;
}

/* Called after all parameters were swept. */
static pln_status bind_free_params(binding_rewrite *b, pln_rewrite *rw,
                                   pln_ref *node) {
  pln_builder *to = pln_rewrite_builder(rw);
  if (!to)
    return PLN_ERR_NOMEM;
  uint32_t n = 0;
  pln_ref end = to->graph->n_nodes;
  PLN_TRY(put_params(b, to, &n));
  pln_scope_row *row = &to->graph->scopes[b->scope];
  for (pln_ref i = row->begin + n; i < end; i++)
    to->graph->nodes[i].flags &= (uint8_t)~PLN_NODE_PARAM;
  row->n_params = n;
  PLN_TRY(map_params(b, rw, to));
  *node = pln_rewrite_image(rw, *node);
  return PLN_OK;
}

/* ------------------------------------------------------------------- sweep */

static pln_status visit_var(binding_rewrite *b, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  const pln_node *n = &b->old->nodes[old];
  uint32_t k = binding_of(b, n);
  bool needed = pln_idmap_get(b->need_at, n->data);
  if (b->bound[old] == PARAM && needed)
    return pln_idmap_set(b->shared, n->data, *node + 1);
  if (b->bound[old] != OPEN || (!k && !needed))
    return PLN_OK;
  pln_builder *to = pln_rewrite_builder(rw);
  if (!to)
    return PLN_ERR_NOMEM;
  return k ? value_of(b, to, k - 1, node) : import_bound_var(b, to, n, node);
}

static pln_status bind_node(void *ud, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  binding_rewrite *b = ud;
  const pln_node *n = &b->old->nodes[old];
  const pln_scope_row *row = &b->old->scopes[b->scope];
  if (b->params && old + 1 == row->begin + row->n_params)
    return bind_free_params(b, rw, node);
  if (n->kind == PLN_VAR)
    return visit_var(b, rw, old, node);
  if (!b->params || old != b->old->root)
    return PLN_OK;
  pln_builder *to = pln_rewrite_builder(rw);
  to->graph->nodes[*node].type = 0;
  return pln_builder_infer(to, *node);
}

/* ------------------------------------------------------------------ driver */

static pln_status make_tables(binding_rewrite *b) {
  pln_engine *e = b->engine;
  b->image = pln_mem_new(e, ((size_t)b->n + 1) * sizeof *b->image);
  b->used = pln_mem_zeroed(e, (size_t)b->n + 1);
  b->bound = pln_mem_zeroed(e, b->old->n_nodes);
  if (!b->image || !b->used || !b->bound)
    return pln_nomem(e);
  memset(b->image, 0xff, b->n * sizeof *b->image);
  PLN_TRY(pln_idmap_new(e, &b->index));
  PLN_TRY(pln_idmap_new(e, &b->need_at));
  return pln_idmap_new(e, &b->shared);
}

static void free_tables(binding_rewrite *b) {
  pln_engine *e = b->engine;
  pln_mem_free(e, b->image, ((size_t)b->n + 1) * sizeof *b->image);
  pln_mem_free(e, b->used, (size_t)b->n + 1);
  pln_mem_free(e, b->bound, b->old->n_nodes);
  pln_mem_free(e, b->needs, b->cap_needs * sizeof *b->needs);
  pln_idmap_free(b->index);
  pln_idmap_free(b->need_at);
  pln_idmap_free(b->shared);
}

/* When a variable has two values, the later one counts. */
static pln_status prepare_binder(binding_rewrite *b) {
  const pln_node *root = &b->old->nodes[b->old->root];
  PLN_TRY(make_tables(b));
  for (uint32_t i = 0; i < b->n; i++)
    PLN_TRY(pln_idmap_set(b->index, b->bindings[i].var, i + 1));
  b->scope = root->kind == PLN_FUNCTION ? root->data : 0;
  PLN_TRY(check_all(b));
  const pln_scope_row *row = &b->old->scopes[b->scope];
  for (uint32_t i = 0; i < row->n_params; i++)
    b->params = b->params || binding_of(b, &b->old->nodes[row->begin + i]) != 0;
  PLN_TRY(find_uses(b));
  note_free(b);
  return PLN_OK;
}

pln_status pln_graph_bind(const pln_graph *graph, uint32_t n,
                          const pln_binding *bindings, pln_graph **out) {
  binding_rewrite b = {
      .engine = graph->engine, .old = graph, .n = n, .bindings = bindings};
  pln_mutator mutator = {.ud = &b, .visit = bind_node};
  pln_status status = prepare_binder(&b);
  if (status == PLN_OK)
    status = pln_graph_rewrite(graph, &mutator, out);
  free_tables(&b);
  return status;
}
