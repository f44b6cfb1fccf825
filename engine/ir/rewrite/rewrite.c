/* rewrite.c: one sweep over a sealed graph that writes a new graph.
 *
 * Passes call it with a mutator. While the mutator changes nothing, nothing is
 * copied, and the result is the old graph itself. At the first change the
 * prefix is copied, and from there on each node is rebuilt from its new
 * operands. A node is inferred again only when the type, value or constness of
 * an operand differs from the old one. The inferred type then replaces the old
 * one, and a node that inference refuses fails the rewrite. The old type still
 * supplies what inference leaves open, provided that no operand lost
 * information. */

#include "ir/rewrite/rewrite.h"
#include "ir/graph/describe.h"

#include "ir/infer/apply.h"
#include "ir/infer/type_args.h"
#include "ir/provenance/rule_application.h"

/* ---------------------------------------------------------------- accessors */

const pln_graph *pln_rewrite_old(const pln_rewrite *rw) {
  return rw->old;
}

const pln_graph *pln_rewrite_graph(const pln_rewrite *rw) {
  return rw->b ? rw->b->graph : rw->old;
}

/* Requesting the builder announces a change. NULL when out of memory. */
pln_builder *pln_rewrite_builder(pln_rewrite *rw) {
  return pln_rewrite_materialise(rw) == PLN_OK ? rw->b : NULL;
}

static pln_ref image_of(const pln_rewrite *rw, pln_ref old) {
  pln_ref image = rw->map[old];
  return image == PLN_NONE ? PLN_NONE : image & ~PLN_IMAGE_MAY_DIFFER;
}

/* Returns true if inference reads the same of both nodes. A variable that a let
 * binds gets its type and effect later. */
static inline bool is_same_to_users(const pln_rewrite *rw, pln_ref old,
                                    pln_ref image) {
  const pln_graph *g = rw->b->graph;
  const pln_node *was = &rw->old->nodes[old], *is = &g->nodes[image];
  if (was->type != is->type || rw->old->values[old] != g->values[image] ||
      ((was->flags ^ is->flags) & PLN_NODE_CALL_EFFECT))
    return false;
  if (was->kind == PLN_VAR || is->kind == PLN_VAR)
    return was->flags & is->flags & PLN_NODE_PARAM;
  return was->kind == is->kind || is->kind != PLN_CONSTANT;
}

static inline void set_image(pln_rewrite *rw, pln_ref old, pln_ref image) {
  bool same = image == PLN_NONE || is_same_to_users(rw, old, image);
  rw->map[old] = same ? image : image | PLN_IMAGE_MAY_DIFFER;
}

pln_ref pln_rewrite_image(const pln_rewrite *rw, pln_ref old) {
  if (rw->b)
    return image_of(rw, old);
  return old < rw->swept ? old : PLN_NONE;
}

void pln_rewrite_bind(pln_rewrite *rw, pln_ref old, pln_ref node) {
  if (!rw->b && old == node)
    return;
  if (pln_rewrite_materialise(rw) == PLN_OK)
    set_image(rw, old, node);
}

void pln_rewrite_drop_extra_roots(pln_rewrite *rw) {
  rw->drop_kept = true;
}

/* --------------------------------------------------------- the first change */

static pln_status copy_scope_rows(pln_rewrite *rw) {
  for (uint32_t i = 1; i < rw->n_open; i++) {
    pln_builder *b = rw->b;
    PLN_TRY(pln_mem_grow(b->engine, (void **)&b->open, &b->cap_open,
                         (size_t)b->n_open + 1, sizeof *b->open));
    b->open[b->n_open++] = rw->open[i].old;
  }
  return PLN_OK;
}

/* Rows of scopes that are not swept yet are omitted. Open scopes have no end,
 * owner or result yet, but keep their parameters. */
static pln_status copy_scopes(pln_rewrite *rw) {
  const pln_graph *old = rw->old;
  pln_builder *b = rw->b;
  uint32_t n = 1;
  while (n < old->n_scopes && old->scopes[n].begin <= rw->at &&
         rw->scopes[n] != PLN_NONE)
    n++;
  PLN_TRY(pln_builder_reserve(b, 0, 0, n));
  for (pln_scope s = 0; s < n; s++) {
    b->graph->scopes[s] = old->scopes[s];
    if (old->scopes[s].owner >= rw->swept)
      b->graph->scopes[s].owner = PLN_NONE;
    if (old->scopes[s].owner >= rw->swept)
      b->graph->scopes[s].next = PLN_NONE;
    b->effects[s] = PLN_EFFECT_NONE;
  }
  for (uint32_t i = 0; i < rw->n_open; i++)
    b->graph->scopes[rw->open[i].old].end = PLN_NONE;
  b->graph->n_scopes = n;
  return copy_scope_rows(rw);
}

/* Replacements are built before what they replace is dropped. */
static size_t with_slack(uint32_t n) {
  return n + (size_t)n / 16 + 8;
}

