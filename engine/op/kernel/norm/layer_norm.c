/* layer_norm.c: layer, instance, group and RMS normalisation: types and
 * kernels. Called through ops.def. */

#include <math.h>

#include "base/thread/thread_pool.h"
#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/strided.h"
#include "op/kernel/sum.h"

/* Results: normalised, mean, inverse deviation; the last two have extent 1 on
 * the averaged axes. */
pln_status pln_infer_layer_norm(pln_infer *call) {
  pln_shape s;
  int32_t axis;
  int64_t stash = pln_call_int(call, "stash_type", PLN_FLOAT32);
  pln_dtype dtype =
      stash == PLN_BFLOAT16 ? PLN_BFLOAT16 : (pln_dtype)PLN_FLOAT32;
  pln_arg_shape(call, 0, &s);
  if (pln_call_int(call, "one_axis", 0))
    PLN_TRY(
        pln_set_operand_channels(call, 1, 3, pln_call_int(call, "axis", -1)));
  pln_result_like(call, 0, 0);
  if (s.rank > 0) {
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", -1), s.rank, &axis));
    for (int32_t i = axis; i < s.rank; i++)
      s.dims[i] = 1;
  }
  PLN_TRY(pln_result_tensor(call, 1, dtype, &s));
  return pln_result_tensor(call, 2, dtype, &s);
}

/* nn.instance_norm, nn.group_norm: scale and bias are per channel, for
 * group_norm before opset 21 per group. */
pln_status pln_infer_channel_norm(pln_infer *call) {
  int64_t axis = pln_call_int(call, "axis", 1);
  if (call->op == PLN_OP_INSTANCE_NORMALIZATION)
    PLN_TRY(pln_args_channels(call, 1, 3, axis));
  PLN_TRY(pln_set_operand_channels(call, 1, 3, axis));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}

/* ------------------------------------------------------------------- loops */

/* The mean of a row and the factor of its deviations. */
typedef struct row_moments {
  double mean, factor;
} row_moments;

/* scale and bias have one element per element of a row; bias may be NULL. */
#define ROWS(T, root)                                                          \
  static row_moments centred_##T(const void *row, size_t n, double epsilon) {  \
    double mean = pln_sum_##T(row, n) / (double)n;                             \
    double squares = pln_sum_square_##T(row, n, (T)mean) / (double)n;          \
    return (row_moments){mean, 1 / sqrt(squares + epsilon)};                   \
  }                                                                            \
  static row_moments rooted_##T(const void *row, size_t n, double epsilon) {   \
    double squares = pln_sum_square_##T(row, n, 0) / (double)n;                \
    return (row_moments){0, 1 / sqrt(squares + epsilon)};                      \
  }                                                                            \
  PLN_MULTIVERSION static void scale_##T(void *out, const void *row, size_t n, \
                                         row_moments m, const void *scale,     \
                                         const void *bias) {                   \
    T *restrict to = out;                                                      \
    const T *x = row, *a = scale, *b = bias;                                   \
    const T mean = (T)m.mean, factor = (T)m.factor;                            \
    if (b)                                                                     \
      for (size_t i = 0; i < n; i++)                                           \
        to[i] = (x[i] - mean) * factor * a[i] + b[i];                          \
    else                                                                       \
      for (size_t i = 0; i < n; i++)                                           \
        to[i] = (x[i] - mean) * factor * a[i];                                 \
  }                                                                            \
  PLN_MULTIVERSION static void shift_##T(void *out, const void *row, size_t n, \
                                         row_moments m, double bias) {         \
    T *restrict to = out;                                                      \
    const T *x = row;                                                          \
    const T mean = (T)m.mean, factor = (T)m.factor, b = (T)bias;               \
    for (size_t i = 0; i < n; i++)                                             \
      to[i] = (x[i] - mean) * factor + b;                                      \
  }
ROWS(float, sqrtf)
ROWS(double, sqrt)

typedef struct row_loops {
  row_moments (*centred)(const void *row, size_t n, double epsilon);
  row_moments (*rooted)(const void *row, size_t n, double epsilon);
  void (*scale)(void *out, const void *row, size_t n, row_moments m,
                const void *scale, const void *bias);
  void (*shift)(void *out, const void *row, size_t n, row_moments m,
                double bias);
} row_loops;

