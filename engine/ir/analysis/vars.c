/* vars.c: lists the variables of an expression and the type variables of its
 * types: all, bound, or free.
 *
 * Called by code that binds variables or moves expressions. A variable is its
 * identity; one that is bound anywhere inside is not free. */

#include "ir/graph/graph.h"
#include "ir/infer/type_args.h"
#include "ir/tir/tir.h"
#include "ir/type/type.h"

/* A list of distinct variables in order of discovery. */
typedef struct found {
  uint64_t id;
  uint32_t value; /* a node, or a type */
  bool bound;
} found;

typedef struct var_list {
  pln_engine *engine;
  pln_idmap *index; /* identity -> place + 1 */
  found *items;
  uint32_t n, capacity;
} var_list;

static void free_var_list(var_list *l) {
  pln_idmap_free(l->index);
  pln_mem_free(l->engine, l->items, l->capacity * sizeof *l->items);
}

static pln_status append_var_entry(var_list *l, uint64_t id, uint32_t value,
                                   bool bound) {
  uint32_t at = pln_idmap_get(l->index, id);
  if (at) {
    l->items[at - 1].bound = l->items[at - 1].bound || bound;
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(l->engine, (void **)&l->items, &l->capacity,
                       (size_t)l->n + 1, sizeof *l->items));
  PLN_TRY(pln_idmap_set(l->index, id, l->n + 1));
  l->items[l->n++] = (found){id, value, bound};
  return PLN_OK;
}

static bool wanted(const found *item, pln_var_set which) {
  return which == PLN_VARS_ALL || item->bound == (which == PLN_VARS_BOUND);
}

/* --------------------------------------------------------------- variables */

static pln_status add_var(var_list *l, const pln_graph *g, pln_ref var,
                          bool bound) {
  return append_var_entry(l, g->nodes[var].data, var, bound);
}

static pln_status add_params(var_list *l, const pln_graph *g,
                             const pln_node *owner) {
  for (pln_scope s = owner->data; s != PLN_NONE; s = g->scopes[s].next)
    for (uint32_t i = 0; i < g->scopes[s].n_params; i++)
      PLN_TRY(add_var(l, g, g->scopes[s].begin + i, true));
  return PLN_OK;
}

static pln_status bind_var(void *ud, const pln_graph *g, pln_ref var) {
  return add_var(ud, g, var, true);
}

/* The variables of a Match are found at their patterns. */
static pln_status collect(void *ud, const pln_graph *g, pln_ref node,
                          bool *skip) {
  const pln_node *n = &g->nodes[node];
  (void)skip;
  if (n->kind == PLN_VAR)
    return add_var(ud, g, node, false);
  if (n->kind == PLN_LET || n->kind == PLN_PATTERN_VAR)
    return add_var(ud, g, g->operands[n->first], true);
  if (pln_owns(n) && n->kind != PLN_MATCH)
    PLN_TRY(add_params(ud, g, n));
  return pln_tir_bound_vars(g, node, bind_var, ud);
}

static pln_status visit_listed_vars(const var_list *l, const pln_graph *g,
                                    pln_var_set which, pln_visit_fn fn,
                                    void *ud) {
  for (uint32_t i = 0; i < l->n; i++)
    if (wanted(&l->items[i], which))
      PLN_TRY(fn(ud, g, l->items[i].value));
  return PLN_OK;
}

pln_status pln_graph_vars(const pln_graph *graph, pln_ref node,
                          pln_var_set which, pln_visit_fn fn, void *ud) {
  var_list l = {.engine = graph->engine};
  pln_visitor visitor = {.ud = &l, .enter = collect};
  pln_status status = pln_idmap_new(l.engine, &l.index);
  if (status == PLN_OK)
    status = pln_walk(graph, node, &visitor);
  if (status == PLN_OK)
    status = visit_listed_vars(&l, graph, which, fn, ud);
  free_var_list(&l);
  return status;
}

/* ---------------------------------------------------------- type variables */

typedef struct type_collector {
  var_list list;
  pln_idmap *seen; /* types already visited */
  pln_type *stack; /* types to visit, the next one on top */
  uint32_t top, capacity;
} type_collector;

static pln_status push_type(type_collector *c, pln_type type) {
  pln_engine *e = c->list.engine;
  PLN_TRY(pln_mem_grow(e, (void **)&c->stack, &c->capacity, (size_t)c->top + 1,
                       sizeof *c->stack));
  c->stack[c->top++] = type;
  return PLN_OK;
}

/* A type's own variables, then its parts in order; for a function type its
 * constraints last. */
