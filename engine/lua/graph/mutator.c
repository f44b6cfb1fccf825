/* mutator.c: mutators: rewriting by Lua functions, one per node kind.
 *
 * A function gets a node of the old graph and returns nil (unchanged), a node,
 * or a number or tensor, which becomes a constant; any other value is an error
 * that names the rule. While it runs, constructors append to the new graph at
 * the current place, and a handle of the old graph stands for its image in the
 * new one. Rewrites nest: a function may rewrite another graph. */

#include "lua/graph/mutator.h"
#include "lua/graph/constructor.h"

#include "ir/provenance/rule_application.h"
#include "ir/rewrite/rewrite.h"

typedef pln_lua_rewriting rewriting;

pln_lua_graph *pln_lua_image(lua_State *L, pln_lua *b, const pln_lua_node *node,
                             pln_ref *out) {
  rewriting *r = b->rewriting;
  while (r && node->graph != r->old)
    r = r->outer;
  if (!r)
    return NULL;
  *out = node->ref == r->at ? *r->image : pln_rewrite_image(r->rw, node->ref);
  if (*out == PLN_NONE)
    luaL_error(L, "that node comes later: it has not been rewritten yet");
  return r->new;
}

/* Pushes the visited node with rewritten operands.  [-0, +1] */
static void push_image(lua_State *L, const rewriting *r) {
  pln_lua_registry_get(L, &pln_lua_key.anchors, r->new);
  pln_lua_push_node(L, -1, *r->image);
  lua_remove(L, -2);
}

/* rebuild() -> the visited node with its rewritten operands */
static int rebuild(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  rewriting *r = b->rewriting;
  if (!r || !r->image)
    return luaL_error(L, "rebuild is called while a node is visited");
  push_image(L, r);
  return 1;
}

/* The rule that the function for the visited node belongs to. */
static const char *rule_at(const rewriting *r) {
  pln_kind kind = pln_node_kind(r->old->graph, r->at);
  return r->name ? r->name : pln_kind_name(kind);
}

/* Raises an error about the answer on top. Names the rule and the location of
 * its function, which is below the answer. */
static void bad_answer(lua_State *L, const char *rule, int function,
                       const char *wanted) {
  lua_Debug ar = {.short_src = "?"};
  const char *got = luaL_typename(L, -1);
  if (luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
    got = lua_tostring(L, -1);
  lua_pushvalue(L, function);
  if (lua_isfunction(L, -1))
    lua_getinfo(L, ">S", &ar);
  luaL_error(L, "%s:%d: rule '%s': %s or nil expected as its answer, got %s",
             ar.short_src, ar.linedefined, rule, wanted, got);
}

/* A number becomes a constant of the dtype of the node that it replaces. */
static pln_ref constant_answer(lua_State *L, const rewriting *r) {
  const pln_graph *g = r->old->graph;
  pln_dtype dtype = pln_type_dtype(r->state->engine, pln_node_type(g, r->at));
  return pln_lua_operand(L, r->state, r->new, -1, dtype);
}

/* Converts an answer to a node. A Let that replaces a Let is that Let, not the
 * rest of its block, which the sweep continues. */
static pln_ref answered(lua_State *L, rewriting *r, int function) {
  const pln_lua_node *node = pln_lua_test_node(L, -1);
  if (lua_type(L, -1) == LUA_TNUMBER || pln_lua_test_tensor(L, -1))
    return constant_answer(L, r);
  if (!node)
    bad_answer(L, rule_at(r), function, "a node, a number, a tensor");
  bool let = pln_node_kind(r->old->graph, r->at) == PLN_LET;
  if (let && node && node->graph == r->old && node->ref == r->at)
    return *r->image;
  if (let && node &&
      node->graph ==
          r->new &&pln_node_kind(pln_lua_graph_of(L, r->new), node->ref) ==
          PLN_LET)
    return node->ref;
  return pln_lua_operand(L, r->state, r->new, -1, PLN_DTYPE_NONE);
}

/* Calls the function for the visited node and converts its answer. */
static int visit_body(lua_State *L) {
  rewriting *r = lua_touserdata(L, 1);
  pln_lua_registry_get(L, &pln_lua_key.anchors, r);
  lua_rawgeti(L, -1, 0);
  lua_rawgeti(L, -2, (int)pln_node_kind(r->old->graph, r->at) + 1);
  int function = lua_gettop(L);
  lua_pushvalue(L, -1);
  pln_lua_push_node(L, function - 1, r->at);
  if (r->post)
    push_image(L, r);
  else
    lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.rebuild);
  lua_call(L, 2, 1);
  if (!lua_isnil(L, -1))
    *r->image = answered(L, r, function);
  return 0;
}

