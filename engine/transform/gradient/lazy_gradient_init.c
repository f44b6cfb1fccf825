/* lazy_gradient_init.c: LazyGradientInit: tensors of zeros and ones are made
 * when they are needed, and sums and products with them cost nothing.
 *
 * Run by the executor, once per module. Requires verified functions without
 * shared values (expression_tree.h). Tensors become values of the data type
 * GradCell: a tensor (Raw), or a function that makes zeros or ones. Sums and
 * products of equal types become calls of @AddGradCell and @MultiplyGradCell;
 * other operators get their arguments by @FromGradCell. Each function keeps its
 * signature: it calls the new one, as a literal, on cells. The type and the
 * three functions are added to the module.
 *
 *     def @main(%x: T) { exp(%x) }   =>
 *     def @main(%x: T) {
 *       let %c = (fn (%y: GradCell[T]) { Raw(exp(@FromGradCell(%y)))
 * })(Raw(%x));
 *       @FromGradCell(%c)
 *     }
 *
 * Semantics: TVM LazyGradientInit, which makes ones of zeros_like, and cells of
 * tuples. Nothing recurses: visits are tasks on a stack. */

#include "ir/graph/module.h"
#include "op/op.h"
#include "transform/functional/expression_tree.h"
#include "transform/functional/let.h"
#include "transform/transform.h"

static const char LIBRARY[] =
    "#[version = \"0.0.5\"]\n"
    "type GradCell[T] { Raw(T), One(fn () -> T), Zero(fn () -> T), }\n"
    "def @FromGradCell[T](%g: GradCell[T]) -> T {\n"
    "  match (%g) {\n"
    "    Raw(%x) => { %x }, One(%x) => { %x() }, Zero(%x) => { %x() },\n"
    "  }\n"
    "}\n"
    "def @MultiplyGradCell[T](%multiply: fn (T, T) -> T, %l: GradCell[T],\n"
    "                         %r: GradCell[T]) -> GradCell[T] {\n"
    "  match ((%l, %r)) {\n"
    "    (Zero(_), _) => { %l }, (_, Zero(_)) => { %r },\n"
    "    (One(_), _) => { %r }, (_, One(_)) => { %l },\n"
    "    _ => { Raw(%multiply(@FromGradCell(%l), @FromGradCell(%r))) },\n"
    "  }\n"
    "}\n"
    "def @AddGradCell[T](%add: fn (T, T) -> T, %l: GradCell[T],\n"
    "                    %r: GradCell[T]) -> GradCell[T] {\n"
    "  match ((%l, %r)) {\n"
    "    (Zero(_), _) => { %r }, (_, Zero(_)) => { %l },\n"
    "    _ => { Raw(%add(@FromGradCell(%l), @FromGradCell(%r))) },\n"
    "  }\n"
    "}\n";

static const char PASS[] = "LazyGradientInit";

typedef enum cell_task_kind {
  VISIT,     /* push what a node becomes */
  STATEMENT, /* a statement of a scope, then the rest of the scope */
  BIND,      /* a statement whose value is on the stack */
  COMBINE,   /* a node whose operands are on the stack */
  UNWRAP,    /* an operand, on the stack, as a tensor */
  FILLED,    /* zeros or ones whose operands are on the stack */
  BEGIN,     /* open the scope of a function, branch, arm or block */
  END        /* that scope has its result: push the scope */
} cell_task_kind;

typedef struct cell_task {
  cell_task_kind kind;
  uint32_t at;     /* BEGIN, END: an old scope */
  pln_scope scope; /* END, FILLED: the new one */
} cell_task;

typedef struct cells {
  pln_engine *engine;
  pln_module *module; /* with the type and the functions of cells */
  pln_symbol grad_cell;
  pln_type_mutator *types;
  /* The function that is transformed. */
  const pln_graph *old;
  pln_expression_tree tree;
  pln_builder *b;
  pln_ref *map; /* by variable or pattern: its image */
  cell_task *tasks;
  pln_ref *values; /* nodes; of owners: scopes */
  uint32_t n_tasks, cap_tasks, n_values, cap_values;
} cells;

/* -------------------------------------------------------------------- types */

