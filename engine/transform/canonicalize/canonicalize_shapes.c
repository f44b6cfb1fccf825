/* canonicalize_shapes.c: CanonicalizeShapes: computes the extents that a
 * function needs anew, each once and from the parameters where they have it, or
 * from other tensors that are needed anyway where that takes fewer calls.
 *
 * Run by the executor, once per module, which has the opset. Looks at the calls
 * of the function's own scope whose symbolic values are known (op/infer). What
 * other nodes use of them is planned (shape_plan.c); all of it is replaced if
 * the plan has fewer calls than there are. So a model exported with chains of
 * Gather, Where and Slice comes to the form of one exported without.
 *
 *     where([false, true], [1, 1], concatenate(shape_of(%e)[0:1], [-1]))
 *       =>   concatenate(shape_of(%x, start=0, end=1), [1])
 *
 * Requires a verified graph. Equal names of dims are equal numbers, as
 * everywhere. A module that is no ONNX model stays as it is. */

#include "ir/graph/module.h"
#include "rule/rule.h"
#include "transform/canonicalize/shape_plan.h"
#include "transform/transform.h"

/* Values that cannot be computed are found in so many rounds, or all stay. */
enum { MAX_ROUNDS = 4 };

typedef struct shape_rewrite {
  pln_engine *engine;
  const pln_graph *graph;
  pln_scope body;
  pln_scope *node_scope;
  uint8_t *demanded; /* by node: something but a known value uses it */
  uint8_t *needed;   /* by node: its elements are used, and not only shapes */
  uint8_t *kept;     /* by node: its value cannot be computed from extents */
  uint32_t *step_of; /* by node: the step that replaces it, or PLN_NONE */
  pln_shape_plan plan;
  uint32_t cost;  /* calls that are replaced or die */
  uint32_t built; /* steps */
  bool allowed, asked;
  int64_t replaced;
} shape_rewrite;

/* ------------------------------------------------------------- known values */

static bool is_known(const shape_rewrite *s, pln_ref node) {
  const pln_node *n = &s->graph->nodes[node];
  pln_value value = pln_node_value(s->graph, node);
  if (n->kind != PLN_CALL || !n->data || n->results || !value ||
      s->kept[node] || s->node_scope[node] != s->body ||
      pln_is_effect_ordered(n))
    return false;
  const pln_dim *elements = pln_value_elements(s->engine, value);
  for (uint32_t i = pln_value_count(s->engine, value); i-- > 0;)
    if (elements[i] == PLN_DIM_UNKNOWN)
      return false;
  return true;
}

static bool can_be_replaced(const shape_rewrite *s, pln_ref node) {
  const pln_graph *g = s->graph;
  return pln_type_dtype(s->engine, g->nodes[node].type) == PLN_INT64 &&
         pln_value_rank(s->engine, pln_node_value(g, node)) < 2 &&
         pln_call_is_valid(g, node);
}

static void demand(shape_rewrite *s, pln_ref node, bool needed) {
  s->demanded[node] = 1;
  s->needed[node] |= needed;
}

static void demand_results(shape_rewrite *s) {
  const pln_graph *g = s->graph;
  for (pln_scope i = 0; i < g->n_scopes; i++)
    if (g->scopes[i].result != PLN_NONE)
      demand(s, g->scopes[i].result, true);
  if (g->root != PLN_NONE)
    demand(s, g->root, true);
}

static void demand_operands(shape_rewrite *s, pln_ref node) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[node];
  bool reads = n->kind == PLN_CALL &&
               (n->data == PLN_OP_SHAPE || n->data == PLN_OP_SIZE);
  for (uint32_t i = 0; i < n->count; i++)
    demand(s, pln_operand(g, node, i), s->needed[node] && !reads);
}

/* Marks what is used but by known values, and counts the calls of known value
 * that are used or die. */
static void demand_values(shape_rewrite *s) {
  s->cost = 0;
  memset(s->demanded, 0, s->graph->n_nodes);
  memset(s->needed, 0, s->graph->n_nodes);
  demand_results(s);
  for (pln_ref i = s->graph->n_nodes; i-- > 0;)
    if (!is_known(s, i) || (s->demanded[i] && !can_be_replaced(s, i)))
      demand_operands(s, i);
    else
      s->cost++;
}

/* ---------------------------------------------------------------- planning */

