/* users.h: the users of each node of a sealed graph; for passes and rules that
 * look from a node to its users. */

#ifndef PLN_IR_ANALYSIS_USERS_H
#define PLN_IR_ANALYSIS_USERS_H

#include "ir/graph/graph.h"

/* Uses are operands; the users of a node are in ascending order, one entry per
 * use. */
typedef struct pln_users {
  pln_engine *engine;
  uint32_t n_nodes, n_operands; /* sizes of the arrays */
  uint32_t *first; /* by node: start of its users; first[n_nodes] ends the
                    * last */
  pln_ref *users;
  uint8_t *is_result;    /* by node: the result of a scope */
  pln_scope *node_scope; /* by node */
} pln_users;

/* Allocates the arrays. After a failure pln_users_end frees what there is. */
pln_status pln_users_begin(pln_users *u, const pln_graph *graph) PLN_CHECKED;
void pln_users_end(pln_users *u);

static inline uint32_t pln_users_count(const pln_users *u, pln_ref node) {
  return u->first[node + 1] - u->first[node];
}
/* Returns true if `node` is used once, and not as a result. */
static inline bool pln_users_once(const pln_users *u, pln_ref node) {
  return pln_users_count(u, node) == 1 && !u->is_result[node];
}

#endif
