/* lower_thread_allreduce.c: tir.LowerThreadAllreduce: reductions over the
 * threads of a block by what a target has for them.
 *
 * Run by the executor. A target whose warps exchange registers does so
 * (warp_allreduce.c); others reduce in shared memory (shared_allreduce.c). What
 * the reduction wrote is loaded from where the result is, and its allocation is
 * that of the result. Nothing but the reduction may write it, and nothing may
 * read it before.
 *
 *     with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
 *                 "reduce_scope", ...):
 *         T.tvm_thread_allreduce(T.uint32(1), A[t], True, B[0], t)
 *     C[0] = B[0]
 *     =>
 *     red_buf0[0] = A[t]
 *     t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 1, 32, 32)
 *     red_buf0[0] = red_buf0[0] + t0[0]; ...
 *     C[0] = red_buf0[0]
 *
 * Semantics: TVM's tir.LowerThreadAllreduce. */

#include <stdio.h>

#include "lower/host/host.h"
#include "lower/thread/allreduce.h"

enum { MOST_AXES = 3 }; /* threadIdx.x, .y, .z */

/* Around the present statement, by axis; nodes of the old graph. */
typedef struct thread_axis {
  pln_ref attr; /* the AttrStmt that binds it; PLN_NONE: it is not bound */
  pln_ref var;
  int64_t extent; /* -1: not constant */
} thread_axis;

/* Where the value is that a reduction wrote. */
typedef struct allreduce_result {
  bool reduced; /* the reduction was met */
  bool moved;   /* it is elsewhere than before: */
  bool shared;
  pln_ref buffer, index, extents[2]; /* of the builder */
  uint32_t n_extents;
} allreduce_result;

typedef struct lowering {
  const pln_graph *g;
  pln_analyzer *a;
  pln_allreduce_target target;
  thread_axis axes[MOST_AXES];
  uint32_t virtual_threads; /* that are bound around the present statement */
  pln_ref reducer;          /* of the innermost reduce_scope; PLN_NONE: none */
  uint32_t *result_of;      /* by node: 1 + the result of that memory */
  allreduce_result *results;
  uint32_t n_results;
  pln_ref *stack; /* expressions to be looked at */
  uint32_t cap_stack;
  uint32_t *seen, stamp; /* by node: the search that has seen it */
} lowering;

/* ------------------------------------------------------ building statements
 */

void pln_allreduce_push(pln_allreduce *r, pln_ref stmt) {
  if (r->e.status == PLN_OK)
    r->e.status = pln_mem_grow(r->e.b->engine, (void **)&r->stmts, &r->cap,
                               (size_t)r->n + 1, sizeof *r->stmts);
  if (r->e.status == PLN_OK)
    r->stmts[r->n++] = stmt;
}

void pln_allreduce_local(pln_allreduce *r, pln_ref buffer) {
  if (r->e.status == PLN_OK)
    r->e.status =
        pln_mem_grow(r->e.b->engine, (void **)&r->locals, &r->cap_locals,
                     (size_t)r->n_locals + 1, sizeof *r->locals);
  if (r->e.status == PLN_OK)
    r->locals[r->n_locals++] = buffer;
}

pln_ref pln_allreduce_take(pln_allreduce *r, uint32_t first) {
  if (r->e.status != PLN_OK)
    return PLN_NONE;
  pln_ref out = pln_emit_seq(&r->e, r->n - first, r->stmts + first);
  r->n = first;
  return out;
}

void pln_allreduce_sync(pln_allreduce *r, const char *scope) {
  pln_ref text = pln_emit_string(&r->e, pln_text(scope));
  pln_type type = pln_emit_type(&r->e, PLN_INT32);
  pln_allreduce_push(
      r, pln_emit_evaluate(
             &r->e, pln_emit_call(&r->e, "tvm_storage_sync", type, 1, &text)));
}

pln_ref pln_allreduce_index(pln_allreduce *r, int64_t value) {
  return pln_emit_int_of(&r->e, pln_emit_type_of(&r->e, r->reduce_index),
                         value);
}

