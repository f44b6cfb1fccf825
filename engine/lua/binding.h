/* binding.h: shared declarations of the Lua binding.
 *
 * A "box" is a full userdata that owns one C object. Three rules keep a raised
 * Lua error (a longjmp) from leaking or corrupting engine memory:
 *     1. a C object is created directly into a box that is already on the stack
 *        and has its metatable; the box's __gc releases it;
 *     2. all arguments are read before the engine is called;
 *     3. the engine calls Lua only through pln_lua_protect, whose body does all
 *        that can raise: pushing arguments, the call, reading the answer.
 *
 * Stack effects are written [-popped, +pushed]. */

#ifndef PLN_LUA_BINDING_H
#define PLN_LUA_BINDING_H

#include <lauxlib.h>
#include <lua.h>

#include "base/base.h"

/* Metatable names. */
#define PLN_LUA_MODULE "perilune.Module"
#define PLN_LUA_GRAPH "perilune.Graph"
#define PLN_LUA_NODE "perilune.Node"
#define PLN_LUA_TENSOR "perilune.Tensor"
#define PLN_LUA_TYPE "perilune.Type"
#define PLN_LUA_ATTRS "perilune.Attrs"
#define PLN_LUA_OP "perilune.Op"
#define PLN_LUA_PASS "perilune.Pass"
#define PLN_LUA_CONTEXT "perilune.Context"
#define PLN_LUA_DIAG "perilune.Diag"

/* ------------------------------------------------------------------- state */

/* One per Lua state; upvalue 1 of every function of the binding. */
typedef struct pln_lua {
  pln_engine *engine;          /* NULL once the state is closing */
  lua_State *L;                /* the thread that called the binding last */
  int depth;                   /* number of active callbacks */
  lua_State *body;             /* the thread of the innermost callback */
  lua_CFunction pcall, xpcall; /* Lua's own; NULL: unknown */
  /* Where constructors append: the builder of the running rewrite or pass, or
   * NULL for the floating one. `free` is the same without rewrites: where
   * constructors append that always build freely. */
  struct pln_lua_graph *target;
  struct pln_lua_graph *free;
  struct pln_lua_rewriting *rewriting; /* the innermost running mutator */
  pln_pass_run *run;                   /* the innermost running Lua pass */
  pln_context_stack *stack; /* the current one; NULL: the main thread's */
  size_t collect_at; /* engine bytes at which the next Lua collection starts */
  bool pool_is_set;  /* a script or pl.eval has set the engine's pool */
  double seconds;    /* total time spent in passes written in Lua */
  bool quiet; /* a failure is being reported: stop requests are postponed */
  void (*on_stop)(void *ud); /* set by the host; called by signal handlers */
  void *stop_ud;
  /* Set by the host, saved while Lua's memory counts for a limit. */
  lua_Alloc alloc;
  void *alloc_ud;
  lua_CFunction protected_body; /* of the innermost pln_lua_protect */
  /* The allocator that an error for lack of memory takes the place of
   * (pass/interrupt.c). */
  lua_Alloc host_alloc;
  void *host_ud;
  lua_State *refused;
  int refusals;
  lua_State *holder; /* the thread that runs a script only to define its passes;
                        applying a pass ends the script */
  /* In a worker's state: see pass/pass_clone.c. */
  struct pln_lua_worker_state *worker_state;
} pln_lua;

/* Registry keys: the addresses of these bytes. Each holds a table. */
typedef struct pln_lua_keys {
  char unique;      /* C pointer -> its box; weak values */
  char anchors;     /* C pointer -> value that the engine needs */
  char callbacks;   /* ud of a pass or instrument -> function or table */
  char interned;    /* types and attributes by number; weak values */
  char ops;         /* operator number -> Op */
  char kinds;       /* kind number -> {name, fields} */
  char floating;    /* {[1] = the floating graph box}; weak values */
  char saved_error; /* the error that a callback raised, until it is raised
                       again */
  char library;     /* sources of the library's own scripts */
  char stacks;      /* coroutine -> its stack of contexts; weak keys */
  char rebuild;     /* the function `rebuild` given to mutators */
  char target;      /* function: text -> Target */
  char failed;      /* callback for failed pass applications */
} pln_lua_keys;
extern const pln_lua_keys pln_lua_key;

