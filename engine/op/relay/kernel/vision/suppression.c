/* suppression.c: kernels of Relay's operators that drop boxes which overlap
 * better ones: vision.all_class_non_max_suppression,
 * vision.regular_non_max_suppression. Called through ops.def; types are in
 * relay/infer/image.c.
 *
 * Semantics: TVM's TOPI for CPUs, which sorts stably: of equal scores the first
 * box comes first. Rows that TVM leaves undefined are -1. */

#include <math.h>
#include <stdlib.h>

#include "op/relay/kernel/vision/vision.h"

/* NaN is below all numbers. */
static int compare_scored(const void *left, const void *right) {
  const pln_scored *a = left, *b = right;
  if (a->score > b->score || (b->score != b->score && a->score == a->score))
    return -1;
  if (a->score < b->score || (a->score != a->score && b->score == b->score))
    return 1;
  return (a->index > b->index) - (a->index < b->index);
}

void pln_sort_scored(pln_scored *list, size_t n) {
  if (n)
    qsort(list, n, sizeof *list, compare_scored);
}

/* ------------------------------------------------------------- every class */

float pln_box_overlap(const float *a, const float *b) {
  float left = fmaxf(fminf(a[0], a[2]), fminf(b[0], b[2]));
  float top = fmaxf(fminf(a[1], a[3]), fminf(b[1], b[3]));
  float right = fminf(fmaxf(a[0], a[2]), fmaxf(b[0], b[2]));
  float bottom = fminf(fmaxf(a[1], a[3]), fmaxf(b[1], b[3]));
  float shared = fmaxf(0, bottom - top) * fmaxf(0, right - left);
  float covered = fabsf(a[2] - a[0]) * fabsf(a[3] - a[1]) +
                  fabsf(b[2] - b[0]) * fabsf(b[3] - b[1]) - shared;
  return covered <= 0 ? 0 : shared / covered;
}

typedef struct all_classes {
  size_t images, classes, n; /* n: boxes of an image */
  const float *boxes, *scores;
  int64_t most; /* boxes of a class; not positive: all */
  float overlap, least;
  pln_scored *list; /* of one class */
  size_t polled;
} all_classes;

/* The boxes of a class above the least score, sorted. */
static size_t list_class(all_classes *c, size_t row) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++)
    if (c->scores[row * c->n + i] > c->least)
      c->list[n++] = (pln_scored){c->scores[row * c->n + i], (uint32_t)i};
  pln_sort_scored(c->list, n);
  return n;
}

/* Moves the boxes that stay to the front of the list. TVM marks those that are
 * dropped by a score of -1, and drops none whose score is not positive. */
static pln_status suppress(const pln_kernel_call *call, all_classes *c,
                           const float *boxes, size_t n, size_t *kept) {
  size_t most = c->most > 0 && (uint64_t)c->most < n ? (size_t)c->most : n;
  *kept = 0;
  for (size_t i = 0; i < n && c->overlap > 0 && *kept < most; i++) {
    pln_scored best = c->list[i];
    if (best.score <= -1)
      continue;
    for (size_t k = i + 1; k < n; k++)
      if (c->list[k].score > 0 &&
          pln_box_overlap(boxes + 4 * (size_t)best.index,
                          boxes + 4 * (size_t)c->list[k].index) >= c->overlap)
        c->list[k].score = -1;
    c->list[(*kept)++] = best;
    PLN_TRY(pln_poll_after(call->engine, &c->polled, n));
  }
  return PLN_OK;
}

/* Rows (image, class, box), the selected ones first, and their number. */
static pln_status write_rows(pln_kernel_call *call, all_classes *c) {
  const int64_t dims[] = {(int64_t)(c->images * c->classes * c->n), 3};
  const int64_t one[] = {1};
  void *rows, *count;
  size_t n, kept, total = 0;
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT64, 2, dims, &rows));
  PLN_TRY(pln_kernel_unset(call, 1, PLN_INT64, 1, one, &count));
  int64_t *out = rows;
  for (size_t row = 0; row < c->images * c->classes; row++) {
    const float *boxes = c->boxes + row / c->classes * c->n * 4;
    n = list_class(c, row);
    PLN_TRY(suppress(call, c, boxes, n, &kept));
    for (size_t i = 0; i < kept; i++, total++) {
      *out++ = (int64_t)(row / c->classes);
      *out++ = (int64_t)(row % c->classes);
      *out++ = c->list[i].index;
    }
  }
  while (out < (int64_t *)rows + 3 * dims[0])
    *out++ = -1;
  *(int64_t *)count = (int64_t)total;
  return PLN_OK;
}

/* By image, rows (class, box) and scores, the selected ones first, then zeros;
 * and their number. */
