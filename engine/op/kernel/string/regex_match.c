/* regex_match.c: regex_full_match: whether whole strings match a regular
 * expression. Called through ops.def.
 *
 * All ways through the program are followed side by side, a character of the
 * string at a time (K. Thompson, "Regular expression search algorithm", 1968):
 * time grows with the length of the string times that of the program. */

#include <wctype.h>

#include "op/kernel/string/regex.h"
#include "op/kernel/string/utf8.h"

static const int32_t NO_CHAR = -1; /* before the first, after the last */

/* The steps that wait for a character; the states of all ways. */
typedef struct steps {
  uint32_t *list;
  uint32_t count;
} steps;

typedef struct matcher {
  const pln_pattern *p;
  steps now, next;
  uint32_t *stack, *seen; /* seen: in which round a step was reached */
  uint32_t round;
  bool matched;
} matcher;

/* ---------------------------------------------------------------- characters
 */

static bool in_ranges(const pln_pattern *p, const pln_char_set *s, uint32_t c) {
  for (uint32_t i = s->begin; i < s->begin + s->count; i++)
    if (c >= p->ranges[i].low && c <= p->ranges[i].high)
      return true;
  return false;
}

/* A letter of another size is one with those that are the same in small or in
 * capitals. */
static bool in_folded(const pln_pattern *p, const pln_char_set *s, uint32_t c) {
  uint32_t lower = (uint32_t)towlower_l((wint_t)c, p->letters);
  uint32_t upper = (uint32_t)towupper_l((wint_t)c, p->letters);
  return in_ranges(p, s, c) || in_ranges(p, s, lower) ||
         in_ranges(p, s, upper) ||
         in_ranges(p, s, (uint32_t)towlower_l((wint_t)upper, p->letters)) ||
         in_ranges(p, s, (uint32_t)towupper_l((wint_t)lower, p->letters));
}

static bool takes(const pln_pattern *p, uint32_t set, uint32_t c) {
  const pln_char_set *s = &p->sets[set];
  return (s->folded ? in_folded(p, s, c) : in_ranges(p, s, c)) != s->negated;
}

static bool is_word(int32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z') || c == '_';
}

/* Whether an assertion holds between two characters. */
static bool holds(pln_pattern_op op, int32_t before, int32_t after) {
  switch (op) {
  case PLN_PATTERN_TEXT_BEGIN: return before == NO_CHAR;
  case PLN_PATTERN_TEXT_END: return after == NO_CHAR;
  case PLN_PATTERN_LINE_BEGIN: return before == NO_CHAR || before == '\n';
  case PLN_PATTERN_LINE_END: return after == NO_CHAR || after == '\n';
  case PLN_PATTERN_WORD_EDGE: return is_word(before) != is_word(after);
  case PLN_PATTERN_NO_EDGE: return is_word(before) == is_word(after);
  case PLN_PATTERN_SET:
  case PLN_PATTERN_SPLIT:
  case PLN_PATTERN_JUMP:
  case PLN_PATTERN_MATCH: break;
  }
  return false;
}

/* --------------------------------------------------------------------- rounds
 */

static void reach(matcher *m, uint32_t step, uint32_t *height) {
  if (m->seen[step] == m->round)
    return;
  m->seen[step] = m->round;
  m->stack[(*height)++] = step;
}

/* Follows `step` up to where characters are taken. */
static void follow(matcher *m, uint32_t step, int32_t before, int32_t after) {
  uint32_t height = 0;
  reach(m, step, &height);
  while (height > 0) {
    uint32_t at = m->stack[--height];
    const pln_pattern_step *s = &m->p->steps[at];
    if (s->op == PLN_PATTERN_SET) {
      m->next.list[m->next.count++] = at;
    } else if (s->op == PLN_PATTERN_MATCH) {
      m->matched = true;
    } else if (s->op == PLN_PATTERN_SPLIT || s->op == PLN_PATTERN_JUMP) {
      reach(m, (uint32_t)((int32_t)at + s->x), &height);
      if (s->op == PLN_PATTERN_SPLIT)
        reach(m, (uint32_t)((int32_t)at + s->y), &height);
    } else if (holds(s->op, before, after)) {
      reach(m, at + 1, &height);
    }
  }
}

/* What waits next becomes what waits now. */
static void begin_round(matcher *m) {
  steps last = m->now;
  m->now = m->next;
  m->next = (steps){last.list, 0};
  m->matched = false;
  if (++m->round == 0) { /* all rounds have been */
    memset(m->seen, 0, m->p->n_steps * sizeof *m->seen);
    m->round = 1;
  }
}

/* The first character of what is left; NO_CHAR at the end, -2: no UTF-8. */
static int32_t peek(pln_slice s, size_t *n) {
  *n = 0;
  if (s.size == 0)
    return NO_CHAR;
  int32_t c = pln_utf8_decode(s, n);
  return c < 0 ? -2 : c;
}

/* False when the string is no UTF-8. */
static bool match(matcher *m, pln_slice text, bool *out) {
  size_t n;
  int32_t before = NO_CHAR, c = peek(text, &n);
  m->next.count = 0;
  begin_round(m);
  follow(m, 0, NO_CHAR, c);
  while (c >= 0) {
    text = (pln_slice){text.data + n, text.size - n};
    before = c;
    c = peek(text, &n);
    begin_round(m);
    for (uint32_t i = 0; i < m->now.count; i++) {
      uint32_t at = m->now.list[i];
      if (takes(m->p, (uint32_t)m->p->steps[at].x, (uint32_t)before))
        follow(m, at + 1, before, c);
    }
  }
  *out = m->matched;
  return c == NO_CHAR;
}

/* --------------------------------------------------------------------- kernel
 */

static pln_status match_all(pln_kernel_call *call, matcher *m) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_slice *texts = x->data;
  void *out;
  PLN_TRY(pln_kernel_unset(call, 0, PLN_BOOL, x->rank, x->dims, &out));
  for (size_t i = 0; i < x->count; i++) {
    bool is;
    if (!match(m, texts[i], &is))
      return pln_kernel_refuse(call, "a string is no UTF-8");
    ((uint8_t *)out)[i] = is;
  }
  return PLN_OK;
}

static pln_status run_pattern(pln_kernel_call *call, const pln_pattern *p) {
  size_t bytes = 4 * (size_t)p->n_steps * sizeof(uint32_t);
  uint32_t *memory = pln_mem_zeroed(call->engine, bytes);
  if (!memory)
    return pln_nomem(call->engine);
  matcher m = {.p = p,
               .now = {memory, 0},
               .next = {memory + p->n_steps, 0},
               .stack = memory + 2 * (size_t)p->n_steps,
               .seen = memory + 3 * (size_t)p->n_steps};
  pln_status status = match_all(call, &m);
  pln_mem_free(call->engine, memory, bytes);
  return status;
}

pln_status pln_kernel_regex_full_match(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_slice text = pln_attrs_string(call->engine, call->attrs, "pattern", "");
  pln_pattern pattern;
  if (x->dtype != PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  pln_status status = pln_pattern_read(call, text, &pattern);
  if (status == PLN_OK)
    status = run_pattern(call, &pattern);
  pln_pattern_free(&pattern);
  return status;
}
