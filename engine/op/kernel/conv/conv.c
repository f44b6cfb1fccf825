/* conv.c: the kernel of convolutions. Called through ops.def.
 *
 * For each image and group a convolution is the product of the weights (out x
 * in * taps) and a matrix with a row per channel and tap and a column per
 * output. That matrix is never built. If the window is one element, it is the
 * image itself. Otherwise its rows are read in place from a band of the image
 * (image_band.h), or, if no band of bounded size holds the window, it is
 * gathered some columns at a time.
 *
 * Scratch is bounded and allocated once per call. Threads share the images and
 * groups if there are as many as workers, else the output channels. */

#include "base/thread/thread_pool.h"
#include "op/kernel/conv/image_band.h"
#include "op/kernel/matmul/gemm.h"

enum { DEPTH, ROW, COL };
/* Elements of a band; the most rows of the matrix gathered at a time. */
enum { BAND = 1 << 18, GATHERED = 1024 };
/* Bytes of weights that are multiplied with all columns of a band before the
 * next ones, so that they stay in the L2 cache. */
enum { NEAR = 256 << 10 };
/* The number of multiplications that pays for sharing a band. */
enum { SHARED_WORK = 1 << 19 };

typedef struct conv {
  const pln_conv_plan *plan;
  const pln_tiles *tiles;
  size_t size; /* of an element */
  const char *x, *w, *bias;
  char *y;
} conv;

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* The part of one image and one group. */
static conv part_of(const conv *all, size_t image, size_t group) {
  const pln_conv_plan *p = all->plan;
  size_t at = image * p->groups + group;
  conv c = *all;
  c.x += at * p->in * p->in_plane * c.size;
  c.y += at * p->out * p->out_plane * c.size;
  c.w += group * p->out * p->in * p->taps * c.size;
  if (c.bias)
    c.bias += group * p->out * c.size;
  return c;
}

/* ----------------------------------------------------------------- pointwise
 */

static bool is_pointwise(const pln_conv_plan *p) {
  for (uint32_t i = 0; i < PLN_CONV_AXES; i++)
    if (p->axis[i].window != 1 || p->axis[i].stride != 1 ||
        p->axis[i].begin != 0 || p->axis[i].in != p->axis[i].out)
      return false;
  return true;
}

/* The product of image and group `part`. */
static pln_product pointwise_product(const conv *all, size_t part) {
  const pln_conv_plan *p = all->plan;
  conv c = part_of(all, part / p->groups, part % p->groups);
  return (pln_product){.m = p->out,
                       .n = p->out_plane,
                       .k = p->in,
                       .a = c.w,
                       .a_row = p->in,
                       .a_col = 1,
                       .b = c.x,
                       .b_row = p->in_plane,
                       .b_col = 1,
                       .c = c.y,
                       .c_row = p->out_plane,
                       .bias = c.bias};
}

static pln_status run_pointwise(pln_engine *engine, pln_dtype dtype,
                                const conv *all) {
  const pln_conv_plan *p = all->plan;
  pln_gemm gemm;
  size_t done = 0, work = p->out * p->out_plane * p->in;
  PLN_TRY(pln_gemm_begin(engine, dtype, p->out_plane, p->in, &gemm));
  for (size_t i = 0; i < p->batch * p->groups; i++) {
    if (pln_is_stopped_after(engine, &done, work))
      break;
    pln_product s = pointwise_product(all, i);
    pln_gemm_run(&gemm, &s);
  }
  pln_gemm_end(&gemm);
  return PLN_OK;
}

/* -------------------------------------------------------------------- bands */

/* A band being multiplied. */
typedef struct banded_conv {
  pln_engine *engine;
  conv c;
  pln_conv_band band;
  bool by_rows;   /* no tile crosses the end of a row */
  size_t depth;   /* of a block of summands */
  size_t workers; /* that share a band */
  size_t *offsets;
  char *data;
  void *memory;
  size_t bytes;
  size_t z, y, x;    /* position of the first output */
  size_t rows, cols; /* of outputs */
  size_t channel, channels;
} banded_conv;

/* The position of an output of the band in its plane. */
static size_t output_at(const banded_conv *b, size_t row, size_t col) {
  const pln_conv_axis *axis = b->c.plan->axis;
  return (b->z * (size_t)axis[ROW].out + b->y + row) * (size_t)axis[COL].out +
         b->x + col;
}

