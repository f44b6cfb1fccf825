/* compile_buffer.c: translates accesses to buffers, allocation, and buffers
 * that are views of others.
 *
 * Called by compile.c and compile_expr.c. An access checks each index against
 * its extent, then its offset against the memory, which may be seen as several
 * buffers. */

#include "eval/loop/translate.h"

static const pln_ref *refs_of(const pln_translation *t, pln_ref ref) {
  return pln_operands(t->g, &t->g->nodes[ref]);
}

pln_loop_binding *pln_loop_find_memory(const pln_translation *t, pln_ref data) {
  uint32_t at = pln_idmap_get(t->memory, t->g->nodes[data].data);
  return at ? &t->bindings[at - 1] : NULL;
}

static bool is_local(const pln_translation *t, pln_ref data) {
  pln_slice scope = pln_symbol_text(
      t->engine, pln_type_symbol(t->engine, t->g->nodes[data].type));
  return pln_slice_is(scope, "local") ||
         (scope.size >= 4 &&
          (!memcmp(scope.data, "warp", 4) || !memcmp(scope.data, "wmma", 4)));
}

pln_status pln_loop_bind_memory(pln_translation *t, pln_ref data,
                                int32_t handle) {
  PLN_TRY(pln_mem_grow(t->engine, (void **)&t->bindings, &t->cap_bindings,
                       (size_t)t->n_bindings + 1, sizeof *t->bindings));
  t->bindings[t->n_bindings++] = (pln_loop_binding){
      .handle = handle,
      .rank = -1,
      .local = is_local(t, data),
      .depth = t->n_threads,
  };
  PLN_TRY(pln_idmap_set(t->memory, t->g->nodes[data].data, t->n_bindings));
  return pln_loop_bind_var(t, data, handle);
}

pln_status pln_loop_new_storage(pln_translation *t, pln_ref constant,
                                uint32_t *out) {
  pln_loop_program *p = t->p;
  if (p->n_storages >= PLN_LOOP_MAX_STORAGES)
    return pln_diag_error(t->engine, PLN_ERR_LIMIT, NULL,
                          "the program has too many allocations");
  PLN_TRY(pln_mem_grow(t->engine, (void **)&p->storage_const, &p->cap_storages,
                       (size_t)p->n_storages + 1, sizeof *p->storage_const));
  p->storage_const[p->n_storages] = constant;
  *out = p->n_storages++;
  return PLN_OK;
}

/* -------------------------------------------------------------- allocation */

static pln_status check_element(pln_translation *t, pln_dtype dtype) {
  if (dtype && pln_dtype_bits(dtype) <= 64)
    return PLN_OK;
  return pln_loop_refuse(t, "elements of dtype %s are not interpreted",
                         dtype ? pln_dtype_name(dtype) : "handle");
}

pln_status pln_loop_emit_allocate(pln_translation *t, pln_ref node,
                                  pln_dtype dtype, uint32_t lanes,
                                  int32_t count, int32_t *handle) {
  uint32_t id = 0;
  PLN_TRY(check_element(t, dtype));
  PLN_TRY(pln_loop_new_storage(t, PLN_NONE, &id));
  PLN_TRY(pln_loop_new_cells(t, 1, handle));
  return pln_loop_emit(t, node,
                       (pln_loop_instr){.op = PLN_LOOP_ALLOCATE,
                                        .aux = (uint16_t)dtype,
                                        .lanes = lanes,
                                        .to = *handle,
                                        .a = count,
                                        .b = (int32_t)id});
}

pln_status pln_loop_emit_extent(pln_translation *t, pln_ref node, uint32_t n,
                                const int32_t *sizes, int32_t *out) {
  *out = t->one;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_loop_op2(t, node, PLN_LOOP_EXTENT, *out, sizes[i], out));
  return PLN_OK;
}

/* The regions of a realised buffer: cells of mins, then of extents. */
static pln_status copy_region(pln_translation *t, pln_ref node, uint32_t rank,
                              const pln_ref *ranges, int32_t *out) {
  PLN_TRY(pln_loop_new_cells(t, 2 * rank, out));
  for (uint32_t i = 0; i < 2 * rank; i++) {
    pln_ref part = refs_of(t, ranges[i % rank])[i / rank];
    PLN_TRY(pln_loop_emit(t, node,
                          (pln_loop_instr){.op = PLN_LOOP_COPY,
                                           .lanes = 1,
                                           .to = *out + (int32_t)i,
                                           .a = pln_loop_cell_of(t, part)}));
  }
  return PLN_OK;
}

