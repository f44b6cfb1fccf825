/* perilune/run.h: the evaluator, files of tensors, ONNX models.
 * Part of perilune.h, which is what users include. */

#ifndef PERILUNE_RUN_H
#define PERILUNE_RUN_H

#include "perilune/pass.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- evaluator */

/* A datum is what evaluation takes and gives: a tensor, a sequence of data, or
 * nothing. An ONNX optional is what it has, or PLN_RUNTIME_ABSENT. */
typedef enum pln_runtime_value_kind {
  PLN_RUNTIME_NONE = 0, /* not computed; what a zeroed datum is */
  PLN_RUNTIME_ABSENT,
  PLN_RUNTIME_TENSOR,
  PLN_RUNTIME_SEQUENCE,
  PLN_RUNTIME_TUPLE,
  PLN_N_RUNTIME_VALUE_KINDS
} pln_runtime_value_kind;

/* By value; a copy without pln_runtime_value_copy is borrowed. */
typedef struct pln_runtime_value {
  uint32_t kind;   /* pln_runtime_value_kind */
  uint32_t number; /* internal */
  union {
    pln_tensor *tensor; /* PLN_RUNTIME_TENSOR */
    struct pln_ref_cell *cell;
    struct pln_activation *env;
  } of;
} pln_runtime_value;

/* A new reference to the tensor; NULL gives PLN_RUNTIME_ABSENT. */
PLN_API pln_runtime_value pln_runtime_value_tensor(const pln_tensor *tensor);
/* A sequence of `n` data, which are copied. */
PLN_API pln_status pln_runtime_value_sequence(
    pln_engine *engine, uint32_t n, const pln_runtime_value *items,
    pln_runtime_value *out) PLN_CHECKED;
/* How many data a sequence or tuple has (0 for others), and one of them,
 * borrowed. */
PLN_API uint32_t pln_runtime_value_count(const pln_runtime_value *value);
PLN_API const pln_runtime_value *
pln_runtime_value_at(const pln_runtime_value *value, uint32_t i);
/* Another reference to the same. */
PLN_API pln_runtime_value pln_runtime_value_copy(pln_runtime_value value);
/* Gives up a reference and clears *datum. Nesting of any depth. */
PLN_API void pln_runtime_value_release(pln_engine *engine,
                                       pln_runtime_value *value);

/* Computes a function on arguments, or (n_args 0) an expression whose free
 * nodes are all constant. GlobalVars are looked up in `module`, which may be
 * NULL. The caller owns the `n_results` results: as many as the function's
 * result has fields, or 1. PLN_ERR_TYPE when an argument has not its
 * parameter's type, a symbolic extent standing for one number in all of them;
 * PLN_ERR_UNSUPPORTED names the operator that has no kernel, or whose result is
 * not defined; PLN_ERR_LIMIT when calls are nested more than 100,000 deep. */
PLN_API pln_status pln_eval_run(const pln_module *module,
                                const pln_graph *function, uint32_t n_args,
                                const pln_runtime_value *args,
                                uint32_t n_results,
                                pln_runtime_value *results) PLN_CHECKED;
/* The same for tensors; NULL is left out. */
PLN_API pln_status pln_eval_tensors(const pln_module *module,
                                    const pln_graph *function, uint32_t n_args,
                                    const pln_tensor *const *args,
                                    uint32_t n_results,
                                    pln_tensor **results) PLN_CHECKED;

/* `f` is called before each node that an evaluation computes, for those who
 * show how far it is: the node's number in its function of `n_nodes`. It must
 * not call the engine. NULL: nobody is told. */
PLN_API void pln_eval_on_progress(pln_engine *engine,
                                  void (*f)(void *ud, uint32_t node,
                                            uint32_t n_nodes),
                                  void *ud);

/* What random operators draw from. Their values follow from this seed, from how
 * many random operators the run has computed before, and from the place of an
 * element: a run repeated gives the same, on one machine. Those with a seed of
 * their own follow from that one alone. A new engine begins with 0. */
PLN_API void pln_engine_set_seed(pln_engine *engine, uint64_t seed);
PLN_API uint64_t pln_engine_seed(const pln_engine *engine);

/* What large products of matrices are computed with: our own product, or
 * OpenBLAS (libopenblas.so.0, opened at run time at the first such product).
 * The sums are the same but for rounding. */
typedef enum pln_blas_choice {
  PLN_BLAS_AUTO = 0, /* OpenBLAS, if it is there, on processors for which our
                        own has no fused multiply-add; elsewhere it is no
                        slower */
  PLN_BLAS_OWN,
  PLN_BLAS_OPENBLAS
} pln_blas_choice;
/* PLN_ERR_UNSUPPORTED when OpenBLAS is chosen and cannot be opened; then the
 * former choice holds. A new engine has PLN_BLAS_AUTO. */
