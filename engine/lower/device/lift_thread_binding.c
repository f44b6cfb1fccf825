/* lift_thread_binding.c: tir.LiftThreadBinding: the loops of one thread axis of
 * a kernel become one loop, around all that they were around.
 *
 * Run by the executor. A kernel is a loop that is bound to a thread, and none
 * is around it. The loop of an axis stands in the body of the innermost loop
 * that has all loops of that axis inside, or is the only one. All of them have
 * the same range, which is known there.
 *
 *     for b in T.thread_binding(8, thread="blockIdx.x"):
 *         for t in T.thread_binding(4, thread="threadIdx.x"): A[b, t] = 0
 *         for u in T.thread_binding(4, thread="threadIdx.x"): B[b, u] = 0
 *     =>
 *     for blockIdx_x in T.thread_binding(8, thread="blockIdx.x"):
 *         for threadIdx_x in T.thread_binding(4, thread="threadIdx.x"):
 *             A[blockIdx_x, threadIdx_x] = 0
 *             B[blockIdx_x, threadIdx_x] = 0
 *
 * Semantics: TVM's tir.LiftThreadBinding, which takes the range of one of the
 * loops without comparing. */

#include "ir/graph/layout/scope_tree.h"
#include "lower/emit.h"
#include "lower/lower.h"

enum { MOST_AXES = 16, MOST_STEPS = 4096, MOST_STACK = 64 };

/* A thread axis of a kernel. */
typedef struct thread_axis {
  pln_slice tag;
  pln_ref loop;    /* the first one of it */
  pln_scope place; /* that has all of its loops inside, or is the body of one */
  pln_attrs attrs; /* of all of its loops */
  pln_ref var;     /* of the builder */
  uint32_t next;   /* 1 + the next one around the same body, outwards */
} thread_axis;

typedef struct kernel {
  pln_ref root;
  uint32_t first, n; /* axes */
} kernel;

typedef struct lifter {
  const pln_graph *g;
  pln_analyzer *a;
  pln_scope_tree tree;
  pln_ref *loop_of;    /* by scope: the innermost loop around */
  pln_ref *root_of;    /* by scope: the kernel around; PLN_NONE: none */
  uint32_t *kernel_of; /* by node: of a kernel's loop, 1 + its row */
  uint32_t *axis_of;   /* by node: of a loop that is bound, 1 + its axis */
  uint32_t *wraps;     /* by node: 1 + the innermost axis in the loop's body */
  kernel *kernels;
  uint32_t n_kernels, cap_kernels;
  thread_axis *axes;
  uint32_t n_axes, cap_axes;
} lifter;

static bool is_bound(const pln_graph *g, pln_ref ref) {
  return g->nodes[ref].kind == PLN_FOR && g->nodes[ref].count > 2 &&
         pln_for_kind_of(g, ref) == PLN_FOR_THREAD_BINDING;
}

static pln_slice tag_of(const pln_graph *g, pln_ref loop) {
  return pln_attrs_string(g->engine, g->nodes[pln_operand(g, loop, 2)].attrs,
                          "thread_tag", "");
}

static pln_status refuse(const lifter *x, pln_slice tag, const char *what) {
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.LiftThreadBinding: loops that are bound to "
                        "'%.*s' %s",
                        (int)tag.size, tag.data, what);
}

/* --------------------------------------------------------------------- plan
 */

/* Scopes come behind those around them. */
static void find_kernels(lifter *x) {
  x->loop_of[0] = x->root_of[0] = PLN_NONE;
  for (pln_scope i = 1; i < x->g->n_scopes; i++) {
    const pln_scope_row *row = &x->g->scopes[i];
    bool loop = x->g->nodes[row->owner].kind == PLN_FOR;
    x->loop_of[i] = loop ? row->owner : x->loop_of[row->parent];
    x->root_of[i] = x->root_of[row->parent];
    if (x->root_of[i] == PLN_NONE && is_bound(x->g, row->owner))
      x->root_of[i] = row->owner;
  }
}

static pln_status kernel_at(lifter *x, pln_ref root, kernel **out) {
  if (!x->kernel_of[root]) {
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->kernels, &x->cap_kernels,
                         (size_t)x->n_kernels + 1, sizeof *x->kernels));
    x->kernels[x->n_kernels++] = (kernel){.root = root, .first = x->n_axes};
    x->kernel_of[root] = x->n_kernels;
  }
  *out = &x->kernels[x->kernel_of[root] - 1];
  return PLN_OK;
}

