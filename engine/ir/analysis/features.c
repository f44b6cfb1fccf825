/* features.c: finds the features that a function uses, in one loop over its
 * nodes (features.h).
 *
 * Called by the executor for passes that declare what they handle, and by the
 * binding. A let is recursive if its variable is used before the Let node,
 * which follows its value. */

#include <string.h>

#include "ir/analysis/features.h"

const char *const pln_feature_names[PLN_N_FEATURES] = {
#define FEATURE(id, name, doc) name,
#include "ir/analysis/features.def"
};

typedef struct feature_scan {
  const pln_graph *g;
  uint32_t found;
  bool *used; /* by node: an operand or a result was this node before */
} feature_scan;

/* ------------------------------------------------------------------ by kind */

static uint32_t of_kind(pln_kind kind) {
  switch ((int)kind) {
  case PLN_LET:
  case PLN_LET_STMT:
  case PLN_PRIM_LET: return PLN_FEATURE_LET;
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return PLN_FEATURE_REFS;
  case PLN_CONSTRUCTOR: return PLN_FEATURE_ADTS;
  case PLN_MATCH: return PLN_FEATURE_ADTS | PLN_FEATURE_CONTROL_FLOW;
  case PLN_IF:
  case PLN_IF_THEN_ELSE: return PLN_FEATURE_CONTROL_FLOW;
  case PLN_FOR: return PLN_FEATURE_LOOPS;
  case PLN_WHILE: return PLN_FEATURE_LOOPS | PLN_FEATURE_CONTROL_FLOW;
  default: return 0;
  }
}

static bool is_quantized(const char *name) {
  return !strncmp(name, "qnn.", 4) || strstr(name, "quantize") ||
         strstr(name, "qlinear") || strstr(name, "qgemm") ||
         strstr(name, "_integer");
}

static uint32_t of_operator(const pln_engine *engine, pln_op op) {
  const pln_op_info *row = pln_op_row(engine, op);
  return (row->traits & PLN_TRAIT_BODY ? PLN_FEATURE_LOOPS : 0) |
         (is_quantized(row->name) ? PLN_FEATURE_QUANTIZED : 0);
}

/* ------------------------------------------------------------------ by type */

static bool is_dynamic(const pln_engine *engine, pln_type type) {
  int32_t rank = pln_type_rank(engine, type);
  const pln_dim *dims = pln_type_dims(engine, type);
  for (int32_t i = 0; i < rank; i++)
    if (!PLN_DIM_IS_CONST(dims[i]))
      return true;
  return rank < 0;
}

static uint32_t of_type(const pln_engine *engine, const pln_node *n) {
  switch ((int)pln_type_get_kind(engine, n->type)) {
  case PLN_TYPE_TENSOR:
    return is_dynamic(engine, n->type) ? PLN_FEATURE_DYNAMIC_SHAPES : 0;
  case PLN_TYPE_REF: return PLN_FEATURE_REFS;
  case PLN_TYPE_FUNC: return n->kind == PLN_VAR ? PLN_FEATURE_CLOSURES : 0;
  default: return 0;
  }
}

/* ------------------------------------------------------------------ by uses */

/* A function is called where it is written, or is the body of an operator. */
static bool is_called_in_place(const pln_engine *engine, const pln_node *user,
                               uint32_t operand) {
  if (user->kind != PLN_CALL)
    return false;
  return user->data ? operand >= pln_op_n_values(pln_op_row(engine, user->data),
                                                 user->count)
                    : operand == 0;
}

static void note_use(feature_scan *s, pln_ref value) {
  if (s->used && value != PLN_NONE)
    s->used[value] = true;
}

static void scan_operands(feature_scan *s, const pln_node *n) {
  const pln_ref *operands = pln_operands(s->g, n);
  for (uint32_t i = 0; i < n->count; i++) {
    if (s->g->nodes[operands[i]].kind == PLN_FUNCTION &&
        !is_called_in_place(s->g->engine, n, i))
      s->found |= PLN_FEATURE_CLOSURES;
    if (n->kind != PLN_LET || i > 0)
      note_use(s, operands[i]);
  }
  if (n->kind == PLN_LET && s->used && s->used[operands[0]])
    s->found |= PLN_FEATURE_LETREC;
}

/* The results of the scopes that a node owns. */
static void scan_results(feature_scan *s, const pln_node *n) {
  if (!pln_owns(n))
    return;
  for (pln_scope i = n->data; i != PLN_NONE; i = s->g->scopes[i].next) {
    pln_ref result = s->g->scopes[i].result;
    note_use(s, result);
    if (result != PLN_NONE && s->g->nodes[result].kind == PLN_FUNCTION)
      s->found |= PLN_FEATURE_CLOSURES;
  }
}

static void scan_node(feature_scan *s, const pln_node *n) {
  s->found |= of_kind((pln_kind)n->kind);
  if (n->kind == PLN_CALL && n->data)
    s->found |= of_operator(s->g->engine, n->data);
  if (pln_kinds[n->kind].kind_class == PLN_CLASS_EXPR)
    s->found |= of_type(s->g->engine, n);
  scan_operands(s, n);
  scan_results(s, n);
}

static bool has_let(const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_LET)
      return true;
  return false;
}

pln_status pln_graph_features(const pln_graph *graph, uint32_t *out) {
  feature_scan s = {.g = graph};
  if (has_let(graph)) {
    s.used = pln_mem_zeroed(graph->engine, graph->n_nodes * sizeof *s.used);
    if (!s.used)
      return pln_nomem(graph->engine);
  }
  for (pln_ref i = 0; i < graph->n_nodes; i++)
    scan_node(&s, &graph->nodes[i]);
  if (s.used)
    pln_mem_free(graph->engine, s.used, graph->n_nodes * sizeof *s.used);
  *out = s.found;
  return PLN_OK;
}

pln_status pln_feature_find(pln_engine *engine, const char *name,
                            uint32_t *out) {
  char similar[80];
  for (uint32_t i = 0; i < PLN_N_FEATURES; i++)
    if (!strcmp(name, pln_feature_names[i])) {
      *out = 1u << i;
      return PLN_OK;
    }
  pln_suggest(name, PLN_N_FEATURES, pln_feature_names, similar, sizeof similar);
  return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                        "there is no feature '%s'%s", name, similar);
}
