/* closure_types.c: function types as algebraic data types, and the functions
 * that call their values.
 *
 * Called by Defunctionalization. A function type of types without functions
 * becomes a data type with one constructor for each function that is used as a
 * value of it; types are converted from the inside out, so that a function of
 * functions is one of data types first.
 *
 *     fn (int32) -> int32   =>
 *     type DefuncFuncType { Defunc(int32), Defunc1 }
 *     def @applyFuncType(%x: DefuncFuncType[], %y: int32) -> int32 {
 *       match (%x) { Defunc(%c) => { add(%y, %c) }, Defunc1 => { @f(%y) } }
 *     }
 *
 * Reynolds, Definitional Interpreters for Higher-Order Programming Languages
 * (1972). */

#include "transform/functional/closure_types.h"

#include "ir/graph/module.h"

#include <stdio.h>

/* -------------------------------------------------------------------- names
 */

static bool is_taken(const pln_closure_types *c, pln_symbol name) {
  uint32_t index;
  return pln_module_find(c->module, name) != PLN_NONE ||
         pln_module_find_type(c->module, name) != PLN_NONE ||
         pln_module_find_constructor(c->module, name, &index) != PLN_NONE ||
         pln_idmap_get(c->names, (uint64_t)name + 1);
}

/* The last number given to a stem makes a long list of names linear. */
static pln_status number_name(pln_closure_types *c, char *text, size_t size,
                              size_t used, pln_symbol *out) {
  pln_symbol stem;
  PLN_TRY(pln_symbol_intern(c->engine, (pln_slice){text, used}, &stem));
  *out = stem;
  uint32_t n = pln_idmap_get(c->names, (uint64_t)stem + 1);
  while (is_taken(c, *out)) {
    n++;
    int more = snprintf(text + used, size - used, "%u", n);
    PLN_TRY(pln_symbol_intern(c->engine, (pln_slice){text, used + (size_t)more},
                              out));
  }
  PLN_TRY(pln_idmap_set(c->names, (uint64_t)stem + 1, n ? n : 1));
  if (*out == stem)
    return PLN_OK;
  return pln_idmap_set(c->names, (uint64_t)*out + 1, 1);
}

pln_status pln_closure_name(pln_closure_types *c, pln_slice stem,
                            const char *end, pln_symbol *out) {
  size_t size = stem.size + strlen(end) + 16;
  char *text = pln_mem_new(c->engine, size);
  if (!text)
    return pln_nomem(c->engine);
  int used = snprintf(text, size, "%.*s%s", (int)stem.size, stem.data, end);
  pln_status status = number_name(c, text, size, (size_t)used, out);
  pln_mem_free(c->engine, text, size);
  return status;
}

/* -------------------------------------------------------------------- types
 */

/* fn (data, arguments) -> result */
static pln_status make_apply_type(pln_closure_types *c, pln_closure_type *t) {
  uint32_t n = pln_type_n_parts(c->engine, t->function);
  size_t size = n * sizeof(pln_type);
  pln_type *params = pln_mem_new(c->engine, size);
  if (!params)
    return pln_nomem(c->engine);
  params[0] = t->data;
  for (uint32_t i = 0; i + 1 < n; i++)
    params[i + 1] = pln_type_part_at(c->engine, t->function, i);
  pln_status status = pln_type_func(
      c->engine, n, params, pln_type_part_at(c->engine, t->function, n - 1), 0,
      NULL, 0, NULL, &t->apply_type);
  pln_mem_free(c->engine, params, size);
  return status;
}

static pln_status add_type(pln_closure_types *c, pln_type function,
                           uint32_t *out) {
  pln_closure_type t = {
      .function = function, .first = PLN_NONE, .last = PLN_NONE};
  PLN_TRY(pln_closure_name(c, pln_text("Defunc"), "FuncType", &t.name));
  PLN_TRY(pln_closure_name(c, pln_text("apply"), "FuncType", &t.apply));
  PLN_TRY(pln_type_make(c->engine, PLN_TYPE_CALL, t.name, 0, NULL, &t.data));
  PLN_TRY(make_apply_type(c, &t));
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->types, &c->cap_types,
                       (size_t)c->n_types + 1, sizeof *c->types));
  *out = c->n_types;
  c->types[c->n_types++] = t;
  PLN_TRY(pln_idmap_set(c->by_function, function, c->n_types));
  return pln_idmap_set(c->by_data, t.data, c->n_types);
}

