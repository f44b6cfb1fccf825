/* graph.c: writes functions of a module as GraphProto and FunctionProto.
 *
 * A stack of tasks holds what remains to be written, innermost on top, so
 * nothing recurses. Invariants: the frames are the open graphs; `used` holds
 * only their names. */

#include <stdio.h>

#include "onnx/export/export.h"

pln_status pln_export_push(pln_export *ex, pln_task task) {
  PLN_TRY(pln_mem_grow(ex->engine, (void **)&ex->tasks, &ex->cap_tasks,
                       (size_t)ex->n_tasks + 1, sizeof *ex->tasks));
  ex->tasks[ex->n_tasks++] = task;
  return PLN_OK;
}

void pln_export_reverse(pln_export *ex, uint32_t from) {
  pln_mem_reverse(ex->tasks + from, ex->n_tasks - from, sizeof *ex->tasks);
}

pln_status pln_export_begin(pln_export *ex, uint32_t tag) {
  PLN_TRY(pln_mem_grow(ex->engine, (void **)&ex->nests, &ex->cap_nests,
                       (size_t)ex->n_nests + 1, sizeof *ex->nests));
  PLN_TRY(pln_rope_begin(ex->rope, tag, &ex->nests[ex->n_nests]));
  ex->n_nests++;
  return PLN_OK;
}

/* ------------------------------------------------------------------ graphs */

static pln_message scope_source(const pln_export *ex, pln_scope scope) {
  const pln_graph *g = ex->g;
  uint32_t row = g->scopes[scope].origin;
  if (!g->origins || !row || !pln_origins_row(g->origins, row)->file)
    return (pln_message){0};
  return pln_origin_message(pln_origins_row(g->origins, row));
}

/* Opens a graph: its frame, its names, its message, and the fields before the
 * nodes. */
static pln_status open_graph(pln_export *ex, pln_scope scope, uint32_t tag) {
  uint32_t from = ex->n_tasks;
  PLN_TRY(pln_mem_grow(ex->engine, (void **)&ex->frames, &ex->cap_frames,
                       (size_t)ex->n_frames + 1, sizeof *ex->frames));
  ex->frames[ex->n_frames++] =
      (pln_export_frame){.scope = scope,
                         .is_function = tag == MODEL_FUNCTIONS,
                         .source = scope_source(ex, scope),
                         .changes = ex->changes,
                         .mark = ex->used.count};
  PLN_TRY(pln_export_name_graph(ex));
  PLN_TRY(pln_export_begin(ex, tag));
  PLN_TRY(pln_export_head(ex));
  PLN_TRY(pln_export_push(ex, (pln_task){.kind = PLN_TASK_NODES,
                                         .scope = scope,
                                         .at = ex->g->scopes[scope].begin,
                                         .child = ex->child[scope]}));
  PLN_TRY(
      pln_export_push(ex, (pln_task){.kind = PLN_TASK_FIELDS, .scope = scope}));
  PLN_TRY(pln_export_push(ex, (pln_task){.kind = PLN_TASK_END}));
  pln_export_reverse(ex, from);
  return PLN_OK;
}

/* Writes Identities for outputs whose value has another name, then the fields
 * after the nodes. */
static pln_status close_graph(pln_export *ex) {
  const pln_export_frame f = ex->frames[ex->n_frames - 1];
  PLN_TRY(pln_export_tail(ex));
  pln_scoped_names_truncate(&ex->used, f.mark);
  ex->n_outputs = f.outputs;
  ex->n_frames--;
  return PLN_OK;
}

