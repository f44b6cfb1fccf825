/* module.c: the ordered map from global names to functions.
 *
 * Modules are immutable once a loader has returned them; copies share all
 * functions. Invariants: rows are in order of insertion; the root of each
 * function's graph is a Function; the base of an overlay has its own rows. */

#include "ir/graph/module.h"
#include "ir/graph/describe.h"

pln_status pln_module_new(pln_engine *engine, pln_module **out) {
  pln_module *m = pln_mem_zeroed(engine, sizeof *m);
  if (!m)
    return pln_nomem(engine);
  m->engine = engine;
  m->refs = 1;
  pln_status status = pln_idmap_new(engine, &m->by_name);
  if (status != PLN_OK) {
    pln_module_release(m);
    return status;
  }
  *out = m;
  return PLN_OK;
}

pln_module *pln_module_retain(const pln_module *module) {
  pln_module *shared = (pln_module *)(uintptr_t)module;
  shared->refs++;
  return shared;
}

void pln_module_release(pln_module *m) {
  if (!m || --m->refs > 0)
    return;
  pln_engine *e = m->engine;
  for (uint32_t i = 0; m->own && i < m->count; i++)
    pln_graph_release(m->own[i].function);
  pln_mem_free(e, m->own, m->capacity * sizeof *m->own);
  if (m->base)
    pln_module_release(m->base);
  else
    pln_idmap_free(m->by_name);
  if (m->function)
    pln_graph_release(m->function);
  pln_definitions_release(m->types);
  if (m->source)
    pln_file_release(m->source);
  pln_mem_free(e, m, sizeof *m);
}

pln_engine *pln_module_engine(const pln_module *module) {
  return module->engine;
}

uint32_t pln_module_count(const pln_module *module) {
  return module->count;
}

pln_symbol pln_module_name_at(const pln_module *module, uint32_t index) {
  return module->base ? module->base->own[index].name : module->own[index].name;
}

pln_graph *pln_module_function_at(const pln_module *module, uint32_t index) {
  if (!module->base)
    return module->own[index].function;
  return index == module->index ? module->function
                                : module->base->own[index].function;
}

uint32_t pln_module_find(const pln_module *module, pln_symbol name) {
  uint32_t found = pln_idmap_get(module->by_name, name);
  return found ? found - 1 : PLN_NONE;
}

pln_attrs pln_module_attrs(const pln_module *module) {
  return module->attrs;
}

bool pln_module_was_onnx(const pln_module *module) {
  return module->source ||
         pln_attrs_find(module->engine, module->attrs, "opset_import");
}

int64_t pln_module_opset(const pln_module *module) {
  pln_engine *e = module->engine;
  const pln_attr *imports = pln_attrs_find(e, module->attrs, "opset_import");
  if (!imports || imports->kind != PLN_ATTR_DICT)
    return 0;
  return pln_attrs_int(e, imports->v.dict, "ai.onnx", 0);
}

void pln_module_set_source(pln_module *module, pln_file *source,
                           pln_symbol directory) {
  if (module->source)
    pln_file_release(module->source);
  module->source = source ? pln_file_retain(source) : NULL;
  module->directory = directory;
}

/* ------------------------------------------------------------------ changes */

static pln_status check_function(const pln_module *m, pln_symbol name,
                                 const pln_graph *f) {
  uint8_t kind = f->nodes[f->root].kind;
  if (f->engine == m->engine && f->sealed &&
      (kind == PLN_FUNCTION || kind == PLN_PRIM_FUNC))
    return PLN_OK;
  return pln_diag_error(m->engine, PLN_ERR_ARGUMENT, NULL,
                        "'%s' must be a sealed function of this engine",
                        pln_symbol_text(m->engine, name).data);
}

static uint32_t is_prim_func(const pln_graph *f) {
  return f->nodes[f->root].kind == PLN_PRIM_FUNC;
}

/* Keeps the totals when `new` replaces `old`; NULL: there is none. */
static void count_function(pln_module *m, const pln_graph *old,
                           const pln_graph *new) {
  if (old) {
    m->n_prim_funcs -= is_prim_func(old);
    m->n_nodes -= old->n_nodes;
  }
  m->n_prim_funcs += is_prim_func(new);
  m->n_nodes += new->n_nodes;
}

void pln_module_put(pln_module *m, uint32_t index, pln_graph *function) {
  pln_graph *old = m->own[index].function;
  count_function(m, old, function);
  m->own[index].function = function;
  pln_graph_release(old);
}

pln_status pln_module_set(pln_module *m, pln_symbol name,
                          const pln_graph *function) {
  PLN_TRY(check_function(m, name, function));
  uint32_t i = pln_module_find(m, name);
  if (i != PLN_NONE) {
    pln_module_put(m, i, pln_graph_retain(function));
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->own, &m->capacity,
                       (size_t)m->count + 1, sizeof *m->own));
  PLN_TRY(pln_idmap_set(m->by_name, name, m->count + 1));
  m->own[m->count++] =
      (pln_module_row){.name = name, .function = pln_graph_retain(function)};
  count_function(m, NULL, function);
  return PLN_OK;
}

