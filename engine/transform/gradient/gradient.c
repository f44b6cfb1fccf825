/* gradient.c: Gradient: functions return their result and its gradients with
 * respect to the parameters.
 *
 * Run by the executor, once per module. With mode "first_order" it is
 * FirstOrderGradient. With "higher_order", @main is transformed, or else each
 * function that no other refers to. Requires verified functions without shared
 * values (expression_tree.h); all operators must have gradients.
 *
 * A tensor becomes a pair of the tensor and a reference to its gradient. The
 * reference %bp holds a function that does the backpropagation so far; each
 * call of an operator replaces it by one that adds to the gradients of the
 * arguments and then calls the former one. Functions get %bp as one more
 * parameter; @f of the module stays, and @f_grad is added.
 *
 *     def @main(%x: T) { exp(%x) }   =>
 *     def @main(%x: T) -> (T, (T,)) {
 *       let %bp = ref(fn () { () });
 *       let %p = (%x, ref(zeros_like(%x)));
 *       let %c = (fn (%y: (T, ref(T)), %bp1) { ... })(%p, %bp);
 *       ref_write(%c.1, ones_like(%c.0)); (ref_read(%bp))();
 *       (%c.0, (ref_read(%p.1),))
 *     }
 *
 * Semantics: TVM gradient; annotation.checkpoint too. Nothing recurses: visits
 * are tasks on a stack. (Wang et al., Demystifying differentiable programming:
 * shift/reset the penultimate backpropagator, 2019.) */

#include "ir/graph/module.h"
#include "transform/functional/expression_tree.h"
#include "transform/functional/let.h"
#include "transform/gradient/operator_gradient.h"
#include "transform/gradient/tuples.h"
#include "transform/transform.h"

#include <stdio.h>

typedef enum ad_task_kind {
  VISIT,            /* push what a node becomes */
  STATEMENT,        /* a statement of a scope, then the rest of the scope */
  BIND,             /* a statement whose value and rest are on the stack */
  COMBINE,          /* a node whose operands are on the stack */
  COPY,             /* push a copy with the values of variables */
  COPY_COMBINE,     /* a copy whose operands are on the stack */
  END_FUNCTION,     /* a Function whose body is on the stack */
  BEGIN_CHECKPOINT, /* annotation.checkpoint, the copy on the stack */
  END_CHECKPOINT
} ad_task_kind;

typedef struct ad_task {
  ad_task_kind kind;
  pln_ref at;
  void *data;
} ad_task;

/* What is restored when a Function or a checkpoint is complete. */
typedef struct ad_saved {
  pln_ref bp, own_bp;
  uint32_t first, inner; /* the lets of a checkpoint, and of its function */
  pln_ref result, former;
} ad_saved;

typedef struct ad_run {
  pln_engine *engine;
  const pln_module *module;
  pln_symbol *names; /* by function of the module: @f_grad; 0: not needed */
  uint32_t *queue;
  uint32_t n_queue;
  pln_type bp_type;
  pln_type_mutator *types;
  pln_arena arena; /* saved state */
  /* The function that is transformed. */
  const pln_graph *old;
  pln_expression_tree tree;
  pln_builder *b;
  pln_let_list lets;
  pln_ref *map;        /* by variable: the variable of its pair */
  pln_ref bp;          /* the reference in use */
  pln_ref *copied;     /* by variable: its value in the checkpoint `stamp` */
  uint32_t *copied_at; /* by variable: the checkpoint; 0: none */
  uint32_t checkpoint;
  ad_task *tasks;
  pln_ref *values;
  uint32_t n_tasks, cap_tasks, n_values, cap_values;
} ad_run;

static const char PASS[] = "Gradient";

/* -------------------------------------------------------------------- types */

static pln_status pair_type(pln_engine *e, pln_type tensor, pln_type *out) {
  pln_type parts[2] = {tensor, 0};
  PLN_TRY(pln_type_make(e, PLN_TYPE_REF, 0, 1, &tensor, &parts[1]));
  return pln_type_make(e, PLN_TYPE_TUPLE, 0, 2, parts, out);
}

/* fn (T...) -> R with the reference as its last parameter. */
static pln_status with_bp(ad_run *a, pln_type func, pln_type *out) {
  pln_engine *e = a->engine;
  uint32_t all, n = pln_type_n_parts(e, func), vars = pln_type_n_vars(e, func);
  const pln_type *parts = pln_type_all_parts(e, func, &all);
  size_t size = (n + (size_t)1) * sizeof *parts;
  pln_type *params = pln_mem_new(e, size);
  if (!params)
    return pln_nomem(e);
  memcpy(params, parts, n * sizeof *parts);
  params[n - 1] = a->bp_type;
  pln_status status =
      pln_type_func(e, n, params, parts[n - 1], vars, parts + n,
                    pln_type_n_constraints(e, func), parts + n + vars, out);
  pln_mem_free(e, params, size);
  return status;
}

static pln_status reverse_type(void *ud, pln_engine *engine, pln_type old,
                               pln_type *type) {
  switch (pln_type_get_kind(engine, old)) {
  case PLN_TYPE_TENSOR: return pair_type(engine, old, type);
  case PLN_TYPE_FUNC: return with_bp(ud, *type, type);
  default: return PLN_OK;
  }
}

