/* kinds.c: the table of node kinds, generated from kinds.def.
 *
 * Walkers, copiers, equality, hash, verifier and printer read it, so that each
 * kind is described in one place. */

#include "ir/graph/graph.h"

enum {
#define KIND(ID, ...) ROW_##ID,
#include "ir/graph/kinds.def"
  N_ROWS
};

#define KIND(ID, ...)                            \
  _Static_assert((int)ROW_##ID == (int)PLN_##ID, \
                 "kinds.def and the enum pln_kind differ at " #ID);
#include "ir/graph/kinds.def"
_Static_assert((int)N_ROWS == (int)PLN_N_KINDS,
               "kinds.def and the enum pln_kind differ in length");

const pln_kind_info pln_kinds[PLN_N_KINDS] = {
#define KIND(ID, name, kind_class, operands, scopes, payload, attrs, shared, \
             fields, doc)                                                    \
  {name,                                                                     \
   PLN_CLASS_##kind_class,                                                   \
   operands,                                                                 \
   scopes,                                                                   \
   PLN_PAYLOAD_##payload,                                                    \
   attrs,                                                                    \
   shared,                                                                   \
   fields,                                                                   \
   doc},
#include "ir/graph/kinds.def"
};

const char *pln_kind_name(pln_kind kind) {
  return (unsigned)kind < PLN_N_KINDS ? pln_kinds[kind].name : "?";
}
