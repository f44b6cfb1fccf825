/* einsum.c: the kernel of einsum. Called through ops.def.
 *
 * Operands are contracted two at a time, in order, except that an operand that
 * shares a label with the intermediate result goes before one that shares none.
 * A contraction is a batched matrix product: labels of both operands that are
 * needed later are batch axes, those that are not are contracted, labels of one
 * operand are rows or columns. Labels that only one operand has and nobody
 * needs are summed first, as a product with ones.
 *
 * Operands and results are accessed in place by strides, unless a group of
 * labels is not a single axis there; then they are copied. Labels of extent 1
 * have no stride. If an extent is 0 the result is 0 without contraction, so
 * intermediate tensors have fewer than 64 axes. */

#include "op/infer/einsum_equation.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/matmul/dispatch.h"
#include "op/kernel/strided.h"

/* How many operands to search for one that shares a label. */
enum { AHEAD = 16 };

/* A tensor with strides by label. */
typedef struct einsum_view {
  pln_tensor *tensor; /* owned, or NULL */
  const char *data;
  char *own; /* the same data if it may be written */
  bool has[PLN_LABELS];
  int64_t step[PLN_LABELS];
} einsum_view;

typedef struct einsum {
  pln_kernel_call *call;
  pln_dtype dtype; /* dtype of the computation */
  size_t size;     /* of its elements */
  pln_slice *terms;
  bool *taken; /* operands already contracted */
  uint32_t left;
  int64_t extent[PLN_LABELS];
  uint32_t named[PLN_LABELS]; /* occurrences of a label on the left side */
  uint32_t uses[PLN_LABELS];  /* number of remaining operands, and the result,
                                 that have the label */
  pln_tensor *out;
  einsum_view result; /* where its elements lie */
  uint32_t rank;
  unsigned char labels[PLN_MAX_RANK]; /* of the result */
  /* Position in `labels`; beyond the end if absent. */
  uint32_t place[PLN_LABELS];
  bool stored; /* the result is written */
} einsum;

/* An ordered list of labels. */
typedef struct axis_group {
  uint32_t n;
  unsigned char labels[PLN_LABELS];
} axis_group;

/* ------------------------------------------------------------------ reading */

static pln_status extents_differ(const einsum *e) {
  return pln_kernel_refuse(e->call, "operands do not match the equation");
}

/* The labels of the axes of operand `i`. */
static bool labels_of(const einsum *e, uint32_t i, unsigned char *labels) {
  pln_einsum_term term;
  char stray;
  const pln_tensor *t = pln_kernel_arg(e->call, i);
  return t && t->dtype == e->call->args[0]->dtype &&
         pln_term_read(e->terms[i], &term, &stray) &&
         pln_term_labels(&term, t->rank, labels);
}

/* Merges the extents of operand `i` with those of others; 1 broadcasts. */
static bool meet_label_extents(einsum *e, uint32_t i) {
  unsigned char labels[PLN_MAX_RANK];
  bool seen[PLN_LABELS] = {false};
  if (!labels_of(e, i, labels))
    return false;
  const pln_tensor *t = e->call->args[i];
  for (uint32_t k = 0; k < t->rank; k++) {
    unsigned char l = labels[k];
    int64_t *known = &e->extent[l];
    if (t->dims[k] != 1 && *known != 1 && *known != t->dims[k])
      return false;
    if (*known == 1)
      *known = t->dims[k];
    e->named[l]++;
    e->uses[l] += !seen[l];
    seen[l] = true;
  }
  return true;
}

static pln_status read_left(einsum *e, pln_slice left) {
  uint32_t n = 0;
  while (pln_equation_next(&left, &e->terms[n]))
    if (++n == e->left && left.data)
      return extents_differ(e);
  if (n != e->left)
    return extents_differ(e);
  for (uint32_t i = 0; i < n; i++)
    if (!meet_label_extents(e, i))
      return extents_differ(e);
  return PLN_OK;
}

/* The number of axes of "...". */
static uint32_t count_dots(const einsum *e) {
  uint32_t n = 0;
  while (n < PLN_MAX_RANK && e->named[PLN_DOTS + n])
    n++;
  return n;
}

