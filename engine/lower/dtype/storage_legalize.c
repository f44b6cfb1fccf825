/* storage_legalize.c: tir.BF16StorageLegalize and tir.FP8StorageLegalize:
 * memory of narrow floating-point dtypes as memory of unsigned integers.
 *
 * Run by the executor, after the passes of compute_legalize.c. Buffers,
 * pointers and loads change their dtype; reinterpretations between the dtype
 * and its bits go.
 *
 *     A: T.handle("bfloat16"), T.reinterpret("uint16", A[i])
 *         =>   A: T.handle("uint16"), A[i]
 *
 * Semantics: TVM's passes of the same names. Arithmetic in the narrow dtype is
 * an error here. */

#include "lower/dtype/legalize.h"

typedef struct storage_legalizer {
  const pln_graph *g;
  pln_narrow_family family;
  pln_ref *made; /* by Buffer node: its image of the other dtype */
} storage_legalizer;

static bool is_narrow(const storage_legalizer *x, pln_type type) {
  return pln_is_narrow(x->g->engine, type, x->family);
}

static pln_type bits_type(const storage_legalizer *x, pln_emit *e,
                          pln_type type) {
  pln_engine *engine = x->g->engine;
  pln_type element = pln_type_get_kind(engine, type) == PLN_TYPE_POINTER
                         ? pln_type_part_at(engine, type, 0)
                         : type;
  pln_dtype dtype = pln_storage_dtype(pln_type_dtype(engine, element));
  pln_type out = 0;
  if (e->status == PLN_OK)
    e->status = pln_type_with_dtype(engine, type, dtype, &out);
  return out;
}

static void legalize_buffer(const storage_legalizer *x, pln_emit *e,
                            pln_stmt_rewrite *s, pln_ref old, pln_ref *node) {
  pln_type type = bits_type(x, e, x->g->nodes[old].type);
  if (x->made[old] == PLN_NONE && e->status == PLN_OK)
    e->status = pln_stmt_buffer_of(s, old, type, &x->made[old]);
  *node = x->made[old];
}

static void legalize_reinterpret(const storage_legalizer *x, pln_emit *e,
                                 pln_stmt_rewrite *s, pln_ref old,
                                 pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref value = pln_stmt_image(s, pln_operand(x->g, old, 0));
  pln_type type = is_narrow(x, n->type) ? bits_type(x, e, n->type) : n->type;
  *node = pln_emit_type_of(e, value) == type
              ? value
              : pln_emit_call(e, "reinterpret", type, 1, &value);
}

static void refuse(const storage_legalizer *x, pln_emit *e, pln_ref old) {
  e->status = pln_diag_error(
      x->g->engine, PLN_ERR_ARGUMENT, NULL,
      "a %s computes in a narrow dtype; the pass ComputeLegalize of its dtype "
      "comes first",
      pln_kinds[x->g->nodes[old].kind].name);
}

static bool keeps_dtype(pln_kind kind) {
  return kind == PLN_BUFFER_LOAD || kind == PLN_BROADCAST ||
         kind == PLN_SHUFFLE || kind == PLN_SELECT || kind == PLN_PRIM_LET;
}

static pln_status legalize_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                                pln_ref *node) {
  const storage_legalizer *x = ud;
  const pln_node *n = &x->g->nodes[old];
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (pln_is_call_of(n, "reinterpret") &&
      (is_narrow(x, n->type) ||
       is_narrow(x, x->g->nodes[pln_operand(x->g, old, 0)].type)))
    legalize_reinterpret(x, &e, s, old, node);
  else if (!is_narrow(x, n->type))
    return PLN_OK;
  else if (n->kind == PLN_VAR)
    *node = pln_emit_var(&e, pln_symbol_text(x->g->engine, n->attrs).data,
                         bits_type(x, &e, n->type));
  else if (n->kind == PLN_BUFFER)
    legalize_buffer(x, &e, s, old, node);
  else if (!keeps_dtype((pln_kind)n->kind))
    refuse(x, &e, old);
  return e.status;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const storage_legalizer *x = ud;
  const pln_node *n = &x->g->nodes[stmt];
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_engine *engine = x->g->engine;
  pln_attrs dtype;
  if (n->kind != PLN_ALLOCATE ||
      !is_narrow(x, x->g->nodes[x->g->scopes[n->data].begin].type))
    return PLN_OK;
  pln_type pointer = x->g->nodes[x->g->scopes[n->data].begin].type;
  pln_type element = bits_type(x, &e, pln_type_part_at(engine, pointer, 0));
  pln_prim spec = {.kind = PLN_ALLOCATE, .n = n->count};
  PLN_TRY(e.status);
  PLN_TRY(pln_dtype_attr(engine, element, &dtype));
  PLN_TRY(pln_attrs_with(engine, n->attrs, pln_attrs_at(engine, dtype, 0),
                         &spec.attrs));
  return pln_stmt_rebuild_as(s, stmt, &spec, node);
}

static pln_status legalize(pln_pass_run *run, pln_narrow_family family) {
  storage_legalizer x = {.g = pln_run_function(run), .family = family};
  pln_stmt_mutator mutator = {
      .ud = &x, .expr = legalize_expr, .leave = leave_stmt};
  size_t size = x.g->n_nodes * sizeof *x.made;
  x.made = pln_mem_new(x.g->engine, size);
  if (!x.made)
    return pln_nomem(x.g->engine);
  memset(x.made, 0xff, size);
  pln_status status = pln_lower_function(run, &mutator);
  pln_mem_free(x.g->engine, x.made, size);
  return status;
}

pln_status pln_pass_tir_bf16_storage_legalize(pln_pass_run *run) {
  return legalize(run, PLN_NARROW_BFLOAT16);
}

pln_status pln_pass_tir_fp8_storage_legalize(pln_pass_run *run) {
  return legalize(run, PLN_NARROW_FLOAT8);
}
