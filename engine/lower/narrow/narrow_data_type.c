/* narrow_data_type.c: tir.NarrowDataType: computes indices in integers of no
 * more than target_bits where their values fit.
 *
 * Run by the executor. narrow_types.c decides which variables, immediates and
 * casts get narrower. Each expression has two images here: inside of an index,
 * where immediates and casts are narrow, and elsewhere, where only variables
 * are; of two operands of different dtypes the narrower one is cast.
 *
 *     for i in range(T.int64(8)): A[i * T.int64(2)] = 0
 *         =>   for i in range(8): A[i * 2] = 0
 *
 * tir.ForceNarrowIndexToInt32 is the same walk with other types
 * (force_narrow_types.c): immediates are narrow elsewhere, too.
 *
 * Semantics: TVM's tir.NarrowDataType and tir.ForceNarrowIndexToInt32. */

#include "lower/narrow/narrow.h"

typedef struct narrower {
  const pln_graph *g;
  const pln_type *types; /* by node: narrower type, or 0 */
  pln_ref *index;  /* by node: its image in an index; PLN_NONE: the same */
  bool everywhere; /* immediates are narrow outside of indices, too */
} narrower;

/* -------------------------------------------------------------------- casts
 */

static pln_type type_of(const pln_stmt_rewrite *s, pln_ref ref) {
  return pln_stmt_node(s, ref)->type;
}

static uint32_t int_bits(const pln_engine *e, pln_type type) {
  pln_dtype dtype = pln_type_get_kind(e, type) == PLN_TYPE_PRIM
                        ? pln_type_dtype(e, type)
                        : PLN_DTYPE_NONE;
  bool is_int = dtype == PLN_INT8 || dtype == PLN_INT16 || dtype == PLN_INT32 ||
                dtype == PLN_INT64;
  return is_int ? pln_dtype_bits(dtype) : 0;
}

/* A value in the dtype of `type`, with its own lanes. Immediates are computed.
 */
static pln_status cast_to(pln_stmt_rewrite *s, pln_type type, pln_ref *value) {
  pln_engine *e = pln_stmt_old(s)->engine;
  pln_type own = type_of(s, *value), wanted;
  uint32_t bits = int_bits(e, own);
  if (bits == 0 || int_bits(e, type) == 0 || bits == int_bits(e, type))
    return PLN_OK;
  PLN_TRY(pln_type_prim(e, pln_type_dtype(e, type),
                        (uint32_t)pln_type_number(e, own), &wanted));
  const pln_node *n = pln_stmt_node(s, *value);
  if (n->kind == PLN_INT_IMM &&
      pln_holds_int(pln_type_dtype(e, type), (int64_t)pln_imm_bits(n)))
    return pln_build_int_imm(pln_stmt_builder(s), wanted,
                             (int64_t)pln_imm_bits(n), value);
  pln_prim spec = {
      .kind = PLN_PRIM_CAST, .type = wanted, .n = 1, .operands = value};
  return pln_build_prim(pln_stmt_builder(s), &spec, value);
}

static bool differ(const pln_stmt_rewrite *s, pln_ref x, pln_ref y) {
  const pln_engine *e = pln_stmt_old(s)->engine;
  return int_bits(e, type_of(s, x)) != int_bits(e, type_of(s, y));
}

/* Of two integers the narrower is cast. */
static pln_status match_two(pln_stmt_rewrite *s, pln_ref *x, pln_ref *y) {
  const pln_engine *e = pln_stmt_old(s)->engine;
  if (int_bits(e, type_of(s, *x)) < int_bits(e, type_of(s, *y)))
    return cast_to(s, type_of(s, *y), x);
  return cast_to(s, type_of(s, *x), y);
}

/* -------------------------------------------------------------- expressions
 */

static bool is_arithmetic(pln_kind kind) {
  return kind >= PLN_PRIM_ADD && kind <= PLN_PRIM_GE;
}

static bool calls(const pln_node *n, const char *builtin) {
  return n->data != 0 && strcmp(pln_builtin_name(n->data), builtin) == 0;
}

static bool is_bitwise(const pln_node *n) {
  return calls(n, "bitwise_and") || calls(n, "bitwise_or") ||
         calls(n, "bitwise_xor") || calls(n, "shift_left") ||
         calls(n, "shift_right");
}

/* The arguments of a pure builtin keep their dtypes; another callee gets them
 * as they are. */
static pln_status keep_argument_types(const narrower *x, pln_stmt_rewrite *s,
                                      pln_ref old, pln_ref *operands) {
  const pln_node *n = &x->g->nodes[old];
  if (n->data == 0 || pln_builtin_call_kind(n->data) > PLN_CALL_PURE)
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(
        cast_to(s, x->g->nodes[pln_operand(x->g, old, i)].type, &operands[i]));
  return PLN_OK;
}

