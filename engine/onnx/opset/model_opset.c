/* model_opset.c: the opsets of a module and of the file that it came from.
 *
 * A module keeps the model's opset_import in an attribute, and those of local
 * functions only where they differ. Called by import, export and opset
 * conversion. */

#include "onnx/opset/model_opset.h"

#include "ir/provenance/origin.h"
#include "onnx/import/decode.h"
#include "onnx/node.h"
#include "onnx/op_map.h"

enum { DEFAULT_OPSET = 17 };

static pln_slice core(void) {
  return pln_text("ai.onnx");
}

pln_status pln_model_opsets(const pln_module *module, pln_attrs *out) {
  pln_engine *engine = pln_module_engine(module);
  const pln_attr *a = pln_attrs_find(engine, module->attrs, "opset_import");
  if (a && a->kind == PLN_ATTR_DICT) {
    *out = a->v.dict;
    return PLN_OK;
  }
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = DEFAULT_OPSET};
  PLN_TRY(pln_symbol_intern(engine, core(), &entry.name));
  return pln_attrs_make(engine, 1, &entry, out);
}

static int by_bytes(pln_slice a, pln_slice b) {
  int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* A function's own opsets, or NULL. Entries are sorted by name. */
static const pln_attr *own_opsets(const pln_module *module,
                                  pln_symbol function) {
  pln_engine *engine = pln_module_engine(module);
  const pln_attr *all =
      pln_attrs_find(engine, module->attrs, PLN_FUNCTION_OPSETS);
  if (!all || all->kind != PLN_ATTR_DICT)
    return NULL;
  pln_slice name = pln_symbol_text(engine, function);
  uint32_t low = 0, high = pln_attrs_count(engine, all->v.dict);
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const pln_attr *own = pln_attrs_at(engine, all->v.dict, middle);
    int order = by_bytes(name, pln_symbol_text(engine, own->name));
    if (order == 0)
      return own->kind == PLN_ATTR_DICT ? own : NULL;
    if (order > 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

pln_status pln_function_opsets(const pln_module *module, pln_symbol function,
                               pln_attrs *out) {
  const pln_attr *own = own_opsets(module, function);
  if (!own)
    return pln_model_opsets(module, out);
  *out = own->v.dict;
  return PLN_OK;
}

int64_t pln_model_opset(const pln_module *module, pln_symbol function) {
  pln_engine *engine = pln_module_engine(module);
  const pln_attr *a = pln_attrs_find(engine, module->attrs, "opset_import");
  const pln_attr *own = own_opsets(module, function);
  int64_t version = DEFAULT_OPSET;
  if (a && a->kind == PLN_ATTR_DICT)
    version = pln_onnx_opset(engine, a->v.dict, core(), DEFAULT_OPSET);
  return own ? pln_onnx_opset(engine, own->v.dict, core(), version) : version;
}

bool pln_model_is_mixed(const pln_module *module) {
  const pln_attr *all = pln_attrs_find(pln_module_engine(module), module->attrs,
                                       PLN_FUNCTION_OPSETS);
  return all && all->kind == PLN_ATTR_DICT && all->v.dict;
}

static pln_status read_file(pln_file_opsets *known, const pln_decoder *d,
                            pln_file *file) {
  pln_message model = {file, pln_file_data(file), (size_t)pln_file_size(file)};
  if (known->file == file)
    return PLN_OK;
  PLN_TRY(pln_decode_opsets(d, model, MODEL_OPSET_IMPORT, &known->opsets));
  known->file = file;
  return PLN_OK;
}

pln_status pln_source_opset(pln_file_opsets *known, const pln_graph *graph,
                            pln_symbol function, int64_t *out) {
  pln_engine *engine = graph->engine;
  const pln_node *root = &graph->nodes[graph->root];
  pln_decoder d = {.engine = engine};
  pln_attrs own = 0;
  *out = 0;
  if (root->kind != PLN_FUNCTION || !graph->origins ||
      !graph->scopes[root->data].origin)
    return PLN_OK;
  const pln_origin *o =
      pln_origins_row(graph->origins, graph->scopes[root->data].origin);
  if (!o->file)
    return PLN_OK;
  PLN_TRY(read_file(known, &d, o->file));
  if (!pln_slice_is(pln_symbol_text(engine, function), "main"))
    PLN_TRY(pln_decode_opsets(&d, pln_origin_message(o), FUNCTION_OPSET_IMPORT,
                              &own));
  *out = pln_onnx_opset(engine, known->opsets, core(), DEFAULT_OPSET);
  *out = pln_onnx_opset(engine, own, core(), *out);
  return PLN_OK;
}

/* The dictionary with another version of ai.onnx. */
static pln_status with_version(pln_engine *engine, pln_attrs opsets,
                               int64_t opset, pln_attrs *out) {
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = opset};
  PLN_TRY(pln_symbol_intern(engine, core(), &entry.name));
  return pln_attrs_with(engine, opsets, &entry, out);
}

/* The lowest IR version for an opset, as paired by ONNX's releases. */
static int64_t ir_version_of(int64_t opset) {
  static const struct {
    int32_t opset, ir;
  } releases[] = {{28, 14}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9},
                  {15, 8},  {12, 7},  {11, 6},  {10, 5},  {9, 4}};
  for (size_t i = 0; i < PLN_COUNT(releases); i++)
    if (opset >= releases[i].opset)
      return releases[i].ir;
  return 3;
}

/* Newer opsets require newer IR versions; older opsets keep theirs. Versions
 * below 4 are kept, because there initializers have another meaning. */
static pln_status with_ir_version(const pln_module *module, int64_t opset,
                                  pln_attrs *attrs) {
  enum { DEFAULT_IR = 8, IR_WITH_DEFAULTS = 4 };
  pln_engine *engine = pln_module_engine(module);
  int64_t has = pln_attrs_int(engine, *attrs, "ir_version", DEFAULT_IR);
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = ir_version_of(opset)};
  if (has >= entry.v.i || has < IR_WITH_DEFAULTS)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(engine, pln_text("ir_version"), &entry.name));
  return pln_attrs_with(engine, *attrs, &entry, attrs);
}

pln_status pln_model_with_opset(const pln_module *module, int64_t opset,
                                pln_module **out) {
  pln_engine *engine = pln_module_engine(module);
  pln_attr entry = {.kind = PLN_ATTR_DICT};
  pln_attrs attrs, opsets;
  PLN_TRY(pln_model_opsets(module, &opsets));
  PLN_TRY(with_version(engine, opsets, opset, &opsets));
  entry.v.dict = opsets;
  PLN_TRY(pln_symbol_intern(engine, pln_text("opset_import"), &entry.name));
  PLN_TRY(pln_attrs_with(engine, module->attrs, &entry, &attrs));
  PLN_TRY(pln_attrs_without(engine, attrs, PLN_FUNCTION_OPSETS, &attrs));
  PLN_TRY(with_ir_version(module, opset, &attrs));
  return pln_module_with_attrs(module, attrs, out);
}
