/* writer.h: the state of writing PrimFuncs as C, and what its parts offer each
 * other.
 *
 * The walk is a stack of tasks, as in the interpreter of loops (eval/loop).
 * Texts lie in an arena; the first failure to allocate is kept in `status`, and
 * what is written afterwards is dropped, so that functions that make text do
 * not fail one by one.
 *
 * A value is the text of a C expression for each of its chunks. A scalar has
 * one; a vector has one for each run of lanes that fits into a vector of the
 * machine. Long texts, and those used more than once, become variables. */

#ifndef PLN_CODEGEN_WRITER_H
#define PLN_CODEGEN_WRITER_H

#include "codegen/codegen.h"
#include "ir/graph/graph.h"
#include "ir/tir/tir.h"

/* How tightly a text binds. */
typedef enum pln_c_prec {
  PLN_C_NAME,    /* a variable or literal: may be repeated */
  PLN_C_CALL,    /* a call, an element, text in parentheses */
  PLN_C_COMPOUND /* needs parentheses as an operand */
} pln_c_prec;

typedef struct pln_c_text {
  const char *data; /* ends with a zero byte */
  uint32_t size;
  uint8_t prec;
  bool reads; /* it reads memory when it is evaluated */
  bool place; /* a variable of int64 and a constant: it gets no variable, so
               * that compilers see that elements at such indices are apart, and
               * keep sums that are stored there in registers */
  const char *base; /* of a place: the variable, */
  int64_t addend;   /* and the constant */
} pln_c_text;

typedef enum pln_c_form {
  PLN_C_PLAIN, /* a text for each chunk */
  PLN_C_SPLAT, /* the text of a scalar that all lanes have */
  PLN_C_RAMP   /* the texts of base and stride */
} pln_c_form;

typedef struct pln_c_value {
  pln_c_text *texts; /* in the arena; copies of a value share them */
  uint32_t count, cap;
  uint32_t lanes;
  uint8_t form;
  uint8_t dtype;  /* pln_dtype; none: a handle */
  uint8_t mask;   /* bool vectors: bytes of an element, which is 0 or -1 */
  int64_t lo, hi; /* integers: bounds of all lanes */
  int64_t step_lo, step_hi; /* of a ramp's stride */
} pln_c_value;

typedef enum pln_c_task_kind {
  PLN_C_EXPR,
  PLN_C_EMIT,
  PLN_C_BRANCH,
  PLN_C_OTHERWISE,
  PLN_C_JOIN,
  PLN_C_MASKED, /* a selection by lanes, k: which operand was written */
  PLN_C_LET_BODY,
  PLN_C_LET_END,
  PLN_C_STMT,
  PLN_C_STMT_END,
  PLN_C_BODY,
  PLN_C_LEAVE,
  PLN_C_ELSE,
  PLN_C_TRANSPOSE, /* x: which group of loads, see transpose.c */
  PLN_C_DOUBLED,   /* ref: the first store of a block, see transpose.c */
  PLN_C_SHARED_LOADS,
  PLN_C_PART,   /* ref: a loop; x: of how many parts, y: which, distribute.c */
  PLN_C_TOP_VAR /* the value of a let's variable is there, see memory.c */
} pln_c_task_kind;

typedef struct pln_c_task {
  uint8_t what; /* pln_c_task_kind */
  uint8_t k;
  uint8_t flat; /* written with labels, because C cannot nest so deep */
  pln_ref ref;
  uint32_t mark;  /* of the memo's log */
  uint32_t x, y;  /* by the task */
  uint32_t first; /* 1 + a value */
  size_t at, end; /* positions in the output */
} pln_c_task;

/* A selection by lanes whose operand is being written: lanes that it does not
 * take read no memory, unless that is known to be of a buffer. */
typedef struct pln_c_condition {
  pln_c_value value; /* PLAIN with names */
  bool negated;
  const struct pln_c_condition *outer;
} pln_c_condition;

/* The memory behind a data pointer. */
typedef struct pln_c_memory {
  pln_c_text name;
  pln_dtype dtype; /* that the pointer points to */
} pln_c_memory;

