/* pointer_value_type.c: tir.PointerValueTypeRewrite: memory that is accessed as
 * vectors of one kind only has such vectors as elements.
 *
 * Run by the executor, and by tir.StorageRewrite for the memory that a function
 * allocates itself. A load of a single element, of which is known in which lane
 * it is, takes it out of a vector; tir.StorageRewrite does not do so.
 *
 *     B = T.allocate([16], "float32"); B[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4]
 *         =>   B = T.allocate([4], "float32x4"); B[i * 4 // 4] = A[...]
 *
 * Semantics: TVM's tir.PointerValueTypeRewrite. Tensors of AllocateConst keep
 * their dtype; so does memory with strides, memory that is seen as vectors of
 * different lengths, and memory of another dtype that bools are stored in. */

#include "lower/emit.h"
#include "lower/storage/storage_plan.h"

typedef struct pointer_use {
  pln_ref var;
  pln_dtype dtype; /* declared; PLN_DTYPE_NONE: that of the first access */
  uint32_t lanes;
  pln_ref extent; /* the last one; PLN_NONE: not known */
  bool fixed;     /* it stays as it is */
  bool compact;   /* Buffers over it have no strides and no offset */
  bool accessed;
  bool several;        /* its accesses have different dtypes */
  bool several_lanes;  /* those that are no scalar reads have different lanes */
  uint32_t used_lanes; /* of those; 0: there are none */
  pln_dtype base;      /* of all accesses, if not `several` */
  int64_t read_lanes;  /* scalar reads are of lane c of so many */
  pln_dtype new_dtype;
  uint32_t new_lanes;
} pointer_use;

typedef struct retyper {
  const pln_graph *g;
  pln_analyzer *a;
  bool whole;   /* parameters and scalar reads too */
  uint32_t *of; /* by Var: 1 + its row */
  pointer_use *uses;
  uint32_t n, cap;
  bool *viewed;         /* by node: a load whose address is taken */
  pln_ref *new_buffers; /* by node; PLN_NONE: not made yet */
  pln_ref *list;
  uint32_t n_list, cap_list;
} retyper;

/* -------------------------------------------------------------- declarations
 */

static pln_status declare(retyper *x, pln_ref var, pln_dtype dtype,
                          uint32_t lanes, pln_ref extent) {
  if (x->of[var])
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->uses, &x->cap,
                       (size_t)x->n + 1, sizeof *x->uses));
  x->uses[x->n++] = (pointer_use){.var = var,
                                  .dtype = dtype == PLN_BOOL ? PLN_INT8 : dtype,
                                  .lanes = lanes,
                                  .extent = extent,
                                  .compact = true};
  x->of[var] = x->n;
  return PLN_OK;
}

/* A variable that is a pointer, or a handle of unknown elements. */
static pln_status declare_pointer(retyper *x, pln_ref var) {
  const pln_engine *e = x->g->engine;
  pln_type type = x->g->nodes[var].type;
  if (pln_type_get_kind(e, type) == PLN_TYPE_POINTER)
    type = pln_type_part_at(e, type, 0);
  else if (x->whole || pln_type_get_kind(e, type) != PLN_TYPE_PRIM ||
           pln_type_dtype(e, type) != PLN_DTYPE_NONE)
    return PLN_OK;
  if (pln_type_get_kind(e, type) != PLN_TYPE_PRIM)
    return PLN_OK;
  return declare(x, var, pln_type_dtype(e, type),
                 (uint32_t)pln_type_number(e, type), PLN_NONE);
}

static pln_status declare_memory(retyper *x, pln_ref stmt) {
  const pln_node *n = &x->g->nodes[stmt];
  uint32_t lanes;
  pln_dtype dtype = pln_dtype_find_vector(
      pln_attrs_string(x->g->engine, n->attrs, "dtype", ""), &lanes);
  if (n->count < 2)
    return PLN_OK;
  return declare(x, x->g->scopes[n->data].begin, dtype, lanes,
                 pln_operand(x->g, stmt, n->count - 1));
}

static pln_status declare_buffer(retyper *x, pln_ref bind) {
  pln_ref buffer = pln_operand(x->g, bind, 1);
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  return declare(x, f.data, f.dtype, f.lanes,
                 f.rank > 0 ? f.shape[f.rank - 1] : PLN_NONE);
}

static pln_status declare_params(retyper *x) {
  const pln_scope_row *row = &x->g->scopes[x->g->nodes[x->g->root].data];
  for (uint32_t i = 0; i < row->n_params; i++)
    if (pln_type_get_kind(x->g->engine, x->g->nodes[row->begin + i].type) ==
        PLN_TYPE_POINTER)
      PLN_TRY(declare_pointer(x, row->begin + i));
  return PLN_OK;
}

