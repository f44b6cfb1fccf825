/* merge_composite.c: MergeComposite: makes composite functions of what matches
 * the patterns of a table.
 *
 * Run by the executor, once per function. Requires a verified graph. The
 * patterns are used in the order of the table; what one made a function of, the
 * next ones do not see. A match becomes a call of a function with the
 * attributes Composite, the name in the table, and PartitionedFromPattern; a
 * check may leave it as it is.
 *
 *     nn.relu(nn.bias_add(%x, %b))   =>
 *     %0 = fn (%FunctionVar_0_0, %FunctionVar_0_1, Composite="dnnl.bias_relu",
 *              PartitionedFromPattern="nn.bias_add_nn.relu_") { ... };
 *     %0(%x, %b)
 *
 * Semantics: TVM MergeComposite. */

#include "ir/op_attr.h"
#include "rule/dataflow/pattern_table.h"
#include "transform/transform.h"

/* Asks the check of a row about the matched node. */
static pln_status check_match(void *ud, pln_rewrite *rw, pln_ref root,
                              bool *wanted) {
  const pln_pattern_row *row = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  pln_op_value argument = {.kind = PLN_OP_OLD_NODE, .v.node = root};
  pln_op_value answer = {.kind = PLN_OP_BOOL};
  pln_op_call call = {.engine = g->engine,
                      .op = pln_symbol_text(g->engine, row->name).data,
                      .key = "check",
                      .graph = g,
                      .node = root,
                      .n_args = 1,
                      .args = &argument,
                      .result = &answer};
  pln_status status = row->check.call(row->check.ud, &call);
  if (status != PLN_OK)
    pln_diag_note(g->engine, NULL, "in the check of pattern '%s'", call.op);
  *wanted = answer.v.i != 0;
  return status;
}

/* Replaces *graph, which is retained, by what the row makes of it. */
static pln_status merge_row(const pln_pattern_row *row, pln_graph **graph) {
  pln_engine *e = (*graph)->engine;
  pln_attr name = {.kind = PLN_ATTR_STRING};
  pln_attrs attrs;
  pln_graph *merged;
  name.v.s = pln_symbol_text(e, row->name);
  PLN_TRY(pln_symbol_intern(e, pln_text("Composite"), &name.name));
  PLN_TRY(pln_attrs_make(e, 1, &name, &attrs));
  PLN_TRY(pln_dataflow_partition(row->pattern, *graph, false, attrs,
                                 row->check.call ? check_match : NULL,
                                 (void *)(uintptr_t)row, &merged));
  pln_graph_release(*graph);
  *graph = merged;
  return PLN_OK;
}

pln_status pln_pass_merge_composite(pln_pass_run *run) {
  pln_pattern_table *table;
  pln_slice name = pln_run_string(run, "pattern_table");
  if (name.size == 0)
    return PLN_OK;
  PLN_TRY(pln_pattern_table_find(pln_run_engine(run), name, &table));
  pln_graph *graph = pln_graph_retain(pln_run_function(run));
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < table->n && status == PLN_OK; i++)
    status = merge_row(&table->rows[i], &graph);
  pln_pattern_table_release(table);
  if (status == PLN_OK && graph != pln_run_function(run))
    pln_run_set_function(run, graph);
  else
    pln_graph_release(graph);
  return status;
}