static pln_status add_axis(lifter *x, kernel *k, pln_ref loop, uint32_t *out) {
  pln_slice tag = tag_of(x->g, loop);
  for (uint32_t i = k->first; i < k->first + k->n; i++)
    if (pln_slice_equal(x->axes[i].tag, tag)) {
      *out = i;
      return PLN_OK;
    }
  if (k->n == MOST_AXES)
    return pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.LiftThreadBinding: a kernel has more than %d "
                          "thread axes",
                          MOST_AXES);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->axes, &x->cap_axes,
                       (size_t)x->n_axes + 1, sizeof *x->axes));
  *out = x->n_axes++;
  k->n++;
  x->axes[*out] = (thread_axis){.tag = tag,
                                .loop = loop,
                                .place = x->g->nodes[loop].data,
                                .attrs = x->g->nodes[loop].attrs};
  return PLN_OK;
}

static pln_status is_same_range(lifter *x, pln_ref p, pln_ref q, bool *out) {
  *out = true;
  for (uint32_t i = 0; i < 2 && *out; i++) {
    pln_term terms[2];
    PLN_TRY(pln_analyzer_import_more(x->a, x->g, pln_operand(x->g, p, i),
                                     &terms[0]));
    PLN_TRY(pln_analyzer_import_more(x->a, x->g, pln_operand(x->g, q, i),
                                     &terms[1]));
    PLN_TRY(pln_analyzer_can_prove_equal(x->a, terms[0], terms[1], out));
  }
  return PLN_OK;
}

/* The annotations of both. */
static pln_status join_attrs(pln_engine *e, pln_attrs attrs, pln_attrs *all) {
  const pln_attr *more = pln_attrs_find(e, attrs, "annotations");
  const pln_attr *old = pln_attrs_find(e, *all, "annotations");
  pln_attr joined;
  if (!more || more->kind != PLN_ATTR_DICT)
    return PLN_OK;
  joined = *more;
  if (old && old->kind == PLN_ATTR_DICT) {
    joined = *old;
    for (uint32_t i = 0; i < pln_attrs_count(e, more->v.dict); i++)
      PLN_TRY(pln_attrs_with(e, joined.v.dict, pln_attrs_at(e, more->v.dict, i),
                             &joined.v.dict));
  }
  return pln_attrs_with(e, *all, &joined, all);
}

static pln_status add_loop(lifter *x, pln_ref loop) {
  kernel *k;
  uint32_t at = 0;
  bool same;
  PLN_TRY(kernel_at(x, x->root_of[x->g->nodes[loop].data], &k));
  PLN_TRY(add_axis(x, k, loop, &at));
  thread_axis *axis = &x->axes[at];
  x->axis_of[loop] = at + 1;
  PLN_TRY(is_same_range(x, axis->loop, loop, &same));
  if (!same)
    return refuse(x, axis->tag, "have different ranges");
  axis->place =
      pln_scope_tree_lca(&x->tree, axis->place, x->g->nodes[loop].data);
  return join_attrs(x->g->engine, x->g->nodes[loop].attrs, &axis->attrs);
}

/* ------------------------------------------------------------------- places
 */

/* blockIdx is around threadIdx, and z around y around x. */
static bool is_inner(const thread_axis *p, const thread_axis *q) {
  if (p->tag.size != q->tag.size)
    return p->tag.size > q->tag.size;
  return p->tag.size > 0 && memcmp(p->tag.data, q->tag.data, p->tag.size) < 0;
}

static void place_axis(lifter *x, uint32_t at) {
  thread_axis *axis = &x->axes[at];
  uint32_t *link = &x->wraps[x->loop_of[axis->place]];
  while (*link && is_inner(&x->axes[*link - 1], axis))
    link = &x->axes[*link - 1].next;
  axis->next = *link;
  *link = at + 1;
}

/* Whether an expression has a variable that is bound inside of the loop, other
 * than that of a thread which is around all of it. */
static pln_status has_inner_var(const lifter *x, pln_ref expr, pln_ref loop,
                                bool *out) {
  pln_ref stack[MOST_STACK] = {expr};
  uint32_t n = 1, steps = 0;
  while (n > 0 && !*out) {
    pln_ref ref = stack[--n];
    const pln_node *node = &x->g->nodes[ref];
    *out = node->kind == PLN_VAR && ref < loop &&
           ref >= x->g->scopes[x->g->nodes[loop].data].begin;
    *out |= n + node->count > MOST_STACK || ++steps > MOST_STEPS;
    for (uint32_t i = 0; i < node->count && !*out; i++)
      stack[n++] = pln_operand(x->g, ref, i);
  }
  return PLN_OK;
}

/* Its range is known where the loop will be. */
static pln_status check_place(const lifter *x, const thread_axis *axis) {
  pln_ref around = x->loop_of[axis->place];
  bool inner = false;
  for (uint32_t i = 0; i < 2 && around != axis->loop; i++)
    PLN_TRY(has_inner_var(x, pln_operand(x->g, axis->loop, i), around, &inner));
  return inner ? refuse(x, axis->tag,
                        "have a range that is not known around "
                        "all of them")
               : PLN_OK;
}