static pln_status make_bp_type(ad_run *a) {
  pln_type unit;
  PLN_TRY(pln_type_make(a->engine, PLN_TYPE_TUPLE, 0, 0, NULL, &unit));
  PLN_TRY(
      pln_type_func(a->engine, 0, NULL, unit, 0, NULL, 0, NULL, &a->bp_type));
  return pln_type_make(a->engine, PLN_TYPE_REF, 0, 1, &a->bp_type, &a->bp_type);
}

static pln_type type_of(const ad_run *a, pln_ref old) {
  return a->old->nodes[old].type;
}

/* ------------------------------------------------------------------- stacks */

static pln_status later(ad_run *a, ad_task_kind kind, pln_ref at, void *data) {
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->tasks, &a->cap_tasks,
                       (size_t)a->n_tasks + 1, sizeof *a->tasks));
  a->tasks[a->n_tasks++] = (ad_task){kind, at, data};
  return PLN_OK;
}

static pln_status push_value(ad_run *a, pln_ref value) {
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->values, &a->cap_values,
                       (size_t)a->n_values + 1, sizeof *a->values));
  a->values[a->n_values++] = value;
  return PLN_OK;
}

static pln_status push(ad_run *a, pln_ref value, pln_ref *out) {
  return pln_let_list_push(&a->lets, value, out);
}

static pln_status new_var(ad_run *a, const char *name, pln_type type,
                          pln_ref *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(a->engine, pln_text(name), &symbol));
  return pln_build_var(a->b, symbol, type, 0, out);
}

static pln_status map_var(ad_run *a, pln_ref old, pln_ref *out) {
  pln_type type;
  if (a->map[old] == PLN_NONE) {
    PLN_TRY(pln_type_mutate(a->types, type_of(a, old), &type));
    PLN_TRY(
        pln_build_var(a->b, a->old->nodes[old].attrs, type, 0, &a->map[old]));
  }
  *out = a->map[old];
  return PLN_OK;
}

/* ----------------------------------------------------- the backpropagator */

/* ref(fn () { () }) */
static pln_status empty_backpropagator(ad_run *a, pln_ref *out) {
  pln_ref unit, function;
  PLN_TRY(pln_build_tuple(a->b, 0, NULL, &unit));
  PLN_TRY(pln_build_bind(a->b, 0, NULL, unit, 0, a->b->graph->nodes[unit].type,
                         &function));
  return pln_build_ref_create(a->b, function, out);
}

/* Ends the lets from `first` on with a call of the former backpropagator, as a
 * function that replaces it. */
static pln_status replace_backpropagator(ad_run *a, uint32_t first,
                                         pln_ref former) {
  pln_ref body, function;
  PLN_TRY(pln_build_apply(a->b, former, 0, 0, 0, NULL, &body));
  pln_type unit = a->b->graph->nodes[body].type;
  PLN_TRY(pln_let_list_wrap(&a->lets, first, body, &body));
  PLN_TRY(pln_build_bind(a->b, 0, NULL, body, 0, unit, &function));
  PLN_TRY(pln_build_ref_write(a->b, a->bp, function, &function));
  return push(a, function, &function);
}

static pln_status former_backpropagator(ad_run *a, pln_ref *out) {
  PLN_TRY(pln_build_ref_read(a->b, a->bp, out));
  return push(a, *out, out);
}

/* -------------------------------------------------------------- operators */

static pln_status build_orig(ad_run *a, pln_ref old, const pln_ref *args,
                             pln_ref *out) {
  pln_node copy = a->old->nodes[old];
  copy.type = 0;
  copy.flags &= (uint8_t)~PLN_NODE_KEEP;
  PLN_TRY(pln_builder_derive(a->b, a->old, old));
  PLN_TRY(pln_builder_add(a->b, &copy, copy.count, args, out));
  a->b->origin = 0;
  return PLN_OK;
}

/* The function computes the call again if its gradients need it. */
static pln_status backpropagate(ad_run *a, pln_ref old, pln_ref result,
                                const pln_ref *pairs, const pln_ref *values,
                                pln_ref *grads) {
  pln_ref orig, grad;
  PLN_TRY(pln_lift_tuples(&a->lets, PLN_LIFT_GRADIENT, type_of(a, old), result,
                          &grad));
  PLN_TRY(build_orig(a, old, values, &orig));
  PLN_TRY(pln_operator_gradient(a->b, orig, grad, grads));
  for (uint32_t i = 0; i < a->old->nodes[old].count; i++)
    PLN_TRY(pln_update_gradient(
        &a->lets, type_of(a, pln_operand(a->old, old, i)), pairs[i], grads[i]));
  return PLN_OK;
}

