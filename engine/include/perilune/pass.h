/* perilune/pass.h: passes, contexts, instruments, pipelines.
 * Part of perilune.h, which is what users include. */

#ifndef PERILUNE_PASS_H
#define PERILUNE_PASS_H

#include "perilune/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- passes */

typedef enum pln_pass_kind {
  PLN_PASS_MODULE,    /* module in, module out */
  PLN_PASS_FUNCTION,  /* each Relay function separately; skips functions with
                       * attribute SkipOptimization, Extern or Compiler */
  PLN_PASS_PRIM_FUNC, /* each TIR function; may remove it */
  PLN_PASS_SEQUENTIAL /* composed of passes, see pln_combinator */
} pln_pass_kind;

/* How a pass is composed of other passes. */
typedef enum pln_combinator {
  PLN_COMBINATOR_NONE,       /* not composed: it has a body */
  PLN_COMBINATOR_SEQUENTIAL, /* runs its elements in order */
  PLN_COMBINATOR_FIXPOINT,   /* repeats until nothing changes */
  PLN_COMBINATOR_TRY, /* a failure restores the input; then `else` runs */
  PLN_COMBINATOR_IF_CHANGED,  /* runs only when the element before it changed
                               * something */
  PLN_COMBINATOR_PER_FUNCTION /* runs all elements on one function, then on the
                               * next */
} pln_combinator;

/* A pass object: immutable, reference counted. */
typedef struct pln_pass pln_pass;
/* One run of a primitive pass; the argument of its body. */
typedef struct pln_pass_run pln_pass_run;
/* The configuration under which passes run, see below. */
typedef struct pln_context pln_context;

/* One option of a pass, or one config key: its name, its kind, its default as
 * text, and one sentence of help.
 *
 * The kind is PLN_ATTR_INT, _FLOAT, _STRING, _INTS, _FLOATS, _STRINGS or _DICT;
 * PLN_ATTR_NONE is a function (pln_pass_set_predicate), which has no default.
 * A boolean is an INT with is_bool; its values are PLN_ATTR_BOOL. Integers
 * given for FLOATS are converted. A string may list its allowed values
 * ("budget|all"; NULL: any); a number may have bounds, as text (NULL: none).
 * The default of a list is "[1,2]" or "[\"a\"]"; NULL is the empty list.
 *
 * A DICT has fields, which are not DICTs themselves. Its default consists of
 * theirs; a value has every field, with defaults for those not given. A DICT
 * without fields is a map: it has any names, with values of kind `entries`; its
 * default is empty. */
typedef struct pln_option {
  const char *name;
  pln_attr_kind kind;
  bool is_bool;
  bool single; /* STRINGS: one string stands for the list of it */
  const char *fallback;
  const char *doc;
  const char *choices;
  const char *least, *most;
  uint32_t n_fields;
  const struct pln_option *fields;
  pln_attr_kind entries; /* of a map; else 0 */
} pln_option;

/* Clones a parallel pass into another thread when its body belongs to one
 * thread (a Lua function, for example). */
typedef struct pln_pass_cloner {
  /* Called on the caller's thread before the workers start: packs what `open`
   * needs. NULL: the pass runs on the caller's thread only. */
  pln_status (*pack)(const pln_pass *pass, void **out);
  void (*drop)(void *packed);
  /* Called on a worker thread before it runs the pass: makes the same pass in
   * the worker's engine. *worker_state is NULL at the first call and shared
   * by the later ones; it is closed when the worker ends. */
  pln_status (*open)(pln_engine *engine, const void *packed,
                     void **worker_state, pln_pass **out);
  void (*close)(void *worker_state);
} pln_pass_cloner;

