/* einsum_equation.c: parses einsum equations. Called by einsum.c and
 * kernel/matmul/einsum.c.
 *
 * The text may be any bytes. Spaces are ignored, except within "..." and
 * "->". */

#include "op/infer/einsum_equation.h"

static size_t find_arrow(pln_slice s) {
  for (size_t i = 0; i + 1 < s.size; i++)
    if (s.data[i] == '-' && s.data[i + 1] == '>')
      return i;
  return s.size;
}

void pln_equation_split(pln_slice text, pln_equation *out) {
  size_t arrow = find_arrow(text);
  /* an empty text has one term without letters */
  const char *data = text.data ? text.data : "";
  *out = (pln_equation){.left = {data, arrow}, .arrow = arrow < text.size};
  if (out->arrow)
    out->right = (pln_slice){data + arrow + 2, text.size - arrow - 2};
}

bool pln_equation_next(pln_slice *left, pln_slice *term) {
  if (!left->data)
    return false;
  const char *comma =
      left->size ? memchr(left->data, ',', left->size) : (const char *)NULL;
  *term = *left;
  *left = (pln_slice){NULL, 0};
  if (comma) {
    size_t rest = term->size - (size_t)(comma - term->data) - 1;
    term->size -= rest + 1;
    *left = (pln_slice){comma + 1, rest};
  }
  return true;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool pln_term_read(pln_slice text, pln_einsum_term *out, char *stray) {
  *out = (pln_einsum_term){0};
  for (size_t i = 0; i < text.size; i++) {
    char c = *stray = text.data[i];
    if (is_letter(c) && out->n == PLN_MAX_RANK) {
      *stray = 0;
      return false;
    }
    if (is_letter(c)) {
      out->letters[out->n++] = (unsigned char)c;
    } else if (text.size - i >= 3 && !memcmp(text.data + i, "...", 3) &&
               !out->dotted) {
      out->dotted = true;
      out->dots = out->n;
      i += 2;
    } else if (c != ' ') {
      return false;
    }
  }
  return true;
}

bool pln_term_labels(const pln_einsum_term *term, uint32_t rank,
                     unsigned char *out) {
  if (rank > PLN_MAX_RANK || (term->dotted ? rank < term->n : rank != term->n))
    return false;
  uint32_t hidden = rank - term->n;
  for (uint32_t i = 0; i < term->n; i++)
    out[term->dotted && i >= term->dots ? i + hidden : i] = term->letters[i];
  for (uint32_t i = 0; i < hidden; i++)
    out[term->dots + i] = (unsigned char)(PLN_DOTS + hidden - 1 - i);
  return true;
}
