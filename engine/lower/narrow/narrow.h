/* narrow.h: the two steps of tir.NarrowDataType: which dtypes get narrower, and
 * the function in them. */

#ifndef PLN_LOWER_NARROW_NARROW_H
#define PLN_LOWER_NARROW_NARROW_H

#include "lower/lower.h"

/* *types: by node of the function, the narrower type of a Var, IntImm or Cast;
 * 0: it keeps its own. The caller frees g->n_nodes entries. *any: there is one.
 */
pln_status pln_narrow_types(const pln_graph *g, int64_t target_bits,
                            pln_type **types, bool *any) PLN_CHECKED;
/* The same for tir.ForceNarrowIndexToInt32: int32, whatever the values are. An
 * error for immediates that do not fit and for buffers of int64. */
pln_status pln_force_narrow_types(const pln_graph *g, pln_type **types,
                                  bool *any) PLN_CHECKED;

/* Whether a statement's operand is an index or an extent. */
bool pln_is_index_operand(const pln_node *n, uint32_t i);

#endif
