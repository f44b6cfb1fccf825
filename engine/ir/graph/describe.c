/* describe.c: one-line descriptions of nodes, for messages: the node, its
 * operands, and their types.
 *
 *     add(%x: Tensor[(2), float32], Constant: int64)
 *
 * Called where inference refuses a node, possibly in a graph under
 * construction. It reads only the node and its operands, so that the cost does
 * not depend on the size of the graph. */

#include "ir/graph/describe.h"
#include "base/text/writer.h"

enum { MAX_OPERANDS = 8 };

static void put_symbol(pln_writer *w, const char *sigil, pln_symbol symbol) {
  pln_put_name(w, sigil, pln_symbol_text(w->engine, symbol));
}

/* Writes the node's name, or its kind. */
static void put_short(pln_writer *w, const pln_graph *g, const pln_node *n) {
  pln_slice op;
  switch ((pln_kind)n->kind) {
  case PLN_VAR: put_symbol(w, "%", n->attrs); return;
  case PLN_GLOBAL_VAR: put_symbol(w, "@", n->data); return;
  case PLN_CONSTRUCTOR:
  case PLN_PATTERN_CONSTRUCTOR: put_symbol(w, "", n->data); return;
  case PLN_OP: break;
  case PLN_CALL:
    if (n->data)
      break;
    pln_put_text(w, "a call");
    return;
  default: pln_put_text(w, pln_kind_name((pln_kind)n->kind)); return;
  }
  (void)g;
  op = pln_op_name(w->engine, n->data);
  pln_put(w, op.data, op.size);
}

static void put_operand(pln_writer *w, const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  put_short(w, g, n);
  if (n->type) {
    pln_put_text(w, ": ");
    pln_put_type(w, n->type);
  }
}

static void describe_node_text(pln_writer *w, const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  uint32_t first = n->kind == PLN_CALL && !n->data;
  put_short(w, g, first ? &g->nodes[g->operands[n->first]] : n);
  if (n->count == 0 && n->kind != PLN_CALL)
    return;
  pln_put_text(w, "(");
  for (uint32_t i = first; i < n->count && i < MAX_OPERANDS; i++) {
    pln_put_text(w, i > first ? ", " : "");
    put_operand(w, g, g->operands[n->first + i]);
  }
  pln_put_text(w, n->count > MAX_OPERANDS ? ", ...)" : ")");
}

typedef struct target {
  char *text;
  size_t size, used;
} target;

static pln_status capture_described_text(void *ud, const char *data,
                                         size_t size) {
  target *t = ud;
  if (size > t->size - 1 - t->used)
    size = t->size - 1 - t->used;
  memcpy(t->text + t->used, data, size);
  t->used += size;
  return PLN_OK;
}

static void end_description(pln_writer *w, target *t) {
  pln_status status = pln_writer_end(w);
  t->text[status == PLN_OK ? t->used : 0] = 0;
}

const char *pln_describe_node(const pln_graph *graph, pln_ref node,
                              pln_description *out) {
  pln_writer w;
  target t = {out->text, sizeof out->text, 0};
  pln_writer_init(&w, graph->engine, sizeof out->text - 8,
                  capture_described_text, &t);
  describe_node_text(&w, graph, node);
  end_description(&w, &t);
  return out->text;
}

const char *pln_describe_type(pln_engine *engine, pln_type type,
                              pln_description *out) {
  pln_writer w;
  target t = {out->text, sizeof out->text, 0};
  pln_writer_init(&w, engine, sizeof out->text - 8, capture_described_text, &t);
  pln_put_type(&w, type);
  end_description(&w, &t);
  return out->text;
}

void pln_annotate_node(const pln_graph *graph, pln_ref node) {
  pln_description line;
  pln_diag_extend(graph->engine, ": in ",
                  pln_describe_node(graph, node, &line));
}

static pln_status locate(const pln_graph *g, pln_ref node) {
  pln_engine *e = g->engine;
  pln_source_span place;
  size_t n = pln_diag_count(e);
  if (n == 0 || !pln_node_place(g, node, &place, NULL) || !place.row)
    return PLN_OK;
  pln_span span = {.source = pln_symbol_text(e, place.source).data,
                   .row = place.row,
                   .column = place.column};
  if (place.end_row == place.row)
    span.end_column = place.end_column;
  return pln_diag_locate(e, n - 1, &span);
}

pln_status pln_annotate_node_of(const pln_graph *graph, pln_ref node,
                                pln_symbol function) {
  pln_annotate_node(graph, node);
  if (function)
    pln_diag_extend(graph->engine, " of @",
                    pln_symbol_text(graph->engine, function).data);
  return locate(graph, node);
}

/* True if put_node can read the node and its operands. */
static bool is_readable(const pln_graph *g, pln_ref ref) {
  if (ref >= g->n_nodes || g->nodes[ref].kind >= PLN_N_KINDS)
    return false;
  const pln_node *n = &g->nodes[ref];
  if (pln_kinds[n->kind].payload == PLN_PAYLOAD_OP &&
      n->data > pln_op_count(g->engine))
    return false;
  return n->first <= g->n_operands && n->count <= g->n_operands - n->first;
}

void pln_note_node(const pln_graph *graph, pln_ref node) {
  pln_description line;
  if (!is_readable(graph, node))
    return;
  const pln_node *n = &graph->nodes[node];
  for (uint32_t i = 0; i < n->count; i++)
    if (!is_readable(graph, graph->operands[n->first + i]))
      return;
  if (n->kind == PLN_CALL && !n->data && !n->count)
    return;
  pln_diag_note(graph->engine, NULL, "at node %u: %s", (unsigned)node,
                pln_describe_node(graph, node, &line));
}