static void share_tables(const pln_module *from, pln_module *to) {
  to->attrs = from->attrs;
  to->types = pln_definitions_retain(from->types);
  to->tir_vars = from->tir_vars;
  pln_module_set_source(to, from->source, from->directory);
}

pln_status pln_module_overlay(const pln_module *module, uint32_t index,
                              const pln_graph *function, pln_module **out) {
  const pln_module *base = module->base ? module->base : module;
  if (module->base && module->index != index)
    return pln_module_with(module, pln_module_name_at(module, index), function,
                           out);
  pln_module *m = pln_mem_zeroed(module->engine, sizeof *m);
  if (!m)
    return pln_nomem(module->engine);
  *m = (pln_module){.engine = module->engine,
                    .refs = 1,
                    .count = module->count,
                    .n_prim_funcs = module->n_prim_funcs,
                    .n_nodes = module->n_nodes,
                    .by_name = module->by_name,
                    .base = pln_module_retain(base),
                    .index = index,
                    .function = pln_graph_retain(function)};
  count_function(m, pln_module_function_at(module, index), function);
  share_tables(module, m);
  *out = m;
  return PLN_OK;
}

/* Copies all rows except those marked in `dropped` (NULL: none). */
static pln_status copy_rows(const pln_module *from, const bool *dropped,
                            pln_module *to) {
  share_tables(from, to);
  for (uint32_t i = 0; i < from->count; i++)
    if (!(dropped && dropped[i]))
      PLN_TRY(pln_module_set(to, pln_module_name_at(from, i),
                             pln_module_function_at(from, i)));
  return PLN_OK;
}

pln_status pln_module_drop(const pln_module *module, const bool *dropped,
                           pln_module **out) {
  pln_module *copy;
  PLN_TRY(pln_module_new(module->engine, &copy));
  pln_status status = copy_rows(module, dropped, copy);
  if (status != PLN_OK) {
    pln_module_release(copy);
    return status;
  }
  *out = copy;
  return PLN_OK;
}

pln_status pln_module_copy(const pln_module *module, pln_module **out) {
  return pln_module_drop(module, NULL, out);
}

pln_status pln_module_without_functions(const pln_module *module, uint32_t n,
                                        const pln_symbol *names,
                                        pln_module **out) {
  size_t size = (module->count + (size_t)1) * sizeof(bool);
  bool any = false, *dropped = pln_mem_zeroed(module->engine, size);
  if (!dropped)
    return pln_nomem(module->engine);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = pln_module_find(module, names[k]);
    if (i != PLN_NONE)
      dropped[i] = any = true;
  }
  pln_status status = PLN_OK;
  if (any)
    status = pln_module_drop(module, dropped, out);
  else
    *out = pln_module_retain(module);
  pln_mem_free(module->engine, dropped, size);
  return status;
}

pln_status pln_module_without(const pln_module *module, pln_symbol name,
                              pln_module **out) {
  return pln_module_without_functions(module, 1, &name, out);
}

pln_status pln_module_with_attrs(const pln_module *module, pln_attrs attrs,
                                 pln_module **out) {
  if (attrs == module->attrs) {
    *out = pln_module_retain(module);
    return PLN_OK;
  }
  PLN_TRY(pln_module_copy(module, out));
  (*out)->attrs = attrs;
  return PLN_OK;
}

static bool has_all(const pln_module *m, uint32_t n, const pln_symbol *names,
                    const pln_graph *const *functions) {
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = pln_module_find(m, names[k]);
    if (i == PLN_NONE || pln_module_function_at(m, i) != functions[k])
      return false;
  }
  return true;
}

static pln_status put_all(pln_module *m, const pln_module *before, uint32_t n,
                          const pln_symbol *names,
                          const pln_graph *const *functions) {
  for (uint32_t k = 0; k < n; k++)
    PLN_TRY(pln_module_set(m, names[k], functions[k]));
  bool *replaced = pln_mem_zeroed(m->engine, m->count * sizeof *replaced);
  if (!replaced)
    return pln_nomem(m->engine);
  uint32_t count = m->count;
  for (uint32_t k = 0; k < n; k++)
    replaced[pln_module_find(m, names[k])] = true;
  pln_status status = pln_module_reinfer_callers(m, before, replaced);
  pln_mem_free(m->engine, replaced, count * sizeof *replaced);
  return status;
}

pln_status pln_module_with_functions(const pln_module *module, uint32_t n,
                                     const pln_symbol *names,
                                     const pln_graph *const *functions,
                                     pln_module **out) {
  if (has_all(module, n, names, functions)) {
    *out = pln_module_retain(module);
    return PLN_OK;
  }
  pln_module *copy;
  PLN_TRY(pln_module_copy(module, &copy));
  pln_status status = put_all(copy, module, n, names, functions);
  if (status != PLN_OK) {
    pln_module_release(copy);
    return status;
  }
  *out = copy;
  return PLN_OK;
}

pln_status pln_module_with(const pln_module *module, pln_symbol name,
                           const pln_graph *function, pln_module **out) {
  return pln_module_with_functions(module, 1, &name, &function, out);
}
