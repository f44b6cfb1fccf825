/* operation.c: operations of tensor expressions: what they hold, and checks.
 *
 * Made by scripts and by hosts; read by schedules. An operation never changes.
 * Its nodes are a sealed graph of its own, so that it outlives the builder in
 * which they were written. */

#include "te/te.h"

#include <stdio.h>

uint32_t pln_te_buffer_var(const pln_graph *g, pln_ref buffer) {
  return g->nodes[g->operands[g->nodes[buffer].first]].data;
}

pln_te_kind pln_te_op_kind(const pln_te_op *op) {
  return (pln_te_kind)op->kind;
}
pln_symbol pln_te_op_name(const pln_te_op *op) {
  return op->name;
}
pln_symbol pln_te_op_tag(const pln_te_op *op) {
  return op->tag;
}
pln_attrs pln_te_op_attrs(const pln_te_op *op) {
  return op->attrs;
}
const pln_graph *pln_te_op_graph(const pln_te_op *op) {
  return op->graph;
}
uint32_t pln_te_op_n_outputs(const pln_te_op *op) {
  return op->n_outputs;
}
uint32_t pln_te_op_n_axis(const pln_te_op *op) {
  return op->n_axis;
}
uint32_t pln_te_op_n_inputs(const pln_te_op *op) {
  return op->n_inputs;
}
pln_te_op *pln_te_op_input(const pln_te_op *op, uint32_t index) {
  return op->inputs[index];
}

pln_te_op *pln_te_op_retain(pln_te_op *op) {
  op->refs++;
  return op;
}

static void free_op(pln_te_op *op, pln_te_op **dead) {
  pln_engine *e = op->engine;
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (--op->inputs[i]->refs == 0) {
      op->inputs[i]->next_dead = *dead;
      *dead = op->inputs[i];
    }
  pln_mem_free(e, op->inputs, op->cap_inputs * sizeof(pln_te_op *));
  pln_graph_release(op->graph);
  pln_graph_release(op->stmt);
  pln_mem_free(e, op->nests, op->n_axis * sizeof *op->nests);
  pln_mem_free(e, op, sizeof *op);
}

/* A long chain of operations is released one by one. */
void pln_te_op_release(pln_te_op *op) {
  if (!op || --op->refs > 0)
    return;
  pln_te_op *dead = op;
  op->next_dead = NULL;
  while (dead) {
    pln_te_op *next = dead;
    dead = dead->next_dead;
    free_op(next, &dead);
  }
}

/* ------------------------------------------------------------------ checks */

static pln_status refuse(const pln_te_op *op, pln_status code,
                         const char *format, ...) PLN_PRINTF(3, 4);

static pln_status refuse(const pln_te_op *op, pln_status code,
                         const char *format, ...) {
  static const char *const names[] = {"te.placeholder", "te.compute", "te.scan",
                                      "te.extern"};
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return pln_diag_error(op->engine, code, NULL, "%s '%s': %s", names[op->kind],
                        pln_symbol_text(op->engine, op->name).data, text);
}

static const pln_node *node_at(const pln_te_op *op, uint32_t i) {
  return &op->graph->nodes[pln_te_part(op, i)];
}

static const char *kind_name(const pln_node *n) {
  return pln_kind_name((pln_kind)n->kind);
}

static pln_status check_outputs(const pln_te_op *op) {
  for (uint32_t i = 0; i < op->n_outputs; i++) {
    const pln_node *n = node_at(op, i);
    if (n->kind != PLN_BUFFER)
      return refuse(op, PLN_ERR_TYPE, "output %u is a %s, not a Buffer", i,
                    kind_name(n));
    if (n->results != node_at(op, 0)->results && op->kind == PLN_TE_COMPUTE)
      return refuse(op, PLN_ERR_TYPE, "its outputs differ in rank");
  }
  return PLN_OK;
}

/* A constant extent must not be negative. */
static pln_status check_extent(const pln_te_op *op, const pln_node *axis) {
  const pln_graph *g = op->graph;
  const pln_node *range = &g->nodes[g->operands[axis->first + 1]];
  const pln_node *extent = &g->nodes[g->operands[range->first + 1]];
  if (extent->kind == PLN_INT_IMM && (int64_t)pln_imm_bits(extent) < 0)
    return refuse(op, PLN_ERR_ARGUMENT, "an extent is negative: %lld",
                  (long long)pln_imm_bits(extent));
  return PLN_OK;
}

