/* source_text.h: what the parsers of the text formats share: quoting a text in
 * messages, escapes in strings, digits. */

#ifndef PLN_BASE_SOURCE_TEXT_H
#define PLN_BASE_SOURCE_TEXT_H

#include "base/base.h"

enum { PLN_LONGEST_LINE = 4096 };

/* A piece of a parsed text and where it begins, both counted from 1. */
typedef struct pln_text_place {
  pln_slice piece;
  uint32_t row, column;
} pln_text_place;

/* The span of a piece of `text`. Its line is copied to `line`, which has room
 * for PLN_LONGEST_LINE bytes, unless the piece begins too far to the right. */
pln_span pln_text_span(pln_slice text, const char *source,
                       const pln_text_place *place, char *line);
/* Quotes a piece for a message: `'add'`. Long pieces are cut. */
const char *pln_text_quote(pln_slice piece, char *text, size_t size);

/* Appends a string with the escapes \" \\ \n \t \r \xHH resolved. An unknown
 * escape is kept as it is. */
pln_status pln_text_unescape(pln_slice text, pln_buffer *out) PLN_CHECKED;

/* Converts decimal digits; false if the value does not fit in an int64. 2^63
 * fits only with a minus sign. */
bool pln_text_digits(pln_slice digits, bool negative, int64_t *out);

#endif
