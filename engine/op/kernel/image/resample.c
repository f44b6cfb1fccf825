/* resample.c: resamples axes. Called by the kernels of resize and upsampling.
 *
 * Coordinates are computed in single precision, as ONNX Runtime does: the
 * rounding decides which element is nearest. */

#include "op/kernel/image/resample.h"

#include <math.h>

#include "op/kernel/multiversion.h"

/* ---------------------------------------------------------------- positions */

static float position(const pln_sampling *how, const pln_sampled_axis *a,
                      int64_t i) {
  float x = (float)i, in = (float)a->in, out = (float)a->out;
  switch (how->coordinates) {
  case PLN_ASYMMETRIC: return x / a->scale;
  case PLN_HALF_PIXEL: return (x + 0.5f) / a->scale - 0.5f;
  case PLN_TF_HALF_PIXEL_FOR_NN: return (x + 0.5f) / a->scale;
  case PLN_PYTORCH_HALF_PIXEL:
    return a->out > 1 ? (x + 0.5f) / a->scale - 0.5f : 0;
  case PLN_ALIGN_CORNERS:
    return a->out > 1 ? x * (in - 1) / (a->length - 1) : 0;
  case PLN_TF_CROP_AND_RESIZE:
    if (a->out > 1)
      return a->begin * (in - 1) +
             x * (a->end - a->begin) * (in - 1) / (out - 1);
    return 0.5f * (a->begin + a->end) * (in - 1);
  case PLN_HALF_PIXEL_SYMMETRIC: {
    float shift = in / 2 * (1 - out / (a->scale * in));
    return shift + ((x + 0.5f) / a->scale - 0.5f);
  }
  }
  return 0;
}

static float nearest(const pln_sampling *how, float scale, float x) {
  switch (how->nearest) {
  case PLN_ROUND_PREFER_FLOOR:
    return x == floorf(x) + 0.5f ? floorf(x) : roundf(x);
  case PLN_ROUND_PREFER_CEIL: return floorf(x + 0.5f);
  case PLN_FLOOR: return floorf(x);
  case PLN_CEIL: return ceilf(x);
  case PLN_SIMPLE: return scale < 1 ? ceilf(x) : truncf(x);
  }
  return x;
}

/* Clamps to the axis. NaN becomes 0. */
static int32_t inside(float at, int64_t extent) {
  if (!(at > 0))
    return 0;
  return at < (float)extent ? (int32_t)at < (int32_t)extent - 1
                                  ? (int32_t)at
                                  : (int32_t)extent - 1
                            : (int32_t)extent - 1;
}

/* ------------------------------------------------------------------ weights */

