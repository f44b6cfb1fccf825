/* simplify_expr_post_alter_op.c: SimplifyExprPostAlterOp: the rules of
 * SimplifyExpr for what AlterOpLayout leaves behind.
 *
 * Run by the executor, once per function. Requires a verified graph. Removes
 * neutral operands, consecutive reshapes and casts, and limits that a dtype has
 * anyway. Layout transforms and constants that AlterOpLayout made stay as they
 * are.
 *
 *     reshape(reshape(%x, newshape=[4, 2]), newshape=[8])   =>
 *     reshape(%x, newshape=[8])
 *
 * Semantics: TVM SimplifyExprPostAlterOp. */

#include "transform/shipped_rules.h"

/* By TVM's rewrites. */
static const char *const rules[] = {
    /* EliminateIdentity */
    "add_zero", "subtract_zero", "multiply_one", "divide_one", "add_zeros",
    "zeros_add", "multiply_ones", "ones_multiply",
    /* SimplifyReshape */
    "same_reshape", "merge_reshape",
    /* SimplifySameCast, SimplifyConsecutiveCast */
    "same_cast", "same_cast_like", "merge_cast",
    /* SimplifyClipAndConsecutiveCast, SimplifyClip */
    "clip_cast", "clip_uint8", "clip_int8"};

pln_status pln_pass_simplify_expr_post_alter_op(pln_pass_run *run) {
  pln_slice names[PLN_COUNT(rules)];
  pln_attr only = {
      .kind = PLN_ATTR_STRINGS, .count = PLN_COUNT(rules), .v.strings = names};
  const pln_rule_options options = {.only = &only, .lenient = true};
  pln_graph *out;
  for (uint32_t i = 0; i < PLN_COUNT(rules); i++)
    names[i] = pln_text(rules[i]);
  PLN_TRY(pln_run_shipped_rules(run, "SimplifyExpr", pln_run_function(run),
                                &options, &out));
  pln_run_set_function(run, out);
  return PLN_OK;
}
