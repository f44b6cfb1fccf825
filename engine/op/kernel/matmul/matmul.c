/* matmul.c: the kernels of matrix products. Called through ops.def.
 *
 * 16-bit floats go through float32, integers wrap. Scratch is allocated once
 * per call. */

#include "op/kernel/composed.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/matmul/dispatch.h"

/* ------------------------------------------------------------- 16-bit floats
 */

/* A 16-bit float tensor as float32, or the tensor itself, retained. */
static pln_status widened(const pln_tensor *in, pln_tensor **out) {
  if (pln_dtype_is_half((pln_dtype)in->dtype))
    return pln_tensor_to_float32(in, out);
  *out = pln_tensor_retain(in);
  return PLN_OK;
}

/* Sets result 0 to `in` as `dtype`; takes ownership of `in`. */
static pln_status narrowed(pln_kernel_call *call, pln_tensor *in,
                           pln_dtype dtype) {
  if (in->dtype == dtype) {
    call->results[0] = in;
    return PLN_OK;
  }
  pln_status status = pln_tensor_from_float32(in, dtype, &call->results[0]);
  pln_tensor_release(in);
  return status;
}

/* ------------------------------------------------------------------- matmul */

/* The batch axes of both operands, broadcast. */
typedef struct batches {
  uint32_t rank;
  int64_t dims[PLN_MAX_RANK];
  size_t a[PLN_MAX_RANK], b[PLN_MAX_RANK]; /* strides in elements; 0 repeats */
} batches;

static int64_t batch_dim(const pln_tensor *t, uint32_t from_end) {
  return from_end + 2 < t->rank ? t->dims[t->rank - 3 - from_end] : 1;
}

static bool plan_batches(const pln_tensor *a, const pln_tensor *b,
                         size_t a_size, size_t b_size, batches *out) {
  uint32_t ra = a->rank > 2 ? a->rank - 2 : 0,
           rb = b->rank > 2 ? b->rank - 2 : 0;
  out->rank = ra > rb ? ra : rb;
  for (uint32_t i = 0; i < out->rank; i++) {
    uint32_t at = out->rank - 1 - i;
    int64_t x = batch_dim(a, i), y = batch_dim(b, i);
    if (x != y && x != 1 && y != 1)
      return false;
    out->dims[at] = x == 1 ? y : x;
    out->a[at] = x == 1 ? 0 : a_size;
    out->b[at] = y == 1 ? 0 : b_size;
    a_size *= (size_t)x;
    b_size *= (size_t)y;
  }
  return true;
}

/* Runs a product per batch; `size` is that of an element. */
static void run_batches(const batches *s, const pln_matmul_dispatch *by,
                        pln_product p, size_t size, size_t count) {
  int64_t at[PLN_MAX_RANK] = {0};
  const char *a = p.a, *b = p.b;
  size_t done = 0;
  for (size_t i = 0; i < count; i++) {
    if (pln_is_stopped_after(by->engine, &done, p.m * p.n * p.k))
      return;
    p.a = a;
    p.b = b;
    pln_matmul_dispatch_run(by, &p);
    p.c = (char *)p.c + p.m * p.n * size;
    for (uint32_t k = s->rank; k-- > 0;) {
      a += s->a[k] * size;
      b += s->b[k] * size;
      if (++at[k] < s->dims[k])
        break;
      a -= s->a[k] * (size_t)s->dims[k] * size;
      b -= s->b[k] * (size_t)s->dims[k] * size;
      at[k] = 0;
    }
  }
}

/* Vectors are rows on the left and columns on the right. */
static bool plan_product(const pln_tensor *a, const pln_tensor *b,
                         pln_product *p) {
  if (a->rank == 0 || b->rank == 0)
    return false;
  int64_t k = b->rank == 1 ? b->dims[0] : b->dims[b->rank - 2];
  p->m = a->rank == 1 ? 1 : (size_t)a->dims[a->rank - 2];
  p->k = (size_t)a->dims[a->rank - 1];
  p->n = b->rank == 1 ? 1 : (size_t)b->dims[b->rank - 1];
  p->a_row = p->k;
  p->a_col = 1;
  p->b_row = p->n;
  p->b_col = 1;
  p->c_row = p->n;
  return p->k == (size_t)k;
}

/* The number of products. Matrices that share one right operand are merged into
 * one matrix of rows. */
static size_t join_batches(const pln_tensor *b, const batches *s,
                           pln_product *p) {
  size_t count = pln_dims_product(s->dims, 0, s->rank);
  if (b->rank > 2)
    return count;
  p->m *= count;
  return 1;
}

