/* pass.h: what pass objects, registry, contexts and runs are made of; for the
 * files of pass/, and for transform/, which installs the built-in passes. */

#ifndef PLN_PASS_PASS_H
#define PLN_PASS_PASS_H

#include "ir/graph/module.h"
#include "ir/provenance/rule_application.h"

/* ------------------------------------------------------------ pass objects */

/* What passes of one definition share; reference counted. Texts are symbols,
 * which live as long as the engine. */
typedef struct pln_pass_def {
  atomic_uint refs; /* children's threads count too */
  uint32_t kind;    /* pln_pass_kind */
  uint32_t form;    /* pln_combinator */
  int opt_level;
  bool traceable, cacheable;
  bool parallel; /* a group: all of its elements are */
  bool light;    /* likewise */
  const pln_pass_cloner *cloner;
  pln_symbol identity; /* text that stands for what it does, or 0 */
  uint32_t depth;      /* SEQUENTIAL: 1 + that of its deepest element; else 0 */
  uint32_t iterations; /* FIXPOINT: at most */
  uint32_t n_body;     /* TRY: so many elements, then those of `else` */
  uint32_t n_required, n_options, n_elements;
  const char *doc;
  const char *source;
  pln_symbol *required;
  pln_option *options;
  pln_attrs defaults;  /* of the options */
  pln_pass **elements; /* SEQUENTIAL: retained */
  pln_status (*run)(pln_pass_run *run);
  void *ud;
  void (*release)(void *ud);
  struct cache_entry
      *kept; /* its results in the cache (cache/cache.c), or NULL */
} pln_pass_def;

struct pln_pass {
  pln_engine *engine;
  atomic_uint refs;
  pln_symbol name;
  pln_pass_def *def; /* retained */
  pln_attrs options; /* as given, checked against def->options */
};

/* Sequentials may be nested so deep; a fixpoint has so many rounds, when the
 * text says nothing and at most. */
enum {
  PLN_PASS_MAX_DEPTH = 100,
  PLN_FIXPOINT_ROUNDS = 100,
  PLN_FIXPOINT_MOST = 1000
};

static inline bool pln_pass_is_sequential(const pln_pass *pass) {
  return pass->def->kind == PLN_PASS_SEQUENTIAL;
}
/* Another pass of the same definition; retains it. */
pln_status pln_pass_of(pln_engine *engine, pln_symbol name, pln_pass_def *def,
                       pln_attrs options, pln_pass **out) PLN_CHECKED;

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
  uint32_t n_built_in_keys; /* the first of them; scripts leave those alone */
  pln_option *keys;         /* of configs */
  pln_attrs key_defaults;   /* key = default; of keys that are gone too */
  pln_context_stack *main_stack;
  pln_context_stack *stack;            /* the one in use */
  uint32_t running;                    /* pln_pass_apply in pln_pass_apply */
  struct pln_thread_pool *thread_pool; /* threads that help; NULL: none yet */
  /* Of a child: why passes may not be applied by what runs there, or NULL. */
  const char *closed;
  uint32_t n_inherited; /* of a child: config keys of its parent */
  struct pln_pass_clones
      *pass_clones;    /* of a child: passes made again there, or NULL */
  pln_failure failure; /* retained; pass NULL: none */
  pln_write_fn print;  /* pln_engine_set_output's; NULL: none */
  void *print_ud;
  uint32_t n_rows, cap_rows;
  pln_report_row *rows;
  pln_cache *cache; /* cache/cache.c; NULL: nothing was kept */
};

/* The registry with no pass in it, its config keys and default context. */
pln_status pln_passes_new(pln_engine *engine) PLN_CHECKED;
/* A child's registry: passes of the same definitions, the same config keys, a
 * copy of the context without instruments. What fails goes with the child. */
pln_status pln_passes_child(pln_engine *child,
                            const pln_context *context) PLN_CHECKED;
void pln_passes_free(pln_engine *engine);
/* As pln_pass_register, for a pass that no script may replace. */
pln_status pln_pass_register_built_in(pln_engine *engine,
                                      const pln_pass_spec *spec) PLN_CHECKED;
