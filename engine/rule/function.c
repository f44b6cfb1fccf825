/* function.c: the functions of conditions and attribute expressions
 * (functions.def). Called by value.c. An argument of another kind gives an
 * unknown value. */

#include "rule/set.h"

typedef struct call {
  pln_rule_match *m;
  uint32_t n;
  const pln_rule_value *args;
  pln_rule_value *out;
} call;

static pln_status give_int(const call *c, pln_dim i) {
  if (i != PLN_DIM_UNKNOWN)
    *c->out = (pln_rule_value){.kind = PLN_VALUE_INT, .v.i = i};
  return PLN_OK;
}

static pln_status give_bool(const call *c, bool b) {
  *c->out = (pln_rule_value){.kind = PLN_VALUE_BOOL, .v.b = b};
  return PLN_OK;
}

static bool is_list(const call *c, uint32_t i) {
  return c->args[i].kind == PLN_VALUE_LIST;
}

static bool is_const_int(const call *c, uint32_t i) {
  return c->args[i].kind == PLN_VALUE_INT && PLN_DIM_IS_CONST(c->args[i].v.i);
}

static int64_t element(const call *c, uint32_t arg, uint32_t i) {
  return pln_rule_list(c->m, &c->args[arg])[i];
}

static pln_status new_list(const call *c, uint32_t n, int64_t **dims) {
  return pln_rule_new_list(c->m, n, c->out, dims);
}

static pln_status call_len(const call *c) {
  bool counted = is_list(c, 0) || c->args[0].kind == PLN_VALUE_NODES;
  return counted ? give_int(c, c->args[0].count) : PLN_OK;
}

static pln_status call_product(const call *c) {
  pln_dim product = 1;
  if (!is_list(c, 0))
    return PLN_OK;
  for (uint32_t i = 0; i < c->args[0].count; i++)
    PLN_TRY(pln_dim_binary(c->m->run->engine, PLN_DIM_MUL, product,
                           element(c, 0, i), &product));
  return give_int(c, product);
}

/* True if the list is a permutation of 0 .. n - 1. */
static bool is_permutation(const call *c, uint32_t arg) {
  uint64_t seen = 0;
  uint32_t n = c->args[arg].count;
  if (!is_list(c, arg) || n > 64)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    int64_t axis = element(c, arg, i);
    if (axis < 0 || axis >= n || (seen >> axis & 1))
      return false;
    seen |= (uint64_t)1 << axis;
  }
  return true;
}

static pln_status call_inverse(const call *c) {
  int64_t *to;
  if (!is_permutation(c, 0))
    return PLN_OK;
  PLN_TRY(new_list(c, c->args[0].count, &to));
  for (uint32_t i = 0; i < c->args[0].count; i++)
    to[element(c, 0, i)] = i;
  return PLN_OK;
}

static pln_status call_compose(const call *c) {
  int64_t *to;
  if (!is_list(c, 0) || !is_list(c, 1))
    return PLN_OK;
  for (uint32_t i = 0; i < c->args[1].count; i++)
    if (element(c, 1, i) < 0 || element(c, 1, i) >= c->args[0].count)
      return PLN_OK;
  PLN_TRY(new_list(c, c->args[1].count, &to));
  for (uint32_t i = 0; i < c->args[1].count; i++)
    to[i] = element(c, 0, (uint32_t)element(c, 1, i));
  return PLN_OK;
}

static pln_status call_iota(const call *c) {
  int64_t *to;
  if (!is_const_int(c, 0) || c->args[0].v.i < 0 ||
      c->args[0].v.i > PLN_MAX_RANK)
    return PLN_OK;
  uint32_t n = (uint32_t)c->args[0].v.i;
  PLN_TRY(new_list(c, n, &to));
  for (uint32_t i = 0; i < n; i++)
    to[i] = i;
  return PLN_OK;
}

static bool normalize_axis(int64_t axis, int64_t rank, int64_t *out) {
  *out = axis < 0 ? axis + rank : axis;
  return PLN_DIM_IS_CONST(axis) && *out >= 0 && *out < rank;
}

