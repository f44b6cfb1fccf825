/* relay/metadata/object.h: TVM objects that the IR does not represent (devices,
 * targets, expressions inside attributes), kept as text in a PLN_ATTR_OBJECT.
 *
 *     [{"type_key": "VirtualDevice", "attrs": {"device_type_int": "1",
 *       "memory_scope": 1, "target": 0, "virtual_device_id": "0"}},
 *      {"type_key": "runtime.String"}]#2
 *
 * The text is a list of nodes as in TVM's JSON, in TVM's order: "type_key"
 * first, then "repr_str", "keys", "data" and "attrs" if present. Nodes are
 * numbered from 0, which is the object itself. A reference to a node is a bare
 * number, everything else is quoted; 0 is null, because nothing refers to the
 * object itself. An array of TVM's "b64ndarrays" is written in place of its
 * number, as "b64:...".
 *
 * The number after '#' distinguishes objects of equal content: the object's
 * index among those of its type key in the original text. Objects of equal text
 * are the same object.
 *
 * TVM's order depends on the other objects of the section. Unless it is breadth
 * first, a second list with the nodes in that order stands before the '#', and
 * its size in bytes behind the index: "#2,310". Objects are compared by it. */

#ifndef PLN_IR_RELAY_METADATA_OBJECT_H
#define PLN_IR_RELAY_METADATA_OBJECT_H

#include "base/text/writer.h"

/* True if attribute `field` of TVM nodes of that type refers to a node. */
bool pln_object_refers(pln_slice type_key, pln_slice field);

/* One node of the text. */
typedef struct pln_object_node {
  pln_slice type_key;
  pln_slice text, keys, data, attrs; /* values of "repr_str", ...; empty if
                                      * absent */
} pln_object_node;

/* Reads the node at *at, which starts at 0, and advances *at. False at the end
 * and for malformed text. */
bool pln_object_next(pln_slice object, size_t *at, pln_object_node *out);
/* The same for the entries of `keys` (*name empty), `data`, and `attrs`: *value
 * is a quoted string or a bare number. */
bool pln_object_entry(pln_slice list, size_t *at, pln_slice *name,
                      pln_slice *value);

/* read_object.c: the object of a list of nodes, the first of which is the
 * object, in any order: `[{"type_key": ..}, ..]` as above, without constants.
 * *out is overwritten; it may hold `nodes`. PLN_ERR_FORMAT without a diagnostic
 * when the list is malformed. */
pln_status pln_object_build(pln_engine *engine, pln_slice nodes,
                            pln_buffer *out) PLN_CHECKED;

#endif
