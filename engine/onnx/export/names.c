/* names.c: assigns the names of values in the exported model.
 *
 * Values keep their old names where these are free; others get new ones.
 * Invariant: a name belongs to one value of its graph and hides no value of an
 * enclosing graph that is used inside. A graph is named when it is opened,
 * after the graphs around it. */

#include <stdio.h>

#include "onnx/export/export.h"

const pln_origin *pln_export_origin(const pln_export *ex, pln_ref node) {
  return pln_onnx_origin(ex->g, node);
}

bool pln_export_is_own(const pln_export *ex, const pln_origin *origin) {
  const pln_message *source = &ex->frames[ex->n_frames - 1].source;
  return origin && source->data && origin->file == source->file &&
         origin->graph == pln_message_offset(*source) && !origin->whole;
}

pln_slice pln_export_name(const pln_export *ex, pln_ref node) {
  uint32_t slot = ex->slots[node];
  return slot == PLN_NONE ? (pln_slice){"", 0} : ex->names[slot];
}

/* ------------------------------------------------------------------- slots */

/* The number of results that a node names. */
static uint32_t results_of(const pln_node *n) {
  switch ((pln_kind)n->kind) {
  case PLN_VAR:
  case PLN_CONSTANT: return 1;
  case PLN_CALL:
  case PLN_IF: return n->results ? n->results : 1;
  default: return 0;
  }
}

static uint32_t item_slot(const pln_export *ex, const pln_node *n) {
  const pln_graph *g = ex->g;
  pln_ref tuple = pln_operands(g, n)[0];
  const pln_node *t = &g->nodes[tuple];
  if (t->kind == PLN_TUPLE)
    return n->data < t->count ? ex->slots[pln_operands(g, t)[n->data]]
                              : PLN_NONE;
  return n->data < results_of(t) ? ex->slots[tuple] + n->data : PLN_NONE;
}

/* A variable that is not a parameter has the slot of the value that its let
 * binds, or no slot. */
static bool has_own_slot(const pln_node *n) {
  return results_of(n) > 0 && (n->kind != PLN_VAR || n->flags & PLN_NODE_PARAM);
}

/* Projections and lets share the slot of the value that they forward. */
static void give_slots(pln_export *ex) {
  const pln_graph *g = ex->g;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    bool own = has_own_slot(n);
    ex->slots[i] = own ? ex->n_slots : PLN_NONE;
    ex->n_slots += own ? results_of(n) : 0;
    if (n->kind == PLN_TUPLE_GET_ITEM)
      ex->slots[i] = item_slot(ex, n);
    if (n->kind == PLN_LET)
      ex->slots[pln_operands(g, n)[0]] = ex->slots[pln_operands(g, n)[1]];
    for (uint32_t k2 = 0; k2 < n->count; k2++)
      ex->uses[pln_operands(g, n)[k2]] = 1;
  }
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      ex->uses[g->scopes[s].result] = 1;
}

/* The main graph's scope. */
static pln_scope main_scope(const pln_graph *g) {
  const pln_node *root = g->root == PLN_NONE ? NULL : &g->nodes[g->root];
  return root && root->kind == PLN_FUNCTION ? root->data : 0;
}

/* Marks result `node` of a scope as needed, unless it is a constant of an
 * enclosing graph, of which a nested graph writes its own
 * (pln_export_identity). */
static void need_result(pln_export *ex, pln_scope scope, pln_ref node) {
  const pln_graph *g = ex->g;
  if (g->nodes[node].kind != PLN_CONSTANT || scope == main_scope(g) ||
      pln_graph_scope_of(g, node) == scope)
    ex->uses[node] |= PLN_EXPORT_NEEDED;
}

