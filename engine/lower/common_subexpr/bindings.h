/* bindings.h: the variables that tir.CommonSubexprElimTIR knows the values of,
 * and expressions in terms of them. */

#ifndef PLN_LOWER_COMMON_SUBEXPR_BINDINGS_H
#define PLN_LOWER_COMMON_SUBEXPR_BINDINGS_H

#include "lower/common_subexpr/computation.h"

/* A variable and what it stands for. */
typedef struct pln_cse_binding {
  pln_term var, value; /* value: in its present form */
  pln_ref ref;         /* the variable, of the builder; PLN_NONE: not ours */
  uint32_t earlier;    /* 1 + the row below of the same value; 0: none */
} pln_cse_binding;

/* A stack of bindings. While only expressions of one innermost variable count
 * (kinds->only), what is bound contains that variable. */
typedef struct pln_cse_bindings {
  pln_analyzer *a;
  pln_computation_kinds *kinds;
  pln_cse_binding *rows;
  uint32_t n, cap;
  uint32_t *latest; /* by term: 1 + the last row whose value it is; 0: none */
  uint32_t cap_latest;
  uint32_t *row_of; /* by variable: 1 + its row, if the row has the variable */
  uint32_t cap_row_of;
  pln_term *image; /* by term: its present form, if it is marked */
  uint32_t cap_image;
  pln_term_marks known;
  pln_term_list
      new_marks; /* what was marked since, and contains that variable */
} pln_cse_bindings;

/* Forgets the present forms. While only expressions of one variable count, the
 * forms of others stay: they do not contain what is bound. */
void pln_cse_forget(pln_cse_bindings *b);

/* *out: the expression, with variables in the place of the values that they
 * stand for. */
pln_status pln_cse_present(pln_cse_bindings *b, pln_term t,
                           pln_term *out) PLN_CHECKED;
/* Adds a variable; ref: PLN_NONE if the program has it: then the present forms
 * are not forgotten. */
pln_status pln_cse_push(pln_cse_bindings *b, pln_term var, pln_term value,
                        pln_ref ref) PLN_CHECKED;
/* The same, but the row goes among those from `first`, which are in order from
 * the innermost: inside of those of the builder whose variables it uses. What
 * contains the value is further in, as it uses these variables, too. */
pln_status pln_cse_place(pln_cse_bindings *b, uint32_t first, pln_term var,
                         pln_term value, pln_ref ref) PLN_CHECKED;
/* Values of the rows from `first` in terms of the rows behind them, which are
 * further out. A value does not contain what is bound further in. */
pln_status pln_cse_update(pln_cse_bindings *b, uint32_t first) PLN_CHECKED;
/* Removes all rows but the first n. */
void pln_cse_pop(pln_cse_bindings *b, uint32_t n);
void pln_cse_free(pln_cse_bindings *b);

#endif
