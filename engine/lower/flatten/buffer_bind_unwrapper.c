/* buffer_bind_unwrapper.c: tir.BufferBindUnwrapper: accesses of a Buffer that
 * is bound to a region of another one become accesses of that one.
 *
 * A step of tir.StorageFlatten. The attribute buffer_bind_scope has the two
 * Buffers, source and target, and the region as tvm_tuple(begin, extent, ...).
 * Variables that describe the source (data pointer, offset, strides, shape) are
 * bound to what the region gives; other fields are proved equal, or asserted.
 *
 *     T.attr([x, X], "buffer_bind_scope", T.tvm_tuple(i * 16, 16)); x[j] = 0
 *         =>   X[i * 16 + j] = 0
 *
 * Semantics: TVM's BufferBindUnwrapper. A region of a buffer whose axes are
 * flattened in several groups has no offset: its variable stays free. */

#include <stdio.h>

#include "lower/flatten/flatten.h"

/* What a source Buffer is bound to, in the builder. */
typedef struct bound_region {
  pln_ref target; /* PLN_NONE: the Buffer is not bound */
  uint32_t rank;
  pln_ref begins[PLN_MOST_AXES], extents[PLN_MOST_AXES];
} bound_region;

/* An attribute that is open, and what was there before it. */
typedef struct open_binding {
  uint32_t n_asserts, n_bound, region;
} open_binding;

typedef struct unwrapper {
  const pln_graph *g;
  pln_analyzer_scopes scopes;
  uint32_t *region; /* by Buffer: 1 + its number among `regions` */
  pln_ref *realize; /* by Buffer: its BufferRealize */
  bool *known;      /* by Var: it has a value */
  bound_region *regions;
  uint32_t n, cap;
  pln_ref *asserts; /* conditions and messages, of the open attributes */
  uint32_t n_asserts, cap_asserts;
  pln_ref *bound; /* Vars that open attributes gave values */
  uint32_t n_bound, cap_bound;
  open_binding *open; /* by open attribute */
  uint32_t n_open, cap_open;
} unwrapper;

static pln_status fail(const unwrapper *x, pln_ref source, const char *what) {
  return pln_diag_error(
      x->g->engine, PLN_ERR_ARGUMENT, NULL,
      "tir.BufferBindUnwrapper: the buffer '%s' %s",
      pln_symbol_text(x->g->engine, x->g->nodes[source].data).data, what);
}

static pln_status binary(pln_stmt_rewrite *s, pln_kind kind, pln_ref a,
                         pln_ref b, pln_ref *out) {
  return pln_build_folded(pln_stmt_builder(s), kind, a, b, out);
}

/* ------------------------------------------------------------------ regions
 */

static pln_status read_region(unwrapper *x, pln_stmt_rewrite *s, pln_ref stmt,
                              bound_region *r) {
  const pln_graph *built = pln_stmt_builder(s)->graph;
  pln_ref pair = pln_operand(x->g, stmt, 0);
  pln_ref source = pln_operand(x->g, pair, 0);
  pln_ref target = pln_operand(x->g, pair, 1), tuple = pln_stmt_operand(s, 1);
  uint32_t rank = x->g->nodes[target].results;
  if (x->region[target])
    return fail(x, source, "is bound to one that is bound itself");
  if (built->nodes[tuple].count != 2 * rank || rank >= PLN_MOST_AXES)
    return fail(x, source, "is bound to a region of another rank");
  r->rank = rank;
  r->target = pln_operand(built, pln_stmt_operand(s, 0), 1);
  for (uint32_t i = 0; i < rank; i++) {
    r->begins[i] = pln_operand(built, tuple, 2 * i);
    r->extents[i] = pln_operand(built, tuple, 2 * i + 1);
  }
  for (uint32_t i = 0; i < rank; i++) {
    pln_ref min;
    if (x->realize[target] != PLN_NONE) {
      pln_ref range = pln_operand(x->g, x->realize[target], 2 + i);
      PLN_TRY(pln_stmt_map(s, pln_operand(x->g, range, 0), &min));
      PLN_TRY(binary(s, PLN_PRIM_SUB, r->begins[i], min, &r->begins[i]));
    }
    PLN_TRY(pln_scoped_simplify(&x->scopes, s, r->begins[i], &r->begins[i]));
    PLN_TRY(pln_scoped_simplify(&x->scopes, s, r->extents[i], &r->extents[i]));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ binding
 */

static pln_status add_assert(unwrapper *x, pln_stmt_rewrite *s, pln_ref source,
                             const char *field, pln_ref condition) {
  char text[192];
  pln_symbol symbol;
  int n = snprintf(
      text, sizeof text, "Argument %.64s.%s has an unsatisfied constraint",
      pln_symbol_text(x->g->engine, x->g->nodes[source].data).data, field);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->asserts, &x->cap_asserts,
                       (size_t)x->n_asserts + 2, sizeof *x->asserts));
  PLN_TRY(
      pln_symbol_intern(x->g->engine, (pln_slice){text, (size_t)n}, &symbol));
  x->asserts[x->n_asserts] = condition;
  PLN_TRY(pln_build_string_imm(pln_stmt_builder(s), symbol,
                               &x->asserts[x->n_asserts + 1]));
  x->n_asserts += 2;
  return PLN_OK;
}

