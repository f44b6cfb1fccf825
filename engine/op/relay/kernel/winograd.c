/* winograd.c: kernels of Winograd's convolution (Lavin and Gray,
 * arXiv:1509.09308): nn.contrib_conv2d_winograd_weight_transform,
 * nn.contrib_conv3d_winograd_weight_transform,
 * nn.contrib_conv2d_winograd_without_weight_transform. Called through ops.def;
 * types are in relay/infer/.
 *
 * A tile of m results and a window of r weights need alpha = m + r - 1
 * products: y = A' ((G w) * (B' x)), along each axis. The matrices are those of
 * Cook and Toom for the interpolation points x_i, of which the last is
 * infinity: A[i][j] = x_i^j, G[i][j] = x_i^j / f_i, B[k][i]: the coefficient of
 * x^k in f_i times the product of (x - x_j) / f_i over the j other than i,
 * where f_i is the product of x_i - x_j over those j, without its sign for i =
 * 0.
 *
 * Semantics: TVM's TOPI: the points that it takes, the matrices in the dtype of
 * the data. */

#include "op/kernel/composed.h"
#include "op/relay/kernel/window.h"

enum { MOST_TILE = 8, MOST_WINDOW = 7, MOST_ALPHA = 14 };

/* Numbers of rows and columns: alpha x tile, alpha x alpha, alpha x window. */
typedef struct winograd {
  uint32_t tile, window, alpha;
  float a[MOST_ALPHA][MOST_TILE];
  float b[MOST_ALPHA][MOST_ALPHA];
  float g[MOST_ALPHA][MOST_WINDOW];
} winograd;

/* ----------------------------------------------------------------- matrices */

/* The points of TVM but for the last, by their number, 3 to 13 (Barabasz et
 * al., arXiv:1803.10986). */
static const double points[][MOST_ALPHA - 1] = {
    {0, -1, 1},
    {0, -1, 1, .5},
    {0, -1, 1, .5, -2},
    {0, -1, 1, .5, -2, -.5},
    {0, -1, 1, .5, -.5, 2, -2},
    {0, -1, 1, .5, -.5, 2, -2, -.25},
    {0, -1, 1, .5, -.5, 2, -2, -.25, 4},
    {0, -1, 1, .5, -.5, 2, -2, -.25, .75, -4. / 3},
    {0, -1, 1, .5, -.5, 2, -2, -.25, 4, .75, -4. / 3},
    {0, -1, 1, .5, -.5, 2, -2, -.25, 4, .75, -4. / 3, .25},
    {0, -1, 1, .5, -.5, 2, -2, -.25, 4, .25, -.75, 4. / 3, -4},
};

/* Coefficients of the product of (x - x_j) over the n points without point
 * `but`; returns their number. */
static uint32_t multiply_out(const double *x, uint32_t n, uint32_t but,
                             double *coefficients) {
  uint32_t count = 1;
  coefficients[0] = 1;
  for (uint32_t j = 0; j < n; j++) {
    if (j == but)
      continue;
    coefficients[count] = 0;
    for (uint32_t k = count++; k > 0; k--)
      coefficients[k] = coefficients[k - 1] - x[j] * coefficients[k];
    coefficients[0] *= -x[j];
  }
  return count;
}

static double power(double x, uint32_t n) {
  double product = 1;
  while (n--)
    product *= x;
  return product;
}

static double differences(const double *x, uint32_t n, uint32_t i) {
  double product = 1;
  for (uint32_t j = 0; j < n; j++)
    product *= j == i ? 1 : x[i] - x[j];
  return product;
}

static void fill_point(winograd *w, const double *x, uint32_t i) {
  uint32_t n = w->alpha - 1;
  double coefficients[MOST_ALPHA], f = differences(x, n, i);
  double sign = i == 0 && f < 0 ? -1 : 1;
  uint32_t count = multiply_out(x, n, i, coefficients);
  for (uint32_t j = 0; j < w->tile; j++)
    w->a[i][j] = (float)power(x[i], j);
  for (uint32_t j = 0; j < w->window; j++)
    w->g[i][j] = (float)(power(x[i], j) * (1 / (sign * f)));
  for (uint32_t k = 0; k < count; k++)
    w->b[k][i] = (float)(sign * coefficients[k]);
}

