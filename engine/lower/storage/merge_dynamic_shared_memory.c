/* merge_dynamic_shared_memory.c: tir.MergeDynamicSharedMemoryAllocations: the
 * allocations of dynamic shared memory of a kernel are one of bytes.
 *
 * Run by the executor. Allocations that do not live at the same time share
 * bytes: one that is larger than several free ones lies over all of them. So
 * memory has layers; those of one layer lie side by side.
 *
 *     A = T.allocate([256], "float16", "shared.dyn")
 *     B = T.allocate([256], "float32", "shared.dyn")
 *     A[i] = 0; B[i] = 1; ...
 *         =>   buf_dyn_shmem = T.allocate([1536], "uint8", "shared.dyn")
 *              A[i] = 0; B[i + 128] = 1; ...
 *
 * Semantics: TVM's tir.MergeDynamicSharedMemoryAllocations. The first byte of
 * each piece of memory is aligned to the largest element in it, small
 * allocations get memory too, and what is larger by a reuse is counted. */

#include "lower/emit.h"
#include "lower/storage/liveness.h"
#include "lower/storage/row_list.h"

enum { MATCH_RANGE = 16, SMALL_BITS = 32, MOST_CANDIDATES = 256 };

/* Allocations side by side: a list by `next_alloc`. */
typedef struct memory_layer {
  uint32_t first, last; /* index + 1 */
} memory_layer;

typedef struct memory_piece {
  uint64_t bits; /* 0: not constant */
  memory_layer *layers;
  uint32_t n, cap;
  bool gone; /* it is part of another one */
} memory_piece;

typedef struct merger {
  const pln_graph *g;
  pln_engine *engine;
  pln_storage_plan plan;
  pln_access_pattern pattern;
  pln_liveness life;
  memory_piece *pieces;
  uint32_t n_pieces, cap_pieces;
  uint32_t *next_alloc, *piece_of; /* by allocation: index + 1 */
  pln_row_list sized, symbolic;    /* free; by size */
  pln_ref kernel;                  /* AttrStmt in which the memory is */
  bool inside;
  pln_emit e;
  pln_ref memory;   /* the new variable */
  pln_ref size;     /* bytes */
  pln_ref *offsets; /* by allocation: bytes */
} merger;

static pln_status refuse(const merger *x, const char *what) {
  return pln_diag_error(x->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.MergeDynamicSharedMemoryAllocations: %s", what);
}

static bool is_dynamic(const merger *x, uint32_t allocation) {
  return pln_slice_is(
      pln_symbol_text(x->engine, x->plan.allocations[allocation].scope),
      "shared.dyn");
}

/* ------------------------------------------------------------------ free
 * memory
 */

/* The first free piece of at least so many bits; of more with `above`. */
static uint32_t lower_bound(const merger *x, uint64_t bits, bool above) {
  uint32_t low = 0, high = x->sized.n;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    uint64_t at = x->pieces[x->sized.rows[mid]].bits;
    if (at < bits || (above && at == bits))
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static bool is_small(uint64_t bits) {
  return bits > 0 && bits <= SMALL_BITS;
}

/* --------------------------------------------------------------------- layers
 */

static pln_status new_piece(merger *x, uint64_t bits, uint32_t *out) {
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->pieces, &x->cap_pieces,
                       (size_t)x->n_pieces + 1, sizeof *x->pieces));
  *out = x->n_pieces;
  x->pieces[x->n_pieces++] = (memory_piece){.bits = bits};
  return PLN_OK;
}

/* The allocation lies over all layers that there are. */
static pln_status add_layer(merger *x, uint32_t piece, uint32_t allocation) {
  memory_piece *p = &x->pieces[piece];
  PLN_TRY(pln_mem_grow(x->engine, (void **)&p->layers, &p->cap,
                       (size_t)p->n + 1, sizeof *p->layers));
  p->layers[p->n++] = (memory_layer){allocation + 1, allocation + 1};
  x->piece_of[allocation] = piece + 1;
  return PLN_OK;
}

static void join_lists(merger *x, memory_layer *first,
                       const memory_layer *second) {
  x->next_alloc[first->last - 1] = second->first;
  first->last = second->last;
}

/* The layers of `other` beside those of `piece`, which has as many at least; in
 * front of them, or behind. */
