/* shape_plan.c: plans how vectors of extents are computed. Called by
 * CanonicalizeShapes.
 *
 * A vector is read at once where a tensor has its elements as neighbouring
 * extents: a parameter, or another tensor whose elements are needed anyway if
 * that is cheaper. Tensors that the plan keeps alive are read if nothing else
 * suffices. Otherwise all elements are computed at once if
 * they are the same expression of different extents, or else parts are joined.
 * A scalar is computed of scalars, or as a vector of one element, whichever is
 * cheaper.
 *
 * Recursion follows the expressions of dims, which PLN_DIM_MAX_DEPTH bounds. */

#include "transform/canonicalize/shape_plan.h"

#include "ir/type/dim.h"

/* Sources of one dim that are looked at. */
enum { MAX_SOURCES = 16 };
/* Sums of more terms, and vectors of more elements, are not computed. */
enum { MAX_TERMS = 4, MAX_ELEMENTS = 8 };

/* A value to be planned: n elements, n == 1 for a scalar (rank 0). */
typedef struct wanted_value {
  uint32_t rank, n;
  pln_dim elements[PLN_VALUE_MAX];
} wanted_value;

static pln_status plan_wanted(pln_shape_plan *p, const wanted_value *w,
                              uint32_t *out);

/* ----------------------------------------------------------------- sources */

/* A tensor of which all extents are known by number or by name: then its shape
 * is a value like others. */
static bool can_be_source(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  int32_t rank = pln_type_rank(g->engine, n->type);
  if (pln_type_get_kind(g->engine, n->type) != PLN_TYPE_TENSOR || rank < 1 ||
      rank > PLN_VALUE_MAX)
    return false;
  for (int32_t i = 0; i < rank; i++)
    if (pln_type_dims(g->engine, n->type)[i] == PLN_DIM_UNKNOWN)
      return false;
  return (n->kind == PLN_VAR || n->kind == PLN_CALL ||
          n->kind == PLN_TUPLE_GET_ITEM) &&
         n->results == 0;
}

static pln_status add_extent(pln_shape_plan *p, pln_ref node, uint32_t axis,
                             bool is_needed, pln_dim dim) {
  uint64_t key = (uint64_t)dim;
  uint32_t last = pln_idmap_get(p->last_source, key), number;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->sources, &p->cap_sources,
                       (uint64_t)p->n_sources + 1, sizeof *p->sources));
  number = p->n_sources++;
  p->sources[number] = (pln_extent_source){node, axis, 0, is_needed};
  if (last)
    p->sources[last].next = number;
  else
    PLN_TRY(pln_idmap_set(p->first_source, key, number));
  return pln_idmap_set(p->last_source, key, number);
}

pln_status pln_shape_plan_add_source(pln_shape_plan *p, pln_ref node,
                                     bool is_needed) {
  const pln_graph *g = p->graph;
  pln_type type = g->nodes[node].type;
  if (!can_be_source(g, node))
    return PLN_OK;
  int32_t rank = pln_type_rank(p->engine, type);
  for (int32_t i = 0; i < rank; i++) {
    pln_dim dim = pln_type_dims(p->engine, type)[i];
    if (!PLN_DIM_IS_CONST(dim))
      PLN_TRY(add_extent(p, node, (uint32_t)i, is_needed, dim));
  }
  return PLN_OK;
}

/* How many elements from `at` on are the extents of the source from its axis
 * on. */
static uint32_t run_length(const pln_shape_plan *p, const wanted_value *w,
                           uint32_t at, const pln_extent_source *source) {
  pln_type type = p->graph->nodes[source->node].type;
  const pln_dim *dims = pln_type_dims(p->engine, type);
  uint32_t rank = (uint32_t)pln_type_rank(p->engine, type), n = 0;
  while (at + n < w->n && source->axis + n < rank &&
         dims[source->axis + n] == w->elements[at + n])
    n++;
  while (n > 0 && PLN_DIM_IS_CONST(w->elements[at + n - 1]) && at + n < w->n)
    n--;
  return n;
}

static bool may_read(const pln_shape_plan *p, const pln_extent_source *s) {
  return p->graph->nodes[s->node].kind == PLN_VAR ||
         p->from == PLN_SOURCES_ALL ||
         (p->from == PLN_SOURCES_NEEDED && s->is_needed);
}

