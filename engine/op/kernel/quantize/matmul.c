/* matmul.c: the types and kernels of quantised matrix products and
 * convolutions. Called through ops.def.
 *
 * Byte products with one right matrix, and convolutions with a one-element
 * window, are computed by integer_gemm.h. Otherwise operands minus their zero
 * points become floats, which the float kernels multiply: in float32 if the
 * greatest possible sum of these operands is exact there, else in float64. So
 * sums are exact, and padding has the value of the zero point.
 *
 * Every partial sum of 8-bit integers is exact; sums wrap as int32. 8-bit
 * floats are summed in float32. */

#include <math.h>

#include "op/infer/matmul.h"
#include "op/infer/window.h"
#include "op/kernel/elementwise/small_float.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/matmul/integer_gemm.h"
#include "op/kernel/multiversion.h"

/* Integers of a smaller magnitude are exact in a float. */
static const double EXACT = 1 << 24;

/* ------------------------------------------------------------------ numbers */

static bool is_byte(const pln_tensor *t) {
  return t->dtype == PLN_INT8 || t->dtype == PLN_UINT8;
}

static bool is_small(const pln_tensor *t) {
  return pln_is_small_float((pln_dtype)t->dtype) &&
         pln_element_size((pln_dtype)t->dtype) == 1;
}

PLN_MULTIVERSION static void widen_signed(const int8_t *from, float *to,
                                          size_t n) {
  for (size_t i = 0; i < n; i++)
    to[i] = from[i];
}

PLN_MULTIVERSION static void widen_unsigned(const uint8_t *from, float *to,
                                            size_t n) {
  for (size_t i = 0; i < n; i++)
    to[i] = from[i];
}

static void widen_small(const pln_tensor *t, float *to) {
  const uint8_t *bits = t->data;
  for (size_t i = 0; i < t->count; i++)
    to[i] = (float)pln_small_to_double((pln_dtype)t->dtype, bits[i]);
}

/* Converts bytes, small floats or 16-bit floats to a new float tensor. */
static pln_status as_floats(const pln_kernel_call *call, const pln_tensor *t,
                            pln_tensor **out) {
  pln_dtype dtype = (pln_dtype)t->dtype;
  if (pln_dtype_is_half(dtype))
    return pln_tensor_to_float32(t, out);
  if (!is_byte(t) && !is_small(t) && dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, dtype);
  pln_status status = PLN_OK;
  PLN_TRY(pln_tensor_unset(call->engine, PLN_FLOAT32, t->rank, t->dims, out));
  float *to = pln_tensor_writable(*out);
  if (dtype == PLN_INT8)
    widen_signed(t->data, to, t->count);
  else if (dtype == PLN_UINT8)
    widen_unsigned(t->data, to, t->count);
  else if (is_small(t))
    widen_small(t, to);
  else if (t->count)
    status = pln_copy_bytes(call->engine, to, t->data, t->bytes);
  if (status != PLN_OK) {
    pln_tensor_release(*out);
    *out = NULL;
  }
  return status;
}

/* --------------------------------------------------------------- parameters */

/* A scale or zero point broadcast over a tensor. */
typedef struct spread_operand {
  pln_tensor *tensor; /* as floats; NULL: omitted */
  const float *data;
  size_t step[PLN_MAX_RANK]; /* stride by axis of the other tensor */
} spread_operand;

static void free_spread(spread_operand *s) {
  pln_tensor_release(s->tensor);
  s->tensor = NULL;
}

/* Computes the strides of a broadcast operand; false unless each trailing
 * extent is that of the tensor, or 1. */
static bool spread_axes(const pln_tensor *t, uint32_t rank, const int64_t *dims,
                        spread_operand *s) {
  size_t step = 1;
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t dim = t->dims[t->rank - 1 - i];
    if (i >= rank ? dim != 1 : dim != 1 && dim != dims[rank - 1 - i])
      return false;
    if (dim != 1)
      s->step[rank - 1 - i] = step;
    step *= (size_t)dim;
  }
  return true;
}

/* Reads argument `i`, broadcast over a tensor of those dims: a scalar, a vector
 * along `axis`, or a tensor that broadcasts. */
