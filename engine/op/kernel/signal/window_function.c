/* window_function.c: window functions of signals, and the mel weight matrix.
 * Called through ops.def; types are in infer/signal.c. Computed in double, then
 * rounded to the result's dtype. */

#include <math.h>

#include "op/kernel/element.h"
#include "op/kernel/elementwise/convert.h"

static const double PI = 3.14159265358979323846;

/* Result 0 is of `rank` axes and of the dtype that the call asks for. */
static pln_status set_window_result(pln_kernel_call *call,
                                    const pln_tensor *numbers) {
  int64_t dtype = pln_kernel_int(call, "output_datatype", PLN_FLOAT32);
  void *data;
  if (dtype <= 0 || dtype >= PLN_N_DTYPES || !pln_convertible((pln_dtype)dtype))
    return pln_kernel_refuse(call, "output_datatype is %lld", (long long)dtype);
  pln_conversion c = {.from = PLN_FLOAT64, .to = (pln_dtype)dtype};
  PLN_TRY(pln_kernel_unset(call, 0, c.to, numbers->rank, numbers->dims, &data));
  if (pln_convert(&c, numbers->data, numbers->count, data) != PLN_CONVERTED)
    return pln_kernel_undefined(call);
  return PLN_OK;
}

static pln_status give_and_release(pln_kernel_call *call, pln_tensor *numbers) {
  pln_status status = set_window_result(call, numbers);
  pln_tensor_release(numbers);
  return status;
}

static pln_status read_integer(const pln_kernel_call *call, uint32_t arg,
                               int64_t least, int64_t *out) {
  const pln_tensor *t = pln_kernel_arg(call, arg);
  if (t->count != 1 || !pln_tensor_int(t, 0, out))
    return pln_kernel_refuse(call, "operand %u is not an integer", arg);
  if (*out < least)
    return pln_kernel_refuse(call, "operand %u is %lld", arg, (long long)*out);
  return PLN_OK;
}

/* -------------------------------------------------------------------- windows
 */

/* `turn` goes from 0 to 2 pi. */
static double hann(double angle) {
  return 0.5 - 0.5 * cos(angle);
}

static double hamming(double angle) {
  return 25.0 / 46 - 21.0 / 46 * cos(angle);
}

static double blackman(double angle) {
  return 0.42 - 0.5 * cos(angle) + 0.08 * cos(2 * angle);
}

/* A symmetric window of one number is undefined. */
static pln_status make_window(pln_kernel_call *call, double (*f)(double)) {
  int64_t n;
  pln_tensor *t;
  PLN_TRY(read_integer(call, 0, 0, &n));
  PLN_TRY(pln_tensor_unset(call->engine, PLN_FLOAT64, 1, &n, &t));
  double *to = pln_tensor_writable(t);
  bool periodic = pln_kernel_int(call, "periodic", 1) != 0;
  double all = (double)n - (periodic ? 0 : 1);
  for (int64_t i = 0; i < n; i++)
    to[i] = f(2 * PI * (double)i / all);
  return give_and_release(call, t);
}

pln_status pln_kernel_hann_window(pln_kernel_call *call) {
  return make_window(call, hann);
}

pln_status pln_kernel_hamming_window(pln_kernel_call *call) {
  return make_window(call, hamming);
}

pln_status pln_kernel_blackman_window(pln_kernel_call *call) {
  return make_window(call, blackman);
}

/* ------------------------------------------------------------------ mel scale
 */

static double mel_of(double hertz) {
  return 2595 * log1p(hertz / 700) / log(10);
}

static double hertz_of(double mel) {
  return 700 * expm1(mel / 2595 * log(10));
}

typedef struct mel_scale {
  int64_t bands, length, rate, bins;
  double low, high; /* in mel */
} mel_scale;

static pln_status read_hertz(const pln_kernel_call *call, uint32_t arg,
                             double *out) {
  const pln_tensor *t = pln_kernel_arg(call, arg);
  pln_conversion c = {.from = (pln_dtype)t->dtype, .to = PLN_FLOAT64};
  if (t->count != 1 || !pln_convertible(c.from) ||
      pln_convert(&c, t->data, 1, out) != PLN_CONVERTED ||
      !(*out >= 0 && *out < 1e300))
    return pln_kernel_refuse(call, "operand %u is not a frequency", arg);
  return PLN_OK;
}

static pln_status read_scale(const pln_kernel_call *call, mel_scale *s) {
  PLN_TRY(read_integer(call, 0, 0, &s->bands));
  PLN_TRY(read_integer(call, 1, 0, &s->length));
  PLN_TRY(read_integer(call, 2, 1, &s->rate));
  PLN_TRY(read_hertz(call, 3, &s->low));
  PLN_TRY(read_hertz(call, 4, &s->high));
  s->bins = s->length / 2 + 1;
  if (s->low > s->high)
    return pln_kernel_refuse(call, "frequencies from %g to %g", s->low,
                             s->high);
  s->low = mel_of(s->low);
  s->high = mel_of(s->high);
  return PLN_OK;
}

/* The bin of edge `i` of the bands; -1: none. */
static int64_t bin_of(const mel_scale *s, int64_t i) {
  double mel = s->low + (double)i * (s->high - s->low) / ((double)s->bands + 2);
  double bin = floor(((double)s->length + 1) * hertz_of(mel) / (double)s->rate);
  return bin >= 0 && bin < (double)s->bins ? (int64_t)bin : -1;
}

/* A triangle: rises from the band's lower edge to 1 at its middle, falls to the
 * upper edge. */
static void put_band(const mel_scale *s, int64_t band, double *to) {
  int64_t low = bin_of(s, band), middle = bin_of(s, band + 1);
  int64_t high = bin_of(s, band + 2);
  to += band;
  if (low == middle)
    to[middle * s->bands] = 1;
  for (int64_t i = low; i <= middle && low < middle; i++)
    to[i * s->bands] = (double)(i - low) / (double)(middle - low);
  for (int64_t i = middle; i < high; i++)
    to[i * s->bands] = (double)(high - i) / (double)(high - middle);
}

pln_status pln_kernel_mel_weight_matrix(pln_kernel_call *call) {
  mel_scale s;
  pln_tensor *t;
  PLN_TRY(read_scale(call, &s));
  if (s.bands > 0 && bin_of(&s, s.bands + 1) < 0)
    return pln_kernel_refuse(call, "the highest band lies above all bins");
  int64_t dims[2] = {s.bins, s.bands};
  PLN_TRY(pln_tensor_new(call->engine, PLN_FLOAT64, 2, dims, &t));
  double *to = pln_tensor_writable(t);
  for (int64_t i = 0; i < s.bands; i++)
    put_band(&s, i, to);
  return give_and_release(call, t);
}
