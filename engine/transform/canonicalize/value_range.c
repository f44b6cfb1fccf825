/* value_range.c: finds intervals that hold the elements of tensors. Called by
 * eliminate_nan_guards.c.
 *
 * One loop backwards marks what the wanted ranges depend on, one forwards
 * computes them. The ends of an interval are computed in double and rounded to
 * the dtype, which is right for operators that are rounded correctly, because
 * rounding is monotone; ends of sums and of functions get a margin for the
 * rounding of steps. An end that is not finite in the dtype makes the range
 * unknown. */

#include "transform/canonicalize/value_range.h"

#include <float.h>
#include <math.h>

#include "op/op.h"
#include "transform/simplify/rule.h"

enum { MAX_BYTES = 64 << 20 };

/* What is added to a sum of squares before its root is taken. Elements whose
 * squares underflow are smaller than the root of this. */
#define LEAST_EPSILON 1e-30

static const pln_value_range unknown = {-INFINITY, INFINITY};

/* Of a constant that was not read yet: it is where all other operands of a call
 * are known. */
static const pln_value_range unread = {-INFINITY, -INFINITY};

typedef struct range_query {
  pln_value_ranges *ranges;
  const pln_graph *graph;
  pln_ref node;
  pln_dtype dtype; /* of the result */
  pln_infer call;
} range_query;

/* --------------------------------------------------------------- intervals */

static pln_value_range interval(double a, double b) {
  return (pln_value_range){fmin(a, b), fmax(a, b)};
}

static pln_value_range hull(pln_value_range a, pln_value_range b) {
  return (pln_value_range){fmin(a.lo, b.lo), fmax(a.hi, b.hi)};
}

static double magnitude(pln_value_range r) {
  return fmax(fabs(r.lo), fabs(r.hi));
}

static pln_value_range around_zero(double limit) {
  return (pln_value_range){-limit, limit};
}

/* Relative error of one step, not smaller than half a unit in the last place of
 * the dtype or, for float64, of what functions are computed with. */
static double step_of(pln_dtype dtype) {
  return pln_dtype_is_half(dtype) ? 1.0 / 128 : 1.0 / (1 << 20);
}

/* The interval after `steps` roundings of intermediate results. */
static pln_value_range widened(const range_query *q, pln_value_range r,
                               double steps) {
  double margin = steps * step_of(q->dtype);
  return (pln_value_range){r.lo - fabs(r.lo) * margin,
                           r.hi + fabs(r.hi) * margin};
}

static double rounded(pln_dtype dtype, double x) {
  char bytes[8];
  pln_float_store(dtype, x, bytes);
  return pln_float_load(dtype, bytes);
}

/* Rounds the ends to a dtype of floats, away from each other by more than the
 * error of double. */
static pln_value_range in_dtype(pln_dtype dtype, pln_value_range r) {
  const double error = 1e-15;
  if (!pln_range_is_finite(r) || !pln_dtype_is_float(dtype))
    return unknown;
  r = (pln_value_range){rounded(dtype, r.lo - fabs(r.lo) * error),
                        rounded(dtype, r.hi + fabs(r.hi) * error)};
  return pln_range_is_finite(r) ? r : unknown;
}

static pln_value_range of_integers(pln_dtype dtype) {
  bool wide = pln_dtype_bits(dtype) > 32;
  if (dtype == PLN_BOOL)
    return interval(0, 1);
  return wide ? around_zero(18446744073709551616.0) : around_zero(4294967296.0);
}

/* ---------------------------------------------------------------- operands */

static pln_value_range operand(const range_query *q, uint32_t i) {
  return i < q->call.n_args ? q->ranges->of[q->call.args[i]] : unknown;
}

static pln_value_range hull_from(const range_query *q, uint32_t first) {
  pln_value_range r = operand(q, first);
  for (uint32_t i = first + 1; i < q->call.n_args; i++)
    r = hull(r, operand(q, i));
  return r;
}

/* --------------------------------------------------------------- constants */

static pln_value_range range_of_floats(const pln_tensor *t) {
  pln_value_range r = {INFINITY, -INFINITY};
  size_t n = t->splat ? 1 : t->count;
  bool nan = false;
  for (size_t i = 0; i < n; i++) {
    double x = 0;
    if (!pln_tensor_number(t, i, &x))
      return unknown;
    nan |= isnan(x);
    r.lo = x < r.lo ? x : r.lo;
    r.hi = x > r.hi ? x : r.hi;
  }
  return nan || !pln_range_is_finite(r) || n == 0 ? unknown : r;
}

