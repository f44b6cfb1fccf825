/* context.c: pass contexts and the stacks of contexts.
 *
 * Called by users through pln_context_* and read by the executor. Invariants: a
 * context never changes except for its instruments; an inner context hides the
 * outer one completely; a stack always has a current context. */

#include "pass/pass.h"

/* ------------------------------------------------------------------- making */

static pln_status begin_new_context(pln_engine *engine, pln_context **out) {
  pln_context *c = pln_mem_zeroed(engine, sizeof *c);
  if (!c)
    return pln_nomem(engine);
  c->engine = engine;
  c->refs = 1;
  *out = c;
  return PLN_OK;
}

/* Returns the context, or releases it if `status` is a failure. */
static pln_status finish_new_context(pln_status status, pln_context *c,
                                     pln_context **out) {
  if (status == PLN_OK)
    *out = c;
  else
    pln_context_release(c);
  return status;
}

static pln_status fill_context_spec(pln_engine *engine, pln_context *c,
                                    const pln_context_spec *spec) {
  c->opt_level = spec->opt_level;
  PLN_TRY(pln_selection_make(engine, "required: ", spec->n_required,
                             spec->required, &c->required));
  PLN_TRY(pln_selection_make(engine, "disabled: ", spec->n_disabled,
                             spec->disabled, &c->disabled));
  PLN_TRY(
      pln_selection_make(engine, "only: ", spec->n_only, spec->only, &c->only));
  c->counts = pln_selection_counts(&c->required) ||
              pln_selection_counts(&c->disabled) ||
              pln_selection_counts(&c->only);
  PLN_TRY(pln_config_check(engine, spec->config, &c->config));
  pln_limits_read(engine, c->config, &c->limits);
  return PLN_OK;
}

/* Makes a context without instruments. */
static pln_status new_context(pln_engine *engine, const pln_context_spec *spec,
                              pln_context **out) {
  pln_context *c = NULL;
  PLN_TRY(begin_new_context(engine, &c));
  return finish_new_context(fill_context_spec(engine, c, spec), c, out);
}

pln_status pln_context_new(pln_engine *engine, const pln_context_spec *spec,
                           pln_context **out) {
  static const pln_context_spec plain = {.opt_level = 2};
  pln_instruments *list = NULL;
  pln_context *context = NULL;
  if (!spec)
    spec = &plain;
  if (spec->n_instruments)
    PLN_TRY(pln_instruments_new(engine, spec->n_instruments, spec->instruments,
                                &list));
  pln_status status = new_context(engine, spec, &context);
  if (status != PLN_OK) {
    pln_instruments_release(engine, list);
    return status;
  }
  context->instruments = list;
  *out = context;
  return PLN_OK;
}

/* Instruments are not copied: hooks run in the parent only. */
static pln_status fill_child(pln_engine *child, const pln_context *from,
                             pln_context *c) {
  c->opt_level = from->opt_level;
  c->limits = from->limits;
  c->counts = from->counts;
  c->config = from->config;
  PLN_TRY(pln_selection_copy(child, &from->required, &c->required));
  PLN_TRY(pln_selection_copy(child, &from->disabled, &c->disabled));
  return pln_selection_copy(child, &from->only, &c->only);
}

pln_status pln_context_child(pln_engine *child, const pln_context *from,
                             pln_context **out) {
  pln_context *c = NULL;
  PLN_TRY(begin_new_context(child, &c));
  return finish_new_context(fill_child(child, from, c), c, out);
}

pln_context *pln_context_retain(const pln_context *context) {
  pln_context *mine = (pln_context *)context;
  mine->refs++;
  return mine;
}

void pln_context_release(pln_context *c) {
  if (!c || --c->refs)
    return;
  pln_instruments_release(c->engine, c->instruments);
  pln_selection_free(c->engine, &c->required);
  pln_selection_free(c->engine, &c->disabled);
  pln_selection_free(c->engine, &c->only);
  pln_mem_free(c->engine, c, sizeof *c);
}

/* ------------------------------------------------------------------ reading */

int pln_context_opt_level(const pln_context *context) {
  return context->opt_level;
}

pln_attrs pln_context_config(const pln_context *context) {
  return context->config;
}

static const char *text_at(const pln_context *c, const pln_selection *list,
                           uint32_t i) {
  if (i >= list->n)
    return NULL;
  return pln_symbol_text(c->engine, list->items[i].text).data;
}

uint32_t pln_context_n_required(const pln_context *context) {
  return context->required.n;
}

const char *pln_context_required_at(const pln_context *c, uint32_t i) {
  return text_at(c, &c->required, i);
}

uint32_t pln_context_n_disabled(const pln_context *context) {
  return context->disabled.n;
}

const char *pln_context_disabled_at(const pln_context *c, uint32_t i) {
  return text_at(c, &c->disabled, i);
}

