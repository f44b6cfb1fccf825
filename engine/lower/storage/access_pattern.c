/* access_pattern.c: lists the statements of a PrimFunc in the order of
 * execution, with the allocations that they touch (storage_plan.h). An
 * allocation is touched by the statement of its own level that contains the
 * access: TVM's LinearAccessPatternFinder.
 *
 * Called by storage_plan.c. The order is that of the graph's array; a scope's
 * owner begins where its first scope does. */

#include "lower/storage/storage_plan.h"

/* An open statement: its accesses so far. */
typedef struct open_scope {
  uint32_t begin; /* its entry */
  uint32_t first, last;
} open_scope;

typedef struct finder {
  pln_storage_plan *plan;
  pln_access_pattern *out;
  const pln_graph *g;
  open_scope *open;
  uint32_t n, cap;
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
  bool in_thread;
} finder;

static pln_status push_scope(finder *f, uint32_t begin) {
  PLN_TRY(pln_mem_grow(f->plan->engine, (void **)&f->open, &f->cap,
                       (size_t)f->n + 1, sizeof *f->open));
  f->open[f->n++] = (open_scope){.begin = begin};
  return PLN_OK;
}

static pln_status add_entry(finder *f, pln_access_entry entry) {
  PLN_TRY(pln_mem_grow(f->plan->engine, (void **)&f->out->entries, &f->out->cap,
                       (size_t)f->out->n + 1, sizeof *f->out->entries));
  f->out->entries[f->out->n++] = entry;
  return PLN_OK;
}

/* --------------------------------------------------------------- expressions
 */

static pln_status touch(finder *f, pln_ref var) {
  pln_access_pattern *out = f->out;
  uint32_t row = f->plan->allocation_of[var];
  if (!row)
    return PLN_OK;
  open_scope *scope = &f->open[f->plan->allocations[row - 1].level];
  PLN_TRY(pln_mem_grow(f->plan->engine, (void **)&out->accesses,
                       &out->cap_accesses, (size_t)out->n_accesses + 1,
                       sizeof *out->accesses));
  out->accesses[out->n_accesses++] = (pln_access){.allocation = row - 1};
  if (scope->last)
    out->accesses[scope->last - 1].next = out->n_accesses;
  else
    scope->first = out->n_accesses;
  scope->last = out->n_accesses;
  return PLN_OK;
}

/* The operands are visited in order, but the Buffer of an access is the last.
 */
static pln_status push_operands(finder *f, const pln_node *n, uint32_t count) {
  bool access = n->kind == PLN_BUFFER_STORE || n->kind == PLN_BUFFER_LOAD;
  PLN_TRY(pln_mem_grow(f->plan->engine, (void **)&f->stack, &f->cap_stack,
                       (size_t)f->n_stack + count, sizeof *f->stack));
  if (access)
    f->stack[f->n_stack++] = pln_operands(f->g, n)[0];
  for (uint32_t i = count; i-- > access;)
    f->stack[f->n_stack++] = pln_operands(f->g, n)[i];
  return PLN_OK;
}

/* The variables of the statement's operands; of a Buffer its data. */
static pln_status touch_operands(finder *f, pln_ref stmt) {
  PLN_TRY(push_operands(f, &f->g->nodes[stmt], f->g->nodes[stmt].count));
  while (f->n_stack > 0) {
    pln_ref ref = f->stack[--f->n_stack];
    const pln_node *n = &f->g->nodes[ref];
    if (n->kind == PLN_VAR)
      PLN_TRY(touch(f, ref));
    PLN_TRY(push_operands(f, n, n->kind == PLN_BUFFER ? 1 : n->count));
  }
  return PLN_OK;
}

/* --------------------------------------------------------------- statements */

static bool opens_scope(const finder *f, pln_ref stmt) {
  const pln_node *n = &f->g->nodes[stmt];
  pln_slice key;
  switch (n->kind) {
  case PLN_FOR:
  case PLN_WHILE:
  case PLN_IF_THEN_ELSE:
  case PLN_ASSERT_STMT: return true;
  case PLN_ATTR_STMT:
    key = pln_attrs_string(f->g->engine, n->attrs, "attr_key", "");
    return (pln_slice_is(key, "thread_extent") && !f->in_thread) ||
           pln_slice_is(key, "extern_scope") ||
           pln_slice_is(key, "virtual_thread");
  default: return false;
  }
}

static bool is_thread(const finder *f, pln_ref stmt) {
  return f->g->nodes[stmt].kind == PLN_ATTR_STMT &&
         pln_slice_is(pln_attrs_string(f->g->engine, f->g->nodes[stmt].attrs,
                                       "attr_key", ""),
                      "thread_extent");
}

