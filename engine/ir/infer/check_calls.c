/* check_calls.c: checks every call against the signature of its callee: number
 * and types of arguments, and the result type.
 *
 * The verifier runs it for graphs with such calls; InferType and
 * pln_module_with run it at their ends. Usually the types are identical, which
 * costs one comparison per argument; otherwise the call is inferred, once per
 * pair of signatures. */

#include "ir/infer/check_calls.h"
#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/infer/apply.h"
#include "ir/infer/type_args.h"

bool pln_has_own_type(const pln_graph *caller, const pln_node *global,
                      const pln_graph *callee) {
  return global->type && callee->nodes[callee->root].kind == PLN_PRIM_FUNC &&
         caller->nodes[caller->root].kind != PLN_PRIM_FUNC;
}

typedef struct checker {
  const pln_graph *g;
  pln_idmap *fitting; /* pairs of signatures already checked; NULL: none */
} checker;

/* True if argument and result types are identical to the signature's. */
static bool fits_plainly(const checker *c, const pln_node *n,
                         pln_type function) {
  const pln_engine *e = c->g->engine;
  const pln_ref *operands = pln_operands(c->g, n);
  if (pln_type_get_kind(e, function) != PLN_TYPE_FUNC ||
      pln_type_n_vars(e, function) > 0 ||
      pln_type_n_constraints(e, function) > 0 ||
      pln_type_n_parts(e, function) != n->count)
    return false;
  for (uint32_t i = 1; i < n->count; i++)
    if (c->g->nodes[operands[i]].type != pln_type_part_at(e, function, i - 1))
      return false;
  return n->type == pln_type_part_at(e, function, n->count - 1);
}

/* The function type implied by the call's arguments and result. */
static pln_status signature_from_call(const checker *c, const pln_node *n,
                                      pln_type *out) {
  pln_engine *e = c->g->engine;
  const pln_ref *operands = pln_operands(c->g, n);
  pln_type few[16], *types = few;
  size_t size = n->count * sizeof *types;
  if (size > sizeof few && !(types = pln_mem_new(e, size)))
    return pln_nomem(e);
  for (uint32_t i = 1; i < n->count; i++)
    types[i - 1] = c->g->nodes[operands[i]].type;
  types[n->count - 1] = n->type;
  pln_status status = pln_type_make(e, PLN_TYPE_FUNC, 0, n->count, types, out);
  if (types != few)
    pln_mem_free(e, types, size);
  return status;
}

static pln_status ask_inference(const checker *c, const pln_node *n) {
  pln_engine *e = c->g->engine;
  pln_description wanted, got;
  pln_type ret, both;
  bool fits;
  PLN_TRY(pln_infer_apply(e, c->g, n, &ret));
  PLN_TRY(pln_type_unify(e, ret, n->type, &both, &fits));
  if (fits)
    return PLN_OK;
  return pln_diag_error(
      e, PLN_ERR_TYPE, NULL, "the call returns %s, but its type is %s",
      pln_describe_type(e, ret, &wanted), pln_describe_type(e, n->type, &got));
}

static pln_status infer_and_annotate(const checker *c, pln_ref call) {
  pln_status status = ask_inference(c, &c->g->nodes[call]);
  if (status == PLN_ERR_TYPE)
    pln_annotate_node(c->g, call);
  return status;
}

static pln_status check_call(checker *c, pln_ref call) {
  pln_engine *e = c->g->engine;
  const pln_node *n = &c->g->nodes[call];
  pln_type function = c->g->nodes[pln_operands(c->g, n)[0]].type,
           call_signature;
  bool absent = c->g->nodes[pln_operands(c->g, n)[0]].kind == PLN_ABSENT;
  if (!absent && (!function || fits_plainly(c, n, function)))
    return PLN_OK;
  if (pln_written_type_args(e, n->attrs))
    return infer_and_annotate(c, call);
  PLN_TRY(signature_from_call(c, n, &call_signature));
  if (!c->fitting)
    PLN_TRY(pln_idmap_new(e, &c->fitting));
  uint64_t pair = (uint64_t)function << 32 | call_signature;
  if (pln_idmap_get(c->fitting, pair))
    return PLN_OK;
  PLN_TRY(infer_and_annotate(c, call));
  return pln_idmap_set(c->fitting, pair, 1);
}

pln_status pln_graph_check_calls(const pln_graph *graph) {
  checker c = {.g = graph};
  pln_status status = PLN_OK;
  if (graph->origins && graph->origins->mismatched_calls)
    return PLN_OK;
  for (pln_ref ref = 0; ref < graph->n_nodes && status == PLN_OK; ref++)
    if (graph->nodes[ref].kind == PLN_CALL && !graph->nodes[ref].data)
      status = check_call(&c, ref);
  pln_idmap_free(c.fitting);
  return status;
}

pln_status pln_graph_accept_calls(pln_graph *graph) {
  size_t mark = pln_diag_count(graph->engine);
  pln_status status = pln_graph_check_calls(graph);
  if (status != PLN_ERR_TYPE)
    return status;
  pln_diag_drop(graph->engine, mark);
  if (!graph->origins)
    PLN_TRY(pln_origins_new(graph->engine, &graph->origins));
  graph->origins->mismatched_calls = true;
  return PLN_OK;
}

pln_status pln_annotate_function(const pln_module *module, uint32_t index,
                                 pln_status status) {
  if (status == PLN_ERR_TYPE)
    pln_diag_extend(
        module->engine, " of @",
        pln_symbol_text(module->engine, pln_module_name_at(module, index))
            .data);
  return status;
}

pln_status pln_module_check_calls(const pln_module *module) {
  for (uint32_t i = 0; i < module->count; i++)
    PLN_TRY(pln_annotate_function(
        module, i, pln_graph_check_calls(pln_module_function_at(module, i))));
  return PLN_OK;
}
