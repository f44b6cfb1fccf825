/* rng.h: the numbers that random operators draw. */

#ifndef PLN_OP_KERNEL_RANDOM_RNG_H
#define PLN_OP_KERNEL_RANDOM_RNG_H

#include "op/kernel/kernel.h"

/* All numbers that one call may draw, each by its index. */
typedef struct pln_rng {
  uint64_t key;
} pln_rng;

/* Those of the call's attribute `seed`, or else the next ones of the run. */
pln_rng pln_rng_begin(const pln_kernel_call *call);

static inline uint64_t pln_rng_bits(pln_rng rng, uint64_t index) {
  return pln_splitmix64_at(rng.key, index);
}
/* Within [0, 1), in steps of 2^-53. */
static inline double pln_rng_unit(pln_rng rng, uint64_t index) {
  return (double)(int64_t)(pln_rng_bits(rng, index) >> 11) * 0x1p-53;
}

#endif
