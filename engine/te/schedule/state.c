/* state.c: the state of a schedule: its tables of stages, axes and tensors, and
 * how the operations become stages.
 *
 * Used by the primitives and by lowering. Everything lies in one arena, or in
 * tables that only grow. */

#include "te/te.h"

/* ------------------------------------------------------------------- lists */

pln_status pln_te_push(pln_te_state *s, pln_te_list *list, uint32_t value) {
  if (list->n == list->cap) {
    uint32_t cap = list->cap ? 2 * list->cap : 4;
    uint32_t *items = pln_arena_new(&s->arena, cap * sizeof *items);
    if (!items)
      return pln_nomem(s->engine);
    if (list->n)
      memcpy(items, list->items, list->n * sizeof *items);
    list->items = items;
    list->cap = cap;
  }
  list->items[list->n++] = value;
  return PLN_OK;
}

pln_status pln_te_insert(pln_te_state *s, pln_te_list *list, uint32_t at,
                         uint32_t value) {
  PLN_TRY(pln_te_push(s, list, value));
  memmove(list->items + at + 1, list->items + at,
          (list->n - 1 - at) * sizeof *list->items);
  list->items[at] = value;
  return PLN_OK;
}

void pln_te_remove(pln_te_list *list, uint32_t at) {
  memmove(list->items + at, list->items + at + 1,
          (list->n - 1 - at) * sizeof *list->items);
  list->n--;
}

uint32_t pln_te_index(const pln_te_list *list, uint32_t value) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->items[i] == value)
      return i;
  return PLN_NONE;
}

/* ------------------------------------------------------------------- names */

pln_status pln_te_name(pln_te_state *s, pln_symbol base, const char *suffix,
                       pln_symbol *out) {
  char few[256], *text = few;
  pln_slice name = pln_symbol_text(s->engine, base);
  size_t more = strlen(suffix), size = name.size + more;
  if (size > sizeof few)
    text = pln_arena_new(&s->arena, size);
  if (!text)
    return pln_nomem(s->engine);
  memcpy(text, name.data, name.size);
  memcpy(text + name.size, suffix, more);
  return pln_symbol_intern(s->engine, (pln_slice){text, size}, out);
}

const char *pln_te_axis_name(const pln_te_state *s, uint32_t axis) {
  return pln_symbol_text(s->engine, s->axes[axis].name).data;
}

const char *pln_te_stage_name(const pln_te_state *s, uint32_t stage) {
  return pln_symbol_text(s->engine, s->stages[stage].name).data;
}

/* -------------------------------------------------------------------- axes */

static pln_status add_axis(pln_te_state *s, const pln_te_axis *axis,
                           uint32_t *out) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->axes, &s->cap_axes,
                       (size_t)s->n_axes + 1, sizeof *s->axes));
  PLN_TRY(pln_idmap_set(s->axis_of, (uint64_t)pln_at(s->a, axis->var)->u.value,
                        s->n_axes + 1));
  s->axes[s->n_axes] = *axis;
  *out = s->n_axes++;
  return PLN_OK;
}

pln_status pln_te_axis_of_var(pln_te_state *s, uint32_t stage, pln_term var,
                              pln_iter_type type, pln_term min, pln_term extent,
                              uint32_t *out) {
  pln_te_axis axis = {.var = var,
                      .name = (pln_symbol)pln_at(s->a, var)->b,
                      .type = (uint8_t)type,
                      .stage = stage,
                      .bind = PLN_NONE,
                      .min = min,
                      .extent = extent};
  return add_axis(s, &axis, out);
}

/* The identity for the next variable of the running step; 0: a new one. */
static uint32_t next_identity(const pln_te_state *s) {
  return s->made.n < s->n_given ? s->given[s->made.n] : 0;
}

static pln_status new_var(pln_te_state *s, pln_symbol name, pln_type type,
                          pln_term *out) {
  pln_ref ref;
  PLN_TRY(pln_build_var(s->b, name, type, next_identity(s), &ref));
  PLN_TRY(pln_te_push(s, &s->made, s->b->graph->nodes[ref].data));
  return pln_analyzer_import_built(s->a, s->b, ref, out);
}

