/* compute_legalize.c: tir.BF16ComputeLegalize and tir.FP8ComputeLegalize:
 * numbers of narrow dtypes are computed in a wider one.
 *
 * Run by the executor. What is loaded is widened before it is used; what is
 * stored into memory of the narrow dtype is rounded. Memory that a function
 * allocates, of constant size and accessed by loads and stores only, becomes
 * memory of the wider dtype.
 *
 *     D[i] = A[i] + B[i]        (bfloat16)
 *         =>   D[i] = narrow(wide(A[i]) + wide(B[i]))
 *
 * Semantics: TVM's passes of the same names. */

#include "lower/dtype/legalize.h"

typedef struct compute_legalizer {
  const pln_graph *g;
  pln_narrow_family family;
  pln_dtype wide;
  bool *widened; /* by Var node: becomes one of the wider dtype */
  pln_ref *made; /* by Buffer node: its image of the wider dtype */
} compute_legalizer;

static bool is_narrow(const compute_legalizer *x, pln_type type) {
  return pln_is_narrow(x->g->engine, type, x->family);
}

/* ------------------------------------------------------------------ planning
 */

static bool has_constant_size(const pln_graph *g, pln_ref allocate) {
  for (uint32_t i = 1; i < g->nodes[allocate].count; i++)
    if (g->nodes[pln_operand(g, allocate, i)].kind != PLN_INT_IMM)
      return false;
  return true;
}

/* Variables that a statement binds: memory, and numbers. */
static void find_bound(compute_legalizer *x) {
  const pln_graph *g = x->g;
  for (pln_scope i = 1; i < g->n_scopes; i++) {
    pln_ref owner = g->scopes[i].owner, var = g->scopes[i].begin;
    pln_kind kind = (pln_kind)g->nodes[owner].kind;
    if (g->scopes[i].n_params == 0 || !is_narrow(x, g->nodes[var].type))
      continue;
    x->widened[var] =
        (kind == PLN_ALLOCATE && has_constant_size(g, owner)) ||
        (kind == PLN_LET_STMT &&
         pln_type_get_kind(g->engine, g->nodes[var].type) == PLN_TYPE_PRIM);
  }
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_PRIM_LET &&
        is_narrow(x, g->nodes[pln_operand(g, ref, 0)].type))
      x->widened[pln_operand(g, ref, 0)] = true;
}

/* A pointer that is used as a value may be accessed in any way. */
static void exclude_opaque(compute_legalizer *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = 0; i < n->count; i++) {
      pln_ref var = pln_operand(g, ref, i);
      bool known = n->kind == PLN_BUFFER || n->kind == PLN_ATTR_STMT;
      if (g->nodes[var].kind == PLN_VAR && !(known && i == 0) &&
          pln_type_get_kind(g->engine, g->nodes[var].type) == PLN_TYPE_POINTER)
        x->widened[var] = false;
    }
  }
}

/* -------------------------------------------------------------- expressions */

static pln_type wide_type(const compute_legalizer *x, pln_emit *e,
                          pln_type type) {
  pln_type out = 0;
  if (e->status == PLN_OK)
    e->status = pln_type_with_dtype(x->g->engine, type, x->wide, &out);
  return out;
}

static pln_ref promote(const compute_legalizer *x, pln_emit *e, pln_ref value) {
  return is_narrow(x, pln_emit_type_of(e, value))
             ? pln_emit_float_bits(e, value, x->wide)
             : value;
}

static pln_ref promoted_operand(const compute_legalizer *x, pln_emit *e,
                                pln_stmt_rewrite *s, pln_ref old, uint32_t i) {
  return promote(x, e, pln_stmt_image(s, pln_operand(x->g, old, i)));
}

/* Whether an operand is of the family, or was. */
static bool concerns(const compute_legalizer *x, pln_ref old) {
  for (uint32_t i = 0; i < x->g->nodes[old].count; i++)
    if (is_narrow(x, x->g->nodes[pln_operand(x->g, old, i)].type))
      return true;
  return is_narrow(x, x->g->nodes[old].type);
}

