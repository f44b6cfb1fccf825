/* verify.c: checks the invariants of ir/README.md in one linear pass.
 *
 * The executor calls it after each pass that changed something, so it must cost
 * about 10 ns per node. It assumes nothing about the graph except the lengths
 * of its arrays. */

#include "ir/graph/describe.h"
#include "ir/infer/check_calls.h"
#include "ir/infer/check_uses.h"
#include "ir/infer/digest.h"
#include "ir/tir/tir.h"

/* What binds a Var; a parameter of an arm is bound by the pattern as well. */
enum { BY_SCOPE = 1, BY_LET, BY_PATTERN };
/* Other nodes: the digest does not match. */
enum { OUTDATED = 4 };

typedef struct verifier {
  const pln_graph *g;
  pln_scope *node_scope; /* a node: its scope */
  uint8_t *bound; /* Var: BY_SCOPE, BY_LET, BY_PATTERN, or 0; others: STALE */
  pln_scope here; /* the innermost scope around the current node */
  pln_scope next; /* the first row that is not open yet */
  pln_ref at;
  pln_ref owned; /* one past the last node that owns scopes */
  bool loops;    /* there are TIR nodes */
  bool calls;    /* there are calls of functions */
  bool early;    /* a let variable may be used before its let */
  bool outdated; /* some nodes must be inferred again */
  bool closed;   /* a function of a module: no variable may be free */
  uint32_t free; /* Vars not bound so far */
} verifier;

static pln_status broken(const verifier *c, const char *rule) {
  const pln_node *n = c->at < c->g->n_nodes ? &c->g->nodes[c->at] : NULL;
  pln_status status = pln_diag_error(
      c->g->engine, PLN_ERR_INVALID, NULL, "invalid IR at node %u (%s): %s",
      c->at, n && n->kind < PLN_N_KINDS ? pln_kinds[n->kind].name : "?", rule);
  pln_note_node(c->g, c->at);
  return status;
}

/* A scope encloses the current node if it does not end before it. */
static bool visible(const verifier *c, pln_ref node) {
  return node < c->at && c->g->scopes[c->node_scope[node]].end > c->at;
}

static pln_status check_row(verifier *c, pln_scope s) {
  const pln_graph *g = c->g;
  const pln_scope_row *row = &g->scopes[s];
  if (row->begin > row->end || row->end > g->n_nodes)
    return broken(c, "a scope's interval is out of range");
  if (s == 0)
    return row->begin == 0 && row->end == g->n_nodes && row->parent == PLN_NONE
               ? PLN_OK
               : broken(c, "scope 0 must be the whole graph");
  if (row->parent >= s || row->end > g->scopes[row->parent].end)
    return broken(c, "a scope must lie inside its parent");
  if (row->n_params > row->end - row->begin)
    return broken(c, "a scope must contain its parameters");
  if (row->owner >= g->n_nodes || row->owner < row->end ||
      pln_kinds[g->nodes[row->owner].kind].payload != PLN_PAYLOAD_SCOPE)
    return broken(c, "a scope's owner must follow it");
  return PLN_OK;
}

/* Closes and opens scopes so that `here` contains the current node. */
static pln_status move_to(verifier *c, pln_ref at) {
  const pln_graph *g = c->g;
  c->at = at;
  while (c->next < g->n_scopes && g->scopes[c->next].begin == at) {
    PLN_TRY(check_row(c, c->next));
    while (c->here != PLN_NONE && c->here != g->scopes[c->next].parent)
      c->here = g->scopes[c->here].parent;
    if (c->next && c->here == PLN_NONE)
      return broken(c, "a scope begins outside of its parent");
    c->here = c->next++;
  }
  while (c->here != PLN_NONE && g->scopes[c->here].end <= at)
    c->here = g->scopes[c->here].parent;
  if (c->here == PLN_NONE)
    return broken(c, "a node lies in no scope");
  return PLN_OK;
}

