/* onnx_bytes.h: small ONNX models as bytes, for C tests: protobuf by hand. */

#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>
#include <string.h>

typedef struct bytes {
  uint8_t data[8192];
  size_t size;
} bytes;

static inline void put_varint(bytes *b, uint64_t v) {
  for (; v > 127; v >>= 7)
    b->data[b->size++] = (uint8_t)(v | 128);
  b->data[b->size++] = (uint8_t)v;
}

static inline void put_int(bytes *b, uint32_t field, uint64_t v) {
  put_varint(b, field << 3);
  put_varint(b, v);
}

static inline void put_data(bytes *b, uint32_t field, const void *data,
                            size_t size) {
  put_varint(b, field << 3 | 2);
  put_varint(b, size);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

static inline void put_text(bytes *b, uint32_t field, const char *text) {
  put_data(b, field, text, strlen(text));
}

static inline void put_message(bytes *b, uint32_t field, const bytes *inner) {
  put_data(b, field, inner->data, inner->size);
}

/* Adds a node to a GraphProto; inputs and outputs are split at spaces. */
static inline void put_names(bytes *node, uint32_t field, const char *names) {
  while (*names) {
    size_t n = strcspn(names, " ");
    put_data(node, field, names, n);
    names += n + (names[n] == ' ');
  }
}

static inline void put_node(bytes *graph, const char *type, const char *inputs,
                            const char *outputs, const bytes *attribute) {
  bytes node = {.size = 0};
  put_names(&node, 1, inputs);
  put_names(&node, 2, outputs);
  put_text(&node, 4, type);
  if (attribute)
    put_message(&node, 5, attribute);
  put_message(graph, 1, &node);
}

static inline bytes subgraph_attribute(const char *name, const bytes *graph) {
  bytes a = {.size = 0};
  put_text(&a, 1, name);
  put_message(&a, 6, graph);
  put_int(&a, 20, 5);
  return a;
}

/* A ValueInfoProto of float32[n] as field 11 (input) or 12 (output). */
static inline void put_value(bytes *graph, uint32_t field, const char *name,
                             uint64_t n) {
  bytes dim = {.size = 0}, shape = dim, tensor = dim, type = dim, value = dim;
  put_int(&dim, 1, n);
  put_message(&shape, 1, &dim);
  put_int(&tensor, 1, 1);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&value, 1, name);
  put_message(&value, 2, &type);
  put_message(graph, field, &value);
}

static inline void put_floats(bytes *graph, const char *name, uint64_t n,
                              const float *x) {
  bytes tensor = {.size = 0};
  put_int(&tensor, 1, n);
  put_int(&tensor, 2, 1);
  put_text(&tensor, 8, name);
  put_data(&tensor, 9, x, n * sizeof *x);
  put_message(graph, 5, &tensor);
}

/* IR version 8, opset 17. */
static inline bytes model_of(const bytes *graph) {
  bytes m = {.size = 0}, opset = m;
  put_int(&m, 1, 8);
  put_message(&m, 7, graph);
  put_text(&opset, 1, "");
  put_int(&opset, 2, 17);
  put_message(&m, 8, &opset);
  return m;
}

#endif