/* The parts of *type are converted already. */
static pln_status convert_type(void *ud, pln_engine *engine, pln_type old,
                               pln_type *type) {
  pln_closure_types *c = ud;
  if (pln_type_get_kind(engine, old) != PLN_TYPE_FUNC)
    return PLN_OK;
  if (pln_type_n_vars(engine, old) || pln_type_n_constraints(engine, old))
    return pln_diag_error(engine, PLN_ERR_UNSUPPORTED, NULL,
                          "Defunctionalization: a function with type "
                          "parameters is used as a value");
  uint32_t index = pln_idmap_get(c->by_function, *type);
  if (index)
    index--;
  else
    PLN_TRY(add_type(c, *type, &index));
  *type = c->types[index].data;
  return PLN_OK;
}

/* Any other type in the place of a function type. */
static pln_status erase_function(void *ud, pln_engine *engine, pln_type old,
                                 pln_type *type) {
  (void)ud;
  if (pln_type_get_kind(engine, old) != PLN_TYPE_FUNC)
    return PLN_OK;
  return pln_type_make(engine, PLN_TYPE_TUPLE, 0, 0, NULL, type);
}

pln_status pln_has_function(pln_closure_types *c, pln_type type, bool *out) {
  pln_type erased;
  PLN_TRY(pln_type_mutate(c->erase, type, &erased));
  *out = erased != type;
  return PLN_OK;
}

pln_status pln_closure_convert(pln_closure_types *c, pln_type type,
                               pln_type *out) {
  return pln_type_mutate(c->convert, type, out);
}

pln_status pln_closure_convert_parts(pln_closure_types *c, pln_type function,
                                     pln_type *out) {
  uint32_t n = pln_type_n_parts(c->engine, function);
  size_t size = n * sizeof(pln_type);
  pln_type *parts = pln_mem_new(c->engine, size);
  if (!parts)
    return pln_nomem(c->engine);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = pln_closure_convert(c, pln_type_part_at(c->engine, function, i),
                                 &parts[i]);
  if (status == PLN_OK)
    status = pln_type_func(c->engine, n - 1, parts, parts[n - 1], 0, NULL, 0,
                           NULL, out);
  pln_mem_free(c->engine, parts, size);
  return status;
}

pln_status pln_closure_type_find(pln_closure_types *c, pln_type function,
                                 uint32_t *out) {
  pln_type data;
  PLN_TRY(pln_closure_convert(c, function, &data));
  *out = pln_idmap_get(c->by_data, data) - 1;
  return PLN_OK;
}

/* ----------------------------------------------------------------- closures
 */

pln_status pln_closure_add(pln_closure_types *c, uint32_t owner, uint32_t n,
                           const pln_type *captures, uint32_t *out) {
  pln_closure_type *t = &c->types[owner];
  pln_closure k = {.owner = owner, .next = PLN_NONE};
  PLN_TRY(pln_closure_name(c, pln_text("Defunc"), "", &k.constructor));
  PLN_TRY(pln_type_func(c->engine, n, captures, t->data, 0, NULL, 0, NULL,
                        &k.type));
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->closures, &c->cap_closures,
                       (size_t)c->n_closures + 1, sizeof *c->closures));
  *out = c->n_closures++;
  c->closures[*out] = k;
  if (t->last == PLN_NONE)
    t->first = *out;
  else
    c->closures[t->last].next = *out;
  t->last = *out;
  return PLN_OK;
}

/* -------------------------------------------------------------- definitions
 */

