/* node.c: writes one node of the graph as a NodeProto.
 *
 * An unchanged node is copied from its slice of the file. A node with the
 * same operator keeps the other fields of its slice. Any other node is
 * encoded from the IR. Invariant: inputs and outputs have the names that
 * names.c assigned. */

#include "onnx/export/export.h"
#include "onnx/opset/call_form.h"
#include "onnx/registered.h"

/* Parts up to this size are copied at once. */
enum { SMALL_SLICE = 4096 };

/* ------------------------------------------------------------------- names */

static pln_status push_name(pln_export *ex, pln_slice **list, uint32_t *cap,
                            uint32_t *n, pln_slice name) {
  if (*n == *cap)
    PLN_TRY(pln_mem_grow(ex->engine, (void **)list, cap, (size_t)*n + 1,
                         sizeof **list));
  (*list)[(*n)++] = name;
  return PLN_OK;
}

static pln_status no_value(pln_export *ex, pln_ref operand) {
  const pln_node *n = &ex->g->nodes[operand];
  if (n->kind == PLN_VAR)
    return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "an operand is the variable '%s', which is not a "
                          "parameter and no ONNX value",
                          pln_symbol_text(ex->engine, n->attrs).data);
  return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "an operand is a %s, which cannot be an ONNX value",
                        pln_kind_name((pln_kind)n->kind));
}

static pln_status push_input(pln_export *ex, pln_ref operand) {
  pln_kind kind = pln_node_kind(ex->g, operand);
  pln_slice name = pln_export_name(ex, operand);
  if (kind == PLN_ABSENT)
    name = (pln_slice){"", 0};
  else if (name.size == 0)
    return no_value(ex, operand);
  return push_name(ex, &ex->inputs, &ex->cap_inputs, &ex->n_inputs, name);
}

/* Nested functions become attributes; an omitted one is no input either. */
static bool is_function_operand(const pln_export *ex, const pln_node *n,
                                uint32_t i) {
  pln_kind kind = pln_node_kind(ex->g, pln_operands(ex->g, n)[i]);
  if (kind == PLN_FUNCTION)
    return true;
  return kind == PLN_ABSENT && n->kind == PLN_CALL && n->data &&
         i >= pln_op_n_values(pln_op_row(ex->engine, n->data), n->count);
}

/* Expands tuples among the operands. */
static pln_status list_inputs(pln_export *ex, const pln_node *n) {
  const pln_graph *g = ex->g;
  bool apply = n->kind == PLN_CALL && !n->data;
  ex->n_inputs = 0;
  for (uint32_t i = apply; i < n->count; i++) {
    pln_ref operand = pln_operands(g, n)[i];
    const pln_node *o = &g->nodes[operand];
    if (is_function_operand(ex, n, i))
      continue;
    if (o->kind != PLN_TUPLE)
      PLN_TRY(push_input(ex, operand));
    for (uint32_t k = 0; o->kind == PLN_TUPLE && k < o->count; k++)
      PLN_TRY(push_input(ex, pln_operands(g, o)[k]));
  }
  return PLN_OK;
}

/* Puts the inputs of a registered operator into the order that its node has
 * them in. */
static pln_status order_inputs(pln_export *ex, const pln_node *n) {
  const pln_operator_spec *spec =
      n->kind == PLN_CALL ? pln_op_registered(ex->engine, n->data) : NULL;
  uint32_t wanted = spec ? spec->onnx.n_inputs : 0;
  pln_slice inputs[PLN_MAX_OPERATOR_ARGS];
  if (wanted == 0 || ex->n_inputs > wanted || wanted > PLN_MAX_OPERATOR_ARGS)
    return PLN_OK;
  while (ex->n_inputs < wanted)
    PLN_TRY(push_name(ex, &ex->inputs, &ex->cap_inputs, &ex->n_inputs,
                      (pln_slice){"", 0}));
  memcpy(inputs, ex->inputs, wanted * sizeof *inputs);
  for (uint32_t i = 0; i < wanted; i++)
    ex->inputs[i] = inputs[pln_onnx_registered_operand(spec, i)];
  return PLN_OK;
}

static pln_status list_results(pln_export *ex, pln_ref node) {
  const pln_node *n = &ex->g->nodes[node];
  uint32_t k = n->results ? n->results : 1, slot = ex->slots[node];
  ex->n_results = 0;
  for (uint32_t i = 0; i < k; i++) {
    pln_slice name = ex->names[slot + i];
    if (!name.data)
      name = (pln_slice){"", 0};
    PLN_TRY(
        push_name(ex, &ex->results, &ex->cap_results, &ex->n_results, name));
  }
  if (ex->n_results == 1 && ex->results[0].size == 0)
    ex->n_results = 0;
  return PLN_OK;
}

static bool same_names(const pln_slice *a, uint32_t n, const pln_slice *b,
                       uint32_t m) {
  if (n != m)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (!pln_slice_equal(a[i], b[i]))
      return false;
  return true;
}

static pln_status put_names(pln_rope *rope, uint32_t tag,
                            const pln_slice *names, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_rope_bytes(rope, tag, names[i]));
  return PLN_OK;
}

/* -------------------------------------------------------------- attributes */

static pln_status put_floats(pln_rope *rope, const pln_attr *a) {
  for (uint32_t i = 0; i < a->count; i++)
    PLN_TRY(pln_rope_float(rope, ATTRIBUTE_FLOATS, (float)a->v.floats[i]));
  return PLN_OK;
}

static pln_status put_tensors(pln_export *ex, uint32_t tag,
                              pln_tensor *const *tensors, uint32_t n) {
  pln_slice name = {"", 0};
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_export_tensor(ex, tag, name, tensors[i], (pln_message){0}));
  return PLN_OK;
}

