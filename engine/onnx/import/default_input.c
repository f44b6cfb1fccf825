/* default_input.c: the default values of a model's inputs.
 *
 * From IR version 4 on, an initializer with the name of an input is its
 * default. Import leaves it in the file; it is read here when a model is
 * run. */

#include "onnx/import/default_input.h"
#include "onnx/import/decode.h"

static pln_status symbol_field(const pln_decoder *d, pln_message message,
                               const char *what, uint32_t tag,
                               pln_symbol *out) {
  pln_slice name;
  PLN_TRY(pln_decode_string(d, message, what, tag, &name));
  return pln_symbol_intern(d->engine, name, out);
}

static pln_status mark_inputs(const pln_decoder *d, pln_message graph,
                              pln_idmap *inputs) {
  pln_wire w = pln_wire_open(graph);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    pln_symbol name;
    if (f.tag != GRAPH_INPUT)
      continue;
    PLN_TRY(symbol_field(d, pln_wire_message(&w, &f), "ValueInfoProto",
                         VALUE_NAME, &name));
    PLN_TRY(pln_idmap_set(inputs, name, 1));
  }
  return pln_wire_done(&w, d->engine, "GraphProto");
}

static pln_status add_default(const pln_decoder *d, pln_message tensor,
                              pln_symbol input, pln_input_defaults *out) {
  pln_slice name;
  PLN_TRY(pln_mem_grow(d->engine, (void **)&out->items, &out->cap,
                       (size_t)out->n + 1, sizeof *out->items));
  pln_input_default *item = &out->items[out->n];
  *item = (pln_input_default){.input = input};
  PLN_TRY(pln_decode_tensor(d, tensor, &name, &item->value));
  out->n += item->value != NULL;
  return PLN_OK;
}

/* The first initializer of a name counts. */
static pln_status find_initializers(const pln_decoder *d, pln_message graph,
                                    pln_idmap *inputs,
                                    pln_input_defaults *out) {
  pln_wire w = pln_wire_open(graph);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    pln_symbol name;
    if (f.tag != GRAPH_INITIALIZER)
      continue;
    pln_message tensor = pln_wire_message(&w, &f);
    PLN_TRY(symbol_field(d, tensor, "TensorProto", TENSOR_NAME, &name));
    if (!pln_idmap_get(inputs, name))
      continue;
    PLN_TRY(add_default(d, tensor, name, out));
    PLN_TRY(pln_idmap_set(inputs, name, 0));
  }
  return pln_wire_done(&w, d->engine, "GraphProto");
}

static pln_status find_in_graph(const pln_decoder *d, pln_message graph,
                                pln_input_defaults *out) {
  pln_idmap *inputs;
  PLN_TRY(pln_idmap_new(d->engine, &inputs));
  pln_status status = mark_inputs(d, graph, inputs);
  if (status == PLN_OK)
    status = find_initializers(d, graph, inputs, out);
  pln_idmap_free(inputs);
  return status;
}

pln_status pln_find_input_defaults(const pln_module *module,
                                   pln_input_defaults *out) {
  pln_engine *engine = pln_module_engine(module);
  pln_file *file = module->source, *joined;
  if (!file)
    return PLN_OK;
  pln_decoder d = {.engine = engine, .directory = module->directory};
  pln_message graph;
  pln_message model = {file, pln_file_data(file), (size_t)pln_file_size(file)};
  PLN_TRY(pln_wire_merged(engine, model, "ModelProto", MODEL_GRAPH, &graph,
                          &joined, NULL));
  pln_status status = find_in_graph(&d, graph, out);
  pln_file_release(joined);
  return status;
}

void pln_free_input_defaults(pln_engine *engine, pln_input_defaults *defaults) {
  for (uint32_t i = 0; i < defaults->n; i++)
    pln_tensor_release(defaults->items[i].value);
  pln_mem_free(engine, defaults->items,
               defaults->cap * sizeof *defaults->items);
}

pln_status pln_onnx_input_default(const pln_module *module, pln_slice input,
                                  pln_tensor **out) {
  pln_engine *engine = pln_module_engine(module);
  pln_input_defaults defaults = {0};
  *out = NULL;
  pln_status status = pln_find_input_defaults(module, &defaults);
  for (uint32_t i = 0; i < defaults.n && status == PLN_OK && !*out; i++)
    if (pln_slice_equal(pln_symbol_text(engine, defaults.items[i].input),
                        input))
      *out = pln_tensor_retain(defaults.items[i].value);
  pln_free_input_defaults(engine, &defaults);
  return status;
}