/* The string argument as a symbol of the engine. */
pln_symbol pln_lua_check_symbol(lua_State *L, pln_lua *b, int arg);
/* The state of the running function; raises once the engine is gone. */
pln_lua *pln_lua_state_of(lua_State *L);
/* Pushes one of the tables above.  [-0, +1] */
void pln_lua_table(lua_State *L, const char *key);
/* table[pointer] = the value on top, in the table `key`.  [-1, +0] */
void pln_lua_registry_set(lua_State *L, const char *key, const void *pointer);
/* Removes that entry. Cannot raise. */
void pln_lua_forget(lua_State *L, const char *key, const void *pointer);
/* Pushes that value, or nil.  [-0, +1] */
int pln_lua_registry_get(lua_State *L, const char *key, const void *pointer);

/* Makes the metatable `name`. `methods` go into a table; `index` (NULL: the
 * table itself) is __index and gets that table as upvalue 2 and the metatable
 * as upvalue 3.  [-0, +0] */
void pln_lua_class(lua_State *L, const char *name, const luaL_Reg *methods,
                   const luaL_Reg *meta, lua_CFunction index);
/* Pushes a zeroed userdata of a class with `uservalues` user values.  [-0,
 * +1] */
void *pln_lua_userdata(lua_State *L, const char *name, size_t size,
                       int uservalues);
/* The same for an object with much engine memory: runs the collector first when
 * the engine's memory has grown much. */
void *pln_lua_large_userdata(lua_State *L, const char *name, size_t size,
                             int uservalues);
/* Replaces the new box on top by an older box of the same pointer, if there is
 * one, so that objects compare by identity.  [-1, +1] */
void pln_lua_unique(lua_State *L, const void *pointer);

/* Runs `body` with a light userdata `ud` while no finalizer can run.
 *
 * Lua may run a script's finalizer at any allocation. It may call the library,
 * which clears diagnostics and reports and frees objects that it closes.
 * Therefore diagnostics and reports are read inside `body`. Arguments that can
 * be closed (modules, passes, contexts, tensors) are checked after the last
 * allocation before the engine is called.  [-0, +results] */
void pln_lua_without_finalizers(lua_State *L, lua_CFunction body, void *ud,
                                int results);

/* ------------------------------------------------------------------ errors */

/* Pushes the error of a failed call: a Diag, or what a callback raised.  [-0,
 * +1] */
void pln_lua_push_failure(lua_State *L, pln_lua *b, pln_status status);
/* Finds the innermost line of a user's script: its level + 1, or 0 if there is
 * none. */
int pln_lua_caller(lua_State *L, lua_Debug *ar);
/* Pushes a traceback of users' scripts from `level` on. Returns the number of
 * lines.  [-0, +1] */
int pln_lua_push_traceback(lua_State *L, int level);
int pln_lua_traceback(lua_State *L);
/* Raises the error on top; core.raise is pln_lua_raise_value. */
int pln_lua_raise_top(lua_State *L);
int pln_lua_raise_value(lua_State *L);
/* Raises the error of a failed call: its diagnostic, or what a callback
 * raised. */
int pln_lua_raise(lua_State *L, pln_lua *b, pln_status status);
static inline void pln_lua_must(lua_State *L, pln_lua *b, pln_status status) {
  if (status != PLN_OK)
    pln_lua_raise(L, b, status);
}
/* Returns nil and the diagnostic, for calls that are expected to fail.  [-0,
 * +2] */
int pln_lua_fail(lua_State *L, pln_lua *b, pln_status status);
/* The same for a call that may have reported several errors since `mark`: the
 * first one, with the others as notes.  [-0, +2] */
int pln_lua_fail_first(lua_State *L, pln_lua *b, size_t mark,
                       pln_status status);
/* Raises a new Diag. */
int pln_lua_error(lua_State *L, pln_status code, const char *format, ...)
    PLN_PRINTF(3, 4);
bool pln_lua_is_diag(lua_State *L, int index);
/* Returns true if the function that `ar` is of is the message handler of
 * pln_lua_protect.  [-0, +0] */
bool pln_lua_is_message_handler(lua_State *L, lua_Debug *ar);
/* The only way from the engine into Lua. Calls `body` with a light userdata
 * `ud`. An error is stored in the registry and PLN_ERR_CALLBACK is returned. */
pln_status pln_lua_protect(pln_lua *b, lua_CFunction body, void *ud);
/* After PLN_ERR_CALLBACK: if the stored error is no Diag (error { ... }), a
 * Diag that has it as its cause takes its place, so that notes can be added.
 * Returns PLN_ERR_CALLBACK, or PLN_ERR_NOMEM. */
