/* index_map.h: maps of indices, TVM's IndexMap, as
 * T.index_map(lambda i: (i // 4, i % 4)) is parsed: a sealed graph of an Array
 * of the number of variables, the variables and the indices. */

#ifndef PLN_ARITH_ITER_INDEX_MAP_H
#define PLN_ARITH_ITER_INDEX_MAP_H

#include "arith/arith.h"

/* A map has fewer variables, and fewer indices; a buffer that is flattened
 * fewer dimensions. */
enum { PLN_MOST_AXES = 64 };

/* Parses a map; text that is none is an error. The caller releases it. */
pln_status pln_index_map_parse(pln_engine *engine, pln_slice text,
                               pln_graph **out) PLN_CHECKED;
/* The indices that `n` indices are mapped to, simplified in what the analyzer
 * knows; room for PLN_MOST_AXES. */
pln_status pln_index_map_apply(const pln_graph *map, pln_analyzer *a,
                               uint32_t n, const pln_term *indices,
                               pln_term *out, uint32_t *n_out) PLN_CHECKED;
/* The extents that hold every index a shape of these extents is mapped to. */
pln_status pln_index_map_shape(const pln_graph *map, pln_analyzer *a,
                               uint32_t n, const pln_term *extents,
                               pln_term *out, uint32_t *n_out) PLN_CHECKED;

#endif