/* The value in the type of another node. */
static pln_status cast_like(pln_stmt_rewrite *s, pln_ref like, pln_ref *value) {
  pln_type type = pln_stmt_node(s, like)->type;
  const pln_node *n = pln_stmt_node(s, *value);
  if (n->type == type)
    return PLN_OK;
  if (n->kind == PLN_INT_IMM)
    return pln_build_int_imm(pln_stmt_builder(s), type,
                             (int64_t)pln_imm_bits(n), value);
  pln_prim spec = {
      .kind = PLN_PRIM_CAST, .type = type, .n = 1, .operands = value};
  return pln_build_prim(pln_stmt_builder(s), &spec, value);
}

/* A condition that holds, that cannot hold, or that is asserted. */
static pln_status demand(unwrapper *x, pln_stmt_rewrite *s, pln_ref source,
                         const char *field, pln_ref condition) {
  pln_ref simple;
  PLN_TRY(pln_scoped_simplify(&x->scopes, s, condition, &simple));
  const pln_node *n = pln_stmt_node(s, simple);
  if (n->kind != PLN_INT_IMM)
    return add_assert(x, s, source, field, simple);
  return pln_imm_bits(n) != 0
             ? PLN_OK
             : fail(x, source, "does not fit the region that it is bound to");
}

/* *bound: the field is a variable that was free. */
static pln_status bind_field(unwrapper *x, pln_stmt_rewrite *s, pln_ref source,
                             const char *field, pln_ref old, pln_ref value,
                             bool *bound) {
  pln_ref image, condition;
  *bound = x->g->nodes[old].kind == PLN_VAR && !x->known[old];
  if (*bound) {
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->bound, &x->cap_bound,
                         (size_t)x->n_bound + 1, sizeof *x->bound));
    x->bound[x->n_bound++] = old;
    x->known[old] = true;
    PLN_TRY(pln_stmt_map(s, old, &image));
    PLN_TRY(pln_type_get_kind(x->g->engine, pln_stmt_node(s, image)->type) ==
                    PLN_TYPE_POINTER
                ? PLN_OK
                : cast_like(s, image, &value));
    pln_stmt_bind(s, old, value);
    return PLN_OK;
  }
  PLN_TRY(pln_stmt_map(s, old, &image));
  if (image == value || x->g->nodes[old].kind == PLN_VAR)
    if (pln_type_get_kind(x->g->engine, pln_stmt_node(s, image)->type) ==
        PLN_TYPE_POINTER)
      return image == value ? PLN_OK
                            : fail(x, source, "is bound to other memory");
  PLN_TRY(cast_like(s, image, &value));
  PLN_TRY(binary(s, PLN_PRIM_EQ, image, value, &condition));
  return demand(x, s, source, field, condition);
}

