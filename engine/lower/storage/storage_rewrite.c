/* storage_rewrite.c: tir.StorageRewrite: allocations share memory where they do
 * not live at the same time, and are made at the beginning of the function or
 * of the parallel part that they belong to.
 *
 * Run by the executor.
 *
 *     B = T.allocate([8]); B[i] = A[i]; C = T.allocate([8]); C[i] = B[i] + 1
 *         =>   B = T.allocate([8]); B[i] = A[i]; B[i] = B[i] + 1
 *
 * Semantics: TVM's tir.StorageRewrite; pointer_value_type.c is its second part.
 */

#include "lower/emit.h"
#include "lower/storage/storage_plan.h"

typedef struct rewriter {
  pln_storage_plan plan;
  const pln_graph *g;
  bool *accessed; /* by node: a Buffer that is read or written */
  /* By node, and behind these the function: 1 + the last storage that is
   * attached to it; by storage: 1 + the one before it. */
  uint32_t *attached, *earlier;
  pln_idmap *named; /* the identity of a storage's variable -> 1 */
  pln_analyzer *a;
} rewriter;

static pln_ref var_of(const rewriter *x, pln_ref allocate) {
  return x->g->scopes[x->g->nodes[allocate].data].begin;
}

/* -------------------------------------------------------------- allocations */

/* The size of merged memory in elements of `lanes` lanes: the largest. */
static pln_status merged_extent(rewriter *x, pln_stmt_rewrite *s,
                                const pln_storage *storage, int64_t bits,
                                pln_ref *out) {
  pln_term most = PLN_NO_TERM, simple;
  pln_analyzer *a = x->a;
  uint32_t at = storage->last;
  for (; at; at = x->plan.allocations[at - 1].next) {
    const pln_storage_allocation *row = &x->plan.allocations[at - 1];
    pln_ref extent;
    pln_term term;
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, row->stmt, 1), &extent));
    PLN_TRY(pln_analyzer_import_built(a, pln_stmt_builder(s), extent, &term));
    if (row->bits > INT32_MAX)
      term = pln_fold_cast(a, PLN_INT64, term);
    term = pln_mul_const(a, term,
                         (int64_t)pln_dtype_bits(row->dtype) * row->lanes);
    if (most && pln_at(a, most)->dtype != pln_at(a, term)->dtype) {
      most = pln_fold_cast(a, PLN_INT64, most);
      term = pln_fold_cast(a, PLN_INT64, term);
    }
    most = most ? pln_fold(a, PLN_PRIM_MAX, term, most) : term;
  }
  pln_term divisor = pln_const_like(a, most, bits);
  bool divides =
      pln_proves_equal(a, pln_fold(a, PLN_PRIM_FLOORMOD, most, divisor),
                       pln_const_like(a, most, 0));
  most = pln_fold(a, PLN_PRIM_FLOORDIV, most, divisor);
  if (!divides)
    most = pln_add_const(a, most, 1);
  PLN_TRY(a->status);
  PLN_TRY(pln_analyzer_simplify(a, most, 2, &simple));
  return pln_analyzer_export(a, pln_stmt_builder(s), simple, out);
}

/* The allocation of the most lanes, the first of those. */
static const pln_storage_allocation *widest(const rewriter *x,
                                            const pln_storage *storage) {
  const pln_storage_allocation *out = NULL;
  for (uint32_t at = storage->last; at; at = x->plan.allocations[at - 1].next)
    if (!out || x->plan.allocations[at - 1].lanes >= out->lanes)
      out = &x->plan.allocations[at - 1];
  return out;
}

/* The scope in which a statement with a body stands. */
static pln_scope scope_around(const rewriter *x, pln_ref stmt) {
  return x->g->scopes[x->g->nodes[stmt].data].parent;
}

/* The DeclBuffer that is the whole body of the Allocate, or PLN_NONE. */
static pln_ref decl_of(const rewriter *x, pln_ref allocate) {
  pln_scope scope = x->g->nodes[allocate].data;
  pln_ref result = x->g->scopes[scope].result;
  return x->g->nodes[result].kind == PLN_DECL_BUFFER &&
                 scope_around(x, result) == scope
             ? result
             : PLN_NONE;
}

static pln_status wrap(pln_stmt_rewrite *s, const pln_prim *spec,
                       const pln_ref *param, pln_ref *stmt) {
  pln_body body = {.n_params = param != NULL, .params = param, .stmt = *stmt};
  return pln_build_floating_stmt(pln_stmt_builder(s), spec, 1, &body, stmt);
}

static pln_status map_extents(rewriter *x, pln_stmt_rewrite *s,
                              pln_ref allocate, pln_ref *out) {
  for (uint32_t i = 0; i < x->g->nodes[allocate].count; i++)
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, allocate, i), &out[i]));
  return PLN_OK;
}