static pln_status match_call(const narrower *x, pln_stmt_rewrite *s,
                             pln_ref old, pln_ref *operands, pln_prim *spec) {
  const pln_node *n = &x->g->nodes[old];
  uint32_t first = calls(n, "if_then_else") ? 1 : 0;
  if ((first == 0 && !is_bitwise(n)) || n->count != 2 + first)
    return keep_argument_types(x, s, old, operands);
  PLN_TRY(match_two(s, &operands[first], &operands[first + 1]));
  if (int_bits(x->g->engine, n->type))
    spec->type = type_of(s, operands[first]);
  return PLN_OK;
}

/* Casts operands so that the node can be built. */
static pln_status match_operands(const narrower *x, pln_stmt_rewrite *s,
                                 pln_ref old, pln_ref *operands,
                                 pln_prim *spec) {
  switch (x->g->nodes[old].kind) {
  case PLN_RANGE:
  case PLN_RAMP: return match_two(s, &operands[0], &operands[1]);
  case PLN_SELECT: return match_two(s, &operands[1], &operands[2]);
  case PLN_PRIM_CALL: return match_call(x, s, old, operands, spec);
  case PLN_PRIM_LET: return cast_to(s, type_of(s, operands[0]), &operands[1]);
  default: return PLN_OK;
  }
}

static pln_status build_with(const narrower *x, pln_stmt_rewrite *s,
                             pln_ref old, pln_type type, pln_ref *operands,
                             pln_ref *out) {
  const pln_node *n = &x->g->nodes[old];
  if (is_arithmetic((pln_kind)n->kind)) {
    PLN_TRY(match_two(s, &operands[0], &operands[1]));
    return pln_build_folded(pln_stmt_builder(s), (pln_kind)n->kind, operands[0],
                            operands[1], out);
  }
  bool gives = n->kind == PLN_PRIM_CAST || n->kind == PLN_PRIM_CALL;
  pln_prim spec = {.kind = (pln_kind)n->kind,
                   .count = n->results,
                   .data = n->data,
                   .attrs = n->attrs,
                   .type = gives ? type : 0,
                   .n = n->count,
                   .operands = operands};
  PLN_TRY(match_operands(x, s, old, operands, &spec));
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

static pln_ref index_image(const narrower *x, const pln_stmt_rewrite *s,
                           pln_ref old) {
  return x->index[old] != PLN_NONE ? x->index[old] : pln_stmt_image(s, old);
}

/* Whether operand `i` is an index wherever the expression stands. */
static bool is_index(const pln_node *n, uint32_t i) {
  return n->kind == PLN_BUFFER_LOAD && i > 0;
}

typedef struct operand_images {
  pln_ref *plain, *index;
  bool changed; /* plain: another dtype than before */
  bool differs; /* index and plain */
} operand_images;

static void collect(const narrower *x, const pln_stmt_rewrite *s, pln_ref old,
                    operand_images *o) {
  const pln_node *n = &x->g->nodes[old];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operand(x->g, old, i);
    o->index[i] = index_image(x, s, operand);
    o->plain[i] = is_index(n, i) ? o->index[i] : pln_stmt_image(s, operand);
    o->changed |= type_of(s, o->plain[i]) != x->g->nodes[operand].type ||
                  o->plain[i] != pln_stmt_image(s, operand);
    o->differs |= o->plain[i] != o->index[i];
  }
}

static pln_status build_images(narrower *x, pln_stmt_rewrite *s, pln_ref old,
                               operand_images *o, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  collect(x, s, old, o);
  bool narrow_cast = n->kind == PLN_PRIM_CAST && x->types[old];
  if (o->differs || narrow_cast)
    PLN_TRY(build_with(x, s, old, narrow_cast ? x->types[old] : n->type,
                       o->index, &x->index[old]));
  if (!o->changed)
    return PLN_OK;
  /* Operands that do not fit each other are looked at as if in an index. */
  if (is_arithmetic((pln_kind)n->kind) && o->differs &&
      differ(s, o->plain[0], o->plain[1])) {
    *node = x->index[old];
    return PLN_OK;
  }
  return build_with(x, s, old, n->type, o->plain, node);
}

static pln_status with_images(narrower *x, pln_stmt_rewrite *s, pln_ref old,
                              pln_ref *node) {
  uint32_t n = x->g->nodes[old].count;
  pln_ref few[16], *all = few;
  if (2 * (size_t)n > PLN_COUNT(few) &&
      !(all = pln_mem_new(x->g->engine, 2 * n * sizeof *all)))
    return pln_nomem(x->g->engine);
  operand_images o = {.plain = all, .index = all + n};
  pln_status status = build_images(x, s, old, &o, node);
  if (all != few)
    pln_mem_free(x->g->engine, all, 2 * n * sizeof *all);
  return status;
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  narrower *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_builder *b = pln_stmt_builder(s);
  x->index[old] = PLN_NONE;
  if (n->kind == PLN_VAR && x->types[old])
    return n->results == 1
               ? pln_build_size_var(b, n->attrs, x->types[old], 0, node)
               : pln_build_var(b, n->attrs, x->types[old], 0, node);
  if (n->kind == PLN_INT_IMM && x->types[old])
    return pln_build_int_imm(b, x->types[old], (int64_t)pln_imm_bits(n),
                             x->everywhere ? node : &x->index[old]);
  if (n->count == 0 || n->kind == PLN_BUFFER || n->kind == PLN_ITER_VAR)
    return PLN_OK;
  return with_images(x, s, old, node);
}

