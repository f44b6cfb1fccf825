/* properties.c: what passes over PrimFuncs ask of a run, a function or a
 * statement (lower.h). */

#include <stdio.h>

#include "lower/lower.h"

pln_status pln_lower_config(const pln_pass_run *run, const char *key,
                            int64_t *out) {
  pln_attr value;
  PLN_TRY(pln_context_config_value(run->context, key, &value));
  *out = value.v.i;
  return PLN_OK;
}

pln_status pln_lower_function(pln_pass_run *run,
                              const pln_stmt_mutator *mutator) {
  pln_graph *function;
  PLN_TRY(pln_stmt_rewrite_function(pln_run_function(run), mutator, &function));
  pln_run_set_function(run, function);
  return PLN_OK;
}

bool pln_lower_is_fixed_point(const pln_pass_run *run, pln_fixed_point of) {
  return (run->function->fixed_points & of) != 0;
}

void pln_lower_note_fixed_point(const pln_pass_run *run, pln_fixed_point of) {
  if (run->new_function == run->function)
    run->new_function->fixed_points |= of;
}

static pln_status replace_attrs(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                pln_ref *node) {
  const pln_node *n = &pln_stmt_old(s)->nodes[stmt];
  pln_prim spec = {
      .kind = PLN_PRIM_FUNC, .type = n->type, .attrs = *(pln_attrs *)ud};
  return n->kind == PLN_PRIM_FUNC ? pln_stmt_rebuild_as(s, stmt, &spec, node)
                                  : PLN_OK;
}

pln_status pln_lower_with_attrs(const pln_graph *function, pln_attrs attrs,
                                pln_graph **out) {
  pln_stmt_mutator mutator = {.ud = &attrs, .leave = replace_attrs};
  if (function->nodes[function->root].attrs == attrs) {
    *out = pln_graph_retain(function);
    return PLN_OK;
  }
  return pln_stmt_rewrite_function(function, &mutator, out);
}

pln_status pln_lower_set_attrs(pln_pass_run *run, pln_attrs attrs) {
  pln_graph *function;
  PLN_TRY(pln_lower_with_attrs(pln_run_function(run), attrs, &function));
  pln_run_set_function(run, function);
  return PLN_OK;
}

pln_status pln_lower_step(pln_pass_run *run,
                          pln_status (*body)(pln_pass_run *run),
                          pln_graph **function) {
  pln_pass_run inner = *run;
  inner.function = *function;
  inner.new_function = NULL;
  pln_status status = body(&inner);
  run->counters = inner.counters;
  run->n_counters = inner.n_counters;
  run->cap_counters = inner.cap_counters;
  if (status == PLN_OK && inner.new_function) {
    pln_graph_release(*function);
    *function = inner.new_function;
  } else {
    pln_graph_release(inner.new_function);
  }
  return status;
}

bool pln_is_call_of(const pln_node *n, const char *builtin) {
  return n->kind == PLN_PRIM_CALL && n->data != 0 &&
         strcmp(pln_builtin_name(n->data), builtin) == 0;
}

pln_for_kind pln_for_kind_of(const pln_graph *g, pln_ref loop) {
  return (pln_for_kind)pln_attrs_int(g->engine, g->nodes[loop].attrs, "kind",
                                     PLN_FOR_SERIAL);
}

bool pln_has_kind(const pln_graph *g, pln_kind kind) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == kind)
      return true;
  return false;
}

bool pln_is_same_memory(const pln_graph *g, pln_ref x, pln_ref y) {
  const pln_node *m = &g->nodes[x], *n = &g->nodes[y];
  if (x == y)
    return true;
  if (m->type != n->type || m->count != n->count || m->results != n->results)
    return false;
  for (uint32_t i = 0; i < m->count; i++)
    if (!pln_same_expr(g, g->operands[m->first + i], g->operands[n->first + i]))
      return false;
  return true;
}

bool pln_is_legacy_te(const pln_graph *g) {
  return pln_attrs_int(g->engine, g->nodes[g->root].attrs,
                       "from_legacy_te_schedule", 0) != 0;
}

enum { COMM_REDUCE = 2 }; /* TVM's number */

bool pln_is_reduction_axis(const pln_graph *g, pln_ref block, uint32_t i) {
  const pln_attr *types =
      pln_attrs_find(g->engine, g->nodes[block].attrs, "iter_types");
  return types && types->kind == PLN_ATTR_INTS && i < types->count &&
         types->v.ints[i] == COMM_REDUCE;
}

pln_status pln_dtype_attr(pln_engine *e, pln_type type, pln_attrs *out) {
  char text[32];
  pln_symbol name;
  uint32_t lanes = (uint32_t)pln_type_number(e, type);
  int n = lanes > 1 ? snprintf(text, sizeof text, "%sx%u",
                               pln_dtype_name(pln_type_dtype(e, type)), lanes)
                    : snprintf(text, sizeof text, "%s",
                               pln_dtype_name(pln_type_dtype(e, type)));
  PLN_TRY(pln_symbol_intern(e, pln_text("dtype"), &name));
  return pln_attrs_with(e, 0,
                        &(pln_attr){.name = name,
                                    .kind = PLN_ATTR_STRING,
                                    .v.s = {text, (size_t)n}},
                        out);
}
