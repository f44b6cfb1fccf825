/* lower_device_kernel_launch.c: tir.LowerDeviceKernelLaunch: calls of functions
 * for another device become launches of kernels.
 *
 * Run by the executor. A call of a function whose target is another device is a
 * packed call with the extents of its threads, and the size of its dynamic
 * shared memory, behind the arguments; the function is marked as a kernel and
 * returns nothing. A function for another target of the same device is called
 * as an external one.
 *
 *     Module.kernel(A.data)   =>   T.call_packed("kernel", A.data, 16)
 *
 * Semantics: TVM's tir.LowerDeviceKernelLaunch. */

#include "arith/arith.h"
#include "ir/attrs/attrs.h"
#include "ir/graph/module.h"
#include "lower/host/packed_call.h"

enum { MOST_PARAMS = 16, MOST_ARGS = 64 };

typedef enum launch_kind { INTERNAL, EXTERNAL, KERNEL } launch_kind;

typedef struct launcher {
  const pln_module *module;
  uint8_t *kinds; /* by function: how it is called, at most */
  const pln_graph *g;
  uint32_t at; /* the number of `g` in the module */
} launcher;

/* What a kernel is launched with: names, and expressions of its own graph. */
typedef struct launch_params {
  uint32_t n;
  pln_slice names[MOST_PARAMS];
  pln_ref values[MOST_PARAMS]; /* PLN_NONE: the size of shared memory */
  pln_ref shared;              /* the Allocate of dynamic shared memory */
} launch_params;

/* ------------------------------------------------------------------ callees
 */

static uint32_t callee_of(const pln_module *module, const pln_graph *g,
                          pln_ref call) {
  const pln_node *n = &g->nodes[call];
  if (n->kind != PLN_PRIM_CALL || n->data != 0 || n->count == 0)
    return PLN_NONE;
  const pln_node *name = &g->nodes[pln_operand(g, call, 0)];
  uint32_t at = name->kind == PLN_GLOBAL_VAR
                    ? pln_module_find(module, name->data)
                    : PLN_NONE;
  return at < pln_module_count(module) ? at : PLN_NONE;
}

static pln_status kind_of_call(const pln_graph *caller, const pln_graph *callee,
                               launch_kind *out) {
  pln_engine *e = caller->engine;
  pln_attrs from = pln_target_of(caller), to = pln_target_of(callee);
  bool same;
  *out = INTERNAL;
  if (!from || !to)
    return PLN_OK;
  PLN_TRY(pln_attrs_without(e, from, "host", &from));
  PLN_TRY(pln_attrs_without(e, to, "host", &to));
  PLN_TRY(pln_attrs_equal(e, from, to, &same));
  if (same)
    return PLN_OK;
  *out = pln_target_device_type(e, from) == pln_target_device_type(e, to)
             ? EXTERNAL
             : KERNEL;
  return PLN_OK;
}

static pln_status find_calls(launcher *x, const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    uint32_t at = callee_of(x->module, g, ref);
    launch_kind kind;
    if (at == PLN_NONE)
      continue;
    PLN_TRY(kind_of_call(g, pln_module_function_at(x->module, at), &kind));
    if (kind != INTERNAL && x->kinds[at] != INTERNAL && x->kinds[at] != kind)
      return pln_diag_error(
          g->engine, PLN_ERR_ARGUMENT, NULL,
          "tir.LowerDeviceKernelLaunch: function '%s' is called both as a "
          "kernel and as an external function",
          pln_symbol_text(g->engine, pln_module_name_at(x->module, at)).data);
    if (kind != INTERNAL)
      x->kinds[at] = (uint8_t)kind;
  }
  return PLN_OK;
}

/* --------------------------------------------------------------- parameters
 */

static bool is_named(const launch_params *p, pln_slice name) {
  for (uint32_t i = 0; i < p->n; i++)
    if (pln_slice_equal(p->names[i], name))
      return true;
  return false;
}

