/* binding.h: what the files of the Lua binding share.
 *
 * Three rules keep a raised Lua error (a longjmp) away from engine memory:
 *   1. a C object is made into a box that is already on the stack and has its
 *      metatable; the box's __gc releases it;
 *   2. arguments are read before the engine is called;
 *   3. the engine calls Lua only through pln_lua_protect, whose body does all
 *      that can raise: pushing arguments, the call, reading the answer.
 * Stack effects are given as [-popped, +pushed]. */

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

/* One a Lua state; upvalue 1 of every function of the binding. */
typedef struct pln_lua {
  pln_engine *engine;          /* NULL once the state is closing */
  lua_State *L;                /* the thread that called in last */
  int depth;                   /* callbacks under way */
  lua_State *body;             /* the thread of the innermost of them */
  lua_CFunction pcall, xpcall; /* Lua's; NULL: not known */
  /* Where constructors append: the builder of the running rewrite or pass,
   * or NULL for the floating one. `free` skips rewrites. */
  struct pln_lua_graph *target;
  struct pln_lua_graph *free;
  struct pln_lua_rewriting *rewriting; /* the innermost running mutator */
  pln_pass_run *run;                   /* the innermost running Lua pass */
  pln_context_stack *stack;            /* in use; NULL: the main thread's */
  size_t collect_at;         /* bytes of the engine that start a collection */
  double seconds;            /* that passes written in Lua have taken */
  bool quiet;                /* a failure is being told: stops wait */
  void (*on_stop)(void *ud); /* the host's; called by handlers of signals */
  void *stop_ud;
  lua_Alloc alloc; /* the host's, while Lua's memory is counted */
  void *alloc_ud;
  lua_State *holder; /* runs a script for its passes: none is applied */
  struct pln_lua_worker_state
      *worker_state; /* in another thread: what it is for (pass/pass_clone.c) */
} pln_lua;

/* Tables kept in the registry under the addresses of these bytes. */
typedef struct pln_lua_keys {
  char unique;    /* C pointer -> its box; weak values */
  char anchors;   /* C pointer -> value, while the engine needs it */
  char callbacks; /* ud of a pass or instrument -> function or table */
  char interned;  /* types and attributes by number; weak values */
  char ops;       /* operator number -> Op */
  char kinds;     /* kind number -> {name, fields} */
  char floating;  /* {[1] = the floating graph box}; weak values */
  char parked;    /* the error that a callback raised */
  char library;   /* sources of the library's own scripts */
  char stacks;    /* coroutine -> its stack of contexts; weak keys */
  char rebuild;   /* the function given to mutators */
  char failed;    /* the function that is told of failed applications */
} pln_lua_keys;
extern const pln_lua_keys pln_lua_key;

/* The string at `arg` as a symbol of the engine. */
pln_symbol pln_lua_check_symbol(lua_State *L, pln_lua *b, int arg);
/* The state of the running function; raises once the engine is gone. */
pln_lua *pln_lua_state_of(lua_State *L);
/* Pushes one of the tables above.  [-0, +1] */
void pln_lua_table(lua_State *L, const char *key);
/* Keeps the value on top under `pointer` in the table `key`.  [-1, +0] */
void pln_lua_registry_set(lua_State *L, const char *key, const void *pointer);
/* Forgets it; cannot raise. */
void pln_lua_forget(lua_State *L, const char *key, const void *pointer);
/* Pushes what is kept, or nil.  [-0, +1] */
int pln_lua_registry_get(lua_State *L, const char *key, const void *pointer);

/* Makes the metatable `name`: `methods` in a table that `index` (NULL: plain)
 * gets as upvalue 2, the metatable itself as upvalue 3.  [-0, +0] */
void pln_lua_class(lua_State *L, const char *name, const luaL_Reg *methods,
                   const luaL_Reg *meta, lua_CFunction index);
/* A userdata of a class with `uservalues`, zeroed.  [-0, +1] */
void *pln_lua_userdata(lua_State *L, const char *name, size_t size,
                       int uservalues);
/* The same for what holds much engine memory: collects garbage when there is
 * a lot of it. */
void *pln_lua_large_userdata(lua_State *L, const char *name, size_t size,
                             int uservalues);
/* Replaces the new box on top, which owns `pointer`, by the earlier box of the
 * same pointer if there is one.  [-1, +1] */
void pln_lua_unique(lua_State *L, const void *pointer);

