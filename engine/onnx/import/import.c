/* import.c: imports a ModelProto as a module: pln_onnx_load and pln_onnx_parse.
 *
 * Local functions come first, callees before callers, then @main. What the IR
 * does not hold stays in the file, which the module retains as its source.
 * Invariant: on failure nothing of the module is left, and a diagnostic names
 * the file, the node and the field. */

#include <stdio.h>

#include "ir/infer/check_calls.h"
#include "onnx/directory.h"
#include "onnx/import/import.h"
#include "onnx/metadata.h"
#include "onnx/opset/model_opset.h"

/* ------------------------------------------------------------------- place */

static size_t describe_imported_place(void *ud, char *text, size_t size) {
  const pln_import *in = ud;
  const pln_onnx_node *n = &in->at;
  int length;
  if (n->type.size == 0)
    length = snprintf(text, size, "%s", in->path);
  else if (n->name.size || n->n_outputs == 0)
    length = snprintf(text, size, "%s: node '%.*s' (%.*s)", in->path,
                      (int)(n->name.size & 0xff), n->name.data,
                      (int)(n->type.size & 0xff), n->type.data);
  else
    length = snprintf(text, size, "%s: the node of '%.*s' (%.*s)", in->path,
                      (int)(in->lists.outputs[0].size & 0xff),
                      in->lists.outputs[0].data, (int)(n->type.size & 0xff),
                      n->type.data);
  return length < 0 ? 0 : (size_t)length;
}

/* --------------------------------------------------------------- functions */

/* Marks unused nodes as extra roots, so that they are exported again. An unused
 * projection does not count as a use. */
static pln_status keep_unused(pln_import *in) {
  const pln_graph *g = pln_builder_graph(in->builder);
  uint32_t n = pln_graph_size(g);
  uint8_t *used = pln_mem_zeroed(in->engine, n);
  if (!used)
    return n ? pln_nomem(in->engine) : PLN_OK;
  for (pln_scope s = 0; s < pln_graph_n_scopes(g); s++)
    if (pln_scope_result(g, s) != PLN_NONE)
      used[pln_scope_result(g, s)] = 1;
  for (pln_ref i = n; i-- > 0;) {
    pln_kind kind = pln_node_kind(g, i);
    if (kind == PLN_TUPLE_GET_ITEM && !used[i])
      continue;
    if (!used[i] &&
        (kind == PLN_CALL || kind == PLN_IF || kind == PLN_CONSTANT))
      pln_build_extra_root(in->builder, i);
    const pln_ref *operands = pln_node_operands(g, i);
    for (uint32_t k = 0; k < pln_node_n_operands(g, i); k++)
      used[operands[k]] = 1;
  }
  pln_mem_free(in->engine, used, n);
  return PLN_OK;
}

static pln_status build_function(pln_import *in, pln_message message,
                                 bool is_function, pln_graph **out) {
  pln_scope scope;
  pln_ref root;
  pln_builder_lenient(in->builder);
  pln_builder_module(in->builder, in->module);
  PLN_TRY(pln_import_graph(in, message, is_function, &scope));
  PLN_TRY(pln_build_function(in->builder, scope, 0, 0, &root));
  PLN_TRY(keep_unused(in));
  PLN_TRY(pln_builder_seal(in->builder, root, out));
  PLN_TRY(pln_graph_accept_calls(*out));
  pln_origins_note_types(*out);
  return PLN_OK;
}

/* Operators map differently at another opset. */
static pln_status forget_mappings(pln_import *in) {
  pln_idmap_free(in->mapped);
  in->mapped = NULL;
  in->n_mappings = 0;
  return pln_idmap_new(in->engine, &in->mapped);
}

static pln_status add_function(pln_import *in, pln_message message,
                               bool is_function, pln_symbol name) {
  pln_graph *graph = NULL;
  PLN_TRY(forget_mappings(in));
  PLN_TRY(pln_builder_new(in->engine, &in->builder));
  pln_status status = build_function(in, message, is_function, &graph);
  pln_builder_free(in->builder);
  in->builder = NULL;
  if (status == PLN_OK)
    status = pln_module_set(in->module, name, graph);
  pln_graph_release(graph);
  return status;
}

static uint32_t count_outputs(pln_message function) {
  pln_wire w = pln_wire_open(function);
  pln_field f;
  uint32_t n = 0;
  while (pln_wire_next(&w, &f))
    n += f.tag == FUNCTION_OUTPUT;
  return n;
}

