/* json.c: prints modules and graphs as JSON, for other programs.
 *
 * Called for modules and sealed graphs. The form follows the graph: nodes in
 * order, operands and results by number, scope rows; one node per line. Linear
 * time. Only attribute dictionaries nest, to a bounded depth. Engine ids are
 * not printed. */

#include "base/text/writer.h"
#include "ir/graph/module.h"
#include "ir/tensor/literal.h"
#include "ir/type/print_cache.h"

#include <math.h>
#include <stdio.h>

/* Deeper attributes are omitted. */
enum { MAX_DEPTH = 16 };

typedef struct json_writer {
  pln_engine *engine;
  pln_writer w;
  pln_buffer text; /* of a literal */
  pln_type_cache types;
  const pln_graph *graph;
} json_writer;

static void write_json_text(json_writer *d, const char *text) {
  pln_put_text(&d->w, text);
}

static void fail_json(json_writer *d, pln_status status) {
  if (d->w.status == PLN_OK)
    d->w.status = status;
}

static void put_key(json_writer *d, const char *key) {
  write_json_text(d, ", \"");
  write_json_text(d, key);
  write_json_text(d, "\": ");
}

static void write_json_number(json_writer *d, const char *key, uint32_t value) {
  put_key(d, key);
  if (value == PLN_NONE)
    write_json_text(d, "null");
  else
    pln_put_int(&d->w, value);
}

static void put_symbol(json_writer *d, pln_symbol symbol) {
  pln_put_json(&d->w, pln_symbol_text(d->engine, symbol));
}

/* ------------------------------------------------------------------- types */

/* Null when the text is too long to repeat. */
static void write_json_type(json_writer *d, pln_type type) {
  pln_slice text = {NULL, 0};
  fail_json(d, pln_type_cache_get(&d->types, type, true, &text));
  if (text.size == 0)
    write_json_text(d, "null");
  else if (d->w.status == PLN_OK)
    pln_put_json(&d->w, text);
}

/* -------------------------------------------------------------- attributes */

/* JSON has no NaN or infinity: they are written in quotes. */
static void put_real(json_writer *d, double value) {
  char text[40];
  if (isfinite(value))
    snprintf(text, sizeof text, "%.17g", value);
  else
    snprintf(text, sizeof text, "\"%s\"",
             isnan(value) ? "nan"
             : value < 0  ? "-inf"
                          : "inf");
  write_json_text(d, text);
}

static void write_json_tensor(json_writer *d, const pln_tensor *tensor) {
  write_json_text(d, "{\"dtype\": \"");
  write_json_text(d, pln_dtype_name(pln_tensor_dtype(tensor)));
  write_json_text(d, "\", \"shape\": [");
  for (uint32_t i = 0; i < pln_tensor_rank(tensor); i++) {
    write_json_text(d, i > 0 ? ", " : "");
    pln_put_int(&d->w, pln_tensor_dims(tensor)[i]);
  }
  write_json_text(d, "]");
  if (pln_literal(tensor)) {
    pln_writer w;
    d->text.size = 0;
    pln_writer_init(&w, d->engine, 0, pln_buffer_write, &d->text);
    pln_put_literal(&w, tensor);
    fail_json(d, pln_writer_end(&w));
    put_key(d, "value");
    pln_put_json(&d->w, (pln_slice){d->text.data, d->text.size});
  }
  write_json_text(d, "}");
}

static void write_json_element(json_writer *d, const pln_attr *a, uint32_t i) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_FLOATS: put_real(d, a->v.floats[i]); break;
  case PLN_ATTR_STRINGS: pln_put_json(&d->w, a->v.strings[i]); break;
  case PLN_ATTR_TENSORS: write_json_tensor(d, a->v.tensors[i]); break;
  case PLN_ATTR_TYPES: write_json_type(d, a->v.types[i]); break;
  default: pln_put_int(&d->w, a->v.ints[i]); break;
  }
}

static void write_json_elements(json_writer *d, const pln_attr *a) {
  write_json_text(d, "[");
  for (uint32_t i = 0; i < a->count && !pln_writer_done(&d->w); i++) {
    write_json_text(d, i > 0 ? ", " : "");
    write_json_element(d, a, i);
  }
  write_json_text(d, "]");
}

/* A value that JSON cannot distinguish from another: {"object": text}. */
static void put_marked(json_writer *d, const char *mark, pln_slice text) {
  write_json_text(d, "{\"");
  write_json_text(d, mark);
  write_json_text(d, "\": ");
  pln_put_json(&d->w, text);
  write_json_text(d, "}");
}

static void write_json_attrs(json_writer *d, pln_attrs attrs, bool list,
                             int depth);

