/* linear.c: linear_classifier and linear_regressor of ai.onnx.ml. Called
 * through ops.def.
 *
 *     scores = x coefficients^T + intercepts
 *
 * Of a single score, a positive one is the second class. Semantics: ONNX
 * Runtime's kernels. */

#include "op/kernel/ml/scores.h"

/* The scores, (rows, n); `n` is a number of intercepts or targets. */
static const pln_tensor *linear_scores(pln_composition *s, const pln_ml_rows *x,
                                       size_t n) {
  pln_ml_list coefficients = pln_ml_floats(s, "coefficients");
  pln_ml_list intercepts = pln_ml_floats(s, "intercepts");
  int64_t dims[2] = {(int64_t)n, x->columns}, rows[2] = {x->rows, x->columns};
  pln_tensor *w = NULL, *c = NULL;
  if (s->status != PLN_OK)
    return NULL;
  if (n == 0 || coefficients.count / n != (size_t)x->columns ||
      coefficients.count % n || (intercepts.count && intercepts.count != n)) {
    s->status = pln_kernel_refuse(
        s->call, "%zu coefficients and %zu intercepts for %lld columns",
        coefficients.count, intercepts.count, (long long)x->columns);
    return NULL;
  }
  s->status = pln_tensor_new(s->call->engine, PLN_FLOAT32, 2, dims, &w);
  const pln_tensor *weights = pln_compose_own(s, w);
  if (s->status == PLN_OK)
    s->status = pln_tensor_new(s->call->engine, PLN_FLOAT32, 1, dims, &c);
  const pln_tensor *offsets = pln_compose_own(s, c);
  for (size_t i = 0; offsets && i < coefficients.count; i++)
    ((float *)pln_tensor_writable(w))[i] = (float)coefficients.floats[i];
  for (size_t i = 0; offsets && i < intercepts.count; i++)
    ((float *)pln_tensor_writable(c))[i] = (float)intercepts.floats[i];
  const pln_tensor *args[3] = {pln_compose_reshape(s, x->tensor, 2, rows),
                               weights, offsets};
  pln_compose_int(s, "transB", 1);
  return pln_compose_call(s, PLN_OP_GEMM, 3, args);
}

/* ---------------------------------------------------------------- regressor */

pln_status pln_kernel_linear_regressor(pln_kernel_call *call) {
  int64_t targets = pln_kernel_int(call, "targets", 1);
  pln_post_transform post;
  pln_ml_rows x;
  pln_composition s;
  PLN_TRY(pln_ml_post_transform(call, &post));
  pln_composition_begin(&s, call);
  if (!pln_ml_read_rows(&s, PLN_FLOAT32, &x))
    return pln_composition_end(&s);
  const pln_tensor *scores =
      linear_scores(&s, &x, targets > 0 ? (size_t)targets : 0);
  int64_t dims[2] = {x.rows, targets};
  void *data;
  if (!scores)
    return pln_composition_end(&s);
  s.status = pln_kernel_unset(call, 0, PLN_FLOAT32, 2, dims, &data);
  if (s.status == PLN_OK && scores->count)
    memcpy(data, scores->data, scores->count * sizeof(float));
  for (int64_t i = 0; s.status == PLN_OK && i < x.rows; i++)
    pln_ml_transform_scores((float *)data + i * targets, (size_t)targets, post,
                            PLN_SECOND_NONE);
  return pln_composition_end(&s);
}

/* --------------------------------------------------------------- classifier */

/* The class of a row: the greatest score, the first of equal ones; of a single
 * score its sign. */
static int64_t choose_class(const float *scores, size_t n) {
  size_t best = 0;
  if (n == 1)
    return scores[0] > 0;
  for (size_t i = 1; i < n; i++)
    if (scores[i] > scores[best])
      best = i;
  return (int64_t)best;
}

static pln_status write_scores(pln_kernel_call *call, const pln_tensor *scores,
                               pln_post_transform post, bool second) {
  int64_t rows = scores->dims[0], n = scores->dims[1];
  int64_t dims[2] = {rows, second ? 2 : n};
  pln_second_class kind = !second                     ? PLN_SECOND_NONE
                          : post == PLN_POST_LOGISTIC ? PLN_SECOND_OPPOSITE
                                                      : PLN_SECOND_COMPLEMENT;
  const float *in = scores->data;
  void *data;
  if (call->n_results < 2)
    return PLN_OK;
  if (second && post == PLN_POST_PROBIT)
    return pln_kernel_refuse(call, "PROBIT of one score gives no two classes");
  PLN_TRY(pln_kernel_unset(call, 1, PLN_FLOAT32, 2, dims, &data));
  for (int64_t i = 0; i < rows; i++) {
    float *out = (float *)data + i * dims[1];
    memcpy(out, in + i * n, (size_t)n * sizeof *out);
    pln_ml_transform_scores(out, (size_t)n, post, kind);
  }
  return PLN_OK;
}

/* Labels and scores of rows of scores. */
static pln_status classify(pln_composition *s, const pln_tensor *scores,
                           pln_post_transform post) {
  pln_kernel_call *call = s->call;
  pln_ml_labels labels = pln_ml_read_labels(call, "classlabels_ints");
  int64_t rows = scores->dims[0], n = scores->dims[1];
  pln_tensor *t = NULL;
  bool second = n == 1 && labels.list.count == 2;
  if (labels.list.count && !second && labels.list.count != (size_t)n)
    return pln_kernel_refuse(call, "%zu labels for %lld scores",
                             labels.list.count, (long long)n);
  PLN_TRY(pln_tensor_unset(call->engine, PLN_INT64, 1, &rows, &t));
  const pln_tensor *kept = pln_compose_own(s, t);
  if (!kept)
    return s->status;
  int64_t *classes = pln_tensor_writable(t);
  for (int64_t i = 0; i < rows; i++)
    classes[i] = choose_class((const float *)scores->data + i * n, (size_t)n);
  PLN_TRY(pln_ml_write_labels(call, &labels, rows, classes));
  return write_scores(call, scores, post, second);
}

pln_status pln_kernel_linear_classifier(pln_kernel_call *call) {
  pln_post_transform post;
  pln_ml_rows x;
  pln_composition s;
  PLN_TRY(pln_ml_post_transform(call, &post));
  pln_composition_begin(&s, call);
  size_t n = pln_ml_floats(&s, "intercepts").count;
  if (n == 0)
    n = pln_ml_read_labels(call, "classlabels_ints").list.count;
  if (!pln_ml_read_rows(&s, PLN_FLOAT32, &x))
    return pln_composition_end(&s);
  const pln_tensor *scores = linear_scores(&s, &x, n);
  if (scores)
    s.status = classify(&s, scores, post);
  return pln_composition_end(&s);
}
