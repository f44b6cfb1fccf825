/* tensor_layout.h: the layouts of tensors that a layout pass reasons about.
 *
 * A layout names the axes of a tensor from the outermost in, as Relay writes
 * them: "NCHW16c" has the axes N, C, H, W and the inner part of C, of 16
 * elements. Two layouts are the same if their texts are. A layout may be
 * undefined: nothing is known of the tensor. The layout of a scalar is defined
 * and has no axes.
 *
 * Semantics: TVM's tir::Layout. */

#ifndef PLN_TRANSFORM_LAYOUT_TENSOR_LAYOUT_H
#define PLN_TRANSFORM_LAYOUT_TENSOR_LAYOUT_H

#include "op/relay/data_layout.h"

/* A layout: an index into the table of its run. */
typedef uint32_t pln_tensor_layout;
enum { PLN_LAYOUT_UNDEFINED, PLN_LAYOUT_SCALAR };

/* An axis: a capital letter, and the size of an inner part or 0. */
typedef struct pln_layout_axis {
  char letter;
  int64_t factor;
} pln_layout_axis;

typedef struct pln_layout_row {
  pln_symbol text;
  pln_data_layout axes;
} pln_layout_row;

/* The layouts of a run, each once. */
typedef struct pln_layout_table {
  pln_engine *engine;
  pln_idmap *by_text; /* symbol -> layout */
  uint32_t n, cap;
  pln_layout_row *rows;
} pln_layout_table;

pln_status pln_layout_table_new(pln_engine *engine,
                                pln_layout_table *out) PLN_CHECKED;
void pln_layout_table_free(pln_layout_table *table);

/* The layout that a text describes; undefined if it describes none, as "". A
 * number without an axis, as in "N5", only tells layouts apart. */
pln_status pln_tensor_layout_read(pln_layout_table *t, pln_slice text,
                                  pln_tensor_layout *out) PLN_CHECKED;
/* The layout with those axes. */
pln_status pln_tensor_layout_of(pln_layout_table *t,
                                const pln_data_layout *axes,
                                pln_tensor_layout *out) PLN_CHECKED;
/* Its text: "" if it is undefined or a scalar's. */
pln_slice pln_tensor_layout_text(const pln_layout_table *t,
                                 pln_tensor_layout layout);
int32_t pln_tensor_layout_rank(const pln_layout_table *t,
                               pln_tensor_layout layout);
/* The number of axes that are no inner parts. */
int32_t pln_tensor_layout_n_primal(const pln_layout_table *t,
                                   pln_tensor_layout layout);
/* Axis `i`, which the layout has. */
pln_layout_axis pln_tensor_layout_axis(const pln_layout_table *t,
                                       pln_tensor_layout layout, int32_t i);
/* The position of an axis (`inner`: of its inner part), or -1. */
int32_t pln_tensor_layout_find(const pln_layout_table *t,
                               pln_tensor_layout layout, char letter,
                               bool inner);
/* The position in `to` of axis `i` of `from`; -1 if there is none. */
int32_t pln_tensor_layout_map(const pln_layout_table *t, pln_tensor_layout from,
                              int64_t i, pln_tensor_layout to);
/* The size of the inner part of an axis; 0 if it has none. */
int64_t pln_tensor_layout_factor(const pln_layout_table *t,
                                 pln_tensor_layout layout, char letter);

/* The axes [begin, begin + count) as a layout; undefined past the end. */
pln_status pln_tensor_layout_slice(pln_layout_table *t,
                                   pln_tensor_layout layout, int32_t begin,
                                   int32_t count,
                                   pln_tensor_layout *out) PLN_CHECKED;
/* The layout after the axes of `like` that it lacks are put before it. */
pln_status pln_tensor_layout_expand(pln_layout_table *t,
                                    pln_tensor_layout layout,
                                    pln_tensor_layout like,
                                    pln_tensor_layout *out) PLN_CHECKED;
/* The layout that `layout` becomes when it is changed in the way in which
 * `from` became `to`; undefined if its axes do not correspond to the last ones
 * of `from`. */
pln_status pln_tensor_layout_follow(pln_layout_table *t,
                                    pln_tensor_layout layout,
                                    pln_tensor_layout from,
                                    pln_tensor_layout to,
                                    pln_tensor_layout *out) PLN_CHECKED;
/* True if layout_transform converts a tensor of that shape from one layout to
 * the other and back without loss. */
bool pln_tensor_layout_converts(const pln_layout_table *t,
                                const pln_shape *shape, pln_tensor_layout from,
                                pln_tensor_layout to);

#endif
