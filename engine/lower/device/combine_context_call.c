/* combine_context_call.c: tir.CombineContextCall: each context of a thread is
 * made once.
 *
 * Run by the executor. A context is made in front of the parallel loop, or the
 * thread axis, that uses it, else in front of the function's body.
 *
 *     for i in T.parallel(8):
 *         f(T.tvm_thread_context(g(0)), T.tvm_thread_context(g(0)))
 *         =>
 *     ctx_cache_ = g(0)
 *     for i in T.parallel(8): f(ctx_cache_, ctx_cache_)
 *
 * Semantics: TVM's tir.CombineContextCall. */

#include "arith/arith.h"
#include "lower/device/device_regions.h"

typedef struct context_row {
  pln_term term;
  pln_ref var, value; /* of the builder */
  uint32_t earlier;   /* 1 + the row of an outer part, 0: none */
} context_row;

typedef struct combiner {
  const pln_graph *g;
  pln_analyzer *a;
  context_row *rows;
  uint32_t n, cap;
  pln_idmap *row_of; /* term -> 1 + its row; 0: none */
  uint32_t *parts;   /* the first row of each open part */
  uint32_t n_parts, cap_parts;
} combiner;

static bool is_context(const pln_graph *g, pln_ref ref) {
  return pln_is_call_of(&g->nodes[ref], "tvm_thread_context");
}

static bool is_part(const pln_graph *g, pln_ref stmt) {
  return (g->nodes[stmt].kind == PLN_FOR &&
          pln_for_kind_of(g, stmt) == PLN_FOR_PARALLEL) ||
         pln_has_attr_key(g, stmt, "thread_extent") ||
         pln_has_attr_key(g, stmt, "coproc_uop_scope");
}

/* ---------------------------------------------------------------------- parts
 */

static pln_status open_part(combiner *x) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->parts, &x->cap_parts,
                       (size_t)x->n_parts + 1, sizeof *x->parts));
  x->parts[x->n_parts++] = x->n;
  return PLN_OK;
}

/* The first context is the outermost one. */
static pln_status close_part(combiner *x, pln_emit *e, pln_ref *stmt) {
  uint32_t first = x->parts[--x->n_parts];
  while (x->n > first) {
    const context_row *row = &x->rows[--x->n];
    PLN_TRY(pln_idmap_set(x->row_of, row->term, row->earlier));
    *stmt = pln_emit_let(e, row->var, row->value, *stmt);
  }
  return e->status;
}

/* ------------------------------------------------------------------ callbacks
 */

static pln_status add_context(combiner *x, pln_stmt_rewrite *s, pln_term term,
                              pln_ref value) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->rows, &x->cap,
                       (size_t)x->n + 1, sizeof *x->rows));
  context_row row = {
      .term = term, .value = value, .earlier = pln_idmap_get(x->row_of, term)};
  row.var = pln_emit_var(&e, "ctx_cache_", pln_emit_type_of(&e, value));
  PLN_TRY(e.status);
  x->rows[x->n++] = row;
  return pln_idmap_set(x->row_of, term, x->n);
}

static pln_status replace_context(void *ud, pln_stmt_rewrite *s, pln_ref old,
                                  pln_ref *node) {
  combiner *x = ud;
  pln_term term;
  if (!is_context(x->g, old) || x->g->nodes[old].count != 1)
    return PLN_OK;
  pln_ref context = pln_operand(x->g, old, 0);
  PLN_TRY(pln_analyzer_import(x->a, x->g, context, &term));
  if (pln_idmap_get(x->row_of, term) <= x->parts[x->n_parts - 1])
    PLN_TRY(add_context(x, s, term, pln_stmt_image(s, context)));
  *node = x->rows[pln_idmap_get(x->row_of, term) - 1].var;
  return PLN_OK;
}

static pln_status enter(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                        pln_ref *node) {
  combiner *x = ud;
  (void)s;
  (void)node;
  return stmt == x->g->root || is_part(x->g, stmt) ? open_part(x) : PLN_OK;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  combiner *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref rest;
  (void)k;
  (void)again;
  if (stmt != x->g->root)
    return PLN_OK;
  if (x->n == 0)
    return PLN_OK;
  PLN_TRY(pln_stmt_split_binds(s, *body, &rest));
  PLN_TRY(close_part(x, &e, &rest));
  return pln_stmt_join_binds(s, *body, rest, body);
}

static pln_status leave(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                        pln_ref *node) {
  combiner *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (!is_part(x->g, stmt))
    return PLN_OK;
  if (x->parts[x->n_parts - 1] == x->n) {
    x->n_parts--;
    return PLN_OK;
  }
  PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  return close_part(x, &e, node);
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status combine(combiner *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = replace_context,
                              .enter = enter,
                              .leave_body = leave_body,
                              .leave = leave};
  PLN_TRY(pln_analyzer_new(x->g->engine, &x->a));
  PLN_TRY(pln_idmap_new(x->g->engine, &x->row_of));
  return pln_lower_function(run, &mutator);
}

pln_status pln_pass_tir_combine_context_call(pln_pass_run *run) {
  combiner x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  bool found = false;
  for (pln_ref ref = 0; ref < x.g->n_nodes && !found; ref++)
    found = is_context(x.g, ref);
  if (!found)
    return PLN_OK;
  pln_status status = combine(&x, run);
  pln_analyzer_free(x.a);
  pln_idmap_free(x.row_of);
  pln_mem_free(e, x.rows, x.cap * sizeof *x.rows);
  pln_mem_free(e, x.parts, x.cap_parts * sizeof *x.parts);
  return status;
}
