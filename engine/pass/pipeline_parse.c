/* pipeline_parse.c: a pipeline as text becomes a pass.
 *
 *     pipeline := [ item { "," item } ]
 *     item     := name [ "{" [ option { "," option } ] "}" ]
 *               | "(" pipeline ")"
 *               | "sequential" "(" [ name ] { "," field } ")" "{" pipeline "}"
 *               | "fixpoint" [ "(" count ")" ] "{" pipeline "}"
 *               | "try" "{" pipeline "}" [ "else" "{" pipeline "}" ]
 *               | "if" "changed" "{" pipeline "}"
 *               | "functions" "{" pipeline "}"
 *     option   := name "=" value
 *     field    := "opt_level" "=" integer | "required" "=" name
 *     name     := word | string
 *     value    := word | number | string
 *
 * A quoted name is never a word of the grammar.
 *
 * Called by users through pln_pipeline_parse. What always holds: nesting costs
 * heap, not stack; an error points at the place in the text. */

#include <stdio.h>
#include <stdlib.h>

#include "pass/pass.h"

/* A list that is being read. */
typedef struct frame {
  char close; /* what ends it; 0: the end of the text */
  pln_pass_form form;
  uint32_t rounds;
  uint32_t n_body; /* of a `try` whose `else` is being read */
  bool otherwise;
  size_t begin; /* of its first word */
  int opt_level;
  uint32_t n_passes, cap_passes;
  pln_pass **passes; /* owned */
  uint32_t n_required, cap_required;
  const char **required; /* texts of symbols */
  const char *name;      /* text of a symbol */
} frame;

typedef struct parser {
  pln_engine *engine;
  const char *text;
  size_t size;
  size_t at;
  uint32_t n_frames, cap_frames;
  frame *frames;
  pln_buffer word; /* the newest name or value, without quotes */
} parser;

/* ------------------------------------------------------------------- errors */

/* Reports at [begin, end). */
static pln_status complain(parser *p, size_t begin, size_t end, pln_status code,
                           const char *message) {
  size_t start = begin, stop = begin;
  uint32_t row = 1;
  while (start > 0 && p->text[start - 1] != '\n')
    start--;
  while (stop < p->size && p->text[stop] != '\n')
    stop++;
  for (size_t i = 0; i < start; i++)
    row += p->text[i] == '\n';
  char *line = pln_mem_new(p->engine, stop - start + 1);
  if (!line)
    return pln_nomem(p->engine);
  memcpy(line, p->text + start, stop - start);
  line[stop - start] = 0;
  pln_span span = {"pipeline", line, row, (uint32_t)(begin - start + 1),
                   (uint32_t)((end > stop ? stop : end) - start + 1)};
  pln_diag_error(p->engine, code, &span, "%s", message);
  pln_mem_free(p->engine, line, stop - start + 1);
  return code;
}

static pln_status expected(parser *p, const char *what) {
  char message[160];
  if (p->at >= p->size)
    snprintf(message, sizeof message, "expected %s, got the end", what);
  else
    snprintf(message, sizeof message, "expected %s, got '%c'", what,
             p->text[p->at]);
  return complain(p, p->at, p->at + 1, PLN_ERR_FORMAT, message);
}

/* Takes back the error reported since `mark`, and says it again at a place. */
static pln_status say_at(parser *p, size_t mark, size_t begin, size_t end) {
  char message[512];
  const pln_diag *diag = pln_diag_get(p->engine, mark);
  if (!diag || diag->code == PLN_ERR_NOMEM)
    return PLN_ERR_NOMEM;
  pln_status code = diag->code;
  snprintf(message, sizeof message, "%s", diag->message);
  pln_diag_drop(p->engine, mark);
  /* The message names the place already. */
  pln_place place = pln_diag_place(p->engine, (pln_place){NULL, NULL});
  code = complain(p, begin, end, code, message);
  pln_diag_place(p->engine, place);
  return code;
}

/* ------------------------------------------------------------------- tokens */

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' ||
         c == '+' || c == '/' || c == ':' || (c & 0x80);
}

static void skip_space(parser *p) {
  while (p->at < p->size && is_space(p->text[p->at]))
    p->at++;
}

