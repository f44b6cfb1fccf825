/* onnx_form.c: operators of com.microsoft that are ONNX's in another form:
 * Range, Unique, TorchEmbedding, ConvTransposeWithDynamicPads, MatMulInteger16,
 * MulInteger, ReduceSumInteger, CropAndResize. Types and kernels; the type of
 * the sum is in infer/microsoft.c. Called through ops.def.
 *
 *     ReduceSumInteger(x)   =>   sum(cast(x, dtype="int32"))
 *
 * Semantics: ONNX Runtime's contrib operators. */

#include "op/infer/matmul.h"
#include "op/infer/window.h"
#include "op/kernel/composed.h"

/* ------------------------------------------------------------------- shapes */

/* (start, limit, delta), of which the last may be omitted. */
pln_status pln_infer_range(pln_infer *call) {
  pln_dtype dtype;
  pln_shape out;
  if (!pln_arg_absent(call, 2))
    return pln_infer_arange(call);
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 0, 1));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 0, 1));
  pln_shape_ranked(&out, 1);
  return pln_result_tensor(call, 0, dtype, &out);
}

pln_status pln_kernel_range(pln_kernel_call *call) {
  const pln_tensor *args[3];
  pln_composition s;
  pln_composition_begin(&s, call);
  for (uint32_t i = 0; i < 3; i++)
    args[i] = pln_kernel_arg(call, i);
  if (!args[2])
    args[2] = pln_compose_scalar(&s, (pln_dtype)args[0]->dtype, 1);
  return pln_composition_finish(&s,
                                pln_compose_call(&s, PLN_OP_RANGE, 3, args));
}

/* Results: the elements, where each is among them, and how often. */
pln_status pln_infer_unique_elements(pln_infer *call) {
  pln_shape list, all;
  pln_dim n = PLN_DIM_UNKNOWN;
  PLN_TRY(pln_arg_expect_rank(call, 0, 1));
  pln_shape_ranked(&list, 1);
  pln_shape_ranked(&all, 1);
  if (pln_arg_rank(call, 0) == 1)
    n = pln_arg_dims(call, 0)[0];
  all.dims[0] = n;
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &list));
  PLN_TRY(pln_result_tensor(call, 1, PLN_INT64, &all));
  return pln_result_tensor(call, 2, PLN_INT64, &list);
}

pln_status pln_kernel_unique_elements(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *results[4];
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_compose_int(&s, "sorted", 0);
  pln_compose_results(&s, PLN_OP_UNIQUE, 1, &x, 4, results);
  for (uint32_t i = 0; i < 3; i++)
    pln_composition_set_result(&s, i, results[i ? i + 1 : 0]);
  return pln_composition_end(&s);
}

/* (table, indices, padding, scaling): the last two matter for gradients
 * only. */
pln_status pln_infer_torch_embedding(pln_infer *call) {
  pln_shape table, index, out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  pln_arg_shape(call, 0, &table);
  pln_arg_shape(call, 1, &index);
  pln_shape_unknown(&out);
  if (index.rank >= 0 && index.rank < PLN_MAX_RANK) {
    pln_shape_ranked(&out, index.rank + 1);
    memcpy(out.dims, index.dims, (size_t)index.rank * sizeof *out.dims);
    if (table.rank == 2)
      out.dims[index.rank] = table.dims[1];
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_kernel_torch_embedding(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return pln_composition_finish(
      &s, pln_compose_binary(&s, PLN_OP_GATHER, pln_kernel_arg(call, 0),
                             pln_kernel_arg(call, 1)));
}

/* ------------------------------------------------------------------- images */

/* (x, weights, pads, bias). Space is known only with the values of pads. */
pln_status pln_infer_conv_transpose_dynamic(pln_infer *call) {
  int64_t group = pln_call_int(call, "group", 1);
  pln_dtype dtype = pln_arg_dtype(call, 0);
  pln_shape x, w, out;
  if (group < 1)
    return pln_call_error(call, "group must be positive");
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &w);
  pln_shape_ranked(&out, x.rank);
  if (x.rank < 0)
    return pln_result_tensor(call, 0, dtype, &out);
  PLN_TRY(pln_arg_expect_rank(call, 1, x.rank));
  out.dims[0] = x.dims[0];
  if (w.rank >= 0) {
    PLN_TRY(pln_infer_same_dim(call, 0, &x.dims[1], w.dims[0]));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, w.dims[1], group, &out.dims[1]));
  }
  return pln_result_tensor(call, 0, dtype, &out);
}

/* Sets the values of operand `arg` as an attribute of the next call. */
static void compose_list(pln_composition *s, const char *name, uint32_t arg) {
  const pln_tensor *t = pln_kernel_arg(s->call, arg);
  int64_t ints[2 * PLN_MAX_RANK];
  if (!t)
    return;
  if (t->count > PLN_COUNT(ints)) {
    pln_composition_refuse(s, "a list is too long");
    return;
  }
  for (size_t i = 0; i < t->count; i++)
    if (!pln_tensor_int(t, i, &ints[i]))
      pln_composition_refuse(s, "a list is not of integers");
  if (s->status == PLN_OK)
    pln_compose_ints(s, name, (uint32_t)t->count, ints);
}