static pln_status bind_offset(unwrapper *x, pln_stmt_rewrite *s, pln_ref source,
                              const bound_region *r) {
  pln_buffer_fields f = pln_buffer_fields_of(x->g, source);
  pln_builder *b = pln_stmt_builder(s);
  pln_ref flat[PLN_MOST_AXES], zero, factor, rest;
  uint32_t n;
  bool bound;
  int64_t step = pln_attrs_int(x->g->engine, x->g->nodes[source].attrs,
                               "offset_factor", 1);
  PLN_TRY(pln_flatten_indices(x->scopes.a, b, r->target, r->rank, r->begins,
                              flat, &n));
  if (n > 1)
    return PLN_OK;
  pln_ref own = pln_buffer_fields_of(b->graph, r->target).elem_offset;
  if (!pln_is_int(b->graph, own, 0)) {
    PLN_TRY(binary(s, PLN_PRIM_ADD, flat[0], own, &flat[0]));
    PLN_TRY(pln_scoped_simplify(&x->scopes, s, flat[0], &flat[0]));
  }
  /* TVM does not look at the offset of a source that has none. */
  if (pln_is_int(x->g, f.elem_offset, 0))
    return pln_is_int(b->graph, flat[0], 0)
               ? PLN_OK
               : fail(x, source, "has no offset, but its region has one");
  PLN_TRY(
      bind_field(x, s, source, "elem_offset", f.elem_offset, flat[0], &bound));
  if (!bound || step <= 1)
    return PLN_OK;
  PLN_TRY(pln_stmt_int_like(s, flat[0], step, &factor));
  PLN_TRY(pln_stmt_int_like(s, flat[0], 0, &zero));
  PLN_TRY(binary(s, PLN_PRIM_MOD, flat[0], factor, &rest));
  PLN_TRY(binary(s, PLN_PRIM_EQ, rest, zero, &rest));
  return demand(x, s, source, "elem_offset", rest);
}

/* The stride of axis `i` of the target: its own, or a product of its shape. */
static pln_status target_stride(pln_stmt_rewrite *s, const bound_region *r,
                                uint32_t i, pln_ref *out) {
  const pln_graph *built = pln_stmt_builder(s)->graph;
  pln_buffer_fields f = pln_buffer_fields_of(built, r->target);
  if (f.n_strides > 0) {
    *out = f.strides[i];
    return PLN_OK;
  }
  PLN_TRY(pln_stmt_int_like(s, f.shape[i], 1, out));
  for (uint32_t k = r->rank; k-- > i + 1;)
    PLN_TRY(binary(s, PLN_PRIM_MUL, *out,
                   pln_buffer_fields_of(built, r->target).shape[k], out));
  return PLN_OK;
}

static pln_status bind_shape(unwrapper *x, pln_stmt_rewrite *s, pln_ref source,
                             const bound_region *r) {
  pln_buffer_fields f = pln_buffer_fields_of(x->g, source);
  bool bound;
  if (f.rank > r->rank)
    return fail(x, source, "has more dimensions than its region");
  uint32_t skipped = r->rank - f.rank;
  for (uint32_t i = 0; i < skipped; i++)
    if (!pln_is_int(pln_stmt_builder(s)->graph, r->extents[i], 1))
      return fail(x, source, "has fewer dimensions than its region");
  for (uint32_t i = 0; i < f.rank; i++)
    PLN_TRY(bind_field(x, s, source, "shape", f.shape[i],
                       r->extents[i + skipped], &bound));
  for (uint32_t i = 0; i < f.n_strides; i++) {
    pln_ref stride;
    PLN_TRY(target_stride(s, r, i + skipped, &stride));
    PLN_TRY(bind_field(x, s, source, "strides", f.strides[i], stride, &bound));
  }
  return PLN_OK;
}