static pln_status read_spread(const pln_kernel_call *call, uint32_t i,
                              uint32_t axis, uint32_t rank, const int64_t *dims,
                              spread_operand *out) {
  const pln_tensor *t = pln_kernel_arg(call, i);
  bool fits = true;
  *out = (spread_operand){0};
  if (!t)
    return PLN_OK;
  if (t->count == 1)
    fits = true;
  else if (t->rank == 1 && axis < rank && t->dims[0] == dims[axis])
    out->step[axis] = 1;
  else
    fits =
        t->rank > 1 && rank <= PLN_MAX_RANK && spread_axes(t, rank, dims, out);
  if (!fits)
    return pln_kernel_refuse(
        call, "operand %u does not match the tensor that it scales or shifts",
        i);
  PLN_TRY(as_floats(call, t, &out->tensor));
  out->data = out->tensor->data;
  return PLN_OK;
}

/* The rows of a tensor, and the position of a spread operand at each. */
typedef struct rows {
  uint32_t rank; /* axes before the last */
  const int64_t *dims;
  int64_t at[PLN_MAX_RANK];
  size_t count, length;
} rows;

static rows rows_of(uint32_t rank, const int64_t *dims) {
  rows r = {.rank = rank ? rank - 1 : 0, .dims = dims};
  r.length = rank ? (size_t)dims[rank - 1] : 1;
  r.count = pln_dims_product(dims, 0, r.rank);
  return r;
}

static const float *at_row(const rows *r, const spread_operand *s) {
  size_t offset = 0;
  for (uint32_t i = 0; i < r->rank; i++)
    offset += (size_t)r->at[i] * s->step[i];
  return s->data + offset;
}

static void next_row(rows *r) {
  for (uint32_t i = r->rank; i-- > 0; r->at[i] = 0)
    if (++r->at[i] < r->dims[i])
      return;
}

/* ----------------------------------------------------------------- operands */

PLN_MULTIVERSION static void shift(float *x, size_t n, const float *zero,
                                   size_t step) {
  if (step == 0)
    for (size_t i = 0; i < n; i++)
      x[i] -= *zero;
  else
    for (size_t i = 0; i < n; i++)
      x[i] -= zero[i];
}

/* Computes argument `i` minus its zero point, argument `zero`, as floats. */
static pln_status centred(const pln_kernel_call *call, uint32_t i,
                          uint32_t zero, uint32_t axis, pln_tensor **out) {
  const pln_tensor *t = pln_kernel_arg(call, i),
                   *z = pln_kernel_arg(call, zero);
  spread_operand s;
  if (!t || t->rank > PLN_MAX_RANK || !(is_byte(t) || is_small(t)) ||
      (z && z->dtype != t->dtype))
    return pln_kernel_refuse(call, "operand %u is not quantised", i);
  PLN_TRY(read_spread(call, zero, axis, t->rank, t->dims, &s));
  pln_status status = as_floats(call, t, out);
  if (status == PLN_OK && s.tensor && t->count) {
    float *x = pln_tensor_writable(*out);
    rows r = rows_of(t->rank, t->dims);
    size_t step = t->rank ? s.step[t->rank - 1] : 0;
    for (size_t k = 0; k < r.count; k++, x += r.length, next_row(&r))
      shift(x, r.length, at_row(&r, &s), step);
  }
  free_spread(&s);
  return status;
}

PLN_MULTIVERSION static float greatest(const float *x, size_t n) {
  float most = 0;
  for (size_t i = 0; i < n; i++)
    most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  return most;
}

/* Returns the greatest sum of absolute values over `length` contiguous
 * elements. */
static double heaviest(const pln_tensor *t, size_t length) {
  const float *x = t->data;
  double most = 0;
  for (size_t i = 0; length && i < t->count; i += length) {
    int64_t sum = 0;
    for (size_t k = 0; k < length; k++)
      sum += (int32_t)fabsf(x[i + k]);
    most = (double)sum > most ? (double)sum : most;
  }
  return most;
}

