/* pass.h: the internal types and functions of passes: definitions, registry,
 * options, contexts, limits and runs.
 *
 * Included by the files of pass/, and by transform/, which installs the
 * built-in passes. */

#ifndef PLN_PASS_PASS_H
#define PLN_PASS_PASS_H

#include "ir/analysis/purity.h"
#include "ir/graph/module.h"
#include "ir/provenance/rule_application.h"

/* ------------------------------------------------------------ pass objects */

/* A pass definition. All passes made from it share it; it is reference counted.
 * Its texts are symbols and live as long as the engine. */
typedef struct pln_pass_def {
  atomic_uint refs; /* atomic: child engines retain it in other threads */
  uint32_t kind;    /* pln_pass_kind */
  uint32_t form;    /* pln_combinator */
  int opt_level;
  bool traceable, cacheable;
  bool parallel; /* FUNCTIONS: all of its elements are parallel */
  bool light;    /* cheap; FUNCTIONS: all of its elements are */
  bool changes_spans;
  bool skips_unhandled; /* functions with an unhandled feature stay as is */
  uint32_t unhandled;   /* PLN_FEATURE_* that the pass does not handle */
  bool logs;            /* combinators: an element was told to write a log */
  const pln_pass_cloner *cloner;
  pln_symbol identity; /* text that determines what the body does, or 0 */
  uint32_t depth; /* SEQUENTIAL: 1 + the depth of its deepest element; else 0 */
  uint32_t iterations; /* FIXPOINT: the largest number of iterations */
  uint32_t n_body; /* TRY: number of body elements; those of `else` follow */
  uint32_t n_required, n_options, n_elements;
  const char *doc;
  const char *source;
  pln_symbol *required;
  pln_option *options;
  pln_attrs defaults;  /* default values of the options */
  pln_pass **elements; /* SEQUENTIAL: retained */
  pln_status (*run)(pln_pass_run *run);
  void *ud;
  void (*release)(void *ud);
  /* Its entries in the result cache (cache/cache.c), or NULL. */
  struct cache_entry *kept;
} pln_pass_def;

struct pln_pass {
  pln_engine *engine;
  atomic_uint refs;
  pln_symbol name;
  pln_pass_def *def; /* retained */
  pln_attrs options; /* as given by the user, checked against def->options */
  struct pln_given_predicate *predicates; /* retained; NULL: none */
};

/* The deepest nesting of sequentials; the number of iterations of a fixpoint by
 * default and at most. */
enum {
  PLN_PASS_MAX_DEPTH = 100,
  PLN_FIXPOINT_ROUNDS = 100,
  PLN_FIXPOINT_MAX = 1000
};

static inline bool pln_pass_is_sequential(const pln_pass *pass) {
  return pass->def->kind == PLN_PASS_SEQUENTIAL;
}
/* config/predicate.c: options that are functions, the last given first. A list
 * never changes, so passes made from one another share it. */
typedef struct pln_given_predicate {
  uint32_t refs;
  pln_symbol option;
  pln_predicate predicate;
  struct pln_given_predicate *next; /* retained */
} pln_given_predicate;
pln_given_predicate *pln_predicates_retain(pln_given_predicate *list);
void pln_predicates_release(pln_engine *engine, pln_given_predicate *list);
/* True if the pass writes a log (option or config key "FoldConstant.log"): its
 * runs are neither cached nor handed to threads, so that the log is complete
 * and in order. For a combinator: one of its elements does. */
bool pln_pass_writes_log(const pln_pass *pass, const pln_context *context);
/* A function belongs to the thread that gave it, and nobody knows what its
 * answers depend on. */
static inline bool pln_pass_is_parallel(const pln_pass *pass) {
  return pass->def->parallel && !pass->predicates;
}
/* Makes another pass with the same definition, which it retains. */
pln_status pln_pass_of(pln_engine *engine, pln_symbol name, pln_pass_def *def,
                       pln_attrs options, pln_pass **out) PLN_CHECKED;

/* The same with the functions that `pass`, of the same engine, was given. */
pln_status pln_pass_like(pln_engine *engine, pln_symbol name,
                         const pln_pass *pass, pln_attrs options,
                         pln_pass **out) PLN_CHECKED;

/* ---------------------------------------------------------------- registry */

typedef struct pln_registered {
  pln_pass *pass; /* retained; has the registered name */
  bool built_in;
} pln_registered;

typedef struct pln_cache pln_cache;

