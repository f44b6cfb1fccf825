/* evaluator.c: runs a function on data: pln_eval_data.
 *
 * A run walks scopes in array order with a stack of its own, so depth is no
 * matter. A scope is entered from its owner only, and of an If only the taken
 * branch. A node is computed when the plan says that somebody needs it, and let
 * go with its last use.
 *
 * What holds: a frame's `at` is a node of the frame's scope or the end; the
 * values of a graph lie in the activation whose interval holds the node, or in
 * one that encloses it. Everything is freed when the run ends, however. */

#include "eval/arguments.h"
#include "eval/call.h"
#include "eval/loop.h"
#include "eval/pattern_match.h"
#include "eval/plan.h"
#include "ir/graph/describe.h"
#include "ir/tensor/runtime_value.h"

#include <stdio.h>

/* Scopes in scopes, and in calls. */
enum { MAX_FRAMES = 10000000 };

typedef struct slot {
  pln_datum held;
  uint32_t left; /* uses to come; PLN_PLAN_PINNED: kept to the end */
} slot;

/* The values of nodes [begin, end) of one graph during one call, but for those
 * in functions inside of it. */
typedef struct pln_activation {
  struct pln_activation *env; /* where the enclosing function has them */
  /* One of those around it: `env`, or as many further out as make any of n
   * found in log n steps (E. Myers, "An applicative random-access stack"). */
  struct pln_activation *far;
  uint32_t depth;              /* how many are around it */
  struct pln_activation *next; /* all of the run */
  struct pln_activation *previous;
  const pln_plan *plan;
  pln_attrs given; /* what attribute references of the function stand for */
  pln_ref begin, end;
  uint32_t n_slots;
  bool captured; /* a closure looks into it */
  slot slots[];
} activation;

typedef struct frame {
  activation *act;
  pln_scope scope;
  pln_scope child; /* the next nested scope to pass over */
  pln_ref at;
  bool calls;       /* the frame ends its activation */
  pln_box *args;    /* apply the result to these, or NULL */
  pln_datum *to;    /* where the result goes */
  pln_cycle *cycle; /* the frame is no scope but the rounds of a loop */
  pln_datum body;   /* what a round calls */
} frame;

typedef struct run {
  pln_engine *engine;
  const pln_module *module; /* or NULL */
  pln_plan *root;           /* of the graph that is run */
  pln_plan **plans;         /* of the module's functions; made when called */
  uint32_t n_plans;
  activation *live; /* all activations */
  frame *frames;
  uint32_t n_frames, cap_frames;
  uint32_t n_calls; /* frames that are calls */
  uint64_t n_steps;
  pln_datum result;
  pln_datum *cells; /* all that were made: one may hold itself */
  uint32_t n_cells, cap_cells;
  pln_fit fit;
  const pln_tensor **args; /* of the call being computed */
  uint32_t cap_args;
  pln_tensor **results;
  uint32_t cap_results;
  const pln_graph *graph; /* of the node at work, for messages */
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

/* Of the body of a function, or of scope 0. */
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
    pln_datum_release(r->engine, &act->slots[i].held);
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

/* What a node may use lies in its own body or in one around it. */
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
                        "calls are nested more than limit.depth = %u deep",
                        (unsigned)most);
}

static pln_status push(run *r, const frame *f) {
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

/* Enters a scope of the frame's own activation on behalf of `node`. */
static pln_status enter(run *r, activation *act, pln_scope scope,
                        pln_ref node) {
  frame f = {.act = act,
             .scope = scope,
             .child = act->plan->first_child[scope],
             .at = act->plan->graph->scopes[scope].begin,
             .to = &slot_of(act, node)->held};
  return push(r, &f);
}

static pln_status bind_params(run *r, activation *act, pln_scope scope,
                              const pln_box *args) {
  const pln_scope_row *row = &act->plan->graph->scopes[scope];
  if (args->count != row->n_params)
    return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                          "a function of %u parameters is called with %u "
                          "arguments",
                          row->n_params, args->count);
  for (uint32_t i = 0; i < args->count; i++)
    slot_of(act, row->begin + i)->held = pln_datum_copy(args->items[i]);
  return PLN_OK;
}

/* Calls the Function `function` of the plan's graph; takes `args`. A closure's
 * attribute references are those of the function that made it. */