static pln_status copy_nodes(pln_rewrite *rw) {
  const pln_graph *old = rw->old;
  pln_builder *b = rw->b;
  pln_graph *g = b->graph;
  uint32_t n = rw->swept;
  uint32_t operands = n ? old->nodes[n - 1].first + old->nodes[n - 1].count : 0;
  PLN_TRY(pln_builder_reserve(b, with_slack(old->n_nodes),
                              with_slack(old->n_operands), 0));
  memcpy(g->nodes, old->nodes, n * sizeof *g->nodes);
  memcpy(g->values, old->values, n * sizeof *g->values);
  memcpy(g->origin, old->origin, n * sizeof *g->origin);
  memcpy(g->typed_from, old->typed_from, n * sizeof *g->typed_from);
  if (operands)
    memcpy(g->operands, old->operands, operands * sizeof *g->operands);
  pln_scope_cursor cursor = {.graph = old};
  g->n_nodes = n;
  g->n_operands = operands;
  for (uint32_t i = 0; i < old->n_tensors; i++) {
    uint32_t index;
    PLN_TRY(pln_graph_add_tensor(g, old->tensors[i], &index));
  }
  for (uint32_t i = 0; i < n; i++) {
    b->node_scope[i] = pln_scope_cursor_at(&cursor, i);
    set_image(rw, i, i);
    uint8_t effect = g->nodes[i].flags & PLN_NODE_EFFECT;
    if (effect > b->effects[b->node_scope[i]])
      b->effects[b->node_scope[i]] = effect;
  }
  return PLN_OK;
}

/* All tensors are copied, so constants that are not swept yet keep their
 * index. */
static pln_status copy_prefix(pln_rewrite *rw) {
  const pln_graph *old = rw->old;
  size_t size = ((size_t)old->n_nodes + 1) * sizeof *rw->map;
  rw->map = pln_mem_new(rw->engine, size);
  if (!rw->map)
    return pln_nomem(rw->engine);
  memset(rw->map, 0xff, size);
  rw->b->scoped = true;
  rw->unmapped = rw->at;
  if (rw->at < old->n_nodes)
    rw->b->origin = old->origin[rw->at];
  if (old->origins)
    rw->b->graph->origins = pln_origins_retain(old->origins);
  PLN_TRY(copy_scopes(rw));
  return copy_nodes(rw);
}

pln_status pln_rewrite_materialise(pln_rewrite *rw) {
  if (rw->b)
    return PLN_OK;
  PLN_TRY(pln_builder_new(rw->engine, &rw->b));
  pln_status status = copy_prefix(rw);
  if (status == PLN_OK)
    return PLN_OK;
  pln_builder_free(rw->b);
  pln_mem_free(rw->engine, rw->map,
               ((size_t)rw->old->n_nodes + 1) * sizeof *rw->map);
  rw->b = NULL;
  rw->map = NULL;
  return status;
}

/* -------------------------------------------------------------- provenance */

static uint32_t old_origin(const pln_rewrite *rw) {
  return rw->at < rw->old->n_nodes ? rw->old->origin[rw->at] : 0;
}

/* Sets the origin of every node built since the last call: the current rule
 * application, applied to the nodes that it named or else to the node being
 * swept. */
static pln_status stamp(pln_rewrite *rw) {
  pln_ref n = rw->b ? rw->b->graph->n_nodes : rw->built;
  uint32_t old = old_origin(rw);
  if (rw->built >= n)
    return PLN_OK;
  pln_origins *origins = pln_builder_origins(rw->b);
  if (!origins)
    return PLN_ERR_NOMEM;
  for (; rw->built < n; rw->built++) {
    uint32_t *origin = &rw->b->graph->origin[rw->built];
    PLN_TRY(pln_origins_step(origins, *origin, *origin ? 0 : old, origin));
  }
  return pln_origins_step(origins, old, 0, &rw->b->origin);
}

/* A replacement always records the swept node as an origin, even when the rule
 * built it from other nodes. */
static pln_status stamp_answer(pln_rewrite *rw, pln_ref first, pln_ref node) {
  PLN_TRY(stamp(rw));
  if (!rw->b || node < first)
    return PLN_OK;
  uint32_t *origin = &rw->b->graph->origin[node], old = old_origin(rw);
  pln_origins *origins = rw->b->graph->origins;
  if (!(*origin & PLN_ORIGIN_STEP) || !old ||
      pln_origins_source(origins, *origin) == pln_origins_source(origins, old))
    return PLN_OK;
  const pln_origin_step *step = pln_origins_step_at(origins, *origin);
  if (!step->parent || step->other)
    return PLN_OK;
  return pln_origins_step(origins, step->parent, old, origin);
}

pln_status pln_rewrite_merge_origin(pln_rewrite *rw, pln_ref kept) {
  PLN_TRY(pln_rewrite_materialise(rw));
  pln_origins *origins = pln_builder_origins(rw->b);
  uint32_t *origin = &rw->b->graph->origin[kept];
  if (!origins)
    return PLN_ERR_NOMEM;
  return pln_origins_step(origins, *origin, old_origin(rw), origin);
}

/* Nodes built by a refused rule are unused, but those with effects would be
 * kept; so all of them are removed. */
pln_status pln_rewrite_apply(pln_rewrite *rw, const char *rule, bool *allowed) {
  PLN_TRY(pln_rule_apply(rw->engine, rule, rw->at, allowed));
  if (*allowed)
    return stamp(rw);
  pln_ref n = rw->b ? rw->b->graph->n_nodes : rw->built;
  for (; rw->built < n; rw->built++)
    rw->b->graph->nodes[rw->built].flags |= PLN_NODE_DROPPED;
  return PLN_OK;
}

/* ------------------------------------------------------------------- scopes */

static pln_scope here(const pln_rewrite *rw) {
  return rw->open[rw->n_open - 1].image;
}

static pln_status push_open(pln_rewrite *rw, pln_scope old, pln_scope image,
                            bool dissolved) {
  PLN_TRY(pln_mem_grow(rw->engine, (void **)&rw->open, &rw->cap_open,
                       (size_t)rw->n_open + 1, sizeof *rw->open));
  rw->open[rw->n_open++] =
      (pln_swept_scope){.old = old,
                        .image = image,
                        .value_numbers = rw->value_numbers.valid,
                        .dissolved = dissolved};
  return PLN_OK;
}

