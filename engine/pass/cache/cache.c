/* cache.c: the pass result cache: a table from the content of a function or
 * module to the result of a pass. The least recently used entries are evicted
 * first.
 *
 * Called by primitive.c around the body of a pass that declares that its result
 * depends only on its input, its options and its source
 * (pln_pass_spec.cacheable).
 *
 * Invariants: a result is returned only for the same pass in the same config,
 * and only for the same graph or one isomorphic to it
 * (ir/compare/isomorphic.h), so that it equals what running the pass would
 * give. The results of a pass that nobody can run any more are dropped. The
 * size of the cache, its tables included, stays within the limit of the context
 * that used it last. */

#include "pass/cache/cache.h"
#include "ir/compare/isomorphic.h"
#include "ir/op_attr.h"
#include "ir/op_info.h"
#include "ir/provenance/rule_application.h"
#include "pass/cache/memory_accounting.h"

/* The pass and the config under which a result was computed. */
typedef struct pass_key {
  pln_symbol name;
  /* Symbol of what the pass is made of; 0: `def` identifies it. */
  pln_symbol identity;
  const pln_pass_def *def; /* of a pass without identity, else NULL */
  pln_attrs options, config;
  int opt_level;
  uint32_t kind;
  uint64_t op_attrs; /* version of the attributes of operators */
} pass_key;

/* An entry is found by the address of its input (PLACE) or by a hash of its
 * content (CONTENT). */
enum { PLACE, CONTENT, N_WAYS };

typedef struct cache_entry {
  pln_hash_link link[N_WAYS];
  pass_key key;
  pln_pass_target in, out;
  pln_attrs counts;
  struct cache_entry *newer, *older; /* LRU list */
  struct cache_entry *next,
      **of_pass; /* list of the entries of one definition, for key.def passes,
                    with a pointer to the link that points here */
} cache_entry;

struct pln_cache {
  pln_engine *engine;
  pln_hash_table table[N_WAYS];
  cache_entry *newest, *oldest;
  pln_memory_account account;
  pln_cache_stats stats;
};

/* The entry that contains the link; NULL for a NULL link. */
static cache_entry *cache_row_of_link(pln_hash_link *link, int way) {
  return link ? (cache_entry *)(void *)(link - way) : NULL;
}

/* A cached run does not ask for rule applications, so nothing is cached while
 * rules are limited or observed. */
bool pln_cache_works(const pln_pass_run *run) {
  const pln_applications *a = run->engine->applications;
  return run->context->limits.cache > 0 && pln_pass_cacheable(run->pass) &&
         !pln_pass_writes_log(run->pass, run->context) &&
         !run->engine->parent && a->limits.passes < 0 &&
         a->limits.applications < 0 && !a->watched;
}

/* --------------------------------------------------------------------- keys */

static pass_key cache_key_of_run(const pln_pass_run *run) {
  const pln_pass_def *def = run->pass->def;
  return (pass_key){.name = run->pass->name,
                    .identity = def->identity,
                    .def = def->identity ? NULL : def,
                    .options = run->pass->options,
                    .config = run->context->config,
                    .opt_level = run->context->opt_level,
                    .kind = def->kind,
                    .op_attrs = pln_op_attrs_version(run->engine)};
}

static bool same_key(const pass_key *a, const pass_key *b) {
  return a->name == b->name && a->identity == b->identity && a->def == b->def &&
         a->options == b->options && a->config == b->config &&
         a->opt_level == b->opt_level && a->kind == b->kind &&
         a->op_attrs == b->op_attrs;
}

static uint64_t hash_key(const pass_key *k) {
  uint64_t h = pln_hash_mix(k->name, k->identity);
  h = pln_hash_mix(h, (uintptr_t)k->def);
  h = pln_hash_mix(h, (uint64_t)k->options << 32 | k->config);
  h = pln_hash_mix(h, k->op_attrs);
  return pln_hash_mix(h, (uint64_t)k->kind << 32 | (uint32_t)k->opt_level);
}

static uint64_t hash_place(uint64_t key, const pln_pass_target *in) {
  key = pln_hash_mix(key, (uintptr_t)in->function);
  return in->function ? key : pln_hash_mix(key, (uintptr_t)in->module);
}

/* The hash of a cached graph is stored beside it and computed once. */
static uint64_t hash_graph(pln_cache *c, const pln_graph *g) {
  uint64_t *known = pln_memory_account_slot(&c->account, g);
  uint64_t h = known && *known ? *known : pln_isomorphism_hash(g);
  if (known)
    *known = h;
  return h;
}

/* Hashes a function by its content; a module by its function names and the
 * addresses of its graphs. */
