/* composed.c: see composed.h. Called by kernels that are formulas over other
 * kernels. */

#include "op/kernel/composed.h"

void pln_composition_begin(pln_composition *s, pln_kernel_call *call) {
  s->call = call;
  s->status = PLN_OK;
  s->n_made = s->n_attrs = s->n_ints = 0;
}

void pln_composition_refuse(pln_composition *s, const char *why) {
  if (s->status == PLN_OK)
    s->status = pln_kernel_refuse(s->call, "%s", why);
}

const pln_tensor *pln_compose_own(pln_composition *s, pln_tensor *t) {
  if (!t)
    return NULL;
  if (s->n_made == PLN_COMPOSITION_TENSORS) {
    pln_tensor_release(t);
    pln_composition_refuse(s, "there are too many steps");
    return NULL;
  }
  s->made[s->n_made++] = t;
  return t;
}

void pln_composition_set_result(pln_composition *s, uint32_t i,
                                const pln_tensor *tensor) {
  if (s->status == PLN_OK && tensor && i < s->call->n_results)
    s->call->results[i] = pln_tensor_retain(tensor);
}

pln_status pln_composition_end(pln_composition *s) {
  for (uint32_t i = 0; i < s->n_made; i++)
    pln_tensor_release(s->made[i]);
  s->n_made = 0;
  return s->status;
}

pln_status pln_composition_finish(pln_composition *s, const pln_tensor *last) {
  pln_composition_set_result(s, 0, last);
  return pln_composition_end(s);
}

/* --------------------------------------------------------------- attributes */

static pln_attr *add_attr(pln_composition *s, const char *name, int kind) {
  pln_attr *a = &s->attrs[s->n_attrs];
  if (s->status == PLN_OK && s->n_attrs == PLN_COMPOSITION_ATTRS)
    pln_composition_refuse(s, "a step has too many attributes");
  if (s->status != PLN_OK)
    return NULL;
  *a = (pln_attr){.kind = (uint8_t)kind};
  s->status = pln_symbol_intern(s->call->engine, pln_text(name), &a->name);
  s->n_attrs += s->status == PLN_OK;
  return s->status == PLN_OK ? a : NULL;
}

void pln_compose_int(pln_composition *s, const char *name, int64_t value) {
  pln_attr *a = add_attr(s, name, PLN_ATTR_INT);
  if (a)
    a->v.i = value;
}

void pln_compose_float(pln_composition *s, const char *name, double value) {
  pln_attr *a = add_attr(s, name, PLN_ATTR_FLOAT);
  if (a)
    a->v.f = value;
}

void pln_compose_string(pln_composition *s, const char *name,
                        const char *text) {
  pln_attr *a = add_attr(s, name, PLN_ATTR_STRING);
  if (a)
    a->v.s = pln_text(text);
}

void pln_compose_ints(pln_composition *s, const char *name, uint32_t n,
                      const int64_t *ints) {
  if (n > PLN_COMPOSITION_INTS - s->n_ints) {
    pln_composition_refuse(s, "a step has too many integers");
    return;
  }
  pln_attr *a = add_attr(s, name, PLN_ATTR_INTS);
  if (!a)
    return;
  if (n)
    memcpy(s->ints + s->n_ints, ints, n * sizeof *ints);
  a->count = n;
  a->v.ints = s->ints + s->n_ints;
  s->n_ints += n;
}

void pln_compose_forward(pln_composition *s, const char *name) {
  const pln_attr *from = pln_attrs_find(s->call->engine, s->call->attrs, name);
  pln_attr *a = from ? add_attr(s, name, from->kind) : NULL;
  if (a)
    *a = *from;
}

/* -------------------------------------------------------------------- calls */

/* Expands a splat, because kernels expect dense tensors. */
static const pln_tensor *keep_dense(pln_composition *s, pln_tensor *t) {
  pln_tensor *dense = NULL;
  s->status = pln_tensor_dense(t, &dense);
  pln_tensor_release(t);
  return s->status == PLN_OK ? pln_compose_own(s, dense) : NULL;
}

