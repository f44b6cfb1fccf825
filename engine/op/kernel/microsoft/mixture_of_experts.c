/* mixture_of_experts.c: feed-forward layers of which each token takes a few.
 * Called through ops.def.
 *
 *     MoE<k=2>(x, logits, w1, b1, w2, b2): for each token the sum over its two
 *       likeliest experts e of p[e] * (f(x w1[e]^T + b1[e]) w2[e]^T + b2[e])
 *
 * Experts are computed one after the other, each for all tokens that take it,
 * and added in their order. QMoE has weights of 2, 4 or 8 bits, which are
 * unpacked expert by expert; its accuracy_level is ignored. Other quantisations
 * (fp4, fp8), layouts of other devices and the sparse mixer are refused.
 * Semantics: ONNX Runtime's MoE, QMoE. */

#include <math.h>

#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/matmul/gemm.h"
#include "op/kernel/microsoft/packed_bits.h"

/* One of the products of all experts. */
typedef struct expert_layer {
  const pln_tensor *weights, *scales, *zeros, *bias;
  size_t outputs, inputs;
  size_t blocks; /* scales of a row of quantised weights */
  uint32_t bits; /* 0: float32 */
} expert_layer;

typedef enum activation {
  IDENTITY,
  RELU,
  RELU_2,
  GELU,
  SILU,
  SWIGLU,
  GEGLU
} activation;

typedef struct mixture {
  const pln_kernel_call *call;
  size_t tokens, hidden, inner, experts, k;
  expert_layer fc1, fc2, fc3;
  activation act;
  bool gated;    /* fc1 gives gate and linear part together */
  bool adjacent; /* element by element, not one behind the other */
  float alpha, beta, limit;
  bool limit_after;
  float *weight;    /* (tokens, experts): 0 where an expert is not taken */
  size_t *taken_by; /* the tokens of an expert */
  float *x, *h, *linear, *y, *unpacked; /* of one expert */
  pln_gemm gemm;
} mixture;

/* -------------------------------------------------------------------- options
 */

static pln_status read_activation(const pln_kernel_call *call, mixture *m) {
  static const char *const names[] = {"identity", "relu",   "relu2", "gelu",
                                      "silu",     "swiglu", "geglu"};
  uint32_t i = 0;
  while (i < PLN_COUNT(names) &&
         !pln_kernel_string_is(call, "activation_type", "relu", names[i]))
    i++;
  int64_t fusion = pln_kernel_int(call, "swiglu_fusion", 0);
  if (i == PLN_COUNT(names))
    return pln_kernel_refuse(call, "activation_type is not known");
  m->act = (activation)i;
  m->gated = m->act >= SWIGLU && fusion != 0;
  m->adjacent = fusion == 1;
  m->alpha = (float)pln_kernel_float(call, "activation_alpha", 1);
  m->beta = (float)pln_kernel_float(call, "activation_beta", 0);
  m->limit = (float)pln_kernel_float(call, "swiglu_limit", INFINITY);
  m->limit_after = pln_kernel_int(call, "swiglu_limit_after_activation", 0);
  if (fusion < 0 || fusion > 2)
    return pln_kernel_refuse(call, "swiglu_fusion %lld is not known",
                             (long long)fusion);
  if (pln_kernel_int(call, "use_sparse_mixer", 0))
    return pln_kernel_refuse(call, "the sparse mixer is not computed");
  return PLN_OK;
}

static pln_status read_sizes(const pln_kernel_call *call, mixture *m) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *logits = pln_kernel_arg(call, 1);
  int64_t k = pln_kernel_int(call, "k", 1);
  m->hidden = (size_t)x->dims[x->rank - 1];
  m->tokens = pln_dims_product(x->dims, 0, x->rank - 1);
  m->experts = (size_t)logits->dims[1];
  if (x->dtype != PLN_FLOAT32 || logits->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (logits->rank != 2 || (size_t)logits->dims[0] != m->tokens)
    return pln_kernel_refuse(call, "router_probs has not %zu rows", m->tokens);
  if (k < 1 || (size_t)k > m->experts)
    return pln_kernel_refuse(call, "k is %lld of %zu experts", (long long)k,
                             m->experts);
  m->k = (size_t)k;
  return PLN_OK;
}

static pln_status check_bias(const mixture *m, const expert_layer *l) {
  if (l->bias && (l->bias->dtype != PLN_FLOAT32 ||
                  l->bias->count != m->experts * l->outputs))
    return pln_kernel_refuse(m->call, "a bias is not of %zu x %zu floats",
                             m->experts, l->outputs);
  return PLN_OK;
}

