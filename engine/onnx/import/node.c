/* node.c: imports a NodeProto as a call, with projections for its results.
 *
 * Called by graph.c for each node in file order. Invariant: a node with k > 1
 * outputs is a tuple call with k results, followed by a TupleGetItem for each
 * named output; a node with one output is the call itself. */

#include "onnx/import/import.h"
#include "onnx/registered.h"

/* Declared types are merged into the tuple's type for at most this many
 * results. */
enum { FEW_RESULTS = 64 };

/* ----------------------------------------------------------------- mapping */

/* A function's own opsets take precedence. The default version is 1. */
static int64_t opset_of(const pln_import *in, pln_slice domain) {
  int64_t version = pln_onnx_opset(in->engine, in->model_opsets, domain, 1);
  return pln_onnx_opset(in->engine, in->opsets, domain, version);
}

static pln_status opaque(pln_import *in, const pln_onnx_node *node,
                         pln_op *out) {
  pln_slice domain = node->domain.size ? node->domain : pln_text("ai.onnx");
  pln_buffer text;
  pln_buffer_init(&text, in->engine);
  pln_status status = pln_buffer_add(&text, domain.data, domain.size);
  if (status == PLN_OK)
    status = pln_buffer_text(&text, "::");
  if (status == PLN_OK)
    status = pln_buffer_add(&text, node->type.data, node->type.size);
  if (status == PLN_OK)
    status = pln_op_opaque(in->engine, (pln_slice){text.data, text.size}, out);
  pln_buffer_free(&text);
  return status;
}

static pln_status map_operator(pln_import *in, const pln_onnx_node *node,
                               pln_mapping *out) {
  bool core = pln_onnx_same_domain(node->domain, pln_text(""));
  *out = (pln_mapping){.form = PLN_FORM_CALL};
  if (core && pln_slice_is(node->type, "If"))
    out->form = PLN_FORM_IF;
  if (core && pln_slice_is(node->type, "Constant"))
    out->form = PLN_FORM_CONSTANT;
  int64_t version = opset_of(in, node->domain);
  out->op = pln_onnx_registered(in->engine, node->domain, node->type, version);
  if (out->op) {
    out->renames_attrs = pln_op_registered(in->engine, out->op)->onnx.n_attrs;
    return PLN_OK;
  }
  const pln_onnx_op *row = pln_onnx_op_find(node->domain, node->type, version);
  if (!row)
    return opaque(in, node, &out->op);
  out->op = row->op;
  out->renames_attrs = pln_onnx_renames_attrs(row->op);
  return pln_onnx_implied(in->engine, row, &out->implied);
}

static pln_status make_mapping(pln_import *in, const pln_onnx_node *node,
                               pln_mapping *out) {
  pln_symbol name;
  if (in->n_functions) {
    PLN_TRY(pln_onnx_function_name(in->engine, node->domain, node->type,
                                   node->overload, &name));
    uint32_t row = pln_scoped_names_find(&in->by_name,
                                         pln_symbol_text(in->engine, name), 0);
    if (row != PLN_NONE) {
      row = in->by_name.rows[row].value;
      *out = (pln_mapping){.form = PLN_FORM_FUNCTION,
                           .function = name,
                           .n_outputs = in->functions[row].n_outputs};
      return PLN_OK;
    }
  }
  return map_operator(in, node, out);
}

/* Overloads are rare; their key is the full name. */
static pln_status mapping_key(pln_import *in, const pln_onnx_node *node,
                              uint64_t *out) {
  pln_symbol type, domain = 0;
  if (node->overload.size)
    PLN_TRY(pln_onnx_function_name(in->engine, (pln_slice){"", 0}, node->type,
                                   node->overload, &type));
  else
    PLN_TRY(pln_symbol_intern(in->engine, node->type, &type));
  if (node->domain.size)
    PLN_TRY(pln_symbol_intern(in->engine, node->domain, &domain));
  *out = (uint64_t)domain << 32 | type;
  return PLN_OK;
}

static pln_status mapping_of(pln_import *in, const pln_onnx_node *node,
                             uint32_t *out) {
  uint64_t key;
  PLN_TRY(mapping_key(in, node, &key));
  uint32_t known = pln_idmap_get(in->mapped, key);
  if (known) {
    *out = known - 1;
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(in->engine, (void **)&in->mappings, &in->cap_mappings,
                       (size_t)in->n_mappings + 1, sizeof *in->mappings));
  PLN_TRY(make_mapping(in, node, &in->mappings[in->n_mappings]));
  *out = in->n_mappings++;
  return pln_idmap_set(in->mapped, key, *out + 1);
}

