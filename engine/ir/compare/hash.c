/* hash.c: a structural hash that agrees with equal.c. It depends on content and
 * on the order of first visits, never on ids, so it is the same in every run.
 * Free Vars are hashed by identity unless the caller maps them.
 *
 * A node whose sharing Relay distinguishes is hashed at its first visit and is
 * a number afterwards; other nodes are hashed at every use. An explicit stack
 * replaces recursion. */

#include "ir/compare/equal.h"
#include "ir/tir/tir.h"

enum { CACHED = 64, BOUND = 2, SHARED, FREE, IDENTITY };

/* A cache of name hashes, by id. */
typedef struct cache {
  uint32_t id[CACHED];
  uint64_t hash[CACHED];
} cache;

typedef struct hasher {
  pln_engine *engine;
  const pln_graph *g;
  pln_effect_order statements;
  bool map_free;
  bool whole;       /* include sharing and type of every node */
  uint64_t *hash;   /* per node: its hash; 0: not visited, 1: entered */
  uint64_t running; /* hash of everything visited */
  uint32_t n_bound, n_met;
  pln_idmap *free;  /* identity of a free Var -> order of first visit */
  uint8_t *defined; /* per node: a Var defined by an expression; when needed */
  pln_ref *stack;
  uint32_t top, cap_stack;
  cache ops;
  pln_status status; /* first error of functions that cannot return one */
} hasher;

/* ------------------------------------------------------ names and attributes
 */

static uint64_t hash_text(pln_slice text) {
  return pln_hash_bytes(text.data, text.size, 1);
}

static uint64_t hash_symbol(const pln_engine *e, pln_symbol symbol) {
  return hash_text(pln_symbol_text(e, symbol));
}

static uint64_t hash_op(hasher *s, pln_op op) {
  uint32_t at = op % CACHED;
  if (s->ops.id[at] != op) {
    s->ops.id[at] = op;
    s->ops.hash[at] = hash_text(pln_op_name(s->engine, op));
  }
  return op ? s->ops.hash[at] : 0;
}

/* A call's attributes in the normal form that equality uses. */
static pln_attrs normal_attrs(hasher *s, const pln_node *n) {
  pln_attrs normal = n->attrs;
  if (n->kind != PLN_CALL || s->status != PLN_OK)
    return normal;
  s->status = pln_relay_normal_attrs(s->engine, n->data, n->attrs, &normal);
  return normal;
}

/* -------------------------------------------------------------------- nodes */

static uint64_t hash_payload(hasher *s, const pln_node *n) {
  const pln_graph *g = s->g;
  switch (pln_kinds[n->kind].payload) {
  case PLN_PAYLOAD_NONE:
  case PLN_PAYLOAD_HINT:
  case PLN_PAYLOAD_SCOPE:
  case PLN_PAYLOAD_VAR: return 0;
  case PLN_PAYLOAD_BITS: return (uint64_t)n->attrs << 32 | n->data;
  case PLN_PAYLOAD_TENSOR:
    return s->whole ? pln_tensor_hash(g->tensors[n->data])
                    : pln_tensor_content_hash(g->tensors[n->data]);
  case PLN_PAYLOAD_OP: return hash_op(s, n->data);
  case PLN_PAYLOAD_SYMBOL: return hash_symbol(s->engine, n->data);
  case PLN_PAYLOAD_BUILTIN:
  case PLN_PAYLOAD_INDEX: return n->data;
  }
  return 0;
}

/* The result type of a function type; the parameters are hashed as Vars. */
static uint64_t hash_result_type(const pln_engine *e, pln_type type) {
  if (pln_type_get_kind(e, type) != PLN_TYPE_FUNC)
    return 0;
  return pln_type_hash(
      e, pln_type_part_at(e, type, pln_type_n_parts(e, type) - 1));
}

