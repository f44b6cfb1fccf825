/* graph.c: the boxes of graphs, which retain a sealed graph or a builder, and
 * the handles of their nodes.
 *
 * Scripts see only handles. A handle is {box, index}. There is one per node,
 * kept in the box's weak table, so that handles work as table keys. Using a
 * handle of a builder that has ended raises an error. */

#include "lua/binding.h"
#include "lua/graph/mutator.h"

/* ------------------------------------------------------------------- boxes */

static int graph_gc(lua_State *L) {
  pln_lua_graph *slot = lua_touserdata(L, 1);
  if (!slot->state || !slot->state->engine)
    return 0;
  slot->state->L = L;
  pln_lua_end_graph(slot);
  if (slot->graph)
    pln_graph_release(slot->graph);
  slot->graph = NULL;
  return 0;
}

void pln_lua_new_weak(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
}

pln_lua_graph *pln_lua_new_graph(lua_State *L, pln_lua *b,
                                 pln_lua_graph_kind kind) {
  pln_lua_graph *slot =
      pln_lua_large_userdata(L, PLN_LUA_GRAPH, sizeof *slot, 2);
  *slot = (pln_lua_graph){.state = b, .kind = kind};
  pln_lua_new_weak(L);
  lua_setiuservalue(L, -2, 1);
  if (kind == PLN_LUA_FLOATING || kind == PLN_LUA_PASSING) {
    pln_lua_new_weak(L);
    lua_setiuservalue(L, -2, 2);
  }
  if (kind != PLN_LUA_SEALED && kind != PLN_LUA_REWRITING)
    pln_lua_must(L, b, pln_builder_new(b->engine, &slot->builder));
  return slot;
}

void pln_lua_end_graph(pln_lua_graph *slot) {
  if (slot->builder)
    pln_builder_free(slot->builder);
  slot->builder = NULL;
  slot->rewrite = NULL;
}

pln_builder *pln_lua_builder(lua_State *L, pln_lua *b, pln_lua_graph *slot) {
  pln_builder *builder = slot->builder;
  if (builder)
    pln_lua_set_source_line(L, b, builder);
  else if (slot->rewrite)
    builder = pln_rewrite_builder(slot->rewrite);
  if (!builder)
    pln_lua_raise(L, b, pln_nomem(b->engine));
  return builder;
}

pln_lua_graph *pln_lua_push_graph(lua_State *L, pln_lua *b,
                                  const pln_graph *graph) {
  if (pln_lua_registry_get(L, &pln_lua_key.unique, graph) != LUA_TNIL)
    return lua_touserdata(L, -1);
  lua_pop(L, 1);
  pln_lua_graph *slot = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  slot->graph = pln_graph_retain(graph);
  pln_lua_unique(L, graph);
  return slot;
}

static pln_lua_graph *push_floating(lua_State *L, pln_lua *b) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.floating);
  if (lua_rawgeti(L, -1, 1) == LUA_TNIL) {
    lua_pop(L, 1);
    pln_lua_new_graph(L, b, PLN_LUA_FLOATING);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, 1);
  }
  lua_remove(L, -2);
  return lua_touserdata(L, -1);
}

pln_lua_graph *pln_lua_push_target(lua_State *L, pln_lua *b) {
  if (!b->target)
    return push_floating(L, b);
  pln_lua_registry_get(L, &pln_lua_key.anchors, b->target);
  return b->target;
}

pln_lua_graph *pln_lua_push_free(lua_State *L, pln_lua *b) {
  if (!b->free)
    return push_floating(L, b);
  pln_lua_registry_get(L, &pln_lua_key.anchors, b->free);
  return b->free;
}

/* ----------------------------------------------------------------- handles */

const pln_graph *pln_lua_graph_of(lua_State *L, const pln_lua_graph *slot) {
  if (slot->builder)
    return pln_builder_graph(slot->builder);
  if (slot->graph)
    return slot->graph;
  if (slot->rewrite)
    return pln_rewrite_graph(slot->rewrite);
  switch (slot->kind) {
  case PLN_LUA_PASSING:
    pln_lua_error(L, PLN_ERR_ARGUMENT,
                  "stale node: the pass that made it has ended");
    break;
  case PLN_LUA_REWRITING:
    pln_lua_error(L, PLN_ERR_ARGUMENT,
                  "stale node: the rewrite that made it has ended");
    break;
  case PLN_LUA_SCOPED:
    pln_lua_error(L, PLN_ERR_ARGUMENT,
                  "stale node: its builder has been sealed");
    break;
  case PLN_LUA_SEALED:
  case PLN_LUA_FLOATING:
    pln_lua_error(L, PLN_ERR_ARGUMENT, "stale node: its graph has been closed");
    break;
  }
  return NULL;
}

