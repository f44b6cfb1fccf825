/* attention.c: scaled dot product attention. Called through ops.def.
 *
 * Query, key and value are read in place, as (batch, heads, steps, size) or
 * (batch, steps, heads * size). For a block of queries of one head, one matrix
 * product gives the scores by all keys, their rows become weights, and a second
 * product applies the weights to the values.
 *
 * Invariants: causality, windows and lengths leave each query an interval of
 * keys; a mask excludes more of them. A query without any key gives zeros, as
 * ONNX defines. Memory besides the results is one block of scores. */

#include <math.h>

#include "base/thread/thread_pool.h"
#include "op/kernel/attention/score.h"
#include "op/kernel/elementwise/convert.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/matmul/blas.h"
#include "op/kernel/matmul/gemm.h"
#include "op/kernel/strided.h"

/* BLOCK: bytes of a block of scores, if that is at least LEAST queries. */
enum { BLOCK = 512 << 10, LEAST = 32 };

/* A view as (batch, heads, steps, size); strides count elements. */
typedef struct heads {
  const char *data;
  size_t count, rows, width; /* heads, steps, size */
  size_t batch, head, row;
} heads;

enum { RAW, CAPPED, MASKED, WEIGHTS }; /* qk_matmul_output_mode */

typedef struct attention {
  pln_kernel_call *call;
  pln_dtype dtype; /* FLOAT32 or FLOAT64 */
  size_t size;     /* of an element */
  size_t batch, past, keys;
  heads q, k, v, out;
  double scale, cap;
  bool causal;
  bool shared;         /* threads share the heads, not single products */
  int64_t left, right; /* of the window; -1: unlimited */
  int64_t mode;        /* the stage whose scores are result 3 */
  pln_dtype precision; /* dtype of the softmax */
  const pln_tensor *mask;
  pln_tensor *wide_mask;  /* mask converted here, or NULL */
  size_t mask_width;      /* number of keys that it covers */
  size_t mask_steps[3];   /* strides by batch, head, query */
  const int64_t *lengths; /* of keys, by batch; or NULL */
  pln_tensor *joined[2];  /* past and new keys, values; or NULL */
} attention;

/* ------------------------------------------------------------------ reading */

static pln_status read_attention_heads(const attention *a, uint32_t arg,
                                       const char *attr, heads *out) {
  const pln_tensor *t = pln_kernel_arg(a->call, arg);
  int64_t n = pln_kernel_int(a->call, attr, 0);
  if (t->dtype != a->dtype)
    return pln_kernel_no_dtype(a->call, (pln_dtype)t->dtype);
  if (t->rank != pln_kernel_arg(a->call, 0)->rank ||
      (size_t)t->dims[0] != a->batch)
    return pln_kernel_refuse(a->call, "operand %u does not match the others",
                             arg);
  if (t->rank == 4) {
    *out = (heads){.count = (size_t)t->dims[1],
                   .rows = (size_t)t->dims[2],
                   .width = (size_t)t->dims[3]};
    out->row = out->width;
    out->head = out->rows * out->row;
  } else if (n < 1 || t->dims[2] % n) {
    return pln_kernel_refuse(a->call, "%s is %lld, of %lld columns", attr,
                             (long long)n, (long long)t->dims[2]);
  } else {
    *out = (heads){.count = (size_t)n,
                   .rows = (size_t)t->dims[1],
                   .width = (size_t)(t->dims[2] / n)};
    out->row = (size_t)t->dims[2];
    out->head = out->width;
  }
  out->data = t->data;
  out->batch = out->rows * out->count * out->width;
  return PLN_OK;
}

static pln_status read_all_heads(attention *a) {
  const pln_tensor *q = pln_kernel_arg(a->call, 0);
  if (q->rank != 3 && q->rank != 4)
    return pln_kernel_refuse(a->call, "rank %u is neither 3 nor 4", q->rank);
  a->batch = (size_t)q->dims[0];
  PLN_TRY(read_attention_heads(a, 0, "q_num_heads", &a->q));
  PLN_TRY(read_attention_heads(a, 1, "kv_num_heads", &a->k));
  PLN_TRY(read_attention_heads(a, 2, "kv_num_heads", &a->v));
  if (a->q.width != a->k.width || a->k.count != a->v.count ||
      a->k.rows != a->v.rows || a->k.count == 0 || a->q.count % a->k.count)
    return pln_kernel_refuse(a->call,
                             "query, key and value do not match each other");
  a->keys = a->k.rows;
  return PLN_OK;
}