/* args: the pairs, then room for the values and the gradients. */
static pln_status operator_call(ad_run *a, pln_ref old, uint32_t n,
                                pln_ref *pairs, pln_ref *out) {
  pln_ref *values = pairs + n, *grads = values + n, orig, former;
  uint32_t first = a->lets.n;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(push(a, pairs[i], &pairs[i]));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_lift_tuples(&a->lets, PLN_LIFT_VALUE,
                            type_of(a, pln_operand(a->old, old, i)), pairs[i],
                            &values[i]));
  PLN_TRY(build_orig(a, old, values, &orig));
  PLN_TRY(push(a, orig, &orig));
  PLN_TRY(
      pln_lift_tuples(&a->lets, PLN_LIFT_REVERSE, type_of(a, old), orig, out));
  PLN_TRY(push(a, *out, out));
  PLN_TRY(former_backpropagator(a, &former));
  uint32_t inner = a->lets.n;
  PLN_TRY(backpropagate(a, old, *out, pairs, values, grads));
  PLN_TRY(replace_backpropagator(a, inner, former));
  return pln_let_list_wrap(&a->lets, first, *out, out);
}

static pln_status visit_constant(ad_run *a, pln_ref old) {
  uint32_t first = a->lets.n;
  pln_ref pair[2], out;
  PLN_TRY(pln_copy_atom(a->b, a->old, old, &pair[0]));
  PLN_TRY(push(a, pair[0], &pair[0]));
  PLN_TRY(pln_build_call(a->b, PLN_OP_ZEROS_LIKE, 0, 0, 1, pair, &pair[1]));
  PLN_TRY(pln_build_ref_create(a->b, pair[1], &pair[1]));
  PLN_TRY(pln_build_tuple(a->b, 2, pair, &out));
  PLN_TRY(pln_let_list_wrap(&a->lets, first, out, &out));
  return push_value(a, out);
}

/* ------------------------------------------------------------- functions */

static pln_status visit_scope(ad_run *a, pln_scope scope) {
  pln_ref first = a->tree.first[scope];
  return first != PLN_NONE
             ? later(a, STATEMENT, first, NULL)
             : later(a, VISIT, a->old->scopes[scope].result, NULL);
}

static pln_status visit_function(ad_run *a, pln_ref old) {
  ad_saved *saved = pln_arena_new(&a->arena, sizeof *saved);
  if (!saved)
    return pln_nomem(a->engine);
  *saved = (ad_saved){.bp = a->bp};
  PLN_TRY(new_var(a, "bp", a->bp_type, &saved->own_bp));
  a->bp = saved->own_bp;
  PLN_TRY(later(a, END_FUNCTION, old, saved));
  return visit_scope(a, a->old->nodes[old].data);
}

static pln_status bind_function(ad_run *a, pln_ref old, pln_ref *params,
                                pln_ref *out) {
  const pln_node *n = &a->old->nodes[old];
  const pln_scope_row *row = &a->old->scopes[n->data];
  uint32_t parts = pln_type_n_parts(a->engine, n->type);
  pln_type ret = pln_type_part_at(a->engine, n->type, parts - 1);
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(map_var(a, row->begin + i, &params[i]));
  PLN_TRY(pln_type_mutate(a->types, ret, &ret));
  pln_ref body = a->values[--a->n_values];
  PLN_TRY(pln_builder_derive(a->b, a->old, old));
  PLN_TRY(pln_build_bind(a->b, row->n_params + 1, params, body, n->attrs, ret,
                         out));
  a->b->origin = 0;
  if (!row->type_params)
    return PLN_OK;
  uint32_t k;
  const pln_type *vars = pln_type_all_parts(a->engine, row->type_params, &k);
  return pln_build_generic(a->b, *out, k, vars);
}

static pln_status end_function(ad_run *a, pln_ref old, ad_saved *saved) {
  uint32_t n = a->old->scopes[a->old->nodes[old].data].n_params;
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *params = pln_mem_new(a->engine, size), out = PLN_NONE;
  if (!params)
    return pln_nomem(a->engine);
  params[n] = saved->own_bp;
  a->bp = saved->bp;
  pln_status status = bind_function(a, old, params, &out);
  pln_mem_free(a->engine, params, size);
  return status == PLN_OK ? push_value(a, out) : status;
}

/* A call of a function: the reference is its last argument. */
static pln_status function_call(ad_run *a, uint32_t n, pln_ref *args,
                                pln_ref *out) {
  args[n] = a->bp;
  return pln_build_apply(a->b, args[0], 0, 0, n, args + 1, out);
}

/* ------------------------------------------------- functions of the module */

static pln_status grad_name(ad_run *a, uint32_t index, pln_symbol *out) {
  pln_slice old =
      pln_symbol_text(a->engine, pln_module_name_at(a->module, index));
  size_t size = old.size + 32;
  char *text = pln_mem_new(a->engine, size);
  pln_status status = text ? PLN_OK : pln_nomem(a->engine);
  for (uint32_t i = 0; status == PLN_OK; i++) {
    int n = i ? snprintf(text, size, "%.*s_grad_%u", (int)old.size, old.data, i)
              : snprintf(text, size, "%.*s_grad", (int)old.size, old.data);
    status = pln_symbol_intern(a->engine, (pln_slice){text, (size_t)n}, out);
    if (status != PLN_OK || pln_module_find(a->module, *out) == PLN_NONE)
      break;
  }
  pln_mem_free(a->engine, text, size);
  return status;
}

