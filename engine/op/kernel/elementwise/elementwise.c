/* elementwise.c: drivers of elementwise loops. Called by binary.c, compare.c,
 * unary.c and activation.c.
 *
 * Strides are computed once per call; axes along which both operands advance
 * alike are merged; only the result is allocated. */

#include "op/kernel/elementwise/elementwise.h"

#if defined __x86_64__ && defined __GNUC__
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#endif

#include "base/thread/thread_pool.h"
#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/multiversion.h"

/* Elements converted at a time. */
enum { CHUNK = 256 };

/* The same bits as pln_half_to_float and pln_float_to_half, without
 * branches. */
static inline float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fffu;
  uint32_t scale = 112u << 23;
  uint32_t normal = (rest << 13) + (rest >= 0x7c00 ? 2 * scale : scale);
  uint32_t small = pln_float_bits((float)(int32_t)rest * 0x1p-24f);
  return pln_bits_float(sign | (rest < 0x400 ? small : normal));
}

static inline uint16_t float_to_half(float x) {
  uint32_t bits = pln_float_bits(x), rest = bits & 0x7fffffff;
  uint32_t nan = 0x7e00 | ((rest >> 13) & 0x1ff);
  uint32_t limited = rest > 0x47800000 ? 0x47800000 : rest; /* 65536 */
  uint32_t based = limited - (112u << 23);
  uint32_t normal = (based + 0xfff + ((based >> 13) & 1)) >> 13;
  /* Adding 0.5 leaves 2^-24, the least subnormal, as the last place. */
  uint32_t small = pln_float_bits(pln_bits_float(rest) + 0.5f) - 0x3f000000;
  uint32_t finite = rest < 0x38800000 ? small : normal;
  return (uint16_t)(bits >> 16 & 0x8000) |
         (uint16_t)(rest > 0x7f800000 ? nan : finite);
}

static inline uint16_t float_to_bfloat(float x) {
  uint32_t bits = pln_float_bits(x);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40
                                                     : rounded);
}

#define CONVERT(name, S, T, f)                                          \
  PLN_MULTIVERSION_AVX512 static void name(const S *restrict in,        \
                                           T *restrict out, size_t n) { \
    for (size_t i = 0; i < n; i++)                                      \
      out[i] = f(in[i]);                                                \
  }
CONVERT(widen_half, uint16_t, float, half_to_float)
CONVERT(narrow_half, float, uint16_t, float_to_half)
CONVERT(narrow_bfloat, float, uint16_t, float_to_bfloat)
#define BFLOAT_TO_FLOAT(x) pln_bits_float((uint32_t)(x) << 16)
CONVERT(widen_bfloat, uint16_t, float, BFLOAT_TO_FLOAT)

/* The instructions of F16C give the same bits, except that they quiet NaN:
 * vectors with NaN go element by element when widened. */
#if defined __x86_64__ && defined __GNUC__
#define F16C __attribute__((target("avx,f16c")))
F16C static void widen_half_f16c(const uint16_t *in, float *out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128((const __m128i *)(in + i));
    const __m256 x = _mm256_cvtph_ps(half);
    _mm256_storeu_ps(out + i, x);
    if (_mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)))
      widen_half(in + i, out + i, 8);
  }
  widen_half(in + i, out + i, n - i);
}

