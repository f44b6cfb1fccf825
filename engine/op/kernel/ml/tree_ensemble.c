/* tree_ensemble.c: tree_ensemble_regressor, tree_ensemble_classifier and
 * tree_ensemble of ai.onnx.ml. Called through ops.def.
 *
 * The weights of the leaves that a row ends in are added up, or their mean,
 * least or greatest is taken, a target or class each; base values are added and
 * scores transformed.
 *
 * Semantics: ONNX Runtime's kernels. If all weights belong to one of two
 * classes, the score says which (above 0.5 if no weight is negative, else above
 * 0), and the other class's score follows from it. Of two classes with scores
 * of their own the greater one is the label, as ONNX says; ONNX Runtime gives 1
 * there if the second is positive. Base values and the numbers of
 * TreeEnsemble's post_transform are ONNX's too; ONNX Runtime adds none to a
 * target without weights, and exchanges SOFTMAX and LOGISTIC. */

#include "op/kernel/ml/scores.h"
#include "op/kernel/ml/tree.h"

typedef enum aggregate { AVERAGE, SUM, LEAST, GREATEST } aggregate;

/* What is known of a row's targets. ONNX Runtime adds in float32, unless the
 * features are float64. */
typedef struct prediction {
  double score;
  bool has_score;
} prediction;

typedef struct ensemble {
  pln_composition s;
  pln_trees trees;
  pln_ml_rows x;
  pln_ml_list base;
  int64_t targets;
  aggregate how;
  pln_post_transform post;
  bool wide; /* float64 */
  prediction *row;
  float *scores; /* a row's */
} ensemble;

/* ----------------------------------------------------------------- reading */

static void begin(ensemble *e, pln_kernel_call *call) {
  *e = (ensemble){.how = SUM,
                  .wide = pln_kernel_arg(call, 0)->dtype == PLN_FLOAT64};
  pln_composition_begin(&e->s, call);
}

/* Room for the targets of one row; a single score may become two. */
static bool read_features(ensemble *e) {
  int64_t room[1] = {0};
  pln_tensor *t = NULL, *u = NULL;
  if (e->targets < 1 || e->targets > INT32_MAX) {
    e->s.status = pln_kernel_refuse(e->s.call, "there are %lld targets",
                                    (long long)e->targets);
    return false;
  }
  if (!pln_ml_read_rows(&e->s, PLN_FLOAT64, &e->x))
    return false;
  room[0] = e->targets * (int64_t)sizeof *e->row;
  e->s.status = pln_tensor_new(e->s.call->engine, PLN_UINT8, 1, room, &t);
  if (!pln_compose_own(&e->s, t))
    return false;
  room[0] = e->targets + 1;
  e->s.status = pln_tensor_new(e->s.call->engine, PLN_FLOAT32, 1, room, &u);
  if (!pln_compose_own(&e->s, u))
    return false;
  e->row = pln_tensor_writable(t);
  e->scores = pln_tensor_writable(u);
  return true;
}

static bool read_base(ensemble *e) {
  e->base = pln_ml_floats(&e->s, "base_values");
  size_t n = e->base.count;
  if (e->s.status == PLN_OK && n && n != (size_t)e->targets &&
      !(n == 1 && e->targets == 2))
    e->s.status = pln_kernel_refuse(e->s.call,
                                    "%zu base_values for %lld "
                                    "targets",
                                    n, (long long)e->targets);
  return e->s.status == PLN_OK;
}

/* ------------------------------------------------------------- aggregating */

static double rounded(const ensemble *e, double x) {
  return e->wide ? x : (double)(float)x;
}

static void add_weight(const ensemble *e, const pln_tree_weight *w) {
  prediction *p = &e->row[w->target];
  bool first = !p->has_score;
  p->has_score = true;
  switch (e->how) {
  case AVERAGE:
  case SUM: p->score = rounded(e, p->score + w->value); break;
  case LEAST:
    p->score = first || w->value < p->score ? w->value : p->score;
    break;
  case GREATEST:
    p->score = first || w->value > p->score ? w->value : p->score;
    break;
  }
}

/* Sets e->row from the features of a row; false if a tree is not valid. */
static bool predict(const ensemble *e, int64_t row) {
  const pln_trees *t = &e->trees;
  const double *x = (const double *)e->x.tensor->data + row * e->x.columns;
  memset(e->row, 0, (size_t)e->targets * sizeof *e->row);
  for (size_t i = 0; i < t->n_roots; i++) {
    const pln_tree_node *terminal =
        pln_tree_terminal(t, t->roots[i], x, e->x.columns);
    if (!terminal)
      return false;
    for (uint32_t k = 0; k < terminal->count; k++)
      add_weight(e, &t->weights[terminal->first + k]);
  }
  for (int64_t i = 0; e->how == AVERAGE && i < e->targets; i++)
    e->row[i].score = rounded(e, e->row[i].score / (double)t->n_roots);
  return true;
}

