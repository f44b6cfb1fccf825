/* touched_region.h: the part of each allocated Buffer that a program touches.
 */

#ifndef PLN_LOWER_BLOCK_TOUCHED_REGION_H
#define PLN_LOWER_BLOCK_TOUCHED_REGION_H

#include "lower/flatten/flattened_buffer.h"
#include "lower/lower.h"

/* A Buffer and the statement that allocates it: an AllocBuffer, or an Allocate
 * with the only Buffer over its memory declared inside. */
typedef struct pln_touched_buffer {
  pln_ref buffer, stmt;
  pln_scope scope;      /* where the memory lives */
  bool exposed;         /* its pointer is used otherwise */
  bool touched;         /* `region` is set */
  pln_interval *region; /* by dimension, in terms of what is known in `scope` */
} pln_touched_buffer;

typedef struct pln_touched_regions {
  const pln_graph *g;
  pln_analyzer *a; /* knows the ranges of the loops of the function */
  pln_touched_buffer *buffers;
  uint32_t n, cap;
  uint32_t *of_buffer; /* by Buffer: 1 + its number */
  uint32_t *of_data;   /* by data pointer: the same */
  /* By scope: the innermost one around it, and not itself, that
   * pln_touched_scope would give. */
  pln_scope *outer;
  pln_idmap
      *scope_of_var; /* of a Var's identity: 1 + the scope that binds it */
} pln_touched_regions;

pln_status pln_touched_regions_make(const pln_graph *g,
                                    pln_touched_regions *out) PLN_CHECKED;
/* The scope, or else the innermost one around it, that a loop, a thread axis, a
 * condition or a block owns: these decide what is touched. PLN_NONE: there is
 * none. */
pln_scope pln_touched_scope(const pln_touched_regions *regions,
                            pln_scope scope);
/* Whether the term has a value where the memory of the Buffer is allocated: it
 * reads nothing, and its variables are bound outside. */
pln_status pln_touched_is_outside(const pln_touched_regions *regions,
                                  const pln_touched_buffer *buffer,
                                  pln_term term, bool *out) PLN_CHECKED;
void pln_touched_regions_free(pln_touched_regions *regions);

#endif