static void legalize_var(const compute_legalizer *x, pln_emit *e, pln_ref old,
                         pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  if (x->widened[old])
    *node = pln_emit_var(e, pln_symbol_text(x->g->engine, n->attrs).data,
                         wide_type(x, e, n->type));
}

static void legalize_buffer(const compute_legalizer *x, pln_emit *e,
                            pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  if (!x->widened[pln_operand(x->g, old, 0)])
    return;
  pln_type type = wide_type(x, e, x->g->nodes[old].type);
  if (x->made[old] == PLN_NONE && e->status == PLN_OK)
    e->status = pln_stmt_buffer_of(s, old, type, &x->made[old]);
  *node = x->made[old];
}

static void legalize_cast(const compute_legalizer *x, pln_emit *e,
                          pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  pln_type type = x->g->nodes[old].type;
  pln_ref value = promoted_operand(x, e, s, old, 0);
  *node = pln_emit_cast(e, is_narrow(x, type) ? wide_type(x, e, type) : type,
                        value);
}

static void legalize_call(const compute_legalizer *x, pln_emit *e,
                          pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref args[16];
  if (pln_is_call_of(n, "reinterpret"))
    return;
  if (n->count > PLN_COUNT(args)) {
    e->status = pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                               "a call of a narrow dtype has more than 16 "
                               "arguments");
    return;
  }
  for (uint32_t i = 0; i < n->count; i++)
    args[i] = promoted_operand(x, e, s, old, i);
  *node = pln_emit_prim(e, &(pln_prim){.kind = PLN_PRIM_CALL,
                                       .data = n->data,
                                       .attrs = n->attrs,
                                       .type = is_narrow(x, n->type)
                                                   ? wide_type(x, e, n->type)
                                                   : n->type,
                                       .n = n->count,
                                       .operands = args});
}

static void legalize_let(const compute_legalizer *x, pln_emit *e,
                         pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  pln_ref operands[3] = {pln_stmt_image(s, pln_operand(x->g, old, 0)),
                         promoted_operand(x, e, s, old, 1),
                         promoted_operand(x, e, s, old, 2)};
  *node = pln_emit_prim(
      e, &(pln_prim){.kind = PLN_PRIM_LET, .n = 3, .operands = operands});
}

static void legalize_number(const compute_legalizer *x, pln_emit *e,
                            pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  uint64_t bits = pln_imm_bits(n);
  double value;
  memcpy(&value, &bits, sizeof value);
  pln_type type = wide_type(x, e, n->type);
  if (e->status == PLN_OK)
    e->status = pln_build_float_imm(e->b, type, value, node);
}

static void legalize_select(const compute_legalizer *x, pln_emit *e,
                            pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  *node = pln_emit_select(e, pln_stmt_image(s, pln_operand(x->g, old, 0)),
                          promoted_operand(x, e, s, old, 1),
                          promoted_operand(x, e, s, old, 2));
}

static pln_status legalize_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                                pln_ref *node) {
  const compute_legalizer *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (n->kind == PLN_VAR)
    legalize_var(x, &e, old, node);
  else if (n->kind == PLN_BUFFER)
    legalize_buffer(x, &e, s, old, node);
  else if (!concerns(x, old))
    return PLN_OK;
  else if (n->kind == PLN_FLOAT_IMM)
    legalize_number(x, &e, old, node);
  else if (n->kind == PLN_PRIM_CAST)
    legalize_cast(x, &e, s, old, node);
  else if (n->kind == PLN_PRIM_CALL)
    legalize_call(x, &e, s, old, node);
  else if (n->kind == PLN_PRIM_LET)
    legalize_let(x, &e, s, old, node);
  else if (n->kind == PLN_SELECT)
    legalize_select(x, &e, s, old, node);
  else if (n->kind >= PLN_PRIM_ADD && n->kind <= PLN_PRIM_GE)
    *node = pln_emit_folded(&e, (pln_kind)n->kind,
                            promoted_operand(x, &e, s, old, 0),
                            promoted_operand(x, &e, s, old, 1));
  return e.status;
}