typedef struct pln_pass_spec {
  const char *name;
  pln_pass_kind kind; /* not SEQUENTIAL */
  int opt_level;      /* lowest opt_level of a context that enables the pass */
  uint32_t n_required;
  const char *const *required; /* names of passes that must run before */
  /* The pass records its own decisions in the trace of the context, which then
   * does not note the pass by itself (pl.tune). TVM: PassInfo.traceable. */
  bool traceable;
  const char *doc;
  const char *source; /* the script that defines it, as Lua names chunks:
                       * "@deploy.lua", or the text itself; NULL: none */
  uint32_t n_options;
  const pln_option *options;
  /* FUNCTION, PRIM_FUNC: the body reads only its function and the types of
   * others, and may run in several threads at once (config key `threads`), on
   * each with its own engine (pln_run_engine). */
  bool parallel;
  /* The pass takes less time per function than handing the function to a
   * worker. Alone it runs on the caller's thread; inside functions{..} it runs
   * where the other passes of that list run. */
  bool light;
  const pln_pass_cloner *cloner; /* NULL: `run` may be called on any thread */
  pln_status (*run)(pln_pass_run *run);
  void *ud;
  void (*release)(void *ud); /* called with the last reference; may be NULL */
  /* The result depends only on the function (or module), the options and
   * `identity`, so it may be cached; see pln_cache_stats_read. Passes with
   * equal name and `identity` (a text) do the same. NULL: only passes made from
   * this specification do. */
  bool cacheable;
  const char *identity;
  /* The spans of nodes are part of its result: a function or module that
   * differs from the input in nothing else is a change, not an equal copy. */
  bool changes_spans;
  /* The names of the features of programs that the pass handles
   * (ir/analysis/features.def); NULL: all of them. A function (for a module
   * pass: a module) with another feature is an error, PLN_ERR_UNSUPPORTED, or
   * with `skips_unhandled` stays as it is. */
  uint32_t n_handles;
  const char *const *handles;
  bool skips_unhandled;
} pln_pass_spec;

/* Makes a pass that is not registered; texts are copied. Takes spec->ud. */
PLN_API pln_status pln_pass_new(pln_engine *engine, const pln_pass_spec *spec,
                                pln_pass **out) PLN_CHECKED;
/* Registers a pass under spec->name. Replaces a pass of that name that a script
 * registered; passes already made from it are unaffected. Takes spec->ud. */
PLN_API pln_status pln_pass_register(pln_engine *engine,
                                     const pln_pass_spec *spec) PLN_CHECKED;
/* Registers an existing pass (a sequential, say) under a name. */
PLN_API pln_status pln_pass_register_object(pln_engine *engine,
                                            const char *name,
                                            pln_pass *pass) PLN_CHECKED;
/* PLN_ERR_NAME when unknown or built in. */
PLN_API pln_status pln_pass_unregister(pln_engine *engine,
                                       const char *name) PLN_CHECKED;
/* A new pass of a registered kind, options checked against its schema.
 * PLN_ERR_NAME with the nearest names when there is none. */
PLN_API pln_status pln_pass_make(pln_engine *engine, const char *name,
                                 pln_attrs options, pln_pass **out) PLN_CHECKED;
/* A function of a node, as the value of an option of the kind PLN_ATTR_NONE:
 * which calls EliminateCommonSubexpr skips, say. `graph` is sealed. */
typedef struct pln_predicate {
  pln_status (*call)(void *ud, const pln_pass_run *run, const pln_graph *graph,
                     pln_ref node, bool *answer);
  void *ud;
  void (*release)(void *ud); /* with the last pass that has it; may be NULL */
} pln_predicate;
/* Gives such an option of a pass its value; an earlier one is replaced. Takes
 * predicate->ud, on failure too. The pass then runs on the caller's thread
 * only, its results are not cached, and its text shows that there is a function
 * but cannot be parsed. PLN_ERR_NAME, PLN_ERR_TYPE when the pass has no such
 * option. Not for a pass that was applied already. */
PLN_API pln_status pln_pass_set_predicate(pln_pass *pass, const char *option,
                                          const pln_predicate *predicate)
    PLN_CHECKED;
