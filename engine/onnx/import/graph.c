/* graph.c: imports GraphProto and FunctionProto as scopes: parameters, then
 * initializers, then nodes, in file order.
 *
 * Called by import.c for the main graph and each local function. Nested
 * graphs are handled with an explicit stack: a node that has some waits in
 * its frame while they are imported. Invariants: the frames' scopes are the
 * builder's open ones; the rows of the name tables from a frame's mark on
 * belong to it. */

#include "onnx/import/import.h"

enum { MAX_NESTED = 10000 };

/* ------------------------------------------------------------------- names */

static pln_status twice(pln_import *in, pln_slice name) {
  return pln_diag_error(in->engine, PLN_ERR_FORMAT, NULL,
                        "the value '%.*s' is defined twice in one graph",
                        (int)(name.size < 200 ? name.size : 200), name.data);
}

pln_status pln_import_define(pln_import *in, pln_slice name, pln_ref node) {
  const pln_import_frame *f = &in->frames[in->n_frames - 1];
  if (pln_scoped_names_find(&in->values, name, f->values) != PLN_NONE)
    return twice(in, name);
  return pln_scoped_names_add(&in->values, name, node);
}

pln_status pln_import_origin(pln_import *in, pln_message message,
                             pln_symbol name, pln_op op, pln_attrs attrs) {
  uint32_t row = 0;
  if (message.data) {
    pln_origins *origins = pln_builder_origins(in->builder);
    if (!origins)
      return pln_nomem(in->engine);
    origins->names = pln_onnx_output_names;
    origins->lenient = true;
    pln_origin origin = {
        .name = name,
        .file = message.file,
        .offset = pln_message_offset(message),
        .length = message.size,
        .graph = pln_message_offset(in->frames[in->n_frames - 1].graph),
        .op = op,
        .attrs = attrs};
    PLN_TRY(pln_origins_add(origins, &origin, &row));
  }
  pln_builder_origin(in->builder, row);
  return PLN_OK;
}

static bool defined_here(const pln_import *in, pln_slice name) {
  const pln_import_frame *f = &in->frames[in->n_frames - 1];
  return pln_scoped_names_find(&in->values, name, f->values) != PLN_NONE;
}

/* -------------------------------------------------------------- parameters */

static pln_status add_param(pln_import *in, pln_message message, pln_slice name,
                            pln_type type) {
  pln_symbol symbol;
  pln_ref ref;
  if (name.size == 0)
    return pln_diag_error(in->engine, PLN_ERR_FORMAT, NULL,
                          "a graph input has no name");
  if (defined_here(in, name))
    return twice(in, name);
  PLN_TRY(pln_symbol_intern(in->engine, name, &symbol));
  PLN_TRY(pln_import_origin(in, message, symbol, 0, 0));
  PLN_TRY(pln_build_param(in->builder, symbol, type, 0, &ref));
  return pln_import_define(in, name, ref);
}

/* Before IR version 4 every initializer had to be an input too: such inputs are
 * constants. `constants` then holds the names of the initializers. */
static pln_status add_inputs(pln_import *in, pln_message graph,
                             const pln_scoped_names *constants) {
  pln_wire w = pln_wire_open(graph);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    pln_slice name;
    pln_type type;
    if (f.tag != GRAPH_INPUT)
      continue;
    pln_message message = pln_wire_message(&w, &f);
    PLN_TRY(pln_decode_value_info(&in->decoder, message, &name, &type));
    if (pln_scoped_names_find(constants, name, 0) == PLN_NONE)
      PLN_TRY(add_param(in, message, name, type));
  }
  return PLN_OK;
}

static pln_status add_function_inputs(pln_import *in, pln_message function) {
  pln_wire w = pln_wire_open(function);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == FUNCTION_INPUT)
      PLN_TRY(add_param(in, (pln_message){0}, f.bytes, 0));
  return PLN_OK;
}

static pln_status initializer_names(pln_import *in, pln_message graph,
                                    pln_scoped_names *out) {
  pln_wire w = pln_wire_open(graph);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    pln_slice name;
    if (f.tag != GRAPH_INITIALIZER)
      continue;
    PLN_TRY(pln_decode_string(&in->decoder, pln_wire_message(&w, &f),
                              "TensorProto", TENSOR_NAME, &name));
    PLN_TRY(pln_scoped_names_add(out, name, 0));
  }
  return PLN_OK;
}

static pln_status add_parameters(pln_import *in, pln_message graph) {
  enum { IR_WITH_DEFAULTS = 4 };
  pln_scoped_names constants;
  pln_scoped_names_init(&constants, in->engine);
  pln_status status = PLN_OK;
  if (in->ir_version < IR_WITH_DEFAULTS)
    status = initializer_names(in, graph, &constants);
  if (status == PLN_OK)
    status = add_inputs(in, graph, &constants);
  pln_scoped_names_free(&constants);
  return status;
}

