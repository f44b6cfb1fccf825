/* inject_rolling_buffer.c: tir.InjectRollingBuffer: a Buffer that is realised
 * in each round of a loop keeps what the round before computed.
 *
 * Run by the executor. The Buffer (attribute rolling_buffer_scope) is realised
 * around the outermost loop that its region depends on. In that axis it has the
 * extent of one round, and indices modulo it; elements that the round before
 * stored are not stored again.
 *
 *     for i in range(4):
 *         T.realize(B[i * 2:i * 2 + 3]); T.attr(B, "rolling_buffer_scope", 1)
 *         for j in range(3): B[i * 2 + j] = A[i * 2 + j]
 *         C[i] = B[i * 2] + B[i * 2 + 2]
 *     =>
 *     T.realize(B[0:3])
 *     for i in range(4):
 *         for j in range(3):
 *             if T.likely(i < 1 or j >= 1): B[(i * 2 + j) % 3] = A[i * 2 + j]
 *         C[i] = B[i * 2 % 3] + B[(i * 2 + 2) % 3]
 *
 * Semantics: TVM's tir.InjectRollingBuffer. */

#include "arith/arith.h"
#include "lower/emit.h"
#include "lower/flatten/flatten.h"

/* A Buffer that rolls; nodes of the old graph. */
typedef struct rolling {
  pln_ref buffer, realize, loop;
  uint32_t axis, n_axes;
  uint32_t next;                  /* 1 + the next row of the loop; 0: none */
  int64_t extent;                 /* of the axis in one round */
  pln_ref var[PLN_MOST_AXES];     /* of the loop that moves an axis */
  int64_t overlap[PLN_MOST_AXES]; /* elements of the round before */
} rolling;

typedef struct roller {
  const pln_graph *g;
  pln_analyzer *a;
  pln_scope *node_scope;
  uint32_t *place; /* by old Buffer: 1 + its row; by loop: 1 + the first of its
                    * rows, whose BufferRealize is the outermost */
  pln_ref *attr;   /* by old Buffer: an AttrStmt on it; by that: the next one */
  rolling *rows;   /* inner BufferRealizes first */
  uint32_t n, cap;
} roller;

/* -------------------------------------------------------------------- regions
 */

static pln_status refuse_rolling(const roller *x, pln_ref buffer,
                                 const char *why) {
  return pln_diag_error(
      x->g->engine, PLN_ERR_ARGUMENT, NULL,
      "tir.InjectRollingBuffer: the buffer '%s' cannot roll: %s",
      pln_symbol_text(x->g->engine, x->g->nodes[buffer].data).data, why);
}

static bool is_positive_int(const pln_graph *g, pln_ref ref) {
  return g->nodes[ref].kind == PLN_INT_IMM && pln_node_int(g, ref) > 0;
}

/* min = var * stride // divisor: false for another form. A constant has no
 * variable. */
static bool read_min(const pln_graph *g, pln_ref min, pln_ref *var,
                     int64_t *stride) {
  int64_t divisor = 1;
  *var = PLN_NONE;
  *stride = 1;
  if (g->nodes[min].kind == PLN_PRIM_FLOORDIV) {
    if (!is_positive_int(g, pln_operand(g, min, 1)))
      return false;
    divisor = pln_node_int(g, pln_operand(g, min, 1));
    min = pln_operand(g, min, 0);
  }
  if (g->nodes[min].kind == PLN_INT_IMM)
    return true;
  if (g->nodes[min].kind == PLN_PRIM_MUL) {
    if (!is_positive_int(g, pln_operand(g, min, 1)))
      return false;
    *stride = pln_node_int(g, pln_operand(g, min, 1));
    min = pln_operand(g, min, 0);
  }
  *stride = *stride / divisor + (*stride % divisor != 0);
  *var = min;
  return g->nodes[min].kind == PLN_VAR;
}