/* One block of tagged memory, for all that are parts of it. */
static pln_status allocate_block(rewriter *x, pln_stmt_rewrite *s,
                                 const pln_storage *storage, pln_ref *stmt) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  uint64_t bits = pln_dtype_bits(storage->dtype);
  uint64_t n = (storage->total + bits - 1) / bits;
  pln_ref var, extent;
  pln_type index = x->g->nodes[pln_operand(x->g, storage->first, 1)].type;
  if (n > INT64_MAX)
    return pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.StorageRewrite: a block of memory is too large");
  PLN_TRY(pln_stmt_map(s, var_of(x, storage->first), &var));
  extent = pln_emit_int_of(&e, index, (int64_t)n);
  *stmt = pln_emit_allocate(&e, var, pln_emit_type(&e, storage->dtype), 1,
                            &extent, *stmt);
  return e.status;
}

/* The statement in the allocation of the memory. */
static pln_status allocate_storage(rewriter *x, pln_stmt_rewrite *s,
                                   const pln_storage *storage, pln_ref *stmt) {
  enum { MOST = 64 };
  pln_ref operands[MOST], var, decl = decl_of(x, storage->first), buffer;
  const pln_storage_allocation *wide = widest(x, storage);
  pln_prim spec = {.kind = PLN_ALLOCATE,
                   .n = storage->merged ? 2 : x->g->nodes[storage->first].count,
                   .operands = operands};
  if (spec.n > MOST || x->g->nodes[storage->first].count > MOST)
    return pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.StorageRewrite: an allocation has more than %d "
                          "extents",
                          MOST - 1);
  PLN_TRY(map_extents(x, s, storage->first, operands));
  if (storage->merged)
    PLN_TRY(merged_extent(x, s, storage,
                          (int64_t)pln_dtype_bits(wide->dtype) * wide->lanes,
                          &operands[1]));
  PLN_TRY(pln_attrs_without(x->g->engine, x->g->nodes[wide->stmt].attrs,
                            "annotations", &spec.attrs));
  if (!storage->merged && decl != PLN_NONE) {
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, decl, 0), &buffer));
    PLN_TRY(wrap(
        s, &(pln_prim){.kind = PLN_DECL_BUFFER, .n = 1, .operands = &buffer},
        NULL, stmt));
  }
  PLN_TRY(pln_stmt_map(s, var_of(x, storage->first), &var));
  return wrap(s, &spec, &var, stmt);
}

/* The statement in all allocations that belong to it, the first outermost. */
static pln_status allocate_attached(rewriter *x, pln_stmt_rewrite *s,
                                    pln_ref attach, pln_ref *stmt) {
  uint32_t at = x->attached[attach == PLN_NONE ? x->g->n_nodes : attach];
  for (; at; at = x->earlier[at - 1]) {
    const pln_storage *storage = &x->plan.storages[at - 1];
    if (storage->head)
      continue;
    PLN_TRY(storage->total ? allocate_block(x, s, storage, stmt)
                           : allocate_storage(x, s, storage, stmt));
  }
  return PLN_OK;
}

/* ---------------------------------------------------- parts of tagged memory
 */

/* Elements of that many bits in front of the memory of a data pointer. */
static pln_status elements_before(const rewriter *x, pln_ref data,
                                  uint64_t bits, int64_t *out) {
  uint32_t row = x->plan.allocation_of[data];
  uint32_t storage = row ? x->plan.allocations[row - 1].storage : 0;
  uint64_t offset = storage ? x->plan.storages[storage - 1].offset : 0;
  *out = 0;
  if (offset == 0)
    return PLN_OK;
  if (bits == 0 || offset % bits != 0 || offset / bits > INT64_MAX)
    return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.StorageRewrite: an element of tagged memory "
                          "begins inside of a word of another one");
  *out = (int64_t)(offset / bits);
  return PLN_OK;
}

/* n + index, of as many lanes. */
static pln_ref add_elements(pln_emit *e, int64_t n, pln_ref index) {
  pln_type type = pln_emit_type_of(e, index);
  uint32_t lanes = (uint32_t)pln_type_number(e->b->engine, type);
  pln_dtype dtype = pln_type_dtype(e->b->engine, type);
  pln_ref first = pln_emit_int(e, dtype, n);
  if (lanes > 1)
    first = pln_emit_prim(e, &(pln_prim){.kind = PLN_BROADCAST,
                                         .data = lanes,
                                         .n = 1,
                                         .operands = &first});
  return pln_emit_folded(e, PLN_PRIM_ADD, first, index);
}

