/* evaluator.c: evaluates a function on runtime values: pln_eval_run.
 *
 * A run walks scopes in array order with an explicit stack, so nesting depth
 * does not matter. Only its owner enters a scope, and of an If only the taken
 * branch is entered. A node is evaluated if the plan says that it is needed,
 * and its value is released after its last use.
 *
 * Invariants: a frame's `at` is a node of the frame's scope or its end. The
 * value of a node lies in the activation whose interval contains the node; that
 * is the current activation or an enclosing one. Everything is freed at the end
 * of a run, also after errors. */

#include "base/thread/thread_pool.h"
#include "eval/arguments.h"
#include "eval/call.h"
#include "eval/flex_attention.h"
#include "eval/loop.h"
#include "eval/lowered_call.h"
#include "eval/pattern_match.h"
#include "eval/plan.h"
#include "eval/profile.h"
#include "ir/graph/describe.h"
#include "ir/tensor/runtime_value.h"
#include "op/kernel/shape/transpose.h"

#include <stdio.h>

/* Maximum number of nested scopes and calls. */
enum { MAX_FRAMES = 10000000 };

typedef struct slot {
  pln_runtime_value retained;
  uint32_t left; /* remaining uses; PLN_PLAN_PINNED: kept to the end */
} slot;

/* An activation: the values of nodes [begin, end) of one graph during one call,
 * without those of nested functions, which have their own. */
typedef struct pln_activation {
  struct pln_activation *env; /* activation of the enclosing function */
  /* Jump pointer: an enclosing activation, `env` or further out, so that any of
   * n is found in log n steps (E. Myers, "An applicative random-access stack",
   * 1983). */
  struct pln_activation *far;
  uint32_t depth;              /* number of enclosing activations */
  struct pln_activation *next; /* list of all activations of the run */
  struct pln_activation *previous;
  const pln_plan *plan;
  pln_attrs given; /* values of attribute references of the function */
  pln_ref begin, end;
  uint32_t n_slots;
  bool captured; /* a closure refers to it */
  slot slots[];
} activation;

typedef struct frame {
  activation *act;
  pln_scope scope;
  pln_scope child; /* the next nested scope to skip */
  pln_ref at;
  bool calls;                 /* the frame's end ends its activation */
  pln_ref_cell *args;         /* apply the result to these arguments, or NULL */
  pln_runtime_value *to;      /* where to store the result */
  pln_loop_state *loop_state; /* non-NULL: the frame runs the iterations of a
                               * loop, not a scope */
  pln_runtime_value body;     /* the function that an iteration calls */
  pln_flex_attention *flex;   /* non-NULL: the frame runs the stages of a call
                               * of flex_attention */
} frame;

typedef struct run {
  pln_engine *engine;
  const pln_module *module; /* or NULL */
  pln_plan *root;           /* plan of the graph being evaluated */
  pln_plan **plans;         /* plans of the module's functions; made at the
                             * first call */
  uint32_t n_plans;
  pln_loop_program **programs; /* likewise, of its PrimFuncs */
  activation *live;            /* all activations */
  frame *frames;
  uint32_t n_frames, cap_frames;
  uint32_t n_calls; /* number of frames that are calls */
  uint64_t n_steps;
  pln_runtime_value result;
  pln_runtime_value *cells; /* all reference cells made by the run; they may be
                             * cyclic */
  uint32_t n_cells, cap_cells;
  pln_pattern_matcher matcher;
  const pln_tensor **args; /* arguments of the current call */
  uint32_t cap_args;
  /* Orders of the arguments' axes, of operators with PLN_TRAIT_PERMUTED. */
  const uint32_t *orders[PLN_FEW_ARGS];
  uint32_t axes[PLN_FEW_ARGS][PLN_MAX_RANK];
  pln_tensor **results;
  uint32_t cap_results;
  const pln_graph *graph; /* graph of the current node, for messages */
  pln_ref node;
} run;

static pln_status unsupported(const run *r, const char *what) {
  return pln_diag_error(r->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "%s cannot be evaluated", what);
}

/* ------------------------------------------------------------- activations */

static size_t activation_size(uint32_t n_slots) {
  return sizeof(activation) + n_slots * sizeof(slot);
}

static void lie_in(activation *act, activation *env) {
  act->env = act->far = env;
  if (!env)
    return;
  act->depth = env->depth + 1;
  act->given = env->given;
  activation *far = env->far;
  if (far && far->far &&
      env->depth - far->depth == far->depth - far->far->depth)
    act->far = far->far;
}

/* Makes an activation for a function body or scope 0. */
static pln_status activate(run *r, const pln_plan *plan, pln_scope scope,
                           activation *env, activation **out) {
  uint32_t n = plan->n_slots[scope];
  const uint32_t *uses = plan->slot_uses + plan->first_slot[scope];
  activation *act = pln_mem_zeroed(r->engine, activation_size(n));
  if (!act)
    return pln_nomem(r->engine);
  act->plan = plan;
  act->begin = plan->graph->scopes[scope].begin;
  act->end = plan->graph->scopes[scope].end;
  act->n_slots = n;
  lie_in(act, env);
  for (uint32_t i = 0; i < n; i++)
    act->slots[i].left = uses[i];
  act->next = r->live;
  if (r->live)
    r->live->previous = act;
  r->live = act;
  *out = act;
  return PLN_OK;
}

static void deactivate(run *r, activation *act) {
  for (uint32_t i = 0; i < act->n_slots; i++)
    pln_runtime_value_release(r->engine, &act->slots[i].retained);
  if (act->previous)
    act->previous->next = act->next;
  else
    r->live = act->next;
  if (act->next)
    act->next->previous = act->previous;
  pln_mem_free(r->engine, act, activation_size(act->n_slots));
}

static bool encloses(const activation *act, pln_ref node) {
  return act->begin <= node && node < act->end;
}

