/* fft.h: discrete Fourier transforms of any length, in double. */

#ifndef PLN_OP_KERNEL_SIGNAL_FFT_H
#define PLN_OP_KERNEL_SIGNAL_FFT_H

#include "op/kernel/kernel.h"

typedef struct pln_complex {
  double re, im;
} pln_complex;

/* A plan for transforms of one length. */
typedef struct pln_fft {
  pln_engine *engine;
  size_t n;
  size_t padded;      /* length of the inner transform; n: there is none */
  pln_complex *roots; /* the roots of unity exp(-2 pi i k / padded) */
  pln_complex *spare; /* scratch: padded elements */
  pln_complex *chirp; /* n elements, for Bluestein's algorithm */
  pln_complex *chirp_transform; /* the transform of its conjugate, padded */
  pln_complex *line;            /* scratch: padded elements */
  void *memory;
  size_t bytes;
} pln_fft;

/* n is at least 1. After success, end it exactly once. */
pln_status pln_fft_begin(pln_engine *engine, size_t n,
                         pln_fft *out) PLN_CHECKED;
/* x[k] becomes the sum over j of x[j] exp(-2 pi i j k / n); `inverse`: the
 * other sign, divided by n. */
void pln_fft_run(const pln_fft *fft, pln_complex *x, bool inverse);
void pln_fft_end(pln_fft *fft);

#endif
