/* purity.c: finds effects through calls of recursive and local functions.
 *
 * Called by DeadCodeElimination. An impure bit moves from a node to the nodes
 * whose evaluation or call includes it: along operands, from a let's value to
 * its variable, from a scope to its owner, from a function of the module to the
 * GlobalVars that name it. Each bit moves once along each edge, so the analysis
 * is linear. Where a function value cannot be followed (parameters, fields of
 * tuples, contents of references, matched values) its call is impure.
 *
 *     let %f = fn (%n) { if (%n == 0) { 0 } else { %f(%n - 1) } };
 *     %f(%x)   =>   pure: nothing in %f has an effect
 *
 * Semantics: the purity analysis of TVM's dead_code.cc. TVM assumes that a
 * recursive call is pure while it visits the function; here the assumption is
 * withdrawn where the function turns out impure. */

#include "ir/analysis/purity.h"
#include "ir/analysis/users.h"
#include "ir/type/type.h"

typedef struct analysed_function {
  const pln_graph *graph; /* NULL: its calls are impure */
  uint8_t *bits;
  pln_users users;
  uint32_t
      *first_result;     /* by node: the first scope it is the result of, + 1 */
  uint32_t *next_result; /* by scope: the next scope of the same result, + 1 */
  uint32_t first_use;    /* the first GlobalVar that names it, + 1 */
} analysed_function;

/* A GlobalVar, in the list of the function that it names. */
typedef struct global_use {
  uint32_t function;
  pln_ref node;
  uint32_t next;
} global_use;

typedef struct impure_node {
  uint32_t function;
  pln_ref node;
  uint8_t bits; /* the new ones */
} impure_node;

typedef struct purity_analysis {
  pln_engine *engine;
  const pln_module *module;
  const pln_purity *known; /* NULL: all functions of the module are analysed */
  uint32_t n;
  analysed_function *functions;
  uint32_t n_uses, cap_uses;
  global_use *uses;
  uint32_t n_stack, cap_stack;
  impure_node *stack;
} purity_analysis;

/* ------------------------------------------------------------------ marking */

static pln_status mark_impure(purity_analysis *a, uint32_t function,
                              pln_ref node, uint8_t bits) {
  uint8_t *at = &a->functions[function].bits[node];
  bits &= (uint8_t) ~*at;
  if (!bits)
    return PLN_OK;
  *at |= bits;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->stack, &a->cap_stack,
                       (size_t)a->n_stack + 1, sizeof *a->stack));
  a->stack[a->n_stack++] = (impure_node){function, node, bits};
  return PLN_OK;
}

/* True if a value of the node's type may be a function. */
static bool may_be_function(const pln_graph *g, const pln_node *n) {
  pln_type_kind kind = pln_type_get_kind(g->engine, n->type);
  return kind == PLN_TYPE_FUNC || kind == PLN_TYPE_INCOMPLETE ||
         kind == PLN_TYPE_HOLE;
}

static bool is_external(const pln_graph *g) {
  if (g->nodes[g->root].kind != PLN_FUNCTION)
    return true;
  pln_attrs attrs = g->nodes[g->root].attrs;
  return attrs && (pln_attrs_int(g->engine, attrs, "Extern", 0) != 0 ||
                   pln_attrs_find(g->engine, attrs, "Compiler") != NULL);
}

/* ------------------------------------------------------------------ sources */

static bool is_impure_op(const pln_graph *g, const pln_node *n) {
  return !(pln_op_row(g->engine, n->data)->traits & PLN_TRAIT_PURE);
}

/* The bits that a node has whatever its operands are. */
static uint8_t own_bits(const pln_graph *g, const pln_node *n) {
  bool function = may_be_function(g, n);
  switch ((pln_kind)n->kind) {
  case PLN_REF_CREATE:
  case PLN_REF_WRITE: return PLN_IMPURE_EVAL;
  case PLN_REF_READ:
    return function ? PLN_IMPURE_EVAL | PLN_IMPURE_CALL : PLN_IMPURE_EVAL;
  case PLN_TUPLE_GET_ITEM: return function ? PLN_IMPURE_CALL : 0;
  case PLN_CALL: return n->data && is_impure_op(g, n) ? PLN_IMPURE_EVAL : 0;
  case PLN_OP: return is_impure_op(g, n) ? PLN_IMPURE_CALL : 0;
  default: return 0;
  }
}

/* Marks parameters, pattern variables and free variables: what no let binds. */
static pln_status mark_unbound_vars(purity_analysis *a, uint32_t function,
                                    uint8_t *bound) {
  const pln_graph *g = a->functions[function].graph;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_LET)
      bound[pln_operand(g, i, 0)] = 1;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_VAR && !bound[i] &&
        may_be_function(g, &g->nodes[i]))
      PLN_TRY(mark_impure(a, function, i, PLN_IMPURE_CALL));
  return PLN_OK;
}

