/* conv2d_to_sparse2.c: Conv2dToSparse2: computes convolutions whose constant
 * weights are sparse with these weights in BSR format.
 *
 * Run by the executor, once per function. A weight is seen as a matrix of
 * filters by all elements of one, in blocks of `blocksize`; blocks of zeros are
 * left out. It is converted if that saves at least the part
 * `sparsity_threshold` of its elements.
 *
 *     nn.conv2d(%x, W)   =>
 *     nn.sparse_conv2d(%x, blocks of W, their columns, where rows begin)
 *
 * Semantics: TVM Conv2dToSparse2. A weight that blocks do not divide stays; TVM
 * drops the rest. Convolutions that nn.sparse_conv2d cannot compute stay. */

#include <math.h>

#include "transform/fold/weight.h"
#include "transform/relay_builder.h"
#include "transform/sparse/sparse_conv2d.h"

typedef struct sparse_folder {
  pln_engine *engine;
  pln_slice layout;
  int64_t kernel_size, rows, columns; /* of a block */
  double threshold;
  int64_t converted;
} sparse_folder;

/* A weight as a matrix, and its blocks that are not zero. */
typedef struct block_matrix {
  const sparse_folder *f;
  pln_weight weight;
  bool by_filter; /* OIHW: the elements of a filter are contiguous */
  int64_t filters, elements;
  int64_t n; /* blocks */
  float *data;
  int32_t *indices, *indptr;
} block_matrix;

/* --------------------------------------------------------------- conversion
 */

static double element_at(const block_matrix *m, int64_t filter, int64_t i) {
  return pln_weight_at(&m->weight,
                       (size_t)(m->by_filter ? filter * m->elements + i
                                             : i * m->filters + filter));
}

/* Copies a block; returns true if it is not zero. */
static bool read_block(const block_matrix *m, int64_t row, int64_t column,
                       float *out) {
  bool any = false;
  for (int64_t i = 0; i < m->f->rows; i++)
    for (int64_t j = 0; j < m->f->columns; j++) {
      double x =
          element_at(m, row * m->f->rows + i, column * m->f->columns + j);
      out[i * m->f->columns + j] = (float)x;
      any |= x != 0;
    }
  return any;
}

/* Fills the arrays, which have room for all blocks and one more. */
static void find_blocks(block_matrix *m) {
  int64_t size = m->f->rows * m->f->columns;
  for (int64_t row = 0; row < m->filters / m->f->rows; row++) {
    m->indptr[row] = (int32_t)m->n;
    for (int64_t column = 0; column < m->elements / m->f->columns; column++)
      if (read_block(m, row, column, m->data + m->n * size))
        m->indices[m->n++] = (int32_t)column;
  }
  m->indptr[m->filters / m->f->rows] = (int32_t)m->n;
}

static bool is_worth_it(const block_matrix *m) {
  double kept = (double)(m->n * m->f->rows * m->f->columns);
  double all = (double)(m->filters * m->elements);
  return m->n > 0 && 1 - kept / all >= m->f->threshold;
}

/* ------------------------------------------------------------------ building
 */

static pln_ref add_constant(pln_relay_builder *r, pln_dtype dtype,
                            uint32_t rank, const int64_t *dims,
                            const void *data) {
  pln_tensor *tensor;
  pln_ref out = PLN_NONE;
  size_t size = pln_dtype_bits(dtype) / 8;
  for (uint32_t i = 0; i < rank; i++)
    size *= (size_t)dims[i];
  if (r->status == PLN_OK)
    r->status = pln_tensor_from_bytes(r->engine, dtype, rank, dims, data, size,
                                      &tensor);
  if (r->status != PLN_OK)
    return PLN_NONE;
  r->status = pln_build_constant(r->b, tensor, &out);
  pln_tensor_release(tensor);
  return r->status == PLN_OK ? out : PLN_NONE;
}