static pln_status read_numbers(attention *a) {
  const pln_kernel_call *call = a->call;
  int64_t precision = pln_kernel_int(call, "softmax_precision", a->dtype);
  double usual = a->q.width ? 1 / sqrt((double)a->q.width) : 1;
  a->scale = pln_kernel_float(call, "scale", usual);
  a->cap = pln_kernel_float(call, "softcap", 0);
  a->causal = pln_kernel_int(call, "is_causal", 0) != 0;
  a->left = pln_kernel_int(call, "left_window_size", -1);
  a->right = pln_kernel_int(call, "right_window_size", -1);
  a->mode = pln_kernel_int(call, "qk_matmul_output_mode", RAW);
  a->precision = (pln_dtype)precision;
  if (a->mode < RAW || a->mode > WEIGHTS)
    return pln_kernel_refuse(call, "qk_matmul_output_mode is %lld",
                             (long long)a->mode);
  if (precision != PLN_FLOAT32 && precision != PLN_FLOAT64 &&
      precision != PLN_FLOAT16 && precision != PLN_BFLOAT16)
    return pln_kernel_refuse(call, "softmax_precision is %lld",
                             (long long)precision);
  return PLN_OK;
}

/* The lengths of the keys without padding. */
static pln_status read_lengths(attention *a) {
  const pln_tensor *t = pln_kernel_arg(a->call, 6);
  if (!t)
    return PLN_OK;
  if (t->dtype != PLN_INT64 || t->count != a->batch ||
      pln_kernel_arg(a->call, 4))
    return pln_kernel_refuse(a->call, "operand 6 does not match the others");
  a->lengths = t->data;
  for (size_t b = 0; b < a->batch; b++)
    if (a->lengths[b] < 0 || (size_t)a->lengths[b] > a->keys)
      return pln_kernel_refuse(a->call, "batch %zu has %lld of %zu keys", b,
                               (long long)a->lengths[b], a->keys);
  return PLN_OK;
}

/* ------------------------------------------------------------------- joining
 */

static pln_status check_past(const attention *a, uint32_t arg, const heads *now,
                             size_t rows) {
  const pln_tensor *t = pln_kernel_arg(a->call, arg);
  if (t->dtype != a->dtype)
    return pln_kernel_no_dtype(a->call, (pln_dtype)t->dtype);
  if (t->rank == 4 && (size_t)t->dims[0] == a->batch &&
      (size_t)t->dims[1] == now->count && (size_t)t->dims[2] == rows &&
      (size_t)t->dims[3] == now->width)
    return PLN_OK;
  return pln_kernel_refuse(a->call, "operand %u does not match the others",
                           arg);
}

/* Copies `from` to rows [at, ...) of `to`. */
static void copy_rows(const attention *a, const heads *from, const heads *to,
                      size_t at) {
  pln_strided view = {
      .rank = 4,
      .dims = {(int64_t)a->batch, (int64_t)from->count, (int64_t)from->rows,
               (int64_t)from->width},
      .to = {(int64_t)to->batch, (int64_t)to->head, (int64_t)to->row, 1},
      .from = {(int64_t)from->batch, (int64_t)from->head, (int64_t)from->row,
               1}};
  if (a->batch && from->count && from->rows && from->width)
    pln_strided_copy(a->call->engine, (char *)to->data + at * to->row * a->size,
                     from->data, a->size, &view);
}

static heads dense_heads(const void *data, size_t count, size_t rows,
                         size_t width) {
  return (heads){.data = data,
                 .count = count,
                 .rows = rows,
                 .width = width,
                 .batch = count * rows * width,
                 .head = rows * width,
                 .row = width};
}

/* Concatenates past (may be NULL) and present keys or values; `now` then
 * describes the result. */
static pln_status join(const attention *a, const pln_tensor *past, heads *now,
                       pln_tensor **out) {
  int64_t dims[4] = {(int64_t)a->batch, (int64_t)now->count,
                     (int64_t)(a->past + now->rows), (int64_t)now->width};
  PLN_TRY(pln_tensor_unset(a->call->engine, a->dtype, 4, dims, out));
  heads to = dense_heads(pln_tensor_writable(*out), now->count,
                         a->past + now->rows, now->width);
  if (past) {
    heads from = dense_heads(past->data, now->count, a->past, now->width);
    copy_rows(a, &from, &to, 0);
  }
  copy_rows(a, now, &to, a->past);
  *now = to;
  return PLN_OK;
}

