/* to_cps.c: ToCPS: continuation-passing style. A function takes one more
 * parameter, a function, and calls it with its result.
 *
 * Run by the executor, once per module. Requires verified functions without
 * shared values (expression_tree.h). Calls of operators and constructors are
 * bound by lets. What remains to be computed after a call of a function becomes
 * the function that the call gets as its continuation; what remains after an If
 * or a Match is bound by a let before it, because each branch calls it.
 * A function @f of the module that is referred to stays, and @f_cps is added.
 *
 *     def @main(%x) { let %f = fn (%y) { exp(%y) }; tanh(%f(%x)) }   =>
 *     def @main[answer](%x, %k: fn (T) -> answer) -> answer {
 *       let %f = fn (%y, %k1: fn (T) -> answer) { let %x1 = exp(%y); %k1(%x1)
 * }; %f(%x, fn (%arg) { let %x2 = tanh(%arg); %k(%x2) })
 *     }
 *
 * Tasks on an explicit stack take the place of recursion: what remains to be
 * computed at a call is what is on the stack above the end of its function.
 * (Danvy and Filinski, Representing control, 1992.)
 * Semantics: TVM to_cps. */

#include "ir/graph/module.h"
#include "transform/functional/expression_tree.h"
#include "transform/functional/let.h"
#include "transform/transform.h"

#include <stdio.h>

typedef enum task_kind {
  VISIT,        /* push the value of a node */
  STATEMENT,    /* a statement of a scope, then the rest of the scope */
  BIND,         /* a Let whose value is on the stack */
  COMBINE,      /* a node whose operands are on the stack */
  BEGIN_BRANCH, /* open the scope of a branch or arm */
  FINISH,   /* the function or branch has its value: call the continuation */
  CLOSE,    /* the function or branch has its tail call */
  BRANCHES, /* an If or Match whose condition or data is on the stack */
  JOIN      /* an If or Match whose branches are on the stack */
} task_kind;

typedef struct task {
  task_kind kind;
  uint32_t at;  /* a node; STATEMENT, BEGIN_BRANCH: see the functions */
  pln_ref join; /* BRANCHES, BEGIN_BRANCH: the variable of the continuation */
} task;

typedef enum region_kind {
  FUNCTION_BODY, /* ends with a call of %k */
  BRANCH,        /* ends with a call of the variable of the continuation */
  AFTER_CALL,    /* the continuation of a call of a function */
  AFTER_BRANCHES /* that of an If or a Match */
} region_kind;

typedef struct region {
  region_kind kind;
  pln_ref node; /* the old Function, Call, If or Match */
  pln_scope scope;
  pln_ref k;      /* the first two kinds: what is called with the result */
  uint32_t first; /* AFTER_CALL: its callee and arguments, in `kept` */
} region;

typedef struct cps_global {
  pln_symbol name; /* @f_cps */
  pln_type answer;
  pln_type type;
} cps_global;

typedef struct cps {
  pln_engine *engine;
  const pln_module *module;
  cps_global *globals; /* by function of the module; name 0: not referred to */
  uint32_t *queue;     /* the functions to convert, by index */
  uint32_t n_queue;
  /* The function that is converted. */
  const pln_graph *old;
  pln_expression_tree tree;
  pln_builder *b;
  pln_ref *map; /* by node: the image of a variable or pattern */
  pln_type answer;
  pln_type_mutator *types;
  task *tasks;
  region *regions;
  pln_ref *values; /* values; JOIN: scopes of branches */
  pln_ref *kept;
  uint32_t n_tasks, cap_tasks, n_regions, cap_regions;
  uint32_t n_values, cap_values, n_kept, cap_kept;
} cps;

/* -------------------------------------------------------------------- types */

static pln_status continuation_type(cps *c, pln_type value, pln_type *out) {
  return pln_type_func(c->engine, 1, &value, c->answer, 0, NULL, 0, NULL, out);
}

/* fn (T...) -> R   =>   fn (T..., fn (R) -> answer) -> answer. The parts are
 * converted already. */
