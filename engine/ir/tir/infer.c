/* tir/infer.c: infers types and effects of TIR nodes from their operands.
 * Called by infer/infer.c for each appended TIR node.
 *
 * Invariants: a PrimExpr has a PrimType (dtype and lanes; a handle has no
 * dtype) or a pointer type; a statement has the empty tuple type; the dtypes of
 * a PrimExpr's operands agree, as TVM's constructors require. */

#include "ir/tir/tir.h"

static pln_type operand_type(const pln_graph *g, const pln_node *n,
                             uint32_t i) {
  return g->nodes[g->operands[n->first + i]].type;
}

static const pln_node *operand_node(const pln_graph *g, const pln_node *n,
                                    uint32_t i) {
  return &g->nodes[g->operands[n->first + i]];
}

static const char *tir_node_name(const pln_node *n) {
  return pln_kinds[n->kind].name;
}

static pln_status ill_typed(pln_builder *b, const pln_node *n,
                            const char *rule) {
  return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL, "%s: %s",
                        tir_node_name(n), rule);
}

static pln_dtype dtype_of(pln_builder *b, pln_type type) {
  return pln_type_dtype(b->engine, type);
}

static uint32_t lanes_of(pln_builder *b, pln_type type) {
  return pln_type_get_kind(b->engine, type) == PLN_TYPE_PRIM
             ? pln_type_number(b->engine, type)
             : 1;
}

static bool is_value(pln_builder *b, pln_type type) {
  pln_type_kind kind = pln_type_get_kind(b->engine, type);
  return kind == PLN_TYPE_PRIM || kind == PLN_TYPE_POINTER;
}

/* ---------------------------------------------------------------- PrimExprs */

static pln_status arithmetic(pln_builder *b, pln_node *n, bool compares) {
  pln_type x = operand_type(b->graph, n, 0), y = operand_type(b->graph, n, 1);
  if (!is_value(b, x) || !is_value(b, y))
    return ill_typed(b, n, "its operands must be scalars or vectors");
  if (x != y && pln_type_get_kind(b->engine, x) == PLN_TYPE_PRIM)
    return pln_diag_error(
        b->engine, PLN_ERR_TYPE, NULL,
        "%s: its operands must have one dtype, not %sx%u and %sx%u",
        tir_node_name(n), pln_dtype_name(dtype_of(b, x)), lanes_of(b, x),
        pln_dtype_name(dtype_of(b, y)), lanes_of(b, y));
  n->type = x;
  if (!compares)
    return PLN_OK;
  return pln_type_prim(b->engine, PLN_BOOL, lanes_of(b, x), &n->type);
}

static pln_status logic(pln_builder *b, pln_node *n) {
  for (uint32_t i = 0; i < n->count; i++)
    if (dtype_of(b, operand_type(b->graph, n, i)) != PLN_BOOL)
      return ill_typed(b, n, "its operands must be conditions");
  if (n->count == 2 &&
      operand_type(b->graph, n, 0) != operand_type(b->graph, n, 1))
    return ill_typed(b, n, "its operands must have as many lanes");
  n->type = operand_type(b->graph, n, 0);
  return PLN_OK;
}

static pln_status select_one(pln_builder *b, pln_node *n) {
  const pln_graph *g = b->graph;
  pln_type condition = operand_type(g, n, 0);
  uint32_t lanes = lanes_of(b, condition);
  if (dtype_of(b, condition) != PLN_BOOL ||
      (lanes != 1 && lanes != lanes_of(b, operand_type(g, n, 1))))
    return ill_typed(b, n,
                     "its condition must be a bool, or one for each lane");
  if (operand_type(g, n, 1) != operand_type(g, n, 2))
    return ill_typed(b, n, "its two values must have one dtype");
  n->type = operand_type(g, n, 1);
  return PLN_OK;
}

static pln_status vector(pln_builder *b, pln_node *n) {
  pln_type base = operand_type(b->graph, n, 0);
  if (n->data < 1 || n->data > UINT16_MAX || lanes_of(b, base) != 1 ||
      pln_type_get_kind(b->engine, base) != PLN_TYPE_PRIM)
    return ill_typed(b, n, "a vector has 1 to 65,535 lanes, each a scalar");
  if (n->kind == PLN_RAMP && operand_type(b->graph, n, 1) != base)
    return ill_typed(b, n, "base and stride must have one dtype");
  return pln_type_prim(b->engine, dtype_of(b, base), n->data, &n->type);
}