/* -------------------------------------------------------------- attributes */

static bool has_entry(const pln_attr *entries, uint32_t n, pln_symbol name) {
  for (uint32_t i = 0; i < n; i++)
    if (entries[i].name == name)
      return true;
  return false;
}

static uint32_t add_implied(const pln_import *in, pln_attrs implied,
                            pln_attr *entries, uint32_t n) {
  uint32_t given = n, k = pln_attrs_count(in->engine, implied);
  for (uint32_t i = 0; i < k; i++) {
    const pln_attr *a = pln_attrs_at(in->engine, implied, i);
    if (!has_entry(entries, given, a->name))
      entries[n++] = *a;
  }
  return n;
}

/* Gives the entries the core's names. */
static pln_status rename_entries(const pln_import *in, pln_op op,
                                 pln_attr *entries, uint32_t n) {
  const pln_operator_onnx *node = pln_onnx_registered_node(in->engine, op);
  for (uint32_t i = 0; i < n; i++) {
    pln_slice name = pln_symbol_text(in->engine, entries[i].name);
    PLN_TRY(pln_symbol_intern(in->engine,
                              node ? pln_onnx_registered_attr(node, name)
                                   : pln_onnx_attr_name(op, name),
                              &entries[i].name));
  }
  return PLN_OK;
}

static pln_status decode_all(pln_import *in, const pln_onnx_node *node,
                             const pln_mapping *m, pln_attr_scratch *scratch,
                             pln_attr *entries, uint32_t *n_graphs,
                             pln_attrs *out) {
  uint32_t graph = node->n_inputs;
  for (uint32_t i = 0; i < node->n_attrs; i++)
    PLN_TRY(pln_decode_attr(&in->decoder, in->lists.attributes[i], scratch,
                            &graph, &entries[i]));
  *n_graphs = graph - node->n_inputs;
  if (m->renames_attrs)
    PLN_TRY(rename_entries(in, m->op, entries, node->n_attrs));
  uint32_t n = add_implied(in, m->implied, entries, node->n_attrs);
  const pln_registered_op *registered =
      pln_op_row(in->engine, m->op)->registered;
  PLN_TRY(pln_attrs_make(in->engine, n, entries, out));
  return registered ? pln_registered_normal(in->engine, registered, *out, out)
                    : PLN_OK;
}

/* GRAPH attributes are numbered in file order after the inputs. */
static pln_status read_attrs(pln_import *in, const pln_onnx_node *node,
                             const pln_mapping *m, uint32_t *n_graphs,
                             pln_attrs *out) {
  *n_graphs = 0;
  *out = m->implied;
  if (node->n_attrs == 0)
    return PLN_OK;
  pln_attr few[16], *entries = few;
  size_t n = node->n_attrs + (size_t)pln_attrs_count(in->engine, m->implied);
  if (n > PLN_COUNT(few) &&
      !(entries = pln_mem_new(in->engine, n * sizeof *entries)))
    return pln_nomem(in->engine);
  pln_attr_scratch scratch = {0};
  pln_arena_init(&scratch.arena, in->engine);
  pln_status status = decode_all(in, node, m, &scratch, entries, n_graphs, out);
  pln_attr_scratch_clear(in->engine, &scratch);
  if (entries != few)
    pln_mem_free(in->engine, entries, n * sizeof *entries);
  return status;
}

/* ---------------------------------------------------------------- operands */

static pln_status no_producer(pln_import *in, pln_slice name) {
  return pln_diag_error(in->engine, PLN_ERR_FORMAT, NULL,
                        "input '%.*s' has no producer before it",
                        (int)(name.size < 200 ? name.size : 200), name.data);
}

