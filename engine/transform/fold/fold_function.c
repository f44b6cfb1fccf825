/* fold_function.c: evaluates calls of functions, and loops, that depend on
 * constants only. Called by FoldConstant, once for each such call.
 *
 *     let %f = fn (%x) { add(%x, 1f) }; %f(2f)   =>   3f
 *
 * The function and what it captures are copied to a graph of their own, once
 * in a sweep, and run by the evaluator. A function of the module is run with
 * those that it may call, in a module of their own. Invariants: nothing in the
 * bodies has an effect or captures more than constants, and the type of each
 * node gives its size; GlobalVars occur in functions of the module only. The
 * number of steps is limited, the lower the larger the tensors are, so a
 * recursion without end is refused. */

#include "transform/fold/fold_function.h"
#include "eval/call.h"
#include "eval/loop.h"
#include "ir/rewrite/rewrite.h"
#include "ir/worker/child_engine.h"

/* Limits of a call: nodes of the body, functions of the module that it calls,
 * nodes computed, and bytes computed if each node was as large as the largest.
 */
enum {
  MAX_BODY = 4096,
  MAX_GLOBALS = 64,
  MAX_STEPS = 1 << 16,
  MAX_BYTES = 64 << 20
};

typedef struct pln_folded_body {
  pln_ref function;   /* in the builder; PLN_NONE: it is refused */
  pln_ref var;        /* of a function that calls itself; or PLN_NONE */
  pln_module *module; /* of a function of the module, those that it may call,
                       * itself first; else NULL */
  uint64_t steps;
  pln_refusal why;
} body;

void pln_function_folds_end(pln_function_folds *folds) {
  pln_engine *e = folds->old->engine;
  if (folds->b)
    pln_builder_free(folds->b);
  for (uint32_t i = 0; i < folds->n_bodies; i++)
    if (folds->bodies[i].module)
      pln_module_release(folds->bodies[i].module);
  pln_idmap_free(folds->globals);
  pln_mem_free(e, folds->of, folds->old->n_nodes * sizeof *folds->of);
  pln_mem_free(e, folds->bodies, folds->cap_bodies * sizeof *folds->bodies);
}

static pln_status begin(pln_function_folds *folds) {
  pln_engine *e = folds->old->engine;
  if (!folds->of)
    folds->of = pln_mem_zeroed(e, folds->old->n_nodes * sizeof *folds->of);
  return folds->of ? PLN_OK : pln_nomem(e);
}

pln_status pln_function_folds_let(pln_function_folds *folds, pln_ref var,
                                  pln_ref value) {
  uint8_t kind = folds->old->nodes[value].kind;
  if (kind != PLN_FUNCTION && kind != PLN_TUPLE)
    return PLN_OK;
  PLN_TRY(begin(folds));
  folds->of[var] = value;
  return PLN_OK;
}

pln_ref pln_function_folds_value(const pln_function_folds *folds, pln_ref var) {
  bool bound =
      folds->old->nodes[var].kind == PLN_VAR && folds->of && folds->of[var];
  return bound ? folds->of[var] : PLN_NONE;
}

/* ------------------------------------------------------------------ callees */

/* The Function that an operand is, or is bound to; PLN_NONE: none. */
static pln_ref find_function(const pln_function_folds *folds, pln_ref callee) {
  const pln_node *nodes = folds->old->nodes;
  pln_ref value = pln_function_folds_value(folds, callee);
  if (value != PLN_NONE)
    callee = value;
  return nodes[callee].kind == PLN_FUNCTION ? callee : PLN_NONE;
}

/* True if operand `i` of the old call is a function that it calls: the callee,
 * the body of a loop, or a function of flex_attention. */
static bool calls_operand(const pln_graph *g, const pln_node *call,
                          uint32_t i) {
  pln_kind kind = pln_node_kind(g, g->operands[call->first + i]);
  if (pln_has_callee(call))
    return i == 0;
  if (pln_is_loop_op(call->data))
    return kind == PLN_FUNCTION;
  return pln_calls_operands(call) && kind != PLN_ABSENT &&
         i >= pln_op_n_values(pln_op_row(g->engine, call->data), call->count);
}

