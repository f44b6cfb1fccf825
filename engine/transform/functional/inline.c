/* inline.c: Inline: replaces calls of functions with the attribute Inline by
 * their bodies.
 *
 * Run by the executor, once per module. Requires verified graphs. A marked
 * function that is used as a value, or that belongs to an external compiler
 * (attribute Compiler), is written out as a nested function. Recursive
 * functions, also through other marked ones, are not inlined. A marked function
 * is removed when the pass removed the last reference to it. Only functions
 * that stay are rewritten, so a chain of marked functions is copied once into
 * the function that stays, not once per link.
 *
 *     def @f(%x, Inline=1) { tanh(%x) }  def @main(%y) { @f(%y) }   =>
 *     def @main(%y) { tanh(%y) }
 *
 * Semantics: TVM Inline, extended to functions that call others. */

#include "ir/graph/call_graph.h"
#include "transform/functional/inliner.h"
#include "transform/transform.h"

typedef struct inliner {
  pln_engine *engine;
  const pln_module *module;
  uint32_t n;
  uint8_t *marked; /* by function: it is inlined */
  uint8_t *cyclic;
  pln_clone_source *sources; /* by function; NULL until needed */
  uint8_t **valued;   /* by function: its nodes that are used as values */
  pln_graph **bodies; /* by function: its new graph */
  uint8_t *referred;  /* by function: another one refers to it */
  bool *gone;         /* by function: it is not on the list */
  uint32_t *list;     /* functions that stay, in order of processing */
  uint32_t n_list;
  int64_t inlined;
} inliner;

/* --------------------------------------------------------- which are inlined
 */

static int64_t flag(const inliner *in, uint32_t i, const char *name) {
  const pln_graph *g = pln_module_function_at(in->module, i);
  const pln_node *root = &g->nodes[g->root];
  if (root->kind != PLN_FUNCTION || !root->attrs)
    return 0;
  const pln_attr *a = pln_attrs_find(in->engine, root->attrs, name);
  return a && a->kind == PLN_ATTR_STRING ? 1 : a ? a->v.i : 0;
}

static bool is_generic(const inliner *in, uint32_t i) {
  const pln_graph *g = pln_module_function_at(in->module, i);
  return g->scopes[g->nodes[g->root].data].type_params != 0;
}

static pln_status mark(inliner *in, bool *any) {
  for (uint32_t i = 0; i < in->n; i++)
    in->marked[i] = flag(in, i, "Inline") && !flag(in, i, "Extern");
  PLN_TRY(pln_recursive_functions(in->module, in->marked, in->cyclic));
  for (uint32_t i = 0; i < in->n; i++) {
    in->marked[i] &= !in->cyclic[i] && !is_generic(in, i);
    *any |= in->marked[i];
  }
  return PLN_OK;
}

/* Returns the function that a GlobalVar names if it is inlined, else
 * PLN_NONE. */
static uint32_t named(const inliner *in, const pln_node *name) {
  uint32_t i = pln_module_find(in->module, name->data);
  return i != PLN_NONE && in->marked[i] ? i : PLN_NONE;
}

/* Returns the function that replaces a call, or PLN_NONE. */
static uint32_t called(const inliner *in, const pln_graph *g,
                       const pln_node *call) {
  const pln_node *callee = &g->nodes[g->operands[call->first]];
  uint32_t i = callee->kind == PLN_GLOBAL_VAR ? named(in, callee) : PLN_NONE;
  if (i == PLN_NONE || flag(in, i, "Compiler"))
    return PLN_NONE;
  const pln_graph *f = pln_module_function_at(in->module, i);
  uint32_t n = f->scopes[f->nodes[f->root].data].n_params;
  return n == call->count - 1 ? i : PLN_NONE;
}

/* ------------------------------------------------------------------- bodies */

static void find_value_uses(const inliner *in, const pln_graph *g,
                            uint8_t *valued) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    bool call = n->kind == PLN_CALL && !n->data && n->count &&
                called(in, g, n) != PLN_NONE;
    for (uint32_t i = call; i < n->count; i++)
      valued[g->operands[n->first + i]] = 1;
  }
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      valued[g->scopes[s].result] = 1;
}

static pln_status need_source(inliner *in, uint32_t i) {
  const pln_graph *g = pln_module_function_at(in->module, i);
  if (in->valued[i])
    return PLN_OK;
  PLN_TRY(pln_clone_source_new(g, &in->sources[i]));
  in->valued[i] = pln_mem_zeroed(in->engine, g->n_nodes);
  if (!in->valued[i])
    return pln_nomem(in->engine);
  find_value_uses(in, g, in->valued[i]);
  return PLN_OK;
}

/* The function of a source is its index in the array of sources. */
static pln_status choose_inlined_call(void *ud, pln_clone_run *clone,
                                      pln_clone_source *from, pln_ref node,
                                      pln_clone_source **out,
                                      pln_ref *function) {
  inliner *in = ud;
  const pln_graph *g = from->graph;
  const pln_node *n = &g->nodes[node];
  uint32_t i;
  (void)clone;
  if (n->kind == PLN_CALL)
    i = called(in, g, n);
  else
    i = in->valued[from - in->sources][node] ? named(in, n) : PLN_NONE;
  if (i == PLN_NONE)
    return PLN_OK;
  bool allowed;
  PLN_TRY(pln_rule_apply(in->engine, "inline", node, &allowed));
  if (!allowed)
    return PLN_OK;
  PLN_TRY(need_source(in, i));
  in->inlined++;
  *out = &in->sources[i];
  *function = (*out)->graph->root;
  return PLN_OK;
}

