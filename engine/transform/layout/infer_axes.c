/* infer_axes.c: layouts of operators along axes that are numbers in attributes.
 *
 * Called through layouts.def. An axis keeps its letter: its number becomes the
 * one that the letter has in the new layout. An operator that would cut an
 * inner part keeps the old layout.
 *
 *     sum(axis=[1, 2]), "NHWC" -> "NCHW"   =>   sum(axis=[2, 3])
 *
 * Semantics: TVM's FInferCorrectLayout of each operator; where that gives an
 * ill-typed call, the old layout. */

#include "transform/layout/infer_layout.h"

/* The first operand and all results. */
static void set_all(pln_layout_call *call, pln_tensor_layout layout) {
  call->in[0] = layout;
  pln_layout_set_results(call, layout);
}

/* The new number of an axis of operand 0; -1 if it has none, or if `whole` and
 * the axis is divided. */
static int64_t new_axis(const pln_layout_call *call, int64_t axis, bool whole) {
  int32_t at =
      pln_tensor_layout_map(call->table, call->old[0], axis, call->now[0]);
  if (at < 0 || !whole)
    return at;
  pln_layout_axis letter =
      pln_tensor_layout_axis(call->table, call->now[0], at);
  return pln_tensor_layout_factor(call->table, call->now[0], letter.letter)
             ? -1
             : at;
}

/* ------------------------------------------------------------------ one axis
 */

pln_status pln_layout_along_axis(pln_layout_call *call) {
  int64_t axis;
  PLN_TRY(pln_layout_int(call, "axis", -1, &axis));
  set_all(call, call->old[0]);
  if (!call->now)
    return PLN_OK;
  axis = new_axis(call, pln_layout_normal_axis(call, axis), true);
  if (axis < 0)
    return PLN_OK;
  set_all(call, call->now[0]);
  return pln_layout_set_int(call, "axis", axis);
}

/* Scale, shift and statistics are vectors of the axis. */
pln_status pln_layout_normalization(pln_layout_call *call) {
  PLN_TRY(pln_layout_along_axis(call));
  PLN_TRY(pln_layout_channels(call, 1));
  for (uint32_t i = 1; i < call->n_results; i++)
    call->out[i] = call->in[1];
  return PLN_OK;
}

pln_status pln_layout_prelu(pln_layout_call *call) {
  set_all(call, call->old[0]);
  return pln_layout_channels(call, 1);
}

/* ---------------------------------------------------------------- concatenate
 */

static bool all_alike(const pln_layout_call *call) {
  for (uint32_t i = 1; i < call->n; i++)
    if (call->now[i] != call->now[0])
      return false;
  return true;
}

/* The first known layout of the operands, if it has the axis undivided. */
static pln_tensor_layout common_layout(const pln_layout_call *call,
                                       int64_t axis) {
  pln_tensor_layout layout = PLN_LAYOUT_UNDEFINED;
  for (uint32_t i = 0; i < call->n && !layout; i++)
    layout = call->old[i];
  if (axis < 0 || axis >= pln_tensor_layout_rank(call->table, layout) ||
      pln_tensor_layout_axis(call->table, layout, (int32_t)axis).factor)
    return PLN_LAYOUT_UNDEFINED;
  return layout;
}

/* True if all operands have multiples of the inner part of that axis. */
static bool fills_parts(const pln_layout_call *call, int64_t axis) {
  pln_layout_axis name =
      pln_tensor_layout_axis(call->table, call->old[0], (int32_t)axis);
  int64_t part =
      pln_tensor_layout_factor(call->table, call->now[0], name.letter);
  for (uint32_t i = 0; i < call->n && part > 1; i++) {
    if (pln_layout_arg_rank(call, i) <= axis)
      return false;
    pln_dim dim = pln_type_dims(call->engine, call->types[i])[axis];
    if (!PLN_DIM_IS_CONST(dim) || dim % part != 0)
      return false;
  }
  return true;
}

pln_status pln_layout_concatenate(pln_layout_call *call) {
  pln_tensor_layout layout;
  int64_t axis, now = -1;
  PLN_TRY(pln_layout_int(call, "axis", 0, &axis));
  axis = pln_layout_normal_axis(call, axis);
  layout = common_layout(call, axis);
  if (call->now && layout == call->old[0] && all_alike(call))
    now = new_axis(call, axis, false);
  if (now >= 0 && fills_parts(call, axis)) {
    layout = call->now[0];
    PLN_TRY(pln_layout_set_int(call, "axis", now));
  }
  for (uint32_t i = 0; i < call->n; i++)
    call->in[i] = layout;
  pln_layout_set_results(call, layout);
  return PLN_OK;
}

/* ---------------------------------------------------------------------- split
 */

/* Divides where to split by the size of the inner part. *fits: no part of the
 * result begins or ends inside of one. */
static pln_status divide_split(pln_layout_call *call, const pln_attr *where,
                               int64_t part, pln_dim extent, bool *fits) {
  *fits = part <= 1;
  if (*fits || where->kind == PLN_ATTR_INT) {
    if (!*fits && where->v.i > 0 && PLN_DIM_IS_CONST(extent))
      *fits = extent % (part * where->v.i) == 0;
    return PLN_OK;
  }
  size_t size = (where->count + 1u) * sizeof(int64_t);
  int64_t *ints = pln_mem_new(call->engine, size);
  if (!ints)
    return pln_nomem(call->engine);
  *fits = PLN_DIM_IS_CONST(extent) && extent % part == 0;
  for (uint32_t i = 0; i < where->count; i++) {
    *fits = *fits && where->v.ints[i] % part == 0;
    ints[i] = where->v.ints[i] / part;
  }
  pln_status status = PLN_OK;
  if (*fits)
    status =
        pln_layout_set_ints(call, "indices_or_sections", where->count, ints);
  pln_mem_free(call->engine, ints, size);
  return status;
}

