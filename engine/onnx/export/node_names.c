/* node_names.c: keeps the names of nodes unique.
 *
 * Called for a node whose name may be another's: it comes from a dissolved
 * graph or was copied. Invariants: nodes that are in their place of the file
 * keep their names; the names of a function are listed once, and only when such
 * a node exists. */

#include <stdio.h>

#include "onnx/export/export.h"

/* Returns true if the node is in the same graph as in the file. */
static bool is_in_place(const pln_graph *g, pln_scope node_scope,
                        const pln_origin *o) {
  uint32_t row = pln_origins_source(g->origins, g->scopes[node_scope].origin);
  const pln_origin *scope = pln_origins_row(g->origins, row);
  return scope->file == o->file && scope->offset == o->graph;
}

static pln_status list_names(pln_export *ex, const pln_scope *node_scope) {
  const pln_graph *g = ex->g;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    pln_kind kind = (pln_kind)g->nodes[i].kind;
    if (kind != PLN_CALL && kind != PLN_IF && kind != PLN_CONSTANT)
      continue;
    const pln_origin *o = pln_export_origin(ex, i);
    pln_slice name;
    if (!pln_origin_is_node(o) || !is_in_place(g, node_scope[i], o))
      continue;
    PLN_TRY(pln_decode_string(&ex->decoder, pln_origin_message(o), "NodeProto",
                              NODE_NAME, &name));
    if (name.size &&
        pln_scoped_names_find(&ex->node_names, name, 0) == PLN_NONE)
      PLN_TRY(pln_scoped_names_add(&ex->node_names, name, i));
  }
  return PLN_OK;
}

static pln_status list_once(pln_export *ex) {
  if (ex->node_names_known || !ex->g->origins)
    return PLN_OK;
  size_t size = ex->g->n_nodes * sizeof(pln_scope);
  pln_scope *node_scope = pln_mem_new(ex->engine, size);
  if (!node_scope)
    return pln_nomem(ex->engine);
  pln_graph_node_scopes(ex->g, node_scope);
  pln_status status = list_names(ex, node_scope);
  pln_mem_free(ex->engine, node_scope, size);
  ex->node_names_known = status == PLN_OK;
  return status;
}

static pln_status make_name(pln_export *ex, pln_slice base, pln_slice *out) {
  char *text = pln_arena_new(&ex->names_arena, base.size + 24);
  if (!text)
    return pln_nomem(ex->engine);
  memcpy(text, base.data, base.size);
  do {
    int digits = snprintf(text + base.size, 24, "_%llu",
                          (unsigned long long)ex->n_made++);
    *out = (pln_slice){text, base.size + (size_t)digits};
  } while (pln_scoped_names_find(&ex->node_names, *out, 0) != PLN_NONE);
  return PLN_OK;
}

pln_status pln_export_node_name(pln_export *ex, pln_ref node, pln_slice name,
                                pln_slice *out) {
  *out = (pln_slice){NULL, 0};
  PLN_TRY(list_once(ex));
  uint32_t row = pln_scoped_names_find(&ex->node_names, name, 0);
  if (row == PLN_NONE)
    return pln_scoped_names_add(&ex->node_names, name, node);
  if (ex->node_names.rows[row].value == node)
    return PLN_OK;
  PLN_TRY(make_name(ex, name, out));
  return pln_scoped_names_add(&ex->node_names, *out, node);
}
