/* loop.c: writes loops, also those over threads of a device, which run one
 * after the other.
 *
 * Called by stmt.c. A loop runs max(extent, 0) times; its bounds are computed
 * once. */

#include "codegen/bounds.h"
#include "codegen/guard.h"
#include "codegen/writer.h"

enum { FOR_PARALLEL = 1, FOR_UNROLLED = 3, MOST_UNROLLED = 64 };

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

pln_ref pln_c_loop_var(const pln_cw *w, pln_ref loop) {
  return w->g->scopes[w->g->nodes[loop].data].begin;
}

int64_t pln_c_rounds(const pln_cw *w, pln_ref loop) {
  const pln_node *n = &w->g->nodes[loop];
  const pln_node *extent = &w->g->nodes[refs_of(w, loop)[1]];
  bool is_serial =
      n->count == 2 && pln_attrs_int(w->engine, n->attrs, "kind", 0) == 0;
  return is_serial && extent->kind == PLN_INT_IMM
             ? (int64_t)pln_imm_bits(extent)
             : 0;
}

/* ------------------------------------------------------------------ headers */

/* The variable's value while the loop runs. */
static pln_c_value index_value(pln_cw *w, pln_dtype dtype, const char *name,
                               const pln_c_value *min,
                               const pln_c_value *extent) {
  pln_c_value out =
      pln_c_scalar(w, dtype, pln_c_textf(w, PLN_C_NAME, "%s", name));
  pln_c_value last = *extent;
  int64_t lo, hi;
  last.lo = 0;
  last.hi = extent->hi > 0 ? extent->hi - 1 : 0;
  if (pln_c_bounds(PLN_PRIM_ADD, dtype, min, &last, &lo, &hi)) {
    out.lo = lo;
    out.hi = hi;
  }
  return out;
}

static bool loop_is_empty(const pln_c_value *extent) {
  return extent->hi <= 0;
}

/* `for (T i = min; i < end; i++)`, or the same with labels. `once`: it has one
 * round at the most, and compilers shall not make vectors of several. */
static void open_counted(pln_cw *w, pln_c_task *task, const char *type,
                         const char *name, const char *min, const char *end,
                         bool once) {
  if (once && !task->flat) {
    pln_c_line(w, "if (%s < %s) {", min, end);
    w->depth++;
    pln_c_line(w, "const %s %s = %s;", type, name, min);
    return;
  }
  if (w->tile.rounds && task->ref == w->tile.outer) {
    pln_c_open_tiles(w, type, name);
    return;
  }
  if (w->tile.rounds && task->ref == w->tile.inner) {
    pln_c_open_tile(w, type, name, end);
    return;
  }
  if (!task->flat) {
    pln_c_line(w, "for (%s %s = %s; %s < %s; %s++) {", type, name, min, name,
               end, name);
    w->depth++;
    return;
  }
  pln_c_line(w, "%s %s = %s;", type, name, min);
  pln_c_line(w, "L%u:;", task->x);
  pln_c_line(w, "if (!(%s < %s))", name, end);
  pln_c_line(w, "  goto L%u;", task->x + 1);
}

/* The index may wrap: the rounds are counted. */
static void open_wrapping(pln_cw *w, pln_c_task *task, pln_dtype dtype,
                          const char *name, const char *min,
                          const char *extent) {
  const char *type = pln_c_type_name(dtype);
  const char *wide = pln_c_bytes(dtype) > 4 ? "uint64_t" : "uint32_t";
  const char *left = pln_c_temp(w);
  pln_c_line(w, "%s %s = %s;", type, name, min);
  if (!task->flat) {
    pln_c_line(w,
               "for (int64_t %s = %s; %s > 0; %s--, %s = (%s)((%s)%s + 1)) {",
               left, extent, left, left, name, type, wide, name);
    w->depth++;
    return;
  }
  pln_c_line(w, "int64_t %s = %s;", left, extent);
  pln_c_line(w, "L%u:;", task->x);
  pln_c_line(w, "if (%s-- <= 0)", left);
  pln_c_line(w, "  goto L%u;", task->x + 1);
  task->k |= 2; /* see close */
}