/* A tensor becomes GradCell[tensor]. */
static pln_status cell_type(void *ud, pln_engine *engine, pln_type old,
                            pln_type *type) {
  const cells *c = ud;
  if (pln_type_get_kind(engine, old) != PLN_TYPE_TENSOR)
    return PLN_OK;
  return pln_type_make(engine, PLN_TYPE_CALL, c->grad_cell, 1, &old, type);
}

static pln_status new_type(cells *c, pln_ref old, pln_type *out) {
  return pln_type_mutate(c->types, c->old->nodes[old].type, out);
}

static bool is_kind(const cells *c, pln_type type, pln_type_kind kind) {
  return pln_type_get_kind(c->engine, type) == kind;
}

/* ------------------------------------------------------------------- stacks */

static pln_status push_task(cells *c, cell_task t) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->tasks, &c->cap_tasks,
                       (size_t)c->n_tasks + 1, sizeof *c->tasks));
  c->tasks[c->n_tasks++] = t;
  return PLN_OK;
}

static pln_status later(cells *c, cell_task_kind kind, uint32_t at) {
  return push_task(c, (cell_task){.kind = kind, .at = at});
}

static pln_status push_value(cells *c, pln_ref value) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->values, &c->cap_values,
                       (size_t)c->n_values + 1, sizeof *c->values));
  c->values[c->n_values++] = value;
  return PLN_OK;
}

/* -------------------------------------------------------------------- cells */

static pln_status construct(cells *c, const char *name, pln_ref content,
                            pln_ref *out) {
  pln_symbol symbol;
  pln_ref constructor;
  PLN_TRY(pln_symbol_intern(c->engine, pln_text(name), &symbol));
  PLN_TRY(pln_build_constructor(c->b, symbol, 0, &constructor));
  return pln_build_apply(c->b, constructor, 0, 0, 1, &content, out);
}

static pln_status call_global(cells *c, const char *name, uint32_t n,
                              const pln_ref *args, pln_ref *out) {
  pln_symbol symbol;
  pln_ref global;
  PLN_TRY(pln_symbol_intern(c->engine, pln_text(name), &symbol));
  uint32_t i = pln_module_find(c->module, symbol);
  PLN_TRY(pln_build_global_var(
      c->b, symbol, pln_signature(pln_module_function_at(c->module, i)),
      &global));
  return pln_build_apply(c->b, global, 0, 0, n, args, out);
}

static pln_status from_cell(cells *c, pln_ref cell, pln_ref *out) {
  return call_global(c, "FromGradCell", 1, &cell, out);
}

/* A conversion of one tensor: to a cell, or from one. */
typedef pln_status (*convert_fn)(cells *c, pln_ref value, pln_ref *out);

static pln_status to_cell(cells *c, pln_ref tensor, pln_ref *out) {
  return construct(c, "Raw", tensor, out);
}

enum { MAX_NESTING = 32 };

static pln_status convert_tuple(cells *c, convert_fn convert, pln_type type,
                                int depth, pln_ref value, pln_ref *out);

/* `type` is the tensor's or tuple's before cells; other values stay. */
static pln_status convert_value(cells *c, convert_fn convert, pln_type type,
                                int depth, pln_ref value, pln_ref *out) {
  *out = value;
  if (is_kind(c, type, PLN_TYPE_TENSOR))
    return convert(c, value, out);
  if (!is_kind(c, type, PLN_TYPE_TUPLE))
    return PLN_OK;
  if (depth >= MAX_NESTING)
    return pln_diag_error(c->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "%s: tuples nested deeper than %d", PASS,
                          MAX_NESTING);
  return convert_tuple(c, convert, type, depth, value, out);
}

/* The fields of a variable are bound. */
static pln_status convert_tuple(cells *c, convert_fn convert, pln_type type,
                                int depth, pln_ref value, pln_ref *out) {
  uint32_t n = pln_type_n_parts(c->engine, type);
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *fields = pln_mem_new(c->engine, size);
  pln_status status = fields ? PLN_OK : pln_nomem(c->engine);
  if (status == PLN_OK && c->b->graph->nodes[value].kind != PLN_VAR)
    status = pln_let_new(c->b, value, &value);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    status = pln_build_tuple_get_item(c->b, value, i, &fields[i]);
    if (status == PLN_OK)
      status = pln_let_new(c->b, fields[i], &fields[i]);
    if (status == PLN_OK)
      status = convert_value(c, convert, pln_type_part_at(c->engine, type, i),
                             depth + 1, fields[i], &fields[i]);
  }
  if (status == PLN_OK)
    status = pln_build_tuple(c->b, n, fields, out);
  pln_mem_free(c->engine, fields, size);
  return status;
}