void pln_lua_push_node(lua_State *L, int graph, pln_ref ref) {
  graph = lua_absindex(L, graph);
  lua_getiuservalue(L, graph, 1);
  if (lua_rawgeti(L, -1, (lua_Integer)ref + 1) == LUA_TNIL) {
    lua_pop(L, 1);
    pln_lua_node *node = lua_newuserdatauv(L, sizeof *node, 1);
    *node = (pln_lua_node){lua_touserdata(L, graph), ref};
    lua_pushvalue(L, graph);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, PLN_LUA_NODE);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, (lua_Integer)ref + 1);
  }
  lua_remove(L, -2);
}

void pln_lua_push_root(lua_State *L, pln_lua *b, const pln_graph *graph) {
  pln_lua_push_graph(L, b, graph);
  pln_lua_push_node(L, -1, pln_graph_root(graph));
  lua_remove(L, -2);
}

pln_lua_node *pln_lua_test_node(lua_State *L, int arg) {
  pln_lua_node *node = luaL_testudata(L, arg, PLN_LUA_NODE);
  if (node)
    pln_lua_graph_of(L, node->graph);
  return node;
}

pln_lua_node *pln_lua_check_node(lua_State *L, int arg) {
  pln_lua_node *node = luaL_checkudata(L, arg, PLN_LUA_NODE);
  pln_lua_graph_of(L, node->graph);
  return node;
}

bool pln_lua_is_function(lua_State *L, const pln_lua_node *node) {
  pln_kind kind = pln_node_kind(pln_lua_graph_of(L, node->graph), node->ref);
  return kind == PLN_FUNCTION || kind == PLN_PRIM_FUNC;
}

/* ----------------------------------------------------------------- sealing */

/* Copies a node of another graph into a builder and seals it. */
static pln_status seal_copy(pln_engine *engine, const pln_graph *from,
                            pln_ref node, pln_graph **out) {
  pln_builder *builder;
  pln_ref root;
  PLN_TRY(pln_builder_new(engine, &builder));
  pln_status status = pln_build_import(builder, from, node, &root);
  if (status == PLN_OK)
    status = pln_builder_seal(builder, root, out);
  pln_builder_free(builder);
  return status;
}

static pln_status seal(const pln_lua_node *node, pln_graph **out) {
  pln_lua_graph *slot = node->graph;
  if (slot->kind == PLN_LUA_FLOATING || slot->kind == PLN_LUA_PASSING)
    return pln_builder_seal(slot->builder, node->ref, out);
  const pln_graph *graph = slot->builder   ? pln_builder_graph(slot->builder)
                           : slot->rewrite ? pln_rewrite_graph(slot->rewrite)
                                           : slot->graph;
  return seal_copy(slot->state->engine, graph, node->ref, out);
}

/* Seals `node` into the empty box on top.  [-0, +0] */
static void seal_into(lua_State *L, pln_lua *b, const pln_lua_node *node) {
  pln_lua_graph *slot = lua_touserdata(L, -1);
  pln_lua_node block = *node;
  if (pln_lua_is_let(L, node)) {
    block.graph = pln_lua_push_free(L, b);
    block.ref = pln_lua_let_expr(L, b, block.graph, node);
    lua_pop(L, 1);
  }
  pln_lua_must(L, b, seal(&block, &slot->graph));
  pln_lua_unique(L, slot->graph);
}

pln_lua_graph *pln_lua_push_rooted(lua_State *L, pln_lua *b, int arg) {
  pln_lua_node *node = pln_lua_check_node(L, arg);
  pln_lua_graph *slot = node->graph;
  lua_getiuservalue(L, arg, 1);
  if (slot->kind == PLN_LUA_SEALED && pln_graph_root(slot->graph) == node->ref)
    return slot;
  if (lua_getiuservalue(L, -1, 2) != LUA_TTABLE) {
    lua_pop(L, 2);
    pln_lua_new_graph(L, b, PLN_LUA_SEALED);
    seal_into(L, b, node);
    return lua_touserdata(L, -1);
  }
  if (lua_rawgeti(L, -1, (lua_Integer)node->ref + 1) == LUA_TNIL) {
    lua_pop(L, 1);
    pln_lua_new_graph(L, b, PLN_LUA_SEALED);
    seal_into(L, b, node);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, (lua_Integer)node->ref + 1);
  }
  lua_replace(L, -3);
  lua_pop(L, 1);
  return lua_touserdata(L, -1);
}

static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", graph_gc}, {NULL, NULL}};

void pln_lua_open_graph(lua_State *L) {
  pln_lua_class(L, PLN_LUA_GRAPH, none, meta, NULL);
}
