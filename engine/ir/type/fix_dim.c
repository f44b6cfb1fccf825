/* type/fix_dim.c: a module with a number in place of a symbolic dim.
 *
 * Called by whoever loads a model for one batch size (`perilune opt --dim`).
 * The graph keeps its nodes; types have the number in place of the symbol and
 * are then inferred again in array order, since a number tells more than a
 * symbol does. What was known before, and still holds, stays known. */

#include <stdio.h>

#include "ir/graph.h"
#include "ir/module.h"
#include "ir/type/type_args.h"

typedef struct fixing {
  pln_engine *engine;
  pln_symbol name;
  pln_dim value;
  pln_type_mutator *types;
  pln_dim *dims; /* of the type at work */
  uint32_t cap_dims;
  pln_idmap *vars; /* Vars of another type are other Vars: old to new */
  bool changed;
} fixing;

/* The number in a tensor type's dims: a pln_type_image. */
static pln_status fix_type(void *ud, pln_engine *e, pln_type old,
                           pln_type *type) {
  fixing *f = ud;
  if (pln_type_kind_of(e, old) != PLN_TYPE_TENSOR || pln_type_rank(e, old) < 1)
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

/* Another identity, as whoever holds the old Var knows it by its old type. */
static pln_status fix_var(fixing *f, pln_node *var) {
  uint32_t image = pln_idmap_get(f->vars, var->data);
  if (image == 0) {
    image = ++f->engine->n_vars;
    PLN_TRY(pln_idmap_set(f->vars, var->data, image));
  }
  var->data = image;
  return PLN_OK;
}

/* Leaves are what they are; the rest follows from them and from what was
 * declared. */
static pln_status infer_again(fixing *f, pln_builder *b, pln_ref node) {
  pln_node *n = &b->graph->nodes[node];
  pln_type old;
  PLN_TRY(pln_type_mutate(f->types, n->type, &old));
  f->changed |= old != n->type;
  if (n->kind == PLN_VAR && old != n->type)
    PLN_TRY(fix_var(f, n));
  n->type = old;
  if (pln_has_callee(n))
    PLN_TRY(pln_mutate_type_args(f->types, f->engine, n->attrs, &n->attrs));
  if (n->kind == PLN_FUNCTION) {
    n->type =
        pln_type_part(f->engine, old, pln_type_n_parts(f->engine, old) - 1);
    return pln_builder_infer(b, node);
  }
  if (pln_kinds[n->kind].operands == 0 && pln_kinds[n->kind].scopes == 0)
    return PLN_OK;
  PLN_TRY(pln_builder_infer(b, node));
  bool conflict;
  n = &b->graph->nodes[node];
  return pln_type_meet(f->engine, old, n->type, &n->type, &conflict);
}

static pln_status fix_nodes(fixing *f, pln_graph *h, pln_scope *home,
                            uint8_t *effects) {
  pln_builder b = {.engine = f->engine,
                   .graph = h,
                   .home = home,
                   .effects = effects,
                   .in = PLN_NONE,
                   .scoped = true,
                   .lenient = true};
  pln_graph_homes(h, home);
  for (pln_ref n = 0; n < h->n_nodes; n++)
    PLN_TRY(infer_again(f, &b, n));
  return PLN_OK;
}

static pln_status fix_graph(fixing *f, const pln_graph *g, pln_graph **out) {
  pln_engine *e = f->engine;
  pln_graph *h;
  PLN_TRY(pln_graph_copy(g, &h));
  pln_scope *home = pln_mem_new(e, g->n_nodes * sizeof *home);
  uint8_t *effects = pln_mem_zeroed(e, g->n_scopes);
  pln_status status = home && effects ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK)
    status = fix_nodes(f, h, home, effects);
  pln_mem_free(e, home, home ? g->n_nodes * sizeof *home : 0);
  pln_mem_free(e, effects, effects ? g->n_scopes : 0);
  if (status == PLN_OK)
    *out = h;
  else
    pln_graph_release(h);
  return status;
}

/* -------------------------------------------------------------- diagnostics */

enum { MOST_NAMES = 20 };

typedef struct dim_names {
  const char *names[MOST_NAMES];
  uint32_t n;
} dim_names;

static void add_name(dim_names *all, const char *name) {
  for (uint32_t i = 0; i < all->n; i++)
    if (!strcmp(all->names[i], name))
      return;
  if (all->n < MOST_NAMES)
    all->names[all->n++] = name;
}

static void add_dims(dim_names *all, const pln_engine *e, pln_type type) {
  int32_t rank =
      pln_type_kind_of(e, type) == PLN_TYPE_TENSOR ? pln_type_rank(e, type) : 0;
  for (int32_t i = 0; i < rank; i++) {
    pln_dim dim = pln_type_dims(e, type)[i];
    pln_symbol name = PLN_DIM_IS_CONST(dim) ? 0 : pln_dim_name(e, dim);
    if (name)
      add_name(all, pln_symbol_text(e, name).data);
  }
}

/* The named dims of the parameters of all functions. */
static void find_names(const pln_module *module, dim_names *all) {
  for (uint32_t i = 0; i < pln_module_count(module); i++) {
    const pln_graph *g = pln_module_function(module, i);
    pln_type type = g->nodes[g->root].type;
    bool typed = pln_type_kind_of(g->engine, type) == PLN_TYPE_FUNC;
    uint32_t parts = typed ? pln_type_n_parts(g->engine, type) : 1;
    for (uint32_t k = 0; k + 1 < parts; k++)
      add_dims(all, g->engine, pln_type_part(g->engine, type, k));
  }
}

/* Names the dims that there are when none is nearly called so. */
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

static pln_status fix_functions(fixing *f, pln_module *copy) {
  for (uint32_t i = 0; i < copy->count; i++) {
    pln_graph *function;
    PLN_TRY(fix_graph(f, pln_module_function(copy, i), &function));
    pln_status status =
        pln_module_set(copy, pln_module_name(copy, i), function);
    pln_graph_release(function);
    PLN_TRY(status);
  }
  return PLN_OK;
}

static pln_status fix_module(fixing *f, const pln_module *module,
                             pln_slice name, pln_module **out) {
  PLN_TRY(pln_symbol_intern(f->engine, name, &f->name));
  PLN_TRY(pln_type_mutator_new(f->engine, fix_type, f, &f->types));
  PLN_TRY(pln_idmap_new(f->engine, &f->vars));
  pln_module *copy;
  PLN_TRY(pln_module_copy(module, &copy));
  pln_status status = fix_functions(f, copy);
  if (status == PLN_OK && !f->changed)
    status = unknown_dim(module, name);
  if (status == PLN_OK)
    *out = copy;
  else
    pln_module_release(copy);
  return status;
}

pln_status pln_module_fix_dim(const pln_module *module, pln_slice name,
                              int64_t value, pln_module **out) {
  pln_engine *e = module->engine;
  if (value < 0 || !PLN_DIM_IS_CONST(value))
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "a dim is 0 or more, not %lld", (long long)value);
  fixing f = {.engine = e, .value = value};
  pln_status status = fix_module(&f, module, name, out);
  pln_type_mutator_free(f.types);
  pln_idmap_free(f.vars);
  pln_mem_free(e, f.dims, f.cap_dims * sizeof *f.dims);
  return status;
}