static uint64_t hash_content(pln_cache *c, uint64_t h,
                             const pln_pass_target *in) {
  const pln_module *m = in->module;
  if (in->function)
    return pln_hash_mix(h, hash_graph(c, in->function));
  for (uint32_t i = 0; i < m->count; i++) {
    h = pln_hash_mix(h, pln_module_name_at(m, i));
    h = pln_hash_mix(h, (uintptr_t)pln_module_function_at(m, i));
  }
  return pln_hash_mix(h, (uintptr_t)m->types);
}

static bool same_place(const pln_pass_target *a, const pln_pass_target *b) {
  return a->function == b->function && (a->function || a->module == b->module);
}

static bool same_module(const pln_module *a, const pln_module *b) {
  if (a->count != b->count || a->types != b->types || a->attrs != b->attrs ||
      a->source != b->source || a->tir_vars != b->tir_vars ||
      a->directory != b->directory)
    return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (pln_module_name_at(a, i) != pln_module_name_at(b, i) ||
        pln_module_function_at(a, i) != pln_module_function_at(b, i))
      return false;
  return true;
}

/* --------------------------------------------------------------------- rows */

static void leave_order(pln_cache *c, cache_entry *row) {
  *(row->newer ? &row->newer->older : &c->newest) = row->older;
  *(row->older ? &row->older->newer : &c->oldest) = row->newer;
}

static void become_newest(pln_cache *c, cache_entry *row) {
  row->newer = NULL;
  row->older = c->newest;
  *(c->newest ? &c->newest->newer : &c->oldest) = row;
  c->newest = row;
}

static void link_entry_to_pass(cache_entry *row) {
  if (!row->key.def)
    return;
  pln_pass_def *def = (pln_pass_def *)(uintptr_t)row->key.def;
  row->next = def->kept;
  row->of_pass = &def->kept;
  if (row->next)
    row->next->of_pass = &row->next;
  def->kept = row;
}

static void leave_pass(cache_entry *row) {
  if (!row->of_pass)
    return;
  *row->of_pass = row->next;
  if (row->next)
    row->next->of_pass = row->of_pass;
}

static void drop_row(pln_cache *c, cache_entry *row) {
  for (int way = 0; way < N_WAYS; way++)
    pln_hash_remove(&c->table[way], &row->link[way]);
  leave_order(c, row);
  leave_pass(row);
  pln_memory_account_remove(&c->account, &row->in);
  pln_memory_account_remove(&c->account, &row->out);
  pln_pass_target_release(&row->in);
  pln_pass_target_release(&row->out);
  pln_mem_free(c->engine, row, sizeof *row);
  c->stats.results--;
}

/* Clears everything, including entries whose accounting failed halfway. */
static void clear_cache_rows(pln_cache *c) {
  while (c->oldest)
    drop_row(c, c->oldest);
  pln_memory_account_free(&c->account);
}

static uint64_t bytes_of(const pln_cache *c) {
  return pln_memory_account_bytes(&c->account) +
         c->stats.results * sizeof(cache_entry) +
         pln_hash_table_bytes(&c->table[PLACE]) +
         pln_hash_table_bytes(&c->table[CONTENT]);
}

static void make_room(pln_cache *c, uint64_t most) {
  while (c->oldest && bytes_of(c) > most) {
    drop_row(c, c->oldest);
    c->stats.dropped++;
  }
}

void pln_cache_forget(pln_engine *engine, pln_pass_def *def) {
  while (def->kept)
    drop_row(engine->passes->cache, def->kept);
}

/* ------------------------------------------------------------------- finding
 */

static pln_status replay(pln_pass_run *run, pln_attrs counts) {
  uint32_t n = pln_attrs_count(run->engine, counts);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *each = pln_attrs_at(run->engine, counts, i);
    const char *key = pln_symbol_text(run->engine, each->name).data;
    PLN_TRY(pln_run_add_count(run, key, each->v.i));
  }
  return pln_run_count(run, "cached", 1);
}

/* Remaps the result of an entry to an isomorphic input. */
static pln_status remap_cached_result(const cache_entry *row,
                                      const pln_pass_target *in, bool *found,
                                      pln_pass_target *out) {
  pln_isomorphism isomorphism;
  pln_status status = pln_isomorphism_match(&isomorphism, row->in.function,
                                            in->function, found);
  if (status == PLN_OK && *found) {
    if (row->out.function == row->in.function)
      out->function = pln_graph_retain(in->function);
    else
      status = pln_isomorphism_remap(&isomorphism, row->out.function,
                                     &out->function);
    *found = out->function != NULL;
  }
  pln_isomorphism_end(&isomorphism);
  return status;
}