pln_status pln_lua_diagnose_error(pln_lua *b);
/* Between these calls Lua's memory counts for limit.memory, if that is set. */
bool pln_lua_count_begin(lua_State *L, pln_lua *b);
void pln_lua_count_end(lua_State *L, pln_lua *b, bool begun);
/* After an outermost call failed for lack of memory: collects garbage and
 * returns true, once. */
bool pln_lua_retry(lua_State *L, pln_lua *b, pln_status status, int *tries);
/* Pushes the diagnostics of the last call: { diag, ... }  [-0, +1] */
int pln_lua_diags(lua_State *L);
int pln_lua_diag(lua_State *L);
/* Marks the calling script as part of the library: diagnostics then name the
 * line of its caller. */
int pln_lua_internal(lua_State *L);
int pln_lua_is_internal(lua_State *L);

/* --------------------------------------------------------------- arguments */

/* argument.c: replacements of luaL_check... whose messages name the line of the
 * user's script instead of a line of the library. The luaL functions are
 * redefined below, so that nobody calls them by mistake. */
int pln_lua_misuse(lua_State *L, const char *format, ...);
int pln_lua_bad_argument(lua_State *L, int arg, const char *reason);
int pln_lua_bad_type(lua_State *L, int arg, const char *wanted);
const char *pln_lua_check_text(lua_State *L, int arg, size_t *size);
const char *pln_lua_opt_text(lua_State *L, int arg, const char *otherwise,
                             size_t *size);
lua_Number pln_lua_check_number(lua_State *L, int arg);
lua_Number pln_lua_opt_number(lua_State *L, int arg, lua_Number otherwise);
lua_Integer pln_lua_check_integer(lua_State *L, int arg);
lua_Integer pln_lua_opt_integer(lua_State *L, int arg, lua_Integer otherwise);
void pln_lua_check_lua_type(lua_State *L, int arg, int type);
void pln_lua_check_any(lua_State *L, int arg);
void *pln_lua_check_userdata(lua_State *L, int arg, const char *class);
int pln_lua_check_option(lua_State *L, int arg, const char *otherwise,
                         const char *const names[]);

/* Raises if the table of options at `arg` has a key that is not in `names`. */
void pln_lua_known_keys(lua_State *L, int arg, const char *what,
                        const char *const *names, uint32_t n);

#define luaL_error pln_lua_misuse
#define luaL_argerror pln_lua_bad_argument
#define luaL_typeerror pln_lua_bad_type
#define luaL_checklstring pln_lua_check_text
#define luaL_optlstring pln_lua_opt_text
#define luaL_checknumber pln_lua_check_number
#define luaL_optnumber pln_lua_opt_number
#define luaL_checkinteger pln_lua_check_integer
#define luaL_optinteger pln_lua_opt_integer
#define luaL_checktype pln_lua_check_lua_type
#define luaL_checkany pln_lua_check_any
#define luaL_checkudata pln_lua_check_userdata
#define luaL_checkoption pln_lua_check_option

/* -------------------------------------------------------------------- text */

/* Pushes a box with a growing text.  [-0, +1] */
pln_buffer *pln_lua_text(lua_State *L, pln_lua *b);
/* Replaces that box on top by its text as a Lua string.  [-1, +1] */
void pln_lua_text_done(lua_State *L);
/* Reads the options of mod:text(options) and node:text(options): a table or
 * nil. */
pln_print_options pln_lua_text_options(lua_State *L, int arg);

/* ----------------------------------------------------------- graphs, nodes */

typedef enum pln_lua_graph_kind {
  PLN_LUA_SEALED,   /* a sealed graph, retained */
  PLN_LUA_FLOATING, /* the scripts' floating builder */
  PLN_LUA_PASSING,  /* the builder of a running pass */
  PLN_LUA_SCOPED,   /* a Builder object of a script */
  PLN_LUA_REWRITING /* the builder of a running rewrite, borrowed */
} pln_lua_graph_kind;

/* A box of a graph. User values: 1 handles by node (weak), 2 sealed copies by
 * node (weak). */
