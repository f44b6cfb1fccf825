/* dynamic_quantize_lstm.c: DynamicQuantizeLSTM of com.microsoft: lstm with
 * weights of 8 bits, whose input, and state in each step, are rounded to 8 bits
 * by their own range. Type and kernel. Called through ops.def.
 *
 *     DynamicQuantizeLSTM(x, w, r, ..., scale, zero of w, scale, zero of r)
 *         =>   lstm(rounded x, (w - zero) * scale, (r - zero) * scale, ...)
 *
 * Weights are (directions, inputs, gates), transposed against those of lstm.
 * Products of rounded numbers are computed in float32. Semantics: ONNX
 * Runtime's CPU kernel. */

#include <math.h>

#include "op/kernel/composed.h"
#include "op/kernel/rnn/recurrent.h"

enum { W_SCALE = 8, R_SCALE = 10 };

/* (x, w, r, bias, lengths, hidden, cell, peepholes, scale, zero, scale,
 * zero) */
pln_status pln_infer_dynamic_quantize_lstm(pln_infer *call) {
  bool both = pln_call_string_is(call, "direction", "forward", "bidirectional");
  pln_dtype dtype = pln_arg_dtype(call, 0);
  pln_shape all, last;
  for (uint32_t i = 0; i < 3; i++)
    PLN_TRY(pln_arg_expect_rank(call, i, 3));
  for (uint32_t i = W_SCALE; i < 12; i++) {
    if (pln_arg_absent(call, i))
      return pln_arg_error(call, i, "is missing");
    PLN_TRY(pln_arg_expect_rank_within(call, i, 1, 2));
  }
  pln_shape_ranked(&all, 4);
  pln_shape_ranked(&last, 3);
  all.dims[1] = last.dims[0] = both ? 2 : 1;
  if (pln_arg_rank(call, 0) == 3) {
    all.dims[0] = pln_arg_dims(call, 0)[0];
    all.dims[2] = last.dims[1] = pln_arg_dims(call, 0)[1];
  }
  if (pln_arg_rank(call, 2) == 3)
    all.dims[3] = last.dims[2] = pln_arg_dims(call, 2)[1];
  PLN_TRY(pln_result_tensor(call, 0, dtype, &all));
  PLN_TRY(pln_result_tensor(call, 1, dtype, &last));
  return pln_result_tensor(call, 2, dtype, &last);
}

/* ----------------------------------------------------------------- rounding */

void pln_round_to_bytes(const float *from, float *to, size_t n) {
  float low = 0, high = 0;
  for (size_t i = 0; i < n; i++) {
    low = from[i] < low ? from[i] : low;
    high = from[i] > high ? from[i] : high;
  }
  float scale = high == low ? 1 : (high - low) / 255;
  float zero = rintf(-low / scale);
  for (size_t i = 0; i < n; i++) {
    float q = rintf(from[i] / scale) + zero;
    q = q < 0 ? 0 : q > 255 ? 255 : q;
    to[i] = (q - zero) * scale;
  }
}

static const pln_tensor *rounded(pln_composition *s, const pln_tensor *x) {
  pln_tensor *t = NULL;
  s->status =
      pln_tensor_unset(s->call->engine, PLN_FLOAT32, x->rank, x->dims, &t);
  const pln_tensor *kept = pln_compose_own(s, t);
  if (kept)
    pln_round_to_bytes(x->data, pln_tensor_writable(t), x->count);
  return kept;
}

/* ------------------------------------------------------------------ weights */

typedef struct byte_weights {
  const pln_tensor *of, *scale, *zero;
  size_t directions, rows, columns, scales; /* of a direction: 1 or columns */
} byte_weights;

static bool read_byte_weights(const pln_kernel_call *call, uint32_t arg,
                              uint32_t scale, byte_weights *w) {
  *w = (byte_weights){.of = pln_kernel_arg(call, arg),
                      .scale = pln_kernel_arg(call, scale),
                      .zero = pln_kernel_arg(call, scale + 1)};
  pln_dtype dtype = (pln_dtype)w->of->dtype;
  if ((dtype != PLN_INT8 && dtype != PLN_UINT8) || w->of->rank != 3 ||
      !w->scale || !w->zero || w->zero->dtype != dtype ||
      w->scale->dtype != PLN_FLOAT32 || w->scale->count != w->zero->count)
    return false;
  w->directions = (size_t)w->of->dims[0];
  w->rows = (size_t)w->of->dims[1];
  w->columns = (size_t)w->of->dims[2];
  w->scales = w->directions ? w->scale->count / w->directions : 0;
  return w->directions > 0 && w->directions * w->scales == w->scale->count &&
         (w->scales == 1 || w->scales == w->columns);
}

static float byte_at(const pln_tensor *t, size_t i) {
  return t->dtype == PLN_INT8 ? (float)((const int8_t *)t->data)[i]
                              : (float)((const uint8_t *)t->data)[i];
}

static void transpose_weights(const byte_weights *w, float *out) {
  for (size_t d = 0; d < w->directions; d++)
    for (size_t j = 0; j < w->columns; j++) {
      size_t at = d * w->scales + (w->scales > 1 ? j : 0);
      float scale = ((const float *)w->scale->data)[at];
      float zero = byte_at(w->zero, at);
      for (size_t i = 0; i < w->rows; i++)
        *out++ =
            (byte_at(w->of, (d * w->rows + i) * w->columns + j) - zero) * scale;
    }
}

/* As lstm has them. */
static const pln_tensor *plain_weights(pln_composition *s, uint32_t arg,
                                       uint32_t scale) {
  byte_weights w;
  pln_tensor *t = NULL;
  if (!read_byte_weights(s->call, arg, scale, &w))
    pln_composition_refuse(s, "weights, scales and zero points do not match");
  if (s->status != PLN_OK)
    return NULL;
  const int64_t dims[3] = {w.of->dims[0], w.of->dims[2], w.of->dims[1]};
  s->status = pln_tensor_unset(s->call->engine, PLN_FLOAT32, 3, dims, &t);
  const pln_tensor *kept = pln_compose_own(s, t);
  if (kept)
    transpose_weights(&w, pln_tensor_writable(t));
  return kept;
}

pln_status pln_kernel_dynamic_quantize_lstm(pln_kernel_call *call) {
  const pln_tensor *args[8], *x = pln_kernel_arg(call, 0);
  pln_composition s;
  if (x->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  for (uint32_t i = 0; i < PLN_COUNT(args); i++)
    args[i] = pln_kernel_arg(call, i);
  pln_composition_begin(&s, call);
  args[0] = rounded(&s, x);
  args[1] = plain_weights(&s, 1, W_SCALE);
  args[2] = plain_weights(&s, 2, R_SCALE);
  pln_kernel_call layer = *call;
  layer.args = args;
  layer.n_args = PLN_COUNT(args);
  if (s.status == PLN_OK)
    s.status = pln_lstm_rounded_run(&layer);
  return pln_composition_end(&s);
}
