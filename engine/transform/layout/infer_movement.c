/* infer_movement.c: layouts of operators that move, cut or add elements.
 *
 * Called through layouts.def. Lists of numbers by axis are put into the order
 * of the new layout; an operator that would cut an inner part refuses.
 *
 *     strided_slice(begin=[0, 1, 0, 0]), "NCHW" -> "NHWC"
 *       =>   strided_slice(begin=[0, 0, 0, 1])
 *
 * Semantics: TVM's FInferCorrectLayout of each operator. */

#include "transform/layout/infer_layout.h"

static void set_both(pln_layout_call *call, pln_tensor_layout in,
                     pln_tensor_layout out) {
  call->in[0] = in;
  pln_layout_set_results(call, out);
}

/* ------------------------------------------------------------------ transpose
 */

/* The axes from 0, for a tensor of that rank; by default in reverse. False if
 * the attribute does not list each once. */
static pln_status read_axes(pln_layout_call *call, int32_t rank, int64_t *axes,
                            bool *known) {
  const int64_t *ints;
  uint32_t n;
  PLN_TRY(pln_layout_ints(call, "axes", &ints, &n));
  *known =
      rank > 0 && rank <= PLN_LAYOUT_AXES && (n == 0 || n == (uint32_t)rank);
  for (int32_t i = 0; i < rank && *known; i++) {
    axes[i] = n ? pln_layout_normal_axis(call, ints[i]) : rank - 1 - i;
    *known = axes[i] >= 0;
  }
  return PLN_OK;
}

static bool map_axes(const pln_layout_call *call, int32_t rank,
                     const int64_t *axes, int64_t *out) {
  if (rank != pln_tensor_layout_rank(call->table, call->now[0]))
    return false;
  for (int32_t i = 0; i < rank; i++) {
    out[i] =
        pln_tensor_layout_map(call->table, call->old[0], axes[i], call->now[0]);
    if (out[i] < 0)
      return false;
  }
  return true;
}

static pln_status permute(pln_layout_call *call, pln_tensor_layout in,
                          int32_t rank, const int64_t *axes,
                          pln_tensor_layout *out) {
  pln_data_layout permuted = {.rank = rank};
  for (int32_t i = 0; i < rank; i++) {
    pln_layout_axis axis =
        pln_tensor_layout_axis(call->table, in, (int32_t)axes[i]);
    permuted.letter[i] = axis.letter;
    permuted.factor[i] = axis.factor;
  }
  return pln_tensor_layout_of(call->table, &permuted, out);
}

pln_status pln_layout_transpose(pln_layout_call *call) {
  int64_t axes[PLN_LAYOUT_AXES], mapped[PLN_LAYOUT_AXES];
  int32_t rank = pln_tensor_layout_rank(call->table, call->old[0]);
  pln_tensor_layout in = call->old[0], out;
  bool known = call->n == 1 && in && rank == pln_layout_arg_rank(call, 0);
  if (known)
    PLN_TRY(read_axes(call, rank, axes, &known));
  if (!known)
    return PLN_OK;
  if (call->now && map_axes(call, rank, axes, mapped)) {
    in = call->now[0];
    memcpy(axes, mapped, sizeof axes);
  }
  PLN_TRY(permute(call, in, rank, axes, &out));
  set_both(call, in, out);
  return pln_layout_set_ints(call, "axes", (uint32_t)rank, axes);
}

/* -------------------------------------------------------------------- squeeze
 */

/* The axes to squeeze, from 0: those of the attribute, else those of extent
 * 1. */
static pln_status read_squeezed(pln_layout_call *call, int64_t *axes,
                                uint32_t *n, bool *known) {
  const pln_dim *dims = pln_type_dims(call->engine, call->types[0]);
  int32_t rank = pln_layout_arg_rank(call, 0);
  const int64_t *ints;
  uint32_t given;
  PLN_TRY(pln_layout_ints(call, "axis", &ints, &given));
  *n = 0;
  *known = given <= PLN_LAYOUT_AXES;
  for (uint32_t i = 0; i < given && *known; i++) {
    axes[*n] = pln_layout_normal_axis(call, ints[i]);
    *known = axes[(*n)++] >= 0;
  }
  for (int32_t i = 0; i < rank && !ints; i++)
    if (dims[i] == 1)
      axes[(*n)++] = i;
  return PLN_OK;
}

