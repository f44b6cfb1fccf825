/* op_function.c: asks the function of an operator's attribute what a call
 * becomes.
 *
 * Called by AlterOpLayout (attribute FTVMAlterOpLayout) and Legalize
 * (FTVMLegalize, or as the option says).
 *
 *     function(attrs, inputs, types)             -> a call, or nil
 *     function(attrs, inputs, types, out_type)   -> a call, or nil
 *
 * Semantics: TVM's FTVMLegalize, FTVMAlterOpLayout. */

#include "transform/layout/op_function.h"

#include "perilune/op_attr.h"

/* The inputs, the types of the inputs, and the result's type behind them. */
static void fill_values(const pln_op_question *q, pln_op_value *inputs,
                        pln_op_value *types) {
  const pln_graph *old = pln_rewrite_old(q->rw);
  for (uint32_t i = 0; i < q->n_args; i++) {
    inputs[i] = (pln_op_value){.kind = PLN_OP_NODE, .v.node = q->args[i]};
    types[i] =
        (pln_op_value){.kind = PLN_OP_TYPE,
                       .v.type = old->nodes[pln_operand(old, q->old, i)].type};
  }
  types[q->n_args] =
      (pln_op_value){.kind = PLN_OP_TYPE, .v.type = old->nodes[q->old].type};
}

/* Only a call can take the place of a call. */
static pln_status check_answer(const pln_op_question *q, const char *key,
                               const pln_op_value *result, pln_ref *answer) {
  const pln_graph *g = pln_rewrite_graph(q->rw);
  *answer = result->kind == PLN_OP_NIL ? PLN_NONE : result->v.node;
  if (*answer == PLN_NONE ||
      (g->nodes[*answer].kind == PLN_CALL && g->nodes[*answer].data))
    return PLN_OK;
  return pln_diag_error(
      g->engine, PLN_ERR_TYPE, NULL,
      "attribute '%s' of '%s': a call of an operator or nil expected, got a %s",
      key,
      pln_op_row(g->engine, pln_rewrite_old(q->rw)->nodes[q->old].data)->name,
      pln_kind_name((pln_kind)g->nodes[*answer].kind));
}

static pln_status ask(const pln_op_question *q, const char *key,
                      pln_op_value *inputs, pln_op_value *types,
                      pln_ref *answer, bool *asked) {
  const pln_graph *old = pln_rewrite_old(q->rw);
  uint32_t n_types = q->n_args + !q->for_layout;
  fill_values(q, inputs, types);
  pln_op_value args[] = {{.kind = PLN_OP_ATTRS, .v.attrs = q->attrs},
                         {.kind = PLN_OP_LIST, .v.list = {q->n_args, inputs}},
                         {.kind = PLN_OP_LIST, .v.list = {n_types, types}},
                         types[q->n_args]};
  pln_op_value result = {.kind = PLN_OP_NODE, .optional = true};
  pln_op_call call = {.engine = old->engine,
                      .graph = old,
                      .node = q->old,
                      .rewrite = q->rw,
                      .image = q->image,
                      .n_args = q->for_layout ? 4 : 3,
                      .args = args,
                      .result = &result};
  PLN_TRY(pln_op_attr_call(old->engine, old->nodes[q->old].data, key, &call,
                           asked));
  return *asked ? check_answer(q, key, &result, answer) : PLN_OK;
}

/* Inference is lenient meanwhile: what it says of operands that are not
 * converted yet is dropped. */
static pln_status ask_for_layout(const pln_op_question *q, const char *key,
                                 pln_op_value *inputs, pln_op_value *types,
                                 pln_ref *answer, bool *asked) {
  pln_builder *b = pln_rewrite_builder(q->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  size_t mark = pln_diag_count(b->engine);
  bool lenient = b->lenient;
  pln_builder_lenient(b);
  pln_status status = ask(q, key, inputs, types, answer, asked);
  b->lenient = lenient;
  if (status == PLN_OK)
    pln_diag_drop(b->engine, mark);
  return status;
}

pln_status pln_ask_op_function(const pln_op_question *q, const char *key,
                               pln_ref *answer, bool *asked) {
  pln_engine *e = pln_rewrite_old(q->rw)->engine;
  pln_op op = pln_rewrite_old(q->rw)->nodes[q->old].data;
  *asked = false;
  *answer = PLN_NONE;
  if (!pln_op_attr_get(e, op, key))
    return PLN_OK;
  size_t size = (2 * (size_t)q->n_args + 1) * sizeof(pln_op_value);
  pln_op_value *values = pln_mem_new(e, size);
  if (!values)
    return pln_nomem(e);
  pln_status status =
      q->for_layout
          ? ask_for_layout(q, key, values, values + q->n_args, answer, asked)
          : ask(q, key, values, values + q->n_args, answer, asked);
  pln_mem_free(e, values, size);
  return status;
}
