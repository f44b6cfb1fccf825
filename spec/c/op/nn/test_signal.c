/* test_signal.c: transforms of signals, windows and the mel scale: small ones
 * computed by hand and what is refused, as tables (op_table.h); then transforms
 * of all kinds of lengths beside the plain sum. */

#include "oom.h"

#include "op_table.h"

#include "op/kernel/signal/fft.h"

static void transforms(void) {
  static const row rows[] = {
      {"dft",
       "",
       {"float32 1x4x1: 1 2 3 4"},
       "float32 1x4x2: 10 0 -2 2 -2 0 -2 -2",
       0},
      {"dft",
       "onesided=1",
       {"float64 1x4x1: 1 2 3 4"},
       "float64 1x3x2: 10 0 -2 2 -2 0",
       0},
      {"dft",
       "inverse=1",
       {"float32 1x4x2: 10 0 -2 2 -2 0 -2 -2"},
       "float32 1x4x2: 1 0 2 0 3 0 4 0",
       0},
      {"dft",
       "inverse=1 onesided=1",
       {"float32 1x3x2: 10 0 -2 2 -2 0"},
       "float32 1x4x1: 1 2 3 4",
       0},
      /* What mirrors itself has no imaginary part. */
      {"dft",
       "inverse=1 onesided=1",
       {"float32 1x3x2: 10 7 -2 2 -2 9", "int64: 4"},
       "float32 1x4x1: 1 2 3 4",
       0},
      {"dft",
       "inverse=1 onesided=1",
       {"float32 1x2x2: 6 0 0 0", "int32: 3"},
       "float32 1x3x1: 2 2 2",
       0},
      /* Filled up with a zero; cut. */
      {"dft",
       "",
       {"float16 1x3x1: 1 2 3", "int64: 4"},
       "float16 1x4x2: 6 0 -2 -2 2 0 -2 2",
       0},
      {"dft",
       "",
       {"float32 1x3x1: 1 2 9", "int64 1: 2"},
       "float32 1x2x2: 3 0 -1 0",
       0},
      /* Along the first axis, by attribute and by argument. */
      {"dft",
       "axis=0",
       {"float32 2x2x2: 1 1 2 2 3 3 4 4"},
       "float32 2x2x2: 4 4 6 6 -2 -2 -2 -2",
       0},
      {"dft",
       "",
       {"float32 2x2x2: 1 1 2 2 3 3 4 4", "-", "int64: -3"},
       "float32 2x2x2: 4 4 6 6 -2 -2 -2 -2",
       0},
      {"dft", "", {"float32 0x3x1:"}, "float32 0x3x2:", 0},
      {"dft",
       "",
       {"float32 1x3x3: 1 2 3 4 5 6 7 8 9"},
       "refused: 'dft': the last axis must have 1 or 2 parts",
       0},
      {"dft",
       "axis=2",
       {"float32 1x3x1: 1 2 3"},
       "refused: 'dft': axis 2 is none of the signal",
       0},
      {"dft",
       "onesided=1",
       {"float32 1x1x2: 1 2"},
       "refused: 'dft': one side of a spectrum is that of real numbers",
       0},
      {"dft",
       "",
       {"float32 1x3x1: 1 2 3", "int64: 0"},
       "refused: 'dft': operand 1 is 0",
       0},
      {"dft",
       "",
       {"float32 1x0x1:"},
       "refused: 'dft': there are no 0 numbers to transform",
       0},
      {"dft",
       "",
       {"int32 1x1x1: 1"},
       "refused: 'dft' is not implemented for int32",
       0},
  };
  run_rows(ROWS(rows));
}

static void frames(void) {
  static const row rows[] = {
      {"stft",
       "",
       {"float32 1x5x1: 1 2 3 4 5", "int64: 2", "float32 2: 1 10"},
       "float32 1x2x2x2: 21 0 -19 0 43 0 -37 0",
       0},
      {"stft",
       "onesided=0",
       {"float64 1x4x1: 1 2 3 4", "int32: 1", "-", "int64: 4"},
       "float64 1x1x4x2: 10 0 -2 2 -2 0 -2 -2",
       0},
      {"stft",
       "onesided=0",
       {"float32 2x2x2: 1 2 3 4 5 6 7 8", "int64: 1"},
       "float32 2x1x2x2: 4 6 -2 -2 12 14 -2 -2",
       0},
      {"stft",
       "",
       {"float32 1x3x1: 1 2 3", "int64: 0", "float32 2: 1 1"},
       "refused: 'stft': operand 1 is 0",
       0},
      {"stft",
       "",
       {"float32 1x3x1: 1 2 3", "int64: 1", "float32 4: 1 1 1 1"},
       "refused: 'stft': frames of 4 of 3 numbers",
       0},
      {"stft",
       "",
       {"float32 1x3x1: 1 2 3", "int64: 1", "float32 2: 1 1", "int64: 3"},
       "refused: 'stft': the window is not one of 3 numbers",
       0},
      {"stft",
       "",
       {"float32 1x1x2: 1 2", "int64: 1"},
       "refused: 'stft': one side of a spectrum is that of real numbers",
       0},
  };
  run_rows(ROWS(rows));
}