typedef struct pln_lua_graph {
  pln_lua *state;
  pln_lua_graph_kind kind;
  pln_graph *graph;     /* SEALED */
  pln_builder *builder; /* FLOATING, PASSING, SCOPED; NULL once it has ended */
  pln_rewrite *rewrite; /* REWRITING; NULL once it has ended */
  int lets;            /* SEALED: whether it has lets; 0 unknown, 1 no, 2 yes */
  uint32_t compact_at; /* FLOATING: number of nodes that starts a compaction */
} pln_lua_graph;

/* A handle of a node. User value 1: the graph's box. Owns nothing. */
typedef struct pln_lua_node {
  pln_lua_graph *graph;
  pln_ref ref;
} pln_lua_node;

/* The builder of a box that is not SEALED. For a rewrite, the first call begins
 * the copy of the graph, so call it only when something will change. */
pln_builder *pln_lua_builder(lua_State *L, pln_lua *b, pln_lua_graph *slot);
/* Raises if the builder or rewrite has ended. */
const pln_graph *pln_lua_graph_of(lua_State *L, const pln_lua_graph *slot);
/* Push, in order: a new empty box; the box of a sealed graph, which it retains;
 * the graph where constructors append; the graph where constructors append that
 * build freely.  [-0, +1] */
pln_lua_graph *pln_lua_new_graph(lua_State *L, pln_lua *b,
                                 pln_lua_graph_kind kind);
pln_lua_graph *pln_lua_push_graph(lua_State *L, pln_lua *b,
                                  const pln_graph *graph);
pln_lua_graph *pln_lua_push_target(lua_State *L, pln_lua *b);
pln_lua_graph *pln_lua_push_free(lua_State *L, pln_lua *b);
/* graph/compact.c: drops floating nodes that no handle reaches, once there are
 * many of them. Handles stay valid. Node numbers change, so it is called only
 * before a constructor reads its operands. */
void pln_lua_compact(lua_State *L, pln_lua *b);
/* An empty table with weak values.  [-0, +1] */
void pln_lua_new_weak(lua_State *L);
/* Returns true if another function of the binding is running below this one. */
bool pln_lua_is_nested(lua_State *L);
/* Ends a builder's box: its handles become stale. Cannot raise. */
void pln_lua_end_graph(pln_lua_graph *slot);
/* Pushes the handle of a node of the graph box at `graph`.  [-0, +1] */
void pln_lua_push_node(lua_State *L, int graph, pln_ref ref);
/* Pushes the root of a sealed graph.  [-0, +1] */
void pln_lua_push_root(lua_State *L, pln_lua *b, const pln_graph *graph);
/* The handle at `arg`; NULL if the value is not one. Raises if it is stale. */
pln_lua_node *pln_lua_check_node(lua_State *L, int arg);
pln_lua_node *pln_lua_test_node(lua_State *L, int arg);
/* Returns true for a Function or a PrimFunc. */
bool pln_lua_is_function(lua_State *L, const pln_lua_node *node);
/* Pushes the box of a sealed graph whose root is the node at `node`.  [-0,
 * +1] */
pln_lua_graph *pln_lua_push_rooted(lua_State *L, pln_lua *b, int node);
/* Pushes the box of a sealed graph that contains the node, as *ref: its own
 * graph, or a sealed copy.  [-0, +1] */
pln_lua_graph *pln_lua_push_sealed_graph_of(lua_State *L, pln_lua *b, int node,
                                            pln_ref *ref);
/* "TensorType", "TypeVar", ...: the keys of visitors and mutators. */
const char *pln_lua_type_kind(pln_type_kind kind);
/* Converts a value to a node of `to`: a handle (imported if it belongs to
 * another graph), a number or boolean (a constant of `dtype`), a tensor, or nil
 * (Absent). */
pln_ref pln_lua_operand(lua_State *L, pln_lua *b, pln_lua_graph *to, int arg,
                        pln_dtype dtype);
/* The first dtype of the handles at first .. last, or NONE. */
pln_dtype pln_lua_dtype_of(lua_State *L, int first, int last);

/* --------------------------------------------------------- values by class */

void pln_lua_push_type(lua_State *L, pln_lua *b, pln_type type);
/* The Type at `arg`, or the type that its text parses to. */
pln_type pln_lua_check_type(lua_State *L, pln_lua *b, int arg);
pln_dtype pln_lua_check_dtype(lua_State *L, int arg, pln_dtype fallback);
/* Pushes an integer, "?" or the text of a symbolic dim.  [-0, +1] */
void pln_lua_push_dim(lua_State *L, pln_lua *b, pln_dim dim);

