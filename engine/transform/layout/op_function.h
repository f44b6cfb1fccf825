/* op_function.h: calls the function that was set as an attribute of an operator
 * to replace a call, as AlterOpLayout and Legalize do. */

#ifndef PLN_TRANSFORM_LAYOUT_OP_FUNCTION_H
#define PLN_TRANSFORM_LAYOUT_OP_FUNCTION_H

#include "transform/transform.h"

/* A call to replace. */
typedef struct pln_op_question {
  pln_rewrite *rw;
  pln_ref old;   /* in the old graph */
  pln_ref image; /* its image */
  pln_attrs attrs;
  uint32_t n_args;
  const pln_ref *args; /* in the new graph */
  /* The function says in which layouts the call shall be computed, before its
   * operands have them: its type is not inferred. The result's type is an
   * argument of its own, not the last of the types. */
  bool for_layout;
} pln_op_question;

/* *answer is a call in the new graph; PLN_NONE: the function returned nil, or
 * *asked is false: the operator has none. Another answer is PLN_ERR_TYPE. */
pln_status pln_ask_op_function(const pln_op_question *question, const char *key,
                               pln_ref *answer, bool *asked) PLN_CHECKED;

#endif
