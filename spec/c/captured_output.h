/* captured_output.h: what a pln_write_fn was given, kept as one text. */

#ifndef WRITTEN_H
#define WRITTEN_H

#include "perilune.h"

#include <string.h>

typedef struct text {
  char data[16384];
  size_t size;
} text;

static inline pln_status append(void *ud, const char *data, size_t size) {
  text *t = ud;
  if (size > sizeof t->data - 1 - t->size)
    return PLN_ERR_LIMIT;
  memcpy(t->data + t->size, data, size);
  t->data[t->size += size] = '\0';
  return PLN_OK;
}

#endif
