/* dot.c: prints graphs in the DOT language of Graphviz.
 *
 * Called for modules and sealed expressions. Functions and scopes are clusters;
 * the nodes of a scope are adjacent, so one sweep over the array opens and
 * closes them. An edge leads from a value to its user, a dashed one from a
 * scope's result to its owner. Node numbers are those of the graph. Linear
 * time; nothing recurses. */

#include "base/text/writer.h"
#include "ir/graph/module.h"
#include "ir/tensor/literal.h"

#include <stdio.h>

/* Longer attributes and types are truncated in labels. */
enum { MAX_LABEL = 80 };

typedef struct dot_writer {
  pln_engine *engine;
  pln_writer w;
  pln_buffer text; /* a part of a label, before it is escaped */
  const pln_graph *graph;
  uint32_t number; /* of the function; part of node names */
  pln_slice name;  /* of the function, empty for an expression */
  uint32_t depth;  /* of clusters */
} dot_writer;

static void write_dot(dot_writer *p, const char *text) {
  pln_put_text(&p->w, text);
}

static void fail_dot(dot_writer *p, pln_status status) {
  if (p->w.status == PLN_OK)
    p->w.status = status;
}

/* Escapes text inside quotes. */
static void put_escaped(dot_writer *p, pln_slice text) {
  size_t from = 0;
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    if (c != '"' && c != '\\' && c != '\n')
      continue;
    pln_put(&p->w, text.data + from, i - from);
    write_dot(p, c == '\n' ? "\\n" : c == '"' ? "\\\"" : "\\\\");
    from = i + 1;
  }
  pln_put(&p->w, text.data + from, text.size - from);
}

static void indent(dot_writer *p) {
  for (uint32_t i = 0; i < p->depth && i < 32; i++)
    write_dot(p, "  ");
}

static void put_id(dot_writer *p, pln_ref node) {
  char text[32];
  int size = snprintf(text, sizeof text, "f%u_n%u", (unsigned)p->number,
                      (unsigned)node);
  pln_put(&p->w, text, (size_t)size);
}

/* ------------------------------------------------------------------ labels */

/* Starts a part of a label in p->text. */
static void begin_part(dot_writer *p, pln_writer *w) {
  p->text.size = 0;
  pln_writer_init(w, p->engine, MAX_LABEL, pln_buffer_write, &p->text);
}

static void end_part(dot_writer *p, pln_writer *w, const char *before) {
  fail_dot(p, pln_writer_end(w));
  if (p->text.size == 0)
    return;
  write_dot(p, before);
  put_escaped(p, (pln_slice){p->text.data, p->text.size});
}

static void put_literal(dot_writer *p, const pln_tensor *tensor) {
  pln_writer w;
  if (!pln_literal(tensor)) {
    write_dot(p, "constant");
    return;
  }
  begin_part(p, &w);
  pln_put_literal(&w, tensor);
  end_part(p, &w, "");
}

/* The first line: kind and name of the node. */
static void put_title(dot_writer *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  pln_slice name = pln_symbol_text(p->engine, pln_node_symbol(p->graph, node));
  switch (pln_kinds[n->kind].payload) {
  case PLN_PAYLOAD_VAR: write_dot(p, "%"); break;
  case PLN_PAYLOAD_TENSOR: put_literal(p, p->graph->tensors[n->data]); return;
  case PLN_PAYLOAD_SYMBOL:
    write_dot(p, n->kind == PLN_GLOBAL_VAR ? "@" : "");
    break;
  case PLN_PAYLOAD_OP:
    name = n->data ? pln_op_name(p->engine, n->data) : pln_text("call");
    break;
  case PLN_PAYLOAD_INDEX:
    write_dot(p, ".");
    pln_put_int(&p->w, n->data);
    return;
  default: name = pln_text(pln_kind_name((pln_kind)n->kind)); break;
  }
  put_escaped(p, name);
}

