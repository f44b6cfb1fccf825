/* narrow_types.c: decides which integers of a PrimFunc get narrower dtypes
 * (narrow.h).
 *
 * Called by narrow_data_type.c. An expression needs as many bits as its values
 * and the expressions around it do: target_bits if its bounds fit in them, else
 * 64. A variable of a loop, immediates and casts get the bits that the widest
 * of their uses needs, never more than they have. What always holds: operands
 * come before users, so one loop backwards over the array sees all users of a
 * node before it.
 *
 * Semantics: DataTypeVisitor of TVM's narrow_datatype.cc. */

#include "arith/arith.h"
#include "lower/narrow/narrow.h"

enum { MOST_BITS = 64 };

typedef struct bit_analysis {
  const pln_graph *g;
  pln_analyzer *a;
  uint32_t target;
  uint8_t *bits;   /* by node: what its uses need; 0: no use is seen */
  uint8_t *extent; /* by Var of a loop: the bits of its extent */
} bit_analysis;

static bool is_int_type(const pln_engine *e, pln_type type) {
  if (pln_type_get_kind(e, type) != PLN_TYPE_PRIM)
    return false;
  pln_dtype dtype = pln_type_dtype(e, type);
  return dtype == PLN_INT8 || dtype == PLN_INT16 || dtype == PLN_INT32 ||
         dtype == PLN_INT64;
}

static uint32_t bits_of(const bit_analysis *x, pln_ref ref) {
  return pln_dtype_bits(pln_type_dtype(x->g->engine, x->g->nodes[ref].type));
}

/* ------------------------------------------------------------------- ranges
 */

/* A variable that is bound to several ranges has no bounds. */
static pln_status bind_var(bit_analysis *x, pln_ref var, pln_ref min,
                           pln_ref extent) {
  pln_term v, from, length, last;
  const pln_var_fact *fact;
  x->extent[var] = (uint8_t)bits_of(x, extent);
  PLN_TRY(pln_analyzer_import(x->a, x->g, var, &v));
  PLN_TRY(pln_analyzer_import(x->a, x->g, extent, &length));
  if (min == PLN_NONE)
    from = pln_const_like(x->a, length, 0);
  else
    PLN_TRY(pln_analyzer_import(x->a, x->g, min, &from));
  PLN_TRY(x->a->status);
  last = pln_sub(x->a, pln_add(x->a, from, length),
                 pln_const_like(x->a, length, 1));
  fact = pln_var_fact_of(x->a, v, false);
  if (fact && fact->ranged && (fact->min != from || fact->max != last))
    return pln_analyzer_update_bound(x->a, v, -PLN_INF, PLN_INF, true);
  return pln_analyzer_bind_range(x->a, v, from, length, true);
}

static pln_status bind_block(bit_analysis *x, pln_ref block) {
  const pln_node *n = &x->g->nodes[block];
  pln_ref first = x->g->scopes[n->data].begin;
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref domain = pln_operand(x->g, block, i);
    PLN_TRY(bind_var(x, first + i, pln_operand(x->g, domain, 0),
                     pln_operand(x->g, domain, 1)));
  }
  return PLN_OK;
}

static pln_status bind_axis(bit_analysis *x, pln_ref iter) {
  const pln_node *n = &x->g->nodes[iter];
  if (n->count < 2)
    return PLN_OK;
  pln_ref domain = pln_operand(x->g, iter, 1);
  return bind_var(x, pln_operand(x->g, iter, 0), pln_operand(x->g, domain, 0),
                  pln_operand(x->g, domain, 1));
}

static pln_status bind_axes(bit_analysis *x, pln_ref reduce) {
  for (uint32_t i = 0; i < x->g->nodes[reduce].count; i++)
    if (x->g->nodes[pln_operand(x->g, reduce, i)].kind == PLN_ITER_VAR)
      PLN_TRY(bind_axis(x, pln_operand(x->g, reduce, i)));
  return PLN_OK;
}

static pln_status bind_node(bit_analysis *x, pln_ref ref) {
  const pln_graph *g = x->g;
  const pln_node *n = &g->nodes[ref];
  switch (n->kind) {
  case PLN_FOR:
    return bind_var(x, g->scopes[n->data].begin, pln_operand(g, ref, 0),
                    pln_operand(g, ref, 1));
  case PLN_BLOCK: return bind_block(x, ref);
  case PLN_REDUCE: return bind_axes(x, ref);
  case PLN_ATTR_STMT:
    return pln_binds_thread(g, n)
               ? bind_var(x, pln_operand(g, pln_operand(g, ref, 0), 0),
                          PLN_NONE, pln_operand(g, ref, 1))
               : PLN_OK;
  default: return PLN_OK;
  }
}

/* --------------------------------------------------------------------- bits
 */

static void need(bit_analysis *x, pln_ref ref, uint32_t bits) {
  if (x->bits[ref] < bits)
    x->bits[ref] = (uint8_t)bits;
}

