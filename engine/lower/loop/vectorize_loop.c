/* vectorize_loop.c: tir.VectorizeLoop: computes the rounds of a loop as the
 * lanes of vectors.
 *
 * Run by the executor. The variable becomes Ramp(0, 1, n), and what depends on
 * it a vector. A statement that has no vector form (a branch on the variable, a
 * call that is not vectorisable) becomes a serial loop; memory allocated inside
 * gets n times as large. With enable_vectorize false, loops become serial.
 *
 *     for i in T.vectorized(4): A[i] = B[i] + 1
 *         =>   A[0:4] = B[0:4] + T.Broadcast(1, 4)
 *
 * Semantics: TVM's tir.VectorizeLoop. */

#include "lower/flatten/flattened_buffer.h"
#include "lower/lower.h"

/* By node of the loop: what its vector form is. */
enum {
  VECTOR = 1,  /* depends on the variable */
  SCALAR = 2,  /* an expression without a vector form, or a statement that
                * becomes a loop */
  WIDENED = 4, /* the data of an allocation inside of the loop */
  INSIDE = 8,  /* a statement that is, or is in, one that becomes a loop */
};

typedef struct vectorizer {
  const pln_graph *g;
  pln_analyzer *a;
  uint8_t *marks; /* by node */
  pln_scope *scope_of;
  pln_ref loop; /* PLN_NONE: outside of vectorised loops */
  pln_ref var;
  uint32_t lanes;
  pln_ref ramp;
  pln_ref scalar; /* the statement that becomes a loop, or PLN_NONE */
  pln_ref index;  /* its variable */
} vectorizer;

/* ------------------------------------------------------------------ analysis
 */

static bool is_vectorizable(const pln_node *n) {
  static const char *const names[] = {
      "likely",      "bitwise_and", "bitwise_or",  "bitwise_xor",
      "bitwise_not", "shift_left",  "shift_right", "q_multiply_shift",
      "fma",         "pow",         "atan2",       "nextafter",
      "hypot",       "copysign",    "ldexp",       "exp",
      "exp2",        "exp10",       "erf",         "tanh",
      "sigmoid",     "sqrt",        "rsqrt",       "log",
      "log2",        "log1p",       "log10",       "tan",
      "cos",         "cosh",        "sin",         "sinh",
      "asin",        "acos",        "atan",        "acosh",
      "asinh",       "atanh",       "clz",         "popcount",
      "fabs",        "floor",       "ceil",        "trunc",
      "round",       "nearbyint",   "isnan",       "isfinite",
      "isinf",       "reinterpret"};
  for (size_t i = 0; n->data != 0 && i < PLN_COUNT(names); i++)
    if (strcmp(pln_builtin_name(n->data), names[i]) == 0)
      return true;
  return false;
}

static bool is_if_then_else(const pln_node *n) {
  return n->kind == PLN_PRIM_CALL && n->data != 0 &&
         strcmp(pln_builtin_name(n->data), "if_then_else") == 0;
}

static bool has_mark(const vectorizer *x, const pln_node *n, uint32_t first,
                     uint32_t end, uint8_t mark) {
  for (uint32_t i = first; i < end; i++)
    if (x->marks[pln_operands(x->g, n)[i]] & mark)
      return true;
  return false;
}

/* True of an access of which an index before the last one, from operand `first`
 * on, is a vector: its lanes are not in one row of the memory. */
static bool has_vector_row(const vectorizer *x, const pln_node *n,
                           uint32_t first) {
  return n->count > first && has_mark(x, n, first, n->count - 1, VECTOR);
}