static bool is_constant(const pln_graph *g, pln_ref node) {
  return g->nodes[pln_eval_skip_on_device(g, node)].kind == PLN_CONSTANT;
}

bool pln_function_folds_try(const pln_function_folds *folds,
                            const pln_rewrite *rw, pln_ref old, pln_ref node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *before = &folds->old->nodes[old], *n = &g->nodes[node];
  if (before->kind != PLN_CALL || n->count != before->count)
    return false;
  bool calls = false;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref arg = pln_operand(g, node, i);
    if (calls_operand(folds->old, before, i)) {
      pln_ref callee = pln_operand(folds->old, old, i);
      if (find_function(folds, callee) == PLN_NONE &&
          folds->old->nodes[callee].kind != PLN_GLOBAL_VAR)
        return false;
      calls = true;
    } else if (g->nodes[arg].kind != PLN_ABSENT && !is_constant(g, arg)) {
      return false;
    }
  }
  return calls;
}

/* --------------------------------------------------------------- the bodies */

typedef struct body_scan {
  pln_function_folds *folds;
  const pln_rewrite *rw;
  const pln_graph *graph; /* that is scanned */
  pln_ref function, begin;
  size_t largest; /* bytes of a node */
  body *out;
} body_scan;

static pln_status copy_constant(pln_builder *b, const pln_graph *g,
                                pln_ref node, pln_ref *out) {
  const pln_node *n = &g->nodes[pln_eval_skip_on_device(g, node)];
  return n->kind == PLN_ABSENT
             ? pln_build_absent(b, out)
             : pln_build_constant(b, g->tensors[n->data], out);
}

static size_t constant_bytes(const pln_graph *g, pln_ref node) {
  return g->tensors[g->nodes[pln_eval_skip_on_device(g, node)].data]->bytes;
}

static void see_bytes(body_scan *s, size_t bytes) {
  s->largest = bytes > s->largest ? bytes : s->largest;
}

/* The variable of the function itself, which is bound again in the copy. */
static pln_status capture_itself(body_scan *s, pln_ref var) {
  const pln_graph *old = s->folds->old;
  pln_builder *b = s->folds->b;
  const pln_node *n = &old->nodes[var];
  if (s->out->var == PLN_NONE)
    PLN_TRY(pln_build_var(b, n->attrs, n->type, 0, &s->out->var));
  return pln_import_seed(b, old, var, s->out->var);
}

static pln_status capture(body_scan *s, pln_ref outer) {
  const pln_graph *old = s->folds->old, *g = pln_rewrite_graph(s->rw);
  pln_ref image = pln_rewrite_image(s->rw, outer), copied;
  uint8_t kind = old->nodes[outer].kind;
  if (kind == PLN_VAR && s->folds->of[outer] == s->function)
    return capture_itself(s, outer);
  if (kind == PLN_ABSENT)
    return PLN_OK;
  if (image == PLN_NONE || !is_constant(g, image)) {
    s->out->why = PLN_REFUSED_NOT;
    s->out->function = PLN_NONE;
    return PLN_OK;
  }
  see_bytes(s, constant_bytes(g, image));
  PLN_TRY(copy_constant(s->folds->b, g, image, &copied));
  return pln_import_seed(s->folds->b, old, outer, copied);
}

static void refuse_body(body_scan *s, pln_refusal why) {
  s->out->function = PLN_NONE;
  s->out->why = why;
}

static void scan_call(body_scan *s, pln_ref call) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[call];
  if (!n->data)
    return;
  const pln_op_info *row = pln_op_row(g->engine, n->data);
  size_t bytes = pln_budget_bytes(g, call);
  if (!(row->traits & PLN_TRAIT_PURE))
    refuse_body(s, PLN_REFUSED_EFFECT);
  else if (!row->kernel && !pln_is_loop_op(n->data))
    refuse_body(s, PLN_REFUSED_NO_KERNEL);
  else if (bytes == SIZE_MAX)
    refuse_body(s, PLN_REFUSED_OVER_BUDGET);
  else
    see_bytes(s, bytes);
}

