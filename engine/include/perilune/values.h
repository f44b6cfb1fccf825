/* perilune/values.h: the basic types: status, engine, diagnostics, dtypes,
 * tensors, types, dims, attributes, operators. Part of perilune.h, which is
 * what users include. */

#ifndef PERILUNE_VALUES_H
#define PERILUNE_VALUES_H

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

/* The version of the running library, such as "0.1.0". Static. */
PLN_API const char *pln_version(void);

/* ------------------------------------------------------------------ status */

typedef enum pln_status {
  PLN_OK = 0,
  PLN_ERR_NOMEM,       /* an allocation failed */
  PLN_ERR_ARGUMENT,    /* the caller's mistake: range, kind, foreign object */
  PLN_ERR_TYPE,        /* ill-typed or ill-scoped program */
  PLN_ERR_FORMAT,      /* a file or text is malformed */
  PLN_ERR_IO,          /* the operating system refused */
  PLN_ERR_UNSUPPORTED, /* valid input that this library does not support */
  PLN_ERR_LIMIT,       /* a limit of the engine or of the run was reached */
  PLN_ERR_NAME,        /* unknown pass, config key, option, operator */
  PLN_ERR_INVALID,     /* the verifier found broken IR */
  PLN_ERR_CALLBACK,    /* a callback (a Lua function) raised an error */
  PLN_ERR_INTERRUPTED, /* pln_engine_interrupt was called */
  PLN_N_STATUS
} pln_status;

/* "out of memory", "malformed input", ...: static. */
PLN_API const char *pln_status_text(pln_status status);

/* A counted byte string; not terminated. */
typedef struct pln_slice {
  const char *data;
  size_t size;
} pln_slice;

/* A terminated string as a slice; NULL gives an empty one. */
PLN_API pln_slice pln_text(const char *s);

/* ------------------------------------------------------------------ engine */

typedef struct pln_engine pln_engine;

/* Lua's allocator protocol (lua_Alloc): nsize 0 frees; when ptr is NULL it
 * allocates and osize is meaningless; it may return NULL only when nsize >
 * osize. */
typedef void *(*pln_alloc_fn)(void *ud, void *ptr, size_t osize, size_t nsize);

/* Makes an engine with its own tables. `alloc` NULL: the C library's allocator.
 * Returns NULL when out of memory. */
PLN_API pln_engine *pln_engine_new(pln_alloc_fn alloc, void *ud);

/* Frees the engine. Every object made in it must have been released. */
PLN_API void pln_engine_free(pln_engine *engine);

/* Bytes allocated now; *peak is the maximum so far. Without blocks that the
 * pool keeps. */
PLN_API size_t pln_engine_memory(const pln_engine *engine, size_t *peak);

/* The engine's pool: freed blocks of 64 KiB and more, `bytes` together at most,
 * are kept for later allocations of about the same size, because memory that is
 * fresh from the system costs a page fault per 4 KiB. At first 0. Evaluating
 * one function again and again is faster with a pool that takes its
 * intermediate tensors; it may take a quarter of the pool more memory. */
PLN_API void pln_engine_set_pool(pln_engine *engine, size_t bytes);
PLN_API size_t pln_engine_pool(const pln_engine *engine);

/* Number of allocations since the engine was made. */
PLN_API uint64_t pln_engine_allocations(const pln_engine *engine);

/* Total bytes ever requested, freed ones included. A deterministic measure of
 * work. */
PLN_API uint64_t pln_engine_allocated(const pln_engine *engine);

/* Requests a stop. The running pass, evaluation, or operation over a whole
 * graph or module (read, write, seal, verify, compare, hash, infer) fails with
 * PLN_ERR_INTERRUPTED and has no other effect. The request ends with the
 * operation that it stops. This is the only function that a signal handler or
 * another thread may call. */
PLN_API void pln_engine_interrupt(pln_engine *engine);
/* Sets a callback that runs right after a stop was requested, possibly in a
 * signal handler. NULL: none. */
PLN_API void pln_engine_on_interrupt(pln_engine *engine, void (*f)(void *ud),
                                     void *ud);
/* True while a stop is requested and has not been served. */
PLN_API bool pln_engine_interrupted(const pln_engine *engine);

/* Interned strings. pln_symbol_text is terminated as well. */
typedef uint32_t pln_symbol;
PLN_API pln_status pln_symbol_intern(pln_engine *engine, pln_slice text,
                                     pln_symbol *out) PLN_CHECKED;
PLN_API pln_slice pln_symbol_text(const pln_engine *engine, pln_symbol symbol);

/* ------------------------------------------------------------- diagnostics */