/* Concatenates if there is a past, or if the call asks for the present ones. */
static pln_status join_past(attention *a) {
  const pln_tensor *key = pln_kernel_arg(a->call, 4);
  const pln_tensor *value = pln_kernel_arg(a->call, 5);
  if (!key != !value)
    return pln_kernel_refuse(a->call, "past key and value come together");
  if (key && key->rank == 4) {
    a->past = (size_t)key->dims[2];
    PLN_TRY(check_past(a, 4, &a->k, a->past));
    PLN_TRY(check_past(a, 5, &a->v, a->past));
  } else if (key) {
    return pln_kernel_refuse(a->call, "the past must have 4 axes");
  }
  if (key || a->call->n_results > 1) {
    PLN_TRY(join(a, key, &a->k, &a->joined[0]));
    PLN_TRY(join(a, value, &a->v, &a->joined[1]));
  }
  a->keys = a->past + a->keys;
  return PLN_OK;
}

/* --------------------------------------------------------------------- mask */

/* Converts a mask that is neither bool nor of the scores' dtype. */
static pln_status convert_mask(attention *a) {
  const pln_tensor *m = a->mask;
  if (m->dtype == PLN_BOOL || m->dtype == a->dtype)
    return PLN_OK;
  if (!pln_convertible((pln_dtype)m->dtype))
    return pln_kernel_no_dtype(a->call, (pln_dtype)m->dtype);
  PLN_TRY(pln_tensor_unset(a->call->engine, a->dtype, m->rank, m->dims,
                           &a->wide_mask));
  pln_conversion c = {.from = (pln_dtype)m->dtype, .to = a->dtype};
  if (pln_convert(&c, m->data, m->count, pln_tensor_writable(a->wide_mask)) !=
      PLN_CONVERTED)
    return pln_kernel_undefined(a->call);
  a->mask = a->wide_mask;
  return PLN_OK;
}

/* The mask broadcasts to (batch, heads, queries, keys); keys past its end are
 * excluded. */
static pln_status read_mask(attention *a) {
  const pln_tensor *m = a->mask = pln_kernel_arg(a->call, 3);
  if (!m)
    return PLN_OK;
  const size_t full[3] = {a->batch, a->q.count, a->q.rows};
  if (m->rank < 1 || m->rank > 4 || (size_t)m->dims[m->rank - 1] > a->keys)
    return pln_kernel_refuse(a->call, "the mask does not match %zu keys",
                             a->keys);
  a->mask_width = (size_t)m->dims[m->rank - 1];
  size_t step = a->mask_width;
  for (uint32_t i = 3; i-- > 0;) {
    uint32_t below = 4 - m->rank; /* missing leading axes */
    size_t n = i < below ? 1 : (size_t)m->dims[i - below];
    if (n != 1 && n != full[i])
      return pln_kernel_refuse(a->call, "the mask does not broadcast");
    a->mask_steps[i] = n == 1 ? 0 : step;
    step *= n;
  }
  return convert_mask(a);
}

/* ------------------------------------------------------------------- results
 */

static pln_status make_results(attention *a) {
  pln_kernel_call *call = a->call;
  int64_t b = (int64_t)a->batch, h = (int64_t)a->q.count;
  int64_t rows = (int64_t)a->q.rows, n = (int64_t)a->v.width;
  bool flat = pln_kernel_arg(call, 0)->rank == 3;
  int64_t wide[4] = {b, h, rows, n}, scores[4] = {b, h, rows, (int64_t)a->keys};
  int64_t narrow[3] = {b, rows, h * n};
  void *data;
  PLN_TRY(pln_kernel_unset(call, 0, a->dtype, flat ? 3 : 4,
                           flat ? narrow : wide, &data));
  a->out = dense_heads(data, a->q.count, a->q.rows, a->v.width);
  if (flat) {
    a->out.row = a->q.count * a->v.width;
    a->out.head = a->v.width;
  }
  for (uint32_t i = 1; i < 3 && i < call->n_results; i++)
    call->results[i] = pln_tensor_retain(a->joined[i - 1]);
  if (call->n_results < 4)
    return PLN_OK;
  return pln_kernel_unset(call, 3, a->dtype, 4, scores, &data);
}

/* --------------------------------------------------------------- one query */

/* The keys [low, high) that query `i` may see before masking. */
typedef struct span {
  size_t low, high;
} span;

static size_t within(int64_t x, size_t most) {
  return x < 0 ? 0 : (uint64_t)x < most ? (size_t)x : most;
}

/* Extents are below 2^59, and windows are clamped to that, so sums do not
 * overflow. */
