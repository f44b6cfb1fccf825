/* tir/builder.c: constructors of TIR nodes: PrimExprs, buffers, statements and
 * PrimFuncs, for scoped and free building.
 *
 * Called by importers and scripts. Invariants: a node is typed when it is
 * appended, and removed again if ill-typed; a floating statement has the
 * parameters of its scopes as operands after its own (tir/tir.h). */

#include "ir/tir/tir.h"

uint32_t pln_own_operands(const pln_graph *g, const pln_node *n) {
  uint32_t own = n->count;
  if (n->kind == PLN_SEQ_STMT)
    return 0;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    own -= g->scopes[s].n_params;
  return own;
}

/* ---------------------------------------------------------------- immediates
 */

static pln_status append_bits(pln_builder *b, pln_kind kind, pln_type type,
                              uint64_t bits, pln_ref *out) {
  pln_node node = {.kind = (uint8_t)kind,
                   .data = (uint32_t)bits,
                   .attrs = (uint32_t)(bits >> 32),
                   .type = type};
  if (pln_type_get_kind(b->engine, type) != PLN_TYPE_PRIM)
    return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                          "%s: its type must be a TIR scalar",
                          pln_kind_name(kind));
  return pln_builder_append(b, &node, 0, NULL, out);
}

bool pln_is_signed(pln_dtype dtype) {
  return dtype == PLN_INT8 || dtype == PLN_INT16 || dtype == PLN_INT32 ||
         dtype == PLN_INT64 || dtype == PLN_INT4 || dtype == PLN_INT2;
}

bool pln_is_unsigned(pln_dtype dtype) {
  return dtype == PLN_UINT8 || dtype == PLN_UINT16 || dtype == PLN_UINT32 ||
         dtype == PLN_UINT64 || dtype == PLN_UINT4 || dtype == PLN_UINT2 ||
         dtype == PLN_BOOL;
}

bool pln_holds_int(pln_dtype dtype, int64_t value) {
  uint32_t bits = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype);
  if (pln_is_unsigned(dtype))
    return value >= 0 && (bits >= 63 || value < (int64_t)1 << bits);
  int64_t limit = bits >= 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
  return value <= limit && value >= -limit - 1;
}

pln_status pln_build_int_imm(pln_builder *b, pln_type type, int64_t value,
                             pln_ref *out) {
  pln_dtype dtype = pln_type_dtype(b->engine, type);
  if ((!pln_is_signed(dtype) && !pln_is_unsigned(dtype)) ||
      !pln_holds_int(dtype, value))
    return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                          "IntImm: %lld is no %s", (long long)value,
                          pln_dtype_name(dtype));
  return append_bits(b, PLN_INT_IMM, type, (uint64_t)value, out);
}

pln_status pln_build_float_imm(pln_builder *b, pln_type type, double value,
                               pln_ref *out) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return append_bits(b, PLN_FLOAT_IMM, type, bits, out);
}

pln_status pln_build_string_imm(pln_builder *b, pln_symbol value,
                                pln_ref *out) {
  pln_node node = {.kind = PLN_STRING_IMM, .data = value};
  PLN_TRY(pln_type_prim(b->engine, PLN_DTYPE_NONE, 1, &node.type));
  return pln_builder_append(b, &node, 0, NULL, out);
}

pln_status pln_build_size_var(pln_builder *b, pln_symbol name, pln_type type,
                              uint32_t var, pln_ref *out) {
  PLN_TRY(pln_build_var(b, name, type, var, out));
  b->graph->nodes[*out].results = 1;
  return PLN_OK;
}

/* ------------------------------------------------------------------- shapes */

static pln_status refuse_tir_node(pln_builder *b, pln_kind kind,
                                  const char *why) {
  return pln_diag_error(
      b->engine, PLN_ERR_ARGUMENT, NULL, "%s: %s",
      (unsigned)kind < PLN_N_KINDS ? pln_kind_name(kind) : "node", why);
}

/* Operands of PrimExprs and statements are PrimExprs, Vars or GlobalVars. */
static pln_status check_operand(pln_builder *b, pln_kind kind, pln_ref ref) {
  if (ref >= b->graph->n_nodes)
    return refuse_tir_node(b, kind, "an operand is not a node of this builder");
  const pln_node *n = &b->graph->nodes[ref];
  if (pln_is_prim(n) || n->kind == PLN_VAR || n->kind == PLN_GLOBAL_VAR ||
      n->kind == PLN_CONSTANT)
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_TYPE, NULL,
                        "%s: a %s is not a PrimExpr", pln_kind_name(kind),
                        pln_kind_name((pln_kind)n->kind));
}

