/* bounds.c: linear inequalities, regions and sets of the analyzer, for scripts.
 */

#include "lua/arith/terms.h"

/* A system: relations, variables, ranges, from argument 2 on. */
typedef struct system_args {
  uint32_t n_relations, n_vars, n_ranges;
  const pln_term *relations, *vars;
  const pln_term_range *ranges;
} system_args;

static system_args check_system(lua_State *L) {
  system_args s;
  lua_settop(L, 5);
  s.relations = pln_lua_push_terms(L, 2, 0, &s.n_relations);
  s.vars = pln_lua_push_terms(L, 3, 0, &s.n_vars);
  s.ranges = pln_lua_push_ranges(L, 4, &s.n_ranges);
  return s;
}

/* A result of the engine, which outlives an error of Lua. */
typedef struct result_box {
  pln_analyzer *analyzer;
  pln_linear_bounds bounds;
  pln_linear_ranges ranges;
} result_box;

#define RESULT "perilune.LinearResult"

static int result_gc(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  result_box *box = luaL_checkudata(L, 1, RESULT);
  if (b->engine && box->analyzer) {
    pln_linear_bounds_free(box->analyzer, &box->bounds);
    pln_linear_ranges_free(box->analyzer, &box->ranges);
  }
  box->analyzer = NULL;
  return 0;
}

/* A box that keeps the analyzer at 1.  [-0, +1] */
static result_box *push_result(lua_State *L) {
  pln_analyzer *a = pln_lua_check_analyzer(L);
  result_box *box = pln_lua_userdata(L, RESULT, sizeof *box, 1);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  box->analyzer = a;
  return box;
}

static void push_field(lua_State *L, const char *name, uint32_t n,
                       const pln_term *terms) {
  pln_lua_push_term_list(L, n, terms);
  lua_setfield(L, -2, name);
}

static void push_group(lua_State *L, const pln_linear_bounds *b, uint32_t i) {
  pln_group_bounds g = b->groups[i];
  const pln_term *t = b->terms + g.first;
  lua_createtable(L, 0, 4);
  lua_pushinteger(L, g.coef);
  lua_setfield(L, -2, "coef");
  push_field(L, "lower", g.n_lower, t);
  push_field(L, "equal", g.n_equal, t + g.n_lower);
  push_field(L, "upper", g.n_upper, t + g.n_lower + g.n_equal);
}

/* solve_inequalities(relations, vars, ranges) -> bounds of each variable,
 * relations */
int pln_lua_solve_inequalities(lua_State *L) {
  system_args s = check_system(L);
  result_box *box = push_result(L);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_solve_linear_inequalities(
                   box->analyzer, s.n_relations, s.relations, s.n_vars, s.vars,
                   s.n_ranges, s.ranges, &box->bounds));
  lua_createtable(L, (int)s.n_vars, 0);
  for (uint32_t i = 0; i < box->bounds.n_groups; i++) {
    push_group(L, &box->bounds, i);
    lua_rawseti(L, -2, i + 1);
  }
  pln_lua_push_term_list(L, box->bounds.n_relations, box->bounds.relations);
  return 2;
}

static void push_ranges(lua_State *L, const pln_linear_ranges *r) {
  lua_createtable(L, 3 * (int)r->n_ranges, 0);
  for (uint32_t i = 0; i < r->n_ranges; i++) {
    pln_term_range x = r->ranges[i];
    pln_term row[] = {x.var, x.min, x.extent};
    for (int k = 0; k < 3; k++) {
      lua_pushinteger(L, row[k]);
      lua_rawseti(L, -2, 3 * (lua_Integer)i + k + 1);
    }
  }
}

/* solve_to_range(relations, vars, ranges, deskew) -> { to_new =, new_vars =,
 * to_old =, ranges =, relations = }, or nil */
