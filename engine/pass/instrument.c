/* instrument.c: calls the five instrument hooks around contexts and passes.
 *
 * Called when contexts are entered and left, and by the executor. Invariants:
 * hooks run in the order, and with the failure semantics, of the table in
 * pass/README.md (TVM's); a list that a hook replaces stays alive until the
 * iteration over it ends. */

#include "pass/pass.h"

static size_t size_of(uint32_t n) {
  return sizeof(pln_instruments) + n * sizeof(pln_instrument);
}

static void release_items(uint32_t n, const pln_instrument *items) {
  for (uint32_t i = 0; i < n; i++)
    if (items[i].release)
      items[i].release(items[i].ud);
}

static pln_status copy_name(pln_engine *engine, pln_instrument *item) {
  pln_symbol symbol;
  const char *name = item->name ? item->name : "instrument";
  PLN_TRY(pln_symbol_intern(engine, pln_text(name), &symbol));
  item->name = pln_symbol_text(engine, symbol).data;
  return PLN_OK;
}

static pln_status copy_instruments(pln_engine *engine, pln_instruments *list,
                                   const pln_instrument *items) {
  for (uint32_t i = 0; i < list->n; i++) {
    list->items[i] = items[i];
    PLN_TRY(copy_name(engine, &list->items[i]));
  }
  return PLN_OK;
}

pln_status pln_instruments_new(pln_engine *engine, uint32_t n,
                               const pln_instrument *items,
                               pln_instruments **out) {
  pln_instruments *list = pln_mem_zeroed(engine, size_of(n));
  pln_status status = PLN_OK;
  if (list) {
    *list = (pln_instruments){1, n};
    status = copy_instruments(engine, list, items);
  } else {
    status = pln_nomem(engine);
  }
  if (status == PLN_OK) {
    *out = list;
    return PLN_OK;
  }
  release_items(n, items);
  pln_mem_free(engine, list, size_of(n));
  return status;
}

void pln_instruments_release(pln_engine *engine, pln_instruments *list) {
  if (!list || --list->refs)
    return;
  release_items(list->n, list->items);
  pln_mem_free(engine, list, size_of(list->n));
}

static pln_instruments *hold(const pln_context *context) {
  if (context->instruments)
    context->instruments->refs++;
  return context->instruments;
}

static void clear_context_instruments(pln_context *context) {
  pln_instruments *list = context->instruments;
  context->instruments = NULL;
  pln_instruments_release(context->engine, list);
}

/* Adds a note to a failure: the instrument, its hook and, if any, the pass. */
static void note_failing_hook(pln_engine *engine, const pln_instrument *item,
                              const char *hook, const pln_pass *pass,
                              pln_status status) {
  if (status != PLN_OK && pass)
    pln_diag_note(engine, NULL, "in hook '%s' of instrument '%s', pass '%s'",
                  hook, item->name, pln_pass_name(pass));
  else if (status != PLN_OK)
    pln_diag_note(engine, NULL, "in hook '%s' of instrument '%s'", hook,
                  item->name);
}

/* --------------------------------------------------------- around contexts */

/* Calls the exit hooks of the first k instruments, last first. Their failures
 * become warnings, because the first failure is the one to report. */
static void roll_back(pln_context *context, const pln_instruments *list,
                      uint32_t k) {
  size_t mark = pln_diag_count(context->engine);
  while (k-- > 0)
    if (list->items[k].exit)
      (void)!list->items[k].exit(list->items[k].ud, context);
  pln_diag_demote(context->engine, mark);
}

pln_status pln_hooks_enter(pln_context *context) {
  pln_instruments *list = hold(context);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; list && i < list->n && status == PLN_OK; i++) {
    const pln_instrument *item = &list->items[i];
    if (!item->enter)
      continue;
    status = item->enter(item->ud, context);
    note_failing_hook(context->engine, item, "enter", NULL, status);
    if (status != PLN_OK) {
      roll_back(context, list, i);
      clear_context_instruments(context);
    }
  }
  pln_instruments_release(context->engine, list);
  return status;
}

pln_status pln_hooks_exit(pln_context *context) {
  pln_instruments *list = hold(context);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; list && i < list->n && status == PLN_OK; i++) {
    const pln_instrument *item = &list->items[i];
    if (!item->exit)
      continue;
    status = item->exit(item->ud, context);
    note_failing_hook(context->engine, item, "exit", NULL, status);
    if (status != PLN_OK)
      clear_context_instruments(context);
  }
  pln_instruments_release(context->engine, list);
  return status;
}

/* ----------------------------------------------------------- around passes */

pln_status pln_hooks_should_run(pln_context *context, const pln_module *module,
                                const pln_pass *pass, bool *run) {
  *run = true;
  if (!context->instruments || pln_context_requires(context, pass->name))
    return PLN_OK;
  pln_instruments *list = hold(context);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < list->n && status == PLN_OK; i++) {
    bool yes = true;
    const pln_instrument *item = &list->items[i];
    if (item->should_run)
      status = item->should_run(item->ud, module, pass, &yes);
    note_failing_hook(context->engine, item, "should_run", pass, status);
    *run &= yes;
  }
  pln_instruments_release(context->engine, list);
  return status;
}

static pln_status around(pln_context *context, const pln_module *module,
                         const pln_pass *pass, bool after) {
  if (!context->instruments)
    return PLN_OK;
  pln_instruments *list = hold(context);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < list->n && status == PLN_OK; i++) {
    const pln_instrument *item = &list->items[i];
    if (after && item->after)
      status = item->after(item->ud, module, pass);
    else if (!after && item->before)
      status = item->before(item->ud, module, pass);
    note_failing_hook(context->engine, item, after ? "after" : "before", pass,
                      status);
  }
  pln_instruments_release(context->engine, list);
  return status;
}

pln_status pln_hooks_before(pln_context *context, const pln_module *module,
                            const pln_pass *pass) {
  return around(context, module, pass, false);
}

pln_status pln_hooks_after(pln_context *context, const pln_module *module,
                           const pln_pass *pass) {
  return around(context, module, pass, true);
}
