/* vectorize_outer_loop.c: tir.VectorizeOuterLoop: marks loops around reductions
 * as vectorized.
 *
 *     for j in range(512):
 *         C[i * 512 + j] = 0
 *         for k in range(512): C[i * 512 + j] += A[i * 512 + k] * B[k * 512 +
 * j]
 *     =>  for j_0 in range(8): for j_1 in T.vectorized(64): the same of
 *         j_0 * 64 + j_1
 *
 * A sum of floats has one order, so that the loop over k cannot become vectors;
 * its neighbours can: outer-loop vectorization (Nuzman and Zaks, PACT 2008).
 * Each element is computed as before. tir.VectorizeLoop makes the vectors.
 * pl.build runs both before it writes C.
 *
 * Each round of such a loop stores elements of its own, next to those of the
 * round before, always the same ones, and reads of what it stores only those;
 * what else it reads is the same in all rounds, or the neighbour.
 *
 * Conditions of if_then_else may compare the variable, as those of padding do:
 * rounds in which they hold, whatever the loops inside are at, become vectors
 * without them, and those before and behind stay rounds. */

#include "lower/emit.h"
#include "lower/loop/vectorize_outer_plan.h"

typedef struct vectorizer {
  pln_outer_plan plan;
  /* Of the loop whose body is visited: */
  pln_ref outer, lane; /* variables of the loops that are built */
  pln_ref in_vectors;  /* the loop, or PLN_NONE: these are rounds */
} vectorizer;

static pln_status fold(pln_stmt_rewrite *s, pln_kind kind, pln_ref x, pln_ref y,
                       pln_ref *out) {
  return pln_build_folded(pln_stmt_builder(s), kind, x, y, out);
}

/* How many rounds of vectors there are, and the round where they end. */
static pln_status count_vectors(const vectorizer *x, pln_stmt_rewrite *s,
                                pln_ref loop, pln_ref *lanes, pln_ref *vectors,
                                pln_ref *end) {
  const pln_outer_loop *l = &x->plan.loops[loop];
  pln_ref extent = pln_stmt_operand(s, 1), begin;
  PLN_TRY(pln_stmt_int_like(s, extent, l->lanes, lanes));
  PLN_TRY(pln_stmt_int_like(s, extent, l->begin, &begin));
  if (l->vectors < 0)
    PLN_TRY(fold(s, PLN_PRIM_FLOORDIV, extent, *lanes, vectors));
  else
    PLN_TRY(pln_stmt_int_like(s, extent, l->vectors, vectors));
  PLN_TRY(fold(s, PLN_PRIM_MUL, *vectors, *lanes, end));
  return fold(s, PLN_PRIM_ADD, *end, begin, end);
}

/* The body is visited for rounds before the vectors, for these, and for rounds
 * behind them. */
enum { BEFORE, VECTORS, BEHIND };

static int part_of(const vectorizer *x, const pln_stmt_rewrite *s,
                   pln_ref loop) {
  return (int)pln_stmt_visits(s) + (x->plan.loops[loop].begin == 0);
}

/* A variable of a new loop, with the name of the old one. */
static pln_status new_var(pln_stmt_rewrite *s, pln_ref old, pln_ref *out) {
  PLN_TRY(pln_stmt_bind_new_var(s, old));
  *out = pln_stmt_image(s, old);
  return PLN_OK;
}

/* The variable is min + lane before the vectors, in them min + begin + outer *
 * lanes + lane, and behind them min + end + lane. */
