/* coded_weight.c: kernels of Relay's operators on weights in the form of an
 * algorithm: nn.contrib_conv2d_gemm_weight_transform,
 * nn.contrib_conv2d_gemm_without_weight_transform, nn.bitserial_dense,
 * nn.bitserial_conv2d. Called through ops.def; types are in relay/infer/.
 *
 * Weights are decoded and multiplied as plain ones. Bit-serial products are
 * those of small integers: of the lowest bits of the data with the lowest bits
 * of the weight, each of which counts as -1 or 1 if `unipolar` is given, as TVM
 * understands that word.
 *
 * Semantics: TVM's TOPI. Integer sums wrap. */

#include "op/relay/kernel/window.h"

/* -------------------------------------------------------------------- tiles */

/* A matrix of k rows and n columns as tiles of such extents. */
typedef struct tiles {
  size_t k, n, tile_k, tile_n, rows, columns; /* rows, columns: of tiles */
  bool transposed;                            /* the tiles are */
  size_t element;                             /* bytes */
} tiles;

/* Where element (k, n) of the matrix lies. */
static size_t tiled_at(const tiles *t, size_t k, size_t n) {
  size_t tile = n / t->tile_n * t->rows + k / t->tile_k;
  size_t row = k % t->tile_k, column = n % t->tile_n;
  return tile * t->tile_k * t->tile_n +
         (t->transposed ? column * t->tile_k + row : row * t->tile_n + column);
}

static void copy_tiles(const tiles *t, const char *in, char *out, bool decode) {
  for (size_t k = 0; k < t->k; k++)
    for (size_t n = 0; n < t->n; n++) {
      size_t plain = (k * t->n + n) * t->element;
      size_t tiled = tiled_at(t, k, n) * t->element;
      memcpy(out + (decode ? plain : tiled), in + (decode ? tiled : plain),
             t->element);
    }
}

static void set_element(tiles *t, const pln_tensor *w) {
  t->element = pln_element_size((pln_dtype)w->dtype);
  t->transposed = w->dtype == PLN_INT8 || w->dtype == PLN_UINT8;
}

/* (height, width, in, out); the number of rows of tiles is a multiple of 4. */
pln_status pln_kernel_gemm_weight(pln_kernel_call *call) {
  const pln_tensor *w = pln_kernel_arg(call, 0);
  int64_t tile_n = pln_kernel_int(call, "tile_N", 0);
  int64_t tile_k = pln_kernel_int(call, "tile_K", 0);
  tiles t = {.k = pln_dims_product(w->dims, 0, 3), .n = (size_t)w->dims[3]};
  void *out;
  set_element(&t, w);
  if (!t.element || w->dtype == PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)w->dtype);
  t.tile_n = (size_t)tile_n;
  t.tile_k = (size_t)tile_k;
  t.columns = (t.n + t.tile_n - 1) / t.tile_n;
  t.rows = (t.k + 4 * t.tile_k - 1) / (4 * t.tile_k) * 4;
  const int64_t dims[] = {(int64_t)t.columns, (int64_t)t.rows,
                          t.transposed ? tile_n : tile_k,
                          t.transposed ? tile_k : tile_n};
  PLN_TRY(pln_kernel_result(call, 0, (pln_dtype)w->dtype, 4, dims, &out));
  copy_tiles(&t, w->data, out, false);
  return PLN_OK;
}

/* The weights of the call as height, width, in, out. */
static const pln_tensor *decode_tiles(pln_composition *s) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  const pln_tensor *w = pln_kernel_arg(s->call, 1);
  int64_t window[2], channels = pln_kernel_int(s->call, "channels", 0);
  pln_tensor *out = NULL;
  tiles t = {.n = (size_t)channels};
  set_element(&t, w);
  if (w->rank != 4 || x->rank != 4 || !t.element || w->dtype == PLN_STRING ||
      !pln_relay_ints(s->call, "kernel_size", 2, 0, window)) {
    pln_composition_refuse(s, "the weight is no matrix of tiles");
    return NULL;
  }
  const int64_t dims[] = {window[0], window[1], x->dims[3], channels};
  t.k = pln_dims_product(dims, 0, 3);
  t.columns = (size_t)w->dims[0];
  t.rows = (size_t)w->dims[1];
  t.tile_k = (size_t)w->dims[t.transposed ? 3 : 2];
  t.tile_n = (size_t)w->dims[t.transposed ? 2 : 3];
  if (t.k > t.rows * t.tile_k || t.n > t.columns * t.tile_n) {
    pln_composition_refuse(s, "the weight has too few tiles");
    return NULL;
  }
  s->status =
      pln_tensor_unset(s->call->engine, (pln_dtype)w->dtype, 4, dims, &out);
  if (out)
    copy_tiles(&t, w->data, pln_tensor_writable(out), true);
  return pln_compose_own(s, out);
}

