/* equivalent_terms.c: gives expressions that are equal by arithmetic one form
 * (equivalent_terms.h).
 *
 *     B[i] = x * (y + z); B[j] = x * y + x * z
 *         =>   B[i] = x * y + x * z; B[j] = x * y + x * z
 *
 * Called by common_subexpr_elim.c for the option identify_equiv_terms. The form
 * is what the analyzer simplifies an expression to. One that no other
 * expression is equal to stays as it is. */

#include "lower/common_subexpr/equivalent_terms.h"
#include "lower/common_subexpr/computation.h"

/* Larger expressions are equal only to themselves, so that the work for each
 * node is bounded. */
enum { MOST_SIZE = 256 };

typedef struct equivalence {
  const pln_graph *g;
  pln_analyzer *a;
  pln_computation_kinds kinds;
  pln_term *form_of;  /* by node: what it is simplified to, or PLN_NO_TERM */
  pln_term *first_of; /* by term: the first expression of that form */
  bool *several;      /* by term: several expressions have that form */
  uint32_t cap_first_of, cap_several;
} equivalence;

static pln_status grow(equivalence *x) {
  pln_analyzer *a = x->a;
  uint32_t old = x->cap_first_of, old_several = x->cap_several;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&x->first_of, &x->cap_first_of, a->n,
                       sizeof *x->first_of));
  memset(x->first_of + old, 0, (x->cap_first_of - old) * sizeof *x->first_of);
  PLN_TRY(pln_mem_grow(a->engine, (void **)&x->several, &x->cap_several, a->n,
                       sizeof *x->several));
  memset(x->several + old_several, 0,
         (x->cap_several - old_several) * sizeof *x->several);
  return PLN_OK;
}

static pln_status find_form(equivalence *x, pln_ref ref) {
  pln_analyzer *a = x->a;
  pln_term t, form;
  bool counts;
  PLN_TRY(pln_analyzer_import_more(a, x->g, ref, &t));
  if (pln_at(a, t)->size > MOST_SIZE)
    return PLN_OK;
  PLN_TRY(pln_is_computation(a, &x->kinds, t, &counts));
  if (!counts)
    return PLN_OK;
  PLN_TRY(pln_analyzer_simplify(a, t, 2, &form));
  PLN_TRY(pln_is_computation(a, &x->kinds, form, &counts));
  if (!counts)
    return PLN_OK;
  PLN_TRY(grow(x));
  x->form_of[ref] = form;
  if (!x->first_of[form])
    x->first_of[form] = t;
  x->several[form] = x->several[form] || x->first_of[form] != t;
  return PLN_OK;
}

static pln_status find_forms(equivalence *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (pln_is_prim(&x->g->nodes[ref]) && x->g->nodes[ref].kind != PLN_BUFFER &&
        pln_type_get_kind(x->g->engine, x->g->nodes[ref].type) == PLN_TYPE_PRIM)
      PLN_TRY(find_form(x, ref));
  return PLN_OK;
}

static pln_status use_form(void *ud, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  equivalence *x = ud;
  pln_term form = x->form_of[old];
  return form && x->several[form]
             ? pln_analyzer_export(x->a, pln_stmt_builder(s), form, node)
             : PLN_OK;
}

pln_status pln_unify_equivalent_terms(const pln_graph *function,
                                      pln_graph **out) {
  pln_engine *e = function->engine;
  size_t n = function->n_nodes;
  equivalence x = {.g = function};
  pln_stmt_mutator mutator = {.ud = &x, .expr = use_form};
  PLN_TRY(pln_analyzer_new(e, &x.a));
  x.form_of = pln_mem_zeroed(e, n * sizeof *x.form_of);
  pln_status status = x.form_of ? find_forms(&x) : pln_nomem(e);
  if (status == PLN_OK)
    status = pln_stmt_rewrite_function(function, &mutator, out);
  pln_mem_free(e, x.form_of, n * sizeof *x.form_of);
  pln_mem_free(e, x.first_of, x.cap_first_of * sizeof *x.first_of);
  pln_mem_free(e, x.several, x.cap_several * sizeof *x.several);
  pln_computation_kinds_free(x.a, &x.kinds);
  pln_analyzer_free(x.a);
  return status;
}