/* The value of such an option; NULL when none was given. */
PLN_API const pln_predicate *pln_pass_predicate(const pln_pass *pass,
                                                const char *option);
/* The registered passes in order of registration; NULL past the end. */
PLN_API const pln_pass *pln_pass_registry_at(const pln_engine *engine,
                                             uint32_t index);
PLN_API pln_status pln_sequential_new(pln_engine *engine, const char *name,
                                      int opt_level, uint32_t n_required,
                                      const char *const *required, uint32_t n,
                                      pln_pass *const *passes,
                                      pln_pass **out) PLN_CHECKED;
/* A composed pass other than a sequential. `rounds` (1 to 1000) is the maximum
 * number of iterations of a FIXPOINT. The last `n_otherwise` of the `n` passes
 * are the `else` list of a TRY; 0 for other combinators. PER_FUNCTION takes
 * function passes and combinators of such. */
PLN_API pln_status pln_combinator_new(pln_engine *engine, pln_combinator form,
                                      uint32_t rounds, uint32_t n_otherwise,
                                      uint32_t n, pln_pass *const *passes,
                                      pln_pass **out) PLN_CHECKED;
PLN_API pln_combinator pln_pass_get_combinator(const pln_pass *pass);
/* FIXPOINT: the maximum number of iterations. */
PLN_API uint32_t pln_pass_max_iterations(const pln_pass *pass);
/* TRY: the number of elements before `else`. Others: all elements. */
PLN_API uint32_t pln_pass_n_try(const pln_pass *pass);
PLN_API pln_pass *pln_pass_retain(const pln_pass *pass);
PLN_API void pln_pass_release(pln_pass *pass);
PLN_API const char *pln_pass_name(const pln_pass *pass);
PLN_API const char *pln_pass_doc(const pln_pass *pass);
PLN_API const char *pln_pass_source(const pln_pass *pass); /* or NULL */
PLN_API bool pln_pass_cacheable(const pln_pass *pass);
/* pln_pass_spec.changes_spans; false for composed passes. */
PLN_API bool pln_pass_changes_spans(const pln_pass *pass);
/* The features that a primitive pass does not handle, as bits by their number
 * in ir/analysis/features.def. */
PLN_API uint32_t pln_pass_unhandled(const pln_pass *pass);
/* pln_pass_spec.skips_unhandled */
PLN_API bool pln_pass_skips_unhandled(const pln_pass *pass);
PLN_API pln_pass_kind pln_pass_get_kind(const pln_pass *pass);
PLN_API int pln_pass_opt_level(const pln_pass *pass);
PLN_API bool pln_pass_traceable(const pln_pass *pass);
/* True if it may run in several threads; for a composed pass, if all its
 * elements may. */
PLN_API bool pln_pass_parallel(const pln_pass *pass);
PLN_API uint32_t pln_pass_n_required(const pln_pass *pass);
PLN_API const char *pln_pass_required_at(const pln_pass *pass, uint32_t index);
PLN_API pln_attrs pln_pass_options(const pln_pass *pass);
PLN_API uint32_t pln_pass_n_options(const pln_pass *pass);
PLN_API const pln_option *pln_pass_option_at(const pln_pass *pass,
                                             uint32_t index);
/* The default of an option row of a pass or of the config. It lives as long as
 * the engine. */
PLN_API pln_status pln_option_default(pln_engine *engine, const pln_option *row,
                                      pln_attr *out) PLN_CHECKED;
/* Elements of a composed pass. */
PLN_API uint32_t pln_pass_n_elements(const pln_pass *pass);
PLN_API pln_pass *pln_pass_element_at(const pln_pass *pass, uint32_t index);

/* Runs the pass in the current context. *out is `module` itself, retained, when
 * nothing changed. A failure has no effect other than its diagnostics. */
