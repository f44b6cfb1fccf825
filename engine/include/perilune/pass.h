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
  PLN_PASS_FUNCTION,  /* each Relay function by itself; functions with attribute
                         SkipOptimization, Extern or Compiler are passed over */
  PLN_PASS_PRIM_FUNC, /* each loop-level function; may remove it */
  PLN_PASS_SEQUENTIAL /* passes made of passes, see pln_combinator */
} pln_pass_kind;

/* How a pass is made of others. */
typedef enum pln_combinator {
  PLN_COMBINATOR_NONE,       /* it is not: it has a body */
  PLN_COMBINATOR_SEQUENTIAL, /* one after the other */
  PLN_COMBINATOR_FIXPOINT,   /* again and again until nothing changes */
  PLN_COMBINATOR_TRY, /* a failure undoes them; then come those of `else` */
  PLN_COMBINATOR_IF_CHANGED,  /* only when the element before it changed
                                 something */
  PLN_COMBINATOR_PER_FUNCTION /* each function through all of them by itself */
} pln_combinator;

/* A pass object: immutable, reference counted. */
typedef struct pln_pass pln_pass;
/* One run of a leaf pass: what its body is given. */
typedef struct pln_pass_run pln_pass_run;
/* What passes run in, see below. */
typedef struct pln_context pln_context;

/* One option of a pass, or one config key: its name, kind (PLN_ATTR_INT,
 * _FLOAT, _STRING, _INTS, _FLOATS, _STRINGS; a boolean is an INT with is_bool,
 * and its values are PLN_ATTR_BOOL; integers for FLOATS become such), default
 * as text, a sentence; of strings the values they may have ("budget|all"; NULL:
 * any), of numbers the least and the most, as text (NULL: no bound). A list's
 * default is "[1,2]" or "[\"a\"]"; NULL is the empty one. A PLN_ATTR_DICT has
 * fields, which are no DICTs themselves, and its default is made of theirs; a
 * value has all of them, those not given by default. */
typedef struct pln_option {
  const char *name;
  pln_attr_kind kind;
  bool is_bool;
  const char *fallback;
  const char *doc;
  const char *choices;
  const char *least, *most;
  uint32_t n_fields;
  const struct pln_option *fields;
} pln_option;

/* How a parallel pass is made again in another thread, when its body belongs to
 * one thread (a script's, say). */
typedef struct pln_pass_cloner {
  /* On the caller's thread, before the others begin: what they need to know.
   * NULL: the pass stays with the caller's thread. */
  pln_status (*pack)(const pln_pass *pass, void **out);
  void (*drop)(void *packed);
  /* In another thread, before it works: the same pass in its engine. *home is
   * NULL at first, then what was made for passes before; it is closed when the
   * thread has done its work. */
  pln_status (*open)(pln_engine *engine, const void *packed,
                     void **worker_state, pln_pass **out);
  void (*close)(void *worker_state);
} pln_pass_cloner;

typedef struct pln_pass_spec {
  const char *name;
  pln_pass_kind kind; /* not SEQUENTIAL */
  int opt_level;      /* least level of a context that enables it */
  uint32_t n_required;
  const char *const *required; /* names of passes to run before */
  bool traceable;
  const char *doc;
  const char *source; /* the script that it comes from, as Lua names chunks:
                         "@deploy.lua", or the text itself; NULL: none */
  uint32_t n_options;
  const pln_option *options;
  /* FUNCTION, PRIM_FUNC: the body looks at nothing but its function and, of
   * others, at types, and may run in several threads at once (config key
   * `threads`): in each on an engine of its own, pln_run_engine. */
  bool parallel;
  /* So quick a look at each node that lending functions to threads would take
   * longer: alone it stays with the caller's thread, with others of a
   * FUNCTIONS form it goes where they go. */
  bool light;
  const pln_pass_cloner *cloner; /* NULL: `run` is called in any thread */
  pln_status (*run)(pln_pass_run *run);
  void *ud;
  void (*release)(void *ud); /* when the last reference goes; may be NULL */
  /* The result depends on nothing but the function (or module), the options and
   * what `identity` stands for: it may be kept and given again, see
   * pln_cache_stats_read. Passes of equal name and `identity`, a text, do the
   * same; NULL: only passes made of this specification do. */
  bool cacheable;
  const char *identity;
} pln_pass_spec;

