/* detection.c: kernels of Relay's detection operators: vision.yolo_reorg,
 * vision.multibox_prior, vision.multibox_transform_loc,
 * vision.get_valid_counts. Called through ops.def; types are in
 * relay/infer/image.c.
 *
 * Semantics: TVM's TOPI. Where TVM leaves the rest of a result undefined, it is
 * -1. */

#include <math.h>

#include "op/relay/kernel/vision/vision.h"

/* -------------------------------------------------------------- reordering */

/* Where element `at` of the result comes from: as Darknet has it, the operand
 * is taken as an image with fewer channels and `stride` times the extents. */
static size_t reorg_source(const int64_t *dims, int64_t stride, size_t at) {
  size_t s = (size_t)stride, channels = (size_t)dims[1];
  size_t high = (size_t)dims[2], wide = (size_t)dims[3];
  size_t less = channels / (s * s);
  size_t i = at % wide, j = at / wide % high;
  size_t k = at / (wide * high) % channels, b = at / (wide * high * channels);
  size_t offset = k / less;
  size_t w = i * s + offset % s, h = j * s + offset / s;
  return w + wide * s * (h + high * s * (k % less + less * b));
}

pln_status pln_kernel_yolo_reorg(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t stride = pln_kernel_int(call, "stride", 1), dims[4];
  size_t size = pln_element_size((pln_dtype)x->dtype);
  void *data;
  if (x->rank != 4 || x->dtype == PLN_STRING || size == 0)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (stride < 1 || stride > INT16_MAX || x->dims[1] % (stride * stride) ||
      x->dims[2] % stride || x->dims[3] % stride)
    return pln_kernel_refuse(call,
                             "channels and extents are no multiples of "
                             "stride %lld",
                             (long long)stride);
  memcpy(dims, x->dims, sizeof dims);
  dims[1] *= stride * stride;
  dims[2] /= stride;
  dims[3] /= stride;
  PLN_TRY(pln_kernel_unset(call, 0, (pln_dtype)x->dtype, 4, dims, &data));
  for (size_t i = 0; i < x->count; i++)
    memcpy((char *)data + i * size,
           (const char *)x->data + reorg_source(x->dims, stride, i) * size,
           size);
  return PLN_OK;
}

/* ------------------------------------------------------------------- boxes */

void pln_read_floats(const pln_kernel_call *call, const char *name, uint32_t n,
                     const double *fallback, pln_floats *out) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  *out = (pln_floats){.of = fallback, .count = n};
  if (a && a->kind == PLN_ATTR_FLOATS && a->count)
    *out = (pln_floats){.of = a->v.floats, .count = a->count};
  if (a && a->kind == PLN_ATTR_FLOAT)
    *out = (pln_floats){.count = 1, .one = a->v.f};
  if (!out->of)
    out->of = &out->one;
}

typedef struct priors {
  pln_floats sizes, ratios, steps, offsets;
  double high, wide; /* extents of the map */
  bool clip;
} priors;

static float limit_unit(double x, bool clip) {
  return (float)(clip ? x < 0 ? 0 : x > 1 ? 1 : x : x);
}

/* Box `k` about a position. */
static void write_prior(const priors *p, double y, double x, uint32_t k,
                        float *out) {
  bool first = k < p->sizes.count;
  double size = p->sizes.of[first ? k : 0];
  double root = first ? 1 : sqrt(p->ratios.of[k - p->sizes.count + 1]);
  double w = size * p->high / p->wide * root / 2, h = size / root / 2;
  out[0] = limit_unit(x - w, p->clip);
  out[1] = limit_unit(y - h, p->clip);
  out[2] = limit_unit(x + w, p->clip);
  out[3] = limit_unit(y + h, p->clip);
}

