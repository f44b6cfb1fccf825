/* pieces.h: parts of a tensor along one axis; for take_pieces.c and
 * join_calls.c. */

#ifndef PLN_TRANSFORM_SIMPLIFY_PIECES_H
#define PLN_TRANSFORM_SIMPLIFY_PIECES_H

#include "transform/simplify/rule.h"

/* Limit on the positions of a take that is made. */
enum { PLN_MAX_POSITIONS = 4096 };

/* The positions [begin, end) of one axis of x. */
typedef struct pln_piece {
  pln_ref x;
  int64_t axis, begin, end;
} pln_piece;

/* Returns true if the node is a slice of one axis, or a part of a Split, at
 * known positions below PLN_MAX_POSITIONS. */
bool pln_read_piece(const pln_graph *graph, pln_ref node, pln_piece *out);

/* take(x, positions, axis=axis); in place of the current call if the context
 * has its type. */
pln_status pln_take_positions(pln_rewrite_context *ctx, pln_ref x, int64_t axis,
                              uint32_t n, const int64_t *positions,
                              pln_ref *out) PLN_CHECKED;

#endif