static pln_status fill_constructors(const pln_closure_types *c,
                                    const pln_closure_type *t,
                                    pln_constructor *out) {
  uint32_t n = 0, all;
  for (uint32_t i = t->first; i != PLN_NONE; i = c->closures[i].next) {
    const pln_closure *k = &c->closures[i];
    const pln_type *parts = pln_type_all_parts(c->engine, k->type, &all);
    out[n++] =
        (pln_constructor){.name = k->constructor,
                          .n_inputs = pln_type_n_parts(c->engine, k->type) - 1,
                          .inputs = parts};
  }
  return PLN_OK;
}

static uint32_t count_closures(const pln_closure_types *c,
                               const pln_closure_type *t) {
  uint32_t n = 0;
  for (uint32_t i = t->first; i != PLN_NONE; i = c->closures[i].next)
    n++;
  return n;
}

static pln_status define_type(const pln_closure_types *c,
                              const pln_closure_type *t, pln_module *module) {
  uint32_t n = count_closures(c, t);
  size_t size = (n + (size_t)1) * sizeof(pln_constructor);
  pln_constructor *list = pln_mem_zeroed(c->engine, size);
  if (!list)
    return pln_nomem(c->engine);
  pln_type_def def = {
      .name = t->name, .n_constructors = n, .constructors = list};
  pln_status status = fill_constructors(c, t, list);
  if (status == PLN_OK)
    status = pln_module_set_type(module, &def);
  pln_mem_free(c->engine, list, size);
  return status;
}

pln_status pln_closure_define(const pln_closure_types *c, pln_module *module) {
  for (uint32_t i = 0; i < c->n_types; i++)
    PLN_TRY(define_type(c, &c->types[i], module));
  return PLN_OK;
}

/* ----------------------------------------------------------- apply function
 */

static pln_status add_param(const pln_closure_types *c, pln_builder *b,
                            const char *name, pln_type type, pln_ref *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(c->engine, pln_text(name), &symbol));
  return pln_build_param(b, symbol, type, 0, out);
}

/* The arm's variables, its pattern and its Clause. */
static pln_status build_pattern(const pln_closure_types *c, pln_builder *b,
                                const pln_closure *k, uint32_t n,
                                pln_ref *captures, pln_ref *patterns) {
  pln_ref pattern, clause;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(add_param(c, b, "c", pln_type_part_at(c->engine, k->type, i),
                      &captures[i]));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_build_pattern_var(b, captures[i], &patterns[i]));
  PLN_TRY(
      pln_build_pattern_constructor(b, k->constructor, n, patterns, &pattern));
  return pln_build_clause(b, pattern, &clause);
}

static pln_status build_callee(pln_builder *b, const pln_closure *k,
                               pln_ref *out) {
  if (k->kind == PLN_OP)
    return pln_build_op(b, k->data, out);
  if (k->kind == PLN_CONSTRUCTOR)
    return pln_build_constructor(b, k->data, 0, out);
  return pln_build_global_var(b, k->data, k->called, out);
}

/* `refs` has room for captures, arguments and patterns. */
static pln_status build_arm_in(const pln_closure_types *c, pln_builder *b,
                               const pln_closure *k, uint32_t n_args,
                               const pln_ref *args, pln_ref *refs,
                               pln_scope *out) {
  uint32_t n = pln_type_n_parts(c->engine, k->type) - 1;
  pln_ref callee, call;
  PLN_TRY(pln_build_open(b, out));
  PLN_TRY(build_pattern(c, b, k, n, refs, refs + n + n_args));
  if (n_args)
    memcpy(refs + n, args, n_args * sizeof *refs);
  PLN_TRY(build_callee(b, k, &callee));
  PLN_TRY(pln_build_apply(b, callee, 0, 0, n + n_args, refs, &call));
  return pln_build_end(b, *out, call, 0);
}