static bool is_listed(const int64_t *axes, uint32_t n, int64_t axis) {
  for (uint32_t i = 0; i < n; i++)
    if (axes[i] == axis)
      return true;
  return false;
}

static pln_status keep_axes(pln_layout_call *call, const int64_t *axes,
                            uint32_t n, pln_tensor_layout *out) {
  pln_data_layout kept = {0};
  int32_t rank = pln_tensor_layout_rank(call->table, call->in[0]);
  for (int32_t i = 0; i < rank; i++) {
    pln_layout_axis axis = pln_tensor_layout_axis(call->table, call->in[0], i);
    if (is_listed(axes, n, i))
      continue;
    kept.letter[kept.rank] = axis.letter;
    kept.factor[kept.rank++] = axis.factor;
  }
  return pln_tensor_layout_of(call->table, &kept, out);
}

pln_status pln_layout_squeeze(pln_layout_call *call) {
  int64_t axes[PLN_LAYOUT_AXES];
  pln_tensor_layout out;
  uint32_t n;
  bool known;
  if (call->n != 1 || !call->old[0] ||
      pln_layout_arg_rank(call, 0) !=
          pln_tensor_layout_rank(call->table, call->old[0]))
    return PLN_OK;
  PLN_TRY(read_squeezed(call, axes, &n, &known));
  for (uint32_t i = 0; i < n && known && call->now; i++) {
    axes[i] =
        pln_tensor_layout_map(call->table, call->old[0], axes[i], call->now[0]);
    known = axes[i] >= 0;
  }
  if (!known)
    return PLN_OK;
  call->in[0] = pln_layout_operand(call, 0);
  PLN_TRY(keep_axes(call, axes, n, &out));
  pln_layout_set_results(call, out);
  return call->now ? pln_layout_set_ints(call, "axis", n, axes) : PLN_OK;
}

/* -------------------------------------------------------------- strided_slice
 */

typedef struct slice {
  uint32_t n, n_strides; /* numbers of begins and ends; of strides */
  int64_t begin[PLN_LAYOUT_AXES], end[PLN_LAYOUT_AXES];
  int64_t strides[PLN_LAYOUT_AXES], axes[PLN_LAYOUT_AXES];
  bool has_axes;
  bool sizes; /* the ends are sizes; strides are 1 then */
} slice;

static bool copy_ints(const int64_t *from, uint32_t n, int64_t *to) {
  if (!from || n > PLN_LAYOUT_AXES)
    return false;
  memcpy(to, from, n * sizeof *to);
  return true;
}

static pln_status read_slice(pln_layout_call *call, slice *s, bool *known) {
  const int64_t *begin, *end, *strides, *axes;
  uint32_t n_end, n_axes;
  pln_attr mode;
  PLN_TRY(
      pln_relay_get(call->engine, call->op, call->attrs, "slice_mode", &mode));
  PLN_TRY(pln_layout_ints(call, "begin", &begin, &s->n));
  PLN_TRY(pln_layout_ints(call, "end", &end, &n_end));
  PLN_TRY(pln_layout_ints(call, "strides", &strides, &s->n_strides));
  PLN_TRY(pln_layout_ints(call, "axes", &axes, &n_axes));
  s->has_axes = axes != NULL;
  s->sizes = mode.kind == PLN_ATTR_STRING && pln_slice_is(mode.v.s, "size");
  *known = s->n == n_end && (!axes || n_axes == s->n) && s->n > 0 &&
           copy_ints(begin, s->n, s->begin) && copy_ints(end, n_end, s->end) &&
           (!axes || copy_ints(axes, n_axes, s->axes)) &&
           (!strides || copy_ints(strides, s->n_strides, s->strides));
  for (uint32_t i = 0; i < s->n && *known && axes; i++) {
    s->axes[i] = pln_layout_normal_axis(call, axes[i]);
    *known = s->axes[i] >= 0;
  }
  for (uint32_t i = 0; i < s->n_strides && s->sizes && *known; i++)
    s->strides[i] = 1;
  return PLN_OK;
}