static pln_status call_function(run *r, const pln_plan *plan, pln_ref function,
                                activation *env, pln_attrs given, pln_box *args,
                                pln_datum *to) {
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
    status = bind_params(r, f.act, scope, args);
  pln_box_release(r->engine, args);
  return status == PLN_OK ? push(r, &f) : status;
}

/* The graph is nothing but its Function: it needs no activation of its own. */
static bool is_bare(const pln_graph *g) {
  const pln_node *n = &g->nodes[g->root];
  return n->kind == PLN_FUNCTION && g->scopes[n->data].begin == 0 &&
         g->scopes[n->data].end == g->root;
}

/* Evaluates a graph's root and applies it to `args` (NULL: does not); takes
 * them. */
static pln_status call_graph(run *r, const pln_plan *plan, pln_attrs given,
                             pln_box *args, pln_datum *to) {
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
    status = push(r, &f);
  if (status == PLN_OK || !args)
    return status;
  pln_box_release(r->engine, args);
  return status;
}

static pln_status call_global(run *r, pln_symbol name, pln_attrs given,
                              pln_box *args, pln_datum *to) {
  uint32_t i = r->module ? pln_module_find(r->module, name) : PLN_NONE;
  pln_status status = PLN_OK;
  if (i == PLN_NONE)
    status = pln_diag_error(r->engine, PLN_ERR_UNSUPPORTED, NULL,
                            "function '@%s' is not at hand",
                            pln_symbol_text(r->engine, name).data);
  else if (!r->plans[i])
    status = pln_plan_new(pln_module_function(r->module, i), &r->plans[i]);
  if (status == PLN_OK)
    status = pln_function_given(r->plans[i]->graph, &given);
  if (status == PLN_OK)
    return call_graph(r, r->plans[i], given, args, to);
  pln_box_release(r->engine, args);
  return status;
}

/* Applies a value; takes `args`. given: the attributes of the call. */
static pln_status apply(run *r, const pln_datum *callee, pln_attrs given,
                        pln_box *args, pln_datum *to) {
  if (callee->kind == PLN_DATUM_CLOSURE)
    return call_function(r, callee->of.env->plan, callee->number,
                         callee->of.env, 0, args, to);
  if (callee->kind == PLN_DATUM_GLOBAL)
    return call_global(r, callee->number, given, args, to);
  if (callee->kind == PLN_DATUM_MAKER) {
    *to = (pln_datum){
        .kind = PLN_DATUM_MADE, .number = callee->number, .of.box = args};
    return PLN_OK;
  }
  pln_box_release(r->engine, args);
  return unsupported(r, "a call of what is no function");
}

/* ---------------------------------------------------------------- operands */

static pln_status read_operand(run *r, activation *act, pln_ref node,
                               pln_datum *out) {
  *out = slot_of(act, node)->held;
  if (out->kind != PLN_DATUM_NONE)
    return PLN_OK;
  const pln_graph *g = act->plan->graph;
  bool named = g->nodes[node].kind == PLN_VAR && g->nodes[node].attrs;
  return pln_diag_error(
      r->engine, PLN_ERR_UNSUPPORTED, NULL, "variable '%s' has no value",
      named ? pln_symbol_text(r->engine, g->nodes[node].attrs).data : "?");
}

/* Operands [first, end) as data of a new box. */
static pln_status box_operands(run *r, activation *act, const pln_node *n,
                               uint32_t first, uint32_t end, pln_box **out) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  PLN_TRY(pln_box_new(r->engine, end - first, out));
  for (uint32_t i = first; i < end; i++) {
    pln_datum held;
    pln_status status = read_operand(r, act, args[i], &held);
    if (status != PLN_OK) {
      pln_box_release(r->engine, *out);
      return status;
    }
    (*out)->items[i - first] = pln_datum_copy(held);
  }
  return PLN_OK;
}

/* Lets go what `node` used for the last time. */
static void let_go(run *r, activation *act, pln_ref node) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  const pln_ref *args = pln_operands(g, n);
  for (uint32_t i = n->kind == PLN_LET ? 1 : 0; i < n->count; i++) {
    if (!encloses(act, args[i]))
      continue;
    slot *s = &act->slots[act->plan->slot[args[i]]];
    if (s->left != PLN_PLAN_PINNED && s->left > 0 && --s->left == 0)
      pln_datum_release(r->engine, &s->held);
  }
}

/* ---------------------------------------------------------- operator calls */