struct pln_registry {
  pln_engine *engine;
  uint32_t n_passes, cap_passes;
  pln_registered *passes;
  pln_idmap *by_name; /* symbol -> index + 1 */
  pln_idmap *seen;    /* symbol -> 1: names of all pass objects ever made */
  uint32_t n_keys, cap_keys;
  uint32_t n_built_in_keys; /* the number of keys registered by C; scripts
                               cannot remove these */
  pln_option *keys;         /* rows of the config keys */
  pln_attrs key_defaults;   /* key = default, also of keys removed since */
  pln_context_stack *main_stack;
  pln_context_stack *stack; /* the current stack */
  uint32_t running;         /* number of pln_pass_apply calls that are active */
  struct pln_thread_pool *thread_pool; /* NULL until first used */
  /* Of a child engine: why no pass may be applied there now, or NULL. */
  const char *closed;
  uint32_t n_inherited; /* of a child: how many config keys it shares with its
                           parent */
  /* Of a child: its clones of the parent's passes, or NULL. */
  struct pln_pass_clones *pass_clones;
  pln_failure failure; /* retained; pass NULL: no failure recorded */
  pln_write_fn print;  /* set by pln_engine_set_output; NULL: none */
  void *print_ud;
  uint32_t n_rows, cap_rows;
  pln_report_row *rows;
  pln_cache *cache; /* cache/cache.c; NULL until a result is stored */
};

/* Makes an empty registry with the config keys and the default context. */
pln_status pln_passes_new(pln_engine *engine) PLN_CHECKED;
/* Makes the registry of a child engine: passes with the same definitions, the
 * same config keys, and a copy of the context without instruments. On failure
 * the caller releases the child. */
pln_status pln_passes_child(pln_engine *child,
                            const pln_context *context) PLN_CHECKED;
void pln_passes_free(pln_engine *engine);
/* Like pln_pass_register, for a pass that no script may replace. */
pln_status pln_pass_register_built_in(pln_engine *engine,
                                      const pln_pass_spec *spec) PLN_CHECKED;
/* A sequential among the built-in passes. */
typedef struct pln_sequential_spec {
  const char *name;
  int opt_level;
  uint32_t n_required;
  const char *const *required;
  const char *elements; /* a pipeline's text */
  const char *doc;
} pln_sequential_spec;
/* Registers one whose elements are registered. */
pln_status
pln_sequential_register_built_in(pln_engine *engine,
                                 const pln_sequential_spec *spec) PLN_CHECKED;
/* NULL when no pass of that name is registered. */
const pln_pass *pln_pass_lookup(const pln_engine *engine, pln_symbol name);
/* Reports PLN_ERR_NAME: "pass 'X' is not registered; did you mean 'Y'?".
 * `before` is a prefix of the message; `span` may be NULL. */
pln_status pln_pass_unknown(pln_engine *engine, const pln_span *span,
                            const char *before, const char *name);

/* ------------------------------------------------------- options
 * (config/option.c) */

/* Copies a row: its texts become symbols and it owns its fields. */
pln_status pln_option_copy(pln_engine *engine, const pln_option *row,
                           pln_option *out) PLN_CHECKED;
/* Frees what the rows own. */
void pln_options_free(pln_engine *engine, uint32_t n, const pln_option *rows);
const pln_option *pln_option_find(const pln_option *rows, uint32_t n,
                                  pln_slice name);
/* Reports PLN_ERR_NAME: "pass 'X' has no option 'y'", with the nearest name of
 * the rows or all of them. `whom` is "pass 'X'", `what` is "option". */
pln_status pln_option_unknown(pln_engine *engine, const char *whom,
                              const char *what, const pln_option *rows,
                              uint32_t n, pln_slice name);
/* Converts *value to the kind of the row if that is lossless, and adds the
 * missing fields of a DICT. Reports PLN_ERR_TYPE or PLN_ERR_RANGE otherwise.
 * `whom` starts the message: "config key 'fold'". */
pln_status pln_option_check(pln_engine *engine, const pln_option *row,
                            const char *whom, pln_attr *value) PLN_CHECKED;
/* The row of an entry of a map; it borrows the name. */
pln_option pln_option_of_entry(const pln_option *row, const char *name);
/* Writes what the row accepts: "an integer from 0 to 8". */
void pln_option_describe(const pln_option *row, char *text, size_t size);
/* Reads one value from text; false if the text is not one. Not for lists and
 * DICTs. A STRING borrows `text`. */