/* Marks of an expression, from those of its operands. */
static uint8_t mark_expr(const vectorizer *x, const pln_node *n) {
  uint8_t mark = has_mark(x, n, 0, n->count, SCALAR) ? SCALAR : 0;
  bool vector = has_mark(x, n, 0, n->count, VECTOR);
  if (n->kind == PLN_BUFFER)
    return 0;
  if (n->kind == PLN_BUFFER_LOAD)
    vector |= (x->marks[pln_operand(x->g, pln_operands(x->g, n)[0], 0)] &
               WIDENED) != 0;
  if (vector)
    mark |= VECTOR;
  if (!vector)
    return mark;
  if (is_if_then_else(n))
    return mark | (x->marks[pln_operands(x->g, n)[0]] & VECTOR ? SCALAR : 0);
  if ((n->kind == PLN_PRIM_CALL && !is_vectorizable(n)) ||
      n->kind == PLN_BROADCAST || n->kind == PLN_SHUFFLE ||
      n->kind == PLN_REDUCE ||
      (n->kind == PLN_BUFFER_LOAD && has_vector_row(x, n, 1)))
    mark |= SCALAR;
  return mark;
}

static pln_status refuse_while(const vectorizer *x) {
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.VectorizeLoop: a while loop inside of a "
                        "vectorized loop has no vector form");
}

/* True of a statement whose own operands must not be vectors. */
static bool needs_scalars(const pln_node *n) {
  return n->kind == PLN_IF_THEN_ELSE || n->kind == PLN_FOR ||
         n->kind == PLN_ALLOCATE || n->kind == PLN_ASSERT_STMT ||
         n->kind == PLN_ALLOCATE_CONST;
}

/* Marks a statement; scopes of the loop have been entered before. */
static pln_status mark_stmt(vectorizer *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (n->kind == PLN_WHILE)
    return refuse_while(x);
  bool scalar = has_mark(x, n, 0, n->count, SCALAR) ||
                (needs_scalars(n) && has_mark(x, n, 0, n->count, VECTOR));
  if (n->kind == PLN_BUFFER_STORE)
    scalar |= has_vector_row(x, n, 2);
  if (scalar)
    x->marks[ref] |= SCALAR;
  return PLN_OK;
}

/* The parameter of a body is marked before the body: by what it is bound to. */
static void mark_params(vectorizer *x, pln_scope scope) {
  pln_ref owner = x->g->scopes[scope].owner;
  pln_ref param = x->g->scopes[scope].begin;
  const pln_node *n = &x->g->nodes[owner];
  if (n->kind == PLN_ALLOCATE)
    x->marks[param] = WIDENED;
  if (n->kind == PLN_LET_STMT)
    x->marks[param] = x->marks[pln_operand(x->g, owner, 0)] & VECTOR;
}

/* A vector variable that a statement in a serial loop needs: its LetStmt is
 * computed in that loop, too. */
static void scalarize_lets(vectorizer *x, pln_ref stmt) {
  for (pln_scope at = x->scope_of[stmt];
       at != PLN_NONE && x->g->scopes[at].owner != x->loop;
       at = x->g->scopes[at].parent) {
    pln_ref owner = x->g->scopes[at].owner;
    if (x->g->nodes[owner].kind == PLN_LET_STMT &&
        x->marks[x->g->scopes[at].begin] & VECTOR)
      x->marks[owner] |= SCALAR;
  }
}

/* What is allocated in a serial loop is allocated in each of its rounds. */
static void keep_narrow(vectorizer *x, pln_scope body) {
  const pln_graph *g = x->g;
  for (pln_scope at = body + 1;
       at < g->n_scopes && g->scopes[at].begin < x->loop; at++) {
    pln_ref owner = g->scopes[at].owner;
    pln_scope around = x->scope_of[owner];
    bool inside = around != body && around != PLN_NONE &&
                  x->marks[g->scopes[around].owner] & INSIDE;
    if (!inside && !(x->marks[owner] & SCALAR))
      continue;
    x->marks[owner] |= INSIDE;
    if (g->nodes[owner].kind == PLN_ALLOCATE)
      x->marks[g->scopes[at].begin] &= (uint8_t)~WIDENED;
  }
}