/* The AttributeProto.type of a kind. */
static uint32_t onnx_type(const pln_attr *a) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL: return ONNX_INT;
  case PLN_ATTR_FLOAT: return ONNX_FLOAT;
  case PLN_ATTR_STRING: return ONNX_STRING;
  case PLN_ATTR_TENSOR: return ONNX_TENSOR;
  case PLN_ATTR_TYPE: return ONNX_TYPE_PROTO;
  case PLN_ATTR_REF: return a->onnx_type;
  case PLN_ATTR_GRAPH: return ONNX_GRAPH;
  case PLN_ATTR_INTS: return ONNX_INTS;
  case PLN_ATTR_FLOATS: return ONNX_FLOATS;
  case PLN_ATTR_STRINGS: return ONNX_STRINGS;
  case PLN_ATTR_TENSORS: return ONNX_TENSORS;
  case PLN_ATTR_TYPES: return ONNX_TYPE_PROTOS;
  case PLN_ATTR_GRAPHS: return ONNX_GRAPHS;
  case PLN_ATTR_NONE:
  case PLN_ATTR_DICT:
  case PLN_ATTR_BYTES:
  case PLN_ATTR_LIST:
  case PLN_ATTR_OBJECT:
  case PLN_N_ATTR_KINDS: break;
  }
  return 0;
}

static pln_status write_attribute_value(pln_export *ex, const pln_attr *a) {
  pln_engine *e = ex->engine;
  pln_rope *r = ex->rope;
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL: return pln_rope_int(r, ATTRIBUTE_I, (uint64_t)a->v.i);
  case PLN_ATTR_FLOAT: return pln_rope_float(r, ATTRIBUTE_F, (float)a->v.f);
  case PLN_ATTR_STRING: return pln_rope_bytes(r, ATTRIBUTE_S, a->v.s);
  case PLN_ATTR_TENSOR: return put_tensors(ex, ATTRIBUTE_T, &a->v.tensor, 1);
  case PLN_ATTR_TYPE:
    return pln_encode_type(r, e, ATTRIBUTE_TYPE_PROTO, a->v.type);
  case PLN_ATTR_REF:
    return pln_rope_bytes(r, ATTRIBUTE_REF_NAME,
                          pln_symbol_text(e, a->v.symbol));
  case PLN_ATTR_INTS:
    for (uint32_t i = 0; i < a->count; i++)
      PLN_TRY(pln_rope_int(r, ATTRIBUTE_INTS, (uint64_t)a->v.ints[i]));
    return PLN_OK;
  case PLN_ATTR_FLOATS: return put_floats(r, a);
  case PLN_ATTR_STRINGS:
    return put_names(r, ATTRIBUTE_STRINGS, a->v.strings, a->count);
  case PLN_ATTR_TENSORS:
    return put_tensors(ex, ATTRIBUTE_TENSORS, a->v.tensors, a->count);
  case PLN_ATTR_TYPES:
    for (uint32_t i = 0; i < a->count; i++)
      PLN_TRY(pln_encode_type(r, e, ATTRIBUTE_TYPE_PROTOS, a->v.types[i]));
    return PLN_OK;
  case PLN_ATTR_NONE:
  case PLN_ATTR_DICT:
  case PLN_ATTR_BYTES:
  case PLN_ATTR_GRAPH:
  case PLN_ATTR_GRAPHS:
  case PLN_ATTR_LIST:
  case PLN_ATTR_OBJECT:
  case PLN_N_ATTR_KINDS: break;
  }
  return pln_diag_error(e, PLN_ERR_UNSUPPORTED, NULL,
                        "attribute '%s' is of a kind that ONNX does not have",
                        pln_symbol_text(e, a->name).data);
}

static bool has_tensors(const pln_attr *a) {
  return a->kind == PLN_ATTR_TENSOR || a->kind == PLN_ATTR_TENSORS;
}

static pln_status put_fields(pln_export *ex, const pln_attr *a) {
  PLN_TRY(pln_rope_bytes(ex->rope, ATTRIBUTE_NAME,
                         pln_symbol_text(ex->engine, a->name)));
  PLN_TRY(write_attribute_value(ex, a));
  return pln_rope_int(ex->rope, ATTRIBUTE_TYPE, onnx_type(a));
}

pln_status pln_export_attribute(pln_export *ex, uint32_t tag,
                                const pln_attr *a) {
  pln_open_message nest;
  size_t at;
  if (a->kind == PLN_ATTR_BYTES)
    return pln_rope_bytes(ex->rope, tag, a->v.s);
  if (!has_tensors(a)) {
    PLN_TRY(pln_rope_open(ex->rope, tag, &at));
    PLN_TRY(put_fields(ex, a));
    return pln_rope_close(ex->rope, at);
  }
  PLN_TRY(pln_rope_begin(ex->rope, tag, &nest));
  PLN_TRY(put_fields(ex, a));
  return pln_rope_end(ex->rope, nest);
}

static pln_status put_attribute(pln_export *ex, const pln_attr *a) {
  return pln_export_attribute(ex, NODE_ATTRIBUTE, a);
}

static pln_status must_rewrite_data(pln_export *ex, const pln_attr *a,
                                    bool *out) {
  *out = false;
  if (a->kind == PLN_ATTR_TENSOR)
    return pln_export_must_rewrite_data(ex, a->v.tensor, out);
  for (uint32_t i = 0; a->kind == PLN_ATTR_TENSORS && i < a->count && !*out;
       i++)
    PLN_TRY(pln_export_must_rewrite_data(ex, a->v.tensors[i], out));
  return PLN_OK;
}

/* *moves is true if the data of a tensor attribute moves, *tensors if there are
 * tensor attributes at all. */
