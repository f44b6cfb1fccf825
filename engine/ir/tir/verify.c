/* tir/verify.c: the TIR part of the verifier, in one sweep from users to
 * operands: a PrimExpr that reads memory belongs to one statement; operands of
 * a PrimExpr are PrimExprs; a body ends with a statement.
 *
 * Called by analysis/verify.c, after its own checks, for graphs with TIR
 * nodes. */

#include "ir/graph/describe.h"
#include "ir/tir/tir.h"

typedef struct read_claims {
  const pln_graph *g;
  pln_ref *of; /* per PrimExpr: the statement it belongs to, or PLN_NONE */
} read_claims;

static pln_status broken(const pln_graph *g, pln_ref at, const char *rule) {
  pln_diag_error(g->engine, PLN_ERR_INVALID, NULL,
                 "invalid IR at node %u (%s): %s", at,
                 pln_kinds[g->nodes[at].kind].name, rule);
  pln_note_node(g, at);
  return PLN_ERR_INVALID;
}

static pln_status claim(read_claims *c, pln_ref user, pln_ref operand,
                        pln_ref stmt) {
  const pln_node *n = &c->g->nodes[operand];
  if (!pln_is_prim(n))
    return n->kind == PLN_VAR || n->kind == PLN_GLOBAL_VAR ||
                   n->kind == PLN_CONSTANT
               ? PLN_OK
               : broken(c->g, user, "an operand must be a PrimExpr");
  if ((n->flags & PLN_NODE_EFFECT) && c->of[operand] != PLN_NONE &&
      c->of[operand] != stmt)
    return broken(c->g, operand,
                  "a PrimExpr that reads memory must belong to one statement");
  c->of[operand] = stmt;
  return PLN_OK;
}

/* Checks the number of variables that a body of the statement binds. */
static bool params_fit(const pln_node *n, uint32_t params) {
  switch ((pln_kind)n->kind) {
  case PLN_FOR:
  case PLN_LET_STMT:
  case PLN_ALLOCATE:
  case PLN_ALLOCATE_CONST: return params == 1;
  case PLN_BLOCK: return params == n->count;
  case PLN_PRIM_FUNC: return true;
  default: return params == 0;
  }
}

static pln_status check_bodies(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
    if (!pln_is_stmt(&g->nodes[g->scopes[s].result]))
      return broken(g, ref, "a body must end with a statement");
    if (!params_fit(n, g->scopes[s].n_params))
      return broken(g, ref,
                    "a body must bind as many variables as its statement has");
  }
  return PLN_OK;
}

/* One index per dimension of the buffer, after the first `skip` operands. */
static bool indices_fit(const pln_graph *g, const pln_node *n, uint32_t skip) {
  const pln_node *buffer =
      n->count < skip ? NULL : &g->nodes[g->operands[n->first]];
  return buffer && buffer->kind == PLN_BUFFER &&
         n->count - skip == buffer->results;
}

static bool operands_fit(const pln_graph *g, const pln_node *n) {
  switch ((pln_kind)n->kind) {
  case PLN_BUFFER: return n->count >= 2u + n->results;
  case PLN_BUFFER_LOAD:
  case PLN_BUFFER_REGION: return indices_fit(g, n, 1);
  case PLN_BUFFER_STORE: return indices_fit(g, n, 2);
  case PLN_FOR:
  case PLN_PRODUCER_STORE:
  case PLN_BUFFER_REALIZE:
  case PLN_PRODUCER_REALIZE: return n->count >= 2;
  case PLN_PRODUCER_LOAD:
  case PLN_PREFETCH:
  case PLN_ALLOCATE:
  case PLN_BLOCK_REALIZE:
  case PLN_ITER_VAR: return n->count >= 1;
  case PLN_SHUFFLE: return n->data < n->count;
  default: return true;
  }
}

/* The value of a LetStmt or Let has its variable's dtype. */
static bool value_fits(const pln_graph *g, const pln_node *n) {
  const pln_ref *of = pln_operands(g, n);
  pln_type var = n->kind == PLN_LET_STMT
                     ? g->nodes[g->scopes[n->data].begin].type
                     : g->nodes[of[0]].type;
  pln_type value = g->nodes[of[n->kind == PLN_LET_STMT ? 0 : 1]].type;
  return pln_let_type_matches(g->engine, var, value);
}

static pln_status check_node(read_claims *c, pln_ref ref) {
  const pln_graph *g = c->g;
  const pln_node *n = &g->nodes[ref];
  bool prim = pln_is_prim(n);
  if (!prim && !pln_is_tir(n))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(claim(c, ref, g->operands[n->first + i], prim ? c->of[ref] : ref));
  if (!operands_fit(g, n))
    return broken(g, ref, "its operands must be those of its kind");
  if (pln_owns(n))
    PLN_TRY(check_bodies(g, ref));
  if ((n->kind == PLN_LET_STMT || n->kind == PLN_PRIM_LET) && !value_fits(g, n))
    return broken(g, ref, "the value is of another dtype than the variable");
  return PLN_OK;
}

pln_status pln_verify_tir(const pln_graph *g) {
  size_t size = ((size_t)g->n_nodes + 1) * sizeof(pln_ref);
  read_claims c = {.g = g, .of = pln_mem_new(g->engine, size)};
  if (!c.of)
    return pln_nomem(g->engine);
  memset(c.of, 0xff, size);
  pln_status status = PLN_OK;
  for (pln_ref ref = g->n_nodes; ref-- > 0 && status == PLN_OK;)
    status = check_node(&c, ref);
  pln_mem_free(g->engine, c.of, size);
  return status;
}