static bool all_there(pln_composition *s, uint32_t n,
                      const pln_tensor *const *args, uint32_t least) {
  for (uint32_t i = 0; i < n && i < least; i++)
    if (!args[i])
      pln_composition_refuse(s, "an operand is missing");
  return s->status == PLN_OK;
}

/* Kernels trust types: what inference does not accept, they must not get. */
static pln_status check_types(const pln_kernel_call *call) {
  pln_type types[PLN_COMPOSITION_TENSORS],
      results[PLN_COMPOSITION_RESULTS] = {0};
  pln_infer infer = {.engine = call->engine,
                     .n_args = call->n_args,
                     .op = call->op,
                     .attrs = call->attrs,
                     .fields = types,
                     .tensors = call->args,
                     .n_results = call->n_results > 1 ? call->n_results : 0,
                     .results = results};
  for (uint32_t i = 0; i < call->n_args; i++) {
    const pln_tensor *t = call->args[i];
    types[i] = 0;
    if (t)
      PLN_TRY(pln_type_tensor(call->engine, (pln_dtype)t->dtype,
                              (int32_t)t->rank, t->dims, &types[i]));
  }
  const pln_op_info *row = pln_op_row(call->engine, call->op);
  return row->infer ? row->infer(&infer) : PLN_OK;
}

/* The operands are values, so what does not fit is refused and no error of
 * types. */
static void check_operands(pln_composition *s, const pln_kernel_call *call) {
  size_t mark = pln_diag_count(call->engine);
  s->status = check_types(call);
  if (s->status != PLN_ERR_TYPE)
    return;
  pln_diag_drop(call->engine, mark);
  s->status =
      pln_kernel_refuse(s->call, "its operands do not fit together (in '%s')",
                        pln_op_row(call->engine, call->op)->name);
}

static void call_operator_kernel(pln_composition *s, pln_kernel_call *call) {
  const pln_op_info *row = pln_op_row(call->engine, call->op);
  s->status = pln_attrs_make(call->engine, s->n_attrs, s->attrs, &call->attrs);
  if (s->status == PLN_OK)
    check_operands(s, call);
  if (s->status == PLN_OK)
    s->status = row->kernel(call);
  if (s->status == PLN_OK)
    s->status = pln_poll(call->engine);
}

void pln_compose_results(pln_composition *s, pln_op op, uint32_t n_args,
                         const pln_tensor *const *args, uint32_t n_results,
                         const pln_tensor **out) {
  const pln_op_info *row = pln_op_row(s->call->engine, op);
  pln_tensor *results[PLN_COMPOSITION_RESULTS] = {NULL};
  pln_kernel_call call = {.engine = s->call->engine,
                          .op = op,
                          .n_args = n_args,
                          .args = args,
                          .n_results = n_results,
                          .results = results,
                          .folding = s->call->folding};
  if (n_args > PLN_COMPOSITION_TENSORS)
    pln_composition_refuse(s, "there are too many operands");
  if (all_there(s, n_args, args, (uint32_t)row->min_args))
    call_operator_kernel(s, &call);
  s->n_attrs = s->n_ints = 0;
  for (uint32_t i = 0; i < n_results; i++) {
    if (s->status == PLN_OK)
      out[i] = keep_dense(s, results[i]);
    else
      pln_tensor_release(results[i]);
    if (s->status != PLN_OK)
      out[i] = NULL;
  }
}

/* Results other than the first are dropped. */
const pln_tensor *pln_compose_call(pln_composition *s, pln_op op,
                                   uint32_t n_args,
                                   const pln_tensor *const *args) {
  const pln_tensor *results[2];
  pln_compose_results(s, op, n_args, args, op == PLN_OP_TOP_K ? 2 : 1, results);
  return results[0];
}

const pln_tensor *pln_compose_unary(pln_composition *s, pln_op op,
                                    const pln_tensor *x) {
  return pln_compose_call(s, op, 1, &x);
}