static pln_status multiply_tensors(pln_kernel_call *call, const pln_tensor *a,
                                   const pln_tensor *b, pln_tensor **out) {
  pln_product p = {0};
  batches s;
  pln_matmul_dispatch by;
  int64_t dims[PLN_MAX_RANK + 2];
  pln_dtype dtype = (pln_dtype)a->dtype;
  if (a->dtype != b->dtype || a->rank > PLN_MAX_RANK ||
      b->rank > PLN_MAX_RANK || !plan_product(a, b, &p) ||
      !plan_batches(a, b, p.m * p.k, p.k * p.n, &s))
    return pln_kernel_refuse(call, "operands do not match each other");
  uint32_t rank = s.rank;
  memcpy(dims, s.dims, rank * sizeof *dims);
  if (a->rank > 1)
    dims[rank++] = (int64_t)p.m;
  if (b->rank > 1)
    dims[rank++] = (int64_t)p.n;
  PLN_TRY(pln_matmul_dispatch_begin(call, dtype, p.n, p.k, &by));
  pln_status status = pln_tensor_unset(call->engine, dtype, rank, dims, out);
  if (status == PLN_OK && (*out)->count) {
    size_t count = join_batches(b, &s, &p);
    p.a = a->data;
    p.b = b->data;
    p.c = pln_tensor_writable(*out);
    run_batches(&s, &by, p, pln_element_size(dtype), count);
  }
  pln_matmul_dispatch_end(&by);
  return status;
}

/* Exchanges the last two axes. */
static const pln_tensor *transpose_matrices(pln_composition *s,
                                            const pln_tensor *x) {
  int64_t axes[PLN_MAX_RANK];
  if (!x || x->rank < 2 || x->rank > PLN_MAX_RANK) {
    pln_composition_refuse(s, "a transposed operand is no matrix");
    return NULL;
  }
  for (uint32_t i = 0; i < x->rank; i++)
    axes[i] = i;
  axes[x->rank - 2] = x->rank - 1;
  axes[x->rank - 1] = x->rank - 2;
  return pln_compose_transpose(s, x, x->rank, axes);
}

/* Relay's form: operands cast to out_dtype, and transposed. */
static pln_status multiply_relay_form(pln_kernel_call *call) {
  static const char *const transposed[2] = {"transpose_a", "transpose_b"};
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "out_dtype", "");
  pln_dtype dtype = name.size ? pln_dtype_find(name) : PLN_DTYPE_NONE;
  const pln_tensor *args[2] = {pln_kernel_arg(call, 0),
                               pln_kernel_arg(call, 1)};
  pln_composition s;
  pln_composition_begin(&s, call);
  for (uint32_t i = 0; i < 2; i++) {
    if (dtype && !pln_dtype_contains(dtype, (pln_dtype)args[i]->dtype))
      pln_composition_refuse(&s, "out_dtype is narrower than the operands");
    if (dtype)
      args[i] = pln_compose_cast(&s, args[i], dtype);
    if (pln_kernel_int(call, transposed[i], 0))
      args[i] = transpose_matrices(&s, args[i]);
  }
  return pln_composition_finish(&s,
                                pln_compose_call(&s, PLN_OP_MAT_MUL, 2, args));
}

static bool has_relay_form(const pln_kernel_call *call, const pln_tensor *a) {
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "out_dtype", "");
  return pln_kernel_int(call, "transpose_a", 0) ||
         pln_kernel_int(call, "transpose_b", 0) ||
         (name.size &&
          !pln_slice_is(name, pln_dtype_name((pln_dtype)a->dtype)));
}

pln_status pln_kernel_matmul(pln_kernel_call *call) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  pln_tensor *x, *y, *out = NULL;
  if (!a || !b)
    return pln_kernel_refuse(call, "operands do not match each other");
  if (has_relay_form(call, a))
    return multiply_relay_form(call);
  if (a->dtype != b->dtype)
    return pln_kernel_refuse(call, "operands do not match each other");
  PLN_TRY(widened(a, &x));
  pln_status status = widened(b, &y);
  if (status == PLN_OK) {
    status = multiply_tensors(call, x, y, &out);
    pln_tensor_release(y);
  }
  pln_tensor_release(x);
  return status == PLN_OK ? narrowed(call, out, (pln_dtype)a->dtype) : status;
}

/* --------------------------------------------------------------------- gemm */

/* Extent and stride of C along one axis of the result, counted from the end. */
static bool c_step(const pln_tensor *c, uint32_t from_end, size_t extent,
                   size_t *step) {
  int64_t dim = from_end < c->rank ? c->dims[c->rank - 1 - from_end] : 1;
  size_t pace = from_end && c->rank > 1 ? (size_t)c->dims[c->rank - 1] : 1;
  *step = dim == 1 ? 0 : pace;
  return dim == 1 || (size_t)dim == extent;
}

/* out = alpha * out + beta * C, in the dtype of the product. */
#define FINISH(T, L, F)                                                       \
  static void finish_##T(void *out, const void *c, size_t m, size_t n,        \
                         size_t row, size_t col, double alpha, double beta) { \
    T *to = out;                                                              \
    const L *from = c;                                                        \
    const F x = (F)alpha, y = (F)beta;                                        \
    for (size_t i = 0; i < m; i++)                                            \
      for (size_t j = 0; j < n; j++) {                                        \
        F sum = x * (F)to[i * n + j];                                         \
        if (c)                                                                \
          sum += y * (F)from[i * row + j * col];                              \
        to[i * n + j] = (T)sum;                                               \
      }                                                                       \
  }