/* --------------------------------------------------------------- statements
 */

/* A stored value is of the buffer's dtype, a bound one of the variable's. */
static pln_status legalize_operand(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                   uint32_t i, pln_ref *node) {
  const compute_legalizer *x = ud;
  const pln_graph *g = x->g;
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (g->nodes[stmt].kind == PLN_BUFFER_STORE && i == 1) {
    pln_type type = pln_stmt_node(s, pln_stmt_operand(s, 0))->type;
    pln_type value = pln_stmt_node(s, *node)->type;
    if (is_narrow(x, type) && !is_narrow(x, value))
      *node = pln_emit_float_bits(&e, *node, pln_type_dtype(g->engine, type));
    else if (!is_narrow(x, type))
      *node = promote(x, &e, *node);
  } else if (g->nodes[stmt].kind == PLN_LET_STMT &&
             x->widened[g->scopes[g->nodes[stmt].data].begin]) {
    *node = promote(x, &e, *node);
  }
  return e.status;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const compute_legalizer *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  pln_type element;
  pln_attrs attrs;
  if (n->kind != PLN_ALLOCATE || !x->widened[x->g->scopes[n->data].begin])
    return PLN_OK;
  pln_type pointer = x->g->nodes[x->g->scopes[n->data].begin].type;
  PLN_TRY(pln_type_with_dtype(x->g->engine,
                              pln_type_part_at(x->g->engine, pointer, 0),
                              x->wide, &element));
  PLN_TRY(pln_dtype_attr(x->g->engine, element, &attrs));
  pln_prim spec = {.kind = PLN_ALLOCATE, .n = n->count, .attrs = n->attrs};
  PLN_TRY(pln_attrs_with(x->g->engine, n->attrs,
                         pln_attrs_at(x->g->engine, attrs, 0), &spec.attrs));
  return pln_stmt_rebuild_as(s, stmt, &spec, node);
}

/* ------------------------------------------------------------------- passes */

static pln_status legalize(pln_pass_run *run, compute_legalizer *x) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = legalize_expr,
                              .operand = legalize_operand,
                              .leave = leave_stmt};
  size_t n = x->g->n_nodes;
  x->widened = pln_mem_zeroed(x->g->engine, n * sizeof *x->widened);
  x->made = pln_mem_new(x->g->engine, n * sizeof *x->made);
  pln_status status = PLN_OK;
  if (!x->widened || !x->made) {
    status = pln_nomem(x->g->engine);
  } else {
    memset(x->made, 0xff, n * sizeof *x->made);
    find_bound(x);
    exclude_opaque(x);
    status = pln_lower_function(run, &mutator);
  }
  pln_mem_free(x->g->engine, x->widened, n * sizeof *x->widened);
  pln_mem_free(x->g->engine, x->made, n * sizeof *x->made);
  return status;
}

static bool has_narrow(const pln_graph *g, pln_narrow_family family) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (pln_is_narrow(g->engine, g->nodes[ref].type, family))
      return true;
  return false;
}

pln_status pln_pass_tir_bf16_compute_legalize(pln_pass_run *run) {
  compute_legalizer x = {.g = pln_run_function(run),
                         .family = PLN_NARROW_BFLOAT16,
                         .wide = PLN_FLOAT32};
  return has_narrow(x.g, x.family) ? legalize(run, &x) : PLN_OK;
}

pln_status pln_pass_tir_fp8_compute_legalize(pln_pass_run *run) {
  pln_slice wide = pln_run_string(run, "promote_dtype");
  compute_legalizer x = {.g = pln_run_function(run),
                         .family = PLN_NARROW_FLOAT8,
                         .wide = pln_slice_is(wide, "float16") ? PLN_FLOAT16
                                                               : PLN_FLOAT32};
  return has_narrow(x.g, x.family) ? legalize(run, &x) : PLN_OK;
}
