/* sequential.c: runs the elements of a list that the context enables, each
 * after the passes it requires. Called by execute.c and by the other
 * combinators. */

#include "pass/pass.h"

static pln_status run_with_required(pln_execution *x, const pln_pass *pass,
                                    pln_pass_target *s) {
  if (pass->def->n_required)
    PLN_TRY(pln_run_required(x, pass, s));
  return pln_execute(x, pass, s);
}

/* The number of the run among those of passes of that name; 0 if runs are not
 * counted. */
static pln_status occurrence(pln_execution *x, const pln_pass *element,
                             uint32_t *nth) {
  *nth = 0;
  if (!x->context->counts)
    return PLN_OK;
  if (!x->counts)
    PLN_TRY(pln_idmap_new(x->engine, &x->counts));
  *nth = pln_idmap_get(x->counts, element->name) + 1;
  return pln_idmap_set(x->counts, element->name, *nth);
}

/* `if changed` tests whether the preceding element changed the target. */
static pln_status run_enabled_element(pln_execution *x, const pln_pass *element,
                                      bool changed, pln_pass_target *s) {
  uint32_t nth;
  if (element->def->form == PLN_COMBINATOR_IF_CHANGED && !changed)
    return PLN_OK;
  PLN_TRY(occurrence(x, element, &nth));
  if (!pln_context_enables(x->context, element, nth))
    return PLN_OK;
  return run_with_required(x, element, s);
}

static pln_status one(pln_execution *x, const pln_pass *element, bool *changed,
                      pln_pass_target *s) {
  pln_pass_target before = pln_pass_target_copy(s);
  pln_status status = run_enabled_element(x, element, *changed, s);
  if (status != PLN_OK)
    pln_position_note_failure(x, element, &before);
  *changed = !pln_pass_target_same(&before, s);
  pln_pass_target_release(&before);
  return status;
}

pln_status pln_run_elements(pln_execution *x, const pln_pass *pass,
                            uint32_t begin, uint32_t end, pln_pass_target *s) {
  bool changed = false;
  pln_status status = PLN_OK;
  pln_position here = {
      .outer = x->position, .list = pass, .iteration = x->iteration};
  x->iteration = 0;
  x->position = &here;
  for (uint32_t i = begin; i < end && status == PLN_OK; i++) {
    here.index = i;
    status = one(x, pass->def->elements[i], &changed, s);
  }
  x->position = here.outer;
  return status;
}
