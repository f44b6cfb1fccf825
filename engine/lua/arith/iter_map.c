/* iter_map.c: iterator maps, for scripts.
 *
 * A map lives as long as a call. It comes and goes as a table
 *
 *     { marks = { { source, sum, extent }, ... },
 *       sums = { { base, mark, lower_factor, extent, scale, mark, ... }, ... }
 * }
 *
 * of terms, and of numbers of marks and sums, which begin with 1; a source or
 * sum that is none is 0. lua/perilune/arith/iter_map.lua makes objects of it.
 */

#include "lua/arith/terms.h"

#define MAP "perilune.IterMap"

typedef struct map_box {
  pln_iter_map *map;
} map_box;

static int map_gc(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  map_box *box = luaL_checkudata(L, 1, MAP);
  if (b->engine)
    pln_iter_map_free(box->map);
  box->map = NULL;
  return 0;
}

/* A new map, whose box keeps the analyzer at 1.  [-0, +1] */
static map_box *push_map(lua_State *L) {
  pln_analyzer *a = pln_lua_check_analyzer(L);
  map_box *box = pln_lua_userdata(L, MAP, sizeof *box, 1);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  pln_lua_must(L, pln_lua_state_of(L), pln_iter_map_new(a, &box->map));
  return box;
}

static void close_map(map_box *box) {
  pln_iter_map_free(box->map);
  box->map = NULL;
}

pln_term_range *pln_lua_push_ranges(lua_State *L, int arg, uint32_t *n) {
  const pln_term *terms = pln_lua_push_terms(L, arg, 0, n);
  luaL_argcheck(L, *n % 3 == 0, arg, "a range is a variable, min and extent");
  *n /= 3;
  pln_term_range *out = lua_newuserdatauv(L, *n * sizeof *out + 1, 0);
  for (uint32_t i = 0; i < *n; i++)
    out[i] = (pln_term_range){terms[3 * i], terms[3 * i + 1], terms[3 * i + 2]};
  lua_remove(L, -2);
  return out;
}

/* ------------------------------------------------------------------ results
 */

static void push_row(lua_State *L, uint32_t n, const lua_Integer *row) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushinteger(L, row[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_marks(lua_State *L, const pln_iter_map *map) {
  lua_newtable(L);
  for (uint32_t i = 0;; i++) {
    pln_iter_mark k = pln_iter_map_mark_at(map, i);
    if (!k.extent)
      return;
    push_row(L, 3,
             (lua_Integer[]){k.source, k.source ? 0 : k.sum + (lua_Integer)1,
                             k.extent});
    lua_rawseti(L, -2, i + 1);
  }
}

static void push_sum(lua_State *L, pln_iter_sum s) {
  lua_createtable(L, 1 + 4 * (int)s.n, 0);
  lua_pushinteger(L, s.base);
  lua_rawseti(L, -2, 1);
  for (uint32_t i = 0; i < s.n; i++) {
    pln_iter_split p = s.splits[i];
    lua_Integer row[] = {p.mark + (lua_Integer)1, p.lower_factor, p.extent,
                         p.scale};
    for (int k = 0; k < 4; k++) {
      lua_pushinteger(L, row[k]);
      lua_rawseti(L, -2, 2 + 4 * (lua_Integer)i + k);
    }
  }
}

/* The table of a map.  [-0, +1] */
static void push_pool(lua_State *L, const pln_iter_map *map) {
  lua_createtable(L, 0, 2);
  push_marks(L, map);
  lua_setfield(L, -2, "marks");
  lua_newtable(L);
  for (uint32_t i = 0;; i++) {
    pln_iter_sum s = pln_iter_map_sum_at(map, i);
    if (!s.base)
      break;
    push_sum(L, s);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "sums");
}

static void push_numbers(lua_State *L, uint32_t n, const uint32_t *numbers) {
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushinteger(L, numbers[i] + (lua_Integer)1);
    lua_rawseti(L, -2, i + 1);
  }
}

/* Texts and terms in turns, false for none. */
static void push_errors(lua_State *L, const pln_iter_map *map) {
  uint32_t n = pln_iter_map_error_count(map);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_iter_error e = pln_iter_map_error_at(map, i);
    const char *texts[] = {e.before, e.middle, e.after};
    pln_term terms[] = {e.x, e.y};
    lua_createtable(L, 5, 0);
    for (int k = 0; k < 5; k++) {
      if (k % 2 == 0 && texts[k / 2])
        lua_pushstring(L, texts[k / 2]);
      else if (k % 2 == 1 && terms[k / 2])
        lua_pushinteger(L, terms[k / 2]);
      else
        lua_pushboolean(L, false);
      lua_rawseti(L, -2, k + 1);
    }
    lua_rawseti(L, -2, i + 1);
  }
}

