/* image_band.c: lays out part of an image for a convolution. Called by conv.c,
 * once per band and block of channels.
 *
 * Every element of a band is written, so that reads past a row's end are
 * defined; no output uses them. */

#include "op/kernel/conv/image_band.h"

enum { DEPTH, ROW, COL };
/* Approximate number of rows of the right matrix multiplied at a time. */
enum { DEEP = 1152 };

/* The distance from the first to the last tap, in outputs. */
static size_t shift_of(const pln_conv_axis *axis, size_t tap) {
  return tap * (size_t)axis->dilation / (size_t)axis->stride;
}

static size_t phase_of(const pln_conv_axis *axis, size_t tap) {
  return tap * (size_t)axis->dilation % (size_t)axis->stride;
}

static size_t last_tap(const pln_conv_axis *axis) {
  return (size_t)axis->window - 1;
}

/* The number of phases: tap t and tap t + n have the same phase. */
static size_t phases(const pln_conv_axis *axis) {
  size_t n = 1;
  while (n < (size_t)axis->window && phase_of(axis, n) != 0)
    n++;
  return n;
}

/* ----------------------------------------------------------------- planning */

/* Elements of a band; SIZE_MAX if beyond any limit. */
static size_t elements_of(pln_conv_band *b, size_t width) {
  const pln_conv_axis *axis = b->plan->axis;
  size_t sum, planes;
  size_t high = b->rows + shift_of(&axis[ROW], last_tap(&axis[ROW]));
  b->pitch = b->cols + shift_of(&axis[COL], last_tap(&axis[COL]));
  planes = b->planes_y * b->planes_x;
  if (__builtin_mul_overflow(planes, (size_t)axis[DEPTH].window, &planes) ||
      __builtin_mul_overflow(planes, b->channels, &planes) ||
      __builtin_mul_overflow(high, b->pitch, &b->plane) ||
      __builtin_mul_overflow(planes, b->plane, &sum) ||
      __builtin_add_overflow(sum, width, &sum))
    return SIZE_MAX;
  return sum;
}

static size_t half_of(size_t n) {
  return (n + 1) / 2;
}

/* Reduces rows first, as long as there are several, then channels, rows,
 * columns. */
static bool shrink(pln_conv_band *b) {
  size_t few = 1 + shift_of(&b->plan->axis[ROW], last_tap(&b->plan->axis[ROW]));
  if (b->rows > 4 * few)
    b->rows = half_of(b->rows);
  else if (b->channels > 8)
    b->channels = half_of(b->channels);
  else if (b->rows > 1)
    b->rows = half_of(b->rows);
  else if (b->channels > 1)
    b->channels = half_of(b->channels);
  else if (b->cols > 1)
    b->cols = half_of(b->cols);
  else
    return false;
  return true;
}

bool pln_conv_band_plan(const pln_conv_plan *plan, size_t size, size_t width,
                        size_t limit, pln_conv_band *out) {
  const pln_conv_axis *axis = plan->axis;
  *out = (pln_conv_band){.plan = plan,
                         .size = size,
                         .rows = (size_t)axis[ROW].out,
                         .cols = (size_t)axis[COL].out,
                         .channels = DEEP / plan->taps + 1};
  if (out->channels > plan->in)
    out->channels = plan->in;
  out->planes_y = phases(&axis[ROW]);
  out->planes_x = phases(&axis[COL]);
  while ((out->elements = elements_of(out, width)) > limit)
    if (!shrink(out))
      return false;
  return true;
}

void pln_conv_band_offsets(const pln_conv_band *band, size_t *out) {
  const pln_conv_axis *axis = band->plan->axis;
  size_t depth = band->channels * (size_t)axis[DEPTH].window;
  for (size_t d = 0; d < depth; d++)
    for (size_t y = 0; y < (size_t)axis[ROW].window; y++)
      for (size_t x = 0; x < (size_t)axis[COL].window; x++) {
        size_t plane = d * band->planes_y + y % band->planes_y;
        plane = plane * band->planes_x + x % band->planes_x;
        *out++ = plane * band->plane + shift_of(&axis[ROW], y) * band->pitch +
                 shift_of(&axis[COL], x);
      }
}

