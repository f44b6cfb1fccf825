/* lower_opaque_block.c: tir.LowerOpaqueBlock: from Blocks to plain statements.
 *
 * Run by the executor after tir.ConvertBlocksToOpaque. A predicate becomes a
 * branch, a block's buffers are allocated, a loop that is bound to a thread
 * becomes an attribute, annotations pragma_* become attributes, and a loop of
 * one round its body.
 *
 *     with T.block(""): T.where(i < 7); B = T.alloc_buffer((4,)); B[0] = A[i]
 *         =>   if i < 7: B = T.decl_buffer((4,)); B[0] = A[i]
 *
 * Semantics: TVM's tir.LowerOpaqueBlock. */

#include "lower/flatten/flattened_buffer.h"
#include "lower/lower.h"

static pln_status build_owner(pln_stmt_rewrite *s, const pln_prim *spec,
                              const pln_ref *param, pln_ref stmt,
                              pln_ref *out) {
  pln_body body = {.n_params = param != NULL, .params = param, .stmt = stmt};
  return pln_build_floating_stmt(pln_stmt_builder(s), spec, 1, &body, out);
}

/* ------------------------------------------------------------------- pragmas
 */

static pln_attrs annotations_of(const pln_graph *g, pln_ref stmt) {
  const pln_attr *all =
      pln_attrs_find(g->engine, g->nodes[stmt].attrs, "annotations");
  return all && all->kind == PLN_ATTR_DICT ? all->v.dict : 0;
}

static bool is_pragma(const pln_graph *g, const pln_attr *entry) {
  pln_slice name = pln_symbol_text(g->engine, entry->name);
  return name.size > 7 && memcmp(name.data, "pragma_", 7) == 0;
}

/* An annotation as the value of an AttrStmt: a number or a text. */
static pln_status annotation_value(pln_builder *b, const pln_attr *entry,
                                   pln_ref *out) {
  pln_type type;
  pln_symbol text;
  switch (entry->kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL:
    PLN_TRY(pln_type_prim(b->engine,
                          entry->kind == PLN_ATTR_BOOL ? PLN_BOOL : PLN_INT32,
                          1, &type));
    return pln_build_int_imm(b, type, entry->v.i, out);
  case PLN_ATTR_FLOAT:
    PLN_TRY(pln_type_prim(b->engine, PLN_FLOAT32, 1, &type));
    return pln_build_float_imm(b, type, entry->v.f, out);
  case PLN_ATTR_STRING:
    PLN_TRY(pln_symbol_intern(b->engine, entry->v.s, &text));
    return pln_build_string_imm(b, text, out);
  default:
    return pln_diag_error(b->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.LowerOpaqueBlock: the annotation '%s' is "
                          "neither a number nor a text",
                          pln_symbol_text(b->engine, entry->name).data);
  }
}

static pln_status attr_key(pln_engine *e, pln_slice key, pln_attrs *out) {
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("attr_key"), &name));
  return pln_attrs_with(
      e, 0, &(pln_attr){.name = name, .kind = PLN_ATTR_STRING, .v.s = key},
      out);
}

/* Annotations pragma_* of a loop or Block, as attributes of `what` around it.
 */
