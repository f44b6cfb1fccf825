/* slice.c: strided_slice: starts, ends and steps along axes, as arguments or
 * (before opset 10) as attributes. Called through ops.def.
 *
 * Bounds are clamped as ONNX defines; INT64_MAX and INT64_MIN mean the ends. */

#include "op/kernel/strided.h"

/* The slice requested along one axis, and the range that it selects. */
typedef struct range {
  int64_t start, end, step;
  int64_t begin, count; /* the range, set by resolve */
} range;

static int64_t clamp_slice_bound(int64_t at, int64_t extent, int64_t low,
                                 int64_t high) {
  if (at < 0)
    at = at < -extent ? low : at + extent;
  return at < low ? low : at > high ? high : at;
}

static void resolve(range *r, int64_t extent) {
  bool up = r->step > 0;
  int64_t low = up ? 0 : -1, high = up ? extent : extent - 1;
  int64_t end = clamp_slice_bound(r->end, extent, low, high);
  r->begin = clamp_slice_bound(r->start, extent, up ? 0 : low, high);
  if (!up && r->begin < 0)
    r->begin = 0;
  int64_t span = up ? end - r->begin : r->begin - end;
  uint64_t step = up ? (uint64_t)r->step : 0 - (uint64_t)r->step;
  r->count =
      span <= 0 || extent == 0 ? 0 : (int64_t)(((uint64_t)span - 1) / step + 1);
}

/* ---------------------------------------------------------------- inference */

typedef struct request {
  pln_list starts, ends, axes, steps;
} request;

/* Clamps a symbolic bound: min(at, extent) if it is non-negative, max(0, extent
 * + at) if negative; PLN_DIM_UNKNOWN if its sign is unknown. */
static pln_status clamp_slice_dim(const pln_infer *call, pln_dim at,
                                  pln_dim extent, pln_dim *out) {
  int64_t low = pln_dim_lower_bound(call->engine, at);
  if (at != PLN_DIM_UNKNOWN && low >= 0) {
    if (PLN_DIM_IS_CONST(at) && at >= INT32_MAX) {
      *out = extent;
      return PLN_OK;
    }
    return pln_infer_dim(call, PLN_DIM_MIN, at, extent, out);
  }
  *out = PLN_DIM_UNKNOWN;
  if (!PLN_DIM_IS_CONST(at))
    return PLN_OK;
  if (at <= -INT32_MAX) {
    *out = 0;
    return PLN_OK;
  }
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, extent, at, out));
  return pln_infer_dim(call, PLN_DIM_MAX, 0, *out, out);
}

static pln_status symbolic_extent(const pln_infer *call, pln_dim start,
                                  pln_dim end, int64_t step, pln_dim *dim) {
  pln_dim extent = *dim, from, to;
  *dim = PLN_DIM_UNKNOWN;
  bool reversed =
      step == -1 && PLN_DIM_IS_CONST(end) && end <= -INT32_MAX &&
      (start == -1 || (PLN_DIM_IS_CONST(start) && start >= INT32_MAX));
  if (reversed)
    *dim = extent;
  if (step < 0)
    return PLN_OK;
  PLN_TRY(clamp_slice_dim(call, start, extent, &from));
  PLN_TRY(clamp_slice_dim(call, end, extent, &to));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, to, from, &extent));
  if (from != 0) /* a bound itself is never negative */
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MAX, 0, extent, &extent));
  if (step > 1) {
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, extent, step - 1, &extent));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, extent, step, &extent));
  }
  *dim = extent;
  return PLN_OK;
}

static pln_status slice_axis(const pln_infer *call, const request *q,
                             uint32_t i, pln_dim *dim) {
  pln_dim start = pln_list_at(&q->starts, i), end = pln_list_at(&q->ends, i);
  pln_dim step = q->steps.given ? pln_list_at(&q->steps, i) : 1;
  if (step == 0)
    return pln_call_error(call, "step %u is 0", i);
  if (PLN_DIM_IS_CONST(start) && PLN_DIM_IS_CONST(end) &&
      PLN_DIM_IS_CONST(step) && PLN_DIM_IS_CONST(*dim)) {
    range r = {.start = start, .end = end, .step = step};
    resolve(&r, *dim);
    *dim = r.count;
    return PLN_OK;
  }
  if (PLN_DIM_IS_CONST(step))
    return symbolic_extent(call, start, end, step, dim);
  *dim = PLN_DIM_UNKNOWN;
  return PLN_OK;
}

