/* suggest.c: finds the name most similar to a misspelled one, for diagnostics
 * about unknown passes, operators, options and keys. */

#include <stdio.h>

#include "base/base.h"

enum { LONGEST = 64, FAR = 1 << 20 };

static int lower(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static uint32_t min_u32(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

/* Restricted Damerau-Levenshtein distance (insert, delete, replace, swap
 * neighbours) times 256. A letter in the wrong case counts 1, to break ties. */
static uint32_t distance(const char *a, size_t n, const char *b, size_t m) {
  uint32_t rows[3][LONGEST + 1];
  uint32_t *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= m; j++)
    last[j] = (uint32_t)j * 256;
  for (size_t i = 1; i <= n; i++) {
    now[0] = (uint32_t)i * 256;
    for (size_t j = 1; j <= m; j++) {
      bool same = lower(a[i - 1]) == lower(b[j - 1]);
      uint32_t cost = !same ? 256 : a[i - 1] != b[j - 1];
      now[j] = min_u32(last[j - 1] + cost, min_u32(last[j], now[j - 1]) + 256);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = min_u32(now[j], before[j - 2] + 256);
    }
    uint32_t *free_row = before;
    before = last;
    last = now;
    now = free_row;
  }
  return last[m];
}

static uint32_t distance_to(const char *wanted, size_t n, const char *name) {
  size_t m = strlen(name);
  size_t apart = n < m ? m - n : n - m;
  return m > LONGEST || apart > n / 3 + 1 ? FAR : distance(wanted, n, name, m);
}

void pln_suggest(const char *wanted, uint32_t n, const char *const *names,
                 char *text, size_t size) {
  size_t length = strlen(wanted);
  /* Up to a third of the letters may differ, but not all of a short name. */
  uint32_t limit = (uint32_t)(length < 3 ? 0 : length < 6 ? 1 : length / 3);
  uint32_t best = limit * 256 + 255;
  const char *found = NULL;
  if (size)
    text[0] = 0;
  if (length > LONGEST)
    return;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = distance_to(wanted, length, names[i]);
    if (d < best) {
      best = d;
      found = names[i];
    }
  }
  if (found)
    snprintf(text, size, "; did you mean '%s'?", found);
}