static pln_status function_name(pln_import *in, pln_message message,
                                pln_symbol *out) {
  pln_slice domain, name, overload;
  const pln_decoder *d = &in->decoder;
  PLN_TRY(
      pln_decode_string(d, message, "FunctionProto", FUNCTION_DOMAIN, &domain));
  PLN_TRY(pln_decode_string(d, message, "FunctionProto", FUNCTION_NAME, &name));
  PLN_TRY(pln_decode_string(d, message, "FunctionProto", FUNCTION_OVERLOAD,
                            &overload));
  return pln_onnx_function_name(in->engine, domain, name, overload, out);
}

static pln_status list_function(pln_import *in, pln_message message) {
  pln_onnx_function f = {.message = message,
                         .n_outputs = count_outputs(message)};
  PLN_TRY(function_name(in, message, &f.name));
  pln_slice text = pln_symbol_text(in->engine, f.name);
  if (pln_scoped_names_find(&in->by_name, text, 0) != PLN_NONE)
    return pln_diag_error(in->engine, PLN_ERR_FORMAT, NULL,
                          "the function '%.*s' is defined twice",
                          (int)(text.size & 0xff), text.data);
  PLN_TRY(pln_mem_grow(in->engine, (void **)&in->functions, &in->cap_functions,
                       (size_t)in->n_functions + 1, sizeof *in->functions));
  in->functions[in->n_functions] = f;
  return pln_scoped_names_add(&in->by_name, text, in->n_functions++);
}

static pln_status list_functions(pln_import *in) {
  pln_wire w = pln_wire_open(in->model);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == MODEL_FUNCTIONS)
      PLN_TRY(list_function(in, pln_wire_message(&w, &f)));
  return PLN_OK;
}

/* State of the depth-first search over calls between functions. */
typedef struct callee_order {
  uint8_t *seen;   /* by function: on the path, or done */
  uint32_t *stack; /* the path: functions whose callees come first */
  pln_wire *at;    /* parallel to it: the rest of their nodes */
  uint32_t depth;
} callee_order;

/* The function that a node calls, or PLN_NONE. */
static pln_status callee_of(pln_import *in, pln_message message,
                            uint32_t *out) {
  pln_onnx_node node;
  pln_symbol name;
  PLN_TRY(pln_node_scan(in->engine, &in->lists, message, &node));
  PLN_TRY(pln_onnx_function_name(in->engine, node.domain, node.type,
                                 node.overload, &name));
  *out =
      pln_scoped_names_find(&in->by_name, pln_symbol_text(in->engine, name), 0);
  return PLN_OK;
}

static void enter_function(const pln_import *in, callee_order *w, uint32_t f) {
  w->seen[f] = 1;
  w->stack[w->depth] = f;
  w->at[w->depth++] = pln_wire_open(in->functions[f].message);
}

static pln_status push_opsets(pln_import *in, pln_symbol function) {
  PLN_TRY(pln_mem_grow(
      in->engine, (void **)&in->function_opsets, &in->cap_function_opsets,
      (size_t)in->n_function_opsets + 1, sizeof *in->function_opsets));
  in->function_opsets[in->n_function_opsets++] =
      (pln_attr){.name = function, .kind = PLN_ATTR_DICT, .v.dict = in->opsets};
  return PLN_OK;
}

/* Records a function's opsets if they differ from the model's. */
static pln_status note_opsets(pln_import *in, pln_symbol function) {
  for (uint32_t i = 0; i < pln_attrs_count(in->engine, in->opsets); i++) {
    const pln_attr *a = pln_attrs_at(in->engine, in->opsets, i);
    pln_slice domain = pln_symbol_text(in->engine, a->name);
    if (pln_onnx_opset(in->engine, in->model_opsets, domain, a->v.i) != a->v.i)
      return push_opsets(in, function);
  }
  return PLN_OK;
}

static pln_status import_function(pln_import *in, uint32_t f) {
  pln_message message = in->functions[f].message;
  PLN_TRY(pln_decode_opsets(&in->decoder, message, FUNCTION_OPSET_IMPORT,
                            &in->opsets));
  PLN_TRY(note_opsets(in, in->functions[f].name));
  return add_function(in, message, true, in->functions[f].name);
}