static pln_status check_axis(const pln_te_op *op, uint32_t i) {
  const pln_node *n = node_at(op, op->n_outputs + i);
  if (n->kind != PLN_ITER_VAR || n->count != 2)
    return refuse(op, PLN_ERR_TYPE, "axis %u must be an IterVar with a domain",
                  i);
  if (op->kind == PLN_TE_COMPUTE && n->data != PLN_ITER_DATA_PAR)
    return refuse(op, PLN_ERR_TYPE, "axis %u must be of type DataPar", i);
  return check_extent(op, n);
}

static pln_status check_axes(const pln_te_op *op) {
  uint32_t want = op->kind == PLN_TE_COMPUTE ? node_at(op, 0)->results : 0;
  if (op->kind == PLN_TE_SCAN) {
    want = 1;
    for (uint32_t i = 0; i < op->n_outputs; i++)
      want += node_at(op, i)->results - 1u;
  }
  if (op->n_axis != want && op->kind != PLN_TE_EXTERN)
    return refuse(op, PLN_ERR_TYPE, "it needs %u axes and has %u", want,
                  op->n_axis);
  for (uint32_t i = 0; i < op->n_axis; i++)
    PLN_TRY(check_axis(op, i));
  return PLN_OK;
}

/* Reductions of one operation differ only in their value index. */
static bool same_reduction(const pln_graph *g, const pln_node *x,
                           const pln_node *y) {
  if (x->count != y->count || x->results != y->results)
    return false;
  for (uint32_t i = 0; i < x->count; i++)
    if (!pln_same_expr(g, g->operands[x->first + i], g->operands[y->first + i]))
      return false;
  return true;
}

static uint32_t count_reductions(const pln_te_op *op) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < op->n_body; i++)
    n += node_at(op, op->n_outputs + op->n_axis + i)->kind == PLN_REDUCE;
  return n;
}

static pln_status check_reductions(const pln_te_op *op) {
  uint32_t first = op->n_outputs + op->n_axis, found = 0;
  uint32_t n = count_reductions(op);
  if (n != 0 && n != op->n_body)
    return refuse(op, PLN_ERR_TYPE,
                  "all of its values must be reductions, or none");
  for (uint32_t i = 0; n > 0 && i < op->n_body; i++) {
    const pln_node *x = node_at(op, first + i);
    if (!same_reduction(op->graph, node_at(op, first), x))
      return refuse(op, PLN_ERR_TYPE,
                    "its reductions must have one combiner, source, axis and "
                    "condition");
  }
  for (pln_ref r = 0; r < op->graph->n_nodes; r++)
    found += op->graph->nodes[r].kind == PLN_REDUCE;
  if (found > n)
    return refuse(op, PLN_ERR_TYPE,
                  "reductions are only allowed at the top level of a compute: "
                  "make another tensor of what is inside");
  return PLN_OK;
}

static pln_status check_bodies(const pln_te_op *op) {
  uint32_t first = op->n_outputs + op->n_axis;
  if (op->n_body != op->n_outputs)
    return refuse(op, PLN_ERR_TYPE, "it has %u outputs and %u values",
                  op->n_outputs, op->n_body);
  for (uint32_t i = 0; i < op->n_body; i++) {
    const pln_node *n = node_at(op, first + i);
    if (!pln_is_prim(n) && n->kind != PLN_VAR)
      return refuse(op, PLN_ERR_TYPE, "value %u is a %s, not a PrimExpr", i,
                    kind_name(n));
    if (n->type != node_at(op, i)->type)
      return refuse(op, PLN_ERR_TYPE, "value %u and its output differ in dtype",
                    i);
  }
  return check_reductions(op);
}

static bool same_dim(const pln_te_op *op, const pln_node *x, const pln_node *y,
                     uint32_t i) {
  const pln_graph *g = op->graph;
  return pln_same_expr(g, g->operands[x->first + 1 + i],
                       g->operands[y->first + 1 + i]);
}

