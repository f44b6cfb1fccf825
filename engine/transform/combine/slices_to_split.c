/* slices_to_split.c: SlicesToSplit: replaces slices and takes of one tensor by
 * one Split.
 *
 * Run by the executor, once per function. Requires a verified graph. Slices of
 * one axis must be disjoint. Takes must be of all positions of an axis; that
 * axis is merged with the next one, so that the parts have the same shape as
 * before. If a transpose comes before the takes, the axes are merged before it.
 * Applied if the number of calls decreases.
 *
 *     take(reshape(%x, [N, 2, 8]), 0, axis=1), take(.., 1, axis=1)
 *       =>   split(reshape(%x, [N, 16]), [8, 8], axis=1)
 *     take(transpose(reshape(%x, [N, S, 2, 8]), [2, 0, 1, 3]), 0, axis=0), ..
 *       =>   split(reshape(%x, [N, S, 16]), [8, 8], axis=2)
 *
 * Source: ONNX Runtime GatherSliceToSplitFusion. */

#include "ir/analysis/users.h"
#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/transform.h"

enum { MAX_PARTS = 64, MAX_AXIS = 1 << 24 };

/* What one call takes of the axis. */
typedef struct split_part {
  pln_ref node;
  int64_t begin, end;
} split_part;

/* Calls that become parts of one Split. */
typedef struct split_plan {
  pln_ref x;
  bool takes;
  bool moved;       /* x is a transpose that only the takes use */
  bool has_reshape; /* `merged` is a reshape that nothing else uses */
  int64_t axis, extent;
  pln_ref merged; /* takes: the tensor whose axes are merged: x, or the operand
                   * of the transpose */
  int64_t at;     /* takes: the first one of these axes */
  uint32_t n;
  split_part parts[MAX_PARTS]; /* by begin */
  pln_ref split;               /* when it is built */
  struct split_plan *next;
} split_plan;

typedef struct slices_rewrite {
  pln_engine *engine;
  const pln_graph *graph;
  pln_users u;
  split_plan **plan_of; /* by node */
  split_plan *plans;
  int64_t replaced;
} slices_rewrite;

static pln_dim extent_of(const slices_rewrite *s, pln_ref x, int64_t axis) {
  pln_type type = s->graph->nodes[x].type;
  int64_t rank = pln_type_rank(s->engine, type);
  return axis < 0 || axis >= rank ? PLN_DIM_UNKNOWN
                                  : pln_type_dims(s->engine, type)[axis];
}

/* ------------------------------------------------------------------ reading
 */

static bool read_one(const pln_list *list, int64_t *out) {
  if (!pln_list_known(list) || list->count != 1)
    return false;
  *out = pln_list_at(list, 0);
  return true;
}

static int64_t within(int64_t i, int64_t extent) {
  i += i < 0 ? extent : 0;
  return i < 0 ? 0 : i > extent ? extent : i;
}

/* A slice of one axis by steps of 1, or of one position. */
static bool read_slice(const slices_rewrite *s, const pln_infer *call,
                       split_part *part, int64_t *axis) {
  pln_list starts = pln_arg_list(call, 1, "starts");
  pln_list ends = pln_arg_list(call, 2, "ends");
  pln_list axes = pln_arg_list(call, 3, "axes");
  pln_list steps = pln_arg_list(call, 4, NULL);
  int64_t step = 1;
  *axis = 0;
  if (!starts.given || !ends.given || !read_one(&starts, &part->begin) ||
      !read_one(&ends, &part->end) || (axes.given && !read_one(&axes, axis)) ||
      (steps.given && !read_one(&steps, &step)) || step < 1)
    return false;
  *axis += *axis < 0 ? pln_arg_rank(call, 0) : 0;
  pln_dim extent = extent_of(s, call->args[0], *axis);
  if (!PLN_DIM_IS_CONST(extent) || extent > MAX_AXIS)
    return false;
  part->begin = within(part->begin, extent);
  part->end = within(part->end, extent);
  if (step >= part->end - part->begin && part->begin < part->end)
    part->end = part->begin + 1;
  else if (step > 1)
    return false;
  return part->begin < part->end;
}

