/* perilune/run.h: the evaluator, files of tensors, ONNX models.
 * Part of perilune.h, which is what users include. */

#ifndef PERILUNE_RUN_H
#define PERILUNE_RUN_H

#include "perilune/pass.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- evaluator */

/* A runtime value is an input or output of the evaluator: a tensor, a sequence
 * of runtime values, a map, or nothing. An ONNX optional is its content, or
 * PLN_RUNTIME_ABSENT. */
typedef enum pln_runtime_value_kind {
  PLN_RUNTIME_NONE = 0, /* not computed; a zero-initialised value */
  PLN_RUNTIME_ABSENT,
  PLN_RUNTIME_TENSOR,
  PLN_RUNTIME_SEQUENCE,
  PLN_RUNTIME_TUPLE,
  PLN_RUNTIME_MAP, /* two elements: its keys and its values, two vectors */
  PLN_N_RUNTIME_VALUE_KINDS
} pln_runtime_value_kind;

/* Passed by value. A copy made without pln_runtime_value_copy is borrowed. */
typedef struct pln_runtime_value {
  uint32_t kind;   /* pln_runtime_value_kind */
  uint32_t number; /* internal */
  union {
    pln_tensor *tensor; /* PLN_RUNTIME_TENSOR */
    struct pln_ref_cell *cell;
    void *env; /* internal */
  } of;
} pln_runtime_value;

/* A new reference to the tensor; NULL gives PLN_RUNTIME_ABSENT. */
PLN_API pln_runtime_value pln_runtime_value_tensor(const pln_tensor *tensor);
/* A sequence of `n` values, which are copied. */
PLN_API pln_status pln_runtime_value_sequence(
    pln_engine *engine, uint32_t n, const pln_runtime_value *items,
    pln_runtime_value *out) PLN_CHECKED;
/* A map from keys (integers or strings) to values: two vectors of one length.
 * The map has them in the order of the keys. PLN_ERR_ARGUMENT: the shapes
 * differ, the keys have another dtype, or a key is there twice. */
PLN_API pln_status pln_runtime_value_map(pln_engine *engine,
                                         const pln_tensor *keys,
                                         const pln_tensor *values,
                                         pln_runtime_value *out) PLN_CHECKED;
/* The number of elements of a sequence or tuple (2 for maps, 0 for other
 * kinds), and one element, borrowed. */
PLN_API uint32_t pln_runtime_value_count(const pln_runtime_value *value);
PLN_API const pln_runtime_value *
pln_runtime_value_at(const pln_runtime_value *value, uint32_t i);
/* A new reference to the same value. */
PLN_API pln_runtime_value pln_runtime_value_copy(pln_runtime_value value);
/* Releases a reference and clears *value. Safe for any nesting depth. */
PLN_API void pln_runtime_value_release(pln_engine *engine,
                                       pln_runtime_value *value);

/* Evaluates a function on arguments or, with n_args 0, an expression whose free
 * nodes are all constant. GlobalVars are looked up in `module`, which may be
 * NULL. The caller owns the `n_results` results: one per field of the
 * function's result tuple, or 1.
 *
 * PLN_ERR_TYPE: an argument does not have its parameter's type; a symbolic dim
 * must have the same value in all arguments. PLN_ERR_UNSUPPORTED: names the
 * operator without a kernel, or with an undefined result. PLN_ERR_LIMIT: calls
 * are nested more than 100,000 deep. */
PLN_API pln_status pln_eval_run(const pln_module *module,
                                const pln_graph *function, uint32_t n_args,
                                const pln_runtime_value *args,
                                uint32_t n_results,
                                pln_runtime_value *results) PLN_CHECKED;
/* The same for tensors. A NULL argument is an omitted optional input. */
PLN_API pln_status pln_eval_tensors(const pln_module *module,
                                    const pln_graph *function, uint32_t n_args,
                                    const pln_tensor *const *args,
                                    uint32_t n_results,
                                    pln_tensor **results) PLN_CHECKED;