/* The source of the longest run of elements from `at` on. *n is 0 if there is
 * none. */
static pln_extent_source longest_run(const pln_shape_plan *p,
                                     const wanted_value *w, uint32_t at,
                                     uint32_t *n) {
  pln_extent_source best = {.node = PLN_NONE};
  uint32_t i = pln_idmap_get(p->first_source, (uint64_t)w->elements[at]);
  *n = 0;
  for (uint32_t k = 0; i && k < MAX_SOURCES; k++, i = p->sources[i].next) {
    const pln_extent_source *s = &p->sources[i];
    bool is_param = p->graph->nodes[s->node].kind == PLN_VAR;
    if (s->node >= p->before || (!is_param && *n))
      break;
    if (!may_read(p, s))
      continue;
    uint32_t length = run_length(p, w, at, s);
    if (length > *n) {
      *n = length;
      best = *s;
    }
  }
  return best;
}

/* ------------------------------------------------------------------- steps */

static pln_status value_of(const pln_shape_plan *p, const wanted_value *w,
                           pln_value *out) {
  return pln_value_make(p->engine, w->rank, w->n, w->elements, out);
}

static pln_status find_step(const pln_shape_plan *p, const wanted_value *w,
                            pln_value *value, uint32_t *step) {
  PLN_TRY(value_of(p, w, value));
  uint32_t found = pln_idmap_get(p->step_of, *value);
  *step = found ? found - 1 : PLN_NONE;
  return PLN_OK;
}

static pln_status add_step(pln_shape_plan *p, pln_shape_step step,
                           uint32_t *out) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->steps, &p->cap_steps,
                       (uint64_t)p->n_steps + 1, sizeof *p->steps));
  *out = p->n_steps++;
  step.built = PLN_NONE;
  p->steps[*out] = step;
  p->cost += step.kind != PLN_STEP_CONSTANT;
  return pln_idmap_set(p->step_of, step.value, *out + 1);
}

/* Forgets the steps from number n on. */
static pln_status drop_steps(pln_shape_plan *p, uint32_t n) {
  while (p->n_steps > n) {
    const pln_shape_step *s = &p->steps[--p->n_steps];
    p->cost -= s->kind != PLN_STEP_CONSTANT;
    PLN_TRY(pln_idmap_set(p->step_of, s->value, 0));
  }
  return PLN_OK;
}

static bool all_constant(const wanted_value *w) {
  for (uint32_t i = 0; i < w->n; i++)
    if (!PLN_DIM_IS_CONST(w->elements[i]))
      return false;
  return true;
}

static wanted_value part_of(const wanted_value *w, uint32_t at, uint32_t n) {
  wanted_value part = {.rank = 1, .n = n};
  memcpy(part.elements, w->elements + at, n * sizeof *part.elements);
  return part;
}

/* ----------------------------------------------------------------- extents */

/* All extents of a tensor. */
static pln_status plan_shape(pln_shape_plan *p, pln_ref node, uint32_t *out) {
  pln_type type = p->graph->nodes[node].type;
  wanted_value all = {.rank = 1};
  pln_value value;
  all.n = (uint32_t)pln_type_rank(p->engine, type);
  memcpy(all.elements, pln_type_dims(p->engine, type),
         all.n * sizeof *all.elements);
  PLN_TRY(find_step(p, &all, &value, out));
  if (*out != PLN_NONE)
    return PLN_OK;
  return add_step(p,
                  (pln_shape_step){.kind = PLN_STEP_EXTENTS,
                                   .value = value,
                                   .source = node,
                                   .end = all.n},
                  out);
}

/* The vector as a run of extents of one source. */
static pln_status plan_extents(pln_shape_plan *p, pln_value value, uint32_t n,
                               const pln_extent_source *source, uint32_t *out) {
  pln_shape_step step = {.kind = PLN_STEP_EXTENTS,
                         .value = value,
                         .source = source->node,
                         .start = source->axis,
                         .end = source->axis + n};
  int32_t rank = pln_type_rank(p->engine, p->graph->nodes[source->node].type);
  if (p->slices || n == (uint32_t)rank)
    return add_step(p, step, out);
  step.kind = PLN_STEP_TAKE;
  PLN_TRY(plan_shape(p, source->node, &step.a));
  return add_step(p, step, out);
}

/* -------------------------------------------------------------- arithmetic */

