/* virtual_thread_plan.c: finds what depends on a virtual thread
 * (virtual_thread_plan.h).
 *
 * Called by inject_virtual_thread.c. What is touched by the thread's variable
 * spreads from operands to users: a stored value or index touches the memory, a
 * value a variable, an extent an allocation. A statement whose own operands are
 * touched runs once for each thread, and so does all that is inside of it.
 *
 * Semantics: VarTouchedAnalysis and VTInjector of TVM's
 * inject_virtual_thread.cc. */

#include "lower/loop/virtual_thread_plan.h"

typedef struct dependences {
  pln_virtual_thread_plan *plan;
  const pln_graph *g;
  uint32_t *first; /* by node: its users, in `users` */
  pln_ref *users;
  pln_scope *scope_of;
  uint32_t *touched; /* by node: the last thread that touched it */
  uint8_t *inside;   /* by scope: what is in it runs for each thread */
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
} dependences;

static bool begins_with(pln_slice text, const char *prefix) {
  size_t size = strlen(prefix);
  return text.size >= size && memcmp(text.data, prefix, size) == 0;
}

static pln_slice thread_tag(const pln_graph *g, pln_ref stmt) {
  pln_ref thread = pln_operand(g, stmt, 0);
  return pln_attrs_string(g->engine, g->nodes[thread].attrs, "thread_tag", "");
}

bool pln_is_virtual_thread(const pln_graph *g, pln_ref stmt) {
  const pln_node *n = &g->nodes[stmt];
  if (n->kind != PLN_ATTR_STMT || !pln_binds_thread(g, n))
    return false;
  return begins_with(thread_tag(g, stmt), "vthread") ||
         begins_with(thread_tag(g, stmt), "cthread") ||
         pln_slice_is(pln_attrs_string(g->engine, n->attrs, "attr_key", ""),
                      "virtual_thread");
}

/* -------------------------------------------------------------------- users
 */

/* Calls for each pair of a node and what it touches when it is touched. */
typedef void (*edge_fn)(dependences *d, pln_ref from, pln_ref to);

static void count_edge(dependences *d, pln_ref from, pln_ref to) {
  (void)to;
  d->first[from + 1]++;
}

static void put_edge(dependences *d, pln_ref from, pln_ref to) {
  d->users[d->first[from]++] = to;
}

static bool is_access_ptr(const pln_node *n) {
  return n->kind == PLN_PRIM_CALL && n->data != 0 && n->count == 5 &&
         strcmp(pln_builtin_name(n->data), "tvm_access_ptr") == 0;
}

/* The pointer touches a call that reads through it; a touched call that writes
 * touches the memory. */
static void access_edges(dependences *d, pln_ref call, edge_fn edge) {
  const pln_graph *g = d->g;
  pln_ref data = pln_operand(g, call, 1), mask = pln_operand(g, call, 4);
  int64_t bits = g->nodes[mask].kind == PLN_INT_IMM ? pln_node_int(g, mask) : 3;
  if (bits & 1)
    edge(d, data, call);
  if (bits & 2)
    edge(d, call, data);
  edge(d, pln_operand(g, call, 2), call);
}

static void operand_edges(dependences *d, pln_ref ref, edge_fn edge) {
  const pln_node *n = &d->g->nodes[ref];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operand(d->g, ref, i);
    if (d->g->nodes[operand].kind != PLN_BUFFER)
      edge(d, operand, ref);
    else if (n->kind == PLN_BUFFER_LOAD)
      edge(d, pln_operand(d->g, operand, 0), ref);
  }
}

/* Writes of calls inside of an expression are touched by the whole of it. */
static void write_edges(dependences *d, pln_ref ref, edge_fn edge) {
  const pln_node *n = &d->g->nodes[ref];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operand(d->g, ref, i);
    if (d->g->nodes[operand].kind == PLN_PRIM_CALL)
      edge(d, ref, operand);
  }
}

static void stmt_edges(dependences *d, pln_ref ref, edge_fn edge) {
  const pln_graph *g = d->g;
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_ATTR_STMT)
    edge(d, pln_operand(g, ref, 1), ref);
  else
    operand_edges(d, ref, edge);
  if (n->kind == PLN_BUFFER_STORE)
    edge(d, ref, pln_operand(g, pln_operand(g, ref, 0), 0));
  if (n->kind == PLN_EVALUATE)
    write_edges(d, ref, edge);
  if (n->kind == PLN_LET_STMT || n->kind == PLN_FOR || n->kind == PLN_ALLOCATE)
    edge(d, ref, g->scopes[n->data].begin);
}

static void all_edges(dependences *d, edge_fn edge) {
  for (pln_ref ref = 0; ref < d->g->n_nodes; ref++) {
    const pln_node *n = &d->g->nodes[ref];
    if (pln_is_stmt(n))
      stmt_edges(d, ref, edge);
    else if (is_access_ptr(n))
      access_edges(d, ref, edge);
    else if (pln_is_prim(n) && n->kind != PLN_BUFFER)
      operand_edges(d, ref, edge);
    if (n->kind == PLN_PRIM_CALL && !is_access_ptr(n))
      write_edges(d, ref, edge);
  }
}

