/* analyzer.c: the analyzer of integer expressions, for scripts.
 *
 * A userdata owns an analyzer; its methods take and give terms, which are
 * integers. lua/perilune/arith converts nodes to terms and back, with TVM's
 * names and defaults. */

#include "lua/arith/terms.h"
#include "lua/graph/constructor.h"

#define ANALYZER "perilune.Analyzer"

typedef struct analyzer_box {
  pln_analyzer *analyzer;
} analyzer_box;

pln_analyzer *pln_lua_check_analyzer(lua_State *L) {
  analyzer_box *box = luaL_checkudata(L, 1, ANALYZER);
  return box->analyzer;
}

static int analyzer_gc(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  analyzer_box *box = luaL_checkudata(L, 1, ANALYZER);
  if (b->engine)
    pln_analyzer_free(box->analyzer);
  box->analyzer = NULL;
  return 0;
}

/* analyzer() -> a new one */
static int core_analyzer(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  analyzer_box *box = pln_lua_large_userdata(L, ANALYZER, sizeof *box, 0);
  pln_lua_must(L, b, pln_analyzer_new(b->engine, &box->analyzer));
  return 1;
}

pln_term pln_lua_check_term(lua_State *L, int arg) {
  lua_Integer term = luaL_checkinteger(L, arg);
  luaL_argcheck(L, term >= 1 && term <= UINT32_MAX, arg, "no such term");
  return (pln_term)term;
}

/* import(node) -> term */
static int analyzer_import(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_analyzer *a = pln_lua_check_analyzer(L);
  pln_term term;
  pln_lua_check_node(L, 2);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_ref ref = pln_lua_part(&m, 2, PLN_DTYPE_NONE);
  pln_lua_must(L, b,
               pln_analyzer_import_built(a, pln_lua_construction_builder(&m),
                                         ref, &term));
  lua_pushinteger(L, term);
  return 1;
}

/* export(term) -> node */
static int analyzer_export(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_analyzer *a = pln_lua_check_analyzer(L);
  pln_term term = pln_lua_check_term(L, 2);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  return pln_lua_finish_construction(
      &m,
      pln_analyzer_export(a, pln_lua_construction_builder(&m), term, &m.ref));
}

/* ------------------------------------------------------------------ context */

/* bind(var, value, override), bind_range(var, min, extent, override) */
static int analyzer_bind(lua_State *L) {
  pln_term var = pln_lua_check_term(L, 2), value = pln_lua_check_term(L, 3);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_bind(pln_lua_check_analyzer(L), var, value,
                                 lua_toboolean(L, 4)));
  return 0;
}

static int analyzer_bind_range(lua_State *L) {
  pln_term var = pln_lua_check_term(L, 2), min = pln_lua_check_term(L, 3);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_bind_range(pln_lua_check_analyzer(L), var, min,
                                       pln_lua_check_term(L, 4),
                                       lua_toboolean(L, 5)));
  return 0;
}

/* update_bound(var, min, max, override), update_modular(var, coeff, base,
 * override) */
static int analyzer_update_bound(lua_State *L) {
  pln_term var = pln_lua_check_term(L, 2);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_update_bound(
                   pln_lua_check_analyzer(L), var, luaL_checkinteger(L, 3),
                   luaL_checkinteger(L, 4), lua_toboolean(L, 5)));
  return 0;
}

static int analyzer_update_modular(lua_State *L) {
  pln_term var = pln_lua_check_term(L, 2);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_update_modular(
                   pln_lua_check_analyzer(L), var, luaL_checkinteger(L, 3),
                   luaL_checkinteger(L, 4), lua_toboolean(L, 5)));
  return 0;
}

/* enter(condition) -> mark; leave(mark) */
static int analyzer_enter(lua_State *L) {
  uint32_t mark;
  pln_term condition = pln_lua_check_term(L, 2);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_enter(pln_lua_check_analyzer(L), condition, &mark));
  lua_pushinteger(L, mark);
  return 1;
}

static int analyzer_leave(lua_State *L) {
  pln_analyzer *a = pln_lua_check_analyzer(L);
  lua_Integer mark = luaL_checkinteger(L, 2);
  luaL_argcheck(L, mark >= 0 && mark < UINT32_MAX, 2, "no such scope");
  pln_analyzer_leave(a, (uint32_t)mark);
  return 0;
}

/* set_extensions(mask) */
static int analyzer_set_extensions(lua_State *L) {
  lua_Integer mask = luaL_checkinteger(L, 2);
  luaL_argcheck(L, mask >= 0 && mask <= PLN_ARITH_EXTENSIONS, 2,
                "no such extension");
  pln_analyzer_set_extensions(pln_lua_check_analyzer(L), (uint32_t)mask);
  return 0;
}

