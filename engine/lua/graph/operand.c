/* operand.c: converts a Lua value to an operand: a node of the graph under
 * construction.
 *
 * Called by constructors (constructors.c, tir/constructors.c), bind and
 * rewrites. Numbers and tensors become constants, nil becomes Absent, a handle
 * of another graph is imported. */

#include "ir/rewrite/rewrite.h"
#include "lua/graph/constructor.h"
#include "lua/graph/mutator.h"

static pln_ref constant(lua_State *L, pln_lua *b, pln_lua_graph *to, int arg,
                        pln_dtype dtype) {
  pln_ref ref;
  pln_tensor *tensor = pln_lua_to_tensor(L, b, arg, dtype);
  pln_lua_must(L, b,
               pln_build_constant(pln_lua_builder(L, b, to), tensor, &ref));
  lua_pop(L, 1);
  return ref;
}

bool pln_lua_is_let(lua_State *L, const pln_lua_node *node) {
  return (node->graph->kind == PLN_LUA_SEALED || node->graph->rewrite) &&
         pln_node_kind(pln_lua_graph_of(L, node->graph), node->ref) == PLN_LET;
}

static pln_ref import(lua_State *L, pln_lua *b, pln_lua_graph *to, int arg,
                      pln_lua_node *node) {
  pln_ref ref;
  const pln_graph *from = pln_lua_graph_of(L, node->graph);
  pln_ref at = node->ref;
  if (pln_lua_is_let(L, node))
    return pln_lua_let_expr(L, b, to, node);
  if (node->graph->kind != PLN_LUA_SEALED) {
    from = pln_lua_push_rooted(L, b, arg)->graph;
    at = pln_graph_root(from);
    pln_lua_must(L, b,
                 pln_build_import(pln_lua_builder(L, b, to), from, at, &ref));
    lua_pop(L, 1);
    return ref;
  }
  pln_lua_must(L, b,
               pln_build_import(pln_lua_builder(L, b, to), from, at, &ref));
  return ref;
}

pln_ref pln_lua_let_expr(lua_State *L, pln_lua *b, pln_lua_graph *to,
                         const pln_lua_node *node) {
  const pln_graph *g = pln_lua_graph_of(L, node->graph);
  if (!pln_lua_block_ended(node->graph, g,
                           pln_lua_scope_of(node->graph, g, node->ref)))
    luaL_error(L, "the rest of this Let's block is not yet known");
  pln_lua_graph *free = pln_lua_push_free(L, b);
  pln_builder *builder = free->builder;
  pln_ref var, value, out, let = node->ref;
  uint32_t n = pln_lua_let_chain(node->graph, g, let, NULL);
  pln_ref *lets = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *lets, 0);
  pln_lua_let_chain(node->graph, g, let, lets); /* lets, then the result */
  pln_lua_must(L, b, pln_build_import(builder, g, lets[n], &out));
  for (uint32_t i = n; i-- > 0;) {
    const pln_ref *operands = pln_node_operands(g, lets[i]);
    pln_lua_must(L, b, pln_build_import(builder, g, operands[0], &var));
    pln_lua_must(L, b, pln_build_import(builder, g, operands[1], &value));
    pln_lua_must(L, b, pln_build_floating_let(builder, var, value, out, &out));
  }
  if (free != to) {
    pln_lua_push_node(L, -2, out);
    out = import(L, b, to, lua_gettop(L), lua_touserdata(L, -1));
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
  return out;
}

/* Imports the image of a node of the graph being rewritten into another
 * graph. */
static pln_ref import_image(lua_State *L, pln_lua *b, pln_lua_graph *to,
                            pln_lua_graph *image, pln_ref ref) {
  pln_lua_registry_get(L, &pln_lua_key.anchors, image);
  pln_lua_push_node(L, -1, ref);
  ref = import(L, b, to, lua_gettop(L), lua_touserdata(L, -1));
  lua_pop(L, 2);
  return ref;
}

