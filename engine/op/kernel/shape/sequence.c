/* sequence.c: sequences and optionals. Called through ops.def; kernels work on
 * runtime values.
 *
 * Inserting and erasing give a new sequence, which shares the elements. A
 * sequence with no other reference is updated in place, so that a loop that
 * inserts in each iteration is not quadratic. An optional is its value, or
 * absent. */

#include "op/kernel/shape/concat_split.h"

/* Finds the element type of a sequence or optional; *out is 0 if it is
 * unknown. */
static pln_status element_of(const pln_infer *call, uint32_t i,
                             pln_type_kind kind, const char *what,
                             pln_type *out) {
  pln_type type = pln_arg_type(call, i);
  *out = 0;
  if (!type)
    return PLN_OK;
  if (pln_type_get_kind(call->engine, type) != kind)
    return pln_arg_error(call, i, "expected %s", what);
  *out = pln_type_part_at(call->engine, type, 0);
  return PLN_OK;
}

static pln_status sequence_element(const pln_infer *call, pln_type *out) {
  return element_of(call, 0, PLN_TYPE_SEQUENCE, "a sequence", out);
}

static pln_status set_sequence_result(pln_infer *call, pln_type_kind kind,
                                      pln_type element) {
  return pln_type_make(call->engine, kind, 0, 1, &element, call->results);
}

pln_status pln_infer_sequence_at(pln_infer *call) {
  return sequence_element(call, call->results);
}

pln_status pln_infer_sequence_length(pln_infer *call) {
  pln_type element;
  PLN_TRY(sequence_element(call, &element));
  return pln_result_scalar(call, 0, PLN_INT64);
}

/* The type of sequence_construct: a sequence of the type that all operands have
 * in common. */
pln_status pln_infer_sequence_construct(pln_infer *call) {
  pln_dtype dtype;
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  pln_type all = pln_arg_type(call, 0);
  for (uint32_t i = 1; i < call->n_args && all; i++) {
    bool conflict;
    PLN_TRY(pln_type_join(call->engine, all, pln_arg_type(call, i), &all,
                          &conflict));
  }
  return set_sequence_result(call, PLN_TYPE_SEQUENCE, all);
}

pln_status pln_infer_sequence_empty(pln_infer *call) {
  int64_t dtype = pln_call_int(call, "dtype", PLN_FLOAT32);
  pln_type element;
  if (dtype <= 0 || dtype >= PLN_N_DTYPES)
    return pln_call_error(call, "dtype %lld is unknown", (long long)dtype);
  PLN_TRY(pln_type_tensor(call->engine, (pln_dtype)dtype, -1, NULL, &element));
  return set_sequence_result(call, PLN_TYPE_SEQUENCE, element);
}

/* The type of sequence_insert. An empty sequence has no known element shape, so
 * its element type is merged with that of the inserted value. */
pln_status pln_infer_sequence_insert(pln_infer *call) {
  pln_type element, added = pln_arg_type(call, 1);
  bool conflict = false;
  PLN_TRY(sequence_element(call, &element));
  if (!element || !added)
    return set_sequence_result(call, PLN_TYPE_SEQUENCE, 0);
  PLN_TRY(pln_type_join(call->engine, element, added, &element, &conflict));
  if (conflict)
    return pln_arg_error(call, 1, "it has another dtype than the sequence");
  return set_sequence_result(call, PLN_TYPE_SEQUENCE, element);
}

/* The type of split_to_sequence. The parts have equal extents along the axis if
 * the split is one number. */
pln_status pln_infer_split_to_sequence(pln_infer *call) {
  pln_list parts = pln_arg_list(call, 1, NULL);
  pln_shape shape;
  pln_type element;
  int32_t axis;
  pln_arg_shape(call, 0, &shape);
  if (shape.rank >= 0) {
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), shape.rank, &axis));
    shape.dims[axis] = parts.given ? PLN_DIM_UNKNOWN : 1;
    if (!parts.given && pln_call_int(call, "keepdims", 1) == 0) {
      memmove(&shape.dims[axis], &shape.dims[axis + 1],
              (size_t)(shape.rank - axis - 1) * sizeof *shape.dims);
      shape.rank--;
    }
  }
  PLN_TRY(pln_type_tensor(call->engine, pln_arg_dtype(call, 0), shape.rank,
                          shape.dims, &element));
  return set_sequence_result(call, PLN_TYPE_SEQUENCE, element);
}