/* Marks what is used otherwise than as the result of another graph. */
static void mark_needed(pln_export *ex) {
  const pln_graph *g = ex->g;
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_ref result = g->scopes[s].result;
    if (result == PLN_NONE)
      continue;
    need_result(ex, s, result);
    for (uint32_t k = 0;
         g->nodes[result].kind == PLN_TUPLE && k < g->nodes[result].count; k++)
      need_result(ex, s, pln_operand(g, result, k));
    ex->uses[result] |= PLN_EXPORT_IS_RESULT;
  }
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    bool fields = n->kind == PLN_TUPLE && (ex->uses[i] & PLN_EXPORT_IS_RESULT);
    for (uint32_t k = 0; k < n->count && !fields; k++)
      ex->uses[pln_operands(g, n)[k]] |= PLN_EXPORT_NEEDED;
  }
}

static void link_scopes(pln_export *ex) {
  const pln_graph *g = ex->g;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    ex->child[s] = PLN_NONE;
  for (pln_scope s = g->n_scopes; s-- > 1;) {
    pln_scope parent = g->scopes[s].parent;
    ex->sibling[s] = ex->child[parent];
    ex->child[parent] = s;
  }
}

pln_status pln_export_prepare(pln_export *ex) {
  pln_engine *e = ex->engine;
  const pln_graph *g = ex->g;
  size_t results = 0;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    results += results_of(&g->nodes[i]);
  if (results >= PLN_NONE)
    return pln_diag_error(e, PLN_ERR_LIMIT, NULL, "too many values to name");
  ex->n_slots = 0;
  ex->slots = pln_mem_new(e, g->n_nodes * sizeof *ex->slots);
  ex->node_scope = pln_mem_new(e, g->n_nodes * sizeof *ex->node_scope);
  ex->uses = pln_mem_zeroed(e, g->n_nodes);
  ex->child = pln_mem_new(e, g->n_scopes * sizeof *ex->child);
  ex->sibling = pln_mem_new(e, g->n_scopes * sizeof *ex->sibling);
  ex->names = pln_mem_zeroed(e, results * sizeof *ex->names);
  ex->names_room = ex->names ? results : 0;
  if (!ex->slots || !ex->node_scope || !ex->uses || !ex->child ||
      !ex->sibling || (results && !ex->names))
    return pln_nomem(e);
  memset(ex->node_scope, 0xff, g->n_nodes * sizeof *ex->node_scope);
  give_slots(ex);
  mark_needed(ex);
  link_scopes(ex);
  return PLN_OK;
}

/* ---------------------------------------------------------- nodes of a graph
 */

pln_scope_walk pln_export_walk(const pln_export *ex, pln_scope scope) {
  const pln_scope_row *row = &ex->g->scopes[scope];
  return (pln_scope_walk){row->begin, row->end, ex->child[scope]};
}

bool pln_export_next(const pln_export *ex, pln_scope_walk *w, pln_ref *out) {
  while (w->child != PLN_NONE && ex->g->scopes[w->child].begin == w->at) {
    w->at = ex->g->scopes[w->child].end;
    w->child = ex->sibling[w->child];
  }
  if (w->at >= w->end)
    return false;
  *out = w->at++;
  return true;
}

/* ------------------------------------------------------------------- claims */

static const pln_export_frame *top_names_frame(const pln_export *ex) {
  return &ex->frames[ex->n_frames - 1];
}

/* Returns true if a node of the current graph uses a value of an enclosing
 * graph that has this name. The search has a budget; when it is spent the
 * answer is true. */
static bool captured(pln_export *ex, pln_slice name) {
  const pln_graph *g = ex->g;
  const pln_scope_row *row = &g->scopes[top_names_frame(ex)->scope];
  uint64_t cost = row->end - row->begin + (uint64_t)g->n_scopes;
  if (ex->budget < cost)
    return true;
  ex->budget -= cost;
  for (pln_ref i = row->begin; i < row->end; i++)
    for (uint32_t k = 0; k < g->nodes[i].count; k++) {
      pln_ref used = pln_operand(g, i, k);
      bool outside = used < row->begin || used >= row->end;
      if (outside && pln_slice_equal(pln_export_name(ex, used), name))
        return true;
    }
  for (pln_scope s = top_names_frame(ex)->scope;
       s < g->n_scopes && g->scopes[s].begin <= row->end; s++)
    if (g->scopes[s].result < row->begin &&
        pln_slice_equal(pln_export_name(ex, g->scopes[s].result), name))
      return true;
  return false;
}

