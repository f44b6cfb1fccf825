/* signal.c: kernels of Relay's dft and stft, composed of ONNX's. Called by
 * op/kernel/signal; types are in op/infer/signal.c.
 *
 * Semantics: TVM topi.dft and topi.stft. */

#include <math.h>

#include "op/kernel/composed.h"
#include "op/relay/kernel/relay_form/relay_form.h"

static bool has_same_dims(const pln_tensor *a, const pln_tensor *b) {
  return a->rank == b->rank &&
         !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

/* x with one more axis of extent 1 at its end. */
static const pln_tensor *with_last_axis(pln_composition *s,
                                        const pln_tensor *x) {
  int64_t dims[PLN_MAX_RANK];
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank] = 1;
  return pln_compose_reshape(s, x, x->rank + 1, dims);
}

/* Component `i` of complex numbers, as an operand `like` has its shape. */
static const pln_tensor *component(pln_composition *s, const pln_tensor *z,
                                   int64_t i, const pln_tensor *like) {
  return pln_compose_reshape(s, pln_compose_slice(s, z, like->rank, i, i + 1),
                             like->rank, like->dims);
}

/* (real parts, imaginary parts), transformed along the last axis. */
pln_status pln_kernel_relay_dft(pln_kernel_call *call) {
  const pln_tensor *re = pln_kernel_arg(call, 0), *im = pln_kernel_arg(call, 1);
  const pln_tensor *parts[2], *z;
  pln_composition s;
  if (!im || re->rank < 1 || re->rank >= PLN_MAX_RANK ||
      re->dtype != im->dtype || !has_same_dims(re, im))
    return pln_kernel_refuse(call, "the operands do not match each other");
  pln_composition_begin(&s, call);
  parts[0] = with_last_axis(&s, re);
  parts[1] = with_last_axis(&s, im);
  pln_compose_int(&s, "axis", re->rank);
  z = pln_compose_call(&s, PLN_OP_CONCAT, 2, parts);
  pln_compose_int(&s, "axis", re->rank - 1);
  pln_compose_forward(&s, "inverse");
  z = pln_compose_unary(&s, PLN_OP_DFT, z);
  pln_composition_set_result(&s, 0, component(&s, z, 0, re));
  pln_composition_set_result(&s, 1, component(&s, z, 1, re));
  return pln_composition_end(&s);
}

typedef struct frames {
  int64_t n_fft, hop, length; /* length: of the window */
  int64_t bins, count;
} frames;

static bool read_frames(const pln_kernel_call *call, const pln_tensor *x,
                        const pln_tensor *window, frames *f) {
  f->n_fft = pln_kernel_int(call, "n_fft", -1);
  f->hop = pln_kernel_int(call, "hop_length", -1);
  f->length = pln_kernel_int(call, "win_length", -1);
  if (f->length < 0)
    f->length = f->n_fft;
  if (!window || window->rank != 1 || x->rank < 1 || x->rank > 2 ||
      f->n_fft < 1 || f->hop < 1 || f->length < 1 || f->length > f->n_fft ||
      window->dims[0] != f->length || x->dims[x->rank - 1] < f->n_fft)
    return false;
  f->bins = pln_kernel_int(call, "onesided", 1) ? f->n_fft / 2 + 1 : f->n_fft;
  f->count = (x->dims[x->rank - 1] - f->n_fft) / f->hop + 1;
  return true;
}

/* The bins of a frame: those of the window's length, which repeat. */
static const pln_tensor *take_bins(pln_composition *s, const pln_tensor *z,
                                   const frames *f) {
  pln_tensor *bins = NULL;
  if (s->status == PLN_OK)
    s->status = pln_tensor_new(s->call->engine, PLN_INT64, 1, &f->bins, &bins);
  const pln_tensor *args[2] = {z, pln_compose_own(s, bins)};
  if (s->status != PLN_OK)
    return NULL;
  int64_t *at = pln_tensor_writable(bins);
  for (int64_t i = 0; i < f->bins; i++)
    at[i] = i % f->length;
  pln_compose_int(s, "axis", 2);
  return pln_compose_call(s, PLN_OP_GATHER, 2, args);
}

/* (batch, signal) or (signal), and a window, to (batch, bins, frames, 2). */
pln_status pln_kernel_relay_stft(pln_kernel_call *call) {
  static const int64_t bins_first[] = {0, 2, 1, 3};
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *window = pln_kernel_arg(call, 1);
  pln_composition s;
  frames f;
  if (!read_frames(call, x, window, &f))
    return pln_kernel_refuse(call, "the frames do not match the operands");
  int64_t dims[] = {x->rank == 2 ? x->dims[0] : 1, x->dims[x->rank - 1], 1};
  int64_t flat[] = {f.bins, f.count, 2};
  pln_composition_begin(&s, call);
  const pln_tensor *args[4] = {
      pln_compose_reshape(&s, x, 3, dims),
      pln_compose_scalar(&s, PLN_INT64, (double)f.hop), window,
      pln_compose_scalar(&s, PLN_INT64, (double)f.length)};
  pln_compose_int(&s, "onesided", 0);
  const pln_tensor *z = pln_compose_call(&s, PLN_OP_STFT, 4, args);
  z = take_bins(&s, pln_compose_slice(&s, z, 1, 0, f.count), &f);
  z = pln_compose_transpose(&s, z, 4, bins_first);
  if (pln_kernel_int(call, "normalized", 0))
    z = pln_compose_binary(
        &s, PLN_OP_DIV, z,
        pln_compose_scalar(&s, (pln_dtype)x->dtype, sqrt((double)f.n_fft)));
  if (x->rank == 1)
    z = pln_compose_reshape(&s, z, 3, flat);
  return pln_composition_finish(&s, z);
}
