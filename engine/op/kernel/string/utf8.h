/* utf8.h: decodes and encodes UTF-8, one character at a time. */

#ifndef PLN_OP_KERNEL_STRING_UTF8_H
#define PLN_OP_KERNEL_STRING_UTF8_H

#include "base/base.h"

/* The first character of s, which is not empty; *n is its length in bytes.
 * Negative if it is not valid UTF-8. */
static inline int32_t pln_utf8_decode(pln_slice s, size_t *n) {
  static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *p = (const unsigned char *)s.data;
  *n = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
  if (*n == 1)
    return *p;
  if (*p < 0xc0 || *p > 0xf7 || *n > s.size)
    return -1;
  int32_t c = *p & (0x7f >> *n);
  for (size_t i = 1; i < *n; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return -1;
    c = c << 6 | (p[i] & 0x3f);
  }
  bool half = c >= 0xd800 && c <= 0xdfff;
  return c < least[*n] || c > 0x10ffff || half ? -1 : c;
}

/* Writes up to 4 bytes and returns their number. */
static inline size_t pln_utf8_encode(uint32_t c, char *to) {
  static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
  size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = n; i-- > 1; c >>= 6)
    to[i] = (char)(0x80 | (c & 0x3f));
  to[0] = (char)(marks[n] | c);
  return n;
}

#endif