static void join_layers(merger *x, uint32_t piece, uint32_t other,
                        bool in_front) {
  memory_piece *p = &x->pieces[piece], *q = &x->pieces[other];
  for (uint32_t i = 0; i < q->n; i++) {
    memory_layer joined = in_front ? q->layers[i] : p->layers[i];
    join_lists(x, &joined, in_front ? &p->layers[i] : &q->layers[i]);
    p->layers[i] = joined;
  }
  q->gone = true;
}

/* Pieces side by side are one: that of the most layers takes the others in, so
 * that each layer is looked at a logarithmic number of times. */
static uint32_t join_pieces(merger *x, uint32_t n, const uint32_t *rows) {
  uint32_t most = 0;
  for (uint32_t i = 1; i < n; i++)
    if (x->pieces[rows[i]].n > x->pieces[rows[most]].n)
      most = i;
  for (uint32_t i = most; i-- > 0;)
    join_layers(x, rows[most], rows[i], true);
  for (uint32_t i = most + 1; i < n; i++)
    join_layers(x, rows[most], rows[i], false);
  return rows[most];
}

/* ------------------------------------------------------------------- planning
 */

/* Smaller pieces that the allocation lies over; UINT32_MAX: there are none. */
static uint32_t gather_smaller(merger *x, uint32_t mid, uint64_t bits) {
  uint32_t rows[MOST_CANDIDATES], n = 0, piece;
  uint64_t total = 0;
  for (uint32_t i = mid, seen = 0; i-- > 0 && seen < MOST_CANDIDATES; seen++) {
    uint64_t each = x->pieces[x->sized.rows[i]].bits;
    if (total + each > bits)
      continue;
    total += each;
    rows[n++] = pln_row_list_take(&x->sized, i);
  }
  if (n == 0)
    return UINT32_MAX;
  piece = join_pieces(x, n, rows);
  x->pieces[piece].bits = bits > total ? bits : total;
  return piece;
}

static uint32_t find_free(merger *x, uint64_t bits) {
  uint32_t mid, row;
  uint64_t most;
  if (is_small(bits))
    return UINT32_MAX;
  if (bits == 0)
    return x->symbolic.n > 0 ? pln_row_list_take(&x->symbolic, 0) : UINT32_MAX;
  mid = lower_bound(x, bits, false);
  most = bits > UINT64_MAX / MATCH_RANGE ? UINT64_MAX : bits * MATCH_RANGE;
  if (mid == x->sized.n || x->pieces[x->sized.rows[mid]].bits > most)
    return gather_smaller(x, mid, bits);
  row = pln_row_list_take(&x->sized, mid);
  if (x->pieces[row].bits < bits)
    x->pieces[row].bits = bits;
  return row;
}

static pln_status begin_use(merger *x, uint32_t allocation) {
  const pln_storage_allocation *a = &x->plan.allocations[allocation];
  uint32_t piece = find_free(x, a->bits);
  if (piece == UINT32_MAX)
    PLN_TRY(new_piece(x, a->bits, &piece));
  return add_layer(x, piece, allocation);
}

/* A piece that was taken in is free with the one that took it. */
static pln_status end_use(merger *x, uint32_t allocation) {
  uint32_t row = x->piece_of[allocation];
  if (!row || is_small(x->pieces[row - 1].bits))
    return PLN_OK;
  uint64_t bits = x->pieces[row - 1].bits;
  return bits ? pln_row_list_insert(x->engine, &x->sized,
                                    lower_bound(x, bits, true), row - 1)
              : pln_row_list_insert(x->engine, &x->symbolic, x->symbolic.n,
                                    row - 1);
}

