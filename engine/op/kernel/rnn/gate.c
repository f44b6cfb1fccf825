/* gate.c: activation functions of the gates of recurrent layers. Called by
 * recurrent.c, lstm.c, gru.c, rnn.c.
 *
 * float32 is computed in float32, by loops that vectorise. The lists
 * activation_alpha and activation_beta are consumed in order by the functions
 * that have such a parameter, as in ONNX Runtime. */

#include "op/kernel/rnn/gate.h"

#include <math.h>

#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/multiversion.h"

static double sigmoid(double x) {
  double e = exp(x < 0 ? x : -x);
  return (x < 0 ? e : 1) / (1 + e);
}

static double softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* exp(x) - 1 for x <= 0. */
#define FALLING_float(x) pln_expm1_negative(x)
#define FALLING_double(x) expm1(x)
#define TANH_float(x) pln_tanh_float(x)
#define TANH_double(x) tanh(x)
#define SIGMOID_float(x) pln_sigmoid_float(x)
#define SIGMOID_double(x) sigmoid(x)
#define SOFTPLUS_float(x) pln_softplus_float(x)
#define SOFTPLUS_double(x) softplus(x)

/* Functions of x with parameters a and b, all of type T. */
#define AFFINE(T, x) (a * (x) + b)
#define RELU(T, x) ((x) < 0 ? (T)0 : (x))
#define LEAKY(T, x) ((x) < 0 ? a * (x) : (x))
#define THRESHOLDED(T, x) ((x) < a ? (T)0 : (x))
#define TANH(T, x) TANH_##T(x)
#define SCALED_TANH(T, x) (a * TANH_##T(b * (x)))
#define SIGMOID(T, x) SIGMOID_##T(x)
#define UNIT(T, y) ((y) < 0 ? (T)0 : (y) > 1 ? (T)1 : (y))
#define HARD_SIGMOID(T, x) UNIT(T, a *(x) + b)
#define ELU(T, x) ((x) < 0 ? a * FALLING_##T((x) < 0 ? (x) : 0) : (x))
#define SOFTSIGN(T, x) ((x) / (1 + ((x) < 0 ? -(x) : (x))))
#define SOFTPLUS(T, x) SOFTPLUS_##T(x)
#define CLIP(T, x) ((x) < -a ? -a : (x) > a ? a : (x))

#define LOOP(name, T, f)                                                    \
  PLN_MULTIVERSION static void name##_##T(void *data, size_t n, T a, T b) { \
    T *x = data;                                                            \
    (void)a, (void)b;                                                       \
    for (size_t i = 0; i < n; i++)                                          \
      x[i] = f(T, x[i]);                                                    \
  }
#define LOOPS(name, f) LOOP(name, float, f) LOOP(name, double, f)
LOOPS(affine, AFFINE)
LOOPS(relu, RELU)
LOOPS(leaky, LEAKY)
LOOPS(thresholded, THRESHOLDED)
LOOPS(tanh, TANH)
LOOPS(scaled_tanh, SCALED_TANH)
LOOPS(sigmoid, SIGMOID)
LOOPS(hard_sigmoid, HARD_SIGMOID)
LOOPS(elu, ELU)
LOOPS(softsign, SOFTSIGN)
LOOPS(softplus, SOFTPLUS)
LOOPS(clip, CLIP)

struct pln_gate_kind {
  const char *name;
  bool has_alpha, has_beta;
  double alpha, beta; /* NAN: no default */
  void (*single)(void *x, size_t n, float a, float b);
  void (*twice)(void *x, size_t n, double a, double b);
};

