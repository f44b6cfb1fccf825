/* buffer_shape_legalize.c: tir.BufferShapeLegalize: a Buffer is as large as the
 * part of it that is realised, and begins at 0.
 *
 * A step of tir.StorageFlatten.
 *
 *     T.realize(B[4:12]); B[i + 4] = 0
 *         =>   T.realize(B[0:8]); B[i + 4 - 4] = 0
 *
 * Semantics: TVM's BufferShapeLegalize. */

#include "lower/flatten/flatten.h"

typedef struct legalizer {
  const pln_graph *g;
  pln_ref *realize; /* by old Buffer: its BufferRealize, or PLN_NONE */
} legalizer;

/* The old minimum of an axis of a realised Buffer, mapped. */
static pln_status axis_min(legalizer *x, pln_stmt_rewrite *s, pln_ref buffer,
                           uint32_t i, pln_ref *out) {
  pln_ref range = pln_operand(x->g, x->realize[buffer], 2 + i);
  return pln_stmt_map(s, pln_operand(x->g, range, 0), out);
}

static bool is_zero_based(const legalizer *x, pln_ref buffer) {
  pln_ref realize = x->realize[buffer];
  for (uint32_t i = 2; i < x->g->nodes[realize].count; i++)
    if (!pln_is_int(x->g, pln_operand(x->g, pln_operand(x->g, realize, i), 0),
                    0))
      return false;
  return true;
}

/* True if the extents of the Buffer are those that are realised. */
static bool is_whole(const legalizer *x, pln_ref buffer) {
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  pln_ref realize = x->realize[buffer];
  for (uint32_t i = 0; i < f.rank; i++)
    if (!pln_same_expr(x->g, f.shape[i],
                       pln_operand(x->g, pln_operand(x->g, realize, 2 + i), 1)))
      return false;
  return true;
}

/* The Buffer with the extents that are realised. */
static pln_status narrow_buffer(legalizer *x, pln_stmt_rewrite *s,
                                pln_ref buffer, pln_ref *out) {
  const pln_node *n = &x->g->nodes[buffer];
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  pln_ref shape[PLN_MOST_AXES];
  pln_buffer_spec spec = {.name = n->data,
                          .type = n->type,
                          .attrs = n->attrs,
                          .rank = f.rank,
                          .shape = shape};
  if (f.rank > PLN_MOST_AXES)
    return pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.BufferShapeLegalize: '%s' has more than %d "
                          "dimensions",
                          pln_symbol_text(x->g->engine, n->data).data,
                          PLN_MOST_AXES);
  for (uint32_t i = 0; i < f.rank; i++) {
    pln_ref range = pln_operand(x->g, x->realize[buffer], 2 + i);
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, range, 1), &shape[i]));
  }
  PLN_TRY(pln_stmt_map(s, f.data, &spec.data));
  PLN_TRY(pln_stmt_map(s, f.elem_offset, &spec.elem_offset));
  return pln_build_buffer(pln_stmt_builder(s), &spec, out);
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  legalizer *x = ud;
  pln_ref buffer, narrow;
  (void)node;
  if (x->g->nodes[stmt].kind != PLN_BUFFER_REALIZE)
    return PLN_OK;
  buffer = pln_operand(x->g, stmt, 0);
  x->realize[buffer] = stmt;
  if (is_whole(x, buffer))
    return PLN_OK;
  PLN_TRY(narrow_buffer(x, s, buffer, &narrow));
  pln_stmt_bind(s, buffer, narrow);
  return PLN_OK;
}

/* A node like `old`, an access of a realised Buffer, with indices from its
 * minimum; operands from `first` on are the indices. */
static pln_status shift_access(legalizer *x, pln_stmt_rewrite *s, pln_ref old,
                               uint32_t first, pln_ref *operands,
                               pln_ref *out) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref buffer = pln_operand(x->g, old, 0);
  for (uint32_t i = first; i < n->count; i++) {
    pln_ref min;
    PLN_TRY(axis_min(x, s, buffer, i - first, &min));
    PLN_TRY(pln_build_folded(pln_stmt_builder(s), PLN_PRIM_SUB, operands[i],
                             min, &operands[i]));
  }
  pln_prim spec = {
      .kind = (pln_kind)n->kind, .n = n->count, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

static bool is_shifted(const legalizer *x, pln_ref buffer) {
  return x->realize[buffer] != PLN_NONE && !is_zero_based(x, buffer);
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  legalizer *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_ref operands[PLN_MOST_AXES + 1];
  if (n->kind != PLN_BUFFER_LOAD || n->count > PLN_COUNT(operands) ||
      !is_shifted(x, pln_operand(x->g, old, 0)))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  return shift_access(x, s, old, 1, operands, node);
}

/* BufferRealize with ranges from 0. */
static pln_status rebuild_realize(legalizer *x, pln_stmt_rewrite *s,
                                  pln_ref stmt, pln_ref *node) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref operands[PLN_MOST_AXES + 2];
  uint32_t n = x->g->nodes[stmt].count;
  operands[0] = pln_stmt_operand(s, 0);
  operands[1] = pln_stmt_operand(s, 1);
  for (uint32_t i = 2; i < n; i++) {
    pln_ref ends[2];
    ends[1] = pln_operand(b->graph, pln_stmt_operand(s, i), 1);
    PLN_TRY(pln_stmt_int_like(s, ends[1], 0, &ends[0]));
    PLN_TRY(pln_build_prim(
        b, &(pln_prim){.kind = PLN_RANGE, .n = 2, .operands = ends},
        &operands[i]));
  }
  pln_prim spec = {.kind = PLN_BUFFER_REALIZE, .n = n, .operands = operands};
  pln_body body = {.stmt = pln_stmt_body(s, 0)};
  return pln_build_floating_stmt(b, &spec, 1, &body, node);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  legalizer *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  pln_ref operands[PLN_MOST_AXES + 2];
  if (n->kind == PLN_BUFFER_REALIZE && n->count <= PLN_COUNT(operands) &&
      is_shifted(x, pln_operand(x->g, stmt, 0)))
    return rebuild_realize(x, s, stmt, node);
  if (n->kind != PLN_BUFFER_STORE || n->count > PLN_COUNT(operands) ||
      !is_shifted(x, pln_operand(x->g, stmt, 0)))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_operand(s, i);
  return shift_access(x, s, stmt, 2, operands, node);
}

pln_status pln_buffer_shape_legalize(const pln_graph *function,
                                     pln_graph **out) {
  pln_engine *e = function->engine;
  size_t size = function->n_nodes * sizeof(pln_ref);
  legalizer x = {.g = function, .realize = pln_mem_new(e, size)};
  pln_stmt_mutator mutator = {
      .ud = &x, .expr = visit_expr, .enter = enter_stmt, .leave = leave_stmt};
  if (!x.realize)
    return pln_nomem(e);
  memset(x.realize, 0xff, size);
  pln_status status = pln_stmt_rewrite_function(function, &mutator, out);
  pln_mem_free(e, x.realize, size);
  return status;
}
