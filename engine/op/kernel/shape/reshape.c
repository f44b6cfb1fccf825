/* reshape.c: operators that keep the elements and their order: copy, reshape,
 * flatten, squeeze, expand_dims. Called through ops.def. */

#include "op/kernel/kernel.h"
#include "op/relay/reshape_codes.h"

/* ------------------------------------------------------------------- shared */

/* Gives the result the symbolic value of the operand, if both are small
 * tensors. */
static pln_status pass_value(pln_infer *call) {
  pln_value value = pln_arg_any_value(call, 0);
  int32_t rank = pln_type_rank(call->engine, call->results[0]);
  if (!value || rank < 0)
    return PLN_OK;
  return pln_infer_set_value(call, (uint32_t)rank,
                             pln_value_count(call->engine, value),
                             pln_value_elements(call->engine, value));
}

/* Returns the elements of the operand with other dims. */
static pln_status reshaped(pln_kernel_call *call, uint32_t rank,
                           const int64_t *dims) {
  return pln_tensor_reshaped(pln_kernel_arg(call, 0), rank, dims,
                             call->results);
}

/* ----------------------------------------------------------------- identity */

pln_status pln_infer_identity_type(pln_infer *call) {
  pln_result_like(call, 0, 0);
  return PLN_OK;
}

pln_status pln_infer_identity(pln_infer *call) {
  pln_result_like(call, 0, 0);
  if (call->n_results == 0)
    call->value = pln_arg_any_value(call, 0);
  return PLN_OK;
}

pln_status pln_kernel_identity(pln_kernel_call *call) {
  pln_kernel_same(call, 0, pln_kernel_arg(call, 0));
  return PLN_OK;
}

/* ------------------------------------------------------------------ reshape */

/* The unknown extents of a new shape. */
typedef struct open_axis {
  int32_t at;     /* the only axis that is not known, or -1 */
  uint32_t count; /* number of axes that are not known */
  bool inferred;  /* it is the -1 of the shape */
} open_axis;

/* Returns true if a symbolic element is an extent and cannot be -1: it is an
 * extent of the operand, or another element is -1, or its bounds say so. */
static bool is_extent(const pln_infer *call, const pln_list *list,
                      const pln_shape *in, pln_dim requested) {
  if (PLN_DIM_IS_CONST(requested) ||
      pln_dim_lower_bound(call->engine, requested) >= 0)
    return true;
  for (int32_t i = 0; i < in->rank; i++)
    if (in->dims[i] == requested)
      return true;
  for (uint32_t i = 0; i < list->count; i++)
    if (pln_list_at(list, i) == -1)
      return true;
  return false;
}

static pln_status read_extent(const pln_infer *call, const pln_list *list,
                              const pln_shape *in, bool allowzero, int32_t axis,
                              pln_dim *out) {
  pln_dim requested = pln_list_at(list, (uint32_t)axis);
  *out = requested;
  if (requested == PLN_DIM_UNKNOWN || requested == -1)
    *out = PLN_DIM_UNKNOWN;
  else if (PLN_DIM_IS_CONST(requested) && requested < -1)
    return pln_arg_error(call, 1, "extent %lld is negative",
                         (long long)requested);
  else if (!is_extent(call, list, in, requested))
    *out = PLN_DIM_UNKNOWN;
  if (requested != 0 || allowzero)
    return PLN_OK;
  if (in->rank >= 0 && axis >= in->rank)
    return pln_arg_error(
        call, 1, "0 at axis %d copies an extent that the operand lacks", axis);
  *out = in->rank < 0 ? PLN_DIM_UNKNOWN : in->dims[axis];
  return PLN_OK;
}

static pln_status read_newshape(const pln_infer *call, const pln_list *list,
                                bool allowzero, const pln_shape *in,
                                pln_shape *out, open_axis *open) {
  *open = (open_axis){.at = -1};
  for (int32_t i = 0; i < out->rank; i++) {
    pln_dim requested = pln_list_at(list, (uint32_t)i);
    PLN_TRY(read_extent(call, list, in, allowzero, i, &out->dims[i]));
    if (requested == -1 && open->inferred)
      return pln_arg_error(call, 1, "the shape has -1 twice");
    if (requested == -1)
      open->inferred = true;
    if (out->dims[i] != PLN_DIM_UNKNOWN)
      continue;
    open->at = i;
    open->count++;
  }
  return PLN_OK;
}

