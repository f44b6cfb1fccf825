/* to_a_normal_form.c: ToANormalForm: binds each computation by a let, so that
 * operands are variables, globals, operators and constructors only.
 *
 * Run by the executor, once per module. Requires a verified graph. A value is
 * bound in the innermost scope around all its uses, in evaluation order, so
 * effects stay in order. Primitive functions are not changed inside; functions
 * that are arguments of operators stay operands. A function already in the form
 * is returned unchanged. (A-normal form: Flanagan et al., The essence of
 * compiling with continuations, 1993.)
 *
 *     add(tanh(%x), %y)   =>   let %a = tanh(%x); let %b = add(%a, %y); %b
 *
 * Semantics: TVM ToANormalForm. A let of the program is itself an expression,
 * so its value is bound once more after the lets of its run. */

#include "ir/graph/layout/evaluation_order.h"
#include "transform/functional/let.h"
#include "transform/transform.h"

typedef struct anf_rewrite {
  pln_engine *engine;
  const pln_graph *old;
  pln_scope *node_scope;
  pln_ref *first;                /* by node: its first user */
  uint32_t *lets;                /* by scope: number of its own lets */
  uint8_t *primitive;            /* by scope: inside a primitive function, or
                                    left alone for the caller */
  uint8_t *is_operator_function; /* by node: a function that is an operator's
                                    argument */
} anf_rewrite;

/* ------------------------------------------------------------------- tables */

static pln_status alloc_anf_tables(anf_rewrite *f) {
  size_t n = f->old->n_nodes, k = f->old->n_scopes;
  f->node_scope = pln_mem_new(f->engine, n * sizeof *f->node_scope);
  f->first = pln_mem_new(f->engine, n * sizeof *f->first);
  f->lets = pln_mem_zeroed(f->engine, k * sizeof *f->lets);
  f->primitive = pln_mem_zeroed(f->engine, k);
  f->is_operator_function = pln_mem_zeroed(f->engine, n);
  bool done = f->node_scope && f->first && f->lets && f->primitive &&
              f->is_operator_function;
  return done ? PLN_OK : pln_nomem(f->engine);
}

static void free_anf_state(anf_rewrite *f) {
  size_t n = f->old->n_nodes, k = f->old->n_scopes;
  pln_mem_free(f->engine, f->node_scope, n * sizeof *f->node_scope);
  pln_mem_free(f->engine, f->first, n * sizeof *f->first);
  pln_mem_free(f->engine, f->lets, k * sizeof *f->lets);
  pln_mem_free(f->engine, f->primitive, k);
  pln_mem_free(f->engine, f->is_operator_function, n);
}

static void analyze_anf_scopes(anf_rewrite *f) {
  const pln_graph *g = f->old;
  pln_graph_node_scopes(g, f->node_scope);
  pln_let_first_users(g, f->first);
  pln_let_primitive_scopes(g, f->primitive);
  pln_let_operator_functions(g, f->is_operator_function);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    f->lets[f->node_scope[ref]] += g->nodes[ref].kind == PLN_LET;
}

/* ----------------------------------------------------------- what is bound */

/* Returns true if the first user is a let of the same scope: that let binds the
 * value. */
static bool has_let(const anf_rewrite *f, pln_ref ref) {
  pln_ref user = f->first[ref];
  return user != PLN_NONE && f->old->nodes[user].kind == PLN_LET &&
         f->node_scope[user] == f->node_scope[ref];
}

static bool is_computed(const anf_rewrite *f, pln_ref ref) {
  const pln_node *n = &f->old->nodes[ref];
  bool matters = f->first[ref] != PLN_NONE || n->flags & PLN_NODE_EFFECT;
  return f->node_scope[ref] != 0 && matters &&
         !f->primitive[f->node_scope[ref]] && !f->is_operator_function[ref] &&
         !pln_let_is_atom(n);
}

static bool is_formed(const anf_rewrite *f) {
  for (pln_ref ref = 0; ref < f->old->n_nodes; ref++)
    if (is_computed(f, ref) &&
        (!has_let(f, ref) || f->old->nodes[ref].kind == PLN_LET_BLOCK))
      return false;
  return true;
}

/* -------------------------------------------------------------------- sweep */

