/* lower_tvm_builtin.c: tir.LowerTVMBuiltin: memory and devices by calls of
 * TVM's runtime.
 *
 * Run by the executor. The attributes device_type and device_id go: they say
 * where memory is allocated. An allocation on the processor of a constant size
 * below 1,024 bytes stays on the stack; every other one becomes a workspace of
 * the runtime, which is checked and freed. Calls of packed functions are
 * written out by packed_stack.c.
 *
 *     B = T.allocate([1024], "float32", "global"); ...
 *         =>   B = T.TVMBackendAllocWorkspace(1, dev_id, T.uint64(4096), 2, 32)
 *              if T.isnullptr(B): T.tvm_throw_last_error()
 *              ...
 *              if T.TVMBackendFreeWorkspace(1, dev_id, B) != 0: ...
 *
 * Semantics: TVM's tir.LowerTVMBuiltin. */

#include "lower/host/packed_stack.h"

enum { MOST_ON_STACK = 1024, ALIGNMENT = 64, PROCESSOR = 1 };

/* ------------------------------------------------------------------ devices
 */

typedef enum device_key { NO_DEVICE, DEVICE_ID, DEVICE_TYPE } device_key;

static device_key key_of(const pln_graph *g, pln_ref stmt) {
  if (g->nodes[stmt].kind != PLN_ATTR_STMT)
    return NO_DEVICE;
  pln_slice key =
      pln_attrs_string(g->engine, g->nodes[stmt].attrs, "attr_key", "");
  return pln_slice_is(key, "device_id")     ? DEVICE_ID
         : pln_slice_is(key, "device_type") ? DEVICE_TYPE
                                            : NO_DEVICE;
}

static pln_ref *device_of(pln_builtin_lowering *x, device_key key) {
  return key == DEVICE_ID ? &x->device_id : &x->device_type;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  pln_builtin_lowering *x = ud;
  device_key key = key_of(x->g, stmt);
  (void)k;
  (void)skip;
  if (key == NO_DEVICE)
    return pln_packed_stack_enter(x, s, stmt);
  x->saved[stmt] = *device_of(x, key);
  *device_of(x, key) = pln_stmt_operand(s, 1);
  return PLN_OK;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  pln_builtin_lowering *x = ud;
  device_key key = key_of(x->g, stmt);
  (void)k;
  (void)again;
  if (key == NO_DEVICE)
    return pln_packed_stack_leave(x, s, stmt, body);
  *device_of(x, key) = x->saved[stmt];
  return PLN_OK;
}

/* ------------------------------------------------------------------- memory */

typedef struct allocation {
  pln_dtype dtype;
  uint32_t lanes;
  int64_t bytes;    /* of an element */
  int64_t elements; /* 0: not constant */
  bool is_global;
} allocation;

static int64_t constant_elements(const pln_graph *g, pln_ref stmt) {
  int64_t product = 1;
  for (uint32_t i = 1; i < g->nodes[stmt].count; i++) {
    pln_ref extent = pln_operand(g, stmt, i);
    if (g->nodes[extent].kind != PLN_INT_IMM ||
        __builtin_mul_overflow(product, pln_node_int(g, extent), &product))
      return 0;
  }
  return product;
}

static allocation allocation_of(const pln_graph *g, pln_ref stmt) {
  allocation a = {.lanes = 1, .elements = constant_elements(g, stmt)};
  pln_slice text =
      pln_attrs_string(g->engine, g->nodes[stmt].attrs, "dtype", "");
  pln_ref var = g->scopes[g->nodes[stmt].data].begin;
  a.dtype = pln_dtype_find_vector(text, &a.lanes);
  uint32_t bits = a.dtype == PLN_DTYPE_NONE ? 64 : pln_dtype_bits(a.dtype);
  a.bytes = ((int64_t)bits * a.lanes + 7) / 8;
  pln_slice scope = pln_symbol_text(
      g->engine, pln_type_symbol(g->engine, g->nodes[var].type));
  a.is_global = scope.size == 0 || pln_slice_is(scope, "global");
  return a;
}

static bool stays_on_stack(const pln_builtin_lowering *x, pln_stmt_rewrite *s,
                           const allocation *a) {
  int64_t bytes;
  return x->device_type != PLN_NONE && a->is_global && a->elements > 0 &&
         pln_is_int(pln_stmt_builder(s)->graph, x->device_type, PROCESSOR) &&
         !__builtin_mul_overflow(a->elements, a->bytes, &bytes) &&
         bytes < MOST_ON_STACK;
}

static pln_ref total_bytes(pln_emit *e, pln_stmt_rewrite *s,
                           const allocation *a, uint32_t n) {
  pln_type type = pln_stmt_node(s, pln_stmt_operand(s, 1))->type;
  pln_ref total = pln_emit_int_of(e, type, a->bytes);
  for (uint32_t i = 1; i < n; i++)
    total = pln_emit_folded(e, PLN_PRIM_MUL, total, pln_stmt_operand(s, i));
  pln_type wide = pln_emit_type(e, PLN_UINT64);
  if (e->status == PLN_OK && e->b->graph->nodes[total].kind == PLN_INT_IMM)
    return pln_emit_int_of(e, wide, pln_node_int(e->b->graph, total));
  return pln_emit_cast(e, wide, total);
}

