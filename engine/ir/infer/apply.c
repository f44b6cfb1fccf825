/* apply.c: infers calls of function types, and types that must be equal.
 *
 * Called by infer.c as nodes are appended. Unknown types are left open and
 * contradict nothing; pln_module_infer looks again when everything is known. */

#include "ir/infer/apply.h"
#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/infer/relation.h"
#include "ir/infer/type_args.h"

pln_type pln_most_specific_type(const pln_engine *engine, pln_type a,
                                pln_type b) {
  bool functions = pln_type_get_kind(engine, a) == PLN_TYPE_FUNC &&
                   pln_type_get_kind(engine, b) == PLN_TYPE_FUNC;
  bool more =
      functions && pln_type_n_vars(engine, a) > pln_type_n_vars(engine, b);
  return more ? b : a;
}

pln_status pln_type_unify(pln_engine *engine, pln_type a, pln_type b,
                          pln_type *out, bool *fits) {
  *fits = true;
  *out = a ? a : b;
  if (a == b || !a || !b)
    return PLN_OK;
  pln_unifier u;
  pln_type open_a, open_b;
  pln_unifier_init(&u, engine);
  pln_status status = pln_unifier_open(&u, a, &open_a);
  if (status == PLN_OK)
    status = pln_unifier_open(&u, b, &open_b);
  if (status == PLN_OK)
    status = pln_unify(&u, open_a, open_b, fits);
  if (status == PLN_OK && *fits)
    status = pln_unifier_resolve(&u, pln_unifier_common_type(&u), out, NULL);
  pln_unifier_free(&u);
  return status;
}

pln_status pln_check_condition(pln_engine *engine, pln_type type) {
  pln_type_kind kind = pln_type_get_kind(engine, type);
  pln_dtype dtype = pln_type_dtype(engine, type);
  pln_description got;
  if (!type || kind == PLN_TYPE_HOLE ||
      (kind == PLN_TYPE_TENSOR && (!dtype || dtype == PLN_BOOL)))
    return PLN_OK;
  return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                        "the condition of an If must be boolean, not %s",
                        pln_describe_type(engine, type, &got));
}

/* A call being typed. */
typedef struct application {
  pln_engine *engine;
  const pln_graph *graph;
  const pln_node *call;    /* operand 0: the callee */
  const pln_attr *written; /* type arguments, or NULL */
  pln_unifier u;
} application;

static pln_status refuse_argument_type(const application *a, uint32_t i,
                                       pln_type wanted) {
  pln_description param, arg;
  pln_ref operand = a->graph->operands[a->call->first + 1 + i];
  return pln_diag_error(
      a->engine, PLN_ERR_TYPE, NULL, "argument %u must be %s, got %s", i + 1,
      pln_describe_type(a->engine, wanted, &param),
      pln_describe_type(a->engine, a->graph->nodes[operand].type, &arg));
}

static pln_status refuse_count(pln_engine *e, uint32_t wanted, uint32_t got) {
  return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                        "the function takes %u argument%s, got %u", wanted,
                        wanted == 1 ? "" : "s", got);
}

static pln_status check_args(application *a, pln_type function, bool unified) {
  for (uint32_t i = 0; i + 1 < a->call->count; i++) {
    pln_ref operand = a->graph->operands[a->call->first + 1 + i];
    pln_type arg = a->graph->nodes[operand].type;
    pln_type param = pln_type_part_at(a->engine, function, i);
    bool fits = arg == param || !arg;
    if (!fits && unified) {
      PLN_TRY(pln_unifier_open(&a->u, arg, &arg));
      PLN_TRY(pln_unify(&a->u, param, arg, &fits));
    } else if (!fits) {
      PLN_TRY(pln_type_unify(a->engine, param, arg, &arg, &fits));
    }
    if (!fits && unified) /* implied by earlier arguments */
      PLN_TRY(pln_unifier_resolve(&a->u, param, &param, NULL));
    if (!fits)
      return refuse_argument_type(a, i, param);
  }
  return PLN_OK;
}

/* Infers the type arguments of a generic function from the arguments and the
 * relations among them. */
static pln_status apply_generic(application *a, pln_type function,
                                pln_type *ret) {
  pln_type unknown;
  pln_unifier_init(&a->u, a->engine);
  pln_status status =
      pln_instantiate(&a->u, function, a->written, NULL, &function);
  if (status == PLN_OK)
    status = check_args(a, function, true);
  if (status == PLN_OK)
    status = pln_relations_solve(&a->u, function, &unknown);
  uint32_t n = pln_type_n_parts(a->engine, function);
  if (status == PLN_OK)
    status = pln_unifier_resolve(
        &a->u, pln_type_part_at(a->engine, function, n - 1), ret, NULL);
  pln_unifier_free(&a->u);
  return status;
}

pln_status pln_infer_apply(pln_engine *engine, const pln_graph *graph,
                           const pln_node *call, pln_type *ret) {
  const pln_node *callee = &graph->nodes[graph->operands[call->first]];
  pln_type function = callee->type;
  bool absent = callee->kind == PLN_ABSENT;
  *ret = 0;
  if (!absent &&
      (!function || pln_type_get_kind(engine, function) == PLN_TYPE_HOLE))
    return PLN_OK;
  if (absent || pln_type_get_kind(engine, function) != PLN_TYPE_FUNC)
    return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                          "the callee is not a function");
  uint32_t n = pln_type_n_parts(engine, function);
  if (n != call->count)
    return refuse_count(engine, n - 1, call->count - 1);
  application a = {.engine = engine, .graph = graph, .call = call};
  a.written = pln_written_type_args(engine, call->attrs);
  if (pln_type_n_vars(engine, function) > 0 || a.written ||
      pln_type_n_constraints(engine, function) > 0)
    return apply_generic(&a, function, ret);
  *ret = pln_type_part_at(engine, function, n - 1);
  return check_args(&a, function, false);
}

/* ---------------------------------------------------------------- patterns */

static pln_status unify_fields(pln_unifier *u, const pln_graph *graph,
                               const pln_node *pattern, pln_type function,
                               pln_type *type) {
  pln_engine *e = u->engine;
  uint32_t n = pln_type_n_parts(e, function) - 1;
  if (n != pattern->count)
    return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                          "the constructor '%s' has %u field%s, the pattern %u",
                          pln_symbol_text(e, pattern->data).data, n,
                          n == 1 ? "" : "s", pattern->count);
  PLN_TRY(pln_unifier_instantiate(u, function, &function));
  for (uint32_t i = 0; i < n; i++) {
    pln_type field = graph->nodes[graph->operands[pattern->first + i]].type;
    bool fits;
    PLN_TRY(pln_unifier_open(u, field, &field));
    PLN_TRY(pln_unify(u, pln_type_part_at(e, function, i), field, &fits));
    if (!fits)
      return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                            "field %u of the pattern has another type than the "
                            "constructor's",
                            i + 1);
  }
  return pln_unifier_resolve(u, pln_type_part_at(e, function, n), type, NULL);
}

pln_status pln_infer_pattern(pln_engine *engine, const pln_module *module,
                             const pln_graph *graph, const pln_node *pattern,
                             pln_type *type) {
  uint32_t index, of = PLN_NONE;
  pln_type function;
  if (module)
    of = pln_module_find_constructor(module, pattern->data, &index);
  if (of == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_module_constructor_type(module, of, index, &function));
  pln_unifier u;
  pln_unifier_init(&u, engine);
  pln_status status = unify_fields(&u, graph, pattern, function, type);
  pln_unifier_free(&u);
  return status;
}
