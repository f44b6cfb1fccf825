/* domains.c: collects the domains that a function's nodes use, and the versions
 * that must be imported for them.
 *
 * Called for nodes that are not from the file; the imports of the file stay.
 * Invariant: a domain is recorded once. */

#include "onnx/export/export.h"

/* The version for a domain that the model does not import. */
static int64_t least_version(const pln_export *ex, pln_slice domain,
                             int64_t since) {
  enum { LEARNING = 3 };
  if (pln_onnx_same_domain(domain, pln_text("")))
    return ex->opset;
  if (pln_slice_is(domain, "ai.onnx.ml") && since < LEARNING)
    return LEARNING;
  return since;
}

pln_status pln_export_use_domain(pln_export *ex, pln_slice domain,
                                 int64_t since) {
  pln_domain_use use;
  if (domain.size == 0)
    domain = pln_text("ai.onnx");
  PLN_TRY(pln_symbol_intern(ex->engine, domain, &use.domain));
  use.version = least_version(ex, domain, since);
  for (uint32_t i = 0; i < ex->n_domains; i++)
    if (ex->domains[i].domain == use.domain) {
      if (ex->domains[i].version < use.version)
        ex->domains[i].version = use.version;
      return PLN_OK;
    }
  PLN_TRY(pln_mem_grow(ex->engine, (void **)&ex->domains, &ex->cap_domains,
                       (size_t)ex->n_domains + 1, sizeof *ex->domains));
  ex->domains[ex->n_domains++] = use;
  return PLN_OK;
}

pln_status pln_export_used_opsets(const pln_export *ex, pln_attrs opsets,
                                  pln_attrs *out) {
  *out = opsets;
  for (uint32_t i = 0; i < ex->n_domains; i++) {
    const pln_domain_use *use = &ex->domains[i];
    pln_attr entry = {
        .name = use->domain, .kind = PLN_ATTR_INT, .v.i = use->version};
    pln_slice domain = pln_symbol_text(ex->engine, use->domain);
    if (pln_onnx_opset(ex->engine, *out, domain, 0) == 0)
      PLN_TRY(pln_attrs_with(ex->engine, *out, &entry, out));
  }
  return PLN_OK;
}