static pln_status look_for_tensors(pln_export *ex, pln_attrs attrs, bool *moves,
                                   bool *tensors) {
  *moves = *tensors = false;
  uint32_t n = pln_attrs_count(ex->engine, attrs);
  for (uint32_t i = 0; i < n && !*moves; i++) {
    const pln_attr *a = pln_attrs_at(ex->engine, attrs, i);
    *tensors |= has_tensors(a);
    PLN_TRY(must_rewrite_data(ex, a, moves));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- source */

/* A node being written, and the slice it was imported from if its operator is
 * still the same. */
typedef struct node_plan {
  pln_ref ref;
  const pln_node *node;
  bool later;    /* it has nested graphs: its parts become tasks */
  bool small;    /* its message is written in one go */
  bool restated; /* the operator's version differs from that in its file */
  /* Of a restated node: its version at the target opset. */
  const pln_onnx_schema *schema;
  const pln_onnx_op *row; /* its form at the model's opset, or NULL */
  pln_message slice;      /* no data: no slice */
  bool own;               /* the slice is a field of the open graph */
  pln_slice name;         /* replaces the slice's name, if that is taken */
  pln_onnx_node scanned;
  pln_attrs old, now;
} node_plan;

static bool has_nested(const pln_export *ex, const pln_node *n) {
  if (n->kind == PLN_IF)
    return true;
  for (uint32_t i = 0; n->kind == PLN_CALL && i < n->count; i++)
    if (ex->g->nodes[pln_operands(ex->g, n)[i]].kind == PLN_FUNCTION)
      return true;
  return false;
}

/* The symbol of the function that a call of a global function calls. */
static pln_symbol callee_of(const pln_export *ex, const pln_node *n) {
  return pln_node_symbol(ex->g, pln_operands(ex->g, n)[0]);
}

static pln_status same_constant(pln_export *ex, const node_plan *p,
                                const pln_origin *o, bool *out) {
  pln_tensor *old;
  *out = false;
  if (o->op != PLN_OP_CONSTANT)
    return PLN_OK;
  PLN_TRY(pln_onnx_constant(ex->engine, o->attrs, &old));
  *out = old && pln_tensor_equal(old, pln_node_tensor(ex->g, p->ref));
  pln_tensor_release(old);
  return PLN_OK;
}

static pln_status same_callee(pln_export *ex, const node_plan *p, bool *out) {
  pln_symbol name;
  PLN_TRY(pln_onnx_function_name(ex->engine, p->scanned.domain, p->scanned.type,
                                 p->scanned.overload, &name));
  *out = name == callee_of(ex, p->node);
  return PLN_OK;
}

/* *out is true if the slice is a node of this operator. */
static pln_status same_operator(pln_export *ex, const node_plan *p,
                                const pln_origin *o, bool *out) {
  const pln_node *n = p->node;
  *out = n->kind == PLN_CALL && o->op == n->data;
  if (n->kind == PLN_CONSTANT)
    return same_constant(ex, p, o, out);
  if (n->kind == PLN_IF)
    *out = o->op == 0 && pln_slice_is(p->scanned.type, "If");
  if (n->kind == PLN_CALL && !n->data && *out)
    return same_callee(ex, p, out);
  return PLN_OK;
}

static int64_t opset_of(const pln_export *ex, pln_slice domain) {
  if (pln_onnx_same_domain(domain, pln_text("")))
    return ex->opset;
  return pln_onnx_opset(ex->engine, ex->opsets, domain, 1);
}

/* Finds the row by which an operator without a slice is written. */
static pln_status exported_op_of(const pln_export *ex, pln_op op,
                                 const pln_onnx_op **out) {
  pln_opset_op form;
  PLN_TRY(pln_opset_op_find(ex->engine, op, ex->opset, &form));
  *out = form.row;
  return PLN_OK;
}

static pln_opset_restated_call compare_versions(const pln_export *ex,
                                                const pln_onnx_node *s) {
  const pln_onnx_schema *now = pln_onnx_schema_find(s->type, ex->opset);
  const pln_onnx_schema *then = pln_onnx_schema_find(s->type, ex->source_opset);
  bool differs = pln_onnx_op_find(s->domain, s->type, ex->opset) !=
                     pln_onnx_op_find(s->domain, s->type, ex->source_opset) ||
                 (now && then && strcmp(now->attributes, then->attributes));
  return (pln_opset_restated_call){
      .known = true, .restated = differs, .schema = differs ? now : NULL};
}

/* A core operator maps to one ONNX operator, so the answer is cached by
 * operator. */
static pln_status find_restatement(pln_export *ex, node_plan *p) {
  const pln_onnx_node *s = &p->scanned;
  pln_op op = p->node->kind == PLN_CONSTANT ? PLN_OP_CONSTANT
              : p->node->kind == PLN_CALL   ? p->node->data
                                            : 0;
  if (!ex->restated || op == 0 || op >= PLN_N_OPS ||
      !pln_onnx_same_domain(s->domain, pln_text("")))
    return PLN_OK;
  if (!ex->restatements)
    ex->restatements =
        pln_mem_zeroed(ex->engine, PLN_N_OPS * sizeof *ex->restatements);
  if (!ex->restatements)
    return pln_nomem(ex->engine);
  if (!ex->restatements[op].known)
    ex->restatements[op] = compare_versions(ex, s);
  p->restated = ex->restatements[op].restated;
  p->schema = ex->restatements[op].schema;
  return PLN_OK;
}

static pln_status find_source(pln_export *ex, node_plan *p) {
  const pln_origin *o = pln_export_origin(ex, p->ref);
  bool same = false;
  if (!pln_origin_is_node(o))
    return PLN_OK;
  PLN_TRY(pln_node_scan(ex->engine, &ex->lists, pln_origin_message(o),
                        &p->scanned));
  PLN_TRY(same_operator(ex, p, o, &same));
  if (!same)
    return PLN_OK;
  p->slice = pln_origin_message(o);
  p->own = pln_export_is_own(ex, o);
  p->old = o->attrs;
  if (p->node->kind == PLN_CONSTANT)
    p->now = o->attrs;
  return find_restatement(ex, p);
}

static bool takes_tuple(const pln_export *ex, const pln_node *n) {
  return n->count == 1 &&
         pln_type_get_kind(ex->engine,
                           ex->g->nodes[pln_operands(ex->g, n)[0]].type) ==
             PLN_TYPE_TUPLE;
}

/* A node copied from a file has an ONNX form, whatever its attributes are. */
static pln_status check_form(pln_export *ex, const node_plan *p) {
  bool read = p->slice.data && p->now == p->old && !takes_tuple(ex, p->node);
  if (read || !pln_op_is_relay_form(ex->g, p->ref))
    return PLN_OK;
  return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "the Relay form of '%s' cannot be expressed in ONNX",
                        pln_op_row(ex->engine, p->node->data)->name);
}

static pln_status plan_node(pln_export *ex, pln_ref ref, node_plan *p) {
  enum { SMALL = 4096 };
  bool moves, tensors;
  const pln_node *n = &ex->g->nodes[ref];
  *p = (node_plan){.ref = ref, .node = n, .later = has_nested(ex, n)};
  p->now = n->kind == PLN_CONSTANT ? 0 : n->attrs;
  PLN_TRY(find_source(ex, p));
  PLN_TRY(check_form(ex, p));
  PLN_TRY(look_for_tensors(ex, p->now, &moves, &tensors));
  p->small =
      !p->later && !tensors && n->kind != PLN_CONSTANT && p->slice.size < SMALL;
  return PLN_OK;
}

/* The form is looked up only for nodes that changed. */
static pln_status find_form(const pln_export *ex, node_plan *p) {
  const pln_onnx_node *s = &p->scanned;
  if (p->node->kind != PLN_CALL || !p->node->data)
    return PLN_OK;
  if (!p->slice.data)
    return exported_op_of(ex, p->node->data, &p->row);
  p->row = pln_onnx_op_find(s->domain, s->type, opset_of(ex, s->domain));
  return PLN_OK;
}

/* ------------------------------------------------------------------- pieces */

/* Writes a part of the node's message, or pushes it as a task if nested graphs
 * come before it. */
static pln_status write_part(pln_export *ex, const node_plan *p,
                             pln_task task) {
  if (p->later)
    return pln_export_push(ex, task);
  return pln_export_slice(ex, &task);
}

pln_status pln_export_slice(pln_export *ex, const pln_task *task) {
  if (task->kind == PLN_TASK_ATTR)
    return put_attribute(ex, pln_attrs_at(ex->engine, task->tag, task->at));
  if (task->fields.size < SMALL_SLICE)
    return pln_rope_raw(ex->rope, task->fields.data, task->fields.size);
  return pln_rope_fields(ex->rope, task->fields);
}

static pln_status copy_fields(pln_export *ex, const node_plan *p,
                              const pln_wire *w, const pln_field *f) {
  pln_message fields = {w->file, f->start, (size_t)(f->next - f->start)};
  return write_part(ex, p, (pln_task){.kind = PLN_TASK_COPY, .fields = fields});
}

static pln_status new_attribute(pln_export *ex, const node_plan *p,
                                uint32_t index) {
  return write_part(
      ex, p, (pln_task){.kind = PLN_TASK_ATTR, .tag = p->now, .at = index});
}

/* ------------------------------------------------------------ nested graphs */

static bool is_graph(const pln_attr *a) {
  return a->kind == PLN_ATTR_GRAPH || a->kind == PLN_ATTR_GRAPHS;
}

static pln_status push_graph(pln_export *ex, pln_scope scope, uint32_t tag) {
  return pln_export_push(
      ex, (pln_task){.kind = PLN_TASK_GRAPH, .tag = tag, .scope = scope});
}

/* Pushes the graph of argument `index`, a nested function. */
static pln_status push_argument(pln_export *ex, const pln_node *n,
                                int64_t index, uint32_t tag) {
  index += n->kind == PLN_CALL && !n->data;
  if (index >= 0 && index < n->count) {
    pln_ref f = pln_operands(ex->g, n)[index];
    if (ex->g->nodes[f].kind == PLN_FUNCTION)
      return push_graph(ex, ex->g->nodes[f].data, tag);
  }
  return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "a graph attribute is not a nested function");
}