/* ---------------------------------------------------------------- visiting */

static pln_status map_param(cells *c, pln_ref old) {
  pln_type type;
  PLN_TRY(new_type(c, old, &type));
  PLN_TRY(pln_builder_derive(c->b, c->old, old));
  return pln_build_param(c->b, c->old->nodes[old].attrs, type, 0, &c->map[old]);
}

static pln_status visit_scope(cells *c, pln_scope scope) {
  pln_ref first = c->tree.first[scope];
  return first != PLN_NONE ? later(c, STATEMENT, first)
                           : later(c, VISIT, c->old->scopes[scope].result);
}

static pln_status begin_scope(cells *c, pln_scope scope) {
  const pln_scope_row *row = &c->old->scopes[scope];
  cell_task end = {.kind = END, .at = scope};
  PLN_TRY(pln_build_open(c->b, &end.scope));
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(map_param(c, row->begin + i));
  if (c->old->nodes[row->owner].kind == PLN_MATCH)
    PLN_TRY(pln_copy_pattern(c->b, c->old, scope, c->map));
  PLN_TRY(push_task(c, end));
  return visit_scope(c, scope);
}

static pln_status end_scope(cells *c, pln_scope scope) {
  pln_ref result = c->values[--c->n_values];
  PLN_TRY(pln_build_end(c->b, scope, result, 0));
  return push_value(c, scope);
}

static pln_type arg_type(const cells *c, pln_ref old, uint32_t i) {
  return c->old->nodes[pln_operand(c->old, old, i)].type;
}

/* A sum or product of equal types has an overload on cells. */
static bool is_overloaded(const cells *c, pln_ref old) {
  const pln_node *n = &c->old->nodes[old];
  return n->kind == PLN_CALL && n->count == 2 &&
         (n->data == PLN_OP_ADD || n->data == PLN_OP_MUL) &&
         arg_type(c, old, 0) == arg_type(c, old, 1);
}

static bool is_filled(const pln_node *n) {
  return n->kind == PLN_CALL &&
         (n->data == PLN_OP_ONES || n->data == PLN_OP_ONES_LIKE ||
          n->data == PLN_OP_ZEROS || n->data == PLN_OP_ZEROS_LIKE);
}

/* Operators and functions of the module take tensors, an If a condition. */
static bool takes_tensor(const cells *c, pln_ref old, uint32_t i) {
  const pln_node *n = &c->old->nodes[old];
  if (n->kind == PLN_IF)
    return true;
  if (n->kind != PLN_CALL || is_overloaded(c, old))
    return false;
  pln_ref first = n->count ? pln_operand(c->old, old, 0) : PLN_NONE;
  return n->data || (i > 0 && c->old->nodes[first].kind == PLN_GLOBAL_VAR);
}

/* A scope and those after it of its owner. */
static pln_status begin_scopes(cells *c, pln_scope scope) {
  uint32_t first = c->n_tasks;
  for (; scope != PLN_NONE; scope = c->old->scopes[scope].next)
    PLN_TRY(later(c, BEGIN, scope));
  pln_mem_reverse(c->tasks + first, c->n_tasks - first, sizeof *c->tasks);
  return PLN_OK;
}

/* The condition or data first, then the scopes. Zeros and ones are computed in
 * a function, and so is what they take. */
static pln_status visit_parts(cells *c, pln_ref old) {
  const pln_graph *g = c->old;
  cell_task end = {.kind = is_filled(&g->nodes[old]) ? FILLED : COMBINE,
                   .at = old};
  if (end.kind == FILLED)
    PLN_TRY(pln_build_open(c->b, &end.scope));
  PLN_TRY(push_task(c, end));
  if (pln_owns(&g->nodes[old]))
    PLN_TRY(begin_scopes(c, g->nodes[old].data));
  for (uint32_t i = g->nodes[old].count; i-- > 0;) {
    if (takes_tensor(c, old, i))
      PLN_TRY(later(c, UNWRAP, pln_operand(g, old, i)));
    PLN_TRY(later(c, VISIT, pln_operand(g, old, i)));
  }
  return PLN_OK;
}