/* The operator of ONNX for that of a dim; PLN_OP_NONE if they differ for these
 * operands. */
static pln_op operator_of(const pln_shape_plan *p, const pln_dim_row *row) {
  switch ((pln_dim_op)row->op) {
  case PLN_DIM_FLOORDIV:
    return pln_dim_lower_bound(p->engine, row->a) >= 0 &&
                   pln_dim_lower_bound(p->engine, row->b) > 0
               ? PLN_OP_DIV
               : PLN_OP_NONE;
  case PLN_DIM_TRUNCDIV: return PLN_OP_DIV;
  case PLN_DIM_FLOORMOD: return PLN_OP_MOD;
  case PLN_DIM_MIN: return PLN_OP_MIN;
  case PLN_DIM_MAX: return PLN_OP_MAX;
  default: return PLN_OP_NONE;
  }
}

static pln_status apply_to_dims(const pln_shape_plan *p, pln_dim_op op,
                                const wanted_value *a, const wanted_value *b,
                                wanted_value *out) {
  *out = (wanted_value){.rank = a->rank, .n = a->n};
  for (uint32_t i = 0; i < a->n; i++)
    PLN_TRY(pln_dim_binary(p->engine, op, a->elements[i], b->elements[i],
                           &out->elements[i]));
  return PLN_OK;
}

/* op(a, b), whose value is `w`. PLN_NONE if an operand cannot be planned. */
static pln_status plan_call(pln_shape_plan *p, const wanted_value *w, pln_op op,
                            const wanted_value *a, const wanted_value *b,
                            uint32_t *out) {
  pln_shape_step step = {.kind = PLN_STEP_CALL, .op = op};
  PLN_TRY(find_step(p, w, &step.value, out));
  if (*out != PLN_NONE)
    return PLN_OK;
  PLN_TRY(plan_wanted(p, a, &step.a));
  if (step.a != PLN_NONE)
    PLN_TRY(plan_wanted(p, b, &step.b));
  if (step.a == PLN_NONE || step.b == PLN_NONE)
    return PLN_OK;
  return add_step(p, step, out);
}

static const pln_dim_row *row_of(const pln_shape_plan *p, pln_dim dim) {
  return pln_dim_row_of(p->engine, pln_dim_id(dim));
}

/* All elements are calls of the same operator. */
static pln_status plan_dim_calls(pln_shape_plan *p, const wanted_value *w,
                                 uint32_t *out) {
  wanted_value a = {.rank = w->rank, .n = w->n}, b = a;
  pln_op op = PLN_OP_NONE;
  for (uint32_t i = 0; i < w->n; i++) {
    const pln_dim_row *row = row_of(p, w->elements[i]);
    pln_op one = row->kind == PLN_DIM_CALL ? operator_of(p, row) : PLN_OP_NONE;
    if (!one || (op && op != one))
      return PLN_OK;
    op = one;
    a.elements[i] = row->a;
    b.elements[i] = row->b;
  }
  return plan_call(p, w, op, &a, &b, out);
}

/* The terms of the elements, each with the same factors in all of them but for
 * their names. */
typedef struct sum_term {
  uint32_t degree;
  int sign; /* 1 or -1: of all coefficients, which are positive; or 0 */
  wanted_value coefs;
  wanted_value factors[PLN_DIM_MAX_DEGREE];
} sum_term;

typedef struct sum_terms {
  uint32_t n;
  sum_term terms[MAX_TERMS];
  wanted_value constants;
} sum_terms;

/* Adds the terms of element i; false if they differ from those before. */
static bool read_sum(const pln_shape_plan *p, const wanted_value *w, uint32_t i,
                     sum_terms *out) {
  pln_sum sum;
  pln_sum_load(p->engine, w->elements[i], &sum);
  if (sum.unknown || sum.n > MAX_TERMS || sum.n == 0 || (i && sum.n != out->n))
    return false;
  out->n = sum.n;
  out->constants.elements[i] = sum.constant;
  for (uint32_t k = 0; k < sum.n; k++) {
    sum_term *t = &out->terms[k];
    if (i && t->degree != sum.terms[k].degree)
      return false;
    t->degree = sum.terms[k].degree;
    t->coefs.elements[i] = sum.terms[k].coef;
    for (uint32_t f = 0; f < t->degree; f++)
      t->factors[f].elements[i] = pln_dim_of_id(sum.terms[k].factors[f]);
  }
  return true;
}