static pln_status enter_normalized_scope(void *ud, pln_rewrite *rw,
                                         pln_scope old,
                                         pln_scope_action *action) {
  const anf_rewrite *f = ud;
  (void)rw;
  if (f->old->nodes[f->old->scopes[old].owner].kind == PLN_LET_BLOCK &&
      !f->primitive[old])
    *action = PLN_SCOPE_DISSOLVE;
  return PLN_OK;
}

static pln_status bind_normalized_value(pln_rewrite *rw, uint32_t times,
                                        pln_ref *node) {
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  while (times-- > 0) {
    pln_ref var;
    PLN_TRY(pln_let_new(b, *node, &var));
    *node = var;
  }
  return PLN_OK;
}

/* From here on the variable replaces the value. */
static void pass_let(const anf_rewrite *f, pln_rewrite *rw, pln_ref let) {
  pln_ref value = pln_operand(f->old, let, 1);
  if (is_computed(f, value) && f->first[value] == let && has_let(f, value))
    pln_rewrite_bind(rw, value,
                     pln_rewrite_image(rw, pln_operand(f->old, let, 0)));
}

static pln_status normalize_node(void *ud, pln_rewrite *rw, pln_ref old,
                                 pln_ref *node) {
  const anf_rewrite *f = ud;
  const pln_node *n = &f->old->nodes[old];
  if (n->kind == PLN_LET && !f->primitive[f->node_scope[old]])
    pass_let(f, rw, old);
  if (!is_computed(f, old))
    return PLN_OK;
  uint32_t times = n->kind == PLN_LET_BLOCK ? f->lets[n->data] : 1;
  return bind_normalized_value(rw, times && has_let(f, old) ? times - 1 : times,
                               node);
}

/* Closes the lets of a scope, last to first. */
static pln_status leave_normalized_scope(void *ud, pln_rewrite *rw,
                                         pln_scope old, pln_ref *result) {
  const anf_rewrite *f = ud;
  if (f->primitive[old] || !f->lets[old])
    return PLN_OK;
  return bind_normalized_value(rw, f->lets[old], result);
}

static pln_status sweep(anf_rewrite *f, pln_graph **out) {
  pln_mutator m = {.ud = f,
                   .visit = normalize_node,
                   .enter = enter_normalized_scope,
                   .leave = leave_normalized_scope};
  return pln_graph_rewrite(f->old, &m, out);
}

static pln_status analyze_anf(anf_rewrite *f, const pln_graph *graph) {
  f->old = graph;
  PLN_TRY(alloc_anf_tables(f));
  analyze_anf_scopes(f);
  return PLN_OK;
}

/* Lets are in the order of evaluation, in which passes may not have left the
 * nodes. */
static pln_status bind_all(anf_rewrite *f, const pln_graph *function,
                           pln_graph **out) {
  pln_graph *ordered;
  PLN_TRY(pln_graph_in_evaluation_order(function, &ordered));
  pln_status status = analyze_anf(f, ordered);
  if (status == PLN_OK)
    status = sweep(f, out);
  free_anf_state(f);
  pln_graph_release(ordered);
  return status;
}

static pln_status form(pln_pass_run *run, const pln_graph *function,
                       pln_graph **out) {
  anf_rewrite f = {.engine = pln_run_engine(run)};
  bool allowed = false, formed = false;
  pln_status status = analyze_anf(&f, function);
  if (status == PLN_OK)
    formed = is_formed(&f);
  free_anf_state(&f);
  if (status == PLN_OK && !formed)
    status = pln_rule_apply(f.engine, "bind", function->root, &allowed);
  return status == PLN_OK && allowed ? bind_all(&f, function, out) : status;
}

pln_status pln_a_normal_form(const pln_graph *graph, const uint8_t *outside,
                             pln_graph **out) {
  anf_rewrite f = {.engine = graph->engine, .old = graph};
  pln_status status = alloc_anf_tables(&f);
  if (status == PLN_OK) {
    analyze_anf_scopes(&f);
    for (pln_scope s = 0; s < graph->n_scopes; s++)
      f.primitive[s] |= outside[s];
    status = sweep(&f, out);
  }
  free_anf_state(&f);
  return status;
}

pln_status pln_pass_to_a_normal_form(pln_pass_run *run) {
  return pln_run_on_functions(run, form);
}
