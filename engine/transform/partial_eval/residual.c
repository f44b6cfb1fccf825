/* residual.c: what the partial evaluator writes down: calls, constants and the
 * lets that bind them; and the calls of operators that it computes.
 *
 * Called by the other files of this folder. Everything goes to the innermost
 * open scope of the builder. */

#include "eval/call.h"
#include "ir/type/type.h"
#include "transform/functional/let.h"
#include "transform/partial_eval/partial_evaluate.h"

static pln_status name_global(pe_run *pe, pln_symbol name, pln_ref *out) {
  uint32_t i = pln_module_find(pe->module, name);
  return pln_build_global_var(
      pe->b, name, pln_signature(pln_module_function_at(pe->module, i)), out);
}

pln_status pe_node(pe_run *pe, const pe_value *value, pln_ref *out) {
  *out = value->node;
  if (value->global)
    return name_global(pe, value->global, out);
  return value->atom ? pln_copy_atom(pe->b, value->atom, value->node, out)
                     : PLN_OK;
}

pln_status pe_bind(pe_run *pe, pe_kind kind, pln_ref node, pe_value **out) {
  pln_ref var;
  PLN_TRY(pln_let_new(pe->b, node, &var));
  return pe_value_new(pe, kind, var, out);
}

/* The builder keeps a reference to the tensor as long as it is needed; the
 * arena of the run does not. */
pln_status pe_tensor(pe_run *pe, const pln_tensor *tensor, pe_value **out) {
  pln_ref node;
  PLN_TRY(pln_build_constant(pe->b, tensor, &node));
  const pln_graph *g = pe->b->graph;
  tensor = g->tensors[g->nodes[node].data];
  PLN_TRY(pe_bind(pe, PE_TENSOR, node, out));
  (*out)->of.tensor = tensor;
  (*out)->whole = true;
  return PLN_OK;
}

/* -------------------------------------------------------------------- calls */

static pln_status nodes_of(pe_run *pe, uint32_t n, pe_value **args,
                           pln_ref *out) {
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pe_node(pe, args[i], &out[i]));
  return PLN_OK;
}

/* What the arguments leave open, such as the elements of an empty list, is
 * taken from the old call. */
static pln_status refine_type(pe_run *pe, pln_ref call, pln_ref node) {
  pln_engine *e = pe->engine;
  pln_type *type = &pe->b->graph->nodes[node].type;
  pln_type old = pe->frame->source->graph->nodes[call].type;
  bool conflict;
  if (*type && !(pln_type_flags(e, *type) & PLN_TYPE_HAS_HOLE))
    return PLN_OK;
  PLN_TRY(pe_type(pe, &pe->frame->types, old, &old));
  PLN_TRY(pln_type_meet(e, *type, old, &old, &conflict));
  type = &pe->b->graph->nodes[node].type;
  if (!conflict)
    *type = old;
  return PLN_OK;
}

static pln_status build_call(pe_run *pe, pln_ref call, const pe_value *callee,
                             uint32_t n, pe_value **args, pln_ref *parts,
                             pln_ref *out) {
  const pln_graph *from = pe->frame->source->graph;
  const pln_node *old = &from->nodes[call];
  pln_attrs attrs = callee->kind == PE_CONSTRUCTOR ? 0 : old->attrs;
  pln_ref function;
  PLN_TRY(nodes_of(pe, n, args, parts));
  PLN_TRY(pe_node(pe, callee, &function));
  PLN_TRY(pln_builder_derive(pe->b, from, call));
  PLN_TRY(pln_build_apply(pe->b, function, attrs, 0, n, parts, out));
  return refine_type(pe, call, *out);
}

pln_status pe_residual_call(pe_run *pe, pln_ref call, const pe_value *callee,
                            uint32_t n, pe_value **args, pe_value **out) {
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *parts = pln_mem_new(pe->engine, size), node = PLN_NONE;
  if (!parts)
    return pln_nomem(pe->engine);
  pln_status status = build_call(pe, call, callee, n, args, parts, &node);
  pln_mem_free(pe->engine, parts, size);
  PLN_TRY(status);
  return pe_bind(pe, PE_UNKNOWN, node, out);
}

/* ---------------------------------------------------------------- operators */

/* The fields of a tuple that is the only argument, as in concatenate. */
static pe_value **tensors_of(uint32_t *n, pe_value **args) {
  if (*n != 1 || args[0]->kind != PE_TUPLE)
    return args;
  *n = args[0]->n;
  return args[0]->fields;
}

static bool is_computed(const pe_run *pe, pln_op op, uint32_t n,
                        pe_value **args) {
  const pln_op_info *row = pln_op_row(pe->engine, op);
  for (uint32_t i = 0; i < n; i++)
    if (args[i]->kind != PE_TENSOR)
      return false;
  return row->traits & PLN_TRAIT_PURE && row->kernel &&
         !(row->traits & PLN_TRAIT_DATA);
}