static float cubic_at(float a, float x) {
  x = fabsf(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2)
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

static float weight_at(const pln_sampling *how, float x) {
  if (how->mode == PLN_RESAMPLE_CUBIC)
    return cubic_at(how->cubic, x);
  return fabsf(x) < 1 ? 1 - fabsf(x) : 0;
}

/* The half-width of the kernel, and the factor of its stretching. */
static float stretch(const pln_sampling *how, const pln_sampled_axis *a) {
  return how->antialias && a->scale < 1 ? a->scale : 1;
}

static float sampling_support(const pln_sampling *how,
                              const pln_sampled_axis *a) {
  float side = how->mode == PLN_RESAMPLE_CUBIC ? 2 : 1;
  return side / stretch(how, a);
}

/* The number of elements per position. An axis shrinks to no less than half an
 * element, which bounds it. */
static uint32_t taps_of(const pln_sampling *how, const pln_sampled_axis *a) {
  float most = fminf(4 * (float)a->in + 2, 0x1p30f);
  return how->mode == PLN_RESAMPLE_NEAREST
             ? 1
             : 2 * (uint32_t)fminf(ceilf(sampling_support(how, a)), most);
}

/* The weights of one position; they sum to 1. */
static void compute_weights(const pln_sampling *how, const pln_sampled_axis *a,
                            float x, int32_t *at, float *weight) {
  float shrink = stretch(how, a), sum = 0;
  float first = floorf(x) + 1 - ceilf(sampling_support(how, a));
  for (uint32_t k = 0; k < a->n; k++) {
    float place = first + (float)k;
    bool outside = place < 0 || place > (float)(a->in - 1);
    at[k] = inside(place, a->in);
    weight[k] = how->exclude_outside && outside
                    ? 0
                    : weight_at(how, (place - x) * shrink);
    sum += weight[k];
  }
  for (uint32_t k = 0; k < a->n && sum != 0; k++)
    weight[k] /= sum;
}

/* ------------------------------------------------------------------ an axis */

static void fill_axis(const pln_sampling *how, pln_sampled_axis *a) {
  for (int64_t i = 0; i < a->out; i++) {
    float x = position(how, a, i);
    int32_t *at = a->at + (size_t)i * a->n;
    a->outside[i] = how->coordinates == PLN_TF_CROP_AND_RESIZE &&
                    !(x >= 0 && x <= (float)(a->in - 1));
    if (how->mode == PLN_RESAMPLE_NEAREST)
      *at = inside(nearest(how, a->scale, x), a->in);
    else
      compute_weights(how, a, x, at, a->weight + (size_t)i * a->n);
  }
}

/* How often each element is repeated, if equally often and in order; else 0. */
static int64_t find_repeat(const pln_sampled_axis *a) {
  int64_t times = a->out / a->in;
  if (a->n != 1 || times < 2 || a->out % a->in)
    return 0;
  for (int64_t i = 0; i < a->out; i++)
    if (a->at[i] != i / times)
      return 0;
  return times;
}

pln_status pln_sample_axis(pln_engine *engine, const pln_sampling *how,
                           pln_sampled_axis *a) {
  size_t each, all;
  a->same = a->in == a->out && a->scale == 1 &&
            how->coordinates != PLN_TF_CROP_AND_RESIZE;
  if (a->same || a->in == 0 || a->out == 0)
    return PLN_OK;
  a->n = taps_of(how, a);
  each = a->n * (sizeof *a->at + sizeof *a->weight) + sizeof *a->outside;
  if (__builtin_mul_overflow(each, (size_t)a->out, &all) ||
      !(a->at = pln_mem_new(engine, all)))
    return pln_nomem(engine);
  a->room = all;
  a->weight = (float *)(a->at + a->n * (size_t)a->out);
  a->outside = (bool *)(a->weight + a->n * (size_t)a->out);
  fill_axis(how, a);
  a->repeat = find_repeat(a);
  return PLN_OK;
}

void pln_sampled_axis_free(pln_engine *engine, pln_sampled_axis *axis) {
  pln_mem_free(engine, axis->at, axis->room);
  axis->at = NULL;
}

/* ------------------------------------------------------------------ nearest */

#define TAKE(T)                                                               \
  PLN_MULTIVERSION static void twice_##T(T *restrict to, const T *restrict x, \
                                         size_t n) {                          \
    for (size_t i = 0; i < n; i++)                                            \
      to[2 * i] = to[2 * i + 1] = x[i];                                       \
  }                                                                           \
  static void take_##T(T *restrict to, const T *restrict x,                   \
                       const pln_sampled_axis *a) {                           \
    const int32_t *at = a->at;                                                \
    if (a->repeat == 2)                                                       \
      twice_##T(to, x, (size_t)a->in);                                        \
    else                                                                      \
      for (size_t i = 0; i < (size_t)a->out; i++)                             \
        to[i] = x[at[i]];                                                     \
  }
TAKE(uint8_t)
TAKE(uint16_t)
TAKE(uint32_t)
TAKE(uint64_t)

static void take_row(void *to, const void *x, const pln_sampled_axis *a,
                     size_t size) {
  size_t n = (size_t)a->out;
  if (a->same)
    memcpy(to, x, n * size);
  else if (size == 1)
    take_uint8_t(to, x, a);
  else if (size == 2)
    take_uint16_t(to, x, a);
  else if (size == 4)
    take_uint32_t(to, x, a);
  else if (size == 8)
    take_uint64_t(to, x, a);
  else
    for (size_t i = 0; i < n; i++)
      memcpy((char *)to + i * size, (const char *)x + (size_t)a->at[i] * size,
             size);
}

