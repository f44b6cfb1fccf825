/* convert_opset.h: the conversion of graphs to an opset, for convert_opset.c
 * and expand.c. */

#ifndef PLN_ONNX_OPSET_CONVERT_OPSET_H
#define PLN_ONNX_OPSET_CONVERT_OPSET_H

#include "onnx/node.h"
#include "onnx/opset/call_form.h"
#include "onnx/opset/model_opset.h"

typedef struct pln_opset_conversion {
  pln_engine *engine;
  int64_t opset; /* of ai.onnx, that is wanted */
  int64_t from;  /* that the nodes had in their file; 0: in none */
  bool all;      /* look at every call, not only at what files do not have */
  pln_opset_op *forms; /* an operator */
  uint8_t *known;      /* an operator: its form was looked up */
  uint64_t *admitted;  /* an operator: dtypes of operands that the form takes */
  uint32_t n_forms;
  pln_rewrite *rw;
  const uint32_t *used; /* a node of the old graph: see n_used in call_form.h */
  pln_file_opsets source;
  pln_node_lists lists;      /* of a node as its file has it */
  const pln_graph *at_graph; /* the place of diagnostics */
  pln_ref at;
  pln_symbol function;
} pln_opset_conversion;

/* How deep expansions may hold expansions. */
enum { PLN_EXPAND_DEEPEST = 6 };

/* Brings a call of the new graph into the opset's form, itself or as what
 * stands for it: *out. *done is false when it has none; *why (160 bytes, may be
 * NULL) is set then, and nothing reported. A call with results may become a
 * tuple of fewer fields, but of all that are used. */
pln_status pln_convert_call(pln_opset_conversion *c, pln_ref call,
                            uint32_t n_used, int depth, pln_ref *out,
                            bool *done, char *why) PLN_CHECKED;
/* expand.c: the same by the rows of expansions.def. */
pln_status pln_expand_call(pln_opset_conversion *c, pln_ref call,
                           uint32_t n_used, int depth, pln_ref *out,
                           bool *done) PLN_CHECKED;

#endif
