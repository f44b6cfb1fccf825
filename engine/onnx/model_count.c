/* model_count.c: counts the nodes and operators of a model file in one walk
 * over its bytes.
 *
 * Called by the command before and after its work. It counts the files, not the
 * IR, so that models of other tools are measured in the same way. Weights are
 * skipped. Subgraphs wait on an explicit stack. */

#include "onnx/wire/wire.h"

typedef struct counting {
  pln_engine *engine;
  pln_onnx_model_stats *counts;
  pln_idmap *operators; /* name -> row + 1 */
  pln_idmap *files;
  uint32_t cap_operators, cap_files; /* of the arrays in `counts` */
  pln_message *graphs;               /* graphs to be walked */
  uint32_t n_graphs, cap_graphs;
} counting;

static pln_status push_graph(counting *c, pln_message graph) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->graphs, &c->cap_graphs,
                       (size_t)c->n_graphs + 1, sizeof *c->graphs));
  c->graphs[c->n_graphs++] = graph;
  return PLN_OK;
}

/* ----------------------------------------------------------------- tensors */

static pln_status add_file(counting *c, pln_slice name) {
  pln_onnx_model_stats *n = c->counts;
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(c->engine, name, &symbol));
  if (pln_idmap_get(c->files, symbol))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(c->engine, (void **)&n->files, &c->cap_files,
                       (size_t)n->n_files + 1, sizeof *n->files));
  n->files[n->n_files++] = symbol;
  return pln_idmap_set(c->files, symbol, n->n_files);
}

static pln_status count_entry(counting *c, pln_message entry) {
  pln_slice key, value;
  PLN_TRY(pln_wire_entry(c->engine, entry, &key, &value));
  return pln_slice_is(key, "location") ? add_file(c, value) : PLN_OK;
}

static pln_status count_tensor(counting *c, pln_message tensor) {
  pln_field f;
  pln_wire w = pln_wire_open(tensor);
  while (pln_wire_next(&w, &f))
    if (f.tag == TENSOR_EXTERNAL_DATA)
      PLN_TRY(count_entry(c, pln_wire_message(&w, &f)));
  return pln_wire_done(&w, c->engine, "TensorProto");
}

/* ------------------------------------------------------------------- nodes */

static pln_status count_attribute(counting *c, pln_message attribute) {
  pln_field f;
  pln_wire w = pln_wire_open(attribute);
  while (pln_wire_next(&w, &f))
    if (f.tag == ATTRIBUTE_G || f.tag == ATTRIBUTE_GRAPHS)
      PLN_TRY(push_graph(c, pln_wire_message(&w, &f)));
    else if (f.tag == ATTRIBUTE_T || f.tag == ATTRIBUTE_TENSORS)
      PLN_TRY(count_tensor(c, pln_wire_message(&w, &f)));
  return pln_wire_done(&w, c->engine, "AttributeProto");
}

/* "Conv", or "domain::Type" outside ai.onnx. */
static pln_status operator_name(counting *c, pln_slice domain, pln_slice type,
                                pln_symbol *out) {
  if (domain.size == 0 || pln_slice_is(domain, "ai.onnx"))
    return pln_symbol_intern(c->engine, type, out);
  pln_buffer text;
  pln_buffer_init(&text, c->engine);
  pln_status status = pln_buffer_add(&text, domain.data, domain.size);
  if (status == PLN_OK)
    status = pln_buffer_text(&text, "::");
  if (status == PLN_OK)
    status = pln_buffer_add(&text, type.data, type.size);
  if (status == PLN_OK)
    status =
        pln_symbol_intern(c->engine, (pln_slice){text.data, text.size}, out);
  pln_buffer_free(&text);
  return status;
}

static pln_status add_operator(counting *c, pln_symbol name) {
  pln_onnx_model_stats *n = c->counts;
  uint32_t row = pln_idmap_get(c->operators, name);
  if (row == 0) {
    PLN_TRY(pln_mem_grow(c->engine, (void **)&n->operators, &c->cap_operators,
                         (size_t)n->n_operators + 1, sizeof *n->operators));
    n->operators[n->n_operators] = (pln_onnx_operator){.name = name};
    row = ++n->n_operators;
    PLN_TRY(pln_idmap_set(c->operators, name, row));
  }
  n->operators[row - 1].count++;
  return PLN_OK;
}