static pln_status visit_global(ad_run *a, pln_ref old) {
  uint32_t i = pln_module_find(a->module, a->old->nodes[old].data);
  pln_type type;
  pln_ref out;
  if (i == PLN_NONE ||
      pln_node_kind(pln_module_function_at(a->module, i),
                    pln_module_function_at(a->module, i)->root) != PLN_FUNCTION)
    return pln_refuse_node(a->old, old, PASS, "no function of Relay");
  if (!a->names[i]) {
    PLN_TRY(grad_name(a, i, &a->names[i]));
    a->queue[a->n_queue++] = i;
  }
  type = pln_signature(pln_module_function_at(a->module, i));
  PLN_TRY(pln_type_mutate(a->types, type, &type));
  PLN_TRY(pln_build_global_var(a->b, a->names[i], type, &out));
  return push_value(a, out);
}

/* ---------------------------------------------------------------- visiting */

static bool is_checkpoint(const pln_node *n) {
  return n->kind == PLN_CALL && n->data == PLN_OP_CHECKPOINT;
}

static pln_status check_operator(ad_run *a, pln_ref old) {
  const pln_node *n = &a->old->nodes[old];
  if (n->kind == PLN_CALL && n->data && !pln_has_gradient(a->engine, n->data))
    return pln_refuse_node(a->old, old, PASS,
                           "the operator has no gradient; "
                           "pl.op_attr(op, \"FPrimalGradient\", f) sets one");
  return PLN_OK;
}

static pln_status visit_operands(ad_run *a, pln_ref old) {
  PLN_TRY(check_operator(a, old));
  PLN_TRY(later(a, COMBINE, old, NULL));
  for (uint32_t i = a->old->nodes[old].count; i-- > 0;)
    PLN_TRY(later(a, VISIT, pln_operand(a->old, old, i), NULL));
  return PLN_OK;
}

static pln_status visit_branches(ad_run *a, pln_ref old) {
  PLN_TRY(later(a, COMBINE, old, NULL));
  /* Tasks run from the last pushed on; values of scopes come first. */
  PLN_TRY(later(a, VISIT, pln_operand(a->old, old, 0), NULL));
  uint32_t first = a->n_tasks;
  for (pln_scope s = a->old->nodes[old].data; s != PLN_NONE;
       s = a->old->scopes[s].next)
    PLN_TRY(visit_scope(a, s));
  pln_mem_reverse(a->tasks + first, a->n_tasks - first, sizeof *a->tasks);
  return PLN_OK;
}

static pln_status visit_atom(ad_run *a, pln_ref old) {
  pln_ref out;
  PLN_TRY(pln_copy_atom(a->b, a->old, old, &out));
  return push_value(a, out);
}

/* First a copy of its operand is made. */
static pln_status visit_checkpoint(ad_run *a, pln_ref old) {
  ad_saved *s = pln_arena_new(&a->arena, sizeof *s);
  if (!s)
    return pln_nomem(a->engine);
  *s = (ad_saved){.bp = a->bp, .first = a->lets.n};
  a->checkpoint++;
  PLN_TRY(later(a, BEGIN_CHECKPOINT, old, s));
  return later(a, COPY, pln_operand(a->old, old, 0), NULL);
}

static pln_status visit(ad_run *a, pln_ref old) {
  const pln_node *n = &a->old->nodes[old];
  pln_ref out;
  if (is_checkpoint(n))
    return visit_checkpoint(a, old);
  switch ((pln_kind)n->kind) {
  case PLN_VAR: PLN_TRY(map_var(a, old, &out)); return push_value(a, out);
  case PLN_CONSTANT: return visit_constant(a, old);
  case PLN_GLOBAL_VAR: return visit_global(a, old);
  case PLN_CONSTRUCTOR: return visit_atom(a, old);
  case PLN_FUNCTION: return visit_function(a, old);
  case PLN_LET_BLOCK: return visit_scope(a, n->data);
  case PLN_IF:
  case PLN_MATCH: return visit_branches(a, old);
  case PLN_CALL:
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM:
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return visit_operands(a, old);
  default: return pln_refuse_node(a->old, old, PASS, "it has no gradient");
  }
}

static pln_status visit_statement(ad_run *a, pln_ref old) {
  const pln_graph *g = a->old;
  pln_ref next = a->tree.next[old];
  bool let = g->nodes[old].kind == PLN_LET;
  PLN_TRY(later(a, BIND, old, NULL));
  if (next != PLN_NONE)
    PLN_TRY(later(a, STATEMENT, next, NULL));
  else
    PLN_TRY(
        later(a, VISIT, g->scopes[pln_graph_scope_of(g, old)].result, NULL));
  return later(a, VISIT, let ? pln_operand(g, old, 1) : old, NULL);
}

static pln_status bind_statement(ad_run *a, pln_ref old) {
  pln_ref rest = a->values[--a->n_values], value = a->values[--a->n_values];
  pln_ref var;
  if (a->old->nodes[old].kind == PLN_LET)
    PLN_TRY(map_var(a, pln_operand(a->old, old, 0), &var));
  else
    PLN_TRY(new_var(a, "v", a->b->graph->nodes[value].type, &var));
  PLN_TRY(pln_build_floating_let(a->b, var, value, rest, &rest));
  return push_value(a, rest);
}

/* ---------------------------------------------------------------- combining */

