/* col2im.c: col2im: adds blocks (columns) up to an image. Called through
 * ops.def; the type is in infer/conv.c. */

#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/pool/sliding_window.h"

/* The blocks of an image, over all spatial axes. */
typedef struct blocks {
  uint32_t space;
  pln_sliding_window axis[PLN_MAX_RANK];
  size_t image, block,
      count; /* elements of the image, of a block; number of blocks */
} blocks;

static int64_t item(const pln_kernel_call *call, const char *name, uint32_t i,
                    int64_t fallback) {
  pln_list list = pln_kernel_list(call, PLN_NONE, name);
  return i < list.count ? list.ints[i] : fallback;
}

static pln_status read_axis(const pln_kernel_call *call, uint32_t space,
                            uint32_t i, pln_sliding_window *a) {
  pln_list image = pln_kernel_list(call, 1, NULL);
  pln_list block = pln_kernel_list(call, 2, NULL);
  *a = (pln_sliding_window){.in = pln_list_at(&image, i),
                            .window = pln_list_at(&block, i),
                            .stride = item(call, "strides", i, 1),
                            .dilation = item(call, "dilations", i, 1),
                            .before = item(call, "pads", i, 0),
                            .after = item(call, "pads", space + i, 0)};
  const struct {
    int64_t value, least;
  } all[] = {{a->in, 0},     {a->before, 0}, {a->after, 0},
             {a->window, 1}, {a->stride, 1}, {a->dilation, 1}};
  for (uint32_t k = 0; k < PLN_COUNT(all); k++)
    if (all[k].value < all[k].least || all[k].value > INT32_MAX)
      return pln_kernel_refuse(call, "axis %u: %lld is not valid", i,
                               (long long)all[k].value);
  a->reach = (a->window - 1) * a->dilation + 1;
  int64_t room = a->in + a->before + a->after - a->reach;
  if (room < 0)
    return pln_kernel_refuse(call, "a block of %lld is larger than %lld",
                             (long long)a->reach, (long long)a->in);
  a->out = room / a->stride + 1;
  return PLN_OK;
}

static pln_status read_blocks(const pln_kernel_call *call, blocks *b) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_list image = pln_kernel_list(call, 1, NULL);
  pln_list block = pln_kernel_list(call, 2, NULL);
  *b = (blocks){.space = image.count, .block = 1, .count = 1, .image = 1};
  if (image.count != block.count || image.count < 1 ||
      image.count > PLN_MAX_RANK - 2 || x->rank != 3)
    return pln_kernel_refuse(call, "the blocks do not match the image");
  for (uint32_t i = 0; i < b->space; i++) {
    pln_sliding_window *a = &b->axis[i];
    PLN_TRY(read_axis(call, b->space, i, a));
    if (__builtin_mul_overflow(b->block, (size_t)a->window, &b->block) ||
        __builtin_mul_overflow(b->image, (size_t)a->in, &b->image) ||
        __builtin_mul_overflow(b->count, (size_t)a->out, &b->count))
      return pln_kernel_refuse(call, "the image is too large");
  }
  if ((uint64_t)x->dims[2] != b->count || (uint64_t)x->dims[1] % b->block != 0)
    return pln_kernel_refuse(call,
                             "%lld x %lld elements are not %zu blocks "
                             "of %zu",
                             (long long)x->dims[1], (long long)x->dims[2],
                             b->count, b->block);
  return PLN_OK;
}

/* Advances to the next index below the extents. */
static void next(int64_t *at, const blocks *b, bool taps) {
  for (uint32_t i = b->space; i-- > 0;) {
    if (++at[i] < (taps ? b->axis[i].window : b->axis[i].out))
      return;
    at[i] = 0;
  }
}

/* The position of tap `tap` of the block at `at`; false in the padding. */
static bool find_place(const blocks *b, const int64_t *tap, const int64_t *at,
                       size_t *place) {
  *place = 0;
  for (uint32_t i = 0; i < b->space; i++) {
    const pln_sliding_window *a = &b->axis[i];
    int64_t x = at[i] * a->stride + tap[i] * a->dilation - a->before;
    if (x < 0 || x >= a->in)
      return false;
    *place = *place * (size_t)a->in + (size_t)x;
  }
  return true;
}

/* One channel of one image. */
static void add_channel(const blocks *b, const pln_tensor *x, size_t from,
                        pln_tensor *out, size_t to) {
  int64_t tap[PLN_MAX_RANK] = {0};
  size_t done = 0;
  for (size_t t = 0; t < b->block; t++) {
    if (pln_is_stopped_after(x->engine, &done, 8 * b->count))
      return;
    int64_t at[PLN_MAX_RANK] = {0};
    for (size_t k = 0; k < b->count; k++, from++) {
      size_t place;
      if (find_place(b, tap, at, &place))
        pln_element_set(out, to + place,
                        pln_element_at(out, to + place) +
                            pln_element_at(x, from));
      next(at, b, false);
    }
    next(tap, b, true);
  }
}

static pln_status col2im(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t dims[PLN_MAX_RANK];
  blocks b;
  void *data;
  if (!pln_is_float32_or_64(x))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  PLN_TRY(read_blocks(call, &b));
  dims[0] = x->dims[0];
  dims[1] = x->dims[1] / (int64_t)b.block;
  for (uint32_t i = 0; i < b.space; i++)
    dims[i + 2] = b.axis[i].in;
  PLN_TRY(pln_kernel_result(call, 0, (pln_dtype)x->dtype, b.space + 2, dims,
                            &data));
  for (size_t i = 0; i < (size_t)dims[0] * (size_t)dims[1] && x->count; i++) {
    PLN_TRY(pln_poll(call->engine));
    add_channel(&b, x, i * b.block * b.count, call->results[0], i * b.image);
  }
  return PLN_OK;
}

pln_status pln_kernel_col2im(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", col2im);
}