/* An index is an integer or, in a region, a Range. */
static pln_status check_index(pln_builder *b, const pln_node *n, uint32_t i) {
  pln_type type = operand_type(b->graph, n, i);
  if (operand_node(b->graph, n, i)->kind == PLN_RANGE || !type ||
      pln_is_signed(dtype_of(b, type)) || pln_is_unsigned(dtype_of(b, type)))
    return PLN_OK;
  const char *name =
      dtype_of(b, type) ? pln_dtype_name(dtype_of(b, type)) : "handle";
  return pln_diag_error(
      b->engine, PLN_ERR_TYPE, NULL,
      "%s: an index into '%s' is an integer, not a %s", tir_node_name(n),
      pln_symbol_text(b->engine, operand_node(b->graph, n, 0)->data).data,
      name);
}

/* Checks the indices after the first `skip` operands: one per dimension of the
 * buffer. Only the last may be a vector, whose lanes are *lanes. */
static pln_status indices(pln_builder *b, const pln_node *n, uint32_t skip,
                          uint32_t *lanes) {
  const pln_graph *g = b->graph;
  const pln_node *buffer = operand_node(g, n, 0);
  *lanes = 1;
  if (buffer->kind != PLN_BUFFER)
    return ill_typed(b, n, "its first operand must be a Buffer");
  if (n->count - skip != buffer->results)
    return pln_diag_error(
        b->engine, PLN_ERR_TYPE, NULL, "%s: %u indices into '%s' of rank %u",
        tir_node_name(n), n->count - skip,
        pln_symbol_text(b->engine, buffer->data).data, buffer->results);
  for (uint32_t i = skip; i < n->count; i++) {
    PLN_TRY(check_index(b, n, i));
    *lanes = lanes_of(b, operand_type(g, n, i));
    if (*lanes != 1 && i + 1 < n->count)
      return ill_typed(b, n, "only the last index can be a vector");
  }
  return PLN_OK;
}

static pln_status infer_buffer_load(pln_builder *b, pln_node *n) {
  uint32_t lanes;
  if (n->count == 0)
    return ill_typed(b, n, "there is no buffer");
  PLN_TRY(indices(b, n, 1, &lanes));
  pln_type element = operand_type(b->graph, n, 0);
  return pln_type_prim(b->engine, dtype_of(b, element),
                       lanes * lanes_of(b, element), &n->type);
}

static bool is_handle(const pln_engine *e, pln_type type) {
  pln_type_kind kind = pln_type_get_kind(e, type);
  return kind == PLN_TYPE_POINTER ||
         (kind == PLN_TYPE_PRIM && !pln_type_dtype(e, type) &&
          pln_type_number(e, type) == 1);
}

bool pln_let_type_matches(const pln_engine *engine, pln_type var,
                          pln_type value) {
  return var == value || !var || !value ||
         (is_handle(engine, var) && is_handle(engine, value));
}

static pln_status check_let(pln_builder *b, const pln_node *n, pln_type var,
                            pln_type value) {
  if (pln_let_type_matches(b->engine, var, value))
    return PLN_OK;
  return ill_typed(b, n, "the value is of another dtype than the variable");
}

static pln_status let(pln_builder *b, pln_node *n) {
  if (operand_node(b->graph, n, 0)->kind != PLN_VAR)
    return ill_typed(b, n, "a Var is bound");
  PLN_TRY(check_let(b, n, operand_type(b->graph, n, 0),
                    operand_type(b->graph, n, 1)));
  n->type = operand_type(b->graph, n, 2);
  return PLN_OK;
}

static pln_status shuffle(pln_builder *b, pln_node *n) {
  if (n->data < 1 || n->data >= n->count)
    return ill_typed(b, n, "it takes vectors, then indices");
  pln_type first = operand_type(b->graph, n, 0);
  return pln_type_prim(b->engine, dtype_of(b, first), n->count - n->data,
                       &n->type);
}

