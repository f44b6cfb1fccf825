/* splat.h: operators on tensors whose elements are all equal. */

#ifndef PLN_EVAL_SPLAT_H
#define PLN_EVAL_SPLAT_H

#include "eval/call.h"

/* The greatest rank of results of splats. */
enum { PLN_SPLAT_RANK = 64 };

/* True for data movement of a splat. */
bool pln_splat_is_moved(const pln_node *node, uint32_t count,
                        const pln_tensor *const *args);
/* The moved splat; *out stays unset when the result's shape is not known. */
pln_status pln_splat_move(const pln_graph *graph, const pln_node *node,
                          uint32_t count, const pln_tensor *const *args,
                          pln_tensor **out) PLN_CHECKED;
/* True for an elementwise call on single elements and splats. */
bool pln_splats_are_mapped(const pln_graph *graph, const pln_node *node,
                           uint32_t count, const pln_tensor *const *args);
/* The broadcast shape of the operands, of at most PLN_SPLAT_RANK dims; false
 * when they do not broadcast. */
bool pln_splats_broadcast(uint32_t count, const pln_tensor *const *args,
                          uint32_t *rank, int64_t *dims);
/* The single stored element of a tensor, as a tensor of the same rank. */
pln_status pln_splat_element(const pln_tensor *tensor,
                             pln_tensor **out) PLN_CHECKED;

#endif