/* Loops that say so are unrolled, and those whose rounds move the bounds of a
 * loop inside of them: each of these then has constant bounds, and compilers
 * write its last rounds as vectors of less lanes. A padded convolution of rows
 * of 56 elements takes 3.1 ms in place of 4.2. */
static void unroll_hint(pln_cw *w, pln_ref ref, const pln_c_value *extent) {
  const pln_node *n = &w->g->nodes[ref];
  if (n->kind != PLN_FOR || extent->lo != extent->hi || extent->hi <= 1 ||
      extent->hi > MOST_UNROLLED)
    return;
  if (pln_attrs_int(w->engine, n->attrs, "kind", 0) != FOR_UNROLLED &&
      !pln_c_moves_bounds(w, ref))
    return;
  w->uses_unroll = true;
  pln_c_line(w, "PL_UNROLL(%lld)", (long long)extent->hi);
}

static bool is_parallel(const pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  return n->kind == PLN_FOR &&
         pln_attrs_int(w->engine, n->attrs, "kind", 0) == FOR_PARALLEL;
}

/* Whether min + extent stays in the dtype, or the loop counts from 0. */
static bool counts_up(pln_dtype dtype, const pln_c_value *min,
                      const pln_c_value *extent) {
  int64_t lo, hi;
  return pln_c_bounds(PLN_PRIM_ADD, dtype, min, extent, &lo, &hi) ||
         (min->lo == 0 && min->hi == 0);
}

/* A loop that is written in parts, see guard.c: `first` is 1 + the number of
 * the four values where parts begin and end, `at` the guards that hold inside,
 * `end` which part is written. */
enum { PART_BEFORE = 1, PART_INSIDE, PART_BEHIND };

static void assume_guards(pln_cw *w, const pln_c_task *task, bool holds) {
  pln_c_guards guards;
  (void)pln_c_find_guards(w, task->ref, &guards);
  for (uint32_t i = 0; i < guards.n; i++)
    if (task->at >> i & 1)
      w->assumed[guards.list[i].condition] = holds;
}

static bool is_empty(const pln_c_value *first, const pln_c_value *end) {
  return first->lo == first->hi && end->lo == end->hi && first->lo >= end->lo;
}

static bool runs_once(const pln_c_value *first, const pln_c_value *end) {
  int64_t rounds;
  return !__builtin_sub_overflow(end->hi, first->lo, &rounds) && rounds <= 1;
}

/* Where the next part that may have rounds begins and ends. */
static bool next_part(pln_cw *w, pln_c_task *task, const pln_c_value **first,
                      const pln_c_value **end) {
  do {
    if (task->end == PART_BEHIND || w->status != PLN_OK)
      return false;
    *first = &w->values[task->first - 1 + task->end++];
    *end = *first + 1;
  } while (is_empty(*first, *end));
  assume_guards(w, task, task->end == PART_INSIDE);
  return true;
}

/* The bounds of the first part. */
static pln_c_value begin_parts(pln_cw *w, pln_c_task *task, pln_c_value *min,
                               const pln_c_value *changes, uint32_t mask) {
  const pln_c_value *first, *end;
  task->first = pln_c_keep(w, *min);
  for (uint32_t i = 0; i < 3; i++)
    (void)pln_c_keep(w, changes[i]);
  task->at = mask;
  if (!next_part(w, task, &first, &end))
    return *min; /* no round */
  *min = *first;
  return *end;
}

/* The end of a loop that counts up; guards around all of its body become part
 * of its bounds, others may cut it in parts. */
static pln_c_value counted_end(pln_cw *w, pln_c_task *task, pln_c_value *min,
                               pln_c_value extent, pln_c_value index) {
  pln_c_guards guards;
  pln_c_value end = pln_c_named(w, pln_c_offset(w, PLN_PRIM_ADD, *min, extent));
  pln_c_value first = *min, last = end;
  uint32_t mask = 0;
  task->end = 0;
  if (task->flat || !pln_c_find_guards(w, task->ref, &guards))
    return end;
  pln_c_narrow(w, &guards, index, &first, &last, &mask);
  if (guards.stmt == PLN_NONE && mask)
    return begin_parts(w, task, min, (pln_c_value[]){first, last, end}, mask);
  if (guards.stmt == PLN_NONE)
    return end;
  w->assumed[guards.stmt] = mask == (1u << guards.n) - 1;
  *min = first;
  return last;
}