static pln_status call_normalize(const call *c) {
  int64_t axis, *to;
  if (!is_const_int(c, 1))
    return PLN_OK;
  int64_t rank = c->args[1].v.i;
  if (is_const_int(c, 0))
    return normalize_axis(c->args[0].v.i, rank, &axis) ? give_int(c, axis)
                                                       : PLN_OK;
  if (!is_list(c, 0))
    return PLN_OK;
  for (uint32_t i = 0; i < c->args[0].count; i++)
    if (!normalize_axis(element(c, 0, i), rank, &axis))
      return PLN_OK;
  PLN_TRY(new_list(c, c->args[0].count, &to));
  for (uint32_t i = 0; i < c->args[0].count; i++)
    normalize_axis(element(c, 0, i), rank, &to[i]);
  return PLN_OK;
}

static pln_status call_sorted(const call *c) {
  int64_t *to;
  if (!is_list(c, 0))
    return PLN_OK;
  uint32_t n = c->args[0].count;
  for (uint32_t i = 0; i < n; i++)
    if (!PLN_DIM_IS_CONST(element(c, 0, i)))
      return PLN_OK;
  if (n > PLN_MAX_RANK)
    return PLN_OK;
  PLN_TRY(new_list(c, n, &to));
  for (uint32_t i = 0; i < n; i++) {
    int64_t x = element(c, 0, i);
    uint32_t k = i;
    for (; k > 0 && to[k - 1] > x; k--)
      to[k] = to[k - 1];
    to[k] = x;
  }
  return PLN_OK;
}

static pln_status call_sublist(const call *c) {
  int64_t *to;
  if (!is_list(c, 0) || !is_const_int(c, 1) || !is_const_int(c, 2))
    return PLN_OK;
  int64_t n = c->args[0].count, begin = c->args[1].v.i, end = c->args[2].v.i;
  begin += begin < 0 ? n : 0;
  end += end < 0 ? n : 0;
  if (begin < 0 || begin > end || end > n)
    return PLN_OK;
  PLN_TRY(new_list(c, (uint32_t)(end - begin), &to));
  for (int64_t i = begin; i < end; i++)
    to[i - begin] = element(c, 0, (uint32_t)i);
  return PLN_OK;
}

static bool holds(const call *c, uint32_t list, int64_t x) {
  for (uint32_t i = 0; i < c->args[list].count; i++)
    if (element(c, list, i) == x)
      return true;
  return false;
}

static pln_status call_without(const call *c) {
  int64_t *to;
  if (!is_list(c, 0) || !is_list(c, 1))
    return PLN_OK;
  uint32_t n = c->args[0].count, k = 0;
  for (uint32_t i = 0; i < c->args[1].count; i++)
    if (element(c, 1, i) < 0 || element(c, 1, i) >= n)
      return PLN_OK;
  PLN_TRY(new_list(c, n, &to));
  for (uint32_t i = 0; i < n; i++)
    if (!holds(c, 1, i))
      to[k++] = element(c, 0, i);
  c->out->count = k;
  return PLN_OK;
}

static pln_status call_nonzero(const call *c) {
  if (!is_list(c, 0))
    return PLN_OK;
  for (uint32_t i = 0; i < c->args[0].count; i++)
    if (element(c, 0, i) == 0)
      return PLN_OK;
  *c->out = c->args[0];
  return PLN_OK;
}

static pln_status call_ones(const call *c) {
  int64_t *to;
  uint32_t k = 0;
  if (!is_list(c, 0))
    return PLN_OK;
  PLN_TRY(new_list(c, c->args[0].count, &to));
  for (uint32_t i = 0; i < c->args[0].count; i++)
    if (element(c, 0, i) == 1)
      to[k++] = i;
  c->out->count = k;
  return PLN_OK;
}

static pln_status call_reduced(const call *c) {
  int64_t *to;
  if (!is_list(c, 0) || !is_list(c, 1))
    return PLN_OK;
  PLN_TRY(new_list(c, c->args[0].count, &to));
  for (uint32_t i = 0; i < c->args[0].count; i++)
    to[i] = holds(c, 1, i) ? 1 : element(c, 0, i);
  return PLN_OK;
}

