/* lower_match_buffer.c: tir.LowerMatchBuffer: accesses through views become
 * accesses of the buffers that they are views of.
 *
 * Run by the executor. A view (T.match_buffer inside of a block) has the
 * elements of a region. Variables among its strides, shape and offset are bound
 * to what the region gives; everything else must be proved equal to it.
 *
 *     S = T.match_buffer(A[i * 4:i * 4 + 4], (4,)); S[j] = 0
 *         =>   A[i * 4 + j] = 0
 *
 * Semantics: TVM's tir.LowerMatchBuffer. Loop variables and the variables of
 * parameters are never bound to something else. */

#include <stdio.h>

#include "lower/flatten/flattened_buffer.h"
#include "lower/lower.h"

typedef struct view_lowering {
  const pln_graph *g;
  pln_analyzer_scopes scopes;
  pln_ref *source; /* by Buffer: the image of the region, or PLN_NONE */
  bool *known;     /* by Var: it has a value */
} view_lowering;

static pln_ref region_operand(const pln_stmt_rewrite *s, pln_ref region,
                              uint32_t i) {
  return pln_operand(pln_stmt_builder(s)->graph, region, i);
}

/* The first index of dimension `i` of a region, and the number of indices. */
static pln_ref first_of(const pln_stmt_rewrite *s, pln_ref region, uint32_t i) {
  return region_operand(s, region_operand(s, region, i + 1), 0);
}

static pln_ref extent_of(const pln_stmt_rewrite *s, pln_ref region,
                         uint32_t i) {
  return region_operand(s, region_operand(s, region, i + 1), 1);
}

static uint32_t rank_of(const pln_stmt_rewrite *s, pln_ref region) {
  return pln_stmt_node(s, region)->count - 1;
}

static const char *name_of(const view_lowering *x, pln_ref buffer) {
  return pln_symbol_text(x->g->engine, x->g->nodes[buffer].data).data;
}

/* ------------------------------------------------------------------ binding
 */

static pln_status proves_equal(view_lowering *x, const pln_stmt_rewrite *s,
                               pln_ref image, pln_ref value, bool *equal) {
  pln_term a, b;
  *equal = image == value;
  if (*equal)
    return PLN_OK;
  PLN_TRY(pln_scoped_term(&x->scopes, s, image, &a));
  PLN_TRY(pln_scoped_term(&x->scopes, s, value, &b));
  return pln_analyzer_can_prove_equal(x->scopes.a, a, b, equal);
}

/* Binds a variable that has no value; proves any other field equal. */
static pln_status bind_field(view_lowering *x, pln_stmt_rewrite *s,
                             pln_ref buffer, const char *field, pln_ref old,
                             pln_ref value) {
  pln_ref image;
  bool equal;
  if (x->g->nodes[old].kind == PLN_VAR && !x->known[old]) {
    x->known[old] = true;
    pln_stmt_bind(s, old, value);
    return PLN_OK;
  }
  PLN_TRY(pln_stmt_map(s, old, &image));
  PLN_TRY(proves_equal(x, s, image, value, &equal));
  if (equal)
    return PLN_OK;
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.LowerMatchBuffer: %s of the view '%s' is not "
                        "what its region has",
                        field, name_of(x, buffer));
}

static pln_status times(pln_stmt_rewrite *s, pln_ref x, pln_ref y,
                        pln_ref *out) {
  return pln_build_folded(pln_stmt_builder(s), PLN_PRIM_MUL, x, y, out);
}

/* Strides of a view of a compact buffer are products of its shape. */
static pln_status bind_compact_strides(view_lowering *x, pln_stmt_rewrite *s,
                                       pln_ref buffer, pln_ref memory,
                                       uint32_t skipped) {
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  pln_ref stride, axis;
  PLN_TRY(pln_build_int_imm(pln_stmt_builder(s),
                            x->g->nodes[f.strides[f.rank - 1]].type, 1,
                            &stride));
  for (uint32_t i = f.rank; i-- > 0;) {
    PLN_TRY(bind_field(x, s, buffer, "a stride", f.strides[i], stride));
    axis = pln_buffer_fields_of(pln_stmt_builder(s)->graph, memory)
               .shape[i + skipped];
    PLN_TRY(times(s, stride, axis, &stride));
  }
  return PLN_OK;
}

