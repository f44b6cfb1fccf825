/* lower_auto_copy.c: tir.LowerAutoCopy: copies between global and shared memory
 * are spread over the threads, where blocks ask for it.
 *
 * Run by the executor. A block with the annotation auto_copy is one store in
 * loops. The loops become one over all elements, in the order of global memory,
 * which is split: rounds, threadIdx.z, y and x as far as the function binds
 * them (or the annotation warp_execution says that a warp runs it), and
 * vector_bytes at once. Shared memory gets strides (shared_padding.c).
 *
 *     for i, j in T.grid(128, 128): S[i, j] = A[i, j]
 *     =>
 *     for f0 in range(16):
 *         for f1 in T.thread_binding(8, thread="threadIdx.y"):
 *             for f2 in T.thread_binding(32, thread="threadIdx.x"):
 *                 for f3 in T.vectorized(4): S[f // 128 % 128, f % 128] = ...
 *
 * Semantics: the rules CoalescedAccess and InverseMapping, and the AutoPadder,
 * of TVM's tir.LowerAutoCopy. Other copies are refused. */

#include <stdio.h>

#include "lower/device/auto_copy.h"
#include "lower/emit.h"

typedef struct copy_lowering {
  pln_auto_copies copies;
  pln_emit e;
  pln_type type; /* of the loop variables of the present copy */
  char base[160];
} copy_lowering;

static pln_ref new_var(copy_lowering *x, uint32_t i) {
  char name[192];
  (void)snprintf(name, sizeof name, "%s_%u", x->base, i);
  return pln_emit_var(&x->e, name, x->type);
}

static pln_ref number(copy_lowering *x, int64_t value) {
  return pln_emit_int_of(&x->e, x->type, value);
}

/* ax0_ax1_fused */
static void name_loops(copy_lowering *x, const pln_auto_copy *copy) {
  const pln_graph *g = x->copies.g;
  size_t size = 0;
  for (uint32_t i = 0; i < copy->n_loops && size < 120; i++) {
    pln_ref var = g->scopes[g->nodes[copy->loops[i]].data].begin;
    pln_slice text = pln_symbol_text(g->engine, g->nodes[var].attrs);
    int more = snprintf(x->base + size, sizeof x->base - size, "%s%.*s",
                        i > 0 ? "_" : "", text.size < 24 ? (int)text.size : 24,
                        text.data);
    size += more > 0 ? (size_t)more : 0;
  }
  (void)snprintf(x->base + size, sizeof x->base - size, "%s",
                 copy->n_loops > 1 ? "_fused" : "");
}

/* value * extent + var */
static pln_ref next_digit(copy_lowering *x, pln_ref value, int64_t extent,
                          pln_ref var) {
  pln_ref product =
      pln_emit_folded(&x->e, PLN_PRIM_MUL, value, number(x, extent));
  return pln_emit_folded(&x->e, PLN_PRIM_ADD, product, var);
}

/* The variables of the old loops have the digits of the new index. */
static pln_status bind_loops(copy_lowering *x, pln_stmt_rewrite *s,
                             const pln_auto_copy *copy, pln_ref index) {
  const pln_graph *g = x->copies.g;
  for (uint32_t i = copy->n_loops; i-- > 0;) {
    pln_ref extent = number(x, copy->extents[i]);
    pln_ref digit = pln_emit_folded(&x->e, PLN_PRIM_FLOORMOD, index, extent);
    index = pln_emit_folded(&x->e, PLN_PRIM_FLOORDIV, index, extent);
    PLN_TRY(x->e.status);
    pln_stmt_bind(s, g->scopes[g->nodes[copy->loops[i]].data].begin, digit);
  }
  return PLN_OK;
}

static pln_status build_store(copy_lowering *x, pln_stmt_rewrite *s,
                              pln_ref store, pln_ref *out) {
  const pln_graph *g = x->copies.g;
  pln_ref operands[PLN_MOST_COPY_AXES + 2];
  pln_prim spec = {.kind = PLN_BUFFER_STORE,
                   .n = g->nodes[store].count,
                   .operands = operands};
  if (spec.n > PLN_COUNT(operands))
    return pln_diag_error(g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.LowerAutoCopy: a buffer has more than %d axes",
                          PLN_MOST_COPY_AXES);
  for (uint32_t i = 0; i < spec.n; i++)
    PLN_TRY(pln_stmt_map(s, pln_operand(g, store, i), &operands[i]));
  return pln_build_prim(x->e.b, &spec, out);
}

