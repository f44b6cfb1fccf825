/* perilune/arith.h: the analyzer of integer expressions of TIR.
 *
 * An analyzer belongs to one walk over a program. It keeps what is known of
 * variables and conditions, and proves and simplifies expressions with it.
 * Expressions are imported from a graph as terms, and terms are exported to a
 * builder. Definitions: TVM 0.14's src/arith. Divisors are assumed not to be
 * zero and index arithmetic not to overflow, as there. */

#ifndef PERILUNE_ARITH_H
#define PERILUNE_ARITH_H

#include "perilune/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pln_analyzer pln_analyzer;

/* An expression of an analyzer: equal expressions are equal numbers. Valid as
 * long as the analyzer lives; never 0. */
typedef uint32_t pln_term;

/* An analyzer without facts. The caller frees it, before the engine. */
PLN_API pln_status pln_analyzer_new(pln_engine *engine,
                                    pln_analyzer **out) PLN_CHECKED;
PLN_API void pln_analyzer_free(pln_analyzer *analyzer);

/* The term of a PrimExpr. PLN_ERR_TYPE: the node is none. */
PLN_API pln_status pln_analyzer_import(pln_analyzer *analyzer,
                                       const pln_graph *graph, pln_ref ref,
                                       pln_term *out) PLN_CHECKED;
PLN_API pln_status pln_analyzer_import_built(pln_analyzer *analyzer,
                                             const pln_builder *builder,
                                             pln_ref ref,
                                             pln_term *out) PLN_CHECKED;
/* Appends the expression to a builder. */
PLN_API pln_status pln_analyzer_export(pln_analyzer *analyzer,
                                       pln_builder *builder, pln_term term,
                                       pln_ref *out) PLN_CHECKED;

/* ----------------------------------------------------------------- context */

/* A variable is one of the integers [min, min + extent), or equal to a value.
 * PLN_ERR_ARGUMENT: it is bound to something else already, unless `override`.
 */
PLN_API pln_status pln_analyzer_bind_range(pln_analyzer *analyzer, pln_term var,
                                           pln_term min, pln_term extent,
                                           bool override) PLN_CHECKED;
PLN_API pln_status pln_analyzer_bind(pln_analyzer *analyzer, pln_term var,
                                     pln_term value, bool override) PLN_CHECKED;
/* min <= var <= max; INT64_MAX and -INT64_MAX stand for the infinities. */
PLN_API pln_status pln_analyzer_update_bound(pln_analyzer *analyzer,
                                             pln_term var, int64_t min,
                                             int64_t max,
                                             bool override) PLN_CHECKED;
/* var = coeff * k + base for some integer k. */
PLN_API pln_status pln_analyzer_update_modular(pln_analyzer *analyzer,
                                               pln_term var, int64_t coeff,
                                               int64_t base,
                                               bool override) PLN_CHECKED;
/* From here on the condition holds, until pln_analyzer_leave with the *mark
 * that this gives. Scopes are left in the reverse order. */
PLN_API pln_status pln_analyzer_enter(pln_analyzer *analyzer,
                                      pln_term condition,
                                      uint32_t *mark) PLN_CHECKED;
PLN_API void pln_analyzer_leave(pln_analyzer *analyzer, uint32_t mark);

/* Optional parts of simplification, a mask. */
enum {
  PLN_ARITH_TRANSITIVE = 1,  /* combine known inequalities */
  PLN_ARITH_AND_OF_ORS = 2,  /* conjunctive normal form of conditions */
  PLN_ARITH_IN_BRANCHES = 4, /* each side of And and Or under the other */
  PLN_ARITH_EXTENSIONS = 7
};
PLN_API void pln_analyzer_set_extensions(pln_analyzer *analyzer, uint32_t mask);

/* ---------------------------------------------------------------- analyses */

