/* unroll_loop.c: tir.UnrollLoop: writes out the body of a loop once for each
 * value of its variable.
 *
 * Run by the executor. Loops marked T.unroll are written out; serial loops
 * without an ordinary loop inside too if they are short enough (config keys
 * tir.UnrollLoop.*, pragma_auto_unroll_max_step, pragma_unroll_explicit).
 *
 *     for i in T.unroll(2): A[i] = 0   =>   A[0] = 0; A[1] = 0
 *
 * Semantics: TVM's tir.UnrollLoop. A loop that would become more than a million
 * statements stays; if it is marked, it is an error. */

#include "lower/lower.h"

/* What a loop may become. */
enum { MOST_STATEMENTS = 1 << 20 };

typedef struct unroll_config {
  int64_t auto_max_step, auto_max_depth, auto_max_extent, explicit_unroll,
      unroll_local_access;
} unroll_config;

/* What a loop, or the statements of a scope, come to. */
typedef struct unroll_count {
  int64_t steps, unrolled, loops; /* depths of unrolled and ordinary loops */
  uint32_t stmts;
} unroll_count;

typedef enum unroll_choice { KEEP, MARK, WRITE_OUT } unroll_choice;

typedef struct unroller {
  const pln_graph *g;
  unroll_config config;
  pln_analyzer *a;
  int64_t *settings;    /* by scope: auto_max_step, explicit_unroll */
  unroll_count *counts; /* by scope */
  uint8_t *choice;      /* by node */
  bool *local;          /* by node: a Var that indexes local memory */
  int64_t *extent;      /* by node: the rounds of a loop that is written out */
} unroller;

/* ------------------------------------------------------------------ analysis
 */

static void add_to_scope(unroll_count *scope, const unroll_count *stmt) {
  scope->steps += stmt->steps;
  if (scope->steps > INT32_MAX)
    scope->steps = INT32_MAX;
  if (stmt->unrolled > scope->unrolled)
    scope->unrolled = stmt->unrolled;
  if (stmt->loops > scope->loops)
    scope->loops = stmt->loops;
}

/* The number of rounds; -1: not constant. */
static pln_status loop_extent(unroller *x, pln_ref loop, int64_t *out) {
  pln_term term;
  *out = -1;
  PLN_TRY(pln_analyzer_import(x->a, x->g, pln_operand(x->g, loop, 1), &term));
  PLN_TRY(pln_analyzer_simplify(x->a, term, 2, &term));
  if (pln_is_const(x->a, term) && pln_const(x->a, term) <= INT32_MAX)
    *out = pln_const(x->a, term) < 0 ? 0 : pln_const(x->a, term);
  return PLN_OK;
}

static pln_status not_constant(const unroller *x, pln_ref loop) {
  pln_ref var = x->g->scopes[x->g->nodes[loop].data].begin;
  return pln_diag_error(
      x->g->engine, PLN_ERR_ARGUMENT, NULL,
      "tir.UnrollLoop: the loop over '%s' is marked unrolled, but its extent "
      "is not constant",
      pln_symbol_text(x->g->engine, x->g->nodes[var].attrs).data);
}

/* A loop that is marked and has many rounds is an error, and no program that
 * fills the memory. */
static pln_status too_many(const unroller *x, pln_ref loop, int64_t extent) {
  pln_ref var = x->g->scopes[x->g->nodes[loop].data].begin;
  return pln_diag_error(
      x->g->engine, PLN_ERR_LIMIT, NULL,
      "tir.UnrollLoop: the %lld rounds of the loop over '%s', written out, "
      "have more than %d statements",
      (long long)extent,
      pln_symbol_text(x->g->engine, x->g->nodes[var].attrs).data,
      MOST_STATEMENTS);
}

