/* storage_flattener.c: tir.StorageFlattener: memory that is realised is
 * allocated, and is accessed by one index for each group of axes.
 *
 * A step of tir.StorageFlatten. bool is stored as int8. With bounds, each store
 * stands in attributes `buffer_bound` of the buffers that it accesses, for
 * tir.InstrumentBoundCheckers (TVM's tir.FlattenBuffer writes none, so that no
 * access of a function that is written as loops is checked there).
 *
 *     T.realize(B[0:4, 0:8]); B[i, j] = 0
 *         =>   B = T.allocate([32], ...); B_1[i * 8 + j] = 0
 *
 * tir.FlattenBuffer does the same for functions that are not made of tensor
 * expressions, whose memory is allocated already.
 *
 * Semantics: TVM's StorageFlattener, tir.FlattenBuffer. */

#include "lower/flatten/flatten.h"

typedef struct flattener {
  const pln_graph *g;
  pln_idmap *external; /* pln_external_buffers */
  pln_analyzer *a;
  pln_ref *flat; /* by old Buffer: its flattened image, or PLN_NONE */
  pln_ref *from; /* by old Buffer: the image that this was made of */
  bool bounds;
  bool blocks; /* tir.FlattenBuffer: each Buffer gets a flat one of its own */
  pln_ref *accessed; /* images of Buffers, of the present statement */
  uint32_t n, cap;
} flattener;

/* The flattened image of an old Buffer. */
static pln_status flat_buffer(flattener *x, pln_stmt_rewrite *s, pln_ref old,
                              pln_ref *out) {
  pln_ref image = pln_stmt_image(s, old);
  if (x->flat[old] == PLN_NONE || x->from[old] != image) {
    PLN_TRY(pln_flatten_buffer(pln_stmt_builder(s), image, x->blocks,
                               &x->flat[old]));
    x->from[old] = image;
  }
  *out = x->flat[old];
  return PLN_OK;
}

static pln_status cast_to(pln_stmt_rewrite *s, pln_type type, pln_ref *value) {
  if (pln_stmt_node(s, *value)->type == type)
    return PLN_OK;
  pln_prim spec = {
      .kind = PLN_PRIM_CAST, .type = type, .n = 1, .operands = value};
  return pln_build_prim(pln_stmt_builder(s), &spec, value);
}

/* dtype with the lanes of another type. */
static pln_status with_lanes(pln_engine *e, pln_type element, pln_type lanes,
                             pln_type *out) {
  return pln_type_prim(e, pln_type_dtype(e, element),
                       (uint32_t)pln_type_number(e, lanes), out);
}

static pln_status note_access(flattener *x, pln_ref buffer) {
  if (!x->bounds)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->accessed, &x->cap,
                       (size_t)x->n + 1, sizeof *x->accessed));
  x->accessed[x->n++] = buffer;
  return PLN_OK;
}

/* The Buffer whose shape says how large the memory is: the flattened one where
 * strides leave gaps, which TVM's bounds forget. */
static pln_ref bounding(const flattener *x, const pln_stmt_rewrite *s,
                        pln_ref buffer, pln_ref flat) {
  const pln_graph *g = pln_stmt_builder(s)->graph;
  return x->blocks || pln_buffer_fields_of(g, buffer).n_strides > 0 ? flat
                                                                    : buffer;
}

/* tvm_tuple(1 * shape[0] * (1 * shape[1]) * ...), of which nothing is folded.
 */
static pln_status make_bound(pln_stmt_rewrite *s, pln_ref buffer,
                             pln_ref *out) {
  pln_builder *b = pln_stmt_builder(s);
  pln_engine *e = b->engine;
  uint32_t rank = pln_buffer_fields_of(b->graph, buffer).rank;
  int64_t lanes = pln_type_number(e, b->graph->nodes[buffer].type);
  pln_prim call = {.kind = PLN_PRIM_CALL, .n = 1, .operands = out};
  for (uint32_t i = 0; i < rank; i++) {
    pln_ref axis = pln_buffer_fields_of(b->graph, buffer).shape[i], factor;
    PLN_TRY(pln_stmt_int_like(s, axis, lanes, &factor));
    PLN_TRY(pln_build_binary(b, PLN_PRIM_MUL, factor, axis, &axis));
    if (i > 0)
      PLN_TRY(pln_build_binary(b, PLN_PRIM_MUL, *out, axis, &axis));
    *out = axis;
  }
  call.data = pln_builtin_find(pln_text("tvm_tuple"));
  PLN_TRY(pln_type_prim(e, PLN_DTYPE_NONE, 1, &call.type));
  return pln_build_prim(b, &call, out);
}

