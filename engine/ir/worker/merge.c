/* merge.c: merges the results of a child engine into its parent. Records are
 * interned again in the parent; graphs and tensors keep their memory and change
 * owner.
 *
 * Called by pass/parallel/child_engine.c after all workers have stopped.
 * Invariants: everything that may fail comes first; transferring a graph needs
 * no memory. Records are merged in the order in which they were made, so the
 * parts of a record are merged before it. */

#include "ir/infer/digest.h"
#include "ir/intern_tables.h"
#include "ir/worker/child_engine.h"

/* -------------------------------------------------------------------- maps */

pln_status pln_merge_map_begin(pln_merge *j, pln_merge_map *map, uint32_t below,
                               uint32_t count) {
  *map = (pln_merge_map){.below = below};
  return pln_mem_grow(j->parent, (void **)&map->to, &map->capacity, count,
                      sizeof *map->to);
}

static pln_status merge_symbols(pln_merge *j) {
  const pln_interner *symbols = j->child->symbols;
  uint32_t below = pln_interner_inherited(symbols);
  uint32_t count = pln_interner_count(symbols) - below;
  PLN_TRY(pln_merge_map_begin(j, &j->symbols, below, count));
  for (; j->symbols.n < count; j->symbols.n++) {
    size_t size;
    const void *text = pln_interned(symbols, below + j->symbols.n + 1, &size);
    PLN_TRY(pln_intern(j->parent->symbols, text, size,
                       &j->symbols.to[j->symbols.n], NULL));
  }
  return PLN_OK;
}

/* Types refer to attributes and attributes to types, so the two tables are
 * merged in turns. The oldest unmerged record is always ready. */
static pln_status merge_types_and_attrs(pln_merge *j) {
  uint32_t n_types = pln_types_total(j->child) - j->types.below;
  uint32_t n_attrs = pln_attrs_total(j->child) - j->attrs.below;
  while (j->types.n < n_types || j->attrs.n < n_attrs) {
    uint32_t types = j->types.n, attrs = j->attrs.n;
    for (bool ready = true; ready && j->types.n < n_types;)
      PLN_TRY(pln_merge_type(j, &ready));
    for (bool ready = true; ready && j->attrs.n < n_attrs;)
      PLN_TRY(pln_merge_attrs(j, &ready));
    if (j->types.n == types && j->attrs.n == attrs)
      return pln_diag_error(j->parent, PLN_ERR_INVALID, NULL,
                            "a type and its attributes refer to each other");
  }
  return PLN_OK;
}

/* Counters that both sides incremented. */
static pln_status shift(pln_engine *parent, uint32_t *number, uint32_t below,
                        uint32_t now, pln_merge_offset *out) {
  uint32_t made = now - below;
  *out = (pln_merge_offset){below, *number - below};
  if (made > UINT32_MAX - *number)
    return pln_diag_error(parent, PLN_ERR_LIMIT, NULL,
                          "an engine has at most 4,294,967,295 variables");
  *number += made;
  return PLN_OK;
}

static pln_status merge_tables(pln_merge *j) {
  pln_engine *e = j->child;
  PLN_TRY(merge_symbols(j));
  PLN_TRY(pln_merge_ops(j));
  PLN_TRY(pln_merge_dims(j));
  PLN_TRY(pln_merge_values(j));
  uint32_t types = pln_types_inherited(e), attrs = pln_attrs_inherited(e);
  PLN_TRY(pln_merge_map_begin(j, &j->types, types, pln_types_total(e) - types));
  PLN_TRY(pln_merge_map_begin(j, &j->attrs, attrs, pln_attrs_total(e) - attrs));
  return merge_types_and_attrs(j);
}

pln_status pln_merge_begin(pln_merge *j, pln_engine *child) {
  *j = (pln_merge){.child = child, .parent = child->parent};
  const pln_parent_counts *at = pln_parent_counts_of(child);
  PLN_TRY(
      shift(j->parent, &j->parent->n_vars, at->vars, child->n_vars, &j->vars));
  PLN_TRY(shift(j->parent, &j->parent->n_type_vars, at->type_vars,
                child->n_type_vars, &j->type_vars));
  j->parent->n_inferences += child->n_inferences;
  PLN_TRY(merge_tables(j));
  return pln_borrowed_merge_origins(j);
}

static void free_map(pln_merge *j, pln_merge_map *map) {
  pln_mem_free(j->parent, map->to, map->capacity * sizeof *map->to);
}

void pln_merge_end(pln_merge *j) {
  if (!j->parent) /* merging never began */
    return;
  free_map(j, &j->symbols);
  free_map(j, &j->dims);
  free_map(j, &j->values);
  free_map(j, &j->types);
  free_map(j, &j->attrs);
  free_map(j, &j->ops);
}