/* Marks the nodes of the body of x->loop. */
static pln_status mark_loop(vectorizer *x) {
  pln_scope body = x->g->nodes[x->loop].data, scope = body;
  pln_ref begin = x->g->scopes[body].begin;
  for (pln_ref ref = begin; ref < x->loop; ref++) {
    while (scope < x->g->n_scopes && x->g->scopes[scope].begin == ref &&
           scope != body)
      mark_params(x, scope++);
    if (scope == body)
      scope++;
    if (ref == x->var)
      x->marks[ref] = VECTOR;
    else if (pln_is_stmt(&x->g->nodes[ref]))
      PLN_TRY(mark_stmt(x, ref));
    else if (pln_is_prim(&x->g->nodes[ref]))
      x->marks[ref] = mark_expr(x, &x->g->nodes[ref]);
    if (x->g->nodes[ref].kind == PLN_PRIM_LET)
      x->marks[pln_operand(x->g, ref, 0)] |=
          x->marks[pln_operand(x->g, ref, 1)] & VECTOR;
  }
  for (pln_ref ref = begin; ref < x->loop; ref++)
    if (pln_is_stmt(&x->g->nodes[ref]) && x->marks[ref] & SCALAR)
      scalarize_lets(x, ref);
  keep_narrow(x, body);
  return PLN_OK;
}

/* ------------------------------------------------------------------- vectors
 */

static uint32_t lanes_of(const pln_stmt_rewrite *s, pln_ref ref) {
  pln_type type = pln_stmt_node(s, ref)->type;
  return pln_type_get_kind(pln_stmt_old(s)->engine, type) == PLN_TYPE_PRIM
             ? (uint32_t)pln_type_number(pln_stmt_old(s)->engine, type)
             : 1;
}

static pln_status with_lanes(const pln_stmt_rewrite *s, pln_type type,
                             uint32_t lanes, pln_type *out) {
  pln_engine *e = pln_stmt_old(s)->engine;
  return pln_type_prim(e, pln_type_dtype(e, type), lanes, out);
}

static pln_status build_node(pln_stmt_rewrite *s, pln_kind kind, uint32_t data,
                             uint32_t n, const pln_ref *operands,
                             pln_ref *out) {
  pln_prim spec = {.kind = kind, .data = data, .n = n, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

static pln_status broadcast_to(pln_stmt_rewrite *s, uint32_t lanes,
                               pln_ref *ref) {
  if (lanes_of(s, *ref) == lanes)
    return PLN_OK;
  const pln_graph *g = pln_stmt_builder(s)->graph;
  pln_ref value =
      g->nodes[*ref].kind == PLN_BROADCAST && lanes % lanes_of(s, *ref) == 0
          ? pln_operand(g, *ref, 0)
          : *ref;
  if (lanes_of(s, value) != 1)
    return pln_diag_error(g->engine, PLN_ERR_TYPE, NULL,
                          "tir.VectorizeLoop: a vector of %u lanes does not "
                          "fit one of %u",
                          lanes_of(s, value), lanes);
  return build_node(s, PLN_BROADCAST, lanes, 1, &value, ref);
}

static uint32_t most_lanes(const pln_stmt_rewrite *s, uint32_t n,
                           const pln_ref *refs) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < n; i++)
    if (lanes_of(s, refs[i]) > most)
      most = lanes_of(s, refs[i]);
  return most;
}

static pln_status ramp_of(pln_stmt_rewrite *s, pln_ref base, pln_ref stride,
                          uint32_t lanes, pln_ref *out) {
  pln_ref operands[] = {base, stride};
  return build_node(s, PLN_RAMP, lanes, 2, operands, out);
}

static bool is_ramp(const pln_stmt_rewrite *s, pln_ref ref) {
  return pln_stmt_node(s, ref)->kind == PLN_RAMP;
}

