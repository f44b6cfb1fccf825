/* terms.h: what the bindings of the analyzer share: arguments that are
 * analyzers, terms and lists of terms. */

#ifndef PLN_LUA_ARITH_TERMS_H
#define PLN_LUA_ARITH_TERMS_H

#include "lua/binding.h"

/* The analyzer at 1. */
pln_analyzer *pln_lua_check_analyzer(lua_State *L);
pln_term pln_lua_check_term(lua_State *L, int arg);
/* The terms of the list at `arg`, in a userdata with room for more.  [-0, +1]
 */
pln_term *pln_lua_push_terms(lua_State *L, int arg, uint32_t more, uint32_t *n);
/* A list of terms, false for none. Returns 1.  [-0, +1] */
int pln_lua_push_term_list(lua_State *L, uint32_t n, const pln_term *terms);
/* { var, min, extent, var, min, extent, ... } in a userdata.  [-0, +1] */
pln_term_range *pln_lua_push_ranges(lua_State *L, int arg, uint32_t *n);

/* Methods of analyzers. */
int pln_lua_detect_iter_map(lua_State *L);
int pln_lua_normalize_to_iter_sum(lua_State *L);
int pln_lua_iter_map_simplify(lua_State *L);
int pln_lua_subspace_divide(lua_State *L);
int pln_lua_iter_map_expr(lua_State *L);
int pln_lua_inverse_iter_map(lua_State *L);
int pln_lua_solve_inequalities(lua_State *L);
int pln_lua_solve_to_range(lua_State *L);
int pln_lua_estimate_region(lua_State *L);
int pln_lua_combine_sets(lua_State *L);
int pln_lua_common_subexprs(lua_State *L);
int pln_lua_term_fields(lua_State *L);
int pln_lua_term_value(lua_State *L);
int pln_lua_term_int(lua_State *L);
int pln_lua_term_binary(lua_State *L);
int pln_lua_term_select(lua_State *L);
int pln_lua_term_load(lua_State *L);
int pln_lua_term_with(lua_State *L);
int pln_lua_term_replace(lua_State *L);
int pln_lua_term_parts(lua_State *L);

void pln_lua_open_iter_map(lua_State *L);
void pln_lua_open_bounds(lua_State *L);

#endif
