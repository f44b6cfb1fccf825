/* split_host_device.c: tir.SplitHostDevice: the parts of a function that run on
 * a device become functions of their own, which it calls.
 *
 * Run by the executor.
 *
 *     def main(n: T.int32):
 *         T.attr(T.target({"kind": "cuda", ...}), "target", 0)
 *         T.evaluate(n)
 *         =>
 *     def main_kernel(n: T.int32):
 *         T.func_attr({"target": T.target({"kind": "cuda", ...}), ...})
 *         T.evaluate(n)
 *     def main(n: T.int32):
 *         Module.main_kernel(n)
 *
 * What always holds: a part inside of another one belongs to that one's
 * function. Semantics: TVM's tir.SplitHostDevice. */

#include <stdio.h>

#include "ir/graph/module.h"
#include "lower/device/kernel_function.h"

typedef struct splitter {
  pln_engine *engine;
  const pln_module *module;
  pln_idmap *taken; /* names of functions */
  pln_symbol *names;
  const pln_graph **functions; /* retained */
  uint32_t n, cap_names, cap_functions;
  const pln_graph *g; /* the present function */
  uint32_t at;        /* its number */
  uint32_t next;      /* of the names of its kernels */
  bool *outermost;    /* by node */
  pln_idmap *node_of; /* variable -> 1 + a node of it */
} splitter;

/* ---------------------------------------------------------------------- names
 */

static pln_status add_function(splitter *x, pln_symbol name,
                               const pln_graph *function) {
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->names, &x->cap_names,
                       (size_t)x->n + 1, sizeof *x->names));
  PLN_TRY(pln_mem_grow(x->engine, (void **)&x->functions, &x->cap_functions,
                       (size_t)x->n + 1, sizeof *x->functions));
  x->names[x->n] = name;
  x->functions[x->n++] = pln_graph_retain(function);
  return PLN_OK;
}

/* main_kernel, or main_kernel_1 and so on where there is one. */
static pln_status kernel_name(splitter *x, pln_symbol *out) {
  char text[256];
  pln_slice own =
      pln_symbol_text(x->engine, pln_module_name_at(x->module, x->at));
  pln_slice name = pln_attrs_string(x->engine, x->g->nodes[x->g->root].attrs,
                                    "global_symbol", own.data);
  int size = name.size < 200 ? (int)name.size : 200;
  do {
    if (x->next == 0)
      (void)snprintf(text, sizeof text, "%.*s_kernel", size, name.data);
    else
      (void)snprintf(text, sizeof text, "%.*s_kernel_%u", size, name.data,
                     x->next);
    x->next++;
    PLN_TRY(pln_symbol_intern(x->engine, pln_text(text), out));
  } while (pln_idmap_get(x->taken, *out));
  return pln_idmap_set(x->taken, *out, 1);
}

/* ---------------------------------------------------------------------- calls
 */

static pln_status build_call(splitter *x, pln_stmt_rewrite *s, pln_symbol name,
                             const pln_kernel *kernel, pln_ref *operands,
                             pln_ref *out) {
  pln_builder *b = pln_stmt_builder(s);
  pln_emit e = {.b = b};
  pln_prim spec = {
      .kind = PLN_PRIM_CALL, .n = kernel->n_params + 1, .operands = operands};
  PLN_TRY(pln_type_make(x->engine, PLN_TYPE_TUPLE, 0, 0, NULL, &spec.type));
  if (kernel->returns)
    spec.type = pln_emit_type(&e, PLN_INT32);
  PLN_TRY(e.status);
  PLN_TRY(pln_build_global_var(b, name, 0, &operands[0]));
  for (uint32_t i = 0; i < kernel->n_params; i++)
    PLN_TRY(pln_stmt_map(s, pln_idmap_get(x->node_of, kernel->params[i]) - 1,
                         &operands[i + 1]));
  return pln_build_prim(b, &spec, out);
}

static pln_status call_kernel(splitter *x, pln_stmt_rewrite *s, pln_symbol name,
                              const pln_kernel *kernel, pln_ref *node) {
  size_t size = ((size_t)kernel->n_params + 1) * sizeof(pln_ref);
  pln_ref *operands = pln_mem_new(x->engine, size);
  if (!operands)
    return pln_nomem(x->engine);
  pln_status status = build_call(x, s, name, kernel, operands, node);
  pln_mem_free(x->engine, operands, size);
  return status;
}

