/* grid_sample.c: grid_sample: samples tensors (batch, channels, space...) at
 * the positions in a grid. Type and kernel. Called through ops.def.
 *
 * The elements and weights of a block of positions are computed once for all
 * channels. */

#include <math.h>

#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"
#include "op/relay/form.h"
#include "op/relay/kernel/relay_form/relay_form.h"

/* (batch, channels, space...) at (batch, grid..., axes). */
pln_status pln_infer_grid_sample(pln_infer *call) {
  if (pln_call_int(call, "relay", 0))
    return pln_infer_relay_grid_sample(call);
  pln_shape x, grid, out;
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &grid);
  pln_shape_ranked(&out, x.rank >= 0 ? x.rank : grid.rank);
  if (out.rank >= 0 && out.rank < 3)
    return pln_arg_error(call, 0, "expected rank 3 or more, got %d", out.rank);
  if (x.rank >= 0) {
    PLN_TRY(pln_arg_expect_rank(call, 1, x.rank));
    out.dims[0] = x.dims[0];
    out.dims[1] = x.dims[1];
  }
  for (int32_t i = 1; i < grid.rank - 1; i++)
    out.dims[i + 1] = grid.dims[i];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* ---------------------------------------------------------- along one axis */

enum { TAPS = 64, AXIS_TAPS = 4 };
#define OUTSIDE SIZE_MAX /* no element */

typedef enum padding { ZEROS, BORDER, REFLECTION } padding;

typedef struct sampler {
  enum { NEAREST, LINEAR, CUBIC } mode;
  padding padding;
  bool align_corners;
  uint32_t space;
  int64_t in[PLN_MAX_RANK]; /* extents of space */
} sampler;

/* Elements along one axis; -1 is a zero outside. */
typedef struct axis_taps {
  uint32_t n;
  int64_t at[AXIS_TAPS];
  double weight[AXIS_TAPS];
} axis_taps;

/* Reflects a coordinate at the ends until it lies between them. */
static double reflect(double x, double least, double most) {
  double range = most - least;
  if (!(range > 0) || !isfinite(x))
    return least;
  double beyond = x < least ? least - x : x > most ? x - most : 0;
  double rest = fmod(beyond, range);
  bool odd = fmod(floor(beyond / range), 2) != 0;
  if (x < least)
    return odd ? most - rest : least + rest;
  if (x > most)
    return odd ? least + rest : most - rest;
  return x;
}

static double clip_grid_position(const sampler *s, double x, int64_t extent) {
  double last = (double)extent - 1;
  double edge = s->align_corners ? 0 : 0.5;
  if (s->padding == BORDER)
    return !(x > 0) ? 0 : x > last ? last : x;
  if (s->padding == REFLECTION && !(x >= -edge && x <= last + edge))
    return reflect(x, -edge, last + edge);
  return x;
}

/* The element that coordinate `at` means under the padding mode. */
static int64_t element(const sampler *s, double at, int64_t extent) {
  if (at >= 0 && at < (double)extent)
    return (int64_t)at;
  if (s->padding == ZEROS)
    return -1;
  at = clip_grid_position(s, at, extent);
  return at > 0 ? at < (double)extent ? (int64_t)at : extent - 1 : 0;
}

