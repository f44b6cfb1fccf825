/* deformable.c: the kernel of deformable convolutions, whose sampling positions
 * are moved by offsets. Called through ops.def.
 *
 * As in a convolution, the weights (out x in * taps) are multiplied by a matrix
 * with a row per channel and tap and a column per output. An element of it is
 * interpolated bilinearly between four elements of the image and multiplied by
 * the mask. The matrix is built for some channels and outputs at a time.
 *
 * Offsets may be any numbers: a position more than one element outside the
 * image gives 0, and so does each corner outside. Scratch is bounded except for
 * windows of many taps, and allocated once per call. */

#include <math.h>

#include "op/kernel/conv/plan.h"
#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/matmul/gemm.h"

enum { ROW = PLN_CONV_AXES - 2, COL };
/* Elements of the matrix at a time; outputs at a time. */
enum { BLOCK = 1 << 16, OUTPUTS = 256 };

/* The four corners of an element; shared by the channels of an offset group. */
typedef struct corners {
  int64_t at[4]; /* in the image; negative: outside */
  double weight[4];
} corners;

typedef struct deform {
  const pln_kernel_call *call;
  pln_conv_plan plan;
  const pln_tensor *x, *w, *offset, *bias, *mask;
  size_t size;             /* of an element */
  size_t shared;           /* channels of an offset group */
  size_t outputs;          /* upper bound on the columns of the matrix */
  size_t channels;         /* upper bound on the channels in it */
  size_t image, group;     /* current image and group */
  size_t first, n;         /* current outputs */
  corners corner[OUTPUTS]; /* of one tap */
  char *matrix;
  char *y;
} deform;

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* ------------------------------------------------------------------ corners */

static void set_corner(const deform *d, corners *c, int i, int64_t y, int64_t x,
                       double weight) {
  int64_t high = d->plan.axis[ROW].in, wide = d->plan.axis[COL].in;
  bool inside = y >= 0 && y < high && x >= 0 && x < wide;
  c->at[i] = inside ? y * wide + x : -1;
  c->weight[i] = weight;
}

static void set_corners(const deform *d, double y, double x, double factor,
                        corners *c) {
  double high = (double)d->plan.axis[ROW].in;
  double wide = (double)d->plan.axis[COL].in;
  if (!(y > -1 && y < high && x > -1 && x < wide)) { /* also true for NaN */
    for (int i = 0; i < 4; i++)
      c->at[i] = -1;
    return;
  }
  int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
  double down = y - (double)top, right = x - (double)left;
  set_corner(d, c, 0, top, left, (1 - down) * (1 - right) * factor);
  set_corner(d, c, 1, top, left + 1, (1 - down) * right * factor);
  set_corner(d, c, 2, top + 1, left, down * (1 - right) * factor);
  set_corner(d, c, 3, top + 1, left + 1, down * right * factor);
}

/* The position that a tap of an output reads without offset. */
static double grid_at(const pln_conv_axis *axis, size_t output, size_t tap) {
  return (double)((int64_t)output * axis->stride +
                  (int64_t)tap * axis->dilation - axis->begin);
}

/* Computes the corners of one tap and offset group for the current outputs. */
static void place_tap(deform *d, size_t offset_group, size_t tap) {
  const pln_conv_plan *p = &d->plan;
  size_t groups = p->groups * p->in / d->shared;
  size_t plane = (d->image * groups + offset_group) * p->taps + tap;
  size_t wide = (size_t)p->axis[COL].out, window = (size_t)p->axis[COL].window;
  for (size_t i = 0; i < d->n; i++) {
    size_t at = d->first + i;
    size_t dy = 2 * plane * p->out_plane + at, dx = dy + p->out_plane;
    double y = grid_at(&p->axis[ROW], at / wide, tap / window);
    double x = grid_at(&p->axis[COL], at % wide, tap % window);
    double factor =
        d->mask ? pln_element_at(d->mask, plane * p->out_plane + at) : 1;
    set_corners(d, y + pln_element_at(d->offset, dy),
                x + pln_element_at(d->offset, dx), factor, &d->corner[i]);
  }
}

/* ------------------------------------------------------------------- matrix */

#define GATHER(T)                                                             \
  static void gather_##T(const corners *c, size_t n, const T *image, T *to) { \
    for (size_t i = 0; i < n; i++) {                                          \
      double sum = 0;                                                         \
      for (int k = 0; k < 4; k++)                                             \
        if (c[i].at[k] >= 0)                                                  \
          sum += c[i].weight[k] * (double)image[c[i].at[k]];                  \
      to[i] = (T)sum;                                                         \
    }                                                                         \
  }
GATHER(float)
GATHER(double)

/* Gathers the row of a channel; the corners of the tap are known. */
static void gather_row(const deform *d, size_t channel, void *to) {
  const pln_conv_plan *p = &d->plan;
  size_t at = (d->image * p->groups + d->group) * p->in + channel;
  const void *image = (const char *)d->x->data + at * p->in_plane * d->size;
  if (d->size == sizeof(float))
    gather_float(d->corner, d->n, image, to);
  else
    gather_double(d->corner, d->n, image, to);
}

/* Rows of n channels from `channel` on, which share their offsets; `to` is the
 * first one's. */
static void gather_rows(deform *d, size_t channel, size_t n, char *to) {
  const pln_conv_plan *p = &d->plan;
  size_t offset_group = (d->group * p->in + channel) / d->shared;
  size_t row = d->outputs * d->size;
  for (size_t tap = 0; tap < p->taps; tap++) {
    place_tap(d, offset_group, tap);
    for (size_t i = 0; i < n; i++)
      gather_row(d, channel + i, to + (i * p->taps + tap) * row);
  }
}

