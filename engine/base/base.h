/* base.h: the foundation of every part: the engine instance, its memory, its
 * tables of interned records, hashing, and the macro PLN_TRY.
 *
 * The engine holds the tables of the layers above as pointers to structs that
 * only those layers define. engine.c, at the top of engine/, makes and frees
 * them. */

#ifndef PLN_BASE_BASE_H
#define PLN_BASE_BASE_H

#include <stdarg.h>
#include <string.h>

#include "perilune.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Evaluates a status; returns it from the function unless it is PLN_OK. */
#define PLN_TRY(expr)                \
  do {                               \
    pln_status try_status_ = (expr); \
    if (try_status_ != PLN_OK)       \
      return try_status_;            \
  } while (0)

#define PLN_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ------------------------------------------------------------------ memory */

enum { PLN_MOST_KEPT = 32 };

/* Sizes are passed when memory is freed, as in Lua: blocks have no headers. */
typedef struct pln_memory {
  pln_alloc_fn fn;
  void *ud;
  size_t used;              /* including kept blocks */
  size_t peak;              /* without them */
  uint64_t calls;           /* calls that asked the allocator for memory */
  uint64_t bytes_requested; /* total bytes requested by them */
  size_t limit;             /* maximum of `used`; 0: no limit */
  size_t outside; /* bytes the host allocated meanwhile; pln_mem_count_host */
  struct pln_worker_group
      *family;  /* child engines: the group that shares a limit; else NULL */
  bool limited; /* an allocation failed because of the limit */
  uint32_t reuse_depth; /* open pln_mem_reuse_begin calls */
  size_t pool; /* bytes of blocks kept while nothing computes, at most */
  size_t kept_bytes;
  uint32_t n_kept;
  struct {
    void *block;
    size_t size;
  } kept[PLN_MOST_KEPT]; /* freed blocks kept for reuse, oldest first */
} pln_memory;

/* NULL when out of memory. Size 0 also gives NULL, which is not an error. */
void *pln_mem_new(pln_engine *engine, size_t size);
void *pln_mem_zeroed(pln_engine *engine, size_t size);
/* NULL when out of memory; the old block is then unchanged. */
void *pln_mem_resize(pln_engine *engine, void *block, size_t old_size,
                     size_t new_size);
void pln_mem_free(pln_engine *engine, void *block, size_t size);
/* Reverses the order of `n` items of `size` bytes each, 64 at most. */
void pln_mem_reverse(void *items, size_t n, size_t size);
/* Until pln_mem_reuse_end, freed blocks of 64 KiB and more are kept for later
 * requests of about the same size, as long as that does not raise the peak by
 * more than a quarter of the pool; afterwards those for which the pool has
 * room. This saves page faults in step-by-step computation. May be nested. */
void pln_mem_reuse_begin(pln_engine *engine);
void pln_mem_reuse_end(pln_engine *engine);
/* Moves a block of `size` bytes from the child's account to the parent's. */
void pln_mem_move_account(pln_engine *parent, pln_engine *child, size_t size);
/* Adds the number of calls and of bytes of the children to the parent's
 * account. */
void pln_mem_merge_account(pln_engine *parent, uint64_t calls, size_t bytes);
/* True if the memory limit allows the host `more` bytes in addition to the
 * engine's memory. The host must fail an allocation that is not allowed. */
bool pln_mem_allows(pln_engine *engine, size_t more);
/* Counts `more` bytes of host memory towards the limit. A decrease is passed as
 * a wrapped size_t. */
void pln_mem_count_host(pln_engine *engine, size_t more);
/* Reports "out of memory" without allocating; returns PLN_ERR_NOMEM. */
pln_status pln_nomem(pln_engine *engine);

/* Makes room for `need` items of `item` bytes in *items, which is too small. At
 * least doubles *capacity (counted in items). */
pln_status pln_mem_grow_array(pln_engine *engine, void **items,
                              uint32_t *capacity, size_t need,
                              size_t item) PLN_CHECKED;
/* Makes room for `need` items. The fast path, inlined into callers that append
 * one item at a time. */
