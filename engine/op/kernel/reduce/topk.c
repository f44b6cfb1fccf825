/* topk.c: topk, and sort and argsort, which select all elements. Called through
 * ops.def. Equal elements keep their order. NaN is unordered in ONNX: folding
 * refuses it; in a run it is greater than all numbers, as in NumPy and ONNX
 * Runtime. */

#include "op/kernel/composed.h"

pln_status pln_infer_topk(pln_infer *call) {
  pln_list k = pln_arg_list(call, 1, "k");
  pln_shape shape;
  int32_t axis;
  pln_arg_shape(call, 0, &shape);
  if (k.given && k.sized && k.count != 1)
    return pln_call_error(call, "k must be one number, got %u", k.count);
  if (shape.rank >= 0) {
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", -1), shape.rank, &axis));
    pln_dim n = k.given && k.sized && k.count == 1 ? pln_list_at(&k, 0)
                                                   : PLN_DIM_UNKNOWN;
    bool relay = pln_call_has(call, "dtype");
    if (relay && PLN_DIM_IS_CONST(n) && n < 1)
      n = shape.dims[axis]; /* in Relay's form a k below 1 selects all elements
                             */
    if (PLN_DIM_IS_CONST(n) &&
        (n < 0 || (PLN_DIM_IS_CONST(shape.dims[axis]) && n > shape.dims[axis])))
      return pln_call_error(call, "k is %lld of %lld elements", (long long)n,
                            (long long)shape.dims[axis]);
    /* Relay's relation leaves an extent that is an argument unknown. */
    shape.dims[axis] =
        call->op == PLN_OP_DYN_TOP_K ? (pln_dim)PLN_DIM_UNKNOWN : n;
  }
  const pln_attr *given = pln_attrs_find(call->engine, call->attrs, "dtype");
  pln_dtype dtype = PLN_INT64;
  if (given) /* Relay's default is int32 */
    dtype = pln_call_dtype(call, "dtype", PLN_INT32);
  if (pln_call_string_is(call, "ret_type", "both", "indices"))
    return pln_result_tensor(call, 0, dtype, &shape);
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape));
  return pln_result_tensor(call, 1, dtype, &shape);
}

/* The type of argsort, whose result are indices, and of sort, whose result are
 * elements. */
pln_status pln_infer_argsort(pln_infer *call) {
  pln_shape shape;
  int32_t axis;
  pln_arg_shape(call, 0, &shape);
  if (shape.rank > 0)
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", -1), shape.rank, &axis));
  pln_dtype dtype = pln_arg_dtype(call, 0);
  if (call->op == PLN_OP_ARGSORT)
    dtype = pln_call_dtype(call, "dtype", PLN_INT32);
  return pln_result_tensor(call, 0, dtype, &shape);
}

/* Lanes along the axis: `outer` times `inner` of `n` elements, `inner` apart.
 */
typedef struct lanes {
  size_t outer, inner;
  size_t n;
} lanes;

static lanes lanes_of(const pln_tensor *x, uint32_t axis) {
  return (lanes){.outer = pln_dims_product(x->dims, 0, axis),
                 .inner = pln_dims_product(x->dims, axis + 1, x->rank),
                 .n = (size_t)x->dims[axis]};
}

/* An element mapped to a key with the same order as unsigned integer, so that
 * one selection serves all dtypes. */
typedef struct item {
  uint64_t key;
  int64_t index;
} item;

/* Keys per block; sifting through the heap counts as this many elements when
 * polling for stops. */
enum { BLOCK = 256, SIFTED = 64 };

/* Makes the keys of n elements, `step` apart. False if one is a NaN. */
typedef bool (*keys_fn)(const void *x, size_t step, size_t n, uint64_t *keys);

#define INT_KEYS(name, T, top)                                   \
  static bool keys_##name(const void *in, size_t step, size_t n, \
                          uint64_t *keys) {                      \
    const T *x = in;                                             \
    for (size_t i = 0; i < n; i++)                               \
      keys[i] = (uint64_t)x[i * step] ^ (top);                   \
    return true;                                                 \
  }
INT_KEYS(uint8, uint8_t, 0)
INT_KEYS(uint16, uint16_t, 0)
INT_KEYS(uint32, uint32_t, 0)
INT_KEYS(uint64, uint64_t, 0)
INT_KEYS(int8, uint8_t, 0x80)
INT_KEYS(int16, uint16_t, 0x8000)
INT_KEYS(int32, uint32_t, 0x80000000)
INT_KEYS(int64, uint64_t, (uint64_t)1 << 63)

/* Keys of floats. -0 has the key of 0. */
#define FLOAT_KEYS(name, T, sign, infinity)                      \
  static bool keys_##name(const void *in, size_t step, size_t n, \
                          uint64_t *keys) {                      \
    const T *x = in;                                             \
    const uint64_t top = (sign);                                 \
    bool good = true;                                            \
    for (size_t i = 0; i < n; i++) {                             \
      uint64_t bits = x[i * step], size = bits & (top - 1);      \
      good &= size <= (infinity);                                \
      keys[i] = size > (infinity) ? UINT64_MAX                   \
                : bits & top      ? top - size                   \
                                  : top + size;                       \
    }                                                            \
    return good;                                                 \
  }