static pln_status plan_all(merger *x) {
  for (uint32_t i = 0; i < x->pattern.n; i++) {
    const pln_access_entry *entry = &x->pattern.entries[i];
    const pln_life_event *events = x->life.events;
    if (entry->pair >= 0)
      for (uint32_t at = x->life.gen[entry->stmt]; at; at = events[at - 1].next)
        if (is_dynamic(x, events[at - 1].allocation))
          PLN_TRY(begin_use(x, events[at - 1].allocation));
    if (entry->pair <= 0)
      for (uint32_t at = x->life.kill[entry->stmt]; at;
           at = events[at - 1].next)
        if (is_dynamic(x, events[at - 1].allocation))
          PLN_TRY(end_use(x, events[at - 1].allocation));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- offsets
 */

static int64_t element_bytes(const merger *x, uint32_t allocation) {
  const pln_storage_allocation *a = &x->plan.allocations[allocation];
  return (int64_t)(pln_dtype_bits(a->dtype) + 7) / 8 * a->lanes;
}

static pln_ref byte_count(merger *x, int64_t n) {
  return pln_emit_int(&x->e, PLN_INT32, n);
}

static pln_ref fold(merger *x, pln_kind kind, pln_ref p, pln_ref q) {
  pln_type type = pln_emit_type_of(&x->e, p),
           other = pln_emit_type_of(&x->e, q);
  if (x->e.status == PLN_OK && type != other) {
    bool wide = pln_dtype_bits(pln_type_dtype(x->engine, type)) <
                pln_dtype_bits(pln_type_dtype(x->engine, other));
    p = wide ? pln_emit_cast(&x->e, other, p) : p;
    q = wide ? q : pln_emit_cast(&x->e, type, q);
  }
  return pln_emit_folded(&x->e, kind, p, q);
}

/* size + (align - size % align) % align */
static pln_ref align_to(merger *x, pln_ref size, int64_t align) {
  pln_type type = pln_emit_type_of(&x->e, size);
  pln_ref to = pln_emit_int_of(&x->e, type, align);
  if (align <= 1)
    return size;
  pln_ref rest = fold(x, PLN_PRIM_FLOORMOD, size, to);
  return fold(x, PLN_PRIM_ADD, size,
              fold(x, PLN_PRIM_FLOORMOD, fold(x, PLN_PRIM_SUB, to, rest), to));
}

/* Adds the allocations of a layer, which begin at x->size. *size: of it. */
static pln_status place_layer(merger *x, pln_stmt_rewrite *s,
                              const memory_layer *layer, int64_t align,
                              pln_ref *size) {
  *size = byte_count(x, 0);
  for (uint32_t at = layer->first; at; at = x->next_alloc[at - 1]) {
    pln_ref stmt = x->plan.allocations[at - 1].stmt, extent;
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, stmt, 1), &extent));
    x->offsets[at - 1] = fold(x, PLN_PRIM_ADD, x->size, *size);
    *size = fold(
        x, PLN_PRIM_ADD, *size,
        fold(x, PLN_PRIM_MUL, extent, byte_count(x, element_bytes(x, at - 1))));
    *size = align_to(x, *size, align);
  }
  return x->e.status;
}

static int64_t layer_align(const merger *x, const memory_layer *layer) {
  int64_t align = 1;
  for (uint32_t at = layer->first; at; at = x->next_alloc[at - 1])
    if (element_bytes(x, at - 1) > align)
      align = element_bytes(x, at - 1);
  return align;
}

static pln_status place_piece(merger *x, pln_stmt_rewrite *s, uint32_t row,
                              const int64_t *aligns, int64_t most) {
  const memory_piece *p = &x->pieces[row];
  pln_ref largest = byte_count(x, 0), size;
  x->size = align_to(x, x->size, most);
  for (uint32_t i = 0; i < p->n; i++) {
    PLN_TRY(place_layer(x, s, &p->layers[i], aligns[i], &size));
    largest = fold(x, PLN_PRIM_MAX, largest, size);
  }
  x->size = fold(x, PLN_PRIM_ADD, x->size, largest);
  return x->e.status;
}

/* The free pieces by size, those of symbolic sizes, and small ones. */
static void list_pieces(const merger *x, uint32_t *rows, uint32_t *n) {
  *n = 0;
  for (uint32_t i = 0; i < x->sized.n; i++)
    rows[(*n)++] = x->sized.rows[i];
  for (uint32_t i = 0; i < x->symbolic.n; i++)
    rows[(*n)++] = x->symbolic.rows[i];
  for (uint32_t i = 0; i < x->n_pieces; i++)
    if (!x->pieces[i].gone && is_small(x->pieces[i].bits))
      rows[(*n)++] = i;
}

