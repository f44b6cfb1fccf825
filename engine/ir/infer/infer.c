/* infer.c: infers the type, the symbolic value and the effect of a node from
 * its operands and scopes. Called by the builder for each appended node and by
 * the rewriter for nodes whose operands changed.
 *
 * Invariants: it reads only earlier nodes, and the inferred type replaces any
 * other. With a lenient builder, a node that inference refuses gets a warning
 * and an unknown type. */

#include <stdio.h>

#include "ir/graph/describe.h"
#include "ir/infer/apply.h"
#include "ir/tir/tir.h"

/* Constants up to this length have symbolic values. */
enum { MAX_VALUE = 64 };
/* Maximum number of results stored without an allocation. */
enum { FEW_RESULTS = 16 };

/* -------------------------------------------------------------------- join */

static pln_status join_tensor_types(pln_engine *e, pln_type a, pln_type b,
                                    pln_type *out, bool *conflict) {
  pln_dtype da = pln_type_dtype(e, a), db = pln_type_dtype(e, b);
  bool alike = pln_type_number(e, a) == pln_type_number(e, b);
  if ((da != db && da && db) || !alike) {
    *conflict = true;
    return PLN_OK;
  }
  pln_dtype dtype = da == db ? da : PLN_DTYPE_NONE;
  int32_t rank = pln_type_rank(e, a);
  if (rank < 0 || rank != pln_type_rank(e, b))
    return pln_type_tensor(e, dtype, -1, NULL, out);
  pln_dim few[8], *dims = few;
  size_t size = (size_t)rank * sizeof *dims;
  if (size > sizeof few && !(dims = pln_mem_new(e, size)))
    return pln_nomem(e);
  const pln_dim *x = pln_type_dims(e, a), *y = pln_type_dims(e, b);
  for (int32_t i = 0; i < rank; i++)
    dims[i] = x[i] == y[i] ? x[i] : PLN_DIM_UNKNOWN;
  uint32_t lanes = pln_type_number(e, a);
  pln_status status = pln_type_tensor(e, dtype, rank, dims, out);
  if (status == PLN_OK && lanes)
    status = pln_type_with_lanes(e, *out, lanes, out);
  if (dims != few)
    pln_mem_free(e, dims, size);
  return status;
}

/* Joins tuples field by field. Fields that are not tensors are unified, so that
 * nothing recurses. */
static pln_status join_field_types(pln_engine *e, pln_type a, pln_type b,
                                   pln_type *out, bool *conflict) {
  *out = a == b ? a : 0;
  if (a == b || !a || !b)
    return PLN_OK;
  if (pln_type_get_kind(e, a) == PLN_TYPE_TENSOR &&
      pln_type_get_kind(e, b) == PLN_TYPE_TENSOR)
    return join_tensor_types(e, a, b, out, conflict);
  bool fits;
  PLN_TRY(pln_type_unify(e, a, b, out, &fits));
  if (!fits)
    *out = 0;
  *conflict = *conflict || !fits;
  return PLN_OK;
}

static pln_status join_tuple_types(pln_engine *e, pln_type a, pln_type b,
                                   pln_type *out, bool *conflict) {
  uint32_t n = pln_type_n_parts(e, a);
  if (n != pln_type_n_parts(e, b)) {
    *conflict = true;
    return PLN_OK;
  }
  pln_type *parts = pln_mem_new(e, n * sizeof *parts);
  if (!parts && n)
    return pln_nomem(e);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = join_field_types(e, pln_type_part_at(e, a, i),
                              pln_type_part_at(e, b, i), &parts[i], conflict);
  if (status == PLN_OK)
    status = pln_type_make(e, PLN_TYPE_TUPLE, 0, n, parts, out);
  pln_mem_free(e, parts, n * sizeof *parts);
  return status;
}

pln_status pln_type_join(pln_engine *engine, pln_type a, pln_type b,
                         pln_type *out, bool *conflict) {
  *conflict = false;
  *out = 0;
  if (pln_type_get_kind(engine, a) == PLN_TYPE_TUPLE &&
      pln_type_get_kind(engine, b) == PLN_TYPE_TUPLE && a != b)
    return join_tuple_types(engine, a, b, out, conflict);
  return join_field_types(engine, a, b, out, conflict);
}

/* ------------------------------------------------------------------- calls */

