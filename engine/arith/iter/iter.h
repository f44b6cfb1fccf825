/* arith/iter/iter.h: shared declarations of iterator maps.
 *
 * Marks and sums are interned: equal ones have one number, and a mark has a
 * greater number than the marks that its source uses. What is being rewritten
 * is a value: a plain term, or a sum of splits in an array of the map that is
 * cleared with each expression. */

#ifndef PLN_ARITH_ITER_ITER_H
#define PLN_ARITH_ITER_ITER_H

#include "arith/arith.h"

/* How the splits of a mark are padded. */
typedef struct pln_iter_padding {
  pln_term factor; /* a multiple of all divisors; PLN_NO_TERM: unused */
  pln_term left;   /* the greatest padding on the left */
  pln_term right;  /* what fills a block on the right, once padded */
  uint32_t padded; /* the mark that stands for it, or PLN_NO_ITER */
  uint32_t origin; /* of a padded mark: what it pads, or PLN_NO_ITER */
} pln_iter_padding;

/* A sum as it was flattened when it was fused, and the mark that it became. */
typedef struct pln_iter_fusion {
  uint32_t mark;   /* of a flattened form: PLN_NO_ITER if it is none */
  pln_term offset; /* what the constraints of its parts add */
  uint32_t flat;   /* of a structured form: its flattened one */
  bool narrowed;   /* of a flattened form: a constraint took values from it */
} pln_iter_fusion;

typedef struct pln_iter_row {
  uint32_t first, n;
  pln_term base;
  uint32_t hash;
} pln_iter_row;

typedef struct pln_iter_splits {
  pln_iter_split *items;
  uint32_t n, cap;
} pln_iter_splits;

/* `iter` is false: the term `base`. */
typedef struct pln_iter_value {
  uint32_t first, n; /* in map->values */
  pln_term base;
  pln_term absorbed; /* of one split, while paddings are collected: what its
                      * mark needs on the left so far; PLN_NO_TERM: nothing */
  bool iter;
} pln_iter_value;

struct pln_iter_map {
  pln_analyzer *a;
  pln_iter_mark *marks;
  pln_iter_padding *paddings; /* by mark */
  uint32_t n_marks, cap_marks, cap_paddings;
  pln_iter_row *sums;
  pln_iter_fusion *fusions; /* by sum */
  uint32_t n_sums, cap_sums, cap_fusions;
  pln_iter_splits splits; /* of the sums */
  uint32_t *table;        /* 2 * number, + 1 for a sum; + 2: 0 is empty */
  uint32_t mask, n_table;
  pln_iter_error *errors;
  uint32_t n_errors, cap_errors;
  uint64_t reported; /* nodes of the terms of the errors */
  /* Rewriting: the value of each term, by stamp. */
  pln_iter_splits values;
  pln_iter_value *value_of;
  uint32_t *value_at;
  uint32_t cap_value_of, cap_value_at, stamp;
  /* Of the present call. */
  pln_iter_level level;
  bool trivial;
  bool collecting; /* paddings are collected, not applied */
  bool padded;     /* there are some */
  bool rotated;    /* a split got another padding than it asks for */
  bool unbounded;  /* what a constraint bounds is used in parts, without it */
  pln_term padding;
  uint32_t n_ranges;
  pln_term_range *ranges;
  uint32_t *input_of;    /* its mark, or PLN_NO_ITER */
  uint32_t *constrained; /* flattened forms */
  uint32_t n_constrained, cap_constrained;
};

/* ------------------------------------------------------------------- pool.c */

bool pln_iter_push(pln_iter_map *m, pln_iter_splits *list, pln_iter_split s);
uint32_t pln_iter_mark_of(pln_iter_map *m, pln_term source, uint32_t sum,
                          pln_term extent);
/* The splits are not those of the map. */
uint32_t pln_iter_sum_of(pln_iter_map *m, uint32_t n,
                         const pln_iter_split *splits, pln_term base);
static inline pln_iter_split pln_iter_whole(pln_iter_map *m, uint32_t mark,
                                            pln_term scale) {
  pln_term extent = mark == PLN_NO_ITER ? PLN_NO_TERM : m->marks[mark].extent;
  return (pln_iter_split){mark, pln_const_like(m->a, extent, 1), extent, scale};
}
void pln_iter_report(pln_iter_map *m, pln_iter_error error);
/* The terms of splits and sums. */
pln_term pln_iter_split_term(pln_iter_map *m, const pln_iter_split *s);
pln_term pln_iter_sum_term(pln_iter_map *m, uint32_t sum);
pln_term pln_iter_mark_term(pln_iter_map *m, uint32_t mark);

/* x = y and x is a multiple of y, as far as the analyzer proves it. */
bool pln_iter_equal(pln_iter_map *m, pln_term x, pln_term y);
bool pln_iter_divisible(pln_iter_map *m, pln_term x, pln_term y);
/* x * y with the constants of both as one factor on the right. */
pln_term pln_iter_product(pln_iter_map *m, pln_term x, pln_term y);
/* The number of factors of a product that are no constants, and the constant
 * one. */
uint32_t pln_iter_factors(pln_iter_map *m, pln_term t, int64_t *constant);

/* ------------------------------------------------------------------- fuse.c */

/* Combines splits of one mark that follow each other. False: nothing to do. */
bool pln_iter_combine(pln_iter_map *m, pln_iter_value *v);
/* v = mark * scale + base; `early`: a single split may stay as it is. */
bool pln_iter_fuse(pln_iter_map *m, pln_iter_value *v, bool early);

/* ---------------------------------------------------------- divide_split.c */

/* (value + base) // divisor and % divisor, where v is one split. */
bool pln_iter_floordiv(pln_iter_map *m, pln_iter_value *v, pln_term divisor);
bool pln_iter_floormod(pln_iter_map *m, pln_iter_value *v, pln_term divisor);

/* ---------------------------------------------------------------- rewrite.c */

/* Begins a call: the variables and their ranges. */
pln_status pln_iter_begin(pln_iter_map *m, uint32_t n_ranges,
                          const pln_term_range *ranges, pln_iter_level level,
                          bool trivial) PLN_CHECKED;
/* Makes marks of the variables, whose ranges are final. */
void pln_iter_make_inputs(pln_iter_map *m);
/* True if the term uses one of the variables. */
bool pln_iter_uses_input(pln_iter_map *m, pln_term t);
/* The range of a variable; NULL: it is no iterator. */
pln_term_range *pln_iter_range(pln_iter_map *m, pln_term var);
pln_iter_value pln_iter_rewrite(pln_iter_map *m, pln_term t);

/* -------------------------------------------------------------- constrain.c */

/* Reads a predicate and applies its bounds; false if it is none. */
bool pln_iter_constrain(pln_iter_map *m, pln_term predicate);

/* ------------------------------------------------------------------ check.c */

/* True if the splits that the sums use cover their marks and do not overlap,
 * as the level demands. */
bool pln_iter_check(pln_iter_map *m, uint32_t n, const uint32_t *sums);
/* The splits that the sums use, directly and through the sources of their
 * marks, by mark. */
typedef struct pln_iter_use {
  uint32_t *marks, *first, *splits; /* first: by mark, n_marks + 1 of them */
  uint32_t n_marks, n_splits;       /* used marks */
  uint32_t cap;                     /* of marks */
} pln_iter_use;
bool pln_iter_collect(pln_iter_map *m, uint32_t n, const uint32_t *sums,
                      pln_iter_use *out);
void pln_iter_use_free(pln_iter_map *m, pln_iter_use *use);

#endif
