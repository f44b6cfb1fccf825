/* transposed.c: the kernels of transposed convolutions. Called through ops.def.
 *
 * A transposed convolution is the product of the transposed weights (out * taps
 * x in) and the image (in x positions), whose rows are then added to the
 * outputs, each at the offset of its tap.
 *
 * Scratch is bounded and allocated once per call. Sums are made in the order of
 * positions and taps. */

#include "op/kernel/conv/plan.h"
#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/matmul/gemm.h"
#include "op/kernel/multiversion.h"

enum { DEPTH, ROW, COL };
/* Elements and positions of a product that are added at a time. */
enum { BLOCK = 1 << 16, POSITIONS = 2048 };

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* -------------------------------------------------------------- accumulation
 */

#define SUM_STRIDED(T)                                               \
  static void sum_##T(T *to, const T *from, size_t n, size_t step) { \
    for (size_t i = 0; i < n; i++)                                   \
      to[i * step] += from[i];                                       \
  }
SUM_STRIDED(float)
SUM_STRIDED(double)

/* Two rows whose elements alternate. */
#define SUM_PAIRS(T)                                                 \
  PLN_MULTIVERSION static void sum_pairs_##T(                        \
      T *restrict to, const T *restrict even, const T *restrict odd, \
      size_t n) {                                                    \
    for (size_t i = 0; i < n; i++) {                                 \
      to[2 * i] += even[i];                                          \
      to[2 * i + 1] += odd[i];                                       \
    }                                                                \
  }
SUM_PAIRS(float)
SUM_PAIRS(double)

/* The output position of position 0 for a tap of the window. */
static void place_tap(const pln_conv_plan *p, size_t tap, int64_t *origin) {
  for (uint32_t i = PLN_CONV_AXES; i-- > 0;) {
    const pln_conv_axis *axis = &p->axis[i];
    int64_t t = (int64_t)(tap % (size_t)axis->window);
    origin[i] = t * axis->dilation - axis->begin;
    tap /= (size_t)axis->window;
  }
}

/* A row of positions of one tap: position i is added to element first + i *
 * step of the output channel. */
typedef struct line {
  size_t size, step;
  int64_t first;
  char *channel;
  const char *from;
  size_t begin, end; /* the positions inside the channel */
} line;

static void sum_line(const line *l, size_t begin, size_t end) {
  if (begin >= end)
    return;
  size_t at = (size_t)(l->first + (int64_t)(begin * l->step));
  void *to = l->channel + at * l->size;
  const void *from = l->from + begin * l->size;
  if (l->size == sizeof(float))
    sum_float(to, from, end - begin, l->step);
  else
    sum_double(to, from, end - begin, l->step);
}

/* The next tap's line is one element further: both are added in one loop where
 * both are inside the channel. */
static void sum_lines(const line *l, const line *next) {
  size_t begin = l->begin > next->begin ? l->begin : next->begin;
  size_t end = min_size(l->end, next->end);
  if (begin >= end) {
    sum_line(l, l->begin, l->end);
    sum_line(next, next->begin, next->end);
    return;
  }
  sum_line(l, l->begin, begin);
  sum_line(l, end, l->end);
  sum_line(next, next->begin, begin);
  sum_line(next, end, next->end);
  size_t at = (size_t)(l->first + (int64_t)(begin * l->step));
  void *to = l->channel + at * l->size;
  const void *even = l->from + begin * l->size;
  const void *odd = next->from + begin * l->size;
  if (l->size == sizeof(float))
    sum_pairs_float(to, even, odd, end - begin);
  else
    sum_pairs_double(to, even, odd, end - begin);
}

/* The n positions from (z, y, x) on, in one row, of a tap with that origin.
 * False if the row is outside the channel. */
static bool find_line(const pln_conv_plan *p, const int64_t *origin,
                      const int64_t *at, size_t n, line *l) {
  const pln_conv_axis *axis = p->axis;
  size_t inside;
  int64_t z = at[DEPTH] * axis[DEPTH].stride + origin[DEPTH];
  int64_t y = at[ROW] * axis[ROW].stride + origin[ROW];
  int64_t x = at[COL] * axis[COL].stride + origin[COL];
  if (z < 0 || z >= axis[DEPTH].out || y < 0 || y >= axis[ROW].out)
    return false;
  pln_conv_split(x, axis[COL].stride, axis[COL].out, n, &l->begin, &inside);
  l->end = l->begin + inside;
  l->first = (z * axis[ROW].out + y) * axis[COL].out + x;
  return true;
}

/* The number of taps accumulated together. */
static size_t taps_at_once(const pln_conv_plan *p, size_t tap) {
  const pln_conv_axis *axis = &p->axis[COL];
  bool next = tap % (size_t)axis->window + 1 < (size_t)axis->window;
  return next && axis->stride == 2 && axis->dilation == 1 ? 2 : 1;
}