static bool is_dynamic_shared(const pln_graph *g, pln_ref owner) {
  if (g->nodes[owner].kind != PLN_ALLOCATE)
    return false;
  pln_type pointer = g->nodes[g->scopes[g->nodes[owner].data].begin].type;
  return pln_slice_is(
      pln_symbol_text(g->engine, pln_type_symbol(g->engine, pointer)),
      "shared.dyn");
}

static pln_status add_thread(const pln_graph *g, pln_ref owner,
                             launch_params *p) {
  pln_ref iter = pln_operand(g, owner, 0);
  pln_slice tag =
      pln_attrs_string(g->engine, g->nodes[iter].attrs, "thread_tag", "");
  if (!pln_slice_is(
          pln_attrs_string(g->engine, g->nodes[owner].attrs, "attr_key", ""),
          "thread_extent") ||
      tag.size == 0 || is_named(p, tag))
    return PLN_OK;
  if (p->n + 1 >= MOST_PARAMS)
    return pln_diag_error(g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.LowerDeviceKernelLaunch: a kernel has more than "
                          "%d thread axes",
                          MOST_PARAMS - 2);
  p->names[p->n] = tag;
  p->values[p->n++] = pln_operand(g, owner, 1);
  return PLN_OK;
}

/* Outer statements first: their scopes come first. */
static pln_status find_params(const pln_graph *g, launch_params *p) {
  *p = (launch_params){.shared = PLN_NONE};
  for (pln_scope i = 1; i < g->n_scopes; i++) {
    pln_ref owner = g->scopes[i].owner;
    if (g->nodes[owner].kind == PLN_ATTR_STMT)
      PLN_TRY(add_thread(g, owner, p));
    if (!is_dynamic_shared(g, owner))
      continue;
    if (p->shared != PLN_NONE)
      return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.LowerDeviceKernelLaunch: a kernel has several "
                            "allocations of dynamic shared memory; "
                            "tir.MergeDynamicSharedMemoryAllocations comes "
                            "first");
    p->shared = owner;
  }
  if (p->shared != PLN_NONE) {
    p->names[p->n] = pln_text("tir.use_dyn_shared_memory");
    p->values[p->n++] = PLN_NONE;
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- calls
 */

typedef struct kernel_launch {
  pln_emit e;
  pln_analyzer *a;
  const pln_graph *kernel;
  pln_term params[MOST_ARGS], args[MOST_ARGS];
  uint32_t n;
} kernel_launch;

/* An expression of the kernel, with the arguments for its parameters. */
static pln_ref in_caller(kernel_launch *l, pln_ref value) {
  pln_ref out = PLN_NONE;
  pln_term term;
  pln_emit *e = &l->e;
  if (e->status == PLN_OK)
    e->status = pln_analyzer_import(l->a, l->kernel, value, &term);
  if (e->status != PLN_OK)
    return PLN_NONE;
  term = pln_term_substitute(l->a, term, l->n, l->params, l->args);
  e->status = l->a->status;
  if (e->status == PLN_OK)
    e->status = pln_analyzer_export(l->a, e->b, term, &out);
  return out;
}

static pln_ref shared_bytes(kernel_launch *l, pln_ref allocate) {
  const pln_graph *g = l->kernel;
  pln_ref bytes = pln_emit_int(&l->e, PLN_INT32, 1);
  uint32_t lanes = 1;
  pln_dtype dtype = pln_dtype_find_vector(
      pln_attrs_string(g->engine, g->nodes[allocate].attrs, "dtype", ""),
      &lanes);
  for (uint32_t i = 1; i < g->nodes[allocate].count; i++)
    bytes = pln_emit_folded(&l->e, PLN_PRIM_MUL, bytes,
                            in_caller(l, pln_operand(g, allocate, i)));
  return pln_emit_folded(
      &l->e, PLN_PRIM_MUL, bytes,
      pln_emit_int(&l->e, PLN_INT32,
                   (int64_t)(pln_dtype_bits(dtype) + 7) / 8 * lanes));
}

/* Integer parameters stand for the arguments. */
static pln_status match_params(kernel_launch *l, uint32_t n,
                               const pln_ref *args) {
  const pln_graph *g = l->kernel;
  pln_scope body = g->nodes[g->root].data;
  for (uint32_t i = 0; i < n && i < g->scopes[body].n_params; i++) {
    pln_ref param = g->scopes[body].begin + i;
    if (pln_type_get_kind(g->engine, g->nodes[param].type) != PLN_TYPE_PRIM ||
        pln_type_dtype(g->engine, g->nodes[param].type) == PLN_DTYPE_NONE)
      continue;
    PLN_TRY(pln_analyzer_import(l->a, g, param, &l->params[l->n]));
    PLN_TRY(pln_analyzer_import_built(l->a, l->e.b, args[i], &l->args[l->n]));
    l->n++;
  }
  return PLN_OK;
}

static pln_slice symbol_of(const launcher *x, uint32_t callee) {
  const pln_graph *g = pln_module_function_at(x->module, callee);
  pln_slice name =
      pln_symbol_text(g->engine, pln_module_name_at(x->module, callee));
  return pln_attrs_string(g->engine, g->nodes[g->root].attrs, "global_symbol",
                          name.data);
}

static pln_status launch(const launcher *x, kernel_launch *l, uint32_t callee,
                         pln_type type, uint32_t n, pln_ref *args,
                         pln_ref *node) {
  launch_params params;
  PLN_TRY(find_params(l->kernel, &params));
  PLN_TRY(match_params(l, n - 1, args + 1));
  args[0] = pln_emit_string(&l->e, symbol_of(x, callee));
  for (uint32_t i = 0; i < params.n; i++)
    args[n + i] = params.values[i] == PLN_NONE ? shared_bytes(l, params.shared)
                                               : in_caller(l, params.values[i]);
  bool is_void = pln_type_get_kind(x->g->engine, type) != PLN_TYPE_PRIM;
  *node = pln_emit_call(&l->e, "tvm_call_packed",
                        is_void ? pln_emit_type(&l->e, PLN_INT32) : type,
                        n + params.n, args);
  return l->e.status;
}

static pln_status launch_kernel(const launcher *x, pln_stmt_rewrite *s,
                                uint32_t callee, pln_type type, uint32_t n,
                                pln_ref *args, pln_ref *node) {
  kernel_launch l = {.e = {.b = pln_stmt_builder(s)},
                     .kernel = pln_module_function_at(x->module, callee)};
  PLN_TRY(pln_analyzer_new(x->g->engine, &l.a));
  pln_status status = launch(x, &l, callee, type, n, args, node);
  pln_analyzer_free(l.a);
  return status;
}

static pln_status lower_call(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  const launcher *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref args[MOST_ARGS + MOST_PARAMS];
  uint32_t callee = callee_of(x->module, x->g, old);
  const pln_node *n = &x->g->nodes[old];
  launch_kind kind;
  if (callee == PLN_NONE)
    return PLN_OK;
  PLN_TRY(kind_of_call(x->g, pln_module_function_at(x->module, callee), &kind));
  if (kind == INTERNAL)
    return PLN_OK;
  if (n->count > MOST_ARGS)
    return pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.LowerDeviceKernelLaunch: a call has more than "
                          "%d arguments",
                          MOST_ARGS - 1);
  for (uint32_t i = 1; i < n->count; i++)
    args[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  if (kind == KERNEL)
    return launch_kernel(x, s, callee, n->type, n->count, args, node);
  args[0] = pln_emit_string(
      &e, pln_symbol_text(x->g->engine, pln_module_name_at(x->module, callee)));
  *node = pln_emit_call(&e, "call_extern", n->type, n->count, args);
  return e.status;
}

/* ------------------------------------------------------------------ kernels
 */

static pln_status with_value(pln_engine *e, pln_attrs *attrs, const char *name,
                             pln_attr value) {
  PLN_TRY(pln_symbol_intern(e, pln_text(name), &value.name));
  return pln_attrs_with(e, *attrs, &value, attrs);
}

static pln_status kernel_attrs(const launcher *x, uint32_t at,
                               pln_attrs *attrs) {
  pln_engine *e = x->g->engine;
  launch_params params;
  PLN_TRY(find_params(x->g, &params));
  PLN_TRY(with_value(e, attrs, "calling_conv",
                     (pln_attr){.kind = PLN_ATTR_INT, .v.i = 2}));
  PLN_TRY(
      with_value(e, attrs, "tir.kernel_launch_params",
                 (pln_attr){.kind = params.n ? PLN_ATTR_STRINGS : PLN_ATTR_INTS,
                            .count = params.n,
                            .v.strings = params.n ? params.names : NULL}));
  return with_value(
      e, attrs, "global_symbol",
      (pln_attr){.kind = PLN_ATTR_STRING, .v.s = symbol_of(x, at)});
}

static pln_status callee_attrs(const launcher *x, uint32_t at,
                               pln_attrs *attrs) {
  pln_engine *e = x->g->engine;
  if (x->kinds[at] == KERNEL)
    PLN_TRY(kernel_attrs(x, at, attrs));
  else if (!pln_attrs_find(e, *attrs, "global_symbol"))
    PLN_TRY(with_value(e, attrs, "global_symbol",
                       (pln_attr){.kind = PLN_ATTR_STRING,
                                  .v.s = pln_symbol_text(
                                      e, pln_module_name_at(x->module, at))}));
  return with_value(e, attrs, "tir.is_global_func",
                    (pln_attr){.kind = PLN_ATTR_BOOL, .v.i = 1});
}

/* A kernel returns nothing. */
static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const launcher *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  if (n->kind != PLN_PRIM_FUNC && n->kind != PLN_EVALUATE)
    return PLN_OK;
  if (x->kinds[x->at] == INTERNAL)
    return PLN_OK;
  if (n->kind == PLN_EVALUATE)
    return x->kinds[x->at] == KERNEL &&
                   pln_is_call_of(&x->g->nodes[pln_operand(x->g, stmt, 0)],
                                  "ret")
               ? pln_stmt_no_op(s, node)
               : PLN_OK;
  pln_prim spec = {.kind = PLN_PRIM_FUNC,
                   .type = x->kinds[x->at] == KERNEL ? 0 : n->type,
                   .attrs = n->attrs};
  PLN_TRY(callee_attrs(x, x->at, &spec.attrs));
  return pln_stmt_rebuild_as(s, stmt, &spec, node);
}

static pln_status rewrite(void *ud, const pln_module *module, uint32_t index,
                          const pln_graph *g, pln_graph **out) {
  launcher *x = ud;
  pln_stmt_mutator mutator = {.ud = x, .expr = lower_call, .leave = leave_stmt};
  (void)module;
  x->g = g;
  x->at = index;
  return pln_stmt_rewrite_function(g, &mutator, out);
}

pln_status pln_pass_tir_lower_device_kernel_launch(pln_pass_run *run) {
  launcher x = {.module = pln_run_module(run)};
  pln_engine *e = pln_run_engine(run);
  uint32_t n = pln_module_count(x.module);
  pln_status status = PLN_OK;
  if (n == 0)
    return PLN_OK;
  x.kinds = pln_mem_zeroed(e, n * sizeof *x.kinds);
  if (!x.kinds)
    return pln_nomem(e);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = find_calls(&x, pln_module_function_at(x.module, i));
  if (status == PLN_OK)
    status = pln_rewrite_prim_funcs(run, rewrite, &x);
  pln_mem_free(e, x.kinds, n * sizeof *x.kinds);
  return status;
}