static pln_status open_rewritten_scope(pln_rewrite *rw, pln_scope old) {
  if (!rw->b) {
    rw->scopes[old] = old;
    return push_open(rw, old, old, false);
  }
  pln_scope image;
  PLN_TRY(pln_build_open(rw->b, &image));
  const pln_scope_row *row = &rw->old->scopes[old];
  rw->b->graph->scopes[image].n_params = row->n_params;
  rw->b->graph->scopes[image].type_params = row->type_params;
  rw->b->graph->scopes[image].origin = row->origin;
  rw->scopes[old] = image;
  return push_open(rw, old, image, false);
}

/* It is an error of the mutator when the result was dropped or lies in a
 * skipped scope. */
static pln_status end_scope(pln_rewrite *rw, const pln_swept_scope *s,
                            pln_ref result) {
  if (result == PLN_NONE)
    return pln_diag_error(rw->engine, PLN_ERR_ARGUMENT, NULL,
                          "the result of a scope was removed");
  return pln_build_end(rw->b, s->image, result, rw->old->scopes[s->old].attrs);
}

static pln_status leave_rewritten_scope(pln_rewrite *rw, pln_scope old,
                                        pln_ref *result) {
  rw->built = rw->b ? rw->b->graph->n_nodes : rw->swept;
  PLN_TRY(rw->mutator->leave(rw->mutator->ud, rw, old, result));
  return stamp(rw);
}

static pln_status close_scope(pln_rewrite *rw) {
  pln_swept_scope s = rw->open[rw->n_open - 1];
  pln_ref result = pln_rewrite_image(rw, rw->old->scopes[s.old].result);
  if (rw->mutator->leave && s.old && !s.dissolved)
    PLN_TRY(leave_rewritten_scope(rw, s.old, &result));
  rw->n_open--;
  if (s.dissolved)
    return PLN_OK;
  rw->value_numbers.valid = s.value_numbers;
  return rw->b ? end_scope(rw, &s, result) : PLN_OK;
}

/* ------------------------------------------------------------ rebuilt nodes */

/* Equal types of generic functions may differ in the names of bound
 * variables. */
static pln_status same_type(const pln_rewrite *rw, pln_type a, pln_type b,
                            bool *same) {
  *same = a == b;
  if (*same || pln_type_get_kind(rw->engine, a) != PLN_TYPE_FUNC ||
      pln_type_n_vars(rw->engine, a) == 0)
    return PLN_OK;
  return pln_type_equal(rw->engine, a, b, false, same);
}

/* How the inputs of a node's inference differ from those in the old graph. */
typedef struct difference {
  bool any;
  bool loses;       /* a known type became unknown or different */
  bool contradicts; /* a type became one that the old one does not allow */
  bool loses_value; /* the same for a symbolic value, which inference may use */
  bool params;      /* parameters of a function changed type */
  pln_ref old, now; /* the first operand with another type, or PLN_NONE */
} difference;

/* True if `now` contains all information of the type `old`. */
static pln_status refines(pln_engine *e, pln_type now, pln_type old,
                          bool *out) {
  bool conflict;
  pln_type met;
  *out = now == old || !old;
  if (*out || !now)
    return PLN_OK;
  PLN_TRY(pln_type_meet(e, now, old, &met, &conflict));
  *out = !conflict && met == now;
  return PLN_OK;
}

static pln_status note_loss(pln_engine *e, pln_type now, pln_type old,
                            difference *d) {
  pln_type both;
  bool fits;
  PLN_TRY(pln_type_unify(e, now, old, &both, &fits));
  d->loses = true;
  d->contradicts = d->contradicts || !fits;
  return PLN_OK;
}

static pln_status compare_types(const pln_rewrite *rw, pln_ref old,
                                pln_ref image, difference *d) {
  pln_type now = rw->b->graph->nodes[image].type;
  pln_type before = rw->old->nodes[old].type;
  bool same;
  PLN_TRY(same_type(rw, now, before, &same));
  if (same)
    return PLN_OK;
  PLN_TRY(refines(rw->engine, now, before, &same));
  d->any = true;
  if (!same)
    PLN_TRY(note_loss(rw->engine, now, before, d));
  if (d->old == PLN_NONE) {
    d->old = old;
    d->now = image;
  }
  return PLN_OK;
}

/* Records how an operand differs from the old one. */
static pln_status compare_rewritten_node(const pln_rewrite *rw, pln_ref old,
                                         pln_ref image, difference *d) {
  const pln_graph *g = rw->b->graph, *o = rw->old;
  uint8_t kind = g->nodes[image].kind, before = o->nodes[old].kind;
  PLN_TRY(compare_types(rw, old, image, d));
  if (g->values[image] != o->values[old]) {
    d->any = true;
    d->loses_value =
        d->loses_value ||
        !pln_value_refines(rw->engine, g->values[image], o->values[old]);
  }
  if (pln_node_call_effect(&g->nodes[image]) !=
      pln_node_call_effect(&o->nodes[old]))
    d->any = true;
  if (before == PLN_VAR && (kind == PLN_FUNCTION || kind == PLN_GLOBAL_VAR))
    d->any = true; /* the effect of its calls became known */
  if (kind != before && kind == PLN_CONSTANT)
    d->any = true;
  return PLN_OK;
}

