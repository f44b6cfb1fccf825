/* dump.c: Graphviz and JSON output of modules and nodes.
 *
 * Methods of both classes, listed in node.c and module/module.c. */

#include "lua/binding.h"

typedef pln_status (*graph_writer)(const pln_graph *graph, pln_write_fn write,
                                   void *ud);
typedef pln_status (*module_writer)(const pln_module *module,
                                    pln_write_fn write, void *ud);

static int write_node(lua_State *L, graph_writer print) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_check_node(L, 1);
  const pln_graph *graph = pln_lua_push_rooted(L, b, 1)->graph;
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b, print(graph, pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

static int write_module(lua_State *L, module_writer print) {
  pln_lua *b = pln_lua_state_of(L);
  pln_buffer *text = pln_lua_text(L, b);
  const pln_module *module = pln_lua_check_module(L, 1);
  pln_lua_must(L, b, print(module, pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

/* node:dot() -> string */
int pln_lua_node_dot(lua_State *L) {
  return write_node(L, pln_dot_graph);
}

/* node:json() -> string */
int pln_lua_node_json(lua_State *L) {
  return write_node(L, pln_json_graph);
}

/* mod:dot() -> string */
int pln_lua_module_dot(lua_State *L) {
  return write_module(L, pln_dot_module);
}

/* mod:json() -> string */
int pln_lua_module_json(lua_State *L) {
  return write_module(L, pln_json_module);
}
