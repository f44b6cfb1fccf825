/* translate.h: the state of a translation of a PrimFunc to a loop program, and
 * what its parts offer each other.
 *
 * A translation is a stack of tasks. To translate an expression and go on, a
 * task pushes its continuation, then the expression: the last pushed runs
 * first. Cells are numbered like a stack: a statement gives back at its end
 * those that it took. */

#ifndef PLN_EVAL_LOOP_TRANSLATE_H
#define PLN_EVAL_LOOP_TRANSLATE_H

#include "eval/loop/program.h"
#include "ir/tir/tir.h"

/* Kinds of tasks. EXPR: an expression whose value is needed; EMIT: its operands
 * are there. The others are continuations; see their functions. */
typedef enum pln_loop_task_kind {
  PLN_LOOP_EXPR,
  PLN_LOOP_EMIT,
  PLN_LOOP_BRANCH,    /* the condition of a conditional expression is there */
  PLN_LOOP_OTHERWISE, /* and its first value */
  PLN_LOOP_JOIN,      /* and its second one */
  PLN_LOOP_LET_BODY,
  PLN_LOOP_LET_END,
  PLN_LOOP_REDUCE_AXIS,
  PLN_LOOP_REDUCE_STEP,
  PLN_LOOP_REDUCE_COMBINE,
  PLN_LOOP_REDUCE_END,
  PLN_LOOP_STMT, /* a statement, and those after it in its scope */
  PLN_LOOP_STMT_END,
  PLN_LOOP_BODY,  /* the header of a statement is there: enter its scope */
  PLN_LOOP_LEAVE, /* the scope has ended */
  PLN_LOOP_ELSE,  /* the first branch of an IfThenElse has ended */
  PLN_LOOP_N_TASKS
} pln_loop_task_kind;

typedef struct pln_loop_task {
  uint16_t what; /* pln_loop_task_kind */
  uint16_t k;
  pln_ref ref;
  uint32_t mark; /* of the memo's log */
  int32_t x, y, z;
} pln_loop_task;

/* The memory behind a data pointer. */
typedef struct pln_loop_binding {
  int32_t handle;     /* cell */
  int32_t rank;       /* of a realised region, else -1 */
  int32_t region;     /* cells: the region's mins, then its extents */
  bool local;         /* each thread has its own */
  uint32_t depth;     /* thread loops around its allocation */
  uint32_t thread_id; /* the thread loop that used it first; 0: none yet */
} pln_loop_binding;

typedef struct pln_loop_thread {
  pln_symbol tag;
  int32_t cell;
  uint32_t id;
} pln_loop_thread;

enum { PLN_LOOP_MAX_THREADS = 32 };

typedef struct pln_translation {
  pln_loop_program *p;
  const pln_loop_options *options;
  pln_engine *engine;
  const pln_graph *g;
  pln_loop_task *tasks;
  uint32_t n_tasks, cap_tasks;
  /* For each node: 1 + its cell if it was translated, as cell + BIAS. */
  uint32_t *memo;
  pln_ref *log; /* nodes in the memo, oldest first */
  uint32_t n_log, cap_log;
  bool *unsafe;        /* for each node: its evaluation may fail */
  pln_scope *scope_of; /* for each node */
  pln_ref *next_stmt;  /* for each statement: the next of its scope */
  pln_ref *first_stmt; /* for each scope */
  pln_idmap *vars;     /* variable -> its cell, as in the memo */
  pln_idmap *memory;   /* data pointer -> 1 + its binding */
  pln_loop_binding *bindings;
  uint32_t n_bindings, cap_bindings;
  int32_t top;  /* the next free cell */
  pln_ref stmt; /* the statement being translated */
  pln_loop_thread threads[PLN_LOOP_MAX_THREADS];
  uint32_t n_threads, n_thread_loops;
  size_t most_code;
  int32_t zero, one; /* cells of constants */
} pln_translation;

/* A buffer access: where its elements are. */
typedef struct pln_loop_access {
  int32_t handle, index, stride; /* `stride` as c of a load */
  pln_dtype dtype;
  uint32_t lanes;
} pln_loop_access;

/* ------------------------------------------------- emit.c: code and cells */

pln_status pln_loop_push(pln_translation *t, pln_loop_task task) PLN_CHECKED;
/* Pushes the translation of an expression. */
pln_status pln_loop_push_expr(pln_translation *t, pln_ref ref) PLN_CHECKED;
pln_status pln_loop_push_exprs(pln_translation *t, uint32_t n,
                               const pln_ref *refs) PLN_CHECKED;
/* Appends an instruction that belongs to a node. */
pln_status pln_loop_emit(pln_translation *t, pln_ref node,
                         pln_loop_instr instr) PLN_CHECKED;
/* Number of cells of a new value. */
pln_status pln_loop_new_cells(pln_translation *t, uint32_t n,
                              int32_t *out) PLN_CHECKED;
pln_status pln_loop_constant(pln_translation *t, int64_t bits,
                             int32_t *out) PLN_CHECKED;