/* What a function does with a data pointer; found before it is written. */
enum { PLN_C_READ = 1, PLN_C_WRITTEN = 2, PLN_C_ESCAPES = 4 };

/* Short names of types, in the order of the prelude. */
typedef enum pln_c_type {
  PLN_C_I8,
  PLN_C_I16,
  PLN_C_I32,
  PLN_C_I64,
  PLN_C_U8,
  PLN_C_U16,
  PLN_C_U32,
  PLN_C_U64,
  PLN_C_F32,
  PLN_C_F64,
  PLN_C_N_TYPES
} pln_c_type;

typedef enum pln_c_helper {
#define HELPER(name, text) PLN_C_HELPER_##name,
#include "codegen/prelude.def"
  PLN_C_N_HELPERS
} pln_c_helper;

enum { PLN_C_LOG_LANES = 7 }; /* vectors of 2 to 64 lanes */

typedef struct pln_c_iter {
  pln_symbol tag;
  pln_c_value value;
} pln_c_iter;

enum { PLN_C_MOST_THREAD_LOOPS = 32, PLN_C_MOST_NEST = 100 };

/* A function that runs a part of a parallel loop. */
typedef struct pln_c_region {
  pln_buffer body;
  pln_buffer *outer; /* the output around it; NULL: none is open */
  uint32_t depth;
  const char *name;      /* of its function */
  uint64_t thread_bytes; /* workspace of each thread */
  uint64_t base;         /* where that of all threads begins */
} pln_c_region;

/* What was written before statements at the top of the function. */
typedef struct pln_c_top {
  pln_buffer *out;
  uint32_t depth, mark;
} pln_c_top;

/* A function of the unit that is written, for its callers. */
typedef struct pln_c_callee {
  bool written;
  bool is_sized; /* its memory depends on its arguments */
  bool uses_workspace;
  uint32_t n_dims; /* what it takes behind its parameters */
  uint64_t workspace_bytes;
} pln_c_callee;

/* A part of the stores that a loop runs, see distribute.c. */
typedef struct pln_c_part {
  pln_ref row; /* the first store of all parts; PLN_NONE: no part is written */
  pln_ref first; /* of this part */
  pln_ref end;   /* the first store of the next part; PLN_NONE: the last part */
} pln_c_part;

/* Two loops that are written in tiles, see tile.c. */
typedef struct pln_c_tile {
  pln_ref outer, inner;
  uint32_t rounds;  /* of the outer loop in a tile; 0: no tiles are written */
  uint32_t columns; /* of the inner loop in a tile; 0: all */
  int64_t all, all_inner;          /* rounds of the loops */
  const char *type, *name, *first; /* of its variable; the first of a tile */
  pln_ref doubled; /* the first store of blocks that are written twice as wide
                    * and high, two rounds of both loops in one; PLN_NONE */
} pln_c_tile;