static pln_status combine_if(ad_run *a, const pln_ref *v, pln_ref *out) {
  pln_ref cond;
  PLN_TRY(pln_build_tuple_get_item(a->b, v[2], 0, &cond));
  return pln_build_floating_if(a->b, cond, v[0], v[1], out);
}

/* The nodes of the pattern of an arm, in a free builder. */
static pln_status copy_pattern(ad_run *a, pln_scope arm, pln_ref *out) {
  const pln_graph *g = a->old;
  pln_ref root = pln_arm_pattern(g, arm);
  for (pln_ref ref = g->scopes[arm].begin; ref <= root; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (n->kind == PLN_VAR)
      PLN_TRY(map_var(a, ref, out));
    if (pln_kinds[n->kind].kind_class != PLN_CLASS_PATTERN)
      continue;
    size_t size = (n->count + (size_t)1) * sizeof(pln_ref);
    pln_ref *parts = pln_mem_new(a->engine, size);
    if (!parts)
      return pln_nomem(a->engine);
    for (uint32_t i = 0; i < n->count; i++)
      parts[i] = a->map[pln_operand(g, ref, i)];
    pln_node copy = *n;
    pln_status status =
        pln_builder_add(a->b, &copy, n->count, parts, &a->map[ref]);
    pln_mem_free(a->engine, parts, size);
    PLN_TRY(status);
  }
  *out = a->map[root];
  return PLN_OK;
}

static pln_status combine_match(ad_run *a, pln_ref old, uint32_t n,
                                const pln_ref *bodies, pln_ref *patterns,
                                pln_ref *out) {
  const pln_attr *mark =
      pln_attrs_find(a->engine, a->old->nodes[old].attrs, "complete");
  pln_scope arm = a->old->nodes[old].data;
  for (uint32_t i = 0; i < n; i++, arm = a->old->scopes[arm].next)
    PLN_TRY(copy_pattern(a, arm, &patterns[i]));
  return pln_build_floating_match(a->b, bodies[n], mark && mark->v.i, n,
                                  patterns, bodies, out);
}

static pln_status combine_node(ad_run *a, pln_ref old, uint32_t n,
                               pln_ref *args, pln_ref *out) {
  const pln_node *node = &a->old->nodes[old];
  switch ((pln_kind)node->kind) {
  case PLN_IF: return combine_if(a, args, out);
  case PLN_MATCH: return combine_match(a, old, n - 1, args, args + n, out);
  case PLN_CALL:
    if (node->data)
      return operator_call(a, old, n, args, out);
    if (a->old->nodes[pln_operand(a->old, old, 0)].kind != PLN_CONSTRUCTOR)
      return function_call(a, n, args, out);
    return build_orig(a, old, args, out);
  default: return build_orig(a, old, args, out);
  }
}

/* How many values are on the stack for a node. */
static uint32_t n_parts(const pln_graph *g, pln_ref old) {
  bool branches =
      g->nodes[old].kind == PLN_IF || g->nodes[old].kind == PLN_MATCH;
  return branches ? pln_node_n_scopes(g, old) + 1 : g->nodes[old].count;
}

static pln_status combine(ad_run *a, pln_ref old) {
  uint32_t n = n_parts(a->old, old);
  size_t size = (3 * (size_t)n + 1) * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(a->engine, size), out = PLN_NONE;
  if (!args)
    return pln_nomem(a->engine);
  a->n_values -= n;
  if (n)
    memcpy(args, a->values + a->n_values, n * sizeof *args);
  pln_status status = combine_node(a, old, n, args, &out);
  pln_mem_free(a->engine, args, size);
  return status == PLN_OK ? push_value(a, out) : status;
}

/* -------------------------------------------------------------- checkpoints
 */

static pln_status copy_var(ad_run *a, pln_ref old) {
  pln_ref pair;
  if (a->copied_at[old] != a->checkpoint) {
    PLN_TRY(map_var(a, old, &pair));
    PLN_TRY(pln_lift_tuples(&a->lets, PLN_LIFT_VALUE, type_of(a, old), pair,
                            &a->copied[old]));
    a->copied_at[old] = a->checkpoint;
  }
  return push_value(a, a->copied[old]);
}

/* A copy of dataflow, on the values of the pairs. */
static pln_status copy(ad_run *a, pln_ref old) {
  const pln_node *n = &a->old->nodes[old];
  switch ((pln_kind)n->kind) {
  case PLN_VAR: return copy_var(a, old);
  case PLN_CONSTANT:
  case PLN_GLOBAL_VAR:
  case PLN_CONSTRUCTOR: return visit_atom(a, old);
  case PLN_CALL:
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM: break;
  default:
    return pln_refuse_node(a->old, old, PASS,
                           "annotation.checkpoint holds dataflow only");
  }
  PLN_TRY(later(a, COPY_COMBINE, old, NULL));
  for (uint32_t i = n->count; i-- > 0;)
    PLN_TRY(later(a, COPY, pln_operand(a->old, old, i), NULL));
  return PLN_OK;
}

static pln_status copy_combine(ad_run *a, pln_ref old) {
  uint32_t n = a->old->nodes[old].count;
  pln_ref out;
  a->n_values -= n;
  PLN_TRY(build_orig(a, old, a->values + a->n_values, &out));
  return push_value(a, out);
}

