/* infer.h: the interface of type inference for operators: reading the operands
 * of a call, shape arithmetic, setting results, reporting errors.
 *
 * Unknown is not an error: an error means that the call can never be valid.
 * Every function here accepts omitted and untyped operands. */

#ifndef PLN_OP_INFER_INFER_H
#define PLN_OP_INFER_INFER_H

#include "op/op.h"

/* Shapes of more axes than this are treated as having unknown rank. */
enum { PLN_MAX_RANK = 64 };

/* A shape being computed. rank -1: unknown, and dims are undefined. */
typedef struct pln_shape {
  int32_t rank;
  pln_dim dims[PLN_MAX_RANK];
} pln_shape;

/* A list of integers that an operator takes as an argument or as an
 * attribute. */
typedef struct pln_list {
  bool given;          /* false: omitted; then count is 0 */
  bool sized;          /* count is known */
  uint32_t count;      /* 1 for a scalar */
  const int64_t *ints; /* the source of the elements; all NULL: unknown */
  const pln_tensor *tensor;
  const pln_dim *dims;
} pln_list;

/* ---------------------------------------------------------------- operands */

/* Returns true if the operand is omitted: past the end, or Absent. */
bool pln_arg_absent(const pln_infer *call, uint32_t i);
/* The type of operand `i`; 0 if omitted or unknown. Similar for dtype, rank,
 * dims. */
pln_type pln_arg_type(const pln_infer *call, uint32_t i);
pln_dtype pln_arg_dtype(const pln_infer *call, uint32_t i);
int32_t pln_arg_rank(const pln_infer *call, uint32_t i); /* -1: unknown */
const pln_dim *pln_arg_dims(const pln_infer *call, uint32_t i);
void pln_arg_shape(const pln_infer *call, uint32_t i, pln_shape *out);
/* The tensor of a Constant whose elements are in memory, else NULL. */
const pln_tensor *pln_arg_tensor(const pln_infer *call, uint32_t i);
/* The symbolic value of an integer operand of rank 0 or 1, or 0. */
pln_value pln_arg_value(const pln_infer *call, uint32_t i);
/* The same of any rank; the operand's type has its dims. */
pln_value pln_arg_any_value(const pln_infer *call, uint32_t i);

/* Argument `arg` if present (PLN_NONE: the operator has no such form), else
 * attribute `attr` (NULL: likewise). */
pln_list pln_arg_list(const pln_infer *call, uint32_t arg, const char *attr);
/* Attribute `attr`, an integer or a list of integers. */
pln_list pln_list_of_attr(pln_engine *engine, pln_attrs attrs,
                          const char *attr);
/* Element `i`, or PLN_DIM_UNKNOWN. Constants too small for a pln_dim are
 * clamped to the smallest one. */
pln_dim pln_list_at(const pln_list *list, uint32_t i);
/* Returns true if the size and all elements are constants. */
bool pln_list_known(const pln_list *list);

/* If the only operand is a tuple, as in Relay's concatenate, calls `infer` on
 * its fields. Infers nothing while the tuple's type is unknown. */
pln_status pln_infer_spread(pln_infer *call, pln_infer_fn infer) PLN_CHECKED;

/* Attributes of the call. */
int64_t pln_call_int(const pln_infer *call, const char *name, int64_t fallback);
/* NULL if the attribute is missing. */
const int64_t *pln_call_ints(const pln_infer *call, const char *name,
                             uint32_t *count);
bool pln_call_has(const pln_infer *call, const char *name);
/* A dtype given by name; `fallback` if missing or empty. */
pln_dtype pln_call_dtype(const pln_infer *call, const char *name,
                         pln_dtype fallback);
bool pln_call_string_is(const pln_infer *call, const char *name,
                        const char *fallback, const char *text);

/* ------------------------------------------------------------------ errors */

/* "'transpose': axes is ..." */
pln_status pln_call_error(const pln_infer *call, const char *format, ...)
    PLN_PRINTF(2, 3);
/* Checks a known rank: it must be `rank`; it must be within [least, most]. */
pln_status pln_arg_expect_rank(const pln_infer *call, uint32_t i,
                               int32_t rank) PLN_CHECKED;
pln_status pln_arg_expect_rank_within(const pln_infer *call, uint32_t i,
                                      int32_t least, int32_t most) PLN_CHECKED;
/* The operands [first, end) that are present must have the same dtype; *out is
 * it, or PLN_DTYPE_NONE if none is known. */
pln_status pln_args_one_dtype(const pln_infer *call, uint32_t first,
                              uint32_t end, pln_dtype *out) PLN_CHECKED;
/* Vectors among the operands [first, end) must be as long as an axis of operand
 * 0, if both are known. */
pln_status pln_args_channels(const pln_infer *call, uint32_t first,
                             uint32_t end, int64_t axis) PLN_CHECKED;
/* Normalizes `axis` from [-rank, rank) to [0, rank). The rank must be known. */
pln_status pln_call_axis(const pln_infer *call, int64_t axis, int32_t rank,
                         int32_t *out) PLN_CHECKED;

/* ------------------------------------------------------------------ shapes */

void pln_shape_unknown(pln_shape *shape);              /* rank -1 */
void pln_shape_ranked(pln_shape *shape, int64_t rank); /* dims unknown */
pln_status pln_infer_dim(const pln_infer *call, pln_dim_op op, pln_dim a,
                         pln_dim b, pln_dim *out) PLN_CHECKED;
/* The product of dims [begin, end). */
pln_status pln_infer_product(const pln_infer *call, const pln_dim *dims,
                             int32_t begin, int32_t end,
                             pln_dim *out) PLN_CHECKED;
