/* regex.c: regular expressions in RE2's syntax become programs. Called by
 * pattern_match.c.
 *
 * The text is read once. Groups that are open lie on a stack of their own; what
 * a repetition or an alternative comes in front of is moved up. What holds: a
 * program has at most LONGEST steps, however often parts are repeated. */

#include "op/kernel/string/regex.h"

#include "op/kernel/string/utf8.h"

enum { LONGEST = 1 << 16, MOST_REPEATS = 1000, ENDLESS = -1 };
enum { FOLD = 1, LINES = 2, DOT_ALL = 4, LAZY = 8 }; /* (?imsU) */

/* A group that is open. */
typedef struct group {
  uint32_t begin;  /* its first step */
  uint32_t branch; /* that of its present alternative */
  int32_t jumps;   /* the last jump to its end, a list through x; -1 */
  uint32_t flags;  /* of what is around it */
} group;

typedef struct reader {
  const pln_kernel_call *call;
  pln_pattern *p;
  pln_slice text;
  size_t at;
  uint32_t flags;
  group *groups; /* the whole expression is the first */
  uint32_t n_groups, group_room;
  uint32_t atom;           /* the last part's first step */
  bool has_atom, repeated; /* repeated: the last part has been already */
} reader;

static pln_status wrong(const reader *r, const char *what) {
  return pln_kernel_refuse(r->call, "pattern, byte %zu: %s", r->at + 1, what);
}

/* -------------------------------------------------------------------- steps */

/* Makes room for n steps at `at`. */
static pln_status insert(reader *r, uint32_t at, uint32_t n) {
  pln_pattern *p = r->p;
  if (n > LONGEST - p->n_steps)
    return wrong(r, "the pattern is too long");
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->steps, &p->step_room,
                       (size_t)p->n_steps + n, sizeof *p->steps));
  memmove(p->steps + at + n, p->steps + at,
          (p->n_steps - at) * sizeof *p->steps);
  p->n_steps += n;
  return PLN_OK;
}

static pln_status put(reader *r, uint32_t at, pln_pattern_op op, int32_t x,
                      int32_t y) {
  PLN_TRY(insert(r, at, 1));
  r->p->steps[at] = (pln_pattern_step){op, x, y};
  return PLN_OK;
}

/* A new part of one step. */
static pln_status put_atom(reader *r, pln_pattern_op op, int32_t x) {
  r->atom = r->p->n_steps;
  r->has_atom = true;
  return put(r, r->atom, op, x, 0);
}

/* An empty set that the present flags hold for, and a step that takes it. */
static pln_status begin_set(reader *r) {
  pln_pattern *p = r->p;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->sets, &p->set_room,
                       (size_t)p->n_sets + 1, sizeof *p->sets));
  bool folded = (r->flags & FOLD) != 0;
  if (folded && !p->letters) {
    p->letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!p->letters)
      return wrong(r, "the C library has no locale C.UTF-8");
  }
  p->sets[p->n_sets] = (pln_char_set){p->n_ranges, 0, false, folded};
  return put_atom(r, PLN_PATTERN_SET, (int32_t)p->n_sets++);
}

static pln_status put_char(reader *r, uint32_t c) {
  PLN_TRY(begin_set(r));
  return pln_pattern_add_range(r->p, c, c);
}

static pln_status put_dot(reader *r) {
  PLN_TRY(begin_set(r));
  r->p->sets[r->p->n_sets - 1].negated = true;
  return r->flags & DOT_ALL ? PLN_OK : pln_pattern_add_range(r->p, '\n', '\n');
}

/* ------------------------------------------------------------------ repeating
 */

/* The n steps of the last part once more. */
static pln_status copy_atom(reader *r, uint32_t n) {
  uint32_t end = r->p->n_steps;
  PLN_TRY(insert(r, end, n));
  memcpy(r->p->steps + end, r->p->steps + r->atom, n * sizeof *r->p->steps);
  return PLN_OK;
}

static pln_status repeat_endlessly(reader *r, int32_t least) {
  int32_t n = (int32_t)(r->p->n_steps - r->atom);
  if (least == 0) {
    PLN_TRY(put(r, r->atom, PLN_PATTERN_SPLIT, 1, n + 2));
    return put(r, r->p->n_steps, PLN_PATTERN_JUMP, -(n + 1), 0);
  }
  for (int32_t i = 1; i < least; i++)
    PLN_TRY(copy_atom(r, (uint32_t)n));
  return put(r, r->p->n_steps, PLN_PATTERN_SPLIT, -n, 1);
}

