/* fold_constant.c: FoldConstant: evaluates what depends only on constants.
 *
 * Run by the executor, once per function, and by passes that go on with what
 * became constant. Requires a verified graph. A call with constant operands, on
 * whatever device, becomes its result. A call whose symbolic value is fully
 * known becomes that value even if its operands are not constant (the Shape of
 * static dims). A variable bound to a constant becomes the constant; a
 * projection of a tuple becomes the field, of a variable bound to a tuple if
 * the field is constant; an If with a constant condition becomes the branch
 * taken, one whose branches give the same scalar becomes the scalar; in a
 * branch of another If what the condition says to be a constant is one
 * (branch_values.c). A call of
 * a function, or a loop, that depends on constants only becomes its result
 * (fold_function.c), unless fold_calls=false. Never folded: calls with effects
 * or without operands, unknown operators, bodies of primitive functions; and
 * quantisation, unless `fold_qnn` is given.
 *
 *     let %y = multiply(2f, 3f); add(%x, %y)   =>   add(%x, 6f)
 *
 * A constant may be made if its size is at most max(64 KiB, bytes that die with
 * the folded node), decided node by node; or with all calls that only the node
 * needs, whose results are dropped again (constant_regions.c). Folding one node
 * may let a constant
 * die with another node that was refused, so a sweep with refusals is repeated
 * until it changes nothing: the pass is idempotent. Option fold="all" lifts the
 * limit. Option `log` writes each decision (fold_log.c).
 *
 * Semantics: TVM FoldConstant, with symbolic values, calls of functions and
 * loops; ndarray_size of a scalar is 1, where TVM folds it to 0. */

#include <stdio.h>

#include "eval/call.h"
#include "eval/loop.h"
#include "ir/rewrite/rewrite.h"
#include "ir/rewrite/use_counts.h"
#include "op/op.h"
#include "transform/fold/branch_values.h"
#include "transform/fold/constant_regions.h"
#include "transform/fold/fold_constant.h"
#include "transform/fold/fold_function.h"
#include "transform/fold/fold_log.h"
#include "transform/functional/let.h"

enum { FEW_RESULTS = 16, MAX_ROUNDS = 32 };

typedef struct fold {
  pln_engine *engine;
  pln_pass_run *run;
  pln_budget budget;
  int64_t folded;
  pln_use_counts uses;
  pln_fold_log log;
  pln_function_folds functions;
  pln_branch_values branches;
  pln_constant_regions regions;
  pln_ref old;        /* the node of the old graph that is visited */
  uint64_t steps;     /* for functions.steps */
  uint8_t *primitive; /* by scope: inside a primitive function */
  uint32_t *lets;     /* by scope: number of its own lets */
  bool qnn;           /* quantisation is folded too */
  bool calls;         /* so are calls of functions, and loops */
  bool unbound;       /* this sweep removed a let, or bound one to a tuple */
  bool kept_call;     /* this sweep left a call of a function on constants */
  bool watched;
  bool allowed; /* the taken branch of the innermost If may be inlined */
} fold;

/* ------------------------------------------------------------------- refusal
 */

static bool is_quantisation(const pln_engine *e, pln_op op) {
  return op == PLN_OP_QUANTIZE_LINEAR || op == PLN_OP_DEQUANTIZE_LINEAR ||
         op == PLN_OP_DYNAMIC_QUANTIZE_LINEAR ||
         !strncmp(pln_op_row(e, op)->name, "qnn.", 4);
}

/* Calls that mark places, and those that would make a constant of nothing, such
 * as zeros. */
static bool is_never_folded(const void *ud, const pln_node *n) {
  const fold *f = ud;
  return n->count == 0 || n->data == PLN_OP_ON_DEVICE ||
         n->data == PLN_OP_DEVICE_COPY ||
         (is_quantisation(f->engine, n->data) && !f->qnn);
}

static pln_status refuse(fold *f, const pln_graph *g, pln_ref node,
                         pln_refusal why) {
  pln_budget_refuse(&f->budget, why);
  return pln_fold_log_refusal(&f->log, g, node, why);
}