/* The implied result: "...", then the labels that occur once. */
static bool imply_right(einsum *e) {
  uint32_t dots = count_dots(e);
  for (uint32_t i = 0; i < dots; i++)
    e->labels[e->rank++] = (unsigned char)(PLN_DOTS + dots - 1 - i);
  for (uint32_t l = 0; l < PLN_DOTS; l++) {
    if (e->named[l] != 1)
      continue;
    if (e->rank == PLN_MAX_RANK)
      return false;
    e->labels[e->rank++] = (unsigned char)l;
  }
  return true;
}

static bool read_right(einsum *e, const pln_equation *equation) {
  pln_einsum_term term;
  char stray;
  if (!equation->arrow)
    return imply_right(e);
  if (!pln_term_read(equation->right, &term, &stray))
    return false;
  e->rank = term.n + (term.dotted ? count_dots(e) : 0);
  return pln_term_labels(&term, e->rank, e->labels);
}

/* Numbers the labels of the result; false if one is repeated or not on the
 * left. */
static bool place_labels(einsum *e) {
  for (uint32_t l = 0; l < PLN_LABELS; l++)
    e->place[l] = PLN_MAX_RANK + l;
  for (uint32_t i = 0; i < e->rank; i++) {
    unsigned char l = e->labels[i];
    if (!e->named[l] || e->place[l] < PLN_MAX_RANK)
      return false;
    e->place[l] = i;
    e->uses[l]++;
  }
  return true;
}

static pln_status read_equation(einsum *e) {
  pln_equation equation;
  pln_kernel_call *call = e->call;
  pln_equation_split(
      pln_attrs_string(call->engine, call->attrs, "equation", ""), &equation);
  for (uint32_t l = 0; l < PLN_LABELS; l++)
    e->extent[l] = 1;
  PLN_TRY(read_left(e, equation.left));
  return read_right(e, &equation) && place_labels(e) ? PLN_OK
                                                     : extents_differ(e);
}

/* -------------------------------------------------------------------- views */

static void free_einsum_view(einsum_view *v) {
  pln_tensor_release(v->tensor);
  v->tensor = NULL;
}

/* Labels with extents above 1 get the strides of a dense tensor. */
static void set_steps(const einsum *e, uint32_t n, const unsigned char *labels,
                      einsum_view *v) {
  int64_t step = 1;
  for (uint32_t i = n; i-- > 0;) {
    v->has[labels[i]] = e->extent[labels[i]] > 1;
    v->step[labels[i]] = v->has[labels[i]] ? step : 0;
    step *= e->extent[labels[i]];
  }
}

/* A new tensor with those labels. */
static pln_status new_view(const einsum *e, const axis_group *g,
                           einsum_view *v) {
  int64_t dims[PLN_LABELS];
  for (uint32_t i = 0; i < g->n; i++)
    dims[i] = e->extent[g->labels[i]];
  *v = (einsum_view){0};
  PLN_TRY(pln_tensor_unset(e->call->engine, e->dtype, g->n, dims, &v->tensor));
  v->data = v->own = pln_tensor_writable(v->tensor);
  set_steps(e, g->n, g->labels, v);
  return PLN_OK;
}

/* A view of operand `i`; a repeated label is its diagonal. */
static pln_status read_einsum_operand(einsum *e, uint32_t i, einsum_view *v) {
  const pln_tensor *t = e->call->args[i];
  unsigned char labels[PLN_MAX_RANK];
  bool seen[PLN_LABELS] = {false};
  int64_t step = 1;
  *v = (einsum_view){.data = t->data};
  if (!labels_of(e, i, labels))
    return extents_differ(e);
  if (pln_dtype_is_half((pln_dtype)t->dtype)) {
    PLN_TRY(pln_tensor_to_float32(t, &v->tensor));
    v->data = v->tensor->data;
  }
  for (uint32_t k = t->rank; k-- > 0; step *= t->dims[k]) {
    unsigned char l = labels[k];
    e->uses[l] -= !seen[l];
    seen[l] = true;
    if (t->dims[k] == 1)
      continue;
    v->has[l] = true;
    v->step[l] += step;
  }
  e->taken[i] = true;
  e->left--;
  return PLN_OK;
}

static void copy_view(const einsum *e, const einsum_view *from,
                      const einsum_view *to) {
  pln_strided s = {.rank = 0};
  for (uint32_t l = 0; l < PLN_LABELS; l++)
    if (to->has[l]) {
      s.dims[s.rank] = e->extent[l];
      s.from[s.rank] = from->step[l];
      s.to[s.rank++] = to->step[l];
    }
  pln_strided_copy(e->call->engine, to->own, from->data, e->size, &s);
}