/* ----------------------------------------------------------------- analyses */

static int push_pair(lua_State *L, int64_t x, int64_t y) {
  lua_pushinteger(L, x);
  lua_pushinteger(L, y);
  return 2;
}

/* const_int_bound(term) -> min, max; modular_set(term) -> coeff, base */
static int analyzer_const_int_bound(lua_State *L) {
  int64_t min, max;
  pln_term term = pln_lua_check_term(L, 2);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_const_int_bound(pln_lua_check_analyzer(L), term,
                                            &min, &max));
  return push_pair(L, min, max);
}

static int analyzer_modular_set(lua_State *L) {
  int64_t coeff, base;
  pln_term term = pln_lua_check_term(L, 2);
  pln_lua_must(
      L, pln_lua_state_of(L),
      pln_analyzer_modular_set(pln_lua_check_analyzer(L), term, &coeff, &base));
  return push_pair(L, coeff, base);
}

/* rewrite_simplify(term), canonical_simplify(term), simplify(term, steps) ->
 * term */
static int push_simplified(lua_State *L,
                           pln_status (*simplify)(pln_analyzer *, pln_term,
                                                  pln_term *)) {
  pln_term out, term = pln_lua_check_term(L, 2);
  pln_lua_must(L, pln_lua_state_of(L),
               simplify(pln_lua_check_analyzer(L), term, &out));
  lua_pushinteger(L, out);
  return 1;
}

static int analyzer_rewrite_simplify(lua_State *L) {
  return push_simplified(L, pln_analyzer_rewrite_simplify);
}

static int analyzer_canonical_simplify(lua_State *L) {
  return push_simplified(L, pln_analyzer_canonical_simplify);
}

static int analyzer_simplify(lua_State *L) {
  pln_term out, term = pln_lua_check_term(L, 2);
  lua_Integer steps = luaL_optinteger(L, 3, 2);
  luaL_argcheck(L, steps >= 0 && steps <= 1000, 3, "0 to 1,000 expected");
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_simplify(pln_lua_check_analyzer(L), term,
                                     (uint32_t)steps, &out));
  lua_pushinteger(L, out);
  return 1;
}

/* can_prove(condition, strength), can_prove_equal(x, y) -> bool */
static int analyzer_can_prove(lua_State *L) {
  bool proved;
  pln_term term = pln_lua_check_term(L, 2);
  lua_Integer strength = luaL_optinteger(L, 3, 0);
  luaL_argcheck(L, strength >= 0 && strength <= 1, 3, "0 or 1 expected");
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_can_prove(pln_lua_check_analyzer(L), term,
                                      (uint32_t)strength, &proved));
  lua_pushboolean(L, proved);
  return 1;
}

static int analyzer_can_prove_equal(lua_State *L) {
  bool proved;
  pln_term x = pln_lua_check_term(L, 2), y = pln_lua_check_term(L, 3);
  pln_lua_must(
      L, pln_lua_state_of(L),
      pln_analyzer_can_prove_equal(pln_lua_check_analyzer(L), x, y, &proved));
  lua_pushboolean(L, proved);
  return 1;
}

/* --------------------------------------------------------------------- sets */

static pln_term item_at(lua_State *L, int arg, lua_Integer i) {
  int ok;
  lua_rawgeti(L, arg, i);
  lua_Integer term = lua_tointegerx(L, -1, &ok);
  luaL_argcheck(L, ok && term >= 1 && term <= UINT32_MAX, arg, "no such term");
  lua_pop(L, 1);
  return (pln_term)term;
}

pln_term *pln_lua_push_terms(lua_State *L, int arg, uint32_t more,
                             uint32_t *n) {
  luaL_checktype(L, arg, LUA_TTABLE);
  size_t size = lua_rawlen(L, arg);
  luaL_argcheck(L, size <= 1000000, arg, "too many");
  *n = (uint32_t)size;
  pln_term *out = lua_newuserdatauv(L, (size + more) * sizeof *out + 1, 0);
  for (uint32_t i = 0; i < size; i++)
    out[i] = item_at(L, arg, i + 1);
  return out;
}

