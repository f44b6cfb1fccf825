/* value.c: the integers that small integer tensors are known to hold.
 *
 * Inference keeps one beside a node's type, so that shape arithmetic (Shape,
 * Gather, Concat, Reshape) works on symbols. Interned in the table of dims. */

#include "ir/tables.h"

/* Longer tensors hold data, not shapes. */
enum { MAX_ELEMENTS = 1024 };

/* A record: rank and count, then the elements. */
typedef struct value_row {
  uint32_t rank;
  uint32_t count;
} value_row;

static const value_row *row_of(const pln_engine *engine, pln_value value) {
  static const value_row nothing = {0, 0};
  if (!value)
    return &nothing;
  return pln_interned(engine->dims->values, value, NULL);
}

pln_status pln_value_make(pln_engine *engine, uint32_t rank, uint32_t count,
                          const pln_dim *elements, pln_value *out) {
  if (rank > 1 || (rank == 0 && count != 1))
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "no value has rank %u and %u elements",
                          (unsigned)rank, (unsigned)count);
  if (count > MAX_ELEMENTS) {
    *out = 0;
    return PLN_OK;
  }
  struct {
    value_row row;
    pln_dim elements[MAX_ELEMENTS];
  } record;
  record.row = (value_row){rank, count};
  if (count > 0)
    memcpy(record.elements, elements, count * sizeof *elements);
  return pln_intern(engine->dims->values, &record,
                    sizeof record.row + count * sizeof *elements, out, NULL);
}

uint32_t pln_value_rank(const pln_engine *engine, pln_value value) {
  return row_of(engine, value)->rank;
}

uint32_t pln_value_count(const pln_engine *engine, pln_value value) {
  return row_of(engine, value)->count;
}

const pln_dim *pln_value_elements(const pln_engine *engine, pln_value value) {
  return (const pln_dim *)(row_of(engine, value) + 1);
}