static pln_status infer_reduce(pln_builder *b, pln_node *n) {
  if (n->count < 2 || operand_node(b->graph, n, 0)->kind != PLN_COMM_REDUCER)
    return ill_typed(b, n, "its first operand must be a CommReducer");
  uint32_t values = operand_node(b->graph, n, 0)->count / 4;
  if (n->data >= values || n->count < 2 + values ||
      n->count - 2 - values < n->results)
    return ill_typed(b, n,
                     "it must have as many sources as its combiner has values");
  n->type = operand_type(b->graph, n, 2 + n->data);
  return PLN_OK;
}

static pln_status buffer(pln_builder *b, pln_node *n) {
  pln_type data = n->count ? operand_type(b->graph, n, 0) : 0;
  if (n->count < 2u + n->results ||
      operand_node(b->graph, n, 0)->kind != PLN_VAR ||
      pln_type_get_kind(b->engine, data) != PLN_TYPE_POINTER)
    return ill_typed(b, n, "its data must be a Var of a pointer type");
  uint32_t strides = n->count - 2u - n->results;
  if (strides != 0 && strides != n->results)
    return ill_typed(b, n, "it must have a stride for each dimension, or none");
  return n->type ? PLN_OK : ill_typed(b, n, "its dtype is unknown");
}

static pln_status region(pln_builder *b, pln_node *n) {
  uint32_t lanes;
  if (n->count == 0)
    return ill_typed(b, n, "there is no buffer");
  PLN_TRY(indices(b, n, 1, &lanes));
  for (uint32_t i = 1; i < n->count; i++)
    if (operand_node(b->graph, n, i)->kind != PLN_RANGE)
      return ill_typed(b, n, "a region must have a Range for each dimension");
  n->type = operand_type(b->graph, n, 0);
  return PLN_OK;
}

static pln_status cast(pln_builder *b, pln_node *n) {
  if (!is_value(b, n->type) || !is_value(b, operand_type(b->graph, n, 0)) ||
      lanes_of(b, n->type) != lanes_of(b, operand_type(b->graph, n, 0)))
    return ill_typed(b, n, "a cast must keep the number of lanes");
  return PLN_OK;
}

static pln_status infer_builtin_call(pln_builder *b, pln_node *n) {
  if (n->data > pln_builtin_count())
    return ill_typed(b, n, "there is no such builtin");
  if (!n->data &&
      (n->count == 0 || operand_node(b->graph, n, 0)->kind != PLN_GLOBAL_VAR))
    return ill_typed(b, n, "the callee must be a builtin or a GlobalVar");
  return PLN_OK;
}

static pln_status prim_type(pln_builder *b, pln_node *n) {
  switch ((pln_kind)n->kind) {
  case PLN_PRIM_CAST: return cast(b, n);
  case PLN_PRIM_ADD:
  case PLN_PRIM_SUB:
  case PLN_PRIM_MUL:
  case PLN_PRIM_DIV:
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORDIV:
  case PLN_PRIM_FLOORMOD:
  case PLN_PRIM_MIN:
  case PLN_PRIM_MAX:
  case PLN_RANGE: return arithmetic(b, n, false);
  case PLN_PRIM_EQ:
  case PLN_PRIM_NE:
  case PLN_PRIM_LT:
  case PLN_PRIM_LE:
  case PLN_PRIM_GT:
  case PLN_PRIM_GE: return arithmetic(b, n, true);
  case PLN_PRIM_AND:
  case PLN_PRIM_OR:
  case PLN_PRIM_NOT: return logic(b, n);
  case PLN_SELECT: return select_one(b, n);
  case PLN_BUFFER_LOAD: return infer_buffer_load(b, n);
  case PLN_PRODUCER_LOAD:
    return n->count >= 1 ? PLN_OK : ill_typed(b, n, "there is no producer");
  case PLN_RAMP:
  case PLN_BROADCAST: return vector(b, n);
  case PLN_PRIM_LET: return let(b, n);
  case PLN_PRIM_CALL: return infer_builtin_call(b, n);
  case PLN_SHUFFLE: return shuffle(b, n);
  case PLN_REDUCE: return infer_reduce(b, n);
  case PLN_BUFFER: return buffer(b, n);
  case PLN_BUFFER_REGION: return region(b, n);
  case PLN_COMM_REDUCER:
    return n->count > 0 && n->count % 4 == 0
               ? PLN_OK
               : ill_typed(
                     b, n,
                     "it must have as many lhs, rhs, results and identities");
  case PLN_ITER_VAR:
    if (n->count == 0 || operand_node(b->graph, n, 0)->kind != PLN_VAR)
      return ill_typed(b, n, "its first operand must be a Var");
    n->type = operand_type(b->graph, n, 0);
    return PLN_OK;
  default: return PLN_OK;
  }
}

