/* rng.h: the counter-based random number generator of random operators
 * (splitmix64). */

#ifndef PLN_OP_KERNEL_RANDOM_RNG_H
#define PLN_OP_KERNEL_RANDOM_RNG_H

#include "op/kernel/kernel.h"

/* The random numbers of one call; each is a function of the key and its
 * index. */
typedef struct pln_rng {
  uint64_t key;
} pln_rng;

/* Seeded by the call's attribute `seed`, else by the next number of the run. */
pln_rng pln_rng_begin(const pln_kernel_call *call);

static inline uint64_t pln_rng_bits(pln_rng rng, uint64_t index) {
  return pln_splitmix64_at(rng.key, index);
}
/* A number in [0, 1), a multiple of 2^-53. */
static inline double pln_rng_unit(pln_rng rng, uint64_t index) {
  return (double)(int64_t)(pln_rng_bits(rng, index) >> 11) * 0x1p-53;
}

#endif