/* After `least` copies each one more may be the last. */
static pln_status repeat_counted(reader *r, int32_t least, int32_t most) {
  uint32_t n = r->p->n_steps - r->atom, begin = r->atom;
  if (most == 0) {
    r->p->n_steps = r->atom;
    return PLN_OK;
  }
  for (int32_t i = 1; i < most; i++) {
    if (i >= least)
      PLN_TRY(put(r, r->p->n_steps, PLN_PATTERN_SPLIT, 1, 0));
    PLN_TRY(copy_atom(r, n));
  }
  if (least == 0) {
    PLN_TRY(put(r, begin, PLN_PATTERN_SPLIT, 1, 0));
    begin++;
  }
  uint32_t end = r->p->n_steps;
  for (int32_t i = 0; i < most - (least > 0 ? least : 1); i++) {
    uint32_t split = end - (uint32_t)(i + 1) * (n + 1);
    r->p->steps[split].y = (int32_t)(end - split);
  }
  if (least == 0)
    r->p->steps[begin - 1].y = (int32_t)(end - (begin - 1));
  return PLN_OK;
}

static pln_status repeat(reader *r, int32_t least, int32_t most) {
  if (!r->has_atom)
    return wrong(r, "there is nothing to repeat");
  if (r->repeated)
    return wrong(r, "what is repeated already");
  if (r->at < r->text.size && r->text.data[r->at] == '?')
    r->at++; /* which match is preferred makes no difference */
  r->repeated = true;
  return most == ENDLESS ? repeat_endlessly(r, least)
                         : repeat_counted(r, least, most);
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* A number at *at, which is moved past it; -1: there is none. */
static int32_t read_count(const reader *r, size_t *at) {
  int32_t n = -1;
  for (; *at < r->text.size && is_digit(r->text.data[*at]); ++*at) {
    n = n < 0 ? 0 : n;
    n = n > MOST_REPEATS ? n : n * 10 + (r->text.data[*at] - '0');
  }
  return n;
}

static char char_at(const reader *r, size_t at) {
  return at < r->text.size ? r->text.data[at] : 0;
}

/* {n}, {n,}, {n,m}; any other brace is a character. */
static pln_status read_brace(reader *r) {
  size_t at = r->at;
  int32_t least = read_count(r, &at), most = least;
  if (least >= 0 && char_at(r, at) == ',') {
    at++;
    most = char_at(r, at) == '}' ? ENDLESS : read_count(r, &at);
    if (most == -1 && char_at(r, at - 1) == ',' && char_at(r, at) != '}')
      least = -1;
  }
  if (least < 0 || char_at(r, at) != '}') {
    r->repeated = false;
    return put_char(r, '{');
  }
  if (least > MOST_REPEATS || most > MOST_REPEATS ||
      (most != ENDLESS && most < least))
    return wrong(r, "no such count of repetitions");
  r->at = at + 1;
  return repeat(r, least, most);
}

/* -------------------------------------------------------------------- groups
 */

static pln_status open_group(reader *r, uint32_t outer_flags) {
  PLN_TRY(pln_mem_grow(r->p->engine, (void **)&r->groups, &r->group_room,
                       (size_t)r->n_groups + 1, sizeof *r->groups));
  uint32_t at = r->p->n_steps;
  r->groups[r->n_groups++] = (group){at, at, -1, outer_flags};
  r->has_atom = false;
  return PLN_OK;
}

/* What came before is one alternative; its end jumps to that of the group. */
static pln_status alternate(reader *r) {
  group *g = &r->groups[r->n_groups - 1];
  int32_t n = (int32_t)(r->p->n_steps - g->branch);
  PLN_TRY(put(r, g->branch, PLN_PATTERN_SPLIT, 1, n + 2));
  PLN_TRY(put(r, r->p->n_steps, PLN_PATTERN_JUMP, g->jumps, 0));
  g->jumps = (int32_t)r->p->n_steps - 1;
  g->branch = r->p->n_steps;
  r->has_atom = false;
  return PLN_OK;
}

static void end_group(reader *r) {
  const group *g = &r->groups[--r->n_groups];
  for (int32_t at = g->jumps, next; at >= 0; at = next) {
    next = r->p->steps[at].x;
    r->p->steps[at].x = (int32_t)r->p->n_steps - at;
  }
  r->flags = g->flags;
  r->atom = g->begin;
  r->has_atom = true;
}

static bool is_word(char c) {
  return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         c == '_';
}

/* (?P<name> and (?<name>: the name. */
static pln_status read_name(reader *r) {
  size_t begin = r->at;
  while (r->at < r->text.size && is_word(r->text.data[r->at]))
    r->at++;
  if (r->at == begin || char_at(r, r->at) != '>')
    return wrong(r, "no name of a group");
  r->at++;
  return open_group(r, r->flags);
}

static uint32_t flag_of(char c) {
  switch (c) {
  case 'i': return FOLD;
  case 'm': return LINES;
  case 's': return DOT_ALL;
  case 'U': return LAZY;
  }
  return 0;
}

/* (?flags) for the rest of the group, (?flags: for one of its own. */
static pln_status read_flags(reader *r) {
  uint32_t flags = r->flags, outer = r->flags;
  bool off = false, any = false;
  for (; r->at < r->text.size; r->at++) {
    char c = r->text.data[r->at];
    uint32_t flag = flag_of(c);
    if (flag) {
      flags = off ? flags & ~flag : flags | flag;
      any = true;
    } else if (c == '-' && !off) {
      off = true;
      any = false;
    } else if ((c == ')' || c == ':') && (any || (!off && c == ':'))) {
      r->at++;
      r->flags = flags;
      return c == ')' ? PLN_OK : open_group(r, outer);
    } else {
      break;
    }
  }
  return wrong(r, "no group that is known");
}

static bool takes(reader *r, const char *text) {
  size_t n = strlen(text);
  if (r->text.size - r->at < n || memcmp(r->text.data + r->at, text, n))
    return false;
  r->at += n;
  return true;
}

static pln_status read_group(reader *r) {
  if (!takes(r, "?"))
    return open_group(r, r->flags);
  if (takes(r, "P<") || takes(r, "<"))
    return read_name(r);
  return read_flags(r);
}

/* -------------------------------------------------------------------- escapes
 */

static int32_t hex_of(char c) {
  return is_digit(c)            ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* \x{10ffff} or \x7f, behind the x; -1 when there is no such character. */
static int32_t read_hex(reader *r) {
  bool braces = takes(r, "{");
  int32_t c = 0, n = 0;
  for (; n < (braces ? 8 : 2) && hex_of(char_at(r, r->at)) >= 0; n++, r->at++)
    c = c > 0x10ffff ? c : c * 16 + hex_of(r->text.data[r->at]);
  if (braces ? n == 0 || !takes(r, "}") : n < 2)
    return -1;
  return c <= 0x10ffff ? c : -1;
}

/* \0, \012, \123; \1 to \7 alone would be what a group has matched. */
static int32_t read_octal(reader *r, char first) {
  int32_t c = first - '0', n = 1;
  for (; n < 3 && char_at(r, r->at) >= '0' && char_at(r, r->at) <= '7'; n++)
    c = c * 8 + (r->text.data[r->at++] - '0');
  return first != '0' && n == 1 ? -1 : c;
}

static int32_t control_of(char letter) {
  switch (letter) {
  case 'a': return '\a';
  case 'f': return '\f';
  case 'n': return '\n';
  case 'r': return '\r';
  case 't': return '\t';
  case 'v': return '\v';
  }
  return -1;
}

/* The character that a backslash and what follows stand for; -1: none. */
static int32_t read_escaped(reader *r) {
  if (r->at == r->text.size)
    return -1;
  char c = r->text.data[r->at++];
  if (c == 'x')
    return read_hex(r);
  if (c >= '0' && c <= '7')
    return read_octal(r, c);
  if (is_word(c) && c != '_')
    return control_of(c);
  return (unsigned char)c < 0x80 ? c : -1;
}

/* \Q to \E, or to the end. */
static pln_status read_quoted(reader *r) {
  while (r->at < r->text.size && !takes(r, "\\E")) {
    size_t n;
    pln_slice rest = {r->text.data + r->at, r->text.size - r->at};
    int32_t c = pln_utf8_decode(rest, &n);
    if (c < 0)
      return wrong(r, "no UTF-8");
    r->at += n;
    r->repeated = false;
    PLN_TRY(put_char(r, (uint32_t)c));
  }
  return PLN_OK;
}

static pln_status read_escape(reader *r) {
  bool known = false;
  char c = char_at(r, r->at);
  switch (c) {
  case 'A': r->at++; return put_atom(r, PLN_PATTERN_TEXT_BEGIN, 0);
  case 'z': r->at++; return put_atom(r, PLN_PATTERN_TEXT_END, 0);
  case 'b': r->at++; return put_atom(r, PLN_PATTERN_WORD_EDGE, 0);
  case 'B': r->at++; return put_atom(r, PLN_PATTERN_NO_EDGE, 0);
  case 'Q': r->at++; return read_quoted(r);
  }
  if (c && strchr("dDwWsS", c)) {
    r->at++;
    PLN_TRY(begin_set(r));
    return pln_pattern_add_letter(r->p, c, &known);
  }
  if (c && strchr("pPC", c))
    return wrong(r, "names of Unicode and single bytes are not known here");
  int32_t meant = read_escaped(r);
  return meant < 0 ? wrong(r, "no escape that is known")
                   : put_char(r, (uint32_t)meant);
}

/* -------------------------------------------------------------------- classes
 */

/* One character of a class, escaped or not; -1: none. */
static int32_t read_class_char(reader *r) {
  size_t n;
  pln_slice rest = {r->text.data + r->at, r->text.size - r->at};
  if (takes(r, "\\"))
    return read_escaped(r);
  int32_t c = rest.size ? pln_utf8_decode(rest, &n) : -1;
  r->at += c < 0 ? 0 : n;
  return c;
}

static pln_status read_class_range(reader *r) {
  int32_t low = read_class_char(r), high = low;
  if (char_at(r, r->at) == '-' && r->at + 1 < r->text.size &&
      r->text.data[r->at + 1] != ']') {
    r->at++;
    high = read_class_char(r);
  }
  if (low < 0 || high < low)
    return wrong(r, "no range of characters");
  return pln_pattern_add_range(r->p, (uint32_t)low, (uint32_t)high);
}

/* [:name:] within a class; *known is false when there is no such thing. */
static pln_status read_class_name(reader *r, bool *known) {
  size_t begin = r->at + 2, end = begin;
  while (end + 1 < r->text.size && memcmp(r->text.data + end, ":]", 2))
    end++;
  *known = end + 1 < r->text.size;
  if (!*known)
    return PLN_OK;
  pln_slice name = {r->text.data + begin, end - begin};
  PLN_TRY(pln_pattern_add_named(r->p, name, known));
  if (!*known)
    return wrong(r, "no class that is known");
  r->at = end + 2;
  return PLN_OK;
}

static pln_status read_class_item(reader *r) {
  bool known = false;
  if (char_at(r, r->at) == '[' && char_at(r, r->at + 1) == ':') {
    PLN_TRY(read_class_name(r, &known));
    if (known)
      return PLN_OK;
  }
  if (char_at(r, r->at) == '\\')
    PLN_TRY(pln_pattern_add_letter(r->p, char_at(r, r->at + 1), &known));
  if (!known)
    return read_class_range(r);
  r->at += 2;
  return PLN_OK;
}

static pln_status read_class(reader *r) {
  PLN_TRY(begin_set(r));
  uint32_t set = r->p->n_sets - 1;
  r->p->sets[set].negated = takes(r, "^");
  for (bool first = true; first || char_at(r, r->at) != ']'; first = false) {
    if (r->at == r->text.size)
      return wrong(r, "a class without its end");
    PLN_TRY(read_class_item(r));
  }
  r->at++;
  return PLN_OK;
}

/* -------------------------------------------------------------------- reading
 */

static pln_status read_next(reader *r) {
  size_t n;
  pln_slice rest = {r->text.data + r->at, r->text.size - r->at};
  int32_t c = pln_utf8_decode(rest, &n);
  bool lines = (r->flags & LINES) != 0;
  if (c < 0)
    return wrong(r, "no UTF-8");
  r->at += n;
  switch (c) {
  case '*': return repeat(r, 0, ENDLESS);
  case '+': return repeat(r, 1, ENDLESS);
  case '?': return repeat(r, 0, 1);
  case '{': return read_brace(r);
  }
  r->repeated = false;
  switch (c) {
  case '(': return read_group(r);
  case '|': return alternate(r);
  case '[': return read_class(r);
  case '.': return put_dot(r);
  case '\\': return read_escape(r);
  case '^':
    return put_atom(r, lines ? PLN_PATTERN_LINE_BEGIN : PLN_PATTERN_TEXT_BEGIN,
                    0);
  case '$':
    return put_atom(r, lines ? PLN_PATTERN_LINE_END : PLN_PATTERN_TEXT_END, 0);
  case ')':
    if (r->n_groups < 2)
      return wrong(r, "no group is open");
    end_group(r);
    return PLN_OK;
  }
  return put_char(r, (uint32_t)c);
}

static pln_status read_all(reader *r) {
  PLN_TRY(open_group(r, 0));
  while (r->at < r->text.size)
    PLN_TRY(read_next(r));
  if (r->n_groups > 1)
    return wrong(r, "a group without its end");
  end_group(r);
  return put(r, r->p->n_steps, PLN_PATTERN_MATCH, 0, 0);
}

pln_status pln_pattern_read(const pln_kernel_call *call, pln_slice text,
                            pln_pattern *out) {
  *out = (pln_pattern){.engine = call->engine};
  reader r = {.call = call, .p = out, .text = text};
  pln_status status = read_all(&r);
  pln_mem_free(call->engine, r.groups, r.group_room * sizeof *r.groups);
  return status;
}

void pln_pattern_free(pln_pattern *p) {
  pln_mem_free(p->engine, p->steps, p->step_room * sizeof *p->steps);
  pln_mem_free(p->engine, p->sets, p->set_room * sizeof *p->sets);
  pln_mem_free(p->engine, p->ranges, p->range_room * sizeof *p->ranges);
  if (p->letters)
    freelocale(p->letters);
}
