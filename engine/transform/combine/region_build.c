/* region_build.c: builds regions of parallel computations as one. The mutator
 * of combine_parallel_ops.c.
 *
 * A tuple is built where its first member stands, so its operands are built
 * before. If nodes outside the region use its results, it is split again. Nodes
 * of the region without such uses stay and become dead. */

#include "transform/combine/region.h"

typedef struct tuple_builder {
  pln_combine *c;
  pln_region *r;
  pln_rewrite *rw;
  pln_builder *b;
} tuple_builder;

/* ------------------------------------------------------------------ pieces */

static pln_status int_vector(const tuple_builder *tb, uint32_t n,
                             const int64_t *ints, pln_ref *out) {
  int64_t dims[1] = {n};
  pln_tensor *tensor;
  PLN_TRY(pln_tensor_from_bytes(tb->c->engine, PLN_INT64, 1, dims, ints,
                                n * sizeof *ints, &tensor));
  pln_status status = pln_build_constant(tb->b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

static pln_status axis_attrs(const tuple_builder *tb, int64_t axis,
                             pln_attrs *out) {
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = axis};
  PLN_TRY(pln_symbol_intern(tb->c->engine, pln_text("axis"), &entry.name));
  return pln_attrs_make(tb->c->engine, 1, &entry, out);
}

static pln_status build_transpose(const tuple_builder *tb, pln_ref x,
                                  uint32_t n, const int64_t *axes,
                                  pln_ref *out) {
  pln_attrs attrs;
  pln_attr perm = {.kind = PLN_ATTR_INTS, .count = n, .v.ints = axes};
  PLN_TRY(pln_symbol_intern(tb->c->engine, pln_text("axes"), &perm.name));
  PLN_TRY(pln_attrs_make(tb->c->engine, 1, &perm, &attrs));
  return pln_build_call(tb->b, PLN_OP_TRANSPOSE, attrs, 0, 1, &x, out);
}

static pln_status build_split(const tuple_builder *tb, pln_ref x, int64_t axis,
                              uint32_t n, const int64_t *sizes, pln_ref *out) {
  pln_ref args[2] = {x};
  pln_attrs attrs;
  PLN_TRY(axis_attrs(tb, axis, &attrs));
  PLN_TRY(int_vector(tb, n, sizes, &args[1]));
  return pln_build_call(tb->b, PLN_OP_SPLIT, attrs, n, 2, args, out);
}

/* ------------------------------------------------------------------- weights
 */

static pln_status fold_concatenation(const tuple_builder *tb, pln_ref *node) {
  pln_tensor *tensor;
  pln_refusal why;
  if (!pln_eval_can_fold(tb->b->graph, *node, &why))
    return PLN_OK;
  pln_status status = pln_eval_call(tb->b->graph, *node, &tensor);
  if (status != PLN_OK)
    return status == PLN_ERR_UNSUPPORTED ? PLN_OK : status;
  status = pln_build_constant(tb->b, tensor, node);
  pln_tensor_release(tensor);
  return status;
}

/* Concatenates the members' constant operands `i` along `axis`. */
static pln_status join_weights(const tuple_builder *tb,
                               const pln_combine_tuple *t, uint32_t i,
                               int64_t axis, pln_ref *out) {
  const pln_graph *old = tb->c->graph;
  pln_ref parts[PLN_MAX_MEMBERS];
  pln_attrs attrs;
  for (uint32_t j = 0; j < tb->r->k; j++) {
    pln_ref arg = pln_operand(old, t->nodes[j], i);
    pln_builder_origin(tb->b, 0);
    PLN_TRY(pln_build_constant(tb->b, old->tensors[old->nodes[arg].data],
                               &parts[j]));
  }
  PLN_TRY(axis_attrs(tb, axis, &attrs));
  PLN_TRY(pln_build_call(tb->b, PLN_OP_CONCAT, attrs, 0, tb->r->k, parts, out));
  return fold_concatenation(tb, out);
}

/* ------------------------------------------------------------------- tuples
 */

static int64_t total_of(const pln_region *r, const pln_combine_tuple *t) {
  int64_t total = 0;
  for (uint32_t j = 0; j < r->k; j++)
    total += t->sizes[j];
  return total;
}

/* The target shape of the lead, with the combined extent on the tuple's
 * axis. */
static pln_status join_target(const tuple_builder *tb,
                              const pln_combine_tuple *t, pln_ref *out) {
  const pln_graph *old = tb->c->graph;
  pln_ref node = pln_operand(old, t->nodes[t->lead], 1);
  const pln_tensor *list = old->tensors[old->nodes[node].data];
  int64_t dims[PLN_MAX_RANK] = {0};
  for (uint32_t i = 0; i < list->count && i < PLN_MAX_RANK; i++)
    if (!pln_tensor_int(list, i, &dims[i]))
      return PLN_ERR_TYPE;
  if (dims[t->axis] > 0)
    dims[t->axis] = total_of(tb->r, t);
  return int_vector(tb, (uint32_t)list->count, dims, out);
}

/* The axis of operand `i` that lies where the tuple's axis is. */
static int64_t aligned_axis(const pln_graph *g, const pln_combine_tuple *t,
                            uint32_t i) {
  pln_ref node = t->nodes[0], arg = pln_operand(g, node, i);
  return (int64_t)t->axis - pln_type_rank(g->engine, g->nodes[node].type) +
         pln_type_rank(g->engine, g->nodes[arg].type);
}

/* The axis of a product's operand `i` that holds channels of the result. */
static int64_t channel_axis(const pln_graph *g, pln_ref product, uint32_t i) {
  const pln_node *n = &g->nodes[product];
  const pln_node *arg = &g->nodes[pln_operand(g, product, i)];
  if (n->data == PLN_OP_CONV)
    return 0;
  if (i > 1)
    return pln_type_rank(g->engine, arg->type) - 1;
  return n->data == PLN_OP_GEMM &&
                 pln_attrs_int(g->engine, n->attrs, "transB", 0)
             ? 0
             : 1;
}

/* Returns true if operand `i`, the same for all members, has an extent of its
 * own along the axis, so that it is repeated. */
static bool is_repeated(const tuple_builder *tb, const pln_combine_tuple *t,
                        uint32_t i) {
  const pln_graph *g = tb->c->graph;
  const pln_node *n = &g->nodes[t->nodes[0]];
  pln_ref arg = pln_operand(g, t->nodes[0], i);
  int64_t axis = aligned_axis(g, t, i);
  return n->kind == PLN_CALL && g->nodes[arg].kind == PLN_CONSTANT &&
         (pln_op_row(g->engine, n->data)->traits &
          (PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST)) &&
         axis >= 0 && pln_type_dims(g->engine, g->nodes[arg].type)[axis] != 1;
}

/* Zero points of a quantised product are the same for all members. */
static bool is_zero_point(const pln_graph *g, pln_ref product, uint32_t i) {
  return g->nodes[product].data == PLN_OP_MAT_MUL_INTEGER && i > 1;
}

/* Returns true if operand `i` of an elementwise operator is numbers that
 * differ. */
static bool joins_numbers(const tuple_builder *tb, const pln_combine_tuple *t,
                          uint32_t i) {
  const pln_graph *g = tb->c->graph;
  const pln_node *n = &g->nodes[t->nodes[0]];
  return n->kind == PLN_CALL &&
         (pln_op_row(g->engine, n->data)->traits &
          (PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST)) &&
         pln_region_operand(tb->c, tb->r, t, i) != PLN_OPERAND_SHARED &&
         pln_region_has_numbers(tb->c, tb->r, t, i);
}

static pln_status join_operand(const tuple_builder *tb, uint32_t at, uint32_t i,
                               pln_ref *out) {
  const pln_graph *old = tb->c->graph;
  const pln_combine_tuple *t = &tb->r->tuples[at];
  bool seed = at == 0;
  pln_ref lead = t->nodes[t->lead], arg = pln_operand(old, lead, i);
  if (i == 1 && old->nodes[lead].kind == PLN_CALL &&
      old->nodes[lead].data == PLN_OP_RESHAPE)
    return join_target(tb, t, out);
  if (joins_numbers(tb, t, i))
    return pln_region_join_numbers(tb->c, tb->r, tb->rw, tb->b, t, i, out);
  switch (pln_region_operand(tb->c, tb->r, t, i)) {
  case PLN_OPERAND_TUPLE:
    *out = tb->r->combined[pln_region_tuple(tb->c, tb->r, arg) - 1];
    return PLN_OK;
  case PLN_OPERAND_SHARED:
    if ((seed && i > 0 && !is_zero_point(old, lead, i)) ||
        (!seed && is_repeated(tb, t, i)))
      break;
    *out = pln_rewrite_image(tb->rw, arg);
    return PLN_OK;
  case PLN_OPERAND_WEIGHTS: break;
  case PLN_OPERAND_MISMATCH: return PLN_ERR_TYPE;
  }
  if (old->nodes[arg].kind == PLN_ABSENT) {
    *out = pln_rewrite_image(tb->rw, arg);
    return PLN_OK;
  }
  return join_weights(
      tb, t, i, seed ? channel_axis(old, lead, i) : aligned_axis(old, t, i),
      out);
}

/* Builds the tuple's operator on the concatenated operands. */
static pln_status join_nodes(const tuple_builder *tb, uint32_t at,
                             pln_ref *out) {
  enum { FEW = 64 };
  const pln_combine_tuple *t = &tb->r->tuples[at];
  const pln_graph *old = tb->c->graph;
  pln_node n = old->nodes[t->nodes[t->lead]];
  pln_ref args[FEW];
  if (n.count > FEW)
    return PLN_ERR_TYPE;
  for (uint32_t i = 0; i < n.count; i++)
    PLN_TRY(join_operand(tb, at, i, &args[i]));
  pln_builder_origin(tb->b, old->origin[t->nodes[t->lead]]);
  if (n.kind == PLN_TUPLE_GET_ITEM)
    return pln_build_tuple_get_item(tb->b, args[0], n.data, out);
  return pln_build_call(tb->b, n.data, n.attrs, n.results, n.count, args, out);
}

/* -------------------------------------------------------------------- seeds
 */

/* Splits the operand of the seed's Split again, with one part for all
 * members. */
static pln_status split_again(tuple_builder *tb) {
  const pln_graph *old = tb->c->graph;
  pln_region *r = tb->r;
  const pln_combine_tuple *t = &r->tuples[0];
  const pln_node *n = &old->nodes[r->split];
  int64_t sizes[PLN_MAX_MEMBERS];
  uint32_t k = 0;
  for (uint32_t i = 0; i < n->results; i++) {
    pln_type part = pln_type_part_at(tb->c->engine, n->type, i);
    if (i > r->first && i < r->first + r->k)
      continue;
    sizes[k++] = i == r->first ? total_of(r, t)
                               : pln_type_dims(tb->c->engine, part)[t->axis];
  }
  pln_builder_origin(tb->b, old->origin[r->split]);
  return build_split(tb,
                     pln_rewrite_image(tb->rw, pln_operand(old, r->split, 0)),
                     t->axis, k, sizes, &r->parts);
}

static pln_status build_seed(tuple_builder *tb, pln_ref *out) {
  pln_region *r = tb->r;
  if (r->split == PLN_NONE)
    return join_nodes(tb, 0, out);
  if (r->is_whole) {
    *out = pln_rewrite_image(tb->rw, pln_operand(tb->c->graph, r->split, 0));
    return PLN_OK;
  }
  PLN_TRY(split_again(tb));
  return pln_build_tuple_get_item(tb->b, r->parts, r->first, out);
}

/* ------------------------------------------------------------------ results
 */

/* The results of the members whose permutation is another one are transposed
 * once more. */
static pln_status permute_member(const tuple_builder *tb,
                                 const pln_combine_tuple *t, uint32_t j,
                                 pln_ref *node) {
  const pln_graph *old = tb->c->graph;
  int64_t lead[PLN_MAX_RANK], own[PLN_MAX_RANK], axes[PLN_MAX_RANK];
  uint32_t rank =
      (uint32_t)pln_type_rank(tb->c->engine, old->nodes[t->nodes[0]].type);
  if (!t->n_differ || !pln_transpose_axes(old, t->nodes[t->lead], lead) ||
      !pln_transpose_axes(old, t->nodes[j], own) ||
      !memcmp(lead, own, rank * sizeof *own))
    return PLN_OK;
  for (uint32_t i = 0; i < rank; i++)
    for (uint32_t k = 0; k < rank; k++)
      if (lead[k] == own[i])
        axes[i] = k;
  pln_builder_origin(tb->b, old->origin[t->nodes[j]]);
  return build_transpose(tb, *node, rank, axes, node);
}

/* Splits the combined result; each member's node is replaced by its part. */
static pln_status split_results(tuple_builder *tb, uint32_t at,
                                pln_ref *parts) {
  const pln_combine_tuple *t = &tb->r->tuples[at];
  pln_ref split;
  PLN_TRY(build_split(tb, tb->r->combined[at], t->axis, tb->r->k, t->sizes,
                      &split));
  for (uint32_t j = 0; j < tb->r->k; j++) {
    PLN_TRY(pln_build_tuple_get_item(tb->b, split, j, &parts[j]));
    PLN_TRY(permute_member(tb, t, j, &parts[j]));
    PLN_TRY(
        pln_keep_type(tb->rw, parts[j], tb->c->graph->nodes[t->nodes[j]].type));
  }
  return PLN_OK;
}

/* Builds the tuple that `old` leads, and its parts, which replace the members'
 * nodes. */
static pln_status build_tuple_of(tuple_builder *tb, uint32_t at,
                                 pln_ref *parts) {
  pln_region *r = tb->r;
  const pln_combine_tuple *t = &r->tuples[at];
  if (at == 0)
    PLN_TRY(build_seed(tb, &r->combined[0]));
  else
    PLN_TRY(join_nodes(tb, at, &r->combined[at]));
  bool stays = at == 0 && r->split != PLN_NONE;
  return t->used_outside && !stays ? split_results(tb, at, parts) : PLN_OK;
}

/* An ill-typed call, as files may contain, ends the region: what is built of it
 * stays valid. */
static pln_status try_build(tuple_builder *tb, uint32_t at, pln_ref *parts) {
  size_t mark = pln_diag_count(tb->c->engine);
  pln_status status = build_tuple_of(tb, at, parts);
  if (status != PLN_ERR_TYPE)
    return status;
  pln_diag_drop(tb->c->engine, mark);
  for (uint32_t j = 0; j < tb->r->k; j++)
    parts[j] = PLN_NONE;
  tb->r->refused = true;
  return PLN_OK;
}

static pln_status lead_tuple(tuple_builder *tb, uint32_t at) {
  pln_region *r = tb->r;
  pln_ref parts[PLN_MAX_MEMBERS];
  bool allowed = !r->refused;
  for (uint32_t j = 0; j < r->k; j++)
    parts[j] = PLN_NONE;
  if (allowed && at == 0)
    PLN_TRY(pln_rewrite_apply(tb->rw, "combine", &allowed));
  if (!allowed) {
    r->refused = true;
    return PLN_OK;
  }
  tb->c->combined += at == 0;
  if (!(tb->b = pln_rewrite_builder(tb->rw)))
    return PLN_ERR_NOMEM;
  PLN_TRY(try_build(tb, at, parts));
  memcpy(r->tuples[at].parts, parts, sizeof parts);
  return PLN_OK;
}

/* A field of the seed's Split that belongs to no member is one of the new
 * Split. */
static pln_status replace_field(pln_combine *c, pln_rewrite *rw, pln_ref old,
                                pln_ref *node) {
  const pln_graph *g = c->graph;
  pln_ref split = pln_operand(g, old, 0);
  uint32_t i = g->nodes[old].data;
  const pln_region *r = c->region_of[split];
  if (!r || r->is_whole || r->parts == PLN_NONE || r->tuples[0].used_outside)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_build_tuple_get_item(b, r->parts, i < r->first ? i : i + 1 - r->k,
                                   node));
  return pln_keep_type(rw, *node, g->nodes[old].type);
}

pln_status pln_region_visit(void *ud, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  pln_combine *c = ud;
  pln_region *r = c->region_of[old];
  bool is_field = c->graph->nodes[old].kind == PLN_TUPLE_GET_ITEM;
  tuple_builder tb = {.c = c, .r = r, .rw = rw};
  if (r && r->split == old)
    return lead_tuple(&tb, 0); /* before the first field */
  uint32_t tuple = r ? pln_region_tuple(c, r, old) : 0;
  if (!tuple)
    return is_field ? replace_field(c, rw, old, node) : PLN_OK;
  pln_combine_tuple *t = &r->tuples[tuple - 1];
  bool is_seed = tuple == 1 && r->split != PLN_NONE;
  if (old == t->nodes[t->lead] && !is_seed)
    PLN_TRY(lead_tuple(&tb, tuple - 1));
  for (uint32_t j = 0; j < r->k && !r->refused; j++)
    if (t->nodes[j] == old && t->parts[j] != PLN_NONE)
      *node = t->parts[j];
  return PLN_OK;
}
