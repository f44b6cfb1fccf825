/* feature.c: operators of ai.onnx.ml that prepare features: scaler, normalizer,
 * imputer, binarizer, feature_vectorizer, array_feature_extractor. Called
 * through ops.def.
 *
 *     Scaler<offset=[1, 2], scale=[2]>([[3, 3]])   =>   [[4, 2]]
 *
 * Semantics: ONNX, and ONNX Runtime's kernels where it is silent: Normalizer's
 * MAX is the greatest element and no magnitude, and a row whose norm is 0 stays
 * as it is. */

#include <math.h>

#include "op/kernel/ml/attributes.h"

/* Operand 0 as float32, in its shape; its last axis is that of features. */
static const pln_tensor *read_features(pln_composition *s, size_t *columns) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  *columns = x->rank ? (size_t)x->dims[x->rank - 1] : 1;
  if (x->dtype == PLN_STRING) {
    pln_composition_refuse(s, "the features are no numbers");
    return NULL;
  }
  return pln_compose_cast(s, x, PLN_FLOAT32);
}

/* One number for all columns, or one for each. */
static bool is_per_column(const pln_ml_list *list, size_t columns) {
  return list->count == 1 || list->count == columns;
}

static double column_at(const pln_ml_list *list, size_t i, size_t columns) {
  return list->floats[list->count == 1 ? 0 : i % columns];
}

pln_status pln_kernel_scaler(pln_kernel_call *call) {
  size_t columns;
  void *data;
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_ml_list offset = pln_ml_floats(&s, "offset");
  pln_ml_list scale = pln_ml_floats(&s, "scale");
  const pln_tensor *x = read_features(&s, &columns);
  if (x &&
      (!is_per_column(&offset, columns) || !is_per_column(&scale, columns)))
    s.status = pln_kernel_refuse(call,
                                 "%zu offsets and %zu scales for %zu "
                                 "columns",
                                 offset.count, scale.count, columns);
  if (s.status == PLN_OK)
    s.status = pln_kernel_unset(call, 0, PLN_FLOAT32, x->rank, x->dims, &data);
  for (size_t i = 0; s.status == PLN_OK && i < x->count; i++)
    ((float *)data)[i] =
        (((const float *)x->data)[i] - (float)column_at(&offset, i, columns)) *
        (float)column_at(&scale, i, columns);
  return pln_composition_end(&s);
}

/* ---------------------------------------------------------------- normalizer
 */

static float norm_max(const float *x, size_t n) {
  float most = -INFINITY;
  for (size_t i = 0; i < n; i++)
    most = x[i] > most ? x[i] : most;
  return most;
}

static float norm_l1(const float *x, size_t n) {
  float sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += fabsf(x[i]);
  return sum;
}

static float norm_l2(const float *x, size_t n) {
  float sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += x[i] * x[i];
  return sqrtf(sum);
}

typedef float (*norm_fn)(const float *x, size_t n);

static norm_fn find_norm(const pln_kernel_call *call) {
  if (pln_kernel_string_is(call, "norm", "MAX", "MAX"))
    return norm_max;
  if (pln_kernel_string_is(call, "norm", "MAX", "L1"))
    return norm_l1;
  return pln_kernel_string_is(call, "norm", "MAX", "L2") ? norm_l2 : NULL;
}

pln_status pln_kernel_normalizer(pln_kernel_call *call) {
  const pln_tensor *in = pln_kernel_arg(call, 0);
  norm_fn norm = find_norm(call);
  void *data;
  pln_ml_rows x;
  pln_composition s;
  if (!norm)
    return pln_kernel_refuse(call, "norm is none of MAX, L1 and L2");
  pln_composition_begin(&s, call);
  if (!pln_ml_read_rows(&s, PLN_FLOAT32, &x))
    return pln_composition_end(&s);
  size_t n = (size_t)x.columns;
  s.status = pln_kernel_unset(call, 0, PLN_FLOAT32, in->rank, in->dims, &data);
  for (size_t r = 0; s.status == PLN_OK && r < (size_t)x.rows; r++) {
    const float *row = (const float *)x.tensor->data + r * n;
    float by = norm(row, n), *out = (float *)data + r * n;
    for (size_t i = 0; i < n; i++)
      out[i] = by == 0 ? row[i] : row[i] / by;
  }
  return pln_composition_end(&s);
}

/* ------------------------------------------------------- imputer, binarizer */

static pln_status refuse_values(const pln_kernel_call *call, size_t count,
                                size_t columns) {
  return pln_kernel_refuse(call, "%zu imputed values for %zu columns", count,
                           columns);
}

/* Integers that equal replaced_value_int64 are replaced. */
static pln_status impute_ints(pln_kernel_call *call, size_t columns) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_ml_list values = pln_ml_ints(call, "imputed_value_int64s");
  int64_t old = pln_kernel_int(call, "replaced_value_int64", 0);
  void *data;
  if (!is_per_column(&values, columns))
    return refuse_values(call, values.count, columns);
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT64, x->rank, x->dims, &data));
  for (size_t i = 0; i < x->count; i++) {
    int64_t v = ((const int64_t *)x->data)[i];
    size_t at = values.count == 1 ? 0 : i % columns;
    ((int64_t *)data)[i] = v == old ? values.ints[at] : v;
  }
  return PLN_OK;
}