F16C static void narrow_half_f16c(const float *in, uint16_t *out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 x = _mm256_loadu_ps(in + i);
    _mm_storeu_si128((__m128i *)(out + i),
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  narrow_half(in + i, out + i, n - i);
}

/* __builtin_cpu_supports of clang 14 does not know "f16c". CPUID traps in a
 * virtual machine: it is asked once, by whichever thread comes first. */
static bool has_f16c(void) {
  enum { UNKNOWN, NO, YES };
  static atomic_int answer = UNKNOWN;
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (known == UNKNOWN) {
    unsigned a, b, c, d;
    bool f16c = __builtin_cpu_supports("avx") &&
                __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    known = f16c ? YES : NO;
    atomic_store_explicit(&answer, known, memory_order_relaxed);
  }
  return known == YES;
}
#else
#define widen_half_f16c widen_half
#define narrow_half_f16c narrow_half
static bool has_f16c(void) {
  return false;
}
#endif

void pln_widen(pln_dtype dtype, const void *in, float *out, size_t n) {
  if (dtype != PLN_FLOAT16)
    widen_bfloat(in, out, n);
  else
    (has_f16c() ? widen_half_f16c : widen_half)(in, out, n);
}

void pln_narrow(pln_dtype dtype, const float *in, void *out, size_t n) {
  if (dtype != PLN_FLOAT16)
    narrow_bfloat(in, out, n);
  else
    (has_f16c() ? narrow_half_f16c : narrow_half)(in, out, n);
}

/* Elements computed between two polls for a stop; elements that pay for another
 * thread. */
enum { WORK_BLOCK = 1 << 20, SHARED_WORK = 1 << 14 };

/* ------------------------------------------------------------- two operands */

/* A running call: the loop and the strides of the operands. */
typedef struct broadcast_pair {
  pln_engine *engine;
  pln_pair_loop loop;
  pln_dtype half; /* 16-bit dtype converted around the loop, or none */
  bool predicate;
  bool goes_on;          /* undefined results do not stop the loop */
  size_t size, out_size; /* of elements */
  uint32_t rank;         /* number of axes outside the run */
  size_t inner;          /* elements of a run */
  pln_run run;
  int64_t dims[PLN_MAX_RANK];
  size_t step_a[PLN_MAX_RANK], step_b[PLN_MAX_RANK]; /* in bytes */
} broadcast_pair;

static bool run_half(const broadcast_pair *p, char *out, const char *a,
                     const char *b, size_t n) {
  float x[CHUNK], y[CHUNK], z[CHUNK];
  bool good = true;
  bool one_a = p->run == PLN_RUN_A_ONE, one_b = p->run == PLN_RUN_B_ONE;
  size_t done = 0;
  for (size_t at = 0; at < n && good; at += CHUNK) {
    if (pln_is_stopped_after(p->engine, &done, CHUNK))
      return true;
    size_t k = n - at < CHUNK ? n - at : CHUNK;
    pln_widen(p->half, a + (one_a ? 0 : at * p->size), x, one_a ? 1 : k);
    pln_widen(p->half, b + (one_b ? 0 : at * p->size), y, one_b ? 1 : k);
    void *to = p->predicate ? (void *)(out + at) : (void *)z;
    good = p->loop(to, x, y, k, p->run);
    if (!p->predicate)
      pln_narrow(p->half, z, out + at * p->out_size, k);
  }
  return good;
}

/* The distances between the elements that a run reads of a and b. */
static size_t inner_step_a(const broadcast_pair *p) {
  return p->run == PLN_RUN_A_ONE ? 0 : p->size;
}

static size_t inner_step_b(const broadcast_pair *p) {
  return p->run == PLN_RUN_B_ONE ? 0 : p->size;
}

/* Computes a run in parts; a requested stop leaves the rest unset. */
static bool run_inner(const broadcast_pair *p, char *out, const char *a,
                      const char *b) {
  size_t step_a = inner_step_a(p), step_b = inner_step_b(p);
  if (p->half)
    return run_half(p, out, a, b, p->inner) || p->goes_on;
  for (size_t at = 0; at < p->inner; at += WORK_BLOCK) {
    size_t n = p->inner - at < WORK_BLOCK ? p->inner - at : WORK_BLOCK;
    if (pln_is_stopped(p->engine))
      return true;
    if (!p->loop(out + at * p->out_size, a + at * step_a, b + at * step_b, n,
                 p->run) &&
        !p->goes_on)
      return false;
  }
  return true;
}

static bool run_pairing(const broadcast_pair *p, char *out, const char *a,
                        const char *b) {
  int64_t at[PLN_MAX_RANK];
  memset(at, 0, p->rank * sizeof *at);
  size_t done = 0;
  for (;;) {
    if (!run_inner(p, out, a, b))
      return false;
    if (pln_is_stopped_after(p->engine, &done, p->inner))
      return true;
    out += p->inner * p->out_size;
    uint32_t k = p->rank;
    while (k > 0) {
      k--;
      a += p->step_a[k];
      b += p->step_b[k];
      if (++at[k] < p->dims[k])
        break;
      a -= p->step_a[k] * (size_t)p->dims[k];
      b -= p->step_b[k] * (size_t)p->dims[k];
      at[k] = 0;
      if (k == 0)
        return true;
    }
    if (p->rank == 0)
      return true;
  }
}

/* A pairing that threads share: by elements of its only run, else by the
 * outermost axis. */
typedef struct shared_pair {
  const broadcast_pair *all;
  char *out;
  const char *a, *b;
  size_t row; /* elements of the result in one step of the outermost axis */
  atomic_bool undefined;
} shared_pair;

static void run_pair_range(void *ud, size_t begin, size_t end) {
  shared_pair *s = ud;
  broadcast_pair p = *s->all;
  bool runs = p.rank == 0;
  if (runs)
    p.inner = end - begin;
  else
    p.dims[0] = (int64_t)(end - begin);
  if (!run_pairing(&p, s->out + begin * s->row * p.out_size,
                   s->a + begin * (runs ? inner_step_a(&p) : p.step_a[0]),
                   s->b + begin * (runs ? inner_step_b(&p) : p.step_b[0])))
    atomic_store(&s->undefined, true);
}

/* False if a result is undefined. */
static bool run_shared_pairing(const broadcast_pair *p, void *out,
                               const pln_tensor *a, const pln_tensor *b) {
  shared_pair s = {.all = p, .out = out, .a = a->data, .b = b->data, .row = 1};
  size_t n = p->rank ? (size_t)p->dims[0] : p->inner;
  if (p->rank) {
    s.row = p->inner;
    for (uint32_t i = 1; i < p->rank; i++)
      s.row *= (size_t)p->dims[i];
  }
  pln_parallel_ranges(p->engine, n, 1 + (SHARED_WORK - 1) / s.row,
                      run_pair_range, &s);
  return !atomic_load(&s.undefined);
}

/* An operand with trailing axes of extent 1 appended. */
typedef struct pair_side {
  const pln_tensor *tensor;
  uint32_t trailing; /* how many */
} pair_side;

static int64_t dim_from_end(pair_side s, uint32_t i) {
  uint32_t own = i - s.trailing;
  return i >= s.trailing && own < s.tensor->rank
             ? s.tensor->dims[s.tensor->rank - 1 - own]
             : 1;
}

static bool broadcast_dims(pair_side a, pair_side b, uint32_t rank,
                           int64_t *dims) {
  for (uint32_t i = 0; i < rank; i++) {
    int64_t x = dim_from_end(a, i), y = dim_from_end(b, i);
    if (x != y && x != 1 && y != 1)
      return false;
    dims[rank - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

/* Walks the axes from the last: those at the end that are contiguous form the
 * run, the others, merged where possible, are the outer axes. */
static void plan(broadcast_pair *p, pair_side a, pair_side b, uint32_t rank,
                 const int64_t *dims) {
  size_t pace_a = p->size, pace_b = p->size;
  int last = -1;
  uint32_t n = 0;
  int64_t extents[PLN_MAX_RANK + 1];
  size_t steps_a[PLN_MAX_RANK + 1], steps_b[PLN_MAX_RANK + 1];
  for (uint32_t i = 0; i < rank; i++) {
    int64_t extent = dims[rank - 1 - i];
    bool moves_a = dim_from_end(a, i) != 1, moves_b = dim_from_end(b, i) != 1;
    int how = moves_a + 2 * moves_b;
    if (extent == 1)
      continue;
    if (how == last) {
      extents[n - 1] *= extent;
    } else {
      extents[n] = extent;
      steps_a[n] = moves_a ? pace_a : 0;
      steps_b[n++] = moves_b ? pace_b : 0;
      last = how;
    }
    pace_a *= moves_a ? (size_t)extent : 1;
    pace_b *= moves_b ? (size_t)extent : 1;
  }
  p->inner = n ? (size_t)extents[0] : 1;
  p->run = n && !steps_a[0]   ? PLN_RUN_A_ONE
           : n && !steps_b[0] ? PLN_RUN_B_ONE
                              : PLN_RUN_BOTH;
  p->rank = n ? n - 1 : 0;
  for (uint32_t i = 1; i < n; i++) {
    p->dims[n - 1 - i] = extents[i];
    p->step_a[n - 1 - i] = steps_a[i];
    p->step_b[n - 1 - i] = steps_b[i];
  }
}

static pln_status choose_loop(const pln_kernel_call *call,
                              const pln_pair_loops *loops, pln_dtype dtype,
                              broadcast_pair *p) {
  p->engine = call->engine;
  p->loop = loops->of[dtype];
  p->half = PLN_DTYPE_NONE;
  if (!p->loop && pln_dtype_is_half(dtype)) {
    p->loop = loops->of[PLN_FLOAT32];
    p->half = dtype;
  }
  p->predicate = loops->predicate;
  p->goes_on = loops->goes_on && !call->folding;
  p->size = pln_element_size(dtype);
  p->out_size = loops->predicate ? 1 : p->size;
  return p->loop ? PLN_OK : pln_kernel_no_dtype(call, dtype);
}

static pln_status compute_broadcast_pair(pln_kernel_call *call,
                                         const pln_pair_loops *loops,
                                         pair_side a, pair_side b,
                                         pln_tensor **out) {
  broadcast_pair p;
  int64_t dims[PLN_MAX_RANK];
  pln_dtype dtype = (pln_dtype)a.tensor->dtype;
  uint32_t rank_b = b.tensor->rank + b.trailing;
  uint32_t rank = a.tensor->rank > rank_b ? a.tensor->rank : rank_b;
  if (dtype != b.tensor->dtype || rank > PLN_MAX_RANK ||
      !broadcast_dims(a, b, rank, dims))
    return pln_kernel_refuse(call, "operands do not match each other");
  PLN_TRY(choose_loop(call, loops, dtype, &p));
  PLN_TRY(pln_tensor_unset(call->engine, loops->predicate ? PLN_BOOL : dtype,
                           rank, dims, out));
  if ((*out)->count == 0)
    return PLN_OK;
  plan(&p, a, b, rank, dims);
  if (run_shared_pairing(&p, pln_tensor_writable(*out), a.tensor, b.tensor))
    return PLN_OK;
  pln_tensor_release(*out);
  *out = NULL;
  return pln_kernel_undefined(call);
}

pln_status pln_pair_compute(pln_kernel_call *call, const pln_pair_loops *loops,
                            const pln_tensor *a, const pln_tensor *b,
                            pln_tensor **out) {
  return compute_broadcast_pair(call, loops, (pair_side){a, 0},
                                (pair_side){b, 0}, out);
}

/* ----------------------------------------------------------- many operands */

/* Elements of one shape that are combined part by part, which stay in the L1
 * cache. */
typedef struct fold_run {
  const pln_kernel_call *call;
  pln_pair_loop loop;
  size_t size;
  char *out;
} fold_run;

static void run_fold_range(void *ud, size_t begin, size_t end) {
  const fold_run *f = ud;
  double part[2][CHUNK];
  size_t done = 0;
  for (size_t at = begin; at < end; at += CHUNK) {
    size_t n = end - at < CHUNK ? end - at : CHUNK;
    const void *all = (const char *)f->call->args[0]->data + at * f->size;
    if (pln_is_stopped_after(f->call->engine, &done, n * f->call->n_args))
      return;
    for (uint32_t i = 1; i < f->call->n_args; i++) {
      bool last = i + 1 == f->call->n_args;
      void *to = last ? f->out + at * f->size : (void *)part[i % 2];
      (void)f->loop(to, all,
                    (const char *)f->call->args[i]->data + at * f->size, n,
                    PLN_RUN_BOTH);
      all = to;
    }
  }
}

static bool have_one_shape(const pln_kernel_call *call) {
  const pln_tensor *first = call->args[0];
  for (uint32_t i = 1; i < call->n_args; i++) {
    const pln_tensor *t = call->args[i];
    if (t->dtype != first->dtype || t->rank != first->rank ||
        memcmp(t->dims, first->dims, t->rank * sizeof *t->dims))
      return false;
  }
  return call->n_args > 2;
}

static pln_status fold_one_shape(pln_kernel_call *call, pln_pair_loop loop,
                                 pln_tensor **out) {
  const pln_tensor *t = call->args[0];
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)t->dtype, t->rank, t->dims,
                           out));
  fold_run f = {.call = call,
                .loop = loop,
                .size = pln_element_size((pln_dtype)t->dtype),
                .out = pln_tensor_writable(*out)};
  pln_parallel_ranges(call->engine, t->count, 1 + SHARED_WORK / call->n_args,
                      run_fold_range, &f);
  return PLN_OK;
}

/* Combines the tensor with *all and replaces it. */
static pln_status fold_in(pln_kernel_call *call, const pln_pair_loops *loops,
                          const pln_tensor *next, pln_tensor **all) {
  pln_tensor *sum = NULL;
  PLN_TRY(pln_pair_compute(call, loops, *all, next, &sum));
  pln_tensor_release(*all);
  *all = sum;
  return PLN_OK;
}

pln_status pln_pairs_fold(pln_kernel_call *call, const pln_pair_loops *loops,
                          pln_tensor **out) {
  for (uint32_t i = 0; i < call->n_args; i++)
    if (!pln_kernel_arg(call, i))
      return pln_kernel_refuse(call, "an operand is missing");
  pln_pair_loop loop = loops->of[call->args[0]->dtype];
  if (loop && have_one_shape(call))
    return fold_one_shape(call, loop, out);
  pln_tensor *all = pln_tensor_retain(call->args[0]);
  for (uint32_t i = 1; i < call->n_args; i++) {
    pln_status status = fold_in(call, loops, call->args[i], &all);
    if (status == PLN_OK)
      continue;
    pln_tensor_release(all);
    return status;
  }
  *out = all;
  return PLN_OK;
}

/* ------------------------------------------------------------- along an axis
 */

/* Whether b's extents are those of a from `axis` on, or 1. */
static bool lies_along(const pln_tensor *a, const pln_tensor *b, int64_t axis) {
  if (axis < 0 || axis + b->rank > a->rank)
    return false;
  for (uint32_t i = 0; i < b->rank; i++)
    if (b->dims[i] != 1 && b->dims[i] != a->dims[axis + i])
      return false;
  return true;
}

/* Before opset 7: operand 1 is aligned to the axes of operand 0 from `axis` on;
 * -1: to the last ones. */
static pln_status run_along(pln_kernel_call *call, const pln_pair_loops *loops,
                            const pln_tensor *a, const pln_tensor *b) {
  int64_t last = (int64_t)a->rank - b->rank;
  int64_t axis = pln_kernel_int(call, "axis", -1);
  if (axis < 0)
    axis = axis == -1 ? last : axis + a->rank;
  if (b->count == 1 && b->rank <= a->rank)
    axis = last;
  if (!lies_along(a, b, axis))
    return pln_kernel_refuse(call, "operand 1 does not match `axis`");
  pair_side along = {b, (uint32_t)(last - axis)};
  return compute_broadcast_pair(call, loops, (pair_side){a, 0}, along,
                                &call->results[0]);
}

pln_status pln_pair_run(pln_kernel_call *call, const pln_pair_loops *loops) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  if (!a || !b)
    return pln_kernel_refuse(call, "an operand is missing");
  if (call->attrs && pln_attrs_find(call->engine, call->attrs, "axis"))
    return run_along(call, loops, a, b);
  return pln_pair_compute(call, loops, a, b, &call->results[0]);
}