static span span_of(const attention *a, size_t b, size_t i) {
  const int64_t far = (int64_t)1 << 60;
  int64_t at = (int64_t)i + (int64_t)a->past;
  span s = {0, a->keys};
  if (a->lengths) {
    at += a->lengths[b] - (int64_t)a->q.rows;
    s.high = within(a->lengths[b], s.high);
  }
  if (a->causal)
    s.high = within(at + 1, s.high);
  if (a->right >= 0)
    s.high = within(at + 1 + (a->right < far ? a->right : far), s.high);
  if (a->left >= 0)
    s.low = within(at - (a->left < far ? a->left : far), s.high);
  if (a->mask && s.high > a->mask_width)
    s.high = a->mask_width;
  if (s.low > s.high)
    s.low = s.high;
  return s;
}

/* A block of queries of one head, with `n` scores each. */
typedef struct block {
  size_t b, h, first, rows, n;
  uint32_t worker;
  char *scores;
} block;

/* Copies the scores to result 3 if this is the requested stage. */
static void show(const attention *a, int64_t stage, const block *s, size_t i,
                 const char *row) {
  if (a->mode != stage || a->call->n_results < 4)
    return;
  size_t at = (s->b * a->q.count + s->h) * a->q.rows + s->first + i;
  char *to = pln_tensor_writable(a->call->results[3]);
  if (s->n)
    memcpy(to + at * s->n * a->size, row, s->n * a->size);
}

/* Excludes the keys that the query must not see; false if none is left. */
static bool mask_row(const attention *a, const block *s, size_t i, span seen,
                     char *row) {
  size_t n = seen.high - seen.low;
  pln_score_mask_outside(a->dtype, row, s->n, seen.low, seen.high);
  if (!a->mask || n == 0)
    return n > 0;
  size_t size = pln_element_size((pln_dtype)a->mask->dtype);
  size_t at = s->b * a->mask_steps[0] + s->h * a->mask_steps[1] +
              (s->first + i) * a->mask_steps[2] + seen.low;
  return pln_score_mask(a->dtype, row + seen.low * a->size, n,
                        (const char *)a->mask->data + at * size,
                        (pln_dtype)a->mask->dtype);
}

static void compute_weights_of_row(const attention *a, const block *s,
                                   size_t i) {
  char *row = s->scores + i * s->n * a->size;
  span seen = span_of(a, s->b, s->first + i);
  if (seen.high > s->n)
    seen.high = s->n;
  pln_score_scale(a->dtype, row, s->n, a->scale);
  show(a, RAW, s, i, row);
  if (a->cap > 0)
    pln_score_cap(a->dtype, row, s->n, a->cap);
  show(a, CAPPED, s, i, row);
  bool open = mask_row(a, s, i, seen, row);
  show(a, MASKED, s, i, row);
  if (!open)
    seen.low = seen.high = 0;
  char *x = row + seen.low * a->size;
  pln_score_round(a->dtype, x, seen.high - seen.low, a->precision);
  pln_score_softmax(a->dtype, x, seen.high - seen.low);
  pln_score_round(a->dtype, x, seen.high - seen.low, a->precision);
  pln_score_clear(a->dtype, row, s->n, seen.low, seen.high);
  show(a, WEIGHTS, s, i, row);
}

/* ------------------------------------------------------------------ products
 */

static const char *row_at(const attention *a, const heads *h, size_t b,
                          size_t head, size_t row) {
  return h->data + (b * h->batch + head * h->head + row * h->row) * a->size;
}

/* Alone on a worker where threads share the heads. */
static void multiply(const attention *a, const pln_gemm *gemm, const block *s,
                     const pln_product *p) {
  if (a->shared)
    pln_gemm_run_on(gemm, s->worker, p);
  else
    pln_gemm_run(gemm, p);
}

static void run_block(const attention *a, const pln_gemm *gemm, block *s) {
  size_t shared = s->h / (a->q.count / a->k.count);
  pln_product p = {.m = s->rows,
                   .n = s->n,
                   .k = a->q.width,
                   .a = row_at(a, &a->q, s->b, s->h, s->first),
                   .a_row = a->q.row,
                   .a_col = 1,
                   .b = row_at(a, &a->k, s->b, shared, 0),
                   .b_row = 1,
                   .b_col = a->k.row,
                   .c = s->scores,
                   .c_row = s->n};
  size_t done = 0;
  if (s->n)
    multiply(a, gemm, s, &p);
  for (size_t i = 0; i < s->rows; i++) {
    if (pln_is_stopped_after(a->call->engine, &done, 4 * s->n))
      return;
    compute_weights_of_row(a, s, i);
  }
  multiply(a, gemm, s,
           &(pln_product){
               .m = s->rows,
               .n = a->v.width,
               .k = s->n,
               .a = s->scores,
               .a_row = s->n,
               .a_col = 1,
               .b = row_at(a, &a->v, s->b, shared, 0),
               .b_row = a->v.row,
               .b_col = 1,
               .c = (char *)row_at(a, &a->out, s->b, s->h, s->first),
               .c_row = a->out.row,
           });
}

