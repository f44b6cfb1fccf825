/* infer/reinfer_callers.c: infers functions again whose callees changed their
 * signature or their effects.
 *
 * Called by pln_module_with_functions, and after a module was read or functions
 * of it were changed. When a caller's own signature changes, its callers
 * follow, level by level; other functions are not examined. Invariants of the
 * result: each GlobalVar has its function's type and call effect, unless
 * mutually recursive functions have no consistent types; calls match their
 * callees, except mismatches accepted when a file was read. */

#include <stdlib.h>

#include "ir/graph/module.h"
#include "ir/infer/check_calls.h"
#include "ir/infer/check_uses.h"

/* A call from one function to another. */
typedef struct edge {
  uint32_t caller;
  uint32_t next; /* the next edge to the same callee + 1; 0: the last */
} edge;

typedef struct caller_graph {
  pln_module *module; /* the module being changed */
  uint32_t *first;    /* per function: its first edge + 1 */
  edge *edges;
  uint32_t n_edges, cap_edges;
  bool *waits;     /* per function: it is in the next level */
  uint32_t *level; /* functions to infer in this level */
  uint32_t *next;  /* functions of the next level */
  uint32_t n_next;
  bool *touched; /* per function: replaced or inferred again */
} caller_graph;

pln_type pln_signature(const pln_graph *function) {
  return function->nodes[function->root].type;
}

/* True if the GlobalVar of `caller` has the type and the call effect of its
 * function. A GlobalVar without a type is left to InferType. */
static bool sees(const pln_module *m, uint32_t i, const pln_graph *caller,
                 const pln_node *global) {
  const pln_graph *f = pln_module_function_at(m, i);
  const pln_node *root = &f->nodes[f->root];
  if (pln_has_own_type(caller, global, f))
    return true;
  return (!global->type || root->type == global->type) &&
         pln_node_call_effect(root) == pln_node_call_effect(global);
}

/* True if callers see a difference between the two functions. */
static bool signatures_differ(const pln_graph *f, const pln_graph *g) {
  const pln_node *x = &f->nodes[f->root], *y = &g->nodes[g->root];
  return x->type != y->type ||
         pln_node_call_effect(x) != pln_node_call_effect(y);
}

static pln_status retype_var(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  const pln_module *m = ud;
  const pln_graph *g = pln_rewrite_graph(rw);
  (void)old;
  if (*node == PLN_NONE || pln_node_kind(g, *node) != PLN_GLOBAL_VAR)
    return PLN_OK;
  pln_symbol name = pln_node_symbol(g, *node);
  bool typed = pln_node_type(g, *node) != 0;
  uint32_t i = pln_module_find(m, name);
  if (i == PLN_NONE || sees(m, i, g, &g->nodes[*node]))
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  pln_builder_module(b, m);
  PLN_TRY(pln_build_global_var(b, name, 0, node));
  if (!typed)
    b->graph->nodes[*node].type = 0;
  return PLN_OK;
}

/* --------------------------------------------------------------- who calls */

static void put_next(caller_graph *c, uint32_t function) {
  if (!c->waits[function])
    c->next[c->n_next++] = function;
  c->waits[function] = true;
}

static void put_callers(caller_graph *c, uint32_t callee) {
  for (uint32_t at = c->first[callee]; at; at = c->edges[at - 1].next)
    put_next(c, c->edges[at - 1].caller);
}

/* Adds the function's calls as edges; the function is inferred again if a
 * GlobalVar does not have its callee's type. */
static pln_status look_into(caller_graph *c, uint32_t caller) {
  const pln_graph *g = pln_module_function_at(c->module, caller);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (n->kind != PLN_GLOBAL_VAR)
      continue;
    uint32_t callee = pln_module_find(c->module, n->data);
    if (callee == PLN_NONE)
      continue;
    if (!sees(c->module, callee, g, n))
      put_next(c, caller);
    PLN_TRY(pln_mem_grow(g->engine, (void **)&c->edges, &c->cap_edges,
                         (size_t)c->n_edges + 1, sizeof *c->edges));
    c->edges[c->n_edges++] = (edge){caller, c->first[callee]};
    c->first[callee] = c->n_edges;
  }
  return PLN_OK;
}

