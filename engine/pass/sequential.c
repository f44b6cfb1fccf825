/* sequential.c: runs the elements of a list that the context enables, each
 * after what it requires. Called by execute.c and by the forms made of lists.
 */

#include "pass/pass.h"

static pln_status step(pln_execution *x, const pln_pass *pass, pln_subject *s) {
  if (pass->def->n_required)
    PLN_TRY(pln_run_required(x, pass, s));
  return pln_execute(x, pass, s);
}

/* `if changed` looks at what the element before it did. */
static bool runs(const pln_execution *x, const pln_pass *element,
                 bool changed) {
  if (element->def->form == PLN_FORM_IF_CHANGED && !changed)
    return false;
  return pln_context_enables(x->context, element);
}

pln_status pln_run_elements(pln_execution *x, const pln_pass *pass,
                            uint32_t begin, uint32_t end, pln_subject *s) {
  bool changed = false;
  pln_status status = PLN_OK;
  for (uint32_t i = begin; i < end && status == PLN_OK; i++) {
    const pln_pass *element = pass->def->elements[i];
    pln_subject before = pln_subject_copy(s);
    if (runs(x, element, changed))
      status = step(x, element, s);
    changed = !pln_subject_same(&before, s);
    pln_subject_drop(&before);
  }
  return status;
}