static pln_status call_list(const call *c) {
  int64_t *to;
  if (!is_const_int(c, 0) || c->args[1].kind != PLN_VALUE_INT ||
      c->args[0].v.i < 0 || c->args[0].v.i > PLN_MAX_RANK)
    return PLN_OK;
  uint32_t n = (uint32_t)c->args[0].v.i;
  PLN_TRY(new_list(c, n, &to));
  for (uint32_t i = 0; i < n; i++)
    to[i] = c->args[1].v.i;
  return PLN_OK;
}

static pln_status call_repeated(const call *c) {
  int64_t *to;
  if (!is_list(c, 0) || !is_const_int(c, 1) || c->args[1].v.i < 1 ||
      c->args[1].v.i > PLN_MAX_RANK)
    return PLN_OK;
  uint32_t times = (uint32_t)c->args[1].v.i, n = c->args[0].count;
  if (n > PLN_MAX_RANK)
    return PLN_OK;
  PLN_TRY(new_list(c, n * times, &to));
  for (uint32_t i = 0; i < n * times; i++)
    to[i] = element(c, 0, i / times);
  return PLN_OK;
}

/* Element i of a Constant's floats. */
static double float_at(const pln_tensor *t, const void *data, size_t i) {
  size_t size = pln_dtype_bits((pln_dtype)t->dtype) / 8;
  return pln_float_load((pln_dtype)t->dtype,
                        (const char *)data + (t->splat ? 0 : i * size));
}

static bool halves_agree(const pln_tensor *t, const void *data, double factor) {
  size_t half = t->count / 2;
  for (size_t i = 0; i < half; i++)
    if (float_at(t, data, half + i) != factor * float_at(t, data, i))
      return false;
  return true;
}

static pln_status call_halves(const call *c) {
  const pln_graph *g = pln_rule_graph(c->m);
  const void *data;
  if (c->args[0].kind != PLN_VALUE_NODE || !is_const_int(c, 1) ||
      g->nodes[c->args[0].v.node].kind != PLN_CONSTANT)
    return PLN_OK;
  const pln_tensor *t = g->tensors[g->nodes[c->args[0].v.node].data];
  if (t->rank != 1 || t->count < 2 || t->count % 2 || t->external ||
      !pln_dtype_is_float((pln_dtype)t->dtype))
    return PLN_OK;
  PLN_TRY(pln_tensor_data(t, &data));
  return give_bool(c, halves_agree(t, data, (double)c->args[1].v.i));
}

/* Of at most MAX_POSITIONS elements, so that a match takes no time that depends
 * on data. */
static pln_status call_in_range(const call *c) {
  enum { MAX_POSITIONS = 1 << 16 };
  const pln_graph *g = pln_rule_graph(c->m);
  int64_t x;
  if (c->args[0].kind != PLN_VALUE_NODE || !is_const_int(c, 1) ||
      !is_const_int(c, 2) || g->nodes[c->args[0].v.node].kind != PLN_CONSTANT)
    return PLN_OK;
  const pln_tensor *t = g->tensors[g->nodes[c->args[0].v.node].data];
  if (t->external || t->count > MAX_POSITIONS)
    return PLN_OK;
  for (size_t i = 0; i < t->count; i++) {
    if (!pln_tensor_int(t, i, &x))
      return PLN_OK;
    if (x < c->args[1].v.i || x >= c->args[2].v.i)
      return give_bool(c, false);
  }
  return give_bool(c, true);
}

static pln_status call_every(const call *c) {
  bool all_known = true;
  if (!is_list(c, 0) || c->args[1].kind != PLN_VALUE_INT)
    return PLN_OK;
  for (uint32_t i = 0; i < c->args[0].count; i++) {
    pln_rule_value x = {.kind = PLN_VALUE_INT, .v.i = element(c, 0, i)};
    bool known;
    bool same = pln_rule_value_equal(c->m, &x, &c->args[1], &known);
    if (known && !same)
      return give_bool(c, false);
    all_known = all_known && known;
  }
  return all_known ? give_bool(c, true) : PLN_OK;
}