static const row_loops *find_loops(const pln_tensor *x) {
  static const row_loops single = {centred_float, rooted_float, scale_float,
                                   shift_float};
  static const row_loops twice = {centred_double, rooted_double, scale_double,
                                  shift_double};
  return x->dtype == PLN_FLOAT32   ? &single
         : x->dtype == PLN_FLOAT64 ? &twice
                                   : NULL;
}

/* ------------------------------------------------- over the axes from `axis`
 */

/* An operand that broadcasts to x: `step` elements further for each row. */
typedef struct scale_layout {
  pln_tensor *tensor;
  size_t step;
} scale_layout;

/* The strides of `t` along x's axes. */
static bool spread_steps(const pln_tensor *t, const pln_tensor *x,
                         int64_t *steps) {
  int64_t own[PLN_MAX_RANK];
  if (t->rank > x->rank)
    return false;
  uint32_t more = x->rank - t->rank;
  pln_dense_strides(t->rank, t->dims, own);
  for (uint32_t i = 0; i < x->rank; i++) {
    bool repeats = i < more || t->dims[i - more] == 1;
    if (!repeats && t->dims[i - more] != x->dims[i])
      return false;
    steps[i] = repeats ? 0 : own[i - more];
  }
  return true;
}

/* Returns true if it has exactly the extents of a row. */
static bool is_row(const pln_tensor *t, const pln_tensor *x, uint32_t axis) {
  if (t->count != pln_dims_product(x->dims, axis, x->rank))
    return false;
  for (uint32_t i = 0; i < t->rank && i < x->rank - axis; i++)
    if (t->dims[t->rank - 1 - i] != x->dims[x->rank - 1 - i])
      return false;
  return t->rank >= x->rank - axis;
}

static pln_status spread_over(const pln_kernel_call *call, const pln_tensor *t,
                              const pln_tensor *x, uint32_t axis,
                              scale_layout *out) {
  pln_strided view = {.rank = x->rank};
  *out = (scale_layout){NULL, 0};
  if (!t)
    return PLN_OK;
  if (t->dtype != x->dtype)
    return pln_kernel_no_dtype(call, (pln_dtype)t->dtype);
  if (is_row(t, x, axis)) {
    out->tensor = pln_tensor_retain(t);
    return PLN_OK;
  }
  if (!spread_steps(t, x, view.from))
    return pln_kernel_refuse(call,
                             "an operand does not broadcast to the first");
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, x->dims,
                           &out->tensor));
  memcpy(view.dims, x->dims, x->rank * sizeof *x->dims);
  pln_dense_strides(x->rank, x->dims, view.to);
  if (x->count)
    pln_strided_copy(call->engine, pln_tensor_writable(out->tensor), t->data,
                     pln_element_size((pln_dtype)x->dtype), &view);
  out->step = pln_dims_product(x->dims, axis, x->rank);
  return PLN_OK;
}

typedef struct layer {
  const pln_tensor *x;
  const row_loops *loops;
  uint32_t axis;
  bool rooted;
  double epsilon;
  scale_layout scale, bias;
} layer;

static pln_status read_layer(const pln_kernel_call *call, layer *l) {
  int64_t axis = pln_kernel_int(call, "axis", -1);
  l->x = pln_kernel_arg(call, 0);
  l->loops = find_loops(l->x);
  l->epsilon = pln_kernel_float(call, "epsilon", 1e-5);
  if (!l->loops)
    return pln_kernel_no_dtype(call, (pln_dtype)l->x->dtype);
  if (l->x->rank > PLN_MAX_RANK || !pln_kernel_axis(axis, l->x->rank, &l->axis))
    return pln_kernel_refuse(call, "axis %lld lies outside of rank %u",
                             (long long)axis, l->x->rank);
  return PLN_OK;
}

static const char *spread_at(const scale_layout *s, size_t row, size_t size) {
  const char *data = s->tensor ? s->tensor->data : NULL;
  return data ? data + row * s->step * size : NULL;
}

/* Writes results 1 and 2, if the call has them: mean and factor of each row. */
static pln_status keep_measures(pln_kernel_call *call, const layer *l) {
  int64_t dims[PLN_MAX_RANK];
  for (uint32_t i = 0; i < l->x->rank; i++)
    dims[i] = i < l->axis ? l->x->dims[i] : 1;
  for (uint32_t i = 1; i < call->n_results && i < 3; i++)
    PLN_TRY(pln_tensor_unset(call->engine, PLN_FLOAT32, l->x->rank, dims,
                             &call->results[i]));
  return PLN_OK;
}