static int64_t stride_at(const slice *s, uint32_t i) {
  return i < s->n_strides ? s->strides[i] : 1;
}

/* Puts the lists into the order of the new layout, which has other axes in
 * other places. False if an axis is lost. */
static bool reorder_slice(const pln_layout_call *call, const pln_dim *dims,
                          slice *s) {
  const pln_layout_table *t = call->table;
  slice old = *s;
  int32_t rank = pln_tensor_layout_rank(t, call->now[0]);
  for (uint32_t i = 0; i < s->n && s->has_axes; i++) {
    s->axes[i] =
        pln_tensor_layout_map(t, call->old[0], old.axes[i], call->now[0]);
    s->strides[i] = stride_at(&old, i);
    if (s->axes[i] < 0)
      return false;
  }
  if (s->has_axes) {
    s->n_strides = s->n;
    return true;
  }
  for (int32_t i = 0; i < rank; i++) {
    int32_t at = pln_tensor_layout_map(t, call->now[0], i, call->old[0]);
    if (at < 0 || ((uint32_t)at >= old.n && !PLN_DIM_IS_CONST(dims[at])))
      return false;
    s->begin[i] = (uint32_t)at < old.n ? old.begin[at] : 0;
    s->end[i] = (uint32_t)at < old.n ? old.end[at] : dims[at];
    s->strides[i] = stride_at(&old, (uint32_t)at);
  }
  s->n = s->n_strides = (uint32_t)rank;
  return true;
}

/* Divides the bounds of axes that get an inner part. False if one is inside of
 * a part. */
static bool divide_slice(const pln_layout_call *call, const pln_dim *dims,
                         slice *s) {
  const pln_layout_table *t = call->table;
  for (uint32_t i = 0; i < s->n; i++) {
    int64_t axis = s->has_axes ? s->axes[i] : (int64_t)i;
    int32_t at = pln_tensor_layout_map(t, call->old[0], axis, call->now[0]);
    if (at < 0)
      return false;
    char letter = pln_tensor_layout_axis(t, call->now[0], at).letter;
    int64_t part = pln_tensor_layout_factor(t, call->now[0], letter);
    if (s->has_axes)
      s->axes[i] = at;
    if (part == 0)
      continue;
    if (s->sizes && s->end[i] < 0 && s->begin[i] == 0 &&
        PLN_DIM_IS_CONST(dims[axis]))
      s->end[i] = dims[axis];
    if (stride_at(s, i) != 1 || s->begin[i] % part || s->end[i] % part)
      return false;
    s->begin[i] /= part;
    s->end[i] /= part;
  }
  return true;
}

/* How the texts of the layouts relate. */
typedef enum text_relation {
  TEXT_SAME_OR_SHORTER, /* the new one is the beginning of the old one */
  TEXT_LONGER,          /* the old one is the beginning of the new one */
  TEXT_OTHER
} text_relation;

static text_relation relate(pln_slice old, pln_slice now) {
  if (now.size <= old.size && !memcmp(old.data, now.data, now.size))
    return TEXT_SAME_OR_SHORTER;
  if (now.size > old.size && !memcmp(old.data, now.data, old.size))
    return TEXT_LONGER;
  return TEXT_OTHER;
}

static pln_status set_slice(pln_layout_call *call, const slice *s,
                            text_relation relation) {
  PLN_TRY(pln_layout_set_ints(call, "begin", s->n, s->begin));
  PLN_TRY(pln_layout_set_ints(call, "end", s->n, s->end));
  if (relation == TEXT_OTHER)
    PLN_TRY(pln_layout_set_ints(call, "strides", s->n_strides, s->strides));
  return s->has_axes ? pln_layout_set_ints(call, "axes", s->n, s->axes)
                     : PLN_OK;
}