static pln_status check_arity(const pln_infer *call, const pln_op_info *row) {
  bool few = (int64_t)call->n_args < row->min_args;
  bool many = row->max_args >= 0 && (int64_t)call->n_args > row->max_args;
  if (!few && !many)
    return PLN_OK;
  return pln_diag_error(call->engine, PLN_ERR_TYPE, NULL,
                        "'%s' takes %s %d arguments, got %u", row->name,
                        few ? "at least" : "at most",
                        few ? row->min_args : row->max_args, call->n_args);
}

/* A type that no operator computes with, because it has no elements. */
static bool has_no_elements(const pln_engine *e, pln_type type) {
  pln_type_kind kind = pln_type_get_kind(e, type);
  return kind == PLN_TYPE_TUPLE || kind == PLN_TYPE_FUNC ||
         kind == PLN_TYPE_REF || kind == PLN_TYPE_CALL;
}

pln_status pln_arg_error(const pln_infer *call, uint32_t i, const char *format,
                         ...) {
  char text[200];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return pln_diag_error(call->engine, PLN_ERR_TYPE, NULL,
                        "'%s', operand %u: %s",
                        pln_op_row(call->engine, call->op)->name, i, text);
}

static pln_status refuse_operand(const pln_infer *call, uint32_t i,
                                 pln_type type) {
  pln_description got;
  return pln_arg_error(call, i, "expected a tensor, got %s",
                       pln_describe_type(call->engine, type, &got));
}

static bool is_container(const pln_engine *e, pln_type type) {
  pln_type_kind kind = pln_type_get_kind(e, type);
  return kind == PLN_TYPE_SEQUENCE || kind == PLN_TYPE_OPTIONAL ||
         kind == PLN_TYPE_MAP;
}

/* True for a tuple type whose fields all have elements. */
static bool is_tuple_of_tensors(const pln_engine *e, pln_type type) {
  if (pln_type_get_kind(e, type) != PLN_TYPE_TUPLE)
    return false;
  for (uint32_t i = 0; i < pln_type_n_parts(e, type); i++)
    if (has_no_elements(e, pln_type_part_at(e, type, i)) ||
        is_container(e, pln_type_part_at(e, type, i)))
      return false;
  return true;
}

bool pln_dtype_is_integer(pln_dtype dtype) {
  switch (dtype) {
  case PLN_DTYPE_NONE:
  case PLN_BOOL:
  case PLN_INT2:
  case PLN_INT4:
  case PLN_INT8:
  case PLN_INT16:
  case PLN_INT32:
  case PLN_INT64:
  case PLN_UINT2:
  case PLN_UINT4:
  case PLN_UINT8:
  case PLN_UINT16:
  case PLN_UINT32:
  case PLN_UINT64: return true;
  default: return false;
  }
}

pln_status pln_infer_expect_integers(const pln_infer *call, uint32_t i) {
  pln_type type = 0;
  if (i < call->n_args)
    type =
        call->fields ? call->fields[i] : call->graph->nodes[call->args[i]].type;
  pln_dtype dtype = pln_type_dtype(call->engine, type);
  if (pln_dtype_is_integer(dtype))
    return PLN_OK;
  return pln_arg_error(call, i, "expected integers, got %s",
                       pln_dtype_name(dtype));
}

static pln_status check_integers(const pln_infer *call,
                                 const pln_op_info *row) {
  uint32_t operands = row->traits / PLN_TRAIT_INTEGERS;
  for (uint32_t i = 0; operands >> i && i < PLN_INTEGER_OPERANDS; i++)
    if (operands >> i & 1)
      PLN_TRY(pln_infer_expect_integers(call, i));
  return PLN_OK;
}

/* Few operators accept operands that are not tensors. */
static pln_status check_operands(const pln_infer *call,
                                 const pln_op_info *row) {
  pln_engine *e = call->engine;
  if (row->traits & (PLN_TRAIT_ANY | PLN_TRAIT_OPAQUE))
    return PLN_OK;
  enum {
    HOLDS_CONTAINERS = PLN_TRAIT_CONTAINER | PLN_TRAIT_DATA | PLN_TRAIT_BODY
  };
  bool holds = row->traits & HOLDS_CONTAINERS;
  bool joins = row->traits & PLN_TRAIT_JOIN && call->n_args == 1;
  uint32_t n = pln_op_n_values(row, call->n_args);
  for (uint32_t i = 0; i < n; i++) {
    pln_type type = call->graph->nodes[call->args[i]].type;
    if (is_container(e, type) ? !holds
                              : has_no_elements(e, type) &&
                                    !(joins && is_tuple_of_tensors(e, type)))
      return refuse_operand(call, i, type);
  }
  return PLN_OK;
}

