/* complete_script.c: what blocks of a program read and write, where its text
 * does not say so (lower.h).
 *
 * Called when TVMScript was read. The parser marks such blocks. Inner blocks
 * come first; a block around them takes theirs. The outermost block of a
 * function says nothing, and what a block allocates is not seen around it. Of
 * what a reduction initialises it reads nothing. A block with views
 * (T.match_buffer) keeps what it says.
 *
 * Semantics: ScriptComplete of TVM's script_complete.cc. */

#include "ir/graph/module.h"
#include "lower/block/body_access.h"
#include "lower/lower.h"

static const char mark_key[] = "tir.script_parsing_detect_access";

typedef struct completion {
  const pln_graph *g;
  pln_analyzer *a;
  pln_scope *scope_of;
  pln_ref *block_of; /* by data Var: the Block that allocates it */
  uint32_t *of;      /* by Block: 1 + the list of what it accesses */
  bool *views;       /* by Block: it has views */
  bool *init;        /* by Block: it has an init */
  pln_body_accesses *lists;
  uint32_t n, cap;
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
  for (pln_scope at = x->scope_of[ref]; at != PLN_NONE;
       at = x->g->scopes[at].parent) {
    pln_ref owner = x->g->scopes[at].owner;
    if (owner != PLN_NONE && x->g->nodes[owner].kind == PLN_BLOCK)
      return true;
  }
  return false;
}

/* ------------------------------------------------------------------- tables
 */

static void note_part(completion *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (n->kind != PLN_ALLOC_BUFFER && n->kind != PLN_MATCH_BUFFER &&
      n->kind != PLN_BLOCK_INIT)
    return;
  pln_ref block = x->g->scopes[x->scope_of[ref]].owner;
  if (n->kind == PLN_ALLOC_BUFFER)
    x->block_of[pln_operand(x->g, pln_operand(x->g, ref, 0), 0)] = block;
  else if (n->kind == PLN_MATCH_BUFFER)
    x->views[block] = true;
  else
    x->init[block] = true;
}

static pln_status begin(completion *x) {
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes;
  pln_scope_cursor at = {.graph = x->g};
  x->scope_of = pln_mem_new(e, nodes * sizeof *x->scope_of);
  x->block_of = pln_mem_new(e, nodes * sizeof *x->block_of);
  x->of = pln_mem_zeroed(e, nodes * sizeof *x->of);
  x->views = pln_mem_zeroed(e, nodes * sizeof *x->views);
  x->init = pln_mem_zeroed(e, nodes * sizeof *x->init);
  if (!x->scope_of || !x->block_of || !x->of || !x->views || !x->init)
    return pln_nomem(e);
  for (pln_ref ref = 0; ref < nodes; ref++) {
    x->scope_of[ref] = pln_scope_cursor_at(&at, ref);
    x->block_of[ref] = PLN_NONE;
  }
  for (pln_ref ref = 0; ref < nodes; ref++)
    note_part(x, ref);
  return pln_analyzer_new(e, &x->a);
}

static void end(completion *x) {
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes;
  if (x->a)
    pln_analyzer_free(x->a);
  for (uint32_t i = 0; i < x->n; i++)
    pln_body_accesses_free(e, &x->lists[i]);
  pln_mem_free(e, x->lists, x->cap * sizeof *x->lists);
  pln_mem_free(e, x->scope_of, nodes * sizeof *x->scope_of);
  pln_mem_free(e, x->block_of, nodes * sizeof *x->block_of);
  pln_mem_free(e, x->of, nodes * sizeof *x->of);
  pln_mem_free(e, x->views, nodes * sizeof *x->views);
  pln_mem_free(e, x->init, nodes * sizeof *x->init);
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
  pln_ref data = pln_operand(x->g, access->buffer, 0);
  if (x->block_of[data] == block ||
      !(mark_of(x->g, block) & (access->writes ? 2 : 1)))
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
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->lists, &x->cap,
                       (size_t)x->n + 1, sizeof *x->lists));
  pln_known_accesses known = {x->of, x->lists};
  PLN_TRY(pln_stmt_accesses_make(x->g, x->a, scope, x->g->scopes[scope].begin,
                                 x->g->scopes[scope].end, x->scope_of, &known,
                                 &x->lists[x->n]));
  drop(x, block, &x->lists[x->n]);
  x->of[block] = ++x->n;
  return PLN_OK;
}

/* ------------------------------------------------------------------ filling
 */

static pln_status fill_regions(const completion *x, pln_stmt_rewrite *s,
                               pln_ref stmt, pln_ref *node) {
  bool written = x->g->nodes[stmt].kind == PLN_BLOCK_WRITES;
  pln_ref block = x->g->scopes[x->scope_of[stmt]].owner;
  if (!x->of[block] || !(mark_of(x->g, block) & (written ? 2 : 1)))
    return PLN_OK;
  return pln_build_accesses(s, x->a, &x->lists[x->of[block] - 1], written,
                            node);
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
    if (mark_of(x->g, ref) && !x->views[ref] && is_inner(x, ref))
      PLN_TRY(detect(x, ref));
  return pln_stmt_rewrite_function(x->g, &mutator, out);
}

pln_status pln_complete_script(pln_module *module) {
  for (uint32_t i = 0; i < module->count; i++) {
    completion x = {.g = pln_module_function_at(module, i)};
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
