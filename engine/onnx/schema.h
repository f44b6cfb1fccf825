/* schema.h: what each version of an ONNX operator takes and gives: the rows of
 * schemas.def. */

#ifndef PLN_ONNX_SCHEMA_H
#define PLN_ONNX_SCHEMA_H

#include "ir/graph/graph.h"

typedef struct pln_onnx_schema {
  const char *type;
  int32_t since;
  bool deprecated;
  const char *inputs, *outputs, *attributes; /* as schemas.def says */
} pln_onnx_schema;

/* The version of an operator of ai.onnx that an opset has; NULL when it has
 * none, or nobody knows. */
const pln_onnx_schema *pln_onnx_schema_find(pln_slice type, int64_t opset);
/* The same of a type that is known to be one of ours. */
static inline const pln_onnx_schema *pln_onnx_schema_of(const char *type,
                                                        int64_t opset) {
  return pln_onnx_schema_find(pln_text(type), opset);
}
bool pln_onnx_schema_has(const pln_onnx_schema *schema, pln_slice attribute);
/* The next attribute of a list that begins at *at, and whether it must be
 * given; false at its end. */
bool pln_onnx_attribute_next(const char **at, pln_slice *name, bool *required);
/* The newest opset that schemas.def tells of. */
int32_t pln_onnx_newest_opset(void);

/* An input or output. */
typedef struct pln_onnx_parameter {
  uint32_t types; /* a row of TYPES */
  char letter;    /* those with one letter have one type; 0: none */
  char option;    /* 0: required, '?', '*', '~' */
} pln_onnx_parameter;

/* The next one of a list that begins at *at; false at its end. The last one is
 * given again and again when it stands for any number. */
bool pln_onnx_parameter_next(const char **at, pln_onnx_parameter *out);
/* Whether a value of that type can be one of these; what is not known can. */
bool pln_onnx_schema_accepts(const pln_engine *engine, uint32_t types,
                             pln_type type);
/* Whether tensors of that dtype can be. */
bool pln_onnx_takes_dtype(uint32_t types, pln_dtype dtype);

#endif
