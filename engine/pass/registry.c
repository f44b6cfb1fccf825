/* registry.c: the passes of an engine by name.
 *
 * Called by engine.c, by transform/ for the built-in passes, and by users.
 * Invariants: a name is registered once; existing pass objects do not change
 * when a name is registered again. */

#include "pass/cache/cache.h"
#include "pass/parallel/parallel.h"

static pln_status fill_registry(pln_engine *engine, struct pln_registry *r) {
  static const pln_option fold = PLN_FOLD_OPTION;
  pln_context *context;
  PLN_TRY(pln_idmap_new(engine, &r->by_name));
  PLN_TRY(pln_idmap_new(engine, &r->seen));
  PLN_TRY(pln_config_register(engine, &fold));
  PLN_TRY(pln_limits_install(engine));
  PLN_TRY(pln_failure_install(engine));
  PLN_TRY(pln_context_new(engine, NULL, &context));
  r->main_stack = pln_mem_zeroed(engine, sizeof *r->main_stack);
  if (!r->main_stack) {
    pln_context_release(context);
    return pln_nomem(engine);
  }
  *r->main_stack = (pln_context_stack){.engine = engine, .base = context};
  r->stack = r->main_stack;
  return PLN_OK;
}

pln_status pln_passes_new(pln_engine *engine) {
  struct pln_registry *r = pln_mem_zeroed(engine, sizeof *r);
  if (!r)
    return pln_nomem(engine);
  r->engine = engine;
  engine->passes = r;
  pln_status status = fill_registry(engine, r);
  if (status != PLN_OK)
    pln_passes_free(engine);
  return status;
}

/* ---------------------------------------------------------------- children */

static pln_status append(struct pln_registry *r, pln_pass *pass,
                         bool built_in) {
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->passes, &r->cap_passes,
                       (size_t)r->n_passes + 1, sizeof *r->passes));
  PLN_TRY(pln_idmap_set(r->by_name, pass->name, r->n_passes + 1));
  r->passes[r->n_passes++] = (pln_registered){pass, built_in};
  return PLN_OK;
}

static pln_status copy_passes(struct pln_registry *r,
                              const struct pln_registry *from) {
  for (uint32_t i = 0; i < from->n_passes; i++) {
    const pln_pass *pass = from->passes[i].pass;
    pln_pass *own;
    if (pass->predicates)
      continue; /* its functions belong to the parent's thread */
    PLN_TRY(pln_pass_of(r->engine, pass->name, pass->def, pass->options, &own));
    pln_status status = append(r, own, from->passes[i].built_in);
    if (status != PLN_OK) {
      pln_pass_release(own);
      return status;
    }
  }
  return PLN_OK;
}

static pln_status copy_keys(struct pln_registry *r,
                            const struct pln_registry *from) {
  void *keys = NULL;
  PLN_TRY(pln_mem_grow(r->engine, &keys, &r->cap_keys, from->n_keys,
                       sizeof *r->keys));
  r->keys = keys;
  memcpy(r->keys, from->keys, from->n_keys * sizeof *r->keys);
  r->n_keys = r->n_built_in_keys = r->n_inherited = from->n_keys;
  r->key_defaults = from->key_defaults;
  return PLN_OK;
}

pln_status pln_passes_child(pln_engine *child, const pln_context *context) {
  const struct pln_registry *from = child->parent->passes;
  struct pln_registry *r = pln_mem_zeroed(child, sizeof *r);
  if (!r)
    return pln_nomem(child);
  child->passes = r;
  r->engine = child;
  r->running = from->running;
  if (context->instruments)
    r->closed = "instruments see no passes that run in other threads";
  PLN_TRY(pln_idmap_new(child, &r->by_name));
  PLN_TRY(pln_idmap_new(child, &r->seen));
  PLN_TRY(copy_keys(r, from));
  PLN_TRY(copy_passes(r, from));
  r->main_stack = pln_mem_zeroed(child, sizeof *r->main_stack);
  if (!r->main_stack)
    return pln_nomem(child);
  r->main_stack->engine = child;
  r->stack = r->main_stack;
  return pln_context_child(child, context, &r->main_stack->base);
}

void pln_passes_free(pln_engine *engine) {
  struct pln_registry *r = engine->passes;
  if (!r)
    return;
  pln_thread_pool_free(r->thread_pool);
  pln_cache_free(engine);
  pln_context_stack_free(r->main_stack);
  pln_failure_clear(engine);
  for (uint32_t i = 0; i < r->n_passes; i++)
    pln_pass_release(r->passes[i].pass);
  pln_report_clear(engine);
  pln_mem_free(engine, r->passes, r->cap_passes * sizeof *r->passes);
  /* A child shares the fields of the keys that it inherited. */
  pln_options_free(engine, r->n_keys - r->n_inherited,
                   r->keys ? r->keys + r->n_inherited : NULL);
  pln_mem_free(engine, r->keys, r->cap_keys * sizeof *r->keys);
  pln_mem_free(engine, r->rows, r->cap_rows * sizeof *r->rows);
  pln_idmap_free(r->by_name);
  pln_idmap_free(r->seen);
  pln_mem_free(engine, r, sizeof *r);
  engine->passes = NULL;
}

static pln_registered *find_registered_pass(const pln_engine *engine,
                                            pln_symbol name) {
  uint32_t at = pln_idmap_get(engine->passes->by_name, name);
  return at ? &engine->passes->passes[at - 1] : NULL;
}