PLN_API pln_status pln_blas_set_choice(pln_engine *engine,
                                       pln_blas_choice choice) PLN_CHECKED;
PLN_API pln_blas_choice pln_blas_get_choice(const pln_engine *engine);
/* Whether OpenBLAS was opened. */
PLN_API bool pln_blas_is_open(const pln_engine *engine);
/* "auto", "own", "openblas", and back: PLN_ERR_NAME for any other name. */
PLN_API const char *pln_blas_name(pln_blas_choice choice);
PLN_API pln_status pln_blas_find(pln_engine *engine, pln_slice name,
                                 pln_blas_choice *out) PLN_CHECKED;

/* Floats agree when |a - expected| <= absolute + relative * |expected|, NaN
 * agrees with NaN, an infinity with itself, the parts of a complex number each
 * on its own; other elements when they are equal. `scaled`: `absolute` counts
 * as often as the largest finite magnitude of what is expected, at least once.
 */
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
  size_t n_differ; /* elements that do not agree, */
  size_t first;    /* and the first of them in row-major order */
  double largest;  /* the largest |a - expected|, of elements that agree too;
                      0 for strings and where neither is a number */
} pln_difference;

/* How a tensor differs from what is expected. `tolerance` NULL: not at all. */
PLN_API pln_status pln_tensor_compare(const pln_tensor *tensor,
                                      const pln_tensor *expected,
                                      const pln_tolerance *tolerance,
                                      pln_difference *out) PLN_CHECKED;
/* One element as people read it ("0.25", "true", "'text'"), cut to `size` bytes
 * with the terminator; 128 are enough. PLN_ERR_ARGUMENT past the end. */
PLN_API pln_status pln_tensor_element_text(const pln_tensor *tensor,
                                           size_t index, char *text,
                                           size_t size) PLN_CHECKED;

/* Made-up arguments for comparing two functions. One in eight elements is drawn
 * from few that find mistakes, the others evenly from a range. */
typedef enum pln_generator_kind {
  PLN_GENERATE_ORDINARY = 0, /* floats from -2 to 2, 4, -0; integers -2 to 1 */
  PLN_GENERATE_SMALL,   /* floats from -1 to 1, integers 0 and 1: indices */
  PLN_GENERATE_SPECIAL, /* NaN, infinities, 1e9, 1e-40 among floats from -10
                         to 10, the ends of the dtype among integers from
                         -8 to 7 */
  PLN_N_GENERATOR_KINDS
} pln_generator_kind;

/* Of any dtype; of one seed the same on every machine. */
PLN_API pln_status pln_tensor_generate(pln_engine *engine, pln_dtype dtype,
                                       uint32_t rank, const int64_t *dims,
                                       pln_generator_kind kind, uint64_t seed,
                                       pln_tensor **out) PLN_CHECKED;

/* Files .npy of NumPy (numpy.lib.format, versions 1.0 to 3.0; written: 1.0), in
 * row-major or column-major order, little- or big-endian: floats of 16 bits and
 * more, complex numbers, integers of 8 bits and more, bool. The file is mapped
 * and must not be changed in place while the tensor lives; _parse copies the
 * bytes, `name` (may be NULL) is for messages. PLN_ERR_UNSUPPORTED for other
 * element types. */
PLN_API pln_status pln_npy_load(pln_engine *engine, const char *path,
                                pln_tensor **out) PLN_CHECKED;
PLN_API pln_status pln_npy_parse(pln_engine *engine, pln_slice bytes,
                                 const char *name,
                                 pln_tensor **out) PLN_CHECKED;
/* Writes beside `path` and renames. */
PLN_API pln_status pln_npy_save(const pln_tensor *tensor,
                                const char *path) PLN_CHECKED;
/* The same bytes, handed to `write` piece by piece. */
PLN_API pln_status pln_npy_write(const pln_tensor *tensor, pln_write_fn write,
                                 void *ud) PLN_CHECKED;

/* ------------------------------------------------------------------- ONNX */

/* Reads a model (https://onnx.ai, IR versions 3 to 13, opsets 7 to 23).
 * The file is mapped and must not be changed in place while objects made from
 * it live. The main graph becomes @main, local functions "domain::name". */
PLN_API pln_status pln_onnx_load(pln_engine *engine, const char *path,
                                 pln_module **out) PLN_CHECKED;
/* The same from memory, which is copied. `directory` is where external data
 * may lie, or NULL. */
PLN_API pln_status pln_onnx_parse(pln_engine *engine, pln_slice bytes,
                                  const char *directory,
                                  pln_module **out) PLN_CHECKED;

