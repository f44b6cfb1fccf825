/* buffer_stride_legalize.c: tir.BufferStrideLegalize: a Buffer whose axes are
 * to be aligned (storage_align) gets strides.
 *
 * A step of tir.StorageFlatten. The stride of an aligned axis is the least one
 * from the extents on that is `offset` modulo `factor`.
 *
 *     T.attr(B, "buffer_dim_align", T.tvm_tuple(0, 16, 1)); T.realize(B[0:4,
 * 0:8])
 *         =>   B = T.Buffer((4, 8), strides=(17, 1)); T.realize(B[0:4, 0:8])
 *
 * Semantics: TVM's BufferStrideLegalize. */

#include "lower/flatten/flatten.h"

typedef struct axis_align {
  int64_t factor, offset;
} axis_align;

typedef struct align_row {
  axis_align axes[PLN_MOST_AXES];
} align_row;

typedef struct stride_legalizer {
  const pln_graph *g;
  pln_analyzer *a;
  uint32_t *row_of; /* by old Buffer: its row + 1 */
  align_row *rows;
  uint32_t n, cap;
} stride_legalizer;

static bool is_align(const pln_graph *g, pln_ref stmt) {
  return pln_slice_is(pln_attr_key(g, stmt), "buffer_dim_align") &&
         g->nodes[pln_operand(g, stmt, 0)].kind == PLN_BUFFER;
}

static pln_status malformed(const stride_legalizer *x) {
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.BufferStrideLegalize: buffer_dim_align needs an "
                        "axis, a positive factor and an offset as constants");
}

/* tvm_tuple(axis, factor, offset) */
static pln_status read_align(stride_legalizer *x, pln_ref stmt) {
  const pln_graph *g = x->g;
  pln_ref buffer = pln_operand(g, stmt, 0), tuple = pln_operand(g, stmt, 1);
  int64_t v[3];
  if (g->nodes[tuple].count != 3)
    return malformed(x);
  for (uint32_t i = 0; i < 3; i++) {
    pln_ref value = pln_operand(g, tuple, i);
    if (g->nodes[value].kind != PLN_INT_IMM)
      return malformed(x);
    v[i] = pln_node_int(g, value);
  }
  if (v[0] < 0 || v[0] >= g->nodes[buffer].results || v[0] >= PLN_MOST_AXES ||
      v[1] <= 0 || v[1] > INT32_MAX || v[2] < 0 || v[2] > INT32_MAX)
    return malformed(x);
  if (!x->row_of[buffer]) {
    PLN_TRY(pln_mem_grow(g->engine, (void **)&x->rows, &x->cap,
                         (size_t)x->n + 1, sizeof *x->rows));
    memset(&x->rows[x->n], 0, sizeof *x->rows);
    x->row_of[buffer] = ++x->n;
  }
  x->rows[x->row_of[buffer] - 1].axes[v[0]] = (axis_align){v[1], v[2]};
  return PLN_OK;
}

/* stride + (factor + offset - stride % factor) % factor */
static pln_term aligned(pln_analyzer *a, pln_term stride, axis_align align) {
  pln_term factor = pln_const_like(a, stride, align.factor);
  pln_term rest = pln_fold(a, PLN_PRIM_FLOORMOD, stride, factor);
  pln_term sum = pln_const_like(a, stride, align.factor + align.offset);
  return pln_add(a, stride,
                 pln_fold(a, PLN_PRIM_FLOORMOD, pln_sub(a, sum, rest), factor));
}

static pln_status make_strides(stride_legalizer *x, pln_stmt_rewrite *s,
                               const pln_buffer_fields *f, const align_row *row,
                               pln_ref *out) {
  pln_term stride = PLN_NO_TERM;
  for (uint32_t i = f->rank; i-- > 0;) {
    pln_ref shape;
    pln_term extent;
    PLN_TRY(pln_stmt_map(s, f->shape[i], &shape));
    PLN_TRY(
        pln_analyzer_import_built(x->a, pln_stmt_builder(s), shape, &extent));
    if (!stride)
      stride = pln_const_like(x->a, extent, 1);
    if (row->axes[i].factor)
      stride = aligned(x->a, stride, row->axes[i]);
    PLN_TRY(pln_analyzer_simplify(x->a, stride, 2, &stride));
    PLN_TRY(pln_analyzer_export(x->a, pln_stmt_builder(s), stride, &out[i]));
    stride = pln_mul(x->a, stride, extent);
  }
  return PLN_OK;
}

/* The Buffer with strides. */
static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  stride_legalizer *x = ud;
  pln_ref shape[PLN_MOST_AXES], strides[PLN_MOST_AXES], wide;
  (void)node;
  if (x->g->nodes[stmt].kind != PLN_BUFFER_REALIZE)
    return PLN_OK;
  pln_ref buffer = pln_operand(x->g, stmt, 0);
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  const pln_node *n = &x->g->nodes[buffer];
  if (!x->row_of[buffer] || f.n_strides > 0 || f.rank > PLN_MOST_AXES)
    return PLN_OK;
  PLN_TRY(make_strides(x, s, &f, &x->rows[x->row_of[buffer] - 1], strides));
  for (uint32_t i = 0; i < f.rank; i++)
    PLN_TRY(pln_stmt_map(s, f.shape[i], &shape[i]));
  pln_buffer_spec spec = {.name = n->data,
                          .type = n->type,
                          .attrs = n->attrs,
                          .rank = f.rank,
                          .shape = shape,
                          .n_strides = f.rank,
                          .strides = strides};
  PLN_TRY(pln_stmt_map(s, f.data, &spec.data));
  PLN_TRY(pln_stmt_map(s, f.elem_offset, &spec.elem_offset));
  PLN_TRY(pln_build_buffer(pln_stmt_builder(s), &spec, &wide));
  pln_stmt_bind(s, buffer, wide);
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const stride_legalizer *x = ud;
  if (x->g->nodes[stmt].kind == PLN_ATTR_STMT && is_align(x->g, stmt))
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

static pln_status read_all(stride_legalizer *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_ATTR_STMT && is_align(x->g, ref))
      PLN_TRY(read_align(x, ref));
  return x->n > 0 ? pln_analyzer_new(x->g->engine, &x->a) : PLN_OK;
}

pln_status pln_buffer_stride_legalize(const pln_graph *function,
                                      pln_graph **out) {
  pln_engine *e = function->engine;
  size_t size = function->n_nodes * sizeof(uint32_t);
  stride_legalizer x = {.g = function, .row_of = pln_mem_zeroed(e, size)};
  pln_stmt_mutator mutator = {
      .ud = &x, .enter = enter_stmt, .leave = leave_stmt};
  if (!x.row_of)
    return pln_nomem(e);
  pln_status status = read_all(&x);
  if (status == PLN_OK && x.n == 0)
    *out = pln_graph_retain(function);
  else if (status == PLN_OK)
    status = pln_stmt_rewrite_function(function, &mutator, out);
  if (x.a)
    pln_analyzer_free(x.a);
  pln_mem_free(e, x.rows, x.cap * sizeof *x.rows);
  pln_mem_free(e, x.row_of, size);
  return status;
}