/* The source row of the row at `at`. */
static size_t source_row(uint32_t outer, const pln_sampled_axis *axes,
                         const int64_t *at) {
  size_t row = 0;
  for (uint32_t i = 0; i < outer; i++) {
    const pln_sampled_axis *a = &axes[i];
    row = row * (size_t)a->in + (size_t)(a->same ? at[i] : a->at[at[i]]);
  }
  return row;
}

/* A row with the same source as the previous row is copied from that. */
void pln_resample_nearest(const pln_engine *engine, uint32_t rank,
                          const pln_sampled_axis *axes, size_t size,
                          const void *in, void *out) {
  uint32_t outer = rank - 1;
  const pln_sampled_axis *last = &axes[outer];
  size_t rows = 1, step = (size_t)last->out * size, before = SIZE_MAX, done = 0;
  int64_t at[PLN_MAX_RANK] = {0};
  char *to = out;
  for (uint32_t i = 0; i < outer; i++)
    rows *= (size_t)axes[i].out;
  for (size_t r = 0; r < rows; r++, to += step) {
    if (pln_is_stopped_after(engine, &done, (size_t)last->out))
      return;
    size_t row = source_row(outer, axes, at);
    if (row == before)
      memcpy(to, to - step, step);
    else
      take_row(to, (const char *)in + row * (size_t)last->in * size, last,
               size);
    before = row;
    for (uint32_t i = outer; i-- > 0;) {
      if (++at[i] < axes[i].out)
        break;
      at[i] = 0;
    }
  }
}

/* --------------------------------------------------------------------- sums */

/* Sums along an axis, over `inner` neighbours at a time, or over single
 * elements. */
#define SUMS(T)                                                              \
  PLN_MULTIVERSION static void pair_##T(T *restrict to, const T *x,          \
                                        const T *y, T a, T b, size_t n) {    \
    for (size_t i = 0; i < n; i++)                                           \
      to[i] = a * x[i] + b * y[i];                                           \
  }                                                                          \
  PLN_MULTIVERSION static void four_##T(T *restrict to, const T *const *x,   \
                                        const float *w, size_t n) {          \
    const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];                  \
    const T a = (T)w[0], b = (T)w[1], c = (T)w[2], d = (T)w[3];              \
    for (size_t i = 0; i < n; i++)                                           \
      to[i] = a * x0[i] + b * x1[i] + c * x2[i] + d * x3[i];                 \
  }                                                                          \
  PLN_MULTIVERSION static void add_##T(T *restrict to, const T *x, T a,      \
                                       size_t n) {                           \
    for (size_t i = 0; i < n; i++)                                           \
      to[i] += a * x[i];                                                     \
  }                                                                          \
  static void side_by_side_##T(const pln_sampled_axis *a, size_t inner,      \
                               const T *x, T *to) {                          \
    for (int64_t o = 0; o < a->out; o++, to += inner) {                      \
      const int32_t *at = a->at + (size_t)o * a->n;                          \
      const float *w = a->weight + (size_t)o * a->n;                         \
      const T *rows[4];                                                      \
      for (uint32_t k = 0; k < a->n && k < 4; k++)                           \
        rows[k] = x + (size_t)at[k] * inner;                                 \
      if (a->n == 2) {                                                       \
        pair_##T(to, rows[0], rows[1], (T)w[0], (T)w[1], inner);             \
        continue;                                                            \
      }                                                                      \
      four_##T(to, rows, w, inner);                                          \
      for (uint32_t k = 4; k < a->n; k++)                                    \
        if (w[k] != 0)                                                       \
          add_##T(to, x + (size_t)at[k] * inner, (T)w[k], inner);            \
    }                                                                        \
  }                                                                          \
  PLN_MULTIVERSION static void alone_##T(                                    \
      const pln_sampled_axis *a, const T *restrict x, T *restrict to) {      \
    const int32_t *at = a->at;                                               \
    const float *w = a->weight;                                              \
    const size_t n = a->n, out = (size_t)a->out;                             \
    if (n == 2) {                                                            \
      for (size_t o = 0; o < out; o++)                                       \
        to[o] =                                                              \
            (T)w[2 * o] * x[at[2 * o]] + (T)w[2 * o + 1] * x[at[2 * o + 1]]; \
      return;                                                                \
    }                                                                        \
    for (size_t o = 0; o < out; o++, at += n, w += n) {                      \
      T sum = 0;                                                             \
      for (size_t k = 0; k < n; k++)                                         \
        sum += (T)w[k] * x[at[k]];                                           \
      to[o] = sum;                                                           \
    }                                                                        \
  }                                                                          \
  static void axis_##T(const pln_engine *engine, const pln_sampled_axis *a,  \
                       size_t outer, size_t inner, const void *in,           \
                       void *out) {                                          \
    const T *x = in;                                                         \
    T *to = out;                                                             \
    size_t done = 0, n = (size_t)a->out * inner;                             \
    for (size_t i = 0; i < outer; i++) {                                     \
      if (pln_is_stopped_after(engine, &done, n))                            \
        return;                                                              \
      if (inner == 1)                                                        \
        alone_##T(a, x, to);                                                 \
      else                                                                   \
        side_by_side_##T(a, inner, x, to);                                   \
      x += (size_t)a->in * inner;                                            \
      to += (size_t)a->out * inner;                                          \
    }                                                                        \
  }