/* All values lie in [*min, *max]; INT64_MAX and -INT64_MAX: not bounded. */
PLN_API pln_status pln_analyzer_const_int_bound(pln_analyzer *analyzer,
                                                pln_term term, int64_t *min,
                                                int64_t *max) PLN_CHECKED;
/* All values are coeff * k + base; coeff 0: the value is base. */
PLN_API pln_status pln_analyzer_modular_set(pln_analyzer *analyzer,
                                            pln_term term, int64_t *coeff,
                                            int64_t *base) PLN_CHECKED;
/* Applies the rules of arith/rules.def, operands first. */
PLN_API pln_status pln_analyzer_rewrite_simplify(pln_analyzer *analyzer,
                                                 pln_term term,
                                                 pln_term *out) PLN_CHECKED;
/* The normal form: a sum of (x % upper // lower) * scale. */
PLN_API pln_status pln_analyzer_canonical_simplify(pln_analyzer *analyzer,
                                                   pln_term term,
                                                   pln_term *out) PLN_CHECKED;
/* The normal form, then rules and normal form in turns, `steps` times (TVM:
 * 2); ends early with a constant. */
PLN_API pln_status pln_analyzer_simplify(pln_analyzer *analyzer, pln_term term,
                                         uint32_t steps,
                                         pln_term *out) PLN_CHECKED;
/* *proved: the condition holds for all values; false says nothing. Strength 1
 * also tries symbolic bounds. */
PLN_API pln_status pln_analyzer_can_prove(pln_analyzer *analyzer,
                                          pln_term condition, uint32_t strength,
                                          bool *proved) PLN_CHECKED;
PLN_API pln_status pln_analyzer_can_prove_equal(pln_analyzer *analyzer,
                                                pln_term x, pln_term y,
                                                bool *proved) PLN_CHECKED;

/* -------------------------------------------------------------------- sets
 *
 * A set is given by its ends, [min, max]. No end: one of these. The empty set
 * is [POS_INF, NEG_INF]. */
#define PLN_TERM_POS_INF UINT32_MAX
#define PLN_TERM_NEG_INF (UINT32_MAX - 1)

/* A variable that runs over a set. */
typedef struct pln_term_domain {
  pln_term var, min, max;
} pln_term_domain;

/* The values of an expression, when the variables run over their domains; other
 * variables stand for themselves. With `bound`, those that are bound to a range
 * run over it. */
PLN_API pln_status pln_analyzer_int_set(pln_analyzer *analyzer, pln_term term,
                                        uint32_t n,
                                        const pln_term_domain *domains,
                                        bool bound, pln_term *min,
                                        pln_term *max) PLN_CHECKED;
/* The values of `var` for which the condition holds. `hints` give the signs of
 * factors; the condition holds for all values of the `relaxed` variables. The
 * empty set: it is not known. */
PLN_API pln_status pln_analyzer_deduce_bound(
    pln_analyzer *analyzer, pln_term var, pln_term condition, uint32_t n_hints,
    const pln_term_domain *hints, uint32_t n_relaxed,
    const pln_term_domain *relaxed, pln_term *min, pln_term *max) PLN_CHECKED;
/* out[0 .. n) and out[n]: term = sum of out[i] * vars[i], and out[n]. False in
 * *linear: there are none. */
PLN_API pln_status pln_analyzer_linear_equation(pln_analyzer *analyzer,
                                                pln_term term, uint32_t n,
                                                const pln_term *vars,
                                                pln_term *out,
                                                bool *linear) PLN_CHECKED;
/* out[2 * i] <= vars[i] <= out[2 * i + 1] follows from the condition; 0: no
 * limit is known. */
PLN_API pln_status pln_analyzer_clip_bound(pln_analyzer *analyzer,
                                           pln_term condition, uint32_t n,
                                           const pln_term *vars, pln_term *out,
                                           bool *found) PLN_CHECKED;
/* A condition without the variables, which implies the given one for all their
 * values. */