/* The same for { var, min, max, var, min, max, ... }.  [-0, +1] */
static pln_term_domain *push_domains(lua_State *L, int arg, uint32_t *n) {
  pln_term *terms = pln_lua_push_terms(L, arg, 0, n);
  luaL_argcheck(L, *n % 3 == 0, arg, "a domain is a variable, min and max");
  *n /= 3;
  pln_term_domain *out = lua_newuserdatauv(L, *n * sizeof *out + 1, 0);
  for (uint32_t i = 0; i < *n; i++)
    out[i] =
        (pln_term_domain){terms[3 * i], terms[3 * i + 1], terms[3 * i + 2]};
  lua_remove(L, -2);
  return out;
}

/* int_set(term, domains, bound) -> min, max */
static int analyzer_int_set(lua_State *L) {
  uint32_t n;
  pln_term min, max, term = pln_lua_check_term(L, 2);
  pln_analyzer *a = pln_lua_check_analyzer(L);
  lua_settop(L, 4); /* an option that is not given is nil */
  const pln_term_domain *domains = push_domains(L, 3, &n);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_int_set(a, term, n, domains, lua_toboolean(L, 4),
                                    &min, &max));
  return push_pair(L, min, max);
}

/* deduce_bound(var, condition, hints, relaxed) -> min, max */
static int analyzer_deduce_bound(lua_State *L) {
  uint32_t n_hints, n_relaxed;
  pln_term min, max, var = pln_lua_check_term(L, 2),
                     condition = pln_lua_check_term(L, 3);
  pln_analyzer *a = pln_lua_check_analyzer(L);
  lua_settop(L, 5);
  const pln_term_domain *hints = push_domains(L, 4, &n_hints);
  const pln_term_domain *relaxed = push_domains(L, 5, &n_relaxed);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_deduce_bound(a, var, condition, n_hints, hints,
                                         n_relaxed, relaxed, &min, &max));
  return push_pair(L, min, max);
}

int pln_lua_push_term_list(lua_State *L, uint32_t n, const pln_term *terms) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    if (terms[i])
      lua_pushinteger(L, terms[i]);
    else
      lua_pushboolean(L, false);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* linear_equation(term, vars) -> coefficients and the rest, or nil */
static int analyzer_linear_equation(lua_State *L) {
  uint32_t n;
  bool linear;
  pln_term term = pln_lua_check_term(L, 2);
  pln_analyzer *a = pln_lua_check_analyzer(L);
  const pln_term *vars = pln_lua_push_terms(L, 3, 0, &n);
  pln_term *out = lua_newuserdatauv(L, (n + (size_t)1) * sizeof *out, 0);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_linear_equation(a, term, n, vars, out, &linear));
  return linear ? pln_lua_push_term_list(L, n + 1, out) : 0;
}

/* clip_bound(condition, vars) -> min and max of each, or nil */
static int analyzer_clip_bound(lua_State *L) {
  uint32_t n;
  bool found;
  pln_term term = pln_lua_check_term(L, 2);
  pln_analyzer *a = pln_lua_check_analyzer(L);
  const pln_term *vars = pln_lua_push_terms(L, 3, 0, &n);
  pln_term *out = lua_newuserdatauv(L, 2 * (n + (size_t)1) * sizeof *out, 0);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_clip_bound(a, term, n, vars, out, &found));
  return found ? pln_lua_push_term_list(L, 2 * n, out) : 0;
}

/* narrow_predicate(condition, domains) -> condition */
static int analyzer_narrow_predicate(lua_State *L) {
  uint32_t n;
  pln_term out, term = pln_lua_check_term(L, 2);
  pln_analyzer *a = pln_lua_check_analyzer(L);
  const pln_term_domain *domains = push_domains(L, 3, &n);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_narrow_predicate(a, term, n, domains, &out));
  lua_pushinteger(L, out);
  return 1;
}

/* The terms of a solution in memory of Lua, which may fail before the solution
 * is freed: so the memory comes first.  [-0, +1] */
static pln_term *copy_solution(pln_term *out, const pln_linear_solution *s) {
  pln_term *at = out;
  memcpy(at, s->solution, s->n_vars * sizeof *at);
  at += s->n_vars;
  const pln_term *lists[] = {s->new_vars, s->to_old, s->min, s->max};
  for (uint32_t i = 0; i < 4; i++, at += s->n_new)
    if (s->n_new)
      memcpy(at, lists[i], s->n_new * sizeof *at);
  if (s->n_relations)
    memcpy(at, s->relations, s->n_relations * sizeof *at);
  return out;
}

/* solve_equations(relations, vars, domains) -> solution, new_vars, to_old, min,
 * max, relations; or nil if there is none */
