/* program.h: the program that a PrimFunc is translated to, and what a run of it
 * needs. Shared by the translation (compile*.c) and the interpreter
 * (execute.c).
 *
 * Values lie in cells of 8 bytes, a vector in as many cells as it has lanes.
 * Cells are numbered: constants from -1 downwards, others from 0. Integers are
 * sign- or zero-extended to 64 bits, as their dtype is; floats of 32 bits and
 * less are a float, those of 64 a double; a handle is a storage and an offset
 * in bytes. */

#ifndef PLN_EVAL_LOOP_PROGRAM_H
#define PLN_EVAL_LOOP_PROGRAM_H

#include "ir/graph/graph.h"
#include "ir/tensor/dtype.h"
#include "op/kernel/elementwise/small_float.h"

typedef union pln_loop_cell {
  int64_t i;
  double d;
  float f;
} pln_loop_cell;

typedef enum pln_loop_op {
#define UNARY(name, result, operand, expr) PLN_LOOP_##name,
#define BINARY(name, result, operand, expr) PLN_LOOP_##name,
#define DIVIDE(name, expr) PLN_LOOP_##name,
#define LOAD(name, type, field) PLN_LOOP_##name,
#define STORE(name, type, field) PLN_LOOP_##name,
#define OTHER(name) PLN_LOOP_##name,
#include "eval/loop/opcodes.def"
  PLN_LOOP_N_OPS
} pln_loop_op;

/* `to`, `a`, `b`, `c` are cells unless said otherwise. */
typedef struct pln_loop_instr {
  uint16_t op;  /* pln_loop_op */
  uint16_t aux; /* a dtype, a dimension, a function: by the opcode */
  uint32_t lanes;
  int32_t to, a, b, c;
} pln_loop_instr;
_Static_assert(sizeof(pln_loop_instr) == 24, "an instruction has 24 bytes");

/* `c` of loads and stores whose index `b` has a cell for each lane; otherwise
 * `b` is the first index and `c` the distance to the next. */
#define PLN_LOOP_GATHER INT32_MIN

/* A handle is (storage << 40) + offset in bytes; storage 0 is null. */
enum { PLN_LOOP_OFFSET_BITS = 40, PLN_LOOP_MAX_STORAGES = 1 << 22 };
#define PLN_LOOP_OFFSET_MASK ((INT64_C(1) << PLN_LOOP_OFFSET_BITS) - 1)

/* Why a program stopped at an instruction. The first ones come from execute.c,
 * the others are the `aux` of FAIL. */
typedef enum pln_loop_fault {
  PLN_LOOP_NO_FAULT,
  PLN_LOOP_FAULT_STATUS, /* a status that was reported already */
  PLN_LOOP_FAULT_INDEX,
  PLN_LOOP_FAULT_MEMORY,
  PLN_LOOP_FAULT_UNSET,
  PLN_LOOP_FAULT_DIVISION,
  PLN_LOOP_FAULT_LANE,
  PLN_LOOP_FAULT_SIZE,
  PLN_LOOP_FAULT_EQUAL,
  PLN_LOOP_FAULT_STRIDE,
  PLN_LOOP_FAULT_ASSERT,
  PLN_LOOP_FAULT_ASSUME,
  PLN_LOOP_FAULT_THROW,
  PLN_LOOP_FAULT_STEPS
} pln_loop_fault;

/* Memory: of a parameter, of a constant, or allocated by the program. */
typedef struct pln_loop_storage {
  char *data;
  size_t bytes;
  uint8_t *written;   /* for each byte whether it was; NULL: all were */
  bool writable;      /* false: the first store copies the tensor */
  size_t capacity;    /* bytes allocated at data, and at written */
  pln_tensor *tensor; /* the owner of data; NULL: the run allocated it */
} pln_loop_storage;

/* A parameter. Tensors: cells of their dims, then of their compact strides. */
typedef struct pln_loop_param {
  pln_symbol name;
  pln_dtype dtype;  /* of a scalar; of a buffer's elements */
  uint32_t lanes;   /* of a buffer's elements */
  bool is_buffer;   /* given as a tensor, which is a result too */
  int32_t rank;     /* -1: any, for a bare pointer */
  int32_t cell;     /* the value, or the handle */
  int32_t dims;     /* first cell of dims; strides follow */
  uint32_t storage; /* of a buffer */
} pln_loop_param;

/* A call of a function of the host. */
typedef struct pln_loop_call {
  pln_symbol name;
  uint32_t n; /* arguments; their dtypes are at `first` in the table */
  uint32_t first;
  pln_dtype result; /* none: no value */
} pln_loop_call;

struct pln_loop_program {
  pln_engine *engine;
  pln_graph *graph; /* retained */
  pln_loop_instr *code;
  pln_ref *code_node; /* for each instruction: its node, */
  pln_ref *code_stmt; /* and its statement; PLN_NONE: the parameters */
  uint32_t n_code, cap_code, cap_code_node, cap_code_stmt;
  pln_loop_cell *constants; /* cell -1 - k is constants[k] */
  uint32_t n_constants, cap_constants;
  uint32_t n_cells;
  pln_loop_param *params;
  uint32_t n_params, cap_params;
  uint32_t n_storages;    /* with number 0, null */
  pln_ref *storage_const; /* for each storage: its AllocateConst or PLN_NONE */
  uint32_t cap_storages;
  pln_loop_call *calls;
  uint32_t n_calls, cap_calls;
  pln_dtype *call_dtypes;
  uint32_t n_call_dtypes, cap_call_dtypes;
};

/* Iterations of loops between two polls. */
enum { PLN_LOOP_POLL = 1024 };

/* True of dtypes whose cells are floats or doubles. */
static inline bool pln_loop_is_float(pln_dtype dtype) {
  return pln_dtype_is_float(dtype) || pln_is_small_float(dtype);
}

typedef struct pln_loop_run {
  const pln_loop_program *program;
  const pln_loop_options *options;
  pln_engine *engine;
  pln_loop_cell *block; /* constants, then cells */
  pln_loop_cell *cells; /* cell 0 */
  pln_loop_storage *storages;
  uint64_t n_steps; /* iterations of loops so far */
  /* Where it stopped: */
  uint32_t at; /* instruction */
  pln_loop_fault fault;
  pln_status status;
  int64_t value, bound; /* what was compared */
} pln_loop_run;

/* compile.c: translates a sealed PrimFunc. */
pln_status pln_loop_translate(pln_loop_program *program,
                              const pln_loop_options *options) PLN_CHECKED;
/* execute.c: runs the code from the first instruction to END or to a fault,
 * which it leaves in the run. */
void pln_loop_execute(pln_loop_run *run);
/* memory.c: memory of `bytes` for storage `id`; the old content is lost. */
pln_status pln_loop_allocate(pln_loop_run *run, uint32_t id,
                             size_t bytes) PLN_CHECKED;
/* Makes the storage writable: copies its tensor. */
pln_status pln_loop_make_writable(pln_loop_run *run, uint32_t id) PLN_CHECKED;
/* The memory of a tensor, which the storage retains. */
pln_status pln_loop_bind_tensor(pln_loop_run *run, uint32_t id,
                                const pln_tensor *tensor) PLN_CHECKED;
void pln_loop_release_storages(pln_loop_run *run);
/* fault.c: reports the fault of a run and returns its status. */
pln_status pln_loop_report(const pln_loop_run *run) PLN_CHECKED;
/* Adds a note with a statement's text to the error reported last. */
void pln_loop_note_statement(const pln_loop_program *program, pln_ref stmt);

#endif
