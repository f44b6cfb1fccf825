/* inliner.c: copies graphs and replaces calls by function bodies, or moves
 * function bodies into graphs of their own.
 *
 * Called by DefuseOps, Inline, LambdaLift and Defunctionalization. Nodes are
 * copied in evaluation order with an explicit stack of frames: a scope, the
 * body of a called function, a lifted function. Invariants: the image of a node
 * is its last copy, which is the one visible to the users copied now; types are
 * inferred again where operands have other types; nothing recurses. */

#include "transform/functional/inliner.h"

#include "ir/graph/module.h"
#include "ir/provenance/rule_application.h"
#include "transform/functional/expression_tree.h"

typedef enum frame_kind { WHOLE, SCOPE, CALL, LITERAL, LIFTED } frame_kind;

/* Limit on the nodes made beyond those of the graph: repeated inlining of
 * functions that call others twice grows exponentially. */
enum { MAX_NEW_NODES = 1 << 22 };

struct pln_clone_frame {
  pln_clone_source *from;
  pln_ref at, end;
  pln_scope next; /* next row of the scope table to open */
  frame_kind kind;
  bool called;     /* part of a body that replaces a call */
  pln_attrs given; /* values of the attribute references in it */
  bool fresh;      /* bound variables get new identities */
  pln_scope row;   /* SCOPE: the old scope; CALL: the function's scope */
  pln_scope image; /* SCOPE: the new scope */
  /* CALL: the call; LITERAL: the GlobalVar; LIFTED: the function. */
  pln_ref user;
  pln_builder *outer; /* LIFTED */
  uint32_t saved;     /* LIFTED */
  pln_symbol rule; /* fresh: the rule application that inlined the function */
  uint32_t application;
};
typedef struct pln_clone_frame frame;

struct pln_clone_saved_image {
  pln_ref node, image;
};

/* ------------------------------------------------------------------ sources */

pln_status pln_clone_source_new(const pln_graph *g, pln_clone_source *out) {
  size_t n = g->n_nodes, k = g->n_scopes;
  *out = (pln_clone_source){.graph = g};
  out->map = pln_mem_new(g->engine, n * sizeof *out->map);
  out->scopes = pln_mem_new(g->engine, k * sizeof *out->scopes);
  out->bound = pln_mem_zeroed(g->engine, n);
  if (!out->map || !out->scopes || !out->bound)
    return pln_nomem(g->engine);
  memset(out->map, 0xff, n * sizeof *out->map);
  memset(out->scopes, 0xff, k * sizeof *out->scopes);
  for (pln_ref ref = 0; ref < n; ref++)
    if (g->nodes[ref].kind == PLN_LET)
      out->bound[pln_operand(g, ref, 0)] = 1;
  return PLN_OK;
}

void pln_clone_source_free(pln_clone_source *s) {
  const pln_graph *g = s->graph;
  if (!g)
    return;
  pln_mem_free(g->engine, s->map, g->n_nodes * sizeof *s->map);
  pln_mem_free(g->engine, s->scopes, g->n_scopes * sizeof *s->scopes);
  pln_mem_free(g->engine, s->bound, g->n_nodes);
  s->graph = NULL;
}

/* ------------------------------------------------------------------- images */

pln_status pln_clone_set_image(pln_clone_run *g, pln_clone_source *from,
                               pln_ref node, pln_ref image) {
  PLN_TRY(pln_mem_grow(g->engine, (void **)&g->saved, &g->cap_saved,
                       (size_t)g->n_saved + 1, sizeof *g->saved));
  g->saved[g->n_saved++] =
      (struct pln_clone_saved_image){node, from->map[node]};
  from->map[node] = image;
  return PLN_OK;
}

pln_status pln_clone_image(pln_clone_run *g, pln_clone_source *from,
                           pln_ref node, pln_ref *out) {
  *out = from->map[node];
  if (*out == PLN_NONE && g->callbacks->missing)
    PLN_TRY(g->callbacks->missing(g->callbacks->ud, g, from, node, out));
  if (*out != PLN_NONE)
    return PLN_OK;
  return pln_diag_error(g->engine, PLN_ERR_INVALID, NULL,
                        "node %u is used where it cannot be seen", node);
}