pln_ref pln_allreduce_buffer(pln_allreduce *r, const char *stem, uint32_t i,
                             const char *scope, int64_t extent) {
  char name[32];
  (void)snprintf(name, sizeof name, "%s", stem);
  char *number = strstr(name, "%u");
  if (number)
    (void)snprintf(number, sizeof name - (size_t)(number - name), "%u", i);
  pln_ref data =
      pln_emit_var(&r->e, name, pln_emit_pointer(&r->e, r->types[i], scope));
  return pln_emit_buffer(&r->e, name, data, r->types[i],
                         extent == 1 ? pln_emit_int(&r->e, PLN_INT32, 1)
                                     : pln_allreduce_index(r, extent));
}

void pln_allreduce_load(pln_allreduce *r, const pln_ref *buffers, pln_ref index,
                        pln_ref *out) {
  for (uint32_t i = 0; i < r->size; i++)
    out[i] = pln_emit_load(&r->e, buffers[i], index);
}

/* The reducer's variables stand for x and y while its result is mapped. */
static pln_status combine(pln_allreduce *r, uint32_t i, const pln_ref *x,
                          const pln_ref *y, pln_ref *out) {
  const pln_graph *g = pln_stmt_old(r->s);
  pln_ref before[2 * PLN_MOST_REDUCED];
  for (uint32_t k = 0; k < 2 * r->size; k++) {
    pln_ref var = pln_operand(g, r->reducer, k);
    before[k] = pln_stmt_image(r->s, var);
    pln_stmt_bind(r->s, var, k < r->size ? x[k] : y[k - r->size]);
  }
  pln_status status =
      pln_stmt_map(r->s, pln_operand(g, r->reducer, 2 * r->size + i), out);
  for (uint32_t k = 0; k < 2 * r->size; k++)
    pln_stmt_bind(r->s, pln_operand(g, r->reducer, k), before[k]);
  return status;
}

pln_ref pln_allreduce_combine(pln_allreduce *r, uint32_t i, const pln_ref *x,
                              const pln_ref *y) {
  pln_ref out = PLN_NONE;
  if (r->e.status == PLN_OK)
    r->e.status = combine(r, i, x, y, &out);
  return out;
}

static void store_each(pln_allreduce *r, const pln_ref *buffers, pln_ref index,
                       const pln_ref *values) {
  for (uint32_t i = 0; i < r->size; i++)
    pln_allreduce_push(r, pln_emit_store(&r->e, buffers[i], index, values[i]));
}

void pln_allreduce_assign(pln_allreduce *r, const pln_ref *buffers,
                          pln_ref index, const pln_ref *values) {
  pln_ref vars[PLN_MOST_REDUCED];
  uint32_t first = r->n;
  if (!r->overlaps) {
    store_each(r, buffers, index, values);
    return;
  }
  for (uint32_t i = 0; i < r->size; i++)
    vars[i] = pln_emit_var(&r->e, "combined", r->types[i]);
  store_each(r, buffers, index, vars);
  pln_ref body = pln_allreduce_take(r, first);
  for (uint32_t i = r->size; i-- > 0;)
    body = pln_emit_let(&r->e, vars[i], values[i], body);
  pln_allreduce_push(r, body);
}

/* The statements, in the allocations and declarations of the locals. */
static pln_ref allocate_locals(pln_allreduce *r) {
  pln_emit *e = &r->e;
  pln_ref body = pln_allreduce_take(r, 0);
  for (uint32_t i = 0; e->status == PLN_OK && i < r->n_locals; i++) {
    pln_ref buffer = r->locals[i];
    pln_buffer_fields f = pln_buffer_fields_of(e->b->graph, buffer);
    pln_ref data = f.data, extent = f.shape[0];
    body = pln_emit_decl_buffer(e, buffer, body);
    body = pln_emit_allocate(e, data, pln_emit_type_of(e, buffer), 1, &extent,
                             body);
  }
  return body;
}