/* NULL when no pass of that name is registered. */
const pln_pass *pln_pass_lookup(const pln_engine *engine, pln_symbol name);
/* PLN_ERR_NAME: "pass 'X' is not registered; did you mean 'Y'?". `before` is
 * put in front; `span` may be NULL. */
pln_status pln_pass_unknown(pln_engine *engine, const pln_span *span,
                            const char *before, const char *name);

/* ------------------------------------------------------- options
 * (config/option.c) */

/* A copy whose texts are symbols and whose fields are its own. */
pln_status pln_option_copy(pln_engine *engine, const pln_option *row,
                           pln_option *out) PLN_CHECKED;
/* What the copies hold. */
void pln_options_free(pln_engine *engine, uint32_t n, const pln_option *rows);
const pln_option *pln_option_find(const pln_option *rows, uint32_t n,
                                  pln_slice name);
/* PLN_ERR_NAME: "pass 'X' has no option 'y'" with the nearest of the rows'
 * names, or with all. `whom` is "pass 'X'", `what` "option". */
pln_status pln_option_unknown(pln_engine *engine, const char *whom,
                              const char *what, const pln_option *rows,
                              uint32_t n, pln_slice name);
/* Gives *value the row's kind, where that loses nothing, and a DICT all of its
 * fields; else PLN_ERR_TYPE, in range or PLN_ERR_TYPE too. `whom` is who is
 * told what it expects: "config key 'fold'". */
pln_status pln_option_check(pln_engine *engine, const pln_option *row,
                            const char *whom, pln_attr *value) PLN_CHECKED;
/* "an integer from 0 to 8" */
void pln_option_describe(const pln_option *row, char *text, size_t size);
/* One value, not of a list or DICT, from text; false when it is none. A STRING
 * borrows `text`. */
bool pln_option_read(const pln_option *row, pln_slice text, pln_attr *out);
/* The defaults of all rows. */
pln_status pln_option_defaults(pln_engine *engine, const pln_option *rows,
                               uint32_t n, pln_attrs *out) PLN_CHECKED;

/* config/option_text.c: a value as the text of a pipeline has it, or as a user
 * gives it on a command line: one without brackets around it, a string without
 * quotes. *out = { name = value }, not checked. */
pln_status pln_option_parse(pln_engine *engine, const pln_option *row,
                            const char *whom, pln_slice text,
                            pln_attrs *out) PLN_CHECKED;
/* Options "{a=1,b=[x]}" of whoever has these rows, checked; "" is none. The
 * text is called `source` in messages. */
pln_status pln_options_parse(pln_engine *engine, const pln_option *rows,
                             uint32_t n, const char *whom, const char *source,
                             pln_slice text, pln_attrs *out) PLN_CHECKED;
/* "{a=1,b=[\"x\"]}", or nothing. */
pln_status pln_options_print(pln_engine *engine, pln_attrs options,
                             pln_write_fn write, void *ud) PLN_CHECKED;

/* pipeline/print.c: a text in quotes; a name, in quotes where it needs them. */
pln_status pln_pipeline_quote(pln_slice text, pln_write_fn write,
                              void *ud) PLN_CHECKED;
pln_status pln_pipeline_put_name(pln_engine *engine, pln_symbol name,
                                 pln_write_fn write, void *ud) PLN_CHECKED;

/* config/config.c: the values of a dictionary against the rows of `whom`. */
pln_status pln_options_check_rows(pln_engine *engine, const pln_option *rows,
                                  uint32_t n, const char *whom, pln_attrs attrs,
                                  pln_attrs *out) PLN_CHECKED;
/* Options of a pass that come from `attrs`, each checked. */
pln_status pln_options_check(pln_engine *engine, const pln_pass *pass,
                             pln_attrs attrs, pln_attrs *out) PLN_CHECKED;
/* *options and, where they say nothing, those of `base`. */
pln_status pln_options_over(pln_engine *engine, pln_attrs base,
                            pln_attrs *options) PLN_CHECKED;
pln_status pln_config_check(pln_engine *engine, pln_attrs config,
                            pln_attrs *out) PLN_CHECKED;
