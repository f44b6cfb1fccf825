/* loss.c: nn.nll_loss and nn.softmax_cross_entropy. Called through ops.def.
 *
 * Classes are axis 1 of the scores; labels have the other axes. A label must
 * be a class or the ignored index, else the call is refused. Sums are in
 * double. */

#include <math.h>

#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"

/* ---------------------------------------------------------------- inference */

static pln_status check_labels(pln_infer *call) {
  pln_shape scores, labels;
  pln_arg_shape(call, 0, &scores);
  pln_arg_shape(call, 1, &labels);
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, INT32_MAX));
  PLN_TRY(pln_arg_expect_rank(call, 2, 1));
  if (scores.rank < 0 || labels.rank < 0)
    return PLN_OK;
  PLN_TRY(pln_arg_expect_rank(call, 1, scores.rank - 1));
  for (int32_t i = 0; i < labels.rank; i++)
    PLN_TRY(pln_infer_same_dim(call, 1, &scores.dims[i ? i + 1 : 0],
                               labels.dims[i]));
  return PLN_OK;
}

static pln_status result_loss(pln_infer *call) {
  pln_dtype dtype = pln_arg_dtype(call, 0);
  PLN_TRY(check_labels(call));
  if (pln_call_string_is(call, "reduction", "mean", "none"))
    return pln_result_shaped_like(call, 0, 1, dtype);
  return pln_result_scalar(call, 0, dtype);
}

pln_status pln_infer_nll_loss(pln_infer *call) {
  return result_loss(call);
}

pln_status pln_infer_softmax_cross_entropy(pln_infer *call) {
  PLN_TRY(result_loss(call));
  pln_result_like(call, 1, 0);
  return PLN_OK;
}

/* ------------------------------------------------------------------- labels */

/* The operands, with the scores as outer x classes x inner elements. */
typedef struct loss_call {
  const pln_tensor *labels, *weights; /* no weights: each is 1 */
  size_t outer, classes, inner;
  bool ignores;
  int64_t ignored;
} loss_call;

static pln_status read_problem(const pln_kernel_call *call, loss_call *out) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *t = pln_kernel_arg(call, 1);
  const pln_tensor *w = pln_kernel_arg(call, 2);
  if (!pln_is_float32_or_64(x))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  bool fits = x->rank >= 2 && t->rank == x->rank - 1;
  for (uint32_t i = 0; fits && i < t->rank; i++)
    fits = t->dims[i] == x->dims[i ? i + 1 : 0];
  if (!fits)
    return pln_kernel_refuse(call, "the labels do not match the scores");
  *out = (loss_call){.labels = t,
                     .weights = w,
                     .outer = (size_t)x->dims[0],
                     .classes = (size_t)x->dims[1],
                     .inner = pln_dims_product(x->dims, 2, x->rank),
                     .ignores = pln_attrs_find(call->engine, call->attrs,
                                               "ignore_index") != NULL,
                     .ignored = pln_kernel_int(call, "ignore_index", 0)};
  if (w &&
      (!pln_is_float32_or_64(w) || w->rank != 1 || w->count != out->classes))
    return pln_kernel_refuse(call,
                             "the weights are not one for each of %zu "
                             "classes",
                             out->classes);
  return PLN_OK;
}

/* Reads the class of label `i`; `classes` if it is ignored. */
static pln_status class_at(const pln_kernel_call *call, const loss_call *p,
                           size_t i, size_t *out) {
  int64_t label;
  if (!pln_tensor_int(p->labels, i, &label))
    return pln_kernel_no_dtype(call, (pln_dtype)p->labels->dtype);
  if (p->ignores && label == p->ignored)
    *out = p->classes;
  else if (label < 0 || (uint64_t)label >= p->classes)
    return pln_kernel_refuse(call, "label %lld is outside of [0, %zu)",
                             (long long)label, p->classes);
  else
    *out = (size_t)label;
  return PLN_OK;
}

/* ------------------------------------------------------------------- losses */

/* The sums of weighted losses and of weights; each loss also goes to `each` if
 * given. */
typedef struct loss_total {
  double loss, weight;
  pln_tensor *each;
} loss_total;

