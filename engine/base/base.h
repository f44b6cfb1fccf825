/* base.h: what every part of the engine stands on: the engine instance, its
 * memory, its tables of interned records, hashing, and the macro PLN_TRY.
 *
 * The engine holds the tables of the layers above as pointers to structs that
 * only those layers know; engine.c, at the top of engine/, makes and frees
 * them. */

#ifndef PLN_BASE_BASE_H
#define PLN_BASE_BASE_H

#include <stdarg.h>
#include <string.h>

#include "perilune.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Evaluates a status; leaves the function with it when it is no PLN_OK. */
#define PLN_TRY(expr)                \
  do {                               \
    pln_status try_status_ = (expr); \
    if (try_status_ != PLN_OK)       \
      return try_status_;            \
  } while (0)

#define PLN_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ------------------------------------------------------------------ memory */

enum { PLN_MOST_KEPT = 32 };

/* Sizes are passed when memory is freed, as Lua does: no headers. */
typedef struct pln_memory {
  pln_alloc_fn fn;
  void *ud;
  size_t used; /* with what is kept */
  size_t peak;
  uint64_t calls; /* of the allocator for more memory */
  uint64_t asked; /* bytes that these were for, all together */
  size_t limit;   /* no more may be used; 0: no limit */
  size_t outside; /* what the host took under it; pln_mem_count_host */
  struct pln_worker_group
      *family;  /* of a child: with whom it shares; else NULL */
  bool limited; /* an allocation failed of it */
  uint32_t
      reuse_depth; /* pln_mem_reuse_begin's without their pln_mem_reuse_end */
  uint32_t n_kept;
  struct {
    void *block;
    size_t size;
  } kept[PLN_MOST_KEPT]; /* freed, and not given back; oldest first */
} pln_memory;

/* NULL when memory is out (size 0 gives NULL too, and that is no error). */
void *pln_mem_new(pln_engine *engine, size_t size);
void *pln_mem_zeroed(pln_engine *engine, size_t size);
/* NULL leaves the old block as it was. */
void *pln_mem_resize(pln_engine *engine, void *block, size_t old_size,
                     size_t new_size);
void pln_mem_free(pln_engine *engine, void *block, size_t size);
/* From here to pln_mem_reuse_end freed blocks of 64 KiB and more are kept for
 * the next that ask for about as much, as far as that does not raise the peak:
 * what computes step by step is spared most of what the system asks for fresh
 * pages. May be nested. */
void pln_mem_reuse_begin(pln_engine *engine);
void pln_mem_reuse_end(pln_engine *engine);
/* From here on the account of a block of a child's is its parent's. */
void pln_mem_move_account(pln_engine *parent, pln_engine *child, size_t size);
/* So many calls, and so many bytes at most, were children's. */
void pln_mem_merge_account(pln_engine *parent, uint64_t calls, size_t bytes);
/* Whether the limit allows the host `more` bytes, beside what the engine has;
 * an allocation of the host's that it does not allow is to fail. */
bool pln_mem_allows(pln_engine *engine, size_t more);
/* From here on the host has so many bytes more; size_t's wrap when it has less.
 * They count for the limit. */
void pln_mem_count_host(pln_engine *engine, size_t more);
/* Reports "out of memory" without allocating; returns PLN_ERR_NOMEM. */
pln_status pln_nomem(pln_engine *engine);

/* Makes room for `need` items of `item` bytes in *items, which lacks it, at
 * least doubling *capacity (counted in items). */
pln_status pln_mem_grow_array(pln_engine *engine, void **items,
                              uint32_t *capacity, size_t need,
                              size_t item) PLN_CHECKED;
/* Room for `need` items, which mostly is there: asked for each that is added.
 */
PLN_CHECKED static inline pln_status pln_mem_grow(pln_engine *engine,
                                                  void **items,
                                                  uint32_t *capacity,
                                                  size_t need, size_t item) {
  return need <= *capacity
             ? PLN_OK
             : pln_mem_grow_array(engine, items, capacity, need, item);
}

/* Blocks that are freed together: each is 16-byte aligned, none moves. */
typedef struct pln_arena {
  pln_engine *engine;
  struct pln_arena_chunk *chunks;
} pln_arena;
void pln_arena_init(pln_arena *arena, pln_engine *engine);
void *pln_arena_new(pln_arena *arena, size_t size); /* NULL: memory is out */
void pln_arena_free(pln_arena *arena);

