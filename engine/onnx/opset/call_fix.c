/* call_fix.c: operator-specific conversions beyond the tables of forms.def:
 * values that depend on extents, ranks and uses.
 *
 * Called by call_form.c before the tables. Invariant: what a function here does
 * not change is left for the tables to accept or refuse. */

#include "onnx/opset/call_form.h"
#include "op/infer/infer.h"

static pln_type argument_type(const pln_opset_call *f, uint32_t i) {
  return i < f->n_args && f->args[i] != PLN_NONE
             ? f->graph->nodes[f->args[i]].type
             : 0;
}

/* Reads up to `most` known integers of an argument; PLN_NONE if unknown. */
static uint32_t read_argument(const pln_opset_call *f, uint32_t i,
                              uint32_t most, int64_t *out) {
  uint32_t n;
  if (!pln_opset_call_values(f, i, most, out, &n))
    return PLN_NONE;
  for (uint32_t k = 0; k < n; k++)
    if (!PLN_DIM_IS_CONST(out[k]))
      return PLN_NONE;
  return n;
}

static pln_status set_ints(pln_opset_call *f, uint32_t i, uint32_t n,
                           const int64_t *ints) {
  int64_t dims[1] = {n};
  pln_tensor *tensor;
  PLN_TRY(pln_tensor_from_bytes(f->engine, PLN_INT64, 1, dims, ints,
                                n * sizeof *ints, &tensor));
  pln_opset_call_set(f, i, tensor);
  return PLN_OK;
}

/* ------------------------------------------------------------------- split */

/* Computes the extents of the parts from num_outputs: all but the last are
 * equal. */
static pln_status spell_parts(pln_opset_call *f, uint32_t parts) {
  pln_type type = argument_type(f, 0);
  int64_t axis = pln_opset_call_int(f, "axis", 0), sizes[PLN_MAX_RANK];
  int32_t rank = pln_type_rank(f->engine, type);
  axis += axis < 0 ? rank : 0;
  if (rank < 0 || axis < 0 || axis >= rank)
    return PLN_OK;
  pln_dim extent = pln_type_dims(f->engine, type)[axis];
  if (!PLN_DIM_IS_CONST(extent) || parts > PLN_COUNT(sizes))
    return PLN_OK;
  int64_t size = (extent + parts - 1) / parts;
  PLN_TRY(pln_opset_call_without_attr(f, "num_outputs"));
  if (extent % parts == 0)
    return PLN_OK;
  for (uint32_t i = 0; i + 1 < parts; i++)
    sizes[i] = size;
  sizes[parts - 1] = extent - size * (parts - 1);
  pln_attr split = {.kind = PLN_ATTR_INTS, .count = parts, .v.ints = sizes};
  return pln_opset_call_with_attr(f, "split", split);
}

/* Since opset 18 one of split and num_outputs is required. */
static pln_status fix_split(pln_opset_call *f) {
  uint32_t parts = f->n_results ? f->n_results : 1;
  bool sized = pln_attrs_find(f->engine, f->attrs, "split") ||
               pln_opset_call_has_arg(f, 1);
  bool counted = pln_attrs_find(f->engine, f->attrs, "num_outputs") != NULL;
  bool knows = f->form.schema && pln_opset_call_knows(f, "num_outputs");
  if (counted && !knows)
    return spell_parts(f, parts);
  if (sized || counted || !knows)
    return PLN_OK;
  return pln_opset_call_with_attr(
      f, "num_outputs", (pln_attr){.kind = PLN_ATTR_INT, .v.i = parts});
}

/* -------------------------------------------------------------- reductions */

/* A reduction over listed axes does not depend on the meaning of an empty list;
 * an empty list that means all axes is removed. */
static pln_status fix_reduction(pln_opset_call *f) {
  const pln_attr *axes = pln_attrs_find(f->engine, f->attrs, "axes");
  const pln_tensor *t = pln_opset_call_constant(f, 1);
  bool noop = pln_opset_call_int(f, "noop_with_empty_axes", 0) != 0;
  if (pln_opset_call_knows(f, "noop_with_empty_axes"))
    return PLN_OK;
  if ((axes && axes->count) || (t && pln_tensor_count(t)))
    return noop ? pln_opset_call_without_attr(f, "noop_with_empty_axes")
                : PLN_OK;
  if (noop)
    return PLN_OK;
  if (t)
    pln_opset_call_set(f, 1, NULL);
  return axes ? pln_opset_call_without_attr(f, "axes") : PLN_OK;
}

/* ----------------------------------------------------------------- shapes */

