/* hash.c: hashes bytes, eight at a time. Used by every table and by structural
 * hashing. The value depends on the machine's byte order and must never be
 * stored. */

#include "base/base.h"

static uint64_t load_hash_word(const unsigned char *p, size_t n) {
  uint64_t word = 0;
  memcpy(&word, p, n);
  return word;
}

uint64_t pln_hash_bytes(const void *bytes, size_t size, uint64_t seed) {
  const unsigned char *p = bytes;
  uint64_t hash = pln_hash_mix(seed, size);
  size_t left = size;
  for (; left >= 8; left -= 8, p += 8)
    hash = pln_hash_mix(hash, load_hash_word(p, 8));
  if (left)
    hash = pln_hash_mix(hash, load_hash_word(p, left));
  hash *= 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 29);
}
