/* partial_evaluate.c: PartialEvaluate: runs a module as far as it is known, and
 * writes down what is left as lets.
 *
 * Run by the executor, once per module. Requires verified functions without
 * shared values (expression_tree.h). Calls of functions that are known are
 * inlined, operators on constants computed, branches chosen, references
 * followed until an unknown effect. Tasks on an explicit stack take the place
 * of recursion. The option max_steps bounds their number, because a program
 * with many branches may grow exponentially.
 *
 *     def @main(%x) { let %f = fn (%y) { add(%y, 1f) }; %f(%f(%x)) }   =>
 *     def @main(%x) {
 *       let %f = fn (%y) { let %a = 1f; let %b = add(%y, %a); %b };
 *       let %c = 1f; let %d = add(%x, %c); let %e = 1f; let %g = add(%d, %e);
 *       %g
 *     }
 *
 * Semantics: TVM PartialEvaluate, also in what it computes, in which order, and
 * when it stops inlining; except that TVM evaluates calls of primitive
 * functions on constants, and takes calls of functions that it does not inline
 * for calls without effects. */

#include "transform/partial_eval/partial_evaluate.h"

#include "transform/functional/let.h"
#include "transform/transform.h"

/* What is restored when a Function is complete. */
typedef struct saved_function {
  pe_value *value;
  pln_scope scope;
  pe_store_mark mark;
  bool bound; /* by a let */
} saved_function;

/* What is restored when a function of the module is complete. */
typedef struct saved_global {
  pln_builder *b;
  pe_frame *frame;
  uint32_t index;
} saved_global;

static const pln_graph *graph_of(const pe_run *pe) {
  return pe->frame->source->graph;
}

static const pln_node *node_of(const pe_run *pe, pln_ref node) {
  return &graph_of(pe)->nodes[node];
}

/* ---------------------------------------------------------------- functions */

static pln_status begin_function(pe_run *pe, pe_value *closure,
                                 saved_function *f) {
  f->value = closure;
  f->mark = pe_store_begin(pe);
  pe_store_invalidate(pe);
  PLN_TRY(pe_later(pe, PE_END_FUNCTION, 0, f));
  PLN_TRY(pln_build_open(pe->b, &f->scope));
  return pe_apply_unknown(pe, closure);
}

static pln_status build_function(pe_run *pe, const saved_function *f,
                                 pln_ref *out) {
  const pe_closure *c = f->value->of.closure;
  const pln_graph *g = c->source->graph;
  const pln_node *old = &g->nodes[c->function];
  pln_type vars = g->scopes[old->data].type_params, ret = 0;
  uint32_t parts = pln_type_n_parts(pe->engine, old->type);
  pln_ref result;
  if (parts)
    PLN_TRY(pe_type(pe, &c->types,
                    pln_type_part_at(pe->engine, old->type, parts - 1), &ret));
  PLN_TRY(pe_node(pe, pe_pop(pe), &result));
  PLN_TRY(pln_build_end(pe->b, f->scope, result, 0));
  PLN_TRY(pln_builder_derive(pe->b, g, c->function));
  PLN_TRY(pln_build_function(pe->b, f->scope, old->attrs, ret, out));
  if (!vars)
    return PLN_OK;
  uint32_t n;
  const pln_type *list = pln_type_all_parts(pe->engine, vars, &n);
  return pln_build_generic(pe->b, *out, n, list);
}

/* The variable is made before the function, which may refer to it. */
static pln_status visit_function(pe_run *pe, pln_ref function, pln_ref let) {
  const pln_graph *g = graph_of(pe);
  pln_ref self = let == PLN_NONE ? PLN_NONE : pln_operand(g, let, 0);
  saved_function *f = pe_alloc(pe, sizeof *f);
  pe_value *closure = pe_alloc(pe, sizeof *closure);
  pln_symbol name;
  pln_type type;
  if (!f || !closure)
    return PLN_ERR_NOMEM;
  closure->kind = PE_CLOSURE;
  PLN_TRY(pe_closure_new(pe, function, self, &closure->of.closure));
  PLN_TRY(pe_type(pe, &pe->frame->types, g->nodes[function].type, &type));
  PLN_TRY(pln_symbol_intern(pe->engine, pln_text("x"), &name));
  if (self != PLN_NONE)
    name = g->nodes[self].attrs;
  PLN_TRY(pln_builder_derive(pe->b, g, function));
  PLN_TRY(pln_build_var(pe->b, name, type, 0, &closure->node));
  f->bound = true;
  return begin_function(pe, closure, f);
}