static void scan_kind(body_scan *s, pln_ref node) {
  const pln_graph *g = s->graph;
  switch ((pln_kind)g->nodes[node].kind) {
  case PLN_CALL: scan_call(s, node); break;
  case PLN_CONSTANT: see_bytes(s, constant_bytes(g, node)); break;
  case PLN_VAR:
  case PLN_ABSENT:
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM:
  case PLN_IF:
  case PLN_LET:
  case PLN_LET_BLOCK:
  case PLN_FUNCTION: break;
  default: refuse_body(s, PLN_REFUSED_NOT);
  }
}

static pln_status scan_use(body_scan *s, pln_ref used) {
  bool refused = s->out->function == PLN_NONE;
  return refused || used >= s->begin ? PLN_OK : capture(s, used);
}

/* What a node uses: its operands, and the results of its scopes. */
static pln_status scan_uses(body_scan *s, pln_ref node) {
  const pln_graph *g = s->folds->old;
  const pln_node *n = &g->nodes[node];
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(scan_use(s, pln_operand(g, node, i)));
  for (pln_scope k = pln_owns(n) ? n->data : PLN_NONE; k != PLN_NONE;
       k = g->scopes[k].next)
    PLN_TRY(scan_use(s, g->scopes[k].result));
  return PLN_OK;
}

static void limit_steps(body_scan *s) {
  uint64_t most = MAX_BYTES / (s->largest ? s->largest : 1);
  s->out->steps = most < MAX_STEPS ? most : MAX_STEPS;
}

/* From the first node of the body to the Function itself. */
static pln_status scan_body(body_scan *s) {
  const pln_graph *g = s->folds->old;
  if (s->function - s->begin > MAX_BODY) {
    refuse_body(s, PLN_REFUSED_OVER_BUDGET);
    return PLN_OK;
  }
  for (pln_ref i = s->begin; i <= s->function; i++) {
    scan_kind(s, i);
    PLN_TRY(scan_uses(s, i));
    if (s->out->function == PLN_NONE)
      return PLN_OK;
  }
  limit_steps(s);
  return pln_build_import(s->folds->b, g, s->function, &s->out->function);
}

static pln_status new_body(pln_function_folds *folds, body **out) {
  const pln_graph *g = folds->old;
  if (!folds->b)
    PLN_TRY(pln_builder_new(g->engine, &folds->b));
  PLN_TRY(pln_mem_grow(g->engine, (void **)&folds->bodies, &folds->cap_bodies,
                       (size_t)folds->n_bodies + 1, sizeof *folds->bodies));
  *out = &folds->bodies[folds->n_bodies++];
  **out = (body){.var = PLN_NONE};
  return PLN_OK;
}

static pln_status add_body(pln_function_folds *folds, const pln_rewrite *rw,
                           pln_ref function, body **row) {
  const pln_graph *g = folds->old;
  const pln_node *n = &g->nodes[function];
  PLN_TRY(begin(folds));
  if (folds->of[function]) {
    *row = &folds->bodies[folds->of[function] - 1];
    return PLN_OK;
  }
  PLN_TRY(new_body(folds, row));
  body_scan s = {.folds = folds,
                 .rw = rw,
                 .graph = g,
                 .function = function,
                 .begin = g->scopes[n->data].begin,
                 .out = *row};
  if (n->attrs)
    refuse_body(&s, PLN_REFUSED_NOT);
  else
    PLN_TRY(scan_body(&s));
  folds->of[function] = folds->n_bodies;
  return PLN_OK;
}

/* -------------------------------------------------- functions of the module */