static uint64_t hash_node(hasher *s, const pln_node *n) {
  const pln_graph *g = s->g;
  uint64_t h = pln_hash_mix(n->kind, n->results);
  h = pln_hash_mix(h, hash_payload(s, n));
  h = pln_hash_mix(h, n->count);
  if (pln_kinds[n->kind].has_attrs)
    h = pln_hash_mix(h, pln_attrs_hash(s->engine, normal_attrs(s, n)));
  if (pln_is_prim(n)) /* for TIR the dtype is part of the node */
    h = pln_hash_mix(h, pln_type_hash(s->engine, n->type));
  for (uint32_t i = 0; i < n->count; i++)
    h = pln_hash_mix(h, s->hash[g->operands[n->first + i]]);
  if (!pln_owns(n))
    return h;
  if (n->kind == PLN_FUNCTION || n->kind == PLN_PRIM_FUNC)
    h = pln_hash_mix(h, hash_result_type(s->engine, n->type));
  for (pln_scope c = n->data; c != PLN_NONE; c = g->scopes[c].next)
    h = pln_hash_mix(h, s->hash[g->scopes[c].result]);
  return h;
}

static void mix_hash(hasher *s, uint64_t hash) {
  s->running = pln_hash_mix(s->running, hash);
}

/* Marks the Vars that TIR expressions define, including those of Buffers. */
static pln_status find_defined(hasher *s) {
  const pln_graph *g = s->g;
  s->defined = pln_mem_zeroed(s->engine, (size_t)g->n_nodes + 1);
  if (!s->defined)
    return pln_nomem(s->engine);
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    uint32_t n = pln_n_defined(&g->nodes[i]);
    for (uint32_t k = 0; k < n; k++)
      s->defined[pln_operand(g, i, k)] = 1;
  }
  return PLN_OK;
}

/* Hashes a free Var. */
static pln_status hash_free(hasher *s, pln_ref ref) {
  const pln_node *n = &s->g->nodes[ref];
  pln_type_kind kind = pln_type_get_kind(s->engine, n->type);
  bool prim = kind == PLN_TYPE_PRIM || kind == PLN_TYPE_POINTER;
  if (prim && !s->defined)
    PLN_TRY(find_defined(s));
  if (prim && s->defined[ref]) {
    s->hash[ref] = pln_hash_mix(FREE, pln_type_hash(s->engine, n->type)) | 2;
    return PLN_OK;
  }
  if (!s->map_free) {
    s->hash[ref] = pln_hash_mix(IDENTITY, n->data) | 2;
    return PLN_OK;
  }
  if (!s->free)
    PLN_TRY(pln_idmap_new(s->engine, &s->free));
  uint32_t number = pln_idmap_get(s->free, n->data);
  if (!number) {
    number = ++s->n_met;
    PLN_TRY(pln_idmap_set(s->free, n->data, number));
    mix_hash(s, pln_type_hash(s->engine, n->type));
  }
  s->hash[ref] = pln_hash_mix(FREE, number) | 2;
  return PLN_OK;
}

static void end_node_hash(hasher *s, pln_ref ref) {
  const pln_node *n = &s->g->nodes[ref];
  bool shared = pln_kinds[n->kind].shared || s->whole;
  uint64_t hash = hash_node(s, n);
  if (s->whole)
    hash = pln_hash_mix(hash, pln_type_hash(s->engine, n->type));
  if (shared || pln_is_stmt(n) || n->kind == PLN_CLAUSE)
    mix_hash(s, hash);
  s->hash[ref] = (shared ? pln_hash_mix(SHARED, ++s->n_met) : hash) | 2;
}

/* ------------------------------------------------------------------- scopes */

static pln_status push_hashed_node(hasher *s, pln_ref entry) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->stack, &s->cap_stack,
                       (size_t)s->top + 1, sizeof *s->stack));
  s->stack[s->top++] = entry;
  return PLN_OK;
}

static void bind_hashed_var(hasher *s, pln_ref var) {
  mix_hash(s, pln_type_hash(s->engine, s->g->nodes[var].type));
  s->hash[var] = pln_hash_mix(BOUND, ++s->n_bound) | 2;
}