static bool make_matrices(int64_t tile, int64_t window, winograd *w) {
  if (tile < 2 || tile > MOST_TILE || window < 3 || window > MOST_WINDOW)
    return false;
  *w = (winograd){.tile = (uint32_t)tile, .window = (uint32_t)window};
  w->alpha = w->tile + w->window - 1;
  uint32_t last = w->alpha - 1;
  const double *x = points[last - 3];
  double coefficients[MOST_ALPHA];
  for (uint32_t i = 0; i < last; i++)
    fill_point(w, x, i);
  w->a[last][w->tile - 1] = w->g[last][w->window - 1] = 1;
  uint32_t count = multiply_out(x, last, PLN_NONE, coefficients);
  for (uint32_t k = 0; k < count; k++)
    w->b[k][last] = (float)coefficients[k];
  return true;
}

/* ------------------------------------------------------------------ weights */

/* The sum over the last two axes, and the first of three if it is transformed
 * (depth > 1), of the weights times a row of G for each. */
static float transformed_weight(const winograd *w, const float *in,
                                uint32_t depth, const uint32_t *row) {
  float sum = 0;
  for (uint32_t d = 0; d < depth; d++)
    for (uint32_t y = 0; y < w->window; y++)
      for (uint32_t x = 0; x < w->window; x++) {
        float weight = *in++;
        if (depth > 1)
          weight *= w->g[row[0]][d];
        sum += weight * w->g[row[1]][y] * w->g[row[2]][x];
      }
  return sum;
}

/* Transforms `slices` images of each pair of channels, each alone, or three
 * axes at once when depth > 1. */
static pln_status transform_all(const pln_kernel_call *call, const winograd *w,
                                const pln_tensor *x, uint32_t depth,
                                size_t slices, float *out) {
  size_t channels = (size_t)x->dims[0] * (size_t)x->dims[1], polled = 0;
  size_t image = (size_t)depth * w->window * w->window;
  uint32_t deep = depth > 1 ? w->alpha : 1, row[3];
  const float *data = x->data;
  for (row[0] = 0; row[0] < deep; row[0]++)
    for (row[1] = 0; row[1] < w->alpha; row[1]++)
      for (row[2] = 0; row[2] < w->alpha; row[2]++)
        for (size_t i = 0; i < slices * channels; i++) {
          size_t from = i % channels * slices + i / channels;
          *out++ = transformed_weight(w, data + from * image, depth, row);
          PLN_TRY(pln_poll_after(call->engine, &polled, image));
        }
  return PLN_OK;
}

/* The attribute, or 0 when there are no matrices for it. */
static int64_t tile_size(const pln_kernel_call *call) {
  int64_t tile = pln_kernel_int(call, "tile_size", 0);
  return tile < 2 || tile > MOST_TILE ? 0 : tile;
}

static pln_status transform_weight(pln_kernel_call *call, uint32_t depth,
                                   size_t slices, uint32_t rank,
                                   const int64_t *dims) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  winograd w;
  void *out;
  int64_t window = x->dims[x->rank - 1];
  if (x->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->dims[x->rank - 2] != window || (depth > 1 && depth != window) ||
      !make_matrices(tile_size(call), window, &w))
    return pln_kernel_refuse(call, "the extents of the window differ, or there "
                                   "are no matrices for it and tile_size");
  PLN_TRY(pln_kernel_unset(call, 0, PLN_FLOAT32, rank, dims, &out));
  return transform_all(call, &w, x, depth, slices, out);
}

static pln_status refuse_rank(pln_kernel_call *call) {
  return pln_kernel_refuse(call, "the weights are of another rank");
}