/* Adds the function of that name to those that the callee may call. */
static pln_status add_global(body_scan *s, pln_symbol name, uint32_t *nodes) {
  const pln_module *from = pln_run_module(s->folds->run);
  uint32_t i = pln_module_find(from, name);
  if (i == PLN_NONE) {
    refuse_body(s, PLN_REFUSED_NOT);
    return PLN_OK;
  }
  if (pln_module_find(s->out->module, name) != PLN_NONE)
    return PLN_OK;
  pln_graph *g = pln_module_function_at(from, i);
  *nodes += g->n_nodes < MAX_BODY ? g->n_nodes : MAX_BODY;
  if (*nodes >= MAX_BODY || s->out->module->count == MAX_GLOBALS) {
    refuse_body(s, PLN_REFUSED_OVER_BUDGET);
    return PLN_OK;
  }
  if (g->parent_graph)
    PLN_TRY(pln_borrow_tensors(from->engine, g));
  return pln_module_set(s->out->module, name, g);
}

/* A function with attributes may be for another compiler. */
static bool is_plain_function(const pln_graph *g) {
  const pln_node *n = &g->nodes[g->root];
  return n->kind == PLN_FUNCTION && !n->attrs;
}

/* The functions are appended while they are scanned. */
static pln_status scan_globals(body_scan *s, pln_symbol name) {
  uint32_t nodes = 0;
  PLN_TRY(add_global(s, name, &nodes));
  for (uint32_t i = 0; i < s->out->module->count; i++) {
    const pln_graph *g = s->graph = pln_module_function_at(s->out->module, i);
    if (!is_plain_function(g))
      refuse_body(s, PLN_REFUSED_NOT);
    for (pln_ref k = 0; k < g->n_nodes; k++) {
      if (g->nodes[k].kind == PLN_GLOBAL_VAR)
        PLN_TRY(add_global(s, g->nodes[k].data, &nodes));
      else
        scan_kind(s, k);
      if (s->out->function == PLN_NONE)
        return PLN_OK;
    }
  }
  limit_steps(s);
  return PLN_OK;
}

static pln_status add_global_body(pln_function_folds *folds, pln_ref callee,
                                  body **row) {
  const pln_node *n = &folds->old->nodes[callee];
  pln_engine *e = folds->old->engine;
  if (!folds->globals)
    PLN_TRY(pln_idmap_new(e, &folds->globals));
  uint32_t known = pln_idmap_get(folds->globals, n->data);
  if (known) {
    *row = &folds->bodies[known - 1];
    return PLN_OK;
  }
  pln_run_reads_module(folds->run);
  PLN_TRY(new_body(folds, row));
  PLN_TRY(pln_module_new(e, &(*row)->module));
  PLN_TRY(pln_build_import(folds->b, folds->old, callee, &(*row)->function));
  body_scan s = {.folds = folds, .out = *row};
  PLN_TRY(scan_globals(&s, n->data));
  return pln_idmap_set(folds->globals, n->data, folds->n_bodies);
}

/* ---------------------------------------------------------------- the call */

/* Adds the function that operand `callee` of the old call is, and merges what
 * it needs into *all. A call of two functions of the module, or of an operator
 * with a function that calls itself, is refused. */
static pln_status add_callee(pln_function_folds *folds, const pln_rewrite *rw,
                             pln_ref callee, bool operator_call, body *all,
                             pln_ref *out) {
  pln_ref function = find_function(folds, callee);
  body *row;
  PLN_TRY(function == PLN_NONE ? add_global_body(folds, callee, &row)
                               : add_body(folds, rw, function, &row));
  bool apart =
      (all->module && row->module) || (operator_call && row->var != PLN_NONE);
  if (row->function == PLN_NONE || apart) {
    all->why = row->function == PLN_NONE ? row->why : PLN_REFUSED_NOT;
    all->function = PLN_NONE;
    return PLN_OK;
  }
  *out = row->var == PLN_NONE ? row->function : row->var;
  all->function = row->function;
  all->var = row->var;
  all->module = row->module ? row->module : all->module;
  all->steps = row->steps < all->steps ? row->steps : all->steps;
  return PLN_OK;
}

/* The functions of the call, and what they need together: *all, whose function
 * is PLN_NONE if the call is refused. */