static pln_ref part_of(const pln_stmt_rewrite *s, pln_ref ref, uint32_t i) {
  return pln_operand(pln_stmt_builder(s)->graph, ref, i);
}

/* A ramp plus or minus a scalar stays one. */
static pln_status add_vectors(pln_stmt_rewrite *s, pln_kind kind, pln_ref *xy,
                              pln_ref *out) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref base, stride, zero;
  uint32_t lanes = most_lanes(s, 2, xy);
  if (is_ramp(s, xy[1]) && lanes_of(s, xy[0]) == 1) {
    PLN_TRY(pln_build_folded(b, kind, xy[0], part_of(s, xy[1], 0), &base));
    PLN_TRY(pln_stmt_int_like(s, part_of(s, xy[1], 1), 0, &zero));
    PLN_TRY(pln_build_folded(b, kind, zero, part_of(s, xy[1], 1), &stride));
    return ramp_of(s, base, stride, lanes, out);
  }
  if (is_ramp(s, xy[0]) && lanes_of(s, xy[1]) == 1) {
    PLN_TRY(pln_build_folded(b, kind, part_of(s, xy[0], 0), xy[1], &base));
    return ramp_of(s, base, part_of(s, xy[0], 1), lanes, out);
  }
  PLN_TRY(broadcast_to(s, lanes, &xy[0]));
  PLN_TRY(broadcast_to(s, lanes, &xy[1]));
  return pln_build_binary(b, kind, xy[0], xy[1], out);
}

static pln_status is_positive(vectorizer *x, pln_stmt_rewrite *s, pln_ref ref,
                              bool *positive) {
  pln_term term;
  *positive = false;
  if (lanes_of(s, ref) != 1)
    return PLN_OK;
  PLN_TRY(pln_analyzer_import_built(x->a, pln_stmt_builder(s), ref, &term));
  pln_term more =
      pln_fold(x->a, PLN_PRIM_GT, term, pln_const_like(x->a, term, 0));
  PLN_TRY(x->a->status);
  return pln_analyzer_can_prove(x->a, more, 0, positive);
}

/* A ramp of integers times a positive scalar stays one. */
static pln_status multiply_vectors(vectorizer *x, pln_stmt_rewrite *s,
                                   pln_ref *xy, pln_ref *out) {
  pln_builder *b = pln_stmt_builder(s);
  uint32_t lanes = most_lanes(s, 2, xy);
  for (uint32_t i = 0; i < 2; i++) {
    pln_ref base, stride, ramp = xy[i], scalar = xy[1 - i];
    bool positive;
    if (!is_ramp(s, ramp))
      continue;
    PLN_TRY(is_positive(x, s, scalar, &positive));
    if (!positive)
      continue;
    PLN_TRY(
        pln_build_folded(b, PLN_PRIM_MUL, part_of(s, ramp, 0), scalar, &base));
    PLN_TRY(pln_build_folded(b, PLN_PRIM_MUL, part_of(s, ramp, 1), scalar,
                             &stride));
    return ramp_of(s, base, stride, lanes, out);
  }
  PLN_TRY(broadcast_to(s, lanes, &xy[0]));
  PLN_TRY(broadcast_to(s, lanes, &xy[1]));
  return pln_build_binary(b, PLN_PRIM_MUL, xy[0], xy[1], out);
}

/* All operands get as many lanes as the widest. */
static pln_status widen_all(pln_stmt_rewrite *s, uint32_t n, pln_ref *refs) {
  uint32_t lanes = most_lanes(s, n, refs);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(broadcast_to(s, lanes, &refs[i]));
  return PLN_OK;
}

