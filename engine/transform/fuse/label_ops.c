/* label_ops.c: LabelOps: labels functions for those who look at what runs:
 * with a hash of what they compute, and with the layouts that they mention.
 *
 * Run by the executor, once per function. A function without the attribute
 * `hash` gets one, 16 hexadecimal digits that are the same in every run, and
 * each attribute of a call inside whose name contains "layout". Where calls
 * disagree the last one counts, and a function around others begins with what
 * the last of them has. Invariants: each node is hashed once, in the innermost
 * function around it, where functions inside count by their labels.
 *
 *     fn (%p, Primitive=1) { layout_transform(%p, "NC", "NC4n") }   =>
 *     fn (%p, Primitive=1, hash="...", src_layout="NC", dst_layout="NC4n")
 *
 * Semantics: TVM LabelOps; the hash has other digits, because it is a hash of
 * this engine. */

#include <stdio.h>

#include "ir/attrs/attrs.h"
#include "ir/graph/layout/layout.h"
#include "transform/transform.h"

typedef struct labeller {
  pln_engine *engine;
  const pln_graph *graph;
  pln_attrs *labels;    /* by node, a function: its attributes; 0: unchanged */
  pln_scope *scope_of;  /* by node */
  pln_ref *function_of; /* by scope: the innermost function around it */
  uint64_t *hash;       /* by node */
  uint64_t *statements; /* by scope: of what it evaluates in order */
  uint32_t *n_captured; /* by node, a function: variables from outside */
  uint32_t *n_vars;     /* by node, a function */
  pln_idmap *captured;  /* function and variable -> number + 1 */
  uint32_t n, cap;      /* the layouts of the calls so far */
  pln_attr *layouts;
} labeller;

/* ------------------------------------------------------------------- layouts
 */

static pln_status note_layout(labeller *l, const pln_attr *layout) {
  for (uint32_t i = 0; i < l->n; i++)
    if (l->layouts[i].name == layout->name) {
      l->layouts[i] = *layout;
      return PLN_OK;
    }
  PLN_TRY(pln_mem_grow(l->engine, (void **)&l->layouts, &l->cap,
                       (size_t)l->n + 1, sizeof *l->layouts));
  l->layouts[l->n++] = *layout;
  return PLN_OK;
}

/* The next attribute of "axis>axes:ints= layout:string=NCHW" whose name
 * contains "layout". */
static bool next_layout_name(const char **at, char *name, size_t size) {
  while (**at) {
    size_t n = strcspn(*at, ":> "), all = strcspn(*at, " ");
    const char *word = *at;
    *at += all + (word[all] == ' ');
    if (n >= size)
      continue;
    memcpy(name, word, n);
    name[n] = 0;
    if (strstr(name, "layout"))
      return true;
  }
  return false;
}

static pln_status note_layouts(labeller *l, const pln_node *call) {
  const pln_relay_row *row =
      call->data ? pln_relay_of(l->engine, call->data) : NULL;
  char name[64];
  pln_attr layout;
  if (!row)
    return PLN_OK;
  for (const char *at = row->attrs; next_layout_name(&at, name, sizeof name);) {
    PLN_TRY(pln_relay_get(l->engine, call->data, call->attrs, name, &layout));
    if (layout.kind != PLN_ATTR_STRING)
      continue;
    PLN_TRY(pln_symbol_intern(l->engine, pln_text(name), &layout.name));
    PLN_TRY(note_layout(l, &layout));
  }
  return PLN_OK;
}

static bool is_labelled(const labeller *l, const pln_node *n) {
  return pln_attrs_find(l->engine, n->attrs, "hash") != NULL;
}

static pln_status enter_node(void *ud, const pln_graph *g, pln_ref node,
                             bool *skip) {
  labeller *l = ud;
  const pln_node *n = &g->nodes[node];
  (void)skip;
  if (n->kind == PLN_FUNCTION && !is_labelled(l, n))
    l->n = 0;
  return PLN_OK;
}

static pln_status leave_node(void *ud, const pln_graph *g, pln_ref node) {
  labeller *l = ud;
  const pln_node *n = &g->nodes[node];
  if (n->kind == PLN_CALL)
    return note_layouts(l, n);
  if (n->kind != PLN_FUNCTION || is_labelled(l, n))
    return PLN_OK;
  l->labels[node] = n->attrs;
  for (uint32_t i = 0; i < l->n; i++)
    PLN_TRY(pln_attrs_with(l->engine, l->labels[node], &l->layouts[i],
                           &l->labels[node]));
  return PLN_OK;
}

