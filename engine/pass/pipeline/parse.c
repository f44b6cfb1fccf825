/* parse.c: parses a pipeline's text to a pass.
 *
 *     pipeline := [ item { "," item } ]
 *     item     := name options           (config/option_text.c)
 *               | "(" pipeline ")"
 *               | "sequential" "(" [ name ] { "," field } ")" "{" pipeline "}"
 *               | "fixpoint" [ "(" count ")" ] "{" pipeline "}"
 *               | "try" "{" pipeline "}" [ "else" "{" pipeline "}" ]
 *               | "if" "changed" "{" pipeline "}"
 *               | "functions" "{" pipeline "}"
 *     field    := "opt_level" "=" integer | "required" "=" name
 *     name     := word | string
 *
 * A quoted name is never a keyword.
 *
 * Called by users through pln_pipeline_parse. Invariants: nesting uses heap,
 * not stack; an error points at its place in the text. */

#include <stdio.h>
#include <stdlib.h>

#include "pass/pipeline/reader.h"

/* A list that is being parsed. */
typedef struct frame {
  char close; /* the closing character; 0: the list ends with the text */
  pln_combinator form;
  uint32_t iterations;
  uint32_t n_body; /* of a `try`, once its `else` is being parsed */
  bool otherwise;
  size_t begin; /* offset of its first word */
  int opt_level;
  uint32_t n_passes, cap_passes;
  pln_pass **passes; /* owned */
  uint32_t n_required, cap_required;
  const char **required; /* texts of symbols */
  const char *name;      /* text of a symbol */
} frame;

typedef struct parser {
  pln_reader r;
  uint32_t n_frames, cap_frames;
  frame *frames;
} parser;

/* ------------------------------------------------------------------- frames */

static frame *top_pipeline_frame(parser *p) {
  return &p->frames[p->n_frames - 1];
}

static pln_status open(parser *p, char close) {
  PLN_TRY(pln_mem_grow(p->r.engine, (void **)&p->frames, &p->cap_frames,
                       (size_t)p->n_frames + 1, sizeof *p->frames));
  p->frames[p->n_frames++] =
      (frame){.close = close, .form = PLN_COMBINATOR_SEQUENTIAL};
  return PLN_OK;
}

static void drop_top_frame(parser *p) {
  frame *f = &p->frames[--p->n_frames];
  for (uint32_t i = 0; i < f->n_passes; i++)
    pln_pass_release(f->passes[i]);
  pln_mem_free(p->r.engine, f->passes, f->cap_passes * sizeof *f->passes);
  pln_mem_free(p->r.engine, f->required, f->cap_required * sizeof *f->required);
}

/* Appends an element; takes ownership of `pass`. */
static pln_status add_pipeline_element(parser *p, pln_pass *pass) {
  frame *f = top_pipeline_frame(p);
  pln_status status =
      pln_mem_grow(p->r.engine, (void **)&f->passes, &f->cap_passes,
                   (size_t)f->n_passes + 1, sizeof *f->passes);
  if (status == PLN_OK)
    f->passes[f->n_passes++] = pass;
  else
    pln_pass_release(pass);
  return status;
}

static pln_status make_parsed_pass(parser *p, const frame *f, pln_pass **out) {
  if (f->form == PLN_COMBINATOR_SEQUENTIAL)
    return pln_sequential_new(p->r.engine, f->name, f->opt_level, f->n_required,
                              f->required, f->n_passes, f->passes, out);
  uint32_t otherwise = f->otherwise ? f->n_passes - f->n_body : 0;
  return pln_combinator_new(p->r.engine, f->form, f->iterations, otherwise,
                            f->n_passes, f->passes, out);
}

/* Makes a pass of the innermost list and pops it. */
static pln_status close_list(parser *p, pln_pass **out) {
  const frame *f = top_pipeline_frame(p);
  size_t mark = pln_diag_count(p->r.engine);
  pln_status status = make_parsed_pass(p, f, out);
  if (status != PLN_OK && f->form == PLN_COMBINATOR_SEQUENTIAL)
    status = pln_reader_relocate_error(&p->r, mark, p->r.at - (p->r.at > 0),
                                       p->r.at);
  else if (status != PLN_OK)
    status = pln_reader_relocate_error(&p->r, mark, f->begin, p->r.at);
  drop_top_frame(p);
  return status;
}

/* -------------------------------------------------------------------- items */

static pln_status unknown_pass(parser *p, size_t begin, pln_symbol name) {
  size_t mark = pln_diag_count(p->r.engine);
  (void)!pln_pass_unknown(p->r.engine, NULL, "",
                          pln_symbol_text(p->r.engine, name).data);
  return pln_reader_relocate_error(&p->r, mark, begin, p->r.at);
}