static pln_status use_cached_result(const cache_entry *row,
                                    const pln_pass_target *in, bool *found,
                                    pln_pass_target *out) {
  *out = (pln_pass_target){0};
  if (in->function && !same_place(&row->in, in))
    return remap_cached_result(row, in, found, out);
  *found = in->function || same_module(row->in.module, in->module);
  if (!*found)
    return PLN_OK;
  *out = pln_pass_target_same(&row->in, &row->out)
             ? pln_pass_target_copy(in)
             : pln_pass_target_copy(&row->out);
  return PLN_OK;
}

/* Finds the newest entry with that hash that has a result for the input; *row
 * is NULL if there is none. */
static pln_status lookup_cached_row(pln_cache *c, const pass_key *key, int way,
                                    uint64_t hash, const pln_pass_target *in,
                                    cache_entry **row, pln_pass_target *out) {
  bool found = false;
  pln_hash_link *link = pln_hash_first(&c->table[way], hash);
  for (; (*row = cache_row_of_link(link, way)) != NULL;
       link = pln_hash_next(link)) {
    if (!same_key(&(*row)->key, key) ||
        (way == PLACE && !same_place(&(*row)->in, in)))
      continue;
    PLN_TRY(use_cached_result(*row, in, &found, out));
    if (found)
      return PLN_OK;
  }
  return PLN_OK;
}

static pln_status insert_cache_row(pln_cache *c, const cache_entry *made,
                                   const uint64_t hash[N_WAYS]) PLN_CHECKED;

/* Adds an entry for the isomorphic input, so that it is found by address next
 * time. */
static pln_status adopt(pln_cache *c, const cache_entry *row,
                        const uint64_t hash[N_WAYS], const pln_pass_target *in,
                        const pln_pass_target *out) {
  cache_entry match = *row;
  match.in = *in;
  match.out = *out;
  return insert_cache_row(c, &match, hash);
}

static pln_status find_cached_result(pln_cache *c, const pass_key *key,
                                     const pln_pass_target *in,
                                     pln_attrs *counts, bool *found,
                                     pln_pass_target *out) {
  cache_entry *row;
  uint64_t own = hash_key(key), hash[N_WAYS] = {hash_place(own, in), 0};
  PLN_TRY(lookup_cached_row(c, key, PLACE, hash[PLACE], in, &row, out));
  bool again = row != NULL;
  if (again) {
    leave_order(c, row);
    become_newest(c, row);
  } else {
    hash[CONTENT] = hash_content(c, own, in);
    PLN_TRY(lookup_cached_row(c, key, CONTENT, hash[CONTENT], in, &row, out));
  }
  *found = row != NULL;
  if (!row)
    return PLN_OK;
  *counts = row->counts;
  return again ? PLN_OK : adopt(c, row, hash, in, out);
}

bool pln_cache_may_have(const pln_pass_run *run, const pln_pass_target *in) {
  pln_cache *c = run->engine->passes->cache;
  pass_key key = cache_key_of_run(run);
  if (!pln_cache_works(run) || !c)
    return false;
  uint64_t hash = hash_key(&key);
  return pln_hash_first(&c->table[PLACE], hash_place(hash, in)) ||
         pln_hash_first(&c->table[CONTENT], hash_content(c, hash, in));
}

pln_status pln_cache_find(pln_pass_run *run, const pln_pass_target *in,
                          bool *found, pln_pass_target *out) {
  pln_cache *c = run->engine->passes->cache;
  pass_key key = cache_key_of_run(run);
  pln_attrs counts = 0;
  *found = false;
  *out = (pln_pass_target){0};
  if (!c)
    return PLN_OK;
  pln_status status = find_cached_result(c, &key, in, &counts, found, out);
  if (status == PLN_OK && *found)
    status = replay(run, counts);
  if (status != PLN_OK) {
    pln_pass_target_release(out);
    clear_cache_rows(c);
    return status;
  }
  c->stats.hits += *found;
  make_room(c, run->context->limits.cache);
  return PLN_OK;
}

/* ------------------------------------------------------------------- keeping
 */

/* How often functions of operators have run: those under op_attr keys, and
 * those that type and compute calls. */
static uint64_t callbacks_of_ops(const pln_engine *engine) {
  return pln_op_attrs_uses(engine) + pln_op_callbacks(engine);
}

void pln_cache_begin(pln_pass_run *run, pln_cache_mark *mark) {
  *mark = (pln_cache_mark){.diags = pln_diag_count(run->engine),
                           .again = run->engine->applications->again,
                           .op_attr_uses = callbacks_of_ops(run->engine),
                           .n_counters = run->n_counters};
  run->reads_module = false;
  for (uint32_t i = 0; i < run->n_counters && i < PLN_COUNT(mark->counters);
       i++)
    mark->counters[i] = run->counters[i].n;
}

