/* pattern_table.h: tables of dataflow patterns with names, for MergeComposite.
 *
 * A table is registered under a name, immutable and reference counted. */

#ifndef PLN_RULE_DATAFLOW_PATTERN_TABLE_H
#define PLN_RULE_DATAFLOW_PATTERN_TABLE_H

#include "rule/dataflow/dataflow.h"

typedef struct pln_pattern_row {
  pln_symbol name; /* of the composite function */
  const pln_dataflow_pattern *pattern;
  /* Whether a match becomes a function; called with the matched node of the old
   * graph. `call` NULL: always. */
  pln_op_function check;
} pln_pattern_row;

typedef struct pln_pattern_table {
  pln_engine *engine;
  uint32_t refs;
  pln_symbol name;
  uint32_t n;
  pln_pattern_row *rows;
  void (*release)(void *ud); /* frees the patterns */
  void *ud;
} pln_pattern_table;

/* Registers the rows, which are copied, instead of a former table of that name.
 * Takes `ud` and the checks; on failure the caller keeps them. */
pln_status pln_pattern_table_register(pln_engine *engine, pln_slice name,
                                      uint32_t n, const pln_pattern_row *rows,
                                      void (*release)(void *ud),
                                      void *ud) PLN_CHECKED;
/* PLN_ERR_NAME when there is none. The caller releases it. */
pln_status pln_pattern_table_find(pln_engine *engine, pln_slice name,
                                  pln_pattern_table **out) PLN_CHECKED;
void pln_pattern_table_release(pln_pattern_table *table);
void pln_pattern_tables_free(pln_engine *engine);

#endif