pln_status pln_infer_concat_from_sequence(pln_infer *call) {
  pln_type element;
  pln_shape shape = {.rank = -1};
  PLN_TRY(sequence_element(call, &element));
  int32_t rank = pln_type_rank(call->engine, element);
  bool stacks = pln_call_int(call, "new_axis", 0) != 0;
  if (rank >= 0 && rank < PLN_MAX_RANK) {
    const pln_dim *dims = pln_type_dims(call->engine, element);
    int32_t axis;
    pln_shape_ranked(&shape, rank + stacks);
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), shape.rank, &axis));
    for (int32_t i = 0, k = 0; i < shape.rank; i++)
      if (!stacks || i != axis)
        shape.dims[i] = dims[k++];
    shape.dims[axis] = PLN_DIM_UNKNOWN;
  }
  return pln_result_tensor(call, 0, pln_type_dtype(call->engine, element),
                           &shape);
}

/* ---------------------------------------------------------------- optionals */

pln_status pln_infer_optional(pln_infer *call) {
  const pln_attr *type = pln_attrs_find(call->engine, call->attrs, "type");
  if (!pln_arg_absent(call, 0))
    return set_sequence_result(call, PLN_TYPE_OPTIONAL, pln_arg_type(call, 0));
  if (type && type->kind == PLN_ATTR_TYPE)
    return set_sequence_result(call, PLN_TYPE_OPTIONAL, type->v.type);
  return pln_call_error(call, "neither a value nor a type is given");
}

/* The type of optional_get_element. Since opset 18 a tensor or sequence is
 * accepted as a present optional. */
pln_status pln_infer_optional_get_element(pln_infer *call) {
  pln_type type = pln_arg_type(call, 0);
  bool is_optional = pln_type_get_kind(call->engine, type) == PLN_TYPE_OPTIONAL;
  call->results[0] =
      is_optional ? pln_type_part_at(call->engine, type, 0) : type;
  return PLN_OK;
}

pln_status pln_infer_optional_has_element(pln_infer *call) {
  return pln_result_scalar(call, 0, PLN_BOOL);
}

/* ------------------------------------------------------------------ kernels */

/* Returns operand `i`, or NULL if it is omitted. */
static const pln_runtime_value *operand_at(const pln_kernel_call *call,
                                           uint32_t i) {
  if (i >= call->n_args || call->data[i].kind == PLN_RUNTIME_ABSENT)
    return NULL;
  return &call->data[i];
}

static pln_status sequence_at(const pln_kernel_call *call, uint32_t i,
                              const pln_runtime_value **out) {
  *out = operand_at(call, i);
  if (*out && (*out)->kind == PLN_RUNTIME_SEQUENCE)
    return PLN_OK;
  return pln_kernel_refuse(call, "operand %u is not a sequence", i);
}

static pln_status tensor_at(const pln_kernel_call *call, uint32_t i,
                            const pln_tensor **out) {
  const pln_runtime_value *value = operand_at(call, i);
  *out = NULL;
  if (!value || value->kind != PLN_RUNTIME_TENSOR)
    return pln_kernel_refuse(call, "operand %u is not a tensor", i);
  const void *data;
  *out = value->of.tensor;
  return pln_tensor_data(*out, &data); /* opens external data */
}

/* Reads the position in operand `i`, which must be in [-count, count);
 * `fallback` if the operand is omitted. */
static pln_status position_at(const pln_kernel_call *call, uint32_t i,
                              uint32_t count, int64_t fallback, uint32_t *out) {
  const pln_tensor *t;
  int64_t at = fallback;
  if (operand_at(call, i)) {
    PLN_TRY(tensor_at(call, i, &t));
    if (t->count != 1 || !pln_tensor_int(t, 0, &at))
      return pln_kernel_refuse(call, "a position is one integer");
  }
  if (at < -(int64_t)count || at >= (int64_t)count)
    return pln_kernel_refuse(call, "position %lld is outside of %u elements",
                             (long long)at, count);
  *out = (uint32_t)(at < 0 ? at + count : at);
  return PLN_OK;
}

pln_status pln_kernel_sequence_at(pln_kernel_call *call) {
  const pln_runtime_value *all;
  uint32_t at;
  PLN_TRY(sequence_at(call, 0, &all));
  PLN_TRY(position_at(call, 1, pln_runtime_value_count(all), 0, &at));
  *call->made = pln_runtime_value_copy(*pln_runtime_value_at(all, at));
  return PLN_OK;
}