static request read_request(const pln_infer *call) {
  return (request){.starts = pln_arg_list(call, 1, "starts"),
                   .ends = pln_arg_list(call, 2, "ends"),
                   .axes = pln_arg_list(call, 3, "axes"),
                   .steps = pln_arg_list(call, 4, "strides")};
}

/* Converts Relay's request to ONNX's form: one step may stand for all; in mode
 * "size" ends are extents, where -1 means all the rest; a missing bound is the
 * axis's own. `starts`, `ends` and
 * `steps` have room for PLN_MAX_RANK. */
static bool from_relay(request *q, bool sizes, int64_t *starts, int64_t *ends,
                       int64_t *steps) {
  uint32_t given = q->starts.count;
  uint32_t n = q->ends.count > given ? q->ends.count : given;
  if (!q->starts.ints || !q->ends.ints || n > PLN_MAX_RANK)
    return n <= PLN_MAX_RANK; /* ONNX's form */
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = q->steps.count == 1 ? 0 : i;
    steps[i] =
        !sizes && q->steps.ints && k < q->steps.count ? q->steps.ints[k] : 1;
    starts[i] = i < given ? q->starts.ints[i] : steps[i] < 0 ? INT64_MAX : 0;
    ends[i] = i < q->ends.count ? q->ends.ints[i] : INT64_MAX;
    if (sizes &&
        (ends[i] < 0 || __builtin_add_overflow(starts[i], ends[i], &ends[i])))
      ends[i] = INT64_MAX;
    if (sizes && starts[i] < 0 && ends[i] >= 0)
      ends[i] = INT64_MAX; /* up to the end or beyond */
  }
  q->starts.ints = starts;
  q->starts.count = n;
  q->ends.ints = ends;
  q->steps = (pln_list){.given = true, .sized = true, .ints = steps};
  q->ends.count = q->steps.count = n;
  return true;
}

static pln_status check_counts(const pln_infer *call, const request *q) {
  if (!q->starts.given || !q->ends.given)
    return pln_call_error(call, "starts and ends are missing");
  const pln_list *lists[] = {&q->ends, &q->axes, &q->steps};
  for (size_t i = 0; i < PLN_COUNT(lists); i++)
    if (lists[i]->given && lists[i]->sized && q->starts.sized &&
        lists[i]->count != q->starts.count)
      return pln_call_error(call, "%u starts stand against %u %s",
                            q->starts.count, lists[i]->count,
                            i == 0   ? "ends"
                            : i == 1 ? "axes"
                                     : "steps");
  return PLN_OK;
}

static bool usable(const request *q) {
  return q->starts.sized && q->ends.sized && q->axes.sized && q->steps.sized &&
         (!q->axes.given || pln_list_known(&q->axes));
}

static pln_status slice_shape(const pln_infer *call, const request *q,
                              pln_shape *shape) {
  bool seen[PLN_MAX_RANK] = {false};
  if (!usable(q)) {
    pln_shape_ranked(shape, shape->rank);
    return PLN_OK;
  }
  for (uint32_t i = 0; i < q->starts.count; i++) {
    int32_t axis;
    PLN_TRY(pln_call_axis(call, q->axes.given ? pln_list_at(&q->axes, i) : i,
                          shape->rank, &axis));
    if (seen[axis])
      return pln_call_error(call, "axis %d is given twice", axis);
    seen[axis] = true;
    PLN_TRY(slice_axis(call, q, i, &shape->dims[axis]));
  }
  return PLN_OK;
}

static bool bounds_known(const request *q) {
  return usable(q) && pln_list_known(&q->starts) && pln_list_known(&q->ends) &&
         (!q->steps.given || pln_list_known(&q->steps));
}