static pln_status unwrap(cells *c, pln_ref old) {
  pln_ref *value = &c->values[c->n_values - 1], out;
  PLN_TRY(
      convert_value(c, from_cell, c->old->nodes[old].type, 0, *value, &out));
  c->values[c->n_values - 1] = out;
  return PLN_OK;
}

static pln_status visit_atom(cells *c, pln_ref old) {
  pln_ref out = c->map[old];
  if (out == PLN_NONE)
    PLN_TRY(pln_copy_atom(c->b, c->old, old, &out));
  if (c->old->nodes[old].kind == PLN_CONSTANT)
    PLN_TRY(to_cell(c, out, &out));
  return push_value(c, out);
}

static pln_status visit(cells *c, pln_ref old) {
  switch ((pln_kind)c->old->nodes[old].kind) {
  case PLN_VAR:
  case PLN_CONSTANT:
  case PLN_GLOBAL_VAR:
  case PLN_CONSTRUCTOR: return visit_atom(c, old);
  case PLN_ABSENT:
  case PLN_OP: return pln_refuse_node(c->old, old, PASS, "it has no cell");
  default: return visit_parts(c, old);
  }
}

/* A function may refer to itself, so that its variable comes first. */
static pln_status visit_statement(cells *c, pln_ref old) {
  const pln_graph *g = c->old;
  pln_ref next = c->tree.next[old], var;
  pln_type type;
  if (next != PLN_NONE)
    PLN_TRY(later(c, STATEMENT, next));
  else
    PLN_TRY(later(c, VISIT, g->scopes[pln_graph_scope_of(g, old)].result));
  PLN_TRY(later(c, BIND, old));
  if (g->nodes[old].kind != PLN_LET)
    return later(c, VISIT, old);
  var = pln_operand(g, old, 0);
  PLN_TRY(new_type(c, var, &type));
  PLN_TRY(pln_builder_derive(c->b, g, var));
  PLN_TRY(pln_build_var(c->b, g->nodes[var].attrs, type, 0, &c->map[var]));
  return later(c, VISIT, pln_operand(g, old, 1));
}

static pln_status bind_statement(cells *c, pln_ref old) {
  pln_ref value = c->values[--c->n_values], let;
  if (c->old->nodes[old].kind != PLN_LET)
    return pln_let_new(c->b, value, &let);
  return pln_build_let(c->b, c->map[pln_operand(c->old, old, 0)], value, &let);
}

/* ---------------------------------------------------------------- operators */

static pln_status rebuild(cells *c, pln_ref old, uint32_t n,
                          const pln_ref *args, pln_ref *out) {
  pln_node copy = c->old->nodes[old];
  copy.type = 0;
  copy.flags &= (uint8_t)~PLN_NODE_KEEP;
  PLN_TRY(pln_builder_derive(c->b, c->old, old));
  return pln_builder_add(c->b, &copy, n, args, out);
}

/* One(fn () { the call }), or Zero. */
static pln_status end_filled(cells *c, pln_ref old, pln_scope scope) {
  const pln_node *n = &c->old->nodes[old];
  bool ones = n->data == PLN_OP_ONES || n->data == PLN_OP_ONES_LIKE;
  pln_ref out;
  c->n_values -= n->count;
  const pln_ref *operands = pln_refs_at(c->values, c->n_values);
  PLN_TRY(rebuild(c, old, n->count, operands, &out));
  PLN_TRY(pln_build_end(c->b, scope, out, 0));
  PLN_TRY(pln_build_function(c->b, scope, 0, n->type, &out));
  PLN_TRY(construct(c, ones ? "One" : "Zero", out, &out));
  return push_value(c, out);
}

