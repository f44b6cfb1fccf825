/* node.h: a NodeProto's fields, as import and export look at them. */

#ifndef PLN_ONNX_NODE_H
#define PLN_ONNX_NODE_H

#include "ir/graph/graph.h"
#include "ir/provenance/origin.h"
#include "onnx/import/decode.h"

/* The repeated fields of the node scanned last. */
typedef struct pln_node_lists {
  pln_slice *inputs, *outputs;
  pln_message *attributes;
  uint32_t cap_inputs, cap_outputs, cap_attributes;
} pln_node_lists;

typedef struct pln_onnx_node {
  pln_message whole;
  pln_slice name, type, domain, overload;
  uint32_t n_inputs, n_outputs, n_attrs;
} pln_onnx_node;

/* The lists are overwritten. */
pln_status pln_node_scan(pln_engine *engine, pln_node_lists *lists,
                         pln_message message, pln_onnx_node *out) PLN_CHECKED;
void pln_node_lists_free(pln_engine *engine, pln_node_lists *lists);

/* Where a node came from: the nearest origin with a slice; NULL when none. */
const pln_origin *pln_onnx_origin(const pln_graph *graph, pln_ref node);
/* Whether that slice is a NodeProto. */
bool pln_origin_is_node(const pln_origin *origin);
pln_message pln_origin_message(const pln_origin *origin);

/* Of the origin of a node, a pln_names_fn. */
pln_slice_names pln_onnx_output_names(const pln_origin *origin);

/* "domain::name" or "domain::name:overload". */
pln_status pln_onnx_function_name(pln_engine *engine, pln_slice domain,
                                  pln_slice name, pln_slice overload,
                                  pln_symbol *out) PLN_CHECKED;

#endif
