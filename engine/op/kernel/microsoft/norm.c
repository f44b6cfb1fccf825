/* norm.c: normalisation of sums, of com.microsoft. Called through ops.def.
 *
 *     SkipLayerNormalization(x, skip, gamma, beta, bias)
 *         =>   nn.layer_norm(x + skip + bias, gamma, beta), and that sum
 *
 * Semantics: ONNX Runtime's SkipLayerNormalization,
 * SkipSimplifiedLayerNormalization, SimplifiedLayerNormalization,
 * EmbedLayerNormalization and QEmbedLayerNormalization. Mean and deviation of
 * skip norms are results of training, which ONNX Runtime does not compute
 * either. */

#include <math.h>

#include "op/kernel/composed.h"
#include "op/kernel/half_as_float.h"

enum { MEAN = 1, DEVIATION, SUM }; /* results */

static const pln_tensor *normalize(pln_composition *s, const pln_tensor *x,
                                   const pln_tensor *gamma,
                                   const pln_tensor *beta, double epsilon) {
  const pln_tensor *args[3] = {x, gamma, beta};
  pln_compose_float(s, "epsilon",
                    pln_kernel_float(s->call, "epsilon", epsilon));
  return pln_compose_call(s, PLN_OP_LAYER_NORMALIZATION, beta ? 3 : 2, args);
}

static const pln_tensor *normalize_rms(pln_composition *s, const pln_tensor *x,
                                       const pln_tensor *gamma,
                                       double epsilon) {
  pln_compose_float(s, "epsilon",
                    pln_kernel_float(s->call, "epsilon", epsilon));
  return pln_compose_binary(s, PLN_OP_RMS_NORMALIZATION, x, gamma);
}

/* x + skip + bias. */
static const pln_tensor *skip_sum(pln_composition *s, uint32_t bias_arg) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  const pln_tensor *bias = pln_kernel_arg(s->call, bias_arg);
  const pln_tensor *sum =
      pln_compose_binary(s, PLN_OP_ADD, x, pln_kernel_arg(s->call, 1));
  if (sum && bias)
    sum = pln_compose_binary(s, PLN_OP_ADD, sum, bias);
  if (sum && (sum->rank != x->rank || sum->count != x->count))
    pln_composition_refuse(s, "skip or bias has more elements than operand 0");
  return sum;
}

/* Results of training: zeros, which ONNX Runtime leaves undefined. */
static void leave_statistics(pln_composition *s) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  int64_t dims[PLN_MAX_RANK];
  void *data;
  if (x->rank == 0 || x->rank > PLN_MAX_RANK)
    return;
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank - 1] = 1;
  for (uint32_t i = MEAN; i < SUM && i < s->call->n_results; i++)
    if (s->status == PLN_OK)
      s->status =
          pln_kernel_result(s->call, i, PLN_FLOAT32, x->rank, dims, &data);
}

/* (x, skip, gamma, beta, bias) */
static pln_status skip_layer_norm(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *sum = skip_sum(&s, 4);
  const pln_tensor *y = normalize(&s, sum, pln_kernel_arg(call, 2),
                                  pln_kernel_arg(call, 3), (double)1e-12f);
  leave_statistics(&s);
  pln_composition_set_result(&s, SUM, sum);
  return pln_composition_finish(&s, y);
}

pln_status pln_kernel_skip_layer_norm(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0990", skip_layer_norm);
}

/* (x, skip, gamma, bias) */
static pln_status skip_rms_norm(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *sum = skip_sum(&s, 3);
  const pln_tensor *y =
      normalize_rms(&s, sum, pln_kernel_arg(call, 2), (double)1e-12f);
  leave_statistics(&s);
  pln_composition_set_result(&s, SUM, sum);
  return pln_composition_finish(&s, y);
}

pln_status pln_kernel_skip_rms_norm(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0990", skip_rms_norm);
}

/* ------------------------------------------------- simplified normalisation */

/* 1 / sqrt(mean of squares + epsilon) over the axes from `axis` on. */
static const pln_tensor *inverse_deviation(pln_composition *s, double epsilon) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  int64_t axes[PLN_MAX_RANK];
  uint32_t axis, n = 0;
  if (!pln_kernel_axis(pln_kernel_int(s->call, "axis", -1), x->rank, &axis) ||
      x->rank > PLN_MAX_RANK) {
    pln_composition_refuse(s, "axis is out of range");
    return NULL;
  }
  while (axis < x->rank)
    axes[n++] = axis++;
  x = pln_compose_cast(s, x, PLN_FLOAT32);
  const pln_tensor *square = pln_compose_binary(s, PLN_OP_MUL, x, x);
  pln_compose_ints(s, "axes", n, axes);
  const pln_tensor *mean = pln_compose_unary(s, PLN_OP_REDUCE_MEAN, square);
  mean = pln_compose_binary(s, PLN_OP_ADD, mean,
                            pln_compose_scalar(s, PLN_FLOAT32, epsilon));
  return pln_compose_unary(s, PLN_OP_RSQRT, mean);
}

/* (x, scale). Results: the norm, the inverse deviation. */
pln_status pln_kernel_simplified_norm(pln_kernel_call *call) {
  double epsilon = pln_kernel_float(call, "epsilon", (double)1e-5f);
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_compose_forward(&s, "axis");
  const pln_tensor *y = normalize_rms(&s, pln_kernel_arg(call, 0),
                                      pln_kernel_arg(call, 1), epsilon);
  if (call->n_results > 1)
    pln_composition_set_result(&s, 1, inverse_deviation(&s, epsilon));
  return pln_composition_finish(&s, y);
}

