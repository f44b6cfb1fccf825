/* inject_virtual_thread.c: tir.InjectVirtualThread: runs what depends on a
 * virtual thread once for each thread, one after the other.
 *
 * Run by the executor. Memory that the threads fill is allocated once for each
 * of them. A statement without loops inside is written out for fewer than 16
 * threads, else it stands in a loop. Branches whose condition is a constant are
 * taken.
 *
 *     vthread = T.launch_thread("vthread", 2); B[0] = A[vthread]
 *         =>   B[0 * n + 0] = A[0]; B[1 * n + 0] = A[1]
 *
 * Semantics: TVM's tir.InjectVirtualThread, whose declared shapes of such
 * buffers are too large too. Virtual threads are taken from the inside out,
 * those that are not in each other at once. */

#include <stdio.h>

#include "lower/known_branch.h"
#include "lower/loop/virtual_thread_plan.h"

enum { MOST_WRITTEN = 16 };
#define WRITE_OUT "virtual_thread_rounds"

typedef struct thread_injector {
  const pln_graph *g;
  pln_virtual_thread_plan plan;
  pln_ref *stride; /* by data pointer: image of the extent for one thread */
  pln_ref *index;  /* by statement: the loop variable around it */
  uint32_t thread; /* the one that is visited, or 0 */
  pln_analyzer_scopes scopes;
} thread_injector;

/* ------------------------------------------------------- memory of a thread */

static uint32_t owner_of(const thread_injector *x, pln_ref data) {
  return x->g->nodes[data].kind == PLN_VAR ? x->plan.own[data] : 0;
}

static pln_status not_flat(const thread_injector *x) {
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.InjectVirtualThread: memory of a virtual thread "
                        "must be flat: run tir.StorageFlatten or "
                        "tir.FlattenBuffer first");
}

/* thread * stride + index, simplified; the index may be a vector. */
static pln_status move_index(thread_injector *x, pln_stmt_rewrite *s,
                             pln_ref data, pln_ref stride, pln_ref *index) {
  pln_analyzer *a = x->scopes.a;
  pln_term t, by, at;
  pln_ref thread =
      pln_stmt_image(s, x->plan.threads[owner_of(x, data) - 1].var);
  if (stride == PLN_NONE || thread == PLN_NONE)
    return not_flat(x);
  PLN_TRY(pln_scoped_term(&x->scopes, s, thread, &t));
  PLN_TRY(pln_scoped_term(&x->scopes, s, stride, &by));
  PLN_TRY(pln_scoped_term(&x->scopes, s, *index, &at));
  pln_dtype dtype = (pln_dtype)pln_at(a, at)->dtype;
  uint16_t lanes = pln_at(a, at)->lanes;
  t = pln_mul(a, pln_fold_cast(a, dtype, t), pln_fold_cast(a, dtype, by));
  if (t && lanes > 1)
    t = pln_term_broadcast(a, t, lanes);
  t = pln_add(a, t, at);
  PLN_TRY(a->status);
  PLN_TRY(pln_analyzer_simplify(a, t, 2, &t));
  return pln_analyzer_export(a, pln_stmt_builder(s), t, index);
}

/* As TVM, by the size for one thread, which is too large; by the number of
 * threads where there are more of these. */
static pln_status widen_buffer(thread_injector *x, pln_stmt_rewrite *s,
                               pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref stride = x->stride[pln_operand(x->g, old, 0)];
  if (n->results != 1 || n->count != 3 || stride == PLN_NONE)
    return not_flat(x);
  const pln_node *size = pln_stmt_node(s, stride);
  int64_t threads =
      x->plan.threads[owner_of(x, pln_operand(x->g, old, 0)) - 1].n;
  if (size->kind == PLN_INT_IMM && (int64_t)pln_imm_bits(size) < threads)
    PLN_TRY(pln_stmt_int_like(s, stride, threads, &stride));
  return pln_stmt_enlarge_buffer(s, old, stride, node);
}

