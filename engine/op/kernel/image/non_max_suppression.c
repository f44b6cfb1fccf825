/* non_max_suppression.c: non_max_suppression: per class, selects the boxes that
 * overlap no box with a higher score. Type and kernel. Called through ops.def.
 *
 * Boxes are visited by descending score, equal scores by index. The result
 * lists (batch, class, box) by batch, class and score. */

#include <math.h>
#include <stdlib.h>

#include "op/kernel/kernel.h"
#include "op/relay/kernel/relay_form/relay_form.h"

/* Relay's form: indices of boxes and their number per image, or the boxes. */
static pln_status infer_relay_nms(pln_infer *call) {
  pln_shape boxes, out = {.rank = 2, .dims = {PLN_DIM_UNKNOWN, 1}};
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  if (!pln_call_int(call, "return_indices", 1)) {
    pln_result_like(call, 0, 0);
    return PLN_OK;
  }
  pln_arg_shape(call, 0, &boxes);
  if (boxes.rank < 0)
    pln_shape_ranked(&boxes, 3);
  out.dims[0] = boxes.dims[0];
  PLN_TRY(pln_result_tensor(call, 1, PLN_INT32, &out));
  boxes.rank = 2;
  return pln_result_tensor(call, 0, PLN_INT32, &boxes);
}

pln_status pln_infer_non_max_suppression(pln_infer *call) {
  if (pln_call_int(call, "relay", 0))
    return infer_relay_nms(call);
  pln_shape out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  PLN_TRY(pln_arg_expect_rank(call, 1, 3));
  pln_shape_ranked(&out, 2);
  out.dims[1] = 3;
  return pln_result_tensor(call, 0, PLN_INT64, &out);
}

/* ------------------------------------------------------------------- boxes */

typedef struct box {
  float y0, x0, y1, x1, area;
} box;

/* Corners in either order, or centre and size. */
static box read_box(const float *b, bool centred) {
  box out;
  if (centred) {
    float width = b[2] / 2, height = b[3] / 2;
    out = (box){b[1] - height, b[0] - width, b[1] + height, b[0] + width, 0};
  } else {
    out = (box){fminf(b[0], b[2]), fminf(b[1], b[3]), fmaxf(b[0], b[2]),
                fmaxf(b[1], b[3]), 0};
  }
  out.area = (out.y1 - out.y0) * (out.x1 - out.x0);
  return out;
}

/* Returns true if intersection over union exceeds the limit. */
static bool overlap(const box *a, const box *b, float limit) {
  float height = fminf(a->y1, b->y1) - fmaxf(a->y0, b->y0);
  float width = fminf(a->x1, b->x1) - fmaxf(a->x0, b->x0);
  if (!(height > 0) || !(width > 0) || !(a->area > 0) || !(b->area > 0))
    return false;
  float shared = height * width, all = a->area + b->area - shared;
  return all > 0 && shared / all > limit;
}

typedef struct candidate {
  float score;
  int64_t index;
} candidate;

/* Falling scores, rising indices. */
static int compare_candidates(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->score != y->score)
    return x->score > y->score ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* ------------------------------------------------------------------ search */

typedef struct search {
  bool centred, limited; /* limited: by a least score */
  int64_t most;          /* limit per class */
  float overlap, score;
  int64_t boxes, classes, batches;
  candidate *candidates; /* room for all boxes */
  box *chosen;
  int64_t *found; /* triples */
  size_t n_found, room;
} search;

static size_t gather_candidates(search *s, const float *scores) {
  size_t n = 0;
  for (int64_t i = 0; i < s->boxes; i++)
    if (scores[i] == scores[i] && (!s->limited || scores[i] > s->score))
      s->candidates[n++] = (candidate){scores[i], i};
  qsort(s->candidates, n, sizeof *s->candidates, compare_candidates);
  return n;
}

static pln_status add_found(const pln_kernel_call *call, search *s,
                            int64_t batch, int64_t class, int64_t index) {
  size_t size = 3 * sizeof *s->found;
  if (s->n_found == s->room) {
    size_t room = 2 * s->room + 64;
    int64_t *found =
        pln_mem_resize(call->engine, s->found, s->room * size, room * size);
    if (!found)
      return pln_nomem(call->engine);
    s->found = found;
    s->room = room;
  }
  memcpy(s->found + 3 * s->n_found++, (int64_t[]){batch, class, index}, size);
  return PLN_OK;
}