static pln_status read_bounds(const roller *x, rolling *row) {
  const pln_node *n = &x->g->nodes[row->realize];
  row->n_axes = n->count - 2;
  if (row->n_axes > PLN_MOST_AXES)
    return refuse_rolling(x, row->buffer, "it has too many dimensions");
  for (uint32_t i = 0; i < row->n_axes; i++) {
    pln_ref range = pln_operand(x->g, row->realize, 2 + i);
    pln_ref extent = pln_operand(x->g, range, 1);
    int64_t stride;
    if (!read_min(x->g, pln_operand(x->g, range, 0), &row->var[i], &stride))
      return refuse_rolling(x, row->buffer,
                            "its region does not begin at a multiple of a "
                            "loop's variable");
    row->overlap[i] = 0;
    if (row->var[i] == PLN_NONE)
      continue;
    if (!is_positive_int(x->g, extent))
      return refuse_rolling(x, row->buffer, "its region is not constant");
    row->overlap[i] = pln_node_int(x->g, extent) - stride;
  }
  return PLN_OK;
}

/* The outermost loop around the BufferRealize that moves an axis: the last one
 * on the way out. */
static pln_status find_loop(const roller *x, rolling *row) {
  const pln_graph *g = x->g;
  pln_scope scope = x->node_scope[row->realize];
  row->loop = PLN_NONE;
  for (; scope != PLN_NONE; scope = g->scopes[scope].parent) {
    pln_ref owner = g->scopes[scope].owner;
    if (owner == PLN_NONE || g->nodes[owner].kind != PLN_FOR)
      continue;
    for (uint32_t i = row->n_axes; i-- > 0;)
      if (row->var[i] == g->scopes[scope].begin) {
        row->loop = owner;
        row->axis = i;
      }
  }
  if (row->loop == PLN_NONE)
    return refuse_rolling(x, row->buffer, "no loop moves its region");
  row->extent = pln_node_int(
      g, pln_operand(g, pln_operand(g, row->realize, 2 + row->axis), 1));
  return PLN_OK;
}

/* --------------------------------------------------------------------- rows */

static bool is_mark(const pln_graph *g, pln_ref ref) {
  pln_ref value;
  if (!pln_slice_is(pln_attr_key(g, ref), "rolling_buffer_scope"))
    return false;
  value = pln_operand(g, ref, 1);
  return g->nodes[value].kind == PLN_INT_IMM && pln_node_int(g, value) != 0;
}

static const rolling *row_of(const roller *x, pln_ref buffer) {
  uint32_t place = x->place[buffer];
  return place ? &x->rows[place - 1] : NULL;
}

static pln_status add_row(roller *x, pln_ref realize) {
  rolling row = {.buffer = pln_operand(x->g, realize, 0), .realize = realize};
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->rows, &x->cap,
                       (size_t)x->n + 1, sizeof *x->rows));
  PLN_TRY(read_bounds(x, &row));
  PLN_TRY(find_loop(x, &row));
  x->place[row.buffer] = x->n + 1;
  row.next = x->place[row.loop];
  x->place[row.loop] = x->n + 1;
  x->rows[x->n++] = row;
  return PLN_OK;
}

static void note_attr(roller *x, pln_ref ref, uint32_t marked) {
  const pln_graph *g = x->g;
  if (g->nodes[ref].kind != PLN_ATTR_STMT)
    return;
  pln_ref buffer = pln_operand(g, ref, 0);
  if (g->nodes[buffer].kind != PLN_BUFFER)
    return;
  x->attr[ref] = x->attr[buffer];
  x->attr[buffer] = ref;
  if (is_mark(g, ref))
    x->place[buffer] = marked;
}

/* The marks first: they may stand inside of the BufferRealize or around it. */
static pln_status find_rolling(roller *x) {
  const uint32_t marked = UINT32_MAX;
  pln_graph_node_scopes(x->g, x->node_scope);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    note_attr(x, ref, marked);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    if (x->g->nodes[ref].kind != PLN_BUFFER_REALIZE)
      continue;
    uint32_t place = x->place[pln_operand(x->g, ref, 0)];
    if (place != 0 && place != marked)
      return refuse_rolling(x, pln_operand(x->g, ref, 0),
                            "it is realised more than once");
    if (place == marked)
      PLN_TRY(add_row(x, ref));
  }
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_BUFFER && x->place[ref] == marked)
      return refuse_rolling(x, ref, "it is not realised");
  return PLN_OK;
}

/* ------------------------------------------------------------------- accesses
 */