/* *done: the call has a defined result. */
static pln_status compute(pe_run *pe, pln_ref call, uint32_t n, pe_value **args,
                          const pln_tensor **tensors, pln_tensor **results,
                          bool *done) {
  const pln_graph *g = pe->b->graph;
  const pln_node *node = &g->nodes[call];
  size_t mark = pln_diag_count(pe->engine);
  for (uint32_t i = 0; i < n; i++)
    tensors[i] = args[i]->of.tensor;
  pln_status status = pln_call_run(&(pln_prepared_call){
      g, node, node->attrs, n, tensors, results, true, NULL});
  *done = status == PLN_OK;
  bool tuple = pln_n_fields(g, node) > 0;
  for (uint32_t i = 0; i < pln_n_results(g, node) && *done; i++)
    *done = results[i] &&
            (tuple || pln_tensor_fits(pe->engine, results[i], node->type));
  if (status == PLN_ERR_UNSUPPORTED)
    pln_diag_drop(pe->engine, mark);
  return status == PLN_ERR_UNSUPPORTED ? PLN_OK : status;
}

static pln_status make_tuple(pe_run *pe, uint32_t n, pln_tensor **results,
                             pln_ref *parts, pe_value **out) {
  pe_value **fields = pe_alloc(pe, n * sizeof *fields);
  pln_ref tuple;
  if (!fields)
    return PLN_ERR_NOMEM;
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pe_tensor(pe, results[i], &fields[i]));
    parts[i] = fields[i]->node;
  }
  PLN_TRY(pln_build_tuple(pe->b, n, parts, &tuple));
  PLN_TRY(pe_bind(pe, PE_TUPLE, tuple, out));
  (*out)->n = n;
  (*out)->fields = fields;
  (*out)->whole = true;
  return PLN_OK;
}

/* The results replace the call, which is the last node of the builder. */
static pln_status write_results(pe_run *pe, pln_ref call, bool is_tuple,
                                uint32_t n, pln_tensor **results,
                                pe_value **out) {
  size_t size = n * sizeof(pln_ref);
  pln_builder_drop(pe->b, call);
  if (!is_tuple)
    return pe_tensor(pe, results[0], out);
  pln_ref *parts = pln_mem_new(pe->engine, size);
  if (!parts)
    return pln_nomem(pe->engine);
  pln_status status = make_tuple(pe, n, results, parts, out);
  pln_mem_free(pe->engine, parts, size);
  return status;
}

static pln_status compute_call(pe_run *pe, pln_ref call, uint32_t n,
                               pe_value **args, pe_value **out) {
  pln_engine *e = pe->engine;
  const pln_node node = pe->b->graph->nodes[call];
  uint32_t k = pln_n_results(pe->b->graph, &node);
  bool tuple = pln_n_fields(pe->b->graph, &node) > 0;
  size_t in = (n + (size_t)1) * sizeof(pln_tensor *);
  size_t to = k * sizeof(pln_tensor *);
  const pln_tensor **tensors = pln_mem_zeroed(e, in);
  pln_tensor **results = pln_mem_zeroed(e, to);
  bool done = false;
  pln_status status = tensors && results
                          ? compute(pe, call, n, args, tensors, results, &done)
                          : pln_nomem(e);
  if (status == PLN_OK)
    status = done ? write_results(pe, call, tuple, k, results, out)
                  : pe_bind(pe, PE_UNKNOWN, call, out);
  if (results)
    pln_tensors_release(k, results);
  pln_mem_free(e, tensors, in);
  pln_mem_free(e, results, to);
  return status;
}

static pln_status build_operator_call(pe_run *pe, pln_ref call, pln_op op,
                                      uint32_t n, pe_value **args,
                                      pln_ref *out) {
  const pln_graph *from = pe->frame->source->graph;
  pln_node copy = from->nodes[call];
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *parts = pln_mem_new(pe->engine, size);
  if (!parts)
    return pln_nomem(pe->engine);
  pln_status status = nodes_of(pe, n, args, parts);
  if (status == PLN_OK)
    status = pln_builder_derive(pe->b, from, call);
  copy.data = op;
  copy.type = 0;
  if (status == PLN_OK)
    status = pln_builder_add(pe->b, &copy, n, parts, out);
  pln_mem_free(pe->engine, parts, size);
  PLN_TRY(status);
  return refine_type(pe, call, *out);
}

pln_status pe_operator_call(pe_run *pe, pln_ref call, pln_op op, uint32_t n,
                            pe_value **args, pe_value **out) {
  pln_ref node;
  PLN_TRY(build_operator_call(pe, call, op, n, args, &node));
  args = tensors_of(&n, args);
  if (is_computed(pe, op, n, args))
    return compute_call(pe, node, n, args, out);
  return pe_bind(pe, PE_UNKNOWN, node, out);
}