static pln_status doubled(pln_tensor **t) {
  pln_tensor *from = *t;
  PLN_TRY(
      pln_tensor_unset(from->engine, PLN_FLOAT64, from->rank, from->dims, t));
  const float *x = from->data;
  double *to = pln_tensor_writable(*t);
  for (size_t i = 0; i < from->count; i++)
    to[i] = (double)x[i];
  pln_tensor_release(from);
  return PLN_OK;
}

/* The two operands of a product, and its result. */
typedef struct exact_product {
  pln_tensor *a, *b, *sum;
} exact_product;

static void drop_operands(exact_product *e) {
  pln_tensor_release(e->a);
  pln_tensor_release(e->b);
  e->a = e->b = NULL;
}

/* Converts both operands to float64 unless all sums are exact in float32. A sum
 * has up to `length` products, of elements of `light` with contiguous elements
 * of `heavy`. */
static pln_status make_exact(pln_tensor **heavy, pln_tensor **light,
                             size_t length) {
  double most = (double)greatest((*light)->data, (*light)->count);
  if (heaviest(*heavy, length) * most < EXACT)
    return PLN_OK;
  PLN_TRY(doubled(heavy));
  return doubled(light);
}

/* Runs a kernel for floats on a and b. */
static pln_status run_exact_product(const pln_kernel_call *call,
                                    pln_kernel_fn kernel, exact_product *e) {
  const pln_tensor *args[2] = {e->a, e->b};
  pln_kernel_call floats = *call;
  floats.n_args = 2;
  floats.args = args;
  floats.n_results = 1;
  floats.results = &e->sum;
  return kernel(&floats);
}

/* --------------------------------------------------------- bytes by a matrix
 */

/* The zero points of an operand as int16: a scalar, or one per row or
 * column. */
typedef struct zeros {
  int16_t one;
  int16_t *many; /* NULL: there is one */
  size_t bytes;
} zeros;

static int16_t byte_at(const pln_tensor *t, size_t i) {
  return t->dtype == PLN_INT8 ? ((const int8_t *)t->data)[i]
                              : ((const uint8_t *)t->data)[i];
}

static pln_status read_zeros(const pln_kernel_call *call, uint32_t i,
                             zeros *out) {
  const pln_tensor *t = pln_kernel_arg(call, i);
  *out = (zeros){0};
  if (t && t->count == 1)
    out->one = byte_at(t, 0);
  if (!t || t->count <= 1)
    return PLN_OK;
  out->bytes = t->count * sizeof *out->many;
  out->many = pln_mem_new(call->engine, out->bytes);
  if (!out->many)
    return pln_nomem(call->engine);
  for (size_t k = 0; k < t->count; k++)
    out->many[k] = byte_at(t, k);
  return PLN_OK;
}

static bool zero_fits(const pln_tensor *t, const pln_tensor *zero,
                      int64_t extent) {
  return !zero ||
         (zero->dtype == t->dtype &&
          (zero->count == 1 || (zero->rank == 1 && zero->dims[0] == extent)));
}

/* Returns true for a product of rows of bytes, in any batches, and one matrix
 * of bytes. */
static bool are_matrices(const pln_tensor *x, const pln_tensor *y,
                         const pln_tensor *x_zero, const pln_tensor *y_zero) {
  return is_byte(x) && is_byte(y) && x->rank >= 2 && x->rank <= PLN_MAX_RANK &&
         y->rank == 2 && x->dims[x->rank - 1] == y->dims[0] &&
         zero_fits(x, x_zero, x->rank == 2 ? x->dims[0] : 1) &&
         zero_fits(y, y_zero, y->dims[1]);
}

/* `count` products of m x k bytes, argument a, by k x n, argument b; an operand
 * shared by all has stride 0. */
typedef struct byte_products {
  uint32_t a, b, a_zero, b_zero; /* arguments */
  size_t m, n, k, count;
  size_t a_step, b_step;
} byte_products;

static void set_operands(const pln_kernel_call *call, const byte_products *s,
                         const zeros *a, const zeros *b,
                         pln_integer_product *p) {
  *p = (pln_integer_product){.m = s->m,
                             .n = s->n,
                             .k = s->k,
                             .a = call->args[s->a]->data,
                             .b = call->args[s->b]->data,
                             .a_signed = call->args[s->a]->dtype == PLN_INT8,
                             .b_signed = call->args[s->b]->dtype == PLN_INT8,
                             .a_zero = a->many ? a->many : &a->one,
                             .b_zero = b->many ? b->many : &b->one,
                             .a_zero_step = a->many != NULL,
                             .b_zero_step = b->many != NULL};
}