static pln_status bind_strides(view_lowering *x, pln_stmt_rewrite *s,
                               pln_ref buffer, pln_ref memory,
                               uint32_t skipped) {
  const pln_graph *built = pln_stmt_builder(s)->graph;
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  if (f.n_strides == 0 || f.rank == 0)
    return PLN_OK;
  if (pln_buffer_fields_of(built, memory).n_strides == 0)
    return bind_compact_strides(x, s, buffer, memory, skipped);
  for (uint32_t i = f.rank; i-- > 0;)
    PLN_TRY(
        bind_field(x, s, buffer, "a stride", f.strides[i],
                   pln_buffer_fields_of(built, memory).strides[i + skipped]));
  return PLN_OK;
}

/* *out: where the region begins in the memory of its buffer. */
static pln_status region_offset(view_lowering *x, pln_stmt_rewrite *s,
                                pln_ref region, pln_ref *out) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref firsts[PLN_MOST_AXES], flat[PLN_MOST_AXES];
  pln_ref memory = region_operand(s, region, 0);
  uint32_t rank = rank_of(s, region), n;
  if (rank >= PLN_MOST_AXES)
    return pln_diag_error(b->engine, PLN_ERR_LIMIT, NULL,
                          "tir.LowerMatchBuffer: a region has more than %d "
                          "dimensions",
                          PLN_MOST_AXES - 1);
  for (uint32_t i = 0; i < rank; i++)
    firsts[i] = first_of(s, region, i);
  PLN_TRY(pln_flatten_indices(x->scopes.a, b, memory, rank, firsts, flat, &n));
  pln_ref offset = pln_buffer_fields_of(b->graph, memory).elem_offset;
  *out = flat[0];
  if (n > 1)
    return pln_stmt_int_like(s, offset, 0, out);
  if (pln_is_int(b->graph, offset, 0))
    return PLN_OK;
  PLN_TRY(pln_build_folded(b, PLN_PRIM_ADD, *out, offset, out));
  return pln_scoped_simplify(&x->scopes, s, *out, out);
}

static pln_status check_factor(view_lowering *x, pln_stmt_rewrite *s,
                               pln_ref buffer, pln_ref offset) {
  const pln_graph *g = x->g;
  pln_term term;
  int64_t coeff, base;
  int64_t factor =
      pln_attrs_int(g->engine, g->nodes[buffer].attrs, "offset_factor", 1);
  if (factor <= 1)
    return PLN_OK;
  PLN_TRY(pln_scoped_term(&x->scopes, s, offset, &term));
  PLN_TRY(pln_analyzer_modular_set(x->scopes.a, term, &coeff, &base));
  if (coeff % factor == 0 && base % factor == 0)
    return PLN_OK;
  return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.LowerMatchBuffer: the offset of the view '%s' is "
                        "not known to be a multiple of its offset_factor %lld",
                        name_of(x, buffer), (long long)factor);
}

static pln_status bind_offset(view_lowering *x, pln_stmt_rewrite *s,
                              pln_ref buffer, pln_ref region) {
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  const pln_graph *built = pln_stmt_builder(s)->graph;
  pln_ref memory = region_operand(s, region, 0), offset;
  /* A view with offset 0 of a buffer with offset 0 says nothing of where its
   * region begins. TVM proves that it begins at element 0. */
  if (pln_is_int(x->g, f.elem_offset, 0) &&
      !pln_is_int(built, pln_buffer_fields_of(built, memory).elem_offset, 0))
    return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.LowerMatchBuffer: the view '%s' has no offset, "
                          "but its buffer has one",
                          name_of(x, buffer));
  PLN_TRY(region_offset(x, s, region, &offset));
  PLN_TRY(bind_field(x, s, buffer, "the offset", f.elem_offset, offset));
  return check_factor(x, s, buffer, offset);
}

static pln_status check_view(const view_lowering *x, const pln_stmt_rewrite *s,
                             pln_ref buffer, pln_ref region) {
  pln_engine *e = x->g->engine;
  pln_ref memory = region_operand(s, region, 0);
  pln_type data = x->g->nodes[pln_operand(x->g, buffer, 0)].type;
  const char *what = NULL;
  if (pln_stmt_node(s, memory)->type != x->g->nodes[buffer].type)
    what = "another dtype than";
  else if (pln_type_symbol(e, data) !=
           pln_type_symbol(
               e, pln_stmt_node(s, region_operand(s, memory, 0))->type))
    what = "another storage scope than";
  else if (rank_of(s, region) < x->g->nodes[buffer].results)
    what = "more dimensions than";
  if (!what)
    return PLN_OK;
  return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                        "tir.LowerMatchBuffer: the view '%s' has %s its region",
                        name_of(x, buffer), what);
}

