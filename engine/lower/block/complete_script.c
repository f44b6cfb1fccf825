/* complete_script.c: what blocks of a program read and write, where its text
 * does not say so (lower.h).
 *
 * Called when TVMScript was read. The parser marks such blocks. Inner blocks
 * come first; a block around them takes theirs. The outermost block of a
 * function says nothing, and what a block allocates is not seen around it. Of
 * what a reduction initialises it reads nothing.
 *
 * Semantics: ScriptComplete of TVM's script_complete.cc, which refuses a
 * pointer that is read and written by a call: here all of its Buffer is. */

#include "ir/graph/module.h"
#include "lower/block/body_access.h"
#include "lower/lower.h"

static const char mark_key[] = "tir.script_parsing_detect_access";

typedef struct completion {
  const pln_graph *g;
  pln_access_table table;
  bool *init; /* by Block: it has an init */
} completion;

static int64_t mark_of(const pln_graph *g, pln_ref ref) {
  return g->nodes[ref].kind == PLN_BLOCK
             ? pln_attrs_int(g->engine, g->nodes[ref].attrs, mark_key, 0)
             : 0;
}

static bool is_marked(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (mark_of(g, ref))
      return true;
  return false;
}

/* Whether a Block is around the statement. */
static bool is_inner(const completion *x, pln_ref ref) {
  for (pln_scope at = x->table.scope_of[ref]; at != PLN_NONE;
       at = x->g->scopes[at].parent) {
    pln_ref owner = x->g->scopes[at].owner;
    if (owner != PLN_NONE && x->g->nodes[owner].kind == PLN_BLOCK)
      return true;
  }
  return false;
}

static pln_status begin(completion *x) {
  size_t nodes = x->g->n_nodes;
  x->init = pln_mem_zeroed(x->g->engine, nodes * sizeof *x->init);
  if (!x->init)
    return pln_nomem(x->g->engine);
  PLN_TRY(pln_access_table_begin(x->g, &x->table));
  for (pln_ref ref = 0; ref < nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_BLOCK_INIT)
      x->init[x->g->scopes[x->table.scope_of[ref]].owner] = true;
  return PLN_OK;
}

static void end(completion *x) {
  pln_access_table_end(&x->table);
  pln_mem_free(x->g->engine, x->init, x->g->n_nodes * sizeof *x->init);
}

/* ---------------------------------------------------------------- detection
 */

static bool writes(const pln_body_accesses *list, pln_ref buffer) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->items[i].writes && list->items[i].buffer == buffer)
      return true;
  return false;
}

static bool is_kept(const completion *x, pln_ref block,
                    const pln_body_accesses *list,
                    const pln_body_access *access) {
  if (!(mark_of(x->g, block) & (access->writes ? 2 : 1)))
    return false;
  return access->writes || !x->init[block] || !writes(list, access->buffer);
}

/* Reads first: they are left out when the block writes the same. */
static void drop(const completion *x, pln_ref block, pln_body_accesses *list) {
  for (int pass = 0; pass < 2; pass++) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < list->n; i++)
      if (list->items[i].writes != (pass == 1) ||
          is_kept(x, block, list, &list->items[i]))
        list->items[left++] = list->items[i];
    list->n = left;
  }
}

static pln_status detect(completion *x, pln_ref block) {
  pln_scope scope = x->g->nodes[block].data;
  PLN_TRY(pln_access_table_add(&x->table, block, scope,
                               x->g->scopes[scope].begin,
                               x->g->scopes[scope].end));
  drop(x, block, &x->table.lists[x->table.n - 1]);
  return PLN_OK;
}

/* ------------------------------------------------------------------ filling
 */

static pln_status fill_regions(const completion *x, pln_stmt_rewrite *s,
                               pln_ref stmt, pln_ref *node) {
  bool written = x->g->nodes[stmt].kind == PLN_BLOCK_WRITES;
  pln_ref block = x->g->scopes[x->table.scope_of[stmt]].owner;
  if (!x->table.of[block] || !(mark_of(x->g, block) & (written ? 2 : 1)))
    return PLN_OK;
  return pln_build_accesses(
      s, x->table.a, &x->table.lists[x->table.of[block] - 1], written, node);
}

static pln_status leave(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                        pln_ref *node) {
  const completion *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  pln_prim spec = {.kind = PLN_BLOCK, .n = n->count};
  if (n->kind == PLN_BLOCK_READS || n->kind == PLN_BLOCK_WRITES)
    return fill_regions(x, s, stmt, node);
  if (!mark_of(x->g, stmt))
    return PLN_OK;
  PLN_TRY(pln_attrs_without(x->g->engine, n->attrs, mark_key, &spec.attrs));
  return pln_stmt_rebuild_as(s, stmt, &spec, node);
}

static pln_status complete(completion *x, pln_graph **out) {
  pln_stmt_mutator mutator = {.ud = x, .leave = leave};
  PLN_TRY(begin(x));
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (mark_of(x->g, ref) && is_inner(x, ref))
      PLN_TRY(detect(x, ref));
  return pln_stmt_rewrite_function(x->g, &mutator, out);
}

pln_status pln_complete_script(pln_module *module) {
  for (uint32_t i = 0; i < module->count; i++) {
    completion x = {.g = pln_module_function_at(module, i)};
    x.table.g = x.g;
    pln_graph *function = NULL;
    if (!is_marked(x.g))
      continue;
    pln_status status = complete(&x, &function);
    end(&x);
    PLN_TRY(status);
    pln_module_put(module, i, function);
  }
  return PLN_OK;
}