static const pln_gate_kind kinds[] = {
    {"Tanh", false, false, 0, 0, tanh_float, tanh_double},
    {"Sigmoid", false, false, 0, 0, sigmoid_float, sigmoid_double},
    {"Relu", false, false, 0, 0, relu_float, relu_double},
    {"Affine", true, true, 1, 0, affine_float, affine_double},
    {"LeakyRelu", true, false, 0.01, 0, leaky_float, leaky_double},
    {"ThresholdedRelu", true, false, 1, 0, thresholded_float,
     thresholded_double},
    {"ScaledTanh", true, true, NAN, NAN, scaled_tanh_float, scaled_tanh_double},
    {"HardSigmoid", true, true, 0.2, 0.5, hard_sigmoid_float,
     hard_sigmoid_double},
    {"Elu", true, false, 1, 0, elu_float, elu_double},
    {"Softsign", false, false, 0, 0, softsign_float, softsign_double},
    {"Softplus", false, false, 0, 0, softplus_float, softplus_double},
};

void pln_gate_run(const pln_gate *gate, pln_dtype dtype, void *x, size_t n) {
  const pln_gate_kind *kind = gate->kind;
  bool clips = gate->clip < INFINITY;
  if (dtype == PLN_FLOAT32) {
    if (clips)
      clip_float(x, n, (float)gate->clip, 0);
    kind->single(x, n, (float)gate->alpha, (float)gate->beta);
  } else {
    if (clips)
      clip_double(x, n, gate->clip, 0);
    kind->twice(x, n, gate->alpha, gate->beta);
  }
}

/* ------------------------------------------------------------------ reading */

/* A list of floats, consumed in order. */
typedef struct gate_parameters {
  const double *floats;
  uint32_t count, used;
} gate_parameters;

static gate_parameters read_supply(const pln_kernel_call *call,
                                   const char *name) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  if (!a || a->kind != PLN_ATTR_FLOATS)
    return (gate_parameters){NULL, 0, 0};
  return (gate_parameters){a->v.floats, a->count, 0};
}

static double next_gate_parameter(gate_parameters *from, bool wanted,
                                  double fallback) {
  return wanted && from->used < from->count ? from->floats[from->used++]
                                            : fallback;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Names are compared without regard to case. */
static const pln_gate_kind *find_kind(pln_slice name) {
  for (size_t i = 0; i < PLN_COUNT(kinds); i++) {
    size_t n = 0;
    while (n < name.size && lower(kinds[i].name[n]) == lower(name.data[n]) &&
           kinds[i].name[n])
      n++;
    if (n == name.size && !kinds[i].name[n])
      return &kinds[i];
  }
  return NULL;
}

static pln_status read_gate(const pln_kernel_call *call, pln_slice name,
                            gate_parameters *alphas, gate_parameters *betas,
                            pln_gate *out) {
  const pln_gate_kind *kind = find_kind(name);
  if (!kind)
    return pln_kernel_refuse(call, "activation '%.*s' is unknown",
                             name.size < 40 ? (int)name.size : 40, name.data);
  *out = (pln_gate){
      kind, next_gate_parameter(alphas, kind->has_alpha, kind->alpha),
      next_gate_parameter(betas, kind->has_beta, kind->beta), INFINITY};
  if ((kind->has_alpha && isnan(out->alpha)) ||
      (kind->has_beta && isnan(out->beta)))
    return pln_kernel_refuse(
        call, "activation '%s' needs activation_alpha and activation_beta",
        kind->name);
  return PLN_OK;
}

pln_status pln_gates_read(const pln_kernel_call *call, uint32_t n, uint32_t per,
                          const char *const *fallback, pln_gate *out) {
  const pln_attr *names =
      pln_attrs_find(call->engine, call->attrs, "activations");
  gate_parameters alphas = read_supply(call, "activation_alpha");
  gate_parameters betas = read_supply(call, "activation_beta");
  bool given = names && names->kind == PLN_ATTR_STRINGS && names->count > 0;
  if (given && names->count != n)
    return pln_kernel_refuse(call, "%u activations, not %u", names->count, n);
  for (uint32_t i = 0; i < n; i++) {
    pln_slice name = given ? names->v.strings[i] : pln_text(fallback[i % per]);
    PLN_TRY(read_gate(call, name, &alphas, &betas, &out[i]));
  }
  return PLN_OK;
}
