/* instrument_bound_checkers.c: tir.InstrumentBoundCheckers: a store runs only
 * if it and the loads of its value are inside of their buffers.
 *
 * Run by the executor. How large memory is say attributes buffer_bound, which
 * tir.StorageFlatten and tir.FlattenBuffer write with create_bound_attribute.
 * Of memory that the function allocates the shape of the accessed buffer
 * counts: passes let buffers share it, and make it larger. Loads behind a
 * conditional expression of the value are not looked at, as it may guard them.
 *
 *     T.attr(B.data, "buffer_bound", T.tvm_tuple(8)); B[i] = 0
 *         =>   if 0 <= i < 8: B[i] = 0
 *              else: assert 0 <= i < 8, "OUT OF THE BOUNDS"
 *
 * Semantics: TVM's tir.InstrumentBoundCheckers. */

#include "lower/host/host.h"

typedef struct bound_checker {
  const pln_graph *g;
  pln_analyzer_scopes scopes;
  pln_ref *bounds; /* by Var node: the tvm_tuple of extents, or PLN_NONE */
  bool *allocated; /* by Var node: it is that of an Allocate */
  pln_ref *stack;
  uint32_t n, cap;
  uint32_t *seen; /* by node: the last expression in which it was seen */
  uint32_t expressions;
  bool unsafe; /* a conditional expression was seen in the present store */
} bound_checker;

static pln_status push(bound_checker *x, pln_ref ref) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->stack, &x->cap,
                       (size_t)x->n + 1, sizeof *x->stack));
  x->stack[x->n++] = ref;
  return PLN_OK;
}

static bool has_bounds(const pln_graph *g, pln_ref stmt) {
  const pln_node *n = &g->nodes[stmt];
  return n->kind == PLN_ATTR_STMT &&
         pln_slice_is(pln_attrs_string(g->engine, n->attrs, "attr_key", ""),
                      "buffer_bound") &&
         pln_is_call_of(&g->nodes[pln_operand(g, stmt, 1)], "tvm_tuple");
}

static void find_bounds(bound_checker *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    x->bounds[ref] = PLN_NONE;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (has_bounds(g, ref))
      x->bounds[pln_operand(g, ref, 0)] = pln_operand(g, ref, 1);
    if (g->nodes[ref].kind == PLN_ALLOCATE)
      x->allocated[g->scopes[g->nodes[ref].data].begin] = true;
  }
}

/* --------------------------------------------------------------- conditions
 */

static pln_ref wide(pln_emit *e, pln_ref x) {
  return pln_emit_prim(e, &(pln_prim){.kind = PLN_PRIM_CAST,
                                      .type = pln_emit_type(e, PLN_INT64),
                                      .n = 1,
                                      .operands = &x});
}

/* The last index of a vector, the index itself of others. */
static pln_ref last_index(pln_emit *e, pln_ref index) {
  if (e->status != PLN_OK || e->b->graph->nodes[index].kind != PLN_RAMP)
    return index;
  const pln_graph *g = e->b->graph;
  pln_ref base = pln_operand(g, index, 0), stride = pln_operand(g, index, 1);
  pln_ref steps = pln_emit_int_of(e, pln_emit_type_of(e, stride),
                                  (int64_t)g->nodes[index].data - 1);
  return pln_emit_binary(e, PLN_PRIM_ADD, base,
                         pln_emit_binary(e, PLN_PRIM_MUL, stride, steps));
}

/* 0 <= at < bound */
static pln_status add_condition(bound_checker *x, pln_emit *e,
                                pln_stmt_rewrite *s, pln_ref at, pln_ref bound,
                                pln_ref *all) {
  PLN_TRY(e->status);
  PLN_TRY(pln_scoped_simplify(&x->scopes, s, at, &at));
  PLN_TRY(pln_scoped_simplify(&x->scopes, s, bound, &bound));
  pln_ref from = pln_emit_binary(e, PLN_PRIM_GE, wide(e, at),
                                 pln_emit_int(e, PLN_INT64, 0));
  pln_ref below = pln_emit_binary(e, PLN_PRIM_LT, wide(e, at), wide(e, bound));
  pln_ref inside = pln_emit_binary(e, PLN_PRIM_AND, from, below);
  *all = *all == PLN_NONE ? inside
                          : pln_emit_binary(e, PLN_PRIM_AND, *all, inside);
  return e->status;
}

/* One condition; one for each lane of a vector that is no Ramp. */
static pln_status add_conditions(bound_checker *x, pln_emit *e,
                                 pln_stmt_rewrite *s, pln_ref index,
                                 pln_ref bound, pln_ref *all) {
  const pln_graph *g = e->b->graph;
  uint32_t lanes = pln_prim_lanes(g, index);
  if (lanes == 1 || g->nodes[index].kind == PLN_RAMP)
    return add_condition(x, e, s, last_index(e, index), bound, all);
  for (uint32_t i = 0; i < lanes; i++)
    PLN_TRY(add_condition(x, e, s, pln_emit_lane(e, index, i), bound, all));
  return PLN_OK;
}