/* Enters the GlobalVar in the list of its function, or marks it if the answer
 * is known. */
static pln_status use_global(purity_analysis *a, uint32_t function,
                             pln_ref node) {
  pln_symbol name = a->functions[function].graph->nodes[node].data;
  uint32_t callee = a->module ? pln_module_find(a->module, name) : PLN_NONE;
  if (callee == PLN_NONE || (a->known && a->known->impure[callee]) ||
      (!a->known && !a->functions[callee].graph))
    return mark_impure(a, function, node, PLN_IMPURE_CALL);
  if (a->known)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->uses, &a->cap_uses,
                       (size_t)a->n_uses + 1, sizeof *a->uses));
  uint32_t *first = &a->functions[callee].first_use;
  a->uses[a->n_uses++] = (global_use){function, node, *first};
  *first = a->n_uses;
  return PLN_OK;
}

static pln_status mark_sources(purity_analysis *a, uint32_t function) {
  const pln_graph *g = a->functions[function].graph;
  uint8_t *bound = pln_mem_zeroed(a->engine, g->n_nodes);
  if (!bound)
    return pln_nomem(a->engine);
  pln_status status = mark_unbound_vars(a, function, bound);
  pln_mem_free(a->engine, bound, g->n_nodes);
  for (pln_ref i = 0; i < g->n_nodes && status == PLN_OK; i++) {
    const pln_node *n = &g->nodes[i];
    status = n->kind == PLN_GLOBAL_VAR
                 ? use_global(a, function, i)
                 : mark_impure(a, function, i, own_bits(g, n));
  }
  return status;
}

/* -------------------------------------------------------------- propagation */

/* The operator calls its function operands; a call calls its operand 0. */
static uint8_t call_bits(const pln_graph *g, pln_ref user,
                         const impure_node *from) {
  const pln_node *n = &g->nodes[user];
  uint8_t bits = from->bits & PLN_IMPURE_EVAL;
  if (!(from->bits & PLN_IMPURE_CALL))
    return bits;
  if (n->data)
    return g->nodes[from->node].kind == PLN_FUNCTION ? PLN_IMPURE_EVAL : bits;
  if (g->operands[n->first] != from->node)
    return bits;
  return may_be_function(g, n) ? PLN_IMPURE_EVAL | PLN_IMPURE_CALL
                               : PLN_IMPURE_EVAL;
}

static pln_status mark_user(purity_analysis *a, const impure_node *from,
                            pln_ref user) {
  const pln_graph *g = a->functions[from->function].graph;
  const pln_node *n = &g->nodes[user];
  if (n->kind == PLN_CALL)
    return mark_impure(a, from->function, user, call_bits(g, user, from));
  if (n->kind == PLN_LET && pln_operand(g, user, 0) == from->node)
    return PLN_OK;
  if (n->kind == PLN_LET && (from->bits & PLN_IMPURE_CALL))
    PLN_TRY(mark_impure(a, from->function, pln_operand(g, user, 0),
                        PLN_IMPURE_CALL));
  return mark_impure(a, from->function, user, from->bits & PLN_IMPURE_EVAL);
}

/* Evaluating a node of a function's body happens when the function is
 * called. */
static pln_status mark_owner(purity_analysis *a, uint32_t function,
                             pln_ref owner, uint8_t bits) {
  if (owner == PLN_NONE || !bits)
    return PLN_OK;
  bool is_function =
      a->functions[function].graph->nodes[owner].kind == PLN_FUNCTION;
  return mark_impure(a, function, owner, is_function ? PLN_IMPURE_CALL : bits);
}

static pln_status mark_scopes(purity_analysis *a, const impure_node *from) {
  const analysed_function *f = &a->functions[from->function];
  const pln_graph *g = f->graph;
  pln_scope scope = f->users.node_scope[from->node];
  PLN_TRY(mark_owner(a, from->function, g->scopes[scope].owner,
                     from->bits & PLN_IMPURE_EVAL));
  for (uint32_t s = f->first_result[from->node]; s; s = f->next_result[s - 1])
    PLN_TRY(mark_owner(a, from->function, g->scopes[s - 1].owner, from->bits));
  return PLN_OK;
}

static pln_status mark_global_uses(purity_analysis *a,
                                   const impure_node *from) {
  const analysed_function *f = &a->functions[from->function];
  if (from->node != f->graph->root || !(from->bits & PLN_IMPURE_CALL))
    return PLN_OK;
  for (uint32_t at = f->first_use; at; at = a->uses[at - 1].next)
    PLN_TRY(mark_impure(a, a->uses[at - 1].function, a->uses[at - 1].node,
                        PLN_IMPURE_CALL));
  return PLN_OK;
}

