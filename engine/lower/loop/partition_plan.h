/* partition_plan.h: where a loop is split so that conditions on its variable
 * are decided in a part of it; for tir.LoopPartition. */

#ifndef PLN_LOWER_LOOP_PARTITION_PLAN_H
#define PLN_LOWER_LOOP_PARTITION_PLAN_H

#include "lower/analyzer_scopes.h"
#include "lower/lower.h"

typedef enum pln_loop_part {
  PLN_PART_BEFORE,
  PLN_PART_MIDDLE,
  PLN_PART_AFTER
} pln_loop_part;

/* One of the loops that a loop becomes: extent rounds from `begin` on. */
typedef struct pln_part_plan {
  pln_loop_part part;
  pln_term begin, extent;
  bool once;  /* it has one round, and is no loop any more */
  bool final; /* it is not split again */
} pln_part_plan;

typedef struct pln_loop_plan {
  pln_ref loop;
  uint32_t n_parts;
  pln_part_plan parts[3];
  bool value;            /* of the conditions in the middle */
  pln_term_list decided; /* these conditions */
} pln_loop_plan;

typedef struct pln_partition_config {
  int64_t constant_loops, keep_unit_loops;
} pln_partition_config;

/* The attribute of a loop that is not split again. */
#define PLN_PARTITIONED_ATTR "partitioned"

typedef struct pln_partition_plan {
  const pln_graph *graph;
  pln_analyzer_scopes scopes;
  pln_analyzer *a; /* of the scopes */
  pln_partition_config config;
  pln_scope *scope_of; /* by node */
  uint32_t *plan_of;   /* by node: row + 1 of a loop's plan */
  bool *in_likely;     /* by node: part of the argument of likely() */
  /* By node: the innermost partition hint around it, or PLN_NONE. */
  pln_ref *hint_around;
  bool *final; /* by node: a loop that is not split again, or inside of one */
  uint32_t *allreduces; /* by node: how many there are before it */
  /* By term: a variable that the body of the loop at hand binds, by stamp. */
  uint32_t *inner;
  uint32_t cap_inner, stamp;
  pln_loop_plan *plans;
  uint32_t n, cap;
} pln_partition_plan;

/* Plans the outermost loops that can be split. */
pln_status
pln_partition_plan_make(pln_partition_plan *plan, const pln_graph *function,
                        const pln_partition_config *config) PLN_CHECKED;
void pln_partition_plan_free(pln_partition_plan *plan);
/* The key of an AttrStmt says that its loop should be split. */
bool pln_is_partition_hint(const pln_graph *graph, pln_ref stmt);
/* The argument of likely(), or PLN_NONE. */
pln_ref pln_likely_argument(const pln_graph *graph, pln_ref node);

#endif