/* fn (%lhs, %rhs) { the operator } */
static pln_status fallback(cells *c, pln_ref old, pln_ref *out) {
  const char *names[] = {"lhs", "rhs"};
  pln_type type = arg_type(c, old, 0);
  pln_ref params[2], sum;
  pln_scope scope;
  PLN_TRY(pln_build_open(c->b, &scope));
  for (int i = 0; i < 2; i++) {
    pln_symbol name;
    PLN_TRY(pln_symbol_intern(c->engine, pln_text(names[i]), &name));
    PLN_TRY(pln_build_param(c->b, name, type, 0, &params[i]));
  }
  PLN_TRY(rebuild(c, old, 2, params, &sum));
  PLN_TRY(pln_build_end(c->b, scope, sum, 0));
  return pln_build_function(c->b, scope, 0, type, out);
}

static pln_status overloaded(cells *c, const char *name, pln_ref old,
                             const pln_ref *operands, pln_ref *out) {
  pln_ref args[3] = {PLN_NONE, operands[0], operands[1]};
  PLN_TRY(fallback(c, old, &args[0]));
  return call_global(c, name, 3, args, out);
}

static pln_status operator_call(cells *c, pln_ref old, uint32_t n,
                                const pln_ref *args, pln_ref *out) {
  if (is_overloaded(c, old))
    return overloaded(c,
                      c->old->nodes[old].data == PLN_OP_ADD
                          ? "AddGradCell"
                          : "MultiplyGradCell",
                      old, args, out);
  PLN_TRY(rebuild(c, old, n, args, out));
  return convert_value(c, to_cell, c->old->nodes[old].type, 0, *out, out);
}

/* Functions of the module keep their signatures. */
static pln_status global_call(cells *c, pln_ref old, uint32_t n,
                              const pln_ref *args, pln_ref *out) {
  PLN_TRY(rebuild(c, old, n, args, out));
  return convert_value(c, to_cell, c->old->nodes[old].type, 0, *out, out);
}

/* ---------------------------------------------------------------- combining */

static pln_status combine_function(cells *c, pln_ref old, pln_scope scope,
                                   pln_ref *out) {
  const pln_node *n = &c->old->nodes[old];
  uint32_t parts = pln_type_n_parts(c->engine, n->type), k;
  pln_type ret = pln_type_part_at(c->engine, n->type, parts - 1);
  pln_type vars = c->old->scopes[n->data].type_params;
  PLN_TRY(pln_type_mutate(c->types, ret, &ret));
  PLN_TRY(pln_builder_derive(c->b, c->old, old));
  PLN_TRY(pln_build_function(c->b, scope, n->attrs, ret, out));
  if (!vars)
    return PLN_OK;
  const pln_type *list = pln_type_all_parts(c->engine, vars, &k);
  return pln_build_generic(c->b, *out, k, list);
}

static pln_status combine_match(cells *c, pln_ref old, uint32_t n,
                                const pln_ref *parts, pln_ref *out) {
  const pln_attr *mark =
      pln_attrs_find(c->engine, c->old->nodes[old].attrs, "complete");
  return pln_build_match(c->b, parts[0], mark && mark->v.i, n - 1, parts + 1,
                         out);
}

static pln_status combine_node(cells *c, pln_ref old, uint32_t n,
                               pln_ref *parts, pln_ref *out) {
  const pln_node *node = &c->old->nodes[old];
  bool plain = node->kind != PLN_CALL || node->data;
  switch ((pln_kind)node->kind) {
  case PLN_FUNCTION: return combine_function(c, old, parts[0], out);
  case PLN_LET_BLOCK: return pln_build_let_block(c->b, parts[0], out);
  case PLN_MATCH: return combine_match(c, old, n, parts, out);
  case PLN_IF:
    return pln_build_if(c->b, parts[0], parts[1], parts[2], node->attrs, 0,
                        out);
  case PLN_CALL:
    if (node->data)
      return operator_call(c, old, n, parts, out);
    plain = c->old->nodes[pln_operand(c->old, old, 0)].kind != PLN_GLOBAL_VAR;
    break;
  default: break;
  }
  return plain ? rebuild(c, old, n, parts, out)
               : global_call(c, old, n, parts, out);
}

