/* type/dim.c: the engine's table of symbolic dims, and their arithmetic.
 *
 * Called by type inference, shape rules and readers of dim_params. Every dim
 * made here is in normal form (type/dim.h), so two dims are provably equal
 * exactly when their ids are equal. Divisions are assumed to be defined: the
 * divisor is not zero. */

#include "ir/type/dim.h"
#include "ir/merge_ids.h"

/* Extents are below this bound, and sums contain no constant beyond it. */
static const int64_t far = INT64_C(1) << 62;

static bool is_far(pln_dim dim) {
  return PLN_DIM_IS_CONST(dim) && (dim > far || dim < -far);
}

pln_status pln_dims_new(pln_engine *engine) {
  struct pln_dims *dims = pln_mem_zeroed(engine, sizeof *dims);
  if (!dims)
    return pln_nomem(engine);
  engine->dims = dims;
  pln_status status = pln_interner_new(engine, &dims->exprs);
  if (status == PLN_OK)
    status = pln_interner_new(engine, &dims->values);
  if (status != PLN_OK)
    pln_dims_free(engine);
  return status;
}

pln_status pln_dims_child(pln_engine *child) {
  const struct pln_dims *base = child->parent->dims;
  child->dims = pln_mem_zeroed(child, sizeof *child->dims);
  if (!child->dims)
    return pln_nomem(child);
  PLN_TRY(pln_interner_child(child, base->exprs, &child->dims->exprs));
  return pln_interner_child(child, base->values, &child->dims->values);
}

void pln_dims_free(pln_engine *engine) {
  struct pln_dims *dims = engine->dims;
  if (!dims)
    return;
  if (dims->exprs)
    pln_interner_free(dims->exprs);
  if (dims->values)
    pln_interner_free(dims->values);
  pln_mem_free(engine, dims, sizeof *dims);
  engine->dims = NULL;
}

/* ----------------------------------------------------------------- joining */

pln_dim pln_merge_dim(const pln_merge *j, pln_dim dim) {
  if (PLN_DIM_IS_CONST(dim) || dim == PLN_DIM_UNKNOWN)
    return dim;
  return pln_dim_of_id(pln_merged_id(&j->dims, pln_dim_id(dim)));
}

/* Rewrites the ids of an expression copied from a child to the parent's ids.
 * Atoms are sorted by name, so their order stays valid. */
static void move_expr(const pln_merge *j, pln_dim_row *row) {
  pln_dim_term *terms = (pln_dim_term *)(row + 1);
  row->symbol = pln_merged_id(&j->symbols, (pln_symbol)row->symbol);
  if (row->kind == PLN_DIM_CALL) {
    row->a = pln_merge_dim(j, row->a);
    row->b = pln_merge_dim(j, row->b);
  }
  for (uint32_t i = 0; i < row->n_terms; i++)
    for (uint32_t k = 0; k < terms[i].degree; k++)
      terms[i].factors[k] = pln_merged_id(&j->dims, terms[i].factors[k]);
}

