/* onnx_fixture.h: a small ONNX model made by hand, with one of each: an If with
 * two branches that capture, a Constant, a local function, typed and raw
 * initializers, a symbolic dimension, an unused result. */

#ifndef ONNX_MODEL_H
#define ONNX_MODEL_H

#include <stdlib.h>

#include "onnx/wire/wire.h"

static inline void must(pln_status status) {
  if (status != PLN_OK)
    abort();
}

static inline size_t seed_begin(pln_rope *r, uint32_t tag) {
  size_t at;
  must(pln_rope_open(r, tag, &at));
  return at;
}

static inline void seed_end(pln_rope *r, size_t at) {
  must(pln_rope_close(r, at));
}

static inline void seed_text(pln_rope *r, uint32_t tag, const char *s) {
  must(pln_rope_bytes(r, tag, pln_text(s)));
}

static inline void seed_number(pln_rope *r, uint32_t tag, uint64_t v) {
  must(pln_rope_int(r, tag, v));
}

static inline void seed_value_info(pln_rope *r, uint32_t tag,
                                   const char *name) {
  size_t info = seed_begin(r, tag);
  seed_text(r, VALUE_NAME, name);
  size_t type = seed_begin(r, VALUE_TYPE), tensor = seed_begin(r, TYPE_TENSOR);
  seed_number(r, TYPE_ELEM, PLN_FLOAT32);
  size_t shape = seed_begin(r, TYPE_SHAPE), dim = seed_begin(r, SHAPE_DIM);
  seed_text(r, DIM_PARAM, "N");
  seed_end(r, dim);
  dim = seed_begin(r, SHAPE_DIM);
  seed_number(r, DIM_VALUE, 2);
  seed_end(r, dim);
  seed_end(r, shape);
  seed_end(r, tensor);
  seed_end(r, type);
  seed_end(r, info);
}

static inline size_t seed_node(pln_rope *r, uint32_t tag, const char *op,
                               const char *in, const char *out) {
  size_t at = seed_begin(r, tag);
  for (const char *p = in; *p; p += strlen(p) + 1)
    seed_text(r, NODE_INPUT, p);
  for (const char *p = out; *p; p += strlen(p) + 1)
    seed_text(r, NODE_OUTPUT, p);
  seed_text(r, NODE_OP_TYPE, op);
  return at;
}

static inline void seed_simple_node(pln_rope *r, uint32_t tag, const char *op,
                                    const char *in, const char *out) {
  seed_end(r, seed_node(r, tag, op, in, out));
}

static inline void seed_tensor(pln_rope *r, uint32_t tag, const char *name) {
  size_t t = seed_begin(r, tag);
  seed_number(r, TENSOR_DIMS, 2);
  seed_number(r, TENSOR_DATA_TYPE, PLN_FLOAT32);
  seed_text(r, TENSOR_NAME, name);
  must(pln_rope_bytes(r, TENSOR_RAW_DATA, (pln_slice){"\0\0\0\0\0\0\0?", 8}));
  seed_end(r, t);
}

static inline void seed_branch(pln_rope *r, const char *name, const char *op) {
  size_t attribute = seed_begin(r, NODE_ATTRIBUTE);
  seed_text(r, ATTRIBUTE_NAME, name);
  size_t graph = seed_begin(r, ATTRIBUTE_G);
  seed_simple_node(r, GRAPH_NODE, op, "x\0w\0", "inner\0");
  seed_text(r, GRAPH_NAME, name);
  seed_value_info(r, GRAPH_OUTPUT, "inner");
  seed_end(r, graph);
  seed_number(r, ATTRIBUTE_TYPE, ONNX_GRAPH);
  seed_end(r, attribute);
}

static inline void seed_integers(pln_rope *r, const char *name, size_t n) {
  size_t attribute = seed_begin(r, NODE_ATTRIBUTE);
  seed_text(r, ATTRIBUTE_NAME, name);
  for (size_t i = 0; i < n; i++)
    seed_number(r, ATTRIBUTE_INTS, i);
  seed_number(r, ATTRIBUTE_TYPE, ONNX_INTS);
  seed_end(r, attribute);
}

static inline void seed_typed_tensor(pln_rope *r, uint32_t tag,
                                     const char *name) {
  size_t t = seed_begin(r, tag);
  must(pln_rope_bytes(r, TENSOR_DIMS_PACKED, (pln_slice){"\x02\x01", 2}));
  seed_number(r, TENSOR_DATA_TYPE, PLN_INT64);
  must(pln_rope_bytes(r, PLN_TAG(TENSOR_INT64_DATA, PLN_BYTES),
                      (pln_slice){"\x05\x80\x01", 3}));
  seed_text(r, TENSOR_NAME, name);
  seed_end(r, t);
}

static inline void seed_main_graph(pln_rope *r) {
  size_t at = seed_node(r, GRAPH_NODE, "Transpose", "x\0", "t\0");
  seed_integers(r, "perm", 2);
  seed_end(r, at);
  at = seed_node(r, GRAPH_NODE, "If", "c\0", "y\0");
  seed_branch(r, "else_branch", "Add");
  seed_branch(r, "then_branch", "Mul");
  seed_end(r, at);
  at = seed_node(r, GRAPH_NODE, "Constant", "", "k\0");
  size_t attribute = seed_begin(r, NODE_ATTRIBUTE);
  seed_text(r, ATTRIBUTE_NAME, "value");
  seed_tensor(r, ATTRIBUTE_T, "");
  seed_number(r, ATTRIBUTE_TYPE, ONNX_TENSOR);
  seed_end(r, attribute);
  seed_end(r, at);
  at = seed_node(r, GRAPH_NODE, "Twice", "y\0", "z\0");
  seed_text(r, NODE_DOMAIN, "own");
  seed_end(r, at);
  seed_simple_node(r, GRAPH_NODE, "Split", "z\0s\0", "a\0b\0");
  seed_text(r, GRAPH_NAME, "g");
  seed_tensor(r, GRAPH_INITIALIZER, "w");
  seed_typed_tensor(r, GRAPH_INITIALIZER, "s");
  seed_value_info(r, GRAPH_INPUT, "x");
  seed_value_info(r, GRAPH_INPUT, "c");
  seed_value_info(r, GRAPH_OUTPUT, "a");
  seed_value_info(r, GRAPH_VALUE_INFO, "y");
}

static inline void seed_opset(pln_rope *r, uint32_t tag, const char *domain,
                              uint64_t v) {
  size_t at = seed_begin(r, tag);
  seed_text(r, OPSET_DOMAIN, domain);
  seed_number(r, OPSET_VERSION, v);
  seed_end(r, at);
}

static inline void seed_model(pln_rope *r) {
  seed_number(r, MODEL_IR_VERSION, 8);
  size_t graph = seed_begin(r, MODEL_GRAPH);
  seed_main_graph(r);
  seed_end(r, graph);
  seed_opset(r, MODEL_OPSET_IMPORT, "", 17);
  seed_opset(r, MODEL_OPSET_IMPORT, "own", 1);
  size_t function = seed_begin(r, MODEL_FUNCTIONS);
  seed_text(r, FUNCTION_NAME, "Twice");
  seed_text(r, FUNCTION_INPUT, "p");
  seed_text(r, FUNCTION_OUTPUT, "q");
  seed_simple_node(r, FUNCTION_NODE, "Add", "p\0p\0", "q\0");
  seed_opset(r, FUNCTION_OPSET_IMPORT, "", 17);
  seed_text(r, FUNCTION_DOMAIN, "own");
  seed_end(r, function);
}

#endif