typedef struct pln_cw {
  pln_engine *engine;
  const pln_c_options *options;
  pln_c_code *code;
  pln_status status; /* the first failure */
  pln_arena arena;
  /* Of the unit: */
  bool used_vectors[PLN_C_N_TYPES][PLN_C_LOG_LANES][2];
  bool used_helpers[PLN_C_N_HELPERS][PLN_C_N_TYPES][PLN_C_LOG_LANES];
  bool used_alias[PLN_C_N_TYPES];
  bool uses_unroll, uses_shuffle, uses_keep, uses_low, uses_half, uses_products,
      uses_pool, uses_vectors;
  pln_idmap *externs;   /* name -> 1 + its text */
  pln_buffer functions; /* text behind the prelude */
  pln_buffer declarations;
  pln_idmap *unit_names;
  pln_idmap *function_names; /* C name -> 1 + the function's number */
  pln_c_callee *callees;     /* for each function of the unit */
  /* Of the function being written: */
  const pln_graph *g;
  pln_c_function *fn;
  uint32_t width; /* lanes of a chunk; 1: scalars only */
  pln_buffer body;
  pln_buffer *out;
  uint32_t depth; /* open braces */
  pln_c_task *tasks;
  uint32_t n_tasks, cap_tasks;
  pln_c_value *values;
  uint32_t n_values, cap_values;
  uint32_t *memo; /* for each node: 1 + its value */
  pln_ref *log;
  uint32_t n_log, cap_log;
  uint8_t *uses;   /* for each node: by how many operands, up to 255 */
  bool *assumed;   /* for each IfThenElse and comparison: it holds here */
  bool *elsewhere; /* for each node: it is used in more than indices */
  bool *unsafe;    /* for each node: evaluating it may fault */
  uint32_t *seen;  /* for each node: the last region that captured it */
  pln_scope *scope_of;
  pln_ref *next_stmt, *first_stmt;
  pln_idmap *vars;     /* variable -> 1 + its value */
  pln_idmap *lets;     /* variable of a LetStmt -> 1 + its value's node */
  pln_idmap *top_vars; /* variable -> 1 + its value where sizes are computed */
  pln_idmap *var_uses; /* variable -> how often it is used */
  pln_idmap *bindings; /* parameter -> 1 + the Buffer that it is bound to */
  pln_idmap *access;   /* data pointer -> PLN_C_* + 8 */
  pln_idmap *memory;   /* data pointer -> 1 + its memory */
  pln_c_memory *memories;
  uint32_t n_memories, cap_memories;
  pln_idmap *names; /* C name -> the last suffix + 1 */
  uint32_t n_temps, n_labels, n_asserts, n_regions, n_captures;
  const pln_c_condition *condition; /* the innermost one */
  bool spills; /* loads become variables: a call may write what they read */
  bool uses_workspace, restricts;
  bool keeps_asserts; /* its assertions are checked without the option too */
  bool at_top; /* sizes of the workspace: variables of lets are expanded */
  pln_c_iter iters[PLN_C_MOST_THREAD_LOOPS];
  uint32_t n_iters;
  uint64_t stack_bytes, workspace_bytes;
  bool has_callees;
  uint64_t callee_base;    /* where the workspace of called functions begins */
  bool has_sized;          /* some of them have memory that is not constant */
  pln_buffer callee_sizes; /* statements that compute the most that they take */
  uint32_t n_dims;         /* parameters for variables of shapes */
  pln_buffer dims;         /* statements that declare variables of shapes */
  pln_buffer sizes;        /* statements that compute sizes of the workspace */
  uint32_t n_sizes;
  pln_c_region region;
  pln_ref stmt;
  pln_ref sums_first; /* the last run of stores before whose loop the sums are
                       * in memory */
  uint32_t n_merged;  /* as how many stores the present one is written */
  uint32_t n_free; /* registers of vectors beside what the run of stores has */
  pln_c_part part;
  pln_c_tile tile;
} pln_cw;

/* ------------------------------------------------------------------ text.c */

pln_c_text pln_c_textf(pln_cw *w, pln_c_prec prec, const char *format, ...)
    PLN_PRINTF(3, 4);
/* The text as an operand: in parentheses if it needs them. */
const char *pln_c_arg(pln_cw *w, pln_c_text text);
/* Writes a line, indented. */
void pln_c_line(pln_cw *w, const char *format, ...) PLN_PRINTF(2, 3);
void pln_c_raw(pln_cw *w, const char *format, ...) PLN_PRINTF(2, 3);
/* Records a failure. */
void pln_c_fail(pln_cw *w, pln_status status);
/* PLN_ERR_UNSUPPORTED. */
void pln_c_refuse(pln_cw *w, const char *format, ...) PLN_PRINTF(2, 3);
/* A C identifier that the function does not use yet. */
const char *pln_c_fresh_name(pln_cw *w, pln_slice hint);
/* An identifier of the unit. */
const char *pln_c_unit_name(pln_cw *w, pln_slice hint);
bool pln_c_is_reserved(const char *name);
const char *pln_c_temp(pln_cw *w);
pln_slice pln_c_attr(const pln_cw *w, const pln_node *n, const char *key);

/* ------------------------------------------------------------------ type.c */

