/* rule.h: what the rules of SimplifyExpr stand on; for simplify_*.c, and
 * for the passes fold_*.c.
 *
 * A rule looks at one call and answers with the node to use instead, or with
 * PLN_NONE. It is asked only for calls of its operator. What it builds is
 * looked at again. */

#ifndef PLN_TRANSFORM_SIMPLIFY_RULE_H
#define PLN_TRANSFORM_SIMPLIFY_RULE_H

#include "op/infer/infer.h"
#include "transform/fold/use_counts.h"
#include "transform/transform.h"

typedef struct pln_rewrite_context {
  pln_engine *engine;
  pln_rewrite *rw;
  pln_ref node;   /* the call, in the new graph */
  pln_ref old;    /* what it stands for in the old one */
  pln_type type;  /* of the call */
  pln_infer call; /* its operands and attributes; building makes it stale */
  const uint8_t *mask_used; /* an old node: results but the first are used */
  pln_use_counts *uses;     /* of the old graph, counted when first asked for */
} pln_rewrite_context;

typedef pln_status (*pln_simplify_rule)(pln_rewrite_context *ctx, pln_ref *out);

/* Sets what the site knows of a call: anew when building has made it stale. */
void pln_rule_set_call(pln_rewrite_context *ctx, pln_ref node);

/* Operand `i`, a call, as inference would be given it. */
pln_infer pln_rule_operand(const pln_rewrite_context *ctx, uint32_t i);
/* Nothing but the call uses its operand `i`, and did before; not known of nodes
 * that a rule has just made. */
pln_status pln_rule_is_only_use(pln_rewrite_context *ctx, uint32_t i,
                                bool *out) PLN_CHECKED;

/* rule.c: questions about types. */

/* Tensors of one dtype and shape, each dim of it known or named. */
bool pln_same_shape(const pln_engine *engine, pln_type a, pln_type b);
/* The same of tensors with equally many elements: one dim may be unknown. */
bool pln_same_shape_by_count(const pln_engine *engine, pln_type a, pln_type b);
/* The type of operand `i`, rank -1 and no dims when it is omitted. */
static inline pln_ref pln_rule_arg(const pln_rewrite_context *ctx, uint32_t i) {
  return ctx->call.args[i];
}
/* A file may hold a call that its operator does not accept. False of one that
 * inference refused, and of one without an operand that each form of its
 * operator has: such a call is not rewritten, nor looked into. */
bool pln_call_is_valid(const pln_graph *graph, pln_ref call);
/* The node is a plain, valid call of that operator. */
bool pln_is_call(const pln_graph *graph, pln_ref node, pln_op op);
/* The list is known, and each of its elements is `wanted`. */
bool pln_list_all(const pln_list *list, int64_t wanted);
/* The constant integers of a list; false when not known or more than max. */
bool pln_list_read(const pln_list *list, uint32_t max, int64_t *out);

/* Building. PLN_NONE when the call would be ill-typed (a file may hold what
 * inference would not accept). A call of the same operator has as many
 * results. */
pln_status pln_rule_build(pln_rewrite_context *ctx, pln_op op, pln_attrs attrs,
                          uint32_t n, const pln_ref *args,
                          pln_ref *out) PLN_CHECKED;
/* The same in place of the call: of its type, as far as that is known. */
pln_status pln_rule_replace_call(pln_rewrite_context *ctx, pln_op op,
                                 pln_attrs attrs, uint32_t n,
                                 const pln_ref *args, pln_ref *out) PLN_CHECKED;
/* A Constant vector, and a scalar, of int64. */
pln_status pln_rule_int_vector(pln_rewrite_context *ctx, uint32_t n,
                               const int64_t *ints, pln_ref *out) PLN_CHECKED;
pln_status pln_rule_int_constant(pln_rewrite_context *ctx, int64_t value,
                                 pln_ref *out) PLN_CHECKED;
/* transpose(x) by a permutation of n axes. */
pln_status pln_rule_transpose(pln_rewrite_context *ctx, pln_ref x, uint32_t n,
                              const int64_t *axes, pln_ref *out) PLN_CHECKED;
/* reshape(x) to that shape, told by constants; PLN_NONE when it cannot be. */
pln_status pln_rule_reshape(pln_rewrite_context *ctx, pln_ref x, uint32_t n,
                            const pln_dim *dims, pln_ref *out) PLN_CHECKED;
/* The same call with operand `i` replaced. */
pln_status pln_rule_replace_arg(pln_rewrite_context *ctx, uint32_t i,
                                pln_ref arg, pln_ref *out) PLN_CHECKED;
/* The call on `x` with another list, argument `arg` or attribute `attr` as the
 * call has it (the attribute when it has neither). */
pln_status pln_rule_replace_list(pln_rewrite_context *ctx, pln_ref x,
                                 uint32_t arg, const char *attr, uint32_t n,
                                 const int64_t *ints, pln_ref *out) PLN_CHECKED;

/* The rules: X(function). */
/* clang-format off */
#define PLN_SIMPLIFY_RULES(X)                                          \
  /* reshape.c */                                               \
  X(same_reshape) X(merge_reshape) X(fold_reshape_shape) \
  X(merge_squeeze) X(merge_unsqueeze) \
  /* factor_reshape.c */                                             \
  X(factor_reshape) X(sink_reshape) \
  /* broadcast.c */                                           \
  X(fold_broadcast_shape) X(drop_broadcast) \
  /* data_movement.c */                                                \
  X(same_transpose) X(merge_transpose) X(no_pad) X(full_slice) \
  X(same_expand) X(no_tile) X(single_concat) X(merge_concat) \
  X(single_split) \
  /* take.c */                                                \
  X(take_vector) X(take_all) X(take_one) X(take_through_transpose) \
  /* reduce.c */                                              \
  X(keep_axes) X(reduce_single) \
  /* cast.c */                                                \
  X(same_cast) X(merge_cast) \
  /* arithmetic.c */                                          \
  X(add_zero) X(subtract_zero) X(multiply_one) X(divide_one) \
  X(power_one) X(and_true) X(or_false) X(only_operand) \
  /* dropout.c */                                             \
  X(inference_dropout) \
  /* rnn.c */                                                 \
  X(zero_state)
/* clang-format on */
#define PLN_DECLARE(rule)                                                \
  pln_status pln_simplify_##rule(pln_rewrite_context *ctx, pln_ref *out) \
      PLN_CHECKED;
PLN_SIMPLIFY_RULES(PLN_DECLARE)
#undef PLN_DECLARE

#endif