/* Operators whose result's size depends on the data but is bounded by it. */
static bool is_bounded_by_data(pln_op op) {
  return op == PLN_OP_NON_ZERO || op == PLN_OP_COMPRESS ||
         op == PLN_OP_UNIQUE || op == PLN_OP_NON_MAX_SUPPRESSION;
}

static bool is_too_big(fold *f, const pln_graph *g, pln_ref node) {
  size_t bytes = pln_budget_bytes(g, node);
  if (bytes == SIZE_MAX && is_bounded_by_data(g->nodes[node].data))
    return false;
  if (bytes > PLN_BUDGET_MAX) {
    pln_budget_refuse(&f->budget, PLN_REFUSED_OVER_BUDGET);
    return true;
  }
  return !pln_constant_regions_allow(&f->regions, f->old) &&
         !pln_budget_allows(&f->budget, bytes,
                            pln_budget_freed(g, node, f->uses.now));
}

/* Checks the budget for results whose size the type did not determine. */
static bool are_too_big(fold *f, const pln_graph *g, pln_ref node, uint32_t n,
                        pln_tensor *const *results) {
  size_t bytes = 0;
  if (pln_budget_bytes(g, node) != SIZE_MAX)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (results[i])
      bytes += results[i]->bytes;
  return !pln_budget_allows(&f->budget, bytes,
                            pln_budget_freed(g, node, f->uses.now));
}

/* ------------------------------------------------------------------ results */

static pln_status build_one(pln_builder *b, const pln_tensor *tensor,
                            pln_ref *out) {
  return tensor ? pln_build_constant(b, tensor, out) : pln_build_absent(b, out);
}

static pln_status build_results(pln_builder *b, uint32_t n_results, uint32_t n,
                                pln_tensor *const *results, pln_ref *fields,
                                pln_ref *out) {
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(build_one(b, results[i], &fields[i]));
  if (n_results)
    return pln_build_tuple(b, n, fields, out);
  *out = fields[0];
  return PLN_OK;
}

static pln_status replace_with_constants(fold *f, pln_rewrite *rw,
                                         uint32_t n_results, uint32_t n,
                                         pln_tensor *const *results,
                                         pln_ref *node, const char *rule) {
  pln_ref call = *node;
  pln_ref few[FEW_RESULTS], *fields = few;
  size_t size = n * sizeof *fields;
  bool allowed;
  PLN_TRY(pln_rewrite_apply(rw, "fold", &allowed));
  if (!allowed)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  if (n > FEW_RESULTS && !(fields = pln_mem_new(f->engine, size)))
    return pln_nomem(f->engine);
  pln_status status = build_results(b, n_results, n, results, fields, node);
  if (fields != few)
    pln_mem_free(f->engine, fields, size);
  if (status != PLN_OK)
    return status;
  f->folded++;
  return pln_fold_log_fold(&f->log, b->graph, call, *node, rule);
}

/* --------------------------------------------------------------- evaluation */

/* Releases intermediate results that only the folded call used. Otherwise a
 * long chain would keep all of them. */
static void forget_operands(const fold *f, pln_rewrite *rw, pln_ref call) {
  pln_builder *b = pln_rewrite_builder(rw);
  const pln_graph *g = b->graph;
  const pln_node *n = &g->nodes[call];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref arg = pln_operand(g, call, i);
    bool last = g->nodes[arg].kind == PLN_CONSTANT && f->uses.now[arg] == 1 &&
                !(g->nodes[arg].flags & PLN_NODE_KEEP);
    if (last)
      pln_builder_forget(b, arg);
  }
}

static pln_status evaluate(fold *f, pln_rewrite *rw, pln_ref *node,
                           uint32_t n_results, pln_tensor **results) {
  const pln_graph *g = pln_rewrite_graph(rw);
  uint32_t n = n_results ? n_results : 1;
  pln_status status = pln_eval_call(g, *node, results);
  if (status == PLN_ERR_UNSUPPORTED)
    return refuse(f, g, *node, PLN_REFUSED_UNDEFINED);
  PLN_TRY(status);
  pln_ref call = *node;
  if (are_too_big(f, g, call, n, results))
    status = pln_fold_log_refusal(&f->log, g, call, PLN_REFUSED_OVER_BUDGET);
  else
    status = replace_with_constants(f, rw, n_results, n, results, node,
                                    "constant operands");
  if (status == PLN_OK && *node != call)
    forget_operands(f, rw, call);
  for (uint32_t i = 0; i < n; i++)
    pln_tensor_release(results[i]);
  return status;
}

