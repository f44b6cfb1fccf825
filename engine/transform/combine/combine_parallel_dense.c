/* combine_parallel_dense.c: CombineParallelDense: does the dense layers of one
 * tensor as one, and what follows each of them.
 *
 * Run by the executor, once per function, through parallel_branches.c. With
 * `to_batch` layers of equal weight shapes become a batch of products, without
 * it layers that may differ in units become one layer.
 *
 *     nn.dense(%x, %w), nn.dense(%x, %v)   =>   to_batch
 *     %0 = nn.batch_matmul(stack((%x, %x)), stack((%w, %v)), transpose_b=True);
 *     %1 = split(%0, indices_or_sections=2);
 *     squeeze(%1.0, axis=[0]), squeeze(%1.1, axis=[0])
 *
 *                                          =>   to_batch=False
 *     %0 = nn.dense(%x, concatenate((%w, %v)));
 *     strided_slice(%0, ..), strided_slice(%0, ..)
 *
 * Semantics: TVM CombineParallelDense. Where TVM would broadcast a stacked
 * operand along another axis, the operator that needs it is not combined. */

#include "transform/combine/parallel_branches.h"

static pln_status out_dtype_only(const pln_graph *g, pln_ref call,
                                 pln_attrs *out) {
  return pln_attrs_without(g->engine, g->nodes[call].attrs, "units", out);
}

/* The type of the weight; its units are 1 if they may differ. */
static pln_status weight_key(const pln_graph *g, pln_ref call, bool any_units,
                             pln_attrs *attrs, pln_type *type) {
  const pln_engine *e = g->engine;
  pln_ref weight = pln_operand(g, call, 1);
  pln_dim dims[2] = {pln_branch_extent(g, weight, 0),
                     pln_branch_extent(g, weight, 1)};
  *type = 0;
  PLN_TRY(out_dtype_only(g, call, attrs));
  if (!PLN_DIM_IS_CONST(dims[0]) || dims[1] == PLN_DIM_UNKNOWN ||
      pln_type_rank(e, g->nodes[pln_operand(g, call, 0)].type) != 2)
    return PLN_OK;
  if (any_units)
    dims[0] = 1;
  return pln_type_tensor(g->engine, pln_type_dtype(e, g->nodes[weight].type), 2,
                         dims, type);
}

static int32_t unit_axis(const pln_graph *g, pln_ref call) {
  (void)g;
  (void)call;
  return 1;
}

/* ------------------------------------------------------------- one dense */

static pln_status flat_key(const pln_graph *g, pln_ref call, pln_attrs *attrs,
                           pln_type *type) {
  return weight_key(g, call, true, attrs, type);
}

/* A scalar, or a number per unit or for all of them. */
static bool flat_fits(const pln_graph *g, const pln_branch_level *level,
                      uint32_t arg, uint32_t branch) {
  pln_ref a = pln_operand(g, level->nodes[0], arg);
  pln_ref call = level->nodes[branch], b = pln_operand(g, call, arg);
  int32_t last = pln_type_rank(g->engine, g->nodes[b].type) - 1;
  pln_dim units = pln_branch_extent(g, call, level->axis);
  if (level->axis != pln_type_rank(g->engine, g->nodes[call].type) - 1 ||
      !pln_branch_alike(g, a, b, last))
    return false;
  return last < 0 || pln_branch_extent(g, b, last) == units ||
         pln_branch_extent(g, b, last) == 1;
}

static pln_ref combine_flat(pln_branch_build *build) {
  const pln_branch_level *level = build->group->first;
  pln_ref call = level->nodes[0];
  pln_relay_builder *r = &build->r;
  pln_attr units = {.kind = PLN_ATTR_INT, .v.i = pln_branch_total(build)};
  pln_attrs attrs = 0;
  pln_ref args[2] = {pln_rewrite_image(r->rw, pln_operand(build->old, call, 0)),
                     pln_branch_concatenate(build, level, 1, 0)};
  if (r->status == PLN_OK)
    r->status = pln_symbol_intern(r->engine, pln_text("units"), &units.name);
  if (r->status == PLN_OK)
    r->status = pln_attrs_with(r->engine, build->old->nodes[call].attrs, &units,
                               &attrs);
  return pln_relay_call_core(r, PLN_OP_DENSE, attrs, 2, args);
}

/* Operand `arg` of a branch with a number per unit. */
static pln_ref per_unit(pln_branch_build *build, const pln_branch_level *level,
                        uint32_t arg, uint32_t branch) {
  const pln_graph *g = build->old;
  pln_relay_builder *r = &build->r;
  pln_ref call = level->nodes[branch], x = pln_operand(g, call, arg);
  pln_ref out = pln_rewrite_image(r->rw, x);
  int32_t rank = pln_type_rank(g->engine, g->nodes[x].type);
  pln_dim units = pln_branch_extent(g, call, level->axis);
  const pln_relay_attr expand[] = {pln_relay_int("axis", -1),
                                   pln_relay_int("num_newaxis", 1)};
  const pln_relay_attr repeat[] = {
      pln_relay_int("repeats", units),
      pln_relay_int("axis", rank > 0 ? rank - 1 : 0)};
  if (rank == 0)
    out = pln_relay_call_with(r, PLN_OP_UNSQUEEZE, 2, expand, 1, &out);
  if (rank == 0 || (units > 1 && pln_branch_extent(g, x, rank - 1) == 1))
    out = pln_relay_call_with(r, PLN_OP_REPEAT, 2, repeat, 1, &out);
  return out;
}