static pln_status add_callees(pln_function_folds *folds, const pln_rewrite *rw,
                              pln_ref old, body *all, pln_ref *args) {
  const pln_node *before = &folds->old->nodes[old];
  *all = (body){.var = PLN_NONE, .steps = UINT64_MAX};
  for (uint32_t i = 0; i < before->count; i++) {
    if (!calls_operand(folds->old, before, i))
      continue;
    PLN_TRY(add_callee(folds, rw, pln_operand(folds->old, old, i),
                       before->data != 0, all, &args[i]));
    if (all->function == PLN_NONE)
      return PLN_OK;
  }
  return PLN_OK;
}

/* The call on its functions, which `args` has, and on copies of its constants;
 * of a function that calls itself, under the let that binds it. */
static pln_status copy_call(pln_function_folds *folds, const pln_rewrite *rw,
                            pln_ref old, pln_ref node, const body *all,
                            pln_ref *args, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[node];
  pln_builder *b = folds->b;
  for (uint32_t i = 0; i < n->count; i++)
    if (!calls_operand(folds->old, &folds->old->nodes[old], i))
      PLN_TRY(copy_constant(b, g, pln_operand(g, node, i), &args[i]));
  if (n->data)
    return pln_build_call(b, n->data, n->attrs, n->results, n->count, args,
                          out);
  PLN_TRY(pln_build_apply(b, args[0], n->attrs, n->results, n->count - 1,
                          args + 1, out));
  return all->var == PLN_NONE
             ? PLN_OK
             : pln_build_floating_let(b, all->var, all->function, *out, out);
}

/* Runs the graph in at most that many steps. PLN_ERR_LIMIT: they do not
 * suffice; another limit was not exceeded. */
static pln_status run_graph(const pln_module *module, const pln_graph *graph,
                            uint64_t steps, uint32_t n,
                            pln_runtime_value *values) {
  pln_engine *e = graph->engine;
  uint64_t outer = e->most_steps;
  e->most_steps = steps;
  pln_status status = pln_eval_run(module, graph, 0, NULL, n, values);
  e->most_steps = outer;
  if (status == PLN_ERR_LIMIT)
    PLN_TRY(pln_poll(e));
  return status;
}

static pln_refusal refusal_of(pln_status status) {
  switch (status) {
  case PLN_ERR_LIMIT: return PLN_REFUSED_STEPS;
  case PLN_ERR_UNSUPPORTED:
  case PLN_ERR_TYPE:
  case PLN_ERR_ARGUMENT: return PLN_REFUSED_UNDEFINED;
  default: return PLN_REFUSED_NOT;
  }
}

static pln_status evaluate(pln_function_folds *folds, const body *row,
                           pln_ref root, uint32_t n, pln_runtime_value *values,
                           pln_refusal *why) {
  pln_engine *e = folds->old->engine;
  pln_graph *graph;
  uint64_t steps = row->steps < *folds->steps ? row->steps : *folds->steps;
  if (!steps) {
    *why = PLN_REFUSED_STEPS;
    return PLN_OK;
  }
  PLN_TRY(pln_builder_seal(folds->b, root, &graph));
  size_t mark = pln_diag_count(e);
  pln_status status = run_graph(row->module, graph, steps, n, values);
  pln_graph_release(graph);
  *why = refusal_of(status);
  if (*why == PLN_REFUSED_NOT)
    return status;
  *folds->steps -= *why == PLN_REFUSED_STEPS ? steps : 0;
  pln_diag_drop(e, mark);
  return PLN_OK;
}

pln_status pln_function_folds_run(pln_function_folds *folds, pln_rewrite *rw,
                                  pln_ref old, pln_ref node, uint32_t n,
                                  pln_runtime_value *values, pln_refusal *why) {
  pln_engine *e = folds->old->engine;
  size_t size = folds->old->nodes[old].count * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(e, size), root = PLN_NONE;
  body all;
  if (!args)
    return pln_nomem(e);
  pln_status status = add_callees(folds, rw, old, &all, args);
  *why = status == PLN_OK ? all.why : PLN_REFUSED_NOT;
  if (status == PLN_OK && all.function != PLN_NONE)
    status = copy_call(folds, rw, old, node, &all, args, &root);
  pln_mem_free(e, args, size);
  return status == PLN_OK && root != PLN_NONE
             ? evaluate(folds, &all, root, n, values, why)
             : status;
}
