/* extract_prim_func_constants.c: tir.ExtractPrimFuncConstants: the tensors that
 * functions allocate are listed in the module's attribute `constants`, equal
 * ones once.
 *
 * Run by the executor.
 *
 *     K = T.allocate_const([1, 2], "int32", [2])
 *         =>   I.module_attrs({"constants": [the tensor]})
 *
 * Semantics: TVM's tir.ExtractPrimFuncConstants. */

#include "ir/graph/module.h"
#include "lower/lower.h"

typedef struct constant_list {
  pln_engine *engine;
  pln_symbol key;
  pln_idmap *seen; /* the interned dictionary of a tensor -> 1 */
  pln_tensor **tensors;
  uint32_t n, cap;
} constant_list;

static pln_status add_tensor(constant_list *l, pln_tensor *tensor) {
  pln_attrs one;
  PLN_TRY(pln_attrs_make(
      l->engine, 1,
      &(pln_attr){.name = l->key, .kind = PLN_ATTR_TENSOR, .v.tensor = tensor},
      &one));
  if (pln_idmap_get(l->seen, one))
    return PLN_OK;
  PLN_TRY(pln_idmap_set(l->seen, one, 1));
  PLN_TRY(pln_mem_grow(l->engine, (void **)&l->tensors, &l->cap,
                       (size_t)l->n + 1, sizeof(pln_tensor *)));
  l->tensors[l->n++] = tensor;
  return PLN_OK;
}

/* What the module lists already stays in front. */
static pln_status add_listed(constant_list *l, const pln_module *module) {
  const pln_attr *listed =
      pln_attrs_find(l->engine, pln_module_attrs(module), "constants");
  if (!listed || listed->kind != PLN_ATTR_TENSORS)
    return PLN_OK;
  for (uint32_t i = 0; i < listed->count; i++)
    PLN_TRY(add_tensor(l, listed->v.tensors[i]));
  return PLN_OK;
}

static pln_status add_allocated(constant_list *l, const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_attr *data;
    if (g->nodes[ref].kind != PLN_ALLOCATE_CONST)
      continue;
    data = pln_attrs_find(l->engine, g->nodes[ref].attrs, "data");
    if (data && data->kind == PLN_ATTR_TENSOR)
      PLN_TRY(add_tensor(l, data->v.tensor));
  }
  return PLN_OK;
}

static pln_status list_constants(constant_list *l, pln_pass_run *run) {
  const pln_module *module = pln_run_module(run);
  pln_attrs attrs = pln_module_attrs(module);
  pln_symbol name;
  pln_module *out;
  PLN_TRY(add_listed(l, module));
  for (uint32_t i = 0; i < pln_module_count(module); i++)
    PLN_TRY(add_allocated(l, pln_module_function_at(module, i)));
  if (l->n == 0)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(l->engine, pln_text("constants"), &name));
  PLN_TRY(pln_attrs_with(l->engine, attrs,
                         &(pln_attr){.name = name,
                                     .kind = PLN_ATTR_TENSORS,
                                     .count = l->n,
                                     .v.tensors = l->tensors},
                         &attrs));
  PLN_TRY(pln_module_with_attrs(module, attrs, &out));
  pln_run_set_module(run, out);
  return PLN_OK;
}

pln_status pln_pass_tir_extract_prim_func_constants(pln_pass_run *run) {
  constant_list l = {.engine = pln_run_engine(run)};
  PLN_TRY(pln_symbol_intern(l.engine, pln_text("data"), &l.key));
  PLN_TRY(pln_idmap_new(l.engine, &l.seen));
  pln_status status = list_constants(&l, run);
  pln_idmap_free(l.seen);
  pln_mem_free(l.engine, l.tensors, l.cap * sizeof(pln_tensor *));
  return status;
}
