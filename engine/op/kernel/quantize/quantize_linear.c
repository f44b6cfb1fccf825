/* quantize_linear.c: quantize_linear, dequantize_linear,
 * dynamic_quantize_linear. Called through ops.def.
 *
 * Scale and zero point are per tensor, per index of an axis, or per block along
 * it. Computed in float32 as ONNX Runtime does, whatever `precision` is;
 * quotients are rounded to nearest, ties to even, and saturate. NaN has no
 * integer: folding refuses it, a run gives the least integer, as ONNX Runtime
 * does. */

#include "op/kernel/elementwise/convert.h"
#include "op/kernel/multiversion.h"

/* ---------------------------------------------------------------- inference */

static pln_dtype output_dtype(const pln_infer *call, pln_dtype fallback) {
  int64_t dtype = pln_call_int(call, "output_dtype", 0);
  return dtype > 0 && dtype < PLN_N_DTYPES ? (pln_dtype)dtype : fallback;
}

/* The type of quantize_linear. Its dtype is that of the zero point, else the
 * attribute's, else uint8. */
pln_status pln_infer_quantize_linear(pln_infer *call) {
  pln_dtype dtype = output_dtype(call, PLN_UINT8);
  pln_dtype zero = pln_arg_dtype(call, 2);
  if (zero && zero != output_dtype(call, zero))
    return pln_arg_error(call, 2, "expected %s, got %s", pln_dtype_name(dtype),
                         pln_dtype_name(zero));
  if (!pln_arg_absent(call, 2))
    dtype = zero;
  return pln_result_shaped_like(call, 0, 0, dtype);
}

pln_status pln_infer_dequantize_linear(pln_infer *call) {
  pln_dtype dtype = output_dtype(call, pln_arg_dtype(call, 1));
  return pln_result_shaped_like(call, 0, 0, dtype);
}

pln_status pln_infer_dynamic_quantize_linear(pln_infer *call) {
  PLN_TRY(pln_result_shaped_like(call, 0, 0, PLN_UINT8));
  PLN_TRY(pln_result_scalar(call, 1, PLN_FLOAT32));
  return pln_result_scalar(call, 2, PLN_UINT8);
}

/* -------------------------------------------------------------------- loops */

/* Scales n elements; false if a NaN became an integer. `scale` and `zero` have
 * one element, or n. */
typedef bool (*scale_fn)(const float *in, void *out, size_t n,
                         const float *scale, const float *zero, float low,
                         float high);

/* Defines two loops that compute a result of type T from x, its scale s and
 * zero point z. */
#define LOOP(name, T, at, ...)                                            \
  PLN_MULTIVERSION_AVX512 static bool name(                               \
      const float *restrict in, void *restrict out, size_t n,             \
      const float *restrict scale, const float *restrict zero, float low, \
      float high) {                                                       \
    T *restrict to = out;                                                 \
    uint32_t nan = 0;                                                     \
    (void)low, (void)high;                                                \
    for (size_t i = 0; i < n; i++) {                                      \
      const float x = in[i], s = scale[at], z = zero[at];                 \
      __VA_ARGS__                                                         \
    }                                                                     \
    return !nan;                                                          \
  }
