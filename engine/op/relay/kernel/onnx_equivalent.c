/* onnx_equivalent.c: kernels of Relay's operators that call the kernel of an
 * ONNX operator with converted attributes and operands. Called through ops.def.
 *
 * What has no ONNX equivalent is refused: other layouts, other result
 * dtypes. */

#include "op/kernel/composed.h"

enum { MAX_INTS = 8, MAX_ENTRIES = 8 };

/* A call in ONNX's form. */
typedef struct onnx_call {
  pln_kernel_call call;
  const pln_tensor *args[4];
  pln_attr entries[MAX_ENTRIES];
  int64_t ints[MAX_ENTRIES][MAX_INTS];
  uint32_t count;
} onnx_call;

static void begin_onnx_call(const pln_kernel_call *call, pln_op op,
                            onnx_call *w) {
  *w = (onnx_call){.call = *call};
  for (uint32_t i = 0; i < 4; i++)
    w->args[i] = pln_kernel_arg(call, i);
  w->call.args = w->args;
  w->call.op = op;
  w->call.attrs = 0;
}

static pln_status add_ints(onnx_call *w, const char *name, uint32_t n,
                           const int64_t *ints) {
  pln_attr *a = &w->entries[w->count];
  memcpy(w->ints[w->count], ints, n * sizeof *ints);
  *a = (pln_attr){.kind = PLN_ATTR_INTS, .count = n};
  a->v.ints = w->ints[w->count++];
  return pln_symbol_intern(w->call.engine, pln_text(name), &a->name);
}

static pln_status add_int(onnx_call *w, const char *name, int64_t value) {
  pln_attr *a = &w->entries[w->count++];
  *a = (pln_attr){.kind = PLN_ATTR_INT, .v.i = value};
  return pln_symbol_intern(w->call.engine, pln_text(name), &a->name);
}

static pln_status run_onnx_kernel(onnx_call *w, pln_kernel_fn kernel) {
  PLN_TRY(pln_attrs_make(w->call.engine, w->count, w->entries, &w->call.attrs));
  return kernel(&w->call);
}

/* ----------------------------------------------------------------- products */

static bool same_dtype(const pln_kernel_call *call, const char *name) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  return x && (pln_kernel_string_is(call, name, "", "") ||
               pln_kernel_string_is(call, name, "",
                                    pln_dtype_name((pln_dtype)x->dtype)));
}

static pln_status refuse_form(const pln_kernel_call *call) {
  return pln_kernel_refuse(call, "this form of the call is not implemented");
}

/* The product of operands that are cast to a wider dtype of the result first:
 * integers of 8 bits to int32. */
static pln_status multiply_widened(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  pln_slice name = pln_attrs_string(call->engine, call->attrs, "out_dtype", "");
  pln_dtype dtype = name.size ? pln_dtype_find(name) : PLN_DTYPE_NONE;
  pln_composition s;
  if (!dtype || !x || !y || !pln_dtype_contains(dtype, (pln_dtype)x->dtype) ||
      !pln_dtype_contains(dtype, (pln_dtype)y->dtype))
    return refuse_form(call);
  pln_composition_begin(&s, call);
  x = pln_compose_cast(&s, x, dtype);
  y = pln_compose_cast(&s, y, dtype);
  if (call->op == PLN_OP_BATCH_MATMUL) {
    pln_compose_int(&s, "transpose_a", pln_kernel_int(call, "transpose_a", 0));
    pln_compose_int(&s, "transpose_b", pln_kernel_int(call, "transpose_b", 0));
  }
  return pln_composition_finish(&s, pln_compose_binary(&s, call->op, x, y));
}

static bool is_widened(const pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  return x && y && !same_dtype(call, "out_dtype");
}

/* A matrix product of possibly transposed operands. */
static pln_status call_onnx_matmul(const pln_kernel_call *call,
                                   const pln_tensor *a, bool a_transposed,
                                   const pln_tensor *b, bool b_transposed,
                                   pln_tensor **out) {
  onnx_call w;
  begin_onnx_call(call, PLN_OP_GEMM, &w);
  w.args[0] = a;
  w.args[1] = b;
  w.call.n_args = 2;
  w.call.n_results = 1;
  w.call.results = out;
  PLN_TRY(add_int(&w, "transA", a_transposed));
  PLN_TRY(add_int(&w, "transB", b_transposed));
  return run_onnx_kernel(&w, pln_kernel_gemm);
}

