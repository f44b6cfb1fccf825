/* known_reducers.c: recognises the reductions that blocks of TIR write as an
 * init and an update, and builds their CommReducers (thread_reduction.h).
 *
 * Called by thread_reduction.c and lower_cross_thread_reduction.c. A reducer is
 * a row: what its values begin with, and for each value a pattern in prefix
 * notation, which both reads and builds.
 *
 *     with T.init(): B[i] = 0
 *     B[i] = B[i] + A[i, k]      =>   comm_reducer(lambda x, y: x + y, [0])
 *
 * Semantics: the registered reducers of TVM (reducer registry of
 * tir/schedule). */

#include "lower/thread/thread_reduction.h"

typedef enum start_value { ZERO, ONE, LEAST, GREATEST, MINUS_ONE } start_value;

/* Tokens of a pattern besides kinds: left and right variables. */
enum { X0 = 0x80, X1, Y0, Y1 };

enum { MOST_TOKENS = 16 };

typedef struct pln_reducer_row {
  uint32_t n;
  start_value starts[PLN_MOST_COMBINED];
  uint8_t patterns[PLN_MOST_COMBINED][MOST_TOKENS];
} pln_reducer_row;

static const pln_reducer_row rows[] = {
    {1, {ZERO}, {{PLN_PRIM_ADD, X0, Y0}}},
    {1, {ONE}, {{PLN_PRIM_MUL, X0, Y0}}},
    {1, {GREATEST}, {{PLN_PRIM_MIN, X0, Y0}}},
    {1, {LEAST}, {{PLN_PRIM_MAX, X0, Y0}}},
    {2, {ZERO, ZERO}, {{PLN_PRIM_ADD, X0, Y0}, {PLN_PRIM_ADD, X1, Y1}}},
    {2,
     {MINUS_ONE, LEAST},
     {{PLN_SELECT, PLN_PRIM_GE, X1, Y1, X0, Y0},
      {PLN_SELECT, PLN_PRIM_GE, X1, Y1, X1, Y1}}},
    {2,
     {MINUS_ONE, LEAST},
     {{PLN_SELECT, PLN_PRIM_OR, PLN_PRIM_GT, X1, Y1, PLN_PRIM_AND, PLN_PRIM_EQ,
       X1, Y1, PLN_PRIM_LT, X0, Y0, X0, Y0},
      {PLN_SELECT, PLN_PRIM_GT, X1, Y1, X1, Y1}}},
    {2,
     {MINUS_ONE, GREATEST},
     {{PLN_SELECT, PLN_PRIM_LE, X1, Y1, X0, Y0},
      {PLN_SELECT, PLN_PRIM_LE, X1, Y1, X1, Y1}}},
    {2,
     {MINUS_ONE, GREATEST},
     {{PLN_SELECT, PLN_PRIM_OR, PLN_PRIM_LT, X1, Y1, PLN_PRIM_AND, PLN_PRIM_EQ,
       X1, Y1, PLN_PRIM_LT, X0, Y0, X0, Y0},
      {PLN_SELECT, PLN_PRIM_LT, X1, Y1, X1, Y1}}},
};

/* -------------------------------------------------------------- start values
 */

static bool is_float_start(const pln_graph *g, pln_ref ref, start_value start) {
  uint64_t bits = pln_imm_bits(&g->nodes[ref]);
  pln_dtype dtype = pln_prim_dtype(g, ref);
  bool bounded = pln_dtype_is_float(dtype);
  double value, most = pln_float_greatest(dtype);
  memcpy(&value, &bits, sizeof value);
  switch (start) {
  case ZERO: return value == 0;
  case ONE: return value == 1;
  case MINUS_ONE: return value == -1;
  case LEAST: return bounded && value == -most;
  case GREATEST: return bounded && value == most;
  }
  return false;
}

static bool is_int_start(const pln_graph *g, pln_ref ref, start_value start) {
  int64_t value = pln_node_int(g, ref);
  pln_dtype dtype = pln_prim_dtype(g, ref);
  switch (start) {
  case ZERO: return value == 0;
  case ONE: return value == 1;
  case MINUS_ONE: return value == -1;
  case LEAST: return value == INT64_MIN || !pln_holds_int(dtype, value - 1);
  case GREATEST: return value == INT64_MAX || !pln_holds_int(dtype, value + 1);
  }
  return false;
}

static bool is_start(const pln_graph *g, pln_ref ref, start_value start) {
  pln_kind kind = (pln_kind)g->nodes[ref].kind;
  return kind == PLN_INT_IMM     ? is_int_start(g, ref, start)
         : kind == PLN_FLOAT_IMM ? is_float_start(g, ref, start)
                                 : false;
}

/* ------------------------------------------------------------------ patterns
 */

/* What the variables stand for: X0, X1, Y0, Y1; PLN_NONE: nothing yet. */
typedef struct pattern_match {
  const pln_graph *g;
  pln_ref vars[2 * PLN_MOST_COMBINED];
} pattern_match;