static pln_status move_access(rewriter *x, pln_emit *e, pln_ref buffer,
                              pln_ref *index, bool *moved) {
  int64_t n;
  PLN_TRY(elements_before(
      x, pln_operand(x->g, buffer, 0),
      pln_dtype_bits(pln_buffer_fields_of(x->g, buffer).dtype), &n));
  *moved = n > 0;
  if (*moved)
    *index = add_elements(e, n, *index);
  return e->status;
}

static pln_status move_load(rewriter *x, pln_stmt_rewrite *s, pln_ref old,
                            pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref buffer = pln_operand(x->g, old, 0), index;
  bool moved;
  if (x->g->nodes[old].count != 2)
    return PLN_OK;
  index = pln_stmt_image(s, pln_operand(x->g, old, 1));
  PLN_TRY(move_access(x, &e, buffer, &index, &moved));
  if (moved)
    *node = pln_emit_load(&e, pln_stmt_image(s, buffer), index);
  return e.status;
}

/* T.tvm_access_ptr(type, data, offset, extent, mask) */
static pln_status move_pointer(rewriter *x, pln_stmt_rewrite *s, pln_ref old,
                               pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  const pln_node *n = &x->g->nodes[old];
  pln_ref args[5], data;
  int64_t before;
  if (!pln_is_call_of(n, "tvm_access_ptr") || n->count != 5)
    return PLN_OK;
  data = pln_operand(x->g, old, 1);
  uint64_t bits =
      pln_dtype_bits(pln_prim_dtype(x->g, pln_operand(x->g, old, 0)));
  PLN_TRY(elements_before(
      x, data, bits * pln_prim_lanes(x->g, pln_operand(x->g, old, 0)),
      &before));
  if (before == 0)
    return PLN_OK;
  for (uint32_t i = 0; i < 5; i++)
    args[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  args[2] = add_elements(&e, before, args[2]);
  *node = pln_emit_call(&e, "tvm_access_ptr", n->type, 5, args);
  return e.status;
}

static pln_status map_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  rewriter *x = ud;
  switch (x->g->nodes[old].kind) {
  case PLN_BUFFER_LOAD: return move_load(x, s, old, node);
  case PLN_PRIM_CALL: return move_pointer(x, s, old, node);
  default: return PLN_OK;
  }
}

static pln_status move_store(rewriter *x, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref index;
  bool moved;
  if (x->g->nodes[stmt].count != 3)
    return PLN_OK;
  index = pln_stmt_operand(s, 2);
  PLN_TRY(move_access(x, &e, pln_operand(x->g, stmt, 0), &index, &moved));
  if (moved)
    *node = pln_emit_store(&e, pln_stmt_operand(s, 0), index,
                           pln_stmt_operand(s, 1));
  return e.status;
}

/* ---------------------------------------------------------------- callbacks */

/* Loops that were unrolled or partitioned allocate the same variable several
 * times. Where that is memory of its own, its variable becomes a new one. */
static pln_status name_storage(rewriter *x, pln_stmt_rewrite *s,
                               const pln_storage *storage) {
  pln_ref var = var_of(x, storage->first);
  uint32_t identity = x->g->nodes[var].data;
  if (storage->head)
    return PLN_OK;
  return pln_idmap_get(x->named, identity)
             ? pln_stmt_bind_new_var(s, var)
             : pln_idmap_set(x->named, identity, 1);
}

/* The variables of allocations that share memory are one. */
static pln_status bind_vars(rewriter *x, pln_stmt_rewrite *s) {
  for (uint32_t i = 0; i < x->plan.n_storages; i++)
    PLN_TRY(name_storage(x, s, &x->plan.storages[i]));
  for (uint32_t i = 0; i < x->plan.n_allocations; i++) {
    const pln_storage_allocation *row = &x->plan.allocations[i];
    pln_ref image;
    if (!row->storage)
      continue;
    const pln_storage *storage = &x->plan.storages[row->storage - 1];
    if (storage->head)
      storage = &x->plan.storages[storage->head - 1];
    pln_ref first = storage->first;
    PLN_TRY(pln_stmt_map(s, var_of(x, first), &image));
    pln_stmt_bind(s, var_of(x, row->stmt), image);
  }
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  rewriter *x = ud;
  (void)k;
  (void)skip;
  return x->g->nodes[stmt].kind == PLN_PRIM_FUNC ? bind_vars(x, s) : PLN_OK;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  rewriter *x = ud;
  (void)k;
  (void)again;
  switch (x->g->nodes[stmt].kind) {
  case PLN_PRIM_FUNC: {
    pln_ref rest;
    PLN_TRY(pln_stmt_split_binds(s, *body, &rest));
    PLN_TRY(allocate_attached(x, s, PLN_NONE, &rest));
    return pln_stmt_join_binds(s, *body, rest, body);
  }
  case PLN_FOR:
  case PLN_LET_STMT:
  case PLN_ATTR_STMT: return allocate_attached(x, s, stmt, body);
  default: return PLN_OK;
  }
}

