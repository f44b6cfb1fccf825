/* visit.c: visitors written in Lua, and iterators over nodes.
 *
 * The engine's walker is advanced one step at a time, so that Lua functions run
 * outside of it and an error in one leaves only garbage. */

#include "ir/infer/type_args.h"
#include "lua/binding.h"

#define WALKER "perilune.Walker"

/* User value 1: the box of the walked graph. A walker of types has none. */
typedef struct walker_userdata {
  pln_lua *state;
  pln_walker *walker;
  pln_type_walker *types;
} walker_userdata;

const char *pln_lua_type_kind(pln_type_kind kind) {
  static const char *const names[PLN_N_TYPE_KINDS] = {
      "IncompleteType", "TensorType",   "TupleType",      "FuncType",
      "RefType",        "TypeVar",      "TypeCall",       "SequenceType",
      "OptionalType",   "MapType",      "SparseType",     "OpaqueType",
      "GlobalTypeVar",  "TypeRelation", "IncompleteType", "PrimType",
      "PointerType"};
  return names[kind];
}

/* type_kinds() -> the list of kind names of types, by number */
static int core_type_kinds(lua_State *L) {
  lua_createtable(L, PLN_N_TYPE_KINDS, 0);
  for (int kind = 0; kind < PLN_N_TYPE_KINDS; kind++) {
    lua_pushstring(L, pln_lua_type_kind((pln_type_kind)kind));
    lua_rawseti(L, -2, kind + 1);
  }
  return 1;
}

static int walker_gc(lua_State *L) {
  walker_userdata *slot = lua_touserdata(L, 1);
  if (slot->state && slot->state->engine) {
    pln_walker_free(slot->walker);
    pln_type_walker_free(slot->types);
  }
  slot->walker = NULL;
  slot->types = NULL;
  return 0;
}

pln_lua_graph *pln_lua_push_sealed_graph_of(lua_State *L, pln_lua *b, int arg,
                                            pln_ref *ref) {
  pln_lua_node *node = pln_lua_check_node(L, arg);
  if (node->graph->kind == PLN_LUA_SEALED) {
    lua_getiuservalue(L, arg, 1);
    *ref = node->ref;
    return node->graph;
  }
  pln_lua_graph *slot = pln_lua_push_rooted(L, b, arg);
  *ref = pln_graph_root(slot->graph);
  return slot;
}

/* Pushes a walker that starts at `ref` of the graph box on top.  [-0, +1] */
static pln_walker *push_walker(lua_State *L, pln_lua *b,
                               const pln_lua_graph *graph, pln_ref ref) {
  walker_userdata *slot = pln_lua_userdata(L, WALKER, sizeof *slot, 1);
  slot->state = b;
  lua_pushvalue(L, -2);
  lua_setiuservalue(L, -2, 1);
  pln_lua_must(L, b, pln_walker_new(graph->graph, ref, &slot->walker));
  return slot->walker;
}

static pln_walk_event next(lua_State *L, pln_lua *b, pln_walker *w,
                           pln_ref *node) {
  pln_walk_event event;
  pln_lua_must(L, b, pln_walker_next(w, &event, node));
  return event;
}

/* --------------------------------------------------------------- iterators */

/* Upvalues: 2 the walker, 3 the graph's box. */
static int next_left(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const walker_userdata *slot = lua_touserdata(L, lua_upvalueindex(2));
  pln_walk_event event;
  pln_ref node;
  do {
    event = next(L, b, slot->walker, &node);
  } while (event == PLN_WALK_ENTER);
  if (event == PLN_WALK_DONE)
    return 0;
  pln_lua_push_node(L, lua_upvalueindex(3), node);
  return 1;
}

/* post_order(node) -> iterator over the node and its transitive operands,
 * itself last */
static int core_post_order(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_ref ref;
  lua_settop(L, 1);
  const pln_lua_graph *graph = pln_lua_push_sealed_graph_of(L, b, 1, &ref);
  int at = lua_gettop(L);
  push_walker(L, b, graph, ref);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, -2);
  lua_pushvalue(L, at);
  lua_pushcclosure(L, next_left, 3);
  return 1;
}

/* ---------------------------------------------------------------- visitors */

/* Stack slots of a running visit. */
enum {
  LIST = 1, /* nodes to visit, in order; may grow during the visit */
  ON_ENTER, /* functions by kind number */
  ON_LEAVE,
  ON_TYPE, /* functions by type kind number, or nil */
  WALKERS, /* by graph box: its walker, which knows what was visited */
  VISIT,   /* the function that appends a node to the list */
  GRAPH,   /* of the current walk */
  WALKER_USERDATA,
  TYPES, /* the walker of types, if there is ON_TYPE */
  TOP = TYPES
};

/* visit(node): appends a node to the list, which is upvalue 2 */
static int visit_later(lua_State *L) {
  pln_lua_check_node(L, 1);
  lua_settop(L, 1);
  lua_rawseti(L, lua_upvalueindex(2),
              (lua_Integer)lua_rawlen(L, lua_upvalueindex(2)) + 1);
  return 0;
}

/* Calls the function for the kind of `node`, if there is one, and leaves its
 * result on the stack.  [-0, +1] */