static pln_status write_rows_by_image(pln_kernel_call *call, all_classes *c) {
  size_t each = c->classes * c->n, n, kept;
  const int64_t dims[] = {(int64_t)c->images, (int64_t)each, 2};
  void *rows, *scores, *counts;
  PLN_TRY(pln_kernel_result(call, 0, PLN_INT64, 3, dims, &rows));
  PLN_TRY(pln_kernel_result(call, 1, PLN_FLOAT32, 2, dims, &scores));
  PLN_TRY(pln_kernel_result(call, 2, PLN_INT64, 1, dims, &counts));
  for (size_t row = 0; row < c->images * c->classes; row++) {
    size_t image = row / c->classes;
    int64_t *count = (int64_t *)counts + image;
    n = list_class(c, row);
    PLN_TRY(suppress(call, c, c->boxes + image * c->n * 4, n, &kept));
    for (size_t i = 0; i < kept; i++, ++*count) {
      size_t at = image * each + (size_t)*count;
      ((int64_t *)rows)[2 * at] = (int64_t)(row % c->classes);
      ((int64_t *)rows)[2 * at + 1] = c->list[i].index;
      ((float *)scores)[at] = c->list[i].score;
    }
  }
  return PLN_OK;
}

/* Sets a number from a scalar operand of any dtype. */
static void read_number(pln_composition *s, uint32_t arg, float *out) {
  const pln_tensor *t =
      pln_compose_cast(s, pln_kernel_arg(s->call, arg), PLN_FLOAT32);
  if (t && t->count == 1)
    *out = *(const float *)t->data;
  else
    pln_composition_refuse(s, "a threshold is no scalar");
}

static bool read_all_classes(const pln_kernel_call *call, all_classes *c) {
  const pln_tensor *boxes = pln_kernel_arg(call, 0);
  const pln_tensor *scores = pln_kernel_arg(call, 1);
  const pln_tensor *most = pln_kernel_arg(call, 2);
  if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
      boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2] ||
      boxes->dims[1] > INT32_MAX || boxes->dtype != PLN_FLOAT32 ||
      scores->dtype != PLN_FLOAT32 || most->count != 1 ||
      !pln_tensor_int(most, 0, &c->most))
    return false;
  c->images = (size_t)scores->dims[0];
  c->classes = (size_t)scores->dims[1];
  c->n = (size_t)scores->dims[2];
  c->boxes = boxes->data;
  c->scores = scores->data;
  return true;
}

pln_status pln_kernel_all_class_nms(pln_kernel_call *call) {
  bool rows = pln_kernel_string_is(call, "output_format", "onnx", "onnx");
  all_classes c = {0};
  pln_composition s;
  if (!read_all_classes(call, &c) || call->n_results != (rows ? 2 : 3))
    return pln_kernel_refuse(call, "the operands are not boxes of float32, "
                                   "their scores by class, and limits");
  pln_composition_begin(&s, call);
  read_number(&s, 3, &c.overlap);
  read_number(&s, 4, &c.least);
  PLN_TRY(pln_composition_end(&s));
  size_t size = c.n * sizeof *c.list;
  c.list = pln_mem_new(call->engine, size);
  if (size && !c.list)
    return pln_nomem(call->engine);
  pln_status status =
      rows ? write_rows(call, &c) : write_rows_by_image(call, &c);
  pln_mem_free(call->engine, c.list, size);
  return status;
}

/* ------------------------------------------------------ the best of all
 * classes
 */

typedef struct regular {
  size_t n, classes, all; /* boxes; classes, and with those before the first */
  size_t most, most_of_class;
  float overlap, least;
  pln_scored *list; /* of one class: n */
  pln_scored *best; /* of the classes so far: most + n; index: their order */
  uint32_t *box, *of_class; /* by `best`, in pairs of tables to copy between */
  size_t polled;
} regular;

/* Corners are ymin, xmin, ymax, xmax. */
static float overlap_of_boxes(const float *a, const float *b) {
  float first = (a[2] - a[0]) * (a[3] - a[1]);
  float second = (b[2] - b[0]) * (b[3] - b[1]);
  if (!(first > 0) || !(second > 0))
    return 0;
  float high = fmaxf(fminf(a[2], b[2]) - fmaxf(a[0], b[0]), 0);
  float wide = fmaxf(fminf(a[3], b[3]) - fmaxf(a[1], b[1]), 0);
  return high * wide / (first + second - high * wide);
}

/* Moves the boxes of a class that stay to the front of the list. */
static pln_status select_of_class(const pln_kernel_call *call, regular *r,
                                  const float *boxes, size_t n, size_t *kept) {
  size_t most = r->most_of_class < n ? r->most_of_class : n;
  *kept = 0;
  for (size_t i = 0; i < n && *kept < most; i++) {
    pln_scored best = r->list[i];
    if (best.index == UINT32_MAX)
      continue;
    for (size_t k = i + 1; k < n; k++)
      if (r->list[k].index != UINT32_MAX &&
          overlap_of_boxes(boxes + 4 * (size_t)best.index,
                           boxes + 4 * (size_t)r->list[k].index) > r->overlap)
        r->list[k].index = UINT32_MAX;
    r->list[(*kept)++] = best;
    PLN_TRY(pln_poll_after(call->engine, &r->polled, n));
  }
  return PLN_OK;
}

