/* node.c: reads the fields of a NodeProto into lists that are reused from node
 * to node, and makes the names of local functions. */

#include "onnx/node.h"

#include <stdio.h>

static pln_status push_slice(pln_engine *engine, pln_slice **list,
                             uint32_t *capacity, uint32_t *n, pln_slice s) {
  if (*n == *capacity)
    PLN_TRY(pln_mem_grow(engine, (void **)list, capacity, (size_t)*n + 1,
                         sizeof **list));
  (*list)[(*n)++] = s;
  return PLN_OK;
}

static pln_status push_attribute(pln_engine *engine, pln_node_lists *lists,
                                 uint32_t *n, pln_message message) {
  if (*n == lists->cap_attributes)
    PLN_TRY(pln_mem_grow(engine, (void **)&lists->attributes,
                         &lists->cap_attributes, (size_t)*n + 1,
                         sizeof *lists->attributes));
  lists->attributes[(*n)++] = message;
  return PLN_OK;
}

pln_status pln_node_scan(pln_engine *engine, pln_node_lists *lists,
                         pln_message message, pln_onnx_node *out) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  *out = (pln_onnx_node){.whole = message};
  while (pln_wire_next(&w, &f)) {
    switch (f.tag) {
    case NODE_INPUT:
      PLN_TRY(push_slice(engine, &lists->inputs, &lists->cap_inputs,
                         &out->n_inputs, f.bytes));
      break;
    case NODE_OUTPUT:
      PLN_TRY(push_slice(engine, &lists->outputs, &lists->cap_outputs,
                         &out->n_outputs, f.bytes));
      break;
    case NODE_NAME: out->name = f.bytes; break;
    case NODE_OP_TYPE: out->type = f.bytes; break;
    case NODE_DOMAIN: out->domain = f.bytes; break;
    case NODE_OVERLOAD: out->overload = f.bytes; break;
    case NODE_ATTRIBUTE:
      PLN_TRY(push_attribute(engine, lists, &out->n_attrs,
                             pln_wire_message(&w, &f)));
      break;
    default: break;
    }
  }
  return pln_wire_done(&w, engine, "NodeProto");
}

void pln_node_lists_free(pln_engine *engine, pln_node_lists *lists) {
  pln_mem_free(engine, lists->inputs,
               lists->cap_inputs * sizeof *lists->inputs);
  pln_mem_free(engine, lists->outputs,
               lists->cap_outputs * sizeof *lists->outputs);
  pln_mem_free(engine, lists->attributes,
               lists->cap_attributes * sizeof *lists->attributes);
  *lists = (pln_node_lists){0};
}

pln_status pln_onnx_function_name(pln_engine *engine, pln_slice domain,
                                  pln_slice name, pln_slice overload,
                                  pln_symbol *out) {
  pln_buffer text;
  pln_buffer_init(&text, engine);
  if (pln_slice_is(domain, "ai.onnx"))
    domain.size = 0;
  pln_status status = pln_buffer_add(&text, domain.data, domain.size);
  if (status == PLN_OK)
    status = pln_buffer_text(&text, "::");
  if (status == PLN_OK)
    status = pln_buffer_add(&text, name.data, name.size);
  if (status == PLN_OK && overload.size)
    status = pln_buffer_text(&text, ":");
  if (status == PLN_OK)
    status = pln_buffer_add(&text, overload.data, overload.size);
  if (status == PLN_OK)
    status = pln_symbol_intern(engine, (pln_slice){text.data, text.size}, out);
  pln_buffer_free(&text);
  return status;
}

const pln_origin *pln_onnx_origin(const pln_graph *graph, pln_ref node) {
  const pln_origins *origins = graph->origins;
  uint32_t row = origins ? graph->origin[node] : 0;
  while (origins && (row = pln_origins_source(origins, row)) != 0) {
    const pln_origin *o = pln_origins_row(origins, row);
    if (o->file)
      return o;
    row = o->parent;
  }
  return NULL;
}

bool pln_origin_is_node(const pln_origin *origin) {
  return origin && !origin->name;
}

pln_message pln_origin_message(const pln_origin *origin) {
  return (pln_message){origin->file,
                       pln_file_data(origin->file) + origin->offset,
                       (size_t)origin->length};
}

pln_slice_names pln_onnx_output_names(const pln_origin *origin) {
  pln_wire w = pln_wire_open(
      (pln_message){.file = origin->file,
                    .data = pln_file_data(origin->file) + origin->offset,
                    .size = (size_t)origin->length});
  pln_slice_names out = {{"", 0}, {"", 0}, {"", 0}};
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == NODE_NAME)
      out.name = f.bytes;
    else if (f.tag == NODE_OP_TYPE)
      out.op = f.bytes;
    else if (f.tag == NODE_OUTPUT && out.output.size == 0)
      out.output = f.bytes;
  }
  return out;
}