static pln_status wrap_bound(pln_stmt_rewrite *s, pln_ref buffer,
                             pln_ref *stmt) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref operands[2] = {pln_operand(b->graph, buffer, 0), PLN_NONE};
  pln_prim spec = {.kind = PLN_ATTR_STMT, .n = 2, .operands = operands};
  pln_body body = {.stmt = *stmt};
  pln_symbol name;
  if (pln_buffer_fields_of(b->graph, buffer).rank == 0)
    return PLN_OK;
  PLN_TRY(make_bound(s, buffer, &operands[1]));
  PLN_TRY(pln_symbol_intern(b->engine, pln_text("attr_key"), &name));
  PLN_TRY(pln_attrs_with(b->engine, 0,
                         &(pln_attr){.name = name,
                                     .kind = PLN_ATTR_STRING,
                                     .v.s = pln_text("buffer_bound")},
                         &spec.attrs));
  return pln_build_floating_stmt(b, &spec, 1, &body, stmt);
}

/* The buffers that are read, then the one that is written, inside out. */
static pln_status wrap_bounds(flattener *x, pln_stmt_rewrite *s, pln_ref stmt,
                              pln_ref *node) {
  if (!x->bounds)
    return PLN_OK;
  PLN_TRY(note_access(x, bounding(x, s, pln_stmt_operand(s, 0),
                                  x->flat[pln_operand(x->g, stmt, 0)])));
  if (*node == PLN_NONE)
    PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  for (uint32_t i = 0; i < x->n; i++)
    PLN_TRY(wrap_bound(s, x->accessed[i], node));
  x->n = 0;
  return PLN_OK;
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  flattener *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_ref buffer, operands[PLN_MOST_AXES + 1], indices[PLN_MOST_AXES];
  uint32_t count;
  if (n->kind != PLN_BUFFER_LOAD || n->count > PLN_MOST_AXES)
    return PLN_OK;
  buffer = pln_operand(x->g, old, 0);
  PLN_TRY(flat_buffer(x, s, buffer, &operands[0]));
  PLN_TRY(
      note_access(x, bounding(x, s, pln_stmt_image(s, buffer), operands[0])));
  for (uint32_t i = 1; i < n->count; i++)
    indices[i - 1] = pln_stmt_image(s, pln_operand(x->g, old, i));
  PLN_TRY(pln_flatten_indices(x->a, pln_stmt_builder(s),
                              pln_stmt_image(s, buffer), n->count - 1, indices,
                              operands + 1, &count));
  if (operands[0] == pln_stmt_image(s, buffer) &&
      memcmp(indices, operands + 1, count * sizeof *indices) == 0)
    return PLN_OK;
  pln_prim spec = {
      .kind = PLN_BUFFER_LOAD, .n = count + 1, .operands = operands};
  PLN_TRY(pln_build_prim(pln_stmt_builder(s), &spec, node));
  return pln_type_dtype(x->g->engine, n->type) == PLN_BOOL
             ? cast_to(s, n->type, node)
             : PLN_OK;
}

