/* parallel.c: distributes the functions of a module over worker threads, each
 * with a child engine, and merges the results.
 *
 * Called by primitive.c and pipeline/per_function.c. Invariants: while workers
 * run, the parent engine is only read; afterwards the children are only read,
 * by the caller's thread. Results and diagnostics of a worker are invisible
 * until its function is taken. */

#include "pass/parallel/parallel.h"

#include <stdlib.h>

#include "ir/op_info.h"
#include "ir/provenance/rule_application.h"
#include "ir/worker/child_engine.h"

/* Waking a thread takes longer than running passes over fewer nodes than these.
 * A function takes as long to lend to a worker and to merge as a pass in C
 * takes over LEAST_PER_FUNCTION nodes, and one in Lua over LEAST_IN_LUA. */
enum { LEAST_NODES = 4096, LEAST_PER_FUNCTION = 256, LEAST_IN_LUA = 8 };

/* One function. */
typedef struct function_task {
  uint32_t index;
  uint32_t nodes;
  uint32_t worker;
  bool done; /* and succeeded */
  pln_work_item item;
  size_t diags, diags_end; /* range in the worker's engine */
  uint32_t rows, rows_end;
  uint64_t rewrites;
  pln_rule_counts rules;
} function_task;

typedef struct function_worker {
  pln_engine *child;
  pln_status status; /* of the setup before the first task */
  pln_module *module;
  pln_merge join;
} function_worker;

struct pln_parallel {
  pln_parallel_job work;
  pln_engine *engine;
  pln_worker_group family;
  atomic_uint next;    /* index of the next task */
  atomic_bool stopped; /* a task failed: start no more */
  uint32_t n_moved, cap_moved;
  pln_pass_clone *moved; /* passes that each worker clones */
  uint32_t n_tasks, cap_tasks, n_workers;
  function_task *tasks; /* largest first */
  function_worker *workers;
  uint32_t *task_of; /* function -> its task + 1, or 0 */
};

/* ------------------------------------------------------------ what pays off */

static uint32_t threads_of(const pln_context *context) {
  uint32_t n = context->limits.threads;
  return n == 0 ? pln_processor_count() : n;
}

/* True if the graph calls an operator whose callbacks run only in the engine's
 * thread. */
static bool needs_thread(const pln_engine *e, const pln_graph *graph) {
  if (pln_ops_registered(e) == 0)
    return false;
  for (pln_ref i = 0; i < graph->n_nodes; i++) {
    const pln_node *n = &graph->nodes[i];
    const pln_operator_spec *spec =
        n->kind == PLN_CALL ? pln_op_registered(e, n->data) : NULL;
    if (spec && !spec->any_thread)
      return true;
  }
  return false;
}

static bool is_task(const pln_parallel_job *work, uint32_t index) {
  const pln_graph *g = pln_module_function_at(work->module, index);
  return !(work->done && work->done[index]) && work->takes(work->pass, g) &&
         !needs_thread(work->engine, g);
}

/* Recursion is bounded by PLN_PASS_MAX_DEPTH. */
static uint32_t count_cloners(const pln_pass *pass) {
  uint32_t n = pass->def->cloner != NULL;
  for (uint32_t i = 0; i < pass->def->n_elements; i++)
    n += count_cloners(pass->def->elements[i]);
  return n;
}

static bool is_worth_it(const pln_parallel_job *work, uint32_t *n) {
  uint64_t nodes = 0;
  uint64_t each = count_cloners(work->pass) ? LEAST_IN_LUA : LEAST_PER_FUNCTION;
  *n = 0;
  for (uint32_t i = 0; i < work->module->count; i++) {
    if (!is_task(work, i))
      continue;
    nodes += pln_module_function_at(work->module, i)->n_nodes;
    ++*n;
  }
  return *n > 1 && nodes >= LEAST_NODES && nodes >= each * *n;
}

/* A child engine does not start workers. */
static bool may_run(const pln_parallel_job *work) {
  return !work->engine->parent && !work->pass->def->light &&
         work->context->limits.threads != 1 &&
         !pln_rules_limited(work->engine->applications) &&
         threads_of(work->context) > 1;
}

/* ------------------------------------------------------------------- making */