static pln_status combine(cells *c, pln_ref old) {
  const pln_node *node = &c->old->nodes[old];
  uint32_t n = node->count;
  if (pln_owns(node))
    n += pln_node_n_scopes(c->old, old);
  size_t size = (n + (size_t)1) * sizeof(pln_ref);
  pln_ref *parts = pln_mem_new(c->engine, size), out = PLN_NONE;
  if (!parts)
    return pln_nomem(c->engine);
  c->n_values -= n;
  if (n)
    memcpy(parts, c->values + c->n_values, n * sizeof *parts);
  pln_status status = combine_node(c, old, n, parts, &out);
  pln_mem_free(c->engine, parts, size);
  return status == PLN_OK ? push_value(c, out) : status;
}

/* --------------------------------------------------------------- a function */

static pln_status run_tasks(cells *c) {
  while (c->n_tasks > 0) {
    cell_task t = c->tasks[--c->n_tasks];
    switch (t.kind) {
    case VISIT: PLN_TRY(visit(c, t.at)); break;
    case STATEMENT: PLN_TRY(visit_statement(c, t.at)); break;
    case BIND: PLN_TRY(bind_statement(c, t.at)); break;
    case COMBINE: PLN_TRY(combine(c, t.at)); break;
    case UNWRAP: PLN_TRY(unwrap(c, t.at)); break;
    case FILLED: PLN_TRY(end_filled(c, t.at, t.scope)); break;
    case BEGIN: PLN_TRY(begin_scope(c, t.at)); break;
    case END: PLN_TRY(end_scope(c, t.scope)); break;
    }
  }
  return PLN_OK;
}

/* The outer function: its parameters as cells, the call, its result. */
static pln_status build_outer(cells *c, uint32_t n, pln_ref *args,
                              pln_ref *out) {
  const pln_graph *g = c->old;
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  pln_scope scope;
  PLN_TRY(pln_build_open(c->b, &scope));
  for (uint32_t i = 0; i < n; i++) {
    pln_ref old = row->begin + i;
    PLN_TRY(pln_builder_import_origin(c->b, g, old, &c->b->origin));
    PLN_TRY(pln_build_param(c->b, g->nodes[old].attrs, g->nodes[old].type,
                            g->nodes[old].data, &args[i]));
  }
  c->b->origin = 0;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(convert_value(c, to_cell, g->nodes[row->begin + i].type, 0, args[i],
                          &args[i]));
  PLN_TRY(later(c, VISIT, g->root));
  PLN_TRY(run_tasks(c));
  pln_ref inner = c->values[--c->n_values], result;
  PLN_TRY(pln_build_apply(c->b, inner, 0, 0, n, args, &result));
  PLN_TRY(pln_let_new(c->b, result, &result));
  PLN_TRY(convert_value(c, from_cell, g->nodes[row->result].type, 0, result,
                        &result));
  PLN_TRY(pln_build_end(c->b, scope, result, 0));
  return pln_build_function(c->b, scope, 0, g->nodes[row->result].type, out);
}

static pln_status build_graph(cells *c, pln_graph **out) {
  const pln_graph *g = c->old;
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  size_t size = (row->n_params + (size_t)1) * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(c->engine, size), root = PLN_NONE;
  if (!args)
    return pln_nomem(c->engine);
  pln_builder_module(c->b, c->module);
  c->b->lenient = pln_module_was_onnx(c->module);
  pln_status status = build_outer(c, row->n_params, args, &root);
  pln_mem_free(c->engine, args, size);
  return status == PLN_OK ? pln_builder_seal(c->b, root, out) : status;
}

static pln_status prepare(cells *c, const pln_graph *old) {
  size_t n = old->n_nodes * sizeof *c->map;
  c->old = old;
  c->n_tasks = c->n_values = 0;
  c->map = pln_mem_new(c->engine, n);
  if (!c->map)
    return pln_nomem(c->engine);
  memset(c->map, 0xff, n);
  PLN_TRY(pln_expression_tree_new(old, PASS, &c->tree));
  return pln_builder_new(c->engine, &c->b);
}

/* Returns true if the function has a tensor in it. */
static pln_status has_tensors(cells *c, const pln_graph *g, bool *out) {
  *out = false;
  for (pln_ref ref = 0; ref < g->n_nodes && !*out; ref++) {
    const pln_node *n = &g->nodes[ref];
    pln_type type = n->type;
    *out = n->kind == PLN_CONSTANT || (n->kind == PLN_CALL && n->data);
    if (n->kind == PLN_VAR)
      PLN_TRY(pln_type_mutate(c->types, type, &type));
    *out |= type != n->type;
  }
  return PLN_OK;
}

