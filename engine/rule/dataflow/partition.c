/* partition.c: replaces each match of a dataflow pattern by a call of a new
 * function (TVM's DFPattern.partition; MergeComposite does it for a table of
 * patterns).
 *
 *     nn.relu(nn.conv2d(%x, %w))   =>
 *     %0 = fn (%FunctionVar_0_0, %FunctionVar_0_1,
 *              PartitionedFromPattern="nn.conv2d_nn.relu_") { ... };
 *     %0(%x, %w)
 *
 * Called by the binding, once per graph. One sweep: the body of a function is
 * imported from the old graph with parameters in place of inputs. */

#include <stdio.h>

#include "ir/provenance/rule_application.h"
#include "ir/rewrite/rewrite.h"
#include "rule/dataflow/dataflow.h"

typedef struct partition {
  pln_engine *engine;
  pln_dataflow_groups groups;
  pln_attrs attrs;
  pln_dataflow_check check;
  void *ud;
  pln_ref_list params;
  uint32_t n_functions;
} partition;

/* The attributes of a function: its name, then those given. */
static pln_status function_attrs(partition *p, const pln_dataflow_group *group,
                                 pln_attrs *out) {
  pln_engine *e = p->engine;
  pln_attr name = {.kind = PLN_ATTR_STRING};
  name.v.s = (pln_slice){(const char *)p->groups.names.data + group->name,
                         group->n_name};
  PLN_TRY(pln_symbol_intern(e, pln_text("PartitionedFromPattern"), &name.name));
  PLN_TRY(pln_attrs_make(e, 1, &name, out));
  for (uint32_t i = 0; i < pln_attrs_count(e, p->attrs); i++) {
    pln_attr given = *pln_attrs_at(e, p->attrs, i);
    PLN_TRY(pln_attrs_with(e, *out, &given, out));
  }
  return PLN_OK;
}

static pln_status add_param(partition *p, pln_rewrite *rw, pln_builder *b,
                            const pln_dataflow_group *group, uint32_t i) {
  char text[48];
  pln_symbol name;
  pln_ref input = p->groups.inputs.items[group->inputs + i], param;
  pln_type type = b->graph->nodes[pln_rewrite_image(rw, input)].type;
  int size = snprintf(text, sizeof text, "FunctionVar_%u_%u", group->number, i);
  PLN_TRY(pln_symbol_intern(p->engine, (pln_slice){text, (size_t)size}, &name));
  PLN_TRY(pln_build_param(b, name, type, 0, &param));
  PLN_TRY(pln_ref_list_add(p->engine, &p->params, param));
  return pln_import_seed(b, pln_rewrite_old(rw), input, param);
}

/* In the function, variables of lets outside are their values. */
static pln_status bind_variables(partition *p, pln_rewrite *rw, pln_builder *b,
                                 const pln_dataflow_group *group) {
  const pln_graph *old = pln_rewrite_old(rw);
  for (uint32_t i = 0; i < group->n_vars; i++) {
    pln_ref var = p->groups.vars.items[group->vars + i], copy;
    pln_ref value = pln_rule_bound_value(&p->groups.region.values, var);
    PLN_TRY(pln_build_import(b, old, value, &copy));
    PLN_TRY(pln_import_seed(b, old, var, copy));
  }
  return PLN_OK;
}

static pln_status call_group(partition *p, pln_rewrite *rw, pln_builder *b,
                             const pln_dataflow_group *group, pln_ref function,
                             pln_ref *out) {
  for (uint32_t i = 0; i < group->n_inputs; i++)
    p->params.items[i] =
        pln_rewrite_image(rw, p->groups.inputs.items[group->inputs + i]);
  return pln_build_apply(b, function, 0, 0, group->n_inputs, p->params.items,
                         out);
}

static pln_status outline(partition *p, pln_rewrite *rw,
                          const pln_dataflow_group *group, pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(rw);
  pln_attrs attrs;
  pln_scope body;
  pln_ref result, function;
  if (!b)
    return PLN_ERR_NOMEM;
  p->params.n = 0;
  p->n_functions++;
  PLN_TRY(function_attrs(p, group, &attrs));
  PLN_TRY(pln_build_open(b, &body));
  for (uint32_t i = 0; i < group->n_inputs; i++)
    PLN_TRY(add_param(p, rw, b, group, i));
  PLN_TRY(bind_variables(p, rw, b, group));
  PLN_TRY(pln_build_import(b, pln_rewrite_old(rw), group->root, &result));
  PLN_TRY(pln_build_end(b, body, result, 0));
  PLN_TRY(pln_build_function(b, body, attrs, 0, &function));
  return call_group(p, rw, b, group, function, out);
}

static pln_status visit_node(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  partition *p = ud;
  const pln_dataflow_group *group = pln_dataflow_group_at(&p->groups, old);
  bool wanted = true;
  if (!group)
    return PLN_OK;
  if (p->check)
    PLN_TRY(p->check(p->ud, rw, old, &wanted));
  if (wanted)
    PLN_TRY(pln_rewrite_apply(rw, "partition", &wanted));
  return wanted ? outline(p, rw, group, node) : PLN_OK;
}

pln_status pln_dataflow_partition(const pln_dataflow_pattern *pattern,
                                  const pln_graph *graph, bool lets,
                                  pln_attrs attrs, pln_dataflow_check check,
                                  void *ud, pln_graph **out) {
  partition p = {
      .engine = graph->engine, .attrs = attrs, .check = check, .ud = ud};
  pln_mutator mutator = {.ud = &p, .visit = visit_node};
  pln_status status =
      pln_dataflow_groups_find(&p.groups, pattern, graph, true, lets);
  if (status == PLN_OK)
    status = pln_graph_rewrite(graph, &mutator, out);
  if (status == PLN_OK && p.n_functions == 0 && *out != graph) {
    pln_graph_release(*out); /* the check built nodes that nothing uses */
    *out = pln_graph_retain((pln_graph *)graph);
  }
  pln_ref_list_free(p.engine, &p.params);
  pln_dataflow_groups_free(&p.groups);
  return status;
}
