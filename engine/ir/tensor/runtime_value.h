/* runtime_value.h: what data are made of, and the kinds that only a run knows.
 */

#ifndef PLN_IR_TENSOR_RUNTIME_VALUE_H
#define PLN_IR_TENSOR_RUNTIME_VALUE_H

#include "base/base.h"

/* Kinds beside those of perilune.h. */
enum {
  PLN_DATUM_CELL = PLN_N_DATUM_KINDS, /* a reference; a box of one */
  PLN_DATUM_CLOSURE, /* a Function node and where its free nodes are */
  PLN_DATUM_GLOBAL,  /* a function of the module, by symbol */
  PLN_DATUM_MAKER,   /* a constructor, by symbol */
  PLN_DATUM_MADE     /* what the constructor made: a box of its fields */
};

/* Data behind one pointer; reference counted. */
typedef struct pln_box {
  uint32_t refs, count;
  uint32_t capacity;    /* items that there is room for */
  struct pln_box *next; /* while it is being freed */
  pln_datum items[];
} pln_box;

/* A box of `count` data that are not computed. */
pln_status pln_box_new(pln_engine *engine, uint32_t count,
                       pln_box **out) PLN_CHECKED;
void pln_box_release(pln_engine *engine, pln_box *box);
/* Room for one more in a box that nothing else refers to, which may move. Its
 * count stays. */
pln_status pln_box_room(pln_engine *engine, pln_box **box) PLN_CHECKED;

/* A tensor, which is taken; NULL is what is left out. */
static inline pln_datum pln_datum_take(pln_tensor *tensor) {
  return (pln_datum){.kind = tensor ? PLN_DATUM_TENSOR : PLN_DATUM_ABSENT,
                     .of.tensor = tensor};
}

#endif
