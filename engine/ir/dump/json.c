/* json.c: modules and graphs as JSON, for programs that look at them.
 *
 * Called for modules and sealed graphs. What a graph is made of is written as
 * it is: nodes in their order, operands and results by number, rows of scopes.
 * One node a line. Linear time; only dictionaries of attributes nest, to a
 * bounded depth. Nothing in it depends on ids of the engine. */

#include "base/writer.h"
#include "ir/graph/module.h"
#include "ir/tensor/literal.h"
#include "ir/type/print_cache.h"

#include <math.h>
#include <stdio.h>

/* Attributes that nest deeper are cut short. */
enum { MAX_DEPTH = 16 };

typedef struct dump {
  pln_engine *engine;
  pln_writer w;
  pln_buffer text; /* of a literal */
  pln_type_texts types;
  const pln_graph *graph;
} dump;

static void put(dump *d, const char *text) {
  pln_put_text(&d->w, text);
}

static void fail(dump *d, pln_status status) {
  if (d->w.status == PLN_OK)
    d->w.status = status;
}

static void put_key(dump *d, const char *key) {
  put(d, ", \"");
  put(d, key);
  put(d, "\": ");
}

static void put_number(dump *d, const char *key, uint32_t value) {
  put_key(d, key);
  if (value == PLN_NONE)
    put(d, "null");
  else
    pln_put_int(&d->w, value);
}

static void put_symbol(dump *d, pln_symbol symbol) {
  pln_put_json(&d->w, pln_symbol_text(d->engine, symbol));
}

/* ------------------------------------------------------------------- types */

/* Null when the text is too long to be repeated. */
static void put_type(dump *d, pln_type type) {
  pln_slice text = {NULL, 0};
  fail(d, pln_type_text(&d->types, type, true, &text));
  if (text.size == 0)
    put(d, "null");
  else if (d->w.status == PLN_OK)
    pln_put_json(&d->w, text);
}

/* -------------------------------------------------------------- attributes */

/* JSON has no words for what is no number: they stand in quotes. */
static void put_real(dump *d, double value) {
  char text[40];
  if (isfinite(value))
    snprintf(text, sizeof text, "%.17g", value);
  else
    snprintf(text, sizeof text, "\"%s\"",
             isnan(value) ? "nan"
             : value < 0  ? "-inf"
                          : "inf");
  put(d, text);
}

static void put_tensor(dump *d, const pln_tensor *tensor) {
  put(d, "{\"dtype\": \"");
  put(d, pln_dtype_name(pln_tensor_dtype(tensor)));
  put(d, "\", \"shape\": [");
  for (uint32_t i = 0; i < pln_tensor_rank(tensor); i++) {
    put(d, i > 0 ? ", " : "");
    pln_put_int(&d->w, pln_tensor_dims(tensor)[i]);
  }
  put(d, "]");
  if (pln_literal(tensor)) {
    pln_writer w;
    d->text.size = 0;
    pln_writer_init(&w, d->engine, 0, pln_buffer_write, &d->text);
    pln_put_literal(&w, tensor);
    fail(d, pln_writer_end(&w));
    put_key(d, "value");
    pln_put_json(&d->w, (pln_slice){d->text.data, d->text.size});
  }
  put(d, "}");
}

static void put_element(dump *d, const pln_attr *a, uint32_t i) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_FLOATS: put_real(d, a->v.floats[i]); break;
  case PLN_ATTR_STRINGS: pln_put_json(&d->w, a->v.strings[i]); break;
  case PLN_ATTR_TENSORS: put_tensor(d, a->v.tensors[i]); break;
  case PLN_ATTR_TYPES: put_type(d, a->v.types[i]); break;
  default: pln_put_int(&d->w, a->v.ints[i]); break;
  }
}

static void put_elements(dump *d, const pln_attr *a) {
  put(d, "[");
  for (uint32_t i = 0; i < a->count && !pln_writer_done(&d->w); i++) {
    put(d, i > 0 ? ", " : "");
    put_element(d, a, i);
  }
  put(d, "]");
}

/* A value that JSON would take for another: {"object": text}. */
static void put_marked(dump *d, const char *mark, pln_slice text) {
  put(d, "{\"");
  put(d, mark);
  put(d, "\": ");
  pln_put_json(&d->w, text);
  put(d, "}");
}

static void put_attrs(dump *d, pln_attrs attrs, bool list, int depth);