/* What is registered by now stays: called when the engine is complete. */
void pln_config_seal(pln_engine *engine);
/* One entry of a config from text, as --set has it: { key = value }, checked;
 * *out 0 when no key or pass is called so. */
pln_status pln_config_parse(pln_engine *engine, const char *key, pln_slice text,
                            pln_attrs *out) PLN_CHECKED;

/* ----------------------------------------------------------------- contexts */

/* Replaced as a whole: who walks the list holds a reference. */
typedef struct pln_instruments {
  uint32_t refs, n;
  pln_instrument items[];
} pln_instruments;

/* "FoldConstant", or "FoldConstant:2": the second time that a run comes to a
 * pass of that name. */
typedef struct pln_selector {
  pln_symbol text;
  pln_symbol name;
  uint32_t nth; /* from 1; 0: each time */
} pln_selector;

typedef struct pln_selection {
  uint32_t n;
  pln_selector *items;
} pln_selection;

/* selector.c: reads the texts; PLN_ERR_NAME when no pass of this engine is
 * called so. `list` is put in front of the message. */
pln_status pln_selection_make(pln_engine *engine, const char *list, uint32_t n,
                              const char *const *texts,
                              pln_selection *out) PLN_CHECKED;
/* For a child, whose parent's symbols these are. */
pln_status pln_selection_copy(pln_engine *engine, const pln_selection *from,
                              pln_selection *out) PLN_CHECKED;
void pln_selection_free(pln_engine *engine, pln_selection *selection);
/* Whether the pass is meant when a run comes to it for the nth time; nth 0
 * asks whether it is meant each time. */
bool pln_selection_has(const pln_selection *selection, pln_symbol name,
                       uint32_t nth);
bool pln_selection_counts(const pln_selection *selection);

/* What each pass may do, from the config of its context; 0: no limit. */
typedef struct pln_limits {
  enum { PLN_VERIFY_CHANGED, PLN_VERIFY_NONE, PLN_VERIFY_ALL } verify;
  double seconds, growth;
  uint64_t nodes, memory, rewrites, steps;
  uint32_t depth; /* calls inside of each other; 0: PLN_MOST_CALLS */
  pln_rule_limits rules;
  uint32_t threads; /* 0: as many as there are processors */
  uint64_t cache;   /* bytes of results that may be kept */
} pln_limits;

/* limits.c: registers the config keys; reads what a config says. */
pln_status pln_limits_install(pln_engine *engine) PLN_CHECKED;
void pln_limits_read(pln_engine *engine, pln_attrs config, pln_limits *out);
/* Around the body of a pass: what held before is kept in *outer. */
typedef struct pln_guard {
  bool on;
  size_t memory, outside;
  double seconds;
  uint64_t rewrites, most_rewrites, most_steps;
  uint32_t most_calls;
} pln_guard;
pln_status pln_guard_begin(pln_engine *engine, const pln_limits *limits,
                           pln_guard *outer) PLN_CHECKED;
/* The same with the limits of the current context, for those who run functions
 * outside of passes. */
pln_status pln_guard_begin_current(pln_engine *engine,
                                   pln_guard *outer) PLN_CHECKED;
/* The status of the pass: a limit that it ran into is told as such. */
pln_status pln_guard_end(pln_engine *engine, const pln_guard *outer,
                         size_t mark, pln_status status) PLN_CHECKED;
pln_status pln_limits_check(pln_engine *engine, const pln_limits *limits,
                            uint32_t before, uint32_t after) PLN_CHECKED;

struct pln_context {
  pln_engine *engine;
  uint32_t refs;
  uint32_t entered; /* how often, and not left */
  int opt_level;
  pln_limits limits;
  bool counts; /* a selector asks how often a pass was come to */
  pln_selection required, disabled, only;
  pln_instruments *instruments;
  pln_attrs config;
};

/* The config key that every pass which makes constants has as an option. */
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
  pln_context *base;     /* retained: the current one when nothing is entered */
};

/* The same context in a child, without instruments. */
pln_status pln_context_child(pln_engine *child, const pln_context *from,
                             pln_context **out) PLN_CHECKED;
