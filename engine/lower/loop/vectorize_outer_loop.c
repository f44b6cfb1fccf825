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
 * what else it reads is the same in all rounds, or the neighbour. */

#include "arith/arith.h"
#include "lower/lower.h"

enum {
  UNIT = 1, /* the variable of the loop, plus what is the same in its rounds */
  VARYING = 2, /* other values that depend on it */
  INNER = 4,   /* depends on a loop inside */
  MOST_NODES = 2048,
  MOST_ACCESSES = 32,
  MOST_VECTORS = 8, /* sums that hide the latency of each other */
  LEAST_TILES = 4   /* of rounds that are not divided by the lanes */
};

typedef struct outer_loop {
  uint32_t lanes; /* 0: it stays as it is */
  int64_t rest;   /* rounds behind the vectors; -1: not constant */
} outer_loop;

typedef struct planner {
  const pln_graph *g;
  pln_analyzer *a;
  int64_t vector_bytes;
  uint8_t *dep;      /* by node */
  outer_loop *loops; /* by node */
  /* Of the loop that is looked at: */
  uint32_t n_stores, n_loads, bytes; /* of the largest element */
  bool has_loop, has_neighbours;
  pln_ref stores[MOST_ACCESSES], loads[MOST_ACCESSES];
  pln_ref outer, lane; /* variables of the loops that are built */
} planner;

/* -------------------------------------------------------------- expressions */

static const pln_ref *refs_of(const planner *x, pln_ref ref) {
  return pln_operands(x->g, &x->g->nodes[ref]);
}

static uint8_t deps_of(const planner *x, const pln_node *n) {
  uint8_t all = 0;
  for (uint32_t i = 0; i < n->count; i++)
    all |= x->dep[pln_operands(x->g, n)[i]];
  return all;
}

static bool varies(uint8_t dep) {
  return (dep & (UNIT | VARYING)) != 0;
}

/* Not by the variable itself. */
static uint8_t as_value(uint8_t dep) {
  return varies(dep) ? (uint8_t)((dep & INNER) | VARYING) : dep;
}

/* x + y and x - y of which one is the variable and the other the same. */
static uint8_t dep_of_sum(const planner *x, const pln_node *n) {
  const pln_ref *o = pln_operands(x->g, n);
  uint8_t left = x->dep[o[0]], right = x->dep[o[1]], both = left | right;
  bool moved = (left & UNIT && !varies(right)) ||
               (n->kind == PLN_PRIM_ADD && right & UNIT && !varies(left));
  return moved ? both : as_value(both);
}

/* A load of a neighbour, or of the same element in all rounds. Vectors of bytes
 * that become wider elements are slower than what compilers make of sums of
 * bytes by themselves: 8.4 ms against 2.6 for a product of 256^3. */
static bool note_load(planner *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (n->count != 2 || x->n_loads == MOST_ACCESSES)
    return false;
  uint8_t index = x->dep[refs_of(x, ref)[1]];
  if (varies(index) && pln_dtype_bits(pln_prim_dtype(x->g, ref)) <= 8)
    return false;
  x->loads[x->n_loads++] = ref;
  x->has_neighbours |= (index & UNIT) != 0;
  x->dep[ref] = as_value(index);
  return !(index & VARYING);
}

static bool is_float(const planner *x, pln_ref ref) {
  return pln_dtype_is_float(pln_prim_dtype(x->g, ref));
}

static bool has_same_condition(const planner *x, const pln_node *n) {
  return n->data != 0 &&
         strcmp(pln_builtin_name(n->data), "if_then_else") == 0 &&
         !varies(x->dep[pln_operands(x->g, n)[0]]);
}

/* Whether an expression has a vector form that is worth it. */
static bool note_expr(planner *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  uint8_t all = deps_of(x, n);
  x->dep[ref] = as_value(all);
  switch ((int)n->kind) {
  case PLN_INT_IMM:
  case PLN_FLOAT_IMM:
  case PLN_BUFFER: return !varies(all);
  case PLN_PRIM_ADD:
  case PLN_PRIM_SUB: x->dep[ref] = dep_of_sum(x, n); return true;
  case PLN_PRIM_MUL:
  case PLN_PRIM_MIN:
  case PLN_PRIM_MAX:
  case PLN_PRIM_CAST:
  case PLN_PRIM_EQ:
  case PLN_PRIM_NE:
  case PLN_PRIM_LT:
  case PLN_PRIM_LE:
  case PLN_PRIM_GT:
  case PLN_PRIM_GE:
  case PLN_SELECT: return true;
  case PLN_PRIM_DIV: return is_float(x, ref) || !varies(all);
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORDIV:
  case PLN_PRIM_FLOORMOD:
  case PLN_PRIM_AND:
  case PLN_PRIM_OR:
  case PLN_PRIM_NOT: return !varies(all);
  case PLN_BUFFER_LOAD: return note_load(x, ref);
  case PLN_PRIM_CALL: return has_same_condition(x, n);
  default: return false;
  }
}

