/* data_layout.c: parses layouts (see data_layout.h), and the operator
 * layout_transform, which copies elements from one layout to another. */

#include "op/relay/data_layout.h"

#include <stdio.h>

#include "op/kernel/strided.h"

/* ------------------------------------------------------------------ reading */

static bool has_axis(const pln_data_layout *l, char letter) {
  for (int32_t i = 0; i < l->rank; i++)
    if (l->letter[i] == letter && !l->factor[i])
      return true;
  return false;
}

/* An axis is written once, but may have several inner parts. */
static bool add_axis(pln_data_layout *l, char letter, int64_t factor) {
  if (l->rank == PLN_LAYOUT_AXES || (!factor && has_axis(l, letter)))
    return false;
  l->letter[l->rank] = letter;
  l->factor[l->rank++] = factor;
  return true;
}

/* The inner parts of all axes fit in 32 bits together. */
static bool is_small(const pln_data_layout *l) {
  int64_t inner = 1;
  for (int32_t i = 0; i < l->rank; i++) {
    inner *= l->factor[i] ? l->factor[i] : 1;
    if (inner > INT32_MAX)
      return false;
  }
  return true;
}

bool pln_data_layout_read(pln_slice text, pln_data_layout *out) {
  int64_t factor = 0;
  *out = (pln_data_layout){0};
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    bool good = false;
    if (c >= '0' && c <= '9' && factor < INT32_MAX / 10) {
      factor = factor * 10 + (c - '0');
      good = factor > 0;
    } else if (c >= 'A' && c <= 'Z') {
      good = factor == 0 && add_axis(out, c, 0);
    } else if (c >= 'a' && c <= 'z') {
      good = factor > 0 && add_axis(out, (char)(c - 'a' + 'A'), factor);
      factor = 0;
    }
    if (!good)
      return false;
  }
  for (int32_t i = 0; i < out->rank; i++)
    if (!has_axis(out, out->letter[i]))
      return false;
  return factor == 0 && is_small(out);
}

pln_slice pln_data_layout_write(const pln_data_layout *layout, char *text) {
  size_t size = 0;
  for (int32_t i = 0; i < layout->rank; i++) {
    char letter = layout->letter[i];
    if (layout->factor[i])
      size +=
          (size_t)snprintf(text + size, PLN_LAYOUT_TEXT - size, "%lld%c",
                           (long long)layout->factor[i], letter - 'A' + 'a');
    else
      text[size++] = letter;
  }
  return (pln_slice){text, size};
}

pln_status pln_data_layout_of(const pln_infer *call, const char *name,
                              const char *fallback, pln_data_layout *out) {
  pln_slice text = pln_attrs_string(call->engine, call->attrs, name, "");
  text = text.size ? text : pln_text(fallback);
  if (pln_data_layout_read(text, out))
    return PLN_OK;
  return pln_call_error(call, "%s '%.*s' is not a layout", name,
                        (int)(text.size < 40 ? text.size : 40), text.data);
}

/* ------------------------------------------------------------------- shapes */

pln_status pln_data_layout_extent(const pln_infer *call,
                                  const pln_data_layout *layout,
                                  const pln_dim *dims, char letter,
                                  pln_dim *out, bool *found) {
  *out = 1;
  *found = false;
  for (int32_t i = 0; i < layout->rank; i++)
    if (layout->letter[i] == letter) {
      *found = true;
      PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, *out,
                            layout->factor[i] ? layout->factor[i] : dims[i],
                            out));
    }
  return PLN_OK;
}

int64_t pln_data_layout_inner(const pln_data_layout *layout, char letter) {
  int64_t inner = 1;
  for (int32_t i = 0; i < layout->rank; i++)
    if (layout->letter[i] == letter && layout->factor[i])
      inner *= layout->factor[i];
  return inner;
}