/* ------------------------------------------------------------ initializers */

/* An initializer that no tensor can hold becomes an opaque operator without
 * operands. */
static pln_status opaque_value(pln_import *in, const char *op_name,
                               pln_message message, pln_slice name,
                               pln_type type) {
  pln_op op;
  pln_ref ref;
  pln_symbol symbol;
  PLN_TRY(pln_op_opaque(in->engine, pln_text(op_name), &op));
  PLN_TRY(pln_symbol_intern(in->engine, name, &symbol));
  PLN_TRY(pln_import_origin(in, message, symbol, op, 0));
  PLN_TRY(pln_build_call(in->builder, op, 0, 0, 0, NULL, &ref));
  if (type)
    PLN_TRY(pln_builder_declare(in->builder, ref, type));
  return pln_import_define(in, name, ref);
}

static pln_status add_constant(pln_import *in, pln_message message,
                               pln_slice name, const pln_tensor *tensor) {
  pln_symbol symbol;
  pln_ref ref;
  PLN_TRY(pln_symbol_intern(in->engine, name, &symbol));
  PLN_TRY(pln_import_origin(in, message, symbol, 0, 0));
  PLN_TRY(pln_build_constant(in->builder, tensor, &ref));
  return pln_import_define(in, name, ref);
}

/* An initializer that is a parameter's default stays in the file, for
 * export. */
static pln_status add_initializer(pln_import *in, pln_message message) {
  pln_slice name;
  pln_tensor *tensor;
  PLN_TRY(pln_decode_tensor(&in->decoder, message, &name, &tensor));
  pln_status status = PLN_OK;
  const pln_import_frame *f = &in->frames[in->n_frames - 1];
  uint32_t row = pln_scoped_names_find(&in->values, name, f->values);
  const pln_graph *g = pln_builder_graph(in->builder);
  bool is_default = row != PLN_NONE &&
                    pln_node_kind(g, in->values.rows[row].value) == PLN_VAR;
  if (!is_default && tensor)
    status = add_constant(in, message, name, tensor);
  else if (!is_default)
    status = opaque_value(in, "ai.onnx::initializer", message, name, 0);
  pln_tensor_release(tensor);
  return status;
}

static pln_status add_sparse(pln_import *in, pln_message message) {
  pln_slice name;
  pln_type type;
  PLN_TRY(pln_decode_sparse(&in->decoder, message, &name, &type));
  if (defined_here(in, name))
    return PLN_OK; /* a parameter's default */
  return opaque_value(in, "ai.onnx::sparse_initializer", message, name, type);
}

static pln_status add_initializers(pln_import *in, pln_message graph) {
  pln_wire w = pln_wire_open(graph);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == GRAPH_INITIALIZER)
      PLN_TRY(add_initializer(in, pln_wire_message(&w, &f)));
    else if (f.tag == GRAPH_SPARSE_INITIALIZER)
      PLN_TRY(add_sparse(in, pln_wire_message(&w, &f)));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ frames */

/* Reads the types that the file declares for values of this graph. */
static pln_status read_declared(pln_import *in, pln_message graph,
                                bool is_function) {
  pln_wire w = pln_wire_open(graph);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    pln_slice name;
    pln_type type;
    bool is_type = is_function
                       ? f.tag == FUNCTION_VALUE_INFO
                       : f.tag == GRAPH_VALUE_INFO || f.tag == GRAPH_OUTPUT;
    if (!is_type)
      continue;
    PLN_TRY(pln_decode_value_info(&in->decoder, pln_wire_message(&w, &f), &name,
                                  &type));
    if (type)
      PLN_TRY(pln_scoped_names_add(&in->declared, name, type));
  }
  return pln_wire_done(&w, in->engine,
                       is_function ? "FunctionProto" : "GraphProto");
}

static pln_status push_import_frame(pln_import *in, pln_message graph,
                                    bool is_function) {
  if (in->n_frames == MAX_NESTED)
    return pln_diag_error(in->engine, PLN_ERR_LIMIT, NULL,
                          "graphs are nested more than %d deep", MAX_NESTED);
  PLN_TRY(pln_mem_grow(in->engine, (void **)&in->frames, &in->cap_frames,
                       (size_t)in->n_frames + 1, sizeof *in->frames));
  in->frames[in->n_frames++] =
      (pln_import_frame){.graph = graph,
                         .is_function = is_function,
                         .values = in->values.count,
                         .declared = in->declared.count,
                         .nodes = pln_wire_open(graph)};
  return PLN_OK;
}