pln_status pln_te_var_new(pln_te_state *s, pln_symbol name, pln_dtype dtype,
                          pln_term *out) {
  pln_type prim;
  PLN_TRY(pln_type_prim(s->engine, dtype, 1, &prim));
  return new_var(s, name, prim, out);
}

pln_status pln_te_axis_new(pln_te_state *s, uint32_t stage, pln_symbol name,
                           pln_dtype dtype, pln_iter_type type, pln_term min,
                           pln_term extent, uint32_t *out) {
  pln_term var;
  PLN_TRY(pln_te_var_new(s, name, dtype, &var));
  return pln_te_axis_of_var(s, stage, var, type, min, extent, out);
}

/* ----------------------------------------------------------------- tensors */

pln_status pln_te_tensor_add(pln_te_state *s, uint32_t stage, uint32_t index,
                             pln_term buffer, uint32_t *out) {
  pln_term data = pln_term_operand(s->a, buffer, 0);
  uint32_t var = (uint32_t)pln_at(s->a, data)->u.value;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->tensors, &s->cap_tensors,
                       (size_t)s->n_tensors + 1, sizeof *s->tensors));
  PLN_TRY(pln_idmap_set(s->tensor_of, var, s->n_tensors + 1));
  s->tensors[s->n_tensors] = (pln_te_tensor){
      .buffer = buffer, .var = var, .stage = stage, .index = index};
  *out = s->n_tensors++;
  return PLN_OK;
}

static pln_status pointer_var(pln_te_state *s, pln_symbol name, pln_type type,
                              pln_slice scope, pln_ref *out) {
  pln_type element = type, pointer;
  pln_symbol symbol;
  pln_term data;
  PLN_TRY(pln_symbol_intern(s->engine, scope, &symbol));
  if (pln_type_dtype(s->engine, type) == PLN_BOOL)
    PLN_TRY(pln_type_prim(s->engine, PLN_INT8, 1, &element));
  PLN_TRY(pln_type_make(s->engine, PLN_TYPE_POINTER, symbol, 1, &element,
                        &pointer));
  PLN_TRY(new_var(s, name, pointer, &data));
  return pln_analyzer_export(s->a, s->b, data, out);
}

static pln_status export_all(pln_te_state *s, uint32_t n, const pln_term *terms,
                             pln_ref **out) {
  *out = pln_arena_new(&s->arena, n * sizeof **out);
  if (!*out)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_analyzer_export(s->a, s->b, terms[i], &(*out)[i]));
  return PLN_OK;
}

pln_status pln_te_buffer_new(pln_te_state *s, pln_symbol name, pln_type type,
                             pln_slice scope, uint32_t rank,
                             const pln_term *shape, uint32_t n_strides,
                             const pln_term *strides, pln_attrs attrs,
                             pln_term *out) {
  pln_type index;
  pln_ref ref, *dims, *steps;
  pln_buffer_spec spec = {.name = name,
                          .type = type,
                          .attrs = attrs,
                          .rank = rank,
                          .n_strides = n_strides};
  pln_dtype dtype = rank ? pln_te_dtype(s, shape[0]) : PLN_INT32;
  PLN_TRY(pointer_var(s, name, type, scope, &spec.data));
  PLN_TRY(export_all(s, rank, shape, &dims));
  PLN_TRY(export_all(s, n_strides, strides, &steps));
  spec.shape = dims;
  spec.strides = steps;
  PLN_TRY(pln_type_prim(s->engine, dtype, 1, &index));
  PLN_TRY(pln_build_int_imm(s->b, index, 0, &spec.elem_offset));
  PLN_TRY(pln_build_buffer(s->b, &spec, &ref));
  return pln_analyzer_import_built(s->a, s->b, ref, out);
}

pln_status pln_te_tensor_new(pln_te_state *s, uint32_t stage, uint32_t index,
                             pln_symbol name, pln_type type, uint32_t rank,
                             const pln_term *shape, uint32_t *out) {
  pln_term buffer;
  PLN_TRY(pln_te_buffer_new(s, name, type, (pln_slice){"global", 6}, rank,
                            shape, 0, NULL, 0, &buffer));
  return pln_te_tensor_add(s, stage, index, buffer, out);
}

uint32_t pln_te_tensor_of(const pln_te_state *s, pln_term buffer) {
  if (pln_term_kind(s->a, buffer) != PLN_BUFFER)
    return PLN_NONE;
  pln_term data = pln_term_operand(s->a, buffer, 0);
  return pln_idmap_get(s->tensor_of, (uint64_t)pln_at(s->a, data)->u.value) - 1;
}

