/* let_uses.c: see let_uses.h. Called by common_subexpr_elim.c. One walk over
 * the terms of each expression, then a sort by variable. */

#include <stdlib.h>

#include "lower/common_subexpr/let_uses.h"

bool pln_is_counted_operand(const pln_graph *g, pln_ref operand) {
  return pln_is_prim(&g->nodes[operand]) &&
         g->nodes[operand].kind != PLN_BUFFER;
}

uint32_t pln_branch_sides(const pln_graph *g, pln_ref branch) {
  return g->scopes[g->nodes[branch].data].next == PLN_NONE ? 1 : 2;
}

/* --------------------------------------------------------------------- parts
 */

static bool begins_part(pln_kind kind) {
  return kind == PLN_FOR || kind == PLN_WHILE || kind == PLN_IF_THEN_ELSE ||
         kind == PLN_PRIM_FUNC;
}

bool pln_let_is_part(const pln_graph *g, pln_ref stmt) {
  pln_kind kind = (pln_kind)g->nodes[stmt].kind;
  return begins_part(kind) || kind == PLN_LET_STMT;
}

static pln_status note_vars(pln_let_uses *u, pln_scope s) {
  for (uint32_t i = 0; i < u->g->scopes[s].n_params; i++) {
    pln_ref ref = u->g->scopes[s].begin + i;
    PLN_TRY(pln_analyzer_import_more(u->a, u->g, ref, &u->term[ref]));
    PLN_TRY(pln_kinds_grow(u->a, u->kinds));
    u->kinds->innermost[u->term[ref]] = ref;
  }
  return PLN_OK;
}

/* A row follows the row of its parent. */
static pln_status note_parts(pln_let_uses *u) {
  const pln_graph *g = u->g;
  u->part[0] = 0;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    pln_ref owner = g->scopes[s].owner;
    pln_kind kind = (pln_kind)g->nodes[owner].kind;
    u->part[s] = begins_part(kind) ? s : u->part[g->scopes[s].parent];
    if (kind == PLN_LET_STMT)
      u->of_let[g->scopes[s].begin] = true;
    if (pln_let_is_part(g, owner))
      PLN_TRY(note_vars(u, s));
  }
  return PLN_OK;
}

/* --------------------------------------------------------------- expressions
 */

/* How often an expression has a term: 0, 1 or 2, which is: at least twice. */
typedef struct pln_term_counts {
  uint32_t size;     /* of the largest computation that it is an operand of */
  pln_term outer;    /* the largest computation that it is in, or 0 */
  uint8_t all;       /* anywhere */
  uint8_t computed;  /* not in what is closed */
  uint8_t outermost; /* computed, in what has a variable further in */
} pln_term_counts;

static pln_status grow_counts(pln_let_uses *u) {
  pln_engine *e = u->a->engine;
  uint32_t times = u->cap_times, counts = u->cap_counts;
  PLN_TRY(pln_mem_grow(e, (void **)&u->times, &u->cap_times, u->a->n, 1));
  memset(u->times + times, 0, u->cap_times - times);
  PLN_TRY(pln_mem_grow(e, (void **)&u->counts, &u->cap_counts, u->a->n,
                       sizeof *u->counts));
  memset(u->counts + counts, 0, (u->cap_counts - counts) * sizeof *u->counts);
  return pln_kinds_grow(u->a, u->kinds);
}

static void add(uint8_t *times, uint8_t more) {
  *times = *times + more > 1 ? 2 : (uint8_t)(*times + more);
}

/* The operands of the term are known. Variables further in come later. */
static void find_innermost(const pln_let_uses *u, pln_term t) {
  pln_ref *innermost = u->kinds->innermost;
  for (uint32_t i = pln_at(u->a, t)->n; i-- > 0;) {
    pln_ref var = innermost[pln_term_operand(u->a, t, i)];
    if (var > innermost[t])
      innermost[t] = var;
  }
}