static bool sees(parser *p, char c) {
  skip_space(p);
  return p->at < p->size && p->text[p->at] == c;
}

static bool accept(parser *p, char c) {
  if (!sees(p, c))
    return false;
  p->at++;
  return true;
}

static pln_status demand(parser *p, char c, const char *what) {
  return accept(p, c) ? PLN_OK : expected(p, what);
}

static char unescape(char c) {
  return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

/* Behind the opening quote. */
static pln_status read_string(parser *p, size_t begin) {
  while (p->at < p->size && p->text[p->at] != '"') {
    char c = p->text[p->at++];
    if (c == '\\' && p->at < p->size)
      c = unescape(p->text[p->at++]);
    PLN_TRY(pln_buffer_add(&p->word, &c, 1));
  }
  if (p->at >= p->size)
    return complain(p, begin, begin + 1, PLN_ERR_FORMAT,
                    "the string is not closed");
  p->at++;
  return PLN_OK;
}

/* A word or string into p->word, terminated; *begin is where it starts. */
static pln_status read_word(parser *p, const char *what, size_t *begin) {
  p->word.size = 0;
  skip_space(p);
  *begin = p->at;
  if (accept(p, '"')) {
    PLN_TRY(read_string(p, *begin));
  } else {
    while (p->at < p->size && is_word(p->text[p->at]))
      p->at++;
    if (p->at == *begin)
      return expected(p, what);
    PLN_TRY(pln_buffer_add(&p->word, p->text + *begin, p->at - *begin));
  }
  PLN_TRY(pln_buffer_add(&p->word, "", 1));
  p->word.size--;
  return PLN_OK;
}

/* A name's symbol. */
static pln_status read_name(parser *p, const char *what, size_t *begin,
                            pln_symbol *out) {
  PLN_TRY(read_word(p, what, begin));
  if (p->word.size == 0)
    return complain(p, *begin, p->at, PLN_ERR_FORMAT, "the name is empty");
  pln_slice text = {p->word.data, p->word.size};
  return pln_symbol_intern(p->engine, text, out);
}

/* ------------------------------------------------------------------- frames */

static frame *top(parser *p) {
  return &p->frames[p->n_frames - 1];
}

static pln_status open(parser *p, char close) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->frames, &p->cap_frames,
                       (size_t)p->n_frames + 1, sizeof *p->frames));
  p->frames[p->n_frames++] =
      (frame){.close = close, .form = PLN_FORM_SEQUENTIAL};
  return PLN_OK;
}

static void drop(parser *p) {
  frame *f = &p->frames[--p->n_frames];
  for (uint32_t i = 0; i < f->n_passes; i++)
    pln_pass_release(f->passes[i]);
  pln_mem_free(p->engine, f->passes, f->cap_passes * sizeof *f->passes);
  pln_mem_free(p->engine, f->required, f->cap_required * sizeof *f->required);
}

/* Takes `pass`. */
static pln_status add(parser *p, pln_pass *pass) {
  frame *f = top(p);
  pln_status status =
      pln_mem_grow(p->engine, (void **)&f->passes, &f->cap_passes,
                   (size_t)f->n_passes + 1, sizeof *f->passes);
  if (status == PLN_OK)
    f->passes[f->n_passes++] = pass;
  else
    pln_pass_release(pass);
  return status;
}

static pln_status make(parser *p, const frame *f, pln_pass **out) {
  if (f->form == PLN_FORM_SEQUENTIAL)
    return pln_sequential_new(p->engine, f->name, f->opt_level, f->n_required,
                              f->required, f->n_passes, f->passes, out);
  uint32_t otherwise = f->otherwise ? f->n_passes - f->n_body : 0;
  return pln_form_new(p->engine, f->form, f->rounds, otherwise, f->n_passes,
                      f->passes, out);
}

/* The innermost list as a pass; the list is gone. */
static pln_status close_list(parser *p, pln_pass **out) {
  const frame *f = top(p);
  size_t mark = pln_diag_count(p->engine);
  pln_status status = make(p, f, out);
  if (status != PLN_OK && f->form == PLN_FORM_SEQUENTIAL)
    status = say_at(p, mark, p->at - (p->at > 0), p->at);
  else if (status != PLN_OK)
    status = say_at(p, mark, f->begin, p->at);
  drop(p);
  return status;
}