static void set_labels(pln_cw *w, pln_c_task *task) {
  task->flat = w->depth >= PLN_C_MOST_NEST;
  if (task->flat) {
    task->x = w->n_labels;
    w->n_labels += 2;
  }
}

/* Opens a loop over the variable; the task is that of LEAVE. */
static void open_loop(pln_cw *w, pln_c_task *task, pln_ref var, pln_c_value min,
                      pln_c_value extent) {
  pln_dtype dtype = pln_prim_dtype(w->g, var);
  const char *type = pln_c_type_name(dtype);
  const char *name =
      pln_c_fresh_name(w, pln_symbol_text(w->engine, w->g->nodes[var].attrs));
  pln_c_value index = index_value(w, dtype, name, &min, &extent), end = min;
  min = pln_c_named(w, min);
  extent = pln_c_named(w, extent);
  task->y = pln_c_keep(w, index);
  bool shared = is_parallel(w, task->ref) &&
                pln_c_open_parallel(w, task, type, min, extent, name);
  pln_c_bind(w, var, index);
  if (shared) {
    pln_c_forget(w, task->mark);
    return;
  }
  set_labels(w, task);
  if (loop_is_empty(&extent))
    extent = pln_c_int_value(w, dtype, 0);
  bool counts = counts_up(dtype, &min, &extent);
  if (counts)
    end = counted_end(w, task, &min, extent, index);
  pln_c_forget(w, task->mark);
  const char *first = pln_c_text_at(w, &min, 0).data;
  if (counts && !task->flat && !task->end)
    unroll_hint(w, task->ref, &extent);
  if (counts)
    open_counted(w, task, type, name, first, pln_c_text_at(w, &end, 0).data,
                 task->end && runs_once(&min, &end));
  else
    open_wrapping(w, task, dtype, name, first,
                  pln_c_text_at(w, &extent, 0).data);
}

static void close_loop(pln_cw *w, pln_c_task *task) {
  const pln_c_value *index = &w->values[task->y - 1];
  const char *name = pln_c_text_at(w, index, 0).data;
  pln_dtype dtype = (pln_dtype)index->dtype;
  if (!task->flat) {
    bool in_tile = w->tile.rounds && task->ref == w->tile.inner;
    uint32_t n = 1u + in_tile + (in_tile && w->tile.columns);
    for (uint32_t i = 0; i < n; i++) {
      w->depth--;
      pln_c_line(w, "}");
    }
    if (task->ref == w->tile.outer)
      w->tile.rounds = 0;
    return;
  }
  if (task->k & 2)
    pln_c_line(w, "%s = (%s)((%s)%s + 1);", name, pln_c_type_name(dtype),
               pln_c_bytes(dtype) > 4 ? "uint64_t" : "uint32_t", name);
  else
    pln_c_line(w, "%s++;", name);
  pln_c_line(w, "goto L%u;", task->x);
  pln_c_line(w, "L%u:;", task->x + 1);
}

/* ----------------------------------------------------------------- threads */

static pln_symbol thread_tag(pln_cw *w, pln_ref iter) {
  pln_slice tag = pln_c_attr(w, &w->g->nodes[iter], "thread_tag");
  pln_symbol symbol = 0;
  /* Virtual threads are loops that share nothing but their name. */
  if (tag.size == 0 || (tag.size >= 7 && !memcmp(tag.data, "vthread", 7)))
    return 0;
  pln_c_fail(w, pln_symbol_intern(w->engine, tag, &symbol));
  return symbol;
}

static const pln_c_iter *find_iter(const pln_cw *w, pln_symbol tag) {
  for (uint32_t i = w->n_iters; tag && i-- > 0;)
    if (w->iters[i].tag == tag)
      return &w->iters[i];
  return NULL;
}

