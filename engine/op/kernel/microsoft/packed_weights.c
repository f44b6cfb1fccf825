/* packed_weights.c: products with weights of a few bits that have a scale for
 * each block, and rows of such a table. Called through ops.def.
 *
 *     MatMulNBits<bits=4>(x, packed, scales, zeros)
 *         =>   nn.matmul(x, transpose((unpacked - zeros) * scales))
 *
 * The weights are unpacked to float32 once per call. accuracy_level, which
 * allows other precisions, is ignored: everything is computed in float32.
 * Semantics: ONNX Runtime's MatMulNBits, MatMulBnb4, GatherBlockQuantized. */

#include "op/kernel/composed.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/microsoft/packed_bits.h"

/* ------------------------------------------------------------------- n bits */

typedef struct n_bits {
  const pln_kernel_call *call;
  int64_t n, k, block;
  uint32_t bits;
  size_t blocks, blob,
      zero_row; /* a column; bytes of a block, of zero points */
  const pln_tensor *packed, *scales, *zeros, *groups;
} n_bits;

static pln_status read_n_bits(const pln_kernel_call *call, n_bits *w) {
  int64_t bits = pln_kernel_int(call, "bits", 4);
  *w = (n_bits){.call = call,
                .n = pln_kernel_int(call, "N", 0),
                .k = pln_kernel_int(call, "K", 0),
                .block = pln_kernel_int(call, "block_size", 0),
                .packed = pln_kernel_arg(call, 1),
                .scales = pln_kernel_arg(call, 2),
                .zeros = pln_kernel_arg(call, 3),
                .groups = pln_kernel_arg(call, 4)};
  if (bits < 2 || bits > 8 || w->n < 1 || w->k < 1 || w->block < 16 ||
      w->n > INT32_MAX || w->k > INT32_MAX || (w->block & (w->block - 1)))
    return pln_kernel_refuse(
        call, "bits %lld, N %lld, K %lld and block_size %lld are not valid",
        (long long)bits, (long long)w->n, (long long)w->k, (long long)w->block);
  w->bits = (uint32_t)bits;
  w->blocks = (size_t)((w->k - 1) / w->block + 1);
  w->blob = ((size_t)w->block * w->bits + 7) / 8;
  w->zero_row = (w->blocks * w->bits + 7) / 8;
  return PLN_OK;
}

static pln_status check_n_bits(const n_bits *w) {
  size_t n = (size_t)w->n, scales = n * w->blocks;
  const pln_tensor *z = w->zeros, *x = pln_kernel_arg(w->call, 0);
  if (w->packed->dtype != PLN_UINT8 || w->packed->count != scales * w->blob)
    return pln_kernel_refuse(w->call, "operand 1 is not of %zu bytes",
                             scales * w->blob);
  if (w->scales->count != scales || w->scales->dtype != PLN_FLOAT32)
    return pln_kernel_refuse(w->call, "operand 2 is not of %zu floats", scales);
  if (z && !(z->dtype == PLN_UINT8 && z->count == n * w->zero_row) &&
      !(z->dtype == PLN_FLOAT32 && z->count == scales))
    return pln_kernel_refuse(w->call, "the zero points do not match");
  if (w->groups &&
      (w->groups->dtype != PLN_INT32 || w->groups->count < (size_t)w->k))
    return pln_kernel_refuse(w->call, "g_idx does not match K");
  if (x->rank < 1 || x->dims[x->rank - 1] != w->k)
    return pln_kernel_refuse(w->call, "operand 0 does not have %lld columns",
                             (long long)w->k);
  return PLN_OK;
}

static float zero_at(const n_bits *w, size_t row, size_t block) {
  if (!w->zeros)
    return (float)(1u << (w->bits - 1));
  if (w->zeros->dtype == PLN_FLOAT32)
    return ((const float *)w->zeros->data)[row * w->blocks + block];
  const uint8_t *data = w->zeros->data;
  return (float)pln_bits_at(data + row * w->zero_row, block, w->bits);
}