/* -------------------------------------------------------------- embeddings */

/* Rows of a table, by operand `ids`. */
static const pln_tensor *rows_of(pln_composition *s, uint32_t table,
                                 const pln_tensor *ids) {
  return pln_compose_binary(s, PLN_OP_GATHER, pln_kernel_arg(s->call, table),
                            ids);
}

/* Without position ids, steps are counted from 0. */
static const pln_tensor *positions(pln_composition *s,
                                   const pln_tensor *given) {
  const pln_tensor *ids = pln_kernel_arg(s->call, 0);
  int64_t steps[1] = {ids->dims[1]};
  pln_tensor *t = NULL;
  if (given)
    return rows_of(s, 3, given);
  if (s->status == PLN_OK)
    s->status = pln_tensor_new(s->call->engine, PLN_INT64, 1, steps, &t);
  const pln_tensor *counted = pln_compose_own(s, t);
  for (int64_t i = 0; counted && i < steps[0]; i++)
    ((int64_t *)pln_tensor_writable(t))[i] = i;
  return rows_of(s, 3, counted);
}

/* How many steps of each batch a mask leaves; 0 without mask. */
static pln_status count_mask(pln_kernel_call *call) {
  const pln_tensor *ids = pln_kernel_arg(call, 0), *m = pln_kernel_arg(call, 7);
  size_t batch = (size_t)ids->dims[0], steps = (size_t)ids->dims[1];
  void *data;
  if (call->n_results < 2)
    return PLN_OK;
  if (m && (m->dtype != PLN_INT32 || m->count != ids->count))
    return pln_kernel_refuse(call, "the mask does not match the ids");
  PLN_TRY(pln_kernel_result(call, 1, PLN_INT32, 1, ids->dims, &data));
  for (size_t b = 0; m && b < batch; b++)
    for (size_t i = 0; i < steps; i++)
      ((int32_t *)data)[b] += ((const int32_t *)m->data)[b * steps + i] == 1;
  return PLN_OK;
}

/* (ids, segments, words, positions, segment table, gamma, beta, mask,
 * position ids) */
pln_status pln_kernel_embed_layer_norm(pln_kernel_call *call) {
  const pln_tensor *ids = pln_kernel_arg(call, 0);
  const pln_tensor *segments = pln_kernel_arg(call, 1);
  pln_composition s;
  pln_composition_begin(&s, call);
  if (ids->rank != 2)
    return pln_kernel_refuse(call, "the ids have rank %u, not 2", ids->rank);
  if (!segments != !pln_kernel_arg(call, 4))
    return pln_kernel_refuse(call, "segments and their table come together");
  const pln_tensor *sum =
      pln_compose_binary(&s, PLN_OP_ADD, rows_of(&s, 2, ids),
                         positions(&s, pln_kernel_arg(call, 8)));
  if (segments)
    sum = pln_compose_binary(&s, PLN_OP_ADD, sum, rows_of(&s, 4, segments));
  const pln_tensor *y = normalize(&s, sum, pln_kernel_arg(call, 5),
                                  pln_kernel_arg(call, 6), (double)1e-12f);
  if (s.status == PLN_OK)
    s.status = count_mask(call);
  pln_composition_set_result(&s, 2, sum);
  return pln_composition_finish(&s, y);
}

/* Elements of a table as floats, whose scale and zero point are the operands
 * `scale` and `scale` + 5. */
static const pln_tensor *dequantized(pln_composition *s, const pln_tensor *x,
                                     uint32_t scale) {
  const pln_tensor *args[3] = {x, pln_kernel_arg(s->call, scale),
                               pln_kernel_arg(s->call, scale + 5)};
  for (uint32_t i = 1; i < 3; i++)
    if (!args[i] || args[i]->count != 1)
      pln_composition_refuse(s, "a scale or zero point is not one number");
  return pln_compose_call(s, PLN_OP_DEQUANTIZE_LINEAR, 3, args);
}

enum { QUANTIZED_SCALES = 8 }; /* the operand that is the first scale */

/* (ids, segments, words, positions, segment table, gamma, beta, mask), scales
 * and zero points of the five tables */
pln_status pln_kernel_qembed_layer_norm(pln_kernel_call *call) {
  const pln_tensor *ids = pln_kernel_arg(call, 0);
  const pln_tensor *segments = pln_kernel_arg(call, 1);
  const uint32_t scale = QUANTIZED_SCALES;
  pln_composition s;
  pln_composition_begin(&s, call);
  if (ids->rank != 2)
    return pln_kernel_refuse(call, "the ids have rank %u, not 2", ids->rank);
  if (!segments != !pln_kernel_arg(call, 4))
    return pln_kernel_refuse(call, "segments and their table come together");
  const pln_tensor *words = dequantized(&s, rows_of(&s, 2, ids), scale);
  const pln_tensor *places = dequantized(&s, positions(&s, NULL), scale + 1);
  const pln_tensor *sum = pln_compose_binary(&s, PLN_OP_ADD, words, places);
  if (segments)
    sum = pln_compose_binary(
        &s, PLN_OP_ADD, sum,
        dequantized(&s, rows_of(&s, 4, segments), scale + 2));
  const pln_tensor *gamma = dequantized(&s, pln_kernel_arg(call, 5), scale + 3);
  const pln_tensor *beta = dequantized(&s, pln_kernel_arg(call, 6), scale + 4);
  const pln_tensor *y = normalize(&s, sum, gamma, beta, (double)1e-12f);
  if (s.status == PLN_OK)
    s.status = count_mask(call);
  return pln_composition_finish(&s, y);
}
