/* unify_thread_binding.c: tir.UnifyThreadBinding: one loop for each thread axis
 * of a kernel, around all of it.
 *
 * Run by the executor, for functions that were not made of tensor expressions.
 * A kernel is a loop or attribute that binds a thread, and none is around it.
 * All loops of an axis must have one extent, which has no variables of the
 * kernel.
 *
 *     for i in T.thread_binding(8, thread="blockIdx.x"):
 *         for j in T.thread_binding(4, thread="threadIdx.x"): A[i, j] = 0
 *         for k in T.thread_binding(4, thread="threadIdx.x"): B[i, k] = 0
 *     =>
 *     for blockIdx_x in T.thread_binding(8, thread="blockIdx.x"):
 *         for threadIdx_x in T.thread_binding(4, thread="threadIdx.x"):
 *             A[blockIdx_x, threadIdx_x] = 0
 *             B[blockIdx_x, threadIdx_x] = 0
 *
 * Semantics: TVM's tir.UnifyThreadBinding. */

#include "lower/emit.h"
#include "lower/lower.h"

/* A thread axis of the kernel; nodes of the builder. */
typedef struct thread_axis {
  pln_slice tag;
  pln_ref var, min, extent;
} thread_axis;

enum { MOST_THREADS = 16, MOST_OPERANDS = 64 };

typedef struct unifier {
  const pln_graph *g;
  pln_analyzer *a;
  thread_axis axes[MOST_THREADS]; /* of the kernel, in order of occurrence */
  uint32_t n;
  uint32_t depth; /* statements around that bind threads */
  pln_ref begin;  /* of the kernel's nodes */
} unifier;

/* ------------------------------------------------------------------ bindings
 */

static bool is_bound_loop(const pln_graph *g, pln_ref stmt) {
  const pln_node *n = &g->nodes[stmt];
  return n->kind == PLN_FOR && n->count > 2 &&
         pln_for_kind_of(g, stmt) == PLN_FOR_THREAD_BINDING;
}

static bool binds(const pln_graph *g, pln_ref stmt) {
  const pln_node *n = &g->nodes[stmt];
  return is_bound_loop(g, stmt) ||
         (n->kind == PLN_ATTR_STMT && pln_binds_thread(g, n));
}

static pln_ref iter_var_of(const pln_graph *g, pln_ref stmt) {
  return pln_operand(g, stmt, is_bound_loop(g, stmt) ? 2 : 0);
}

/* The variable that the statement binds, in the old graph. */
static pln_ref bound_var(const unifier *x, pln_stmt_rewrite *s, pln_ref stmt) {
  return is_bound_loop(x->g, stmt)
             ? pln_stmt_param(s, stmt, 0, 0)
             : pln_operand(x->g, iter_var_of(x->g, stmt), 0);
}

static pln_slice tag_of(const pln_graph *g, pln_ref stmt) {
  return pln_attrs_string(g->engine, g->nodes[iter_var_of(g, stmt)].attrs,
                          "thread_tag", "");
}

static pln_status refuse_extent(const unifier *x, pln_slice tag) {
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.UnifyThreadBinding: loops that are bound to '%s' "
                        "have different extents, or first values",
                        tag.data);
}

static pln_status proves_same(unifier *x, pln_stmt_rewrite *s, pln_ref p,
                              pln_ref q, bool *out) {
  pln_term terms[2];
  PLN_TRY(pln_analyzer_import_built(x->a, pln_stmt_builder(s), p, &terms[0]));
  PLN_TRY(pln_analyzer_import_built(x->a, pln_stmt_builder(s), q, &terms[1]));
  return pln_analyzer_can_prove_equal(x->a, terms[0], terms[1], out);
}

/* First value and extent of the statement. */
static pln_status range_of(const unifier *x, pln_stmt_rewrite *s, pln_ref stmt,
                           pln_ref *min, pln_ref *extent) {
  bool loop = is_bound_loop(x->g, stmt);
  *extent = pln_stmt_operand(s, 1);
  if (!loop)
    return pln_stmt_int_like(s, *extent, 0, min);
  *min = pln_stmt_operand(s, 0);
  return PLN_OK;
}

/* True if an expression of the old graph has a variable of the kernel; a large
 * one is assumed to. */
static bool has_inner_var(const unifier *x, pln_ref expr) {
  pln_ref stack[MOST_OPERANDS];
  uint32_t n = 0, seen = 0;
  for (stack[n++] = expr; n > 0 && seen < MOST_OPERANDS; seen++) {
    pln_ref ref = stack[--n];
    const pln_node *node = &x->g->nodes[ref];
    if (node->kind == PLN_VAR && ref >= x->begin)
      return true;
    if (n + node->count > MOST_OPERANDS)
      return true;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = pln_operand(x->g, ref, i);
  }
  return n > 0;
}

/* The loop around the kernel has the range of this inner statement. */
static pln_status check_range(const unifier *x, pln_ref stmt) {
  for (uint32_t i = is_bound_loop(x->g, stmt) ? 0 : 1; i < 2; i++)
    if (has_inner_var(x, pln_operand(x->g, stmt, i)))
      return pln_diag_error(
          x->g->engine, PLN_ERR_ARGUMENT, NULL,
          "tir.UnifyThreadBinding: the range of the loop that is bound to '%s' "
          "is not known around the kernel",
          tag_of(x->g, stmt).data);
  return PLN_OK;
}

