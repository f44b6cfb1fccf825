/* term.c: terms as scripts see them: what a term is made of, and new terms.
 *
 * Methods of analyzers, for algorithms over expressions that are written in
 * Lua (perilune.tir.schedule). Terms are integers; equal expressions are one
 * term. */

#include "arith/arith.h"
#include "lua/arith/terms.h"

static pln_term existing_term(lua_State *L, const pln_analyzer *a, int arg) {
  pln_term t = pln_lua_check_term(L, arg);
  luaL_argcheck(L, t < a->n, arg, "no such term");
  return t;
}

/* The terms of a list, each of which exists.  [-0, +1] */
static pln_term *existing_terms(lua_State *L, const pln_analyzer *a, int arg,
                                uint32_t *n) {
  pln_term *out = pln_lua_push_terms(L, arg, 1, n);
  for (uint32_t i = 0; i < *n; i++)
    luaL_argcheck(L, out[i] < a->n, arg, "no such term");
  return out;
}

/* Pushes a term that was made, or raises what the analyzer failed with. */
static int push_made(lua_State *L, const pln_analyzer *a, pln_term t) {
  pln_lua_must(L, pln_lua_state_of(L), a->status);
  luaL_argcheck(L, t != PLN_NO_TERM, 2, "no term can be made of these");
  lua_pushinteger(L, t);
  return 1;
}

static pln_analyzer *begin(lua_State *L) {
  pln_analyzer *a = pln_lua_check_analyzer(L);
  a->status = PLN_OK;
  return a;
}

/* fields(term) -> the name of its kind, the list of its operands, the name of
 * its dtype without lanes ("handle" of none) */