/* An integer as constant: 0 and 1 are shared. */
pln_status pln_loop_integer(pln_translation *t, int64_t value,
                            int32_t *out) PLN_CHECKED;
/* Records the cell of a node. */
pln_status pln_loop_set(pln_translation *t, pln_ref ref,
                        int32_t cell) PLN_CHECKED;
/* The cell of a translated node or bound variable. */
int32_t pln_loop_cell_of(const pln_translation *t, pln_ref ref);
/* Forgets the nodes that were translated since `mark`. */
void pln_loop_forget(pln_translation *t, uint32_t mark);
/* Binds a scalar variable to a cell. */
pln_status pln_loop_bind_var(pln_translation *t, pln_ref var,
                             int32_t cell) PLN_CHECKED;
/* The same to the value of a node with as many lanes. */
pln_status pln_loop_bind_value(pln_translation *t, pln_ref var,
                               pln_ref value) PLN_CHECKED;
pln_status pln_loop_unbind_var(pln_translation *t, pln_ref var) PLN_CHECKED;
bool pln_loop_is_bound(const pln_translation *t, pln_ref var);
/* Makes the jump at `at` lead to the next instruction. */
void pln_loop_land(pln_translation *t, int32_t at);
/* PLN_ERR_UNSUPPORTED for a node, with its statement. */
pln_status pln_loop_refuse(pln_translation *t, const char *format, ...)
    PLN_PRINTF(2, 3) PLN_CHECKED;
/* The instruction that computes with a dtype, of five in the order I32, I64,
 * U64, F32, F64. */
uint32_t pln_loop_class(pln_dtype dtype);
/* Wraps or rounds a result to its dtype, where its instruction does not. */
pln_status pln_loop_normalise(pln_translation *t, pln_ref node, pln_dtype dtype,
                              uint32_t lanes, int32_t cell) PLN_CHECKED;
/* Emits an integer operation of two cells into a new one. */
pln_status pln_loop_op2(pln_translation *t, pln_ref node, pln_loop_op op,
                        int32_t a, int32_t b, int32_t *out) PLN_CHECKED;

/* ---------------------------------------- compile_expr.c, compile_call.c */

/* Runs a task of an expression. */
pln_status pln_loop_expr_task(pln_translation *t,
                              pln_loop_task task) PLN_CHECKED;
/* A conversion between dtypes. */
pln_status pln_loop_emit_cast(pln_translation *t, pln_ref ref) PLN_CHECKED;
/* Pushes the operands of a PrimCall; and emits it. */
pln_status pln_loop_visit_call(pln_translation *t, pln_ref ref) PLN_CHECKED;
pln_status pln_loop_emit_call(pln_translation *t, pln_ref ref) PLN_CHECKED;
bool pln_loop_call_is_safe(const pln_graph *g, const pln_node *n);
/* Evaluates an operand only if a condition holds. */
pln_status pln_loop_visit_branch(pln_translation *t, pln_ref ref) PLN_CHECKED;

/* -------------------------------------------------------- compile_buffer.c */

/* Pushes what an access with indices from operand `first` on needs. */
pln_status pln_loop_push_access(pln_translation *t, pln_ref ref,
                                uint32_t first) PLN_CHECKED;
pln_status pln_loop_emit_access(pln_translation *t, pln_ref ref, uint32_t first,
                                pln_loop_access *out) PLN_CHECKED;
pln_status pln_loop_emit_load(pln_translation *t, pln_ref ref) PLN_CHECKED;
pln_status pln_loop_emit_store(pln_translation *t, pln_ref ref) PLN_CHECKED;
/* Memory for `count` (a cell) elements, bound to a data pointer. */
pln_status pln_loop_bind_memory(pln_translation *t, pln_ref data,
                                int32_t handle) PLN_CHECKED;
pln_status pln_loop_emit_allocate(pln_translation *t, pln_ref node,
                                  pln_dtype dtype, uint32_t lanes,
                                  int32_t count, int32_t *handle) PLN_CHECKED;
/* The product of sizes in cells. */
pln_status pln_loop_emit_extent(pln_translation *t, pln_ref node, uint32_t n,
                                const int32_t *sizes, int32_t *out) PLN_CHECKED;
pln_status pln_loop_emit_realize(pln_translation *t, pln_ref ref) PLN_CHECKED;
pln_status pln_loop_push_match(pln_translation *t, pln_ref buffer,
                               pln_ref source) PLN_CHECKED;
pln_status pln_loop_emit_match(pln_translation *t, pln_ref buffer,
                               pln_ref source, uint32_t n,
                               const pln_ref *ranges) PLN_CHECKED;
pln_loop_binding *pln_loop_find_memory(const pln_translation *t, pln_ref data);
pln_status pln_loop_new_storage(pln_translation *t, pln_ref constant,
                                uint32_t *out) PLN_CHECKED;

/* ----------------------------------------------------------- parameters.c */

/* Cells of the parameters, and checks of what they are. */
pln_status pln_loop_bind_params(pln_translation *t) PLN_CHECKED;

#endif