FLOAT_KEYS(half, uint16_t, 0x8000, 0x7c00)
FLOAT_KEYS(bfloat, uint16_t, 0x8000, 0x7f80)
FLOAT_KEYS(single, uint32_t, 0x80000000, 0x7f800000)
FLOAT_KEYS(twice, uint64_t, (uint64_t)1 << 63, 0x7ff0000000000000)

/* Returns the function that makes the keys of a dtype, or NULL if it has no
 * order. */
static keys_fn find_keys(pln_dtype dtype) {
  static const keys_fn of[PLN_N_DTYPES] = {
      [PLN_UINT8] = keys_uint8,    [PLN_UINT16] = keys_uint16,
      [PLN_UINT32] = keys_uint32,  [PLN_UINT64] = keys_uint64,
      [PLN_INT8] = keys_int8,      [PLN_INT16] = keys_int16,
      [PLN_INT32] = keys_int32,    [PLN_INT64] = keys_int64,
      [PLN_FLOAT16] = keys_half,   [PLN_BFLOAT16] = keys_bfloat,
      [PLN_FLOAT32] = keys_single, [PLN_FLOAT64] = keys_twice};
  return of[dtype];
}

static bool before(const item *a, const item *b) {
  return a->key < b->key || (a->key == b->key && a->index < b->index);
}

/* Restores the heap property from `at` on: the last item in order is on top. */
static void sift(item *heap, size_t n, size_t at) {
  for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
    if (child + 1 < n && before(&heap[child], &heap[child + 1]))
      child++;
    if (!before(&heap[at], &heap[child]))
      return;
    item swap = heap[at];
    heap[at] = heap[child];
    heap[child] = swap;
    at = child;
  }
}

static void sort_heap(const pln_engine *engine, item *heap, size_t n) {
  size_t done = 0;
  while (n > 1) {
    if (pln_is_stopped_after(engine, &done, SIFTED))
      return;
    item swap = heap[0];
    heap[0] = heap[--n];
    heap[n] = swap;
    sift(heap, n, 0);
  }
}

/* Offers an item that comes after all earlier ones, so that equal items stay in
 * order. */
static void push_to_heap(const pln_engine *engine, item *heap, size_t *n,
                         size_t k, item it) {
  size_t done = 0;
  if (*n < k) {
    heap[(*n)++] = it;
    if (*n == k)
      for (size_t at = k; at-- > 0;) {
        if (pln_is_stopped_after(engine, &done, SIFTED))
          return;
        sift(heap, k, at);
      }
  } else if (it.key < heap[0].key) {
    heap[0] = it;
    sift(heap, k, 0);
  }
}

/* Selects the first `k` > 0 in order of a lane that begins at element `first`;
 * false if it has a NaN. */
static bool select_lane(const pln_engine *engine, const pln_tensor *x,
                        const lanes *l, size_t first, bool largest, item *heap,
                        size_t k) {
  uint64_t keys[BLOCK], flip = largest ? UINT64_MAX : 0;
  size_t found = 0, done = 0, size = pln_element_size((pln_dtype)x->dtype);
  keys_fn make_keys = find_keys((pln_dtype)x->dtype);
  bool ordered = true;
  for (size_t i = 0; i < l->n; i += BLOCK) {
    size_t n = l->n - i < BLOCK ? l->n - i : BLOCK;
    const char *from = (const char *)x->data + (first + i * l->inner) * size;
    ordered &= make_keys(from, l->inner, n, keys);
    for (size_t j = 0; j < n; j++)
      if (found < k || (keys[j] ^ flip) < heap[0].key)
        push_to_heap(engine, heap, &found, k,
                     (item){keys[j] ^ flip, (int64_t)(i + j)});
    if (pln_is_stopped_after(engine, &done, SIFTED * BLOCK))
      break;
  }
  sort_heap(engine, heap, k);
  return ordered;
}

/* The first `k` elements of each lane along an axis, in order. */
typedef struct selection {
  uint32_t axis;
  int64_t k;
  bool largest;
} selection;

static pln_status select_all(pln_kernel_call *call, const lanes *l,
                             const selection *s, item *heap, char *values,
                             int64_t *indices) {
  const pln_tensor *x = call->args[0];
  size_t size = pln_element_size((pln_dtype)x->dtype), k = (size_t)s->k;
  for (size_t lane = 0; lane < l->outer * l->inner; lane++) {
    size_t o = lane / l->inner, i = lane % l->inner;
    size_t first = o * l->n * l->inner + i;
    bool ordered = select_lane(call->engine, x, l, first, s->largest, heap, k);
    PLN_TRY(pln_poll(call->engine)); /* before the heap is read */
    if (!ordered && call->folding)
      return pln_kernel_undefined(call);
    for (size_t r = 0; r < k; r++) {
      size_t to = (o * k + r) * l->inner + i;
      size_t from = first + (size_t)heap[r].index * l->inner;
      memcpy(values + to * size, (const char *)x->data + from * size, size);
      indices[to] = heap[r].index;
    }
  }
  return PLN_OK;
}