/* A node of `to` as an operand in the scope being built. */
static pln_ref own_node(lua_State *L, pln_lua *b, pln_lua_graph *to,
                        const pln_lua_node *node) {
  const pln_lua_rewriting *r = b->rewriting;
  pln_ref ref = node->ref;
  if (pln_lua_is_let(L, node))
    return pln_lua_let_expr(L, b, to, node);
  if (r && r->hoists && r->new == to &&pln_rewrite_has_left(r->rw, ref))
    pln_lua_must(L, b, pln_rewrite_hoist(r->rw, ref, &ref));
  return ref;
}

pln_ref pln_lua_operand(lua_State *L, pln_lua *b, pln_lua_graph *to, int arg,
                        pln_dtype dtype) {
  pln_ref ref;
  arg = lua_absindex(L, arg);
  switch (lua_type(L, arg)) {
  case LUA_TNIL:
    pln_lua_must(L, b, pln_build_absent(pln_lua_builder(L, b, to), &ref));
    return ref;
  case LUA_TNUMBER:
  case LUA_TBOOLEAN: return constant(L, b, to, arg, dtype);
  case LUA_TTABLE: return constant(L, b, to, arg, PLN_DTYPE_NONE);
  default: break;
  }
  if (pln_lua_test_tensor(L, arg))
    return constant(L, b, to, arg, dtype);
  pln_lua_node *node = pln_lua_check_node(L, arg);
  if (node->graph == to)
    return own_node(L, b, to, node);
  pln_lua_graph *image = pln_lua_image(L, b, node, &ref);
  if (!image)
    return import(L, b, to, arg, node);
  pln_lua_node there = {image, ref};
  if (image == to)
    return own_node(L, b, to, &there);
  return import_image(L, b, to, image, ref);
}

pln_dtype pln_lua_dtype_of(lua_State *L, int first, int last) {
  for (int i = first; i <= last; i++) {
    pln_lua_node *node = pln_lua_test_node(L, i);
    if (!node)
      continue;
    const pln_graph *g = pln_lua_graph_of(L, node->graph);
    pln_dtype dtype =
        pln_type_dtype(pln_graph_engine(g), pln_node_type(g, node->ref));
    if (dtype != PLN_DTYPE_NONE)
      return dtype;
  }
  return PLN_DTYPE_NONE;
}

/* -------------------------------------------------------------- construction
 */

pln_lua_construction pln_lua_begin_construction(lua_State *L, pln_lua *b) {
  pln_lua_compact(L, b);
  pln_lua_graph *to = pln_lua_push_target(L, b);
  return (pln_lua_construction){.L = L, .b = b, .to = to, .at = lua_gettop(L)};
}

pln_lua_construction pln_lua_begin_floating_construction(lua_State *L,
                                                         pln_lua *b) {
  pln_lua_compact(L, b);
  pln_lua_graph *to = pln_lua_push_free(L, b);
  return (pln_lua_construction){.L = L, .b = b, .to = to, .at = lua_gettop(L)};
}

pln_builder *pln_lua_construction_builder(const pln_lua_construction *m) {
  return pln_lua_builder(m->L, m->b, m->to);
}

pln_ref pln_lua_part(const pln_lua_construction *m, int arg, pln_dtype dtype) {
  return pln_lua_operand(m->L, m->b, m->to, arg, dtype);
}

pln_ref *pln_lua_parts(const pln_lua_construction *m, int arg, uint32_t *n) {
  lua_State *L = m->L;
  luaL_checktype(L, arg, LUA_TTABLE);
  size_t count = lua_rawlen(L, arg);
  luaL_argcheck(L, count < INT32_MAX, arg, "too many operands");
  pln_ref *refs = lua_newuserdatauv(L, (count + 1) * sizeof *refs, 0);
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    refs[i] = pln_lua_part(m, -1, PLN_DTYPE_NONE);
    lua_pop(L, 1);
  }
  *n = (uint32_t)count;
  return refs;
}

int pln_lua_finish_construction(const pln_lua_construction *m,
                                pln_status status) {
  pln_lua_must(m->L, m->b, status);
  pln_lua_push_node(m->L, m->at, m->ref);
  return 1;
}