/* Unpacks the elements [from, to) of a row, which lie in one block. */
static void unpack_block(const n_bits *w, size_t row, size_t block, size_t n,
                         float *out) {
  const float scale = ((const float *)w->scales->data)[row * w->blocks + block];
  const float zero = zero_at(w, row, block);
  const uint8_t *data =
      (const uint8_t *)w->packed->data + (row * w->blocks + block) * w->blob;
  for (size_t i = 0; i < n; i++)
    out[i] = ((float)pln_bits_at(data, i, w->bits) - zero) * scale;
}

/* g_idx names the block whose scale and zero point each column has. */
static bool unpack_groups(const n_bits *w, size_t row, float *out) {
  const int32_t *groups = w->groups->data;
  for (size_t i = 0; i < (size_t)w->k; i++) {
    if (groups[i] < 0 || (size_t)groups[i] >= w->blocks)
      return false;
    size_t block = (size_t)groups[i], own = i / (size_t)w->block;
    const uint8_t *data =
        (const uint8_t *)w->packed->data + (row * w->blocks + own) * w->blob;
    float x = (float)pln_bits_at(data, i % (size_t)w->block, w->bits);
    out[i] = (x - zero_at(w, row, block)) *
             ((const float *)w->scales->data)[row * w->blocks + block];
  }
  return true;
}

/* The weights as (N, K). */
static const pln_tensor *unpack(pln_composition *s, const n_bits *w) {
  int64_t dims[2] = {w->n, w->k};
  size_t k = (size_t)w->k, step = (size_t)w->block, done = 0;
  pln_tensor *t = NULL;
  s->status = pln_tensor_unset(s->call->engine, PLN_FLOAT32, 2, dims, &t);
  if (!pln_compose_own(s, t))
    return NULL;
  float *out = pln_tensor_writable(t);
  for (size_t row = 0; row < (size_t)w->n && s->status == PLN_OK; row++) {
    s->status = pln_poll_after(s->call->engine, &done, k);
    if (w->groups && !unpack_groups(w, row, out + row * k))
      pln_composition_refuse(s, "g_idx names a block that does not exist");
    for (size_t at = 0; !w->groups && at < k; at += step)
      unpack_block(w, row, at / step, k - at < step ? k - at : step,
                   out + row * k + at);
  }
  return s->status == PLN_OK ? t : NULL;
}

/* x times the transposed (N, K) weights. */
static const pln_tensor *multiply(pln_composition *s, const pln_tensor *x,
                                  const pln_tensor *weights) {
  int64_t dims[PLN_MAX_RANK], rows[2] = {1, x->dims[x->rank - 1]};
  if (!weights || x->rank > PLN_MAX_RANK)
    return NULL;
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank - 1] = weights->dims[0];
  rows[0] = (int64_t)pln_dims_product(x->dims, 0, x->rank - 1);
  const pln_tensor *flat = pln_compose_reshape(s, x, 2, rows);
  pln_compose_int(s, "transB", 1);
  return pln_compose_reshape(
      s, pln_compose_binary(s, PLN_OP_GEMM, flat, weights), x->rank, dims);
}

/* (x, packed, scales, zeros, groups, bias) */
static pln_status matmul_n_bits(pln_kernel_call *call) {
  n_bits w;
  pln_composition s;
  PLN_TRY(read_n_bits(call, &w));
  PLN_TRY(check_n_bits(&w));
  pln_composition_begin(&s, call);
  const pln_tensor *bias = pln_kernel_arg(call, 5);
  const pln_tensor *y = multiply(&s, pln_kernel_arg(call, 0), unpack(&s, &w));
  if (bias)
    y = pln_compose_binary(&s, PLN_OP_ADD, y, bias);
  return pln_composition_finish(&s, y);
}

pln_status pln_kernel_matmul_n_bits(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", matmul_n_bits);
}

