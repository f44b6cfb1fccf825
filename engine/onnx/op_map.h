/* op_map.h: operators of ONNX and of the core: which row stands for which. */

#ifndef PLN_ONNX_OP_MAP_H
#define PLN_ONNX_OP_MAP_H

#include "op/op.h"

/* A row of ops.def. */
typedef struct pln_onnx_op {
  const char *domain;
  const char *type;
  int32_t from;  /* files are read so from this opset on */
  int32_t since; /* it may be written from this one on */
  pln_op op;
  const char *implied;
} pln_onnx_op;

/* The row that an operator of a file has at an opset version, or NULL. */
const pln_onnx_op *pln_onnx_op_find(pln_slice domain, pln_slice type,
                                    int64_t version);
/* Row `i` of all, sorted as in ops.def; NULL past the last one. */
const pln_onnx_op *pln_onnx_op_row(size_t i);
/* The rows from `from` on that stand for a core operator; NULL past the last
 * one. Start with NULL. */
const pln_onnx_op *pln_onnx_op_next(const pln_onnx_op *from, pln_op op);
/* Whether no later row of the same operator is reached at `version`. */
bool pln_onnx_op_current(const pln_onnx_op *row, int64_t version);
/* The implied attributes as a dictionary. */
pln_status pln_onnx_implied(pln_engine *engine, const pln_onnx_op *row,
                            pln_attrs *out) PLN_CHECKED;

/* Whether some version implies this attribute, which no version of ONNX has. */
bool pln_onnx_core_only(const pln_onnx_op *row, const char *name);

/* The value of an ONNX Constant node with these attributes; *out is NULL when
 * it is none that a tensor represents (sparse, or given by reference). */
pln_status pln_onnx_constant(pln_engine *engine, pln_attrs attrs,
                             pln_tensor **out) PLN_CHECKED;

/* The version of a domain in a dictionary from domains to versions. */
int64_t pln_onnx_opset(const pln_engine *engine, pln_attrs opsets,
                       pln_slice domain, int64_t fallback);

/* "" and "ai.onnx" name the same domain. */
bool pln_onnx_same_domain(pln_slice a, pln_slice b);

#endif
