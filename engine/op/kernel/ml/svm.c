/* svm.c: svm_classifier and svm_regressor of ai.onnx.ml. Called through
 * ops.def.
 *
 * A classifier of several classes has a decision function for each pair of
 * them; a positive one is a vote for the first. With prob_a and prob_b,
 * decisions become probabilities by sigmoids, and those of pairs are coupled
 * (T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability Estimates for Multi-class
 * Classification by Pairwise Coupling", 2004, the second method). Without
 * support vectors, each class has a linear function.
 *
 * Semantics: ONNX Runtime's kernels. Votes decide the class, also where there
 * are probabilities; scores are those of pairs where there are none. */

#include <math.h>

#include "op/kernel/ml/scores.h"

typedef enum svm_kernel { LINEAR, POLY, RBF, SIGMOID } svm_kernel;

typedef struct svm {
  pln_composition s;
  pln_ml_rows x;
  svm_kernel kernel;
  float gamma, coef0, degree;
  pln_ml_list coefficients, vectors, rho, a, b, sizes;
  size_t n_vectors, classes;
  float *products;                /* of a row with each support vector */
  float *scores, *pairs, *couple; /* scratch of a row */
} svm;

/* ------------------------------------------------------------------- reading
 */

static bool read_svm_kernel(svm *m) {
  static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  pln_ml_list p = pln_ml_floats(&m->s, "kernel_params");
  pln_slice name = pln_attrs_string(m->s.call->engine, m->s.call->attrs,
                                    "kernel_type", "LINEAR");
  size_t i = 0;
  while (i < PLN_COUNT(names) && !pln_slice_is(name, names[i]))
    i++;
  m->kernel = (svm_kernel)i;
  if (i == PLN_COUNT(names) || (p.count && p.count != 3))
    m->s.status = pln_kernel_refuse(
        m->s.call, "kernel_type '%.*s' with %zu kernel_params is not known",
        (int)(name.size < 64 ? name.size : 64), name.data, p.count);
  if (m->s.status != PLN_OK || !p.count)
    return m->s.status == PLN_OK;
  m->gamma = (float)p.floats[0];
  m->coef0 = (float)p.floats[1];
  m->degree = (float)p.floats[2];
  return true;
}

static bool begin(svm *m, pln_kernel_call *call) {
  *m = (svm){.s = {0}};
  pln_composition_begin(&m->s, call);
  m->coefficients = pln_ml_floats(&m->s, "coefficients");
  m->vectors = pln_ml_floats(&m->s, "support_vectors");
  m->rho = pln_ml_floats(&m->s, "rho");
  m->a = pln_ml_floats(&m->s, "prob_a");
  m->b = pln_ml_floats(&m->s, "prob_b");
  m->sizes = pln_ml_ints(call, "vectors_per_class");
  return read_svm_kernel(m) && pln_ml_read_rows(&m->s, PLN_FLOAT32, &m->x);
}

static float *new_floats(svm *m, size_t n) {
  int64_t dims[1] = {(int64_t)n};
  pln_tensor *t = NULL;
  if (m->s.status == PLN_OK)
    m->s.status = pln_tensor_new(m->s.call->engine, PLN_FLOAT32, 1, dims, &t);
  return pln_compose_own(&m->s, t) ? pln_tensor_writable(t) : NULL;
}

static void refuse_counts(svm *m) {
  if (m->s.status == PLN_OK)
    m->s.status = pln_kernel_refuse(
        m->s.call,
        "%zu coefficients, %zu elements of support_vectors and %zu of rho do "
        "not match %lld columns",
        m->coefficients.count, m->vectors.count, m->rho.count,
        (long long)m->x.columns);
}

/* ------------------------------------------------------------------- kernels
 */

static float square_distance(const float *x, const double *v, size_t n) {
  float sum = 0;
  for (size_t i = 0; i < n; i++) {
    float d = x[i] - (float)v[i];
    sum += d * d;
  }
  return sum;
}