/* The branch of an If that an attribute of that name holds. */
static pln_scope branch_of(const pln_export *ex, const pln_node *n,
                           pln_slice name) {
  if (n->kind != PLN_IF)
    return PLN_NONE;
  if (pln_slice_is(name, "then_branch"))
    return n->data;
  return pln_slice_is(name, "else_branch") ? ex->g->scopes[n->data].next
                                           : PLN_NONE;
}

/* Pushes the graphs of one attribute: a branch of an If (a is NULL), or nested
 * functions. */
static pln_status push_graphs(pln_export *ex, const pln_node *n,
                              const pln_attr *a, pln_scope branch) {
  if (!a)
    return push_graph(ex, branch, ATTRIBUTE_G);
  if (a->kind == PLN_ATTR_GRAPH)
    return push_argument(ex, n, a->v.i, ATTRIBUTE_G);
  for (uint32_t i = 0; i < a->count; i++)
    PLN_TRY(push_argument(ex, n, a->v.ints[i], ATTRIBUTE_GRAPHS));
  return PLN_OK;
}

/* Pushes the fields of an attribute before, or after, its graphs. */
static pln_status push_fields(pln_export *ex, pln_message attribute,
                              bool behind) {
  pln_wire w = pln_wire_open(attribute);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    if (f.tag == ATTRIBUTE_G || f.tag == ATTRIBUTE_GRAPHS ||
        (f.tag > ATTRIBUTE_G) != behind)
      continue;
    pln_message fields = {attribute.file, f.start, (size_t)(f.next - f.start)};
    PLN_TRY(pln_export_push(
        ex, (pln_task){.kind = PLN_TASK_COPY, .fields = fields}));
  }
  return PLN_OK;
}

