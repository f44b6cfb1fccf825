/* hoist_plan.h: which conditions and variables of loop bodies are computed
 * outside of which loop; for hoist_expression.c. */

#ifndef PLN_LOWER_LOOP_HOIST_PLAN_H
#define PLN_LOWER_LOOP_HOIST_PLAN_H

#include "lower/lower.h"

/* TVM's numbers of what is hoisted: HoistedConditionals, HoistedLetBindings. */
enum {
  PLN_HOIST_IF_STMT = 1,
  PLN_HOIST_IF_EXPR = 2,
  PLN_HOIST_BOOLEAN = 4,
  PLN_HOIST_USING_BLOCK_VAR = 8,
  PLN_HOIST_LET_REQUIRED = 1,
  PLN_HOIST_LET_STMT = 2,
  PLN_HOIST_LET_EXPR = 4
};

typedef struct pln_hoisted {
  pln_ref expr;       /* the condition, or the variable's value */
  pln_ref var;        /* of a let; else PLN_NONE */
  uint32_t next;      /* the next one of the same loop, outermost last */
  bool has_else;      /* the loop does something where it does not hold */
  bool is_only_found; /* a let that no setting asks for */
} pln_hoisted;

/* Entries are numbered from 1; 0 ends a list. */
typedef struct pln_hoist_plan {
  const pln_graph *g;
  int64_t conditionals, lets;
  pln_hoisted *entries;
  uint32_t n, cap;
  uint32_t *first_condition, *first_let; /* by loop: the last one found */
  uint32_t *let_of;                      /* by variable: its entry */
  uint32_t n_used;                       /* entries that change something */
} pln_hoist_plan;

/* Fills a plan with `g` and the settings; pln_hoist_plan_free, on failure too.
 */
pln_status pln_hoist_plan_make(pln_hoist_plan *plan) PLN_CHECKED;
void pln_hoist_plan_free(pln_hoist_plan *plan);

#endif