static pln_status enter_imported_graph(pln_import *in, pln_message graph,
                                       bool is_function) {
  PLN_TRY(push_import_frame(in, graph, is_function));
  in->at.type.size = 0;
  PLN_TRY(pln_build_open(in->builder, &in->frames[in->n_frames - 1].scope));
  PLN_TRY(read_declared(in, graph, is_function));
  if (is_function)
    return add_function_inputs(in, graph);
  PLN_TRY(add_parameters(in, graph));
  return add_initializers(in, graph);
}

/* ----------------------------------------------------------------- leaving */

/* Names of a graph's inputs or outputs, and the nodes of its outputs. */
typedef struct function_signature {
  pln_slice *names;
  pln_ref *nodes;
  pln_type *types;
  uint32_t count;
  size_t room;
} function_signature;

static void free_signature(pln_import *in, function_signature *s) {
  pln_mem_free(in->engine, s->names, s->room * sizeof *s->names);
  pln_mem_free(in->engine, s->nodes, s->room * sizeof *s->nodes);
  pln_mem_free(in->engine, s->types, s->room * sizeof *s->types);
}

static pln_status make_signature(pln_import *in, size_t room,
                                 function_signature *s) {
  *s = (function_signature){.room = room};
  s->names = pln_mem_zeroed(in->engine, room * sizeof *s->names);
  s->nodes = pln_mem_zeroed(in->engine, room * sizeof *s->nodes);
  s->types = pln_mem_zeroed(in->engine, room * sizeof *s->types);
  if (room == 0 || (s->names && s->nodes && s->types))
    return PLN_OK;
  free_signature(in, s);
  return pln_nomem(in->engine);
}

/* Inputs have names only. */
static pln_status read_names(pln_import *in, const pln_import_frame *f,
                             uint32_t tag, function_signature *s) {
  pln_wire w = pln_wire_open(f->graph);
  pln_field field;
  while (pln_wire_next(&w, &field)) {
    if (field.tag != tag)
      continue;
    pln_slice *name = &s->names[s->count++];
    if (f->is_function)
      *name = field.bytes;
    else
      PLN_TRY(pln_decode_string(&in->decoder, pln_wire_message(&w, &field),
                                "ValueInfoProto", VALUE_NAME, name));
  }
  return PLN_OK;
}

static pln_status find_outputs(pln_import *in, function_signature *s) {
  const pln_graph *g = pln_builder_graph(in->builder);
  for (uint32_t i = 0; i < s->count; i++) {
    pln_slice name = s->names[i];
    uint32_t row = pln_scoped_names_find(&in->values, name, 0);
    if (row == PLN_NONE)
      return pln_diag_error(in->engine, PLN_ERR_FORMAT, NULL,
                            "the graph output '%.*s' has no producer",
                            (int)(name.size < 200 ? name.size : 200),
                            name.data);
    s->nodes[i] = in->values.rows[row].value;
    s->types[i] = pln_node_type(g, s->nodes[i]);
  }
  return PLN_OK;
}

static pln_status name_entry(pln_import *in, const char *key, pln_attr value,
                             pln_attr *out) {
  *out = value;
  return pln_symbol_intern(in->engine, pln_text(key), &out->name);
}

/* {"name", "input_names", "output_names"} */
static pln_status scope_attrs(pln_import *in, const pln_import_frame *f,
                              const function_signature *inputs,
                              const function_signature *outputs,
                              pln_attrs *out) {
  pln_attr entries[3];
  pln_slice name;
  uint32_t tag = f->is_function ? FUNCTION_NAME : GRAPH_NAME;
  PLN_TRY(pln_decode_string(&in->decoder, f->graph, "GraphProto", tag, &name));
  PLN_TRY(name_entry(in, "name",
                     (pln_attr){.kind = PLN_ATTR_STRING, .v.s = name},
                     &entries[0]));
  PLN_TRY(name_entry(in, "input_names",
                     (pln_attr){.kind = PLN_ATTR_STRINGS,
                                .count = inputs->count,
                                .v.strings = inputs->names},
                     &entries[1]));
  PLN_TRY(name_entry(in, "output_names",
                     (pln_attr){.kind = PLN_ATTR_STRINGS,
                                .count = outputs->count,
                                .v.strings = outputs->names},
                     &entries[2]));
  return pln_attrs_make(in->engine, 3, entries, out);
}

/* The scope's origin also records the types of the outputs, so that export can
 * tell which ones a pass changed. */
