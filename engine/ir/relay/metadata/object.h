/* relay/metadata/object.h: objects of TVM that the IR has no words for
 * (devices, targets, expressions inside of attributes), kept as text: what a
 * PLN_ATTR_OBJECT is.
 *
 *     [{"type_key": "VirtualDevice", "attrs": {"device_type_int": "1",
 *       "memory_scope": 1, "target": 0, "virtual_device_id": "0"}},
 *      {"type_key": "runtime.String"}]#2
 *
 * A list of nodes as TVM's JSON has them, in TVM's order, with "type_key" first
 * and then "repr_str", "keys", "data" and "attrs" where the node has them, but
 * numbered from 0, which is the object itself. A number that refers to a node
 * stands bare, all else in quotes; 0 is null, since nothing refers to the
 * object itself. An array that TVM keeps among its "b64ndarrays" stands in
 * place of its number, as "b64:...".
 *
 * The number behind '#' tells objects of equal content apart: the object's
 * index among those of its type key in the text that it was read from. Without
 * it equal objects are one. */

#ifndef PLN_IR_RELAY_METADATA_OBJECT_H
#define PLN_IR_RELAY_METADATA_OBJECT_H

#include "base/writer.h"

/* Whether attribute `field` of TVM's nodes of that type refers to a node. */
bool pln_object_refers(pln_slice type_key, pln_slice field);

/* One node of an object's text. */
typedef struct pln_object_node {
  pln_slice type_key;
  pln_slice text, keys, data, attrs; /* values of "repr_str", ...; or empty */
} pln_object_node;

/* Reads the node at *at, which begins as the object's text, and goes on behind
 * it. False at the end and where the text is none of this form. */
bool pln_object_next(pln_slice object, size_t *at, pln_object_node *out);
/* The same for the entries of `keys` (*name empty), `data`, and `attrs`: *value
 * is a string in its quotes or a bare number. */
bool pln_object_entry(pln_slice list, size_t *at, pln_slice *name,
                      pln_slice *value);

#endif