static void split_sign(sum_term *t) {
  bool positive = true, negative = true;
  for (uint32_t i = 0; i < t->coefs.n; i++) {
    positive &= t->coefs.elements[i] > 0;
    negative &= t->coefs.elements[i] < 0 && t->coefs.elements[i] > -INT32_MAX;
  }
  t->sign = positive ? 1 : negative ? -1 : 0;
  for (uint32_t i = 0; negative && i < t->coefs.n; i++)
    t->coefs.elements[i] = -t->coefs.elements[i];
}

static bool read_sums(const pln_shape_plan *p, const wanted_value *w,
                      sum_terms *out) {
  wanted_value shape = {.rank = w->rank, .n = w->n};
  out->constants = shape;
  for (uint32_t k = 0; k < MAX_TERMS; k++) {
    out->terms[k].coefs = shape;
    for (uint32_t f = 0; f < PLN_DIM_MAX_DEGREE; f++)
      out->terms[k].factors[f] = shape;
  }
  for (uint32_t i = 0; i < w->n; i++)
    if (!read_sum(p, w, i, out))
      return false;
  for (uint32_t k = 0; k < out->n; k++)
    split_sign(&out->terms[k]);
  return true;
}

static bool is_filled(const wanted_value *w, pln_dim with) {
  for (uint32_t i = 0; i < w->n; i++)
    if (w->elements[i] != with)
      return false;
  return true;
}

/* The product of factors and coefficients. */
static pln_status plan_term(pln_shape_plan *p, const sum_term *t,
                            wanted_value *out, uint32_t *step) {
  wanted_value product = t->factors[0];
  *out = product;
  PLN_TRY(plan_wanted(p, out, step));
  for (uint32_t f = 1; f < t->degree && *step != PLN_NONE; f++) {
    PLN_TRY(apply_to_dims(p, PLN_DIM_MUL, &product, &t->factors[f], out));
    PLN_TRY(plan_call(p, out, PLN_OP_MUL, &product, &t->factors[f], step));
    product = *out;
  }
  if (*step == PLN_NONE || is_filled(&t->coefs, 1))
    return PLN_OK;
  PLN_TRY(apply_to_dims(p, PLN_DIM_MUL, &product, &t->coefs, out));
  return plan_call(p, out, PLN_OP_MUL, &product, &t->coefs, step);
}

/* *sum becomes the sum with the addend, or the difference. */
static pln_status plan_addition(pln_shape_plan *p, int sign,
                                const wanted_value *addend, wanted_value *sum,
                                uint32_t *step) {
  wanted_value before = *sum;
  PLN_TRY(apply_to_dims(p, sign < 0 ? PLN_DIM_SUB : PLN_DIM_ADD, &before,
                        addend, sum));
  return plan_call(p, sum, sign < 0 ? PLN_OP_SUB : PLN_OP_ADD, &before, addend,
                   step);
}

/* The number of a term that is added; s->n if all are subtracted. */
static uint32_t first_added(const sum_terms *s) {
  uint32_t k = 0;
  while (k < s->n && s->terms[k].sign < 0)
    k++;
  return k;
}

/* Returns true if b is a // k. */
static pln_status is_quotient(const pln_shape_plan *p, pln_dim a, pln_dim b,
                              int64_t k, bool *out) {
  pln_dim quotient;
  PLN_TRY(pln_dim_binary(p->engine, PLN_DIM_FLOORDIV, a, k, &quotient));
  *out = quotient != PLN_DIM_UNKNOWN && quotient == b;
  return PLN_OK;
}

/* The elements are a - k * (a // k), which is the remainder; *a and *k. */
static pln_status read_remainder(const pln_shape_plan *p, const sum_terms *s,
                                 wanted_value *a, wanted_value *k, bool *out) {
  *out = false;
  if (s->n != 2 || s->terms[0].degree != 1 || s->terms[1].degree != 1 ||
      s->terms[0].sign * s->terms[1].sign != -1 || !is_filled(&s->constants, 0))
    return PLN_OK;
  uint32_t added = s->terms[0].sign > 0 ? 0 : 1;
  const sum_term *x = &s->terms[added], *y = &s->terms[1 - added];
  if (!is_filled(&x->coefs, 1))
    return PLN_OK;
  *a = x->factors[0];
  *k = y->coefs;
  for (uint32_t i = 0; i < a->n; i++) {
    PLN_TRY(is_quotient(p, a->elements[i], y->factors[0].elements[i],
                        k->elements[i], out));
    if (!*out)
      return PLN_OK;
  }
  return PLN_OK;
}

