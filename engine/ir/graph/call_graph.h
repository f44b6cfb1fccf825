/* graph/call_graph.h: the strongly connected components of a module's call
 * graph, callees before callers. */

#ifndef PLN_IR_GRAPH_CALL_GRAPH_H
#define PLN_IR_GRAPH_CALL_GRAPH_H

#include "ir/graph/module.h"

/* A search of the components. Only functions with member[i] exist for it. */
typedef struct pln_component_search {
  const pln_module *module; /* borrowed, as `member` */
  const uint8_t *member;
  pln_ref *at;            /* by function: the next node to inspect */
  uint32_t *number, *low; /* Tarjan's numbers, from 1; 0: not visited */
  uint32_t *path;         /* stack of the search */
  uint32_t *stack;        /* visited functions without a component yet */
  uint8_t *on_stack, *calls_itself;
  uint32_t n_path, n_stack, n_visited, root;
} pln_component_search;

/* A component: its functions in the order in which they were reached. Valid
 * until the next one is searched. */
typedef struct pln_component {
  uint32_t n;
  const uint32_t *functions;
  bool recursive; /* each function refers to itself, directly or through others
                   */
} pln_component;

pln_status pln_component_search_new(const pln_module *module,
                                    const uint8_t *member,
                                    pln_component_search *out) PLN_CHECKED;
void pln_component_search_free(pln_component_search *search);
/* Finds the next component; false if there is none. All components that it
 * refers to came before. Linear in the size of the module in total. */
bool pln_component_next(pln_component_search *search, pln_component *out);

/* Sets recursive[i] for each function of the module. */
pln_status pln_recursive_functions(const pln_module *module,
                                   const uint8_t *member,
                                   uint8_t *recursive) PLN_CHECKED;

#endif
