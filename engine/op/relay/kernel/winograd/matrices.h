/* matrices.h: the matrices of Winograd's convolution. */

#ifndef PLN_OP_RELAY_KERNEL_WINOGRAD_MATRICES_H
#define PLN_OP_RELAY_KERNEL_WINOGRAD_MATRICES_H

#include "op/relay/kernel/window.h"

enum {
  PLN_WINOGRAD_TILE = 8,
  PLN_WINOGRAD_WINDOW = 7,
  PLN_WINOGRAD_ALPHA = 14
};

/* A tile of m results and a window of r weights need alpha = m + r - 1
 * products along an axis: y = A' ((G w) * (B' x)). Numbers of rows and columns:
 * alpha x tile, alpha x alpha, alpha x window. */
typedef struct pln_winograd {
  uint32_t tile, window, alpha;
  float a[PLN_WINOGRAD_ALPHA][PLN_WINOGRAD_TILE];
  float b[PLN_WINOGRAD_ALPHA][PLN_WINOGRAD_ALPHA];
  float g[PLN_WINOGRAD_ALPHA][PLN_WINOGRAD_WINDOW];
} pln_winograd;

/* False: there are no matrices for it. */
bool pln_winograd_make(int64_t tile, int64_t window, pln_winograd *w);
/* For an axis whose weights are not transformed: tiles of one result, which
 * sums a product for each weight. It has no G. False: the window is too
 * long. */
bool pln_winograd_identity(int64_t window, pln_winograd *w);
/* The attribute tile_size, or 0 when there are no matrices for it. */
int64_t pln_winograd_tile_size(const pln_kernel_call *call);

#endif