PLN_API pln_status pln_analyzer_narrow_predicate(pln_analyzer *analyzer,
                                                 pln_term condition, uint32_t n,
                                                 const pln_term_domain *domains,
                                                 pln_term *out) PLN_CHECKED;

/* -------------------------------------------------------- linear equations */

/* The solutions of a system of equations: old_vars[i] = solution[i], in new
 * variables, new_vars[j] = to_old[j], each of them in [min[j], max[j]] (or no
 * end), where all relations hold. */
typedef struct pln_linear_solution {
  uint32_t n_vars, n_new, n_relations, cap_relations;
  pln_term *solution;                      /* n_vars */
  pln_term *new_vars, *to_old, *min, *max; /* n_new of n_vars */
  pln_term *relations;
  bool solvable; /* false: there is no solution, and nothing else is set */
} pln_linear_solution;

/* Solves those relations that are linear equations in the variables with
 * integer coefficients (Smith normal form); the others become relations of the
 * solution. `domains` are the ranges of variables. PLN_ERR_LIMIT: a coefficient
 * does not fit in 64 bits. */
PLN_API pln_status pln_analyzer_solve_linear_equations(
    pln_analyzer *analyzer, uint32_t n_relations, const pln_term *relations,
    uint32_t n_vars, const pln_term *vars, uint32_t n_domains,
    const pln_term_domain *domains, pln_linear_solution *out) PLN_CHECKED;
PLN_API void pln_linear_solution_free(pln_analyzer *analyzer,
                                      pln_linear_solution *solution);

/* ------------------------------------------------------------ iterator maps
 *
 * An IterMark is an iterator of its own: a variable or another expression, or a
 * sum of splits, whose values are all of [0, extent). A split is
 * (mark // lower_factor) % extent * scale, and a sum is the sum of its splits
 * and of a base. Marks and sums live in a map, and are numbers there; equal
 * ones are one. */

typedef struct pln_iter_map pln_iter_map;
#define PLN_NO_ITER UINT32_MAX

typedef struct pln_iter_mark {
  pln_term source; /* 0: the source is a sum */
  uint32_t sum;    /* else PLN_NO_ITER */
  pln_term extent;
} pln_iter_mark;

typedef struct pln_iter_split {
  uint32_t mark;
  pln_term lower_factor, extent, scale;
} pln_iter_split;

typedef struct pln_iter_sum {
  const pln_iter_split *splits; /* valid until the map gets another sum */
  uint32_t n;
  pln_term base;
} pln_iter_sum;

/* var is one of the integers [min, min + extent). */
typedef struct pln_term_range {
  pln_term var, min, extent;
} pln_term_range;

/* What is demanded of a map from iterators to indices. */
typedef enum pln_iter_level {
  PLN_ITER_SURJECTIVE,
  PLN_ITER_BIJECTIVE,
  PLN_ITER_NO_CHECK
} pln_iter_level;

/* Why no map was found, as TVM says it: the text is before, x, middle, y and
 * after, where an expression may be 0 and a text NULL. */
typedef struct pln_iter_error {
  const char *before;
  pln_term x;
  const char *middle;
  pln_term y;
  const char *after;
} pln_iter_error;

/* An empty map. The caller frees it, before the analyzer. */
PLN_API pln_status pln_iter_map_new(pln_analyzer *analyzer,
                                    pln_iter_map **out) PLN_CHECKED;
PLN_API void pln_iter_map_free(pln_iter_map *map);

/* A mark of a term, or of a sum if `source` is 0. */
PLN_API pln_status pln_iter_map_mark(pln_iter_map *map, pln_term source,
                                     uint32_t sum, pln_term extent,
                                     uint32_t *out) PLN_CHECKED;
PLN_API pln_status pln_iter_map_sum(pln_iter_map *map, uint32_t n,
                                    const pln_iter_split *splits, pln_term base,
                                    uint32_t *out) PLN_CHECKED;