static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  vectorizer *x = ud;
  pln_ref old = pln_stmt_param(s, stmt, 0, 0), lanes, vectors, end, begin,
          first;
  (void)k;
  (void)skip;
  if (!x->plan.loops[stmt].lanes)
    return PLN_OK;
  int part = part_of(x, s, stmt);
  x->in_vectors = part == VECTORS ? stmt : PLN_NONE;
  PLN_TRY(count_vectors(x, s, stmt, &lanes, &vectors, &end));
  PLN_TRY(new_var(s, old, &x->outer));
  PLN_TRY(new_var(s, old, &x->lane));
  PLN_TRY(pln_stmt_int_like(s, lanes, x->plan.loops[stmt].begin, &begin));
  first = end;
  if (part == BEFORE)
    PLN_TRY(pln_stmt_int_like(s, lanes, 0, &first));
  if (part == VECTORS) {
    PLN_TRY(fold(s, PLN_PRIM_MUL, x->outer, lanes, &first));
    PLN_TRY(fold(s, PLN_PRIM_ADD, begin, first, &first));
  }
  PLN_TRY(fold(s, PLN_PRIM_ADD, first, x->lane, &first));
  PLN_TRY(fold(s, PLN_PRIM_ADD, pln_stmt_operand(s, 0), first, &first));
  pln_stmt_bind(s, old, first);
  return PLN_OK;
}

/* A comparison that holds in all lanes. */
static pln_status drop_guard(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  const vectorizer *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (x->in_vectors == PLN_NONE || x->plan.guard_of[old] != x->in_vectors + 1)
    return PLN_OK;
  *node = pln_emit_int(&e, PLN_BOOL, 1);
  return e.status;
}

static pln_status build_loop(const vectorizer *x, pln_stmt_rewrite *s,
                             pln_ref loop, int64_t kind, pln_ref var,
                             pln_ref extent, pln_ref *body) {
  pln_engine *e = x->plan.graph->engine;
  pln_ref ends[2] = {PLN_NONE, extent};
  pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = ends};
  pln_symbol name;
  PLN_TRY(pln_stmt_int_like(s, extent, 0, &ends[0]));
  PLN_TRY(pln_symbol_intern(e, pln_text("kind"), &name));
  PLN_TRY(pln_attrs_with(
      e, x->plan.graph->nodes[loop].attrs,
      &(pln_attr){.name = name, .kind = PLN_ATTR_INT, .v.i = kind},
      &spec.attrs));
  return pln_build_floating_stmt(
      pln_stmt_builder(s), &spec, 1,
      &(pln_body){.n_params = 1, .params = &var, .stmt = *body}, body);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  vectorizer *x = ud;
  pln_ref lanes, vectors, end, rounds;
  (void)k;
  if (!x->plan.loops[stmt].lanes)
    return PLN_OK;
  int part = part_of(x, s, stmt);
  x->in_vectors = PLN_NONE;
  *again = part == BEFORE || (part == VECTORS && x->plan.loops[stmt].has_rest);
  PLN_TRY(count_vectors(x, s, stmt, &lanes, &vectors, &end));
  if (part == VECTORS) {
    PLN_TRY(build_loop(x, s, stmt, PLN_FOR_VECTORIZED, x->lane, lanes, body));
    return build_loop(x, s, stmt, PLN_FOR_SERIAL, x->outer, vectors, body);
  }
  if (part == BEFORE)
    PLN_TRY(pln_stmt_int_like(s, lanes, x->plan.loops[stmt].begin, &rounds));
  else
    PLN_TRY(fold(s, PLN_PRIM_SUB, pln_stmt_operand(s, 1), end, &rounds));
  return build_loop(x, s, stmt, PLN_FOR_SERIAL, x->lane, rounds, body);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const vectorizer *x = ud;
  if (x->plan.loops[stmt].lanes)
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

/* ----------------------------------------------------------------- the pass */

pln_status pln_pass_tir_vectorize_outer_loop(pln_pass_run *run) {
  vectorizer x = {.in_vectors = PLN_NONE};
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = drop_guard,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  PLN_TRY(pln_outer_plan_make(&x.plan, pln_run_function(run),
                              pln_run_int(run, "vector_bytes")));
  pln_status status = x.plan.any ? pln_lower_function(run, &mutator) : PLN_OK;
  pln_outer_plan_free(&x.plan);
  return status;
}