PLN_API pln_status pln_pass_apply(pln_pass *pass, const pln_module *module,
                                  pln_module **out) PLN_CHECKED;

/* Sets the function that receives the output of PrintIR, piece by piece. If
 * `write` fails, the pass fails. NULL, the default: PrintIR fails, because the
 * library itself writes nowhere. Lua sets it to stderr. */
PLN_API void pln_engine_set_output(pln_engine *engine, pln_write_fn write,
                                   void *ud);

/* What failed in the latest pln_pass_apply, recorded when its context has the
 * config key `reproducer`: the pass, its input and the context. Borrowed until
 * the next pln_pass_apply, or until it is cleared. */
typedef struct pln_failure {
  pln_pass *pass;
  pln_module *module;
  pln_context *context;
} pln_failure;
/* NULL: nothing failed. */
PLN_API const pln_failure *pln_failure_last(const pln_engine *engine);
PLN_API void pln_failure_clear(pln_engine *engine);

/* For use inside a pass body. */
PLN_API pln_engine *pln_run_engine(const pln_pass_run *run);
PLN_API const pln_pass *pln_run_pass(const pln_pass_run *run);
PLN_API void *pln_run_ud(const pln_pass_run *run);
PLN_API const pln_module *pln_run_module(const pln_pass_run *run);
/* Function passes: the function's name and graph. */
PLN_API pln_symbol pln_run_name(const pln_pass_run *run);
PLN_API const pln_graph *pln_run_function(const pln_pass_run *run);
/* The value of an option: as given to the pass, else from the context's config
 * ("PassName.option", then "option"), else the default. */
PLN_API int64_t pln_run_int(const pln_pass_run *run, const char *option);
PLN_API pln_slice pln_run_string(const pln_pass_run *run, const char *option);
/* The same for any kind of value; false when the pass has no such option. */
PLN_API bool pln_run_option(const pln_pass_run *run, const char *option,
                            pln_attr *out);
/* Sets the result and takes it. Not called: unchanged. */
PLN_API void pln_run_set_function(pln_pass_run *run, pln_graph *function);
PLN_API void pln_run_set_module(pln_pass_run *run, pln_module *module);
/* Removes the function of a PRIM_FUNC pass from its module. */
PLN_API pln_status pln_run_remove_function(pln_pass_run *run) PLN_CHECKED;
/* Adds to a counter that the report prints with the pass. */
PLN_API pln_status pln_run_count(pln_pass_run *run, const char *key,
                                 int64_t n) PLN_CHECKED;
/* Rewrites the function with the mutator and sets the result. */
PLN_API pln_status pln_rewrite_function(pln_pass_run *run,
                                        const pln_mutator *mutator) PLN_CHECKED;

/* A rule is a named decision of a pass to change something. The body calls this
 * before it applies the rule. The application is counted, and `rule` becomes
 * the origin of the nodes built for it. *allowed: whether it may be applied
 * (config keys bisect.passes and bisect.applications). `node` is the node of
 * the old graph that it changes, or PLN_NONE. `rule` must live as long as the
 * run. */
PLN_API pln_status pln_rule_apply(pln_engine *engine, const char *rule,
                                  pln_ref node, bool *allowed) PLN_CHECKED;
/* The same inside a mutator. If the application is refused, nodes built since
 * the mutator was called are dropped, and the mutator must leave its node
 * unchanged. */
PLN_API pln_status pln_rewrite_apply(pln_rewrite *rw, const char *rule,
                                     bool *allowed) PLN_CHECKED;

/* What the rules did in the latest outermost pln_pass_apply: one row per pass
 * and rule. */