static pln_status refuse_invisible(const verifier *c, pln_ref operand) {
  const pln_graph *g = c->g;
  pln_engine *e = g->engine;
  if (operand >= g->n_nodes || g->nodes[operand].kind != PLN_VAR)
    return broken(
        c,
        "an operand must come earlier, in the same scope or an enclosing one");
  pln_diag_error(e, PLN_ERR_INVALID, NULL,
                 "invalid IR at node %u (%s): the variable '%s' is used "
                 "outside of its scope",
                 c->at, pln_kinds[g->nodes[c->at].kind].name,
                 pln_symbol_text(e, g->nodes[operand].attrs).data);
  pln_note_node(g, c->at);
  return PLN_ERR_INVALID;
}

/* Patterns contain patterns, a Clause contains one, and nothing else does. */
static bool takes_patterns(uint8_t kind) {
  return kind == PLN_PATTERN_CONSTRUCTOR || kind == PLN_PATTERN_TUPLE ||
         kind == PLN_CLAUSE;
}

static bool is_pattern(uint8_t kind) {
  return pln_kinds[kind].kind_class == PLN_CLASS_PATTERN && kind != PLN_CLAUSE;
}

static bool operand_kind_allowed(uint8_t user, uint8_t operand) {
  if (user == PLN_PATTERN_VAR)
    return operand == PLN_VAR;
  return takes_patterns(user) == is_pattern(operand) && operand != PLN_CLAUSE;
}