static pln_status fold_call(fold *f, pln_rewrite *rw, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[*node];
  pln_tensor *few[FEW_RESULTS] = {NULL}, **results = few;
  uint32_t n_results = pln_n_fields(g, n);
  size_t size = n_results * sizeof *results;
  pln_refusal why;
  if (is_never_folded(f, n))
    return PLN_OK;
  if (!pln_eval_can_fold(g, *node, &why))
    return why == PLN_REFUSED_NOT ? PLN_OK : refuse(f, g, *node, why);
  if (is_too_big(f, g, *node))
    return pln_fold_log_refusal(&f->log, g, *node, PLN_REFUSED_OVER_BUDGET);
  if (n_results > FEW_RESULTS && !(results = pln_mem_zeroed(f->engine, size)))
    return pln_nomem(f->engine);
  pln_status status = evaluate(f, rw, node, n_results, results);
  if (results != few)
    pln_mem_free(f->engine, results, size);
  return status;
}

/* --------------------------------------------------------- functions, loops
 */

/* Sets the tensors of the values; false if a value is another, or does not have
 * the type that the call gives it. */
static bool list_tensors(const pln_engine *e, pln_type type, bool tuple,
                         const pln_runtime_value *values, uint32_t n,
                         pln_tensor **tensors) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t kind = values[i].kind;
    pln_type part = tuple ? pln_type_part_at(e, type, i) : type;
    if (kind != PLN_RUNTIME_TENSOR && kind != PLN_RUNTIME_ABSENT)
      return false;
    tensors[i] = kind == PLN_RUNTIME_TENSOR ? values[i].of.tensor : NULL;
    if (!pln_tensor_fits(e, tensors[i], part))
      return false;
  }
  return true;
}

static pln_status replace_with_values(fold *f, pln_rewrite *rw, pln_ref *node,
                                      bool tuple, uint32_t n,
                                      const pln_runtime_value *values,
                                      pln_tensor **tensors) {
  const pln_graph *g = pln_rewrite_graph(rw);
  if (!list_tensors(f->engine, g->nodes[*node].type, tuple, values, n, tensors))
    return refuse(f, g, *node, PLN_REFUSED_UNDEFINED);
  if (are_too_big(f, g, *node, n, tensors))
    return pln_fold_log_refusal(&f->log, g, *node, PLN_REFUSED_OVER_BUDGET);
  return replace_with_constants(f, rw, tuple ? n : 0, n, tensors, node,
                                "constant arguments");
}

static pln_status run_function(fold *f, pln_rewrite *rw, pln_ref old,
                               pln_ref *node, bool tuple, uint32_t n,
                               pln_runtime_value *values,
                               pln_tensor **tensors) {
  pln_refusal why;
  PLN_TRY(
      pln_function_folds_run(&f->functions, rw, old, *node, n, values, &why));
  f->kept_call |= values[0].kind == PLN_RUNTIME_NONE;
  if (why != PLN_REFUSED_NOT)
    return refuse(f, pln_rewrite_graph(rw), *node, why);
  return values[0].kind == PLN_RUNTIME_NONE
             ? PLN_OK
             : replace_with_values(f, rw, node, tuple, n, values, tensors);
}

/* True if this sweep found out which function is called: the next one may
 * evaluate it. */
static bool has_new_callee(const fold *f, const pln_graph *g, pln_ref old,
                           pln_ref node) {
  const pln_graph *before = f->functions.old;
  return pln_has_callee(&g->nodes[node]) &&
         g->nodes[pln_operand(g, node, 0)].kind == PLN_FUNCTION &&
         before->nodes[pln_operand(before, old, 0)].kind != PLN_FUNCTION;
}