static pln_status scope_origin(pln_import *in, const pln_import_frame *f,
                               const function_signature *outputs) {
  pln_attr entry;
  pln_attrs types;
  uint32_t row;
  PLN_TRY(name_entry(in, "output_types",
                     (pln_attr){.kind = PLN_ATTR_TYPES,
                                .count = outputs->count,
                                .v.types = outputs->types},
                     &entry));
  PLN_TRY(pln_attrs_make(in->engine, 1, &entry, &types));
  pln_origins *origins = pln_builder_origins(in->builder);
  if (!origins)
    return pln_nomem(in->engine);
  pln_origin origin = {.file = f->graph.file,
                       .offset = pln_message_offset(f->graph),
                       .length = f->graph.size,
                       .attrs = types,
                       .whole = true};
  PLN_TRY(pln_origins_add(origins, &origin, &row));
  pln_builder_scope_origin(in->builder, f->scope, row);
  return PLN_OK;
}

static pln_status end_scope(pln_import *in, const pln_import_frame *f,
                            function_signature *inputs,
                            function_signature *outputs) {
  pln_attrs attrs;
  pln_ref result;
  in->at.type.size = 0;
  PLN_TRY(
      read_names(in, f, f->is_function ? FUNCTION_INPUT : GRAPH_INPUT, inputs));
  PLN_TRY(read_names(in, f, f->is_function ? FUNCTION_OUTPUT : GRAPH_OUTPUT,
                     outputs));
  PLN_TRY(find_outputs(in, outputs));
  PLN_TRY(scope_attrs(in, f, inputs, outputs, &attrs));
  if (f->is_function)
    PLN_TRY(pln_import_function_attrs(in, f->graph, &attrs));
  PLN_TRY(scope_origin(in, f, outputs));
  pln_builder_origin(in->builder, 0);
  result = outputs->count == 1 ? outputs->nodes[0] : PLN_NONE;
  if (result == PLN_NONE)
    PLN_TRY(
        pln_build_tuple(in->builder, outputs->count, outputs->nodes, &result));
  return pln_build_end(in->builder, f->scope, result, attrs);
}

static pln_status leave_imported_graph(pln_import *in) {
  pln_import_frame f = in->frames[in->n_frames - 1];
  function_signature inputs, outputs;
  size_t n_in =
      pln_wire_count(f.graph, f.is_function ? FUNCTION_INPUT : GRAPH_INPUT);
  size_t n_out =
      pln_wire_count(f.graph, f.is_function ? FUNCTION_OUTPUT : GRAPH_OUTPUT);
  PLN_TRY(make_signature(in, n_in, &inputs));
  pln_status status = make_signature(in, n_out, &outputs);
  if (status == PLN_OK) {
    status = end_scope(in, &f, &inputs, &outputs);
    free_signature(in, &outputs);
  }
  free_signature(in, &inputs);
  pln_scoped_names_truncate(&in->values, f.values);
  pln_scoped_names_truncate(&in->declared, f.declared);
  in->n_frames--;
  return status;
}

/* -------------------------------------------------------------------- loop */

static pln_status enter_nested(pln_import *in, pln_import_frame *f) {
  return enter_imported_graph(in, in->nested[f->nested + f->n_done].graph,
                              false);
}

static pln_status leave_frame(pln_import *in, pln_scope *scope) {
  *scope = in->frames[in->n_frames - 1].scope;
  PLN_TRY(leave_imported_graph(in));
  if (in->n_frames) {
    pln_import_frame *f = &in->frames[in->n_frames - 1];
    in->nested[f->nested + f->n_done++].scope = *scope;
  }
  return PLN_OK;
}

static pln_status next_node(pln_import *in, bool *more) {
  pln_import_frame *f = &in->frames[in->n_frames - 1];
  uint32_t tag = f->is_function ? FUNCTION_NODE : GRAPH_NODE;
  pln_field field;
  *more = false;
  while (!*more && pln_wire_next(&f->nodes, &field))
    *more = field.tag == tag;
  if (!*more)
    return PLN_OK;
  return pln_import_node(in, pln_wire_message(&f->nodes, &field));
}

static pln_status import_next_graph(pln_import *in, pln_scope *scope) {
  pln_import_frame *f = &in->frames[in->n_frames - 1];
  if (f->waiting && f->n_done < f->n_nested)
    return enter_nested(in, f);
  if (f->waiting) {
    uint32_t nested = f->nested;
    PLN_TRY(pln_import_finish(in, f));
    in->n_nested = nested;
    return PLN_OK;
  }
  bool more;
  PLN_TRY(next_node(in, &more));
  return more ? PLN_OK : leave_frame(in, scope);
}

pln_status pln_import_graph(pln_import *in, pln_message graph, bool is_function,
                            pln_scope *scope) {
  PLN_TRY(enter_imported_graph(in, graph, is_function));
  while (in->n_frames) {
    PLN_TRY(pln_poll_stoppable(in->engine));
    PLN_TRY(import_next_graph(in, scope));
  }
  return PLN_OK;
}
