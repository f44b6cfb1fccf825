/* correlation.c: kernels of Relay's nn.correlation, of two maps, and
 * image.dilation2d, the morphological dilation. Called through ops.def; types
 * are in relay/infer/conv.c.
 *
 * Semantics: TVM's TOPI. Both pad with zeros, dilation2d too. */

#include <math.h>

#include "op/relay/kernel/window.h"

/* An image of float32 with zeros around it. */
typedef struct padded {
  const float *data;
  int64_t channels, high, wide;
} padded;

/* Element of channel `c`; positions are counted with the pads. */
static float pixel(const padded *p, int64_t c, int64_t y, int64_t x) {
  return p->data[(c * p->high + y) * p->wide + x];
}

/* Operand `arg` in plain layout, padded. */
static const pln_tensor *pad_image(pln_composition *s, const pln_tensor *x,
                                   const int64_t pads[4]) {
  int64_t all[8] = {0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3]};
  pln_compose_ints(s, "pads", 8, all);
  return pln_compose_unary(s, PLN_OP_PAD, x);
}

static padded image_at(const pln_tensor *x, int64_t batch) {
  int64_t size = x->dims[1] * x->dims[2] * x->dims[3];
  return (padded){(const float *)x->data + batch * size, x->dims[1], x->dims[2],
                  x->dims[3]};
}

/* ------------------------------------------------------------- correlation */

typedef struct correlation {
  int64_t size, most, stride, step; /* window, displacement, strides */
  int64_t radius, side;             /* displacements to each side, in a row */
  int64_t border;
  bool product;
} correlation;

/* The mean over a window and all channels, of the product or of the absolute
 * difference, for displacement `q`. */
static float correlate(const correlation *c, const padded *a, const padded *b,
                       int64_t q, int64_t i, int64_t j) {
  int64_t y = i * c->stride + c->most, x = j * c->stride + c->most;
  int64_t dy = (q / c->side - c->radius) * c->step;
  int64_t dx = (q % c->side - c->radius) * c->step;
  float sum = 0;
  for (int64_t k = 0; k < a->channels; k++)
    for (int64_t v = 0; v < c->size; v++)
      for (int64_t u = 0; u < c->size; u++) {
        float left = pixel(a, k, y + v, x + u);
        float right = pixel(b, k, y + dy + v, x + dx + u);
        sum += c->product ? left * right : fabsf(left - right);
      }
  return sum / (float)(c->size * c->size * a->channels);
}

static pln_status correlate_all(pln_composition *s, const correlation *c,
                                const pln_tensor *a, const pln_tensor *b) {
  pln_kernel_call *call = s->call;
  int64_t dims[4] = {a->dims[0], c->side * c->side,
                     (a->dims[2] - 2 * c->border + c->stride - 1) / c->stride,
                     (a->dims[3] - 2 * c->border + c->stride - 1) / c->stride};
  size_t work = (size_t)(c->size * c->size * a->dims[1]), done = 0;
  void *data;
  if (dims[2] < 0 || dims[3] < 0)
    return pln_kernel_refuse(call, "the window is larger than the image");
  PLN_TRY(pln_kernel_unset(call, 0, PLN_FLOAT32, 4, dims, &data));
  float *out = data;
  for (int64_t n = 0; n < dims[0]; n++) {
    padded left = image_at(a, n), right = image_at(b, n);
    for (int64_t q = 0; q < dims[1]; q++)
      for (int64_t i = 0; i < dims[2]; i++) {
        PLN_TRY(pln_poll_after(call->engine, &done, work * (size_t)dims[3]));
        for (int64_t j = 0; j < dims[3]; j++)
          *out++ = correlate(c, &left, &right, q, i, j);
      }
  }
  return PLN_OK;
}

static bool read_correlation(const pln_kernel_call *call, correlation *c) {
  *c = (correlation){.size = pln_kernel_int(call, "kernel_size", 1),
                     .most = pln_kernel_int(call, "max_displacement", 1),
                     .stride = pln_kernel_int(call, "stride1", 1),
                     .step = pln_kernel_int(call, "stride2", 1),
                     .product = pln_kernel_int(call, "is_multiply", 1) != 0};
  if (c->size < 1 || c->size > INT16_MAX || c->most < 0 ||
      c->most > INT16_MAX || c->stride < 1 || c->stride > INT16_MAX ||
      c->step < 1 || c->size % 2 == 0)
    return false;
  c->radius = c->most / c->step;
  c->side = 2 * c->radius + 1;
  c->border = c->most + c->size / 2;
  return true;
}

static bool is_image(const pln_tensor *x) {
  return x->rank == 4 && x->dtype == PLN_FLOAT32;
}