/* Another loop over the same thread has its index. Task k: 1 if a thread was
 * entered, 4 if no loop was opened. */
static void open_thread(pln_cw *w, pln_c_task *task, pln_ref var, pln_ref iter,
                        pln_c_value min, pln_c_value extent) {
  pln_symbol tag = thread_tag(w, iter);
  const pln_c_iter *outer = find_iter(w, tag);
  if (outer) {
    task->k = 4;
    pln_c_value value = outer->value;
    pln_c_bind(w, var, value);
    pln_c_bind(w, refs_of(w, iter)[0], value);
    return;
  }
  task->k = 0;
  open_loop(w, task, var, min, extent);
  if (w->status != PLN_OK)
    return;
  pln_c_value index = w->values[task->y - 1];
  pln_c_bind(w, refs_of(w, iter)[0], index);
  if (!tag)
    return;
  if (w->n_iters == PLN_C_MOST_THREAD_LOOPS) {
    pln_c_refuse(w, "too many loops over threads");
    return;
  }
  w->iters[w->n_iters++] = (pln_c_iter){tag, index};
  task->k |= 1;
}

void pln_c_for_body(pln_cw *w, pln_c_task task) {
  const pln_node *n = &w->g->nodes[task.ref];
  const pln_ref *o = refs_of(w, task.ref);
  pln_c_value min = pln_c_value_of(w, o[0]), extent = pln_c_value_of(w, o[1]);
  task.k = 0;
  pln_c_begin_sums(w, n->data);
  if (n->count > 2)
    open_thread(w, &task, pln_c_loop_var(w, task.ref), o[2], min, extent);
  else
    open_loop(w, &task, pln_c_loop_var(w, task.ref), min, extent);
  task.what = PLN_C_LEAVE;
  pln_c_push(w, task);
  pln_c_push_body(w, n->data);
}

/* Opens the next part of a loop, if there is one. */
static bool open_next_part(pln_cw *w, pln_c_task *task) {
  const pln_c_value *first, *end, *index = &w->values[task->y - 1];
  if (!task->end || !next_part(w, task, &first, &end)) {
    if (task->end)
      assume_guards(w, task, false);
    return false;
  }
  open_counted(w, task, pln_c_type_name((pln_dtype)index->dtype),
               pln_c_text_at(w, index, 0).data, pln_c_text_at(w, first, 0).data,
               pln_c_text_at(w, end, 0).data, runs_once(first, end));
  pln_c_push(w, *task);
  pln_c_push_body(w, w->g->nodes[task->ref].data);
  return true;
}

static void leave(pln_cw *w, pln_c_task task, pln_ref var) {
  if (task.k & 8)
    pln_c_close_parallel(w, &task);
  else if (!(task.k & 4))
    close_loop(w, &task);
  if (w->g->nodes[task.ref].kind == PLN_FOR && open_next_part(w, &task))
    return;
  w->n_iters -= task.k & 1;
  if (!(task.k & 4))
    pln_c_unbind(w, var);
}

void pln_c_for_leave(pln_cw *w, pln_c_task task) {
  leave(w, task, pln_c_loop_var(w, task.ref));
}

bool pln_c_opens_thread(const pln_cw *w, const pln_node *n) {
  return pln_binds_thread(w->g, n);
}

/* A thread that is bound already is not run through again. */
void pln_c_thread_body(pln_cw *w, pln_c_task task) {
  const pln_node *n = &w->g->nodes[task.ref];
  const pln_ref *o = refs_of(w, task.ref);
  pln_ref var = refs_of(w, o[0])[0];
  task.k = 4;
  if (!pln_c_is_bound(w, var))
    open_thread(w, &task, var, o[0],
                pln_c_int_value(w, pln_prim_dtype(w->g, var), 0),
                pln_c_value_of(w, o[1]));
  task.what = PLN_C_LEAVE;
  pln_c_push(w, task);
  pln_c_push_body(w, n->data);
}

void pln_c_thread_leave(pln_cw *w, pln_c_task task) {
  const pln_ref *o = refs_of(w, task.ref);
  leave(w, task, refs_of(w, o[0])[0]);
}