/* What the operator is given; *count of it: the fields of its only operand when
 * that is a tuple, as Relay gives what is joined. */
static pln_status gather_tensors(run *r, activation *act, const pln_node *n,
                                 uint32_t *count) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  pln_datum only = {.kind = PLN_DATUM_NONE};
  if (n->count == 1)
    PLN_TRY(read_operand(r, act, args[0], &only));
  bool tuple = only.kind == PLN_DATUM_TUPLE;
  *count = tuple ? only.of.box->count : n->count;
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->args, &r->cap_args, *count,
                       sizeof *r->args));
  for (uint32_t i = 0; i < *count; i++) {
    pln_datum held;
    if (tuple)
      held = only.of.box->items[i];
    else
      PLN_TRY(read_operand(r, act, args[i], &held));
    if (held.kind != PLN_DATUM_TENSOR && held.kind != PLN_DATUM_ABSENT)
      return pln_diag_error(
          r->engine, PLN_ERR_UNSUPPORTED, NULL,
          "operator '%s' cannot be evaluated on what is no tensor",
          pln_op_row(r->engine, n->data)->name);
    r->args[i] = held.kind == PLN_DATUM_TENSOR ? held.of.tensor : NULL;
  }
  return PLN_OK;
}

static pln_status hold_results(run *r, uint32_t k, pln_datum *out) {
  if (k == 0) {
    *out = pln_datum_take(r->results[0]);
    return PLN_OK;
  }
  pln_box *box;
  pln_status status = pln_box_new(r->engine, k, &box);
  for (uint32_t i = 0; i < k; i++)
    if (status == PLN_OK)
      box->items[i] = pln_datum_take(r->results[i]);
    else
      pln_tensor_release(r->results[i]);
  if (status == PLN_OK)
    *out = (pln_datum){.kind = PLN_DATUM_TUPLE, .of.box = box};
  return status;
}

/* *first becomes the first field of a tuple, which has no other data. */
static pln_status wrap(run *r, uint32_t n, pln_datum *first) {
  pln_box *box;
  pln_status status = pln_box_new(r->engine, n, &box);
  if (status != PLN_OK) {
    pln_datum_release(r->engine, first);
    return status;
  }
  for (uint32_t i = 1; i < n; i++)
    box->items[i].kind = PLN_DATUM_ABSENT;
  box->items[0] = *first;
  *first = (pln_datum){.kind = PLN_DATUM_TUPLE, .of.box = box};
  return PLN_OK;
}

/* Operands that no other node is to see are handed over: a kernel may make its
 * result of what nothing else holds. */
static void hand_over(activation *act, const pln_node *n, pln_box *box) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  for (uint32_t i = 0; i < n->count; i++) {
    if (!encloses(act, args[i]))
      continue;
    slot *s = &act->slots[act->plan->slot[args[i]]];
    if (s->left == 1 && s->held.kind == PLN_DATUM_SEQUENCE) {
      box->items[i].of.box->refs--;
      s->held.kind = PLN_DATUM_NONE;
    }
  }
}

/* The attributes of a call, its references resolved. */
static pln_status attrs_of(const run *r, const activation *act,
                           const pln_node *n, pln_attrs *out) {
  return pln_attrs_resolve(r->engine, n->attrs, act->given, out);
}

/* An operator on sequences and optionals. */
static pln_status call_on_data(run *r, activation *act, pln_ref node,
                               pln_datum *out) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  pln_box *box;
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(box_operands(r, act, n, 0, n->count, &box));
  hand_over(act, n, box);
  pln_kernel_call call = {.engine = r->engine,
                          .op = n->data,
                          .attrs = attrs,
                          .n_args = n->count,
                          .data = box->items,
                          .made = out};
  pln_status status = pln_op_row(r->engine, n->data)->kernel(&call);
  pln_box_release(r->engine, box);
  return status == PLN_OK && n->results ? wrap(r, n->results, out) : status;
}

static pln_status call_operator(run *r, activation *act, pln_ref node,
                                pln_datum *out) {
  const pln_node *n = &act->plan->graph->nodes[node];
  const pln_op_info *row = pln_op_row(r->engine, n->data);
  uint32_t k = n->results ? n->results : 1;
  if (!row->kernel)
    return pln_diag_error(r->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "operator '%s' cannot be evaluated", row->name);
  if (row->traits & PLN_TRAIT_DATA)
    return call_on_data(r, act, node, out);
  uint32_t count;
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(gather_tensors(r, act, n, &count));
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->results, &r->cap_results, k,
                       sizeof(pln_tensor *)));
  memset(r->results, 0, k * sizeof *r->results);
  PLN_TRY(pln_compute_as(act->plan->graph, node, attrs, count, r->args,
                         r->results));
  return hold_results(r, n->results, out);
}

