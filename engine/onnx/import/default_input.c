/* default_input.c: the default values of a model's inputs.
 *
 * From IR version 4 on, an initializer with the name of an input is its
 * default. Import leaves it in the file; it is read here when a model is
 * run. */

#include "ir/graph/module.h"
#include "onnx/import/decode.h"

static pln_status find_initializer(const pln_decoder *d, pln_message graph,
                                   pln_slice name, pln_tensor **out) {
  pln_wire w = pln_wire_open(graph);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    pln_slice own;
    if (f.tag != GRAPH_INITIALIZER)
      continue;
    pln_message tensor = pln_wire_message(&w, &f);
    PLN_TRY(pln_decode_string(d, tensor, "TensorProto", TENSOR_NAME, &own));
    if (pln_slice_equal(own, name))
      return pln_decode_tensor(d, tensor, &own, out);
  }
  return pln_wire_done(&w, d->engine, "GraphProto");
}

pln_status pln_onnx_input_default(const pln_module *module, pln_slice input,
                                  pln_tensor **out) {
  pln_engine *engine = pln_module_engine(module);
  pln_file *file = module->source, *joined;
  *out = NULL;
  if (!file)
    return PLN_OK;
  pln_decoder d = {.engine = engine, .directory = module->directory};
  pln_message graph;
  pln_message model = {file, pln_file_data(file), (size_t)pln_file_size(file)};
  PLN_TRY(pln_wire_merged(engine, model, "ModelProto", MODEL_GRAPH, &graph,
                          &joined, NULL));
  pln_status status = find_initializer(&d, graph, input, out);
  pln_file_release(joined);
  return status;
}
