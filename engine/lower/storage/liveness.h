/* liveness.h: the first and the last use of each allocation of a PrimFunc. */

#ifndef PLN_LOWER_STORAGE_LIVENESS_H
#define PLN_LOWER_STORAGE_LIVENESS_H

#include "lower/storage/storage_plan.h"

/* The first or last use of an allocation, in a list per statement. */
typedef struct pln_life_event {
  uint32_t allocation;
  uint32_t next; /* index + 1 */
} pln_life_event;

typedef struct pln_liveness {
  pln_engine *engine;
  size_t nodes;
  uint32_t *gen, *kill; /* by node: index + 1 of the first event */
  pln_life_event *events;
  uint32_t n, cap;
} pln_liveness;

pln_status pln_liveness_find(pln_liveness *out, const pln_storage_plan *plan,
                             const pln_access_pattern *pattern) PLN_CHECKED;
void pln_liveness_free(pln_liveness *liveness);

#endif
