/* non_max_suppression.c: the kernel of Relay's vision.non_max_suppression.
 * Called by op/kernel/image/non_max_suppression.c, which has the types.
 *
 * Semantics: TVM topi.vision.non_max_suppression for CPUs, which sorts stably.
 * A box whose score is not positive is neither dropped nor compared. */

#include "op/kernel/element.h"
#include "op/relay/kernel/relay_form/relay_form.h"
#include "op/relay/kernel/vision/vision.h"

typedef struct image_boxes {
  const float *data; /* of the image: rows of `width` numbers */
  size_t n, valid, width;
  int64_t *kept; /* by position: the row that is kept there, or -1 */
  pln_scored *list;
} image_boxes;

typedef struct suppression {
  int64_t score, id, corners; /* positions in a row */
  int64_t most, top_k;
  float overlap;
  bool all_classes;
  size_t polled;
} suppression;

/* Orders the valid rows by score, the top_k first ones of them. */
static void sort_rows(const suppression *p, image_boxes *b) {
  size_t keep = b->valid;
  for (size_t j = 0; j < b->valid; j++)
    b->list[j] =
        (pln_scored){b->data[j * b->width + (size_t)p->score], (uint32_t)j};
  pln_sort_scored(b->list, b->valid);
  if (p->top_k > 0 && (uint64_t)p->top_k < keep)
    keep = (size_t)p->top_k;
  for (size_t j = 0; j < b->n; j++)
    b->kept[j] = j < keep ? (int64_t)b->list[j].index : -1;
}

/* Returns true if row `a` may be dropped for row `b`, which is kept. */
static bool are_compared(const suppression *p, const float *a, const float *b) {
  if (!(b[p->score] > 0))
    return false;
  if (p->id < 0)
    return true;
  return b[p->id] >= 0 && (p->all_classes || a[p->id] == b[p->id]);
}

static bool is_dropped(const suppression *p, const image_boxes *b, size_t at) {
  const float *row = b->data + (size_t)b->kept[at] * b->width;
  for (size_t k = 0; k < at; k++) {
    if (b->kept[k] < 0)
      continue;
    const float *other = b->data + (size_t)b->kept[k] * b->width;
    if (are_compared(p, row, other) &&
        pln_box_overlap(row + p->corners, other + p->corners) >= p->overlap)
      return true;
  }
  return false;
}

static pln_status suppress_rows(pln_engine *engine, suppression *p,
                                image_boxes *b) {
  int64_t count = 0;
  sort_rows(p, b);
  for (size_t j = 0; j < b->valid && b->kept[j] >= 0; j++) {
    bool full = count == p->most;
    if (!full &&
        !(b->data[(size_t)b->kept[j] * b->width + (size_t)p->score] > 0))
      continue;
    if (full || is_dropped(p, b, j))
      b->kept[j] = -1;
    else
      count++;
    PLN_TRY(pln_poll_after(engine, &p->polled, j));
  }
  return PLN_OK;
}

static pln_status select_rows(pln_engine *engine, suppression *p,
                              image_boxes *b) {
  if (p->overlap > 0)
    return suppress_rows(engine, p, b);
  for (size_t j = 0; j < b->n; j++)
    b->kept[j] = j < b->valid ? (int64_t)j : -1;
  return PLN_OK;
}

/* ----------------------------------------------------------------- results
 */

/* The indices of the boxes that are kept, then -1; returns their number. */
static int32_t write_indices(const image_boxes *b, const int32_t *indices,
                             int32_t *out) {
  size_t n = 0;
  for (size_t j = 0; j < b->n; j++)
    if (b->kept[j] >= 0)
      out[n++] = indices[b->kept[j]];
  for (size_t j = n; j < b->n; j++)
    out[j] = -1;
  return (int32_t)n;
}

/* The rows that are kept, in place or one after the other; -1 elsewhere. */
static void write_boxes(const image_boxes *b, bool to_bottom, float *out) {
  size_t n = 0;
  for (size_t i = 0; i < b->n * b->width; i++)
    out[i] = -1;
  for (size_t j = 0; j < b->n; j++) {
    if (b->kept[j] < 0)
      continue;
    const float *row = b->data + (size_t)b->kept[j] * b->width;
    if (to_bottom && !(row[0] >= 0))
      continue;
    memcpy(out + (to_bottom ? n : j) * b->width, row, b->width * sizeof *row);
    n++;
  }
}

/* -------------------------------------------------------------------- call
 */

typedef struct nms_call {
  const pln_tensor *data, *valid, *indices;
  bool gives_indices;
} nms_call;