pln_status pln_kernel_correlation(pln_kernel_call *call) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  int64_t pads[4];
  correlation c;
  pln_composition s;
  if (!is_image(a) || !is_image(b) ||
      memcmp(a->dims, b->dims, 4 * sizeof *a->dims))
    return pln_kernel_refuse(call, "the operands are not two float32 images of "
                                   "one shape");
  if (!read_correlation(call, &c) || !pln_relay_pads(call, 2, pads))
    return pln_kernel_refuse(call, "kernel_size, max_displacement, strides or "
                                   "padding are not valid");
  pln_composition_begin(&s, call);
  const pln_tensor *left = pad_image(&s, a, pads);
  const pln_tensor *right = pad_image(&s, b, pads);
  if (s.status == PLN_OK)
    s.status = correlate_all(&s, &c, left, right);
  return pln_composition_end(&s);
}

/* ---------------------------------------------------------------- dilation */

typedef struct dilation {
  int64_t strides[2], steps[2], window[2];
  const float *kernel; /* (channels, window) */
} dilation;

/* The greatest sum of a window's elements and the kernel's. */
static float dilate(const dilation *d, const padded *x, int64_t c, int64_t i,
                    int64_t j) {
  const float *kernel = d->kernel + c * d->window[0] * d->window[1];
  float best = -INFINITY;
  for (int64_t v = 0; v < d->window[0]; v++)
    for (int64_t u = 0; u < d->window[1]; u++) {
      float y = pixel(x, c, i * d->strides[0] + v * d->steps[0],
                      j * d->strides[1] + u * d->steps[1]) +
                kernel[v * d->window[1] + u];
      best = y > best || y != y ? y : best;
    }
  return best;
}

static const pln_tensor *dilate_all(pln_composition *s, const dilation *d,
                                    const pln_tensor *x) {
  int64_t dims[4] = {x->dims[0], x->dims[1], 0, 0};
  size_t done = 0, work = (size_t)(d->window[0] * d->window[1]);
  pln_tensor *t = NULL;
  for (int i = 0; i < 2; i++) {
    int64_t room = x->dims[2 + i] - (d->window[i] - 1) * d->steps[i] - 1;
    if (room < 0) {
      pln_composition_refuse(s, "the window is larger than the image");
      return NULL;
    }
    dims[2 + i] = room / d->strides[i] + 1;
  }
  s->status = pln_tensor_unset(s->call->engine, PLN_FLOAT32, 4, dims, &t);
  if (!pln_compose_own(s, t))
    return NULL;
  float *out = pln_tensor_writable(t);
  for (int64_t n = 0; n < dims[0]; n++) {
    padded image = image_at(x, n);
    for (int64_t c = 0; c < dims[1]; c++)
      for (int64_t i = 0; i < dims[2]; i++) {
        if (pln_is_stopped_after(s->call->engine, &done,
                                 work * (size_t)dims[3]))
          return t;
        for (int64_t j = 0; j < dims[3]; j++)
          *out++ = dilate(d, &image, c, i, j);
      }
  }
  return t;
}

static bool read_dilation(const pln_kernel_call *call, dilation *d,
                          int64_t pads[4]) {
  if (!pln_relay_ints(call, "strides", 2, 1, d->strides) ||
      !pln_relay_ints(call, "dilations", 2, 1, d->steps) ||
      !pln_relay_pads(call, 2, pads))
    return false;
  for (int i = 0; i < 2; i++)
    if (d->strides[i] < 1 || d->strides[i] > INT16_MAX || d->steps[i] < 1 ||
        d->steps[i] > INT16_MAX)
      return false;
  return true;
}

/* (images, kernel) */
pln_status pln_kernel_dilation_2d(pln_kernel_call *call) {
  dilation d;
  int64_t pads[4];
  pln_composition s;
  if (!read_dilation(call, &d, pads))
    return pln_kernel_refuse(call,
                             "strides, dilations or padding are not valid");
  pln_composition_begin(&s, call);
  const pln_tensor *x = pln_compose_to_plain_layout(&s, pln_kernel_arg(call, 0),
                                                    "data_layout", "NCHW");
  const pln_tensor *w = pln_compose_to_plain_layout(&s, pln_kernel_arg(call, 1),
                                                    "kernel_layout", "IHW");
  if (s.status == PLN_OK &&
      (!is_image(x) || w->rank != 3 || w->dtype != PLN_FLOAT32 ||
       w->dims[0] != x->dims[1] || w->count == 0))
    pln_composition_refuse(&s, "image and kernel are not float32, or do not "
                               "match each other");
  if (s.status != PLN_OK)
    return pln_composition_end(&s);
  d.kernel = w->data;
  d.window[0] = w->dims[1];
  d.window[1] = w->dims[2];
  x = pad_image(&s, x, pads);
  const pln_tensor *y = x ? dilate_all(&s, &d, x) : NULL;
  return pln_composition_finish(
      &s, pln_compose_from_plain_layout(&s, y, "data_layout", NULL, "NCHW"));
}