/* Orders callees before callers, so that a call knows the type and the effect
 * of its function. Calls in nested graphs and in cycles do not. */
static pln_status walk_calls(pln_import *in, callee_order *w) {
  while (w->depth) {
    pln_wire *at = &w->at[w->depth - 1];
    pln_field f;
    uint32_t callee = PLN_NONE;
    if (!pln_wire_next(at, &f)) {
      PLN_TRY(import_function(in, w->stack[--w->depth]));
      continue;
    }
    if (f.tag == FUNCTION_NODE)
      PLN_TRY(callee_of(in, pln_wire_message(at, &f), &callee));
    if (callee != PLN_NONE && !w->seen[callee])
      enter_function(in, w, callee);
  }
  return PLN_OK;
}

static pln_status add_functions(pln_import *in) {
  uint32_t n = in->n_functions;
  if (n == 0)
    return PLN_OK;
  callee_order w = {.seen = pln_mem_zeroed(in->engine, n),
                    .stack = pln_mem_new(in->engine, n * sizeof *w.stack),
                    .at = pln_mem_new(in->engine, n * sizeof *w.at)};
  pln_status status = PLN_OK;
  if (!w.seen || !w.stack || !w.at)
    status = pln_nomem(in->engine);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    if (!w.seen[i]) {
      enter_function(in, &w, i);
      status = walk_calls(in, &w);
    }
  pln_mem_free(in->engine, w.seen, n);
  pln_mem_free(in->engine, w.stack, n * sizeof *w.stack);
  pln_mem_free(in->engine, w.at, n * sizeof *w.at);
  in->opsets = in->model_opsets;
  return status;
}

/* ------------------------------------------------------------------- model */

/* {"ir_version", "opset_import"} */
static pln_status set_attrs(pln_import *in) {
  pln_attr entries[2] = {{.kind = PLN_ATTR_INT, .v.i = in->ir_version},
                         {.kind = PLN_ATTR_DICT, .v.dict = in->model_opsets}};
  PLN_TRY(
      pln_symbol_intern(in->engine, pln_text("ir_version"), &entries[0].name));
  PLN_TRY(pln_symbol_intern(in->engine, pln_text("opset_import"),
                            &entries[1].name));
  return pln_attrs_make(in->engine, 2, entries, &in->module->attrs);
}

static pln_status read_header(pln_import *in) {
  pln_wire w = pln_wire_open(in->model);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == MODEL_IR_VERSION)
      in->ir_version = (int64_t)f.value;
  PLN_TRY(pln_wire_done(&w, in->engine, "ModelProto"));
  PLN_TRY(pln_decode_opsets(&in->decoder, in->model, MODEL_OPSET_IMPORT,
                            &in->model_opsets));
  in->opsets = in->model_opsets;
  return set_attrs(in);
}

static pln_status add_main(pln_import *in) {
  pln_message graph;
  pln_file *joined;
  pln_symbol name;
  bool found;
  PLN_TRY(pln_wire_merged(in->engine, in->model, "ModelProto", MODEL_GRAPH,
                          &graph, &joined, &found));
  pln_status status = PLN_OK;
  if (!found)
    status = pln_diag_error(in->engine, PLN_ERR_FORMAT, NULL,
                            "the model has no graph; is it an ONNX file?");
  if (status == PLN_OK)
    status = pln_symbol_intern(in->engine, pln_text("main"), &name);
  if (status == PLN_OK)
    status = add_function(in, graph, false, name);
  pln_file_release(joined);
  return status;
}

static pln_status set_function_opsets(pln_import *in) {
  pln_attr entry = {.kind = PLN_ATTR_DICT};
  pln_attrs all;
  if (!in->n_function_opsets)
    return PLN_OK;
  PLN_TRY(pln_attrs_make(in->engine, in->n_function_opsets, in->function_opsets,
                         &all));
  entry.v.dict = all;
  PLN_TRY(pln_symbol_intern(in->engine, pln_text(PLN_FUNCTION_OPSETS),
                            &entry.name));
  return pln_attrs_with(in->engine, in->module->attrs, &entry,
                        &in->module->attrs);
}

static pln_status read_model(pln_import *in) {
  PLN_TRY(read_header(in));
  PLN_TRY(list_functions(in));
  PLN_TRY(add_functions(in));
  PLN_TRY(set_function_opsets(in));
  PLN_TRY(
      pln_metadata_take_schedules(in->engine, in->model, &in->module->attrs));
  return add_main(in);
}