/* The same for floats; NaN stands for all NaN. */
static pln_status impute_floats(pln_composition *s, size_t columns) {
  pln_kernel_call *call = s->call;
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_ml_list values = pln_ml_floats(s, "imputed_value_floats");
  float old = (float)pln_kernel_float(call, "replaced_value_float", 0);
  void *data;
  PLN_TRY(s->status);
  if (!is_per_column(&values, columns))
    return refuse_values(call, values.count, columns);
  PLN_TRY(pln_kernel_unset(call, 0, PLN_FLOAT32, x->rank, x->dims, &data));
  for (size_t i = 0; i < x->count; i++) {
    float v = ((const float *)x->data)[i];
    bool same = v == old || (v != v && old != old);
    ((float *)data)[i] = same ? (float)column_at(&values, i, columns) : v;
  }
  return PLN_OK;
}

pln_status pln_kernel_imputer(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t columns = x->rank ? (size_t)x->dims[x->rank - 1] : 1;
  pln_composition s;
  if (x->dtype == PLN_INT64)
    return impute_ints(call, columns);
  if (x->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  pln_composition_begin(&s, call);
  s.status = impute_floats(&s, columns);
  return pln_composition_end(&s);
}

pln_status pln_kernel_binarizer(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  double threshold = pln_kernel_float(call, "threshold", 0);
  pln_composition s;
  if (x->dtype == PLN_STRING)
    return pln_kernel_no_dtype(call, PLN_STRING);
  pln_composition_begin(&s, call);
  const pln_tensor *limit =
      pln_compose_scalar(&s, (pln_dtype)x->dtype, threshold);
  const pln_tensor *above = pln_compose_binary(&s, PLN_OP_GREATER, x, limit);
  return pln_composition_finish(
      &s, pln_compose_cast(&s, above, (pln_dtype)x->dtype));
}

/* --------------------------------------------------------- rows of features */

/* Copies the rows of an operand to `width` columns from `at` on; missing
 * columns stay 0. */
static pln_status place_columns(pln_composition *s, uint32_t arg, int64_t rows,
                                size_t width, size_t total, float *out) {
  const pln_tensor *x = pln_kernel_arg(s->call, arg);
  if (!x || x->dtype == PLN_STRING || (rows && x->count % (size_t)rows))
    return pln_kernel_refuse(s->call,
                             "operand %u is not of %lld rows of "
                             "numbers",
                             arg, (long long)rows);
  x = pln_compose_cast(s, x, PLN_FLOAT32);
  PLN_TRY(s->status);
  size_t n = rows ? x->count / (size_t)rows : 0, least = n < width ? n : width;
  for (size_t r = 0; least && r < (size_t)rows; r++)
    memcpy(out + r * total, (const float *)x->data + r * n,
           least * sizeof *out);
  return PLN_OK;
}

pln_status pln_kernel_feature_vectorizer(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_ml_list sizes = pln_ml_ints(call, "inputdimensions");
  int64_t dims[2] = {x->rank > 1 ? x->dims[0] : 1, 0};
  void *data;
  if (sizes.count != call->n_args)
    return pln_kernel_refuse(call, "%zu inputdimensions for %u operands",
                             sizes.count, call->n_args);
  for (size_t i = 0; i < sizes.count; i++)
    if (sizes.ints[i] < 0 ||
        __builtin_add_overflow(dims[1], sizes.ints[i], &dims[1]))
      return pln_kernel_refuse(call, "inputdimensions has %lld",
                               (long long)sizes.ints[i]);
  PLN_TRY(pln_kernel_result(call, 0, PLN_FLOAT32, 2, dims, &data));
  size_t at = 0;
  pln_composition s;
  pln_composition_begin(&s, call);
  for (uint32_t i = 0; i < call->n_args && s.status == PLN_OK; i++) {
    size_t width = (size_t)sizes.ints[i];
    s.status = place_columns(&s, i, dims[0], width, (size_t)dims[1],
                             (float *)data + at);
    at += width;
  }
  return pln_composition_end(&s);
}

/* Negative indices do not count from the end. */
static bool all_within(const pln_tensor *indices, int64_t extent) {
  int64_t at;
  for (size_t i = 0; i < indices->count; i++)
    if (!pln_tensor_int(indices, i, &at) || at < 0 || at >= extent)
      return false;
  return true;
}

/* (x, indices): columns of the last axis. */
pln_status pln_kernel_array_feature_extractor(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  int64_t n[1] = {(int64_t)y->count}, row[2] = {1, n[0]};
  pln_composition s;
  if (x->rank == 0 || !pln_dtype_is_integer((pln_dtype)y->dtype))
    return pln_kernel_refuse(call, "there is no axis of columns, or the "
                                   "indices are no integers");
  if (!all_within(y, x->dims[x->rank - 1]))
    return pln_kernel_index_outside(call, y, 0, x->dims[x->rank - 1]);
  pln_composition_begin(&s, call);
  const pln_tensor *flat = pln_compose_reshape(&s, y, 1, n);
  pln_compose_int(&s, "axis", -1);
  const pln_tensor *out = pln_compose_binary(&s, PLN_OP_GATHER, x, flat);
  return pln_composition_finish(
      &s, x->rank == 1 ? pln_compose_reshape(&s, out, 2, row) : out);
}