static pln_status vector_call(pln_stmt_rewrite *s, const pln_node *n,
                              pln_ref *refs, pln_ref *out) {
  pln_prim spec = {.kind = PLN_PRIM_CALL,
                   .data = n->data,
                   .attrs = n->attrs,
                   .n = n->count,
                   .operands = refs};
  uint32_t first = is_if_then_else(n);
  PLN_TRY(widen_all(s, n->count - first, refs + first));
  PLN_TRY(with_lanes(s, n->type, lanes_of(s, refs[n->count - 1]), &spec.type));
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

/* Ramp(vector, stride, n): one longer ramp, if the vectors follow each other.
 */
static pln_status vector_ramp(vectorizer *x, pln_stmt_rewrite *s,
                              const pln_node *n, pln_ref *refs, pln_ref *out) {
  pln_term outer, inner;
  bool follows = false;
  if (is_ramp(s, refs[0]) && lanes_of(s, refs[1]) == 1) {
    const pln_builder *b = pln_stmt_builder(s);
    PLN_TRY(pln_analyzer_import_built(x->a, b, part_of(s, refs[0], 1), &outer));
    PLN_TRY(pln_analyzer_import_built(x->a, b, refs[1], &inner));
    inner = pln_mul_const(x->a, inner, n->data);
    PLN_TRY(x->a->status);
    PLN_TRY(pln_analyzer_can_prove_equal(x->a, outer, inner, &follows));
  }
  if (follows)
    return ramp_of(s, part_of(s, refs[0], 0), refs[1],
                   n->data * lanes_of(s, refs[0]), out);
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.VectorizeLoop: a ramp of vectors that do not "
                        "follow each other is not supported");
}

/* The last index into memory that is `lanes` times as large: element i of round
 * v is i * lanes + v. */
static pln_status widen_index(vectorizer *x, pln_stmt_rewrite *s,
                              pln_ref *index) {
  pln_builder *b = pln_stmt_builder(s);
  pln_ref xy[2], scaled[2] = {*index, PLN_NONE};
  pln_term term, simple;
  pln_type scalar;
  PLN_TRY(with_lanes(s, pln_stmt_node(s, *index)->type, 1, &scalar));
  PLN_TRY(pln_build_int_imm(b, scalar, x->lanes, &scaled[1]));
  PLN_TRY(multiply_vectors(x, s, scaled, &xy[0]));
  xy[1] = x->scalar == PLN_NONE ? x->ramp : x->index;
  PLN_TRY(add_vectors(s, PLN_PRIM_ADD, xy, index));
  PLN_TRY(pln_analyzer_import_built(x->a, b, *index, &term));
  PLN_TRY(pln_analyzer_simplify(x->a, term, 2, &simple));
  return pln_analyzer_export(x->a, b, simple, index);
}

static bool is_widened(const vectorizer *x, pln_ref old_buffer) {
  return x->marks[pln_operand(x->g, old_buffer, 0)] & WIDENED;
}

static pln_status vector_load(vectorizer *x, pln_stmt_rewrite *s, pln_ref old,
                              pln_ref *refs, pln_ref *out) {
  uint32_t n = x->g->nodes[old].count;
  if (n > 1 && is_widened(x, pln_operand(x->g, old, 0)))
    PLN_TRY(widen_index(x, s, &refs[n - 1]));
  return build_node(s, PLN_BUFFER_LOAD, 0, n, refs, out);
}

static pln_status vector_cast(pln_stmt_rewrite *s, const pln_node *n,
                              pln_ref *refs, pln_ref *out) {
  pln_prim spec = {.kind = PLN_PRIM_CAST, .n = 1, .operands = refs};
  PLN_TRY(with_lanes(s, n->type, lanes_of(s, refs[0]), &spec.type));
  return pln_build_prim(pln_stmt_builder(s), &spec, out);
}