static int analyzer_solve_equations(lua_State *L) {
  uint32_t n_relations, n_vars, n_domains;
  pln_analyzer *a = pln_lua_check_analyzer(L);
  pln_linear_solution s;
  lua_settop(L, 4);
  const pln_term *relations = pln_lua_push_terms(L, 2, 0, &n_relations);
  const pln_term *vars = pln_lua_push_terms(L, 3, 0, &n_vars);
  const pln_term_domain *domains = push_domains(L, 4, &n_domains);
  size_t most = 5 * (size_t)n_vars + 2 * (size_t)n_relations +
                2 * (size_t)n_domains + 2 * (size_t)n_vars + 1;
  pln_term *all = lua_newuserdatauv(L, most * sizeof *all, 0);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_solve_linear_equations(a, n_relations, relations,
                                                   n_vars, vars, n_domains,
                                                   domains, &s));
  if (s.solvable)
    copy_solution(all, &s);
  uint32_t n_new = s.n_new, n_rest = s.n_relations;
  bool solvable = s.solvable;
  pln_linear_solution_free(a, &s);
  if (!solvable)
    return 0;
  pln_lua_push_term_list(L, n_vars, all);
  for (uint32_t i = 0; i < 4; i++)
    pln_lua_push_term_list(L, n_new, all + n_vars + i * n_new);
  pln_lua_push_term_list(L, n_rest, all + n_vars + 4 * n_new);
  return 6;
}

/* arith_rules() -> a list of { lhs =, rhs =, guard =, order = } */
static int core_arith_rules(lua_State *L) {
  const pln_arith_rule *rule;
  lua_newtable(L);
  for (uint32_t i = 0; (rule = pln_arith_rule_at(i)) != NULL; i++) {
    lua_createtable(L, 0, 4);
    lua_pushstring(L, rule->lhs);
    lua_setfield(L, -2, "lhs");
    lua_pushstring(L, rule->rhs);
    lua_setfield(L, -2, "rhs");
    lua_pushstring(L, rule->guard);
    lua_setfield(L, -2, "guard");
    lua_pushstring(L, rule->order);
    lua_setfield(L, -2, "order");
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static const luaL_Reg methods[] = {
    {"import", analyzer_import},
    {"export", analyzer_export},
    {"bind", analyzer_bind},
    {"bind_range", analyzer_bind_range},
    {"update_bound", analyzer_update_bound},
    {"update_modular", analyzer_update_modular},
    {"enter", analyzer_enter},
    {"leave", analyzer_leave},
    {"set_extensions", analyzer_set_extensions},
    {"const_int_bound", analyzer_const_int_bound},
    {"modular_set", analyzer_modular_set},
    {"rewrite_simplify", analyzer_rewrite_simplify},
    {"canonical_simplify", analyzer_canonical_simplify},
    {"simplify", analyzer_simplify},
    {"can_prove", analyzer_can_prove},
    {"can_prove_equal", analyzer_can_prove_equal},
    {"int_set", analyzer_int_set},
    {"deduce_bound", analyzer_deduce_bound},
    {"linear_equation", analyzer_linear_equation},
    {"clip_bound", analyzer_clip_bound},
    {"narrow_predicate", analyzer_narrow_predicate},
    {"solve_equations", analyzer_solve_equations},
    {"detect_iter_map", pln_lua_detect_iter_map},
    {"normalize_to_iter_sum", pln_lua_normalize_to_iter_sum},
    {"iter_map_simplify", pln_lua_iter_map_simplify},
    {"subspace_divide", pln_lua_subspace_divide},
    {"iter_map_expr", pln_lua_iter_map_expr},
    {"inverse_iter_map", pln_lua_inverse_iter_map},
    {"solve_inequalities", pln_lua_solve_inequalities},
    {"solve_to_range", pln_lua_solve_to_range},
    {"estimate_region", pln_lua_estimate_region},
    {"combine_sets", pln_lua_combine_sets},
    {"common_subexprs", pln_lua_common_subexprs},
    {"fields", pln_lua_term_fields},
    {"value", pln_lua_term_value},
    {"int", pln_lua_term_int},
    {"binary", pln_lua_term_binary},
    {"select", pln_lua_term_select},
    {"load", pln_lua_term_load},
    {"with_operands", pln_lua_term_with},
    {"replace", pln_lua_term_replace},
    {"parts", pln_lua_term_parts},
    {NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", analyzer_gc}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"analyzer", core_analyzer},
                                     {"arith_rules", core_arith_rules},
                                     {NULL, NULL}};

void pln_lua_open_arith(lua_State *L) {
  pln_lua_class(L, ANALYZER, methods, meta, NULL);
  pln_lua_open_iter_map(L);
  pln_lua_open_bounds(L);
  pln_lua_functions(L, functions);
}