/* ------------------------------------------------------------------- rounds */

/* The rounds of loop, scan or sequence_map: a frame that calls the last operand
 * again and again. */
static pln_status start_rounds(run *r, activation *act, pln_ref node) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  frame f = {.act = act, .to = &slot_of(act, node)->held};
  pln_box *box;
  if (n->count == 0)
    return unsupported(r, "a loop without a body");
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(read_operand(r, act, pln_operands(g, n)[n->count - 1], &f.body));
  PLN_TRY(box_operands(r, act, n, 0, n->count - 1, &box));
  PLN_TRY(pln_cycle_new(g, node, attrs, box, &f.cycle));
  f.body = pln_datum_copy(f.body);
  pln_status status = push(r, &f);
  if (status == PLN_OK)
    return status;
  pln_datum_release(r->engine, &f.body);
  pln_cycle_free(f.cycle);
  return status;
}

/* One more round, or the end of the innermost frame. */
static pln_status go_round(run *r) {
  frame *f = &r->frames[r->n_frames - 1];
  pln_box *args;
  PLN_TRY(pln_cycle_next(f->cycle, &args));
  if (args)
    return apply(r, &f->body, 0, args, pln_cycle_given(f->cycle));
  pln_datum all;
  PLN_TRY(pln_cycle_finish(f->cycle, &all));
  *f->to = all;
  pln_cycle_free(f->cycle);
  pln_datum_release(r->engine, &f->body);
  r->n_frames--;
  return PLN_OK;
}

/* ------------------------------------------------------------- other kinds */

static pln_status get_item(run *r, activation *act, const pln_node *n,
                           pln_datum *out) {
  pln_datum tuple;
  PLN_TRY(read_operand(r, act, pln_operands(act->plan->graph, n)[0], &tuple));
  if (tuple.kind != PLN_DATUM_TUPLE || n->data >= tuple.of.box->count)
    return unsupported(r, "a field of what is no tuple");
  *out = pln_datum_copy(tuple.of.box->items[n->data]);
  return PLN_OK;
}

static pln_status enter_branch(run *r, activation *act, pln_ref node) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  pln_datum cond;
  const void *data;
  PLN_TRY(read_operand(r, act, pln_operands(g, n)[0], &cond));
  if (cond.kind != PLN_DATUM_TENSOR || cond.of.tensor->count != 1 ||
      cond.of.tensor->dtype != PLN_BOOL)
    return unsupported(r, "an If whose condition is no boolean");
  PLN_TRY(pln_tensor_data(cond.of.tensor, &data));
  bool holds = *(const uint8_t *)data != 0;
  return enter(r, act, holds ? n->data : g->scopes[n->data].next, node);
}

static pln_status no_arm_fits(const run *r, const pln_datum *value) {
  if (value->kind != PLN_DATUM_MADE)
    return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                          "no arm of the Match fits");
  return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                        "no arm of the Match fits what '%s' made",
                        pln_symbol_text(r->engine, value->number).data);
}

/* Variables that the arm does not use are bound to nothing. */
static void bind_arm(run *r, activation *act) {
  for (uint32_t i = 0; i < r->fit.n_bound; i++) {
    slot *var = slot_of(act, r->fit.bound[i].node);
    pln_datum_release(r->engine, &var->held);
    if (var->left)
      var->held = pln_datum_copy(*r->fit.bound[i].value);
  }
}

static pln_status enter_arm(run *r, activation *act, pln_ref node) {
  const pln_graph *g = act->plan->graph;
  pln_datum value;
  pln_scope arm = PLN_NONE;
  if (!pln_owns(&g->nodes[node]))
    return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                          "no arm of the Match fits: it has none");
  PLN_TRY(read_operand(r, act, pln_operand(g, node, 0), &value));
  PLN_TRY(pln_fit_arm(&r->fit, g, node, &value, &arm));
  if (arm == PLN_NONE)
    return no_arm_fits(r, &value);
  bind_arm(r, act);
  return enter(r, act, arm, node);
}