static int64_t dtype_code(pln_dtype dtype) {
  if (dtype == PLN_DTYPE_NONE)
    return 3;
  if (dtype == PLN_BFLOAT16)
    return 4;
  if (pln_is_float_dtype(dtype))
    return 2;
  return pln_is_signed(dtype) ? 0 : 1;
}

static pln_ref call_alloc(pln_builtin_lowering *x, pln_emit *e,
                          pln_stmt_rewrite *s, const allocation *a,
                          uint32_t n) {
  int64_t bits = a->dtype == PLN_BOOL         ? 1
                 : a->dtype == PLN_DTYPE_NONE ? 64
                                              : pln_dtype_bits(a->dtype);
  pln_ref args[5] = {x->device_type, x->device_id, total_bytes(e, s, a, n),
                     pln_emit_int(e, PLN_INT32, dtype_code(a->dtype)),
                     pln_emit_int(e, PLN_INT32, bits)};
  return pln_emit_call(e, "TVMBackendAllocWorkspace",
                       pln_emit_type(e, PLN_DTYPE_NONE), 5, args);
}

static pln_ref throw_if(pln_emit *e, pln_ref condition) {
  pln_ref call = pln_emit_call(e, "tvm_throw_last_error",
                               pln_emit_type(e, PLN_INT32), 0, NULL);
  return pln_emit_if(e, condition, pln_emit_evaluate(e, call), PLN_NONE);
}

/* The body between the check of the workspace and its end. */
static pln_ref checked_body(pln_builtin_lowering *x, pln_emit *e, pln_ref var,
                            pln_ref body) {
  pln_ref missing =
      pln_emit_call(e, "isnullptr", pln_emit_type(e, PLN_BOOL), 1, &var);
  pln_ref args[3] = {x->device_type, x->device_id, var};
  pln_ref released = pln_emit_call(e, "TVMBackendFreeWorkspace",
                                   pln_emit_type(e, PLN_INT32), 3, args);
  pln_ref failed =
      pln_emit_binary(e, PLN_PRIM_NE, released, pln_emit_int(e, PLN_INT32, 0));
  pln_ref stmts[3] = {throw_if(e, missing), body, throw_if(e, failed)};
  return pln_emit_seq(e, 3, stmts);
}

static pln_status leave_allocate(pln_builtin_lowering *x, pln_stmt_rewrite *s,
                                 pln_ref stmt, pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  allocation a = allocation_of(x->g, stmt);
  pln_ref var;
  if (stays_on_stack(x, s, &a))
    return PLN_OK;
  if (x->device_type == PLN_NONE || x->device_id == PLN_NONE)
    return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.LowerTVMBuiltin: memory is allocated where no "
                          "attribute device_type and device_id say on which "
                          "device");
  PLN_TRY(pln_stmt_map(s, pln_stmt_param(s, stmt, 0, 0), &var));
  pln_ref body = checked_body(x, &e, var, pln_stmt_body(s, 0));
  body = pln_emit_attr(&e, var, "storage_alignment",
                       pln_emit_int(&e, PLN_INT32, ALIGNMENT), body);
  *node = pln_emit_let(&e, var,
                       call_alloc(x, &e, s, &a, x->g->nodes[stmt].count), body);
  return e.status;
}

/* ---------------------------------------------------------------- the walk */

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  pln_builtin_lowering *x = ud;
  if (x->g->nodes[stmt].kind == PLN_ALLOCATE)
    PLN_TRY(leave_allocate(x, s, stmt, node));
  if (key_of(x->g, stmt) != NO_DEVICE)
    *node = pln_stmt_body(s, 0);
  return pln_packed_stack_leave_stmt(x, s, stmt, node);
}

static pln_status lower_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  pln_builtin_lowering *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (!pln_is_call_of(&x->g->nodes[old], "tvm_context_id"))
    return pln_packed_stack_lower(x, s, old, node);
  pln_ref zero = pln_emit_int(&e, PLN_UINT64, 0);
  *node = pln_emit_call(&e, "reinterpret", x->g->nodes[old].type, 1, &zero);
  return e.status;
}

pln_status pln_pass_tir_lower_tvm_builtin(pln_pass_run *run) {
  pln_builtin_lowering x = {.g = pln_run_function(run),
                            .device_id = PLN_NONE,
                            .device_type = PLN_NONE};
  pln_engine *e = x.g->engine;
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = lower_expr,
                              .enter = pln_packed_stack_enter_stmt,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  x.saved = pln_mem_new(e, x.g->n_nodes * sizeof *x.saved);
  if (!x.saved)
    return pln_nomem(e);
  pln_status status = pln_packed_stack_begin(&x);
  if (status == PLN_OK)
    status = pln_lower_function(run, &mutator);
  pln_packed_stack_end(&x);
  pln_mem_free(e, x.saved, x.g->n_nodes * sizeof *x.saved);
  return status;
}