pln_status pln_kernel_winograd_weight(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  if (x->rank != 4)
    return refuse_rank(call);
  int64_t reach = x->dims[3] + tile_size(call) - 1;
  const int64_t dims[] = {reach, reach, x->dims[0], x->dims[1]};
  return transform_weight(call, 1, 1, 4, dims);
}

/* A depth below 3 or above 7 is not transformed and follows the other two. */
pln_status pln_kernel_winograd_weight_3d(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  if (x->rank != 5)
    return refuse_rank(call);
  int64_t depth = x->dims[2];
  int64_t reach = x->dims[4] + tile_size(call) - 1;
  bool deep = depth > 2 && depth < 8;
  const int64_t dims[] = {reach, reach, deep ? reach : depth, x->dims[0],
                          x->dims[1]};
  return transform_weight(call, deep ? (uint32_t)depth : 1,
                          deep ? 1 : (size_t)depth, 5, dims);
}

/* -------------------------------------------------------------- convolution */

typedef struct tiling {
  winograd w;
  const float *x, *weights; /* images; alpha, alpha, out, in */
  size_t in, out, high, wide, rows, columns;
  int64_t top, left;
  float *tile, *sums; /* of each channel, alpha x alpha */
} tiling;

/* out = L' in L for an alpha x alpha matrix, with `n` columns of L. */
static void transform_square(const float *in, const float *l, uint32_t stride,
                             uint32_t alpha, uint32_t n, float *out) {
  float half[MOST_ALPHA * MOST_ALPHA];
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < alpha; k++) {
      float sum = 0;
      for (uint32_t j = 0; j < alpha; j++)
        sum += in[j * alpha + k] * l[j * stride + i];
      half[i * alpha + k] = sum;
    }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++) {
      float sum = 0;
      for (uint32_t j = 0; j < alpha; j++)
        sum += half[i * alpha + j] * l[j * stride + k];
      out[i * n + k] = sum;
    }
}

/* The patch of an image from (y, x) on; zero outside. */
static void read_patch(const tiling *t, const float *image, int64_t y,
                       int64_t x, float *out) {
  for (int64_t i = y; i < y + t->w.alpha; i++)
    for (int64_t j = x; j < x + t->w.alpha; j++) {
      bool inside =
          i >= 0 && i < (int64_t)t->high && j >= 0 && j < (int64_t)t->wide;
      *out++ = inside ? image[(size_t)i * t->wide + (size_t)j] : 0;
    }
}

/* Products of the tiles with the weights, summed over the channels. */
static void multiply_tiles(const tiling *t) {
  size_t square = (size_t)t->w.alpha * t->w.alpha;
  for (size_t k = 0; k < square; k++)
    for (size_t o = 0; o < t->out; o++) {
      const float *w = t->weights + (k * t->out + o) * t->in;
      float sum = 0;
      for (size_t c = 0; c < t->in; c++)
        sum += t->tile[c * square + k] * w[c];
      t->sums[o * square + k] = sum;
    }
}

/* Writes what of a tile of results lies inside. */
static void write_tile(const tiling *t, const float *tile, size_t y, size_t x,
                       float *image) {
  for (uint32_t i = 0; i < t->w.tile && y + i < t->rows; i++)
    for (uint32_t j = 0; j < t->w.tile && x + j < t->columns; j++)
      image[(y + i) * t->columns + x + j] = tile[i * t->w.tile + j];
}

static void convolve_tile(const tiling *t, const float *images, size_t y,
                          size_t x, float *results) {
  const winograd *w = &t->w;
  size_t square = (size_t)w->alpha * w->alpha;
  float patch[MOST_ALPHA * MOST_ALPHA];
  for (size_t c = 0; c < t->in; c++) {
    read_patch(t, images + c * t->high * t->wide, (int64_t)y - t->top,
               (int64_t)x - t->left, patch);
    transform_square(patch, w->b[0], MOST_ALPHA, w->alpha, w->alpha,
                     t->tile + c * square);
  }
  multiply_tiles(t);
  for (size_t o = 0; o < t->out; o++) {
    transform_square(t->sums + o * square, w->a[0], MOST_TILE, w->alpha,
                     w->tile, patch);
    write_tile(t, patch, y, x, results + o * t->rows * t->columns);
  }
}