static pln_status read_suppression(const pln_kernel_call *call,
                                   const nms_call *c, suppression *p) {
  const pln_tensor *most = pln_kernel_arg(call, 3);
  const pln_tensor *overlap = pln_kernel_arg(call, 4);
  int64_t width = c->data->dims[2];
  *p = (suppression){.score = pln_kernel_int(call, "score_index", 1),
                     .id = pln_kernel_int(call, "id_index", 0),
                     .corners = pln_kernel_int(call, "coord_start", 2),
                     .top_k = pln_kernel_int(call, "top_k", -1),
                     .all_classes = pln_kernel_int(call, "force_suppress", 0)};
  if (!most || most->count != 1 || !pln_tensor_int(most, 0, &p->most) ||
      !overlap || overlap->count != 1)
    return pln_kernel_refuse(call, "a limit is no number");
  p->overlap = (float)pln_element_at(overlap, 0);
  if (p->score < 0 || p->score >= width || p->id >= width || p->corners < 0 ||
      p->corners > width - 4)
    return pln_kernel_refuse(call, "a box has %lld numbers", (long long)width);
  return PLN_OK;
}

static bool fits(const nms_call *c) {
  const int64_t *dims = c->data->dims;
  return c->data->rank == 3 && c->data->dtype == PLN_FLOAT32 && c->valid &&
         c->indices && c->valid->dtype == PLN_INT32 &&
         c->indices->dtype == PLN_INT32 && c->valid->rank == 1 &&
         c->valid->dims[0] == dims[0] && c->indices->rank == 2 &&
         c->indices->dims[0] == dims[0] && c->indices->dims[1] == dims[1];
}

static pln_status open_results(pln_kernel_call *call, const nms_call *c,
                               void **first, void **number) {
  const int64_t *dims = c->data->dims, one[] = {dims[0], 1};
  *number = NULL;
  if (!c->gives_indices)
    return pln_kernel_unset(call, 0, PLN_FLOAT32, 3, dims, first);
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT32, 2, dims, first));
  return pln_kernel_unset(call, 1, PLN_INT32, 2, one, number);
}

/* Image `i` of the call. */
static pln_status run_image(pln_kernel_call *call, const nms_call *c,
                            suppression *p, image_boxes *b, size_t i,
                            void *first, void *number) {
  int32_t valid = ((const int32_t *)c->valid->data)[i];
  if (valid < 0 || (size_t)valid > b->n)
    return pln_kernel_refuse(call, "%d valid boxes of %zu", valid, b->n);
  b->valid = (size_t)valid;
  b->data = (const float *)c->data->data + i * b->n * b->width;
  PLN_TRY(select_rows(call->engine, p, b));
  if (c->gives_indices)
    ((int32_t *)number)[i] =
        write_indices(b, (const int32_t *)c->indices->data + i * b->n,
                      (int32_t *)first + i * b->n);
  else
    write_boxes(b, pln_kernel_int(call, "invalid_to_bottom", 0),
                (float *)first + i * b->n * b->width);
  return PLN_OK;
}

static pln_status run_images(pln_kernel_call *call, const nms_call *c,
                             suppression *p, image_boxes *b) {
  void *first, *number;
  PLN_TRY(open_results(call, c, &first, &number));
  if (!c->data->count)
    return pln_kernel_refuse(call, "there are no boxes");
  for (size_t i = 0; i < (size_t)c->data->dims[0]; i++)
    PLN_TRY(run_image(call, c, p, b, i, first, number));
  return PLN_OK;
}

/* (boxes, number of valid ones, their indices, most, overlap). */
pln_status pln_kernel_relay_nms(pln_kernel_call *call) {
  nms_call c = {pln_kernel_arg(call, 0), pln_kernel_arg(call, 1),
                pln_kernel_arg(call, 2),
                pln_kernel_int(call, "return_indices", 1) != 0};
  suppression p;
  if (!fits(&c))
    return pln_kernel_refuse(call, "the operands do not match each other");
  PLN_TRY(read_suppression(call, &c, &p));
  image_boxes b = {.n = (size_t)c.data->dims[1],
                   .width = (size_t)c.data->dims[2]};
  size_t kept = (b.n + 1) * sizeof *b.kept, list = (b.n + 1) * sizeof *b.list;
  b.kept = pln_mem_new(call->engine, kept);
  b.list = pln_mem_new(call->engine, list);
  pln_status status =
      b.kept && b.list ? run_images(call, &c, &p, &b) : pln_nomem(call->engine);
  pln_mem_free(call->engine, b.kept, kept);
  pln_mem_free(call->engine, b.list, list);
  return status;
}