#define LOOPS(name, T, ...)           \
  LOOP(name##_one, T, 0, __VA_ARGS__) \
  LOOP(name##_each, T, i, __VA_ARGS__)

/* Adding 1.5 * 2^23 leaves the nearest integer, ties to even, of a number far
 * below 2^23 in the low bits. */
#define ROUNDING 0x1.8p23f

static inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* The result is an 8-bit or 16-bit integer of the dtype's sign, or a float. */
#define QUANTIZE(y)               \
  float y = x / s;                \
  nan |= y != y;                  \
  y = y >= low - z ? y : low - z; \
  y = y > high - z ? high - z : y;
#define QUANTIZE_BITS(T) \
  QUANTIZE(y)            \
  to[i] = (T)(bits_of(y + ROUNDING) + (uint32_t)(int32_t)z);
LOOPS(quantize_byte, uint8_t, QUANTIZE_BITS(uint8_t))
LOOPS(quantize_word, uint16_t, QUANTIZE_BITS(uint16_t))
LOOPS(quantize, float, QUANTIZE(y) to[i] = y + ROUNDING - ROUNDING + z;)
/* Adding a zero point of 0 would turn -0 into 0, so it is not added. */
LOOPS(divide, float, to[i] = z == 0 ? x / s : x / s + z;)
LOOPS(dequantize, float, to[i] = (x - z) * s;)

/* ------------------------------------------------------------------ scaling */

/* How elements are assigned to scales: runs of elements, `steps` runs per index
 * of the outer axes. */
typedef struct scaling {
  float *numbers;      /* scales, then zero points */
  size_t count;        /* of each */
  bool each;           /* one scale per element, else one per run */
  size_t run, last;    /* elements of a run, and of the last run of the steps */
  size_t steps, share; /* `share` consecutive runs have the same scale */
  size_t step, outer;  /* strides from the scales of one run to the next */
  scale_fn fn;
  pln_dtype made; /* dtype that `fn` writes: the result's, or float32 */
  float low, high;
} scaling;

/* Plans one scale for the tensor, or one per index of the axis; false if the
 * dims do not fit. */
static bool plan_axis(const pln_tensor *x, const pln_tensor *scale,
                      int64_t requested, scaling *s) {
  uint32_t axis;
  *s = (scaling){.run = x->count, .steps = 1, .share = 1};
  if (scale->rank <= 1 && scale->count == 1)
    return true;
  if (scale->rank != 1 || !pln_kernel_axis(requested, x->rank, &axis) ||
      scale->dims[0] != x->dims[axis])
    return false;
  size_t inner = pln_dims_product(x->dims, axis + 1, x->rank);
  s->each = inner == 1;
  s->run = s->each ? (size_t)x->dims[axis] : inner;
  s->steps = s->each ? 1 : (size_t)x->dims[axis];
  s->step = !s->each;
  return true;
}

static bool plan_blocks(const pln_tensor *x, const pln_tensor *scale,
                        int64_t requested, int64_t block, scaling *s) {
  uint32_t axis;
  if (block < 0 || scale->rank != x->rank ||
      !pln_kernel_axis(requested, x->rank, &axis) || x->dims[axis] == 0)
    return false;
  int64_t extent = x->dims[axis], blocks = (extent - 1) / block + 1;
  for (uint32_t i = 0; i < x->rank; i++)
    if (scale->dims[i] != (i == axis ? blocks : x->dims[i]))
      return false;
  size_t inner = pln_dims_product(x->dims, axis + 1, x->rank);
  bool rows = inner != 1; /* each row of elements has a row of scales */
  *s = (scaling){.each = rows,
                 .run = rows ? inner : (size_t)block,
                 .steps = (size_t)(rows ? extent : blocks),
                 .share = rows ? (size_t)block : 1,
                 .step = inner,
                 .outer = (size_t)blocks * inner};
  s->last = rows ? inner : (size_t)(extent - (blocks - 1) * block);
  return true;
}

static pln_status plan(const pln_kernel_call *call, scaling *s) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *scale = pln_kernel_arg(call, 1);
  const pln_tensor *zero = pln_kernel_arg(call, 2);
  int64_t axis = pln_kernel_int(call, "axis", 1);
  int64_t block = pln_kernel_int(call, "block_size", 0);
  bool fits = block ? plan_blocks(x, scale, axis, block, s)
                    : plan_axis(x, scale, axis, s);
  if (!block)
    s->last = s->run;
  if (!fits && x->count)
    return pln_kernel_refuse(
        call, "the scales do not match the operand, axis %lld, block_size %lld",
        (long long)axis, (long long)block);
  if (zero && zero->count != scale->count)
    return pln_kernel_refuse(call, "%zu zero points for %zu scales",
                             zero->count, scale->count);
  s->count = scale->count;
  return PLN_OK;
}

static pln_status read_numbers(const pln_kernel_call *call, uint32_t arg,
                               float *out) {
  const pln_tensor *t = pln_kernel_arg(call, arg);
  pln_conversion c = {.from = t ? (pln_dtype)t->dtype : PLN_FLOAT32,
                      .to = PLN_FLOAT32};
  if (!t)
    return PLN_OK;
  if (!pln_convertible(c.from))
    return pln_kernel_no_dtype(call, c.from);
  if (pln_convert(&c, t->data, t->count, out) != PLN_CONVERTED)
    return pln_kernel_undefined(call);
  return PLN_OK;
}

/* ------------------------------------------------------------------ running */

/* The position of the next element in its run. */
typedef struct place {
  size_t outer, step, done;
} place;

/* Scales the next n elements; returns what the scale_fn returns. */
static bool scale_run(const scaling *s, place *at, const float *in, void *out,
                      size_t n) {
  size_t size = pln_element_size(s->made);
  bool defined = true;
  while (n > 0) {
    size_t run = at->step + 1 == s->steps ? s->last : s->run;
    size_t part = run - at->done < n ? run - at->done : n;
    const float *scale = s->numbers + at->outer * s->outer +
                         at->step / s->share * s->step +
                         (s->each ? at->done : 0);
    defined &= s->fn(in, out, part, scale, scale + s->count, s->low, s->high);
    in += part;
    out = (char *)out + part * size;
    n -= part;
    at->done += part;
    if (at->done < run)
      continue;
    at->done = 0;
    if (++at->step == s->steps) {
      at->step = 0;
      at->outer++;
    }
  }
  return defined;
}

/* Elements per block; a multiple of 8, so that blocks of packed dtypes begin at
 * a byte. */
enum { BLOCK = 1024 };

static const void *element(const void *data, pln_dtype dtype, size_t i) {
  return (const char *)data + i * pln_dtype_bits(dtype) / 8;
}

PLN_MULTIVERSION static void from_bytes(const uint8_t *restrict in,
                                        float *restrict out, size_t n,
                                        uint8_t sign) {
  for (size_t i = 0; i < n; i++)
    out[i] = (float)((in[i] ^ sign) - sign);
}

/* Returns a block as float32: itself, or converted into `to`; NULL for non-
 * numeric dtypes. */
static const float *as_floats(pln_dtype dtype, const void *block, size_t n,
                              float *to) {
  pln_conversion c = {.from = dtype, .to = PLN_FLOAT32};
  if (dtype == PLN_FLOAT32)
    return block;
  if (dtype == PLN_INT8 || dtype == PLN_UINT8)
    from_bytes(block, to, n, dtype == PLN_INT8 ? 0x80 : 0);
  else if (pln_convert(&c, block, n, to) != PLN_CONVERTED)
    return NULL;
  return to;
}

/* Computes result 0 from argument 0. */
static pln_status scale_all(pln_kernel_call *call, const scaling *s) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_tensor *y = call->results[0];
  pln_dtype dtype = (pln_dtype)x->dtype;
  pln_conversion out = {.from = PLN_FLOAT32,
                        .to = (pln_dtype)y->dtype,
                        .saturate = pln_kernel_int(call, "saturate", 1) != 0};
  float from[BLOCK], to[BLOCK];
  place at = {0};
  size_t done = 0;
  for (size_t i = 0; i < x->count; i += BLOCK) {
    size_t n = x->count - i < BLOCK ? x->count - i : BLOCK;
    PLN_TRY(pln_poll_after(call->engine, &done, n));
    char *end = (char *)pln_tensor_writable(y) + i * pln_dtype_bits(out.to) / 8;
    const float *in = as_floats(dtype, element(x->data, dtype, i), n, from);
    if (!in)
      return pln_kernel_undefined(call);
    bool whole = scale_run(s, &at, in, out.to == s->made ? (void *)end : to, n);
    if ((!whole && call->folding) ||
        (out.to != s->made && pln_convert(&out, to, n, end) != PLN_CONVERTED))
      return pln_kernel_refuse(call, "NaN is no %s", pln_dtype_name(out.to));
  }
  return PLN_OK;
}

