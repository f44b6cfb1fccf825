/* import.h: the state of one import, shared by import.c (model and functions),
 * graph.c (graphs and nesting) and node.c (nodes). */

#ifndef PLN_ONNX_IMPORT_IMPORT_H
#define PLN_ONNX_IMPORT_IMPORT_H

#include "ir/graph/module.h"
#include "onnx/import/decode.h"
#include "onnx/node.h"
#include "onnx/op_map.h"
#include "onnx/scoped_names.h"

/* What an operator, a pair of domain and type, is imported as. */
typedef enum pln_form {
  PLN_FORM_CALL,
  PLN_FORM_IF,
  PLN_FORM_CONSTANT,
  PLN_FORM_FUNCTION /* a local function */
} pln_form;

typedef struct pln_mapping {
  pln_form form;
  pln_op op;
  bool renames_attrs; /* some attributes have another name in the core */
  pln_attrs implied;
  pln_symbol function;
  uint32_t n_outputs; /* of a local function */
} pln_mapping;

/* A graph nested in a node; the node is built after it. */
typedef struct pln_nested {
  pln_message graph;
  pln_scope scope;
} pln_nested;

/* A graph being imported. The nodes before `nodes.at` are done. */
typedef struct pln_import_frame {
  pln_message graph;
  bool is_function; /* a FunctionProto, not a GraphProto */
  pln_scope scope;
  uint32_t values, declared; /* rows of the tables when the graph began */
  pln_wire nodes;
  bool waiting; /* its current node waits for these graphs: */
  pln_message node;
  pln_attrs attrs;
  uint32_t nested, n_nested, n_done; /* range in in->nested */
} pln_import_frame;

typedef struct pln_onnx_function {
  pln_message message;
  pln_symbol name;
  uint32_t n_outputs;
} pln_onnx_function;

typedef struct pln_import {
  pln_engine *engine;
  pln_decoder decoder;
  const char *path;
  pln_message model;
  int64_t ir_version;
  pln_module *module;
  pln_builder *builder;
  pln_attrs model_opsets; /* domain -> version */
  pln_attrs opsets;       /* of the current function */
  /* Functions whose opsets differ from the model's. */
  pln_attr *function_opsets;
  uint32_t n_function_opsets, cap_function_opsets;
  pln_scoped_names values;   /* name -> node */
  pln_scoped_names declared; /* name -> declared type */
  pln_idmap *mapped;         /* (domain, type) -> row of mappings + 1 */
  pln_mapping *mappings;
  uint32_t n_mappings, cap_mappings;
  pln_onnx_function *functions;
  uint32_t n_functions, cap_functions;
  pln_scoped_names by_name; /* "domain::name" -> row of functions */
  pln_import_frame *frames;
  uint32_t n_frames, cap_frames;
  pln_nested *nested;
  uint32_t n_nested, cap_nested;
  pln_node_lists lists; /* lists of the node scanned last */
  pln_ref *args;        /* scratch for a node's operands */
  uint32_t cap_args;
  pln_onnx_node at; /* the node that diagnostics name; no type: none */
} pln_import;

/* graph.c. Imports a graph or function body, and all graphs nested in it, into
 * the builder's open scope. */
pln_status pln_import_graph(pln_import *in, pln_message graph, bool is_function,
                            pln_scope *scope) PLN_CHECKED;
/* Defines a name as the node. An error if the graph already defines it. */
pln_status pln_import_define(pln_import *in, pln_slice name,
                             pln_ref node) PLN_CHECKED;
/* Sets the origin of the nodes built next. */
pln_status pln_import_origin(pln_import *in, pln_message message,
                             pln_symbol name, pln_op op,
                             pln_attrs attrs) PLN_CHECKED;

/* function.c. Adds the attributes declared by a FunctionProto to those of the
 * function's scope. */
pln_status pln_import_function_attrs(pln_import *in, pln_message function,
                                     pln_attrs *attrs) PLN_CHECKED;

/* node.c. Imports a node. */
pln_status pln_import_node(pln_import *in, pln_message message) PLN_CHECKED;
/* Builds a node whose nested graphs are done. */
pln_status pln_import_finish(pln_import *in, pln_import_frame *f) PLN_CHECKED;

#endif