bool pln_option_read(const pln_option *row, pln_slice text, pln_attr *out);
/* The defaults of all rows. */
pln_status pln_option_defaults(pln_engine *engine, const pln_option *rows,
                               uint32_t n, pln_attrs *out) PLN_CHECKED;

/* config/option_text.c: parses a value as a pipeline's text writes it, or as a
 * user types it on a command line, where the outer brackets and the quotes may
 * be missing. *out = { name = value }, not checked. */
pln_status pln_option_parse(pln_engine *engine, const pln_option *row,
                            const char *whom, pln_slice text,
                            pln_attrs *out) PLN_CHECKED;
/* Parses options "{a=1,b=[x]}" and checks them against the rows; "" has none.
 * Messages call the text `source`. */
pln_status pln_options_parse(pln_engine *engine, const pln_option *rows,
                             uint32_t n, const char *whom, const char *source,
                             pln_slice text, pln_attrs *out) PLN_CHECKED;
/* Prints "{a=1,b=[\"x\"]}", or nothing when there are no options. */
pln_status pln_options_print(pln_engine *engine, pln_attrs options,
                             pln_write_fn write, void *ud) PLN_CHECKED;

/* pipeline/print.c: prints a text in quotes; prints a name, in quotes if the
 * grammar requires them. */
pln_status pln_pipeline_quote(pln_slice text, pln_write_fn write,
                              void *ud) PLN_CHECKED;
pln_status pln_pipeline_put_name(pln_engine *engine, pln_symbol name,
                                 pln_write_fn write, void *ud) PLN_CHECKED;

/* config/config.c: checks the values of a dictionary against the rows. `whom`
 * starts the messages. */
pln_status pln_options_check_rows(pln_engine *engine, const pln_option *rows,
                                  uint32_t n, const char *whom, pln_attrs attrs,
                                  pln_attrs *out) PLN_CHECKED;
/* Checks `attrs` as options of the pass. */
pln_status pln_options_check(pln_engine *engine, const pln_pass *pass,
                             pln_attrs attrs, pln_attrs *out) PLN_CHECKED;
/* Merges *options over `base`: an option that *options lacks is taken from
 * base. */
pln_status pln_options_over(pln_engine *engine, pln_attrs base,
                            pln_attrs *options) PLN_CHECKED;
pln_status pln_config_check(pln_engine *engine, pln_attrs config,
                            pln_attrs *out) PLN_CHECKED;
/* Makes the keys registered so far permanent. Called once the engine is
 * complete. */
void pln_config_seal(pln_engine *engine);
/* Parses one config entry, as given to --set: { key = value }, checked. *out is
 * 0 when there is no key or pass of that name. */
pln_status pln_config_parse(pln_engine *engine, const char *key, pln_slice text,
                            pln_attrs *out) PLN_CHECKED;

/* ----------------------------------------------------------------- contexts */

/* Immutable and reference counted: replacing a context's list does not disturb
 * a caller that iterates over the old one. */
typedef struct pln_instruments {
  uint32_t refs, n;
  pln_instrument items[];
} pln_instruments;

/* "FoldConstant" selects every run of that pass; "FoldConstant:2" only the
 * second one of an application. */
typedef struct pln_selector {
  pln_symbol text;
  pln_symbol name;
  uint32_t nth; /* counted from 1; 0: every run */
} pln_selector;

typedef struct pln_selection {
  uint32_t n;
  pln_selector *items;
} pln_selection;

/* selector.c: parses the texts. PLN_ERR_NAME when this engine has no pass of
 * that name; `list` is the prefix of the message. */
pln_status pln_selection_make(pln_engine *engine, const char *list, uint32_t n,
                              const char *const *texts,
                              pln_selection *out) PLN_CHECKED;
/* Makes the selection of a child engine. The child shares its parent's symbols.
 */
pln_status pln_selection_copy(pln_engine *engine, const pln_selection *from,
                              pln_selection *out) PLN_CHECKED;
void pln_selection_free(pln_engine *engine, pln_selection *selection);
/* Returns true if the selection contains the `nth` run of the pass. nth 0 asks
 * whether it contains every run. */
bool pln_selection_has(const pln_selection *selection, pln_symbol name,
                       uint32_t nth);
bool pln_selection_counts(const pln_selection *selection);

