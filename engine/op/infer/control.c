/* control.c: type inference of operators that call nested functions: loop,
 * scan, scan_batches, sequence_map. Called through ops.def. The function is the
 * last operand; its type gives the results of one iteration. */

#include "ir/graph/describe.h"
#include "ir/infer/apply.h"
#include "op/infer/infer.h"

/* The types of the results of one iteration; n is 0 if unknown. */
typedef struct loop_body {
  pln_type result;
  uint32_t n;
} loop_body;

static loop_body loop_body_type(const pln_infer *call) {
  const pln_engine *e = call->engine;
  pln_type f = pln_arg_type(call, call->n_args - 1);
  loop_body r = {0, 0};
  if (pln_type_get_kind(e, f) != PLN_TYPE_FUNC)
    return r;
  r.result = pln_type_part_at(e, f, pln_type_n_parts(e, f) - 1);
  bool many = pln_type_get_kind(e, r.result) == PLN_TYPE_TUPLE;
  r.n = many ? pln_type_n_parts(e, r.result) : r.result ? 1 : 0;
  return r;
}

static pln_type part_of(const pln_infer *call, const loop_body *r, uint32_t i) {
  if (i >= r->n)
    return 0;
  return pln_type_get_kind(call->engine, r->result) == PLN_TYPE_TUPLE
             ? pln_type_part_at(call->engine, r->result, i)
             : r->result;
}

/* The type of parameter `i` of the nested function; 0 if unknown. */
static pln_type param_of(const pln_infer *call, uint32_t i) {
  const pln_engine *e = call->engine;
  pln_type f = pln_arg_type(call, call->n_args - 1);
  if (pln_type_get_kind(e, f) != PLN_TYPE_FUNC ||
      i + 1 >= pln_type_n_parts(e, f))
    return 0;
  return pln_type_part_at(e, f, i);
}

static pln_status refuse_round(const pln_infer *call, uint32_t arg,
                               pln_type param, pln_type type) {
  pln_description takes, got;
  return pln_arg_error(call, arg, "each iteration takes %s, got %s",
                       pln_describe_type(call->engine, param, &takes),
                       pln_describe_type(call->engine, type, &got));
}

/* Checks that operand `arg`, of type `type` in an iteration, fits the
 * function's parameter `i`. */
static pln_status enters(const pln_infer *call, uint32_t arg, uint32_t i,
                         pln_type type) {
  pln_type param = param_of(call, i), both;
  bool fits = true;
  if (type && param && type != param)
    PLN_TRY(pln_type_unify(call->engine, param, type, &both, &fits));
  return fits ? PLN_OK : refuse_round(call, arg, param, type);
}

/* The same if extents may change from iteration to iteration and values may
 * become optionals. */
static pln_status enters_loosely(const pln_infer *call, uint32_t arg,
                                 uint32_t i) {
  const pln_engine *e = call->engine;
  pln_type type = pln_arg_type(call, arg), param = param_of(call, i);
  if (pln_type_get_kind(e, type) != PLN_TYPE_TENSOR ||
      pln_type_get_kind(e, param) != PLN_TYPE_TENSOR)
    return PLN_OK;
  pln_dtype a = pln_type_dtype(e, type), b = pln_type_dtype(e, param);
  int32_t m = pln_type_rank(e, type), n = pln_type_rank(e, param);
  if ((a == b || !a || !b) && (m == n || m < 0 || n < 0))
    return PLN_OK;
  return refuse_round(call, arg, param, type);
}

/* The type of an optional that may be present from the first iteration on. */
static pln_type first_type(const pln_infer *call, uint32_t arg, pln_type each) {
  const pln_engine *e = call->engine;
  pln_type type = pln_arg_type(call, arg);
  bool unwrapped = pln_type_get_kind(e, type) == PLN_TYPE_OPTIONAL && each &&
                   pln_type_get_kind(e, each) != PLN_TYPE_OPTIONAL;
  return unwrapped ? pln_type_part_at(e, type, 0) : type;
}

/* An iteration that returns extent k of its parameter as extent k keeps the
 * extent that the initial value has. *each is the type with such extents. */