static pln_status propagate(purity_analysis *a) {
  while (a->n_stack) {
    impure_node from = a->stack[--a->n_stack];
    const pln_users *u = &a->functions[from.function].users;
    for (uint32_t k = u->first[from.node]; k < u->first[from.node + 1]; k++)
      PLN_TRY(mark_user(a, &from, u->users[k]));
    PLN_TRY(mark_scopes(a, &from));
    PLN_TRY(mark_global_uses(a, &from));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- tables */

static pln_status list_results(purity_analysis *a, analysed_function *f) {
  const pln_graph *g = f->graph;
  f->first_result =
      pln_mem_zeroed(a->engine, g->n_nodes * sizeof *f->first_result);
  f->next_result =
      pln_mem_zeroed(a->engine, g->n_scopes * sizeof *f->next_result);
  if (!f->first_result || !f->next_result)
    return pln_nomem(a->engine);
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    uint32_t *first = &f->first_result[g->scopes[s].result];
    f->next_result[s] = *first;
    *first = s + 1;
  }
  return PLN_OK;
}

static pln_status open_function(purity_analysis *a, const pln_graph *g,
                                uint8_t *bits, analysed_function *f) {
  f->graph = g;
  f->bits = bits;
  PLN_TRY(pln_users_begin(&f->users, g));
  return list_results(a, f);
}

static void close_function(pln_engine *e, analysed_function *f) {
  if (!f->graph)
    return;
  pln_users_end(&f->users);
  pln_mem_free(e, f->first_result, f->graph->n_nodes * sizeof *f->first_result);
  pln_mem_free(e, f->next_result, f->graph->n_scopes * sizeof *f->next_result);
}

static void free_analysis(purity_analysis *a) {
  pln_mem_free(a->engine, a->uses, a->cap_uses * sizeof *a->uses);
  pln_mem_free(a->engine, a->stack, a->cap_stack * sizeof *a->stack);
}

static void close_module(purity_analysis *a) {
  for (uint32_t i = 0; i < a->n && a->functions; i++) {
    analysed_function *f = &a->functions[i];
    close_function(a->engine, f);
    if (f->graph)
      pln_mem_free(a->engine, f->bits, f->graph->n_nodes);
  }
  pln_mem_free(a->engine, a->functions, a->n * sizeof *a->functions);
  free_analysis(a);
}

static pln_status open_module(purity_analysis *a) {
  a->functions = pln_mem_zeroed(a->engine, a->n * sizeof *a->functions);
  if (!a->functions && a->n)
    return pln_nomem(a->engine);
  for (uint32_t i = 0; i < a->n; i++) {
    const pln_graph *g = pln_module_function_at(a->module, i);
    if (is_external(g))
      continue;
    uint8_t *bits = pln_mem_zeroed(a->engine, g->n_nodes);
    if (!bits)
      return pln_nomem(a->engine);
    PLN_TRY(open_function(a, g, bits, &a->functions[i]));
  }
  return PLN_OK;
}

static pln_status analyse(purity_analysis *a) {
  for (uint32_t i = 0; i < a->n; i++)
    if (a->functions[i].graph)
      PLN_TRY(mark_sources(a, i));
  return propagate(a);
}

/* ------------------------------------------------------------------- calls */

static bool call_is_impure(const analysed_function *f) {
  return !f->graph || (f->bits[f->graph->root] & PLN_IMPURE_CALL);
}

pln_status pln_purity_begin(pln_purity *purity, const pln_module *module) {
  pln_engine *e = module->engine;
  purity_analysis a = {.engine = e, .module = module, .n = module->count};
  *purity = (pln_purity){.engine = e, .n = module->count};
  purity->impure = pln_mem_zeroed(e, purity->n + (size_t)1);
  pln_status status = purity->impure ? open_module(&a) : pln_nomem(e);
  if (status == PLN_OK)
    status = analyse(&a);
  for (uint32_t i = 0; i < a.n && status == PLN_OK; i++)
    purity->impure[i] = call_is_impure(&a.functions[i]);
  close_module(&a);
  return status;
}

void pln_purity_end(pln_purity *purity) {
  pln_mem_free(purity->engine, purity->impure, purity->n + (size_t)1);
}

pln_status pln_purity_mark(const pln_purity *purity, const pln_module *module,
                           const pln_graph *graph, uint8_t *bits) {
  analysed_function function = {0};
  purity_analysis a = {.engine = graph->engine,
                       .module = module,
                       .known = purity,
                       .n = 1,
                       .functions = &function};
  pln_status status = open_function(&a, graph, bits, &function);
  if (status == PLN_OK)
    status = analyse(&a);
  close_function(a.engine, &function);
  free_analysis(&a);
  return status;
}
