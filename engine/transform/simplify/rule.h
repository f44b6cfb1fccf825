/* rule.h: the interface of SimplifyExpr's replacements in C; also used by the
 * passes in transform/fold/.
 *
 * A rule gets one call of its operator and returns the node to use instead, or
 * PLN_NONE. The nodes that it builds are simplified again. */

#ifndef PLN_TRANSFORM_SIMPLIFY_RULE_H
#define PLN_TRANSFORM_SIMPLIFY_RULE_H

#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/transform.h"

typedef struct pln_rewrite_context {
  pln_engine *engine;
  pln_rewrite *rw;
  pln_ref node;   /* the call, a node of the new graph */
  pln_ref old;    /* the node of the old graph that it replaces */
  pln_type type;  /* type of the call */
  pln_infer call; /* operands and attributes; stale after building */
  pln_rule_driver *driver;
} pln_rewrite_context;

typedef pln_status (*pln_simplify_rule)(pln_rewrite_context *ctx, pln_ref *out);

/* simplify_expr.c: the replacement in C of that name; NULL: there is none. */
pln_rule_native pln_simplify_find_native(const char *name, const void **ud);

/* Sets the fields that describe the call; needed again after building. */
void pln_rule_set_call(pln_rewrite_context *ctx, pln_ref node);

/* Operand `i`, which is a call, in the form that inference functions take. */
pln_infer pln_rule_operand(const pln_rewrite_context *ctx, uint32_t i);
/* Returns true if the call is the only user of operand `i`. */
bool pln_rule_is_only_use(const pln_rewrite_context *ctx, uint32_t i);

/* data_movement.c: the permutation of a transpose. */
typedef struct pln_permutation {
  uint32_t n;
  int64_t axes[PLN_MAX_RANK];
} pln_permutation;

/* Reads attribute `axes`; without it, the axes of that rank are reversed. False
 * if it is none. */
bool pln_read_permutation(const pln_engine *engine, pln_attrs attrs,
                          int32_t rank, pln_permutation *out);
bool pln_permutation_is_identity(const pln_permutation *permutation);

/* rule.c: questions about types. */

/* The type of operand `i`; rank -1 and no dims if it is omitted. */
static inline pln_ref pln_rule_arg(const pln_rewrite_context *ctx, uint32_t i) {
  return ctx->call.args[i];
}
/* Returns true if the node is a plain, valid call of `op`. */
bool pln_is_call(const pln_graph *graph, pln_ref node, pln_op op);
/* True if the node is a call whose result has the elements of its operand, in
 * their order, in another shape. */
bool pln_rule_only_reshapes(const pln_graph *graph, pln_ref node);
/* Returns true if the list is known and each element is `wanted`. */
bool pln_list_all(const pln_list *list, int64_t wanted);
/* Reads a list of constant integers; false if one is unknown or there are more
 * than `max`. */
bool pln_list_read(const pln_list *list, uint32_t max, int64_t *out);

/* Returns true if the operands broadcast to the shape of the result with `x` in
 * place of operand `i`. */
bool pln_rule_covers(const pln_rewrite_context *ctx, uint32_t i, pln_ref x);

/* Builds a call. *out is PLN_NONE if it would be ill-typed, which happens for
 * files with calls that inference refuses. A call of the same operator gets the
 * same number of results. */
pln_status pln_rule_build(pln_rewrite_context *ctx, pln_op op, pln_attrs attrs,
                          uint32_t n, const pln_ref *args,
                          pln_ref *out) PLN_CHECKED;
/* The same, in place of the current call: the type of that call is kept. */
pln_status pln_rule_replace_call(pln_rewrite_context *ctx, pln_op op,
                                 pln_attrs attrs, uint32_t n,
                                 const pln_ref *args, pln_ref *out) PLN_CHECKED;