static pln_status move_load(thread_injector *x, pln_stmt_rewrite *s,
                            pln_ref old, pln_ref *node) {
  pln_ref buffer = pln_operand(x->g, old, 0), operands[2];
  pln_ref data = pln_operand(x->g, buffer, 0);
  if (x->g->nodes[old].count != 2)
    return not_flat(x);
  operands[0] = pln_stmt_image(s, buffer);
  operands[1] = pln_stmt_image(s, pln_operand(x->g, old, 1));
  PLN_TRY(move_index(x, s, data, x->stride[data], &operands[1]));
  pln_prim spec = {.kind = PLN_BUFFER_LOAD, .n = 2, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static bool calls(const pln_node *n, const char *builtin) {
  return n->kind == PLN_PRIM_CALL && n->data != 0 &&
         strcmp(pln_builtin_name(n->data), builtin) == 0;
}

/* tvm_access_ptr(dtype, data, offset, extent, mask) */
static pln_status move_pointer(thread_injector *x, pln_stmt_rewrite *s,
                               pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_ref operands[5], data = pln_operand(x->g, old, 1), lanes;
  pln_ref stride = x->stride[data];
  for (uint32_t i = 0; i < 5; i++)
    operands[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  if (stride == PLN_NONE)
    return not_flat(x);
  PLN_TRY(pln_stmt_int_like(
      s, stride,
      pln_type_number(x->g->engine,
                      x->g->nodes[pln_operand(x->g, old, 0)].type) > 1
          ? pln_type_number(x->g->engine,
                            x->g->nodes[pln_operand(x->g, old, 0)].type)
          : 1,
      &lanes));
  PLN_TRY(pln_build_folded(pln_stmt_builder(s), PLN_PRIM_DIV, stride, lanes,
                           &stride));
  PLN_TRY(move_index(x, s, data, stride, &operands[2]));
  pln_prim spec = {.kind = PLN_PRIM_CALL,
                   .data = n->data,
                   .attrs = n->attrs,
                   .type = n->type,
                   .n = 5,
                   .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

static pln_status visit_expr(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  thread_injector *x = ud;
  const pln_node *n = &x->g->nodes[old];
  if (n->kind == PLN_BUFFER && owner_of(x, pln_operand(x->g, old, 0)))
    return widen_buffer(x, s, old, node);
  if (n->kind == PLN_BUFFER_LOAD &&
      owner_of(x, pln_operand(x->g, pln_operand(x->g, old, 0), 0)))
    return move_load(x, s, old, node);
  if (calls(n, "tvm_access_ptr") && n->count == 5 &&
      owner_of(x, pln_operand(x->g, old, 1)))
    return move_pointer(x, s, old, node);
  if (calls(n, "tvm_context_id") && x->thread &&
      !x->plan.threads[x->thread - 1].shares)
    *node = pln_stmt_image(s, x->plan.threads[x->thread - 1].var);
  return PLN_OK;
}

static pln_status move_store(thread_injector *x, pln_stmt_rewrite *s,
                             pln_ref stmt, pln_ref *node) {
  pln_ref data = pln_operand(x->g, pln_operand(x->g, stmt, 0), 0), operands[3];
  if (!owner_of(x, data))
    return PLN_OK;
  if (x->g->nodes[stmt].count != 3)
    return not_flat(x);
  for (uint32_t i = 0; i < 3; i++)
    operands[i] = pln_stmt_operand(s, i);
  PLN_TRY(move_index(x, s, data, x->stride[data], &operands[2]));
  pln_prim spec = {.kind = PLN_BUFFER_STORE, .n = 3, .operands = operands};
  return pln_build_prim(pln_stmt_builder(s), &spec, node);
}

/* As much memory for each thread. */
static pln_status widen_allocate(thread_injector *x, pln_stmt_rewrite *s,
                                 pln_ref stmt, pln_ref *node) {
  pln_ref data = x->g->scopes[x->g->nodes[stmt].data].begin, n, operands[2];
  if (!owner_of(x, data))
    return PLN_OK;
  operands[0] = pln_stmt_operand(s, 0);
  operands[1] = pln_stmt_operand(s, 1);
  PLN_TRY(pln_stmt_int_like(s, operands[1],
                            x->plan.threads[owner_of(x, data) - 1].n, &n));
  PLN_TRY(pln_build_folded(pln_stmt_builder(s), PLN_PRIM_MUL, operands[1], n,
                           &operands[1]));
  pln_ref param;
  PLN_TRY(pln_stmt_map(s, data, &param));
  pln_prim spec = {.kind = PLN_ALLOCATE,
                   .attrs = x->g->nodes[stmt].attrs,
                   .n = 2,
                   .operands = operands};
  pln_body body = {
      .n_params = 1, .params = &param, .stmt = pln_stmt_body(s, 0)};
  return pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &body, node);
}

/* ------------------------------------------------------------ repetition */

/* The thread's variable is that of the loop around the statement. */
static pln_status begin_repeat(thread_injector *x, pln_stmt_rewrite *s,
                               pln_ref stmt) {
  const pln_virtual_thread *t = &x->plan.threads[x->plan.repeat[stmt] - 1];
  const pln_node *var = &x->g->nodes[t->var];
  pln_builder *b = pln_stmt_builder(s);
  char text[160];
  pln_symbol name;
  int size = snprintf(text, sizeof text, "%.128s.s",
                      pln_symbol_text(b->engine, var->attrs).data);
  PLN_TRY(pln_symbol_intern(b->engine, (pln_slice){text, (size_t)size}, &name));
  PLN_TRY(pln_build_var(b, name, var->type, 0, &x->index[stmt]));
  pln_stmt_bind(s, t->var, x->index[stmt]);
  return PLN_OK;
}

/* The attributes of a loop that is written out next. */
static pln_status written_out(pln_engine *e, pln_attrs *out) {
  pln_symbol name, mark;
  pln_attrs inner;
  PLN_TRY(pln_symbol_intern(e, pln_text("annotations"), &name));
  PLN_TRY(pln_symbol_intern(e, pln_text(WRITE_OUT), &mark));
  PLN_TRY(pln_attrs_with(
      e, 0, &(pln_attr){.name = mark, .kind = PLN_ATTR_INT, .v.i = 1}, &inner));
  return pln_attrs_with(
      e, 0, &(pln_attr){.name = name, .kind = PLN_ATTR_DICT, .v.dict = inner},
      out);
}

static pln_status end_repeat(const thread_injector *x, pln_stmt_rewrite *s,
                             pln_ref stmt, pln_ref *node) {
  const pln_virtual_thread *t = &x->plan.threads[x->plan.repeat[stmt] - 1];
  pln_builder *b = pln_stmt_builder(s);
  pln_ref ends[2];
  pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = ends};
  if (*node == PLN_NONE)
    PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  PLN_TRY(pln_stmt_int_like(s, x->index[stmt], 0, &ends[0]));
  PLN_TRY(pln_stmt_int_like(s, x->index[stmt], t->n, &ends[1]));
  if (!x->plan.has_loop[stmt] && t->n < MOST_WRITTEN)
    PLN_TRY(written_out(b->engine, &spec.attrs));
  pln_body body = {.n_params = 1, .params = &x->index[stmt], .stmt = *node};
  return pln_build_floating_stmt(b, &spec, 1, &body, node);
}

/* ---------------------------------------------------------------- callbacks
 */

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  thread_injector *x = ud;
  (void)node;
  return x->plan.repeat[stmt] ? begin_repeat(x, s, stmt) : PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  thread_injector *x = ud;
  (void)skip;
  PLN_TRY(pln_analyzer_scopes_enter(&x->scopes, s, stmt, k));
  if (x->plan.thread[stmt])
    x->thread = x->plan.thread[stmt];
  if (x->g->nodes[stmt].kind != PLN_ALLOCATE)
    return PLN_OK;
  pln_ref data = x->g->scopes[x->g->nodes[stmt].data].begin;
  if (owner_of(x, data) && x->g->nodes[stmt].count != 2)
    return not_flat(x);
  x->stride[data] = pln_stmt_operand(s, 1);
  return PLN_OK;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  (void)s, (void)stmt, (void)k, (void)body, (void)again;
  pln_analyzer_scopes_leave(&((thread_injector *)ud)->scopes);
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  thread_injector *x = ud;
  if (x->plan.thread[stmt]) {
    x->thread = 0;
    *node = pln_stmt_body(s, 0);
    return PLN_OK;
  }
  if (x->g->nodes[stmt].kind == PLN_BUFFER_STORE)
    PLN_TRY(move_store(x, s, stmt, node));
  if (x->g->nodes[stmt].kind == PLN_ALLOCATE)
    PLN_TRY(widen_allocate(x, s, stmt, node));
  return x->plan.repeat[stmt] ? end_repeat(x, s, stmt, node) : PLN_OK;
}

/* ------------------------------------------------------------- writing out */

static bool is_written_out(const pln_graph *g, pln_ref stmt) {
  if (g->nodes[stmt].kind != PLN_FOR)
    return false;
  const pln_attr *all =
      pln_attrs_find(g->engine, g->nodes[stmt].attrs, "annotations");
  return all && all->kind == PLN_ATTR_DICT &&
         pln_attrs_find(g->engine, all->v.dict, WRITE_OUT);
}

static pln_status enter_round(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                              uint32_t k, bool *skip) {
  const pln_graph *g = pln_stmt_old(s);
  pln_ref round;
  (void)ud, (void)k;
  if (!is_written_out(g, stmt))
    return PLN_OK;
  *skip = pln_is_int(g, pln_operand(g, stmt, 1), 0);
  PLN_TRY(
      pln_stmt_int_like(s, pln_stmt_operand(s, 0), pln_stmt_visits(s), &round));
  pln_stmt_bind(s, pln_stmt_param(s, stmt, 0, 0), round);
  return PLN_OK;
}

static pln_status leave_round(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                              uint32_t k, pln_ref *body, bool *again) {
  const pln_graph *g = pln_stmt_old(s);
  (void)ud, (void)k, (void)body;
  *again =
      is_written_out(g, stmt) && pln_stmt_visits(s) + INT64_C(1) <
                                     pln_node_int(g, pln_operand(g, stmt, 1));
  return PLN_OK;
}

static pln_status leave_rounds(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  (void)ud;
  if (!is_written_out(pln_stmt_old(s), stmt))
    return PLN_OK;
  *node = pln_stmt_body(s, 0);
  return *node == PLN_NONE ? pln_stmt_no_op(s, node) : PLN_OK;
}

/* ----------------------------------------------------------------- the pass
 */

/* Replaces *g by what the mutator makes of it. */
static pln_status apply(pln_graph **g, const pln_stmt_mutator *mutator) {
  pln_graph *next;
  PLN_TRY(pln_stmt_rewrite_function(*g, mutator, &next));
  pln_graph_release(*g);
  *g = next;
  return PLN_OK;
}

static pln_status inject(thread_injector *x, pln_graph **g) {
  pln_stmt_mutator repeat = {.ud = x,
                             .expr = visit_expr,
                             .enter = enter_stmt,
                             .enter_body = enter_body,
                             .leave_body = leave_body,
                             .leave = leave_stmt};
  pln_stmt_mutator write_out = {.enter_body = enter_round,
                                .leave_body = leave_round,
                                .leave = leave_rounds};
  if (!x->stride || !x->index)
    return pln_nomem((*g)->engine);
  memset(x->stride, 0xff, (*g)->n_nodes * sizeof *x->stride);
  PLN_TRY(pln_analyzer_scopes_begin(&x->scopes, *g));
  pln_status status = apply(g, &repeat);
  pln_analyzer_scopes_end(&x->scopes);
  return status == PLN_OK ? apply(g, &write_out) : status;
}

/* One round: the innermost virtual threads. *more: there are others. */
static pln_status inject_innermost(pln_graph **g, bool *more) {
  thread_injector x = {.g = *g};
  pln_engine *e = (*g)->engine;
  size_t size = (*g)->n_nodes * sizeof(pln_ref);
  pln_graph *kept = pln_graph_retain(*g);
  pln_status status = pln_virtual_thread_plan_make(*g, &x.plan);
  if (status == PLN_OK) {
    *more = x.plan.outer;
    x.stride = pln_mem_new(e, size);
    x.index = pln_mem_new(e, size);
    if (x.plan.n > 0)
      status = inject(&x, g);
    pln_mem_free(e, x.stride, size);
    pln_mem_free(e, x.index, size);
    pln_virtual_thread_plan_free(&x.plan);
  }
  pln_graph_release(kept);
  return status;
}

static bool has_virtual_thread(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (pln_is_virtual_thread(g, ref))
      return true;
  return false;
}

pln_status pln_pass_tir_inject_virtual_thread(pln_pass_run *run) {
  pln_stmt_mutator branches = {.enter_body = pln_enter_known_branch,
                               .leave = pln_leave_known_branch};
  pln_graph *g = pln_graph_retain(pln_run_function(run));
  pln_status status =
      pln_has_kind(g, PLN_IF_THEN_ELSE) ? apply(&g, &branches) : PLN_OK;
  bool more = has_virtual_thread(g);
  while (status == PLN_OK && more)
    status = inject_innermost(&g, &more);
  if (status == PLN_OK)
    pln_run_set_function(run, g);
  else
    pln_graph_release(g);
  return status;
}
