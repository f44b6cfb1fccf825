/* einsum_equation.h: parses the equation of an einsum, "ij,jk->ik". Used by
 * inference (einsum.c) and the kernel (kernel/matmul/einsum.c). */

#ifndef PLN_OP_INFER_EINSUM_EQUATION_H
#define PLN_OP_INFER_EINSUM_EQUATION_H

#include "op/infer/infer.h"

/* The label of a letter is its character. "..." stands for broadcast axes: the
 * i-th of them from the last has the label PLN_DOTS + i. */
enum { PLN_DOTS = 128, PLN_LABELS = PLN_DOTS + PLN_MAX_RANK };

typedef struct pln_equation {
  pln_slice left, right;
  bool arrow; /* the equation has a "->" */
} pln_equation;

/* One operand's letters, or the result's. */
typedef struct pln_einsum_term {
  uint32_t n;
  unsigned char letters[PLN_MAX_RANK];
  bool dotted;
  uint32_t dots; /* number of letters before "..." */
} pln_einsum_term;

void pln_equation_split(pln_slice text, pln_equation *out);
/* Takes the next term off the left side; there is one more term than commas.
 * False after the last; *left then has no data. */
bool pln_equation_next(pln_slice *left, pln_slice *term);
/* Returns false for an invalid term; *stray is the invalid character, or 0 if
 * there are more letters than axes. */
bool pln_term_read(pln_slice text, pln_einsum_term *out, char *stray);
/* Writes the labels of `rank` axes, of which `rank - n` belong to "...". False
 * if the rank does not fit. */
bool pln_term_labels(const pln_einsum_term *term, uint32_t rank,
                     unsigned char *out);

#endif