/* Rewrites an attribute of the file with its graphs. */
static pln_status old_graphs(pln_export *ex, const pln_node *n,
                             pln_message attribute, const pln_attr *a,
                             pln_scope branch) {
  PLN_TRY(pln_export_push(
      ex, (pln_task){.kind = PLN_TASK_BEGIN, .tag = NODE_ATTRIBUTE}));
  PLN_TRY(push_fields(ex, attribute, false));
  PLN_TRY(push_graphs(ex, n, a, branch));
  PLN_TRY(push_fields(ex, attribute, true));
  return pln_export_push(ex, (pln_task){.kind = PLN_TASK_END});
}

/* Writes an attribute with graphs that is in no file. */
static pln_status new_graphs(pln_export *ex, const pln_node *n,
                             const char *name, const pln_attr *a,
                             pln_scope branch) {
  bool list = a && a->kind == PLN_ATTR_GRAPHS;
  PLN_TRY(pln_export_push(
      ex, (pln_task){.kind = PLN_TASK_BEGIN, .tag = NODE_ATTRIBUTE}));
  PLN_TRY(
      pln_export_push(ex, (pln_task){.kind = PLN_TASK_TEXT,
                                     .tag = ATTRIBUTE_NAME,
                                     .fields = {.data = (const uint8_t *)name,
                                                .size = strlen(name)}}));
  PLN_TRY(push_graphs(ex, n, a, branch));
  PLN_TRY(
      pln_export_push(ex, (pln_task){.kind = PLN_TASK_INT,
                                     .tag = ATTRIBUTE_TYPE,
                                     .at = list ? ONNX_GRAPHS : ONNX_GRAPH}));
  return pln_export_push(ex, (pln_task){.kind = PLN_TASK_END});
}

/* --------------------------------------------------------------- attributes */

/* The entry of that name; *index is its position. */
static const pln_attr *entry_of(const pln_export *ex, pln_attrs attrs,
                                pln_slice name, uint32_t *index) {
  uint32_t n = pln_attrs_count(ex->engine, attrs);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_at(ex->engine, attrs, i);
    *index = i;
    if (pln_slice_equal(pln_symbol_text(ex->engine, a->name), name))
      return a;
  }
  return NULL;
}

/* *out is true if `attrs` contains an equal entry. */
static pln_status has_entry(pln_export *ex, pln_attrs attrs, const pln_attr *a,
                            bool *out) {
  pln_attrs with;
  PLN_TRY(pln_attrs_with(ex->engine, attrs, a, &with));
  *out = with == attrs;
  return PLN_OK;
}

/* Copies an attribute of the slice, rewrites it with its new value, or drops
 * it. */
static pln_status old_attribute(pln_export *ex, const node_plan *p,
                                const pln_wire *w, const pln_field *f) {
  pln_message message = pln_wire_message(w, f);
  pln_slice name;
  uint32_t kind, index;
  bool same, moves;
  PLN_TRY(pln_decode_attr_kind(&ex->decoder, message, &name, &kind));
  pln_scope branch = branch_of(ex, p->node, name);
  if (branch != PLN_NONE)
    return old_graphs(ex, p->node, message, NULL, branch);
  const pln_attr *a = entry_of(ex, p->now, name, &index);
  if (!a || (p->schema && !pln_onnx_schema_has(p->schema, name)))
    return PLN_OK;
  if (is_graph(a))
    return old_graphs(ex, p->node, message, a, PLN_NONE);
  PLN_TRY(has_entry(ex, p->old, a, &same));
  PLN_TRY(must_rewrite_data(ex, a, &moves));
  return same && !moves ? copy_fields(ex, p, w, f)
                        : new_attribute(ex, p, index);
}

static bool in_slice(const pln_export *ex, const node_plan *p,
                     pln_symbol symbol) {
  pln_slice wanted = pln_symbol_text(ex->engine, symbol), name;
  uint32_t kind;
  for (uint32_t i = 0; i < p->scanned.n_attrs; i++)
    if (pln_decode_attr_kind(&ex->decoder, ex->lists.attributes[i], &name,
                             &kind) == PLN_OK &&
        pln_slice_equal(name, wanted))
      return true;
  return false;
}

/* An attribute that only the core has must have the value that the operator's
 * version implies; otherwise the node has no form. */
static pln_status check_core_only(pln_export *ex, const node_plan *p,
                                  const pln_attr *a) {
  if (a->kind == PLN_ATTR_INT && a->v.i == 0 && !*p->row->implied)
    return PLN_OK;
  return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "'%s' with this '%s' cannot be expressed at opset %lld",
                        p->row->type, pln_symbol_text(ex->engine, a->name).data,
                        (long long)opset_of(ex, pln_text(p->row->domain)));
}

/* Writes attributes that the slice lacks, except those that the version
 * implies. */
static pln_status new_attributes(pln_export *ex, const node_plan *p) {
  pln_attrs implied = 0;
  uint32_t n = pln_attrs_count(ex->engine, p->now);
  if (p->row)
    PLN_TRY(pln_onnx_implied(ex->engine, p->row, &implied));
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_at(ex->engine, p->now, i);
    const char *name = pln_symbol_text(ex->engine, a->name).data;
    bool same;
    if (p->slice.data && in_slice(ex, p, a->name))
      continue;
    PLN_TRY(has_entry(ex, implied, a, &same));
    if (same)
      continue;
    if (is_graph(a))
      PLN_TRY(new_graphs(ex, p->node, name, a, PLN_NONE));
    else if (p->row && pln_onnx_core_only(p->row, name))
      PLN_TRY(check_core_only(ex, p, a));
    else
      PLN_TRY(new_attribute(ex, p, i));
  }
  return PLN_OK;
}