static void write_json_attr_value(json_writer *d, const pln_attr *a,
                                  int depth) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_NONE: write_json_text(d, "null"); break;
  case PLN_ATTR_INT: pln_put_int(&d->w, a->v.i); break;
  case PLN_ATTR_BOOL: write_json_text(d, a->v.i ? "true" : "false"); break;
  case PLN_ATTR_FLOAT: put_real(d, a->v.f); break;
  case PLN_ATTR_STRING: pln_put_json(&d->w, a->v.s); break;
  case PLN_ATTR_TENSOR: write_json_tensor(d, a->v.tensor); break;
  case PLN_ATTR_TYPE: write_json_type(d, a->v.type); break;
  case PLN_ATTR_GRAPH:
    write_json_text(d, "{\"operand\": ");
    pln_put_int(&d->w, a->v.i);
    write_json_text(d, "}");
    break;
  case PLN_ATTR_REF:
    put_marked(d, "ref_attr", pln_symbol_text(d->engine, a->v.symbol));
    break;
  case PLN_ATTR_BYTES: put_marked(d, "bytes", a->v.s); break;
  case PLN_ATTR_OBJECT: put_marked(d, "object", a->v.s); break;
  case PLN_ATTR_DICT: write_json_attrs(d, a->v.dict, false, depth + 1); break;
  case PLN_ATTR_LIST: write_json_attrs(d, a->v.dict, true, depth + 1); break;
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS: write_json_elements(d, a); break;
  case PLN_N_ATTR_KINDS: break;
  }
}

static void write_json_attrs(json_writer *d, pln_attrs attrs, bool list,
                             int depth) {
  uint32_t n = depth > MAX_DEPTH ? 0 : pln_attrs_count(d->engine, attrs);
  write_json_text(d, list ? "[" : "{");
  for (uint32_t i = 0; i < n && !pln_writer_done(&d->w); i++) {
    const pln_attr *a = pln_attrs_at(d->engine, attrs, i);
    write_json_text(d, i > 0 ? ", " : "");
    if (!list) {
      put_symbol(d, a->name);
      write_json_text(d, ": ");
    }
    write_json_attr_value(d, a, depth);
  }
  write_json_text(d, list ? "]" : "}");
}

/* ------------------------------------------------------------------- nodes */

static void put_payload(json_writer *d, const pln_node *n, pln_ref node) {
  switch (pln_kinds[n->kind].payload) {
  case PLN_PAYLOAD_VAR:
  case PLN_PAYLOAD_SYMBOL:
    put_key(d, "name");
    put_symbol(d, pln_node_symbol(d->graph, node));
    break;
  case PLN_PAYLOAD_TENSOR:
    put_key(d, "data");
    write_json_tensor(d, d->graph->tensors[n->data]);
    break;
  case PLN_PAYLOAD_OP:
    if (n->data == 0)
      break;
    put_key(d, "op");
    pln_put_json(&d->w, pln_op_name(d->engine, n->data));
    break;
  case PLN_PAYLOAD_INDEX: write_json_number(d, "index", n->data); break;
  case PLN_PAYLOAD_SCOPE:
    if (pln_owns(n))
      write_json_number(d, "scope", n->data);
    break;
  default: break;
  }
}

static void put_operands(json_writer *d, const pln_node *n) {
  const pln_ref *operands = pln_operands(d->graph, n);
  put_key(d, "operands");
  write_json_text(d, "[");
  for (uint32_t i = 0; i < n->count && !pln_writer_done(&d->w); i++) {
    write_json_text(d, i > 0 ? ", " : "");
    pln_put_int(&d->w, operands[i]);
  }
  write_json_text(d, "]");
}

static const char *const effects[] = {
    [PLN_EFFECT_READS] = "reads",
    [PLN_EFFECT_WRITES] = "writes",
    [PLN_EFFECT_UNKNOWN] = "unknown",
};

static void write_json_span(json_writer *d, pln_ref node) {
  pln_source_span place;
  if (!pln_node_place(d->graph, node, &place, NULL))
    return;
  put_key(d, "span");
  write_json_text(d, "{\"source\": ");
  put_symbol(d, place.source);
  write_json_number(d, "row", place.row);
  write_json_number(d, "column", place.column);
  write_json_text(d, "}");
}

static void write_json_node(json_writer *d, pln_ref node) {
  const pln_node *n = &d->graph->nodes[node];
  pln_effect effect = pln_flags_effect(n->flags);
  write_json_text(d, "{\"kind\": \"");
  write_json_text(d, pln_kind_name((pln_kind)n->kind));
  write_json_text(d, "\"");
  put_payload(d, n, node);
  if (n->count > 0)
    put_operands(d, n);
  if (pln_kinds[n->kind].has_attrs && n->attrs) {
    put_key(d, "attrs");
    write_json_attrs(d, n->attrs, false, 0);
  }
  if (n->results > 0)
    write_json_number(d, "results", n->results);
  if (effect != PLN_EFFECT_NONE) {
    put_key(d, "effect");
    write_json_text(d, "\"");
    write_json_text(d, effects[effect]);
    write_json_text(d, "\"");
  }
  if (n->type) {
    put_key(d, "type");
    write_json_type(d, n->type);
  }
  write_json_span(d, node);
  write_json_text(d, "}");
}