/* A call of a function, or a loop, on constants. */
static pln_status fold_function_call(fold *f, pln_rewrite *rw, pln_ref old,
                                     pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_engine *e = f->engine;
  pln_type type = g->nodes[*node].type;
  if (!f->calls)
    return PLN_OK;
  if (!pln_function_folds_try(&f->functions, rw, old, *node)) {
    f->kept_call |= has_new_callee(f, g, old, *node);
    return PLN_OK;
  }
  if (pln_budget_bytes(g, *node) != SIZE_MAX && is_too_big(f, g, *node))
    return pln_fold_log_refusal(&f->log, g, *node, PLN_REFUSED_OVER_BUDGET);
  bool tuple = type && pln_type_get_kind(e, type) == PLN_TYPE_TUPLE;
  uint32_t n = tuple ? pln_type_n_parts(e, type) : 1;
  if (n == 0)
    return PLN_OK;
  pln_runtime_value *values = pln_mem_zeroed(e, n * sizeof *values);
  pln_tensor **tensors = pln_mem_new(e, n * sizeof *tensors);
  pln_status status = values && tensors ? run_function(f, rw, old, node, tuple,
                                                       n, values, tensors)
                                        : pln_nomem(e);
  for (uint32_t i = 0; values && i < n; i++)
    pln_runtime_value_release(e, &values[i]);
  pln_mem_free(e, values, n * sizeof *values);
  pln_mem_free(e, tensors, n * sizeof *tensors);
  return status;
}

/* ----------------------------------------------------------- symbolic values
 */

static bool is_constant_value(const pln_engine *e, pln_value value) {
  const pln_dim *elements = pln_value_elements(e, value);
  for (uint32_t i = 0; i < pln_value_count(e, value); i++)
    if (!PLN_DIM_IS_CONST(elements[i]))
      return false;
  return true;
}

static void store_integer_element(pln_dtype dtype, int64_t x, void *data,
                                  uint32_t i) {
  if (dtype == PLN_INT64)
    ((int64_t *)data)[i] = x;
  else if (dtype == PLN_INT32)
    ((int32_t *)data)[i] = (int32_t)x;
  else if (dtype == PLN_FLOAT64)
    ((double *)data)[i] = (double)x;
  else if (dtype == PLN_FLOAT32)
    ((float *)data)[i] = (float)x;
  else
    ((uint8_t *)data)[i] = x != 0;
}

static bool integer_in_range(pln_dtype dtype, int64_t x) {
  return dtype == PLN_INT64 || dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64 ||
         (dtype == PLN_INT32 && x >= INT32_MIN && x <= INT32_MAX) ||
         (dtype == PLN_BOOL && (x == 0 || x == 1));
}

/* The tensor of this type with these elements; NULL if they do not fit. */
static pln_status value_tensor(pln_engine *e, pln_type type, uint32_t rank,
                               uint32_t n, const pln_dim *elements,
                               pln_tensor **out) {
  pln_dtype dtype = pln_type_dtype(e, type);
  *out = NULL;
  if (pln_type_rank(e, type) != (int32_t)rank)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++)
    if (!integer_in_range(dtype, elements[i]))
      return PLN_OK;
  if (dtype != PLN_INT64 && dtype != PLN_INT32 && dtype != PLN_BOOL &&
      dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64)
    return PLN_OK;
  PLN_TRY(pln_tensor_new(e, dtype, rank, pln_type_dims(e, type), out));
  void *data = pln_tensor_writable(*out);
  for (uint32_t i = 0; i < n; i++)
    store_integer_element(dtype, elements[i], data, i);
  return PLN_OK;
}

/* The type of the operand whose extents a call asks for as floats, which have
 * no symbolic value; 0: it is no such call, or not all of them are known. */
static pln_type measured_type(const pln_graph *g, const pln_node *n) {
  const pln_engine *e = g->engine;
  pln_dtype dtype = pln_type_dtype(e, n->type);
  if ((n->data != PLN_OP_SHAPE && n->data != PLN_OP_NDARRAY_SIZE &&
       n->data != PLN_OP_VM_SHAPE_OF) ||
      (dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64) || n->count != 1 ||
      pln_attrs_find(e, n->attrs, "start") ||
      pln_attrs_find(e, n->attrs, "end"))
    return 0;
  pln_type type = g->nodes[g->operands[n->first]].type;
  for (int32_t i = 0; i < pln_type_rank(e, type); i++)
    if (!PLN_DIM_IS_CONST(pln_type_dims(e, type)[i]) ||
        pln_type_dims(e, type)[i] == PLN_DIM_UNKNOWN)
      return 0;
  int32_t least = n->data == PLN_OP_VM_SHAPE_OF;
  return pln_type_rank(e, type) >= least ? type : 0;
}

