/* fixpoint.c: runs a list of passes until it changes nothing.
 *
 * Called by execute.c. Invariant: the loop ends after at most `iterations`
 * iterations, and earlier when an iteration gives a state that was there
 * before, sharing of constants and types included. Then the passes undo each
 * other: a warning names them and the last result stands. */

#include <stdio.h>

#include "ir/compare/equal.h"
#include "ir/graph/module.h"
#include "pass/pass.h"

typedef struct seen_iteration {
  uint64_t hash;   /* hash of the target when the iteration began */
  uint32_t report; /* number of report rows at that time */
} seen_iteration;

typedef struct iterations {
  pln_execution *x;
  uint64_t hash;    /* hash of the target after the last iteration */
  uint64_t *hashes; /* hashes of its functions, in order */
  uint32_t n_hashes, cap_hashes;
  uint32_t iteration; /* the current one, from 1 */
  uint32_t n, cap;
  seen_iteration *seen;
} iterations;

/* ------------------------------------------------------------------- hashes */

static uint64_t hash_definition(uint64_t h, const pln_type_def *t) {
  h = pln_hash_mix(h, (uint64_t)t->name << 32 | t->n_vars);
  for (uint32_t i = 0; i < t->n_vars; i++)
    h = pln_hash_mix(h, t->vars[i]);
  for (uint32_t i = 0; i < t->n_constructors; i++) {
    const pln_constructor *c = &t->constructors[i];
    h = pln_hash_mix(h, (uint64_t)c->name << 32 | c->n_inputs);
    for (uint32_t k = 0; k < c->n_inputs; k++)
      h = pln_hash_mix(h, c->inputs[k]);
  }
  return h;
}

/* The hash of function `i` from the last iteration if the former module has the
 * same graph, else 0. */
static uint64_t known_hash(const iterations *r, const pln_module *former,
                           const pln_module *m, uint32_t i) {
  if (!former || r->n_hashes != former->count)
    return 0;
  bool in_place = i < former->count &&
                  pln_module_name_at(former, i) == pln_module_name_at(m, i);
  uint32_t k = in_place ? i : pln_module_find(former, pln_module_name_at(m, i));
  if (k == PLN_NONE ||
      pln_module_function_at(former, k) != pln_module_function_at(m, i))
    return 0;
  return r->hashes[k];
}

/* Hashes only the functions that the iteration changed. */
static pln_status hash_functions(iterations *r, const pln_module *former,
                                 const pln_module *m) {
  uint64_t *hashes = NULL;
  uint32_t capacity = 0;
  pln_status status = pln_mem_grow(r->x->engine, (void **)&hashes, &capacity,
                                   (size_t)m->count + 1, sizeof *hashes);
  for (uint32_t i = 0; i < m->count && status == PLN_OK; i++) {
    hashes[i] = known_hash(r, former, m, i);
    if (!hashes[i])
      status = pln_graph_whole_hash(pln_module_function_at(m, i), &hashes[i]);
  }
  pln_mem_free(r->x->engine, r->hashes, r->cap_hashes * sizeof *r->hashes);
  r->hashes = hashes;
  r->cap_hashes = capacity;
  r->n_hashes = m->count;
  return status;
}

/* Sets r->hash to the hash of the target: everything that passes may change,
 * with sharing and types. `former` is the module that the stored hashes are of,
 * or NULL. */
static pln_status hash_target(iterations *r, const pln_pass_target *former,
                              const pln_pass_target *s) {
  const pln_module *m = s->module;
  if (s->function)
    return pln_graph_whole_hash(s->function, &r->hash);
  PLN_TRY(hash_functions(r, former ? former->module : NULL, m));
  uint64_t h = pln_hash_mix(m->count, m->attrs);
  for (uint32_t i = 0; i < m->count; i++)
    h = pln_hash_mix(pln_hash_mix(h, pln_module_name_at(m, i)), r->hashes[i]);
  for (uint32_t i = 0; i < pln_module_n_types(m); i++)
    h = hash_definition(h, pln_module_type_def_at(m, i));
  r->hash = h;
  return PLN_OK;
}

