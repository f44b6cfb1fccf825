/* module_equal.c: equality and hash of modules: functions and type definitions
 * by name, in any order; attributes.
 *
 * Type variables of a definition correspond throughout the comparison; each
 * function is compared separately. */

#include "ir/compare/module_equal.h"
#include "ir/compare/equal.h"
#include "ir/graph/module.h"

/* -------------------------------------------------------------- definitions */

static pln_status equal_fields(pln_type_match *m, const pln_constructor *x,
                               const pln_constructor *y, bool *same) {
  *same = x->name == y->name && x->n_inputs == y->n_inputs;
  for (uint32_t i = 0; *same && i < x->n_inputs; i++)
    PLN_TRY(pln_type_match_run(m, x->inputs[i], y->inputs[i], same));
  return PLN_OK;
}

static pln_status equal_definition(pln_type_match *m, const pln_type_def *x,
                                   const pln_type_def *y, bool *same) {
  *same = x->is_extern == y->is_extern && x->n_vars == y->n_vars &&
          x->n_constructors == y->n_constructors;
  for (uint32_t i = 0; *same && i < x->n_vars; i++)
    PLN_TRY(pln_type_match_bind(m, x->vars[i], y->vars[i], same));
  for (uint32_t i = 0; *same && i < x->n_constructors; i++)
    PLN_TRY(equal_fields(m, &x->constructors[i], &y->constructors[i], same));
  return PLN_OK;
}

static pln_status equal_types(pln_type_match *m, const pln_module *a,
                              const pln_module *b, pln_module_difference *d) {
  uint32_t n = pln_module_n_types(a);
  bool same = true;
  for (uint32_t i = 0; same && i < n; i++) {
    const pln_type_def *x = pln_module_type_def_at(a, i);
    uint32_t k = pln_module_find_type(b, x->name);
    same = k != PLN_NONE;
    if (same)
      PLN_TRY(equal_definition(m, x, pln_module_type_def_at(b, k), &same));
    if (!same)
      *d = (pln_module_difference){.what = PLN_MODULES_TYPE, .name = x->name};
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- functions */

static pln_status equal_function(pln_type_match *m, const pln_graph *f,
                                 const pln_graph *g, bool *same) {
  pln_comparison c;
  *same = f == g;
  if (*same)
    return PLN_OK;
  pln_status status = pln_comparison_begin(&c, f, g, m, false);
  if (status == PLN_OK)
    status = pln_comparison_run(&c, f->root, g->root);
  *same = c.equal;
  pln_comparison_end(&c);
  return status;
}

static pln_status equal_functions(pln_type_match *m, const pln_module *a,
                                  const pln_module *b,
                                  pln_module_difference *d) {
  bool same = true;
  for (uint32_t i = 0; same && i < a->count; i++) {
    uint32_t k = pln_module_find(b, pln_module_name_at(a, i));
    same = k != PLN_NONE;
    PLN_TRY(pln_poll_stoppable(a->engine));
    if (same)
      PLN_TRY(equal_function(m, pln_module_function_at(a, i),
                             pln_module_function_at(b, k), &same));
    if (!same)
      *d = (pln_module_difference){.what = PLN_MODULES_FUNCTION,
                                   .name = pln_module_name_at(a, i),
                                   .a = i,
                                   .b = k};
  }
  return PLN_OK;
}

/* A name that only one side has: the first of a, else the first of b. */
static pln_status equal_names(const pln_module *a, const pln_module *b,
                              pln_module_difference *d) {
  for (uint32_t i = 0; i < a->count; i++)
    if (pln_module_find(b, pln_module_name_at(a, i)) == PLN_NONE)
      *d = (pln_module_difference){PLN_MODULES_MISSING,
                                   pln_module_name_at(a, i), i, PLN_NONE};
  for (uint32_t i = 0; !d->what && i < b->count; i++)
    if (pln_module_find(a, pln_module_name_at(b, i)) == PLN_NONE)
      *d = (pln_module_difference){PLN_MODULES_MISSING,
                                   pln_module_name_at(b, i), PLN_NONE, i};
  return PLN_OK;
}

static pln_status equal_rest(const pln_module *a, const pln_module *b,
                             pln_module_difference *d) {
  bool same;
  PLN_TRY(equal_names(a, b, d));
  if (d->what)
    return PLN_OK;
  if (pln_module_n_types(a) != pln_module_n_types(b)) {
    d->what = PLN_MODULES_TYPES;
    return PLN_OK;
  }
  PLN_TRY(pln_attrs_equal(a->engine, a->attrs, b->attrs, &same));
  if (!same)
    d->what = PLN_MODULES_ATTRS;
  return PLN_OK;
}

static pln_status compare(const pln_module *a, const pln_module *b,
                          pln_type_match *m, pln_module_difference *out) {
  *out = (pln_module_difference){.what = PLN_MODULES_EQUAL};
  if (a == b)
    return PLN_OK;
  if (a->engine != b->engine) {
    out->what = PLN_MODULES_ENGINE;
    return PLN_OK;
  }
  PLN_TRY(equal_rest(a, b, out));
  if (!out->what)
    PLN_TRY(equal_types(m, a, b, out));
  return out->what ? PLN_OK : equal_functions(m, a, b, out);
}

pln_status pln_module_compare(const pln_module *a, const pln_module *b,
                              pln_type_match *m, pln_module_difference *out) {
  pln_stoppable_begin(a->engine);
  return pln_work_done(a->engine, compare(a, b, m, out));
}

pln_status pln_module_equal(const pln_module *a, const pln_module *b,
                            bool *out) {
  pln_type_match m = {.engine = a->engine};
  pln_module_difference d;
  pln_status status = pln_module_compare(a, b, &m, &d);
  if (status == PLN_OK)
    *out = d.what == PLN_MODULES_EQUAL;
  pln_type_match_free(&m);
  return status;
}

/* -------------------------------------------------------------------- hash */

static uint64_t hash_name(const pln_module *m, pln_symbol name) {
  pln_slice text = pln_symbol_text(m->engine, name);
  return pln_hash_bytes(text.data, text.size, 0);
}

static uint64_t hash_definition(const pln_module *m, const pln_type_def *t) {
  uint64_t h = pln_hash_mix(hash_name(m, t->name), t->n_vars);
  for (uint32_t i = 0; i < t->n_constructors; i++) {
    h = pln_hash_mix(h, hash_name(m, t->constructors[i].name));
    h = pln_hash_mix(h, t->constructors[i].n_inputs);
  }
  return h;
}

/* The sum over rows does not depend on their order. Free variables are mapped,
 * so the hash agrees with both kinds of equality. */
static pln_status hash_module(const pln_module *module, uint64_t *out) {
  uint64_t sum = module->count;
  for (uint32_t i = 0; i < module->count; i++) {
    const pln_graph *f = pln_module_function_at(module, i);
    uint64_t hash;
    PLN_TRY(pln_poll_stoppable(module->engine));
    PLN_TRY(pln_graph_hash(f, f->root, true, &hash));
    sum += pln_hash_mix(hash, hash_name(module, pln_module_name_at(module, i)));
  }
  for (uint32_t i = 0; i < pln_module_n_types(module); i++)
    sum += hash_definition(module, pln_module_type_def_at(module, i));
  *out = sum;
  return PLN_OK;
}

pln_status pln_module_hash(const pln_module *module, uint64_t *out) {
  pln_stoppable_begin(module->engine);
  return pln_work_done(module->engine, hash_module(module, out));
}
