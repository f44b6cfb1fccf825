/* pool.c: kernels of Relay's pooling over one to three axes, in any layout:
 * windowed and global through ONNX's operators, adaptive here, and gradients of
 * windowed pooling. Called through ops.def; types are in relay/infer/pool.c. */

#include <math.h>

#include "op/relay/data_layout.h"
#include "op/relay/kernel/window.h"

/* Argument 0 in the plain layout; NULL and an error if its axes do not
 * match. */
static const pln_tensor *plain_operand(pln_composition *s, uint32_t arg) {
  const char *data, *space = pln_pool_space(s->call->op, &data);
  const pln_tensor *x = pln_compose_to_plain_layout(
      s, pln_kernel_arg(s->call, arg), "layout", data);
  if (x && x->rank == strlen(space) + 2)
    return x;
  pln_composition_refuse(s, "the layout does not match the operand");
  return NULL;
}

static pln_status set_relay_pool_result(pln_composition *s,
                                        const pln_tensor *y) {
  const char *data;
  (void)pln_pool_space(s->call->op, &data);
  return pln_composition_finish(
      s, pln_compose_from_plain_layout(s, y, "out_layout", "layout", data));
}

/* ------------------------------------------------------------------ windows */

/* A window over one axis. */
typedef struct slide {
  int64_t window, stride, dilation, before, after;
} slide;

/* With ceil_mode the last window may extend past the pads, so the end pad is
 * enlarged. False if there is no such window. */
static bool lengthen(int64_t extent, slide *w) {
  int64_t reach, room;
  if (w->stride < 1 || w->window < 1 || w->dilation < 1 ||
      __builtin_mul_overflow(w->window - 1, w->dilation, &reach) ||
      reach == INT64_MAX ||
      __builtin_add_overflow(w->before, w->after, &room) ||
      __builtin_add_overflow(room, extent, &room) ||
      __builtin_sub_overflow(room, reach + 1, &room) || room < 0)
    return false;
  int64_t rest = room % w->stride;
  return rest == 0 ||
         !__builtin_add_overflow(w->after, w->stride - rest, &w->after);
}

static bool read_slides(const pln_kernel_call *call, const pln_tensor *x,
                        slide *out) {
  uint32_t n = x->rank - 2;
  bool up = pln_kernel_int(call, "ceil_mode", 0) != 0;
  int64_t pads[2 * PLN_WINDOW_AXES], strides[PLN_WINDOW_AXES];
  int64_t windows[PLN_WINDOW_AXES], dilations[PLN_WINDOW_AXES];
  if (!pln_relay_pads(call, n, pads) ||
      !pln_relay_ints(call, "strides", n, 1, strides) ||
      !pln_relay_ints(call, "dilation", n, 1, dilations) ||
      !pln_relay_ints(call, "pool_size", n, 1, windows))
    return false;
  for (uint32_t i = 0; i < n; i++) {
    out[i] =
        (slide){windows[i], strides[i], dilations[i], pads[i], pads[i + n]};
    if (up && !lengthen(x->dims[i + 2], &out[i]))
      return false;
  }
  return true;
}

static const pln_tensor *pool(pln_composition *s, const pln_tensor *x,
                              pln_op op) {
  slide slides[PLN_WINDOW_AXES];
  int64_t pads[2 * PLN_WINDOW_AXES], window[PLN_WINDOW_AXES];
  if (!x)
    return NULL;
  uint32_t n = x->rank - 2;
  if (!read_slides(s->call, x, slides)) {
    pln_composition_refuse(s, "the window does not match the operand");
    return NULL;
  }
  for (uint32_t i = 0; i < n; i++) {
    window[i] = slides[i].window;
    pads[i] = slides[i].before;
    pads[i + n] = slides[i].after;
  }
  pln_compose_window(s, n, pads);
  pln_compose_ints(s, "kernel_shape", n, window);
  if (op == PLN_OP_AVERAGE_POOL)
    pln_compose_int(s, "count_include_pad",
                    pln_kernel_int(s->call, "count_include_pad", 0));
  return pln_compose_unary(s, op, x);
}

pln_status pln_kernel_max_pool_2d(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return set_relay_pool_result(&s,
                               pool(&s, plain_operand(&s, 0), PLN_OP_MAX_POOL));
}

/* Quotients of integers, towards zero. In double a quotient that is whole may
 * be off by its last bits; others are further from it than that. */
static const pln_tensor *whole_quotients(pln_composition *s,
                                         const pln_tensor *y) {
  pln_tensor *t = NULL;
  if (s->status == PLN_OK)
    s->status =
        pln_tensor_new(s->call->engine, PLN_INT64, y->rank, y->dims, &t);
  const pln_tensor *out = pln_compose_own(s, t);
  int64_t *to = out ? pln_tensor_writable(t) : NULL;
  for (size_t i = 0; out && i < y->count; i++) {
    double mean = ((const double *)y->data)[i], whole = nearbyint(mean);
    to[i] = (int64_t)(fabs(mean - whole) < 1e-6 ? whole : trunc(mean));
  }
  return out;
}

