/* proposal.c: the kernel of vision.proposal: regions that a network for region
 * proposals (Ren et al., arXiv:1506.01497) finds. Called through ops.def; its
 * type is in relay/infer/image.c.
 *
 * At each position of a map, an anchor for each ratio and scale is moved by the
 * predicted offsets. The boxes of an image are sorted by score; a box that
 * overlaps a better one that stays is dropped. Those that stay are repeated
 * until there are as many as asked for.
 *
 * Semantics: TVM's TOPI for CPUs. */

#include <math.h>

#include "op/relay/kernel/vision/vision.h"

typedef struct box {
  float x1, y1, x2, y2, score;
} box;

typedef struct proposal {
  size_t images, anchors, high, wide, n, before, after;
  const float *scores, *offsets, *sizes;
  pln_floats scales, ratios;
  double stride;
  float overlap, least;
  bool plain; /* offsets are those of the corners */
  box *boxes, *sorted;
  pln_scored *list;
  bool *dropped;
} proposal;

/* ------------------------------------------------------------------ anchors */

static box anchor_at(const proposal *p, size_t k, size_t y, size_t x) {
  double ratio = p->ratios.of[k / p->scales.count];
  double scale = p->scales.of[k % p->scales.count];
  double middle = 0.5 * (p->stride - 1);
  double area = floor(p->stride * p->stride / ratio);
  double wide = floor(sqrt(area) + 0.5) * scale;
  double high = floor(wide / scale * ratio + 0.5) * scale;
  float dx = (float)((double)x * p->stride),
        dy = (float)((double)y * p->stride);
  return (box){.x1 = (float)(middle - 0.5 * (wide - 1)) + dx,
               .y1 = (float)(middle - 0.5 * (high - 1)) + dy,
               .x2 = (float)(middle + 0.5 * (wide - 1)) + dx,
               .y2 = (float)(middle + 0.5 * (high - 1)) + dy};
}

/* Moves the centre by parts of the extents, which grow by exponents. */
static box move_box(box a, const float *offsets, size_t step) {
  float wide = a.x2 - a.x1 + 1, high = a.y2 - a.y1 + 1;
  float x = offsets[0] * wide + (a.x1 + 0.5f * (wide - 1));
  float y = offsets[step] * high + (a.y1 + 0.5f * (high - 1));
  wide *= expf(offsets[2 * step]);
  high *= expf(offsets[3 * step]);
  return (box){.x1 = x - 0.5f * (wide - 1),
               .y1 = y - 0.5f * (high - 1),
               .x2 = x + 0.5f * (wide - 1),
               .y2 = y + 0.5f * (high - 1)};
}

static box move_corners(box a, const float *offsets, size_t step) {
  return (box){.x1 = a.x1 + offsets[0],
               .y1 = a.y1 + offsets[step],
               .x2 = a.x2 + offsets[2 * step],
               .y2 = a.y2 + offsets[3 * step]};
}

static float limit_to(float x, float most) {
  x = x < most ? x : most;
  return x > 0 ? x : 0;
}

/* A box below the least extents is widened, and comes last. */
static void widen_small(box *b, float least) {
  if (b->x2 - b->x1 + 1 >= least && b->y2 - b->y1 + 1 >= least)
    return;
  b->x1 -= least / 2;
  b->y1 -= least / 2;
  b->x2 += least / 2;
  b->y2 += least / 2;
  b->score = -1;
}

static box predict_box(const proposal *p, size_t image, size_t k, size_t y,
                       size_t x) {
  size_t map = p->high * p->wide, at = y * p->wide + x;
  const float *size = p->sizes + 3 * image;
  const float *offsets = p->offsets + (image * p->anchors + k) * 4 * map + at;
  box a = anchor_at(p, k, y, x);
  box b = p->plain ? move_corners(a, offsets, map) : move_box(a, offsets, map);
  b.x1 = limit_to(b.x1, size[1] - 1);
  b.y1 = limit_to(b.y1, size[0] - 1);
  b.x2 = limit_to(b.x2, size[1] - 1);
  b.y2 = limit_to(b.y2, size[0] - 1);
  float stride = (float)p->stride;
  bool outside = (double)y >= trunc((double)(size[0] / stride)) ||
                 (double)x >= trunc((double)(size[1] / stride));
  b.score =
      outside ? -1
              : p->scores[(image * 2 * p->anchors + p->anchors + k) * map + at];
  widen_small(&b, size[2] * p->least);
  return b;
}

/* -------------------------------------------------------------------- boxes */

static float overlap_of(const box *a, const box *b) {
  float w = fmaxf(0, fminf(a->x2, b->x2) - fmaxf(a->x1, b->x1) + 1);
  float h = fmaxf(0, fminf(a->y2, b->y2) - fmaxf(a->y1, b->y1) + 1);
  float shared = w * h;
  return shared / ((a->x2 - a->x1 + 1) * (a->y2 - a->y1 + 1) +
                   (b->x2 - b->x1 + 1) * (b->y2 - b->y1 + 1) - shared);
}