static pln_status map_operands(pln_rewrite *rw, const pln_node *n,
                               pln_ref *images, difference *d) {
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref old = rw->old->operands[n->first + i];
    images[i] = image_of(rw, old);
    if (images[i] == PLN_NONE)
      return pln_diag_error(rw->engine, PLN_ERR_ARGUMENT, NULL,
                            "node %u uses a node that was removed", rw->at);
    if (!is_same_to_users(rw, old, images[i]))
      PLN_TRY(compare_rewritten_node(rw, old, images[i], d));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------ typing again */

/* The inferred type counts; the old one, which may have been declared, supplies
 * what is open. */
static pln_status merge_type(pln_rewrite *rw, pln_ref node, bool value) {
  pln_graph *g = rw->b->graph;
  bool conflict;
  pln_type met;
  PLN_TRY(pln_type_meet(rw->engine, g->nodes[node].type,
                        rw->old->nodes[rw->at].type, &met, &conflict));
  if (!conflict)
    g->nodes[node].type = met;
  if (value && !g->values[node])
    g->values[node] = rw->old->values[rw->at];
  pln_type_digest_record(g, node);
  return PLN_OK;
}

static void note_replaced(const pln_rewrite *rw) {
  pln_engine *e = rw->engine;
  pln_description was, is, before, now;
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_ref old = rw->contradicted.old, image = rw->contradicted.image;
  const char *rule = pln_symbol_text(e, rw->contradicted.rule).data;
  if (old == PLN_NONE)
    return;
  pln_diag_note(e, NULL, "%s%s%s replaced %s: %s by %s: %s",
                rw->contradicted.rule ? "rule '" : "the rewrite",
                rw->contradicted.rule ? rule : "",
                rw->contradicted.rule ? "'" : "",
                pln_describe_node(rw->old, old, &was),
                pln_describe_type(e, rw->old->nodes[old].type, &before),
                pln_describe_node(g, image, &is),
                pln_describe_type(e, g->nodes[image].type, &now));
}

/* Explains why inference refuses a node: which operand changed type, and which
 * replacement caused it. */
static void explain(pln_rewrite *rw, const difference *d) {
  pln_engine *e = rw->engine;
  pln_description before, now;
  rw->error_located = true;
  if (rw->mutator->retypes_results) /* no replacement caused it */
    return;
  if (d->old != PLN_NONE)
    pln_diag_note(e, NULL, "the rewrite changed this from %s to %s",
                  pln_describe_type(e, rw->old->nodes[d->old].type, &before),
                  pln_describe_type(e, rw->b->graph->nodes[d->now].type, &now));
  note_replaced(rw);
}

/* A file may contain an ill-typed call in a branch that is never taken, and
 * declare types that its nodes cannot have. It is a warning when the error
 * shows only because types became more precise, not because of a replacement
 * that contradicts what it replaced. */
static bool may_be_refused(const pln_rewrite *rw, bool refines) {
  const pln_origins *origins = rw->old->origins;
  if (rw->mutator->lenient)
    return true;
  return (refines || rw->contradicted.old == PLN_NONE) && origins &&
         origins->lenient;
}

/* Not reported: a problem that import reported already, and one that a lenient
 * mutator may still remove; check_refused() looks at what is left. */
static pln_status infer_again(pln_rewrite *rw, pln_ref node, bool refines) {
  bool lenient = rw->b->lenient;
  bool refused = rw->old->typed_from[rw->at] == PLN_TYPED_REFUSED;
  size_t mark = pln_diag_count(rw->engine);
  rw->b->lenient = refused || may_be_refused(rw, refines);
  pln_status status = pln_builder_infer(rw->b, node);
  rw->b->lenient = lenient;
  if ((refused || rw->mutator->lenient) && status == PLN_OK)
    pln_diag_drop(rw->engine, mark);
  return status;
}

/* A declared result type must be consistent with the body's type; the result is
 * the meet of both. */
static pln_status retype_function(pln_rewrite *rw, pln_ref node) {
  pln_engine *e = rw->engine;
  pln_type old = rw->old->nodes[rw->at].type;
  if (!old)
    return infer_again(rw, node, false);
  rw->b->graph->nodes[node].type =
      pln_type_part_at(e, old, pln_type_n_parts(e, old) - 1);
  PLN_TRY(infer_again(rw, node, false));
  rw->b->graph->nodes[node].type = 0;
  PLN_TRY(infer_again(rw, node, false));
  return merge_type(rw, node, false);
}

static pln_status check_patterns(pln_rewrite *rw, pln_ref node) {
  const pln_graph *g = rw->b->graph;
  pln_status status = pln_owns(&g->nodes[node])
                          ? pln_check_patterns(g, &g->nodes[node])
                          : PLN_OK;
  if (status == PLN_ERR_TYPE)
    pln_annotate_node(g, node);
  return status;
}

/* True for a call that inference refused when operands are only less known than
 * before: whatever inference says of them now, the call is still ill-typed. */
static bool stays_refused(const pln_rewrite *rw, const difference *d) {
  return rw->old->nodes[rw->at].kind == PLN_CALL &&
         rw->old->typed_from[rw->at] == PLN_TYPED_REFUSED && d->loses &&
         !d->contradicts;
}

static void note_effect(pln_rewrite *rw, pln_ref node) {
  uint8_t effect = rw->b->graph->nodes[node].flags & PLN_NODE_EFFECT;
  uint8_t *inside = &rw->b->effects[rw->b->node_scope[node]];
  if (effect > *inside)
    *inside = effect;
}

static void keep_old_type(pln_rewrite *rw, pln_ref node) {
  rw->b->graph->typed_from[node] = rw->old->typed_from[rw->at];
  pln_graph_call_effect(rw->b->graph, &rw->b->graph->nodes[node]);
  note_effect(rw, node);
}

static pln_status infer_rewritten_node(pln_rewrite *rw, pln_ref node,
                                       const difference *d) {
  pln_graph *g = rw->b->graph;
  bool by_signature = g->nodes[node].kind == PLN_FUNCTION && !d->params &&
                      !rw->mutator->retypes_results;
  pln_status status = by_signature ? retype_function(rw, node)
                                   : infer_again(rw, node, !d->loses);
  if (status == PLN_OK && g->nodes[node].kind == PLN_MATCH)
    status = check_patterns(rw, node);
  if (status == PLN_ERR_TYPE)
    explain(rw, d);
  PLN_TRY(status);
  bool by_value = g->nodes[node].kind == PLN_CALL && g->nodes[node].data;
  bool fill = !by_signature && !d->loses && !(by_value && d->loses_value) &&
              g->typed_from[node] != PLN_TYPED_REFUSED;
  return fill ? merge_type(rw, node, !d->loses_value) : PLN_OK;
}

/* --------------------------------------------------------------- with scopes
 */

/* The images of the owner's scopes; *whole: none was skipped. */
static void scopes_image(const pln_rewrite *rw, const pln_node *n,
                         pln_scope *first, bool *whole, pln_ref *result) {
  const pln_graph *old = rw->old;
  *whole = true;
  *result = PLN_NONE;
  *first = rw->scopes[n->data];
  for (pln_scope s = n->data; s != PLN_NONE; s = old->scopes[s].next) {
    bool own = rw->scopes[s] != PLN_NONE && !(rw->scopes[s] & 0x80000000u);
    if (!own)
      *whole = false;
    if (!own && rw->scopes[s] != PLN_NONE)
      *result = image_of(rw, old->scopes[s].result);
  }
}

static void adopt_scopes(pln_rewrite *rw, const pln_node *n, pln_ref owner) {
  const pln_graph *old = rw->old;
  pln_graph *g = rw->b->graph;
  for (pln_scope s = n->data; s != PLN_NONE; s = old->scopes[s].next) {
    pln_scope next = old->scopes[s].next;
    g->scopes[rw->scopes[s]].owner = owner;
    g->scopes[rw->scopes[s]].next =
        next == PLN_NONE ? PLN_NONE : rw->scopes[next];
  }
}

/* Compares the parameters of a scope in the old and in the new graph. */
static pln_status compare_params(const pln_rewrite *rw,
                                 const pln_scope_row *before,
                                 const pln_scope_row *row, difference *d) {
  difference own = {.old = PLN_NONE};
  if (row->n_params != before->n_params)
    own = (difference){.any = true, .loses = true, .params = true};
  for (uint32_t i = 0; i < row->n_params && !own.any; i++)
    PLN_TRY(compare_types(rw, before->begin + i, row->begin + i, &own));
  d->any = d->any || own.any;
  d->loses = d->loses || own.loses;
  d->params = d->params || own.any;
  return PLN_OK;
}

/* Records whether a scope's result or a parameter changed. */
static pln_status compare_scopes(const pln_rewrite *rw, const pln_node *n,
                                 difference *d) {
  const pln_graph *old = rw->old;
  for (pln_scope s = n->data; s != PLN_NONE; s = old->scopes[s].next) {
    const pln_scope_row *row = &rw->b->graph->scopes[rw->scopes[s]];
    PLN_TRY(compare_rewritten_node(rw, old->scopes[s].result, row->result, d));
    PLN_TRY(compare_params(rw, &old->scopes[s], row, d));
  }
  return PLN_OK;
}

static pln_status rebuild(pln_rewrite *rw, const pln_node *n,
                          const pln_ref *images, difference *d, pln_ref *out) {
  pln_node copy = *n;
  if (pln_owns(n)) {
    bool whole;
    scopes_image(rw, n, &copy.data, &whole, out);
    if (!whole)
      return PLN_OK;
    PLN_TRY(compare_scopes(rw, n, d));
    copy.type = n->kind == PLN_FUNCTION && d->any ? 0 : n->type;
  }
  if (rw->drop_kept)
    copy.flags &= (uint8_t)~PLN_NODE_KEEP;
  PLN_TRY(pln_builder_append(rw->b, &copy, n->count, images, out));
  rw->b->graph->values[*out] = rw->old->values[rw->at];
  if (pln_owns(n))
    adopt_scopes(rw, n, *out);
  if (d->any && !stays_refused(rw, d))
    return infer_rewritten_node(rw, *out, d);
  keep_old_type(rw, *out);
  return PLN_OK;
}

/* Returns true for a node whose copy has its type and effect if all operands
 * are the same to it. */
static bool depends_on_operands(const pln_rewrite *rw, const pln_node *n) {
  return !pln_owns(n) && !pln_has_callee(n) && !rw->retyped;
}

/* *out is PLN_NONE if an operand's image may differ. */
static pln_status copy_unchanged(pln_rewrite *rw, pln_ref *out) {
  PLN_TRY(pln_builder_copy(rw->b, rw->old, rw->at, rw->map, out));
  if (*out == PLN_NONE)
    return PLN_OK;
  if (rw->drop_kept)
    rw->b->graph->nodes[*out].flags &= (uint8_t)~PLN_NODE_KEEP;
  note_effect(rw, *out);
  return PLN_OK;
}

/* Rebuilds a node from the images of its operands. */
static pln_status rebuild_node(pln_rewrite *rw, pln_ref *out) {
  const pln_node *n = &rw->old->nodes[rw->at];
  pln_ref few[32], *images = few;
  size_t size = n->count * sizeof *images;
  if (size > sizeof few && !(images = pln_mem_new(rw->engine, size)))
    return pln_nomem(rw->engine);
  difference d = {.old = PLN_NONE};
  pln_status status = map_operands(rw, n, images, &d);
  if (status == PLN_OK)
    status = rebuild(rw, n, images, &d, out);
  if (images != few)
    pln_mem_free(rw->engine, images, size);
  return status;
}

static pln_status copy_node(pln_rewrite *rw, pln_ref *out) {
  pln_ref copy = PLN_NONE;
  rw->b->origin = rw->old->origin[rw->at];
  if (depends_on_operands(rw, &rw->old->nodes[rw->at]))
    PLN_TRY(copy_unchanged(rw, &copy));
  if (copy == PLN_NONE)
    return rebuild_node(rw, out);
  *out = copy;
  return PLN_OK;
}

/* -------------------------------------------------------------------- sweep */

/* Replaces a parameter by an unbound variable: the copied parameter becomes
 * that variable. At the end uses of the Var become uses of the parameter. */
static pln_status adopt_param(pln_rewrite *rw, pln_ref copy, pln_ref var) {
  PLN_TRY(pln_mem_grow(rw->engine, (void **)&rw->adopted, &rw->cap_adopted,
                       (size_t)rw->n_adopted + 1, sizeof *rw->adopted));
  const pln_node *from = &rw->b->graph->nodes[var];
  pln_node *to = &rw->b->graph->nodes[copy];
  to->data = from->data;
  to->attrs = from->attrs;
  to->type = from->type;
  rw->adopted[rw->n_adopted++] = (struct pln_rewrite_new_param){var, copy};
  set_image(rw, rw->at, copy);
  return PLN_OK;
}

static void use_params(const pln_rewrite *rw, const pln_ref *param,
                       pln_ref *ref) {
  if (*ref < rw->b->graph->n_nodes && param[*ref])
    *ref = param[*ref] - 1;
}

/* Redirects uses of a Var that became a parameter to the parameter. */
static pln_status use_adopted(pln_rewrite *rw, pln_ref *root) {
  pln_graph *g = rw->b->graph;
  size_t size = g->n_nodes * sizeof(pln_ref);
  pln_ref *param = pln_mem_zeroed(rw->engine, size);
  if (!param)
    return pln_nomem(rw->engine);
  for (uint32_t i = 0; i < rw->n_adopted; i++)
    param[rw->adopted[i].var] = rw->adopted[i].param + 1;
  for (uint32_t i = 0; i < g->n_operands; i++)
    use_params(rw, param, &g->operands[i]);
  for (pln_scope s = 0; s < g->n_scopes; s++)
    use_params(rw, param, &g->scopes[s].result);
  use_params(rw, param, root);
  pln_mem_free(rw->engine, param, size);
  return PLN_OK;
}

/* The mutator returned another node: removes the copy, if there is one. A
 * parameter stays in its list unless another variable replaces it. */
static pln_status replace_copied_node(pln_rewrite *rw, pln_ref copy,
                                      pln_ref node) {
  PLN_TRY(pln_rewrite_materialise(rw));
  const pln_node *nodes = rw->b->graph->nodes;
  if (rw->old->nodes[rw->at].flags & PLN_NODE_PARAM && copy != node &&
      copy != PLN_NONE && nodes[node].kind == PLN_VAR &&
      !(nodes[node].flags & PLN_NODE_PARAM) && rw->mutator->renames_params)
    return adopt_param(rw, copy, node);
  if (copy != PLN_NONE && node != copy &&
      !(rw->old->nodes[rw->at].flags & PLN_NODE_PARAM))
    pln_builder_drop(rw->b, copy);
  set_image(rw, rw->at, node);
  return PLN_OK;
}

/* Counts a replaced node against limit.rewrites. */
static pln_status count_rewrite(pln_engine *e) {
  if (++e->rewrites <= e->most_rewrites || !e->most_rewrites)
    return PLN_OK;
  return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                        "more nodes are replaced than limit.rewrites = %llu",
                        (unsigned long long)e->most_rewrites);
}

