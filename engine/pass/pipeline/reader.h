/* reader.h: the tokenizer of pipeline text and of option text, for the files of
 * pass/. */

#ifndef PLN_PASS_PIPELINE_READER_H
#define PLN_PASS_PIPELINE_READER_H

#include "pass/pass.h"

typedef struct pln_reader {
  pln_engine *engine;
  const char *source; /* name of the text in messages */
  const char *text;
  size_t size;
  size_t at;
  pln_buffer word; /* the last name or value read, without quotes */
} pln_reader;

void pln_reader_init(pln_reader *r, pln_engine *engine, const char *source,
                     pln_slice text);
void pln_reader_free(pln_reader *r);

/* Reports an error at the range [begin, end) of the text. */
pln_status pln_reader_error(pln_reader *r, size_t begin, size_t end,
                            pln_status code, const char *message);
pln_status pln_reader_expected(pln_reader *r, const char *what);
/* Replaces the errors reported since `mark` by one at a range of the text. */
pln_status pln_reader_relocate_error(pln_reader *r, size_t mark, size_t begin,
                                     size_t end);

bool pln_reader_is_space(char c);
bool pln_reader_is_word(char c);
void pln_reader_skip_space(pln_reader *r);
/* Returns true if `c` is the next token; pln_reader_accept also consumes it. */
bool pln_reader_at(pln_reader *r, char c);
bool pln_reader_accept(pln_reader *r, char c);
pln_status pln_reader_expect(pln_reader *r, char c,
                             const char *what) PLN_CHECKED;
/* Reads a word or string into r->word, zero-terminated; *begin is its start.
 * `what` says in errors what was expected. */
pln_status pln_reader_word(pln_reader *r, const char *what,
                           size_t *begin) PLN_CHECKED;
/* Reads a name and interns it. */
pln_status pln_reader_name(pln_reader *r, const char *what, size_t *begin,
                           pln_symbol *out) PLN_CHECKED;

/* option_text.c. Reads what follows the name of `whom`, "{a=1}" or nothing, and
 * checks each value. */
pln_status pln_options_read(pln_reader *r, const pln_option *rows, uint32_t n,
                            const char *whom, pln_attrs *out) PLN_CHECKED;

#endif