/* (..., in) times a weight, as one matrix of rows. */
static pln_status multiply_rows(pln_kernel_call *call, bool transposed) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  int64_t dims[PLN_MAX_RANK];
  pln_tensor *rows, *out = NULL;
  if (!x || !y || y->rank != 2 || x->rank < 1 || x->rank > PLN_MAX_RANK ||
      !same_dtype(call, "out_dtype"))
    return refuse_form(call);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  int64_t two[2] = {(int64_t)pln_dims_product(dims, 0, x->rank - 1),
                    dims[x->rank - 1]};
  PLN_TRY(pln_tensor_reshaped(x, 2, two, &rows));
  pln_status status = call_onnx_matmul(call, rows, false, y, transposed, &out);
  pln_tensor_release(rows);
  if (status != PLN_OK)
    return status;
  dims[x->rank - 1] = y->dims[transposed ? 0 : 1];
  status = pln_tensor_reshaped(out, x->rank, dims, call->results);
  pln_tensor_release(out);
  return status;
}

pln_status pln_kernel_dense(pln_kernel_call *call) {
  return is_widened(call) ? multiply_widened(call) : multiply_rows(call, true);
}

/* Matrix k of a batch. */
static pln_status matrix_of(const pln_tensor *x, size_t k, pln_tensor **out) {
  size_t size = pln_element_size((pln_dtype)x->dtype);
  size_t n = pln_dims_product(x->dims, 1, 3) * size;
  size_t at = x->dims[0] == 1 ? 0 : k;
  return pln_tensor_from_bytes(x->engine, (pln_dtype)x->dtype, 2, x->dims + 1,
                               (const char *)x->data + at * n, n, out);
}

static pln_status multiply_one(pln_kernel_call *call, size_t k,
                               bool a_transposed, bool b_transposed, char *to) {
  pln_tensor *a, *b, *out = NULL;
  PLN_TRY(matrix_of(call->args[0], k, &a));
  pln_status status = matrix_of(call->args[1], k, &b);
  if (status == PLN_OK) {
    status = call_onnx_matmul(call, a, a_transposed, b, b_transposed, &out);
    pln_tensor_release(b);
  }
  pln_tensor_release(a);
  if (status == PLN_OK && out->bytes)
    memcpy(to + k * out->bytes, out->data, out->bytes);
  pln_tensor_release(out);
  return status;
}

pln_status pln_kernel_batch_matmul(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  bool a = pln_kernel_int(call, "transpose_a", 0) != 0;
  bool b = pln_kernel_int(call, "transpose_b", 0) != 0;
  void *data;
  if (is_widened(call))
    return multiply_widened(call);
  if (!x || !y || x->rank != 3 || y->rank != 3 || x->dtype != y->dtype ||
      !same_dtype(call, "out_dtype") ||
      pln_element_size((pln_dtype)x->dtype) == 0 || x->dtype == PLN_STRING ||
      x->dims[a ? 1 : 2] != y->dims[b ? 2 : 1] ||
      (x->dims[0] != y->dims[0] && x->dims[0] != 1 && y->dims[0] != 1))
    return refuse_form(call);
  int64_t batch = x->dims[0] == 1 ? y->dims[0] : x->dims[0];
  int64_t dims[3] = {batch, x->dims[a ? 2 : 1], y->dims[b ? 1 : 2]};
  PLN_TRY(pln_kernel_result(call, 0, (pln_dtype)x->dtype, 3, dims, &data));
  pln_status status = PLN_OK;
  for (int64_t k = 0; k < batch && status == PLN_OK; k++) {
    status = multiply_one(call, (size_t)k, a, b, data);
    if (status == PLN_OK)
      status = pln_poll(call->engine);
  }
  return status;
}

/* Adds the vector, reshaped to extent 1 on all axes but one. */
pln_status pln_kernel_bias_add(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  int64_t dims[PLN_MAX_RANK];
  uint32_t axis;
  pln_tensor *bias;
  onnx_call w;
  if (!x || !b || b->rank != 1 || x->rank > PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 1), x->rank, &axis) ||
      b->dims[0] != x->dims[axis])
    return pln_kernel_refuse(call, "the bias does not match the operand");
  for (uint32_t i = 0; i < x->rank; i++)
    dims[i] = i == axis ? b->dims[0] : 1;
  PLN_TRY(pln_tensor_reshaped(b, x->rank, dims, &bias));
  begin_onnx_call(call, PLN_OP_ADD, &w);
  w.args[1] = bias;
  pln_status status = run_onnx_kernel(&w, pln_kernel_add);
  pln_tensor_release(bias);
  return status;
}