static pln_status check_packed(const mixture *m, const expert_layer *l) {
  size_t rows = m->experts * l->outputs;
  size_t per_row = l->blocks > 1 || (l->scales && l->scales->rank == 3)
                       ? (l->blocks * l->bits + 7) / 8 * l->outputs
                       : (l->outputs * l->bits + 7) / 8;
  if (l->weights->dtype != PLN_UINT8 || l->inputs * l->bits % 8 ||
      l->weights->count != rows * (l->inputs * l->bits / 8))
    return pln_kernel_refuse(m->call, "weights are not of %zu x %zu elements",
                             rows, l->inputs);
  if (!l->scales || l->scales->dtype != PLN_FLOAT32 ||
      l->scales->count != rows * l->blocks)
    return pln_kernel_refuse(m->call, "scales are not %zu floats",
                             rows * l->blocks);
  if (l->zeros &&
      (l->zeros->dtype != PLN_UINT8 || l->zeros->count != m->experts * per_row))
    return pln_kernel_refuse(m->call, "zero points are not %zu bytes",
                             m->experts * per_row);
  return PLN_OK;
}

static pln_status check_layer(const mixture *m, const expert_layer *l) {
  PLN_TRY(check_bias(m, l));
  if (l->bits)
    return check_packed(m, l);
  if (l->weights->dtype != PLN_FLOAT32 ||
      l->weights->count != m->experts * l->outputs * l->inputs)
    return pln_kernel_refuse(m->call, "weights are not of %zu x %zu x %zu",
                             m->experts, l->outputs, l->inputs);
  return PLN_OK;
}

/* The extents of the products follow from those of the first one. */
static pln_status check_layers(mixture *m) {
  const pln_tensor *w = m->fc1.weights;
  size_t rows = w->rank == 3 ? (size_t)w->dims[1] : 0;
  bool has_fc3 = m->fc3.weights != NULL;
  m->inner = m->gated ? rows / 2 : rows;
  if (rows == 0 || (m->gated && rows % 2) || (m->gated && has_fc3) ||
      (m->act >= SWIGLU && !m->gated && !has_fc3))
    return pln_kernel_refuse(m->call,
                             "the first product does not give what the "
                             "activation takes");
  m->fc1.outputs = rows;
  m->fc1.inputs = m->fc3.inputs = m->fc2.outputs = m->hidden;
  m->fc2.inputs = m->fc3.outputs = m->inner;
  PLN_TRY(check_layer(m, &m->fc1));
  PLN_TRY(check_layer(m, &m->fc2));
  return has_fc3 ? check_layer(m, &m->fc3) : PLN_OK;
}

/* -------------------------------------------------------------------- routing
 */

/* The likeliest expert that is not taken yet: the first of equal ones. */
static size_t best_expert(const float *logits, const float *taken, size_t n) {
  size_t best = n;
  for (size_t e = 0; e < n; e++)
    if (taken[e] < 0 && (best == n || logits[e] > logits[best]))
      best = e;
  return best;
}

/* Scales the weights of the experts taken to a sum of 1. */
static void normalise(float *weight, size_t n) {
  float sum = 0;
  for (size_t e = 0; e < n; e++)
    sum += weight[e];
  for (size_t e = 0; e < n && sum != 0; e++)
    weight[e] /= sum;
}

/* e^(logit - greatest), over the sum of `over` of them: of all experts, or of
 * those taken. */
static void softmax_taken(const float *logits, size_t n, bool all,
                          float *weight) {
  float most = -INFINITY, sum = 0;
  for (size_t e = 0; e < n; e++)
    if ((all || weight[e] >= 0) && logits[e] > most)
      most = logits[e];
  for (size_t e = 0; e < n; e++)
    if (all || weight[e] >= 0)
      sum += expf(logits[e] - most);
  for (size_t e = 0; e < n; e++)
    weight[e] = weight[e] >= 0 ? expf(logits[e] - most) / sum : 0;
}

/* MoE takes probabilities over all experts, QMoE over those taken, or weights
 * that are given. */
