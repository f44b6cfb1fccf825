/* memory_accounting.h: how many bytes graphs and modules hold that share much
 * of what they hold; each block is counted once. */

#ifndef PLN_PASS_CACHE_MEMORY_ACCOUNTING_H
#define PLN_PASS_CACHE_MEMORY_ACCOUNTING_H

#include "pass/pass.h"

typedef struct pln_held_block {
  pln_hash_link link; /* first: the table's links are the blocks */
  const void *block;
  uint32_t users;
  uint64_t size;
  uint64_t note; /* 0, or what the holder put there */
} pln_held_block;

typedef struct pln_held {
  pln_engine *engine;
  uint64_t bytes;       /* of the blocks, and of what counts them */
  pln_hash_table table; /* by address */
} pln_held;

pln_held pln_held_new(pln_engine *engine);
/* On failure some of it is not counted: it is not to be dropped. */
pln_status pln_held_add(pln_held *h, const pln_subject *s) PLN_CHECKED;
/* Before the subject is dropped: its graphs are read. */
void pln_held_drop(pln_held *h, const pln_subject *s);
/* A place for a number beside a graph; NULL when nobody holds it. */
uint64_t *pln_held_note(pln_held *h, const pln_graph *graph);
/* With the tables that count them. */
uint64_t pln_held_bytes(const pln_held *h);
/* Whatever is still counted. */
void pln_held_free(pln_held *h);

#endif