static pln_status choose(unroller *x, pln_ref loop, pln_scope scope,
                         unroll_count *c) {
  int64_t extent, max_step = x->settings[2 * scope];
  pln_for_kind kind = pln_for_kind_of(x->g, loop);
  PLN_TRY(loop_extent(x, loop, &extent));
  if (kind == PLN_FOR_UNROLLED && extent < 0)
    return not_constant(x, loop);
  bool fits = extent * (c->steps > 0 ? c->steps : 1) <= MOST_STATEMENTS;
  bool unroll =
      kind == PLN_FOR_SERIAL && extent >= 0 && c->loops == 0 &&
      c->unrolled <= x->config.auto_max_depth &&
      (extent * c->steps <= max_step || extent <= x->config.auto_max_extent);
  unroll |= x->config.unroll_local_access && extent > 0 &&
            x->local[x->g->scopes[x->g->nodes[loop].data].begin];
  unroll = (unroll && fits) || kind == PLN_FOR_UNROLLED;
  if (unroll && !fits && x->settings[2 * scope + 1])
    return too_many(x, loop, extent);
  if (unroll) {
    c->steps = extent * c->steps > INT32_MAX ? INT32_MAX : extent * c->steps;
    c->unrolled++;
  } else {
    c->loops++;
  }
  bool once = extent >= 0 && extent <= 1 && x->config.auto_max_extent == 1;
  if ((unroll && x->settings[2 * scope + 1]) || once)
    x->choice[loop] = WRITE_OUT, x->extent[loop] = extent;
  else if (unroll && kind != PLN_FOR_UNROLLED)
    x->choice[loop] = MARK;
  return PLN_OK;
}

static pln_status count_stmt(unroller *x, pln_ref ref, pln_scope scope) {
  const pln_node *n = &x->g->nodes[ref];
  unroll_count c = {0};
  if (n->kind == PLN_BUFFER_STORE || n->kind == PLN_EVALUATE)
    c.steps = 1;
  if (pln_owns(n))
    for (pln_scope at = n->data; at != PLN_NONE; at = x->g->scopes[at].next)
      add_to_scope(&c, &x->counts[at]);
  if (n->kind == PLN_FOR)
    PLN_TRY(choose(x, ref, scope, &c));
  if (pln_is_seq_element((pln_kind)n->kind))
    add_to_scope(&x->counts[scope], &c);
  return PLN_OK;
}

static pln_slice key_of(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_ATTR_STMT
             ? pln_attrs_string(g->engine, g->nodes[stmt].attrs, "attr_key", "")
             : pln_text("");
}

/* An attribute that is done with when its body is. */
static bool is_setting(const pln_graph *g, pln_ref stmt) {
  pln_slice key = key_of(g, stmt);
  return pln_slice_is(key, "pragma_auto_unroll_max_step") ||
         pln_slice_is(key, "pragma_unroll_explicit");
}

/* The scopes inside of a pragma have its settings. Outer rows come first. */
static void read_pragmas(unroller *x) {
  const pln_graph *g = x->g;
  for (pln_scope at = 0; at < g->n_scopes; at++) {
    pln_scope parent = g->scopes[at].parent;
    pln_ref owner = g->scopes[at].owner;
    int64_t *own = &x->settings[2 * at];
    own[0] = at ? x->settings[2 * parent] : x->config.auto_max_step;
    own[1] = at ? x->settings[2 * parent + 1] : x->config.explicit_unroll;
    if (at == 0 || !is_setting(g, owner))
      continue;
    pln_slice key = key_of(g, owner);
    pln_ref value = pln_operand(g, owner, 1);
    if (g->nodes[value].kind != PLN_INT_IMM)
      continue;
    if (pln_slice_is(key, "pragma_auto_unroll_max_step"))
      own[0] = pln_node_int(g, value);
    else if (pln_slice_is(key, "pragma_unroll_explicit"))
      own[1] = pln_node_int(g, value);
  }
}

static bool is_local(const pln_graph *g, pln_ref buffer) {
  pln_type pointer = g->nodes[pln_operand(g, buffer, 0)].type;
  pln_slice scope =
      pln_symbol_text(g->engine, pln_type_symbol(g->engine, pointer));
  return pln_slice_is(scope, "local") || pln_slice_is(scope, "warp");
}

/* Marks the variables of the indices of local memory: from users to operands.
 */
static void find_local(unroller *x) {
  for (pln_ref ref = x->g->n_nodes; ref-- > 0;) {
    const pln_node *n = &x->g->nodes[ref];
    bool load = n->kind == PLN_BUFFER_LOAD, store = n->kind == PLN_BUFFER_STORE;
    bool mark = (load || store) ? is_local(x->g, pln_operand(x->g, ref, 0))
                                : pln_is_prim(n) && x->local[ref];
    for (uint32_t i = load ? 1 : store ? 2 : 0; mark && i < n->count; i++)
      x->local[pln_operand(x->g, ref, i)] = true;
  }
}