/* Gives the attributes ONNX's names. */
static pln_status name_attributes(pln_export *ex, node_plan *p) {
  pln_op op = p->node->kind == PLN_CALL ? p->node->data : 0;
  if (pln_op_registered(ex->engine, op)) {
    PLN_TRY(pln_onnx_registered_attrs(ex->engine, op, p->old, &p->old));
    return pln_onnx_registered_attrs(ex->engine, op, p->now, &p->now);
  }
  if (!pln_onnx_renames_attrs(op))
    return PLN_OK;
  PLN_TRY(pln_onnx_rename_attrs(ex->engine, op, p->old, &p->old));
  return pln_onnx_rename_attrs(ex->engine, op, p->now, &p->now);
}

static pln_status put_attributes(pln_export *ex, const node_plan *p) {
  pln_wire w = pln_wire_open(p->slice);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == NODE_ATTRIBUTE)
      PLN_TRY(old_attribute(ex, p, &w, &f));
  if (p->node->kind == PLN_IF && !p->slice.data) {
    const pln_scope_row *first = &ex->g->scopes[p->node->data];
    PLN_TRY(new_graphs(ex, p->node, "then_branch", NULL, p->node->data));
    PLN_TRY(new_graphs(ex, p->node, "else_branch", NULL, first->next));
  }
  return p->now == p->old && !p->restated ? PLN_OK : new_attributes(ex, p);
}

/* ------------------------------------------------------------- whole nodes */

/* Copies the fields of the slice before, or after, its attributes; without its
 * name if another node has that. */
static pln_status other_fields(pln_export *ex, const node_plan *p,
                               bool behind) {
  pln_wire w = pln_wire_open(p->slice);
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    bool kept =
        f.tag != NODE_INPUT && f.tag != NODE_OUTPUT && f.tag != NODE_ATTRIBUTE;
    kept &= f.tag != NODE_NAME || !p->name.data;
    if (kept && (f.tag > NODE_ATTRIBUTE) == behind)
      PLN_TRY(copy_fields(ex, p, &w, &f));
  }
  return PLN_OK;
}

/* Writes domain, type and overload from "domain::Type:overload". */
static pln_status put_qualified(pln_export *ex, pln_slice text) {
  size_t at = text.size, colon = text.size;
  for (size_t i = text.size; i-- > 1 && at == text.size;)
    if (text.data[i] == ':' && text.data[i - 1] == ':')
      at = i - 1;
  if (at == text.size)
    return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "'%.*s' cannot be expressed in ONNX", (int)text.size,
                          text.data);
  for (size_t i = at + 2; i < text.size; i++)
    if (text.data[i] == ':')
      colon = i;
  pln_slice type = {text.data + at + 2, colon - at - 2};
  pln_slice domain = {text.data, at};
  PLN_TRY(pln_rope_bytes(ex->rope, NODE_OP_TYPE, type));
  if (domain.size && !pln_slice_is(domain, "ai.onnx"))
    PLN_TRY(pln_rope_bytes(ex->rope, NODE_DOMAIN, domain));
  if (colon == text.size)
    return PLN_OK;
  pln_slice overload = {text.data + colon + 1, text.size - colon - 1};
  return pln_rope_bytes(ex->rope, NODE_OVERLOAD, overload);
}

/* Writes type and domain of a registered operator. */
static pln_status put_registered(pln_export *ex, pln_op op) {
  const pln_operator_onnx *node = pln_onnx_registered_node(ex->engine, op);
  if (!node)
    return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "operator '%s' is no node of ONNX: it was registered "
                          "without 'onnx'",
                          pln_op_name(ex->engine, op).data);
  PLN_TRY(pln_rope_bytes(ex->rope, NODE_OP_TYPE, pln_text(node->op_type)));
  return pln_rope_bytes(ex->rope, NODE_DOMAIN, pln_text(node->domain));
}

static pln_status write_node_op_type(pln_export *ex, const node_plan *p) {
  const pln_node *n = p->node;
  if (n->kind == PLN_IF)
    return pln_rope_bytes(ex->rope, NODE_OP_TYPE, pln_text("If"));
  if (n->kind == PLN_CONSTANT)
    return pln_rope_bytes(ex->rope, NODE_OP_TYPE, pln_text("Constant"));
  if (!n->data)
    return put_qualified(ex, pln_symbol_text(ex->engine, callee_of(ex, n)));
  if (pln_op_registered(ex->engine, n->data))
    return put_registered(ex, n->data);
  if (!p->row)
    return put_qualified(ex, pln_op_name(ex->engine, n->data));
  PLN_TRY(pln_rope_bytes(ex->rope, NODE_OP_TYPE, pln_text(p->row->type)));
  return *p->row->domain
             ? pln_rope_bytes(ex->rope, NODE_DOMAIN, pln_text(p->row->domain))
             : PLN_OK;
}

/* Writes the value of a Constant node that is in no file. */
static pln_status write_constant_attr(pln_export *ex, const pln_tensor *t) {
  pln_attr value = {.kind = PLN_ATTR_TENSOR,
                    .v.tensor = (pln_tensor *)(uintptr_t)t};
  PLN_TRY(pln_symbol_intern(ex->engine, pln_text("value"), &value.name));
  return put_attribute(ex, &value);
}

static pln_status put_body(pln_export *ex, const node_plan *p) {
  while (!p->slice.data && ex->n_inputs &&
         ex->inputs[ex->n_inputs - 1].size == 0)
    ex->n_inputs--;
  PLN_TRY(put_names(ex->rope, NODE_INPUT, ex->inputs, ex->n_inputs));
  PLN_TRY(put_names(ex->rope, NODE_OUTPUT, ex->results, ex->n_results));
  if (p->name.data)
    PLN_TRY(pln_rope_bytes(ex->rope, NODE_NAME, p->name));
  if (!p->slice.data)
    PLN_TRY(write_node_op_type(ex, p));
  PLN_TRY(other_fields(ex, p, false));
  if (p->node->kind == PLN_CONSTANT && (!p->slice.data || p->restated))
    PLN_TRY(write_constant_attr(ex, pln_node_tensor(ex->g, p->ref)));
  else
    PLN_TRY(put_attributes(ex, p));
  return other_fields(ex, p, true);
}