static pln_status cps_func_type(cps *c, pln_type func, pln_type *out) {
  pln_engine *e = c->engine;
  uint32_t n, all;
  const pln_type *parts = pln_type_all_parts(e, func, &all);
  n = pln_type_n_parts(e, func);
  size_t size = (n + (size_t)1) * sizeof *parts;
  pln_type *params = pln_mem_new(e, size);
  if (!params)
    return pln_nomem(e);
  memcpy(params, parts, n * sizeof *parts);
  pln_status status = continuation_type(c, parts[n - 1], &params[n - 1]);
  uint32_t vars = pln_type_n_vars(e, func);
  if (status == PLN_OK)
    status =
        pln_type_func(e, n, params, c->answer, vars, parts + n,
                      pln_type_n_constraints(e, func), parts + n + vars, out);
  pln_mem_free(e, params, size);
  return status;
}

static pln_status cps_type(void *ud, pln_engine *engine, pln_type old,
                           pln_type *type) {
  if (pln_type_get_kind(engine, old) != PLN_TYPE_FUNC)
    return PLN_OK;
  return cps_func_type(ud, *type, type);
}

/* The type of @f_cps: that of @f with `answer` as its last type parameter. */
static pln_status global_type(cps *c, pln_type old, pln_type answer,
                              pln_type *out) {
  pln_engine *e = c->engine;
  pln_type_mutator *types = c->types;
  pln_type type, vars, outer = c->answer;
  c->answer = answer;
  PLN_TRY(pln_type_mutator_new(e, cps_type, c, &c->types));
  pln_status status = pln_type_mutate(c->types, old, &type);
  pln_type_mutator_free(c->types);
  c->types = types;
  c->answer = outer;
  PLN_TRY(status);
  uint32_t n = pln_type_n_vars(e, type);
  size_t size = (n + (size_t)1) * sizeof(pln_type);
  pln_type *all = pln_mem_new(e, size);
  if (!all)
    return pln_nomem(e);
  for (uint32_t i = 0; i < n; i++)
    all[i] = pln_type_var_at(e, type, i);
  all[n] = answer;
  status = pln_type_make(e, PLN_TYPE_TUPLE, 0, n + 1, all, &vars);
  pln_mem_free(e, all, size);
  PLN_TRY(status);
  return pln_type_generic(e, type, vars, out);
}

static pln_status new_answer(cps *c, pln_type *out) {
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(c->engine, pln_text("answer"), &name));
  return pln_type_var(c->engine, name, PLN_TKIND_TYPE, out);
}

/* ------------------------------------------------------------------- stacks */

static pln_status push_task(cps *c, task t) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->tasks, &c->cap_tasks,
                       (size_t)c->n_tasks + 1, sizeof *c->tasks));
  c->tasks[c->n_tasks++] = t;
  return PLN_OK;
}

static pln_status later(cps *c, task_kind kind, uint32_t at) {
  return push_task(c, (task){.kind = kind, .at = at, .join = PLN_NONE});
}

static pln_status push_value(cps *c, pln_ref value) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->values, &c->cap_values,
                       (size_t)c->n_values + 1, sizeof *c->values));
  c->values[c->n_values++] = value;
  return PLN_OK;
}

static pln_ref pop_value(cps *c) {
  return c->values[--c->n_values];
}

static pln_status open_region(cps *c, region r) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->regions, &c->cap_regions,
                       (size_t)c->n_regions + 1, sizeof *c->regions));
  PLN_TRY(pln_build_open(c->b, &r.scope));
  c->regions[c->n_regions++] = r;
  return PLN_OK;
}

static pln_status intern(cps *c, const char *text, pln_symbol *out) {
  return pln_symbol_intern(c->engine, pln_text(text), out);
}

/* ---------------------------------------------------------------- variables */

static pln_status new_type(cps *c, pln_ref old, pln_type *out) {
  return pln_type_mutate(c->types, c->old->nodes[old].type, out);
}

static pln_status map_param(cps *c, pln_ref old) {
  pln_type type;
  PLN_TRY(new_type(c, old, &type));
  PLN_TRY(pln_builder_derive(c->b, c->old, old));
  return pln_build_param(c->b, c->old->nodes[old].attrs, type, 0, &c->map[old]);
}