int pln_lua_term_fields(lua_State *L) {
  pln_analyzer *a = begin(L);
  pln_term t = existing_term(L, a, 2);
  const pln_term_node *n = pln_at(a, t);
  lua_pushstring(L, pln_kind_name((pln_kind)n->kind));
  lua_createtable(L, n->n, 0);
  for (uint32_t i = 0; i < n->n; i++) {
    lua_pushinteger(L, pln_term_operand(a, t, i));
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushstring(L, n->dtype == PLN_DTYPE_NONE
                        ? "handle"
                        : pln_dtype_name((pln_dtype)n->dtype));
  return 3;
}

/* value(term) -> the number of an IntImm or FloatImm, the name of a Var or
 * Buffer, else nil; of a Buffer also its rank */
int pln_lua_term_value(lua_State *L) {
  const pln_analyzer *a = begin(L);
  const pln_term_node *n = pln_at(a, existing_term(L, a, 2));
  pln_slice name;
  switch (n->kind) {
  case PLN_INT_IMM: lua_pushinteger(L, n->u.value); return 1;
  case PLN_FLOAT_IMM: lua_pushnumber(L, n->u.number); return 1;
  case PLN_VAR: name = pln_symbol_text(a->engine, n->b); break;
  case PLN_BUFFER:
    name = pln_symbol_text(a->engine, (pln_symbol)n->u.data);
    break;
  default: return 0;
  }
  lua_pushlstring(L, name.data, name.size);
  lua_pushinteger(L, n->count);
  return 2;
}

/* int(like, value) -> the constant of the dtype of a term */
int pln_lua_term_int(lua_State *L) {
  pln_analyzer *a = begin(L);
  pln_term like = existing_term(L, a, 2);
  return push_made(L, a, pln_const_like(a, like, luaL_checkinteger(L, 3)));
}

static const char *const binary_names[] = {
    "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max",
    "EQ",  "NE",  "LT",  "LE",  "GT",  "GE",       "And",      "Or",  NULL};
_Static_assert(PLN_COUNT(binary_names) == PLN_PRIM_OR - PLN_PRIM_ADD + 2,
               "the names of all binary kinds");

/* binary(name, x, y) -> a term of that kind, with constants folded */
int pln_lua_term_binary(lua_State *L) {
  pln_analyzer *a = begin(L);
  int at = luaL_checkoption(L, 2, NULL, binary_names);
  pln_term x = existing_term(L, a, 3), y = existing_term(L, a, 4);
  luaL_argcheck(L, pln_at(a, x)->dtype == pln_at(a, y)->dtype, 4,
                "operands of one dtype expected");
  return push_made(L, a, pln_fold(a, (pln_kind)(PLN_PRIM_ADD + at), x, y));
}

/* select(condition, x, y) */
int pln_lua_term_select(lua_State *L) {
  pln_analyzer *a = begin(L);
  pln_term c = existing_term(L, a, 2), x = existing_term(L, a, 3);
  return push_made(L, a, pln_fold_select(a, c, x, existing_term(L, a, 4)));
}

/* load(buffer, indices) -> a BufferLoad */
int pln_lua_term_load(lua_State *L) {
  uint32_t n;
  pln_analyzer *a = begin(L);
  pln_term buffer = existing_term(L, a, 2);
  const pln_term *indices = existing_terms(L, a, 3, &n);
  pln_term_node of = *pln_at(a, buffer);
  luaL_argcheck(L, of.kind == PLN_BUFFER, 2, "a Buffer expected");
  luaL_argcheck(L, n == of.count, 3, "an index a dimension expected");
  pln_term *operands = lua_newuserdatauv(L, (n + 1) * sizeof *operands, 0);
  operands[0] = buffer;
  for (uint32_t i = 0; i < n; i++)
    operands[i + 1] = indices[i];
  pln_term_node load = {.kind = PLN_BUFFER_LOAD,
                        .n = (uint16_t)(n + 1),
                        .dtype = (uint8_t)pln_type_dtype(a->engine, of.type),
                        .lanes = (uint16_t)pln_type_number(a->engine, of.type),
                        .type = of.type};
  load.a = operands[0];
  load.b = n > 0 ? operands[1] : 0;
  load.c = n > 1 ? operands[2] : 0;
  return push_made(L, a, pln_term_intern(a, &load, operands));
}

/* with_operands(term, operands) -> a term like it with others, as many */
int pln_lua_term_with(lua_State *L) {
  uint32_t n;
  pln_analyzer *a = begin(L);
  pln_term t = existing_term(L, a, 2);
  const pln_term *operands = existing_terms(L, a, 3, &n);
  luaL_argcheck(L, n == pln_at(a, t)->n, 3, "as many operands expected");
  return push_made(L, a, pln_term_with(a, t, operands));
}

/* replace(term, from, to) -> the term with other parts; nothing is folded */
int pln_lua_term_replace(lua_State *L) {
  uint32_t n, m;
  pln_analyzer *a = begin(L);
  pln_term t = existing_term(L, a, 2);
  const pln_term *from = existing_terms(L, a, 3, &n);
  const pln_term *to = existing_terms(L, a, 4, &m);
  luaL_argcheck(L, n == m, 4, "as many terms expected");
  return push_made(L, a, pln_term_replace(a, t, n, from, to));
}

static pln_kind kind_named(lua_State *L, int arg) {
  const char *name = luaL_checkstring(L, arg);
  uint32_t k = 0;
  while (k < PLN_N_KINDS && strcmp(pln_kind_name((pln_kind)k), name) != 0)
    k++;
  luaL_argcheck(L, k < PLN_N_KINDS, arg, "no such kind");
  return (pln_kind)k;
}

/* The terms of a kind in `t`, counted and, unless `out` is NULL, listed. */
static uint32_t list_parts(lua_State *L, pln_analyzer *a, pln_term t,
                           pln_kind kind, pln_term *out) {
  pln_term_list order;
  uint32_t n = 0;
  if (!pln_term_preorder(a, t, &order))
    pln_lua_must(L, pln_lua_state_of(L), a->status);
  for (uint32_t i = 0; i < order.n; i++) {
    if (pln_term_kind(a, order.items[i]) != kind)
      continue;
    if (out)
      out[n] = order.items[i];
    n++;
  }
  pln_term_list_free(a, &order);
  return n;
}

/* parts(term, kind) -> the terms of that kind in it, each once, a term before
 * its operands; Buffers are not entered. Memory of Lua, which may fail, is
 * taken while no list is held. */
int pln_lua_term_parts(lua_State *L) {
  pln_analyzer *a = begin(L);
  pln_term t = existing_term(L, a, 2);
  pln_kind kind = kind_named(L, 3);
  uint32_t n = list_parts(L, a, t, kind, NULL);
  pln_term *out = lua_newuserdatauv(L, (n + (size_t)1) * sizeof *out, 0);
  list_parts(L, a, t, kind, out);
  return pln_lua_push_term_list(L, n, out);
}
