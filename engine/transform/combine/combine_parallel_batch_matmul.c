/* combine_parallel_batch_matmul.c: CombineParallelBatchMatmul: does the
 * products of one stack of matrices as one, and what follows each of them.
 *
 * Run by the executor, once per function, through parallel_branches.c. Products
 * with stacks of as many transposed matrices are compatible; they may differ in
 * the number of columns.
 *
 *     nn.batch_matmul(%x, %y), nn.batch_matmul(%x, %z)   =>
 *     %0 = nn.batch_matmul(%x, concatenate((%y, %z), axis=1));
 *     strided_slice(%0, ..), strided_slice(%0, ..)
 *
 * Semantics: TVM CombineParallelBatchMatmul. What follows is combined only if
 * it has a number per column; TVM concatenates any operand. */

#include "transform/combine/parallel_branches.h"

static pln_status product_key(const pln_graph *g, pln_ref call,
                              pln_attrs *attrs, pln_type *type) {
  const pln_engine *e = g->engine;
  const pln_node *n = &g->nodes[call];
  pln_ref right = pln_operand(g, call, 1);
  pln_type matrices = g->nodes[right].type;
  *type = 0;
  *attrs = n->attrs;
  if (pln_type_rank(e, matrices) != 3 || pln_type_rank(e, n->type) != 3 ||
      pln_attrs_int(e, n->attrs, "transpose_a", 0) ||
      !pln_attrs_int(e, n->attrs, "transpose_b", 0))
    return PLN_OK;
  pln_dim dims[3] = {pln_branch_extent(g, right, 0), 1,
                     pln_branch_extent(g, right, 2)};
  if (dims[0] == PLN_DIM_UNKNOWN || dims[2] == PLN_DIM_UNKNOWN ||
      !PLN_DIM_IS_CONST(pln_branch_extent(g, right, 1)))
    return PLN_OK;
  return pln_type_tensor(g->engine, pln_type_dtype(e, matrices), 3, dims, type);
}

static int32_t column_axis(const pln_graph *g, pln_ref call) {
  (void)g;
  (void)call;
  return 2;
}

static bool columns_fit(const pln_graph *g, const pln_branch_level *level,
                        uint32_t arg, uint32_t branch) {
  pln_ref a = pln_operand(g, level->nodes[0], arg);
  pln_ref call = level->nodes[branch], b = pln_operand(g, call, arg);
  int32_t last = pln_type_rank(g->engine, g->nodes[b].type) - 1;
  return level->axis == 2 && last >= 0 && pln_branch_alike(g, a, b, last) &&
         pln_branch_extent(g, b, last) == pln_branch_extent(g, call, 2);
}

static pln_ref combine_products(pln_branch_build *build) {
  const pln_branch_level *level = build->group->first;
  pln_ref call = level->nodes[0];
  pln_ref args[2] = {
      pln_rewrite_image(build->r.rw, pln_operand(build->old, call, 0)),
      pln_branch_concatenate(build, level, 1, 1)};
  return pln_relay_call_core(&build->r, PLN_OP_BATCH_MATMUL,
                             build->old->nodes[call].attrs, 2, args);
}

static pln_ref column_operand(pln_branch_build *build,
                              const pln_branch_level *level, uint32_t arg) {
  return pln_branch_concatenate(build, level, arg, -1);
}

static void column_parts(pln_branch_build *build, pln_ref combined,
                         pln_ref *parts) {
  pln_branch_slice(build, combined, 3, parts);
}

pln_status pln_pass_combine_parallel_batch_matmul(pln_pass_run *run) {
  static const pln_branch_kind kind = {.op = PLN_OP_BATCH_MATMUL,
                                       .key = product_key,
                                       .axis = column_axis,
                                       .fits = columns_fit,
                                       .combine = combine_products,
                                       .operand = column_operand,
                                       .take_parts = column_parts};
  return pln_combine_branches(run, &kind);
}