static bool match_var(pattern_match *m, uint8_t token, pln_ref ref) {
  pln_ref *var = &m->vars[token - X0];
  if (*var == PLN_NONE)
    *var = ref;
  return *var == ref || pln_same_expr(m->g, *var, ref);
}

/* The operands of kinds in patterns are as many as their fields. */
static bool matches(pattern_match *m, const uint8_t *pattern, pln_ref expr) {
  pln_ref stack[MOST_TOKENS] = {expr};
  uint32_t n = 1;
  for (; n > 0; pattern++) {
    pln_ref ref = stack[--n];
    const pln_node *node = &m->g->nodes[ref];
    if (*pattern >= X0) {
      if (!match_var(m, *pattern, ref))
        return false;
      continue;
    }
    if (node->kind != *pattern || n + node->count > MOST_TOKENS)
      return false;
    for (uint32_t i = node->count; i-- > 0;)
      stack[n++] = pln_operand(m->g, ref, i);
  }
  return true;
}

static uint32_t operands_of(uint8_t kind) {
  return kind >= X0 ? 0 : kind == PLN_SELECT ? 3 : 2;
}

/* A prefix expression is built from its end: operands are on the stack. */
static pln_ref build_pattern(pln_emit *e, const uint8_t *pattern,
                             const pln_ref *vars) {
  pln_ref stack[MOST_TOKENS];
  uint32_t n = 0, length = 0;
  for (uint32_t need = 1; need > 0; length++)
    need += operands_of(pattern[length]) - 1;
  while (length-- > 0) {
    uint8_t token = pattern[length];
    if (token >= X0) {
      stack[n++] = vars[token - X0];
      continue;
    }
    pln_ref operands[3];
    uint32_t count = operands_of(token);
    for (uint32_t i = 0; i < count; i++)
      operands[i] = stack[--n];
    stack[n++] = pln_emit_prim(
        e,
        &(pln_prim){.kind = (pln_kind)token, .n = count, .operands = operands});
  }
  return stack[0];
}

pln_ref pln_emit_reducer(pln_emit *e, const pln_reduction_update *update,
                         const pln_ref *inits) {
  static const char *const names[] = {"x0", "x1", "y0", "y1"};
  pln_ref vars[2 * PLN_MOST_COMBINED], args[4 * PLN_MOST_COMBINED];
  uint32_t n = update->n;
  for (uint32_t i = 0; i < 2 * n; i++) {
    uint32_t side = i / n, value = i % n;
    uint32_t at = side * PLN_MOST_COMBINED + value;
    vars[at] = pln_emit_var(e, names[at], pln_emit_type_of(e, inits[value]));
    args[i] = vars[at];
  }
  for (uint32_t i = 0; i < n; i++) {
    args[2 * n + i] = build_pattern(e, update->reducer->patterns[i], vars);
    args[3 * n + i] = inits[i];
  }
  return pln_emit_prim(
      e, &(pln_prim){.kind = PLN_COMM_REDUCER, .n = 4 * n, .operands = args});
}

/* -------------------------------------------------------------------- updates
 */

/* The stores of a scope in order; *n is more than `most` if there is anything
 * else. */
static void list_stores(const pln_graph *g, pln_scope scope, pln_ref *out,
                        uint32_t most, uint32_t *n) {
  const pln_scope_row *row = &g->scopes[scope];
  *n = 0;
  for (pln_ref ref = row->begin; ref < row->end && *n <= most; ref++) {
    const pln_node *node = &g->nodes[ref];
    if (!pln_is_stmt(node) || !pln_is_seq_element((pln_kind)node->kind) ||
        pln_graph_scope_of(g, ref) != scope)
      continue;
    if (node->kind != PLN_BUFFER_STORE || *n == most)
      *n = most + 1;
    else
      out[(*n)++] = ref;
  }
}

static pln_ref init_of(const pln_graph *g, pln_scope body) {
  const pln_scope_row *row = &g->scopes[body];
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (g->nodes[ref].kind == PLN_BLOCK_INIT &&
        pln_graph_scope_of(g, ref) == body)
      return ref;
  return PLN_NONE;
}

/* The last statement of the body, if it binds a variable. */
static pln_ref let_of(const pln_graph *g, pln_scope scope) {
  pln_ref last = g->scopes[scope].result;
  return last < g->n_nodes && g->nodes[last].kind == PLN_LET_STMT &&
                 pln_graph_scope_of(g, last) == scope
             ? last
             : PLN_NONE;
}

typedef struct let_values {
  pln_ref vars[PLN_MOST_COMBINED], values[PLN_MOST_COMBINED];
  uint32_t n;
} let_values;