/* A pass that is not registered; texts are copied. Takes spec->ud. */
PLN_API pln_status pln_pass_new(pln_engine *engine, const pln_pass_spec *spec,
                                pln_pass **out) PLN_CHECKED;
/* Registers under spec->name, in place of an earlier script's pass of that
 * name (passes built from it go on as they were). Takes spec->ud. */
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
/* The registry in order of registration; NULL past the end. */
PLN_API const pln_pass *pln_pass_registry_at(const pln_engine *engine,
                                             uint32_t index);
PLN_API pln_status pln_sequential_new(pln_engine *engine, const char *name,
                                      int opt_level, uint32_t n_required,
                                      const char *const *required, uint32_t n,
                                      pln_pass *const *passes,
                                      pln_pass **out) PLN_CHECKED;
/* A pass of another form than LEAF and SEQUENTIAL. `rounds` (1 to 1000) is the
 * most a FIXPOINT runs; the last `n_otherwise` of the `n` passes are a TRY's
 * `else`, 0 for other forms. FUNCTIONS takes passes over functions, and forms
 * of such. */
PLN_API pln_status pln_combinator_new(pln_engine *engine, pln_combinator form,
                                      uint32_t rounds, uint32_t n_otherwise,
                                      uint32_t n, pln_pass *const *passes,
                                      pln_pass **out) PLN_CHECKED;
PLN_API pln_combinator pln_pass_get_combinator(const pln_pass *pass);
/* FIXPOINT: its most rounds. */
PLN_API uint32_t pln_pass_max_iterations(const pln_pass *pass);
/* TRY: how many of its elements come before `else`; else all. */
PLN_API uint32_t pln_pass_n_try(const pln_pass *pass);
PLN_API pln_pass *pln_pass_retain(const pln_pass *pass);
PLN_API void pln_pass_release(pln_pass *pass);
PLN_API const char *pln_pass_name(const pln_pass *pass);
PLN_API const char *pln_pass_doc(const pln_pass *pass);
PLN_API const char *pln_pass_source(const pln_pass *pass); /* or NULL */
PLN_API bool pln_pass_cacheable(const pln_pass *pass);
PLN_API pln_pass_kind pln_pass_get_kind(const pln_pass *pass);
PLN_API int pln_pass_opt_level(const pln_pass *pass);
PLN_API bool pln_pass_traceable(const pln_pass *pass);
/* It may run in several threads; of a pass made of passes: all of them may. */
PLN_API bool pln_pass_parallel(const pln_pass *pass);
PLN_API uint32_t pln_pass_n_required(const pln_pass *pass);
PLN_API const char *pln_pass_required_at(const pln_pass *pass, uint32_t index);
PLN_API pln_attrs pln_pass_options(const pln_pass *pass);
PLN_API uint32_t pln_pass_n_options(const pln_pass *pass);
PLN_API const pln_option *pln_pass_option_at(const pln_pass *pass,
                                             uint32_t index);
/* The default of a row of a pass or of the config; it lives as long as the
 * engine. */
PLN_API pln_status pln_option_default(pln_engine *engine, const pln_option *row,
                                      pln_attr *out) PLN_CHECKED;
/* Elements of a sequential. */
PLN_API uint32_t pln_pass_n_elements(const pln_pass *pass);
PLN_API pln_pass *pln_pass_element_at(const pln_pass *pass, uint32_t index);

/* Runs the pass in the current context. *out is `module` itself, retained,
 * when nothing changed. On failure nothing has happened. */
PLN_API pln_status pln_pass_apply(pln_pass *pass, const pln_module *module,
                                  pln_module **out) PLN_CHECKED;

/* Takes what PrintIR prints, in pieces; a failure of `write` is one of the
 * pass. NULL, as at first: PrintIR fails, for the library writes nowhere by
 * itself. In Lua it is the standard error. */
PLN_API void pln_engine_set_output(pln_engine *engine, pln_write_fn write,
                                   void *ud);

/* What the newest pln_pass_apply failed in, when the config of its context has
 * the key `reproducer`: the pass, what it was given, the context. Borrowed
 * until the next pln_pass_apply, or until it is cleared. */