/* Computes the one unknown extent: the size of the operand divided by the other
 * extents. An unknown extent of the operand that a 0 copies cancels out. */
static pln_status close_axis(const pln_infer *call, const pln_shape *in,
                             pln_shape *out, const open_axis *open) {
  pln_dim total, rest = 1;
  PLN_TRY(pln_infer_product(call, in->dims, 0, in->rank, &total));
  for (int32_t i = 0; i < out->rank; i++)
    if (i != open->at)
      PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, rest, out->dims[i], &rest));
  if (rest == 0)
    return PLN_OK;
  if (PLN_DIM_IS_CONST(total) && PLN_DIM_IS_CONST(rest) && total % rest)
    return pln_call_error(call, "%lld elements do not divide by %lld",
                          (long long)total, (long long)rest);
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, total, rest,
                       &out->dims[open->at]);
}

static pln_status check_count(const pln_infer *call, const pln_shape *in,
                              const pln_shape *out) {
  pln_dim a, b;
  PLN_TRY(pln_infer_product(call, in->dims, 0, in->rank, &a));
  PLN_TRY(pln_infer_product(call, out->dims, 0, out->rank, &b));
  if (!PLN_DIM_IS_CONST(a) || !PLN_DIM_IS_CONST(b) || a == b)
    return PLN_OK;
  return pln_call_error(call, "%lld elements do not make a shape of %lld",
                        (long long)a, (long long)b);
}

/* Removes extents that are equal on both sides, those copied by 0 and equal
 * leading ones, even if they are unknown. */
static void cancel_kept(const pln_list *list, bool allowzero, pln_shape *in,
                        pln_shape *out) {
  for (int32_t i = 0; i < in->rank && i < out->rank; i++) {
    bool kept = !allowzero && pln_list_at(list, (uint32_t)i) == 0;
    if (kept && in->dims[i] == PLN_DIM_UNKNOWN)
      in->dims[i] = out->dims[i] = 1;
  }
}

static pln_status solve_newshape(const pln_infer *call, const pln_list *list,
                                 bool allowzero, pln_shape *in,
                                 pln_shape *out) {
  open_axis open;
  PLN_TRY(read_newshape(call, list, allowzero, in, out, &open));
  if (in->rank < 0)
    return PLN_OK;
  pln_shape known = *out;
  cancel_kept(list, allowzero, in, &known);
  open.count = 0;
  for (int32_t i = 0; i < known.rank; i++)
    if (known.dims[i] == PLN_DIM_UNKNOWN) {
      open.at = i;
      open.count++;
    }
  if (open.count == 0)
    return check_count(call, in, &known);
  if (open.count > 1)
    return PLN_OK;
  PLN_TRY(close_axis(call, in, &known, &open));
  out->dims[open.at] = known.dims[open.at];
  return PLN_OK;
}

/* Infers a reshape with codes that only Relay has. They need an operand of
 * known rank. */
static pln_status reshape_by_codes(pln_infer *call, const pln_list *codes,
                                   bool reverse) {
  pln_shape in, out;
  pln_dim dims[PLN_MAX_RANK];
  pln_list list = {.given = true, .sized = true, .dims = dims};
  bool fits = true;
  pln_arg_shape(call, 0, &in);
  pln_shape_unknown(&out);
  if (in.rank >= 0)
    PLN_TRY(pln_reshape_codes_read(call->engine, codes, in.rank, in.dims,
                                   reverse, dims, &list.count, &fits));
  if (!fits)
    return pln_call_error(call, "the new shape does not match rank %d",
                          in.rank);
  if (in.rank >= 0) {
    pln_shape_ranked(&out, list.count);
    PLN_TRY(solve_newshape(call, &list, true, &in, &out));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_reverse_reshape(pln_infer *call) {
  pln_list list = pln_arg_list(call, PLN_NONE, "newshape");
  if (!list.given)
    return pln_call_error(call, "newshape is missing");
  return reshape_by_codes(call, &list, true);
}

pln_status pln_infer_reshape(pln_infer *call) {
  pln_list list = pln_arg_list(call, 1, "newshape");
  bool allowzero = pln_call_int(call, "allowzero", 0) != 0;
  pln_shape in, out;
  if (list.given && pln_reshape_codes_used(&list))
    return reshape_by_codes(call, &list, false);
  pln_arg_shape(call, 0, &in);
  pln_shape_ranked(&out, list.given && list.sized ? (int64_t)list.count : -1);
  if (out.rank >= 0)
    PLN_TRY(solve_newshape(call, &list, allowzero, &in, &out));
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out));
  return pass_value(call);
}