static bool is_hoisted(const rewriter *x, pln_ref decl) {
  pln_ref allocate = x->g->scopes[scope_around(x, decl)].owner;
  uint32_t row = x->g->nodes[allocate].kind == PLN_ALLOCATE
                     ? x->plan.allocation_of[var_of(x, allocate)]
                     : 0;
  if (!row || !x->plan.allocations[row - 1].storage)
    return false;
  const pln_storage *s =
      &x->plan.storages[x->plan.allocations[row - 1].storage - 1];
  return s->first == allocate && !s->merged && !s->head && !s->total &&
         decl_of(x, allocate) == decl;
}

/* True of an AttrStmt about memory that nothing accesses, which goes away. */
static bool is_of_unused(const rewriter *x, pln_ref stmt) {
  const pln_graph *g = x->g;
  if (g->nodes[stmt].kind != PLN_ATTR_STMT || g->nodes[stmt].count == 0)
    return false;
  pln_ref data = pln_operand(g, stmt, 0);
  if (g->nodes[data].kind == PLN_BUFFER)
    data = pln_operand(g, data, 0);
  uint32_t row = x->plan.allocation_of[data];
  return row != 0 && !x->plan.allocations[row - 1].storage;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  rewriter *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  if (n->kind == PLN_BUFFER_STORE)
    return move_store(x, s, stmt, node);
  if (n->kind == PLN_ALLOCATE || is_of_unused(x, stmt) ||
      (n->kind == PLN_DECL_BUFFER &&
       (!x->accessed[pln_operand(x->g, stmt, 0)] || is_hoisted(x, stmt))))
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

static void find_accessed(rewriter *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_BUFFER_LOAD ||
        x->g->nodes[ref].kind == PLN_BUFFER_STORE)
      x->accessed[pln_operand(x->g, ref, 0)] = true;
}

static pln_status list_attached(rewriter *x) {
  pln_engine *e = x->g->engine;
  uint32_t n = x->plan.n_storages;
  x->attached =
      pln_mem_zeroed(e, (x->g->n_nodes + (size_t)1) * sizeof *x->attached);
  x->earlier = pln_mem_new(e, (n + (size_t)1) * sizeof *x->earlier);
  if (!x->attached || !x->earlier)
    return pln_nomem(e);
  for (uint32_t i = 0; i < n; i++) {
    pln_ref attach = x->plan.storages[i].attach;
    uint32_t *last = &x->attached[attach == PLN_NONE ? x->g->n_nodes : attach];
    x->earlier[i] = *last;
    *last = i + 1;
  }
  return PLN_OK;
}

static pln_status prepare(rewriter *x) {
  x->accessed =
      pln_mem_zeroed(x->g->engine, x->g->n_nodes * sizeof *x->accessed);
  if (!x->accessed)
    return pln_nomem(x->g->engine);
  find_accessed(x);
  PLN_TRY(pln_idmap_new(x->g->engine, &x->named));
  PLN_TRY(pln_analyzer_new(x->g->engine, &x->a));
  PLN_TRY(pln_storage_plan_make(&x->plan, x->g));
  return list_attached(x);
}

static void release(rewriter *x) {
  pln_engine *e = x->g->engine;
  size_t n_storages = x->plan.engine ? x->plan.n_storages : 0;
  pln_mem_free(e, x->earlier, (n_storages + 1) * sizeof *x->earlier);
  pln_mem_free(e, x->attached,
               (x->g->n_nodes + (size_t)1) * sizeof *x->attached);
  pln_storage_plan_free(&x->plan);
  pln_idmap_free(x->named);
  if (x->a)
    pln_analyzer_free(x->a);
  pln_mem_free(e, x->accessed, x->g->n_nodes * sizeof *x->accessed);
}

static pln_status share_memory(pln_pass_run *run) {
  rewriter x = {.g = pln_run_function(run)};
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = map_expr,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  if (!pln_has_kind(x.g, PLN_ALLOCATE))
    return PLN_OK;
  pln_status status = prepare(&x);
  if (status == PLN_OK)
    status = pln_lower_function(run, &mutator);
  release(&x);
  return status;
}

pln_status pln_pass_tir_storage_rewrite(pln_pass_run *run) {
  pln_graph *function = pln_graph_retain(pln_run_function(run));
  pln_status status = pln_lower_step(run, share_memory, &function);
  if (status == PLN_OK)
    status = pln_lower_step(run, pln_rewrite_memory_types, &function);
  if (status == PLN_OK && function != pln_run_function(run))
    pln_run_set_function(run, function);
  else
    pln_graph_release(function);
  return status;
}
