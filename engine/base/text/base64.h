/* base64.h: bytes as text (RFC 4648, with padding). */

#ifndef PLN_BASE_BASE64_H
#define PLN_BASE_BASE64_H

#include "base/base.h"

/* The four letters of 1 to 3 bytes; "=" stands for bytes that are not there. */
void pln_base64_encode(const uint8_t *bytes, uint32_t n, char out[4]);
/* Writes at most `room` bytes and returns the number of all bytes, or SIZE_MAX
 * when a character is no letter of base64. Padding may be left out. */
size_t pln_base64_decode(pln_slice text, uint8_t *out, size_t room);

#endif
