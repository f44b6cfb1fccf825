/* merge_compiler_regions.c: MergeCompilerRegions: makes one region of adjacent
 * regions of a compiler.
 *
 * Run by the executor, once per function. Requires a verified graph. A region
 * is merged with those that its inputs come from, unless another way leads from
 * there to it, which would make a circle. Annotations inside of a region are
 * removed.
 *
 *     end(relu(begin(end(conv2d(begin(%x))))))   =>
 * end(relu(conv2d(begin(%x))))
 *
 * Semantics: TVM MergeCompilerRegions. */

#include "transform/partition/region.h"
#include "transform/transform.h"

typedef struct merger {
  pln_engine *engine;
  pln_region_set set;
  uint8_t *done;   /* by region */
  uint32_t *mark;  /* by region: the last search that reached it */
  uint32_t *asked; /* by region: the last search that asked for its parents */
  uint32_t *first; /* by region: the place of its first end in post-order */
  uint32_t *last;  /* by region: the place of its last begin */
  uint32_t search; /* number of searches */
  uint32_t *stack; /* regions to be merged */
  uint32_t *queue; /* regions to be searched */
  uint32_t n_stack, n_queue, cap_stack, cap_queue;
} merger;

/* The region that a begin takes its value from; PLN_NO_REGION for its own. */
static uint32_t parent_of(merger *m, pln_ref begin) {
  uint32_t own = pln_region_of(&m->set, begin);
  uint32_t parent = pln_region_of(&m->set, pln_operand(m->set.graph, begin, 0));
  return parent == own ? PLN_NO_REGION : parent;
}

static pln_status push(const merger *m, uint32_t **list, uint32_t *n,
                       uint32_t *cap, uint32_t region) {
  PLN_TRY(pln_mem_grow(m->engine, (void **)list, cap, *n + (size_t)1,
                       sizeof **list));
  (*list)[(*n)++] = region;
  return PLN_OK;
}

/* ---------------------------------------------------------------- searching */

/* Marks and queues the parents of a region that may come after `place`. */
static pln_status queue_parents(merger *m, uint32_t region, uint32_t place) {
  if (m->asked[region] == m->search)
    return PLN_OK;
  m->asked[region] = m->search;
  for (pln_ref b = m->set.regions[region].begins.first; b != PLN_NONE;
       b = m->set.next[b]) {
    uint32_t parent = parent_of(m, b);
    if (parent == PLN_NO_REGION || m->mark[parent] == m->search)
      continue;
    m->mark[parent] = m->search;
    if (m->last[parent] > place)
      PLN_TRY(push(m, &m->queue, &m->n_queue, &m->cap_queue, parent));
  }
  return PLN_OK;
}

/* The place of the first end of the regions that `region` could be merged
 * with: what ends before cannot depend on them. */
static uint32_t first_candidate(merger *m, uint32_t region) {
  uint32_t place = PLN_NONE;
  const pln_annotated_region *r = &m->set.regions[region];
  for (pln_ref b = r->begins.first; b != PLN_NONE; b = m->set.next[b]) {
    uint32_t parent = parent_of(m, b);
    if (parent != PLN_NO_REGION &&
        m->set.regions[parent].compiler == r->compiler &&
        m->first[parent] < place)
      place = m->first[parent];
  }
  return place;
}

/* Marks the regions from which a way of two steps or more leads to `region`. */
static pln_status mark_indirect(merger *m, uint32_t region, uint32_t place) {
  m->search++;
  m->n_queue = 0;
  for (pln_ref b = m->set.regions[region].begins.first; b != PLN_NONE;
       b = m->set.next[b]) {
    uint32_t parent = parent_of(m, b);
    if (parent != PLN_NO_REGION && m->last[parent] > place)
      PLN_TRY(queue_parents(m, parent, place));
  }
  while (m->n_queue > 0)
    PLN_TRY(queue_parents(m, m->queue[--m->n_queue], place));
  return PLN_OK;
}

/* ------------------------------------------------------------------ merging */

static void merge_into(merger *m, uint32_t parent, uint32_t region) {
  pln_regions_merge(&m->set, parent, region);
  if (m->first[parent] < m->first[region])
    m->first[region] = m->first[parent];
  if (m->last[parent] > m->last[region])
    m->last[region] = m->last[parent];
}

/* The list of begins grows while it is read; what is appended is not read. */
static pln_status merge_parents(merger *m, uint32_t region) {
  pln_annotated_region *r = &m->set.regions[region];
  uint32_t place = first_candidate(m, region);
  pln_ref last = r->begins.last, b = r->begins.first;
  if (place == PLN_NONE)
    return PLN_OK;
  PLN_TRY(mark_indirect(m, region, place));
  for (;; b = m->set.next[b]) {
    uint32_t parent = parent_of(m, b);
    if (parent != PLN_NO_REGION && m->mark[parent] != m->search &&
        m->set.regions[parent].compiler == r->compiler)
      merge_into(m, parent, region);
    if (b == last)
      return PLN_OK;
  }
}

