/* einsum_equation.h: the equation of a sum of products, "ij,jk->ik", read term
 * by term. For inference (einsum.c) and the kernel (kernel/matmul/einsum.c). */

#ifndef PLN_OP_INFER_EINSUM_EQUATION_H
#define PLN_OP_INFER_EINSUM_EQUATION_H

#include "op/infer/infer.h"

/* A letter's label is its character. "..." stands for axes that broadcast: the
 * i-th of them from the last has the label PLN_DOTS + i. */
enum { PLN_DOTS = 128, PLN_LABELS = PLN_DOTS + PLN_MAX_RANK };

typedef struct pln_equation {
  pln_slice left, right;
  bool arrow; /* there is a right side */
} pln_equation;

/* One operand's letters, or the result's. */
typedef struct pln_term {
  uint32_t n;
  unsigned char letters[PLN_MAX_RANK];
  bool dotted;
  uint32_t dots; /* letters in front of "..." */
} pln_term;

void pln_equation_split(pln_slice text, pln_equation *out);
/* Takes the next term off the left side, which has one more term than commas.
 * False past the last; *left then has no data. */
bool pln_equation_next(pln_slice *left, pln_slice *term);
/* False for what is no term; *stray is the character that cannot be there, 0
 * for more letters than a tensor has axes. */
bool pln_term_read(pln_slice text, pln_term *out, char *stray);
/* The labels of `rank` axes, of which `rank - n` are those of "...". False when
 * the rank does not fit. */
bool pln_term_labels(const pln_term *term, uint32_t rank, unsigned char *out);

#endif