static const pln_tensor *average(pln_composition *s, const pln_tensor *x) {
  pln_dtype dtype = x ? (pln_dtype)x->dtype : PLN_DTYPE_NONE;
  bool narrow = dtype == PLN_INT8 || dtype == PLN_UINT8 || dtype == PLN_INT16 ||
                dtype == PLN_UINT16 || dtype == PLN_INT32;
  if (!narrow)
    return pool(s, x, PLN_OP_AVERAGE_POOL);
  x = pool(s, pln_compose_cast(s, x, PLN_FLOAT64), PLN_OP_AVERAGE_POOL);
  return pln_compose_cast(s, whole_quotients(s, x), dtype);
}

pln_status pln_kernel_avg_pool_2d(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return set_relay_pool_result(&s, average(&s, plain_operand(&s, 0)));
}

static pln_status pool_all(pln_kernel_call *call, pln_op op) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return set_relay_pool_result(&s,
                               pln_compose_unary(&s, op, plain_operand(&s, 0)));
}

pln_status pln_kernel_global_max_pool_2d(pln_kernel_call *call) {
  return pool_all(call, PLN_OP_GLOBAL_MAX_POOL);
}

pln_status pln_kernel_global_avg_pool_2d(pln_kernel_call *call) {
  return pool_all(call, PLN_OP_GLOBAL_AVERAGE_POOL);
}

/* ----------------------------------------------------------------- adaptive */

/* Adaptive pooling, axis by axis: window i of `out` over `in` elements is
 * [floor(i * in / out), ceil((i + 1) * in / out)). The mean over all axes is
 * the mean over one axis after the other, because the windows of an axis do not
 * depend on the others. */
typedef struct lanes {
  size_t outer, inner;
  int64_t in, out;
  bool mean;
} lanes;

static double pool_one_lane(const double *x, const lanes *l, int64_t begin,
                            int64_t end) {
  double all = x[begin * (int64_t)l->inner];
  for (int64_t k = begin + 1; k < end; k++) {
    double one = x[k * (int64_t)l->inner];
    all = l->mean ? all + one : one > all || one != one ? one : all;
  }
  return l->mean ? all / (double)(end - begin) : all;
}

static void pool_lanes(const double *x, const lanes *l, double *y) {
  for (size_t o = 0; o < l->outer; o++)
    for (int64_t i = 0; i < l->out; i++) {
      int64_t begin = i * l->in / l->out;
      int64_t end = ((i + 1) * l->in + l->out - 1) / l->out;
      for (size_t k = 0; k < l->inner; k++)
        *y++ =
            pool_one_lane(x + o * (size_t)l->in * l->inner + k, l, begin, end);
    }
}

/* Pools one axis of a tensor of doubles, as a step of a composed kernel. */
static pln_status pool_axis(pln_kernel_call *call, const pln_tensor *x,
                            uint32_t axis, int64_t out, bool mean,
                            pln_tensor **y) {
  int64_t dims[PLN_WINDOW_AXES + 2];
  lanes l = {.outer = pln_dims_product(x->dims, 0, axis),
             .inner = pln_dims_product(x->dims, axis + 1, x->rank),
             .in = x->dims[axis],
             .out = out,
             .mean = mean};
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[axis] = out;
  PLN_TRY(pln_tensor_unset(call->engine, PLN_FLOAT64, x->rank, dims, y));
  if ((*y)->count)
    pool_lanes(x->data, &l, pln_tensor_writable(*y));
  return PLN_OK;
}

static bool adaptive_extent_valid(int64_t in, int64_t out) {
  int64_t product;
  return in > 0 && out > 0 && out < INT64_MAX &&
         !__builtin_mul_overflow(in, out + 1, &product) &&
         product < INT64_MAX - out;
}

static pln_status pool_adaptive(pln_kernel_call *call, bool mean) {
  int64_t size[PLN_WINDOW_AXES];
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = plain_operand(&s, 0);
  uint32_t n = x ? x->rank - 2 : 0;
  pln_dtype dtype = x ? (pln_dtype)x->dtype : PLN_FLOAT32;
  if (!pln_relay_ints(call, "output_size", n, 0, size))
    pln_composition_refuse(&s, "the size does not match the operand");
  x = pln_compose_cast(&s, x, PLN_FLOAT64);
  for (uint32_t i = 0; x && i < n; i++) {
    pln_tensor *y = NULL;
    int64_t in = x->dims[i + 2], out = size[i] ? size[i] : in;
    if (!adaptive_extent_valid(in, out))
      pln_composition_refuse(&s, "the size does not match the operand");
    if (s.status == PLN_OK)
      s.status = pool_axis(call, x, i + 2, out, mean, &y);
    x = pln_compose_own(&s, y);
  }
  return set_relay_pool_result(&s, pln_compose_cast(&s, x, dtype));
}