/* All elements are sums of the same form: what is added comes first. */
static pln_status plan_dim_sums(pln_shape_plan *p, const wanted_value *w,
                                uint32_t *out) {
  sum_terms s;
  wanted_value sum, addend;
  bool remainder;
  if (!read_sums(p, w, &s))
    return PLN_OK;
  PLN_TRY(read_remainder(p, &s, &sum, &addend, &remainder));
  if (remainder)
    return plan_call(p, w, PLN_OP_MOD, &sum, &addend, out);
  uint32_t first = first_added(&s);
  if (first == s.n && is_filled(&s.constants, 0))
    return PLN_OK;
  if (first == s.n)
    sum = s.constants;
  else {
    PLN_TRY(plan_term(p, &s.terms[first], &sum, out));
    if (*out == PLN_NONE)
      return PLN_OK;
  }
  for (uint32_t k = 0; k < s.n; k++) {
    if (k == first)
      continue;
    PLN_TRY(plan_term(p, &s.terms[k], &addend, out));
    if (*out != PLN_NONE)
      PLN_TRY(plan_addition(p, s.terms[k].sign, &addend, &sum, out));
    if (*out == PLN_NONE)
      return PLN_OK;
  }
  if (first < s.n && !is_filled(&s.constants, 0))
    return plan_addition(p, 1, &s.constants, &sum, out);
  return PLN_OK;
}

static bool all_of_kind(const pln_shape_plan *p, const wanted_value *w,
                        pln_dim_kind kind) {
  for (uint32_t i = 0; i < w->n; i++)
    if (PLN_DIM_IS_CONST(w->elements[i]) ||
        row_of(p, w->elements[i])->kind != kind)
      return false;
  return true;
}

/* All elements at once; PLN_NONE if they differ in form. Operands are of less
 * depth, so that this ends. */
static pln_status plan_arithmetic(pln_shape_plan *p, const wanted_value *w,
                                  uint32_t *out) {
  *out = PLN_NONE;
  if (w->n > MAX_ELEMENTS)
    return PLN_OK;
  if (all_of_kind(p, w, PLN_DIM_CALL))
    return plan_dim_calls(p, w, out);
  return all_of_kind(p, w, PLN_DIM_SUM) ? plan_dim_sums(p, w, out) : PLN_OK;
}

/* ----------------------------------------------------------------- vectors */

/* How many elements from `at` on are planned as one part: constants, extents of
 * one tensor, or expressions of one form. */
static uint32_t part_length(const pln_shape_plan *p, const wanted_value *w,
                            uint32_t at) {
  uint32_t n = 0, run;
  if (PLN_DIM_IS_CONST(w->elements[at])) {
    while (at + n < w->n && PLN_DIM_IS_CONST(w->elements[at + n]))
      n++;
    return n;
  }
  longest_run(p, w, at, &n);
  if (n)
    return n;
  while (at + n < w->n && !PLN_DIM_IS_CONST(w->elements[at + n])) {
    longest_run(p, w, at + n, &run);
    if (run)
      break;
    n++;
  }
  return n;
}

static pln_status add_part(pln_shape_plan *p, uint32_t step) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->parts, &p->cap_parts,
                       (uint64_t)p->n_parts + 1, sizeof *p->parts));
  p->parts[p->n_parts++] = step;
  return PLN_OK;
}

/* Fills `steps` with the parts of the vector; *n is 0 if one cannot be planned,
 * or if there is but one. */
static pln_status plan_parts(pln_shape_plan *p, const wanted_value *w,
                             uint32_t *steps, uint32_t *n) {
  *n = 0;
  for (uint32_t at = 0, length; at < w->n; at += length) {
    length = part_length(p, w, at);
    wanted_value part = part_of(w, at, length == w->n ? 1 : length);
    length = part.n;
    PLN_TRY(plan_wanted(p, &part, &steps[*n]));
    if (steps[*n] == PLN_NONE) {
      *n = 0;
      return PLN_OK;
    }
    ++*n;
  }
  return PLN_OK;
}