static void put_value(dump *d, const pln_attr *a, int depth) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_NONE: put(d, "null"); break;
  case PLN_ATTR_INT: pln_put_int(&d->w, a->v.i); break;
  case PLN_ATTR_BOOL: put(d, a->v.i ? "true" : "false"); break;
  case PLN_ATTR_FLOAT: put_real(d, a->v.f); break;
  case PLN_ATTR_STRING: pln_put_json(&d->w, a->v.s); break;
  case PLN_ATTR_TENSOR: put_tensor(d, a->v.tensor); break;
  case PLN_ATTR_TYPE: put_type(d, a->v.type); break;
  case PLN_ATTR_GRAPH:
    put(d, "{\"operand\": ");
    pln_put_int(&d->w, a->v.i);
    put(d, "}");
    break;
  case PLN_ATTR_REF:
    put_marked(d, "ref_attr", pln_symbol_text(d->engine, a->v.symbol));
    break;
  case PLN_ATTR_BYTES: put_marked(d, "bytes", a->v.s); break;
  case PLN_ATTR_OBJECT: put_marked(d, "object", a->v.s); break;
  case PLN_ATTR_DICT: put_attrs(d, a->v.dict, false, depth + 1); break;
  case PLN_ATTR_LIST: put_attrs(d, a->v.dict, true, depth + 1); break;
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS: put_elements(d, a); break;
  case PLN_N_ATTR_KINDS: break;
  }
}

static void put_attrs(dump *d, pln_attrs attrs, bool list, int depth) {
  uint32_t n = depth > MAX_DEPTH ? 0 : pln_attrs_count(d->engine, attrs);
  put(d, list ? "[" : "{");
  for (uint32_t i = 0; i < n && !pln_writer_done(&d->w); i++) {
    const pln_attr *a = pln_attrs_get(d->engine, attrs, i);
    put(d, i > 0 ? ", " : "");
    if (!list) {
      put_symbol(d, a->name);
      put(d, ": ");
    }
    put_value(d, a, depth);
  }
  put(d, list ? "]" : "}");
}

/* ------------------------------------------------------------------- nodes */

static void put_payload(dump *d, const pln_node *n, pln_ref node) {
  switch (pln_kinds[n->kind].payload) {
  case PLN_PAYLOAD_VAR:
  case PLN_PAYLOAD_SYMBOL:
    put_key(d, "name");
    put_symbol(d, pln_node_symbol(d->graph, node));
    break;
  case PLN_PAYLOAD_TENSOR:
    put_key(d, "data");
    put_tensor(d, d->graph->tensors[n->data]);
    break;
  case PLN_PAYLOAD_OP:
    if (n->data == 0)
      break;
    put_key(d, "op");
    pln_put_json(&d->w, pln_op_name(d->engine, n->data));
    break;
  case PLN_PAYLOAD_INDEX: put_number(d, "index", n->data); break;
  case PLN_PAYLOAD_SCOPE:
    if (pln_owns(n))
      put_number(d, "scope", n->data);
    break;
  default: break;
  }
}

static void put_operands(dump *d, const pln_node *n) {
  const pln_ref *operands = pln_operands(d->graph, n);
  put_key(d, "operands");
  put(d, "[");
  for (uint32_t i = 0; i < n->count && !pln_writer_done(&d->w); i++) {
    put(d, i > 0 ? ", " : "");
    pln_put_int(&d->w, operands[i]);
  }
  put(d, "]");
}

static const char *const effects[] = {
    [PLN_EFFECT_READS] = "reads",
    [PLN_EFFECT_WRITES] = "writes",
    [PLN_EFFECT_UNKNOWN] = "unknown",
};

static void put_place(dump *d, pln_ref node) {
  pln_text_place place;
  if (!pln_node_place(d->graph, node, &place, NULL))
    return;
  put_key(d, "span");
  put(d, "{\"source\": ");
  put_symbol(d, place.source);
  put_number(d, "row", place.row);
  put_number(d, "column", place.column);
  put(d, "}");
}

static void put_node(dump *d, pln_ref node) {
  const pln_node *n = &d->graph->nodes[node];
  pln_effect effect = pln_flags_effect(n->flags);
  put(d, "{\"kind\": \"");
  put(d, pln_kind_name((pln_kind)n->kind));
  put(d, "\"");
  put_payload(d, n, node);
  if (n->count > 0)
    put_operands(d, n);
  if (pln_kinds[n->kind].has_attrs && n->attrs) {
    put_key(d, "attrs");
    put_attrs(d, n->attrs, false, 0);
  }
  if (n->results > 0)
    put_number(d, "results", n->results);
  if (effect != PLN_EFFECT_NONE) {
    put_key(d, "effect");
    put(d, "\"");
    put(d, effects[effect]);
    put(d, "\"");
  }
  if (n->type) {
    put_key(d, "type");
    put_type(d, n->type);
  }
  put_place(d, node);
  put(d, "}");
}

