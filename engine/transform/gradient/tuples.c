/* tuples.c: operations on tensors, field by field for tuples of tensors.
 *
 * Called by Gradient and FirstOrderGradient. Tuples in tuples are followed to a
 * fixed depth; deeper ones, and other types, are refused. */

#include "transform/gradient/tuples.h"

#include "transform/relay_builder.h"

enum { MAX_NESTING = 32 };

/* Fields of a tuple type, with the values that an operation made of them. */
typedef struct field_list {
  pln_engine *engine;
  uint32_t n;
  pln_ref *refs;
} field_list;

static pln_status fields_begin(pln_engine *e, pln_type tuple, field_list *out) {
  *out = (field_list){.engine = e, .n = pln_type_n_parts(e, tuple)};
  out->refs = pln_mem_new(e, (out->n + (size_t)1) * sizeof *out->refs);
  return out->refs ? PLN_OK : pln_nomem(e);
}

static void fields_end(field_list *f) {
  pln_mem_free(f->engine, f->refs, (f->n + (size_t)1) * sizeof *f->refs);
}

/* PLN_OK for a tensor or tuple at that depth; *tensor: which. */
static pln_status check_type(pln_engine *e, pln_type type, int depth,
                             bool *tensor) {
  pln_type_kind kind = pln_type_get_kind(e, type);
  *tensor = kind == PLN_TYPE_TENSOR;
  if (*tensor || (kind == PLN_TYPE_TUPLE && depth < MAX_NESTING))
    return PLN_OK;
  return pln_diag_error(e, PLN_ERR_UNSUPPORTED, NULL,
                        "gradients are those of tensors and of tuples of "
                        "tensors, nested to depth %d",
                        MAX_NESTING);
}

static pln_status get_field(pln_let_list *lets, pln_ref tuple, uint32_t i,
                            pln_ref *out) {
  return pln_build_tuple_get_item(lets->b, tuple, i, out);
}

static pln_status push_field(pln_let_list *lets, pln_ref tuple, uint32_t i,
                             pln_ref *out) {
  PLN_TRY(get_field(lets, tuple, i, out));
  return pln_let_list_push(lets, *out, out);
}

static pln_status call(pln_builder *b, pln_op op, uint32_t n,
                       const pln_ref *args, pln_ref *out) {
  return pln_build_call(b, op, 0, 0, n, args, out);
}

/* --------------------------------------------------------- zeros and ones */

static pln_status filled_tensor(pln_builder *b, pln_op op, pln_type type,
                                pln_ref *out) {
  pln_engine *e = b->engine;
  pln_relay_builder r = {.engine = e, .b = b};
  int32_t rank = pln_type_rank(e, type);
  const pln_dim *dims = pln_type_dims(e, type);
  for (int32_t i = 0; i < rank; i++)
    if (!PLN_DIM_IS_CONST(dims[i]))
      rank = -1;
  if (rank < 0)
    return pln_diag_error(e, PLN_ERR_UNSUPPORTED, NULL,
                          "the gradient of a tuple needs the shapes of its "
                          "fields");
  pln_attr dtype = {.kind = PLN_ATTR_STRING,
                    .v.s = pln_text(pln_dtype_name(pln_type_dtype(e, type)))};
  pln_relay_attr attrs[] = {pln_relay_ints("shape", (uint32_t)rank, dims),
                            {"dtype", dtype}};
  *out = pln_relay_call_with(&r, op, 2, attrs, 0, NULL);
  return pln_relay_status(&r);
}

static pln_status filled_tuple(pln_builder *b, pln_op op, pln_type type,
                               int depth, pln_ref *out) {
  bool tensor;
  PLN_TRY(check_type(b->engine, type, depth, &tensor));
  if (tensor)
    return filled_tensor(b, op, type, out);
  field_list f;
  pln_status status = fields_begin(b->engine, type, &f);
  for (uint32_t i = 0; i < f.n && status == PLN_OK; i++)
    status = filled_tuple(b, op, pln_type_part_at(b->engine, type, i),
                          depth + 1, &f.refs[i]);
  if (status == PLN_OK)
    status = pln_build_tuple(b, f.n, f.refs, out);
  fields_end(&f);
  return status;
}

pln_status pln_filled_like(pln_builder *b, pln_op like, pln_op filled,
                           pln_ref node, pln_ref *out) {
  pln_type type = b->graph->nodes[node].type;
  if (pln_type_get_kind(b->engine, type) == PLN_TYPE_TENSOR)
    return call(b, like, 1, &node, out);
  return filled_tuple(b, filled, type, 0, out);
}

/* ---------------------------------------------------------------------- sums
 */

static pln_status add_fields(pln_let_list *lets, pln_type type, int depth,
                             pln_ref x, pln_ref y, pln_ref *out) {
  pln_engine *e = lets->b->engine;
  bool tensor;
  PLN_TRY(check_type(e, type, depth, &tensor));
  if (tensor) {
    PLN_TRY(call(lets->b, PLN_OP_ADD, 2, (pln_ref[]){x, y}, out));
    return pln_let_list_push(lets, *out, out);
  }
  field_list f;
  pln_status status = fields_begin(e, type, &f);
  for (uint32_t i = 0; i < f.n && status == PLN_OK; i++) {
    pln_ref a, b = PLN_NONE;
    status = push_field(lets, x, i, &a);
    if (status == PLN_OK)
      status = push_field(lets, y, i, &b);
    if (status == PLN_OK)
      status = add_fields(lets, pln_type_part_at(e, type, i), depth + 1, a, b,
                          &f.refs[i]);
  }
  if (status == PLN_OK)
    status = pln_build_tuple(lets->b, f.n, f.refs, out);
  if (status == PLN_OK)
    status = pln_let_list_push(lets, *out, out);
  fields_end(&f);
  return status;
}