/* Maps declared types to their images. If nothing was copied yet, `copy` is the
 * old node's number. */
static pln_status map_type(pln_rewrite *rw, pln_ref copy) {
  pln_type old = rw->old->nodes[rw->at].type, image;
  PLN_TRY(pln_type_mutate(rw->types, old, &image));
  if (image == old)
    return PLN_OK;
  PLN_TRY(pln_rewrite_materialise(rw));
  rw->b->graph->nodes[copy].type = image;
  return PLN_OK;
}

static pln_status map_type_params(pln_rewrite *rw, pln_ref copy) {
  pln_scope scope = rw->old->nodes[rw->at].data;
  pln_type old = rw->old->scopes[scope].type_params, image;
  PLN_TRY(pln_type_mutate(rw->types, old, &image));
  if (image == old)
    return PLN_OK;
  PLN_TRY(pln_rewrite_materialise(rw));
  rw->b->graph->scopes[rw->scopes[scope]].type_params = image;
  rw->b->graph->nodes[copy].type = 0;
  return infer_rewritten_node(rw, copy,
                              &(difference){.params = true, .old = PLN_NONE});
}

static pln_status map_type_args(pln_rewrite *rw, pln_ref copy) {
  pln_attrs old = rw->old->nodes[rw->at].attrs, image;
  PLN_TRY(pln_mutate_type_args(rw->types, rw->engine, old, &image));
  if (image == old)
    return PLN_OK;
  PLN_TRY(pln_rewrite_materialise(rw));
  rw->b->graph->nodes[copy].attrs = image;
  return infer_rewritten_node(rw, copy,
                              &(difference){.loses = true, .old = PLN_NONE});
}

