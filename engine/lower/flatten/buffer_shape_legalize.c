/* buffer_shape_legalize.c: tir.BufferShapeLegalize: a Buffer is as large as the
 * part of it that is realised, and begins at 0.
 *
 * A step of tir.StorageFlatten.
 *
 *     T.realize(B[4:12]); B[i + 4] = 0
 *         =>   T.realize(B[0:8]); B[i + 4 - 4] = 0
 *
 * A Buffer that is bound to a region (buffer_bind_scope) gets the dimensions of
 * the region, and an assertion that its offset is a multiple of offset_factor.
 *
 * Semantics: TVM's BufferShapeLegalize. */

#include <stdio.h>

#include "lower/flatten/flatten.h"

typedef struct legalizer {
  const pln_graph *g;
  pln_ref *realize;  /* by old Buffer: its BufferRealize, or PLN_NONE */
  uint32_t *widened; /* by old Buffer: dimensions that it gets in front */
  pln_ref min[PLN_MOST_AXES]; /* of the target of the binding that is entered */
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

/* ----------------------------------------------------------------- bindings
 */

static bool is_binding(const legalizer *x, pln_ref stmt) {
  return pln_slice_is(pln_attr_key(x->g, stmt), "buffer_bind_scope");
}

/* The Buffer that is bound, and the one that it is bound to. */
static pln_ref bound_source(const legalizer *x, pln_ref stmt) {
  return pln_operand(x->g, pln_operand(x->g, stmt, 0), 0);
}

static pln_ref bound_target(const legalizer *x, pln_ref stmt) {
  return pln_operand(x->g, pln_operand(x->g, stmt, 0), 1);
}

/* A compact source with fewer dimensions than its region gets those of it. */
static pln_status widen_source(legalizer *x, pln_stmt_rewrite *s,
                               pln_ref stmt) {
  pln_ref source = bound_source(x, stmt), tuple = pln_operand(x->g, stmt, 1);
  const pln_node *n = &x->g->nodes[source];
  pln_buffer_fields f = pln_buffer_fields_of(x->g, source);
  pln_ref shape[PLN_MOST_AXES], wide;
  uint32_t rank = x->g->nodes[tuple].count / 2;
  pln_buffer_spec spec = {.name = n->data,
                          .type = n->type,
                          .attrs = n->attrs,
                          .rank = rank,
                          .shape = shape};
  if (f.n_strides > 0 || rank <= f.rank || rank > PLN_MOST_AXES)
    return PLN_OK;
  for (uint32_t i = 0; i < rank; i++)
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, tuple, 2 * i + 1), &shape[i]));
  PLN_TRY(pln_stmt_map(s, f.data, &spec.data));
  PLN_TRY(pln_stmt_map(s, f.elem_offset, &spec.elem_offset));
  PLN_TRY(pln_build_buffer(pln_stmt_builder(s), &spec, &wide));
  x->widened[source] = rank - f.rank;
  pln_stmt_bind(s, source, wide);
  return PLN_OK;
}

static pln_status map_minima(legalizer *x, pln_stmt_rewrite *s, pln_ref stmt) {
  pln_ref target = bound_target(x, stmt);
  uint32_t rank = x->g->nodes[target].results;
  if (x->realize[target] == PLN_NONE)
    return PLN_OK;
  for (uint32_t i = 0; i < rank && i < PLN_MOST_AXES; i++)
    PLN_TRY(axis_min(x, s, target, i, &x->min[i]));
  return PLN_OK;
}

/* Begins of a region count from the minimum of what is realised. */
static pln_status shift_region(legalizer *x, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *tuple) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref target = bound_target(x, stmt), operands[2 * PLN_MOST_AXES];
  pln_node n = *pln_stmt_node(s, *tuple);
  if (x->realize[target] == PLN_NONE || is_zero_based(x, target) ||
      n.count > PLN_COUNT(operands))
    return PLN_OK;
  for (uint32_t i = 0; i < n.count; i++)
    operands[i] = pln_operand(b->graph, *tuple, i);
  for (uint32_t i = 0; i < n.count; i += 2)
    PLN_TRY(pln_build_folded(b, PLN_PRIM_SUB, operands[i], x->min[i / 2],
                             &operands[i]));
  pln_prim spec = {.kind = PLN_PRIM_CALL,
                   .data = n.data,
                   .attrs = n.attrs,
                   .type = n.type,
                   .n = n.count,
                   .operands = operands};
  return pln_build_prim(b, &spec, tuple);
}