static pln_status list_users(dependences *d) {
  uint32_t n = d->g->n_nodes;
  all_edges(d, count_edge);
  for (uint32_t i = 0; i < n; i++)
    d->first[i + 1] += d->first[i];
  uint32_t edges = d->first[n];
  d->users = pln_mem_new(d->g->engine, ((size_t)edges + 1) * sizeof *d->users);
  if (!d->users)
    return pln_nomem(d->g->engine);
  all_edges(d, put_edge);
  /* put_edge moved each begin to the next one. */
  memmove(d->first + 1, d->first, n * sizeof *d->first);
  d->first[0] = 0;
  return PLN_OK;
}

/* ------------------------------------------------------------------ touching
 */

static pln_status push(dependences *d, pln_ref ref) {
  PLN_TRY(pln_mem_grow(d->g->engine, (void **)&d->stack, &d->cap_stack,
                       (size_t)d->n_stack + 1, sizeof *d->stack));
  d->stack[d->n_stack++] = ref;
  return PLN_OK;
}

/* Touches what depends on the thread, in its body. */
static pln_status touch(dependences *d, uint32_t thread) {
  const pln_virtual_thread *t = &d->plan->threads[thread - 1];
  pln_ref begin = d->g->scopes[d->g->nodes[t->attr].data].begin;
  d->touched[t->var] = thread;
  PLN_TRY(push(d, t->var));
  while (d->n_stack > 0) {
    pln_ref ref = d->stack[--d->n_stack];
    for (uint32_t i = d->first[ref]; i < d->first[ref + 1]; i++) {
      pln_ref user = d->users[i];
      bool outside = user < begin || user > t->attr;
      if (d->touched[user] == thread ||
          (outside && d->g->nodes[user].kind != PLN_VAR))
        continue;
      d->touched[user] = thread;
      PLN_TRY(push(d, user));
    }
  }
  return PLN_OK;
}

/* Whether the statement itself depends on the thread. */
static bool needs_thread(const dependences *d, pln_ref ref, uint32_t thread) {
  const pln_node *n = &d->g->nodes[ref];
  bool has_effect = n->kind == PLN_BUFFER_STORE || n->kind == PLN_EVALUATE;
  if (has_effect && !d->plan->threads[thread - 1].shares)
    return true;
  if (d->touched[ref] == thread)
    return true;
  return n->kind == PLN_BUFFER_STORE &&
         d->touched[pln_operand(d->g, pln_operand(d->g, ref, 0), 0)] == thread;
}

static void enter_scopes(dependences *d, pln_ref owner) {
  for (pln_scope at = d->g->nodes[owner].data;
       pln_owns(&d->g->nodes[owner]) && at != PLN_NONE;
       at = d->g->scopes[at].next)
    d->inside[at] = 1;
}

/* Memory of another size in each thread is allocated in the thread's loop, and
 * belongs to it alone. */
static bool has_size_of_thread(const dependences *d, pln_ref stmt,
                               uint32_t thread) {
  const pln_node *n = &d->g->nodes[stmt];
  for (uint32_t i = 0; i < n->count; i++)
    if (d->touched[pln_operand(d->g, stmt, i)] == thread)
      return true;
  return false;
}