/* ------------------------------------------------------------------ options */

static pln_status unknown_option(parser *p, const pln_pass *pass, size_t begin,
                                 pln_symbol name) {
  char whom[160];
  size_t mark = pln_diag_count(p->engine);
  snprintf(whom, sizeof whom, "pass '%s'", pln_pass_name(pass));
  (void)!pln_option_unknown(p->engine, NULL, whom, pass->def->options,
                            pass->def->n_options,
                            pln_symbol_text(p->engine, name));
  return say_at(p, mark, begin, p->at);
}

static pln_status bad_value(parser *p, const pln_option *row, size_t begin) {
  char message[200];
  snprintf(message, sizeof message, "'%s' expects %s", row->name,
           row->is_bool                  ? "true or false"
           : row->kind == PLN_ATTR_INT   ? "an integer"
           : row->kind == PLN_ATTR_FLOAT ? "a number"
                                         : "a string");
  return complain(p, begin, p->at, PLN_ERR_TYPE, message);
}

static pln_status read_option(parser *p, const pln_pass *pass,
                              pln_attrs *options) {
  size_t begin, value_begin;
  pln_symbol name;
  pln_attr value;
  PLN_TRY(read_name(p, "the name of an option", &begin, &name));
  const pln_option *row =
      pln_option_find(pass->def->options, pass->def->n_options,
                      pln_symbol_text(p->engine, name));
  if (!row)
    return unknown_option(p, pass, begin, name);
  PLN_TRY(demand(p, '=', "'=' after the option"));
  PLN_TRY(read_word(p, "a value", &value_begin));
  pln_slice text = {p->word.data, p->word.size};
  if (!pln_option_read(row, text, &value))
    return bad_value(p, row, value_begin);
  size_t mark = pln_diag_count(p->engine);
  if (pln_option_check(p->engine, row, row->name, &value) != PLN_OK)
    return say_at(p, mark, value_begin, p->at);
  value.name = name;
  if (pln_attrs_find(p->engine, *options, row->name))
    return complain(p, begin, value_begin, PLN_ERR_FORMAT,
                    "the option is given twice");
  return pln_attrs_with(p->engine, *options, &value, options);
}

static pln_status read_options(parser *p, const pln_pass *pass,
                               pln_attrs *options) {
  *options = 0;
  if (!accept(p, '{') || accept(p, '}'))
    return PLN_OK;
  do
    PLN_TRY(read_option(p, pass, options));
  while (accept(p, ','));
  return demand(p, '}', "',' or '}' after the option");
}

/* -------------------------------------------------------------------- items */

static pln_status unknown_pass(parser *p, size_t begin, pln_symbol name) {
  size_t mark = pln_diag_count(p->engine);
  (void)!pln_pass_unknown(p->engine, NULL, "",
                          pln_symbol_text(p->engine, name).data);
  return say_at(p, mark, begin, p->at);
}

static pln_status read_pass(parser *p, size_t begin, pln_symbol name) {
  pln_attrs options;
  pln_pass *pass;
  const pln_pass *registered = pln_pass_lookup(p->engine, name);
  if (!registered)
    return unknown_pass(p, begin, name);
  PLN_TRY(read_options(p, registered, &options));
  if (!options)
    options = registered->options;
  PLN_TRY(pln_pass_of(p->engine, name, registered->def, options, &pass));
  return add(p, pass);
}

static pln_status read_opt_level(parser *p) {
  static const pln_option row = {
      .name = "opt_level", .kind = PLN_ATTR_INT, .fallback = "0"};
  size_t begin;
  pln_attr value;
  PLN_TRY(read_word(p, "an integer", &begin));
  pln_slice text = {p->word.data, p->word.size};
  if (!pln_option_read(&row, text, &value) || value.v.i < INT32_MIN ||
      value.v.i > INT32_MAX)
    return bad_value(p, &row, begin);
  top(p)->opt_level = (int)value.v.i;
  return PLN_OK;
}