static pln_status check_spec(pln_builder *b, const pln_prim *spec) {
  if ((unsigned)spec->kind >= PLN_N_KINDS ||
      pln_kinds[spec->kind].kind_class == PLN_CLASS_EXPR ||
      pln_kinds[spec->kind].kind_class == PLN_CLASS_PATTERN)
    return refuse_tir_node(b, spec->kind, "no kind of TIR");
  int32_t fixed = pln_kinds[spec->kind].operands;
  if (fixed >= 0 && spec->n != (uint32_t)fixed)
    return refuse_tir_node(b, spec->kind, "wrong number of operands");
  for (uint32_t i = 0; i < spec->n; i++)
    PLN_TRY(check_operand(b, spec->kind, spec->operands[i]));
  return PLN_OK;
}

static pln_node node_of(const pln_prim *spec) {
  return (pln_node){.kind = (uint8_t)spec->kind,
                    .results = spec->count,
                    .data = spec->data,
                    .attrs = spec->attrs,
                    .type = spec->type};
}

pln_status pln_build_prim(pln_builder *b, const pln_prim *spec, pln_ref *out) {
  PLN_TRY(check_spec(b, spec));
  if (pln_kinds[spec->kind].payload == PLN_PAYLOAD_SCOPE ||
      pln_kinds[spec->kind].payload == PLN_PAYLOAD_BITS)
    return refuse_tir_node(b, spec->kind,
                           "this kind is made by another function");
  pln_node node = node_of(spec);
  PLN_TRY(pln_builder_add(b, &node, spec->n, spec->operands, out));
  return spec->kind == PLN_BUFFER && !b->scoped ? pln_buffer_remember(b, *out)
                                                : PLN_OK;
}

pln_status pln_build_binary(pln_builder *b, pln_kind kind, pln_ref x, pln_ref y,
                            pln_ref *out) {
  pln_ref operands[] = {x, y};
  pln_prim spec = {.kind = kind, .n = 2, .operands = operands};
  return pln_build_prim(b, &spec, out);
}

pln_status pln_build_buffer(pln_builder *b, const pln_buffer_spec *spec,
                            pln_ref *out) {
  uint32_t n = 2 + spec->rank + spec->n_strides;
  pln_ref few[16], *all = few;
  if (spec->rank > 1024 || spec->n_strides > 1024)
    return refuse_tir_node(b, PLN_BUFFER, "it has too many dimensions");
  if (n > PLN_COUNT(few) && !(all = pln_mem_new(b->engine, n * sizeof *all)))
    return pln_nomem(b->engine);
  all[0] = spec->data;
  for (uint32_t i = 0; i < spec->rank; i++)
    all[1 + i] = spec->shape[i];
  for (uint32_t i = 0; i < spec->n_strides; i++)
    all[1 + spec->rank + i] = spec->strides[i];
  all[n - 1] = spec->elem_offset;
  pln_prim prim = {.kind = PLN_BUFFER,
                   .data = spec->name,
                   .type = spec->type,
                   .attrs = spec->attrs,
                   .count = (uint16_t)spec->rank,
                   .n = n,
                   .operands = all};
  pln_status status = pln_build_prim(b, &prim, out);
  if (all != few)
    pln_mem_free(b->engine, all, n * sizeof *all);
  return status;
}

/* ------------------------------------------------------------------- owners */

static pln_status check_owner(pln_builder *b, const pln_prim *spec,
                              uint32_t k) {
  if (spec->kind == PLN_PRIM_FUNC && spec->n == 0 && k == 1)
    return PLN_OK;
  PLN_TRY(check_spec(b, spec));
  int32_t scopes = pln_kinds[spec->kind].scopes;
  if (pln_kinds[spec->kind].payload != PLN_PAYLOAD_SCOPE || k == 0 ||
      (scopes >= 0 ? k != (uint32_t)scopes : k > 2))
    return refuse_tir_node(b, spec->kind, "wrong number of bodies");
  return PLN_OK;
}

static pln_status check_scopes(pln_builder *b, const pln_prim *spec, uint32_t k,
                               const pln_scope *scopes) {
  const pln_graph *g = b->graph;
  for (uint32_t i = 0; i < k; i++) {
    if (scopes[i] == 0 || scopes[i] >= g->n_scopes ||
        g->scopes[scopes[i]].result == PLN_NONE ||
        g->scopes[scopes[i]].owner != PLN_NONE)
      return refuse_tir_node(b, spec->kind,
                             "a scope is not ended, or owned already");
    if (!pln_is_stmt(&g->nodes[g->scopes[scopes[i]].result]))
      return refuse_tir_node(b, spec->kind, "a body must end with a statement");
  }
  return PLN_OK;
}