static pln_status map_let_var(cps *c, pln_ref old) {
  pln_type type;
  PLN_TRY(new_type(c, old, &type));
  PLN_TRY(pln_builder_derive(c->b, c->old, old));
  return pln_build_var(c->b, c->old->nodes[old].attrs, type, 0, &c->map[old]);
}

/* --------------------------------------------------------- global functions */

static pln_status cps_name(cps *c, uint32_t index, pln_symbol *out) {
  pln_slice old =
      pln_symbol_text(c->engine, pln_module_name_at(c->module, index));
  size_t size = old.size + 32;
  char *text = pln_mem_new(c->engine, size);
  if (!text)
    return pln_nomem(c->engine);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; status == PLN_OK; i++) {
    int n = i ? snprintf(text, size, "%.*s_cps_%u", (int)old.size, old.data, i)
              : snprintf(text, size, "%.*s_cps", (int)old.size, old.data);
    status = pln_symbol_intern(c->engine, (pln_slice){text, (size_t)n}, out);
    if (status != PLN_OK || pln_module_find(c->module, *out) == PLN_NONE)
      break;
  }
  pln_mem_free(c->engine, text, size);
  return status;
}

static pln_status refer_to_global(cps *c, uint32_t index, cps_global *g) {
  const pln_graph *function = pln_module_function_at(c->module, index);
  PLN_TRY(new_answer(c, &g->answer));
  PLN_TRY(global_type(c, function->nodes[function->root].type, g->answer,
                      &g->type));
  PLN_TRY(cps_name(c, index, &g->name));
  c->queue[c->n_queue++] = index;
  return PLN_OK;
}

static uint32_t relay_function(const cps *c, pln_ref global) {
  uint32_t i = pln_module_find(c->module, c->old->nodes[global].data);
  if (i == PLN_NONE)
    return PLN_NONE;
  const pln_graph *g = pln_module_function_at(c->module, i);
  return g->nodes[g->root].kind == PLN_FUNCTION ? i : PLN_NONE;
}

static pln_status visit_global(cps *c, pln_ref old, pln_ref *out) {
  uint32_t i = relay_function(c, old);
  if (i == PLN_NONE)
    return pln_copy_atom(c->b, c->old, old, out);
  cps_global *g = &c->globals[i];
  if (!g->name)
    PLN_TRY(refer_to_global(c, i, g));
  return pln_build_global_var(c->b, g->name, g->type, out);
}

/* ---------------------------------------------------------------- visiting */

static bool is_primitive(const cps *c, const pln_node *n) {
  const pln_attr *mark = pln_attrs_find(c->engine, n->attrs, "Primitive");
  return mark && mark->v.i;
}

static pln_status visit_scope(cps *c, pln_scope scope) {
  pln_ref first = c->tree.first[scope];
  return first != PLN_NONE ? later(c, STATEMENT, first)
                           : later(c, VISIT, c->old->scopes[scope].result);
}

static pln_status add_params(cps *c, pln_scope scope) {
  const pln_scope_row *row = &c->old->scopes[scope];
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(map_param(c, row->begin + i));
  return PLN_OK;
}

static pln_status visit_function(cps *c, pln_ref old) {
  const pln_node *n = &c->old->nodes[old];
  region r = {.kind = FUNCTION_BODY, .node = old};
  pln_type result;
  pln_symbol k;
  if (is_primitive(c, n))
    return pln_refuse_node(c->old, old, "ToCPS",
                           "functions with the attribute Primitive have no "
                           "continuation-passing style");
  PLN_TRY(open_region(c, r));
  PLN_TRY(add_params(c, n->data));
  pln_ref body = c->old->scopes[n->data].result;
  PLN_TRY(new_type(c, body, &result));
  PLN_TRY(continuation_type(c, result, &result));
  PLN_TRY(intern(c, "k", &k));
  PLN_TRY(pln_build_param(c->b, k, result, 0, &c->regions[c->n_regions - 1].k));
  PLN_TRY(later(c, FINISH, old));
  return visit_scope(c, n->data);
}