static bool read_priors(const pln_kernel_call *call, priors *p) {
  static const double one[] = {1}, unset[] = {-1, -1}, middle[] = {0.5, 0.5};
  pln_read_floats(call, "sizes", 1, one, &p->sizes);
  pln_read_floats(call, "ratios", 1, one, &p->ratios);
  pln_read_floats(call, "steps", 2, unset, &p->steps);
  pln_read_floats(call, "offsets", 2, middle, &p->offsets);
  p->clip = pln_kernel_int(call, "clip", 0) != 0;
  return p->sizes.count && p->ratios.count && p->steps.count == 2 &&
         p->offsets.count == 2;
}

pln_status pln_kernel_multibox_prior(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  priors p;
  void *data;
  if (x->rank != 4 || x->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (!read_priors(call, &p))
    return pln_kernel_refuse(call, "steps or offsets are not two");
  p.high = (double)x->dims[2];
  p.wide = (double)x->dims[3];
  double dy = p.steps.of[0] > 0 ? p.steps.of[0] : 1 / p.high;
  double dx = p.steps.of[1] > 0 ? p.steps.of[1] : 1 / p.wide;
  uint32_t n = p.sizes.count + p.ratios.count - 1;
  int64_t dims[3] = {1, 0, 4};
  if (__builtin_mul_overflow(x->dims[2], x->dims[3], &dims[1]) ||
      __builtin_mul_overflow(dims[1], (int64_t)n, &dims[1]))
    return pln_kernel_refuse(call, "there are too many boxes");
  PLN_TRY(pln_kernel_unset(call, 0, PLN_FLOAT32, 3, dims, &data));
  float *out = data;
  for (int64_t i = 0; i < x->dims[2]; i++)
    for (int64_t j = 0; j < x->dims[3]; j++)
      for (uint32_t k = 0; k < n; k++, out += 4)
        write_prior(&p, ((double)i + p.offsets.of[0]) * dy,
                    ((double)j + p.offsets.of[1]) * dx, k, out);
  return PLN_OK;
}

/* A box from an anchor and the predicted offsets. */
static void decode_box(const float *anchor, const float *by,
                       const pln_floats *variances, bool clip, float *out) {
  const double *v = variances->of;
  double w = (double)(anchor[2] - anchor[0]);
  double h = (double)(anchor[3] - anchor[1]);
  double x = (double)by[0] * v[0] * w + (double)(anchor[0] + anchor[2]) / 2;
  double y = (double)by[1] * v[1] * h + (double)(anchor[1] + anchor[3]) / 2;
  double half_w = exp((double)by[2] * v[2]) * w / 2;
  double half_h = exp((double)by[3] * v[3]) * h / 2;
  out[0] = limit_unit(x - half_w, clip);
  out[1] = limit_unit(y - half_h, clip);
  out[2] = limit_unit(x + half_w, clip);
  out[3] = limit_unit(y + half_h, clip);
}

/* The class of an anchor, from 1 on; 0 is the background, or too low a score.
 * Scores are `step` elements apart. */
static int64_t best_class(const float *scores, size_t step, int64_t classes,
                          float threshold, float *score) {
  int64_t best = 0;
  *score = -1;
  for (int64_t k = 1; k < classes; k++)
    if (scores[(size_t)k * step] > *score) {
      *score = scores[(size_t)k * step];
      best = k;
    }
  return *score < threshold ? 0 : best;
}

/* (scores, offsets, anchors): rows of class, score and box, and how many of
 * them are valid. */
pln_status pln_kernel_multibox_transform_loc(pln_kernel_call *call) {
  static const double usual[] = {0.1, 0.1, 0.2, 0.2};
  const pln_tensor *x = pln_kernel_arg(call, 0), *by = pln_kernel_arg(call, 1);
  const pln_tensor *anchors = pln_kernel_arg(call, 2);
  bool clip = pln_kernel_int(call, "clip", 1) != 0;
  float threshold = (float)pln_kernel_float(call, "threshold", (double)0.01f),
        score;
  pln_floats v;
  void *boxes, *counts = NULL;
  pln_read_floats(call, "variances", 4, usual, &v);
  if (x->rank != 3 || x->dtype != PLN_FLOAT32 || by->dtype != PLN_FLOAT32 ||
      anchors->dtype != PLN_FLOAT32 || v.count != 4 ||
      anchors->count != 4 * (size_t)x->dims[2] ||
      by->count != anchors->count * (size_t)x->dims[0])
    return pln_kernel_refuse(call, "scores, offsets, anchors and variances do "
                                   "not match each other");
  size_t n = (size_t)x->dims[2];
  int64_t dims[3] = {x->dims[0], x->dims[2], 6};
  PLN_TRY(pln_kernel_unset(call, 0, PLN_FLOAT32, 3, dims, &boxes));
  if (call->n_results > 1)
    PLN_TRY(pln_kernel_result(call, 1, PLN_INT32, 1, dims, &counts));
  for (size_t b = 0; b < (size_t)dims[0]; b++) {
    float *row = (float *)boxes + b * n * 6, *end = row + n * 6;
    for (size_t i = 0; i < n; i++) {
      const float *scores =
          (const float *)x->data + b * (size_t)x->dims[1] * n + i;
      int64_t class = best_class(scores, n, x->dims[1], threshold, &score);
      if (class == 0)
        continue;
      row[0] = (float)(class - 1);
      row[1] = score;
      decode_box((const float *)anchors->data + 4 * i,
                 (const float *)by->data + 4 * (b * n + i), &v, clip, row + 2);
      row += 6;
      if (counts)
        ((int32_t *)counts)[b]++;
    }
    while (row < end)
      *row++ = -1;
  }
  return PLN_OK;
}

/* ------------------------------------------------------------ valid counts */

typedef struct valid {
  size_t n, fields;
  int64_t id, score; /* fields; a negative id: none */
  float threshold;
} valid;

/* Moves the valid rows of one image to the front; returns their number. */
static int32_t move_valid(const valid *v, const float *in, float *out,
                          int32_t *indices) {
  size_t count = 0, size = v->fields * sizeof *out;
  for (size_t i = 0; i < v->n; i++) {
    const float *row = in + i * v->fields;
    if (!(row[v->score] > v->threshold) || (v->id >= 0 && !(row[v->id] >= 0)))
      continue;
    memcpy(out + count * v->fields, row, size);
    indices[count++] = (int32_t)i;
  }
  for (size_t i = count * v->fields; i < v->n * v->fields; i++)
    out[i] = -1;
  for (size_t i = count; i < v->n; i++)
    indices[i] = -1;
  return (int32_t)count;
}

/* (rows, threshold) */
pln_status pln_kernel_get_valid_counts(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *t = pln_kernel_arg(call, 1);
  valid v = {.id = pln_kernel_int(call, "id_index", 0),
             .score = pln_kernel_int(call, "score_index", 1)};
  void *counts, *rows, *indices;
  pln_composition s;
  if (call->n_results != 3 || x->rank != 3 || x->dtype != PLN_FLOAT32 ||
      t->count != 1 || x->dims[1] > INT32_MAX || v.score < 0 ||
      v.score >= x->dims[2] || v.id >= x->dims[2])
    return pln_kernel_refuse(
        call, "id_index %lld, score_index %lld or the operands are not valid",
        (long long)v.id, (long long)v.score);
  pln_composition_begin(&s, call);
  const pln_tensor *threshold = pln_compose_cast(&s, t, PLN_FLOAT32);
  v.threshold = threshold ? *(const float *)threshold->data : 0;
  PLN_TRY(pln_composition_end(&s));
  v.n = (size_t)x->dims[1];
  v.fields = (size_t)x->dims[2];
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT32, 1, x->dims, &counts));
  PLN_TRY(pln_kernel_unset(call, 1, PLN_FLOAT32, 3, x->dims, &rows));
  PLN_TRY(pln_kernel_unset(call, 2, PLN_INT32, 2, x->dims, &indices));
  for (size_t b = 0; b < (size_t)x->dims[0]; b++)
    ((int32_t *)counts)[b] = move_valid(
        &v, (const float *)x->data + b * v.n * v.fields,
        (float *)rows + b * v.n * v.fields, (int32_t *)indices + b * v.n);
  return PLN_OK;
}
