/* op_map.h: maps ONNX operators to core operators and back, by ops.def. */

#ifndef PLN_ONNX_OP_MAP_H
#define PLN_ONNX_OP_MAP_H

#include "op/op.h"

/* A row of ops.def. */
typedef struct pln_onnx_op {
  const char *domain;
  const char *type;
  int32_t from;  /* lowest opset at which files are read so */
  int32_t since; /* lowest opset at which it may be written */
  pln_op op;
  const char *implied;
} pln_onnx_op;

/* The row of an ONNX operator at an opset version, or NULL. */
const pln_onnx_op *pln_onnx_op_find(pln_slice domain, pln_slice type,
                                    int64_t version);
/* Row `i` of ops.def; NULL past the last one. */
const pln_onnx_op *pln_onnx_op_row(size_t i);
/* Iterates over the rows of a core operator, starting with NULL; returns NULL
 * at the end. */
const pln_onnx_op *pln_onnx_op_next(const pln_onnx_op *from, pln_op op);
/* Returns true if no later row of the same ONNX operator applies at
 * `version`. */
bool pln_onnx_op_current(const pln_onnx_op *row, int64_t version);
/* The implied attributes of a row as a dictionary. */
pln_status pln_onnx_implied(pln_engine *engine, const pln_onnx_op *row,
                            pln_attrs *out) PLN_CHECKED;

/* Returns true if a row implies this attribute although no version of ONNX has
 * it. */
bool pln_onnx_core_only(const pln_onnx_op *row, const char *name);

/* Returns true if ONNX names an attribute of that core operator otherwise. */
bool pln_onnx_renames_attrs(pln_op op);
/* ONNX's name of an attribute of a core operator; of ONNX's name, the core's.
 * A bijection: names that are in neither column of attr_names.def stay. */
pln_slice pln_onnx_attr_name(pln_op op, pln_slice name);
/* The same attributes under the other names. */
pln_status pln_onnx_rename_attrs(pln_engine *engine, pln_op op, pln_attrs attrs,
                                 pln_attrs *out) PLN_CHECKED;

/* The value of an ONNX Constant node with these attributes. *out is NULL if no
 * tensor can represent it (sparse, or an attribute reference). */
pln_status pln_onnx_constant(pln_engine *engine, pln_attrs attrs,
                             pln_tensor **out) PLN_CHECKED;

/* The version of a domain in a dictionary from domains to versions. */
int64_t pln_onnx_opset(const pln_engine *engine, pln_attrs opsets,
                       pln_slice domain, int64_t fallback);

/* "" and "ai.onnx" name the same domain. */
bool pln_onnx_same_domain(pln_slice a, pln_slice b);

#endif
