/* convert_opset.c: converts functions to the operators of an opset: a whole
 * model, or, at export, what passes and scripts added.
 *
 * Called by the pass ConvertOpset and by export. Invariant: a call that the
 * opset has stays; any other is restated, expanded to older operators, or
 * refused with its name. */

#include "onnx/opset/convert_opset.h"

#include <stdio.h>

#include "ir/graph/module.h"
#include "ir/provenance/origin.h"
#include "onnx/import/decode.h"

/* ------------------------------------------------------------------- calls */

static pln_status opset_op_of(pln_opset_conversion *c, pln_op op,
                              const pln_opset_op **out) {
  if (!c->known[op]) {
    PLN_TRY(pln_opset_op_find(c->engine, op, c->opset, &c->forms[op]));
    c->known[op] = 1;
  }
  *out = &c->forms[op];
  return PLN_OK;
}

/* The replacement keeps what is known of the call's type. */
static pln_status keep_type(pln_builder *b, pln_ref node, pln_type type) {
  bool conflict;
  const pln_node *n = &b->graph->nodes[node];
  if (n->type == type || !type || n->kind == PLN_TUPLE || n->kind == PLN_VAR)
    return PLN_OK;
  PLN_TRY(pln_type_meet(b->engine, n->type, type, &type, &conflict));
  if (conflict || type == b->graph->nodes[node].type)
    return PLN_OK;
  return pln_builder_declare(b, node, type);
}

static pln_status build(pln_opset_conversion *c, pln_opset_call *f,
                        pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(c->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  f->graph = b->graph;
  size_t mark = pln_diag_count(c->engine);
  pln_status status = pln_opset_call_build(f, b, out);
  if (status == PLN_ERR_TYPE) {
    pln_diag_drop(c->engine, mark);
    pln_opset_call_refuse(f, "the result would be ill-typed");
    return PLN_OK;
  }
  return status == PLN_OK ? keep_type(b, *out, f->type) : status;
}

static pln_status expand(pln_opset_conversion *c, const pln_opset_call *f,
                         pln_ref call, int depth, pln_ref *out, bool *done) {
  pln_ref made = PLN_NONE;
  PLN_TRY(pln_expand_call(c, call, f->n_used, depth, &made, done));
  if (!*done)
    return PLN_OK;
  *out = made;
  return keep_type(pln_rewrite_builder(c->rw), made, f->type);
}

pln_status pln_convert_call(pln_opset_conversion *c, pln_ref call,
                            uint32_t n_used, int depth, pln_ref *out,
                            bool *done, char *why) {
  const pln_opset_op *form;
  pln_opset_call f;
  const pln_graph *g = pln_rewrite_graph(c->rw);
  PLN_TRY(opset_op_of(c, g->nodes[call].data, &form));
  *out = call;
  pln_status status =
      pln_opset_call_make(c->engine, g, call, n_used, c->opset, form, &f);
  if (status == PLN_OK && f.valid && f.changed)
    status = build(c, &f, out);
  *done = f.valid;
  if (status == PLN_OK && !f.valid)
    status = expand(c, &f, call, depth, out, done);
  if (why)
    memcpy(why, f.why, sizeof f.why);
  pln_opset_call_free(&f);
  return status;
}

/* ---------------------------------------------------------------- refusals */

/* The lowest opset that has the call; 0: none. */
static pln_status opset_needed(const pln_opset_conversion *c, pln_ref call,
                               uint32_t n_used, int64_t *out) {
  const pln_graph *g = pln_rewrite_graph(c->rw);
  int32_t newest = pln_onnx_newest_opset();
  *out = 0;
  for (int64_t v = c->opset + 1; v <= newest && !*out; v++) {
    pln_opset_op form;
    pln_opset_call f;
    PLN_TRY(pln_opset_op_find(c->engine, g->nodes[call].data, v, &form));
    PLN_TRY(pln_opset_call_make(c->engine, g, call, n_used, v, &form, &f));
    *out = f.valid ? v : 0;
    pln_opset_call_free(&f);
  }
  return PLN_OK;
}

static pln_status refuse_opset_call(const pln_opset_conversion *c, pln_ref call,
                                    uint32_t n_used, const char *why) {
  const pln_graph *g = pln_rewrite_graph(c->rw);
  pln_op op = g->nodes[call].data;
  const char *type = pln_opset_op_type(op);
  int64_t needed;
  PLN_TRY(opset_needed(c, call, n_used, &needed));
  if (!type)
    type = pln_op_name(c->engine, op).data;
  const char *colon = *why ? ": " : "";
  if (needed)
    return pln_diag_error(c->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "the operator %s needs opset %lld, and the model has "
                          "%lld%s%s; use --opset %lld",
                          type, (long long)needed, (long long)c->opset, colon,
                          why, (long long)needed);
  return pln_diag_error(c->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "the operator %s cannot be written at opset %lld%s%s",
                        type, (long long)c->opset, colon, why);
}

/* --------------------------------------------------------------- the sweep */

/* Returns true if the node and its operands are as in the file. */
static bool is_of_file(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  const pln_origin *o = pln_onnx_origin(g, node);
  if (!pln_origin_is_node(o) || o->op != n->data || o->attrs != n->attrs)
    return false;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operands(g, n)[i];
    pln_kind kind = (pln_kind)g->nodes[operand].kind;
    if (kind != PLN_FUNCTION && kind != PLN_ABSENT && kind != PLN_TUPLE &&
        kind != PLN_VAR && !pln_onnx_origin(g, operand))
      return false;
  }
  return true;
}