/* --------------------------------------------------------------- statements
 */

bool pln_is_index_operand(const pln_node *n, uint32_t i) {
  switch (n->kind) {
  case PLN_FOR: return i < 2;
  case PLN_BUFFER_STORE: return i >= 2;
  case PLN_BLOCK_REALIZE: return i > 0;
  case PLN_ALLOCATE:
  case PLN_BLOCK:
  case PLN_BLOCK_READS:
  case PLN_BLOCK_WRITES:
  case PLN_MATCH_BUFFER: return true;
  default: return false;
  }
}

/* The type that an operand must have; 0: any. */
static pln_type wanted_type(const narrower *x, pln_ref stmt, uint32_t i) {
  const pln_graph *g = x->g;
  const pln_node *n = &g->nodes[stmt];
  pln_ref var;
  switch (n->kind) {
  case PLN_FOR: var = g->scopes[n->data].begin; break;
  case PLN_LET_STMT: var = g->scopes[n->data].begin; break;
  case PLN_BUFFER_STORE:
    return i == 1 ? g->nodes[pln_operand(g, stmt, 0)].type : 0;
  case PLN_ATTR_STMT:
    if (!pln_binds_thread(g, n) || i != 1)
      return 0;
    var = pln_operand(g, pln_operand(g, stmt, 0), 0);
    break;
  case PLN_BLOCK_REALIZE:
    if (i == 0)
      return 0;
    var = g->scopes[g->nodes[g->scopes[n->data].result].data].begin + i - 1;
    break;
  default: return 0;
  }
  return x->types[var] ? x->types[var] : g->nodes[var].type;
}

/* The domain of a block's variable has its dtype. */
static pln_status cast_domain(const narrower *x, pln_stmt_rewrite *s,
                              pln_ref var, pln_ref *range) {
  pln_type type = x->types[var] ? x->types[var] : x->g->nodes[var].type;
  const pln_graph *g = pln_stmt_builder(s)->graph;
  pln_ref ends[] = {pln_operand(g, *range, 0), pln_operand(g, *range, 1)};
  pln_ref before = ends[1];
  PLN_TRY(cast_to(s, type, &ends[0]));
  PLN_TRY(cast_to(s, type, &ends[1]));
  if (before == ends[1])
    return PLN_OK;
  pln_prim spec = {.kind = PLN_RANGE, .n = 2, .operands = ends};
  return pln_build_prim(pln_stmt_builder(s), &spec, range);
}

static pln_status visit_operand(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                uint32_t i, pln_ref *node) {
  const narrower *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  if (pln_is_index_operand(n, i))
    *node = index_image(x, s, pln_operand(x->g, stmt, i));
  if (n->kind == PLN_BLOCK)
    return cast_domain(x, s, x->g->scopes[n->data].begin + i, node);
  pln_type type = wanted_type(x, stmt, i);
  return type ? cast_to(s, type, node) : PLN_OK;
}

/* ----------------------------------------------------------------- the pass
 */

static pln_status rewrite_function(pln_pass_run *run, const pln_type *types,
                                   bool everywhere) {
  const pln_graph *g = pln_run_function(run);
  size_t size = g->n_nodes * sizeof(pln_ref);
  narrower x = {.g = g,
                .types = types,
                .index = pln_mem_new(g->engine, size),
                .everywhere = everywhere};
  pln_stmt_mutator mutator = {
      .ud = &x, .expr = visit_expr, .operand = visit_operand};
  if (!x.index)
    return pln_nomem(g->engine);
  memset(x.index, 0xff, size);
  pln_status status = pln_lower_function(run, &mutator);
  pln_mem_free(g->engine, x.index, size);
  return status;
}

pln_status pln_pass_tir_narrow_data_type(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_type *types;
  bool any;
  PLN_TRY(pln_narrow_types(g, pln_run_int(run, "target_bits"), &types, &any));
  pln_status status = any ? rewrite_function(run, types, false) : PLN_OK;
  pln_mem_free(g->engine, types, g->n_nodes * sizeof *types);
  return status;
}

pln_status pln_pass_tir_force_narrow_index(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_type *types;
  bool any;
  PLN_TRY(pln_force_narrow_types(g, &types, &any));
  pln_status status = any ? rewrite_function(run, types, true) : PLN_OK;
  pln_mem_free(g->engine, types, g->n_nodes * sizeof *types);
  return status;
}