/* kernel_error_code = call; assert kernel_error_code == 0 */
static pln_ref checked(pln_emit *e, pln_ref call) {
  pln_ref code =
      pln_emit_var(e, "kernel_error_code", pln_emit_type(e, PLN_INT32));
  pln_ref zero = pln_emit_int(e, PLN_INT32, 0);
  pln_ref fine = pln_emit_binary(e, PLN_PRIM_EQ, code, zero);
  pln_ref message =
      pln_emit_string(e, pln_text("Error executing compute kernel"));
  return pln_emit_let(
      e, code, call,
      pln_emit_assert(e, fine, message, pln_emit_evaluate(e, zero)));
}

static pln_status replace(splitter *x, pln_stmt_rewrite *s,
                          const pln_kernel *kernel, pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_symbol name;
  pln_ref call;
  PLN_TRY(kernel_name(x, &name));
  PLN_TRY(add_function(x, name, kernel->function));
  PLN_TRY(call_kernel(x, s, name, kernel, &call));
  *node = kernel->returns ? checked(&e, call) : pln_emit_evaluate(&e, call);
  return e.status;
}

static pln_status enter(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                        pln_ref *node) {
  splitter *x = ud;
  pln_kernel kernel;
  if (!x->outermost[stmt])
    return PLN_OK;
  PLN_TRY(pln_kernel_make(x->g, stmt, &kernel));
  pln_status status = replace(x, s, &kernel, node);
  pln_kernel_end(x->engine, &kernel);
  return status;
}

/* ------------------------------------------------------------------ functions
 */

static bool is_region(const pln_graph *g, pln_ref stmt) {
  return pln_region_target(g, stmt) != 0;
}

static bool has_regions(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (is_region(g, ref))
      return true;
  return false;
}

static pln_status split_marked(splitter *x, pln_graph **out) {
  pln_stmt_mutator mutator = {.ud = x, .enter = enter};
  PLN_TRY(pln_outermost_marks(x->g, is_region, x->outermost));
  for (pln_ref ref = x->g->n_nodes; ref-- > 0;)
    if (x->g->nodes[ref].kind == PLN_VAR)
      PLN_TRY(pln_idmap_set(x->node_of, x->g->nodes[ref].data, ref + 1));
  return pln_stmt_rewrite_function(x->g, &mutator, out);
}

static pln_status split(splitter *x, pln_graph **out) {
  size_t size = x->g->n_nodes * sizeof(bool);
  PLN_TRY(pln_idmap_new(x->engine, &x->node_of));
  x->outermost = pln_mem_zeroed(x->engine, size);
  pln_status status =
      x->outermost ? split_marked(x, out) : pln_nomem(x->engine);
  pln_mem_free(x->engine, x->outermost, size);
  pln_idmap_free(x->node_of);
  return status;
}

static pln_status split_function(splitter *x, uint32_t at) {
  pln_graph *out;
  x->g = pln_module_function_at(x->module, at);
  x->at = at;
  x->next = 0;
  if (x->g->nodes[x->g->root].kind != PLN_PRIM_FUNC || !has_regions(x->g))
    return PLN_OK;
  PLN_TRY(split(x, &out));
  pln_status status = add_function(x, pln_module_name_at(x->module, at), out);
  pln_graph_release(out);
  return status;
}

static pln_status split_all(splitter *x, pln_pass_run *run) {
  uint32_t n = pln_module_count(x->module);
  pln_module *out;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_idmap_set(x->taken, pln_module_name_at(x->module, i), 1));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(split_function(x, i));
  if (x->n == 0)
    return PLN_OK;
  PLN_TRY(
      pln_module_with_functions(x->module, x->n, x->names, x->functions, &out));
  pln_run_set_module(run, out);
  return PLN_OK;
}

pln_status pln_pass_tir_split_host_device(pln_pass_run *run) {
  splitter x = {.engine = pln_run_engine(run), .module = pln_run_module(run)};
  PLN_TRY(pln_idmap_new(x.engine, &x.taken));
  pln_status status = split_all(&x, run);
  for (uint32_t i = 0; i < x.n; i++)
    pln_graph_release((pln_graph *)(uintptr_t)x.functions[i]);
  pln_idmap_free(x.taken);
  pln_mem_free(x.engine, x.names, x.cap_names * sizeof *x.names);
  pln_mem_free(x.engine, x.functions, x.cap_functions * sizeof *x.functions);
  return status;
}