/* Computes the dims of the result; false if they do not fit the operand. */
static bool concrete_newshape(const pln_tensor *x, const pln_list *list,
                              bool allowzero, int64_t *dims) {
  size_t rest = 1;
  uint32_t open = PLN_NONE;
  for (uint32_t i = 0; i < list->count; i++) {
    dims[i] = pln_list_at(list, i);
    if (dims[i] == 0 && !allowzero) {
      if (i >= x->rank)
        return false;
      dims[i] = x->dims[i];
    }
    if (dims[i] < -1 || (dims[i] == -1 && open != PLN_NONE))
      return false;
    if (dims[i] == -1)
      open = i;
    else if (__builtin_mul_overflow(rest, (size_t)dims[i], &rest))
      return false;
  }
  if (open == PLN_NONE)
    return rest == x->count;
  if (rest == 0 || x->count % rest)
    return false;
  dims[open] = (int64_t)(x->count / rest);
  return true;
}

static pln_status reshaped_by_codes(pln_kernel_call *call,
                                    const pln_list *codes, bool reverse) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t requested[PLN_MAX_RANK], dims[PLN_MAX_RANK];
  pln_list list = {.given = true, .sized = true, .ints = requested};
  bool fits;
  if (!codes->given || x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "the shape does not match the operand");
  PLN_TRY(pln_reshape_codes_read(call->engine, codes, (int32_t)x->rank, x->dims,
                                 reverse, requested, &list.count, &fits));
  if (!fits || !concrete_newshape(x, &list, true, dims))
    return pln_kernel_refuse(call, "the shape does not match the operand");
  return reshaped(call, list.count, dims);
}

pln_status pln_kernel_reverse_reshape(pln_kernel_call *call) {
  pln_list list = pln_kernel_list(call, PLN_NONE, "newshape");
  return reshaped_by_codes(call, &list, true);
}

pln_status pln_kernel_reshape(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list list = pln_kernel_list(call, 1, "newshape");
  int64_t dims[PLN_MAX_RANK];
  bool allowzero = pln_kernel_int(call, "allowzero", 0) != 0;
  if (pln_reshape_codes_used(&list))
    return reshaped_by_codes(call, &list, false);
  if (!list.given || list.count > PLN_MAX_RANK ||
      !concrete_newshape(x, &list, allowzero, dims))
    return pln_kernel_refuse(call, "the shape does not match the operand");
  return reshaped(call, list.count, dims);
}

/* ------------------------------------------------------------------ flatten */

