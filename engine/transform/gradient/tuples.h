/* tuples.h: operations on tensors, field by field for tuples of tensors, as
 * gradients need them. Nodes are those of a free builder. */

#ifndef PLN_TRANSFORM_GRADIENT_TUPLES_H
#define PLN_TRANSFORM_GRADIENT_TUPLES_H

#include "op/op.h"
#include "transform/gradient/let_list.h"

/* zeros_like(node) for a tensor; for a tuple, zeros of the shape of each
 * field. `like` and `filled` are the operators of both, or those for ones. */
pln_status pln_filled_like(pln_builder *b, pln_op like, pln_op filled,
                           pln_ref node, pln_ref *out) PLN_CHECKED;
/* x + y; each sum and field is bound. */
pln_status pln_add_tuples(pln_let_list *lets, pln_type type, pln_ref x,
                          pln_ref y, pln_ref *out) PLN_CHECKED;

/* What is made of each tensor x of a value of type `type`. */
typedef enum pln_lift {
  PLN_LIFT_REVERSE, /* (x, ref(zeros_like(x))) */
  PLN_LIFT_VALUE,   /* x of such a pair */
  PLN_LIFT_GRADIENT /* the content of its reference */
} pln_lift;
/* `atom` is a variable; *out is one. */
pln_status pln_lift_tuples(pln_let_list *lets, pln_lift lift, pln_type type,
                           pln_ref atom, pln_ref *out) PLN_CHECKED;
/* The values of pairs as one expression; the fields of tuples are bound. */
pln_status pln_values_of_pairs(pln_let_list *lets, pln_type type, pln_ref pairs,
                               pln_ref *out) PLN_CHECKED;
/* Adds `grad` to the content of the references of `pairs`. */
pln_status pln_update_gradient(pln_let_list *lets, pln_type type, pln_ref pairs,
                               pln_ref grad) PLN_CHECKED;
/* Writes the gradients of one value of pairs to another. */
pln_status pln_transfer_gradient(pln_let_list *lets, pln_type type,
                                 pln_ref from, pln_ref to) PLN_CHECKED;

#endif