static void free_import(pln_import *in) {
  pln_engine *e = in->engine;
  pln_builder_free(in->builder);
  pln_scoped_names_free(&in->values);
  pln_scoped_names_free(&in->declared);
  pln_scoped_names_free(&in->by_name);
  pln_idmap_free(in->mapped);
  pln_mem_free(e, in->mappings, in->cap_mappings * sizeof *in->mappings);
  pln_mem_free(e, in->functions, in->cap_functions * sizeof *in->functions);
  pln_mem_free(e, in->frames, in->cap_frames * sizeof *in->frames);
  pln_mem_free(e, in->nested, in->cap_nested * sizeof *in->nested);
  pln_node_lists_free(e, &in->lists);
  pln_mem_free(e, in->function_opsets,
               in->cap_function_opsets * sizeof *in->function_opsets);
  pln_mem_free(e, in->args, in->cap_args * sizeof *in->args);
}

static pln_status import_file(pln_engine *engine, pln_file *file,
                              pln_symbol directory, pln_module **out) {
  struct pln_known_stamp known = {0, 0};
  pln_import in = {
      .engine = engine,
      .decoder = {engine, directory, &known},
      .path = pln_file_path(file),
      .model = {file, pln_file_data(file), (size_t)pln_file_size(file)}};
  pln_scoped_names_init(&in.values, engine);
  pln_scoped_names_init(&in.declared, engine);
  pln_scoped_names_init(&in.by_name, engine);
  pln_place before = pln_diag_place(
      engine, (pln_place){.fn = describe_imported_place, .ud = &in});
  pln_status status = pln_module_new(engine, &in.module);
  if (status == PLN_OK) {
    pln_module_set_source(in.module, file, directory);
    status = read_model(&in);
  }
  pln_diag_place(engine, before);
  free_import(&in);
  if (status == PLN_OK)
    *out = in.module;
  else
    pln_module_release(in.module);
  return status;
}

/* The same; if the bytes are no model, the diagnostic says what they look
 * like. */
static pln_status import_model(pln_engine *engine, pln_file *file,
                               pln_symbol directory, pln_module **out) {
  size_t mark = pln_diag_count(engine);
  pln_slice bytes = {(const char *)pln_file_data(file),
                     (size_t)pln_file_size(file)};
  pln_status status = import_file(engine, file, directory, out);
  const char *kind = status == PLN_ERR_FORMAT ? pln_file_kind(bytes) : NULL;
  if (!kind)
    return status;
  const char *hint =
      !strcmp(kind, PLN_FILE_RELAY) ? "; such files are named NAME.relay" : "";
  pln_diag_drop(engine, mark);
  return pln_diag_error(engine, PLN_ERR_FORMAT, NULL,
                        "%s: this is not an ONNX model, but %s%s",
                        pln_file_path(file), kind, hint);
}

/* ------------------------------------------------------------------ public */

pln_status pln_onnx_load(pln_engine *engine, const char *path,
                         pln_module **out) {
  pln_file *file;
  pln_symbol directory;
  PLN_TRY(pln_onnx_directory(engine, path, &directory));
  PLN_TRY(pln_file_map(engine, path, &file));
  pln_stoppable_begin(engine);
  pln_status status = import_model(engine, file, directory, out);
  pln_stoppable_end(engine);
  if (status == PLN_OK && !pln_file_is_current(file)) {
    /* its external data may be that of the new model */
    pln_module_release(*out);
    status = pln_diag_error(engine, PLN_ERR_IO, NULL,
                            "'%s' was replaced while it was read", path);
  }
  pln_file_release(file);
  return status;
}

pln_status pln_onnx_parse(pln_engine *engine, pln_slice bytes,
                          const char *directory, pln_module **out) {
  pln_file *file;
  pln_symbol folder = 0;
  if (directory)
    PLN_TRY(pln_symbol_intern(engine, pln_text(directory), &folder));
  PLN_TRY(pln_file_copy(engine, bytes, "(memory)", &file));
  pln_stoppable_begin(engine);
  pln_status status = import_model(engine, file, folder, out);
  pln_stoppable_end(engine);
  pln_file_release(file);
  return status;
}