static pln_status make_cell(run *r, activation *act, const pln_node *n,
                            pln_datum *out) {
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->cells, &r->cap_cells,
                       r->n_cells + 1u, sizeof *r->cells));
  pln_box *box;
  PLN_TRY(box_operands(r, act, n, 0, n->count, &box));
  *out = (pln_datum){.kind = PLN_DATUM_CELL, .of.box = box};
  r->cells[r->n_cells++] = pln_datum_copy(*out);
  return PLN_OK;
}

static pln_status use_cell(run *r, activation *act, const pln_node *n,
                           pln_datum *out) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  pln_datum cell, value;
  PLN_TRY(read_operand(r, act, args[0], &cell));
  if (cell.kind != PLN_DATUM_CELL)
    return unsupported(r, "a reference that is none");
  pln_datum *item = &cell.of.box->items[0];
  if (n->kind == PLN_REF_READ) {
    *out = pln_datum_copy(*item);
    return PLN_OK;
  }
  PLN_TRY(read_operand(r, act, args[1], &value));
  value = pln_datum_copy(value);
  pln_datum_release(r->engine, item);
  *item = value;
  *out = (pln_datum){.kind = PLN_DATUM_TUPLE};
  return pln_box_new(r->engine, 0, &out->of.box);
}

/* A variable's type may fit the type of its value, N and 2, but not what is
 * computed. */
static pln_status check_binding(const run *r, const pln_graph *g,
                                const pln_ref *args, const pln_datum *value) {
  pln_type type = g->nodes[args[0]].type;
  if (type == g->nodes[args[1]].type || value->kind != PLN_DATUM_TENSOR ||
      pln_tensor_fits(r->engine, value->of.tensor, type))
    return PLN_OK;
  pln_description is;
  return pln_diag_error(
      r->engine, PLN_ERR_UNSUPPORTED, NULL,
      "the variable '%s' is of type %s, and the value that "
      "it is bound to is not",
      pln_symbol_text(r->engine, g->nodes[args[0]].attrs).data,
      pln_describe_type(r->engine, type, &is));
}

static pln_status bind_let(run *r, activation *act, const pln_node *n) {
  const pln_ref *args = pln_operands(act->plan->graph, n);
  pln_datum value;
  PLN_TRY(read_operand(r, act, args[1], &value));
  PLN_TRY(check_binding(r, act->plan->graph, args, &value));
  slot *var = slot_of(act, args[0]);
  pln_datum_release(r->engine, &var->held);
  var->held = pln_datum_copy(value);
  return PLN_OK;
}

static pln_status make_tuple(run *r, activation *act, const pln_node *n,
                             pln_datum *out) {
  pln_box *box;
  PLN_TRY(box_operands(r, act, n, 0, n->count, &box));
  *out = (pln_datum){.kind = PLN_DATUM_TUPLE, .of.box = box};
  return PLN_OK;
}

/* Also of what is no tensor. */
static pln_status copy_operand(run *r, activation *act, const pln_node *n,
                               pln_datum *out) {
  pln_datum datum;
  PLN_TRY(read_operand(r, act, pln_operands(act->plan->graph, n)[0], &datum));
  *out = pln_datum_copy(datum);
  return PLN_OK;
}

static pln_status call_value(run *r, activation *act, pln_ref node) {
  const pln_node *n = &act->plan->graph->nodes[node];
  pln_datum callee;
  pln_box *args;
  pln_attrs attrs;
  PLN_TRY(attrs_of(r, act, n, &attrs));
  PLN_TRY(read_operand(r, act, pln_operands(act->plan->graph, n)[0], &callee));
  PLN_TRY(box_operands(r, act, n, 1, n->count, &args));
  return apply(r, &callee, attrs, args, &slot_of(act, node)->held);
}

/* A file may call an operator with any number of operands: whatever computes it
 * is spared those that do not fit. */
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

static pln_status call_operation(run *r, activation *act, pln_ref node,
                                 pln_datum *out) {
  const pln_node *n = &act->plan->graph->nodes[node];
  PLN_TRY(check_arity(r, n));
  if (n->data == PLN_OP_IDENTITY && n->results == 0)
    return copy_operand(r, act, n, out);
  return pln_cycle_is(n->data) ? start_rounds(r, act, node)
                               : call_operator(r, act, node, out);
}