typedef enum pln_severity { PLN_NOTE = 0, PLN_WARNING, PLN_ERROR } pln_severity;

/* The location of a diagnostic: a file or text, and a range in it. */
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

/* The diagnostics reported since the last clear, oldest first. A function that
 * fails leaves at least one of severity PLN_ERROR, also when out of memory. */
PLN_API size_t pln_diag_count(const pln_engine *engine);
PLN_API const pln_diag *pln_diag_at(const pln_engine *engine, size_t index);
PLN_API void pln_diag_clear(pln_engine *engine);

/* Reports a diagnostic; texts are copied. Returns `code`, so that callers can
 * write `return pln_diag_error(...)`. `span` may be NULL. */
PLN_API pln_status pln_diag_error(pln_engine *engine, pln_status code,
                                  const pln_span *span, const char *format, ...)
    PLN_PRINTF(4, 5);
PLN_API void pln_diag_warn(pln_engine *engine, const pln_span *span,
                           const char *format, ...) PLN_PRINTF(3, 4);
/* Adds a note to the error or warning reported before it. */
PLN_API void pln_diag_note(pln_engine *engine, const pln_span *span,
                           const char *format, ...) PLN_PRINTF(3, 4);

/* Formats a diagnostic as compilers do ("file:row:column: error: message", then
 * the source line and a caret). Returns the length without the terminator and
 * writes at most `size` bytes including it (snprintf's protocol). */
PLN_API size_t pln_diag_format(const pln_diag *diag, char *text, size_t size);

/* -------------------------------------------------------- dtypes, tensors */

/* One row per dtype: X(NAME, number, Relay's name, bits of a stored element).
 * The numbers are those of ONNX's TensorProto.DataType. Elements of 4 and 2
 * bits are packed, low bits first; a string element is a pln_slice. */
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
/* PLN_DTYPE_NONE for an unknown name. */
PLN_API pln_dtype pln_dtype_find(pln_slice name);
/* The same with vector lanes, as in "float32x4"; *lanes is 1 without them.
 * TVM's aliases are accepted: "int", "uint" and "float" have 32 bits, "uint1"
 * is bool. */
PLN_API pln_dtype pln_dtype_find_vector(pln_slice name, uint32_t *lanes);
/* Bits of one element as stored. */
PLN_API uint32_t pln_dtype_bits(pln_dtype dtype);

/* A dense array of elements in row-major order, little-endian. Reference
 * counted; immutable once a second reference exists. A splat stores one element
 * that stands for all elements. A view reads a mapped file and keeps it
 * mapped. */
typedef struct pln_tensor pln_tensor;

/* A new tensor, zeroed, 64-byte aligned. Dims are >= 0; rank 0 is a scalar.
 * PLN_ERR_ARGUMENT when the size overflows. */
PLN_API pln_status pln_tensor_new(pln_engine *engine, pln_dtype dtype,
                                  uint32_t rank, const int64_t *dims,
                                  pln_tensor **out) PLN_CHECKED;
/* The same, filled from `size` bytes (strings: an array of pln_slice, whose
 * text is copied). PLN_ERR_ARGUMENT when `size` does not match the dims. */
PLN_API pln_status pln_tensor_from_bytes(pln_engine *engine, pln_dtype dtype,
                                         uint32_t rank, const int64_t *dims,
                                         const void *data, size_t size,
                                         pln_tensor **out) PLN_CHECKED;
/* A splat: all elements equal `*element`. The element is in stored form; for
 * packed dtypes a byte with the element in its low bits, for strings a
 * pln_slice. */
PLN_API pln_status pln_tensor_splat(pln_engine *engine, pln_dtype dtype,
                                    uint32_t rank, const int64_t *dims,
                                    const void *element,
                                    pln_tensor **out) PLN_CHECKED;
/* The distribution of random elements. UNIFORM: from `low` to `high`, both
 * inclusive for integers. NORMAL: an approximation of the normal distribution
 * with that mean and standard deviation, limited to 3.5 deviations; integers
 * are rounded. Integers stay within the range of their dtype. */
typedef enum pln_random_kind {
  PLN_RANDOM_UNIFORM = 0,
  PLN_RANDOM_NORMAL
} pln_random_kind;

typedef struct pln_random_spec {
  pln_random_kind kind;
  double low, high;       /* UNIFORM */
  double mean, deviation; /* NORMAL */
  uint64_t seed;
} pln_random_spec;

/* A tensor of random elements; equal seeds give equal tensors on every machine.
 * Integers, bool, and floats of 16 bits and more, else PLN_ERR_UNSUPPORTED.
 * PLN_ERR_ARGUMENT for invalid parameters of the distribution. */