static pln_status bind_source(unwrapper *x, pln_stmt_rewrite *s, pln_ref stmt) {
  pln_ref source = pln_operand(x->g, pln_operand(x->g, stmt, 0), 0);
  pln_ref data = pln_operand(x->g, source, 0);
  const pln_graph *built = pln_stmt_builder(s)->graph;
  bool bound;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->regions, &x->cap,
                       (size_t)x->n + 1, sizeof *x->regions));
  bound_region *r = &x->regions[x->n];
  PLN_TRY(read_region(x, s, stmt, r));
  x->region[source] = ++x->n;
  PLN_TRY(bind_field(x, s, source, "data", data,
                     pln_operand(built, r->target, 0), &bound));
  PLN_TRY(bind_offset(x, s, source, r));
  return bind_shape(x, s, source, r);
}

/* ----------------------------------------------------------------- accesses
 */

static const bound_region *region_of(const unwrapper *x, pln_ref buffer) {
  return x->g->nodes[buffer].kind == PLN_BUFFER && x->region[buffer]
             ? &x->regions[x->region[buffer] - 1]
             : NULL;
}

/* The access with indices into the target; the `n` indices into the source are
 * the last operands. The region has one index in dimensions that the source
 * does not have. */
static pln_status move_access(pln_stmt_rewrite *s, const bound_region *r,
                              pln_kind kind, uint32_t first, uint32_t n,
                              pln_ref *operands, pln_ref *out) {
  uint32_t skipped = r->rank - n;
  operands[0] = r->target;
  for (uint32_t i = r->rank; i-- > 0;)
    if (i < skipped || pln_is_int(pln_stmt_builder(s)->graph, r->extents[i], 1))
      operands[first + i] = r->begins[i];
    else
      PLN_TRY(binary(s, PLN_PRIM_ADD, r->begins[i],
                     operands[first + i - skipped], &operands[first + i]));
  pln_prim spec = {.kind = kind, .n = first + r->rank, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  unwrapper *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_ref operands[PLN_MOST_AXES + 1];
  if (n->kind != PLN_BUFFER_LOAD)
    return PLN_OK;
  const bound_region *r = region_of(x, pln_operand(x->g, old, 0));
  if (!r)
    return PLN_OK;
  for (uint32_t i = 1; i < n->count; i++)
    operands[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  return move_access(s, r, PLN_BUFFER_LOAD, 1, n->count - 1, operands, node);
}

static pln_status move_store(const unwrapper *x, pln_stmt_rewrite *s,
                             pln_ref stmt, pln_ref *node) {
  pln_ref operands[PLN_MOST_AXES + 2];
  const bound_region *r = region_of(x, pln_operand(x->g, stmt, 0));
  uint32_t n = x->g->nodes[stmt].count;
  if (!r)
    return PLN_OK;
  for (uint32_t i = 1; i < n; i++)
    operands[i] = pln_stmt_operand(s, i);
  return move_access(s, r, PLN_BUFFER_STORE, 2, n - 2, operands, node);
}

/* --------------------------------------------------------------- statements
 */

static bool is_binding(const unwrapper *x, pln_ref stmt) {
  return pln_slice_is(pln_attr_key(x->g, stmt), "buffer_bind_scope");
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  unwrapper *x = ud;
  (void)s, (void)node;
  if (x->g->nodes[stmt].kind == PLN_BUFFER_REALIZE)
    x->realize[pln_operand(x->g, stmt, 0)] = stmt;
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  unwrapper *x = ud;
  (void)skip;
  PLN_TRY(pln_analyzer_scopes_enter(&x->scopes, s, stmt, k));
  if (!is_binding(x, stmt))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->open, &x->cap_open,
                       (size_t)x->n_open + 1, sizeof *x->open));
  pln_ref source = pln_operand(x->g, pln_operand(x->g, stmt, 0), 0);
  x->open[x->n_open++] =
      (open_binding){x->n_asserts, x->n_bound, x->region[source]};
  return bind_source(x, s, stmt);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  (void)s, (void)stmt, (void)k, (void)body, (void)again;
  pln_analyzer_scopes_leave(&((unwrapper *)ud)->scopes);
  return PLN_OK;
}

