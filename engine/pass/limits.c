/* limits.c: limits on each pass and on each run of a function: time, memory,
 * nodes, rewrites, steps, threads; and when results are verified. All are
 * config keys.
 *
 * Called by context.c when a context is made, by primitive.c around the body of
 * a pass, and by callers that run functions. Invariant: a pass that exceeds a
 * limit fails like any other pass and leaves no trace. */

#include "pass/parallel/parallel.h"

#define QUOTED(number) #number
#define TEXT(number) QUOTED(number)

static const pln_option keys[] = {
    {.name = "verify",
     .kind = PLN_ATTR_STRING,
     .fallback = "changed",
     .doc = "Which results of passes are verified.",
     .choices = "none|changed|all"},
    {.name = "limit.seconds",
     .kind = PLN_ATTR_FLOAT,
     .fallback = "0",
     .least = "0",
     .doc = "The most seconds a pass, a run or a comparison may take; 0: "
            "any."},
    {.name = "limit.nodes",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "The most nodes a pass may leave; 0: any."},
    {.name = "limit.growth",
     .kind = PLN_ATTR_FLOAT,
     .fallback = "0",
     .least = "0",
     .doc = "The most times as many nodes as before a pass may leave; 0: any."},
    {.name = "limit.memory",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "The most bytes the engine may hold while a pass or a function "
            "runs, with what Lua has taken since it began; 0: any."},
    {.name = "limit.rewrites",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "The most nodes a pass may replace; 0: any."},
    {.name = "limit.steps",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "The most nodes a run of a function may compute; 0: any."},
    {.name = "limit.depth",
     .kind = PLN_ATTR_INT,
     .fallback = TEXT(PLN_MOST_CALLS),
     .least = "1",
     .most = "4000000",
     .doc = "The most calls inside of each other in a run of a function."},
    {.name = "bisect.passes",
     .kind = PLN_ATTR_INT,
     .fallback = "-1",
     .least = "-1",
     .doc = "So many runs of passes happen, later ones are skipped; -1: all."},
    {.name = "bisect.applications",
     .kind = PLN_ATTR_INT,
     .fallback = "-1",
     .least = "-1",
     .doc = "So many rule applications happen, of the last run that "
            "bisect.passes allows, without it of all; -1: all."},
    {.name = "threads",
     .kind = PLN_ATTR_INT,
     .fallback = "1",
     .least = "0",
     .most = TEXT(PLN_MOST_THREADS),
     .doc = "The most threads function passes and the kernels of a run use; 0: "
            "one a processor."},
    {.name = "cache",
     .kind = PLN_ATTR_INT,
     .fallback = "0",
     .least = "0",
     .doc = "The most bytes of results of passes that are kept, to be given "
            "again for the same function; 0: none."},
};

pln_status pln_limits_install(pln_engine *engine) {
  for (size_t i = 0; i < PLN_COUNT(keys); i++)
    PLN_TRY(pln_config_register(engine, &keys[i]));
  return PLN_OK;
}

/* ------------------------------------------------------------------ reading */

void pln_limits_read(pln_engine *engine, pln_attrs config, pln_limits *out) {
  *out = (pln_limits){
      .verify = PLN_VERIFY_CHANGED, .rules = {-1, -1}, .threads = 1};
  if (!config)
    return;
  pln_slice verify = pln_attrs_string(engine, config, "verify", "changed");
  if (pln_slice_is(verify, "none"))
    out->verify = PLN_VERIFY_NONE;
  else if (pln_slice_is(verify, "all"))
    out->verify = PLN_VERIFY_ALL;
  out->threads = (uint32_t)pln_attrs_int(engine, config, "threads", 1);
  out->seconds = pln_attrs_float(engine, config, "limit.seconds", 0);
  out->growth = pln_attrs_float(engine, config, "limit.growth", 0);
  out->nodes = (uint64_t)pln_attrs_int(engine, config, "limit.nodes", 0);
  out->memory = (uint64_t)pln_attrs_int(engine, config, "limit.memory", 0);
  out->rewrites = (uint64_t)pln_attrs_int(engine, config, "limit.rewrites", 0);
  out->steps = (uint64_t)pln_attrs_int(engine, config, "limit.steps", 0);
  out->depth = (uint32_t)pln_attrs_int(engine, config, "limit.depth", 0);
  out->rules.passes = pln_attrs_int(engine, config, "bisect.passes", -1);
  out->rules.applications =
      pln_attrs_int(engine, config, "bisect.applications", -1);
  out->cache = (uint64_t)pln_attrs_int(engine, config, "cache", 0);
  if (out->memory) /* otherwise cached results would count against the limit */
    out->cache = 0;
}