static pln_status build_arm(const pln_closure_types *c, pln_builder *b,
                            const pln_closure *k, uint32_t n_args,
                            const pln_ref *args, pln_scope *out) {
  size_t n = pln_type_n_parts(c->engine, k->type);
  size_t size = (2 * n + n_args) * sizeof(pln_ref);
  pln_ref *refs = pln_mem_new(c->engine, size);
  if (!refs)
    return pln_nomem(c->engine);
  pln_status status = build_arm_in(c, b, k, n_args, args, refs, out);
  pln_mem_free(c->engine, refs, size);
  return status;
}

/* A type without closures has no values: its Match has no arms that could say
 * what it computes. */
static pln_status build_match(pln_builder *b, pln_ref x, uint32_t n,
                              const pln_scope *arms, pln_type result,
                              pln_ref *out) {
  PLN_TRY(pln_build_match(b, x, n > 0, n, arms, out));
  if (n > 0)
    return PLN_OK;
  b->graph->nodes[*out].type = result;
  pln_type_digest_record(b->graph, *out);
  return PLN_OK;
}

/* `args` and `arms` have room for them. */
static pln_status build_apply(const pln_closure_types *c, pln_builder *b,
                              const pln_closure_type *t, pln_ref *args,
                              pln_scope *arms, pln_ref *out) {
  uint32_t n_args = pln_type_n_parts(c->engine, t->function) - 1, n = 0;
  pln_type result = pln_type_part_at(c->engine, t->function, n_args);
  pln_scope scope;
  pln_ref x, match;
  PLN_TRY(pln_build_open(b, &scope));
  PLN_TRY(add_param(c, b, "x", t->data, &x));
  for (uint32_t i = 0; i < n_args; i++)
    PLN_TRY(add_param(c, b, "y", pln_type_part_at(c->engine, t->function, i),
                      &args[i]));
  for (uint32_t i = t->first; i != PLN_NONE; i = c->closures[i].next)
    PLN_TRY(build_arm(c, b, &c->closures[i], n_args, args, &arms[n++]));
  PLN_TRY(build_match(b, x, n, arms, result, &match));
  PLN_TRY(pln_build_end(b, scope, match, 0));
  return pln_build_function(b, scope, 0, result, out);
}

pln_status pln_closure_apply(const pln_closure_types *c,
                             const pln_module *module, uint32_t type,
                             pln_graph **out) {
  const pln_closure_type *t = &c->types[type];
  size_t n = pln_type_n_parts(c->engine, t->function) + count_closures(c, t);
  pln_ref *refs = pln_mem_new(c->engine, n * sizeof *refs), root = PLN_NONE;
  pln_builder *b = NULL;
  pln_status status =
      refs ? pln_builder_new(c->engine, &b) : pln_nomem(c->engine);
  if (status == PLN_OK) {
    pln_builder_module(b, module);
    status = build_apply(
        c, b, t, refs, refs + pln_type_n_parts(c->engine, t->function), &root);
  }
  if (status == PLN_OK)
    status = pln_builder_seal(b, root, out);
  pln_builder_free(b);
  pln_mem_free(c->engine, refs, n * sizeof *refs);
  return status;
}

/* ---------------------------------------------------------------- the tables
 */

pln_status pln_closure_types_init(pln_closure_types *c) {
  PLN_TRY(pln_idmap_new(c->engine, &c->by_function));
  PLN_TRY(pln_idmap_new(c->engine, &c->by_data));
  PLN_TRY(pln_idmap_new(c->engine, &c->names));
  PLN_TRY(pln_type_mutator_new(c->engine, convert_type, c, &c->convert));
  return pln_type_mutator_new(c->engine, erase_function, c, &c->erase);
}

void pln_closure_types_free(pln_closure_types *c) {
  pln_type_mutator_free(c->convert);
  pln_type_mutator_free(c->erase);
  pln_idmap_free(c->by_function);
  pln_idmap_free(c->by_data);
  pln_idmap_free(c->names);
  pln_mem_free(c->engine, c->types, c->cap_types * sizeof *c->types);
  pln_mem_free(c->engine, c->closures, c->cap_closures * sizeof *c->closures);
}
