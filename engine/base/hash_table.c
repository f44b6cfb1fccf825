/* hash_table.c: an intrusive hash table with insertion and removal.
 *
 * Called by pass/cache/cache.c and pass/cache/memory_accounting.c. Invariants:
 * records of equal hash are found newest first; there are at least half as many
 * chains as records; memory shrinks as records leave, and an empty table holds
 * none. */

#include "base/base.h"

enum { FEWEST_HEADS = 16 };

static void put_first(pln_hash_link **head, pln_hash_link *link) {
  link->next = *head;
  link->at = head;
  if (*head)
    (*head)->at = &link->next;
  *head = link;
}

static pln_hash_link *reversed(pln_hash_link *link) {
  pln_hash_link *next, *all = NULL;
  for (; link; link = next) {
    next = link->next;
    link->next = all;
    all = link;
  }
  return all;
}

/* Links of one chain keep their order. Links of equal hash share a chain, which
 * may be long. */
static void move_links(const pln_hash_table *t, pln_hash_link **heads,
                       uint32_t n) {
  for (uint32_t i = 0; i < t->n_heads; i++) {
    pln_hash_link *next;
    for (pln_hash_link *link = reversed(t->heads[i]); link; link = next) {
      next = link->next;
      put_first(&heads[link->hash & (n - 1)], link);
    }
  }
}

static bool resize(pln_hash_table *t, uint32_t n) {
  pln_hash_link **heads =
      n > 0 ? pln_mem_zeroed(t->engine, n * sizeof *heads) : NULL;
  if (n > 0 && !heads)
    return false;
  if (n > 0)
    move_links(t, heads, n);
  pln_mem_free(t->engine, t->heads, t->n_heads * sizeof *t->heads);
  t->heads = heads;
  t->n_heads = n;
  return true;
}

pln_status pln_hash_add(pln_hash_table *t, uint64_t hash, pln_hash_link *link) {
  uint32_t n = t->n_heads > 0 ? t->n_heads * 2 : FEWEST_HEADS;
  if (t->n >= 2 * (uint64_t)t->n_heads && n < UINT32_MAX / 4 && !resize(t, n))
    return pln_nomem(t->engine);
  link->hash = hash;
  put_first(&t->heads[hash & (t->n_heads - 1)], link);
  t->n++;
  return PLN_OK;
}

void pln_hash_remove(pln_hash_table *t, const pln_hash_link *link) {
  *link->at = link->next;
  if (link->next)
    link->next->at = link->at;
  t->n--;
  if (t->n == 0)
    (void)resize(t, 0);
  else if (t->n_heads > FEWEST_HEADS && t->n < t->n_heads / 4)
    (void)resize(t, t->n_heads / 2); /* on failure it stays as large as it is */
}

static pln_hash_link *of_hash(pln_hash_link *link, uint64_t hash) {
  while (link && link->hash != hash)
    link = link->next;
  return link;
}

pln_hash_link *pln_hash_first(const pln_hash_table *t, uint64_t hash) {
  return t->n > 0 ? of_hash(t->heads[hash & (t->n_heads - 1)], hash) : NULL;
}

pln_hash_link *pln_hash_next(const pln_hash_link *link) {
  return of_hash(link->next, link->hash);
}

uint64_t pln_hash_table_bytes(const pln_hash_table *t) {
  return t->n_heads * sizeof *t->heads;
}
