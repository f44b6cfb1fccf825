/* take_gradient.c: the gradient of take: a loop that adds the parts of the
 * gradient to zeros. Called through gradients.def.
 *
 *     let %while_loop = fn (%data_grad, %i: Tensor[(1), int32]) {
 *       if (squeeze(less(%i, count))) {
 *         %while_loop(strided_set(%data_grad, ...), add(%i, one))
 *       } else { (%data_grad, %i) }
 *     };
 *     %while_loop(zeros_like(data), zero).0
 *
 * Indices are assumed to be in range. Semantics: TVM FPrimalGradient. */

#include "op/infer/infer.h"
#include "transform/gradient/operator_gradient.h"

typedef struct take {
  pln_gradient *g;
  int32_t rank, axis;
  int64_t shape[PLN_MAX_RANK];
  pln_ref indices, grad, count, zero, one;
  pln_ref loop, data_grad, i;
} take;

static pln_ref int_vector(pln_gradient *g, int64_t value) {
  int64_t one = 1;
  return pln_reshape_to(g, pln_relay_scalar(&g->r, PLN_INT32, (double)value), 1,
                        &one);
}

static pln_ref take_at(pln_gradient *g, pln_ref data, pln_ref indices,
                       int64_t axis) {
  pln_relay_attr attr = pln_relay_int("axis", axis);
  pln_ref args[] = {data, indices};
  return pln_relay_call_with(&g->r, PLN_OP_GATHER, 1, &attr, 2, args);
}

static pln_ref shape_of(pln_gradient *g, pln_ref x) {
  pln_relay_attr dtype = {"dtype",
                          {.kind = PLN_ATTR_STRING, .v.s = pln_text("int32")}};
  return pln_relay_call_with(&g->r, PLN_OP_SHAPE, 1, &dtype, 1, &x);
}

static pln_ref tuple_of(pln_gradient *g, uint32_t n, const pln_ref *fields) {
  pln_ref out = PLN_NONE;
  for (uint32_t i = 0; i < n; i++)
    if (fields[i] == PLN_NONE)
      return PLN_NONE;
  if (g->r.status == PLN_OK)
    g->r.status = pln_build_tuple(g->r.b, n, fields, &out);
  return g->r.status == PLN_OK ? out : PLN_NONE;
}

static pln_ref joined(pln_gradient *g, uint32_t n, const pln_ref *parts) {
  pln_relay_attr axis = pln_relay_int("axis", 0);
  pln_ref tuple = tuple_of(g, n, parts);
  return pln_relay_call_with(&g->r, PLN_OP_CONCAT, 1, &axis, 1, &tuple);
}

static pln_ref ones_constant(pln_gradient *g, int32_t n) {
  int64_t ones[PLN_MAX_RANK];
  for (int32_t i = 0; i < n; i++)
    ones[i] = 1;
  return pln_ints_constant(g, n, ones);
}

/* Relay's strided_slice of bounds that are computed: negative ones count from
 * the end. */
static pln_ref dynamic_slice(pln_gradient *g, pln_ref data, pln_ref begin,
                             pln_ref end, pln_ref strides) {
  pln_ref zero = pln_relay_scalar(&g->r, PLN_INT32, 0);
  zero = pln_binary(g, PLN_OP_CAST_LIKE, zero, begin);
  pln_ref negative = pln_binary(g, PLN_OP_LESS, begin, zero);
  pln_ref shape = pln_binary(g, PLN_OP_CAST_LIKE, shape_of(g, data), begin);
  pln_ref from_end = pln_binary(g, PLN_OP_ADD, begin, shape);
  begin = pln_relay_call(&g->r, PLN_OP_WHERE, 3, negative, from_end, begin);
  return pln_relay_call(&g->r, PLN_OP_DYN_STRIDED_SLICE, 4, data, begin, end,
                        strides);
}

/* The result of the loop after one more index. */
static pln_ref updated(take *t) {
  pln_gradient *g = t->g;
  pln_ref begin[PLN_MAX_RANK], end[PLN_MAX_RANK];
  pln_ref index = take_at(g, t->indices, t->i, 0);
  pln_ref part = take_at(g, t->grad, t->i, t->axis);
  for (int32_t k = 0; k < t->rank; k++) {
    pln_ref size = int_vector(g, t->shape[k]);
    begin[k] = k == t->axis ? index : t->zero;
    end[k] = k == t->axis ? pln_binary(g, PLN_OP_ADD, index, t->one) : size;
  }
  pln_ref from = joined(g, (uint32_t)t->rank, begin);
  pln_ref to = joined(g, (uint32_t)t->rank, end);
  pln_ref old =
      dynamic_slice(g, t->data_grad, from, to, ones_constant(g, t->rank));
  pln_ref sum = pln_binary(g, PLN_OP_ADD, old, part);
  return pln_relay_call(&g->r, PLN_OP_STRIDED_SET, 5, t->data_grad, sum, from,
                        to, ones_constant(g, t->rank));
}

static pln_status declare(take *t, const char *name, pln_type type,
                          pln_ref *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(t->g->r.engine, pln_text(name), &symbol));
  return pln_build_var(t->g->r.b, symbol, type, 0, out);
}