/* ------------------------------------------------------------------- groups */

static void put_group(const axis_group *from, axis_group *to) {
  memcpy(to->labels + to->n, from->labels, from->n);
  to->n += from->n;
}

static void put_label(const einsum *e, axis_group *g, unsigned char label) {
  uint32_t i = g->n++;
  for (; i > 0 && e->place[g->labels[i - 1]] > e->place[label]; i--)
    g->labels[i] = g->labels[i - 1];
  g->labels[i] = label;
}

/* Returns true if the group is one axis of the view, with its stride and
 * extent. A group of extent 1 has any stride; it gets 1. */
static bool is_axis(const einsum *e, const einsum_view *v, const axis_group *g,
                    size_t *step, size_t *extent) {
  *step = *extent = 1;
  for (uint32_t i = 0; i < g->n; i++) {
    unsigned char l = g->labels[i];
    if (i > 0 && v->step[g->labels[i - 1]] != v->step[l] * e->extent[l])
      return false;
    *step = (size_t)v->step[l];
    *extent *= (size_t)e->extent[l];
  }
  return true;
}

/* The operand as matrices with these rows and columns, copied if necessary. */
static pln_status as_matrix(const einsum *e, einsum_view *v,
                            const axis_group *batch, const axis_group *rows,
                            const axis_group *cols, size_t steps[2]) {
  size_t extent;
  einsum_view copy;
  axis_group all = {0};
  if (is_axis(e, v, rows, &steps[0], &extent) &&
      is_axis(e, v, cols, &steps[1], &extent) &&
      (steps[0] == 1 || steps[1] == 1))
    return PLN_OK;
  put_group(batch, &all);
  put_group(rows, &all);
  put_group(cols, &all);
  PLN_TRY(new_view(e, &all, &copy));
  copy_view(e, v, &copy);
  free_einsum_view(v);
  *v = copy;
  is_axis(e, v, rows, &steps[0], &extent);
  is_axis(e, v, cols, &steps[1], &extent);
  return PLN_OK;
}

/* -------------------------------------------------------------- contraction */

typedef struct contraction {
  const einsum *e;
  einsum_view a, b, c;
  axis_group batch, rows, cols, sums;
  pln_product product;
  pln_matmul_dispatch by;
} contraction;

/* Sorts the labels of a and b into batch, rows, columns and contracted ones. */
static void sort_labels(contraction *s) {
  for (uint32_t l = 0; l < PLN_LABELS; l++) {
    bool both = s->a.has[l] && s->b.has[l];
    if (both)
      put_label(s->e, s->e->uses[l] ? &s->batch : &s->sums, (unsigned char)l);
    else if (s->a.has[l])
      put_label(s->e, &s->rows, (unsigned char)l);
    else if (s->b.has[l])
      put_label(s->e, &s->cols, (unsigned char)l);
  }
}

/* Exchanges rows and columns, so that the result is contiguous along
 * columns. */
static void exchange_operands(contraction *s) {
  const axis_group rows = s->rows;
  const einsum_view a = s->a;
  s->rows = s->cols;
  s->cols = rows;
  s->a = s->b;
  s->b = a;
}

static bool ends_in_rows(const contraction *s) {
  const einsum *e = s->e;
  return s->rows.n &&
         (!s->cols.n || e->place[s->rows.labels[s->rows.n - 1]] >
                            e->place[s->cols.labels[s->cols.n - 1]]);
}

/* The target: `whole` if this is the last contraction and it can be written
 * there, else a new tensor. */
static pln_status place_result(contraction *s, const einsum_view *whole) {
  pln_product *p = &s->product;
  axis_group all = {0};
  size_t step;
  if (whole) {
    s->c = *whole;
    if (is_axis(s->e, &s->c, &s->rows, &p->c_row, &p->m) &&
        is_axis(s->e, &s->c, &s->cols, &step, &p->n) && step == 1)
      return PLN_OK;
  }
  put_group(&s->batch, &all);
  put_group(&s->rows, &all);
  put_group(&s->cols, &all);
  PLN_TRY(new_view(s->e, &all, &s->c));
  is_axis(s->e, &s->c, &s->rows, &p->c_row, &p->m);
  is_axis(s->e, &s->c, &s->cols, &step, &p->n);
  return PLN_OK;
}