/* The value is computed without gradients; the backpropagator computes it again
 * with gradients, in a list of lets of its own. */
static pln_status begin_checkpoint(ad_run *a, pln_ref old, ad_saved *s) {
  pln_ref x;
  PLN_TRY(pln_let_list_wrap(&a->lets, s->first, a->values[--a->n_values], &x));
  PLN_TRY(push(a, x, &x));
  PLN_TRY(pln_lift_tuples(&a->lets, PLN_LIFT_REVERSE, type_of(a, old), x,
                          &s->result));
  PLN_TRY(push(a, s->result, &s->result));
  PLN_TRY(former_backpropagator(a, &s->former));
  s->inner = a->lets.n;
  PLN_TRY(empty_backpropagator(a, &s->own_bp));
  PLN_TRY(push(a, s->own_bp, &s->own_bp));
  a->bp = s->own_bp;
  PLN_TRY(later(a, END_CHECKPOINT, old, s));
  return later(a, VISIT, pln_operand(a->old, old, 0), NULL);
}

static pln_status end_checkpoint(ad_run *a, pln_ref old, ad_saved *s) {
  pln_ref again = a->values[--a->n_values], run, out;
  PLN_TRY(push(a, again, &again));
  PLN_TRY(pln_transfer_gradient(&a->lets, type_of(a, old), s->result, again));
  PLN_TRY(pln_build_ref_read(a->b, s->own_bp, &run));
  PLN_TRY(pln_build_apply(a->b, run, 0, 0, 0, NULL, &run));
  PLN_TRY(push(a, run, &run));
  a->bp = s->bp;
  PLN_TRY(replace_backpropagator(a, s->inner, s->former));
  PLN_TRY(pln_let_list_wrap(&a->lets, s->first, s->result, &out));
  return push_value(a, out);
}

/* --------------------------------------------------------------- a function
 */

static pln_status run_task(ad_run *a, const ad_task *t) {
  switch (t->kind) {
  case VISIT: return visit(a, t->at);
  case STATEMENT: return visit_statement(a, t->at);
  case BIND: return bind_statement(a, t->at);
  case COMBINE: return combine(a, t->at);
  case COPY: return copy(a, t->at);
  case COPY_COMBINE: return copy_combine(a, t->at);
  case END_FUNCTION: return end_function(a, t->at, t->data);
  case BEGIN_CHECKPOINT: return begin_checkpoint(a, t->at, t->data);
  case END_CHECKPOINT: return end_checkpoint(a, t->at, t->data);
  }
  return PLN_OK;
}

/* The function on pairs, with %bp as its last parameter. */
static pln_status reverse_function(ad_run *a, pln_ref *out) {
  PLN_TRY(later(a, VISIT, a->old->root, NULL));
  while (a->n_tasks > 0) {
    ad_task t = a->tasks[--a->n_tasks];
    PLN_TRY(run_task(a, &t));
  }
  *out = a->values[--a->n_values];
  return PLN_OK;
}

/* The gradient of the result is one: of the first tensor of a tuple. */
static pln_status seed_gradient(ad_run *a, pln_ref result, pln_type type) {
  pln_ref args[2];
  while (pln_type_get_kind(a->engine, type) == PLN_TYPE_TUPLE &&
         pln_type_n_parts(a->engine, type) > 0) {
    PLN_TRY(pln_build_tuple_get_item(a->b, result, 0, &result));
    PLN_TRY(push(a, result, &result));
    type = pln_type_part_at(a->engine, type, 0);
  }
  if (pln_type_get_kind(a->engine, type) != PLN_TYPE_TENSOR)
    return pln_diag_error(a->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "Gradient: the result is neither a tensor nor a "
                          "tuple that begins with one");
  PLN_TRY(pln_build_tuple_get_item(a->b, result, 1, &args[0]));
  PLN_TRY(pln_build_tuple_get_item(a->b, result, 0, &args[1]));
  PLN_TRY(pln_build_call(a->b, PLN_OP_ONES_LIKE, 0, 0, 1, &args[1], &args[1]));
  PLN_TRY(pln_build_ref_write(a->b, args[0], args[1], &args[0]));
  return push(a, args[0], &args[0]);
}

/* The pairs of the parameters; params are followed by them, and by %bp. */
static pln_status add_pairs(ad_run *a, uint32_t n, pln_ref *params) {
  const pln_graph *g = a->old;
  pln_ref first = g->scopes[g->nodes[g->root].data].begin;
  for (uint32_t i = 0; i < n; i++) {
    const pln_node *old = &g->nodes[first + i];
    if (pln_type_get_kind(a->engine, old->type) != PLN_TYPE_TENSOR)
      return pln_refuse_node(g, first + i, PASS, "parameters must be tensors");
    PLN_TRY(pln_builder_import_origin(a->b, g, first + i, &a->b->origin));
    PLN_TRY(pln_build_var(a->b, old->attrs, old->type, old->data, &params[i]));
    a->b->origin = 0;
    PLN_TRY(pln_lift_tuples(&a->lets, PLN_LIFT_REVERSE, old->type, params[i],
                            &params[n + i]));
  }
  return PLN_OK;
}

