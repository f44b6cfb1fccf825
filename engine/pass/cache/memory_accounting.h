/* memory_accounting.h: counts the bytes that a set of graphs and modules holds;
 * shared blocks are counted once. */

#ifndef PLN_PASS_CACHE_MEMORY_ACCOUNTING_H
#define PLN_PASS_CACHE_MEMORY_ACCOUNTING_H

#include "pass/pass.h"

typedef struct pln_memory_block {
  pln_hash_link link; /* first member: hash links are cast to blocks */
  const void *block;
  uint32_t users;
  uint64_t size;
  uint64_t note; /* 0, or the number set through pln_memory_account_slot */
} pln_memory_block;

typedef struct pln_memory_account {
  pln_engine *engine;
  uint64_t bytes;       /* of the blocks and of the account's own tables */
  pln_hash_table table; /* keyed by address */
} pln_memory_account;

pln_memory_account pln_memory_account_new(pln_engine *engine);
/* Adds a target. On failure parts of it are not counted, and it must not be
 * removed. */
pln_status pln_memory_account_add(pln_memory_account *h,
                                  const pln_pass_target *s) PLN_CHECKED;
/* Removes a target. Called before the target is released, because its graphs
 * are read. */
void pln_memory_account_remove(pln_memory_account *h, const pln_pass_target *s);
/* A number stored beside a graph; NULL if the graph is not counted. */
uint64_t *pln_memory_account_slot(pln_memory_account *h,
                                  const pln_graph *graph);
/* Includes the account's own tables. */
uint64_t pln_memory_account_bytes(const pln_memory_account *h);
/* Frees the account, whatever is still counted. */
void pln_memory_account_free(pln_memory_account *h);

#endif