static pln_status declare_all(retyper *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    switch (x->g->nodes[ref].kind) {
    case PLN_ALLOCATE: PLN_TRY(declare_memory(x, ref)); break;
    case PLN_LET_STMT:
      PLN_TRY(declare_pointer(x, x->g->scopes[x->g->nodes[ref].data].begin));
      break;
    case PLN_PRIM_LET:
      PLN_TRY(declare_pointer(x, pln_operand(x->g, ref, 0)));
      break;
    case PLN_BUFFER_BIND:
      if (x->whole)
        PLN_TRY(declare_buffer(x, ref));
      break;
    default: break;
    }
  return x->whole ? declare_params(x) : PLN_OK;
}

/* ------------------------------------------------------------------ accesses
 */

static bool is_unit_ramp(const pln_graph *g, pln_ref index) {
  return g->nodes[index].kind == PLN_RAMP &&
         pln_is_int(g, pln_operand(g, index, 1), 1);
}

static pln_status modular_set(retyper *x, pln_ref expr, int64_t *coeff,
                              int64_t *base) {
  pln_term term;
  PLN_TRY(pln_analyzer_import_more(x->a, x->g, expr, &term));
  return pln_analyzer_modular_set(x->a, term, coeff, base);
}

static pln_status is_multiple(retyper *x, pln_ref expr, uint32_t lanes,
                              bool *out) {
  int64_t coeff, base;
  PLN_TRY(modular_set(x, expr, &coeff, &base));
  *out = coeff % lanes == 0 && base % lanes == 0;
  return PLN_OK;
}

static void note_dtype(pointer_use *use, pln_dtype dtype) {
  if (use->dtype == PLN_DTYPE_NONE)
    use->dtype = dtype;
  use->several |= use->accessed && use->base != dtype;
  use->base = dtype;
  use->accessed = true;
}

static void note_lanes(pointer_use *use, uint32_t lanes) {
  use->several_lanes |= use->used_lanes && use->used_lanes != lanes;
  use->used_lanes = lanes;
}

/* The value has the type of what is loaded or stored. `index` may be PLN_NONE.
 */
static pln_status note_access(retyper *x, pointer_use *use, pln_type value,
                              pln_ref index, bool scalar_read) {
  const pln_engine *e = x->g->engine;
  pln_dtype dtype = pln_type_dtype(e, value);
  uint32_t value_lanes = (uint32_t)pln_type_number(e, value);
  uint32_t lanes,
      index_lanes = index == PLN_NONE ? 1 : pln_prim_lanes(x->g, index);
  bool aligned = false;
  if (dtype == PLN_DTYPE_NONE || (dtype == PLN_BOOL && use->dtype != PLN_INT8))
    use->fixed = true;
  note_dtype(use, dtype == PLN_BOOL ? PLN_INT8 : dtype);
  lanes = use->lanes;
  if ((uint64_t)index_lanes * lanes != value_lanes) {
    use->fixed |= index_lanes != value_lanes;
    lanes = use->lanes = 1;
  }
  if (index != PLN_NONE && is_unit_ramp(x->g, index))
    PLN_TRY(is_multiple(x, pln_operand(x->g, index, 0), index_lanes, &aligned));
  if (aligned)
    lanes = index_lanes;
  if (x->whole && scalar_read && index != PLN_NONE && index_lanes == 1) {
    int64_t coeff, base;
    PLN_TRY(modular_set(x, index, &coeff, &base));
    use->read_lanes = pln_gcd(use->read_lanes, coeff);
    return PLN_OK;
  }
  note_lanes(use, lanes);
  return PLN_OK;
}

static pointer_use *use_of(const retyper *x, pln_ref buffer) {
  uint32_t row = x->of[pln_operand(x->g, buffer, 0)];
  return row ? &x->uses[row - 1] : NULL;
}

static pln_status note_element(retyper *x, pln_ref at, bool load) {
  pln_ref buffer = pln_operand(x->g, at, 0);
  pointer_use *use = use_of(x, buffer);
  const pln_node *n = &x->g->nodes[at];
  pln_buffer_fields f = pln_buffer_fields_of(x->g, buffer);
  uint32_t first = load ? 1 : 2;
  pln_ref value = load ? at : pln_operand(x->g, at, 1);
  if (!use)
    return PLN_OK;
  use->compact &= f.n_strides == 0 && pln_is_int(x->g, f.elem_offset, 0);
  use->fixed |= f.lanes != use->lanes && f.lanes != 1;
  pln_ref last =
      n->count > first ? pln_operand(x->g, at, n->count - 1) : PLN_NONE;
  return note_access(x, use, x->g->nodes[value].type, last,
                     load && !x->viewed[at]);
}

