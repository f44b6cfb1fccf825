/* order_regions.c: puts a function's nodes into an order in which a call of a
 * region can stand before the first use of the region's results.
 *
 * Called by PartitionGraph, before a region becomes a call. A region with
 * several results may need a value that is computed only behind the first of
 * them. Nodes are laid out again in depth-first order, where each end follows
 * all that its region takes. Statements and effects keep their order. */

#include "ir/graph/describe.h"
#include "ir/graph/layout/layout.h"
#include "transform/partition/region.h"

typedef struct ordering {
  pln_region_set *set;
  const pln_graph *g;
  pln_layout layout;
  uint8_t *state; /* by node: OPEN while its operands are laid out, DONE */
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
  pln_ref *latest; /* by scope: the last statement or effect laid out, + 1 */
} ordering;

enum { OPEN = 1, DONE = 2 };

/* --------------------------------------------------- whether it is necessary
 */

/* By region: the first of its ends. */
static void find_first_ends(pln_region_set *set, pln_ref *first) {
  const pln_graph *g = set->graph;
  memset(first, 0xff, set->count * sizeof *first);
  for (pln_ref node = g->n_nodes; node-- > 0;)
    if (pln_is_call_of_op(&g->nodes[node], set->ops.end) && set->region[node])
      first[pln_region_of(set, node)] = node;
}

static pln_status in_order(pln_region_set *set, bool *out) {
  const pln_graph *g = set->graph;
  size_t size = ((size_t)set->count + 1) * sizeof(pln_ref);
  pln_ref *first = pln_mem_new(set->ops.engine, size);
  if (!first)
    return pln_nomem(set->ops.engine);
  find_first_ends(set, first);
  *out = true;
  for (pln_ref node = 0; node < g->n_nodes; node++)
    if (pln_is_call_of_op(&g->nodes[node], set->ops.begin) &&
        set->region[node] &&
        pln_operand(g, node, 0) > first[pln_region_of(set, node)])
      *out = false;
  pln_mem_free(set->ops.engine, first, size);
  return PLN_OK;
}

/* ------------------------------------------------------------------ ordering
 */

static pln_status push(ordering *o, pln_ref node) {
  if (o->state[node] == DONE)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(o->set->ops.engine, (void **)&o->stack, &o->cap_stack,
                       (size_t)o->n_stack + 1, sizeof *o->stack));
  o->stack[o->n_stack++] = node;
  return PLN_OK;
}

/* Pushes what must stand before the node, the first on top. */
static pln_status push_before(ordering *o, pln_ref node) {
  const pln_node *n = &o->g->nodes[node];
  if (pln_is_call_of_op(n, o->set->ops.end) && o->set->region[node]) {
    uint32_t region = pln_region_of(o->set, node);
    for (pln_ref b = o->set->regions[region].begins.first; b != PLN_NONE;
         b = o->set->next[b])
      PLN_TRY(push(o, pln_operand(o->g, b, 0)));
  }
  for (uint32_t i = n->count; i-- > 0;)
    PLN_TRY(push(o, o->g->operands[n->first + i]));
  if (!pln_owns(n))
    return PLN_OK;
  for (pln_ref inner = node; inner-- > o->g->scopes[n->data].begin;)
    PLN_TRY(push(o, inner));
  return PLN_OK;
}

static pln_status refuse(const ordering *o, pln_ref node, const char *why) {
  pln_status status =
      pln_diag_error(o->set->ops.engine, PLN_ERR_UNSUPPORTED, NULL,
                     "the regions of compilers cannot be called: %s", why);
  pln_note_node(o->g, node);
  return status;
}

static pln_status lay_out(ordering *o, pln_ref node) {
  pln_ref *latest = &o->latest[o->layout.node_scope[node]];
  o->state[node] = DONE;
  o->layout.order[o->layout.n++] = node;
  if (!pln_is_scheduled(&o->g->nodes[node]))
    return PLN_OK;
  if (*latest > node)
    return refuse(o, node, "one needs an effect behind its first result");
  *latest = node + 1;
  return PLN_OK;
}

static pln_status lay_out_from(ordering *o, pln_ref root) {
  PLN_TRY(push(o, root));
  while (o->n_stack > 0) {
    pln_ref node = o->stack[o->n_stack - 1];
    if (o->state[node] == 0) {
      o->state[node] = OPEN;
      PLN_TRY(push_before(o, node));
      if (o->stack[o->n_stack - 1] != node &&
          o->state[o->stack[o->n_stack - 1]] == OPEN)
        return refuse(o, node, "one depends on its own result");
      continue;
    }
    o->n_stack--;
    if (o->state[node] == OPEN)
      PLN_TRY(lay_out(o, node));
  }
  return PLN_OK;
}

/* Parameters come first. */
static pln_status lay_out_all(ordering *o) {
  const pln_graph *g = o->g;
  for (pln_ref node = 0; node < g->n_nodes; node++)
    if (g->nodes[node].flags & PLN_NODE_PARAM)
      PLN_TRY(lay_out(o, node));
  for (pln_ref node = 0; node < g->n_nodes; node++)
    PLN_TRY(lay_out_from(o, node));
  return PLN_OK;
}

static pln_status fill_layout(ordering *o, pln_graph **out) {
  const pln_graph *g = o->g;
  pln_graph_node_scopes(g, o->layout.node_scope);
  for (pln_scope s = 0; s < g->n_scopes; s++)
    o->layout.result[s] = g->scopes[s].result;
  o->layout.result[0] = g->root;
  PLN_TRY(lay_out_all(o));
  PLN_TRY(pln_layout_place(&o->layout));
  return pln_layout_emit(&o->layout, out);
}

static pln_status lay_out_again(pln_region_set *set, pln_graph **out) {
  pln_engine *e = set->ops.engine;
  ordering o = {.set = set, .g = set->graph};
  size_t nodes = (size_t)o.g->n_nodes + 1, scopes = (size_t)o.g->n_scopes + 1;
  PLN_TRY(pln_layout_begin(&o.layout, o.g, o.g->root));
  o.state = pln_mem_zeroed(e, nodes);
  o.latest = pln_mem_zeroed(e, scopes * sizeof *o.latest);
  pln_status status = o.state && o.latest ? fill_layout(&o, out) : pln_nomem(e);
  pln_layout_end(&o.layout);
  pln_mem_free(e, o.state, nodes);
  pln_mem_free(e, o.latest, scopes * sizeof *o.latest);
  pln_mem_free(e, o.stack, o.cap_stack * sizeof *o.stack);
  return status;
}

pln_status pln_regions_put_in_order(pln_region_set *set, pln_graph **out) {
  bool ordered = false;
  PLN_TRY(in_order(set, &ordered));
  if (!ordered)
    return lay_out_again(set, out);
  *out = pln_graph_retain(set->graph);
  return PLN_OK;
}