/* -------------------------------------------------------------------- hashes
 */

static uint64_t hash_text(pln_slice text) {
  return pln_hash_bytes(text.data, text.size, 1);
}

static uint64_t hash_payload(const labeller *l, const pln_node *n) {
  switch (pln_kinds[n->kind].payload) {
  case PLN_PAYLOAD_TENSOR:
    return pln_tensor_content_hash(l->graph->tensors[n->data]);
  case PLN_PAYLOAD_SYMBOL:
    return hash_text(pln_symbol_text(l->engine, n->data));
  case PLN_PAYLOAD_OP:
    return n->data ? hash_text(pln_op_name(l->engine, n->data)) : 0;
  case PLN_PAYLOAD_INDEX: return n->data;
  default: return 0;
  }
}

static pln_ref function_around(const labeller *l, pln_ref node) {
  return l->function_of[l->scope_of[node]];
}

/* A value of another function is known by the order in which this one first
 * uses it. */
static pln_status hash_operand(labeller *l, pln_ref function, pln_ref operand,
                               uint64_t *out) {
  *out = l->hash[operand];
  if (function_around(l, operand) == function)
    return PLN_OK;
  uint64_t key = ((uint64_t)function << 32 | operand) + 1;
  uint32_t number = pln_idmap_get(l->captured, key);
  if (!number) {
    number = ++l->n_captured[function];
    PLN_TRY(pln_idmap_set(l->captured, key, number));
  }
  *out = pln_hash_mix(pln_type_hash(l->engine, l->graph->nodes[operand].type),
                      number);
  return PLN_OK;
}

static pln_status hash_scopes(labeller *l, const pln_node *n, pln_ref around,
                              uint64_t *hash) {
  const pln_graph *g = l->graph;
  for (pln_scope s = n->data; pln_owns(n) && s != PLN_NONE;
       s = g->scopes[s].next) {
    uint64_t result;
    PLN_TRY(hash_operand(l, around, g->scopes[s].result, &result));
    for (uint32_t i = 0; i < g->scopes[s].n_params; i++)
      *hash = pln_hash_mix(*hash, l->hash[g->scopes[s].begin + i]);
    *hash = pln_hash_mix(pln_hash_mix(*hash, l->statements[s]), result);
  }
  return PLN_OK;
}

/* The label of a function whose other attributes are known. */
static pln_status write_label(labeller *l, pln_ref function) {
  char text[17];
  pln_attr hash = {.kind = PLN_ATTR_STRING};
  (void)snprintf(text, sizeof text, "%016llx",
                 (unsigned long long)l->hash[function]);
  hash.v.s = pln_text(text);
  PLN_TRY(pln_symbol_intern(l->engine, pln_text("hash"), &hash.name));
  return pln_attrs_with(l->engine, l->labels[function], &hash,
                        &l->labels[function]);
}

static uint64_t hash_float(uint64_t hash, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return pln_hash_mix(hash, bits);
}

/* pln_attrs_hash leaves out floats, which equality compares with a
 * tolerance. */
static uint64_t hash_floats(const labeller *l, pln_attrs attrs, uint64_t hash) {
  for (uint32_t i = 0; i < pln_attrs_count(l->engine, attrs); i++) {
    const pln_attr *a = pln_attrs_at(l->engine, attrs, i);
    if (a->kind == PLN_ATTR_FLOAT)
      hash = hash_float(hash, a->v.f);
    for (uint32_t k = 0; a->kind == PLN_ATTR_FLOATS && k < a->count; k++)
      hash = hash_float(hash, a->v.floats[k]);
  }
  return hash;
}

static pln_status hash_attrs(labeller *l, pln_ref node, uint64_t *hash) {
  const pln_node *n = &l->graph->nodes[node];
  pln_attrs attrs = l->labels[node] ? l->labels[node] : n->attrs;
  if (n->kind == PLN_CALL)
    PLN_TRY(pln_relay_normal_attrs(l->engine, n->data, attrs, &attrs));
  if (pln_kinds[n->kind].has_attrs)
    *hash = hash_floats(l, attrs,
                        pln_hash_mix(*hash, pln_attrs_hash(l->engine, attrs)));
  return PLN_OK;
}