/* The number of queries in a block. */
static size_t block_rows(const attention *a) {
  size_t row = a->keys * a->size, n = row ? BLOCK / row : a->q.rows;
  n = n < LEAST ? LEAST : n;
  return n < a->q.rows ? n : a->q.rows;
}

/* Later queries of a block see at least as many keys at the end as earlier
 * ones. */
static void run_head(const attention *a, const pln_gemm *gemm, block *s) {
  size_t rows = block_rows(a);
  bool all = a->call->n_results > 3;
  for (s->first = 0; s->first < a->q.rows; s->first += rows) {
    size_t left = a->q.rows - s->first;
    if (pln_is_stopped(a->call->engine))
      return;
    s->rows = left < rows ? left : rows;
    s->n = all ? a->keys : span_of(a, s->b, s->first + s->rows - 1).high;
    run_block(a, gemm, s);
  }
}

/* The heads of all batches, and a block of scores for each worker. */
typedef struct shared_heads {
  const attention *a;
  const pln_gemm *gemm;
  char *scores;
  size_t bytes;
} shared_heads;

static void run_head_part(void *ud, size_t part, uint32_t worker) {
  const shared_heads *s = ud;
  block b = {.b = part / s->a->q.count,
             .h = part % s->a->q.count,
             .worker = worker,
             .scores = s->scores + worker * s->bytes};
  run_head(s->a, s->gemm, &b);
}

static void run_all_heads(const attention *a, const pln_gemm *gemm,
                          char *scores, size_t bytes) {
  shared_heads s = {a, gemm, scores, bytes};
  size_t n = a->batch * a->q.count;
  if (a->shared)
    pln_parallel_for(a->call->engine, n, run_head_part, &s);
  else
    for (size_t i = 0; i < n; i++)
      run_head_part(&s, i, 0);
}

static pln_status run_heads(attention *a) {
  pln_engine *e = a->call->engine;
  size_t k = a->keys > a->q.width ? a->keys : a->q.width;
  size_t n = a->keys > a->v.width ? a->keys : a->v.width;
  size_t workers = pln_parallel_workers(e);
  a->shared = workers > 1 && a->batch * a->q.count >= workers &&
              !pln_blas_wanted(e, pln_tiles_for(a->dtype));
  workers = a->shared ? workers : 1;
  size_t bytes = block_rows(a) * a->keys * a->size;
  int64_t dims[3] = {(int64_t)workers, (int64_t)block_rows(a),
                     (int64_t)a->keys};
  pln_tensor *scores;
  pln_gemm gemm;
  PLN_TRY(pln_tensor_unset(e, a->dtype, 3, dims, &scores));
  pln_status status = pln_gemm_begin(e, a->dtype, n, k, &gemm);
  if (status == PLN_OK) {
    run_all_heads(a, &gemm, pln_tensor_writable(scores), bytes);
    pln_gemm_end(&gemm);
  }
  pln_tensor_release(scores);
  return status;
}

static pln_status attend_heads(attention *a) {
  PLN_TRY(join_past(a));
  PLN_TRY(read_lengths(a));
  PLN_TRY(read_mask(a));
  PLN_TRY(make_results(a));
  const pln_tensor *shown = a->call->n_results > 3 ? a->call->results[3] : NULL;
  if (a->call->results[0]->count == 0 && (!shown || shown->count == 0))
    return PLN_OK;
  return run_heads(a);
}

static pln_status attend(pln_kernel_call *call) {
  attention a = {.call = call,
                 .dtype = (pln_dtype)pln_kernel_arg(call, 0)->dtype};
  a.size = pln_element_size(a.dtype);
  if (a.dtype != PLN_FLOAT32 && a.dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, a.dtype);
  PLN_TRY(read_all_heads(&a));
  PLN_TRY(read_numbers(&a));
  pln_status status = attend_heads(&a);
  pln_tensor_release(a.joined[0]);
  pln_tensor_release(a.joined[1]);
  pln_tensor_release(a.wide_mask);
  return status;
}

pln_status pln_kernel_attention(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0120", attend);
}