/* -------------------------------------------------------------- one operand */

/* A running call, whose elements threads share. */
typedef struct unary_run {
  pln_engine *engine;
  pln_unary_loop loop;
  pln_dtype half; /* 16-bit dtype converted around the loop, or none */
  bool predicate;
  size_t size, out_size; /* of elements */
  const char *in;
  char *out;
  const pln_params *params;
  atomic_bool undefined;
} unary_run;

static bool run_half_unary(const unary_run *u, size_t begin, size_t end) {
  float x[CHUNK], z[CHUNK];
  bool good = true;
  size_t done = 0;
  for (size_t at = begin; at < end && good; at += CHUNK) {
    size_t k = end - at < CHUNK ? end - at : CHUNK;
    if (pln_is_stopped_after(u->engine, &done, k))
      return true;
    pln_widen(u->half, u->in + 2 * at, x, k);
    good = u->loop(u->predicate ? (void *)(u->out + at) : (void *)z, x, k,
                   u->params);
    if (!u->predicate)
      pln_narrow(u->half, z, u->out + 2 * at, k);
  }
  return good;
}

/* Computes in parts; a requested stop leaves the rest unset. */
static bool run_unary(const unary_run *u, size_t begin, size_t end) {
  for (size_t at = begin; at < end; at += WORK_BLOCK) {
    size_t n = end - at < WORK_BLOCK ? end - at : WORK_BLOCK;
    if (pln_is_stopped(u->engine))
      return true;
    if (!u->loop(u->out + at * u->out_size, u->in + at * u->size, n, u->params))
      return false;
  }
  return true;
}

