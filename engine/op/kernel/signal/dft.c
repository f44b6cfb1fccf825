/* dft.c: Fourier transforms along an axis, and of frames of a signal (stft).
 * Called through ops.def; types are in infer/signal.c. Lines are transformed
 * one at a time in double. */

#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/signal/fft.h"
#include "op/relay/kernel/relay_form/relay_form.h"

/* An argument that is one integer. */
static pln_status read_scalar(const pln_kernel_call *call, uint32_t arg,
                              int64_t least, int64_t *out) {
  const pln_tensor *t = pln_kernel_arg(call, arg);
  if (!t)
    return PLN_OK;
  if (t->count != 1 || !pln_tensor_int(t, 0, out))
    return pln_kernel_refuse(call, "operand %u is not an integer", arg);
  if (*out < least)
    return pln_kernel_refuse(call, "operand %u is %lld", arg, (long long)*out);
  return PLN_OK;
}

/* --------------------------------------------------------------------- lines
 */

/* A line of numbers, `step` apart, with `parts` components each: 1 (real) or 2
 * (complex). */
typedef struct dft_line {
  const pln_tensor *of;
  size_t first, count, step, parts;
} dft_line;

static pln_complex number_at(const dft_line *l, size_t i) {
  size_t at = (l->first + i * l->step) * l->parts;
  return (pln_complex){pln_element_at(l->of, at),
                       l->parts > 1 ? pln_element_at(l->of, at + 1) : 0};
}

/* Looks once in a while whether to stop; the rest is then unset. */
static bool goes_on(const dft_line *l, size_t i) {
  return i % (1 << 15) || !pln_is_stopped(l->of->engine);
}

/* Reads a line, truncated or zero-padded to n numbers. */
static void read_line(const dft_line *l, size_t n, pln_complex *x) {
  for (size_t i = 0; i < n && goes_on(l, i); i++)
    x[i] = i < l->count ? number_at(l, i) : (pln_complex){0, 0};
}

/* Reads half a spectrum and mirrors it. */
static void read_half(const dft_line *l, size_t n, pln_complex *x) {
  read_line(l, n / 2 + 1, x);
  x[0].im = 0;
  if (n % 2 == 0)
    x[n / 2].im = 0;
  for (size_t i = 1; i < (n + 1) / 2 && goes_on(l, i); i++)
    x[n - i] = (pln_complex){x[i].re, -x[i].im};
}

/* The first l->count numbers. */
static void write_line(const dft_line *l, pln_tensor *to,
                       const pln_complex *x) {
  for (size_t i = 0; i < l->count && goes_on(l, i); i++) {
    size_t at = (l->first + i * l->step) * l->parts;
    pln_element_set(to, at, x[i].re);
    if (l->parts > 1)
      pln_element_set(to, at + 1, x[i].im);
  }
}

static pln_status begin_lines(const pln_kernel_call *call, size_t n,
                              pln_fft *fft, pln_complex **x) {
  PLN_TRY(pln_fft_begin(call->engine, n, fft));
  *x = pln_mem_new(call->engine, (n + 1) * sizeof **x);
  if (*x)
    return PLN_OK;
  pln_fft_end(fft);
  return pln_nomem(call->engine);
}

static void end_lines(pln_fft *fft, pln_complex *x) {
  pln_mem_free(fft->engine, x, (fft->n + 1) * sizeof *x);
  pln_fft_end(fft);
}

/* ----------------------------------------------------------------------- dft
 */

typedef struct transform {
  const pln_tensor *x;
  uint32_t axis;
  size_t parts; /* of a number of x */
  int64_t length;
  bool inverse, half;
} transform;

static pln_status read_transform(const pln_kernel_call *call, transform *t) {
  const pln_tensor *x = t->x = pln_kernel_arg(call, 0);
  int64_t axis = pln_kernel_int(call, "axis", 1);
  PLN_TRY(read_scalar(call, 2, INT64_MIN, &axis));
  if (!pln_is_float32_or_64(x))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank < 2 || (x->dims[x->rank - 1] != 1 && x->dims[x->rank - 1] != 2))
    return pln_kernel_refuse(call, "the last axis must have 1 or 2 parts");
  if (!pln_kernel_axis(axis, x->rank, &t->axis) || t->axis == x->rank - 1)
    return pln_kernel_refuse(call, "axis %lld is none of the signal",
                             (long long)axis);
  t->parts = (size_t)x->dims[x->rank - 1];
  t->inverse = pln_kernel_int(call, "inverse", 0) != 0;
  t->half = pln_kernel_int(call, "onesided", 0) != 0;
  if (t->half && t->parts != (t->inverse ? 2 : 1))
    return pln_kernel_refuse(call, "one side of a spectrum is %s",
                             t->inverse ? "complex" : "that of real numbers");
  int64_t n = x->dims[t->axis];
  t->length = t->half && t->inverse ? 2 * (n - 1) : n;
  PLN_TRY(read_scalar(call, 1, 1, &t->length));
  if (t->length < 1)
    return pln_kernel_refuse(call, "there are no %lld numbers to transform",
                             (long long)t->length);
  return PLN_OK;
}

static pln_status new_spectrum(pln_kernel_call *call, const transform *t) {
  const pln_tensor *x = t->x;
  int64_t dims[PLN_MAX_RANK];
  void *data;
  if (x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "more than %d axes", PLN_MAX_RANK);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[t->axis] = t->half && !t->inverse ? t->length / 2 + 1 : t->length;
  dims[x->rank - 1] = t->half && t->inverse ? 1 : 2;
  return pln_kernel_unset(call, 0, (pln_dtype)x->dtype, x->rank, dims, &data);
}