static pln_status keep_extents(const pln_infer *call, pln_type param,
                               pln_type first, pln_type *each) {
  const pln_engine *e = call->engine;
  int32_t rank = pln_type_rank(e, *each);
  if (rank < 1 || rank > PLN_MAX_RANK || pln_type_rank(e, param) != rank ||
      pln_type_rank(e, first) != rank)
    return PLN_OK;
  pln_dim dims[PLN_MAX_RANK];
  for (int32_t k = 0; k < rank; k++) {
    pln_dim dim = pln_type_dims(e, *each)[k];
    bool kept = dim != PLN_DIM_UNKNOWN && dim == pln_type_dims(e, param)[k];
    dims[k] = kept ? pln_type_dims(e, first)[k] : dim;
  }
  return pln_type_tensor(call->engine, pln_type_dtype(e, *each), rank, dims,
                         each);
}

/* The type of a carried value, parameter `param` of the function, is what its
 * initial value and every iteration have in common. */
static pln_status carried(pln_infer *call, uint32_t i, uint32_t arg,
                          pln_type param, pln_type each) {
  bool conflict = false;
  if (i >= pln_call_n_results(call) || pln_arg_absent(call, arg))
    return PLN_OK;
  pln_type first = first_type(call, arg, each);
  PLN_TRY(keep_extents(call, param, first, &each));
  PLN_TRY(
      pln_type_join(call->engine, first, each, &call->results[i], &conflict));
  if (conflict)
    return pln_arg_error(call, arg,
                         "its dtype changes from iteration to iteration");
  return PLN_OK;
}

/* Result `i` stacks the results of all iterations along a new axis. */
static pln_status stacked(pln_infer *call, uint32_t i, pln_type each,
                          int64_t axis, pln_dim extent) {
  const pln_engine *e = call->engine;
  int32_t rank = pln_type_rank(e, each), at = 0;
  pln_shape shape;
  pln_shape_ranked(&shape, rank < 0 ? -1 : (int64_t)rank + 1);
  if (shape.rank >= 0)
    PLN_TRY(pln_call_axis(call, axis, shape.rank, &at));
  for (int32_t k = 0, from = 0; k < shape.rank; k++)
    shape.dims[k] = k == at ? extent : pln_type_dims(e, each)[from++];
  return pln_result_tensor(call, i, pln_type_dtype(e, each), &shape);
}

/* Operands: trip count, condition, carried values, body. Results of the body:
 * condition, carried values, values to stack. */
pln_status pln_infer_loop(pln_infer *call) {
  loop_body r = loop_body_type(call);
  uint32_t n = call->n_args < 3 ? 0 : call->n_args - 3;
  pln_dtype condition = pln_arg_dtype(call, 1);
  if (condition && condition != PLN_BOOL)
    return pln_arg_error(call, 1, "expected bool, got %s",
                         pln_dtype_name(condition));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(enters_loosely(call, i + 2, i + 2));
  if (r.n == 0)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(carried(call, i, i + 2, param_of(call, i + 2),
                    part_of(call, &r, i + 1)));
  for (uint32_t i = n; i < pln_call_n_results(call) && i + 1 < r.n; i++)
    PLN_TRY(stacked(call, i, part_of(call, &r, i + 1), 0, PLN_DIM_UNKNOWN));
  return PLN_OK;
}

static int64_t axis_at(const pln_infer *call, const char *name, uint32_t i) {
  uint32_t count;
  const int64_t *axes = pln_call_ints(call, name, &count);
  return axes && i < count ? axes[i] : 0;
}

/* The number of iterations: the extent common to all scanned operands. */
static pln_status scan_length(const pln_infer *call, uint32_t first,
                              uint32_t end, pln_dim *out) {
  *out = PLN_DIM_UNKNOWN;
  for (uint32_t i = first; i < end; i++) {
    int32_t rank = pln_arg_rank(call, i), axis;
    if (rank < 0)
      continue;
    int64_t requested = axis_at(call, "scan_input_axes", i - first);
    PLN_TRY(pln_call_axis(call, requested, rank, &axis));
    PLN_TRY(pln_infer_same_dim(call, i, out, pln_arg_dims(call, i)[axis]));
  }
  return PLN_OK;
}

/* Of `inputs` operands the last ones are scanned, those before are carried. */
static pln_status count_carried(const pln_infer *call, uint32_t inputs,
                                uint32_t *out) {
  int64_t scanned = pln_call_int(call, "num_scan_inputs", 0);
  *out = 0;
  if (scanned < 1 || scanned > (int64_t)inputs)
    return pln_call_error(call, "num_scan_inputs is %lld of %u operands",
                          (long long)scanned, inputs);
  *out = inputs - (uint32_t)scanned;
  return PLN_OK;
}

