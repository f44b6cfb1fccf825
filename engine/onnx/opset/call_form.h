/* call_form.h: the form of a core call at an ONNX opset: the version of the
 * operator, and what is an attribute and what an input. */

#ifndef PLN_ONNX_OPSET_CALL_FORM_H
#define PLN_ONNX_OPSET_CALL_FORM_H

#include "onnx/op_map.h"
#include "onnx/schema.h"

/* The row and the schema by which an operator is written at an opset. No row:
 * the opset does not have it. */
typedef struct pln_opset_op {
  const pln_onnx_op *row;
  const pln_onnx_schema *schema; /* NULL: its version is unknown */
  pln_attrs implied;
} pln_opset_op;
pln_status pln_opset_op_find(pln_engine *engine, pln_op op, int64_t opset,
                             pln_opset_op *out) PLN_CHECKED;
/* The ONNX name of an operator, for messages; NULL if it has none. */
const char *pln_opset_op_type(pln_op op);

/* A call being converted to a form. */
enum { PLN_CALL_FEW = 8 };
typedef struct pln_opset_call {
  pln_engine *engine;
  const pln_graph *graph; /* graph of the operands */
  int64_t opset;
  pln_op op;
  pln_opset_op form;
  pln_type type; /* type of the call */
  uint32_t n_results;
  uint32_t n_used; /* number of results up to the last used one */
  pln_attrs attrs;
  uint32_t n_args;
  const pln_ref *args;       /* PLN_NONE: made[i], or Absent if that is NULL */
  pln_ref few[PLN_CALL_FEW]; /* storage for `args` once they are changed */
  pln_tensor *made[PLN_CALL_FEW];
  uint32_t casts; /* bit i: argument i is cast to int64 */
  bool changed;
  bool valid;
  char why[160]; /* reason of a refusal: "'axes' must be constant" */
} pln_opset_call;

/* Finds the form of a plain call at an opset; `valid` tells whether it has one.
 * The caller must call pln_opset_call_free, also after a failure. */
pln_status pln_opset_call_make(pln_engine *engine, const pln_graph *graph,
                               pln_ref call, uint32_t n_used, int64_t opset,
                               const pln_opset_op *form,
                               pln_opset_call *out) PLN_CHECKED;
void pln_opset_call_free(pln_opset_call *form);
/* Builds the call in its form, which must be valid. */
pln_status pln_opset_call_build(pln_opset_call *form, pln_builder *b,
                                pln_ref *out) PLN_CHECKED;

/* *out is true if the version accepts operands of those types. */
bool pln_call_form_admits(pln_engine *engine, const pln_graph *graph,
                          pln_ref call, const pln_opset_op *form);

/* For call_fix.c. */
/* The value of an attribute: given, or the default; false if it has neither. A
 * default lives as long as the engine. */
bool pln_opset_call_attr(const pln_opset_call *f, const char *name,
                         pln_attr *out);
int64_t pln_opset_call_int(const pln_opset_call *f, const char *name,
                           int64_t fallback);
/* The tensor of argument `i` if it is a constant, else NULL. */
const pln_tensor *pln_opset_call_constant(const pln_opset_call *f, uint32_t i);
/* The integers of argument `i`: of a constant, or known by inference, including
 * symbols. False if unknown or more than `most`. */
bool pln_opset_call_values(const pln_opset_call *f, uint32_t i, uint32_t most,
                           pln_dim *out, uint32_t *n);
bool pln_opset_call_has_arg(const pln_opset_call *f, uint32_t i);
/* Replaces argument `i` by a constant, which is owned; NULL: Absent. */
void pln_opset_call_set(pln_opset_call *f, uint32_t i, pln_tensor *constant);
pln_status pln_opset_call_with_attr(pln_opset_call *f, const char *name,
                                    pln_attr value) PLN_CHECKED;
pln_status pln_opset_call_without_attr(pln_opset_call *f,
                                       const char *name) PLN_CHECKED;
bool pln_opset_call_knows(const pln_opset_call *f, const char *attribute);
/* Records why the call has no form. */
void pln_opset_call_refuse(pln_opset_call *f, const char *format, ...)
    PLN_PRINTF(2, 3);
/* call_fix.c: applies what an operator needs beyond the tables. May refuse. */
pln_status pln_opset_call_fix(pln_opset_call *f) PLN_CHECKED;

#endif
