/* explain.c: why rules do not replace a node, for scripts. */

#include "lua/rule/rules.h"

/* The graph of the node at index 2, and the node's number there; a free
 * expression is sealed.  [-0, +1] */
static pln_lua_graph *push_graph_of(lua_State *L, pln_lua *b, pln_ref *node) {
  const pln_lua_node *given = pln_lua_check_node(L, 2);
  pln_lua_graph *slot = given->graph;
  *node = given->ref;
  if (slot->kind == PLN_LUA_SEALED) {
    lua_getiuservalue(L, 2, 1);
    return slot;
  }
  slot = pln_lua_push_rooted(L, b, 2);
  *node = pln_graph_root(slot->graph);
  return slot;
}

static void set_number(lua_State *L, const char *key, uint32_t number) {
  lua_pushinteger(L, number);
  lua_setfield(L, -2, key);
}

static void set_node(lua_State *L, const char *key, int graph, pln_ref node) {
  if (node == PLN_NONE)
    return;
  pln_lua_push_node(L, graph, node);
  lua_setfield(L, -2, key);
}

/* Pushes { rule =, stage =, matched =, total =, first =, last =, root =, node
 * =, path =, reason = }.  [-0, +1] */
static void push_explanation(lua_State *L, int graph,
                             const pln_rule_explanation *x) {
  static const char *const stages[] = {"structure", "attributes", "condition",
                                       "replacement", "applies"};
  lua_createtable(L, 0, 10);
  set_number(L, "rule", x->rule + 1);
  set_number(L, "matched", x->matched);
  set_number(L, "total", x->total);
  if (x->end > x->begin) {
    set_number(L, "first", x->begin + 1);
    set_number(L, "last", x->end);
  }
  lua_pushstring(L, stages[x->stage]);
  lua_setfield(L, -2, "stage");
  lua_pushstring(L, x->reason);
  lua_setfield(L, -2, "reason");
  set_node(L, "root", graph, x->root);
  set_node(L, "node", graph, x->node);
  lua_createtable(L, (int)x->depth, 0);
  for (uint32_t i = 0; i < x->depth; i++) {
    lua_pushinteger(L, x->path[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "path");
}

static lua_Integer int_field(lua_State *L, const char *name,
                             lua_Integer otherwise) {
  lua_getfield(L, 3, name);
  lua_Integer value = luaL_optinteger(L, -1, otherwise);
  lua_pop(L, 1);
  return value;
}

/* set:explain(node, { rule = number, all = boolean, limit = number }) -> a list
 * of explanations, best first. all: of every node in the graph of the node, not
 * of the node itself. */
int pln_lua_rule_set_explain(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_lua_rule_set *box = pln_lua_check_rule_set(L, 1);
  const pln_rule_set *set = box->set;
  pln_lua_rules_run r = {.rewriting = {.state = b, .outer = b->rewriting}};
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 3);
  lua_Integer rule = int_field(L, "rule", 0), limit = int_field(L, "limit", 1);
  luaL_argcheck(L, limit > 0 && limit <= 4096, 3, "limit is 1 to 4096");
  pln_rule_explain explain = {.rule = rule ? (uint32_t)rule - 1 : PLN_NONE,
                              .capacity = (uint32_t)limit};
  lua_getfield(L, 3, "all");
  bool all = lua_toboolean(L, -1);
  lua_settop(L, 3);
  r.rewriting.old = push_graph_of(L, b, &explain.node); /* 4 */
  if (all)
    explain.node = PLN_NONE;
  pln_lua_graph *out = pln_lua_new_graph(L, b, PLN_LUA_SEALED); /* 5 */
  explain.best =
      lua_newuserdatauv(L, explain.capacity * sizeof *explain.best, 0); /* 6 */
  pln_rule_options options = {.opset = int_field(L, "opset", 0),
                              .lenient = !box->own,
                              .lets = pln_lua_rule_lets(L, 3),
                              .explain = &explain,
                              .ud = &r};
  pln_lua_prepare_rules(L, &r, 1);
  pln_lua_must(L, b, pln_lua_run_rules(L, &r, set, &options, &out->graph));
  lua_settop(L, 6);
  lua_createtable(L, (int)explain.n, 0);
  for (uint32_t i = 0; i < explain.n; i++) {
    push_explanation(L, 4, &explain.best[i]);
    lua_rawseti(L, 7, (int)i + 1);
  }
  return 1;
}
