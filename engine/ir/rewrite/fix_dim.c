/* rewrite/fix_dim.c: replaces a symbolic dim by a number, or sets the dims of a
 * parameter of @main.
 *
 * Called for a fixed batch size (`perilune opt --dim`, `--shape`). The graph
 * keeps its nodes. The number replaces the symbol in types, and types are
 * inferred again in array order, because a number determines more than a
 * symbol. Earlier type information that still holds is kept. */

#include "ir/graph/describe.h"
#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "ir/infer/type_args.h"
#include "ir/type/dim.h"

#include <stdio.h>

typedef struct dim_binding_run {
  pln_engine *engine;
  pln_symbol name;
  pln_dim value;
  pln_type_mutator *types;
  pln_dim *dims; /* dims of the current type */
  uint32_t cap_dims;
  pln_idmap *vars; /* a Var whose type changes becomes a new Var: old -> new */
  bool changed;
  /* A parameter that gets a new type; graph NULL: none. */
  const pln_graph *graph;
  pln_ref param;
  pln_type type;
} dim_binding_run;

/* Substitutes the number in a tensor type: a pln_type_rewrite_fn. */
static pln_status fix_type(void *ud, pln_engine *e, pln_type old,
                           pln_type *type) {
  dim_binding_run *f = ud;
  if (pln_type_get_kind(e, old) != PLN_TYPE_TENSOR || pln_type_rank(e, old) < 1)
    return PLN_OK;
  int32_t rank = pln_type_rank(e, old);
  const pln_dim *dims = pln_type_dims(e, old);
  PLN_TRY(pln_mem_grow(e, (void **)&f->dims, &f->cap_dims, (size_t)rank,
                       sizeof *f->dims));
  for (int32_t i = 0; i < rank; i++)
    PLN_TRY(pln_dim_substitute(e, dims[i], f->name, f->value, &f->dims[i]));
  return pln_type_tensor(e, pln_type_dtype(e, old), rank, f->dims, type);
}

/* ------------------------------------------------------------------- graph */

/* Gives the Var a new identity, because holders of the old Var know its old
 * type. */
static pln_status fix_var(dim_binding_run *f, pln_node *var) {
  uint32_t image = pln_idmap_get(f->vars, var->data);
  if (image == 0) {
    image = ++f->engine->n_vars;
    PLN_TRY(pln_idmap_set(f->vars, var->data, image));
  }
  var->data = image;
  return PLN_OK;
}

/* The result type of a Function of type `type`, refined by the type of its
 * body. */
static pln_status result_again(const dim_binding_run *f, const pln_graph *h,
                               pln_node *n, pln_type type) {
  pln_ref result = h->scopes[n->data].result;
  bool conflict;
  n->type =
      pln_type_part_at(f->engine, type, pln_type_n_parts(f->engine, type) - 1);
  return pln_type_meet(f->engine, n->type, h->nodes[result].type, &n->type,
                       &conflict);
}

/* Nodes without operands keep their types; the others are inferred again and
 * met with their declared types. */
static pln_status infer_again(dim_binding_run *f, pln_builder *b, pln_ref node,
                              bool is_param) {
  pln_node *n = &b->graph->nodes[node];
  pln_type old = f->type;
  if (!is_param)
    PLN_TRY(pln_type_mutate(f->types, n->type, &old));
  f->changed |= old != n->type;
  if (n->kind == PLN_VAR && old != n->type)
    PLN_TRY(fix_var(f, n));
  n->type = old;
  if (pln_has_callee(n))
    PLN_TRY(pln_mutate_type_args(f->types, f->engine, n->attrs, &n->attrs));
  if (n->kind == PLN_FUNCTION) {
    PLN_TRY(result_again(f, b->graph, n, old));
    return pln_builder_infer(b, node);
  }
  if (pln_kinds[n->kind].operands == 0 && pln_kinds[n->kind].scopes == 0)
    return PLN_OK;
  PLN_TRY(pln_builder_infer(b, node));
  bool conflict;
  n = &b->graph->nodes[node];
  PLN_TRY(pln_type_meet(f->engine, old, n->type, &n->type, &conflict));
  if (b->graph->typed_from[node] != PLN_TYPED_REFUSED)
    pln_type_digest_record(b->graph, node);
  return PLN_OK;
}