pln_status pln_kernel_adaptive_max_pool(pln_kernel_call *call) {
  return pool_adaptive(call, false);
}

pln_status pln_kernel_adaptive_avg_pool(pln_kernel_call *call) {
  return pool_adaptive(call, true);
}

/* ---------------------------------------------------------------- gradients */

/* A plane of two axes and the windows over it. */
typedef struct plane {
  const slide *slides;
  int64_t in[2], out[2];
  bool max, whole; /* whole: the mean includes pads */
} plane;

/* The elements that window `i` of axis `a` covers. */
static void covered(const plane *p, int a, int64_t i, int64_t *begin,
                    int64_t *end) {
  const slide *w = &p->slides[a];
  int64_t first = i * w->stride - w->before, last = first + w->window;
  *begin = first < 0 ? 0 : first;
  *end = last > p->in[a] ? p->in[a] : last;
}

/* The gradient of a result goes to the maximum, the first of equal ones, or
 * equally to all elements of the window. */
static void hand_back(const plane *p, const double *x, double g, int64_t i,
                      int64_t j, double *to) {
  int64_t r0, r1, c0, c1, best = -1;
  covered(p, 0, i, &r0, &r1);
  covered(p, 1, j, &c0, &c1);
  int64_t count = p->whole ? p->slides[0].window * p->slides[1].window
                           : (r1 - r0) * (c1 - c0);
  for (int64_t r = r0; r < r1; r++)
    for (int64_t c = c0; c < c1; c++) {
      int64_t at = r * p->in[1] + c;
      if (!p->max)
        to[at] += g / (double)count;
      else if (best < 0 || x[at] > x[best])
        best = at;
    }
  if (best >= 0)
    to[best] += g;
}

static void hand_planes(const plane *p, const pln_tensor *g,
                        const pln_tensor *x, double *to) {
  const double *from = x->data, *grad = g->data;
  size_t n = x->count / (size_t)(p->in[0] * p->in[1]);
  for (size_t k = 0; k < n; k++) {
    for (int64_t i = 0; i < p->out[0]; i++)
      for (int64_t j = 0; j < p->out[1]; j++)
        hand_back(p, from, *grad++, i, j, to);
    from += p->in[0] * p->in[1];
    to += p->in[0] * p->in[1];
  }
}

/* Returns true if the gradient has as many elements as there are windows. */
static bool same_count(const slide *w, int64_t in, int64_t out) {
  int64_t room;
  return w->dilation == 1 && w->stride > 0 && w->window > 0 && w->before >= 0 &&
         w->after >= 0 && !__builtin_add_overflow(w->before, w->after, &room) &&
         !__builtin_add_overflow(room, in, &room) && room >= w->window &&
         out == (room - w->window) / w->stride + 1;
}

/* Returns false if the gradient's shape does not match the pooling. */
static bool read_plane(const pln_kernel_call *call, const pln_tensor *g,
                       const pln_tensor *x, slide *slides, plane *p) {
  if (!read_slides(call, x, slides) || g->rank != 4 ||
      g->dims[0] != x->dims[0] || g->dims[1] != x->dims[1])
    return false;
  *p = (plane){.slides = slides,
               .max = call->op == PLN_OP_MAX_POOL_2D_GRAD,
               .whole = pln_kernel_int(call, "count_include_pad", 0) != 0};
  for (int a = 0; a < 2; a++) {
    p->in[a] = x->dims[a + 2];
    p->out[a] = g->dims[a + 2];
    if (!same_count(&slides[a], p->in[a], p->out[a]))
      return false;
  }
  return true;
}

/* (gradient, data) */
pln_status pln_kernel_pool_grad(pln_kernel_call *call) {
  pln_dtype dtype = (pln_dtype)pln_kernel_arg(call, 1)->dtype;
  slide slides[PLN_WINDOW_AXES];
  pln_tensor *y = NULL;
  plane p = {0};
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *g = pln_compose_cast(&s, plain_operand(&s, 0), PLN_FLOAT64);
  const pln_tensor *x = pln_compose_cast(&s, plain_operand(&s, 1), PLN_FLOAT64);
  if (g && x && !read_plane(call, g, x, slides, &p))
    pln_composition_refuse(&s, "the gradient does not match the data");
  if (s.status == PLN_OK)
    s.status = pln_tensor_new(call->engine, PLN_FLOAT64, 4, x->dims, &y);
  const pln_tensor *kept = pln_compose_own(&s, y);
  if (kept && kept->count)
    hand_planes(&p, g, x, pln_tensor_writable(y));
  return set_relay_pool_result(&s, pln_compose_cast(&s, kept, dtype));
}