pln_status pln_kernel_sequence_construct(pln_kernel_call *call) {
  for (uint32_t i = 0; i < call->n_args; i++)
    if (!operand_at(call, i))
      return pln_kernel_refuse(call, "operand %u is missing", i);
  return pln_runtime_value_sequence(call->engine, call->n_args, call->data,
                                    call->made);
}

pln_status pln_kernel_sequence_empty(pln_kernel_call *call) {
  return pln_runtime_value_sequence(call->engine, 0, NULL, call->made);
}

/* Returns the elements of operand 0 in a cell without other references, with
 * room for one more element. */
static pln_status own_elements(pln_kernel_call *call, pln_ref_cell **out) {
  pln_runtime_value *all = &call->data[0];
  uint32_t n = all->of.cell->count;
  if (all->of.cell->refs == 1) {
    PLN_TRY(pln_ref_cell_reserve(call->engine, &all->of.cell));
    *out = all->of.cell;
    all->kind = PLN_RUNTIME_NONE;
    return PLN_OK;
  }
  PLN_TRY(pln_ref_cell_new(call->engine, n + 1, out));
  (*out)->count = n;
  for (uint32_t i = 0; i < n; i++)
    (*out)->items[i] = pln_runtime_value_copy(*pln_runtime_value_at(all, i));
  return PLN_OK;
}

pln_status pln_kernel_sequence_erase(pln_kernel_call *call) {
  const pln_runtime_value *all;
  uint32_t at;
  pln_ref_cell *box;
  PLN_TRY(sequence_at(call, 0, &all));
  PLN_TRY(position_at(call, 1, pln_runtime_value_count(all), -1, &at));
  PLN_TRY(own_elements(call, &box));
  pln_runtime_value_release(call->engine, &box->items[at]);
  box->count--;
  memmove(&box->items[at], &box->items[at + 1],
          (box->count - at) * sizeof *box->items);
  *call->made =
      (pln_runtime_value){.kind = PLN_RUNTIME_SEQUENCE, .of.cell = box};
  return PLN_OK;
}

/* Reads the position of an insertion. It may be one past the end, which is also
 * the default. */
static pln_status insert_position(const pln_kernel_call *call, uint32_t n,
                                  uint32_t *at) {
  const pln_tensor *position;
  int64_t requested = n;
  *at = n;
  if (!operand_at(call, 2))
    return PLN_OK;
  PLN_TRY(tensor_at(call, 2, &position));
  if (position->count != 1 || !pln_tensor_int(position, 0, &requested) ||
      requested < -(int64_t)n || requested > (int64_t)n)
    return pln_kernel_refuse(call, "a position is within -%u and %u", n, n);
  *at = (uint32_t)(requested < 0 ? requested + n : requested);
  return PLN_OK;
}

pln_status pln_kernel_sequence_insert(pln_kernel_call *call) {
  const pln_runtime_value *all, *added = operand_at(call, 1);
  pln_ref_cell *box;
  uint32_t at;
  PLN_TRY(sequence_at(call, 0, &all));
  if (!added)
    return pln_kernel_refuse(call, "the value to insert is missing");
  PLN_TRY(insert_position(call, pln_runtime_value_count(all), &at));
  PLN_TRY(own_elements(call, &box));
  memmove(&box->items[at + 1], &box->items[at],
          (box->count - at) * sizeof *box->items);
  box->items[at] = pln_runtime_value_copy(*added);
  box->count++;
  *call->made =
      (pln_runtime_value){.kind = PLN_RUNTIME_SEQUENCE, .of.cell = box};
  return PLN_OK;
}

static pln_status make_scalar(const pln_kernel_call *call, pln_dtype dtype,
                              int64_t value) {
  pln_tensor *t;
  PLN_TRY(pln_tensor_from_bytes(call->engine, dtype, 0, NULL, &value,
                                pln_element_size(dtype), &t));
  *call->made = pln_runtime_value_of_tensor(t);
  return PLN_OK;
}

pln_status pln_kernel_sequence_length(pln_kernel_call *call) {
  const pln_runtime_value *all;
  PLN_TRY(sequence_at(call, 0, &all));
  return make_scalar(call, PLN_INT64, pln_runtime_value_count(all));
}

/* How a tensor is split: into parts of `each` elements, or of the sizes in
 * `parts`. */