/* ----------------------------------------------------------------- origins */

/* The merged number of an origin of a table whose rows and steps were
 * appended. */
static uint32_t shifted_step(const pln_origins *o, uint32_t origin) {
  bool step = origin & PLN_ORIGIN_STEP;
  if (!o->base ||
      (origin & ~PLN_ORIGIN_STEP) < (step ? o->steps_below : o->below))
    return origin;
  return origin +
         (step ? o->merged_steps - o->steps_below : o->merged - o->below);
}

static pln_change merged_change(const pln_merge *j, const pln_change *from) {
  return (pln_change){pln_merged_id(&j->symbols, from->pass),
                      pln_merged_id(&j->symbols, from->rule), from->run};
}

static pln_origin merged_origin(const pln_merge *j, const pln_origins *o,
                                const pln_origin *from) {
  pln_origin row = *from;
  row.name = pln_merged_id(&j->symbols, row.name);
  row.script = pln_merged_id(&j->symbols, row.script);
  row.place.source = pln_merged_id(&j->symbols, row.place.source);
  row.op = pln_merged_id(&j->ops, row.op);
  row.attrs = pln_merged_id(&j->attrs, row.attrs);
  row.attr_order = pln_merged_id(&j->attrs, row.attr_order);
  row.parent = shifted_step(o, row.parent);
  pln_file_adopt(j->parent, j->child, row.file);
  return row;
}

/* Equal steps are not merged, so that all numbers shift by the same offset. */
static pln_status merge_steps(const pln_merge *j, pln_origins *o) {
  for (uint32_t i = o->steps_below; i < o->n_steps; i++) {
    pln_origin_step step = o->steps[i - o->steps_below];
    pln_change change = merged_change(j, pln_origins_change(o, &step));
    step.parent = shifted_step(o, step.parent);
    step.other = shifted_step(o, step.other);
    PLN_TRY(pln_origins_move_step(o->base, &change, step));
  }
  return PLN_OK;
}

pln_status pln_merge_origins(pln_merge *j, pln_origins *o) {
  o->merged = o->base->count;
  o->merged_steps = o->base->n_steps;
  o->base->declares |= o->declares;
  o->base->lenient |= o->lenient;
  o->base->mismatched_calls |= o->mismatched_calls;
  for (uint32_t i = o->below; i < o->count; i++) {
    uint32_t at;
    pln_origin row = merged_origin(j, o, &o->rows[i - o->below]);
    PLN_TRY(pln_origins_add(o->base, &row, &at));
  }
  return merge_steps(j, o);
}

/* A table that the child made itself. */
static void adopt_origins(const pln_merge *j, pln_origins *o) {
  for (uint32_t i = 0; i < o->count; i++)
    o->rows[i] = merged_origin(j, o, &o->rows[i]);
  for (uint32_t i = 0; i < o->n_changes; i++)
    o->changes[i] = merged_change(j, &o->changes[i]);
  if (o->by_line)
    pln_idmap_free(o->by_line);
  o->by_line = NULL;
  pln_mem_move_account(j->parent, j->child, o->cap_steps * sizeof *o->steps);
  pln_mem_move_account(j->parent, j->child,
                       o->cap_sources * sizeof *o->sources);
  pln_mem_move_account(j->parent, j->child,
                       o->cap_changes * sizeof *o->changes);
  pln_mem_move_account(j->parent, j->child, o->cap_files * sizeof *o->files);
  pln_mem_move_account(j->parent, j->child, o->capacity * sizeof *o->rows);
  pln_mem_move_account(j->parent, j->child, sizeof *o);
  o->engine = j->parent;
}

/* Rebases the rows of a graph from the child's table to its parent's. */
static void rebase_origins(pln_graph *g) {
  pln_origins *o = g->origins;
  for (pln_ref i = 0; i < g->n_nodes; i++)
    g->origin[i] = shifted_step(o, g->origin[i]);
  for (pln_scope s = 0; s < g->n_scopes; s++)
    g->scopes[s].origin = shifted_step(o, g->scopes[s].origin);
  g->origins = pln_origins_retain(o->base);
  pln_origins_release(o);
}

static void join_origins(const pln_merge *j, pln_graph *g) {
  if (g->origins && g->origins->base)
    rebase_origins(g);
  else if (g->origins && g->origins->engine == j->child)
    adopt_origins(j, g->origins);
}

/* ----------------------------------------------------------------- tensors */