/* The slot of a node, which lies in the current body or an enclosing one. */
static slot *slot_of(activation *act, pln_ref node) {
  while (!encloses(act, node))
    act = encloses(act->far, node) ? act->env : act->far;
  return &act->slots[act->plan->slot[node]];
}

/* ------------------------------------------------------------------ frames */

static pln_status check_calls(const run *r) {
  uint32_t most = r->engine->most_calls;
  if (!most)
    most = PLN_MOST_CALLS;
  if (r->n_calls <= most)
    return PLN_OK;
  return pln_diag_error(r->engine, PLN_ERR_LIMIT, NULL,
                        "calls are nested deeper than limit.depth = %u",
                        (unsigned)most);
}

static pln_status push_eval_frame(run *r, const frame *f) {
  r->n_calls += f->calls;
  PLN_TRY(check_calls(r));
  if (r->n_frames >= MAX_FRAMES)
    return pln_diag_error(r->engine, PLN_ERR_LIMIT, NULL,
                          "scopes are nested more than %d deep", MAX_FRAMES);
  if (r->n_frames == r->cap_frames)
    PLN_TRY(pln_mem_grow(r->engine, (void **)&r->frames, &r->cap_frames,
                         r->n_frames + 1u, sizeof *r->frames));
  r->frames[r->n_frames++] = *f;
  return PLN_OK;
}

/* Enters a scope of the frame's own activation for its owner `node`. */
static pln_status enter_scope(run *r, activation *act, pln_scope scope,
                              pln_ref node) {
  frame f = {.act = act,
             .scope = scope,
             .child = act->plan->first_child[scope],
             .at = act->plan->graph->scopes[scope].begin,
             .to = &slot_of(act, node)->retained};
  return push_eval_frame(r, &f);
}

static pln_status bind_call_params(run *r, activation *act, pln_scope scope,
                                   const pln_ref_cell *args) {
  const pln_scope_row *row = &act->plan->graph->scopes[scope];
  if (args->count != row->n_params)
    return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                          "a function of %u parameters is called with %u "
                          "arguments",
                          row->n_params, args->count);
  for (uint32_t i = 0; i < args->count; i++)
    slot_of(act, row->begin + i)->retained =
        pln_runtime_value_copy(args->items[i]);
  return PLN_OK;
}

/* Calls the Function `function` of the plan's graph; takes `args`. The
 * attribute references of a closure are those of the function that made it. */
static pln_status call_function(run *r, const pln_plan *plan, pln_ref function,
                                activation *env, pln_attrs given,
                                pln_ref_cell *args, pln_runtime_value *to) {
  const pln_graph *g = plan->graph;
  pln_scope scope = g->nodes[function].data;
  const pln_scope_row *row = &g->scopes[scope];
  frame f = {.scope = scope,
             .child = plan->first_child[scope],
             .at = row->begin + row->n_params,
             .calls = true,
             .to = to};
  pln_status status = activate(r, plan, scope, env, &f.act);
  if (status == PLN_OK && !env)
    f.act->given = given;
  if (status == PLN_OK)
    status = bind_call_params(r, f.act, scope, args);
  pln_ref_cell_release(r->engine, args);
  return status == PLN_OK ? push_eval_frame(r, &f) : status;
}

/* True if the graph consists of its Function only, which needs no activation
 * for scope 0. */
static bool is_bare(const pln_graph *g) {
  const pln_node *n = &g->nodes[g->root];
  return n->kind == PLN_FUNCTION && g->scopes[n->data].begin == 0 &&
         g->scopes[n->data].end == g->root;
}

/* Evaluates a graph's root and, unless `args` is NULL, applies it to them;
 * takes `args`. */
static pln_status call_graph(run *r, const pln_plan *plan, pln_attrs given,
                             pln_ref_cell *args, pln_runtime_value *to) {
  const pln_graph *g = plan->graph;
  if (args && is_bare(g))
    return call_function(r, plan, g->root, NULL, given, args, to);
  frame f = {.scope = 0,
             .child = plan->first_child[0],
             .calls = true,
             .args = args,
             .to = to};
  pln_status status = activate(r, plan, 0, NULL, &f.act);
  if (status == PLN_OK)
    f.act->given = given;
  if (status == PLN_OK)
    status = push_eval_frame(r, &f);
  if (status == PLN_OK || !args)
    return status;
  pln_ref_cell_release(r->engine, args);
  return status;
}

static pln_status call_global(run *r, pln_symbol name, pln_attrs given,
                              pln_ref_cell *args, pln_runtime_value *to) {
  uint32_t i = r->module ? pln_module_find(r->module, name) : PLN_NONE;
  pln_status status = PLN_OK;
  if (i == PLN_NONE)
    status = pln_diag_error(r->engine, PLN_ERR_UNSUPPORTED, NULL,
                            "the module has no function '@%s'",
                            pln_symbol_text(r->engine, name).data);
  else if (!r->plans[i])
    status = pln_plan_new(pln_module_function_at(r->module, i), &r->plans[i]);
  if (status == PLN_OK)
    status = pln_function_given(r->plans[i]->graph, &given);
  if (status == PLN_OK)
    return call_graph(r, r->plans[i], given, args, to);
  pln_ref_cell_release(r->engine, args);
  return status;
}

/* Applies a value to arguments; takes `args`. given: the attributes of the
 * call. */
static pln_status apply(run *r, const pln_runtime_value *callee,
                        pln_attrs given, pln_ref_cell *args,
                        pln_runtime_value *to) {
  activation *env = callee->kind == PLN_RUNTIME_CLOSURE ? callee->of.env : NULL;
  if (env)
    return call_function(r, env->plan, callee->number, env, 0, args, to);
  if (callee->kind == PLN_RUNTIME_GLOBAL)
    return call_global(r, callee->number, given, args, to);
  if (callee->kind == PLN_RUNTIME_CONSTRUCTOR) {
    *to = (pln_runtime_value){.kind = PLN_RUNTIME_ADT_VALUE,
                              .number = callee->number,
                              .of.cell = args};
    return PLN_OK;
  }
  pln_ref_cell_release(r->engine, args);
  return unsupported(r, "a call of a value that is not a function");
}

