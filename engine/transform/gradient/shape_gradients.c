/* shape_gradients.c: gradients of operators that move elements, and of those
 * that make them. Called through gradients.def.
 *
 * Semantics: TVM FPrimalGradient. */

#include "op/infer/infer.h"
#include "transform/gradient/operator_gradient.h"

static pln_ref zeros(pln_gradient *g, pln_ref x) {
  return pln_unary(g, PLN_OP_ZEROS_LIKE, x);
}

void pln_gradient_reshape(pln_gradient *g) {
  g->out[0] = pln_binary(g, PLN_OP_RESHAPE_LIKE, g->grad, g->args[0]);
}

void pln_gradient_reshape_like(pln_gradient *g) {
  pln_gradient_reshape(g);
  if (g->n > 1)
    g->out[1] = zeros(g, g->args[1]);
}

/* The inverse permutation; without axes, that reverses them. */
void pln_gradient_transpose(pln_gradient *g) {
  int64_t axes[PLN_MAX_RANK], inverse[PLN_MAX_RANK];
  int32_t n = pln_gradient_ints(g, "axes", PLN_MAX_RANK, axes);
  if (n <= 0) {
    g->out[0] = pln_unary(g, PLN_OP_TRANSPOSE, g->grad);
    return;
  }
  for (int32_t i = 0; i < n; i++) {
    int64_t axis = axes[i] < 0 ? axes[i] + n : axes[i];
    if (axis < 0 || axis >= n) {
      pln_gradient_refuse(g, "an axis is out of range");
      return;
    }
    inverse[axis] = i;
  }
  pln_relay_attr attr = pln_relay_ints("axes", (uint32_t)n, inverse);
  g->out[0] =
      pln_relay_call_with(&g->r, PLN_OP_TRANSPOSE, 1, &attr, 1, &g->grad);
}

static pln_ref squeeze_axis(pln_gradient *g, pln_ref x, int64_t axis) {
  pln_relay_attr attr = pln_relay_ints("axis", 1, &axis);
  return pln_relay_call_with(&g->r, PLN_OP_SQUEEZE, 1, &attr, 1, &x);
}

void pln_gradient_expand_dims(pln_gradient *g) {
  int64_t axis = pln_gradient_int(g, "axis", 0);
  int64_t n = pln_gradient_int(g, "num_newaxis", 1);
  pln_ref x = g->grad;
  for (int64_t i = 0; i < n && g->r.status == PLN_OK; i++)
    x = squeeze_axis(g, x, axis);
  g->out[0] = x;
}

/* ------------------------------------------------------------ joined tensors
 */

static pln_ref split_at(pln_gradient *g, const pln_attr *places, int64_t axis) {
  pln_relay_attr attrs[] = {{"indices_or_sections", *places},
                            pln_relay_int("axis", axis)};
  return pln_relay_call_with(&g->r, PLN_OP_SPLIT, 2, attrs, 1, &g->grad);
}

/* Where the parts after the first begin. */
static bool find_places(pln_gradient *g, pln_type tuple, int64_t axis,
                        int64_t *places) {
  pln_engine *e = g->r.engine;
  int64_t sum = 0;
  for (uint32_t i = 0; i + 1 < pln_type_n_parts(e, tuple); i++) {
    pln_type part = pln_type_part_at(e, tuple, i);
    int32_t rank = pln_type_rank(e, part);
    int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || !PLN_DIM_IS_CONST(pln_type_dims(e, part)[at]))
      return false;
    places[i] = sum += pln_type_dims(e, part)[at];
  }
  return true;
}

void pln_gradient_concatenate(pln_gradient *g) {
  pln_engine *e = g->r.engine;
  pln_type tuple = pln_gradient_type(g, g->args[0]);
  uint32_t n = pln_type_n_parts(e, tuple);
  int64_t axis = pln_gradient_int(g, "axis", 0);
  if (g->n != 1 || pln_type_get_kind(e, tuple) != PLN_TYPE_TUPLE || n == 0) {
    pln_gradient_refuse(g, "its argument is no tuple of tensors");
    return;
  }
  int64_t *places = pln_mem_new(e, n * sizeof *places);
  if (!places) {
    g->r.status = pln_nomem(e);
    return;
  }
  pln_attr list = {.kind = PLN_ATTR_INTS, .count = n - 1, .v.ints = places};
  if (find_places(g, tuple, axis, places))
    g->out[0] = split_at(g, &list, axis);
  else
    pln_gradient_refuse(g, "the extent of a part is not known");
  pln_mem_free(e, places, n * sizeof *places);
}

static pln_ref field(pln_gradient *g, pln_ref tuple, uint32_t i) {
  pln_ref out = PLN_NONE;
  if (g->r.status == PLN_OK)
    g->r.status = pln_build_tuple_get_item(g->r.b, tuple, i, &out);
  return g->r.status == PLN_OK ? out : PLN_NONE;
}

void pln_gradient_stack(pln_gradient *g) {
  pln_engine *e = g->r.engine;
  uint32_t n = pln_type_n_parts(e, pln_gradient_type(g, g->args[0]));
  int64_t axis = pln_gradient_int(g, "axis", 0);
  pln_attr sections = {.kind = PLN_ATTR_INT, .v.i = n};
  pln_ref parts = split_at(g, &sections, axis);
  pln_ref *fields = pln_mem_new(e, (n + (size_t)1) * sizeof *fields);
  if (!fields) {
    g->r.status = pln_nomem(e);
    return;
  }
  for (uint32_t i = 0; i < n && g->r.status == PLN_OK; i++)
    fields[i] = squeeze_axis(g, field(g, parts, i), axis);
  if (g->r.status == PLN_OK)
    g->r.status = pln_build_tuple(g->r.b, n, fields, &g->out[0]);
  pln_mem_free(e, fields, (n + (size_t)1) * sizeof *fields);
}