bool pln_context_disables(const pln_context *context, pln_symbol name);
bool pln_context_requires(const pln_context *context, pln_symbol name);
/* disabled > only > required > opt_level; `nth` time that the run comes to the
 * pass, or 0 when nobody counts. */
bool pln_context_enables(const pln_context *context, const pln_pass *pass,
                         uint32_t nth);

/* instrument.c. The list is copied and its uds are taken, on failure too. */
pln_status pln_instruments_new(pln_engine *engine, uint32_t n,
                               const pln_instrument *items,
                               pln_instruments **out) PLN_CHECKED;
void pln_instruments_release(pln_engine *engine, pln_instruments *list);
/* Calls the hooks in TVM's order; pass/README.md has the table of failures. */
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

/* Counts results that are equal to what was there. */
#define PLN_EQUAL_COPY "equal copy"

struct pln_pass_run {
  pln_engine *engine;
  const pln_pass *pass;
  const pln_context *context;
  const pln_module *module;
  uint32_t number;               /* of the runs since the outermost began */
  uint32_t index;                /* FUNCTION, PRIM_FUNC: of the module */
  struct pln_parallel *parallel; /* what other threads did of it, or NULL */
  pln_symbol equal; /* the first function that was given an equal copy of */
  const pln_graph *function; /* as it is now; NULL: a module pass */
  pln_graph *new_function;   /* what the body has set, owned */
  pln_module *new_module;
  bool per_function; /* `function` is by itself, see pln_pass_target */
  bool remove;       /* what the body has asked for */
  bool *removed;     /* one a function of the module; NULL: none is removed */
  uint32_t n_counters, cap_counters;
  pln_counter *counters;
};

/* run.c: what another run has counted of the function at hand. */
pln_status pln_run_add_count(pln_pass_run *run, const char *key,
                             int64_t n) PLN_CHECKED;
/* The counters as attributes; frees what a run holds. */
pln_status pln_run_counts(const pln_pass_run *run, pln_attrs *out) PLN_CHECKED;
void pln_run_free(pln_pass_run *run);
/* Marks a function of the module as removed. */
pln_status pln_run_drop(pln_pass_run *run, uint32_t index) PLN_CHECKED;

/* Where a run is: in an element of a list, or in a pass that the element
 * requires. Lives on the stack of who runs it. */
typedef struct pln_position {
  const struct pln_position *outer;
  const pln_pass *list;     /* NULL: `required` is at work */
  const pln_pass *required; /* by the element of `outer` */
  uint32_t index;           /* of the element */
  uint32_t iteration;       /* of a fixpoint, from 1; else 0 */
} pln_position;

/* One outermost or nested pln_pass_apply. */
typedef struct pln_execution {
  pln_engine *engine;
  pln_context *context; /* retained */
  const pln_position *position;
  uint32_t iteration; /* of the fixpoint whose list comes next */
  bool failure_noted; /* where it failed */
  uint32_t depth;     /* of sequentials, and of required passes in them */
  uint32_t runs;      /* of passes, begun before the group at work */
  uint64_t version;   /* of the module: counts changes */
  pln_idmap *counts;  /* name -> how often it was come to; NULL: nobody asks */
  /* Required passes that have run: by name, and the version they left. */
  uint32_t n_fresh, cap_fresh;
  struct pln_satisfied_requirement {
    pln_symbol name;
    uint64_t version;
  } * fresh;
} pln_execution;

/* What passes work on: a module or, in a group, one function of it. A pass
 * that changes something replaces what the subject holds; after a failure it
 * holds what was reached, and the caller drops it. */
typedef struct pln_pass_target {
  pln_module *module;  /* owned */
  pln_graph *function; /* owned; NULL: the module as a whole */
  uint32_t index;      /* of the function in the module */
} pln_pass_target;

/* subject.c. Another reference to both; gives them up. */
pln_pass_target pln_pass_target_copy(const pln_pass_target *s);
void pln_pass_target_release(pln_pass_target *s);
bool pln_pass_target_same(const pln_pass_target *a, const pln_pass_target *b);
/* Takes the new module, or function. */
void pln_pass_target_set_module(pln_pass_target *s, pln_module *module);
void pln_pass_target_set_function(pln_pass_target *s, pln_graph *function);
/* The module with the function in it, retained. */
pln_status pln_pass_target_module(const pln_pass_target *s,
                                  pln_module **out) PLN_CHECKED;