/* Writes the inputs to in->args from `at` on; "" is Absent. */
static pln_status find_inputs(pln_import *in, const pln_onnx_node *node,
                              uint32_t at, uint32_t extra) {
  PLN_TRY(pln_mem_grow(in->engine, (void **)&in->args, &in->cap_args,
                       (size_t)at + node->n_inputs + extra + 1,
                       sizeof *in->args));
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    pln_slice name = in->lists.inputs[i];
    if (name.size == 0) {
      PLN_TRY(pln_build_absent(in->builder, &in->args[at + i]));
      continue;
    }
    uint32_t row = pln_scoped_names_find(&in->values, name, 0);
    if (row == PLN_NONE)
      return no_producer(in, name);
    in->args[at + i] = in->values.rows[row].value;
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- results */

static pln_type declared_type(const pln_import *in, pln_slice name) {
  const pln_import_frame *f = &in->frames[in->n_frames - 1];
  uint32_t row = pln_scoped_names_find(&in->declared, name, f->declared);
  return row == PLN_NONE ? 0 : in->declared.rows[row].value;
}

static pln_status define_one(pln_import *in, pln_ref node, pln_slice name) {
  if (name.size == 0)
    return PLN_OK;
  pln_type type = declared_type(in, name);
  if (type)
    PLN_TRY(pln_builder_declare(in->builder, node, type));
  return pln_import_define(in, name, node);
}

static pln_status define_many(pln_import *in, const pln_onnx_node *node,
                              pln_ref call) {
  for (uint32_t i = 0; i < node->n_outputs && i < FEW_RESULTS; i++) {
    pln_type type =
        in->lists.outputs[i].size ? declared_type(in, in->lists.outputs[i]) : 0;
    if (type)
      PLN_TRY(pln_builder_declare_result(in->builder, call, i, type));
  }
  for (uint32_t i = 0; i < node->n_outputs; i++) {
    pln_ref item;
    if (in->lists.outputs[i].size == 0)
      continue;
    PLN_TRY(pln_build_tuple_get_item(in->builder, call, i, &item));
    PLN_TRY(pln_import_define(in, in->lists.outputs[i], item));
  }
  return PLN_OK;
}

static pln_status define_results(pln_import *in, const pln_onnx_node *node,
                                 uint32_t n_results, pln_ref call) {
  if (n_results == 0 && node->n_outputs == 1)
    return define_one(in, call, in->lists.outputs[0]);
  return define_many(in, node, call);
}

/* -------------------------------------------------------------------- calls */

/* A node without outputs is a plain call without projections; an empty tuple
 * would count as a result. */
static uint32_t results_of(const pln_mapping *m, const pln_onnx_node *node) {
  if (m->form == PLN_FORM_FUNCTION && m->n_outputs != 1)
    return node->n_outputs;
  return node->n_outputs > 1 ? node->n_outputs : 0;
}

/* Puts the inputs, which are in in->args, into the order of the operator's
 * operands. Omitted ones at the end are dropped. */
static pln_status order_operands(pln_import *in, const pln_operator_spec *spec,
                                 uint32_t *n) {
  uint32_t wanted = spec->onnx.n_inputs;
  pln_ref inputs[PLN_MAX_OPERATOR_ARGS];
  if (*n > wanted || wanted > PLN_MAX_OPERATOR_ARGS)
    return PLN_OK; /* in no order, or too many: left to inference */
  PLN_TRY(pln_mem_grow(in->engine, (void **)&in->args, &in->cap_args,
                       (size_t)wanted + 1, sizeof *in->args));
  for (; *n < wanted; ++*n)
    PLN_TRY(pln_build_absent(in->builder, &in->args[*n]));
  memcpy(inputs, in->args, wanted * sizeof *inputs);
  for (uint32_t i = 0; i < wanted; i++)
    in->args[pln_onnx_registered_operand(spec, i)] = inputs[i];
  const pln_graph *g = pln_builder_graph(in->builder);
  while (*n && pln_node_kind(g, in->args[*n - 1]) == PLN_ABSENT)
    --*n;
  return PLN_OK;
}

static pln_status build_operator(pln_import *in, const pln_mapping *m,
                                 const pln_onnx_node *node, pln_attrs attrs,
                                 uint32_t n_graphs, const pln_ref *graphs) {
  const pln_operator_spec *spec = pln_op_registered(in->engine, m->op);
  uint32_t n = node->n_inputs + n_graphs;
  pln_ref call;
  PLN_TRY(find_inputs(in, node, 0, n_graphs));
  for (uint32_t i = 0; i < n_graphs; i++)
    in->args[node->n_inputs + i] = graphs[i];
  PLN_TRY(pln_import_origin(in, node->whole, 0, m->op, attrs));
  if (spec && spec->onnx.n_inputs && n_graphs == 0)
    PLN_TRY(order_operands(in, spec, &n));
  PLN_TRY(pln_build_call(in->builder, m->op, attrs, results_of(m, node), n,
                         in->args, &call));
  return define_results(in, node, results_of(m, node), call);
}

/* Omitted trailing inputs are Absent. */
static pln_status pad_inputs(pln_import *in, pln_ref callee, uint32_t *n) {
  pln_type type = pln_node_type(pln_builder_graph(in->builder), callee);
  uint32_t wanted = pln_type_n_parts(in->engine, type);
  if (pln_type_get_kind(in->engine, type) != PLN_TYPE_FUNC)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(in->engine, (void **)&in->args, &in->cap_args, wanted,
                       sizeof *in->args));
  while (*n + 1 < wanted)
    PLN_TRY(pln_build_absent(in->builder, &in->args[(*n)++]));
  return PLN_OK;
}

