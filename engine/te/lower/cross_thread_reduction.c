/* cross_thread_reduction.c: a reduction of which an axis is bound to threads:
 * each thread combines its part, and tvm_thread_allreduce the threads' parts.
 *
 * Called by provide.c for such stages.
 *
 *     for i in threadIdx.x(32): reduce_temp[0] = allreduce(A[i]); B[0] = ...
 *
 * Reduction axes that are not bound are loops of the thread, which combines
 * into a variable of its own. So it does where the loops pass the bounds, from
 * the identity element on. Definition: TVM 0.14,
 * src/te/operation/cross_thread_reduction.cc, which forgets the bounds of
 * threads without such loops. */

#include <stdio.h>

#include "te/te.h"

typedef struct thread_reduction {
  pln_te_state *s;
  pln_te_nest *nest;
  pln_te_reduce r;
  pln_term reduce;
  pln_term *results; /* Buffers of one element: what all threads have */
  pln_term *parts;   /* what this thread has; NULL: its operand itself */
  pln_term zero;
  pln_te_list bounds; /* conditions on the axes that are not reduced */
} thread_reduction;

static bool is_reduction(const pln_te_state *s, uint32_t loop) {
  return s->axes[loop].type == PLN_ITER_COMM_REDUCE;
}

static bool is_across_threads(const pln_te_state *s, uint32_t loop) {
  return is_reduction(s, loop) && s->axes[loop].bind != PLN_NONE;
}

static bool is_serial(const pln_te_state *s, uint32_t loop) {
  return is_reduction(s, loop) && s->axes[loop].bind == PLN_NONE;
}

bool pln_te_reduces_across_threads(const pln_te_state *s, uint32_t stage) {
  const pln_te_list *leaves = &s->stages[stage].leaves;
  for (uint32_t i = 0; i < leaves->n; i++)
    if (is_across_threads(s, leaves->items[i]))
      return true;
  return false;
}

static pln_status refuse(const thread_reduction *x, uint32_t loop,
                         const char *why) {
  return pln_diag_error(
      x->s->engine, PLN_ERR_ARGUMENT, NULL,
      "schedule: the reduction axis '%s' of stage '%s' is bound to threads; %s",
      pln_te_axis_name(x->s, loop), pln_te_stage_name(x->s, x->nest->stage),
      why);
}

/* *serial: there are reduction axes that are loops. */
static pln_status check(const thread_reduction *x, bool *serial) {
  const pln_te_state *s = x->s;
  const pln_te_list *leaves = &s->stages[x->nest->stage].leaves;
  uint32_t threads = PLN_NONE;
  *serial = false;
  for (uint32_t i = 0; i < leaves->n; i++) {
    uint32_t loop = leaves->items[i];
    *serial |= is_serial(s, loop);
    if (is_across_threads(s, loop))
      threads = loop;
    else if (threads != PLN_NONE && !is_reduction(s, loop))
      return refuse(x, threads,
                    "axes that are not reduced must come before it");
  }
  if (x->r.n_inits > 0)
    return refuse(x, threads, "a reduction across threads has no init");
  return PLN_OK;
}

/* ----------------------------------------------------------------- variables
 */

/* NAME0, NAME1, ...: a Buffer of one element for each output. */
static pln_status make_buffers(const thread_reduction *x, const char *name,
                               pln_term **out) {
  pln_te_state *s = x->s;
  pln_term one = pln_term_int(s->a, PLN_INT32, 1, 1);
  *out = pln_arena_new(&s->arena, x->r.n_sources * sizeof **out);
  if (!*out)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < x->r.n_sources; i++) {
    pln_term source = pln_term_operand(s->a, x->reduce, x->r.source + i);
    char text[48];
    pln_symbol symbol;
    pln_type type;
    (void)snprintf(text, sizeof text, "%s%u", name, i);
    PLN_TRY(pln_symbol_intern(s->engine, pln_text(text), &symbol));
    PLN_TRY(pln_type_prim(s->engine, pln_te_dtype(s, source), 1, &type));
    PLN_TRY(pln_te_buffer_new(s, symbol, type, pln_text("local"), 1, &one, 0,
                              NULL, 0, &(*out)[i]));
  }
  return s->a->status;
}

static pln_term load(const thread_reduction *x, pln_term buffer) {
  return pln_te_load_buffer(x->s, buffer, &x->zero);
}