/* ---------------------------------------------------------------- operands */

static pln_status read_operand(run *r, activation *act, pln_ref node,
                               pln_runtime_value *out) {
  *out = slot_of(act, node)->retained;
  if (out->kind != PLN_RUNTIME_NONE)
    return PLN_OK;
  const pln_graph *g = act->plan->graph;
  bool named = g->nodes[node].kind == PLN_VAR && g->nodes[node].attrs;
  return pln_diag_error(
      r->engine, PLN_ERR_UNSUPPORTED, NULL, "variable '%s' has no value",
      named ? pln_symbol_text(r->engine, g->nodes[node].attrs).data : "?");
}

/* Operands [first, end) as the elements of a new cell. */
static pln_status operands_in_cell(run *r, activation *act, const pln_node *n,
                                   uint32_t first, uint32_t end,
                                   pln_ref_cell **out) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  PLN_TRY(pln_ref_cell_new(r->engine, end - first, out));
  for (uint32_t i = first; i < end; i++) {
    pln_runtime_value retained;
    pln_status status = read_operand(r, act, args[i], &retained);
    if (status != PLN_OK) {
      pln_ref_cell_release(r->engine, *out);
      return status;
    }
    (*out)->items[i - first] = pln_runtime_value_copy(retained);
  }
  return PLN_OK;
}

/* Releases values that `node` used for the last time. */
static void release_last_uses(run *r, activation *act, pln_ref node) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  const pln_ref *args = pln_operands(g, n);
  for (uint32_t i = n->kind == PLN_LET ? 1 : 0; i < n->count; i++) {
    if (!encloses(act, args[i]))
      continue;
    slot *s = &act->slots[act->plan->slot[args[i]]];
    if (s->left != PLN_PLAN_PINNED && s->left > 0 && --s->left == 0)
      pln_runtime_value_release(r->engine, &s->retained);
  }
}

/* ---------------------------------------------------------- operator calls */

/* Appends a tensor, or an absent operand, to the arguments. */
static pln_status add_argument(run *r, const pln_node *n,
                               const pln_runtime_value *value,
                               uint32_t *count) {
  if (value->kind != PLN_RUNTIME_TENSOR && value->kind != PLN_RUNTIME_ABSENT)
    return pln_diag_error(
        r->engine, PLN_ERR_UNSUPPORTED, NULL,
        "operator '%s' cannot be evaluated: an operand is not a tensor",
        pln_op_row(r->engine, n->data)->name);
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->args, &r->cap_args, *count + 1,
                       sizeof *r->args));
  r->args[(*count)++] =
      value->kind == PLN_RUNTIME_TENSOR ? value->of.tensor : NULL;
  return PLN_OK;
}

/* The operator's arguments and their number. Of an operand that is a tuple they
 * are its fields, as in Relay's concatenate. */
static pln_status gather_tensors(run *r, activation *act, const pln_node *n,
                                 uint32_t *count) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  bool joins =
      n->count == 1 || pln_op_row(r->engine, n->data)->traits & PLN_TRAIT_JOIN;
  *count = 0;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_runtime_value value;
    PLN_TRY(read_operand(r, act, args[i], &value));
    if (value.kind != PLN_RUNTIME_TUPLE || !joins) {
      PLN_TRY(add_argument(r, n, &value, count));
      continue;
    }
    for (uint32_t k = 0; k < value.of.cell->count; k++)
      PLN_TRY(add_argument(r, n, &value.of.cell->items[k], count));
  }
  return PLN_OK;
}

static pln_status hold_results(run *r, uint32_t k, pln_runtime_value *out) {
  if (k == 0) {
    *out = pln_runtime_value_of_tensor(r->results[0]);
    return PLN_OK;
  }
  pln_ref_cell *cell;
  pln_status status = pln_ref_cell_new(r->engine, k, &cell);
  for (uint32_t i = 0; i < k; i++)
    if (status == PLN_OK)
      cell->items[i] = pln_runtime_value_of_tensor(r->results[i]);
    else
      pln_tensor_release(r->results[i]);
  if (status == PLN_OK)
    *out = (pln_runtime_value){.kind = PLN_RUNTIME_TUPLE, .of.cell = cell};
  return status;
}

/* Makes *first a tuple whose first field is the former *first. */
static pln_status wrap(run *r, uint32_t n, pln_runtime_value *first) {
  pln_ref_cell *cell;
  pln_status status = pln_ref_cell_new(r->engine, n, &cell);
  if (status != PLN_OK) {
    pln_runtime_value_release(r->engine, first);
    return status;
  }
  for (uint32_t i = 1; i < n; i++)
    cell->items[i].kind = PLN_RUNTIME_ABSENT;
  cell->items[0] = *first;
  *first = (pln_runtime_value){.kind = PLN_RUNTIME_TUPLE, .of.cell = cell};
  return PLN_OK;
}

/* Moves operands used for the last time into the arguments, so that a kernel
 * may overwrite a tensor that nothing else refers to. */
static void move_last_uses(activation *act, const pln_node *n,
                           pln_ref_cell *cell) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  for (uint32_t i = 0; i < n->count; i++) {
    if (!encloses(act, args[i]))
      continue;
    slot *s = &act->slots[act->plan->slot[args[i]]];
    if (s->left == 1 && s->retained.kind == PLN_RUNTIME_SEQUENCE) {
      cell->items[i].of.cell->refs--;
      s->retained.kind = PLN_RUNTIME_NONE;
    }
  }
}