PLN_CHECKED static inline pln_status pln_mem_grow(pln_engine *engine,
                                                  void **items,
                                                  uint32_t *capacity,
                                                  size_t need, size_t item) {
  return need <= *capacity
             ? PLN_OK
             : pln_mem_grow_array(engine, items, capacity, need, item);
}

/* An arena: its blocks are 16-byte aligned, never move, and are freed
 * together. */
typedef struct pln_arena {
  pln_engine *engine;
  struct pln_arena_chunk *chunks;
} pln_arena;
void pln_arena_init(pln_arena *arena, pln_engine *engine);
void *pln_arena_new(pln_arena *arena, size_t size); /* NULL when out of
                                                     * memory */
void pln_arena_free(pln_arena *arena);

/* ---------------------------------------------------------------- interning */

/* Equal byte strings get equal ids, counted from 1. Records are copied, 8-byte
 * aligned, followed by a zero byte, and never move. */
typedef struct pln_interner pln_interner;
pln_status pln_interner_new(pln_engine *engine, pln_interner **out) PLN_CHECKED;
void pln_interner_free(pln_interner *interner);
/* *added (may be NULL): whether the record is new. */
pln_status pln_intern(pln_interner *interner, const void *bytes, size_t size,
                      uint32_t *id, bool *added) PLN_CHECKED;
/* 0 when there is no such record. */
uint32_t pln_intern_find(const pln_interner *interner, const void *bytes,
                         size_t size);
/* Borrowed; `id` must come from this table. */
const void *pln_interned(const pln_interner *interner, uint32_t id,
                         size_t *size);
uint32_t pln_interner_count(const pln_interner *interner);
/* A child engine's table over its parent's, whose records keep their ids. The
 * parent's table is only read and must not change while the child lives. */
pln_status pln_interner_child(pln_engine *engine, const pln_interner *base,
                              pln_interner **out) PLN_CHECKED;
/* Number of records in the parent's table; 0 without a parent. */
uint32_t pln_interner_inherited(const pln_interner *interner);

/* A table from symbols (or any id) to 32-bit numbers; used for registries and
 * name scopes. 0 is never stored and means "absent". */
typedef struct pln_idmap pln_idmap;
pln_status pln_idmap_new(pln_engine *engine, pln_idmap **out) PLN_CHECKED;
void pln_idmap_free(pln_idmap *map);
pln_status pln_idmap_set(pln_idmap *map, uint64_t key,
                         uint32_t value) PLN_CHECKED;
uint32_t pln_idmap_get(const pln_idmap *map, uint64_t key);
uint64_t pln_idmap_bytes(const pln_idmap *map); /* memory it uses; 0 for NULL */

/* hash_table.c: an intrusive hash table. A record contains one link per table
 * that it is in. Initialise with { engine }; an empty table needs no
 * cleanup. */
typedef struct pln_hash_link {
  struct pln_hash_link *next, **at; /* `at`: the pointer that points to this
                                     * link */
  uint64_t hash;
} pln_hash_link;
typedef struct pln_hash_table {
  pln_engine *engine;
  pln_hash_link **heads;
  uint32_t n, n_heads; /* records; heads: a power of two, or 0 */
} pln_hash_table;
/* Inserts before other records of the same hash. */
pln_status pln_hash_add(pln_hash_table *table, uint64_t hash,
                        pln_hash_link *link) PLN_CHECKED;
void pln_hash_remove(pln_hash_table *table, const pln_hash_link *link);
/* The newest record of that hash; the next record of the same hash; NULL:
 * none. */
pln_hash_link *pln_hash_first(const pln_hash_table *table, uint64_t hash);
pln_hash_link *pln_hash_next(const pln_hash_link *link);
uint64_t pln_hash_table_bytes(const pln_hash_table *table);

/* 64-bit hash of bytes; `seed` is the engine's for tables fed by files. */
uint64_t pln_hash_bytes(const void *bytes, size_t size, uint64_t seed);
/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, 2014): the output of a state; output `index` from a seed. */
static inline uint64_t pln_splitmix64(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
static inline uint64_t pln_splitmix64_at(uint64_t seed, uint64_t index) {
  return pln_splitmix64(seed + (index + 1) * 0x9e3779b97f4a7c15u);
}
/* Mixes one word into a running hash. */
static inline uint64_t pln_hash_mix(uint64_t hash, uint64_t word) {
  hash ^= word + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 32);
}