static void adopt_tensor(const pln_merge *j, pln_tensor *t) {
  if (t->owned)
    pln_mem_move_account(j->parent, j->child, t->block);
  pln_mem_move_account(j->parent, j->child,
                       sizeof *t + t->rank * sizeof *t->dims);
  pln_file_adopt(j->parent, j->child, t->file);
  t->where.directory = pln_merged_id(&j->symbols, t->where.directory);
  t->where.location = pln_merged_id(&j->symbols, t->where.location);
  t->engine = j->parent;
}

/* Makes a view of a borrowed tensor a view of the parent's tensor. */
static void end_borrowing(const pln_merge *j, pln_tensor *t) {
  pln_tensor *view_of = t->view_of;
  if (!view_of || view_of->engine != j->child)
    return;
  if (!view_of->parent_tensor) {
    adopt_tensor(j, view_of);
    return;
  }
  const pln_tensor *parent_tensor = view_of->parent_tensor;
  t->view_of = pln_tensor_retain(parent_tensor->view_of ? parent_tensor->view_of
                                                        : parent_tensor);
  pln_tensor_release(view_of);
}

pln_tensor *pln_merge_tensor(const pln_merge *j, pln_tensor *t) {
  if (t->engine != j->child)
    return t;
  if (t->parent_tensor)
    return (pln_tensor *)(uintptr_t)t->parent_tensor;
  adopt_tensor(j, t);
  end_borrowing(j, t);
  return t;
}

static void merge_tensors(const pln_merge *j, pln_graph *g) {
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    pln_tensor *t = g->tensors[i];
    pln_tensor *merged = pln_merge_tensor(j, t);
    if (merged == t)
      continue;
    g->tensors[i] = pln_tensor_retain(merged);
    pln_tensor_release(t);
  }
}

/* ------------------------------------------------------------------ graphs */

static void merge_node(const pln_merge *j, pln_node *n) {
  const pln_kind_info *kind = &pln_kinds[n->kind];
  n->type = pln_merged_id(&j->types, n->type);
  if (kind->payload == PLN_PAYLOAD_VAR) {
    n->data = pln_merged_number(j->vars, n->data);
    n->attrs = pln_merged_id(&j->symbols, n->attrs);
  } else if (kind->payload == PLN_PAYLOAD_SYMBOL ||
             kind->payload == PLN_PAYLOAD_HINT) {
    n->data = pln_merged_id(&j->symbols, n->data);
  } else if (kind->payload == PLN_PAYLOAD_OP) {
    n->data = pln_merged_id(&j->ops, n->data);
  }
  if (kind->has_attrs)
    n->attrs = pln_merged_id(&j->attrs, n->attrs);
}

static void merge_scope(const pln_merge *j, pln_scope_row *s) {
  s->attrs = pln_merged_id(&j->attrs, s->attrs);
  s->type_params = pln_merged_id(&j->types, s->type_params);
}

static void adopt_arrays(const pln_merge *j, const pln_graph *g) {
  const size_t sizes[] = {
      g->cap_nodes * sizeof *g->nodes,
      g->cap_operands * sizeof *g->operands,
      g->cap_scopes * sizeof *g->scopes,
      g->cap_tensors * sizeof *g->tensors,
      g->cap_values * sizeof *g->values,
      g->cap_origin * sizeof *g->origin,
      g->cap_typed_from * sizeof *g->typed_from,
      sizeof *g,
  };
  for (size_t i = 0; i < PLN_COUNT(sizes); i++)
    pln_mem_move_account(j->parent, j->child, sizes[i]);
}

/* Digests contain type ids, which change in the merge. Valid digests are
 * computed again. */
static void forget_stale(pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (!pln_type_digest_matches(g, i))
      g->typed_from[i] = PLN_TYPED_NEVER;
}

static void note_again(pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->typed_from[i] >= PLN_TYPED_FIRST)
      pln_type_digest_record(g, i);
}

pln_graph *pln_merge_graph(const pln_merge *j, pln_graph *g) {
  if (g->parent_graph) {
    pln_graph *parent_graph = pln_graph_retain(g->parent_graph);
    pln_graph_release(g);
    return parent_graph;
  }
  if (g->engine != j->child) /* it was merged before */
    return g;
  forget_stale(g);
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    merge_node(j, &g->nodes[i]);
    g->values[i] = pln_merged_id(&j->values, g->values[i]);
  }
  for (pln_scope s = 0; s < g->n_scopes; s++)
    merge_scope(j, &g->scopes[s]);
  note_again(g);
  join_origins(j, g);
  merge_tensors(j, g);
  adopt_arrays(j, g);
  g->engine = j->parent;
  return g;
}