/* Limits on one pass, read from the config of its context; 0: no limit. */
typedef struct pln_limits {
  enum { PLN_VERIFY_CHANGED, PLN_VERIFY_NONE, PLN_VERIFY_ALL } verify;
  double seconds, growth;
  uint64_t nodes, memory, rewrites, steps;
  uint32_t depth; /* nesting of calls; 0: PLN_MOST_CALLS */
  pln_rule_limits rules;
  uint32_t threads; /* 0: one per processor */
  uint64_t cache;   /* largest size of the result cache, in bytes */
} pln_limits;

/* limits.c: registers the config keys of limits; reads them from a config. */
pln_status pln_limits_install(pln_engine *engine) PLN_CHECKED;
void pln_limits_read(pln_engine *engine, pln_attrs config, pln_limits *out);
/* Saves the outer limits in *outer while the body of a pass runs under its own.
 */
typedef struct pln_guard {
  bool on;
  size_t memory, outside;
  double seconds;
  uint64_t rewrites, most_rewrites, most_steps;
  uint64_t built, most_built, most_nodes;
  uint32_t most_calls, threads;
} pln_guard;
pln_status pln_guard_begin(pln_engine *engine, const pln_limits *limits,
                           pln_guard *outer) PLN_CHECKED;
/* The same with the limits of the current context, for functions that are run
 * outside of passes. */
pln_status pln_guard_begin_current(pln_engine *engine,
                                   pln_guard *outer) PLN_CHECKED;
/* Restores the outer limits. Returns the status of the pass; if a limit stopped
 * it, the diagnostic names the limit. */
pln_status pln_guard_end(pln_engine *engine, const pln_guard *outer,
                         size_t mark, pln_status status) PLN_CHECKED;
pln_status pln_limits_check(pln_engine *engine, const pln_limits *limits,
                            uint32_t before, uint32_t after) PLN_CHECKED;

struct pln_context {
  pln_engine *engine;
  uint32_t refs;
  uint32_t entered; /* number of entries that have not been left */
  int opt_level;
  pln_limits limits;
  bool counts; /* a selector has an occurrence, so runs are counted */
  pln_selection required, disabled, only;
  pln_instruments *instruments;
  pln_attrs config;
};

/* The config key `fold`, which is also an option of every pass that makes
 * constants. */
#define PLN_FOLD_OPTION                                                     \
  {                                                                         \
    .name = "fold", .kind = PLN_ATTR_STRING, .fallback = "budget",          \
    .doc = "Which constants may be made: 'budget' keeps the model's size, " \
           "'all' lifts the limit.",                                        \
    .choices = "budget|all"                                                 \
  }

struct pln_context_stack {
  pln_engine *engine;
  uint32_t n, cap;
  pln_context **entered; /* retained, innermost last */
  pln_context *base;     /* retained: current while no context is entered */
};

/* Copies a context into a child engine, without its instruments. */
pln_status pln_context_child(pln_engine *child, const pln_context *from,
                             pln_context **out) PLN_CHECKED;
bool pln_context_disables(const pln_context *context, pln_symbol name);
bool pln_context_requires(const pln_context *context, pln_symbol name);
/* Precedence: disabled, only, required, opt_level. `nth` counts the runs of
 * this pass in the application; 0 when runs are not counted. */
bool pln_context_enables(const pln_context *context, const pln_pass *pass,
                         uint32_t nth);

/* instrument.c. Copies the list and takes ownership of its uds, on failure too.
 */
pln_status pln_instruments_new(pln_engine *engine, uint32_t n,
                               const pln_instrument *items,
                               pln_instruments **out) PLN_CHECKED;
void pln_instruments_release(pln_engine *engine, pln_instruments *list);
/* Calls the hooks in TVM's order. The table in pass/README.md says what happens
 * when one fails. */
pln_status pln_hooks_enter(pln_context *context) PLN_CHECKED;
pln_status pln_hooks_exit(pln_context *context) PLN_CHECKED;
pln_status pln_hooks_should_run(pln_context *context, const pln_module *module,
                                const pln_pass *pass, bool *run) PLN_CHECKED;
pln_status pln_hooks_before(pln_context *context, const pln_module *module,
                            const pln_pass *pass) PLN_CHECKED;
pln_status pln_hooks_after(pln_context *context, const pln_module *module,
                           const pln_pass *pass) PLN_CHECKED;

/* --------------------------------------------------------------------- runs */

typedef struct pln_counter {
  pln_symbol key;
  int64_t n;
} pln_counter;

/* Counter: results that were equal to the input. */
#define PLN_EQUAL_COPY "equal copy"

