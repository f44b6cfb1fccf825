/* row_list.c: see row_list.h. */

#include <string.h>

#include "lower/storage/row_list.h"

pln_status pln_row_list_insert(pln_engine *engine, pln_row_list *list,
                               uint32_t at, uint32_t row) {
  PLN_TRY(pln_mem_grow(engine, (void **)&list->rows, &list->cap,
                       (size_t)list->n + 1, sizeof *list->rows));
  memmove(list->rows + at + 1, list->rows + at,
          (list->n - at) * sizeof *list->rows);
  list->rows[at] = row;
  list->n++;
  return PLN_OK;
}

uint32_t pln_row_list_take(pln_row_list *list, uint32_t at) {
  uint32_t row = list->rows[at];
  memmove(list->rows + at, list->rows + at + 1,
          (list->n - at - 1) * sizeof *list->rows);
  list->n--;
  return row;
}
