/* dense_to_sparse.c: DenseToSparse: computes dense layers with weights in BSR
 * format.
 *
 * Run by the executor, once per function. `weight_name` lists parameters;
 * `weight_shape` has for each of them the extents of its blocks (number, rows,
 * columns), and the lengths of their indices and row pointers. The parameter is
 * replaced by three, named after it.
 *
 *     fn (%x, %w) { nn.dense(%x, %w) }   =>
 *     fn (%x, %w.data, %w.indices, %w.indptr)
 *       { nn.sparse_dense(%x, %w.data, %w.indices, %w.indptr) }
 *
 * Semantics: TVM DenseToSparse. */

#include "transform/sparse/weight_params.h"

typedef struct dense_conversion {
  pln_sparse_options options;
  int64_t converted;
} dense_conversion;

static pln_status convert_dense(void *ud, pln_rewrite *rw, pln_ref old,
                                pln_ref *node) {
  dense_conversion *c = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node *n = &g->nodes[old];
  if (n->kind != PLN_CALL || n->data != PLN_OP_DENSE || n->count != 2 ||
      n->flags & PLN_NODE_KEEP)
    return PLN_OK;
  int64_t index =
      pln_weight_index(g, pln_operand(g, old, 1), &c->options.names);
  return index < 0 ? PLN_OK
                   : pln_sparse_replace(rw, old, &c->options, index,
                                        PLN_OP_SPARSE_DENSE, 0, NULL, node,
                                        &c->converted);
}

pln_status pln_pass_dense_to_sparse(pln_pass_run *run) {
  dense_conversion c = {0};
  const pln_mutator m = {.ud = &c, .visit = convert_dense, .keeps_types = true};
  PLN_TRY(pln_sparse_options_read(run, 5, 5, &c.options));
  PLN_TRY(pln_rewrite_weights(run, &m));
  return c.converted ? pln_run_count(run, "converted", c.converted) : PLN_OK;
}