/* Opens the function that computes what remains, from the value of `old`. */
static pln_status open_continuation(cps *c, region r) {
  pln_type type;
  pln_symbol name;
  pln_ref arg;
  PLN_TRY(open_region(c, r));
  PLN_TRY(new_type(c, r.node, &type));
  PLN_TRY(intern(c, "arg", &name));
  PLN_TRY(pln_builder_derive(c->b, c->old, r.node));
  PLN_TRY(pln_build_param(c->b, name, type, 0, &arg));
  return push_value(c, arg);
}

static pln_status visit_operands(cps *c, pln_ref old) {
  PLN_TRY(later(c, COMBINE, old));
  for (uint32_t i = c->old->nodes[old].count; i-- > 0;)
    PLN_TRY(later(c, VISIT, pln_operand(c->old, old, i)));
  return PLN_OK;
}

/* A Function that is an argument of an operator (the body of a Loop) cannot
 * take a continuation. */
static pln_status check_operator_call(cps *c, pln_ref old) {
  const pln_node *n = &c->old->nodes[old];
  for (uint32_t i = 0; i < n->count && n->kind == PLN_CALL && n->data; i++)
    if (c->old->nodes[pln_operand(c->old, old, i)].kind == PLN_FUNCTION)
      return pln_refuse_node(c->old, old, "ToCPS",
                             "the operator takes a function as argument");
  return PLN_OK;
}

static pln_status visit_atom(cps *c, pln_ref old) {
  pln_ref out = c->map[old];
  if (c->old->nodes[old].kind == PLN_GLOBAL_VAR)
    PLN_TRY(visit_global(c, old, &out));
  else if (out == PLN_NONE)
    PLN_TRY(pln_copy_atom(c->b, c->old, old, &out));
  return push_value(c, out);
}

static pln_status visit(cps *c, pln_ref old) {
  switch ((pln_kind)c->old->nodes[old].kind) {
  case PLN_FUNCTION: return visit_function(c, old);
  case PLN_LET_BLOCK: return visit_scope(c, c->old->nodes[old].data);
  case PLN_IF:
  case PLN_MATCH:
    return open_continuation(c, (region){.kind = AFTER_BRANCHES, .node = old});
  case PLN_CALL:
    PLN_TRY(check_operator_call(c, old));
    return visit_operands(c, old);
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM:
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return visit_operands(c, old);
  default: return visit_atom(c, old);
  }
}

static pln_status visit_statement(cps *c, pln_ref old) {
  const pln_graph *g = c->old;
  pln_ref next = c->tree.next[old];
  if (next != PLN_NONE)
    PLN_TRY(later(c, STATEMENT, next));
  else
    PLN_TRY(later(c, VISIT, g->scopes[pln_graph_scope_of(g, old)].result));
  PLN_TRY(later(c, BIND, old));
  if (g->nodes[old].kind != PLN_LET)
    return later(c, VISIT, old);
  /* A function may refer to itself. */
  if (g->nodes[pln_operand(g, old, 1)].kind == PLN_FUNCTION)
    PLN_TRY(map_let_var(c, pln_operand(g, old, 0)));
  return later(c, VISIT, pln_operand(g, old, 1));
}

static pln_status bind_statement(cps *c, pln_ref old) {
  pln_ref value = pop_value(c), let;
  if (c->old->nodes[old].kind != PLN_LET)
    return PLN_OK;
  pln_ref var = pln_operand(c->old, old, 0);
  if (c->map[var] == PLN_NONE)
    PLN_TRY(map_let_var(c, var));
  PLN_TRY(pln_builder_derive(c->b, c->old, old));
  return pln_build_let(c->b, c->map[var], value, &let);
}

/* ---------------------------------------------------------------- combining */

/* Calls of operators, constructors and functions of other languages have no
 * continuation. */
static bool takes_continuation(const cps *c, const pln_node *n, pln_ref old) {
  if (n->kind != PLN_CALL || n->data)
    return false;
  pln_ref callee = pln_operand(c->old, old, 0);
  pln_kind kind = c->old->nodes[callee].kind;
  return kind != PLN_CONSTRUCTOR && kind != PLN_OP &&
         (kind != PLN_GLOBAL_VAR || relay_function(c, callee) != PLN_NONE);
}