static pln_status read_pass(parser *p, size_t begin, pln_symbol name) {
  char whom[160];
  pln_attrs options;
  pln_pass *pass;
  const pln_pass *registered = pln_pass_lookup(p->r.engine, name);
  if (!registered)
    return unknown_pass(p, begin, name);
  const pln_pass_def *def = registered->def;
  snprintf(whom, sizeof whom, "pass '%s'", pln_pass_name(registered));
  PLN_TRY(
      pln_options_read(&p->r, def->options, def->n_options, whom, &options));
  PLN_TRY(pln_options_over(p->r.engine, registered->options, &options));
  PLN_TRY(pln_pass_like(p->r.engine, name, registered, options, &pass));
  return add_pipeline_element(p, pass);
}

static pln_status read_opt_level(parser *p) {
  static const pln_option row = {.name = "opt_level", .kind = PLN_ATTR_INT};
  size_t begin;
  pln_attr value;
  PLN_TRY(pln_reader_word(&p->r, "an integer", &begin));
  pln_slice text = {p->r.word.data, p->r.word.size};
  if (!pln_option_read(&row, text, &value) || value.v.i < INT32_MIN ||
      value.v.i > INT32_MAX)
    return pln_reader_error(&p->r, begin, p->r.at, PLN_ERR_TYPE,
                            "'opt_level' expects an integer");
  top_pipeline_frame(p)->opt_level = (int)value.v.i;
  return PLN_OK;
}

static pln_status read_required(parser *p) {
  size_t begin;
  pln_symbol name;
  frame *f = top_pipeline_frame(p);
  PLN_TRY(pln_reader_name(&p->r, "the name of a pass", &begin, &name));
  PLN_TRY(pln_mem_grow(p->r.engine, (void **)&f->required, &f->cap_required,
                       (size_t)f->n_required + 1, sizeof *f->required));
  f->required[f->n_required++] = pln_symbol_text(p->r.engine, name).data;
  return PLN_OK;
}

/* Reads one field of a sequential. Its name comes first and has no '='. */
static pln_status read_combinator_field(parser *p, bool first) {
  size_t begin;
  pln_symbol symbol;
  PLN_TRY(pln_reader_name(&p->r, "a name, opt_level= or required=", &begin,
                          &symbol));
  pln_slice name = pln_symbol_text(p->r.engine, symbol);
  if (!pln_reader_accept(&p->r, '=')) {
    if (!first)
      return pln_reader_expected(&p->r, "'='");
    top_pipeline_frame(p)->name = name.data;
    return PLN_OK;
  }
  if (pln_slice_is(name, "opt_level"))
    return read_opt_level(p);
  if (pln_slice_is(name, "required"))
    return read_required(p);
  return pln_reader_error(&p->r, begin, p->r.at, PLN_ERR_NAME,
                          "a sequential has the fields opt_level and required");
}

/* Reads the header in parentheses after "sequential". */
static pln_status read_header(parser *p) {
  bool first = true;
  p->r.at++;
  PLN_TRY(open(p, '}'));
  if (!pln_reader_accept(&p->r, ')')) {
    do {
      PLN_TRY(read_combinator_field(p, first));
      first = false;
    } while (pln_reader_accept(&p->r, ','));
    PLN_TRY(pln_reader_expect(&p->r, ')', "',' or ')'"));
  }
  return pln_reader_expect(&p->r, '{', "'{' and the passes");
}

/* Reads the optional count after "fixpoint". */
static pln_status read_rounds(parser *p, uint32_t *out) {
  static const pln_option row = {.name = "fixpoint", .kind = PLN_ATTR_INT};
  size_t begin;
  pln_attr value;
  *out = PLN_FIXPOINT_ROUNDS;
  if (!pln_reader_accept(&p->r, '('))
    return PLN_OK;
  PLN_TRY(pln_reader_word(&p->r, "how many rounds at most", &begin));
  pln_slice text = {p->r.word.data, p->r.word.size};
  if (!pln_option_read(&row, text, &value) || value.v.i < 1 ||
      value.v.i > PLN_FIXPOINT_MAX)
    return pln_reader_error(&p->r, begin, p->r.at, PLN_ERR_ARGUMENT,
                            "'fixpoint' takes a count from 1 to 1000");
  *out = (uint32_t)value.v.i;
  return pln_reader_expect(&p->r, ')', "')'");
}

static pln_status open_form(parser *p, size_t begin, pln_combinator form,
                            uint32_t iterations) {
  PLN_TRY(pln_reader_expect(&p->r, '{', "'{' and the passes"));
  PLN_TRY(open(p, '}'));
  top_pipeline_frame(p)->form = form;
  top_pipeline_frame(p)->iterations = iterations;
  top_pipeline_frame(p)->begin = begin;
  return PLN_OK;
}

static pln_status read_fixpoint(parser *p, size_t begin) {
  uint32_t iterations;
  PLN_TRY(read_rounds(p, &iterations));
  return open_form(p, begin, PLN_COMBINATOR_FIXPOINT, iterations);
}

/* Reads "changed" after "if". */
static pln_status read_condition(parser *p, size_t begin) {
  size_t word;
  PLN_TRY(pln_reader_word(&p->r, "'changed'", &word));
  if (strcmp(p->r.word.data, "changed"))
    return pln_reader_error(&p->r, word, p->r.at, PLN_ERR_FORMAT,
                            "'if' is followed by 'changed'");
  return open_form(p, begin, PLN_COMBINATOR_IF_CHANGED, 0);
}