/* The dtypes of a few operands packed into a number; 0: too many operands. */
static uint64_t dtypes_of(const pln_graph *g, const pln_node *n) {
  enum { MOST = 7, BITS = 8 };
  uint64_t all = n->count + 1;
  if (n->count > MOST)
    return 0;
  for (uint32_t i = 0; i < n->count; i++)
    all = all << BITS |
          pln_type_dtype(g->engine, g->nodes[pln_operands(g, n)[i]].type);
  return all;
}

/* *out is true if the version accepts the present operands. */
static pln_status is_admitted(pln_opset_conversion *c, const pln_graph *g,
                              pln_ref call, bool *out) {
  const pln_node *n = &g->nodes[call];
  const pln_opset_op *form;
  uint64_t dtypes = dtypes_of(g, n);
  *out = true;
  if (dtypes && c->admitted[n->data] == dtypes)
    return PLN_OK;
  PLN_TRY(opset_op_of(c, n->data, &form));
  *out = pln_call_form_admits(c->engine, g, call, form);
  if (*out)
    c->admitted[n->data] = dtypes;
  return PLN_OK;
}

/* The name of a value in the file; no data if it has none. */
static pln_status file_name(pln_opset_conversion *c, const pln_graph *g,
                            pln_ref value, pln_slice *out) {
  const pln_node *n = &g->nodes[value];
  uint32_t index = n->kind == PLN_TUPLE_GET_ITEM ? n->data : 0;
  if (n->kind == PLN_TUPLE_GET_ITEM)
    value = pln_operand(g, value, 0);
  const pln_origin *o = pln_onnx_origin(g, value);
  pln_node_lists lists = {0};
  pln_onnx_node node;
  *out = (pln_slice){NULL, 0};
  if (n->kind ==
      PLN_VAR) /* parameters of functions are only names in the file */
    *out = pln_symbol_text(c->engine, n->attrs);
  if (o && o->name)
    *out = pln_symbol_text(c->engine, o->name);
  if (!pln_origin_is_node(o))
    return PLN_OK;
  pln_status status =
      pln_node_scan(c->engine, &lists, pln_origin_message(o), &node);
  if (status == PLN_OK && index < node.n_outputs)
    *out = lists.outputs[index];
  pln_node_lists_free(c->engine, &lists);
  return status;
}