/* Computes one node: gives its value, or pushes the frame that will. */
static pln_status step(run *r, activation *act, pln_ref node, pln_datum *out) {
  const pln_graph *g = act->plan->graph;
  const pln_node *n = &g->nodes[node];
  switch ((pln_kind)n->kind) {
  case PLN_VAR: return PLN_OK;
  case PLN_CONSTANT:
    *out = pln_datum_take(pln_tensor_retain(g->tensors[n->data]));
    return PLN_OK;
  case PLN_ABSENT: out->kind = PLN_DATUM_ABSENT; return PLN_OK;
  case PLN_GLOBAL_VAR:
    *out = (pln_datum){.kind = PLN_DATUM_GLOBAL, .number = n->data};
    return PLN_OK;
  case PLN_CONSTRUCTOR:
    *out = (pln_datum){.kind = PLN_DATUM_MAKER, .number = n->data};
    return PLN_OK;
  case PLN_TUPLE: return make_tuple(r, act, n, out);
  case PLN_REF_CREATE: return make_cell(r, act, n, out);
  case PLN_TUPLE_GET_ITEM: return get_item(r, act, n, out);
  case PLN_CALL:
    return n->data ? call_operation(r, act, node, out)
                   : call_value(r, act, node);
  case PLN_FUNCTION:
    act->captured |= act->plan->escapes[node] != 0;
    *out =
        (pln_datum){.kind = PLN_DATUM_CLOSURE, .number = node, .of.env = act};
    return PLN_OK;
  case PLN_LET: return bind_let(r, act, n);
  case PLN_LET_BLOCK: return enter(r, act, n->data, node);
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

/* The next node of the frame's own scope that is needed, or its end. */
static pln_ref advance(frame *f) {
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

/* Ends the innermost frame and hands its result over. */
static pln_status leave(run *r) {
  frame f = r->frames[--r->n_frames];
  pln_datum value;
  r->n_calls -= f.calls;
  pln_status status = read_operand(r, f.act, scope_result(&f), &value);
  if (status == PLN_OK && f.args)
    return apply(r, &value, f.act->given, f.args, f.to);
  if (f.args)
    pln_box_release(r->engine, f.args);
  PLN_TRY(status);
  *f.to = pln_datum_copy(value);
  if (f.calls && !f.act->captured)
    deactivate(r, f.act);
  return PLN_OK;
}

/* What is asked at each step. */
static pln_status check_limits(run *r) {
  pln_engine *e = r->engine;
  PLN_TRY(pln_poll(e));
  if (++r->n_steps <= e->most_steps || e->most_steps == 0)
    return PLN_OK;
  return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                        "it computes more nodes than limit.steps = %llu allows",
                        (unsigned long long)e->most_steps);
}

static pln_status run_frames(run *r) {
  while (r->n_frames) {
    frame *f = &r->frames[r->n_frames - 1];
    activation *act = f->act;
    PLN_TRY(check_limits(r));
    if (f->cycle) {
      PLN_TRY(go_round(r));
      continue;
    }
    pln_ref node = advance(f);
    if (node >= act->plan->graph->scopes[f->scope].end) {
      PLN_TRY(leave(r));
      continue;
    }
    f->at++;
    r->graph = act->plan->graph;
    r->node = node;
    if (r->engine->progress)
      r->engine->progress(r->engine->progress_ud, node, r->graph->n_nodes);
    pln_datum held = {.kind = PLN_DATUM_NONE};
    PLN_TRY(step(r, act, node, &held));
    if (held.kind != PLN_DATUM_NONE)
      slot_of(act, node)->held = held;
    let_go(r, act, node);
  }
  return PLN_OK;
}

static void end_run(run *r) {
  pln_engine *e = r->engine;
  pln_datum_release(e, &r->result);
  for (uint32_t i = 0; i < r->n_frames; i++) {
    if (r->frames[i].args)
      pln_box_release(e, r->frames[i].args);
    if (r->frames[i].cycle)
      pln_cycle_free(r->frames[i].cycle);
    pln_datum_release(e, &r->frames[i].body);
  }
  for (uint32_t i = 0; i < r->n_cells; i++) {
    pln_datum_release(e, &r->cells[i].of.box->items[0]);
    pln_datum_release(e, &r->cells[i]);
  }
  while (r->live)
    deactivate(r, r->live);
  for (uint32_t i = 0; r->plans && i < r->n_plans; i++)
    pln_plan_free(r->plans[i]);
  pln_mem_free(e, r->plans, r->n_plans * sizeof *r->plans);
  pln_plan_free(r->root);
  pln_mem_free(e, r->frames, r->cap_frames * sizeof *r->frames);
  pln_mem_free(e, r->cells, r->cap_cells * sizeof *r->cells);
  pln_fit_end(&r->fit);
  pln_mem_free(e, r->args, r->cap_args * sizeof *r->args);
  pln_mem_free(e, r->results, r->cap_results * sizeof *r->results);
}

/* ------------------------------------------------------ arguments, results */

/* "node 'a' (Conv)": what the node at work came from, for messages. */
static size_t tell_node(void *ud, char *text, size_t size) {
  const run *r = ud;
  const pln_graph *g = r->graph;
  if (!g || !g->origins || r->node >= g->n_nodes)
    return 0;
  return pln_origins_tell(g->origins, g->origin[r->node], text, size);
}

static pln_status box_args(pln_engine *engine, uint32_t n,
                           const pln_datum *args, pln_box **out) {
  PLN_TRY(pln_box_new(engine, n, out));
  for (uint32_t i = 0; i < n; i++)
    (*out)->items[i] = pln_datum_copy(args[i]);
  return PLN_OK;
}

/* Field `i` of n results; what is no tuple is its own only field. */
static const pln_datum *result_field(const pln_datum *all, uint32_t n,
                                     uint32_t i) {
  if (all->kind == PLN_DATUM_TUPLE)
    return all->of.box->count == n ? &all->of.box->items[i] : NULL;
  return n == 1 ? all : NULL;
}

/* What a caller can hold: no closure, no cell. */
static bool leaves_run(const pln_datum *datum) {
  return datum->kind < PLN_N_DATUM_KINDS;
}

static pln_status give_results(run *r, uint32_t n, pln_datum *results) {
  for (uint32_t i = 0; i < n; i++) {
    const pln_datum *field = result_field(&r->result, n, i);
    if (!field)
      return pln_diag_error(r->engine, PLN_ERR_ARGUMENT, NULL,
                            "the function has not %u results", n);
    if (!leaves_run(field))
      return unsupported(
          r, "a result that is a function, a reference or of a data type");
  }
  for (uint32_t i = 0; i < n; i++)
    results[i] = pln_datum_copy(*result_field(&r->result, n, i));
  return PLN_OK;
}

static pln_status start(run *r, const pln_graph *g, uint32_t n,
                        const pln_datum *args) {
  pln_box *box = NULL;
  r->n_plans = r->module ? r->module->count : 0;
  r->plans = pln_mem_zeroed(r->engine, r->n_plans * sizeof *r->plans);
  if (!r->plans && r->n_plans)
    return pln_nomem(r->engine);
  PLN_TRY(pln_plan_new(g, &r->root));
  if (g->nodes[g->root].kind == PLN_FUNCTION)
    PLN_TRY(box_args(r->engine, n, args, &box));
  pln_attrs given = 0;
  pln_status status = pln_function_given(r->root->graph, &given);
  if (status == PLN_OK)
    return call_graph(r, r->root, given, box, &r->result);
  pln_box_release(r->engine, box);
  return status;
}

void pln_eval_on_progress(pln_engine *engine,
                          void (*f)(void *ud, uint32_t node, uint32_t n_nodes),
                          void *ud) {
  engine->progress = f;
  engine->progress_ud = ud;
}

pln_status pln_eval_data(const pln_module *module, const pln_graph *function,
                         uint32_t n_args, const pln_datum *args,
                         uint32_t n_results, pln_datum *results) {
  pln_engine *e = function->engine;
  run r = {.engine = e, .module = module, .fit = {.engine = e}};
  PLN_TRY(pln_check_arguments(function, n_args, args));
  pln_mem_keep(r.engine);
  pln_work_begin(r.engine);
  r.engine->random_calls = 0;
  pln_place outer =
      pln_diag_place(r.engine, (pln_place){.fn = tell_node, .ud = &r});
  pln_status status = start(&r, function, n_args, args);
  if (status == PLN_OK)
    status = run_frames(&r);
  r.graph = NULL;
  if (status == PLN_OK)
    status = give_results(&r, n_results, results);
  pln_diag_place(r.engine, outer);
  end_run(&r);
  pln_work_end(r.engine);
  pln_mem_let_go(r.engine);
  return status;
}