/* ------------------------------------------------------------- diagnostics */

/* Writes a location prefix for messages ("model.onnx: node 'conv1' (Conv)").
 * Called only when something is reported. snprintf's protocol. */
typedef size_t (*pln_place_fn)(void *ud, char *text, size_t size);
typedef struct pln_place {
  pln_place_fn fn;
  void *ud;
} pln_place;
/* Sets the location and returns the previous one, which the caller restores. */
pln_place pln_diag_place(pln_engine *engine, pln_place place);
/* True if memory ran out since `mark`, even if only for the text of a
 * message. */
bool pln_diag_ran_out(const pln_engine *engine, size_t mark);
/* Turns the errors reported since `mark` (a pln_diag_count) into warnings. */
void pln_diag_demote(pln_engine *engine, size_t mark);
/* Adds this location to the diagnostics from `mark` on that have none. */
pln_status pln_diag_locate(pln_engine *engine, size_t mark,
                           const pln_span *span) PLN_CHECKED;
/* Replaces the location of diagnostic `index`. */
pln_status pln_diag_move(pln_engine *engine, size_t index,
                         const pln_span *span) PLN_CHECKED;
/* The maximum number of diagnostics kept, besides the newest error. */
enum { PLN_MOST_DIAGS = 1000 };
/* Drops all diagnostics from `mark` on. */
void pln_diag_drop(pln_engine *engine, size_t mark);
/* Appends two texts to the message of the newest diagnostic that is not a note,
 * if that is an error. */
void pln_diag_extend(pln_engine *engine, const char *first, const char *second);
/* Moves a child's diagnostics [begin, end) to the end of the parent's. Empty
 * rows replace them in the child, so that the indices of later ones stay
 * valid. */
void pln_diag_adopt(pln_engine *parent, pln_engine *child, size_t begin,
                    size_t end);
/* The table of diagnostics; made and freed with the engine (base.c). */
pln_status pln_diags_new(pln_engine *engine) PLN_CHECKED;
void pln_diags_free(pln_engine *engine);
/* Writes "; did you mean 'x'?" for the most similar of `n` names, or an empty
 * text when none is similar. */
void pln_suggest(const char *wanted, uint32_t n, const char *const *names,
                 char *text, size_t size);

/* ------------------------------------------------------------------ engine */

enum { PLN_FILE_CHAINS = 64 };

/* Maximum nesting of calls, unless limit.depth sets another. */
#define PLN_MOST_CALLS 100000

/* Maximum number of threads working on children of one engine. */
#define PLN_MOST_THREADS 64

/* Why the current operation should stop. */
enum { PLN_GO_ON = 0, PLN_STOP_REQUESTED, PLN_STOP_TIME };