/* Reads scales and zero points into s->numbers, then scales all elements. */
static pln_status read_and_scale(pln_kernel_call *call, scaling *s) {
  size_t size = (2 * s->count + 1) * sizeof *s->numbers; /* + 1: never 0 */
  s->numbers = pln_mem_zeroed(call->engine, size);
  if (!s->numbers)
    return pln_nomem(call->engine);
  pln_status status = read_numbers(call, 1, s->numbers);
  if (status == PLN_OK)
    status = read_numbers(call, 2, s->numbers + s->count);
  if (status == PLN_OK)
    status = scale_all(call, s);
  pln_mem_free(call->engine, s->numbers, size);
  return status;
}

/* ----------------------------------------------------------------- quantize */

/* Finds the least and the greatest integer of a dtype; false for other
 * dtypes. */
static bool range_of(pln_dtype dtype, float *low, float *high) {
  uint32_t bits = pln_dtype_bits(dtype);
  bool has_sign = dtype == PLN_INT2 || dtype == PLN_INT4 || dtype == PLN_INT8 ||
                  dtype == PLN_INT16;
  if (!has_sign && dtype != PLN_UINT2 && dtype != PLN_UINT4 &&
      dtype != PLN_UINT8 && dtype != PLN_UINT16)
    return false;
  *low = has_sign ? (float)-(1 << (bits - 1)) : 0;
  *high = *low + (float)((1 << bits) - 1);
  return true;
}

static void choose_quantizing(pln_dtype dtype, bool whole, scaling *s) {
  uint32_t bits = pln_dtype_bits(dtype);
  s->made = whole && bits >= 8 ? dtype : PLN_FLOAT32;
  if (!whole)
    s->fn = s->each ? divide_each : divide_one;
  else if (bits < 8)
    s->fn = s->each ? quantize_each : quantize_one;
  else if (bits == 8)
    s->fn = s->each ? quantize_byte_each : quantize_byte_one;
  else
    s->fn = s->each ? quantize_word_each : quantize_word_one;
}

