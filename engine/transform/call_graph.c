/* call_graph.c: recursive functions of a module: its strongly connected
 * components by Tarjan's algorithm (Depth-first search and linear graph
 * algorithms, 1972), with an explicit stack. Called by Inline. */

#include "transform/call_graph.h"

typedef struct search {
  const pln_module *module;
  const uint8_t *member;
  uint8_t *cyclic;
  uint32_t n;
  uint32_t *first, *to;   /* edges in CSR form; first has n + 1 entries */
  uint32_t *at;           /* by function: the next edge to follow */
  uint32_t *number, *low; /* Tarjan's numbers, from 1; 0: not visited */
  uint32_t *path;         /* stack of the search */
  uint32_t *open;         /* visited functions without a component yet */
  uint32_t n_path, n_open, found;
  uint8_t *is_open;
} search;

/* -------------------------------------------------------------------- edges */

/* Counts the edges of function `i`; lists them too unless `to` is NULL. */
static uint32_t list_edges(search *s, uint32_t i, uint32_t *to) {
  const pln_graph *g = pln_module_function_at(s->module, i);
  uint32_t n = 0;
  for (pln_ref ref = 0; ref < g->n_nodes && s->member[i]; ref++) {
    if (g->nodes[ref].kind != PLN_GLOBAL_VAR)
      continue;
    uint32_t callee = pln_module_find(s->module, g->nodes[ref].data);
    if (callee == PLN_NONE || !s->member[callee])
      continue;
    if (to)
      to[n] = callee;
    n++;
  }
  return n;
}

static bool alloc_search_tables(search *s, pln_engine *e) {
  size_t k = (s->n + (size_t)1) * sizeof(uint32_t);
  s->first = pln_mem_zeroed(e, k);
  s->at = pln_mem_zeroed(e, k);
  s->number = pln_mem_zeroed(e, k);
  s->low = pln_mem_zeroed(e, k);
  s->path = pln_mem_zeroed(e, k);
  s->open = pln_mem_zeroed(e, k);
  s->is_open = pln_mem_zeroed(e, s->n + (size_t)1);
  if (!s->first || !s->at || !s->number || !s->low || !s->path || !s->open ||
      !s->is_open)
    return false;
  for (uint32_t i = 0; i < s->n; i++)
    s->first[i + 1] = s->first[i] + list_edges(s, i, NULL);
  s->to = pln_mem_new(e, (s->first[s->n] + (size_t)1) * sizeof *s->to);
  for (uint32_t i = 0; i < s->n && s->to; i++)
    list_edges(s, i, s->to + s->first[i]);
  return s->to != NULL;
}

static void free_cycle_search(search *s, pln_engine *e) {
  size_t k = (s->n + (size_t)1) * sizeof(uint32_t);
  if (s->to)
    pln_mem_free(e, s->to, (s->first[s->n] + (size_t)1) * sizeof *s->to);
  pln_mem_free(e, s->first, k);
  pln_mem_free(e, s->at, k);
  pln_mem_free(e, s->number, k);
  pln_mem_free(e, s->low, k);
  pln_mem_free(e, s->path, k);
  pln_mem_free(e, s->open, k);
  pln_mem_free(e, s->is_open, s->n + (size_t)1);
}

/* ------------------------------------------------------------------- search */

static void enter_called_function(search *s, uint32_t i) {
  s->number[i] = s->low[i] = ++s->found;
  s->at[i] = s->first[i];
  s->is_open[i] = 1;
  s->open[s->n_open++] = i;
  s->path[s->n_path++] = i;
}

static void lower(search *s, uint32_t i, uint32_t number) {
  if (number < s->low[i])
    s->low[i] = number;
}

/* Pops the component whose root is `i`. */
static void close_component(search *s, uint32_t i) {
  bool several = s->open[s->n_open - 1] != i;
  uint32_t member;
  do {
    member = s->open[--s->n_open];
    s->is_open[member] = 0;
    s->cyclic[member] |= several;
  } while (member != i);
}

static void leave_called_function(search *s, uint32_t i) {
  s->n_path--;
  if (s->low[i] == s->number[i])
    close_component(s, i);
  if (s->n_path > 0)
    lower(s, s->path[s->n_path - 1], s->low[i]);
}

static void search_next_callee(search *s) {
  uint32_t i = s->path[s->n_path - 1];
  if (s->at[i] == s->first[i + 1]) {
    leave_called_function(s, i);
    return;
  }
  uint32_t to = s->to[s->at[i]++];
  s->cyclic[i] |= to == i;
  if (!s->number[to])
    enter_called_function(s, to);
  else if (s->is_open[to])
    lower(s, i, s->number[to]);
}

pln_status pln_recursive_functions(const pln_module *module,
                                   const uint8_t *member, uint8_t *cyclic) {
  pln_engine *e = pln_module_engine(module);
  search s = {.module = module,
              .member = member,
              .cyclic = cyclic,
              .n = pln_module_count(module)};
  bool room = alloc_search_tables(&s, e);
  memset(cyclic, 0, s.n);
  for (uint32_t i = 0; i < s.n && room; i++) {
    if (!s.number[i])
      enter_called_function(&s, i);
    while (s.n_path > 0)
      search_next_callee(&s);
  }
  free_cycle_search(&s, e);
  return room ? PLN_OK : pln_nomem(e);
}
