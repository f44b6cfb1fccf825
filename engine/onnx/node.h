/* node.h: the fields of a NodeProto, for import and export. */

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

/* Scans a NodeProto. Overwrites the lists. */
pln_status pln_node_scan(pln_engine *engine, pln_node_lists *lists,
                         pln_message message, pln_onnx_node *out) PLN_CHECKED;
void pln_node_lists_free(pln_engine *engine, pln_node_lists *lists);

/* The nearest origin of a node that has a slice of a file; NULL if none has. */
const pln_origin *pln_onnx_origin(const pln_graph *graph, pln_ref node);
/* Returns true if the slice of the origin is a NodeProto. */
bool pln_origin_is_node(const pln_origin *origin);
pln_message pln_origin_message(const pln_origin *origin);

/* The output names in the slice of an origin, as a pln_names_fn. */
pln_slice_names pln_onnx_output_names(const pln_origin *origin);

/* The symbol "domain::name" or "domain::name:overload" of a local function. */
pln_status pln_onnx_function_name(pln_engine *engine, pln_slice domain,
                                  pln_slice name, pln_slice overload,
                                  pln_symbol *out) PLN_CHECKED;

#endif
