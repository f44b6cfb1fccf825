/* eta_expand.c: EtaExpand: writes constructors and global functions that are
 * used as values as functions that call them.
 *
 * Run by the executor, once per module. Requires verified graphs. With
 * expand_constructor, a constructor used as a value becomes a function that
 * calls it. With expand_global_var, a GlobalVar, called or not, becomes a
 * function that has the parameters and attributes of the named function and
 * calls it. One function is made per name, in the outermost scope.
 *
 *     @f   =>   fn (%eta_expand_param) { @f(%eta_expand_param) }
 *
 * Semantics: TVM EtaExpand. */

#include "ir/type/substitute.h"
#include "transform/transform.h"

typedef struct expander {
  pln_engine *engine;
  const pln_module *module;
  const pln_graph *old;
  bool constructors, globals;
  uint8_t *as_value; /* by node: it is used other than as a callee */
  uint8_t *expanded; /* by node: a function that only calls it exists */
  pln_idmap *made;   /* kind and name -> the new function + 1 */
} expander;

/* What is called, with its type instantiated with fresh type variables. */
typedef struct callee {
  const pln_node *node;
  uint32_t n_vars, n_params;
  pln_type *vars;  /* n_vars */
  pln_type *parts; /* parameter types, then the result type */
  pln_ref *params;
} callee;

static pln_status new_vars(expander *x, callee *c, pln_type_substitution *map) {
  for (uint32_t i = 0; i < c->n_vars; i++) {
    pln_type var = pln_type_var_at(x->engine, c->node->type, i);
    PLN_TRY(pln_type_var(x->engine, pln_type_symbol(x->engine, var),
                         pln_type_var_get_kind(x->engine, var), &c->vars[i]));
    PLN_TRY(pln_type_substitution_bind(map, var, c->vars[i]));
  }
  for (uint32_t i = 0; i <= c->n_params; i++)
    PLN_TRY(pln_type_substitution_apply(
        map, pln_type_part_at(x->engine, c->node->type, i), &c->parts[i]));
  return PLN_OK;
}

static pln_status prepare_eta_callee(expander *x, const pln_node *node,
                                     callee *c) {
  c->node = node;
  c->n_vars = pln_type_n_vars(x->engine, node->type);
  c->n_params = pln_type_n_parts(x->engine, node->type) - 1;
  c->vars = pln_mem_new(x->engine, (c->n_vars + 1) * sizeof *c->vars);
  c->parts = pln_mem_new(x->engine, (c->n_params + 1) * sizeof *c->parts);
  c->params = pln_mem_new(x->engine, (c->n_params + 1) * sizeof *c->params);
  if (!c->vars || !c->parts || !c->params)
    return pln_nomem(x->engine);
  pln_type_substitution map = {.engine = x->engine, .flags = PLN_TYPE_HAS_VAR};
  pln_status status = new_vars(x, c, &map);
  pln_type_substitution_free(&map);
  return status;
}

static void free_eta_expander(expander *x, callee *c) {
  pln_mem_free(x->engine, c->vars, (c->n_vars + 1) * sizeof *c->vars);
  pln_mem_free(x->engine, c->parts, (c->n_params + 1) * sizeof *c->parts);
  pln_mem_free(x->engine, c->params, (c->n_params + 1) * sizeof *c->params);
}

static pln_status add_call(expander *x, pln_builder *b, callee *c,
                           pln_ref *out) {
  pln_symbol name;
  pln_ref node;
  PLN_TRY(pln_symbol_intern(x->engine, pln_text("eta_expand_param"), &name));
  for (uint32_t i = 0; i < c->n_params; i++)
    PLN_TRY(pln_build_param(b, name, c->parts[i], 0, &c->params[i]));
  PLN_TRY(pln_builder_append(b, c->node, 0, NULL, &node));
  PLN_TRY(pln_build_apply(b, node, 0, 0, c->n_params, c->params, out));
  b->graph->nodes[*out].type = c->parts[c->n_params];
  return PLN_OK;
}

/* Builds the function in the outermost scope, wherever the sweep is. */
static pln_status add_function(expander *x, pln_builder *b, callee *c,
                               pln_attrs attrs, pln_ref *out) {
  pln_ref result;
  pln_scope body;
  PLN_TRY(pln_build_open(b, &body));
  PLN_TRY(add_call(x, b, c, &result));
  PLN_TRY(pln_build_end(b, body, result, 0));
  PLN_TRY(pln_build_in(b, b->open[1]));
  PLN_TRY(pln_build_function(b, body, attrs, c->parts[c->n_params], out));
  PLN_TRY(pln_build_in(b, PLN_NONE));
  return c->n_vars ? pln_build_generic(b, *out, c->n_vars, c->vars) : PLN_OK;
}

static pln_status expand(expander *x, pln_builder *b, const pln_node *node,
                         pln_attrs attrs, pln_ref *out) {
  callee c = {0};
  pln_status status = prepare_eta_callee(x, node, &c);
  if (status == PLN_OK)
    status = add_function(x, b, &c, attrs, out);
  free_eta_expander(x, &c);
  return status;
}

/* Returns false if the node stays. *attrs are the attributes of the new
 * function. */
static bool is_expanded(const expander *x, pln_ref old, pln_attrs *attrs) {
  const pln_node *n = &x->old->nodes[old];
  *attrs = 0;
  if (pln_type_get_kind(x->engine, n->type) != PLN_TYPE_FUNC)
    return false;
  if (n->kind == PLN_CONSTRUCTOR)
    return x->constructors && x->as_value[old];
  if (n->kind != PLN_GLOBAL_VAR || !x->globals || x->expanded[old])
    return false;
  uint32_t i = pln_module_find(x->module, n->data);
  if (i == PLN_NONE)
    return false;
  const pln_graph *g = pln_module_function_at(x->module, i);
  *attrs = g->nodes[g->root].attrs;
  return g->nodes[g->root].kind == PLN_FUNCTION;
}

static pln_status eta_expand_node(void *ud, pln_rewrite *rw, pln_ref old,
                                  pln_ref *node) {
  expander *x = ud;
  const pln_node *n = &x->old->nodes[old];
  pln_attrs attrs;
  bool allowed;
  if (!is_expanded(x, old, &attrs))
    return PLN_OK;
  uint64_t key = (uint64_t)n->kind << 32 | n->data;
  uint32_t known = pln_idmap_get(x->made, key);
  if (known) {
    *node = known - 1;
    return PLN_OK;
  }
  PLN_TRY(pln_rewrite_apply(rw, "expand", &allowed));
  if (!allowed)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(expand(x, b, n, attrs, node));
  return pln_idmap_set(x->made, key, *node + 1);
}

/* Recognises fn (%a, %b) { callee(%a, %b) }, the output of this pass. */
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

static void mark_value_uses(expander *x) {
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
  pln_mutator m = {.ud = &x, .visit = eta_expand_node};
  size_t n = function->n_nodes;
  x.as_value = pln_mem_zeroed(x.engine, n);
  x.expanded = pln_mem_zeroed(x.engine, n);
  pln_status status = x.as_value && x.expanded
                          ? pln_idmap_new(x.engine, &x.made)
                          : pln_nomem(x.engine);
  if (status == PLN_OK) {
    mark_value_uses(&x);
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