/* A function that is an operator's argument stays its argument. */
static pln_status visit_operator_function(pe_run *pe, pln_ref function) {
  saved_function *f = pe_alloc(pe, sizeof *f);
  pe_value *closure = pe_alloc(pe, sizeof *closure);
  if (!f || !closure)
    return PLN_ERR_NOMEM;
  closure->kind = PE_CLOSURE;
  PLN_TRY(pe_closure_new(pe, function, PLN_NONE, &closure->of.closure));
  return begin_function(pe, closure, f);
}

static pln_status end_function(pe_run *pe, saved_function *f) {
  pe_value *value;
  pln_ref function, let;
  PLN_TRY(build_function(pe, f, &function));
  pe_store_rollback(pe, f->mark);
  if (!f->bound) {
    PLN_TRY(pe_value_new(pe, PE_UNKNOWN, function, &value));
    return pe_push(pe, value);
  }
  PLN_TRY(pln_build_let(pe->b, f->value->node, function, &let));
  PLN_TRY(pe_value_new(pe, PE_CLOSURE, f->value->node, &value));
  value->of.closure = f->value->of.closure;
  return pe_push(pe, value);
}

/* ------------------------------------------------- functions of the module */

static bool is_evaluated(const pe_run *pe, uint32_t index) {
  if (index == PLN_NONE)
    return false;
  const pln_graph *g = pln_module_function_at(pe->module, index);
  return g->nodes[g->root].kind == PLN_FUNCTION && pln_pass_applies(g);
}

/* Evaluates a function of the module in a builder of its own. */
static pln_status begin_global(pe_run *pe, uint32_t index, pe_value *value) {
  pe_source *s = &pe->sources[index];
  const pln_graph *g = pln_module_function_at(pe->module, index);
  saved_global *saved = pe_alloc(pe, sizeof *saved);
  saved_function *f = pe_alloc(pe, sizeof *f);
  pe_closure *c = pe_alloc(pe, sizeof *c);
  if (!saved || !f || !c)
    return PLN_ERR_NOMEM;
  PLN_TRY(pe_source_prepare(s, g));
  *saved = (saved_global){pe->b, pe->frame, index};
  *c = (pe_closure){.source = s, .function = g->root, .self = PLN_NONE};
  value->of.closure = c;
  PLN_TRY(pe_later(pe, PE_END_GLOBAL, 0, saved));
  PLN_TRY(pln_builder_new(pe->engine, &pe->b));
  pln_builder_module(pe->b, pe->module);
  pe->b->lenient = pln_module_was_onnx(pe->module);
  return begin_function(pe, value, f);
}

static pln_status end_global(pe_run *pe, saved_global *saved) {
  pln_status status = pln_builder_seal(pe->b, pe_pop(pe)->node,
                                       &pe->globals[saved->index].result);
  pln_builder_free(pe->b);
  pe->b = saved->b;
  pe->frame = saved->frame;
  return status;
}

/* Its value is known before its body is evaluated. */
static pln_status need_global(pe_run *pe, uint32_t index, pe_value **out) {
  pe_global *global = &pe->globals[index];
  *out = global->value;
  if (*out)
    return PLN_OK;
  PLN_TRY(pe_value_new(pe, PE_CLOSURE, PLN_NONE, out));
  (*out)->global = pln_module_name_at(pe->module, index);
  global->value = *out;
  return begin_global(pe, index, *out);
}

/* ---------------------------------------------------------------- visiting */

static pln_status visit_scope(pe_run *pe, pln_scope scope) {
  const pe_source *s = pe->frame->source;
  pln_ref first = s->tree.first[scope];
  return first != PLN_NONE
             ? pe_later(pe, PE_STATEMENT, first, NULL)
             : pe_later(pe, PE_VISIT, s->graph->scopes[scope].result, NULL);
}