/* A finaliser of a script may run wherever Lua allocates, and may call the
 * library, which then clears its diagnostics and reports and frees what is
 * closed. So what is read of them is read in `body`, which gets a light
 * userdata `ud`: until it has returned no finaliser runs. Arguments that can be
 * closed (modules, passes, contexts, tensors) are checked behind the last
 * allocation before the engine is called.  [-0, +results] */
void pln_lua_without_finalizers(lua_State *L, lua_CFunction body, void *ud,
                                int results);

/* ------------------------------------------------------------------ errors */

/* What a failed call leaves to raise or return.  [-0, +1] */
void pln_lua_push_failure(lua_State *L, pln_lua *b, pln_status status);
/* The innermost line of a script that is not the library's: its level + 1; 0:
 * there is none. */
int pln_lua_caller(lua_State *L, lua_Debug *ar);
/* The lines of scripts from a level on, without those of the library: how many.
 * [-0, +1] */
int pln_lua_push_traceback(lua_State *L, int level);
int pln_lua_traceback(lua_State *L);
/* Raises the error on top; core.raise. */
int pln_lua_raise_top(lua_State *L);
int pln_lua_raise_value(lua_State *L);
/* Raises the diagnostic of a failed call, or what a callback raised. */
int pln_lua_raise(lua_State *L, pln_lua *b, pln_status status);
static inline void pln_lua_must(lua_State *L, pln_lua *b, pln_status status) {
  if (status != PLN_OK)
    pln_lua_raise(L, b, status);
}
/* nil and the diagnostic, for calls that are expected to fail.  [-0, +2] */
int pln_lua_fail(lua_State *L, pln_lua *b, pln_status status);
/* The same, when one call may have reported several errors since `mark`: the
 * first, with the others as notes.  [-0, +2] */
int pln_lua_fail_first(lua_State *L, pln_lua *b, size_t mark,
                       pln_status status);
/* Raises a diagnostic of the binding's own. */
int pln_lua_error(lua_State *L, pln_status code, const char *format, ...)
    PLN_PRINTF(3, 4);
bool pln_lua_is_diag(lua_State *L, int index);
/* Runs `body` with a light userdata `ud` as its argument. What it raises is
 * parked: PLN_ERR_CALLBACK. The only way from the engine into Lua. */
pln_status pln_lua_protect(pln_lua *b, lua_CFunction body, void *ud);
/* Between the two Lua's memory counts for limit.memory, if there is one. */
bool pln_lua_count_begin(lua_State *L, pln_lua *b);
void pln_lua_count_end(lua_State *L, pln_lua *b, bool begun);
/* At the outermost call: true, once, when memory was out; collects garbage. */
bool pln_lua_retry(lua_State *L, pln_lua *b, pln_status status, int *tries);
/* The diagnostics reported by the last call: { diag, ... }  [-0, +1] */
int pln_lua_diags(lua_State *L);
int pln_lua_diag(lua_State *L);
/* Marks the calling script as the library's: diagnostics name its caller. */
int pln_lua_internal(lua_State *L);
int pln_lua_is_internal(lua_State *L);

/* --------------------------------------------------------------- arguments */

/* argument.c: the checks of Lua's auxiliary library, whose messages name the
 * line outside of the library. They have its names here, so that none of the
 * others is called by habit. */
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

/* Keys of a table of options that are none of `names` are errors. */
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

/* A growing text that the collector releases.  [-0, +1] */
pln_buffer *pln_lua_text(lua_State *L, pln_lua *b);
/* Replaces that box on top by its text.  [-1, +1] */
void pln_lua_text_done(lua_State *L);
/* The options of mod:text(options) and node:text(options), a table or nothing.
 */
pln_print_options pln_lua_text_options(lua_State *L, int arg);

/* ----------------------------------------------------------- graphs, nodes */

typedef enum pln_lua_graph_kind {
  PLN_LUA_SEALED,   /* a sealed graph, retained */
  PLN_LUA_FLOATING, /* the builder of scripts */
  PLN_LUA_PASSING,  /* the builder of a running pass */
  PLN_LUA_SCOPED,   /* a Builder of a script */
  PLN_LUA_REWRITING /* the builder of a running rewrite, borrowed */
} pln_lua_graph_kind;

/* User values: 1 handles by ref (weak), 2 sealed copies by ref (weak). */
typedef struct pln_lua_graph {
  pln_lua *state;
  pln_lua_graph_kind kind;
  pln_graph *graph;     /* SEALED */
  pln_builder *builder; /* FLOATING, PASSING, SCOPED; NULL once it ended */
  pln_rewrite *rewrite; /* REWRITING; NULL once it ended */
  int lets;             /* SEALED: 0 not counted yet, 1 none, 2 some */
  uint32_t compact_at;  /* FLOATING: so many nodes start a compaction */
} pln_lua_graph;