/* Positions [first, first + n) of `taps` taps into an output channel. */
static void sum_taps(const pln_conv_plan *p, size_t size, size_t tap,
                     size_t taps, size_t first, size_t n, const char *from,
                     char *to) {
  int64_t origin[PLN_CONV_AXES], at[PLN_CONV_AXES];
  size_t wide = (size_t)p->axis[COL].in, high = (size_t)p->axis[ROW].in;
  line l = {.size = size, .step = (size_t)p->axis[COL].stride, .channel = to};
  place_tap(p, tap, origin);
  for (size_t done = 0; done < n;) {
    size_t here = first + done, x = here % wide;
    size_t count = min_size(wide - x, n - done);
    at[COL] = (int64_t)x;
    at[ROW] = (int64_t)(here / wide % high);
    at[DEPTH] = (int64_t)(here / wide / high);
    l.from = from + done * size;
    done += count;
    if (!find_line(p, origin, at, count, &l))
      continue;
    line next = l;
    next.from += n * size;
    origin[COL]++;
    if (taps == 2 && find_line(p, origin, at, count, &next))
      sum_lines(&l, &next);
    else
      sum_line(&l, l.begin, l.end);
    origin[COL]--;
  }
}

/* ------------------------------------------------------------------- product
 */

typedef struct unconv {
  const pln_conv_plan *plan;
  size_t size;
  const char *x, *w, *bias;
  char *y, *block;
  size_t channels, positions; /* of a block, at most */
  pln_gemm gemm;
} unconv;

#define FILL(T)                                                          \
  static void fill_##T(T *to, size_t n, const pln_unaligned_##T *from) { \
    const T value = *from;                                               \
    for (size_t i = 0; i < n; i++)                                       \
      to[i] = value;                                                     \
  }
FILL(float)
FILL(double)

/* Output channels begin as their bias. */
static void begin_outputs(const unconv *u) {
  const pln_conv_plan *p = u->plan;
  size_t channels = p->groups * p->out;
  if (!u->bias)
    memset(u->y, 0, p->batch * channels * p->out_plane * u->size);
  for (size_t i = 0; u->bias && i < p->batch * channels; i++) {
    void *to = u->y + i * p->out_plane * u->size;
    const void *from = u->bias + i % channels * u->size;
    if (u->size == sizeof(float))
      fill_float(to, p->out_plane, from);
    else
      fill_double(to, p->out_plane, from);
  }
}

/* Output channels [c, c + n) of one image and group, from positions [at, at +
 * count). */
static void run_block(const unconv *u, size_t image, size_t group, size_t c,
                      size_t n, size_t at, size_t count) {
  const pln_conv_plan *p = u->plan;
  size_t rows = p->out * p->taps, part = image * p->groups + group;
  const char *x = u->x + (part * p->in * p->in_plane + at) * u->size;
  const char *w = u->w + (group * p->in * rows + c * p->taps) * u->size;
  char *y = u->y + (part * p->out + c) * p->out_plane * u->size;
  pln_product s = {.m = n * p->taps,
                   .n = count,
                   .k = p->in,
                   .a = w,
                   .a_row = 1,
                   .a_col = rows,
                   .b = x,
                   .b_row = p->in_plane,
                   .b_col = 1,
                   .c = u->block,
                   .c_row = count};
  pln_gemm_run(&u->gemm, &s);
  for (size_t i = 0, taps; i < n * p->taps; i += taps) {
    taps = taps_at_once(p, i % p->taps);
    sum_taps(p, u->size, i % p->taps, taps, at, count,
             u->block + i * count * u->size,
             y + i / p->taps * p->out_plane * u->size);
  }
}

static void run_blocks(const unconv *u) {
  const pln_conv_plan *p = u->plan;
  begin_outputs(u);
  for (size_t i = 0; i < p->batch * p->groups; i++)
    for (size_t c = 0; c < p->out; c += u->channels)
      for (size_t at = 0; at < p->in_plane; at += u->positions)
        run_block(u, i / p->groups, i % p->groups, c,
                  min_size(u->channels, p->out - c), at,
                  min_size(u->positions, p->in_plane - at));
}

static pln_status run_unconv(pln_engine *engine, const pln_conv_plan *plan,
                             pln_tensor *const *args, pln_tensor *out) {
  pln_dtype dtype = (pln_dtype)out->dtype;
  unconv u = {.plan = plan,
              .size = pln_element_size(dtype),
              .x = args[0]->data,
              .w = args[1]->data,
              .bias = args[2] ? args[2]->data : NULL,
              .y = pln_tensor_writable(out)};
  if (plan->in == 0 || plan->in_plane == 0) {
    begin_outputs(&u);
    return PLN_OK;
  }
  u.positions =
      min_size(plan->in_plane, min_size(POSITIONS, BLOCK / plan->taps + 1));
  u.channels = min_size(plan->out, BLOCK / (plan->taps * u.positions) + 1);
  size_t bytes = u.channels * plan->taps * u.positions * u.size;
  PLN_TRY(pln_gemm_begin(engine, dtype, u.positions, plan->in, &u.gemm));
  u.block = pln_mem_new(engine, bytes);
  if (u.block)
    run_blocks(&u);
  pln_gemm_end(&u.gemm);
  if (!u.block)
    return pln_nomem(engine);
  pln_mem_free(engine, u.block, bytes);
  return PLN_OK;
}

pln_status pln_kernel_conv_transpose(pln_kernel_call *call) {
  pln_conv_plan plan;
  PLN_TRY(pln_conv_read_transposed(call, &plan));
  return pln_conv_compute(call, &plan, run_unconv);
}