/* T.tvm_access_ptr(type, data, offset, extent, mask) */
static pln_status note_pointer(retyper *x, pln_ref call) {
  pln_ref data = pln_operand(x->g, call, 1);
  uint32_t row = x->of[data];
  if (!row)
    return PLN_OK;
  return note_access(x, &x->uses[row - 1],
                     x->g->nodes[pln_operand(x->g, call, 0)].type,
                     pln_operand(x->g, call, 2), false);
}

static pln_status note_all(retyper *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (pln_is_call_of(&x->g->nodes[ref], "address_of") &&
        x->g->nodes[ref].count > 0)
      x->viewed[pln_operand(x->g, ref, 0)] = true;
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    const pln_node *n = &x->g->nodes[ref];
    if (n->kind == PLN_BUFFER_LOAD || n->kind == PLN_BUFFER_STORE)
      PLN_TRY(note_element(x, ref, n->kind == PLN_BUFFER_LOAD));
    if (pln_is_call_of(n, "tvm_access_ptr") && n->count == 5)
      PLN_TRY(note_pointer(x, ref));
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- new dtypes
 */

static pln_status choose(retyper *x, pointer_use *use) {
  bool whole = use->extent == PLN_NONE;
  use->new_dtype = use->dtype;
  use->new_lanes = use->lanes;
  if (use->fixed || use->several || !use->accessed)
    return PLN_OK;
  if (use->lanes == 1 && use->used_lanes > 0 && !use->several_lanes) {
    if (use->read_lanes % use->used_lanes != 0)
      return PLN_OK;
    if (!whole)
      PLN_TRY(is_multiple(x, use->extent, use->used_lanes, &whole));
    if (whole && (use->compact || use->used_lanes == 1))
      use->new_lanes = use->used_lanes;
  }
  use->new_dtype = use->base;
  return PLN_OK;
}

static bool is_changed(const pointer_use *use) {
  return use->new_dtype != use->dtype || use->new_lanes != use->lanes;
}

static uint32_t factor_of(const pointer_use *use) {
  return use->new_lanes / use->lanes;
}

/* The row of memory that changes, or NULL. */
static const pointer_use *changed_use(const retyper *x, pln_ref data) {
  uint32_t row = x->of[data];
  return row && is_changed(&x->uses[row - 1]) ? &x->uses[row - 1] : NULL;
}

/* ------------------------------------------------------------------ rewriting
 */

static pln_status push(retyper *x, const pln_emit *e, pln_ref item) {
  PLN_TRY(e->status);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->list, &x->cap_list,
                       (size_t)x->n_list + 1, sizeof *x->list));
  x->list[x->n_list++] = item;
  return PLN_OK;
}

static pln_type element_type(pln_emit *e, const pointer_use *use) {
  pln_type type = 0;
  if (e->status == PLN_OK)
    e->status =
        pln_type_prim(e->b->engine, use->new_dtype, use->new_lanes, &type);
  return type;
}

static pln_ref divide(pln_emit *e, pln_ref x, uint32_t by) {
  return pln_emit_folded(e, PLN_PRIM_DIV, x,
                         pln_emit_int_of(e, pln_emit_type_of(e, x), by));
}

static pln_ref ramp(pln_emit *e, pln_ref base, pln_ref stride, uint32_t lanes) {
  pln_ref parts[2] = {base, stride};
  return pln_emit_prim(
      e,
      &(pln_prim){.kind = PLN_RAMP, .data = lanes, .n = 2, .operands = parts});
}

/* A vector of the old elements is one new element, or several. */
static pln_status vector_index(retyper *x, pln_stmt_rewrite *s, pln_emit *e,
                               const pointer_use *use, pln_ref old,
                               pln_ref *index) {
  uint32_t lanes = x->g->nodes[old].data, factor = factor_of(use);
  pln_ref base = pln_stmt_image(s, pln_operand(x->g, old, 0));
  pln_ref stride = pln_stmt_image(s, pln_operand(x->g, old, 1));
  bool aligned;
  PLN_TRY(is_multiple(x, pln_operand(x->g, old, 0), lanes, &aligned));
  if (!aligned)
    return PLN_OK;
  *index = divide(e, base, lanes);
  if (lanes != factor)
    *index =
        ramp(e,
             pln_emit_folded(e, PLN_PRIM_MUL, *index,
                             pln_emit_int_of(e, pln_emit_type_of(e, *index),
                                             lanes / factor)),
             stride, lanes / factor);
  return e->status;
}