/* The outputs among columns [first, first + n) of the band's matrix. */
static uint32_t parts_of(const banded_conv *b, size_t first, size_t n,
                         pln_tile_part *out) {
  uint32_t count = 0;
  size_t row = first / b->band.pitch, col = first % b->band.pitch;
  for (size_t at = 0; at < n; row++, col = 0) {
    if (col < b->cols)
      out[count++] = (pln_tile_part){at, min_size(n - at, b->cols - col),
                                     output_at(b, row, col)};
    at += b->band.pitch - col;
  }
  return count;
}

/* Computes columns [first, first + n), at most a tile's width, for m outputs
 * from channel `i` on. Summands are added up as in a product of matrices. */
static void multiply_block(const banded_conv *b, size_t i, size_t m,
                           size_t first, size_t n) {
  const conv *c = &b->c;
  const pln_conv_plan *p = c->plan;
  pln_tile_part parts[PLN_MAX_TILE_ROWS / PLN_TILE_MOST_ROWS];
  uint32_t n_parts = parts_of(b, first, n, parts);
  size_t a_row = p->in * p->taps;
  size_t k = b->channel * p->taps, end = k + b->channels * p->taps;
  pln_tile tile = {.a = c->w + (i * a_row + k) * c->size,
                   .a_row = a_row,
                   .a_col = 1,
                   .b = b->data + first * c->size,
                   .b_at = b->offsets,
                   .c = c->y + i * p->out_plane * c->size,
                   .c_row = p->out_plane,
                   .add = b->channel > 0,
                   .single = p->out == 1};
  if (n_parts == 1) {
    tile.c = (char *)tile.c + parts[0].to * c->size;
    parts[0].to = 0;
  }
  while (k < end) {
    tile.k = min_size(b->depth - k % b->depth, end - k);
    k += tile.k;
    if (k == a_row && c->bias)
      tile.bias = c->bias + i * c->size;
    pln_tiles_run_parts(c->tiles, &tile, m, n, n_parts, parts);
    tile.a = (const char *)tile.a + tile.k * c->size;
    tile.b_at += tile.k;
    tile.add = true;
  }
}

/* Computes columns [first, first + n) in tiles of about equal width. */
static void multiply_line(const banded_conv *b, size_t i, size_t m,
                          size_t first, size_t n) {
  size_t lanes = b->c.tiles->lanes, width = b->c.tiles->width;
  size_t tiles = (n + width - 1) / width;
  size_t vectors = (n + lanes - 1) / lanes;
  size_t step = (vectors + tiles - 1) / tiles * lanes;
  for (size_t at = 0; at < n; at += step)
    multiply_block(b, i, m, first + at, min_size(step, n - at));
}

/* Computes m outputs of the band from channel `i` on. */
static void multiply_channels(const banded_conv *b, size_t i, size_t m) {
  if (b->by_rows)
    for (size_t r = 0; r < b->rows; r++)
      multiply_line(b, i, m, r * b->band.pitch, b->cols);
  else
    multiply_line(b, i, m, 0, (b->rows - 1) * b->band.pitch + b->cols);
}

/* How many output channels are computed at a time: as many as stay in the
 * cache, and no more than gives each worker some. */
static size_t channels_at_once(const banded_conv *b) {
  const pln_conv_plan *p = b->c.plan;
  size_t bytes = b->channels * p->taps * b->c.size, unit = PLN_TILE_MOST_ROWS;
  size_t near = NEAR / bytes / unit * unit;
  size_t share = (p->out + b->workers - 1) / b->workers;
  share = (share + unit - 1) / unit * unit;
  double work =
      (double)(p->out * b->rows * b->cols) * (double)(b->channels * p->taps);
  if (near == 0)
    near = unit;
  return b->workers > 1 && work >= SHARED_WORK ? min_size(near, share) : near;
}

typedef struct shared_band {
  const banded_conv *b;
  size_t step; /* output channels of a share */
} shared_band;

static void multiply_share(void *ud, size_t part, uint32_t worker) {
  const shared_band *shared = ud;
  size_t i = part * shared->step;
  (void)worker;
  multiply_channels(shared->b, i,
                    min_size(shared->step, shared->b->c.plan->out - i));
}

