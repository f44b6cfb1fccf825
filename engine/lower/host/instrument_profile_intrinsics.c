/* instrument_profile_intrinsics.c: tir.InstrumentProfileIntrinsics: marks where
 * loops and functions begin and end, for a profiler.
 *
 * Run by the executor. Functions and loops are numbered from 0 in the order in
 * which they are written. Unless tir.instr_siblings is false, only loops beside
 * other loops are marked. A loop inside of a parallel one is not, nor one with
 * tir.lwp_max_depth loops around it (0: any number) or with fewer than
 * tir.lwp_min_height loops inside of each other in it.
 *
 *     for k in range(8): ...; for k in range(8): ...
 *         =>   T.start_profile_intrinsic(1); for k ...;
 * T.end_profile_intrinsic(1) T.start_profile_intrinsic(2); for k ...;
 * T.end_profile_intrinsic(2)
 *
 * Semantics: TVM's tir.InstrumentProfileIntrinsics; numbers begin at 0 in each
 * run (tir.reset_start_id). */

#include "lower/host/packed_call.h"

typedef struct loop_place {
  uint32_t number;
  uint32_t depth, height;
  bool has_siblings, in_parallel;
} loop_place;

typedef struct profiler {
  const pln_graph *g;
  int64_t max_depth, min_height, siblings, no_functions;
  uint32_t next;      /* the next number */
  uint32_t function;  /* the number of the present function */
  loop_place *places; /* by loop */
  /* by scope */
  uint32_t *loops, *depths, *heights;
  bool *parallel;
} profiler;

static bool is_for(const profiler *p, pln_ref ref) {
  return p->g->nodes[ref].kind == PLN_FOR;
}

/* Outer scopes come before inner ones. */
static void place_scopes(profiler *p) {
  const pln_graph *g = p->g;
  for (pln_scope i = 1; i < g->n_scopes; i++) {
    pln_scope parent = g->scopes[i].parent;
    pln_ref owner = g->scopes[i].owner;
    p->depths[i] = p->depths[parent] + is_for(p, owner);
    p->parallel[i] =
        p->parallel[parent] ||
        (is_for(p, owner) && pln_for_kind_of(g, owner) == PLN_FOR_PARALLEL);
    if (!is_for(p, owner))
      continue;
    p->places[owner] = (loop_place){.number = p->next++,
                                    .depth = p->depths[parent],
                                    .in_parallel = p->parallel[parent]};
    p->loops[parent]++;
  }
}

/* Inner scopes, from the last one back. */
static void place_heights(profiler *p) {
  const pln_graph *g = p->g;
  for (pln_scope i = g->n_scopes; i-- > 1;) {
    pln_scope parent = g->scopes[i].parent;
    pln_ref owner = g->scopes[i].owner;
    uint32_t height = p->heights[i];
    if (is_for(p, owner)) {
      p->places[owner].height = height;
      p->places[owner].has_siblings = p->loops[parent] > 1;
      height++;
    }
    if (p->heights[parent] < height)
      p->heights[parent] = height;
  }
}

static bool is_marked(const profiler *p, const loop_place *at) {
  return (!p->siblings || at->has_siblings) && !at->in_parallel &&
         at->height >= p->min_height &&
         (p->max_depth == 0 || at->depth < p->max_depth);
}

static pln_ref mark(pln_emit *e, const char *builtin, uint32_t number) {
  pln_ref arg = pln_emit_int(e, PLN_INT32, number);
  return pln_emit_evaluate(
      e, pln_emit_call(e, builtin, pln_emit_type(e, PLN_DTYPE_NONE), 1, &arg));
}

static pln_ref between_marks(pln_emit *e, uint32_t number, pln_ref stmt) {
  pln_ref stmts[3] = {mark(e, "start_profile_intrinsic", number), stmt,
                      mark(e, "end_profile_intrinsic", number)};
  return pln_emit_seq(e, 3, stmts);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const profiler *p = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (!is_for(p, stmt) || !is_marked(p, &p->places[stmt]))
    return PLN_OK;
  PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  *node = between_marks(&e, p->places[stmt].number, *node);
  return e.status;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  const profiler *p = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref rest;
  (void)k;
  (void)again;
  if (p->no_functions || p->g->nodes[stmt].kind != PLN_PRIM_FUNC)
    return PLN_OK;
  PLN_TRY(pln_stmt_split_binds(s, *body, &rest));
  rest = between_marks(&e, p->function, rest);
  PLN_TRY(e.status);
  return pln_stmt_join_binds(s, *body, rest, body);
}

static pln_status begin(profiler *p) {
  pln_engine *e = p->g->engine;
  size_t n = p->g->n_scopes;
  p->places = pln_mem_zeroed(e, p->g->n_nodes * sizeof *p->places);
  p->loops = pln_mem_zeroed(e, 3 * n * sizeof *p->loops);
  p->parallel = pln_mem_zeroed(e, n * sizeof *p->parallel);
  if (!p->places || !p->loops || !p->parallel)
    return pln_nomem(e);
  p->depths = p->loops + n;
  p->heights = p->depths + n;
  p->function = p->next++;
  place_scopes(p);
  place_heights(p);
  return PLN_OK;
}

static void end(profiler *p) {
  pln_engine *e = p->g->engine;
  size_t n = p->g->n_scopes;
  pln_mem_free(e, p->places, p->g->n_nodes * sizeof *p->places);
  pln_mem_free(e, p->loops, 3 * n * sizeof *p->loops);
  pln_mem_free(e, p->parallel, n * sizeof *p->parallel);
}

static pln_status instrument(void *ud, const pln_module *module, uint32_t index,
                             const pln_graph *g, pln_graph **out) {
  profiler *p = ud;
  pln_stmt_mutator mutator = {
      .ud = p, .leave_body = leave_body, .leave = leave_stmt};
  (void)module;
  (void)index;
  p->g = g;
  *out = NULL;
  pln_status status = begin(p);
  if (status == PLN_OK)
    status = pln_stmt_rewrite_function(g, &mutator, out);
  end(p);
  return status;
}

pln_status pln_pass_tir_instrument_profile_intrinsics(pln_pass_run *run) {
  profiler p = {0};
  PLN_TRY(pln_lower_config(run, "tir.lwp_max_depth", &p.max_depth));
  PLN_TRY(pln_lower_config(run, "tir.lwp_min_height", &p.min_height));
  PLN_TRY(pln_lower_config(run, "tir.instr_siblings", &p.siblings));
  PLN_TRY(pln_lower_config(run, "tir.lwp_disable_func_prof", &p.no_functions));
  return pln_rewrite_prim_funcs(run, instrument, &p);
}