static bool is_left_var(const pln_graph *g, pln_ref reducer, uint32_t n,
                        pln_ref ref) {
  for (uint32_t k = 0; k < n; k++)
    if (pln_operand(g, reducer, k) == ref)
      return true;
  return false;
}

/* *out: result i of the reducer has one of the first `i` left variables, whose
 * elements are stored before. */
static pln_status needs_stored(lowering *x, pln_ref reducer, uint32_t i,
                               bool *out) {
  const pln_graph *g = x->g;
  uint32_t n = 1, stamp = ++x->stamp;
  x->stack[0] = pln_operand(g, reducer, g->nodes[reducer].count / 2 + i);
  while (n > 0) {
    pln_ref ref = x->stack[--n];
    if (x->seen[ref] == stamp)
      continue;
    x->seen[ref] = stamp;
    *out |= is_left_var(g, reducer, i, ref);
    PLN_TRY(pln_mem_grow(g->engine, (void **)&x->stack, &x->cap_stack,
                         (size_t)n + g->nodes[ref].count, sizeof *x->stack));
    for (uint32_t k = 0; k < g->nodes[ref].count; k++)
      x->stack[n++] = pln_operand(g, ref, k);
  }
  return PLN_OK;
}

static pln_status find_overlap(lowering *x, pln_allreduce *r) {
  for (uint32_t i = 1; i < r->size; i++)
    PLN_TRY(needs_stored(x, r->reducer, i, &r->overlaps));
  return PLN_OK;
}

/* ------------------------------------------------------------------- threads
 */

static pln_slice tag_of(const pln_graph *g, pln_ref attr) {
  const pln_node *iter = &g->nodes[pln_operand(g, attr, 0)];
  return pln_attrs_string(g->engine, iter->attrs, "thread_tag", "");
}

static bool starts_with(pln_slice text, const char *prefix) {
  size_t n = strlen(prefix);
  return text.size >= n && memcmp(text.data, prefix, n) == 0;
}

static bool is_virtual(const pln_graph *g, pln_ref attr) {
  pln_slice tag = tag_of(g, attr);
  return starts_with(tag, "vthread") || starts_with(tag, "cthread");
}

static bool is_thread(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_ATTR_STMT &&
         pln_binds_thread(g, &g->nodes[stmt]);
}

/* The axis of "threadIdx.y", or NULL. */
static thread_axis *axis_of(lowering *x, pln_ref attr) {
  pln_slice tag = tag_of(x->g, attr);
  if (tag.size != 11 || !starts_with(tag, "threadIdx."))
    return NULL;
  int axis = tag.data[10] - 'x';
  return axis >= 0 && axis < MOST_AXES ? &x->axes[axis] : NULL;
}

static void enter_thread(lowering *x, pln_ref attr) {
  thread_axis *axis = axis_of(x, attr);
  pln_ref extent = pln_operand(x->g, attr, 1);
  x->virtual_threads += is_virtual(x->g, attr);
  if (!axis || axis->attr != PLN_NONE)
    return;
  axis->attr = attr;
  axis->var = pln_operand(x->g, pln_operand(x->g, attr, 0), 0);
  axis->extent =
      x->g->nodes[extent].kind == PLN_INT_IMM ? pln_node_int(x->g, extent) : -1;
}

static void leave_thread(lowering *x, pln_ref attr) {
  thread_axis *axis = axis_of(x, attr);
  if (axis && axis->attr == attr)
    axis->attr = PLN_NONE;
  x->virtual_threads -= is_virtual(x->g, attr);
}

/* ------------------------------------------------------------ the reduction
 */

static pln_status refuse(const lowering *x, const char *what) {
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.LowerThreadAllreduce: %s", what);
}

/* T.tvm_thread_allreduce(size, values..., condition, results..., threads...) */
static bool is_allreduce(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_EVALUATE &&
         pln_is_call_of(&g->nodes[pln_operand(g, stmt, 0)],
                        "tvm_thread_allreduce");
}