static pln_status visit_statement(pe_run *pe, pln_ref old) {
  const pe_source *s = pe->frame->source;
  const pln_graph *g = s->graph;
  pln_ref next = s->tree.next[old];
  if (next != PLN_NONE)
    PLN_TRY(pe_later(pe, PE_STATEMENT, next, NULL));
  else
    PLN_TRY(pe_later(pe, PE_VISIT, g->scopes[pln_graph_scope_of(g, old)].result,
                     NULL));
  PLN_TRY(pe_later(pe, PE_BIND, old, NULL));
  if (g->nodes[old].kind != PLN_LET)
    return pe_later(pe, PE_VISIT, old, NULL);
  pln_ref value = pln_operand(g, old, 1);
  if (g->nodes[value].kind == PLN_FUNCTION)
    return visit_function(pe, value, old);
  return pe_later(pe, PE_VISIT, value, NULL);
}

static pln_status bind_statement(pe_run *pe, pln_ref old) {
  pe_value *value = pe_pop(pe);
  if (node_of(pe, old)->kind == PLN_LET)
    *pe_slot(pe, pln_operand(graph_of(pe), old, 0)) = value;
  return PLN_OK;
}

static pln_status visit_operands(pe_run *pe, pln_ref old) {
  const pln_node *n = node_of(pe, old);
  PLN_TRY(pe_later(pe, PE_COMBINE, old, NULL));
  for (uint32_t i = n->count; i-- > 0;)
    PLN_TRY(pe_later(
        pe, n->kind == PLN_CALL && n->data ? PE_VISIT_ARGUMENT : PE_VISIT,
        pln_operand(graph_of(pe), old, i), NULL));
  return PLN_OK;
}

static pln_status visit_constant(pe_run *pe, pln_ref old) {
  const pln_graph *g = graph_of(pe);
  pe_value *value;
  pln_ref node;
  PLN_TRY(pln_copy_atom(pe->b, g, old, &node));
  PLN_TRY(pe_bind(pe, PE_TENSOR, node, &value));
  value->of.tensor = g->tensors[g->nodes[old].data];
  value->whole = true;
  return pe_push(pe, value);
}

static pln_status visit_atom(pe_run *pe, pe_kind kind, pln_ref old) {
  pe_value *value;
  PLN_TRY(pe_value_new(pe, kind, old, &value));
  value->atom = graph_of(pe);
  return pe_push(pe, value);
}

/* Nothing is known of functions that passes skip, and of TIR. */
static pln_status visit_global(pe_run *pe, pln_ref old) {
  uint32_t index = pln_module_find(pe->module, node_of(pe, old)->data);
  pe_value *out;
  if (!is_evaluated(pe, index))
    return visit_atom(pe, PE_UNKNOWN, old);
  PLN_TRY(need_global(pe, index, &out));
  return pe_push(pe, out);
}

static pln_status visit_var(pe_run *pe, pln_ref old) {
  pe_value **slot = pe_slot(pe, old);
  if (!slot || !*slot)
    return pln_refuse_node(graph_of(pe), old, "PartialEvaluate",
                           "a variable that nothing binds");
  return pe_push(pe, *slot);
}

static pln_status visit(pe_run *pe, pln_ref old) {
  const pln_node *n = node_of(pe, old);
  switch ((pln_kind)n->kind) {
  case PLN_CONSTANT: return visit_constant(pe, old);
  case PLN_VAR: return visit_var(pe, old);
  case PLN_GLOBAL_VAR: return visit_global(pe, old);
  case PLN_FUNCTION: return visit_function(pe, old, PLN_NONE);
  case PLN_LET_BLOCK: return visit_scope(pe, n->data);
  case PLN_IF:
    PLN_TRY(pe_later(pe, PE_CHOOSE, old, NULL));
    return pe_later(pe, PE_VISIT, pln_operand(graph_of(pe), old, 0), NULL);
  case PLN_MATCH:
    PLN_TRY(pe_later(pe, PE_SELECT, old, NULL));
    return pe_later(pe, PE_VISIT, pln_operand(graph_of(pe), old, 0), NULL);
  case PLN_OP: return visit_atom(pe, PE_OPERATOR, old);
  case PLN_CONSTRUCTOR: return visit_atom(pe, PE_CONSTRUCTOR, old);
  case PLN_ABSENT: return visit_atom(pe, PE_UNKNOWN, old);
  default: return visit_operands(pe, old);
  }
}