/* --------------------------------------------------------------- statements */

static pln_status condition(pln_builder *b, const pln_node *n, uint32_t i) {
  if (i < n->count && dtype_of(b, operand_type(b->graph, n, i)) == PLN_BOOL)
    return PLN_OK;
  return ill_typed(b, n, "its condition must be a bool");
}

static pln_status infer_buffer_store(pln_builder *b, pln_node *n) {
  uint32_t lanes;
  if (n->count < 2)
    return ill_typed(b, n, "a buffer and a value are expected");
  PLN_TRY(indices(b, n, 2, &lanes));
  pln_type element = operand_type(b->graph, n, 0);
  pln_type value = operand_type(b->graph, n, 1);
  if (dtype_of(b, element) == dtype_of(b, value) &&
      lanes * lanes_of(b, element) == lanes_of(b, value))
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                        "BufferStore: a value of %sx%u into elements of %sx%u",
                        pln_dtype_name(dtype_of(b, value)), lanes_of(b, value),
                        pln_dtype_name(dtype_of(b, element)),
                        lanes * lanes_of(b, element));
}

static pln_status loop(pln_builder *b, pln_node *n) {
  if (n->count < 2 ||
      operand_type(b->graph, n, 0) != operand_type(b->graph, n, 1))
    return ill_typed(b, n, "min and extent must have one dtype");
  return PLN_OK;
}

static pln_status first_is(pln_builder *b, const pln_node *n, uint32_t i,
                           pln_kind kind) {
  if (i < n->count && operand_node(b->graph, n, i)->kind == kind)
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL, "%s: operand %u is a %s",
                        tir_node_name(n), i, pln_kind_name(kind));
}

/* In floating form the variable follows the value; in scoped form it is the
 * first node of the scope. */
static pln_status let_stmt(pln_builder *b, const pln_node *n) {
  const pln_graph *g = b->graph;
  pln_ref var = PLN_NONE;
  if (n->count > 1)
    var = g->operands[n->first + 1];
  else if (n->count == 1 && g->scopes[n->data].n_params > 0)
    var = g->scopes[n->data].begin;
  if (var >= g->n_nodes)
    return ill_typed(b, n, "a Var must be bound to a value");
  return check_let(b, n, g->nodes[var].type, operand_type(g, n, 0));
}

static pln_status stmt_type(pln_builder *b, pln_node *n) {
  switch ((pln_kind)n->kind) {
  case PLN_BUFFER_STORE: return infer_buffer_store(b, n);
  case PLN_BUFFER_REALIZE:
    PLN_TRY(first_is(b, n, 0, PLN_BUFFER));
    return condition(b, n, 1);
  case PLN_PRODUCER_REALIZE: return condition(b, n, 1);
  case PLN_PRODUCER_STORE:
    return n->count >= 2 ? PLN_OK
                         : ill_typed(b, n,
                                     "a producer and a value are "
                                     "expected");
  case PLN_ASSERT_STMT:
  case PLN_ALLOCATE:
  case PLN_BLOCK_REALIZE: return condition(b, n, 0);
  case PLN_WHILE:
  case PLN_IF_THEN_ELSE: /* TVM also accepts an integer */
    if (is_value(b, operand_type(b->graph, n, 0)))
      return PLN_OK;
    return ill_typed(b, n, "its condition must be a scalar");
  case PLN_DECL_BUFFER:
  case PLN_PREFETCH:
  case PLN_ALLOC_BUFFER: return first_is(b, n, 0, PLN_BUFFER);
  case PLN_MATCH_BUFFER:
    PLN_TRY(first_is(b, n, 0, PLN_BUFFER));
    return first_is(b, n, 1, PLN_BUFFER_REGION);
  case PLN_BUFFER_BIND:
    PLN_TRY(first_is(b, n, 0, PLN_VAR));
    return first_is(b, n, 1, PLN_BUFFER);
  case PLN_FOR: return loop(b, n);
  case PLN_LET_STMT: return let_stmt(b, n);
  default: return PLN_OK;
  }
}