pln_status pln_lua_rewriting_call(rewriting *r, pln_rewrite *rw, pln_ref old,
                                  lua_CFunction body, pln_ref *node) {
  pln_lua *b = r->state;
  pln_ref image = *node;
  r->rw = r->new->rewrite = rw;
  r->at = old;
  r->image = &image;
  b->rewriting = r;
  b->target = r->new;
  pln_status status = pln_lua_protect(b, body, r);
  r->image = NULL;
  b->rewriting = r->outer;
  if (status == PLN_OK)
    *node = image;
  return status;
}

static pln_symbol function_of(const pln_lua *b) {
  return b->run ? pln_run_name(b->run) : 0;
}

static pln_status mutate_node(void *ud, pln_rewrite *rw, pln_ref old,
                              pln_ref *node) {
  rewriting *r = ud;
  pln_engine *e = r->state->engine;
  pln_kind kind = pln_node_kind(r->old->graph, old);
  const char *rule;
  pln_ref image = *node;
  bool allowed = true;
  if (!r->wanted[kind])
    return PLN_OK;
  r->at = old;
  rule = rule_at(r);
  double began = pln_rule_clock(e);
  PLN_TRY(pln_lua_rewriting_call(r, rw, old, visit_body, &image));
  if (pln_rules_watched(e))
    PLN_TRY(pln_rule_tried(e, rule, 1, began));
  if (pln_rewrite_is_same_node(rw, *node, image))
    return pln_rule_unchanged(e, rule, function_of(r->state));
  if (image != *node)
    PLN_TRY(pln_rewrite_apply(rw, rule, &allowed));
  if (allowed)
    *node = image;
  return PLN_OK;
}

static const char *type_rule(const rewriting *r, const pln_engine *engine,
                             pln_type type) {
  return r->name ? r->name : pln_lua_type_kind(pln_type_get_kind(engine, type));
}

/* Calls the function for a type whose parts were rewritten, and converts its
 * answer. */
static int type_body(lua_State *L) {
  rewriting *r = lua_touserdata(L, 1);
  pln_lua *b = r->state;
  pln_lua_registry_get(L, &pln_lua_key.anchors, r);
  lua_rawgeti(L, -1, -(lua_Integer)pln_type_get_kind(b->engine, *r->type) - 1);
  int function = lua_gettop(L);
  lua_pushvalue(L, -1);
  pln_lua_push_type(L, b, *r->type);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1))
    return 0;
  if (lua_type(L, -1) != LUA_TSTRING && !luaL_testudata(L, -1, PLN_LUA_TYPE))
    bad_answer(L, type_rule(r, b->engine, *r->type), function,
               "a type, the text of one");
  *r->type = pln_lua_check_type(L, b, -1);
  return 0;
}

static pln_status visit_type(void *ud, pln_engine *engine, pln_type old,
                             pln_type *type) {
  rewriting *r = ud;
  (void)old;
  if (!r->wanted_types[pln_type_get_kind(engine, *type)])
    return PLN_OK;
  pln_type image = *type;
  r->type = &image;
  PLN_TRY(pln_lua_protect(r->state, type_body, r));
  bool allowed = true;
  if (image != *type)
    PLN_TRY(pln_rule_apply(engine, type_rule(r, engine, *type), PLN_NONE,
                           &allowed));
  if (allowed)
    *type = image;
  return PLN_OK;
}

/* Adds functions for kinds of types under negative numbers. Returns true if
 * there are any.  [-0, +0] */
static bool add_type_functions(lua_State *L, int arg, rewriting *r) {
  bool any = false;
  for (int kind = 0; kind < PLN_N_TYPE_KINDS; kind++) {
    lua_getfield(L, arg, pln_lua_type_kind((pln_type_kind)kind));
    r->wanted_types[kind] = !lua_isnil(L, -1);
    any = any || r->wanted_types[kind];
    lua_rawseti(L, -2, -kind - 1);
  }
  return any;
}

/* Reads the rule name of all functions, as a symbol. */
static void take_name(lua_State *L, pln_lua *b, int arg, rewriting *r) {
  pln_symbol name;
  if (lua_getfield(L, arg, "name") == LUA_TSTRING) {
    pln_lua_must(
        L, b,
        pln_symbol_intern(b->engine, pln_text(lua_tostring(L, -1)), &name));
    r->name = pln_symbol_text(b->engine, name).data;
  }
  lua_pop(L, 1);
}

/* Pushes the functions by kind number and records which kinds are visited. [-0,
 * +1] */