static pln_status bind_view(view_lowering *x, pln_stmt_rewrite *s,
                            pln_ref match) {
  pln_ref buffer = pln_operand(x->g, match, 0), region;
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  PLN_TRY(pln_stmt_map(s, pln_operand(x->g, match, 1), &region));
  PLN_TRY(check_view(x, s, buffer, region));
  uint32_t skipped = rank_of(s, region) - f.rank;
  pln_ref memory = region_operand(s, region, 0);
  x->source[buffer] = region;
  PLN_TRY(bind_field(x, s, buffer, "the data pointer", f.data,
                     region_operand(s, memory, 0)));
  PLN_TRY(bind_offset(x, s, buffer, region));
  PLN_TRY(bind_strides(x, s, buffer, memory, skipped));
  for (uint32_t i = 0; i < f.rank; i++)
    PLN_TRY(bind_field(x, s, buffer, "the shape", f.shape[i],
                       extent_of(s, region, i + skipped)));
  return PLN_OK;
}

/* ----------------------------------------------------------------- accesses
 */

/* Dimensions that the view does not have must have one index. */
static pln_status check_skipped(view_lowering *x, pln_stmt_rewrite *s,
                                pln_ref buffer, pln_ref extent) {
  pln_ref one;
  bool equal;
  PLN_TRY(pln_stmt_int_like(s, extent, 1, &one));
  PLN_TRY(proves_equal(x, s, extent, one, &equal));
  if (equal)
    return PLN_OK;
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.LowerMatchBuffer: the region of the view '%s' has "
                        "more than one index in a dimension that the view "
                        "does not have",
                        name_of(x, buffer));
}

/* Index `i` of the view's memory, where the view has `index`. */
static pln_status shift(pln_stmt_rewrite *s, pln_ref region, uint32_t i,
                        pln_ref index, pln_ref *out) {
  return pln_build_folded(pln_stmt_builder(s), PLN_PRIM_ADD,
                          first_of(s, region, i), index, out);
}

/* out[0 .. rank): indices into the memory of `n` indices into the view. */
static pln_status convert_indices(view_lowering *x, pln_stmt_rewrite *s,
                                  pln_ref buffer, uint32_t n,
                                  const pln_ref *indices, pln_ref *out) {
  pln_ref region = x->source[buffer];
  uint32_t skipped = rank_of(s, region) - n;
  for (uint32_t i = 0; i < skipped; i++) {
    PLN_TRY(check_skipped(x, s, buffer, extent_of(s, region, i)));
    out[i] = first_of(s, region, i);
  }
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(shift(s, region, i + skipped, indices[i], &out[i + skipped]));
  return PLN_OK;
}

static bool is_view(const view_lowering *x, pln_ref buffer) {
  return x->g->nodes[buffer].kind == PLN_BUFFER &&
         x->source[buffer] != PLN_NONE;
}