static bool is_bound(const pln_node *n) {
  return n->kind == PLN_CALL || n->kind == PLN_REF_READ ||
         n->kind == PLN_REF_WRITE;
}

static pln_status keep_operands(cps *c, uint32_t n, uint32_t *first) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->kept, &c->cap_kept,
                       (size_t)c->n_kept + n, sizeof *c->kept));
  *first = c->n_kept;
  if (n)
    memcpy(c->kept + c->n_kept, c->values + c->n_values - n,
           n * sizeof *c->kept);
  c->n_kept += n;
  c->n_values -= n;
  return PLN_OK;
}

static pln_status combine(cps *c, pln_ref old) {
  const pln_node *n = &c->old->nodes[old];
  pln_ref out;
  if (takes_continuation(c, n, old)) {
    region r = {.kind = AFTER_CALL, .node = old};
    PLN_TRY(keep_operands(c, n->count, &r.first));
    return open_continuation(c, r);
  }
  pln_node copy = *n;
  copy.type = 0;
  c->n_values -= n->count;
  PLN_TRY(pln_builder_derive(c->b, c->old, old));
  const pln_ref *operands = pln_refs_at(c->values, c->n_values);
  PLN_TRY(pln_builder_add(c->b, &copy, n->count, operands, &out));
  if (is_bound(n))
    PLN_TRY(pln_let_new(c->b, out, &out));
  return push_value(c, out);
}

/* --------------------------------------------------------- ends of functions
 */

static pln_status end_function(cps *c, const region *r, pln_ref result,
                               pln_ref *out) {
  bool own = r->kind == FUNCTION_BODY;
  pln_attrs attrs = own ? c->old->nodes[r->node].attrs : 0;
  PLN_TRY(pln_build_end(c->b, r->scope, result, 0));
  PLN_TRY(pln_builder_derive(c->b, c->old, r->node));
  return pln_build_function(c->b, r->scope, attrs, c->answer, out);
}

/* Its own type parameters; at the root `answer` too. */
static pln_status set_type_params(cps *c, const region *r, pln_ref function) {
  pln_engine *e = c->engine;
  pln_type own = c->old->scopes[c->old->nodes[r->node].data].type_params;
  uint32_t n = own ? pln_type_n_parts(e, own) : 0;
  bool root = c->n_regions == 0;
  if (n == 0 && !root)
    return PLN_OK;
  size_t size = (n + (size_t)1) * sizeof(pln_type);
  pln_type *vars = pln_mem_new(e, size);
  if (!vars)
    return pln_nomem(e);
  for (uint32_t i = 0; i < n; i++)
    vars[i] = pln_type_part_at(e, own, i);
  vars[n] = c->answer;
  pln_status status = pln_build_generic(c->b, function, n + root, vars);
  pln_mem_free(e, vars, size);
  return status;
}

static pln_status end_call(cps *c, const region *r, pln_ref result,
                           pln_ref *out) {
  const pln_node *n = &c->old->nodes[r->node];
  pln_ref k;
  PLN_TRY(end_function(c, r, result, &k));
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->kept, &c->cap_kept,
                       (size_t)c->n_kept + 1, sizeof *c->kept));
  c->kept[c->n_kept] = k;
  PLN_TRY(pln_build_apply(c->b, c->kept[r->first], n->attrs, 0, n->count,
                          c->kept + r->first + 1, out));
  c->n_kept = r->first;
  return PLN_OK;
}

/* Binds the continuation; then the condition is computed. */
static pln_status end_before_branches(cps *c, const region *r, pln_ref result) {
  pln_ref k;
  PLN_TRY(end_function(c, r, result, &k));
  PLN_TRY(pln_let_new(c->b, k, &k));
  PLN_TRY(later(c, CLOSE, r->node));
  PLN_TRY(push_task(c, (task){BRANCHES, r->node, k}));
  return later(c, VISIT, pln_operand(c->old, r->node, 0));
}