/* ---------------------------------------------------------------- combining */

/* Writes a node with the operands and binds it. */
static pln_status write_node(pe_run *pe, pe_kind kind, pln_ref old, uint32_t n,
                             pe_value **args, pe_value **out) {
  pln_node copy = *node_of(pe, old);
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *parts = pln_mem_new(pe->engine, size), node = PLN_NONE;
  pln_status status = parts ? PLN_OK : pln_nomem(pe->engine);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = pe_node(pe, args[i], &parts[i]);
  copy.type = 0;
  if (status == PLN_OK)
    status = pln_builder_derive(pe->b, graph_of(pe), old);
  if (status == PLN_OK)
    status = pln_builder_add(pe->b, &copy, n, parts, &node);
  pln_mem_free(pe->engine, parts, size);
  PLN_TRY(status);
  return pe_bind(pe, kind, node, out);
}

static pln_status combine_tuple(pe_run *pe, pln_ref old, uint32_t n,
                                pe_value **args, pe_value **out) {
  PLN_TRY(write_node(pe, PE_TUPLE, old, n, args, out));
  (*out)->n = n;
  (*out)->fields = args;
  (*out)->whole = true;
  for (uint32_t i = 0; i < n; i++)
    (*out)->whole &= args[i]->whole;
  return PLN_OK;
}

static pln_status combine_get(pe_run *pe, pln_ref old, pe_value **args,
                              pe_value **out) {
  uint32_t index = node_of(pe, old)->data;
  if (args[0]->kind != PE_TUPLE || index >= args[0]->n)
    return write_node(pe, PE_UNKNOWN, old, 1, args, out);
  *out = args[0]->fields[index];
  return PLN_OK;
}

static pln_status combine_create(pe_run *pe, pln_ref old, pe_value **args,
                                 pe_value **out) {
  pe_cell *cell = pe_alloc(pe, sizeof *cell);
  if (!cell)
    return PLN_ERR_NOMEM;
  PLN_TRY(pe_store_write(pe, cell, args[0]));
  PLN_TRY(write_node(pe, PE_CELL, old, 1, args, out));
  (*out)->of.cell = cell;
  return PLN_OK;
}

static pln_status combine_read(pe_run *pe, pln_ref old, pe_value **args,
                               pe_value **out) {
  *out = args[0]->kind == PE_CELL ? pe_store_read(pe, args[0]->of.cell) : NULL;
  return *out ? PLN_OK : write_node(pe, PE_UNKNOWN, old, 1, args, out);
}

static pln_status combine_write(pe_run *pe, pln_ref old, pe_value **args,
                                pe_value **out) {
  if (args[0]->kind == PE_CELL)
    PLN_TRY(pe_store_write(pe, args[0]->of.cell, args[1]));
  else
    pe_store_invalidate(pe);
  return write_node(pe, PE_TUPLE, old, 2, args, out);
}

static pln_status construct(pe_run *pe, pln_ref old, uint32_t n,
                            pe_value **args, pe_value **out) {
  const pe_value *constructor = args[0];
  PLN_TRY(pe_residual_call(pe, old, constructor, n - 1, args + 1, out));
  (*out)->kind = PE_ADT;
  (*out)->of.constructor = constructor->atom->nodes[constructor->node].data;
  (*out)->n = n - 1;
  (*out)->fields = args + 1;
  return PLN_OK;
}