static pln_status convolve_all(const pln_kernel_call *call, const tiling *t,
                               size_t batch, float *results) {
  size_t polled = 0, square = (size_t)t->w.alpha * t->w.alpha;
  for (size_t n = 0; n < batch; n++)
    for (size_t y = 0; y < t->rows; y += t->w.tile)
      for (size_t x = 0; x < t->columns; x += t->w.tile) {
        convolve_tile(t, t->x + n * t->in * t->high * t->wide, y, x,
                      results + n * t->out * t->rows * t->columns);
        PLN_TRY(pln_poll_after(call->engine, &polled, square * t->in * t->out));
      }
  return PLN_OK;
}

static bool are_ones(const pln_kernel_call *call, const char *name) {
  pln_list list = pln_kernel_list(call, PLN_NONE, name);
  for (uint32_t i = 0; i < list.count; i++)
    if (pln_list_at(&list, i) != 1)
      return false;
  return true;
}

/* Reads operands and attributes; the number of rows, columns is what fits. */
static bool read_tiling(const pln_kernel_call *call, tiling *t) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *w = pln_kernel_arg(call, 1);
  int64_t tile = tile_size(call), pads[4];
  if (!pln_relay_pads(call, 2, pads) || x->rank != 4 || w->rank != 4 ||
      w->dims[0] != w->dims[1] || w->dims[3] != x->dims[1] ||
      !are_ones(call, "strides") || !are_ones(call, "dilation") ||
      pln_kernel_int(call, "groups", 1) != 1 ||
      !pln_kernel_string_is(call, "data_layout", "NCHW", "NCHW") ||
      !make_matrices(tile, w->dims[0] - tile + 1, &t->w))
    return false;
  for (uint32_t i = 0; i < PLN_COUNT(pads); i++)
    if (pads[i] < INT32_MIN || pads[i] > INT32_MAX)
      return false;
  int64_t rows = x->dims[2] + pads[0] + pads[2] - t->w.window + 1;
  int64_t columns = x->dims[3] + pads[1] + pads[3] - t->w.window + 1;
  if (rows < 0 || columns < 0)
    return false;
  t->x = x->data;
  t->weights = w->data;
  t->in = (size_t)x->dims[1];
  t->out = (size_t)w->dims[2];
  t->high = (size_t)x->dims[2];
  t->wide = (size_t)x->dims[3];
  t->rows = (size_t)rows;
  t->columns = (size_t)columns;
  t->top = pads[0];
  t->left = pads[1];
  return true;
}

pln_status pln_kernel_conv_2d_winograd(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *w = pln_kernel_arg(call, 1);
  tiling t;
  void *out;
  if (x->dtype != PLN_FLOAT32 || w->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (!read_tiling(call, &t))
    return pln_kernel_refuse(call, "layout, groups, strides, dilation or "
                                   "tile_size do not match the operands");
  const int64_t dims[] = {x->dims[0], (int64_t)t.out, (int64_t)t.rows,
                          (int64_t)t.columns};
  size_t square = (size_t)t.w.alpha * t.w.alpha;
  size_t size = (t.in + t.out) * square * sizeof(float);
  PLN_TRY(pln_kernel_result(call, 0, PLN_FLOAT32, 4, dims, &out));
  t.tile = pln_mem_new(call->engine, size);
  if (size && !t.tile)
    return pln_nomem(call->engine);
  t.sums = t.tile + t.in * square;
  pln_status status = convolve_all(call, &t, (size_t)x->dims[0], out);
  pln_mem_free(call->engine, t.tile, size);
  return status;
}