static pln_status wrap_pragmas(const pln_graph *g, pln_stmt_rewrite *s,
                               pln_ref stmt, pln_ref what, pln_ref *node) {
  pln_attrs all = annotations_of(g, stmt);
  for (uint32_t i = pln_attrs_count(g->engine, all); i-- > 0;) {
    const pln_attr *entry = pln_attrs_at(g->engine, all, i);
    pln_ref operands[2] = {what, PLN_NONE};
    pln_prim spec = {.kind = PLN_ATTR_STMT, .n = 2, .operands = operands};
    if (!is_pragma(g, entry))
      continue;
    PLN_TRY(annotation_value(pln_stmt_builder(s), entry, &operands[1]));
    PLN_TRY(attr_key(g->engine, pln_symbol_text(g->engine, entry->name),
                     &spec.attrs));
    PLN_TRY(build_owner(s, &spec, NULL, *node, node));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- blocks
 */

/* The extents of memory for a Buffer: its shape, or strides[i - 1] / strides[i]
 * behind the first where it has strides. */
static pln_status allocated_extents(pln_builder *b, pln_ref buffer,
                                    pln_ref *extents, uint32_t *n) {
  pln_buffer_fields f = pln_buffer_fields_of(b->graph, buffer);
  pln_ref strides[PLN_MOST_AXES];
  if (f.rank > PLN_MOST_AXES)
    return pln_diag_error(b->engine, PLN_ERR_LIMIT, NULL,
                          "tir.LowerOpaqueBlock: a buffer has more than %d "
                          "dimensions",
                          PLN_MOST_AXES);
  *n = f.rank;
  memcpy(extents, f.shape, f.rank * sizeof *extents);
  memcpy(strides, f.strides, f.n_strides * sizeof *strides);
  for (uint32_t i = 1; i < f.n_strides; i++)
    PLN_TRY(pln_build_folded(b, PLN_PRIM_FLOORDIV, strides[i - 1], strides[i],
                             &extents[i]));
  return PLN_OK;
}

/* buffer = T.decl_buffer(...); body */
static pln_status allocate(pln_stmt_rewrite *s, pln_ref buffer, pln_ref *body) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref operands[PLN_MOST_AXES + 1], data = pln_operand(b->graph, buffer, 0);
  pln_type boolean;
  pln_prim decl = {.kind = PLN_DECL_BUFFER, .n = 1, .operands = &buffer};
  pln_prim spec = {.kind = PLN_ALLOCATE, .operands = operands};
  PLN_TRY(build_owner(s, &decl, NULL, *body, body));
  PLN_TRY(pln_type_prim(b->engine, PLN_BOOL, 1, &boolean));
  PLN_TRY(pln_build_int_imm(b, boolean, 1, &operands[0]));
  PLN_TRY(allocated_extents(b, buffer, operands + 1, &spec.n));
  spec.n++;
  PLN_TRY(
      pln_dtype_attr(b->engine, pln_stmt_node(s, buffer)->type, &spec.attrs));
  return build_owner(s, &spec, &data, *body, body);
}

/* The body of a Block around which its buffers are allocated, the first
 * outermost. */
static pln_status leave_block(const pln_graph *g, pln_stmt_rewrite *s,
                              pln_ref stmt, pln_ref *node) {
  pln_scope scope = g->nodes[stmt].data;
  *node = pln_stmt_body(s, 0);
  for (pln_ref ref = g->scopes[scope].end; ref-- > g->scopes[scope].begin;) {
    const pln_node *n = &g->nodes[ref];
    pln_ref buffer;
    /* Past what is inside of other statements: blocks may be nested deeply. */
    if (pln_owns(n))
      ref = g->scopes[n->data].begin;
    if (n->kind != PLN_ALLOC_BUFFER)
      continue;
    PLN_TRY(pln_stmt_map(s, pln_operand(g, ref, 0), &buffer));
    PLN_TRY(allocate(s, buffer, node));
  }
  pln_type type;
  pln_ref zero;
  PLN_TRY(pln_type_prim(g->engine, PLN_INT32, 1, &type));
  PLN_TRY(pln_build_int_imm(pln_stmt_builder(s), type, 0, &zero));
  return wrap_pragmas(g, s, stmt, zero, node);
}

static pln_status leave_realize(pln_stmt_rewrite *s, pln_ref *node) {
  pln_ref predicate = pln_stmt_operand(s, 0);
  const pln_node *n = pln_stmt_node(s, predicate);
  *node = pln_stmt_body(s, 0);
  if (n->kind == PLN_INT_IMM && pln_imm_bits(n) != 0)
    return PLN_OK;
  pln_prim spec = {.kind = PLN_IF_THEN_ELSE, .n = 1, .operands = &predicate};
  return build_owner(s, &spec, NULL, *node, node);
}

/* --------------------------------------------------------------------- loops
 */

static bool is_unit_loop(const pln_graph *g, const pln_stmt_rewrite *s,
                         pln_ref stmt) {
  return pln_is_int(pln_stmt_builder(s)->graph, pln_stmt_operand(s, 1), 1) &&
         pln_attrs_count(g->engine, annotations_of(g, stmt)) == 0 &&
         pln_for_kind_of(g, stmt) != PLN_FOR_THREAD_BINDING;
}

/* The attributes of a loop without annotations pragma_*. */
static pln_status without_pragmas(const pln_graph *g, pln_ref stmt,
                                  pln_attrs *out) {
  pln_attrs all = annotations_of(g, stmt), left = all;
  pln_engine *e = g->engine;
  pln_symbol name;
  *out = g->nodes[stmt].attrs;
  for (uint32_t i = 0; i < pln_attrs_count(e, all); i++)
    if (is_pragma(g, pln_attrs_at(e, all, i)))
      PLN_TRY(pln_attrs_without(
          e, left, pln_symbol_text(e, pln_attrs_at(e, all, i)->name).data,
          &left));
  if (left == all)
    return PLN_OK;
  if (pln_attrs_count(e, left) == 0)
    return pln_attrs_without(e, *out, "annotations", out);
  PLN_TRY(pln_symbol_intern(e, pln_text("annotations"), &name));
  return pln_attrs_with(
      e, *out, &(pln_attr){.name = name, .kind = PLN_ATTR_DICT, .v.dict = left},
      out);
}

/* T.launch_thread: an attribute whose node is an IterVar over the loop. */
static pln_status launch_thread(const pln_graph *g, pln_stmt_rewrite *s,
                                pln_ref stmt, pln_ref var, pln_ref *node) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref binding = pln_operand(g, stmt, 2), operands[2];
  pln_slice tag =
      pln_attrs_string(g->engine, g->nodes[binding].attrs, "thread_tag", "");
  bool virtual = tag.size >= 7 && memcmp(tag.data, "vthread", 7) == 0;
  pln_prim iter = {.kind = PLN_ITER_VAR,
                   .data = 1, /* ThreadIndex */
                   .attrs = g->nodes[binding].attrs,
                   .n = 1,
                   .operands = &var};
  PLN_TRY(pln_build_prim(b, &iter, &operands[0]));
  operands[1] = pln_stmt_operand(s, 1);
  pln_prim spec = {.kind = PLN_ATTR_STMT, .n = 2, .operands = operands};
  PLN_TRY(attr_key(g->engine,
                   pln_text(virtual ? "virtual_thread" : "thread_extent"),
                   &spec.attrs));
  return build_owner(s, &spec, NULL, pln_stmt_body(s, 0), node);
}