pln_infer pln_infer_of(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  return (pln_infer){.engine = graph->engine,
                     .graph = graph,
                     .args = pln_operands(graph, n),
                     .n_args = n->count,
                     .op = n->data,
                     .attrs = n->attrs,
                     .n_results = n->results};
}

pln_status pln_infer_call(pln_infer *call) {
  const pln_op_info *row = pln_op_row(call->engine, call->op);
  call->engine->n_inferences++;
  pln_attrs said = call->attrs;
  pln_status status = check_arity(call, row);
  if (status == PLN_OK)
    status = pln_attrs_within(call->engine, said, &call->attrs);
  if (status == PLN_OK)
    status = check_operands(call, row);
  if (status == PLN_OK)
    status = check_integers(call, row);
  /* The value of an attribute reference is unknown here, and so is the type. */
  if (status == PLN_OK && row->infer && !pln_attrs_has_refs(call->engine, said))
    status = row->infer(call);
  call->attrs = said;
  return status;
}

/* The operator calls the nested functions among its operands, so their effects
 * are the call's. */
static pln_effect closures_effect(const pln_graph *g, const pln_node *n) {
  pln_effect effect = PLN_EFFECT_NONE;
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_node *arg = &g->nodes[g->operands[n->first + i]];
    pln_effect call_effect = pln_node_call_effect(arg);
    if (arg->kind == PLN_FUNCTION && call_effect > effect)
      effect = call_effect;
  }
  return effect;
}

pln_effect pln_op_effect(const pln_graph *g, const pln_node *n) {
  uint32_t traits = pln_op_row(g->engine, n->data)->traits;
  if (traits & PLN_TRAIT_PURE)
    return closures_effect(g, n);
  return traits & PLN_TRAIT_RANDOM ? PLN_EFFECT_READS : PLN_EFFECT_UNKNOWN;
}

pln_status pln_infer_op_call(const pln_graph *graph, pln_node *n,
                             pln_type *operands, pln_value *value) {
  pln_engine *e = graph->engine;
  uint32_t k = n->results ? n->results : 1;
  pln_type few[FEW_RESULTS] = {0}, *types = few;
  if (k > FEW_RESULTS && !(types = pln_mem_zeroed(e, k * sizeof *types)))
    return pln_nomem(e);
  if (operands && !n->results)
    types[0] = n->type;
  pln_infer call = {.engine = e,
                    .graph = graph,
                    .args = pln_operands(graph, n),
                    .n_args = n->count,
                    .op = n->data,
                    .attrs = n->attrs,
                    .n_results = n->results,
                    .results = types,
                    .operands = operands};
  pln_status status = pln_infer_call(&call);
  if (status == PLN_OK && n->results)
    status = pln_type_make(e, PLN_TYPE_TUPLE, 0, k, types, &n->type);
  else if (status == PLN_OK)
    n->type = types[0];
  *value = status == PLN_OK ? call.value : 0;
  if (types != few)
    pln_mem_free(e, types, k * sizeof *types);
  return status;
}

/* The call has the callee's call effect; a GlobalVar has that of its
 * function. */
static pln_effect apply_effect(const pln_graph *g, const pln_node *n) {
  const pln_node *callee = &g->nodes[g->operands[n->first]];
  if (callee->kind == PLN_FUNCTION || callee->kind == PLN_GLOBAL_VAR ||
      callee->flags & PLN_NODE_BOUND)
    return pln_node_call_effect(callee);
  return callee->kind == PLN_CONSTRUCTOR ? PLN_EFFECT_NONE : PLN_EFFECT_UNKNOWN;
}

/* The result type is that of the callee's function type. */
static pln_status infer_call(const pln_builder *b, pln_node *n,
                             pln_value *value) {
  if (n->data)
    return pln_infer_op_call(b->graph, n, NULL, value);
  b->engine->n_inferences++;
  return pln_infer_apply(b->engine, b->graph, n, &n->type);
}

/* ------------------------------------------------------------ other kinds */

static pln_status infer_constant(const pln_builder *b, pln_node *n,
                                 pln_value *value) {
  const pln_tensor *t = b->graph->tensors[n->data];
  PLN_TRY(pln_type_tensor(b->engine, (pln_dtype)t->dtype, (int32_t)t->rank,
                          t->dims, &n->type));
  if (t->rank > 1 || t->count > MAX_VALUE || t->external)
    return PLN_OK;
  if (t->dtype != PLN_INT64 && t->dtype != PLN_INT32 && t->dtype != PLN_BOOL)
    return PLN_OK;
  pln_dim elements[MAX_VALUE];
  for (size_t i = 0; i < t->count; i++)
    if (!pln_tensor_int(t, i, &elements[i]) || !PLN_DIM_IS_CONST(elements[i]))
      return PLN_OK;
  return pln_value_make(b->engine, t->rank, (uint32_t)t->count, elements,
                        value);
}

