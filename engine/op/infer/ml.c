/* ml.c: type inference of the operators of ai.onnx.ml. Called through
 * ops.def. */

#include "op/infer/infer.h"

/* The length of a list attribute; 0 if missing. */
static uint32_t attr_count(const pln_infer *call, const char *name) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  return a && a->kind >= PLN_ATTR_INTS ? a->count : 0;
}

/* The number of rows of operand 0; a vector is one row. */
static pln_dim row_count(const pln_infer *call) {
  pln_shape x;
  pln_arg_shape(call, 0, &x);
  if (x.rank == 1)
    return 1;
  return x.rank == 2 ? x.dims[0] : (pln_dim)PLN_DIM_UNKNOWN;
}

static pln_status result_matrix(pln_infer *call, uint32_t i, pln_dtype dtype,
                                pln_dim columns) {
  pln_shape shape = {2, {row_count(call), columns}};
  return pln_result_tensor(call, i, dtype, &shape);
}

pln_status pln_infer_float_type(pln_infer *call) {
  return pln_result_shaped_like(call, 0, 0, PLN_FLOAT32);
}

pln_status pln_infer_array_feature_extractor(pln_infer *call) {
  pln_shape x, index;
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &index);
  if (x.rank == 0)
    return pln_arg_error(call, 0, "expected rank 1 or more, got 0");
  if (x.rank == 1)
    x = (pln_shape){2, {1, 0}};
  if (x.rank > 0) {
    pln_dim *last = &x.dims[x.rank - 1];
    *last = PLN_DIM_UNKNOWN;
    if (index.rank >= 0)
      PLN_TRY(pln_infer_product(call, index.dims, 0, index.rank, last));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &x);
}

/* A support vector machine without probabilities scores pairs of classes. */
static bool scores_pairs(const pln_infer *call) {
  return call->op == PLN_OP_SVM_CLASSIFIER &&
         attr_count(call, "vectors_per_class") && !attr_count(call, "prob_a");
}

/* Results: a label and the scores of each row. With two classes some models
 * give only one score. */
pln_status pln_infer_classifier(pln_infer *call) {
  uint32_t texts = attr_count(call, "classlabels_strings");
  uint32_t n = texts + attr_count(call, "classlabels_ints") +
               attr_count(call, "classlabels_int64s");
  pln_shape labels = {1, {row_count(call)}};
  PLN_TRY(pln_result_tensor(call, 0, texts ? PLN_STRING : PLN_INT64, &labels));
  return result_matrix(call, 1, PLN_FLOAT32,
                       n > 2 && !scores_pairs(call) ? (pln_dim)n
                                                    : (pln_dim)PLN_DIM_UNKNOWN);
}

static pln_dim target_count(const pln_infer *call, const char *name) {
  int64_t n = pln_call_int(call, name, 1);
  return n >= 0 ? n : (pln_dim)PLN_DIM_UNKNOWN;
}

pln_status pln_infer_regressor(pln_infer *call) {
  const char *name = pln_call_has(call, "n_targets") ? "n_targets" : "targets";
  return result_matrix(call, 0, PLN_FLOAT32, target_count(call, name));
}

pln_status pln_infer_tree_ensemble(pln_infer *call) {
  return result_matrix(call, 0, pln_arg_dtype(call, 0),
                       target_count(call, "n_targets"));
}

pln_status pln_infer_one_hot_encoder(pln_infer *call) {
  uint32_t n = attr_count(call, "cats_int64s");
  pln_shape x;
  pln_arg_shape(call, 0, &x);
  if (n == 0)
    n = attr_count(call, "cats_strings");
  if (x.rank >= PLN_MAX_RANK)
    pln_shape_unknown(&x);
  if (x.rank >= 0)
    x.dims[x.rank++] = n;
  return pln_result_tensor(call, 0, PLN_FLOAT32, &x);
}

pln_status pln_infer_category_mapper(pln_infer *call) {
  pln_dtype in = pln_arg_dtype(call, 0);
  pln_dtype out = in == PLN_STRING  ? PLN_INT64
                  : in == PLN_INT64 ? PLN_STRING
                                    : (pln_dtype)PLN_DTYPE_NONE;
  return pln_result_shaped_like(call, 0, 0, out);
}

static pln_dtype label_dtype(const pln_infer *call) {
  const pln_attr *a =
      pln_attrs_find(call->engine, call->attrs, "values_tensor");
  if (a && a->kind == PLN_ATTR_TENSOR)
    return pln_tensor_dtype(a->v.tensor);
  if (attr_count(call, "values_floats"))
    return PLN_FLOAT32;
  if (attr_count(call, "values_int64s"))
    return PLN_INT64;
  return attr_count(call, "values_strings") ? PLN_STRING : PLN_DTYPE_NONE;
}

/* Version 1 has one list, which is read both ways. */
pln_status pln_infer_label_encoder(pln_infer *call) {
  if (attr_count(call, "classes_strings"))
    return pln_infer_category_mapper(call);
  return pln_result_shaped_like(call, 0, 0, label_dtype(call));
}

pln_status pln_infer_feature_vectorizer(pln_infer *call) {
  uint32_t n;
  const int64_t *sizes = pln_call_ints(call, "inputdimensions", &n);
  pln_dim columns = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (sizes[i] < 0)
      return pln_call_error(call, "inputdimensions must not be negative");
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, columns, sizes[i], &columns));
  }
  return result_matrix(call, 0, PLN_FLOAT32,
                       n ? columns : (pln_dim)PLN_DIM_UNKNOWN);
}

/* -------------------------------------------------------------------- maps */

/* The dtype of the values of a map. */
static pln_dtype map_values(const pln_infer *call) {
  pln_type type = pln_arg_type(call, 0);
  if (pln_type_get_kind(call->engine, type) != PLN_TYPE_MAP)
    return PLN_DTYPE_NONE;
  return pln_type_dtype(call->engine, pln_type_part_at(call->engine, type, 1));
}

pln_status pln_infer_dict_vectorizer(pln_infer *call) {
  uint32_t n = attr_count(call, "int64_vocabulary") +
               attr_count(call, "string_vocabulary");
  pln_shape shape = {2, {1, n}};
  return pln_result_tensor(call, 0, map_values(call), &shape);
}

pln_status pln_infer_cast_map(pln_infer *call) {
  pln_shape shape = {2, {1, PLN_DIM_UNKNOWN}};
  pln_dtype dtype = PLN_FLOAT32;
  if (pln_call_string_is(call, "cast_to", "TO_FLOAT", "TO_STRING"))
    dtype = PLN_STRING;
  if (pln_call_string_is(call, "cast_to", "TO_FLOAT", "TO_INT64"))
    dtype = PLN_INT64;
  return pln_result_tensor(call, 0, dtype, &shape);
}

pln_status pln_infer_zip_map(pln_infer *call) {
  bool texts = attr_count(call, "classlabels_strings") > 0;
  pln_type parts[2], map;
  if (call->n_results > 1)
    return PLN_OK;
  PLN_TRY(pln_type_tensor(call->engine, texts ? PLN_STRING : PLN_INT64, 0, NULL,
                          &parts[0]));
  PLN_TRY(pln_type_tensor(call->engine, PLN_FLOAT32, 0, NULL, &parts[1]));
  PLN_TRY(pln_type_make(call->engine, PLN_TYPE_MAP, 0, 2, parts, &map));
  return pln_type_make(call->engine, PLN_TYPE_SEQUENCE, 0, 1, &map,
                       &call->results[0]);
}