static pln_status multiply_bytes(const pln_kernel_call *call,
                                 const byte_products *s, int32_t *out) {
  zeros a, b = {0};
  pln_integer_product p;
  pln_status status = read_zeros(call, s->a_zero, &a);
  if (status == PLN_OK)
    status = read_zeros(call, s->b_zero, &b);
  set_operands(call, s, &a, &b, &p);
  p.c = out;
  for (size_t i = 0; i < s->count && status == PLN_OK; i++) {
    status = pln_integer_multiply(call->engine, &p);
    p.a = (const char *)p.a + s->a_step;
    p.b = (const char *)p.b + s->b_step;
    p.c += s->m * s->n;
  }
  pln_mem_free(call->engine, a.many, a.bytes);
  pln_mem_free(call->engine, b.many, b.bytes);
  return status;
}

/* Multiplies rows of argument 0 by the matrix in argument `b`. */
static pln_status multiply_rows(const pln_kernel_call *call, uint32_t b,
                                uint32_t a_zero, uint32_t b_zero,
                                pln_tensor **out) {
  const pln_tensor *x = call->args[0], *y = call->args[b];
  int64_t dims[PLN_MAX_RANK];
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank - 1] = y->dims[1];
  byte_products s = {.b = b,
                     .a_zero = a_zero,
                     .b_zero = b_zero,
                     .m = pln_dims_product(dims, 0, x->rank - 1),
                     .n = (size_t)y->dims[1],
                     .k = (size_t)y->dims[0],
                     .count = 1};
  PLN_TRY(pln_tensor_unset(call->engine, PLN_INT32, x->rank, dims, out));
  return multiply_bytes(call, &s, pln_tensor_writable(*out));
}

/* Returns true if the attribute is missing, or a list of `count` times that
 * value. */
static bool are_all(const pln_kernel_call *call, const char *name,
                    uint32_t count, int64_t value) {
  pln_list list = pln_kernel_list(call, PLN_NONE, name);
  for (uint32_t i = 0; i < list.count; i++)
    if (!list.ints || list.ints[i] != value)
      return false;
  return list.count == 0 || list.count == count;
}

/* Returns true for a convolution with a window of one element and stride 1 over
 * all channels: weights and images are matrices. */
static bool is_pointwise(const pln_kernel_call *call, const pln_tensor *x,
                         const pln_tensor *w, const pln_tensor *x_zero,
                         const pln_tensor *w_zero) {
  if (!is_byte(x) || x->rank != w->rank || x->rank < 3 ||
      x->rank > PLN_MAX_RANK || x->dims[1] != w->dims[1])
    return false;
  uint32_t space = x->rank - 2;
  for (uint32_t i = 0; i < space; i++)
    if (w->dims[i + 2] != 1)
      return false;
  return pln_kernel_int(call, "group", 1) == 1 &&
         are_all(call, "kernel_shape", space, 1) &&
         are_all(call, "strides", space, 1) &&
         are_all(call, "dilations", space, 1) &&
         are_all(call, "pads", 2 * space, 0) && zero_fits(x, x_zero, 1) &&
         zero_fits(w, w_zero, w->dims[0]);
}

static pln_status convolve_points(const pln_kernel_call *call, uint32_t w,
                                  uint32_t x_zero, uint32_t w_zero,
                                  pln_tensor **out) {
  const pln_tensor *x = call->args[0], *weights = call->args[w];
  int64_t dims[PLN_MAX_RANK];
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[1] = weights->dims[0];
  byte_products s = {.a = w,
                     .a_zero = w_zero,
                     .b_zero = x_zero,
                     .m = (size_t)dims[1],
                     .n = pln_dims_product(dims, 2, x->rank),
                     .k = (size_t)x->dims[1],
                     .count = (size_t)dims[0]};
  s.b_step = s.k * s.n;
  PLN_TRY(pln_tensor_unset(call->engine, PLN_INT32, x->rank, dims, out));
  return multiply_bytes(call, &s, pln_tensor_writable(*out));
}

