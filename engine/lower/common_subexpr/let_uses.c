/* let_uses.c: see let_uses.h. Called by common_subexpr_elim.c. One walk over
 * the expressions of each statement, then a counting sort by variable. */

#include "lower/common_subexpr/let_uses.h"

uint32_t pln_branch_sides(const pln_graph *g, pln_ref branch) {
  return g->scopes[g->nodes[branch].data].next == PLN_NONE ? 1 : 2;
}

static bool begins_part(pln_kind kind) {
  return kind == PLN_FOR || kind == PLN_WHILE || kind == PLN_IF_THEN_ELSE ||
         kind == PLN_PRIM_FUNC;
}

/* A row follows the row of its parent. */
static void note_parts(pln_let_uses *u) {
  const pln_graph *g = u->g;
  u->part[0] = 0;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    pln_ref owner = g->scopes[s].owner;
    pln_kind kind = (pln_kind)g->nodes[owner].kind;
    u->part[s] = begins_part(kind) ? s : u->part[g->scopes[s].parent];
    if (kind == PLN_LET_STMT)
      u->of_let[g->scopes[s].begin] = true;
  }
}

static pln_status push(pln_let_uses *u, pln_ref ref, pln_ref stmt) {
  if (u->seen[ref] == stmt + 1 || u->g->nodes[ref].kind == PLN_BUFFER)
    return PLN_OK;
  u->seen[ref] = stmt + 1;
  PLN_TRY(pln_mem_grow(u->g->engine, (void **)&u->stack, &u->cap_stack,
                       (size_t)u->n_stack + 1, sizeof *u->stack));
  u->stack[u->n_stack++] = ref;
  return PLN_OK;
}

static pln_status push_operands(pln_let_uses *u, pln_ref of, pln_ref stmt) {
  for (uint32_t i = 0; i < u->g->nodes[of].count; i++)
    PLN_TRY(push(u, pln_operand(u->g, of, i), stmt));
  return PLN_OK;
}

static pln_status add_use(pln_let_uses *u, pln_ref var, pln_ref stmt) {
  pln_engine *e = u->g->engine;
  PLN_TRY(pln_mem_grow(e, (void **)&u->stmts, &u->cap, (size_t)u->n + 1,
                       sizeof *u->stmts));
  PLN_TRY(pln_mem_grow(e, (void **)&u->vars, &u->cap_vars, (size_t)u->n + 1,
                       sizeof *u->vars));
  u->stmts[u->n] = stmt;
  u->vars[u->n++] = var;
  return PLN_OK;
}

static pln_status uses_of_stmt(pln_let_uses *u, pln_ref stmt) {
  PLN_TRY(push_operands(u, stmt, stmt));
  while (u->n_stack > 0) {
    pln_ref ref = u->stack[--u->n_stack];
    if (u->of_let[ref])
      PLN_TRY(add_use(u, ref, stmt));
    else
      PLN_TRY(push_operands(u, ref, stmt));
  }
  return PLN_OK;
}

/* Collected by statement, sorted by variable. */
static pln_status sort_uses(pln_let_uses *u) {
  uint32_t sum = 0, nodes = u->g->n_nodes;
  pln_ref *sorted =
      u->cap ? pln_mem_new(u->g->engine, u->cap * sizeof *sorted) : NULL;
  if (u->cap && !sorted)
    return pln_nomem(u->g->engine);
  for (uint32_t i = 0; i < u->n; i++)
    u->first[u->vars[i] + 1]++;
  for (pln_ref ref = 0; ref <= nodes; ref++)
    u->first[ref] = sum += u->first[ref];
  for (uint32_t i = u->n; i-- > 0;) /* from the last: ends become begins */
    sorted[--u->first[u->vars[i] + 1]] = u->stmts[i];
  memmove(u->first, u->first + 1, nodes * sizeof *u->first);
  u->first[nodes] = u->n;
  pln_mem_free(u->g->engine, u->stmts, u->cap * sizeof *u->stmts);
  u->stmts = sorted;
  return PLN_OK;
}

pln_status pln_let_uses_find(pln_let_uses *u, const pln_graph *g) {
  size_t n = g->n_nodes;
  *u = (pln_let_uses){.g = g};
  u->scope = pln_mem_new(g->engine, n * sizeof *u->scope);
  u->part = pln_mem_new(g->engine, g->n_scopes * sizeof *u->part);
  u->first = pln_mem_zeroed(g->engine, (n + 1) * sizeof *u->first);
  u->seen = pln_mem_zeroed(g->engine, n * sizeof *u->seen);
  u->of_let = pln_mem_zeroed(g->engine, n * sizeof *u->of_let);
  if (!u->scope || !u->part || !u->first || !u->seen || !u->of_let)
    return pln_nomem(g->engine);
  pln_graph_node_scopes(g, u->scope);
  note_parts(u);
  for (pln_ref ref = 0; ref < n; ref++)
    if (pln_is_stmt(&g->nodes[ref]) && g->nodes[ref].kind != PLN_IF_THEN_ELSE)
      PLN_TRY(uses_of_stmt(u, ref));
  return sort_uses(u);
}

bool pln_let_is_used(const pln_let_uses *u, pln_ref var, pln_scope scope) {
  uint32_t low = u->first[var], high = u->first[var + 1];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (u->stmts[middle] < u->g->scopes[scope].begin)
      low = middle + 1;
    else
      high = middle;
  }
  return low < u->first[var + 1] && u->stmts[low] < u->g->scopes[scope].end;
}

void pln_let_uses_free(pln_let_uses *u) {
  const pln_graph *g = u->g;
  if (!g)
    return;
  size_t n = g->n_nodes;
  pln_mem_free(g->engine, u->scope, n * sizeof *u->scope);
  pln_mem_free(g->engine, u->part, g->n_scopes * sizeof *u->part);
  pln_mem_free(g->engine, u->first, (n + 1) * sizeof *u->first);
  pln_mem_free(g->engine, u->seen, n * sizeof *u->seen);
  pln_mem_free(g->engine, u->of_let, n * sizeof *u->of_let);
  pln_mem_free(g->engine, u->stmts, u->cap * sizeof *u->stmts);
  pln_mem_free(g->engine, u->vars, u->cap_vars * sizeof *u->vars);
  pln_mem_free(g->engine, u->stack, u->cap_stack * sizeof *u->stack);
}
