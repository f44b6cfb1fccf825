/* vectorize_outer_plan.c: which loops around reductions become vectors.
 *
 * Called by vectorize_outer_loop.c, which says what is looked for. The nodes of
 * a body are looked at once, operands first: what each is in the rounds of the
 * loop. Then the accesses of memory that is stored to are compared, and rounds
 * and lanes are counted. Bodies of more nodes than MOST_NODES stay, so that
 * nested loops are linear. */

#include "lower/loop/vectorize_outer_plan.h"

#include "arith/arith.h"

enum {
  UNIT = 1, /* the variable of the loop, plus what is the same in its rounds */
  VARYING = 2, /* other values that depend on it */
  INNER = 4,   /* depends on a loop inside */
  GUARD = 8,   /* of VARYING: a conjunction, for conditions only */
  MOST_NODES = 2048,
  MOST_ACCESSES = 32,
  MOST_GUARDS = 16,
  NEVER = INT32_MAX, /* less than 0 by more than a variable makes up for */
  MOST_VECTORS = 8   /* sums that hide the latency of each other */
};

typedef struct planner {
  const pln_graph *g;
  pln_analyzer *a;
  int64_t vector_bytes;
  uint8_t *dep; /* by node */
  pln_outer_plan *plan;
  /* Of the loop that is looked at: */
  uint32_t n_stores, n_loads, bytes; /* of the largest element */
  bool has_loop, has_neighbours;
  pln_ref stores[MOST_ACCESSES], loads[MOST_ACCESSES];
  uint32_t n_guards;
  pln_ref guards[MOST_GUARDS]; /* comparisons with the variable */
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
  return varies(dep) ? (uint8_t)((dep & (INNER | GUARD)) | VARYING) : dep;
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

/* A comparison of the variable, plus what is the same in its rounds. */
static bool note_guard(planner *x, pln_ref ref) {
  pln_kind kind = (pln_kind)x->g->nodes[ref].kind;
  const pln_ref *o = refs_of(x, ref);
  bool compares = kind == PLN_PRIM_LT || kind == PLN_PRIM_LE ||
                  kind == PLN_PRIM_GT || kind == PLN_PRIM_GE;
  if (!compares || x->n_guards == MOST_GUARDS || is_float(x, o[0]) ||
      ((x->dep[o[0]] | x->dep[o[1]]) & (UNIT | VARYING)) != UNIT ||
      (x->dep[o[0]] & x->dep[o[1]] & UNIT))
    return false;
  x->guards[x->n_guards++] = ref;
  return true;
}

/* Whether all that varies of a condition are comparisons that all have to hold.
 */
static bool note_condition(planner *x, pln_ref condition) {
  pln_ref stack[MOST_GUARDS + 2] = {condition};
  for (uint32_t n = 1; n > 0;) {
    pln_ref ref = stack[--n];
    const pln_node *node = &x->g->nodes[ref];
    if (!varies(x->dep[ref]))
      continue;
    if (node->kind != PLN_PRIM_AND) {
      if (!note_guard(x, ref))
        return false;
    } else if (n + 2 > PLN_COUNT(stack)) {
      return false;
    } else {
      stack[n++] = refs_of(x, ref)[1];
      stack[n++] = refs_of(x, ref)[0];
    }
  }
  return true;
}

static bool note_call(planner *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  const pln_ref *o = pln_operands(x->g, n);
  if (n->data == 0 || strcmp(pln_builtin_name(n->data), "if_then_else") != 0 ||
      ((x->dep[o[1]] | x->dep[o[2]]) & GUARD))
    return false;
  x->dep[ref] &= (uint8_t)~GUARD;
  return note_condition(x, o[0]);
}

/* Whether an expression has a vector form that is worth it. */
static bool note_expr(planner *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  uint8_t all = deps_of(x, n);
  x->dep[ref] = as_value(all);
  if (n->kind == PLN_PRIM_CALL)
    return note_call(x, ref);
  if (n->kind == PLN_PRIM_AND) {
    x->dep[ref] |= varies(all) ? GUARD : 0;
    return true;
  }
  if (all & GUARD)
    return false;
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
  case PLN_PRIM_OR:
  case PLN_PRIM_NOT: return !varies(all);
  case PLN_BUFFER_LOAD: return note_load(x, ref);
  default: return false;
  }
}