static pln_status vector_form(vectorizer *x, pln_stmt_rewrite *s, pln_ref old,
                              pln_ref *refs, pln_ref *out) {
  const pln_node *n = &x->g->nodes[old];
  switch (n->kind) {
  case PLN_PRIM_ADD:
  case PLN_PRIM_SUB: return add_vectors(s, (pln_kind)n->kind, refs, out);
  case PLN_PRIM_MUL: return multiply_vectors(x, s, refs, out);
  case PLN_PRIM_CAST: return vector_cast(s, n, refs, out);
  case PLN_PRIM_CALL: return vector_call(s, n, refs, out);
  case PLN_BUFFER_LOAD: return vector_load(x, s, old, refs, out);
  case PLN_RAMP: return vector_ramp(x, s, n, refs, out);
  case PLN_PRIM_LET:
  case PLN_PRIM_NOT:
    return build_node(s, (pln_kind)n->kind, 0, n->count, refs, out);
  default:
    PLN_TRY(widen_all(s, n->count, refs));
    return build_node(s, (pln_kind)n->kind, n->data, n->count, refs, out);
  }
}

/* ---------------------------------------------------------------- callbacks */

static bool is_active(const vectorizer *x) {
  return x->loop != PLN_NONE && x->scalar == PLN_NONE;
}

/* A Buffer over memory that is allocated inside has n times the elements. */
static pln_status widen_buffer(vectorizer *x, pln_stmt_rewrite *s, pln_ref old,
                               pln_ref *node) {
  uint32_t last = x->g->nodes[old].results;
  pln_ref factor;
  if (last == 0)
    return PLN_OK;
  pln_ref extent = pln_stmt_image(s, pln_operand(x->g, old, last));
  PLN_TRY(pln_stmt_int_like(s, extent, x->lanes, &factor));
  return pln_stmt_enlarge_buffer(s, old, factor, node);
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  vectorizer *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_ref few[16], *refs = few;
  if (x->loop != PLN_NONE && n->kind == PLN_BUFFER && is_widened(x, old))
    return widen_buffer(x, s, old, node);
  bool widened = x->loop != PLN_NONE && n->kind == PLN_BUFFER_LOAD &&
                 is_widened(x, pln_operand(x->g, old, 0));
  bool vector = is_active(x) && x->marks[old] & VECTOR && n->kind != PLN_VAR;
  if (!widened && !vector)
    return PLN_OK;
  if (n->count > PLN_COUNT(few) &&
      !(refs = pln_mem_new(x->g->engine, n->count * sizeof *refs)))
    return pln_nomem(x->g->engine);
  for (uint32_t i = 0; i < n->count; i++)
    refs[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  pln_status status = vector_form(x, s, old, refs, node);
  if (refs != few)
    pln_mem_free(x->g->engine, refs, n->count * sizeof *refs);
  return status;
}

/* A statement without a vector form: its loop's variable takes the place of the
 * ramp. */
static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  vectorizer *x = ud;
  const pln_node *var = &x->g->nodes[x->var];
  char text[64];
  pln_symbol name;
  (void)node;
  if (!is_active(x) || !(x->marks[stmt] & SCALAR))
    return PLN_OK;
  pln_slice hint = pln_symbol_text(x->g->engine, var->attrs);
  size_t size = hint.size < sizeof text - 2 ? hint.size : sizeof text - 2;
  memcpy(text, hint.data, size);
  memcpy(text + size, ".s", 2);
  PLN_TRY(pln_symbol_intern(x->g->engine, (pln_slice){text, size + 2}, &name));
  PLN_TRY(pln_build_var(pln_stmt_builder(s), name, var->type, 0, &x->index));
  pln_stmt_bind(s, x->var, x->index);
  x->scalar = stmt;
  return PLN_OK;
}

static pln_status not_constant(const vectorizer *x, pln_stmt_rewrite *s) {
  const pln_node *n = pln_stmt_node(s, pln_stmt_operand(s, 1));
  pln_slice name = pln_symbol_text(x->g->engine, x->g->nodes[x->var].attrs);
  if (n->kind != PLN_INT_IMM)
    return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                          "Failed to vectorize loop with extent that is not "
                          "constant: the loop over '%s'",
                          name.data);
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "Failed to vectorize loop with extent %lld: the loop "
                        "over '%s' must have 1 to %d rounds, from 0 on",
                        (long long)pln_imm_bits(n), name.data, UINT16_MAX);
}