/* Products of one element each: the last batch label in one loop. */
static void run_pairs(const contraction *s, const pln_product *p,
                      unsigned char label) {
  pln_multiply_elementwise(
      s->e->dtype, (size_t)s->e->extent[label], p->a, (size_t)s->a.step[label],
      p->b, (size_t)s->b.step[label], p->c, (size_t)s->c.step[label]);
}

static void run_batch(const contraction *s) {
  const axis_group *g = &s->batch;
  int64_t size = (int64_t)s->e->size, at[PLN_LABELS] = {0};
  pln_product p = s->product;
  bool pairs = g->n > 0 && p.m == 1 && p.n == 1 && p.k == 1;
  uint32_t outer = g->n - pairs, i;
  do {
    if (pairs)
      run_pairs(s, &p, g->labels[outer]);
    else
      pln_matmul_dispatch_run(&s->by, &p);
    for (i = outer; i-- > 0;) {
      unsigned char l = g->labels[i];
      bool more = ++at[l] < s->e->extent[l];
      int64_t by = more ? size : -size * (s->e->extent[l] - 1);
      p.a = (const char *)p.a + by * s->a.step[l];
      p.b = (const char *)p.b + by * s->b.step[l];
      p.c = (char *)p.c + by * s->c.step[l];
      if (more)
        break;
      at[l] = 0;
    }
  } while (i != UINT32_MAX);
}

static pln_status multiply_contraction(contraction *s) {
  pln_product *p = &s->product;
  size_t a[2], b[2];
  PLN_TRY(as_matrix(s->e, &s->a, &s->batch, &s->rows, &s->sums, a));
  PLN_TRY(as_matrix(s->e, &s->b, &s->batch, &s->sums, &s->cols, b));
  is_axis(s->e, &s->a, &s->sums, &p->a_col, &p->k);
  p->a = s->a.data;
  p->a_row = a[0];
  p->a_col = a[1];
  p->b = s->b.data;
  p->b_row = b[0];
  p->b_col = b[1];
  p->c = s->c.own;
  PLN_TRY(
      pln_matmul_dispatch_begin(s->e->call, s->e->dtype, p->n, p->k, &s->by));
  run_batch(s);
  pln_matmul_dispatch_end(&s->by);
  return PLN_OK;
}

/* Replaces *a by the contraction of both, which are consumed; with `last` it
 * may be the result itself. */
static pln_status contract(einsum *e, einsum_view *a, einsum_view *b,
                           bool last) {
  contraction s = {.e = e, .a = *a, .b = *b};
  *a = *b = (einsum_view){0};
  sort_labels(&s);
  if (ends_in_rows(&s))
    exchange_operands(&s);
  pln_status status = place_result(&s, last ? &e->result : NULL);
  if (status == PLN_OK)
    status = multiply_contraction(&s);
  free_einsum_view(&s.a);
  free_einsum_view(&s.b);
  e->stored = status == PLN_OK && s.c.own == e->result.own;
  if (status == PLN_OK)
    *a = s.c;
  else
    free_einsum_view(&s.c);
  return status;
}

/* ------------------------------------------------------------------ the sum */

#define ONES(T)                  \
  for (size_t i = 0; i < n; i++) \
  ((T *)data)[i] = 1

static void set_ones(pln_dtype dtype, size_t n, void *data) {
  if (dtype == PLN_FLOAT32) {
    ONES(float);
    return;
  }
  if (dtype == PLN_FLOAT64) {
    ONES(double);
    return;
  }
  switch (pln_element_size(dtype)) {
  case 1: ONES(uint8_t); break;
  case 2: ONES(uint16_t); break;
  case 4: ONES(uint32_t); break;
  default: ONES(uint64_t); break;
  }
}

static pln_status new_ones(const einsum *e, const axis_group *g,
                           einsum_view *v) {
  PLN_TRY(new_view(e, g, v));
  set_ones(e->dtype, v->tensor->count, v->own);
  return PLN_OK;
}