void pln_lua_push_attrs(lua_State *L, pln_lua *b, pln_attrs attrs);
/* Reads a table or Attrs; nil is empty. Leaves scratch values on the stack. */
pln_attrs pln_lua_check_attrs(lua_State *L, pln_lua *b, int arg);
/* The same for a call of an operator, checked against its schema. *relay is
 * true if the table has a name that only Relay's schema has; then missing
 * attributes take Relay's defaults. */
pln_attrs pln_lua_check_op_attrs(lua_State *L, pln_lua *b, int arg, pln_op op,
                                 bool *relay);
void pln_lua_push_attr(lua_State *L, pln_lua *b, const pln_attr *attr);

void pln_lua_push_op(lua_State *L, pln_lua *b, pln_op op);
/* The Op at `arg`, or the operator of that name. */
pln_op pln_lua_check_op(lua_State *L, pln_lua *b, int arg);

/* Pushes an empty box of a tensor.  [-0, +1] */
pln_tensor **pln_lua_new_tensor(lua_State *L);
void pln_lua_push_tensor(lua_State *L, const pln_tensor *tensor);
pln_tensor *pln_lua_check_tensor(lua_State *L, int arg);
/* Reads a table of dims into an array of that size; returns their number. */
enum { PLN_LUA_MAX_RANK = 32 };
uint32_t pln_lua_check_dims(lua_State *L, int arg, int64_t *dims);
/* Reads arguments `arg` and `arg` + 1 of a constructor, dims and dtype in
 * either order. Returns the rank. `fallback` is the dtype if none is given. */
uint32_t pln_lua_check_dims_dtype(lua_State *L, int arg, pln_dtype fallback,
                                  int64_t *dims, pln_dtype *dtype);
pln_tensor *pln_lua_test_tensor(lua_State *L, int arg);
/* Pushes element `i` of dense elements: a number, boolean or string. Raises for
 * dtypes that have no form in Lua.  [-0, +1] */
void pln_lua_push_element(lua_State *L, pln_dtype dtype, const void *data,
                          size_t i);
/* Pushes the tensor that a value converts to: a tensor, number, boolean, string
 * or nested table. dtype NONE: decided by the values.  [-0, +1] */
pln_tensor *pln_lua_to_tensor(lua_State *L, pln_lua *b, int arg,
                              pln_dtype dtype);

/* Runtime values in a box, which releases them when it is collected or
 * sooner. */
typedef struct pln_lua_runtime_values {
  pln_engine *engine;
  uint32_t count;
  pln_runtime_value items[];
} pln_lua_runtime_values;
/* Pushes a box of `n` runtime values that are not set.  [-0, +1] */
pln_lua_runtime_values *pln_lua_push_runtime_values(lua_State *L, pln_lua *b,
                                                    uint32_t n);
void pln_lua_release_runtime_values(pln_lua_runtime_values *slot);
/* Reads the value at `arg`. `type` (0: any) tells whether a table is a
 * sequence.  [-0, +0] */
void pln_lua_read_runtime_value(lua_State *L, pln_lua *b, int arg,
                                pln_type type, pln_runtime_value *out);
/* Pushes a Tensor, a table of them, or nil.  [-0, +1] */
void pln_lua_push_runtime_value(lua_State *L, const pln_runtime_value *value);

pln_module **pln_lua_new_module(lua_State *L);
void pln_lua_push_module(lua_State *L, const pln_module *module);
pln_module *pln_lua_check_module(lua_State *L, int arg);
pln_module *pln_lua_test_module(lua_State *L, int arg);
/* The Module at `arg`, retained by a box of its own, so that a finalizer that
 * closes the argument does not free it.  [-0, +1] */
pln_module *pln_lua_pin_module(lua_State *L, int arg);
/* module/functions.c: push mod.functions, a view  [-0, +1]; push what pairs
 * returns for the module or view at 1  [-0, +2]. */
int pln_lua_push_functions(lua_State *L, const pln_module *module);
int pln_lua_pairs_of_functions(lua_State *L, const pln_module *module);
/* Checks a table of functions at `arg`; replaces a view there by a table.  [-0,
 * +0] */
void pln_lua_check_functions(lua_State *L, int arg);
/* type/adt.c: mod.types and mod:with_type.  [-0, +1] */
int pln_lua_push_definitions(lua_State *L, pln_lua *b,
                             const pln_module *module);
int pln_lua_module_with_type(lua_State *L);