static pln_status transform(cells *c, const pln_graph *old, pln_graph **out) {
  const pln_node *root = &old->nodes[old->root];
  if (old->scopes[root->data].type_params)
    return pln_diag_error(c->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "%s: functions with type parameters are not "
                          "supported",
                          PASS);
  pln_status status = prepare(c, old);
  if (status == PLN_OK)
    status = build_graph(c, out);
  pln_builder_free(c->b);
  c->b = NULL;
  pln_expression_tree_free(&c->tree);
  pln_mem_free(c->engine, c->map, old->n_nodes * sizeof *c->map);
  return status;
}

/* ----------------------------------------------------------------- a module
 */

/* Adds what the module does not have; equal definitions are shared. */
static pln_status add_library(cells *c, const pln_module *library) {
  const pln_type_def *def = pln_module_type_def_at(library, 0);
  c->grad_cell = def->name;
  if (pln_module_find_type(c->module, def->name) == PLN_NONE)
    PLN_TRY(pln_module_set_type(c->module, def));
  for (uint32_t i = 0; i < pln_module_count(library); i++) {
    pln_symbol name = pln_module_name_at(library, i);
    if (pln_module_find(c->module, name) == PLN_NONE)
      PLN_TRY(
          pln_module_set(c->module, name, pln_module_function_at(library, i)));
  }
  return PLN_OK;
}

static pln_status transform_all(cells *c, const pln_module *library,
                                pln_graph **results) {
  for (uint32_t i = 0; i < pln_module_count(c->module); i++) {
    const pln_graph *g = pln_module_function_at(c->module, i);
    bool allowed, tensors;
    if (!pln_pass_applies(g) || g->nodes[g->root].kind != PLN_FUNCTION ||
        pln_module_find(library, pln_module_name_at(c->module, i)) != PLN_NONE)
      continue;
    PLN_TRY(has_tensors(c, g, &tensors));
    if (!tensors)
      continue;
    PLN_TRY(pln_rule_apply(c->engine, "delay", g->root, &allowed));
    if (allowed)
      PLN_TRY(transform(c, g, &results[i]));
  }
  return PLN_OK;
}

/* Functions that call others learn what effects these have now. */
static pln_status replace_all(cells *c, const pln_module *library,
                              pln_module **out) {
  size_t n = pln_module_count(c->module);
  size_t size = (n + 1) * sizeof(pln_graph *);
  pln_graph **results = pln_mem_zeroed(c->engine, size);
  if (!results)
    return pln_nomem(c->engine);
  pln_status status = transform_all(c, library, results);
  if (status == PLN_OK)
    status = pln_module_replace(c->module, results, out);
  for (size_t i = 0; i < n; i++)
    pln_graph_release(results[i]);
  pln_mem_free(c->engine, results, size);
  return status;
}

static pln_status run_module(cells *c, pln_module **out) {
  pln_slice text = {LIBRARY, sizeof LIBRARY - 1};
  pln_module *library;
  PLN_TRY(pln_parse_module(c->engine, text, "gradient cells", NULL, &library));
  pln_status status = add_library(c, library);
  if (status == PLN_OK)
    status = pln_type_mutator_new(c->engine, cell_type, c, &c->types);
  if (status == PLN_OK)
    status = replace_all(c, library, out);
  pln_type_mutator_free(c->types);
  pln_module_release(library);
  pln_mem_free(c->engine, c->tasks, c->cap_tasks * sizeof *c->tasks);
  pln_mem_free(c->engine, c->values, c->cap_values * sizeof *c->values);
  return status;
}

pln_status pln_pass_lazy_gradient_init(pln_pass_run *run) {
  cells c = {.engine = pln_run_engine(run)};
  pln_module *out = NULL;
  PLN_TRY(pln_module_copy(run->module, &c.module));
  pln_status status = run_module(&c, &out);
  pln_module_release(c.module);
  if (status == PLN_OK)
    pln_run_set_module(run, out);
  return status;
}