static void run_unary_range(void *ud, size_t begin, size_t end) {
  unary_run *u = ud;
  if (!(u->half ? run_half_unary : run_unary)(u, begin, end))
    atomic_store(&u->undefined, true);
}

pln_status pln_unary_run(pln_kernel_call *call, const pln_unary_loops *loops,
                         const pln_params *params) {
  static const pln_params none = {0, 0};
  const pln_tensor *in = pln_kernel_arg(call, 0);
  if (!in)
    return pln_kernel_refuse(call, "the operand is missing");
  pln_dtype dtype = (pln_dtype)in->dtype;
  unary_run u = {.engine = call->engine,
                 .loop = loops->of[dtype],
                 .predicate = loops->predicate,
                 .size = pln_element_size(dtype),
                 .in = in->data,
                 .params = params ? params : &none};
  void *data;
  if (!u.loop && pln_dtype_is_half(dtype)) {
    u.half = dtype;
    u.loop = loops->of[PLN_FLOAT32];
  }
  if (!u.loop)
    return pln_kernel_no_dtype(call, dtype);
  PLN_TRY(pln_kernel_unset(call, 0, loops->predicate ? PLN_BOOL : dtype,
                           in->rank, in->dims, &data));
  u.out = data;
  u.out_size = loops->predicate ? 1 : u.size;
  pln_parallel_ranges(call->engine, in->count, SHARED_WORK, run_unary_range,
                      &u);
  return atomic_load(&u.undefined) ? pln_kernel_undefined(call) : PLN_OK;
}