static pln_status analyse(unroller *x) {
  pln_scope_cursor at = {.graph = x->g};
  read_pragmas(x);
  if (x->config.unroll_local_access)
    find_local(x);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    pln_scope scope = pln_scope_cursor_at(&at, ref);
    if (pln_is_stmt(&x->g->nodes[ref]))
      PLN_TRY(count_stmt(x, ref, scope));
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- rewriting */

/* The variable is min + the number of visits before. */
static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  unroller *x = ud;
  pln_ref round, value;
  (void)k;
  *skip = x->choice[stmt] == WRITE_OUT && x->extent[stmt] == 0;
  if (x->choice[stmt] != WRITE_OUT || *skip)
    return PLN_OK;
  PLN_TRY(
      pln_stmt_int_like(s, pln_stmt_operand(s, 0), pln_stmt_visits(s), &round));
  PLN_TRY(pln_build_folded(pln_stmt_builder(s), PLN_PRIM_ADD,
                           pln_stmt_operand(s, 0), round, &value));
  pln_stmt_bind(s, pln_stmt_param(s, stmt, 0, 0), value);
  return PLN_OK;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  unroller *x = ud;
  (void)k;
  (void)body;
  *again = x->choice[stmt] == WRITE_OUT &&
           pln_stmt_visits(s) + INT64_C(1) < x->extent[stmt];
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  unroller *x = ud;
  if (is_setting(x->g, stmt)) {
    *node = pln_stmt_body(s, 0);
    return PLN_OK;
  }
  if (x->choice[stmt] == MARK)
    return pln_stmt_rebuild_for(s, stmt, PLN_FOR_UNROLLED, node);
  if (x->choice[stmt] != WRITE_OUT)
    return PLN_OK;
  *node = pln_stmt_body(s, 0);
  return *node == PLN_NONE ? pln_stmt_no_op(s, node) : PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

static bool has_work(const unroller *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->choice[ref] || is_setting(x->g, ref))
      return true;
  return false;
}

static pln_status read_config(const pln_pass_run *run, unroll_config *c) {
  PLN_TRY(
      pln_lower_config(run, "tir.UnrollLoop.auto_max_step", &c->auto_max_step));
  PLN_TRY(pln_lower_config(run, "tir.UnrollLoop.auto_max_depth",
                           &c->auto_max_depth));
  PLN_TRY(pln_lower_config(run, "tir.UnrollLoop.auto_max_extent",
                           &c->auto_max_extent));
  PLN_TRY(pln_lower_config(run, "tir.UnrollLoop.explicit_unroll",
                           &c->explicit_unroll));
  return pln_lower_config(run, "tir.UnrollLoop.unroll_local_access",
                          &c->unroll_local_access);
}

static pln_status begin(unroller *x) {
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes, scopes = x->g->n_scopes;
  x->settings = pln_mem_new(e, 2 * scopes * sizeof *x->settings);
  x->counts = pln_mem_zeroed(e, scopes * sizeof *x->counts);
  x->choice = pln_mem_zeroed(e, nodes * sizeof *x->choice);
  x->local = pln_mem_zeroed(e, nodes * sizeof *x->local);
  x->extent = pln_mem_zeroed(e, nodes * sizeof *x->extent);
  if (!x->settings || !x->counts || !x->choice || !x->local || !x->extent)
    return pln_nomem(e);
  PLN_TRY(pln_analyzer_new(e, &x->a));
  return analyse(x);
}

static void end(unroller *x) {
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes, scopes = x->g->n_scopes;
  pln_mem_free(e, x->settings, 2 * scopes * sizeof *x->settings);
  pln_mem_free(e, x->counts, scopes * sizeof *x->counts);
  pln_mem_free(e, x->choice, nodes * sizeof *x->choice);
  pln_mem_free(e, x->local, nodes * sizeof *x->local);
  pln_mem_free(e, x->extent, nodes * sizeof *x->extent);
  if (x->a)
    pln_analyzer_free(x->a);
}

pln_status pln_pass_tir_unroll_loop(pln_pass_run *run) {
  unroller x = {.g = pln_run_function(run)};
  pln_stmt_mutator mutator = {.ud = &x,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  PLN_TRY(read_config(run, &x.config));
  if (!pln_has_kind(x.g, PLN_FOR) && !pln_has_kind(x.g, PLN_ATTR_STMT))
    return PLN_OK;
  pln_status status = begin(&x);
  if (status == PLN_OK && has_work(&x))
    status = pln_lower_function(run, &mutator);
  end(&x);
  return status;
}