static pln_status plan_node(shape_rewrite *s, pln_ref i, bool *again) {
  s->step_of[i] = PLN_NONE;
  if (!is_known(s, i))
    return s->node_scope[i] == s->body
               ? pln_shape_plan_add_source(&s->plan, i, s->needed[i] != 0)
               : PLN_OK;
  if (!s->demanded[i] || !can_be_replaced(s, i))
    return PLN_OK;
  PLN_TRY(pln_shape_plan_value(&s->plan, i, pln_node_value(s->graph, i),
                               &s->step_of[i]));
  s->kept[i] = s->step_of[i] == PLN_NONE;
  *again |= s->kept[i];
  return PLN_OK;
}

/* *again: a value cannot be computed from the extents of tensors, and is kept;
 * what it needs has to be planned too. */
static pln_status plan_values(shape_rewrite *s, bool *again) {
  *again = false;
  demand_values(s);
  for (pln_ref i = 0; i < s->graph->n_nodes && s->cost > 1; i++)
    PLN_TRY(plan_node(s, i, again));
  return PLN_OK;
}

/* Plans until all values that are left can be planned, and once more knowing
 * what the plan reads. */
static pln_status plan_shapes(shape_rewrite *s, int64_t opset, bool *done) {
  bool again = true;
  PLN_TRY(pln_shape_plan_begin(&s->plan, s->graph, opset >= 15));
  for (int round = 0; round < MAX_ROUNDS && again; round++) {
    PLN_TRY(pln_shape_plan_restart(&s->plan));
    PLN_TRY(plan_values(s, &again));
  }
  *done = !again && s->cost > 1;
  if (!*done)
    return PLN_OK;
  PLN_TRY(pln_shape_plan_restart(&s->plan));
  return plan_values(s, &again);
}

/* ---------------------------------------------------------------- building */

static pln_status build_attrs(pln_engine *e, uint32_t n, const char **names,
                              const int64_t *values, pln_attrs *out) {
  pln_attr entries[2];
  for (uint32_t i = 0; i < n; i++) {
    entries[i] = (pln_attr){.kind = PLN_ATTR_INT, .v.i = values[i]};
    PLN_TRY(pln_symbol_intern(e, pln_text(names[i]), &entries[i].name));
  }
  return pln_attrs_make(e, n, entries, out);
}

static pln_status build_extents(const shape_rewrite *s, pln_rewrite *rw,
                                pln_builder *b, const pln_shape_step *step,
                                pln_ref *out) {
  static const char *names[] = {"start", "end"};
  pln_ref x = pln_rewrite_image(rw, step->source);
  pln_type type = s->graph->nodes[step->source].type;
  int64_t values[] = {step->start, step->end};
  pln_attrs attrs = 0;
  if ((uint32_t)pln_type_rank(s->engine, type) != step->end - step->start)
    PLN_TRY(build_attrs(s->engine, 2, names, values, &attrs));
  return pln_build_call(b, PLN_OP_SHAPE, attrs, 0, 1, &x, out);
}

static pln_status build_take(const shape_rewrite *s, pln_builder *b,
                             const pln_shape_step *step, pln_ref *out) {
  static const char *names[] = {"axis"};
  const int64_t axis = 0;
  pln_ref args[2] = {s->plan.steps[step->a].built};
  pln_dim positions[PLN_VALUE_MAX];
  pln_attrs attrs;
  uint32_t n = step->end - step->start;
  for (uint32_t i = 0; i < n; i++)
    positions[i] = step->start + i;
  PLN_TRY(pln_build_int64s(b, pln_value_rank(s->engine, step->value), n,
                           positions, &args[1]));
  PLN_TRY(build_attrs(s->engine, 1, names, &axis, &attrs));
  return pln_build_call(b, PLN_OP_GATHER, attrs, 0, 2, args, out);
}

static pln_status build_concat(const shape_rewrite *s, pln_builder *b,
                               const pln_shape_step *step, pln_ref *out) {
  static const char *names[] = {"axis"};
  const int64_t axis = 0;
  pln_ref args[PLN_VALUE_MAX];
  pln_attrs attrs;
  for (uint32_t i = step->a; i < step->b; i++)
    args[i - step->a] = s->plan.steps[s->plan.parts[i]].built;
  PLN_TRY(build_attrs(s->engine, 1, names, &axis, &attrs));
  return pln_build_call(b, PLN_OP_CONCAT, attrs, 0, step->b - step->a, args,
                        out);
}