uint32_t pln_context_n_only(const pln_context *context) {
  return context->only.n;
}

const char *pln_context_only_at(const pln_context *c, uint32_t i) {
  return text_at(c, &c->only, i);
}

uint32_t pln_context_n_instruments(const pln_context *context) {
  return context->instruments ? context->instruments->n : 0;
}

const pln_instrument *pln_context_instrument_at(const pln_context *c,
                                                uint32_t i) {
  return i < pln_context_n_instruments(c) ? &c->instruments->items[i] : NULL;
}

bool pln_context_disables(const pln_context *c, pln_symbol name) {
  return pln_selection_has(&c->disabled, name, 0);
}

bool pln_context_requires(const pln_context *c, pln_symbol name) {
  return pln_selection_has(&c->required, name, 0);
}

bool pln_context_enables(const pln_context *c, const pln_pass *pass,
                         uint32_t nth) {
  if (pln_selection_has(&c->disabled, pass->name, nth))
    return false;
  if (c->only.n && !pln_pass_is_sequential(pass))
    return pln_selection_has(&c->only, pass->name, nth);
  return c->opt_level >= pass->def->opt_level ||
         pln_selection_has(&c->required, pass->name, nth);
}

/* ------------------------------------------------------- entering, leaving */

pln_context *pln_context_current(const pln_engine *engine) {
  const pln_context_stack *s = engine->passes->stack;
  return s->n ? s->entered[s->n - 1] : s->base;
}

pln_status pln_context_enter(pln_context *context) {
  pln_engine *engine = context->engine;
  pln_context_stack *s = engine->passes->stack;
  /* The stack slot is reserved first, so that nothing can fail after the enter
   * hooks have run. A hook may enter contexts itself, hence the second
   * reservation. */
  PLN_TRY(pln_mem_grow(engine, (void **)&s->entered, &s->cap, (size_t)s->n + 1,
                       sizeof *s->entered));
  PLN_TRY(pln_hooks_enter(context));
  PLN_TRY(pln_mem_grow(engine, (void **)&s->entered, &s->cap, (size_t)s->n + 1,
                       sizeof *s->entered));
  s->entered[s->n++] = pln_context_retain(context);
  context->entered++;
  return PLN_OK;
}

static pln_status not_current(const pln_context *context,
                              const pln_context_stack *s) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->entered[i] == context)
      return pln_diag_error(context->engine, PLN_ERR_ARGUMENT, NULL,
                            "the context to be left is not the current one; "
                            "leave inner contexts first");
  return pln_diag_error(context->engine, PLN_ERR_ARGUMENT, NULL,
                        "the context to be left has not been entered");
}

pln_status pln_context_exit(pln_context *context) {
  pln_context_stack *s = context->engine->passes->stack;
  if (!s->n || s->entered[s->n - 1] != context)
    return not_current(context, s);
  s->n--;
  context->entered--;
  pln_status status = pln_hooks_exit(context);
  pln_context_release(context);
  return status;
}

pln_status pln_context_override_instruments(pln_context *context, uint32_t n,
                                            const pln_instrument *instruments) {
  pln_engine *engine = context->engine;
  pln_instruments *list = NULL;
  if (n)
    PLN_TRY(pln_instruments_new(engine, n, instruments, &list));
  pln_status status = pln_hooks_exit(context);
  if (status != PLN_OK) {
    pln_instruments_release(engine, list);
    return status;
  }
  pln_instruments *former = context->instruments;
  context->instruments = list;
  pln_instruments_release(engine, former);
  return pln_hooks_enter(context);
}

/* ------------------------------------------------------------------- stacks */

pln_status pln_context_stack_new(pln_engine *engine, pln_context_stack **out) {
  pln_context_stack *s = pln_mem_zeroed(engine, sizeof *s);
  if (!s)
    return pln_nomem(engine);
  s->engine = engine;
  s->base = pln_context_retain(pln_context_current(engine));
  *out = s;
  return PLN_OK;
}

void pln_context_stack_free(pln_context_stack *s) {
  if (!s)
    return;
  struct pln_registry *r = s->engine->passes;
  if (r->stack == s)
    r->stack = r->main_stack;
  while (s->n) {
    pln_context *context = s->entered[--s->n];
    context->entered--;
    pln_context_release(context);
  }
  pln_context_release(s->base);
  pln_mem_free(s->engine, s->entered, s->cap * sizeof *s->entered);
  pln_mem_free(s->engine, s, sizeof *s);
}

pln_context_stack *pln_context_stack_use(pln_engine *engine,
                                         pln_context_stack *stack) {
  struct pln_registry *r = engine->passes;
  pln_context_stack *former = r->stack;
  r->stack = stack ? stack : r->main_stack;
  return former == r->main_stack ? NULL : former;
}