/* Computes all outputs of the band. */
static void multiply_band(const banded_conv *b) {
  shared_band shared = {.b = b, .step = channels_at_once(b)};
  size_t parts = (b->c.plan->out + shared.step - 1) / shared.step;
  if (b->workers > 1)
    pln_parallel_for(b->engine, parts, multiply_share, &shared);
  else
    for (size_t part = 0; part < parts; part++)
      multiply_share(&shared, part, 0);
}

/* Computes all channels of the outputs that the band covers. */
static void run_band(banded_conv *b) {
  const pln_conv_plan *p = b->c.plan;
  for (b->channel = 0; b->channel < p->in; b->channel += b->channels) {
    b->channels = min_size(b->band.channels, p->in - b->channel);
    pln_conv_band_fill(&b->band, b->c.x + b->channel * p->in_plane * b->c.size,
                       b->channels, b->z, b->y, b->x, b->data);
    multiply_band(b);
  }
}

static void run_part(banded_conv *b) {
  const pln_conv_axis *axis = b->c.plan->axis;
  size_t high = (size_t)axis[ROW].out, wide = (size_t)axis[COL].out;
  for (b->z = 0; b->z < (size_t)axis[DEPTH].out; b->z++)
    for (b->y = 0; b->y < high; b->y += b->band.rows)
      for (b->x = 0; b->x < wide; b->x += b->band.cols) {
        if (pln_is_stopped(b->engine))
          return; /* the evaluator drops the result */
        b->rows = min_size(b->band.rows, high - b->y);
        b->cols = min_size(b->band.cols, wide - b->x);
        run_band(b);
      }
}

/* Rows that end in many columns without an output are computed one by one. */
static bool better_by_rows(const pln_conv_band *band, const pln_tiles *tiles) {
  size_t lanes = tiles->lanes;
  size_t row = (band->cols + lanes - 1) / lanes * lanes;
  return row + row / 8 < band->pitch;
}

/* The images and groups of a convolution, and the scratch of the workers that
 * share them. */
typedef struct shared_parts {
  const banded_conv *b;
  const conv *all;
  size_t bytes; /* of a worker's band */
} shared_parts;

static void run_shared_part(void *ud, size_t part, uint32_t worker) {
  const shared_parts *shared = ud;
  banded_conv b = *shared->b;
  size_t groups = shared->all->plan->groups;
  b.c = part_of(shared->all, part / groups, part % groups);
  b.data += worker * shared->bytes;
  run_part(&b);
}

static void run_parts(banded_conv *b, const conv *all, size_t workers,
                      size_t bytes) {
  shared_parts shared = {.b = b, .all = all, .bytes = bytes};
  size_t parts = all->plan->batch * all->plan->groups;
  if (b->workers == 1 && workers > 1)
    pln_parallel_for(b->engine, parts, run_shared_part, &shared);
  else
    for (size_t i = 0; i < parts; i++)
      run_shared_part(&shared, i, 0);
}

static pln_status run_banded(pln_engine *engine, const conv *all,
                             const pln_conv_band *band) {
  const pln_conv_plan *p = all->plan;
  size_t workers = pln_parallel_workers(engine);
  bool by_part = p->batch * p->groups >= workers;
  size_t table = band->channels * p->taps * sizeof(size_t);
  size_t bytes = band->elements * band->size;
  bytes += (0 - bytes) % 64;
  banded_conv b = {.engine = engine,
                   .band = *band,
                   .by_rows = better_by_rows(band, all->tiles),
                   .depth = p->out == 1
                                ? SIZE_MAX
                                : pln_gemm_depth(p->out_plane, p->in * p->taps),
                   .workers = by_part ? 1 : workers};
  b.bytes = table + (by_part ? workers : 1) * bytes;
  b.memory = pln_mem_new(engine, b.bytes);
  if (!b.memory)
    return pln_nomem(engine);
  b.offsets = b.memory;
  b.data = (char *)b.memory + table;
  pln_conv_band_offsets(band, b.offsets);
  run_parts(&b, all, workers, bytes);
  pln_mem_free(engine, b.memory, b.bytes);
  return PLN_OK;
}

/* ----------------------------------------------------------------- gathered */

/* The element that output `at` reads in row `k` of the matrix, or NULL for
 * padding. */