pln_status pln_infer_flatten(pln_infer *call) {
  pln_shape in, out;
  pln_arg_shape(call, 0, &in);
  pln_shape_ranked(&out, 2);
  int64_t axis = pln_call_int(call, "axis", 1);
  if (in.rank >= 0) {
    if (axis < -(int64_t)in.rank || axis > in.rank)
      return pln_call_error(call, "axis %lld is outside of [%d, %d]",
                            (long long)axis, -in.rank, in.rank);
    int32_t at = (int32_t)(axis < 0 ? axis + in.rank : axis);
    PLN_TRY(pln_infer_product(call, in.dims, 0, at, &out.dims[0]));
    PLN_TRY(pln_infer_product(call, in.dims, at, in.rank, &out.dims[1]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_kernel_flatten(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t axis = pln_kernel_int(call, "axis", 1);
  if (axis < -(int64_t)x->rank || axis > (int64_t)x->rank)
    return pln_kernel_refuse(call, "axis %lld is outside", (long long)axis);
  uint32_t at = (uint32_t)(axis < 0 ? axis + x->rank : axis);
  int64_t dims[2] = {(int64_t)pln_dims_product(x->dims, 0, at),
                     (int64_t)pln_dims_product(x->dims, at, x->rank)};
  return reshaped(call, 2, dims);
}

pln_status pln_infer_batch_flatten(pln_infer *call) {
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  return pln_infer_flatten(call); /* which without attribute begins at 1 */
}

/* The type of reshape_like: the operand with the dims of another one. With
 * bounds, the axes [lhs_begin, lhs_end) become the axes [rhs_begin, rhs_end) of
 * the other. */
pln_status pln_infer_reshape_like(pln_infer *call) {
  pln_shape x, like, out = {.rank = 0};
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &like);
  if (x.rank < 0 || like.rank < 0) {
    pln_shape_unknown(&out);
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  }
  int64_t bounds[4] = {pln_call_int(call, "lhs_begin", 0),
                       pln_call_int(call, "lhs_end", x.rank),
                       pln_call_int(call, "rhs_begin", 0),
                       pln_call_int(call, "rhs_end", like.rank)};
  for (int i = 0; i < 4; i++) {
    int32_t rank = i < 2 ? x.rank : like.rank;
    bounds[i] += bounds[i] < 0 ? rank : 0;
    if (bounds[i] < (i % 2 ? bounds[i - 1] : 0) || bounds[i] > rank)
      return pln_call_error(call, "a bound is outside of rank %d", rank);
  }
  int64_t rank = bounds[0] + bounds[3] - bounds[2] + x.rank - bounds[1];
  if (rank > PLN_MAX_RANK)
    return pln_call_error(call, "a rank of %lld", (long long)rank);
  for (int64_t i = 0; i < bounds[0]; i++)
    out.dims[out.rank++] = x.dims[i];
  for (int64_t i = bounds[2]; i < bounds[3]; i++)
    out.dims[out.rank++] = like.dims[i];
  for (int64_t i = bounds[1]; i < x.rank; i++)
    out.dims[out.rank++] = x.dims[i];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_kernel_reshape_like(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  static const char *const bounds[] = {"lhs_begin", "lhs_end", "rhs_begin",
                                       "rhs_end"};
  for (size_t i = 0; i < PLN_COUNT(bounds); i++)
    if (pln_kernel_list(call, PLN_NONE, bounds[i]).given)
      return pln_kernel_refuse(call, "%s is given", bounds[i]);
  if (x->count != y->count)
    return pln_kernel_refuse(call, "%zu elements for %zu", x->count, y->count);
  return reshaped(call, y->rank, y->dims);
}

/* ------------------------------------------------------- squeeze, expand_dims
 */

/* Marks the axes of the list; false when one is outside of [-rank, rank) or
 * given twice. */
static bool mark_axes(const pln_list *list, int32_t rank, bool *marked) {
  memset(marked, 0, PLN_MAX_RANK * sizeof *marked);
  for (uint32_t i = 0; i < list->count; i++) {
    int64_t axis = pln_list_at(list, i);
    if (axis < -(int64_t)rank || axis >= rank)
      return false;
    axis += axis < 0 ? rank : 0;
    if (marked[axis])
      return false;
    marked[axis] = true;
  }
  return true;
}

static bool mark_ones(const pln_shape *in, bool *marked) {
  for (int32_t i = 0; i < in->rank; i++) {
    if (!PLN_DIM_IS_CONST(in->dims[i]))
      return false;
    marked[i] = in->dims[i] == 1;
  }
  return true;
}

static pln_status squeezed_shape(const pln_infer *call, const pln_shape *in,
                                 const bool *marked, pln_shape *out) {
  out->rank = 0;
  for (int32_t i = 0; i < in->rank; i++) {
    if (!marked[i])
      out->dims[out->rank++] = in->dims[i];
    else if (PLN_DIM_IS_CONST(in->dims[i]) && in->dims[i] != 1)
      return pln_arg_error(call, 0, "axis %d has extent %lld, not 1", i,
                           (long long)in->dims[i]);
  }
  return PLN_OK;
}

pln_status pln_infer_squeeze(pln_infer *call) {
  pln_list list = pln_arg_list(call, 1, "axes");
  pln_shape in, out = {.rank = -1};
  bool marked[PLN_MAX_RANK];
  pln_arg_shape(call, 0, &in);
  if (in.rank >= 0 && list.given && pln_list_known(&list)) {
    if (!mark_axes(&list, in.rank, marked))
      return pln_call_error(call, "axes are repeated or outside of rank %d",
                            in.rank);
    PLN_TRY(squeezed_shape(call, &in, marked, &out));
  } else if (in.rank >= 0 && list.given && list.sized) {
    pln_shape_ranked(&out, (int64_t)in.rank - list.count);
  } else if (in.rank >= 0 && !list.given && mark_ones(&in, marked)) {
    PLN_TRY(squeezed_shape(call, &in, marked, &out));
  }
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out));
  return pass_value(call);
}

pln_status pln_kernel_squeeze(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list list = pln_kernel_list(call, 1, "axes");
  bool marked[PLN_MAX_RANK];
  int64_t dims[PLN_MAX_RANK];
  uint32_t rank = 0;
  if (x->rank > PLN_MAX_RANK || !mark_axes(&list, (int32_t)x->rank, marked))
    return pln_kernel_refuse(call, "axes are repeated or outside");
  for (uint32_t i = 0; i < x->rank; i++) {
    bool gone = list.given ? marked[i] : x->dims[i] == 1;
    if (gone && x->dims[i] != 1)
      return pln_kernel_refuse(call, "axis %u is not of extent 1", i);
    if (!gone)
      dims[rank++] = x->dims[i];
  }
  return reshaped(call, rank, dims);
}

/* Lists the `n` axes that Relay's form inserts at the position of the list's
 * only element; a negative one counts from the end of the result. False if they
 * lie outside. */
static bool spread_axis(const pln_list *list, int64_t rank, int64_t n,
                        int64_t *axes, pln_list *out) {
  int64_t at = list->count == 1 ? pln_list_at(list, 0) : rank + 1;
  at += at < 0 ? rank + 1 : 0;
  if (n < 0 || n > PLN_MAX_RANK - rank || at < 0 || at > rank)
    return false;
  for (int64_t i = 0; i < n; i++)
    axes[i] = at + i;
  *out = (pln_list){
      .given = true, .sized = true, .count = (uint32_t)n, .ints = axes};
  return true;
}

pln_status pln_infer_expand_dims(pln_infer *call) {
  pln_list list = pln_arg_list(call, 1, "axes");
  pln_shape in, out = {.rank = -1};
  int64_t axes[PLN_MAX_RANK], n = pln_call_int(call, "num_newaxis", 1);
  bool marked[PLN_MAX_RANK];
  pln_arg_shape(call, 0, &in);
  if (!list.given)
    return pln_call_error(call, "axes are missing");
  if (n != 1 && in.rank >= 0 && !spread_axis(&list, in.rank, n, axes, &list))
    return pln_call_error(call, "%lld axes do not match rank %d", (long long)n,
                          in.rank);
  if (in.rank >= 0 && list.sized)
    pln_shape_ranked(&out, (int64_t)in.rank + list.count);
  if (out.rank >= 0 && pln_list_known(&list)) {
    if (!mark_axes(&list, out.rank, marked))
      return pln_call_error(call, "axes are repeated or outside of rank %d",
                            out.rank);
    for (int32_t i = 0, k = 0; i < out.rank; i++)
      out.dims[i] = marked[i] ? 1 : in.dims[k++];
  }
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out));
  return pass_value(call);
}

pln_status pln_kernel_expand_dims(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list list = pln_kernel_list(call, 1, "axes");
  bool marked[PLN_MAX_RANK];
  int64_t dims[PLN_MAX_RANK], axes[PLN_MAX_RANK];
  int64_t n = pln_kernel_int(call, "num_newaxis", 1);
  if (n != 1 && !spread_axis(&list, x->rank, n, axes, &list))
    return pln_kernel_refuse(call, "axes are repeated or outside");
  size_t rank = (size_t)x->rank + list.count;
  if (rank > PLN_MAX_RANK || !mark_axes(&list, (int32_t)rank, marked))
    return pln_kernel_refuse(call, "axes are repeated or outside");
  for (uint32_t i = 0, k = 0; i < rank; i++)
    dims[i] = marked[i] ? 1 : x->dims[k++];
  return reshaped(call, (uint32_t)rank, dims);
}