FINISH(float, pln_unaligned_float, float)
FINISH(double, pln_unaligned_double, double)
FINISH(uint8_t, uint8_t, uint32_t)
FINISH(uint16_t, uint16_t, uint32_t)
FINISH(uint32_t, uint32_t, uint32_t)
FINISH(uint64_t, uint64_t, uint64_t)

typedef void (*finish_fn)(void *out, const void *c, size_t m, size_t n,
                          size_t row, size_t col, double alpha, double beta);
/* For every supported dtype; integers wrap. */
static finish_fn finisher(pln_dtype dtype) {
  if (dtype == PLN_FLOAT32)
    return finish_float;
  if (dtype == PLN_FLOAT64)
    return finish_double;
  switch (pln_dtype_bits(dtype)) {
  case 8: return finish_uint8_t;
  case 16: return finish_uint16_t;
  case 32: return finish_uint32_t;
  default: return finish_uint64_t;
  }
}

/* Factors of an integer product must be small integers. */
static bool fits_factors(pln_dtype dtype, double alpha, double beta) {
  if (dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64)
    return true;
  return alpha >= 0 && alpha <= 1e6 && alpha == (double)(int)alpha &&
         beta >= 0 && beta <= 1e6 && beta == (double)(int)beta;
}

static bool plan_gemm(const pln_kernel_call *call, const pln_tensor *a,
                      const pln_tensor *b, pln_product *p) {
  if (a->rank != 2 || b->rank != 2)
    return false;
  bool ta = pln_kernel_int(call, "transA", 0) != 0;
  bool tb = pln_kernel_int(call, "transB", 0) != 0;
  size_t a_step = (size_t)a->dims[1], b_step = (size_t)b->dims[1];
  p->m = (size_t)a->dims[ta];
  p->k = (size_t)a->dims[!ta];
  p->n = (size_t)b->dims[!tb];
  p->a_row = ta ? 1 : a_step;
  p->a_col = ta ? a_step : 1;
  p->b_row = tb ? 1 : b_step;
  p->b_col = tb ? b_step : 1;
  p->c_row = p->n;
  p->a = a->data;
  p->b = b->data;
  return p->k == (size_t)b->dims[tb];
}

static pln_status gemm(pln_kernel_call *call, const pln_tensor *a,
                       const pln_tensor *b, const pln_tensor *c,
                       pln_tensor **out) {
  pln_product p = {0};
  pln_matmul_dispatch by;
  size_t row = 0, col = 0;
  pln_dtype dtype = (pln_dtype)a->dtype;
  double alpha = pln_kernel_float(call, "alpha", 1);
  double beta = pln_kernel_float(call, "beta", 1);
  if (!plan_gemm(call, a, b, &p) || !fits_factors(dtype, alpha, beta) ||
      (c &&
       (c->rank > 2 || !c_step(c, 0, p.n, &col) || !c_step(c, 1, p.m, &row))))
    return pln_kernel_refuse(call, "operands do not match each other");
  int64_t dims[2] = {(int64_t)p.m, (int64_t)p.n};
  PLN_TRY(pln_matmul_dispatch_begin(call, dtype, p.n, p.k, &by));
  pln_status status = pln_tensor_unset(call->engine, dtype, 2, dims, out);
  if (status == PLN_OK && (*out)->count) {
    p.c = pln_tensor_writable(*out);
    pln_matmul_dispatch_run(&by, &p);
    if (c || alpha != 1)
      finisher(dtype)(p.c, c ? c->data : NULL, p.m, p.n, row, col, alpha, beta);
  }
  pln_matmul_dispatch_end(&by);
  return status;
}

pln_status pln_kernel_gemm(pln_kernel_call *call) {
  pln_tensor *wide[3] = {NULL, NULL, NULL}, *out = NULL;
  pln_status status = PLN_OK;
  const pln_tensor *first = pln_kernel_arg(call, 0);
  for (uint32_t i = 0; i < 3 && status == PLN_OK; i++) {
    const pln_tensor *arg = pln_kernel_arg(call, i);
    if (!arg && i == 2)
      continue;
    if (!arg || arg->dtype != first->dtype)
      status = pln_kernel_refuse(call, "operands do not match each other");
    else
      status = widened(arg, &wide[i]);
  }
  if (status == PLN_OK)
    status = gemm(call, wide[0], wide[1], wide[2], &out);
  for (uint32_t i = 0; i < 3; i++)
    pln_tensor_release(wide[i]);
  if (status != PLN_OK)
    return status;
  return narrowed(call, out, (pln_dtype)first->dtype);
}