struct pln_engine {
  pln_memory memory;
  /* A child engine's parent, whose tables it reads; frozen as long as it has
   * children. NULL: not a child. */
  pln_engine *parent;
  struct pln_borrowed
      *borrow_state; /* child engines: what is borrowed (ir/worker/borrow.c) */
  /* The running children, for signal handlers. `thread` is the system's thread
   * id; 0: none. */
  struct {
    atomic_int thread;
    _Atomic(pln_engine *) child;
  } worker_threads[PLN_MOST_THREADS];
  atomic_int stop; /* written by signal handlers and other threads */
  void (*on_stop)(void *ud);
  void *stop_ud;
  uint32_t stoppable_depth; /* open pln_stoppable_begin calls */
  timer_t timer; /* of the thread that runs a pass with a time limit */
  bool has_timer;
  double seconds;         /* the time limit of the running pass */
  uint64_t rewrites;      /* nodes replaced by rewrites in the running pass */
  uint64_t most_rewrites; /* limit of `rewrites`; 0: none */
  uint64_t built;         /* nodes appended to builders in the running pass */
  uint64_t most_built;    /* limit of `built`; 0: none */
  uint64_t most_nodes;    /* limit.nodes, from which it is derived */
  uint64_t most_steps;    /* limit of nodes evaluated by a run; 0: none */
  uint32_t most_calls;    /* limit of nested calls in a run; 0:
                           * PLN_MOST_CALLS */
  uint64_t seed;          /* seed of hash tables */
  pln_interner *symbols;
  struct pln_diags *diags;       /* base/diag.c */
  struct pln_dims *dims;         /* ir/type/dim.c */
  struct pln_types *types;       /* ir/type/type.c */
  struct pln_attr_sets *attrs;   /* ir/attrs/attrs.c */
  struct pln_op_table *ops;      /* ir/op_info.c */
  struct pln_op_attrs *op_attrs; /* ir/op_attr.c; NULL until one is set */
  struct pln_relay *relay;       /* ir/relay/attr_conversion.c */
  const struct pln_relation_row *relations; /* ir/infer/relation.c */
  uint32_t n_relations;
  struct pln_blas *blas;       /* op/kernel/matmul/blas.c */
  struct pln_registry *passes; /* pass/registry.c */
  uint32_t n_vars;             /* Var identities allocated */
  uint64_t n_inferences;       /* calls inferred; for tests */
  uint32_t n_type_vars;        /* identities of type variables and holes
                                * allocated */
  /* Counts and limits of rule applications
   * (ir/provenance/rule_application.c). */
  struct pln_applications *applications;
  struct pln_pattern_tables *pattern_tables; /* rule/dataflow/pattern_table.c */
  struct pln_library_sets *rule_sets;  /* rule/library.c; NULL until needed */
  struct pln_arith_rules *arith_rules; /* arith/rules.c; NULL until needed */
  /* Random operators (op/kernel/random/rng.c): the seed, and how many have been
   * evaluated since the run began. */
  uint64_t random_seed, random_calls;
  struct pln_file *files[PLN_FILE_CHAINS]; /* hash chains of open mappings
                                            * (base/file/file.c) */
  /* The threads of kernels (base/thread/parallel_for.c): how many workers they
   * may have, 0 or 1: the caller's thread only; open pln_parallel_begin calls;
   * the pool, NULL until needed. */
  uint32_t kernel_threads, kernel_depth;
  struct pln_thread_pool *kernel_pool;
  struct pln_profile *profile; /* eval/profile.c; NULL: none is made */
  /* The progress callback of pln_eval_on_progress. */
  void (*progress)(void *ud, uint32_t node, uint32_t n_nodes);
  void *progress_ud;
};

/* interrupt.c: brackets an operation that can be stopped; may be nested. The
 * end of the outermost one clears a stop request of the user. */
void pln_stoppable_begin(pln_engine *engine);
void pln_stoppable_end(pln_engine *engine);
/* The same at the end of work that may finish before it polls. A request that
 * did not stop this work is left for the next operation. Returns `status`. */
pln_status pln_work_done(pln_engine *engine, pln_status status) PLN_CHECKED;
/* Reports the error for a served stop request and returns its status. */
pln_status pln_stopped(pln_engine *engine) PLN_CHECKED;
/* Why this engine, or its parent, should stop. */
static inline int pln_stop_reason(const pln_engine *engine) {
  int why = atomic_load_explicit(&engine->stop, memory_order_relaxed);
  if (why == PLN_GO_ON && engine->parent)
    why = atomic_load_explicit(&engine->parent->stop, memory_order_relaxed);
  return why;
}
/* Called in every loop over user data. */
static inline pln_status pln_poll(pln_engine *engine) {
  return pln_stop_reason(engine) == PLN_GO_ON ? PLN_OK : pln_stopped(engine);
}
/* The same, but only between pln_stoppable_begin and pln_stoppable_end, because
 * the end clears the request. */
static inline pln_status pln_poll_stoppable(pln_engine *engine) {
  return engine->stoppable_depth ? pln_poll(engine) : PLN_OK;
}
/* For loops over nodes with short iterations: polls once per PLN_POLL_ROUNDS
 * iterations and never in the first. */
enum { PLN_POLL_ROUNDS = 8192 };
static inline pln_status pln_poll_round(pln_engine *engine, size_t round) {
  return (round + 1) % PLN_POLL_ROUNDS ? PLN_OK : pln_poll_stoppable(engine);
}
/* For loops over elements that cannot fail: true when the rest should be
 * skipped. The caller polls with pln_poll before it uses their output. */