/* Builds a call of a local function; graphs follow as for an operator. */
static pln_status build_application(pln_import *in, const pln_mapping *m,
                                    const pln_onnx_node *node, pln_attrs attrs,
                                    uint32_t n_graphs, const pln_ref *graphs) {
  pln_ref callee, call;
  PLN_TRY(pln_import_origin(in, node->whole, 0, 0, attrs));
  PLN_TRY(pln_build_global_var(in->builder, m->function, 0, &callee));
  PLN_TRY(find_inputs(in, node, 0, n_graphs));
  for (uint32_t i = 0; i < n_graphs; i++)
    in->args[node->n_inputs + i] = graphs[i];
  uint32_t k = results_of(m, node), n = node->n_inputs + n_graphs;
  if (n_graphs == 0)
    PLN_TRY(pad_inputs(in, callee, &n));
  PLN_TRY(pln_build_apply(in->builder, callee, attrs, k, n, in->args, &call));
  return define_results(in, node, k, call);
}

static pln_status build_constant(pln_import *in, const pln_mapping *m,
                                 const pln_onnx_node *node, pln_attrs attrs) {
  pln_tensor *tensor = NULL;
  if (node->n_inputs == 0 && node->n_outputs == 1)
    PLN_TRY(pln_onnx_constant(in->engine, attrs, &tensor));
  if (!tensor)
    return build_operator(in, m, node, attrs, 0, NULL);
  pln_ref ref;
  pln_status status =
      pln_import_origin(in, node->whole, 0, PLN_OP_CONSTANT, attrs);
  if (status == PLN_OK)
    status = pln_build_constant(in->builder, tensor, &ref);
  pln_tensor_release(tensor);
  return status == PLN_OK ? define_one(in, ref, in->lists.outputs[0]) : status;
}

/* ------------------------------------------------------------ nested graphs */

static pln_status push_nested(pln_import *in, pln_message attribute,
                              uint32_t tag) {
  pln_wire w = pln_wire_open(attribute);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    if (f.tag != tag)
      continue;
    PLN_TRY(pln_mem_grow(in->engine, (void **)&in->nested, &in->cap_nested,
                         (size_t)in->n_nested + 1, sizeof *in->nested));
    in->nested[in->n_nested++] =
        (pln_nested){.graph = pln_wire_message(&w, &f), .scope = PLN_NONE};
  }
  return PLN_OK;
}

/* Returns true if an If can become the kind If; otherwise it is an opaque call.
 * On true its branches are in in->nested, then before else. */
static bool is_plain_if(const pln_import *in, const pln_onnx_node *node,
                        pln_attrs attrs, uint32_t n_graphs) {
  const pln_attr *t = pln_attrs_find(in->engine, attrs, "then_branch");
  const pln_attr *e = pln_attrs_find(in->engine, attrs, "else_branch");
  return n_graphs == 2 && node->n_inputs == 1 && in->lists.inputs[0].size &&
         t && e && t->kind == PLN_ATTR_GRAPH && e->kind == PLN_ATTR_GRAPH;
}

static pln_status collect_graphs(pln_import *in, const pln_onnx_node *node,
                                 pln_attrs attrs, bool plain_if) {
  uint32_t base = in->n_nested;
  for (uint32_t i = 0; i < node->n_attrs; i++) {
    pln_slice name;
    uint32_t kind;
    PLN_TRY(pln_decode_attr_kind(&in->decoder, in->lists.attributes[i], &name,
                                 &kind));
    if (kind == ONNX_GRAPH)
      PLN_TRY(push_nested(in, in->lists.attributes[i], ATTRIBUTE_G));
    if (kind == ONNX_GRAPHS)
      PLN_TRY(push_nested(in, in->lists.attributes[i], ATTRIBUTE_GRAPHS));
  }
  const pln_attr *t = pln_attrs_find(in->engine, attrs, "then_branch");
  if (plain_if && t && t->v.i != node->n_inputs) {
    pln_nested first = in->nested[base];
    in->nested[base] = in->nested[base + 1];
    in->nested[base + 1] = first;
  }
  return PLN_OK;
}