const pln_tensor *pln_compose_binary(pln_composition *s, pln_op op,
                                     const pln_tensor *a, const pln_tensor *b) {
  const pln_tensor *args[2] = {a, b};
  return pln_compose_call(s, op, 2, args);
}

/* ------------------------------------------------------------------- shapes */

const pln_tensor *pln_compose_reshape(pln_composition *s, const pln_tensor *x,
                                      uint32_t rank, const int64_t *dims) {
  pln_tensor *out = NULL;
  if (!all_there(s, 1, &x, 1))
    return NULL;
  s->status = pln_tensor_reshaped(x, rank, dims, &out);
  return s->status == PLN_OK ? pln_compose_own(s, out) : NULL;
}

const pln_tensor *pln_compose_cast(pln_composition *s, const pln_tensor *x,
                                   pln_dtype dtype) {
  if (x && x->dtype == dtype)
    return s->status == PLN_OK ? x : NULL;
  pln_compose_int(s, "to", dtype);
  return pln_compose_unary(s, PLN_OP_CAST, x);
}

/* Adds a text attribute; the text is borrowed. */
static void add_text(pln_composition *s, const char *name, pln_slice text) {
  pln_attr *a = add_attr(s, name, PLN_ATTR_STRING);
  if (a)
    a->v.s = text;
}

const pln_tensor *pln_compose_layout(pln_composition *s, const pln_tensor *x,
                                     pln_slice from, pln_slice to) {
  if (from.size == to.size && memcmp(from.data, to.data, to.size) == 0)
    return s->status == PLN_OK ? x : NULL;
  add_text(s, "src_layout", from);
  add_text(s, "dst_layout", to);
  return pln_compose_unary(s, PLN_OP_LAYOUT_TRANSFORM, x);
}

const pln_tensor *pln_compose_slice(pln_composition *s, const pln_tensor *x,
                                    int64_t axis, int64_t from, int64_t to) {
  pln_compose_ints(s, "starts", 1, &from);
  pln_compose_ints(s, "ends", 1, &to);
  pln_compose_ints(s, "axes", 1, &axis);
  return pln_compose_unary(s, PLN_OP_SLICE, x);
}

const pln_tensor *pln_compose_transpose(pln_composition *s, const pln_tensor *x,
                                        uint32_t rank, const int64_t *axes) {
  pln_compose_ints(s, "axes", rank, axes);
  return pln_compose_unary(s, PLN_OP_TRANSPOSE, x);
}

const pln_tensor *pln_compose_first_axis_last(pln_composition *s,
                                              const pln_tensor *x) {
  int64_t axes[PLN_MAX_RANK];
  if (!x || x->rank < 1 || x->rank > PLN_MAX_RANK) {
    pln_composition_refuse(s, "an operand without axes");
    return NULL;
  }
  for (uint32_t i = 0; i < x->rank; i++)
    axes[i] = (i + 1) % x->rank;
  return pln_compose_transpose(s, x, x->rank, axes);
}

/* ------------------------------------------------------------------- values */

const pln_tensor *pln_compose_scalar(pln_composition *s, pln_dtype dtype,
                                     double value) {
  pln_tensor *out = NULL;
  if (s->status == PLN_OK)
    s->status = pln_tensor_from_bytes(s->call->engine, PLN_FLOAT64, 0, NULL,
                                      &value, sizeof value, &out);
  return s->status == PLN_OK
             ? pln_compose_cast(s, pln_compose_own(s, out), dtype)
             : NULL;
}

const pln_tensor *pln_compose_vector(pln_composition *s, uint32_t n,
                                     const int64_t *ints) {
  int64_t dims[1] = {n};
  pln_tensor *out = NULL;
  if (s->status == PLN_OK)
    s->status = pln_tensor_from_bytes(s->call->engine, PLN_INT64, 1, dims, ints,
                                      n * sizeof *ints, &out);
  return s->status == PLN_OK ? pln_compose_own(s, out) : NULL;
}