static inline bool pln_is_stopped(const pln_engine *engine) {
  return pln_stop_reason(engine) != PLN_GO_ON;
}
/* The same for short iterations: polls after every PLN_POLL_ELEMENTS elements.
 * *done counts them from 0; `n` is the number in this iteration. */
enum { PLN_POLL_ELEMENTS = 1 << 16 };
static inline bool pln_is_stopped_after(const pln_engine *engine, size_t *done,
                                        size_t n) {
  *done += n;
  if (*done < PLN_POLL_ELEMENTS)
    return false;
  *done = 0;
  return pln_is_stopped(engine);
}
/* The same for loops that can fail. */
static inline pln_status pln_poll_after(pln_engine *engine, size_t *done,
                                        size_t n) {
  return pln_is_stopped_after(engine, done, n) ? pln_stopped(engine) : PLN_OK;
}
/* interrupt.c: memcpy of any size, and polls. The target is unset after an
 * error. */
pln_status pln_copy_bytes(pln_engine *engine, void *to, const void *from,
                          size_t size) PLN_CHECKED;
/* Between begin and end, on the worker thread with index `part`, a stop of the
 * parent calls the child's interrupt callback on that thread. */
void pln_worker_stop_begin(pln_engine *child, uint32_t part);
void pln_worker_stop_end(pln_engine *child, uint32_t part);
/* A real-time signal, so that the host's use of SIGALRM is not disturbed. */
#define PLN_TIMER_SIGNAL (SIGRTMIN + 7)
/* Requests a stop after that many seconds; 0 cancels. PLN_ERR_IO when the
 * system has no timer. */
pln_status pln_stop_after(pln_engine *engine, double seconds) PLN_CHECKED;
/* Seconds of a clock that never goes back, since some moment. */
double pln_seconds_now(void);

/* The part of the engine that base owns; used by engine.c. */
pln_engine *pln_base_new(pln_alloc_fn alloc, void *ud);
void pln_base_free(pln_engine *engine);

/* State shared by the children of one engine. Made before the first child and
 * freed after the last. */
typedef struct pln_worker_group {
  pln_engine *parent;
  pthread_mutex_t lock; /* protects the allocator when the host supplied it */
  bool locks;
  atomic_size_t used; /* bytes of parent and children; counted when there is a
                       * limit */
} pln_worker_group;
void pln_worker_group_begin(pln_worker_group *family, pln_engine *parent);
void pln_worker_group_end(pln_worker_group *family);
/* Makes base's part of a child engine: its own account, diagnostics, and a
 * symbol table over the parent's. NULL when out of memory; reports nothing. */
pln_engine *pln_base_child(pln_worker_group *family);

/* ----------------------------------------------------------------- buffers */

/* A growable byte buffer; data is NULL while empty. */
typedef struct pln_buffer {
  pln_engine *engine;
  char *data;
  size_t size;
  size_t capacity;
} pln_buffer;
void pln_buffer_init(pln_buffer *buffer, pln_engine *engine);
void pln_buffer_free(pln_buffer *buffer);
pln_status pln_buffer_add(pln_buffer *buffer, const void *bytes,
                          size_t size) PLN_CHECKED;
pln_status pln_buffer_text(pln_buffer *buffer, const char *text) PLN_CHECKED;
pln_status pln_buffer_printf(pln_buffer *buffer, const char *format, ...)
    PLN_PRINTF(2, 3) PLN_CHECKED;
/* A pln_write_fn whose ud is a pln_buffer. */
pln_status pln_buffer_write(void *buffer, const char *data, size_t size);

static inline bool pln_slice_equal(pln_slice a, pln_slice b) {
  return a.size == b.size && (a.size == 0 || !memcmp(a.data, b.data, a.size));
}
static inline bool pln_slice_is(pln_slice a, const char *text) {
  size_t n = strlen(text); /* a compile-time constant for literals */
  return a.size == n && (n == 0 || !memcmp(a.data, text, n));
}

#endif