static pln_status wait_for_graphs(pln_import *in, const pln_onnx_node *node,
                                  pln_attrs attrs, uint32_t n_graphs,
                                  bool plain_if) {
  pln_import_frame *f = &in->frames[in->n_frames - 1];
  f->waiting = true;
  f->node = node->whole;
  f->attrs = attrs;
  f->nested = in->n_nested;
  f->n_nested = n_graphs;
  f->n_done = 0;
  return collect_graphs(in, node, attrs, plain_if);
}

static pln_status build_if(pln_import *in, const pln_mapping *m,
                           const pln_onnx_node *node, pln_attrs attrs,
                           const pln_nested *branches) {
  pln_ref ref;
  pln_attrs others;
  PLN_TRY(pln_attrs_without(in->engine, attrs, "then_branch", &others));
  PLN_TRY(pln_attrs_without(in->engine, others, "else_branch", &others));
  PLN_TRY(find_inputs(in, node, 0, 0));
  PLN_TRY(pln_import_origin(in, node->whole, 0, 0, others));
  uint32_t k = results_of(m, node);
  PLN_TRY(pln_build_if(in->builder, in->args[0], branches[0].scope,
                       branches[1].scope, others, k, &ref));
  return define_results(in, node, k, ref);
}

static pln_status make_functions(pln_import *in, const pln_nested *nested,
                                 uint32_t n, pln_ref *out) {
  PLN_TRY(pln_import_origin(in, (pln_message){0}, 0, 0, 0));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_build_function(in->builder, nested[i].scope, 0, 0, &out[i]));
  return PLN_OK;
}

static pln_status finish_call(pln_import *in, const pln_mapping *m,
                              const pln_onnx_node *node, pln_attrs attrs,
                              const pln_nested *nested, uint32_t n) {
  pln_ref few[8], *graphs = few;
  if (n > PLN_COUNT(few) &&
      !(graphs = pln_mem_new(in->engine, n * sizeof *graphs)))
    return pln_nomem(in->engine);
  pln_status status = make_functions(in, nested, n, graphs);
  if (status == PLN_OK && m->form == PLN_FORM_FUNCTION)
    status = build_application(in, m, node, attrs, n, graphs);
  else if (status == PLN_OK)
    status = build_operator(in, m, node, attrs, n, graphs);
  if (graphs != few)
    pln_mem_free(in->engine, graphs, n * sizeof *graphs);
  return status;
}

pln_status pln_import_finish(pln_import *in, pln_import_frame *f) {
  pln_onnx_node node;
  uint32_t mapping;
  PLN_TRY(pln_node_scan(in->engine, &in->lists, f->node, &node));
  in->at = node;
  PLN_TRY(mapping_of(in, &node, &mapping));
  pln_mapping m = in->mappings[mapping];
  const pln_nested *nested = &in->nested[f->nested];
  bool plain_if =
      m.form == PLN_FORM_IF && is_plain_if(in, &node, f->attrs, f->n_nested);
  f->waiting = false;
  return plain_if ? build_if(in, &m, &node, f->attrs, nested)
                  : finish_call(in, &m, &node, f->attrs, nested, f->n_nested);
}

pln_status pln_import_node(pln_import *in, pln_message message) {
  pln_onnx_node node;
  uint32_t mapping, n_graphs;
  pln_attrs attrs;
  PLN_TRY(pln_node_scan(in->engine, &in->lists, message, &node));
  in->at = node;
  if (node.type.size == 0)
    return pln_diag_error(in->engine, PLN_ERR_FORMAT, NULL,
                          "a node has no op_type");
  PLN_TRY(mapping_of(in, &node, &mapping));
  pln_mapping m = in->mappings[mapping];
  PLN_TRY(read_attrs(in, &node, &m, &n_graphs, &attrs));
  if (n_graphs)
    return wait_for_graphs(in, &node, attrs, n_graphs,
                           m.form == PLN_FORM_IF &&
                               is_plain_if(in, &node, attrs, n_graphs));
  if (m.form == PLN_FORM_CONSTANT)
    return build_constant(in, &m, &node, attrs);
  if (m.form == PLN_FORM_FUNCTION)
    return build_application(in, &m, &node, attrs, 0, NULL);
  return build_operator(in, &m, &node, attrs, 0, NULL);
}
