/* optimizer.c: adagrad, adam and momentum of ai.onnx.preview.training: one step
 * of an optimizer. Called through ops.def.
 *
 * Operands are the learning rate, the number of updates so far, then n tensors
 * each of the weights, their gradients, and one or two kinds of state. Results
 * are the n new weights, then the new states.
 *
 *     Momentum(r, t, x, g, v)   =>   x - r v', v' = alpha v + beta g
 *
 * Semantics: ONNX. */

#include <math.h>

#include "op/kernel/kernel.h"

enum { STATES_MAX = 2 };

static uint32_t state_count(pln_op op) {
  return op == PLN_OP_ADAM ? 2 : 1;
}

/* ---------------------------------------------------------------- inference */

pln_status pln_infer_optimizer(pln_infer *call) {
  uint32_t kinds = 2 + state_count(call->op), n = (call->n_args - 2) / kinds;
  if (n == 0 || (call->n_args - 2) % kinds)
    return pln_call_error(call,
                          "%u operands are no rate, step and groups of "
                          "%u",
                          call->n_args, kinds);
  for (uint32_t i = 0; i < n; i++)
    pln_result_like(call, i, 2 + i);
  for (uint32_t i = n; i < n * (kinds - 1) && i < call->n_results; i++)
    pln_result_like(call, i, 2 + n + i);
  return PLN_OK;
}

/* -------------------------------------------------------------------- steps */

typedef struct step {
  double rate, t;
  double alpha, beta, epsilon, decay, norm, norm_post;
  bool nesterov;
} step;

/* The new weight from the weight, its gradient and its states, which are
 * updated. */
typedef double (*step_fn)(const step *s, double x, double g, double *state);

static double momentum(const step *s, double x, double g, double *v) {
  g += s->norm * x;
  *v = s->alpha * *v + (s->t > 0 ? s->beta : 1) * g;
  return x - s->rate * (s->nesterov ? g + s->alpha * *v : *v);
}

static double adagrad(const step *s, double x, double g, double *h) {
  double rate = s->rate / (1 + s->t * s->decay);
  g += s->norm * x;
  *h += g * g;
  return x - rate * g / (sqrt(*h) + s->epsilon);
}

static double adam(const step *s, double x, double g, double *state) {
  double rate = s->rate;
  g += s->norm * x;
  state[0] = s->alpha * state[0] + (1 - s->alpha) * g;
  state[1] = s->beta * state[1] + (1 - s->beta) * g * g;
  if (s->t > 0)
    rate *= sqrt(1 - pow(s->beta, s->t)) / (1 - pow(s->alpha, s->t));
  x -= rate * state[0] / (sqrt(state[1]) + s->epsilon);
  return (1 - s->norm_post) * x;
}

/* ------------------------------------------------------------------ tensors */

static double element(const void *data, pln_dtype dtype, size_t i) {
  return dtype == PLN_FLOAT32 ? (double)((const float *)data)[i]
                              : ((const double *)data)[i];
}

static void set_element(void *data, pln_dtype dtype, size_t i, double x) {
  if (dtype == PLN_FLOAT32)
    ((float *)data)[i] = (float)x;
  else
    ((double *)data)[i] = x;
}

/* The tensors of weight `i`: the weight, the gradient, the states. */
static bool read_group(const pln_kernel_call *call, uint32_t i, uint32_t n,
                       uint32_t kinds, const pln_tensor **out) {
  for (uint32_t k = 0; k < kinds; k++) {
    out[k] = pln_kernel_arg(call, 2 + k * n + i);
    if (!out[k] || out[k]->dtype != out[0]->dtype ||
        out[k]->count != out[0]->count || out[k]->rank != out[0]->rank)
      return false;
  }
  return out[0]->dtype == PLN_FLOAT32 || out[0]->dtype == PLN_FLOAT64;
}

static pln_status update(pln_kernel_call *call, const step *s, step_fn fn,
                         uint32_t i, uint32_t n) {
  uint32_t states = state_count(call->op);
  const pln_tensor *in[2 + STATES_MAX];
  void *out[1 + STATES_MAX] = {NULL};
  double state[STATES_MAX] = {0};
  size_t done = 0;
  if (!read_group(call, i, n, 2 + states, in))
    return pln_kernel_refuse(call,
                             "the tensors of weight %u do not match each "
                             "other",
                             i);
  pln_dtype dtype = (pln_dtype)in[0]->dtype;
  for (uint32_t k = 0; k < 1 + states; k++)
    if (i + k * n < call->n_results)
      PLN_TRY(pln_kernel_unset(call, i + k * n, dtype, in[0]->rank, in[0]->dims,
                               &out[k]));
  for (size_t e = 0; e < in[0]->count; e++) {
    for (uint32_t k = 0; k < states; k++)
      state[k] = element(in[2 + k]->data, dtype, e);
    double x = fn(s, element(in[0]->data, dtype, e),
                  element(in[1]->data, dtype, e), state);
    set_element(out[0], dtype, e, x);
    for (uint32_t k = 0; k < states && out[1 + k]; k++)
      set_element(out[1 + k], dtype, e, state[k]);
    PLN_TRY(pln_poll_after(call->engine, &done, 1));
  }
  return PLN_OK;
}

/* A scalar operand; false if it is none. */
static bool read_scalar(const pln_kernel_call *call, uint32_t arg,
                        double *out) {
  const pln_tensor *t = pln_kernel_arg(call, arg);
  int64_t whole;
  if (t->count != 1)
    return false;
  if (t->dtype == PLN_FLOAT32 || t->dtype == PLN_FLOAT64) {
    *out = element(t->data, (pln_dtype)t->dtype, 0);
    return true;
  }
  bool is_int = pln_tensor_int(t, 0, &whole);
  *out = is_int ? (double)whole : 0;
  return is_int;
}

static pln_status run_step(pln_kernel_call *call, step *s, step_fn fn) {
  uint32_t kinds = 2 + state_count(call->op), n = (call->n_args - 2) / kinds;
  if (n == 0 || (call->n_args - 2) % kinds || call->n_results < n ||
      !read_scalar(call, 0, &s->rate) || !read_scalar(call, 1, &s->t))
    return pln_kernel_refuse(call, "the rate or the step is no number, or the "
                                   "operands are no whole groups");
  s->norm = pln_kernel_float(call, "norm_coefficient", 0);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(update(call, s, fn, i, n));
  return PLN_OK;
}

pln_status pln_kernel_momentum(pln_kernel_call *call) {
  step s = {.alpha = pln_kernel_float(call, "alpha", 0),
            .beta = pln_kernel_float(call, "beta", 0),
            .nesterov =
                pln_kernel_string_is(call, "mode", "standard", "nesterov")};
  if (!s.nesterov &&
      !pln_kernel_string_is(call, "mode", "standard", "standard"))
    return pln_kernel_refuse(call, "mode is neither standard nor nesterov");
  return run_step(call, &s, momentum);
}

pln_status pln_kernel_adagrad(pln_kernel_call *call) {
  step s = {.decay = pln_kernel_float(call, "decay_factor", 0),
            .epsilon = pln_kernel_float(call, "epsilon", (double)1e-6f)};
  return run_step(call, &s, adagrad);
}

pln_status pln_kernel_adam(pln_kernel_call *call) {
  step s = {.alpha = pln_kernel_float(call, "alpha", (double)0.9f),
            .beta = pln_kernel_float(call, "beta", (double)0.999f),
            .epsilon = pln_kernel_float(call, "epsilon", (double)1e-6f),
            .norm_post = pln_kernel_float(call, "norm_coefficient_post", 0)};
  return run_step(call, &s, adam);
}