static pln_status place_pieces(merger *x, pln_stmt_rewrite *s, uint32_t *rows,
                               int64_t *aligns) {
  uint32_t n;
  int64_t most = 1;
  list_pieces(x, rows, &n);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < x->pieces[rows[i]].n; k++) {
      int64_t align = layer_align(x, &x->pieces[rows[i]].layers[k]);
      aligns[k] = align > aligns[k] ? align : aligns[k];
      most = align > most ? align : most;
    }
  bool uniform = true; /* then pieces are as large as their alignment demands */
  for (uint32_t k = 0; k < x->plan.n_allocations && aligns[k] > 0; k++)
    uniform &= aligns[k] == most;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(place_piece(x, s, rows[i], aligns, uniform ? 1 : most));
  return PLN_OK;
}

/* There are at most as many layers as allocations. */
static pln_status place_all(merger *x, pln_stmt_rewrite *s) {
  size_t n = x->plan.n_allocations + (size_t)1;
  uint32_t *rows = pln_mem_new(x->engine, n * sizeof *rows);
  int64_t *aligns = pln_mem_zeroed(x->engine, n * sizeof *aligns);
  x->e.b = pln_stmt_builder(s);
  x->size = byte_count(x, 0);
  pln_status status =
      rows && aligns ? place_pieces(x, s, rows, aligns) : pln_nomem(x->engine);
  pln_mem_free(x->engine, rows, n * sizeof *rows);
  pln_mem_free(x->engine, aligns, n * sizeof *aligns);
  return status;
}

/* ------------------------------------------------------------------- accesses
 */

/* 1 + the allocation of dynamic shared memory of the variable; 0: none. */
static uint32_t allocation_of(const merger *x, pln_ref data) {
  uint32_t row = x->plan.allocation_of[data];
  return row && is_dynamic(x, row - 1) ? row : 0;
}

/* Elements of that many bits in front of the allocation. */
static pln_status elements_before(merger *x, uint32_t row, uint64_t bits,
                                  pln_ref *out) {
  pln_ref offset = x->offsets[row - 1];
  if (!x->inside)
    return refuse(x, "dynamic shared memory is used outside of the first "
                     "kernel, or before its first use");
  if (offset == PLN_NONE || bits < 8)
    return refuse(x, "an element of dynamic shared memory has less than 8 "
                     "bits");
  *out = fold(x, PLN_PRIM_FLOORDIV, offset, byte_count(x, (int64_t)(bits / 8)));
  return x->e.status;
}

/* index + n, of as many lanes. */
static pln_ref add_elements(merger *x, pln_ref index, pln_ref n) {
  uint32_t lanes =
      (uint32_t)pln_type_number(x->engine, pln_emit_type_of(&x->e, index));
  if (pln_is_int(x->e.b->graph, n, 0))
    return index;
  if (lanes == 1)
    return fold(x, PLN_PRIM_ADD, index, n);
  n = pln_emit_prim(
      &x->e, &(pln_prim){
                 .kind = PLN_BROADCAST, .data = lanes, .n = 1, .operands = &n});
  return pln_emit_folded(&x->e, PLN_PRIM_ADD, index, n);
}

static pln_status move_index(merger *x, pln_ref buffer, pln_ref *index,
                             bool *moved) {
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  uint32_t row = allocation_of(x, f.data);
  pln_ref before;
  *moved = row != 0;
  if (!row)
    return PLN_OK;
  PLN_TRY(elements_before(x, row, (uint64_t)pln_dtype_bits(f.dtype) * f.lanes,
                          &before));
  *index = add_elements(x, *index, before);
  return x->e.status;
}

static pln_status map_load(merger *x, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  pln_ref buffer = pln_operand(x->g, old, 0), index;
  bool moved;
  if (!allocation_of(x, pln_operand(x->g, buffer, 0)))
    return PLN_OK;
  if (x->g->nodes[old].count != 2)
    return refuse(x, "dynamic shared memory is not flat");
  index = pln_stmt_image(s, pln_operand(x->g, old, 1));
  PLN_TRY(move_index(x, buffer, &index, &moved));
  *node = pln_emit_load(&x->e, pln_stmt_image(s, buffer), index);
  return x->e.status;
}