static float dot_product(const float *x, const double *v, size_t n) {
  float sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += x[i] * (float)v[i];
  return sum;
}

static float apply_kernel(const svm *m, const float *x, const double *v) {
  size_t n = (size_t)m->x.columns;
  switch (m->kernel) {
  case LINEAR: return dot_product(x, v, n);
  case POLY: return powf(m->gamma * dot_product(x, v, n) + m->coef0, m->degree);
  case RBF: return expf(-m->gamma * square_distance(x, v, n));
  case SIGMOID: return tanhf(m->gamma * dot_product(x, v, n) + m->coef0);
  }
  return 0;
}

static const float *row_of(const svm *m, int64_t row) {
  return (const float *)m->x.tensor->data + row * m->x.columns;
}

static void compute_products(const svm *m, int64_t row) {
  for (size_t i = 0; i < m->n_vectors; i++)
    m->products[i] = apply_kernel(m, row_of(m, row),
                                  m->vectors.floats + i * (size_t)m->x.columns);
}

/* ----------------------------------------------------------------- regressor
 */

static float regress_row(const svm *m, int64_t row) {
  double sum = 0;
  if (m->n_vectors == 0)
    return dot_product(row_of(m, row), m->coefficients.floats,
                       (size_t)m->x.columns) +
           (float)m->rho.floats[0];
  compute_products(m, row);
  for (size_t i = 0; i < m->n_vectors; i++)
    sum += (double)(m->products[i] * (float)m->coefficients.floats[i]);
  return (float)(sum + m->rho.floats[0]);
}

static bool check_regressor(svm *m) {
  int64_t supports = pln_kernel_int(m->s.call, "n_supports", 0);
  m->n_vectors = supports > 0 ? (size_t)supports : 0;
  size_t columns = (size_t)m->x.columns;
  size_t wanted = m->n_vectors ? m->n_vectors : columns;
  if (m->coefficients.count != wanted || m->rho.count < 1 || columns == 0 ||
      (m->n_vectors && (m->vectors.count / columns != m->n_vectors ||
                        m->vectors.count % columns)))
    refuse_counts(m);
  m->products = new_floats(m, m->n_vectors);
  return m->s.status == PLN_OK;
}

pln_status pln_kernel_svm_regressor(pln_kernel_call *call) {
  bool one_class = pln_kernel_int(call, "one_class", 0) != 0;
  size_t done = 0;
  void *data;
  svm m;
  if (!begin(&m, call) || !check_regressor(&m))
    return pln_composition_end(&m.s);
  int64_t dims[2] = {m.x.rows, 1};
  m.s.status = pln_kernel_unset(call, 0, PLN_FLOAT32, 2, dims, &data);
  for (int64_t i = 0; m.s.status == PLN_OK && i < m.x.rows; i++) {
    float y = regress_row(&m, i);
    ((float *)data)[i] = !one_class ? y : y > 0 ? 1 : -1;
    m.s.status = pln_poll_after(call->engine, &done, m.vectors.count + 1);
  }
  return pln_composition_end(&m.s);
}

/* ------------------------------------------------------------- probabilities
 */

static float sigmoid_of_decision(float score, float a, float b) {
  float x = score * a + b;
  float y = x >= 0 ? expf(-x) / (1 + expf(-x)) : 1 / (1 + expf(x));
  return fminf(fmaxf(y, 1e-7f), 1 - 1e-7f);
}

/* Q of the quadratic problem whose minimum are the coupled probabilities, from
 * those of pairs. */
static void set_quadratic(const float *pairs, float *q, size_t n) {
  for (size_t t = 0; t < n; t++) {
    q[t * n + t] = 0;
    for (size_t k = 0; k < n; k++) {
      if (k == t)
        continue;
      q[t * n + t] += pairs[k * n + t] * pairs[k * n + t];
      q[t * n + k] = -pairs[k * n + t] * pairs[t * n + k];
    }
  }
}

