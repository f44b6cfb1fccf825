/* attention.c: type inference of attention and flex_attention. Called through
 * ops.def; the kernels are in kernel/attention/. */

#include "op/infer/attention.h"
#include "ir/graph/describe.h"
#include "ir/infer/apply.h"

/* Query, key or value as (batch, heads, steps, size), from that form or from
 * (batch, steps, heads * size). */
static pln_status infer_attention_heads(const pln_infer *call, uint32_t arg,
                                        const char *heads, pln_shape *out) {
  pln_shape x;
  int64_t n = pln_call_int(call, heads, 0);
  PLN_TRY(pln_arg_expect_rank_within(call, arg, 3, 4));
  pln_arg_shape(call, arg, &x);
  pln_shape_ranked(out, 4);
  if (x.rank == 4)
    *out = x;
  if (x.rank != 3)
    return PLN_OK;
  out->dims[0] = x.dims[0];
  out->dims[2] = x.dims[1];
  if (n < 1)
    return PLN_OK;
  out->dims[1] = n;
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, x.dims[2], n, &out->dims[3]);
}

/* Keys or values with the past ones prepended. */
static pln_status with_past(const pln_infer *call, uint32_t arg,
                            pln_shape *now) {
  if (pln_arg_absent(call, arg))
    return PLN_OK;
  pln_shape past;
  pln_arg_shape(call, arg, &past);
  pln_dim steps = past.rank == 4 ? past.dims[2] : (pln_dim)PLN_DIM_UNKNOWN;
  return pln_infer_dim(call, PLN_DIM_ADD, steps, now->dims[2], &now->dims[2]);
}

/* Operands: query, key, value, mask, past key, past value. Results: output,
 * present key, present value, the product of query and key. */
pln_status pln_infer_attention(pln_infer *call) {
  pln_shape q, k, v;
  pln_dtype dtype = pln_arg_dtype(call, 0);
  PLN_TRY(infer_attention_heads(call, 0, "q_num_heads", &q));
  PLN_TRY(infer_attention_heads(call, 1, "kv_num_heads", &k));
  PLN_TRY(infer_attention_heads(call, 2, "kv_num_heads", &v));
  PLN_TRY(with_past(call, 4, &k));
  PLN_TRY(with_past(call, 5, &v));
  pln_shape out = {4, {q.dims[0], q.dims[1], q.dims[2], v.dims[3]}};
  pln_shape scores = {4, {q.dims[0], q.dims[1], q.dims[2], k.dims[2]}};
  if (pln_arg_rank(call, 0) == 3) {
    out = (pln_shape){3, {q.dims[0], q.dims[2], 0}};
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_MUL, q.dims[1], v.dims[3], &out.dims[2]));
  } else if (pln_arg_rank(call, 0) < 0) {
    pln_shape_unknown(&out);
  }
  PLN_TRY(pln_result_tensor(call, 0, dtype, &out));
  PLN_TRY(pln_result_tensor(call, 1, pln_arg_dtype(call, 1), &k));
  PLN_TRY(pln_result_tensor(call, 2, pln_arg_dtype(call, 2), &v));
  return pln_result_tensor(call, 3, dtype, &scores);
}

/* ----------------------------------------------------------- flex_attention */

pln_dtype pln_flex_attention_precision(pln_dtype dtype, int64_t given) {
  switch (given) {
  case PLN_FLOAT16:
  case PLN_BFLOAT16:
  case PLN_FLOAT32:
  case PLN_FLOAT64: return (pln_dtype)given;
  case 0: return dtype == PLN_FLOAT64 ? PLN_FLOAT64 : PLN_FLOAT32;
  default: return PLN_DTYPE_NONE;
  }
}

/* The dtype of the operands; PLN_DTYPE_NONE: unknown. */
static pln_status flex_dtype(const pln_infer *call, pln_dtype *out) {
  PLN_TRY(pln_args_one_dtype(call, 0, 3, out));
  if (*out && pln_flex_attention_precision(PLN_FLOAT32, *out) != *out)
    return pln_arg_error(
        call, 0, "expected float16, bfloat16, float32 or float64, got %s",
        pln_dtype_name(*out));
  return PLN_OK;
}

/* The dtype of scores and weights; PLN_DTYPE_NONE: unknown. */
static pln_status flex_precision(const pln_infer *call, pln_dtype dtype,
                                 pln_dtype *out) {
  bool has = pln_call_has(call, "softmax_precision");
  int64_t given = pln_call_int(call, "softmax_precision", 0);
  *out = has || dtype ? pln_flex_attention_precision(dtype, given)
                      : PLN_DTYPE_NONE;
  if (has && (given == 0 || !*out))
    return pln_call_error(call,
                          "softmax_precision %lld is none of float32 (1), "
                          "float16 (10), float64 (11) and bfloat16 (16)",
                          (long long)given);
  return PLN_OK;
}

