/* perilune.h: the public interface of perilune, a small native engine that
 * optimises tensor programs.
 *
 * Reading order: engine, diagnostics, dtypes and tensors, types and dims,
 * attributes, operators, graphs, builder, rewriting, modules, passes, ONNX.
 *
 * Conventions
 *   - Functions that can fail return pln_status; results come last, through
 *     pointers, and are written on PLN_OK only. The reason of a failure is a
 *     diagnostic in the engine (pln_diag_*).
 *   - Objects named in a parameter are borrowed unless the comment says
 *     "takes". Objects given out through `pln_x **out` are owned by the caller
 *     and released with pln_x_release. Pointers returned directly are borrowed
 *     and live as long as the object they came from.
 *   - Ids (pln_symbol, pln_type, pln_attrs, pln_value) are interned in the
 *     engine: equal ids are equal things; 0 is "none"; they live as long as
 *     the engine. Strings are pln_slice: counted, not terminated, unless the
 *     type is `const char *`.
 *   - An engine and all its objects belong to one thread at a time.
 */

#ifndef PERILUNE_H
#define PERILUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PLN_API __attribute__((visibility("default")))
#define PLN_CHECKED __attribute__((warn_unused_result))
#define PLN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define PLN_API
#define PLN_CHECKED
#define PLN_PRINTF(f, a)
#endif

/* "0.1.0": the version of the library that is running. Static. */
PLN_API const char *pln_version(void);

/* ------------------------------------------------------------------ status */

typedef enum pln_status {
  PLN_OK = 0,
  PLN_ERR_NOMEM,       /* an allocation failed */
  PLN_ERR_ARGUMENT,    /* the caller's mistake: range, kind, foreign object */
  PLN_ERR_TYPE,        /* ill-typed or ill-scoped program */
  PLN_ERR_FORMAT,      /* a file or text is malformed */
  PLN_ERR_IO,          /* the operating system refused */
  PLN_ERR_UNSUPPORTED, /* well-formed, but nothing here can do it */
  PLN_ERR_LIMIT,       /* a limit of the engine or of the run was reached */
  PLN_ERR_NAME,        /* unknown pass, config key, option, operator */
  PLN_ERR_INVALID,     /* the verifier found broken IR */
  PLN_ERR_CALLBACK,    /* a callback (a Lua function) raised */
  PLN_ERR_INTERRUPTED, /* pln_engine_interrupt was called */
  PLN_N_STATUS
} pln_status;

/* "out of memory", "malformed input", ...: static. */
PLN_API const char *pln_status_text(pln_status status);

/* A counted run of bytes; not terminated. */
typedef struct pln_slice {
  const char *data;
  size_t size;
} pln_slice;

/* A terminated string as a slice; NULL gives an empty one. */
PLN_API pln_slice pln_text(const char *s);

/* ------------------------------------------------------------------ engine */

typedef struct pln_engine pln_engine;

/* Lua's allocator protocol (lua_Alloc): nsize 0 frees; ptr NULL allocates and
 * osize then says nothing; may return NULL when nsize > osize. */
typedef void *(*pln_alloc_fn)(void *ud, void *ptr, size_t osize, size_t nsize);

/* Makes an engine with its own tables. `alloc` NULL means the C library's.
 * NULL when memory is out. */
PLN_API pln_engine *pln_engine_new(pln_alloc_fn alloc, void *ud);

/* Frees the engine. Every object made in it must have been released. */
PLN_API void pln_engine_free(pln_engine *engine);

/* Bytes allocated now, and the most there ever were. */
PLN_API size_t pln_engine_memory(const pln_engine *engine, size_t *peak);

/* How often memory was asked for since the engine was made. */
PLN_API uint64_t pln_engine_allocations(const pln_engine *engine);

/* Stops the pass or the evaluation that the engine is at: it fails with
 * PLN_ERR_INTERRUPTED, and nothing has happened. Nothing else may be done by a
 * signal handler or by another thread. It ends with what it stops. */
PLN_API void pln_engine_interrupt(pln_engine *engine);
/* Called, with `ud`, right after an interruption was asked for: from a signal
 * handler, perhaps. NULL: nothing. */
PLN_API void pln_engine_on_interrupt(pln_engine *engine, void (*f)(void *ud),
                                     void *ud);
/* Whether one was asked for and has not ended yet. */
PLN_API bool pln_engine_interrupted(const pln_engine *engine);

/* Interned strings. pln_symbol_text is terminated as well. */
typedef uint32_t pln_symbol;
PLN_API pln_status pln_symbol_intern(pln_engine *engine, pln_slice text,
                                     pln_symbol *out) PLN_CHECKED;
PLN_API pln_slice pln_symbol_text(const pln_engine *engine, pln_symbol symbol);

/* ------------------------------------------------------------- diagnostics */

typedef enum pln_severity { PLN_NOTE = 0, PLN_WARNING, PLN_ERROR } pln_severity;

/* Where something is said to be: a file or text, and a place in it. */
typedef struct pln_span {
  const char *source;  /* name of the file or text, or NULL */
  const char *line;    /* the whole line for the caret, or NULL */
  uint32_t row;        /* from 1; 0: unknown */
  uint32_t column;     /* from 1, in bytes; 0: unknown */
  uint32_t end_column; /* one past the end; 0: one character */
} pln_span;

typedef struct pln_diag {
  pln_severity severity;
  pln_status code;
  const char *message; /* one sentence, no full stop */
  pln_span span;
} pln_diag;

/* The diagnostics reported since the last clear, oldest first. A failed
 * function leaves at least one of severity PLN_ERROR (out of memory too). */
PLN_API size_t pln_diag_count(const pln_engine *engine);
PLN_API const pln_diag *pln_diag_get(const pln_engine *engine, size_t index);
PLN_API void pln_diag_clear(pln_engine *engine);

/* Reports one; the texts are copied. Returns `code`, so that
 * `return pln_diag_error(...)` reads well. `span` may be NULL. */
PLN_API pln_status pln_diag_error(pln_engine *engine, pln_status code,
                                  const pln_span *span, const char *format, ...)
    PLN_PRINTF(4, 5);
PLN_API void pln_diag_warn(pln_engine *engine, const pln_span *span,
                           const char *format, ...) PLN_PRINTF(3, 4);

/* Text as a compiler prints it ("file:row:column: error: message", then the
 * line and a caret). Returns its length without the terminator; writes at
 * most `size` bytes with it (snprintf's protocol). */
PLN_API size_t pln_diag_format(const pln_diag *diag, char *text, size_t size);

/* -------------------------------------------------------- dtypes, tensors */

/* One row a dtype: X(NAME, number, Relay's name, bits of a stored element).
 * The numbers are those of ONNX's TensorProto.DataType. Elements of 4 and 2
 * bits are packed, low bits first; a string is a pln_slice. */
#define PLN_DTYPES(X)                          \
  X(FLOAT32, 1, "float32", 32)                 \
  X(UINT8, 2, "uint8", 8)                      \
  X(INT8, 3, "int8", 8)                        \
  X(UINT16, 4, "uint16", 16)                   \
  X(INT16, 5, "int16", 16)                     \
  X(INT32, 6, "int32", 32)                     \
  X(INT64, 7, "int64", 64)                     \
  X(STRING, 8, "string", 128)                  \
  X(BOOL, 9, "bool", 8)                        \
  X(FLOAT16, 10, "float16", 16)                \
  X(FLOAT64, 11, "float64", 64)                \
  X(UINT32, 12, "uint32", 32)                  \
  X(UINT64, 13, "uint64", 64)                  \
  X(COMPLEX64, 14, "complex64", 64)            \
  X(COMPLEX128, 15, "complex128", 128)         \
  X(BFLOAT16, 16, "bfloat16", 16)              \
  X(FLOAT8_E4M3FN, 17, "float8_e4m3fn", 8)     \
  X(FLOAT8_E4M3FNUZ, 18, "float8_e4m3fnuz", 8) \
  X(FLOAT8_E5M2, 19, "float8_e5m2", 8)         \
  X(FLOAT8_E5M2FNUZ, 20, "float8_e5m2fnuz", 8) \
  X(UINT4, 21, "uint4", 4)                     \
  X(INT4, 22, "int4", 4)                       \
  X(FLOAT4_E2M1FN, 23, "float4_e2m1fn", 4)     \
  X(FLOAT8_E8M0FNU, 24, "float8_e8m0fnu", 8)   \
  X(UINT2, 25, "uint2", 2)                     \
  X(INT2, 26, "int2", 2)

typedef enum pln_dtype {
  PLN_DTYPE_NONE = 0, /* not known */
#define PLN_ROW(NAME, number, text, bits) PLN_##NAME = number,
  PLN_DTYPES(PLN_ROW)
#undef PLN_ROW
      PLN_N_DTYPES
} pln_dtype;

/* "float32"; "?" for none. Static. */
PLN_API const char *pln_dtype_name(pln_dtype dtype);
/* PLN_DTYPE_NONE when there is no dtype of that name. */
PLN_API pln_dtype pln_dtype_find(pln_slice name);
/* The same with lanes behind the name, "float32x4": *lanes, else 1. */
PLN_API pln_dtype pln_dtype_find_vector(pln_slice name, uint32_t *lanes);
/* Bits of one element as stored. */
PLN_API uint32_t pln_dtype_bits(pln_dtype dtype);

/* A dense array of elements in row-major order, little-endian. Reference
 * counted; immutable once a second reference exists. A splat holds one element
 * that stands for all. A view reads a mapped file and pins it. */
typedef struct pln_tensor pln_tensor;

/* A new tensor, zeroed, 64-byte aligned. Dims are >= 0; rank 0 is a scalar.
 * PLN_ERR_ARGUMENT when the size overflows. */
PLN_API pln_status pln_tensor_new(pln_engine *engine, pln_dtype dtype,
                                  uint32_t rank, const int64_t *dims,
                                  pln_tensor **out) PLN_CHECKED;
/* The same, filled from `size` bytes (strings: an array of pln_slice, whose
 * text is copied). PLN_ERR_ARGUMENT when `size` is not what dims ask for. */
PLN_API pln_status pln_tensor_from(pln_engine *engine, pln_dtype dtype,
                                   uint32_t rank, const int64_t *dims,
                                   const void *data, size_t size,
                                   pln_tensor **out) PLN_CHECKED;