/* The attributes of a call with references resolved. */
static pln_status attrs_of(const run *r, const activation *act,
                           const pln_node *n, pln_attrs *out) {
  return pln_attrs_resolve(r->engine, n->attrs, act->given, out);
}

/* Calls an operator on sequences and optionals. */
static pln_status call_on_data(run *r, activation *act, pln_ref node,
                               pln_runtime_value *out) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  pln_ref_cell *cell;
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(operands_in_cell(r, act, n, 0, n->count, &cell));
  move_last_uses(act, n, cell);
  pln_kernel_call call = {.engine = r->engine,
                          .op = n->data,
                          .attrs = attrs,
                          .n_args = n->count,
                          .data = cell->items,
                          .made = out,
                          .type = n->type};
  pln_status status = pln_op_row(r->engine, n->data)->kernel(&call);
  pln_ref_cell_release(r->engine, cell);
  return status == PLN_OK && n->results ? wrap(r, n->results, out) : status;
}

static pln_status add_to_profile(run *r, pln_ref node, pln_attrs attrs,
                                 uint32_t count, uint64_t begin) {
  pln_profiled_call call = {.graph = r->graph,
                            .node = node,
                            .attrs = attrs,
                            .n_args = count,
                            .args = r->args,
                            .n_results =
                                pln_n_results(r->graph, &r->graph->nodes[node]),
                            .results = r->results};
  return pln_profile_add(r->engine->profile, &call, begin, pln_profile_clock());
}

/* The operand of an operator that returns it, whatever kind of value it is. */
static pln_status return_operand(run *r, activation *act, const pln_node *n,
                                 pln_runtime_value *out) {
  pln_runtime_value only;
  PLN_TRY(read_operand(r, act, pln_operands(act->plan->graph, n)[0], &only));
  *out = pln_runtime_value_copy(only);
  return PLN_OK;
}

/* True if the node is a transpose whose value is that of its operand, because
 * kernels read it by that order of axes. */
static bool leaves_order(const activation *act, pln_ref node) {
  const pln_node *n = &act->plan->graph->nodes[node];
  return !act->plan->moved[node] && n->kind == PLN_CALL &&
         n->data == PLN_OP_TRANSPOSE;
}

/* Finds in which order the kernel takes the axes of each argument. */
static pln_status find_orders(run *r, activation *act, const pln_node *n,
                              const uint32_t *const **out) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  *out = NULL;
  if (!(pln_op_row(r->engine, n->data)->traits & PLN_TRAIT_PERMUTED) ||
      n->count > PLN_FEW_ARGS)
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_attrs attrs;
    r->orders[i] = NULL;
    if (!encloses(act, args[i]) || !leaves_order(act, args[i]))
      continue;
    PLN_TRY(attrs_of(r, act, &act->plan->graph->nodes[args[i]], &attrs));
    if (r->args[i] &&
        pln_transpose_order(r->engine, attrs, r->args[i]->rank, r->axes[i]))
      r->orders[i] = r->axes[i];
    if (r->orders[i])
      *out = r->orders;
  }
  return PLN_OK;
}

/* Sets r->results. */
static pln_status compute(run *r, activation *act, pln_ref node,
                          pln_attrs attrs, uint32_t count) {
  const pln_graph *g = act->plan->graph;
  pln_prepared_call call = {.graph = g,
                            .node = &g->nodes[node],
                            .attrs = attrs,
                            .count = count,
                            .args = r->args,
                            .results = r->results};
  if (count == 1 && r->args[0] && leaves_order(act, node) &&
      pln_transpose_order(r->engine, attrs, r->args[0]->rank, r->axes[0])) {
    r->results[0] = pln_tensor_retain(r->args[0]);
    return PLN_OK;
  }
  PLN_TRY(find_orders(r, act, call.node, &call.orders));
  return pln_call_run(&call);
}

static pln_status call_operator(run *r, activation *act, pln_ref node,
                                pln_runtime_value *out) {
  const pln_node *n = &act->plan->graph->nodes[node];
  const pln_op_info *row = pln_op_row(r->engine, n->data);
  uint32_t k = pln_n_results(act->plan->graph, n);
  if (!row->kernel)
    return pln_diag_error(r->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "operator '%s' cannot be evaluated", row->name);
  if (row->traits & PLN_TRAIT_DATA)
    return call_on_data(r, act, node, out);
  if (row->kernel == pln_kernel_identity && n->count == 1 && !n->results)
    return return_operand(r, act, n, out);
  uint32_t count;
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(gather_tensors(r, act, n, &count));
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->results, &r->cap_results, k,
                       sizeof(pln_tensor *)));
  memset(r->results, 0, k * sizeof *r->results);
  uint64_t begin = r->engine->profile ? pln_profile_clock() : 0;
  PLN_TRY(compute(r, act, node, attrs, count));
  pln_status status = PLN_OK;
  if (r->engine->profile)
    status = add_to_profile(r, node, attrs, count, begin);
  if (status == PLN_OK)
    return hold_results(r, pln_n_fields(act->plan->graph, n), out);
  pln_tensors_release(k, r->results);
  return status;
}

/* --------------------------------------------------------------- iterations */

/* Starts the iterations of loop, scan or sequence_map: pushes a frame that
 * calls the last operand repeatedly. */
static pln_status start_iterations(run *r, activation *act, pln_ref node) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  frame f = {.act = act, .to = &slot_of(act, node)->retained};
  pln_ref_cell *cell;
  if (n->count == 0)
    return unsupported(r, "a loop without a body");
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(read_operand(r, act, pln_operands(g, n)[n->count - 1], &f.body));
  PLN_TRY(operands_in_cell(r, act, n, 0, n->count - 1, &cell));
  PLN_TRY(pln_loop_state_new(g, node, attrs, cell, &f.loop_state));
  f.body = pln_runtime_value_copy(f.body);
  pln_status status = push_eval_frame(r, &f);
  if (status == PLN_OK)
    return status;
  pln_runtime_value_release(r->engine, &f.body);
  pln_loop_state_free(f.loop_state);
  return status;
}