static pln_status read_size(const lowering *x, pln_ref call, uint32_t *size) {
  const pln_node *n = &x->g->nodes[call];
  pln_ref first = n->count > 0 ? pln_operand(x->g, call, 0) : PLN_NONE;
  if (first == PLN_NONE || x->g->nodes[first].kind != PLN_INT_IMM ||
      pln_node_int(x->g, first) < 1 ||
      pln_node_int(x->g, first) > ((int64_t)n->count - 2) / 2)
    return refuse(x, "the number of values of T.tvm_thread_allreduce is not "
                     "that of its arguments");
  *size = (uint32_t)pln_node_int(x->g, first);
  if (*size > PLN_MOST_REDUCED)
    return pln_diag_error(x->g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.LowerThreadAllreduce: more than %d values are "
                          "reduced together",
                          PLN_MOST_REDUCED);
  return PLN_OK;
}

/* The Buffer that result `i` is stored to; loads of bool may have a Cast. */
static pln_status result_buffer(const lowering *x, pln_ref call, uint32_t size,
                                uint32_t i, pln_ref *out) {
  pln_ref load = pln_operand(x->g, call, 2 + size + i);
  if (x->g->nodes[load].kind == PLN_PRIM_CAST)
    load = pln_operand(x->g, load, 0);
  if (x->g->nodes[load].kind != PLN_BUFFER_LOAD)
    return refuse(x, "a result of T.tvm_thread_allreduce is no element of a "
                     "Buffer");
  *out = pln_operand(x->g, load, 0);
  return PLN_OK;
}

/* The result that memory of the old graph is, or NULL. */
static allreduce_result *result_of(const lowering *x, pln_ref data) {
  return x->result_of[data] ? &x->results[x->result_of[data] - 1] : NULL;
}

static bool is_reduced(const pln_graph *g, pln_ref call, uint32_t size,
                       pln_ref var) {
  for (uint32_t i = 2 + 2 * size; i < g->nodes[call].count; i++)
    if (pln_operand(g, call, i) == var)
      return true;
  return false;
}

/* The simplifier puts 0 for the variable of a single thread. */
static pln_status check_threads(const lowering *x, pln_ref call,
                                uint32_t size) {
  for (uint32_t i = 2 + 2 * size; i < x->g->nodes[call].count; i++) {
    pln_ref thread = pln_operand(x->g, call, i);
    bool bound = pln_is_int(x->g, thread, 0);
    for (uint32_t k = 0; k < MOST_AXES; k++)
      bound |= x->axes[k].attr != PLN_NONE && x->axes[k].var == thread;
    if (!bound)
      return refuse(x, "a thread to reduce over is not bound around it");
  }
  return x->virtual_threads > 0
             ? refuse(x, "virtual threads cannot reduce across threads")
             : PLN_OK;
}

/* index + var * extent, and the extent of both. */
static void add_axis(pln_allreduce *r, const thread_axis *axis, pln_ref *index,
                     int64_t *extent) {
  pln_emit *e = &r->e;
  pln_ref var = PLN_NONE;
  if (e->status == PLN_OK)
    e->status = pln_stmt_map(r->s, axis->var, &var);
  if (*index == PLN_NONE)
    *index = var;
  else
    *index = pln_emit_folded(
        e, PLN_PRIM_ADD, *index,
        pln_emit_folded(e, PLN_PRIM_MUL, var,
                        pln_emit_int_of(e, pln_emit_type_of(e, var), *extent)));
  *extent *= axis->extent;
}

/* Which threads reduce, and the number of each of them. Extents fit in 31 bits
 * together. */
static pln_status find_threads(const lowering *x, pln_allreduce *r,
                               pln_ref call) {
  bool contiguous = true;
  r->reduce_extent = r->group_extent = r->contiguous_extent = 1;
  r->reduce_index = r->group_index = PLN_NONE;
  for (uint32_t k = 0; k < MOST_AXES; k++) {
    const thread_axis *axis = &x->axes[k];
    if (axis->attr == PLN_NONE || axis->extent == 1)
      continue;
    if (axis->extent < 1 ||
        axis->extent > INT32_MAX / r->reduce_extent / r->group_extent)
      return refuse(x, "the extents of threads must be constants, whose "
                       "product is less than 2^31");
    bool reduced = is_reduced(x->g, call, r->size, axis->var);
    add_axis(r, axis, reduced ? &r->reduce_index : &r->group_index,
             reduced ? &r->reduce_extent : &r->group_extent);
    contiguous &= reduced;
    if (contiguous)
      r->contiguous_extent *= axis->extent;
  }
  if (r->reduce_index == PLN_NONE)
    r->reduce_index = pln_emit_int(&r->e, PLN_INT32, 0);
  if (r->group_index == PLN_NONE)
    r->group_index = pln_allreduce_index(r, 0);
  return r->e.status;
}

