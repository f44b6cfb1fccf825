/* print.c: prints a pass as the text that parse.c reads.
 *
 * Called by users through pln_pipeline_print. Invariant: parsing the text gives
 * an equal pass if every pass in it is registered and no option of one is a
 * function. */

#include <stdio.h>

#include "pass/pass.h"

typedef struct printer {
  pln_engine *engine;
  pln_write_fn write;
  void *ud;
  /* Indices that lead to the element to mark; NULL: none. */
  const uint32_t *path;
  uint32_t n_path;
  const pln_buffer *text; /* the text written so far, when there is a path */
  size_t begin, end;
} printer;

static pln_status write_pipeline_text(printer *p, const char *text) {
  return p->write(p->ud, text, strlen(text));
}

static bool is_plain_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

pln_status pln_pipeline_quote(pln_slice text, pln_write_fn write, void *ud) {
  size_t begin = 0;
  PLN_TRY(write(ud, "\"", 1));
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] != '"' && text.data[i] != '\\')
      continue;
    PLN_TRY(write(ud, text.data + begin, i - begin));
    PLN_TRY(write(ud, "\\", 1));
    begin = i;
  }
  PLN_TRY(write(ud, text.data + begin, text.size - begin));
  return write(ud, "\"", 1);
}

/* Returns true for keywords of the grammar. */
static bool is_reserved(pln_slice text) {
  return pln_slice_is(text, "fixpoint") || pln_slice_is(text, "try") ||
         pln_slice_is(text, "functions") || pln_slice_is(text, "if");
}

pln_status pln_pipeline_put_name(pln_engine *engine, pln_symbol name,
                                 pln_write_fn write, void *ud) {
  pln_slice text = pln_symbol_text(engine, name);
  if (is_reserved(text))
    return pln_pipeline_quote(text, write, ud);
  for (size_t i = 0; i < text.size; i++)
    if (!is_plain_char(text.data[i]))
      return pln_pipeline_quote(text, write, ud);
  return write(ud, text.data, text.size);
}

static pln_status put_name(printer *p, pln_symbol name) {
  return pln_pipeline_put_name(p->engine, name, p->write, p->ud);
}

/* Shows the options that are functions, behind the others. */
static pln_status put_functions(printer *p, const pln_pass *pass) {
  const char *before = "{";
  for (uint32_t i = 0; i < pass->def->n_options; i++) {
    const pln_option *row = &pass->def->options[i];
    if (row->kind != PLN_ATTR_NONE || !pln_pass_predicate(pass, row->name))
      continue;
    PLN_TRY(write_pipeline_text(p, before));
    PLN_TRY(write_pipeline_text(p, row->name));
    PLN_TRY(write_pipeline_text(p, "=<function>"));
    before = ",";
  }
  return write_pipeline_text(p, "}");
}

static pln_status put_primitive(printer *p, const pln_pass *pass) {
  PLN_TRY(put_name(p, pass->name));
  PLN_TRY(pln_options_print(p->engine, pass->options, p->write, p->ud));
  return pass->predicates ? put_functions(p, pass) : PLN_OK;
}

static bool is_bare(const pln_pass *pass) {
  return pass->def->form == PLN_COMBINATOR_SEQUENTIAL &&
         !strcmp(pln_pass_name(pass), "sequential") && !pass->def->opt_level &&
         !pass->def->n_required;
}

/* A registered sequential is printed as its name, others as lists. */
static bool is_list(const pln_pass *pass) {
  const pln_pass *known = pln_pass_lookup(pass->engine, pass->name);
  return pln_pass_is_sequential(pass) && !(known && known->def == pass->def);
}

static pln_status put_form(printer *p, const pln_pass *pass) {
  char text[32] = "try{";
  if (pass->def->form == PLN_COMBINATOR_IF_CHANGED)
    return write_pipeline_text(p, "if changed{");
  if (pass->def->form == PLN_COMBINATOR_PER_FUNCTION)
    return write_pipeline_text(p, "functions{");
  if (pass->def->form == PLN_COMBINATOR_FIXPOINT)
    snprintf(text, sizeof text, "fixpoint(%u){",
             (unsigned)pass->def->iterations);
  return write_pipeline_text(p, text);
}