static void put_scope(json_writer *d, pln_scope scope) {
  const pln_scope_row *row = &d->graph->scopes[scope];
  write_json_text(d, "{\"begin\": ");
  pln_put_int(&d->w, row->begin);
  write_json_number(d, "end", row->end);
  write_json_number(d, "owner", row->owner);
  write_json_number(d, "parent", row->parent);
  write_json_number(d, "result", row->result);
  write_json_number(d, "params", row->n_params);
  if (row->type_params) {
    put_key(d, "type_params");
    write_json_type(d, row->type_params);
  }
  if (row->attrs) {
    put_key(d, "attrs");
    write_json_attrs(d, row->attrs, false, 0);
  }
  write_json_text(d, "}");
}

static void put_graph(json_writer *d, const pln_graph *g) {
  d->graph = g;
  write_json_text(d, "\"root\": ");
  pln_put_int(&d->w, g->root);
  write_json_text(d, ", \"scopes\": [");
  for (pln_scope s = 0; s < g->n_scopes && !pln_writer_done(&d->w); s++) {
    write_json_text(d, s > 0 ? ",\n" : "\n");
    put_scope(d, s);
  }
  write_json_text(d, "], \"nodes\": [");
  for (pln_ref i = 0; i < g->n_nodes && !pln_writer_done(&d->w); i++) {
    write_json_text(d, i > 0 ? ",\n" : "\n");
    write_json_node(d, i);
  }
  write_json_text(d, "]}");
}

/* ----------------------------------------------------------------- modules */

static void put_constructor(json_writer *d, const pln_constructor *c) {
  write_json_text(d, "{\"name\": ");
  put_symbol(d, c->name);
  write_json_text(d, ", \"inputs\": [");
  for (uint32_t i = 0; i < c->n_inputs; i++) {
    write_json_text(d, i > 0 ? ", " : "");
    write_json_type(d, c->inputs[i]);
  }
  write_json_text(d, "]}");
}

static void put_type_data(json_writer *d, const pln_type_def *data) {
  write_json_text(d, "{\"name\": ");
  put_symbol(d, data->name);
  write_json_text(d, data->is_extern ? ", \"extern\": true" : "");
  write_json_text(d, ", \"vars\": [");
  for (uint32_t i = 0; i < data->n_vars; i++) {
    write_json_text(d, i > 0 ? ", " : "");
    write_json_type(d, data->vars[i]);
  }
  write_json_text(d, "], \"constructors\": [");
  for (uint32_t i = 0; i < data->n_constructors; i++) {
    write_json_text(d, i > 0 ? ", " : "");
    put_constructor(d, &data->constructors[i]);
  }
  write_json_text(d, "]}");
}

static void put_module(json_writer *d, const pln_module *module) {
  write_json_text(d, "{\"attrs\": ");
  write_json_attrs(d, module->attrs, false, 0);
  write_json_text(d, ", \"types\": [");
  for (uint32_t i = 0; i < pln_module_n_types(module); i++) {
    write_json_text(d, i > 0 ? ",\n" : "\n");
    put_type_data(d, pln_module_type_def_at(module, i));
  }
  write_json_text(d, "], \"functions\": [");
  for (uint32_t i = 0; i < module->count && !pln_writer_done(&d->w); i++) {
    write_json_text(d, i > 0 ? ",\n{\"name\": " : "\n{\"name\": ");
    put_symbol(d, pln_module_name_at(module, i));
    write_json_text(d, ", ");
    put_graph(d, pln_module_function_at(module, i));
  }
  write_json_text(d, "]}\n");
}

static pln_status start_json(json_writer *d, pln_engine *engine,
                             pln_write_fn write, void *ud) {
  *d = (json_writer){.engine = engine};
  pln_writer_init(&d->w, engine, 0, write, ud);
  pln_buffer_init(&d->text, engine);
  return pln_type_cache_init(&d->types, engine);
}

static void end_json(json_writer *d) {
  pln_buffer_free(&d->text);
  pln_type_cache_free(&d->types);
}

pln_status pln_json_module(const pln_module *module, pln_write_fn write,
                           void *ud) {
  json_writer d;
  pln_status status = start_json(&d, module->engine, write, ud);
  if (status == PLN_OK) {
    put_module(&d, module);
    status = pln_writer_end(&d.w);
  }
  end_json(&d);
  return status;
}

pln_status pln_json_graph(const pln_graph *graph, pln_write_fn write,
                          void *ud) {
  json_writer d;
  if (!graph->sealed)
    return pln_diag_error(graph->engine, PLN_ERR_ARGUMENT, NULL,
                          "the graph is not sealed");
  pln_status status = start_json(&d, graph->engine, write, ud);
  if (status == PLN_OK) {
    write_json_text(&d, "{");
    put_graph(&d, graph);
    write_json_text(&d, "\n");
    status = pln_writer_end(&d.w);
  }
  end_json(&d);
  return status;
}