static pln_status build_loop(copy_lowering *x, pln_ref var, int64_t extent,
                             int64_t kind, pln_ref *stmt) {
  pln_engine *e = x->copies.g->engine;
  pln_ref ends[2] = {number(x, 0), number(x, extent)};
  pln_prim loop = {.kind = PLN_FOR, .n = 2, .operands = ends};
  pln_body body = {.n_params = 1, .params = &var, .stmt = *stmt};
  pln_attr attr = {.kind = PLN_ATTR_INT, .v.i = kind};
  PLN_TRY(x->e.status);
  PLN_TRY(pln_symbol_intern(e, pln_text("kind"), &attr.name));
  if (kind != PLN_FOR_SERIAL)
    PLN_TRY(pln_attrs_with(e, 0, &attr, &loop.attrs));
  return pln_build_floating_stmt(x->e.b, &loop, 1, &body, stmt);
}

static pln_status spread_copy(copy_lowering *x, pln_stmt_rewrite *s,
                              const pln_auto_copy *copy, pln_ref *node) {
  const int64_t *threads = x->copies.threads;
  pln_ref vars[5], index;
  uint32_t n = 0;
  name_loops(x, copy);
  index = vars[n++] = new_var(x, 0);
  for (uint32_t i = 0; i < PLN_COUNT(x->copies.threads); i++)
    if (threads[i]) {
      vars[n] = new_var(x, n);
      index = next_digit(x, index, threads[i], vars[n]);
      n++;
    }
  vars[n] = new_var(x, n);
  index = next_digit(x, index, copy->lanes, vars[n]);
  PLN_TRY(bind_loops(x, s, copy, index));
  PLN_TRY(build_store(x, s, copy->store, node));
  PLN_TRY(build_loop(x, vars[n], copy->lanes, PLN_FOR_VECTORIZED, node));
  for (uint32_t i = PLN_COUNT(x->copies.threads); i-- > 0;)
    if (threads[i])
      *node = pln_emit_thread_loop(&x->e, pln_text(pln_thread_axes[i]), 0,
                                   vars[--n], number(x, 0),
                                   number(x, threads[i]), *node);
  return build_loop(x, vars[0], copy->rounds, PLN_FOR_SERIAL, node);
}

/* ---------------------------------------------------------------- callbacks */

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  copy_lowering *x = ud;
  const pln_graph *g = x->copies.g;
  uint32_t k = x->copies.of[stmt];
  if (!k)
    return PLN_OK;
  x->e = (pln_emit){.b = pln_stmt_builder(s), .status = PLN_OK};
  x->type = g->nodes[g->scopes[g->nodes[stmt].data].begin].type;
  return spread_copy(x, s, &x->copies.rows[k - 1], node);
}

/* The Buffer with strides. */
static pln_status pad(pln_stmt_rewrite *s, pln_ref old, const int64_t *strides,
                      pln_ref *node) {
  const pln_node *n = &pln_stmt_old(s)->nodes[old];
  pln_ref operands[2 * PLN_MOST_COPY_AXES + 2];
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = pln_stmt_image(s, pln_operand(pln_stmt_old(s), old, i));
  operands[n->count + n->results - 1] = operands[n->count - 1];
  for (uint32_t i = 0; i < n->results; i++)
    PLN_TRY(pln_stmt_int_like(s, operands[1], strides[i],
                              &operands[1 + n->results + i]));
  return pln_stmt_rebuild_buffer(s, old, n->count + n->results, operands, node);
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  copy_lowering *x = ud;
  int64_t strides[PLN_MOST_COPY_AXES];
  bool padded = false;
  if (x->copies.g->nodes[old].kind != PLN_BUFFER)
    return PLN_OK;
  PLN_TRY(pln_shared_strides(&x->copies, old, strides, &padded));
  return padded ? pad(s, old, strides, node) : PLN_OK;
}

pln_status pln_pass_tir_lower_auto_copy(pln_pass_run *run) {
  copy_lowering x = {.type = 0};
  pln_stmt_mutator mutator = {
      .ud = &x, .expr = visit_expr, .enter = enter_stmt};
  pln_status status = pln_auto_copies_find(&x.copies, pln_run_function(run));
  if (status == PLN_OK && x.copies.n > 0)
    status = pln_lower_function(run, &mutator);
  pln_auto_copies_free(&x.copies);
  return status;
}
