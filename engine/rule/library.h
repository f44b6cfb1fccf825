/* library.h: the rules that perilune ships with: lua/perilune/rules, compiled
 * into a table when the engine is built. */

#ifndef PLN_RULE_LIBRARY_H
#define PLN_RULE_LIBRARY_H

#include "rule/rule.h"

typedef struct pln_library_rule {
  const char *pass;  /* the pass that runs it */
  const char *file;  /* of lua/perilune/rules */
  const char *heads; /* operators that its pattern may be a call of, if the text
                      * says so plainly, apart by spaces; NULL */
  pln_rule_info info;
} pln_library_rule;

extern const pln_library_rule pln_library[];
extern const uint32_t pln_library_count;

/* The rules of a pass, made at the first request and kept by the engine. A rule
 * with heads is read and compiled at the first node that it may match.
 * Borrowed. `find` resolves native replacements. */
pln_status pln_library_rules(pln_engine *engine, const char *pass,
                             pln_rule_find_native find,
                             const pln_rule_set **out) PLN_CHECKED;
/* Frees the sets of an engine. */
void pln_library_free(pln_engine *engine);

#endif