static pln_status fix_nodes(dim_binding_run *f, pln_graph *h, pln_ref param,
                            pln_scope *node_scope, uint8_t *effects) {
  pln_builder b = {.engine = f->engine,
                   .graph = h,
                   .node_scope = node_scope,
                   .effects = effects,
                   .in = PLN_NONE,
                   .scoped = true,
                   .lenient = true};
  pln_graph_node_scopes(h, node_scope);
  for (pln_ref n = 0; n < h->n_nodes; n++)
    PLN_TRY(infer_again(f, &b, n, n == param));
  return PLN_OK;
}

static pln_status fix_graph(dim_binding_run *f, const pln_graph *g,
                            pln_graph **out) {
  pln_engine *e = f->engine;
  pln_graph *h;
  PLN_TRY(pln_graph_copy(g, &h));
  pln_scope *node_scope = pln_mem_new(e, g->n_nodes * sizeof *node_scope);
  uint8_t *effects = pln_mem_zeroed(e, g->n_scopes);
  pln_status status = node_scope && effects ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK)
    status = fix_nodes(f, h, g == f->graph ? f->param : PLN_NONE, node_scope,
                       effects);
  pln_mem_free(e, node_scope, node_scope ? g->n_nodes * sizeof *node_scope : 0);
  pln_mem_free(e, effects, effects ? g->n_scopes : 0);
  if (status == PLN_OK)
    *out = h;
  else
    pln_graph_release(h);
  return status;
}

/* -------------------------------------------------------------- diagnostics */

enum { MAX_NAMES = 20 };

typedef struct dim_names {
  const char *names[MAX_NAMES];
  uint32_t n;
} dim_names;

static void add_name(dim_names *all, const char *name) {
  for (uint32_t i = 0; i < all->n; i++)
    if (!strcmp(all->names[i], name))
      return;
  if (all->n < MAX_NAMES)
    all->names[all->n++] = name;
}

static void add_dims(dim_names *all, const pln_engine *e, pln_type type) {
  int32_t rank = pln_type_get_kind(e, type) == PLN_TYPE_TENSOR
                     ? pln_type_rank(e, type)
                     : 0;
  for (int32_t i = 0; i < rank; i++) {
    pln_dim dim = pln_type_dims(e, type)[i];
    pln_symbol name = PLN_DIM_IS_CONST(dim) ? 0 : pln_dim_name(e, dim);
    if (name)
      add_name(all, pln_symbol_text(e, name).data);
  }
}

/* The symbolic dims of the parameters of all functions. */
static void find_names(const pln_module *module, dim_names *all) {
  for (uint32_t i = 0; i < pln_module_count(module); i++) {
    const pln_graph *g = pln_module_function_at(module, i);
    pln_type type = g->nodes[g->root].type;
    bool typed = pln_type_get_kind(g->engine, type) == PLN_TYPE_FUNC;
    uint32_t parts = typed ? pln_type_n_parts(g->engine, type) : 1;
    for (uint32_t k = 0; k + 1 < parts; k++)
      add_dims(all, g->engine, pln_type_part_at(g->engine, type, k));
  }
}

/* Lists the existing dims when no name is similar. */
static pln_status unknown_dim(const pln_module *module, pln_slice name) {
  dim_names all = {.n = 0};
  char wanted[80], text[512] = "; no input has a named dim";
  snprintf(wanted, sizeof wanted, "%.*s", name.size > 70 ? 70 : (int)name.size,
           name.data);
  find_names(module, &all);
  if (all.n > 0)
    pln_suggest(wanted, all.n, all.names, text, sizeof text);
  size_t size = strlen(text);
  for (uint32_t i = 0; i < all.n && (i > 0 || size == 0); i++)
    if (size < sizeof text)
      size += (size_t)snprintf(text + size, sizeof text - size, "%s%s",
                               i > 0 ? ", " : "; there is: ", all.names[i]);
  return pln_diag_error(module->engine, PLN_ERR_NAME, NULL,
                        "no dim is called '%s'%s", wanted, text);
}

/* ------------------------------------------------------------------ module */

static pln_status fix_functions(dim_binding_run *f, pln_module *copy) {
  for (uint32_t i = 0; i < copy->count; i++) {
    pln_graph *function;
    PLN_TRY(fix_graph(f, pln_module_function_at(copy, i), &function));
    pln_status status =
        pln_module_set(copy, pln_module_name_at(copy, i), function);
    pln_graph_release(function);
    PLN_TRY(status);
  }
  return PLN_OK;
}

