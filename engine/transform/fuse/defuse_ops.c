/* defuse_ops.c: DefuseOps: replaces calls of nested functions by the functions'
 * bodies; the inverse of FuseOps.
 *
 * Run by the executor, once per function. Requires a verified graph. A function
 * that is called twice is copied twice. If a callee becomes a nested function
 * by a replacement, it is replaced in turn.
 *
 *     %0 = fn (%p0, Primitive=1) { exp(%p0) }; %0(%x)   =>   exp(%x)
 *
 * Semantics: TVM DefuseOps, which finds parameters by name. */

#include "ir/provenance/rule_application.h"
#include "transform/functional/inliner.h"
#include "transform/transform.h"

/* Limit on the copies of the program's nodes: functions returned by functions
 * may be replaced for ever. */
enum { MAX_COPIES = 64 };

typedef struct defuser {
  uint8_t *stays; /* by node: a function with uses other than calls */
  /* by node: the rule application by which its function's body replaces the
   * call */
  uint32_t *replaced;
  pln_symbol rule;
  int64_t calls;
} defuser;

static bool is_call_of(const pln_graph *g, const pln_node *n) {
  if (n->kind != PLN_CALL || n->data)
    return false;
  const pln_node *callee = &g->nodes[g->operands[n->first]];
  return callee->kind == PLN_FUNCTION &&
         g->scopes[callee->data].n_params == n->count - 1 &&
         !g->scopes[callee->data].type_params;
}

static pln_status ask_defuse_rule(defuser *d, const pln_graph *g, pln_ref call,
                                  bool *allowed) {
  const pln_applications *a = g->engine->applications;
  PLN_TRY(pln_rule_apply(g->engine, "defuse", call, allowed));
  if (!*allowed)
    return PLN_OK;
  d->rule = a->rule;
  d->replaced[call] = a->number;
  d->calls++;
  return PLN_OK;
}

static pln_status find_defused_calls(defuser *d, const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    bool replaced = is_call_of(g, n);
    if (replaced)
      PLN_TRY(ask_defuse_rule(d, g, ref, &replaced));
    for (uint32_t i = replaced; i < n->count; i++)
      d->stays[g->operands[n->first + i]] = 1;
  }
  for (pln_scope s = 1; s < g->n_scopes; s++)
    d->stays[g->scopes[s].result] = 1;
  return PLN_OK;
}

static pln_clone_action function(void *ud, const pln_clone_source *from,
                                 pln_ref node) {
  const defuser *d = ud;
  bool kept = d->stays[node] || from->graph->nodes[node].flags & PLN_NODE_KEEP;
  return kept ? PLN_CLONE_KEEP : PLN_CLONE_SKIP;
}

static pln_status defuse_call(void *ud, pln_clone_run *clone,
                              pln_clone_source *from, pln_ref node,
                              pln_clone_source **in, pln_ref *out) {
  const defuser *d = ud;
  if (!d->replaced[node])
    return PLN_OK;
  clone->engine->applications->rule = d->rule;
  clone->engine->applications->number = d->replaced[node];
  *in = from;
  *out = pln_operand(from->graph, node, 0);
  return PLN_OK;
}

static pln_status defuse(defuser *d, pln_pass_run *run, const pln_graph *old) {
  pln_clone_callbacks callbacks = {
      .ud = d, .call = defuse_call, .function = function};
  pln_clone_source from;
  pln_graph *out = NULL;
  pln_status status = pln_clone_source_new(old, &from);
  if (status == PLN_OK)
    status = pln_clone_graph(pln_run_engine(run), &callbacks, run->module,
                             &from, &out);
  pln_clone_source_free(&from);
  PLN_TRY(status);
  pln_run_set_function(run, out);
  return pln_run_count(run, "calls", d->calls);
}

/* *any is true if there were calls to replace. */
static pln_status defuse_once(pln_pass_run *run, const pln_graph *old,
                              bool *any) {
  pln_engine *e = old->engine;
  uint32_t n = old->n_nodes;
  defuser d = {0};
  d.stays = pln_mem_zeroed(e, n);
  d.replaced = pln_mem_zeroed(e, n * sizeof *d.replaced);
  pln_status status =
      d.stays && d.replaced ? find_defused_calls(&d, old) : pln_nomem(e);
  *any = d.calls > 0;
  if (status == PLN_OK && *any)
    status = defuse(&d, run, old);
  pln_mem_free(e, d.stays, n);
  pln_mem_free(e, d.replaced, n * sizeof *d.replaced);
  return status;
}

pln_status pln_pass_defuse_ops(pln_pass_run *run) {
  const pln_graph *old = pln_run_function(run);
  uint64_t left = (uint64_t)old->n_nodes * MAX_COPIES;
  bool any;
  PLN_TRY(defuse_once(run, old, &any));
  while (any && left >= run->new_function->n_nodes) {
    left -= run->new_function->n_nodes;
    PLN_TRY(defuse_once(run, run->new_function, &any));
  }
  return PLN_OK;
}