static pln_status enter_vector_loop(vectorizer *x, pln_stmt_rewrite *s,
                                    pln_ref stmt) {
  const pln_graph *g = pln_stmt_builder(s)->graph;
  pln_ref extent = pln_stmt_operand(s, 1), zero, one;
  x->var = pln_stmt_param(s, stmt, 0, 0);
  if (g->nodes[extent].kind != PLN_INT_IMM || pln_node_int(g, extent) < 1 ||
      pln_node_int(g, extent) > UINT16_MAX ||
      !pln_is_int(g, pln_stmt_operand(s, 0), 0))
    return not_constant(x, s);
  x->loop = stmt;
  x->lanes = (uint32_t)pln_node_int(g, extent);
  PLN_TRY(mark_loop(x));
  PLN_TRY(pln_stmt_int_like(s, extent, 0, &zero));
  PLN_TRY(pln_stmt_int_like(s, extent, 1, &one));
  x->ramp = zero;
  if (x->lanes > 1)
    PLN_TRY(ramp_of(s, zero, one, x->lanes, &x->ramp));
  pln_stmt_bind(s, x->var, x->ramp);
  return PLN_OK;
}

/* The variable of a LetStmt of a vector is one. */
static pln_status enter_let(vectorizer *x, pln_stmt_rewrite *s, pln_ref stmt) {
  pln_ref param = pln_stmt_param(s, stmt, 0, 0), var;
  const pln_node *n = &x->g->nodes[param];
  pln_type type = pln_stmt_node(s, pln_stmt_operand(s, 0))->type;
  if (!(x->marks[param] & VECTOR))
    return PLN_OK;
  PLN_TRY(pln_build_var(pln_stmt_builder(s), n->attrs, type, 0, &var));
  pln_stmt_bind(s, param, var);
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  vectorizer *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  (void)k;
  (void)skip;
  if (n->kind == PLN_FOR && x->loop == PLN_NONE &&
      pln_for_kind_of(x->g, stmt) == PLN_FOR_VECTORIZED)
    return enter_vector_loop(x, s, stmt);
  return n->kind == PLN_LET_STMT && is_active(x) ? enter_let(x, s, stmt)
                                                 : PLN_OK;
}

static pln_status vector_store(vectorizer *x, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  uint32_t n = x->g->nodes[stmt].count;
  pln_ref refs[PLN_MOST_AXES + 2];
  if (n > PLN_COUNT(refs) || n < 3)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++)
    refs[i] = pln_stmt_operand(s, i);
  bool widened = is_widened(x, pln_operand(x->g, stmt, 0));
  if (widened)
    PLN_TRY(widen_index(x, s, &refs[n - 1]));
  uint32_t element = lanes_of(s, refs[0]);
  uint32_t index = element * lanes_of(s, refs[n - 1]);
  uint32_t value = lanes_of(s, refs[1]);
  uint32_t total = index > value ? index : value;
  if (!widened && (total == 1 || index == value))
    return PLN_OK;
  if (total > 1) {
    PLN_TRY(broadcast_to(s, total / element, &refs[n - 1]));
    PLN_TRY(broadcast_to(s, total, &refs[1]));
  }
  return build_node(s, PLN_BUFFER_STORE, 0, n, refs, node);
}