/* --------------------------------------------------------------- statements */

static bool note_store(planner *x, pln_ref ref) {
  const pln_ref *o = refs_of(x, ref);
  if (x->g->nodes[ref].count != 3 || x->n_stores == MOST_ACCESSES ||
      (x->dep[o[1]] & GUARD) ||
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
         x->g->nodes[ref].count == 2 && !x->plan->loops[ref].lanes;
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

static pln_status is_same_place(planner *x, pln_ref index, pln_ref other,
                                bool *same) {
  pln_term s, t;
  *same = index == other;
  if (*same)
    return PLN_OK;
  PLN_TRY(pln_analyzer_import(x->a, x->g, index, &s));
  PLN_TRY(pln_analyzer_import(x->a, x->g, other, &t));
  *same = pln_proves_equal(x->a, s, t);
  return x->a->status;
}

/* Whether an access of memory that is stored to has the index of its store. */
static pln_status check_own(planner *x, pln_ref access, pln_ref index,
                            bool *own) {
  for (uint32_t i = 0; *own && i < x->n_stores; i++)
    if (memory_of(x, x->stores[i]) == memory_of(x, access))
      return is_same_place(x, refs_of(x, x->stores[i])[2], index, own);
  return PLN_OK;
}

static pln_status check_rounds(planner *x, bool *apart) {
  *apart = true;
  for (uint32_t i = 0; *apart && i < x->n_stores; i++)
    PLN_TRY(check_own(x, x->stores[i], refs_of(x, x->stores[i])[2], apart));
  for (uint32_t i = 0; *apart && i < x->n_loads; i++)
    PLN_TRY(check_own(x, x->loads[i], refs_of(x, x->loads[i])[1], apart));
  return PLN_OK;
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

/* ------------------------------------------------------------------- rounds
 */

/* Ranges of the loops that have constant ones. */
static pln_status bind_loops(planner *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    pln_term var, min, extent;
    if (n->kind != PLN_FOR)
      continue;
    PLN_TRY(pln_analyzer_import(x->a, x->g, x->g->scopes[n->data].begin, &var));
    PLN_TRY(pln_analyzer_import(x->a, x->g, refs_of(x, ref)[0], &min));
    PLN_TRY(pln_analyzer_import(x->a, x->g, refs_of(x, ref)[1], &extent));
    if (pln_is_const(x->a, min) && pln_is_const(x->a, extent) &&
        pln_const(x->a, extent) > 0)
      PLN_TRY(pln_analyzer_bind_range(x->a, var, min, extent, true));
  }
  return PLN_OK;
}

/* How much greater one side of a comparison is than the other at the least,
 * where the variable is 0: it holds as long as this is 0 or more. *falls: the
 * variable makes it less. */
static pln_status slack_of(planner *x, pln_ref guard, int64_t *slack,
                           bool *falls) {
  pln_kind kind = (pln_kind)x->g->nodes[guard].kind;
  const pln_ref *o = refs_of(x, guard);
  bool swapped = kind == PLN_PRIM_GT || kind == PLN_PRIM_GE;
  bool strict = kind == PLN_PRIM_LT || kind == PLN_PRIM_GT;
  pln_term less, more;
  int64_t most;
  PLN_TRY(pln_analyzer_import(x->a, x->g, o[swapped], &less));
  PLN_TRY(pln_analyzer_import(x->a, x->g, o[!swapped], &more));
  pln_term rest = pln_simplify_term(x->a, pln_sub(x->a, more, less), 2);
  PLN_TRY(x->a->status);
  PLN_TRY(pln_analyzer_const_int_bound(x->a, rest, slack, &most));
  *falls = (x->dep[o[swapped]] & UNIT) != 0;
  if (*slack > -INT32_MAX && *slack < INT32_MAX)
    *slack -= strict;
  else
    *slack = -NEVER;
  return PLN_OK;
}

/* The rounds [*begin, *end) in which all guards hold. */
static pln_status limit_rounds(planner *x, pln_ref loop, int64_t *begin,
                               int64_t *end) {
  pln_term var, zero, one, extent;
  int64_t slack;
  bool falls;
  PLN_TRY(pln_analyzer_import(
      x->a, x->g, x->g->scopes[x->g->nodes[loop].data].begin, &var));
  PLN_TRY(pln_analyzer_import(x->a, x->g, refs_of(x, loop)[1], &extent));
  zero = pln_const_like(x->a, var, 0);
  one = pln_const_like(x->a, var, 1);
  PLN_TRY(x->a->status);
  PLN_TRY(pln_analyzer_bind_range(x->a, var, zero, one, true));
  for (uint32_t i = 0; i < x->n_guards; i++) {
    PLN_TRY(slack_of(x, x->guards[i], &slack, &falls));
    if (falls && slack + 1 < *end)
      *end = slack + 1;
    if (!falls && -slack > *begin)
      *begin = -slack;
  }
  return pln_analyzer_bind_range(x->a, var, zero, extent, true);
}

/* As few vectors and rounds behind them as can be; most rounds become vectors.
 */
static pln_outer_loop lanes_of(const planner *x, int64_t begin, int64_t end,
                               int64_t extent) {
  uint32_t width = (uint32_t)(x->vector_bytes / x->bytes);
  pln_outer_loop best = {0};
  int64_t least = end - begin;
  for (uint32_t n = width * MOST_VECTORS; width > 1 && n >= width; n /= 2) {
    int64_t vectors = (end - begin) / n, cost = vectors + (end - begin) % n;
    if (2 * vectors * n < extent || vectors < 1 || cost >= least)
      continue;
    least = cost;
    best = (pln_outer_loop){n, begin, vectors, begin + vectors * n < extent};
  }
  return best;
}

static pln_status choose_lanes(planner *x, pln_ref loop) {
  const pln_ref *o = refs_of(x, loop);
  const pln_node *n = &x->g->nodes[o[1]];
  uint32_t width = (uint32_t)(x->vector_bytes / x->bytes);
  int64_t begin = 0, extent = (int64_t)pln_imm_bits(n), end = extent;
  if (n->kind != PLN_INT_IMM) {
    if (x->n_guards == 0 && width > 1)
      x->plan->loops[loop] =
          (pln_outer_loop){width * MOST_VECTORS / 2, 0, -1, true};
    return PLN_OK;
  }
  if (x->n_guards > 0 && !pln_is_int(x->g, o[0], 0))
    return PLN_OK;
  if (x->n_guards > 0)
    PLN_TRY(limit_rounds(x, loop, &begin, &end));
  if (begin < end)
    x->plan->loops[loop] = lanes_of(x, begin, end, extent);
  for (uint32_t i = 0; x->plan->loops[loop].lanes && i < x->n_guards; i++)
    x->plan->guard_of[x->guards[i]] = loop + 1;
  return PLN_OK;
}

static pln_status plan_loop(planner *x, pln_ref loop) {
  const pln_node *n = &x->g->nodes[loop];
  pln_ref begin = x->g->scopes[n->data].begin;
  if (n->count != 2 || pln_for_kind_of(x->g, loop) != PLN_FOR_SERIAL ||
      loop - begin > MOST_NODES)
    return PLN_OK;
  x->n_stores = x->n_loads = x->bytes = x->n_guards = 0;
  x->has_loop = x->has_neighbours = false;
  bool fits =
      note_body(x, loop) && x->has_loop && x->has_neighbours && x->n_stores > 0;
  if (fits)
    PLN_TRY(check_rounds(x, &fits));
  return fits ? choose_lanes(x, loop) : PLN_OK;
}

/* ----------------------------------------------------------------- the plan */

/* tir.VectorizeLoop would take loops that somebody marked, too. */
static bool has_marked_loop(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_FOR &&
        pln_for_kind_of(g, ref) == PLN_FOR_VECTORIZED)
      return true;
  return false;
}

/* Without tir.noalias any two buffers may share elements. */
static bool may_alias(const pln_graph *g) {
  return !pln_attrs_int(g->engine, g->nodes[g->root].attrs, "tir.noalias", 1);
}

/* Ranges and values are those of variables that are bound once. */
static pln_status binds_once(const pln_graph *g, bool *once) {
  pln_idmap *seen = NULL;
  pln_status status = pln_idmap_new(g->engine, &seen);
  *once = true;
  for (pln_scope i = 0; status == PLN_OK && i < g->n_scopes; i++)
    for (uint32_t k = 0; status == PLN_OK && k < g->scopes[i].n_params; k++) {
      const pln_node *var = &g->nodes[g->scopes[i].begin + k];
      if (var->kind != PLN_VAR)
        continue;
      *once &= pln_idmap_get(seen, var->data) == 0;
      status = pln_idmap_set(seen, var->data, 1);
    }
  if (seen)
    pln_idmap_free(seen);
  return status;
}

static pln_status begin(planner *x) {
  pln_engine *e = x->g->engine;
  size_t n = x->g->n_nodes;
  x->dep = pln_mem_zeroed(e, n * sizeof *x->dep);
  x->plan->loops = pln_mem_zeroed(e, n * sizeof *x->plan->loops);
  x->plan->guard_of = pln_mem_zeroed(e, n * sizeof *x->plan->guard_of);
  if (!x->dep || !x->plan->loops || !x->plan->guard_of)
    return pln_nomem(e);
  PLN_TRY(pln_analyzer_new(e, &x->a));
  PLN_TRY(bind_loops(x));
  return bind_lets(x);
}

/* Inner loops come first, so that the innermost one that can be is marked. */
static pln_status plan_all(planner *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    if (x->g->nodes[ref].kind != PLN_FOR)
      continue;
    PLN_TRY(plan_loop(x, ref));
    x->plan->any |= x->plan->loops[ref].lanes != 0;
  }
  return PLN_OK;
}

