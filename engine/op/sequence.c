/* sequence.c: the types of sequences, optionals and maps. Called through
 * ops.def; nothing here is computed. */

#include "op/infer.h"

/* The element type of a sequence or optional; 0 when it is not known. */
static pln_status element_of(const pln_infer *call, uint32_t i,
                             pln_type_kind kind, const char *what,
                             pln_type *out) {
  pln_type type = pln_arg_type(call, i);
  *out = 0;
  if (!type)
    return PLN_OK;
  if (pln_type_kind_of(call->engine, type) != kind)
    return pln_arg_error(call, i, "expected %s", what);
  *out = pln_type_part(call->engine, type, 0);
  return PLN_OK;
}

static pln_status sequence_element(const pln_infer *call, pln_type *out) {
  return element_of(call, 0, PLN_TYPE_SEQUENCE, "a sequence", out);
}

static pln_status make(pln_infer *call, pln_type_kind kind, pln_type element) {
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

/* What all elements have in common. */
pln_status pln_infer_sequence_construct(pln_infer *call) {
  pln_dtype dtype;
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  pln_type all = pln_arg_type(call, 0);
  for (uint32_t i = 1; i < call->n_args && all; i++) {
    bool conflict;
    PLN_TRY(pln_type_join(call->engine, all, pln_arg_type(call, i), &all,
                          &conflict));
  }
  return make(call, PLN_TYPE_SEQUENCE, all);
}

pln_status pln_infer_sequence_empty(pln_infer *call) {
  int64_t dtype = pln_call_int(call, "dtype", PLN_FLOAT32);
  pln_type element;
  if (dtype <= 0 || dtype >= PLN_N_DTYPES)
    return pln_call_error(call, "dtype %lld is unknown", (long long)dtype);
  PLN_TRY(pln_type_tensor(call->engine, (pln_dtype)dtype, -1, NULL, &element));
  return make(call, PLN_TYPE_SEQUENCE, element);
}

/* An empty sequence says nothing of the shapes to come, so its elements are
 * joined with what is inserted. */
pln_status pln_infer_sequence_insert(pln_infer *call) {
  pln_type element, added = pln_arg_type(call, 1);
  bool conflict = false;
  PLN_TRY(sequence_element(call, &element));
  if (!element || !added)
    return make(call, PLN_TYPE_SEQUENCE, 0);
  PLN_TRY(pln_type_join(call->engine, element, added, &element, &conflict));
  if (conflict)
    return pln_arg_error(call, 1, "it has another dtype than the sequence");
  return make(call, PLN_TYPE_SEQUENCE, element);
}

/* Parts along an axis: of equal extents when that is one number. */
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
  return make(call, PLN_TYPE_SEQUENCE, element);
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
    return make(call, PLN_TYPE_OPTIONAL, pln_arg_type(call, 0));
  if (type && type->kind == PLN_ATTR_TYPE)
    return make(call, PLN_TYPE_OPTIONAL, type->v.type);
  return pln_call_error(call, "neither a value nor a type is given");
}

/* Since opset 18 a tensor or sequence is taken as an optional that has it. */
pln_status pln_infer_optional_get_element(pln_infer *call) {
  pln_type type = pln_arg_type(call, 0);
  bool is_optional = pln_type_kind_of(call->engine, type) == PLN_TYPE_OPTIONAL;
  call->results[0] = is_optional ? pln_type_part(call->engine, type, 0) : type;
  return PLN_OK;
}

pln_status pln_infer_optional_has_element(pln_infer *call) {
  return pln_result_scalar(call, 0, PLN_BOOL);
}
