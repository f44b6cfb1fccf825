/* causal.c: the kernel of depthwise causal convolutions along time with a
 * state. Called through ops.def; the type is in infer/conv.c.
 *
 * For each channel the state and its input are copied into one line. An output
 * is the sum over the window that ends at its position; the new state is the
 * end of the line. */

#include <math.h>

#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"

/* Operands: (input, weights, bias, state). */
typedef struct causal {
  pln_kernel_call *call;
  const pln_tensor *x, *w, *bias, *state;
  size_t channels, length, window; /* window > 0 */
  size_t size;                     /* of an element */
  bool silu;
  char *line; /* the line of one channel: window - 1 elements of state, then
                 length */
} causal;

#define SLIDE(T)                                                      \
  PLN_MULTIVERSION static void add_tap_##T(                           \
      T *restrict to, const T *restrict from, T weight, size_t n) {   \
    for (size_t i = 0; i < n; i++)                                    \
      to[i] += weight * from[i];                                      \
  }                                                                   \
  static void slide_##T(const causal *c, const T *w, T bias, T *to) { \
    const T *line = (const T *)(const void *)c->line;                 \
    for (size_t i = 0; i < c->length; i++)                            \
      to[i] = bias;                                                   \
    for (size_t k = 0; k < c->window; k++)                            \
      add_tap_##T(to, line + k, w[k], c->length);                     \
    for (size_t i = 0; c->silu && i < c->length; i++)                 \
      to[i] = to[i] / (1 + (T)exp(-(double)to[i]));                   \
  }
SLIDE(float)
SLIDE(double)

static void lay_out(const causal *c, size_t row) {
  size_t before = (c->window - 1) * c->size, now = c->length * c->size;
  if (c->state && before)
    memcpy(c->line, (const char *)c->state->data + row * before, before);
  else
    memset(c->line, 0, before);
  if (now)
    memcpy(c->line + before, (const char *)c->x->data + row * now, now);
}

/* Computes channel row % channels of one sequence. */
static void run_row(const causal *c, size_t row, char *out, char *state) {
  size_t before = (c->window - 1) * c->size, channel = row % c->channels;
  lay_out(c, row);
  double bias = c->bias ? pln_element_at(c->bias, channel) : 0;
  const void *w = (const char *)c->w->data + channel * c->window * c->size;
  void *to = out + row * c->length * c->size;
  if (c->size == sizeof(float))
    slide_float(c, w, (float)bias, to);
  else
    slide_double(c, w, bias, to);
  if (state && before)
    memcpy(state + row * before, c->line + c->length * c->size, before);
}

static bool has_dims(const causal *c, const pln_tensor *t, uint32_t rank,
                     const int64_t *dims) {
  return t->dtype == c->x->dtype && t->rank == rank &&
         !memcmp(t->dims, dims, rank * sizeof *dims);
}

static pln_status read_causal_call(pln_kernel_call *call, causal *c) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *w = pln_kernel_arg(call, 1);
  *c = (causal){.call = call,
                .x = x,
                .w = w,
                .bias = pln_kernel_arg(call, 2),
                .state = pln_kernel_arg(call, 3)};
  if (!x || !w || x->rank != 3 || w->rank != 3 || w->dims[2] < 1)
    return pln_kernel_refuse(call, "operands do not match each other");
  if (!pln_is_float32_or_64(x))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  const int64_t weights[3] = {x->dims[1], 1, w->dims[2]};
  const int64_t state[3] = {x->dims[0], x->dims[1], w->dims[2] - 1};
  if (!has_dims(c, w, 3, weights) ||
      (c->bias && !has_dims(c, c->bias, 1, weights)) ||
      (c->state && !has_dims(c, c->state, 3, state)))
    return pln_kernel_refuse(call, "operands do not match each other");
  c->channels = (size_t)x->dims[1];
  c->length = (size_t)x->dims[2];
  c->window = (size_t)w->dims[2];
  c->size = pln_element_size((pln_dtype)x->dtype);
  c->silu = pln_kernel_string_is(call, "activation", "none", "silu") ||
            pln_kernel_string_is(call, "activation", "none", "swish");
  if (!c->silu && !pln_kernel_string_is(call, "activation", "none", "none"))
    return pln_kernel_refuse(call, "activation is not silu, swish or none");
  return PLN_OK;
}

static pln_status convolve_causal(pln_kernel_call *call) {
  causal c;
  PLN_TRY(read_causal_call(call, &c));
  pln_dtype dtype = (pln_dtype)c.x->dtype;
  const int64_t dims[3] = {c.x->dims[0], c.x->dims[1], c.w->dims[2] - 1};
  pln_tensor **results = call->results;
  char *state = NULL;
  PLN_TRY(pln_tensor_unset(call->engine, dtype, 3, c.x->dims, &results[0]));
  if (call->n_results > 1) {
    PLN_TRY(pln_tensor_unset(call->engine, dtype, 3, dims, &results[1]));
    state = pln_tensor_writable(results[1]);
  }
  char *out = pln_tensor_writable(results[0]);
  size_t rows = (size_t)c.x->dims[0] * c.channels;
  size_t bytes = (c.window - 1 + c.length) * c.size;
  c.line =
      pln_mem_new(call->engine, bytes + c.size); /* never an empty allocation */
  if (!c.line)
    return pln_nomem(call->engine);
  for (size_t row = 0; row < rows; row++)
    run_row(&c, row, out, state);
  pln_mem_free(call->engine, c.line, bytes + c.size);
  return PLN_OK;
}

pln_status pln_kernel_causal_conv(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "00", convolve_causal);
}
