/* transform_layout.h: changes the layouts in which operators compute, and
 * converts between layouts where that cannot be avoided.
 *
 * For passes that say of some calls what they should be instead: ConvertLayout
 * and AlterOpLayout. All other operators adapt as layouts.def says.
 *
 * Semantics: TVM's transform_layout.h. */

#ifndef PLN_TRANSFORM_LAYOUT_TRANSFORM_LAYOUT_H
#define PLN_TRANSFORM_LAYOUT_TRANSFORM_LAYOUT_H

#include "transform/layout/infer_layout.h"
#include "transform/transform.h"

/* A call that a pass may change. */
typedef struct pln_layout_change {
  pln_rewrite *rw;
  pln_ref old;   /* the call in the old graph */
  pln_ref image; /* its image, with operands in their old layouts */
  /* What the call becomes, preset to what it is: the arguments are nodes of the
   * new graph, in the layouts that they have there. */
  pln_op op;
  pln_attrs attrs;
  uint32_t n_args;
  pln_ref *args; /* may be written; the number stays */
} pln_layout_change;

typedef struct pln_layout_alteration {
  void *ud;
  pln_status (*alter)(void *ud, pln_layout_change *change);
  /* True if `alter` may give calls of the operator other arguments, and wants
   * to see them even if nothing is known of the operator's layouts: then they
   * are in their old ones. NULL: never. */
  bool (*replaces)(void *ud, const pln_engine *engine, pln_op op);
} pln_layout_alteration;

/* *out is `function` itself, retained, when nothing changed. */
pln_status pln_transform_layouts(const pln_graph *function,
                                 const pln_layout_alteration *alteration,
                                 pln_graph **out) PLN_CHECKED;

#endif