/* The value, or where the condition does not hold the reducer's identity. */
static pln_status map_values(const lowering *x, pln_allreduce *r,
                             pln_ref call) {
  pln_ref condition = pln_operand(x->g, call, 1 + r->size);
  for (uint32_t i = 0; i < r->size; i++) {
    pln_ref parts[3];
    PLN_TRY(pln_stmt_map(r->s, pln_operand(x->g, call, 1 + i), &parts[1]));
    r->values[i] = parts[1];
    r->types[i] = pln_stmt_node(r->s, parts[1])->type;
    if (pln_is_int(x->g, condition, 1))
      continue;
    PLN_TRY(pln_stmt_map(r->s, condition, &parts[0]));
    PLN_TRY(pln_stmt_map(r->s, pln_operand(x->g, r->reducer, 3 * r->size + i),
                         &parts[2]));
    r->values[i] = pln_emit_select(&r->e, parts[0], parts[1], parts[2]);
  }
  return r->e.status;
}

/* From here on the old memory is that of the result. */
static pln_status set_results(lowering *x, pln_allreduce *r, pln_ref call) {
  for (uint32_t i = 0; i < r->size; i++) {
    pln_ref buffer;
    PLN_TRY(result_buffer(x, call, r->size, i, &buffer));
    pln_ref data = pln_operand(x->g, buffer, 0);
    allreduce_result *result = result_of(x, data);
    if (result->reduced)
      return refuse(x, "two reductions have the same result");
    *result = (allreduce_result){
        .reduced = true,
        .moved = true,
        .shared = r->n_extents > 1 || r->reduce_extent > x->target.warp_size,
        .buffer = r->results[i],
        .index = r->result_index,
        .extents = {r->extents[0], r->extents[1]},
        .n_extents = r->n_extents};
    pln_stmt_bind(r->s, data, pln_operand(r->e.b->graph, r->results[i], 0));
    pln_stmt_bind(r->s, buffer, r->results[i]);
  }
  return PLN_OK;
}

/* One thread: its value is the result. */
static pln_status store_values(const lowering *x, pln_allreduce *r,
                               pln_ref call) {
  for (uint32_t i = 0; i < r->size; i++) {
    pln_ref buffer;
    PLN_TRY(result_buffer(x, call, r->size, i, &buffer));
    result_of(x, pln_operand(x->g, buffer, 0))->reduced = true;
    PLN_TRY(pln_stmt_map(r->s, buffer, &buffer));
    pln_allreduce_push(r, pln_emit_store(&r->e, buffer,
                                         pln_emit_int(&r->e, PLN_INT32, 0),
                                         r->values[i]));
  }
  return r->e.status;
}

static pln_status reduce(lowering *x, pln_allreduce *r, pln_ref call,
                         pln_ref *node) {
  PLN_TRY(check_threads(x, call, r->size));
  PLN_TRY(map_values(x, r, call));
  PLN_TRY(find_threads(x, r, call));
  if (r->reduce_extent == 1) {
    PLN_TRY(store_values(x, r, call));
  } else {
    if (pln_is_warp_allreduce(r))
      pln_warp_allreduce(r);
    else
      pln_shared_allreduce(r);
    PLN_TRY(r->e.status);
    PLN_TRY(set_results(x, r, call));
  }
  *node = allocate_locals(r);
  return r->e.status;
}

