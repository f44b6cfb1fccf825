/* relay.c: Relay text from files and strings, for scripts. Failures are
 * expected here: nil and a diagnostic, the first of the text, with the others
 * as notes.
 */

#include "lua/binding.h"

static size_t begin(pln_lua *b) {
  if (b->depth == 0)
    pln_diag_clear(b->engine);
  return pln_diag_count(b->engine);
}

/* parse(text [, name]) -> Module, or nil and a diagnostic */
static int text_parse(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_slice text;
  text.data = luaL_checklstring(L, 1, &text.size);
  const char *name = luaL_optstring(L, 2, NULL);
  int tries = 0;
  pln_status status;
  pln_module **box = pln_lua_new_module(L);
  size_t mark = begin(b);
  do
    status = pln_parse_module(b->engine, text, name, box);
  while (pln_lua_retry(L, b, status, &tries));
  return status == PLN_OK ? 1 : pln_lua_fail_first(L, b, mark, status);
}

/* parse_expr(text [, name]) -> Node, or nil and a diagnostic */
static int text_parse_expr(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_slice text;
  text.data = luaL_checklstring(L, 1, &text.size);
  const char *name = luaL_optstring(L, 2, NULL);
  int tries = 0;
  pln_status status;
  pln_lua_graph *box = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  size_t mark = begin(b);
  do
    status = pln_parse_expr(b->engine, text, name, &box->graph);
  while (pln_lua_retry(L, b, status, &tries));
  if (status != PLN_OK)
    return pln_lua_fail_first(L, b, mark, status);
  pln_lua_push_node(L, lua_gettop(L), pln_graph_root(box->graph));
  return 1;
}

/* load(path) -> Module, or nil and a diagnostic */
static int text_load(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  const char *path = luaL_checkstring(L, 1);
  int tries = 0;
  pln_status status;
  pln_module **box = pln_lua_new_module(L);
  size_t mark = begin(b);
  do
    status = pln_parse_file(b->engine, path, box);
  while (pln_lua_retry(L, b, status, &tries));
  return status == PLN_OK ? 1 : pln_lua_fail_first(L, b, mark, status);
}

/* save(mod, path) -> true, or nil and a diagnostic */
static int text_save(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_module *module = pln_lua_check_module(L, 1);
  const char *path = luaL_checkstring(L, 2);
  int tries = 0;
  pln_status status;
  size_t mark = begin(b);
  do
    status = pln_print_file(module, path);
  while (pln_lua_retry(L, b, status, &tries));
  if (status != PLN_OK)
    return pln_lua_fail_first(L, b, mark, status);
  lua_pushboolean(L, true);
  return 1;
}

/* text_embedded(mod) -> text, with all constants in it */
static int text_embedded(lua_State *L) {
  pln_lua *b = pln_lua_here(L);
  pln_module *module = pln_lua_check_module(L, 1);
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b, pln_print_module_embedded(module, pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

static const luaL_Reg functions[] = {{"text_parse", text_parse},
                                     {"text_embedded", text_embedded},
                                     {"text_parse_expr", text_parse_expr},
                                     {"text_load", text_load},
                                     {"text_save", text_save},
                                     {NULL, NULL}};

void pln_lua_open_relay(lua_State *L) {
  pln_lua_functions(L, functions);
}