/* Starts the next iteration, or ends the innermost frame. */
static pln_status run_next_iteration(run *r) {
  frame *f = &r->frames[r->n_frames - 1];
  pln_ref_cell *args;
  PLN_TRY(pln_loop_state_next(f->loop_state, &args));
  if (args)
    return apply(r, &f->body, 0, args, pln_loop_state_result(f->loop_state));
  pln_runtime_value all;
  PLN_TRY(pln_loop_state_finish(f->loop_state, &all));
  *f->to = all;
  pln_loop_state_free(f->loop_state);
  pln_runtime_value_release(r->engine, &f->body);
  r->n_frames--;
  return PLN_OK;
}

/* ---------------------------------------------------------- flex_attention */

/* Pushes a frame that runs the stages and calls the functions between them. */
static pln_status start_stages(run *r, activation *act, pln_ref node) {
  const pln_node *n = &act->plan->graph->nodes[node];
  frame f = {.act = act, .to = &slot_of(act, node)->retained};
  pln_ref_cell *cell;
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(operands_in_cell(r, act, n, 0, n->count, &cell));
  PLN_TRY(pln_flex_attention_new(r->engine, attrs, cell, &f.flex));
  pln_status status = push_eval_frame(r, &f);
  if (status != PLN_OK)
    pln_flex_attention_free(f.flex);
  return status;
}

/* Calls the next function, or ends the innermost frame. */
static pln_status run_next_stage(run *r) {
  frame *f = &r->frames[r->n_frames - 1];
  const pln_runtime_value *callee;
  pln_ref_cell *args;
  PLN_TRY(pln_flex_attention_next(f->flex, &callee, &args));
  if (args)
    return apply(r, callee, 0, args, pln_flex_attention_result(f->flex));
  *f->to = pln_flex_attention_finish(f->flex);
  pln_flex_attention_free(f->flex);
  r->n_frames--;
  return PLN_OK;
}

/* ------------------------------------------------------------- other kinds */

static pln_status get_item(run *r, activation *act, const pln_node *n,
                           pln_runtime_value *out) {
  pln_runtime_value tuple;
  PLN_TRY(read_operand(r, act, pln_operands(act->plan->graph, n)[0], &tuple));
  if (tuple.kind != PLN_RUNTIME_TUPLE || n->data >= tuple.of.cell->count)
    return unsupported(r, "TupleGetItem of a value that is not a tuple");
  *out = pln_runtime_value_copy(tuple.of.cell->items[n->data]);
  return PLN_OK;
}

static pln_status enter_branch(run *r, activation *act, pln_ref node) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  pln_runtime_value cond;
  const void *data;
  PLN_TRY(read_operand(r, act, pln_operands(g, n)[0], &cond));
  if (cond.kind != PLN_RUNTIME_TENSOR || cond.of.tensor->count != 1 ||
      cond.of.tensor->dtype != PLN_BOOL)
    return unsupported(r, "an If whose condition is not a boolean");
  PLN_TRY(pln_tensor_data(cond.of.tensor, &data));
  bool holds = *(const uint8_t *)data != 0;
  return enter_scope(r, act, holds ? n->data : g->scopes[n->data].next, node);
}

static pln_status report_no_matching_arm(const run *r,
                                         const pln_runtime_value *value) {
  if (value->kind != PLN_RUNTIME_ADT_VALUE)
    return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                          "no arm of the Match covers the value");
  return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                        "no arm of the Match covers the result of '%s'",
                        pln_symbol_text(r->engine, value->number).data);
}

/* Binds the variables of the matched arm; unused ones get no value. */
static void bind_arm(run *r, activation *act) {
  for (uint32_t i = 0; i < r->matcher.n_bound; i++) {
    slot *var = slot_of(act, r->matcher.bound[i].node);
    pln_runtime_value_release(r->engine, &var->retained);
    if (var->left)
      var->retained = pln_runtime_value_copy(*r->matcher.bound[i].value);
  }
}

static pln_status enter_arm(run *r, activation *act, pln_ref node) {
  const pln_graph *g = act->plan->graph;
  pln_runtime_value value;
  pln_scope arm = PLN_NONE;
  if (!pln_owns(&g->nodes[node]))
    return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                          "the Match has no arms");
  PLN_TRY(read_operand(r, act, pln_operand(g, node, 0), &value));
  PLN_TRY(pln_pattern_match_arm(&r->matcher, g, node, &value, &arm));
  if (arm == PLN_NONE)
    return report_no_matching_arm(r, &value);
  bind_arm(r, act);
  return enter_scope(r, act, arm, node);
}

static pln_status make_cell(run *r, activation *act, const pln_node *n,
                            pln_runtime_value *out) {
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->cells, &r->cap_cells,
                       r->n_cells + 1u, sizeof *r->cells));
  pln_ref_cell *cell;
  PLN_TRY(operands_in_cell(r, act, n, 0, n->count, &cell));
  *out = (pln_runtime_value){.kind = PLN_RUNTIME_REF_CELL, .of.cell = cell};
  r->cells[r->n_cells++] = pln_runtime_value_copy(*out);
  return PLN_OK;
}

static pln_status use_cell(run *r, activation *act, const pln_node *n,
                           pln_runtime_value *out) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  pln_runtime_value cell, value;
  PLN_TRY(read_operand(r, act, args[0], &cell));
  if (cell.kind != PLN_RUNTIME_REF_CELL)
    return unsupported(
        r, "RefRead or RefWrite of a value that is not a reference");
  pln_runtime_value *item = &cell.of.cell->items[0];
  if (n->kind == PLN_REF_READ) {
    *out = pln_runtime_value_copy(*item);
    return PLN_OK;
  }
  PLN_TRY(read_operand(r, act, args[1], &value));
  value = pln_runtime_value_copy(value);
  pln_runtime_value_release(r->engine, item);
  *item = value;
  *out = (pln_runtime_value){.kind = PLN_RUNTIME_TUPLE};
  return pln_ref_cell_new(r->engine, 0, &out->of.cell);
}

