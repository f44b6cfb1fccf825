/* call_form.h: how a call of the core is said at an opset of ONNX: which
 * version of the operator it is, what is an attribute and what an input. */

#ifndef PLN_ONNX_OPSET_CALL_FORM_H
#define PLN_ONNX_OPSET_CALL_FORM_H

#include "onnx/op_map.h"
#include "onnx/schema.h"

/* The row and version that an operator of the core is written as at an opset;
 * no row: it has none there. */
typedef struct pln_opset_op {
  const pln_onnx_op *row;
  const pln_onnx_schema *schema; /* NULL: nothing is known of its version */
  pln_attrs implied;
} pln_opset_op;
pln_status pln_opset_op_find(pln_engine *engine, pln_op op, int64_t opset,
                             pln_opset_op *out) PLN_CHECKED;
/* The name of an operator in ONNX, for messages; NULL when it has none. */
const char *pln_opset_op_type(pln_op op);

/* A call on its way to a form. */
enum { PLN_CALL_FEW = 8 };
typedef struct pln_opset_call {
  pln_engine *engine;
  const pln_graph *graph; /* where the operands are */
  int64_t opset;
  pln_op op;
  pln_opset_op form;
  pln_type type; /* of the call */
  uint32_t n_results;
  uint32_t n_used; /* results up to the last one that anything uses */
  pln_attrs attrs;
  uint32_t n_args;
  const pln_ref *args; /* PLN_NONE: made[i], or Absent when that is NULL */
  pln_ref few[PLN_CALL_FEW]; /* `args`, once they are changed */
  pln_tensor *made[PLN_CALL_FEW];
  uint32_t casts; /* a bit an argument: it is cast to int64 */
  bool changed;
  bool valid;
  char why[160]; /* why not: "'axes' must be constant" */
} pln_opset_call;

/* The form of a plain call of an operator at an opset: `valid` tells whether it
 * has one. Frees nothing on failure; pln_opset_call_free always. */
pln_status pln_opset_call_make(pln_engine *engine, const pln_graph *graph,
                               pln_ref call, uint32_t n_used, int64_t opset,
                               const pln_opset_op *form,
                               pln_opset_call *out) PLN_CHECKED;
void pln_opset_call_free(pln_opset_call *form);
/* Builds the call as the form says; it is valid. */
pln_status pln_opset_call_build(pln_opset_call *form, pln_builder *b,
                                pln_ref *out) PLN_CHECKED;

/* Whether the version takes operands of those types. */
bool pln_call_form_admits(pln_engine *engine, const pln_graph *graph,
                          pln_ref call, const pln_opset_op *form);

/* For call_fix.c. */
/* The value that an attribute has: as given, else by default; false when it has
 * none. A default lives as long as the engine. */
bool pln_opset_call_attr(const pln_opset_call *f, const char *name,
                         pln_attr *out);
int64_t pln_opset_call_int(const pln_opset_call *f, const char *name,
                           int64_t fallback);
/* The tensor of argument `i` when it is a constant, else NULL. */
const pln_tensor *pln_opset_call_constant(const pln_opset_call *f, uint32_t i);
/* The integers that argument `i` holds: of a constant, or as inference knows
 * them, symbols among them. False when nobody knows, or they are more. */
bool pln_opset_call_values(const pln_opset_call *f, uint32_t i, uint32_t most,
                           pln_dim *out, uint32_t *n);
bool pln_opset_call_has_arg(const pln_opset_call *f, uint32_t i);
/* Argument `i` becomes a constant, which is taken; NULL: Absent. */
void pln_opset_call_set(pln_opset_call *f, uint32_t i, pln_tensor *constant);
pln_status pln_opset_call_with_attr(pln_opset_call *f, const char *name,
                                    pln_attr value) PLN_CHECKED;
pln_status pln_opset_call_without_attr(pln_opset_call *f,
                                       const char *name) PLN_CHECKED;
bool pln_opset_call_knows(const pln_opset_call *f, const char *attribute);
/* Says why the call has no form. */
void pln_opset_call_refuse(pln_opset_call *f, const char *format, ...)
    PLN_PRINTF(2, 3);
/* call_fix.c: what an operator needs beyond the tables; may refuse. */
pln_status pln_opset_call_fix(pln_opset_call *f) PLN_CHECKED;

#endif
