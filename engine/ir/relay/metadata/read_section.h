/* relay/metadata/read_section.h: the parsed metadata section, and references to
 * its entries, meta[type key][i]. */

#ifndef PLN_IR_RELAY_METADATA_READ_SECTION_H
#define PLN_IR_RELAY_METADATA_READ_SECTION_H

#include "base/text/json.h"
#include "ir/relay/parse/parse.h"

typedef struct pln_metadata_reader {
  pln_engine *engine;
  pln_json json;
  uint32_t *nodes; /* nodes of the table, as JSON values */
  uint32_t n_nodes;
  uint32_t *arrays; /* "b64ndarrays", as JSON values */
  uint32_t n_arrays;
  uint32_t keys, entries; /* keys and entries of the root Map, or 0 */
  pln_tensor **constants; /* per node: its tensor, or NULL; retained. Constants
                           * given by the caller follow */
  uint32_t n_constants;
  pln_dim *dims;       /* per node: the dim of a tir.Var, or 0 */
  uint32_t *marks;     /* per node: the number of the last object that reached
                        * it */
  uint32_t mark;       /* number of the current object */
  size_t object_bytes; /* total size of all objects' texts */
} pln_metadata_reader;

/* A node of the table; NULL: no such node. */
const pln_json_value *pln_metadata_read_node(const pln_metadata_reader *m,
                                             uint32_t node);
/* One of its "attrs"; NULL: none. */
const pln_json_value *pln_metadata_read_field(const pln_metadata_reader *m,
                                              uint32_t node, const char *name);
bool pln_metadata_reader_is(const pln_metadata_reader *m, uint32_t node,
                            const char *type_key);
/* The text of the String node that `reference` refers to; NULL: none. */
const pln_json_value *pln_metadata_read_string(const pln_metadata_reader *m,
                                               const pln_json_value *reference);

/* Parses the section after #[metadata]; p->meta then resolves references. */
pln_status pln_metadata_reader_parse(pln_parser *p,
                                     pln_slice section) PLN_CHECKED;
void pln_metadata_reader_free(pln_parser *p);

/* Appends the text of the entry PLN_META_MODULE to `out`; *found false when
 * there is none. */
pln_status pln_metadata_read_module(const pln_parser *p, pln_buffer *out,
                                    bool *found) PLN_CHECKED;

/* Each of these parses a reference at the current token. A constant: the caller
 * releases it; *number is its index. */
pln_status pln_metadata_read_constant(pln_parser *p, pln_tensor **out,
                                      uint32_t *number) PLN_CHECKED;
/* An attribute value: a tensor, or a TVM object. */
pln_status pln_metadata_read_attr(pln_parser *p, pln_attr *out) PLN_CHECKED;
/* All attributes of a call of `op` (0: a call of a function). */
pln_status pln_metadata_read_attrs(pln_parser *p, pln_op op,
                                   pln_attrs *out) PLN_CHECKED;
/* An integer, or a tir.Var, which is a symbolic dim. */
pln_status pln_metadata_read_dim(pln_parser *p, pln_dim *out) PLN_CHECKED;

/* relay/metadata/read_object.c: the text (relay/metadata/object.h) of a TVM
 * object, allocated in the parser's arena. */
pln_status pln_metadata_read_object(pln_parser *p, const pln_token *key,
                                    uint32_t node, uint32_t index,
                                    pln_slice *out) PLN_CHECKED;

/* relay/metadata/read_struct.c: the attributes in a TVM attribute struct with
 * the fields of `schema` (pln_relay_row.attrs). */
pln_status pln_metadata_read_struct(pln_parser *p, const pln_token *key,
                                    uint32_t node, const char *schema,
                                    pln_attrs *out) PLN_CHECKED;

#endif