/* A variable's declared type may be consistent with its value's type (N and 2)
 * and still be wrong for the computed value. */
static pln_status check_binding(const run *r, const pln_graph *g,
                                const pln_ref *args,
                                const pln_runtime_value *value) {
  pln_type type = g->nodes[args[0]].type;
  if (type == g->nodes[args[1]].type || value->kind != PLN_RUNTIME_TENSOR ||
      pln_tensor_fits(r->engine, value->of.tensor, type))
    return PLN_OK;
  pln_description is;
  return pln_diag_error(
      r->engine, PLN_ERR_UNSUPPORTED, NULL,
      "the variable '%s' has type %s, but is bound to a value of another type",
      pln_symbol_text(r->engine, g->nodes[args[0]].attrs).data,
      pln_describe_type(r->engine, type, &is));
}

static pln_status bind_let(run *r, activation *act, const pln_node *n) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  pln_runtime_value value;
  PLN_TRY(read_operand(r, act, args[1], &value));
  PLN_TRY(check_binding(r, act->plan->graph, args, &value));
  slot *var = slot_of(act, args[0]);
  pln_runtime_value_release(r->engine, &var->retained);
  var->retained = pln_runtime_value_copy(value);
  return PLN_OK;
}

static pln_status make_tuple(run *r, activation *act, const pln_node *n,
                             pln_runtime_value *out) {
  pln_ref_cell *cell;
  PLN_TRY(operands_in_cell(r, act, n, 0, n->count, &cell));
  *out = (pln_runtime_value){.kind = PLN_RUNTIME_TUPLE, .of.cell = cell};
  return PLN_OK;
}

/* Copies any runtime value, tensor or not. */
static pln_status copy_operand(run *r, activation *act, const pln_node *n,
                               pln_runtime_value *out) {
  pln_runtime_value value;
  PLN_TRY(read_operand(r, act, pln_operands(act->plan->graph, n)[0], &value));
  *out = pln_runtime_value_copy(value);
  return PLN_OK;
}

static pln_status call_value(run *r, activation *act, pln_ref node) {
  const pln_node *n = &act->plan->graph->nodes[node];
  pln_runtime_value callee;
  pln_ref_cell *args;
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(read_operand(r, act, pln_operands(act->plan->graph, n)[0], &callee));
  PLN_TRY(operands_in_cell(r, act, n, 1, n->count, &args));
  return apply(r, &callee, attrs, args, &slot_of(act, node)->retained);
}

/* A file may call an operator with any number of operands; kernels get only
 * valid numbers. */
static pln_status check_arity(run *r, const pln_node *n) {
  const pln_op_info *row = pln_op_row(r->engine, n->data);
  bool few = (int64_t)n->count < row->min_args;
  bool many = row->max_args >= 0 && (int64_t)n->count > row->max_args;
  if (!few && !many)
    return PLN_OK;
  return pln_diag_error(r->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "'%s' takes %s %d operands, got %u", row->name,
                        few ? "at least" : "at most",
                        few ? row->min_args : row->max_args, n->count);
}

/* True for copy and for calls that mark a place (on_device, annotation.*):
 * their result is their operand, whatever kind of value that is. */
static bool gives_operand(const run *r, const pln_node *n) {
  pln_kernel_fn identity = pln_op_row(r->engine, PLN_OP_IDENTITY)->kernel;
  return n->results == 0 && n->count == 1 &&
         pln_op_row(r->engine, n->data)->kernel == identity;
}

/* ------------------------------------------------------------- call_lowered */

/* The program of a PrimFunc of the module, made at its first call. */
static pln_status program_of(run *r, const pln_runtime_value *callee,
                             const pln_loop_program **out) {
  uint32_t i = PLN_NONE;
  if (r->module && callee->kind == PLN_RUNTIME_GLOBAL)
    i = pln_module_find(r->module, callee->number);
  if (i == PLN_NONE)
    return unsupported(r, "call_lowered of what is no function of the module");
  if (!r->programs)
    r->programs = pln_mem_zeroed(r->engine, r->n_plans * sizeof *r->programs);
  if (!r->programs)
    return pln_nomem(r->engine);
  if (!r->programs[i])
    PLN_TRY(pln_loop_program_new(pln_module_function_at(r->module, i), NULL,
                                 &r->programs[i]));
  *out = r->programs[i];
  return PLN_OK;
}

/* The result of call_lowered(@f, (a, b, ...)). */
static pln_status call_loops(run *r, activation *act, pln_ref node,
                             pln_runtime_value *out) {
  const pln_node *n = &act->plan->graph->nodes[node];
  const pln_ref *args = pln_operands(act->plan->graph, n);
  const pln_loop_program *program = NULL;
  pln_runtime_value callee, tuple;
  PLN_TRY(read_operand(r, act, args[0], &callee));
  PLN_TRY(read_operand(r, act, args[1], &tuple));
  if (tuple.kind != PLN_RUNTIME_TUPLE)
    return unsupported(r, "call_lowered of what is no tuple");
  PLN_TRY(program_of(r, &callee, &program));
  return pln_lowered_call(r->engine, program, tuple.of.cell, n->type, out);
}

/* The result of memory.kill: a value is released at its last use anyway. */
static pln_status make_unit(const run *r, pln_runtime_value *out) {
  *out = (pln_runtime_value){.kind = PLN_RUNTIME_TUPLE};
  return pln_ref_cell_new(r->engine, 0, &out->of.cell);
}

