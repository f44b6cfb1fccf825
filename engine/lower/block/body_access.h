/* body_access.h: what the body of a loop reads and writes, as regions. */

#ifndef PLN_LOWER_BLOCK_BODY_ACCESS_H
#define PLN_LOWER_BLOCK_BODY_ACCESS_H

#include "lower/flatten/flattened_buffer.h"
#include "lower/lower.h"

/* The elements of a Buffer in [min, min + extent), by dimension. */
typedef struct pln_body_access {
  pln_ref buffer;
  bool writes;
  uint32_t rank;
  pln_term min[PLN_MOST_AXES], extent[PLN_MOST_AXES];
} pln_body_access;

/* In the order of the first access. */
typedef struct pln_body_accesses {
  pln_body_access *items;
  uint32_t n, cap;
} pln_body_accesses;

/* What is known of blocks that say themselves nothing of what they access: by
 * Block, 1 + the number of a list. */
typedef struct pln_known_accesses {
  const uint32_t *of;
  const pln_body_accesses *lists;
} pln_known_accesses;

/* The accesses in a scope: those that blocks in it declare, and those of loads
 * and stores outside of blocks. Terms belong to the analyzer. */
pln_status pln_body_accesses_make(const pln_graph *g, pln_analyzer *a,
                                  pln_scope scope, const pln_scope *scope_of,
                                  pln_body_accesses *out) PLN_CHECKED;
/* The same of the statements of the scope that are nodes from `first` up to
 * `end`. `known` may be NULL. */
pln_status pln_stmt_accesses_make(const pln_graph *g, pln_analyzer *a,
                                  pln_scope scope, pln_ref first, pln_ref end,
                                  const pln_scope *scope_of,
                                  const pln_known_accesses *known,
                                  pln_body_accesses *out) PLN_CHECKED;
void pln_body_accesses_free(pln_engine *engine, pln_body_accesses *accesses);
/* BlockReads or BlockWrites of them, in the rewritten function. */
pln_status pln_build_accesses(pln_stmt_rewrite *s, pln_analyzer *a,
                              const pln_body_accesses *all, bool writes,
                              pln_ref *out) PLN_CHECKED;

#endif