/* Build a Constant vector and a Constant scalar of int64. */
pln_status pln_rule_int_vector(pln_rewrite_context *ctx, uint32_t n,
                               const int64_t *ints, pln_ref *out) PLN_CHECKED;
pln_status pln_rule_int_constant(pln_rewrite_context *ctx, int64_t value,
                                 pln_ref *out) PLN_CHECKED;
/* Builds transpose(x) with a permutation of n axes. */
pln_status pln_rule_transpose(pln_rewrite_context *ctx, pln_ref x, uint32_t n,
                              const int64_t *axes, pln_ref *out) PLN_CHECKED;
/* Builds reshape(x) with a constant shape; PLN_NONE if one cannot express
 * it. */
pln_status pln_rule_reshape(pln_rewrite_context *ctx, pln_ref x, uint32_t n,
                            const pln_dim *dims, pln_ref *out) PLN_CHECKED;
/* fill.c: builds a constant of rank 0 with the value that a call of
 * constant_of_shape fills with, by default a float32 zero; leaves *out if there
 * is no such constant. */
pln_status pln_rule_fill(pln_rewrite *rw, pln_ref fill,
                         pln_ref *out) PLN_CHECKED;
/* index_grid.c: returns true if the node is a condition of which every element
 * is known to hold. */
bool pln_always_holds(const pln_graph *graph, pln_ref node);
/* Builds the same call with operand `i` replaced. */
pln_status pln_rule_replace_arg(pln_rewrite_context *ctx, uint32_t i,
                                pln_ref arg, pln_ref *out) PLN_CHECKED;
/* Builds the same call on `x` with another list, as argument `arg` or as
 * attribute `attr`, whichever the call has (the attribute if it has
 * neither). */
pln_status pln_rule_replace_list(pln_rewrite_context *ctx, pln_ref x,
                                 uint32_t arg, const char *attr, uint32_t n,
                                 const int64_t *ints, pln_ref *out) PLN_CHECKED;

/* The replacements in C, by the names that lua/perilune/rules gives them:
 * X(function). */
/* clang-format off */
#define PLN_SIMPLIFY_RULES(X)                                          \
  /* reshape.c */                                               \
  X(same_reshape) X(merge_reshape) X(fold_reshape_shape) \
  X(merge_squeeze) X(merge_unsqueeze) X(reshape_at_once) \
  /* factor_reshape.c */                                             \
  X(factor_reshape) X(sink_reshape) X(merge_behind) \
  /* broadcast.c */                                           \
  X(fold_broadcast_shape) X(drop_broadcast) X(drop_fill) \
  X(rows_of_broadcast) \
  /* fill.c */                                                \
  X(fill_of_scalar) X(cast_of_fill) X(take_of_fill) X(gather_of_fill) \
  X(neutral_fill) X(fill_of_condition) X(choice_of_fill) X(tile_ones) \
  X(triangle) \
  /* data_movement.c */                                                \
  X(same_transpose) X(merge_transpose) X(full_slice) \
  X(single_concat) X(merge_concat) X(join_extents) \
  /* pad.c */                                                \
  X(pad_behind) \
  /* layout_transform.c */                                            \
  X(same_layout) X(merge_layout) \
  /* binomial.c */                                            \
  X(binomial) \
  /* take.c */                                                \
  X(take_vector) X(take_all) X(take_one) X(take_through_transpose) \
  /* commute.c */                                          \
  X(split_behind) X(reshape_around) X(rejoin) X(join_inside) \
  /* take_pieces.c */                                          \
  X(take_repeated) X(take_permuted) X(take_pieces) X(move_signs) \
  /* join_calls.c */                                          \
  X(join_calls) \
  /* join_heads.c */                                          \
  X(join_heads) \
  /* take_blocks.c */                                          \
  X(take_blocks) \
  /* index_grid.c */                                          \
  X(take_enumeration) X(gather_grid) X(drop_tautology) \
  /* reduce.c */                                              \
  X(keep_axes) X(drop_axes) X(reduce_single) \
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