struct pln_pass_run {
  pln_engine *engine;
  const pln_pass *pass;
  const pln_context *context;
  const pln_module *module;
  uint32_t number; /* number of this run within the outermost application */
  uint32_t index;  /* FUNCTION, PRIM_FUNC: index in the module */
  struct pln_parallel
      *parallel;    /* results computed by worker threads, or NULL */
  pln_symbol equal; /* the first function whose result was an equal copy */
  const pln_graph *function; /* the current function; NULL: a module pass */
  pln_graph *new_function;   /* result set by the body, owned */
  pln_module *new_module;
  bool per_function; /* `function` is newer than the module; see pln_pass_target
                      */
  bool remove;       /* the body asked to remove the function */
  bool reads_module; /* see pln_run_reads_module */
  /* One flag per function of the module; NULL: none is removed. */
  bool *removed;
  uint32_t n_counters, cap_counters;
  pln_counter *counters;
  pln_purity purity; /* of `module`; see pln_run_purity */
  /* By function of `module`; NULL: not asked yet (pln_run_is_referenced). */
  bool *referenced;
};

/* run.c: adds a counter value that another run counted for this function. */
pln_status pln_run_add_count(pln_pass_run *run, const char *key,
                             int64_t n) PLN_CHECKED;
/* The functions of the run's module that have effects; computed at the first
 * call. A pass that asks depends on more than its function: it must not be
 * cacheable. */
/* The result for this function depends on other functions of the module too, so
 * that the result cache does not keep it. */
static inline void pln_run_reads_module(pln_pass_run *run) {
  run->reads_module = true;
}
pln_status pln_run_purity(pln_pass_run *run,
                          const pln_purity **out) PLN_CHECKED;
/* *out: some function of the module refers to the one that the pass runs on.
 * Not for passes that run on threads. */
pln_status pln_run_is_referenced(pln_pass_run *run, bool *out) PLN_CHECKED;
/* The counters as attributes. Frees the counters of the run. */
pln_status pln_run_counts(const pln_pass_run *run, pln_attrs *out) PLN_CHECKED;
void pln_run_free(pln_pass_run *run);
/* Marks a function of the module as removed by the pass. */
pln_status pln_run_drop(pln_pass_run *run, uint32_t index) PLN_CHECKED;

/* Position of a run in a pipeline: an element of a list, or a pass that the
 * element requires. Lives on the stack of the function that runs it. */
typedef struct pln_position {
  const struct pln_position *outer;
  const pln_pass *list;     /* NULL: a required pass is running */
  const pln_pass *required; /* the pass required by the element of `outer` */
  uint32_t index;           /* index of the element */
  uint32_t iteration;       /* of a fixpoint, counted from 1; else 0 */
} pln_position;

/* State of one pln_pass_apply, outermost or nested. */
typedef struct pln_execution {
  pln_engine *engine;
  pln_context *context; /* retained */
  const pln_position *position;
  uint32_t iteration; /* iteration of the fixpoint whose list runs next */
  bool failure_noted; /* a failure was noted at its position */
  uint32_t depth;     /* nesting of sequentials and of required passes */
  /* Number of pass runs started, up to the current functions{..}. */
  uint32_t runs;
  uint64_t version;  /* incremented at each change of the module */
  pln_idmap *counts; /* name -> number of runs; NULL: not counted */
  /* Required passes that have run, by name, with the module version they left.
   */
  uint32_t n_fresh, cap_fresh;
  struct pln_satisfied_requirement {
    pln_symbol name;
    uint64_t version;
  } * fresh;
} pln_execution;

/* The target of a pass: a module or, inside functions{..}, one function of it.
 * A pass that changes something replaces the module or function of its target.
 * After a failure the target holds the last valid result; the caller releases
 * it. */
typedef struct pln_pass_target {
  pln_module *module;  /* owned */
  pln_graph *function; /* owned; NULL: the module as a whole */
  uint32_t index;      /* index of the function in the module */
} pln_pass_target;

/* target.c. Retains both for the copy; releases both. */
pln_pass_target pln_pass_target_copy(const pln_pass_target *s);
void pln_pass_target_release(pln_pass_target *s);
bool pln_pass_target_same(const pln_pass_target *a, const pln_pass_target *b);
/* Replaces the module or function; takes ownership of the new one. */
void pln_pass_target_set_module(pln_pass_target *s, pln_module *module);
void pln_pass_target_set_function(pln_pass_target *s, pln_graph *function);
/* Returns the module with the target's function in it, retained. */
pln_status pln_pass_target_module(const pln_pass_target *s,
                                  pln_module **out) PLN_CHECKED;