/* Entries of value_info that no file had: types of values that are neither
 * inputs nor outputs. Those that a file had are kept while they are true: they
 * go with their values, and change with their types. */
typedef enum pln_value_info {
  PLN_VALUE_INFO_AUTO = 0, /* in graphs that had any and changed */
  PLN_VALUE_INFO_ALL,      /* in all graphs: whatever is known */
  PLN_VALUE_INFO_NONE
} pln_value_info;

typedef struct pln_onnx_save_options {
  bool external_data;        /* weights to PATH.data even below 2 GB */
  size_t external_threshold; /* only tensors of at least so many bytes; 0:
                                1,024 */
  int64_t opset; /* of ai.onnx, to which the model is converted first; 0: its
                    own */
  pln_value_info value_info;
  bool embed_data; /* data that lies in other files goes into the model, as
                      far as 2 GB hold it */
} pln_onnx_save_options;

/* The opsets of ai.onnx whose operators are known, version by version. */
PLN_API void pln_onnx_opset_range(int32_t *oldest, int32_t *newest);
/* The model in another opset of ai.onnx of that range, newer or older:
 * operators that it has otherwise or not at all are said by those that it has.
 * Of *out, the calls that both opsets have alike are the same.
 * PLN_ERR_UNSUPPORTED with the operator and the opset that it needs when that
 * cannot be; PLN_ERR_ARGUMENT when there is no such opset. */
PLN_API pln_status pln_onnx_convert_opset(const pln_module *module,
                                          int64_t opset,
                                          pln_module **out) PLN_CHECKED;

/* Writes beside `path` and renames. `options` may be NULL. An operator that the
 * model's opset does not have is written as those of which ONNX makes it, or
 * refused with PLN_ERR_UNSUPPORTED. */
PLN_API pln_status pln_onnx_save(const pln_module *module, const char *path,
                                 const pln_onnx_save_options *options)
    PLN_CHECKED;
/* The model as one run of bytes, handed to `write` piece by piece; external
 * data stays where it is unless `options`, which may be NULL, embed it.
 * PLN_ERR_LIMIT when a model with embedded data is over 2 GB. */
PLN_API pln_status pln_onnx_write(const pln_module *module,
                                  const pln_onnx_save_options *options,
                                  pln_write_fn write, void *ud) PLN_CHECKED;

/* Reads a file that holds one value, such as those of the node tests of ONNX:
 * a TensorProto when `type` is a tensor type or 0, a SequenceProto when it is a
 * sequence, an OptionalProto when it is an optional. The value may have another
 * type in detail. *name (may be NULL) is what the file calls it. */
PLN_API pln_status pln_onnx_load_value(pln_engine *engine, const char *path,
                                       pln_type type, pln_runtime_value *out,
                                       pln_symbol *name) PLN_CHECKED;

/* Writes such a file, beside `path` and renamed: an OptionalProto when `type`
 * is an optional, else as what the datum is. `name` may be empty. */
PLN_API pln_status pln_onnx_save_value(pln_engine *engine,
                                       const pln_runtime_value *value,
                                       pln_type type, pln_slice name,
                                       const char *path) PLN_CHECKED;

/* The value that an input of the model has when nothing is given: an
 * initializer of that name in the file that the module was read from. *out is
 * NULL when there is none. */
PLN_API pln_status pln_onnx_input_default(const pln_module *module,
                                          pln_slice input,
                                          pln_tensor **out) PLN_CHECKED;

/* What a model file holds: its nodes with those of subgraphs (local functions
 * are not counted), how many of them are no Constant and no ConstantOfShape,
 * operators by name ("Conv", "domain::Type"), and the files of its external
 * data as it names them. */
typedef struct pln_onnx_operator {
  pln_symbol name;
  uint64_t count;
} pln_onnx_operator;

typedef struct pln_onnx_model_stats {
  uint64_t nodes;
  uint64_t compute_nodes;
  uint32_t n_operators, cap_operators;
  uint32_t n_files, cap_files;
  pln_onnx_operator *operators;
  pln_symbol *files;
} pln_onnx_model_stats;

/* Walks the file once and reads no weights. */
PLN_API pln_status pln_onnx_stats(pln_engine *engine, const char *path,
                                  pln_onnx_model_stats *out) PLN_CHECKED;
/* The same of the bytes of a model. */
PLN_API pln_status pln_onnx_stats_bytes(pln_engine *engine, pln_slice bytes,
                                        pln_onnx_model_stats *out) PLN_CHECKED;
PLN_API void pln_onnx_model_stats_free(pln_engine *engine,
                                       pln_onnx_model_stats *counts);

#ifdef __cplusplus
}
#endif

#endif
