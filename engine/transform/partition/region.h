/* region.h: the annotated regions of a function: what lies between begins and
 * ends of compilers.
 *
 * A begin opens a region. A call, tuple or projection belongs to the region of
 * its operands, which it merges; an end closes it. Semantics: TVM's
 * AnnotatedRegionSet. */

#ifndef PLN_TRANSFORM_PARTITION_REGION_H
#define PLN_TRANSFORM_PARTITION_REGION_H

#include "transform/partition/annotation.h"

#define PLN_NO_REGION 0xffffffffu

/* A list of annotations, linked by node. */
typedef struct pln_annotation_list {
  pln_ref first, last; /* PLN_NONE: empty */
} pln_annotation_list;

typedef struct pln_annotated_region {
  uint32_t merged; /* the region that it was merged into, or itself */
  pln_symbol compiler;
  pln_annotation_list begins, ends; /* also those inside of the region */
} pln_annotated_region;

/* Regions are numbered as TVM does: in post-order of their begins. A merged
 * region has the number of the one that it was merged into. */
typedef struct pln_region_set {
  const pln_graph *graph; /* sealed; borrowed */
  pln_annotation_ops ops;
  uint32_t count, capacity;
  pln_annotated_region *regions;
  uint32_t *region; /* by node: region + 1, or 0; see pln_region_of */
  pln_ref *next;    /* by annotation: the next one of its list */
  uint32_t *order;  /* by node: its place in post-order, from 1; 0: unused */
} pln_region_set;

/* PLN_ERR_TYPE when an end has no region, or the region of another compiler. */
pln_status pln_region_set_find(pln_region_set *set, const pln_graph *graph,
                               const pln_annotation_ops *ops) PLN_CHECKED;
/* Also after a failure. */
void pln_region_set_free(pln_region_set *set);
/* The region of a node, or PLN_NO_REGION. */
uint32_t pln_region_of(pln_region_set *set, pln_ref node);
/* Merges `from` into `into`. */
void pln_regions_merge(pln_region_set *set, uint32_t from, uint32_t into);
/* Whether an edge from an end to this begin stays in one region, so that
 * neither is an input or output. */
bool pln_region_begin_is_inside(pln_region_set *set, pln_ref begin);
/* order_regions.c: the graph, retained, or the same one in an order where the
 * first end of each region follows all that its begins take.
 * PLN_ERR_UNSUPPORTED when there is no such order. */
pln_status pln_regions_put_in_order(pln_region_set *set,
                                    pln_graph **out) PLN_CHECKED;
/* Whether the graph has an annotation. */
bool pln_has_annotations(const pln_graph *graph, const pln_annotation_ops *ops);

#endif