static pln_status allocate(const thread_reduction *x, pln_term buffer,
                           pln_ref *stmt) {
  pln_te_state *s = x->s;
  pln_term terms[2] = {pln_term_bool(s->a, true),
                       pln_term_operand(s->a, buffer, 1)};
  pln_te_stmt spec = {.kind = PLN_ALLOCATE,
                      .n = 2,
                      .terms = terms,
                      .param = pln_term_operand(s->a, buffer, 0),
                      .body = *stmt};
  pln_attr dtype = {.kind = PLN_ATTR_STRING};
  dtype.v.s = pln_text(pln_dtype_name(pln_te_dtype(s, load(x, buffer))));
  PLN_TRY(pln_symbol_intern(s->engine, pln_text("dtype"), &dtype.name));
  PLN_TRY(pln_attrs_make(s->engine, 1, &dtype, &spec.attrs));
  return pln_te_build(s, &spec, stmt);
}

static pln_status allocate_all(const thread_reduction *x, pln_ref *stmt) {
  for (uint32_t i = x->r.n_sources; i-- > 0;) {
    PLN_TRY(allocate(x, x->results[i], stmt));
    if (x->parts)
      PLN_TRY(allocate(x, x->parts[i], stmt));
  }
  return PLN_OK;
}

/* buffers[i][0] = values[i] for each output. */
static pln_status store_all(const thread_reduction *x, const pln_term *buffers,
                            const pln_term *values, pln_ref *out) {
  pln_te_state *s = x->s;
  *out = PLN_NONE;
  for (uint32_t i = 0; i < x->r.n_sources; i++) {
    pln_term terms[3] = {buffers[i], pln_te_in_program(s, x->nest, values[i]),
                         x->zero};
    pln_te_stmt spec = {
        .kind = PLN_BUFFER_STORE, .n = 3, .terms = terms, .body = PLN_NONE};
    pln_ref one;
    PLN_TRY(pln_te_build(s, &spec, &one));
    PLN_TRY(pln_te_build_seq(s, *out, one, out));
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- statements
 */

static pln_status guard(const thread_reduction *x, pln_term condition,
                        pln_ref *stmt) {
  condition = pln_te_in_program(x->s, x->nest, condition);
  pln_te_stmt test = {
      .kind = PLN_IF_THEN_ELSE, .n = 1, .terms = &condition, .body = *stmt};
  return pln_te_build(x->s, &test, stmt);
}

/* A loop, and the stages that are attached to it, around a statement. */
static pln_status wrap(const thread_reduction *x, uint32_t i, pln_ref *stmt) {
  uint32_t loop = x->s->stages[x->nest->stage].leaves.items[i];
  PLN_TRY(pln_te_attach_users(x->s, x->nest->stage, loop, stmt));
  return pln_te_nest_wrap(x->s, x->nest, i, stmt);
}

/* This thread's part: the identity, then what its loops combine with it. */
static pln_status reduce_serially(const thread_reduction *x, pln_ref *out) {
  pln_te_state *s = x->s;
  uint32_t n = x->r.n_sources;
  const pln_te_list *leaves = &s->stages[x->nest->stage].leaves;
  pln_term *old = pln_arena_new(&s->arena, 2 * n * sizeof *old), *values;
  pln_ref init, update;
  if (!old)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n; i++) {
    old[i] = load(x, x->parts[i]);
    old[n + i] = pln_term_operand(s->a, x->r.combiner, 3 * n + i);
  }
  values = pln_te_combine(s, &x->r, x->reduce, old);
  if (!values)
    return pln_nomem(s->engine);
  PLN_TRY(store_all(x, x->parts, old + n, &init));
  PLN_TRY(store_all(x, x->parts, values, &update));
  if (!pln_is_value(s->a, x->r.condition, 1))
    PLN_TRY(guard(x, x->r.condition, &update));
  PLN_TRY(pln_te_nest_guard(s, x->nest, &update));
  for (uint32_t i = leaves->n; i-- > 0;)
    if (is_serial(s, leaves->items[i]))
      PLN_TRY(wrap(x, i, &update));
  return pln_te_build_seq(s, init, update, out);
}

/* tvm_thread_allreduce(n, operands..., true, results..., threads...) */
static pln_status all_reduce(const thread_reduction *x, pln_ref *out) {
  pln_te_state *s = x->s;
  uint32_t n = x->r.n_sources, at = 0;
  const pln_te_list *leaves = &s->stages[x->nest->stage].leaves;
  pln_term *args =
      pln_arena_new(&s->arena, (2 + 2 * n + leaves->n) * sizeof *args);
  if (!args)
    return pln_nomem(s->engine);
  args[at++] = pln_term_int(s->a, PLN_UINT32, 1, n);
  for (uint32_t i = 0; i < n; i++)
    args[at++] = x->parts ? load(x, x->parts[i])
                          : pln_term_operand(s->a, x->reduce, x->r.source + i);
  args[at++] = pln_term_bool(s->a, true);
  for (uint32_t i = 0; i < n; i++)
    args[at++] = load(x, x->results[i]);
  for (uint32_t i = 0; i < leaves->n; i++)
    if (is_across_threads(s, leaves->items[i]))
      args[at++] = s->axes[s->axes[leaves->items[i]].bind].var;
  pln_term call = pln_te_in_program(
      s, x->nest, pln_te_call(s, "tvm_thread_allreduce", at, args));
  pln_term null = pln_term_int(s->a, PLN_UINT64, 1, 0);
  pln_te_stmt spec = {
      .kind = PLN_EVALUATE, .n = 1, .terms = &call, .body = PLN_NONE};
  PLN_TRY(pln_te_build(s, &spec, out));
  return pln_te_build_attr(s, x->r.combiner, "reduce_scope",
                           pln_te_call(s, "reinterpret", 1, &null), *out, out);
}

/* The outputs are the results, under the store's predicate. */
static pln_status assign(const thread_reduction *x, pln_ref *out) {
  pln_te_state *s = x->s;
  pln_term predicate = s->stages[x->nest->stage].predicate;
  pln_term *values = pln_arena_new(&s->arena, x->r.n_sources * sizeof *values);
  if (!values)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < x->r.n_sources; i++)
    values[i] = load(x, x->results[i]);
  PLN_TRY(pln_te_stores(s, x->nest, values, x->r.n_sources, out));
  for (uint32_t i = x->bounds.n; i-- > 0;)
    PLN_TRY(guard(x, pln_te_likely(s, x->bounds.items[i]), out));
  PLN_TRY(guard(x, x->r.condition, out));
  return predicate ? guard(x, predicate, out) : PLN_OK;
}