/* Merges dim `k` of operand `arg` into *dim. */
static pln_status merge_dim(const pln_infer *call, uint32_t arg, uint32_t k,
                            pln_dim *dim) {
  if (pln_arg_rank(call, arg) != 4)
    return PLN_OK;
  return pln_infer_same_dim(call, arg, dim, pln_arg_dims(call, arg)[k]);
}

static pln_status check_groups(const pln_infer *call, pln_dim queries,
                               pln_dim keys) {
  if (!PLN_DIM_IS_CONST(queries) || !PLN_DIM_IS_CONST(keys) || queries == keys)
    return PLN_OK;
  if (keys > 0 && queries % keys == 0)
    return PLN_OK;
  return pln_call_error(call,
                        "the %lld heads of the query are not a multiple of the "
                        "%lld heads of key and value",
                        (long long)queries, (long long)keys);
}

/* The shapes of the scores and of the result. */
static pln_status flex_shapes(const pln_infer *call, pln_shape *scores,
                              pln_shape *out) {
  pln_dim batch = PLN_DIM_UNKNOWN, heads = batch, steps = batch, size = batch,
          groups = batch, keys = batch, width = batch;
  for (uint32_t i = 0; i < 3; i++) {
    PLN_TRY(pln_arg_expect_rank(call, i, 4));
    PLN_TRY(merge_dim(call, i, 0, &batch));
    PLN_TRY(merge_dim(call, i, 1, i ? &groups : &heads));
    PLN_TRY(merge_dim(call, i, 2, i ? &keys : &steps));
    PLN_TRY(merge_dim(call, i, 3, i == 2 ? &width : &size));
  }
  *scores = (pln_shape){4, {batch, heads, steps, keys}};
  *out = (pln_shape){4, {batch, heads, steps, width}};
  return check_groups(call, heads, groups);
}

static pln_status refuse_function(const pln_infer *call, const char *name,
                                  uint32_t arg, const char *does, pln_type got,
                                  pln_type expected) {
  pln_description is, wanted;
  return pln_arg_error(call, arg, "%s %s %s, expected %s", name, does,
                       pln_describe_type(call->engine, got, &is),
                       pln_describe_type(call->engine, expected, &wanted));
}

/* Operand `arg` must be a function from the scores' type to the same. */
static pln_status check_function(const pln_infer *call, const char *name,
                                 uint32_t arg, pln_type scores) {
  pln_engine *e = call->engine;
  pln_type f = pln_arg_type(call, arg), both;
  bool fits = true;
  if (!f)
    return PLN_OK;
  if (pln_type_get_kind(e, f) != PLN_TYPE_FUNC)
    return pln_arg_error(call, arg, "%s is not a function", name);
  if (pln_type_n_parts(e, f) != 2)
    return pln_arg_error(call, arg, "%s takes %u arguments, expected 1", name,
                         pln_type_n_parts(e, f) - 1);
  for (uint32_t i = 0; i < 2; i++) {
    pln_type part = pln_type_part_at(e, f, i);
    if (part && scores)
      PLN_TRY(pln_type_unify(e, part, scores, &both, &fits));
    if (!fits)
      return refuse_function(call, name, arg, i ? "returns" : "takes", part,
                             scores);
  }
  return PLN_OK;
}

/* *named gets a bit for the operand that the attribute names. */
static pln_status check_function_attr(pln_infer *call, const char *name,
                                      pln_type scores, uint32_t *named) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  if (!a)
    return PLN_OK;
  if (a->kind != PLN_ATTR_GRAPH || a->v.i < 3 || a->v.i >= call->n_args)
    return pln_call_error(call, "%s is none of the operands behind the value",
                          name);
  *named |= 1u << a->v.i;
  const pln_type parts[2] = {scores, scores};
  PLN_TRY(check_function(call, name, (uint32_t)a->v.i, scores));
  return pln_set_operand_func(call, (uint32_t)a->v.i, 1, parts);
}

/* Operands: query, key, value, and the functions that the attributes name. */
pln_status pln_infer_flex_attention(pln_infer *call) {
  pln_shape scores, out;
  pln_dtype dtype, precision;
  pln_type type = 0;
  uint32_t named = 0;
  PLN_TRY(flex_dtype(call, &dtype));
  PLN_TRY(flex_precision(call, dtype, &precision));
  PLN_TRY(flex_shapes(call, &scores, &out));
  if (precision)
    PLN_TRY(pln_type_tensor(call->engine, precision, scores.rank, scores.dims,
                            &type));
  PLN_TRY(check_function_attr(call, "score_mod", type, &named));
  PLN_TRY(check_function_attr(call, "prob_mod", type, &named));
  for (uint32_t i = 3; i < call->n_args; i++)
    if (!(named >> i & 1) && !pln_arg_absent(call, i))
      return pln_arg_error(call, i, "it is neither score_mod nor prob_mod");
  return pln_result_tensor(call, 0, dtype, &out);
}