static pln_status map_types(pln_rewrite *rw, pln_ref copy) {
  uint8_t kind = rw->old->nodes[rw->at].kind;
  if (kind == PLN_VAR || kind == PLN_GLOBAL_VAR || kind == PLN_CONSTRUCTOR)
    return map_type(rw, copy);
  if (pln_has_callee(&rw->old->nodes[rw->at]))
    return map_type_args(rw, copy);
  return kind == PLN_FUNCTION ? map_type_params(rw, copy) : PLN_OK;
}

static void drop_built(pln_rewrite *rw, pln_ref from) {
  for (pln_ref i = from; rw->b && i < rw->b->graph->n_nodes; i++)
    rw->b->graph->nodes[i].flags |= PLN_NODE_DROPPED;
}

static pln_status refuse_contradiction(pln_rewrite *rw) {
  pln_status status =
      pln_diag_error(rw->engine, PLN_ERR_TYPE, NULL,
                     "the rewrite replaces a node by one of another type");
  note_replaced(rw);
  pln_annotate_node(rw->old, rw->at);
  rw->error_located = true;
  return status;
}

/* Remembers a replacement that contradicts the old type. An error at one of its
 * uses refers to it. If the mutator keeps types, the replacement is refused; in
 * the graph of a file, where a declaration may be wrong, *node is the candidate
 * again. `first`: the first node that the mutator built. */
