/* score.h: a row of attention: the scores of one query by all keys, on their
 * way from products to weights. */

#ifndef PLN_OP_KERNEL_ATTENTION_SCORE_H
#define PLN_OP_KERNEL_ATTENTION_SCORE_H

#include "op/kernel/kernel.h"

/* All are about n scores x of FLOAT32 or FLOAT64. */

void pln_score_scale(pln_dtype dtype, void *x, size_t n, double factor);
/* cap * tanh(x / cap) */
void pln_score_cap(pln_dtype dtype, void *x, size_t n, double cap);
/* A mask of bool closes what is false, one of the dtype of x is added. Gives
 * whether any score stays open: what a mask makes -inf is closed. */
bool pln_score_mask(pln_dtype dtype, void *x, size_t n, const void *mask,
                    pln_dtype mask_dtype);
/* Those outside of [low, high) become -inf, or 0. */
void pln_score_mask_outside(pln_dtype dtype, void *x, size_t n, size_t low,
                            size_t high);
void pln_score_clear(pln_dtype dtype, void *x, size_t n, size_t low,
                     size_t high);
/* x becomes exp(x) by the sum of all; all 0 when every one is -inf. */
void pln_score_softmax(pln_dtype dtype, void *x, size_t n);
/* Rounded to what another dtype of floats holds. */
void pln_score_round(pln_dtype dtype, void *x, size_t n, pln_dtype to);

#endif