/* An access with the old operands `first` on as its indices. */
static pln_status check_access(bound_checker *x, pln_emit *e,
                               pln_stmt_rewrite *s, pln_ref access,
                               uint32_t first, pln_ref *all) {
  const pln_graph *g = x->g;
  pln_ref buffer = pln_operand(g, access, 0);
  pln_ref data = pln_operand(g, buffer, 0), bounds = x->bounds[data];
  uint32_t n = g->nodes[access].count - first;
  if (bounds == PLN_NONE || x->unsafe || g->nodes[bounds].count != n)
    return PLN_OK;
  pln_buffer_fields f = pln_buffer_fields_of(g, buffer);
  for (uint32_t i = 0; i < n; i++) {
    pln_ref index;
    pln_ref bound = x->allocated[data] ? f.shape[i] : pln_operand(g, bounds, i);
    PLN_TRY(pln_stmt_map(s, pln_operand(g, access, first + i), &index));
    PLN_TRY(pln_stmt_map(s, bound, &bound));
    PLN_TRY(add_conditions(x, e, s, index, bound, all));
  }
  return PLN_OK;
}

/* The loads of an expression, each once, before those of its indices. */
static pln_status check_loads(bound_checker *x, pln_emit *e,
                              pln_stmt_rewrite *s, pln_ref root, pln_ref *all) {
  const pln_graph *g = x->g;
  uint32_t bottom = x->n;
  x->expressions++;
  PLN_TRY(push(x, root));
  while (x->n > bottom) {
    pln_ref ref = x->stack[--x->n];
    const pln_node *n = &g->nodes[ref];
    if (n->kind == PLN_BUFFER || x->seen[ref] == x->expressions)
      continue;
    x->seen[ref] = x->expressions;
    x->unsafe |= pln_is_call_of(n, "if_then_else");
    if (n->kind == PLN_BUFFER_LOAD)
      PLN_TRY(check_access(x, e, s, ref, 1, all));
    for (uint32_t i = n->count; i-- > 0;)
      PLN_TRY(push(x, pln_operand(g, ref, i)));
  }
  return PLN_OK;
}

static pln_status leave_store(bound_checker *x, pln_stmt_rewrite *s,
                              pln_ref stmt, pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref all = PLN_NONE;
  x->unsafe = false;
  for (uint32_t i = 1; i < x->g->nodes[stmt].count; i++)
    PLN_TRY(check_loads(x, &e, s, pln_operand(x->g, stmt, i), &all));
  PLN_TRY(check_access(x, &e, s, stmt, 2, &all));
  if (all == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  pln_ref nothing = pln_emit_evaluate(&e, pln_emit_int(&e, PLN_INT32, 1));
  pln_ref fails = pln_emit_assert(
      &e, all, pln_emit_string(&e, pln_text("OUT OF THE BOUNDS")), nothing);
  *node = pln_emit_if(&e, all, *node, fails);
  return e.status;
}

/* ------------------------------------------------------------------- the walk
 */

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  (void)skip;
  return pln_analyzer_scopes_enter(&((bound_checker *)ud)->scopes, s, stmt, k);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  (void)s;
  (void)stmt;
  (void)k;
  (void)body;
  (void)again;
  pln_analyzer_scopes_leave(&((bound_checker *)ud)->scopes);
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  bound_checker *x = ud;
  return x->g->nodes[stmt].kind == PLN_BUFFER_STORE
             ? leave_store(x, s, stmt, node)
             : PLN_OK;
}

static pln_status instrument(pln_pass_run *run, bound_checker *x) {
  pln_stmt_mutator mutator = {.ud = x,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  if (!x->bounds || !x->allocated || !x->seen)
    return pln_nomem(x->g->engine);
  find_bounds(x);
  PLN_TRY(pln_analyzer_scopes_begin(&x->scopes, x->g));
  return pln_lower_function(run, &mutator);
}

pln_status pln_pass_tir_instrument_bound_checkers(pln_pass_run *run) {
  bound_checker x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t n = x.g->n_nodes;
  x.bounds = pln_mem_new(e, n * sizeof *x.bounds);
  x.allocated = pln_mem_zeroed(e, n * sizeof *x.allocated);
  x.seen = pln_mem_zeroed(e, n * sizeof *x.seen);
  pln_status status = instrument(run, &x);
  pln_analyzer_scopes_end(&x.scopes);
  pln_mem_free(e, x.stack, x.cap * sizeof *x.stack);
  pln_mem_free(e, x.bounds, n * sizeof *x.bounds);
  pln_mem_free(e, x.allocated, n * sizeof *x.allocated);
  pln_mem_free(e, x.seen, n * sizeof *x.seen);
  return status;
}