/* Pushes a parent that is not done yet. */
static pln_status push_parent(merger *m, uint32_t region, bool *pushed) {
  *pushed = false;
  for (pln_ref b = m->set.regions[region].begins.first;
       b != PLN_NONE && !*pushed; b = m->set.next[b]) {
    uint32_t parent = parent_of(m, b);
    *pushed = parent != PLN_NO_REGION && !m->done[parent];
    if (*pushed)
      PLN_TRY(push(m, &m->stack, &m->n_stack, &m->cap_stack, parent));
    if (m->n_stack > m->set.count + 1)
      return pln_diag_error(m->engine, PLN_ERR_TYPE, NULL,
                            "a region of a compiler depends on itself");
  }
  return PLN_OK;
}

/* Parents come first. */
static pln_status merge_from(merger *m, uint32_t region) {
  bool pushed;
  m->n_stack = 0;
  PLN_TRY(push(m, &m->stack, &m->n_stack, &m->cap_stack, region));
  while (m->n_stack > 0) {
    region = m->stack[m->n_stack - 1];
    if (!m->done[region]) {
      PLN_TRY(push_parent(m, region, &pushed));
      if (pushed)
        continue;
      PLN_TRY(merge_parents(m, region));
      m->done[region] = 1;
    }
    m->n_stack--;
  }
  return PLN_OK;
}

static pln_status merge_at_end(void *ud, const pln_graph *g, pln_ref node) {
  merger *m = ud;
  if (!pln_is_call_of_op(&g->nodes[node], m->set.ops.end))
    return PLN_OK;
  uint32_t region = pln_region_of(&m->set, node);
  return m->done[region] ? PLN_OK : merge_from(m, region);
}

/* ---------------------------------------------------------------------- pass
 */

static pln_status remove_inner(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  merger *m = ud;
  const pln_graph *g = m->set.graph;
  if (!pln_is_call_of_op(&g->nodes[old], m->set.ops.begin) ||
      !m->set.order[old] || !pln_region_begin_is_inside(&m->set, old))
    return PLN_OK;
  *node = pln_rewrite_image(rw, pln_operand(g, pln_operand(g, old, 0), 0));
  return PLN_OK;
}

static void find_places(merger *m) {
  const pln_graph *g = m->set.graph;
  memset(m->first, 0xff, m->set.count * sizeof *m->first);
  for (pln_ref node = 0; node < g->n_nodes; node++) {
    uint32_t region = pln_region_of(&m->set, node);
    uint32_t place = m->set.order[node];
    if (region == PLN_NO_REGION)
      continue;
    if (pln_is_call_of_op(&g->nodes[node], m->set.ops.end) &&
        place < m->first[region])
      m->first[region] = place;
    if (place > m->last[region])
      m->last[region] = place;
  }
}

static pln_status merge_regions(merger *m) {
  size_t n = (size_t)m->set.count + 1;
  m->done = pln_mem_zeroed(m->engine, n);
  m->mark = pln_mem_zeroed(m->engine, n * sizeof *m->mark);
  m->first = pln_mem_zeroed(m->engine, n * sizeof *m->first);
  m->last = pln_mem_zeroed(m->engine, n * sizeof *m->last);
  m->asked = pln_mem_zeroed(m->engine, n * sizeof *m->asked);
  if (!m->done || !m->mark || !m->asked || !m->first || !m->last)
    return pln_nomem(m->engine);
  find_places(m);
  return pln_walk_post_order(m->set.graph, m->set.graph->root, merge_at_end, m);
}

static void free_merger(merger *m) {
  size_t n = (size_t)m->set.count + 1;
  pln_mem_free(m->engine, m->done, n);
  pln_mem_free(m->engine, m->mark, n * sizeof *m->mark);
  pln_mem_free(m->engine, m->asked, n * sizeof *m->asked);
  pln_mem_free(m->engine, m->first, n * sizeof *m->first);
  pln_mem_free(m->engine, m->last, n * sizeof *m->last);
  pln_mem_free(m->engine, m->stack, m->cap_stack * sizeof *m->stack);
  pln_mem_free(m->engine, m->queue, m->cap_queue * sizeof *m->queue);
  pln_region_set_free(&m->set);
}

pln_status pln_pass_merge_compiler_regions(pln_pass_run *run) {
  pln_annotation_ops ops;
  merger m = {.engine = pln_run_engine(run)};
  pln_mutator mutator = {.ud = &m, .visit = remove_inner};
  PLN_TRY(pln_annotation_ops_find(m.engine, &ops));
  if (!pln_has_annotations(pln_run_function(run), &ops))
    return PLN_OK;
  pln_status status = pln_region_set_find(&m.set, pln_run_function(run), &ops);
  if (status == PLN_OK)
    status = merge_regions(&m);
  if (status == PLN_OK)
    status = pln_rewrite_function(run, &mutator);
  free_merger(&m);
  return status;
}
