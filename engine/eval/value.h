/* value.h: what a node stands for while a graph runs. */

#ifndef PLN_EVAL_VALUE_H
#define PLN_EVAL_VALUE_H

#include "eval/eval.h"

typedef enum pln_held_kind {
  PLN_HELD_NONE = 0, /* not computed */
  PLN_HELD_ABSENT,
  PLN_HELD_TENSOR,
  PLN_HELD_TUPLE,
  PLN_HELD_CELL,    /* a reference; a box of one */
  PLN_HELD_CLOSURE, /* a Function node and where its free nodes are */
  PLN_HELD_GLOBAL   /* a function of the module, by symbol */
} pln_held_kind;

struct pln_activation; /* evaluator.c */

typedef struct pln_held {
  uint32_t kind;   /* pln_held_kind */
  uint32_t number; /* CLOSURE: the node; GLOBAL: the symbol */
  union {
    pln_tensor *tensor;
    struct pln_box *box; /* TUPLE, CELL */
    struct pln_activation *env;
  } of;
} pln_held;

/* Values behind one pointer; reference counted. */
typedef struct pln_box {
  uint32_t refs, count;
  struct pln_box *next; /* while it is being freed */
  pln_held items[];
} pln_box;

pln_status pln_box_new(pln_engine *engine, uint32_t count,
                       pln_box **out) PLN_CHECKED;
/* Another reference to the same. */
pln_held pln_held_copy(pln_held held);
/* Gives up a reference and clears *held. Boxes in boxes of any depth. */
void pln_held_release(pln_engine *engine, pln_held *held);

#endif