static pln_status collect_parts(type_collector *c, pln_type type) {
  const pln_engine *e = c->list.engine;
  bool func = pln_type_get_kind(e, type) == PLN_TYPE_FUNC;
  for (uint32_t i = 0; i < pln_type_n_vars(e, type); i++) {
    pln_type var = pln_type_var_at(e, type, i);
    PLN_TRY(append_var_entry(&c->list, var, var, true));
  }
  if (pln_type_get_kind(e, type) == PLN_TYPE_VAR)
    PLN_TRY(append_var_entry(&c->list, type, type, false));
  for (uint32_t i = func ? pln_type_n_constraints(e, type) : 0; i-- > 0;)
    PLN_TRY(push_type(c, pln_type_constraint_at(e, type, i)));
  for (uint32_t i = pln_type_n_parts(e, type); i-- > 0;)
    PLN_TRY(push_type(c, pln_type_part_at(e, type, i)));
  return PLN_OK;
}

static pln_status collect_type(type_collector *c, pln_type type) {
  PLN_TRY(push_type(c, type));
  while (c->top > 0) {
    type = c->stack[--c->top];
    if (pln_idmap_get(c->seen, type))
      continue;
    PLN_TRY(pln_idmap_set(c->seen, type, 1));
    PLN_TRY(collect_parts(c, type));
  }
  return PLN_OK;
}

/* A function's type parameters and parameters; its result type follows its
 * body. */
static pln_status collect_signature(type_collector *c, const pln_graph *g,
                                    const pln_node *function) {
  const pln_engine *e = g->engine;
  const pln_scope_row *row = &g->scopes[function->data];
  for (uint32_t i = 0; i < pln_type_n_parts(e, row->type_params); i++) {
    pln_type var = pln_type_part_at(e, row->type_params, i);
    PLN_TRY(append_var_entry(&c->list, var, var, true));
  }
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(collect_type(c, g->nodes[row->begin + i].type));
  return PLN_OK;
}

static pln_status collect_type_args(type_collector *c, const pln_engine *e,
                                    pln_attrs attrs) {
  const pln_attr *written = pln_written_type_args(e, attrs);
  for (uint32_t i = 0; written && i < written->count; i++)
    PLN_TRY(collect_type(c, written->v.types[i]));
  return PLN_OK;
}

/* Visits declared types: those of variables and functions, and the type
 * arguments of calls. */
static pln_status enter_types(void *ud, const pln_graph *g, pln_ref node,
                              bool *skip) {
  const pln_node *n = &g->nodes[node];
  (void)skip;
  if (n->kind == PLN_FUNCTION)
    return collect_signature(ud, g, n);
  if (pln_has_callee(n))
    return collect_type_args(ud, g->engine, n->attrs);
  bool written = n->kind == PLN_VAR || n->kind == PLN_CONSTRUCTOR;
  return written ? collect_type(ud, n->type) : PLN_OK;
}

static pln_status leave_types(void *ud, const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_FUNCTION ? collect_type(ud, n->type) : PLN_OK;
}

static pln_status visit_type_vars(const var_list *l, pln_var_set which,
                                  pln_type_fn fn, void *ud) {
  for (uint32_t i = 0; i < l->n; i++)
    if (wanted(&l->items[i], which))
      PLN_TRY(fn(ud, l->engine, l->items[i].value));
  return PLN_OK;
}

static pln_status collector_new(type_collector *c, pln_engine *engine) {
  *c = (type_collector){.list = {.engine = engine}};
  PLN_TRY(pln_idmap_new(engine, &c->list.index));
  return pln_idmap_new(engine, &c->seen);
}

static void collector_free(type_collector *c) {
  pln_idmap_free(c->seen);
  pln_mem_free(c->list.engine, c->stack, c->capacity * sizeof *c->stack);
  free_var_list(&c->list);
}

pln_status pln_graph_type_vars(const pln_graph *graph, pln_ref node,
                               pln_var_set which, pln_type_fn fn, void *ud) {
  type_collector c;
  pln_visitor visitor = {.ud = &c, .enter = enter_types, .leave = leave_types};
  pln_status status = collector_new(&c, graph->engine);
  if (status == PLN_OK)
    status = pln_walk(graph, node, &visitor);
  if (status == PLN_OK)
    status = visit_type_vars(&c.list, which, fn, ud);
  collector_free(&c);
  return status;
}

pln_status pln_type_vars(pln_engine *engine, pln_type type, pln_var_set which,
                         pln_type_fn fn, void *ud) {
  type_collector c;
  pln_status status = collector_new(&c, engine);
  if (status == PLN_OK)
    status = collect_type(&c, type);
  if (status == PLN_OK)
    status = visit_type_vars(&c.list, which, fn, ud);
  collector_free(&c);
  return status;
}