typedef struct pln_rule_row {
  const char *pass;
  const char *rule;
  uint64_t tried; /* number of attempts, counted while rules are watched; at
                   * least the number of matches */
  uint64_t applied;
  uint64_t refused; /* refused because of a limit */
  double seconds;   /* while rules are watched; for frequent attempts estimated
                     * from a sample */
  pln_ref last;     /* the last node changed, or PLN_NONE */
} pln_rule_row;
PLN_API uint32_t pln_rule_count(const pln_engine *engine);
/* NULL past the end. Valid until the next pass is applied. */
PLN_API const pln_rule_row *pln_rule_at(const pln_engine *engine,
                                        uint32_t index);
/* Counts and times every attempt of a rule until the outermost application
 * ends. For hooks and pass bodies. */
PLN_API void pln_rule_watch(pln_engine *engine);

/* Registers a config key, such as `fold`. Name, kind and default are as in an
 * option. A script's key may be replaced (existing contexts keep their values);
 * PLN_ERR_NAME when the key is built in. */
PLN_API pln_status pln_config_register(pln_engine *engine,
                                       const pln_option *key) PLN_CHECKED;
/* PLN_ERR_NAME when unknown or built in. */
PLN_API pln_status pln_config_unregister(pln_engine *engine,
                                         const char *name) PLN_CHECKED;
PLN_API const pln_option *
pln_config_key_at(const pln_engine *engine,
                  uint32_t index); /* NULL at the end */

/* Hooks around contexts and passes; each may be NULL. A failing hook stops its
 * caller; the table in pass/README.md gives the details. */
typedef struct pln_instrument {
  const char *name;
  void *ud;
  pln_status (*enter)(void *ud, pln_context *context);
  pln_status (*exit)(void *ud, pln_context *context);
  pln_status (*should_run)(void *ud, const pln_module *module,
                           const pln_pass *pass, bool *run);
  pln_status (*before)(void *ud, const pln_module *module,
                       const pln_pass *pass);
  pln_status (*after)(void *ud, const pln_module *module, const pln_pass *pass);
  void (*release)(void *ud);
} pln_instrument;

typedef struct pln_context_spec {
  int opt_level; /* pln_context_new(NULL spec): 2 */
  /* Names of passes; "FoldConstant:2" is the second occurrence of a pass in a
   * run. Precedence: disabled > only (not applied to composed passes) >
   * required > opt_level. */
  uint32_t n_required;
  const char *const *required;
  uint32_t n_disabled;
  const char *const *disabled;
  uint32_t n_only; /* 0: no restriction */
  const char *const *only;
  uint32_t n_instruments;
  const pln_instrument *instruments;
  pln_attrs config; /* registered keys, "key.field", "Pass.option" */
} pln_context_spec;

/* Checks names and config: PLN_ERR_NAME with candidates, PLN_ERR_TYPE. Takes
 * each instrument's ud. Reference counted. */
PLN_API pln_status pln_context_new(pln_engine *engine,
                                   const pln_context_spec *spec,
                                   pln_context **out) PLN_CHECKED;
PLN_API pln_context *pln_context_retain(const pln_context *context);
PLN_API void pln_context_release(pln_context *context);
PLN_API int pln_context_opt_level(const pln_context *context);
PLN_API pln_attrs pln_context_config(const pln_context *context);
/* The value of a config key or "key.field": as set, else the default.
 * PLN_ERR_NAME when there is no such key. */
PLN_API pln_status pln_context_config_value(const pln_context *context,
                                            const char *key,
                                            pln_attr *out) PLN_CHECKED;
PLN_API uint32_t pln_context_n_required(const pln_context *context);
PLN_API const char *pln_context_required_at(const pln_context *c, uint32_t i);
PLN_API uint32_t pln_context_n_disabled(const pln_context *context);
PLN_API const char *pln_context_disabled_at(const pln_context *c, uint32_t i);
PLN_API uint32_t pln_context_n_only(const pln_context *context);
PLN_API const char *pln_context_only_at(const pln_context *c, uint32_t i);
PLN_API uint32_t pln_context_n_instruments(const pln_context *context);
PLN_API const pln_instrument *pln_context_instrument_at(const pln_context *c,
                                                        uint32_t i);
