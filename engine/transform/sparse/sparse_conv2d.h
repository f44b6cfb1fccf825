/* sparse_conv2d.h: which convolutions nn.sparse_conv2d can compute. */

#ifndef PLN_TRANSFORM_SPARSE_SPARSE_CONV2D_H
#define PLN_TRANSFORM_SPARSE_SPARSE_CONV2D_H

#include "ir/graph/graph.h"

/* True for an nn.conv2d of that layout, NHWC or NCHW, with a square kernel of
 * that size, strides and dilation 1, one group, and as much padding as keeps
 * the extents. */
bool pln_sparse_conv2d_fits(const pln_graph *graph, pln_ref conv,
                            pln_slice layout, int64_t kernel_size);

#endif