PLN_API pln_iter_mark pln_iter_map_mark_at(const pln_iter_map *map,
                                           uint32_t mark);
PLN_API pln_iter_sum pln_iter_map_sum_at(const pln_iter_map *map, uint32_t sum);
PLN_API uint32_t pln_iter_map_error_count(const pln_iter_map *map);
PLN_API pln_iter_error pln_iter_map_error_at(const pln_iter_map *map,
                                             uint32_t i);

/* Writes indices as sums of at most one split each, of iterators that are
 * independent of each other. `predicate` bounds sums of iterators, or is 0;
 * `trivial`: an iterator of extent 1 becomes its value. *found is false, and
 * errors say why, if there is no such form. */
PLN_API pln_status pln_iter_map_detect(
    pln_iter_map *map, uint32_t n, const pln_term *indices, uint32_t n_ranges,
    const pln_term_range *ranges, pln_term predicate, pln_iter_level level,
    bool trivial, uint32_t *sums, bool *found) PLN_CHECKED;
/* What the last detection padded: true for padding of an iterator, false for
 * its own values. */
PLN_API pln_term pln_iter_map_padding(const pln_iter_map *map);
/* An expression as a sum of splits, the largest scale first, without checks. */
PLN_API pln_status pln_iter_map_normalize(pln_iter_map *map, pln_term expr,
                                          uint32_t n_ranges,
                                          const pln_term_range *ranges,
                                          uint32_t *sum) PLN_CHECKED;
/* The expression that a sum stands for. */
PLN_API pln_status pln_iter_map_expr(pln_iter_map *map, uint32_t sum,
                                     pln_term *out) PLN_CHECKED;
/* The indices as the detected form has them; unchanged if there is none. */
PLN_API pln_status pln_iter_map_simplify(
    pln_iter_map *map, uint32_t n, const pln_term *indices, uint32_t n_ranges,
    const pln_term_range *ranges, pln_term predicate, pln_iter_level level,
    bool trivial, pln_term *out) PLN_CHECKED;
/* Divides detected indices into outer and inner iterators, where the variables
 * of `inner` make the inner ones: index i is
 * marks[2 * i] * extent(marks[2 * i + 1]) + marks[2 * i + 1]. The extents of
 * marks[2 * n] and marks[2 * n + 1] are conditions of outer and inner
 * iterators. False in *found: they cannot be divided. */
PLN_API pln_status pln_iter_map_divide(pln_iter_map *map, uint32_t n,
                                       const uint32_t *sums, uint32_t n_inner,
                                       const pln_term *inner, uint32_t *marks,
                                       bool *found) PLN_CHECKED;
/* The variables as functions of the values of n sums; *n_vars of them, of at
 * most `cap`. PLN_ERR_ARGUMENT: a sum is no fusion of its splits. */
PLN_API pln_status pln_iter_map_inverse(pln_iter_map *map, uint32_t n,
                                        const uint32_t *sums,
                                        const pln_term *outputs, uint32_t cap,
                                        pln_term *vars, pln_term *values,
                                        uint32_t *n_vars) PLN_CHECKED;

/* ----------------------------------------------------- linear inequalities */

/* coef * var >= each lower bound, = each equal one, <= each upper one. The
 * bounds are terms[first ..], lower ones before equal ones before upper ones.
 */
typedef struct pln_group_bounds {
  pln_term var, coef;
  uint32_t first, n_lower, n_equal, n_upper;
} pln_group_bounds;

typedef struct pln_linear_bounds {
  uint32_t n_vars, n_groups, n_terms, cap_terms, n_relations, cap_relations;
  pln_group_bounds *groups; /* one for each variable, in order */
  pln_term *terms;
  pln_term *relations; /* what the bounds do not say */
} pln_linear_bounds;

/* Solves inequalities and equations, which a variable with an integer
 * coefficient has, by Fourier-Motzkin elimination: the bounds of a variable are
 * terms of the later ones. PLN_ERR_LIMIT: there are too many combinations. */
