/* index.c: kernels of Relay's operators on indices of sparse tensors:
 * nn.sparse_transpose, sparse_reshape, sparse_fill_empty_rows. Called through
 * ops.def; types are in matrix.c.
 *
 * Semantics: TVM's TOPI. */

#include "op/kernel/composed.h"
#include "op/kernel/indices.h"

/* ---------------------------------------------------------------- transpose
 */

/* Row starts of the transposed matrix from its columns: counts, then sums. */
static bool count_columns(const pln_tensor *columns, int64_t n,
                          int32_t *begins) {
  int64_t at;
  memset(begins, 0, (size_t)(n + 1) * sizeof *begins);
  for (size_t i = 0; i < columns->count; i++) {
    if (!pln_index_at(columns, i, n, &at))
      return false;
    begins[at + 1]++;
  }
  for (int64_t i = 0; i < n; i++)
    begins[i + 1] += begins[i];
  return true;
}

typedef struct csr {
  const pln_tensor *values, *columns, *begins;
  int64_t rows;
} csr;

/* Places each value behind those of its column that are placed. `begins` is
 * moved by that, and moved back. */
static bool place_values(const csr *m, char *values, int32_t *rows,
                         int32_t *begins) {
  size_t size = pln_element_size((pln_dtype)m->values->dtype);
  int64_t begin, end, at, count = m->columns->dims[0];
  for (int64_t r = 0; r < m->rows; r++) {
    if (!pln_index_at(m->begins, (size_t)r, count + 1, &begin) ||
        !pln_index_at(m->begins, (size_t)r + 1, count + 1, &end))
      return false;
    for (int64_t i = begin; i < end; i++) {
      if (!pln_index_at(m->columns, (size_t)i, m->rows, &at))
        return false;
      int32_t to = begins[at]++;
      if (to >= count)
        return false;
      memcpy(values + (size_t)to * size,
             (const char *)m->values->data + (size_t)i * size, size);
      rows[to] = (int32_t)r;
    }
  }
  memmove(begins + 1, begins, (size_t)m->rows * sizeof *begins);
  begins[0] = 0;
  return true;
}

/* (values, columns, row starts) of a square matrix. */
pln_status pln_kernel_sparse_transpose(pln_kernel_call *call) {
  csr m = {pln_kernel_arg(call, 0), pln_kernel_arg(call, 1),
           pln_kernel_arg(call, 2), 0};
  void *values, *rows, *begins;
  if (call->n_results != 3 || m.values->rank != 1 || m.columns->rank != 1 ||
      m.begins->rank != 1 || m.begins->count == 0 ||
      m.columns->dtype != PLN_INT32 || m.begins->dtype != PLN_INT32 ||
      m.values->count != m.columns->count || m.values->dtype == PLN_STRING ||
      pln_element_size((pln_dtype)m.values->dtype) == 0)
    return pln_kernel_refuse(call, "the matrix is not in CSR form");
  m.rows = m.begins->dims[0] - 1;
  PLN_TRY(pln_kernel_result(call, 0, (pln_dtype)m.values->dtype, 1,
                            m.values->dims, &values));
  PLN_TRY(pln_kernel_result(call, 1, PLN_INT32, 1, m.columns->dims, &rows));
  PLN_TRY(pln_kernel_unset(call, 2, PLN_INT32, 1, m.begins->dims, &begins));
  if (!count_columns(m.columns, m.rows, begins) ||
      !place_values(&m, values, rows, begins))
    return pln_kernel_refuse(call, "an index lies outside of the matrix");
  return PLN_OK;
}

/* ------------------------------------------------------------------ reshape
 */

/* A shape given as a tensor; -1 is found from `count` elements. */
static bool read_shape(const pln_tensor *t, int64_t count, int64_t *dims) {
  int64_t product = 1, *free = NULL;
  if (t->rank != 1 || t->count > PLN_MAX_RANK)
    return false;
  for (size_t i = 0; i < t->count; i++) {
    if (!pln_tensor_int(t, i, &dims[i]) || dims[i] < -1 || dims[i] == 0 ||
        (dims[i] == -1 && free))
      return false;
    if (dims[i] == -1)
      free = &dims[i];
    else if (__builtin_mul_overflow(product, dims[i], &product))
      return false;
  }
  if (free && count >= 0)
    *free = count / product;
  return count < 0 ? !free : free ? count % product == 0 : count == product;
}

static bool flat_index(const pln_tensor *indices, size_t row,
                       const int64_t *dims, size_t rank, int64_t *out) {
  int64_t at;
  *out = 0;
  for (size_t k = 0; k < rank; k++) {
    if (!pln_index_at(indices, row * rank + k, dims[k], &at))
      return false;
    *out = *out * dims[k] + at;
  }
  return true;
}

static void split_index(int64_t at, const int64_t *dims, size_t rank,
                        int64_t *out) {
  for (size_t k = rank; k-- > 0;) {
    out[k] = at % dims[k];
    at /= dims[k];
  }
}

/* Casts a vector of int64 to result `i`. */
static void set_cast(pln_composition *s, uint32_t i, const pln_tensor *t,
                     pln_dtype dtype) {
  pln_composition_set_result(s, i, pln_compose_cast(s, t, dtype));
}