/* A take of one position. */
static bool read_take(const slices_rewrite *s, const pln_infer *call,
                      split_part *part, int64_t *axis) {
  const pln_tensor *t = pln_arg_tensor(call, 1);
  *axis = pln_call_int(call, "axis", 0);
  *axis += *axis < 0 ? pln_arg_rank(call, 0) : 0;
  pln_dim extent = extent_of(s, call->args[0], *axis);
  if (!t || t->rank != 0 || !pln_tensor_int(t, 0, &part->begin) ||
      pln_call_int(call, "batch_dims", 0) || !PLN_DIM_IS_CONST(extent) ||
      extent > MAX_PARTS)
    return false;
  part->begin += part->begin < 0 ? extent : 0;
  part->end = part->begin + 1;
  return part->begin >= 0 && part->begin < extent;
}

/* Reads a user of x that a Split can replace. */
static bool read_part(const slices_rewrite *s, pln_ref x, pln_ref node,
                      bool *takes, split_part *part, int64_t *axis) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[node];
  *part = (split_part){.node = node};
  *takes = n->data == PLN_OP_GATHER;
  if (n->kind != PLN_CALL || (!*takes && n->data != PLN_OP_SLICE) ||
      n->results || n->flags & PLN_NODE_KEEP || pln_operand(g, node, 0) != x ||
      s->plan_of[node] || s->u.node_scope[node] != s->u.node_scope[x] ||
      !pln_op_is_onnx_form(g, node) || !pln_call_is_valid(g, node))
    return false;
  pln_infer call = pln_infer_of(g, node);
  return (*takes ? read_take : read_slice)(s, &call, part, axis);
}

/* ----------------------------------------------------------------- planning
 */

/* Inserts the part by its begin; false if it overlaps another one. */
static bool insert_part(split_plan *p, const split_part *part) {
  uint32_t i = p->n;
  if (p->n == MAX_PARTS)
    return false;
  while (i > 0 && p->parts[i - 1].begin > part->begin) {
    p->parts[i] = p->parts[i - 1];
    i--;
  }
  p->parts[i] = *part;
  p->n++;
  return (i == 0 || p->parts[i - 1].end <= part->begin) &&
         (i + 1 == p->n || part->end <= p->parts[i + 1].begin);
}

/* Collects the users of x from number `at` on that take of the same axis. */
static bool collect_parts(const slices_rewrite *s, split_plan *p, uint32_t at) {
  split_part part;
  bool takes;
  int64_t axis;
  if (!read_part(s, p->x, s->u.users[at], &p->takes, &part, &p->axis))
    return false;
  p->extent = extent_of(s, p->x, p->axis);
  for (uint32_t i = at; i < s->u.first[p->x + 1]; i++)
    if (read_part(s, p->x, s->u.users[i], &takes, &part, &axis) &&
        takes == p->takes && axis == p->axis && !insert_part(p, &part))
      return false;
  return true;
}

static bool is_constant_list(const pln_graph *g, pln_ref node) {
  return g->nodes[node].kind == PLN_CONSTANT &&
         g->tensors[g->nodes[node].data]->count <= PLN_MAX_RANK;
}

static bool is_replaceable(const slices_rewrite *s, pln_ref node, pln_op op,
                           uint32_t n_users) {
  const pln_node *n = &s->graph->nodes[node];
  return n->kind == PLN_CALL && n->data == op && !n->results &&
         !(n->flags & PLN_NODE_KEEP) &&
         pln_users_count(&s->u, node) == n_users && !s->u.is_result[node] &&
         pln_op_is_onnx_form(s->graph, node) &&
         pln_call_is_valid(s->graph, node);
}

/* The permutation of a transpose, or NULL. */
static const int64_t *permutation(const slices_rewrite *s, pln_ref node) {
  const pln_attr *axes =
      pln_attrs_find(s->engine, s->graph->nodes[node].attrs, "axes");
  int32_t rank = pln_type_rank(s->engine, s->graph->nodes[node].type);
  bool seen[PLN_MAX_RANK] = {false};
  if (!axes || axes->kind != PLN_ATTR_INTS || rank < 0 || rank > PLN_MAX_RANK ||
      axes->count != (uint32_t)rank)
    return NULL;
  for (int32_t i = 0; i < rank; i++) {
    int64_t axis = axes->v.ints[i];
    if (axis < 0 || axis >= rank || seen[axis])
      return NULL;
    seen[axis] = true;
  }
  return axes->v.ints;
}