/* ------------------------------------------------------- products, in floats
 */

/* Multiplies argument 0 by argument `b`; their zero points are arguments a_zero
 * and b_zero. */
static pln_status multiply_exact(const pln_kernel_call *call, uint32_t b,
                                 uint32_t a_zero, uint32_t b_zero,
                                 exact_product *e) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, b);
  *e = (exact_product){0};
  if (!x || !y || x->rank == 0 || y->rank == 0)
    return pln_kernel_refuse(call, "operands do not match each other");
  if (are_matrices(x, y, pln_kernel_arg(call, a_zero),
                   pln_kernel_arg(call, b_zero)))
    return multiply_rows(call, b, a_zero, b_zero, &e->sum);
  uint32_t row = x->rank > 1 ? x->rank - 2 : PLN_MAX_RANK;
  uint32_t column = y->rank > 1 ? y->rank - 1 : PLN_MAX_RANK;
  pln_status status = centred(call, 0, a_zero, row, &e->a);
  if (status == PLN_OK)
    status = centred(call, b, b_zero, column, &e->b);
  if (status == PLN_OK && is_byte(x) && is_byte(y))
    status = make_exact(&e->a, &e->b, (size_t)x->dims[x->rank - 1]);
  if (status == PLN_OK)
    status = run_exact_product(call, pln_kernel_matmul, e);
  drop_operands(e);
  return status;
}

static pln_status convolve_quantized(const pln_kernel_call *call, uint32_t w,
                                     uint32_t x_zero, uint32_t w_zero,
                                     exact_product *e) {
  const pln_tensor *weights = pln_kernel_arg(call, w),
                   *zero = pln_kernel_arg(call, x_zero);
  *e = (exact_product){0};
  if (!pln_kernel_arg(call, 0) || !weights || weights->rank == 0 ||
      !is_byte(weights) || (zero && zero->count != 1))
    return pln_kernel_refuse(call, "operands do not match each other");
  if (is_pointwise(call, call->args[0], weights, zero,
                   pln_kernel_arg(call, w_zero)))
    return convolve_points(call, w, x_zero, w_zero, &e->sum);
  pln_status status = centred(call, 0, x_zero, 0, &e->a);
  if (status == PLN_OK)
    status = centred(call, w, w_zero, 0, &e->b);
  if (status == PLN_OK)
    status = make_exact(&e->b, &e->a,
                        pln_dims_product(weights->dims, 1, weights->rank));
  if (status == PLN_OK)
    status = run_exact_product(call, pln_kernel_conv, e);
  drop_operands(e);
  return status;
}

/* ----------------------------------------------------------------- integers */

/* Converts exact sums to int32. */
PLN_MULTIVERSION static void to_integers(const float *x, int32_t *to,
                                         size_t n) {
  for (size_t i = 0; i < n; i++)
    to[i] = (int32_t)x[i];
}

static void wrap_integers(const double *x, int32_t *to, size_t n) {
  for (size_t i = 0; i < n; i++)
    to[i] = (int32_t)(uint32_t)(int64_t)x[i];
}

static void read_sums(const pln_tensor *sum, size_t first, size_t n,
                      int32_t *to) {
  if (sum->dtype == PLN_INT32)
    memcpy(to, (const int32_t *)sum->data + first, n * sizeof *to);
  else if (sum->dtype == PLN_FLOAT32)
    to_integers((const float *)sum->data + first, to, n);
  else
    wrap_integers((const double *)sum->data + first, to, n);
}

static pln_status give_integers(pln_kernel_call *call, exact_product *e) {
  void *data;
  if (e->sum->dtype == PLN_INT32) {
    call->results[0] = e->sum;
    return PLN_OK;
  }
  pln_status status =
      pln_kernel_result(call, 0, PLN_INT32, e->sum->rank, e->sum->dims, &data);
  if (status == PLN_OK)
    read_sums(e->sum, 0, e->sum->count, data);
  pln_tensor_release(e->sum);
  return status;
}