static pln_status measured_tensor(const pln_graph *g, const pln_node *n,
                                  pln_tensor **out) {
  pln_engine *e = g->engine;
  pln_type type = measured_type(g, n);
  const pln_dim *dims = type ? pln_type_dims(e, type) : NULL;
  uint32_t rank = type ? (uint32_t)pln_type_rank(e, type) : 0;
  pln_dim product = 1;
  *out = NULL;
  if (!type)
    return PLN_OK;
  if (n->data != PLN_OP_NDARRAY_SIZE)
    return value_tensor(e, n->type, 1, rank, dims, out);
  for (uint32_t i = 0; i < rank; i++)
    if (__builtin_mul_overflow(product, dims[i], &product))
      return PLN_OK;
  return value_tensor(e, n->type, 0, 1, &product, out);
}

/* Replaces a call whose value is known; *done is true if it did. */
static pln_status fold_value(fold *f, pln_rewrite *rw, pln_ref *node,
                             bool *done) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[*node];
  pln_value value = g->values[*node];
  pln_tensor *tensor;
  if (n->results || pln_flags_effect(n->flags) != PLN_EFFECT_NONE ||
      (value && !is_constant_value(f->engine, value)))
    return PLN_OK;
  if (value)
    PLN_TRY(value_tensor(f->engine, n->type, pln_value_rank(f->engine, value),
                         pln_value_count(f->engine, value),
                         pln_value_elements(f->engine, value), &tensor));
  else
    PLN_TRY(measured_tensor(g, n, &tensor));
  if (!tensor)
    return PLN_OK;
  *done = true;
  pln_status status =
      replace_with_constants(f, rw, 0, 1, &tensor, node, "known value");
  pln_tensor_release(tensor);
  return status;
}

/* ----------------------------------------------------------------- branches */

/* Reads the condition's value if it is constant. */
static bool condition(const pln_rewrite *rw, const pln_node *owner,
                      bool *taken) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_ref cond =
      pln_rewrite_image(rw, pln_rewrite_old(rw)->operands[owner->first]);
  int64_t x;
  if (cond == PLN_NONE || g->nodes[cond].kind != PLN_CONSTANT)
    return false;
  const pln_tensor *t = g->tensors[g->nodes[cond].data];
  if (t->dtype != PLN_BOOL || t->count != 1 || t->external ||
      !pln_tensor_int(t, 0, &x))
    return false;
  *taken = x != 0;
  return true;
}

static pln_status bind_fact(fold *f, pln_rewrite *rw, pln_scope scope,
                            const pln_branch_fact *fact) {
  pln_ref image = pln_rewrite_image(rw, fact->node);
  bool allowed;
  PLN_TRY(pln_rule_apply(f->engine, "fold", fact->node, &allowed));
  if (!allowed)
    return PLN_OK;
  PLN_TRY(pln_fold_log_fold(&f->log, pln_rewrite_graph(rw), image,
                            fact->constant, "value in a branch"));
  PLN_TRY(pln_use_counts_replace(&f->uses, fact->node, fact->constant));
  f->folded++;
  return pln_branch_values_bind(&f->branches, rw, scope, fact);
}

/* In a branch that stays, values that its condition tells become constants. */
static pln_status bind_facts(fold *f, pln_rewrite *rw, pln_scope scope) {
  pln_branch_fact facts[PLN_BRANCH_FACTS];
  uint32_t n;
  PLN_TRY(pln_branch_values_find(&f->branches, rw, scope, facts, &n));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(bind_fact(f, rw, scope, &facts[i]));
  return PLN_OK;
}

static pln_status leave_folded_scope(void *ud, pln_rewrite *rw, pln_scope old,
                                     pln_ref *result) {
  fold *f = ud;
  (void)result;
  pln_branch_values_leave(&f->branches, rw, old);
  return PLN_OK;
}

