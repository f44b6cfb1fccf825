/* layout_conversion.h: converts values between layouts, each once. */

#ifndef PLN_TRANSFORM_LAYOUT_LAYOUT_CONVERSION_H
#define PLN_TRANSFORM_LAYOUT_LAYOUT_CONVERSION_H

#include "transform/layout/tensor_layout.h"

typedef struct pln_layout_conversions {
  pln_engine *engine;
  pln_layout_table table;
  pln_idmap *pairs;     /* two layouts -> number of the pair */
  pln_idmap *converted; /* value and pair -> converted value + 1 */
  uint32_t n_pairs;
} pln_layout_conversions;

/* After a failure too, free releases what was made. */
pln_status pln_layout_conversions_new(pln_engine *engine,
                                      pln_layout_conversions *out) PLN_CHECKED;
void pln_layout_conversions_free(pln_layout_conversions *conversions);
/* Converts *node, a node of the new graph, once for all its users of that
 * layout. *node is PLN_NONE, before or after, if it cannot be converted without
 * adding or losing elements. */
pln_status pln_layout_convert(pln_layout_conversions *conversions,
                              pln_rewrite *rw, pln_tensor_layout from,
                              pln_tensor_layout to, pln_ref *node) PLN_CHECKED;
/* The shape of a type; rank -1 if it is no tensor's. */
void pln_layout_shape(const pln_engine *engine, pln_type type, pln_shape *out);

#endif