static pln_status flatten_store(flattener *x, pln_stmt_rewrite *s, pln_ref stmt,
                                pln_ref *node) {
  uint32_t n = x->g->nodes[stmt].count, count;
  pln_ref buffer = pln_operand(x->g, stmt, 0);
  pln_ref operands[PLN_MOST_AXES + 2], indices[PLN_MOST_AXES];
  pln_type type;
  if (n > PLN_MOST_AXES)
    return PLN_OK;
  PLN_TRY(flat_buffer(x, s, buffer, &operands[0]));
  operands[1] = pln_stmt_operand(s, 1);
  for (uint32_t i = 2; i < n; i++)
    indices[i - 2] = pln_stmt_operand(s, i);
  PLN_TRY(pln_flatten_indices(x->a, pln_stmt_builder(s), pln_stmt_operand(s, 0),
                              n - 2, indices, operands + 2, &count));
  if (operands[0] == pln_stmt_operand(s, 0) &&
      memcmp(indices, operands + 2, count * sizeof *indices) == 0)
    return PLN_OK;
  PLN_TRY(with_lanes(x->g->engine, pln_stmt_node(s, operands[0])->type,
                     pln_stmt_node(s, operands[1])->type, &type));
  PLN_TRY(cast_to(s, type, &operands[1]));
  pln_prim spec = {
      .kind = PLN_BUFFER_STORE, .n = count + 2, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

enum { TEMPORARY_ALIGNMENT = 64 };

/* The alignment of a temporary: 64 bytes, less if it is smaller (TVM's
 * GetTempAllocaAlignment). */
static int64_t temporary_alignment(const pln_graph *g, pln_ref buffer) {
  pln_buffer_fields f = pln_buffer_fields_of(g, buffer);
  pln_type type = g->nodes[buffer].type;
  int64_t align = TEMPORARY_ALIGNMENT;
  int64_t bits = pln_type_dtype(g->engine, type) == PLN_BOOL
                     ? 1
                     : pln_dtype_bits(pln_type_dtype(g->engine, type));
  bits *= pln_type_number(g->engine, type);
  for (uint32_t i = 0; i < f.rank; i++)
    if (g->nodes[f.shape[i]].kind != PLN_INT_IMM ||
        !pln_mul_fits(bits, pln_node_int(g, f.shape[i]), &bits))
      return align;
  while (bits > 0 && align > 1 && align > bits / 8)
    align /= 2;
  return align;
}

/* The Buffer that is realised, with the alignment of what is allocated. */
static pln_status align_buffer(pln_stmt_rewrite *s, pln_ref old) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref image, aligned;
  pln_symbol name;
  PLN_TRY(pln_stmt_map(s, old, &image));
  pln_node n = *pln_stmt_node(s, image);
  int64_t align = temporary_alignment(b->graph, image);
  if (pln_attrs_int(b->engine, n.attrs, "data_alignment",
                    TEMPORARY_ALIGNMENT) == align)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(b->engine, pln_text("data_alignment"), &name));
  pln_prim spec = {.kind = PLN_BUFFER,
                   .count = n.results,
                   .data = n.data,
                   .type = n.type,
                   .n = n.count,
                   .operands = b->graph->operands + n.first};
  if (align == TEMPORARY_ALIGNMENT)
    PLN_TRY(
        pln_attrs_without(b->engine, n.attrs, "data_alignment", &spec.attrs));
  else
    PLN_TRY(pln_attrs_with(
        b->engine, n.attrs,
        &(pln_attr){.name = name, .kind = PLN_ATTR_INT, .v.i = align},
        &spec.attrs));
  PLN_TRY(pln_build_prim(b, &spec, &aligned));
  pln_stmt_bind(s, old, aligned);
  return PLN_OK;
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  flattener *x = ud;
  (void)node;
  return x->g->nodes[stmt].kind == PLN_BUFFER_REALIZE &&
                 !pln_is_external_buffer(x->external, x->g,
                                         pln_operand(x->g, stmt, 0))
             ? align_buffer(s, pln_operand(x->g, stmt, 0))
             : PLN_OK;
}