static int larger(const void *a, const void *b) {
  const function_task *x = a, *y = b;
  if (x->nodes != y->nodes)
    return x->nodes > y->nodes ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

static void list_tasks(pln_parallel *p) {
  const pln_parallel_job *work = &p->work;
  for (uint32_t i = 0; i < work->module->count; i++) {
    const pln_graph *g = pln_module_function_at(work->module, i);
    if (is_task(work, i))
      p->tasks[p->n_tasks++] = (function_task){.index = i, .nodes = g->n_nodes};
  }
  qsort(p->tasks, p->n_tasks, sizeof *p->tasks, larger);
  for (uint32_t i = 0; i < p->n_tasks; i++)
    p->task_of[p->tasks[i].index] = i + 1;
}

/* Allocates the state for `n` tasks. */
static pln_status new_parallel(const pln_parallel_job *work, uint32_t n,
                               pln_parallel **out) {
  pln_engine *e = work->engine;
  uint32_t threads = threads_of(work->context);
  pln_parallel *p = pln_mem_zeroed(e, sizeof *p);
  if (!p)
    return pln_nomem(e);
  *out = p;
  p->work = *work;
  p->engine = e;
  p->n_workers = threads < n ? threads : n;
  p->cap_tasks = n;
  p->tasks = pln_mem_zeroed(e, n * sizeof *p->tasks);
  p->workers = pln_mem_zeroed(e, p->n_workers * sizeof *p->workers);
  p->task_of = pln_mem_zeroed(e, work->module->count * sizeof *p->task_of);
  if (!p->tasks || !p->workers || !p->task_of)
    return pln_nomem(e);
  list_tasks(p);
  return PLN_OK;
}

/* --------------------------------------------------- passes made by workers */

/* *stays is false if one of the passes cannot be cloned. */
static pln_status pack_cloneable_passes(pln_parallel *p, const pln_pass *pass,
                                        bool *stays) {
  const pln_pass_cloner *cloner = pass->def->cloner;
  for (uint32_t i = 0; i < pass->def->n_elements && !*stays; i++)
    PLN_TRY(pack_cloneable_passes(p, pass->def->elements[i], stays));
  if (!cloner || *stays)
    return PLN_OK;
  void *packed = NULL;
  PLN_TRY(cloner->pack(pass, &packed));
  *stays = packed == NULL;
  if (packed)
    p->moved[p->n_moved++] = (pln_pass_clone){pass, packed};
  return PLN_OK;
}

static pln_status pack_all(pln_parallel *p, bool *stays) {
  p->cap_moved = count_cloners(p->work.pass);
  p->moved = pln_mem_zeroed(p->engine, p->cap_moved * sizeof *p->moved);
  if (p->cap_moved && !p->moved)
    return pln_nomem(p->engine);
  return pack_cloneable_passes(p, p->work.pass, stays);
}

static void drop_packed(pln_parallel *p) {
  for (uint32_t i = 0; i < p->n_moved; i++)
    p->moved[i].pass->def->cloner->drop(p->moved[i].packed);
  pln_mem_free(p->engine, p->moved, p->cap_moved * sizeof *p->moved);
}

static void free_task(const pln_parallel *p, function_task *t) {
  pln_engine *child = p->workers[t->worker].child;
  if (!child) /* no worker took the clone */
    return;
  pln_graph_release(t->item.result);
  pln_rule_counts_free(child, &t->rules);
  if (t->item.counters)
    pln_mem_free(child, t->item.counters,
                 t->item.cap_counters * sizeof *t->item.counters);
}

static void free_worker(function_worker *w) {
  pln_merge_end(&w->join);
  pln_module_release(w->module);
  pln_child_free(w->child);
}

void pln_parallel_free(pln_parallel *p) {
  if (!p)
    return;
  pln_engine *e = p->engine;
  for (uint32_t i = 0; i < p->n_tasks; i++)
    free_task(p, &p->tasks[i]);
  for (uint32_t i = 0; p->workers && i < p->n_workers; i++)
    free_worker(&p->workers[i]);
  pln_worker_group_end(&p->family);
  drop_packed(p);
  uint32_t functions = p->work.module->count;
  pln_mem_free(e, p->tasks, p->cap_tasks * sizeof *p->tasks);
  pln_mem_free(e, p->workers, p->n_workers * sizeof *p->workers);
  pln_mem_free(e, p->task_of, functions * sizeof *p->task_of);
  pln_mem_free(e, p, sizeof *p);
}

/* ------------------------------------------------------------------ working */

static void run_function_task(pln_parallel *p, uint32_t part,
                              function_task *t) {
  const function_worker *w = &p->workers[part];
  pln_engine *child = w->child;
  t->worker = part;
  t->item = (pln_work_item){.engine = child,
                            .context = pln_context_current(child),
                            .module = w->module,
                            .index = t->index};
  t->diags = pln_diag_count(child);
  t->rows = pln_report_count(child);
  child->rewrites = 0;
  pln_status status = pln_poll(child);
  if (status == PLN_OK)
    status =
        pln_borrow_tensors(child, pln_module_function_at(w->module, t->index));
  if (status == PLN_OK)
    status = p->work.run(&p->work, &t->item);
  t->diags_end = pln_diag_count(child);
  t->rows_end = pln_report_count(child);
  t->rewrites = child->rewrites;
  pln_rule_counts_take(child, &t->rules);
  t->done = status == PLN_OK && t->diags_end < PLN_MOST_DIAGS &&
            !pln_op_callback_refused(child);
  if (!t->done)
    atomic_store(&p->stopped, true);
}

/* A script's body may read any tensor of the module. */
static pln_status borrow_all_tensors(const pln_parallel *p,
                                     const function_worker *w) {
  for (uint32_t i = 0; p->n_moved && i < pln_module_count(w->module); i++)
    PLN_TRY(pln_borrow_tensors(w->child, pln_module_function_at(w->module, i)));
  return PLN_OK;
}

static pln_status prepare_worker_task(const pln_parallel *p,
                                      function_worker *w) {
  PLN_TRY(pln_borrow_module(w->child, p->work.module, &w->module));
  PLN_TRY(borrow_all_tensors(p, w));
  return pln_pass_clones_make(w->child, p->n_moved, p->moved);
}

static void do_tasks(pln_parallel *p, uint32_t part) {
  while (!atomic_load(&p->stopped)) {
    uint32_t i = atomic_fetch_add(&p->next, 1);
    if (i >= p->n_tasks)
      return;
    run_function_task(p, part, &p->tasks[i]);
  }
}

/* A worker that runs out of memory leaves its tasks to the others. */
static void work_part(void *ud, uint32_t part) {
  pln_parallel *p = ud;
  function_worker *w = &p->workers[part];
  w->child = pln_child_new(&p->family, p->work.context);
  if (!w->child)
    return;
  pln_worker_stop_begin(w->child, part);
  w->status = prepare_worker_task(p, w);
  if (w->status == PLN_OK)
    do_tasks(p, part);
  pln_worker_stop_end(w->child, part);
}

/* An error while a worker clones a pass is an error of that pass. */
static pln_status check_worker(pln_parallel *p, function_worker *w) {
  if (w->status == PLN_OK || w->status == PLN_ERR_NOMEM)
    return PLN_OK;
  pln_diag_adopt(p->engine, w->child, 0, pln_diag_count(w->child));
  return w->status;
}

/* Adds up the peak memory of the workers, assuming that all peaked at once. */
static void account(const pln_parallel *p) {
  uint64_t calls = 0;
  size_t peak = 0;
  for (uint32_t i = 0; i < p->n_workers; i++) {
    const pln_engine *child = p->workers[i].child;
    calls += child ? child->memory.calls : 0;
    peak += child ? child->memory.peak : 0;
  }
  pln_mem_merge_account(p->engine, calls, peak);
}

/* The pool lives until the outermost application ends. */
static pln_status find_thread_pool(pln_engine *engine, uint32_t n,
                                   pln_thread_pool **out) {
  pln_thread_pool **pool = &engine->passes->thread_pool;
  if (*pool && pln_thread_pool_capacity(*pool) < n) {
    pln_thread_pool_free(*pool);
    *pool = NULL;
  }
  if (!*pool)
    PLN_TRY(pln_thread_pool_new(engine, n, pool));
  *out = *pool;
  return PLN_OK;
}

static pln_status work_all(pln_parallel *p) {
  pln_thread_pool *thread_pool;
  PLN_TRY(find_thread_pool(p->engine, p->n_workers - 1, &thread_pool));
  uint32_t most = pln_thread_pool_size(thread_pool) + 1;
  pln_worker_group_begin(&p->family, p->engine);
  pln_thread_pool_run(thread_pool, p->n_workers < most ? p->n_workers : most,
                      work_part, p);
  account(p);
  for (uint32_t i = 0; i < p->n_workers; i++)
    PLN_TRY(check_worker(p, &p->workers[i]));
  for (uint32_t i = 0; i < p->n_workers; i++)
    if (p->workers[i].child)
      PLN_TRY(pln_merge_begin(&p->workers[i].join, p->workers[i].child));
  return PLN_OK;
}

pln_status pln_parallel_run(const pln_parallel_job *work, pln_parallel **out) {
  uint32_t n;
  pln_parallel *p = NULL;
  *out = NULL;
  if (!may_run(work) || !is_worth_it(work, &n))
    return PLN_OK;
  bool stays = false;
  pln_status status = new_parallel(work, n, &p);
  if (status == PLN_OK)
    status = pack_all(p, &stays);
  if (status == PLN_OK && !stays)
    status = work_all(p);
  if (status == PLN_OK && !stays)
    *out = p;
  else
    pln_parallel_free(p);
  return status;
}

/* ------------------------------------------------------------------- taking */

static pln_status take_counters(const pln_merge *join,
                                const pln_work_item *item, pln_pass_run *run) {
  for (uint32_t i = 0; run && i < item->n_counters; i++) {
    pln_symbol key = pln_merged_id(&join->symbols, item->counters[i].key);
    PLN_TRY(pln_run_add_count(run, pln_symbol_text(run->engine, key).data,
                              item->counters[i].n));
  }
  return PLN_OK;
}

/* Interns a text of a child as a symbol of the parent. */
static pln_status own_text(pln_engine *engine, const char **text) {
  pln_symbol symbol;
  if (!*text)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(engine, pln_text(*text), &symbol));
  *text = pln_symbol_text(engine, symbol).data;
  return PLN_OK;
}