static void write_dot_attrs(dot_writer *p, const pln_node *n) {
  pln_writer w;
  if (!pln_kinds[n->kind].has_attrs || n->attrs == 0)
    return;
  begin_part(p, &w);
  if (n->kind == PLN_CALL && n->data)
    pln_put_op_attrs(&w, n->data, n->results, n->attrs, "");
  else
    pln_put_attrs(&w, n->attrs, NULL, "");
  end_part(p, &w, "\\n");
}

static void write_dot_type(dot_writer *p, pln_type type) {
  pln_writer w;
  if (type == 0)
    return;
  begin_part(p, &w);
  pln_put_type(&w, type);
  end_part(p, &w, "\\n");
}

static const char *look_of(const pln_node *n) {
  if (n->kind == PLN_VAR)
    return ", shape=ellipse, fillcolor=\"#d8e8f8\"";
  if (n->kind == PLN_CONSTANT)
    return ", shape=plain, fillcolor=\"#eeeeee\"";
  if (pln_owns(n))
    return ", fillcolor=\"#f8f0d0\"";
  return n->flags & PLN_NODE_EFFECT ? ", fillcolor=\"#f8d8d8\"" : "";
}

static void write_dot_node(dot_writer *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  bool function = node == p->graph->root && p->name.size > 0;
  indent(p);
  put_id(p, node);
  write_dot(p, " [label=\"");
  if (function) {
    write_dot(p, "@");
    put_escaped(p, p->name);
  } else {
    put_title(p, node);
  }
  write_dot_attrs(p, n);
  write_dot_type(p, n->type);
  write_dot(p, "\"");
  write_dot(p, look_of(n));
  write_dot(p, "];\n");
}

/* ------------------------------------------------------------------ arrows */