static void transform_lines(const transform *t, pln_tensor *out,
                            const pln_fft *fft, pln_complex *work) {
  const pln_tensor *x = t->x;
  size_t outer = pln_dims_product(x->dims, 0, t->axis);
  size_t inner = pln_dims_product(x->dims, t->axis + 1, x->rank - 1);
  dft_line from = {x, 0, (size_t)x->dims[t->axis], inner, t->parts};
  dft_line to = {out, 0, (size_t)out->dims[t->axis], inner,
                 (size_t)out->dims[x->rank - 1]};
  size_t done = 0;
  for (size_t o = 0; o < outer; o++)
    for (size_t i = 0; i < inner; i++) {
      if (pln_is_stopped_after(fft->engine, &done, 8 * fft->n))
        return;
      from.first = o * from.count * inner + i;
      to.first = o * to.count * inner + i;
      if (t->half && t->inverse)
        read_half(&from, fft->n, work);
      else
        read_line(&from, fft->n, work);
      pln_fft_run(fft, work, t->inverse);
      write_line(&to, out, work);
    }
}

static pln_status dft(pln_kernel_call *call) {
  transform t;
  pln_fft fft;
  pln_complex *work;
  PLN_TRY(read_transform(call, &t));
  PLN_TRY(new_spectrum(call, &t));
  if (call->results[0]->count == 0)
    return PLN_OK;
  PLN_TRY(begin_lines(call, (size_t)t.length, &fft, &work));
  transform_lines(&t, call->results[0], &fft, work);
  end_lines(&fft, work);
  return PLN_OK;
}

pln_status pln_kernel_dft(pln_kernel_call *call) {
  if (pln_kernel_int(call, "relay", 0))
    return pln_kernel_relay_dft(call);
  return pln_kernel_through_float(call, "0", dft);
}

/* ---------------------------------------------------------------------- stft
 */

typedef struct frames {
  const pln_tensor *x, *window; /* window: or NULL */
  int64_t length, step, count;
  size_t parts;
} frames;

static pln_status read_frames(const pln_kernel_call *call, frames *f) {
  const pln_tensor *x = f->x = pln_kernel_arg(call, 0);
  const pln_tensor *w = f->window = pln_kernel_arg(call, 2);
  if (!pln_is_float32_or_64(x) || (w && w->dtype != x->dtype))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank != 2 && (x->rank != 3 || (x->dims[2] != 1 && x->dims[2] != 2)))
    return pln_kernel_refuse(call, "the signal must have 3 axes, the last one "
                                   "of 1 or 2 parts");
  f->parts = x->rank == 3 ? (size_t)x->dims[2] : 1;
  f->length = w && w->rank == 1 ? w->dims[0] : x->dims[1];
  PLN_TRY(read_scalar(call, 1, 1, &f->step));
  PLN_TRY(read_scalar(call, 3, 1, &f->length));
  if (w && (w->rank != 1 || w->dims[0] != f->length))
    return pln_kernel_refuse(call, "the window is not one of %lld numbers",
                             (long long)f->length);
  if (f->length < 1 || f->length > x->dims[1])
    return pln_kernel_refuse(call, "frames of %lld of %lld numbers",
                             (long long)f->length, (long long)x->dims[1]);
  if (f->parts == 2 && pln_kernel_int(call, "onesided", 1))
    return pln_kernel_refuse(call,
                             "one side of a spectrum is that of real numbers");
  f->count = (x->dims[1] - f->length) / f->step + 1;
  return PLN_OK;
}

static void transform_frame(const frames *f, size_t b, size_t i,
                            const pln_fft *fft, pln_complex *work,
                            pln_tensor *out) {
  size_t frame = b * (size_t)f->count + i, bins = (size_t)out->dims[2];
  dft_line from = {f->x, b * (size_t)f->x->dims[1] + i * (size_t)f->step,
                   fft->n, 1, f->parts};
  dft_line to = {out, frame * bins, bins, 1, 2};
  read_line(&from, fft->n, work);
  for (size_t k = 0; f->window && k < fft->n && goes_on(&from, k); k++) {
    double weight = pln_element_at(f->window, k);
    work[k] = (pln_complex){work[k].re * weight, work[k].im * weight};
  }
  pln_fft_run(fft, work, false);
  write_line(&to, out, work);
}

static pln_status stft(pln_kernel_call *call) {
  frames f = {0};
  pln_fft fft;
  pln_complex *work;
  void *data;
  PLN_TRY(read_frames(call, &f));
  bool half = pln_kernel_int(call, "onesided", 1) != 0;
  int64_t dims[4] = {f.x->dims[0], f.count, half ? f.length / 2 + 1 : f.length,
                     2};
  PLN_TRY(pln_kernel_unset(call, 0, (pln_dtype)f.x->dtype, 4, dims, &data));
  PLN_TRY(begin_lines(call, (size_t)f.length, &fft, &work));
  size_t done = 0;
  for (size_t b = 0; b < (size_t)dims[0]; b++)
    for (size_t i = 0;
         i < (size_t)dims[1] &&
         !pln_is_stopped_after(call->engine, &done, 8 * (size_t)f.length);
         i++)
      transform_frame(&f, b, i, &fft, work, call->results[0]);
  end_lines(&fft, work);
  return PLN_OK;
}

pln_status pln_kernel_stft(pln_kernel_call *call) {
  if (pln_kernel_int(call, "relay", 0))
    return pln_kernel_relay_stft(call);
  return pln_kernel_through_float(call, "0", stft);
}
