/* inliner.h: copies a graph and replaces calls by function bodies, or moves
 * function bodies into graphs of their own. Used by Inline, DefuseOps,
 * Defunctionalization and LambdaLift. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_INLINER_H
#define PLN_TRANSFORM_FUNCTIONAL_INLINER_H

#include "ir/graph/graph.h"

/* A graph being copied. The image of a node is the node that its last copy
 * became. */
typedef struct pln_clone_source {
  const pln_graph *graph;
  pln_ref *map;      /* by node: its image */
  pln_scope *scopes; /* by scope: its image */
  uint8_t *bound;    /* by node: a variable bound by a let */
} pln_clone_source;

typedef struct pln_clone_run pln_clone_run;

/* What to do with a function other than the root. */
typedef enum pln_clone_action {
  PLN_CLONE_KEEP = 0,
  PLN_CLONE_SKIP, /* all its uses are calls replaced by its body */
  PLN_CLONE_LIFT  /* it moves into a builder of its own */
} pln_clone_action;

/* The decisions of a pass. Any callback may be NULL. */
typedef struct pln_clone_callbacks {
  void *ud;
  /* Called for a Call and for a GlobalVar. For a Call, *in is a function
   * with as many parameters whose body replaces the call; for a GlobalVar, a
   * function that replaces the name. If *in is left alone, the node is
   * copied. */
  pln_status (*call)(void *ud, pln_clone_run *clone, pln_clone_source *from,
                     pln_ref call, pln_clone_source **in, pln_ref *function);
  pln_clone_action (*function)(void *ud, const pln_clone_source *from,
                               pln_ref function);
  /* Called for PLN_CLONE_LIFT with clone->b a new builder. Sets the images of
   * what the function captures (pln_clone_set_image). */
  pln_status (*lift)(void *ud, pln_clone_run *clone, pln_clone_source *from,
                     pln_ref function);
  /* Called when the function was copied to `made` in the builder `inner`;
   * clone->b is the outer builder again. Sets *out to the node that replaces
   * the function there. */
  pln_status (*lifted)(void *ud, pln_clone_run *clone, pln_clone_source *from,
                       pln_ref function, pln_builder *inner, pln_ref made,
                       pln_ref *out);
  /* Called for an operand without an image. */
  pln_status (*missing)(void *ud, pln_clone_run *clone, pln_clone_source *from,
                        pln_ref operand, pln_ref *out);
} pln_clone_callbacks;

struct pln_clone_run {
  pln_engine *engine;
  const pln_clone_callbacks *callbacks;
  const pln_module *module; /* to type GlobalVars, or NULL */
  pln_builder *b;           /* the builder that receives nodes now */
  uint32_t most;            /* limit on its nodes */
  struct pln_clone_frame *frames;
  uint32_t n_frames, cap_frames;
  struct pln_clone_saved_image *saved; /* images to be restored */
  uint32_t n_saved, cap_saved;
  pln_ref *operands; /* scratch */
  uint32_t cap_operands;
};

pln_status pln_clone_source_new(const pln_graph *graph,
                                pln_clone_source *out) PLN_CHECKED;
void pln_clone_source_free(pln_clone_source *source);
/* Copies the whole graph of `from`. */
pln_status pln_clone_graph(pln_engine *engine,
                           const pln_clone_callbacks *callbacks,
                           const pln_module *module, pln_clone_source *from,
                           pln_graph **out) PLN_CHECKED;
/* Sets the image of `node` while the lifted function is copied. */
pln_status pln_clone_set_image(pln_clone_run *clone, pln_clone_source *from,
                               pln_ref node, pln_ref image) PLN_CHECKED;
/* *out is the image of a node in the current builder. */
pln_status pln_clone_image(pln_clone_run *clone, pln_clone_source *from,
                           pln_ref node, pln_ref *out) PLN_CHECKED;
/* Sets the origin of the nodes built next: made from that node by the current
 * rule. Name and location are not inherited. */
pln_status pln_clone_set_origin(pln_clone_run *clone, pln_clone_source *from,
                                pln_ref node) PLN_CHECKED;
/* Copies a node without scopes, with the images of its operands. */
pln_status pln_clone_node(pln_clone_run *clone, pln_clone_source *from,
                          pln_ref node, pln_ref *out) PLN_CHECKED;

#endif