typedef struct pln_failure {
  pln_pass *pass;
  pln_module *module;
  pln_context *context;
} pln_failure;
/* NULL: there is none. */
PLN_API const pln_failure *pln_failure_last(const pln_engine *engine);
PLN_API void pln_failure_clear(pln_engine *engine);

/* Inside a pass body. */
PLN_API pln_engine *pln_run_engine(const pln_pass_run *run);
PLN_API const pln_pass *pln_run_pass(const pln_pass_run *run);
PLN_API void *pln_run_ud(const pln_pass_run *run);
PLN_API const pln_module *pln_run_module(const pln_pass_run *run);
/* Function passes: the function's name and graph. */
PLN_API pln_symbol pln_run_name(const pln_pass_run *run);
PLN_API const pln_graph *pln_run_function(const pln_pass_run *run);
/* An option of the pass as given, else as the context's config says
 * ("PassName.option", then "option"), else its default. */
PLN_API int64_t pln_run_int(const pln_pass_run *run, const char *option);
PLN_API pln_slice pln_run_string(const pln_pass_run *run, const char *option);
/* The same of any kind; false when the pass has no such option. */
PLN_API bool pln_run_option(const pln_pass_run *run, const char *option,
                            pln_attr *out);
/* The result; takes it. Not set: unchanged. */
PLN_API void pln_run_set_function(pln_pass_run *run, pln_graph *function);
PLN_API void pln_run_set_module(pln_pass_run *run, pln_module *module);
/* A PRIM_FUNC pass takes its function out of the module. */
PLN_API pln_status pln_run_remove_function(pln_pass_run *run) PLN_CHECKED;
/* Adds to a counter that the report shows beside the pass. */
PLN_API pln_status pln_run_count(pln_pass_run *run, const char *key,
                                 int64_t n) PLN_CHECKED;
/* Rewrites the function with the mutator and sets the result. */
PLN_API pln_status pln_rewrite_function(pln_pass_run *run,
                                        const pln_mutator *mutator) PLN_CHECKED;

/* A rule is a named decision of a pass to change something. Before its answer
 * is used the body asks here: the application is counted, `rule` becomes the
 * origin of what is built for it, and *allowed says whether it may happen
 * (config keys bisect.passes and bisect.applications). `node` is what it is
 * about, in the old graph, or PLN_NONE. The text lives as long as the run. */
PLN_API pln_status pln_rule_apply(pln_engine *engine, const char *rule,
                                  pln_ref node, bool *allowed) PLN_CHECKED;
/* The same in a mutator: what was built since it was called is dropped when the
 * application is refused. The mutator then answers with the node as it is. */
PLN_API pln_status pln_rewrite_apply(pln_rewrite *rw, const char *rule,
                                     bool *allowed) PLN_CHECKED;

/* What the rules did in the last outermost pln_pass_apply: a row a pass and
 * rule. */
typedef struct pln_rule_row {
  const char *pass;
  const char *rule;
  uint64_t tried; /* how often it was looked at, as far as rules are watched; at
                     least how often it had an answer */
  uint64_t applied;
  uint64_t refused; /* for a limit */
  double seconds;   /* when rules are watched; of many tries from a sample */
  pln_ref last;     /* the last node that it was applied to, or PLN_NONE */
} pln_rule_row;
PLN_API uint32_t pln_rule_count(const pln_engine *engine);
/* NULL past the end. Valid until the next pass is applied. */
PLN_API const pln_rule_row *pln_rule_at(const pln_engine *engine,
                                        uint32_t index);
/* Until the outermost application ends, every try of a rule is counted and
 * timed. For hooks and bodies. */
PLN_API void pln_rule_watch(pln_engine *engine);

/* Config keys, as `fold` is one: name, kind and default are those of an
 * option. A key of a script's takes the place of an earlier one (contexts made
 * before keep their values); PLN_ERR_NAME when it is built in. */
PLN_API pln_status pln_config_register(pln_engine *engine,
                                       const pln_option *key) PLN_CHECKED;
/* PLN_ERR_NAME when unknown or built in. */
PLN_API pln_status pln_config_unregister(pln_engine *engine,
                                         const char *name) PLN_CHECKED;