bool pln_c_is_float(pln_dtype dtype);
bool pln_c_is_int(pln_dtype dtype); /* bool too */
bool pln_c_is_half(pln_dtype dtype);
/* Whether values of the dtype are written at all. */
bool pln_c_has_dtype(pln_dtype dtype);
/* The type of a variable, "int32_t"; of memory, where halves are uint16_t. */
const char *pln_c_type_name(pln_dtype dtype);
const char *pln_c_memory_name(pln_dtype dtype);
const char *pln_c_unsigned_name(pln_dtype dtype);
pln_c_type pln_c_type_of(pln_dtype dtype);
const char *pln_c_short_name(pln_c_type type);
uint32_t pln_c_bytes(pln_dtype dtype);
/* Sums, products, quotients, remainders, minima and maxima. */
static inline bool pln_c_is_arithmetic(const pln_node *n) {
  return n->kind >= PLN_PRIM_ADD && n->kind <= PLN_PRIM_MAX;
}
/* The name of a vector type, which the prelude then defines. */
const char *pln_c_vector(pln_cw *w, pln_c_type type, uint32_t lanes,
                         bool in_memory);
/* The vector type of a chunk: of masks with elements of `mask` bytes. */
const char *pln_c_chunk_type(pln_cw *w, pln_dtype dtype, uint32_t mask,
                             uint32_t lanes);
pln_c_type pln_c_mask_type(uint32_t bytes);
void pln_c_use(pln_cw *w, pln_c_helper helper, pln_c_type type, uint32_t lanes);
int64_t pln_c_least(pln_dtype dtype);
int64_t pln_c_most(pln_dtype dtype);
pln_c_text pln_c_int(pln_cw *w, pln_dtype dtype, int64_t value);
pln_c_text pln_c_float(pln_cw *w, pln_dtype dtype, double value);

/* ----------------------------------------------------------------- value.c */

uint32_t pln_c_n_chunks(const pln_cw *w, uint32_t lanes);
uint32_t pln_c_chunk_lanes(const pln_cw *w, uint32_t lanes, uint32_t chunk);
/* A value with the bounds of its dtype; its texts follow by pln_c_add_text. */
pln_c_value pln_c_new_value(pln_cw *w, pln_dtype dtype, uint32_t lanes,
                            pln_c_form form);
void pln_c_add_text(pln_cw *w, pln_c_value *value, pln_c_text text);
pln_c_text pln_c_text_at(const pln_cw *w, const pln_c_value *value,
                         uint32_t chunk);
pln_c_value pln_c_scalar(pln_cw *w, pln_dtype dtype, pln_c_text text);
pln_c_value pln_c_int_value(pln_cw *w, pln_dtype dtype, int64_t value);
/* The value of a node or variable that was written. */
pln_c_value pln_c_value_of(const pln_cw *w, pln_ref ref);
bool pln_c_is_const(const pln_c_value *value, int64_t *out);
/* Ends a node: records its value, as a variable where that is better. */
void pln_c_set(pln_cw *w, pln_ref ref, pln_c_value value);
/* 1 + the number of the value, which is kept. */
uint32_t pln_c_keep(pln_cw *w, pln_c_value value);
void pln_c_forget(pln_cw *w, uint32_t mark);
void pln_c_bind(pln_cw *w, pln_ref var, pln_c_value value);
void pln_c_unbind(pln_cw *w, pln_ref var);
bool pln_c_is_bound(const pln_cw *w, pln_ref var);
/* The value with a text for each chunk; of a scalar itself. */
pln_c_value pln_c_plain(pln_cw *w, pln_c_value value);
/* The value with names for texts: those that are no names become variables. */
pln_c_value pln_c_named(pln_cw *w, pln_c_value value);
pln_c_text pln_c_name(pln_cw *w, const char *type, pln_c_text text);
/* The text of one lane of a plain value with names. */
pln_c_text pln_c_lane(pln_cw *w, const pln_c_value *value, uint32_t lane);
/* The condition as a scalar: bool values are 0 or 1. */
pln_c_text pln_c_chunk_from_lanes(pln_cw *w, pln_dtype dtype, uint32_t mask,
                                  uint32_t lanes, const pln_c_text *texts);

/* ----------------------------------------------------------------- arith.c */

void pln_c_binary(pln_cw *w, pln_ref ref);
void pln_c_cast(pln_cw *w, pln_ref ref);
void pln_c_select(pln_cw *w, pln_ref ref, const pln_ref *operands);
void pln_c_logic(pln_cw *w, pln_ref ref);
pln_c_text pln_c_cast_text(pln_cw *w, pln_dtype from, pln_dtype to,
                           pln_c_text text);
