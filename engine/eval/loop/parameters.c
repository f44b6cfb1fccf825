/* parameters.c: the parameters of a loop program: their cells, and checks of
 * the shapes of arguments.
 *
 * Called by compile.c before the body. Each tensor has cells of its dims and of
 * its compact strides, which run.c sets. Variables in shapes stand for them;
 * what is no variable is compared when the program begins. */

#include "eval/loop/translate.h"

static pln_status add_param(pln_translation *t, pln_loop_param **out) {
  pln_loop_program *p = t->p;
  PLN_TRY(pln_mem_grow(t->engine, (void **)&p->params, &p->cap_params,
                       (size_t)p->n_params + 1, sizeof *p->params));
  *out = &p->params[p->n_params++];
  **out = (pln_loop_param){.rank = -1};
  return PLN_OK;
}

/* Collects the Buffers that variables are seen as: variable -> 1 + the first
 * Buffer bound to it. */
static pln_status collect_buffers(const pln_translation *t, pln_idmap *map) {
  const pln_graph *g = t->g;
  pln_ref ref = t->first_stmt[g->nodes[g->root].data];
  for (; ref != PLN_NONE; ref = t->next_stmt[ref]) {
    const pln_ref *o = pln_operands(g, &g->nodes[ref]);
    if (g->nodes[ref].kind == PLN_BUFFER_BIND &&
        pln_idmap_get(map, g->nodes[o[0]].data) == 0)
      PLN_TRY(pln_idmap_set(map, g->nodes[o[0]].data, o[1] + 1));
  }
  return PLN_OK;
}

/* The Buffer that a parameter is seen as; PLN_NONE: none. */
static pln_ref buffer_of(const pln_translation *t, const pln_idmap *buffers,
                         pln_ref param) {
  uint32_t biased = pln_idmap_get(buffers, t->g->nodes[param].data);
  return biased ? biased - 1 : PLN_NONE;
}

static pln_status set_tensor(pln_translation *t, pln_loop_param *p,
                             uint32_t rank, pln_ref data) {
  uint32_t id;
  p->is_buffer = true;
  PLN_TRY(pln_loop_new_storage(t, PLN_NONE, &id));
  p->storage = id;
  PLN_TRY(pln_loop_constant(t, (int64_t)id << PLN_LOOP_OFFSET_BITS, &p->cell));
  PLN_TRY(pln_loop_new_cells(t, 2 * rank, &p->dims));
  return pln_loop_bind_memory(t, data, p->cell);
}

/* A pointer without a buffer: a tensor of its element type, of any rank. */
static pln_status bind_pointer(pln_translation *t, pln_loop_param *p,
                               pln_ref param) {
  pln_engine *e = t->engine;
  pln_type type = t->g->nodes[param].type;
  if (pln_type_get_kind(e, type) != PLN_TYPE_POINTER)
    return pln_loop_refuse(t, "parameter '%s' is a handle of what is not known",
                           pln_symbol_text(e, p->name).data);
  type = pln_type_part_at(e, type, 0);
  p->dtype = pln_type_dtype(e, type);
  p->lanes = pln_type_get_kind(e, type) == PLN_TYPE_PRIM
                 ? pln_type_number(e, type)
                 : 1;
  return set_tensor(t, p, 0, param);
}

static pln_status bind_param(pln_translation *t, pln_ref param,
                             pln_ref buffer) {
  pln_loop_param *p;
  PLN_TRY(add_param(t, &p));
  p->name = t->g->nodes[param].attrs;
  p->dtype = pln_prim_dtype(t->g, param);
  p->lanes = 1;
  if (buffer != PLN_NONE) {
    const pln_node *n = &t->g->nodes[buffer];
    p->name = n->data;
    p->dtype = pln_prim_dtype(t->g, buffer);
    p->lanes = pln_prim_lanes(t->g, buffer);
    p->rank = n->results;
    PLN_TRY(pln_loop_bind_var(t, param, t->zero));
    return set_tensor(t, p, n->results, t->g->operands[n->first]);
  }
  if (p->dtype == PLN_DTYPE_NONE)
    return bind_pointer(t, p, param);
  PLN_TRY(pln_loop_new_cells(t, 1, &p->cell));
  return pln_loop_bind_var(t, param, p->cell);
}