static pln_status refuse_tree(const ensemble *e) {
  return pln_kernel_refuse(
      e->s.call, "a tree has a cycle, or tests a feature beyond %lld columns",
      (long long)e->x.columns);
}

/* ---------------------------------------------------------------- regressors
 */

static void add_base(const ensemble *e) {
  for (int64_t i = 0; e->base.count && i < e->targets; i++) {
    const double *base = e->base.floats;
    e->row[i].score =
        rounded(e, e->row[i].score + base[e->base.count == 1 ? 0 : (size_t)i]);
    e->row[i].has_score = true;
  }
}

/* The targets of a row. Scores are transformed in float32; float64 ones that
 * are not stay as they are. */
static void write_targets(const ensemble *e, pln_tensor *out, int64_t row) {
  size_t n = (size_t)e->targets, at = (size_t)row * n;
  double *wide = pln_tensor_writable(out);
  float *narrow = pln_tensor_writable(out);
  add_base(e);
  for (size_t i = 0; i < n; i++)
    e->scores[i] = (float)e->row[i].score;
  pln_ml_transform_scores(e->scores, n, e->post, PLN_SECOND_NONE);
  for (size_t i = 0; i < n; i++)
    if (out->dtype == PLN_FLOAT64)
      wide[at + i] =
          e->post == PLN_POST_NONE ? e->row[i].score : (double)e->scores[i];
    else
      narrow[at + i] = e->scores[i];
}

static pln_status regress(ensemble *e, pln_dtype dtype) {
  pln_kernel_call *call = e->s.call;
  int64_t dims[2] = {e->x.rows, e->targets};
  size_t done = 0;
  void *data;
  PLN_TRY(pln_kernel_unset(call, 0, dtype, 2, dims, &data));
  for (int64_t i = 0; i < e->x.rows; i++) {
    PLN_TRY(pln_poll_after(call->engine, &done, 16 * e->trees.n_roots));
    if (!predict(e, i))
      return refuse_tree(e);
    write_targets(e, call->results[0], i);
  }
  return PLN_OK;
}

static pln_status read_aggregate(const pln_kernel_call *call, aggregate *out) {
  static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    if (pln_kernel_string_is(call, "aggregate_function", "SUM", names[i])) {
      *out = (aggregate)i;
      return PLN_OK;
    }
  return pln_kernel_refuse(call, "aggregate_function is not known");
}

pln_status pln_kernel_tree_ensemble_regressor(pln_kernel_call *call) {
  ensemble e;
  begin(&e, call);
  PLN_TRY(read_aggregate(call, &e.how));
  PLN_TRY(pln_ml_post_transform(call, &e.post));
  e.targets = pln_kernel_int(call, "n_targets", 1);
  if (read_features(&e) && read_base(&e))
    pln_trees_read(&e.s, "target", e.targets, &e.trees);
  if (e.s.status == PLN_OK)
    e.s.status = regress(&e, PLN_FLOAT32);
  return pln_composition_end(&e.s);
}

pln_status pln_kernel_tree_ensemble(pln_kernel_call *call) {
  int64_t how = pln_kernel_int(call, "aggregate_function", SUM);
  int64_t post = pln_kernel_int(call, "post_transform", PLN_POST_NONE);
  pln_dtype dtype = (pln_dtype)pln_kernel_arg(call, 0)->dtype;
  ensemble e;
  if (how < AVERAGE || how > GREATEST || post < PLN_POST_NONE ||
      post > PLN_POST_PROBIT || !pln_dtype_is_float(dtype))
    return pln_kernel_refuse(
        call, "aggregate_function %lld, post_transform %lld or %s",
        (long long)how, (long long)post, pln_dtype_name(dtype));
  if (pln_dtype_is_half(dtype))
    return pln_kernel_no_dtype(call, dtype);
  begin(&e, call);
  e.how = (aggregate)how;
  e.post = (pln_post_transform)post;
  e.targets = pln_kernel_int(call, "n_targets", 1);
  if (read_features(&e))
    pln_trees_read_compact(&e.s, e.targets, &e.trees);
  if (e.s.status == PLN_OK)
    e.s.status = regress(&e, dtype);
  return pln_composition_end(&e.s);
}

/* ---------------------------------------------------------------- classifier
 */

typedef struct classification {
  pln_ml_labels labels;
  bool binary;       /* all weights belong to one of two classes */
  bool all_positive; /* no weight is negative */
  int64_t columns;   /* of the scores */
} classification;