static void push_functions(lua_State *L, int arg, rewriting *r) {
  lua_createtable(L, PLN_N_KINDS, 0);
  for (int kind = 0; kind < PLN_N_KINDS; kind++) {
    lua_getfield(L, arg, pln_kind_name((pln_kind)kind));
    r->wanted[kind] = !lua_isnil(L, -1);
    lua_rawseti(L, -2, kind + 1);
  }
}

/* Runs the rewrite; the box on top gets the result. Nothing may raise between
 * the first and the last change of the binding's state. */
static pln_status run_mutator(lua_State *L, pln_lua *b, rewriting *r,
                              bool types, pln_graph **out) {
  pln_mutator mutator = {.ud = r,
                         .visit = mutate_node,
                         .type = types ? visit_type : NULL,
                         .renames_params = true};
  pln_lua_graph *target = b->target;
  pln_status status = pln_graph_rewrite(r->old->graph, &mutator, out);
  b->target = target;
  b->L = L;
  pln_lua_end_graph(r->new);
  pln_lua_forget(L, &pln_lua_key.anchors, r);
  pln_lua_forget(L, &pln_lua_key.anchors, r->new);
  return status;
}

/* mutate(functions, node, post) -> the rewritten node, or `node` if nothing
 * changed. `functions` maps kind names to functions, which get the old node and
 * rebuild or, with `post`, the rebuilt node. */
static int core_mutate(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  rewriting r = {
      .state = b, .outer = b->rewriting, .post = lua_toboolean(L, 3)};
  lua_settop(L, 2);
  r.old = pln_lua_push_rooted(L, b, 2);
  r.new = pln_lua_new_graph(L, b, PLN_LUA_REWRITING);
  pln_lua_graph *out = pln_lua_new_graph(L, b, PLN_LUA_SEALED);
  take_name(L, b, 1, &r);
  push_functions(L, 1, &r);
  bool types = add_type_functions(L, 1, &r);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  lua_pushvalue(L, 3);
  lua_rawseti(L, -2, 0);
  lua_pushvalue(L, 4);
  pln_lua_registry_set(L, &pln_lua_key.anchors, r.new);
  pln_lua_registry_set(L, &pln_lua_key.anchors, &r);
  pln_lua_must(L, b, run_mutator(L, b, &r, types, &out->graph));
  if (out->graph == r.old->graph) {
    lua_pushvalue(L, 2);
    return 1;
  }
  pln_lua_unique(L, out->graph);
  pln_lua_push_node(L, -1, pln_graph_root(out->graph));
  return 1;
}

/* image(node) -> the image of a node of the graph being rewritten; other nodes
 * as they are */
static int core_image(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_lua_node *node = pln_lua_check_node(L, 1);
  pln_ref ref;
  lua_settop(L, 1);
  pln_lua_graph *image = pln_lua_image(L, b, node, &ref);
  if (!image)
    return 1;
  pln_lua_registry_get(L, &pln_lua_key.anchors, image);
  pln_lua_push_node(L, -1, ref);
  return 1;
}

/* let_here(var, value) -> a Let around the rest of the block being rewritten */
static int core_let_here(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  rewriting *r = b->rewriting;
  if (!r || !r->image || pln_node_kind(r->old->graph, r->at) != PLN_LET)
    return luaL_error(L, "the rest of this Let's block is not yet known");
  lua_settop(L, 2);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref var = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
  pln_ref value = pln_lua_part(&m, 2, pln_lua_dtype_of(L, 1, 1));
  return pln_lua_finish_construction(
      &m, pln_build_let(pln_lua_construction_builder(&m), var, value, &m.ref));
}

/* apply_rule(name, node) -> whether the rule may change the node; counts as one
 * of its applications */
static int core_apply_rule(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol name;
  bool allowed;
  pln_slice text = {luaL_checkstring(L, 1), lua_rawlen(L, 1)};
  pln_ref node = pln_lua_check_node(L, 2)->ref;
  pln_lua_must(L, b, pln_symbol_intern(b->engine, text, &name));
  pln_lua_must(L, b,
               pln_rule_apply(b->engine, pln_symbol_text(b->engine, name).data,
                              node, &allowed));
  lua_pushboolean(L, allowed);
  return 1;
}

static const luaL_Reg functions[] = {{"mutate", core_mutate},
                                     {"apply_rule", core_apply_rule},
                                     {"image", core_image},
                                     {"let_here", core_let_here},
                                     {NULL, NULL}};

static const luaL_Reg rebuild_function[] = {{"rebuild", rebuild}, {NULL, NULL}};

void pln_lua_open_mutator(lua_State *L) {
  pln_lua_functions(L, functions);
  lua_newtable(L);
  pln_lua_functions(L, rebuild_function);
  lua_getfield(L, -1, "rebuild");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pln_lua_key.rebuild);
  lua_pop(L, 1);
}