/* Stores what the run has counted since the mark. */
static pln_status counted(const pln_pass_run *run, const pln_cache_mark *mark,
                          pln_attrs *out) {
  pln_attr entries[PLN_COUNT(mark->counters)] = {{0}};
  uint32_t n = 0;
  for (uint32_t i = 0; i < run->n_counters; i++) {
    int64_t before = i < mark->n_counters ? mark->counters[i] : 0;
    if (run->counters[i].n != before)
      entries[n++] = (pln_attr){.name = run->counters[i].key,
                                .kind = PLN_ATTR_INT,
                                .v.i = run->counters[i].n - before};
  }
  *out = 0;
  return n ? pln_attrs_make(run->engine, n, entries, out) : PLN_OK;
}

static pln_status new_cache(pln_engine *engine) {
  if (engine->passes->cache)
    return PLN_OK;
  pln_cache *c = pln_mem_zeroed(engine, sizeof *c);
  if (!c)
    return pln_nomem(engine);
  *c = (pln_cache){.engine = engine, .account = pln_memory_account_new(engine)};
  for (int way = 0; way < N_WAYS; way++)
    c->table[way].engine = engine;
  engine->passes->cache = c;
  return PLN_OK;
}

static pln_status link_row(pln_cache *c, cache_entry *row,
                           const uint64_t hash[N_WAYS]) {
  PLN_TRY(pln_hash_add(&c->table[PLACE], hash[PLACE], &row->link[PLACE]));
  pln_status status =
      pln_hash_add(&c->table[CONTENT], hash[CONTENT], &row->link[CONTENT]);
  if (status != PLN_OK) {
    pln_hash_remove(&c->table[PLACE], &row->link[PLACE]);
    return status;
  }
  become_newest(c, row);
  link_entry_to_pass(row);
  c->stats.results++;
  return PLN_OK;
}

/* Inserts a copy of the entry with references of its own. */
static pln_status insert_cache_row(pln_cache *c, const cache_entry *made,
                                   const uint64_t hash[N_WAYS]) {
  cache_entry *row = pln_mem_zeroed(c->engine, sizeof *row);
  if (!row)
    return pln_nomem(c->engine);
  *row = (cache_entry){.key = made->key,
                       .in = pln_pass_target_copy(&made->in),
                       .out = pln_pass_target_copy(&made->out),
                       .counts = made->counts};
  pln_status status = link_row(c, row, hash);
  if (status != PLN_OK) {
    pln_pass_target_release(&row->in);
    pln_pass_target_release(&row->out);
    pln_mem_free(c->engine, row, sizeof *row);
    return status;
  }
  PLN_TRY(pln_memory_account_add(&c->account, &row->in));
  return pln_memory_account_add(&c->account, &row->out);
}

static pln_status cache_pass_result(pln_pass_run *run,
                                    const pln_cache_mark *mark,
                                    const pln_pass_target *in,
                                    const pln_pass_target *out) {
  cache_entry row = {.key = cache_key_of_run(run), .in = *in, .out = *out};
  uint64_t own = hash_key(&row.key);
  PLN_TRY(new_cache(run->engine));
  pln_cache *c = run->engine->passes->cache;
  uint64_t hash[N_WAYS] = {hash_place(own, in), hash_content(c, own, in)};
  PLN_TRY(counted(run, mark, &row.counts));
  c->stats.misses++;
  return insert_cache_row(c, &row, hash);
}

pln_status pln_cache_keep(pln_pass_run *run, const pln_cache_mark *mark,
                          const pln_pass_target *in,
                          const pln_pass_target *out) {
  if ((in->function && run->removed && run->removed[run->index]) ||
      pln_diag_count(run->engine) != mark->diags ||
      run->engine->applications->again != mark->again ||
      callbacks_of_ops(run->engine) != mark->op_attr_uses ||
      run->n_counters > PLN_COUNT(mark->counters) || run->reads_module)
    return PLN_OK;
  pln_status status = cache_pass_result(run, mark, in, out);
  pln_cache *c = run->engine->passes->cache;
  if (status == PLN_OK)
    make_room(c, run->context->limits.cache);
  else if (c)
    clear_cache_rows(c); /* frees the memory that the cache holds */
  return status;
}

/* --------------------------------------------------------------------- users
 */

pln_cache_stats pln_cache_stats_read(const pln_engine *engine) {
  const pln_cache *c = engine->passes->cache;
  if (!c)
    return (pln_cache_stats){0};
  pln_cache_stats stats = c->stats;
  stats.bytes = bytes_of(c);
  return stats;
}

void pln_cache_clear(pln_engine *engine) {
  if (engine->passes->cache)
    clear_cache_rows(engine->passes->cache);
}

void pln_cache_free(pln_engine *engine) {
  pln_cache *c = engine->passes->cache;
  if (!c)
    return;
  clear_cache_rows(c);
  engine->passes->cache = NULL;
  pln_mem_free(engine, c, sizeof *c);
}
