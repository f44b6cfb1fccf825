/* shape_plan.h: plans how vectors of extents are computed from the shapes of
 * tensors; for CanonicalizeShapes.
 *
 * A plan is a list of steps, each after those that it uses. Equal values are
 * one step, so that the length of the list is the cost of all of them. */

#ifndef PLN_TRANSFORM_CANONICALIZE_SHAPE_PLAN_H
#define PLN_TRANSFORM_CANONICALIZE_SHAPE_PLAN_H

#include "ir/graph/graph.h"
#include "op/infer/infer.h"

typedef enum pln_shape_step_kind {
  PLN_STEP_CONSTANT, /* the value; costs nothing */
  PLN_STEP_EXTENTS,  /* extents [start, end) of `source` */
  PLN_STEP_TAKE,     /* elements [start, end) of step a; a scalar is one */
  PLN_STEP_CONCAT,   /* steps parts[a], ..., parts[b - 1] */
  PLN_STEP_CALL      /* op(step a, step b) */
} pln_shape_step_kind;

typedef struct pln_shape_step {
  pln_shape_step_kind kind;
  pln_value value; /* of rank 0 or 1 */
  pln_op op;
  pln_ref source;      /* of the old graph */
  uint32_t start, end; /* of extents or elements */
  uint32_t a, b;
  pln_ref built; /* the node of the new graph, or PLN_NONE */
} pln_shape_step;

/* A tensor one of whose extents is a given dim. */
typedef struct pln_extent_source {
  pln_ref node;
  uint32_t axis;
  uint32_t next;  /* the next one of the same dim, or 0 */
  bool is_needed; /* its elements are used, whatever reads its shape */
} pln_extent_source;

/* Which tensors may be read. */
typedef enum pln_shape_sources {
  PLN_SOURCES_PARAMS,
  PLN_SOURCES_NEEDED, /* and tensors that are needed anyway */
  PLN_SOURCES_ALL
} pln_shape_sources;

typedef struct pln_shape_plan {
  pln_engine *engine;
  const pln_graph *graph;
  bool slices; /* shape_of can read some extents (opset 15) */
  pln_idmap *first_source, *last_source; /* by dim: numbers of sources */
  pln_extent_source *sources;            /* from 1 on */
  uint32_t n_sources, cap_sources;
  pln_idmap *step_of; /* by value: 1 + the step */
  pln_shape_step *steps;
  uint32_t n_steps, cap_steps;
  uint32_t *parts;
  uint32_t n_parts, cap_parts;
  uint32_t cost;  /* steps that are calls */
  pln_ref before; /* sources that may be used come before this node */
  pln_shape_sources from;
  pln_idmap *whole; /* by value: shapes that are read as a whole anyway */
} pln_shape_plan;

/* After a failure pln_shape_plan_end frees what there is. */
pln_status pln_shape_plan_begin(pln_shape_plan *p, const pln_graph *graph,
                                bool slices) PLN_CHECKED;
void pln_shape_plan_end(pln_shape_plan *p);
/* Forgets the steps and sources, but not which shapes were read as a whole: a
 * second plan takes scalars from these. */
pln_status pln_shape_plan_restart(pln_shape_plan *p) PLN_CHECKED;
/* Lets the plan read the extents of a tensor, whose elements are needed or not.
 * In ascending order of nodes. */
pln_status pln_shape_plan_add_source(pln_shape_plan *p, pln_ref node,
                                     bool is_needed) PLN_CHECKED;
/* Plans a value of rank 0 or 1 whose elements are known, for use at `node`.
 * *step is PLN_NONE if it cannot be computed; the plan is as before then. */
pln_status pln_shape_plan_value(pln_shape_plan *p, pln_ref node,
                                pln_value value, uint32_t *step) PLN_CHECKED;

#endif