/* All elements equal `*element` (one stored element; not for packed dtypes
 * and strings). */
PLN_API pln_status pln_tensor_splat(pln_engine *engine, pln_dtype dtype,
                                    uint32_t rank, const int64_t *dims,
                                    const void *element,
                                    pln_tensor **out) PLN_CHECKED;
/* What random elements are drawn from. UNIFORM: any number from `low` to
 * `high`, of integers both included; NORMAL: bell-shaped of that mean and
 * standard deviation, nowhere more than 3.5 deviations off, integers rounded.
 * Integers are kept within their dtype. */
typedef enum pln_noise_kind {
  PLN_NOISE_UNIFORM = 0,
  PLN_NOISE_NORMAL
} pln_noise_kind;

typedef struct pln_noise {
  pln_noise_kind kind;
  double low, high;       /* UNIFORM */
  double mean, deviation; /* NORMAL */
  uint64_t seed;
} pln_noise;

/* Random elements: of one seed the same on every machine. Integers, bool and
 * floats of 16 bits and more (else PLN_ERR_UNSUPPORTED). PLN_ERR_ARGUMENT when
 * the noise has no such numbers. */
PLN_API pln_status pln_tensor_random(pln_engine *engine, pln_dtype dtype,
                                     uint32_t rank, const int64_t *dims,
                                     const pln_noise *noise,
                                     pln_tensor **out) PLN_CHECKED;
PLN_API pln_tensor *pln_tensor_retain(const pln_tensor *tensor);
PLN_API void pln_tensor_release(pln_tensor *tensor);
PLN_API pln_dtype pln_tensor_dtype(const pln_tensor *tensor);
PLN_API uint32_t pln_tensor_rank(const pln_tensor *tensor);
PLN_API const int64_t *pln_tensor_dims(const pln_tensor *tensor);
/* Number of elements; bytes of them all (of a splat: as if written out). */
PLN_API size_t pln_tensor_count(const pln_tensor *tensor);
PLN_API size_t pln_tensor_bytes(const pln_tensor *tensor);
PLN_API bool pln_tensor_is_splat(const pln_tensor *tensor);
/* The elements (of a splat: the one). Opens an external file on first use;
 * PLN_ERR_IO with a diagnostic when that fails. Unaligned when a view. */
PLN_API pln_status pln_tensor_data(const pln_tensor *tensor,
                                   const void **out) PLN_CHECKED;
/* Writable elements of a tensor made by pln_tensor_new that has one
 * reference; else NULL. */
PLN_API void *pln_tensor_writable(pln_tensor *tensor);
/* Same dtype, dims and bytes; floats are compared as bits. Tensors over 1 KiB
 * are equal only when they are the same buffer or file slice. */
PLN_API bool pln_tensor_equal(const pln_tensor *a, const pln_tensor *b);

/* ----------------------------------------------------------- types, dims */

/* An extent or an integer known only by name: a constant (possibly negative
 * in shape arithmetic), PLN_DIM_UNKNOWN, or an interned expression over named
 * symbols in normal form, so that equal expressions are equal numbers. */
typedef int64_t pln_dim;
#define PLN_DIM_UNKNOWN INT64_MIN
#define PLN_DIM_IS_CONST(d) ((d) > INT64_MIN + (int64_t)UINT32_MAX)

typedef enum pln_dim_op {
  PLN_DIM_ADD,
  PLN_DIM_SUB,
  PLN_DIM_MUL,
  PLN_DIM_FLOORDIV, /* towards minus infinity */
  PLN_DIM_TRUNCDIV, /* towards zero, as C and ONNX Div */
  PLN_DIM_FLOORMOD, /* sign of the divisor */
  PLN_DIM_MIN,
  PLN_DIM_MAX
} pln_dim_op;

/* The symbolic dim of that name, which is at least 0; equal names give equal
 * dims, "" gives PLN_DIM_UNKNOWN. */
PLN_API pln_status pln_dim_named(pln_engine *engine, pln_slice name,
                                 pln_dim *out) PLN_CHECKED;
/* a op b, simplified; PLN_DIM_UNKNOWN when either is, on overflow and on
 * division by zero. Only memory can fail. Symbols stand for integers >= 0. */
PLN_API pln_status pln_dim_binary(pln_engine *engine, pln_dim_op op, pln_dim a,
                                  pln_dim b, pln_dim *out) PLN_CHECKED;
/* `dim` with the symbol `name` replaced by `value`. */
PLN_API pln_status pln_dim_substitute(pln_engine *engine, pln_dim dim,
                                      pln_symbol name, pln_dim value,
                                      pln_dim *out) PLN_CHECKED;
/* The name when `dim` is a bare symbol, else 0. */
PLN_API pln_symbol pln_dim_name(const pln_engine *engine, pln_dim dim);
/* A number that `dim` is provably not below; INT64_MIN when none is known. */
PLN_API int64_t pln_dim_lower_bound(const pln_engine *engine, pln_dim dim);

/* Interned. 0 is the incomplete type: nothing is known yet. */
typedef uint32_t pln_type;
/* An interned dictionary of attributes, see below. */
typedef uint32_t pln_attrs;

typedef enum pln_type_kind {
  PLN_TYPE_INCOMPLETE = 0,
  PLN_TYPE_TENSOR,     /* dtype (or none), rank (or -1), dims */
  PLN_TYPE_TUPLE,      /* parts: the fields */
  PLN_TYPE_FUNC,       /* parts: parameters, then the result */
  PLN_TYPE_REF,        /* parts: the value's type */
  PLN_TYPE_VAR,        /* a type variable, by symbol */
  PLN_TYPE_CALL,       /* an ADT by symbol; parts: its arguments */
  PLN_TYPE_SEQUENCE,   /* parts: the element type (ONNX) */
  PLN_TYPE_OPTIONAL,   /* parts: the element type (ONNX) */
  PLN_TYPE_MAP,        /* parts: key (a scalar tensor) and value (ONNX) */
  PLN_TYPE_SPARSE,     /* as TENSOR, stored sparse (ONNX) */
  PLN_TYPE_OPAQUE,     /* by symbol "domain::name" (ONNX) */
  PLN_TYPE_GLOBAL_VAR, /* the name of a type definition, by symbol */
  PLN_TYPE_RELATION,   /* a constraint: symbol, parts, inputs, attributes */
  PLN_TYPE_HOLE,       /* incomplete, with an identity: unification */
  PLN_TYPE_PRIM,       /* loop level: dtype and lanes; no dtype: a handle */
  PLN_TYPE_POINTER,    /* loop level: the element type; symbol: the scope */
  PLN_N_TYPE_KINDS
} pln_type_kind;

/* What a type variable stands for; the numbers are TVM's TypeKind. */
typedef enum pln_type_var_kind {
  PLN_TKIND_TYPE = 0,
  PLN_TKIND_SHAPE_VAR = 1,
  PLN_TKIND_BASE_TYPE = 2,
  PLN_TKIND_CONSTRAINT = 4,
  PLN_TKIND_ADT_HANDLE = 5,
  PLN_TKIND_TYPE_DATA = 6
} pln_type_var_kind;

/* rank -1: unknown (dims is ignored); dtype may be PLN_DTYPE_NONE. */
PLN_API pln_status pln_type_tensor(pln_engine *engine, pln_dtype dtype,
                                   int32_t rank, const pln_dim *dims,
                                   pln_type *out) PLN_CHECKED;
/* The same tensor type with elements that are vectors of so many lanes, as
 * float32x4 is; 1: plain ones. No operator here computes with them. */
PLN_API pln_status pln_type_with_lanes(pln_engine *engine, pln_type tensor,
                                       uint32_t lanes,
                                       pln_type *out) PLN_CHECKED;
/* Any other kind, from its parts and symbol as listed above (SPARSE: one part,
 * the tensor type it stores). */
PLN_API pln_status pln_type_make(pln_engine *engine, pln_type_kind kind,
                                 pln_symbol symbol, uint32_t n_parts,
                                 const pln_type *parts,
                                 pln_type *out) PLN_CHECKED;
/* A new type variable, equal to no other; `name` is a hint. One made by
 * pln_type_make has number 0 and is equal to those of its name. */
PLN_API pln_status pln_type_var(pln_engine *engine, pln_symbol name,
                                pln_type_var_kind kind,
                                pln_type *out) PLN_CHECKED;
/* A function type with type parameters (type variables) and constraints
 * (relations). pln_type_n_parts and pln_type_part tell of parameters and the
 * result only. PLN_ERR_LIMIT beyond 65,535 type parameters. */
PLN_API pln_status pln_type_func(pln_engine *engine, uint32_t n_params,
                                 const pln_type *params, pln_type ret,
                                 uint32_t n_vars, const pln_type *vars,
                                 uint32_t n_constraints,
                                 const pln_type *constraints,
                                 pln_type *out) PLN_CHECKED;
PLN_API pln_status pln_type_relation(pln_engine *engine, pln_symbol name,
                                     uint32_t n, const pln_type *args,
                                     uint32_t n_inputs, pln_attrs attrs,
                                     pln_type *out) PLN_CHECKED;
/* A new incomplete type, equal to no other. */
PLN_API pln_status pln_type_hole(pln_engine *engine, pln_type *out) PLN_CHECKED;
/* A loop-level scalar or vector; PLN_DTYPE_NONE is a handle. */
PLN_API pln_status pln_type_prim(pln_engine *engine, pln_dtype dtype,
                                 uint32_t lanes, pln_type *out) PLN_CHECKED;
PLN_API pln_type_kind pln_type_kind_of(const pln_engine *engine, pln_type type);
PLN_API pln_dtype pln_type_dtype(const pln_engine *engine, pln_type type);
/* -1 when unknown or when the type is no tensor. */
PLN_API int32_t pln_type_rank(const pln_engine *engine, pln_type type);
/* rank dims; valid until the engine goes. */
PLN_API const pln_dim *pln_type_dims(const pln_engine *engine, pln_type type);
PLN_API uint32_t pln_type_n_parts(const pln_engine *engine, pln_type type);
PLN_API pln_type pln_type_part(const pln_engine *engine, pln_type type,
                               uint32_t index);