/* The index modulo the extent. */
static pln_status roll_index(pln_stmt_rewrite *s, const rolling *row,
                             pln_ref *index) {
  pln_ref extent;
  PLN_TRY(pln_stmt_int_like(s, *index, row->extent, &extent));
  return pln_build_folded(pln_stmt_builder(s), PLN_PRIM_FLOORMOD, *index,
                          extent, index);
}

static pln_status roll_load(void *ud, pln_stmt_rewrite *s, pln_ref old,
                            pln_ref *node) {
  roller *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_ref operands[PLN_MOST_AXES + 1];
  const rolling *row =
      n->kind == PLN_BUFFER_LOAD ? row_of(x, pln_operand(x->g, old, 0)) : NULL;
  if (!row)
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  PLN_TRY(roll_index(s, row, &operands[1 + row->axis]));
  pln_prim spec = {
      .kind = PLN_BUFFER_LOAD, .n = n->count, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

/* *out: the least value of the index in the first round. */
static pln_status first_index(roller *x, pln_stmt_rewrite *s, pln_ref var,
                              pln_ref index, pln_ref *out) {
  pln_term term, max;
  pln_term_domain first;
  PLN_TRY(pln_analyzer_import_built(x->a, pln_stmt_builder(s), index, &term));
  PLN_TRY(
      pln_analyzer_import_built(x->a, pln_stmt_builder(s), var, &first.var));
  first.min = first.max = pln_const_like(x->a, first.var, 0);
  PLN_TRY(pln_analyzer_int_set(x->a, term, 1, &first, false, &term, &max));
  if (term == PLN_TERM_NEG_INF || term == PLN_TERM_POS_INF)
    return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.InjectRollingBuffer: an index has no least "
                          "value");
  return pln_analyzer_export(x->a, pln_stmt_builder(s), term, out);
}

/* The store in the first round, and of what the round before did not store. */
static pln_status guard_store(roller *x, pln_stmt_rewrite *s, pln_ref var,
                              int64_t overlap, pln_ref index, pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref image = pln_stmt_image(s, var), first, one, kept;
  PLN_TRY(first_index(x, s, image, index, &first));
  PLN_TRY(pln_stmt_int_like(s, image, 1, &one));
  PLN_TRY(pln_stmt_int_like(s, first, overlap, &kept));
  pln_ref condition = pln_emit_folded(
      &e, PLN_PRIM_OR, pln_emit_folded(&e, PLN_PRIM_LT, image, one),
      pln_emit_folded(&e, PLN_PRIM_GE, first, kept));
  condition =
      pln_emit_call(&e, "likely", pln_emit_type(&e, PLN_BOOL), 1, &condition);
  *node = pln_emit_if(&e, condition, *node, PLN_NONE);
  return e.status;
}

static pln_status roll_store(roller *x, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const rolling *row = row_of(x, pln_operand(x->g, stmt, 0));
  pln_ref operands[PLN_MOST_AXES + 2];
  uint32_t n = x->g->nodes[stmt].count;
  if (!row)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++)
    operands[i] = pln_stmt_operand(s, i);
  PLN_TRY(roll_index(s, row, &operands[2 + row->axis]));
  pln_prim spec = {.kind = PLN_BUFFER_STORE, .n = n, .operands = operands};
  PLN_TRY(pln_build_prim(pln_stmt_builder(s), &spec, node));
  for (uint32_t i = 0; i < row->n_axes; i++)
    if (row->var[i] != PLN_NONE && row->overlap[i] > 0)
      PLN_TRY(guard_store(x, s, row->var[i], row->overlap[i],
                          pln_stmt_operand(s, 2 + i), node));
  return PLN_OK;
}

/* ------------------------------------------------------------------- memory */

