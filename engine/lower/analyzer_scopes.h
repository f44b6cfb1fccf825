/* analyzer_scopes.h: what an analyzer knows inside of bodies: ranges of loop
 * variables, conditions of branches. TVM's IRMutatorWithAnalyzer. For passes
 * that are mutators of statements (stmt_mutator.h). */

#ifndef PLN_LOWER_ANALYZER_SCOPES_H
#define PLN_LOWER_ANALYZER_SCOPES_H

#include "arith/arith.h"
#include "lower/stmt_mutator.h"

typedef struct pln_analyzer_scopes {
  pln_analyzer *a;
  uint32_t *marks; /* of the constraints of open bodies */
  uint32_t n, cap;
  /* The pointers that the function writes through: identities of Vars,
   * ascending. */
  uint32_t *written;
  uint32_t n_written, cap_written;
  bool writes_anything;
} pln_analyzer_scopes;

/* An analyzer that knows what the parameters' buffers say: extents are not
 * negative. */
pln_status pln_analyzer_scopes_begin(pln_analyzer_scopes *scopes,
                                     const pln_graph *function) PLN_CHECKED;
void pln_analyzer_scopes_end(pln_analyzer_scopes *scopes);
/* To be called by enter_body of a body that is visited, and by leave_body. */
pln_status pln_analyzer_scopes_enter(pln_analyzer_scopes *scopes,
                                     pln_stmt_rewrite *s, pln_ref stmt,
                                     uint32_t k) PLN_CHECKED;
void pln_analyzer_scopes_leave(pln_analyzer_scopes *scopes);

/* The term of a node of the builder. */
pln_status pln_scoped_term(pln_analyzer_scopes *scopes,
                           const pln_stmt_rewrite *s, pln_ref node,
                           pln_term *out) PLN_CHECKED;
/* A node simplified (TVM's Analyzer::Simplify). *out: the node itself if it
 * is simple already. */
pln_status pln_scoped_simplify(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                               pln_ref node, pln_ref *out) PLN_CHECKED;
/* The variable of the present LetStmt stands for the image of its value: to be
 * called before its body is visited. */
pln_status pln_scoped_bind(pln_analyzer_scopes *scopes, pln_stmt_rewrite *s,
                           pln_ref let) PLN_CHECKED;
/* The condition holds until the present body is left: those of its parts joined
 * by && that do not read what the function writes. */
pln_status pln_scoped_hold(pln_analyzer_scopes *scopes,
                           pln_term condition) PLN_CHECKED;
/* The condition inside of likely(), else the node. */
pln_ref pln_likely_condition(const pln_graph *graph, pln_ref node);

#endif