static pln_status put_header(printer *p, const pln_pass *pass) {
  char level[32];
  if (pass->def->form != PLN_COMBINATOR_SEQUENTIAL)
    return put_form(p, pass);
  PLN_TRY(write_pipeline_text(p, "sequential("));
  PLN_TRY(put_name(p, pass->name));
  if (pass->def->opt_level) {
    snprintf(level, sizeof level, ",opt_level=%d", pass->def->opt_level);
    PLN_TRY(write_pipeline_text(p, level));
  }
  for (uint32_t i = 0; i < pass->def->n_required; i++) {
    PLN_TRY(write_pipeline_text(p, ",required="));
    PLN_TRY(put_name(p, pass->def->required[i]));
  }
  return write_pipeline_text(p, "){");
}

/* A sequential being printed and its next element. */
typedef struct level {
  const pln_pass *pass;
  uint32_t next;
  const char *close;
} level;

/* Returns true for a list whose only element is another list. At the top level
 * the parser would return that element, so the outer list is printed too. */
static bool is_hidden(const pln_pass *pass) {
  return pass->def->n_elements == 1 && is_list(pass->def->elements[0]) &&
         !is_bare(pass->def->elements[0]);
}

static pln_status open_list(printer *p, const pln_pass *pass, bool outermost,
                            level *out) {
  bool bare = is_bare(pass);
  if (bare && outermost && is_hidden(pass)) {
    *out = (level){pass, 0, "}"};
    return write_pipeline_text(p, "sequential(){");
  }
  *out = (level){pass, 0, !bare ? "}" : outermost ? "" : ")"};
  if (!bare)
    return put_header(p, pass);
  return outermost ? PLN_OK : write_pipeline_text(p, "(");
}

/* Returns true if the current element lies on the path to the marked one. */
static bool is_marked(const printer *p, const level *stack, uint32_t n) {
  if (!p->path || n > p->n_path)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (stack[i].next - 1 != p->path[i])
      return false;
  return true;
}

/* Of a list, writes only what comes before its elements and sets *opened. */
static pln_status write_pipeline_element(printer *p, const pln_pass *element,
                                         bool marked, level *inner,
                                         bool *opened) {
  if (marked)
    p->begin = p->text->size;
  *opened = is_list(element);
  if (*opened) {
    PLN_TRY(open_list(p, element, false, inner));
  } else {
    PLN_TRY(put_primitive(p, element));
  }
  if (marked)
    p->end = p->text->size;
  return PLN_OK;
}

static pln_status write_element_list(printer *p, const pln_pass *pass) {
  level stack[PLN_PASS_MAX_DEPTH + 1];
  uint32_t n = 1;
  PLN_TRY(open_list(p, pass, true, &stack[0]));
  while (n) {
    level *top = &stack[n - 1];
    if (top->next == top->pass->def->n_elements) {
      PLN_TRY(write_pipeline_text(p, top->close));
      n--;
      continue;
    }
    const pln_pass_def *def = top->pass->def;
    const pln_pass *element = def->elements[top->next];
    if (top->next == def->n_body)
      PLN_TRY(write_pipeline_text(p, "}else{"));
    else if (top->next > 0)
      PLN_TRY(write_pipeline_text(p, ","));
    bool opened;
    top->next++;
    PLN_TRY(write_pipeline_element(p, element, is_marked(p, stack, n),
                                   &stack[n], &opened));
    n += opened;
  }
  return PLN_OK;
}

static pln_status put_whole(printer *p, const pln_pass *pass) {
  if (is_list(pass))
    return write_element_list(p, pass);
  return put_primitive(p, pass);
}

pln_status pln_pipeline_print(const pln_pass *pass, pln_write_fn write,
                              void *ud) {
  printer p = {.engine = pass->engine, .write = write, .ud = ud};
  return put_whole(&p, pass);
}

pln_status pln_pipeline_print_at(const pln_pass *pass, const uint32_t *path,
                                 uint32_t n, pln_buffer *text, size_t *begin,
                                 size_t *end) {
  printer p = {.engine = pass->engine,
               .write = pln_buffer_write,
               .ud = text,
               .path = path,
               .n_path = n,
               .text = text};
  PLN_TRY(put_whole(&p, pass));
  *begin = p.begin;
  *end = p.end;
  return PLN_OK;
}
