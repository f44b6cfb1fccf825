/* ethosu.c: type inference of TVM's operators for Ethos-U processors, which
 * have no kernels here. Called through ops.def.
 *
 * Attributes ifm_layout and ofm_layout give the layout of an image: NHWC, or
 * NHCWB16, where the last axis is a block of 16 channels. */

#include "op/infer/window.h"

enum { BLOCK = 16 };

static pln_status is_blocked(const pln_infer *call, const char *layout,
                             bool *out) {
  *out = pln_call_string_is(call, layout, "NHWC", "NHCWB16");
  if (!*out && !pln_call_string_is(call, layout, "NHWC", "NHWC"))
    return pln_call_error(call, "%s is neither NHWC nor NHCWB16", layout);
  return PLN_OK;
}

/* Checks that the attribute is one of `words`, which are separated by
 * spaces. */
static pln_status expect_word(const pln_infer *call, const char *name,
                              const char *fallback, const char *words) {
  pln_slice s = pln_attrs_string(call->engine, call->attrs, name, fallback);
  for (const char *at = words; *at; at += strspn(at, " ")) {
    size_t size = strcspn(at, " ");
    if (s.size == size && !memcmp(s.data, at, size))
      return PLN_OK;
    at += size;
  }
  return pln_call_error(call, "%s is '%.*s', expected one of %s", name,
                        (int)(s.size < 40 ? s.size : 40), s.data, words);
}

static bool has_dtype(const pln_dtype *list, pln_dtype dtype) {
  while (*list && *list != dtype)
    list++;
  return *list != PLN_DTYPE_NONE;
}

/* The lists end with PLN_DTYPE_NONE. */
static const pln_dtype bytes[] = {PLN_INT8, PLN_UINT8, PLN_DTYPE_NONE};
static const pln_dtype words[] = {PLN_INT8, PLN_UINT8, PLN_INT16,
                                  PLN_DTYPE_NONE};
static const pln_dtype integers[] = {PLN_INT8, PLN_UINT8, PLN_INT16, PLN_INT32,
                                     PLN_DTYPE_NONE};
static const pln_dtype shifted[] = {PLN_INT8, PLN_UINT8, PLN_INT32,
                                    PLN_DTYPE_NONE};
static const pln_dtype wide[] = {PLN_INT32, PLN_DTYPE_NONE};

static pln_status expect_dtype(const pln_infer *call, uint32_t i,
                               const pln_dtype *list) {
  pln_dtype dtype = pln_arg_dtype(call, i);
  return dtype == PLN_DTYPE_NONE || has_dtype(list, dtype)
             ? PLN_OK
             : pln_arg_error(call, i, "elements cannot be %s",
                             pln_dtype_name(dtype));
}

/* Attribute ofm_dtype. */
static pln_status result_dtype(const pln_infer *call, const char *fallback,
                               const pln_dtype *list, pln_dtype *out) {
  pln_slice s =
      pln_attrs_string(call->engine, call->attrs, "ofm_dtype", fallback);
  *out = pln_dtype_find(s);
  return has_dtype(list, *out)
             ? PLN_OK
             : pln_call_error(call, "ofm_dtype cannot be '%.*s'",
                              (int)(s.size < 40 ? s.size : 40), s.data);
}

/* -------------------------------------------------------------------- images
 */

/* Batch, height and width of operand 0. */
static pln_status read_image(const pln_infer *call, pln_dim image[3]) {
  bool blocked;
  pln_shape x;
  PLN_TRY(is_blocked(call, "ifm_layout", &blocked));
  PLN_TRY(pln_arg_expect_rank(call, 0, blocked ? 5 : 4));
  pln_arg_shape(call, 0, &x);
  if (x.rank < 0)
    pln_shape_ranked(&x, 5);
  image[0] = x.dims[0];
  image[1] = x.dims[1];
  image[2] = x.dims[blocked ? 3 : 2];
  return PLN_OK;
}

/* The number of channels is attribute `channels`. */
static pln_status give_image(pln_infer *call, const pln_dim image[3],
                             const char *channels, pln_dtype dtype) {
  int64_t n = pln_call_int(call, channels, -1);
  bool blocked;
  PLN_TRY(is_blocked(call, "ofm_layout", &blocked));
  if (n < 0)
    return pln_call_error(call, "%s is missing", channels);
  pln_shape out = {.rank = 4, .dims = {image[0], image[1], image[2], n}};
  pln_shape cut = {.rank = 5,
                   .dims = {image[0], image[1], n / BLOCK + (n % BLOCK != 0),
                            image[2], BLOCK}};
  return pln_result_tensor(call, 0, dtype, blocked ? &cut : &out);
}

/* Doubles height and width if attribute upscale says so. */
static pln_status upscaled(const pln_infer *call, pln_dim image[3]) {
  PLN_TRY(expect_word(call, "upscale", "NONE", "NONE NEAREST ZEROS"));
  if (pln_call_string_is(call, "upscale", "NONE", "NONE"))
    return PLN_OK;
  for (uint32_t i = 1; i < 3; i++)
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, image[i], 2, &image[i]));
  return PLN_OK;
}