/* Rounds a text of float to a half dtype. */
pln_c_text pln_c_rounded(pln_cw *w, pln_dtype dtype, pln_c_text text);
/* Element offsets: sums and products of int64 that do not overflow. */
pln_c_value pln_c_offset(pln_cw *w, pln_kind kind, pln_c_value a,
                         pln_c_value b);
pln_c_value pln_c_mask_as(pln_cw *w, pln_c_value value, uint32_t mask);
bool pln_c_combine(pln_cw *w, pln_kind kind, pln_c_value a, pln_c_value b,
                   pln_dtype result, pln_c_value *out);

/* ------------------------------------------------------------ expr.c, call.c
 */

void pln_c_push(pln_cw *w, pln_c_task task);
void pln_c_push_expr(pln_cw *w, pln_ref ref);
void pln_c_push_exprs(pln_cw *w, uint32_t n, const pln_ref *refs);
void pln_c_expr_task(pln_cw *w, pln_c_task task);
void pln_c_visit_branch(pln_cw *w, pln_ref ref);
/* Whether a selection has a condition for each lane, and an operand that may
 * fault; writes one. */
bool pln_c_is_masked(const pln_cw *w, pln_ref ref);
void pln_c_visit_masked(pln_cw *w, pln_ref ref);
void pln_c_masked_task(pln_cw *w, pln_c_task task);
void pln_c_visit_call(pln_cw *w, pln_ref ref);
void pln_c_emit_call(pln_cw *w, pln_ref ref);
bool pln_c_call_is_safe(const pln_node *n);
/* Opens and closes what is written under a condition. */
void pln_c_open_if(pln_cw *w, pln_c_task *task, const char *condition);
void pln_c_else(pln_cw *w, pln_c_task *task);
void pln_c_close_if(pln_cw *w, pln_c_task *task);
const char *pln_c_label(pln_cw *w, uint32_t label);

/* ---------------------------------------------------------------- access.c */

void pln_c_push_access(pln_cw *w, pln_ref ref, uint32_t first);
void pln_c_load(pln_cw *w, pln_ref ref);
void pln_c_store(pln_cw *w, pln_ref ref);
/* A pointer to the element that a BufferLoad reads. */
pln_c_text pln_c_address(pln_cw *w, pln_ref load);
/* The vector of `lanes` elements from `offset` behind that of lane 0. */
pln_c_text pln_c_neighbours(pln_cw *w, pln_ref load, int64_t offset,
                            uint32_t lanes);
/* Stores a vector of `lanes` elements at `offset` behind lane 0 of a store. */
void pln_c_store_neighbours(pln_cw *w, pln_ref store, int64_t offset,
                            uint32_t lanes, const char *vector);
void pln_c_bind_memory(pln_cw *w, pln_ref data, pln_c_text name,
                       pln_dtype dtype);
const pln_c_memory *pln_c_find_memory(const pln_cw *w, pln_ref data);

/* ------------------------------------------------------------- store_run.c */

enum { PLN_C_MOST_LOADS = 64 };

/* The loads that the values of stores in a row always read, and how often. */
typedef struct pln_c_loads {
  pln_ref loads[PLN_C_MOST_LOADS];
  uint32_t uses[PLN_C_MOST_LOADS];
  uint32_t parts[PLN_C_MOST_LOADS]; /* as how many stores its store is written:
                                     * the vector has their lanes together */
  uint32_t n;
} pln_c_loads;

typedef bool (*pln_c_takes_load)(const pln_cw *w, pln_ref load);

/* How many stores stand in a row from a statement on. */
uint32_t pln_c_n_stores(const pln_cw *w, pln_ref first);
/* The store behind those that are written as one with this one; *parts: how
 * many they are, *n_stores: of how many that are left in the row. */
pln_ref pln_c_next_group(const pln_cw *w, pln_ref store, uint32_t *n_stores,
                         uint32_t *parts);
/* Those of the loads that are wanted. */
void pln_c_find_loads(const pln_cw *w, pln_ref first, pln_c_takes_load takes,
                      pln_c_loads *out);