static pln_status call_operation(run *r, activation *act, pln_ref node,
                                 pln_runtime_value *out) {
  const pln_node *n = &act->plan->graph->nodes[node];
  PLN_TRY(check_arity(r, n));
  if (gives_operand(r, n))
    return copy_operand(r, act, n, out);
  if (n->data == PLN_OP_MEMORY_KILL)
    return make_unit(r, out);
  if (n->data == PLN_OP_CALL_LOWERED)
    return call_loops(r, act, node, out);
  if (pln_flex_attention_calls(n))
    return start_stages(r, act, node);
  return pln_is_loop_op(n->data) ? start_iterations(r, act, node)
                                 : call_operator(r, act, node, out);
}

/* Evaluates one node: stores its value, or pushes the frame that will. */
static pln_status eval_node(run *r, activation *act, pln_ref node,
                            pln_runtime_value *out) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  switch ((pln_kind)n->kind) {
  case PLN_VAR: return PLN_OK;
  case PLN_CONSTANT:
    *out = pln_runtime_value_of_tensor(pln_tensor_retain(g->tensors[n->data]));
    return PLN_OK;
  case PLN_ABSENT: out->kind = PLN_RUNTIME_ABSENT; return PLN_OK;
  case PLN_GLOBAL_VAR:
    *out = (pln_runtime_value){.kind = PLN_RUNTIME_GLOBAL, .number = n->data};
    return PLN_OK;
  case PLN_CONSTRUCTOR:
    *out =
        (pln_runtime_value){.kind = PLN_RUNTIME_CONSTRUCTOR, .number = n->data};
    return PLN_OK;
  case PLN_TUPLE: return make_tuple(r, act, n, out);
  case PLN_REF_CREATE: return make_cell(r, act, n, out);
  case PLN_TUPLE_GET_ITEM: return get_item(r, act, n, out);
  case PLN_CALL:
    return n->data ? call_operation(r, act, node, out)
                   : call_value(r, act, node);
  case PLN_FUNCTION:
    act->captured |= act->plan->escapes[node] != 0;
    *out = (pln_runtime_value){
        .kind = PLN_RUNTIME_CLOSURE, .number = node, .of.env = act};
    return PLN_OK;
  case PLN_LET: return bind_let(r, act, n);
  case PLN_LET_BLOCK: return enter_scope(r, act, n->data, node);
  case PLN_IF: return enter_branch(r, act, node);
  case PLN_MATCH: return enter_arm(r, act, node);
  case PLN_REF_READ:
  case PLN_REF_WRITE: return use_cell(r, act, n, out);
  case PLN_OP:
  case PLN_PATTERN_WILDCARD:
  case PLN_PATTERN_VAR:
  case PLN_PATTERN_CONSTRUCTOR:
  case PLN_PATTERN_TUPLE:
  case PLN_CLAUSE:
  default: break;
  }
  return unsupported(r, pln_kind_name((pln_kind)n->kind));
}

/* --------------------------------------------------------------------- run */

/* The next needed node of the frame's own scope, or the scope's end. */
static pln_ref advance_eval_frame(frame *f) {
  const pln_plan *p = f->act->plan;
  const pln_scope_row *rows = p->graph->scopes;
  pln_ref end = rows[f->scope].end;
  for (; f->at < end; f->at++) {
    while (f->child != PLN_NONE && rows[f->child].begin <= f->at) {
      if (rows[f->child].end > f->at)
        f->at = rows[f->child].end;
      f->child = p->next_child[f->child];
    }
    if (f->at >= end || p->needed[f->at])
      break;
  }
  return f->at;
}

static pln_ref scope_result(const frame *f) {
  const pln_graph *g = f->act->plan->graph;
  return f->scope == 0 ? g->root : g->scopes[f->scope].result;
}

/* Pops the innermost frame and stores its result. */
static pln_status leave_scope(run *r) {
  frame f = r->frames[--r->n_frames];
  pln_runtime_value value;
  r->n_calls -= f.calls;
  pln_status status = read_operand(r, f.act, scope_result(&f), &value);
  if (status == PLN_OK && f.args)
    return apply(r, &value, f.act->given, f.args, f.to);
  if (f.args)
    pln_ref_cell_release(r->engine, f.args);
  PLN_TRY(status);
  *f.to = pln_runtime_value_copy(value);
  if (f.calls && !f.act->captured)
    deactivate(r, f.act);
  return PLN_OK;
}

/* Polls and checks limits before each step. */
static pln_status check_limits(run *r) {
  pln_engine *e = r->engine;
  PLN_TRY(pln_poll(e));
  if (++r->n_steps <= e->most_steps || e->most_steps == 0)
    return PLN_OK;
  return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                        "it computes more nodes than limit.steps = %llu",
                        (unsigned long long)e->most_steps);
}

static pln_status run_frames(run *r) {
  while (r->n_frames) {
    frame *f = &r->frames[r->n_frames - 1];
    activation *act = f->act;
    PLN_TRY(check_limits(r));
    if (f->loop_state) {
      PLN_TRY(run_next_iteration(r));
      continue;
    }
    if (f->flex) {
      PLN_TRY(run_next_stage(r));
      continue;
    }
    pln_ref node = advance_eval_frame(f);
    if (node >= act->plan->graph->scopes[f->scope].end) {
      PLN_TRY(leave_scope(r));
      continue;
    }
    f->at++;
    r->graph = act->plan->graph;
    r->node = node;
    if (r->engine->progress)
      r->engine->progress(r->engine->progress_ud, node, r->graph->n_nodes);
    pln_runtime_value retained = {.kind = PLN_RUNTIME_NONE};
    PLN_TRY(eval_node(r, act, node, &retained));
    if (retained.kind != PLN_RUNTIME_NONE)
      slot_of(act, node)->retained = retained;
    release_last_uses(r, act, node);
  }
  return PLN_OK;
}