pln_status pln_data_layout_convert(const pln_infer *call,
                                   const pln_data_layout *from,
                                   const pln_shape *in,
                                   const pln_data_layout *to, pln_shape *out) {
  bool found;
  pln_shape_ranked(out, to->rank);
  for (int32_t i = 0; i < to->rank; i++) {
    int64_t inner = pln_data_layout_inner(to, to->letter[i]);
    pln_dim extent;
    PLN_TRY(pln_data_layout_extent(call, from, in->dims, to->letter[i], &extent,
                                   &found));
    if (to->factor[i])
      extent = to->factor[i];
    else if (inner > 1 && PLN_DIM_IS_CONST(extent))
      extent = extent / inner + (extent % inner != 0);
    else if (inner > 1)
      PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, extent, inner, &extent));
    out->dims[i] = extent;
  }
  return PLN_OK;
}

/* --------------------------------------------------------- layout_transform */

pln_status pln_infer_layout_transform(pln_infer *call) {
  pln_data_layout from, to;
  pln_shape in, out;
  PLN_TRY(pln_data_layout_of(call, "src_layout", "", &from));
  PLN_TRY(pln_data_layout_of(call, "dst_layout", "", &to));
  PLN_TRY(pln_arg_expect_rank(call, 0, from.rank));
  pln_arg_shape(call, 0, &in);
  for (int32_t i = 0; i < from.rank; i++)
    if (!has_axis(&to, from.letter[i]))
      return pln_call_error(call, "dst_layout has no axis %c", from.letter[i]);
  if (in.rank < 0)
    pln_shape_ranked(&in, from.rank);
  PLN_TRY(pln_data_layout_convert(call, &from, &in, &to, &out));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* In "1N32h3w" the numbers are the extents of the result. */
pln_status pln_infer_scheduled_layout(pln_infer *call) {
  pln_slice text =
      pln_attrs_string(call->engine, call->attrs, "dst_layout", "");
  pln_shape out = {.rank = 0};
  int64_t extent = 0;
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    if (c >= '0' && c <= '9' && extent < INT32_MAX) {
      extent = extent * 10 + (c - '0');
    } else if (((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) &&
               out.rank < PLN_MAX_RANK) {
      if (extent > 0)
        out.dims[out.rank++] = extent;
      extent = 0;
    } else {
      return pln_call_error(call, "dst_layout '%.*s' is not a layout",
                            (int)(text.size < 80 ? text.size : 80), text.data);
    }
  }
  if (out.rank == 0)
    return pln_call_error(call, "dst_layout is missing");
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* A part of an axis that is contiguous in both layouts. Parts are listed from
 * the outermost in. */
typedef struct layout_part {
  int64_t extent;
  int64_t from, to; /* strides in elements */
} layout_part;

/* The stride of the part that begins at element `at` of an axis. The inner
 * parts follow one another from the outermost in. */
static int64_t step_of(const pln_data_layout *l, const int64_t *steps,
                       char letter, int64_t at) {
  int64_t size = 1, outer = 0;
  for (int32_t i = l->rank - 1; i >= 0; i--) {
    if (l->letter[i] != letter)
      continue;
    if (!l->factor[i])
      outer = steps[i];
    else if (at < size * l->factor[i])
      return steps[i] * (at / size);
    else
      size *= l->factor[i];
  }
  return outer * (at / size);
}

/* The elements at which parts of an axis begin, in ascending order. */
typedef struct part_starts {
  uint32_t n;
  int64_t at[2 * PLN_LAYOUT_AXES + 2];
} part_starts;

static void add_start(part_starts *s, int64_t at) {
  uint32_t i = s->n;
  while (i > 0 && s->at[i - 1] > at)
    i--;
  if (i > 0 && s->at[i - 1] == at)
    return;
  memmove(s->at + i + 1, s->at + i, (s->n++ - i) * sizeof *s->at);
  s->at[i] = at;
}

static void add_inner_starts(part_starts *s, const pln_data_layout *l,
                             char letter) {
  int64_t size = 1;
  for (int32_t i = l->rank - 1; i >= 0; i--)
    if (l->letter[i] == letter && l->factor[i])
      add_start(s, size *= l->factor[i]);
}

/* Splits an axis of `extent` elements where a layout does; false if the parts
 * do not divide each other. */
static bool split_layout_axis(const pln_data_layout *from,
                              const int64_t *from_steps,
                              const pln_data_layout *to,
                              const int64_t *to_steps, char letter,
                              int64_t extent, pln_strided *view) {
  part_starts s = {.n = 0};
  add_start(&s, 1);
  add_inner_starts(&s, from, letter);
  add_inner_starts(&s, to, letter);
  for (uint32_t i = s.n; i-- > 0;) {
    int64_t end = i + 1 < s.n ? s.at[i + 1] : extent;
    if (end % s.at[i])
      return false;
    uint32_t k = view->rank++;
    view->dims[k] = end / s.at[i];
    view->from[k] = step_of(from, from_steps, letter, s.at[i]);
    view->to[k] = step_of(to, to_steps, letter, s.at[i]);
    if (view->dims[k] == 1)
      view->from[k] = view->to[k] = 0;
  }
  return true;
}

static bool read_layouts(const pln_kernel_call *call, pln_data_layout *from,
                         pln_data_layout *to) {
  const pln_engine *e = call->engine;
  return pln_data_layout_read(
             pln_attrs_string(e, call->attrs, "src_layout", ""), from) &&
         pln_data_layout_read(
             pln_attrs_string(e, call->attrs, "dst_layout", ""), to) &&
         pln_kernel_arg(call, 0)->rank == (uint32_t)from->rank;
}

/* Computes the result's dims and the loop over its parts; false if blocks would
 * need padding. */
static bool plan_transform(const pln_tensor *x, const pln_data_layout *from,
                           const pln_data_layout *to, int64_t *dims,
                           pln_strided *view) {
  int64_t from_steps[PLN_LAYOUT_AXES], to_steps[PLN_LAYOUT_AXES];
  int64_t extents[26] = {0};
  for (int32_t i = 0; i < from->rank; i++)
    if (!from->factor[i])
      extents[from->letter[i] - 'A'] =
          x->dims[i] * pln_data_layout_inner(from, from->letter[i]);
    else if (x->dims[i] != from->factor[i])
      return false;
  for (int32_t i = 0; i < to->rank; i++) {
    int64_t inner = pln_data_layout_inner(to, to->letter[i]);
    int64_t extent = extents[to->letter[i] - 'A'];
    dims[i] = to->factor[i] ? to->factor[i] : extent / inner;
    if (extent == 0 || extent % inner)
      return false;
  }
  pln_dense_strides((uint32_t)from->rank, x->dims, from_steps);
  pln_dense_strides((uint32_t)to->rank, dims, to_steps);
  for (int32_t i = 0; i < to->rank; i++)
    if (!to->factor[i] &&
        !split_layout_axis(from, from_steps, to, to_steps, to->letter[i],
                           extents[to->letter[i] - 'A'], view))
      return false;
  return true;
}

pln_status pln_kernel_layout_transform(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_data_layout from, to;
  int64_t dims[PLN_LAYOUT_AXES];
  pln_strided view = {0};
  pln_strided_result moved;
  if (!read_layouts(call, &from, &to) ||
      !plan_transform(x, &from, &to, dims, &view))
    return pln_kernel_refuse(call, "the layouts do not match the operand");
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype,
                                   (uint32_t)to.rank, dims, &moved));
  if (moved.count != x->count)
    return pln_strided_result_end(
        &moved,
        pln_kernel_refuse(call, "the layouts do not match the operand"));
  if (moved.count)
    pln_strided_copy(call->engine, moved.data, x->data, moved.size, &view);
  return pln_strided_result_end(&moved, PLN_OK);
}
