/* convolution.c: kernels of Winograd's convolution of transformed weights:
 * nn.contrib_conv2d_winograd_without_weight_transform,
 * nn.contrib_conv3d_winograd_without_weight_transform. Called through ops.def;
 * types are in relay/infer/conv.c.
 *
 * Each axis has its matrices. The depth of an image of two axes, and of weights
 * whose depth is not transformed, has the identity, so that both operators are
 * one computation over three axes. */

#include "op/relay/kernel/winograd/matrices.h"

enum { DEPTH, HEIGHT, WIDTH, AXES };

typedef struct tiling {
  pln_winograd axis[AXES];
  const float *x, *weights; /* images; alpha of each axis, out, in */
  bool transformed_depth;   /* else the depth of weights follows the others */
  size_t in, out;
  size_t extents[AXES], results[AXES]; /* of the image, of the result */
  int64_t before[AXES];                /* pads */
  size_t cube;                         /* elements of a transformed tile */
  float *tile, *sums;                  /* a cube for each channel */
  float *from, *to;                    /* two cubes */
} tiling;

/* Transforms an axis of t->from, whose extents become those of the result: each
 * line of it times a matrix of `columns` columns. */
static void transform_axis(tiling *t, uint32_t axis, const float *matrix,
                           uint32_t stride, uint32_t columns,
                           uint32_t *extents) {
  size_t inner = 1, outer = 1, rows = extents[axis];
  for (uint32_t i = 0; i < AXES; i++)
    *(i < axis ? &outer : &inner) *= i == axis ? 1 : extents[i];
  for (size_t o = 0; o < outer; o++)
    for (size_t c = 0; c < columns; c++) {
      float *to = t->to + (o * columns + c) * inner;
      memset(to, 0, inner * sizeof *to);
      for (size_t r = 0; r < rows; r++) {
        const float *from = t->from + (o * rows + r) * inner;
        float factor = matrix[r * stride + c];
        for (size_t i = 0; i < inner; i++)
          to[i] += from[i] * factor;
      }
    }
  float *swap = t->from;
  t->from = t->to;
  t->to = swap;
  extents[axis] = columns;
}

/* Axes whose matrix is the identity are skipped. */
static void transform_patch(tiling *t) {
  uint32_t extents[AXES];
  for (uint32_t i = 0; i < AXES; i++)
    extents[i] = t->axis[i].alpha;
  for (uint32_t i = 0; i < AXES; i++)
    if (t->axis[i].tile > 1)
      transform_axis(t, i, t->axis[i].b[0], PLN_WINOGRAD_ALPHA,
                     t->axis[i].alpha, extents);
}

static void transform_sums(tiling *t) {
  uint32_t extents[AXES];
  for (uint32_t i = 0; i < AXES; i++)
    extents[i] = t->axis[i].alpha;
  for (uint32_t i = 0; i < AXES; i++)
    transform_axis(t, i, t->axis[i].a[0], PLN_WINOGRAD_TILE, t->axis[i].tile,
                   extents);
}

static bool is_inside(const tiling *t, uint32_t axis, int64_t at) {
  return at >= 0 && at < (int64_t)t->extents[axis];
}

/* The patch of an image from `at` on to t->from; zero outside. */
static void read_patch(tiling *t, const float *image, const int64_t *at) {
  float *out = t->from;
  for (int64_t z = at[0]; z < at[0] + t->axis[DEPTH].alpha; z++)
    for (int64_t y = at[1]; y < at[1] + t->axis[HEIGHT].alpha; y++)
      for (int64_t x = at[2]; x < at[2] + t->axis[WIDTH].alpha; x++) {
        bool inside = is_inside(t, DEPTH, z) && is_inside(t, HEIGHT, y) &&
                      is_inside(t, WIDTH, x);
        *out++ = inside ? image[((size_t)z * t->extents[HEIGHT] + (size_t)y) *
                                    t->extents[WIDTH] +
                                (size_t)x]
                        : 0;
      }
}