/* The type of one slice of a scanned operand: the axis is removed. */
static pln_status row_type(const pln_infer *call, uint32_t arg, int64_t axis,
                           pln_type *out) {
  int32_t at;
  pln_shape all, row = {.rank = 0};
  pln_arg_shape(call, arg, &all);
  *out = 0;
  if (all.rank < 1)
    return PLN_OK;
  PLN_TRY(pln_call_axis(call, axis, all.rank, &at));
  for (int32_t i = 0; i < all.rank; i++)
    if (i != at)
      row.dims[row.rank++] = all.dims[i];
  return pln_type_tensor(call->engine, pln_arg_dtype(call, arg), row.rank,
                         row.dims, out);
}

static pln_status enter_scan(const pln_infer *call, uint32_t n,
                             uint32_t inputs) {
  pln_type type;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(enters(call, i, i, pln_arg_type(call, i)));
  for (uint32_t i = n; i < inputs; i++) {
    PLN_TRY(row_type(call, i, axis_at(call, "scan_input_axes", i - n), &type));
    PLN_TRY(enters(call, i, i, type));
  }
  return PLN_OK;
}

/* Operands: carried values, scanned values, body. */
pln_status pln_infer_scan(pln_infer *call) {
  loop_body r = loop_body_type(call);
  uint32_t inputs = call->n_args - 1, n;
  pln_dim extent;
  PLN_TRY(count_carried(call, inputs, &n));
  PLN_TRY(enter_scan(call, n, inputs));
  if (r.n == 0)
    return PLN_OK;
  PLN_TRY(scan_length(call, n, inputs, &extent));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(carried(call, i, i, param_of(call, i), part_of(call, &r, i)));
  for (uint32_t i = n; i < pln_call_n_results(call) && i < r.n; i++)
    PLN_TRY(stacked(call, i, part_of(call, &r, i),
                    axis_at(call, "scan_output_axes", i - n), extent));
  return PLN_OK;
}

/* The batch and length common to the scanned operands; the batch of carried
 * values too. */
static pln_status batch_dims(const pln_infer *call, uint32_t first_scanned,
                             pln_dim *batch, pln_dim *length) {
  *batch = *length = PLN_DIM_UNKNOWN;
  for (uint32_t i = 1; i + 1 < call->n_args; i++) {
    int32_t rank = pln_arg_rank(call, i);
    const pln_dim *dims = pln_arg_dims(call, i);
    if (rank < 0)
      continue;
    if (rank < (i < first_scanned ? 1 : 2))
      return pln_arg_error(call, i, "it has no axis of a batch or sequence");
    PLN_TRY(pln_infer_same_dim(call, i, batch, dims[0]));
    if (i >= first_scanned)
      PLN_TRY(pln_infer_same_dim(call, i, length, dims[1]));
  }
  return PLN_OK;
}

/* The type of an iteration's result with `n` axes prepended. */
static pln_status behind(pln_infer *call, uint32_t i, pln_type each, int32_t n,
                         const pln_dim *axes) {
  const pln_engine *e = call->engine;
  int32_t rank = pln_type_rank(e, each);
  pln_shape shape;
  pln_shape_ranked(&shape, rank < 0 ? -1 : (int64_t)rank + n);
  for (int32_t k = 0; k < shape.rank; k++)
    shape.dims[k] = k < n ? axes[k] : pln_type_dims(e, each)[k - n];
  return pln_result_tensor(call, i, pln_type_dtype(e, each), &shape);
}

/* Operands: lengths, carried values, scanned values, body. The first axis of
 * all but the body is the batch; the second axis of scanned values is the
 * sequence. */
pln_status pln_infer_scan_batches(pln_infer *call) {
  loop_body r = loop_body_type(call);
  uint32_t n;
  pln_dim axes[2];
  PLN_TRY(count_carried(call, call->n_args - 2, &n));
  if (r.n == 0)
    return PLN_OK;
  PLN_TRY(batch_dims(call, n + 1, &axes[0], &axes[1]));
  for (uint32_t i = 0; i < pln_call_n_results(call) && i < r.n; i++)
    PLN_TRY(behind(call, i, part_of(call, &r, i), i < n ? 1 : 2, axes));
  return PLN_OK;
}

/* Each result of the body becomes a sequence. */
pln_status pln_infer_sequence_map(pln_infer *call) {
  loop_body r = loop_body_type(call);
  for (uint32_t i = 0; i < pln_call_n_results(call) && i < r.n; i++) {
    pln_type each = part_of(call, &r, i);
    PLN_TRY(pln_type_make(call->engine, PLN_TYPE_SEQUENCE, 0, 1, &each,
                          &call->results[i]));
  }
  return PLN_OK;
}