/* ------------------------------------------------------------------ filling */

/* Copies n elements that lie `step` apart. */
static void gather_strided_elements(char *to, const char *from, size_t n,
                                    size_t step, size_t size) {
  if (step == 1) {
    memcpy(to, from, n * size);
  } else if (size == 4) {
    float *out = (float *)(void *)to;
    const pln_unaligned_float *in = (const void *)from;
    for (size_t i = 0; i < n; i++)
      out[i] = in[i * step];
  } else {
    double *out = (double *)(void *)to;
    const pln_unaligned_double *in = (const void *)from;
    for (size_t i = 0; i < n; i++)
      out[i] = in[i * step];
  }
}

/* Fills a plane: rows from position `y`, columns from `x` on; `image` NULL: all
 * padding. */
static void fill_plane(const pln_conv_band *b, const char *image, int64_t y,
                       int64_t x, char *out) {
  const pln_conv_axis *row = &b->plan->axis[ROW], *col = &b->plan->axis[COL];
  size_t size = b->size, pitch = b->pitch * size, rows = b->plane / b->pitch;
  size_t above = 0, high = 0, before = 0, inside = 0;
  if (image) {
    pln_conv_split(y, row->stride, row->in, rows, &above, &high);
    pln_conv_split(x, col->stride, col->in, b->pitch, &before, &inside);
  }
  if (inside == 0)
    high = 0;
  memset(out, 0, above * pitch);
  out += above * pitch;
  for (size_t i = 0; i < high; i++, out += pitch) {
    int64_t line = y + (int64_t)(above + i) * row->stride;
    int64_t first = line * col->in + x + (int64_t)before * col->stride;
    memset(out, 0, before * size);
    gather_strided_elements(out + before * size, image + (size_t)first * size,
                            inside, (size_t)col->stride, size);
    memset(out + (before + inside) * size, 0, pitch - (before + inside) * size);
  }
  memset(out, 0, (rows - above - high) * pitch);
}

static int64_t position(const pln_conv_axis *axis, size_t output,
                        size_t phase) {
  return (int64_t)output * axis->stride + (int64_t)phase - axis->begin;
}

/* The planes of one depth of a channel. */
static char *fill_depth(const pln_conv_band *b, const char *image, size_t y,
                        size_t x, char *out) {
  const pln_conv_axis *axis = b->plan->axis;
  for (size_t i = 0; i < b->planes_y; i++)
    for (size_t k = 0; k < b->planes_x; k++) {
      fill_plane(b, image, position(&axis[ROW], y, phase_of(&axis[ROW], i)),
                 position(&axis[COL], x, phase_of(&axis[COL], k)), out);
      out += b->plane * b->size;
    }
  return out;
}

void pln_conv_band_fill(const pln_conv_band *band, const char *image,
                        size_t channels, size_t z, size_t y, size_t x,
                        char *out) {
  const pln_conv_axis *axis = band->plan->axis;
  size_t slice = (size_t)(axis[ROW].in * axis[COL].in) * band->size;
  char *end = out + band->elements * band->size;
  for (size_t c = 0; c < channels; c++)
    for (int64_t t = 0; t < axis[DEPTH].window; t++) {
      int64_t at = position(&axis[DEPTH], z, 0) + t * axis[DEPTH].dilation;
      bool inside = at >= 0 && at < axis[DEPTH].in;
      const char *from = image + c * band->plan->in_plane * band->size;
      out = fill_depth(band, inside ? from + (size_t)at * slice : NULL, y, x,
                       out);
    }
  memset(out, 0, (size_t)(end - out));
}
