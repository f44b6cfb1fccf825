/* gru.c: GRU layers. Called through ops.def; recurrent.c runs the steps.
 *
 * Gates are z, r, n (the candidate), in ONNX's order:
 *
 *     h = (1 - z) * n + z * h
 *     n = g(Wn x + Rn (r * h) + bias)               by default
 *     n = g(Wn x + r * (Rn h + bias of R) + bias)   with linear_before_reset */

#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/rnn/recurrent.h"

#define CELLS(T)                                                            \
  PLN_MULTIVERSION static void reset_##T(void *to, const void *reset,       \
                                         const void *old, size_t n) {       \
    T *restrict x = to;                                                     \
    const T *r = reset, *h = old;                                           \
    for (size_t j = 0; j < n; j++)                                          \
      x[j] = r[j] * h[j];                                                   \
  }                                                                         \
  PLN_MULTIVERSION static void blend_##T(void *hidden, const void *update,  \
                                         const void *candidate, size_t n) { \
    T *restrict h = hidden;                                                 \
    const T *z = update, *x = candidate;                                    \
    for (size_t j = 0; j < n; j++)                                          \
      h[j] = (1 - z[j]) * x[j] + z[j] * h[j];                               \
  }
CELLS(float)
CELLS(double)

static void blend(const pln_recurrence *run, size_t sequence) {
  const pln_recurrent *l = run->layer;
  size_t n = l->hidden, bytes = n * l->size;
  char *z = pln_recurrent_row(run, sequence), *candidate = z + 2 * bytes;
  pln_gate_run(&run->functions[1], l->dtype, candidate, n);
  (l->dtype == PLN_FLOAT32 ? blend_float : blend_double)(
      run->state[0] + sequence * bytes, z, candidate, n);
}

/* Computes gates z and r; r * h is the left operand of the next product. */
static void reset(const pln_recurrence *run, size_t sequence) {
  const pln_recurrent *l = run->layer;
  size_t n = l->hidden, bytes = n * l->size;
  char *z = pln_recurrent_row(run, sequence);
  pln_gate_run(&run->functions[0], l->dtype, z, 2 * n);
  (l->dtype == PLN_FLOAT32 ? reset_float : reset_double)(
      run->spare + sequence * bytes, z + bytes,
      run->state[0] + sequence * bytes, n);
}

static void gru_cell_step(pln_recurrence *run) {
  const pln_recurrent *l = run->layer;
  pln_recurrent_add(run, run->state[0], 0);
  for (size_t b = 0; b < l->batch; b++)
    reset(run, b);
  pln_recurrent_add(run, run->spare, 1);
  for (size_t b = 0; b < l->batch; b++)
    if (pln_recurrent_lasts(run, b))
      blend(run, b);
}

/* spare = Rn h + bias of R. */
static void linear(const pln_recurrence *run) {
  const pln_recurrent *l = run->layer;
  size_t bytes = l->hidden * l->size;
  for (size_t b = 0; b < l->batch; b++)
    if (run->r_bias)
      memcpy(run->spare + b * bytes, run->r_bias + 2 * bytes, bytes);
    else
      memset(run->spare + b * bytes, 0, bytes);
  pln_recurrent_multiply(run, run->state[0], 1, run->spare, l->hidden);
}

static void step_linear_first(pln_recurrence *run) {
  const pln_recurrent *l = run->layer;
  size_t n = l->hidden, bytes = n * l->size;
  pln_recurrent_add(run, run->state[0], 0);
  linear(run);
  for (size_t b = 0; b < l->batch; b++) {
    char *z = pln_recurrent_row(run, b);
    if (!pln_recurrent_lasts(run, b))
      continue;
    pln_gate_run(&run->functions[0], l->dtype, z, 2 * n);
    pln_recurrent_scaled(l->dtype, z + 2 * bytes, z + bytes,
                         run->spare + b * bytes, n);
    blend(run, b);
  }
}

static pln_status gru(pln_kernel_call *call) {
  static const pln_cell plain = {.gates = 3,
                                 .split = 2,
                                 .functions = 2,
                                 .fallback = {"Sigmoid", "Tanh"},
                                 .bound = 3,
                                 .step = gru_cell_step};
  static const pln_cell linear_first = {.gates = 3,
                                        .split = 2,
                                        .functions = 2,
                                        .fallback = {"Sigmoid", "Tanh"},
                                        .bound = 2,
                                        .step = step_linear_first};
  bool first = pln_kernel_int(call, "linear_before_reset", 0) != 0;
  return pln_recurrent_run(call, first ? &linear_first : &plain);
}

pln_status pln_kernel_gru(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "00", gru);
}