/* Fixes a symbol, or the type of a parameter. */
static pln_status fix_all(dim_binding_run *f, const pln_module *module,
                          pln_module **out) {
  PLN_TRY(pln_type_mutator_new(f->engine, fix_type, f, &f->types));
  PLN_TRY(pln_idmap_new(f->engine, &f->vars));
  PLN_TRY(pln_module_copy(module, out));
  pln_status status = fix_functions(f, *out);
  if (status == PLN_OK)
    return status;
  pln_module_release(*out);
  *out = NULL;
  return status;
}

static pln_status fix_module(dim_binding_run *f, const pln_module *module,
                             pln_module **out) {
  pln_status status = fix_all(f, module, out);
  pln_type_mutator_free(f->types);
  pln_idmap_free(f->vars);
  pln_mem_free(f->engine, f->dims, f->cap_dims * sizeof *f->dims);
  return status;
}

pln_status pln_module_fix_dim(const pln_module *module, pln_slice name,
                              int64_t value, pln_module **out) {
  pln_engine *e = module->engine;
  pln_module *fixed;
  if (value < 0 || !PLN_DIM_IS_CONST(value))
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "a dim must be 0 or more, not %lld",
                          (long long)value);
  dim_binding_run f = {.engine = e, .value = value};
  PLN_TRY(pln_symbol_intern(e, name, &f.name));
  PLN_TRY(fix_module(&f, module, &fixed));
  if (!f.changed) {
    pln_module_release(fixed);
    return unknown_dim(module, name);
  }
  *out = fixed;
  return PLN_OK;
}

/* ------------------------------------------------------------------- shape */

/* The parameter of @main of that name. */
static pln_status find_param(const pln_module *module, pln_slice name,
                             const pln_graph **graph, pln_ref *param) {
  pln_engine *e = module->engine;
  pln_symbol main_name;
  PLN_TRY(pln_symbol_intern(e, pln_text("main"), &main_name));
  uint32_t at = pln_module_find(module, main_name);
  const pln_graph *g =
      at == PLN_NONE ? NULL : pln_module_function_at(module, at);
  if (!g || g->nodes[g->root].kind != PLN_FUNCTION)
    return pln_diag_error(e, PLN_ERR_NAME, NULL,
                          "the module has no function 'main'");
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  *graph = g;
  for (uint32_t i = 0; i < row->n_params; i++) {
    *param = row->begin + i;
    pln_slice text = pln_symbol_text(e, g->nodes[*param].attrs);
    if (g->nodes[*param].attrs && pln_slice_equal(text, name))
      return PLN_OK;
  }
  return pln_diag_error(e, PLN_ERR_NAME, NULL, "no input is called '%.*s'",
                        (int)name.size, name.data);
}

/* The requested shape of a parameter. */
typedef struct shape_binding_run {
  pln_engine *engine;
  pln_slice name;
  uint32_t rank;
  const int64_t *dims; /* -1: unchanged */
} shape_binding_run;

static pln_status refuse_fixed_shape(const shape_binding_run *s, pln_type type,
                                     const char *why) {
  pln_description got;
  return pln_diag_error(s->engine, PLN_ERR_TYPE, NULL, "input '%.*s' is %s: %s",
                        (int)s->name.size, s->name.data,
                        pln_describe_type(s->engine, type, &got), why);
}

static pln_status refuse_size(const shape_binding_run *s, pln_type type,
                              uint32_t axis) {
  char why[96];
  snprintf(why, sizeof why, "dimension %u cannot be %lld", (unsigned)axis,
           (long long)s->dims[axis]);
  return refuse_fixed_shape(s, type, why);
}

static pln_status check_rank(const shape_binding_run *s, pln_type type) {
  char why[96];
  if (pln_type_get_kind(s->engine, type) != PLN_TYPE_TENSOR)
    return refuse_fixed_shape(s, type, "it has no shape");
  int32_t rank = pln_type_rank(s->engine, type);
  if (rank >= 0 && rank != (int32_t)s->rank) {
    snprintf(why, sizeof why, "it has %d dimensions, not %u", (int)rank,
             (unsigned)s->rank);
    return refuse_fixed_shape(s, type, why);
  }
  for (uint32_t i = 0; i < s->rank; i++)
    if (s->dims[i] < -1 || (s->dims[i] == -1 && rank < 0) ||
        !PLN_DIM_IS_CONST(s->dims[i]))
      return refuse_size(s, type, i);
  return PLN_OK;
}