int pln_lua_solve_to_range(lua_State *L) {
  system_args s = check_system(L);
  bool deskew = lua_toboolean(L, 5);
  result_box *box = push_result(L);
  pln_linear_ranges *r = &box->ranges;
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_solve_inequalities_to_range(
                   box->analyzer, s.n_relations, s.relations, s.n_vars, s.vars,
                   s.n_ranges, s.ranges, deskew, r));
  if (!r->solvable)
    return 0;
  lua_createtable(L, 0, 5);
  push_field(L, "to_new", r->n_vars, r->to_new);
  push_field(L, "new_vars", r->n_new, r->new_vars);
  push_field(L, "to_old", r->n_new, r->to_old);
  push_field(L, "relations", r->n_relations, r->relations);
  push_ranges(L, r);
  lua_setfield(L, -2, "ranges");
  return 1;
}

/* estimate_region(region, ranges, predicate (0: none), bound) -> min, max, min,
 * max, ... in a list; or nil. The region is a list of 1, min, extent. */
int pln_lua_estimate_region(lua_State *L) {
  uint32_t n, n_ranges;
  bool found;
  pln_analyzer *a = pln_lua_check_analyzer(L);
  lua_settop(L, 5);
  pln_term predicate = lua_tointeger(L, 4) == 0 ? 0 : pln_lua_check_term(L, 4);
  lua_Integer bound = luaL_checkinteger(L, 5);
  luaL_argcheck(L, bound >= 0 && bound <= 2, 5, "no such bound");
  const pln_term_range *region = pln_lua_push_ranges(L, 2, &n);
  const pln_term_range *ranges = pln_lua_push_ranges(L, 3, &n_ranges);
  pln_term *out = lua_newuserdatauv(L, (2 * (size_t)n + 1) * sizeof *out, 0);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_estimate_region(a, n, region, n_ranges, ranges,
                                            predicate, (pln_region_bound)bound,
                                            out, &found));
  return found ? pln_lua_push_term_list(L, 2 * n, out) : 0;
}

/* combine_sets(operation, ends) -> min, max */
int pln_lua_combine_sets(lua_State *L) {
  uint32_t n;
  pln_term min, max;
  pln_analyzer *a = pln_lua_check_analyzer(L);
  lua_Integer operation = luaL_checkinteger(L, 2);
  luaL_argcheck(L, operation >= 0 && operation <= 2, 2, "no such operation");
  const pln_term *ends = pln_lua_push_terms(L, 3, 0, &n);
  luaL_argcheck(L, n % 2 == 0, 3, "a set is min and max");
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_combine_sets(a, (pln_set_operation)operation, n / 2,
                                         ends, &min, &max));
  lua_pushinteger(L, min);
  lua_pushinteger(L, max);
  return 2;
}

enum { MOST_SUBEXPRS = 10000 };

/* common_subexprs(term, threshold) -> terms, counts */
int pln_lua_common_subexprs(lua_State *L) {
  uint32_t n;
  pln_analyzer *a = pln_lua_check_analyzer(L);
  pln_term term = pln_lua_check_term(L, 2);
  lua_Integer threshold = luaL_checkinteger(L, 3);
  luaL_argcheck(L, threshold >= 1 && threshold <= UINT32_MAX, 3,
                "1 or more expected");
  pln_term *out = lua_newuserdatauv(L, 2 * MOST_SUBEXPRS * sizeof *out, 0);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_analyzer_common_subexprs(a, term, (uint32_t)threshold,
                                            MOST_SUBEXPRS, out,
                                            out + MOST_SUBEXPRS, &n));
  if (n > MOST_SUBEXPRS)
    return luaL_error(L,
                      "detect_common_subexpr: %d subexpressions, more than "
                      "%d",
                      (int)n, MOST_SUBEXPRS);
  pln_lua_push_term_list(L, n, out);
  pln_lua_push_term_list(L, n, out + MOST_SUBEXPRS);
  return 2;
}

static const luaL_Reg no_methods[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", result_gc}, {NULL, NULL}};

void pln_lua_open_bounds(lua_State *L) {
  pln_lua_class(L, RESULT, no_methods, meta, NULL);
}