/* Whether none of these stores writes what the load reads. */
bool pln_c_is_apart(const pln_cw *w, pln_ref first, pln_ref load);
/* Whether memory is known to be none of what a store writes; the data pointers
 * are numbers of pln_c_memory_of. */
bool pln_c_is_other_memory(const pln_cw *w, uint32_t read, uint32_t written);
/* Whether a node is a compact Buffer of one dimension, of scalars of 4 or 8
 * bytes. */
bool pln_c_is_plain_buffer(const pln_cw *w, pln_ref buffer);
/* The data pointer of an access, as a number. */
uint32_t pln_c_memory_of(const pln_cw *w, pln_ref access);
/* How many elements the lanes of a load are apart; 0: it is not known, or the
 * load is not one of whole chunks from plain memory. */
int64_t pln_c_load_stride(const pln_cw *w, pln_ref load);
/* The index of lane 0 of such a load as a sum of a node, or none, and a
 * constant; whether two such nodes are the same. */
pln_ref pln_c_first_index(const pln_cw *w, pln_ref load, int64_t *constant);
pln_ref pln_c_row_base(const pln_cw *w, pln_ref ramp, int64_t *constant);
bool pln_c_same_index(const pln_cw *w, pln_ref a, pln_ref b);

/* ---------------------------------------------------------- merged_store.c */

/* How many of n stores in a row, from the first one on, are written as one of
 * their lanes together; 1: the first one by itself. */
uint32_t pln_c_n_merged(const pln_cw *w, pln_ref first, uint32_t n_stores);

/* ----------------------------------------------------------- shared_load.c */

/* Before stores in a row, from the first one on. */
void pln_c_push_shared_loads(pln_cw *w, pln_ref first);
/* A factor: where it is a loaded scalar in all lanes of several vectors, a
 * vector in a register. */
pln_c_value pln_c_kept_splat(pln_cw *w, pln_ref ref, pln_c_value value);
void pln_c_shared_loads_task(pln_cw *w, pln_ref first);
/* Whether the vectors that stores in a row write, from the first one on, have
 * registers, and those that several of them read too; sets *shares if there are
 * such. */
bool pln_c_fits_registers(const pln_cw *w, pln_ref first, bool *shares);
/* The number of vectors that stores in a row write, from the first one on. */
uint32_t pln_c_n_stored(const pln_cw *w, pln_ref first);
/* The elements of the array of constant size that all stores of the row
 * write; 0: they write another memory, or several. */
int64_t pln_c_n_sums(const pln_cw *w, pln_ref first);
/* The first store of a loop's body, behind lets and prefetches; else none. */
pln_ref pln_c_first_store(const pln_cw *w, pln_scope body);
/* Before the header of a loop with that body: what it sums is in memory, if the
 * sums and what their stores share do not fit the registers. */
void pln_c_begin_sums(pln_cw *w, pln_scope body);

/* ------------------------------------------------------------ distribute.c */

/* In how many parts a loop is written, each with a part of its stores; 1: as
 * it is. */
uint32_t pln_c_n_parts(pln_cw *w, pln_ref loop);
/* Begins a part, from 0 on; `part` = `n`: behind the last one. */
void pln_c_begin_part(pln_cw *w, pln_ref loop, uint32_t n, uint32_t part);

/* ------------------------------------------------------------------ tile.c */

/* An index is outer * i + inner * j + what does not depend on the variables i
 * and j. */
typedef struct pln_c_linear {
  int64_t outer, inner;
} pln_c_linear;

/* False: it is not of that form. A variable may be PLN_NONE. */
bool pln_c_linear_of(const pln_cw *w, pln_ref index, pln_ref outer,
                     pln_ref inner, pln_c_linear *out);
/* Sets w->tile if a loop and the one inside of it are written in tiles. */
void pln_c_find_tile(pln_cw *w, pln_ref loop);
/* The header of the loop over tiles, in place of the outer loop's. */
void pln_c_open_tiles(pln_cw *w, const char *type, const char *name);
/* The headers of the inner loop and of the outer loop's rounds in a tile. */
void pln_c_open_tile(pln_cw *w, const char *type, const char *name,
                     const char *end);