static pln_status enter_folded_scope(void *ud, pln_rewrite *rw, pln_scope old,
                                     pln_scope_action *action) {
  fold *f = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node *owner = &g->nodes[g->scopes[old].owner];
  bool taken;
  if (owner->kind == PLN_LET_BLOCK && !f->lets[old])
    *action = PLN_SCOPE_DISSOLVE;
  if (owner->kind != PLN_IF || f->primitive[old])
    return PLN_OK;
  if (!condition(rw, owner, &taken))
    return bind_facts(f, rw, old);
  bool is_then = owner->data == old;
  if (is_then)
    PLN_TRY(
        pln_rule_apply(f->engine, "fold", g->scopes[old].owner, &f->allowed));
  if (!f->allowed)
    return PLN_OK;
  *action = is_then == taken ? PLN_SCOPE_DISSOLVE : PLN_SCOPE_SKIP;
  f->folded += is_then == taken;
  if (is_then != taken)
    return PLN_OK;
  return pln_fold_log_fold(&f->log, g, g->scopes[old].owner,
                           g->scopes[old].result, "constant condition");
}

/* -------------------------------------------------------------------- sweep */

/* Replaces a projection by the field, on the device of the tuple. */
static pln_status build_field(pln_rewrite *rw, pln_ref marked, pln_ref tuple,
                              pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_ref field = pln_operand(g, tuple, g->nodes[*node].data);
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  *node = field;
  return marked == tuple ? PLN_OK
                         : pln_build_call(b, PLN_OP_ON_DEVICE,
                                          b->graph->nodes[marked].attrs, 0, 1,
                                          &field, node);
}

/* True if field i is a constant, on whatever device. */
static bool is_constant_field(const pln_graph *g, pln_ref tuple, uint32_t i) {
  tuple = pln_eval_skip_on_device(g, tuple);
  if (g->nodes[tuple].kind != PLN_TUPLE || i >= g->nodes[tuple].count)
    return false;
  pln_ref field = pln_eval_skip_on_device(g, pln_operand(g, tuple, i));
  return g->nodes[field].kind == PLN_CONSTANT;
}

/* What a projection projects from: of a variable that a let binds to a tuple,
 * the tuple if the field is a constant. */
static pln_ref projected(const fold *f, const pln_rewrite *rw, pln_ref old,
                         pln_ref node) {
  const pln_graph *g = pln_rewrite_graph(rw), *before = f->functions.old;
  pln_ref operand = g->operands[g->nodes[node].first];
  pln_ref var = pln_operand(before, old, 0);
  pln_ref value = pln_function_folds_value(&f->functions, var);
  if (value == PLN_NONE || before->nodes[value].kind != PLN_TUPLE)
    return operand;
  pln_ref image = pln_rewrite_image(rw, value);
  return image != PLN_NONE && is_constant_field(g, image, g->nodes[node].data)
             ? image
             : operand;
}

static pln_status fold_field(fold *f, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[*node];
  pln_ref marked = projected(f, rw, old, *node), projection = *node;
  pln_ref tuple = pln_eval_skip_on_device(g, marked);
  pln_type type = n->type;
  bool allowed;
  if (g->nodes[tuple].kind != PLN_TUPLE || n->data >= g->nodes[tuple].count)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "fold", &allowed));
  if (!allowed)
    return PLN_OK;
  PLN_TRY(build_field(rw, marked, tuple, node));
  f->folded++;
  PLN_TRY(pln_fold_log_fold(&f->log, pln_rewrite_graph(rw), projection, *node,
                            "field of a tuple"));
  return pln_keep_rank(rw, *node, type);
}

/* Replaces the variable of a let by its value if that is a constant, on
 * whatever device. */
