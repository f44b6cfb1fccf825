/* history.c: the provenance of a node, as scripts read it, and the script line
 * that is recorded for nodes built by scripts. */

#include "ir/graph/graph.h"
#include "lua/binding.h"

enum { MAX_TEXT = 1024 };

/* ------------------------------------------------------------------- reading
 */

static void set_symbol(lua_State *L, const pln_engine *e, const char *key,
                       pln_symbol symbol) {
  if (!symbol)
    return;
  pln_slice text = pln_symbol_text(e, symbol);
  lua_pushlstring(L, text.data, text.size);
  lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, lua_Integer n) {
  if (!n)
    return;
  lua_pushinteger(L, n);
  lua_setfield(L, -2, key);
}

static void set_slice(lua_State *L, const char *key, pln_slice text) {
  if (!text.size)
    return;
  lua_pushlstring(L, text.data, text.size);
  lua_setfield(L, -2, key);
}

/* Appends the source location of `at` to the list on top.  [-0, +0] */
static void add_from(lua_State *L, const pln_graph *g, uint32_t at) {
  char text[MAX_TEXT];
  if (!at || !pln_history_describe(g, at, text, sizeof text))
    return;
  lua_pushstring(L, text);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

static void push_change(lua_State *L, const pln_graph *g,
                        const pln_history_row *row) {
  const pln_engine *e = pln_graph_engine(g);
  lua_createtable(L, 0, 5);
  set_symbol(L, e, "pass", row->pass);
  set_symbol(L, e, "rule", row->rule);
  set_number(L, "run", row->run);
  set_number(L, "application", row->application);
  lua_newtable(L);
  add_from(L, g, row->from);
  add_from(L, g, row->also);
  lua_setfield(L, -2, "from");
}

/* A span that a pass wrote may be any numbers: see
 * CapturePostDfsIndexInSpans. */
int pln_lua_push_span(lua_State *L, const pln_graph *g, pln_ref node) {
  pln_source_span place;
  if (!pln_node_place(g, node, &place, NULL))
    return 0;
  lua_createtable(L, 0, 5);
  set_symbol(L, pln_graph_engine(g), "source", place.source);
  set_number(L, "row", place.row);
  set_number(L, "column", place.column);
  set_number(L, "end_row", place.end_row);
  set_number(L, "end_column", place.end_column);
  return 1;
}

static void push_source(lua_State *L, const pln_graph *g,
                        const pln_history_row *row) {
  const pln_engine *e = pln_graph_engine(g);
  char text[MAX_TEXT];
  lua_createtable(L, 0, 6);
  pln_history_describe(g, row->at, text, sizeof text);
  lua_pushstring(L, text);
  lua_setfield(L, -2, "source");
  set_symbol(L, e, "name", row->name);
  set_slice(L, "node", row->node);
  set_slice(L, "op", row->op);
  if (row->place.source) {
    set_symbol(L, e, "file", row->place.source);
    if (row->place.row > 0) {
      set_number(L, "line", row->place.row);
      set_number(L, "column", (int32_t)row->place.column);
    }
  } else if (row->line) {
    set_symbol(L, e, "file", row->script);
    set_number(L, "line", row->line);
  } else if (row->file) {
    lua_pushstring(L, row->file);
    lua_setfield(L, -2, "file");
  }
}

int pln_lua_node_history(lua_State *L) {
  pln_lua_node *node = luaL_checkudata(L, 1, PLN_LUA_NODE);
  const pln_graph *g = pln_lua_graph_of(L, node->graph);
  uint32_t at = pln_node_history(g, node->ref);
  lua_newtable(L);
  for (lua_Integer i = 1; at; i++) {
    pln_history_row row;
    at = pln_history_next(g, at, &row);
    if (row.is_source)
      push_source(L, g, &row);
    else
      push_change(L, g, &row);
    lua_rawseti(L, -2, i);
  }
  return 1;
}

/* ------------------------------------------------------------------- writing
 */

void pln_lua_set_source_line(lua_State *L, pln_lua *b, pln_builder *builder) {
  lua_Debug ar;
  pln_symbol script;
  uint32_t row;
  pln_builder_origin(builder, 0);
  if (!pln_lua_caller(L, &ar))
    return;
  pln_lua_must(L, b,
               pln_symbol_intern(b->engine, pln_text(ar.short_src), &script));
  pln_origins *origins = pln_builder_origins(builder);
  if (!origins)
    pln_lua_raise(L, b, pln_nomem(b->engine));
  pln_lua_must(
      L, b, pln_origins_line(origins, script, (uint32_t)ar.currentline, &row));
  pln_lua_must(L, b, pln_origins_step(origins, row, 0, &row));
  pln_builder_origin(builder, row);
}