/* User value 1: the graph. A view: owns nothing. */
typedef struct pln_lua_node {
  pln_lua_graph *graph;
  pln_ref ref;
} pln_lua_node;

/* The builder of a box that is no sealed graph. Asking a rewrite for it says
 * that something will change: not to be called before it is so. */
pln_builder *pln_lua_builder(lua_State *L, pln_lua *b, pln_lua_graph *slot);
/* Raises when the graph has gone. */
const pln_graph *pln_lua_graph_of(lua_State *L, const pln_lua_graph *slot);
/* Pushes a new empty box; the box of a sealed graph, retained; where
 * constructors append; where free constructors append.  [-0, +1] */
pln_lua_graph *pln_lua_new_graph(lua_State *L, pln_lua *b,
                                 pln_lua_graph_kind kind);
pln_lua_graph *pln_lua_push_graph(lua_State *L, pln_lua *b,
                                  const pln_graph *graph);
pln_lua_graph *pln_lua_push_target(lua_State *L, pln_lua *b);
pln_lua_graph *pln_lua_push_free(lua_State *L, pln_lua *b);
/* graph/compact.c: drops what was built freely and no handle leads to any more,
 * when there is much of it. Handles stay what they are. Called where nobody
 * holds the number of a node: before a constructor reads its operands. */
void pln_lua_compact(lua_State *L, pln_lua *b);
/* An empty table with weak values.  [-0, +1] */
void pln_lua_new_weak(lua_State *L);
/* Whether a function of the binding runs below the running one. */
bool pln_lua_is_nested(lua_State *L);
/* Ends a builder's box: its handles are stale from here on. Cannot raise. */
void pln_lua_end_graph(pln_lua_graph *slot);
/* The handle of a node of the graph box at `graph`.  [-0, +1] */
void pln_lua_push_node(lua_State *L, int graph, pln_ref ref);
/* The root of a sealed graph.  [-0, +1] */
void pln_lua_push_root(lua_State *L, pln_lua *b, const pln_graph *graph);
/* A handle, not stale; NULL when the value is no handle. */
pln_lua_node *pln_lua_check_node(lua_State *L, int arg);
pln_lua_node *pln_lua_test_node(lua_State *L, int arg);
/* A Function or a PrimFunc. */
bool pln_lua_is_function(lua_State *L, const pln_lua_node *node);
/* Pushes the box of a sealed graph whose root is the node.  [-0, +1] */
pln_lua_graph *pln_lua_push_rooted(lua_State *L, pln_lua *b, int node);
/* Pushes the box of the sealed graph in which the node is *ref: its own, or a
 * copy.  [-0, +1] */
pln_lua_graph *pln_lua_push_sealed_graph_of(lua_State *L, pln_lua *b, int node,
                                            pln_ref *ref);
/* "TensorType", "TypeVar", ...: the keys of visitors and mutators. */
const char *pln_lua_type_kind(pln_type_kind kind);
/* The node of `to` that a value stands for: a handle (imported if foreign), a
 * number or boolean (a constant of `dtype`), a tensor, nil (Absent). */
pln_ref pln_lua_operand(lua_State *L, pln_lua *b, pln_lua_graph *to, int arg,
                        pln_dtype dtype);
/* The first dtype of the handles at first .. last, else NONE. */
pln_dtype pln_lua_dtype_of(lua_State *L, int first, int last);

/* --------------------------------------------------------- values by class */

void pln_lua_push_type(lua_State *L, pln_lua *b, pln_type type);
/* A Type, or its text. */
pln_type pln_lua_check_type(lua_State *L, pln_lua *b, int arg);
pln_dtype pln_lua_check_dtype(lua_State *L, int arg, pln_dtype fallback);
/* An integer, "?" or the expression's text.  [-0, +1] */
void pln_lua_push_dim(lua_State *L, pln_lua *b, pln_dim dim);

void pln_lua_push_attrs(lua_State *L, pln_lua *b, pln_attrs attrs);
/* A table or Attrs; nil is empty. Leaves scratch values on the stack. */
pln_attrs pln_lua_check_attrs(lua_State *L, pln_lua *b, int arg);
/* The same of an operator's call, by its schema. Where a name in a table is
 * Relay's alone, *relay is true and the table says what text would: what it
 * does not say is Relay's default. */
