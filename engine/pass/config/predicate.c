/* predicate.c: functions as the values of options.
 *
 * Called when passes are made and by the bodies of passes. A function is no
 * attribute: attributes are interned and live as long as the engine, a function
 * lives as long as the passes that have it. Invariant: each entry of a pass's
 * list names an option of the kind function. */

#include <stdio.h>

#include "pass/pass.h"

pln_given_predicate *pln_predicates_retain(pln_given_predicate *list) {
  if (list)
    list->refs++;
  return list;
}

void pln_predicates_release(pln_engine *engine, pln_given_predicate *list) {
  while (list && !--list->refs) {
    pln_given_predicate *next = list->next;
    if (list->predicate.release)
      list->predicate.release(list->predicate.ud);
    pln_mem_free(engine, list, sizeof *list);
    list = next;
  }
}

static pln_status check_option(const pln_pass *pass, const char *option) {
  char whom[160];
  const pln_pass_def *def = pass->def;
  const pln_option *row =
      pln_option_find(def->options, def->n_options, pln_text(option));
  snprintf(whom, sizeof whom, "pass '%s'", pln_pass_name(pass));
  if (!row)
    return pln_option_unknown(pass->engine, whom, "option", def->options,
                              def->n_options, pln_text(option));
  if (row->kind == PLN_ATTR_NONE)
    return PLN_OK;
  char wanted[256];
  pln_option_describe(row, wanted, sizeof wanted);
  return pln_diag_error(pass->engine, PLN_ERR_TYPE, NULL,
                        "%s: option '%s' expects %s, got a function", whom,
                        option, wanted);
}

static pln_status new_entry(pln_pass *pass, const char *option,
                            const pln_predicate *predicate,
                            pln_given_predicate **out) {
  pln_symbol name;
  PLN_TRY(check_option(pass, option));
  PLN_TRY(pln_symbol_intern(pass->engine, pln_text(option), &name));
  *out = pln_mem_new(pass->engine, sizeof **out);
  if (!*out)
    return pln_nomem(pass->engine);
  **out = (pln_given_predicate){.refs = 1,
                                .option = name,
                                .predicate = *predicate,
                                .next = pass->predicates};
  return PLN_OK;
}

pln_status pln_pass_set_predicate(pln_pass *pass, const char *option,
                                  const pln_predicate *predicate) {
  pln_given_predicate *entry;
  pln_status status = new_entry(pass, option, predicate, &entry);
  if (status == PLN_OK)
    pass->predicates = entry;
  else if (predicate->release)
    predicate->release(predicate->ud);
  return status;
}

const pln_predicate *pln_pass_predicate(const pln_pass *pass,
                                        const char *option) {
  const pln_given_predicate *p = pass->predicates;
  while (p && !pln_slice_is(pln_symbol_text(pass->engine, p->option), option))
    p = p->next;
  return p ? &p->predicate : NULL;
}
