/* to_graph_normal_form.c: ToGraphNormalForm: replaces let-bound variables by
 * their values.
 *
 * Run by the executor, once per function. Requires a verified graph. Each let
 * is removed, except that of a recursive function whose recursive call is
 * needed; a block without lets is dissolved. Values with effects stay where
 * they were evaluated, used or not.
 *
 *     let %v = tanh(%x); add(%v, %v)   =>   %0 = tanh(%x); add(%0, %0)
 *
 * Semantics: TVM ToGraphNormalForm, except that TVM drops effects of unused
 * values. */

#include "transform/functional/let.h"
#include "transform/transform.h"

/* Each sweep removes one level of dead recursive functions that call each
 * other; deeper nests are left unfinished. */
enum { MAX_SWEEPS = 64 };

typedef struct gnf_rewrite {
  pln_engine *engine;
  const pln_graph *old;
  pln_scope *node_scope;
  pln_ref *first; /* by node: its first user */
  /* By scope: one of its own lets binds a recursive function. */
  uint8_t *recursive;
  bool any;  /* there are lets to remove */
  bool kept; /* there are lets of recursive functions */
} gnf_rewrite;

static bool is_recursive(const gnf_rewrite *f, pln_ref let) {
  return f->first[pln_operand(f->old, let, 0)] < let;
}

static pln_status analyze_let_bindings(gnf_rewrite *f) {
  const pln_graph *g = f->old;
  f->node_scope = pln_mem_new(f->engine, g->n_nodes * sizeof *f->node_scope);
  f->first = pln_mem_new(f->engine, g->n_nodes * sizeof *f->first);
  f->recursive = pln_mem_zeroed(f->engine, g->n_scopes);
  if (!f->node_scope || !f->first || !f->recursive)
    return pln_nomem(f->engine);
  pln_graph_node_scopes(g, f->node_scope);
  pln_let_first_users(g, f->first);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    bool let = g->nodes[ref].kind == PLN_LET;
    if (let && is_recursive(f, ref)) {
      f->recursive[f->node_scope[ref]] = 1;
      f->kept = true;
    }
    f->any |= let && !is_recursive(f, ref);
  }
  return PLN_OK;
}

static void free_gnf_state(gnf_rewrite *f) {
  const pln_graph *g = f->old;
  pln_mem_free(f->engine, f->node_scope, g->n_nodes * sizeof *f->node_scope);
  pln_mem_free(f->engine, f->first, g->n_nodes * sizeof *f->first);
  pln_mem_free(f->engine, f->recursive, g->n_scopes);
}

static pln_status enter_unbound_scope(void *ud, pln_rewrite *rw, pln_scope old,
                                      pln_scope_action *action) {
  const gnf_rewrite *f = ud;
  (void)rw;
  if (f->old->nodes[f->old->scopes[old].owner].kind == PLN_LET_BLOCK &&
      !f->recursive[old])
    *action = PLN_SCOPE_DISSOLVE;
  return PLN_OK;
}

static pln_status replace_bound_var(void *ud, pln_rewrite *rw, pln_ref old,
                                    pln_ref *node) {
  const gnf_rewrite *f = ud;
  if (f->old->nodes[old].kind != PLN_LET || is_recursive(f, old))
    return PLN_OK;
  if (!pln_rewrite_builder(rw))
    return PLN_ERR_NOMEM;
  pln_ref value = pln_rewrite_image(rw, pln_operand(f->old, old, 1));
  pln_rewrite_bind(rw, pln_operand(f->old, old, 0), value);
  *node = value;
  return PLN_OK;
}

/* *again is true if a recursive function lost its recursive call. */
static pln_status unbind(pln_pass_run *run, const pln_graph *old, bool *again) {
  gnf_rewrite f = {.engine = pln_run_engine(run), .old = old};
  pln_mutator m = {
      .ud = &f, .visit = replace_bound_var, .enter = enter_unbound_scope};
  pln_graph *out = NULL;
  bool allowed = false;
  pln_status status = analyze_let_bindings(&f);
  if (status == PLN_OK && f.any)
    status = pln_rule_apply(f.engine, "unbind", old->root, &allowed);
  if (status == PLN_OK && allowed)
    status = pln_graph_rewrite(old, &m, &out);
  free_gnf_state(&f);
  if (status == PLN_OK && allowed)
    pln_run_set_function(run, out);
  *again = allowed && f.kept;
  return status;
}

pln_status pln_pass_to_graph_normal_form(pln_pass_run *run) {
  bool again;
  PLN_TRY(unbind(run, pln_run_function(run), &again));
  for (uint32_t n = 1; again && n < MAX_SWEEPS; n++)
    PLN_TRY(unbind(run, run->new_function, &again));
  return PLN_OK;
}