static pln_status check_operands(const verifier *c, const pln_node *n) {
  const pln_graph *g = c->g;
  if (n->first > g->n_operands || n->count > g->n_operands - n->first)
    return broken(c, "operands are out of range");
  int32_t fixed = pln_kinds[n->kind].operands;
  if (fixed >= 0 && n->count != (uint32_t)fixed)
    return broken(c, "wrong number of operands");
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = g->operands[n->first + i];
    if (!visible(c, operand))
      return refuse_invisible(c, operand);
    if (!operand_kind_allowed(n->kind, g->nodes[operand].kind))
      return broken(c, "patterns must be operands of patterns or Clauses");
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- arms */

/* Between an arm's parameters and its Clause, the pattern binds each parameter
 * once. */
static pln_status check_pattern(const verifier *c, pln_scope arm,
                                pln_ref *clause) {
  const pln_graph *g = c->g;
  const pln_scope_row *row = &g->scopes[arm];
  pln_ref first = row->begin + row->n_params, at = first;
  uint32_t n_bound = 0;
  for (; at < row->end && is_pattern(g->nodes[at].kind); at++) {
    if (g->nodes[at].kind != PLN_PATTERN_VAR)
      continue;
    pln_ref var = g->operands[g->nodes[at].first];
    if (var < row->begin || var >= first || c->bound[var] == BY_PATTERN)
      return broken(c, "a pattern must bind its arm's parameters, each once");
    c->bound[var] = BY_PATTERN;
    n_bound++;
  }
  *clause = at;
  if (n_bound != row->n_params)
    return broken(c, "an arm's parameters must be bound by its pattern");
  if (at == first || at >= row->end || g->nodes[at].kind != PLN_CLAUSE ||
      g->operands[g->nodes[at].first] != at - 1)
    return broken(c, "an arm must begin with its pattern and a Clause");
  return PLN_OK;
}

static pln_status check_arm(const verifier *c, pln_scope arm) {
  const pln_graph *g = c->g;
  pln_ref clause = PLN_NONE;
  PLN_TRY(check_pattern(c, arm, &clause));
  for (pln_ref at = g->scopes[arm].end; at > clause + 1;) {
    const pln_node *n = &g->nodes[--at];
    if (n->kind == PLN_CLAUSE)
      return broken(c, "an arm must have one Clause");
    if (pln_owns(n))
      at = g->scopes[n->data].begin;
  }
  return PLN_OK;
}

static pln_status check_arms(const verifier *c, const pln_node *n) {
  for (pln_scope s = n->data; s != PLN_NONE; s = c->g->scopes[s].next)
    PLN_TRY(check_arm(c, s));
  return PLN_OK;
}

/* A Clause stands in an arm, except when it is itself the root. */
static pln_status check_clause(const verifier *c) {
  const pln_graph *g = c->g;
  pln_ref owner = g->scopes[c->here].owner;
  bool in_arm = owner != PLN_NONE && g->nodes[owner].kind == PLN_MATCH;
  return in_arm || g->root == c->at
             ? PLN_OK
             : broken(c, "a Clause must be in an arm of a Match");
}

/* ----------------------------------------------------------------- payloads */

/* Checks that the owner's scopes are adjacent intervals ending at the owner. */
static pln_status check_scopes(verifier *c, const pln_node *n) {
  const pln_graph *g = c->g;
  uint32_t k = 0;
  pln_scope s = n->data;
  c->owned = c->at + 1;
  for (; s != PLN_NONE; s = g->scopes[s].next, k++) {
    if (s >= c->next || g->scopes[s].owner != c->at)
      return broken(c, "an owner's scopes must name it as owner");
    pln_scope next = g->scopes[s].next;
    if (next != PLN_NONE && next <= s)
      return broken(c, "an owner's scopes must be in order");
    pln_ref end = next == PLN_NONE ? c->at : 0;
    if (next != PLN_NONE && next < g->n_scopes)
      end = g->scopes[next].begin;
    if (g->scopes[s].end != end || g->scopes[s].parent != c->here)
      return broken(c, "an owner must follow its scopes");
    pln_ref result = g->scopes[s].result;
    if (result >= c->at || (g->scopes[c->node_scope[result]].end <= c->at &&
                            c->node_scope[result] != s))
      return broken(c, "a scope's result must be visible in it");
    if (pln_kinds[g->nodes[result].kind].kind_class == PLN_CLASS_PATTERN)
      return broken(c, "patterns must be operands of patterns or Clauses");
  }
  int32_t fixed = pln_kinds[n->kind].scopes;
  bool none = k == 0 && n->kind != PLN_MATCH;
  if (fixed < 0 ? none : k != (uint32_t)fixed)
    return broken(c, "wrong number of scopes");
  return n->kind == PLN_MATCH ? check_arms(c, n) : PLN_OK;
}

static pln_status check_payload(verifier *c, const pln_node *n) {
  const pln_graph *g = c->g;
  switch (pln_kinds[n->kind].payload) {
  case PLN_PAYLOAD_NONE:
  case PLN_PAYLOAD_SYMBOL:
  case PLN_PAYLOAD_HINT:
  case PLN_PAYLOAD_BITS:
  case PLN_PAYLOAD_INDEX: return PLN_OK;
  case PLN_PAYLOAD_BUILTIN:
    return n->data <= pln_builtin_count()
               ? PLN_OK
               : broken(c, "there is no such builtin");
  case PLN_PAYLOAD_VAR:
    return n->data && n->data <= g->engine->n_vars
               ? PLN_OK
               : broken(c, "the id of a Var is unknown");
  case PLN_PAYLOAD_TENSOR:
    return n->data < g->n_tensors ? PLN_OK : broken(c, "there is no tensor");
  case PLN_PAYLOAD_OP:
    if (n->data > pln_op_count(g->engine))
      return broken(c, "there is no such operator");
    return n->kind == PLN_CALL && !n->data && !n->count
               ? broken(c, "a call must have a callee")
               : PLN_OK;
  case PLN_PAYLOAD_SCOPE: return check_scopes(c, n);
  }
  return PLN_OK;
}

static pln_status check_binding(verifier *c, const pln_node *n) {
  const pln_graph *g = c->g;
  if (n->kind == PLN_VAR) {
    const pln_scope_row *row = &g->scopes[c->here];
    bool first = c->at - row->begin < row->n_params;
    if (first != ((n->flags & PLN_NODE_PARAM) != 0))
      return broken(c, "a scope's parameters must be its first Vars");
    c->bound[c->at] = first ? BY_SCOPE : 0;
    c->free += !first;
    return PLN_OK;
  }
  if (c->at - g->scopes[c->here].begin < g->scopes[c->here].n_params)
    return broken(c, "a parameter must be a Var");
  if (n->kind == PLN_CLAUSE)
    return check_clause(c);
  if (n->kind != PLN_LET)
    return PLN_OK;
  pln_ref var = g->operands[n->first];
  if (g->nodes[var].kind != PLN_VAR || c->node_scope[var] != c->here ||
      c->bound[var])
    return broken(c, "a Let must bind a Var of its scope, once");
  c->early = c->early || var < c->owned;
  c->bound[var] = BY_LET;
  c->free--;
  return PLN_OK;
}

/* For PrimFuncs see check_loops. */
static pln_status check_closed(verifier *c) {
  const pln_graph *g = c->g;
  if (!c->closed || !c->free || c->loops)
    return PLN_OK;
  c->at = 0;
  while (g->nodes[c->at].kind != PLN_VAR || c->bound[c->at])
    c->at++;
  pln_diag_error(g->engine, PLN_ERR_INVALID, NULL,
                 "invalid IR at node %u (Var): the variable '%s' is free in a "
                 "function of a module",
                 c->at, pln_symbol_text(g->engine, g->nodes[c->at].attrs).data);
  return PLN_ERR_INVALID;
}

/* Infers only nodes whose digest does not match, so that valid ones cost one
 * comparison. */
static pln_status check_outdated(const verifier *c) {
  for (pln_ref at = 0; at < c->g->n_nodes; at++)
    if (c->bound[at] == OUTDATED)
      PLN_TRY(pln_graph_check_type(c->g, at));
  return PLN_OK;
}

static pln_status check_range(verifier *c, pln_ref at, pln_ref end) {
  const pln_graph *g = c->g;
  for (; at < end; at++) {
    PLN_TRY(move_to(c, at));
    c->node_scope[at] = c->here;
    const pln_node *n = &g->nodes[at];
    if (n->kind >= PLN_N_KINDS)
      return broken(c, "there is no such kind");
    PLN_TRY(check_operands(c, n));
    PLN_TRY(check_payload(c, n));
    PLN_TRY(check_binding(c, n));
    c->loops = c->loops || pln_is_prim(n) || pln_is_tir(n);
    c->calls = c->calls || (n->kind == PLN_CALL && !n->data);
    if (!pln_type_digest_matches(g, at)) {
      c->bound[at] = OUTDATED;
      c->outdated = true;
    }
  }
  return PLN_OK;
}

static pln_status check_loops(const verifier *c) {
  PLN_TRY(pln_verify_tir(c->g));
  return c->closed && c->free && c->g->nodes[c->g->root].kind == PLN_PRIM_FUNC
             ? pln_verify_tir_closed(c->g)
             : PLN_OK;
}

/* In ranges, so that polling costs nothing per node. */
static pln_status check_nodes(verifier *c) {
  const pln_graph *g = c->g;
  for (pln_ref at = 0, end; at < g->n_nodes; at = end) {
    end = g->n_nodes - at > PLN_POLL_ROUNDS ? at + PLN_POLL_ROUNDS : g->n_nodes;
    PLN_TRY(check_range(c, at, end));
    if (end < g->n_nodes)
      PLN_TRY(pln_poll_stoppable(g->engine));
  }
  if (c->next != g->n_scopes)
    return broken(c, "a scope lies outside of the graph");
  if (g->root >= g->n_nodes || c->node_scope[g->root] != 0)
    return broken(c, "the root must be a node of scope 0");
  PLN_TRY(check_closed(c));
  if (c->calls)
    PLN_TRY(pln_graph_check_calls(g));
  if (c->early)
    PLN_TRY(pln_graph_check_early_uses(g));
  if (c->outdated)
    PLN_TRY(check_outdated(c));
  return c->loops ? check_loops(c) : PLN_OK;
}

static pln_status verify(const pln_graph *graph, bool closed) {
  pln_engine *e = graph->engine;
  verifier c = {.g = graph, .here = PLN_NONE, .closed = closed};
  size_t size = ((size_t)graph->n_nodes + 1) * sizeof *c.node_scope;
  c.node_scope = pln_mem_new(e, size);
  c.bound = pln_mem_zeroed(e, (size_t)graph->n_nodes + 1);
  pln_stoppable_begin(e);
  pln_status status = pln_work_done(e, c.node_scope && c.bound ? check_nodes(&c)
                                                               : pln_nomem(e));
  pln_mem_free(e, c.node_scope, size);
  pln_mem_free(e, c.bound, (size_t)graph->n_nodes + 1);
  return status;
}

pln_status pln_graph_verify(const pln_graph *graph) {
  return verify(graph, false);
}

pln_status pln_graph_verify_closed(const pln_graph *function) {
  return verify(function, true);
}
