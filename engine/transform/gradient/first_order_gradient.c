/* first_order_gradient.c: FirstOrderGradient: functions of pure dataflow return
 * their result and its gradients with respect to the parameters.
 *
 * Run by the executor, once per module; each function is transformed by itself.
 * Requires verified functions of variables, constants, tuples and calls of
 * operators and of literal functions; others are refused. Each value is bound
 * by a let, followed by one of zeros for its gradient. The gradients are
 * computed in a block of lets, from the last call to the first.
 *
 *     def @main(%x: T) { exp(%x) }   =>
 *     def @main(%x: T) -> (T, (T,)) {
 *       let %a = %x; let %b = zeros_like(%a);
 *       %0 = exp(%a); let %c = %0; let %d = zeros_like(%c);
 *       (%c, (let %g = add(%b, multiply(ones_like(%c), exp(%a))); (%g,)))
 *     }
 *
 * Semantics: TVM FirstOrderGradient. Nothing recurses: visits are tasks on a
 * stack. */

#include "ir/graph/module.h"
#include "transform/functional/expression_tree.h"
#include "transform/gradient/let_list.h"
#include "transform/gradient/operator_gradient.h"
#include "transform/gradient/tuples.h"
#include "transform/transform.h"

/* A value and its gradient: variables, except that the gradient of the result
 * is what it is. */
typedef struct ad_value {
  pln_ref forward, reverse;
} ad_value;

/* What is done backwards, in the order in which it was done forwards. */
typedef struct ad_action {
  pln_ref old;    /* the node */
  pln_ref orig;   /* the new node, unbound */
  uint32_t value; /* of its result */
  uint32_t first; /* those of its operands, in `parts` */
} ad_action;

typedef enum ad_task_kind { VISIT, COMBINE, ENTER, LEAVE } ad_task_kind;

typedef struct ad_task {
  ad_task_kind kind;
  pln_ref at; /* ENTER, LEAVE: a call of a literal function */
} ad_task;

typedef struct first_order {
  pln_engine *engine;
  const pln_graph *old;
  pln_let_list lets;
  pln_builder *b;
  uint32_t *value; /* by old node: its value + 1; 0: not visited */
  ad_value *values;
  ad_action *actions;
  uint32_t *parts;
  ad_task *tasks;
  uint32_t n_values, cap_values, n_actions, cap_actions;
  uint32_t n_parts, cap_parts, n_tasks, cap_tasks;
} first_order;