uint32_t pln_te_load_tensor(const pln_te_state *s, pln_term load) {
  return pln_te_tensor_of(s, pln_term_operand(s->a, load, 0));
}

/* ------------------------------------------------------------------ stages */

pln_status pln_te_stage_new(pln_te_state *s, pln_te_kind kind, pln_symbol name,
                            uint32_t *out) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->stages, &s->cap_stages,
                       (size_t)s->n_stages + 1, sizeof *s->stages));
  s->stages[s->n_stages] = (pln_te_stage){.kind = (uint8_t)kind,
                                          .attach = PLN_ATTACH_ROOT,
                                          .name = name,
                                          .attach_stage = PLN_NONE,
                                          .attach_axis = PLN_NONE,
                                          .group = PLN_NONE,
                                          .first_tensor = s->n_tensors,
                                          .stmt = PLN_NONE};
  *out = s->n_stages++;
  return PLN_OK;
}

pln_status pln_te_relate(pln_te_state *s, uint32_t stage,
                         pln_te_relation relation) {
  pln_te_stage *g = &s->stages[stage];
  if (g->n_relations == g->cap_relations) {
    uint32_t cap = g->cap_relations ? 2 * g->cap_relations : 4;
    pln_te_relation *more = pln_arena_new(&s->arena, cap * sizeof *more);
    if (!more)
      return pln_nomem(s->engine);
    if (g->n_relations)
      memcpy(more, g->relations, g->n_relations * sizeof *more);
    g->relations = more;
    g->cap_relations = cap;
  }
  g->relations[g->n_relations++] = relation;
  return PLN_OK;
}

static pln_status append_axes(pln_te_state *s, uint32_t stage,
                              const pln_te_list *axes) {
  for (uint32_t i = 0; i < axes->n; i++) {
    pln_te_stage *g = &s->stages[stage];
    PLN_TRY(pln_te_push(s, &g->all, axes->items[i]));
    if (s->axes[axes->items[i]].type != PLN_ITER_OPAQUE)
      PLN_TRY(pln_te_push(s, &g->leaves, axes->items[i]));
  }
  return PLN_OK;
}

pln_status pln_te_stage_reset(pln_te_state *s, uint32_t stage) {
  pln_te_stage *g = &s->stages[stage];
  g->all.n = g->leaves.n = g->n_relations = 0;
  PLN_TRY(append_axes(s, stage, &g->axis));
  PLN_TRY(append_axes(s, stage, &s->stages[stage].reduce));
  g = &s->stages[stage];
  for (uint32_t i = 0; i < g->leaves.n; i++)
    s->axes[g->leaves.items[i]].step = 0;
  return PLN_OK;
}

/* --------------------------------------------------- operations to stages */

static pln_status import_part(pln_te_state *s, const pln_te_op *op, uint32_t i,
                              pln_term *out) {
  return pln_analyzer_import(s->a, op->graph, pln_te_part(op, i), out);
}

/* An IterVar as an axis of the stage. */
static pln_status axis_of_term(pln_te_state *s, uint32_t stage, pln_term iter,
                               uint32_t *out) {
  const pln_term_node *n = pln_at(s->a, iter);
  pln_iter_type type = (pln_iter_type)(uint32_t)n->u.data;
  pln_term range = n->n > 1 ? pln_term_operand(s->a, iter, 1) : PLN_NO_TERM;
  return pln_te_axis_of_var(
      s, stage, pln_term_operand(s->a, iter, 0), type,
      range ? pln_term_operand(s->a, range, 0) : PLN_NO_TERM,
      range ? pln_term_operand(s->a, range, 1) : PLN_NO_TERM, out);
}

/* A loop of a statement is what its axis says: parallel, unrolled, vectorized.
 */
static void note_loop(pln_te_axis *axis, uint32_t nest) {
  axis->nest = nest;
  if (axis->type >= PLN_ITER_UNROLLED)
    axis->loop = axis->type;
}