/* Users come behind their operands, owners behind their bodies. */
static pln_status decide(dependences *d, uint32_t thread) {
  const pln_virtual_thread *t = &d->plan->threads[thread - 1];
  pln_ref begin = d->g->scopes[d->g->nodes[t->attr].data].begin;
  for (pln_ref ref = t->attr; ref-- > begin;) {
    const pln_node *n = &d->g->nodes[ref];
    if (!pln_is_stmt(n))
      continue;
    if (n->kind == PLN_WHILE)
      return pln_diag_error(d->g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.InjectVirtualThread: a while loop inside of a "
                            "virtual thread is not supported");
    if (n->kind == PLN_ALLOCATE && !has_size_of_thread(d, ref, thread)) {
      pln_ref data = d->g->scopes[n->data].begin;
      if (d->touched[data] == thread || !t->shares)
        d->plan->own[data] = thread;
    }
    if (d->inside[d->scope_of[ref]]) {
      enter_scopes(d, ref);
    } else if (needs_thread(d, ref, thread)) {
      d->plan->repeat[ref] = thread;
      enter_scopes(d, ref);
    }
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ threads
 */

static pln_status add_thread(dependences *d, pln_ref stmt) {
  pln_virtual_thread_plan *p = d->plan;
  pln_ref value = pln_operand(d->g, stmt, 1);
  int64_t n =
      d->g->nodes[value].kind == PLN_INT_IMM ? pln_node_int(d->g, value) : -1;
  if (n < 0 || n > UINT16_MAX)
    return pln_diag_error(d->g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.InjectVirtualThread: the number of virtual "
                          "threads is no constant from 0 to %d",
                          UINT16_MAX);
  PLN_TRY(pln_mem_grow(d->g->engine, (void **)&p->threads, &p->cap,
                       (size_t)p->n + 1, sizeof *p->threads));
  p->threads[p->n++] = (pln_virtual_thread){
      .attr = stmt,
      .var = pln_operand(d->g, pln_operand(d->g, stmt, 0), 0),
      .n = (uint32_t)n,
      .shares = begins_with(thread_tag(d->g, stmt), "vthread")};
  p->thread[stmt] = p->n;
  return PLN_OK;
}

/* Virtual threads that have none inside; what loops there are in statements. */
static pln_status find_threads(dependences *d) {
  uint32_t loops = 0, threads = 0;
  pln_scope_cursor at = {.graph = d->g};
  uint32_t *before = pln_mem_new(d->g->engine, 2 * ((size_t)d->g->n_nodes + 1) *
                                                   sizeof *before);
  if (!before)
    return pln_nomem(d->g->engine);
  pln_status status = PLN_OK;
  for (pln_ref ref = 0; ref < d->g->n_nodes && status == PLN_OK; ref++) {
    const pln_node *n = &d->g->nodes[ref];
    pln_ref begin =
        pln_is_stmt(n) && pln_owns(n) ? d->g->scopes[n->data].begin : ref;
    d->scope_of[ref] = pln_scope_cursor_at(&at, ref);
    before[2 * ref] = loops;
    before[2 * ref + 1] = threads;
    loops += n->kind == PLN_FOR;
    d->plan->has_loop[ref] = loops > before[2 * begin];
    if (!pln_is_virtual_thread(d->g, ref))
      continue;
    if (threads > before[2 * begin + 1])
      d->plan->outer = true;
    else
      status = add_thread(d, ref);
    threads++;
  }
  pln_mem_free(d->g->engine, before,
               2 * ((size_t)d->g->n_nodes + 1) * sizeof *before);
  return status;
}

static pln_status make_plan(dependences *d) {
  PLN_TRY(find_threads(d));
  if (d->plan->n == 0)
    return PLN_OK;
  PLN_TRY(list_users(d));
  for (uint32_t i = 1; i <= d->plan->n; i++) {
    PLN_TRY(touch(d, i));
    PLN_TRY(decide(d, i));
  }
  return PLN_OK;
}

static pln_status begin(dependences *d) {
  pln_virtual_thread_plan *p = d->plan;
  pln_engine *e = d->g->engine;
  size_t n = d->g->n_nodes;
  p->thread = pln_mem_zeroed(e, n * sizeof *p->thread);
  p->repeat = pln_mem_zeroed(e, n * sizeof *p->repeat);
  p->own = pln_mem_zeroed(e, n * sizeof *p->own);
  p->has_loop = pln_mem_zeroed(e, n * sizeof *p->has_loop);
  d->first = pln_mem_zeroed(e, (n + 2) * sizeof *d->first);
  d->scope_of = pln_mem_new(e, n * sizeof *d->scope_of);
  d->touched = pln_mem_zeroed(e, n * sizeof *d->touched);
  d->inside = pln_mem_zeroed(e, d->g->n_scopes * sizeof *d->inside);
  return p->thread && p->repeat && p->own && p->has_loop && d->first &&
                 d->scope_of && d->touched && d->inside
             ? PLN_OK
             : pln_nomem(e);
}

static void end(dependences *d) {
  pln_engine *e = d->g->engine;
  size_t n = d->g->n_nodes;
  if (d->users)
    pln_mem_free(e, d->users, ((size_t)d->first[n] + 1) * sizeof *d->users);
  pln_mem_free(e, d->first, (n + 2) * sizeof *d->first);
  pln_mem_free(e, d->scope_of, n * sizeof *d->scope_of);
  pln_mem_free(e, d->touched, n * sizeof *d->touched);
  pln_mem_free(e, d->inside, d->g->n_scopes * sizeof *d->inside);
  pln_mem_free(e, d->stack, d->cap_stack * sizeof *d->stack);
}

pln_status pln_virtual_thread_plan_make(const pln_graph *g,
                                        pln_virtual_thread_plan *out) {
  dependences d = {.plan = out, .g = g};
  *out = (pln_virtual_thread_plan){.g = g};
  pln_status status = begin(&d);
  if (status == PLN_OK)
    status = make_plan(&d);
  end(&d);
  if (status != PLN_OK)
    pln_virtual_thread_plan_free(out);
  return status;
}

void pln_virtual_thread_plan_free(pln_virtual_thread_plan *p) {
  pln_engine *e = p->g->engine;
  size_t n = p->g->n_nodes;
  pln_mem_free(e, p->threads, p->cap * sizeof *p->threads);
  pln_mem_free(e, p->thread, n * sizeof *p->thread);
  pln_mem_free(e, p->repeat, n * sizeof *p->repeat);
  pln_mem_free(e, p->own, n * sizeof *p->own);
  pln_mem_free(e, p->has_loop, n * sizeof *p->has_loop);
}