static uint64_t constant_bits(const finder *f, pln_ref stmt, uint64_t element) {
  int64_t bits = (int64_t)element;
  for (uint32_t i = 1; i < f->g->nodes[stmt].count; i++) {
    pln_ref extent = pln_operand(f->g, stmt, i);
    if (f->g->nodes[extent].kind != PLN_INT_IMM ||
        pln_node_int(f->g, extent) < 0 ||
        !pln_mul_fits(bits, pln_node_int(f->g, extent), &bits))
      return 0;
  }
  return (uint64_t)bits;
}

static pln_status enter_allocation(finder *f, pln_ref stmt) {
  pln_storage_plan *plan = f->plan;
  pln_ref var = f->g->scopes[f->g->nodes[stmt].data].begin;
  pln_storage_allocation row = {.stmt = stmt, .level = f->n};
  pln_slice dtype =
      pln_attrs_string(plan->engine, f->g->nodes[stmt].attrs, "dtype", "");
  row.dtype = pln_dtype_find_vector(dtype, &row.lanes);
  row.scope = pln_type_symbol(plan->engine, f->g->nodes[var].type);
  row.bits =
      constant_bits(f, stmt, (uint64_t)pln_dtype_bits(row.dtype) * row.lanes);
  PLN_TRY(pln_mem_grow(plan->engine, (void **)&plan->allocations,
                       &plan->cap_allocations, (size_t)plan->n_allocations + 1,
                       sizeof *plan->allocations));
  plan->allocations[plan->n_allocations++] = row;
  plan->allocation_of[var] = plan->n_allocations;
  return PLN_OK;
}

/* A statement whose operands alone are of interest. */
static pln_status visit_simple(finder *f, pln_ref stmt) {
  PLN_TRY(push_scope(f, UINT32_MAX));
  PLN_TRY(touch_operands(f, stmt));
  open_scope scope = f->open[--f->n];
  return scope.first ? add_entry(f, (pln_access_entry){.stmt = stmt,
                                                       .first = scope.first})
                     : PLN_OK;
}

static pln_status enter_owner(finder *f, pln_ref stmt) {
  if (f->g->nodes[stmt].kind == PLN_ALLOCATE)
    return enter_allocation(f, stmt);
  if (f->g->nodes[stmt].kind == PLN_LET_STMT)
    return visit_simple(f, stmt); /* its value is computed before its body */
  if (!opens_scope(f, stmt))
    return PLN_OK;
  f->in_thread |= is_thread(f, stmt);
  PLN_TRY(push_scope(f, f->out->n));
  PLN_TRY(add_entry(f, (pln_access_entry){.stmt = stmt}));
  return touch_operands(f, stmt);
}

static pln_status leave_owner(finder *f, pln_ref stmt) {
  if (f->n == 0 || f->out->entries[f->open[f->n - 1].begin].stmt != stmt)
    return PLN_OK;
  open_scope scope = f->open[--f->n];
  int32_t pair = (int32_t)(f->out->n - scope.begin);
  f->out->entries[scope.begin].pair = pair;
  if (is_thread(f, stmt))
    f->in_thread = false;
  return add_entry(
      f, (pln_access_entry){.stmt = stmt, .pair = -pair, .first = scope.first});
}

static pln_status visit_node(finder *f, pln_ref ref) {
  const pln_node *n = &f->g->nodes[ref];
  if (pln_owns(n))
    return leave_owner(f, ref);
  return n->kind == PLN_BUFFER_STORE || n->kind == PLN_EVALUATE
             ? visit_simple(f, ref)
             : PLN_OK;
}

static pln_status visit_graph(finder *f) {
  const pln_graph *g = f->g;
  pln_scope next = 1;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    for (; next < g->n_scopes && g->scopes[next].begin == ref; next++)
      if (g->nodes[g->scopes[next].owner].data == next)
        PLN_TRY(enter_owner(f, g->scopes[next].owner));
    PLN_TRY(visit_node(f, ref));
  }
  return PLN_OK;
}

pln_status pln_access_pattern_find(pln_access_pattern *pattern,
                                   pln_storage_plan *plan) {
  finder f = {.plan = plan, .out = pattern, .g = plan->graph};
  pln_status status = visit_graph(&f);
  pln_mem_free(plan->engine, f.open, f.cap * sizeof *f.open);
  pln_mem_free(plan->engine, f.stack, f.cap_stack * sizeof *f.stack);
  return status;
}

void pln_access_pattern_free(pln_engine *engine, pln_access_pattern *pattern) {
  pln_mem_free(engine, pattern->entries,
               pattern->cap * sizeof *pattern->entries);
  pln_mem_free(engine, pattern->accesses,
               pattern->cap_accesses * sizeof *pattern->accesses);
}