/* Sets a progress callback. `f` is called before each evaluated node with the
 * node's number in its function of `n_nodes`. It must not call the engine.
 * NULL: no callback. */
PLN_API void pln_eval_on_progress(pln_engine *engine,
                                  void (*f)(void *ud, uint32_t node,
                                            uint32_t n_nodes),
                                  void *ud);

/* Profiles: what each call of an operator in a run costs. `begin` counts from
 * when the profile was made. Multiply-accumulates are those of the operator's
 * definition: products of matrices, convolutions, attention, recurrent layers;
 * others have none. Operations are twice as many, or one for each element of an
 * operator that works element by element or reduces. Bytes are those of all
 * operands and results. */
typedef struct pln_profile pln_profile;
typedef struct pln_profile_row {
  const pln_graph *graph; /* borrowed: lives as long as the profile */
  pln_ref node;
  uint64_t begin, nanoseconds;
  uint64_t macs, flops, bytes;
} pln_profile_row;
PLN_API pln_status pln_profile_new(pln_engine *engine,
                                   pln_profile **out) PLN_CHECKED;
PLN_API void pln_profile_free(pln_profile *profile);
/* Runs append their rows to `profile`, until it is freed or another one is set.
 * NULL: none. */
PLN_API void pln_eval_set_profile(pln_engine *engine, pln_profile *profile);
/* The rows, in the order in which calls began; NULL past the end. */
PLN_API uint32_t pln_profile_count(const pln_profile *profile);
PLN_API const pln_profile_row *pln_profile_at(const pln_profile *profile,
                                              uint32_t i);

/* Sets the seed of random operators. Their values depend on the seed, on the
 * number of random operators evaluated earlier in the run, and on the element's
 * index, so repeated runs give equal results on one machine. An operator with
 * its own seed depends on that seed only. A new engine has seed 0. */
PLN_API void pln_engine_set_seed(pln_engine *engine, uint64_t seed);
PLN_API uint64_t pln_engine_seed(const pln_engine *engine);

/* The implementation of large matrix products: the built-in one, or OpenBLAS
 * (libopenblas.so.0, opened at run time at the first such product). Results
 * differ only by rounding. */
typedef enum pln_blas_choice {
  PLN_BLAS_AUTO = 0, /* OpenBLAS, if installed, on processors for which the
                      * built-in product has no fused multiply-add; on others
                      * the built-in product is as fast */
  PLN_BLAS_OWN,
  PLN_BLAS_OPENBLAS
} pln_blas_choice;
/* PLN_ERR_UNSUPPORTED when OpenBLAS cannot be opened; the previous choice then
 * stays. A new engine has PLN_BLAS_AUTO. */
PLN_API pln_status pln_blas_set_choice(pln_engine *engine,
                                       pln_blas_choice choice) PLN_CHECKED;
PLN_API pln_blas_choice pln_blas_get_choice(const pln_engine *engine);
/* Whether OpenBLAS was opened. */
PLN_API bool pln_blas_is_open(const pln_engine *engine);
/* "auto", "own", "openblas", and the reverse: PLN_ERR_NAME for any other
 * name. */
PLN_API const char *pln_blas_name(pln_blas_choice choice);
PLN_API pln_status pln_blas_find(pln_engine *engine, pln_slice name,
                                 pln_blas_choice *out) PLN_CHECKED;

/* Floats agree when |a - expected| <= absolute + relative * |expected|. NaN
 * agrees with NaN, an infinity with itself; the parts of complex numbers are
 * compared separately; other elements must be equal. `scaled`: `absolute` is
 * multiplied by the largest finite magnitude in the expected tensor, at least
 * 1. */
typedef struct pln_tolerance {
  double relative;
  double absolute;
  bool scaled;
} pln_tolerance;