/* BufferRealize as Allocate of the flattened Buffer. */
static pln_status flatten_realize(flattener *x, pln_stmt_rewrite *s,
                                  pln_ref stmt, pln_ref *node) {
  pln_builder *b = pln_stmt_builder(s);
  if (pln_is_external_buffer(x->external, x->g, pln_operand(x->g, stmt, 0))) {
    *node = pln_stmt_body(s, 0);
    return PLN_OK;
  }
  pln_ref flat, operands[PLN_MOST_AXES + 1];
  pln_type boolean;
  PLN_TRY(flat_buffer(x, s, pln_operand(x->g, stmt, 0), &flat));
  PLN_TRY(pln_type_prim(b->engine, PLN_BOOL, 1, &boolean));
  PLN_TRY(pln_build_int_imm(b, boolean, 1, &operands[0]));
  PLN_TRY(pln_stmt_broadcast(s, pln_stmt_node(s, flat)->type, &operands[0]));
  pln_buffer_fields f = pln_buffer_fields_of(b->graph, flat);
  memcpy(operands + 1, f.shape, f.rank * sizeof *operands);
  pln_ref data = f.data;
  pln_prim spec = {.kind = PLN_ALLOCATE, .n = f.rank + 1, .operands = operands};
  PLN_TRY(pln_dtype_attr(b->engine, pln_stmt_node(s, flat)->type, &spec.attrs));
  pln_body body = {.n_params = 1, .params = &data, .stmt = pln_stmt_body(s, 0)};
  return pln_build_floating_stmt(b, &spec, 1, &body, node);
}

/* An AttrStmt on a Buffer is one on its data from here on. */
static pln_status flatten_attr(flattener *x, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  const pln_node *n = &x->g->nodes[stmt];
  pln_builder *b = pln_stmt_builder(s);
  pln_ref what = pln_operand(x->g, stmt, 0), operands[2];
  if (x->g->nodes[what].kind != PLN_BUFFER)
    return PLN_OK;
  operands[0] = pln_operand(b->graph, pln_stmt_operand(s, 0), 0);
  operands[1] = pln_stmt_operand(s, 1);
  pln_prim spec = {
      .kind = PLN_ATTR_STMT, .attrs = n->attrs, .n = 2, .operands = operands};
  pln_body body = {.stmt = pln_stmt_body(s, 0)};
  return pln_build_floating_stmt(b, &spec, 1, &body, node);
}

/* ------------------------------------------------------------------- blocks
 */

