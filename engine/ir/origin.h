/* origin.h: where nodes come from. One table for a graph and its descendants,
 * append-only; a node has a row number (4 bytes). */

#ifndef PLN_ORIGIN_H
#define PLN_ORIGIN_H

#include "base/base.h"
#include "base/file.h"

typedef struct pln_origin {
  pln_symbol name; /* hint: an ONNX value name, a Lua name; 0 none */
  pln_symbol pass; /* the pass that made it; 0: the source */
  uint32_t parent; /* the origin it was made from; 0 none */
  pln_file *file;  /* borrowed from the table; NULL none */
  uint64_t offset; /* the slice of the file: an ONNX NodeProto, */
  uint64_t length; /*   TensorProto or GraphProto without its length prefix */
  pln_op op;       /* what the slice was imported as, to tell changes */
  pln_attrs attrs;
  pln_text_place place; /* in a text that was read; row 0: none */
  bool place_printed;   /* shown by the printer */
  /* In which order a Function's attributes stood: a list of entries that have
   * nothing but names; 0: by name. */
  pln_attrs attr_order;
} pln_origin;

/* Tells of an origin with a slice what it was in its format, as snprintf does:
 * "node 'a' (Conv)". */
typedef size_t (*pln_tell_fn)(const pln_origin *origin, char *text,
                              size_t size);

typedef struct pln_origins {
  pln_engine *engine;
  uint32_t refs;
  /* Of a child's table: the parent's, whose rows come first, and how many. */
  struct pln_origins *base;
  uint32_t below;
  uint32_t joined;          /* the first own row, once it is the parent's */
  uint32_t count, capacity; /* row 0 is "nothing is known" */
  pln_origin *rows;         /* from `below` on */
  uint32_t n_files, cap_files;
  pln_file **files; /* retained */
  pln_tell_fn tell; /* of rows with a slice and without a name, or NULL */
  bool declares;    /* types of nodes were declared beyond what is inferred */
} pln_origins;

pln_status pln_origins_new(pln_engine *engine, pln_origins **out) PLN_CHECKED;
/* A child's table over its parent's. */
pln_status pln_origins_over(pln_engine *child, pln_origins *base,
                            pln_origins **out) PLN_CHECKED;
static inline const pln_origin *pln_origins_row(const pln_origins *origins,
                                                uint32_t row) {
  return row < origins->below ? &origins->base->rows[row]
                              : &origins->rows[row - origins->below];
}
pln_origins *pln_origins_retain(pln_origins *origins);
void pln_origins_release(pln_origins *origins);
/* Appends a row; retains its file. */
pln_status pln_origins_add(pln_origins *origins, const pln_origin *row,
                           uint32_t *out) PLN_CHECKED;
/* The row that tells a place: `row`, or what it was named from; 0: none. */
uint32_t pln_origins_place(const pln_origins *origins, uint32_t row);
/* The order of attributes that `row`, or what it was named from, tells. */
pln_attrs pln_origins_attr_order(const pln_origins *origins, uint32_t row);
/* What row `row`, or what it was made from, is to its source, for messages and
 * as snprintf does; 0 when nothing is known. */
size_t pln_origins_tell(const pln_origins *origins, uint32_t row, char *text,
                        size_t size);

#endif