/* --------------------------------------------------------------- statements */

static bool note_store(planner *x, pln_ref ref) {
  const pln_ref *o = refs_of(x, ref);
  if (x->g->nodes[ref].count != 3 || x->n_stores == MOST_ACCESSES ||
      (x->dep[o[2]] & (UNIT | VARYING | INNER)) != UNIT)
    return false;
  uint32_t bytes = pln_dtype_bits(pln_prim_dtype(x->g, o[1])) / 8;
  x->bytes = bytes > x->bytes ? bytes : x->bytes;
  x->stores[x->n_stores++] = ref;
  return bytes > 0;
}

static bool note_loop(planner *x, pln_ref ref) {
  x->has_loop = true;
  return pln_for_kind_of(x->g, ref) != PLN_FOR_THREAD_BINDING &&
         pln_for_kind_of(x->g, ref) != PLN_FOR_PARALLEL &&
         pln_for_kind_of(x->g, ref) != PLN_FOR_VECTORIZED &&
         x->g->nodes[ref].count == 2 && !x->loops[ref].lanes;
}

static bool note_stmt(planner *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  switch ((int)n->kind) {
  case PLN_BUFFER_STORE: return note_store(x, ref);
  case PLN_FOR: return !varies(deps_of(x, n)) && note_loop(x, ref);
  case PLN_IF_THEN_ELSE: return !varies(deps_of(x, n));
  case PLN_LET_STMT:
    return pln_prim_dtype(x->g, refs_of(x, ref)[0]) != PLN_DTYPE_NONE;
  case PLN_EVALUATE: return x->g->nodes[refs_of(x, ref)[0]].kind == PLN_INT_IMM;
  case PLN_SEQ_STMT: return true;
  default: return false;
  }
}

/* What the variable of a body inside is. */
static void note_param(planner *x, pln_scope scope) {
  const pln_scope_row *row = &x->g->scopes[scope];
  const pln_node *owner = &x->g->nodes[row->owner];
  if (owner->kind == PLN_LET_STMT)
    x->dep[row->begin] = x->dep[pln_operands(x->g, owner)[0]];
  else if (owner->kind == PLN_FOR)
    x->dep[row->begin] = INNER;
}

static bool note_node(planner *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (n->kind == PLN_VAR)
    return true;
  if (pln_is_stmt(n))
    return note_stmt(x, ref);
  return pln_is_prim(n) &&
         (n->kind == PLN_BUFFER || pln_prim_lanes(x->g, ref) == 1) &&
         note_expr(x, ref);
}

/* Whether all of the body has a form that is known. */
static bool note_body(planner *x, pln_ref loop) {
  pln_scope body = x->g->nodes[loop].data, scope = body + 1;
  pln_ref begin = x->g->scopes[body].begin;
  memset(x->dep + begin, 0, loop - begin);
  x->dep[begin] = UNIT;
  for (pln_ref ref = begin + 1; ref < loop; ref++) {
    while (scope < x->g->n_scopes && x->g->scopes[scope].begin == ref)
      note_param(x, scope++);
    if (!note_node(x, ref))
      return false;
  }
  return true;
}

/* ------------------------------------------------------------- dependences */

static pln_ref memory_of(const planner *x, pln_ref access) {
  return refs_of(x, refs_of(x, access)[0])[0];
}

static bool same_place(planner *x, pln_ref index, pln_ref other) {
  pln_term s, t;
  if (index == other)
    return true;
  return pln_analyzer_import(x->a, x->g, index, &s) == PLN_OK &&
         pln_analyzer_import(x->a, x->g, other, &t) == PLN_OK &&
         pln_proves_equal(x->a, s, t);
}

