/* memory_accounting.h: how many bytes graphs and modules hold that share much
 * of what they hold; each block is counted once. */

#ifndef PLN_PASS_CACHE_MEMORY_ACCOUNTING_H
#define PLN_PASS_CACHE_MEMORY_ACCOUNTING_H

#include "pass/pass.h"

typedef struct pln_memory_block {
  pln_hash_link link; /* first: the table's links are the blocks */
  const void *block;
  uint32_t users;
  uint64_t size;
  uint64_t note; /* 0, or what the holder put there */
} pln_memory_block;

typedef struct pln_memory_account {
  pln_engine *engine;
  uint64_t bytes;       /* of the blocks, and of what counts them */
  pln_hash_table table; /* by address */
} pln_memory_account;

pln_memory_account pln_memory_account_new(pln_engine *engine);
/* On failure some of it is not counted: it is not to be dropped. */
pln_status pln_memory_account_add(pln_memory_account *h,
                                  const pln_pass_target *s) PLN_CHECKED;
/* Before the subject is dropped: its graphs are read. */
void pln_memory_account_remove(pln_memory_account *h, const pln_pass_target *s);
/* A place for a number beside a graph; NULL when nobody holds it. */
uint64_t *pln_memory_account_slot(pln_memory_account *h,
                                  const pln_graph *graph);
/* With the tables that count them. */
uint64_t pln_memory_account_bytes(const pln_memory_account *h);
/* Whatever is still counted. */
void pln_memory_account_free(pln_memory_account *h);

#endif