typedef struct sequence_split {
  const pln_tensor *x, *parts;
  uint32_t axis;
  int64_t each, count;
  bool drop; /* remove the axis of parts of one element */
} sequence_split;

static pln_status read_sequence_split(const pln_kernel_call *call,
                                      sequence_split *c) {
  *c = (sequence_split){.each = 1};
  PLN_TRY(tensor_at(call, 0, &c->x));
  if (!pln_kernel_axis(pln_kernel_int(call, "axis", 0), c->x->rank, &c->axis))
    return pln_kernel_refuse(call, "the operand has not that axis");
  int64_t extent = c->x->dims[c->axis];
  if (!operand_at(call, 1)) {
    c->drop = pln_kernel_int(call, "keepdims", 1) == 0;
    c->count = extent;
    return PLN_OK;
  }
  PLN_TRY(tensor_at(call, 1, &c->parts));
  if (c->parts->rank > 0) {
    c->count = (int64_t)c->parts->count;
    return PLN_OK;
  }
  if (!pln_tensor_int(c->parts, 0, &c->each) || c->each < 1)
    return pln_kernel_refuse(call, "parts have a positive number of elements");
  c->parts = NULL;
  c->count = extent / c->each + (extent % c->each != 0);
  return PLN_OK;
}

static pln_status split_into_tensors(const pln_kernel_call *call,
                                     const sequence_split *c,
                                     pln_ref_cell *box) {
  int64_t at = 0, extent = c->x->dims[c->axis];
  for (int64_t i = 0; i < c->count; i++) {
    int64_t n = extent - at < c->each ? extent - at : c->each;
    pln_tensor *part;
    if (c->parts &&
        (!pln_tensor_int(c->parts, (size_t)i, &n) || n < 0 || n > extent - at))
      return pln_kernel_refuse(call, "the parts do not add up to %lld",
                               (long long)extent);
    PLN_TRY(pln_split_part(call, c->x, c->axis, at, at + n, c->drop, &part));
    box->items[i] = pln_runtime_value_of_tensor(part);
    at += n;
  }
  if (at != extent)
    return pln_kernel_refuse(call, "the parts do not add up to %lld",
                             (long long)extent);
  return PLN_OK;
}

pln_status pln_kernel_split_to_sequence(pln_kernel_call *call) {
  sequence_split c;
  pln_ref_cell *box;
  PLN_TRY(read_sequence_split(call, &c));
  if (c.count >= UINT32_MAX)
    return pln_kernel_refuse(call, "more than %u parts", UINT32_MAX - 1);
  PLN_TRY(pln_ref_cell_new(call->engine, (uint32_t)c.count, &box));
  pln_status status = split_into_tensors(call, &c, box);
  if (status == PLN_OK)
    *call->made =
        (pln_runtime_value){.kind = PLN_RUNTIME_SEQUENCE, .of.cell = box};
  else
    pln_ref_cell_release(call->engine, box);
  return status;
}

pln_status pln_kernel_concat_from_sequence(pln_kernel_call *call) {
  const pln_runtime_value *all;
  pln_tensor *joined;
  int64_t axis = pln_kernel_int(call, "axis", 0);
  PLN_TRY(sequence_at(call, 0, &all));
  uint32_t n = pln_runtime_value_count(all);
  if (n == 0)
    return pln_kernel_refuse(call, "the sequence is empty");
  if (pln_kernel_int(call, "new_axis", 0))
    PLN_TRY(
        pln_stack_parts(call, n, all->of.cell->items, axis, false, &joined));
  else
    PLN_TRY(pln_concat_parts(call, n, all->of.cell->items, axis, &joined));
  *call->made = pln_runtime_value_of_tensor(joined);
  return PLN_OK;
}

pln_status pln_kernel_optional(pln_kernel_call *call) {
  *call->made = pln_runtime_value_copy(
      call->n_args ? call->data[0] : pln_runtime_value_of_tensor(NULL));
  return PLN_OK;
}

pln_status pln_kernel_optional_get_element(pln_kernel_call *call) {
  if (!operand_at(call, 0))
    return pln_kernel_refuse(call, "the optional is empty");
  *call->made = pln_runtime_value_copy(call->data[0]);
  return PLN_OK;
}

pln_status pln_kernel_optional_has_element(pln_kernel_call *call) {
  return make_scalar(call, PLN_BOOL, operand_at(call, 0) != NULL);
}
