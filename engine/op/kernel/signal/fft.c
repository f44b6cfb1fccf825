/* fft.c: discrete Fourier transforms. Called by dft.c.
 *
 * Lengths with small prime factors use the self-sorting mixed-radix algorithm
 * of T. G. Stockham ("High-speed convolution and correlation", 1966). Others
 * become a convolution with a chirp, of a power-of-two length (L. I. Bluestein,
 * "A linear filtering approach to the computation of discrete Fourier
 * transform", 1970).
 *
 * Nothing is allocated while transforms run. */

#include "op/kernel/signal/fft.h"

#include <math.h>

/* Lengths with a larger prime factor use Bluestein's algorithm. */
enum { LARGEST = 31 };

static pln_complex times(pln_complex a, pln_complex b) {
  return (pln_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* The least factor of n > 1, or n if all are above LARGEST. */
static size_t factor_of(size_t n) {
  if (n % 4 == 0)
    return 4;
  for (size_t p = 2; p <= LARGEST && p * p <= n; p++)
    if (n % p == 0)
      return p;
  return n;
}

static bool has_small_factors(size_t n) {
  while (n > 1 && factor_of(n) <= LARGEST)
    n /= factor_of(n);
  return n == 1;
}

/* ------------------------------------------------------------------- stages */

/* A stage of radix `p`: parts m apart, in blocks of `step` neighbours; p * m *
 * step is the length of `roots`. What is computed at once are blocks [q, q_end)
 * and of each neighbours [r, r_end). */
typedef struct stage {
  size_t p, m, step;
  size_t q, q_end, r, r_end;
  const pln_complex *roots;
  const pln_complex *from;
  pln_complex *to;
} stage;

static void radix_2(const stage *s) {
  size_t half = s->m * s->step;
  for (size_t q = s->q; q < s->q_end; q++) {
    const pln_complex w = s->roots[q * s->step];
    const pln_complex *x = s->from + q * s->step;
    pln_complex *restrict y = s->to + 2 * q * s->step;
    for (size_t r = s->r; r < s->r_end; r++) {
      pln_complex a = x[r], b = x[r + half];
      pln_complex d = {a.re - b.re, a.im - b.im};
      y[r] = (pln_complex){a.re + b.re, a.im + b.im};
      y[r + s->step] = times(d, w);
    }
  }
}

static void radix_4(const stage *s) {
  size_t part = s->m * s->step, step = s->step;
  for (size_t q = s->q; q < s->q_end; q++) {
    const pln_complex w1 = s->roots[q * step], w2 = s->roots[2 * q * step];
    const pln_complex w3 = s->roots[3 * q * step];
    const pln_complex *x = s->from + q * step;
    pln_complex *restrict y = s->to + 4 * q * step;
    for (size_t r = s->r; r < s->r_end; r++) {
      pln_complex a = x[r], b = x[r + part];
      pln_complex c = x[r + 2 * part], d = x[r + 3 * part];
      pln_complex even = {a.re + c.re, a.im + c.im};
      pln_complex odd = {a.re - c.re, a.im - c.im};
      pln_complex sum = {b.re + d.re, b.im + d.im};
      pln_complex rotated = {b.im - d.im, d.re - b.re}; /* -i (b - d) */
      y[r] = (pln_complex){even.re + sum.re, even.im + sum.im};
      y[r + step] =
          times((pln_complex){odd.re + rotated.re, odd.im + rotated.im}, w1);
      y[r + 2 * step] =
          times((pln_complex){even.re - sum.re, even.im - sum.im}, w2);
      y[r + 3 * step] =
          times((pln_complex){odd.re - rotated.re, odd.im - rotated.im}, w3);
    }
  }
}

/* y[r] = w * x[r], or += that. */
static void add_scaled(pln_complex *restrict y, const pln_complex *x, size_t n,
                       pln_complex w, bool add) {
  for (size_t r = 0; r < n; r++) {
    pln_complex t = times(x[r], w);
    y[r].re = add ? y[r].re + t.re : t.re;
    y[r].im = add ? y[r].im + t.im : t.im;
  }
}

static void radix_any(const stage *s) {
  size_t part = s->m * s->step, n = s->r_end - s->r;
  for (size_t q = s->q; q < s->q_end; q++)
    for (size_t j = 0; j < s->p; j++) {
      const pln_complex w = s->roots[q * j * s->step];
      pln_complex *y = s->to + (s->p * q + j) * s->step + s->r;
      const pln_complex *x = s->from + q * s->step + s->r;
      for (size_t k = 0; k < s->p; k++)
        add_scaled(y, x + k * part, n, times(s->roots[j * k % s->p * part], w),
                   k > 0);
    }
}

/* The numbers between two looks whether to stop. */
enum { PART = 1 << 15 };

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

static void run_stage(const pln_engine *engine, stage *s) {
  size_t high = s->step < PART ? PART / s->step : 1;
  for (s->q = 0; s->q < s->m; s->q = s->q_end) {
    s->q_end = least(s->m, s->q + high);
    for (s->r = 0; s->r < s->step; s->r = s->r_end) {
      s->r_end = least(s->step, s->r + PART);
      if (pln_is_stopped(engine))
        return;
      if (s->p == 4)
        radix_4(s);
      else if (s->p == 2)
        radix_2(s);
      else
        radix_any(s);
    }
  }
}

/* Looks once per PART numbers whether to stop; the output is then unset. */
static bool goes_on(const pln_fft *fft, size_t i) {
  return i % PART || !pln_is_stopped(fft->engine);
}

/* Transforms a length with small factors; the result is in x. */
static void transform(const pln_fft *fft, pln_complex *x) {
  pln_complex *from = x, *to = fft->spare;
  size_t step = 1;
  for (size_t n = fft->padded; n > 1 && !pln_is_stopped(fft->engine);) {
    size_t p = factor_of(n);
    stage s = {.p = p, .m = n / p, .step = step, .roots = fft->roots};
    s.from = from;
    s.to = to;
    run_stage(fft->engine, &s);
    pln_complex *last = from;
    from = to;
    to = last;
    n /= p;
    step *= p;
  }
  for (size_t i = 0; from != x && i < fft->padded && goes_on(fft, i); i += PART)
    memcpy(x + i, from + i, least(PART, fft->padded - i) * sizeof *x);
}

/* ------------------------------------------------------------------- chirps */

static pln_complex conjugate(pln_complex a) {
  return (pln_complex){a.re, -a.im};
}

/* Numbers [from, padded) become 0. */
static void clear(const pln_fft *fft, pln_complex *x, size_t from) {
  for (size_t i = from; i < fft->padded && goes_on(fft, i); i++)
    x[i] = (pln_complex){0, 0};
}

static void transform_by_chirp(const pln_fft *fft, pln_complex *x) {
  pln_complex *line = fft->line;
  for (size_t i = 0; i < fft->n && goes_on(fft, i); i++)
    line[i] = times(x[i], fft->chirp[i]);
  clear(fft, line, fft->n);
  transform(fft, line);
  for (size_t i = 0; i < fft->padded && goes_on(fft, i); i++)
    line[i] = conjugate(times(line[i], fft->chirp_transform[i]));
  transform(fft, line);
  double scale = 1 / (double)fft->padded;
  for (size_t i = 0; i < fft->n && goes_on(fft, i); i++) {
    pln_complex y = times(conjugate(line[i]), fft->chirp[i]);
    x[i] = (pln_complex){y.re * scale, y.im * scale};
  }
}

static void make_chirp(const pln_fft *fft) {
  const double pi = 3.14159265358979323846;
  for (size_t i = 0; i < fft->n && goes_on(fft, i); i++) {
    double turn = pi * (double)((uint64_t)i * i % (2 * (uint64_t)fft->n)) /
                  (double)fft->n;
    fft->chirp[i] = (pln_complex){cos(turn), -sin(turn)};
  }
  clear(fft, fft->chirp_transform, 0);
  fft->chirp_transform[0] = conjugate(fft->chirp[0]);
  for (size_t i = 1; i < fft->n && goes_on(fft, i); i++)
    fft->chirp_transform[i] = fft->chirp_transform[fft->padded - i] =
        conjugate(fft->chirp[i]);
  transform(fft, fft->chirp_transform);
}

/* ---------------------------------------------------------------- beginning */

static size_t padded_length(size_t n) {
  size_t padded = 1;
  if (has_small_factors(n))
    return n;
  while (padded < 2 * n)
    padded *= 2;
  return padded;
}

static void make_roots(const pln_fft *fft) {
  const double turn = 6.28318530717958647692 / (double)fft->padded;
  for (size_t i = 0; i < fft->padded && goes_on(fft, i); i++)
    fft->roots[i] =
        (pln_complex){cos(turn * (double)i), -sin(turn * (double)i)};
}

pln_status pln_fft_begin(pln_engine *engine, size_t n, pln_fft *out) {
  const size_t longest = (size_t)1 << 30;
  *out = (pln_fft){.engine = engine, .n = n};
  if (n > longest)
    return pln_nomem(engine);
  size_t padded = out->padded = padded_length(n);
  bool chirps = padded != n;
  size_t count = 2 * padded + (chirps ? n + 2 * padded : 0);
  out->bytes = count * sizeof(pln_complex);
  out->memory = pln_mem_new(engine, out->bytes);
  if (!out->memory)
    return pln_nomem(engine);
  out->roots = out->memory;
  out->spare = out->roots + padded;
  make_roots(out);
  if (!chirps)
    return PLN_OK;
  out->chirp_transform = out->spare + padded;
  out->line = out->chirp_transform + padded;
  out->chirp = out->line + padded;
  make_chirp(out);
  return PLN_OK;
}

/* The inverse transform is the forward one with real and imaginary parts
 * exchanged. */
static void exchange(const pln_fft *fft, pln_complex *x, double scale) {
  for (size_t i = 0; i < fft->n && goes_on(fft, i); i++)
    x[i] = (pln_complex){x[i].im * scale, x[i].re * scale};
}

void pln_fft_run(const pln_fft *fft, pln_complex *x, bool inverse) {
  if (inverse)
    exchange(fft, x, 1);
  if (fft->padded == fft->n)
    transform(fft, x);
  else
    transform_by_chirp(fft, x);
  if (inverse)
    exchange(fft, x, 1 / (double)fft->n);
}

void pln_fft_end(pln_fft *fft) {
  pln_mem_free(fft->engine, fft->memory, fft->bytes);
}