/* ---------------------------------------------------------------- arguments
 */

/* indices, ranges, predicate (0: none), level, trivial, from argument 2 on. */
typedef struct request {
  uint32_t n, n_ranges;
  const pln_term *indices;
  const pln_term_range *ranges;
  pln_term predicate;
  pln_iter_level level;
  bool trivial;
  uint32_t *numbers; /* room for 2 * n + 2 */
} request;

static request check_request(lua_State *L) {
  request r = {0};
  lua_settop(L, 7);
  r.predicate = lua_tointeger(L, 4) == 0 ? 0 : pln_lua_check_term(L, 4);
  lua_Integer level = luaL_checkinteger(L, 5);
  luaL_argcheck(L, level >= 0 && level <= 2, 5, "no such level");
  r.level = (pln_iter_level)level;
  r.trivial = lua_toboolean(L, 6);
  r.indices = pln_lua_push_terms(L, 2, 0, &r.n);
  r.ranges = pln_lua_push_ranges(L, 3, &r.n_ranges);
  r.numbers =
      lua_newuserdatauv(L, (2 * (size_t)r.n + 2) * sizeof *r.numbers, 0);
  return r;
}

static bool detect(lua_State *L, pln_iter_map *map, const request *r) {
  bool found;
  pln_lua_must(L, pln_lua_state_of(L),
               pln_iter_map_detect(map, r->n, r->indices, r->n_ranges,
                                   r->ranges, r->predicate, r->level,
                                   r->trivial, r->numbers, &found));
  return found;
}

/* detect_iter_map(indices, ranges, predicate, level, trivial) -> pool, sums (or
 * false), errors, padding */
int pln_lua_detect_iter_map(lua_State *L) {
  request r = check_request(L);
  map_box *box = push_map(L);
  bool found = detect(L, box->map, &r);
  push_pool(L, box->map);
  if (found)
    push_numbers(L, r.n, r.numbers);
  else
    lua_pushboolean(L, false);
  push_errors(L, box->map);
  lua_pushinteger(L, pln_iter_map_padding(box->map));
  close_map(box);
  return 4;
}

/* iter_map_simplify(indices, ranges, predicate, level, trivial) -> terms */
int pln_lua_iter_map_simplify(lua_State *L) {
  request r = check_request(L);
  map_box *box = push_map(L);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_iter_map_simplify(box->map, r.n, r.indices, r.n_ranges,
                                     r.ranges, r.predicate, r.level, r.trivial,
                                     r.numbers));
  close_map(box);
  return pln_lua_push_term_list(L, r.n, r.numbers);
}

/* subspace_divide(indices, ranges, predicate, level, trivial, inner) -> pool,
 * marks; or nil */
int pln_lua_subspace_divide(lua_State *L) {
  uint32_t n_inner;
  bool found = false;
  request r = check_request(L);
  const pln_term *inner = pln_lua_push_terms(L, 7, 0, &n_inner);
  uint32_t *marks =
      lua_newuserdatauv(L, (2 * (size_t)r.n + 2) * sizeof *marks, 0);
  map_box *box = push_map(L);
  if (detect(L, box->map, &r))
    pln_lua_must(L, pln_lua_state_of(L),
                 pln_iter_map_divide(box->map, r.n, r.numbers, n_inner, inner,
                                     marks, &found));
  if (found) {
    push_pool(L, box->map);
    push_numbers(L, 2 * r.n + 2, marks);
  }
  close_map(box);
  return found ? 2 : 0;
}

/* normalize_to_iter_sum(expr, ranges) -> pool, sum */
int pln_lua_normalize_to_iter_sum(lua_State *L) {
  uint32_t n, sum;
  pln_term expr = pln_lua_check_term(L, 2);
  const pln_term_range *ranges = pln_lua_push_ranges(L, 3, &n);
  map_box *box = push_map(L);
  pln_lua_must(L, pln_lua_state_of(L),
               pln_iter_map_normalize(box->map, expr, n, ranges, &sum));
  push_pool(L, box->map);
  lua_pushinteger(L, sum + (lua_Integer)1);
  close_map(box);
  return 2;
}

/* --------------------------------------------------------- maps of a script
 */

static lua_Integer field(lua_State *L, int at, lua_Integer i) {
  lua_rawgeti(L, at, i);
  lua_Integer value = lua_tointeger(L, -1);
  lua_pop(L, 1);
  return value;
}

/* A number of marks or sums that was made before. */
static uint32_t made(lua_State *L, const uint32_t *numbers, lua_Integer i,
                     lua_Integer n) {
  luaL_argcheck(L, i >= 1 && i <= n, 2, "a part comes before its user");
  return numbers[i - 1];
}

