/* held.h: how many bytes graphs and modules hold that share much of what they
 * hold; each block is counted once. */

#ifndef PLN_HELD_H
#define PLN_HELD_H

#include "pass/pass.h"

typedef struct pln_held_block {
  const void *block;
  uint32_t users;
  uint64_t size;
  uint64_t note; /* 0, or what the holder put there */
} pln_held_block;

typedef struct pln_held {
  pln_engine *engine;
  uint64_t bytes;
  uint32_t n, cap;
  pln_held_block *blocks;
  pln_idmap *at; /* address -> 1 + index */
} pln_held;

/* On failure the table is of no use any more, and is to be freed. */
pln_status pln_held_add(pln_held *h, const pln_subject *s) PLN_CHECKED;
/* Before the subject is dropped: its graphs are read. */
void pln_held_drop(pln_held *h, const pln_subject *s);
/* A place for a number beside a graph; NULL when nobody holds it. */
uint64_t *pln_held_note(pln_held *h, const pln_graph *graph);
void pln_held_free(pln_held *h);

#endif
