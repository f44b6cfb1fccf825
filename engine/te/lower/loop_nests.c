/* loop_nests.c: the statement of an extern whose loops are axes of its stage,
 * as the steps of the schedule have made these. Definition: TVM 0.14,
 * ApplySchedule in src/te/operation/hybrid_op.cc.
 *
 * Called by provide.c. A nest of which no step changed a loop stays as it is
 * written. The statement is copied node by node in the order of its graph, in
 * which operands and bodies come before what uses them: nothing recurses. */

#include "te/te.h"

/* A copied statement, waiting for the owner of its scope. */
typedef struct copied_stmt {
  pln_scope scope;
  pln_ref ref;
} copied_stmt;

typedef struct stmt_copy {
  pln_te_state *s;
  pln_te_nest *nest;
  const pln_graph *g;
  pln_ref *image; /* by node of the statement */
  uint8_t *dirty; /* by node: it has the variable of a changed nest */
  copied_stmt *stmts;
  uint32_t n_stmts, cap_stmts;
  /* By nest: whether a step changed it, and its loops among the leaves of the
   * stage; its guards. */
  uint8_t *changed;
  uint32_t *first, *end;
  pln_te_list *guards;
} stmt_copy;

/* ------------------------------------------------------------------- nests */

bool pln_te_is_in_nest(const pln_te_state *s, uint32_t inner, uint32_t outer) {
  uint32_t at = s->axes[inner].nest, target = s->axes[outer].nest;
  const pln_te_op *op = s->stages[s->axes[inner].stage].op;
  while (at != 0 && at != target)
    at = op->nests[at - 1].around;
  return at == target;
}

static bool is_as_written(const pln_te_axis *x) {
  uint8_t loop = x->type >= PLN_ITER_UNROLLED ? x->type : 0;
  return x->step == 0 && x->bind == PLN_NONE && x->pragmas.n == 0 &&
         x->loop == loop;
}

/* The loops of a nest lie side by side among the leaves. It is changed when its
 * axes are no loops any more, are annotated, or stand in another order: they
 * are numbered as they are written. */
static void find_changed(stmt_copy *c) {
  pln_te_state *s = c->s;
  const pln_te_stage *g = &s->stages[c->nest->stage];
  for (uint32_t i = 0; i < g->axis.n; i++) {
    const pln_te_axis *x = &s->axes[g->axis.items[i]];
    c->changed[x->nest] |= !is_as_written(x);
  }
  for (uint32_t i = 0; i < g->leaves.n; i++) {
    uint32_t axis = g->leaves.items[i], nest = s->axes[axis].nest;
    if (c->end[nest] == 0)
      c->first[nest] = i;
    else
      c->changed[nest] |= axis < g->leaves.items[i - 1];
    c->end[nest] = i + 1;
  }
}

/* Axes of nests that stay have no loops of ours: their variables are values. */
static void keep_unchanged(stmt_copy *c) {
  const pln_te_list *all = &c->s->stages[c->nest->stage].all;
  for (uint32_t i = 0; i < all->n; i++) {
    pln_te_axis *x = &c->s->axes[all->items[i]];
    if (!c->changed[x->nest])
      x->type = PLN_ITER_OPAQUE;
  }
}

static pln_status list_guards(stmt_copy *c) {
  pln_te_state *s = c->s;
  pln_te_list guards = {0}, axes = {0};
  PLN_TRY(pln_te_bound_check_by_axis(s, c->nest->stage, &guards, &axes));
  for (uint32_t i = 0; i < guards.n; i++)
    PLN_TRY(pln_te_push(s, &c->guards[s->axes[axes.items[i]].nest],
                        pln_te_likely(s, guards.items[i])));
  return s->a->status;
}

/* ------------------------------------------------------------- expressions */

/* Kinds whose type the node gives; that of others follows from operands. */
static bool has_own_type(const pln_node *n) {
  return n->kind == PLN_PRIM_CAST || n->kind == PLN_PRIM_CALL ||
         n->kind == PLN_BUFFER || n->kind == PLN_PRODUCER_LOAD;
}

static pln_status images_of(const stmt_copy *c, const pln_node *n,
                            pln_ref **out) {
  *out = pln_mem_new(c->s->engine, (n->count + 1u) * sizeof **out);
  if (!*out)
    return pln_nomem(c->s->engine);
  for (uint32_t i = 0; i < n->count; i++)
    (*out)[i] = c->image[c->g->operands[n->first + i]];
  return PLN_OK;
}

static void free_images(const stmt_copy *c, const pln_node *n, pln_ref *list) {
  pln_mem_free(c->s->engine, list, (n->count + 1u) * sizeof *list);
}

static pln_prim spec_of(const pln_node *n, const pln_ref *operands) {
  return (pln_prim){.kind = (pln_kind)n->kind,
                    .count = n->results,
                    .data = pln_owns(n) ? 0 : n->data,
                    .attrs = n->attrs,
                    .type = has_own_type(n) ? n->type : 0,
                    .n = n->count,
                    .operands = operands};
}