PLN_API pln_status pln_tensor_random(pln_engine *engine, pln_dtype dtype,
                                     uint32_t rank, const int64_t *dims,
                                     const pln_random_spec *spec,
                                     pln_tensor **out) PLN_CHECKED;
PLN_API pln_tensor *pln_tensor_retain(const pln_tensor *tensor);
PLN_API void pln_tensor_release(pln_tensor *tensor);
PLN_API pln_dtype pln_tensor_dtype(const pln_tensor *tensor);
PLN_API uint32_t pln_tensor_rank(const pln_tensor *tensor);
PLN_API const int64_t *pln_tensor_dims(const pln_tensor *tensor);
/* The number of elements, and their size in bytes. A splat counts as if all
 * elements were stored. */
PLN_API size_t pln_tensor_count(const pln_tensor *tensor);
PLN_API size_t pln_tensor_bytes(const pln_tensor *tensor);
PLN_API bool pln_tensor_is_splat(const pln_tensor *tensor);
/* The stored elements: one for a splat, and for a splat of a packed dtype a
 * byte filled with it. Opens an external file on first use; PLN_ERR_IO with a
 * diagnostic when that fails. A view may be unaligned. */
PLN_API pln_status pln_tensor_data(const pln_tensor *tensor,
                                   const void **out) PLN_CHECKED;
/* The elements for writing, if the tensor was made by pln_tensor_new and has
 * one reference; else NULL. */
PLN_API void *pln_tensor_writable(pln_tensor *tensor);
/* Same dtype, dims and bytes; floats are compared bitwise. Tensors over 1 KiB
 * are equal only when they are the same buffer or file range. */
PLN_API bool pln_tensor_equal(const pln_tensor *a, const pln_tensor *b);

/* ----------------------------------------------------------- types, dims */

/* An integer known at compile time or by name: a constant (possibly negative in
 * shape arithmetic), PLN_DIM_UNKNOWN, or an interned expression over named
 * symbols in normal form. Equal expressions have equal ids. */
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

/* The symbolic dim of that name, an integer >= 0. Equal names give equal dims;
 * "" gives PLN_DIM_UNKNOWN. */
PLN_API pln_status pln_dim_named(pln_engine *engine, pln_slice name,
                                 pln_dim *out) PLN_CHECKED;
/* a op b, simplified. PLN_DIM_UNKNOWN when an operand is unknown, on overflow
 * and on division by zero. Fails only when out of memory. Symbols stand for
 * integers >= 0. */
PLN_API pln_status pln_dim_binary(pln_engine *engine, pln_dim_op op, pln_dim a,
                                  pln_dim b, pln_dim *out) PLN_CHECKED;
/* `dim` with the symbol `name` replaced by `value`. */
PLN_API pln_status pln_dim_substitute(pln_engine *engine, pln_dim dim,
                                      pln_symbol name, pln_dim value,
                                      pln_dim *out) PLN_CHECKED;
/* The name when `dim` is a bare symbol, else 0. */
PLN_API pln_symbol pln_dim_name(const pln_engine *engine, pln_dim dim);
/* A proven lower bound of `dim`; INT64_MIN when none is known. */
PLN_API int64_t pln_dim_lower_bound(const pln_engine *engine, pln_dim dim);

/* Interned. 0 is the incomplete type: nothing is known. */
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
  PLN_TYPE_HOLE,       /* an incomplete type with an identity, for
                        * unification */
  PLN_TYPE_PRIM,       /* TIR: dtype and lanes; no dtype: a handle */
  PLN_TYPE_POINTER,    /* TIR: the element type; symbol: the storage scope */
  PLN_N_TYPE_KINDS
} pln_type_kind;

/* The kind of a type variable; the numbers are TVM's TypeKind. */
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
/* The same tensor type with vector elements of that many lanes (float32x4); 1:
 * scalar elements. No operator computes on vector elements. */
PLN_API pln_status pln_type_with_lanes(pln_engine *engine, pln_type tensor,
                                       uint32_t lanes,
                                       pln_type *out) PLN_CHECKED;
/* Any other kind, from its parts and symbol as listed above (SPARSE: one part,
 * the tensor type it stores). */
PLN_API pln_status pln_type_make(pln_engine *engine, pln_type_kind kind,
                                 pln_symbol symbol, uint32_t n_parts,
                                 const pln_type *parts,
                                 pln_type *out) PLN_CHECKED;
/* A new type variable, distinct from all others; `name` is a hint. A type
 * variable made by pln_type_make has number 0 and equals those of the same
 * name. */
