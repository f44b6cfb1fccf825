/* to_basic_block_normal_form.c: ToBasicBlockNormalForm: binds a value that
 * several blocks use by a let in the enclosing block. Within a block the graph
 * stays a graph.
 *
 * Run by the executor, once per module; scripts call the check whether a graph
 * has the form. Requires a verified graph. Blocks are scopes: bodies, branches,
 * match arms. A value is bound if its first use in evaluation order is in a
 * deeper scope than the value, which is in the innermost scope around all uses.
 *
 *     if (%c) { exp(%0) } else { %0 }   with   %0 = tanh(%x)   =>
 *     let %v = tanh(%x); if (%c) { exp(%v) } else { %v }
 *
 * Semantics: TVM ToBasicBlockNormalForm. */

#include "transform/functional/let.h"
#include "transform/transform.h"

typedef struct bbnf_rewrite {
  pln_engine *engine;
  const pln_graph *old;
  pln_scope *node_scope;
  pln_ref *first;                /* by node: its first user */
  pln_scope *use;                /* by node: the scope of its first use */
  uint8_t *primitive;            /* by scope: inside a primitive function */
  uint8_t *is_operator_function; /* by node: a function that is an operator's
                                    argument */
} bbnf_rewrite;

/* --------------------------------------------------------------- first uses */

static void raise_to_common_block(bbnf_rewrite *f, pln_ref node, pln_ref user,
                                  pln_scope scope) {
  if (user >= f->first[node])
    return;
  f->first[node] = user;
  f->use[node] = scope;
}

/* The owner of a scope uses the scope's result inside that scope, after its own
 * operands. */
static void find_first_uses(bbnf_rewrite *f) {
  const pln_graph *g = f->old;
  memset(f->first, 0xff, g->n_nodes * sizeof *f->first);
  memcpy(f->use, f->node_scope, g->n_nodes * sizeof *f->use);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      raise_to_common_block(f, pln_operand(g, ref, i), ref, f->node_scope[ref]);
  for (pln_scope s = 1; s < g->n_scopes; s++)
    raise_to_common_block(f, g->scopes[s].result, g->scopes[s].owner, s);
}

static pln_status analyze_block_uses(bbnf_rewrite *f) {
  const pln_graph *g = f->old;
  f->node_scope = pln_mem_new(f->engine, g->n_nodes * sizeof *f->node_scope);
  f->use = pln_mem_new(f->engine, g->n_nodes * sizeof *f->use);
  f->first = pln_mem_new(f->engine, g->n_nodes * sizeof *f->first);
  f->primitive = pln_mem_zeroed(f->engine, g->n_scopes);
  f->is_operator_function = pln_mem_zeroed(f->engine, g->n_nodes);
  if (!f->node_scope || !f->use || !f->first || !f->primitive ||
      !f->is_operator_function)
    return pln_nomem(f->engine);
  pln_graph_node_scopes(g, f->node_scope);
  find_first_uses(f);
  pln_let_primitive_scopes(g, f->primitive);
  pln_let_operator_functions(g, f->is_operator_function);
  return PLN_OK;
}

static void free_bbnf_state(bbnf_rewrite *f) {
  const pln_graph *g = f->old;
  pln_mem_free(f->engine, f->node_scope, g->n_nodes * sizeof *f->node_scope);
  pln_mem_free(f->engine, f->use, g->n_nodes * sizeof *f->use);
  pln_mem_free(f->engine, f->first, g->n_nodes * sizeof *f->first);
  pln_mem_free(f->engine, f->primitive, g->n_scopes);
  pln_mem_free(f->engine, f->is_operator_function, g->n_nodes);
}

/* -------------------------------------------------------------------- sweep */

static bool is_shared(const bbnf_rewrite *f, pln_ref ref) {
  return f->use[ref] != f->node_scope[ref] &&
         !f->primitive[f->node_scope[ref]] && !f->is_operator_function[ref];
}

static bool is_lifted(const bbnf_rewrite *f, pln_ref ref) {
  return f->node_scope[ref] != 0 && is_shared(f, ref) &&
         !pln_let_is_atom(&f->old->nodes[ref]);
}

static pln_status bind_shared_node(void *ud, pln_rewrite *rw, pln_ref old,
                                   pln_ref *node) {
  const bbnf_rewrite *f = ud;
  bool allowed;
  if (!is_lifted(f, old))
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "bind", &allowed));
  if (!allowed)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  return b ? pln_let_new(b, *node, node) : PLN_ERR_NOMEM;
}

/* ------------------------------------------------------------------- check */

/* Marks parameters and variables bound by lets. */
static void mark_bound(const pln_graph *g, uint8_t *bound) {
  for (pln_scope s = 1; s < g->n_scopes; s++)
    memset(bound + g->scopes[s].begin, 1, g->scopes[s].n_params);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_LET)
      bound[pln_operand(g, ref, 0)] = 1;
}

/* A free variable counts as a shared value: Relay binds it in the first
 * block. */
static pln_ref first_shared(const bbnf_rewrite *f, const uint8_t *bound) {
  const pln_graph *g = f->old;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    bool is_atom = n->kind == PLN_VAR ? bound[ref] : pln_let_is_atom(n);
    if (!is_atom && is_shared(f, ref))
      return ref;
  }
  return PLN_NONE;
}

pln_status pln_graph_basic_blocks(const pln_graph *graph, pln_ref *out) {
  bbnf_rewrite f = {.engine = graph->engine, .old = graph};
  uint8_t *bound = pln_mem_zeroed(graph->engine, graph->n_nodes);
  pln_status status = bound ? analyze_block_uses(&f) : pln_nomem(graph->engine);
  if (status == PLN_OK) {
    mark_bound(graph, bound);
    *out = first_shared(&f, bound);
  }
  pln_mem_free(graph->engine, bound, graph->n_nodes);
  free_bbnf_state(&f);
  return status;
}

/* -------------------------------------------------------------------- pass */

static pln_status form(pln_pass_run *run, const pln_graph *function,
                       pln_graph **out) {
  bbnf_rewrite f = {.engine = pln_run_engine(run), .old = function};
  pln_mutator m = {.ud = &f, .visit = bind_shared_node};
  pln_status status = analyze_block_uses(&f);
  if (status == PLN_OK)
    status = pln_graph_rewrite(function, &m, out);
  free_bbnf_state(&f);
  return status;
}

pln_status pln_pass_to_basic_block_normal_form(pln_pass_run *run) {
  return pln_run_on_functions(run, form);
}