/* Integers may be symbolic; other numbers are floats. */
static pln_status pick(const call *c, pln_dim_op op) {
  double x, y;
  pln_dim dim;
  if (c->args[0].kind != PLN_VALUE_INT || c->args[1].kind != PLN_VALUE_INT) {
    if (pln_rule_number(&c->args[0], &x) && pln_rule_number(&c->args[1], &y))
      *c->out = (pln_rule_value){.kind = PLN_VALUE_FLOAT,
                                 .v.f = (op == PLN_DIM_MIN) == (x < y) ? x : y};
    return PLN_OK;
  }
  PLN_TRY(pln_dim_binary(c->m->run->engine, op, c->args[0].v.i, c->args[1].v.i,
                         &dim));
  return give_int(c, dim);
}

static pln_status call_smaller(const call *c) {
  return pick(c, PLN_DIM_MIN);
}

static pln_status call_larger(const call *c) {
  return pick(c, PLN_DIM_MAX);
}

static pln_status call_broadcasts(const call *c) {
  if (!is_list(c, 0) || !is_list(c, 1))
    return PLN_OK;
  uint32_t from = c->args[0].count, to = c->args[1].count;
  if (from > to)
    return give_bool(c, false);
  for (uint32_t i = 0; i < from; i++) {
    int64_t x = element(c, 0, i), y = element(c, 1, to - from + i);
    if (x != 1 && (x != y || x == PLN_DIM_UNKNOWN))
      return PLN_DIM_IS_CONST(x) && PLN_DIM_IS_CONST(y) ? give_bool(c, false)
                                                        : PLN_OK;
  }
  return give_bool(c, true);
}

static pln_status call_contains(const call *c) {
  if (c->args[0].kind != PLN_VALUE_STRING ||
      c->args[1].kind != PLN_VALUE_STRING)
    return PLN_OK;
  return give_bool(c, pln_dtype_contains(pln_dtype_find(c->args[0].v.s),
                                         pln_dtype_find(c->args[1].v.s)));
}

static pln_status call_is_const(const call *c) {
  if (c->args[0].kind != PLN_VALUE_NODE)
    return PLN_OK;
  const pln_graph *g = pln_rule_graph(c->m);
  return give_bool(c, g->nodes[c->args[0].v.node].kind == PLN_CONSTANT);
}

static pln_status call_scalar(const call *c) {
  if (c->args[0].kind == PLN_VALUE_NODE)
    *c->out = pln_rule_uniform_value(pln_rule_graph(c->m), c->args[0].v.node);
  return PLN_OK;
}

static pln_status call_has_op(const call *c) {
  if (c->args[0].kind != PLN_VALUE_NODE || c->args[1].kind != PLN_VALUE_STRING)
    return PLN_OK;
  const pln_graph *g = pln_rule_graph(c->m);
  const pln_node *n = &g->nodes[c->args[0].v.node];
  pln_op op = pln_op_find(g->engine, c->args[1].v.s);
  return give_bool(c, n->kind == PLN_CALL && op && n->data == op);
}

/* ---------------------------------------------------------------- the table */

static const struct {
  const char *name;
  uint32_t least, most;
  pln_status (*run)(const call *c);
} functions[] = {
#define FUNCTION(name, least, most, doc) {#name, least, most, call_##name},
#include "rule/functions.def"
};

uint32_t pln_rule_function_find(pln_slice name) {
  for (uint32_t i = 0; i < PLN_COUNT(functions); i++)
    if (pln_slice_is(name, functions[i].name))
      return i;
  return PLN_NONE;
}

bool pln_rule_function_takes(uint32_t function, uint32_t n) {
  return n >= functions[function].least && n <= functions[function].most;
}

const char *pln_rule_function_name(uint32_t index) {
  return index < PLN_COUNT(functions) ? functions[index].name : NULL;
}

pln_status pln_rule_call_function(pln_rule_match *m, uint32_t function,
                                  uint32_t n, const pln_rule_value *args,
                                  pln_rule_value *out) {
  pln_rule_value values[PLN_MAX_RANK];
  call c = {.m = m, .n = n, .args = values, .out = out};
  for (uint32_t i = 0; i < n; i++) {
    values[i] = args[i];
    if (args[i].kind == PLN_VALUE_NODE)
      values[i].v.node =
          pln_rule_bound_value(&m->run->lets.now, args[i].v.node);
  }
  *out = (pln_rule_value){.kind = PLN_VALUE_UNKNOWN};
  return functions[function].run(&c);
}