/* Word `index` of the names of a kind's operands and scopes. */
static pln_slice field_name(pln_kind kind, uint32_t index) {
  const char *at = pln_kinds[kind].fields;
  for (; index > 0 && *at; index--) {
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  return (pln_slice){at, strcspn(at, " ")};
}

/* "then"; an arm of a Match has none. */
static pln_slice scope_name(const pln_graph *g, pln_scope scope) {
  pln_ref owner = g->scopes[scope].owner;
  if (owner == PLN_NONE)
    return pln_text("");
  pln_kind kind = (pln_kind)g->nodes[owner].kind;
  int32_t operands = pln_kinds[kind].operands;
  if (operands < 0 || pln_kinds[kind].scopes < 0)
    return pln_text("arm");
  uint32_t index = (uint32_t)operands;
  for (pln_scope s = g->nodes[owner].data; s != scope && s != PLN_NONE;
       s = g->scopes[s].next)
    index++;
  return field_name(kind, index);
}

static void put_arrow(dot_writer *p, pln_ref from, pln_ref to, pln_slice label,
                      const char *style) {
  write_dot(p, "  ");
  put_id(p, from);
  write_dot(p, " -> ");
  put_id(p, to);
  write_dot(p, style);
  if (label.size > 0) {
    write_dot(p, " [label=\"");
    put_escaped(p, label);
    write_dot(p, "\"]");
  }
  write_dot(p, ";\n");
}

/* Operands are labelled with their names when there are several. */
static void put_operands(dot_writer *p, pln_ref node) {
  const pln_node *n = &p->graph->nodes[node];
  bool named = n->count > 1 && pln_kinds[n->kind].operands > 0;
  for (uint32_t i = 0; i < n->count && !pln_writer_done(&p->w); i++)
    put_arrow(p, pln_operand(p->graph, node, i), node,
              named ? field_name((pln_kind)n->kind, i) : pln_text(""), "");
}

static void put_arrows(dot_writer *p) {
  const pln_graph *g = p->graph;
  for (pln_ref i = 0; i < g->n_nodes && !pln_writer_done(&p->w); i++)
    put_operands(p, i);
  for (pln_scope s = 1; s < g->n_scopes && !pln_writer_done(&p->w); s++)
    if (g->scopes[s].owner != PLN_NONE)
      put_arrow(p, g->scopes[s].result, g->scopes[s].owner, scope_name(g, s),
                " [style=dashed]");
}

/* ---------------------------------------------------------------- clusters */

/* The graph's own scope is a cluster when it is a function of a module. */
static bool has_cluster(const dot_writer *p, pln_scope scope) {
  return scope != 0 || p->name.size > 0;
}

static void open_cluster(dot_writer *p, pln_scope scope) {
  char id[48];
  if (!has_cluster(p, scope))
    return;
  snprintf(id, sizeof id, "subgraph cluster_f%u_s%u {\n", (unsigned)p->number,
           (unsigned)scope);
  indent(p);
  write_dot(p, id);
  p->depth++;
  indent(p);
  write_dot(p, "label=\"");
  if (scope == 0) {
    write_dot(p, "@");
    put_escaped(p, p->name);
  } else {
    put_escaped(p, scope_name(p->graph, scope));
  }
  write_dot(p, "\";\n");
}

static void close_cluster(dot_writer *p) {
  p->depth--;
  indent(p);
  write_dot(p, "}\n");
}

/* Closes the scopes that end at node `at`, from `scope` outwards. */
static pln_scope close_clusters(dot_writer *p, pln_scope scope, pln_ref at) {
  const pln_graph *g = p->graph;
  while (scope != 0 && g->scopes[scope].end <= at) {
    close_cluster(p);
    scope = g->scopes[scope].parent == PLN_NONE ? 0 : g->scopes[scope].parent;
  }
  return scope;
}

/* Writes nodes in their clusters; scopes without nodes have no cluster. */
static void put_nodes(dot_writer *p) {
  const pln_graph *g = p->graph;
  pln_scope scope = 0, next = 1;
  open_cluster(p, 0);
  for (pln_ref i = 0; i < g->n_nodes && !pln_writer_done(&p->w); i++) {
    scope = close_clusters(p, scope, i);
    for (; next < g->n_scopes && g->scopes[next].begin <= i; next++)
      if (g->scopes[next].begin == i && g->scopes[next].end > i) {
        open_cluster(p, next);
        scope = next;
      }
    write_dot_node(p, i);
  }
  close_clusters(p, scope, g->n_nodes);
  if (has_cluster(p, 0))
    close_cluster(p);
}

static void put_graph(dot_writer *p, const pln_graph *graph) {
  p->graph = graph;
  put_nodes(p);
  put_arrows(p);
  p->number++;
}

static void start_dot(dot_writer *p, pln_engine *engine, pln_write_fn write,
                      void *ud) {
  *p = (dot_writer){.engine = engine, .depth = 1};
  pln_writer_init(&p->w, engine, 0, write, ud);
  pln_buffer_init(&p->text, engine);
  write_dot(p, "digraph perilune {\n"
               "  graph [fontname=\"Helvetica\", fontsize=11];\n"
               "  node [shape=box, style=\"rounded,filled\", fillcolor=white,\n"
               "    fontname=\"Helvetica\", fontsize=10, height=0.2];\n"
               "  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.6];\n");
}

static pln_status end_dot(dot_writer *p) {
  write_dot(p, "}\n");
  pln_buffer_free(&p->text);
  return pln_writer_end(&p->w);
}

static pln_status check_sealed(const pln_graph *graph) {
  return graph->sealed ? PLN_OK
                       : pln_diag_error(graph->engine, PLN_ERR_ARGUMENT, NULL,
                                        "the graph is not sealed");
}

pln_status pln_dot_module(const pln_module *module, pln_write_fn write,
                          void *ud) {
  dot_writer p;
  start_dot(&p, module->engine, write, ud);
  for (uint32_t i = 0; i < module->count && !pln_writer_done(&p.w); i++) {
    p.name = pln_symbol_text(module->engine, pln_module_name_at(module, i));
    put_graph(&p, pln_module_function_at(module, i));
  }
  return end_dot(&p);
}

pln_status pln_dot_graph(const pln_graph *graph, pln_write_fn write, void *ud) {
  dot_writer p;
  PLN_TRY(check_sealed(graph));
  start_dot(&p, graph->engine, write, ud);
  put_graph(&p, graph);
  return end_dot(&p);
}