static uint32_t node_tag(const pln_export *ex) {
  return ex->frames[ex->n_frames - 1].is_function ? FUNCTION_NODE : GRAPH_NODE;
}

/* A node with nested graphs stays open until its tasks are done. */
static pln_status put_later(pln_export *ex, const node_plan *p,
                            bool unchanged) {
  uint32_t from = ex->n_tasks;
  PLN_TRY(pln_mem_grow(ex->engine, (void **)&ex->starts, &ex->cap_starts,
                       (size_t)ex->n_starts + 1, sizeof *ex->starts));
  ex->starts[ex->n_starts] =
      (pln_node_start){pln_rope_here(ex->rope), ex->changes};
  PLN_TRY(pln_export_begin(ex, node_tag(ex)));
  PLN_TRY(put_body(ex, p));
  PLN_TRY(pln_export_push(
      ex, (pln_task){.kind = PLN_TASK_END_NODE,
                     .at = ex->n_starts++,
                     .fields = unchanged ? p->slice : (pln_message){0}}));
  pln_export_reverse(ex, from);
  return PLN_OK;
}

/* If nothing inside differs from the file, the node is replaced by its old
 * bytes, whatever their encoding was. */
pln_status pln_export_end_node(pln_export *ex, const pln_task *task) {
  const pln_node_start *start = &ex->starts[task->at];
  PLN_TRY(pln_rope_end(ex->rope, ex->nests[--ex->n_nests]));
  ex->n_starts = task->at;
  if (!task->fields.data || start->changes != ex->changes)
    return PLN_OK;
  pln_rope_rewind(ex->rope, start->mark);
  return pln_rope_message(ex->rope, node_tag(ex), task->fields);
}

static pln_status put_now(pln_export *ex, const node_plan *p) {
  pln_open_message nest;
  size_t at;
  if (p->small) {
    PLN_TRY(pln_rope_open(ex->rope, node_tag(ex), &at));
    PLN_TRY(put_body(ex, p));
    return pln_rope_close(ex->rope, at);
  }
  PLN_TRY(pln_rope_begin(ex->rope, node_tag(ex), &nest));
  PLN_TRY(put_body(ex, p));
  return pln_rope_end(ex->rope, nest);
}

/* *out is true if the node, apart from nested graphs, equals its slice. */
static pln_status is_unchanged(pln_export *ex, const node_plan *p, bool *out) {
  const pln_onnx_node *s = &p->scanned;
  bool moves, tensors;
  *out = p->slice.data && p->now == p->old && !p->restated &&
         same_names(ex->inputs, ex->n_inputs, ex->lists.inputs, s->n_inputs);
  bool nameless =
      ex->n_results == 0 && s->n_outputs == 1 && !ex->lists.outputs[0].size;
  *out &= p->name.data == NULL;
  if (!*out || !(nameless || same_names(ex->results, ex->n_results,
                                        ex->lists.outputs, s->n_outputs)))
    *out = false;
  if (!*out)
    return PLN_OK;
  PLN_TRY(look_for_tensors(ex, p->now, &moves, &tensors));
  *out = !moves;
  return PLN_OK;
}

/* A node that follows all earlier ones as in the file has a unique name. One
 * from another graph, or the second one of a slice, may conflict with another
 * node's name. */
static pln_status settle_name(pln_export *ex, node_plan *p) {
  const pln_export_frame *f = &ex->frames[ex->n_frames - 1];
  if (!p->slice.data || p->scanned.name.size == 0 ||
      (p->own && pln_message_offset(p->slice) > f->last_node))
    return PLN_OK;
  return pln_export_node_name(ex, p->ref, p->scanned.name, &p->name);
}

/* Counts the node in its graph, and a change if the node changed or its order
 * differs from the file's. */
static void note_node(pln_export *ex, const node_plan *p, bool unchanged) {
  pln_export_frame *f = &ex->frames[ex->n_frames - 1];
  uint64_t offset = p->slice.data ? pln_message_offset(p->slice) : 0;
  bool in_order = p->own && offset > f->last_node;
  f->n_nodes++;
  if (offset > f->last_node)
    f->last_node = offset;
  ex->changes += !unchanged || !in_order;
}

/* Keeps an output named "" if nothing names the result. */
static void keep_blank_result(pln_export *ex, const node_plan *p) {
  if (p->slice.data && ex->n_results == 0 && p->scanned.n_outputs == 1 &&
      ex->cap_results)
    ex->results[ex->n_results++] = (pln_slice){"", 0};
}

/* Drops trailing unused results. An older version may have had more of them. */
static void trim_results(pln_export *ex, const node_plan *p) {
  if (!p->slice.data || p->restated)
    while (ex->n_results && ex->results[ex->n_results - 1].size == 0)
      ex->n_results--;
}

/* A node inside the function's own message uses the domains that it imports. */
static pln_status note_domain(pln_export *ex, const node_plan *p) {
  const pln_message *own = &ex->frames[0].source;
  const pln_node *n = p->node;
  if (p->slice.data && own->file == p->slice.file &&
      p->slice.data >= own->data && p->slice.data < own->data + own->size)
    return PLN_OK;
  if (p->slice.data)
    return pln_export_use_domain(ex, p->scanned.domain, 1);
  if (n->kind != PLN_CALL)
    return pln_export_use_domain(ex, pln_text(""), 1);
  const pln_onnx_op *row = n->data ? pln_onnx_op_next(NULL, n->data) : NULL;
  const pln_operator_onnx *node = pln_onnx_registered_node(ex->engine, n->data);
  if (node)
    return pln_export_use_domain(ex, pln_text(node->domain),
                                 node->since_version);
  if (row)
    return pln_export_use_domain(ex, pln_text(row->domain), row->since);
  pln_slice text = n->data ? pln_op_name(ex->engine, n->data)
                           : pln_symbol_text(ex->engine, callee_of(ex, n));
  size_t at = 0;
  while (at + 1 < text.size && memcmp(text.data + at, "::", 2))
    at++;
  return at + 1 < text.size
             ? pln_export_use_domain(ex, (pln_slice){text.data, at}, 1)
             : PLN_OK;
}