static pln_value_range range_of_constant(pln_value_ranges *ranges,
                                         pln_ref node) {
  const pln_graph *g = ranges->graph;
  const pln_tensor *t = g->tensors[g->nodes[node].data];
  size_t bytes = t->splat ? 0 : t->bytes;
  if (t->external || !t->data || bytes > MAX_BYTES - ranges->bytes_read)
    return unknown;
  ranges->bytes_read += bytes;
  return range_of_floats(t);
}

/* Constants are read last, so that no weights are where nothing is known. */
static bool are_finite(const range_query *q) {
  pln_value_range *of = q->ranges->of;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < q->call.n_args; i++) {
      pln_ref x = q->call.args[i];
      bool is_unread = of[x].hi == -INFINITY;
      if (pln_arg_absent(&q->call, i) || (is_unread && pass == 0))
        continue;
      if (is_unread)
        of[x] = range_of_constant(q->ranges, x);
      if (!pln_range_is_finite(of[x]))
        return false;
    }
  return true;
}

/* --------------------------------------------------------------- arithmetic
 */

static pln_value_range product(pln_value_range a, pln_value_range b) {
  double x[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  return hull(interval(x[0], x[1]), interval(x[2], x[3]));
}

static pln_value_range quotient(pln_value_range a, pln_value_range b) {
  if (b.lo <= 0 && b.hi >= 0)
    return unknown;
  return product(a, interval(1 / b.lo, 1 / b.hi));
}

/* The operand of which the node is the square; PLN_NONE: it is none. */
static pln_ref root_of(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  double exponent;
  if (n->kind != PLN_CALL || n->count != 2)
    return PLN_NONE;
  pln_ref x = pln_operand(g, node, 0), y = pln_operand(g, node, 1);
  if (n->data == PLN_OP_MUL)
    return x == y ? x : PLN_NONE;
  const pln_tensor *t = pln_node_tensor(g, y);
  return n->data == PLN_OP_POW && t && t->count == 1 && !t->external &&
                 pln_tensor_number(t, 0, &exponent) && exponent == 2
             ? x
             : PLN_NONE;
}

static pln_value_range squared(pln_value_range r) {
  double least = r.lo > 0 ? r.lo : r.hi < 0 ? r.hi : 0, most = magnitude(r);
  return (pln_value_range){least * least, most * most};
}

/* The number of elements that are reduced to one, if axes are kept; 0: not
 * known. */
static double n_reduced(const pln_graph *g, pln_ref from, pln_ref to) {
  const pln_engine *e = g->engine;
  pln_type x = g->nodes[from].type, y = g->nodes[to].type;
  int32_t rank = pln_type_rank(e, x);
  double n = 1;
  if (rank < 0 || rank != pln_type_rank(e, y))
    return 0;
  for (int32_t i = 0; i < rank; i++) {
    pln_dim all = pln_type_dims(e, x)[i], left = pln_type_dims(e, y)[i];
    if (left == all && left != PLN_DIM_UNKNOWN)
      continue;
    if (left != 1 || !PLN_DIM_IS_CONST(all) || all < 1)
      return 0;
    n *= (double)all;
  }
  return n;
}

/* |x| / sqrt(mean of squares of x + e) is at most sqrt(number of squares); with
 * the sum of squares, at most 1. 0: the divisor is something else. */
static double normalised_limit(const range_query *q) {
  const pln_graph *g = q->graph;
  pln_ref x = q->call.args[0], at = q->call.args[1];
  if (!pln_is_call(g, at, PLN_OP_SQRT))
    return 0;
  at = pln_operand(g, at, 0);
  if (!pln_is_call(g, at, PLN_OP_ADD) ||
      !(q->ranges->of[pln_operand(g, at, 1)].lo >= LEAST_EPSILON))
    return 0;
  at = pln_operand(g, at, 0);
  double n = n_reduced(g, x, at);
  if (pln_is_call(g, at, PLN_OP_REDUCE_SUM_SQUARE) && n > 1)
    return pln_operand(g, at, 0) == x ? 1 : 0;
  return pln_is_call(g, at, PLN_OP_REDUCE_MEAN) &&
                 root_of(g, pln_operand(g, at, 0)) == x
             ? sqrt(n)
             : 0;
}

static pln_value_range divided(const range_query *q) {
  double limit = normalised_limit(q);
  if (limit > 0)
    return widened(q, around_zero(limit), 64);
  return quotient(operand(q, 0), operand(q, 1));
}

static pln_value_range to_power(const range_query *q) {
  return root_of(q->graph, q->node) == PLN_NONE ? unknown
                                                : squared(operand(q, 0));
}

static pln_value_range multiplied(const range_query *q) {
  pln_value_range x = operand(q, 0);
  return root_of(q->graph, q->node) != PLN_NONE ? squared(x)
                                                : product(x, operand(q, 1));
}

/* ---------------------------------------------------------------- functions
 */

/* Functions with values in [lo, hi], not exact. */
static pln_value_range bounded(const range_query *q, double lo, double hi) {
  return widened(q, (pln_value_range){lo, hi}, 8);
}

/* x * f(x) with f in [0, 1], and above -1 where x is negative. */
static pln_value_range gated(const range_query *q) {
  pln_value_range x = operand(q, 0);
  return widened(q, (pln_value_range){fmax(fmin(x.lo, 0), -1), fmax(x.hi, 0)},
                 8);
}

static pln_value_range limited(const range_query *q) {
  pln_value_range x = operand(q, 0), r = x;
  double lo = pln_attrs_float(q->graph->engine, q->call.attrs, "a_min", r.lo);
  double hi = pln_attrs_float(q->graph->engine, q->call.attrs, "a_max", r.hi);
  if (q->call.n_args > 1) {
    lo = pln_arg_absent(&q->call, 1) ? r.lo : operand(q, 1).lo;
    hi = pln_arg_absent(&q->call, 2) ? r.hi : operand(q, 2).hi;
  }
  return hull(x, interval(fmax(lo, -DBL_MAX), fmin(hi, DBL_MAX)));
}

static pln_value_range exponential(const range_query *q) {
  pln_value_range x = operand(q, 0);
  return widened(q, (pln_value_range){0, exp(x.hi)}, 8);
}

static pln_value_range square_root(const range_query *q) {
  pln_value_range x = operand(q, 0);
  return x.lo >= 0 ? (pln_value_range){sqrt(x.lo), sqrt(x.hi)} : unknown;
}

/* --------------------------------------------------------------------- sums
 */

static pln_value_range sum_of(const range_query *q, pln_value_range element,
                              double n) {
  return n > 0 ? widened(q,
                         (pln_value_range){fmin(element.lo, 0) * n,
                                           fmax(element.hi, 0) * n},
                         n)
               : unknown;
}

static pln_value_range mean_of(const range_query *q) {
  double n = n_reduced(q->graph, q->call.args[0], q->node);
  return n > 0 ? widened(q, operand(q, 0), n + 1) : unknown;
}

static pln_value_range summed(const range_query *q, pln_value_range element) {
  double n = n_reduced(q->graph, q->call.args[0], q->node);
  /* Nothing may be reduced, with noop_with_empty_axes. */
  return n == 1 ? hull(operand(q, 0), element) : sum_of(q, element, n);
}

/* The softmax along the last axis that a node is, behind a guard against NaN or
 * not; PLN_NONE: it is none. */
static pln_ref probabilities(const pln_graph *g, pln_ref node) {
  if (pln_is_call(g, node, PLN_OP_WHERE)) {
    pln_ref test = pln_operand(g, node, 0), other = pln_operand(g, node, 2);
    if (!pln_is_call(g, test, PLN_OP_IS_NAN) ||
        pln_operand(g, test, 0) != other)
      return PLN_NONE;
    node = other;
  }
  const pln_node *n = &g->nodes[node];
  int64_t rank = pln_type_rank(g->engine, n->type);
  int64_t axis = pln_attrs_int(g->engine, n->attrs, "axis", -1);
  return pln_is_call(g, node, PLN_OP_SOFTMAX) &&
                 (axis == -1 || axis == rank - 1) &&
                 !pln_attrs_int(g->engine, n->attrs, "coerce_2d", 0)
             ? node
             : PLN_NONE;
}

static pln_dim last_dim(const range_query *q, uint32_t i) {
  int32_t rank = pln_arg_rank(&q->call, i);
  return rank < 1 ? PLN_DIM_UNKNOWN : pln_arg_dims(&q->call, i)[rank - 1];
}

/* Rows of probabilities add up to one, however many there are. */
static pln_value_range matrix_product(const range_query *q) {
  pln_dim n = last_dim(q, 0);
  if (probabilities(q->graph, q->call.args[0]) != PLN_NONE)
    return widened(q, around_zero(2 * magnitude(operand(q, 1))), 8);
  return PLN_DIM_IS_CONST(n)
             ? sum_of(q, product(operand(q, 0), operand(q, 1)), (double)n)
             : unknown;
}

static pln_value_range general_product(const range_query *q) {
  const pln_engine *e = q->graph->engine;
  pln_attrs attrs = q->call.attrs;
  bool across = pln_attrs_int(e, attrs, "transA", 0) != 0;
  if (pln_arg_rank(&q->call, 0) != 2)
    return unknown;
  pln_dim n = pln_arg_dims(&q->call, 0)[across ? 0 : 1];
  double alpha = pln_attrs_float(e, attrs, "alpha", 1);
  double beta = pln_attrs_float(e, attrs, "beta", 1);
  if (!PLN_DIM_IS_CONST(n))
    return unknown;
  pln_value_range r =
      sum_of(q, product(operand(q, 0), operand(q, 1)), (double)n);
  double limit = magnitude(r) * fabs(alpha);
  if (!pln_arg_absent(&q->call, 2))
    limit += magnitude(operand(q, 2)) * fabs(beta);
  return widened(q, around_zero(limit), 4);
}

/* (x - mean) / sqrt(variance + e) is at most the square root of the number of
 * elements. Their squares must not overflow. */
static pln_value_range normalised(const range_query *q) {
  double epsilon =
      pln_attrs_float(q->graph->engine, q->call.attrs, "epsilon", 1e-5);
  int64_t axis = pln_call_int(&q->call, "axis", -1);
  pln_dim n = last_dim(q, 0);
  double limit = 2 * magnitude(operand(q, 0));
  if ((axis != -1 && axis != pln_arg_rank(&q->call, 0) - 1) ||
      !PLN_DIM_IS_CONST(n) || n < 1 || !(epsilon >= LEAST_EPSILON) ||
      !isfinite(rounded(PLN_FLOAT32, limit * limit * (double)n * 2)))
    return unknown;
  pln_value_range r = around_zero(sqrt((double)n) * magnitude(operand(q, 1)));
  r = widened(q, r, 64);
  if (q->call.op == PLN_OP_LAYER_NORMALIZATION && !pln_arg_absent(&q->call, 2))
    r = around_zero(r.hi + magnitude(operand(q, 2)));
  return r;
}

/* ------------------------------------------------------------ quantised data
 */

static pln_value_range dequantized(const range_query *q) {
  pln_dtype from = pln_arg_dtype(&q->call, 0);
  double limit = pln_dtype_bits(from) <= 8 ? 512 : 8589934592.0;
  return pln_dtype_is_integer(from)
             ? around_zero(limit * magnitude(operand(q, 1)))
             : unknown;
}

/* The scale is the width of the range, with zero in it, in 255 steps. */
static pln_value_range quantisation_scale(const range_query *q) {
  return (pln_value_range){0, 2 * magnitude(operand(q, 0))};
}

/* ---------------------------------------------------------------- dispatch */

static pln_value_range cast_range(const range_query *q) {
  pln_dtype from = pln_arg_dtype(&q->call, 0);
  return pln_dtype_is_float(from) || pln_dtype_is_integer(from) ||
                 from == PLN_BOOL
             ? operand(q, 0)
             : unknown;
}

static pln_value_range added(const range_query *q, double sign) {
  pln_value_range x = operand(q, 0), y = operand(q, 1);
  pln_value_range z = interval(sign * y.lo, sign * y.hi);
  return (pln_value_range){x.lo + z.lo, x.hi + z.hi};
}

static pln_value_range range_of_arithmetic(const range_query *q) {
  pln_value_range x = operand(q, 0);
  switch (q->call.op) {
  case PLN_OP_ADD: return added(q, 1);
  case PLN_OP_SUB: return added(q, -1);
  case PLN_OP_MUL: return multiplied(q);
  case PLN_OP_DIV: return divided(q);
  case PLN_OP_POW: return to_power(q);
  case PLN_OP_NEG: return interval(-x.lo, -x.hi);
  case PLN_OP_ABS: return (pln_value_range){0, magnitude(x)};
  case PLN_OP_SQRT: return square_root(q);
  case PLN_OP_RECIPROCAL: return quotient(interval(1, 1), x);
  case PLN_OP_EXP: return exponential(q);
  case PLN_OP_RELU: return (pln_value_range){0, fmax(x.hi, 0)};
  case PLN_OP_CLIP: return limited(q);
  case PLN_OP_SIGMOID: return bounded(q, 0, 1);
  case PLN_OP_SOFTMAX: return bounded(q, 0, 1);
  case PLN_OP_TANH:
  case PLN_OP_ERF:
  case PLN_OP_SIN:
  case PLN_OP_COS: return bounded(q, -1, 1);
  case PLN_OP_GELU:
  case PLN_OP_HARD_SWISH: return gated(q);
  default: return unknown;
  }
}

static pln_value_range range_of_call(const range_query *q) {
  pln_value_range x = operand(q, 0);
  switch (q->call.op) {
  case PLN_OP_RESHAPE:
  case PLN_OP_FLATTEN:
  case PLN_OP_SQUEEZE:
  case PLN_OP_UNSQUEEZE:
  case PLN_OP_TRANSPOSE:
  case PLN_OP_SPLIT:
  case PLN_OP_TILE:
  case PLN_OP_EXPAND:
  case PLN_OP_SLICE:
  case PLN_OP_GATHER:
  case PLN_OP_IDENTITY: return x;
  case PLN_OP_CONCAT:
  case PLN_OP_MAX:
  case PLN_OP_MIN: return hull_from(q, 0);
  case PLN_OP_WHERE: return hull_from(q, 1);
  case PLN_OP_CAST: return cast_range(q);
  case PLN_OP_MAT_MUL: return matrix_product(q);
  case PLN_OP_GEMM: return general_product(q);
  case PLN_OP_REDUCE_MEAN: return mean_of(q);
  case PLN_OP_REDUCE_SUM: return summed(q, x);
  case PLN_OP_REDUCE_SUM_SQUARE: return summed(q, squared(x));
  case PLN_OP_LAYER_NORMALIZATION:
  case PLN_OP_RMS_NORMALIZATION: return normalised(q);
  case PLN_OP_DEQUANTIZE_LINEAR: return dequantized(q);
  default: return range_of_arithmetic(q);
  }
}

static bool is_quantisation(const pln_graph *g, pln_ref node) {
  return g->nodes[node].kind == PLN_CALL &&
         g->nodes[node].data == PLN_OP_DYNAMIC_QUANTIZE_LINEAR;
}

static pln_dtype dtype_of(const pln_graph *g, pln_ref node) {
  pln_type type = g->nodes[node].type;
  if (g->nodes[node].results)
    type = pln_type_part_at(g->engine, type, 0);
  return is_quantisation(g, node) ? PLN_FLOAT32
                                  : pln_type_dtype(g->engine, type);
}

/* An operator with several results has one range: of the parts of a Split, or
 * of the scale of a quantisation. */
static pln_value_range range_of_node(pln_value_ranges *ranges, pln_ref node) {
  const pln_graph *g = ranges->graph;
  const pln_node *n = &g->nodes[node];
  pln_dtype dtype = dtype_of(g, node);
  bool counts = pln_dtype_is_integer(dtype) || dtype == PLN_BOOL;
  if (counts)
    return of_integers(dtype);
  if (n->kind == PLN_CONSTANT)
    return unread;
  if (n->kind == PLN_TUPLE_GET_ITEM)
    return ranges->of[pln_operand(g, node, 0)];
  if (n->kind != PLN_CALL || !n->data || !pln_call_is_valid(g, node) ||
      !pln_op_is_onnx_form(g, node) ||
      (n->results && n->data != PLN_OP_SPLIT && !is_quantisation(g, node)))
    return unknown;
  range_query q = {.ranges = ranges, .graph = g, .node = node, .dtype = dtype};
  q.call = pln_infer_of(g, node);
  if (!are_finite(&q))
    return unknown;
  pln_value_range r =
      is_quantisation(g, node) ? quantisation_scale(&q) : range_of_call(&q);
  return in_dtype(dtype, r);
}

pln_status pln_value_ranges_begin(pln_value_ranges *ranges,
                                  const pln_graph *graph) {
  size_t n = (size_t)graph->n_nodes + 1;
  *ranges = (pln_value_ranges){.graph = graph};
  ranges->of = pln_mem_zeroed(graph->engine, n * sizeof *ranges->of);
  ranges->wanted = pln_mem_zeroed(graph->engine, n);
  return ranges->of && ranges->wanted ? PLN_OK : pln_nomem(graph->engine);
}

void pln_value_ranges_find(pln_value_ranges *ranges) {
  const pln_graph *g = ranges->graph;
  for (pln_ref i = g->n_nodes; i-- > 0;) {
    const pln_node *n = &g->nodes[i];
    if (ranges->wanted[i] &&
        (n->kind == PLN_CALL || n->kind == PLN_TUPLE_GET_ITEM))
      for (uint32_t k = 0; k < n->count; k++)
        ranges->wanted[pln_operand(g, i, k)] = 1;
  }
  for (pln_ref i = 0; i < g->n_nodes; i++)
    ranges->of[i] = ranges->wanted[i] ? range_of_node(ranges, i) : unknown;
}

void pln_value_ranges_end(pln_value_ranges *ranges) {
  pln_engine *e = ranges->graph->engine;
  size_t n = (size_t)ranges->graph->n_nodes + 1;
  pln_mem_free(e, ranges->of, n * sizeof *ranges->of);
  pln_mem_free(e, ranges->wanted, n);
}