PLN_API pln_symbol pln_type_symbol(const pln_engine *engine, pln_type type);
/* FUNC: its type parameters and constraints. */
PLN_API uint32_t pln_type_n_vars(const pln_engine *engine, pln_type type);
PLN_API pln_type pln_type_var_at(const pln_engine *engine, pln_type type,
                                 uint32_t index);
PLN_API uint32_t pln_type_n_constraints(const pln_engine *engine,
                                        pln_type type);
PLN_API pln_type pln_type_constraint(const pln_engine *engine, pln_type type,
                                     uint32_t index);
/* VAR, HOLE: the identity; RELATION: its inputs; PRIM: its lanes; TENSOR: its
 * lanes when there are several, else 0. */
PLN_API uint32_t pln_type_number(const pln_engine *engine, pln_type type);
PLN_API pln_type_var_kind pln_type_var_kind_of(const pln_engine *engine,
                                               pln_type type);
/* RELATION: its attributes. */
PLN_API pln_attrs pln_type_attrs(const pln_engine *engine, pln_type type);
/* Equal as Relay has it: bound type variables may have other names; with
 * `map_free_vars` free ones as well. The hash is that of all equal types: it
 * does not tell type variables of one kind apart. */
PLN_API pln_status pln_type_equal(pln_engine *engine, pln_type a, pln_type b,
                                  bool map_free_vars, bool *out) PLN_CHECKED;
PLN_API uint64_t pln_type_hash(const pln_engine *engine, pln_type type);
/* The type that says what both say. *conflict tells that they contradict each
 * other; *out is then `a`. */
PLN_API pln_status pln_type_meet(pln_engine *engine, pln_type a, pln_type b,
                                 pln_type *out, bool *conflict) PLN_CHECKED;

/* Interned: the integers that a small integer tensor (rank 0 or 1) is known
 * to hold, each a pln_dim. 0: nothing is known. */
typedef uint32_t pln_value;
PLN_API pln_status pln_value_make(pln_engine *engine, uint32_t rank,
                                  uint32_t count, const pln_dim *elements,
                                  pln_value *out) PLN_CHECKED;
PLN_API uint32_t pln_value_rank(const pln_engine *engine, pln_value value);
PLN_API uint32_t pln_value_count(const pln_engine *engine, pln_value value);
PLN_API const pln_dim *pln_value_elements(const pln_engine *engine,
                                          pln_value value);

/* ------------------------------------------------------------- attributes */

typedef enum pln_attr_kind {
  PLN_ATTR_NONE = 0, /* a key with no value */
  PLN_ATTR_INT,
  PLN_ATTR_FLOAT,
  PLN_ATTR_STRING,
  PLN_ATTR_TENSOR,
  PLN_ATTR_TYPE,
  PLN_ATTR_REF,   /* ref_attr_name: the enclosing function's attribute */
  PLN_ATTR_GRAPH, /* the operand that is the nested function: an index */
  PLN_ATTR_DICT,  /* nested attributes */
  PLN_ATTR_BYTES, /* an encoded value kept as it was (sparse tensors) */
  PLN_ATTR_INTS,
  PLN_ATTR_FLOATS,
  PLN_ATTR_STRINGS,
  PLN_ATTR_TENSORS,
  PLN_ATTR_TYPES,
  PLN_ATTR_GRAPHS,
  PLN_ATTR_BOOL,   /* of functions and lists; an operator's is an INT */
  PLN_ATTR_LIST,   /* of lists, or of values of several kinds */
  PLN_ATTR_OBJECT, /* an object of TVM that is kept as it was */
  PLN_N_ATTR_KINDS
} pln_attr_kind;

/* One attribute. `count` is the length of a list kind (INTS ... GRAPHS).
 * `onnx_type` is AttributeProto.type of a REF, which has no value to tell. */
typedef struct pln_attr {
  pln_symbol name;
  uint8_t kind; /* pln_attr_kind */
  uint8_t onnx_type;
  uint32_t count;
  union {
    int64_t i;         /* INT, GRAPH; BOOL: 0 or 1 */
    double f;          /* an operator's holds a float32, as ONNX has it */
    pln_slice s;       /* STRING, BYTES; OBJECT: TVM's JSON of the nodes it
                        * reaches, which is numbered from 0, itself */
    pln_symbol symbol; /* REF */
    pln_tensor *tensor;
    pln_type type;
    uint32_t dict;       /* pln_attrs; LIST: one of pln_attrs_list */
    const int64_t *ints; /* INTS, GRAPHS */
    const double *floats;
    const pln_slice *strings;
    pln_tensor *const *tensors;
    const pln_type *types;
  } v;
} pln_attr;

/* A dictionary (pln_attrs) is interned; 0 is the empty one. Tensors are
 * retained. */
/* In any order; two entries of one name are PLN_ERR_ARGUMENT. */
PLN_API pln_status pln_attrs_make(pln_engine *engine, uint32_t count,
                                  const pln_attr *entries,
                                  pln_attrs *out) PLN_CHECKED;
/* Interned as well: values in that order, for a LIST. Their names say nothing
 * there and may be 0. No values give 0. */
PLN_API pln_status pln_attrs_list(pln_engine *engine, uint32_t count,
                                  const pln_attr *items,
                                  pln_attrs *out) PLN_CHECKED;
PLN_API uint32_t pln_attrs_count(const pln_engine *engine, pln_attrs attrs);
/* Entries in order of their names' bytes; a list's in its own. */
PLN_API const pln_attr *pln_attrs_get(const pln_engine *engine, pln_attrs attrs,
                                      uint32_t index);
/* NULL when there is none. */
PLN_API const pln_attr *pln_attrs_find(const pln_engine *engine,
                                       pln_attrs attrs, const char *name);
/* A copy with one entry added or replaced; without the entry `name`. */
PLN_API pln_status pln_attrs_with(pln_engine *engine, pln_attrs attrs,
                                  const pln_attr *entry,
                                  pln_attrs *out) PLN_CHECKED;
PLN_API pln_status pln_attrs_without(pln_engine *engine, pln_attrs attrs,
                                     const char *name,
                                     pln_attrs *out) PLN_CHECKED;
/* The value of an INT / FLOAT / STRING entry, else the fallback. */
PLN_API int64_t pln_attrs_int(const pln_engine *engine, pln_attrs attrs,
                              const char *name, int64_t fallback);
PLN_API double pln_attrs_float(const pln_engine *engine, pln_attrs attrs,
                               const char *name, double fallback);
PLN_API pln_slice pln_attrs_string(const pln_engine *engine, pln_attrs attrs,
                                   const char *name, const char *fallback);

/* -------------------------------------------------------------- operators */

/* A row of op/ops.def, or an operator met in a file that nobody here knows
 * ("domain::Type"): opaque. 0 is no operator. */
typedef uint32_t pln_op;

typedef enum pln_effect {
  PLN_EFFECT_NONE = 0, /* may be dropped, moved, merged */
  PLN_EFFECT_READS,
  PLN_EFFECT_WRITES,
  PLN_EFFECT_UNKNOWN
} pln_effect;

/* 0 when no operator has that name. */
PLN_API pln_op pln_op_find(const pln_engine *engine, pln_slice name);
PLN_API pln_slice pln_op_name(const pln_engine *engine, pln_op op);
PLN_API const char *pln_op_doc(const pln_engine *engine, pln_op op);
/* Operators are 1 .. pln_op_count. */
PLN_API uint32_t pln_op_count(const pln_engine *engine);

/* ----------------------------------------------------------------- graphs */

/* A node of a graph: an index. */
typedef uint32_t pln_ref;
#define PLN_NONE UINT32_MAX

/* ir/kinds.def tells what each is made of. */
typedef enum pln_kind {
  PLN_VAR = 0,
  PLN_CONSTANT,
  PLN_ABSENT,
  PLN_GLOBAL_VAR,
  PLN_OP,
  PLN_CONSTRUCTOR,
  PLN_TUPLE,
  PLN_TUPLE_GET_ITEM,
  PLN_CALL,
  PLN_FUNCTION,
  PLN_LET,
  PLN_LET_BLOCK,
  PLN_IF,
  PLN_MATCH,
  PLN_REF_CREATE,
  PLN_REF_READ,
  PLN_REF_WRITE,
  PLN_PATTERN_WILDCARD,
  PLN_PATTERN_VAR,
  PLN_PATTERN_CONSTRUCTOR,
  PLN_PATTERN_TUPLE,
  PLN_CLAUSE,
  PLN_INT_IMM,
  PLN_FLOAT_IMM,
  PLN_STRING_IMM,
  PLN_PRIM_CAST,
  PLN_PRIM_ADD,
  PLN_PRIM_SUB,
  PLN_PRIM_MUL,
  PLN_PRIM_DIV,
  PLN_PRIM_MOD,
  PLN_PRIM_FLOORDIV,
  PLN_PRIM_FLOORMOD,
  PLN_PRIM_MIN,
  PLN_PRIM_MAX,
  PLN_PRIM_EQ,
  PLN_PRIM_NE,
  PLN_PRIM_LT,
  PLN_PRIM_LE,
  PLN_PRIM_GT,
  PLN_PRIM_GE,
  PLN_PRIM_AND,
  PLN_PRIM_OR,
  PLN_PRIM_NOT,
  PLN_SELECT,
  PLN_BUFFER_LOAD,
  PLN_PRODUCER_LOAD,
  PLN_RAMP,
  PLN_BROADCAST,
  PLN_PRIM_LET,
  PLN_PRIM_CALL,
  PLN_SHUFFLE,
  PLN_COMM_REDUCER,
  PLN_REDUCE,
  PLN_ANY,
  PLN_RANGE,
  PLN_ITER_VAR,
  PLN_BUFFER,
  PLN_BUFFER_REGION,
  PLN_LET_STMT,
  PLN_ATTR_STMT,
  PLN_ASSERT_STMT,
  PLN_BUFFER_STORE,
  PLN_BUFFER_REALIZE,
  PLN_PRODUCER_STORE,
  PLN_PRODUCER_REALIZE,
  PLN_ALLOCATE,
  PLN_ALLOCATE_CONST,
  PLN_DECL_BUFFER,
  PLN_EVALUATE,
  PLN_IF_THEN_ELSE,
  PLN_FOR,
  PLN_WHILE,
  PLN_PREFETCH,
  PLN_SEQ_STMT,
  PLN_BLOCK,
  PLN_BLOCK_REALIZE,
  PLN_BLOCK_READS,
  PLN_BLOCK_WRITES,
  PLN_ALLOC_BUFFER,
  PLN_MATCH_BUFFER,
  PLN_BLOCK_INIT,
  PLN_BUFFER_BIND,
  PLN_PRIM_FUNC,
  PLN_N_KINDS
} pln_kind;

