/* where.c: where: selects elements of two operands by a condition. Type and
 * kernel. Called through ops.def.
 *
 * Axes along which all three operands advance alike are merged. Along the
 * innermost remaining axis each operand has stride 1 or 0, and there is a loop
 * for each combination. */

#include "op/kernel/multiversion.h"
#include "op/kernel/strided.h"

/* The elements of operand `i` broadcast to `count`; false if unknown. */
static bool repeat_value(const pln_infer *call, uint32_t i, uint32_t count,
                         pln_dim *out) {
  pln_value value = pln_arg_value(call, i);
  uint32_t n = pln_value_count(call->engine, value);
  if (!value || (n != 1 && n != count))
    return false;
  const pln_dim *from = pln_value_elements(call->engine, value);
  for (uint32_t k = 0; k < count; k++)
    out[k] = from[n == 1 ? 0 : k];
  return true;
}

static pln_status where_value(pln_infer *call) {
  int32_t rank = pln_type_rank(call->engine, call->results[0]);
  if (rank < 0 || rank > 1)
    return PLN_OK;
  pln_dim n = rank ? pln_type_dims(call->engine, call->results[0])[0] : 1;
  if (!PLN_DIM_IS_CONST(n) || n < 0 || n > PLN_VALUE_MAX)
    return PLN_OK;
  pln_dim cond[PLN_VALUE_MAX], yes[PLN_VALUE_MAX], no[PLN_VALUE_MAX];
  if (!repeat_value(call, 0, (uint32_t)n, cond) ||
      !repeat_value(call, 1, (uint32_t)n, yes) ||
      !repeat_value(call, 2, (uint32_t)n, no))
    return PLN_OK;
  for (pln_dim i = 0; i < n; i++)
    if (!PLN_DIM_IS_CONST(cond[i]))
      yes[i] = yes[i] == no[i] ? yes[i] : PLN_DIM_UNKNOWN;
    else if (cond[i] == 0)
      yes[i] = no[i];
  return pln_infer_set_value(call, (uint32_t)rank, (uint32_t)n, yes);
}

pln_status pln_infer_where(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 1, 3, &dtype));
  PLN_TRY(pln_args_broadcast(call, 0, 3, &shape));
  PLN_TRY(pln_result_tensor(call, 0, dtype, &shape));
  return where_value(call);
}

/* ------------------------------------------------------------------- kernel */

/* Strides of each operand along the axes of the result. */
typedef struct where_plan {
  uint32_t rank;
  int64_t dims[PLN_MAX_RANK];
  int64_t steps[3][PLN_MAX_RANK];
} where_plan;

static bool widen_condition(where_plan *c, const pln_tensor *t) {
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t *dim = &c->dims[c->rank - t->rank + i];
    if (*dim != 1 && t->dims[i] != 1 && *dim != t->dims[i])
      return false;
    if (*dim == 1)
      *dim = t->dims[i];
  }
  return true;
}

static void set_strides(const where_plan *c, const pln_tensor *t,
                        int64_t *steps) {
  int64_t own[PLN_MAX_RANK];
  uint32_t shift = c->rank - t->rank;
  pln_dense_strides(t->rank, t->dims, own);
  for (uint32_t i = 0; i < c->rank; i++)
    steps[i] = i < shift || t->dims[i - shift] == 1 ? 0 : own[i - shift];
}

static bool plan_choice(const pln_kernel_call *call, where_plan *c) {
  c->rank = 0;
  for (uint32_t i = 0; i < 3; i++)
    if (call->args[i]->rank > c->rank)
      c->rank = call->args[i]->rank;
  if (c->rank > PLN_MAX_RANK)
    return false;
  for (uint32_t i = 0; i < c->rank; i++)
    c->dims[i] = 1;
  for (uint32_t i = 0; i < 3; i++)
    if (!widen_condition(c, call->args[i]))
      return false;
  for (uint32_t i = 0; i < 3; i++)
    set_strides(c, call->args[i], c->steps[i]);
  return true;
}

/* Merges axes along which all three operands are contiguous, and drops axes of
 * extent 1. */
static void join_axes(where_plan *c) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->rank; i++) {
    bool joins = n > 0;
    if (c->dims[i] == 1)
      continue;
    for (int k = 0; k < 3 && joins; k++)
      joins = c->steps[k][n - 1] == c->steps[k][i] * c->dims[i];
    n -= joins;
    c->dims[n] = joins ? c->dims[n] * c->dims[i] : c->dims[i];
    for (int k = 0; k < 3; k++)
      c->steps[k][n] = c->steps[k][i];
    n++;
  }
  c->rank = n;
}

/* A run of n elements. */
typedef struct where_run {
  const pln_engine *engine;
  const uint8_t *cond;
  const void *yes, *no;
  bool yes_moves, no_moves; /* false: one element for all */
  size_t n;
} where_run;