static pln_status put_identities(pln_export *ex) {
  const pln_export_frame *f = &ex->frames[ex->n_frames - 1];
  for (uint32_t i = 0; i < f->n_outputs; i++) {
    const pln_export_output *o = &ex->outputs[f->outputs + i];
    if (!o->same)
      PLN_TRY(pln_export_identity(ex, o->node, pln_export_name(ex, o->node),
                                  o->name));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- nodes */

bool pln_export_is_initializer(const pln_export *ex, pln_ref node) {
  const pln_export_frame *f = &ex->frames[ex->n_frames - 1];
  const pln_origin *o = pln_export_origin(ex, node);
  if (f->is_function)
    return false;
  /* where initializers must be inputs, a nested graph cannot get new ones */
  if (ex->constant_inputs && ex->n_frames > 1)
    return o && !pln_origin_is_node(o);
  return !(pln_origin_is_node(o) && o->op == PLN_OP_CONSTANT);
}

bool pln_export_is_entry(const pln_export *ex, pln_ref node) {
  const pln_node *n = &ex->g->nodes[node];
  if (n->kind == PLN_CONSTANT)
    return pln_export_is_initializer(ex, node);
  if (n->kind != PLN_CALL || !n->data || n->count)
    return false;
  pln_slice name = pln_op_name(ex->engine, n->data);
  return pln_slice_is(name, "ai.onnx::initializer") ||
         pln_slice_is(name, "ai.onnx::sparse_initializer");
}

static pln_status unsupported(pln_export *ex, pln_kind kind) {
  return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "a %s cannot be expressed in ONNX",
                        pln_kind_name(kind));
}

static pln_status push_node_task(pln_export *ex, pln_ref node) {
  const pln_node *n = &ex->g->nodes[node];
  ex->at = node;
  switch ((pln_kind)n->kind) {
  case PLN_VAR:
  case PLN_ABSENT:
  case PLN_GLOBAL_VAR:
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM:
  case PLN_FUNCTION:
  case PLN_LET: return PLN_OK;
  case PLN_CONSTANT:
    if (pln_export_is_nested_constant(ex, node))
      return PLN_OK;
    return pln_export_is_entry(ex, node) ? PLN_OK : pln_export_node(ex, node);
  case PLN_CALL:
  case PLN_IF:
    return pln_export_is_entry(ex, node) ? PLN_OK : pln_export_node(ex, node);
  case PLN_OP:
  case PLN_CONSTRUCTOR:
  case PLN_LET_BLOCK:
  case PLN_MATCH:
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE:
  case PLN_PATTERN_WILDCARD:
  case PLN_PATTERN_VAR:
  case PLN_PATTERN_CONSTRUCTOR:
  case PLN_PATTERN_TUPLE:
  case PLN_CLAUSE:
  default: break;
  }
  return unsupported(ex, (pln_kind)n->kind);
}

/* Writes nodes up to the first one that pushes tasks; then a task for the
 * rest. */
static pln_status put_nodes(pln_export *ex, pln_task task) {
  const pln_graph *g = ex->g;
  pln_ref end = g->scopes[task.scope].end;
  for (;;) {
    while (task.child != PLN_NONE && g->scopes[task.child].begin == task.at) {
      task.at = g->scopes[task.child].end;
      task.child = ex->sibling[task.child];
    }
    if (task.at >= end)
      return put_identities(ex);
    pln_ref node = task.at++;
    if (g->nodes[node].kind != PLN_IF && g->nodes[node].kind != PLN_CALL) {
      PLN_TRY(push_node_task(ex, node));
      continue;
    }
    uint32_t before = ex->n_tasks;
    PLN_TRY(pln_export_push(ex, task));
    PLN_TRY(push_node_task(ex, node));
    if (ex->n_tasks > before + 1)
      return PLN_OK;
    ex->n_tasks = before;
  }
}

/* -------------------------------------------------------------------- tasks */

static pln_status run_task(pln_export *ex, const pln_task *task) {
  switch (task->kind) {
  case PLN_TASK_GRAPH: return open_graph(ex, task->scope, task->tag);
  case PLN_TASK_NODES: return put_nodes(ex, *task);
  case PLN_TASK_FIELDS: return close_graph(ex);
  case PLN_TASK_BEGIN: return pln_export_begin(ex, task->tag);
  case PLN_TASK_END: return pln_rope_end(ex->rope, ex->nests[--ex->n_nests]);
  case PLN_TASK_END_NODE: return pln_export_end_node(ex, task);
  case PLN_TASK_COPY:
  case PLN_TASK_ATTR: return pln_export_slice(ex, task);
  case PLN_TASK_TEXT:
    return pln_rope_bytes(
        ex->rope, task->tag,
        (pln_slice){(const char *)task->fields.data, task->fields.size});
  case PLN_TASK_INT: return pln_rope_int(ex->rope, task->tag, task->at);
  }
  return PLN_OK;
}

static pln_status run_tasks(pln_export *ex, uint32_t tag, pln_scope body) {
  PLN_TRY(pln_export_prepare(ex));
  PLN_TRY(open_graph(ex, body, tag));
  while (ex->n_tasks) {
    PLN_TRY(pln_poll_stoppable(ex->engine));
    pln_task task = ex->tasks[--ex->n_tasks];
    PLN_TRY(run_task(ex, &task));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------- diagnostics */

static size_t describe_exported_place(void *ud, char *text, size_t size) {
  const pln_export *ex = ud;
  pln_slice f = pln_symbol_text(ex->engine, ex->function);
  int n;
  if (ex->at == PLN_NONE)
    return (size_t)snprintf(text, size, "function '%s'", f.data);
  pln_slice name = pln_export_name(ex, ex->at);
  pln_op op = pln_node_op(ex->g, ex->at);
  n = snprintf(text, size, "function '%s', the node of '%.*s'%s%s%s", f.data,
               (int)(name.size & 0xff), name.size ? name.data : "",
               op ? " (" : "", op ? pln_op_name(ex->engine, op).data : "",
               op ? ")" : "");
  return n < 0 ? 0 : (size_t)n;
}

static void free_function(pln_export *ex) {
  pln_engine *e = ex->engine;
  const pln_graph *g = ex->g;
  pln_mem_free(e, ex->slots, g->n_nodes * sizeof *ex->slots);
  pln_mem_free(e, ex->node_scope, g->n_nodes * sizeof *ex->node_scope);
  pln_mem_free(e, ex->uses, g->n_nodes);
  pln_mem_free(e, ex->child, g->n_scopes * sizeof *ex->child);
  pln_mem_free(e, ex->sibling, g->n_scopes * sizeof *ex->sibling);
  pln_mem_free(e, ex->names, ex->names_room * sizeof *ex->names);
  ex->slots = ex->node_scope = NULL;
  ex->uses = NULL;
  ex->child = ex->sibling = NULL;
  ex->names = NULL;
  ex->names_room = 0;
  pln_scoped_names_truncate(&ex->used, 0);
  pln_scoped_names_truncate(&ex->node_names, 0);
  ex->node_names_known = false;
  ex->n_tasks = ex->n_nests = ex->n_frames = ex->n_outputs = 0;
  ex->n_starts = 0;
}

pln_status pln_export_function(pln_export *ex, pln_symbol name,
                               const pln_graph *graph, uint32_t tag) {
  enum { LOOKS_A_NODE = 64, LOOKS = 1 << 20 };
  ex->g = graph;
  ex->function = name;
  ex->opset = pln_model_opset(ex->module, name);
  ex->n_domains = 0;
  if (ex->restatements)
    memset(ex->restatements, 0, PLN_N_OPS * sizeof *ex->restatements);
  PLN_TRY(pln_source_opset(&ex->source, graph, name, &ex->source_opset));
  ex->restated =
      ex->source_opset != ex->opset || pln_model_is_mixed(ex->module);
  ex->at = PLN_NONE;
  ex->budget = (uint64_t)graph->n_nodes * LOOKS_A_NODE + LOOKS;
  pln_place before = pln_diag_place(
      ex->engine, (pln_place){.fn = describe_exported_place, .ud = ex});
  pln_status status;
  if (graph->nodes[graph->root].kind != PLN_FUNCTION)
    status = unsupported(ex, (pln_kind)graph->nodes[graph->root].kind);
  else
    status = run_tasks(ex, tag, graph->nodes[graph->root].data);
  pln_diag_place(ex->engine, before);
  free_function(ex);
  return status;
}

void pln_export_free(pln_export *ex) {
  pln_engine *e = ex->engine;
  pln_module_release(ex->conforming);
  pln_scoped_names_free(&ex->used);
  pln_scoped_names_free(&ex->node_names);
  pln_arena_free(&ex->names_arena);
  pln_idmap_free(ex->file_rows);
  for (uint32_t i = 0; i < ex->n_files; i++)
    pln_file_release(ex->files[i].file);
  pln_mem_free(e, ex->files, ex->cap_files * sizeof *ex->files);
  pln_mem_free(e, ex->tasks, ex->cap_tasks * sizeof *ex->tasks);
  pln_mem_free(e, ex->nests, ex->cap_nests * sizeof *ex->nests);
  pln_mem_free(e, ex->starts, ex->cap_starts * sizeof *ex->starts);
  pln_mem_free(e, ex->frames, ex->cap_frames * sizeof *ex->frames);
  pln_mem_free(e, ex->outputs, ex->cap_outputs * sizeof *ex->outputs);
  pln_mem_free(e, ex->restatements, PLN_N_OPS * sizeof *ex->restatements);
  pln_mem_free(e, ex->domains, ex->cap_domains * sizeof *ex->domains);
  pln_mem_free(e, ex->inputs, ex->cap_inputs * sizeof *ex->inputs);
  pln_mem_free(e, ex->results, ex->cap_results * sizeof *ex->results);
  pln_node_lists_free(e, &ex->lists);
}
