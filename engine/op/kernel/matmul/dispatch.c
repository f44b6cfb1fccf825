/* dispatch.c: chooses the loops for matrix products of a dtype. Called by the
 * kernels of products.
 *
 * Integers are multiplied as unsigned integers of at least 32 bits, so that
 * they wrap. */

#include "op/kernel/matmul/dispatch.h"

#define MULTIPLY(T, F)                                                       \
  static void multiply_##T(const pln_engine *engine, const pln_product *p) { \
    const T *a = p->a, *b = p->b;                                            \
    T *c = p->c;                                                             \
    size_t done = 0;                                                         \
    for (size_t i = 0; i < p->m; i++) {                                      \
      T *restrict to = c + i * p->c_row;                                     \
      memset(to, 0, p->n * sizeof *to);                                      \
      for (size_t k = 0; k < p->k; k++) {                                    \
        if (pln_is_stopped_after(engine, &done, p->n))                       \
          return;                                                            \
        const T x = a[i * p->a_row + k * p->a_col];                          \
        const T *row = b + k * p->b_row;                                     \
        for (size_t j = 0; j < p->n; j++)                                    \
          to[j] = (T)((F)to[j] + (F)x * (F)row[j * p->b_col]);               \
      }                                                                      \
    }                                                                        \
  }
MULTIPLY(uint8_t, uint32_t)
MULTIPLY(uint16_t, uint32_t)
MULTIPLY(uint32_t, uint32_t)
MULTIPLY(uint64_t, uint64_t)

typedef void (*plain_fn)(const pln_engine *engine, const pln_product *product);

static plain_fn plain_for(pln_dtype dtype) {
  switch (dtype) {
  case PLN_INT8:
  case PLN_UINT8: return multiply_uint8_t;
  case PLN_INT16:
  case PLN_UINT16: return multiply_uint16_t;
  case PLN_INT32:
  case PLN_UINT32: return multiply_uint32_t;
  case PLN_INT64:
  case PLN_UINT64: return multiply_uint64_t;
  default: return NULL;
  }
}

static bool has_float_tiles(pln_dtype dtype) {
  return dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64;
}

bool pln_matmul_supports(pln_dtype dtype) {
  return has_float_tiles(dtype) || plain_for(dtype);
}

pln_status pln_matmul_dispatch_begin(const pln_kernel_call *call,
                                     pln_dtype dtype, size_t n, size_t k,
                                     pln_matmul_dispatch *out) {
  *out =
      (pln_matmul_dispatch){.plain = plain_for(dtype), .engine = call->engine};
  if (has_float_tiles(dtype))
    return pln_gemm_begin(call->engine, dtype, n, k, &out->gemm);
  return out->plain ? PLN_OK : pln_kernel_no_dtype(call, dtype);
}

void pln_matmul_dispatch_run(const pln_matmul_dispatch *by,
                             const pln_product *product) {
  if (by->plain)
    by->plain(by->engine, product);
  else
    pln_gemm_run(&by->gemm, product);
}

void pln_matmul_dispatch_end(pln_matmul_dispatch *by) {
  if (!by->plain)
    pln_gemm_end(&by->gemm);
}

#define PAIRS(T, L, F)                                           \
  do {                                                           \
    const L *x = a, *y = b;                                      \
    T *to = c;                                                   \
    for (size_t i = 0; i < n; i++)                               \
      to[i * c_step] = (T)((F)x[i * a_step] * (F)y[i * b_step]); \
  } while (0)

void pln_multiply_elementwise(pln_dtype dtype, size_t n, const void *a,
                              size_t a_step, const void *b, size_t b_step,
                              void *c, size_t c_step) {
  switch (pln_dtype_bits(dtype)) {
  case 8: PAIRS(uint8_t, uint8_t, uint32_t); break;
  case 16: PAIRS(uint16_t, uint16_t, uint32_t); break;
  case 32:
    if (dtype == PLN_FLOAT32)
      PAIRS(float, pln_unaligned_float, float);
    else
      PAIRS(uint32_t, uint32_t, uint32_t);
    break;
  default:
    if (dtype == PLN_FLOAT64)
      PAIRS(double, pln_unaligned_double, double);
    else
      PAIRS(uint64_t, uint64_t, uint64_t);
    break;
  }
}