static pln_status leave_loop(const pln_graph *g, pln_stmt_rewrite *s,
                             pln_ref stmt, pln_ref *node) {
  pln_ref ends[2], var;
  if (is_unit_loop(g, s, stmt)) {
    *node = pln_stmt_body(s, 0);
    return PLN_OK;
  }
  ends[0] = pln_stmt_operand(s, 0);
  ends[1] = pln_stmt_operand(s, 1);
  PLN_TRY(pln_stmt_map(s, pln_stmt_param(s, stmt, 0, 0), &var));
  if (pln_for_kind_of(g, stmt) == PLN_FOR_THREAD_BINDING) {
    PLN_TRY(launch_thread(g, s, stmt, var, node));
  } else {
    pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = ends};
    if (!annotations_of(g, stmt))
      return PLN_OK;
    PLN_TRY(without_pragmas(g, stmt, &spec.attrs));
    PLN_TRY(build_owner(s, &spec, &var, pln_stmt_body(s, 0), node));
  }
  return wrap_pragmas(g, s, stmt, var, node);
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  const pln_graph *g = ud;
  (void)k;
  (void)skip;
  if (g->nodes[stmt].kind == PLN_FOR && is_unit_loop(g, s, stmt))
    pln_stmt_bind(s, pln_stmt_param(s, stmt, 0, 0), pln_stmt_operand(s, 0));
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const pln_graph *g = ud;
  switch (g->nodes[stmt].kind) {
  case PLN_BLOCK: return leave_block(g, s, stmt, node);
  case PLN_BLOCK_REALIZE: return leave_realize(s, node);
  case PLN_FOR: return leave_loop(g, s, stmt, node);
  case PLN_BLOCK_READS:
  case PLN_BLOCK_WRITES:
  case PLN_ALLOC_BUFFER: *node = PLN_NO_STMT; return PLN_OK;
  default: return PLN_OK;
  }
}

static pln_status refuse_others(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    const char *first = n->kind == PLN_BLOCK_INIT     ? "tir.LowerInitBlock"
                        : n->kind == PLN_MATCH_BUFFER ? "tir.LowerMatchBuffer"
                        : n->kind == PLN_BLOCK && n->count > 0
                            ? "tir.ConvertBlocksToOpaque"
                            : NULL;
    if (first)
      return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.LowerOpaqueBlock: run %s first", first);
  }
  return PLN_OK;
}

pln_status pln_pass_tir_lower_opaque_block(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_stmt_mutator mutator = {.ud = (void *)(uintptr_t)g,
                              .enter_body = enter_body,
                              .leave = leave_stmt};
  if (pln_is_legacy_te(g))
    return PLN_OK;
  PLN_TRY(refuse_others(g));
  return pln_lower_function(run, &mutator);
}