static pln_ref flat_operand(pln_branch_build *build,
                            const pln_branch_level *level, uint32_t arg) {
  const pln_graph *g = build->old;
  pln_type type = g->nodes[pln_operand(g, level->nodes[0], arg)].type;
  int32_t rank = pln_type_rank(g->engine, type);
  const pln_relay_attr axis = pln_relay_int("axis", rank > 0 ? rank - 1 : 0);
  for (uint32_t j = 0; j < build->group->n; j++)
    build->fields[j] = per_unit(build, level, arg, j);
  pln_ref tuple = pln_relay_tuple(&build->r, build->group->n, build->fields);
  return pln_relay_call_with(&build->r, PLN_OP_CONCAT, 1, &axis, 1, &tuple);
}

static void flat_parts(pln_branch_build *build, pln_ref combined,
                       pln_ref *parts) {
  const pln_graph *g = build->old;
  pln_type type = g->nodes[build->group->last->nodes[0]].type;
  pln_branch_slice(build, combined, (uint32_t)pln_type_rank(g->engine, type),
                   parts);
}

/* ---------------------------------------------------------- batch of products
 */

static pln_status batch_key(const pln_graph *g, pln_ref call, pln_attrs *attrs,
                            pln_type *type) {
  return weight_key(g, call, false, attrs, type);
}

static bool batch_fits(const pln_graph *g, const pln_branch_level *level,
                       uint32_t arg, uint32_t branch) {
  pln_ref a = pln_operand(g, level->nodes[0], arg);
  pln_ref b = pln_operand(g, level->nodes[branch], arg);
  return pln_type_rank(g->engine, g->nodes[b].type) <= 2 &&
         pln_branch_alike(g, a, b, -1);
}

/* stack of the operands `arg`; vectors and scalars become matrices first, so
 * that they are broadcast within their branch. */
static pln_ref stack(pln_branch_build *build, const pln_branch_level *level,
                     uint32_t arg) {
  const pln_graph *g = build->old;
  pln_relay_builder *r = &build->r;
  for (uint32_t j = 0; j < build->group->n; j++) {
    pln_ref x = pln_operand(g, level->nodes[j], arg);
    int32_t rank = pln_type_rank(g->engine, g->nodes[x].type);
    const pln_relay_attr expand[] = {pln_relay_int("axis", 0),
                                     pln_relay_int("num_newaxis", 2 - rank)};
    build->fields[j] = pln_rewrite_image(r->rw, x);
    if (rank < 2)
      build->fields[j] = pln_relay_call_with(r, PLN_OP_UNSQUEEZE, 2, expand, 1,
                                             &build->fields[j]);
  }
  pln_ref tuple = pln_relay_tuple(r, build->group->n, build->fields);
  const pln_relay_attr axis = pln_relay_int("axis", 0);
  return pln_relay_call_with(r, PLN_OP_STACK, 1, &axis, 1, &tuple);
}

static pln_ref combine_batch(pln_branch_build *build) {
  const pln_branch_level *level = build->group->first;
  const pln_graph *g = build->old;
  pln_slice dtype = pln_attrs_string(g->engine, g->nodes[level->nodes[0]].attrs,
                                     "out_dtype", "");
  pln_ref args[2] = {stack(build, level, 0), stack(build, level, 1)};
  const pln_relay_attr attrs[] = {
      pln_relay_int("transpose_b", 1),
      {"out_dtype", {.kind = PLN_ATTR_STRING, .v.s = dtype}}};
  return pln_relay_call_with(&build->r, PLN_OP_BATCH_MATMUL, dtype.size ? 2 : 1,
                             attrs, 2, args);
}

static void batch_parts(pln_branch_build *build, pln_ref combined,
                        pln_ref *parts) {
  static const int64_t first = 0;
  pln_relay_builder *r = &build->r;
  const pln_relay_attr attrs[] = {
      pln_relay_int("indices_or_sections", build->group->n),
      pln_relay_int("axis", 0)};
  const pln_relay_attr axis = pln_relay_ints("axis", 1, &first);
  pln_ref split = pln_relay_call_with(r, PLN_OP_SPLIT, 2, attrs, 1, &combined);
  for (uint32_t j = 0; j < build->group->n; j++) {
    pln_ref field = pln_relay_field(r, split, j);
    parts[j] = pln_relay_call_with(r, PLN_OP_SQUEEZE, 1, &axis, 1, &field);
  }
}

pln_status pln_pass_combine_parallel_dense(pln_pass_run *run) {
  static const pln_branch_kind flat = {.op = PLN_OP_DENSE,
                                       .key = flat_key,
                                       .axis = unit_axis,
                                       .fits = flat_fits,
                                       .combine = combine_flat,
                                       .operand = flat_operand,
                                       .take_parts = flat_parts};
  static const pln_branch_kind batch = {.op = PLN_OP_DENSE,
                                        .stacks = true,
                                        .key = batch_key,
                                        .axis = unit_axis,
                                        .fits = batch_fits,
                                        .combine = combine_batch,
                                        .operand = stack,
                                        .take_parts = batch_parts};
  return pln_combine_branches(run,
                              pln_run_int(run, "to_batch") ? &batch : &flat);
}