static pln_status plan_concat(pln_shape_plan *p, const wanted_value *w,
                              pln_value value, uint32_t *out) {
  uint32_t steps[PLN_VALUE_MAX], n;
  pln_shape_step step = {.kind = PLN_STEP_CONCAT, .value = value};
  *out = PLN_NONE;
  if (w->n < 2)
    return PLN_OK;
  PLN_TRY(plan_parts(p, w, steps, &n));
  if (n == 0)
    return PLN_OK;
  step.a = p->n_parts;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(add_part(p, steps[i]));
  step.b = p->n_parts;
  return add_step(p, step, out);
}

/* The vector as a run of extents, if it is one. */
static pln_status plan_run(pln_shape_plan *p, const wanted_value *w,
                           pln_value value, uint32_t *out) {
  uint32_t n;
  *out = PLN_NONE;
  if (PLN_DIM_IS_CONST(w->elements[0]))
    return PLN_OK;
  pln_extent_source source = longest_run(p, w, 0, &n);
  return n == w->n ? plan_extents(p, value, n, &source, out) : PLN_OK;
}

/* The cheaper of two ways to plan: what the first one costs is taken back
 * unless it is. */
static pln_status plan_cheaper(pln_shape_plan *p, const wanted_value *w,
                               pln_value value, uint32_t *out) {
  uint32_t mark = p->n_steps, before = p->cost, at_once = UINT32_MAX, joined;
  PLN_TRY(plan_arithmetic(p, w, out));
  if (*out != PLN_NONE)
    at_once = p->cost - before;
  if (*out != PLN_NONE && w->n == 1)
    return PLN_OK;
  PLN_TRY(drop_steps(p, mark));
  PLN_TRY(plan_concat(p, w, value, out));
  joined = *out == PLN_NONE ? UINT32_MAX : p->cost - before;
  if (at_once > joined || at_once == UINT32_MAX)
    return PLN_OK;
  PLN_TRY(drop_steps(p, mark));
  return plan_arithmetic(p, w, out);
}

static pln_status plan_vector(pln_shape_plan *p, const wanted_value *w,
                              pln_value value, uint32_t *out) {
  PLN_TRY(plan_run(p, w, value, out));
  return *out == PLN_NONE ? plan_cheaper(p, w, value, out) : PLN_OK;
}

/* ----------------------------------------------------------------- scalars */

/* An element of a shape that is read as a whole anyway. */
static pln_status plan_element(pln_shape_plan *p, const wanted_value *w,
                               pln_value value, uint32_t *out) {
  uint32_t n, mark = p->n_steps;
  pln_extent_source source = longest_run(p, w, 0, &n);
  pln_shape_step step = {.kind = PLN_STEP_TAKE, .value = value};
  *out = PLN_NONE;
  if (!n)
    return PLN_OK;
  PLN_TRY(plan_shape(p, source.node, &step.a));
  if (p->n_steps > mark && p->slices &&
      !pln_idmap_get(p->whole, p->steps[step.a].value))
    return drop_steps(p, mark);
  step.start = source.axis;
  step.end = source.axis + 1;
  return add_step(p, step, out);
}

static pln_status plan_scalar(pln_shape_plan *p, const wanted_value *w,
                              pln_value value, uint32_t *out) {
  wanted_value vector = part_of(w, 0, 1);
  pln_shape_step step = {.kind = PLN_STEP_TAKE, .value = value, .end = 1};
  PLN_TRY(plan_element(p, w, value, out));
  if (*out == PLN_NONE)
    PLN_TRY(plan_arithmetic(p, w, out));
  if (*out != PLN_NONE)
    return PLN_OK;
  PLN_TRY(plan_wanted(p, &vector, &step.a));
  return step.a == PLN_NONE ? PLN_OK : add_step(p, step, out);
}

/* -------------------------------------------------------------- all values */

static pln_status plan_wanted(pln_shape_plan *p, const wanted_value *w,
                              uint32_t *out) {
  pln_value value;
  for (uint32_t i = 0; i < w->n; i++)
    if (w->elements[i] == PLN_DIM_UNKNOWN) {
      *out = PLN_NONE;
      return PLN_OK;
    }
  PLN_TRY(find_step(p, w, &value, out));
  if (*out != PLN_NONE)
    return PLN_OK;
  if (all_constant(w))
    return add_step(
        p, (pln_shape_step){.kind = PLN_STEP_CONSTANT, .value = value}, out);
  return (w->rank ? plan_vector : plan_scalar)(p, w, value, out);
}

