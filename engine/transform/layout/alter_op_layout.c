/* alter_op_layout.c: AlterOpLayout: replaces operators by forms that the target
 * computes faster, in layouts of their own.
 *
 * Run by the executor, once per function, in the caller's thread. Requires a
 * verified graph. The attribute FTVMAlterOpLayout of an operator is a function
 * of (attrs, inputs, types of the inputs, type of the result) that returns the
 * call to use, or nil. Without one, convolutions and dense products change as
 * the config key `target` says. Other operators adapt, and conversions are
 * inserted where one cannot.
 *
 *     nn.conv2d(%x, %w), target "llvm"   =>
 *       %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c")
 *       %1 = layout_transform(%w, src_layout="OIHW", dst_layout="OIHW4i4o")
 *       %2 = nn.contrib_conv2d_NCHWc(%0, %1, out_layout="NCHW4c")
 *       layout_transform(%2, src_layout="NCHW4c", dst_layout="NCHW")
 *
 * Semantics: TVM AlterOpLayout. */

#include "transform/layout/op_function.h"
#include "transform/layout/x86_layout.h"

#define KEY "FTVMAlterOpLayout"

/* Takes over operator, attributes and arguments of the call that the function
 * returned. */
static pln_status take_call(pln_layout_change *c, pln_ref call) {
  const pln_graph *g = pln_rewrite_graph(c->rw);
  const pln_node *n = &g->nodes[call];
  if (n->count != c->n_args)
    return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                          "attribute '" KEY "' of '%s': a call with %u "
                          "arguments expected, got one with %u",
                          pln_op_row(g->engine, c->op)->name, c->n_args,
                          n->count);
  c->op = n->data;
  c->attrs = n->attrs;
  if (c->n_args)
    memcpy(c->args, g->operands + n->first, c->n_args * sizeof *c->args);
  return PLN_OK;
}

static pln_status alter(void *ud, pln_layout_change *c) {
  const pln_op_question question = {.rw = c->rw,
                                    .old = c->old,
                                    .image = c->image,
                                    .attrs = c->attrs,
                                    .n_args = c->n_args,
                                    .args = c->args,
                                    .for_layout = true};
  const pln_compile_target *target = ud;
  pln_ref answer;
  bool asked;
  PLN_TRY(pln_ask_op_function(&question, KEY, &answer, &asked));
  if (asked)
    return answer == PLN_NONE ? PLN_OK : take_call(c, answer);
  return target->cpu ? pln_x86_alter_layout(target, c) : PLN_OK;
}

static bool is_asked(void *ud, const pln_engine *engine, pln_op op) {
  (void)ud;
  return pln_op_attr_get(engine, op, KEY) != NULL;
}

pln_status pln_pass_alter_op_layout(pln_pass_run *run) {
  pln_compile_target target = pln_run_target(run);
  pln_layout_alteration alteration = {
      .ud = &target, .alter = alter, .replaces = is_asked};
  pln_graph *out;
  PLN_TRY(pln_transform_layouts(pln_run_function(run), &alteration, &out));
  pln_run_set_function(run, out);
  return PLN_OK;
}