/* *out is true if `b` is provably 0 whenever `a` is: a multiple of `a`, or `a`
 * divided by a number. */
static pln_status is_zero_with(const pln_opset_call *f, pln_dim a, pln_dim b,
                               bool *out) {
  pln_dim times, back;
  *out = a == b;
  for (int side = 0; side < 2 && !*out; side++) {
    pln_dim large = side ? a : b, small = side ? b : a;
    PLN_TRY(pln_dim_binary(f->engine, PLN_DIM_FLOORDIV, large, small, &times));
    if (times == PLN_DIM_UNKNOWN ||
        (side && (!PLN_DIM_IS_CONST(times) || times <= 0)))
      continue;
    PLN_TRY(pln_dim_binary(f->engine, PLN_DIM_MUL, small, times, &back));
    *out = back == large;
  }
  return PLN_OK;
}

/* Before opset 14 a 0 always copies an extent. That is the same if no extent is
 * 0, or if a target 0 implies that the copied extent is 0. */
static pln_status fix_reshape(pln_opset_call *f) {
  pln_dim dims[PLN_MAX_RANK];
  pln_type type = argument_type(f, 0);
  int32_t rank = pln_type_rank(f->engine, type);
  uint32_t n;
  bool same = true;
  if (pln_opset_call_knows(f, "allowzero") ||
      !pln_opset_call_int(f, "allowzero", 0) ||
      !pln_opset_call_values(f, 1, PLN_COUNT(dims), dims, &n))
    return PLN_OK;
  for (uint32_t i = 0; i < n && same; i++) {
    if (PLN_DIM_IS_CONST(dims[i]) ? dims[i] != 0
                                  : pln_dim_lower_bound(f->engine, dims[i]) > 0)
      continue;
    same = dims[i] != PLN_DIM_UNKNOWN && (int32_t)i < rank;
    if (same)
      PLN_TRY(
          is_zero_with(f, dims[i], pln_type_dims(f->engine, type)[i], &same));
  }
  return same ? pln_opset_call_without_attr(f, "allowzero") : PLN_OK;
}

/* Before opset 18 all axes are padded. */
static pln_status fix_pad(pln_opset_call *f) {
  enum { WITH_AXES = 18 };
  int64_t axes[PLN_MAX_RANK], pads[2 * PLN_MAX_RANK];
  int64_t all[2 * PLN_MAX_RANK] = {0};
  if (f->opset >= WITH_AXES || !pln_opset_call_has_arg(f, 3))
    return PLN_OK;
  int32_t rank = pln_type_rank(f->engine, argument_type(f, 0));
  uint32_t n = read_argument(f, 3, PLN_MAX_RANK, axes);
  if (rank < 0 || rank > PLN_MAX_RANK || n == PLN_NONE ||
      read_argument(f, 1, 2 * PLN_MAX_RANK, pads) != 2 * n)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++) {
    int64_t axis = axes[i] + (axes[i] < 0 ? rank : 0);
    if (axis < 0 || axis >= rank)
      return PLN_OK;
    all[axis] = pads[i];
    all[rank + axis] = pads[n + i];
  }
  PLN_TRY(set_ints(f, 1, 2 * (uint32_t)rank, all));
  pln_opset_call_set(f, 3, NULL);
  return PLN_OK;
}

/* ------------------------------------------------------------------ resize */

/* Returns true if all scales are constant and at least (or at most) 1. */
static bool scales_are(const pln_opset_call *f, uint32_t i, bool at_least) {
  const pln_tensor *t = pln_opset_call_constant(f, i);
  const void *data;
  if (!t || pln_tensor_dtype(t) != PLN_FLOAT32 ||
      pln_tensor_data(t, &data) != PLN_OK)
    return false;
  for (size_t k = 0; k < pln_tensor_count(t); k++) {
    float scale;
    size_t at = pln_tensor_is_splat(t) ? 0 : k;
    memcpy(&scale, (const char *)data + at * sizeof scale, sizeof scale);
    if (at_least ? !(scale >= 1) : !(scale <= 1))
      return false;
  }
  return true;
}

static pln_status set_nearest(pln_opset_call *f, const char *mode) {
  return pln_opset_call_with_attr(
      f, "nearest_mode",
      (pln_attr){.kind = PLN_ATTR_STRING, .v.s = pln_text(mode)});
}

static bool is_nearest(const pln_opset_call *f) {
  pln_attr mode;
  return !pln_opset_call_attr(f, "mode", &mode) ||
         pln_slice_is(mode.v.s, "nearest");
}