/* Attributes of the Buffer, except the mark, around its BufferRealize. */
static pln_status hoist_attrs(roller *x, pln_stmt_rewrite *s,
                              const rolling *row, pln_ref buffer,
                              pln_ref *node) {
  pln_builder *b = pln_stmt_builder(s);
  for (pln_ref ref = x->attr[row->buffer]; ref != PLN_NONE;
       ref = x->attr[ref]) {
    pln_ref operands[2] = {buffer, PLN_NONE};
    pln_prim spec = {.kind = PLN_ATTR_STMT,
                     .attrs = x->g->nodes[ref].attrs,
                     .n = 2,
                     .operands = operands};
    pln_body body = {.stmt = *node};
    if (pln_slice_is(pln_attr_key(x->g, ref), "rolling_buffer_scope"))
      continue;
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, ref, 1), &operands[1]));
    PLN_TRY(pln_build_floating_stmt(b, &spec, 1, &body, node));
  }
  return PLN_OK;
}

/* The whole Buffer, in the axis that rolls as much as one round. */
static pln_status hoist_realize(roller *x, pln_stmt_rewrite *s,
                                const rolling *row, pln_ref *node) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref operands[PLN_MOST_AXES + 2], ends[2];
  PLN_TRY(pln_stmt_map(s, row->buffer, &operands[0]));
  PLN_TRY(pln_stmt_map(s, pln_operand(x->g, row->realize, 1), &operands[1]));
  for (uint32_t i = 0; i < row->n_axes; i++) {
    pln_prim range = {.kind = PLN_RANGE, .n = 2, .operands = ends};
    ends[1] = pln_buffer_fields_of(b->graph, operands[0]).shape[i];
    PLN_TRY(pln_stmt_int_like(s, ends[1], 0, &ends[0]));
    if (i == row->axis)
      PLN_TRY(pln_stmt_int_like(s, ends[0], row->extent, &ends[1]));
    PLN_TRY(pln_build_prim(b, &range, &operands[2 + i]));
  }
  pln_prim spec = {
      .kind = PLN_BUFFER_REALIZE, .n = 2 + row->n_axes, .operands = operands};
  pln_body body = {.stmt = *node};
  PLN_TRY(pln_build_floating_stmt(b, &spec, 1, &body, node));
  return hoist_attrs(x, s, row, operands[0], node);
}

/* What was realised outside of another Buffer is realised inside of it, as in
 * TVM. */
static pln_status leave_loop(roller *x, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  for (uint32_t at = x->place[stmt]; at != 0; at = x->rows[at - 1].next) {
    if (*node == PLN_NONE)
      PLN_TRY(pln_stmt_rebuild(s, stmt, node));
    PLN_TRY(hoist_realize(x, s, &x->rows[at - 1], node));
  }
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  roller *x = ud;
  switch (x->g->nodes[stmt].kind) {
  case PLN_FOR: return leave_loop(x, s, stmt, node);
  case PLN_BUFFER_STORE: return roll_store(x, s, stmt, node);
  case PLN_ATTR_STMT:
  case PLN_BUFFER_REALIZE:
    if (row_of(x, pln_operand(x->g, stmt, 0)))
      *node = pln_stmt_body(s, 0);
    return PLN_OK;
  default: return PLN_OK;
  }
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status run_roller(pln_pass_run *run, roller *x) {
  pln_stmt_mutator mutator = {.ud = x, .expr = roll_load, .leave = leave_stmt};
  if (!x->node_scope || !x->place || !x->attr)
    return pln_nomem(x->g->engine);
  memset(x->attr, 0xff, x->g->n_nodes * sizeof *x->attr);
  PLN_TRY(find_rolling(x));
  if (x->n == 0)
    return PLN_OK;
  PLN_TRY(pln_analyzer_new(x->g->engine, &x->a));
  pln_status status = pln_lower_function(run, &mutator);
  pln_analyzer_free(x->a);
  return status;
}

pln_status pln_pass_tir_inject_rolling_buffer(pln_pass_run *run) {
  roller x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t n = x.g->n_nodes;
  x.node_scope = pln_mem_new(e, n * sizeof *x.node_scope);
  x.place = pln_mem_zeroed(e, n * sizeof *x.place);
  x.attr = pln_mem_new(e, n * sizeof *x.attr);
  pln_status status = run_roller(run, &x);
  pln_mem_free(e, x.rows, x.cap * sizeof *x.rows);
  pln_mem_free(e, x.place, n * sizeof *x.place);
  pln_mem_free(e, x.attr, n * sizeof *x.attr);
  pln_mem_free(e, x.node_scope, n * sizeof *x.node_scope);
  return status;
}