static bool are_bytes(const pln_kernel_call *call) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  return a && b && is_byte(a) && is_byte(b);
}

pln_status pln_kernel_matmul_integer(pln_kernel_call *call) {
  exact_product e;
  if (!are_bytes(call))
    return pln_kernel_refuse(call, "operands are not bytes");
  PLN_TRY(multiply_exact(call, 1, 2, 3, &e));
  return give_integers(call, &e);
}

pln_status pln_kernel_conv_integer(pln_kernel_call *call) {
  exact_product e;
  if (!are_bytes(call))
    return pln_kernel_refuse(call, "operands are not bytes");
  PLN_TRY(convolve_quantized(call, 1, 2, 3, &e));
  return give_integers(call, &e);
}

/* ---------------------------------------------------------------- quantised */

/* How sums become results: the scales of a, b and the result, the result's zero
 * point, and the bias. */
typedef struct quantizer {
  pln_kernel_call *call;
  const exact_product *e;
  pln_dtype dtype;
  spread_operand a, b, y, zero;
  const int32_t *bias; /* by element of axis 1, or NULL */
} quantizer;

/* Elements that are quantised at a time. */
enum { RUN = 256 };

/* Converts sums to bytes; false if a scaled sum is NaN. */
PLN_MULTIVERSION static bool round_products(const int32_t *sum,
                                            const float *scale,
                                            const float *zero, bool is_signed,
                                            size_t n, uint8_t *to) {
  const float least = is_signed ? -128 : 0, most = is_signed ? 127 : 255;
  bool defined = true;
  for (size_t i = 0; i < n; i++) {
    float x = (float)sum[i] * scale[i];
    defined &= x == x;
    x = x > least - zero[i] ? x : least - zero[i];
    x = x < most - zero[i] ? x : most - zero[i];
    to[i] = (uint8_t)(int32_t)(nearbyintf(x) + zero[i]);
  }
  return defined;
}

/* Converts float sums to small floats. */
static void narrow_run(const quantizer *q, const float *sum, const float *scale,
                       const float *zero, size_t n, uint8_t *to) {
  for (size_t i = 0; i < n; i++) {
    float x = sum[i] * scale[i] + zero[i];
    to[i] = pln_double_to_small(q->dtype, (double)x, true);
  }
}

/* Quantises the elements [first, first + n) of a row that begins at element
 * `start`. */
static bool quantize_run(const quantizer *q, const rows *r, size_t start,
                         size_t first, size_t n, uint8_t *to) {
  float scale[RUN], zero[RUN];
  int32_t sum[RUN];
  uint32_t last = r->rank;
  const float *a = at_row(r, &q->a), *b = at_row(r, &q->b);
  const float *y = at_row(r, &q->y), *z = at_row(r, &q->zero);
  for (size_t i = 0; i < n; i++) {
    size_t at = first + i;
    scale[i] = a[at * q->a.step[last]] * b[at * q->b.step[last]] /
               y[at * q->y.step[last]];
    zero[i] = z[at * q->zero.step[last]];
  }
  if (pln_is_small_float(q->dtype)) {
    narrow_run(q, (const float *)q->e->sum->data + start + first, scale, zero,
               n, to);
    return true;
  }
  read_sums(q->e->sum, start + first, n, sum);
  for (size_t i = 0; q->bias && i < n; i++)
    sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)q->bias[r->at[1]]);
  return round_products(sum, scale, zero, q->dtype == PLN_INT8, n, to);
}

static pln_status quantize(const quantizer *q) {
  const pln_tensor *sum = q->e->sum;
  void *data;
  PLN_TRY(pln_kernel_result(q->call, 0, q->dtype, sum->rank, sum->dims, &data));
  rows r = rows_of(sum->rank, sum->dims);
  uint8_t *to = data;
  for (size_t i = 0; sum->count && i < r.count; i++, next_row(&r))
    for (size_t k = 0; k < r.length; k += RUN) {
      size_t n = r.length - k < RUN ? r.length - k : RUN;
      size_t start = i * r.length;
      if (!quantize_run(q, &r, start, k, n, to + start + k))
        return pln_kernel_undefined(q->call);
    }
  return PLN_OK;
}