pln_status pln_add_tuples(pln_let_list *lets, pln_type type, pln_ref x,
                          pln_ref y, pln_ref *out) {
  return add_fields(lets, type, 0, x, y, out);
}

/* ------------------------------------------------------------------- lifting
 */

static pln_status lift_tensor(pln_let_list *lets, pln_lift lift, pln_ref atom,
                              pln_ref *out) {
  pln_builder *b = lets->b;
  switch (lift) {
  case PLN_LIFT_REVERSE:
    PLN_TRY(call(b, PLN_OP_ZEROS_LIKE, 1, &atom, out));
    PLN_TRY(pln_build_ref_create(b, *out, out));
    PLN_TRY(pln_build_tuple(b, 2, (pln_ref[]){atom, *out}, out));
    break;
  case PLN_LIFT_VALUE: PLN_TRY(get_field(lets, atom, 0, out)); break;
  case PLN_LIFT_GRADIENT:
    PLN_TRY(get_field(lets, atom, 1, out));
    PLN_TRY(pln_build_ref_read(b, *out, out));
    break;
  }
  return pln_let_list_push(lets, *out, out);
}

static pln_status lift_fields(pln_let_list *lets, pln_lift lift, pln_type type,
                              int depth, pln_ref atom, pln_ref *out) {
  pln_engine *e = lets->b->engine;
  bool tensor;
  PLN_TRY(check_type(e, type, depth, &tensor));
  if (tensor)
    return lift_tensor(lets, lift, atom, out);
  field_list f;
  pln_status status = fields_begin(e, type, &f);
  for (uint32_t i = 0; i < f.n && status == PLN_OK; i++) {
    pln_ref field;
    status = push_field(lets, atom, i, &field);
    if (status == PLN_OK)
      status = lift_fields(lets, lift, pln_type_part_at(e, type, i), depth + 1,
                           field, &f.refs[i]);
  }
  if (status == PLN_OK)
    status = pln_build_tuple(lets->b, f.n, f.refs, out);
  if (status == PLN_OK)
    status = pln_let_list_push(lets, *out, out);
  fields_end(&f);
  return status;
}

pln_status pln_lift_tuples(pln_let_list *lets, pln_lift lift, pln_type type,
                           pln_ref atom, pln_ref *out) {
  return lift_fields(lets, lift, type, 0, atom, out);
}

static pln_status value_fields(pln_let_list *lets, pln_type type, int depth,
                               pln_ref pairs, pln_ref *out) {
  pln_engine *e = lets->b->engine;
  bool tensor;
  PLN_TRY(check_type(e, type, depth, &tensor));
  if (tensor)
    return get_field(lets, pairs, 0, out);
  field_list f;
  pln_status status = fields_begin(e, type, &f);
  for (uint32_t i = 0; i < f.n && status == PLN_OK; i++) {
    pln_ref field;
    status = push_field(lets, pairs, i, &field);
    if (status == PLN_OK)
      status = value_fields(lets, pln_type_part_at(e, type, i), depth + 1,
                            field, &f.refs[i]);
  }
  if (status == PLN_OK)
    status = pln_build_tuple(lets->b, f.n, f.refs, out);
  fields_end(&f);
  return status;
}

pln_status pln_values_of_pairs(pln_let_list *lets, pln_type type, pln_ref pairs,
                               pln_ref *out) {
  return value_fields(lets, type, 0, pairs, out);
}

/* -------------------------------------------------------------- references */

static pln_status write_gradient(pln_let_list *lets, pln_ref pair,
                                 pln_ref value) {
  pln_ref ref, write;
  PLN_TRY(get_field(lets, pair, 1, &ref));
  PLN_TRY(pln_build_ref_write(lets->b, ref, value, &write));
  return pln_let_list_push(lets, write, &write);
}

/* What `from` gives is added to, or replaces, the gradients of `to`. */
static pln_status write_fields(pln_let_list *lets, bool adds, pln_type type,
                               int depth, pln_ref to, pln_ref from) {
  pln_engine *e = lets->b->engine;
  pln_ref args[2], sum;
  bool tensor;
  PLN_TRY(check_type(e, type, depth, &tensor));
  if (tensor) {
    PLN_TRY(get_field(lets, adds ? to : from, 1, &args[0]));
    PLN_TRY(pln_build_ref_read(lets->b, args[0], &args[0]));
    args[1] = from;
    if (!adds)
      return write_gradient(lets, to, args[0]);
    PLN_TRY(call(lets->b, PLN_OP_ADD, 2, args, &sum));
    return write_gradient(lets, to, sum);
  }
  for (uint32_t i = 0; i < pln_type_n_parts(e, type); i++) {
    PLN_TRY(push_field(lets, adds ? to : from, i, &args[0]));
    PLN_TRY(push_field(lets, adds ? from : to, i, &args[1]));
    PLN_TRY(write_fields(lets, adds, pln_type_part_at(e, type, i), depth + 1,
                         adds ? args[0] : args[1], adds ? args[1] : args[0]));
  }
  return PLN_OK;
}

pln_status pln_update_gradient(pln_let_list *lets, pln_type type, pln_ref pairs,
                               pln_ref grad) {
  return write_fields(lets, true, type, 0, pairs, grad);
}

pln_status pln_transfer_gradient(pln_let_list *lets, pln_type type,
                                 pln_ref from, pln_ref to) {
  return write_fields(lets, false, type, 0, to, from);
}
