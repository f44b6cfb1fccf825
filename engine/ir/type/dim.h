/* type/dim.h: the representation of symbolic dims; for type/dim.c,
 * type/dim_sum.c and the printer.
 *
 * A dim that is not a constant is an atom or a sum. An atom is a named symbol,
 * or a division, remainder, minimum or maximum of two dims that could not be
 * simplified. A sum is a constant plus terms; a term is an integer times a
 * product of atoms. Terms are sorted by descending degree, then by their atoms
 * (names bytewise, then calls). A sum of one bare atom is that atom. Hence
 * equal sums are equal records. */

#ifndef PLN_IR_TYPE_DIM_H
#define PLN_IR_TYPE_DIM_H

#include "ir/intern_tables.h"

/* An expression beyond these limits becomes unknown. They bound every loop, and
 * the recursion over nested calls. */
enum {
  PLN_DIM_MAX_TERMS = 64,
  PLN_DIM_MAX_DEGREE = 7,
  PLN_DIM_MAX_DEPTH = 16,
  PLN_DIM_MAX_WEIGHT = 256
};

typedef enum pln_dim_kind {
  PLN_DIM_SYMBOL,
  PLN_DIM_CALL,
  PLN_DIM_SUM
} pln_dim_kind;

/* Proven bounds of a dim. INT64_MIN and INT64_MAX: unbounded. */
typedef struct pln_dim_range {
  int64_t low, high;
} pln_dim_range;

typedef struct pln_dim_term {
  int64_t coef;                         /* not 0 */
  uint32_t degree;                      /* 1 .. PLN_DIM_MAX_DEGREE */
  uint32_t factors[PLN_DIM_MAX_DEGREE]; /* sorted atoms, padded with 0 */
} pln_dim_term;

/* An interned expression; a sum is followed by its terms. */
typedef struct pln_dim_row {
  uint8_t kind; /* pln_dim_kind */
  uint8_t op;   /* CALL: pln_dim_op */
  uint8_t n_terms;
  uint8_t depth; /* nesting depth of calls */
  uint32_t weight;
  uint64_t symbol; /* SYMBOL */
  pln_dim_range range;
  int64_t a, b; /* CALL: its operands; SUM: a is the constant */
} pln_dim_row;

static inline const pln_dim_row *pln_dim_row_of(const pln_engine *engine,
                                                uint32_t id) {
  return pln_interned(engine->dims->exprs, id, NULL);
}
static inline uint32_t pln_dim_id(pln_dim dim) {
  return (uint32_t)(dim - INT64_MIN);
}
static inline pln_dim pln_dim_of_id(uint32_t id) {
  return INT64_MIN + (int64_t)id;
}

/* A sum being computed. Initially all zero; once set, `unknown` stays set. */
typedef struct pln_sum {
  int64_t constant;
  uint32_t n;
  bool unknown;
  pln_dim_term terms[PLN_DIM_MAX_TERMS];
} pln_sum;

/* type/dim_sum.c. The first two initialise a pln_sum. */
void pln_sum_zero(pln_sum *sum);
void pln_sum_load(const pln_engine *engine, pln_dim dim, pln_sum *out);
/* sum += factor * dim; sum += factor * other */
void pln_sum_add(const pln_engine *engine, pln_sum *sum, int64_t factor,
                 pln_dim dim);
void pln_sum_add_sum(const pln_engine *engine, pln_sum *sum, int64_t factor,
                     const pln_sum *other);
void pln_sum_multiply(const pln_engine *engine, const pln_sum *a,
                      const pln_sum *b, pln_sum *out);
/* a = b * out; false when there is no such sum. */
bool pln_sum_divide_exactly(const pln_engine *engine, const pln_sum *a,
                            const pln_sum *b, pln_sum *out);
/* a = k * quotient + rest, coefficients and constant of rest in [0, k);
 * k > 0. */
void pln_sum_split(const pln_sum *a, int64_t k, pln_sum *quotient,
                   pln_sum *rest);
/* The greatest common divisor of `start` and all coefficients. */
int64_t pln_sum_content(const pln_sum *sum, int64_t start);
/* Divides coefficients and constant by g > 0, towards minus infinity. */
void pln_sum_reduce(pln_sum *sum, int64_t g);
pln_dim_range pln_sum_range(const pln_engine *engine, const pln_sum *sum);
/* The sum as a dim, interned. */
pln_status pln_sum_intern(pln_engine *engine, const pln_sum *sum,
                          pln_dim *out) PLN_CHECKED;
/* A total order that does not depend on the order in which dims were created.
 * Neither dim may be unknown. */
int pln_dim_compare(const pln_engine *engine, pln_dim a, pln_dim b);
pln_dim_range pln_dim_range_of(const pln_engine *engine, pln_dim dim);
/* The symbols of a dim, each once; their number. */
uint32_t pln_dim_symbols(const pln_engine *engine, pln_dim dim,
                         pln_symbol symbols[PLN_DIM_MAX_WEIGHT]);

/* Rounded towards minus infinity; b is neither 0 nor -1 with a = INT64_MIN. */
static inline int64_t pln_floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* Of |a| and |b|; neither is INT64_MIN. */
static inline int64_t pln_gcd(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

#endif