/* A call of operand 0; an unknown function may have any effect. */
static pln_status combine_apply(pe_run *pe, pln_ref old, uint32_t n,
                                pe_value **args, pe_value **out) {
  pe_value *callee = args[0];
  switch (callee->kind) {
  case PE_CLOSURE: return pe_apply(pe, old, callee, n - 1, args + 1);
  case PE_CONSTRUCTOR: return construct(pe, old, n, args, out);
  case PE_OPERATOR:
    return pe_operator_call(pe, old, callee->atom->nodes[callee->node].data,
                            n - 1, args + 1, out);
  default:
    pe_store_invalidate(pe);
    return pe_residual_call(pe, old, callee, n - 1, args + 1, out);
  }
}

/* An operator that calls its argument may have the effects of that. */
static pln_status combine_operator(pe_run *pe, pln_ref old, uint32_t n,
                                   pe_value **args, pe_value **out) {
  const pln_node *call = node_of(pe, old);
  const uint32_t calls = PLN_TRAIT_BODY | PLN_TRAIT_FUNCTIONS;
  if (pln_op_row(pe->engine, call->data)->traits & calls)
    pe_store_invalidate(pe);
  return pe_operator_call(pe, old, call->data, n, args, out);
}

static pln_status combine_node(pe_run *pe, pln_ref old, uint32_t n,
                               pe_value **args, pe_value **out) {
  const pln_node *node = node_of(pe, old);
  switch ((pln_kind)node->kind) {
  case PLN_TUPLE: return combine_tuple(pe, old, n, args, out);
  case PLN_TUPLE_GET_ITEM: return combine_get(pe, old, args, out);
  case PLN_REF_CREATE: return combine_create(pe, old, args, out);
  case PLN_REF_READ: return combine_read(pe, old, args, out);
  case PLN_REF_WRITE: return combine_write(pe, old, args, out);
  case PLN_CALL:
    return node->data ? combine_operator(pe, old, n, args, out)
                      : combine_apply(pe, old, n, args, out);
  default:
    return pln_refuse_node(graph_of(pe), old, "PartialEvaluate",
                           "not an expression of Relay");
  }
}

/* A call that is inlined pushes its value later. */
static pln_status combine(pe_run *pe, pln_ref old) {
  uint32_t n = node_of(pe, old)->count;
  pe_value **args = pe_alloc(pe, n * sizeof *args), *out = NULL;
  if (!args)
    return PLN_ERR_NOMEM;
  pe->n_values -= n;
  if (n)
    memcpy(args, pe->values + pe->n_values, n * sizeof *args);
  PLN_TRY(combine_node(pe, old, n, args, &out));
  return out ? pe_push(pe, out) : PLN_OK;
}

/* ----------------------------------------------------------------- branches */

static pln_status keep_scope(pe_run *pe, pln_scope scope) {
  PLN_TRY(pln_mem_grow(pe->engine, (void **)&pe->scopes, &pe->cap_scopes,
                       (size_t)pe->n_scopes + 1, sizeof *pe->scopes));
  pe->scopes[pe->n_scopes++] = scope;
  return PLN_OK;
}

/* Evaluates all branches, each with the store as it is now. */
static pln_status begin_branches(pe_run *pe, pln_ref old, pe_value *value) {
  PLN_TRY(pe_later(pe, PE_JOIN, old, value));
  const pln_graph *g = graph_of(pe);
  uint32_t first = pe->n_tasks;
  for (pln_scope s = g->nodes[old].data; s != PLN_NONE; s = g->scopes[s].next)
    PLN_TRY(pe_later(pe, PE_BEGIN_BRANCH, s, NULL));
  pln_mem_reverse(pe->tasks + first, pe->n_tasks - first, sizeof *pe->tasks);
  return PLN_OK;
}

static pln_status choose_branch(pe_run *pe, pln_ref old) {
  pe_value *cond = pe_pop(pe);
  const void *data;
  if (cond->kind != PE_TENSOR || cond->of.tensor->dtype != PLN_BOOL)
    return begin_branches(pe, old, cond);
  PLN_TRY(pln_tensor_data(cond->of.tensor, &data));
  bool taken = *(const uint8_t *)data;
  return visit_scope(pe, pln_node_scope(graph_of(pe), old, !taken));
}

