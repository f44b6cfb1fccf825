/* rename_functions.c: renames functions for other compilers.
 *
 * Called by PartitionGraph. A function with the attribute Compiler gets a
 * mangled name, which is its global_symbol too; names of it in other functions
 * follow.
 *
 * Semantics: TVM's NameMangleExtFuncs. */

#include "transform/partition/region_function.h"

#include "ir/graph/module.h"

typedef struct renamer {
  pln_engine *engine;
  const pln_module *module;
  pln_module *renamed;
  pln_idmap *names;  /* old name -> new name */
  pln_symbol symbol; /* "global_symbol" */
  pln_symbol name;   /* the new name of the current function, or 0 */
} renamer;

static bool is_compiler_function(const pln_graph *g) {
  return g->nodes[g->root].kind == PLN_FUNCTION &&
         pln_attrs_find(g->engine, pln_node_attrs(g, g->root), "Compiler");
}

static pln_status collect_names(renamer *r, pln_slice mod_name, bool *any) {
  pln_symbol name;
  for (uint32_t i = 0; i < pln_module_count(r->module); i++) {
    if (!is_compiler_function(pln_module_function_at(r->module, i)))
      continue;
    pln_symbol old = pln_module_name_at(r->module, i);
    PLN_TRY(pln_mangle_name(r->engine, mod_name,
                            pln_symbol_text(r->engine, old), &name));
    PLN_TRY(pln_idmap_set(r->names, old, name));
    *any = true;
  }
  return PLN_OK;
}

/* Sets the attribute of the renamed function. */
static pln_status set_symbol(const renamer *r, pln_rewrite *rw, pln_ref node) {
  pln_builder *b = pln_rewrite_builder(rw);
  pln_attr entry = {.name = r->symbol, .kind = PLN_ATTR_STRING};
  if (!b)
    return PLN_ERR_NOMEM;
  entry.v.s = pln_symbol_text(r->engine, r->name);
  PLN_TRY(pln_attrs_with(r->engine, b->graph->nodes[node].attrs, &entry,
                         &b->graph->nodes[node].attrs));
  pln_type_digest_record(b->graph, node);
  return PLN_OK;
}

static pln_status rename_name(void *ud, pln_rewrite *rw, pln_ref old,
                              pln_ref *node) {
  const renamer *r = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node n = g->nodes[old];
  if (old == g->root && r->name)
    return set_symbol(r, rw, *node);
  pln_symbol name =
      n.kind == PLN_GLOBAL_VAR ? pln_idmap_get(r->names, n.data) : 0;
  if (!name)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_build_global_var(b, name, n.type, node));
  b->graph->nodes[*node].flags = n.flags & PLN_NODE_CALL_EFFECT;
  return PLN_OK;
}

/* Adds the function under its name, with the names that it uses. */
static pln_status add_renamed(renamer *r, uint32_t i) {
  pln_graph *g;
  pln_symbol old = pln_module_name_at(r->module, i);
  pln_mutator mutator = {.ud = r, .visit = rename_name};
  r->name = pln_idmap_get(r->names, old);
  PLN_TRY(
      pln_graph_rewrite(pln_module_function_at(r->module, i), &mutator, &g));
  pln_status status = pln_module_set(r->renamed, r->name ? r->name : old, g);
  pln_graph_release(g);
  return status;
}

/* An empty module with the same data types and metadata. */
static pln_status empty_copy(const pln_module *module, pln_module **out) {
  size_t size = ((size_t)module->count + 1) * sizeof(bool);
  bool *dropped = pln_mem_new(module->engine, size);
  if (!dropped)
    return pln_nomem(module->engine);
  memset(dropped, true, size);
  pln_status status = pln_module_drop(module, dropped, out);
  pln_mem_free(module->engine, dropped, size);
  return status;
}

static pln_status rename_all(renamer *r) {
  PLN_TRY(pln_symbol_intern(r->engine, pln_text("global_symbol"), &r->symbol));
  PLN_TRY(empty_copy(r->module, &r->renamed));
  for (uint32_t i = 0; i < pln_module_count(r->module); i++)
    PLN_TRY(add_renamed(r, i));
  return PLN_OK;
}

pln_status pln_rename_compiler_functions(const pln_module *module,
                                         pln_slice mod_name, pln_module **out) {
  renamer r = {.engine = module->engine, .module = module};
  bool any = false;
  PLN_TRY(pln_idmap_new(r.engine, &r.names));
  pln_status status = collect_names(&r, mod_name, &any);
  if (status == PLN_OK && any)
    status = rename_all(&r);
  pln_idmap_free(r.names);
  if (status == PLN_OK && any) {
    *out = r.renamed;
    return PLN_OK;
  }
  pln_module_release(r.renamed);
  if (status == PLN_OK)
    *out = pln_module_retain((pln_module *)(uintptr_t)module);
  return status;
}
