/* row_list.h: a list of rows of a table in an order that its user keeps: memory
 * that is free, by size. Used by storage_plan.c and
 * merge_dynamic_shared_memory.c. */

#ifndef PLN_LOWER_STORAGE_ROW_LIST_H
#define PLN_LOWER_STORAGE_ROW_LIST_H

#include "base/base.h"

typedef struct pln_row_list {
  uint32_t *rows;
  uint32_t n, cap;
} pln_row_list;

/* Inserts a row before the one at `at`, from 0 to n. */
pln_status pln_row_list_insert(pln_engine *engine, pln_row_list *list,
                               uint32_t at, uint32_t row) PLN_CHECKED;
/* Removes and returns the row at `at`. */
uint32_t pln_row_list_take(pln_row_list *list, uint32_t at);

#endif