static pln_status read_gradients(ad_run *a, uint32_t n, const pln_ref *pairs,
                                 pln_ref *grads, pln_ref *out) {
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pln_build_tuple_get_item(a->b, pairs[i], 1, &grads[i]));
    PLN_TRY(pln_build_ref_read(a->b, grads[i], &grads[i]));
  }
  return pln_build_tuple(a->b, n, grads, out);
}

/* params: n parameters, n pairs and the reference, room for n gradients. */
static pln_status build_body(ad_run *a, uint32_t n, pln_ref *params,
                             pln_ref *out) {
  const pln_graph *g = a->old;
  pln_type type = type_of(a, g->scopes[g->nodes[g->root].data].result);
  pln_ref bp, rev, result, run, pair[2];
  PLN_TRY(empty_backpropagator(a, &bp));
  PLN_TRY(push(a, bp, &bp));
  PLN_TRY(reverse_function(a, &rev));
  PLN_TRY(add_pairs(a, n, params));
  params[2 * n] = bp;
  PLN_TRY(pln_build_apply(a->b, rev, 0, 0, n + 1, params + n, &result));
  PLN_TRY(push(a, result, &result));
  PLN_TRY(seed_gradient(a, result, type));
  PLN_TRY(pln_build_ref_read(a->b, bp, &run));
  PLN_TRY(pln_build_apply(a->b, run, 0, 0, 0, NULL, &run));
  PLN_TRY(push(a, run, &run));
  PLN_TRY(read_gradients(a, n, params + n, params + 2 * n + 1, &pair[1]));
  PLN_TRY(pln_values_of_pairs(&a->lets, type, result, &pair[0]));
  return pln_build_tuple(a->b, 2, pair, out);
}

static pln_status build_gradient(ad_run *a, uint32_t n, pln_ref *params,
                                 pln_ref *out) {
  pln_ref body;
  PLN_TRY(build_body(a, n, params, &body));
  pln_type type = a->b->graph->nodes[body].type;
  PLN_TRY(pln_let_list_wrap(&a->lets, 0, body, &body));
  return pln_build_bind(a->b, n, params, body,
                        a->old->nodes[a->old->root].attrs, type, out);
}

static pln_status build_entry(ad_run *a, pln_ref *out) {
  const pln_graph *g = a->old;
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  size_t size = (3 * (size_t)row->n_params + 1) * sizeof(pln_ref);
  if (row->type_params)
    return pln_diag_error(a->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "Gradient: functions with type parameters are not "
                          "supported");
  pln_ref *params = pln_mem_new(a->engine, size);
  if (!params)
    return pln_nomem(a->engine);
  pln_status status = build_gradient(a, row->n_params, params, out);
  pln_mem_free(a->engine, params, size);
  return status;
}

/* -------------------------------------------- backpropagators in normal form
 */

/* Returns true for a function without parameters that is written to a
 * reference, but for that of a checkpoint, which begins with a reference to a
 * function. */
static bool is_backpropagator(const pln_graph *g, pln_ref function) {
  const pln_node *n = &g->nodes[function];
  if (n->kind != PLN_FUNCTION || g->scopes[n->data].n_params)
    return false;
  const pln_scope_row *row = &g->scopes[n->data];
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (g->nodes[ref].kind == PLN_REF_CREATE)
      return g->nodes[pln_operand(g, ref, 0)].kind != PLN_FUNCTION;
  return true;
}

static void mark_backpropagators(const pln_graph *g, uint8_t *outside) {
  memset(outside, 1, g->n_scopes);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_ref function =
        g->nodes[ref].kind == PLN_REF_WRITE ? pln_operand(g, ref, 1) : PLN_NONE;
    if (function != PLN_NONE && is_backpropagator(g, function))
      outside[g->nodes[function].data] = 0;
  }
  for (pln_scope s = 1; s < g->n_scopes; s++)
    outside[s] &= outside[g->scopes[s].parent];
}

/* TVM has the backpropagators of operators in A-normal form. */
static pln_status bind_backpropagators(const pln_graph *g, pln_graph **out) {
  uint8_t *outside = pln_mem_new(g->engine, g->n_scopes);
  if (!outside)
    return pln_nomem(g->engine);
  mark_backpropagators(g, outside);
  pln_status status = pln_a_normal_form(g, outside, out);
  pln_mem_free(g->engine, outside, g->n_scopes);
  return status;
}

static pln_status seal_function(ad_run *a, pln_ref root, pln_graph **out) {
  pln_graph *plain;
  PLN_TRY(pln_builder_seal(a->b, root, &plain));
  pln_status status = bind_backpropagators(plain, out);
  pln_graph_release(plain);
  return status;
}

/* ----------------------------------------------------------------- a module
 */

static pln_status prepare(ad_run *a, const pln_graph *old) {
  size_t n = old->n_nodes;
  a->old = old;
  a->n_tasks = a->n_values = a->checkpoint = 0;
  a->map = pln_mem_new(a->engine, n * sizeof *a->map);
  a->copied = pln_mem_new(a->engine, n * sizeof *a->copied);
  a->copied_at = pln_mem_zeroed(a->engine, n * sizeof *a->copied_at);
  if (!a->map || !a->copied || !a->copied_at)
    return pln_nomem(a->engine);
  memset(a->map, 0xff, n * sizeof *a->map);
  PLN_TRY(pln_expression_tree_new(old, PASS, &a->tree));
  PLN_TRY(pln_builder_new(a->engine, &a->b));
  pln_builder_module(a->b, a->module);
  a->lets = (pln_let_list){.b = a->b};
  a->bp = PLN_NONE;
  return PLN_OK;
}