PLN_API const char *pln_kind_name(pln_kind kind); /* "TupleGetItem": static */

/* A place in a source text. Rows and columns count from 1, columns in bytes;
 * the end is one past the last character; 0: not known. */
typedef struct pln_text_place {
  pln_symbol source;
  uint32_t row, column;
  uint32_t end_row, end_column;
} pln_text_place;

/* A sealed graph: an expression (pln_graph_root) with all it needs, usually a
 * Function. Never changes; reference counted.
 * Scope 0 is the graph's own; scope rows stand in order of their begin. */
typedef struct pln_graph pln_graph;
typedef uint32_t pln_scope;

/* A reference more, and one less: the last one frees it (release takes NULL).
 * The engine is borrowed; nodes are 0 to size - 1, scopes 0 to n_scopes - 1. */
PLN_API pln_graph *pln_graph_retain(const pln_graph *graph);
PLN_API void pln_graph_release(pln_graph *graph);
PLN_API pln_engine *pln_graph_engine(const pln_graph *graph);
PLN_API uint32_t pln_graph_size(const pln_graph *graph); /* nodes */
PLN_API pln_ref pln_graph_root(const pln_graph *graph);
PLN_API uint32_t pln_graph_n_scopes(const pln_graph *graph);

/* What a node (less than the size) is, its type, what is known of its integers
 * (0: nothing), and its effects. */
PLN_API pln_kind pln_node_kind(const pln_graph *graph, pln_ref node);
PLN_API pln_type pln_node_type(const pln_graph *graph, pln_ref node);
PLN_API pln_value pln_node_value(const pln_graph *graph, pln_ref node);
PLN_API pln_effect pln_node_effects(const pln_graph *graph, pln_ref node);
/* Operands: Call arguments (a callee that is no operator is operand 0), Tuple
 * fields, the tuple of TupleGetItem, Let's var and value, If's condition, ...
 * Nested functions of an ONNX operator follow its inputs. */
PLN_API uint32_t pln_node_n_operands(const pln_graph *graph, pln_ref node);
PLN_API const pln_ref *pln_node_operands(const pln_graph *graph, pln_ref node);
PLN_API pln_op pln_node_op(const pln_graph *graph, pln_ref node);
PLN_API pln_attrs pln_node_attrs(const pln_graph *graph, pln_ref node);
/* 0: the value itself; k: a tuple of k results (Call, If). */
PLN_API uint32_t pln_node_n_results(const pln_graph *graph, pln_ref node);
PLN_API uint32_t pln_node_index(const pln_graph *graph, pln_ref node);
/* Of an IntImm or FloatImm; else 0. */
PLN_API int64_t pln_node_int(const pln_graph *graph, pln_ref node);
PLN_API double pln_node_float(const pln_graph *graph, pln_ref node);
/* Of a Constant, borrowed; else NULL. */
PLN_API const pln_tensor *pln_node_tensor(const pln_graph *graph, pln_ref node);
/* The engine-wide identity of a Var. */
PLN_API uint32_t pln_node_var(const pln_graph *graph, pln_ref node);
/* Var: name hint; GlobalVar, Constructor: name. */
PLN_API pln_symbol pln_node_symbol(const pln_graph *graph, pln_ref node);
/* Where the node stands in the text that it was read from, if it was. False
 * when nothing is known. `printed` (may be NULL): it is shown in text. */
PLN_API bool pln_node_place(const pln_graph *graph, pln_ref node,
                            pln_text_place *out, bool *printed);
/* Scopes owned: Function, LetBlock and For 1, If 2, Match one an arm. */
PLN_API uint32_t pln_node_n_scopes(const pln_graph *graph, pln_ref node);
PLN_API pln_scope pln_node_scope(const pln_graph *graph, pln_ref node,
                                 uint32_t index);

/* Nodes of a scope and of those nested in it: [begin, end). Its parameters
 * are the first n_params of them. */