static pln_status build_step(shape_rewrite *s, pln_rewrite *rw, pln_builder *b,
                             pln_shape_step *step) {
  const pln_shape_step *steps = s->plan.steps;
  pln_ref args[2];
  switch (step->kind) {
  case PLN_STEP_CONSTANT:
    return pln_build_int64s(b, pln_value_rank(s->engine, step->value),
                            pln_value_count(s->engine, step->value),
                            pln_value_elements(s->engine, step->value),
                            &step->built);
  case PLN_STEP_EXTENTS: return build_extents(s, rw, b, step, &step->built);
  case PLN_STEP_TAKE: return build_take(s, b, step, &step->built);
  case PLN_STEP_CONCAT: return build_concat(s, b, step, &step->built);
  case PLN_STEP_CALL: break;
  }
  args[0] = steps[step->a].built;
  args[1] = steps[step->b].built;
  return pln_build_call(b, step->op, 0, 0, 2, args, &step->built);
}

/* A step is built with the first value that needs it or a later step: by then
 * its source is swept. */
static pln_status replace_value(void *ud, pln_rewrite *rw, pln_ref old,
                                pln_ref *node) {
  shape_rewrite *s = ud;
  uint32_t last = s->step_of[old];
  if (last == PLN_NONE)
    return PLN_OK;
  if (!s->asked)
    PLN_TRY(pln_rewrite_apply(rw, "extents", &s->allowed));
  s->asked = true;
  if (!s->allowed)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  for (; s->built <= last; s->built++)
    PLN_TRY(build_step(s, rw, b, &s->plan.steps[s->built]));
  *node = s->plan.steps[last].built;
  s->replaced++;
  return pln_keep_type(rw, *node, s->graph->nodes[old].type);
}

/* -------------------------------------------------------------------- pass */

static pln_status begin_shapes(shape_rewrite *s) {
  size_t n = s->graph->n_nodes + (size_t)1;
  s->demanded = pln_mem_zeroed(s->engine, n);
  s->needed = pln_mem_zeroed(s->engine, n);
  s->kept = pln_mem_zeroed(s->engine, n);
  s->step_of = pln_mem_new(s->engine, n * sizeof *s->step_of);
  s->node_scope = pln_mem_new(s->engine, n * sizeof *s->node_scope);
  if (!s->demanded || !s->needed || !s->kept || !s->step_of || !s->node_scope)
    return pln_nomem(s->engine);
  pln_graph_node_scopes(s->graph, s->node_scope);
  return PLN_OK;
}

static void end_shapes(shape_rewrite *s) {
  size_t n = s->graph->n_nodes + (size_t)1;
  pln_mem_free(s->engine, s->demanded, n);
  pln_mem_free(s->engine, s->needed, n);
  pln_mem_free(s->engine, s->kept, n);
  pln_mem_free(s->engine, s->step_of, n * sizeof *s->step_of);
  pln_mem_free(s->engine, s->node_scope, n * sizeof *s->node_scope);
  if (s->plan.engine)
    pln_shape_plan_end(&s->plan);
}

static pln_status rewrite_shapes(shape_rewrite *s, int64_t opset,
                                 pln_graph **out) {
  pln_mutator m = {.ud = s, .visit = replace_value, .keeps_types = true};
  bool done;
  PLN_TRY(begin_shapes(s));
  PLN_TRY(plan_shapes(s, opset, &done));
  if (!done || s->plan.cost >= s->cost)
    return PLN_OK;
  return pln_graph_rewrite(s->graph, &m, out);
}

/* The scope of the function's body; PLN_NONE: there is none. */
static pln_scope body_of(const pln_graph *g) {
  const pln_node *root = g->root == PLN_NONE ? NULL : &g->nodes[g->root];
  return root && root->kind == PLN_FUNCTION ? root->data : PLN_NONE;
}

static pln_status canonicalize_function(pln_pass_run *run,
                                        const pln_graph *function,
                                        pln_graph **out) {
  shape_rewrite s = {.engine = pln_run_engine(run),
                     .graph = function,
                     .body = body_of(function)};
  *out = NULL;
  if (s.body == PLN_NONE)
    return PLN_OK;
  pln_status status = rewrite_shapes(&s, pln_module_opset(run->module), out);
  end_shapes(&s);
  if (status == PLN_OK && s.replaced)
    status = pln_run_count(run, "extents", s.replaced);
  if (status != PLN_OK && *out) {
    pln_graph_release(*out);
    *out = NULL;
  }
  return status;
}

pln_status pln_pass_canonicalize_shapes(pln_pass_run *run) {
  return pln_module_opset(run->module)
             ? pln_run_on_functions(run, canonicalize_function)
             : PLN_OK;
}