/* Elements that pay for another thread. */
enum { SHARED_WORK = 1 << 14 };

/* A running call, whose rows threads share. */
typedef struct layer_run {
  pln_kernel_call *call;
  const layer *layer;
  size_t n; /* elements of a row */
} layer_run;

static void normalise_range(void *ud, size_t begin, size_t end) {
  const layer_run *run = ud;
  const layer *l = run->layer;
  pln_tensor **results = run->call->results;
  uint32_t n_results = l->rooted ? 1 : run->call->n_results;
  size_t size = pln_element_size((pln_dtype)l->x->dtype), done = 0;
  for (size_t r = begin; r < end; r++) {
    const char *in = (const char *)l->x->data + r * run->n * size;
    char *out = (char *)pln_tensor_writable(results[0]) + r * run->n * size;
    if (pln_is_stopped_after(run->call->engine, &done, run->n))
      return;
    row_moments m = (l->rooted ? l->loops->rooted
                               : l->loops->centred)(in, run->n, l->epsilon);
    l->loops->scale(out, in, run->n, m, spread_at(&l->scale, r, size),
                    spread_at(&l->bias, r, size));
    if (n_results > 1)
      pln_element_set(results[1], r, m.mean);
    if (n_results > 2)
      pln_element_set(results[2], r, m.factor);
  }
}

static pln_status normalise_rows(pln_kernel_call *call, const layer *l) {
  const pln_tensor *x = l->x;
  size_t rows = pln_dims_product(x->dims, 0, l->axis);
  layer_run run = {.call = call, .layer = l};
  run.n = pln_dims_product(x->dims, l->axis, x->rank);
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, x->dims,
                           &call->results[0]));
  if (!l->rooted)
    PLN_TRY(keep_measures(call, l));
  pln_parallel_ranges(call->engine, rows, 1 + SHARED_WORK / (run.n + 1),
                      normalise_range, &run);
  return pln_poll(call->engine);
}

static pln_status run_layer(pln_kernel_call *call, bool rooted) {
  layer l = {.rooted = rooted};
  PLN_TRY(read_layer(call, &l));
  PLN_TRY(spread_over(call, pln_kernel_arg(call, 1), l.x, l.axis, &l.scale));
  pln_status status =
      spread_over(call, pln_kernel_arg(call, 2), l.x, l.axis, &l.bias);
  if (status == PLN_OK)
    status = normalise_rows(call, &l);
  pln_tensor_release(l.scale.tensor);
  pln_tensor_release(l.bias.tensor);
  return status;
}

static pln_status layer_norm(pln_kernel_call *call) {
  return run_layer(call, false);
}

/* Relay normalises one axis, which is ONNX's form for the last one, and may
 * omit operands that ONNX requires. */
static bool is_onnx(const pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t axis = pln_kernel_int(call, "axis", -1);
  bool last = axis == -1 || (x && axis == (int64_t)x->rank - 1);
  return (last || !pln_kernel_int(call, "one_axis", 0)) &&
         pln_kernel_int(call, "center", 1) && pln_kernel_int(call, "scale", 1);
}

static pln_status rms_norm(pln_kernel_call *call) {
  return run_layer(call, true);
}

/* Mean and factor are float32, or the dtype in stash_type. */
pln_status pln_kernel_layer_norm(pln_kernel_call *call) {
  if (!is_onnx(call))
    return pln_kernel_refuse(call, "this form of the call is not implemented");
  PLN_TRY(pln_kernel_through_float(call, "0", layer_norm));
  if (pln_kernel_int(call, "stash_type", PLN_FLOAT32) != PLN_BFLOAT16)
    return PLN_OK;
  for (uint32_t i = 1; i < call->n_results && i < 3; i++) {
    pln_tensor *single = call->results[i], *half;
    PLN_TRY(pln_tensor_from_float32(single, PLN_BFLOAT16, &half));
    pln_tensor_release(single);
    call->results[i] = half;
  }
  return PLN_OK;
}

pln_status pln_kernel_rms_norm(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", rms_norm);
}

/* ------------------------------------------------- over groups of channels */