/* ---------------------------------------------------------------- iterations
 */

/* The iteration that began with this hash, or PLN_NONE. */
static uint32_t find_seen_iteration(const iterations *r, uint64_t hash) {
  for (uint32_t i = 0; i < r->n; i++)
    if (r->seen[i].hash == hash)
      return i;
  return PLN_NONE;
}

static pln_status remember(iterations *r, uint64_t hash, uint32_t report) {
  PLN_TRY(pln_mem_grow(r->x->engine, (void **)&r->seen, &r->cap,
                       (size_t)r->n + 1, sizeof *r->seen));
  r->seen[r->n++] = (seen_iteration){hash, report};
  return PLN_OK;
}

static bool is_named(const char *const *named, uint32_t n, const char *pass) {
  for (uint32_t i = 0; i < n; i++)
    if (named[i] == pass)
      return true;
  return false;
}

/* Names the passes that changed something since report row `from`, as many as
 * fit in a message. */
static void name_passes(const pln_engine *e, uint32_t from, char *names,
                        size_t size) {
  const char *named[64];
  uint32_t n = 0;
  size_t used = 0;
  for (uint32_t i = from; i < pln_report_count(e) && n < PLN_COUNT(named);
       i++) {
    const pln_report_row *row = pln_report_at(e, i);
    if (!row->changed || is_named(named, n, row->pass))
      continue;
    int more = snprintf(names + used, size - used, "%s%s", used ? ", " : "",
                        row->pass);
    if (more < 0 || (size_t)more >= size - used)
      break;
    used += (size_t)more;
    named[n++] = row->pass;
  }
}

static void warn(const iterations *r, uint32_t first) {
  char names[400] = "";
  name_passes(r->x->engine, r->seen[first].report, names, sizeof names);
  pln_diag_warn(r->x->engine, NULL,
                "fixpoint: round %u ends where round %u began; these passes "
                "undo each other: %s",
                (unsigned)r->n, (unsigned)first + 1, names);
}

/* After an iteration that changed something: *back is true if its result is the
 * input of an earlier iteration. */
static pln_status look_back(iterations *r, const pln_pass_target *before,
                            uint32_t report, const pln_pass_target *s,
                            bool *back) {
  if (r->n == 0)
    PLN_TRY(hash_target(r, NULL, before));
  PLN_TRY(remember(r, r->hash, report));
  PLN_TRY(hash_target(r, before, s));
  uint32_t first = find_seen_iteration(r, r->hash);
  *back = first != PLN_NONE;
  if (*back)
    warn(r, first);
  return PLN_OK;
}

/* Runs one iteration. *done is true if it changed nothing or returned to an
 * earlier state. */
static pln_status run_iteration(iterations *r, const pln_pass *pass,
                                pln_pass_target *s, bool *done) {
  pln_pass_target before = pln_pass_target_copy(s);
  uint32_t report = pln_report_count(r->x->engine);
  r->x->iteration = ++r->iteration;
  pln_status status = pln_run_elements(r->x, pass, 0, pass->def->n_elements, s);
  *done = pln_pass_target_same(&before, s);
  if (status == PLN_OK && !*done)
    status = look_back(r, &before, report, s, done);
  pln_pass_target_release(&before);
  return status;
}

pln_status pln_run_fixpoint(pln_execution *x, const pln_pass *pass,
                            pln_pass_target *s) {
  iterations r = {.x = x};
  bool done = false;
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < pass->def->iterations && !done && status == PLN_OK;
       i++)
    status = run_iteration(&r, pass, s, &done);
  pln_mem_free(x->engine, r.seen, r.cap * sizeof *r.seen);
  pln_mem_free(x->engine, r.hashes, r.cap_hashes * sizeof *r.hashes);
  return status;
}