/* (indices, shape, new shape) */
pln_status pln_kernel_sparse_reshape(pln_kernel_call *call) {
  const pln_tensor *indices = pln_kernel_arg(call, 0);
  const pln_tensor *from = pln_kernel_arg(call, 1);
  const pln_tensor *to = pln_kernel_arg(call, 2);
  int64_t old[PLN_MAX_RANK], new[PLN_MAX_RANK], count = 1, at;
  pln_composition s;
  pln_tensor *t = NULL;
  if (!read_shape(from, -1, old) || indices->rank != 2 ||
      (size_t)indices->dims[1] != from->count)
    return pln_kernel_refuse(call, "the indices do not match the shape");
  for (size_t i = 0; i < from->count; i++)
    if (__builtin_mul_overflow(count, old[i], &count))
      return pln_kernel_refuse(call, "the shape is too large");
  if (!read_shape(to, count, new))
    return pln_kernel_refuse(call, "the new shape does not have %lld elements",
                             (long long)count);
  int64_t dims[2] = {indices->dims[0], (int64_t)to->count};
  pln_composition_begin(&s, call);
  s.status = pln_tensor_unset(call->engine, PLN_INT64, 2, dims, &t);
  const pln_tensor *kept = pln_compose_own(&s, t);
  int64_t *out = kept ? pln_tensor_writable(t) : NULL;
  for (size_t i = 0; kept && i < (size_t)dims[0]; i++) {
    if (!flat_index(indices, i, old, from->count, &at)) {
      pln_composition_refuse(&s, "an index lies outside of the shape");
      break;
    }
    split_index(at, new, to->count, out + i * to->count);
  }
  set_cast(&s, 0, kept, (pln_dtype)indices->dtype);
  set_cast(&s, 1, pln_compose_vector(&s, (uint32_t)to->count, new),
           (pln_dtype)to->dtype);
  return pln_composition_end(&s);
}

/* ---------------------------------------------------------------- empty rows
 */

/* The sparse tensor that is filled, and where the rows go. */
typedef struct filling {
  const pln_tensor *indices, *values, *other;
  int64_t rows;
  size_t rank, size; /* of a value */
  int64_t *to_indices;
  char *to_values;
} filling;

/* Row of element i; -1 if it is out of range or below that before. */
static int64_t row_at(const filling *f, size_t i, int64_t before) {
  int64_t row;
  if (!pln_index_at(f->indices, i * f->rank, f->rows, &row) || row < before)
    return -1;
  return row;
}

/* The number of rows without an element; -1 if rows do not ascend. */
static int64_t count_empty_rows(const filling *f) {
  int64_t used = 0, before = -1;
  for (size_t i = 0; i < f->values->count; i++) {
    int64_t row = row_at(f, i, before < 0 ? 0 : before);
    if (row < 0)
      return -1;
    used += row != before;
    before = row;
  }
  return f->rows - used;
}

static void fill_row(filling *f, int64_t row) {
  memset(f->to_indices, 0, f->rank * sizeof *f->to_indices);
  f->to_indices[0] = row;
  memcpy(f->to_values, f->other->data, f->size);
  f->to_indices += f->rank;
  f->to_values += f->size;
}

static void copy_element(filling *f, size_t i) {
  for (size_t k = 0; k < f->rank; k++)
    (void)pln_tensor_int(f->indices, i * f->rank + k, f->to_indices++);
  memcpy(f->to_values, (const char *)f->values->data + i * f->size, f->size);
  f->to_values += f->size;
}

/* Elements of the filled rows stand between the others, by row. */
static void fill_rows(filling *f, int64_t *empty) {
  size_t i = 0;
  int64_t row = 0;
  for (int64_t r = 0; r < f->rows; r++) {
    bool any = false;
    for (; i < f->values->count &&
           pln_index_at(f->indices, i * f->rank, f->rows, &row) && row == r;
         i++, any = true)
      copy_element(f, i);
    if (!any)
      fill_row(f, r);
    empty[r] = !any;
  }
}

static bool read_filling(const pln_kernel_call *call, filling *f) {
  const pln_tensor *shape = pln_kernel_arg(call, 2);
  *f = (filling){.indices = pln_kernel_arg(call, 0),
                 .values = pln_kernel_arg(call, 1),
                 .other = pln_kernel_arg(call, 3)};
  f->size = pln_element_size((pln_dtype)f->values->dtype);
  if (f->indices->rank != 2 || f->values->rank != 1 || shape->rank != 1 ||
      f->indices->dims[0] != f->values->dims[0] || f->indices->dims[1] < 1 ||
      f->indices->dims[1] != shape->dims[0] || f->other->count != 1 ||
      f->other->dtype != f->values->dtype || f->values->dtype == PLN_STRING ||
      f->size == 0)
    return false;
  f->rank = (size_t)shape->dims[0];
  return pln_tensor_int(shape, 0, &f->rows) && f->rows >= 0;
}

/* (indices, values, shape, default), of which rows ascend; the third result has
 * 1 for a row that was filled. */
pln_status pln_kernel_sparse_fill_empty_rows(pln_kernel_call *call) {
  filling f;
  void *indices, *values, *empty;
  if (call->n_results != 3 || !read_filling(call, &f))
    return pln_kernel_refuse(call, "the operands do not match each other");
  int64_t more = count_empty_rows(&f);
  if (more < 0)
    return pln_kernel_refuse(
        call, "rows do not ascend, or one lies outside of the shape");
  int64_t dims[2] = {f.values->dims[0], (int64_t)f.rank};
  if (__builtin_add_overflow(dims[0], more, &dims[0]))
    return pln_kernel_refuse(call, "the shape is too large");
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT64, 2, dims, &indices));
  PLN_TRY(
      pln_kernel_unset(call, 1, (pln_dtype)f.values->dtype, 1, dims, &values));
  PLN_TRY(pln_kernel_unset(call, 2, PLN_INT64, 1, &f.rows, &empty));
  f.to_indices = indices;
  f.to_values = values;
  fill_rows(&f, empty);
  return PLN_OK;
}