static pln_status note_contradiction(pln_rewrite *rw, pln_ref candidate,
                                     pln_ref first, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_origins *origins = rw->old->origins;
  pln_type both;
  bool fits;
  PLN_TRY(pln_type_unify(rw->engine, g->nodes[candidate].type,
                         g->nodes[*node].type, &both, &fits));
  if (fits)
    return PLN_OK;
  if (rw->mutator->keeps_types && origins && origins->lenient) {
    drop_built(rw, first);
    *node = candidate;
    return PLN_OK;
  }
  rw->contradicted.old = rw->at;
  rw->contradicted.image = *node;
  rw->contradicted.rule = rw->engine->applications->rule;
  return rw->mutator->keeps_types ? refuse_contradiction(rw) : PLN_OK;
}

/* *node is PLN_NONE when the mutator leaves the node to be copied. */
static pln_status replace_uncopied_node(pln_rewrite *rw, pln_ref *node) {
  pln_ref first = rw->built = rw->b ? rw->b->graph->n_nodes : rw->swept;
  *node = PLN_NONE;
  if (rw->b)
    rw->b->origin = old_origin(rw);
  PLN_TRY(rw->mutator->replace(rw->mutator->ud, rw, rw->at, node));
  if (*node == PLN_NONE)
    return stamp(rw);
  PLN_TRY(count_rewrite(rw->engine));
  PLN_TRY(stamp_answer(rw, first, *node));
  return replace_copied_node(rw, PLN_NONE, *node);
}

static pln_status rewrite_current_node(pln_rewrite *rw) {
  pln_ref candidate = rw->at, copy = rw->at, replacement;
  if (rw->b)
    rw->unmapped = rw->b->graph->n_nodes;
  if (rw->mutator->replace) {
    PLN_TRY(replace_uncopied_node(rw, &replacement));
    if (replacement != PLN_NONE)
      return PLN_OK;
  }
  if (rw->b) {
    copy = rw->b->graph->n_nodes;
    PLN_TRY(copy_node(rw, &candidate));
    copy = candidate == copy ? copy : PLN_NONE;
  } else {
    rw->swept = rw->at + 1;
  }
  if (rw->types && copy != PLN_NONE)
    PLN_TRY(map_types(rw, copy));
  pln_ref node = candidate;
  pln_ref first = rw->built = rw->b ? rw->b->graph->n_nodes : rw->swept;
  if (rw->mutator->visit)
    PLN_TRY(rw->mutator->visit(rw->mutator->ud, rw, rw->at, &node));
  if (node != candidate)
    PLN_TRY(note_contradiction(rw, candidate, first, &node));
  if (node == candidate) {
    if (rw->b)
      set_image(rw, rw->at, node);
    return PLN_OK;
  }
  PLN_TRY(count_rewrite(rw->engine));
  PLN_TRY(stamp_answer(rw, first, node));
  return replace_copied_node(rw, copy, node);
}

static pln_status call_mutator_enter(pln_rewrite *rw, pln_scope s,
                                     pln_scope_action *action) {
  *action = PLN_SCOPE_KEEP;
  if (!rw->mutator->enter)
    return PLN_OK;
  return rw->mutator->enter(rw->mutator->ud, rw, s, action);
}

static pln_status close_until(pln_rewrite *rw, pln_scope parent) {
  while (rw->n_open && rw->open[rw->n_open - 1].old != parent)
    PLN_TRY(close_scope(rw));
  return PLN_OK;
}

/* Opens the scopes that begin at the current node. A skipped scope moves the
 * sweep to its end, past nested rows. */
static pln_status open_rows(pln_rewrite *rw, pln_scope *next) {
  const pln_graph *old = rw->old;
  while (*next < old->n_scopes && old->scopes[*next].begin == rw->at) {
    pln_scope s = (*next)++;
    PLN_TRY(close_until(rw, old->scopes[s].parent));
    pln_scope_action action;
    PLN_TRY(call_mutator_enter(rw, s, &action));
    if (action == PLN_SCOPE_KEEP) {
      PLN_TRY(open_rewritten_scope(rw, s));
      continue;
    }
    PLN_TRY(pln_rewrite_materialise(rw));
    if (action == PLN_SCOPE_DISSOLVE) {
      rw->scopes[s] = here(rw) | 0x80000000u;
      PLN_TRY(push_open(rw, s, here(rw), true));
      continue;
    }
    rw->at = old->scopes[s].end;
    while (*next < old->n_scopes && old->scopes[*next].begin < rw->at)
      (*next)++;
  }
  return PLN_OK;
}