pln_status pln_layout_strided_slice(pln_layout_call *call) {
  const pln_layout_table *t = call->table;
  slice s;
  bool known;
  PLN_TRY(read_slice(call, &s, &known));
  if (!known || call->n != 1 || pln_layout_arg_rank(call, 0) < 0)
    return PLN_OK;
  set_both(call, call->old[0], call->old[0]);
  if (!call->now || !call->old[0])
    return PLN_OK;
  pln_slice old = pln_tensor_layout_text(t, call->old[0]);
  pln_slice now = pln_tensor_layout_text(t, call->now[0]);
  text_relation relation = relate(old, now);
  if (relation == TEXT_SAME_OR_SHORTER)
    return PLN_OK;
  const pln_dim *dims = pln_type_dims(call->engine, call->types[0]);
  bool fits = relation == TEXT_LONGER
                  ? divide_slice(call, dims, &s)
                  : old.size == now.size && reorder_slice(call, dims, &s);
  set_both(call, PLN_LAYOUT_UNDEFINED, PLN_LAYOUT_UNDEFINED);
  if (!fits)
    return PLN_OK;
  set_both(call, call->now[0], call->now[0]);
  return set_slice(call, &s, relation);
}

/* ----------------------------------------------------------------- slice_like
 */

pln_status pln_layout_slice_like(pln_layout_call *call) {
  int64_t axes[PLN_LAYOUT_AXES];
  const int64_t *ints;
  uint32_t n;
  if (call->n != 2)
    return PLN_OK;
  PLN_TRY(pln_layout_ints(call, "axes", &ints, &n));
  call->in[0] = call->old[0];
  call->in[1] = call->old[1];
  pln_layout_set_results(call, call->old[0]);
  if (!call->now || n == 0 || n > PLN_LAYOUT_AXES ||
      call->now[0] != call->now[1] || call->old[0] != call->old[1])
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++) {
    axes[i] = pln_tensor_layout_map(call->table, call->old[0],
                                    pln_layout_normal_axis(call, ints[i]),
                                    call->now[0]);
    if (axes[i] < 0)
      return PLN_OK;
  }
  call->in[0] = call->in[1] = call->now[0];
  pln_layout_set_results(call, call->now[0]);
  return pln_layout_set_ints(call, "axes", n, axes);
}

/* ------------------------------------------------------------------------ pad
 */

static bool is_unpadded(const pln_attr *pair) {
  for (uint32_t i = 0; i < pair->count; i++)
    if (pair->v.ints[i] != 0)
      return false;
  return true;
}

/* The pairs in the order of the new layout. False if an axis that is divided is
 * padded. */
static bool reorder_pairs(const pln_layout_call *call, pln_attrs pairs,
                          pln_attr *out) {
  const pln_layout_table *t = call->table;
  int32_t rank = pln_tensor_layout_rank(t, call->now[0]);
  for (int32_t i = 0; i < rank; i++) {
    pln_layout_axis axis = pln_tensor_layout_axis(t, call->now[0], i);
    int32_t at = pln_tensor_layout_find(t, call->old[0], axis.letter, false);
    const pln_attr *pair =
        at < 0 ? NULL : pln_attrs_at(call->engine, pairs, (uint32_t)at);
    if (!pair || pair->kind != PLN_ATTR_INTS ||
        (axis.factor && !is_unpadded(pair)))
      return false;
    out[i] = *pair;
  }
  return true;
}

pln_status pln_layout_pad(pln_layout_call *call) {
  const pln_layout_table *t = call->table;
  pln_attr width, pairs[PLN_LAYOUT_AXES];
  PLN_TRY(
      pln_relay_get(call->engine, call->op, call->attrs, "pad_width", &width));
  int32_t rank = pln_tensor_layout_rank(t, call->old[0]);
  if (call->n != 2 || width.kind != PLN_ATTR_LIST || !call->old[0] ||
      pln_attrs_count(call->engine, width.v.dict) != (uint32_t)rank)
    return PLN_OK;
  PLN_TRY(pln_layout_named(call, "1", &call->in[1]));
  set_both(call, call->old[0], call->old[0]);
  if (!call->now || !reorder_pairs(call, width.v.dict, pairs))
    return PLN_OK;
  set_both(call, call->now[0], call->now[0]);
  PLN_TRY(pln_attrs_list(call->engine,
                         (uint32_t)pln_tensor_layout_rank(t, call->now[0]),
                         pairs, &width.v.dict));
  return pln_relay_set(call->engine, call->op, call->attrs, "pad_width", width,
                       &call->attrs);
}