static pln_status convert_load(view_lowering *x, pln_stmt_rewrite *s,
                               pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref buffer = pln_operand(x->g, old, 0);
  pln_ref indices[PLN_MOST_AXES], operands[PLN_MOST_AXES + 1];
  for (uint32_t i = 1; i < n->count; i++)
    indices[i - 1] = pln_stmt_image(s, pln_operand(x->g, old, i));
  operands[0] = region_operand(s, x->source[buffer], 0);
  PLN_TRY(convert_indices(x, s, buffer, n->count - 1, indices, operands + 1));
  pln_prim spec = {.kind = PLN_BUFFER_LOAD,
                   .n = 1 + rank_of(s, x->source[buffer]),
                   .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static pln_status convert_range(pln_stmt_rewrite *s, pln_ref region, uint32_t i,
                                pln_ref range, pln_ref *out) {
  pln_ref ends[2];
  PLN_TRY(shift(s, region, i, region_operand(s, range, 0), &ends[0]));
  ends[1] = region_operand(s, range, 1);
  pln_prim spec = {.kind = PLN_RANGE, .n = 2, .operands = ends};
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

static pln_status convert_region(view_lowering *x, pln_stmt_rewrite *s,
                                 pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref buffer = pln_operand(x->g, old, 0), region = x->source[buffer];
  pln_ref operands[PLN_MOST_AXES + 1];
  uint32_t rank = rank_of(s, region), skipped = rank - (n->count - 1);
  operands[0] = region_operand(s, region, 0);
  for (uint32_t i = 0; i < rank; i++)
    if (i < skipped)
      operands[i + 1] = region_operand(s, region, i + 1);
    else
      PLN_TRY(convert_range(
          s, region, i,
          pln_stmt_image(s, pln_operand(x->g, old, i - skipped + 1)),
          &operands[i + 1]));
  pln_prim spec = {
      .kind = PLN_BUFFER_REGION, .n = rank + 1, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static pln_status convert_store(view_lowering *x, pln_stmt_rewrite *s,
                                pln_ref stmt, pln_ref *node) {
  const pln_node *n = &x->g->nodes[stmt];
  pln_ref buffer = pln_operand(x->g, stmt, 0);
  pln_ref indices[PLN_MOST_AXES], operands[PLN_MOST_AXES + 2];
  for (uint32_t i = 2; i < n->count; i++)
    indices[i - 2] = pln_stmt_operand(s, i);
  operands[0] = region_operand(s, x->source[buffer], 0);
  operands[1] = pln_stmt_operand(s, 1);
  PLN_TRY(convert_indices(x, s, buffer, n->count - 2, indices, operands + 2));
  pln_prim spec = {.kind = PLN_BUFFER_STORE,
                   .n = 2 + rank_of(s, x->source[buffer]),
                   .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

/* ----------------------------------------------------------------- the pass
 */

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  view_lowering *x = ud;
  const pln_node *n = &x->g->nodes[old];
  bool load = n->kind == PLN_BUFFER_LOAD;
  if ((!load && n->kind != PLN_BUFFER_REGION) ||
      !is_view(x, pln_operand(x->g, old, 0)))
    return PLN_OK;
  return load ? convert_load(x, s, old, node) : convert_region(x, s, old, node);
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  view_lowering *x = ud;
  if (x->g->nodes[stmt].kind != PLN_MATCH_BUFFER)
    return PLN_OK;
  *node = PLN_NO_STMT;
  return bind_view(x, s, stmt);
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  (void)skip;
  return pln_analyzer_scopes_enter(&((view_lowering *)ud)->scopes, s, stmt, k);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  (void)s, (void)stmt, (void)k, (void)body, (void)again;
  pln_analyzer_scopes_leave(&((view_lowering *)ud)->scopes);
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  view_lowering *x = ud;
  if (x->g->nodes[stmt].kind != PLN_BUFFER_STORE ||
      !is_view(x, pln_operand(x->g, stmt, 0)))
    return PLN_OK;
  return convert_store(x, s, stmt, node);
}

/* Marks parameters of scopes, and the variables that a buffer of a parameter
 * is described by. */
static void mark_known(view_lowering *x) {
  const pln_graph *g = x->g;
  for (pln_scope i = 0; i < g->n_scopes; i++)
    for (uint32_t k = 0; k < g->scopes[i].n_params; k++)
      x->known[g->scopes[i].begin + k] = true;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_BUFFER_BIND)
      continue;
    pln_ref buffer = pln_operand(g, ref, 1);
    for (uint32_t i = 0; i < g->nodes[buffer].count; i++)
      if (g->nodes[pln_operand(g, buffer, i)].kind == PLN_VAR)
        x->known[pln_operand(g, buffer, i)] = true;
  }
}

static pln_status lower_views(view_lowering *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = visit_expr,
                              .enter = enter_stmt,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  if (!x->source || !x->known)
    return pln_nomem(x->g->engine);
  memset(x->source, 0xff, x->g->n_nodes * sizeof *x->source);
  mark_known(x);
  PLN_TRY(pln_analyzer_scopes_begin(&x->scopes, x->g));
  pln_status status = pln_lower_function(run, &mutator);
  pln_analyzer_scopes_end(&x->scopes);
  return status;
}

pln_status pln_pass_tir_lower_match_buffer(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  view_lowering x = {.g = g};
  if (pln_is_legacy_te(g) || !pln_has_kind(g, PLN_MATCH_BUFFER))
    return PLN_OK;
  x.source = pln_mem_new(g->engine, g->n_nodes * sizeof *x.source);
  x.known = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *x.known);
  pln_status status = lower_views(&x, run);
  pln_mem_free(g->engine, x.source, g->n_nodes * sizeof *x.source);
  pln_mem_free(g->engine, x.known, g->n_nodes * sizeof *x.known);
  return status;
}