/* --------------------------------------------------------------------- parts
 */

/* slice_mode "size": `end` has extents, -1 for all that is left. */
static bool ends_of_sizes(pln_gradient *g, int32_t n, const int64_t *begin,
                          int64_t *end) {
  int32_t rank;
  const pln_dim *shape = pln_gradient_shape(g, g->args[0], &rank);
  for (int32_t i = 0; shape && i < n; i++)
    end[i] = end[i] == -1 && i < rank ? shape[i] : begin[i] + end[i];
  return shape != NULL;
}

/* Zeros, with g where the slice was. */
void pln_gradient_strided_slice(pln_gradient *g) {
  int64_t begin[PLN_MAX_RANK], end[PLN_MAX_RANK], strides[PLN_MAX_RANK];
  int64_t axes[PLN_MAX_RANK];
  int32_t n = pln_gradient_ints(g, "begin", PLN_MAX_RANK, begin);
  int32_t m = pln_gradient_ints(g, "end", PLN_MAX_RANK, end);
  int32_t k = pln_gradient_ints(g, "strides", PLN_MAX_RANK, strides);
  if (n < 0 || n != m ||
      pln_gradient_ints(g, "axes", PLN_MAX_RANK, axes) >= 0) {
    pln_gradient_refuse(g, "begin and end must be given for all axes");
    return;
  }
  if (!strcmp(pln_gradient_text(g, "slice_mode", "end"), "size")) {
    if (!ends_of_sizes(g, n, begin, end))
      return;
    k = 0;
  }
  if (k <= 0)
    strides[0] = k = 1;
  pln_ref zero = zeros(g, g->args[0]);
  pln_ref from = pln_ints_constant(g, n, begin),
          to = pln_ints_constant(g, n, end);
  g->out[0] = pln_relay_call(&g->r, PLN_OP_STRIDED_SET, 5, zero, g->grad, from,
                             to, pln_ints_constant(g, k, strides));
}

void pln_gradient_gather_nd(pln_gradient *g) {
  pln_attr add = {.kind = PLN_ATTR_STRING, .v.s = pln_text("add")};
  pln_relay_attr mode = {"mode", add};
  pln_ref args[] = {zeros(g, g->args[0]), g->args[1], g->grad};
  g->out[0] = pln_relay_call_with(&g->r, PLN_OP_SCATTER_ND, 1, &mode, 3, args);
  g->out[1] = zeros(g, g->args[1]);
}

/* ---------------------------------------------------------------- generators
 */

static pln_ref sum_all(pln_gradient *g, pln_ref x) {
  return pln_sum_over(g, x, -1, NULL, false, false);
}

void pln_gradient_one_hot(pln_gradient *g) {
  pln_ref zero = zeros(g, g->grad);
  pln_ref on = pln_binary(g, PLN_OP_EQUAL, g->orig, g->args[1]);
  pln_ref x = pln_relay_call(&g->r, PLN_OP_WHERE, 3, on, g->grad, zero);
  pln_ref y = pln_relay_call(&g->r, PLN_OP_WHERE, 3, on, zero, g->grad);
  g->out[0] = zeros(g, g->args[0]);
  g->out[1] = pln_binary(g, PLN_OP_CAST_LIKE, sum_all(g, x), g->args[1]);
  g->out[2] = pln_binary(g, PLN_OP_CAST_LIKE, sum_all(g, y), g->args[2]);
}

static pln_relay_attr dtype_attr(const char *dtype) {
  pln_attr name = {.kind = PLN_ATTR_STRING, .v.s = pln_text(dtype)};
  return (pln_relay_attr){"dtype", name};
}

/* arange(length) of int32. */
static pln_ref count_up(pln_gradient *g) {
  pln_relay_attr int32 = dtype_attr("int32"), axis = pln_relay_int("axis", 0);
  pln_ref shape =
      pln_relay_call_with(&g->r, PLN_OP_SHAPE, 1, &int32, 1, &g->orig);
  pln_ref first[] = {shape, pln_relay_scalar(&g->r, PLN_INT32, 0)};
  pln_ref length =
      pln_relay_call_with(&g->r, PLN_OP_GATHER, 1, &axis, 2, first);
  pln_ref range[] = {pln_relay_scalar(&g->r, PLN_INT32, 0), length,
                     pln_relay_scalar(&g->r, PLN_INT32, 1)};
  return pln_relay_call_with(&g->r, PLN_OP_RANGE, 1, &int32, 3, range);
}

void pln_gradient_arange(pln_gradient *g) {
  pln_ref count = pln_binary(g, PLN_OP_CAST_LIKE, count_up(g), g->grad);
  pln_ref step = pln_binary(g, PLN_OP_MUL, count, g->grad);
  g->out[0] = pln_binary(g, PLN_OP_CAST_LIKE, sum_all(g, g->grad), g->args[0]);
  g->out[1] = zeros(g, g->args[1]);
  g->out[2] = pln_binary(g, PLN_OP_CAST_LIKE, sum_all(g, step), g->args[2]);
}