/* One sweep over the probabilities p, with qp = Q p and pqp = p Q p. */
static void improve(const float *q, float *p, float *qp, float pqp, size_t n) {
  for (size_t t = 0; t < n; t++) {
    float diff = (-qp[t] + pqp) / q[t * n + t];
    p[t] += diff;
    pqp = (pqp + diff * (diff * q[t * n + t] + 2 * qp[t])) / (1 + diff) /
          (1 + diff);
    for (size_t k = 0; k < n; k++) {
      p[k] /= 1 + diff;
      qp[k] = (qp[k] + diff * q[t * n + k]) / (1 + diff);
    }
  }
}

static void couple_pairs(const float *pairs, float *q, float *qp, float *p,
                         size_t n) {
  enum { SWEEPS = 100 };
  set_quadratic(pairs, q, n);
  for (size_t t = 0; t < n; t++)
    p[t] = 1 / (float)n;
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    float pqp = 0, error = 0;
    for (size_t t = 0; t < n; t++) {
      qp[t] = 0;
      for (size_t k = 0; k < n; k++)
        qp[t] += q[t * n + k] * p[k];
      pqp += p[t] * qp[t];
    }
    for (size_t t = 0; t < n; t++)
      error = fmaxf(error, fabsf(qp[t] - pqp));
    if (error < 0.005f / (float)n)
      break;
    improve(q, p, qp, pqp, n);
  }
}

/* Replaces the decisions of pairs by probabilities of classes. */
static void estimate_probabilities(const svm *m) {
  size_t n = m->classes, at = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t k = i + 1; k < n; k++, at++) {
      float p = sigmoid_of_decision(m->scores[at], (float)m->a.floats[at],
                                    (float)m->b.floats[at]);
      m->pairs[i * n + k] = p;
      m->pairs[k * n + i] = 1 - p;
    }
  couple_pairs(m->pairs, m->couple, m->couple + n * n, m->scores, n);
}

/* ---------------------------------------------------------------- classifier
 */

/* The decision between classes i and k, whose support vectors begin at `bi` and
 * `bk`. */
static float decide(const svm *m, size_t i, size_t k, size_t bi, size_t bk) {
  const double *c = m->coefficients.floats;
  double sum = 0;
  for (size_t v = 0; v < (size_t)m->sizes.ints[i]; v++)
    sum += c[(k - 1) * m->n_vectors + bi + v] * (double)m->products[bi + v];
  for (size_t v = 0; v < (size_t)m->sizes.ints[k]; v++)
    sum += c[i * m->n_vectors + bk + v] * (double)m->products[bk + v];
  return (float)sum;
}

static int64_t argmax(const float *x, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; i++)
    if (x[i] > x[best])
      best = i;
  return (int64_t)best;
}

/* Decisions of all pairs in m->scores; the class with most votes. */
static int64_t vote(const svm *m) {
  size_t n = m->classes, at = 0, bi = 0, bk;
  float *votes = m->couple;
  memset(votes, 0, n * sizeof *votes);
  for (size_t i = 0; i < n; i++) {
    bk = bi + (size_t)m->sizes.ints[i];
    for (size_t k = i + 1; k < n; k++, at++) {
      m->scores[at] = decide(m, i, k, bi, bk) + (float)m->rho.floats[at];
      votes[m->scores[at] > 0 ? i : k]++;
      bk += (size_t)m->sizes.ints[k];
    }
    bi += (size_t)m->sizes.ints[i];
  }
  return argmax(votes, n);
}

/* Sets m->scores; returns the class. */
static int64_t classify_row(const svm *m, int64_t row) {
  size_t columns = (size_t)m->x.columns;
  if (m->n_vectors == 0) {
    for (size_t i = 0; i < m->classes; i++)
      m->scores[i] =
          dot_product(row_of(m, row), m->coefficients.floats + i * columns,
                      columns) +
          (float)m->rho.floats[0];
    return argmax(m->scores, m->classes);
  }
  compute_products(m, row);
  int64_t class = vote(m);
  if (m->a.count)
    estimate_probabilities(m);
  return class;
}

