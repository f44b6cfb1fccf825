/* un_cps.c: UnCPS: gives a function in continuation-passing style the signature
 * that it had before ToCPS.
 *
 * Run by the executor, once per module. Functions that no other refers to are
 * converted if their last parameter is a function of one parameter whose result
 * type is their last type parameter. The result calls the old function with the
 * identity as continuation.
 *
 *     fn [answer](%x, %k: fn (T) -> answer) -> answer { ... }   =>
 *     fn (%x) -> T { (fn [answer](%x, %k) { ... })(%x, fn (%x1: T) { %x1 }) }
 *
 * Semantics: TVM un_cps, which takes any function and looks at no other.
 * PartialEvaluate removes both functions again. */

#include "ir/graph/module.h"
#include "ir/type/substitute.h"
#include "transform/functional/expression_tree.h"
#include "transform/transform.h"

typedef struct un_cps {
  pln_engine *engine;
  const pln_graph *old;
  const pln_scope_row *row;    /* of the root function */
  uint32_t n_vars;             /* its type parameters but the last */
  pln_type *vars;              /* new ones */
  pln_type_substitution types; /* old type parameters -> vars */
  pln_ref *args;
  pln_builder *b;
} un_cps;

static pln_type param_type(const un_cps *u, uint32_t i) {
  return u->old->nodes[u->row->begin + i].type;
}

/* *result: the type of the parameter of the continuation. Returns false if the
 * function is not in continuation-passing style. */
static bool find_continuation(const un_cps *u, pln_type *result) {
  pln_engine *e = u->engine;
  uint32_t n = u->row->n_params;
  pln_type vars = u->row->type_params;
  uint32_t n_vars = vars ? pln_type_n_parts(e, vars) : 0;
  if (n == 0 || n_vars == 0)
    return false;
  pln_type k = param_type(u, n - 1);
  if (pln_type_get_kind(e, k) != PLN_TYPE_FUNC || pln_type_n_parts(e, k) != 2)
    return false;
  *result = pln_type_part_at(e, k, 0);
  return pln_type_part_at(e, vars, n_vars - 1) == pln_type_part_at(e, k, 1);
}

static pln_status new_type_params(un_cps *u) {
  pln_engine *e = u->engine;
  for (uint32_t i = 0; i < u->n_vars; i++) {
    pln_type old = pln_type_part_at(e, u->row->type_params, i);
    PLN_TRY(pln_type_var(e, pln_type_symbol(e, old),
                         pln_type_var_get_kind(e, old), &u->vars[i]));
    PLN_TRY(pln_type_substitution_bind(&u->types, old, u->vars[i]));
  }
  return PLN_OK;
}

static pln_status add_params(un_cps *u) {
  for (uint32_t i = 0; i + 1 < u->row->n_params; i++) {
    pln_ref old = u->row->begin + i;
    pln_type type;
    PLN_TRY(pln_type_substitution_apply(&u->types, param_type(u, i), &type));
    PLN_TRY(pln_builder_derive(u->b, u->old, old));
    PLN_TRY(
        pln_build_param(u->b, u->old->nodes[old].attrs, type, 0, &u->args[i]));
  }
  return PLN_OK;
}

static pln_status build_identity(un_cps *u, pln_type type, pln_ref *out) {
  pln_symbol x;
  pln_scope scope;
  pln_ref param;
  PLN_TRY(pln_symbol_intern(u->engine, pln_text("x"), &x));
  PLN_TRY(pln_build_open(u->b, &scope));
  PLN_TRY(pln_build_param(u->b, x, type, 0, &param));
  PLN_TRY(pln_build_end(u->b, scope, param, 0));
  return pln_build_function(u->b, scope, 0, type, out);
}

static pln_status build_body(un_cps *u, pln_type result, pln_ref *out) {
  pln_ref function;
  PLN_TRY(pln_build_import(u->b, u->old, u->old->root, &function));
  PLN_TRY(pln_builder_derive(u->b, u->old, u->old->root));
  PLN_TRY(build_identity(u, result, &u->args[u->row->n_params - 1]));
  return pln_build_apply(u->b, function, 0, 0, u->row->n_params, u->args, out);
}