static pln_status declare_loop(take *t) {
  pln_engine *e = t->g->r.engine;
  pln_type data = pln_gradient_type(t->g, t->g->args[0]), types[2], state, loop;
  pln_dim one = 1;
  PLN_TRY(pln_type_tensor(e, pln_type_dtype(e, data), t->rank, t->shape,
                          &types[0]));
  PLN_TRY(pln_type_tensor(e, PLN_INT32, 1, &one, &types[1]));
  PLN_TRY(pln_type_make(e, PLN_TYPE_TUPLE, 0, 2, types, &state));
  PLN_TRY(pln_type_func(e, 2, types, state, 0, NULL, 0, NULL, &loop));
  PLN_TRY(declare(t, "while_loop", loop, &t->loop));
  PLN_TRY(declare(t, "data_grad", types[0], &t->data_grad));
  return declare(t, "i", types[1], &t->i);
}

static pln_status build_loop(take *t, pln_ref *out) {
  pln_gradient *g = t->g;
  pln_builder *b = g->r.b;
  pln_ref state[] = {t->data_grad, t->i}, next[2], taken, done, body;
  pln_ref running = pln_binary(g, PLN_OP_LESS, t->i, t->count);
  running = pln_unary(g, PLN_OP_SQUEEZE, running);
  next[0] = updated(t);
  next[1] = pln_binary(g, PLN_OP_ADD, t->i, t->one);
  PLN_TRY(pln_relay_status(&g->r));
  PLN_TRY(pln_build_apply(b, t->loop, 0, 0, 2, next, &taken));
  PLN_TRY(pln_build_tuple(b, 2, state, &done));
  PLN_TRY(pln_build_floating_if(b, running, taken, done, &body));
  PLN_TRY(pln_build_bind(b, 2, state, body, 0, 0, &body));
  return pln_build_floating_let(b, t->loop, body, t->loop, out);
}

/* `start` is what the gradients are added to. */
static pln_status run_loop(take *t, pln_ref start, pln_ref *out) {
  pln_builder *b = t->g->r.b;
  pln_ref args[] = {start, t->zero}, loop;
  PLN_TRY(declare_loop(t));
  PLN_TRY(build_loop(t, &loop));
  PLN_TRY(pln_relay_status(&t->g->r));
  PLN_TRY(pln_build_apply(b, loop, 0, 0, 2, args, out));
  return pln_build_tuple_get_item(b, *out, 0, out);
}

/* A scalar index becomes a vector; without an axis the data is flat. */
static bool prepare(take *t, pln_ref *start) {
  pln_gradient *g = t->g;
  pln_engine *e = g->r.engine;
  int64_t given, flat = -1, one = 1;
  const pln_dim *shape = pln_gradient_shape(g, g->args[0], &t->rank);
  int32_t rank = pln_type_rank(e, pln_gradient_type(g, g->args[1]));
  if (!shape)
    return false;
  if (rank < 0 || rank > 1 || pln_gradient_int(g, "batch_dims", 0) != 0) {
    pln_gradient_refuse(g, "indices must be a scalar or a vector, and "
                           "batch_dims 0");
    return false;
  }
  if (t->rank > 0)
    memcpy(t->shape, shape, (size_t)t->rank * sizeof *shape);
  t->zero = int_vector(g, 0);
  t->one = int_vector(g, 1);
  *start = pln_unary(g, PLN_OP_ZEROS_LIKE, g->args[0]);
  if (pln_gradient_ints(g, "axis", 1, &given) < 0) {
    *start = pln_reshape_to(g, *start, 1, &flat);
    for (int32_t k = 1; k < t->rank; k++)
      t->shape[0] *= t->shape[k];
    t->shape[0] = t->rank ? t->shape[0] : 1;
    t->rank = 1;
    given = 0;
  }
  t->axis = (int32_t)(given < 0 ? given + t->rank : given);
  t->indices = g->args[1];
  t->grad = g->grad;
  if (rank == 0) {
    pln_relay_attr axis = pln_relay_int("axis", t->axis);
    t->count = t->one;
    t->indices = pln_reshape_to(g, t->indices, 1, &one);
    t->grad =
        pln_relay_call_with(&g->r, PLN_OP_UNSQUEEZE, 1, &axis, 1, &t->grad);
  } else {
    t->count = take_at(g, shape_of(g, t->indices), t->zero, 0);
  }
  return g->r.status == PLN_OK;
}

void pln_gradient_take(pln_gradient *g) {
  take t = {.g = g};
  pln_ref start;
  int64_t axis;
  if (!prepare(&t, &start))
    return;
  pln_status status = run_loop(&t, start, &g->out[0]);
  if (g->r.status == PLN_OK)
    g->r.status = status;
  if (pln_gradient_ints(g, "axis", 1, &axis) < 0)
    g->out[0] = pln_binary(g, PLN_OP_RESHAPE_LIKE, g->out[0], g->args[0]);
  g->out[1] = pln_unary(g, PLN_OP_ZEROS_LIKE, g->args[1]);
}