/* Adds the loss of one label; `logs` are log-likelihoods. */
static void add_loss(const loss_call *p, const pln_tensor *logs, size_t i,
                     size_t class, loss_total *sum) {
  double weight = 0, loss = 0;
  size_t row = i / p->inner, column = i % p->inner;
  if (class < p->classes) {
    weight = p->weights ? pln_element_at(p->weights, class) : 1;
    loss = -weight *
           pln_element_at(logs, (row * p->classes + class) * p->inner + column);
  }
  sum->loss += loss;
  sum->weight += weight;
  if (sum->each)
    pln_element_set(sum->each, i, loss);
}

static pln_status put_total(pln_kernel_call *call, pln_dtype dtype,
                            const loss_total *sum) {
  bool mean = pln_kernel_string_is(call, "reduction", "mean", "mean");
  void *data;
  if (!mean && !pln_kernel_string_is(call, "reduction", "mean", "sum"))
    return pln_kernel_refuse(call, "reduction is none of mean, sum and none");
  PLN_TRY(pln_kernel_result(call, 0, dtype, 0, NULL, &data));
  pln_element_set(call->results[0], 0,
                  mean ? sum->loss / sum->weight : sum->loss);
  return PLN_OK;
}

/* Reduces log-likelihoods to result 0. */
static pln_status reduce_losses(pln_kernel_call *call, const loss_call *p,
                                const pln_tensor *logs) {
  bool none = pln_kernel_string_is(call, "reduction", "mean", "none");
  const pln_tensor *labels = p->labels;
  loss_total sum = {0};
  void *data;
  if (none) {
    PLN_TRY(pln_kernel_result(call, 0, (pln_dtype)logs->dtype, labels->rank,
                              labels->dims, &data));
    sum.each = call->results[0];
  }
  for (size_t i = 0; i < labels->count; i++) {
    size_t class = 0;
    PLN_TRY(class_at(call, p, i, &class));
    add_loss(p, logs, i, class, &sum);
  }
  return none ? PLN_OK : put_total(call, (pln_dtype)logs->dtype, &sum);
}

static pln_status nll_loss(pln_kernel_call *call) {
  loss_call p;
  PLN_TRY(read_problem(call, &p));
  return reduce_losses(call, &p, pln_kernel_arg(call, 0));
}

pln_status pln_kernel_nll_loss(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", nll_loss);
}

/* ------------------------------------------------- logarithms of likelihoods
 */

/* Computes the logarithm of softmax along the classes. */
#define LOG_SOFTMAX(T, exponential)                                           \
  static void log_row_##T(const T *x, T *out, size_t n, size_t step) {        \
    T top = x[0];                                                             \
    double sum = 0;                                                           \
    for (size_t c = 1; c < n; c++)                                            \
      top = x[c * step] > top ? x[c * step] : top;                            \
    for (size_t c = 0; c < n; c++)                                            \
      sum += (double)exponential(x[c * step] - top);                          \
    sum = log(sum);                                                           \
    for (size_t c = 0; c < n; c++)                                            \
      out[c * step] = (T)((double)(x[c * step] - top) - sum);                 \
  }                                                                           \
  static void log_rows_##T(const loss_call *p, const void *in, void *out) {   \
    for (size_t o = 0; o < p->outer; o++)                                     \
      for (size_t i = 0; i < p->inner; i++) {                                 \
        size_t at = o * p->classes * p->inner + i;                            \
        log_row_##T((const T *)in + at, (T *)out + at, p->classes, p->inner); \
      }                                                                       \
  }
LOG_SOFTMAX(float, expf)
LOG_SOFTMAX(double, exp)

static pln_status cross_entropy(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  loss_call p;
  pln_tensor *logs;
  PLN_TRY(read_problem(call, &p));
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, x->dims,
                           &logs));
  void *out = pln_tensor_writable(logs);
  if (x->count && x->dtype == PLN_FLOAT32)
    log_rows_float(&p, x->data, out);
  else if (x->count)
    log_rows_double(&p, x->data, out);
  pln_status status = reduce_losses(call, &p, logs);
  if (status == PLN_OK && call->n_results > 1)
    call->results[1] = pln_tensor_retain(logs);
  pln_tensor_release(logs);
  return status;
}

pln_status pln_kernel_softmax_cross_entropy(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "00", cross_entropy);
}