static pln_status copy_expr(stmt_copy *c, pln_ref r) {
  const pln_node *n = &c->g->nodes[r];
  for (uint32_t i = 0; i < n->count && !c->dirty[r]; i++)
    c->dirty[r] = c->dirty[c->g->operands[n->first + i]];
  if (!c->dirty[r])
    return pln_build_import(c->s->b, c->g, r, &c->image[r]);
  pln_ref *operands;
  PLN_TRY(images_of(c, n, &operands));
  pln_prim spec = spec_of(n, operands);
  pln_status status = pln_build_prim(c->s->b, &spec, &c->image[r]);
  free_images(c, n, operands);
  return status;
}

/* A loop variable of a changed nest is an expression of the loops in its
 * place. */
static pln_status copy_var(stmt_copy *c, pln_ref r) {
  pln_te_state *s = c->s;
  uint32_t axis = pln_idmap_get(s->axis_of, c->g->nodes[r].data) - 1;
  if (axis == PLN_NONE || s->axes[axis].stage != c->nest->stage ||
      !c->changed[s->axes[axis].nest] || !pln_te_has_value(s, axis))
    return pln_build_import(s->b, c->g, r, &c->image[r]);
  c->dirty[r] = 1;
  return pln_analyzer_export(s->a, s->b, s->axes[axis].value, &c->image[r]);
}

/* -------------------------------------------------------------- statements */

/* Takes the statements of a scope, which are the last ones copied. */
static pln_status take_body(stmt_copy *c, pln_scope scope, pln_ref *out) {
  uint32_t first = c->n_stmts;
  while (first > 0 && c->stmts[first - 1].scope == scope)
    first--;
  uint32_t n = c->n_stmts - first;
  c->n_stmts = first;
  *out = n ? c->stmts[first].ref : PLN_NONE;
  if (n <= 1)
    return PLN_OK;
  pln_ref *list = pln_mem_new(c->s->engine, n * sizeof *list);
  if (!list)
    return pln_nomem(c->s->engine);
  for (uint32_t i = 0; i < n; i++)
    list[i] = c->stmts[first + i].ref;
  pln_status status = pln_build_seq(c->s->b, n, list, out);
  pln_mem_free(c->s->engine, list, n * sizeof *list);
  return status;
}

/* The nest of a loop that is an axis; 0: it is none. */
static uint32_t nest_of(const stmt_copy *c, pln_ref r) {
  const pln_te_state *s = c->s;
  const pln_node *n = &c->g->nodes[r];
  if (n->kind != PLN_FOR)
    return 0;
  const pln_node *var = &c->g->nodes[c->g->scopes[n->data].begin];
  uint32_t axis = pln_idmap_get(s->axis_of, var->data) - 1;
  return axis != PLN_NONE && s->axes[axis].stage == c->nest->stage
             ? s->axes[axis].nest
             : 0;
}

/* Of the loops of a changed nest the innermost one gives the guards, the
 * outermost one all loops that stand in their place. */
static pln_status copy_nest(stmt_copy *c, pln_ref r, uint32_t nest,
                            pln_ref *out) {
  pln_te_nest *loops = c->nest;
  const pln_graph *g = c->g;
  pln_scope around = pln_graph_scope_of(g, r);
  bool innermost = !c->dirty[r];
  PLN_TRY(take_body(c, g->nodes[r].data, out));
  if (innermost) {
    loops->guards = c->guards[nest];
    PLN_TRY(pln_te_nest_guard(c->s, loops, out));
  }
  pln_ref owner = g->scopes[around].owner;
  if (owner != PLN_NONE && nest_of(c, owner) == nest) {
    c->dirty[owner] = 1;
    return PLN_OK;
  }
  for (uint32_t i = c->end[nest]; i-- > c->first[nest];)
    PLN_TRY(pln_te_nest_wrap(c->s, loops, i, out));
  return PLN_OK;
}

enum { MOST_BODIES = 2 };

static pln_status copy_owner(stmt_copy *c, const pln_node *n, pln_ref *operands,
                             pln_ref *out) {
  const pln_graph *g = c->g;
  pln_body bodies[MOST_BODIES] = {{0}};
  pln_scope scopes[MOST_BODIES];
  uint32_t k = 0;
  for (pln_scope at = n->data; at != PLN_NONE; at = g->scopes[at].next)
    scopes[k++] = at;
  for (uint32_t i = k; i-- > 0;) {
    const pln_scope_row *row = &g->scopes[scopes[i]];
    PLN_TRY(take_body(c, scopes[i], &bodies[i].stmt));
    bodies[i].n_params = row->n_params;
    bodies[i].params = c->image + row->begin;
  }
  pln_prim spec = spec_of(n, operands);
  return pln_build_floating_stmt(c->s->b, &spec, k, bodies, out);
}