PLN_API pln_status pln_type_var(pln_engine *engine, pln_symbol name,
                                pln_type_var_kind kind,
                                pln_type *out) PLN_CHECKED;
/* The name of a type that a module defines. Its kind is AdtHandle when made by
 * pln_type_make; type names of other kinds take no arguments. */
PLN_API pln_status pln_type_global_var(pln_engine *engine, pln_symbol name,
                                       pln_type_var_kind kind,
                                       pln_type *out) PLN_CHECKED;
/* A function type with type parameters (type variables) and constraints
 * (relations). pln_type_n_parts and pln_type_part_at cover the parameters and
 * the result only. PLN_ERR_LIMIT beyond 65,535 type parameters. */
PLN_API pln_status pln_type_func(pln_engine *engine, uint32_t n_params,
                                 const pln_type *params, pln_type ret,
                                 uint32_t n_vars, const pln_type *vars,
                                 uint32_t n_constraints,
                                 const pln_type *constraints,
                                 pln_type *out) PLN_CHECKED;
/* A constraint over its arguments: the first n_inputs are inputs and determine
 * the others. When a function with the constraint is called, it is solved by
 * the type inference of the operator whose TVM relation has that name; an
 * unknown name is an error only then. `attrs` are in the form of Relay text. */
PLN_API pln_status pln_type_relation(pln_engine *engine, pln_symbol name,
                                     uint32_t n, const pln_type *args,
                                     uint32_t n_inputs, pln_attrs attrs,
                                     pln_type *out) PLN_CHECKED;
/* A new incomplete type, distinct from all others. */
PLN_API pln_status pln_type_hole(pln_engine *engine, pln_type *out) PLN_CHECKED;
/* A TIR scalar or vector type; PLN_DTYPE_NONE is a handle. */
PLN_API pln_status pln_type_prim(pln_engine *engine, pln_dtype dtype,
                                 uint32_t lanes, pln_type *out) PLN_CHECKED;
PLN_API pln_type_kind pln_type_get_kind(const pln_engine *engine,
                                        pln_type type);
PLN_API pln_dtype pln_type_dtype(const pln_engine *engine, pln_type type);
/* -1 when unknown or when the type is not a tensor. */
PLN_API int32_t pln_type_rank(const pln_engine *engine, pln_type type);
/* An array of rank dims; valid as long as the engine. */
PLN_API const pln_dim *pln_type_dims(const pln_engine *engine, pln_type type);
PLN_API uint32_t pln_type_n_parts(const pln_engine *engine, pln_type type);
PLN_API pln_type pln_type_part_at(const pln_engine *engine, pln_type type,
                                  uint32_t index);
PLN_API pln_symbol pln_type_symbol(const pln_engine *engine, pln_type type);
/* FUNC: its type parameters and constraints. */
PLN_API uint32_t pln_type_n_vars(const pln_engine *engine, pln_type type);
PLN_API pln_type pln_type_var_at(const pln_engine *engine, pln_type type,
                                 uint32_t index);
PLN_API uint32_t pln_type_n_constraints(const pln_engine *engine,
                                        pln_type type);
PLN_API pln_type pln_type_constraint_at(const pln_engine *engine, pln_type type,
                                        uint32_t index);
/* VAR, HOLE: the identity; RELATION: the number of inputs; PRIM: the lanes;
 * TENSOR: the lanes when there are several, else 0. */
PLN_API uint32_t pln_type_number(const pln_engine *engine, pln_type type);
/* VAR, GLOBAL_VAR */
PLN_API pln_type_var_kind pln_type_var_get_kind(const pln_engine *engine,
                                                pln_type type);
/* RELATION: its attributes. */
PLN_API pln_attrs pln_type_attrs(const pln_engine *engine, pln_type type);
/* Equality as in Relay: up to renaming of bound type variables and, with
 * `map_free_vars`, of free ones. Equal types have equal hashes. The hash
 * ignores the names of type variables and the identity of incomplete types. */
PLN_API pln_status pln_type_equal(pln_engine *engine, pln_type a, pln_type b,
                                  bool map_free_vars, bool *out) PLN_CHECKED;
PLN_API uint64_t pln_type_hash(const pln_engine *engine, pln_type type);
/* The meet of two types: everything that either of them says. *conflict: they
 * contradict each other, and *out is `a`. */
PLN_API pln_status pln_type_meet(pln_engine *engine, pln_type a, pln_type b,
                                 pln_type *out, bool *conflict) PLN_CHECKED;