pln_status pln_kernel_quantize_linear(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *zero = pln_kernel_arg(call, 2);
  int64_t requested = pln_kernel_int(call, "output_dtype", 0);
  pln_dtype dtype = zero ? (pln_dtype)zero->dtype
                    : requested > 0 && requested < PLN_N_DTYPES
                        ? (pln_dtype)requested
                        : PLN_UINT8;
  scaling s = {0};
  void *data;
  if (!pln_dtype_is_float((pln_dtype)x->dtype) && x->dtype != PLN_INT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  PLN_TRY(plan(call, &s));
  bool whole = range_of(dtype, &s.low, &s.high);
  if (!whole && (!pln_is_small_float(dtype) || dtype == PLN_FLOAT8_E8M0FNU))
    return pln_kernel_no_dtype(call, dtype);
  choose_quantizing(dtype, whole, &s);
  PLN_TRY(pln_kernel_unset(call, 0, dtype, x->rank, x->dims, &data));
  return read_and_scale(call, &s);
}

/* --------------------------------------------------------------- dequantize */

/* Returns true if all elements are 0. The zero point of int32 sums must be. */
static bool is_zero(const pln_tensor *t) {
  int64_t value;
  for (size_t i = 0; i < t->count; i++)
    if (!pln_tensor_int(t, i, &value) || value != 0)
      return false;
  return true;
}

pln_status pln_kernel_dequantize_linear(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *scale = pln_kernel_arg(call, 1);
  const pln_tensor *zero = pln_kernel_arg(call, 2);
  int64_t requested = pln_kernel_int(call, "output_dtype", 0);
  pln_dtype from = (pln_dtype)x->dtype;
  pln_dtype to = requested > 0 && requested < PLN_N_DTYPES
                     ? (pln_dtype)requested
                     : (pln_dtype)scale->dtype;
  float low, high;
  scaling s = {0};
  void *data;
  if (!range_of(from, &low, &high) && from != PLN_INT32 &&
      (!pln_is_small_float(from) || from == PLN_FLOAT8_E8M0FNU))
    return pln_kernel_no_dtype(call, from);
  if (!pln_dtype_is_float(to))
    return pln_kernel_no_dtype(call, to);
  if (zero &&
      (zero->dtype != x->dtype || (from == PLN_INT32 && !is_zero(zero))))
    return pln_kernel_refuse(call, "the zero points do not match %s",
                             pln_dtype_name(from));
  PLN_TRY(plan(call, &s));
  s.fn = s.each ? dequantize_each : dequantize_one;
  s.made = PLN_FLOAT32;
  PLN_TRY(pln_kernel_unset(call, 0, to, x->rank, x->dims, &data));
  return read_and_scale(call, &s);
}

/* ------------------------------------------------------------------ dynamic */

/* Finds the minimum and maximum of n elements and 0. */
PLN_MULTIVERSION static void find_range(const float *in, size_t n, float *low,
                                        float *high) {
  enum {
    LANES = 64
  }; /* with fewer lanes the compiler unrolls the loop and does not vectorise */
  float least[LANES] = {0}, most[LANES] = {0};
  size_t whole = n - n % LANES;
  for (size_t i = 0; i < whole; i += LANES)
    for (size_t k = 0; k < LANES; k++) {
      const float x = in[i + k];
      least[k] = x < least[k] ? x : least[k];
      most[k] = x > most[k] ? x : most[k];
    }
  for (size_t i = whole; i < n; i++) {
    least[0] = in[i] < least[0] ? in[i] : least[0];
    most[0] = in[i] > most[0] ? in[i] : most[0];
  }
  *low = *high = 0;
  for (size_t k = 0; k < LANES; k++) {
    *low = least[k] < *low ? least[k] : *low;
    *high = most[k] > *high ? most[k] : *high;
  }
}

pln_status pln_kernel_dynamic_quantize_linear(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  float low, high, numbers[2];
  void *data;
  if (x->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  find_range(x->data, x->count, &low, &high);
  numbers[0] = low == high ? 1 : (high - low) / 255;
  float zero = 0 - low / numbers[0];
  zero = zero < 255 ? zero
                    : 255; /* NaN, of -inf and an infinite scale, becomes 255 */
  zero = zero < 0 ? 0 : zero;
  numbers[1] = zero + ROUNDING - ROUNDING;
  scaling s = {.numbers = numbers,
               .count = 1,
               .run = x->count,
               .last = x->count,
               .steps = 1,
               .share = 1,
               .fn = quantize_byte_one,
               .made = PLN_UINT8,
               .high = 255};
  PLN_TRY(pln_kernel_unset(call, 0, PLN_UINT8, x->rank, x->dims, &data));
  PLN_TRY(scale_all(call, &s));
  if (call->n_results > 1) {
    PLN_TRY(pln_kernel_unset(call, 1, PLN_FLOAT32, 0, NULL, &data));
    *(float *)data = numbers[0];
  }
  if (call->n_results > 2) {
    PLN_TRY(pln_kernel_unset(call, 2, PLN_UINT8, 0, NULL, &data));
    *(uint8_t *)data = (uint8_t)numbers[1];
  }
  return PLN_OK;
}