static pln_status build_function(un_cps *u, pln_type result, pln_graph **out) {
  pln_scope scope;
  pln_ref body, function;
  PLN_TRY(new_type_params(u));
  PLN_TRY(pln_type_substitution_apply(&u->types, result, &result));
  PLN_TRY(pln_build_open(u->b, &scope));
  PLN_TRY(add_params(u));
  PLN_TRY(build_body(u, result, &body));
  PLN_TRY(pln_build_end(u->b, scope, body, 0));
  PLN_TRY(pln_build_function(u->b, scope, u->old->nodes[u->old->root].attrs,
                             result, &function));
  if (u->n_vars)
    PLN_TRY(pln_build_generic(u->b, function, u->n_vars, u->vars));
  return pln_builder_seal(u->b, function, out);
}

static pln_status convert(un_cps *u, pln_type result, pln_graph **out) {
  size_t vars = (u->n_vars + (size_t)1) * sizeof *u->vars;
  size_t args = u->row->n_params * sizeof *u->args;
  u->types =
      (pln_type_substitution){.engine = u->engine, .flags = PLN_TYPE_HAS_VAR};
  u->vars = pln_mem_new(u->engine, vars);
  u->args = pln_mem_new(u->engine, args);
  pln_status status = u->vars && u->args ? pln_builder_new(u->engine, &u->b)
                                         : pln_nomem(u->engine);
  if (status == PLN_OK)
    status = build_function(u, result, out);
  pln_builder_free(u->b);
  pln_type_substitution_free(&u->types);
  pln_mem_free(u->engine, u->vars, vars);
  pln_mem_free(u->engine, u->args, args);
  return status;
}

/* Functions that others refer to keep the signature that these call. */
static void mark_referred(const pln_module *module, const pln_graph *g,
                          bool *referred) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_GLOBAL_VAR)
      continue;
    uint32_t i = pln_module_find(module, g->nodes[ref].data);
    if (i != PLN_NONE)
      referred[i] = true;
  }
}

static pln_status convert_function(pln_pass_run *run, const pln_graph *old,
                                   pln_graph **out) {
  un_cps u = {.engine = pln_run_engine(run), .old = old};
  pln_type result = 0;
  bool allowed;
  if (!pln_pass_applies(old) || old->nodes[old->root].kind != PLN_FUNCTION)
    return PLN_OK;
  u.row = &old->scopes[old->nodes[old->root].data];
  if (!find_continuation(&u, &result))
    return PLN_OK;
  PLN_TRY(pln_rule_apply(u.engine, "convert", old->root, &allowed));
  if (!allowed)
    return PLN_OK;
  u.n_vars = pln_type_n_parts(u.engine, u.row->type_params) - 1;
  return convert(&u, result, out);
}

static pln_status convert_functions(pln_pass_run *run, const bool *referred,
                                    pln_module *out, bool *changed) {
  for (uint32_t i = 0; i < pln_module_count(run->module); i++) {
    const pln_graph *old = pln_module_function_at(run->module, i);
    pln_graph *function = NULL;
    if (!referred[i])
      PLN_TRY(convert_function(run, old, &function));
    if (!function)
      continue;
    pln_status status =
        pln_module_set(out, pln_module_name_at(run->module, i), function);
    pln_graph_release(function);
    PLN_TRY(status);
    *changed = true;
  }
  return PLN_OK;
}

pln_status pln_pass_un_cps(pln_pass_run *run) {
  const pln_module *module = run->module;
  size_t n = pln_module_count(module) + (size_t)1;
  bool *referred = pln_mem_zeroed(run->engine, n);
  pln_module *out = NULL;
  bool changed = false;
  pln_status status =
      referred ? pln_module_copy(module, &out) : pln_nomem(run->engine);
  for (uint32_t i = 0; i + 1 < n && referred; i++)
    mark_referred(module, pln_module_function_at(module, i), referred);
  if (status == PLN_OK)
    status = convert_functions(run, referred, out, &changed);
  pln_mem_free(run->engine, referred, n);
  if (status == PLN_OK && changed)
    pln_run_set_module(run, out);
  else
    pln_module_release(out);
  return status;
}