/* Sums *v over labels that neither the other operand nor anyone later needs. */
static pln_status sum_over(einsum *e, einsum_view *v, const einsum_view *other,
                           bool last) {
  axis_group g = {0};
  einsum_view ones;
  for (uint32_t l = 0; l < PLN_LABELS; l++)
    if (v->has[l] && !e->uses[l] && !(other && other->has[l]))
      g.labels[g.n++] = (unsigned char)l;
  if (g.n == 0)
    return PLN_OK;
  PLN_TRY(new_ones(e, &g, &ones));
  return contract(e, v, &ones, last);
}

static bool operands_share_label(const einsum *e, uint32_t i,
                                 const einsum_view *v) {
  unsigned char labels[PLN_MAX_RANK];
  if (!labels_of(e, i, labels))
    return false;
  for (uint32_t k = 0; k < e->call->args[i]->rank; k++)
    if (v->has[labels[k]])
      return true;
  return false;
}

/* Chooses the next operand; *first is the first that is not taken. */
static uint32_t choose_group_axes(const einsum *e, const einsum_view *v,
                                  uint32_t *first) {
  while (e->taken[*first])
    ++*first;
  for (uint32_t i = *first; i < *first + AHEAD && i < e->call->n_args; i++)
    if (!e->taken[i] && operands_share_label(e, i, v))
      return i;
  return *first;
}

static pln_status contract_next(einsum *e, einsum_view *v, uint32_t *first) {
  einsum_view next;
  PLN_TRY(read_einsum_operand(e, choose_group_axes(e, v, first), &next));
  pln_status status = sum_over(e, &next, v, false);
  if (status == PLN_OK)
    status = sum_over(e, v, &next, false);
  if (status == PLN_OK)
    return contract(e, v, &next, e->left == 0);
  free_einsum_view(&next);
  return status;
}

static pln_status contract_all(einsum *e) {
  einsum_view v;
  uint32_t first = 0;
  PLN_TRY(read_einsum_operand(e, 0, &v));
  pln_status status = PLN_OK;
  if (e->left == 0)
    status = sum_over(e, &v, NULL, true);
  while (status == PLN_OK && e->left > 0)
    status = contract_next(e, &v, &first);
  if (status == PLN_OK && !e->stored)
    copy_view(e, &v, &e->result);
  free_einsum_view(&v);
  return status;
}

static bool has_empty_axis(const einsum *e) {
  for (uint32_t l = 0; l < PLN_LABELS; l++)
    if (e->extent[l] == 0)
      return true;
  return false;
}

static pln_status compute_einsum(einsum *e) {
  int64_t dims[PLN_MAX_RANK];
  PLN_TRY(read_equation(e));
  for (uint32_t i = 0; i < e->rank; i++)
    dims[i] = e->extent[e->labels[i]];
  PLN_TRY(pln_tensor_new(e->call->engine, e->dtype, e->rank, dims, &e->out));
  if (has_empty_axis(e))
    return PLN_OK;
  e->result.own = pln_tensor_writable(e->out);
  e->result.data = e->result.own;
  set_steps(e, e->rank, e->labels, &e->result);
  return contract_all(e);
}

/* Sets result 0 in the dtype of the operands; consumes the result. */
static pln_status return_einsum_result(einsum *e, pln_status status) {
  pln_kernel_call *call = e->call;
  pln_dtype dtype = (pln_dtype)call->args[0]->dtype;
  if (status == PLN_OK && dtype == e->dtype) {
    call->results[0] = e->out;
    return PLN_OK;
  }
  if (status == PLN_OK)
    status = pln_tensor_from_float32(e->out, dtype, &call->results[0]);
  pln_tensor_release(e->out);
  return status;
}

pln_status pln_kernel_einsum(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  size_t n = call->n_args, bytes = n * (sizeof(pln_slice) + sizeof(bool));
  if (!x)
    return pln_kernel_refuse(call, "operand 0 is omitted");
  einsum e = {.call = call, .dtype = (pln_dtype)x->dtype, .left = (uint32_t)n};
  if (pln_dtype_is_half(e.dtype))
    e.dtype = PLN_FLOAT32;
  if (!pln_matmul_supports(e.dtype))
    return pln_kernel_no_dtype(call, e.dtype);
  e.size = pln_element_size(e.dtype);
  e.terms = pln_mem_zeroed(call->engine, bytes);
  if (!e.terms)
    return pln_nomem(call->engine);
  e.taken = (bool *)(e.terms + n);
  pln_status status = return_einsum_result(&e, compute_einsum(&e));
  pln_mem_free(call->engine, e.terms, bytes);
  return status;
}