static pln_status copy_plain_stmt(stmt_copy *c, pln_ref r, pln_ref *out) {
  const pln_node *n = &c->g->nodes[r];
  pln_ref *operands;
  PLN_TRY(images_of(c, n, &operands));
  pln_prim spec = spec_of(n, operands);
  pln_status status = pln_owns(n) ? copy_owner(c, n, operands, out)
                                  : pln_build_prim(c->s->b, &spec, out);
  free_images(c, n, operands);
  return status;
}

static pln_status copy_stmt(stmt_copy *c, pln_ref r, pln_scope scope) {
  uint32_t nest = nest_of(c, r);
  pln_ref stmt;
  if (c->g->nodes[r].kind == PLN_SEQ_STMT)
    PLN_TRY(take_body(c, c->g->nodes[r].data, &stmt));
  else if (nest != 0 && c->changed[nest])
    PLN_TRY(copy_nest(c, r, nest, &stmt));
  else
    PLN_TRY(copy_plain_stmt(c, r, &stmt));
  PLN_TRY(pln_mem_grow(c->s->engine, (void **)&c->stmts, &c->cap_stmts,
                       (size_t)c->n_stmts + 1, sizeof *c->stmts));
  c->stmts[c->n_stmts++] = (copied_stmt){scope, stmt};
  return PLN_OK;
}

static pln_status copy_nodes(stmt_copy *c, pln_ref *out) {
  const pln_graph *g = c->g;
  pln_scope_cursor at = {.graph = g};
  for (pln_ref r = 0; r < g->n_nodes; r++) {
    const pln_node *n = &g->nodes[r];
    pln_scope scope = pln_scope_cursor_at(&at, r);
    PLN_TRY(pln_poll_round(c->s->engine, r));
    if (n->kind == PLN_VAR)
      PLN_TRY(copy_var(c, r));
    else if (pln_is_stmt(n))
      PLN_TRY(copy_stmt(c, r, scope));
    else
      PLN_TRY(copy_expr(c, r));
  }
  return take_body(c, 0, out);
}

/* -------------------------------------------------------------------- whole */

static bool is_changed(const stmt_copy *c) {
  for (uint32_t i = 1; i <= c->s->stages[c->nest->stage].axis.n; i++)
    if (c->changed[i])
      return true;
  return false;
}

static pln_status begin_copy(stmt_copy *c) {
  pln_te_state *s = c->s;
  size_t n = s->stages[c->nest->stage].axis.n + 1u;
  c->changed = pln_arena_new(&s->arena, n);
  c->first = pln_arena_new(&s->arena, n * sizeof *c->first);
  c->end = pln_arena_new(&s->arena, n * sizeof *c->end);
  c->guards = pln_arena_new(&s->arena, n * sizeof *c->guards);
  c->image = pln_arena_new(&s->arena, c->g->n_nodes * sizeof *c->image);
  c->dirty = pln_arena_new(&s->arena, c->g->n_nodes);
  if (!c->changed || !c->first || !c->end || !c->guards || !c->image ||
      !c->dirty)
    return pln_nomem(s->engine);
  memset(c->changed, 0, n);
  memset(c->end, 0, n * sizeof *c->end);
  memset(c->guards, 0, n * sizeof *c->guards);
  memset(c->dirty, 0, c->g->n_nodes);
  find_changed(c);
  return PLN_OK;
}

/* Values by the loops alone: ranges that a value has may depend on axes. */
static void resolve_values(stmt_copy *c) {
  pln_te_state *s = c->s;
  for (uint32_t i = 0; i < c->nest->from.n; i++) {
    uint64_t var = (uint64_t)pln_at(s->a, c->nest->from.items[i])->u.value;
    pln_te_set_value(s, pln_idmap_get(s->axis_of, var) - 1,
                     c->nest->to.items[i]);
  }
}

static pln_status copy_changed(stmt_copy *c, pln_ref *out) {
  keep_unchanged(c);
  pln_te_begin_walk(c->s);
  PLN_TRY(pln_te_nest_make(c->s, c->nest));
  PLN_TRY(list_guards(c));
  resolve_values(c);
  return copy_nodes(c, out);
}

pln_status pln_te_provide_loop_nests(pln_te_state *s, pln_te_nest *nest,
                                     pln_ref *out) {
  const pln_graph *g = s->stages[nest->stage].op->stmt;
  stmt_copy c = {.s = s, .nest = nest, .g = g};
  PLN_TRY(begin_copy(&c));
  if (!is_changed(&c))
    return pln_build_import(s->b, g, pln_graph_root(g), out);
  pln_status status = copy_changed(&c, out);
  pln_mem_free(s->engine, c.stmts, c.cap_stmts * sizeof *c.stmts);
  return status;
}