/* Whether an access of memory that is stored to has the index of its store. */
static bool is_own(planner *x, pln_ref access, pln_ref index) {
  for (uint32_t i = 0; i < x->n_stores; i++)
    if (memory_of(x, x->stores[i]) == memory_of(x, access))
      return same_place(x, refs_of(x, x->stores[i])[2], index);
  return true;
}

static bool rounds_are_apart(planner *x) {
  for (uint32_t i = 0; i < x->n_stores; i++)
    if (!is_own(x, x->stores[i], refs_of(x, x->stores[i])[2]))
      return false;
  for (uint32_t i = 0; i < x->n_loads; i++)
    if (!is_own(x, x->loads[i], refs_of(x, x->loads[i])[1]))
      return false;
  return true;
}

/* Indices are compared by what lets say. */
static pln_status bind_lets(planner *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    pln_term var, value;
    if (n->kind != PLN_LET_STMT)
      continue;
    PLN_TRY(pln_analyzer_import(x->a, x->g, x->g->scopes[n->data].begin, &var));
    PLN_TRY(pln_analyzer_import(x->a, x->g, refs_of(x, ref)[0], &value));
    if (pln_is_integer(x->a, value))
      PLN_TRY(pln_analyzer_bind(x->a, var, value, true));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- lanes */

/* As many vectors as divide the rounds; else so many that few are left. */
static outer_loop lanes_of(const planner *x, pln_ref loop) {
  const pln_node *extent = &x->g->nodes[refs_of(x, loop)[1]];
  uint32_t width = (uint32_t)(x->vector_bytes / x->bytes);
  if (width < 2)
    return (outer_loop){0, 0};
  if (extent->kind != PLN_INT_IMM)
    return (outer_loop){width * MOST_VECTORS / 2, -1};
  int64_t rounds = (int64_t)pln_imm_bits(extent);
  for (uint32_t n = width * MOST_VECTORS; n >= width; n /= 2)
    if (rounds >= n && rounds % n == 0)
      return (outer_loop){n, 0};
  for (uint32_t n = width * MOST_VECTORS; n >= width; n /= 2)
    if (rounds / n >= LEAST_TILES)
      return (outer_loop){n, rounds % n};
  return (outer_loop){0, 0};
}

static void plan_loop(planner *x, pln_ref loop) {
  const pln_node *n = &x->g->nodes[loop];
  pln_ref begin = x->g->scopes[n->data].begin;
  if (n->count != 2 || pln_for_kind_of(x->g, loop) != PLN_FOR_SERIAL ||
      loop - begin > MOST_NODES)
    return;
  x->n_stores = x->n_loads = x->bytes = 0;
  x->has_loop = x->has_neighbours = false;
  if (note_body(x, loop) && x->has_loop && x->has_neighbours &&
      x->n_stores > 0 && rounds_are_apart(x))
    x->loops[loop] = lanes_of(x, loop);
}

/* ---------------------------------------------------------------- rewriting */

static pln_status fold(pln_stmt_rewrite *s, pln_kind kind, pln_ref x, pln_ref y,
                       pln_ref *out) {
  return pln_build_folded(pln_stmt_builder(s), kind, x, y, out);
}

/* How many rounds of vectors there are, and where they end. */
static pln_status count_vectors(const planner *x, pln_stmt_rewrite *s,
                                pln_ref loop, pln_ref *lanes, pln_ref *vectors,
                                pln_ref *end) {
  pln_ref extent = pln_stmt_operand(s, 1);
  PLN_TRY(pln_stmt_int_like(s, extent, x->loops[loop].lanes, lanes));
  PLN_TRY(fold(s, PLN_PRIM_FLOORDIV, extent, *lanes, vectors));
  return fold(s, PLN_PRIM_MUL, *vectors, *lanes, end);
}

/* A variable of a new loop, with the name of the old one. */
static pln_status new_var(pln_stmt_rewrite *s, pln_ref old, pln_ref *out) {
  PLN_TRY(pln_stmt_bind_new_var(s, old));
  *out = pln_stmt_image(s, old);
  return PLN_OK;
}

/* The variable in the vectors is min + outer * lanes + lane, and behind them
 * min + end + lane. */
static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  planner *x = ud;
  pln_ref old = pln_stmt_param(s, stmt, 0, 0), lanes, vectors, end, value;
  (void)k;
  (void)skip;
  if (!x->loops[stmt].lanes)
    return PLN_OK;
  PLN_TRY(count_vectors(x, s, stmt, &lanes, &vectors, &end));
  PLN_TRY(new_var(s, old, &x->outer));
  PLN_TRY(new_var(s, old, &x->lane));
  value = end;
  if (pln_stmt_visits(s) == 0)
    PLN_TRY(fold(s, PLN_PRIM_MUL, x->outer, lanes, &value));
  PLN_TRY(fold(s, PLN_PRIM_ADD, value, x->lane, &value));
  PLN_TRY(fold(s, PLN_PRIM_ADD, pln_stmt_operand(s, 0), value, &value));
  pln_stmt_bind(s, old, value);
  return PLN_OK;
}