/* *lane: of the element in its vector; -1: it is a vector itself. */
static pln_status map_index(retyper *x, pln_stmt_rewrite *s, pln_emit *e,
                            const pointer_use *use, pln_ref old, pln_ref *index,
                            int64_t *lane) {
  int64_t coeff, base;
  *lane = -1;
  if (is_unit_ramp(x->g, old))
    return vector_index(x, s, e, use, old, index);
  if (pln_prim_lanes(x->g, old) != 1 || factor_of(use) == 1)
    return PLN_OK;
  PLN_TRY(modular_set(x, old, &coeff, &base));
  *lane = pln_floor_mod(base, factor_of(use));
  *index = divide(e, *index, factor_of(use));
  return e->status;
}

/* The operands of a load or store from `first` on, the last one mapped. */
static pln_status map_access(retyper *x, pln_stmt_rewrite *s, pln_emit *e,
                             pln_ref at, bool load, pln_ref *node,
                             int64_t *lane) {
  const pln_node *n = &x->g->nodes[at];
  const pointer_use *use =
      changed_use(x, pln_operand(x->g, pln_operand(x->g, at, 0), 0));
  uint32_t begin = x->n_list, first = load ? 1 : 2;
  *lane = -1;
  if (!use || n->count == first)
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(push(x, e,
                 load ? pln_stmt_image(s, pln_operand(x->g, at, i))
                      : pln_stmt_operand(s, i)));
  PLN_TRY(map_index(x, s, e, use, pln_operand(x->g, at, n->count - 1),
                    &x->list[x->n_list - 1], lane));
  *node = pln_emit_prim(e, &(pln_prim){.kind = (pln_kind)n->kind,
                                       .n = n->count,
                                       .operands = x->list + begin});
  x->n_list = begin;
  return e->status;
}

static pln_status map_load(retyper *x, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  int64_t lane;
  PLN_TRY(map_access(x, s, &e, old, true, node, &lane));
  if (lane >= 0)
    *node = pln_emit_lane(&e, *node, (uint32_t)lane);
  return e.status;
}

static pln_status map_pointer(retyper *x, pln_stmt_rewrite *s, pln_ref old,
                              pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  const pln_node *n = &x->g->nodes[old];
  const pointer_use *use = changed_use(x, pln_operand(x->g, old, 1));
  pln_ref args[5];
  if (!use)
    return PLN_OK;
  for (uint32_t i = 1; i < 5; i++)
    args[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  args[0] =
      pln_emit_call(&e, "type_annotation", element_type(&e, use), 0, NULL);
  args[2] = divide(&e, args[2], factor_of(use));
  args[3] = divide(&e, args[3], factor_of(use));
  *node = pln_emit_call(&e, "tvm_access_ptr", n->type, 5, args);
  return e.status;
}

/* The Buffer over memory that changes, with the last extent divided. */
static pln_status new_buffer(retyper *x, pln_stmt_rewrite *s, pln_ref old,
                             const pointer_use *use, pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  const pln_node *n = &x->g->nodes[old];
  uint32_t begin = x->n_list, rank = n->results;
  if (x->new_buffers[old] != PLN_NONE) {
    *node = x->new_buffers[old];
    return PLN_OK;
  }
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(push(x, &e, pln_stmt_image(s, pln_operand(x->g, old, i))));
  if (rank > 0)
    x->list[begin + rank] = divide(&e, x->list[begin + rank], factor_of(use));
  *node = pln_emit_prim(&e, &(pln_prim){.kind = PLN_BUFFER,
                                        .count = n->results,
                                        .data = n->data,
                                        .type = element_type(&e, use),
                                        .attrs = n->attrs,
                                        .n = n->count,
                                        .operands = x->list + begin});
  x->n_list = begin;
  x->new_buffers[old] = *node;
  return e.status;
}

static pln_status map_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  retyper *x = ud;
  const pln_node *n = &x->g->nodes[old];
  const pointer_use *use;
  switch (n->kind) {
  case PLN_BUFFER_LOAD: return map_load(x, s, old, node);
  case PLN_PRIM_CALL:
    return pln_is_call_of(n, "tvm_access_ptr") && n->count == 5
               ? map_pointer(x, s, old, node)
               : PLN_OK;
  case PLN_BUFFER:
    use = changed_use(x, pln_operand(x->g, old, 0));
    return use ? new_buffer(x, s, old, use, node) : PLN_OK;
  default: return PLN_OK;
  }
}