/* The open graph that contains the value of that row of ex->used. */
static const pln_export_frame *frame_of(const pln_export *ex, uint32_t row) {
  uint32_t low = 0, high = ex->n_frames;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (ex->frames[middle].mark > row)
      high = middle;
    else
      low = middle;
  }
  return &ex->frames[low];
}

/* Returns true if the file already uses both names so, in this order. ONNX
 * allows an outer graph to define a name of an inner graph after it, not
 * before. */
static bool shadows_in_file(const pln_export *ex, uint32_t row, pln_ref node) {
  const pln_origin *inner = pln_export_origin(ex, node);
  const pln_origin *outer = pln_export_origin(ex, ex->used.rows[row].value);
  const pln_message *in = &top_names_frame(ex)->source,
                    *out = &frame_of(ex, row)->source;
  if (!pln_export_is_own(ex, inner) || !outer || outer->file != out->file ||
      outer->graph != pln_message_offset(*out))
    return false;
  uint64_t begin = pln_message_offset(*in), from = pln_message_offset(*out);
  bool nested =
      in->file == out->file && begin > from && begin < from + out->size;
  bool was_before =
      !pln_origin_is_node(outer) || outer->offset + outer->length <= begin;
  bool is_before = !pln_origin_is_node(outer) ||
                   ex->used.rows[row].value <
                       ex->g->scopes[top_names_frame(ex)->scope].begin;
  return nested && was_before == is_before;
}

/* Returns true if `name` is free for a value of the current graph: that of
 * `node`, or a new one (PLN_NONE). *mine is the row of the current graph that
 * has the name, or PLN_NONE. */
static bool is_free(pln_export *ex, pln_slice name, pln_ref node,
                    uint32_t *own_row) {
  uint32_t row = pln_scoped_names_find(&ex->used, name, 0);
  *own_row =
      row != PLN_NONE && row >= top_names_frame(ex)->mark ? row : PLN_NONE;
  if (*own_row != PLN_NONE)
    return false;
  if (row == PLN_NONE)
    return true;
  return node != PLN_NONE && shadows_in_file(ex, row, node) &&
         !captured(ex, name);
}

static pln_status claim(pln_export *ex, uint32_t slot, pln_slice name,
                        pln_ref node) {
  ex->names[slot] = name;
  return pln_scoped_names_add(&ex->used, name, node);
}

/* If an earlier node of the same origin has the name, `node` takes it: of the
 * nodes that a pass made from one node, the last keeps the name. */
static void move_name_to_later(pln_export *ex, uint32_t row, uint32_t slot,
                               pln_ref node) {
  pln_ref before = ex->used.rows[row].value;
  const pln_origin *a = pln_export_origin(ex, before);
  if (!a || a != pln_export_origin(ex, node))
    return;
  const pln_node *n = &ex->g->nodes[before];
  for (uint32_t k = 0; k < results_of(n); k++) {
    pln_slice *old = &ex->names[ex->slots[before] + k];
    if (!pln_slice_equal(*old, ex->used.rows[row].name))
      continue;
    ex->names[slot] = *old;
    *old = (pln_slice){NULL, 0};
    ex->used.rows[row].value = node;
    return;
  }
}

static pln_status claim_natural(pln_export *ex, uint32_t slot, pln_slice name,
                                pln_ref node, uint32_t fixed) {
  uint32_t own_row;
  if (name.size == 0 || ex->names[slot].data)
    return PLN_OK;
  if (is_free(ex, name, node, &own_row))
    return claim(ex, slot, name, node);
  if (own_row != PLN_NONE && own_row >= fixed)
    move_name_to_later(ex, own_row, slot, node);
  return PLN_OK;
}

/* ------------------------------------------------------------ natural names */

/* The newest name given to the node or an ancestor; 0 if none. */
static pln_symbol given_name(const pln_export *ex, pln_ref node) {
  const pln_origins *origins = ex->g->origins;
  uint32_t row = ex->g->origin[node];
  while (origins && (row = pln_origins_source(origins, row)) != 0) {
    const pln_origin *o = pln_origins_row(origins, row);
    if (o->name)
      return o->name;
    if (o->file)
      return 0;
    row = o->parent;
  }
  return 0;
}

