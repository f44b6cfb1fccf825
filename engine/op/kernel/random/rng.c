/* rng.c: keys of random operators. Called by the kernels of random.c and by
 * dropout.c.
 *
 * Bits are splitmix64 of a counter (Steele, Lea, Flood: Fast splittable
 * pseudorandom number generators, 2014), once to make a key per call and
 * then for the numbers of the call. Calls share only the number of calls so
 * far in a run, so that an element does not depend on how many other
 * elements there are. */

#include "op/kernel/random/rng.h"

void pln_engine_set_seed(pln_engine *engine, uint64_t seed) {
  engine->random_seed = seed;
}

uint64_t pln_engine_seed(const pln_engine *engine) {
  return engine->random_seed;
}

pln_rng pln_rng_begin(const pln_kernel_call *call) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, "seed");
  pln_rng root = {pln_splitmix64(call->engine->random_seed)};
  uint64_t bits;
  if (a && a->kind == PLN_ATTR_FLOAT)
    memcpy(&bits, &a->v.f, sizeof bits);
  else if (a && a->kind == PLN_ATTR_INT)
    bits = (uint64_t)a->v.i;
  else
    return (pln_rng){pln_rng_bits(root, call->engine->random_calls++)};
  return (pln_rng){pln_splitmix64_at(bits, 0)};
}
