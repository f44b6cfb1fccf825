/* conv2d_to_sparse.c: Conv2dToSparse: computes convolutions with weights in BSR
 * format.
 *
 * Run by the executor, once per function. `weight_name` lists parameters;
 * `weight_shape` has for each of them the extents of its blocks, and the
 * lengths of their indices and row pointers. The parameter is replaced by
 * three, named after it.
 *
 *     fn (%x, %w) { nn.conv2d(%x, %w) }   =>
 *     fn (%x, %w.data, %w.indices, %w.indptr)
 *       { nn.sparse_conv2d(%x, %w.data, %w.indices, %w.indptr) }
 *
 * Semantics: TVM Conv2dToSparse. nn.sparse_conv2d has no strides, dilation or
 * groups, and pads so that extents stay; TVM converts other convolutions too,
 * and changes what they compute. */

#include "transform/sparse/sparse_conv2d.h"
#include "transform/sparse/weight_params.h"

typedef struct conv_conversion {
  pln_sparse_options options;
  pln_slice layout;
  int64_t kernel_size;
  int64_t converted;
} conv_conversion;

static pln_status convert_conv(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  conv_conversion *c = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node *n = &g->nodes[old];
  if (n->kind != PLN_CALL || n->data != PLN_OP_CONV_2D ||
      n->flags & PLN_NODE_KEEP ||
      !pln_sparse_conv2d_fits(g, old, c->layout, c->kernel_size))
    return PLN_OK;
  int64_t index =
      pln_weight_index(g, pln_operand(g, old, 1), &c->options.names);
  if (index < 0)
    return PLN_OK;
  const int64_t kernel[] = {c->kernel_size, c->kernel_size};
  const pln_relay_attr attrs[] = {
      {"layout", {.kind = PLN_ATTR_STRING, .v.s = c->layout}},
      pln_relay_ints("kernel_size", 2, kernel)};
  return pln_sparse_replace(rw, old, &c->options, index, PLN_OP_SPARSE_CONV_2D,
                            2, attrs, node, &c->converted);
}

pln_status pln_pass_conv2d_to_sparse(pln_pass_run *run) {
  conv_conversion c = {.layout = pln_run_string(run, "layout"),
                       .kernel_size = pln_run_int(run, "kernel_size")};
  const pln_mutator m = {.ud = &c, .visit = convert_conv, .keeps_types = true};
  PLN_TRY(pln_sparse_options_read(run, 4, 5, &c.options));
  PLN_TRY(pln_rewrite_weights(run, &m));
  return c.converted ? pln_run_count(run, "converted", c.converted) : PLN_OK;
}