/* Reads scales along axes of the result, and quantises; takes ownership of the
 * sum. */
static pln_status give_quantized(pln_kernel_call *call, uint32_t a_axis,
                                 uint32_t b_axis, uint32_t y_axis,
                                 exact_product *e) {
  const pln_tensor *zero = pln_kernel_arg(call, 7), *sum = e->sum,
                   *bias = pln_kernel_arg(call, 8);
  quantizer q = {.call = call, .e = e, .dtype = (pln_dtype)zero->dtype};
  if (bias)
    q.bias = bias->data;
  pln_status status = read_spread(call, 1, a_axis, sum->rank, sum->dims, &q.a);
  if (status == PLN_OK)
    status = read_spread(call, 4, b_axis, sum->rank, sum->dims, &q.b);
  if (status == PLN_OK)
    status = read_spread(call, 6, y_axis, sum->rank, sum->dims, &q.y);
  if (status == PLN_OK)
    status = read_spread(call, 7, y_axis, sum->rank, sum->dims, &q.zero);
  if (status == PLN_OK)
    status = quantize(&q);
  free_spread(&q.a);
  free_spread(&q.b);
  free_spread(&q.y);
  free_spread(&q.zero);
  pln_tensor_release(e->sum);
  return status;
}

/* Checks that scales and zero points are present and consistent. */
static pln_status check_quantized(const pln_kernel_call *call) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 3),
                   *y = pln_kernel_arg(call, 7);
  for (uint32_t i = 0; i < 8; i++)
    if (!pln_kernel_arg(call, i))
      return pln_kernel_refuse(call, "operand %u is omitted", i);
  bool bytes = is_byte(a) && is_byte(b) && is_byte(y);
  if (!bytes && !(is_small(a) && is_small(b) && is_small(y)))
    return pln_kernel_refuse(call, "operands are quantised differently");
  for (uint32_t i = 1; i < 7; i += i == 1 ? 3 : 2)
    if (is_byte(call->args[i]) || is_small(call->args[i]))
      return pln_kernel_refuse(call, "operand %u is not a scale", i);
  return PLN_OK;
}

pln_status pln_kernel_qlinear_matmul(pln_kernel_call *call) {
  exact_product e;
  PLN_TRY(check_quantized(call));
  PLN_TRY(multiply_exact(call, 3, 2, 5, &e));
  bool left = call->args[0]->rank > 1, right = call->args[3]->rank > 1;
  uint32_t rank = e.sum->rank;
  uint32_t row = left ? rank - 1 - right : PLN_MAX_RANK;
  return give_quantized(call, row, right ? rank - 1 : PLN_MAX_RANK, row, &e);
}

/* Checks that the bias is int32, with one element for each filter. */
static pln_status check_bias(const pln_kernel_call *call) {
  const pln_tensor *bias = pln_kernel_arg(call, 8), *w = call->args[3];
  if (!bias || (bias->dtype == PLN_INT32 && bias->rank == 1 && w->rank > 1 &&
                bias->dims[0] == w->dims[0]))
    return PLN_OK;
  return pln_kernel_refuse(call, "the bias must be an int32 for each filter");
}

pln_status pln_kernel_qlinear_conv(pln_kernel_call *call) {
  exact_product e;
  PLN_TRY(check_quantized(call));
  PLN_TRY(check_bias(call));
  PLN_TRY(convolve_quantized(call, 3, 2, 5, &e));
  return give_quantized(call, PLN_MAX_RANK, 1, PLN_MAX_RANK, &e);
}

/* ------------------------------------------------------------------- types */

/* The type of qlinear_conv: (x, scale, zero, w, scale, zero, scale of y, zero
 * of y, bias). */
pln_status pln_infer_qlinear_conv(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_conv_shape(call, 0, 3, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 7), &shape);
}

pln_status pln_infer_qlinear_matmul(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_product_shape(call, 0, 3, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 7), &shape);
}

pln_status pln_infer_conv_integer(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_conv_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, PLN_INT32, &shape);
}

pln_status pln_infer_matmul_integer(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_product_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, PLN_INT32, &shape);
}