/* True if the signature changed, or there was no such function before. */
static bool signature_changed(const caller_graph *c, const pln_module *before,
                              uint32_t i) {
  uint32_t old = pln_module_find(before, pln_module_name_at(c->module, i));
  return old == PLN_NONE ||
         signatures_differ(pln_module_function_at(before, old),
                           pln_module_function_at(c->module, i));
}

/* Functions that were not replaced are examined only if some signature
 * changed. */
static pln_status find_callers(caller_graph *c, const pln_module *before) {
  uint32_t n = c->module->count;
  bool all = false;
  for (uint32_t i = 0; i < n; i++) {
    if (!c->touched[i])
      continue;
    PLN_TRY(look_into(c, i));
    all = all || signature_changed(c, before, i);
  }
  all = all || c->n_next > 0;
  for (uint32_t i = 0; all && i < n; i++)
    if (!c->touched[i])
      PLN_TRY(look_into(c, i));
  return PLN_OK;
}

/* ------------------------------------------------------------------- levels */

/* A file's declared result types were accepted and are kept. */
static pln_status reinfer_function(caller_graph *c, uint32_t i) {
  pln_mutator mutator = {.ud = c->module,
                         .visit = retype_var,
                         .lenient = pln_module_was_onnx(c->module),
                         .retypes_results = true};
  pln_graph *old = pln_module_function_at(c->module, i), *f;
  PLN_TRY(pln_annotate_function(c->module, i,
                                pln_graph_rewrite(old, &mutator, &f)));
  if (signatures_differ(f, old))
    put_callers(c, i);
  c->touched[i] = true;
  pln_module_put(c->module, i, f);
  return PLN_OK;
}

static pln_status check_touched(const pln_module *m, uint32_t i) {
  const pln_graph *f = pln_module_function_at(m, i);
  PLN_TRY(pln_graph_check_calls(f));
  return pln_graph_check_constructors(f, m);
}

static int by_index(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* In module order, so that the result does not depend on how functions were
 * found. */
static pln_status retype_level(caller_graph *c) {
  uint32_t n = c->n_next, *level = c->next;
  c->next = c->level;
  c->level = level;
  c->n_next = 0;
  qsort(level, n, sizeof *level, by_index);
  for (uint32_t i = 0; i < n; i++)
    c->waits[level[i]] = false;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(reinfer_function(c, level[i]));
  return PLN_OK;
}

/* At most as many levels as functions, plus one for recursive ones. */
static pln_status retype_levels(caller_graph *c, const pln_module *before) {
  uint32_t n = c->module->count;
  PLN_TRY(find_callers(c, before));
  for (uint32_t level = 0; c->n_next > 0 && level <= n; level++)
    PLN_TRY(retype_level(c));
  for (uint32_t i = 0; i < n; i++)
    if (c->touched[i])
      PLN_TRY(pln_annotate_function(c->module, i, check_touched(c->module, i)));
  return PLN_OK;
}

pln_status pln_module_reinfer_callers(pln_module *module,
                                      const pln_module *before,
                                      bool *replaced) {
  pln_engine *e = module->engine;
  size_t n = module->count;
  caller_graph c = {.module = module, .touched = replaced};
  c.first = pln_mem_zeroed(e, n * sizeof *c.first);
  c.waits = pln_mem_zeroed(e, n * sizeof *c.waits);
  c.level = pln_mem_new(e, n * sizeof *c.level);
  c.next = pln_mem_new(e, n * sizeof *c.next);
  pln_status status = PLN_OK;
  if (!c.first || !c.waits || !c.level || !c.next)
    status = pln_nomem(e);
  else
    status = retype_levels(&c, before);
  pln_mem_free(e, c.first, n * sizeof *c.first);
  pln_mem_free(e, c.waits, n * sizeof *c.waits);
  pln_mem_free(e, c.level, n * sizeof *c.level);
  pln_mem_free(e, c.next, n * sizeof *c.next);
  pln_mem_free(e, c.edges, c.cap_edges * sizeof *c.edges);
  return status;
}