/* *out is true if the operand is the value that the file has there, with the
 * same dtype. */
static pln_status is_of_input(pln_opset_conversion *c, const pln_graph *g,
                              pln_ref operand, pln_slice input, bool *out) {
  const pln_origin *o = pln_onnx_origin(g, operand);
  pln_type type = g->nodes[operand].type;
  pln_slice name = {"", 0};
  if (g->nodes[operand].kind != PLN_ABSENT)
    PLN_TRY(file_name(c, g, operand, &name));
  bool same =
      !o || !o->type ||
      pln_type_dtype(c->engine, o->type) == pln_type_dtype(c->engine, type);
  *out = same && name.data && pln_slice_equal(name, input);
  return PLN_OK;
}

/* *out is true if all operands are as in the file. */
static pln_status has_file_inputs(pln_opset_conversion *c, const pln_graph *g,
                                  pln_ref call, bool *out) {
  const pln_node *n = &g->nodes[call];
  pln_onnx_node node;
  uint32_t input = 0;
  PLN_TRY(pln_node_scan(c->engine, &c->lists,
                        pln_origin_message(pln_onnx_origin(g, call)), &node));
  *out = true;
  for (uint32_t i = 0; i < n->count && *out; i++) {
    pln_ref operand = pln_operands(g, n)[i];
    if (g->nodes[operand].kind == PLN_FUNCTION)
      continue;
    if (input == node.n_inputs)
      *out = g->nodes[operand].kind == PLN_ABSENT;
    else
      PLN_TRY(is_of_input(c, g, operand, c->lists.inputs[input++], out));
  }
  return PLN_OK;
}

/* *out is true if the call stays as in the file. If its version does not accept
 * the operands, that is the file's own error. */
static pln_status stays(pln_opset_conversion *c, const pln_graph *g,
                        pln_ref call, bool *out) {
  *out = is_of_file(g, call);
  if (!*out)
    return PLN_OK;
  PLN_TRY(is_admitted(c, g, call, out));
  return *out ? PLN_OK : has_file_inputs(c, g, call, out);
}

/* An unknown operator of ai.onnx must have one version at both opsets, or its
 * meaning is unknown. */
static pln_status check_opaque(const pln_opset_conversion *c, pln_op op) {
  static const char prefix[] = "ai.onnx::";
  pln_slice name = pln_op_name(c->engine, op);
  size_t skip = sizeof prefix - 1;
  if (name.size <= skip || memcmp(name.data, prefix, skip) ||
      pln_slice_is(name, "ai.onnx::initializer") ||
      pln_slice_is(name, "ai.onnx::sparse_initializer"))
    return PLN_OK;
  pln_slice type = {name.data + skip, name.size - skip};
  if (c->from && pln_onnx_schema_find(type, c->from) ==
                     pln_onnx_schema_find(type, c->opset))
    return PLN_OK;
  return pln_diag_error(c->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "the operator %s of opset %lld is unknown, and cannot "
                        "be written at opset %lld",
                        type.data, (long long)c->from, (long long)c->opset);
}

static pln_status visit_call(pln_opset_conversion *c, pln_ref old,
                             pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(c->rw);
  pln_op op = g->nodes[*node].data;
  char why[160] = "";
  bool done;
  if (op >= PLN_N_OPS)
    return c->all ? check_opaque(c, op) : PLN_OK;
  if (pln_op_is_relay_form(g, *node) || !pln_opset_op_type(op))
    return PLN_OK; /* export reports that it has no ONNX form */
  pln_ref call = *node;
  if (!c->all)
    PLN_TRY(stays(c, g, call, &done));
  if (!c->all && done)
    return PLN_OK;
  PLN_TRY(pln_convert_call(c, call, c->used[old], 0, node, &done, why));
  return done ? PLN_OK : refuse_opset_call(c, call, c->used[old], why);
}