/* --------------------------------------------------------- 4 bits by a table
 */

/* FP4 and NF4 of bitsandbytes. */
static const float tables[2][16] = {
    {0, 5.208333333e-03f, 0.66666667f, 1, 0.33333333f, 0.5f, 0.16666667f, 0.25f,
     0, -5.208333333e-03f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f,
     -0.25f},
    {-1, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
     -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0,
     0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f,
     0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
     0.7229568362236023f, 1}};

static pln_status check_bnb4(const pln_kernel_call *call, int64_t count,
                             int64_t block) {
  const pln_tensor *packed = pln_kernel_arg(call, 1);
  const pln_tensor *scales = pln_kernel_arg(call, 2);
  int64_t type = pln_kernel_int(call, "quant_type", 0);
  if (type < 0 || type > 1 || block < 1 || !pln_kernel_int(call, "transB", 1))
    return pln_kernel_refuse(
        call, "quant_type %lld, block_size %lld or transB 0 are not known",
        (long long)type, (long long)block);
  if (packed->dtype != PLN_UINT8 || scales->dtype != PLN_FLOAT32 ||
      (int64_t)packed->count != (count + 1) / 2 ||
      (int64_t)scales->count != (count - 1) / block + 1)
    return pln_kernel_refuse(call, "the packed weights do not match N and K");
  return PLN_OK;
}

/* The weights as (N, K); the first of two elements is in the high bits. */
static const pln_tensor *look_up(pln_composition *s, int64_t n, int64_t k,
                                 size_t block) {
  const pln_kernel_call *call = s->call;
  const float *table = tables[pln_kernel_int(call, "quant_type", 0)];
  const uint8_t *packed = pln_kernel_arg(call, 1)->data;
  const float *scales = pln_kernel_arg(call, 2)->data;
  int64_t dims[2] = {n, k};
  pln_tensor *t = NULL;
  s->status = pln_tensor_unset(call->engine, PLN_FLOAT32, 2, dims, &t);
  if (!pln_compose_own(s, t))
    return NULL;
  float *out = pln_tensor_writable(t);
  for (size_t i = 0; i < t->count; i++)
    out[i] = table[i % 2 ? packed[i / 2] & 15 : packed[i / 2] >> 4] *
             scales[i / block];
  return t;
}

/* (x, packed, scales) */
static pln_status matmul_bnb4(pln_kernel_call *call) {
  int64_t n = pln_kernel_int(call, "N", 0), k = pln_kernel_int(call, "K", 0);
  int64_t block = pln_kernel_int(call, "block_size", 0);
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_composition s;
  if (n < 1 || k < 1 || n > INT32_MAX || k > INT32_MAX || x->rank < 1 ||
      x->dims[x->rank - 1] != k)
    return pln_kernel_refuse(call, "N %lld and K %lld do not match operand 0",
                             (long long)n, (long long)k);
  PLN_TRY(check_bnb4(call, n * k, block));
  pln_composition_begin(&s, call);
  return pln_composition_finish(
      &s, multiply(&s, x, look_up(&s, n, k, (size_t)block)));
}

pln_status pln_kernel_matmul_bnb4(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", matmul_bnb4);
}

/* --------------------------------------------------------- rows of a table */

/* Bytes that hold two elements as (..., 2 n) of uint8. */
static const pln_tensor *split_bytes(pln_composition *s, const pln_tensor *x) {
  int64_t dims[PLN_MAX_RANK];
  pln_tensor *t = NULL;
  if (!x || s->status != PLN_OK)
    return NULL;
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank - 1] *= 2;
  s->status = pln_tensor_unset(s->call->engine, PLN_UINT8, x->rank, dims, &t);
  if (!pln_compose_own(s, t))
    return NULL;
  uint8_t *out = pln_tensor_writable(t);
  const uint8_t *in = x->data;
  for (size_t i = 0; i < x->count; i++) {
    out[2 * i] = in[i] & 15;
    out[2 * i + 1] = in[i] >> 4;
  }
  return t;
}

