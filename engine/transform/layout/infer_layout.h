/* infer_layout.h: which layouts the tensors of a call have, by its operator.
 *
 * An operator is asked twice. First with the layouts of its operands before any
 * change: it says which layouts its operands and results have, or that it
 * cannot know. Then with the layouts that the operands have after the change:
 * it says which it wants, and may change its attributes to suit them.
 *
 * Semantics: TVM's FInferCorrectLayout. */

#ifndef PLN_TRANSFORM_LAYOUT_INFER_LAYOUT_H
#define PLN_TRANSFORM_LAYOUT_INFER_LAYOUT_H

#include "transform/layout/tensor_layout.h"

typedef struct pln_layout_call {
  pln_engine *engine;
  pln_layout_table *table;
  pln_op op;
  /* The tensors of the arguments; the fields of a tuple count one by one. */
  uint32_t n;
  const pln_type *types;        /* before any change */
  const pln_tensor_layout *old; /* before any change */
  const pln_tensor_layout *now; /* after the change; NULL: the first question */
  uint32_t n_results;           /* at least 1 */
  /* The answer. An undefined layout among them: the operator cannot know. */
  pln_tensor_layout *in;  /* n, preset to undefined */
  pln_tensor_layout *out; /* n_results, preset to undefined */
  pln_attrs attrs;        /* preset to the call's */
} pln_layout_call;

typedef pln_status (*pln_layout_fn)(pln_layout_call *call);
/* The function of an operator; NULL: it has none. */
pln_layout_fn pln_layout_fn_of(pln_op op);
/* Asks the operator. *known: all layouts are defined. */
pln_status pln_layout_infer(pln_layout_call *call, bool *known) PLN_CHECKED;

/* infer_layout.c: for the functions of layouts.def. */

/* The layout of operand `i` that the question is about. */
static inline pln_tensor_layout pln_layout_operand(const pln_layout_call *call,
                                                   uint32_t i) {
  return call->now ? call->now[i] : call->old[i];
}
/* Gives all results that layout. */
void pln_layout_set_results(pln_layout_call *call, pln_tensor_layout layout);
/* The layout that an attribute names. */
pln_status pln_layout_attr(pln_layout_call *call, const char *name,
                           pln_tensor_layout *out) PLN_CHECKED;
pln_status pln_layout_set_text(pln_layout_call *call, const char *name,
                               pln_slice text) PLN_CHECKED;
/* An integer or boolean; `fallback` if the attribute has another value. */
pln_status pln_layout_int(pln_layout_call *call, const char *name,
                          int64_t fallback, int64_t *out) PLN_CHECKED;
/* A list of integers; *ints is NULL if the attribute is none. Borrowed. */
pln_status pln_layout_ints(pln_layout_call *call, const char *name,
                           const int64_t **ints, uint32_t *n) PLN_CHECKED;
pln_status pln_layout_set_int(pln_layout_call *call, const char *name,
                              int64_t value) PLN_CHECKED;
pln_status pln_layout_set_ints(pln_layout_call *call, const char *name,
                               uint32_t n, const int64_t *ints) PLN_CHECKED;
/* A channel's layout, "C", for operands [first, n). */
pln_status pln_layout_channels(pln_layout_call *call,
                               uint32_t first) PLN_CHECKED;
/* The rank of operand `i`, -1 if it is unknown; an axis of operand 0 counted
 * from 0, -1 if there is none or the rank is unknown. */
int32_t pln_layout_arg_rank(const pln_layout_call *call, uint32_t i);
int64_t pln_layout_normal_axis(const pln_layout_call *call, int64_t axis);
/* The text of layouts that attributes need not name, such as "C". */
pln_status pln_layout_named(pln_layout_call *call, const char *text,
                            pln_tensor_layout *out) PLN_CHECKED;

/* The functions of layouts.def. */
pln_status pln_layout_elementwise(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_broadcast(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_conv(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_correlation(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_regions(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_dense(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_pool(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_resize(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_upsampling(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_reduce(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_concatenate(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_split(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_along_axis(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_normalization(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_l2_normalize(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_prelu(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_transpose(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_squeeze(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_strided_slice(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_slice_like(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_pad(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_qnn_broadcast(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_qnn_conv(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_qnn_concatenate(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_requantize(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_qnn_pool(pln_layout_call *call) PLN_CHECKED;
pln_status pln_layout_simulated_quantize(pln_layout_call *call) PLN_CHECKED;

#endif