/* Handles keywords; *done is true if the word was one. */
static pln_status read_word_of_grammar(parser *p, size_t begin, pln_slice word,
                                       bool *done) {
  bool list = pln_reader_at(&p->r, '{'), arguments = pln_reader_at(&p->r, '(');
  *done = true;
  if (arguments && pln_slice_is(word, "sequential"))
    return read_header(p);
  if ((list || arguments) && pln_slice_is(word, "fixpoint"))
    return read_fixpoint(p, begin);
  if (list && pln_slice_is(word, "try"))
    return open_form(p, begin, PLN_COMBINATOR_TRY, 0);
  if (list && pln_slice_is(word, "functions"))
    return open_form(p, begin, PLN_COMBINATOR_PER_FUNCTION, 0);
  if (p->r.at < p->r.size && pln_reader_is_word(p->r.text[p->r.at]) &&
      pln_slice_is(word, "if"))
    return read_condition(p, begin);
  *done = false;
  return PLN_OK;
}

static pln_status read_item(parser *p) {
  size_t begin;
  pln_symbol name;
  bool done = false;
  if (pln_reader_accept(&p->r, '('))
    return open(p, ')');
  bool quoted = pln_reader_at(&p->r, '"');
  PLN_TRY(pln_reader_name(&p->r, "a pass", &begin, &name));
  pln_slice word = pln_symbol_text(p->r.engine, name);
  if (!quoted)
    PLN_TRY(read_word_of_grammar(p, begin, word, &done));
  return done ? PLN_OK : read_pass(p, begin, name);
}

/* ------------------------------------------------------------------- lists */

static bool at_close(parser *p) {
  char close = top_pipeline_frame(p)->close;
  pln_reader_skip_space(&p->r);
  return close ? pln_reader_at(&p->r, close) : p->r.at >= p->r.size;
}

/* After the body of a `try`: opens the list of its `else`. */
static pln_status read_else(parser *p, bool *found) {
  frame *f = top_pipeline_frame(p);
  pln_reader_skip_space(&p->r);
  *found =
      f->form == PLN_COMBINATOR_TRY && !f->otherwise &&
      p->r.size - p->r.at >= 4 && !memcmp(p->r.text + p->r.at, "else", 4) &&
      (p->r.size - p->r.at == 4 || !pln_reader_is_word(p->r.text[p->r.at + 4]));
  if (!*found)
    return PLN_OK;
  p->r.at += 4;
  f->otherwise = true;
  f->n_body = f->n_passes;
  return pln_reader_expect(&p->r, '{', "'{' and the passes");
}

/* Closes every list that ends here; *done is true when the pipeline ends. */
static pln_status end_lists(parser *p, bool *done, pln_pass **out) {
  *done = false;
  while (at_close(p)) {
    pln_pass *list;
    bool more;
    p->r.at += top_pipeline_frame(p)->close != 0;
    PLN_TRY(read_else(p, &more));
    if (more && at_close(p))
      continue;
    if (more)
      return PLN_OK;
    PLN_TRY(close_list(p, &list));
    if (p->n_frames) {
      PLN_TRY(add_pipeline_element(p, list));
      continue;
    }
    *out = list;
    *done = true;
    return PLN_OK;
  }
  return pln_reader_expect(&p->r, ',',
                           top_pipeline_frame(p)->close == ')'   ? "',' or ')'"
                           : top_pipeline_frame(p)->close == '}' ? "',' or '}'"
                                                                 : "','");
}

/* A list that was just opened may be empty. */
static pln_status read_element_list(parser *p, pln_pass **out) {
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

/* A text of one combinator, or of one sequential with a header, parses to that
 * pass and not to a list around it. */
static void unwrap(const char *text, size_t size, pln_pass **pass) {
  pln_pass *outer = *pass;
  size_t at = 0;
  while (at < size && pln_reader_is_space(text[at]))
    at++;
  if (outer->def->n_elements != 1 || at >= size || text[at] == '(' ||
      text[at] == '"')
    return;
  pln_pass *only = outer->def->elements[0];
  const pln_engine *engine = outer->engine;
  const pln_pass *known = pln_pass_lookup(engine, only->name);
  if (!pln_pass_is_sequential(only) || (known && known->def == only->def))
    return;
  *pass = pln_pass_retain(only);
  pln_pass_release(outer);
}

pln_status pln_pipeline_parse(pln_engine *engine, pln_slice text,
                              pln_pass **out) {
  parser p = {.frames = NULL};
  pln_pass *pass = NULL;
  pln_reader_init(&p.r, engine, "pipeline", text);
  pln_status status = read_element_list(&p, &pass);
  while (p.n_frames)
    drop_top_frame(&p);
  pln_mem_free(engine, p.frames, p.cap_frames * sizeof *p.frames);
  pln_reader_free(&p.r);
  if (status != PLN_OK)
    return status;
  unwrap(text.data, text.size, &pass);
  *out = pass;
  return PLN_OK;
}