/* What TVM does not look at: buffers, and the threads of an AttrStmt or loop.
 */
static bool is_unseen(const pln_graph *g, const pln_node *n, uint32_t i) {
  pln_kind operand = (pln_kind)g->nodes[g->operands[n->first + i]].kind;
  return operand == PLN_BUFFER || (n->kind == PLN_ATTR_STMT && i == 0) ||
         (n->kind == PLN_FOR && i == 2) || n->kind == PLN_BUFFER_BIND ||
         n->kind == PLN_BUFFER;
}

static pln_status own_bits(bit_analysis *x, pln_ref ref, uint32_t *bits) {
  pln_term term;
  int64_t min, max, limit = INT64_MAX >> (MOST_BITS - x->target);
  *bits = x->target;
  if (bits_of(x, ref) <= x->target)
    return PLN_OK;
  PLN_TRY(pln_analyzer_import(x->a, x->g, ref, &term));
  PLN_TRY(pln_analyzer_const_int_bound(x->a, term, &min, &max));
  if (min < -limit - 1 || max > limit)
    *bits = MOST_BITS;
  return PLN_OK;
}

static bool is_value(const pln_node *n) {
  return n->kind != PLN_RANGE && n->kind != PLN_BUFFER_REGION &&
         n->kind != PLN_ITER_VAR && n->kind != PLN_PRIM_ARRAY;
}

static pln_status visit_node(bit_analysis *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  uint32_t bits = x->target;
  if (pln_is_prim(n) || n->kind == PLN_VAR) {
    if (x->bits[ref] == 0)
      return PLN_OK;
    if (is_value(n) && is_int_type(x->g->engine, n->type)) {
      PLN_TRY(own_bits(x, ref, &bits));
      need(x, ref, bits);
    }
    bits = x->bits[ref];
  } else if (!pln_is_stmt(n)) {
    return PLN_OK;
  }
  for (uint32_t i = 0; i < n->count; i++)
    if (!is_unseen(x->g, n, i))
      need(x, x->g->operands[n->first + i], bits);
  return PLN_OK;
}

/* -------------------------------------------------------------------- types
 */

static pln_dtype dtype_of_bits(uint32_t bits) {
  return bits <= 8    ? PLN_INT8
         : bits <= 16 ? PLN_INT16
         : bits <= 32 ? PLN_INT32
                      : PLN_INT64;
}

/* The narrower type of a Var, IntImm or Cast. */
static pln_status narrow_type(const bit_analysis *x, pln_ref ref,
                              pln_type *out) {
  const pln_node *n = &x->g->nodes[ref];
  pln_engine *e = x->g->engine;
  uint32_t bits = x->bits[ref], own;
  *out = 0;
  if (bits == 0 ||
      (n->kind != PLN_INT_IMM && n->kind != PLN_PRIM_CAST &&
       (n->kind != PLN_VAR || x->extent[ref] == 0)) ||
      !is_int_type(e, n->type))
    return PLN_OK;
  own = bits_of(x, ref);
  if (n->kind == PLN_VAR && x->extent[ref] < own)
    own = x->extent[ref];
  if (own < bits)
    bits = own;
  return bits == bits_of(x, ref)
             ? PLN_OK
             : pln_type_prim(e, dtype_of_bits(bits),
                             (uint32_t)pln_type_number(e, n->type), out);
}

static pln_status fill_types(bit_analysis *x, pln_type *types, bool *any) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    PLN_TRY(pln_poll_round(g->engine, ref));
    PLN_TRY(bind_node(x, ref));
  }
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    PLN_TRY(pln_poll_round(g->engine, ref));
    PLN_TRY(visit_node(x, ref));
  }
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    PLN_TRY(pln_poll_round(g->engine, ref));
    PLN_TRY(narrow_type(x, ref, &types[ref]));
    *any |= types[ref] != 0;
  }
  return PLN_OK;
}

pln_status pln_narrow_types(const pln_graph *g, int64_t target_bits,
                            pln_type **types, bool *any) {
  bit_analysis x = {.g = g, .target = (uint32_t)target_bits};
  *any = false;
  PLN_TRY(pln_analyzer_new(g->engine, &x.a));
  x.bits = pln_mem_zeroed(g->engine, g->n_nodes);
  x.extent = pln_mem_zeroed(g->engine, g->n_nodes);
  *types = pln_mem_zeroed(g->engine, g->n_nodes * sizeof **types);
  pln_status status = x.bits && x.extent && *types ? fill_types(&x, *types, any)
                                                   : pln_nomem(g->engine);
  if (status != PLN_OK)
    pln_mem_free(g->engine, *types, g->n_nodes * sizeof **types);
  pln_mem_free(g->engine, x.bits, g->n_nodes);
  pln_mem_free(g->engine, x.extent, g->n_nodes);
  pln_analyzer_free(x.a);
  return status;
}