static bool call_for(lua_State *L, int functions, const pln_graph *g,
                     pln_ref node) {
  if (lua_rawgeti(L, functions, (lua_Integer)pln_node_kind(g, node) + 1) ==
      LUA_TNIL) {
    lua_pop(L, 1);
    return false;
  }
  pln_lua_push_node(L, GRAPH, node);
  lua_pushvalue(L, VISIT);
  lua_call(L, 2, 1);
  return true;
}

static void walk_type(lua_State *L, pln_lua *b, pln_type type) {
  pln_type_walker *w = ((walker_userdata *)lua_touserdata(L, TYPES))->types;
  bool done = false;
  pln_lua_must(L, b, pln_type_walker_add(w, type));
  while (!done) {
    pln_lua_must(L, b, pln_type_walker_next(w, &type, &done));
    lua_Integer i =
        done ? 0 : (lua_Integer)pln_type_get_kind(b->engine, type) + 1;
    if (lua_rawgeti(L, ON_TYPE, i) != LUA_TNIL) {
      pln_lua_push_type(L, b, type);
      lua_call(L, 1, 0);
    }
    lua_settop(L, TOP);
  }
}

/* Visits the declared types of a node, not the inferred ones, before the node
 * is left. */
static void walk_types(lua_State *L, pln_lua *b, const pln_graph *g,
                       pln_ref node) {
  pln_kind kind = pln_node_kind(g, node);
  if (kind == PLN_VAR || kind == PLN_FUNCTION || kind == PLN_GLOBAL_VAR ||
      kind == PLN_CONSTRUCTOR)
    walk_type(L, b, pln_node_type(g, node));
  if (kind != PLN_CALL || pln_node_op(g, node))
    return;
  const pln_attr *written =
      pln_written_type_args(b->engine, pln_node_attrs(g, node));
  for (uint32_t i = 0; written && i < written->count; i++)
    walk_type(L, b, written->v.types[i]);
}

static void walk_with_functions(lua_State *L, pln_lua *b, const pln_graph *g,
                                pln_walker *w) {
  pln_ref node;
  pln_walk_event event;
  bool types = !lua_isnil(L, TYPES);
  while ((event = next(L, b, w, &node)) != PLN_WALK_DONE) {
    bool enter = event == PLN_WALK_ENTER;
    if (types && !enter)
      walk_types(L, b, g, node);
    if (!call_for(L, enter ? ON_ENTER : ON_LEAVE, g, node))
      continue;
    if (enter && lua_isboolean(L, -1) && !lua_toboolean(L, -1))
      pln_walker_skip(w);
    lua_settop(L, TOP);
  }
}

/* Walks the node on top, except for what was visited in its graph.  [-1, +0] */
static void walk_node(lua_State *L, pln_lua *b) {
  pln_ref ref;
  int arg = lua_gettop(L);
  const pln_lua_graph *graph = pln_lua_push_sealed_graph_of(L, b, arg, &ref);
  lua_copy(L, -1, GRAPH);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, WALKERS) == LUA_TNIL) {
    lua_pop(L, 1);
    push_walker(L, b, graph, ref);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, WALKERS);
  } else {
    const walker_userdata *slot = lua_touserdata(L, -1);
    if (!pln_walker_revisit(slot->walker, ref)) {
      lua_settop(L, TOP);
      return;
    }
  }
  lua_copy(L, -1, WALKER_USERDATA);
  const walker_userdata *slot = lua_touserdata(L, -1);
  lua_settop(L, TOP);
  walk_with_functions(L, b, graph->graph, slot->walker);
}

/* Puts the walker of types into its slot.  [-0, +0] */
static void push_visited_types(lua_State *L, pln_lua *b) {
  walker_userdata *slot = pln_lua_userdata(L, WALKER, sizeof *slot, 0);
  slot->state = b;
  pln_lua_must(L, b, pln_type_walker_new(b->engine, &slot->types));
  lua_replace(L, TYPES);
}

/* visit(nodes, enter, leave [, types]): walks the nodes and those appended
 * during the visit, each node and type once */
static int core_visit(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  for (int i = LIST; i <= ON_LEAVE; i++)
    luaL_checktype(L, i, LUA_TTABLE);
  lua_settop(L, ON_TYPE);
  if (!lua_isnil(L, ON_TYPE))
    luaL_checktype(L, ON_TYPE, LUA_TTABLE);
  lua_newtable(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, LIST);
  lua_pushcclosure(L, visit_later, 2);
  lua_settop(L, TOP);
  if (!lua_isnil(L, ON_TYPE))
    push_visited_types(L, b);
  for (lua_Integer i = 1; lua_rawgeti(L, LIST, i) != LUA_TNIL; i++)
    walk_node(L, b);
  return 0;
}

static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", walker_gc}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"post_order", core_post_order},
                                     {"visit", core_visit},
                                     {"type_kinds", core_type_kinds},
                                     {NULL, NULL}};

void pln_lua_open_visitor(lua_State *L) {
  pln_lua_class(L, WALKER, none, meta, NULL);
  pln_lua_functions(L, functions);
}