/* Merges two dims into *dim: a constant takes precedence over a name,
 * a name over an expression, and that over an unknown. Reports an error at
 * operand `i` if two constants differ. */
pln_status pln_infer_same_dim(const pln_infer *call, uint32_t i, pln_dim *dim,
                              pln_dim other) PLN_CHECKED;
/* The broadcast of two extents: equal extents stay, 1 gives the other, a
 * constant above 1 takes precedence over a symbol, otherwise unknown. Reports
 * an error at operand `i`, which has extent `b`, if they do not broadcast. */
pln_status pln_infer_broadcast_dim(const pln_infer *call, uint32_t i, pln_dim a,
                                   pln_dim b, pln_dim *out) PLN_CHECKED;
/* Broadcasts *shape with `other`, the shape of operand `i`. */
pln_status pln_infer_broadcast_shape(const pln_infer *call, uint32_t i,
                                     pln_shape *shape,
                                     const pln_shape *other) PLN_CHECKED;
/* The broadcast of operands [first, end). */
pln_status pln_args_broadcast(const pln_infer *call, uint32_t first,
                              uint32_t end, pln_shape *out) PLN_CHECKED;

/* ----------------------------------------------------------------- results */

/* Sets the type of result `i`; ignored if the call does not have it. */
pln_status pln_result_tensor(pln_infer *call, uint32_t i, pln_dtype dtype,
                             const pln_shape *shape) PLN_CHECKED;
pln_status pln_result_scalar(pln_infer *call, uint32_t i,
                             pln_dtype dtype) PLN_CHECKED;
/* Sets the type that the call requires of operand `i`, for InferType; ignored
 * if the operand's type is known or inference does not ask for it. */
pln_status pln_set_operand_type(pln_infer *call, uint32_t i, pln_dtype dtype,
                                const pln_shape *shape) PLN_CHECKED;
/* The same for a vector of `extent` elements. */
pln_status pln_set_operand_vector(pln_infer *call, uint32_t i, pln_dtype dtype,
                                  pln_dim extent) PLN_CHECKED;
/* The same for a function: `n` parameter types and that of its result, 0 for
 * any. Parameters whose types are known keep them. */
pln_status pln_set_operand_func(pln_infer *call, uint32_t i, uint32_t n,
                                const pln_type *parts) PLN_CHECKED;
/* The same for operands [first, end): vectors as long as an axis of operand
 * 0. */
pln_status pln_set_operand_channels(pln_infer *call, uint32_t first,
                                    uint32_t end, int64_t axis) PLN_CHECKED;
/* Gives result `i` the type of operand `arg`. */
void pln_result_like(pln_infer *call, uint32_t i, uint32_t arg);
/* Gives result `i` the shape of operand `arg` and that dtype. */
pln_status pln_result_shaped_like(pln_infer *call, uint32_t i, uint32_t arg,
                                  pln_dtype dtype) PLN_CHECKED;
/* The number of results of the call, at least 1. */
uint32_t pln_call_n_results(const pln_infer *call);

/* --------------------------------------------------------- symbolic values */

/* Called after the result's type is set. Each function sets call->value if the
 * operands are known well enough and the result is an integer tensor of rank 0
 * or 1 (a boolean one for comparisons). */

/* Operands 0 and 1 elementwise, with broadcasting. */
pln_status pln_infer_value_binary(pln_infer *call, pln_dim_op op) PLN_CHECKED;
/* Any number of operands combined with `op`: add, minimum, maximum. */
pln_status pln_infer_value_variadic(pln_infer *call, pln_dim_op op) PLN_CHECKED;
pln_status pln_infer_value_negative(pln_infer *call) PLN_CHECKED;
/* ONNX Mod: the sign of the divisor, or with fmod=1 of the dividend. */
pln_status pln_infer_value_mod(pln_infer *call) PLN_CHECKED;
typedef enum pln_order {
  PLN_ORDER_EQUAL,
  PLN_ORDER_LESS,
  PLN_ORDER_LESS_EQUAL,
  PLN_ORDER_GREATER,
  PLN_ORDER_GREATER_EQUAL
} pln_order;
/* 0 or 1 where the order of the elements is provable, else unknown. */
pln_status pln_infer_value_compare(pln_infer *call,
                                   pln_order order) PLN_CHECKED;
/* All elements of operand 0 reduced with `op` (ADD, MUL, MIN, MAX). */
pln_status pln_infer_value_reduce(pln_infer *call, pln_dim_op op) PLN_CHECKED;
/* Sets the value of a result of that rank with `count` elements, if one is
 * known and count is at most PLN_VALUE_MAX. */
enum { PLN_VALUE_MAX = 64 };
pln_status pln_infer_set_value(pln_infer *call, uint32_t rank, uint32_t count,
                               const pln_dim *elements) PLN_CHECKED;
/* The distances between elements of operand 0 along its axes, in row-major
 * order; false if it has no symbolic value. A value has at most PLN_VALUE_MAX
 * elements, and its dims are known. */
bool pln_infer_value_strides(const pln_infer *call, pln_dim *strides);
/* Sets the result's value to elements of that of operand 0: the first one at
 * `begin`, `shape` of them, all inside. */
pln_status pln_infer_value_strided(pln_infer *call, const pln_shape *shape,
                                   pln_dim begin,
                                   const pln_dim *strides) PLN_CHECKED;

/* The inference functions of all operators. */
#define OP(ID, name, min, max, attrs, traits, infer, kernel, doc) \
  pln_status pln_infer_##infer(pln_infer *call);
#include "op/ops.def"

#endif
