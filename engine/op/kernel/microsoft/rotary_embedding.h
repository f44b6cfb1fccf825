/* rotary_embedding.h: positions for rotations. */

#ifndef PLN_OP_KERNEL_MICROSOFT_ROTARY_EMBEDDING_H
#define PLN_OP_KERNEL_MICROSOFT_ROTARY_EMBEDDING_H

#include "op/kernel/composed.h"

/* Consecutive positions of each batch b, from first[b * stride] on, as (batch,
 * steps). */
const pln_tensor *pln_compose_positions(pln_composition *s, int64_t batch,
                                        int64_t steps, const int64_t *first,
                                        int64_t stride);

#endif