static pln_status import_axes(pln_te_state *s, uint32_t stage) {
  const pln_te_op *op = s->stages[stage].op;
  for (uint32_t i = 0; i < op->n_axis; i++) {
    pln_term term;
    uint32_t axis;
    PLN_TRY(import_part(s, op, op->n_outputs + i, &term));
    PLN_TRY(axis_of_term(s, stage, term, &axis));
    if (op->nests)
      note_loop(&s->axes[axis], op->nests[i].nest);
    PLN_TRY(pln_te_push(s, &s->stages[stage].axis, axis));
  }
  return PLN_OK;
}

static pln_status import_reduce_axes(pln_te_state *s, uint32_t stage,
                                     pln_term body) {
  if (pln_term_kind(s->a, body) != PLN_REDUCE)
    return PLN_OK;
  pln_te_reduce r = pln_te_reduce_of(s, body);
  for (uint32_t i = 0; i < r.n_axes; i++) {
    uint32_t axis;
    PLN_TRY(axis_of_term(s, stage, pln_term_operand(s->a, body, r.axis + i),
                         &axis));
    PLN_TRY(pln_te_push(s, &s->stages[stage].reduce, axis));
  }
  return PLN_OK;
}

static pln_status import_body(pln_te_state *s, uint32_t stage) {
  const pln_te_op *op = s->stages[stage].op;
  for (uint32_t i = 0; i < op->n_body; i++) {
    pln_term term;
    PLN_TRY(import_part(s, op, op->n_outputs + op->n_axis + i, &term));
    if (i == 0 && op->kind == PLN_TE_COMPUTE)
      PLN_TRY(import_reduce_axes(s, stage, term));
    if (op->kind == PLN_TE_SCAN)
      term = pln_te_tensor_of(s, term);
    PLN_TRY(pln_te_push(s, &s->stages[stage].body, term));
  }
  return PLN_OK;
}

static pln_status import_outputs(pln_te_state *s, uint32_t stage) {
  const pln_te_op *op = s->stages[stage].op;
  s->stages[stage].first_tensor = s->n_tensors;
  s->stages[stage].n_tensors = op->n_outputs;
  for (uint32_t i = 0; i < op->n_outputs; i++) {
    pln_term buffer;
    uint32_t tensor;
    PLN_TRY(import_part(s, op, i, &buffer));
    PLN_TRY(pln_te_tensor_add(s, stage, i, buffer, &tensor));
  }
  return PLN_OK;
}

static pln_status add_op(pln_te_state *s, const pln_te_op *op) {
  uint32_t stage;
  PLN_TRY(pln_te_stage_new(s, (pln_te_kind)op->kind, op->name, &stage));
  s->stages[stage].op = op;
  PLN_TRY(import_outputs(s, stage));
  PLN_TRY(import_axes(s, stage));
  PLN_TRY(import_body(s, stage));
  PLN_TRY(pln_te_stage_reset(s, stage));
  return pln_te_push(s, &s->order, stage);
}

/* ------------------------------------------------------------- post-order */

typedef struct op_walk {
  pln_te_state *s;
  pln_idmap *seen; /* address -> 1 */
  const pln_te_op **stack;
  uint32_t *next; /* the next input of each */
  uint32_t n, cap, cap_next;
} op_walk;

static pln_status enter_op(op_walk *w, const pln_te_op *op) {
  pln_engine *e = w->s->engine;
  if (pln_idmap_get(w->seen, (uintptr_t)op))
    return PLN_OK;
  PLN_TRY(pln_idmap_set(w->seen, (uintptr_t)op, 1));
  PLN_TRY(pln_mem_grow(e, (void **)&w->stack, &w->cap, (size_t)w->n + 1,
                       sizeof *w->stack));
  PLN_TRY(pln_mem_grow(e, (void **)&w->next, &w->cap_next, (size_t)w->n + 1,
                       sizeof *w->next));
  w->stack[w->n] = op;
  w->next[w->n++] = 0;
  return PLN_OK;
}

/* Inputs before users, in the order in which users read them. */
static pln_status walk_op(op_walk *w, const pln_te_op *root) {
  PLN_TRY(enter_op(w, root));
  while (w->n > 0) {
    const pln_te_op *op = w->stack[w->n - 1];
    if (w->next[w->n - 1] < op->n_inputs) {
      PLN_TRY(enter_op(w, op->inputs[w->next[w->n - 1]++]));
      continue;
    }
    w->n--;
    PLN_TRY(add_op(w->s, op));
  }
  return PLN_OK;
}