/* AllocBuffer of the flattened Buffer. */
static pln_status flatten_alloc_buffer(flattener *x, pln_stmt_rewrite *s,
                                       pln_ref stmt, pln_ref *node) {
  pln_ref flat;
  PLN_TRY(flat_buffer(x, s, pln_operand(x->g, stmt, 0), &flat));
  pln_prim spec = {.kind = PLN_ALLOC_BUFFER, .n = 1, .operands = &flat};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

/* The first or last index of a Range of the builder. */
static pln_status end_of_range(pln_builder *b, pln_ref range, bool last,
                               pln_ref *out) {
  pln_ref min = pln_operand(b->graph, range, 0);
  pln_ref extent = pln_operand(b->graph, range, 1), one;
  *out = min;
  if (!last)
    return PLN_OK;
  PLN_TRY(pln_build_int_imm(b, b->graph->nodes[extent].type, 1, &one));
  PLN_TRY(pln_build_folded(b, PLN_PRIM_ADD, min, extent, out));
  return pln_build_folded(b, PLN_PRIM_SUB, *out, one, out);
}

/* A corner of a region in the flattened Buffer. */
static pln_status flat_corner(flattener *x, pln_builder *b, pln_ref region,
                              bool last, pln_ref *out, uint32_t *count) {
  pln_ref indices[PLN_MOST_AXES];
  uint32_t n = b->graph->nodes[region].count - 1;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(end_of_range(b, pln_operand(b->graph, region, 1 + i), last,
                         &indices[i]));
  return pln_flatten_indices(x->a, b, pln_operand(b->graph, region, 0), n,
                             indices, out, count);
}

/* The Range from one index to another. */
static pln_status range_between(flattener *x, pln_builder *b, pln_ref first,
                                pln_ref last, pln_ref *out) {
  pln_term from, to;
  pln_ref operands[2] = {first, PLN_NONE};
  PLN_TRY(pln_analyzer_import_built(x->a, b, first, &from));
  PLN_TRY(pln_analyzer_import_built(x->a, b, last, &to));
  to = pln_sub(x->a, pln_add_const(x->a, to, 1), from);
  PLN_TRY(x->a->status);
  PLN_TRY(pln_analyzer_simplify(x->a, to, 2, &to));
  PLN_TRY(pln_analyzer_export(x->a, b, to, &operands[1]));
  pln_prim spec = {.kind = PLN_RANGE, .n = 2, .operands = operands};
  return pln_build_prim(b, &spec, out);
}

/* A region that a Block reads or writes: from its first to its last element,
 * in each group of axes. */
static pln_status flatten_region(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                 uint32_t i, pln_ref *node) {
  flattener *x = ud;
  pln_kind kind = (pln_kind)x->g->nodes[stmt].kind;
  pln_builder *b = pln_stmt_builder(s);
  pln_ref first[PLN_MOST_AXES], last[PLN_MOST_AXES];
  pln_ref operands[PLN_MOST_AXES + 1], old = pln_operand(x->g, stmt, i);
  uint32_t count;
  if (!x->blocks || (kind != PLN_BLOCK_READS && kind != PLN_BLOCK_WRITES) ||
      x->g->nodes[old].count > PLN_MOST_AXES)
    return PLN_OK;
  PLN_TRY(flat_corner(x, b, *node, false, first, &count));
  PLN_TRY(flat_corner(x, b, *node, true, last, &count));
  PLN_TRY(flat_buffer(x, s, pln_operand(x->g, old, 0), &operands[0]));
  for (uint32_t k = 0; k < count; k++)
    PLN_TRY(range_between(x, b, first[k], last[k], &operands[1 + k]));
  pln_prim spec = {
      .kind = PLN_BUFFER_REGION, .n = count + 1, .operands = operands};
  return pln_build_prim(b, &spec, node);
}

static pln_status refuse_view(const flattener *x, pln_ref stmt) {
  pln_ref buffer = pln_operand(x->g, stmt, 0);
  return x->blocks
             ? pln_diag_error(
                   x->g->engine, PLN_ERR_ARGUMENT, NULL,
                   "tir.FlattenBuffer: '%s' is a view of a region; "
                   "tir.LowerMatchBuffer removes views",
                   pln_symbol_text(x->g->engine, x->g->nodes[buffer].data).data)
             : PLN_OK;
}

/* The Buffer that declares all of what an Allocate allocates, as the whole of
 * its body; PLN_NONE: there is none. */
static pln_ref declared_buffer(const pln_graph *g, pln_ref allocate) {
  pln_scope scope = g->nodes[allocate].data;
  pln_ref body = g->scopes[scope].result;
  uint32_t rank = g->nodes[allocate].count - 1;
  if (body == PLN_NONE || g->nodes[body].kind != PLN_DECL_BUFFER)
    return PLN_NONE;
  pln_ref buffer = pln_operand(g, body, 0);
  pln_buffer_fields f = pln_buffer_fields_of(g, buffer);
  if (f.data != g->scopes[scope].begin || f.rank != rank)
    return PLN_NONE;
  for (uint32_t i = 0; i < rank; i++)
    if (!pln_same_expr(g, f.shape[i], pln_operand(g, allocate, 1 + i)))
      return PLN_NONE;
  return buffer;
}

/* One extent for each group of axes of the Buffer, else one in all. */
static pln_status flat_extents(flattener *x, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *out, uint32_t *n) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref buffer = declared_buffer(x->g, stmt), flat;
  if (buffer != PLN_NONE &&
      pln_buffer_fields_of(x->g, buffer).n_separators < PLN_MOST_AXES) {
    PLN_TRY(pln_stmt_map(s, buffer, &flat));
    PLN_TRY(pln_flatten_buffer(b, flat, true, &flat));
    pln_buffer_fields f = pln_buffer_fields_of(b->graph, flat);
    memcpy(out, f.shape, f.rank * sizeof *out);
    *n = f.rank;
    return PLN_OK;
  }
  *n = 1;
  *out = pln_stmt_operand(s, 1);
  for (uint32_t i = 2; i < x->g->nodes[stmt].count; i++)
    PLN_TRY(pln_multiply_extents(b, *out, pln_stmt_operand(s, i), out));
  return PLN_OK;
}