static pln_status new_axis(unifier *x, pln_stmt_rewrite *s, pln_ref var,
                           pln_slice tag, pln_ref min, pln_ref extent) {
  thread_axis axis = {.tag = tag, .min = min, .extent = extent};
  pln_symbol name;
  if (x->n == MOST_THREADS)
    return pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.UnifyThreadBinding: a kernel has more than %d "
                          "thread axes",
                          MOST_THREADS);
  PLN_TRY(pln_symbol_intern(x->g->engine, tag, &name));
  PLN_TRY(pln_build_var(pln_stmt_builder(s), name, x->g->nodes[var].type, 0,
                        &axis.var));
  x->axes[x->n++] = axis;
  return PLN_OK;
}

/* The axis of the statement in this kernel, which begins with it if it has not
 * occurred. */
static pln_status find_axis(unifier *x, pln_stmt_rewrite *s, pln_ref stmt,
                            const thread_axis **out) {
  pln_slice tag = tag_of(x->g, stmt);
  pln_ref min, extent;
  bool same = true;
  PLN_TRY(range_of(x, s, stmt, &min, &extent));
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->axes[i].tag.data != tag.data)
      continue;
    PLN_TRY(proves_same(x, s, x->axes[i].extent, extent, &same));
    if (same)
      PLN_TRY(proves_same(x, s, x->axes[i].min, min, &same));
    *out = &x->axes[i];
    return same ? PLN_OK : refuse_extent(x, tag);
  }
  if (x->depth > 1)
    PLN_TRY(check_range(x, stmt));
  PLN_TRY(new_axis(x, s, bound_var(x, s, stmt), tag, min, extent));
  *out = &x->axes[x->n - 1];
  return PLN_OK;
}

/* ------------------------------------------------------------------- kernels
 */

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  unifier *x = ud;
  const thread_axis *axis;
  (void)k;
  (void)skip;
  if (!binds(x->g, stmt))
    return PLN_OK;
  if (x->depth++ == 0) {
    x->n = 0;
    x->begin = x->g->scopes[x->g->nodes[stmt].data].begin;
  }
  PLN_TRY(find_axis(x, s, stmt, &axis));
  pln_stmt_bind(s, bound_var(x, s, stmt), axis->var);
  return PLN_OK;
}

/* Annotations of a loop stay, on a loop of one round. */
static pln_status keep_annotations(unifier *x, pln_stmt_rewrite *s,
                                   pln_ref stmt, pln_ref *node) {
  pln_builder *b = pln_stmt_builder(s);
  pln_engine *e = x->g->engine;
  pln_ref var = bound_var(x, s, stmt), ends[2], own;
  pln_symbol name;
  pln_prim spec = {.kind = PLN_FOR, .n = 2, .operands = ends};
  if (!is_bound_loop(x->g, stmt) ||
      !pln_attrs_find(e, x->g->nodes[stmt].attrs, "annotations"))
    return PLN_OK;
  PLN_TRY(pln_attrs_without(e, x->g->nodes[stmt].attrs, "kind", &spec.attrs));
  PLN_TRY(pln_symbol_intern(e, pln_text("var"), &name));
  PLN_TRY(pln_build_var(b, name, x->g->nodes[var].type, 0, &own));
  PLN_TRY(pln_build_int_imm(b, x->g->nodes[var].type, 0, &ends[0]));
  PLN_TRY(pln_build_int_imm(b, x->g->nodes[var].type, 1, &ends[1]));
  pln_body body = {.n_params = 1, .params = &own, .stmt = *node};
  return pln_build_floating_stmt(b, &spec, 1, &body, node);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  unifier *x = ud;
  if (!binds(x->g, stmt))
    return PLN_OK;
  *node = pln_stmt_body(s, 0);
  PLN_TRY(keep_annotations(x, s, stmt, node));
  if (--x->depth > 0)
    return PLN_OK;
  pln_emit e = {.b = pln_stmt_builder(s)};
  for (uint32_t i = x->n; i-- > 0;)
    *node = pln_emit_thread_loop(&e, x->axes[i].tag, 0, x->axes[i].var,
                                 x->axes[i].min, x->axes[i].extent, *node);
  return e.status;
}

/* ------------------------------------------------------------------- the pass
 */

static bool has_binding(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (binds(g, ref))
      return true;
  return false;
}

pln_status pln_pass_tir_unify_thread_binding(pln_pass_run *run) {
  unifier x = {.g = pln_run_function(run)};
  pln_stmt_mutator mutator = {
      .ud = &x, .enter_body = enter_body, .leave = leave_stmt};
  if (pln_is_legacy_te(x.g) || !has_binding(x.g))
    return PLN_OK;
  PLN_TRY(pln_analyzer_new(x.g->engine, &x.a));
  pln_status status = pln_lower_function(run, &mutator);
  pln_analyzer_free(x.a);
  return status;
}