static void count_operand(pln_let_uses *u, pln_term t, pln_term operand,
                          const pln_term_counts *c) {
  pln_term_counts *o = &u->counts[operand];
  add(&o->all, c->all);
  if (pln_term_is_closed(u->a, t))
    return;
  add(&o->computed, c->computed);
  if (u->kinds->innermost[operand] != u->kinds->innermost[t])
    add(&o->outermost, c->computed);
  if (o->size < c->size)
    o->size = c->size;
  if (!o->outer)
    o->outer = c->outer;
}

static pln_status add_use(pln_let_uses *u, pln_ref stmt, pln_term t,
                          const pln_term_counts *c) {
  pln_ref var = u->kinds->innermost[t];
  if (!c->outermost || !u->of_let[var] || pln_at(u->a, t)->n == 0)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(u->a->engine, (void **)&u->rows, &u->cap,
                       (size_t)u->n + 1, sizeof *u->rows));
  u->rows[u->n] = (pln_let_use){.var = var,
                                .stmt = stmt,
                                .term = t,
                                .count = c->outermost,
                                .size = c->size,
                                .outer = c->size == UINT32_MAX ? 0 : c->outer,
                                .place = UINT32_MAX - u->n};
  u->n++;
  return PLN_OK;
}

/* The place of a statement. */
static pln_places place_of(const pln_graph *g, pln_ref stmt) {
  const pln_node *n = &g->nodes[stmt];
  pln_ref at = pln_owns(n) ? g->scopes[n->data].begin : stmt;
  return (pln_places){at, at};
}

/* What the term is in was counted before. */
static pln_status count_term(pln_let_uses *u, pln_ref stmt, pln_term t) {
  pln_term_counts c = u->counts[t];
  bool computes;
  u->counts[t] = (pln_term_counts){0};
  PLN_TRY(pln_is_computation(u->a, u->kinds, t, &computes));
  PLN_TRY(add_use(u, stmt, t, &c));
  add(&u->times[t], c.all);
  u->kinds->places[t] =
      pln_places_join(u->kinds->places[t], place_of(u->g, stmt));
  if (computes && u->times[t] > 1)
    u->may_bind[u->kinds->innermost[t]] = true;
  if (computes)
    c.size = pln_at(u->a, t)->size;
  if (computes && !c.outer)
    c.outer = t;
  for (uint32_t i = pln_at(u->a, t)->n; i-- > 0;)
    count_operand(u, t, pln_term_operand(u->a, t, i), &c);
  return PLN_OK;
}

static pln_status count_expr(pln_let_uses *u, pln_ref stmt, pln_term term) {
  pln_term_list order;
  pln_status status = PLN_OK;
  PLN_TRY(grow_counts(u));
  if (!pln_term_order(u->a, term, NULL, &order))
    return u->a->status;
  for (uint32_t i = 0; i < order.n; i++)
    find_innermost(u, order.items[i]);
  u->counts[term] = (pln_term_counts){UINT32_MAX, 0, 1, 1, 1};
  for (uint32_t i = order.n; status == PLN_OK && i-- > 0;)
    status = count_term(u, stmt, order.items[i]);
  pln_term_list_free(u->a, &order);
  return status;
}

/* A condition is no expression of the part that its branch is in. */
static pln_status note_condition(pln_let_uses *u, pln_term term) {
  uint32_t old = u->cap_tested;
  pln_term_list order;
  PLN_TRY(pln_mem_grow(u->a->engine, (void **)&u->tested, &u->cap_tested,
                       u->a->n, sizeof *u->tested));
  memset(u->tested + old, 0, u->cap_tested - old);
  if (!pln_term_order(u->a, term, NULL, &order))
    return u->a->status;
  for (uint32_t i = 0; i < order.n; i++)
    u->tested[order.items[i]] = true;
  pln_term_list_free(u->a, &order);
  return PLN_OK;
}

bool pln_let_is_tested(const pln_let_uses *u, pln_term term) {
  return term < u->cap_tested && u->tested[term];
}