static pln_status check_scan_tensor(const pln_te_op *op, uint32_t i,
                                    uint32_t k) {
  static const char *const what[] = {"init", "update", "state"};
  const pln_node *out = node_at(op, i);
  const pln_node *n =
      node_at(op, op->n_outputs + op->n_axis + k * op->n_outputs + i);
  if (n->kind != PLN_BUFFER)
    return refuse(op, PLN_ERR_TYPE, "%s %u is a %s, not a tensor", what[k], i,
                  kind_name(n));
  if (n->type != out->type || n->results != out->results)
    return refuse(op, PLN_ERR_TYPE,
                  "%s %u differs from the state in dtype or rank", what[k], i);
  for (uint32_t d = k == 0; d < n->results; d++)
    if (!same_dim(op, n, out, d))
      return refuse(op, PLN_ERR_TYPE, "%s %u differs from the state in dim %u",
                    what[k], i, d);
  return PLN_OK;
}

static pln_status check_scan(const pln_te_op *op) {
  if (op->n_body < 3 * op->n_outputs)
    return refuse(op, PLN_ERR_TYPE,
                  "it needs as many init, update and state tensors");
  for (uint32_t k = 0; k < 3; k++)
    for (uint32_t i = 0; i < op->n_outputs; i++)
      PLN_TRY(check_scan_tensor(op, i, k));
  return PLN_OK;
}

static pln_status check_op(const pln_te_op *op) {
  PLN_TRY(check_outputs(op));
  PLN_TRY(check_axes(op));
  if (op->kind == PLN_TE_COMPUTE)
    return check_bodies(op);
  return op->kind == PLN_TE_SCAN ? check_scan(op) : PLN_OK;
}

static pln_status find_loops(pln_te_op *op) {
  if (op->kind != PLN_TE_EXTERN || op->n_axis == 0)
    return PLN_OK;
  if (!op->stmt)
    return refuse(op, PLN_ERR_TYPE, "it has axes, but no statement");
  return pln_te_find_nests(op);
}

/* ------------------------------------------------------------------ inputs */

typedef struct input_search {
  pln_te_op *op;
  const pln_te_spec *spec;
  pln_idmap *candidates; /* data variable -> 1 + index in spec->inputs */
  uint32_t cap;
} input_search;

static pln_status list_candidates(input_search *f) {
  for (uint32_t i = 0; i < f->spec->n_inputs; i++) {
    const pln_te_op *in = f->spec->inputs[i];
    for (uint32_t k = 0; k < in->n_outputs; k++)
      PLN_TRY(pln_idmap_set(f->candidates,
                            pln_te_buffer_var(in->graph, pln_te_part(in, k)),
                            i + 1));
  }
  return PLN_OK;
}

/* An operation found is marked in the map by a key that no variable has. */
static pln_status add_input(input_search *f, uint32_t candidate) {
  uint64_t key = UINT64_C(1) << 40 | candidate;
  pln_te_op *in = f->spec->inputs[candidate - 1];
  if (pln_idmap_get(f->candidates, key))
    return PLN_OK;
  PLN_TRY(pln_idmap_set(f->candidates, key, 1));
  f->op->inputs[f->op->n_inputs++] = pln_te_op_retain(in);
  return PLN_OK;
}

static pln_status use_tensor(input_search *f, pln_ref buffer) {
  const pln_graph *g = f->op->graph;
  const pln_node *n = &g->nodes[buffer];
  if (n->kind != PLN_BUFFER)
    return refuse(f->op, PLN_ERR_TYPE, "a producer is a %s, not a tensor",
                  kind_name(n));
  uint32_t found = pln_idmap_get(f->candidates, pln_te_buffer_var(g, buffer));
  if (!found)
    return refuse(f->op, PLN_ERR_ARGUMENT,
                  "it reads '%s', which is no tensor of its inputs",
                  pln_symbol_text(g->engine, n->data).data);
  return add_input(f, found);
}

static pln_status visit_load(input_search *f, const pln_node *n) {
  const pln_graph *g = f->op->graph;
  pln_ref buffer = g->operands[n->first];
  PLN_TRY(use_tensor(f, buffer));
  if (n->count - 1 != g->nodes[buffer].results)
    return refuse(f->op, PLN_ERR_TYPE, "'%s' has %u dimensions, not %u",
                  pln_symbol_text(g->engine, g->nodes[buffer].data).data,
                  (unsigned)g->nodes[buffer].results, n->count - 1);
  return PLN_OK;
}