static pln_status infer_tuple(const pln_builder *b, pln_node *n) {
  const pln_graph *g = b->graph;
  pln_type few[FEW_RESULTS] = {0}, *types = few;
  size_t size = n->count * sizeof *types;
  if (n->count > FEW_RESULTS && !(types = pln_mem_new(b->engine, size)))
    return pln_nomem(b->engine);
  for (uint32_t i = 0; i < n->count; i++)
    types[i] = g->nodes[g->operands[n->first + i]].type;
  pln_status status =
      pln_type_make(b->engine, PLN_TYPE_TUPLE, 0, n->count, types, &n->type);
  if (types != few)
    pln_mem_free(b->engine, types, size);
  return status;
}

static pln_status infer_get(const pln_builder *b, pln_node *n) {
  pln_type tuple = b->graph->nodes[b->graph->operands[n->first]].type;
  n->type = 0;
  if (!tuple)
    return PLN_OK;
  if (pln_type_get_kind(b->engine, tuple) != PLN_TYPE_TUPLE)
    return pln_diag_error(
        b->engine, PLN_ERR_TYPE, NULL,
        "TupleGetItem: field %u of a value that is not a tuple", n->data);
  uint32_t fields = pln_type_n_parts(b->engine, tuple);
  if (n->data >= fields)
    return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                          "field %u of a tuple of %u fields", n->data, fields);
  n->type = pln_type_part_at(b->engine, tuple, n->data);
  return PLN_OK;
}

static pln_type result_type(const pln_graph *g, pln_scope scope) {
  pln_ref result = g->scopes[scope].result;
  return result == PLN_NONE ? 0 : g->nodes[result].type;
}

/* The parameters of a floating Function are operands after the body; those of a
 * scoped one are the first nodes of its scope. */
static pln_status infer_function(const pln_builder *b, pln_node *n,
                                 pln_type ret) {
  const pln_graph *g = b->graph;
  const pln_scope_row *row = &g->scopes[n->data];
  uint32_t k = row->n_params;
  pln_type few[FEW_RESULTS + 1], *types = few;
  size_t size = (k + 1) * sizeof *types;
  if (k > FEW_RESULTS && !(types = pln_mem_new(b->engine, size)))
    return pln_nomem(b->engine);
  for (uint32_t i = 0; i < k; i++)
    types[i] =
        g->nodes[n->count ? g->operands[n->first + i] : row->begin + i].type;
  types[k] = ret ? ret : result_type(g, n->data);
  pln_status status =
      pln_type_make(b->engine, PLN_TYPE_FUNC, 0, k + 1, types, &n->type);
  if (status == PLN_OK && row->type_params)
    status = pln_type_generic(b->engine, n->type, row->type_params, &n->type);
  if (types != few)
    pln_mem_free(b->engine, types, size);
  return status;
}

static pln_status check_cond(const pln_builder *b, const pln_node *n) {
  pln_type cond = b->graph->nodes[b->graph->operands[n->first]].type;
  return pln_check_condition(b->engine, cond);
}

static pln_status infer_if(const pln_builder *b, pln_node *n) {
  const pln_graph *g = b->graph;
  PLN_TRY(check_cond(b, n));
  pln_scope other = g->scopes[n->data].next;
  bool conflict;
  PLN_TRY(pln_type_join(b->engine, result_type(g, n->data),
                        result_type(g, other), &n->type, &conflict));
  if (!conflict)
    return PLN_OK;
  pln_description first, second;
  return pln_diag_error(
      b->engine, PLN_ERR_TYPE, NULL,
      "the branches of an If have different types: %s and %s",
      pln_describe_type(b->engine, result_type(g, n->data), &first),
      pln_describe_type(b->engine, result_type(g, other), &second));
}

/* Checks the declared result type against the body. */
static pln_status check_result(const pln_builder *b, const pln_node *n,
                               pln_type ret) {
  pln_type body = result_type(b->graph, n->data), both;
  bool fits = true;
  if (ret && body && ret != body)
    PLN_TRY(pln_type_unify(b->engine, ret, body, &both, &fits));
  if (fits)
    return PLN_OK;
  pln_description declared, got;
  return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                        "the function is declared to return %s, but returns %s",
                        pln_describe_type(b->engine, ret, &declared),
                        pln_describe_type(b->engine, body, &got));
}