/* Memory for all rounds at once. */
static pln_status widen_allocation(vectorizer *x, pln_stmt_rewrite *s,
                                   pln_ref stmt, pln_ref *node) {
  const pln_node *n = &x->g->nodes[stmt];
  pln_ref refs[PLN_MOST_AXES + 1], factor, data;
  if (n->count < 2 || n->count > PLN_COUNT(refs))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++)
    refs[i] = pln_stmt_operand(s, i);
  PLN_TRY(pln_stmt_int_like(s, refs[n->count - 1], x->lanes, &factor));
  PLN_TRY(pln_build_folded(pln_stmt_builder(s), PLN_PRIM_MUL,
                           refs[n->count - 1], factor, &refs[n->count - 1]));
  PLN_TRY(pln_stmt_map(s, pln_stmt_param(s, stmt, 0, 0), &data));
  pln_prim spec = {
      .kind = PLN_ALLOCATE, .attrs = n->attrs, .n = n->count, .operands = refs};
  pln_body body = {.n_params = 1, .params = &data, .stmt = pln_stmt_body(s, 0)};
  return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &body, node);
}

/* for index in range(lanes): stmt */
static pln_status end_scalar(vectorizer *x, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  pln_ref ends[2];
  if (*node == PLN_NONE)
    PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  PLN_TRY(pln_stmt_int_like(s, x->index, 0, &ends[0]));
  PLN_TRY(pln_stmt_int_like(s, x->index, x->lanes, &ends[1]));
  pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = ends};
  pln_body body = {.n_params = 1, .params = &x->index, .stmt = *node};
  PLN_TRY(pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &body, node));
  pln_stmt_bind(s, x->var, x->ramp);
  x->scalar = PLN_NONE;
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  vectorizer *x = ud;
  if (stmt == x->loop) {
    *node = pln_stmt_body(s, 0);
    x->loop = PLN_NONE;
    return PLN_OK;
  }
  if (x->loop != PLN_NONE && x->g->nodes[stmt].kind == PLN_BUFFER_STORE)
    PLN_TRY(vector_store(x, s, stmt, node));
  if (is_active(x) && x->g->nodes[stmt].kind == PLN_ALLOCATE)
    return widen_allocation(x, s, stmt, node);
  return stmt == x->scalar ? end_scalar(x, s, stmt, node) : PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status make_serial(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                              pln_ref *node) {
  const pln_graph *g = ud;
  return g->nodes[stmt].kind == PLN_FOR &&
                 pln_for_kind_of(g, stmt) == PLN_FOR_VECTORIZED
             ? pln_stmt_rebuild_for(s, stmt, PLN_FOR_SERIAL, node)
             : PLN_OK;
}

static bool has_vector_loop(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_FOR &&
        pln_for_kind_of(g, ref) == PLN_FOR_VECTORIZED)
      return true;
  return false;
}

static pln_status vectorize(pln_pass_run *run, const pln_graph *g) {
  pln_engine *e = g->engine;
  vectorizer x = {.g = g, .loop = PLN_NONE, .scalar = PLN_NONE};
  pln_stmt_mutator mutator = {.ud = &x,
                              .expr = visit_expr,
                              .enter = enter_stmt,
                              .enter_body = enter_body,
                              .leave = leave_stmt};
  x.marks = pln_mem_zeroed(e, g->n_nodes);
  x.scope_of = pln_mem_new(e, g->n_nodes * sizeof *x.scope_of);
  pln_status status =
      x.marks && x.scope_of ? pln_analyzer_new(e, &x.a) : pln_nomem(e);
  if (status == PLN_OK) {
    pln_graph_node_scopes(g, x.scope_of);
    status = pln_lower_function(run, &mutator);
  }
  if (x.a)
    pln_analyzer_free(x.a);
  pln_mem_free(e, x.marks, g->n_nodes);
  pln_mem_free(e, x.scope_of, g->n_nodes * sizeof *x.scope_of);
  return status;
}

pln_status pln_pass_tir_vectorize_loop(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  pln_stmt_mutator serial = {.ud = (void *)(uintptr_t)g, .leave = make_serial};
  if (!has_vector_loop(g))
    return PLN_OK;
  return pln_run_int(run, "enable_vectorize")
             ? vectorize(run, g)
             : pln_lower_function(run, &serial);
}
