/* runtime_value.h: what data are made of, and the kinds that only a run knows.
 */

#ifndef PLN_IR_TENSOR_RUNTIME_VALUE_H
#define PLN_IR_TENSOR_RUNTIME_VALUE_H

#include "base/base.h"

/* Kinds beside those of perilune.h. */
enum {
  PLN_RUNTIME_REF_CELL =
      PLN_N_RUNTIME_VALUE_KINDS, /* a reference; a cell of one */
  PLN_RUNTIME_CLOSURE,     /* a Function node and where its free nodes are */
  PLN_RUNTIME_GLOBAL,      /* a function of the module, by symbol */
  PLN_RUNTIME_CONSTRUCTOR, /* a constructor, by symbol */
  PLN_RUNTIME_ADT_VALUE    /* what the constructor made: a cell of its fields */
};

/* Data behind one pointer; reference counted. */
typedef struct pln_ref_cell {
  uint32_t refs, count;
  uint32_t capacity;         /* items that there is room for */
  struct pln_ref_cell *next; /* while it is being freed */
  pln_runtime_value items[];
} pln_ref_cell;

/* A cell of `count` data that are not computed. */
pln_status pln_ref_cell_new(pln_engine *engine, uint32_t count,
                            pln_ref_cell **out) PLN_CHECKED;
void pln_ref_cell_release(pln_engine *engine, pln_ref_cell *cell);
/* Room for one more in a cell that nothing else refers to, which may move. Its
 * count stays. */
pln_status pln_ref_cell_reserve(pln_engine *engine,
                                pln_ref_cell **cell) PLN_CHECKED;

/* A tensor, which is taken; NULL is what is left out. */
static inline pln_runtime_value
pln_runtime_value_of_tensor(pln_tensor *tensor) {
  return (pln_runtime_value){.kind = tensor ? PLN_RUNTIME_TENSOR
                                            : PLN_RUNTIME_ABSENT,
                             .of.tensor = tensor};
}

#endif
