/* regex_class.c: classes of characters of regular expressions: those of ASCII
 * by letter or name. Called by pattern.c. */

#include "op/kernel/string/regex.h"

static const uint32_t LAST = 0x10ffff;

/* Ranges in order, none touches the next; a first of {1, 0} ends them. */
typedef struct named_class {
  const char *name;
  pln_char_range ranges[5];
} named_class;

#define END \
  { 1, 0 }
static const named_class classes[] = {
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, END}},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}, END}},
    {"ascii", {{0, 0x7f}, END}},
    {"blank", {{'\t', '\t'}, {' ', ' '}, END}},
    {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}, END}},
    {"digit", {{'0', '9'}, END}},
    {"graph", {{'!', '~'}, END}},
    {"lower", {{'a', 'z'}, END}},
    {"print", {{' ', '~'}, END}},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}, END}},
    {"space", {{'\t', '\r'}, {' ', ' '}, END}},
    {"upper", {{'A', 'Z'}, END}},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, END}},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}, END}},
    /* \s has no vertical tab. */
    {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}, END}},
};
#undef END

pln_status pln_pattern_add_range(pln_pattern *p, uint32_t low, uint32_t high) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->ranges, &p->range_room,
                       (size_t)p->n_ranges + 1, sizeof *p->ranges));
  p->ranges[p->n_ranges++] = (pln_char_range){low, high};
  p->sets[p->n_sets - 1].count++;
  return PLN_OK;
}

static bool has(const named_class *c, uint32_t x) {
  for (const pln_char_range *r = c->ranges; r->low <= r->high; r++)
    if (x >= r->low && x <= r->high)
      return true;
  return false;
}

/* From `low` on, but for the long s and the sign of kelvin. */
static pln_status add_without_s_and_k(pln_pattern *p, uint32_t low) {
  PLN_TRY(pln_pattern_add_range(p, low, 0x17e));
  PLN_TRY(pln_pattern_add_range(p, 0x180, 0x2129));
  return pln_pattern_add_range(p, 0x212b, LAST);
}

/* All that the class has not. What is one letter with one of its own is none of
 * the others. */
static pln_status add_others(pln_pattern *p, const named_class *c) {
  bool folded = p->sets[p->n_sets - 1].folded;
  uint32_t next = 0;
  for (const pln_char_range *r = c->ranges; r->low <= r->high; r++) {
    if (r->low > next)
      PLN_TRY(pln_pattern_add_range(p, next, r->low - 1));
    next = r->high + 1;
  }
  return folded && has(c, 'k') ? add_without_s_and_k(p, next)
                               : pln_pattern_add_range(p, next, LAST);
}

static pln_status add_class(pln_pattern *p, const named_class *c) {
  for (const pln_char_range *r = c->ranges; r->low <= r->high; r++)
    PLN_TRY(pln_pattern_add_range(p, r->low, r->high));
  return PLN_OK;
}

/* Where small and capital letters are one, these are the same. */
static pln_slice folded_name(const pln_pattern *p, pln_slice name) {
  bool one = pln_slice_is(name, "lower") || pln_slice_is(name, "upper");
  return one && p->sets[p->n_sets - 1].folded ? pln_text("alpha") : name;
}

static pln_status add_by_name(pln_pattern *p, pln_slice name, bool others,
                              bool *known) {
  name = folded_name(p, name);
  for (size_t i = 0; i < PLN_COUNT(classes); i++)
    if (pln_slice_is(name, classes[i].name)) {
      *known = true;
      return (others ? add_others : add_class)(p, &classes[i]);
    }
  *known = false;
  return PLN_OK;
}

pln_status pln_pattern_add_letter(pln_pattern *p, char letter, bool *known) {
  *known = true;
  switch (letter) {
  case 'd':
  case 'D': return add_by_name(p, pln_text("digit"), letter == 'D', known);
  case 'w':
  case 'W': return add_by_name(p, pln_text("word"), letter == 'W', known);
  case 's':
  case 'S': return add_by_name(p, pln_text("s"), letter == 'S', known);
  }
  *known = false;
  return PLN_OK;
}

pln_status pln_pattern_add_named(pln_pattern *p, pln_slice name, bool *known) {
  bool others = name.size > 0 && *name.data == '^';
  if (others)
    name = (pln_slice){name.data + 1, name.size - 1};
  *known = false;
  return name.size < 2 ? PLN_OK : add_by_name(p, name, others, known);
}