static void windows(void) {
  static const row rows[] = {
      {"hann_window", "", {"int64: 4"}, "float32 4: 0 0.5 1 0.5", 0},
      {"hann_window",
       "periodic=0 output_datatype=11",
       {"int32: 5"},
       "float64 5: 0 0.5 1 0.5 0",
       0},
      {"hann_window",
       "periodic=0 output_datatype=7",
       {"int64: 3"},
       "int64 3: 0 1 0",
       0},
      {"hamming_window", "", {"int64: 2"}, "float32 2: 0.0869565 1", 0},
      {"blackman_window",
       "periodic=0 output_datatype=10",
       {"int64: 5"},
       "float16 5: -0 0.340088 1 0.340088 -0",
       0},
      {"hann_window", "", {"int64: 0"}, "float32 0:", 0},
      {"hann_window", "periodic=0", {"int64: 1"}, "float32 1: nan", 0},
      {"hann_window",
       "",
       {"int64: -1"},
       "refused: 'hann_window': operand 0 is -1",
       0},
      {"hann_window",
       "output_datatype=8",
       {"int64: 1"},
       "refused: 'hann_window': output_datatype is 8",
       0},
  };
  run_rows(ROWS(rows));
}

static void mel_scale(void) {
  static const row rows[] = {
      {"mel_weight_matrix",
       "",
       {"int64: 2", "int64: 8", "int64: 1000", "float32: 100", "float32: 400"},
       "float32 5x2: 0 0 1 0 0 1 0 0 0 0",
       0},
      {"mel_weight_matrix",
       "output_datatype=11",
       {"int32: 1", "int32: 16", "int32: 1600", "float64: 0", "float64: 790"},
       "float64 9x1: 0 0.5 1 0.5 0 0 0 0 0",
       0},
      {"mel_weight_matrix",
       "",
       {"int64: 0", "int64: 2", "int64: 1000", "float32: 100", "float32: 400"},
       "float32 2x0:",
       0},
      {"mel_weight_matrix",
       "",
       {"int64: 2", "int64: 8", "int64: 1000", "float32: 0", "float32: 2000"},
       "refused: 'mel_weight_matrix': the highest band lies above all bins",
       0},
      {"mel_weight_matrix",
       "",
       {"int64: 2", "int64: 8", "int64: 1000", "float32: 2", "float32: 1"},
       "refused: 'mel_weight_matrix': frequencies from 2 to 1",
       0},
      {"mel_weight_matrix",
       "",
       {"int64: 2", "int64: 8", "int64: 0", "float32: 2", "float32: 1"},
       "refused: 'mel_weight_matrix': operand 2 is 0",
       0},
  };
  run_rows(ROWS(rows));
}

static void types(void) {
  static const row rows[] = {
      {"dft", "onesided=1", {"float32 NxMx1"}, "float32 Nx(...)x2", 0},
      {"dft", "onesided=1 inverse=1", {"float32 Nx5x2"}, "float32 Nx8x1", 0},
      {"stft", "", {"float32 Nx9x1", "int64: 3"}, "float32 Nx1x5x2", 0},
  };
  type_rows(ROWS(rows));
}

/* ------------------------------------------------------------------ lengths */

static pln_complex plain_sum(const pln_complex *x, size_t n, size_t k) {
  pln_complex sum = {0, 0};
  for (size_t j = 0; j < n; j++) {
    double turn = -2 * 3.14159265358979323846 * (double)(j * k % n) / (double)n;
    sum.re += x[j].re * cos(turn) - x[j].im * sin(turn);
    sum.im += x[j].re * sin(turn) + x[j].im * cos(turn);
  }
  return sum;
}

static double apart(pln_complex a, pln_complex b) {
  return fmax(fabs(a.re - b.re), fabs(a.im - b.im));
}

enum { LONGEST = 1024 };

static void try_length(size_t n) {
  pln_complex x[LONGEST], y[LONGEST];
  pln_fft fft;
  double worst = 0;
  for (size_t i = 0; i < n; i++)
    x[i] = y[i] = (pln_complex){(double)(i * 7919 % 101) / 101 - 0.5,
                                (double)(i * 104729 % 89) / 89 - 0.5};
  CHECK_OK(pln_fft_begin(engine, n, &fft));
  pln_fft_run(&fft, y, false);
  for (size_t k = 0; k < n; k++)
    worst = fmax(worst, apart(y[k], plain_sum(x, n, k)));
  pln_fft_run(&fft, y, true);
  for (size_t k = 0; k < n; k++)
    worst = fmax(worst, apart(y[k], x[k]));
  if (!CHECK(worst < 1e-10))
    printf("# %zu numbers: %g\n", n, worst);
  pln_fft_end(&fft);
}

static void lengths(void) {
  static const size_t more[] = {100, 121, 127, 128, 210, 256,  341, 400,
                                512, 625, 729, 961, 997, 1009, 1024};
  begin();
  for (size_t n = 1; n <= 80; n++)
    try_length(n);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    try_length(more[i]);
  end();
}

/* ----------------------------------------------------------------- failures
 */

static pln_status transform_halves(pln_engine *e, void *ud) {
  const int64_t dims[3] = {1, *(const int64_t *)ud, 1};
  pln_tensor *x = NULL, *out = NULL;
  PLN_TRY(pln_tensor_new(e, PLN_FLOAT16, 3, dims, &x));
  pln_kernel_call call = {.engine = e,
                          .op = pln_op_find(e, pln_text("dft")),
                          .n_args = 1,
                          .args = (const pln_tensor *const *)&x,
                          .n_results = 1,
                          .results = &out};
  pln_status status = pln_op_row(e, call.op)->kernel(&call);
  pln_tensor_release(x);
  pln_tensor_release(out);
  return status;
}

static void hears_of_memory(void) {
  int64_t whole = 12, prime = 37;
  oom_sweep(transform_halves, &whole);
  oom_sweep(transform_halves, &prime);
}

static const check_test tests[] = {
    {"transforms by hand", transforms},
    {"transforms of frames", frames},
    {"windows", windows},
    {"the mel scale", mel_scale},
    {"types", types},
    {"transforms of all kinds of lengths", lengths},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