pln_status pln_merge_dims(pln_merge *j) {
  const pln_interner *exprs = j->child->dims->exprs;
  uint32_t below = pln_interner_inherited(exprs);
  uint32_t count = pln_interner_count(exprs) - below;
  struct {
    pln_dim_row row;
    pln_dim_term terms[PLN_DIM_MAX_TERMS];
  } copy;
  PLN_TRY(pln_merge_map_begin(j, &j->dims, below, count));
  for (; j->dims.n < count; j->dims.n++) {
    size_t size;
    const void *record = pln_interned(exprs, below + j->dims.n + 1, &size);
    memcpy(&copy, record, size);
    move_expr(j, &copy.row);
    PLN_TRY(pln_intern(j->parent->dims->exprs, &copy, size,
                       &j->dims.to[j->dims.n], NULL));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- atoms */

static pln_status intern_atom(pln_engine *engine, const pln_dim_row *row,
                              pln_dim *out) {
  uint32_t id;
  PLN_TRY(pln_intern(engine->dims->exprs, row, sizeof *row, &id, NULL));
  *out = pln_dim_of_id(id);
  return PLN_OK;
}

pln_status pln_dim_named(pln_engine *engine, pln_slice name, pln_dim *out) {
  if (name.size == 0) {
    *out = PLN_DIM_UNKNOWN;
    return PLN_OK;
  }
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(engine, name, &symbol));
  pln_dim_row row = {.kind = PLN_DIM_SYMBOL,
                     .weight = 1,
                     .symbol = symbol,
                     .range = {0, INT64_MAX}};
  return intern_atom(engine, &row, out);
}

/* A range bound divided by k > 0, rounded down; infinite bounds are kept. */
static int64_t divide_end(int64_t end, int64_t k) {
  bool infinite = end == INT64_MIN || end == INT64_MAX;
  return infinite ? end : pln_floor_div(end, k);
}

static pln_dim_range quotient_range(pln_dim_range a, pln_dim_range b) {
  if (b.low == b.high && b.low > 0)
    return (pln_dim_range){divide_end(a.low, b.low), divide_end(a.high, b.low)};
  if (a.low >= 0 && b.low >= 0)
    return (pln_dim_range){0, a.high};
  return (pln_dim_range){INT64_MIN, INT64_MAX};
}

static pln_dim_range rest_range(pln_dim_range a, pln_dim_range b) {
  if (b.low < 0)
    return (pln_dim_range){INT64_MIN, INT64_MAX};
  int64_t high = b.high == INT64_MAX || b.high == 0 ? b.high : b.high - 1;
  if (a.low >= 0 && a.high < high)
    high = a.high;
  return (pln_dim_range){0, high};
}

static pln_dim_range call_range(pln_dim_op op, pln_dim_range a,
                                pln_dim_range b) {
  switch (op) {
  case PLN_DIM_FLOORDIV: return quotient_range(a, b);
  case PLN_DIM_FLOORMOD: return rest_range(a, b);
  case PLN_DIM_TRUNCDIV: {
    pln_dim_range q = quotient_range(a, b); /* the floor is less by at most 1 */
    q.high += q.high < 0;
    return q;
  }
  case PLN_DIM_MIN:
    return (pln_dim_range){a.low < b.low ? a.low : b.low,
                           a.high < b.high ? a.high : b.high};
  case PLN_DIM_MAX:
    return (pln_dim_range){a.low > b.low ? a.low : b.low,
                           a.high > b.high ? a.high : b.high};
  case PLN_DIM_ADD:
  case PLN_DIM_SUB:
  case PLN_DIM_MUL: break;
  }
  return (pln_dim_range){INT64_MIN, INT64_MAX};
}

static uint32_t weight_of(const pln_engine *engine, pln_dim dim) {
  return PLN_DIM_IS_CONST(dim)
             ? 1
             : pln_dim_row_of(engine, pln_dim_id(dim))->weight;
}

static uint8_t depth_of(const pln_engine *engine, pln_dim dim) {
  return PLN_DIM_IS_CONST(dim) ? 0
                               : pln_dim_row_of(engine, pln_dim_id(dim))->depth;
}

/* Makes an atom for an operation that cannot be simplified. */
static pln_status make_call(pln_engine *engine, pln_dim_op op, pln_dim a,
                            pln_dim b, pln_dim *out) {
  *out = PLN_DIM_UNKNOWN;
  if (a == PLN_DIM_UNKNOWN || b == PLN_DIM_UNKNOWN)
    return PLN_OK;
  uint8_t x = depth_of(engine, a), y = depth_of(engine, b);
  pln_dim_row row = {.kind = PLN_DIM_CALL,
                     .op = (uint8_t)op,
                     .depth = (uint8_t)((x > y ? x : y) + 1),
                     .weight = 1 + weight_of(engine, a) + weight_of(engine, b),
                     .a = a,
                     .b = b};
  if (row.depth > PLN_DIM_MAX_DEPTH || row.weight > PLN_DIM_MAX_WEIGHT)
    return PLN_OK;
  row.range =
      call_range(op, pln_dim_range_of(engine, a), pln_dim_range_of(engine, b));
  return intern_atom(engine, &row, out);
}

/* The call if `dim` is a call of `op`; else NULL. */
static const pln_dim_row *call_of(const pln_engine *engine, pln_dim dim,
                                  pln_dim_op op) {
  if (PLN_DIM_IS_CONST(dim) || dim == PLN_DIM_UNKNOWN)
    return NULL;
  const pln_dim_row *row = pln_dim_row_of(engine, pln_dim_id(dim));
  return row->kind == PLN_DIM_CALL && row->op == op ? row : NULL;
}

/* ---------------------------------------------------- division by a number */

static bool lies_within(pln_dim_range range, int64_t low, int64_t high) {
  return range.low >= low && range.high <= high;
}

/* The sum as `inner / m + constant`, if it has that form. */
static const pln_dim_row *as_quotient(const pln_engine *engine,
                                      const pln_sum *sum) {
  const pln_dim_term *term = &sum->terms[0];
  if (sum->n != 1 || term->coef != 1 || term->degree != 1)
    return NULL;
  const pln_dim_row *row =
      call_of(engine, pln_dim_of_id(term->factors[0]), PLN_DIM_FLOORDIV);
  return row && PLN_DIM_IS_CONST(row->b) && row->b > 0 ? row : NULL;
}

/* (inner / m + c) / k = (inner + c * m) / (m * k); false on overflow. */
static bool unnest(const pln_engine *engine, const pln_sum *rest, int64_t *k,
                   pln_sum *out) {
  const pln_dim_row *inner = as_quotient(engine, rest);
  int64_t offset;
  if (!inner || __builtin_mul_overflow(inner->b, *k, k) ||
      __builtin_mul_overflow(inner->b, rest->constant, &offset))
    return false;
  pln_sum_load(engine, inner->a, out);
  pln_sum_add(engine, out, 1, offset);
  return !out->unknown && !is_far(out->constant);
}

/* out += floor(rest / k), after everything divisible was taken out of rest. */
static pln_status add_quotient(pln_engine *engine, const pln_sum *rest,
                               int64_t k, pln_sum *out) {
  pln_dim inner, atom;
  PLN_TRY(pln_sum_intern(engine, rest, &inner));
  PLN_TRY(make_call(engine, PLN_DIM_FLOORDIV, inner, k, &atom));
  pln_sum_add(engine, out, 1, atom);
  return PLN_OK;
}

/* out = floor(a / k), k > 0. Terms divisible by k are taken out, a common
 * divisor is cancelled, and nested divisions become one. */
static pln_status floor_by_number(pln_engine *engine, const pln_sum *a,
                                  int64_t k, pln_sum *out) {
  pln_sum dividend = *a, quotient, rest;
  pln_sum_zero(out);
  for (int depth = 0; depth <= PLN_DIM_MAX_DEPTH; depth++) {
    pln_sum_split(&dividend, k, &quotient, &rest);
    pln_sum_add_sum(engine, out, 1, &quotient);
    if (lies_within(pln_sum_range(engine, &rest), 0, k - 1))
      return PLN_OK;
    int64_t g = pln_sum_content(&rest, k);
    pln_sum_reduce(&rest, g);
    k /= g;
    int64_t whole = k;
    if (!unnest(engine, &rest, &whole, &dividend))
      return add_quotient(engine, &rest, k, out);
    k = whole;
  }
  out->unknown = true;
  return PLN_OK;
}

/* out = a - k * floor(a / k), k > 0. */
static pln_status rest_by_number(pln_engine *engine, const pln_sum *a,
                                 int64_t k, pln_sum *out) {
  pln_sum quotient, rest;
  pln_dim inner, atom;
  pln_sum_split(a, k, &quotient, &rest);
  if (lies_within(pln_sum_range(engine, &rest), 0, k - 1)) {
    *out = rest;
    return PLN_OK;
  }
  int64_t g = pln_gcd(pln_sum_content(&rest, k), rest.constant);
  pln_sum_reduce(&rest, g);
  PLN_TRY(pln_sum_intern(engine, &rest, &inner));
  PLN_TRY(make_call(engine, PLN_DIM_FLOORMOD, inner, k / g, &atom));
  pln_sum_zero(out);
  pln_sum_add(engine, out, g, atom);
  return PLN_OK;
}

/* out = max(floor(a / k), 0), which is a / k towards zero for a > -k. */
static pln_status floor_not_negative(pln_engine *engine, pln_dim a, int64_t k,
                                     pln_dim *out) {
  pln_dim quotient;
  PLN_TRY(pln_dim_binary(engine, PLN_DIM_FLOORDIV, a, k, &quotient));
  return pln_dim_binary(engine, PLN_DIM_MAX, quotient, 0, out);
}

/* out = a / k towards zero, k > 0. */
static pln_status truncate_by_number(pln_engine *engine, const pln_sum *a,
                                     int64_t k, pln_sum *out) {
  pln_dim_range range = pln_sum_range(engine, a);
  pln_sum divisor, minus;
  pln_dim inner, atom;
  pln_sum_load(engine, k, &divisor);
  if (range.low >= 0)
    return floor_by_number(engine, a, k, out);
  if (pln_sum_divide_exactly(engine, a, &divisor, out))
    return PLN_OK;
  pln_sum_zero(out);
  if (range.high <= 0) {
    pln_sum_zero(&minus);
    pln_sum_add_sum(engine, &minus, -1, a);
    PLN_TRY(floor_by_number(engine, &minus, k, &divisor));
    pln_sum_add_sum(engine, out, -1, &divisor);
    return PLN_OK;
  }
  PLN_TRY(pln_sum_intern(engine, a, &inner));
  if (range.low > -k)
    PLN_TRY(floor_not_negative(engine, inner, k, &atom));
  else
    PLN_TRY(make_call(engine, PLN_DIM_TRUNCDIV, inner, k, &atom));
  pln_sum_add(engine, out, 1, atom);
  return PLN_OK;
}

/* Makes a negative divisor positive: floor(a / -k) = floor(-a / k), a mod -k =
 * -(-a mod k), trunc(a / -k) = trunc(-a / k). */
static pln_status divide_by_number(pln_engine *engine, pln_dim_op op, pln_dim a,
                                   int64_t k, pln_dim *out) {
  pln_sum dividend, result, signed_result;
  pln_sum_zero(&dividend);
  pln_sum_add(engine, &dividend, k < 0 ? -1 : 1, a);
  int64_t divisor = k < 0 ? -k : k;
  if (op == PLN_DIM_FLOORDIV)
    PLN_TRY(floor_by_number(engine, &dividend, divisor, &result));
  else if (op == PLN_DIM_TRUNCDIV)
    PLN_TRY(truncate_by_number(engine, &dividend, divisor, &result));
  else
    PLN_TRY(rest_by_number(engine, &dividend, divisor, &result));
  pln_sum_zero(&signed_result);
  pln_sum_add_sum(engine, &signed_result,
                  op == PLN_DIM_FLOORMOD && k < 0 ? -1 : 1, &result);
  return pln_sum_intern(engine, &signed_result, out);
}

/* ------------------------------------------------ division by what is named */

/* The greatest common divisor of all numbers in a and b. */
static int64_t common_divisor(const pln_sum *a, const pln_sum *b) {
  int64_t named = pln_sum_content(a, pln_sum_content(b, b->constant));
  return pln_gcd(named, a->constant);
}

static pln_status divide_by_name(pln_engine *engine, pln_dim_op op, pln_dim a,
                                 pln_dim b, pln_dim *out) {
  pln_sum x, y, quotient;
  pln_sum_load(engine, a, &x);
  pln_sum_load(engine, b, &y);
  bool exact = pln_sum_divide_exactly(engine, &x, &y, &quotient);
  if (exact && op != PLN_DIM_FLOORMOD)
    return pln_sum_intern(engine, &quotient, out);
  if (exact) {
    *out = 0;
    return PLN_OK;
  }
  if (op == PLN_DIM_FLOORMOD)
    return make_call(engine, op, a, b, out);
  int64_t g = common_divisor(&x, &y);
  pln_sum_reduce(&x, g);
  pln_sum_reduce(&y, g);
  PLN_TRY(pln_sum_intern(engine, &x, &a));
  PLN_TRY(pln_sum_intern(engine, &y, &b));
  if (pln_dim_range_of(engine, a).low >= 0 &&
      pln_dim_range_of(engine, b).low >= 0)
    op = PLN_DIM_FLOORDIV;
  return make_call(engine, op, a, b, out);
}

/* ------------------------------------------------------------- other cases */

/* min(min(x, y), y) = min(x, y) */
static bool absorbs(const pln_engine *engine, pln_dim_op op, pln_dim whole,
                    pln_dim part) {
  const pln_dim_row *row = call_of(engine, whole, op);
  return row && (row->a == part || row->b == part);
}

/* A call of a commutative operator. */
static pln_status make_ordered(pln_engine *engine, pln_dim_op op, pln_dim a,
                               pln_dim b, pln_dim *out) {
  bool swapped = pln_dim_compare(engine, a, b) > 0;
  return make_call(engine, op, swapped ? b : a, swapped ? a : b, out);
}

/* max(x + k, c) = max(x, c - k) + k: of equal calls, sums cancel. `c` is a
 * constant, and x has another constant than 0. */
static pln_status move_constant_out(pln_engine *engine, pln_dim_op op,
                                    pln_dim a, pln_dim c, pln_dim *out) {
  pln_sum x, sum;
  pln_dim inner, call;
  pln_sum_load(engine, a, &x);
  int64_t k = x.constant;
  x.constant = 0;
  PLN_TRY(pln_sum_intern(engine, &x, &inner));
  PLN_TRY(make_ordered(engine, op, inner, c - k, &call));
  pln_sum_load(engine, call, &sum);
  pln_sum_add(engine, &sum, 1, k);
  return pln_sum_intern(engine, &sum, out);
}

/* Returns true for a sum with a constant, both not too large to be added. */
static bool has_constant(const pln_engine *engine, pln_dim a, pln_dim c) {
  pln_sum x;
  if (PLN_DIM_IS_CONST(a) || !PLN_DIM_IS_CONST(c))
    return false;
  pln_sum_load(engine, a, &x);
  return !x.unknown && x.constant != 0 && x.constant > -far &&
         x.constant < far && c > -far && c < far;
}

static pln_status choose_dim_minmax(pln_engine *engine, pln_dim_op op,
                                    pln_dim a, pln_dim b, pln_dim *out) {
  pln_sum difference;
  pln_sum_load(engine, b, &difference);
  pln_sum_add(engine, &difference, -1, a);
  pln_dim_range range = pln_sum_range(engine, &difference);
  bool known = !difference.unknown;
  bool ordered = known && range.low >= 0; /* a <= b */
  bool reversed = known && range.high <= 0;
  if (ordered || reversed)
    *out = ordered == (op == PLN_DIM_MIN) ? a : b;
  else if (absorbs(engine, op, a, b))
    *out = a;
  else if (absorbs(engine, op, b, a))
    *out = b;
  else if (has_constant(engine, a, b))
    return move_constant_out(engine, op, a, b, out);
  else if (has_constant(engine, b, a))
    return move_constant_out(engine, op, b, a, out);
  else
    return make_ordered(engine, op, a, b, out);
  return PLN_OK;
}

static pln_status add_or_multiply(pln_engine *engine, pln_dim_op op, pln_dim a,
                                  pln_dim b, pln_dim *out) {
  pln_sum x, y, product;
  pln_sum_load(engine, a, &x);
  if (op != PLN_DIM_MUL) {
    pln_sum_add(engine, &x, op == PLN_DIM_SUB ? -1 : 1, b);
    return pln_sum_intern(engine, &x, out);
  }
  pln_sum_load(engine, b, &y);
  pln_sum_multiply(engine, &x, &y, &product);
  return pln_sum_intern(engine, &product, out);
}

/* The divisor is not zero, and the dividend is not INT64_MIN. */
static int64_t divide(pln_dim_op op, int64_t a, int64_t b) {
  if (op == PLN_DIM_FLOORDIV)
    return pln_floor_div(a, b);
  if (op == PLN_DIM_TRUNCDIV)
    return a / b;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Folds two constants. A result that equals the code of a symbol is unknown. */
static pln_dim fold_integer_dims(pln_dim_op op, int64_t a, int64_t b) {
  int64_t r = 0;
  bool overflow = false;
  switch (op) {
  case PLN_DIM_ADD: overflow = __builtin_add_overflow(a, b, &r); break;
  case PLN_DIM_SUB: overflow = __builtin_sub_overflow(a, b, &r); break;
  case PLN_DIM_MUL: overflow = __builtin_mul_overflow(a, b, &r); break;
  case PLN_DIM_FLOORDIV:
  case PLN_DIM_TRUNCDIV:
  case PLN_DIM_FLOORMOD:
    overflow = b == 0;
    r = b ? divide(op, a, b) : 0;
    break;
  case PLN_DIM_MIN: return a < b ? a : b;
  case PLN_DIM_MAX: return a > b ? a : b;
  }
  bool usable = !overflow && PLN_DIM_IS_CONST(r) && !is_far(r);
  return usable ? r : PLN_DIM_UNKNOWN;
}

/* One operand is a constant beyond the bound of sums, such as the "to the end"
 * of a Slice; every extent is smaller. */
static pln_dim with_far(pln_dim_op op, pln_dim a, pln_dim b) {
  pln_dim other = is_far(a) ? b : a, limit = is_far(a) ? a : b;
  bool none =
      (op == PLN_DIM_MIN && limit > far) || (op == PLN_DIM_MAX && limit < -far);
  return none ? other : PLN_DIM_UNKNOWN;
}

/* Returns true for the code of a symbol that does not exist: a number of a
 * file, near the least integer. */
static bool is_no_dim(const pln_engine *engine, pln_dim dim) {
  return !PLN_DIM_IS_CONST(dim) &&
         pln_dim_id(dim) > pln_interner_count(engine->dims->exprs);
}

pln_status pln_dim_binary(pln_engine *engine, pln_dim_op op, pln_dim a,
                          pln_dim b, pln_dim *out) {
  *out = PLN_DIM_UNKNOWN;
  if (a == PLN_DIM_UNKNOWN || b == PLN_DIM_UNKNOWN || is_no_dim(engine, a) ||
      is_no_dim(engine, b))
    return PLN_OK;
  if (PLN_DIM_IS_CONST(a) && PLN_DIM_IS_CONST(b)) {
    *out = fold_integer_dims(op, a, b);
    return PLN_OK;
  }
  if (is_far(a) || is_far(b)) {
    *out = with_far(op, a, b);
    return PLN_OK;
  }
  switch (op) {
  case PLN_DIM_ADD:
  case PLN_DIM_SUB:
  case PLN_DIM_MUL: return add_or_multiply(engine, op, a, b, out);
  case PLN_DIM_FLOORDIV:
  case PLN_DIM_TRUNCDIV:
  case PLN_DIM_FLOORMOD:
    if (b == 0)
      return PLN_OK;
    if (PLN_DIM_IS_CONST(b))
      return divide_by_number(engine, op, a, b, out);
    return divide_by_name(engine, op, a, b, out);
  case PLN_DIM_MIN:
  case PLN_DIM_MAX: return choose_dim_minmax(engine, op, a, b, out);
  }
  return PLN_OK;
}

/* ------------------------------------------------------------ substitution */

typedef struct substitution {
  pln_engine *engine;
  pln_symbol name;
  pln_dim value;
} substitution;

static pln_status substitute_dim(const substitution *s, pln_dim dim,
                                 pln_dim *out);

static pln_status replace_term(const substitution *s, const pln_dim_term *term,
                               pln_dim *out) {
  pln_dim product = term->coef;
  for (uint32_t i = 0; i < term->degree; i++) {
    pln_dim factor;
    PLN_TRY(substitute_dim(s, pln_dim_of_id(term->factors[i]), &factor));
    PLN_TRY(pln_dim_binary(s->engine, PLN_DIM_MUL, product, factor, &product));
  }
  *out = product;
  return PLN_OK;
}

static pln_status replace_sum(const substitution *s, const pln_dim_row *row,
                              pln_dim *out) {
  const pln_dim_term *terms = (const pln_dim_term *)(row + 1);
  pln_sum sum;
  pln_sum_load(s->engine, row->a, &sum);
  for (uint32_t i = 0; i < row->n_terms; i++) {
    pln_dim term;
    PLN_TRY(replace_term(s, &terms[i], &term));
    pln_sum_add(s->engine, &sum, 1, term);
  }
  return pln_sum_intern(s->engine, &sum, out);
}

/* Recursion depth is at most PLN_DIM_MAX_DEPTH, because the operands of a call
 * are less deep than the call. The work is bounded by the weight of the dim. */
static pln_status substitute_dim(const substitution *s, pln_dim dim,
                                 pln_dim *out) {
  *out = dim;
  if (PLN_DIM_IS_CONST(dim) || dim == PLN_DIM_UNKNOWN)
    return PLN_OK;
  const pln_dim_row *row = pln_dim_row_of(s->engine, pln_dim_id(dim));
  pln_dim a, b;
  switch ((pln_dim_kind)row->kind) {
  case PLN_DIM_SYMBOL:
    if (row->symbol == s->name)
      *out = s->value;
    return PLN_OK;
  case PLN_DIM_SUM: return replace_sum(s, row, out);
  case PLN_DIM_CALL: break;
  }
  PLN_TRY(substitute_dim(s, row->a, &a));
  PLN_TRY(substitute_dim(s, row->b, &b));
  if (a == row->a && b == row->b)
    return PLN_OK;
  return pln_dim_binary(s->engine, (pln_dim_op)row->op, a, b, out);
}

pln_status pln_dim_substitute(pln_engine *engine, pln_dim dim, pln_symbol name,
                              pln_dim value, pln_dim *out) {
  substitution s = {engine, name, value};
  pln_dim result;
  PLN_TRY(substitute_dim(&s, dim, &result));
  *out = result;
  return PLN_OK;
}

/* ---------------------------------------------------------------- symbols */

static void add_symbol(pln_symbol *symbols, uint32_t *n, pln_symbol symbol) {
  for (uint32_t i = 0; i < *n; i++)
    if (symbols[i] == symbol)
      return;
  symbols[(*n)++] = symbol;
}

/* Recursion and work are bounded as those of substitute_dim. */
static void add_symbols(const pln_engine *engine, pln_dim dim,
                        pln_symbol *symbols, uint32_t *n) {
  if (PLN_DIM_IS_CONST(dim) || dim == PLN_DIM_UNKNOWN)
    return;
  const pln_dim_row *row = pln_dim_row_of(engine, pln_dim_id(dim));
  const pln_dim_term *terms = (const pln_dim_term *)(row + 1);
  switch ((pln_dim_kind)row->kind) {
  case PLN_DIM_SYMBOL: add_symbol(symbols, n, (pln_symbol)row->symbol); return;
  case PLN_DIM_CALL:
    add_symbols(engine, row->a, symbols, n);
    add_symbols(engine, row->b, symbols, n);
    return;
  case PLN_DIM_SUM:
    for (uint32_t i = 0; i < row->n_terms; i++)
      for (uint32_t k = 0; k < terms[i].degree; k++)
        add_symbols(engine, pln_dim_of_id(terms[i].factors[k]), symbols, n);
  }
}

uint32_t pln_dim_symbols(const pln_engine *engine, pln_dim dim,
                         pln_symbol symbols[PLN_DIM_MAX_WEIGHT]) {
  uint32_t n = 0;
  add_symbols(engine, dim, symbols, &n);
  return n;
}

/* ----------------------------------------------------------------- reading */

pln_symbol pln_dim_name(const pln_engine *engine, pln_dim dim) {
  if (PLN_DIM_IS_CONST(dim) || dim == PLN_DIM_UNKNOWN)
    return 0;
  return (pln_symbol)pln_dim_row_of(engine, pln_dim_id(dim))->symbol;
}

int64_t pln_dim_lower_bound(const pln_engine *engine, pln_dim dim) {
  return pln_dim_range_of(engine, dim).low;
}