static pln_status append_owner(pln_builder *b, const pln_prim *spec, uint32_t n,
                               const pln_ref *operands, uint32_t k,
                               const pln_scope *scopes, pln_ref *out) {
  pln_graph *g = b->graph;
  for (uint32_t i = 0; i < k; i++)
    g->scopes[scopes[i]].next = i + 1 < k ? scopes[i + 1] : PLN_NONE;
  pln_node node = node_of(spec);
  node.data = scopes[0];
  PLN_TRY(pln_builder_add(b, &node, n, operands, out));
  for (uint32_t i = 0; i < k; i++)
    g->scopes[scopes[i]].owner = *out;
  return PLN_OK;
}

pln_status pln_build_stmt(pln_builder *b, const pln_prim *spec, uint32_t k,
                          const pln_scope *scopes, pln_ref *out) {
  PLN_TRY(check_owner(b, spec, k));
  PLN_TRY(check_scopes(b, spec, k, scopes));
  return append_owner(b, spec, spec->n, spec->operands, k, scopes, out);
}

pln_status pln_build_for(pln_builder *b, pln_ref min, pln_ref extent,
                         pln_scope body, pln_ref *out) {
  pln_ref operands[] = {min, extent};
  pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = operands};
  return pln_build_stmt(b, &spec, 1, &body, out);
}

/* ----------------------------------------------------------------- free use */

static pln_status check_body(pln_builder *b, pln_kind kind,
                             const pln_body *body) {
  for (uint32_t i = 0; i < body->n_params; i++)
    if (body->params[i] >= b->graph->n_nodes ||
        b->graph->nodes[body->params[i]].kind != PLN_VAR)
      return refuse_tir_node(b, kind, "a parameter must be a Var");
  if (body->stmt >= b->graph->n_nodes ||
      !pln_is_stmt(&b->graph->nodes[body->stmt]))
    return refuse_tir_node(b, kind, "its body must be a statement");
  return PLN_OK;
}

static pln_status body_scope(pln_builder *b, const pln_body *body,
                             pln_scope *out) {
  PLN_TRY(pln_builder_add_scope(b, PLN_NONE, out));
  pln_scope_row *row = &b->graph->scopes[*out];
  row->begin = row->end = PLN_NONE;
  row->result = body->stmt;
  row->n_params = body->n_params;
  b->effects[*out] =
      b->graph->nodes[body->stmt].flags & (uint8_t)PLN_NODE_EFFECT;
  return PLN_OK;
}

static pln_status free_owner(pln_builder *b, const pln_prim *spec, uint32_t k,
                             const pln_body *bodies, uint32_t total,
                             pln_ref *all, pln_ref *out) {
  pln_scope scopes[2];
  uint32_t n = spec->n;
  if (n)
    memcpy(all, spec->operands, n * sizeof *all);
  for (uint32_t i = 0; i < k; i++) {
    PLN_TRY(check_body(b, spec->kind, &bodies[i]));
    PLN_TRY(body_scope(b, &bodies[i], &scopes[i]));
    for (uint32_t p = 0; p < bodies[i].n_params; p++)
      all[n++] = bodies[i].params[p];
  }
  return append_owner(b, spec, total, all, k, scopes, out);
}

pln_status pln_build_floating_stmt(pln_builder *b, const pln_prim *spec,
                                   uint32_t k, const pln_body *bodies,
                                   pln_ref *out) {
  if (b->scoped)
    return refuse_tir_node(b, spec->kind,
                           "free statements need a builder without "
                           "scopes");
  PLN_TRY(check_owner(b, spec, k));
  size_t total = spec->n;
  for (uint32_t i = 0; i < k; i++)
    total += bodies[i].n_params;
  if (total > INT32_MAX)
    return refuse_tir_node(b, spec->kind, "it has too many parameters");
  pln_ref few[16], *all = few;
  if (total > PLN_COUNT(few) &&
      !(all = pln_mem_new(b->engine, total * sizeof *all)))
    return pln_nomem(b->engine);
  pln_status status = free_owner(b, spec, k, bodies, (uint32_t)total, all, out);
  if (all != few)
    pln_mem_free(b->engine, all, total * sizeof *all);
  return status;
}

pln_status pln_build_seq(pln_builder *b, uint32_t n, const pln_ref *stmts,
                         pln_ref *out) {
  pln_prim spec = {.kind = PLN_SEQ_STMT};
  pln_scope scope;
  if (b->scoped || n == 0)
    return refuse_tir_node(b, PLN_SEQ_STMT,
                           b->scoped ? "a scope's order is its own"
                                     : "it is empty");
  uint8_t effect = PLN_EFFECT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(check_body(b, PLN_SEQ_STMT, &(pln_body){.stmt = stmts[i]}));
    uint8_t flags = b->graph->nodes[stmts[i]].flags & (uint8_t)PLN_NODE_EFFECT;
    effect = flags > effect ? flags : effect;
  }
  PLN_TRY(body_scope(b, &(pln_body){.stmt = stmts[n - 1]}, &scope));
  b->effects[scope] = effect;
  return append_owner(b, &spec, n, stmts, 1, &scope, out);
}