static pln_term term_field(lua_State *L, int at, lua_Integer i) {
  lua_Integer term = field(L, at, i);
  luaL_argcheck(L, term >= 1 && term <= UINT32_MAX, 2, "no such term");
  return (pln_term)term;
}

/* The row on top is a mark: { 0, source, sum, extent }. */
static uint32_t add_mark(lua_State *L, pln_iter_map *map,
                         const uint32_t *numbers, lua_Integer n) {
  uint32_t out, sum = PLN_NO_ITER;
  int row = lua_gettop(L);
  pln_term source = (pln_term)field(L, row, 2);
  if (!source)
    sum = made(L, numbers, field(L, row, 3), n);
  pln_lua_must(
      L, pln_lua_state_of(L),
      pln_iter_map_mark(map, source, sum, term_field(L, row, 4), &out));
  return out;
}

/* The row on top is a sum: { 1, base, mark, lower_factor, extent, scale, ... }.
 */
static uint32_t add_sum(lua_State *L, pln_iter_map *map,
                        const uint32_t *numbers, lua_Integer n) {
  uint32_t out;
  int row = lua_gettop(L);
  uint32_t parts = (uint32_t)((lua_rawlen(L, row) - 2) / 4);
  pln_iter_split *splits =
      lua_newuserdatauv(L, (parts + (size_t)1) * sizeof *splits, 0);
  for (uint32_t i = 0; i < parts; i++) {
    lua_Integer at = 3 + 4 * (lua_Integer)i;
    splits[i] = (pln_iter_split){
        made(L, numbers, field(L, row, at), n), term_field(L, row, at + 1),
        term_field(L, row, at + 2), term_field(L, row, at + 3)};
  }
  pln_lua_must(
      L, pln_lua_state_of(L),
      pln_iter_map_sum(map, parts, splits, term_field(L, row, 2), &out));
  lua_pop(L, 1);
  return out;
}

/* The numbers of the parts in the list at 2, in order.  [-0, +1] */
static uint32_t *build(lua_State *L, pln_iter_map *map, lua_Integer *n) {
  luaL_checktype(L, 2, LUA_TTABLE);
  *n = (lua_Integer)lua_rawlen(L, 2);
  luaL_argcheck(L, *n <= 1000000, 2, "too many");
  uint32_t *numbers =
      lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *numbers, 0);
  for (lua_Integer i = 0; i < *n; i++) {
    lua_rawgeti(L, 2, i + 1);
    luaL_argcheck(L, lua_istable(L, -1), 2, "a part is a table");
    numbers[i] = field(L, lua_gettop(L), 1) == 0 ? add_mark(L, map, numbers, i)
                                                 : add_sum(L, map, numbers, i);
    lua_pop(L, 1);
  }
  return numbers;
}

/* iter_map_expr(parts, sum) -> term */
int pln_lua_iter_map_expr(lua_State *L) {
  lua_Integer n;
  pln_term out;
  map_box *box = push_map(L);
  const uint32_t *numbers = build(L, box->map, &n);
  uint32_t sum = made(L, numbers, luaL_checkinteger(L, 3), n);
  pln_lua_must(L, pln_lua_state_of(L), pln_iter_map_expr(box->map, sum, &out));
  close_map(box);
  lua_pushinteger(L, out);
  return 1;
}

/* inverse_iter_map(parts, sums, outputs) -> variables, values */
int pln_lua_inverse_iter_map(lua_State *L) {
  lua_Integer n;
  uint32_t n_sums, n_outputs, n_vars = 0;
  map_box *box = push_map(L);
  const uint32_t *numbers = build(L, box->map, &n);
  uint32_t *sums = pln_lua_push_terms(L, 3, 0, &n_sums);
  const pln_term *outputs = pln_lua_push_terms(L, 4, 0, &n_outputs);
  luaL_argcheck(L, n_sums == n_outputs, 4, "one output for each index");
  for (uint32_t i = 0; i < n_sums; i++)
    sums[i] = made(L, numbers, sums[i], n);
  pln_term *vars = lua_newuserdatauv(L, 2 * ((size_t)n + 1) * sizeof *vars, 0);
  pln_term *values = vars + n + 1;
  pln_lua_must(L, pln_lua_state_of(L),
               pln_iter_map_inverse(box->map, n_sums, sums, outputs,
                                    (uint32_t)n, vars, values, &n_vars));
  close_map(box);
  pln_lua_push_term_list(L, n_vars, vars);
  pln_lua_push_term_list(L, n_vars, values);
  return 2;
}

static const luaL_Reg no_methods[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", map_gc}, {NULL, NULL}};

void pln_lua_open_iter_map(lua_State *L) {
  pln_lua_class(L, MAP, no_methods, meta, NULL);
}