/* The coefficient a is -0.75. */
static double cubic(double x) {
  const double a = -0.75;
  x = fabs(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* The number of elements that a position takes along an axis. */
static uint32_t taps_of(const sampler *s) {
  return s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : AXIS_TAPS;
}

static void find_axis(const sampler *s, double where, int64_t extent,
                      axis_taps *t) {
  double last = (double)extent - 1;
  double x = s->align_corners ? (where + 1) / 2 * last
                              : ((where + 1) * (double)extent - 1) / 2;
  if (s->mode == NEAREST)
    x = nearbyint(x);
  if (s->mode != CUBIC || s->padding != BORDER)
    x = clip_grid_position(s, x, extent); /* as ONNX Runtime does */
  double first = floor(x) - (s->mode == CUBIC ? 1 : 0);
  t->n = taps_of(s);
  for (uint32_t k = 0; k < t->n; k++) {
    double at = first + k, away = at - x;
    t->at[k] = element(s, at, extent);
    t->weight[k] = s->mode == NEAREST  ? 1
                   : s->mode == LINEAR ? 1 - fabs(away)
                                       : cubic(away);
  }
}

/* --------------------------------------------------------------- positions */

/* The elements and weights of as many positions as there is room for. */
enum { ROOM = 1024 };
typedef struct block {
  uint32_t per; /* elements per position */
  uint32_t n[ROOM];
  size_t at[ROOM];
  double of_double[ROOM]; /* the weights */
  float of_float[ROOM];
} block;

/* Adds one axis: each of the `n` choices becomes one per tap. From the last on,
 * so that no choice is overwritten before it is used. */
static uint32_t choose_sample_taps(uint32_t n, const axis_taps *one,
                                   int64_t extent, size_t *at, double *weight) {
  for (uint32_t k = n; k-- > 0;) {
    size_t before = at[k];
    double of_before = weight[k];
    for (uint32_t m = one->n; m-- > 0;) {
      bool inside = before != OUTSIDE && one->at[m] >= 0;
      at[k * one->n + m] =
          inside ? before * (size_t)extent + (size_t)one->at[m] : OUTSIDE;
      weight[k * one->n + m] = of_before * one->weight[m];
    }
  }
  return n * one->n;
}

/* All combinations of one tap per axis, without those outside. The grid names
 * the last axis first. */
static void find_taps(const sampler *s, const pln_tensor *grid, size_t point,
                      size_t i, block *b) {
  size_t place = i * b->per, at[TAPS];
  double weight[TAPS];
  uint32_t n = 1, inside = 0;
  at[0] = 0;
  weight[0] = 1;
  for (uint32_t k = 0; k < s->space; k++) {
    axis_taps one;
    find_axis(s, pln_element_at(grid, point * s->space + s->space - 1 - k),
              s->in[k], &one);
    n = choose_sample_taps(n, &one, s->in[k], at, weight);
  }
  for (uint32_t k = 0; k < n; k++) {
    b->at[place + inside] = at[k];
    b->of_double[place + inside] = weight[k];
    b->of_float[place + inside] = (float)weight[k];
    inside += at[k] != OUTSIDE;
  }
  b->n[i] = inside;
}

#define GATHER(T)                                                     \
  static void gather_##T(const block *b, size_t n, const void *plane, \
                         void *out) {                                 \
    const T *x = plane, *w = b->of_##T;                               \
    const size_t *at = b->at;                                         \
    T *restrict to = out;                                             \
    for (size_t i = 0; i < n; i++, at += b->per, w += b->per) {       \
      T sum = 0;                                                      \
      if (b->n[i] == 4)                                               \
        sum = w[0] * x[at[0]] + w[1] * x[at[1]] + w[2] * x[at[2]] +   \
              w[3] * x[at[3]];                                        \
      else                                                            \
        for (uint32_t k = 0; k < b->n[i]; k++)                        \
          sum += w[k] * x[at[k]];                                     \
      to[i] = sum;                                                    \
    }                                                                 \
  }
GATHER(float)
GATHER(double)

/* Samples one image at `points` positions of the grid, from `first` on. */
static void sample_image(const sampler *s, const pln_tensor *grid, size_t first,
                         size_t points, size_t channels, size_t size,
                         const char *image, char *out) {
  block b = {.per = 1};
  size_t plane = size;
  for (uint32_t i = 0; i < s->space; i++) {
    plane *= (size_t)s->in[i];
    b.per *= taps_of(s);
  }
  for (size_t at = 0; at < points && !pln_is_stopped(grid->engine);
       at += ROOM / b.per) {
    size_t n = points - at < ROOM / b.per ? points - at : ROOM / b.per;
    for (size_t i = 0; i < n; i++)
      find_taps(s, grid, first + at + i, i, &b);
    for (size_t c = 0; c < channels; c++)
      (size == 4 ? gather_float : gather_double)(
          &b, n, image + c * plane, out + (c * points + at) * size);
  }
}

/* ------------------------------------------------------------------- calls */

static bool mode_is(const pln_kernel_call *call, const char *now,
                    const char *before) {
  return pln_kernel_string_is(call, "mode", "linear", now) ||
         pln_kernel_string_is(call, "mode", "linear", before);
}

static pln_status read_sampler(const pln_kernel_call *call, sampler *s) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  s->space = x->rank - 2;
  s->align_corners = pln_kernel_int(call, "align_corners", 0) != 0;
  s->mode = mode_is(call, "cubic", "bicubic")     ? CUBIC
            : mode_is(call, "nearest", "nearest") ? NEAREST
                                                  : LINEAR;
  s->padding =
      pln_kernel_string_is(call, "padding_mode", "zeros", "border") ? BORDER
      : pln_kernel_string_is(call, "padding_mode", "zeros", "reflection")
          ? REFLECTION
          : ZEROS;
  if (x->rank < 3 || s->space > (s->mode == CUBIC ? 3 : 5))
    return pln_kernel_refuse(call, "rank %u is not implemented", x->rank);
  for (uint32_t i = 0; i < s->space; i++)
    s->in[i] = x->dims[i + 2];
  return PLN_OK;
}

static pln_status check_grid(const pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *grid = pln_kernel_arg(call, 1);
  if (!pln_is_float32_or_64(x) || !pln_is_float32_or_64(grid))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
      grid->dims[grid->rank - 1] != (int64_t)x->rank - 2)
    return pln_kernel_refuse(call, "the grid does not match the operand");
  return PLN_OK;
}

static pln_status grid_sample(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *grid = pln_kernel_arg(call, 1);
  size_t size = pln_element_size((pln_dtype)x->dtype);
  int64_t dims[PLN_MAX_RANK];
  sampler s = {.space = 0};
  PLN_TRY(read_sampler(call, &s));
  PLN_TRY(check_grid(call));
  memcpy(dims, x->dims, 2 * sizeof *dims);
  for (uint32_t i = 2; i < x->rank; i++)
    dims[i] = grid->dims[i - 1];
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, dims,
                           &call->results[0]));
  pln_tensor *result = call->results[0];
  if (result->count == 0)
    return PLN_OK;
  if (x->count == 0)
    return pln_kernel_refuse(call, "the tensor to sample is empty");
  size_t channels = (size_t)x->dims[1];
  size_t points = pln_dims_product(dims, 2, x->rank);
  size_t in = pln_dims_product(x->dims, 1, x->rank) * size;
  char *out = pln_tensor_writable(result);
  for (size_t b = 0; b < (size_t)x->dims[0]; b++)
    sample_image(&s, grid, b * points, points, channels, size,
                 (const char *)x->data + b * in,
                 out + b * channels * points * size);
  return PLN_OK;
}

pln_status pln_kernel_grid_sample(pln_kernel_call *call) {
  if (pln_kernel_int(call, "relay", 0))
    return pln_kernel_relay_grid_sample(call);
  return pln_kernel_through_float(call, "0", grid_sample);
}
