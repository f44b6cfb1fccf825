/* linear.c: linear_attention: attention with a matrix state of keys by values
 * per head, updated and read at every step. Called through ops.def.
 *
 *     S = exp(decay) * S             gated, gated_delta
 *     u = v, or beta * (v - S^T k)   delta, gated_delta
 *     S = S + k u^T;  out = scale * S^T q
 *
 * Several query heads may share one head of keys and values. The state is
 * float32, or float64 if the operands are. */

#include <math.h>

#include "op/infer/infer.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"

/* ---------------------------------------------------------------------- types
 */

/* Columns of an operand per head. */
static pln_status head_width(const pln_infer *call, uint32_t arg,
                             const char *heads, pln_dim *out) {
  pln_shape x;
  int64_t n = pln_call_int(call, heads, 0);
  *out = PLN_DIM_UNKNOWN;
  PLN_TRY(pln_arg_expect_rank(call, arg, 3));
  pln_arg_shape(call, arg, &x);
  if (x.rank != 3 || n < 1)
    return PLN_OK;
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, x.dims[2], n, out);
}

pln_status pln_infer_linear_attention(pln_infer *call) {
  pln_shape q;
  pln_dim keys, values;
  int64_t queries = pln_call_int(call, "q_num_heads", 0);
  int64_t shared = pln_call_int(call, "kv_num_heads", 0);
  PLN_TRY(head_width(call, 0, "q_num_heads", &keys));
  PLN_TRY(head_width(call, 2, "kv_num_heads", &values));
  pln_arg_shape(call, 0, &q);
  if (q.rank != 3)
    pln_shape_ranked(&q, 3);
  pln_shape state = {4, {q.dims[0], PLN_DIM_UNKNOWN, keys, values}};
  q.dims[2] = PLN_DIM_UNKNOWN;
  if (shared > 0 && PLN_DIM_IS_CONST(shared))
    state.dims[1] = shared;
  if (queries > 0 && PLN_DIM_IS_CONST(queries))
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, queries, values, &q.dims[2]));
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &q));
  return pln_result_tensor(
      call, 1, pln_arg_dtype(call, pln_arg_absent(call, 3) ? 0 : 3), &state);
}

/* --------------------------------------------------------------------- a step
 */

/* Operands of one head at one step: n keys, m values. */
typedef struct token {
  const void *q, *k, *v, *decay, *beta; /* decay and beta: or NULL */
  bool decays;                          /* decay has n numbers instead of one */
  size_t n, m;
  double scale;
} token;

/* `change` has m elements. */
#define STEP(T, exponential)                                              \
  PLN_MULTIVERSION static void add_row_##T(T *restrict to, const T *from, \
                                           T factor, size_t m) {          \
    for (size_t j = 0; j < m; j++)                                        \
      to[j] += factor * from[j];                                          \
  }                                                                       \
  static void decay_##T(const token *t, T *state) {                       \
    const T *decay = t->decay;                                            \
    for (size_t i = 0; i < t->n; i++) {                                   \
      const T factor = exponential(decay[t->decays ? i : 0]);             \
      for (size_t j = 0; j < t->m; j++)                                   \
        state[i * t->m + j] *= factor;                                    \
    }                                                                     \
  }                                                                       \
  static void write_##T(const token *t, void *state, void *change) {      \
    T *s = state, *u = change;                                            \
    const T *k = t->k, *v = t->v;                                         \
    if (t->decay)                                                         \
      decay_##T(t, s);                                                    \
    for (size_t j = 0; j < t->m; j++)                                     \
      u[j] = v[j];                                                        \
    for (size_t i = 0; t->beta && i < t->n; i++)                          \
      add_row_##T(u, s + i * t->m, -k[i], t->m);                          \
    for (size_t j = 0; t->beta && j < t->m; j++)                          \
      u[j] *= *(const T *)t->beta;                                        \
    for (size_t i = 0; i < t->n; i++)                                     \
      add_row_##T(s + i * t->m, u, k[i], t->m);                           \
  }                                                                       \
  static void read_##T(const token *t, const void *state, void *out) {    \
    T *to = out;                                                          \
    const T *s = state, *q = t->q;                                        \
    for (size_t j = 0; j < t->m; j++)                                     \
      to[j] = 0;                                                          \
    for (size_t i = 0; i < t->n; i++)                                     \
      add_row_##T(to, s + i * t->m, (T)t->scale * q[i], t->m);            \
  }