pln_status pln_kernel_conv_transpose_dynamic(pln_kernel_call *call) {
  static const char *const names[] = {"auto_pad",       "dilations",
                                      "group",          "kernel_shape",
                                      "output_padding", "strides"};
  const pln_tensor *args[3] = {pln_kernel_arg(call, 0), pln_kernel_arg(call, 1),
                               pln_kernel_arg(call, 3)};
  const pln_tensor *pads = pln_kernel_arg(call, 2);
  pln_composition s;
  if (pads && (args[0]->rank < 3 || pads->count != 2 * (args[0]->rank - 2u)))
    return pln_kernel_refuse(call, "the pads do not match operand 0");
  pln_composition_begin(&s, call);
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    pln_compose_forward(&s, names[i]);
  compose_list(&s, "pads", 2);
  return pln_composition_finish(
      &s, pln_compose_call(&s, PLN_OP_CONV_TRANSPOSE, 3, args));
}

/* (images, boxes, image of each box, size) */
pln_status pln_infer_crop_and_resize_to(pln_infer *call) {
  pln_list size = pln_arg_list(call, 3, NULL);
  pln_shape x, out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  PLN_TRY(pln_arg_expect_rank(call, 2, 1));
  PLN_TRY(pln_arg_expect_rank(call, 3, 1));
  if (size.sized && size.count != 2)
    return pln_arg_error(call, 3, "expected 2 elements, got %u", size.count);
  pln_arg_shape(call, 0, &x);
  pln_shape_ranked(&out, 4);
  if (pln_arg_rank(call, 1) == 2)
    out.dims[0] = pln_arg_dims(call, 1)[0];
  if (x.rank == 4)
    out.dims[1] = x.dims[1];
  for (uint32_t i = 0; size.sized && i < 2; i++)
    out.dims[2 + i] = pln_list_at(&size, i);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_kernel_crop_and_resize_to(pln_kernel_call *call) {
  bool nearest = pln_kernel_string_is(call, "mode", "bilinear", "nearest");
  const pln_tensor *args[3];
  pln_composition s;
  if (!nearest && !pln_kernel_string_is(call, "mode", "bilinear", "bilinear"))
    return pln_kernel_refuse(call, "mode is neither bilinear nor nearest");
  for (uint32_t i = 0; i < 3; i++)
    args[i] = pln_kernel_arg(call, i);
  pln_composition_begin(&s, call);
  compose_list(&s, "crop_size", 3);
  pln_compose_string(&s, "layout", "NCHW");
  pln_compose_string(&s, "method", nearest ? "nearest_neighbor" : "bilinear");
  pln_compose_forward(&s, "extrapolation_value");
  return pln_composition_finish(
      &s, pln_compose_call(&s, PLN_OP_CROP_AND_RESIZE, 3, args));
}

/* ----------------------------------------------------------------- integers */

pln_status pln_infer_matmul_integer_16(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_product_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, PLN_INT32, &shape);
}

static const pln_tensor *widened(pln_composition *s, uint32_t arg) {
  return pln_compose_cast(s, pln_kernel_arg(s->call, arg), PLN_INT32);
}

pln_status pln_kernel_matmul_integer_16(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return pln_composition_finish(
      &s,
      pln_compose_binary(&s, PLN_OP_MAT_MUL, widened(&s, 0), widened(&s, 1)));
}

/* (a, zero of a, b, zero of b) */
pln_status pln_infer_mul_integer(pln_infer *call) {
  pln_shape a, b;
  if (pln_arg_absent(call, 2))
    return pln_arg_error(call, 2, "is missing");
  pln_arg_shape(call, 0, &a);
  pln_arg_shape(call, 2, &b);
  PLN_TRY(pln_infer_broadcast_shape(call, 2, &a, &b));
  return pln_result_tensor(call, 0, PLN_INT32, &a);
}

/* Operand `arg` less the zero point behind it. */
static const pln_tensor *difference(pln_composition *s, uint32_t arg) {
  const pln_tensor *x = widened(s, arg);
  return pln_kernel_arg(s->call, arg + 1)
             ? pln_compose_binary(s, PLN_OP_SUB, x, widened(s, arg + 1))
             : x;
}

pln_status pln_kernel_mul_integer(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *a = difference(&s, 0), *b = difference(&s, 2);
  return pln_composition_finish(&s, pln_compose_binary(&s, PLN_OP_MUL, a, b));
}

pln_status pln_kernel_reduce_sum_integer(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = widened(&s, 0);
  pln_compose_forward(&s, "axes");
  pln_compose_forward(&s, "keepdims");
  return pln_composition_finish(&s,
                                pln_compose_unary(&s, PLN_OP_REDUCE_SUM, x));
}
