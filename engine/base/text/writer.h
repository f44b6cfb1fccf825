/* writer.h: a buffered writer in front of a pln_write_fn, for the printers. */

#ifndef PLN_BASE_WRITER_H
#define PLN_BASE_WRITER_H

#include "base/base.h"

/* The first failure is kept and suppresses all later output. */
typedef struct pln_writer {
  pln_engine *engine;
  pln_write_fn write;
  void *ud;
  size_t limit;   /* bytes that may still be written; SIZE_MAX: any number */
  bool truncated; /* the limit was reached */
  pln_status status;
  struct pln_metadata *meta; /* collects entries of the metadata section, or
                              * NULL */
  bool schema_kinds;         /* the schema determines the kind of the current
                              * attribute */
  bool met;                  /* such an attribute was written */
  pln_print_constants constants;   /* how the metadata section writes
                                    * constants */
  const struct pln_naming *naming; /* names of type variables, or NULL */
  size_t size;
  char data[8192];
} pln_writer;

/* limit 0: none */
void pln_writer_init(pln_writer *w, pln_engine *engine, size_t limit,
                     pln_write_fn write, void *ud);
/* Flushes; writes "..." when the text was truncated. */
pln_status pln_writer_end(pln_writer *w) PLN_CHECKED;
/* True when no more output will be written. */
static inline bool pln_writer_done(const pln_writer *w) {
  return w->truncated || w->status != PLN_OK || w->size > w->limit;
}

void pln_put(pln_writer *w, const char *data, size_t size);
void pln_put_text(pln_writer *w, const char *text);
void pln_put_int(pln_writer *w, int64_t value);
/* "text", with escapes \" \\ \n \xHH. */
void pln_put_quoted(pln_writer *w, pln_slice text);
/* The same for names in types, which may stand inside comments: comment
 * delimiters are escaped too. */
void pln_put_quoted_name(pln_writer *w, pln_slice name);
/* The same for JSON; bytes that are not UTF-8 are read as Latin-1. */
void pln_put_json(pln_writer *w, pln_slice text);
/* A name that needs no quotes. */
bool pln_is_identifier(pln_slice name);
/* The sigil, then the name, quoted when it is no identifier. */
void pln_put_name(pln_writer *w, const char *sigil, pln_slice name);
/* `value` with the suffix of its dtype. */
void pln_put_float(pln_writer *w, double value, pln_dtype dtype);

void pln_put_dim(pln_writer *w, pln_dim dim);
void pln_put_type(pln_writer *w, pln_type type);
/* The name of a type variable without its kind. */
void pln_put_type_var(pln_writer *w, pln_type var);
/* "name=value" */
void pln_put_attr(pln_writer *w, const pln_attr *attr);
/* The same with `prefix` in front of the name. */
void pln_put_prefixed_attr(pln_writer *w, const char *prefix,
                           const pln_attr *attr);
/* "n_results=3" preceded by `before`. */
void pln_put_results(pln_writer *w, uint32_t results, const char *before);
/* "name=value, ..." preceded by `before` if there is any. Attributes that
 * `schema` lists come first, in its order. `schema` may be NULL. */
void pln_put_attrs(pln_writer *w, pln_attrs attrs, const char *schema,
                   const char *before);
/* The attributes of a call of `op` with that many results, in Relay's form
 * where Relay has the operator. */
void pln_put_op_attrs(pln_writer *w, pln_op op, uint32_t results,
                      pln_attrs attrs, const char *before);

#endif
