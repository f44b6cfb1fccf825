/* tir/script/names.c: unique names of variables and buffers. A name is chosen
 * when first needed, differs from every visible name, and is free again when
 * its frame ends.
 *
 * Called by the other files of the printer. */

#include <stdio.h>

#include "ir/tir/script/script.h"

static uint64_t script_name_key(const pln_script_printer *s, pln_ref ref) {
  const pln_node *n = &s->g->nodes[ref];
  return n->kind == PLN_VAR ? UINT64_C(1) << 40 | n->data
                            : UINT64_C(1) << 41 | ref;
}

const pln_script_name *pln_script_find(const pln_script_printer *s,
                                       pln_ref ref) {
  uint32_t row = pln_idmap_get(s->defined, script_name_key(s, ref));
  return row && s->names[row - 1].live ? &s->names[row - 1] : NULL;
}

/* -------------------------------------------------------------------- words */

static pln_status word_of(pln_script_printer *s, pln_slice text, uint32_t base,
                          uint32_t number, uint32_t *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(s->engine, text, &symbol));
  uint32_t known = pln_idmap_get(s->taken, symbol);
  if (known) {
    *out = known - 1;
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->words, &s->cap_words,
                       (size_t)s->n_words + 1, sizeof *s->words));
  *out = s->n_words;
  s->words[s->n_words++] =
      (pln_script_identifier){.symbol = symbol,
                              .base = base == PLN_NONE ? *out : base,
                              .number = number,
                              .low = 1};
  return pln_idmap_set(s->taken, symbol, *out + 1);
}

/* Longer names are cut so that the script stays readable. */
enum { MAX_LETTERS = 200 };

/* An identifier does not begin with a digit. */
static size_t sanitize(pln_slice name, char *out) {
  size_t n = 0;
  if (name.size > 0 && *name.data >= '0' && *name.data <= '9')
    out[n++] = '_';
  for (size_t i = 0; i < name.size && n < MAX_LETTERS; i++) {
    char c = name.data[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9');
    out[n++] = plain ? c : '_';
  }
  return n;
}

/* Python's keywords, and names that the text itself uses. A module is called
 * before its functions, "Module.". */
static bool is_reserved(const pln_script_printer *s, pln_slice name) {
  static const char *const words[] = {
      "False",  "None",     "True",     "and",    "as",       "assert",
      "async",  "await",    "break",    "class",  "continue", "def",
      "del",    "elif",     "else",     "except", "finally",  "for",
      "from",   "global",   "if",       "import", "in",       "is",
      "lambda", "metadata", "nonlocal", "not",    "or",       "pass",
      "raise",  "range",    "return",   "try",    "tvm",      "while",
      "with",   "yield"};
  size_t n = s->module ? strlen(s->module) : 0;
  if (n == name.size + 1 && !memcmp(s->module, name.data, name.size))
    return true;
  if (name.size < 2 || name.size > 8)
    return false;
  for (size_t i = 0; i < PLN_COUNT(words); i++)
    if (words[i][0] == *name.data && pln_slice_is(name, words[i]))
      return true;
  return false;
}

/* Takes the first free one of name, name_1, name_2, ... */
static pln_status new_word(pln_script_printer *s, pln_slice name,
                           uint32_t *out) {
  char text[MAX_LETTERS + 16];
  size_t n = sanitize(name, text);
  uint32_t base, word;
  PLN_TRY(word_of(s, (pln_slice){text, n}, PLN_NONE, 0, &base));
  word = base;
  bool taken = is_reserved(s, (pln_slice){text, n});
  while (taken || s->words[word].used) {
    uint32_t number = s->words[base].low++;
    int k = snprintf(text + n, sizeof text - n, "_%u", (unsigned)number);
    PLN_TRY(word_of(s, (pln_slice){text, n + (size_t)k}, base, number, &word));
    taken = false;
  }
  s->words[word].used = true;
  *out = word;
  return PLN_OK;
}

static void free_word(pln_script_printer *s, uint32_t word) {
  pln_script_identifier *w = &s->words[word];
  w->used = false;
  if (w->number && w->number < s->words[w->base].low)
    s->words[w->base].low = w->number;
}

/* -------------------------------------------------------------------- names */

static pln_status add_script_name(pln_script_printer *s, pln_ref ref,
                                  pln_script_name row, uint32_t frame) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->names, &s->cap_names,
                       (size_t)s->n_names + 1, sizeof *s->names));
  row.live = true;
  row.next = s->frames[frame].names;
  s->names[s->n_names++] = row;
  s->frames[frame].names = s->n_names;
  return pln_idmap_set(s->defined, script_name_key(s, ref), s->n_names);
}

