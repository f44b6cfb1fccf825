/* inliner.h: graphs written anew with the bodies of functions in other places:
 * where they are called, or in graphs of their own; for the passes that inline
 * and that lift. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_INLINER_H
#define PLN_TRANSFORM_FUNCTIONAL_INLINER_H

#include "ir/graph/graph.h"

/* A graph that is being copied, and what its nodes became last. */
typedef struct pln_clone_source {
  const pln_graph *graph;
  pln_ref *map;      /* a node */
  pln_scope *scopes; /* a scope */
  uint8_t *bound;    /* a node: a variable that a let binds */
} pln_clone_source;

typedef struct pln_clone_run pln_clone_run;

/* What becomes of a function that is no root. */
typedef enum pln_clone_action {
  PLN_CLONE_KEEP = 0,
  PLN_CLONE_SKIP, /* all its uses are calls that its body replaces */
  PLN_CLONE_LIFT  /* it goes into a builder of its own */
} pln_clone_action;

/* What a pass decides; any may be NULL. */
typedef struct pln_clone_callbacks {
  void *ud;
  /* Of a call: a function that takes as many operands, whose body takes its
   * place; of a GlobalVar: one that is written out there. *in is its graph.
   * Left alone, the node is copied. */
  pln_status (*call)(void *ud, pln_clone_run *clone, pln_clone_source *from,
                     pln_ref call, pln_clone_source **in, pln_ref *function);
  pln_clone_action (*function)(void *ud, const pln_clone_source *from,
                               pln_ref function);
  /* PLN_CLONE_LIFT: graft->b is a new builder; what the function uses from
   * outside gets its image there (pln_clone_set_image). */
  pln_status (*lift)(void *ud, pln_clone_run *clone, pln_clone_source *from,
                     pln_ref function);
  /* The function was copied to `made` of the builder `inner`; graft->b is the
   * outer one again. Sets *out to what stands for the function there. */
  pln_status (*lifted)(void *ud, pln_clone_run *clone, pln_clone_source *from,
                       pln_ref function, pln_builder *inner, pln_ref made,
                       pln_ref *out);
  /* An operand that has no image (yet). */
  pln_status (*missing)(void *ud, pln_clone_run *clone, pln_clone_source *from,
                        pln_ref operand, pln_ref *out);
} pln_clone_callbacks;

struct pln_clone_run {
  pln_engine *engine;
  const pln_clone_callbacks *grafter;
  const pln_module *module; /* of GlobalVars' types, or NULL */
  pln_builder *b;           /* where nodes go now */
  uint32_t most;            /* nodes in it */
  struct pln_clone_frame *frames;
  uint32_t n_frames, cap_frames;
  struct pln_clone_saved_image *saved; /* images to be given back */
  uint32_t n_saved, cap_saved;
  pln_ref *operands; /* scratch */
  uint32_t cap_operands;
};

pln_status pln_clone_source_new(const pln_graph *graph,
                                pln_clone_source *out) PLN_CHECKED;
void pln_clone_source_free(pln_clone_source *source);
/* Copies the whole graph of `from`. */
pln_status pln_clone_graph(pln_engine *engine,
                           const pln_clone_callbacks *grafter,
                           const pln_module *module, pln_clone_source *from,
                           pln_graph **out) PLN_CHECKED;
/* In the lifted function `node` is `image`. */
pln_status pln_clone_set_image(pln_clone_run *clone, pln_clone_source *from,
                               pln_ref node, pln_ref image) PLN_CHECKED;
/* What a node is where nodes go now. */
pln_status pln_clone_image(pln_clone_run *clone, pln_clone_source *from,
                           pln_ref node, pln_ref *out) PLN_CHECKED;
/* What is built next was made of that node by the rule at work; it has neither
 * its name nor its place. */
pln_status pln_clone_set_origin(pln_clone_run *clone, pln_clone_source *from,
                                pln_ref node) PLN_CHECKED;
/* A node without scopes, with its operands' images. */
pln_status pln_clone_node(pln_clone_run *clone, pln_clone_source *from,
                          pln_ref node, pln_ref *out) PLN_CHECKED;

#endif