/* ----------------------------------------------------- element by element */

pln_status pln_kernel_not_equal(pln_kernel_call *call) {
  onnx_call w;
  begin_onnx_call(call, PLN_OP_EQUAL, &w);
  PLN_TRY(run_onnx_kernel(&w, pln_kernel_equal));
  uint8_t *truth = pln_tensor_writable(call->results[0]);
  for (size_t i = 0; truth && i < call->results[0]->count; i++)
    truth[i] ^= 1;
  return truth ? PLN_OK : refuse_form(call);
}

/* 1 / sqrt(x) */
pln_status pln_kernel_rsqrt(pln_kernel_call *call) {
  onnx_call w;
  pln_tensor *root = NULL;
  begin_onnx_call(call, PLN_OP_SQRT, &w);
  w.call.results = &root;
  PLN_TRY(run_onnx_kernel(&w, pln_kernel_sqrt));
  begin_onnx_call(call, PLN_OP_RECIPROCAL, &w);
  w.args[0] = root;
  pln_status status = run_onnx_kernel(&w, pln_kernel_reciprocal);
  pln_tensor_release(root);
  return status;
}

/* --------------------------------------------------------------- reductions */

/* `all` is the minimum of booleans, `any` the maximum. */
static pln_status reduce_truth(pln_kernel_call *call, pln_op op,
                               pln_kernel_fn kernel) {
  pln_list axes = pln_kernel_list(call, PLN_NONE, "axis");
  onnx_call w;
  if (axes.count > MAX_INTS)
    return refuse_form(call);
  begin_onnx_call(call, op, &w);
  if (axes.count)
    PLN_TRY(add_ints(&w, "axes", axes.count, axes.ints));
  PLN_TRY(add_int(&w, "keepdims", pln_kernel_int(call, "keepdims", 0)));
  PLN_TRY(add_int(&w, "exclude", pln_kernel_int(call, "exclude", 0)));
  return run_onnx_kernel(&w, kernel);
}

pln_status pln_kernel_reduce_all(pln_kernel_call *call) {
  return reduce_truth(call, PLN_OP_REDUCE_MIN, pln_kernel_min);
}

pln_status pln_kernel_reduce_any(pln_kernel_call *call) {
  return reduce_truth(call, PLN_OP_REDUCE_MAX, pln_kernel_max);
}

/* -------------------------------------------------------------------- stack */

/* Inserts an axis into each, then concatenates. */
static pln_status widen_all(pln_kernel_call *call, uint32_t axis,
                            pln_tensor **wide) {
  for (uint32_t i = 0; i < call->n_args; i++) {
    const pln_tensor *x = pln_kernel_arg(call, i);
    int64_t dims[PLN_MAX_RANK];
    if (!x || x->rank != call->args[0]->rank)
      return pln_kernel_refuse(call, "operands do not match each other");
    for (uint32_t k = 0, at = 0; k <= x->rank; k++)
      dims[k] = k == axis ? 1 : x->dims[at++];
    PLN_TRY(pln_tensor_reshaped(x, x->rank + 1, dims, &wide[i]));
  }
  return PLN_OK;
}

pln_status pln_kernel_stack(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t size = call->n_args * sizeof(pln_tensor *);
  uint32_t axis;
  onnx_call w;
  if (!x || x->rank + 1 >= PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank + 1, &axis))
    return pln_kernel_refuse(call, "the axis does not match the operands");
  pln_tensor **wide = pln_mem_zeroed(call->engine, size);
  if (!wide)
    return pln_nomem(call->engine);
  begin_onnx_call(call, PLN_OP_CONCAT, &w);
  w.call.args = (const pln_tensor *const *)wide;
  pln_status status = widen_all(call, axis, wide);
  if (status == PLN_OK)
    status = add_int(&w, "axis", axis);
  if (status == PLN_OK)
    status = run_onnx_kernel(&w, pln_kernel_concatenate);
  for (uint32_t i = 0; i < call->n_args; i++)
    pln_tensor_release(wide[i]);
  pln_mem_free(call->engine, wide, size);
  return status;
}