/* If `dim` is k * symbol + c, the symbol and the value for which the dim is
 * `size`. *name is 0 when it is not of that form. */
static void solve(const pln_engine *e, pln_dim dim, int64_t size,
                  pln_symbol *name, int64_t *value) {
  pln_sum sum;
  int64_t rest;
  *name = 0;
  pln_sum_load(e, dim, &sum);
  if (sum.unknown || sum.n != 1 || sum.terms[0].degree != 1 ||
      __builtin_sub_overflow(size, sum.constant, &rest) || rest == INT64_MIN ||
      rest % sum.terms[0].coef != 0 || rest / sum.terms[0].coef < 0)
    return;
  *value = rest / sum.terms[0].coef;
  *name = pln_dim_name(e, pln_dim_of_id(sum.terms[0].factors[0]));
}

static pln_status find_symbol(const shape_binding_run *s, pln_type type,
                              pln_symbol *name, int64_t *value) {
  *name = 0;
  if (pln_type_rank(s->engine, type) < 0)
    return PLN_OK;
  const pln_dim *dims = pln_type_dims(s->engine, type);
  for (uint32_t i = 0; i < s->rank && !*name; i++) {
    if (s->dims[i] < 0 || dims[i] == PLN_DIM_UNKNOWN)
      continue;
    if (!PLN_DIM_IS_CONST(dims[i]))
      solve(s->engine, dims[i], s->dims[i], name, value);
    else if (dims[i] != s->dims[i])
      return refuse_size(s, type, i);
  }
  return PLN_OK;
}

/* Sets the parameter's type after symbols were replaced. */
static pln_status set_type(const shape_binding_run *s, const pln_module *module,
                           const pln_graph *graph, pln_ref param,
                           pln_module **out) {
  pln_engine *e = s->engine;
  pln_type old = graph->nodes[param].type;
  dim_binding_run f = {.engine = e, .graph = graph, .param = param};
  pln_dim *dims = pln_mem_new(e, s->rank * sizeof *dims);
  if (!dims && s->rank)
    return pln_nomem(e);
  for (uint32_t i = 0; i < s->rank; i++)
    dims[i] = s->dims[i] < 0 ? pln_type_dims(e, old)[i] : s->dims[i];
  pln_status status = pln_type_tensor(e, pln_type_dtype(e, old),
                                      (int32_t)s->rank, dims, &f.type);
  pln_mem_free(e, dims, s->rank * sizeof *dims);
  if (status == PLN_OK && f.type == old)
    return pln_module_copy(module, out);
  return status == PLN_OK ? fix_module(&f, module, out) : status;
}

/* Replaces symbols one by one, then the remaining dims. *at is owned. */
static pln_status shape_param(const shape_binding_run *s, pln_module **at) {
  const pln_graph *graph = NULL;
  pln_ref param = PLN_NONE;
  pln_symbol symbol = 0;
  do {
    int64_t value;
    pln_module *next;
    PLN_TRY(find_param(*at, s->name, &graph, &param));
    PLN_TRY(check_rank(s, graph->nodes[param].type));
    PLN_TRY(find_symbol(s, graph->nodes[param].type, &symbol, &value));
    if (symbol)
      PLN_TRY(pln_module_fix_dim(*at, pln_symbol_text(s->engine, symbol), value,
                                 &next));
    else
      PLN_TRY(set_type(s, *at, graph, param, &next));
    pln_module_release(*at);
    *at = next;
  } while (symbol);
  return PLN_OK;
}

pln_status pln_module_fix_shape(const pln_module *module, pln_slice name,
                                uint32_t rank, const int64_t *dims,
                                pln_module **out) {
  shape_binding_run s = {module->engine, name, rank, dims};
  pln_module *at;
  PLN_TRY(pln_module_copy(module, &at));
  pln_status status = shape_param(&s, &at);
  if (status == PLN_OK)
    *out = at;
  else
    pln_module_release(at);
  return status;
}
