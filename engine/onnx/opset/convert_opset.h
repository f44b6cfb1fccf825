/* convert_opset.h: conversion of graphs to an opset; shared by convert_opset.c
 * and expand.c. */

#ifndef PLN_ONNX_OPSET_CONVERT_OPSET_H
#define PLN_ONNX_OPSET_CONVERT_OPSET_H

#include "onnx/node.h"
#include "onnx/opset/call_form.h"
#include "onnx/opset/model_opset.h"

typedef struct pln_opset_conversion {
  pln_engine *engine;
  int64_t opset; /* target version of ai.onnx */
  int64_t from;  /* version of the nodes in their file; 0: no file */
  bool all; /* visit every call, not only those that are not from the file */
  pln_opset_op *forms; /* by operator: cached form */
  uint8_t *known;      /* by operator: its form is cached */
  uint64_t *admitted;  /* by operator: operand dtypes that the form accepts */
  uint32_t n_forms;
  pln_rewrite *rw;
  const uint32_t *used; /* by old node: see n_used in call_form.h */
  pln_file_opsets source;
  pln_node_lists lists;      /* of a node in its file */
  const pln_graph *at_graph; /* graph that diagnostics name */
  pln_ref at;
  pln_symbol function;
} pln_opset_conversion;

/* Largest nesting of expansions. */
enum { PLN_EXPAND_DEEPEST = 6 };

/* Converts a call of the new graph to the opset's form, or to an expansion:
 * *out. *done is false if it has neither; then *why (160 bytes, may be NULL) is
 * the reason, and nothing is reported. A call with several results may become a
 * tuple with fewer fields, but with all used ones. */
pln_status pln_convert_call(pln_opset_conversion *c, pln_ref call,
                            uint32_t n_used, int depth, pln_ref *out,
                            bool *done, char *why) PLN_CHECKED;
/* expand.c: the same by the rows of expansions.def. */
pln_status pln_expand_call(pln_opset_conversion *c, pln_ref call,
                           uint32_t n_used, int depth, pln_ref *out,
                           bool *done) PLN_CHECKED;

#endif