STEP(float, expf)
STEP(double, exp)

/* ------------------------------------------------------------------- reading
 */

typedef struct linear {
  pln_kernel_call *call;
  const pln_tensor *q, *k, *v, *past, *decay, *beta;
  pln_dtype dtype;
  size_t size;
  size_t batch, steps, queries, shared; /* query heads, key heads */
  size_t n, m;                          /* sizes of a key and of a value */
  double scale;
} linear;

static bool has_columns(const linear *l, const pln_tensor *t, size_t columns) {
  return t->dtype == l->dtype && t->rank == 3 &&
         (size_t)t->dims[0] == l->batch && (size_t)t->dims[1] == l->steps &&
         (size_t)t->dims[2] == columns;
}

static pln_status read_linear_heads(linear *l) {
  int64_t queries = pln_kernel_int(l->call, "q_num_heads", 0);
  int64_t shared = pln_kernel_int(l->call, "kv_num_heads", 0);
  if (l->q->rank != 3 || l->v->rank != 3 || queries < 1 || shared < 1 ||
      queries % shared || l->q->dims[2] % queries || l->v->dims[2] % shared)
    return pln_kernel_refuse(l->call,
                             "%lld heads of queries and %lld of keys "
                             "do not match the operands",
                             (long long)queries, (long long)shared);
  l->batch = (size_t)l->q->dims[0];
  l->steps = (size_t)l->q->dims[1];
  l->queries = (size_t)queries;
  l->shared = (size_t)shared;
  l->n = (size_t)l->q->dims[2] / l->queries;
  l->m = (size_t)l->v->dims[2] / l->shared;
  if (!has_columns(l, l->k, l->shared * l->n) ||
      !has_columns(l, l->v, l->shared * l->m))
    return pln_kernel_refuse(l->call, "key and value do not match the query");
  return PLN_OK;
}

/* Decay and beta must be given exactly if the rule uses them. */
static pln_status read_rule(const linear *l) {
  static const char *const rules[] = {"linear", "gated", "delta",
                                      "gated_delta"};
  uint32_t i = 0;
  while (i < 4 &&
         !pln_kernel_string_is(l->call, "update_rule", rules[3], rules[i]))
    i++;
  if (i == 4)
    return pln_kernel_refuse(l->call, "update_rule is unknown");
  if (!l->decay != !(i & 1) || !l->beta != !(i & 2))
    return pln_kernel_refuse(l->call, "decay and beta are not those of '%s'",
                             rules[i]);
  if (l->decay && !has_columns(l, l->decay, l->shared) &&
      !has_columns(l, l->decay, l->shared * l->n))
    return pln_kernel_refuse(l->call, "decay does not match the query");
  if (l->beta && !has_columns(l, l->beta, l->shared) &&
      !has_columns(l, l->beta, 1))
    return pln_kernel_refuse(l->call, "beta does not match the query");
  return PLN_OK;
}

static pln_status read_linear(pln_kernel_call *call, linear *l) {
  *l = (linear){.call = call,
                .q = pln_kernel_arg(call, 0),
                .k = pln_kernel_arg(call, 1),
                .v = pln_kernel_arg(call, 2),
                .past = pln_kernel_arg(call, 3),
                .decay = pln_kernel_arg(call, 4),
                .beta = pln_kernel_arg(call, 5)};
  l->dtype = (pln_dtype)l->q->dtype;
  l->size = pln_element_size(l->dtype);
  if (l->dtype != PLN_FLOAT32 && l->dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, l->dtype);
  PLN_TRY(read_linear_heads(l));
  PLN_TRY(read_rule(l));
  const pln_tensor *p = l->past;
  if (p && (p->dtype != l->dtype || p->rank != 4 ||
            (size_t)p->dims[0] != l->batch || (size_t)p->dims[1] != l->shared ||
            (size_t)p->dims[2] != l->n || (size_t)p->dims[3] != l->m))
    return pln_kernel_refuse(call, "the past state does not match the query");
  double usual = l->n ? 1 / sqrt((double)l->n) : 1;
  l->scale = pln_kernel_float(call, "scale", 0);
  l->scale = l->scale == 0 ? usual : l->scale;
  return PLN_OK;
}

