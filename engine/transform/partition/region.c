/* region.c: finds the annotated regions of a function. Called by
 * MergeCompilerRegions and PartitionGraph.
 *
 * Regions are sets of a disjoint-set forest (Tarjan 1975), so that merging
 * costs next to nothing; lists of annotations are concatenated. */

#include "transform/partition/region.h"

#include "ir/graph/describe.h"

/* ------------------------------------------------------------------ regions */

static uint32_t find_set(pln_region_set *set, uint32_t region) {
  pln_annotated_region *rows = set->regions;
  while (rows[region].merged != region) {
    rows[region].merged = rows[rows[region].merged].merged;
    region = rows[region].merged;
  }
  return region;
}

uint32_t pln_region_of(pln_region_set *set, pln_ref node) {
  uint32_t region = set->region[node];
  return region ? find_set(set, region - 1) : PLN_NO_REGION;
}

static void append_list(const pln_region_set *set, pln_annotation_list *list,
                        pln_annotation_list tail) {
  if (tail.first == PLN_NONE)
    return;
  if (list->first == PLN_NONE)
    list->first = tail.first;
  else
    set->next[list->last] = tail.first;
  list->last = tail.last;
}

void pln_regions_merge(pln_region_set *set, uint32_t from, uint32_t into) {
  from = find_set(set, from);
  into = find_set(set, into);
  if (from == into)
    return;
  append_list(set, &set->regions[into].begins, set->regions[from].begins);
  append_list(set, &set->regions[into].ends, set->regions[from].ends);
  set->regions[from].merged = into;
}

bool pln_region_begin_is_inside(pln_region_set *set, pln_ref begin) {
  const pln_graph *g = set->graph;
  pln_ref operand = pln_operand(g, begin, 0);
  return pln_is_call_of_op(&g->nodes[operand], set->ops.end) &&
         pln_region_of(set, operand) == pln_region_of(set, begin);
}

/* ------------------------------------------------------------------ finding */

static pln_status visit_begin(pln_region_set *set, pln_ref node) {
  pln_symbol compiler;
  PLN_TRY(
      pln_annotation_compiler(&set->ops, &set->graph->nodes[node], &compiler));
  PLN_TRY(pln_mem_grow(set->ops.engine, (void **)&set->regions, &set->capacity,
                       (size_t)set->count + 1, sizeof *set->regions));
  set->regions[set->count] =
      (pln_annotated_region){.merged = set->count,
                             .compiler = compiler,
                             .begins = {node, node},
                             .ends = {PLN_NONE, PLN_NONE}};
  set->region[node] = ++set->count;
  return PLN_OK;
}

static pln_status refuse(const pln_region_set *set, pln_ref node,
                         const char *why) {
  pln_status status =
      pln_diag_error(set->ops.engine, PLN_ERR_TYPE, NULL,
                     "annotations of compilers are not in pairs: %s", why);
  pln_note_node(set->graph, node);
  return status;
}

static pln_status visit_end(pln_region_set *set, pln_ref node) {
  pln_symbol compiler;
  uint32_t region = pln_region_of(set, pln_operand(set->graph, node, 0));
  PLN_TRY(
      pln_annotation_compiler(&set->ops, &set->graph->nodes[node], &compiler));
  if (region == PLN_NO_REGION)
    return refuse(set, node, "the operand of an end belongs to no region");
  if (set->regions[region].compiler != compiler)
    return refuse(set, node, "an end is of another compiler than its begin");
  append_list(set, &set->regions[region].ends,
              (pln_annotation_list){node, node});
  set->region[node] = region + 1;
  return PLN_OK;
}

/* The region that an argument is in; none behind an end. */
static uint32_t open_region(pln_region_set *set, pln_ref arg) {
  bool closed = pln_is_call_of_op(&set->graph->nodes[arg], set->ops.end);
  return closed ? PLN_NO_REGION : pln_region_of(set, arg);
}

/* Merges the open regions of the arguments; the node belongs to them. */
static pln_status join_arguments(pln_region_set *set, pln_ref node) {
  const pln_graph *g = set->graph;
  const pln_node *n = &g->nodes[node];
  uint32_t region = PLN_NO_REGION;
  bool outside = false;
  for (uint32_t i = pln_has_callee(n) ? 1 : 0; i < n->count; i++) {
    pln_ref arg = g->operands[n->first + i];
    uint32_t other = open_region(set, arg);
    if (region == PLN_NO_REGION)
      region = other;
    else if (other != PLN_NO_REGION)
      pln_regions_merge(set, other, region);
    outside = outside ||
              (other == PLN_NO_REGION && g->nodes[arg].kind != PLN_CONSTANT &&
               g->nodes[arg].kind != PLN_ABSENT);
  }
  if (region == PLN_NO_REGION)
    return PLN_OK;
  if (outside)
    return refuse(set, node, "only some arguments of a call have a begin");
  set->region[node] = region + 1;
  return PLN_OK;
}

typedef struct walk_state {
  pln_region_set *set;
  uint32_t visited;
} walk_state;

static pln_status visit_node(void *ud, const pln_graph *g, pln_ref node) {
  walk_state *walk = ud;
  pln_region_set *set = walk->set;
  const pln_node *n = &g->nodes[node];
  set->order[node] = ++walk->visited;
  if (pln_is_call_of_op(n, set->ops.begin))
    return visit_begin(set, node);
  if (pln_is_call_of_op(n, set->ops.end))
    return visit_end(set, node);
  if (n->kind == PLN_CALL || n->kind == PLN_TUPLE ||
      n->kind == PLN_TUPLE_GET_ITEM)
    return join_arguments(set, node);
  return PLN_OK;
}

bool pln_has_annotations(const pln_graph *g, const pln_annotation_ops *ops) {
  for (pln_ref node = 0; node < g->n_nodes; node++)
    if (pln_is_annotation(ops, &g->nodes[node]))
      return true;
  return false;
}

pln_status pln_region_set_find(pln_region_set *set, const pln_graph *graph,
                               const pln_annotation_ops *ops) {
  size_t n = (size_t)graph->n_nodes + 1;
  *set = (pln_region_set){.graph = graph, .ops = *ops};
  set->region = pln_mem_zeroed(ops->engine, n * sizeof *set->region);
  set->order = pln_mem_zeroed(ops->engine, n * sizeof *set->order);
  set->next = pln_mem_new(ops->engine, n * sizeof *set->next);
  if (!set->region || !set->order || !set->next)
    return pln_nomem(ops->engine);
  memset(set->next, 0xff, n * sizeof *set->next);
  return pln_walk_post_order(graph, graph->root, visit_node,
                             &(walk_state){.set = set});
}

void pln_region_set_free(pln_region_set *set) {
  pln_engine *e = set->ops.engine;
  if (!set->graph)
    return;
  size_t n = (size_t)set->graph->n_nodes + 1;
  pln_mem_free(e, set->regions, set->capacity * sizeof *set->regions);
  pln_mem_free(e, set->region, n * sizeof *set->region);
  pln_mem_free(e, set->order, n * sizeof *set->order);
  pln_mem_free(e, set->next, n * sizeof *set->next);
}