/* T.tvm_access_ptr(type, data, offset, extent, mask) */
static pln_status map_access_ptr(merger *x, pln_stmt_rewrite *s, pln_ref old,
                                 pln_ref *node) {
  pln_ref args[5], before, type = pln_operand(x->g, old, 0);
  uint32_t row = allocation_of(x, pln_operand(x->g, old, 1));
  if (!row)
    return PLN_OK;
  PLN_TRY(elements_before(x, row,
                          (uint64_t)pln_dtype_bits(pln_prim_dtype(x->g, type)) *
                              pln_prim_lanes(x->g, type),
                          &before));
  for (uint32_t i = 0; i < 5; i++)
    args[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  args[1] = x->memory;
  args[2] = fold(x, PLN_PRIM_ADD, before, args[2]);
  *node =
      pln_emit_call(&x->e, "tvm_access_ptr", x->g->nodes[old].type, 5, args);
  return x->e.status;
}

/* T.ptx_cp_async(dtype, shared, offset, ...): the offset counts bytes then. */
static pln_status map_cp_async(merger *x, pln_stmt_rewrite *s, pln_ref old,
                               pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref args[6], before;
  uint32_t row = allocation_of(x, pln_operand(x->g, old, 0));
  uint32_t bits = pln_dtype_bits(pln_type_dtype(x->engine, n->type));
  if (!row)
    return PLN_OK;
  PLN_TRY(elements_before(x, row, bits, &before));
  for (uint32_t i = 0; i < n->count; i++)
    args[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  args[0] = x->memory;
  args[1] = fold(x, PLN_PRIM_MUL, fold(x, PLN_PRIM_ADD, before, args[1]),
                 byte_count(x, bits / 8));
  *node = pln_emit_call(&x->e, "ptx_cp_async", n->type, n->count, args);
  return x->e.status;
}

static pln_status map_call(merger *x, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  if (pln_is_call_of(n, "tvm_access_ptr") && n->count == 5)
    return map_access_ptr(x, s, old, node);
  if (pln_is_call_of(n, "ptx_cp_async") && (n->count == 5 || n->count == 6))
    return map_cp_async(x, s, old, node);
  for (uint32_t i = 0; i < n->count; i++)
    if (allocation_of(x, pln_operand(x->g, old, i)))
      return refuse(x, "a call has dynamic shared memory as an argument, "
                       "other than T.tvm_access_ptr and T.ptx_cp_async");
  return PLN_OK;
}

static pln_status map_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  merger *x = ud;
  switch (x->g->nodes[old].kind) {
  case PLN_BUFFER_LOAD: return map_load(x, s, old, node);
  case PLN_PRIM_CALL: return map_call(x, s, old, node);
  default: return PLN_OK;
  }
}

static pln_status map_store(merger *x, pln_stmt_rewrite *s, pln_ref stmt,
                            pln_ref *node) {
  pln_ref buffer = pln_operand(x->g, stmt, 0), index;
  bool moved;
  if (!allocation_of(x, pln_operand(x->g, buffer, 0)))
    return PLN_OK;
  if (x->g->nodes[stmt].count != 3)
    return refuse(x, "dynamic shared memory is not flat");
  index = pln_stmt_operand(s, 2);
  PLN_TRY(move_index(x, buffer, &index, &moved));
  *node = pln_emit_store(&x->e, pln_stmt_operand(s, 0), index,
                         pln_stmt_operand(s, 1));
  return x->e.status;
}

/* ------------------------------------------------------------------ callbacks
 */

/* All variables of dynamic shared memory are the new one. */
static pln_status bind_memory(merger *x, pln_stmt_rewrite *s) {
  x->e.b = pln_stmt_builder(s);
  x->memory = pln_emit_var(
      &x->e, "buf_dyn_shmem",
      pln_emit_pointer(&x->e, pln_emit_type(&x->e, PLN_UINT8), "shared.dyn"));
  PLN_TRY(x->e.status);
  for (uint32_t i = 0; i < x->plan.n_allocations; i++)
    if (is_dynamic(x, i))
      pln_stmt_bind(
          s, x->g->scopes[x->g->nodes[x->plan.allocations[i].stmt].data].begin,
          x->memory);
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  merger *x = ud;
  (void)k;
  (void)skip;
  if (x->g->nodes[stmt].kind == PLN_PRIM_FUNC)
    return bind_memory(x, s);
  if (stmt != x->kernel)
    return PLN_OK;
  x->inside = true;
  return place_all(x, s);
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  merger *x = ud;
  (void)s;
  (void)k;
  (void)again;
  if (stmt != x->kernel)
    return PLN_OK;
  x->inside = false;
  *body = pln_emit_allocate(&x->e, x->memory, pln_emit_type(&x->e, PLN_UINT8),
                            1, &x->size, *body);
  return x->e.status;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  merger *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  if (n->kind == PLN_BUFFER_STORE)
    return map_store(x, s, stmt, node);
  if (n->kind == PLN_ALLOCATE && allocation_of(x, x->g->scopes[n->data].begin))
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

/* The outermost statement that binds a thread; scopes come in order. */
static pln_ref find_kernel(const pln_graph *g) {
  for (pln_scope i = 1; i < g->n_scopes; i++) {
    pln_ref owner = g->scopes[i].owner;
    if (g->nodes[owner].kind == PLN_ATTR_STMT &&
        pln_slice_is(
            pln_attrs_string(g->engine, g->nodes[owner].attrs, "attr_key", ""),
            "thread_extent"))
      return owner;
  }
  return PLN_NONE;
}

static uint32_t count_dynamic(const pln_graph *g) {
  uint32_t n = 0;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_ALLOCATE)
      continue;
    pln_type type = g->nodes[g->scopes[g->nodes[ref].data].begin].type;
    n += pln_slice_is(
        pln_symbol_text(g->engine, pln_type_symbol(g->engine, type)),
        "shared.dyn");
  }
  return n;
}