/* Memory for the region of a BufferRealize, unless the buffer is one of a
 * parameter, or for a whole buffer (AllocBuffer). */
pln_status pln_loop_emit_realize(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = refs_of(t, ref);
  pln_buffer_fields v = pln_buffer_fields_of(t->g, o[0]);
  bool realizes = n->kind == PLN_BUFFER_REALIZE;
  int32_t region, count = t->one, handle;
  if (pln_loop_find_memory(t, v.data) && realizes)
    return PLN_OK;
  if (realizes && n->count != 2 + v.rank)
    return pln_loop_refuse(t, "a BufferRealize of another rank");
  if (realizes)
    PLN_TRY(copy_region(t, ref, v.rank, o + 2, &region));
  for (uint32_t i = 0; i < v.rank; i++) {
    int32_t size = realizes ? region + (int32_t)(v.rank + i)
                            : pln_loop_cell_of(t, v.shape[i]);
    PLN_TRY(pln_loop_op2(t, ref, PLN_LOOP_EXTENT, count, size, &count));
  }
  if (!realizes && v.n_strides > 0 && v.rank > 0)
    PLN_TRY(pln_loop_op2(t, ref, PLN_LOOP_EXTENT,
                         pln_loop_cell_of(t, v.shape[0]),
                         pln_loop_cell_of(t, v.strides[0]), &count));
  PLN_TRY(pln_loop_emit_allocate(t, ref, v.dtype, v.lanes, count, &handle));
  PLN_TRY(pln_loop_bind_memory(t, v.data, handle));
  if (realizes) {
    t->bindings[t->n_bindings - 1].rank = (int32_t)v.rank;
    t->bindings[t->n_bindings - 1].region = region;
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ access */

/* A vector index base + k * step is not written out. */
static bool is_ramp(const pln_translation *t, pln_ref index) {
  return t->g->nodes[index].kind == PLN_RAMP;
}

static pln_status push_buffer(pln_translation *t, pln_ref buffer) {
  const pln_node *n = &t->g->nodes[buffer];
  const pln_ref *o = refs_of(t, buffer);
  for (uint32_t i = n->count; i-- > 1;)
    if (t->g->nodes[o[i]].kind != PLN_ANY)
      PLN_TRY(pln_loop_push_expr(t, o[i]));
  return PLN_OK;
}

static pln_status check_memory(pln_translation *t, pln_ref buffer) {
  pln_buffer_fields v = pln_buffer_fields_of(t->g, buffer);
  pln_symbol name = t->g->nodes[buffer].data;
  pln_loop_binding *b = pln_loop_find_memory(t, v.data);
  uint32_t id = t->n_threads ? t->threads[t->n_threads - 1].id : 0;
  PLN_TRY(check_element(t, v.dtype));
  if (!pln_loop_is_bound(t, v.data))
    return pln_loop_refuse(t, "buffer '%s' has no memory",
                           pln_symbol_text(t->engine, name).data);
  if (!b || !b->local || b->depth >= t->n_threads)
    return PLN_OK;
  if (b->thread_id && b->thread_id != id)
    return pln_loop_refuse(t,
                           "buffer '%s', of which each thread has its own, is "
                           "used in several loops over threads",
                           pln_symbol_text(t->engine, name).data);
  b->thread_id = id;
  return PLN_OK;
}

pln_status pln_loop_push_access(pln_translation *t, pln_ref ref,
                                uint32_t first) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = refs_of(t, ref);
  if (n->kind == PLN_PRODUCER_STORE || t->g->nodes[o[0]].kind != PLN_BUFFER)
    return pln_loop_refuse(t, "producers have no memory");
  PLN_TRY(check_memory(t, o[0]));
  PLN_TRY(push_buffer(t, o[0]));
  for (uint32_t i = n->count; i-- > first;)
    if (is_ramp(t, o[i]))
      PLN_TRY(pln_loop_push_exprs(t, 2, refs_of(t, o[i])));
    else
      PLN_TRY(pln_loop_push_expr(t, o[i]));
  return PLN_OK;
}

/* State of an access while its dimensions are translated. */
typedef struct access_state {
  pln_ref ref;
  pln_buffer_fields v;
  const pln_loop_binding *b;
  int32_t index;  /* the offset so far */
  uint32_t lanes; /* of the index of the last dimension */
  int32_t stride; /* of a ramp; else PLN_LOOP_GATHER */
} access_state;

static bool is_realized(const access_state *a) {
  return a->b && a->b->rank == (int32_t)a->v.rank;
}

static pln_status subtract_min(pln_translation *t, access_state *a, uint32_t d,
                               int32_t *index, uint32_t lanes) {
  int32_t out, min = a->b->region + (int32_t)d;
  PLN_TRY(pln_loop_new_cells(t, lanes, &out));
  for (uint32_t k = 0; k < lanes; k++)
    PLN_TRY(pln_loop_emit(t, a->ref,
                          (pln_loop_instr){.op = PLN_LOOP_SUB_I64,
                                           .lanes = 1,
                                           .to = out + (int32_t)k,
                                           .a = *index + (int32_t)k,
                                           .b = min}));
  *index = out;
  return PLN_OK;
}

static pln_status add_dimension(pln_translation *t, access_state *a, uint32_t d,
                                int32_t index, uint32_t lanes) {
  bool realized = is_realized(a);
  pln_ref size = a->v.shape[d];
  bool unknown = !realized && t->g->nodes[size].kind == PLN_ANY;
  if (realized)
    PLN_TRY(subtract_min(t, a, d, &index, lanes));
  pln_loop_instr in = {.aux = (uint16_t)d, .lanes = lanes, .b = index};
  in.c = realized ? a->b->region + (int32_t)(a->v.rank + d)
                  : pln_loop_cell_of(t, size);
  if (unknown && d > 0)
    return pln_loop_refuse(t, "a dimension of unknown size");
  bool strided = a->v.n_strides > 0 && !realized;
  in.op = strided               ? PLN_LOOP_CHECK_INDEX
          : lanes == 1 && d > 0 ? PLN_LOOP_INDEX
          : d > 0               ? PLN_LOOP_INDEX_NEXT
                                : PLN_LOOP_CHECK_INDEX;
  in.a = a->index;
  if (strided || d == 0) {
    if (!unknown)
      PLN_TRY(pln_loop_emit(t, a->ref, in));
    if (!strided) {
      a->index = index;
      return PLN_OK;
    }
    in.op = PLN_LOOP_MULTIPLY_ADD;
    in.a = d == 0 ? t->zero : a->index;
    in.c = pln_loop_cell_of(t, a->v.strides[d]);
  }
  PLN_TRY(pln_loop_new_cells(t, lanes, &in.to));
  PLN_TRY(pln_loop_emit(t, a->ref, in));
  a->index = in.to;
  return PLN_OK;
}

/* Indices of a ramp in the last dimension: its ends are checked, its elements
 * lie at the base and every stride * step after it. */
static pln_status add_ramp(pln_translation *t, access_state *a, uint32_t d,
                           pln_ref ramp) {
  const pln_ref *o = refs_of(t, ramp);
  int32_t base = pln_loop_cell_of(t, o[0]), step = pln_loop_cell_of(t, o[1]);
  int32_t count, last;
  PLN_TRY(pln_loop_integer(t, (int64_t)t->g->nodes[ramp].data - 1, &count));
  PLN_TRY(pln_loop_new_cells(t, 1, &last));
  PLN_TRY(pln_loop_emit(t, a->ref,
                        (pln_loop_instr){.op = PLN_LOOP_MULTIPLY_ADD,
                                         .lanes = 1,
                                         .to = last,
                                         .a = base,
                                         .b = step,
                                         .c = count}));
  access_state check = *a;
  PLN_TRY(add_dimension(t, &check, d, last, 1));
  PLN_TRY(add_dimension(t, a, d, base, 1));
  a->stride = step;
  if (a->v.n_strides > 0 && !is_realized(a))
    PLN_TRY(pln_loop_op2(t, a->ref, PLN_LOOP_MUL_I64, step,
                         pln_loop_cell_of(t, a->v.strides[d]), &a->stride));
  return PLN_OK;
}

static pln_status add_offset(pln_translation *t, access_state *a) {
  const pln_node *offset = &t->g->nodes[a->v.elem_offset];
  int32_t out;
  if (is_realized(a) ||
      (offset->kind == PLN_INT_IMM && pln_imm_bits(offset) == 0))
    return PLN_OK;
  PLN_TRY(pln_loop_new_cells(t, a->lanes, &out));
  for (uint32_t k = 0; k < a->lanes; k++)
    PLN_TRY(pln_loop_emit(
        t, a->ref,
        (pln_loop_instr){.op = PLN_LOOP_ADD_I64,
                         .lanes = 1,
                         .to = out + (int32_t)k,
                         .a = a->index + (int32_t)k,
                         .b = pln_loop_cell_of(t, a->v.elem_offset)}));
  a->index = out;
  return PLN_OK;
}

/* Elements that are vectors: each index becomes those of the lanes. */
static pln_status expand_lanes(pln_translation *t, access_state *a) {
  int32_t out, indices = a->index;
  if (a->v.lanes == 1)
    return PLN_OK;
  if (a->stride != PLN_LOOP_GATHER) {
    PLN_TRY(pln_loop_new_cells(t, a->lanes, &indices));
    PLN_TRY(pln_loop_emit(t, a->ref,
                          (pln_loop_instr){.op = PLN_LOOP_RAMP,
                                           .lanes = a->lanes,
                                           .to = indices,
                                           .a = a->index,
                                           .b = a->stride}));
  }
  PLN_TRY(pln_loop_new_cells(t, a->lanes * a->v.lanes, &out));
  PLN_TRY(pln_loop_emit(t, a->ref,
                        (pln_loop_instr){.op = PLN_LOOP_EXPAND,
                                         .aux = (uint16_t)a->v.lanes,
                                         .lanes = a->lanes,
                                         .to = out,
                                         .b = indices}));
  a->index = out;
  a->lanes *= a->v.lanes;
  a->stride = PLN_LOOP_GATHER;
  return PLN_OK;
}

pln_status pln_loop_emit_access(pln_translation *t, pln_ref ref, uint32_t first,
                                pln_loop_access *out) {
  const pln_ref *o = refs_of(t, ref);
  access_state a = {.ref = ref,
                    .v = pln_buffer_fields_of(t->g, o[0]),
                    .index = t->zero,
                    .lanes = 1,
                    .stride = PLN_LOOP_GATHER};
  a.b = pln_loop_find_memory(t, a.v.data);
  for (uint32_t d = 0; d < a.v.rank; d++) {
    pln_ref index = o[first + d];
    if (is_ramp(t, index))
      PLN_TRY(add_ramp(t, &a, d, index));
    else
      PLN_TRY(add_dimension(t, &a, d, pln_loop_cell_of(t, index),
                            pln_prim_lanes(t->g, index)));
    if (d + 1 == a.v.rank)
      a.lanes = is_ramp(t, index) ? t->g->nodes[index].data
                                  : pln_prim_lanes(t->g, index);
  }
  uint32_t lanes = a.lanes;
  if (a.stride != PLN_LOOP_GATHER)
    a.lanes = 1; /* only the base is there */
  PLN_TRY(add_offset(t, &a));
  a.lanes = lanes;
  PLN_TRY(expand_lanes(t, &a));
  *out = (pln_loop_access){.handle = pln_loop_cell_of(t, a.v.data),
                           .index = a.index,
                           .stride = a.stride,
                           .dtype = a.v.dtype,
                           .lanes = a.lanes};
  return PLN_OK;
}

static pln_loop_op load_op(pln_dtype dtype) {
  switch ((int)dtype) {
  case PLN_INT8: return PLN_LOOP_LOAD_I8;
  case PLN_BOOL:
  case PLN_UINT8: return PLN_LOOP_LOAD_U8;
  case PLN_INT16: return PLN_LOOP_LOAD_I16;
  case PLN_UINT16: return PLN_LOOP_LOAD_U16;
  case PLN_INT32: return PLN_LOOP_LOAD_I32;
  case PLN_UINT32: return PLN_LOOP_LOAD_U32;
  case PLN_INT64:
  case PLN_UINT64: return PLN_LOOP_LOAD_I64;
  case PLN_FLOAT32: return PLN_LOOP_LOAD_F32;
  case PLN_FLOAT64: return PLN_LOOP_LOAD_F64;
  default: return PLN_LOOP_LOAD_ANY;
  }
}

static pln_loop_op store_op(pln_dtype dtype) {
  switch ((int)dtype) {
  case PLN_INT8:
  case PLN_BOOL:
  case PLN_UINT8: return PLN_LOOP_STORE_I8;
  case PLN_INT16:
  case PLN_UINT16: return PLN_LOOP_STORE_I16;
  case PLN_INT32:
  case PLN_UINT32: return PLN_LOOP_STORE_I32;
  case PLN_INT64:
  case PLN_UINT64: return PLN_LOOP_STORE_I64;
  case PLN_FLOAT32: return PLN_LOOP_STORE_F32;
  case PLN_FLOAT64: return PLN_LOOP_STORE_F64;
  default: return PLN_LOOP_STORE_ANY;
  }
}

pln_status pln_loop_emit_load(pln_translation *t, pln_ref ref) {
  pln_loop_access at;
  int32_t to;
  PLN_TRY(pln_loop_emit_access(t, ref, 1, &at));
  PLN_TRY(pln_loop_new_cells(t, at.lanes, &to));
  PLN_TRY(pln_loop_emit(t, ref,
                        (pln_loop_instr){.op = (uint16_t)load_op(at.dtype),
                                         .aux = (uint16_t)at.dtype,
                                         .lanes = at.lanes,
                                         .to = to,
                                         .a = at.handle,
                                         .b = at.index,
                                         .c = at.stride}));
  return pln_loop_set(t, ref, to);
}

pln_status pln_loop_emit_store(pln_translation *t, pln_ref ref) {
  pln_loop_access at;
  PLN_TRY(pln_loop_emit_access(t, ref, 2, &at));
  int32_t value = pln_loop_cell_of(t, refs_of(t, ref)[1]);
  return pln_loop_emit(t, ref,
                       (pln_loop_instr){.op = (uint16_t)store_op(at.dtype),
                                        .aux = (uint16_t)at.dtype,
                                        .lanes = at.lanes,
                                        .to = value,
                                        .a = at.handle,
                                        .b = at.index,
                                        .c = at.stride});
}

/* ------------------------------------------------------------------- views */

pln_status pln_loop_push_match(pln_translation *t, pln_ref buffer,
                               pln_ref source) {
  pln_buffer_fields v = pln_buffer_fields_of(t->g, buffer);
  PLN_TRY(check_memory(t, source));
  for (uint32_t i = 0; i < v.rank; i++)
    if (t->g->nodes[v.shape[i]].kind != PLN_VAR)
      PLN_TRY(pln_loop_push_expr(t, v.shape[i]));
  for (uint32_t i = 0; i < v.n_strides; i++)
    if (t->g->nodes[v.strides[i]].kind != PLN_VAR)
      PLN_TRY(pln_loop_push_expr(t, v.strides[i]));
  return push_buffer(t, source);
}

/* Binds a variable to a cell, or checks that the expression has its value. */
static pln_status bind_or_check(pln_translation *t, pln_ref node, pln_ref expr,
                                int32_t cell) {
  if (t->g->nodes[expr].kind == PLN_VAR && !pln_loop_is_bound(t, expr))
    return pln_loop_bind_var(t, expr, cell);
  return pln_loop_emit(t, node,
                       (pln_loop_instr){.op = PLN_LOOP_CHECK_EQUAL,
                                        .lanes = 1,
                                        .a = cell,
                                        .b = pln_loop_cell_of(t, expr)});
}

/* The stride of each dimension of the source, in elements. */
static pln_status source_strides(pln_translation *t, pln_ref node,
                                 access_state *a, int32_t *out) {
  int32_t stride = t->one;
  PLN_TRY(pln_loop_new_cells(t, a->v.rank, out));
  for (uint32_t d = a->v.rank; d-- > 0;) {
    bool given = a->v.n_strides > 0 && !is_realized(a);
    int32_t from = given ? pln_loop_cell_of(t, a->v.strides[d]) : stride;
    PLN_TRY(pln_loop_emit(t, node,
                          (pln_loop_instr){.op = PLN_LOOP_COPY,
                                           .lanes = 1,
                                           .to = *out + (int32_t)d,
                                           .a = from}));
    int32_t size = is_realized(a) ? a->b->region + (int32_t)(a->v.rank + d)
                                  : pln_loop_cell_of(t, a->v.shape[d]);
    PLN_TRY(pln_loop_op2(t, node, PLN_LOOP_MUL_I64, stride, size, &stride));
  }
  return PLN_OK;
}

static pln_status source_offset(pln_translation *t, pln_ref node,
                                access_state *a, const pln_ref *ranges,
                                int32_t strides, int32_t *out) {
  *out = is_realized(a) ? t->zero : pln_loop_cell_of(t, a->v.elem_offset);
  for (uint32_t d = 0; d < a->v.rank; d++) {
    int32_t min = pln_loop_cell_of(t, refs_of(t, ranges[d])[0]), part;
    if (is_realized(a))
      PLN_TRY(subtract_min(t, a, d, &min, 1));
    PLN_TRY(pln_loop_op2(t, node, PLN_LOOP_MUL_I64, min, strides + (int32_t)d,
                         &part));
    PLN_TRY(pln_loop_op2(t, node, PLN_LOOP_ADD_I64, *out, part, out));
  }
  return PLN_OK;
}

/* A buffer without strides is compact: so must the region be. */
static pln_status match_strides(pln_translation *t, pln_ref node,
                                const pln_buffer_fields *v,
                                const pln_ref *extents, int32_t strides) {
  int32_t compact = t->one;
  for (uint32_t d = v->rank; d-- > 0;) {
    int32_t stride = strides + (int32_t)d;
    int32_t extent = pln_loop_cell_of(t, refs_of(t, extents[d])[1]);
    if (v->n_strides > 0)
      PLN_TRY(bind_or_check(t, node, v->strides[d], stride));
    else
      PLN_TRY(pln_loop_emit(t, node,
                            (pln_loop_instr){.op = PLN_LOOP_CHECK_STRIDE,
                                             .lanes = 1,
                                             .a = stride,
                                             .b = compact,
                                             .c = extent}));
    PLN_TRY(pln_loop_op2(t, node, PLN_LOOP_MUL_I64, compact, extent, &compact));
  }
  return PLN_OK;
}

pln_status pln_loop_emit_match(pln_translation *t, pln_ref buffer,
                               pln_ref source, uint32_t n,
                               const pln_ref *ranges) {
  pln_buffer_fields v = pln_buffer_fields_of(t->g, buffer);
  access_state a = {.ref = buffer, .v = pln_buffer_fields_of(t->g, source)};
  int32_t strides, offset, handle;
  a.b = pln_loop_find_memory(t, a.v.data);
  if (n != a.v.rank || v.rank > n || v.lanes != a.v.lanes)
    return pln_loop_refuse(t, "a view of a region of another rank");
  uint32_t skip = n - v.rank;
  PLN_TRY(source_strides(t, buffer, &a, &strides));
  PLN_TRY(source_offset(t, buffer, &a, ranges, strides, &offset));
  for (uint32_t d = 0; d < v.rank; d++)
    PLN_TRY(
        bind_or_check(t, buffer, v.shape[d],
                      pln_loop_cell_of(t, refs_of(t, ranges[skip + d])[1])));
  PLN_TRY(match_strides(t, buffer, &v, ranges + skip, strides + (int32_t)skip));
  handle = pln_loop_cell_of(t, a.v.data);
  bool moves = t->g->nodes[v.elem_offset].kind != PLN_VAR ||
               pln_loop_is_bound(t, v.elem_offset);
  if (moves)
    PLN_TRY(pln_loop_op2(t, buffer, PLN_LOOP_ADDRESS, handle, offset, &handle));
  if (moves) {
    pln_loop_instr *in = &t->p->code[t->p->n_code - 1];
    in->aux = (uint16_t)v.dtype;
    in->lanes = v.lanes;
  } else {
    PLN_TRY(pln_loop_bind_var(t, v.elem_offset, offset));
  }
  uint32_t depth = a.b ? a.b->depth : t->n_threads;
  PLN_TRY(pln_loop_bind_memory(t, v.data, handle));
  t->bindings[t->n_bindings - 1].depth = depth;
  return PLN_OK;
}