pln_status pln_kernel_conv_2d_gemm(pln_kernel_call *call) {
  pln_composition s;
  if (!pln_kernel_string_is(call, "data_layout", "NCHW", "NHWC") ||
      !pln_kernel_string_is(call, "kernel_layout", "OIHW", "HWIO") ||
      pln_kernel_int(call, "groups", 1) != 1)
    return pln_kernel_refuse(call, "it is defined for layouts NHWC and HWIO, "
                                   "and for one group");
  pln_composition_begin(&s, call);
  return pln_composition_finish(
      &s,
      pln_compose_convolution(&s, pln_kernel_arg(call, 0), decode_tiles(&s)));
}

/* --------------------------------------------------------------------- bits */

/* How many bits an attribute says; 0: none that there are. */
static uint32_t read_bits(const pln_kernel_call *call, const char *name) {
  int64_t bits = pln_kernel_int(call, name, 1);
  return bits < 1 || bits > 8 ? 0 : (uint32_t)bits;
}

/* The lowest bits of integers, as int32. */
static const pln_tensor *lowest_bits(pln_composition *s, const pln_tensor *x,
                                     uint32_t bits) {
  pln_tensor *out = NULL;
  if (!bits || !pln_dtype_is_integer((pln_dtype)x->dtype)) {
    pln_composition_refuse(s, "operands are integers of 1 to 8 bits");
    return NULL;
  }
  x = pln_compose_cast(s, x, PLN_INT64);
  if (!x)
    return NULL;
  s->status =
      pln_tensor_unset(s->call->engine, PLN_INT32, x->rank, x->dims, &out);
  if (!out)
    return NULL;
  const int64_t *in = x->data;
  int32_t *data = pln_tensor_writable(out);
  for (size_t i = 0; i < x->count; i++)
    data[i] = (int32_t)(in[i] & ((1 << bits) - 1));
  return pln_compose_own(s, out);
}

/* Adds a plane of words to the integers that they hold a bit of: along an axis
 * of `words`, `inner` elements apart, the first in the highest bit. */
static void add_plane(const uint64_t *in, uint32_t plane, uint32_t width,
                      size_t words, size_t inner, size_t count, int32_t *out) {
  for (size_t i = 0; i < count; i++) {
    size_t column = i % inner, word = i / inner % words;
    size_t outer = i / inner / words;
    for (uint32_t k = 0; k < width; k++) {
      size_t at = ((outer * words + word) * width + k) * inner + column;
      out[at] |= (int32_t)(in[i] >> (width - 1 - k) & 1) << plane;
    }
  }
}

/* The integers of words that are packed along `pack`, with their bits along
 * axis `bit`. */
static const pln_tensor *unpack(pln_composition *s, const pln_tensor *w,
                                uint32_t pack, uint32_t bit) {
  uint32_t width = pln_dtype_bits((pln_dtype)w->dtype), rank = w->rank - 1;
  int64_t axes[PLN_MAX_RANK], dims[PLN_MAX_RANK], planes = w->dims[bit];
  pln_tensor *out = NULL;
  if (!pln_dtype_is_integer((pln_dtype)w->dtype) || width < 8 || planes > 8) {
    pln_composition_refuse(s, "the weight is not packed in words");
    return NULL;
  }
  axes[0] = bit;
  for (uint32_t i = 0, k = 1; i < w->rank; i++)
    if (i != bit)
      axes[k++] = i;
  w = pln_compose_transpose(s, w, w->rank, axes);
  w = pln_compose_cast(s, w, PLN_UINT64);
  if (!w)
    return NULL;
  memcpy(dims, w->dims + 1, rank * sizeof *dims);
  size_t words = (size_t)dims[pack], count = pln_dims_product(dims, 0, rank);
  dims[pack] *= width;
  s->status = pln_tensor_new(s->call->engine, PLN_INT32, rank, dims, &out);
  for (int64_t i = 0; out && i < planes; i++)
    add_plane((const uint64_t *)w->data + (size_t)i * count, (uint32_t)i, width,
              words, pln_dims_product(dims, pack + 1, rank), count,
              pln_tensor_writable(out));
  return pln_compose_own(s, out);
}