/* Merges the class into the best; returns how many there are. */
static size_t merge_class(regular *r, size_t class, size_t kept, size_t n) {
  size_t cap = r->most + r->n, all = n + kept;
  for (size_t i = 0; i < n; i++)
    r->best[i].index = (uint32_t)i;
  for (size_t i = 0; i < kept; i++) {
    r->best[n + i] = (pln_scored){r->list[i].score, (uint32_t)(n + i)};
    r->box[n + i] = r->list[i].index;
    r->of_class[n + i] = (uint32_t) class;
  }
  pln_sort_scored(r->best, all);
  n = all < r->most ? all : r->most;
  for (size_t i = 0; i < n; i++) {
    r->box[cap + i] = r->box[r->best[i].index];
    r->of_class[cap + i] = r->of_class[r->best[i].index];
  }
  memcpy(r->box, r->box + cap, n * sizeof *r->box);
  memcpy(r->of_class, r->of_class + cap, n * sizeof *r->of_class);
  return n;
}

/* The number of the best boxes of an image. */
static pln_status select_best(const pln_kernel_call *call, regular *r,
                              const float *boxes, const float *scores,
                              size_t *best) {
  *best = 0;
  for (size_t class = 0; class < r->classes; class ++) {
    size_t n = 0, kept;
    for (size_t i = 0; i < r->n; i++) {
      float score = scores[i * r->all + class + r->all - r->classes];
      if (score >= r->least)
        r->list[n++] = (pln_scored){score, (uint32_t)i};
    }
    pln_sort_scored(r->list, n);
    PLN_TRY(select_of_class(call, r, boxes, n, &kept));
    *best = merge_class(r, class, kept, *best);
  }
  return PLN_OK;
}

static pln_status write_best(pln_kernel_call *call, regular *r) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  const int64_t dims[] = {x->dims[0], (int64_t)r->most, 4};
  void *boxes, *classes, *scores, *counts;
  PLN_TRY(pln_kernel_result(call, 0, PLN_FLOAT32, 3, dims, &boxes));
  PLN_TRY(pln_kernel_result(call, 1, PLN_FLOAT32, 2, dims, &classes));
  PLN_TRY(pln_kernel_result(call, 2, PLN_FLOAT32, 2, dims, &scores));
  PLN_TRY(pln_kernel_result(call, 3, PLN_INT32, 1, dims, &counts));
  for (size_t image = 0; image < (size_t)x->dims[0]; image++) {
    const float *from = (const float *)x->data + image * r->n * 4;
    size_t best, at = image * r->most;
    PLN_TRY(select_best(call, r, from,
                        (const float *)y->data + image * r->n * r->all, &best));
    ((int32_t *)counts)[image] = (int32_t)best;
    for (size_t i = 0; i < best; i++, at++) {
      memcpy((float *)boxes + 4 * at, from + 4 * (size_t)r->box[i],
             4 * sizeof *from);
      ((float *)classes)[at] = (float)r->of_class[i];
      ((float *)scores)[at] = r->best[i].score;
    }
  }
  return PLN_OK;
}

static bool read_regular(const pln_kernel_call *call, regular *r) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  int64_t most = pln_kernel_int(call, "max_detections", -1);
  int64_t of_class = pln_kernel_int(call, "max_detections_per_class", -1);
  int64_t classes = pln_kernel_int(call, "num_classes", -1);
  if (x->rank != 3 || y->rank != 3 || x->dtype != PLN_FLOAT32 ||
      y->dtype != PLN_FLOAT32 || x->dims[2] != 4 || x->dims[0] != y->dims[0] ||
      x->dims[1] != y->dims[1] || classes < 0 || classes > y->dims[2] ||
      most < 0 || most > INT32_MAX || of_class < 0 || x->dims[1] > INT32_MAX)
    return false;
  r->n = (size_t)x->dims[1];
  r->classes = (size_t)classes;
  r->all = (size_t)y->dims[2];
  r->most = (size_t)most;
  r->most_of_class = (size_t)of_class;
  r->overlap = (float)pln_kernel_float(call, "iou_threshold", 0);
  r->least = (float)pln_kernel_float(call, "score_threshold", 0);
  return true;
}

pln_status pln_kernel_regular_nms(pln_kernel_call *call) {
  regular r = {0};
  if (!read_regular(call, &r) || call->n_results != 4)
    return pln_kernel_refuse(call, "the operands are not boxes of float32 and "
                                   "their scores, or a limit is missing");
  size_t cap = r.most + r.n;
  size_t size = (r.n + cap) * sizeof *r.list + 4 * cap * sizeof *r.box;
  r.list = pln_mem_new(call->engine, size);
  if (size && !r.list)
    return pln_nomem(call->engine);
  pln_status status = PLN_OK;
  if (size) {
    r.best = r.list + r.n;
    r.box = (uint32_t *)(r.best + cap);
    r.of_class = r.box + 2 * cap;
    status = write_best(call, &r);
  }
  pln_mem_free(call->engine, r.list, size);
  return status;
}
