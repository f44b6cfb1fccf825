/* blas.h: OpenBLAS, opened at run time at the first large product, never
 * linked. perilune.h declares the choice (pln_blas_set_choice). */

#ifndef PLN_OP_KERNEL_MATMUL_BLAS_H
#define PLN_OP_KERNEL_MATMUL_BLAS_H

#include "op/kernel/matmul/gemm.h"

/* Makes the engine's BLAS state: the choice, and the opened library. */
pln_status pln_blas_new(pln_engine *engine) PLN_CHECKED;
/* The state of a child engine: its parent's choice and library. */
pln_status pln_blas_child(pln_engine *child) PLN_CHECKED;
void pln_blas_free(pln_engine *engine);

/* Returns true if OpenBLAS may take products from these tiles. */
bool pln_blas_wanted(const pln_engine *engine, const pln_tiles *tiles);
/* Returns true if OpenBLAS is open, chosen, and faster for this product than
 * these tiles. */
bool pln_blas_takes(pln_engine *engine, const pln_tiles *tiles,
                    const pln_product *product);
/* Computes such a product, in double precision if `twice`, else in single. A
 * product with a bias is added to c, which holds the bias already. */
void pln_blas_run(pln_engine *engine, bool twice, const pln_product *product);

#endif