/* ---------------------------------------------------------------- interning */

/* Equal byte strings get equal ids, counted from 1. Records are copied, 8-byte
 * aligned, followed by a zero byte, and never move. */
typedef struct pln_interner pln_interner;
pln_status pln_interner_new(pln_engine *engine, pln_interner **out) PLN_CHECKED;
void pln_interner_free(pln_interner *interner);
/* *added (may be NULL) tells that the record is new. */
pln_status pln_intern(pln_interner *interner, const void *bytes, size_t size,
                      uint32_t *id, bool *added) PLN_CHECKED;
/* 0 when there is no such record. */
uint32_t pln_intern_find(const pln_interner *interner, const void *bytes,
                         size_t size);
/* Borrowed; `id` must be one that was given out. */
const void *pln_interned(const pln_interner *interner, uint32_t id,
                         size_t *size);
uint32_t pln_interner_count(const pln_interner *interner);
/* A table for a child engine over one of its parent's, whose records keep their
 * ids; the parent's is read only, and must not change while the child lives. */
pln_status pln_interner_child(pln_engine *engine, const pln_interner *base,
                              pln_interner **out) PLN_CHECKED;
/* How many records the parent's table has; 0: there is no parent. */
uint32_t pln_interner_inherited(const pln_interner *interner);

/* A table from symbols (or any id) to 32-bit numbers; used for registries and
 * name scopes. 0 is never stored and means "absent". */
typedef struct pln_idmap pln_idmap;
pln_status pln_idmap_new(pln_engine *engine, pln_idmap **out) PLN_CHECKED;
void pln_idmap_free(pln_idmap *map);
pln_status pln_idmap_set(pln_idmap *map, uint64_t key,
                         uint32_t value) PLN_CHECKED;
uint32_t pln_idmap_get(const pln_idmap *map, uint64_t key);
uint64_t pln_idmap_bytes(const pln_idmap *map); /* that it holds; NULL: 0 */

/* hash_table.c: a table of records that hold their own links, one a table they
 * are in; starts as { engine }, and needs no end once it is empty. */
typedef struct pln_hash_link {
  struct pln_hash_link *next, **at; /* `at`: what points to it */
  uint64_t hash;
} pln_hash_link;
typedef struct pln_hash_table {
  pln_engine *engine;
  pln_hash_link **heads;
  uint32_t n, n_heads; /* records; heads: a power of two, or 0 */
} pln_hash_table;
/* Before the others of its hash. */
pln_status pln_hash_add(pln_hash_table *table, uint64_t hash,
                        pln_hash_link *link) PLN_CHECKED;
void pln_hash_remove(pln_hash_table *table, const pln_hash_link *link);
/* The newest record of that hash; the next of the same hash; or NULL. */
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

/* Writes the current place ("model.onnx: node 'conv1' (Conv)") in front of
 * messages; asked only when something is reported. snprintf's protocol. */
typedef size_t (*pln_place_fn)(void *ud, char *text, size_t size);
typedef struct pln_place {
  pln_place_fn fn;
  void *ud;
} pln_place;
/* Sets the place and returns the former one, to be set back. */
pln_place pln_diag_place(pln_engine *engine, pln_place place);
/* Whether memory ran out since `mark`, be it for the text of a message. */
bool pln_diag_ran_out(const pln_engine *engine, size_t mark);
/* Turns the errors reported since `mark` (a pln_diag_count) into warnings. */
void pln_diag_demote(pln_engine *engine, size_t mark);
/* Gives those from `mark` on that have no place this one. */
pln_status pln_diag_locate(pln_engine *engine, size_t mark,
                           const pln_span *span) PLN_CHECKED;
/* Gives diagnostic `index` this place in place of its own. */
pln_status pln_diag_move(pln_engine *engine, size_t index,
                         const pln_span *span) PLN_CHECKED;
/* At most so many are kept, and the newest error. */
enum { PLN_MOST_DIAGS = 1000 };
/* Drops all diagnostics from `mark` on. */
void pln_diag_drop(pln_engine *engine, size_t mark);
/* Adds two texts to the message of the newest diagnostic but for notes, when
 * that is an error. */
