/* scores.c: see scores.h. Semantics: ONNX Runtime's ml_common.h, from which the
 * approximation of the probit and the treatment of a single score come: ONNX
 * defines neither. */

#include "op/kernel/ml/scores.h"

#include <math.h>
#include <stdio.h>

#include "op/kernel/string/builder.h"

pln_status pln_ml_post_transform(const pln_kernel_call *call,
                                 pln_post_transform *out) {
  static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC",
                                      "SOFTMAX_ZERO", "PROBIT"};
  pln_slice name =
      pln_attrs_string(call->engine, call->attrs, "post_transform", "NONE");
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    if (pln_slice_is(name, names[i])) {
      *out = (pln_post_transform)i;
      return PLN_OK;
    }
  return pln_kernel_refuse(call, "post_transform '%.*s' is not known",
                           (int)(name.size < 64 ? name.size : 64), name.data);
}

static float logistic(float x) {
  float y = 1 / (1 + expf(-fabsf(x)));
  return x < 0 ? 1 - y : y;
}

/* Winitzki's approximation of the inverse error function. */
static float inverse_erf(float x) {
  float sign = x < 0 ? -1.0f : 1.0f;
  float l = logf((1 - x) * (1 + x));
  float v = 2 / (3.14159f * 0.147f) + 0.5f * l;
  return sign * sqrtf(sqrtf(v * v - l / 0.147f) - v);
}

static float probit(float x) {
  return 1.41421356f * inverse_erf(2 * x - 1);
}

/* With `zeros`, scores of 0 stay outside of the sum. */
static void softmax(float *scores, size_t n, bool zeros) {
  float most = scores[0], sum = 0;
  for (size_t i = 1; i < n; i++)
    most = scores[i] > most ? scores[i] : most;
  for (size_t i = 0; i < n; i++) {
    if (zeros && fabsf(scores[i]) <= 0.0000001f) {
      scores[i] *= expf(-most);
      continue;
    }
    scores[i] = expf(scores[i] - most);
    sum += scores[i];
  }
  for (size_t i = 0; i < n; i++)
    scores[i] /= sum;
}

static size_t add_second(float *scores, pln_post_transform post,
                         pln_second_class second) {
  float x = scores[0];
  switch (second) {
  case PLN_SECOND_NONE: return 1;
  case PLN_SECOND_COMPLEMENT:
    scores[0] = 1 - x;
    scores[1] = x;
    return 2;
  case PLN_SECOND_OPPOSITE:
    scores[0] = post == PLN_POST_LOGISTIC ? logistic(-x) : -x;
    scores[1] = post == PLN_POST_LOGISTIC ? logistic(x) : x;
    return 2;
  }
  return 1;
}

size_t pln_ml_transform_scores(float *scores, size_t n, pln_post_transform post,
                               pln_second_class second) {
  if (n == 1 && post != PLN_POST_PROBIT)
    return add_second(scores, post, second);
  switch (post) {
  case PLN_POST_NONE: break;
  case PLN_POST_SOFTMAX: softmax(scores, n, false); break;
  case PLN_POST_SOFTMAX_ZERO: softmax(scores, n, true); break;
  case PLN_POST_LOGISTIC:
    for (size_t i = 0; i < n; i++)
      scores[i] = logistic(scores[i]);
    break;
  case PLN_POST_PROBIT:
    for (size_t i = 0; i < n; i++)
      scores[i] = probit(scores[i]);
    break;
  }
  return n;
}

/* ------------------------------------------------------------------- labels
 */

pln_ml_labels pln_ml_read_labels(const pln_kernel_call *call,
                                 const char *ints) {
  pln_ml_labels labels = {pln_ml_strings(call, "classlabels_strings"), true};
  if (labels.list.count == 0)
    labels = (pln_ml_labels){pln_ml_ints(call, ints), false};
  return labels;
}

static pln_status write_texts(pln_kernel_call *call,
                              const pln_ml_labels *labels, int64_t rows,
                              const int64_t *classes) {
  pln_string_builder b;
  PLN_TRY(pln_string_builder_begin(call->engine, (size_t)rows, &b));
  pln_status status = PLN_OK;
  for (int64_t i = 0; i < rows && status == PLN_OK; i++) {
    char number[24];
    pln_slice text = {number, 0};
    if (classes[i] >= 0 && (size_t)classes[i] < labels->list.count)
      text = labels->list.strings[classes[i]];
    else
      text.size = (size_t)snprintf(number, sizeof number, "%lld",
                                   (long long)classes[i]);
    status = pln_string_builder_add(&b, text.data, text.size);
    pln_string_builder_next(&b);
  }
  if (status == PLN_OK)
    status = pln_string_builder_result(&b, call, 1, &rows);
  pln_string_builder_end(&b);
  return status;
}

pln_status pln_ml_write_labels(pln_kernel_call *call,
                               const pln_ml_labels *labels, int64_t rows,
                               const int64_t *classes) {
  void *data;
  if (labels->texts)
    return write_texts(call, labels, rows, classes);
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT64, 1, &rows, &data));
  for (int64_t i = 0; i < rows; i++) {
    bool named = classes[i] >= 0 && (size_t)classes[i] < labels->list.count;
    ((int64_t *)data)[i] = named ? labels->list.ints[classes[i]] : classes[i];
  }
  return PLN_OK;
}