/* Drops trailing omitted inputs, except those that the file has. */
static void trim_inputs(pln_export *ex, const node_plan *p) {
  if (p->node->kind == PLN_CALL &&
      (!p->node->data || pln_op_registered(ex->engine, p->node->data)))
    while (ex->n_inputs > p->scanned.n_inputs &&
           ex->inputs[ex->n_inputs - 1].size == 0)
      ex->n_inputs--;
}

pln_status pln_export_node(pln_export *ex, pln_ref ref) {
  node_plan p;
  bool unchanged;
  PLN_TRY(plan_node(ex, ref, &p));
  PLN_TRY(list_inputs(ex, p.node));
  PLN_TRY(order_inputs(ex, p.node));
  trim_inputs(ex, &p);
  PLN_TRY(list_results(ex, ref));
  PLN_TRY(settle_name(ex, &p));
  PLN_TRY(is_unchanged(ex, &p, &unchanged));
  note_node(ex, &p, unchanged);
  PLN_TRY(note_domain(ex, &p));
  if (unchanged && !p.later)
    return pln_rope_message(ex->rope, node_tag(ex), p.slice);
  if (p.now != p.old || !p.slice.data || p.restated)
    PLN_TRY(find_form(ex, &p));
  trim_results(ex, &p);
  keep_blank_result(ex, &p);
  PLN_TRY(name_attributes(ex, &p));
  return p.later ? put_later(ex, &p, unchanged) : put_now(ex, &p);
}

static pln_status put_plain(pln_export *ex, const char *type,
                            const pln_slice *inputs, uint32_t n,
                            pln_slice output) {
  size_t at;
  PLN_TRY(pln_rope_open(ex->rope, node_tag(ex), &at));
  PLN_TRY(put_names(ex->rope, NODE_INPUT, inputs, n));
  PLN_TRY(pln_rope_bytes(ex->rope, NODE_OUTPUT, output));
  PLN_TRY(pln_rope_bytes(ex->rope, NODE_OP_TYPE, pln_text(type)));
  return pln_rope_close(ex->rope, at);
}

/* Copies a sequence before opset 14, where Identity takes only tensors: inserts
 * an element and erases it. */
static pln_status copy_sequence(pln_export *ex, pln_ref node, pln_dtype dtype,
                                pln_slice from, pln_slice to) {
  pln_slice more, names[2] = {from};
  int64_t dims[1] = {0};
  pln_tensor *element;
  PLN_TRY(pln_export_new_name(ex, pln_text("element"), node, &names[1]));
  PLN_TRY(pln_export_new_name(ex, pln_text("longer"), node, &more));
  PLN_TRY(pln_tensor_new(ex->engine, dtype, 1, dims, &element));
  pln_status status = pln_export_constant(ex, names[1], element);
  pln_tensor_release(element);
  if (status == PLN_OK)
    status = put_plain(ex, "SequenceInsert", names, 2, more);
  return status == PLN_OK ? put_plain(ex, "SequenceErase", &more, 1, to)
                          : status;
}

/* A result of a nested graph that is constant is a Constant node of the other
 * name, which no runtime computes. */
static bool is_small_constant(const pln_export *ex, pln_ref node) {
  enum { SMALL = 64 };
  const pln_node *n = &ex->g->nodes[node];
  return n->kind == PLN_CONSTANT && !ex->g->tensors[n->data]->external &&
         ex->g->tensors[n->data]->bytes <= SMALL;
}

bool pln_export_is_nested_constant(const pln_export *ex, pln_ref node) {
  return is_small_constant(ex, node) && (ex->uses[node] & PLN_EXPORT_USED) &&
         !(ex->uses[node] & PLN_EXPORT_NEEDED);
}

pln_status pln_export_identity(pln_export *ex, pln_ref node, pln_slice from,
                               pln_slice to) {
  enum { OF_SEQUENCES = 14, OF_OPTIONALS = 16 };
  pln_type type = ex->g->nodes[node].type;
  pln_type_kind kind = pln_type_get_kind(ex->engine, type);
  ex->changes++;
  PLN_TRY(pln_export_use_domain(ex, pln_text(""), 1));
  if (ex->n_frames > 1 && is_small_constant(ex, node))
    return pln_export_constant(ex, to, ex->g->tensors[ex->g->nodes[node].data]);
  if (kind == PLN_TYPE_OPTIONAL && ex->opset < OF_OPTIONALS)
    return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "'%.*s' is an optional that also has another name, "
                          "which needs opset %d; use --opset %d",
                          (int)(to.size & 0xff), to.data, OF_OPTIONALS,
                          OF_OPTIONALS);
  pln_dtype dtype =
      kind == PLN_TYPE_SEQUENCE
          ? pln_type_dtype(ex->engine, pln_type_part_at(ex->engine, type, 0))
          : PLN_DTYPE_NONE;
  if (dtype && ex->opset < OF_SEQUENCES)
    return copy_sequence(ex, node, dtype, from, to);
  return put_plain(ex, "Identity", &from, 1, to);
}

pln_status pln_export_constant(pln_export *ex, pln_slice name,
                               const pln_tensor *tensor) {
  pln_open_message nest;
  PLN_TRY(pln_rope_begin(ex->rope, node_tag(ex), &nest));
  PLN_TRY(pln_rope_bytes(ex->rope, NODE_OUTPUT, name));
  PLN_TRY(pln_rope_bytes(ex->rope, NODE_OP_TYPE, pln_text("Constant")));
  PLN_TRY(write_constant_attr(ex, tensor));
  return pln_rope_end(ex->rope, nest);
}