/* Another attribute may bind the same Buffer to another region. */
static void forget_binding(unwrapper *x, pln_stmt_rewrite *s, pln_ref stmt,
                           const open_binding *open) {
  pln_ref source = pln_operand(x->g, pln_operand(x->g, stmt, 0), 0);
  x->region[source] = open->region;
  while (x->n_bound > open->n_bound) {
    pln_ref var = x->bound[--x->n_bound];
    x->known[var] = false;
    pln_stmt_bind(s, var, PLN_NONE);
  }
}

static pln_status leave_binding(unwrapper *x, pln_stmt_rewrite *s, pln_ref stmt,
                                pln_ref *node) {
  open_binding open = x->open[--x->n_open];
  *node = pln_stmt_body(s, 0);
  forget_binding(x, s, stmt, &open);
  for (; x->n_asserts > open.n_asserts; x->n_asserts -= 2) {
    pln_prim spec = {.kind = PLN_ASSERT_STMT,
                     .n = 2,
                     .operands = &x->asserts[x->n_asserts - 2]};
    pln_body body = {.stmt = *node};
    PLN_TRY(
        pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &body, node));
  }
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  unwrapper *x = ud;
  if (is_binding(x, stmt))
    return leave_binding(x, s, stmt, node);
  return x->g->nodes[stmt].kind == PLN_BUFFER_STORE
             ? move_store(x, s, stmt, node)
             : PLN_OK;
}

/* ----------------------------------------------------------------- the step
 */

static void mark_known(unwrapper *x) {
  const pln_graph *g = x->g;
  for (pln_scope i = 0; i < g->n_scopes; i++)
    for (uint32_t k = 0; k < g->scopes[i].n_params; k++)
      x->known[g->scopes[i].begin + k] = true;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (n->kind != PLN_BUFFER_BIND && n->kind != PLN_BUFFER_REALIZE)
      continue;
    pln_ref buffer = pln_operand(g, ref, n->kind == PLN_BUFFER_BIND);
    for (uint32_t i = 0; i < g->nodes[buffer].count; i++)
      if (g->nodes[pln_operand(g, buffer, i)].kind == PLN_VAR)
        x->known[pln_operand(g, buffer, i)] = true;
  }
}

static pln_status unwrap(unwrapper *x, pln_graph **out) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = visit_expr,
                              .enter = enter_stmt,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  if (!x->region || !x->realize || !x->known)
    return pln_nomem(x->g->engine);
  memset(x->realize, 0xff, x->g->n_nodes * sizeof *x->realize);
  mark_known(x);
  PLN_TRY(pln_analyzer_scopes_begin(&x->scopes, x->g));
  pln_status status = pln_stmt_rewrite_function(x->g, &mutator, out);
  pln_analyzer_scopes_end(&x->scopes);
  return status;
}

static bool has_binding(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (pln_slice_is(pln_attr_key(g, ref), "buffer_bind_scope"))
      return true;
  return false;
}

pln_status pln_buffer_bind_unwrapper(const pln_graph *function,
                                     pln_graph **out) {
  pln_engine *e = function->engine;
  size_t n = function->n_nodes;
  unwrapper x = {.g = function};
  if (!has_binding(function)) {
    *out = pln_graph_retain(function);
    return PLN_OK;
  }
  x.region = pln_mem_zeroed(e, n * sizeof *x.region);
  x.realize = pln_mem_new(e, n * sizeof *x.realize);
  x.known = pln_mem_zeroed(e, n * sizeof *x.known);
  pln_status status = unwrap(&x, out);
  pln_mem_free(e, x.region, n * sizeof *x.region);
  pln_mem_free(e, x.realize, n * sizeof *x.realize);
  pln_mem_free(e, x.known, n * sizeof *x.known);
  pln_mem_free(e, x.regions, x.cap * sizeof *x.regions);
  pln_mem_free(e, x.asserts, x.cap_asserts * sizeof *x.asserts);
  pln_mem_free(e, x.open, x.cap_open * sizeof *x.open);
  pln_mem_free(e, x.bound, x.cap_bound * sizeof *x.bound);
  return status;
}