/* (extent + pads - reach) / stride + 1 of axis i of space */
static pln_status slid(const pln_infer *call, const char *window, uint32_t i,
                       pln_dim *extent) {
  int64_t size = pln_window_int(call, window, i, 0), more;
  int64_t stride = pln_window_int(call, "strides", i, 1);
  int64_t dilation = pln_window_int(call, "dilation", i, 1);
  if (!pln_call_has(call, window))
    return pln_call_error(call, "%s is missing", window);
  if (size < 1 || stride < 1 || stride > INT32_MAX ||
      __builtin_mul_overflow(size - 1, dilation, &more) ||
      __builtin_sub_overflow(pln_window_pads(call, 2, i) - 1, more, &more) ||
      !PLN_DIM_IS_CONST(more))
    return pln_call_error(call, "a window of %lld by %lld", (long long)size,
                          (long long)stride);
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *extent, more, extent));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *extent, stride, extent));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *extent, 1, extent));
  return PLN_DIM_IS_CONST(*extent) && *extent < 0
             ? pln_call_error(call, "the window is larger than the operand")
             : PLN_OK;
}

/* ---------------------------------------------------------------- operators */

/* (image, weight, scales, table); the weight is (out, height, width, in). */
static pln_status convolved(pln_infer *call, bool grows, pln_dtype dtype) {
  pln_dim image[3];
  pln_shape w, scales = {.rank = 2, .dims = {PLN_DIM_UNKNOWN, 10}};
  PLN_TRY(expect_dtype(call, 0, bytes));
  PLN_TRY(expect_dtype(call, 1, bytes));
  PLN_TRY(pln_arg_expect_rank(call, 1, 4));
  PLN_TRY(pln_arg_expect_rank(call, 2, 2));
  PLN_TRY(read_image(call, image));
  if (grows)
    PLN_TRY(upscaled(call, image));
  pln_arg_shape(call, 1, &w);
  scales.dims[0] = pln_call_int(call, "ofm_channels", PLN_DIM_UNKNOWN);
  if (w.rank == 4)
    PLN_TRY(pln_infer_same_dim(call, 1, &w.dims[0], scales.dims[0]));
  PLN_TRY(pln_set_operand_type(call, 2, PLN_UINT8, &scales));
  for (uint32_t i = 0; i < 2; i++)
    PLN_TRY(slid(call, "kernel_shape", i, &image[1 + i]));
  return give_image(call, image, "ofm_channels", dtype);
}

pln_status pln_infer_ethosu_conv(pln_infer *call) {
  return convolved(call, true, pln_arg_dtype(call, 0));
}

pln_status pln_infer_ethosu_depthwise(pln_infer *call) {
  pln_dtype dtype;
  PLN_TRY(result_dtype(call, "int8", integers, &dtype));
  return convolved(call, false, dtype);
}

/* (image, table) */
pln_status pln_infer_ethosu_pool(pln_infer *call) {
  bool sum = pln_call_string_is(call, "pooling_type", "", "SUM");
  pln_dim image[3];
  pln_dtype dtype;
  PLN_TRY(expect_word(call, "pooling_type", "", "AVG MAX SUM"));
  PLN_TRY(expect_dtype(call, 0, sum ? integers : words));
  PLN_TRY(result_dtype(call, "", sum ? wide : words, &dtype));
  if (!sum && pln_arg_dtype(call, 0) && pln_arg_dtype(call, 0) != dtype)
    return pln_arg_error(call, 0, "expected %s, got %s", pln_dtype_name(dtype),
                         pln_dtype_name(pln_arg_dtype(call, 0)));
  PLN_TRY(read_image(call, image));
  PLN_TRY(upscaled(call, image));
  for (uint32_t i = 0; i < 2; i++)
    PLN_TRY(slid(call, "pool_shape", i, &image[1 + i]));
  return give_image(call, image, "ofm_channels", dtype);
}

/* Checks the dtypes of a binary operator's operands and result. */
static pln_status binary_dtypes(const pln_infer *call, pln_dtype *result) {
  bool choice = pln_call_string_is(call, "operator_type", "", "MIN") ||
                pln_call_string_is(call, "operator_type", "", "MAX");
  bool right = pln_call_string_is(call, "operator_type", "", "SHR");
  bool shift = right || pln_call_string_is(call, "operator_type", "", "SHL");
  pln_dtype both;
  PLN_TRY(
      expect_word(call, "operator_type", "", "ADD SUB MUL MIN MAX SHR SHL"));
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &both));
  PLN_TRY(expect_dtype(call, 0, shift ? wide : choice ? bytes : integers));
  PLN_TRY(result_dtype(call, "",
                       right    ? shifted
                       : shift  ? wide
                       : choice ? bytes
                                : integers,
                       result));
  return choice && both && both != *result
             ? pln_arg_error(call, 0, "expected %s, got %s",
                             pln_dtype_name(*result), pln_dtype_name(both))
             : PLN_OK;
}

/* (image, image, table) */
pln_status pln_infer_ethosu_binary(pln_infer *call) {
  pln_dim image[3];
  pln_dtype dtype;
  PLN_TRY(binary_dtypes(call, &dtype));
  PLN_TRY(read_image(call, image));
  return give_image(call, image, "ifm_channels", dtype);
}

/* (image, table) */
pln_status pln_infer_ethosu_unary(pln_infer *call) {
  bool zeros = pln_call_string_is(call, "operator_type", "", "CLZ");
  pln_dim image[3];
  PLN_TRY(expect_word(call, "operator_type", "", "ABS CLZ"));
  PLN_TRY(expect_dtype(call, 0, zeros ? wide : bytes));
  PLN_TRY(read_image(call, image));
  return give_image(call, image, "ofm_channels", pln_arg_dtype(call, 0));
}

/* (image of up to four axes, table) */
pln_status pln_infer_ethosu_identity(pln_infer *call) {
  PLN_TRY(expect_dtype(call, 0, bytes));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 0, 4));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}