static pln_status take_rows(const pln_parallel *p, const pln_merge *join,
                            const function_task *t) {
  for (uint32_t i = t->rows; i < t->rows_end; i++) {
    pln_report_row row = *pln_report_at(join->child, i);
    PLN_TRY(own_text(p->engine, &row.pass));
    row.counts = pln_merged_id(&join->attrs, row.counts);
    PLN_TRY(own_text(p->engine, &row.equal));
    row.run += p->engine->applications->runs;
    PLN_TRY(pln_report_add(p->engine, &row));
  }
  return PLN_OK;
}

/* Returns true if the functions up to this one stay within the rewrite limit.
 */
static bool within_rewrite_limit(const pln_engine *e, const function_task *t) {
  return !e->most_rewrites || e->rewrites + t->rewrites <= e->most_rewrites;
}

pln_status pln_parallel_take(pln_parallel *p, uint32_t index, pln_pass_run *run,
                             pln_graph **result, bool *taken) {
  function_task *t =
      p && p->task_of[index] ? &p->tasks[p->task_of[index] - 1] : NULL;
  *taken = t && t->done && within_rewrite_limit(p->engine, t);
  if (!*taken)
    return PLN_OK;
  const pln_merge *join = &p->workers[t->worker].join;
  p->engine->rewrites += t->rewrites;
  pln_diag_adopt(p->engine, join->child, t->diags, t->diags_end);
  PLN_TRY(take_rows(p, join, t));
  PLN_TRY(pln_rule_counts_add(join, &t->rules));
  PLN_TRY(take_counters(join, &t->item, run));
  if (run)
    run->reads_module |= t->item.reads_module;
  if (run && t->item.removed)
    PLN_TRY(pln_run_drop(run, index));
  if (t->item.result)
    *result = pln_merge_graph(join, t->item.result);
  t->item.result = NULL;
  return PLN_OK;
}

uint64_t pln_parallel_changes(const pln_parallel *p, uint32_t index) {
  return p->tasks[p->task_of[index] - 1].item.changes;
}