/* ------------------------------------------------------------------ shapes */

static pln_status bind_field(pln_translation *t, pln_ref expr, int32_t cell) {
  if (t->g->nodes[expr].kind != PLN_VAR || pln_loop_is_bound(t, expr))
    return PLN_OK;
  return pln_loop_bind_var(t, expr, cell);
}

/* Variables that are a dim, a stride or an offset. */
static pln_status bind_fields(pln_translation *t, const pln_loop_param *p,
                              pln_ref buffer) {
  const pln_node *n = &t->g->nodes[buffer];
  const pln_ref *o = pln_operands(t->g, n);
  for (uint32_t i = 1; i + 1 < n->count; i++)
    PLN_TRY(bind_field(t, o[i], p->dims + (int32_t)i - 1));
  return bind_field(t, o[n->count - 1], t->zero);
}

static pln_status check_field(pln_translation *t, pln_ref buffer, pln_ref expr,
                              int32_t cell, uint32_t field) {
  if (t->g->nodes[expr].kind == PLN_ANY)
    return PLN_OK;
  int32_t expected = pln_loop_cell_of(t, expr);
  if (expected == cell)
    return PLN_OK;
  bool is_stride = field >= t->g->nodes[buffer].results;
  uint32_t dim = field - (is_stride ? t->g->nodes[buffer].results : 0);
  return pln_loop_emit(
      t, buffer,
      (pln_loop_instr){.op = is_stride ? PLN_LOOP_CHECK_STRIDE
                                       : PLN_LOOP_CHECK_EQUAL,
                       .aux = (uint16_t)dim,
                       .lanes = 1,
                       .a = cell,
                       .b = expected,
                       .c = cell - (int32_t)t->g->nodes[buffer].results});
}

/* Runs the expression tasks that are pushed. */
static pln_status run_pushed(pln_translation *t) {
  while (t->n_tasks > 0)
    PLN_TRY(pln_loop_expr_task(t, t->tasks[--t->n_tasks]));
  return PLN_OK;
}

static pln_status check_fields(pln_translation *t, const pln_loop_param *p,
                               pln_ref buffer) {
  const pln_node *n = &t->g->nodes[buffer];
  const pln_ref *o = pln_operands(t->g, n);
  for (uint32_t i = 1; i + 1 < n->count; i++) {
    if (t->g->nodes[o[i]].kind == PLN_ANY)
      continue;
    PLN_TRY(pln_loop_push_expr(t, o[i]));
    PLN_TRY(run_pushed(t));
    PLN_TRY(check_field(t, buffer, o[i], p->dims + (int32_t)i - 1, i - 1));
  }
  return PLN_OK;
}

static pln_status bind_all(pln_translation *t, const pln_idmap *buffers) {
  const pln_graph *g = t->g;
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(
        bind_param(t, row->begin + i, buffer_of(t, buffers, row->begin + i)));
  for (uint32_t round = 0; round < 2; round++)
    for (uint32_t i = 0; i < row->n_params; i++) {
      pln_loop_param p = t->p->params[i];
      pln_ref buffer = buffer_of(t, buffers, row->begin + i);
      if (buffer != PLN_NONE)
        PLN_TRY(round == 0 ? bind_fields(t, &p, buffer)
                           : check_fields(t, &p, buffer));
    }
  return PLN_OK;
}

pln_status pln_loop_bind_params(pln_translation *t) {
  pln_idmap *buffers;
  PLN_TRY(pln_idmap_new(t->engine, &buffers));
  pln_status status = collect_buffers(t, buffers);
  if (status == PLN_OK)
    status = bind_all(t, buffers);
  pln_idmap_free(buffers);
  if (status == PLN_OK)
    pln_loop_forget(t, 0);
  return status;
}