static pln_status select_arm(pe_run *pe, pln_ref old) {
  pe_value *data = pe_pop(pe);
  const pln_graph *g = graph_of(pe);
  for (pln_scope arm = g->nodes[old].data; arm != PLN_NONE;
       arm = g->scopes[arm].next) {
    pe_match match;
    PLN_TRY(pe_match_pattern(pe, arm, data, &match));
    if (match == PE_MATCH)
      return visit_scope(pe, arm);
    if (match == PE_MATCH_UNKNOWN)
      break;
  }
  return begin_branches(pe, old, data);
}

/* The variables of a pattern become parameters of the new arm. */
static pln_status begin_arm(pe_run *pe, pln_scope arm) {
  const pln_graph *g = graph_of(pe);
  const pln_scope_row *row = &g->scopes[arm];
  pln_ref *map = pe->frame->source->map;
  for (uint32_t i = 0; i < row->n_params; i++) {
    pln_ref var = row->begin + i;
    pln_type type;
    PLN_TRY(pe_type(pe, &pe->frame->types, g->nodes[var].type, &type));
    PLN_TRY(pln_build_param(pe->b, g->nodes[var].attrs, type, 0, &map[var]));
    PLN_TRY(pe_value_new(pe, PE_UNKNOWN, map[var], pe_slot(pe, var)));
  }
  return pln_copy_pattern(pe->b, g, arm, map);
}

static pln_status begin_branch(pe_run *pe, pln_scope branch) {
  saved_function *f = pe_alloc(pe, sizeof *f);
  if (!f)
    return PLN_ERR_NOMEM;
  f->mark = pe_store_begin(pe);
  PLN_TRY(pln_build_open(pe->b, &f->scope));
  if (node_of(pe, graph_of(pe)->scopes[branch].owner)->kind == PLN_MATCH)
    PLN_TRY(begin_arm(pe, branch));
  PLN_TRY(pe_later(pe, PE_END_BRANCH, branch, f));
  return visit_scope(pe, branch);
}

static pln_status end_branch(pe_run *pe, saved_function *f) {
  pln_ref result;
  PLN_TRY(pe_node(pe, pe_pop(pe), &result));
  PLN_TRY(pln_build_end(pe->b, f->scope, result, 0));
  pe_store_rollback(pe, f->mark);
  return keep_scope(pe, f->scope);
}

/* The branches may have had any effect. */
static pln_status join_branches(pe_run *pe, pln_ref old, pe_value *value) {
  const pln_node *n = node_of(pe, old);
  uint32_t k = pln_node_n_scopes(graph_of(pe), old);
  const pln_scope *s = pe->scopes + (pe->n_scopes -= k);
  pln_ref data, node;
  pe_value *out;
  pe_store_invalidate(pe);
  PLN_TRY(pe_node(pe, value, &data));
  PLN_TRY(pln_builder_derive(pe->b, graph_of(pe), old));
  if (n->kind == PLN_IF) {
    PLN_TRY(pln_build_if(pe->b, data, s[0], s[1], n->attrs, n->results, &node));
  } else {
    const pln_attr *mark = pln_attrs_find(pe->engine, n->attrs, "complete");
    PLN_TRY(pln_build_match(pe->b, data, mark && mark->v.i, k, s, &node));
  }
  PLN_TRY(pe_bind(pe, PE_UNKNOWN, node, &out));
  return pe_push(pe, out);
}

/* --------------------------------------------------------------- the module */

static pln_status run_task(pe_run *pe, const pe_task *t) {
  switch (t->kind) {
  case PE_VISIT: return visit(pe, t->at);
  case PE_VISIT_ARGUMENT:
    return node_of(pe, t->at)->kind == PLN_FUNCTION
               ? visit_operator_function(pe, t->at)
               : visit(pe, t->at);
  case PE_STATEMENT: return visit_statement(pe, t->at);
  case PE_BIND: return bind_statement(pe, t->at);
  case PE_COMBINE: return combine(pe, t->at);
  case PE_CHOOSE: return choose_branch(pe, t->at);
  case PE_SELECT: return select_arm(pe, t->at);
  case PE_BEGIN_BRANCH: return begin_branch(pe, t->at);
  case PE_END_BRANCH: return end_branch(pe, t->data);
  case PE_JOIN: return join_branches(pe, t->at, t->data);
  case PE_RETURN: return pe_return(pe, t->data);
  case PE_END_FUNCTION: return end_function(pe, t->data);
  case PE_END_GLOBAL: return end_global(pe, t->data);
  }
  return PLN_OK;
}