/* execute.c: runs the hooks and the body. */
pln_status pln_execute(pln_execution *x, const pln_pass *pass,
                       pln_pass_target *s) PLN_CHECKED;
/* parallel/pass_clone.c: the primitive passes that were cloned into a child
 * engine, and the owner that each pass cloner returned. `list` has the parent's
 * passes, in the order of the clones. */
typedef struct pln_pass_clone {
  const pln_pass *pass; /* of the parent */
  void *packed;         /* packed by the pass cloner */
} pln_pass_clone;
typedef struct pln_pass_clones {
  uint32_t n, capacity;
  pln_pass **own; /* the clones, parallel to `list` */
  const pln_pass_clone *list;
  const pln_pass_cloner *cloner;
  void *worker_state;
} pln_pass_clones;
/* The clone of a primitive pass in a child engine; the pass itself if it was
 * not cloned. */
const pln_pass *pln_pass_clone_of(const pln_engine *engine,
                                  const pln_pass *pass);
/* Makes the clones; releases them. Passes cannot be applied while the clones
 * are made: `closed` is set to the reason. */
pln_status pln_pass_clones_make(pln_engine *child, uint32_t n,
                                const pln_pass_clone *list) PLN_CHECKED;
void pln_pass_clones_release(pln_engine *child);
/* primitive.c: runs one primitive pass and verifies its result. */
pln_status pln_run_primitive(pln_execution *x, const pln_pass *pass,
                             pln_pass_target *s) PLN_CHECKED;
/* Returns true for a Relay function that no attribute excludes from passes. */
bool pln_pass_applies(const pln_graph *function);
/* Returns true if the pass, a function or prim_func pass, runs on the function.
 */
bool pln_primitive_applies(const pln_pass *pass, const pln_graph *function);
/* Copies the module and replaces its functions by those that are not NULL.
 * Infers the callers of functions with changed signatures again; PLN_ERR_TYPE
 * if a caller does not type-check any more. */
pln_status pln_module_replace(const pln_module *module,
                              pln_graph *const *functions,
                              pln_module **out) PLN_CHECKED;
/* pipeline/sequential.c: runs elements [begin, end) that the context enables.
 */
pln_status pln_run_elements(pln_execution *x, const pln_pass *pass,
                            uint32_t begin, uint32_t end,
                            pln_pass_target *s) PLN_CHECKED;
/* pipeline/fixpoint.c, pipeline/try.c, pipeline/per_function.c: run the other
 * combinators. */
pln_status pln_run_fixpoint(pln_execution *x, const pln_pass *pass,
                            pln_pass_target *s) PLN_CHECKED;
pln_status pln_run_try(pln_execution *x, const pln_pass *pass,
                       pln_pass_target *s) PLN_CHECKED;
pln_status pln_run_per_function(pln_execution *x, const pln_pass *pass,
                                pln_pass_target *s) PLN_CHECKED;
/* pipeline/require.c: runs the passes that an element requires. */
pln_status pln_run_required(pln_execution *x, const pln_pass *pass,
                            pln_pass_target *s) PLN_CHECKED;
/* pipeline/position.c: called on every error path out of a pass. The first call
 * reports the position and records the input of `pass` for a reproducer. */
void pln_position_note_failure(pln_execution *x, const pln_pass *pass,
                               const pln_pass_target *before);
/* failure.c: registers its config keys; records the input of `pass` when the
 * context asks for a reproducer. */
pln_status pln_failure_install(pln_engine *engine) PLN_CHECKED;
void pln_failure_record(const pln_execution *x, const pln_pass *pass,
                        const pln_pass_target *before);
/* pipeline/print.c: prints a pipeline. [*begin, *end) is the text of the
 * element that the path of `n` indices leads to, or of the innermost printed
 * ancestor. */
pln_status pln_pipeline_print_at(const pln_pass *pass, const uint32_t *path,
                                 uint32_t n, pln_buffer *text, size_t *begin,
                                 size_t *end) PLN_CHECKED;
/* report.c */
pln_status pln_report_add(pln_engine *engine,
                          const pln_report_row *row) PLN_CHECKED;
void pln_report_clear(pln_engine *engine);
/* Reports one note per pass that returned equal copies. */
void pln_report_note_copies(pln_engine *engine);

#endif
