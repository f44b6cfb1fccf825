/* reader.h: a pipeline's text, word by word; for the files of pass/ that
 * read such text. */

#ifndef PLN_PASS_PIPELINE_READER_H
#define PLN_PASS_PIPELINE_READER_H

#include "pass/pass.h"

typedef struct pln_reader {
  pln_engine *engine;
  const char *source; /* what messages call the text */
  const char *text;
  size_t size;
  size_t at;
  pln_buffer word; /* the newest name or value, without quotes */
} pln_reader;

void pln_reader_init(pln_reader *r, pln_engine *engine, const char *source,
                     pln_slice text);
void pln_reader_free(pln_reader *r);

/* Reports at [begin, end). */
pln_status pln_reader_error(pln_reader *r, size_t begin, size_t end,
                            pln_status code, const char *message);
pln_status pln_reader_expected(pln_reader *r, const char *what);
/* Takes back the error reported since `mark`, and says it again at a place. */
pln_status pln_reader_relocate_error(pln_reader *r, size_t mark, size_t begin,
                                     size_t end);

bool pln_reader_is_space(char c);
bool pln_reader_is_word(char c);
void pln_reader_skip_space(pln_reader *r);
/* Whether `c` comes next, behind space; accept takes it. */
bool pln_reader_at(pln_reader *r, char c);
bool pln_reader_accept(pln_reader *r, char c);
pln_status pln_reader_expect(pln_reader *r, char c,
                             const char *what) PLN_CHECKED;
/* A word or string into r->word, terminated; *begin is where it starts. */
pln_status pln_reader_word(pln_reader *r, const char *what,
                           size_t *begin) PLN_CHECKED;
/* A name's symbol. */
pln_status pln_reader_name(pln_reader *r, const char *what, size_t *begin,
                           pln_symbol *out) PLN_CHECKED;

/* option_text.c. Behind the name of `whom`: "{a=1}" or nothing, each value
 * checked. */
pln_status pln_options_read(pln_reader *r, const pln_option *rows, uint32_t n,
                            const char *whom, pln_attrs *out) PLN_CHECKED;

#endif