/* ------------------------------------------------------------------ effects */

static uint8_t operands_effect(const pln_graph *g, const pln_node *n) {
  uint8_t effect = PLN_EFFECT_NONE;
  for (uint32_t i = 0; i < n->count; i++) {
    uint8_t flags = operand_node(g, n, i)->flags & PLN_NODE_EFFECT;
    if (flags > effect)
      effect = flags;
  }
  return effect;
}

static uint8_t own_effect(const pln_node *n) {
  switch ((pln_kind)n->kind) {
  case PLN_BUFFER_LOAD:
  case PLN_PRODUCER_LOAD: return PLN_EFFECT_READS;
  case PLN_PRIM_CALL:
    return n->data ? (uint8_t)pln_call_effect(pln_builtin_row(n->data)->effect)
                   : PLN_EFFECT_UNKNOWN;
  case PLN_BUFFER_STORE:
  case PLN_PRODUCER_STORE:
  case PLN_FOR: return PLN_EFFECT_WRITES;
  case PLN_ASSERT_STMT:
  case PLN_WHILE: return PLN_EFFECT_UNKNOWN;
  default: return PLN_EFFECT_NONE;
  }
}

static void set_effect(const pln_builder *b, pln_node *n) {
  uint8_t effect = operands_effect(b->graph, n), own = own_effect(n);
  if (own > effect)
    effect = own;
  if (pln_owns(n))
    for (pln_scope s = n->data; s != PLN_NONE; s = b->graph->scopes[s].next)
      if (b->effects[s] > effect)
        effect = b->effects[s];
  n->flags = (uint8_t)((n->flags & ~PLN_NODE_EFFECT) | effect);
}

/* A PrimFunc evaluates to a function without effect; its call effect is that of
 * its body. */
static pln_status infer_prim_func(pln_builder *b, pln_node *n) {
  const pln_graph *g = b->graph;
  const pln_scope_row *row = &g->scopes[n->data];
  pln_type ret = n->type, few[16], *params = few;
  size_t size = row->n_params * sizeof *params;
  n->flags = (uint8_t)((n->flags & ~PLN_NODE_CALL_EFFECT) |
                       (b->effects[n->data] << PLN_NODE_CALL_EFFECT_SHIFT));
  if (pln_type_get_kind(b->engine, ret) == PLN_TYPE_FUNC)
    return PLN_OK;
  if (!ret)
    PLN_TRY(pln_type_make(b->engine, PLN_TYPE_TUPLE, 0, 0, NULL, &ret));
  if (size > sizeof few && !(params = pln_mem_new(b->engine, size)))
    return pln_nomem(b->engine);
  for (uint32_t i = 0; i < row->n_params; i++)
    params[i] =
        n->count ? operand_type(g, n, i) : g->nodes[row->begin + i].type;
  pln_status status = pln_type_func(b->engine, row->n_params, params, ret, 0,
                                    NULL, 0, NULL, &n->type);
  if (params != few)
    pln_mem_free(b->engine, params, size);
  return status;
}

pln_status pln_infer_tir(pln_builder *b, pln_node *n) {
  if (n->kind == PLN_PRIM_FUNC)
    return infer_prim_func(b, n);
  PLN_TRY(pln_is_prim(n) ? prim_type(b, n) : stmt_type(b, n));
  set_effect(b, n);
  if (pln_is_prim(n))
    return PLN_OK;
  return pln_type_make(b->engine, PLN_TYPE_TUPLE, 0, 0, NULL, &n->type);
}