typedef enum pln_difference_kind {
  PLN_NO_DIFFERENCE = 0,
  PLN_DIFFERENT_DTYPE,
  PLN_DIFFERENT_SHAPE,
  PLN_DIFFERENT_ELEMENTS
} pln_difference_kind;

typedef struct pln_difference {
  pln_difference_kind kind;
  size_t n_differ; /* number of elements that do not agree, */
  size_t first;    /* and the row-major index of the first */
  double largest;  /* largest |a - expected| over all elements; 0 for strings
                    * and where neither is a number */
} pln_difference;

/* Compares a tensor with the expected one. `tolerance` NULL: exact. */
PLN_API pln_status pln_tensor_compare(const pln_tensor *tensor,
                                      const pln_tensor *expected,
                                      const pln_tolerance *tolerance,
                                      pln_difference *out) PLN_CHECKED;
/* Formats one element for people ("0.25", "true", "'text'"), truncated to
 * `size` bytes with the terminator; 128 are enough. PLN_ERR_ARGUMENT past the
 * end. */
PLN_API pln_status pln_tensor_element_text(const pln_tensor *tensor,
                                           size_t index, char *text,
                                           size_t size) PLN_CHECKED;

/* Generated inputs for comparing two functions. One in eight elements is one of
 * a few values that often reveal errors; the others are uniform over a
 * range. */
typedef enum pln_generator_kind {
  PLN_GENERATE_ORDINARY = 0, /* floats from -2 to 2, 4, -0; integers -2 to 1 */
  PLN_GENERATE_SMALL,   /* floats from -1 to 1, integers 0 and 1: indices */
  PLN_GENERATE_SPECIAL, /* NaN, infinities, 1e9, 1e-40 among floats from -10
                         to 10, the ends of the dtype among integers from
                         -8 to 7 */
  PLN_N_GENERATOR_KINDS
} pln_generator_kind;

/* Any dtype. Equal seeds give equal tensors on every machine. */
PLN_API pln_status pln_tensor_generate(pln_engine *engine, pln_dtype dtype,
                                       uint32_t rank, const int64_t *dims,
                                       pln_generator_kind kind, uint64_t seed,
                                       pln_tensor **out) PLN_CHECKED;

/* NumPy's .npy files (numpy.lib.format, reads versions 1.0 to 3.0, writes 1.0),
 * row-major or column-major, little- or big-endian: floats of 16 bits and more,
 * complex numbers, integers of 8 bits and more, bool. _load maps the file,
 * which must not be changed in place while the tensor lives; _parse copies the
 * bytes, and `name` (may be NULL) is for messages. PLN_ERR_UNSUPPORTED for
 * other element types. */
PLN_API pln_status pln_npy_load(pln_engine *engine, const char *path,
                                pln_tensor **out) PLN_CHECKED;
PLN_API pln_status pln_npy_parse(pln_engine *engine, pln_slice bytes,
                                 const char *name,
                                 pln_tensor **out) PLN_CHECKED;
/* Writes the file atomically (a temporary file, renamed). */
PLN_API pln_status pln_npy_save(const pln_tensor *tensor,
                                const char *path) PLN_CHECKED;
/* The same bytes, passed to `write` piece by piece. */
PLN_API pln_status pln_npy_write(const pln_tensor *tensor, pln_write_fn write,
                                 void *ud) PLN_CHECKED;

/* --------------------------------------------------------------- loop level */

/* A PrimFunc translated for the interpreter of loops. Any form of TIR runs:
 * with realised buffers, blocks, or flat memory, vectors and threads. Loops of
 * all kinds run serially; so do threads, as long as none waits for another.
 *
 * Integers wrap at the width of their dtype. Floats of 16 bits and less are
 * computed in float32 and rounded after each operation. A Select, And or Or
 * with a scalar condition evaluates an operand that may fail only if it is
 * needed. An access outside of its buffer or memory, a division by zero, a
 * failed assertion and, unless `zero_memory`, an element that is read before it
 * was written end the run with PLN_ERR_ARGUMENT and the statement. */
