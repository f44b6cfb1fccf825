/* type/symbolic_value.c: the known integers of small integer tensors.
 *
 * Inference stores one per node, so that shape arithmetic (Shape, Gather,
 * Concat, Reshape) works on symbols. Elements of a matrix are in row-major
 * order; the type of the node has its dims. Interned in the table of dims. */

#include "ir/intern_tables.h"
#include "ir/merge_ids.h"
#include "ir/type/type.h"

/* Longer tensors are taken for data, not shapes. */
enum { MAX_ELEMENTS = 1024 };

/* A record: rank and count, then the elements. */
typedef struct value_row {
  uint32_t rank;
  uint32_t count;
} value_row;

static const value_row *value_row_of(const pln_engine *engine,
                                     pln_value value) {
  static const value_row nothing = {0, 0};
  if (!value)
    return &nothing;
  return pln_interned(engine->dims->values, value, NULL);
}

pln_status pln_value_make(pln_engine *engine, uint32_t rank, uint32_t count,
                          const pln_dim *elements, pln_value *out) {
  if (rank == 0 && count != 1)
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

bool pln_value_refines(const pln_engine *engine, pln_value now, pln_value old) {
  if (now == old || !old)
    return true;
  const value_row *x = value_row_of(engine, now),
                  *y = value_row_of(engine, old);
  if (!now || x->rank != y->rank || x->count != y->count)
    return false;
  const pln_dim *a = (const pln_dim *)(x + 1), *b = (const pln_dim *)(y + 1);
  for (uint32_t i = 0; i < x->count; i++)
    if (a[i] != b[i] && b[i] != PLN_DIM_UNKNOWN)
      return false;
  return true;
}

pln_status pln_merge_values(pln_merge *j) {
  const pln_interner *values = j->child->dims->values;
  uint32_t below = pln_interner_inherited(values);
  uint32_t count = pln_interner_count(values) - below;
  PLN_TRY(pln_merge_map_begin(j, &j->values, below, count));
  for (; j->values.n < count; j->values.n++) {
    const value_row *row = value_row_of(j->child, below + j->values.n + 1);
    const pln_dim *elements = (const pln_dim *)(row + 1);
    pln_dim moved[MAX_ELEMENTS];
    for (uint32_t i = 0; i < row->count; i++)
      moved[i] = pln_merge_dim(j, elements[i]);
    PLN_TRY(pln_value_make(j->parent, row->rank, row->count, moved,
                           &j->values.to[j->values.n]));
  }
  return PLN_OK;
}

uint32_t pln_value_rank(const pln_engine *engine, pln_value value) {
  return value_row_of(engine, value)->rank;
}

uint32_t pln_value_count(const pln_engine *engine, pln_value value) {
  return value_row_of(engine, value)->count;
}

const pln_dim *pln_value_elements(const pln_engine *engine, pln_value value) {
  return (const pln_dim *)(value_row_of(engine, value) + 1);
}
