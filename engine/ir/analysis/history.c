/* history.c: reads the provenance of a node: the passes and rules that made it,
 * back to its source.
 *
 * Called through the public interface and by the binding. The walk follows
 * steps from new to old along the origin that gave the node its name, and ends
 * at the rows of the source: a value or node of a file, a span in a text, a
 * line of a script. */

#include <stdio.h>

#include "ir/graph/graph.h"

/* A node without an origin has that of its function. */
static uint32_t from_function(const pln_graph *g) {
  const pln_node *root = &g->nodes[g->root];
  if (!g->sealed || root->kind != PLN_FUNCTION)
    return 0;
  return g->scopes[root->data].origin;
}

uint32_t pln_node_history(const pln_graph *graph, pln_ref node) {
  if (!graph->origins)
    return 0;
  uint32_t origin = graph->origin[node];
  return origin ? origin : from_function(graph);
}

static void add_row(pln_history_row *out, const pln_origins *origins,
                    const pln_origin *o) {
  if (!out->op.size && pln_origins_is_node(origins, o)) {
    pln_slice_names names = origins->names(o);
    out->node = names.name.size ? names.name : names.output;
    out->op = names.op;
  }
  if (!out->name)
    out->name = o->name;
  if (!out->place.source)
    out->place = o->place;
  if (!out->line) {
    out->script = o->script;
    out->line = o->line;
  }
  if (!out->file && o->file)
    out->file = pln_file_path(o->file);
}

/* Rows made from one another describe the same source. A name may also have
 * been given to the result of a step; the steps below it then follow. */
static uint32_t read_rows(const pln_graph *g, uint32_t at,
                          pln_history_row *out) {
  while (at && !(at & PLN_ORIGIN_STEP)) {
    const pln_origin *o = pln_origins_row(g->origins, at);
    add_row(out, g->origins, o);
    at = o->parent;
  }
  return at;
}

static uint32_t read_step(const pln_graph *g, uint32_t at,
                          pln_history_row *out) {
  const pln_origin_step *step = pln_origins_step_at(g->origins, at);
  const pln_change *change = pln_origins_change(g->origins, step);
  out->pass = change->pass;
  out->rule = change->rule;
  out->run = change->run;
  out->application = step->number;
  out->from = step->parent ? step->parent : step->other;
  out->also = step->parent ? step->other : 0;
  if (out->from || !from_function(g))
    return out->from;
  return out->from = from_function(g);
}

uint32_t pln_history_next(const pln_graph *graph, uint32_t at,
                          pln_history_row *out) {
  *out = (pln_history_row){.is_source = !(at & PLN_ORIGIN_STEP), .at = at};
  if (!out->is_source)
    return read_step(graph, at, out);
  at = read_rows(graph, at, out);
  if (!at)
    return 0;
  /* a name given to a result: its source follows */
  *out = (pln_history_row){.at = at};
  return read_step(graph, at, out);
}

/* "model.relay:3:14", "build.lua:7", "model.onnx"; empty when unknown. */
static void describe_history_place(const pln_graph *g,
                                   const pln_history_row *row, char *text,
                                   size_t size) {
  const pln_engine *e = g->engine;
  if (row->place.source && !row->place.row)
    snprintf(text, size, "%.200s", pln_symbol_text(e, row->place.source).data);
  else if (row->place.row)
    snprintf(text, size, "%.200s:%u:%u",
             pln_symbol_text(e, row->place.source).data, row->place.row,
             row->place.column);
  else if (row->line)
    snprintf(text, size, "%.200s:%u", pln_symbol_text(e, row->script).data,
             row->line);
  else
    snprintf(text, size, "%.200s", row->file ? row->file : "");
}

size_t pln_history_describe(const pln_graph *graph, uint32_t at, char *text,
                            size_t size) {
  char what[512] = "", where[256];
  pln_history_row row = {0};
  uint32_t source = at;
  if (!at)
    return (size_t)snprintf(text, size, "%s", "");
  pln_origins_describe(graph->origins, at, what, sizeof what);
  while ((source = pln_origins_source(graph->origins, source)) != 0)
    source = read_rows(graph, source, &row);
  describe_history_place(graph, &row, where, sizeof where);
  int n =
      snprintf(text, size, "%s%s%s", what, *what && *where ? ", " : "", where);
  return n < 0 ? 0 : (size_t)n;
}