/* The Clause of an arm that is already built, or PLN_NONE. */
static pln_ref clause_of(const pln_graph *g, pln_scope arm) {
  const pln_scope_row *row = &g->scopes[arm];
  for (pln_ref ref = row->begin; ref < row->end && ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_CLAUSE)
      return ref;
  return PLN_NONE;
}

pln_status pln_check_patterns(const pln_graph *g, const pln_node *n) {
  pln_engine *e = g->engine;
  pln_type data = g->nodes[g->operands[n->first]].type, both;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
    pln_ref clause = clause_of(g, s);
    bool fits = true;
    pln_description pattern, got;
    if (clause == PLN_NONE)
      continue;
    pln_type wanted = g->nodes[g->operands[g->nodes[clause].first]].type;
    PLN_TRY(pln_type_unify(e, wanted, data, &both, &fits));
    if (!fits)
      return pln_diag_error(
          e, PLN_ERR_TYPE, NULL,
          "the pattern is for %s, but the data of the Match is %s",
          pln_describe_type(e, wanted, &pattern),
          pln_describe_type(e, data, &got));
  }
  return PLN_OK;
}

static pln_status infer_match(const pln_builder *b, pln_node *n) {
  const pln_graph *g = b->graph;
  if (!pln_owns(n)) /* how it is used decides */
    return PLN_OK;
  n->type = result_type(g, n->data);
  pln_scope s = g->scopes[n->data].next;
  for (; s != PLN_NONE; s = g->scopes[s].next) {
    bool fits;
    pln_type arm = result_type(g, s);
    PLN_TRY(pln_type_unify(b->engine, n->type, arm, &n->type, &fits));
    if (!fits)
      return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                            "the arms of a Match have different types");
  }
  return PLN_OK;
}

/* A let variable has its value's type. */
static pln_status infer_let(const pln_builder *b, const pln_node *n) {
  const pln_graph *g = b->graph;
  pln_node *var = &b->graph->nodes[g->operands[n->first]];
  pln_type value = g->nodes[g->operands[n->first + 1]].type, both;
  bool fits;
  PLN_TRY(pln_type_unify(b->engine, var->type, value, &both, &fits));
  if (fits)
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                        "a variable is bound to a value of another type");
}

/* A value written to a reference cell has the cell's type. */
static pln_status check_written(const pln_builder *b, const pln_node *n,
                                pln_type ref) {
  const pln_graph *g = b->graph;
  pln_type value = g->nodes[g->operands[n->first + 1]].type, both;
  bool fits = true;
  if (ref)
    PLN_TRY(pln_type_unify(b->engine, pln_type_part_at(b->engine, ref, 0),
                           value, &both, &fits));
  if (fits)
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                        "a reference holds a value of another type");
}

static pln_status infer_ref(const pln_builder *b, pln_node *n) {
  pln_type type = b->graph->nodes[b->graph->operands[n->first]].type;
  if (n->kind == PLN_REF_CREATE)
    return pln_type_make(b->engine, PLN_TYPE_REF, 0, 1, &type, &n->type);
  if (type && pln_type_get_kind(b->engine, type) != PLN_TYPE_REF)
    return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                          "%s of a value that is not a reference",
                          pln_kind_name((pln_kind)n->kind));
  if (n->kind == PLN_REF_WRITE) {
    PLN_TRY(check_written(b, n, type));
    return pln_type_make(b->engine, PLN_TYPE_TUPLE, 0, 0, NULL, &n->type);
  }
  n->type = type ? pln_type_part_at(b->engine, type, 0) : 0;
  return PLN_OK;
}

static pln_effect scopes_effect(const pln_builder *b, const pln_node *n) {
  uint8_t effect = PLN_EFFECT_NONE;
  for (pln_scope s = n->data; s != PLN_NONE; s = b->graph->scopes[s].next)
    if (b->effects[s] > effect)
      effect = b->effects[s];
  return (pln_effect)effect;
}

static void set_own_effect(pln_node *n, pln_effect effect) {
  n->flags = (uint8_t)((n->flags & ~PLN_NODE_EFFECT) | effect);
}