static void route_token(const mixture *m, const float *logits,
                        const float *given, float *weight) {
  size_t n = m->experts;
  for (size_t e = 0; e < n; e++)
    weight[e] = -1;
  for (size_t i = 0; i < m->k; i++)
    weight[best_expert(logits, weight, n)] = 1;
  if (!given) {
    softmax_taken(logits, n, m->fc1.bits == 0, weight);
  } else {
    for (size_t e = 0; e < n; e++)
      weight[e] = weight[e] >= 0 ? given[e] : 0;
  }
  if (pln_kernel_int(m->call, "normalize_routing_weights", 0))
    normalise(weight, n);
}

static pln_status route(const mixture *m) {
  const float *logits = pln_kernel_arg(m->call, 1)->data;
  const pln_tensor *given = m->fc1.bits ? pln_kernel_arg(m->call, 14) : NULL;
  size_t done = 0, n = m->experts;
  if (given && (given->dtype != PLN_FLOAT32 || given->count != m->tokens * n))
    return pln_kernel_refuse(m->call, "router_weights is not of %zu x %zu",
                             m->tokens, n);
  for (size_t t = 0; t < m->tokens; t++) {
    PLN_TRY(pln_poll_after(m->call->engine, &done, n * m->k));
    route_token(m, logits + t * n,
                given ? (const float *)given->data + t * n : NULL,
                m->weight + t * n);
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- experts
 */

static float zero_point(const expert_layer *l, size_t e, size_t row,
                        size_t block) {
  if (!l->zeros)
    return (float)(1u << (l->bits - 1));
  const uint8_t *data = l->zeros->data;
  if (l->scales->rank == 3) {
    size_t bytes = (l->blocks * l->bits + 7) / 8;
    return (float)pln_bits_at(data + (e * l->outputs + row) * bytes, block,
                              l->bits);
  }
  return (float)pln_bits_at(data + e * ((l->outputs * l->bits + 7) / 8), row,
                            l->bits);
}

static void unpack_row(const expert_layer *l, size_t e, size_t row,
                       float *out) {
  size_t at = e * l->outputs + row, step = l->inputs / l->blocks;
  const uint8_t *data =
      (const uint8_t *)l->weights->data + at * (l->inputs * l->bits / 8);
  const float *scales = (const float *)l->scales->data + at * l->blocks;
  for (size_t b = 0; b < l->blocks; b++) {
    float zero = zero_point(l, e, row, b);
    for (size_t i = b * step; i < (b + 1) * step; i++)
      out[i] = ((float)pln_bits_at(data, i, l->bits) - zero) * scales[b];
  }
}

/* The (outputs, inputs) weights of an expert. */
static pln_status expert_weights(const mixture *m, const expert_layer *l,
                                 size_t e, const float **out) {
  size_t done = 0;
  *out = m->unpacked;
  if (!l->bits) {
    *out = (const float *)l->weights->data + e * l->outputs * l->inputs;
    return PLN_OK;
  }
  for (size_t row = 0; row < l->outputs; row++) {
    PLN_TRY(pln_poll_after(m->call->engine, &done, l->inputs));
    unpack_row(l, e, row, m->unpacked + row * l->inputs);
  }
  return PLN_OK;
}

/* y = x w^T + b, for n tokens. */
static pln_status apply_layer(const mixture *m, const expert_layer *l, size_t e,
                              size_t n, const float *x, float *y) {
  const float *weights;
  PLN_TRY(expert_weights(m, l, e, &weights));
  if (l->bias)
    for (size_t t = 0; t < n; t++)
      memcpy(y + t * l->outputs, (const float *)l->bias->data + e * l->outputs,
             l->outputs * sizeof *y);
  pln_product product = {.m = n,
                         .n = l->outputs,
                         .k = l->inputs,
                         .a = x,
                         .a_row = l->inputs,
                         .a_col = 1,
                         .b = weights,
                         .b_row = 1,
                         .b_col = l->inputs,
                         .c = y,
                         .c_row = l->outputs,
                         .add = l->bias != NULL};
  pln_gemm_run(&m->gemm, &product);
  return PLN_OK;
}

static float sigmoid(float x) {
  return 1 / (1 + pln_exp_float(-x));
}

static float gelu(float x) {
  return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

/* What the linear part is multiplied by. */
static float gate(const mixture *m, float x) {
  switch (m->act) {
  case IDENTITY: return x;
  case RELU: return x > 0 ? x : 0;
  case RELU_2: return x > 0 ? x * x : 0;
  case GELU:
  case GEGLU: return gelu(x);
  case SILU: return x * sigmoid(x);
  case SWIGLU: break;
  }
  if (m->limit_after)
    return fminf(x * sigmoid(m->alpha * x), m->limit);
  x = fminf(x, m->limit);
  return x * sigmoid(m->alpha * x);
}

static float linear_part(const mixture *m, float x) {
  return m->act == SWIGLU ? fmaxf(fminf(x, m->limit), -m->limit) + m->beta : x;
}

/* Row by row, in place: m->h gets rows of m->inner elements. */
static void activate(const mixture *m, size_t n) {
  size_t inner = m->inner, rows = m->fc1.outputs;
  size_t step = m->gated && m->adjacent ? 2 : 1;
  for (size_t t = 0; t < n; t++) {
    const float *in = m->h + t * rows;
    const float *linear =
        m->fc3.weights ? m->linear + t * inner : in + (m->adjacent ? 1 : inner);
    for (size_t i = 0; i < inner; i++) {
      float g = gate(m, in[i * step]);
      if (m->gated || m->fc3.weights)
        g *= linear_part(m, linear[i * step]);
      m->y[t * inner + i] = g;
    }
  }
}

static size_t gather_tokens(const mixture *m, size_t e) {
  const float *x = pln_kernel_arg(m->call, 0)->data;
  size_t n = 0, h = m->hidden;
  for (size_t t = 0; t < m->tokens; t++) {
    if (!(m->weight[t * m->experts + e] > 0))
      continue;
    memcpy(m->x + n * h, x + t * h, h * sizeof *x);
    m->taken_by[n++] = t;
  }
  return n;
}

static void add_results(const mixture *m, size_t e, size_t n, float *out) {
  for (size_t i = 0; i < n; i++) {
    size_t t = m->taken_by[i];
    float weight = m->weight[t * m->experts + e];
    for (size_t c = 0; c < m->hidden; c++)
      out[t * m->hidden + c] += weight * m->x[i * m->hidden + c];
  }
}

static pln_status run_expert(const mixture *m, size_t e, float *out) {
  size_t n = gather_tokens(m, e);
  PLN_TRY(pln_poll(m->call->engine));
  if (n == 0)
    return PLN_OK;
  PLN_TRY(apply_layer(m, &m->fc1, e, n, m->x, m->h));
  if (m->fc3.weights)
    PLN_TRY(apply_layer(m, &m->fc3, e, n, m->x, m->linear));
  activate(m, n);
  PLN_TRY(apply_layer(m, &m->fc2, e, n, m->y, m->x));
  add_results(m, e, n, out);
  return PLN_OK;
}

/* --------------------------------------------------------------------- memory
 */

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Floats of m->weight, x, h, linear, y, unpacked, in order. */
static bool find_extents(const mixture *m, size_t *n) {
  size_t wide =
      larger(m->fc1.outputs * m->fc1.inputs, m->fc2.outputs * m->fc2.inputs);
  size_t rows[] = {m->experts, m->hidden, m->fc1.outputs,
                   m->fc3.weights ? m->inner : 0, m->inner};
  for (uint32_t i = 0; i < PLN_COUNT(rows); i++)
    if (__builtin_mul_overflow(rows[i], m->tokens, &n[i]) ||
        n[i] > SIZE_MAX / 16)
      return false;
  n[PLN_COUNT(rows)] = m->fc1.bits ? wide : 0;
  return true;
}

static pln_status run_experts(mixture *m, float *out) {
  size_t n = larger(m->fc1.outputs, m->hidden);
  PLN_TRY(pln_gemm_begin(m->call->engine, PLN_FLOAT32, n,
                         larger(m->hidden, m->inner), &m->gemm));
  pln_status status = PLN_OK;
  for (size_t e = 0; e < m->experts && status == PLN_OK; e++)
    status = run_expert(m, e, out);
  pln_gemm_end(&m->gemm);
  return status;
}

static pln_status run_mixture(pln_kernel_call *call, mixture *m) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  float **parts[] = {&m->weight, &m->x, &m->h, &m->linear, &m->y, &m->unpacked};
  size_t n[PLN_COUNT(parts)], tokens = m->tokens * sizeof *m->taken_by;
  void *out;
  PLN_TRY(pln_kernel_result(call, 0, PLN_FLOAT32, x->rank, x->dims, &out));
  if (x->count == 0)
    return PLN_OK;
  if (!find_extents(m, n))
    return pln_nomem(call->engine);
  m->taken_by = pln_mem_new(call->engine, tokens);
  bool made = m->taken_by != NULL;
  for (uint32_t i = 0; i < PLN_COUNT(parts); i++) {
    *parts[i] = pln_mem_new(call->engine, (n[i] + 1) * sizeof(float));
    made = made && *parts[i];
  }
  pln_status status = made ? route(m) : pln_nomem(call->engine);
  if (status == PLN_OK)
    status = run_experts(m, out);
  for (uint32_t i = 0; i < PLN_COUNT(parts); i++)
    pln_mem_free(call->engine, *parts[i], (n[i] + 1) * sizeof(float));
  pln_mem_free(call->engine, m->taken_by, tokens);
  return status;
}

/* -------------------------------------------------------------------- kernels
 */

static expert_layer float_layer(const pln_kernel_call *call, uint32_t at) {
  return (expert_layer){.weights = pln_kernel_arg(call, at),
                        .bias = pln_kernel_arg(call, at + 1)};
}

/* (x, router_probs, fc1, bias, fc2, bias, fc3, bias) */
static pln_status mixture_of_experts(pln_kernel_call *call) {
  mixture m = {.call = call};
  PLN_TRY(read_activation(call, &m));
  PLN_TRY(read_sizes(call, &m));
  m.fc1 = float_layer(call, 2);
  m.fc2 = float_layer(call, 4);
  m.fc3 = float_layer(call, 6);
  PLN_TRY(check_layers(&m));
  return run_mixture(call, &m);
}

pln_status pln_kernel_mixture_of_experts(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", mixture_of_experts);
}

static pln_status read_packed(const mixture *m, uint32_t i, size_t inputs,
                              expert_layer *l) {
  const pln_kernel_call *call = m->call;
  static const char *const names[] = {"fc1_expert_weight_bits",
                                      "fc2_expert_weight_bits",
                                      "fc3_expert_weight_bits"};
  int64_t bits = pln_kernel_int(call, names[i],
                                pln_kernel_int(call, "expert_weight_bits", 4));
  int64_t block = pln_kernel_int(call, "block_size", 0);
  *l = (expert_layer){.weights = pln_kernel_arg(call, 2 + 3 * i),
                      .scales = pln_kernel_arg(call, 3 + 3 * i),
                      .bias = pln_kernel_arg(call, 4 + 3 * i),
                      .zeros = pln_kernel_arg(call, 11 + i),
                      .bits = (uint32_t)bits,
                      .blocks = 1};
  if (bits != 2 && bits != 4 && bits != 8)
    return pln_kernel_refuse(call, "%s %lld is not 2, 4 or 8", names[i],
                             (long long)bits);
  if (block <= 0)
    return PLN_OK;
  if (block < 16 || (block & (block - 1)) || inputs % (size_t)block)
    return pln_kernel_refuse(call, "block_size %lld does not divide %zu",
                             (long long)block, inputs);
  l->blocks = inputs / (size_t)block;
  return PLN_OK;
}

static pln_status check_integers(const pln_kernel_call *call) {
  if (!pln_kernel_string_is(call, "quant_type", "int", "int"))
    return pln_kernel_refuse(call, "only quant_type 'int' is computed");
  if (pln_kernel_int(call, "weights_prepacked", -1) == 1)
    return pln_kernel_refuse(call, "prepacked weights have no defined layout");
  for (uint32_t i = 15; i < 21; i++)
    if (pln_kernel_arg(call, i))
      return pln_kernel_refuse(call, "operand %u is of another quant_type", i);
  return PLN_OK;
}

/* (x, router_probs, three times weights, scales and bias, three times zero
 * points, router_weights) */
static pln_status quantised_mixture_of_experts(pln_kernel_call *call) {
  mixture m = {.call = call};
  PLN_TRY(check_integers(call));
  PLN_TRY(read_activation(call, &m));
  PLN_TRY(read_sizes(call, &m));
  const pln_tensor *w = pln_kernel_arg(call, 2);
  size_t rows = w->rank == 3 ? (size_t)w->dims[1] : 0;
  PLN_TRY(read_packed(&m, 0, m.hidden, &m.fc1));
  PLN_TRY(read_packed(&m, 1, m.gated ? rows / 2 : rows, &m.fc2));
  PLN_TRY(read_packed(&m, 2, m.hidden, &m.fc3));
  PLN_TRY(check_layers(&m));
  return run_mixture(call, &m);
}

pln_status pln_kernel_quantised_mixture_of_experts(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", quantised_mixture_of_experts);
}