static pln_status fold_let(fold *f, pln_rewrite *rw, pln_ref old,
                           pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_ref var = pln_operand(g, *node, 0), value = pln_operand(g, *node, 1);
  bool allowed;
  const pln_ref *binding =
      pln_operands(f->functions.old, &f->functions.old->nodes[old]);
  if (g->nodes[pln_eval_skip_on_device(g, value)].kind != PLN_CONSTANT) {
    f->unbound |= g->nodes[value].kind == PLN_TUPLE &&
                  f->functions.old->nodes[binding[1]].kind != PLN_TUPLE;
    return pln_function_folds_let(&f->functions, binding[0], binding[1]);
  }
  PLN_TRY(pln_rewrite_apply(rw, "fold", &allowed));
  if (!allowed)
    return PLN_OK;
  if (!pln_rewrite_builder(rw))
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_fold_log_fold(&f->log, pln_rewrite_graph(rw), var, value,
                            "let of a constant"));
  pln_ref old_var = pln_operand(pln_rewrite_old(rw), old, 0);
  PLN_TRY(pln_use_counts_replace(&f->uses, old_var, value));
  pln_rewrite_bind(rw, old_var, value);
  *node = value;
  f->folded++;
  f->unbound = true;
  return PLN_OK;
}

/* The scalar that both branches of an If give; NULL: they do not. */
static const pln_tensor *branch_scalar(const pln_graph *g, pln_ref node) {
  const pln_tensor *value[2];
  if (g->nodes[node].kind != PLN_IF ||
      pln_flags_effect(g->nodes[node].flags) != PLN_EFFECT_NONE)
    return NULL;
  for (uint32_t i = 0; i < 2; i++) {
    pln_ref result = g->scopes[pln_node_scope(g, node, i)].result;
    if (result == PLN_NONE || g->nodes[result].kind != PLN_CONSTANT)
      return NULL;
    value[i] = g->tensors[g->nodes[result].data];
    if (value[i]->rank || value[i]->external)
      return NULL;
  }
  return pln_tensor_equal(value[0], value[1]) ? value[0] : NULL;
}

static pln_status fold_equal_branches(fold *f, pln_rewrite *rw, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_tensor *value = branch_scalar(g, *node);
  if (!value)
    return PLN_OK;
  pln_tensor *result = pln_tensor_retain(value);
  pln_status status =
      replace_with_constants(f, rw, 0, 1, &result, node, "equal branches");
  pln_tensor_release(result);
  return status;
}

/* Folds a node by its symbolic value, else by evaluation. */
static pln_status fold_plain(fold *f, pln_rewrite *rw, pln_ref *node) {
  double began = f->watched ? pln_rule_clock(f->engine) : 0;
  bool done = false;
  PLN_TRY(fold_value(f, rw, node, &done));
  if (!done)
    PLN_TRY(fold_call(f, rw, node));
  return f->watched ? pln_rule_tried(f->engine, "fold", 1, began) : PLN_OK;
}

static pln_status fold_constant_node(void *ud, pln_rewrite *rw, pln_ref old,
                                     pln_ref *node) {
  fold *f = ud;
  f->old = old;
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[*node];
  const pln_node *before = &pln_rewrite_old(rw)->nodes[old];
  if (f->primitive[rw->open[rw->n_open - 1].old])
    return pln_use_counts_replace(&f->uses, old, *node);
  /* A dissolved If is represented by a node that was visited already. */
  if (before->kind == PLN_IF) {
    PLN_TRY(fold_equal_branches(f, rw, node));
    PLN_TRY(pln_keep_rank(rw, *node, before->type));
    return pln_use_counts_replace(&f->uses, old, *node);
  }
  if (before->kind == PLN_LET) {
    PLN_TRY(fold_let(f, rw, old, node));
  } else if (n->kind == PLN_CALL && (!n->data || pln_calls_operands(n))) {
    PLN_TRY(fold_function_call(f, rw, old, node));
  } else if (n->kind == PLN_CALL) {
    PLN_TRY(fold_plain(f, rw, node));
  } else if (n->kind == PLN_TUPLE_GET_ITEM) {
    PLN_TRY(fold_field(f, rw, old, node));
  }
  return pln_use_counts_replace(&f->uses, old, *node);
}

static pln_status count_lets(fold *f, const pln_graph *g) {
  size_t nodes = g->n_nodes * sizeof(pln_scope);
  pln_scope *node_scope = pln_mem_new(f->engine, nodes);
  if (!node_scope)
    return pln_nomem(f->engine);
  pln_graph_node_scopes(g, node_scope);
  for (pln_ref i = 0; i < g->n_nodes; i++)
    f->lets[node_scope[i]] += g->nodes[i].kind == PLN_LET;
  pln_mem_free(f->engine, node_scope, nodes);
  return PLN_OK;
}