static classification read_classes(const ensemble *e) {
  classification c = {.labels =
                          pln_ml_read_labels(e->s.call, "classlabels_int64s"),
                      .binary = e->targets == 2,
                      .all_positive = true,
                      .columns = e->targets};
  for (size_t i = 0; i < e->trees.n_weights; i++) {
    c.all_positive &= e->trees.weights[i].value >= 0;
    c.binary &= e->trees.weights[i].target == e->trees.weights[0].target;
  }
  return c;
}

/* Base values of two classes of which one has weights: with two of them, the
 * second class's replaces its weights. */
static void add_binary_base(const ensemble *e) {
  prediction *p = e->row;
  if (e->base.count == 1) {
    p[0].score = rounded(e, p[0].score + e->base.floats[0]);
  } else if (e->base.count == 2 && p[1].has_score) {
    p[1].score = rounded(e, e->base.floats[1] + p[0].score);
    p[0].score = -p[1].score;
  } else if (e->base.count == 2) {
    p[0].score = rounded(e, p[0].score + e->base.floats[0]);
    p[0].has_score = true;
  }
}

/* The class of a row, and its scores in e->scores. */
static int64_t classify_binary(const ensemble *e, const classification *c) {
  prediction *p = e->row;
  bool single = !p[1].has_score && e->base.count != 2;
  add_binary_base(e);
  double weight = p[1].has_score ? p[1].score : p[0].has_score ? p[0].score : 0;
  int64_t class = weight > (c->all_positive ? 0.5 : 0);
  for (int i = 0; i < 2; i++)
    e->scores[i] = p[i].has_score || single ? (float)p[i].score : 0;
  pln_second_class second = c->all_positive || e->post == PLN_POST_LOGISTIC
                                ? PLN_SECOND_COMPLEMENT
                                : PLN_SECOND_OPPOSITE;
  if (e->post == PLN_POST_LOGISTIC)
    second = PLN_SECOND_OPPOSITE;
  pln_ml_transform_scores(e->scores, single ? 1 : 2, e->post, second);
  return class;
}

static int64_t classify_row(const ensemble *e) {
  int64_t best = -1;
  add_base(e);
  for (int64_t i = 0; i < e->targets; i++) {
    const prediction *p = &e->row[i];
    if (p->has_score && (best < 0 || p->score > e->row[best].score))
      best = i;
    e->scores[i] = (float)p->score;
  }
  pln_ml_transform_scores(e->scores, (size_t)e->targets, e->post,
                          PLN_SECOND_NONE);
  return best < 0 ? 0 : best;
}

static pln_status classify_rows(ensemble *e, const classification *c,
                                int64_t *classes) {
  pln_kernel_call *call = e->s.call;
  int64_t dims[2] = {e->x.rows, c->columns};
  size_t done = 0;
  void *data = NULL;
  if (call->n_results > 1)
    PLN_TRY(pln_kernel_unset(call, 1, PLN_FLOAT32, 2, dims, &data));
  for (int64_t i = 0; i < e->x.rows; i++) {
    PLN_TRY(pln_poll_after(call->engine, &done, 16 * e->trees.n_roots));
    if (!predict(e, i))
      return refuse_tree(e);
    classes[i] = c->binary ? classify_binary(e, c) : classify_row(e);
    if (data)
      memcpy((float *)data + i * c->columns, e->scores,
             (size_t)c->columns * sizeof(float));
  }
  return pln_ml_write_labels(call, &c->labels, e->x.rows, classes);
}

static void classify_all(ensemble *e) {
  classification c = read_classes(e);
  pln_tensor *t = NULL;
  if (c.binary && e->post == PLN_POST_PROBIT) {
    pln_composition_refuse(&e->s, "PROBIT of one score gives no two classes");
    return;
  }
  e->s.status =
      pln_tensor_unset(e->s.call->engine, PLN_INT64, 1, &e->x.rows, &t);
  if (pln_compose_own(&e->s, t))
    e->s.status = classify_rows(e, &c, pln_tensor_writable(t));
}

pln_status pln_kernel_tree_ensemble_classifier(pln_kernel_call *call) {
  ensemble e;
  begin(&e, call);
  PLN_TRY(pln_ml_post_transform(call, &e.post));
  e.targets =
      (int64_t)pln_ml_read_labels(call, "classlabels_int64s").list.count;
  if (read_features(&e) && read_base(&e))
    pln_trees_read(&e.s, "class", e.targets, &e.trees);
  if (e.s.status == PLN_OK)
    classify_all(&e);
  return pln_composition_end(&e.s);
}