/* Rows of an operand along gather_axis. */
static const pln_tensor *gather(pln_composition *s, const pln_tensor *x) {
  pln_compose_int(s, "axis", pln_kernel_int(s->call, "gather_axis", 0));
  return pln_compose_binary(s, PLN_OP_GATHER, x, pln_kernel_arg(s->call, 1));
}

/* The middle of the range, where unsigned elements have no zero point. */
static const pln_tensor *default_zero(pln_composition *s, const pln_tensor *x,
                                      uint32_t bits) {
  if (!x || x->dtype != PLN_UINT8)
    return NULL;
  return pln_compose_scalar(s, PLN_FLOAT32, (double)(1u << (bits - 1)));
}

/* Each block's number for all of its elements, on the quantised axis. */
static const pln_tensor *spread(pln_composition *s, const pln_tensor *x,
                                uint32_t axis, int64_t block, int64_t extent) {
  pln_compose_int(s, "repeats", block);
  pln_compose_int(s, "axis", axis);
  return pln_compose_slice(s, pln_compose_unary(s, PLN_OP_REPEAT, x), axis, 0,
                           extent);
}

/* (data, indices, scales, zeros): data, scales and zero points are gathered
 * apart, then combined. The quantised axis is counted in the data; gathering
 * may move it. */
static pln_status gather_blocks(pln_kernel_call *call) {
  const pln_tensor *data = pln_kernel_arg(call, 0);
  const pln_tensor *scales = pln_kernel_arg(call, 2);
  const pln_tensor *zeros = pln_kernel_arg(call, 3);
  int64_t block = pln_kernel_int(call, "block_size", 128);
  int64_t bits = pln_kernel_int(call, "bits", 4);
  uint32_t axis, rows;
  if (data->rank < 1 || data->rank > PLN_MAX_RANK || block < 16 ||
      (bits != 4 && bits != 8) || scales->rank != data->rank ||
      !pln_kernel_axis(pln_kernel_int(call, "quantize_axis", 1), data->rank,
                       &axis) ||
      !pln_kernel_axis(pln_kernel_int(call, "gather_axis", 0), data->rank,
                       &rows) ||
      axis == rows)
    return pln_kernel_refuse(
        call, "bits %lld, block_size %lld or the axes are not valid",
        (long long)bits, (long long)block);
  pln_composition s;
  pln_composition_begin(&s, call);
  if (data->dtype == PLN_UINT8 && bits == 4) {
    data = split_bytes(&s, data);
    zeros = split_bytes(&s, zeros);
  }
  const pln_tensor *x = gather(&s, data), *scale = gather(&s, scales);
  const pln_tensor *zero = zeros ? gather(&s, zeros) : NULL;
  if (s.status != PLN_OK)
    return pln_composition_end(&s);
  uint32_t moved = axis > rows ? axis + x->rank - data->rank : axis;
  int64_t extent = x->dims[moved];
  const pln_tensor *middle = default_zero(&s, x, (uint32_t)bits);
  x = pln_compose_cast(&s, x, PLN_FLOAT32);
  if (zero)
    middle = spread(&s, pln_compose_cast(&s, zero, PLN_FLOAT32), moved, block,
                    extent);
  if (middle)
    x = pln_compose_binary(&s, PLN_OP_SUB, x, middle);
  scale = spread(&s, pln_compose_cast(&s, scale, PLN_FLOAT32), moved, block,
                 extent);
  const pln_tensor *y = pln_compose_binary(&s, PLN_OP_MUL, x, scale);
  return pln_composition_finish(
      &s, pln_compose_cast(&s, y, (pln_dtype)scales->dtype));
}

pln_status pln_kernel_gather_block_quantized(pln_kernel_call *call) {
  return gather_blocks(call);
}