static pln_status lower_allreduce(lowering *x, pln_stmt_rewrite *s,
                                  pln_ref stmt, pln_ref *node) {
  pln_ref call = pln_operand(x->g, stmt, 0);
  pln_allreduce r = {.s = s,
                     .e = {.b = pln_stmt_builder(s)},
                     .a = x->a,
                     .target = &x->target,
                     .reducer = x->reducer};
  PLN_TRY(read_size(x, call, &r.size));
  if (x->reducer == PLN_NONE || x->g->nodes[x->reducer].count != 4 * r.size)
    return refuse(x, "no reducer of as many values is around "
                     "T.tvm_thread_allreduce");
  PLN_TRY(find_overlap(x, &r));
  pln_status status = reduce(x, &r, call, node);
  pln_mem_free(x->g->engine, r.stmts, r.cap * sizeof *r.stmts);
  pln_mem_free(x->g->engine, r.locals, r.cap_locals * sizeof *r.locals);
  return status;
}

/* ---------------------------------------------------------------- callbacks */

static bool is_reduce_scope(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_ATTR_STMT &&
         pln_slice_is(
             pln_attrs_string(g->engine, g->nodes[stmt].attrs, "attr_key", ""),
             "reduce_scope") &&
         g->nodes[pln_operand(g, stmt, 0)].kind == PLN_COMM_REDUCER;
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  lowering *x = ud;
  return is_allreduce(x->g, stmt) ? lower_allreduce(x, s, stmt, node) : PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  lowering *x = ud;
  (void)s;
  (void)k;
  (void)skip;
  if (is_thread(x->g, stmt))
    enter_thread(x, stmt);
  if (is_reduce_scope(x->g, stmt))
    x->reducer = pln_operand(x->g, stmt, 0);
  return PLN_OK;
}

static pln_status map_load(void *ud, pln_stmt_rewrite *s, pln_ref old,
                           pln_ref *node) {
  const lowering *x = ud;
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (x->g->nodes[old].kind != PLN_BUFFER_LOAD)
    return PLN_OK;
  const allreduce_result *result =
      result_of(x, pln_operand(x->g, pln_operand(x->g, old, 0), 0));
  if (result && !result->reduced)
    return refuse(x, "a result is read before its reduction");
  if (!result || !result->moved)
    return PLN_OK;
  for (uint32_t i = 1; i < x->g->nodes[old].count; i++)
    if (!pln_is_int(x->g, pln_operand(x->g, old, i), 0))
      return refuse(x, "an element of a result is read that is not the first");
  *node = pln_emit_load(&e, result->buffer, result->index);
  return e.status;
}

/* One thread's result may be written again: only it reads it. */
static pln_status check_store(const lowering *x, pln_ref store) {
  const allreduce_result *result =
      result_of(x, pln_operand(x->g, pln_operand(x->g, store, 0), 0));
  if (!result || (result->reduced && !result->shared))
    return PLN_OK;
  return refuse(x, result->reduced
                       ? "what a reduction wrote is written again"
                       : "a result is written before its reduction");
}

static pln_status lower_allocate(const lowering *x, pln_stmt_rewrite *s,
                                 pln_ref stmt, pln_ref *node) {
  const allreduce_result *result = result_of(x, pln_stmt_param(s, stmt, 0, 0));
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (!result || !result->moved)
    return PLN_OK;
  pln_ref data = pln_operand(e.b->graph, result->buffer, 0);
  pln_ref body = pln_stmt_body(s, 0);
  if (result->shared)
    body = pln_emit_attr(&e, data, "volatile_scope",
                         pln_emit_int(&e, PLN_INT32, 1), body);
  *node = pln_emit_allocate(&e, data, pln_emit_type_of(&e, result->buffer),
                            result->n_extents, result->extents, body);
  return e.status;
}

