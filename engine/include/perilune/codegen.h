/* perilune/codegen.h: C of PrimFuncs; compiling, loading and calling it. Part
 * of perilune.h, which is what users include. */

#ifndef PERILUNE_CODEGEN_H
#define PERILUNE_CODEGEN_H

#include "perilune/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- C source */

typedef struct pln_c_options {
  uint32_t vector_bytes; /* of vector variables: 16, 32 or 64; 0: 32 */
  uint32_t threads;      /* that parallel loops may use; 0 and 1: serial */
  bool asserts;          /* check AssertStmt, divisors and sizes; AssertStmt is
                          * checked anyway with the attribute keep_asserts */
  uint32_t stack_bytes;  /* of arrays in a function; 0: 65,536 */
  const char *text;      /* C that stands behind all functions; NULL: none */
  uint32_t n_declared;   /* the first functions, of which the source has no more
                          * than prototypes: they are in sources of their own */
} pln_c_options;

/* A parameter of a function, in the order of the PrimFunc's. */
typedef struct pln_c_param {
  pln_symbol name;
  pln_dtype dtype;
  uint32_t lanes; /* of a buffer's elements: one more dimension of tensors */
  bool is_buffer;
  bool is_written; /* false: never; the C pointer is const */
  int32_t rank;    /* -1: any, for a bare pointer */
} pln_c_param;

/* A function of the source. In C it takes a pointer for each buffer, a value
 * for each scalar, then the variables of shapes that are no parameters as
 * int64_t, and a workspace if it has one:
 *     int32_t NAME(const T *restrict a, T *restrict b, int64_t n, void *ws);
 * Buffers are compact: strides that are variables get the compact values.
 * Its entry for a loader takes them as an array, see the source's header. */
typedef struct pln_c_function {
  pln_symbol name;   /* in the module */
  pln_symbol c_name; /* an identifier: NAME, NAME_workspace_size, NAME_call */
  uint32_t n_params;
  pln_c_param *params;
  uint32_t n_asserts;
  pln_symbol *asserts; /* messages of the assertions, by number */
} pln_c_function;

typedef struct pln_c_code pln_c_code;

/* What a function returns. */
typedef enum pln_c_result {
  PLN_C_OK = 0,
  PLN_C_DIVISION = 1,    /* by zero; with asserts */
  PLN_C_THROW = 2,       /* tvm_throw_last_error */
  PLN_C_WORKSPACE = 4,   /* NULL was given */
  PLN_C_SHAPE = 0x1000,  /* + 16 * parameter + dimension: not as declared */
  PLN_C_ASSERT = 0x10000 /* + number of the assertion that failed */
} pln_c_result;

/* Writes the PrimFuncs of a list as one C source. `names` are those of the
 * functions in their module. `options` may be NULL. PLN_ERR_UNSUPPORTED, with
 * the statement: what C does not have here; blocks and nodes of tensor
 * expressions must be lowered first. Linear in the size of the functions. */
PLN_API pln_status pln_c_write(pln_engine *engine, uint32_t n,
                               const pln_graph *const *functions,
                               const pln_symbol *names,
                               const pln_c_options *options,
                               pln_c_code **out) PLN_CHECKED;
PLN_API void pln_c_code_free(pln_c_code *code);
/* Borrowed. The source stands alone: it does not include the header. */
PLN_API pln_slice pln_c_code_source(const pln_c_code *code);
PLN_API pln_slice pln_c_code_header(const pln_c_code *code);
PLN_API uint32_t pln_c_code_n_functions(const pln_c_code *code);
PLN_API const pln_c_function *pln_c_code_function(const pln_c_code *code,
                                                  uint32_t i);
/* Whether it starts threads: compile and link it with -pthread. */
PLN_API bool pln_c_code_uses_threads(const pln_c_code *code);
/* The widest vectors of this machine, in bytes. */
PLN_API uint32_t pln_c_native_vector_bytes(void);
/* How many vectors of so many bytes code may count on: AVX-512 has 32, shorter
 * ones of x86 are 16. */