/* Writes the node's old names to ex->lists.outputs; *n is their number. */
static pln_status natural_names(pln_export *ex, pln_ref node, uint32_t *n,
                                pln_slice *one) {
  pln_symbol given = given_name(ex, node);
  pln_onnx_node scanned;
  *n = 0;
  if (given) {
    *one = pln_symbol_text(ex->engine, given);
    *n = 1;
    return PLN_OK;
  }
  const pln_origin *o = pln_export_origin(ex, node);
  if (!pln_origin_is_node(o))
    return PLN_OK;
  PLN_TRY(
      pln_node_scan(ex->engine, &ex->lists, pln_origin_message(o), &scanned));
  *n = scanned.n_outputs;
  *one = scanned.n_outputs ? ex->lists.outputs[0] : (pln_slice){"", 0};
  return PLN_OK;
}

static pln_status natural_name(pln_export *ex, pln_ref node, pln_slice *out) {
  uint32_t n;
  const pln_node *row = &ex->g->nodes[node];
  uint32_t index = 0;
  *out = (pln_slice){"", 0};
  if (row->kind == PLN_VAR) {
    *out = pln_symbol_text(ex->engine, row->attrs);
    return PLN_OK;
  }
  if (row->kind == PLN_TUPLE_GET_ITEM) {
    index = row->data;
    node = pln_operands(ex->g, row)[0];
  }
  PLN_TRY(natural_names(ex, node, &n, out));
  if (index >= n)
    *out = (pln_slice){"", 0};
  else if (index)
    *out = ex->lists.outputs[index];
  return PLN_OK;
}

static pln_status name_node(pln_export *ex, pln_ref node, uint32_t fixed) {
  uint32_t k = results_of(&ex->g->nodes[node]), n;
  uint32_t slot = ex->slots[node];
  pln_slice one;
  if (k == 0 || ex->g->nodes[node].kind == PLN_VAR)
    return PLN_OK;
  PLN_TRY(natural_names(ex, node, &n, &one));
  if (n && k == 1)
    return claim_natural(ex, slot, one, node, fixed);
  for (uint32_t i = 0; i < k && i < n; i++)
    PLN_TRY(claim_natural(ex, slot + i, ex->lists.outputs[i], node, fixed));
  return PLN_OK;
}

/* --------------------------------------------------------------- new names */

static pln_slice base_name(const pln_export *ex, pln_ref node,
                           pln_slice natural) {
  const pln_node *n = &ex->g->nodes[node];
  if (natural.size)
    return natural;
  if (n->kind != PLN_CALL || !n->data)
    return pln_text(n->kind == PLN_CONSTANT ? "constant" : "value");
  pln_slice name = pln_op_name(ex->engine, n->data);
  for (size_t i = name.size; i-- > 0;)
    if (name.data[i] == '.' || name.data[i] == ':')
      return (pln_slice){name.data + i + 1, name.size - i - 1};
  return name;
}

static pln_status make_name(pln_export *ex, pln_slice base, pln_slice *out) {
  uint32_t own_row;
  size_t size = base.size + 24;
  char *text = pln_arena_new(&ex->names_arena, size);
  if (!text)
    return pln_nomem(ex->engine);
  memcpy(text, base.data, base.size);
  do {
    int digits = snprintf(text + base.size, 24, "_%llu",
                          (unsigned long long)ex->n_made++);
    *out = (pln_slice){text, base.size + (size_t)digits};
  } while (!is_free(ex, *out, PLN_NONE, &own_row));
  return PLN_OK;
}

pln_status pln_export_new_name(pln_export *ex, pln_slice base, pln_ref node,
                               pln_slice *out) {
  PLN_TRY(make_name(ex, base, out));
  return pln_scoped_names_add(&ex->used, *out, node);
}

/* ONNX may require a result even if it is unused: all results get a name except
 * those without one in the file. */