typedef struct groups {
  const pln_tensor *x, *scale, *bias;
  size_t batch, count, channels, inner; /* count groups of channels each */
  bool by_group; /* scale and bias are per group; else per channel */
  double epsilon;
} groups;

static void normalise_group(const groups *g, const row_loops *loops,
                            size_t group, const char *in, char *out) {
  size_t size = pln_element_size((pln_dtype)g->x->dtype);
  row_moments m = loops->centred(in, g->channels * g->inner, g->epsilon);
  for (size_t c = 0; c < g->channels; c++) {
    size_t at = g->by_group ? group : group * g->channels + c;
    row_moments scaled = {m.mean, m.factor * pln_element_at(g->scale, at)};
    loops->shift(out, in, g->inner, scaled, pln_element_at(g->bias, at));
    in += g->inner * size;
    out += g->inner * size;
  }
}

static pln_status run_groups(pln_kernel_call *call, const groups *g) {
  const pln_tensor *x = g->x;
  const row_loops *loops = find_loops(x);
  size_t step = g->channels * g->inner * pln_element_size((pln_dtype)x->dtype);
  const char *in = x->data;
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, x->dims,
                           &call->results[0]));
  char *out = pln_tensor_writable(call->results[0]);
  size_t done = 0, n = g->channels * g->inner;
  for (size_t i = 0; i < g->batch; i++)
    for (size_t k = 0; k < g->count; k++, in += step, out += step) {
      PLN_TRY(pln_poll_after(call->engine, &done, n));
      normalise_group(g, loops, k, in, out);
    }
  return PLN_OK;
}

/* Reads `count` groups; 0: one group per channel. */
static pln_status read_groups(const pln_kernel_call *call, int64_t count,
                              groups *g) {
  const pln_tensor *x = g->x = pln_kernel_arg(call, 0);
  g->scale = pln_kernel_arg(call, 1);
  g->bias = pln_kernel_arg(call, 2);
  g->epsilon = pln_kernel_float(call, "epsilon", 1e-5);
  if (!find_loops(x) || !pln_is_float32_or_64(g->scale) ||
      !pln_is_float32_or_64(g->bias))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank < 2)
    return pln_kernel_refuse(call, "rank %u has no channels", x->rank);
  int64_t all = x->dims[1];
  if (count < 0 || (count > 0 && all % count))
    return pln_kernel_refuse(call, "%lld groups of %lld channels",
                             (long long)count, (long long)all);
  g->batch = (size_t)x->dims[0];
  g->count = (size_t)(count ? count : all);
  g->channels = g->count ? (size_t)all / g->count : 0;
  g->inner = pln_dims_product(x->dims, 2, x->rank);
  g->by_group = g->scale->count == g->count;
  if ((!g->by_group && g->scale->count != (size_t)all) ||
      g->bias->count != g->scale->count)
    return pln_kernel_refuse(call, "%zu scales for %lld channels",
                             g->scale->count, (long long)all);
  return PLN_OK;
}

static pln_status instance_norm(pln_kernel_call *call) {
  groups g = {0};
  PLN_TRY(read_groups(call, 0, &g));
  return run_groups(call, &g);
}

/* Scale and bias are per group before opset 21, per channel since. */
static pln_status group_norm(pln_kernel_call *call) {
  int64_t count = pln_kernel_int(call, "num_groups", 0);
  groups g = {0};
  if (count < 1)
    return pln_kernel_refuse(call, "num_groups is %lld", (long long)count);
  PLN_TRY(read_groups(call, count, &g));
  return run_groups(call, &g);
}

/* Channels are axis 1, and nothing is left out, as ONNX has it. */
static bool is_untouched_norm(const pln_kernel_call *call) {
  return pln_kernel_int(call, "axis", 1) == 1 &&
         pln_kernel_int(call, "center", 1) && pln_kernel_int(call, "scale", 1);
}

pln_status pln_kernel_instance_norm(pln_kernel_call *call) {
  if (!is_untouched_norm(call))
    return pln_kernel_refuse(call, "this form of the call is not implemented");
  return pln_kernel_through_float(call, "0", instance_norm);
}

pln_status pln_kernel_group_norm(pln_kernel_call *call) {
  if (!is_untouched_norm(call))
    return pln_kernel_refuse(call, "this form of the call is not implemented");
  return pln_kernel_through_float(call, "0", group_norm);
}