PLN_API uint32_t pln_c_vector_registers(uint32_t bytes);

/* --------------------------------------------------------------- compiling */

typedef enum pln_c_artifact {
  PLN_C_OBJECT, /* an object file */
  PLN_C_SHARED  /* a shared library */
} pln_c_artifact;

typedef struct pln_cc_options {
  const char *cc;   /* a command on PATH or a path; NULL: $CC, else cc */
  uint32_t n_flags; /* given flags; else those of pln_cc_default_flags */
  const char *const *flags;
  bool flags_given;
  double seconds;    /* time limit; 0: 60 of a processor, 600 of wall time */
  uint64_t memory;   /* limit in bytes of each process; 0: 4 GiB */
  const char *cache; /* a folder; NULL: $XDG_CACHE_HOME/perilune, else
                      * ~/.cache/perilune; "": none is kept */
} pln_cc_options;

/* What was done, for the user. Free with pln_cc_result_free. */
typedef struct pln_cc_result {
  pln_engine *engine;
  char *path;        /* of the artifact, in the cache */
  char *command;     /* that made it, or would have */
  char *version;     /* the first line of `cc --version` */
  bool cached;       /* it was there */
  bool is_temporary; /* freeing the result removes the file */
} pln_cc_result;

/* Compiles C source. The artifact is kept in the cache by a hash of source,
 * compiler, version and flags. PLN_ERR_IO: the compiler is missing, fails, is
 * stopped by a limit; the diagnostic has its command and its messages.
 * `threads`: adds -pthread. */
PLN_API pln_status pln_cc_compile(pln_engine *engine, pln_slice source,
                                  bool threads, pln_c_artifact artifact,
                                  const pln_cc_options *options,
                                  pln_cc_result *out) PLN_CHECKED;
/* Links objects that pln_cc_compile made, in the cache, to one that is shared.
 * What is linked is kept by a hash of the objects' paths: that of an object
 * names what is in it. Errors as above. */
PLN_API pln_status pln_cc_link(pln_engine *engine, uint32_t n,
                               const char *const *objects,
                               const pln_cc_options *options,
                               pln_cc_result *out) PLN_CHECKED;
PLN_API void pln_cc_result_free(pln_cc_result *result);
/* Ends with NULL. */
PLN_API const char *const *pln_cc_default_flags(void);

/* ----------------------------------------------------------------- running */

typedef struct pln_c_library pln_c_library;

typedef struct pln_c_run_options {
  bool in_process; /* false: each call happens in a child process */
  double seconds;  /* time limit of a call in a child; 0: 60 */
  size_t evict;    /* bytes that are written before each call: what it reads is
                      not in the cache then */
} pln_c_run_options;

/* Functions of a compiled source. The file is opened in each child process, or
 * in this one at the first call that asks for it. */
PLN_API pln_status pln_c_library_new(pln_engine *engine, const pln_c_code *code,
                                     const char *path,
                                     pln_c_library **out) PLN_CHECKED;
PLN_API void pln_c_library_free(pln_c_library *library);
/* Calls function `index`. `results` are the caller's: for each buffer a
 * tensor, the argument itself if it is never written, else a copy with what the
 * function left; arguments do not change. `seconds_each` (may be NULL) gets the
 * time of a call: the processor time of its thread, or elapsed time if it
 * starts threads. The call is repeated until `least` seconds passed, and the
 * shortest time counts.
 * PLN_ERR_TYPE: an argument has another dtype, rank or shape.
 * PLN_ERR_ARGUMENT: an assertion failed. PLN_ERR_IO: it crashed, or cannot be
 * loaded; PLN_ERR_LIMIT: it took too long. */
PLN_API pln_status pln_c_library_call(pln_c_library *library, uint32_t index,
                                      const pln_c_run_options *options,
                                      uint32_t n_args,
                                      const pln_tensor *const *args,
                                      pln_tensor **results, double least,
                                      double *seconds_each) PLN_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