/* -------------------------------------------------------------------- running
 */

/* The data of head `h`, of `width` columns, at a step; NULL stays NULL. */
static const char *at(const linear *l, const pln_tensor *t, size_t row,
                      size_t h, size_t width) {
  if (!t)
    return NULL;
  return (const char *)t->data +
         (row * (size_t)t->dims[2] + h * width) * l->size;
}

static void run_step(const linear *l, size_t row, size_t h, char *state,
                     char *change) {
  size_t group = l->queries / l->shared;
  bool single = l->dtype == PLN_FLOAT32;
  bool decays = l->decay && (size_t)l->decay->dims[2] != l->shared;
  bool own_beta = l->beta && (size_t)l->beta->dims[2] == l->shared;
  char *out = pln_tensor_writable(l->call->results[0]);
  token t = {.k = at(l, l->k, row, h, l->n),
             .v = at(l, l->v, row, h, l->m),
             .decay = at(l, l->decay, row, h, decays ? l->n : 1),
             .beta = at(l, l->beta, row, own_beta ? h : 0, 1),
             .decays = decays,
             .n = l->n,
             .m = l->m,
             .scale = l->scale};
  (single ? write_float : write_double)(&t, state, change);
  for (size_t i = h * group; i < (h + 1) * group; i++) {
    t.q = at(l, l->q, row, i, l->n);
    (single ? read_float : read_double)(
        &t, state, out + (row * l->queries + i) * l->m * l->size);
  }
}

static void run_heads(const linear *l, char *states, char *change) {
  size_t bytes = l->n * l->m * l->size;
  for (size_t b = 0; b < l->batch; b++)
    for (size_t h = 0; h < l->shared; h++)
      for (size_t i = 0; i < l->steps; i++)
        run_step(l, b * l->steps + i, h, states + (b * l->shared + h) * bytes,
                 change);
}

static pln_status run_linear(linear *l) {
  pln_kernel_call *call = l->call;
  int64_t dims[4] = {(int64_t)l->batch, (int64_t)l->shared, (int64_t)l->n,
                     (int64_t)l->m};
  int64_t wide[3] = {dims[0], (int64_t)l->steps, (int64_t)(l->queries * l->m)};
  pln_tensor *states, *change;
  void *out;
  PLN_TRY(pln_kernel_unset(call, 0, l->dtype, 3, wide, &out));
  PLN_TRY(pln_tensor_new(call->engine, l->dtype, 4, dims, &states));
  pln_status status =
      pln_tensor_new(call->engine, l->dtype, 1, dims + 3, &change);
  if (status == PLN_OK) {
    char *to = pln_tensor_writable(states);
    if (l->past && l->past->count)
      status = pln_copy_bytes(call->engine, to, l->past->data,
                              l->past->count * l->size);
    if (status == PLN_OK && (call->results[0]->count || states->count))
      run_heads(l, to, pln_tensor_writable(change));
    pln_tensor_release(change);
  }
  if (status == PLN_OK && call->n_results > 1)
    call->results[1] = states;
  else
    pln_tensor_release(states);
  return status;
}

static pln_status attend(pln_kernel_call *call) {
  linear l;
  PLN_TRY(read_linear(call, &l));
  return run_linear(&l);
}

/* The dtype of the state is that of the past state, else the query's. */
pln_status pln_kernel_linear_attention(pln_kernel_call *call) {
  bool past = pln_kernel_arg(call, 3) != NULL;
  return pln_kernel_through_float(call, past ? "03" : "00", attend);
}