pln_status pln_layout_split(pln_layout_call *call) {
  pln_attr where;
  int64_t axis, now;
  bool fits;
  PLN_TRY(pln_relay_get(call->engine, call->op, call->attrs,
                        "indices_or_sections", &where));
  PLN_TRY(pln_layout_int(call, "axis", 0, &axis));
  axis = pln_layout_normal_axis(call, axis);
  if (call->n != 1 || axis < 0 ||
      (where.kind != PLN_ATTR_INT && where.kind != PLN_ATTR_INTS))
    return PLN_OK;
  set_all(call, call->old[0]);
  now = call->now ? new_axis(call, axis, false) : -1;
  if (now < 0)
    return PLN_OK;
  char letter =
      pln_tensor_layout_axis(call->table, call->now[0], (int32_t)now).letter;
  PLN_TRY(divide_split(
      call, &where, pln_tensor_layout_factor(call->table, call->now[0], letter),
      pln_type_dims(call->engine, call->types[0])[axis], &fits));
  if (!fits)
    return PLN_OK;
  set_all(call, call->now[0]);
  return pln_layout_set_int(call, "axis", now);
}

/* --------------------------------------------------------------- several axes
 */

pln_status pln_layout_l2_normalize(pln_layout_call *call) {
  int64_t axes[PLN_LAYOUT_AXES];
  const int64_t *ints;
  uint32_t n;
  PLN_TRY(pln_layout_ints(call, "axis", &ints, &n));
  set_all(call, call->old[0]);
  if (!call->now || !ints || n > PLN_LAYOUT_AXES)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++) {
    axes[i] = new_axis(call, pln_layout_normal_axis(call, ints[i]), true);
    if (axes[i] < 0)
      return PLN_OK;
  }
  set_all(call, call->now[0]);
  return pln_layout_set_ints(call, "axis", n, axes);
}

typedef struct reduction {
  bool keepdims, exclude;
  bool reduced[26]; /* by letter */
  bool any;
} reduction;

/* Which axes of the old layout are reduced. False if the attributes do not
 * say. */
static pln_status read_reduction(pln_layout_call *call, reduction *r,
                                 bool *known) {
  bool listed[PLN_LAYOUT_AXES] = {false};
  int64_t keepdims, exclude;
  const int64_t *ints;
  uint32_t n;
  PLN_TRY(pln_layout_int(call, "keepdims", 0, &keepdims));
  PLN_TRY(pln_layout_int(call, "exclude", 0, &exclude));
  PLN_TRY(pln_layout_ints(call, "axis", &ints, &n));
  *r = (reduction){.keepdims = keepdims, .exclude = exclude};
  int32_t rank = pln_layout_arg_rank(call, 0);
  *known =
      rank >= 0 && rank == pln_tensor_layout_rank(call->table, call->old[0]);
  for (uint32_t i = 0; i < n && *known; i++) {
    int64_t axis = pln_layout_normal_axis(call, ints[i]);
    *known = axis >= 0;
    if (*known)
      listed[axis] = true;
  }
  for (int32_t i = 0; i < rank && *known; i++) {
    bool reduced = n == 0 || listed[i] != r->exclude;
    char letter = pln_tensor_layout_axis(call->table, call->old[0], i).letter;
    r->any = r->any || reduced;
    r->reduced[letter - 'A'] |= reduced;
  }
  return PLN_OK;
}

/* The layout after the reduction, and the axes to list in the attribute. */
static pln_status reduce_layout(pln_layout_call *call, const reduction *r,
                                pln_tensor_layout layout,
                                pln_tensor_layout *out, int64_t *axes,
                                uint32_t *n) {
  pln_data_layout left = {0};
  int32_t rank = pln_tensor_layout_rank(call->table, layout);
  *n = 0;
  for (int32_t i = 0; i < rank; i++) {
    pln_layout_axis axis = pln_tensor_layout_axis(call->table, layout, i);
    bool reduced = r->reduced[axis.letter - 'A'];
    if (reduced != r->exclude)
      axes[(*n)++] = i;
    if (reduced && !r->keepdims)
      continue;
    left.letter[left.rank] = axis.letter;
    left.factor[left.rank++] = reduced && axis.factor ? 1 : axis.factor;
  }
  *out = PLN_LAYOUT_UNDEFINED;
  return left.rank ? pln_tensor_layout_of(call->table, &left, out) : PLN_OK;
}

pln_status pln_layout_reduce(pln_layout_call *call) {
  int64_t axes[PLN_LAYOUT_AXES];
  pln_tensor_layout out;
  reduction r;
  uint32_t n;
  bool known;
  if (call->n != (call->op == PLN_OP_VARIANCE ? 2 : 1) || !call->old[0])
    return PLN_OK;
  PLN_TRY(read_reduction(call, &r, &known));
  if (!known)
    return PLN_OK;
  bool changes = call->now && r.any;
  pln_tensor_layout layout = changes ? call->now[0] : call->old[0];
  PLN_TRY(reduce_layout(call, &r, layout, &out, axes, &n));
  for (uint32_t i = 0; i < call->n; i++)
    call->in[i] = layout;
  pln_layout_set_results(call, out);
  return changes ? pln_layout_set_ints(call, "axis", n, axes) : PLN_OK;
}
