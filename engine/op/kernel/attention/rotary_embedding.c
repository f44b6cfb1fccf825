/* rotary_embedding.c: rotary_embedding: rotates pairs of elements of each head
 * by an angle that depends on the step's position. Called through ops.def.
 * Cosines and sines are given as tables, by position or by batch and step. */

#include "op/kernel/half_as_float.h"
#include "op/kernel/indices.h"
#include "op/kernel/multiversion.h"

/* Rotates the first 2 n elements of a head; the elements of a pair are n apart,
 * or adjacent. */
#define ROTATE(T)                                                              \
  PLN_MULTIVERSION static void halves_##T(                                     \
      void *out, const void *in, const void *cos, const void *sin, size_t n) { \
    T *restrict y = out;                                                       \
    const T *x = in, *c = cos, *s = sin;                                       \
    for (size_t i = 0; i < n; i++) {                                           \
      y[i] = c[i] * x[i] - s[i] * x[n + i];                                    \
      y[n + i] = s[i] * x[i] + c[i] * x[n + i];                                \
    }                                                                          \
  }                                                                            \
  PLN_MULTIVERSION static void pairs_##T(                                      \
      void *out, const void *in, const void *cos, const void *sin, size_t n) { \
    T *restrict y = out;                                                       \
    const T *x = in, *c = cos, *s = sin;                                       \
    for (size_t i = 0; i < n; i++) {                                           \
      y[2 * i] = c[i] * x[2 * i] - s[i] * x[2 * i + 1];                        \
      y[2 * i + 1] = s[i] * x[2 * i] + c[i] * x[2 * i + 1];                    \
    }                                                                          \
  }
ROTATE(float)
ROTATE(double)

typedef void (*rotate_fn)(void *out, const void *in, const void *cos,
                          const void *sin, size_t n);

typedef struct rotary {
  const pln_kernel_call *call;
  const pln_tensor *x, *cos, *sin, *positions; /* positions: or NULL */
  size_t size;                                 /* of an element */
  size_t batch, heads, steps, width;
  size_t head, row; /* strides to the next head and the next step */
  size_t pairs;     /* number of rotated pairs */
  rotate_fn rotate;
} rotary;

static pln_status read_rotary_heads(rotary *r) {
  const pln_tensor *x = r->x;
  int64_t n = pln_kernel_int(r->call, "num_heads", 0);
  if (x->rank != 3 && x->rank != 4)
    return pln_kernel_refuse(r->call, "rank %u is neither 3 nor 4", x->rank);
  r->batch = (size_t)x->dims[0];
  r->steps = (size_t)x->dims[x->rank - 2];
  if (x->rank == 4) {
    r->heads = (size_t)x->dims[1];
    r->width = r->row = (size_t)x->dims[3];
    r->head = r->steps * r->row;
    return PLN_OK;
  }
  if (n < 1 || x->dims[2] % n)
    return pln_kernel_refuse(r->call, "num_heads is %lld, of %lld columns",
                             (long long)n, (long long)x->dims[2]);
  r->heads = (size_t)n;
  r->row = (size_t)x->dims[2];
  r->width = r->head = r->row / r->heads;
  return PLN_OK;
}

static pln_status read_pairs(rotary *r) {
  int64_t n_rotated = pln_kernel_int(r->call, "rotary_embedding_dim", 0);
  if (n_rotated == 0)
    n_rotated = (int64_t)r->width;
  if (n_rotated < 0 || n_rotated % 2 || (size_t)n_rotated > r->width)
    return pln_kernel_refuse(r->call, "%lld of %zu elements cannot be rotated",
                             (long long)n_rotated, r->width);
  r->pairs = (size_t)n_rotated / 2;
  return PLN_OK;
}

/* A table has a row for each position, or for each batch and step. */
static pln_status check_table(const rotary *r, const pln_tensor *t,
                              uint32_t arg) {
  if (t->dtype != r->x->dtype)
    return pln_kernel_no_dtype(r->call, (pln_dtype)t->dtype);
  bool fits = r->positions ? t->rank == 2 && t->dims[0] == r->cos->dims[0]
                           : t->rank == 3 && (size_t)t->dims[0] == r->batch &&
                                 (size_t)t->dims[1] == r->steps;
  if (fits && (size_t)t->dims[t->rank - 1] == r->pairs)
    return PLN_OK;
  return pln_kernel_refuse(r->call, "operand %u does not match the others",
                           arg);
}

static pln_status read_rotary_call(const pln_kernel_call *call, rotary *r) {
  bool pairs = pln_kernel_int(call, "interleaved", 0) != 0;
  *r = (rotary){.call = call,
                .x = pln_kernel_arg(call, 0),
                .cos = pln_kernel_arg(call, 1),
                .sin = pln_kernel_arg(call, 2),
                .positions = pln_kernel_arg(call, 3)};
  pln_dtype dtype = (pln_dtype)r->x->dtype;
  r->size = pln_element_size(dtype);
  if (dtype == PLN_FLOAT32)
    r->rotate = pairs ? pairs_float : halves_float;
  else if (dtype == PLN_FLOAT64)
    r->rotate = pairs ? pairs_double : halves_double;
  else
    return pln_kernel_no_dtype(call, dtype);
  PLN_TRY(read_rotary_heads(r));
  PLN_TRY(read_pairs(r));
  PLN_TRY(check_table(r, r->cos, 1));
  PLN_TRY(check_table(r, r->sin, 2));
  const pln_tensor *p = r->positions;
  if (p && (p->rank != 2 || (size_t)p->dims[0] != r->batch ||
            (size_t)p->dims[1] != r->steps))
    return pln_kernel_refuse(call, "operand 3 does not match the others");
  return PLN_OK;
}

static bool table_row(const rotary *r, size_t b, size_t step, size_t *row) {
  int64_t at;
  *row = b * r->steps + step;
  if (!r->positions)
    return true;
  if (!pln_index_at(r->positions, *row, r->cos->dims[0], &at))
    return false;
  *row = (size_t)at;
  return true;
}

static void rotate_step(const rotary *r, size_t b, size_t step, size_t row,
                        char *out) {
  size_t at = row * r->pairs * r->size, n_rotated = 2 * r->pairs * r->size;
  const char *x = r->x->data;
  for (size_t h = 0; h < r->heads; h++) {
    size_t place =
        (b * r->heads * r->steps * r->width + h * r->head + step * r->row) *
        r->size;
    r->rotate(out + place, x + place, (const char *)r->cos->data + at,
              (const char *)r->sin->data + at, r->pairs);
    memcpy(out + place + n_rotated, x + place + n_rotated,
           r->width * r->size - n_rotated);
  }
}

static pln_status embed(pln_kernel_call *call) {
  rotary r;
  void *out;
  size_t row;
  PLN_TRY(read_rotary_call(call, &r));
  PLN_TRY(pln_kernel_unset(call, 0, (pln_dtype)r.x->dtype, r.x->rank, r.x->dims,
                           &out));
  if (r.x->count == 0)
    return PLN_OK;
  for (size_t b = 0; b < r.batch; b++)
    for (size_t step = 0; step < r.steps; step++) {
      if (!table_row(&r, b, step, &row))
        return pln_kernel_refuse(call, "step %zu has no position in the tables",
                                 step);
      rotate_step(&r, b, step, row, out);
    }
  return PLN_OK;
}

pln_status pln_kernel_rotary_embedding(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", embed);
}