/* Finds the axes to merge, before the transpose if that is `moved`. */
static bool find_merged(const slices_rewrite *s, split_plan *p, bool moved) {
  const int64_t *perm = NULL;
  pln_dim next;
  p->moved = moved;
  if (moved && (!is_replaceable(s, p->x, PLN_OP_TRANSPOSE, p->n) ||
                !(perm = permutation(s, p->x))))
    return false;
  p->merged = moved ? pln_operand(s->graph, p->x, 0) : p->x;
  p->at = moved ? perm[p->axis] : p->axis;
  next = extent_of(s, p->merged, p->at + 1);
  return PLN_DIM_IS_CONST(next) && next >= 1 && next <= MAX_AXIS;
}

/* Returns true if the list has no 0 from element `at` on. */
static bool has_no_zero(const pln_tensor *list, size_t at) {
  int64_t dim;
  for (size_t i = at; i < list->count; i++)
    if (!pln_tensor_int(list, i, &dim) || dim == 0)
      return false;
  return true;
}

/* The reshape that makes the tensor can merge the two axes instead. With
 * allowzero a 0 before them would be an extent, which the new one copies. */
static bool can_merge_in_reshape(const slices_rewrite *s, const split_plan *p) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[p->merged];
  if (!is_replaceable(s, p->merged, PLN_OP_RESHAPE, p->moved ? 1 : p->n) ||
      n->count != 2 || !is_constant_list(g, pln_operand(g, p->merged, 1)))
    return false;
  bool zeros = pln_attrs_int(s->engine, n->attrs, "allowzero", 0);
  return has_no_zero(g->tensors[g->nodes[pln_operand(g, p->merged, 1)].data],
                     zeros ? 0 : (size_t)p->at);
}

/* A new reshape can be written: at most one extent behind the merged axes is
 * not constant. */
static bool can_reshape(const slices_rewrite *s, const split_plan *p) {
  int32_t rank = pln_type_rank(s->engine, s->graph->nodes[p->merged].type);
  uint32_t open = 0;
  for (int32_t i = (int32_t)p->at + 2; i < rank; i++) {
    pln_dim dim = extent_of(s, p->merged, i);
    open += !PLN_DIM_IS_CONST(dim);
    if (dim == 0)
      return false;
  }
  return open <= 1 && rank <= PLN_MAX_RANK;
}

/* Vectors of integers are mostly shapes: the parts stay as they are, because
 * their values are known. */
static bool is_shape(const slices_rewrite *s, pln_ref x) {
  pln_type type = s->graph->nodes[x].type;
  return pln_type_rank(s->engine, type) < 2 &&
         !pln_dtype_is_float(pln_type_dtype(s->engine, type));
}

/* Returns true if merging those axes saves calls. */
static bool pays_merged(const slices_rewrite *s, split_plan *p, bool moved) {
  if (!find_merged(s, p, moved))
    return false;
  p->has_reshape = can_merge_in_reshape(s, p);
  return p->has_reshape ? p->n >= 2 : p->n >= 3 && can_reshape(s, p);
}

static bool pays(const slices_rewrite *s, split_plan *p) {
  if (!p->takes)
    return p->n >= 2;
  return p->n == (uint64_t)p->extent &&
         (pays_merged(s, p, true) || pays_merged(s, p, false));
}

