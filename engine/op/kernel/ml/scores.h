/* scores.h: what classifiers and regressors of ai.onnx.ml do with scores: post
 * transforms, second classes, labels. */

#ifndef PLN_OP_KERNEL_ML_SCORES_H
#define PLN_OP_KERNEL_ML_SCORES_H

#include "op/kernel/ml/attributes.h"

typedef enum pln_post_transform {
  PLN_POST_NONE,
  PLN_POST_SOFTMAX,
  PLN_POST_LOGISTIC,
  PLN_POST_SOFTMAX_ZERO,
  PLN_POST_PROBIT
} pln_post_transform;

/* What a single score becomes: both classes' scores. */
typedef enum pln_second_class {
  PLN_SECOND_NONE,
  PLN_SECOND_COMPLEMENT, /* 1 - x, x */
  PLN_SECOND_OPPOSITE    /* -x, x, or the logistic function of both */
} pln_second_class;

/* Reads attribute post_transform, a name. */
pln_status pln_ml_post_transform(const pln_kernel_call *call,
                                 pln_post_transform *out) PLN_CHECKED;
/* Transforms n scores in place; of one score, there is room for a second.
 * Returns how many there are then. */
size_t pln_ml_transform_scores(float *scores, size_t n, pln_post_transform post,
                               pln_second_class second);

/* The labels of a classifier: strings, or integers. */
typedef struct pln_ml_labels {
  pln_ml_list list;
  bool texts;
} pln_ml_labels;

/* Reads classlabels_strings, else the integers of attribute `ints`. */
pln_ml_labels pln_ml_read_labels(const pln_kernel_call *call, const char *ints);
/* Makes result 0: the label of each of the classes. A class without label is
 * its number. */
pln_status pln_ml_write_labels(pln_kernel_call *call,
                               const pln_ml_labels *labels, int64_t rows,
                               const int64_t *classes) PLN_CHECKED;

#endif
