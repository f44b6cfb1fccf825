/* callee.c: calls between functions of one unit: call_extern of a function that
 * stands before its caller. Called by call.c.
 *
 * A called function gets a part of its caller's workspace, which all called
 * functions share: they run one after the other. What it returns other than
 * PLN_C_OK its caller returns. */

#include "codegen/writer.h"

static uint32_t index_of(const pln_cw *w) {
  return (uint32_t)(w->fn - w->code->functions);
}

/* After each variant of a function: of two the larger memory counts. */
void pln_c_note_callee(pln_cw *w) {
  pln_c_callee *c = &w->callees[index_of(w)];
  bool fixed = w->n_dims == 0 && w->n_sizes == 0;
  c->is_fixed = c->written ? c->is_fixed && fixed : fixed;
  c->written = true;
  c->uses_workspace |= w->uses_workspace;
  if (c->workspace_bytes < w->workspace_bytes)
    c->workspace_bytes = w->workspace_bytes;
}

const pln_c_callee *pln_c_find_callee(const pln_cw *w, pln_slice name) {
  for (uint32_t i = 0; i < index_of(w); i++) {
    pln_symbol symbol = w->code->functions[i].c_name;
    if (pln_slice_equal(pln_symbol_text(w->engine, symbol), name))
      return &w->callees[i];
  }
  return NULL;
}

static uint64_t most_bytes(const pln_cw *w) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < index_of(w); i++)
    if (w->callees[i].workspace_bytes > most)
      most = w->callees[i].workspace_bytes;
  return most;
}

/* Reserves memory for every function before, at the first call. */
static uint64_t callee_base(pln_cw *w) {
  if (!w->has_callees) {
    w->callee_base = w->workspace_bytes;
    w->workspace_bytes += (most_bytes(w) + 63) / 64 * 64;
  }
  w->has_callees = w->uses_workspace = true;
  return w->callee_base;
}

void pln_c_call_callee(pln_cw *w, const pln_c_callee *callee, uint32_t n_args,
                       const char *args) {
  const pln_c_function *fn = &w->code->functions[callee - w->callees];
  const char *name = pln_symbol_text(w->engine, fn->c_name).data;
  if (w->region.outer)
    pln_c_refuse(w, "a call of function '%s' in a parallel loop", name);
  if (!callee->is_fixed)
    pln_c_refuse(w, "a call of function '%s', whose shapes are variables",
                 name);
  if (n_args != fn->n_params)
    pln_c_refuse(w, "function '%s' takes %u arguments, not %u", name,
                 fn->n_params, n_args);
  const char *result = pln_c_temp(w);
  if (callee->uses_workspace)
    pln_c_line(w, "const int32_t %s = %s(%s%s(char *)workspace + %llu);",
               result, name, args, n_args ? ", " : "",
               (unsigned long long)callee_base(w));
  else
    pln_c_line(w, "const int32_t %s = %s(%s);", result, name, args);
  pln_c_line(w, "if (%s != %d)", result, PLN_C_OK);
  pln_c_line(w, "  return %s;", result);
}