#define GROW(f, list, n)                                           \
  pln_mem_grow((f)->engine, (void **)&(f)->list, &(f)->cap_##list, \
               (size_t)(f)->n_##list + (n), sizeof *(f)->list)

static pln_status later(first_order *f, ad_task_kind kind, pln_ref at) {
  PLN_TRY(GROW(f, tasks, 1));
  f->tasks[f->n_tasks++] = (ad_task){kind, at};
  return PLN_OK;
}

/* ------------------------------------------------------------------ forward
 */

static pln_type type_of(const first_order *f, pln_ref node) {
  return f->b->graph->nodes[node].type;
}

/* Binds an expression, and zeros for its gradient. */
static pln_status new_value(first_order *f, pln_ref expr, uint32_t *out) {
  ad_value v;
  PLN_TRY(GROW(f, values, 1));
  PLN_TRY(pln_let_list_push(&f->lets, expr, &v.forward));
  PLN_TRY(pln_filled_like(f->b, PLN_OP_ZEROS_LIKE, PLN_OP_ZEROS, v.forward,
                          &v.reverse));
  PLN_TRY(pln_let_list_push(&f->lets, v.reverse, &v.reverse));
  f->values[f->n_values] = v;
  *out = f->n_values++;
  return PLN_OK;
}

static pln_status visit(first_order *f, pln_ref old) {
  const pln_graph *g = f->old;
  const pln_node *n = &g->nodes[old];
  bool literal = n->kind == PLN_CALL && !n->data &&
                 g->nodes[pln_operand(g, old, 0)].kind == PLN_FUNCTION;
  if (f->value[old])
    return PLN_OK;
  switch ((pln_kind)n->kind) {
  case PLN_CONSTANT:
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM: break;
  case PLN_CALL:
    if (n->data || literal)
      break;
    /* fall through */
  default:
    return pln_refuse_node(g, old, "FirstOrderGradient",
                           "only variables, constants, tuples, operators and "
                           "calls of literal functions are supported");
  }
  PLN_TRY(later(f, literal ? ENTER : COMBINE, old));
  for (uint32_t i = n->count; i-- > literal;)
    PLN_TRY(later(f, VISIT, pln_operand(g, old, i)));
  return PLN_OK;
}

/* The new node with the forward values of the operands. */
static pln_status rebuild(first_order *f, pln_ref old, uint32_t first,
                          pln_ref *out) {
  pln_node copy = f->old->nodes[old];
  size_t size = (copy.count + (size_t)1) * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(f->engine, size);
  if (!args)
    return pln_nomem(f->engine);
  for (uint32_t i = 0; i < copy.count; i++)
    args[i] = f->values[f->parts[first + i]].forward;
  copy.type = 0;
  copy.flags &= (uint8_t)~PLN_NODE_KEEP;
  pln_status status = pln_builder_derive(f->b, f->old, old);
  if (status == PLN_OK)
    status = pln_builder_add(f->b, &copy, copy.count, args, out);
  f->b->origin = 0;
  pln_mem_free(f->engine, args, size);
  return status;
}

static pln_status combine(first_order *f, pln_ref old) {
  const pln_node *n = &f->old->nodes[old];
  ad_action a = {.old = old, .first = f->n_parts};
  if (f->value[old])
    return PLN_OK;
  PLN_TRY(GROW(f, parts, n->count + 1));
  for (uint32_t i = 0; i < n->count; i++)
    f->parts[f->n_parts++] = f->value[pln_operand(f->old, old, i)] - 1;
  if (n->kind == PLN_CONSTANT)
    PLN_TRY(pln_copy_atom(f->b, f->old, old, &a.orig));
  else
    PLN_TRY(rebuild(f, old, a.first, &a.orig));
  PLN_TRY(new_value(f, a.orig, &a.value));
  f->value[old] = a.value + 1;
  if (n->kind == PLN_CONSTANT)
    return PLN_OK;
  PLN_TRY(GROW(f, actions, 1));
  f->actions[f->n_actions++] = a;
  return PLN_OK;
}

/* A function that is called again is visited again. */
static pln_status enter_call(first_order *f, pln_ref old) {
  const pln_graph *g = f->old;
  pln_ref function = pln_operand(g, old, 0);
  const pln_scope_row *row = &g->scopes[g->nodes[function].data];
  memset(f->value + row->begin, 0, (row->end - row->begin) * sizeof *f->value);
  for (uint32_t i = 0; i < row->n_params; i++)
    f->value[row->begin + i] = f->value[pln_operand(g, old, i + 1)];
  PLN_TRY(later(f, LEAVE, old));
  return later(f, VISIT, row->result);
}

static void leave_call(first_order *f, pln_ref old) {
  const pln_graph *g = f->old;
  pln_ref function = pln_operand(g, old, 0);
  f->value[old] = f->value[g->scopes[g->nodes[function].data].result];
}

static pln_status run_forward(first_order *f) {
  while (f->n_tasks > 0) {
    ad_task t = f->tasks[--f->n_tasks];
    switch (t.kind) {
    case VISIT: PLN_TRY(visit(f, t.at)); break;
    case COMBINE: PLN_TRY(combine(f, t.at)); break;
    case ENTER: PLN_TRY(enter_call(f, t.at)); break;
    case LEAVE: leave_call(f, t.at); break;
    }
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- backward
 */

static pln_status add_gradient(first_order *f, uint32_t value, pln_ref grad) {
  ad_value *v = &f->values[value];
  return pln_add_tuples(&f->lets, type_of(f, v->forward), v->reverse, grad,
                        &v->reverse);
}

static pln_status call_backward(first_order *f, const ad_action *a) {
  uint32_t n = f->old->nodes[a->old].count;
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *out = pln_mem_new(f->engine, size);
  if (!out)
    return pln_nomem(f->engine);
  pln_status status =
      pln_operator_gradient(f->b, a->orig, f->values[a->value].reverse, out);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = add_gradient(f, f->parts[a->first + i], out[i]);
  pln_mem_free(f->engine, out, size);
  return status;
}

static pln_status tuple_backward(first_order *f, const ad_action *a) {
  for (uint32_t i = 0; i < f->old->nodes[a->old].count; i++) {
    pln_ref grad;
    PLN_TRY(
        pln_build_tuple_get_item(f->b, f->values[a->value].reverse, i, &grad));
    PLN_TRY(add_gradient(f, f->parts[a->first + i], grad));
  }
  return PLN_OK;
}

/* The gradient of the tuple with that of one field added. */
static pln_status field_backward(first_order *f, const ad_action *a) {
  ad_value *tuple = &f->values[f->parts[a->first]];
  pln_type type = type_of(f, tuple->forward);
  uint32_t n = pln_type_n_parts(f->engine, type);
  uint32_t index = f->old->nodes[a->old].data;
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *fields = pln_mem_new(f->engine, size);
  pln_status status = fields ? PLN_OK : pln_nomem(f->engine);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    status = pln_build_tuple_get_item(f->b, tuple->reverse, i, &fields[i]);
    if (status == PLN_OK && i == index)
      status =
          pln_add_tuples(&f->lets, pln_type_part_at(f->engine, type, i),
                         fields[i], f->values[a->value].reverse, &fields[i]);
  }
  if (status == PLN_OK)
    status = pln_build_tuple(f->b, n, fields, &tuple->reverse);
  if (status == PLN_OK)
    status = pln_let_list_push(&f->lets, tuple->reverse, &tuple->reverse);
  pln_mem_free(f->engine, fields, size);
  return status;
}

static pln_status run_backward(first_order *f) {
  while (f->n_actions > 0) {
    const ad_action *a = &f->actions[--f->n_actions];
    switch ((pln_kind)f->old->nodes[a->old].kind) {
    case PLN_CALL: PLN_TRY(call_backward(f, a)); break;
    case PLN_TUPLE: PLN_TRY(tuple_backward(f, a)); break;
    default: PLN_TRY(field_backward(f, a)); break;
    }
  }
  return PLN_OK;
}

/* --------------------------------------------------------------- a function */

static pln_status add_params(first_order *f, pln_ref *params) {
  const pln_graph *g = f->old;
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  for (uint32_t i = 0; i < row->n_params; i++) {
    const pln_node *old = &g->nodes[row->begin + i];
    PLN_TRY(pln_builder_import_origin(f->b, g, row->begin + i, &f->b->origin));
    PLN_TRY(pln_build_var(f->b, old->attrs, old->type, old->data, &params[i]));
    f->b->origin = 0;
    PLN_TRY(new_value(f, params[i], &f->value[row->begin + i]));
    f->value[row->begin + i]++;
  }
  return PLN_OK;
}

/* The pair of the result and the tuple of gradients. */
static pln_status build_pair(first_order *f, uint32_t n, pln_ref *out) {
  const pln_graph *g = f->old;
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  ad_value *result = &f->values[f->value[row->result] - 1];
  uint32_t first = f->lets.n;
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref pair[2] = {result->forward, PLN_NONE};
  PLN_TRY(pln_filled_like(f->b, PLN_OP_ONES_LIKE, PLN_OP_ONES, result->forward,
                          &result->reverse));
  PLN_TRY(run_backward(f));
  pln_ref *grads = pln_mem_new(f->engine, size);
  if (!grads)
    return pln_nomem(f->engine);
  for (uint32_t i = 0; i < n; i++)
    grads[i] = f->values[f->value[row->begin + i] - 1].reverse;
  pln_status status = pln_build_tuple(f->b, n, grads, &pair[1]);
  pln_mem_free(f->engine, grads, size);
  PLN_TRY(status);
  PLN_TRY(pln_let_list_wrap(&f->lets, first, pair[1], &pair[1]));
  return pln_build_tuple(f->b, 2, pair, out);
}

static pln_status build_function(first_order *f, pln_ref *params,
                                 pln_graph **out) {
  const pln_graph *g = f->old;
  const pln_node *root = &g->nodes[g->root];
  const pln_scope_row *row = &g->scopes[root->data];
  pln_ref body, function;
  PLN_TRY(add_params(f, params));
  PLN_TRY(later(f, VISIT, row->result));
  PLN_TRY(run_forward(f));
  PLN_TRY(build_pair(f, row->n_params, &body));
  pln_type type = type_of(f, body);
  PLN_TRY(pln_let_list_wrap(&f->lets, 0, body, &body));
  PLN_TRY(pln_build_bind(f->b, row->n_params, params, body, root->attrs, type,
                         &function));
  return pln_builder_seal(f->b, function, out);
}

static void free_state(first_order *f) {
  pln_engine *e = f->engine;
  pln_let_list_free(&f->lets);
  pln_builder_free(f->b);
  pln_mem_free(e, f->value, f->old->n_nodes * sizeof *f->value);
  pln_mem_free(e, f->values, f->cap_values * sizeof *f->values);
  pln_mem_free(e, f->actions, f->cap_actions * sizeof *f->actions);
  pln_mem_free(e, f->parts, f->cap_parts * sizeof *f->parts);
  pln_mem_free(e, f->tasks, f->cap_tasks * sizeof *f->tasks);
}

static pln_status differentiate(pln_pass_run *run, const pln_graph *old,
                                pln_graph **out) {
  first_order f = {.engine = pln_run_engine(run), .old = old};
  const pln_node *root = &old->nodes[old->root];
  bool allowed;
  if (root->kind != PLN_FUNCTION)
    return PLN_OK;
  const pln_scope_row *row = &old->scopes[root->data];
  if (row->type_params)
    return pln_diag_error(f.engine, PLN_ERR_UNSUPPORTED, NULL,
                          "FirstOrderGradient: functions with type parameters "
                          "are not supported");
  PLN_TRY(pln_rule_apply(f.engine, "differentiate", old->root, &allowed));
  if (!allowed)
    return PLN_OK;
  size_t size = (row->n_params + (size_t)1) * sizeof(pln_ref);
  pln_ref *params = pln_mem_new(f.engine, size);
  f.value = pln_mem_zeroed(f.engine, old->n_nodes * sizeof *f.value);
  pln_status status =
      params && f.value ? pln_builder_new(f.engine, &f.b) : pln_nomem(f.engine);
  f.lets.b = f.b;
  if (status == PLN_OK)
    status = build_function(&f, params, out);
  pln_mem_free(f.engine, params, size);
  free_state(&f);
  return status;
}

pln_status pln_pass_first_order_gradient(pln_pass_run *run) {
  return pln_run_on_functions(run, differentiate);
}