static pln_status check_flat(const merger *x) {
  for (uint32_t i = 0; i < x->plan.n_allocations; i++)
    if (is_dynamic(x, i) && x->g->nodes[x->plan.allocations[i].stmt].count != 2)
      return refuse(x, "dynamic shared memory is not flat");
  return PLN_OK;
}

static pln_status merge(merger *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = map_expr,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  x->plan.allocation_of =
      pln_mem_zeroed(x->engine, x->g->n_nodes * sizeof *x->plan.allocation_of);
  if (!x->plan.allocation_of)
    return pln_nomem(x->engine);
  PLN_TRY(pln_access_pattern_find(&x->pattern, &x->plan));
  PLN_TRY(check_flat(x));
  size_t n = x->plan.n_allocations;
  x->next_alloc = pln_mem_zeroed(x->engine, n * sizeof *x->next_alloc);
  x->piece_of = pln_mem_zeroed(x->engine, n * sizeof *x->piece_of);
  x->offsets = pln_mem_new(x->engine, n * sizeof *x->offsets);
  if (!x->next_alloc || !x->piece_of || !x->offsets)
    return pln_nomem(x->engine);
  memset(x->offsets, 0xff, n * sizeof *x->offsets);
  PLN_TRY(pln_liveness_find(&x->life, &x->plan, &x->pattern));
  PLN_TRY(plan_all(x));
  return pln_lower_function(run, &mutator);
}

static void free_merger(merger *x) {
  pln_engine *e = x->engine;
  size_t n = x->plan.n_allocations;
  pln_mem_free(e, x->next_alloc, n * sizeof *x->next_alloc);
  pln_mem_free(e, x->piece_of, n * sizeof *x->piece_of);
  pln_mem_free(e, x->offsets, n * sizeof *x->offsets);
  for (uint32_t i = 0; i < x->n_pieces; i++)
    pln_mem_free(e, x->pieces[i].layers,
                 x->pieces[i].cap * sizeof *x->pieces[i].layers);
  pln_mem_free(e, x->pieces, x->cap_pieces * sizeof *x->pieces);
  pln_mem_free(e, x->sized.rows, x->sized.cap * sizeof *x->sized.rows);
  pln_mem_free(e, x->symbolic.rows, x->symbolic.cap * sizeof *x->symbolic.rows);
  pln_liveness_free(&x->life);
  pln_access_pattern_free(e, &x->pattern);
  pln_storage_plan_free(&x->plan);
}

pln_status pln_pass_tir_merge_dynamic_shared_memory(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  merger x = {.g = g,
              .engine = g->engine,
              .plan = {.engine = g->engine, .graph = g},
              .kernel = find_kernel(g)};
  if (count_dynamic(g) < 2)
    return PLN_OK;
  if (x.kernel == PLN_NONE)
    return refuse(&x, "the function has dynamic shared memory and no threads");
  pln_status status = merge(&x, run);
  free_merger(&x);
  return status;
}