/* Forwards a projection of a call that became a tuple. */
static void visit_item(const pln_opset_conversion *c, pln_ref old,
                       pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(c->rw), *before;
  before = pln_rewrite_old(c->rw);
  const pln_node *tuple = &g->nodes[pln_operand(g, *node, 0)];
  if (tuple->kind != PLN_TUPLE ||
      before->nodes[pln_operand(before, old, 0)].kind == PLN_TUPLE)
    return;
  uint32_t i = g->nodes[*node].data;
  *node = pln_operands(g, tuple)[i < tuple->count ? i : 0];
}

static pln_status convert_node_opset(void *ud, pln_rewrite *rw, pln_ref old,
                                     pln_ref *node) {
  pln_opset_conversion *c = ud;
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[*node];
  c->rw = rw;
  c->at = old;
  if (n->kind == PLN_CALL && n->data)
    return visit_call(c, old, node);
  if (n->kind == PLN_TUPLE_GET_ITEM)
    visit_item(c, old, node);
  return PLN_OK;
}

/* used[i] is the number of results of node i up to the last used one. */
static void count_used(const pln_graph *g, uint32_t *used) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    used[i] = 1;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    const pln_ref *operands = pln_operands(g, n);
    bool item = n->kind == PLN_TUPLE_GET_ITEM;
    for (uint32_t k = 0; k < n->count; k++) {
      uint32_t all = g->nodes[operands[k]].results;
      uint32_t until = item ? n->data + 1 : all;
      if (all && until <= all && used[operands[k]] < until)
        used[operands[k]] = until;
    }
  }
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_ref result = pln_scope_result(g, s);
    if (result != PLN_NONE && g->nodes[result].results > used[result])
      used[result] = g->nodes[result].results;
  }
}

static size_t describe_converted_place(void *ud, char *text, size_t size) {
  const pln_opset_conversion *c = ud;
  const pln_graph *g = c->at_graph;
  pln_slice f = pln_symbol_text(c->engine, c->function);
  char source[160];
  uint32_t row = c->at == PLN_NONE ? 0 : pln_node_history(g, c->at);
  size_t n_described =
      row ? pln_history_describe(g, row, source, sizeof source) : 0;
  int n = snprintf(text, size, "function '%s'%s%s", f.data,
                   n_described ? ", " : "", n_described ? source : "");
  return n < 0 ? 0 : (size_t)n;
}

static pln_status convert_graph(pln_opset_conversion *c, const pln_graph *graph,
                                pln_graph **out) {
  pln_mutator mutator = {.ud = c, .visit = convert_node_opset};
  size_t size = graph->n_nodes * sizeof(uint32_t);
  uint32_t *used = pln_mem_new(c->engine, size);
  if (!used)
    return pln_nomem(c->engine);
  count_used(graph, used);
  c->used = used;
  c->at = PLN_NONE;
  c->at_graph = graph;
  pln_place before = pln_diag_place(
      c->engine, (pln_place){.fn = describe_converted_place, .ud = c});
  pln_status status = pln_graph_rewrite(graph, &mutator, out);
  pln_diag_place(c->engine, before);
  pln_mem_free(c->engine, used, size);
  return status;
}

/* ------------------------------------------------------------------ modules */

static pln_status start_opset_conversion(pln_opset_conversion *c,
                                         int64_t opset) {
  if (c->opset != opset && c->n_forms) {
    memset(c->known, 0, c->n_forms);
    memset(c->admitted, 0, c->n_forms * sizeof *c->admitted);
  }
  c->opset = opset;
  if (c->n_forms)
    return PLN_OK;
  c->forms = pln_mem_new(c->engine, PLN_N_OPS * sizeof *c->forms);
  c->known = pln_mem_zeroed(c->engine, PLN_N_OPS);
  c->admitted = pln_mem_zeroed(c->engine, PLN_N_OPS * sizeof *c->admitted);
  if (!c->forms || !c->known || !c->admitted)
    return pln_nomem(c->engine);
  c->n_forms = PLN_N_OPS;
  return PLN_OK;
}