PLN_API pln_status pln_analyzer_solve_linear_inequalities(
    pln_analyzer *analyzer, uint32_t n_relations, const pln_term *relations,
    uint32_t n_vars, const pln_term *vars, uint32_t n_ranges,
    const pln_term_range *ranges, pln_linear_bounds *out) PLN_CHECKED;
PLN_API void pln_linear_bounds_free(pln_analyzer *analyzer,
                                    pln_linear_bounds *bounds);

/* Ranges of variables, where all relations hold. */
typedef struct pln_linear_ranges {
  uint32_t n_vars, n_new, n_ranges, n_relations, cap_relations;
  pln_term *to_new;            /* n_vars: the variables by the new ones */
  pln_term *new_vars, *to_old; /* n_new of n_vars: the new ones by the others */
  pln_term_range *ranges;      /* n_ranges of n_vars */
  pln_term *relations;
  bool solvable; /* false: there is no solution, and nothing else is set */
} pln_linear_ranges;

/* The same as ranges of the variables. With `deskew` the ranges begin with 0,
 * in new variables; without, the new variables are the old ones. */
PLN_API pln_status pln_analyzer_solve_inequalities_to_range(
    pln_analyzer *analyzer, uint32_t n_relations, const pln_term *relations,
    uint32_t n_vars, const pln_term *vars, uint32_t n_ranges,
    const pln_term_range *ranges, bool deskew,
    pln_linear_ranges *out) PLN_CHECKED;
PLN_API void pln_linear_ranges_free(pln_analyzer *analyzer,
                                    pln_linear_ranges *ranges);

/* ------------------------------------------------------------------ regions */

/* How a region is estimated: exactly, or, where that fails, not at all (lower)
 * or by intervals that contain it (upper). */
typedef enum pln_region_bound {
  PLN_REGION_STRICT,
  PLN_REGION_LOWER,
  PLN_REGION_UPPER
} pln_region_bound;

/* [out[2 * i], out[2 * i + 1]]: the values of dimension i of a region, whose
 * extents are constants, when the variables run over their ranges and the
 * predicate (or 0) holds. False in *found: not known. */
PLN_API pln_status pln_analyzer_estimate_region(
    pln_analyzer *analyzer, uint32_t n, const pln_term_range *region,
    uint32_t n_ranges, const pln_term_range *ranges, pln_term predicate,
    pln_region_bound bound, pln_term *out, bool *found) PLN_CHECKED;

/* What n sets have in common, an interval that contains them all, or one that
 * they surely cover. */
typedef enum pln_set_operation {
  PLN_SET_INTERSECT,
  PLN_SET_UNION,
  PLN_SET_UNION_LOWER
} pln_set_operation;
PLN_API pln_status pln_analyzer_combine_sets(pln_analyzer *analyzer,
                                             pln_set_operation operation,
                                             uint32_t n, const pln_term *ends,
                                             pln_term *min,
                                             pln_term *max) PLN_CHECKED;

/* Subexpressions that occur `threshold` times or more, outermost ones first,
 * with their counts: at most `cap` of them; *n is how many there are. */
PLN_API pln_status pln_analyzer_common_subexprs(
    pln_analyzer *analyzer, pln_term term, uint32_t threshold, uint32_t cap,
    pln_term *out, uint32_t *counts, uint32_t *n) PLN_CHECKED;

/* ----------------------------------------------------------------- the rules
 */

typedef struct pln_arith_rule {
  const char *lhs, *rhs, *guard; /* in Lua's syntax; "" for no guard */
  const char *order;             /* what decreases: see arith/rules.def */
} pln_arith_rule;
/* The rules of rewrite_simplify, in order. NULL behind the last. */
PLN_API const pln_arith_rule *pln_arith_rule_at(uint32_t i);

#ifdef __cplusplus
}
#endif

#endif