static pln_status rewrite_once(fold *f, const pln_graph *g, pln_graph **out) {
  pln_mutator m = {.ud = f,
                   .visit = fold_constant_node,
                   .enter = enter_folded_scope,
                   .leave = leave_folded_scope,
                   .keeps_types = true};
  memset(f->budget.refused, 0, sizeof f->budget.refused);
  pln_fold_log_sweep(&f->log);
  f->unbound = f->kept_call = false;
  pln_let_primitive_scopes(g, f->primitive);
  f->functions =
      (pln_function_folds){.old = g, .run = f->run, .steps = &f->steps};
  if (g->n_scopes > 2)
    PLN_TRY(count_lets(f, g));
  PLN_TRY(pln_branch_values_begin(&f->branches, g));
  pln_status status = pln_use_counts_begin(&f->uses, g);
  if (status == PLN_OK)
    status = pln_constant_regions_begin(&f->regions, g, is_never_folded, f);
  if (status == PLN_OK)
    status = pln_graph_rewrite(g, &m, out);
  pln_constant_regions_end(&f->regions);
  pln_use_counts_end(&f->uses);
  pln_branch_values_end(&f->branches);
  pln_function_folds_end(&f->functions);
  return status;
}

static pln_status sweep_once(fold *f, const pln_graph *g, pln_graph **out) {
  size_t n = g->n_scopes;
  f->primitive = pln_mem_zeroed(f->engine, n);
  f->lets = pln_mem_zeroed(f->engine, n * sizeof *f->lets);
  pln_status status =
      f->primitive && f->lets ? rewrite_once(f, g, out) : pln_nomem(f->engine);
  pln_mem_free(f->engine, f->primitive, n);
  pln_mem_free(f->engine, f->lets, n * sizeof *f->lets);
  return status;
}

/* Sweeps until nothing changes, or nothing was refused for its size, no block
 * is left without lets and no call of a function on constants is left, whose
 * body may have become simpler. */
static pln_status sweep(fold *f, pln_graph **graph) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    pln_graph *next;
    PLN_TRY(sweep_once(f, *graph, &next));
    bool changed = next != *graph;
    pln_graph_release(*graph);
    *graph = next;
    if (!changed || !(f->unbound || f->kept_call ||
                      f->budget.refused[PLN_REFUSED_OVER_BUDGET]))
      return PLN_OK;
  }
  return PLN_OK;
}

static pln_status report_folds(const fold *f, pln_pass_run *run) {
  char key[64];
  if (f->folded)
    PLN_TRY(pln_run_count(run, "folded", f->folded));
  for (int why = PLN_REFUSED_NOT + 1; why < PLN_N_REFUSALS; why++) {
    if (!f->budget.refused[why])
      continue;
    snprintf(key, sizeof key, "refused: %s",
             pln_refusal_name((pln_refusal)why));
    PLN_TRY(pln_run_count(run, key, f->budget.refused[why]));
  }
  return PLN_OK;
}

pln_status pln_fold_constants(pln_pass_run *run, const pln_graph *graph,
                              pln_graph **out) {
  fold f = {.engine = pln_run_engine(run), .run = run, .steps = PLN_FOLD_STEPS};
  f.watched = pln_rules_watched(f.engine);
  f.budget.all = pln_slice_is(pln_run_string(run, "fold"), "all");
  f.qnn = pln_run_int(run, "fold_qnn");
  f.calls = pln_run_int(run, "fold_calls");
  *out = pln_graph_retain(graph);
  pln_fold_log_begin(&f.log, run);
  pln_status status = pln_fold_log_end(&f.log, sweep(&f, out));
  if (status == PLN_OK)
    status = report_folds(&f, run);
  if (status != PLN_OK)
    pln_graph_release(*out);
  return status;
}

pln_status pln_pass_fold_constant(pln_pass_run *run) {
  pln_graph *out;
  PLN_TRY(pln_fold_constants(run, pln_run_function(run), &out));
  pln_run_set_function(run, out);
  return PLN_OK;
}