/* Numbers the scope's variables before they are visited. */
static pln_status enter_scope(hasher *s, pln_scope scope) {
  const pln_graph *g = s->g;
  const pln_scope_row *row = &g->scopes[scope];
  uint32_t statements = 0;
  for (uint32_t i = 0; i < row->n_params; i++)
    bind_hashed_var(s, row->begin + i);
  PLN_TRY(push_hashed_node(s, row->result));
  for (pln_ref at = row->end;; at = pln_skip_effect_ordered(g, at)) {
    PLN_TRY(pln_effect_order_before(&s->statements, scope, at, &at));
    if (at == PLN_NONE)
      break;
    const pln_node *n = &g->nodes[at];
    if (n->kind == PLN_LET)
      bind_hashed_var(s, g->operands[n->first]);
    PLN_TRY(push_hashed_node(s, at));
    statements++;
  }
  mix_hash(s, pln_hash_mix(row->n_params, statements));
  mix_hash(s, pln_type_hash(s->engine, row->type_params));
  mix_hash(s, pln_attrs_hash(s->engine, row->attrs));
  return PLN_OK;
}

/* -------------------------------------------------------------------- walk */

#define LEAVE 0x80000000u

static pln_status begin_node_hash(hasher *s, pln_ref ref) {
  const pln_graph *g = s->g;
  const pln_node *n = &g->nodes[ref];
  if (s->hash[ref])
    return PLN_OK;
  if (n->kind == PLN_VAR)
    return hash_free(s, ref);
  s->hash[ref] = 1;
  PLN_TRY(push_hashed_node(s, ref | LEAVE));
  if (pln_owns(n))
    for (pln_scope c = n->data; c != PLN_NONE; c = g->scopes[c].next)
      PLN_TRY(enter_scope(s, c));
  for (uint32_t i = n->count; i-- > 0;)
    if (!s->hash[g->operands[n->first + i]])
      PLN_TRY(push_hashed_node(s, g->operands[n->first + i]));
  return PLN_OK;
}

static pln_status hash_from_root(hasher *s, pln_ref root) {
  if (root == s->g->root) /* includes the lets of the whole graph */
    PLN_TRY(enter_scope(s, 0));
  else
    PLN_TRY(push_hashed_node(s, root));
  for (size_t round = 0; s->top > 0; round++) {
    pln_ref entry = s->stack[--s->top];
    PLN_TRY(pln_poll_round(s->engine, round));
    if (entry & LEAVE)
      end_node_hash(s, entry & ~LEAVE);
    else
      PLN_TRY(begin_node_hash(s, entry));
  }
  return PLN_OK;
}

static pln_status hash_nodes(hasher *s, pln_ref node, uint64_t *out) {
  const pln_graph *g = s->g;
  pln_engine *e = s->engine = g->engine;
  size_t size = ((size_t)g->n_nodes + 1) * sizeof *s->hash;
  s->statements.graph = g;
  s->hash = pln_mem_zeroed(e, size);
  pln_stoppable_begin(e);
  pln_status status =
      pln_work_done(e, s->hash ? hash_from_root(s, node) : pln_nomem(e));
  if (status == PLN_OK)
    status = s->status;
  if (status == PLN_OK)
    *out = pln_hash_mix(s->running, s->hash[node]);
  pln_mem_free(e, s->hash, size);
  pln_idmap_free(s->free);
  if (s->defined)
    pln_mem_free(e, s->defined, (size_t)g->n_nodes + 1);
  pln_effect_order_free(&s->statements);
  pln_mem_free(e, s->stack, s->cap_stack * sizeof *s->stack);
  return status;
}

pln_status pln_graph_hash(const pln_graph *graph, pln_ref node,
                          bool map_free_vars, uint64_t *out) {
  hasher s = {.g = graph, .map_free = map_free_vars};
  return hash_nodes(&s, node, out);
}

pln_status pln_graph_whole_hash(const pln_graph *graph, uint64_t *out) {
  hasher s = {.g = graph, .whole = true};
  PLN_TRY(hash_nodes(&s, graph->root, out));
  *out = pln_hash_mix(*out, (uint64_t)graph->n_nodes << 32 | graph->n_scopes);
  return PLN_OK;
}
