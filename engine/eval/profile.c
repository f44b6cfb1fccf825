/* profile.c: what the calls of a run cost: time, bytes, multiply-accumulates.
 *
 * The evaluator adds a row for each call of an operator that it computes while
 * a profile is set (pln_eval_set_profile). Invariant: rows are in the order in
 * which the calls began, and their graphs live as long as the profile. */

#include "eval/profile.h"
#include "op/cost.h"

#include <time.h>

struct pln_profile {
  pln_engine *engine;
  uint64_t origin; /* nanoseconds of the clock when it was made */
  pln_profile_row *rows;
  uint32_t n_rows, cap_rows;
  pln_graph **graphs; /* retained, one entry for each change of graph */
  uint32_t n_graphs, cap_graphs;
};

uint64_t pln_profile_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

pln_status pln_profile_new(pln_engine *engine, pln_profile **out) {
  *out = pln_mem_zeroed(engine, sizeof **out);
  if (!*out)
    return pln_nomem(engine);
  (*out)->engine = engine;
  (*out)->origin = pln_profile_clock();
  return PLN_OK;
}

void pln_profile_free(pln_profile *profile) {
  if (!profile)
    return;
  pln_engine *e = profile->engine;
  if (e->profile == profile)
    e->profile = NULL;
  for (uint32_t i = 0; i < profile->n_graphs; i++)
    pln_graph_release(profile->graphs[i]);
  pln_mem_free(e, profile->graphs,
               profile->cap_graphs * sizeof *profile->graphs);
  pln_mem_free(e, profile->rows, profile->cap_rows * sizeof *profile->rows);
  pln_mem_free(e, profile, sizeof *profile);
}

void pln_eval_set_profile(pln_engine *engine, pln_profile *profile) {
  engine->profile = profile;
}

uint32_t pln_profile_count(const pln_profile *profile) {
  return profile->n_rows;
}

const pln_profile_row *pln_profile_at(const pln_profile *profile, uint32_t i) {
  return i < profile->n_rows ? &profile->rows[i] : NULL;
}

/* -------------------------------------------------------------------- rows */

static void read_tensor_shape(const pln_tensor *t, pln_shape *out) {
  out->rank = t && t->rank <= PLN_MAX_RANK ? (int32_t)t->rank : -1;
  for (int32_t i = 0; i < out->rank; i++)
    out->dims[i] = t->dims[i];
}

static uint64_t bytes_of(uint32_t n, const pln_tensor *const *tensors) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += tensors[i] ? tensors[i]->bytes : 0;
  return sum;
}

/* Costs depend on few operands: those behind them are left out. */
enum { MOST_COST_ARGS = 8 };

/* What is not known of a call counts 0. */
static pln_status count_cost(const pln_profiled_call *call,
                             pln_profile_row *row) {
  pln_shape shapes[MOST_COST_ARGS];
  pln_dim macs, flops;
  pln_cost_call c = {.engine = call->graph->engine,
                     .op = call->graph->nodes[call->node].data,
                     .attrs = call->attrs,
                     .args = shapes};
  c.n_args = call->n_args < MOST_COST_ARGS ? call->n_args : MOST_COST_ARGS;
  for (uint32_t i = 0; i < c.n_args; i++)
    read_tensor_shape(call->args[i], &shapes[i]);
  read_tensor_shape(call->results[0], &c.result);
  PLN_TRY(pln_op_cost(&c, &macs, &flops));
  row->macs = PLN_DIM_IS_CONST(macs) && macs > 0 ? (uint64_t)macs : 0;
  row->flops = PLN_DIM_IS_CONST(flops) && flops > 0 ? (uint64_t)flops : 0;
  return PLN_OK;
}

static pln_status keep_graph(pln_profile *p, const pln_graph *graph) {
  if (p->n_graphs && p->graphs[p->n_graphs - 1] == graph)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->graphs, &p->cap_graphs,
                       p->n_graphs + 1u, sizeof *p->graphs));
  p->graphs[p->n_graphs++] = pln_graph_retain(graph);
  return PLN_OK;
}

pln_status pln_profile_add(pln_profile *profile, const pln_profiled_call *call,
                           uint64_t begin, uint64_t end) {
  pln_profile_row row = {.graph = call->graph,
                         .node = call->node,
                         .begin = begin - profile->origin,
                         .nanoseconds = end - begin};
  row.bytes =
      bytes_of(call->n_args, call->args) +
      bytes_of(call->n_results, (const pln_tensor *const *)call->results);
  PLN_TRY(count_cost(call, &row));
  PLN_TRY(keep_graph(profile, call->graph));
  PLN_TRY(pln_mem_grow(profile->engine, (void **)&profile->rows,
                       &profile->cap_rows, profile->n_rows + 1u,
                       sizeof *profile->rows));
  profile->rows[profile->n_rows++] = row;
  return PLN_OK;
}