/* execute.c: hooks, then the body. */
pln_status pln_execute(pln_execution *x, const pln_pass *pass,
                       pln_pass_target *s) PLN_CHECKED;
/* parallel/pass_clone.c: passes that were made again for a child, and the home
 * of each mover; those of the parent, as the child has them. */
typedef struct pln_pass_clone {
  const pln_pass *pass; /* the parent's */
  void *packed;         /* its mover's */
} pln_pass_clone;
typedef struct pln_pass_clones {
  uint32_t n, capacity;
  pln_pass **own; /* as `list` */
  const pln_pass_clone *list;
  const pln_pass_cloner *cloner;
  void *worker_state;
} pln_pass_clones;
/* The leaf pass itself, or what stands for it in a child. */
const pln_pass *pln_pass_clone_of(const pln_engine *engine,
                                  const pln_pass *pass);
/* Makes them, and gives them up; `closed` is why none may be applied then. */
pln_status pln_pass_clones_make(pln_engine *child, uint32_t n,
                                const pln_pass_clone *list) PLN_CHECKED;
void pln_pass_clones_release(pln_engine *child);
/* primitive.c: one module or function pass; the result is verified. */
pln_status pln_run_primitive(pln_execution *x, const pln_pass *pass,
                             pln_pass_target *s) PLN_CHECKED;
/* A Relay function that no attribute keeps from passes. */
bool pln_pass_applies(const pln_graph *function);
/* Whether a function or prim_func pass is for this function. */
bool pln_primitive_applies(const pln_pass *pass, const pln_graph *function);
/* Puts the functions that are not NULL into a copy of the module. Where a
 * signature changed callers are typed again; PLN_ERR_TYPE when one does not fit
 * any more. */
pln_status pln_module_replace(const pln_module *module,
                              pln_graph *const *functions,
                              pln_module **out) PLN_CHECKED;
/* pipeline/sequential.c: elements begin to end - 1, those that the context
 * enables. */
pln_status pln_run_elements(pln_execution *x, const pln_pass *pass,
                            uint32_t begin, uint32_t end,
                            pln_pass_target *s) PLN_CHECKED;
/* pipeline/fixpoint.c, pipeline/try.c, pipeline/per_function.c: the other
 * forms. */
pln_status pln_run_fixpoint(pln_execution *x, const pln_pass *pass,
                            pln_pass_target *s) PLN_CHECKED;
pln_status pln_run_try(pln_execution *x, const pln_pass *pass,
                       pln_pass_target *s) PLN_CHECKED;
pln_status pln_run_per_function(pln_execution *x, const pln_pass *pass,
                                pln_pass_target *s) PLN_CHECKED;
/* pipeline/require.c: what an element requires. */
pln_status pln_run_required(pln_execution *x, const pln_pass *pass,
                            pln_pass_target *s) PLN_CHECKED;
/* pipeline/position.c: to be called on each way out of a failure: the first
 * call notes where the run is, and keeps what `pass` was given. */
void pln_position_note_failure(pln_execution *x, const pln_pass *pass,
                               const pln_pass_target *before);
/* failure.c: registers its config keys; keeps what `pass` was given when the
 * context wants a reproducer. */
pln_status pln_failure_install(pln_engine *engine) PLN_CHECKED;
void pln_failure_record(const pln_execution *x, const pln_pass *pass,
                        const pln_pass_target *before);
/* pipeline/print.c: prints a pipeline; [*begin, *end) is the element that the
 * `n` indices lead to, or as much of the way as the text has. */
pln_status pln_pipeline_print_at(const pln_pass *pass, const uint32_t *path,
                                 uint32_t n, pln_buffer *text, size_t *begin,
                                 size_t *end) PLN_CHECKED;
/* report.c */
pln_status pln_report_add(pln_engine *engine,
                          const pln_report_row *row) PLN_CHECKED;
void pln_report_clear(pln_engine *engine);
/* Notes about passes that gave equal copies, one a pass. */
void pln_report_note_copies(pln_engine *engine);

#endif
