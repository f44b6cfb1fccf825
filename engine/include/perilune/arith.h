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