static void sort_boxes(const proposal *p, size_t image) {
  size_t n = 0;
  for (size_t y = 0; y < p->high; y++)
    for (size_t x = 0; x < p->wide; x++)
      for (size_t k = 0; k < p->anchors; k++, n++) {
        p->boxes[n] = predict_box(p, image, k, y, x);
        p->list[n] = (pln_scored){p->boxes[n].score, (uint32_t)n};
      }
  pln_sort_scored(p->list, n);
  for (size_t i = 0; i < p->before; i++)
    p->sorted[i] = p->boxes[p->list[i].index];
}

static pln_status drop_boxes(const pln_kernel_call *call, const proposal *p) {
  size_t polled = 0;
  memset(p->dropped, 0, p->before * sizeof *p->dropped);
  for (size_t i = 0; i < p->before; i++) {
    if (p->dropped[i])
      continue;
    for (size_t k = i + 1; k < p->before; k++)
      p->dropped[k] |= overlap_of(&p->sorted[i], &p->sorted[k]) > p->overlap;
    PLN_TRY(pln_poll_after(call->engine, &polled, p->before));
  }
  return PLN_OK;
}

/* Writes (image, x1, y1, x2, y2), round after round. The first box stays. */
static void write_regions(const proposal *p, size_t image, float *out) {
  for (size_t i = 0, k = 0; i < p->after; k = (k + 1) % p->before) {
    if (p->dropped[k])
      continue;
    const float row[] = {(float)image, p->sorted[k].x1, p->sorted[k].y1,
                         p->sorted[k].x2, p->sorted[k].y2};
    memcpy(out + 5 * i++, row, sizeof row);
  }
}

/* --------------------------------------------------------------- the kernel */

static bool has_floats(const pln_tensor *x, uint32_t rank) {
  return x->dtype == PLN_FLOAT32 && x->rank == rank;
}

static bool read_map(const pln_kernel_call *call, proposal *p) {
  const pln_tensor *scores = pln_kernel_arg(call, 0);
  const pln_tensor *offsets = pln_kernel_arg(call, 1);
  const pln_tensor *sizes = pln_kernel_arg(call, 2);
  if (!has_floats(scores, 4) || !has_floats(offsets, 4) ||
      !has_floats(sizes, 2) || sizes->dims[1] != 3 ||
      sizes->dims[0] != scores->dims[0] ||
      scores->dims[1] != 2 * (int64_t)p->anchors ||
      offsets->dims[1] != 4 * (int64_t)p->anchors ||
      offsets->dims[0] != scores->dims[0] ||
      memcmp(scores->dims + 2, offsets->dims + 2, 2 * sizeof *scores->dims))
    return false;
  p->images = (size_t)scores->dims[0];
  p->high = (size_t)scores->dims[2];
  p->wide = (size_t)scores->dims[3];
  p->n = p->high * p->wide * p->anchors;
  p->scores = scores->data;
  p->offsets = offsets->data;
  p->sizes = sizes->data;
  return p->n > 0 && p->n <= INT32_MAX;
}

static bool read_proposal(const pln_kernel_call *call, proposal *p) {
  static const double scales[] = {4, 8, 16, 32}, ratios[] = {0.5, 1, 2};
  int64_t before = pln_kernel_int(call, "rpn_pre_nms_top_n", 6000);
  pln_read_floats(call, "scales", 4, scales, &p->scales);
  pln_read_floats(call, "ratios", 3, ratios, &p->ratios);
  p->anchors = (size_t)p->scales.count * p->ratios.count;
  p->stride = (double)pln_kernel_int(call, "feature_stride", 16);
  p->overlap = (float)pln_kernel_float(call, "threshold", 0.7);
  p->least = (float)pln_kernel_int(call, "rpn_min_size", 16);
  p->plain = pln_kernel_int(call, "iou_loss", 0) != 0;
  p->after = (size_t)pln_kernel_int(call, "rpn_post_nms_top_n", 300);
  if (!read_map(call, p))
    return false;
  p->before = before > 0 && (size_t)before < p->n ? (size_t)before : p->n;
  return true;
}

static pln_status propose(pln_kernel_call *call, const proposal *p) {
  const int64_t dims[] = {(int64_t)(p->images * p->after), 5};
  void *out;
  PLN_TRY(pln_kernel_unset(call, 0, PLN_FLOAT32, 2, dims, &out));
  for (size_t image = 0; image < p->images; image++) {
    sort_boxes(p, image);
    PLN_TRY(drop_boxes(call, p));
    write_regions(p, image, (float *)out + image * p->after * 5);
  }
  return PLN_OK;
}

pln_status pln_kernel_proposal(pln_kernel_call *call) {
  proposal p = {0};
  if (!read_proposal(call, &p))
    return pln_kernel_refuse(call, "scores, offsets and sizes of float32 do "
                                   "not match scales and ratios");
  size_t size = p.n * (sizeof *p.boxes + sizeof *p.list) +
                p.before * (sizeof *p.sorted + sizeof *p.dropped);
  p.boxes = pln_mem_new(call->engine, size);
  if (!p.boxes)
    return pln_nomem(call->engine);
  p.sorted = p.boxes + p.n;
  p.list = (pln_scored *)(p.sorted + p.before);
  p.dropped = (bool *)(p.list + p.n);
  pln_status status = propose(call, &p);
  pln_mem_free(call->engine, p.boxes, size);
  return status;
}