/* Moves the sweep to the next node that the mutator must see. True: there is
 * none before `end`, or among the next ones. */
static bool pass_over(pln_rewrite *rw, pln_ref end) {
  if (end - rw->at > PLN_POLL_ROUNDS)
    end = rw->at + PLN_POLL_ROUNDS;
  rw->at = rw->mutator->next(rw->mutator->ud, rw->old, rw->at, end);
  rw->swept = rw->at;
  return rw->at == end;
}

/* Rewrites nodes of one scope. */
static pln_status rewrite_until(pln_rewrite *rw, pln_ref end) {
  while (rw->at < end) {
    PLN_TRY(pln_poll(rw->engine));
    if (!rw->b && rw->mutator->next && pass_over(rw, end))
      continue;
    PLN_TRY(rewrite_current_node(rw));
    rw->at++;
  }
  return PLN_OK;
}

static pln_status sweep(pln_rewrite *rw) {
  const pln_graph *old = rw->old;
  pln_scope next = 1;
  PLN_TRY(push_open(rw, 0, 0, false));
  rw->scopes[0] = 0;
  while (rw->at < old->n_nodes) {
    PLN_TRY(open_rows(rw, &next));
    while (old->scopes[rw->open[rw->n_open - 1].old].end <= rw->at)
      PLN_TRY(close_scope(rw));
    pln_ref end = old->scopes[rw->open[rw->n_open - 1].old].end;
    if (next < old->n_scopes && old->scopes[next].begin < end)
      end = old->scopes[next].begin;
    pln_status status = rewrite_until(rw, end);
    if (status != PLN_OK) {
      if (!rw->error_located)
        pln_note_node(old, rw->at);
      return status;
    }
  }
  return PLN_OK;
}

static bool has_kept(const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].flags & PLN_NODE_KEEP)
      return true;
  return false;
}

static void clear_kept(pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    g->nodes[i].flags &= (uint8_t)~PLN_NODE_KEEP;
}

static uint32_t count_refused(const pln_graph *g, pln_ref *last) {
  uint32_t n = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->typed_from[ref] == PLN_TYPED_REFUSED) {
      *last = ref;
      n++;
    }
  return n;
}

/* A lenient mutator leaves no call that inference refuses, but those that the
 * old graph has. */
static pln_status check_refused(const pln_rewrite *rw, const pln_graph *g) {
  pln_ref ref = PLN_NONE, before = PLN_NONE;
  if (!rw->mutator->lenient ||
      count_refused(g, &ref) <= count_refused(rw->old, &before))
    return PLN_OK;
  pln_status status =
      pln_diag_error(rw->engine, PLN_ERR_TYPE, NULL,
                     "the rewrite leaves a call that refuses its operands");
  pln_annotate_node(g, ref);
  return status;
}

static pln_status seal_rewritten_graph(pln_rewrite *rw, pln_graph **out) {
  if (!rw->b && rw->drop_kept && has_kept(rw->old))
    PLN_TRY(pln_rewrite_materialise(rw));
  if (!rw->b) {
    *out = pln_graph_retain(rw->old);
    return PLN_OK;
  }
  if (rw->drop_kept)
    clear_kept(rw->b->graph);
  pln_ref root = image_of(rw, rw->old->root);
  if (root == PLN_NONE)
    return pln_diag_error(rw->engine, PLN_ERR_ARGUMENT, NULL,
                          "the root of the graph was removed");
  if (rw->n_adopted)
    PLN_TRY(use_adopted(rw, &root));
  PLN_TRY(pln_builder_seal(rw->b, root, out));
  pln_status status = check_refused(rw, *out);
  if (status == PLN_OK)
    status = pln_origins_trim(*out);
  if (status == PLN_OK)
    return PLN_OK;
  pln_graph_release(*out);
  *out = NULL;
  return status;
}

pln_status pln_graph_rewrite(const pln_graph *graph, const pln_mutator *mutator,
                             pln_graph **out) {
  pln_engine *e = graph->engine;
  pln_rewrite rw = {.engine = e,
                    .old = graph,
                    .mutator = mutator,
                    .contradicted = {.old = PLN_NONE}};
  size_t scopes = ((size_t)graph->n_scopes + 1) * sizeof *rw.scopes;
  rw.scopes = pln_mem_new(e, scopes);
  pln_status status = rw.scopes ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK && mutator->type)
    status = pln_type_mutator_new(e, mutator->type, mutator->ud, &rw.types);
  if (status == PLN_OK) {
    memset(rw.scopes, 0xff, scopes);
    status = sweep(&rw);
  }
  if (status == PLN_OK)
    status = seal_rewritten_graph(&rw, out);
  pln_builder_free(rw.b);
  pln_type_mutator_free(rw.types);
  pln_mem_free(e, rw.map, ((size_t)graph->n_nodes + 1) * sizeof *rw.map);
  pln_mem_free(e, rw.scopes, scopes);
  pln_mem_free(e, rw.open, rw.cap_open * sizeof *rw.open);
  pln_mem_free(e, rw.adopted, rw.cap_adopted * sizeof *rw.adopted);
  pln_value_numbers_free(e, &rw.value_numbers);
  return status;
}