static void end_run(run *r) {
  pln_engine *e = r->engine;
  pln_runtime_value_release(e, &r->result);
  for (uint32_t i = 0; i < r->n_frames; i++) {
    if (r->frames[i].args)
      pln_ref_cell_release(e, r->frames[i].args);
    if (r->frames[i].loop_state)
      pln_loop_state_free(r->frames[i].loop_state);
    if (r->frames[i].flex)
      pln_flex_attention_free(r->frames[i].flex);
    pln_runtime_value_release(e, &r->frames[i].body);
  }
  for (uint32_t i = 0; i < r->n_cells; i++) {
    pln_runtime_value_release(e, &r->cells[i].of.cell->items[0]);
    pln_runtime_value_release(e, &r->cells[i]);
  }
  while (r->live)
    deactivate(r, r->live);
  for (uint32_t i = 0; r->plans && i < r->n_plans; i++)
    pln_plan_free(r->plans[i]);
  for (uint32_t i = 0; r->programs && i < r->n_plans; i++)
    pln_loop_program_free(r->programs[i]);
  pln_mem_free(e, r->programs,
               r->programs ? r->n_plans * sizeof *r->programs : 0);
  pln_mem_free(e, r->plans, r->n_plans * sizeof *r->plans);
  pln_plan_free(r->root);
  pln_mem_free(e, r->frames, r->cap_frames * sizeof *r->frames);
  pln_mem_free(e, r->cells, r->cap_cells * sizeof *r->cells);
  pln_pattern_matcher_end(&r->matcher);
  pln_mem_free(e, r->args, r->cap_args * sizeof *r->args);
  pln_mem_free(e, r->results, r->cap_results * sizeof *r->results);
}

/* ------------------------------------------------------ arguments, results */

/* The source of the current node for messages: "node 'a' (Conv)". */
static size_t describe_running_node(void *ud, char *text, size_t size) {
  const run *r = ud;
  const pln_graph *g = r->graph;
  if (!g || !g->origins || r->node >= g->n_nodes)
    return 0;
  return pln_origins_describe(g->origins, g->origin[r->node], text, size);
}

static pln_status args_in_cell(pln_engine *engine, uint32_t n,
                               const pln_runtime_value *args,
                               pln_ref_cell **out) {
  PLN_TRY(pln_ref_cell_new(engine, n, out));
  for (uint32_t i = 0; i < n; i++)
    (*out)->items[i] = pln_runtime_value_copy(args[i]);
  return PLN_OK;
}

/* Field `i` of n results; a value that is not a tuple is its own only field. */
static const pln_runtime_value *result_field(const pln_runtime_value *all,
                                             uint32_t n, uint32_t i) {
  if (all->kind == PLN_RUNTIME_TUPLE)
    return all->of.cell->count == n ? &all->of.cell->items[i] : NULL;
  return n == 1 ? all : NULL;
}

/* True if a caller can hold the value: it contains no closure and no cell. */
static bool ends_run(const pln_runtime_value *value) {
  return value->kind < PLN_N_RUNTIME_VALUE_KINDS;
}

static pln_status give_results(run *r, uint32_t n, pln_runtime_value *results) {
  for (uint32_t i = 0; i < n; i++) {
    const pln_runtime_value *field = result_field(&r->result, n, i);
    if (!field)
      return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                            "the function does not have %u results", n);
    if (!ends_run(field))
      return unsupported(
          r,
          "a result that is a function, a reference or a value of a data type");
  }
  for (uint32_t i = 0; i < n; i++)
    results[i] = pln_runtime_value_copy(*result_field(&r->result, n, i));
  return PLN_OK;
}

static pln_status start_run(run *r, const pln_graph *g, uint32_t n,
                            const pln_runtime_value *args) {
  pln_ref_cell *cell = NULL;
  r->n_plans = r->module ? r->module->count : 0;
  r->plans = pln_mem_zeroed(r->engine, r->n_plans * sizeof *r->plans);
  if (!r->plans && r->n_plans)
    return pln_nomem(r->engine);
  PLN_TRY(pln_plan_new(g, &r->root));
  if (g->nodes[g->root].kind == PLN_FUNCTION)
    PLN_TRY(args_in_cell(r->engine, n, args, &cell));
  pln_attrs given = 0;
  pln_status status = pln_function_given(r->root->graph, &given);
  if (status == PLN_OK)
    return call_graph(r, r->root, given, cell, &r->result);
  pln_ref_cell_release(r->engine, cell);
  return status;
}

void pln_eval_on_progress(pln_engine *engine,
                          void (*f)(void *ud, uint32_t node, uint32_t n_nodes),
                          void *ud) {
  engine->progress = f;
  engine->progress_ud = ud;
}

pln_status pln_eval_run(const pln_module *module, const pln_graph *function,
                        uint32_t n_args, const pln_runtime_value *args,
                        uint32_t n_results, pln_runtime_value *results) {
  pln_engine *e = function->engine;
  run r = {.engine = e, .module = module, .matcher = {.engine = e}};
  PLN_TRY(pln_check_arguments(function, n_args, args));
  pln_mem_reuse_begin(r.engine);
  pln_parallel_begin(r.engine);
  pln_stoppable_begin(r.engine);
  r.engine->random_calls = 0;
  pln_place outer = pln_diag_place(
      r.engine, (pln_place){.fn = describe_running_node, .ud = &r});
  pln_status status = start_run(&r, function, n_args, args);
  if (status == PLN_OK)
    status = run_frames(&r);
  r.graph = NULL;
  if (status == PLN_OK)
    status = give_results(&r, n_results, results);
  pln_diag_place(r.engine, outer);
  end_run(&r);
  pln_stoppable_end(r.engine);
  pln_parallel_end(r.engine);
  pln_mem_reuse_end(r.engine);
  return status;
}