/* ------------------------------------------------------------------ hint.c */

/* Whether gcc shall make vectors of half the size from the function's loops. */
bool pln_c_is_interleaved(const pln_cw *w);
/* Whether all products are added to sums one after the other, and gcc shall not
 * contract them with these additions. */
bool pln_c_sums_in_order(const pln_cw *w);

/* ------------------------------------------------------------- transpose.c */

/* Before stores in a row, from the first one on. */
void pln_c_push_transposes(pln_cw *w, pln_ref first);
void pln_c_transpose_task(pln_cw *w, pln_c_task task);
/* Whether the stores from `first` on transpose a square of half a vector's
 * lanes, and the rounds of the loops around them the neighbours of it. */
bool pln_c_doubles_blocks(const pln_cw *w, pln_ref first, pln_ref outer,
                          pln_ref inner);
void pln_c_push_doubled(pln_cw *w, pln_ref first);
void pln_c_doubled_task(pln_cw *w, pln_ref first);

/* ---------------------------------------------------------------- memory.c */

/* Forgets what its header computed, from `mark` on. */
void pln_c_allocate(pln_cw *w, pln_ref ref, uint32_t mark);
void pln_c_allocate_const(pln_cw *w, pln_ref ref);
/* Begins statements that compute sizes of the workspace, at the top of the
 * function; ends them. */
pln_c_top pln_c_begin_top(pln_cw *w);
void pln_c_end_top(pln_cw *w, pln_c_top top);
pln_c_value pln_c_top_expr(pln_cw *w, pln_ref expr);
/* A variable where sizes of the workspace are computed. */
void pln_c_visit_top_var(pln_cw *w, pln_ref ref);
void pln_c_set_top_var(pln_cw *w, pln_ref ref);

/* ------------------------------------------------------------ stmt.c, loop.c
 */

void pln_c_push_body(pln_cw *w, pln_scope scope);
void pln_c_write_body(pln_cw *w);
void pln_c_run_tasks(pln_cw *w, uint32_t floor);
void pln_c_for_body(pln_cw *w, pln_c_task task);
void pln_c_for_leave(pln_cw *w, pln_c_task task);
/* The variable of a For; the rounds of a serial one, 0: they are not constant.
 */
pln_ref pln_c_loop_var(const pln_cw *w, pln_ref loop);
int64_t pln_c_rounds(const pln_cw *w, pln_ref loop);
/* Opens a loop that threads share, and closes it: parallel.c. False: it is
 * written as a serial one. */
bool pln_c_open_parallel(pln_cw *w, pln_c_task *task, const char *type,
                         pln_c_value min, pln_c_value extent, const char *var);
void pln_c_close_parallel(pln_cw *w, pln_c_task *task);
void pln_c_thread_body(pln_cw *w, pln_c_task task);
void pln_c_thread_leave(pln_cw *w, pln_c_task task);
/* Whether a thread binding opens a loop. */
bool pln_c_opens_thread(const pln_cw *w, const pln_node *n);

/* -------------------------------------------------------------- analysis.c */

void pln_c_analyse(pln_cw *w);
void pln_c_free_analysis(pln_cw *w);
/* Of a vector variable. */
uint32_t pln_c_vector_bytes(const pln_cw *w);

/* ---------------------------------------------------------------- callee.c */

void pln_c_note_callee(pln_cw *w);
/* The function of the unit that has this name and is written; NULL: none. */
const pln_c_callee *pln_c_find_callee(const pln_cw *w, pln_symbol name);
/* Before the arguments of its call are written: the size of its memory. */
void pln_c_size_callee(pln_cw *w, const pln_c_callee *callee, pln_ref call);
/* Calls it with these arguments, and leaves the caller if it fails. */
void pln_c_call_callee(pln_cw *w, const pln_c_callee *callee, uint32_t n_args,
                       const char *args);

/* -------------------------------------------------------------- function.c */

void pln_c_function_write(pln_cw *w);

/* --------------------------------------------------------------- prelude.c */

void pln_c_prelude(pln_cw *w, pln_buffer *out);
void pln_c_header_begin(pln_cw *w);
void pln_c_header_end(pln_cw *w);
extern const char pln_c_pool_text[];

#endif