/* Ends the continuations inside the innermost function or branch, and that. */
static pln_status close_regions(cps *c) {
  pln_ref result = pop_value(c), function;
  for (;;) {
    region r = c->regions[--c->n_regions];
    switch (r.kind) {
    case AFTER_CALL: PLN_TRY(end_call(c, &r, result, &result)); break;
    case AFTER_BRANCHES: return end_before_branches(c, &r, result);
    case BRANCH:
      PLN_TRY(pln_build_end(c->b, r.scope, result, 0));
      return push_value(c, r.scope);
    case FUNCTION_BODY:
      PLN_TRY(end_function(c, &r, result, &function));
      PLN_TRY(set_type_params(c, &r, function));
      return push_value(c, function);
    }
  }
}

static pln_ref innermost_continuation(const cps *c) {
  uint32_t i = c->n_regions - 1;
  while (c->regions[i].kind > BRANCH)
    i--;
  return c->regions[i].k;
}

static pln_status finish(cps *c) {
  pln_ref value = pop_value(c), call;
  c->b->origin = 0;
  PLN_TRY(
      pln_build_apply(c->b, innermost_continuation(c), 0, 0, 1, &value, &call));
  PLN_TRY(push_value(c, call));
  return close_regions(c);
}

/* ----------------------------------------------------------------- branches */

static pln_status begin_branches(cps *c, pln_ref old, pln_ref join) {
  PLN_TRY(later(c, JOIN, old));
  uint32_t first = c->n_tasks;
  for (pln_scope s = c->old->nodes[old].data; s != PLN_NONE;
       s = c->old->scopes[s].next)
    PLN_TRY(push_task(c, (task){BEGIN_BRANCH, s, join}));
  pln_mem_reverse(c->tasks + first, c->n_tasks - first, sizeof *c->tasks);
  return PLN_OK;
}

static pln_status begin_branch(cps *c, pln_scope scope, pln_ref join) {
  const pln_scope_row *row = &c->old->scopes[scope];
  PLN_TRY(
      open_region(c, (region){.kind = BRANCH, .node = row->owner, .k = join}));
  if (c->old->nodes[row->owner].kind == PLN_MATCH) {
    PLN_TRY(add_params(c, scope));
    PLN_TRY(pln_copy_pattern(c->b, c->old, scope, c->map));
  }
  PLN_TRY(later(c, FINISH, row->owner));
  return visit_scope(c, scope);
}

static pln_status join_branches(cps *c, pln_ref old) {
  const pln_node *n = &c->old->nodes[old];
  uint32_t k = pln_node_n_scopes(c->old, old);
  c->n_values -= k + 1;
  const pln_ref *v = c->values + c->n_values;
  pln_ref out;
  PLN_TRY(pln_builder_derive(c->b, c->old, old));
  if (n->kind == PLN_IF) {
    PLN_TRY(pln_build_if(c->b, v[0], v[1], v[2], n->attrs, 0, &out));
  } else {
    const pln_attr *mark = pln_attrs_find(c->engine, n->attrs, "complete");
    PLN_TRY(pln_build_match(c->b, v[0], mark && mark->v.i, k, v + 1, &out));
  }
  return push_value(c, out);
}

/* --------------------------------------------------------------- a function */

static pln_status run_task(cps *c, task t) {
  switch (t.kind) {
  case VISIT: return visit(c, t.at);
  case STATEMENT: return visit_statement(c, t.at);
  case BIND: return bind_statement(c, t.at);
  case COMBINE: return combine(c, t.at);
  case BEGIN_BRANCH: return begin_branch(c, t.at, t.join);
  case FINISH: return finish(c);
  case CLOSE: return close_regions(c);
  case BRANCHES: return begin_branches(c, t.at, t.join);
  case JOIN: return join_branches(c, t.at);
  }
  return PLN_OK;
}

static pln_status convert_body(cps *c, pln_graph **out) {
  pln_builder_module(c->b, c->module);
  c->b->lenient = pln_module_was_onnx(c->module);
  PLN_TRY(later(c, VISIT, c->old->root));
  while (c->n_tasks > 0)
    PLN_TRY(run_task(c, c->tasks[--c->n_tasks]));
  return pln_builder_seal(c->b, pop_value(c), out);
}