typedef struct pln_loop_program pln_loop_program;

enum { PLN_LOOP_MAX_ARGS = 32 };

/* An argument or result of a function of the host: `number` for floats,
 * `integer` for other dtypes. */
typedef struct pln_loop_scalar {
  pln_dtype dtype;
  union {
    int64_t integer;
    double number;
  } of;
} pln_loop_scalar;

/* Options. All zero: the default. */
typedef struct pln_loop_options {
  bool zero_memory; /* allocated memory is zero, and may be read */
  /* Functions of the host, for call_extern and call_packed with scalars; both
   * or none. `knows` is asked when the program is made, `call` sets *result,
   * whose dtype is set. */
  bool (*knows)(void *ud, pln_slice name);
  pln_status (*call)(void *ud, pln_slice name, uint32_t n,
                     const pln_loop_scalar *args, pln_loop_scalar *result);
  void *call_ud;
} pln_loop_options;

/* Makes a program of a sealed graph whose root is a PrimFunc, which it retains.
 * `options` (may be NULL) are those of its runs. PLN_ERR_UNSUPPORTED: names
 * what is not interpreted. Free accepts NULL. */
PLN_API pln_status pln_loop_program_new(const pln_graph *function,
                                        const pln_loop_options *options,
                                        pln_loop_program **out) PLN_CHECKED;
PLN_API void pln_loop_program_free(pln_loop_program *program);
/* Number of parameters; of results: the parameters that are buffers. */
PLN_API uint32_t pln_loop_n_params(const pln_loop_program *program);
PLN_API uint32_t pln_loop_n_results(const pln_loop_program *program);
/* The dtype of a parameter: of the elements of a buffer. */
PLN_API pln_dtype pln_loop_param_dtype(const pln_loop_program *program,
                                       uint32_t param);
/* Runs the program. Arguments are tensors: of a scalar parameter with one
 * element. Variables in the shapes of buffers get the dims of the arguments,
 * which must agree; strides are compact. The caller owns the results: for each
 * buffer what it is after the run, the argument itself if it was not written;
 * arguments do not change. PLN_ERR_TYPE: an argument has another dtype, rank or
 * shape. */
PLN_API pln_status pln_loop_run_program(const pln_loop_program *program,
                                        const pln_loop_options *options,
                                        uint32_t n_args,
                                        const pln_tensor *const *args,
                                        pln_tensor **results) PLN_CHECKED;

/* ------------------------------------------------------------------- ONNX */

/* Reads a model (https://onnx.ai, IR versions 3 to 13, opsets 7 to 23).
 * The file is mapped and must not be changed in place while objects made from
 * it live. The main graph becomes @main, local functions "domain::name". */
PLN_API pln_status pln_onnx_load(pln_engine *engine, const char *path,
                                 pln_module **out) PLN_CHECKED;
/* The same from memory, which is copied. `directory` is where external data may
 * be found, or NULL. */
PLN_API pln_status pln_onnx_parse(pln_engine *engine, pln_slice bytes,
                                  const char *directory,
                                  pln_module **out) PLN_CHECKED;

/* Which value_info entries to add: types of values that are neither inputs nor
 * outputs. Entries read from a file are kept while they hold: they are removed
 * with their values and follow changes of type. */
typedef enum pln_value_info {
  PLN_VALUE_INFO_AUTO = 0, /* in graphs that had entries and changed */
  PLN_VALUE_INFO_ALL,      /* in all graphs: every known type */
  PLN_VALUE_INFO_NONE
} pln_value_info;

typedef struct pln_onnx_save_options {
  bool external_data;        /* store weights in PATH.data even below 2 GB */
  size_t external_threshold; /* only tensors of at least so many bytes; 0 means
                              * 1,024 */
  int64_t opset; /* opset of ai.onnx to convert the model to; 0: its own */
  pln_value_info value_info;
  bool embed_data; /* move external data into the model, up to 2 GB */
} pln_onnx_save_options;