pln_attrs pln_lua_check_op_attrs(lua_State *L, pln_lua *b, int arg, pln_op op,
                                 bool *relay);
void pln_lua_push_attr(lua_State *L, pln_lua *b, const pln_attr *attr);

void pln_lua_push_op(lua_State *L, pln_lua *b, pln_op op);
/* An Op or a name. */
pln_op pln_lua_check_op(lua_State *L, pln_lua *b, int arg);

/* An empty box, to be filled.  [-0, +1] */
pln_tensor **pln_lua_new_tensor(lua_State *L);
void pln_lua_push_tensor(lua_State *L, const pln_tensor *tensor);
pln_tensor *pln_lua_check_tensor(lua_State *L, int arg);
/* A table of dims, into room for so many: their number. */
enum { PLN_LUA_MAX_RANK = 32 };
uint32_t pln_lua_check_dims(lua_State *L, int arg, int64_t *dims);
/* Arguments `arg` and `arg` + 1 of a constructor: dims and dtype, in either
 * order; the rank. `fallback` is the dtype when none is given. */
uint32_t pln_lua_check_dims_dtype(lua_State *L, int arg, pln_dtype fallback,
                                  int64_t *dims, pln_dtype *dtype);
pln_tensor *pln_lua_test_tensor(lua_State *L, int arg);
/* Pushes the tensor that a value stands for: a tensor, number, boolean, string
 * or nested table. NONE: the values' own dtype.  [-0, +1] */
pln_tensor *pln_lua_to_tensor(lua_State *L, pln_lua *b, int arg,
                              pln_dtype dtype);

/* Data that the box releases when it is collected, at the latest. */
typedef struct pln_lua_runtime_values {
  pln_engine *engine;
  uint32_t count;
  pln_runtime_value items[];
} pln_lua_runtime_values;
/* A box of `n` data that are not computed.  [-0, +1] */
pln_lua_runtime_values *pln_lua_push_runtime_values(lua_State *L, pln_lua *b,
                                                    uint32_t n);
void pln_lua_release_runtime_values(pln_lua_runtime_values *slot);
/* The value at `arg`, of which `type` (0: any) tells whether it is a
 * sequence.  [-0, +0] */
void pln_lua_read_runtime_value(lua_State *L, pln_lua *b, int arg,
                                pln_type type, pln_runtime_value *out);
/* A Tensor, a table of them, or nil.  [-0, +1] */
void pln_lua_push_runtime_value(lua_State *L, const pln_runtime_value *value);

pln_module **pln_lua_new_module(lua_State *L);
void pln_lua_push_module(lua_State *L, const pln_module *module);
pln_module *pln_lua_check_module(lua_State *L, int arg);
pln_module *pln_lua_test_module(lua_State *L, int arg);
/* The same as check, kept alive by a box: a finaliser may close that at `arg`
 * while the module is read.  [-0, +1] */
pln_module *pln_lua_pin_module(lua_State *L, int arg);
/* module/functions.c: mod.functions, a view; what pairs returns for a module or
 * a view at 1.  [-0, +1]  [-0, +2] */
int pln_lua_push_functions(lua_State *L, const pln_module *module);
int pln_lua_pairs_of_functions(lua_State *L, const pln_module *module);
/* A table of functions at `arg`; a view there becomes one.  [-0, +0] */
void pln_lua_check_functions(lua_State *L, int arg);
/* type/adt.c: mod.types, mod:with_type.  [-0, +1] */
int pln_lua_push_definitions(lua_State *L, pln_lua *b,
                             const pln_module *module);
int pln_lua_module_with_type(lua_State *L);

void pln_lua_push_pass(lua_State *L, const pln_pass *pass);
pln_pass *pln_lua_check_pass(lua_State *L, int arg);
/* { name, opt_level, required, traceable, form }  [-0, +1] */
void pln_lua_push_info(lua_State *L, const pln_pass *pass);
/* pass/option.c: { name, type, default, doc, choices, least, most, fields } of
 * an option or config key.  [-0, +1] */
void pln_lua_push_option(lua_State *L, pln_lua *b, const pln_option *row);
/* The rows in the table at `arg` (nil: none), in scratch memory left on the
 * stack; their texts live in the table, where the defaults as text are put.
 * [-0, +1] */
