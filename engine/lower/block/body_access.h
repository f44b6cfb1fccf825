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

/* What blocks and other statements of a function access, as far as it was
 * found. */
typedef struct pln_access_table {
  const pln_graph *g;
  pln_analyzer *a;
  pln_scope *scope_of;
  pln_ref *alloc_of;  /* by Var: the statement that allocates its memory */
  pln_ref *buffer_of; /* by Var: the Buffer of a parameter or block there */
  pln_ref *view_of;   /* by Var: the MatchBuffer whose view is there */
  uint32_t *of;       /* by node: 1 + the number of its list */
  pln_body_accesses *lists;
  uint32_t n, cap;
} pln_access_table;

/* After a failure, too, the table is to be ended. */
pln_status pln_access_table_begin(const pln_graph *g,
                                  pln_access_table *t) PLN_CHECKED;
void pln_access_table_end(pln_access_table *t);
/* Adds the list of `node`: the accesses of the statements of `scope` that are
 * nodes from `first` up to `end`. Inner blocks with a list access what that
 * says. Elements of the scope's views are those of the Buffers they are views
 * of. Memory that is allocated there is not seen. A call that gets a pointer
 * reads and writes all of its Buffer; tvm_access_ptr says which of both. */
pln_status pln_access_table_add(pln_access_table *t, pln_ref node,
                                pln_scope scope, pln_ref first,
                                pln_ref end) PLN_CHECKED;

/* The accesses in a scope: those that blocks in it declare, and those of loads
 * and stores outside of blocks. Terms belong to the analyzer. */
pln_status pln_body_accesses_make(const pln_graph *g, pln_analyzer *a,
                                  pln_scope scope, const pln_scope *scope_of,
                                  pln_body_accesses *out) PLN_CHECKED;
/* The same of the statements that are nodes from `first` up to `end`, by a
 * table. */
pln_status pln_body_accesses_find(const pln_access_table *t, pln_scope scope,
                                  pln_ref first, pln_ref end,
                                  pln_body_accesses *out) PLN_CHECKED;
void pln_body_accesses_free(pln_engine *engine, pln_body_accesses *accesses);
/* BlockReads or BlockWrites of them, in the rewritten function. */
pln_status pln_build_accesses(pln_stmt_rewrite *s, pln_analyzer *a,
                              const pln_body_accesses *all, bool writes,
                              pln_ref *out) PLN_CHECKED;

#endif
