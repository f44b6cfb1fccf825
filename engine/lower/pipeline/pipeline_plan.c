/* pipeline_plan.c: finds software pipelines, the stages and orders of their
 * statements, and how many versions of memory they need (pipeline.h).
 *
 * Called by inject_software_pipeline.c and access_regions.c. Only pipelines
 * without others inside of them are found: those around are found when these
 * are rewritten. Always: each list of children and allocations of a pipeline is
 * one piece of its array.
 *
 * Semantics: PipelineInjector and PipelineRewriter of TVM's
 * inject_software_pipeline.cc. */

#include <stdlib.h>

#include "lower/pipeline/pipeline.h"

/* A region of memory that is allocated in the pipeline. */
typedef struct memory_access {
  pln_ref buffer;
  uint32_t child;
  pln_ref region;
  bool writes;
} memory_access;

typedef struct planner {
  const pln_graph *g;
  pln_engine *engine;
  pln_pipelines *out;
  pln_analyzer *a;
  uint32_t *writer;        /* by data Var: 1 + the child that writes it, of the
                            * latest stage and order */
  bool *doubled;           /* by Buffer: it is to have two versions at least */
  memory_access *accesses; /* of the present pipeline, by Buffer */
  uint32_t n_accesses, cap_accesses;
} planner;

static const char stage_key[] = "software_pipeline_stage";
static const char order_key[] = "software_pipeline_order";

static const pln_attr *annotation(const pln_graph *g, pln_ref stmt,
                                  const char *key) {
  const pln_attr *all =
      pln_attrs_find(g->engine, g->nodes[stmt].attrs, "annotations");
  return all && all->kind == PLN_ATTR_DICT
             ? pln_attrs_find(g->engine, all->v.dict, key)
             : NULL;
}

static bool is_marked(const pln_graph *g, pln_ref ref) {
  return g->nodes[ref].kind == PLN_FOR &&
         (annotation(g, ref, stage_key) || annotation(g, ref, order_key));
}

bool pln_has_pipeline(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (is_marked(g, ref))
      return true;
  return false;
}

