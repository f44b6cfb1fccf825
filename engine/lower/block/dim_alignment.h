/* dim_alignment.h: the alignment of strides that blocks ask for (annotation
 * buffer_dim_align); for tir.CompactBufferAllocation. */

#ifndef PLN_LOWER_BLOCK_DIM_ALIGNMENT_H
#define PLN_LOWER_BLOCK_DIM_ALIGNMENT_H

#include "lower/lower.h"

/* The stride of a dimension is `offset` modulo `factor`. */
typedef struct pln_dim_alignment {
  int64_t axis, factor, offset;
  uint32_t next; /* 1 + another one of the same Buffer, or 0 */
} pln_dim_alignment;

typedef struct pln_dim_alignments {
  const pln_graph *g;
  pln_dim_alignment *rows;
  uint32_t n, cap;
  uint32_t *first; /* by node: 1 + the row of a Buffer, or 0 */
} pln_dim_alignments;

pln_status pln_dim_alignments_find(const pln_graph *g,
                                   pln_dim_alignments *out) PLN_CHECKED;
void pln_dim_alignments_free(pln_dim_alignments *alignments);
/* The alignment of a dimension of a Buffer, or NULL. */
const pln_dim_alignment *
pln_dim_alignment_of(const pln_dim_alignments *alignments, pln_ref buffer,
                     uint32_t axis);

#endif