static pln_status select_into(pln_kernel_call *call, const selection *s,
                              void *values, int64_t *indices) {
  lanes l = lanes_of(call->args[0], s->axis);
  size_t bytes = (size_t)s->k * sizeof(item);
  if (s->k == 0 || call->args[0]->count == 0)
    return PLN_OK;
  item *heap = pln_mem_new(call->engine, bytes);
  if (!heap)
    return pln_nomem(call->engine);
  pln_status status = select_all(call, &l, s, heap, values, indices);
  pln_mem_free(call->engine, heap, bytes);
  return status;
}

/* Makes both tensors; a failure leaves none. */
static pln_status select_both(pln_kernel_call *call, const selection *s,
                              pln_tensor **values, pln_tensor **indices) {
  const pln_tensor *x = call->args[0];
  int64_t dims[PLN_MAX_RANK];
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[s->axis] = s->k;
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)x->dtype, x->rank, dims,
                           values));
  pln_status status =
      pln_tensor_unset(call->engine, PLN_INT64, x->rank, dims, indices);
  if (status == PLN_OK)
    status = select_into(call, s, pln_tensor_writable(*values),
                         pln_tensor_writable(*indices));
  if (status == PLN_OK)
    return PLN_OK;
  pln_tensor_release(*values);
  pln_tensor_release(*indices);
  *values = *indices = NULL;
  return status;
}

/* ------------------------------------------------------------------ kernels */

/* Returns the dtype of indices: the attribute dtype, which Relay leaves void
 * for int32. */
static pln_dtype index_dtype(const pln_kernel_call *call, pln_dtype other) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, "dtype");
  pln_dtype dtype =
      a && a->kind == PLN_ATTR_STRING ? pln_dtype_find(a->v.s) : PLN_DTYPE_NONE;
  return dtype ? dtype : a ? PLN_INT32 : other;
}

static pln_status set_indices_result(pln_kernel_call *call, uint32_t i,
                                     pln_tensor *indices, pln_dtype dtype) {
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_composition_set_result(&s, i, pln_compose_cast(&s, indices, dtype));
  return pln_composition_end(&s);
}

/* Stores the results that the call has: values, indices, or both. */
static pln_status take_requested(pln_kernel_call *call, pln_tensor *values,
                                 pln_tensor *indices) {
  pln_dtype dtype = index_dtype(call, PLN_INT64);
  if (pln_kernel_string_is(call, "ret_type", "both", "indices"))
    return set_indices_result(call, 0, indices, dtype);
  call->results[0] = pln_tensor_retain(values);
  return call->n_results > 1 ? set_indices_result(call, 1, indices, dtype)
                             : PLN_OK;
}

/* Reads k. In Relay's form a k below 1 selects all elements. */
static int64_t read_k(const pln_kernel_call *call, int64_t extent) {
  pln_list list = pln_kernel_list(call, 1, "k");
  int64_t k = list.count == 1 ? pln_list_at(&list, 0) : -1;
  bool relay = pln_attrs_find(call->engine, call->attrs, "dtype") != NULL;
  return relay && list.given && k < 1 ? extent : k;
}

static pln_status check_operand(const pln_kernel_call *call, int64_t axis,
                                selection *s) {
  const pln_tensor *x = call->args[0];
  if (!find_keys((pln_dtype)x->dtype))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank > PLN_MAX_RANK || !pln_kernel_axis(axis, x->rank, &s->axis))
    return pln_kernel_refuse(call, "the axis does not match the operand");
  return PLN_OK;
}

pln_status pln_kernel_topk(pln_kernel_call *call) {
  selection s;
  pln_tensor *values = NULL, *indices = NULL;
  PLN_TRY(check_operand(call, pln_kernel_int(call, "axis", -1), &s));
  int64_t extent = call->args[0]->dims[s.axis];
  s.k = read_k(call, extent);
  s.largest = pln_kernel_int(call, "largest", 1) != 0 &&
              !pln_kernel_int(call, "is_ascend", 0);
  if (s.k < 0 || s.k > extent)
    return pln_kernel_refuse(call, "k or the axis does not match the operand");
  PLN_TRY(select_both(call, &s, &values, &indices));
  pln_status status = take_requested(call, values, indices);
  pln_tensor_release(values);
  pln_tensor_release(indices);
  return status;
}

pln_status pln_kernel_sort(pln_kernel_call *call) {
  selection s;
  pln_tensor *values = NULL, *indices = NULL;
  PLN_TRY(check_operand(call, pln_kernel_int(call, "axis", -1), &s));
  s.k = call->args[0]->dims[s.axis];
  s.largest = !pln_kernel_int(call, "is_ascend", 1);
  PLN_TRY(select_both(call, &s, &values, &indices));
  pln_status status = PLN_OK;
  if (call->op == PLN_OP_ARGSORT)
    status = set_indices_result(call, 0, indices, index_dtype(call, PLN_INT32));
  else
    call->results[0] = pln_tensor_retain(values);
  pln_tensor_release(values);
  pln_tensor_release(indices);
  return status;
}
