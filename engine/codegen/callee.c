/* callee.c: calls between functions of one unit: call_extern of a function that
 * stands before its caller. Called by call.c.
 *
 * A called function gets a part of its caller's workspace, which all called
 * functions share: they run one after the other. The part of those whose memory
 * depends on their arguments lies behind all else. A function whose shapes have
 * variables is called with their values behind its parameters, as C has them.
 * What it returns other than PLN_C_OK its caller returns. */

#include "codegen/writer.h"

static uint32_t index_of(const pln_cw *w) {
  return (uint32_t)(w->fn - w->code->functions);
}

/* After each variant of a function: of two the larger memory counts. */
void pln_c_note_callee(pln_cw *w) {
  pln_c_callee *c = &w->callees[index_of(w)];
  c->is_sized |= w->n_sizes > 0 || w->has_sized;
  c->n_dims = w->n_dims;
  c->written = true;
  c->uses_workspace |= w->uses_workspace;
  if (c->workspace_bytes < w->workspace_bytes)
    c->workspace_bytes = w->workspace_bytes;
}

const pln_c_callee *pln_c_find_callee(const pln_cw *w, pln_symbol name) {
  uint32_t number = pln_idmap_get(w->function_names, name);
  return number > 0 && number - 1 < index_of(w) ? &w->callees[number - 1]
                                                : NULL;
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

static const char *name_of(const pln_cw *w, const pln_c_callee *callee) {
  const pln_c_function *fn = &w->code->functions[callee - w->callees];
  return pln_symbol_text(w->engine, fn->c_name).data;
}

static uint32_t n_wanted(const pln_cw *w, const pln_c_callee *callee) {
  return w->code->functions[callee - w->callees].n_params + callee->n_dims;
}

void pln_c_size_callee(pln_cw *w, const pln_c_callee *callee, pln_ref call) {
  const pln_c_function *fn = &w->code->functions[callee - w->callees];
  const pln_node *n = &w->g->nodes[call];
  const pln_ref *args = pln_operands(w->g, n) + 1;
  if (!callee->is_sized || n->count - 1 != n_wanted(w, callee))
    return;
  pln_c_text list = pln_c_textf(w, PLN_C_NAME, "%s", "");
  pln_c_top top = pln_c_begin_top(w);
  for (uint32_t i = 0; i < n->count - 1 && w->status == PLN_OK; i++) {
    if (i < fn->n_params && fn->params[i].is_buffer)
      continue;
    pln_c_value value = pln_c_named(w, pln_c_top_expr(w, args[i]));
    list =
        pln_c_textf(w, PLN_C_NAME, "%s%s%s", list.data,
                    list.data[0] ? ", " : "", pln_c_text_at(w, &value, 0).data);
  }
  w->out = &w->callee_sizes;
  pln_c_line(w, "if (%s_workspace_size(%s) > pl_most)", name_of(w, callee),
             list.data);
  pln_c_line(w, "  pl_most = %s_workspace_size(%s);", name_of(w, callee),
             list.data);
  pln_c_end_top(w, top);
  w->has_sized = w->uses_workspace = true;
}

static const char *workspace_of(pln_cw *w, const pln_c_callee *callee) {
  if (callee->is_sized)
    return "(char *)workspace + pl_callees";
  return pln_c_textf(w, PLN_C_NAME, "(char *)workspace + %llu",
                     (unsigned long long)callee_base(w))
      .data;
}

void pln_c_call_callee(pln_cw *w, const pln_c_callee *callee, uint32_t n_args,
                       const char *args) {
  const char *name = name_of(w, callee);
  if (w->region.outer)
    pln_c_refuse(w, "a call of function '%s' in a parallel loop", name);
  if (n_args != n_wanted(w, callee))
    pln_c_refuse(w, "function '%s' takes %u arguments, not %u", name,
                 n_wanted(w, callee), n_args);
  const char *result = pln_c_temp(w);
  if (callee->uses_workspace)
    pln_c_line(w, "const int32_t %s = %s(%s%s%s);", result, name, args,
               n_args ? ", " : "", workspace_of(w, callee));
  else
    pln_c_line(w, "const int32_t %s = %s(%s);", result, name, args);
  pln_c_line(w, "if (%s != %d)", result, PLN_C_OK);
  pln_c_line(w, "  return %s;", result);
}