static void finish(ad_run *a, const pln_graph *old) {
  size_t n = old->n_nodes;
  pln_let_list_free(&a->lets);
  a->lets.b = NULL;
  pln_builder_free(a->b);
  a->b = NULL;
  pln_expression_tree_free(&a->tree);
  pln_mem_free(a->engine, a->map, n * sizeof *a->map);
  pln_mem_free(a->engine, a->copied, n * sizeof *a->copied);
  pln_mem_free(a->engine, a->copied_at, n * sizeof *a->copied_at);
}

/* Adds the gradient of a function, or what it is on pairs, to the module. */
static pln_status transform(ad_run *a, uint32_t index, bool entry,
                            pln_symbol name, pln_module *out) {
  const pln_graph *old = pln_module_function_at(a->module, index);
  pln_graph *graph = NULL;
  pln_ref root = PLN_NONE;
  pln_status status = prepare(a, old);
  if (status == PLN_OK)
    status = entry ? build_entry(a, &root) : reverse_function(a, &root);
  if (status == PLN_OK)
    status = seal_function(a, root, &graph);
  if (status == PLN_OK)
    status = pln_module_set(out, name, graph);
  pln_graph_release(graph);
  finish(a, old);
  return status;
}

static void mark_referred(const pln_module *module, bool *referred) {
  for (uint32_t i = 0; i < pln_module_count(module); i++) {
    const pln_graph *g = pln_module_function_at(module, i);
    for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
      uint32_t k = g->nodes[ref].kind == PLN_GLOBAL_VAR
                       ? pln_module_find(module, g->nodes[ref].data)
                       : PLN_NONE;
      if (k != PLN_NONE)
        referred[k] = true;
    }
  }
}

/* entry[i]: the function is transformed. */
static pln_status find_entries(ad_run *a, bool *entry) {
  uint32_t n = pln_module_count(a->module), main;
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(a->engine, pln_text("main"), &name));
  main = pln_module_find(a->module, name);
  mark_referred(a->module, entry);
  for (uint32_t i = 0; i < n; i++) {
    const pln_graph *g = pln_module_function_at(a->module, i);
    entry[i] = main == PLN_NONE ? !entry[i] : i == main;
    entry[i] &= pln_pass_applies(g) && g->nodes[g->root].kind == PLN_FUNCTION;
  }
  return PLN_OK;
}

static pln_status transform_entries(ad_run *a, const bool *entry,
                                    pln_module *out) {
  for (uint32_t i = 0; i < pln_module_count(a->module); i++) {
    bool allowed = false;
    if (entry[i])
      PLN_TRY(pln_rule_apply(a->engine, "differentiate", PLN_NONE, &allowed));
    if (allowed)
      PLN_TRY(transform(a, i, true, pln_module_name_at(a->module, i), out));
  }
  for (uint32_t k = 0; k < a->n_queue; k++)
    PLN_TRY(transform(a, a->queue[k], false, a->names[a->queue[k]], out));
  return PLN_OK;
}

static pln_status run_module(ad_run *a, pln_module *out) {
  size_t n = pln_module_count(a->module) + (size_t)1;
  bool *entry = pln_mem_zeroed(a->engine, n);
  a->names = pln_mem_zeroed(a->engine, n * sizeof *a->names);
  a->queue = pln_mem_new(a->engine, n * sizeof *a->queue);
  pln_status status =
      entry && a->names && a->queue ? make_bp_type(a) : pln_nomem(a->engine);
  if (status == PLN_OK)
    status = pln_type_mutator_new(a->engine, reverse_type, a, &a->types);
  if (status == PLN_OK)
    status = find_entries(a, entry);
  if (status == PLN_OK)
    status = transform_entries(a, entry, out);
  pln_type_mutator_free(a->types);
  pln_mem_free(a->engine, entry, n);
  pln_mem_free(a->engine, a->names, n * sizeof *a->names);
  pln_mem_free(a->engine, a->queue, n * sizeof *a->queue);
  pln_mem_free(a->engine, a->tasks, a->cap_tasks * sizeof *a->tasks);
  pln_mem_free(a->engine, a->values, a->cap_values * sizeof *a->values);
  return status;
}

pln_status pln_pass_gradient(pln_pass_run *run) {
  ad_run a = {.engine = pln_run_engine(run), .module = run->module};
  pln_slice mode = pln_run_string(run, "mode");
  pln_module *out;
  if (pln_slice_equal(mode, pln_text("first_order")))
    return pln_pass_first_order_gradient(run);
  PLN_TRY(pln_module_copy(a.module, &out));
  pln_arena_init(&a.arena, a.engine);
  pln_status status = run_module(&a, out);
  pln_arena_free(&a.arena);
  if (status == PLN_OK)
    pln_run_set_module(run, out);
  else
    pln_module_release(out);
  return status;
}