static pln_status find_inputs(input_search *f) {
  const pln_te_op *op = f->op;
  uint32_t first = op->n_outputs + op->n_axis;
  PLN_TRY(list_candidates(f));
  for (pln_ref r = 0; r < op->graph->n_nodes; r++)
    if (op->graph->nodes[r].kind == PLN_PRODUCER_LOAD)
      PLN_TRY(visit_load(f, &op->graph->nodes[r]));
  /* Of an extern, the placeholders of its inputs and outputs come first. */
  uint32_t skip = 0;
  if (op->kind == PLN_TE_EXTERN)
    skip = (op->n_body - op->n_outputs) / 2 + op->n_outputs;
  if (op->kind != PLN_TE_COMPUTE)
    for (uint32_t i = skip; i < op->n_body; i++)
      PLN_TRY(use_tensor(f, pln_te_part(op, first + i)));
  return PLN_OK;
}

static pln_status set_inputs(pln_te_op *op, const pln_te_spec *spec) {
  input_search f = {.op = op, .spec = spec};
  size_t size = spec->n_inputs * sizeof(pln_te_op *);
  op->inputs = pln_mem_new(op->engine, size);
  if (size && !op->inputs)
    return pln_nomem(op->engine);
  op->cap_inputs = spec->n_inputs;
  pln_status status = pln_idmap_new(op->engine, &f.candidates);
  if (status == PLN_OK)
    status = find_inputs(&f);
  pln_idmap_free(f.candidates);
  return status;
}

/* ------------------------------------------------------------ construction */

static pln_status seal_parts(pln_builder *b, const pln_te_spec *spec,
                             pln_te_op *op) {
  uint32_t n = spec->n_outputs + spec->n_axis + spec->n_body;
  pln_ref *parts = pln_mem_new(op->engine, n * sizeof *parts), root;
  if (!parts)
    return pln_nomem(op->engine);
  memcpy(parts, spec->outputs, spec->n_outputs * sizeof *parts);
  for (uint32_t i = 0; i < spec->n_axis; i++)
    parts[spec->n_outputs + i] = spec->axis[i];
  for (uint32_t i = 0; i < spec->n_body; i++)
    parts[spec->n_outputs + spec->n_axis + i] = spec->body[i];
  pln_prim array = {.kind = PLN_PRIM_ARRAY, .n = n, .operands = parts};
  pln_status status = pln_build_prim(b, &array, &root);
  if (status == PLN_OK)
    status = pln_builder_seal(b, root, &op->graph);
  pln_mem_free(op->engine, parts, n * sizeof *parts);
  if (status == PLN_OK && spec->stmt != PLN_NONE)
    status = pln_builder_seal(b, spec->stmt, &op->stmt);
  return status;
}

static pln_status fill(pln_builder *b, const pln_te_spec *spec, pln_te_op *op) {
  PLN_TRY(seal_parts(b, spec, op));
  PLN_TRY(check_op(op));
  PLN_TRY(find_loops(op));
  return set_inputs(op, spec);
}

pln_status pln_te_op_new(pln_builder *b, const pln_te_spec *spec,
                         pln_te_op **out) {
  pln_engine *e = b->engine;
  *out = NULL;
  pln_te_op *op = pln_mem_zeroed(e, sizeof *op);
  if (!op)
    return pln_nomem(e);
  *op = (pln_te_op){.engine = e,
                    .refs = 1,
                    .kind = (uint8_t)spec->kind,
                    .name = spec->name,
                    .tag = spec->tag,
                    .attrs = spec->attrs,
                    .n_outputs = spec->n_outputs,
                    .n_axis = spec->n_axis,
                    .n_body = spec->n_body};
  pln_status status = PLN_OK;
  if (spec->n_outputs == 0)
    status = refuse(op, PLN_ERR_ARGUMENT, "it has no output");
  if (status == PLN_OK)
    status = fill(b, spec, op);
  if (status != PLN_OK) {
    pln_te_op_release(op);
    return status;
  }
  *out = op;
  return PLN_OK;
}
