/* sparse_conv2d.c: which convolutions nn.sparse_conv2d can compute: it has no
 * attributes but layout and kernel size. Called by Conv2dToSparse and
 * Conv2dToSparse2.
 *
 *     nn.conv2d(.., padding=[1, 1, 1, 1], kernel_size=[3, 3])   fits
 *     nn.conv2d(.., strides=[2, 2], kernel_size=[1, 1])         does not */

#include "transform/sparse/sparse_conv2d.h"

#include "op/op.h"

static bool is_text(const pln_graph *g, pln_ref conv, const char *name,
                    const char *fallback, pln_slice wanted) {
  pln_slice text =
      pln_attrs_string(g->engine, g->nodes[conv].attrs, name, fallback);
  return pln_slice_equal(text.size ? text : pln_text(fallback), wanted);
}

/* Every element of a list that is given is `wanted`. */
static bool has_all(const pln_graph *g, pln_ref conv, const char *name,
                    int64_t fallback, int64_t wanted) {
  const pln_attr *list = pln_attrs_find(g->engine, g->nodes[conv].attrs, name);
  if (!list || list->kind != PLN_ATTR_INTS)
    return fallback == wanted;
  for (uint32_t i = 0; i < list->count; i++)
    if (list->v.ints[i] != wanted)
      return false;
  return true;
}

/* The spatial extents of the kernel. */
static bool has_kernel(const pln_graph *g, pln_ref conv, uint32_t height,
                       int64_t size) {
  pln_type type = g->nodes[pln_operand(g, conv, 1)].type;
  if (pln_type_rank(g->engine, type) != 4)
    return false;
  const pln_dim *dims = pln_type_dims(g->engine, type);
  return dims[height] == size && dims[height + 1] == size;
}

bool pln_sparse_conv2d_fits(const pln_graph *graph, pln_ref conv,
                            pln_slice layout, int64_t kernel_size) {
  bool nchw = pln_slice_equal(layout, pln_text("NCHW"));
  pln_slice kernel = pln_text(nchw ? "OIHW" : "HWIO");
  return graph->nodes[conv].count == 2 && kernel_size % 2 == 1 &&
         is_text(graph, conv, "data_layout", "NCHW", layout) &&
         is_text(graph, conv, "kernel_layout", "OIHW", kernel) &&
         is_text(graph, conv, "out_layout", nchw ? "NCHW" : "NHWC", layout) &&
         pln_attrs_int(graph->engine, graph->nodes[conv].attrs, "groups", 1) ==
             1 &&
         has_all(graph, conv, "strides", 1, 1) &&
         has_all(graph, conv, "dilation", 1, 1) &&
         has_all(graph, conv, "padding", 0, kernel_size / 2) &&
         has_kernel(graph, conv, nchw ? 2 : 0, kernel_size);
}
