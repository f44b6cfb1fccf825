/* signal.c: type inference of Fourier transforms and window functions. Called
 * through ops.def; the kernels are in kernel/signal/. */

#include "op/infer/infer.h"

/* length / 2 + 1: the number of frequencies of a real signal. */
static pln_status half_spectrum(const pln_infer *call, pln_dim length,
                                pln_dim *out) {
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, length, 2, out));
  return pln_infer_dim(call, PLN_DIM_ADD, *out, 1, out);
}

/* 2 * (length - 1): the length of the real signal of a half spectrum. */
static pln_status whole_spectrum(const pln_infer *call, pln_dim length,
                                 pln_dim *out) {
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, length, 1, out));
  return pln_infer_dim(call, PLN_DIM_MUL, *out, 2, out);
}

static pln_dim scalar_arg(const pln_infer *call, uint32_t arg) {
  pln_list list = pln_arg_list(call, arg, NULL);
  return list.sized && list.count == 1 ? pln_list_at(&list, 0)
                                       : (pln_dim)PLN_DIM_UNKNOWN;
}

/* The axis is operand 2 from opset 20 on. */
static pln_status transformed_axis(const pln_infer *call, int32_t rank,
                                   int32_t *axis) {
  pln_dim at = pln_call_int(call, "axis", 1);
  *axis = -1;
  if (call->n_args > 2 && !pln_arg_absent(call, 2))
    at = scalar_arg(call, 2);
  return PLN_DIM_IS_CONST(at) ? pln_call_axis(call, at, rank, axis) : PLN_OK;
}

/* Relay's form takes and gives real and imaginary parts. */
static pln_status infer_relay_dft(pln_infer *call) {
  pln_result_like(call, 0, 0);
  pln_result_like(call, 1, 1);
  return PLN_OK;
}

/* (batch, signal..., 1 or 2); the last axis has the real and imaginary part. */
pln_status pln_infer_dft(pln_infer *call) {
  if (pln_call_int(call, "relay", 0))
    return infer_relay_dft(call);
  pln_shape s;
  int32_t axis;
  bool half = pln_call_int(call, "onesided", 0) != 0;
  bool inverse = pln_call_int(call, "inverse", 0) != 0;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, INT32_MAX));
  pln_arg_shape(call, 0, &s);
  if (s.rank < 0)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &s);
  PLN_TRY(transformed_axis(call, s.rank, &axis));
  if (axis < 0) {
    pln_shape_ranked(&s, s.rank);
  } else {
    if (!pln_arg_absent(call, 1))
      s.dims[axis] = scalar_arg(call, 1);
    else if (half && inverse)
      PLN_TRY(whole_spectrum(call, s.dims[axis], &s.dims[axis]));
    if (half && !inverse)
      PLN_TRY(half_spectrum(call, s.dims[axis], &s.dims[axis]));
  }
  s.dims[s.rank - 1] = half && inverse ? 1 : 2;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &s);
}

/* Relay's form: a signal with or without a batch, and a window, to
 * (batch, bins, frames, 2). */
static pln_status infer_relay_stft(pln_infer *call) {
  pln_shape x, out;
  int64_t n_fft = pln_call_int(call, "n_fft", -1);
  int64_t hop = pln_call_int(call, "hop_length", -1);
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, 2));
  if (n_fft < 1 || hop < 1)
    return pln_call_error(call, "n_fft %lld and hop_length %lld: %s",
                          (long long)n_fft, (long long)hop,
                          "expected positive numbers");
  pln_arg_shape(call, 0, &x);
  if (x.rank < 1) {
    pln_shape_unknown(&out);
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  }
  pln_shape_ranked(&out, x.rank + 2);
  pln_dim *frames = &out.dims[x.rank], length = x.dims[x.rank - 1];
  out.dims[0] = x.dims[0];
  out.dims[x.rank - 1] =
      pln_call_int(call, "onesided", 1) ? n_fft / 2 + 1 : n_fft;
  out.dims[x.rank + 1] = 2;
  PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, length, n_fft, frames));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *frames, hop, frames));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *frames, 1, frames));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* (signal, step, window, frame length) to (batch, frames, bins, 2). */
pln_status pln_infer_stft(pln_infer *call) {
  if (pln_call_int(call, "relay", 0))
    return infer_relay_stft(call);
  pln_shape x, window, out;
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 2, &window);
  pln_dim length = scalar_arg(call, 3), step = scalar_arg(call, 1);
  if (window.rank == 1)
    length = window.dims[0];
  else if (pln_arg_absent(call, 2) && pln_arg_absent(call, 3) && x.rank >= 2)
    length = x.dims[1];
  pln_shape_ranked(&out, 4);
  out.dims[2] = length;
  out.dims[3] = 2;
  if (pln_call_int(call, "onesided", 1))
    PLN_TRY(half_spectrum(call, length, &out.dims[2]));
  if (x.rank >= 2) {
    out.dims[0] = x.dims[0];
    PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, x.dims[1], length, &out.dims[1]));
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_FLOORDIV, out.dims[1], step, &out.dims[1]));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, out.dims[1], 1, &out.dims[1]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

static pln_dtype chosen_dtype(const pln_infer *call) {
  int64_t dtype = pln_call_int(call, "output_datatype", PLN_FLOAT32);
  return dtype > 0 && dtype < PLN_N_DTYPES ? (pln_dtype)dtype
                                           : (pln_dtype)PLN_DTYPE_NONE;
}

pln_status pln_infer_window(pln_infer *call) {
  pln_shape out = {1, {scalar_arg(call, 0)}};
  return pln_result_tensor(call, 0, chosen_dtype(call), &out);
}

pln_status pln_infer_mel_weight_matrix(pln_infer *call) {
  pln_shape out = {2, {PLN_DIM_UNKNOWN, scalar_arg(call, 0)}};
  PLN_TRY(half_spectrum(call, scalar_arg(call, 1), &out.dims[0]));
  return pln_result_tensor(call, 0, chosen_dtype(call), &out);
}