#define CHOOSE(name, T)                                                       \
  PLN_MULTIVERSION static void choose_##name(const where_run *r, void *out) { \
    T *restrict to = out;                                                     \
    const uint8_t *cond = r->cond;                                            \
    const T *yes = r->yes, *no = r->no;                                       \
    if (r->yes_moves && r->no_moves) {                                        \
      for (size_t i = 0; i < r->n; i++) {                                     \
        const T x = yes[i], y = no[i];                                        \
        to[i] = cond[i] ? x : y;                                              \
      }                                                                       \
    } else if (r->yes_moves) {                                                \
      const T y = *no;                                                        \
      for (size_t i = 0; i < r->n; i++) {                                     \
        const T x = yes[i];                                                   \
        to[i] = cond[i] ? x : y;                                              \
      }                                                                       \
    } else if (r->no_moves) {                                                 \
      const T x = *yes;                                                       \
      for (size_t i = 0; i < r->n; i++) {                                     \
        const T y = no[i];                                                    \
        to[i] = cond[i] ? x : y;                                              \
      }                                                                       \
    } else {                                                                  \
      const T x = *yes, y = *no;                                              \
      for (size_t i = 0; i < r->n; i++)                                       \
        to[i] = cond[i] ? x : y;                                              \
    }                                                                         \
  }
typedef struct wide {
  uint64_t half[2];
} wide;
CHOOSE(8, uint8_t)
CHOOSE(16, uint16_t)
CHOOSE(32, uint32_t)
CHOOSE(64, uint64_t)
CHOOSE(128, wide)

/* The condition is constant in a run: all of it comes from one operand. */
static void select_run(const where_run *r, const void *from, bool moves,
                       size_t size, char *to) {
  if (moves)
    memcpy(to, from, r->n * size);
  else
    pln_fill(r->engine, to, r->n, from, size);
}

static void choose_run(const where_run *r, bool cond_moves, size_t size,
                       char *to) {
  if (!cond_moves && *r->cond) {
    select_run(r, r->yes, r->yes_moves, size, to);
    return;
  }
  if (!cond_moves) {
    select_run(r, r->no, r->no_moves, size, to);
    return;
  }
  switch (size) {
  case 1: choose_8(r, to); break;
  case 2: choose_16(r, to); break;
  case 4: choose_32(r, to); break;
  case 8: choose_64(r, to); break;
  default: choose_128(r, to); break;
  }
}

/* A run may be long, so it is computed in parts. */
static void choose_parts(const where_run *all, bool cond_moves, size_t size,
                         char *to) {
  enum { PART = 1 << 18 };
  where_run r = *all;
  for (size_t at = 0; at < all->n; at += PART) {
    r.n = all->n - at < PART ? all->n - at : PART;
    r.cond = all->cond + (cond_moves ? at : 0);
    r.yes = (const char *)all->yes + (r.yes_moves ? at * size : 0);
    r.no = (const char *)all->no + (r.no_moves ? at * size : 0);
    choose_run(&r, cond_moves, size, to + at * size);
    if (at && pln_is_stopped(r.engine))
      return;
  }
}

/* The innermost axis is a run, the others are counted through. */
static void choose_elements(const pln_kernel_call *call, where_plan *c,
                            size_t size, char *to) {
  const uint8_t *cond = call->args[0]->data;
  const char *yes = call->args[1]->data, *no = call->args[2]->data;
  int64_t place[PLN_MAX_RANK] = {0}, at[3] = {0, 0, 0};
  uint32_t last = c->rank ? c->rank - 1 : 0;
  size_t done = 0;
  where_run r = {.engine = call->engine,
                 .n = c->rank ? (size_t)c->dims[last] : 1,
                 .yes_moves = c->rank && c->steps[1][last],
                 .no_moves = c->rank && c->steps[2][last]};
  for (uint32_t i = last;; to += r.n * size) {
    r.cond = cond + at[0];
    r.yes = yes + at[1] * (int64_t)size;
    r.no = no + at[2] * (int64_t)size;
    choose_parts(&r, c->rank && c->steps[0][last], size, to);
    if (pln_is_stopped_after(call->engine, &done, r.n))
      return;
    for (i = last; i-- > 0; place[i] = 0) {
      bool more = ++place[i] < c->dims[i];
      for (int k = 0; k < 3; k++)
        at[k] += c->steps[k][i] * (more ? 1 : 1 - c->dims[i]);
      if (more)
        break;
    }
    if (i > last) /* past the outermost axis */
      return;
  }
}

pln_status pln_kernel_where(pln_kernel_call *call) {
  const pln_tensor *yes = call->args[1];
  where_plan c;
  pln_strided_result moved;
  if (call->args[0]->dtype != PLN_BOOL || yes->dtype != call->args[2]->dtype ||
      !plan_choice(call, &c))
    return pln_kernel_refuse(call, "the operands do not match each other");
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)yes->dtype, c.rank,
                                   c.dims, &moved));
  if (moved.count) {
    where_plan joined = c;
    join_axes(&joined);
    choose_elements(call, &joined, moved.size, moved.data);
  }
  return pln_strided_result_end(&moved, PLN_OK);
}