/* Plans the value of the sources that may be read. */
static pln_status plan_from(pln_shape_plan *p, const wanted_value *w,
                            pln_shape_sources from, uint32_t *step) {
  uint32_t mark = p->n_steps;
  p->from = from;
  PLN_TRY(plan_wanted(p, w, step));
  return *step == PLN_NONE ? drop_steps(p, mark) : PLN_OK;
}

/* Of parameters, or of tensors that are needed anyway if that takes fewer
 * calls. */
static pln_status plan_needed(pln_shape_plan *p, const wanted_value *w,
                              uint32_t *step) {
  uint32_t mark = p->n_steps, before = p->cost, of_params = UINT32_MAX;
  PLN_TRY(plan_from(p, w, PLN_SOURCES_PARAMS, step));
  if (*step != PLN_NONE)
    of_params = p->cost - before;
  if (of_params <= 1)
    return PLN_OK;
  PLN_TRY(drop_steps(p, mark));
  PLN_TRY(plan_from(p, w, PLN_SOURCES_NEEDED, step));
  if (*step != PLN_NONE && p->cost - before < of_params)
    return PLN_OK;
  PLN_TRY(drop_steps(p, mark));
  return plan_from(p, w, PLN_SOURCES_PARAMS, step);
}

pln_status pln_shape_plan_value(pln_shape_plan *p, pln_ref node,
                                pln_value value, uint32_t *step) {
  wanted_value w = {.rank = pln_value_rank(p->engine, value),
                    .n = pln_value_count(p->engine, value)};
  *step = PLN_NONE;
  if (w.rank > 1 || w.n == 0 || w.n > PLN_VALUE_MAX)
    return PLN_OK;
  memcpy(w.elements, pln_value_elements(p->engine, value),
         w.n * sizeof *w.elements);
  p->before = node;
  PLN_TRY(plan_needed(p, &w, step));
  return *step == PLN_NONE ? plan_from(p, &w, PLN_SOURCES_ALL, step) : PLN_OK;
}

/* -------------------------------------------------------------------- plans */

static pln_status begin_maps(pln_shape_plan *p) {
  p->n_sources = 1;
  p->n_steps = p->n_parts = p->cost = 0;
  PLN_TRY(pln_idmap_new(p->engine, &p->first_source));
  PLN_TRY(pln_idmap_new(p->engine, &p->last_source));
  return pln_idmap_new(p->engine, &p->step_of);
}

static void end_maps(pln_shape_plan *p) {
  pln_idmap_free(p->first_source);
  pln_idmap_free(p->last_source);
  pln_idmap_free(p->step_of);
  p->first_source = p->last_source = p->step_of = NULL;
}

pln_status pln_shape_plan_begin(pln_shape_plan *p, const pln_graph *graph,
                                bool slices) {
  *p = (pln_shape_plan){
      .engine = graph->engine, .graph = graph, .slices = slices};
  PLN_TRY(pln_idmap_new(p->engine, &p->whole));
  return begin_maps(p);
}

static bool is_whole_shape(const pln_shape_plan *p, const pln_shape_step *s) {
  pln_type type = p->graph->nodes[s->source].type;
  return s->kind == PLN_STEP_EXTENTS &&
         s->end - s->start == (uint32_t)pln_type_rank(p->engine, type);
}

pln_status pln_shape_plan_restart(pln_shape_plan *p) {
  for (uint32_t i = 0; i < p->n_steps; i++)
    if (is_whole_shape(p, &p->steps[i]))
      PLN_TRY(pln_idmap_set(p->whole, p->steps[i].value, 1));
  end_maps(p);
  return begin_maps(p);
}

void pln_shape_plan_end(pln_shape_plan *p) {
  end_maps(p);
  pln_idmap_free(p->whole);
  pln_mem_free(p->engine, p->sources, p->cap_sources * sizeof *p->sources);
  pln_mem_free(p->engine, p->steps, p->cap_steps * sizeof *p->steps);
  pln_mem_free(p->engine, p->parts, p->cap_parts * sizeof *p->parts);
}