PLN_API const pln_option *
pln_config_key_at(const pln_engine *engine,
                  uint32_t index); /* NULL at the end */

/* Hooks around contexts and passes; each may be NULL. A hook that fails stops
 * what it was called from; the table in pass/README.md tells how. */
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
  /* Names of passes; "FoldConstant:2" is the second time that a run comes to
   * one. disabled > only (for all but what is made of passes) > required >
   * opt_level. */
  uint32_t n_required;
  const char *const *required;
  uint32_t n_disabled;
  const char *const *disabled;
  uint32_t n_only; /* 0: no such limit */
  const char *const *only;
  uint32_t n_instruments;
  const pln_instrument *instruments;
  pln_attrs config; /* registered keys, "key.field", "Pass.option" */
} pln_context_spec;

/* Names and config are checked here: PLN_ERR_NAME with candidates,
 * PLN_ERR_TYPE. Takes each instrument's ud. Reference counted. */
PLN_API pln_status pln_context_new(pln_engine *engine,
                                   const pln_context_spec *spec,
                                   pln_context **out) PLN_CHECKED;
PLN_API pln_context *pln_context_retain(const pln_context *context);
PLN_API void pln_context_release(pln_context *context);
PLN_API int pln_context_opt_level(const pln_context *context);
PLN_API pln_attrs pln_context_config(const pln_context *context);
/* The value of a config key or "key.field": as given, else its default.
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
/* Stacks of contexts: a coroutine has its own, which starts from its
 * creator's current context. pln_context_stack gives the one in use. */
typedef struct pln_context_stack pln_context_stack;
PLN_API pln_status pln_context_stack_new(pln_engine *engine,
                                         pln_context_stack **out) PLN_CHECKED;
PLN_API void pln_context_stack_free(pln_context_stack *stack);
PLN_API pln_context_stack *pln_context_stack_use(pln_engine *engine,
                                                 pln_context_stack *stack);

/* What the last outermost pln_pass_apply did: a row a leaf pass that ran. */
typedef struct pln_report_row {
  const char *pass;
  bool changed;
  uint32_t depth; /* nesting in sequentials */
  double seconds;
  uint32_t nodes;        /* of all functions, afterwards */
  pln_attrs counts;      /* what pln_run_count added up */
  uint32_t run;          /* its number since the outermost began, from 1 */
  uint64_t applications; /* of rules, that it asked for */
  /* The first function that it gave an equal copy of, which was dropped; NULL:
   * none. */
  const char *equal;
} pln_report_row;
PLN_API uint32_t pln_report_count(const pln_engine *engine);
PLN_API const pln_report_row *pln_report_at(const pln_engine *engine,
                                            uint32_t index);

/* Results of passes that were kept under the config key `cache`, to be given
 * again for the same function, or one that differs from it in the numbers of
 * variables and in its place in a source only. Also those that changed nothing.
 * Not kept is what a pass reported something about. A context with limit.memory
 * keeps nothing, and empties the cache. */
typedef struct pln_cache_stats {
  uint64_t hits, misses, dropped; /* dropped: to make room for others */
  uint64_t results;               /* that are held, */
  uint64_t bytes;                 /* with so much of graphs and tensors */
} pln_cache_stats;
PLN_API pln_cache_stats pln_cache_stats_read(const pln_engine *engine);
PLN_API void pln_cache_clear(pln_engine *engine);

/* Whether a graph is in basic block normal form, as ToBasicBlockNormalForm
 * makes it: *out is the first node that several blocks (branches, arms, bodies)
 * need and no let binds around them, PLN_NONE when there is none. */
PLN_API pln_status pln_graph_basic_blocks(const pln_graph *graph,
                                          pln_ref *out) PLN_CHECKED;

/* A pipeline as text: "SimplifyExpr,FoldConstant{fold=\"all\"}". The empty text
 * is the empty sequential. Errors carry a span into `text`. */
PLN_API pln_status pln_pipeline_parse(pln_engine *engine, pln_slice text,
                                      pln_pass **out) PLN_CHECKED;
PLN_API pln_status pln_pipeline_print(const pln_pass *pass, pln_write_fn write,
                                      void *ud) PLN_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