static pln_status build_sparse(sparse_folder *f, const block_matrix *m,
                               pln_rewrite *rw, pln_ref *node) {
  const int64_t shape[] = {m->n, f->rows, f->columns};
  const int64_t starts = m->filters / f->rows + 1;
  const int64_t kernel[] = {f->kernel_size, f->kernel_size};
  const pln_relay_attr attrs[] = {
      {"layout", {.kind = PLN_ATTR_STRING, .v.s = f->layout}},
      pln_relay_ints("kernel_size", 2, kernel)};
  pln_relay_builder r;
  PLN_TRY(pln_relay_begin(&r, rw));
  pln_ref before = *node;
  pln_ref args[] = {pln_operand(r.b->graph, *node, 0),
                    add_constant(&r, PLN_FLOAT32, 3, shape, m->data),
                    add_constant(&r, PLN_INT32, 1, shape, m->indices),
                    add_constant(&r, PLN_INT32, 1, &starts, m->indptr)};
  pln_ref sparse =
      pln_relay_call_with(&r, PLN_OP_SPARSE_CONV_2D, 2, attrs, 4, args);
  PLN_TRY(pln_relay_finish(&r, "convert", sparse, node));
  f->converted += *node != before;
  return PLN_OK;
}

static bool begin_matrix(const sparse_folder *f, const pln_graph *g,
                         pln_ref weight, block_matrix *m) {
  *m = (block_matrix){.f = f,
                      .by_filter = f->layout.size == 4 &&
                                   memcmp(f->layout.data, "NCHW", 4) == 0};
  if (g->nodes[weight].kind != PLN_CONSTANT ||
      !pln_weight_read(g, weight, &m->weight) ||
      m->weight.dtype != PLN_FLOAT32 || m->weight.rank != 4 ||
      m->weight.count == 0 || m->weight.count > INT32_MAX)
    return false;
  m->filters = m->weight.dims[m->by_filter ? 0 : 3];
  m->elements = (int64_t)m->weight.count / m->filters;
  return m->filters % f->rows == 0 && m->elements % f->columns == 0;
}

static pln_status convert_weight(sparse_folder *f, block_matrix *m,
                                 pln_rewrite *rw, pln_ref *node) {
  size_t data = m->weight.count * sizeof *m->data;
  size_t indices = m->weight.count * sizeof *m->indices;
  size_t indptr = ((size_t)m->filters + 1) * sizeof *m->indptr;
  m->data = pln_mem_new(f->engine, data);
  m->indices = pln_mem_new(f->engine, indices);
  m->indptr = pln_mem_new(f->engine, indptr);
  pln_status status =
      m->data && m->indices && m->indptr ? PLN_OK : pln_nomem(f->engine);
  if (status == PLN_OK) {
    find_blocks(m);
    if (is_worth_it(m))
      status = build_sparse(f, m, rw, node);
  }
  pln_mem_free(f->engine, m->data, data);
  pln_mem_free(f->engine, m->indices, indices);
  pln_mem_free(f->engine, m->indptr, indptr);
  return status;
}

static pln_status convert_conv(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  sparse_folder *f = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node *n = &g->nodes[old];
  block_matrix m;
  if (n->kind != PLN_CALL || n->data != PLN_OP_CONV_2D ||
      n->flags & PLN_NODE_KEEP ||
      !pln_sparse_conv2d_fits(g, old, f->layout, f->kernel_size) ||
      !begin_matrix(f, g, pln_operand(g, old, 1), &m))
    return PLN_OK;
  return convert_weight(f, &m, rw, node);
}

/* ---------------------------------------------------------------------- pass
 */

pln_status pln_pass_conv2d_to_sparse2(pln_pass_run *run) {
  pln_attr block, threshold;
  sparse_folder f = {.engine = pln_run_engine(run),
                     .layout = pln_run_string(run, "layout"),
                     .kernel_size = pln_run_int(run, "kernel_size")};
  const pln_mutator m = {.ud = &f, .visit = convert_conv, .keeps_types = true};
  (void)pln_run_option(run, "blocksize", &block);
  (void)pln_run_option(run, "sparsity_threshold", &threshold);
  if (block.count != 2 || block.v.ints[0] < 1 || block.v.ints[1] < 1 ||
      block.v.ints[0] > INT32_MAX || block.v.ints[1] > INT32_MAX)
    return pln_diag_error(f.engine, PLN_ERR_ARGUMENT, NULL,
                          "pass 'Conv2dToSparse2': option 'blocksize' needs "
                          "two positive integers");
  f.rows = block.v.ints[0];
  f.columns = block.v.ints[1];
  f.threshold = threshold.v.f;
  PLN_TRY(pln_rewrite_function(run, &m));
  return f.converted ? pln_run_count(run, "converted", f.converted) : PLN_OK;
}
