/* graph/call_graph.c: the strongly connected components of a module's call
 * graph by Tarjan's algorithm (Depth-first search and linear graph algorithms,
 * 1972), with an explicit stack. Called by type inference and Inline. */

#include "ir/graph/call_graph.h"

static size_t table_size(const pln_component_search *s) {
  return (pln_module_count(s->module) + (size_t)1) * sizeof(uint32_t);
}

pln_status pln_component_search_new(const pln_module *module,
                                    const uint8_t *member,
                                    pln_component_search *out) {
  pln_engine *e = pln_module_engine(module);
  *out = (pln_component_search){.module = module, .member = member};
  size_t k = table_size(out), n = k / sizeof(uint32_t);
  out->at = pln_mem_zeroed(e, k);
  out->number = pln_mem_zeroed(e, k);
  out->low = pln_mem_zeroed(e, k);
  out->path = pln_mem_zeroed(e, k);
  out->stack = pln_mem_zeroed(e, k);
  out->on_stack = pln_mem_zeroed(e, n);
  out->calls_itself = pln_mem_zeroed(e, n);
  if (out->at && out->number && out->low && out->path && out->stack &&
      out->on_stack && out->calls_itself)
    return PLN_OK;
  pln_component_search_free(out);
  return pln_nomem(e);
}

void pln_component_search_free(pln_component_search *s) {
  pln_engine *e = pln_module_engine(s->module);
  size_t k = table_size(s), n = k / sizeof(uint32_t);
  pln_mem_free(e, s->at, k);
  pln_mem_free(e, s->number, k);
  pln_mem_free(e, s->low, k);
  pln_mem_free(e, s->path, k);
  pln_mem_free(e, s->stack, k);
  pln_mem_free(e, s->on_stack, n);
  pln_mem_free(e, s->calls_itself, n);
}

static void enter_function(pln_component_search *s, uint32_t i) {
  s->number[i] = s->low[i] = ++s->n_visited;
  s->on_stack[i] = 1;
  s->stack[s->n_stack++] = i;
  s->path[s->n_path++] = i;
}

/* The next member that function `i` refers to, or PLN_NONE. */
static uint32_t next_callee(pln_component_search *s, uint32_t i) {
  const pln_graph *g = pln_module_function_at(s->module, i);
  while (s->at[i] < g->n_nodes) {
    const pln_node *n = &g->nodes[s->at[i]++];
    if (n->kind != PLN_GLOBAL_VAR)
      continue;
    uint32_t callee = pln_module_find(s->module, n->data);
    if (callee != PLN_NONE && s->member[callee])
      return callee;
  }
  return PLN_NONE;
}

static void lower(pln_component_search *s, uint32_t i, uint32_t number) {
  if (number < s->low[i])
    s->low[i] = number;
}

/* Pops the component whose root is `i`. */
static void close_component(pln_component_search *s, uint32_t i,
                            pln_component *out) {
  uint32_t end = s->n_stack;
  do
    s->on_stack[s->stack[--s->n_stack]] = 0;
  while (s->stack[s->n_stack] != i);
  out->n = end - s->n_stack;
  out->functions = s->stack + s->n_stack;
  out->recursive = out->n > 1 || s->calls_itself[i];
}

/* All callees of the top were visited. Returns true if it is the root of a
 * component: it reaches no lower number. */
static bool leave_function(pln_component_search *s, pln_component *out) {
  uint32_t i = s->path[--s->n_path];
  if (s->n_path > 0)
    lower(s, s->path[s->n_path - 1], s->low[i]);
  if (s->low[i] != s->number[i])
    return false;
  close_component(s, i, out);
  return true;
}

static void follow_call(pln_component_search *s, uint32_t i, uint32_t callee) {
  s->calls_itself[i] |= callee == i;
  if (!s->number[callee])
    enter_function(s, callee);
  else if (s->on_stack[callee])
    lower(s, i, s->number[callee]);
}

bool pln_component_next(pln_component_search *s, pln_component *out) {
  for (;;) {
    uint32_t n = pln_module_count(s->module);
    while (s->n_path == 0 && s->root < n &&
           (!s->member[s->root] || s->number[s->root]))
      s->root++;
    if (s->n_path == 0 && s->root == n)
      return false;
    if (s->n_path == 0)
      enter_function(s, s->root);
    uint32_t i = s->path[s->n_path - 1], callee = next_callee(s, i);
    if (callee != PLN_NONE)
      follow_call(s, i, callee);
    else if (leave_function(s, out))
      return true;
  }
}

pln_status pln_recursive_functions(const pln_module *module,
                                   const uint8_t *member, uint8_t *recursive) {
  pln_component_search s;
  pln_component c;
  memset(recursive, 0, pln_module_count(module));
  PLN_TRY(pln_component_search_new(module, member, &s));
  while (pln_component_next(&s, &c))
    for (uint32_t i = 0; i < c.n; i++)
      recursive[c.functions[i]] = c.recursive;
  pln_component_search_free(&s);
  return PLN_OK;
}