static pln_status name_results(pln_export *ex, pln_ref node) {
  const pln_node *row = &ex->g->nodes[node];
  uint32_t slot = ex->slots[node], n;
  pln_slice one, made;
  PLN_TRY(natural_names(ex, node, &n, &one));
  for (uint32_t i = 0; i < row->results; i++) {
    pln_slice natural = {"", 0};
    if (ex->names[slot + i].data)
      continue;
    if (i < n)
      natural = n == 1 ? one : ex->lists.outputs[i];
    if (i < n && natural.size == 0)
      continue;
    PLN_TRY(make_name(ex, base_name(ex, node, natural), &made));
    PLN_TRY(claim(ex, slot + i, made, node));
  }
  return PLN_OK;
}

/* Names every used value, and every node that has no name yet. */
static pln_status name_rest(pln_export *ex, pln_ref node) {
  const pln_node *n = &ex->g->nodes[node];
  uint32_t slot = ex->slots[node];
  pln_slice natural, made;
  if (slot == PLN_NONE)
    return PLN_OK;
  if ((n->kind == PLN_CALL || n->kind == PLN_IF) && n->results > 1)
    return name_results(ex, node);
  if (ex->names[slot].data)
    return PLN_OK;
  bool single = n->kind == PLN_CONSTANT || n->kind == PLN_TUPLE_GET_ITEM ||
                (results_of(n) == 1 && n->results == 0);
  if (!single)
    return PLN_OK;
  PLN_TRY(natural_name(ex, node, &natural));
  if (!ex->uses[node] && !natural.size && pln_export_origin(ex, node))
    return PLN_OK;
  PLN_TRY(make_name(ex, base_name(ex, node, natural), &made));
  return claim(ex, slot, made, node);
}

/* ----------------------------------------------------------------- outputs */

static pln_status push_output(pln_export *ex, pln_slice name, pln_ref node) {
  PLN_TRY(pln_mem_grow(ex->engine, (void **)&ex->outputs, &ex->cap_outputs,
                       (size_t)ex->n_outputs + 1, sizeof *ex->outputs));
  ex->outputs[ex->n_outputs++] =
      (pln_export_output){.name = name, .node = node};
  return PLN_OK;
}

/* Lists the results of a scope with the names that its attributes give them. */
static pln_status list_outputs(pln_export *ex, pln_export_frame *f) {
  const pln_graph *g = ex->g;
  const pln_scope_row *row = &g->scopes[f->scope];
  const pln_node *result = &g->nodes[row->result];
  const pln_attr *names =
      pln_attrs_find(ex->engine, row->attrs, "output_names");
  uint32_t n_names =
      names && names->kind == PLN_ATTR_STRINGS ? names->count : 0;
  bool tuple = result->kind == PLN_TUPLE && n_names != 1;
  uint32_t n = tuple ? result->count : 1;
  f->outputs = ex->n_outputs;
  f->n_outputs = n;
  for (uint32_t i = 0; i < n; i++) {
    pln_ref node = tuple ? pln_operands(g, result)[i] : row->result;
    pln_slice name = i < n_names ? names->v.strings[i] : (pln_slice){"", 0};
    if (ex->slots[node] == PLN_NONE)
      return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                            "output %u is a %s, which cannot be an ONNX value",
                            i, pln_kind_name(pln_node_kind(g, node)));
    PLN_TRY(push_output(ex, name, node));
  }
  return PLN_OK;
}

/* Returns true if the value can take the name of an output: a node of this
 * graph computes it. */
static bool nameable(const pln_export *ex, const pln_export_frame *f,
                     pln_ref node) {
  pln_kind kind = pln_node_kind(ex->g, node);
  if (ex->node_scope[node] != f->scope)
    return false;
  if (kind == PLN_CONSTANT)
    return !pln_export_is_initializer(ex, node);
  return kind == PLN_CALL || kind == PLN_IF || kind == PLN_TUPLE_GET_ITEM;
}