static bool nearest_is(const pln_opset_call *f, const char *mode) {
  pln_attr a;
  return pln_opset_call_attr(f, "nearest_mode", &a) &&
         pln_slice_is(a.v.s, mode);
}

/* Opset 10 rounds up when it shrinks and down otherwise; newer ones have an
 * attribute. */
static pln_status move_scales_on(pln_opset_call *f) {
  pln_ref x = f->args[0], scales = f->args[1];
  if (!is_nearest(f))
    PLN_TRY(pln_opset_call_without_attr(f, "nearest_mode"));
  else if (scales_are(f, 1, true))
    PLN_TRY(set_nearest(f, "floor"));
  else if (scales_are(f, 1, false))
    PLN_TRY(set_nearest(f, "ceil"));
  pln_opset_call_set(f, 2, NULL);
  f->few[0] = x;
  f->few[2] = scales;
  f->few[1] = PLN_NONE;
  return PLN_OK;
}

static pln_status move_scales_back(pln_opset_call *f) {
  pln_ref scales = f->n_args > 2 ? f->args[2] : PLN_NONE;
  if (pln_opset_call_has_arg(f, 3) || scales == PLN_NONE)
    return PLN_OK;
  bool floor = nearest_is(f, "floor") && scales_are(f, 2, true);
  bool ceil = nearest_is(f, "ceil") && scales_are(f, 2, false);
  if (is_nearest(f) && !floor && !ceil)
    return PLN_OK;
  pln_opset_call_set(f, 1, NULL);
  f->few[1] = scales;
  f->n_args = 2;
  return set_nearest(f, "simple");
}

static pln_status fix_resize(pln_opset_call *f) {
  enum { WITH_REGIONS = 11 };
  if (f->opset >= WITH_REGIONS && f->n_args == 2)
    return move_scales_on(f);
  if (f->opset < WITH_REGIONS && f->n_args > 2)
    return move_scales_back(f);
  return PLN_OK;
}

/* ------------------------------------------------------------------ others */

/* The value of the mask in inference does not matter if the mask is unused. */
static pln_status fix_dropout(pln_opset_call *f) {
  if (f->n_used > 1)
    return PLN_OK;
  const pln_attr *implied = pln_attrs_find(f->engine, f->form.implied, "mask");
  const pln_attr *mask = pln_attrs_find(f->engine, f->attrs, "mask");
  if (implied && (!mask || mask->v.i != implied->v.i))
    return pln_opset_call_with_attr(f, "mask", *implied);
  return !implied && mask ? pln_opset_call_without_attr(f, "mask") : PLN_OK;
}

/* ONNX has k as a vector of one element. */
static pln_status fix_top_k(pln_opset_call *f) {
  int64_t k;
  if (pln_type_rank(f->engine, argument_type(f, 1)) != 0)
    return PLN_OK;
  if (read_argument(f, 1, 1, &k) == 1)
    return set_ints(f, 1, 1, &k);
  pln_opset_call_refuse(f, "'k' is a scalar, which must be constant");
  return PLN_OK;
}

/* A single scale has no axis. */
static pln_status fix_quantize(pln_opset_call *f) {
  if (pln_opset_call_knows(f, "axis") ||
      pln_type_rank(f->engine, argument_type(f, 1)) != 0)
    return PLN_OK;
  return pln_attrs_find(f->engine, f->attrs, "axis")
             ? pln_opset_call_without_attr(f, "axis")
             : PLN_OK;
}

pln_status pln_opset_call_fix(pln_opset_call *f) {
  switch (f->op) {
  case PLN_OP_SPLIT: return fix_split(f);
  case PLN_OP_REDUCE_SUM:
  case PLN_OP_REDUCE_MEAN:
  case PLN_OP_REDUCE_MAX:
  case PLN_OP_REDUCE_MIN:
  case PLN_OP_REDUCE_PROD:
  case PLN_OP_REDUCE_L1:
  case PLN_OP_REDUCE_L2:
  case PLN_OP_REDUCE_LOG_SUM:
  case PLN_OP_REDUCE_LOG_SUM_EXP:
  case PLN_OP_REDUCE_SUM_SQUARE: return fix_reduction(f);
  case PLN_OP_RESHAPE: return fix_reshape(f);
  case PLN_OP_PAD: return fix_pad(f);
  case PLN_OP_RESIZE: return fix_resize(f);
  case PLN_OP_DROPOUT: return fix_dropout(f);
  case PLN_OP_TOP_K: return fix_top_k(f);
  case PLN_OP_QUANTIZE_LINEAR:
  case PLN_OP_DEQUANTIZE_LINEAR: return fix_quantize(f);
  default: return PLN_OK;
  }
}