/* Allocate of one extent, and of bytes instead of bool. */
static pln_status flatten_allocate(flattener *x, pln_stmt_rewrite *s,
                                   pln_ref stmt, pln_ref *node) {
  const pln_node *n = &x->g->nodes[stmt];
  pln_builder *b = pln_stmt_builder(s);
  pln_ref operands[PLN_MOST_AXES + 1] = {pln_stmt_operand(s, 0)}, data;
  bool is_bool =
      pln_slice_is(pln_attrs_string(b->engine, n->attrs, "dtype", ""), "bool");
  pln_prim spec = {
      .kind = PLN_ALLOCATE, .attrs = n->attrs, .operands = operands};
  if (!x->blocks || n->count < 2 || (n->count == 2 && !is_bool))
    return PLN_OK;
  PLN_TRY(flat_extents(x, s, stmt, operands + 1, &spec.n));
  spec.n++;
  if (is_bool) {
    pln_symbol name;
    PLN_TRY(pln_symbol_intern(b->engine, pln_text("dtype"), &name));
    PLN_TRY(pln_attrs_with(b->engine, n->attrs,
                           &(pln_attr){.name = name,
                                       .kind = PLN_ATTR_STRING,
                                       .v.s = pln_text("int8")},
                           &spec.attrs));
  }
  PLN_TRY(pln_stmt_map(s, pln_stmt_param(s, stmt, 0, 0), &data));
  pln_body body = {.n_params = 1, .params = &data, .stmt = pln_stmt_body(s, 0)};
  return pln_build_floating_stmt(b, &spec, 1, &body, node);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  flattener *x = ud;
  switch (x->g->nodes[stmt].kind) {
  case PLN_BUFFER_STORE:
    PLN_TRY(flatten_store(x, s, stmt, node));
    return wrap_bounds(x, s, stmt, node);
  case PLN_BUFFER_REALIZE: return flatten_realize(x, s, stmt, node);
  case PLN_ATTR_STMT: return flatten_attr(x, s, stmt, node);
  case PLN_ALLOCATE: return flatten_allocate(x, s, stmt, node);
  case PLN_MATCH_BUFFER: return refuse_view(x, stmt);
  case PLN_ALLOC_BUFFER:
    return x->blocks ? flatten_alloc_buffer(x, s, stmt, node) : PLN_OK;
  case PLN_DECL_BUFFER:
    if (x->blocks)
      *node = pln_stmt_body(s, 0);
    return PLN_OK;
  default: return PLN_OK;
  }
}

static pln_status flatten_function(const pln_graph *function, bool bounds,
                                   bool blocks, pln_graph **out) {
  pln_engine *e = function->engine;
  size_t size = 2 * (size_t)function->n_nodes * sizeof(pln_ref);
  flattener x = {.g = function,
                 .bounds = bounds,
                 .blocks = blocks,
                 .flat = pln_mem_new(e, size)};
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = visit_expr,
                              .operand = flatten_region,
                              .enter = enter_stmt,
                              .leave = leave_stmt};
  if (!x.flat)
    return pln_nomem(e);
  memset(x.flat, 0xff, size);
  x.from = x.flat + function->n_nodes;
  pln_status status = pln_analyzer_new(e, &x.a);
  if (status == PLN_OK)
    status = pln_external_buffers(function, &x.external);
  if (status == PLN_OK)
    status = pln_stmt_rewrite_function(function, &mutator, out);
  pln_idmap_free(x.external);
  if (x.a)
    pln_analyzer_free(x.a);
  pln_mem_free(e, x.accessed, x.cap * sizeof *x.accessed);
  pln_mem_free(e, x.flat, size);
  return status;
}

pln_status pln_storage_flattener(const pln_graph *function, bool bounds,
                                 pln_graph **out) {
  return flatten_function(function, bounds, false, out);
}

pln_status pln_flatten_blocks(const pln_graph *function, bool bounds,
                              pln_graph **out) {
  return flatten_function(function, bounds, true, out);
}
