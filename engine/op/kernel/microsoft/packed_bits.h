/* packed_bits.h: unsigned integers of a few bits, packed into bytes. Used by
 * the kernels of products with packed weights. */

#ifndef PLN_OP_KERNEL_MICROSOFT_PACKED_BITS_H
#define PLN_OP_KERNEL_MICROSOFT_PACKED_BITS_H

#include <stddef.h>
#include <stdint.h>

/* Element `i` of packed bits, at most 8 each, low bits first. */
static inline uint32_t pln_bits_at(const uint8_t *data, size_t i,
                                   uint32_t bits) {
  size_t at = i * bits;
  uint32_t word = data[at / 8];
  if (at % 8 + bits > 8)
    word |= (uint32_t)data[at / 8 + 1] << 8;
  return word >> at % 8 & ((1u << bits) - 1);
}

#endif
