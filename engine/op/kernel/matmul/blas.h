/* blas.h: OpenBLAS, when the machine has it: opened at run time, at the first
 * product that is large enough, and never linked. perilune.h declares how it is
 * chosen (pln_blas_set_choice). */

#ifndef PLN_OP_KERNEL_MATMUL_BLAS_H
#define PLN_OP_KERNEL_MATMUL_BLAS_H

#include "op/kernel/matmul/gemm.h"

/* The engine's part: what was chosen and what was opened. */
pln_status pln_blas_new(pln_engine *engine) PLN_CHECKED;
/* A child's: what its parent chose, and opened. */
pln_status pln_blas_child(pln_engine *child) PLN_CHECKED;
void pln_blas_free(pln_engine *engine);

/* OpenBLAS is there, is chosen, and worth calling for such a product, which
 * would else be made of these tiles. */
bool pln_blas_takes(pln_engine *engine, const pln_tiles *tiles,
                    const pln_product *product);
/* Computes a product that it takes; one with a bias adds it up to c, which
 * holds the bias already. Of double precision, or of single. */
void pln_blas_run(pln_engine *engine, bool twice, const pln_product *product);

#endif
