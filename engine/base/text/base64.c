/* base64.c: base64 (RFC 4648), for tensors in text and for Lua. */

#include "base/text/base64.h"

void pln_base64_encode(const uint8_t *bytes, uint32_t n, char out[4]) {
  static const char letters[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t word = 0;
  for (uint32_t i = 0; i < 3; i++)
    word = word << 8 | (i < n ? bytes[i] : 0u);
  for (uint32_t i = 0; i < 4; i++)
    out[i] = i > n ? '=' : letters[word >> (18 - 6 * i) & 63];
}

/* The value of a letter, or -1. */
static int letter_value(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t pln_base64_decode(pln_slice text, uint8_t *out, size_t room) {
  uint32_t word = 0, bits = 0;
  size_t n = 0;
  while (text.size > 0 && text.data[text.size - 1] == '=')
    text.size--;
  for (size_t i = 0; i < text.size; i++) {
    int six = letter_value(text.data[i]);
    if (six < 0)
      return SIZE_MAX;
    word = (word << 6 | (uint32_t)six) & 0xffffff;
    bits += 6;
    if (bits < 8)
      continue;
    bits -= 8;
    if (n < room)
      out[n] = (uint8_t)(word >> bits);
    n++;
  }
  return n;
}