/* Where the weights of element k of a tile are. */
static size_t weight_at(const tiling *t, size_t k) {
  size_t depth = t->axis[DEPTH].alpha, plane = t->cube / depth;
  return t->transformed_depth ? k : k % plane * depth + k / plane;
}

/* Products of the tiles with the weights, summed over the channels. */
static void multiply_tiles(const tiling *t) {
  for (size_t k = 0; k < t->cube; k++)
    for (size_t o = 0; o < t->out; o++) {
      const float *w = t->weights + (weight_at(t, k) * t->out + o) * t->in;
      float sum = 0;
      for (size_t c = 0; c < t->in; c++)
        sum += t->tile[c * t->cube + k] * w[c];
      t->sums[o * t->cube + k] = sum;
    }
}

/* Writes what of a tile of results lies inside. */
static void write_tile(const tiling *t, const size_t *at, float *image) {
  const float *tile = t->from;
  for (size_t i = 0; i < t->axis[DEPTH].tile; i++)
    for (size_t j = 0; j < t->axis[HEIGHT].tile; j++)
      for (size_t k = 0; k < t->axis[WIDTH].tile; k++, tile++) {
        size_t z = at[0] + i, y = at[1] + j, x = at[2] + k;
        if (z < t->results[DEPTH] && y < t->results[HEIGHT] &&
            x < t->results[WIDTH])
          image[(z * t->results[HEIGHT] + y) * t->results[WIDTH] + x] = *tile;
      }
}

static size_t volume(const size_t *extents) {
  return extents[DEPTH] * extents[HEIGHT] * extents[WIDTH];
}

static void convolve_tile(tiling *t, const float *images, const size_t *at,
                          float *results) {
  int64_t from[AXES];
  for (uint32_t i = 0; i < AXES; i++)
    from[i] = (int64_t)at[i] - t->before[i];
  for (size_t c = 0; c < t->in; c++) {
    read_patch(t, images + c * volume(t->extents), from);
    transform_patch(t);
    memcpy(t->tile + c * t->cube, t->from, t->cube * sizeof(float));
  }
  multiply_tiles(t);
  for (size_t o = 0; o < t->out; o++) {
    memcpy(t->from, t->sums + o * t->cube, t->cube * sizeof(float));
    transform_sums(t);
    write_tile(t, at, results + o * volume(t->results));
  }
}

static pln_status convolve_all(const pln_kernel_call *call, tiling *t,
                               size_t batch, float *results) {
  size_t polled = 0, at[AXES];
  for (size_t n = 0; n < batch; n++)
    for (at[0] = 0; at[0] < t->results[0]; at[0] += t->axis[DEPTH].tile)
      for (at[1] = 0; at[1] < t->results[1]; at[1] += t->axis[HEIGHT].tile)
        for (at[2] = 0; at[2] < t->results[2]; at[2] += t->axis[WIDTH].tile) {
          convolve_tile(t, t->x + n * t->in * volume(t->extents), at,
                        results + n * t->out * volume(t->results));
          PLN_TRY(
              pln_poll_after(call->engine, &polled, t->cube * t->in * t->out));
        }
  return PLN_OK;
}

/* ----------------------------------------------------------------- operands */

static bool are_ones(const pln_kernel_call *call, const char *name) {
  pln_list list = pln_kernel_list(call, PLN_NONE, name);
  for (uint32_t i = 0; i < list.count; i++)
    if (pln_list_at(&list, i) != 1)
      return false;
  return true;
}

/* The matrices of the axes. The depth of weights is transformed if its extent
 * is that of the transformed axes; there is no other depth of that extent. */