static pln_slice hint_of(const pln_script_printer *s, pln_ref ref) {
  const pln_node *n = &s->g->nodes[ref];
  pln_symbol symbol = n->kind == PLN_VAR ? n->attrs : n->data;
  pln_slice text = symbol ? pln_symbol_text(s->engine, symbol) : pln_text("");
  if (text.size > 0)
    return text;
  return pln_text(n->kind == PLN_VAR ? "v" : "buffer");
}

void pln_script_define(pln_script_printer *s, pln_ref ref, uint32_t frame) {
  uint32_t word = 0;
  if (s->status == PLN_OK)
    s->status = new_word(s, hint_of(s, ref), &word);
  if (s->status == PLN_OK)
    s->status = add_script_name(s, ref, (pln_script_name){.word = word}, frame);
}

void pln_script_define_field(pln_script_printer *s, pln_ref var, pln_ref buffer,
                             uint32_t field, uint32_t index, uint32_t frame) {
  pln_script_name row = {
      .word = PLN_NONE, .buffer = buffer, .field = field, .index = index};
  if (s->status == PLN_OK)
    s->status = add_script_name(s, var, row, frame);
}

void pln_script_end_names(pln_script_printer *s, uint32_t frame) {
  uint32_t row = s->frames[frame].names;
  for (; row; row = s->names[row - 1].next) {
    s->names[row - 1].live = false;
    if (s->names[row - 1].word != PLN_NONE)
      free_word(s, s->names[row - 1].word);
  }
  s->frames[frame].names = 0;
}

/* Whether the statement binds the Var. */
static bool binds(const pln_script_printer *s, pln_ref owner, pln_ref var) {
  const pln_node *n = &s->g->nodes[owner];
  const pln_scope_row *row = &s->g->scopes[n->data];
  if (n->kind == PLN_ATTR_STMT && pln_binds_thread(s->g, n))
    return pln_operand(s->g, pln_operand(s->g, owner, 0), 0) == var;
  return var >= row->begin && var < row->begin + row->n_params;
}

enum { MOST_PARTS = 64 };

/* Whether a Buffer is made of what the statement binds. What is too large to
 * tell counts as made of it. */
static bool depends_on(const pln_script_printer *s, pln_ref ref,
                       pln_ref owner) {
  pln_ref stack[MOST_PARTS];
  uint32_t n = 1, seen = 0;
  if (s->g->nodes[ref].kind != PLN_BUFFER)
    return false;
  for (stack[0] = ref; n > 0 && seen < MOST_PARTS; seen++) {
    pln_ref part = stack[--n];
    const pln_node *node = &s->g->nodes[part];
    if (node->kind == PLN_VAR && binds(s, owner, part))
      return true;
    if (n + node->count > MOST_PARTS)
      return true;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = pln_operand(s->g, part, i);
  }
  return n > 0;
}

uint32_t pln_script_frame_of(const pln_script_printer *s, pln_ref ref) {
  uint32_t i = s->n_frames - 1;
  while (i > 0 &&
         (s->low[ref] < s->frames[i].begin || s->high[ref] >= s->frames[i].end))
    i--;
  /* If a branch consists of one statement, the frame of that statement serves
   * both. */
  pln_ref owner = s->frames[i].owner;
  if (i > 0 && owner != PLN_NONE && s->frames[i - 1].only == owner &&
      s->g->nodes[owner].kind != PLN_IF_THEN_ELSE && !depends_on(s, ref, owner))
    i--;
  return i;
}