static void infer_effect(const pln_builder *b, pln_node *n) {
  switch ((pln_kind)n->kind) {
  case PLN_CALL:
    set_own_effect(n, n->data ? pln_op_effect(b->graph, n)
                              : apply_effect(b->graph, n));
    return;
  case PLN_LET: pln_graph_bind_effect(b->graph, n); return;
  case PLN_FUNCTION:
    n->flags = (uint8_t)((n->flags & ~PLN_NODE_CALL_EFFECT) |
                         (scopes_effect(b, n) << PLN_NODE_CALL_EFFECT_SHIFT));
    return;
  case PLN_LET_BLOCK:
  case PLN_IF:
  case PLN_MATCH: set_own_effect(n, scopes_effect(b, n)); return;
  case PLN_REF_CREATE:
  case PLN_REF_WRITE: set_own_effect(n, PLN_EFFECT_WRITES); return;
  case PLN_REF_READ: set_own_effect(n, PLN_EFFECT_READS); return;
  default: return;
  }
}

pln_status pln_infer_type(const pln_builder *b, pln_node *n, pln_value *value) {
  const pln_graph *g = b->graph;
  switch ((pln_kind)n->kind) {
  case PLN_CONSTANT: return infer_constant(b, n, value);
  case PLN_PATTERN_TUPLE:
  case PLN_TUPLE: return infer_tuple(b, n);
  case PLN_PATTERN_VAR:
    n->type = g->nodes[g->operands[n->first]].type;
    return PLN_OK;
  case PLN_PATTERN_CONSTRUCTOR:
    return pln_infer_pattern(b->engine, b->module, g, n, &n->type);
  case PLN_LET: return infer_let(b, n);
  case PLN_TUPLE_GET_ITEM: return infer_get(b, n);
  case PLN_CALL: return infer_call(b, n, value);
  case PLN_FUNCTION:
    PLN_TRY(check_result(b, n, n->type));
    return infer_function(b, n, n->type);
  case PLN_LET_BLOCK: n->type = result_type(g, n->data); return PLN_OK;
  case PLN_IF: return infer_if(b, n);
  case PLN_MATCH: return infer_match(b, n);
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return infer_ref(b, n);
  default: return PLN_OK;
  }
}

static pln_status infer_kind(pln_builder *b, pln_node *n, pln_value *value) {
  pln_kind_class kind_class = pln_kinds[n->kind].kind_class;
  if (kind_class == PLN_CLASS_PRIM || kind_class == PLN_CLASS_STMT ||
      n->kind == PLN_PRIM_FUNC)
    return pln_infer_tir(b, n);
  infer_effect(b, n);
  return pln_infer_type(b, n, value);
}

/* A refused node has an unknown type; only its number of results is kept. */
static pln_status forget_type(pln_builder *b, pln_node *n, pln_value *value) {
  *value = 0;
  n->type = 0;
  if (n->kind == PLN_FUNCTION)
    return infer_function(b, n, 0);
  if (!n->results)
    return PLN_OK;
  pln_type *none = pln_mem_zeroed(b->engine, n->results * sizeof *none);
  if (!none)
    return pln_nomem(b->engine);
  pln_status status =
      pln_type_make(b->engine, PLN_TYPE_TUPLE, 0, n->results, none, &n->type);
  pln_mem_free(b->engine, none, n->results * sizeof *none);
  return status;
}

pln_status pln_builder_infer(pln_builder *b, pln_ref node) {
  pln_node n = b->graph->nodes[node];
  pln_value value = 0;
  size_t mark = pln_diag_count(b->engine);
  b->inferring++;
  pln_status status = infer_kind(b, &n, &value);
  b->inferring--;
  bool refused = status != PLN_OK && status != PLN_ERR_NOMEM && b->lenient;
  if (refused && pln_diag_ran_out(b->engine, mark))
    return PLN_ERR_NOMEM;
  if (refused) {
    pln_diag_demote(b->engine, mark);
    status = forget_type(b, &n, &value);
  }
  if (status == PLN_ERR_TYPE)
    pln_annotate_node(b->graph, node);
  if (status != PLN_OK)
    return status;
  b->graph->nodes[node] = n;
  b->graph->values[node] = value;
  pln_type_digest_record(b->graph, node);
  if (refused)
    b->graph->typed_from[node] = PLN_TYPED_REFUSED;
  pln_scope node_scope = b->node_scope[node];
  uint8_t effect = n.flags & PLN_NODE_EFFECT;
  if (node_scope != PLN_NONE && effect > b->effects[node_scope])
    b->effects[node_scope] = effect;
  return PLN_OK;
}