static bool read_matrices(const pln_kernel_call *call, uint32_t n,
                          const pln_tensor *w, tiling *t) {
  int64_t tile = pln_winograd_tile_size(call);
  int64_t window = w->dims[0] - tile + 1;
  if (w->dims[0] != w->dims[1] || !pln_winograd_make(tile, window, &t->axis[2]))
    return false;
  t->axis[HEIGHT] = t->axis[WIDTH];
  t->axis[DEPTH] = t->axis[WIDTH];
  pln_list kernel = pln_kernel_list(call, PLN_NONE, "kernel_size");
  int64_t depth = n == AXES && kernel.count == AXES ? pln_list_at(&kernel, 0)
                  : n == AXES                       ? w->dims[2]
                                                    : 1;
  t->transformed_depth =
      n == AXES && depth == window && w->dims[2] == w->dims[0];
  if (t->transformed_depth)
    return true;
  return (n < AXES || depth == w->dims[2]) &&
         pln_winograd_identity(depth, &t->axis[DEPTH]);
}

/* The extents of image and result: what fits in the padded image. */
static bool read_extents(uint32_t n, const pln_tensor *x, const int64_t *pads,
                         tiling *t) {
  for (uint32_t i = 0; i < AXES; i++) {
    uint32_t at = i - (AXES - n); /* the spatial axis */
    bool own = i >= AXES - n;
    int64_t extent = own ? x->dims[2 + at] : 1, more = 0;
    t->before[i] = own ? pads[at] : 0;
    if (own)
      more = pads[at] + pads[n + at];
    int64_t result = extent + more - t->axis[i].window + 1;
    if (result < 0)
      return false;
    t->extents[i] = (size_t)extent;
    t->results[i] = (size_t)result;
  }
  return true;
}

/* Reads operands and attributes of a convolution over n axes. */
static bool read_tiling(const pln_kernel_call *call, uint32_t n, tiling *t) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *w = pln_kernel_arg(call, 1);
  const char *layout = n == AXES ? "NCDHW" : "NCHW";
  int64_t pads[2 * AXES];
  if (!pln_relay_pads(call, n, pads) || x->rank != n + 2 || w->rank != n + 2 ||
      w->dims[n + 1] != x->dims[1] || !are_ones(call, "strides") ||
      !are_ones(call, "dilation") || pln_kernel_int(call, "groups", 1) != 1 ||
      !pln_kernel_string_is(call, "data_layout", layout, layout) ||
      !read_matrices(call, n, w, t))
    return false;
  for (uint32_t i = 0; i < 2 * n; i++)
    if (pads[i] < INT32_MIN || pads[i] > INT32_MAX)
      return false;
  t->x = x->data;
  t->weights = w->data;
  t->in = (size_t)x->dims[1];
  t->out = (size_t)w->dims[n];
  t->cube = (size_t)t->axis[0].alpha * t->axis[1].alpha * t->axis[2].alpha;
  return read_extents(n, x, pads, t);
}

static pln_status convolve(pln_kernel_call *call, uint32_t n) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *w = pln_kernel_arg(call, 1);
  tiling t;
  void *out;
  if (x->dtype != PLN_FLOAT32 || w->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (!read_tiling(call, n, &t))
    return pln_kernel_refuse(call, "layout, groups, strides, dilation or "
                                   "tile_size do not match the operands");
  int64_t dims[2 + AXES] = {x->dims[0], (int64_t)t.out};
  for (uint32_t i = 0; i < n; i++)
    dims[2 + i] = (int64_t)t.results[AXES - n + i];
  size_t size = (t.in + t.out + 2) * t.cube * sizeof(float);
  PLN_TRY(pln_kernel_result(call, 0, PLN_FLOAT32, n + 2, dims, &out));
  float *memory = pln_mem_new(call->engine, size);
  if (!memory)
    return pln_nomem(call->engine);
  t.tile = memory;
  t.sums = t.tile + t.in * t.cube;
  t.from = t.sums + t.out * t.cube;
  t.to = t.from + t.cube;
  pln_status status = convolve_all(call, &t, (size_t)x->dims[0], out);
  pln_mem_free(call->engine, memory, size);
  return status;
}

pln_status pln_kernel_conv_2d_winograd(pln_kernel_call *call) {
  return convolve(call, 2);
}

pln_status pln_kernel_conv_3d_winograd(pln_kernel_call *call) {
  return convolve(call, 3);
}
