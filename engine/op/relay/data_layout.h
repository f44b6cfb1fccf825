/* data_layout.h: axis layouts as Relay writes them. A capital letter is an
 * axis; a number and a small letter are its inner part of that many elements.
 * In "NCHW16c" C counts blocks of 16 channels, and the last axis runs within a
 * block. An inner part may be split again: in "OHWI16i64o2i" I counts blocks of
 * 32. */

#ifndef PLN_OP_RELAY_DATA_LAYOUT_H
#define PLN_OP_RELAY_DATA_LAYOUT_H

#include "op/infer/infer.h"

enum { PLN_LAYOUT_AXES = 16, PLN_LAYOUT_TEXT = 24 * PLN_LAYOUT_AXES };

typedef struct pln_data_layout {
  int32_t rank;
  char letter[PLN_LAYOUT_AXES]; /* the capital letter of the axis */
  /* Size of an inner part; 0: the axis itself. */
  int64_t factor[PLN_LAYOUT_AXES];
} pln_data_layout;

/* Returns false for an invalid layout: a repeated axis, an inner part without
 * its axis, or too many axes. */
bool pln_data_layout_read(pln_slice text, pln_data_layout *out);
/* The text of a layout, in `text` of PLN_LAYOUT_TEXT bytes. */
pln_slice pln_data_layout_write(const pln_data_layout *layout, char *text);
/* The number of elements of the inner parts of an axis together; 1: none. */
int64_t pln_data_layout_inner(const pln_data_layout *layout, char letter);
/* The layout in attribute `name`. */
pln_status pln_data_layout_of(const pln_infer *call, const char *name,
                              const char *fallback,
                              pln_data_layout *out) PLN_CHECKED;
/* The whole extent of axis `letter` in a shape with that layout; *found is
 * false if the layout lacks it. */
pln_status pln_data_layout_extent(const pln_infer *call,
                                  const pln_data_layout *layout,
                                  const pln_dim *dims, char letter,
                                  pln_dim *out, bool *found) PLN_CHECKED;
/* Converts the shape `in` from layout `from` to layout `to`; axes that `from`
 * lacks have extent 1. */
pln_status pln_data_layout_convert(const pln_infer *call,
                                   const pln_data_layout *from,
                                   const pln_shape *in,
                                   const pln_data_layout *to,
                                   pln_shape *out) PLN_CHECKED;
/* relay/infer/pool.c: the spatial axes of a pooling operator, such as "HW";
 * *data is its default layout. */
const char *pln_pool_space(pln_op op, const char **data);

#endif