static pln_status add_ops(pln_te_state *s, uint32_t n, pln_te_op *const *ops) {
  op_walk w = {.s = s};
  pln_status status = pln_idmap_new(s->engine, &w.seen);
  for (uint32_t i = 0; status == PLN_OK && i < n; i++)
    status = walk_op(&w, ops[i]);
  pln_idmap_free(w.seen);
  pln_mem_free(s->engine, w.stack, w.cap * sizeof *w.stack);
  pln_mem_free(s->engine, w.next, w.cap_next * sizeof *w.next);
  return status;
}

static uint32_t stage_of_op(const pln_te_state *s, const pln_te_op *op) {
  uint32_t var = pln_te_buffer_var(op->graph, pln_te_part(op, 0));
  return s->tensors[pln_idmap_get(s->tensor_of, var) - 1].stage;
}

/* The stages of a scan's updates are a group, which belongs to the scan. */
static pln_status group_updates(pln_te_state *s, uint32_t stage) {
  const pln_te_op *op = s->stages[stage].op;
  const pln_te_list *body = &s->stages[stage].body;
  pln_te_list inputs = {0};
  uint32_t group, n = op->n_outputs;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_te_push(s, &inputs, body->items[2 * n + i]));
  for (uint32_t i = 3 * n; i < body->n; i++)
    PLN_TRY(pln_te_push(s, &inputs, body->items[i]));
  PLN_TRY(pln_te_group(s, NULL, n, body->items + n, inputs.n, inputs.items,
                       false, &group));
  s->stages[group].attach = PLN_ATTACH_SCAN_UPDATE;
  s->stages[group].attach_stage = stage;
  return PLN_OK;
}

static pln_status build(pln_te_state *s, uint32_t n, pln_te_op *const *ops) {
  PLN_TRY(pln_analyzer_new(s->engine, &s->a));
  PLN_TRY(pln_builder_new(s->engine, &s->b));
  PLN_TRY(pln_idmap_new(s->engine, &s->axis_of));
  PLN_TRY(pln_idmap_new(s->engine, &s->tensor_of));
  PLN_TRY(add_ops(s, n, ops));
  for (uint32_t i = 0; i < n; i++)
    s->stages[stage_of_op(s, ops[i])].is_output = true;
  uint32_t n_stages = s->n_stages; /* groups are stages as well */
  for (uint32_t i = 0; i < n_stages; i++)
    if (s->stages[i].kind == PLN_TE_SCAN)
      PLN_TRY(group_updates(s, i));
  return s->a->status;
}

pln_status pln_te_state_new(pln_engine *engine, uint32_t n,
                            pln_te_op *const *ops, pln_te_state **out) {
  pln_te_state *s = pln_mem_zeroed(engine, sizeof *s);
  *out = NULL;
  if (!s)
    return pln_nomem(engine);
  s->engine = engine;
  pln_arena_init(&s->arena, engine);
  pln_status status = build(s, n, ops);
  if (status != PLN_OK) {
    pln_te_state_free(s);
    return status;
  }
  *out = s;
  return PLN_OK;
}

void pln_te_state_free(pln_te_state *s) {
  if (!s)
    return;
  pln_engine *e = s->engine;
  if (s->a)
    pln_term_marks_free(s->a, &s->loadless);
  for (uint32_t i = 0; i < s->n_maps; i++)
    pln_graph_release(s->maps[i]);
  pln_mem_free(e, s->maps, s->cap_maps * sizeof *s->maps);
  pln_analyzer_free(s->a);
  pln_builder_free(s->b);
  pln_idmap_free(s->axis_of);
  pln_idmap_free(s->tensor_of);
  pln_mem_free(e, s->axes, s->cap_axes * sizeof *s->axes);
  pln_mem_free(e, s->stages, s->cap_stages * sizeof *s->stages);
  pln_mem_free(e, s->tensors, s->cap_tensors * sizeof *s->tensors);
  pln_mem_free(e, s->image, s->cap_image * sizeof *s->image);
  pln_mem_free(e, s->image_at, s->cap_image_at * sizeof *s->image_at);
  pln_mem_free(e, s->flags, s->cap_flags);
  pln_arena_free(&s->arena);
  pln_mem_free(e, s, sizeof *s);
}