pln_status pln_outer_plan_make(pln_outer_plan *plan, const pln_graph *function,
                               int64_t vector_bytes) {
  planner x = {.g = function, .plan = plan, .vector_bytes = vector_bytes};
  pln_engine *e = function->engine;
  bool once;
  *plan = (pln_outer_plan){.graph = function};
  if (!pln_has_kind(function, PLN_FOR) || may_alias(function) ||
      has_marked_loop(function))
    return PLN_OK;
  PLN_TRY(binds_once(function, &once));
  if (!once)
    return PLN_OK;
  pln_status status = begin(&x);
  if (status == PLN_OK)
    status = plan_all(&x);
  pln_mem_free(e, x.dep, function->n_nodes * sizeof *x.dep);
  if (x.a)
    pln_analyzer_free(x.a);
  if (status != PLN_OK)
    pln_outer_plan_free(plan);
  return status;
}

void pln_outer_plan_free(pln_outer_plan *plan) {
  pln_engine *e = plan->graph->engine;
  size_t n = plan->graph->n_nodes;
  pln_mem_free(e, plan->loops, n * sizeof *plan->loops);
  pln_mem_free(e, plan->guard_of, n * sizeof *plan->guard_of);
  *plan = (pln_outer_plan){.graph = plan->graph};
}