/* ----------------------------------------------------------------- enforcing
 */

/* A pass may build more nodes than it leaves. One that builds so many more has
 * no end. */
enum { BUILT_PER_LEFT = 16, LEAST_BUILT = 1 << 16 };

static void limit_building(pln_engine *e, uint64_t nodes) {
  uint64_t most = UINT64_MAX;
  if (nodes == 0)
    return;
  if (nodes < UINT32_MAX)
    most = e->built + LEAST_BUILT + BUILT_PER_LEFT * nodes;
  e->most_built = most;
  e->most_nodes = nodes;
}

pln_status pln_guard_begin(pln_engine *e, const pln_limits *limits,
                           pln_guard *outer) {
  *outer = (pln_guard){.on = limits->seconds > 0 || limits->memory ||
                             limits->rewrites,
                       .memory = e->memory.limit,
                       .outside = e->memory.outside,
                       .seconds = e->seconds,
                       .rewrites = e->rewrites,
                       .most_rewrites = e->most_rewrites,
                       .built = e->built,
                       .most_built = e->most_built,
                       .most_nodes = e->most_nodes,
                       .most_steps = e->most_steps,
                       .most_calls = e->most_calls,
                       .threads = e->kernel_threads};
  e->kernel_threads = limits->threads ? limits->threads : pln_processor_count();
  limit_building(e, limits->nodes);
  e->most_steps = limits->steps;
  e->most_calls = limits->depth;
  if (!outer->on)
    return PLN_OK;
  /* The timer of an outer pass keeps running and stops both. */
  if (limits->seconds > 0 && !e->has_timer)
    PLN_TRY(pln_stop_after(e, limits->seconds));
  if (limits->memory)
    pln_cache_clear(e);
  e->rewrites = 0;
  e->most_rewrites = limits->rewrites;
  e->memory.limit = limits->memory;
  e->memory.outside = 0;
  e->memory.limited = false;
  return PLN_OK;
}

/* Replaces the errors reported since `mark` by one that names the limit. */
static pln_status report_limit(pln_engine *e, size_t mark, pln_status status) {
  size_t limit = e->memory.limit;
  if (e->memory.limited &&
      (status == PLN_ERR_NOMEM || status == PLN_ERR_CALLBACK)) {
    pln_diag_drop(e, mark);
    e->memory.limit = 0;
    return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                          "it needs more memory than limit.memory = %zu bytes",
                          limit);
  }
  if (status == PLN_OK && atomic_load(&e->stop) == PLN_STOP_TIME)
    return pln_stopped(e);
  return status;
}

pln_status pln_guard_end(pln_engine *e, const pln_guard *outer, size_t mark,
                         pln_status status) {
  e->built = outer->built;
  e->most_built = outer->most_built;
  e->most_nodes = outer->most_nodes;
  e->most_steps = outer->most_steps;
  e->most_calls = outer->most_calls;
  e->kernel_threads = outer->threads;
  if (!outer->on)
    return status;
  status = report_limit(e, mark, status);
  e->memory.limit = outer->memory;
  e->memory.outside += outer->outside;
  e->memory.limited = false;
  e->rewrites += outer->rewrites;
  e->most_rewrites = outer->most_rewrites;
  if (outer->seconds <= 0)
    (void)!pln_stop_after(e, 0);
  return status;
}

pln_status pln_guard_begin_current(pln_engine *e, pln_guard *outer) {
  return pln_guard_begin(e, &pln_context_current(e)->limits, outer);
}

pln_status pln_limits_check(pln_engine *e, const pln_limits *limits,
                            uint32_t before, uint32_t after) {
  if (limits->nodes && after > limits->nodes)
    return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                          "it leaves %u nodes, more than limit.nodes = %llu",
                          (unsigned)after, (unsigned long long)limits->nodes);
  if (limits->growth > 0 && after > limits->growth * before)
    return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                          "it leaves %u nodes of %u, more than limit.growth = "
                          "%g times as many",
                          (unsigned)after, (unsigned)before, limits->growth);
  return PLN_OK;
}
