/* bijection.c: a one-to-one correspondence between numbers of two sides, for
 * comparisons: once x corresponds to y, neither may correspond to another. */

#include "ir/compare/equal.h"

void pln_bijection_free(pln_bijection *p) {
  pln_idmap_free(p->to);
  pln_idmap_free(p->from);
  *p = (pln_bijection){0};
}

/* The entry of a number whose partner was removed. */
#define NO_IMAGE UINT32_MAX

static uint32_t look_up(const pln_idmap *map, uint32_t key) {
  uint32_t image = map ? pln_idmap_get(map, key) : 0;
  return image == NO_IMAGE ? 0 : image;
}

bool pln_bijection_allows(const pln_bijection *p, uint32_t x, uint32_t y) {
  uint32_t of_x = look_up(p->to, x), of_y = look_up(p->from, y);
  return (of_x == 0 && of_y == 0) || (of_x == y && of_y == x);
}

pln_status pln_bijection_add(pln_engine *engine, pln_bijection *p, uint32_t x,
                             uint32_t y) {
  if (!p->to)
    PLN_TRY(pln_idmap_new(engine, &p->to));
  if (!p->from)
    PLN_TRY(pln_idmap_new(engine, &p->from));
  PLN_TRY(pln_idmap_set(p->to, x, y));
  return pln_idmap_set(p->from, y, x);
}

pln_pair_of pln_bijection_get(const pln_bijection *p, uint32_t x, uint32_t y) {
  return (pln_pair_of){x, y, look_up(p->to, x), look_up(p->from, y)};
}

pln_status pln_bijection_restore(pln_bijection *p, const pln_pair_of *had) {
  PLN_TRY(pln_idmap_set(p->to, had->x, had->of_x ? had->of_x : NO_IMAGE));
  return pln_idmap_set(p->from, had->y, had->of_y ? had->of_y : NO_IMAGE);
}