static pln_status build_loop(const planner *x, pln_stmt_rewrite *s,
                             pln_ref loop, int64_t kind, pln_ref var,
                             pln_ref extent, pln_ref *body) {
  pln_engine *e = x->g->engine;
  pln_ref ends[2] = {PLN_NONE, extent};
  pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = ends};
  pln_symbol name;
  PLN_TRY(pln_stmt_int_like(s, extent, 0, &ends[0]));
  PLN_TRY(pln_symbol_intern(e, pln_text("kind"), &name));
  PLN_TRY(pln_attrs_with(
      e, x->g->nodes[loop].attrs,
      &(pln_attr){.name = name, .kind = PLN_ATTR_INT, .v.i = kind},
      &spec.attrs));
  return pln_build_floating_stmt(
      pln_stmt_builder(s), &spec, 1,
      &(pln_body){.n_params = 1, .params = &var, .stmt = *body}, body);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  planner *x = ud;
  pln_ref lanes, vectors, end, rest;
  (void)k;
  if (!x->loops[stmt].lanes)
    return PLN_OK;
  PLN_TRY(count_vectors(x, s, stmt, &lanes, &vectors, &end));
  if (pln_stmt_visits(s) > 0) {
    PLN_TRY(fold(s, PLN_PRIM_SUB, pln_stmt_operand(s, 1), end, &rest));
    return build_loop(x, s, stmt, PLN_FOR_SERIAL, x->lane, rest, body);
  }
  *again = x->loops[stmt].rest != 0;
  PLN_TRY(build_loop(x, s, stmt, PLN_FOR_VECTORIZED, x->lane, lanes, body));
  return build_loop(x, s, stmt, PLN_FOR_SERIAL, x->outer, vectors, body);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const planner *x = ud;
  if (x->loops[stmt].lanes)
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

/* ----------------------------------------------------------------- the pass */

/* Without tir.noalias any two buffers may share elements. */
static bool may_alias(const pln_graph *g) {
  return !pln_attrs_int(g->engine, g->nodes[g->root].attrs, "tir.noalias", 1);
}

static pln_status begin(planner *x) {
  pln_engine *e = x->g->engine;
  x->dep = pln_mem_zeroed(e, x->g->n_nodes * sizeof *x->dep);
  x->loops = pln_mem_zeroed(e, x->g->n_nodes * sizeof *x->loops);
  if (!x->dep || !x->loops)
    return pln_nomem(e);
  PLN_TRY(pln_analyzer_new(e, &x->a));
  return bind_lets(x);
}

static void end(planner *x) {
  pln_engine *e = x->g->engine;
  pln_mem_free(e, x->dep, x->g->n_nodes * sizeof *x->dep);
  pln_mem_free(e, x->loops, x->g->n_nodes * sizeof *x->loops);
  if (x->a)
    pln_analyzer_free(x->a);
}

/* Inner loops come first, so that the innermost one that can be is marked. */
static bool plan_all(planner *x) {
  bool any = false;
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_FOR) {
      plan_loop(x, ref);
      any |= x->loops[ref].lanes != 0;
    }
  return any;
}

pln_status pln_pass_tir_vectorize_outer_loop(pln_pass_run *run) {
  planner x = {.g = pln_run_function(run)};
  pln_stmt_mutator mutator = {.ud = &x,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  x.vector_bytes = pln_run_int(run, "vector_bytes");
  if (!pln_has_kind(x.g, PLN_FOR) || may_alias(x.g))
    return PLN_OK;
  pln_status status = begin(&x);
  if (status == PLN_OK && plan_all(&x))
    status = pln_lower_function(run, &mutator);
  end(&x);
  return status;
}
