/* data_layout.h: layouts of axes as Relay writes them. A capital names an axis;
 * a number and a small letter name its inner part of that many elements, as in
 * "NCHW16c": C counts blocks of 16 channels, which the last axis walks. */

#ifndef PLN_OP_RELAY_DATA_LAYOUT_H
#define PLN_OP_RELAY_DATA_LAYOUT_H

#include "op/infer/infer.h"

enum { PLN_LAYOUT_AXES = 16 };

typedef struct pln_data_layout {
  int32_t rank;
  char letter[PLN_LAYOUT_AXES];    /* the axis's capital */
  int64_t factor[PLN_LAYOUT_AXES]; /* of an inner part; 0: the axis itself */
} pln_data_layout;

/* False when the text is no layout: an axis twice, an inner part without its
 * axis, or too many. */
bool pln_data_layout_read(pln_slice text, pln_data_layout *out);
/* The layout in attribute `name`. */
pln_status pln_data_layout_of(const pln_infer *call, const char *name,
                              const char *fallback,
                              pln_data_layout *out) PLN_CHECKED;
/* The whole extent of axis `letter` in a shape of that layout; *found is false
 * when it has none. */
pln_status pln_data_layout_extent(const pln_infer *call,
                                  const pln_data_layout *layout,
                                  const pln_dim *dims, char letter,
                                  pln_dim *out, bool *found) PLN_CHECKED;
/* The shape in layout `to` whose axes have the extents that `in` tells of them
 * in layout `from`; an axis that `from` has not is of extent 1. */
pln_status pln_data_layout_convert(const pln_infer *call,
                                   const pln_data_layout *from,
                                   const pln_shape *in,
                                   const pln_data_layout *to,
                                   pln_shape *out) PLN_CHECKED;
/* relay/infer/pool.c: the axes of space that a pooling operator walks over,
 * "HW"; *data is the layout it takes its operand to have when nothing is said.
 */
const char *pln_pool_space(pln_op op, const char **data);

#endif