static pln_status make_plan(lifter *x) {
  find_kernels(x);
  for (pln_scope i = 1; i < x->g->n_scopes; i++)
    pln_scope_tree_add_child(&x->tree, i, x->g->scopes[i].parent);
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (is_bound(x->g, ref))
      PLN_TRY(add_loop(x, ref));
  for (uint32_t i = 0; i < x->n_axes; i++) {
    PLN_TRY(check_place(x, &x->axes[i]));
    place_axis(x, i);
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ rewriting
 */

/* The variables of a kernel's loops are those of its axes. */
static pln_status enter_kernel(lifter *x, pln_stmt_rewrite *s,
                               const kernel *k) {
  const pln_graph *g = x->g;
  pln_emit e = {.b = pln_stmt_builder(s)};
  for (uint32_t i = k->first; i < k->first + k->n; i++) {
    thread_axis *axis = &x->axes[i];
    pln_ref var = g->scopes[g->nodes[axis->loop].data].begin;
    axis->var = pln_emit_var(&e, axis->tag.data, g->nodes[var].type);
    PLN_TRY(e.status);
  }
  for (pln_ref ref = g->scopes[g->nodes[k->root].data].begin; ref <= k->root;
       ref++)
    if (x->axis_of[ref])
      pln_stmt_bind(s, g->scopes[g->nodes[ref].data].begin,
                    x->axes[x->axis_of[ref] - 1].var);
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  lifter *x = ud;
  (void)k;
  (void)skip;
  return x->kernel_of[stmt]
             ? enter_kernel(x, s, &x->kernels[x->kernel_of[stmt] - 1])
             : PLN_OK;
}

/* The body in the loops of the axes that belong to it. */
static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  lifter *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  (void)k;
  (void)again;
  for (uint32_t at = x->wraps[stmt]; at; at = x->axes[at - 1].next) {
    const thread_axis *axis = &x->axes[at - 1];
    pln_ref min, extent;
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, axis->loop, 0), &min));
    PLN_TRY(pln_stmt_map(s, pln_operand(x->g, axis->loop, 1), &extent));
    *body = pln_emit_thread_loop(&e, axis->tag, axis->attrs, axis->var, min,
                                 extent, *body);
  }
  return e.status;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const lifter *x = ud;
  if (x->axis_of[stmt])
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status lift(lifter *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .enter_body = enter_body,
                              .leave_body = leave_body,
                              .leave = leave_stmt};
  pln_engine *e = x->g->engine;
  size_t nodes = x->g->n_nodes, scopes = x->g->n_scopes;
  x->loop_of = pln_mem_new(e, scopes * sizeof *x->loop_of);
  x->root_of = pln_mem_new(e, scopes * sizeof *x->root_of);
  x->kernel_of = pln_mem_zeroed(e, nodes * sizeof *x->kernel_of);
  x->axis_of = pln_mem_zeroed(e, nodes * sizeof *x->axis_of);
  x->wraps = pln_mem_zeroed(e, nodes * sizeof *x->wraps);
  if (!x->loop_of || !x->root_of || !x->kernel_of || !x->axis_of || !x->wraps)
    return pln_nomem(e);
  PLN_TRY(pln_scope_tree_begin(&x->tree, e, x->g->n_scopes));
  PLN_TRY(pln_analyzer_new(e, &x->a));
  PLN_TRY(make_plan(x));
  return pln_lower_function(run, &mutator);
}

static bool has_binding(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (is_bound(g, ref))
      return true;
  return false;
}

pln_status pln_pass_tir_lift_thread_binding(pln_pass_run *run) {
  lifter x = {.g = pln_run_function(run)};
  pln_engine *e = x.g->engine;
  size_t nodes = x.g->n_nodes, scopes = x.g->n_scopes;
  if (!has_binding(x.g))
    return PLN_OK;
  pln_status status = lift(&x, run);
  if (x.a)
    pln_analyzer_free(x.a);
  pln_scope_tree_end(&x.tree);
  pln_mem_free(e, x.loop_of, scopes * sizeof *x.loop_of);
  pln_mem_free(e, x.root_of, scopes * sizeof *x.root_of);
  pln_mem_free(e, x.kernel_of, nodes * sizeof *x.kernel_of);
  pln_mem_free(e, x.axis_of, nodes * sizeof *x.axis_of);
  pln_mem_free(e, x.wraps, nodes * sizeof *x.wraps);
  pln_mem_free(e, x.kernels, x.cap_kernels * sizeof *x.kernels);
  pln_mem_free(e, x.axes, x.cap_axes * sizeof *x.axes);
  return status;
}