static pln_status count_node(counting *c, pln_message node) {
  pln_slice type = {0}, domain = {0};
  pln_field f;
  pln_wire w = pln_wire_open(node);
  while (pln_wire_next(&w, &f))
    if (f.tag == NODE_OP_TYPE)
      type = f.bytes;
    else if (f.tag == NODE_DOMAIN)
      domain = f.bytes;
    else if (f.tag == NODE_ATTRIBUTE)
      PLN_TRY(count_attribute(c, pln_wire_message(&w, &f)));
  PLN_TRY(pln_wire_done(&w, c->engine, "NodeProto"));
  pln_symbol name;
  PLN_TRY(operator_name(c, domain, type, &name));
  pln_slice text = pln_symbol_text(c->engine, name);
  c->counts->nodes++;
  if (!pln_slice_is(text, "Constant") && !pln_slice_is(text, "ConstantOfShape"))
    c->counts->compute_nodes++;
  return add_operator(c, name);
}

/* ------------------------------------------------------------------- model */

static pln_status count_graph(counting *c, pln_message graph) {
  pln_field f;
  pln_wire w = pln_wire_open(graph);
  while (pln_wire_next(&w, &f))
    if (f.tag == GRAPH_NODE)
      PLN_TRY(count_node(c, pln_wire_message(&w, &f)));
    else if (f.tag == GRAPH_INITIALIZER)
      PLN_TRY(count_tensor(c, pln_wire_message(&w, &f)));
  return pln_wire_done(&w, c->engine, "GraphProto");
}

static pln_status count_model(counting *c, pln_message model) {
  pln_field f;
  pln_wire w = pln_wire_open(model);
  while (pln_wire_next(&w, &f))
    if (f.tag == MODEL_GRAPH)
      PLN_TRY(push_graph(c, pln_wire_message(&w, &f)));
  PLN_TRY(pln_wire_done(&w, c->engine, "ModelProto"));
  while (c->n_graphs > 0)
    PLN_TRY(count_graph(c, c->graphs[--c->n_graphs]));
  return PLN_OK;
}

/* The arrays end with their last element, so that callers see no capacities. */
static pln_status trim_array(pln_engine *e, void **items, uint32_t capacity,
                             uint32_t n, size_t item) {
  if (capacity == n)
    return PLN_OK;
  void *trimmed = pln_mem_resize(e, *items, capacity * item, n * item);
  if (!trimmed && n > 0)
    return pln_nomem(e);
  *items = trimmed;
  return PLN_OK;
}

static pln_status trim_counts(counting *c) {
  pln_onnx_model_stats *n = c->counts;
  PLN_TRY(trim_array(c->engine, (void **)&n->operators, c->cap_operators,
                     n->n_operators, sizeof *n->operators));
  c->cap_operators = n->n_operators;
  PLN_TRY(trim_array(c->engine, (void **)&n->files, c->cap_files, n->n_files,
                     sizeof *n->files));
  c->cap_files = n->n_files;
  return PLN_OK;
}

static void free_counts(counting *c) {
  pln_onnx_model_stats *n = c->counts;
  pln_mem_free(c->engine, n->operators,
               c->cap_operators * sizeof *n->operators);
  pln_mem_free(c->engine, n->files, c->cap_files * sizeof *n->files);
}

static pln_status count_file(pln_engine *engine, pln_file *file,
                             pln_onnx_model_stats *out) {
  pln_onnx_model_stats counts = {0};
  counting c = {.engine = engine, .counts = &counts};
  pln_message model = {file, pln_file_data(file), (size_t)pln_file_size(file)};
  pln_status status = pln_idmap_new(engine, &c.operators);
  if (status == PLN_OK)
    status = pln_idmap_new(engine, &c.files);
  if (status == PLN_OK)
    status = count_model(&c, model);
  if (status == PLN_OK)
    status = trim_counts(&c);
  pln_idmap_free(c.operators);
  pln_idmap_free(c.files);
  pln_mem_free(engine, c.graphs, c.cap_graphs * sizeof *c.graphs);
  if (status == PLN_OK)
    *out = counts;
  else
    free_counts(&c);
  return status;
}

pln_status pln_onnx_stats(pln_engine *engine, const char *path,
                          pln_onnx_model_stats *out) {
  pln_file *file;
  PLN_TRY(pln_file_map(engine, path, &file));
  pln_status status = count_file(engine, file, out);
  pln_file_release(file);
  return status;
}

pln_status pln_onnx_stats_bytes(pln_engine *engine, pln_slice bytes,
                                pln_onnx_model_stats *out) {
  pln_file *file;
  PLN_TRY(pln_file_copy(engine, bytes, "(memory)", &file));
  pln_status status = count_file(engine, file, out);
  pln_file_release(file);
  return status;
}

void pln_onnx_model_stats_free(pln_engine *engine,
                               pln_onnx_model_stats *counts) {
  pln_mem_free(engine, counts->operators,
               counts->n_operators * sizeof *counts->operators);
  pln_mem_free(engine, counts->files, counts->n_files * sizeof *counts->files);
  *counts = (pln_onnx_model_stats){0};
}