static pln_status refuse(const planner *x, const char *what) {
  return pln_diag_error(x->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.InjectSoftwarePipeline: %s", what);
}

/* ------------------------------------------------------------------ children
 */

/* The statements of a scope, TVM's elements of a SeqStmt: how many, and the
 * last one. */
static uint32_t count_elements(const planner *x, pln_scope scope,
                               pln_ref *last) {
  const pln_scope_row *row = &x->g->scopes[scope];
  uint32_t n = 0;
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (x->out->scope_of[ref] == scope && pln_is_stmt(&x->g->nodes[ref]) &&
        pln_is_seq_element((pln_kind)x->g->nodes[ref].kind)) {
      n++;
      *last = ref;
    }
  return n;
}

static bool is_plain_block(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_BLOCK_REALIZE &&
         pln_is_int(g, pln_operand(g, stmt, 0), 1);
}

static pln_ref block_of(const pln_graph *g, pln_ref realize) {
  return g->scopes[g->nodes[realize].data].result;
}

static pln_status add_child(planner *x, pln_ref stmt) {
  pln_pipelines *all = x->out;
  pln_pipeline_child child = {.stmt = stmt, .block = PLN_NONE};
  PLN_TRY(pln_mem_grow(x->engine, (void **)&all->children, &all->cap_children,
                       (size_t)all->n_children + 1, sizeof *all->children));
  if (is_plain_block(x->g, stmt)) {
    child.block = block_of(x->g, stmt);
    all->roles[child.block] = PLN_PIPELINE_CHILD_BLOCK;
    all->number[child.block] = all->n_children;
    if (x->g->nodes[child.block].count > 0)
      return refuse(x, "a block of a pipeline has variables: run "
                       "tir.ConvertBlocksToOpaque before");
  }
  all->roles[stmt] = PLN_PIPELINE_CHILD;
  all->number[stmt] = all->n_children;
  all->children[all->n_children++] = child;
  return PLN_OK;
}

/* Allocations of a block whose statements are children. */
static pln_status add_allocs(planner *x, pln_scope scope) {
  pln_pipelines *all = x->out;
  const pln_scope_row *row = &x->g->scopes[scope];
  for (pln_ref ref = row->begin; ref < row->end; ref++) {
    pln_kind kind = (pln_kind)x->g->nodes[ref].kind;
    if (all->scope_of[ref] != scope)
      continue;
    if (kind == PLN_MATCH_BUFFER || kind == PLN_BLOCK_INIT)
      return refuse(x, "a block of a pipeline has an init or a view: run "
                       "tir.LowerInitBlock and tir.LowerMatchBuffer before");
    if (kind != PLN_ALLOC_BUFFER)
      continue;
    PLN_TRY(pln_mem_grow(x->engine, (void **)&all->allocs, &all->cap_allocs,
                         (size_t)all->n_allocs + 1, sizeof *all->allocs));
    all->allocs[all->n_allocs++] = pln_operand(x->g, ref, 0);
  }
  return PLN_OK;
}

/* Its statements are children; *scope: theirs. */
static pln_status enter_shell(planner *x, pln_ref realize, pln_scope *scope) {
  pln_ref block = block_of(x->g, realize);
  if (!is_plain_block(x->g, realize) || x->g->nodes[block].count > 0)
    return refuse(x, "the block of a pipeline has a condition or variables");
  x->out->roles[realize] = x->out->roles[block] = PLN_PIPELINE_SHELL;
  *scope = x->g->nodes[block].data;
  return add_allocs(x, *scope);
}

/* A block of several statements gives its statements. */
static pln_status add_element(planner *x, pln_ref stmt) {
  pln_scope scope;
  pln_ref last;
  if (!is_plain_block(x->g, stmt) ||
      count_elements(x, x->g->nodes[block_of(x->g, stmt)].data, &last) < 2)
    return add_child(x, stmt);
  PLN_TRY(enter_shell(x, stmt, &scope));
  const pln_scope_row *row = &x->g->scopes[scope];
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (x->out->scope_of[ref] == scope && pln_is_stmt(&x->g->nodes[ref]) &&
        pln_is_seq_element((pln_kind)x->g->nodes[ref].kind))
      PLN_TRY(add_child(x, ref));
  return PLN_OK;
}

static pln_status add_children(planner *x, pln_ref loop) {
  pln_scope scope = x->g->nodes[loop].data;
  pln_ref last = PLN_NONE;
  uint32_t n = count_elements(x, scope, &last);
  if (n == 1 && x->g->nodes[last].kind == PLN_BLOCK_REALIZE) {
    PLN_TRY(enter_shell(x, last, &scope));
    n = count_elements(x, scope, &last);
  }
  if (n < 2)
    return refuse(x, "the body of a pipeline has less than two statements");
  const pln_scope_row *row = &x->g->scopes[scope];
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (x->out->scope_of[ref] == scope && pln_is_stmt(&x->g->nodes[ref]) &&
        pln_is_seq_element((pln_kind)x->g->nodes[ref].kind))
      PLN_TRY(add_element(x, ref));
  return PLN_OK;
}

/* ---------------------------------------------------------- stages and orders
 */

static pln_status read_list(const planner *x, pln_ref loop, const char *key,
                            uint32_t n, const int64_t **out) {
  const pln_attr *list = annotation(x->g, loop, key);
  if (!list || list->kind != PLN_ATTR_INTS || list->count != n)
    return pln_diag_error(x->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.InjectSoftwarePipeline: the body of the "
                          "pipeline has %u statements, but '%s' is not a list "
                          "of so many numbers",
                          n, key);
  *out = list->v.ints;
  return PLN_OK;
}

static bool has_int(const pln_attr *list, int64_t value) {
  for (uint32_t i = 0; list && list->kind == PLN_ATTR_INTS && i < list->count;
       i++)
    if (list->v.ints[i] == value)
      return true;
  return false;
}

enum { MOST_STAGES = 1024 };

static pln_status read_order(planner *x, pln_pipeline *p, uint32_t i,
                             int64_t order) {
  pln_pipeline_child *children = &x->out->children[p->first];
  if (order < 0 || order >= p->n || children[order].by_order != UINT32_MAX)
    return refuse(x, "the orders of a pipeline's statements are not different "
                     "numbers from 0 on");
  children[order].by_order = i;
  children[i].order = order;
  return PLN_OK;
}

static pln_status read_stages(planner *x, pln_pipeline *p) {
  const int64_t *stages = NULL, *orders = NULL;
  const pln_attr *async =
      annotation(x->g, p->loop, "software_pipeline_async_stages");
  pln_pipeline_child *children = &x->out->children[p->first];
  PLN_TRY(read_list(x, p->loop, stage_key, p->n, &stages));
  PLN_TRY(read_list(x, p->loop, order_key, p->n, &orders));
  for (uint32_t i = 0; i < p->n; i++)
    children[i].by_order = UINT32_MAX;
  for (uint32_t i = 0; i < p->n; i++) {
    if (stages[i] < 0 || stages[i] >= MOST_STAGES)
      return refuse(x, "a stage of a pipeline is not from 0 to 1023");
    children[i].stage = stages[i];
    children[i].async = has_int(async, stages[i]);
    if (stages[i] > p->max_stage)
      p->max_stage = stages[i];
    PLN_TRY(read_order(x, p, i, orders[i]));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ accesses
 */

static pln_ref regions(const planner *x, const pln_pipeline_child *child,
                       bool writes) {
  pln_scope scope = x->g->nodes[child->block].data;
  return writes ? x->out->writes[scope] : x->out->reads[scope];
}

pln_ref pln_pipeline_buffer(const pln_pipelines *all,
                            const pln_pipeline_child *child, bool writes,
                            uint32_t i) {
  pln_scope scope = all->g->nodes[child->block].data;
  pln_ref stmt = writes ? all->writes[scope] : all->reads[scope];
  return stmt != PLN_NONE && i < all->g->nodes[stmt].count
             ? pln_operand(all->g, pln_operand(all->g, stmt, i), 0)
             : PLN_NONE;
}

static bool is_later(const pln_pipeline_child *x, const pln_pipeline_child *y) {
  return x->stage > y->stage || (x->stage == y->stage && x->order > y->order);
}

static pln_status check_reads(planner *x, const pln_pipeline *p, uint32_t i) {
  const pln_pipeline_child *children = &x->out->children[p->first];
  pln_ref reads = regions(x, &children[i], false);
  for (uint32_t k = 0; reads != PLN_NONE && k < x->g->nodes[reads].count; k++) {
    pln_ref buffer = pln_operand(x->g, pln_operand(x->g, reads, k), 0);
    uint32_t writer = x->writer[pln_operand(x->g, buffer, 0)];
    if (!writer || !is_later(&children[writer - 1], &children[i]))
      continue;
    return refuse(
        x, children[writer - 1].stage > children[i].stage
               ? "a statement reads what one of a later stage writes"
               : "two statements of one stage are reordered of which one reads "
                 "what the other writes");
  }
  return PLN_OK;
}

static void note_writes(planner *x, const pln_pipeline *p, uint32_t i) {
  const pln_pipeline_child *children = &x->out->children[p->first];
  pln_ref writes = regions(x, &children[i], true);
  for (uint32_t k = 0; writes != PLN_NONE && k < x->g->nodes[writes].count;
       k++) {
    pln_ref buffer = pln_operand(x->g, pln_operand(x->g, writes, k), 0);
    uint32_t *writer = &x->writer[pln_operand(x->g, buffer, 0)];
    if (!*writer || is_later(&children[i], &children[*writer - 1]))
      *writer = i + 1;
  }
}

static void forget_writes(planner *x, const pln_pipeline *p, uint32_t i) {
  pln_ref writes = regions(x, &x->out->children[p->first + i], true);
  for (uint32_t k = 0; writes != PLN_NONE && k < x->g->nodes[writes].count;
       k++) {
    pln_ref buffer = pln_operand(x->g, pln_operand(x->g, writes, k), 0);
    x->writer[pln_operand(x->g, buffer, 0)] = 0;
  }
}

/* What is read was written by a statement before it, in the pipeline too. */
static pln_status check_order(planner *x, const pln_pipeline *p) {
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < p->n && status == PLN_OK; i++) {
    status = check_reads(x, p, i);
    note_writes(x, p, i);
  }
  for (uint32_t i = 0; i < p->n; i++)
    forget_writes(x, p, i);
  return status;
}

/* ------------------------------------------------------------------ versions
 */

static pln_status is_apart(planner *x, pln_ref p, pln_ref q, bool *out) {
  pln_term min[2], end[2];
  pln_ref ranges[2] = {p, q};
  for (uint32_t i = 0; i < 2; i++) {
    pln_term extent;
    PLN_TRY(pln_analyzer_import_more(x->a, x->g,
                                     pln_operand(x->g, ranges[i], 0), &min[i]));
    PLN_TRY(pln_analyzer_import_more(x->a, x->g,
                                     pln_operand(x->g, ranges[i], 1), &extent));
    end[i] = pln_add(x->a, min[i], extent);
  }
  for (uint32_t i = 0; i < 2 && !*out; i++) {
    pln_term before = pln_fold(x->a, PLN_PRIM_LE, end[i], min[1 - i]);
    PLN_TRY(x->a->status);
    PLN_TRY(pln_analyzer_can_prove(x->a, before, 0, out));
  }
  return PLN_OK;
}

/* Whether two regions of one Buffer may have an element in common. */
static pln_status may_conflict(planner *x, pln_ref p, pln_ref q, bool *out) {
  bool apart = false;
  for (uint32_t i = 1; i < x->g->nodes[p].count && !apart; i++)
    PLN_TRY(
        is_apart(x, pln_operand(x->g, p, i), pln_operand(x->g, q, i), &apart));
  *out = !apart;
  return PLN_OK;
}

enum { MOST_PAIRS = 4096 }; /* beyond that regions are assumed to conflict */

static const pln_pipeline_child *child_of(const planner *x,
                                          const memory_access *access) {
  return &x->out->children[access->child];
}

/* Whether a statement of the next stage reads, later in the same round, what
 * one writes. */
static pln_status has_overlap(planner *x, uint32_t first, uint32_t end,
                              bool *out) {
  uint32_t pairs = 0;
  for (uint32_t i = first; i < end && !*out; i++)
    for (uint32_t k = first; x->accesses[i].writes && k < end && !*out; k++) {
      const memory_access *write = &x->accesses[i], *read = &x->accesses[k];
      const pln_pipeline_child *p = child_of(x, write), *q = child_of(x, read);
      *out = ++pairs > MOST_PAIRS;
      if (!*out && !read->writes && p->order < q->order && p->stage < q->stage)
        PLN_TRY(may_conflict(x, write->region, read->region, out));
    }
  return PLN_OK;
}

/* Accesses of one Buffer: it has as many versions as stages from the first that
 * writes to the last that reads. */
static pln_status count_versions(planner *x, uint32_t first, uint32_t end) {
  int64_t from = -1, to = -1, n;
  pln_ref buffer = x->accesses[first].buffer;
  bool overlap = false;
  for (uint32_t i = first; i < end; i++) {
    int64_t stage = child_of(x, &x->accesses[i])->stage;
    if (x->accesses[i].writes && (from < 0 || stage < from))
      from = stage;
    if (!x->accesses[i].writes && stage > to)
      to = stage;
  }
  n = from < 0 ? 1 : to - from + 1;
  if (n == 2)
    PLN_TRY(has_overlap(x, first, end, &overlap));
  if (n == 2 && !overlap)
    n = 1;
  if (n == 1 && from >= 0 && x->doubled[buffer])
    n = 2;
  x->out->versions[buffer] = n > 1 ? n : 0;
  return PLN_OK;
}

static pln_status list_accesses(planner *x, uint32_t child, bool writes) {
  pln_ref stmt = regions(x, &x->out->children[child], writes);
  for (uint32_t i = 0; stmt != PLN_NONE && i < x->g->nodes[stmt].count; i++) {
    pln_ref region = pln_operand(x->g, stmt, i);
    pln_ref buffer = pln_operand(x->g, region, 0);
    if (x->out->versions[buffer] == 0)
      continue; /* it is not allocated in the pipeline */
    PLN_TRY(pln_mem_grow(x->engine, (void **)&x->accesses, &x->cap_accesses,
                         (size_t)x->n_accesses + 1, sizeof *x->accesses));
    x->accesses[x->n_accesses++] =
        (memory_access){buffer, child, region, writes};
  }
  return PLN_OK;
}

static int by_buffer(const void *p, const void *q) {
  const memory_access *x = p, *y = q;
  if (x->buffer != y->buffer)
    return x->buffer < y->buffer ? -1 : 1;
  return (x->child > y->child) - (x->child < y->child);
}

static pln_status find_versions(planner *x, const pln_pipeline *p) {
  int64_t *versions = x->out->versions;
  x->n_accesses = 0;
  for (uint32_t i = 0; i < p->n_allocs; i++)
    versions[x->out->allocs[p->first_alloc + i]] = 1;
  for (uint32_t i = p->first; i < p->first + p->n; i++) {
    PLN_TRY(list_accesses(x, i, false));
    PLN_TRY(list_accesses(x, i, true));
  }
  for (uint32_t i = 0; i < p->n_allocs; i++)
    versions[x->out->allocs[p->first_alloc + i]] = 0;
  if (x->n_accesses > 0)
    qsort(x->accesses, x->n_accesses, sizeof *x->accesses, by_buffer);
  for (uint32_t i = 0, k; i < x->n_accesses; i = k) {
    for (k = i + 1; k < x->n_accesses; k++)
      if (x->accesses[k].buffer != x->accesses[i].buffer)
        break;
    PLN_TRY(count_versions(x, i, k));
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------------- driver
 */

static pln_status add_pipeline(planner *x, pln_ref loop, bool blocks) {
  pln_pipelines *all = x->out;
  PLN_TRY(pln_mem_grow(x->engine, (void **)&all->items, &all->cap,
                       (size_t)all->n + 1, sizeof *all->items));
  pln_pipeline *p = &all->items[all->n];
  *p = (pln_pipeline){
      .loop = loop, .first = all->n_children, .first_alloc = all->n_allocs};
  all->roles[loop] = PLN_PIPELINE_LOOP;
  all->number[loop] = all->n++;
  PLN_TRY(add_children(x, loop));
  p->n = all->n_children - p->first;
  p->n_allocs = all->n_allocs - p->first_alloc;
  PLN_TRY(read_stages(x, p));
  if (!blocks)
    return PLN_OK;
  PLN_TRY(check_order(x, p));
  return find_versions(x, p);
}

static void find_regions(planner *x) {
  for (pln_scope i = 0; i < x->g->n_scopes; i++)
    x->out->reads[i] = x->out->writes[i] = PLN_NONE;
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    if (x->g->nodes[ref].kind == PLN_BLOCK_READS)
      x->out->reads[x->out->scope_of[ref]] = ref;
    if (x->g->nodes[ref].kind == PLN_BLOCK_WRITES)
      x->out->writes[x->out->scope_of[ref]] = ref;
  }
}

/* An annotation of a block: the number of the Buffer among what it writes. */
static pln_status find_doubled(planner *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_attr *index = x->g->nodes[ref].kind == PLN_BLOCK
                                ? annotation(x->g, ref, "double_buffer_scope")
                                : NULL;
    if (!index)
      continue;
    pln_ref writes = x->out->writes[x->g->nodes[ref].data];
    if (index->kind != PLN_ATTR_INT || writes == PLN_NONE || index->v.i < 0 ||
        index->v.i >= x->g->nodes[writes].count)
      return refuse(x, "double_buffer_scope is not the number of a region that "
                       "the block writes");
    x->doubled[pln_operand(
        x->g, pln_operand(x->g, writes, (uint32_t)index->v.i), 0)] = true;
  }
  return PLN_OK;
}

/* A loop follows what is inside of it. */
static pln_status find_innermost(planner *x, bool blocks) {
  pln_ref inner = PLN_NONE;
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    if (!is_marked(x->g, ref))
      continue;
    if (!annotation(x->g, ref, order_key) || !annotation(x->g, ref, stage_key))
      return refuse(x, "a loop has software_pipeline_stage or "
                       "software_pipeline_order, but not both");
    if (inner == PLN_NONE || inner < x->g->scopes[x->g->nodes[ref].data].begin)
      PLN_TRY(add_pipeline(x, ref, blocks));
    inner = ref;
  }
  return PLN_OK;
}

static pln_status find(planner *x, bool blocks) {
  pln_engine *e = x->engine;
  size_t nodes = x->g->n_nodes, scopes = x->g->n_scopes;
  pln_scope_cursor at = {.graph = x->g};
  x->out->scope_of = pln_mem_new(e, nodes * sizeof *x->out->scope_of);
  x->out->roles = pln_mem_zeroed(e, nodes * sizeof *x->out->roles);
  x->out->number = pln_mem_zeroed(e, nodes * sizeof *x->out->number);
  x->out->versions = pln_mem_zeroed(e, nodes * sizeof *x->out->versions);
  x->writer = pln_mem_zeroed(e, nodes * sizeof *x->writer);
  x->doubled = pln_mem_zeroed(e, nodes * sizeof *x->doubled);
  x->out->reads = pln_mem_new(e, scopes * sizeof *x->out->reads);
  x->out->writes = pln_mem_new(e, scopes * sizeof *x->out->writes);
  if (!x->out->scope_of || !x->out->roles || !x->out->number ||
      !x->out->versions || !x->writer || !x->doubled || !x->out->reads ||
      !x->out->writes)
    return pln_nomem(e);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    x->out->scope_of[ref] = pln_scope_cursor_at(&at, ref);
  PLN_TRY(pln_analyzer_new(e, &x->a));
  find_regions(x);
  PLN_TRY(find_doubled(x));
  return find_innermost(x, blocks);
}

pln_status pln_pipelines_find(const pln_graph *g, bool blocks,
                              pln_pipelines *out) {
  planner x = {.g = g, .engine = g->engine, .out = out};
  size_t nodes = g->n_nodes;
  *out = (pln_pipelines){.g = g};
  pln_status status = find(&x, blocks);
  if (x.a)
    pln_analyzer_free(x.a);
  pln_mem_free(x.engine, x.writer, nodes * sizeof *x.writer);
  pln_mem_free(x.engine, x.doubled, nodes * sizeof *x.doubled);
  pln_mem_free(x.engine, x.accesses, x.cap_accesses * sizeof *x.accesses);
  return status;
}

void pln_pipelines_free(pln_pipelines *all) {
  pln_engine *e = all->g->engine;
  size_t nodes = all->g->n_nodes;
  pln_mem_free(e, all->items, all->cap * sizeof *all->items);
  pln_mem_free(e, all->children, all->cap_children * sizeof *all->children);
  pln_mem_free(e, all->allocs, all->cap_allocs * sizeof *all->allocs);
  pln_mem_free(e, all->reads, all->g->n_scopes * sizeof *all->reads);
  pln_mem_free(e, all->writes, all->g->n_scopes * sizeof *all->writes);
  pln_mem_free(e, all->scope_of, nodes * sizeof *all->scope_of);
  pln_mem_free(e, all->roles, nodes * sizeof *all->roles);
  pln_mem_free(e, all->number, nodes * sizeof *all->number);
  pln_mem_free(e, all->versions, nodes * sizeof *all->versions);
}
