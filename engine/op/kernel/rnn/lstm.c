/* lstm.c: LSTM layers. Called through ops.def; recurrent.c runs the steps.
 *
 * Gates are i, o, f, g (the candidate), in ONNX's order; peepholes i, o, f:
 *
 *     c = f(f + Pf c) * c + f(i + Pi c) * g(g);  h = f(o + Po c) * h(c) */

#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/rnn/recurrent.h"

#define CELLS(T)                                                               \
  PLN_MULTIVERSION static void remember_##T(void *cell, const void *forget,    \
                                            const void *input,                 \
                                            const void *candidate, size_t n) { \
    T *restrict c = cell;                                                      \
    const T *f = forget, *i = input, *g = candidate;                           \
    for (size_t j = 0; j < n; j++)                                             \
      c[j] = f[j] * c[j] + i[j] * g[j];                                        \
  }                                                                            \
  PLN_MULTIVERSION static void multiply_##T(void *hidden, const void *output,  \
                                            size_t n) {                        \
    T *restrict h = hidden;                                                    \
    const T *o = output;                                                       \
    for (size_t j = 0; j < n; j++)                                             \
      h[j] *= o[j];                                                            \
  }                                                                            \
  PLN_MULTIVERSION static void rest_##T(void *forget, const void *input,       \
                                        size_t n) {                            \
    T *restrict f = forget;                                                    \
    const T *i = input;                                                        \
    for (size_t j = 0; j < n; j++)                                             \
      f[j] = 1 - i[j];                                                         \
  }
CELLS(float)
CELLS(double)

typedef struct cell_loops {
  void (*remember)(void *c, const void *f, const void *i, const void *g,
                   size_t n);
  void (*multiply)(void *h, const void *o, size_t n);
  void (*rest)(void *f, const void *i, size_t n);
} cell_loops;

static const cell_loops *find_loops(pln_dtype dtype) {
  static const cell_loops single = {remember_float, multiply_float, rest_float};
  static const cell_loops twice = {remember_double, multiply_double,
                                   rest_double};
  return dtype == PLN_FLOAT32 ? &single : &twice;
}

/* Adds the cell state times peephole `which` to a gate. */
static void apply_peephole(const pln_recurrence *run, size_t which, void *gate,
                           const void *cell) {
  const pln_recurrent *l = run->layer;
  if (run->peepholes)
    pln_recurrent_scaled(l->dtype, gate,
                         run->peepholes + which * l->hidden * l->size, cell,
                         l->hidden);
}

static void step_sequence(const pln_recurrence *run, const cell_loops *loops,
                          bool coupled, size_t sequence) {
  const pln_recurrent *l = run->layer;
  size_t n = l->hidden, bytes = n * l->size;
  char *i = pln_recurrent_row(run, sequence), *o = i + bytes, *f = o + bytes;
  char *g = f + bytes, *h = run->state[0] + sequence * bytes;
  char *c = run->state[1] + sequence * bytes;
  apply_peephole(run, 0, i, c);
  apply_peephole(run, 2, f, c);
  pln_gate_run(&run->functions[0], l->dtype, i, n);
  if (coupled)
    loops->rest(f, i, n);
  else
    pln_gate_run(&run->functions[0], l->dtype, f, n);
  pln_gate_run(&run->functions[1], l->dtype, g, n);
  loops->remember(c, f, i, g, n);
  apply_peephole(run, 1, o, c);
  pln_gate_run(&run->functions[0], l->dtype, o, n);
  memcpy(h, c, bytes);
  pln_gate_run(&run->functions[2], l->dtype, h, n);
  loops->multiply(h, o, n);
}

/* Adds `left` times R to the gates, and computes the states. */
static void step_from(pln_recurrence *run, const char *left) {
  const pln_recurrent *l = run->layer;
  bool coupled = pln_kernel_int(l->call, "input_forget", 0) != 0;
  pln_recurrent_add(run, left, 0);
  for (size_t b = 0; b < l->batch; b++)
    if (pln_recurrent_lasts(run, b))
      step_sequence(run, find_loops(l->dtype), coupled, b);
}

static void lstm_cell_step(pln_recurrence *run) {
  step_from(run, run->state[0]);
}

static void rounded_cell_step(pln_recurrence *run) {
  const pln_recurrent *l = run->layer;
  pln_round_to_bytes((const float *)run->state[0], (float *)run->spare,
                     l->batch * l->hidden);
  step_from(run, run->spare);
}

static pln_status run_lstm(pln_kernel_call *call,
                           void (*step)(pln_recurrence *run)) {
  const pln_cell cell = {.gates = 4,
                         .split = 4,
                         .functions = 3,
                         .fallback = {"Sigmoid", "Tanh", "Tanh"},
                         .cells = true,
                         .bound = 4,
                         .step = step};
  return pln_recurrent_run(call, &cell);
}

static pln_status lstm(pln_kernel_call *call) {
  return run_lstm(call, lstm_cell_step);
}

pln_status pln_lstm_rounded_run(pln_kernel_call *call) {
  return run_lstm(call, rounded_cell_step);
}

pln_status pln_kernel_lstm(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "000", lstm);
}