/* The symbolic value of the slice. The type of the result has been checked. */
static pln_status slice_value(pln_infer *call, const request *q) {
  pln_shape shape;
  pln_dim strides[PLN_MAX_RANK], begin = 0;
  if (!bounds_known(q) || !pln_infer_value_strides(call, strides))
    return PLN_OK;
  pln_arg_shape(call, 0, &shape);
  for (uint32_t i = 0; i < q->starts.count; i++) {
    int32_t axis;
    range r = {.start = pln_list_at(&q->starts, i),
               .end = pln_list_at(&q->ends, i),
               .step = q->steps.given ? pln_list_at(&q->steps, i) : 1};
    PLN_TRY(pln_call_axis(call, q->axes.given ? pln_list_at(&q->axes, i) : i,
                          shape.rank, &axis));
    resolve(&r, shape.dims[axis]);
    begin += r.begin * strides[axis];
    shape.dims[axis] = r.count;
    strides[axis] *= r.count > 1 ? r.step : 0;
  }
  return pln_infer_value_strided(call, &shape, begin, strides);
}

pln_status pln_infer_strided_slice(pln_infer *call) {
  request q = read_request(call);
  int64_t starts[PLN_MAX_RANK], ends[PLN_MAX_RANK], steps[PLN_MAX_RANK];
  bool sizes = pln_call_string_is(call, "slice_mode", "ends", "size");
  pln_shape shape;
  if (!from_relay(&q, sizes, starts, ends, steps))
    return pln_call_error(call, "a slice has at most %d bounds", PLN_MAX_RANK);
  PLN_TRY(check_counts(call, &q));
  pln_arg_shape(call, 0, &shape);
  if (shape.rank >= 0)
    PLN_TRY(slice_shape(call, &q, &shape));
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape));
  return slice_value(call, &q);
}

/* ------------------------------------------------------------------- kernel */

/* Computes the view of a slice. pln_list_at clamps values to the range of
 * constant dims, which changes no result. */
static bool slice_view(const pln_tensor *x, const request *q, int64_t *dims,
                       pln_strided *view, int64_t *first) {
  int64_t steps[PLN_MAX_RANK];
  bool seen[PLN_MAX_RANK] = {false};
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  pln_dense_strides(x->rank, x->dims, steps);
  memcpy(view->from, steps, x->rank * sizeof *steps);
  *first = 0;
  for (uint32_t i = 0; i < q->starts.count; i++) {
    uint32_t axis;
    range r = {.start = pln_list_at(&q->starts, i),
               .end = pln_list_at(&q->ends, i),
               .step = q->steps.given ? pln_list_at(&q->steps, i) : 1};
    if (!pln_kernel_axis(q->axes.given ? pln_list_at(&q->axes, i) : i, x->rank,
                         &axis) ||
        seen[axis] || r.step == 0)
      return false;
    seen[axis] = true;
    resolve(&r, x->dims[axis]);
    dims[axis] = r.count;
    *first += r.begin * steps[axis];
    view->from[axis] = r.count > 1 ? steps[axis] * r.step : 0;
  }
  return true;
}

pln_status pln_kernel_strided_slice(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  request q = {.starts = pln_kernel_list(call, 1, "starts"),
               .ends = pln_kernel_list(call, 2, "ends"),
               .axes = pln_kernel_list(call, 3, "axes"),
               .steps = pln_kernel_list(call, 4, "strides")};
  int64_t dims[PLN_MAX_RANK], first;
  int64_t starts[PLN_MAX_RANK], ends[PLN_MAX_RANK], steps[PLN_MAX_RANK];
  pln_strided view;
  bool sizes = pln_kernel_string_is(call, "slice_mode", "ends", "size");
  bool fits = from_relay(&q, sizes, starts, ends, steps) &&
              q.starts.count == q.ends.count &&
              (!q.axes.given || q.axes.count == q.starts.count) &&
              (!q.steps.given || q.steps.count == q.starts.count);
  if (x->rank > PLN_MAX_RANK || !fits ||
      !slice_view(x, &q, dims, &view, &first))
    return pln_kernel_refuse(call, "the bounds do not match the operand");
  const char *from = x->data;
  if (x->count && pln_dims_product(dims, 0, x->rank))
    from += first * (int64_t)pln_element_size((pln_dtype)x->dtype);
  return pln_strided_result_copy(call, 0, x, from, x->rank, dims, &view);
}