static pln_status provide(thread_reduction *x, bool serial) {
  pln_te_state *s = x->s;
  const pln_te_list *leaves = &s->stages[x->nest->stage].leaves;
  pln_ref part = PLN_NONE, all, stmt;
  PLN_TRY(make_buffers(x, "reduce_temp", &x->results));
  if (serial || x->nest->guards.n > 0) {
    PLN_TRY(make_buffers(x, "normal_reduce_temp", &x->parts));
    PLN_TRY(reduce_serially(x, &part));
  }
  PLN_TRY(all_reduce(x, &all));
  PLN_TRY(assign(x, &stmt));
  PLN_TRY(pln_te_build_seq(s, all, stmt, &stmt));
  PLN_TRY(pln_te_build_seq(s, part, stmt, &stmt));
  PLN_TRY(allocate_all(x, &stmt));
  for (uint32_t i = leaves->n; i-- > 0;)
    if (!is_serial(s, leaves->items[i]))
      PLN_TRY(wrap(x, i, &stmt));
  s->stages[x->nest->stage].stmt = stmt;
  return PLN_OK;
}

pln_status pln_te_provide_across_threads(pln_te_state *s, pln_te_nest *nest) {
  pln_term reduce = s->stages[nest->stage].body.items[0];
  thread_reduction x = {.s = s,
                        .nest = nest,
                        .r = pln_te_reduce_of(s, reduce),
                        .reduce = reduce,
                        .zero = pln_term_int(s->a, PLN_INT32, 1, 0)};
  pln_te_list reduced = {0};
  uint32_t first;
  bool serial;
  PLN_TRY(check(&x, &serial));
  PLN_TRY(pln_te_find_init(s, nest->stage, &first, &reduced));
  PLN_TRY(pln_te_bounded_nest(s, nest));
  PLN_TRY(pln_te_bound_check(s, nest->stage, false, &reduced, &x.bounds));
  return provide(&x, serial);
}