static pln_status run_tasks(pe_run *pe) {
  while (pe->n_tasks > 0) {
    pe_task t = pe->tasks[--pe->n_tasks];
    if (++pe->steps > pe->most_steps)
      return pln_diag_error(
          pe->engine, PLN_ERR_LIMIT, NULL,
          "PartialEvaluate: the program is not evaluated after %llu steps, the "
          "value of the option max_steps",
          (unsigned long long)pe->most_steps);
    PLN_TRY(run_task(pe, &t));
  }
  return PLN_OK;
}

static pln_status evaluate_module(pe_run *pe) {
  for (uint32_t i = 0; i < pln_module_count(pe->module); i++) {
    pe_value *value;
    if (!is_evaluated(pe, i) || pe->globals[i].value)
      continue;
    PLN_TRY(need_global(pe, i, &value));
    PLN_TRY(run_tasks(pe));
  }
  return PLN_OK;
}

static pln_status replace_functions(pln_pass_run *run, pe_run *pe) {
  uint32_t n = pln_module_count(pe->module);
  pln_module *out;
  PLN_TRY(pln_module_copy(pe->module, &out));
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    if (pe->globals[i].result)
      status = pln_module_set(out, pln_module_name_at(pe->module, i),
                              pe->globals[i].result);
  if (status == PLN_OK)
    pln_run_set_module(run, out);
  else
    pln_module_release(out);
  return status;
}

/* After a failure the builders of the functions that were begun are in the
 * saved state of the tasks that end them. */
static void free_builders(pe_run *pe) {
  while (pe->n_tasks > 0) {
    const pe_task *t = &pe->tasks[--pe->n_tasks];
    if (t->kind != PE_END_GLOBAL)
      continue;
    pln_builder_free(pe->b);
    pe->b = ((saved_global *)t->data)->b;
  }
}

static void free_run(pe_run *pe) {
  pln_engine *e = pe->engine;
  uint32_t n = pln_module_count(pe->module);
  free_builders(pe);
  for (uint32_t i = 0; i < n; i++) {
    if (pe->sources)
      pe_source_free(&pe->sources[i]);
    if (pe->globals)
      pln_graph_release(pe->globals[i].result);
  }
  pln_mem_free(e, pe->sources, (n + (size_t)1) * sizeof *pe->sources);
  pln_mem_free(e, pe->globals, (n + (size_t)1) * sizeof *pe->globals);
  pln_mem_free(e, pe->tasks, pe->cap_tasks * sizeof *pe->tasks);
  pln_mem_free(e, pe->values, pe->cap_values * sizeof *pe->values);
  pln_mem_free(e, pe->undo, pe->cap_undo * sizeof *pe->undo);
  pln_mem_free(e, pe->scopes, pe->cap_scopes * sizeof *pe->scopes);
  pln_arena_free(&pe->arena);
}

pln_status pln_pass_partial_evaluate(pln_pass_run *run) {
  pe_run pe = {.engine = pln_run_engine(run),
               .module = run->module,
               .most_steps = (uint64_t)pln_run_int(run, "max_steps")};
  size_t n = pln_module_count(pe.module) + (size_t)1;
  bool allowed = false;
  pln_arena_init(&pe.arena, pe.engine);
  pe.sources = pln_mem_zeroed(pe.engine, n * sizeof *pe.sources);
  pe.globals = pln_mem_zeroed(pe.engine, n * sizeof *pe.globals);
  pln_status status = pe.sources && pe.globals ? PLN_OK : pln_nomem(pe.engine);
  if (status == PLN_OK)
    status = pln_rule_apply(pe.engine, "evaluate", PLN_NONE, &allowed);
  if (status == PLN_OK && allowed)
    status = evaluate_module(&pe);
  if (status == PLN_OK && allowed)
    status = replace_functions(run, &pe);
  free_run(&pe);
  return status;
}
