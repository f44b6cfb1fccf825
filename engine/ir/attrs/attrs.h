/* attrs.h: equality and hashes of attributes, for comparing graphs. */

#ifndef PLN_IR_ATTRS_ATTRS_H
#define PLN_IR_ATTRS_ATTRS_H

#include "base/base.h"

/* The part of an OBJECT that is compared (relay/metadata/object.h): its nodes,
 * in an order that does not depend on the other objects of the text. */
pln_slice pln_object_content(pln_slice object);
/* Floats within 1e-9 are equal, as in Relay; everything else must be
 * identical. */
pln_status pln_attr_equal(pln_engine *engine, const pln_attr *a,
                          const pln_attr *b, bool *same) PLN_CHECKED;
pln_status pln_attrs_equal(pln_engine *engine, pln_attrs a, pln_attrs b,
                           bool *same) PLN_CHECKED;

/* A hash of entries that agrees with pln_attrs_equal. */
uint64_t pln_attr_entries_hash(const pln_engine *engine, uint32_t count,
                               const pln_attr *entries);
/* A hash of a tensor that agrees with pln_tensor_equal and is the same in every
 * run: a tensor not compared by content is hashed by dtype and dims. */
uint64_t pln_tensor_content_hash(const pln_tensor *tensor);

/* target_text.c: the dictionary of a target's text. */
pln_status pln_target_read(pln_engine *engine, pln_slice text,
                           pln_attrs *out) PLN_CHECKED;
/* The dictionary of a target, and of its host, with the entries that every
 * target has; the host may be a text. */
pln_status pln_target_complete(pln_engine *engine, pln_attrs target,
                               pln_attrs *out) PLN_CHECKED;

#endif
