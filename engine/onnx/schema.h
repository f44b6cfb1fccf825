/* schema.h: inputs, outputs and attributes of each version of each ONNX
 * operator, from schemas.def. */

#ifndef PLN_ONNX_SCHEMA_H
#define PLN_ONNX_SCHEMA_H

#include "ir/graph/graph.h"

typedef struct pln_onnx_schema {
  const char *type;
  int32_t since;
  bool deprecated;
  const char *inputs, *outputs, *attributes; /* in the syntax of schemas.def */
} pln_onnx_schema;

/* The version of an ai.onnx operator at an opset; NULL if there is none or it
 * is unknown. */
const pln_onnx_schema *pln_onnx_schema_find(pln_slice type, int64_t opset);
/* The same for a type that is a core operator's. */
static inline const pln_onnx_schema *pln_onnx_schema_of(const char *type,
                                                        int64_t opset) {
  return pln_onnx_schema_find(pln_text(type), opset);
}
bool pln_onnx_schema_has(const pln_onnx_schema *schema, pln_slice attribute);
/* Reads the next attribute of a list at *at and whether it is required; false
 * at the end. */
bool pln_onnx_attribute_next(const char **at, pln_slice *name, bool *required);
/* The newest opset in schemas.def. */
int32_t pln_onnx_newest_opset(void);

/* An input or output. */
typedef struct pln_onnx_parameter {
  uint32_t types; /* index of a row of TYPES */
  char letter; /* parameters with the same letter have the same type; 0: none */
  char option; /* 0: required; '?', '*' or '~' as in schemas.def */
} pln_onnx_parameter;

/* Reads the next parameter of a list at *at; false at the end. A variadic one
 * at the end is returned again and again. */
bool pln_onnx_parameter_next(const char **at, pln_onnx_parameter *out);
/* Returns true if a value of that type is allowed, or may be: unknown types
 * are. */
bool pln_onnx_schema_accepts(const pln_engine *engine, uint32_t types,
                             pln_type type);
/* Returns true if tensors of that dtype are allowed. */
bool pln_onnx_takes_dtype(uint32_t types, pln_dtype dtype);

#endif