const pln_pass *pln_pass_lookup(const pln_engine *engine, pln_symbol name) {
  const pln_registered *row = find_registered_pass(engine, name);
  return row ? row->pass : NULL;
}

const pln_pass *pln_pass_registry_at(const pln_engine *engine, uint32_t index) {
  const struct pln_registry *r = engine->passes;
  return index < r->n_passes ? r->passes[index].pass : NULL;
}

pln_status pln_pass_unknown(pln_engine *engine, const pln_span *span,
                            const char *before, const char *name) {
  const struct pln_registry *r = engine->passes;
  char hint[160] = "";
  const char **names =
      pln_mem_new(engine, ((size_t)r->n_passes + 1) * sizeof *names);
  if (!names)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < r->n_passes; i++)
    names[i] = pln_pass_name(r->passes[i].pass);
  pln_suggest(name, r->n_passes, names, hint, sizeof hint);
  pln_mem_free(engine, names, ((size_t)r->n_passes + 1) * sizeof *names);
  return pln_diag_error(engine, PLN_ERR_NAME, span,
                        "%spass '%s' is not registered%s", before, name, hint);
}

/* -------------------------------------------------------------- registering */

static pln_status add_registered_pass(pln_engine *engine, pln_pass *pass,
                                      bool built_in) {
  pln_registered *row = find_registered_pass(engine, pass->name);
  if (!row)
    return append(engine->passes, pass, built_in);
  if (row->built_in)
    return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                          "pass '%s' is built in; register another name",
                          pln_pass_name(pass));
  pln_pass *former = row->pass;
  row->pass = pass;
  pln_pass_release(former);
  return PLN_OK;
}

/* Registers the pass; takes ownership of `pass`. */
static pln_status add_or_release(pln_engine *engine, pln_pass *pass,
                                 bool built_in) {
  pln_status status = add_registered_pass(engine, pass, built_in);
  if (status != PLN_OK)
    pln_pass_release(pass);
  return status;
}

static pln_status add_spec(pln_engine *engine, const pln_pass_spec *spec,
                           bool built_in) {
  pln_pass *pass;
  PLN_TRY(pln_pass_new(engine, spec, &pass));
  return add_or_release(engine, pass, built_in);
}

pln_status pln_pass_register(pln_engine *engine, const pln_pass_spec *spec) {
  return add_spec(engine, spec, false);
}

pln_status pln_pass_register_built_in(pln_engine *engine,
                                      const pln_pass_spec *spec) {
  return add_spec(engine, spec, true);
}

static pln_status make_sequential(pln_engine *engine,
                                  const pln_sequential_spec *spec,
                                  pln_pass **out) {
  pln_symbol doc;
  pln_pass *parsed;
  PLN_TRY(pln_symbol_intern(engine, pln_text(spec->doc), &doc));
  PLN_TRY(pln_pipeline_parse(engine, pln_text(spec->elements), &parsed));
  pln_status status = pln_sequential_new(
      engine, spec->name, spec->opt_level, spec->n_required, spec->required,
      parsed->def->n_elements, parsed->def->elements, out);
  pln_pass_release(parsed);
  if (status == PLN_OK)
    (*out)->def->doc = pln_symbol_text(engine, doc).data;
  return status;
}

pln_status pln_sequential_register_built_in(pln_engine *engine,
                                            const pln_sequential_spec *spec) {
  pln_pass *pass;
  PLN_TRY(make_sequential(engine, spec, &pass));
  return add_or_release(engine, pass, true);
}

pln_status pln_pass_register_object(pln_engine *engine, const char *name,
                                    pln_pass *pass) {
  pln_symbol symbol;
  pln_pass *named;
  if (!name || !*name)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "a pass needs a name");
  PLN_TRY(pln_symbol_intern(engine, pln_text(name), &symbol));
  PLN_TRY(pln_pass_like(engine, symbol, pass, pass->options, &named));
  return add_or_release(engine, named, false);
}

/* Removes a row; the rows after it move up. */
static void remove_row(struct pln_registry *r, uint32_t index) {
  r->n_passes--;
  for (uint32_t i = index; i < r->n_passes; i++) {
    r->passes[i] = r->passes[i + 1];
    /* Setting a key that exists allocates nothing and cannot fail. */
    (void)!pln_idmap_set(r->by_name, r->passes[i].pass->name, i + 1);
  }
}

pln_status pln_pass_unregister(pln_engine *engine, const char *name) {
  struct pln_registry *r = engine->passes;
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(engine, pln_text(name), &symbol));
  pln_registered *row = find_registered_pass(engine, symbol);
  if (!row)
    return pln_pass_unknown(engine, NULL, "", name);
  if (row->built_in)
    return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                          "pass '%s' is built in and stays registered", name);
  pln_pass *pass = row->pass;
  PLN_TRY(pln_idmap_set(r->by_name, symbol, 0));
  remove_row(r, (uint32_t)(row - r->passes));
  pln_pass_release(pass);
  return PLN_OK;
}

pln_status pln_pass_make(pln_engine *engine, const char *name,
                         pln_attrs options, pln_pass **out) {
  pln_symbol symbol;
  pln_attrs checked;
  PLN_TRY(pln_symbol_intern(engine, pln_text(name), &symbol));
  const pln_pass *pass = pln_pass_lookup(engine, symbol);
  if (!pass)
    return pln_pass_unknown(engine, NULL, "", name);
  PLN_TRY(pln_options_check(engine, pass, options, &checked));
  PLN_TRY(pln_options_over(engine, pass->options, &checked));
  return pln_pass_like(engine, symbol, pass, checked, out);
}
