/* constant_regions.c: finds the computations of constants that may be folded as
 * a whole. Called by FoldConstant before each sweep.
 *
 * Invariants: a call belongs to the region of its users if they all belong to
 * the same one, else it is the last call of a region of its own. A region is
 * folded only if those before it are. Results in between are at most
 * MAX_BETWEEN bytes or what dies with the region. A region that stays loses its
 * last call, up to MAX_CUTS times, so that what comes before may be folded. */

#include "transform/fold/constant_regions.h"

#include "eval/loop.h"
#include "ir/graph/graph.h"
#include "op/op.h"

enum { MAX_BETWEEN = 16 << 20, MAX_CUTS = 8 };
enum {
  COMPUTED = 1, /* a call that depends on constants only */
  SEEN = 2,     /* a user gave the node a region */
  SHARED = 4,   /* users in several regions, or users that stay */
  BLOCKED = 8,  /* something in the region cannot be folded */
  ALLOWED = 16,
  BARRED = 32 /* it was the last call of a region that stays */
};

/* ------------------------------------------------------------------- calls */

static bool is_known(const pln_constant_regions *r, pln_ref node) {
  uint8_t kind = r->graph->nodes[node].kind;
  return kind == PLN_CONSTANT || kind == PLN_ABSENT ||
         (r->flags[node] & COMPUTED);
}

static bool has_known_operands(const pln_constant_regions *r, pln_ref call) {
  const pln_graph *g = r->graph;
  for (uint32_t i = 0; i < g->nodes[call].count; i++)
    if (!is_known(r, pln_operand(g, call, i)))
      return false;
  return true;
}

static bool is_evaluated(const pln_constant_regions *r, pln_ref call) {
  const pln_node *n = &r->graph->nodes[call];
  const pln_op_info *row = pln_op_row(r->engine, n->data);
  return (row->traits & PLN_TRAIT_PURE) && !(row->traits & PLN_TRAIT_DATA) &&
         row->kernel && !pln_attrs_has_refs(r->engine, n->attrs) &&
         pln_budget_bytes(r->graph, call) <= PLN_BUDGET_MAX;
}

/* Returns true for a call of an operator that is evaluated if its operands are
 * constants, and for a result of one. */
static bool is_computed(const pln_constant_regions *r, pln_ref node) {
  const pln_graph *g = r->graph;
  const pln_node *n = &g->nodes[node];
  if ((r->flags[node] & BARRED) || (n->flags & PLN_NODE_KEEP))
    return false;
  if (n->kind == PLN_TUPLE_GET_ITEM)
    return r->flags[pln_operand(g, node, 0)] & COMPUTED;
  return n->kind == PLN_CALL && n->data && n->count &&
         has_known_operands(r, node) && !pln_calls_operands(n) &&
         !pln_owns(n) && !r->is_never_folded(r->ud, n) &&
         pln_flags_effect(n->flags) == PLN_EFFECT_NONE && is_evaluated(r, node);
}

/* Returns whether there is such a node. */
static bool mark_computed(pln_constant_regions *r) {
  bool any = false;
  for (pln_ref i = 0; i < r->graph->n_nodes; i++) {
    r->flags[i] &= BARRED;
    if (is_computed(r, i)) {
      r->flags[i] |= COMPUTED;
      any = true;
    }
  }
  return any;
}

/* ----------------------------------------------------------------- regions */

/* Notes a user of the node in the region of `last`; PLN_NONE: one that
 * stays. */
static void note_user(pln_constant_regions *r, pln_ref node, pln_ref last) {
  if (last == PLN_NONE || ((r->flags[node] & SEEN) && r->last[node] != last))
    r->flags[node] |= SHARED;
  r->flags[node] |= SEEN;
  r->last[node] = last;
}

/* Notes the users of the call's operands. A region stays within one scope: what
 * another scope computes may never be evaluated. */
static void note_operands(pln_constant_regions *r, pln_ref call) {
  const pln_graph *g = r->graph;
  bool computed = r->flags[call] & COMPUTED;
  for (uint32_t k = 0; k < g->nodes[call].count; k++) {
    pln_ref arg = g->operands[g->nodes[call].first + k];
    bool joins = computed && (g->nodes[arg].kind == PLN_CONSTANT ||
                              r->scope_of[arg] == r->scope_of[call]);
    note_user(r, arg, joins ? r->last[call] : PLN_NONE);
  }
}

/* Users come after their operands: all users of a node are known when it is
 * reached. */