SUMS(float)
SUMS(double)

/* The axes that change, in the order of their sums: those that shrink most
 * first, so that no intermediate is larger than operand or result; equal ones
 * innermost first. */
typedef struct steps {
  uint32_t n;
  uint32_t axis[PLN_MAX_RANK];
  size_t slab_in, slab_out; /* elements from the first changing axis on */
  uint32_t first;           /* axis */
} steps;

static float growth(const pln_sampled_axis *a) {
  return (float)a->out / (float)a->in;
}

static void order_steps(uint32_t rank, const pln_sampled_axis *axes, steps *s) {
  *s = (steps){.slab_in = 1, .slab_out = 1, .first = rank};
  for (uint32_t i = rank; i-- > 0;) {
    if (axes[i].same)
      continue;
    uint32_t k = s->n++;
    for (; k > 0 && growth(&axes[i]) < growth(&axes[s->axis[k - 1]]); k--)
      s->axis[k] = s->axis[k - 1];
    s->axis[k] = i;
    s->first = i;
  }
  for (uint32_t i = s->first; i < rank; i++) {
    s->slab_in *= (size_t)axes[i].in;
    s->slab_out *= (size_t)axes[i].out;
  }
}

/* Runs one slab through all axes; intermediate results alternate between the
 * halves of `store`, the last one goes to `out`. */
static void sum_slab(const pln_engine *engine, uint32_t rank,
                     const pln_sampled_axis *axes, const steps *s, size_t size,
                     const void *in, void *out, char *store, size_t half) {
  bool done[PLN_MAX_RANK] = {false};
  for (uint32_t k = 0; k < s->n; k++) {
    uint32_t axis = s->axis[k];
    size_t outer = 1, inner = 1;
    for (uint32_t i = s->first; i < rank; i++)
      if (i != axis)
        *(i < axis ? &outer : &inner) *=
            (size_t)(done[i] ? axes[i].out : axes[i].in);
    void *to = k + 1 == s->n ? out : store + (k & 1) * half;
    (size == 4 ? axis_float : axis_double)(engine, &axes[axis], outer, inner,
                                           in, to);
    done[axis] = true;
    in = to;
  }
}

pln_status pln_resample_sums(pln_engine *engine, uint32_t rank,
                             const pln_sampled_axis *axes, size_t size,
                             const void *in, void *out) {
  steps s;
  size_t slabs = 1;
  order_steps(rank, axes, &s);
  for (uint32_t i = 0; i < s.first; i++)
    slabs *= (size_t)axes[i].out;
  if (s.n == 0)
    return pln_copy_bytes(engine, out, in, slabs * size);
  size_t half = (s.slab_in > s.slab_out ? s.slab_in : s.slab_out) * size;
  size_t room = s.n > 2 ? 2 * half : s.n > 1 ? half : 1;
  char *store = pln_mem_new(engine, room);
  if (!store)
    return pln_nomem(engine);
  size_t looked = 0;
  for (size_t i = 0;
       i < slabs && !pln_is_stopped_after(engine, &looked, s.slab_out); i++)
    sum_slab(engine, rank, axes, &s, size,
             (const char *)in + i * s.slab_in * size,
             (char *)out + i * s.slab_out * size, store, half);
  pln_mem_free(engine, store, room);
  return PLN_OK;
}