/* Operands from the last to the first, as the terms of each. */
static pln_status count_stmt(pln_let_uses *u, pln_ref stmt) {
  bool branch = u->g->nodes[stmt].kind == PLN_IF_THEN_ELSE;
  for (uint32_t i = u->g->nodes[stmt].count; i-- > 0;) {
    pln_ref operand = pln_operand(u->g, stmt, i);
    if (!pln_is_counted_operand(u->g, operand))
      continue;
    PLN_TRY(pln_analyzer_import_more(u->a, u->g, operand, &u->term[operand]));
    if (u->has_lets_or_branches)
      PLN_TRY(branch ? note_condition(u, u->term[operand])
                     : count_expr(u, stmt, u->term[operand]));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- sorting
 */

static int by_var(const void *a, const void *b) {
  const pln_let_use *x = a, *y = b;
  if (x->var != y->var)
    return x->var < y->var ? -1 : 1;
  if (x->stmt != y->stmt)
    return x->stmt < y->stmt ? -1 : 1;
  if (x->size != y->size)
    return x->size > y->size ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

static void sort_uses(pln_let_uses *u) {
  uint32_t nodes = u->g->n_nodes, at = 0;
  if (u->n)
    qsort(u->rows, u->n, sizeof *u->rows, by_var);
  for (pln_ref ref = 0; ref <= nodes; ref++) {
    while (at < u->n && u->rows[at].var < ref)
      at++;
    u->first[ref] = at;
  }
}

pln_status pln_let_uses_find(pln_let_uses *u, const pln_graph *g,
                             pln_analyzer *a, pln_computation_kinds *kinds) {
  size_t n = g->n_nodes;
  *u = (pln_let_uses){.g = g, .a = a, .kinds = kinds};
  u->has_lets_or_branches =
      pln_has_kind(g, PLN_LET_STMT) || pln_has_kind(g, PLN_IF_THEN_ELSE);
  u->scope = pln_mem_new(g->engine, n * sizeof *u->scope);
  u->part = pln_mem_new(g->engine, g->n_scopes * sizeof *u->part);
  u->first = pln_mem_zeroed(g->engine, (n + 1) * sizeof *u->first);
  u->may_bind = pln_mem_zeroed(g->engine, n * sizeof *u->may_bind);
  u->of_let = pln_mem_zeroed(g->engine, n * sizeof *u->of_let);
  u->term = pln_mem_zeroed(g->engine, n * sizeof *u->term);
  if (!u->scope || !u->part || !u->first || !u->may_bind || !u->of_let ||
      !u->term)
    return pln_nomem(g->engine);
  pln_graph_node_scopes(g, u->scope);
  PLN_TRY(note_parts(u));
  for (pln_ref ref = 0; ref < n; ref++)
    if (pln_is_stmt(&g->nodes[ref]))
      PLN_TRY(count_stmt(u, ref));
  sort_uses(u);
  return PLN_OK;
}

bool pln_let_is_used(const pln_let_uses *u, pln_ref var, pln_scope scope) {
  uint32_t low = u->first[var], high = u->first[var + 1];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (u->rows[middle].stmt < u->g->scopes[scope].begin)
      low = middle + 1;
    else
      high = middle;
  }
  return low < u->first[var + 1] && u->rows[low].stmt < u->g->scopes[scope].end;
}

void pln_let_uses_free(pln_let_uses *u) {
  const pln_graph *g = u->g;
  if (!g)
    return;
  pln_engine *e = g->engine;
  size_t n = g->n_nodes;
  pln_mem_free(e, u->scope, n * sizeof *u->scope);
  pln_mem_free(e, u->part, g->n_scopes * sizeof *u->part);
  pln_mem_free(e, u->first, (n + 1) * sizeof *u->first);
  pln_mem_free(e, u->may_bind, n * sizeof *u->may_bind);
  pln_mem_free(e, u->of_let, n * sizeof *u->of_let);
  pln_mem_free(e, u->term, n * sizeof *u->term);
  pln_mem_free(e, u->rows, u->cap * sizeof *u->rows);
  pln_mem_free(e, u->times, u->cap_times);
  pln_mem_free(e, u->tested, u->cap_tested * sizeof *u->tested);
  pln_mem_free(e, u->counts, u->cap_counts * sizeof *u->counts);
}
