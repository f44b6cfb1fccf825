/* block.c: the value of a block as scripts see it: Relay's nested lets.
 *
 * A scope stores its lets side by side. For scripts, the handle of the first
 * Let stands for the rest of the block (as `body`, `true_branch` etc. return
 * it), and the field `body` of a Let is the next Let or the result. In a graph
 * that is being rewritten a block is known once its scope has ended. Called for
 * fields of nodes, and when a Let is used as an operand. */

#include "ir/rewrite/rewrite.h"
#include "lua/binding.h"
#include "lua/graph/mutator.h"

/* The first Let of `scope` itself at or after `from`, a node of that scope (0:
 * its first node), else PLN_NONE. Skips nested scopes. */
static pln_ref next_let(const pln_graph *g, pln_scope scope, pln_ref from) {
  pln_ref end = pln_scope_end(g, scope);
  pln_ref i = from ? from : pln_scope_begin(g, scope);
  uint32_t n = pln_graph_n_scopes(g);
  pln_scope inner = pln_graph_scope_from(g, scope + 1, i);
  while (i < end) {
    if (inner < n && pln_scope_begin(g, inner) == i) {
      pln_ref past = pln_scope_end(g, inner);
      i = past > i ? past : i;
      inner = pln_graph_scope_from(g, inner + 1, i);
    } else if (pln_node_kind(g, i) == PLN_LET) {
      return i;
    } else {
      i++;
    }
  }
  return PLN_NONE;
}

static bool has_lets(pln_lua_graph *slot) {
  if (slot->lets == 0) {
    slot->lets = 1;
    for (pln_ref i = 0; i < pln_graph_size(slot->graph); i++)
      if (pln_node_kind(slot->graph, i) == PLN_LET)
        slot->lets = 2;
  }
  return slot->lets == 2;
}

/* ---------------------------------------------------------- during a rewrite
 */

/* Returns true if the sweep is inside the scope. */
static bool is_open(const pln_rewrite *rw, pln_scope scope) {
  for (uint32_t i = rw->n_open; i-- > 0;)
    if (rw->open[i].image == scope)
      return true;
  return false;
}

/* next_let for a graph under construction, whose scopes are not intervals
 * yet. */
static pln_ref next_built_let(const pln_builder *b, pln_scope scope,
                              pln_ref from) {
  const pln_graph *g = b->graph;
  pln_ref end = g->scopes[scope].end;
  for (pln_ref i = from ? from : g->scopes[scope].begin; i < end; i++)
    if (g->nodes[i].kind == PLN_LET && b->node_scope[i] == scope &&
        !(g->nodes[i].flags & PLN_NODE_DROPPED))
      return i;
  return PLN_NONE;
}

/* As long as nothing has changed, the new graph is the old one, which is
 * sealed. */
static pln_ref next_rewritten(const pln_rewrite *rw, const pln_graph *g,
                              pln_scope scope, pln_ref from) {
  if (is_open(rw, scope))
    return PLN_NONE;
  return g->sealed ? next_let(g, scope, from)
                   : next_built_let(rw->b, scope, from);
}

/* -------------------------------------------------------------------- blocks
 */

pln_scope pln_lua_scope_of(const pln_lua_graph *slot, const pln_graph *g,
                           pln_ref node) {
  if (g->sealed)
    return pln_graph_scope_of(g, node);
  return (slot->rewrite ? slot->rewrite->b : slot->builder)->node_scope[node];
}

bool pln_lua_block_ended(const pln_lua_graph *slot, const pln_graph *g,
                         pln_scope scope) {
  return scope < pln_graph_n_scopes(g) &&
         pln_scope_result(g, scope) != PLN_NONE &&
         !(slot->rewrite && is_open(slot->rewrite, scope));
}

static pln_ref first_let(pln_lua_graph *slot, const pln_graph *g,
                         pln_scope scope, pln_ref from) {
  if (slot->kind == PLN_LUA_SEALED)
    return has_lets(slot) ? next_let(g, scope, from) : PLN_NONE;
  if (slot->rewrite)
    return next_rewritten(slot->rewrite, g, scope, from);
  /* a floating block has one Let or none */
  pln_ref let = from == 0 ? pln_scope_begin(g, scope) : PLN_NONE;
  return let < pln_graph_size(g) && pln_node_kind(g, let) == PLN_LET ? let
                                                                     : PLN_NONE;
}

pln_ref pln_lua_block_value(pln_lua_graph *slot, const pln_graph *g,
                            pln_scope scope, pln_ref from) {
  pln_ref let = first_let(slot, g, scope, from);
  return let == PLN_NONE ? pln_scope_result(g, scope) : let;
}

uint32_t pln_lua_let_chain(pln_lua_graph *slot, const pln_graph *g, pln_ref let,
                           pln_ref *out) {
  pln_scope scope = pln_lua_scope_of(slot, g, let);
  uint32_t n = 0;
  while (let != PLN_NONE) {
    if (out)
      out[n] = let;
    n++;
    let = first_let(slot, g, scope, let + 1);
  }
  if (out)
    out[n] = pln_scope_result(g, scope);
  return n;
}