/* assert elem_offset % offset_factor == 0, with TVM's message */
static pln_status assert_factor(legalizer *x, pln_stmt_rewrite *s, pln_ref stmt,
                                pln_ref *body) {
  pln_builder *b = pln_stmt_builder(s);
  pln_engine *e = x->g->engine;
  pln_ref source = bound_source(x, stmt), operands[2], factor, zero;
  pln_ref offset = pln_buffer_fields_of(x->g, source).elem_offset;
  int64_t step =
      pln_attrs_int(e, x->g->nodes[source].attrs, "offset_factor", 1);
  char text[256];
  pln_symbol symbol;
  if (step <= 1 || x->g->nodes[offset].kind != PLN_VAR)
    return PLN_OK;
  int n = snprintf(text, sizeof text,
                   "Argument %.64s.elem_offset has an unsatisfied constraint: "
                   "T.truncmod(%.64s, %lld) == 0",
                   pln_symbol_text(e, x->g->nodes[source].data).data,
                   pln_symbol_text(e, x->g->nodes[offset].attrs).data,
                   (long long)step);
  PLN_TRY(pln_symbol_intern(e, (pln_slice){text, (size_t)n}, &symbol));
  PLN_TRY(pln_stmt_map(s, offset, &offset));
  PLN_TRY(pln_stmt_int_like(s, offset, step, &factor));
  PLN_TRY(pln_stmt_int_like(s, offset, 0, &zero));
  PLN_TRY(pln_build_folded(b, PLN_PRIM_MOD, offset, factor, &operands[0]));
  PLN_TRY(pln_build_folded(b, PLN_PRIM_EQ, operands[0], zero, &operands[0]));
  PLN_TRY(pln_build_string_imm(b, symbol, &operands[1]));
  pln_prim spec = {.kind = PLN_ASSERT_STMT, .n = 2, .operands = operands};
  pln_body inner = {.stmt = *body};
  return pln_build_floating_stmt(b, &spec, 1, &inner, body);
}

static pln_status visit_operand(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                uint32_t i, pln_ref *node) {
  legalizer *x = ud;
  return i == 1 && is_binding(x, stmt) ? shift_region(x, s, stmt, node)
                                       : PLN_OK;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  legalizer *x = ud;
  (void)k, (void)again;
  return is_binding(x, stmt) ? assert_factor(x, s, stmt, body) : PLN_OK;
}

/* A node like `old` whose indices, operands from `first` on, follow as many
 * zeros as the Buffer got dimensions. */
static pln_status pad_access(const legalizer *x, pln_stmt_rewrite *s,
                             pln_ref old, uint32_t first,
                             const pln_ref *operands, pln_ref *out) {
  const pln_node *n = &x->g->nodes[old];
  uint32_t more = x->widened[pln_operand(x->g, old, 0)];
  pln_ref all[PLN_MOST_AXES + 2];
  if (n->count + more > PLN_COUNT(all))
    return PLN_OK;
  memcpy(all, operands, first * sizeof *all);
  memcpy(all + first + more, operands + first,
         (n->count - first) * sizeof *all);
  for (uint32_t i = 0; i < more; i++)
    PLN_TRY(pln_stmt_int_like(s, operands[n->count - 1], 0, &all[first + i]));
  pln_prim spec = {
      .kind = (pln_kind)n->kind, .n = n->count + more, .operands = all};
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

/* --------------------------------------------------------------- statements
 */

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  legalizer *x = ud;
  pln_ref buffer, narrow;
  (void)node;
  if (is_binding(x, stmt)) {
    PLN_TRY(map_minima(x, s, stmt));
    return widen_source(x, s, stmt);
  }
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
      (!is_shifted(x, pln_operand(x->g, old, 0)) &&
       !x->widened[pln_operand(x->g, old, 0)]))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  if (x->widened[pln_operand(x->g, old, 0)])
    return pad_access(x, s, old, 1, operands, node);
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
      (!is_shifted(x, pln_operand(x->g, stmt, 0)) &&
       !x->widened[pln_operand(x->g, stmt, 0)]))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_operand(s, i);
  if (x->widened[pln_operand(x->g, stmt, 0)])
    return pad_access(x, s, stmt, 2, operands, node);
  return shift_access(x, s, stmt, 2, operands, node);
}

pln_status pln_buffer_shape_legalize(const pln_graph *function,
                                     pln_graph **out) {
  pln_engine *e = function->engine;
  size_t size = function->n_nodes * sizeof(pln_ref);
  size_t counts = function->n_nodes * sizeof(uint32_t);
  legalizer x = {.g = function,
                 .realize = pln_mem_new(e, size),
                 .widened = pln_mem_zeroed(e, counts)};
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = visit_expr,
                              .operand = visit_operand,
                              .enter = enter_stmt,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  pln_status status = PLN_OK;
  if (!x.realize || !x.widened)
    status = pln_nomem(e);
  else
    memset(x.realize, 0xff, size);
  if (status == PLN_OK)
    status = pln_stmt_rewrite_function(function, &mutator, out);
  pln_mem_free(e, x.realize, size);
  pln_mem_free(e, x.widened, counts);
  return status;
}