/* The innermost entered context of this stack, else the engine's default. */
PLN_API pln_context *pln_context_current(const pln_engine *engine);
PLN_API pln_status pln_context_enter(pln_context *context) PLN_CHECKED;
PLN_API pln_status pln_context_exit(pln_context *context) PLN_CHECKED;
/* Exits the old instruments, installs and enters the new ones. */
PLN_API pln_status
pln_context_override_instruments(pln_context *context, uint32_t n,
                                 const pln_instrument *instruments) PLN_CHECKED;
/* Context stacks: each coroutine has its own, which starts from its creator's
 * current context. pln_context_stack returns the active one. */
typedef struct pln_context_stack pln_context_stack;
PLN_API pln_status pln_context_stack_new(pln_engine *engine,
                                         pln_context_stack **out) PLN_CHECKED;
PLN_API void pln_context_stack_free(pln_context_stack *stack);
PLN_API pln_context_stack *pln_context_stack_use(pln_engine *engine,
                                                 pln_context_stack *stack);

/* What the latest outermost pln_pass_apply did: one row per primitive pass that
 * ran. */
typedef struct pln_report_row {
  const char *pass;
  bool changed;
  uint32_t depth; /* nesting in sequentials */
  double seconds;
  uint32_t nodes;        /* nodes of all functions after the pass */
  pln_attrs counts;      /* counters of pln_run_count */
  uint32_t run;          /* number within the outermost apply, from 1 */
  uint64_t applications; /* rule applications that it asked for */
  /* The first function for which the pass returned an equal copy, which was
   * discarded; NULL: none. */
  const char *equal;
} pln_report_row;
PLN_API uint32_t pln_report_count(const pln_engine *engine);
PLN_API const pln_report_row *pln_report_at(const pln_engine *engine,
                                            uint32_t index);

/* Statistics of the pass result cache (config key `cache`). A cached result is
 * returned for the same function, or for an isomorphic one that differs only in
 * variable numbers and source locations. Results without a change are cached
 * too. Runs that reported diagnostics are not cached. A context with
 * limit.memory disables and empties the cache. */
typedef struct pln_cache_stats {
  uint64_t hits, misses, dropped; /* dropped: evicted to make room */
  uint64_t results;               /* results in the cache */
  uint64_t bytes;                 /* bytes of their graphs and tensors */
} pln_cache_stats;
PLN_API pln_cache_stats pln_cache_stats_read(const pln_engine *engine);
PLN_API void pln_cache_clear(pln_engine *engine);

/* Checks basic block normal form (ToBasicBlockNormalForm). *out is the first
 * node that several blocks (branches, arms, bodies) use without a let binding
 * around them, or PLN_NONE when the graph is in normal form. */
PLN_API pln_status pln_graph_basic_blocks(const pln_graph *graph,
                                          pln_ref *out) PLN_CHECKED;

/* Parses a pipeline: "SimplifyExpr,FoldConstant{fold=\"all\"}". The empty text
 * is the empty sequential. Errors carry a span into `text`. */
PLN_API pln_status pln_pipeline_parse(pln_engine *engine, pln_slice text,
                                      pln_pass **out) PLN_CHECKED;
PLN_API pln_status pln_pipeline_print(const pln_pass *pass, pln_write_fn write,
                                      void *ud) PLN_CHECKED;

/* The passes of TVM's default lowering of PrimFuncs (phases 0 to 3) as a
 * sequential, which the pass tir.lower runs. The flags tir.disable_vectorize,
 * tir.disable_storage_rewrite, tir.disable_cse_tir and the like, and the passes
 * of tir.add_lower_pass, are read from the current context now. `simple_mode`:
 * without tir.LoopPartition. */
PLN_API pln_status pln_lower_passes(pln_engine *engine, bool simple_mode,
                                    pln_pass **out) PLN_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