static pln_status search_class(const pln_kernel_call *call, search *s,
                               int64_t batch, int64_t class, const float *boxes,
                               const float *scores) {
  size_t n = gather_candidates(s, scores);
  int64_t chosen = 0;
  size_t done = 0;
  for (size_t i = 0; i < n && chosen < s->most; i++) {
    box b = read_box(boxes + 4 * s->candidates[i].index, s->centred);
    bool good = true;
    PLN_TRY(pln_poll_after(call->engine, &done, 4 * (size_t)chosen + 4));
    for (int64_t k = 0; k < chosen && good; k++)
      good = !overlap(&b, &s->chosen[k], s->overlap);
    if (!good)
      continue;
    s->chosen[chosen++] = b;
    PLN_TRY(add_found(call, s, batch, class, s->candidates[i].index));
  }
  return PLN_OK;
}

static pln_status search_all(const pln_kernel_call *call, search *s) {
  const float *boxes = pln_kernel_data(pln_kernel_arg(call, 0));
  const float *scores = pln_kernel_data(pln_kernel_arg(call, 1));
  for (int64_t b = 0; b < s->batches; b++)
    for (int64_t c = 0; c < s->classes; c++)
      PLN_TRY(search_class(call, s, b, c, boxes + b * s->boxes * 4,
                           scores + (b * s->classes + c) * s->boxes));
  return PLN_OK;
}

/* ------------------------------------------------------------------- calls */

static float limit_of(const pln_kernel_call *call, uint32_t i) {
  const pln_tensor *t = pln_kernel_arg(call, i);
  return t && t->count == 1 && t->dtype == PLN_FLOAT32 ? *(const float *)t->data
                                                       : 0;
}

static pln_status read_search(const pln_kernel_call *call, search *s) {
  const pln_tensor *boxes = pln_kernel_arg(call, 0);
  const pln_tensor *scores = pln_kernel_arg(call, 1);
  pln_list most = pln_kernel_list(call, 2, NULL);
  if (boxes->dtype != PLN_FLOAT32 || scores->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)boxes->dtype);
  if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
      boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2])
    return pln_kernel_refuse(call, "the scores do not match the boxes");
  *s = (search){.centred = pln_kernel_int(call, "center_point_box", 0) != 0,
                .limited = pln_kernel_arg(call, 4) != NULL,
                .most = most.count ? pln_list_at(&most, 0) : 0,
                .overlap = limit_of(call, 3),
                .score = limit_of(call, 4),
                .boxes = boxes->dims[1],
                .classes = scores->dims[1],
                .batches = boxes->dims[0]};
  if (!(s->overlap >= 0 && s->overlap <= 1))
    return pln_kernel_refuse(call, "an overlap of %g lies outside of [0, 1]",
                             (double)s->overlap);
  return PLN_OK;
}

pln_status pln_kernel_non_max_suppression(pln_kernel_call *call) {
  if (pln_kernel_int(call, "relay", 0))
    return pln_kernel_relay_nms(call);
  search s = {.most = 0};
  void *out;
  PLN_TRY(read_search(call, &s));
  size_t each = sizeof *s.candidates + sizeof *s.chosen;
  size_t size = each * ((size_t)s.boxes + 1);
  if (s.most > 0 && !(s.candidates = pln_mem_new(call->engine, size)))
    return pln_nomem(call->engine);
  s.chosen = s.candidates ? (box *)(s.candidates + s.boxes) : NULL;
  pln_status status = s.most > 0 ? search_all(call, &s) : PLN_OK;
  int64_t dims[2] = {(int64_t)s.n_found, 3};
  if (status == PLN_OK)
    status = pln_kernel_result(call, 0, PLN_INT64, 2, dims, &out);
  if (status == PLN_OK && s.n_found)
    memcpy(out, s.found, s.n_found * 3 * sizeof *s.found);
  pln_mem_free(call->engine, s.candidates, s.candidates ? size : 0);
  pln_mem_free(call->engine, s.found, s.room * 3 * sizeof *s.found);
  return status;
}