static void free_opset_conversion(pln_opset_conversion *c) {
  pln_mem_free(c->engine, c->forms, PLN_N_OPS * sizeof *c->forms);
  pln_mem_free(c->engine, c->known, PLN_N_OPS);
  pln_mem_free(c->engine, c->admitted, PLN_N_OPS * sizeof *c->admitted);
  pln_node_lists_free(c->engine, &c->lists);
}

static bool is_onnx_function(const pln_graph *g) {
  return g->nodes[g->root].kind == PLN_FUNCTION;
}

/* Converts one function to the opset that the module declares. */
static pln_status convert_function(pln_opset_conversion *c,
                                   const pln_module *module, uint32_t i,
                                   pln_graph **out) {
  const pln_graph *graph = pln_module_function_at(module, i);
  int64_t opset;
  *out = NULL;
  if (!is_onnx_function(graph))
    return PLN_OK;
  c->function = pln_module_name_at(module, i);
  opset = pln_model_opset(module, c->function);
  PLN_TRY(pln_source_opset(&c->source, graph, c->function, &c->from));
  c->all = pln_model_is_mixed(module) || (c->from && c->from != opset);
  PLN_TRY(start_opset_conversion(c, opset));
  PLN_TRY(convert_graph(c, graph, out));
  if (*out == graph) {
    pln_graph_release(*out);
    *out = NULL;
  }
  return PLN_OK;
}

/* Converts the functions that change, one after the other; `n` of them. */
static pln_status convert_all(pln_opset_conversion *c, const pln_module *module,
                              pln_graph **graphs, pln_symbol *names,
                              uint32_t *n) {
  *n = 0;
  for (uint32_t i = 0; i < pln_module_count(module); i++) {
    PLN_TRY(convert_function(c, module, i, &graphs[*n]));
    if (graphs[*n])
      names[(*n)++] = pln_module_name_at(module, i);
  }
  return PLN_OK;
}

static pln_status replace_converted_functions(const pln_module *module,
                                              uint32_t n,
                                              const pln_symbol *names,
                                              pln_graph *const *graphs,
                                              pln_module **out) {
  if (n)
    return pln_module_with_functions(module, n, names,
                                     (const pln_graph *const *)graphs, out);
  *out = pln_module_retain(module);
  return PLN_OK;
}

pln_status pln_model_convert_for_export(const pln_module *module,
                                        pln_module **out) {
  pln_opset_conversion c = {.engine = pln_module_engine(module)};
  uint32_t n = 0;
  size_t count = pln_module_count(module) + (size_t)1;
  pln_graph **graphs = pln_mem_zeroed(c.engine, count * sizeof *graphs);
  pln_symbol *names = pln_mem_new(c.engine, count * sizeof *names);
  pln_status status = graphs && names ? PLN_OK : pln_nomem(c.engine);
  if (status == PLN_OK)
    status = convert_all(&c, module, graphs, names, &n);
  if (status == PLN_OK)
    status = replace_converted_functions(module, n, names, graphs, out);
  for (uint32_t i = 0; i < n; i++)
    pln_graph_release(graphs[i]);
  pln_mem_free(c.engine, graphs, count * sizeof *graphs);
  pln_mem_free(c.engine, names, count * sizeof *names);
  free_opset_conversion(&c);
  return status;
}

pln_status pln_onnx_convert_opset(const pln_module *module, int64_t opset,
                                  pln_module **out) {
  pln_module *said;
  pln_engine *engine = pln_module_engine(module);
  int32_t oldest, newest;
  pln_onnx_opset_range(&oldest, &newest);
  if (opset < oldest || opset > newest)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "opset %lld is outside of [%d, %d]", (long long)opset,
                          oldest, newest);
  PLN_TRY(pln_model_with_opset(module, opset, &said));
  pln_status status = pln_model_convert_for_export(said, out);
  pln_module_release(said);
  return status;
}