/* The innermost body of a chain of lets. */
static pln_scope enter_lets(const pln_graph *g, pln_scope scope,
                            let_values *lets) {
  for (;;) {
    pln_ref let = let_of(g, scope);
    if (let == PLN_NONE || lets->n == PLN_MOST_COMBINED)
      return scope;
    scope = g->nodes[let].data;
    lets->vars[lets->n] = g->scopes[scope].begin;
    lets->values[lets->n++] = pln_operand(g, let, 0);
  }
}

static pln_ref value_of(const let_values *lets, pln_ref value) {
  for (uint32_t i = 0; i < lets->n; i++)
    if (lets->vars[i] == value)
      return lets->values[i];
  return value;
}

/* The same element: a load and a store, or two stores. */
static bool is_element(const pln_graph *g, pln_ref at, pln_ref store) {
  uint32_t first = g->nodes[at].kind == PLN_BUFFER_LOAD ? 1 : 2;
  uint32_t n = g->nodes[store].count - 2;
  if ((g->nodes[at].kind != PLN_BUFFER_LOAD &&
       g->nodes[at].kind != PLN_BUFFER_STORE) ||
      g->nodes[at].count - first != n)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (!pln_same_expr(g, pln_operand(g, at, first + i),
                       pln_operand(g, store, 2 + i)))
      return false;
  return true;
}

static bool fits_row(const pln_graph *g, const pln_reducer_row *row,
                     const let_values *lets, pln_reduction_update *out) {
  pattern_match m = {g, {PLN_NONE, PLN_NONE, PLN_NONE, PLN_NONE}};
  if (row->n != out->n)
    return false;
  for (uint32_t i = 0; i < row->n; i++)
    if (!is_start(g, out->inits[i], row->starts[i]) ||
        !matches(&m, row->patterns[i],
                 value_of(lets, pln_operand(g, out->stores[i], 1))))
      return false;
  for (uint32_t i = 0; i < row->n; i++) {
    pln_ref own = m.vars[i];
    if (!is_element(g, own, out->stores[i]) ||
        g->nodes[own].kind != PLN_BUFFER_LOAD ||
        pln_operand(g, own, 0) != pln_operand(g, out->stores[i], 0))
      return false;
    out->terms[i] = m.vars[PLN_MOST_COMBINED + i];
  }
  return true;
}

/* Several values are all computed before they are stored: the stores in the
 * order of the variables. False if they are no such stores. */
static bool order_stores(const pln_graph *g, const let_values *lets,
                         pln_reduction_update *u) {
  pln_ref ordered[PLN_MOST_COMBINED] = {PLN_NONE, PLN_NONE};
  if (u->n == 1)
    return true;
  for (uint32_t i = 0; i < u->n; i++)
    for (uint32_t k = 0; k < lets->n; k++)
      if (pln_operand(g, u->stores[i], 1) == lets->vars[k])
        ordered[k] = u->stores[i];
  memcpy(u->stores, ordered, sizeof ordered);
  return ordered[0] != PLN_NONE && ordered[1] != PLN_NONE;
}

/* The init of each result, of the same element. */
static bool order_inits(const pln_graph *g, pln_reduction_update *u,
                        const pln_ref *inits) {
  for (uint32_t i = 0; i < u->n; i++) {
    u->inits[i] = PLN_NONE;
    for (uint32_t k = 0; k < u->n; k++)
      if (pln_operand(g, inits[k], 0) == pln_operand(g, u->stores[i], 0) &&
          is_element(g, inits[k], u->stores[i]))
        u->inits[i] = pln_operand(g, inits[k], 1);
    if (u->inits[i] == PLN_NONE || !is_element(g, u->stores[i], u->stores[0]))
      return false;
  }
  return true;
}

pln_status pln_reduction_update_read(const pln_graph *g, pln_ref block,
                                     pln_reduction_update *out) {
  pln_scope body = g->nodes[block].data;
  let_values lets = {.n = 0};
  pln_ref inits[PLN_MOST_COMBINED], init = init_of(g, body);
  uint32_t n_inits = 0;
  pln_scope inner = enter_lets(g, body, &lets);
  *out = (pln_reduction_update){0};
  list_stores(g, inner, out->stores, PLN_MOST_COMBINED, &out->n);
  if (init != PLN_NONE)
    list_stores(g, g->nodes[init].data, inits, PLN_MOST_COMBINED, &n_inits);
  bool known = out->n > 0 && out->n <= PLN_MOST_COMBINED && n_inits == out->n &&
               order_stores(g, &lets, out) && order_inits(g, out, inits);
  for (size_t i = 0; known && !out->reducer && i < PLN_COUNT(rows); i++)
    if (fits_row(g, &rows[i], &lets, out))
      out->reducer = &rows[i];
  if (out->reducer)
    return PLN_OK;
  return pln_diag_error(
      g->engine, PLN_ERR_ARGUMENT, NULL,
      "block '%s' is no known reduction: a sum, product, minimum, maximum, or "
      "the place of one, of what its init begins with",
      pln_attrs_string(g->engine, g->nodes[block].attrs, "name_hint", "").data);
}