static const char *element_at(const conv *c, size_t k, size_t at) {
  const pln_conv_axis *axis = c->plan->axis;
  size_t tap = k % c->plan->taps, channel = k / c->plan->taps;
  size_t from = 0, plane = 1;
  for (uint32_t i = PLN_CONV_AXES; i-- > 0;) {
    int64_t o = (int64_t)(at % (size_t)axis[i].out);
    int64_t t = (int64_t)(tap % (size_t)axis[i].window);
    int64_t x = o * axis[i].stride + t * axis[i].dilation - axis[i].begin;
    if (x < 0 || x >= axis[i].in)
      return NULL;
    from += (size_t)x * plane;
    plane *= (size_t)axis[i].in;
    at /= (size_t)axis[i].out;
    tap /= (size_t)axis[i].window;
  }
  return c->x + (channel * plane + from) * c->size;
}

/* Rows [k, k + depth) and columns [at, at + n) of the matrix. */
static void gather_columns(const conv *c, size_t k, size_t depth, size_t at,
                           size_t n, char *out) {
  for (size_t i = k; i < k + depth; i++)
    for (size_t j = at; j < at + c->tiles->width; j++, out += c->size) {
      const char *from = j < at + n ? element_at(c, i, j) : NULL;
      if (from)
        memcpy(out, from, c->size);
      else
        memset(out, 0, c->size);
    }
}

static void run_gathered_part(const pln_engine *engine, const conv *c,
                              const size_t *steps, char *data) {
  const pln_conv_plan *p = c->plan;
  size_t depth = p->in * p->taps, width = c->tiles->width, done = 0;
  size_t most = pln_gemm_depth(p->out_plane, depth);
  for (size_t at = 0; at < p->out_plane; at += width)
    for (size_t k = 0; k < depth; k += most) {
      if (pln_is_stopped_after(engine, &done, width * most))
        return;
      size_t n = min_size(width, p->out_plane - at);
      pln_tile tile = {.k = min_size(most, depth - k),
                       .a = c->w + k * c->size,
                       .a_row = depth,
                       .a_col = 1,
                       .b = data,
                       .b_at = steps,
                       .c = c->y + at * c->size,
                       .c_row = p->out_plane,
                       .bias = k + most >= depth ? c->bias : NULL,
                       .add = k > 0};
      gather_columns(c, k, tile.k, at, n, data);
      pln_tiles_run(c->tiles, &tile, p->out, n);
    }
}

static pln_status run_gathered(pln_engine *engine, const conv *all) {
  const pln_conv_plan *p = all->plan;
  size_t bytes = GATHERED * all->tiles->width * all->size;
  size_t steps[GATHERED];
  char *data = pln_mem_new(engine, bytes);
  if (!data)
    return pln_nomem(engine);
  for (size_t i = 0; i < GATHERED; i++)
    steps[i] = i * all->tiles->width;
  for (size_t i = 0; i < p->batch * p->groups; i++) {
    conv c = part_of(all, i / p->groups, i % p->groups);
    run_gathered_part(engine, &c, steps, data);
  }
  pln_mem_free(engine, data, bytes);
  return PLN_OK;
}

/* ------------------------------------------------------------------- kernel */

static pln_status run_conv(pln_engine *engine, const pln_conv_plan *plan,
                           pln_tensor *const *args, pln_tensor *out) {
  pln_dtype dtype = (pln_dtype)out->dtype;
  pln_conv_band band;
  conv c = {.plan = plan,
            .tiles = pln_tiles_for(dtype),
            .size = pln_element_size(dtype),
            .x = args[0]->data,
            .w = args[1]->data,
            .bias = args[2] ? args[2]->data : NULL,
            .y = pln_tensor_writable(out)};
  if (is_pointwise(plan) || plan->in == 0)
    return run_pointwise(engine, dtype, &c);
  if (pln_conv_band_plan(plan, c.size, c.tiles->width, BAND, &band))
    return run_banded(engine, &c, &band);
  return run_gathered(engine, &c);
}

pln_status pln_kernel_conv(pln_kernel_call *call) {
  pln_conv_plan plan;
  PLN_TRY(pln_conv_read(call, &plan));
  return pln_conv_compute(call, &plan, run_conv);
}
