/* text_meta_in.h: the metadata section of text as it is read, and references
 * to its entries, meta[type key][i]. */

#ifndef PLN_TEXT_META_IN_H
#define PLN_TEXT_META_IN_H

#include "ir/json.h"
#include "ir/text_parse.h"

/* Reads the section behind #[metadata]; p->meta is what references are looked
 * up in from then on. */
pln_status pln_meta_in_read(pln_parser *p, pln_slice section) PLN_CHECKED;
void pln_meta_in_free(pln_parser *p);

/* Each of these reads a reference, which begins at hand.
 * A constant: the caller releases it; *number tells which it is. */
pln_status pln_meta_in_constant(pln_parser *p, pln_tensor **out,
                                uint32_t *number) PLN_CHECKED;
/* The value of an attribute: a tensor, or an object of TVM. */
pln_status pln_meta_in_attr(pln_parser *p, pln_attr *out) PLN_CHECKED;
/* All attributes of a call of `op` (0: of no operator). */
pln_status pln_meta_in_attrs(pln_parser *p, pln_op op,
                             pln_attrs *out) PLN_CHECKED;
/* An integer, or a tir.Var: a symbolic dim. */
pln_status pln_meta_in_dim(pln_parser *p, pln_dim *out) PLN_CHECKED;

/* text_array_in.c: one of the section's arrays. PLN_ERR_FORMAT without a
 * diagnostic when it is none. */
pln_status pln_array_in(pln_engine *engine, const pln_json *json,
                        const pln_json_value *value,
                        pln_tensor **out) PLN_CHECKED;

#endif