void pln_lua_push_pass(lua_State *L, const pln_pass *pass);
pln_pass *pln_lua_check_pass(lua_State *L, int arg);
/* { name, opt_level, required, traceable, form }  [-0, +1] */
void pln_lua_push_info(lua_State *L, const pln_pass *pass);
/* pass/option.c: pushes { name, type, default, doc, choices, least, most,
 * fields } of an option or config key.  [-0, +1] */
void pln_lua_push_option(lua_State *L, pln_lua *b, const pln_option *row);
/* Reads a list of rows at `arg` (nil: none) into scratch memory left on the
 * stack. Their texts, also those made of defaults, are kept alive by the table.
 * [-0, +1] */
const pln_option *pln_lua_check_options(lua_State *L, int arg, uint32_t *n);
/* Reads the names in the list at `arg` (nil: none) into scratch memory left on
 * the stack.  [-0, +1] */
const char **pln_lua_check_names(lua_State *L, int arg, uint32_t *n);
/* Field `name` of the table at `arg`, a string that the table keeps alive, or
 * `fallback`.  [-0, +0] */
const char *pln_lua_string_field(lua_State *L, int arg, const char *name,
                                 const char *fallback);
/* Field `name` of the table at `arg`, an integer, or `fallback`. */
lua_Integer pln_lua_int_field(lua_State *L, int arg, const char *name,
                              lua_Integer fallback);
/* The same of a number, 0 if it is none, and of what Lua takes for true. */
double pln_lua_number_field(lua_State *L, int arg, const char *name);
bool pln_lua_bool_field(lua_State *L, int arg, const char *name);

void pln_lua_push_context(lua_State *L, const pln_context *context);
pln_context *pln_lua_check_context(lua_State *L, int arg);
/* Makes the context stack of the running coroutine the engine's current one. */
void pln_lua_use_stack(lua_State *L, pln_lua *b);

/* --------------------------------------------------------------- callbacks */

/* The `ud` of a pass or an instrument. Its function or table is kept in the
 * registry until the engine releases the `ud`. */
typedef struct pln_lua_callback {
  pln_lua *state;
} pln_lua_callback;
/* Pushes a box of `n` callbacks. The box releases those still in it; an owner
 * sets its slot to NULL when it takes one.  [-0, +1] */
pln_lua_callback **pln_lua_new_callbacks(lua_State *L, uint32_t n);
/* Sets a slot to the value on top.  [-1, +0] */
void pln_lua_set_callback(lua_State *L, pln_lua *b, pln_lua_callback **slot);
/* pln_pass_spec.release, pln_instrument.release */
void pln_lua_release_callback(void *ud);

/* ------------------------------------------------------------------- parts */

/* pass/predicate.c: options of passes that are functions. Pushes a copy of the
 * table of options at `arg` without them  [-0, +1]; gives them to the pass. */
void pln_lua_push_plain_options(lua_State *L, int arg);
void pln_lua_set_functions(lua_State *L, pln_lua *b, int arg, pln_pass *pass);
/* pass/pass.c: adds the pass to the stored error of a function that it called.
 */
void pln_lua_name_failed_pass(pln_lua *b, const pln_pass_run *run);
/* pass/pass_clone.c: clones passes that are functions of files into the Lua
 * states of worker threads. */
extern const pln_pass_cloner pln_lua_pass_cloner;
/* The worker that a Lua state belongs to; NULL in other states. */
struct pln_lua_worker_state *pln_lua_worker_state_of(lua_State *L);
pln_engine *
pln_lua_worker_engine(const struct pln_lua_worker_state *worker_state);
/* Records in a worker's state that its script made a pass; NULL: the registered
 * pass of that name. */
void pln_lua_record_loaded_pass(lua_State *L, pln_lua *b, const pln_pass *pass,
                                const char *name);

/* Each opens one part: makes its classes and adds its functions to the table on
 * top. */
/* The engine of a Lua state, for hosts that handle signals; NULL: none yet. */
pln_engine *pln_lua_engine(lua_State *L);
/* The binding of a Lua state, for functions without the upvalue; NULL: none. */
pln_lua *pln_lua_state(lua_State *L);
/* f(ud) is called, too, when a signal handler asks the engine to stop. */
void pln_lua_on_stop(lua_State *L, void (*f)(void *ud), void *ud);
void pln_lua_open_interrupt(lua_State *L, pln_lua *b);
/* Ends the script that the holder runs, even if it catches errors. Raises. */
int pln_lua_stop_script(lua_State *L, pln_lua *b);
void pln_lua_open_script_stop(lua_State *L);
/* Raises a stop in the thread that continues the body of a pass, if one was
 * requested while another thread ran. */