static size_t count_pairs(const svm *m) {
  return m->classes * (m->classes - 1) / 2;
}

/* The scores of a row before a second class is added. */
static size_t count_scores(const svm *m) {
  return m->n_vectors && !m->a.count ? count_pairs(m) : m->classes;
}

static bool check_vectors(svm *m) {
  size_t columns = (size_t)m->x.columns, pairs = count_pairs(m);
  int64_t sum = 0;
  for (size_t i = 0; i < m->sizes.count; i++)
    if (m->sizes.ints[i] < 0 ||
        __builtin_add_overflow(sum, m->sizes.ints[i], &sum))
      return false;
  m->n_vectors = (size_t)sum;
  if (sum == 0)
    return columns && m->rho.count > 0 &&
           m->coefficients.count / columns == m->classes &&
           m->coefficients.count % columns == 0;
  return columns && m->sizes.count == m->classes && m->rho.count == pairs &&
         m->vectors.count / columns == m->n_vectors &&
         m->vectors.count % columns == 0 && m->classes > 1 &&
         m->coefficients.count / m->n_vectors == m->classes - 1 &&
         m->coefficients.count % m->n_vectors == 0 &&
         (!m->a.count || (m->a.count == pairs && m->b.count == pairs));
}

static bool prepare_classifier(svm *m, const pln_ml_labels *labels) {
  enum { MOST = 1 << 12 };
  m->classes = labels->list.count;
  size_t n = m->classes;
  if (n < 1 || n > MOST || !check_vectors(m))
    refuse_counts(m);
  if (m->s.status != PLN_OK)
    return false;
  m->products = new_floats(m, m->n_vectors);
  m->scores = new_floats(m, count_pairs(m) + n + 2);
  m->pairs = new_floats(m, n * n);
  m->couple = new_floats(m, n * n + n);
  return m->s.status == PLN_OK;
}

static pln_status classify_rows(svm *m, const pln_ml_labels *labels,
                                pln_post_transform post, int64_t *classes) {
  pln_kernel_call *call = m->s.call;
  size_t n = count_scores(m), done = 0;
  int64_t dims[2] = {m->x.rows, n == 1 ? 2 : (int64_t)n};
  bool plain = post == PLN_POST_NONE || post == PLN_POST_LOGISTIC;
  void *data = NULL;
  if (n == 1 && post == PLN_POST_PROBIT)
    return pln_kernel_refuse(call, "PROBIT of one score gives no two classes");
  if (call->n_results > 1)
    PLN_TRY(pln_kernel_unset(call, 1, PLN_FLOAT32, 2, dims, &data));
  for (int64_t i = 0; i < m->x.rows; i++) {
    classes[i] = classify_row(m, i);
    pln_ml_transform_scores(m->scores, n, post,
                            plain ? PLN_SECOND_OPPOSITE
                                  : PLN_SECOND_COMPLEMENT);
    if (data)
      memcpy((float *)data + i * dims[1], m->scores,
             (size_t)dims[1] * sizeof(float));
    PLN_TRY(pln_poll_after(call->engine, &done, m->vectors.count + 1));
  }
  return pln_ml_write_labels(call, labels, m->x.rows, classes);
}

pln_status pln_kernel_svm_classifier(pln_kernel_call *call) {
  pln_ml_labels labels = pln_ml_read_labels(call, "classlabels_ints");
  pln_post_transform post;
  pln_tensor *t = NULL;
  svm m;
  PLN_TRY(pln_ml_post_transform(call, &post));
  if (!begin(&m, call) || !prepare_classifier(&m, &labels))
    return pln_composition_end(&m.s);
  m.s.status = pln_tensor_unset(call->engine, PLN_INT64, 1, &m.x.rows, &t);
  if (pln_compose_own(&m.s, t))
    m.s.status = classify_rows(&m, &labels, post, pln_tensor_writable(t));
  return pln_composition_end(&m.s);
}