/* An output without a name takes its value's name. */
static pln_status name_output(pln_export *ex, pln_export_output *o,
                              pln_slice natural) {
  uint32_t own_row;
  o->name = natural;
  if (natural.size == 0 || !is_free(ex, natural, o->node, &own_row))
    PLN_TRY(
        make_name(ex, natural.size ? natural : pln_text("output"), &o->name));
  return claim(ex, ex->slots[o->node], o->name, o->node);
}

/* First pass: values that already have the name of their output. */
static pln_status claim_outputs(pln_export *ex, const pln_export_frame *f,
                                bool natural_only) {
  for (uint32_t i = 0; i < f->n_outputs; i++) {
    pln_export_output *o = &ex->outputs[f->outputs + i];
    uint32_t slot = ex->slots[o->node], own_row;
    pln_slice natural;
    if (ex->names[slot].data || ex->node_scope[o->node] != f->scope)
      continue;
    PLN_TRY(natural_name(ex, o->node, &natural));
    bool same = o->name.size && pln_slice_equal(natural, o->name);
    if (natural_only ? !same : !nameable(ex, f, o->node))
      continue;
    if (o->name.size == 0)
      PLN_TRY(name_output(ex, o, natural));
    else if (is_free(ex, o->name, o->node, &own_row))
      PLN_TRY(claim(ex, slot, o->name, o->node));
  }
  return PLN_OK;
}

/* Reserves output names that no value has; Identities will define them. */
static pln_status reserve_outputs(pln_export *ex, const pln_export_frame *f) {
  for (uint32_t i = 0; i < f->n_outputs; i++) {
    pln_export_output *o = &ex->outputs[f->outputs + i];
    pln_slice name = pln_export_name(ex, o->node);
    uint32_t own_row;
    o->same = o->name.size && name.data && pln_slice_equal(name, o->name);
    if (o->same)
      continue;
    bool free = o->name.size && is_free(ex, o->name, o->node, &own_row);
    if (!free && o->name.size && ex->n_frames == 1)
      return pln_diag_error(ex->engine, PLN_ERR_INVALID, NULL,
                            "two outputs are called '%.*s'",
                            (int)(o->name.size & 0xff), o->name.data);
    if (!free)
      PLN_TRY(
          make_name(ex, o->name.size ? o->name : pln_text("output"), &o->name));
    PLN_TRY(pln_scoped_names_add(&ex->used, o->name, o->node));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- graphs */

/* In inner graphs, a conflicting parameter name is changed. The main graph's
 * inputs are named first, so they can only conflict with each other. */
static pln_status name_params(pln_export *ex, const pln_export_frame *f) {
  const pln_scope_row *row = &ex->g->scopes[f->scope];
  for (uint32_t i = 0; i < row->n_params; i++) {
    pln_ref node = row->begin + i;
    uint32_t own_row;
    pln_slice name = pln_symbol_text(ex->engine, ex->g->nodes[node].attrs);
    if (name.size == 0 || !is_free(ex, name, node, &own_row))
      PLN_TRY(make_name(ex, name.size ? name : pln_text("input"), &name));
    PLN_TRY(claim(ex, ex->slots[node], name, node));
  }
  return PLN_OK;
}

pln_status pln_export_name_graph(pln_export *ex) {
  pln_export_frame *f = &ex->frames[ex->n_frames - 1];
  pln_ref node;
  for (pln_scope_walk w = pln_export_walk(ex, f->scope);
       pln_export_next(ex, &w, &node);)
    ex->node_scope[node] = f->scope;
  PLN_TRY(name_params(ex, f));
  PLN_TRY(list_outputs(ex, f));
  PLN_TRY(claim_outputs(ex, f, true));
  PLN_TRY(claim_outputs(ex, f, false));
  PLN_TRY(reserve_outputs(ex, f));
  uint32_t fixed = ex->used.count;
  for (pln_scope_walk w = pln_export_walk(ex, f->scope);
       pln_export_next(ex, &w, &node);)
    PLN_TRY(name_node(ex, node, fixed));
  for (pln_scope_walk w = pln_export_walk(ex, f->scope);
       pln_export_next(ex, &w, &node);)
    PLN_TRY(name_rest(ex, node));
  return PLN_OK;
}