static void find_last_calls(pln_constant_regions *r) {
  const pln_graph *g = r->graph;
  note_user(r, g->root, PLN_NONE);
  for (uint32_t i = 0; i < g->n_scopes; i++)
    if (g->scopes[i].result != PLN_NONE)
      note_user(r, g->scopes[i].result, PLN_NONE);
  for (pln_ref i = g->n_nodes; i-- > 0;) {
    if ((r->flags[i] & COMPUTED) && (r->flags[i] & (SEEN | SHARED)) != SEEN)
      r->last[i] = i;
    note_operands(r, i);
  }
}

static size_t constant_bytes(const pln_tensor *t) {
  return t->splat ? pln_splat_bytes((pln_dtype)t->dtype) : t->bytes;
}

static void count_freed(pln_constant_regions *r) {
  const pln_graph *g = r->graph;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_CONSTANT &&
        !(g->nodes[i].flags & PLN_NODE_KEEP) &&
        (r->flags[i] & (SEEN | SHARED)) == SEEN)
      r->freed[r->last[i]] += constant_bytes(g->tensors[g->nodes[i].data]);
}

/* Returns true if an operand comes from another region that stays. */
static bool needs_refused(const pln_constant_regions *r, pln_ref node) {
  const pln_graph *g = r->graph;
  for (uint32_t k = 0; k < g->nodes[node].count; k++) {
    pln_ref arg = pln_operand(g, node, k);
    if ((r->flags[arg] & COMPUTED) && r->last[arg] != r->last[node] &&
        !(r->flags[arg] & ALLOWED))
      return true;
  }
  return false;
}

/* Decides on the regions in order; bars the last calls of those that stay.
 * Returns their number. */
static uint32_t decide(pln_constant_regions *r) {
  uint32_t n_barred = 0;
  for (pln_ref i = 0; i < r->graph->n_nodes; i++) {
    if (!(r->flags[i] & COMPUTED))
      continue;
    pln_ref last = r->last[i];
    size_t bytes = pln_budget_bytes(r->graph, i);
    size_t limit = i == last ? PLN_BUDGET_FREE : MAX_BETWEEN;
    if (needs_refused(r, i) || (bytes > limit && bytes > r->freed[last]))
      r->flags[last] |= BLOCKED;
    if (i == last)
      r->flags[i] |= r->flags[i] & BLOCKED ? BARRED : ALLOWED;
    n_barred += i == last && (r->flags[i] & BARRED);
  }
  return n_barred;
}

/* Decides on the regions of the calls that are marked. */
static uint32_t find_regions(pln_constant_regions *r) {
  size_t n = r->graph->n_nodes;
  memset(r->freed, 0, n * sizeof *r->freed);
  memset(r->last, 0xff, n * sizeof *r->last); /* PLN_NONE */
  find_last_calls(r);
  count_freed(r);
  return decide(r);
}

pln_status pln_constant_regions_begin(pln_constant_regions *regions,
                                      const pln_graph *graph,
                                      pln_constant_region_test *is_never_folded,
                                      const void *ud) {
  size_t n = graph->n_nodes;
  pln_engine *e = graph->engine;
  *regions = (pln_constant_regions){.engine = e,
                                    .graph = graph,
                                    .is_never_folded = is_never_folded,
                                    .ud = ud};
  if (!(regions->flags = pln_mem_zeroed(e, n)))
    return pln_nomem(e);
  if (!mark_computed(regions))
    return PLN_OK;
  regions->last = pln_mem_new(e, n * sizeof *regions->last);
  regions->freed = pln_mem_new(e, n * sizeof *regions->freed);
  regions->scope_of = pln_mem_new(e, n * sizeof *regions->scope_of);
  if (!regions->last || !regions->freed || !regions->scope_of)
    return pln_nomem(e);
  pln_graph_node_scopes(graph, regions->scope_of);
  for (int cut = 0; find_regions(regions) && cut < MAX_CUTS; cut++)
    mark_computed(regions);
  return PLN_OK;
}

void pln_constant_regions_end(pln_constant_regions *regions) {
  size_t n = regions->graph ? regions->graph->n_nodes : 0;
  if (regions->last)
    pln_mem_free(regions->engine, regions->last, n * sizeof *regions->last);
  if (regions->freed)
    pln_mem_free(regions->engine, regions->freed, n * sizeof *regions->freed);
  if (regions->scope_of)
    pln_mem_free(regions->engine, regions->scope_of,
                 n * sizeof *regions->scope_of);
  if (regions->flags)
    pln_mem_free(regions->engine, regions->flags, n);
  *regions = (pln_constant_regions){0};
}

bool pln_constant_regions_allow(const pln_constant_regions *regions,
                                pln_ref node) {
  return (regions->flags[node] & COMPUTED) &&
         (regions->flags[regions->last[node]] & ALLOWED);
}