void pln_lua_stop_again(const pln_lua *b, lua_State *L);
void pln_lua_open_coroutine(lua_State *L);
void pln_lua_open_graph(lua_State *L);
void pln_lua_open_node(lua_State *L);
void pln_lua_open_build(lua_State *L);
void pln_lua_open_builder(lua_State *L);
void pln_lua_open_op(lua_State *L);
void pln_lua_open_op_attr(lua_State *L);
void pln_lua_open_operator(lua_State *L);
/* graph/operator.c: pushes a field that an Op has because the operator is a
 * registered one; false: it has no such field.  [-0, +0 or 1] */
bool pln_lua_push_registered(lua_State *L, const pln_lua *b, pln_op op,
                             const char *field);
void pln_lua_open_pattern_table(lua_State *L);
/* graph/op_attr.c: a Lua function that a callback holds, as one that passes in
 * C call. */
pln_op_function pln_lua_op_function(pln_lua_callback *callback);
void pln_lua_open_type(lua_State *L);
void pln_lua_open_attrs(lua_State *L);
void pln_lua_open_tensor(lua_State *L);
void pln_lua_open_module(lua_State *L);
void pln_lua_open_functions(lua_State *L);
void pln_lua_open_callback(lua_State *L);
void pln_lua_open_pass(lua_State *L);
void pln_lua_open_registry(lua_State *L);
void pln_lua_open_context(lua_State *L);
void pln_lua_open_mutator(lua_State *L);
void pln_lua_open_rules(lua_State *L);
void pln_lua_open_dataflow(lua_State *L);
/* node:history() -> changes, newest first, then the source (graph/history.c) */
int pln_lua_node_history(lua_State *L);
/* Pushes node.span, or nothing: how many values. */
int pln_lua_push_span(lua_State *L, const pln_graph *g, pln_ref node);
/* Sets the running script's line as the origin of the nodes built next. */
void pln_lua_set_source_line(lua_State *L, pln_lua *b,
                             struct pln_builder *builder);
void pln_lua_open_dominators(lua_State *L);
void pln_lua_open_shrink(lua_State *L);
void pln_lua_open_visitor(lua_State *L);
void pln_lua_open_infer(lua_State *L);
void pln_lua_open_type_build(lua_State *L);
void pln_lua_open_vars(lua_State *L);
void pln_lua_open_compare(lua_State *L);
void pln_lua_open_mismatch(lua_State *L);
void pln_lua_open_well_formed(lua_State *L);
void pln_lua_open_runtime_value(lua_State *L);
void pln_lua_open_npy(lua_State *L);
void pln_lua_open_eval(lua_State *L);
void pln_lua_open_profile(lua_State *L);
void pln_lua_open_onnx(lua_State *L);
void pln_lua_open_relay(lua_State *L);
void pln_lua_open_count(lua_State *L);
void pln_lua_open_base64(lua_State *L);
void pln_lua_open_blas(lua_State *L);
void pln_lua_open_random(lua_State *L);
void pln_lua_open_tir(lua_State *L);
void pln_lua_open_tir_node(lua_State *L);
void pln_lua_open_tir_run(lua_State *L);
void pln_lua_open_codegen(lua_State *L);
void pln_lua_open_sqlite(lua_State *L);
void pln_lua_open_xgboost(lua_State *L);
void pln_lua_open_child(lua_State *L);
void pln_lua_open_subprocess(lua_State *L);
void pln_lua_open_output(lua_State *L);
void pln_lua_open_arith(lua_State *L);
void pln_lua_open_te(lua_State *L);
void pln_lua_open_text(lua_State *L);
/* Makes the metatable of a userdata that only the binding uses: its finaliser,
 * and nothing that scripts may look at. */
void pln_lua_handle_type(lua_State *L, const char *name, lua_CFunction gc);
/* Adds functions, with the binding as upvalue, to the table on top. */
void pln_lua_functions(lua_State *L, const luaL_Reg *functions);

/* graph/dump.c: methods of nodes and modules. */
int pln_lua_node_dot(lua_State *L);
int pln_lua_node_json(lua_State *L);
int pln_lua_module_dot(lua_State *L);
int pln_lua_module_json(lua_State *L);

#endif