/* Interned: the integers that a small integer tensor (rank 0 or 1) is known to
 * hold, each a pln_dim. 0: unknown. */
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
  PLN_ATTR_REF,   /* ref_attr_name: an attribute of the enclosing function */
  PLN_ATTR_GRAPH, /* a nested function, as the index of its operand */
  PLN_ATTR_DICT,  /* nested attributes */
  PLN_ATTR_BYTES, /* an undecoded value (sparse tensors) */
  PLN_ATTR_INTS,
  PLN_ATTR_FLOATS,
  PLN_ATTR_STRINGS,
  PLN_ATTR_TENSORS,
  PLN_ATTR_TYPES,
  PLN_ATTR_GRAPHS,
  PLN_ATTR_BOOL,   /* in functions and lists; operators use an INT */
  PLN_ATTR_LIST,   /* in lists, or with values of several kinds */
  PLN_ATTR_OBJECT, /* an object of TVM, kept as JSON */
  PLN_N_ATTR_KINDS
} pln_attr_kind;

/* One attribute. `count` is the length of the list kinds (INTS ... GRAPHS).
 * `onnx_type` is AttributeProto.type of a REF, which has no value of its
 * own. */
typedef struct pln_attr {
  pln_symbol name;
  uint8_t kind; /* pln_attr_kind */
  uint8_t onnx_type;
  uint32_t count;
  union {
    int64_t i;         /* INT, GRAPH; BOOL: 0 or 1 */
    double f;          /* an operator's holds a float32, as in ONNX */
    pln_slice s;       /* STRING, BYTES; OBJECT: TVM's JSON of the nodes that it
                        * reaches, numbered from 0, which is the object
                        * itself */
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
 * retained by it. */
/* In any order; two entries of one name are PLN_ERR_ARGUMENT. */
PLN_API pln_status pln_attrs_make(pln_engine *engine, uint32_t count,
                                  const pln_attr *entries,
                                  pln_attrs *out) PLN_CHECKED;
/* An interned list: values in the given order, for a LIST. Their names are
 * ignored and may be 0. An empty list is 0. */
PLN_API pln_status pln_attrs_list(pln_engine *engine, uint32_t count,
                                  const pln_attr *items,
                                  pln_attrs *out) PLN_CHECKED;
/* Dictionaries that Relay considers equal have equal hashes. Floats are left
 * out, because Relay compares them with a tolerance. The hash is the same in
 * every run. */
/* True if the dictionary contains a REF. Its value is known only at a call of
 * the enclosing function. */
PLN_API bool pln_attrs_has_refs(const pln_engine *engine, pln_attrs attrs);
/* A copy in which each REF is replaced by the entry of `given` that it names. A
 * REF without such an entry is left out. */
PLN_API pln_status pln_attrs_resolve(pln_engine *engine, pln_attrs attrs,
                                     pln_attrs given,
                                     pln_attrs *out) PLN_CHECKED;
PLN_API uint64_t pln_attrs_hash(const pln_engine *engine, pln_attrs attrs);
PLN_API uint32_t pln_attrs_count(const pln_engine *engine, pln_attrs attrs);
/* Entries sorted by the bytes of their names; a list's in its own order. */
PLN_API const pln_attr *pln_attrs_at(const pln_engine *engine, pln_attrs attrs,
                                     uint32_t index);
/* NULL when there is none. */
PLN_API const pln_attr *pln_attrs_find(const pln_engine *engine,
                                       pln_attrs attrs, const char *name);
/* The first returns a copy with one entry added or replaced, the second a copy
 * without the entry `name`. */
PLN_API pln_status pln_attrs_with(pln_engine *engine, pln_attrs attrs,
                                  const pln_attr *entry,
                                  pln_attrs *out) PLN_CHECKED;
PLN_API pln_status pln_attrs_without(pln_engine *engine, pln_attrs attrs,
                                     const char *name,
                                     pln_attrs *out) PLN_CHECKED;
/* The value of an INT or BOOL / FLOAT / STRING entry, else the fallback. */
PLN_API int64_t pln_attrs_int(const pln_engine *engine, pln_attrs attrs,
                              const char *name, int64_t fallback);
PLN_API double pln_attrs_float(const pln_engine *engine, pln_attrs attrs,
                               const char *name, double fallback);
PLN_API pln_slice pln_attrs_string(const pln_engine *engine, pln_attrs attrs,
                                   const char *name, const char *fallback);

/* -------------------------------------------------------------- operators */

/* A row of op/ops.def, or an opaque operator of a file that this library does
 * not know ("domain::Type"). 0 is no operator. */
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

#ifdef __cplusplus
}
#endif

#endif