void pln_diag_extend(pln_engine *engine, const char *first, const char *second);
/* Moves a child's diagnostics [begin, end) behind the parent's. They are kept
 * in the child as empty rows, so that later ones keep their places. */
void pln_diag_adopt(pln_engine *parent, pln_engine *child, size_t begin,
                    size_t end);
/* The table of diagnostics; made and freed with the engine (base.c). */
pln_status pln_diags_new(pln_engine *engine) PLN_CHECKED;
void pln_diags_free(pln_engine *engine);
/* Writes "; did you mean 'x'?" for the nearest of `n` names, or an empty text
 * when none is near. */
void pln_suggest(const char *wanted, uint32_t n, const char *const *names,
                 char *text, size_t size);

/* ------------------------------------------------------------------ engine */

enum { PLN_FILE_CHAINS = 64 };

/* Calls inside of each other, unless limit.depth says otherwise. */
#define PLN_MOST_CALLS 100000

/* Threads that work on children of one engine. */
#define PLN_MOST_THREADS 64

/* Why the engine is to stop what it is at. */
enum { PLN_GO_ON = 0, PLN_STOP_ASKED, PLN_STOP_TIME };

struct pln_engine {
  pln_memory memory;
  /* Of a child engine: the one whose tables it reads. That one is frozen while
   * it has children. NULL: no child. */
  pln_engine *parent;
  struct pln_borrowed
      *borrow_state; /* of a child: what it borrows (ir/worker/borrow.c) */
  /* Its children at work, for handlers of signals: `thread`, 0 for none, is the
   * system's number. */
  struct {
    atomic_int thread;
    _Atomic(pln_engine *) child;
  } worker_threads[PLN_MOST_THREADS];
  atomic_int stop; /* written by signal handlers and other threads */
  void (*on_stop)(void *ud);
  void *stop_ud;
  uint32_t stoppable_depth; /* pln_stoppable_begin's without their
                               pln_stoppable_end */
  timer_t timer; /* of the thread that runs a pass with a time limit */
  bool has_timer;
  double seconds;         /* the time limit of the pass at work */
  uint64_t rewrites;      /* nodes that rewriting has replaced in this pass */
  uint64_t most_rewrites; /* 0: any number */
  uint64_t most_steps;    /* nodes that a run may compute; 0: any number */
  uint32_t most_calls;    /* inside of each other in a run; 0: PLN_MOST_CALLS */
  uint64_t seed;          /* of hash tables */
  pln_interner *symbols;
  struct pln_diags *diags;                  /* base/diag.c */
  struct pln_dims *dims;                    /* ir/type/dim.c */
  struct pln_types *types;                  /* ir/type/type.c */
  struct pln_attr_sets *attrs;              /* ir/attrs/attrs.c */
  struct pln_op_table *ops;                 /* ir/op_info.c */
  struct pln_relay *relay;                  /* ir/relay/attr_conversion.c */
  const struct pln_relation_row *relations; /* ir/infer/relation.c */
  uint32_t n_relations;
  struct pln_blas *blas;       /* op/kernel/matmul/blas.c */
  struct pln_registry *passes; /* pass/registry.c */
  uint32_t n_vars;             /* Var identities given out */
  uint64_t n_inferences;       /* calls that were typed; for tests */
  uint32_t n_type_vars;        /* identities of type variables and holes */
  /* Which rules passes applied, and what still may be
   * (ir/provenance/rule_application.c). */
  struct pln_applications *applications;
  /* Of random operators (op/kernel/random/rng.c): the seed, and how many drew
   * from it since the run began. */
  uint64_t random_seed, random_calls;
  struct pln_file *files[PLN_FILE_CHAINS]; /* living mappings (base/file.c) */
  /* Who shows how far an evaluation is (pln_eval_on_progress). */
  void (*progress)(void *ud, uint32_t node, uint32_t n_nodes);
  void *progress_ud;
};

/* interrupt.c: around what can be stopped, nested or not; a stop that the user
 * asked for ends with the outermost. */
void pln_stoppable_begin(pln_engine *engine);
void pln_stoppable_end(pln_engine *engine);
/* The same behind work that may be over before it polls: a stop that has not
 * ended it is left for what comes next. Gives `status` back. */