static pln_status plan_splits_of(slices_rewrite *s, pln_ref x) {
  uint32_t begin = s->u.first[x], end = s->u.first[x + 1];
  if (end - begin < 2 || end - begin > MAX_PARTS || is_shape(s, x))
    return PLN_OK;
  for (uint32_t i = begin; i < end; i++) {
    split_plan p = {.x = x, .split = PLN_NONE};
    if (!collect_parts(s, &p, i) || !pays(s, &p))
      continue;
    split_plan *kept = pln_mem_new(s->engine, sizeof *kept);
    if (!kept)
      return pln_nomem(s->engine);
    *kept = p;
    kept->next = s->plans;
    s->plans = kept;
    for (uint32_t k = 0; k < p.n; k++)
      s->plan_of[p.parts[k].node] = kept;
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- building
 */

/* The target shape with the axes `at` and `at` + 1 merged: that of the reshape
 * before, or the extents of the tensor. */
static uint32_t merged_shape(const slices_rewrite *s, const split_plan *p,
                             int64_t *out) {
  const pln_graph *g = s->graph;
  uint32_t n = 0;
  int64_t rank = pln_type_rank(s->engine, g->nodes[p->merged].type);
  const pln_tensor *list =
      p->has_reshape ? g->tensors[g->nodes[pln_operand(g, p->merged, 1)].data]
                     : NULL;
  for (int64_t i = 0; i < rank; i++) {
    pln_dim dim = extent_of(s, p->merged, i);
    if (i == p->at)
      dim *= extent_of(s, p->merged, ++i);
    else if (list && !pln_tensor_int(list, (size_t)i, &dim))
      dim = 0;
    else if (!list && !PLN_DIM_IS_CONST(dim))
      dim = i < p->at ? 0 : -1;
    out[n++] = dim;
  }
  return n;
}

static pln_status build_with_axes(const slices_rewrite *s, pln_builder *b,
                                  uint32_t n, const int64_t *axes, pln_ref x,
                                  pln_ref *out) {
  pln_attr perm = {.kind = PLN_ATTR_INTS, .count = n, .v.ints = axes};
  pln_attrs attrs;
  PLN_TRY(pln_symbol_intern(s->engine, pln_text("axes"), &perm.name));
  PLN_TRY(pln_attrs_make(s->engine, 1, &perm, &attrs));
  return pln_build_call(b, PLN_OP_TRANSPOSE, attrs, 0, 1, &x, out);
}

/* The transpose of the merged tensor: without the taken axis. The axis to split
 * is where the merged one is then. Axes in order need no transpose. */
static pln_status build_moved(const slices_rewrite *s, pln_builder *b,
                              split_plan *p, pln_ref x, pln_ref *out) {
  const int64_t *perm = permutation(s, p->x);
  int64_t axes[PLN_MAX_RANK],
      rank = pln_type_rank(s->engine, s->graph->nodes[p->x].type);
  int64_t taken = p->axis;
  uint32_t n = 0;
  bool in_order = true;
  for (int64_t i = 0; i < rank; i++) {
    if (i == taken)
      continue;
    if (perm[i] == p->at + 1)
      p->axis = n;
    axes[n] = perm[i] - (perm[i] > p->at);
    in_order = in_order && axes[n] == n;
    n++;
  }
  *out = x;
  return in_order ? PLN_OK : build_with_axes(s, b, n, axes, x, out);
}

/* Builds what is split: x, or for takes x with the axis merged. */
static pln_status build_operand(const slices_rewrite *s, pln_rewrite *rw,
                                pln_builder *b, split_plan *p, pln_ref *out) {
  int64_t shape[PLN_MAX_RANK];
  pln_ref args[2];
  if (!p->takes) {
    *out = pln_rewrite_image(rw, p->x);
    return PLN_OK;
  }
  args[0] = pln_rewrite_image(
      rw, p->has_reshape ? pln_operand(s->graph, p->merged, 0) : p->merged);
  uint32_t n = merged_shape(s, p, shape);
  PLN_TRY(pln_build_int64s(b, 1, n, shape, &args[1]));
  PLN_TRY(pln_build_call(b, PLN_OP_RESHAPE, 0, 0, 2, args, out));
  return p->moved ? build_moved(s, b, p, *out, out) : PLN_OK;
}

/* Sizes of the parts, with those that nothing takes between them. */
static uint32_t part_sizes(const slices_rewrite *s, const split_plan *p,
                           int64_t *sizes) {
  uint32_t n = 0;
  int64_t at = 0, each = p->takes ? extent_of(s, p->merged, p->at + 1) : 1;
  for (uint32_t i = 0; i < p->n; i++) {
    if (p->parts[i].begin > at)
      sizes[n++] = p->parts[i].begin - at;
    sizes[n++] = (p->parts[i].end - p->parts[i].begin) * each;
    at = p->parts[i].end;
  }
  if (at < p->extent)
    sizes[n++] = p->extent - at;
  return n;
}

/* The number of the part of `node` among those sizes. */
static uint32_t part_number(const split_plan *p, pln_ref node) {
  uint32_t n = 0;
  int64_t at = 0;
  for (uint32_t i = 0; i < p->n; i++, n++) {
    n += p->parts[i].begin > at;
    if (p->parts[i].node == node)
      break;
    at = p->parts[i].end;
  }
  return n;
}

static pln_status build_split_of(slices_rewrite *s, pln_rewrite *rw,
                                 pln_builder *b, split_plan *p) {
  int64_t sizes[2 * MAX_PARTS + 1];
  pln_ref args[2];
  pln_attrs attrs;
  pln_attr axis = {.kind = PLN_ATTR_INT};
  PLN_TRY(build_operand(s, rw, b, p, &args[0]));
  axis.v.i = p->axis;
  PLN_TRY(pln_symbol_intern(s->engine, pln_text("axis"), &axis.name));
  PLN_TRY(pln_attrs_make(s->engine, 1, &axis, &attrs));
  uint32_t n = part_sizes(s, p, sizes);
  PLN_TRY(pln_build_int64s(b, 1, n, sizes, &args[1]));
  s->replaced++;
  return pln_build_call(b, PLN_OP_SPLIT, attrs, n, 2, args, &p->split);
}

static pln_status replace_part(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  slices_rewrite *s = ud;
  split_plan *p = s->plan_of[old];
  bool allowed = true;
  if (!p)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  if (p->split == PLN_NONE) {
    PLN_TRY(pln_rewrite_apply(rw, "split", &allowed));
    if (allowed)
      PLN_TRY(build_split_of(s, rw, b, p));
    else
      for (uint32_t i = 0; i < p->n; i++)
        s->plan_of[p->parts[i].node] = NULL;
  }
  if (!allowed)
    return PLN_OK;
  PLN_TRY(pln_build_tuple_get_item(b, p->split, part_number(p, old), node));
  return pln_keep_type(rw, *node, s->graph->nodes[old].type);
}

/* -------------------------------------------------------------------- pass */

static void end_slices(slices_rewrite *s) {
  pln_users_end(&s->u);
  pln_mem_free(s->engine, s->plan_of,
               (s->graph->n_nodes + (size_t)1) * sizeof *s->plan_of);
  while (s->plans) {
    split_plan *next = s->plans->next;
    pln_mem_free(s->engine, s->plans, sizeof *next);
    s->plans = next;
  }
}

static pln_status split_slices(slices_rewrite *s, pln_graph **out) {
  pln_mutator m = {.ud = s, .visit = replace_part, .keeps_types = true};
  size_t n = s->graph->n_nodes + (size_t)1;
  PLN_TRY(pln_users_begin(&s->u, s->graph));
  if (!(s->plan_of = pln_mem_zeroed(s->engine, n * sizeof *s->plan_of)))
    return pln_nomem(s->engine);
  for (pln_ref i = 0; i < s->graph->n_nodes; i++)
    PLN_TRY(plan_splits_of(s, i));
  if (s->plans)
    return pln_graph_rewrite(s->graph, &m, out);
  *out = pln_graph_retain(s->graph);
  return PLN_OK;
}

static bool has_slices(const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_CALL &&
        (g->nodes[i].data == PLN_OP_SLICE || g->nodes[i].data == PLN_OP_GATHER))
      return true;
  return false;
}

pln_status pln_pass_slices_to_split(pln_pass_run *run) {
  slices_rewrite s = {.engine = pln_run_engine(run),
                      .graph = pln_run_function(run)};
  pln_graph *out;
  if (!has_slices(s.graph))
    return PLN_OK;
  pln_status status = split_slices(&s, &out);
  end_slices(&s);
  PLN_TRY(status);
  if (s.replaced)
    status = pln_run_count(run, "split", s.replaced);
  if (status == PLN_OK)
    pln_run_set_function(run, out);
  else
    pln_graph_release(out);
  return status;
}