/* Returns true if the image has another type or effect than the node. */
static bool differs(const pln_clone_run *g, const pln_clone_source *from,
                    pln_ref node, pln_ref image) {
  const pln_graph *to = g->b->graph, *o = from->graph;
  return to->nodes[image].type != o->nodes[node].type ||
         to->values[image] != o->values[node] ||
         (to->nodes[image].kind == PLN_CONSTANT &&
          o->nodes[node].kind != PLN_CONSTANT);
}

static pln_status map_operands(pln_clone_run *g, pln_clone_source *from,
                               const pln_node *n, bool *changed) {
  PLN_TRY(pln_mem_grow(g->engine, (void **)&g->operands, &g->cap_operands,
                       n->count, sizeof *g->operands));
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref node = from->graph->operands[n->first + i];
    pln_ref image;
    PLN_TRY(pln_clone_image(g, from, node, &image));
    g->operands[i] = image;
    *changed |= differs(g, from, node, image);
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ copying */

static void note_effect(pln_builder *b, pln_ref node) {
  uint8_t effect = b->graph->nodes[node].flags & PLN_NODE_EFFECT;
  uint8_t *inside = &b->effects[b->node_scope[node]];
  if (effect > *inside)
    *inside = effect;
}

/* Infers the type of a copy. A node that a file declared with a type that
 * inference refuses keeps it without an error. What inference leaves open is
 * taken from the old node. */
static pln_status infer_cloned_node(pln_clone_run *g,
                                    const pln_clone_source *from, pln_ref old,
                                    pln_ref node) {
  pln_builder *b = g->b;
  bool lenient = b->lenient, conflict;
  bool refused = from->graph->typed_from[old] == PLN_TYPED_REFUSED;
  size_t mark = pln_diag_count(g->engine);
  pln_type met;
  b->lenient = refused || (g->module && pln_module_was_onnx(g->module));
  pln_status status = pln_builder_infer(b, node);
  b->lenient = lenient;
  if (refused && status == PLN_OK)
    pln_diag_drop(g->engine, mark);
  PLN_TRY(status);
  if (b->graph->typed_from[node] == PLN_TYPED_REFUSED)
    return PLN_OK;
  pln_type *type = &b->graph->nodes[node].type;
  PLN_TRY(pln_type_meet(g->engine, *type, from->graph->nodes[old].type, &met,
                        &conflict));
  if (!conflict)
    *type = met;
  pln_type_digest_record(b->graph, node);
  return PLN_OK;
}

/* Sets the origin of a copy to the rule application that inlined the
 * function. */
static pln_status stamp(pln_clone_run *g, const frame *f) {
  pln_origins *origins = pln_builder_origins(g->b);
  pln_applications *a = g->engine->applications;
  if (!origins)
    return PLN_ERR_NOMEM;
  a->rule = f->rule;
  a->number = f->application;
  return pln_origins_step(origins, g->b->origin, 0, &g->b->origin);
}

pln_status pln_clone_set_origin(pln_clone_run *g, pln_clone_source *from,
                                pln_ref node) {
  return pln_builder_derive(g->b, from->graph, node);
}

static pln_status append(pln_clone_run *g, pln_clone_source *from, pln_ref old,
                         pln_node node, pln_ref *out) {
  const pln_graph *graph = from->graph;
  const frame *f = &g->frames[g->n_frames - 1];
  pln_builder *b = g->b;
  if (node.kind == PLN_CONSTANT)
    PLN_TRY(
        pln_graph_add_tensor(b->graph, graph->tensors[node.data], &node.data));
  if (node.kind == PLN_VAR && f->fresh &&
      (from->bound[old] || node.flags & PLN_NODE_PARAM))
    node.data = ++g->engine->n_vars;
  if (f->fresh)
    node.flags &= (uint8_t)~PLN_NODE_KEEP;
  PLN_TRY(pln_builder_import_origin(b, graph, old, &b->origin));
  if (f->fresh)
    PLN_TRY(stamp(g, f));
  PLN_TRY(pln_builder_append(b, &node, node.count, g->operands, out));
  b->graph->values[*out] = graph->values[old];
  b->graph->typed_from[*out] = graph->typed_from[old];
  return PLN_OK;
}

/* Replaces attribute references by the attributes of the call. */
static pln_status resolve(const pln_clone_run *g, pln_node *n) {
  const frame *f = &g->frames[g->n_frames - 1];
  if (!f->called || n->kind != PLN_CALL)
    return PLN_OK;
  return pln_attrs_resolve(g->engine, n->attrs, f->given, &n->attrs);
}

/* Decides the type of a node after its scopes were attached. */
static pln_status settle_node_type(pln_clone_run *g,
                                   const pln_clone_source *from, pln_ref old,
                                   bool changed, pln_ref node) {
  if (changed)
    return infer_cloned_node(g, from, old, node);
  note_effect(g->b, node);
  return PLN_OK;
}

pln_status pln_clone_node(pln_clone_run *g, pln_clone_source *from, pln_ref old,
                          pln_ref *out) {
  const pln_node *n = &from->graph->nodes[old];
  pln_node node = *n;
  bool changed = false;
  PLN_TRY(map_operands(g, from, n, &changed));
  PLN_TRY(resolve(g, &node));
  changed |= node.attrs != n->attrs;
  PLN_TRY(append(g, from, old, node, out));
  return settle_node_type(g, from, old, changed, *out);
}

/* Returns true if a scope's result or a parameter has another type than
 * before. */
static bool scopes_differ(const pln_clone_run *g, const pln_clone_source *from,
                          const pln_node *n) {
  const pln_graph *o = from->graph;
  for (pln_scope s = n->data; s != PLN_NONE; s = o->scopes[s].next) {
    pln_ref result = g->b->graph->scopes[from->scopes[s]].result;
    if (differs(g, from, o->scopes[s].result, result))
      return true;
  }
  return false;
}

static void adopt_scopes(pln_clone_run *g, const pln_clone_source *from,
                         const pln_node *n, pln_ref owner) {
  const pln_graph *o = from->graph;
  for (pln_scope s = n->data; s != PLN_NONE; s = o->scopes[s].next) {
    pln_scope next = o->scopes[s].next;
    pln_scope_row *row = &g->b->graph->scopes[from->scopes[s]];
    row->owner = owner;
    row->next = next == PLN_NONE ? PLN_NONE : from->scopes[next];
  }
}

static pln_status copy_owner(pln_clone_run *g, pln_clone_source *from,
                             pln_ref old, pln_ref *out) {
  const pln_node *n = &from->graph->nodes[old];
  pln_node node = *n;
  bool changed = false;
  PLN_TRY(map_operands(g, from, n, &changed));
  changed |= scopes_differ(g, from, n);
  node.data = from->scopes[n->data];
  if (n->kind == PLN_FUNCTION && changed)
    node.type = 0;
  PLN_TRY(append(g, from, old, node, out));
  adopt_scopes(g, from, n, *out);
  return settle_node_type(g, from, old, changed, *out);
}

/* ------------------------------------------------------------------- frames */

static pln_status push_clone_frame(pln_clone_run *g, frame f) {
  PLN_TRY(pln_mem_grow(g->engine, (void **)&g->frames, &g->cap_frames,
                       (size_t)g->n_frames + 1, sizeof *g->frames));
  g->frames[g->n_frames++] = f;
  return PLN_OK;
}

static pln_status open_cloned_scope(pln_clone_run *g, const frame *f) {
  const pln_scope_row *row = &f->from->graph->scopes[f->next];
  frame inner = {.from = f->from,
                 .at = row->begin,
                 .end = row->end,
                 .next = f->next + 1,
                 .kind = SCOPE,
                 .called = f->called,
                 .given = f->given,
                 .fresh = f->fresh,
                 .row = f->next,
                 .rule = f->rule,
                 .application = f->application};
  PLN_TRY(pln_build_open(g->b, &inner.image));
  pln_scope_row *image = &g->b->graph->scopes[inner.image];
  image->n_params = row->n_params;
  image->type_params = row->type_params;
  PLN_TRY(pln_builder_import_origin_row(g->b, f->from->graph->origins,
                                        row->origin, &image->origin));
  f->from->scopes[f->next] = inner.image;
  return push_clone_frame(g, inner);
}

/* Skips the nodes of the function, its scopes included. Rows are sorted by
 * begin. */
static void skip_function_nodes(frame *f, pln_ref function) {
  const pln_graph *o = f->from->graph;
  pln_scope low = f->next, high = o->n_scopes;
  while (low < high) {
    pln_scope middle = low + (high - low) / 2;
    if (o->scopes[middle].begin <= function)
      low = middle + 1;
    else
      high = middle;
  }
  f->next = low;
  f->at = function + 1;
}

static pln_status begin_lift(pln_clone_run *g, const frame *f,
                             pln_ref function) {
  pln_clone_source *from = f->from;
  frame lifted = {.from = from,
                  .at = f->at,
                  .end = function + 1,
                  .next = f->next,
                  .kind = LIFTED,
                  .fresh = f->fresh,
                  .rule = f->rule,
                  .application = f->application,
                  .user = function,
                  .outer = g->b,
                  .saved = g->n_saved};
  PLN_TRY(push_clone_frame(g, lifted));
  pln_builder *inner;
  PLN_TRY(pln_builder_new(g->engine, &inner));
  g->b = inner;
  pln_builder_module(inner, g->module);
  if (from->graph->origins)
    inner->graph->origins = pln_origins_retain(from->graph->origins);
  inner->scoped = true;
  return g->callbacks->lift(g->callbacks->ud, g, from, function);
}

/* Opens a scope that begins at the frame's position. */
static pln_status begin_row(pln_clone_run *g, frame *f) {
  const pln_graph *o = f->from->graph;
  pln_ref owner = o->scopes[f->next].owner;
  bool requested = f->kind == LIFTED && f->user == owner;
  pln_clone_action action = PLN_CLONE_KEEP;
  if (o->nodes[owner].kind == PLN_FUNCTION && owner != o->root && !requested &&
      g->callbacks->function)
    action = g->callbacks->function(g->callbacks->ud, f->from, owner);
  if (action == PLN_CLONE_KEEP)
    return open_cloned_scope(g, f);
  if (action == PLN_CLONE_LIFT)
    return begin_lift(g, f, owner);
  skip_function_nodes(f, owner);
  return PLN_OK;
}

static pln_status begin_call(pln_clone_run *g, const frame *f, pln_ref call,
                             pln_clone_source *in, pln_ref function) {
  const pln_graph *callee = in->graph;
  pln_scope body = callee->nodes[function].data;
  const pln_scope_row *row = &callee->scopes[body];
  const pln_node *n = &f->from->graph->nodes[call];
  frame inner = {.from = in,
                 .at = row->begin + row->n_params,
                 .end = row->end,
                 .next = body + 1,
                 .kind = CALL,
                 .called = true,
                 .given = n->attrs,
                 .fresh = true,
                 .row = body,
                 .user = call,
                 .rule = g->engine->applications->rule,
                 .application = g->engine->applications->number};
  if (f->called)
    PLN_TRY(pln_attrs_resolve(g->engine, n->attrs, f->given, &inner.given));
  PLN_TRY(pln_function_given(callee, &inner.given));
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(pln_clone_image(g, f->from,
                            f->from->graph->operands[n->first + 1 + i],
                            &in->map[row->begin + i]));
  return push_clone_frame(g, inner);
}

/* Begins to copy a function in place of its name. */
static pln_status begin_literal(pln_clone_run *g, pln_ref name,
                                pln_clone_source *in, pln_ref function) {
  pln_scope body = in->graph->nodes[function].data;
  return push_clone_frame(
      g, (frame){.from = in,
                 .at = in->graph->scopes[body].begin,
                 .end = function + 1,
                 .next = body,
                 .kind = LITERAL,
                 .fresh = true,
                 .row = body,
                 .user = name,
                 .rule = g->engine->applications->rule,
                 .application = g->engine->applications->number});
}

static pln_status check_room(const pln_clone_run *g) {
  if (g->b->graph->n_nodes <= g->most)
    return PLN_OK;
  return pln_diag_error(g->engine, PLN_ERR_LIMIT, NULL,
                        "more than %u nodes would be copied into one function",
                        (unsigned)MAX_NEW_NODES);
}

static pln_status copy_node(pln_clone_run *g, frame *f) {
  pln_clone_source *from = f->from, *in = NULL;
  pln_ref at = f->at++, function = PLN_NONE, image;
  const pln_node *n = &from->graph->nodes[at];
  bool asks = n->kind == PLN_GLOBAL_VAR || (n->kind == PLN_CALL && !n->data);
  PLN_TRY(check_room(g));
  if (asks && g->callbacks->call)
    PLN_TRY(g->callbacks->call(g->callbacks->ud, g, from, at, &in, &function));
  if (function != PLN_NONE)
    return n->kind == PLN_CALL ? begin_call(g, f, at, in, function)
                               : begin_literal(g, at, in, function);
  PLN_TRY(pln_owns(n) ? copy_owner(g, from, at, &image)
                      : pln_clone_node(g, from, at, &image));
  from->map[at] = image;
  return PLN_OK;
}

/* --------------------------------------------------------- ends of the frames
 */

static pln_status end_scope(pln_clone_run *g, const frame *f) {
  const pln_scope_row *row = &f->from->graph->scopes[f->row];
  frame *below = &g->frames[g->n_frames - 1];
  pln_ref result;
  PLN_TRY(pln_clone_image(g, f->from, row->result, &result));
  below->at = f->end;
  below->next = f->next;
  return pln_build_end(g->b, f->image, result, row->attrs);
}

static pln_status end_call(pln_clone_run *g, const frame *f) {
  const frame *below = &g->frames[g->n_frames - 1];
  return pln_clone_image(g, f->from, f->from->graph->scopes[f->row].result,
                         &below->from->map[f->user]);
}

static void end_literal(pln_clone_run *g, const frame *f) {
  const frame *below = &g->frames[g->n_frames - 1];
  below->from->map[f->user] = f->from->map[f->end - 1];
}

static pln_status end_lift(pln_clone_run *g, const frame *f) {
  frame *below = &g->frames[g->n_frames - 1];
  pln_builder *inner = g->b;
  pln_ref made = f->from->map[f->user];
  g->b = f->outer;
  while (g->n_saved > f->saved) {
    struct pln_clone_saved_image *s = &g->saved[--g->n_saved];
    f->from->map[s->node] = s->image;
  }
  pln_status status =
      g->callbacks->lifted(g->callbacks->ud, g, f->from, f->user, inner, made,
                           &f->from->map[f->user]);
  pln_builder_free(inner);
  below->at = f->end;
  below->next = f->next;
  return status;
}

static pln_status end_frame(pln_clone_run *g) {
  frame f = g->frames[--g->n_frames];
  switch (f.kind) {
  case SCOPE: return end_scope(g, &f);
  case CALL: return end_call(g, &f);
  case LIFTED: return end_lift(g, &f);
  case LITERAL: end_literal(g, &f); break;
  case WHOLE: break;
  }
  return PLN_OK;
}

static pln_status clone_next_node(pln_clone_run *g) {
  frame *f = &g->frames[g->n_frames - 1];
  const pln_graph *o = f->from->graph;
  bool inside = f->next < o->n_scopes && o->scopes[f->next].begin == f->at &&
                o->scopes[f->next].owner < f->end;
  if (inside)
    return begin_row(g, f);
  return f->at == f->end ? end_frame(g) : copy_node(g, f);
}

/* ---------------------------------------------------------------------- run */

static pln_status run_clone_frames(pln_clone_run *g, pln_clone_source *from,
                                   pln_graph **out) {
  const pln_graph *o = from->graph;
  PLN_TRY(pln_builder_new(g->engine, &g->b));
  g->b->scoped = true;
  pln_builder_module(g->b, g->module);
  if (o->origins)
    g->b->graph->origins = pln_origins_retain(o->origins);
  PLN_TRY(push_clone_frame(
      g, (frame){.from = from, .end = o->n_nodes, .next = 1, .kind = WHOLE}));
  while (g->n_frames > 0)
    PLN_TRY(clone_next_node(g));
  pln_ref root;
  PLN_TRY(pln_clone_image(g, from, o->root, &root));
  return pln_builder_seal(g->b, root, out);
}

/* On failure, releases the builders of functions being lifted too. */
static void free_clone_run(pln_clone_run *g) {
  while (g->n_frames > 0) {
    frame *f = &g->frames[--g->n_frames];
    if (f->kind != LIFTED)
      continue;
    if (g->b != f->outer)
      pln_builder_free(g->b);
    g->b = f->outer;
  }
  pln_builder_free(g->b);
  pln_mem_free(g->engine, g->frames, g->cap_frames * sizeof *g->frames);
  pln_mem_free(g->engine, g->saved, g->cap_saved * sizeof *g->saved);
  pln_mem_free(g->engine, g->operands, g->cap_operands * sizeof *g->operands);
}

pln_status pln_clone_graph(pln_engine *engine,
                           const pln_clone_callbacks *callbacks,
                           const pln_module *module, pln_clone_source *from,
                           pln_graph **out) {
  pln_clone_run g = {
      .engine = engine, .callbacks = callbacks, .module = module};
  g.most = from->graph->n_nodes + (uint32_t)MAX_NEW_NODES;
  pln_status status = run_clone_frames(&g, from, out);
  free_clone_run(&g);
  return status;
}