pln_status pln_work_done(pln_engine *engine, pln_status status) PLN_CHECKED;
/* The error that a stop which was asked for is. */
pln_status pln_stopped(pln_engine *engine) PLN_CHECKED;
/* Why the engine is to stop, or its parent. */
static inline int pln_stop_reason(const pln_engine *engine) {
  int why = atomic_load_explicit(&engine->stop, memory_order_relaxed);
  if (why == PLN_GO_ON && engine->parent)
    why = atomic_load_explicit(&engine->parent->stop, memory_order_relaxed);
  return why;
}
/* In loops over user data. */
static inline pln_status pln_poll(pln_engine *engine) {
  return pln_stop_reason(engine) == PLN_GO_ON ? PLN_OK : pln_stopped(engine);
}
/* The same between pln_stoppable_begin and pln_stoppable_end only, behind which
 * a stop that the user asked for is forgotten. */
static inline pln_status pln_poll_stoppable(pln_engine *engine) {
  return engine->stoppable_depth ? pln_poll(engine) : PLN_OK;
}
/* The same in loops over nodes, whose rounds are short: asks in one round of
 * PLN_POLL_ROUNDS, and never in the first. */
enum { PLN_POLL_ROUNDS = 8192 };
static inline pln_status pln_poll_round(pln_engine *engine, size_t round) {
  return (round + 1) % PLN_POLL_ROUNDS ? PLN_OK : pln_poll_stoppable(engine);
}
/* In loops over elements, which cannot fail: whether they are to leave the rest
 * out. Their caller asks pln_poll before it reads what they have written. */
static inline bool pln_is_stopped(const pln_engine *engine) {
  return pln_stop_reason(engine) != PLN_GO_ON;
}
/* The same where rounds are short: asks when PLN_POLL_ELEMENTS were done since
 * it last asked. *done counts them, from 0 on; `n` are those of the round. */
enum { PLN_POLL_ELEMENTS = 1 << 16 };
static inline bool pln_is_stopped_after(const pln_engine *engine, size_t *done,
                                        size_t n) {
  *done += n;
  if (*done < PLN_POLL_ELEMENTS)
    return false;
  *done = 0;
  return pln_is_stopped(engine);
}
/* The same where loops can fail. */
static inline pln_status pln_poll_after(pln_engine *engine, size_t *done,
                                        size_t n) {
  return pln_is_stopped_after(engine, done, n) ? pln_stopped(engine) : PLN_OK;
}
/* From here to the other, in the thread that works with the child as its
 * parent's number `part`, a stop of the parent calls the child's hook for stops
 * there. */
void pln_worker_stop_begin(pln_engine *child, uint32_t part);
void pln_worker_stop_end(pln_engine *child, uint32_t part);
/* A real-time signal of ours: the host's alarms are left alone. */
#define PLN_TIMER_SIGNAL (SIGRTMIN + 7)
/* Asks for a stop after so many seconds; 0 takes that back. PLN_ERR_IO when
 * the system has no timer. */
pln_status pln_stop_after(pln_engine *engine, double seconds) PLN_CHECKED;
/* Seconds of a clock that never goes back, since some moment. */
double pln_seconds_now(void);

/* The part of the engine that base owns; used by engine.c. */
pln_engine *pln_base_new(pln_alloc_fn alloc, void *ud);
void pln_base_free(pln_engine *engine);

/* What the children of one engine share. Made before the first of them, freed
 * after the last. */
typedef struct pln_worker_group {
  pln_engine *parent;
  pthread_mutex_t lock; /* around the allocator, when it is the host's */
  bool locks;
  atomic_size_t used; /* by parent and children; kept when there is a limit */
} pln_worker_group;
void pln_worker_group_begin(pln_worker_group *family, pln_engine *parent);
void pln_worker_group_end(pln_worker_group *family);
/* Base's part of a child: an account, diagnostics and symbols of its own over
 * the parent's. NULL when memory is out; reports nothing. */
pln_engine *pln_base_child(pln_worker_group *family);

/* ----------------------------------------------------------------- buffers */

/* Growing bytes; data is NULL while empty. */
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
  size_t n = strlen(text); /* known when the text is a literal */
  return a.size == n && (n == 0 || !memcmp(a.data, text, n));
}

#endif
