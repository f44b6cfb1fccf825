/* eta_expand.c: constructors and names of functions as functions written out.
 *
 * Run by the executor, once per module. Requires verified graphs. A constructor
 * that is used as a value becomes a function that calls it
 * (expand_constructor), a GlobalVar a function with the named one's parameters
 * and attributes that calls it (expand_global_var), called or not. One is made
 * for each name in a function, in its outermost scope.
 *
 *     @f   =>   fn (%eta_expand_param) { @f(%eta_expand_param) }
 *
 * Semantics: TVM EtaExpand. */

#include "transform/transform.h"

typedef struct expander {
  pln_engine *engine;
  const pln_module *module;
  const pln_graph *old;
  bool constructors, globals;
  uint8_t *as_value; /* a node: it is used other than as a callee */
  uint8_t *expanded; /* a node: all that its function does is to call it */
  pln_idmap *made;   /* kind and name: the new function + 1 */
} expander;

/* A function that takes what `callee`'s type says and calls it. */
static pln_status add_params(expander *x, pln_builder *b, pln_type type,
                             uint32_t n, pln_ref *params) {
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(x->engine, pln_text("eta_expand_param"), &name));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_build_param(b, name, pln_type_part(x->engine, type, i), 0,
                            &params[i]));
  return PLN_OK;
}

static pln_status call_inside(expander *x, pln_builder *b, const pln_node *node,
                              pln_ref *params, pln_ref *out) {
  pln_ref callee;
  pln_node copy = *node;
  uint32_t n = pln_type_n_parts(x->engine, node->type) - 1;
  PLN_TRY(add_params(x, b, node->type, n, params));
  PLN_TRY(pln_builder_append(b, &copy, 0, NULL, &callee));
  PLN_TRY(pln_build_apply(b, callee, 0, 0, n, params, out));
  b->graph->nodes[*out].type = pln_type_part(x->engine, node->type, n);
  return PLN_OK;
}

static pln_status generic(expander *x, pln_builder *b, pln_type type,
                          pln_ref function) {
  uint32_t n = pln_type_n_vars(x->engine, type);
  size_t size = n * sizeof(pln_type);
  if (n == 0)
    return PLN_OK;
  pln_type *vars = pln_mem_new(x->engine, size);
  if (!vars)
    return pln_nomem(x->engine);
  for (uint32_t i = 0; i < n; i++)
    vars[i] = pln_type_var_at(x->engine, type, i);
  pln_status status = pln_build_generic(b, function, n, vars);
  pln_mem_free(x->engine, vars, size);
  return status;
}

/* In the scope of the function that is rewritten, wherever the sweep is. */
static pln_status own(expander *x, pln_builder *b, pln_scope body,
                      const pln_node *node, pln_attrs attrs, pln_ref *out) {
  PLN_TRY(pln_build_in(b, b->open[1]));
  PLN_TRY(pln_build_function(b, body, attrs, 0, out));
  PLN_TRY(pln_build_in(b, PLN_NONE));
  return generic(x, b, node->type, *out);
}

static pln_status expand(expander *x, pln_builder *b, const pln_node *node,
                         pln_attrs attrs, pln_ref *out) {
  uint32_t n = pln_type_n_parts(x->engine, node->type);
  pln_ref *params = pln_mem_new(x->engine, n * sizeof *params);
  pln_ref result;
  pln_scope body;
  if (!params)
    return pln_nomem(x->engine);
  pln_status status = pln_build_open(b, &body);
  if (status == PLN_OK)
    status = call_inside(x, b, node, params, &result);
  pln_mem_free(x->engine, params, n * sizeof *params);
  PLN_TRY(status);
  PLN_TRY(pln_build_end(b, body, result, 0));
  return own(x, b, body, node, attrs, out);
}

/* False: the node stays. *attrs are those of the function made. */
static bool is_expanded(const expander *x, pln_ref old, pln_attrs *attrs) {
  const pln_node *n = &x->old->nodes[old];
  *attrs = 0;
  if (pln_type_kind_of(x->engine, n->type) != PLN_TYPE_FUNC)
    return false;
  if (n->kind == PLN_CONSTRUCTOR)
    return x->constructors && x->as_value[old];
  if (n->kind != PLN_GLOBAL_VAR || !x->globals || x->expanded[old])
    return false;
  uint32_t i = pln_module_find(x->module, n->data);
  if (i == PLN_NONE)
    return false;
  const pln_graph *g = pln_module_function(x->module, i);
  *attrs = g->nodes[g->root].attrs;
  return g->nodes[g->root].kind == PLN_FUNCTION;
}

static pln_status visit(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  expander *x = ud;
  const pln_node *n = &x->old->nodes[old];
  pln_attrs attrs;
  if (!is_expanded(x, old, &attrs))
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  uint64_t key = (uint64_t)n->kind << 32 | n->data;
  uint32_t known = pln_idmap_get(x->made, key);
  if (known) {
    *node = known - 1;
    return PLN_OK;
  }
  PLN_TRY(expand(x, b, n, attrs, node));
  return pln_idmap_set(x->made, key, *node + 1);
}

/* fn (%a, %b) { callee(%a, %b) }: what this pass makes. */
static void look_at_function(expander *x, const pln_scope_row *row) {
  const pln_graph *g = x->old;
  const pln_node *call = &g->nodes[row->result];
  if (call->kind != PLN_CALL || call->data ||
      call->count != row->n_params + 1 ||
      row->end - row->begin != row->n_params + 2)
    return;
  for (uint32_t i = 0; i < row->n_params; i++)
    if (g->operands[call->first + 1 + i] != row->begin + i)
      return;
  x->expanded[g->operands[call->first]] = 1;
}

static void look(expander *x) {
  const pln_graph *g = x->old;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = n->kind == PLN_CALL && !n->data; i < n->count; i++)
      x->as_value[pln_operand(g, ref, i)] = 1;
  }
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    const pln_scope_row *row = &g->scopes[s];
    x->as_value[row->result] = 1;
    if (g->nodes[row->owner].kind == PLN_FUNCTION && row->owner != g->root)
      look_at_function(x, row);
  }
}

static pln_status form(pln_pass_run *run, const pln_graph *function,
                       pln_graph **out) {
  expander x = {.engine = pln_run_engine(run),
                .module = run->module,
                .old = function,
                .constructors = pln_run_int(run, "expand_constructor"),
                .globals = pln_run_int(run, "expand_global_var")};
  pln_mutator m = {.ud = &x, .visit = visit};
  size_t n = function->n_nodes;
  x.as_value = pln_mem_zeroed(x.engine, n);
  x.expanded = pln_mem_zeroed(x.engine, n);
  pln_status status = x.as_value && x.expanded
                          ? pln_idmap_new(x.engine, &x.made)
                          : pln_nomem(x.engine);
  if (status == PLN_OK) {
    look(&x);
    status = pln_graph_rewrite(function, &m, out);
  }
  pln_idmap_free(x.made);
  pln_mem_free(x.engine, x.as_value, n);
  pln_mem_free(x.engine, x.expanded, n);
  return status;
}

pln_status pln_pass_eta_expand(pln_pass_run *run) {
  return pln_run_on_functions(run, form);
}