static pln_status map_allocate(retyper *x, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  const pln_node *n = &x->g->nodes[stmt];
  const pointer_use *use = changed_use(x, x->g->scopes[n->data].begin);
  uint32_t begin = x->n_list;
  pln_ref var;
  if (!use)
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(push(x, &e, pln_stmt_operand(s, i)));
  x->list[x->n_list - 1] = divide(&e, x->list[x->n_list - 1], factor_of(use));
  pln_prim spec = {
      .kind = PLN_ALLOCATE, .n = n->count, .operands = x->list + begin};
  pln_body body = {.n_params = 1, .params = &var, .stmt = pln_stmt_body(s, 0)};
  pln_type type = element_type(&e, use);
  x->n_list = begin;
  PLN_TRY(e.status);
  PLN_TRY(pln_dtype_attr(x->g->engine, type, &spec.attrs));
  PLN_TRY(pln_stmt_map(s, use->var, &var));
  return pln_build_floating_stmt(e.b, &spec, 1, &body, node);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  retyper *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  int64_t lane;
  if (x->g->nodes[stmt].kind == PLN_BUFFER_STORE)
    return map_access(x, s, &e, stmt, false, node, &lane);
  return x->g->nodes[stmt].kind == PLN_ALLOCATE ? map_allocate(x, s, stmt, node)
                                                : PLN_OK;
}

/* New variables for all memory that changes, of the new pointer types. */
static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  retyper *x = ud;
  pln_engine *e = x->g->engine;
  (void)k;
  (void)skip;
  for (uint32_t i = 0; x->g->nodes[stmt].kind == PLN_PRIM_FUNC && i < x->n;
       i++) {
    const pointer_use *use = &x->uses[i];
    const pln_node *old = &x->g->nodes[use->var];
    pln_symbol scope = 0;
    pln_type element, type;
    pln_ref var;
    if (!is_changed(use))
      continue;
    PLN_TRY(pln_type_prim(e, use->new_dtype, use->new_lanes, &element));
    if (pln_type_get_kind(e, old->type) == PLN_TYPE_POINTER)
      scope = pln_type_symbol(e, old->type);
    PLN_TRY(pln_type_make(e, PLN_TYPE_POINTER, scope, 1, &element, &type));
    PLN_TRY(pln_build_var(pln_stmt_builder(s), old->attrs, type, 0, &var));
    pln_stmt_bind(s, use->var, var);
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status begin(retyper *x) {
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes;
  x->of = pln_mem_zeroed(e, nodes * sizeof *x->of);
  x->viewed = pln_mem_zeroed(e, nodes * sizeof *x->viewed);
  x->new_buffers = pln_mem_new(e, nodes * sizeof *x->new_buffers);
  if (!x->of || !x->viewed || !x->new_buffers)
    return pln_nomem(e);
  memset(x->new_buffers, 0xff, nodes * sizeof *x->new_buffers);
  return pln_analyzer_new(e, &x->a);
}

static pln_status rewrite(retyper *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {
      .ud = x, .expr = map_expr, .enter_body = enter_body, .leave = leave_stmt};
  bool any = false;
  PLN_TRY(begin(x));
  PLN_TRY(declare_all(x));
  if (x->n == 0)
    return PLN_OK;
  PLN_TRY(note_all(x));
  for (uint32_t i = 0; i < x->n; i++) {
    PLN_TRY(choose(x, &x->uses[i]));
    any |= is_changed(&x->uses[i]);
  }
  return any ? pln_lower_function(run, &mutator) : PLN_OK;
}

static pln_status rewrite_types(pln_pass_run *run, bool whole) {
  retyper x = {.g = pln_run_function(run), .whole = whole};
  pln_engine *e = x.g->engine;
  size_t nodes = x.g->n_nodes;
  pln_status status = rewrite(&x, run);
  if (x.a)
    pln_analyzer_free(x.a);
  pln_mem_free(e, x.of, nodes * sizeof *x.of);
  pln_mem_free(e, x.viewed, nodes * sizeof *x.viewed);
  pln_mem_free(e, x.new_buffers, nodes * sizeof *x.new_buffers);
  pln_mem_free(e, x.uses, x.cap * sizeof *x.uses);
  pln_mem_free(e, x.list, x.cap_list * sizeof *x.list);
  return status;
}

pln_status pln_rewrite_memory_types(pln_pass_run *run) {
  return rewrite_types(run, false);
}

pln_status pln_pass_tir_pointer_value_type_rewrite(pln_pass_run *run) {
  return rewrite_types(run, true);
}