static pln_status hash_node(labeller *l, pln_ref node) {
  const pln_graph *g = l->graph;
  const pln_node *n = &g->nodes[node];
  pln_ref around = function_around(l, node), inside = around;
  uint64_t hash = pln_hash_mix(n->kind, hash_payload(l, n)), operand;
  if (n->kind == PLN_VAR && around != PLN_NONE)
    hash = pln_hash_mix(hash, ++l->n_vars[around]);
  if (n->kind == PLN_VAR || n->kind == PLN_FUNCTION)
    hash = pln_hash_mix(hash, pln_type_hash(l->engine, n->type));
  if (n->kind == PLN_FUNCTION)
    inside = node;
  PLN_TRY(hash_attrs(l, node, &hash));
  for (uint32_t i = 0; i < n->count; i++) {
    PLN_TRY(hash_operand(l, around, pln_operand(g, node, i), &operand));
    hash = pln_hash_mix(hash, operand);
  }
  PLN_TRY(hash_scopes(l, n, inside, &hash));
  l->hash[node] = hash;
  if (pln_is_scheduled(n)) {
    uint64_t *statements = &l->statements[l->scope_of[node]];
    *statements = pln_hash_mix(*statements, hash);
  }
  return n->kind == PLN_FUNCTION && !is_labelled(l, n) ? write_label(l, node)
                                                       : PLN_OK;
}

/* ------------------------------------------------------------------ the pass
 */

static pln_status set_label(void *ud, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  const labeller *l = ud;
  if (!l->labels[old])
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  b->graph->nodes[*node].attrs = l->labels[old];
  pln_type_digest_record(b->graph, *node);
  return PLN_OK;
}

static pln_status label_functions(labeller *l) {
  const pln_graph *g = l->graph;
  const pln_visitor visitor = {
      .ud = l, .enter = enter_node, .leave = leave_node};
  pln_graph_node_scopes(g, l->scope_of);
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_ref owner = g->scopes[s].owner;
    l->function_of[s] = owner == PLN_NONE ? PLN_NONE
                        : g->nodes[owner].kind == PLN_FUNCTION
                            ? owner
                            : l->function_of[g->scopes[s].parent];
  }
  PLN_TRY(pln_walk(g, g->root, &visitor));
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    PLN_TRY(hash_node(l, ref));
  return PLN_OK;
}

static pln_status new_labeller(labeller *l) {
  size_t n = l->graph->n_nodes, k = l->graph->n_scopes;
  l->labels = pln_mem_zeroed(l->engine, n * sizeof *l->labels);
  l->scope_of = pln_mem_new(l->engine, n * sizeof *l->scope_of);
  l->function_of = pln_mem_new(l->engine, k * sizeof *l->function_of);
  l->hash = pln_mem_zeroed(l->engine, n * sizeof *l->hash);
  l->statements = pln_mem_zeroed(l->engine, k * sizeof *l->statements);
  l->n_captured = pln_mem_zeroed(l->engine, n * sizeof *l->n_captured);
  l->n_vars = pln_mem_zeroed(l->engine, n * sizeof *l->n_vars);
  if (!l->labels || !l->scope_of || !l->function_of || !l->hash ||
      !l->statements || !l->n_captured || !l->n_vars)
    return pln_nomem(l->engine);
  return pln_idmap_new(l->engine, &l->captured);
}

static void free_labeller(labeller *l) {
  size_t n = l->graph->n_nodes, k = l->graph->n_scopes;
  pln_mem_free(l->engine, l->labels, n * sizeof *l->labels);
  pln_mem_free(l->engine, l->scope_of, n * sizeof *l->scope_of);
  pln_mem_free(l->engine, l->function_of, k * sizeof *l->function_of);
  pln_mem_free(l->engine, l->hash, n * sizeof *l->hash);
  pln_mem_free(l->engine, l->statements, k * sizeof *l->statements);
  pln_mem_free(l->engine, l->n_captured, n * sizeof *l->n_captured);
  pln_mem_free(l->engine, l->n_vars, n * sizeof *l->n_vars);
  pln_mem_free(l->engine, l->layouts, l->cap * sizeof *l->layouts);
  if (l->captured)
    pln_idmap_free(l->captured);
}

pln_status pln_pass_label_ops(pln_pass_run *run) {
  labeller l = {.engine = pln_run_engine(run), .graph = pln_run_function(run)};
  pln_mutator m = {.ud = &l, .visit = set_label};
  pln_status status = new_labeller(&l);
  if (status == PLN_OK)
    status = label_functions(&l);
  if (status == PLN_OK)
    status = pln_rewrite_function(run, &m);
  free_labeller(&l);
  return status;
}