/* The range of supported opsets of ai.onnx. */
PLN_API void pln_onnx_opset_range(int32_t *oldest, int32_t *newest);
/* Converts the model to another supported opset of ai.onnx, newer or older.
 * Operators that the opset defines differently or lacks are expressed by
 * operators that it has. Calls that both opsets define alike are shared with
 * *out. PLN_ERR_UNSUPPORTED, with the operator and the opset that it needs,
 * when there is no conversion; PLN_ERR_ARGUMENT when the opset is not
 * supported. */
PLN_API pln_status pln_onnx_convert_opset(const pln_module *module,
                                          int64_t opset,
                                          pln_module **out) PLN_CHECKED;

/* Writes the file atomically (a temporary file, renamed). `options` may be
 * NULL. An operator that the model's opset lacks is written as its ONNX
 * function body, or refused with PLN_ERR_UNSUPPORTED. */
PLN_API pln_status pln_onnx_save(const pln_module *module, const char *path,
                                 const pln_onnx_save_options *options)
    PLN_CHECKED;
/* Writes the model to `write` piece by piece. External data stays external
 * unless `options` (may be NULL) embeds it. PLN_ERR_LIMIT when a model with
 * embedded data exceeds 2 GB. */
PLN_API pln_status pln_onnx_write(const pln_module *module,
                                  const pln_onnx_save_options *options,
                                  pln_write_fn write, void *ud) PLN_CHECKED;

/* Reads a file that holds one value, such as the test data of the ONNX node
 * tests: a TensorProto when `type` is a tensor type or 0, a SequenceProto for a
 * sequence, a MapProto for a map, an OptionalProto for an optional. The value's
 * own type may differ in dtype or shape. *name (may be NULL) is its name in the
 * file. */
PLN_API pln_status pln_onnx_load_value(pln_engine *engine, const char *path,
                                       pln_type type, pln_runtime_value *out,
                                       pln_symbol *name) PLN_CHECKED;

/* Writes such a file atomically: an OptionalProto when `type` is an optional,
 * else the form of the value itself. `name` may be empty. */
PLN_API pln_status pln_onnx_save_value(pln_engine *engine,
                                       const pln_runtime_value *value,
                                       pln_type type, pln_slice name,
                                       const char *path) PLN_CHECKED;

/* The default value of a model input: the initializer of that name in the file
 * that the module was read from. *out is NULL when there is none. */
PLN_API pln_status pln_onnx_input_default(const pln_module *module,
                                          pln_slice input,
                                          pln_tensor **out) PLN_CHECKED;

/* Statistics of a model file: the number of nodes including subgraphs but not
 * local functions, the number of these that are neither Constant nor
 * ConstantOfShape, operator counts by name ("Conv", "domain::Type"), and the
 * names of its external data files. */
typedef struct pln_onnx_operator {
  pln_symbol name;
  uint64_t count;
} pln_onnx_operator;

typedef struct pln_onnx_model_stats {
  uint64_t nodes;
  uint64_t compute_nodes;
  uint32_t n_operators, n_files;
  pln_onnx_operator *operators;
  pln_symbol *files;
} pln_onnx_model_stats;

/* Scans the file once without reading weights. */
PLN_API pln_status pln_onnx_stats(pln_engine *engine, const char *path,
                                  pln_onnx_model_stats *out) PLN_CHECKED;
/* The same for a model in memory. */
PLN_API pln_status pln_onnx_stats_bytes(pln_engine *engine, pln_slice bytes,
                                        pln_onnx_model_stats *out) PLN_CHECKED;
PLN_API void pln_onnx_model_stats_free(pln_engine *engine,
                                       pln_onnx_model_stats *counts);

#ifdef __cplusplus
}
#endif

#endif