static pln_status read_required(parser *p) {
  size_t begin;
  pln_symbol name;
  frame *f = top(p);
  PLN_TRY(read_name(p, "the name of a pass", &begin, &name));
  PLN_TRY(pln_mem_grow(p->engine, (void **)&f->required, &f->cap_required,
                       (size_t)f->n_required + 1, sizeof *f->required));
  f->required[f->n_required++] = pln_symbol_text(p->engine, name).data;
  return PLN_OK;
}

/* One field of a sequential; its name comes first and has no '='. */
static pln_status read_field(parser *p, bool first) {
  size_t begin;
  pln_symbol symbol;
  PLN_TRY(read_name(p, "a name, opt_level= or required=", &begin, &symbol));
  pln_slice name = pln_symbol_text(p->engine, symbol);
  if (!accept(p, '=')) {
    if (!first)
      return expected(p, "'='");
    top(p)->name = name.data;
    return PLN_OK;
  }
  if (pln_slice_is(name, "opt_level"))
    return read_opt_level(p);
  if (pln_slice_is(name, "required"))
    return read_required(p);
  return complain(p, begin, p->at, PLN_ERR_NAME,
                  "a sequential has the fields opt_level and required");
}

/* Behind "sequential", at the parenthesis. */
static pln_status read_header(parser *p) {
  bool first = true;
  p->at++;
  PLN_TRY(open(p, '}'));
  if (!accept(p, ')')) {
    do {
      PLN_TRY(read_field(p, first));
      first = false;
    } while (accept(p, ','));
    PLN_TRY(demand(p, ')', "',' or ')'"));
  }
  return demand(p, '{', "'{' and the passes");
}

/* Behind "fixpoint". */
static pln_status read_rounds(parser *p, uint32_t *out) {
  static const pln_option row = {
      .name = "fixpoint", .kind = PLN_ATTR_INT, .fallback = "100"};
  size_t begin;
  pln_attr value;
  *out = PLN_FIXPOINT_ROUNDS;
  if (!accept(p, '('))
    return PLN_OK;
  PLN_TRY(read_word(p, "how many rounds at most", &begin));
  pln_slice text = {p->word.data, p->word.size};
  if (!pln_option_read(&row, text, &value) || value.v.i < 1 ||
      value.v.i > PLN_FIXPOINT_MOST)
    return complain(p, begin, p->at, PLN_ERR_ARGUMENT,
                    "'fixpoint' takes a count from 1 to 1000");
  *out = (uint32_t)value.v.i;
  return demand(p, ')', "')'");
}

static pln_status open_form(parser *p, size_t begin, pln_pass_form form,
                            uint32_t rounds) {
  PLN_TRY(demand(p, '{', "'{' and the passes"));
  PLN_TRY(open(p, '}'));
  top(p)->form = form;
  top(p)->rounds = rounds;
  top(p)->begin = begin;
  return PLN_OK;
}

static pln_status read_fixpoint(parser *p, size_t begin) {
  uint32_t rounds;
  PLN_TRY(read_rounds(p, &rounds));
  return open_form(p, begin, PLN_FORM_FIXPOINT, rounds);
}

/* Behind "if". */
static pln_status read_condition(parser *p, size_t begin) {
  size_t word;
  PLN_TRY(read_word(p, "'changed'", &word));
  if (strcmp(p->word.data, "changed"))
    return complain(p, word, p->at, PLN_ERR_FORMAT,
                    "'if' is followed by 'changed'");
  return open_form(p, begin, PLN_FORM_IF_CHANGED, 0);
}

/* What an unquoted word may be but a pass; *done when it was. */
static pln_status read_word_of_grammar(parser *p, size_t begin, pln_slice word,
                                       bool *done) {
  bool list = sees(p, '{'), arguments = sees(p, '(');
  *done = true;
  if (arguments && pln_slice_is(word, "sequential"))
    return read_header(p);
  if ((list || arguments) && pln_slice_is(word, "fixpoint"))
    return read_fixpoint(p, begin);
  if (list && pln_slice_is(word, "try"))
    return open_form(p, begin, PLN_FORM_TRY, 0);
  if (list && pln_slice_is(word, "functions"))
    return open_form(p, begin, PLN_FORM_FUNCTIONS, 0);
  if (p->at < p->size && is_word(p->text[p->at]) && pln_slice_is(word, "if"))
    return read_condition(p, begin);
  *done = false;
  return PLN_OK;
}