/* The weight as integers; each bit counts -1 or 1 if `unipolar` is given. */
static const pln_tensor *weigh_bits(pln_composition *s, const pln_tensor *w,
                                    int64_t bits) {
  if (!w || !pln_kernel_int(s->call, "unipolar", 1))
    return w;
  pln_tensor *out = NULL;
  s->status =
      pln_tensor_unset(s->call->engine, PLN_INT32, w->rank, w->dims, &out);
  if (!out)
    return NULL;
  int32_t *data = pln_tensor_writable(out);
  for (size_t i = 0; i < w->count; i++)
    data[i] = 2 * ((const int32_t *)w->data)[i] - ((1 << bits) - 1);
  return pln_compose_own(s, out);
}

/* The weight, of `rank` axes or packed with one more. */
static const pln_tensor *read_weight(pln_composition *s, uint32_t rank,
                                     uint32_t pack, uint32_t bit) {
  const pln_tensor *w = pln_kernel_arg(s->call, 1);
  uint32_t bits = read_bits(s->call, "weight_bits");
  if (w->rank == rank)
    return weigh_bits(s, lowest_bits(s, w, bits), bits);
  if (w->rank != rank + 1 || bit == PLN_NONE) {
    pln_composition_refuse(s, "this form of the weight is not defined");
    return NULL;
  }
  return weigh_bits(s, unpack(s, w, pack, bit), w->dims[bit]);
}

/* (data, weight of out, in; packed: out, bits, words) */
pln_status pln_kernel_bitserial_dense(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "out_dtype", "");
  pln_dtype dtype = name.size ? pln_dtype_find(name) : (pln_dtype)x->dtype;
  pln_composition s;
  pln_composition_begin(&s, call);
  x = lowest_bits(&s, x, read_bits(call, "data_bits"));
  const pln_tensor *w = read_weight(&s, 2, 1, 1);
  if (x && w &&
      (x->rank != 2 || w->dims[0] != pln_kernel_int(call, "units", -1) ||
       w->dims[1] != x->dims[1]))
    pln_composition_refuse(&s, "the operands do not match");
  x = pln_compose_cast(&s, x, PLN_FLOAT64);
  w = pln_compose_cast(&s, w, PLN_FLOAT64);
  pln_compose_int(&s, "transB", 1);
  const pln_tensor *y = pln_compose_binary(&s, PLN_OP_GEMM, x, w);
  return pln_composition_finish(
      &s, pln_compose_cast(&s, pln_compose_cast(&s, y, PLN_INT64), dtype));
}

pln_status pln_kernel_bitserial_conv_2d(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool last = pln_kernel_string_is(call, "data_layout", "NCHW", "NHWC");
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "out_dtype", "");
  pln_dtype dtype = name.size ? pln_dtype_find(name) : (pln_dtype)x->dtype;
  pln_composition s;
  if (!pln_kernel_string_is(call, "kernel_layout", "OIHW",
                            last ? "HWIO" : "OIHW") ||
      (!last && !pln_kernel_string_is(call, "data_layout", "NCHW", "NCHW")))
    return pln_kernel_refuse(call, "it is defined for layouts NCHW with OIHW, "
                                   "and NHWC with HWIO");
  pln_composition_begin(&s, call);
  x = lowest_bits(&s, x, read_bits(call, "activation_bits"));
  const pln_tensor *w = read_weight(&s, 4, 1, last ? PLN_NONE : 4);
  return pln_composition_finish(
      &s, pln_compose_cast(&s, pln_compose_convolution(&s, x, w), dtype));
}