static pln_status prepare(cps *c, const pln_graph *old) {
  size_t n = old->n_nodes * sizeof *c->map;
  c->old = old;
  c->n_tasks = c->n_regions = c->n_values = c->n_kept = 0;
  c->map = pln_mem_new(c->engine, n);
  if (!c->map)
    return pln_nomem(c->engine);
  memset(c->map, 0xff, n);
  PLN_TRY(pln_expression_tree_new(old, "ToCPS", &c->tree));
  PLN_TRY(pln_type_mutator_new(c->engine, cps_type, c, &c->types));
  return pln_builder_new(c->engine, &c->b);
}

static pln_status convert(cps *c, const pln_graph *old, pln_type answer,
                          pln_graph **out) {
  c->answer = answer;
  pln_status status = prepare(c, old);
  if (status == PLN_OK)
    status = convert_body(c, out);
  pln_builder_free(c->b);
  pln_type_mutator_free(c->types);
  pln_expression_tree_free(&c->tree);
  pln_mem_free(c->engine, c->map, old->n_nodes * sizeof *c->map);
  c->b = NULL;
  c->types = NULL;
  c->map = NULL;
  return status;
}

/* ----------------------------------------------------------------- a module */

static pln_status replace_function(cps *c, pln_module *out, uint32_t index) {
  const pln_graph *old = pln_module_function_at(c->module, index);
  pln_graph *graph = NULL;
  pln_type answer;
  bool allowed = false;
  if (!pln_pass_applies(old) || old->nodes[old->root].kind != PLN_FUNCTION)
    return PLN_OK;
  PLN_TRY(pln_rule_apply(c->engine, "convert", old->root, &allowed));
  if (!allowed)
    return PLN_OK;
  PLN_TRY(new_answer(c, &answer));
  pln_status status = convert(c, old, answer, &graph);
  if (status == PLN_OK)
    status = pln_module_set(out, pln_module_name_at(c->module, index), graph);
  pln_graph_release(graph);
  return status;
}

/* Converting a function may add others to the queue. */
static pln_status add_global_functions(cps *c, pln_module *out) {
  for (uint32_t i = 0; i < c->n_queue; i++) {
    const cps_global *g = &c->globals[c->queue[i]];
    pln_graph *graph = NULL;
    pln_status status = convert(
        c, pln_module_function_at(c->module, c->queue[i]), g->answer, &graph);
    if (status == PLN_OK)
      status = pln_module_set(out, g->name, graph);
    pln_graph_release(graph);
    PLN_TRY(status);
  }
  return PLN_OK;
}

static pln_status convert_module(cps *c, pln_module *out) {
  for (uint32_t i = 0; i < pln_module_count(c->module); i++)
    PLN_TRY(replace_function(c, out, i));
  return add_global_functions(c, out);
}

static void free_stacks(cps *c) {
  pln_engine *e = c->engine;
  pln_mem_free(e, c->tasks, c->cap_tasks * sizeof *c->tasks);
  pln_mem_free(e, c->regions, c->cap_regions * sizeof *c->regions);
  pln_mem_free(e, c->values, c->cap_values * sizeof *c->values);
  pln_mem_free(e, c->kept, c->cap_kept * sizeof *c->kept);
}

pln_status pln_pass_to_cps(pln_pass_run *run) {
  cps c = {.engine = pln_run_engine(run), .module = run->module};
  size_t n = pln_module_count(c.module) + (size_t)1;
  pln_module *out = NULL;
  c.globals = pln_mem_zeroed(c.engine, n * sizeof *c.globals);
  c.queue = pln_mem_new(c.engine, n * sizeof *c.queue);
  pln_status status = c.globals && c.queue ? pln_module_copy(c.module, &out)
                                           : pln_nomem(c.engine);
  if (status == PLN_OK)
    status = convert_module(&c, out);
  free_stacks(&c);
  pln_mem_free(c.engine, c.globals, n * sizeof *c.globals);
  pln_mem_free(c.engine, c.queue, n * sizeof *c.queue);
  if (status == PLN_OK)
    pln_run_set_module(run, out);
  else
    pln_module_release(out);
  return status;
}
