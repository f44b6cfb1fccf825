/* let_list.h: a list of lets around a value that is not built yet, in a free
 * builder. */

#ifndef PLN_TRANSFORM_GRADIENT_LET_LIST_H
#define PLN_TRANSFORM_GRADIENT_LET_LIST_H

#include "ir/graph/graph.h"

typedef struct pln_let_pair {
  pln_ref var, value;
} pln_let_pair;

typedef struct pln_let_list {
  pln_builder *b; /* without open scopes */
  pln_let_pair *pairs;
  uint32_t n, capacity;
} pln_let_list;

/* Binds `value` to a new variable, *out. */
pln_status pln_let_list_push(pln_let_list *list, pln_ref value,
                             pln_ref *out) PLN_CHECKED;
/* Binds it to that variable. */
pln_status pln_let_list_bind(pln_let_list *list, pln_ref var,
                             pln_ref value) PLN_CHECKED;
/* *out: let ... = ...; ...; body, with the lets from number `first` on, which
 * leave the list. */
pln_status pln_let_list_wrap(pln_let_list *list, uint32_t first, pln_ref body,
                             pln_ref *out) PLN_CHECKED;
void pln_let_list_free(pln_let_list *list);

#endif
