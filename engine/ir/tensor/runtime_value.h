/* runtime_value.h: cells, and the kinds of runtime values that exist only
 * during a run. */

#ifndef PLN_IR_TENSOR_RUNTIME_VALUE_H
#define PLN_IR_TENSOR_RUNTIME_VALUE_H

#include "base/base.h"

/* Kinds in addition to those of perilune.h. */
enum {
  PLN_RUNTIME_REF_CELL =
      PLN_N_RUNTIME_VALUE_KINDS, /* a reference: a cell with one value */
  PLN_RUNTIME_CLOSURE,           /* a Function node and the values of its free
                                  * variables */
  PLN_RUNTIME_GLOBAL,            /* a function of the module, by symbol */
  PLN_RUNTIME_CONSTRUCTOR,       /* a constructor, by symbol */
  PLN_RUNTIME_ADT_VALUE          /* the result of a constructor: a cell of its
                                  * fields */
};

/* A reference-counted array of values. */
typedef struct pln_ref_cell {
  uint32_t refs, count;
  uint32_t capacity;         /* allocated number of values */
  struct pln_ref_cell *next; /* list link while it is being freed */
  pln_runtime_value items[];
} pln_ref_cell;

/* A cell of `count` values, not yet computed. */
pln_status pln_ref_cell_new(pln_engine *engine, uint32_t count,
                            pln_ref_cell **out) PLN_CHECKED;
void pln_ref_cell_release(pln_engine *engine, pln_ref_cell *cell);
/* Makes room for one more value in a cell without other references, which may
 * move. Its count is unchanged. */
pln_status pln_ref_cell_reserve(pln_engine *engine,
                                pln_ref_cell **cell) PLN_CHECKED;

/* Wraps a tensor and takes it; NULL gives an omitted value. */
static inline pln_runtime_value
pln_runtime_value_of_tensor(pln_tensor *tensor) {
  return (pln_runtime_value){.kind = tensor ? PLN_RUNTIME_TENSOR
                                            : PLN_RUNTIME_ABSENT,
                             .of.tensor = tensor};
}

#endif