static pln_status read_item(parser *p) {
  size_t begin;
  pln_symbol name;
  bool done = false;
  if (accept(p, '('))
    return open(p, ')');
  bool quoted = sees(p, '"');
  PLN_TRY(read_name(p, "a pass", &begin, &name));
  pln_slice word = pln_symbol_text(p->engine, name);
  if (!quoted)
    PLN_TRY(read_word_of_grammar(p, begin, word, &done));
  return done ? PLN_OK : read_pass(p, begin, name);
}

/* ------------------------------------------------------------------- lists */

static bool at_close(parser *p) {
  char close = top(p)->close;
  skip_space(p);
  return close ? sees(p, close) : p->at >= p->size;
}

/* Behind the body of a `try`: goes on with its `else`. */
static pln_status read_else(parser *p, bool *found) {
  frame *f = top(p);
  skip_space(p);
  *found = f->form == PLN_FORM_TRY && !f->otherwise && p->size - p->at >= 4 &&
           !memcmp(p->text + p->at, "else", 4) &&
           (p->size - p->at == 4 || !is_word(p->text[p->at + 4]));
  if (!*found)
    return PLN_OK;
  p->at += 4;
  f->otherwise = true;
  f->n_body = f->n_passes;
  return demand(p, '{', "'{' and the passes");
}

/* Ends lists as long as one ends here; *done with the whole. */
static pln_status end_lists(parser *p, bool *done, pln_pass **out) {
  *done = false;
  while (at_close(p)) {
    pln_pass *list;
    bool more;
    p->at += top(p)->close != 0;
    PLN_TRY(read_else(p, &more));
    if (more && at_close(p))
      continue;
    if (more)
      return PLN_OK;
    PLN_TRY(close_list(p, &list));
    if (p->n_frames) {
      PLN_TRY(add(p, list));
      continue;
    }
    *out = list;
    *done = true;
    return PLN_OK;
  }
  return demand(p, ',',
                top(p)->close == ')'   ? "',' or ')'"
                : top(p)->close == '}' ? "',' or '}'"
                                       : "','");
}

/* A list that was just opened has no item yet, and may stay empty. */
static pln_status read_list(parser *p, pln_pass **out) {
  bool done = false;
  PLN_TRY(open(p, 0));
  if (at_close(p))
    return close_list(p, out);
  while (!done) {
    uint32_t depth = p->n_frames;
    PLN_TRY(read_item(p));
    if (p->n_frames > depth && !at_close(p))
      continue;
    PLN_TRY(end_lists(p, &done, out));
  }
  return PLN_OK;
}

/* A text that is one sequential with a header is that sequential. */
static void unwrap(const char *text, size_t size, pln_pass **pass) {
  pln_pass *outer = *pass;
  size_t at = 0;
  while (at < size && is_space(text[at]))
    at++;
  if (outer->def->n_elements != 1 || at >= size || text[at] == '(' ||
      text[at] == '"')
    return;
  pln_pass *only = outer->def->elements[0];
  const pln_engine *engine = outer->engine;
  if (!pln_pass_is_sequential(only) || pln_pass_lookup(engine, only->name))
    return;
  *pass = pln_pass_retain(only);
  pln_pass_release(outer);
}

pln_status pln_pipeline_parse(pln_engine *engine, pln_slice text,
                              pln_pass **out) {
  parser p = {.engine = engine, .text = text.data, .size = text.size};
  pln_pass *pass = NULL;
  pln_buffer_init(&p.word, engine);
  pln_status status = read_list(&p, &pass);
  while (p.n_frames)
    drop(&p);
  pln_mem_free(engine, p.frames, p.cap_frames * sizeof *p.frames);
  pln_buffer_free(&p.word);
  if (status != PLN_OK)
    return status;
  unwrap(text.data, text.size, &pass);
  *out = pass;
  return PLN_OK;
}