PLN_API pln_ref pln_scope_begin(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_end(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_owner(const pln_graph *graph, pln_scope scope);
PLN_API pln_scope pln_scope_parent(const pln_graph *graph, pln_scope scope);
PLN_API pln_ref pln_scope_result(const pln_graph *graph, pln_scope scope);
PLN_API uint32_t pln_scope_n_params(const pln_graph *graph, pln_scope scope);
PLN_API pln_attrs pln_scope_attrs(const pln_graph *graph, pln_scope scope);
/* Of a Function's scope: a tuple type of its type parameters; 0: none. */
PLN_API pln_type pln_scope_type_params(const pln_graph *graph, pln_scope scope);

/* Checks every rule of ir/README.md in one linear pass; PLN_ERR_INVALID with
 * the node and the rule it breaks. */
PLN_API pln_status pln_graph_verify(const pln_graph *graph) PLN_CHECKED;
/* Verified, and well-formed as Relay has it: each variable is bound once at the
 * most, not after it appeared free, and not used after its scope ended. */
PLN_API pln_status pln_graph_well_formed(const pln_graph *graph) PLN_CHECKED;

/* The tree of immediate post-dominators over what uses what: out[i] is the
 * nearest node that all ways of node i's value lead through, PLN_NONE when
 * there is none: its value leaves a function, is bound, has an effect, or is
 * not used. A branch, an arm or a block leads to its owner. `out` has
 * pln_graph_size places. Near-linear time. */
PLN_API pln_status pln_graph_dominators(const pln_graph *graph,
                                        pln_ref *out) PLN_CHECKED;

/* Structural equality and hash of two expressions as Relay defines them:
 * alpha-equivalent, shared differs from duplicated; `map_free_vars` lets free
 * Vars correspond. */
PLN_API pln_status pln_graph_equal(const pln_graph *a, pln_ref node_a,
                                   const pln_graph *b, pln_ref node_b,
                                   bool map_free_vars, bool *out) PLN_CHECKED;
PLN_API pln_status pln_graph_hash(const pln_graph *graph, pln_ref node,
                                  bool map_free_vars,
                                  uint64_t *out) PLN_CHECKED;

/* Where two expressions or modules differ first. */
typedef struct pln_mismatch {
  bool equal;
  pln_ref a, b; /* the nodes; PLN_NONE when it lies in no function */
  /* Of modules: the functions' numbers, or PLN_NONE. */
  uint32_t function_a, function_b;
  char text[512]; /* "@main.body.args[0].attrs.axis: 1 versus 2" */
} pln_mismatch;
PLN_API pln_status pln_graph_mismatch(const pln_graph *a, pln_ref node_a,
                                      const pln_graph *b, pln_ref node_b,
                                      bool map_free_vars,
                                      pln_mismatch *out) PLN_CHECKED;

/* ---------------------------------------------------------------- builder */

/* The only thing that appends. Nodes are typed as they are appended.
 *
 * Scoped use (files, passes): open a scope, append into it, end it with its
 * result, append its owner; nodes belong to the innermost open scope, or to the
 * one named by pln_build_in.
 * Free use (scripts): nothing is open; nodes float, and pln_build_bind makes a
 * Function of a floating body; sealing finds each node's place. */
typedef struct pln_builder pln_builder;

/* An empty builder, to be freed before its engine, spent or not; free takes
 * NULL. Sealed graphs live on. */
PLN_API pln_status pln_builder_new(pln_engine *engine,
                                   pln_builder **out) PLN_CHECKED;
PLN_API void pln_builder_free(pln_builder *builder);
/* What has been appended so far, to be read like a sealed graph. Borrowed. */
PLN_API const pln_graph *pln_builder_graph(const pln_builder *builder);

/* Leaves. Var: a new identity, or `var` != 0 to make a node of an old one. */
PLN_API pln_status pln_build_var(pln_builder *b, pln_symbol name, pln_type type,
                                 uint32_t var, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_constant(pln_builder *b, const pln_tensor *tensor,
                                      pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_absent(pln_builder *b, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_global_var(pln_builder *b, pln_symbol name,
                                        pln_type type,
                                        pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_op(pln_builder *b, pln_op op,
                                pln_ref *out) PLN_CHECKED;
/* A constructor of an algebraic data type; `type` 0: as the module of the
 * builder defines it. */
PLN_API pln_status pln_build_constructor(pln_builder *b, pln_symbol name,
                                         pln_type type,
                                         pln_ref *out) PLN_CHECKED;
/* Patterns. An arm of a Match is a scope: its parameters are the variables its
 * pattern binds, in order; then come the pattern's nodes, the Clause, and what
 * the arm computes. */
PLN_API pln_status pln_build_pattern_wildcard(pln_builder *b,
                                              pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_pattern_var(pln_builder *b, pln_ref var,
                                         pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_pattern_constructor(pln_builder *b,
                                                 pln_symbol constructor,
                                                 uint32_t n,
                                                 const pln_ref *patterns,
                                                 pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_pattern_tuple(pln_builder *b, uint32_t n,
                                           const pln_ref *patterns,
                                           pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_clause(pln_builder *b, pln_ref pattern,
                                    pln_ref *out) PLN_CHECKED;
/* Expressions. PLN_ERR_TYPE with a diagnostic when ill-typed. */
PLN_API pln_status pln_build_tuple(pln_builder *b, uint32_t n,
                                   const pln_ref *fields,
                                   pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_get(pln_builder *b, pln_ref tuple, uint32_t index,
                                 pln_ref *out) PLN_CHECKED;
/* A call of an operator; n_results as in pln_node_n_results. */
PLN_API pln_status pln_build_call(pln_builder *b, pln_op op, pln_attrs attrs,
                                  uint32_t n_results, uint32_t n,
                                  const pln_ref *args,
                                  pln_ref *out) PLN_CHECKED;
/* A call of any other expression (GlobalVar, Var, Function, Constructor). */
PLN_API pln_status pln_build_apply(pln_builder *b, pln_ref callee,
                                   pln_attrs attrs, uint32_t n_results,
                                   uint32_t n, const pln_ref *args,
                                   pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_ref_create(pln_builder *b, pln_ref value,
                                        pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_ref_read(pln_builder *b, pln_ref ref,
                                      pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_ref_write(pln_builder *b, pln_ref ref,
                                       pln_ref value, pln_ref *out) PLN_CHECKED;
/* Opens a scope inside the innermost open one. */
PLN_API pln_status pln_build_open(pln_builder *b, pln_scope *out) PLN_CHECKED;
/* A parameter of the innermost open scope; before anything else in it. */
PLN_API pln_status pln_build_param(pln_builder *b, pln_symbol name,
                                   pln_type type, uint32_t var,
                                   pln_ref *out) PLN_CHECKED;
/* Closes the innermost scope, which must be `scope`. */
PLN_API pln_status pln_build_end(pln_builder *b, pln_scope scope,
                                 pln_ref result, pln_attrs attrs) PLN_CHECKED;
/* Owners of ended scopes. `ret` may be 0. */
PLN_API pln_status pln_build_function(pln_builder *b, pln_scope body,
                                      pln_attrs attrs, pln_type ret,
                                      pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_if(pln_builder *b, pln_ref cond,
                                pln_scope then_branch, pln_scope else_branch,
                                pln_attrs attrs, uint32_t n_results,
                                pln_ref *out) PLN_CHECKED;
/* `complete`: the arms cover every value. Attribute "complete". */
PLN_API pln_status pln_build_match(pln_builder *b, pln_ref data, bool complete,
                                   uint32_t n, const pln_scope *arms,
                                   pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_let_block(pln_builder *b, pln_scope body,
                                       pln_ref *out) PLN_CHECKED;
/* Gives a Function that was just appended its type parameters. */
PLN_API pln_status pln_build_generic(pln_builder *b, pln_ref function,
                                     uint32_t n,
                                     const pln_type *vars) PLN_CHECKED;
/* Let in the innermost open scope: `var` was appended before `value`. */
PLN_API pln_status pln_build_let(pln_builder *b, pln_ref var, pln_ref value,
                                 pln_ref *out) PLN_CHECKED;
/* The next nodes go into `scope` (open, or enclosing an open one);
 * PLN_NONE goes back to the innermost. */
PLN_API pln_status pln_build_in(pln_builder *b, pln_scope scope) PLN_CHECKED;

/* Free use: Function, If and Let over floating nodes (Let: an expression). */
PLN_API pln_status pln_build_bind(pln_builder *b, uint32_t n,
                                  const pln_ref *params, pln_ref body,
                                  pln_attrs attrs, pln_type ret,
                                  pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_free_if(pln_builder *b, pln_ref cond,
                                     pln_ref then_value, pln_ref else_value,
                                     pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_free_let(pln_builder *b, pln_ref var,
                                      pln_ref value, pln_ref body,
                                      pln_ref *out) PLN_CHECKED;

/* Each arm: a pattern, whose PatternVars name its variables, and a body. */
PLN_API pln_status pln_build_free_match(pln_builder *b, pln_ref data,
                                        bool complete, uint32_t n,
                                        const pln_ref *patterns,
                                        const pln_ref *bodies,
                                        pln_ref *out) PLN_CHECKED;

/* Copies `node` of another graph, with all that it needs, into the builder.
 * Memoised; Vars that are bound outside of it become free, with their
 * identity kept. */
PLN_API pln_status pln_build_import(pln_builder *b, const pln_graph *graph,
                                    pln_ref node, pln_ref *out) PLN_CHECKED;
/* Tells the order in which text has a Function's attributes; without it they
 * stand by name. It says nothing of what they mean. */
PLN_API pln_status pln_build_attr_order(pln_builder *b, pln_ref node,
                                        uint32_t n,
                                        const pln_symbol *names) PLN_CHECKED;
/* Keeps a node that nothing uses until DeadCodeElimination. */
PLN_API void pln_build_keep(pln_builder *b, pln_ref node);
/* Names a node: a hint for printing, and for export its ONNX value names. */
PLN_API pln_status pln_build_name(pln_builder *b, pln_ref node,
                                  pln_symbol name) PLN_CHECKED;
/* Tells where a node stands in its source. A `printed` place is written behind
 * the node's type, as `span=source:row:column`. */
PLN_API pln_status pln_build_span(pln_builder *b, pln_ref node,
                                  const pln_text_place *place,
                                  bool printed) PLN_CHECKED;

/* A sealed graph of `root`. Scoped use: the builder is spent. Free use: the
 * builder goes on, and what `root` needs is copied out. */
PLN_API pln_status pln_builder_seal(pln_builder *builder, pln_ref root,
                                    pln_graph **out) PLN_CHECKED;

/* ---------------------------------------------------------------- walking */

/* Visits of a node of a sealed graph and of all that it is made of, each node
 * once, as Relay sees it: a Call's operands in order, a Function's parameters
 * and body, an If's condition and branches, a Match's data and arms (pattern,
 * then body); a Let's body is the rest of its scope. The root of a graph
 * stands for the whole graph. The order is that of evaluation, by depth; a
 * node that several use is visited where it is met first. */
typedef pln_status (*pln_visit_fn)(void *ud, const pln_graph *graph,
                                   pln_ref node);
/* `fn` for each node after its operands and scopes (a Let after its body).
 * What `fn` returns other than PLN_OK ends the walk and is its status. */
PLN_API pln_status pln_walk_post_order(const pln_graph *graph, pln_ref node,
                                       pln_visit_fn fn, void *ud) PLN_CHECKED;

/* Either may be NULL. A node whose `enter` sets *skip is neither gone into nor
 * left. A run of lets is entered in order and left in reverse. */
typedef struct pln_visitor {
  void *ud;
  pln_status (*enter)(void *ud, const pln_graph *graph, pln_ref node,
                      bool *skip);
  pln_status (*leave)(void *ud, const pln_graph *graph, pln_ref node);
} pln_visitor;
PLN_API pln_status pln_walk(const pln_graph *graph, pln_ref node,
                            const pln_visitor *visitor) PLN_CHECKED;

/* The same one step at a time; the walker retains the graph. */
typedef struct pln_walker pln_walker;
typedef enum pln_walk_event {
  PLN_WALK_DONE = 0, /* the node is PLN_NONE */
  PLN_WALK_ENTER,
  PLN_WALK_LEAVE
} pln_walk_event;
PLN_API pln_status pln_walker_new(const pln_graph *graph, pln_ref node,
                                  pln_walker **out) PLN_CHECKED;
PLN_API void pln_walker_free(pln_walker *walker);
PLN_API pln_status pln_walker_next(pln_walker *walker, pln_walk_event *event,
                                   pln_ref *node) PLN_CHECKED;
/* After ENTER: what the node is made of is left out, and so is its LEAVE. */
PLN_API void pln_walker_skip(pln_walker *walker);
/* After DONE: goes on at another node, without what was visited; false when
 * that node was. */
PLN_API bool pln_walker_again(pln_walker *walker, pln_ref node);

/* Visits of types: each distinct type once, after all parts of it; those of a
 * function type are its parameters, result, type parameters, constraints. */
typedef pln_status (*pln_type_fn)(void *ud, pln_engine *engine, pln_type type);
PLN_API pln_status pln_type_post_order(pln_engine *engine, pln_type type,
                                       pln_type_fn fn, void *ud) PLN_CHECKED;
/* The same one step at a time; types that were visited are not visited again
 * when they are added again. */
typedef struct pln_type_walker pln_type_walker;
PLN_API pln_status pln_type_walker_new(pln_engine *engine,
                                       pln_type_walker **out) PLN_CHECKED;
PLN_API void pln_type_walker_free(pln_type_walker *walker);
PLN_API pln_status pln_type_walker_add(pln_type_walker *walker,
                                       pln_type type) PLN_CHECKED;
/* *done: there was none left. */
PLN_API pln_status pln_type_walker_next(pln_type_walker *walker, pln_type *type,
                                        bool *done) PLN_CHECKED;

/* Types rebuilt part by part, each distinct one once. `old` with the images of
 * its parts is *type: leave it, or set it to what stands for `old`. A mutator
 * that failed is only good to be freed. */
typedef pln_status (*pln_type_image)(void *ud, pln_engine *engine, pln_type old,
                                     pln_type *type);
typedef struct pln_type_mutator pln_type_mutator;
PLN_API pln_status pln_type_mutator_new(pln_engine *engine,
                                        pln_type_image image, void *ud,
                                        pln_type_mutator **out) PLN_CHECKED;
PLN_API void pln_type_mutator_free(pln_type_mutator *mutator);
PLN_API pln_status pln_type_mutate(pln_type_mutator *mutator, pln_type type,
                                   pln_type *out) PLN_CHECKED;

/* The variables of an expression, each once, in order of evaluation: all, those
 * that it binds (parameters, lets, patterns), or the others. */
typedef enum pln_var_set {
  PLN_VARS_ALL,
  PLN_VARS_BOUND,
  PLN_VARS_FREE
} pln_var_set;
PLN_API pln_status pln_graph_vars(const pln_graph *graph, pln_ref node,
                                  pln_var_set which, pln_visit_fn fn,
                                  void *ud) PLN_CHECKED;
/* The type variables in the types of its variables, functions, constructors;
 * those of a type. Generic functions and their types bind them. */
PLN_API pln_status pln_graph_type_vars(const pln_graph *graph, pln_ref node,
                                       pln_var_set which, pln_type_fn fn,
                                       void *ud) PLN_CHECKED;
PLN_API pln_status pln_type_vars(pln_engine *engine, pln_type type,
                                 pln_var_set which, pln_type_fn fn,
                                 void *ud) PLN_CHECKED;

/* A variable, by identity, and the node of a sealed graph to put in its
 * place. */
typedef struct pln_binding {
  uint32_t var;
  const pln_graph *graph;
  pln_ref node;
} pln_binding;
/* *out is the graph with all values in place at once, or `graph` itself,
 * retained. A root Function loses the parameters that are bound and gets those
 * that the values need; any other variable has to be free: PLN_ERR_ARGUMENT
 * for one that a let, a pattern or a function inside binds. */
PLN_API pln_status pln_graph_bind(const pln_graph *graph, uint32_t n,
                                  const pln_binding *bindings,
                                  pln_graph **out) PLN_CHECKED;
/* ---------------------------------------------------------- the loop level */

/* TIR's PrimExprs and statements, in the same graphs. A PrimExpr is evaluated
 * where its statement uses it; statements are evaluated in the order of their
 * scope, which stands for TIR's SeqStmt. A loop-level Var has a PrimType or a
 * pointer type; it is a SizeVar when pln_node_n_results is 1.
 *
 * Where a field of TVM's node is no PrimExpr it is an attribute of its name:
 * For "kind" (0 serial, 1 parallel, 2 vectorized, 3 unrolled, 4 thread
 * binding) and "annotations", AttrStmt "attr_key", Allocate "dtype" and
 * "annotations", AllocateConst "data" and "dtype", Block "name_hint",
 * "iter_types" and "annotations", IterVar "thread_tag", Buffer
 * "data_alignment", "offset_factor", "buffer_type" and "axis_separators",
 * ProducerRealize "storage_scope". */

/* Builtins ("exp", "if_then_else", "call_extern") are 1 to the count; find
 * gives 0 when there is none of that name. Names are static. */
PLN_API uint32_t pln_builtin_count(void);
PLN_API uint32_t pln_builtin_find(pln_slice name);
PLN_API const char *pln_builtin_name(uint32_t builtin);

/* What a node of the loop level is made of; ir/kinds.def names the operands.
 * `data` is the lanes of Ramp and Broadcast, the builtin of PrimCall (0: the
 * GlobalVar that is operand 0), the number of vectors of Shuffle, the value
 * index of Reduce, the name of Buffer, the value of StringImm (symbols), the
 * type of IterVar (TVM's number). `count` is the rank of Buffer and the number
 * of starts of Reduce. `type` is that of Cast, PrimCall and Buffer (its
 * elements), the result of a PrimFunc (0: none); other types are inferred. */
typedef struct pln_prim {
  pln_kind kind;
  uint16_t count;
  uint32_t data;
  pln_type type;
  pln_attrs attrs;
  uint32_t n;
  const pln_ref *operands;
} pln_prim;

typedef struct pln_buffer_spec {
  pln_symbol name;
  pln_type type; /* of an element */
  pln_attrs attrs;
  pln_ref data; /* a Var of a pointer type */
  uint32_t rank;
  const pln_ref *shape;
  uint32_t n_strides; /* 0: compact, else rank */
  const pln_ref *strides;
  pln_ref elem_offset;
} pln_buffer_spec;

/* A Var that is no less than 0. */
PLN_API pln_status pln_build_size_var(pln_builder *b, pln_symbol name,
                                      pln_type type, uint32_t var,
                                      pln_ref *out) PLN_CHECKED;
/* Immediates. PLN_ERR_TYPE when the dtype does not hold the value. */
PLN_API pln_status pln_build_int_imm(pln_builder *b, pln_type type,
                                     int64_t value, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_float_imm(pln_builder *b, pln_type type,
                                       double value, pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_string_imm(pln_builder *b, pln_symbol value,
                                        pln_ref *out) PLN_CHECKED;
/* Any node of the loop level that owns no scope. */
PLN_API pln_status pln_build_prim(pln_builder *b, const pln_prim *spec,
                                  pln_ref *out) PLN_CHECKED;
/* Add to Or. */
PLN_API pln_status pln_build_binary(pln_builder *b, pln_kind kind, pln_ref x,
                                    pln_ref y, pln_ref *out) PLN_CHECKED;
/* The same, but computed when both are immediates, and x + 0, x * 1 and the
 * like are x: what TVM's operators on PrimExprs give. */
PLN_API pln_status pln_build_folded(pln_builder *b, pln_kind kind, pln_ref x,
                                    pln_ref y, pln_ref *out) PLN_CHECKED;
/* A buffer; each one made is another. */
PLN_API pln_status pln_build_buffer(pln_builder *b, const pln_buffer_spec *spec,
                                    pln_ref *out) PLN_CHECKED;
/* A statement or PrimFunc that owns `k` ended scopes; each ends with its last
 * statement as result. A PrimFunc's attributes are the function's. */
PLN_API pln_status pln_build_stmt(pln_builder *b, const pln_prim *spec,
                                  uint32_t k, const pln_scope *scopes,
                                  pln_ref *out) PLN_CHECKED;
/* A loop over [min, min + extent); the body's one parameter is its index. */
PLN_API pln_status pln_build_for(pln_builder *b, pln_ref min, pln_ref extent,
                                 pln_scope body, pln_ref *out) PLN_CHECKED;

/* Free use: bodies are statements; of several, a SeqStmt. A statement that is
 * used twice is there twice when sealed. */
typedef struct pln_body {
  uint32_t n_params;
  const pln_ref *params; /* Vars */
  pln_ref stmt;
} pln_body;
PLN_API pln_status pln_build_free_stmt(pln_builder *b, const pln_prim *spec,
                                       uint32_t k, const pln_body *bodies,
                                       pln_ref *out) PLN_CHECKED;
PLN_API pln_status pln_build_seq(pln_builder *b, uint32_t n,
                                 const pln_ref *stmts,
                                 pln_ref *out) PLN_CHECKED;

/* -------------------------------------------------------------- rewriting */

/* One sweep over a sealed graph that writes another. Every callback may be
 * NULL. */
typedef struct pln_rewrite pln_rewrite;

/* What becomes of a scope of the old graph. */
typedef enum pln_scope_action {
  PLN_SCOPE_KEEP = 0,
  PLN_SCOPE_SKIP,    /* its nodes are not swept; its owner must be replaced */
  PLN_SCOPE_DISSOLVE /* its nodes go to the enclosing scope, its row goes; when
                        all other scopes of the owner are skipped, the owner
                        becomes the scope's result unless visit says else */
} pln_scope_action;

typedef struct pln_mutator {
  void *ud;
  /* Called for each node in array order, after its operands and scopes.
   * `old` is the node in the old graph; *node in the new one, already rebuilt
   * with new operands. Leave *node, or set it to the node to use instead,
   * appended with pln_build_* through pln_rewrite_builder. */
  pln_status (*visit)(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node);
  /* Before a scope's first node; *action is preset to PLN_SCOPE_KEEP. */
  pln_status (*enter)(void *ud, pln_rewrite *rw, pln_scope old,
                      pln_scope_action *action);
  /* Behind the last node of a scope that is kept; *result is preset to what
   * the old result became. Nodes may be appended, and one set instead. */
  pln_status (*leave)(void *ud, pln_rewrite *rw, pln_scope old,
                      pln_ref *result);
  /* Called once for each distinct part of the types of variables, global
   * variables, constructors and of type parameters; what depends on them is
   * typed anew. */
  pln_type_image type;
} pln_mutator;

/* *out is `graph` itself, retained, when nothing changed. */
PLN_API pln_status pln_graph_rewrite(const pln_graph *graph,
                                     const pln_mutator *mutator,
                                     pln_graph **out) PLN_CHECKED;
PLN_API const pln_graph *pln_rewrite_old(const pln_rewrite *rw);
PLN_API const pln_graph *pln_rewrite_graph(const pln_rewrite *rw); /* new */
PLN_API pln_builder *pln_rewrite_builder(pln_rewrite *rw);
/* The image of a node that was already swept; PLN_NONE when it is not yet. */
PLN_API pln_ref pln_rewrite_image(const pln_rewrite *rw, pln_ref old);
/* From here on `node` stands for the already swept `old`. */
PLN_API void pln_rewrite_bind(pln_rewrite *rw, pln_ref old, pln_ref node);
/* An equal earlier node that the current scope sees, or `node` itself, which
 * is then entered in the hash-cons table of its scope. */
PLN_API pln_status pln_rewrite_share(pln_rewrite *rw, pln_ref node,
                                     pln_ref *out) PLN_CHECKED;
/* Clears the keep marks: what nothing uses goes when the result is sealed. */
PLN_API void pln_rewrite_drop_kept(pln_rewrite *rw);

/* ----------------------------------------------------------------- module */

/* An ordered map from global names to functions, with attributes and what is
 * kept of the file it came from. Never changes; reference counted. */
typedef struct pln_module pln_module;

/* An empty module, held once by the caller, to be released before its engine;
 * release takes NULL. The engine is borrowed. Functions are 0 to count - 1, in
 * the order in which they were added. */
PLN_API pln_status pln_module_new(pln_engine *engine,
                                  pln_module **out) PLN_CHECKED;
PLN_API pln_module *pln_module_retain(const pln_module *module);
PLN_API void pln_module_release(pln_module *module);
PLN_API pln_engine *pln_module_engine(const pln_module *module);
PLN_API uint32_t pln_module_count(const pln_module *module);
PLN_API pln_symbol pln_module_name(const pln_module *module, uint32_t index);
/* Borrowed. The graph's root is the Function. */
PLN_API pln_graph *pln_module_function(const pln_module *module,
                                       uint32_t index);
/* PLN_NONE when there is no function of that name. */
PLN_API uint32_t pln_module_find(const pln_module *module, pln_symbol name);
PLN_API pln_attrs pln_module_attrs(const pln_module *module);
/* Changed copies, which share all else. The same module comes back, retained,
 * when nothing changes. */
PLN_API pln_status pln_module_with(const pln_module *module, pln_symbol name,
                                   const pln_graph *function,
                                   pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_module_without(const pln_module *module, pln_symbol name,
                                      pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_module_with_attrs(const pln_module *module,
                                         pln_attrs attrs,
                                         pln_module **out) PLN_CHECKED;
/* A changed copy in which the symbolic dim `name` is `value` in every type.
 * PLN_ERR_NAME when no type has it. */
PLN_API pln_status pln_module_fix_dim(const pln_module *module, pln_slice name,
                                      int64_t value,
                                      pln_module **out) PLN_CHECKED;
/* An algebraic data type: its name, its type variables (PLN_TYPE_VAR), its
 * constructors with the types of their fields. An extern one has no
 * constructors that are known. */
typedef struct pln_constructor {
  pln_symbol name;
  uint32_t n_inputs;
  const pln_type *inputs;
} pln_constructor;

typedef struct pln_type_data {
  pln_symbol name;
  bool is_extern;
  uint32_t n_vars;
  const pln_type *vars;
  uint32_t n_constructors;
  const pln_constructor *constructors;
} pln_type_data;

/* Definitions are 0 to n_types - 1 in order of insertion; borrowed. */
PLN_API uint32_t pln_module_n_types(const pln_module *module);
PLN_API const pln_type_data *pln_module_type(const pln_module *module,
                                             uint32_t index);
/* PLN_NONE when there is none of that name. The definition that has a
 * constructor of that name, and which of its constructors it is. */
PLN_API uint32_t pln_module_find_type(const pln_module *module,
                                      pln_symbol name);
PLN_API uint32_t pln_module_find_constructor(const pln_module *module,
                                             pln_symbol name, uint32_t *index);
/* A changed copy with a definition added or replaced; `data` is copied. */
PLN_API pln_status pln_module_with_type(const pln_module *module,
                                        const pln_type_data *data,
                                        pln_module **out) PLN_CHECKED;
/* The function type of a constructor: `fn [A](A, List[A]) -> List[A]`. */
PLN_API pln_status pln_module_constructor_type(const pln_module *module,
                                               uint32_t type, uint32_t index,
                                               pln_type *out) PLN_CHECKED;
/* The types that are not known yet, by unification: of unannotated functions,
 * recursive or not, of their callers, of matches, closures and cells. What is
 * known is not inferred again: the same module, or graph, comes back when there
 * is nothing to learn. PLN_ERR_TYPE on a contradiction, a free type variable or
 * a type of another kind than its place wants, with the node. */
PLN_API pln_status pln_module_infer(const pln_module *module,
                                    pln_module **out) PLN_CHECKED;
/* Likewise an expression; `module` says what globals and constructors are, and
 * may be NULL. */
PLN_API pln_status pln_graph_infer(const pln_graph *graph,
                                   const pln_module *module,
                                   pln_graph **out) PLN_CHECKED;
/* The kind of a type, PLN_ERR_TYPE when one of its parts is of another kind
 * than its place wants. `module` (may be NULL) knows the definitions. */
PLN_API pln_status pln_type_check_kind(pln_engine *engine,
                                       const pln_module *module, pln_type type,
                                       pln_type_var_kind *out) PLN_CHECKED;
PLN_API const char *pln_type_var_kind_name(pln_type_var_kind kind);
/* Verifies every function, and each GlobalVar against the module. */
PLN_API pln_status pln_module_verify(const pln_module *module) PLN_CHECKED;
/* Verified, and each function well-formed. */
PLN_API pln_status pln_module_well_formed(const pln_module *module) PLN_CHECKED;
PLN_API pln_status pln_module_equal(const pln_module *a, const pln_module *b,
                                    bool *out) PLN_CHECKED;
PLN_API pln_status pln_module_mismatch(const pln_module *a, const pln_module *b,
                                       bool map_free_vars,
                                       pln_mismatch *out) PLN_CHECKED;
PLN_API pln_status pln_module_hash(const pln_module *module,
                                   uint64_t *out) PLN_CHECKED;

/* ------------------------------------------------------------------- text */

/* Receives text as it is printed; a failure stops the printing. */
typedef pln_status (*pln_write_fn)(void *ud, const char *data, size_t size);

/* Relay text, as TVM 0.14 prints it. `limit` > 0 cuts off after about that
 * many bytes with "...". A module's text ends in its metadata section, with
 * all constants that are no literals in base64; of those over 1 MiB that lie in
 * a file it has the file's name and the place in it. A Function's attributes
 * "virtual_device" and "param_virtual_devices" (a list: an OBJECT or nothing
 * for each parameter) are written where Relay has devices. */
PLN_API pln_status pln_print_module(const pln_module *module, size_t limit,
                                    pln_write_fn write, void *ud) PLN_CHECKED;
PLN_API pln_status pln_print_node(const pln_graph *graph, pln_ref node,
                                  size_t limit, pln_write_fn write,
                                  void *ud) PLN_CHECKED;
PLN_API pln_status pln_print_type(const pln_engine *engine, pln_type type,
                                  pln_write_fn write, void *ud) PLN_CHECKED;
PLN_API pln_status pln_print_dim(const pln_engine *engine, pln_dim dim,
                                 pln_write_fn write, void *ud) PLN_CHECKED;
PLN_API pln_status pln_print_attrs(const pln_engine *engine, pln_attrs attrs,
                                   pln_write_fn write, void *ud) PLN_CHECKED;

/* Reads Relay text: a module, which begins with #[version = "0.0.5"], or one
 * expression, whose free variables are told by `free_var %x: T;`. `source` is
 * what messages call the text; NULL: "text". Nodes know where they stood. What
 * is wrong is reported where it stands, up to 20 places in one reading;
 * PLN_ERR_FORMAT, or PLN_ERR_LIMIT when there were more. */
PLN_API pln_status pln_parse_module(pln_engine *engine, pln_slice text,
                                    const char *source,
                                    pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_parse_expr(pln_engine *engine, pln_slice text,
                                  const char *source,
                                  pln_graph **out) PLN_CHECKED;

/* Reads one type, as pln_print_type writes it. `vars` are the type variables
 * that names in it may mean; another name that begins with a capital, or has
 * arguments in brackets, is that of a data type. */
PLN_API pln_status pln_parse_type_text(pln_engine *engine, pln_slice text,
                                       uint32_t n_vars, const pln_type *vars,
                                       pln_type *out) PLN_CHECKED;
/* The module in a file of Relay text, and a module into one, which is written
 * beside `path` and renamed. */
PLN_API pln_status pln_parse_file(pln_engine *engine, const char *path,
                                  pln_module **out) PLN_CHECKED;
PLN_API pln_status pln_print_file(const pln_module *module,
                                  const char *path) PLN_CHECKED;
/* Pictures for Graphviz (the language of `dot`): functions and scopes are
 * clusters, arrows lead from what is used to its user. Of a sealed graph, all
 * of it. */
PLN_API pln_status pln_dot_module(const pln_module *module, pln_write_fn write,
                                  void *ud) PLN_CHECKED;
PLN_API pln_status pln_dot_graph(const pln_graph *graph, pln_write_fn write,
                                 void *ud) PLN_CHECKED;
/* JSON for programs: {"attrs": .., "types": [..], "functions": [{"name": ..,
 * "root": node, "scopes": [..], "nodes": [..]}]}. A node has "kind" and, where
 * it has them, "name", "op", "data", "index", "scope" (its first), "operands",
 * "attrs", "results", "effect", "type" (as text) and "span"; a scope has
 * "begin", "end", "owner", "parent", "result", "params". Of a graph: root,
 * scopes and nodes. */
PLN_API pln_status pln_json_module(const pln_module *module, pln_write_fn write,
                                   void *ud) PLN_CHECKED;
PLN_API pln_status pln_json_graph(const pln_graph *graph, pln_write_fn write,
                                  void *ud) PLN_CHECKED;

/* ----------------------------------------------------------------- passes */

typedef enum pln_pass_kind {
  PLN_PASS_MODULE,    /* module in, module out */
  PLN_PASS_FUNCTION,  /* each Relay function by itself; functions with attribute
                         SkipOptimization, Extern or Compiler are passed over */
  PLN_PASS_PRIM_FUNC, /* each loop-level function */
  PLN_PASS_SEQUENTIAL /* passes made of passes, see pln_pass_form */
} pln_pass_kind;

/* How a pass is made of others. */
typedef enum pln_pass_form {
  PLN_FORM_LEAF,       /* it is not: it has a body */
  PLN_FORM_SEQUENTIAL, /* one after the other */
  PLN_FORM_FIXPOINT,   /* again and again until nothing changes */
  PLN_FORM_TRY,        /* a failure undoes them; then come those of `else` */
  PLN_FORM_IF_CHANGED, /* only when the element before it changed something */
  PLN_FORM_FUNCTIONS   /* each function through all of them by itself */
} pln_pass_form;

/* A pass object: immutable, reference counted. */
typedef struct pln_pass pln_pass;
/* One run of a leaf pass: what its body is given. */
typedef struct pln_pass_run pln_pass_run;

/* One option of a pass: its name, kind (PLN_ATTR_INT, _FLOAT, _STRING; a
 * boolean is an INT from 0 to 1), default as text, a sentence, and of a string
 * the values it may have ("budget|all"; NULL: any). */
typedef struct pln_option {
  const char *name;
  pln_attr_kind kind;
  bool is_bool;
  const char *fallback;
  const char *doc;
  const char *choices;
} pln_option;

typedef struct pln_pass_spec {
  const char *name;
  pln_pass_kind kind; /* not SEQUENTIAL */
  int opt_level;      /* least level of a context that enables it */
  uint32_t n_required;
  const char *const *required; /* names of passes to run before */
  bool traceable;
  const char *doc;
  uint32_t n_options;
  const pln_option *options;
  pln_status (*run)(pln_pass_run *run);
  void *ud;
  void (*release)(void *ud); /* when the last reference goes; may be NULL */
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
PLN_API const pln_pass *pln_pass_registered(const pln_engine *engine,
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
PLN_API pln_status pln_form_new(pln_engine *engine, pln_pass_form form,
                                uint32_t rounds, uint32_t n_otherwise,
                                uint32_t n, pln_pass *const *passes,
                                pln_pass **out) PLN_CHECKED;
PLN_API pln_pass_form pln_pass_form_of(const pln_pass *pass);
/* FIXPOINT: its most rounds. */
PLN_API uint32_t pln_pass_rounds(const pln_pass *pass);
/* TRY: how many of its elements come before `else`; else all. */
PLN_API uint32_t pln_pass_n_body(const pln_pass *pass);
PLN_API pln_pass *pln_pass_retain(const pln_pass *pass);
PLN_API void pln_pass_release(pln_pass *pass);
PLN_API const char *pln_pass_name(const pln_pass *pass);
PLN_API const char *pln_pass_doc(const pln_pass *pass);
PLN_API pln_pass_kind pln_pass_kind_of(const pln_pass *pass);
PLN_API int pln_pass_opt_level(const pln_pass *pass);
PLN_API bool pln_pass_traceable(const pln_pass *pass);
PLN_API uint32_t pln_pass_n_required(const pln_pass *pass);
PLN_API const char *pln_pass_required(const pln_pass *pass, uint32_t index);
PLN_API pln_attrs pln_pass_options(const pln_pass *pass);
PLN_API uint32_t pln_pass_n_option_rows(const pln_pass *pass);
PLN_API const pln_option *pln_pass_option_row(const pln_pass *pass,
                                              uint32_t index);
/* Elements of a sequential. */
PLN_API uint32_t pln_pass_n_elements(const pln_pass *pass);
PLN_API pln_pass *pln_pass_element(const pln_pass *pass, uint32_t index);

/* Runs the pass in the current context. *out is `module` itself, retained,
 * when nothing changed. On failure nothing has happened. */
PLN_API pln_status pln_pass_apply(pln_pass *pass, const pln_module *module,
                                  pln_module **out) PLN_CHECKED;

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
/* The result; takes it. Not set: unchanged. */
PLN_API void pln_run_set_function(pln_pass_run *run, pln_graph *function);
PLN_API void pln_run_set_module(pln_pass_run *run, pln_module *module);
/* Adds to a counter that the report shows beside the pass. */
PLN_API pln_status pln_run_count(pln_pass_run *run, const char *key,
                                 int64_t n) PLN_CHECKED;
/* Rewrites the function with the mutator and sets the result. */
PLN_API pln_status pln_rewrite_function(pln_pass_run *run,
                                        const pln_mutator *mutator) PLN_CHECKED;

/* Config keys, as `fold` is one: name, kind and default are those of an
 * option. PLN_ERR_ARGUMENT when the key exists. */
PLN_API pln_status pln_config_register(pln_engine *engine,
                                       const pln_option *key) PLN_CHECKED;
PLN_API const pln_option *pln_config_row(const pln_engine *engine,
                                         uint32_t index); /* NULL at the end */

/* Hooks around contexts and passes; each may be NULL. A hook that fails stops
 * what it was called from; the table in pass/README.md tells how. */
typedef struct pln_context pln_context;
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
  pln_attrs config; /* registered keys, or "Pass.option" */
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
PLN_API uint32_t pln_context_n_required(const pln_context *context);
PLN_API const char *pln_context_required(const pln_context *c, uint32_t i);
PLN_API uint32_t pln_context_n_disabled(const pln_context *context);
PLN_API const char *pln_context_disabled(const pln_context *c, uint32_t i);
PLN_API uint32_t pln_context_n_only(const pln_context *context);
PLN_API const char *pln_context_only(const pln_context *c, uint32_t i);
PLN_API uint32_t pln_context_n_instruments(const pln_context *context);
PLN_API const pln_instrument *pln_context_instrument(const pln_context *c,
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
  uint32_t nodes;   /* of all functions, afterwards */
  pln_attrs counts; /* what pln_run_count added up */
} pln_report_row;
PLN_API uint32_t pln_report_count(const pln_engine *engine);
PLN_API const pln_report_row *pln_report_get(const pln_engine *engine,
                                             uint32_t index);

/* A pipeline as text: "SimplifyExpr,FoldConstant{fold=\"all\"}". The empty text
 * is the empty sequential. Errors carry a span into `text`. */
PLN_API pln_status pln_pipeline_parse(pln_engine *engine, pln_slice text,
                                      pln_pass **out) PLN_CHECKED;
PLN_API pln_status pln_pipeline_print(const pln_pass *pass, pln_write_fn write,
                                      void *ud) PLN_CHECKED;

/* -------------------------------------------------------------- evaluator */

/* A datum is what evaluation takes and gives: a tensor, a sequence of data, or
 * nothing. An ONNX optional is what it has, or PLN_DATUM_ABSENT. */
typedef enum pln_datum_kind {
  PLN_DATUM_NONE = 0, /* not computed; what a zeroed datum is */
  PLN_DATUM_ABSENT,
  PLN_DATUM_TENSOR,
  PLN_DATUM_SEQUENCE,
  PLN_DATUM_TUPLE,
  PLN_N_DATUM_KINDS
} pln_datum_kind;

/* By value; a copy without pln_datum_copy is borrowed. */
typedef struct pln_datum {
  uint32_t kind;   /* pln_datum_kind */
  uint32_t number; /* internal */
  union {
    pln_tensor *tensor; /* PLN_DATUM_TENSOR */
    struct pln_box *box;
    struct pln_activation *env;
  } of;
} pln_datum;

/* A new reference to the tensor; NULL gives PLN_DATUM_ABSENT. */
PLN_API pln_datum pln_datum_tensor(const pln_tensor *tensor);
/* A sequence of `n` data, which are copied. */
PLN_API pln_status pln_datum_sequence(pln_engine *engine, uint32_t n,
                                      const pln_datum *items,
                                      pln_datum *out) PLN_CHECKED;
/* How many data a sequence or tuple has (0 for others), and one of them,
 * borrowed. */
PLN_API uint32_t pln_datum_count(const pln_datum *datum);
PLN_API const pln_datum *pln_datum_item(const pln_datum *datum, uint32_t i);
/* Another reference to the same. */
PLN_API pln_datum pln_datum_copy(pln_datum datum);
/* Gives up a reference and clears *datum. Nesting of any depth. */
PLN_API void pln_datum_release(pln_engine *engine, pln_datum *datum);

/* Computes a function on arguments, or (n_args 0) an expression whose free
 * nodes are all constant. GlobalVars are looked up in `module`, which may be
 * NULL. The caller owns the `n_results` results: as many as the function's
 * result has fields, or 1. PLN_ERR_TYPE when an argument has not its
 * parameter's type, a symbolic extent standing for one number in all of them;
 * PLN_ERR_UNSUPPORTED names the operator that has no kernel, or whose result is
 * not defined. */
PLN_API pln_status pln_eval_data(const pln_module *module,
                                 const pln_graph *function, uint32_t n_args,
                                 const pln_datum *args, uint32_t n_results,
                                 pln_datum *results) PLN_CHECKED;
/* The same for tensors; NULL is left out. */
PLN_API pln_status pln_eval_function(const pln_module *module,
                                     const pln_graph *function, uint32_t n_args,
                                     const pln_tensor *const *args,
                                     uint32_t n_results,
                                     pln_tensor **results) PLN_CHECKED;

/* What random operators draw from. Their values follow from this seed, from how
 * many random operators the run has computed before, and from the place of an
 * element: a run repeated gives the same, on one machine. Those with a seed of
 * their own follow from that one alone. A new engine begins with 0. */
PLN_API void pln_seed(pln_engine *engine, uint64_t seed);
PLN_API uint64_t pln_seed_of(const pln_engine *engine);

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
PLN_API pln_status pln_blas_choose(pln_engine *engine,
                                   pln_blas_choice choice) PLN_CHECKED;
PLN_API pln_blas_choice pln_blas_chosen(const pln_engine *engine);
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
typedef enum pln_sample_kind {
  PLN_SAMPLE_ORDINARY = 0, /* floats from -2 to 2, 4, -0; integers -2 to 1 */
  PLN_SAMPLE_SMALL,        /* floats from -1 to 1, integers 0 and 1: indices */
  PLN_SAMPLE_SPECIAL,      /* NaN, infinities, 1e9, 1e-40 among floats from -10
                              to 10, the ends of the dtype among integers from
                              -8 to 7 */
  PLN_N_SAMPLE_KINDS
} pln_sample_kind;

/* Of any dtype; of one seed the same on every machine. */
PLN_API pln_status pln_tensor_sample(pln_engine *engine, pln_dtype dtype,
                                     uint32_t rank, const int64_t *dims,
                                     pln_sample_kind kind, uint64_t seed,
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

typedef struct pln_onnx_save_options {
  bool external_data;        /* weights to PATH.data even below 2 GB */
  size_t external_threshold; /* only tensors of at least so many bytes; 0:
                                1,024 */
} pln_onnx_save_options;

/* Writes beside `path` and renames. `options` may be NULL. */
PLN_API pln_status pln_onnx_save(const pln_module *module, const char *path,
                                 const pln_onnx_save_options *options)
    PLN_CHECKED;
/* The model as one run of bytes, handed to `write` piece by piece. */
PLN_API pln_status pln_onnx_write(const pln_module *module, pln_write_fn write,
                                  void *ud) PLN_CHECKED;

/* Reads a file that holds one value, such as those of the node tests of ONNX:
 * a TensorProto when `type` is a tensor type or 0, a SequenceProto when it is a
 * sequence, an OptionalProto when it is an optional. The value may have another
 * type in detail. *name (may be NULL) is what the file calls it. */
PLN_API pln_status pln_onnx_load_datum(pln_engine *engine, const char *path,
                                       pln_type type, pln_datum *out,
                                       pln_symbol *name) PLN_CHECKED;

/* Writes such a file, beside `path` and renamed: an OptionalProto when `type`
 * is an optional, else as what the datum is. `name` may be empty. */
PLN_API pln_status pln_onnx_save_datum(pln_engine *engine,
                                       const pln_datum *datum, pln_type type,
                                       pln_slice name,
                                       const char *path) PLN_CHECKED;

/* The value that an input of the model has when nothing is given: an
 * initializer of that name in the file that the module was read from. *out is
 * NULL when there is none. */
PLN_API pln_status pln_onnx_default(const pln_module *module, pln_slice input,
                                    pln_tensor **out) PLN_CHECKED;

/* What a model file holds: its nodes with those of subgraphs (local functions
 * are not counted), how many of them are no Constant and no ConstantOfShape,
 * operators by name ("Conv", "domain::Type"), and the files of its external
 * data as it names them. */
typedef struct pln_onnx_operator {
  pln_symbol name;
  uint64_t count;
} pln_onnx_operator;

typedef struct pln_onnx_counts {
  uint64_t nodes;
  uint64_t compute_nodes;
  uint32_t n_operators, cap_operators;
  uint32_t n_files, cap_files;
  pln_onnx_operator *operators;
  pln_symbol *files;
} pln_onnx_counts;

/* Walks the file once and reads no weights. */
PLN_API pln_status pln_onnx_count(pln_engine *engine, const char *path,
                                  pln_onnx_counts *out) PLN_CHECKED;
PLN_API void pln_onnx_counts_free(pln_engine *engine, pln_onnx_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