static void fill_matrix(deform *d, size_t channel, size_t channels) {
  const pln_conv_plan *p = &d->plan;
  for (size_t done = 0; done < channels;) {
    size_t at = d->group * p->in + channel + done;
    size_t n = min_size(d->shared - at % d->shared, channels - done);
    gather_rows(d, channel + done, n,
                d->matrix + done * p->taps * d->outputs * d->size);
    done += n;
  }
}

/* ------------------------------------------------------------------ product */

/* Multiplies all channels of the current outputs. */
static void multiply_columns(deform *d, const pln_gemm *gemm) {
  const pln_conv_plan *p = &d->plan;
  size_t filter = d->group * p->out;
  size_t plane = d->image * p->groups * p->out + filter;
  const char *w = (const char *)d->w->data + filter * p->in * p->taps * d->size;
  pln_product s = {.m = p->out,
                   .n = d->n,
                   .a_row = p->in * p->taps,
                   .a_col = 1,
                   .b = d->matrix,
                   .b_row = d->outputs,
                   .b_col = 1,
                   .c = d->y + (plane * p->out_plane + d->first) * d->size,
                   .c_row = p->out_plane};
  if (d->bias)
    s.bias = (const char *)d->bias->data + filter * d->size;
  size_t channel = 0;
  do {
    size_t n = min_size(d->channels, p->in - channel);
    fill_matrix(d, channel, n);
    s.k = n * p->taps;
    s.a = w + channel * p->taps * d->size;
    s.add = channel > 0;
    pln_gemm_run(gemm, &s);
    channel += n;
  } while (channel < p->in);
}

static pln_status convolve_deformed(deform *d) {
  const pln_conv_plan *p = &d->plan;
  pln_engine *engine = d->call->engine;
  pln_gemm gemm;
  d->outputs = min_size(OUTPUTS, p->out_plane);
  d->channels = BLOCK / p->taps / d->outputs;
  d->channels = min_size(p->in, d->channels ? d->channels : 1);
  size_t rows = d->channels * p->taps;
  size_t bytes = rows * d->outputs * d->size;
  PLN_TRY(
      pln_gemm_begin(engine, (pln_dtype)d->x->dtype, d->outputs, rows, &gemm));
  d->matrix = pln_mem_new(engine, bytes);
  if (d->matrix)
    for (size_t i = 0; i < p->batch * p->groups; i++)
      for (d->first = 0; d->first < p->out_plane && !pln_is_stopped(engine);
           d->first += d->n) {
        d->image = i / p->groups;
        d->group = i % p->groups;
        d->n = min_size(d->outputs, p->out_plane - d->first);
        multiply_columns(d, &gemm);
      }
  pln_gemm_end(&gemm);
  if (!d->matrix)
    return pln_nomem(engine);
  pln_mem_free(engine, d->matrix, bytes);
  return PLN_OK;
}

/* ------------------------------------------------------------------ reading */

/* `t` has the dtype of the image and dims (batch, channels, outputs). */
static bool operand_shape_matches(const deform *d, const pln_tensor *t,
                                  size_t channels) {
  const pln_conv_plan *p = &d->plan;
  return t->dtype == d->x->dtype && t->rank == 4 &&
         (size_t)t->dims[0] == p->batch && (size_t)t->dims[1] == channels &&
         t->dims[2] == p->axis[ROW].out && t->dims[3] == p->axis[COL].out;
}

static pln_status read_deform_call(const pln_kernel_call *call, deform *d) {
  const pln_tensor *args[3] = {pln_kernel_arg(call, 0), pln_kernel_arg(call, 1),
                               pln_kernel_arg(call, 3)};
  pln_kernel_call plain = *call; /* (x, w, bias) */
  plain.n_args = 3;
  plain.args = args;
  d->x = args[0];
  d->w = args[1];
  d->offset = pln_kernel_arg(call, 2);
  d->bias = args[2];
  d->mask = pln_kernel_arg(call, 4);
  PLN_TRY(pln_conv_read(&plain, &d->plan));
  if (!pln_is_float32_or_64(d->x))
    return pln_kernel_no_dtype(call, (pln_dtype)d->x->dtype);
  if (d->plan.space != 2)
    return pln_kernel_refuse(call, "images must have 2 spatial axes, got %u",
                             d->plan.space);
  size_t channels = d->plan.groups * d->plan.in;
  int64_t groups = pln_kernel_int(call, "offset_group", 1);
  if (groups < 1 || channels == 0 || channels % (size_t)groups)
    return pln_kernel_refuse(call, "%lld offset groups of %zu channels",
                             (long long)groups, channels);
  size_t planes = (size_t)groups * d->plan.taps;
  d->shared = channels / (size_t)groups;
  d->size = pln_element_size((pln_dtype)d->x->dtype);
  if (!d->offset || !operand_shape_matches(d, d->offset, 2 * planes) ||
      (d->mask && !operand_shape_matches(d, d->mask, planes)))
    return pln_kernel_refuse(call, "offsets or mask do not match the outputs");
  return PLN_OK;
}

static pln_status convolve_deformable(pln_kernel_call *call) {
  deform d = {.call = call};
  PLN_TRY(read_deform_call(call, &d));
  const pln_conv_plan *p = &d.plan;
  const int64_t dims[4] = {d.x->dims[0], (int64_t)(p->groups * p->out),
                           p->axis[ROW].out, p->axis[COL].out};
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)d.x->dtype, 4, dims,
                           &call->results[0]));
  d.y = pln_tensor_writable(call->results[0]);
  return call->results[0]->count ? convolve_deformed(&d) : PLN_OK;
}

pln_status pln_kernel_deform_conv(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", convolve_deformable);
}
