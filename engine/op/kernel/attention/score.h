/* score.h: operations on a row of attention scores: one query's products with
 * all keys, which become weights. */

#ifndef PLN_OP_KERNEL_ATTENTION_SCORE_H
#define PLN_OP_KERNEL_ATTENTION_SCORE_H

#include "op/kernel/kernel.h"

/* Each function works on n scores x of FLOAT32 or FLOAT64. */

void pln_score_scale(pln_dtype dtype, void *x, size_t n, double factor);
/* cap * tanh(x / cap) */
void pln_score_cap(pln_dtype dtype, void *x, size_t n, double cap);
/* Applies a mask: a bool mask sets scores to -inf where it is false, any other
 * mask is added. Returns true if any score is not -inf. */
bool pln_score_mask(pln_dtype dtype, void *x, size_t n, const void *mask,
                    pln_dtype mask_dtype);
/* Sets the scores outside [low, high) to -inf, or to 0. */
void pln_score_mask_outside(pln_dtype dtype, void *x, size_t n, size_t low,
                            size_t high);
void pln_score_clear(pln_dtype dtype, void *x, size_t n, size_t low,
                     size_t high);
/* Softmax in place; all 0 if every score is -inf. */
void pln_score_softmax(pln_dtype dtype, void *x, size_t n);
/* Rounds to another float dtype. */
void pln_score_round(pln_dtype dtype, void *x, size_t n, pln_dtype to);

#endif