static void put_scope(dump *d, pln_scope scope) {
  const pln_scope_row *row = &d->graph->scopes[scope];
  put(d, "{\"begin\": ");
  pln_put_int(&d->w, row->begin);
  put_number(d, "end", row->end);
  put_number(d, "owner", row->owner);
  put_number(d, "parent", row->parent);
  put_number(d, "result", row->result);
  put_number(d, "params", row->n_params);
  if (row->type_params) {
    put_key(d, "type_params");
    put_type(d, row->type_params);
  }
  if (row->attrs) {
    put_key(d, "attrs");
    put_attrs(d, row->attrs, false, 0);
  }
  put(d, "}");
}

static void put_graph(dump *d, const pln_graph *g) {
  d->graph = g;
  put(d, "\"root\": ");
  pln_put_int(&d->w, g->root);
  put(d, ", \"scopes\": [");
  for (pln_scope s = 0; s < g->n_scopes && !pln_writer_done(&d->w); s++) {
    put(d, s > 0 ? ",\n" : "\n");
    put_scope(d, s);
  }
  put(d, "], \"nodes\": [");
  for (pln_ref i = 0; i < g->n_nodes && !pln_writer_done(&d->w); i++) {
    put(d, i > 0 ? ",\n" : "\n");
    put_node(d, i);
  }
  put(d, "]}");
}

/* ----------------------------------------------------------------- modules */

static void put_constructor(dump *d, const pln_constructor *c) {
  put(d, "{\"name\": ");
  put_symbol(d, c->name);
  put(d, ", \"inputs\": [");
  for (uint32_t i = 0; i < c->n_inputs; i++) {
    put(d, i > 0 ? ", " : "");
    put_type(d, c->inputs[i]);
  }
  put(d, "]}");
}

static void put_type_data(dump *d, const pln_type_data *data) {
  put(d, "{\"name\": ");
  put_symbol(d, data->name);
  put(d, data->is_extern ? ", \"extern\": true" : "");
  put(d, ", \"vars\": [");
  for (uint32_t i = 0; i < data->n_vars; i++) {
    put(d, i > 0 ? ", " : "");
    put_type(d, data->vars[i]);
  }
  put(d, "], \"constructors\": [");
  for (uint32_t i = 0; i < data->n_constructors; i++) {
    put(d, i > 0 ? ", " : "");
    put_constructor(d, &data->constructors[i]);
  }
  put(d, "]}");
}

static void put_module(dump *d, const pln_module *module) {
  put(d, "{\"attrs\": ");
  put_attrs(d, module->attrs, false, 0);
  put(d, ", \"types\": [");
  for (uint32_t i = 0; i < pln_module_n_types(module); i++) {
    put(d, i > 0 ? ",\n" : "\n");
    put_type_data(d, pln_module_type(module, i));
  }
  put(d, "], \"functions\": [");
  for (uint32_t i = 0; i < module->count && !pln_writer_done(&d->w); i++) {
    put(d, i > 0 ? ",\n{\"name\": " : "\n{\"name\": ");
    put_symbol(d, pln_module_name(module, i));
    put(d, ", ");
    put_graph(d, pln_module_function(module, i));
  }
  put(d, "]}\n");
}

static pln_status start(dump *d, pln_engine *engine, pln_write_fn write,
                        void *ud) {
  *d = (dump){.engine = engine};
  pln_writer_init(&d->w, engine, 0, write, ud);
  pln_buffer_init(&d->text, engine);
  return pln_type_texts_init(&d->types, engine);
}

static void finish(dump *d) {
  pln_buffer_free(&d->text);
  pln_type_texts_free(&d->types);
}

pln_status pln_json_module(const pln_module *module, pln_write_fn write,
                           void *ud) {
  dump d;
  pln_status status = start(&d, module->engine, write, ud);
  if (status == PLN_OK) {
    put_module(&d, module);
    status = pln_writer_end(&d.w);
  }
  finish(&d);
  return status;
}

pln_status pln_json_graph(const pln_graph *graph, pln_write_fn write,
                          void *ud) {
  dump d;
  if (!graph->sealed)
    return pln_diag_error(graph->engine, PLN_ERR_ARGUMENT, NULL,
                          "the graph is not sealed");
  pln_status status = start(&d, graph->engine, write, ud);
  if (status == PLN_OK) {
    put(&d, "{");
    put_graph(&d, graph);
    put(&d, "\n");
    status = pln_writer_end(&d.w);
  }
  finish(&d);
  return status;
}