static pln_status lower_decl(const lowering *x, pln_stmt_rewrite *s,
                             pln_ref stmt, pln_ref *node) {
  pln_ref buffer = pln_operand(x->g, stmt, 0);
  const allreduce_result *result = result_of(x, pln_operand(x->g, buffer, 0));
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (!result || !result->moved)
    return PLN_OK;
  PLN_TRY(pln_stmt_map(s, buffer, &buffer));
  *node = pln_emit_decl_buffer(&e, buffer, pln_stmt_body(s, 0));
  return e.status;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  lowering *x = ud;
  if (is_thread(x->g, stmt))
    leave_thread(x, stmt);
  if (is_reduce_scope(x->g, stmt))
    x->reducer = PLN_NONE;
  switch (x->g->nodes[stmt].kind) {
  case PLN_BUFFER_STORE: return check_store(x, stmt);
  case PLN_ALLOCATE: return lower_allocate(x, s, stmt, node);
  case PLN_DECL_BUFFER: return lower_decl(x, s, stmt, node);
  default: return PLN_OK;
  }
}

/* ------------------------------------------------------------------- the pass
 */

/* Numbers the memory that reductions write. */
static pln_status number_results(lowering *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++) {
    uint32_t size;
    if (!is_allreduce(x->g, ref))
      continue;
    PLN_TRY(read_size(x, pln_operand(x->g, ref, 0), &size));
    for (uint32_t i = 0; i < size; i++) {
      pln_ref buffer = PLN_NONE;
      PLN_TRY(result_buffer(x, pln_operand(x->g, ref, 0), size, i, &buffer));
      pln_ref data = pln_operand(x->g, buffer, 0);
      if (!x->result_of[data])
        x->result_of[data] = ++x->n_results;
    }
  }
  return PLN_OK;
}

static pln_status read_target(lowering *x) {
  pln_attrs target = pln_target_of(x->g);
  const pln_engine *e = x->g->engine;
  if (!target)
    return refuse(x, "the function has a reduction over threads, and no "
                     "target; run tir.BindTarget before");
  x->target.kind = pln_attrs_string(e, target, "kind", "");
  x->target.warp_size = pln_attrs_int(e, target, "thread_warp_size", 1);
  x->target.max_num_threads = pln_attrs_int(e, target, "max_num_threads", -1);
  if (x->target.warp_size < 1 || x->target.warp_size > 64)
    return refuse(x, "the target's thread_warp_size is not from 1 to 64");
  return PLN_OK;
}

static pln_status lower(lowering *x, pln_pass_run *run) {
  pln_stmt_mutator mutator = {.ud = x,
                              .expr = map_load,
                              .enter = enter_stmt,
                              .enter_body = enter_body,
                              .leave = leave_stmt};
  PLN_TRY(number_results(x));
  if (x->n_results == 0)
    return PLN_OK;
  PLN_TRY(read_target(x));
  x->results = pln_mem_zeroed(x->g->engine, x->n_results * sizeof *x->results);
  x->seen = pln_mem_zeroed(x->g->engine, x->g->n_nodes * sizeof *x->seen);
  if (!x->results || !x->seen)
    return pln_nomem(x->g->engine);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->stack, &x->cap_stack, 1,
                       sizeof *x->stack));
  PLN_TRY(pln_analyzer_new(x->g->engine, &x->a));
  return pln_lower_function(run, &mutator);
}

pln_status pln_pass_tir_lower_thread_allreduce(pln_pass_run *run) {
  lowering x = {.g = pln_run_function(run), .reducer = PLN_NONE};
  pln_engine *e = x.g->engine;
  for (uint32_t k = 0; k < MOST_AXES; k++)
    x.axes[k].attr = PLN_NONE;
  x.result_of = pln_mem_zeroed(e, x.g->n_nodes * sizeof *x.result_of);
  if (!x.result_of)
    return pln_nomem(e);
  pln_status status = lower(&x, run);
  if (x.a)
    pln_analyzer_free(x.a);
  pln_mem_free(e, x.seen, x.g->n_nodes * sizeof *x.seen);
  pln_mem_free(e, x.stack, x.cap_stack * sizeof *x.stack);
  pln_mem_free(e, x.results, x.n_results * sizeof *x.results);
  pln_mem_free(e, x.result_of, x.g->n_nodes * sizeof *x.result_of);
  return status;
}