const pln_option *pln_lua_check_options(lua_State *L, int arg, uint32_t *n);
/* An array of the names in the table at `arg` (nil: none), in scratch memory
 * left on the stack.  [-0, +1] */
const char **pln_lua_check_names(lua_State *L, int arg, uint32_t *n);
/* Field `name` of the table at `arg`: a string that it keeps alive, else
 * `fallback`.  [-0, +0] */
const char *pln_lua_string_field(lua_State *L, int arg, const char *name,
                                 const char *fallback);
/* Field `name` of the table at `arg`: an integer, else `fallback`. */
lua_Integer pln_lua_int_field(lua_State *L, int arg, const char *name,
                              lua_Integer fallback);

void pln_lua_push_context(lua_State *L, const pln_context *context);
pln_context *pln_lua_check_context(lua_State *L, int arg);
/* Makes the running coroutine's stack of contexts the engine's. */
void pln_lua_use_stack(lua_State *L, pln_lua *b);

/* --------------------------------------------------------------- callbacks */

/* What the `ud` of a pass or an instrument points to; its function or table is
 * kept in the registry until the engine releases it. */
typedef struct pln_lua_callback {
  pln_lua *state;
} pln_lua_callback;
/* A box of `n` callbacks that releases those that nobody has taken: a taker
 * sets its slot to NULL.  [-0, +1] */
pln_lua_callback **pln_lua_new_callbacks(lua_State *L, uint32_t n);
/* Fills a slot with the value on top.  [-1, +0] */
void pln_lua_set_callback(lua_State *L, pln_lua *b, pln_lua_callback **slot);
/* pln_pass_spec.release, pln_instrument.release */
void pln_lua_release_callback(void *ud);

/* ------------------------------------------------------------------- parts */

/* pass/pass_clone.c: passes of files, made again in states of other threads. */
extern const pln_pass_cloner pln_lua_pass_cloner;
/* What such a state is for, whose engine it borrows; NULL in any other. */
struct pln_lua_worker_state *pln_lua_worker_state_of(lua_State *L);
pln_engine *
pln_lua_worker_engine(const struct pln_lua_worker_state *worker_state);
/* Notes there that a pass was made; NULL: the registered one of that name. */
void pln_lua_record_loaded_pass(lua_State *L, pln_lua *b, const pln_pass *pass,
                                const char *name);

/* Each makes its classes and adds its functions to the table on top. */
/* The engine of the state, for hosts that handle signals; NULL: none yet. */
pln_engine *pln_lua_engine(lua_State *L);
/* The binding's state, where no upvalue has it; NULL: there is none. */
pln_lua *pln_lua_state(lua_State *L);
/* A handler of signals that asks that engine to stop calls f(ud), too. */
void pln_lua_on_stop(lua_State *L, void (*f)(void *ud), void *ud);
void pln_lua_open_interrupt(lua_State *L, pln_lua *b);
/* Ends the script that the holder runs, whatever it catches; raises. */
int pln_lua_stop_script(lua_State *L, pln_lua *b);
void pln_lua_open_script_stop(lua_State *L);
/* For a thread that goes on in the body of a pass: a stop that was asked for
 * before is raised there. */
void pln_lua_stop_again(const pln_lua *b, lua_State *L);
void pln_lua_open_coroutine(lua_State *L);
void pln_lua_open_graph(lua_State *L);
void pln_lua_open_node(lua_State *L);
void pln_lua_open_build(lua_State *L);
void pln_lua_open_builder(lua_State *L);
void pln_lua_open_op(lua_State *L);
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
/* node:history() -> changes, newest first, then the source (graph/history.c) */
int pln_lua_node_history(lua_State *L);
/* What the builder gets next was built by the script's line that runs. */
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
void pln_lua_open_onnx(lua_State *L);
void pln_lua_open_relay(lua_State *L);
void pln_lua_open_count(lua_State *L);
void pln_lua_open_base64(lua_State *L);
void pln_lua_open_blas(lua_State *L);
void pln_lua_open_random(lua_State *L);
void pln_lua_open_tir(lua_State *L);
void pln_lua_open_tir_node(lua_State *L);
void pln_lua_open_text(lua_State *L);
/* Adds functions, with the state as upvalue, to the table on top. */
void pln_lua_functions(lua_State *L, const luaL_Reg *functions);

/* graph/dump.c: methods of nodes and modules. */
int pln_lua_node_dot(lua_State *L);
int pln_lua_node_json(lua_State *L);
int pln_lua_module_dot(lua_State *L);
int pln_lua_module_json(lua_State *L);

#endif