static bool refers(const inliner *in, const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_GLOBAL_VAR &&
        named(in, &g->nodes[ref]) != PLN_NONE)
      return true;
  return false;
}

/* --------------------------------------------------------------- which stay */

static void keep_function(inliner *in, uint32_t i) {
  if (!in->gone[i])
    return;
  in->gone[i] = false;
  in->list[in->n_list++] = i;
}

/* The first functions to stay: those that are not inlined, and those that
 * nothing refers to. */
static void keep_first(inliner *in) {
  memset(in->gone, true, in->n * sizeof *in->gone);
  for (uint32_t i = 0; i < in->n; i++) {
    const pln_graph *g = pln_module_function_at(in->module, i);
    for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
      if (g->nodes[ref].kind != PLN_GLOBAL_VAR)
        continue;
      uint32_t other = pln_module_find(in->module, g->nodes[ref].data);
      if (other != PLN_NONE)
        in->referred[other] = 1;
    }
  }
  for (uint32_t i = 0; i < in->n; i++)
    if (!in->marked[i] || !in->referred[i])
      keep_function(in, i);
}

/* A refused rule application leaves a reference, so the function stays. */
static void keep_named(inliner *in, const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_GLOBAL_VAR)
      continue;
    uint32_t i = named(in, &g->nodes[ref]);
    if (i != PLN_NONE)
      keep_function(in, i);
  }
}

static pln_status inline_functions(inliner *in) {
  pln_clone_callbacks callbacks = {.ud = in, .call = choose_inlined_call};
  keep_first(in);
  for (uint32_t k = 0; k < in->n_list; k++) {
    uint32_t i = in->list[k];
    if (!refers(in, pln_module_function_at(in->module, i)))
      continue;
    PLN_TRY(need_source(in, i));
    PLN_TRY(pln_clone_graph(in->engine, &callbacks, in->module, &in->sources[i],
                            &in->bodies[i]));
    keep_named(in, in->bodies[i]);
  }
  return PLN_OK;
}

/* Builds the module with the new bodies and without the functions that do not
 * stay. */
static pln_status replace_inlined_functions(inliner *in, pln_pass_run *run) {
  pln_module *whole, *module;
  PLN_TRY(pln_module_replace(in->module, in->bodies, &whole));
  pln_status status = pln_module_drop(whole, in->gone, &module);
  pln_module_release(whole);
  PLN_TRY(status);
  pln_run_set_module(run, module);
  return pln_run_count(run, "inlined", in->inlined);
}

/* --------------------------------------------------------------------- pass */

static pln_status alloc_inliner_tables(inliner *in) {
  size_t n = in->n + (size_t)1;
  in->marked = pln_mem_zeroed(in->engine, n);
  in->cyclic = pln_mem_zeroed(in->engine, n);
  in->sources = pln_mem_zeroed(in->engine, n * sizeof *in->sources);
  in->valued = pln_mem_zeroed(in->engine, n * sizeof *in->valued);
  in->bodies = pln_mem_zeroed(in->engine, n * sizeof *in->bodies);
  in->referred = pln_mem_zeroed(in->engine, n);
  in->gone = pln_mem_zeroed(in->engine, n * sizeof *in->gone);
  in->list = pln_mem_zeroed(in->engine, n * sizeof *in->list);
  bool done = in->marked && in->cyclic && in->sources && in->valued &&
              in->bodies && in->referred && in->gone && in->list;
  return done ? PLN_OK : pln_nomem(in->engine);
}

static void free_inliner(inliner *in) {
  size_t n = in->n + (size_t)1;
  for (uint32_t i = 0; i < in->n; i++) {
    const pln_graph *g = pln_module_function_at(in->module, i);
    if (in->sources)
      pln_clone_source_free(&in->sources[i]);
    if (in->valued)
      pln_mem_free(in->engine, in->valued[i], g->n_nodes);
    if (in->bodies)
      pln_graph_release(in->bodies[i]);
  }
  pln_mem_free(in->engine, in->marked, n);
  pln_mem_free(in->engine, in->cyclic, n);
  pln_mem_free(in->engine, in->sources, n * sizeof *in->sources);
  pln_mem_free(in->engine, in->valued, n * sizeof *in->valued);
  pln_mem_free(in->engine, in->bodies, n * sizeof *in->bodies);
  pln_mem_free(in->engine, in->referred, n);
  pln_mem_free(in->engine, in->gone, n * sizeof *in->gone);
  pln_mem_free(in->engine, in->list, n * sizeof *in->list);
}

pln_status pln_pass_inline(pln_pass_run *run) {
  inliner in = {.engine = pln_run_engine(run), .module = run->module};
  bool any = false;
  in.n = pln_module_count(in.module);
  pln_status status = alloc_inliner_tables(&in);
  if (status == PLN_OK)
    status = mark(&in, &any);
  if (status == PLN_OK && any)
    status = inline_functions(&in);
  if (status == PLN_OK && in.inlined)
    status = replace_inlined_functions(&in, run);
  free_inliner(&in);
  return status;
}
