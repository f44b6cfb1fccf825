/* infer.h: what the type inference of all families stands on: reading the
 * operands of a call, arithmetic on shapes, setting results, refusing.
 *
 * What is not known stays unknown and is no error; an error means that the call
 * can never be valid. Everything here accepts omitted and untyped operands. */

#ifndef PLN_OP_INFER_INFER_H
#define PLN_OP_INFER_INFER_H

#include "op/op.h"

/* Shapes of more axes than this are treated as of unknown rank. */
enum { PLN_MAX_RANK = 64 };

/* A shape being computed. rank -1: unknown, dims say nothing. */
typedef struct pln_shape {
  int32_t rank;
  pln_dim dims[PLN_MAX_RANK];
} pln_shape;

/* A list of integers that a call gets as an argument or as an attribute. */
typedef struct pln_list {
  bool given;          /* false: omitted; then count is 0 */
  bool sized;          /* count is known */
  uint32_t count;      /* of a scalar: 1 */
  const int64_t *ints; /* where the elements are; all NULL: unknown */
  const pln_tensor *tensor;
  const pln_dim *dims;
} pln_list;

/* ---------------------------------------------------------------- operands */

/* The operand is left out: past the end, or Absent. */
bool pln_arg_absent(const pln_infer *call, uint32_t i);
/* 0 when omitted or not known; a tensor's dtype, rank, dims likewise. */
pln_type pln_arg_type(const pln_infer *call, uint32_t i);
pln_dtype pln_arg_dtype(const pln_infer *call, uint32_t i);
int32_t pln_arg_rank(const pln_infer *call, uint32_t i); /* -1: unknown */
const pln_dim *pln_arg_dims(const pln_infer *call, uint32_t i);
void pln_arg_shape(const pln_infer *call, uint32_t i, pln_shape *out);
/* The tensor of a Constant whose elements are at hand, else NULL. */
const pln_tensor *pln_arg_tensor(const pln_infer *call, uint32_t i);
/* The integers it is known to hold, or 0. */
pln_value pln_arg_value(const pln_infer *call, uint32_t i);

/* Argument `arg` (PLN_NONE: there is no such form) when present, else attribute
 * `attr` (NULL: likewise). */
pln_list pln_arg_list(const pln_infer *call, uint32_t arg, const char *attr);
/* Attribute `attr` alone, which is an integer or a list of such. */
pln_list pln_list_of_attr(pln_engine *engine, pln_attrs attrs,
                          const char *attr);
/* Element `i`; PLN_DIM_UNKNOWN when not known. Constants too small to be a
 * pln_dim come as the smallest one. */
pln_dim pln_list_at(const pln_list *list, uint32_t i);
/* The size and all elements are constants. */
bool pln_list_known(const pln_list *list);

/* Calls `infer` on the fields of the only operand when that is a tuple, as
 * Relay gives what is joined; nothing is inferred while its type is not known.
 */
pln_status pln_infer_spread(pln_infer *call, pln_infer_fn infer) PLN_CHECKED;

/* Attributes of the call. */
int64_t pln_call_int(const pln_infer *call, const char *name, int64_t fallback);
/* NULL when there is none. */
const int64_t *pln_call_ints(const pln_infer *call, const char *name,
                             uint32_t *count);
bool pln_call_has(const pln_infer *call, const char *name);
/* A dtype given by name; `fallback` when it is not, or is empty. */
pln_dtype pln_call_dtype(const pln_infer *call, const char *name,
                         pln_dtype fallback);
bool pln_call_string_is(const pln_infer *call, const char *name,
                        const char *fallback, const char *text);

/* ------------------------------------------------------------------ errors */

/* PLN_ERR_TYPE: "'concatenate', operand 1: expected rank 4, got 3". */
pln_status pln_arg_error(const pln_infer *call, uint32_t i, const char *format,
                         ...) PLN_PRINTF(3, 4);
/* "'transpose': perm is ..." */
pln_status pln_call_error(const pln_infer *call, const char *format, ...)
    PLN_PRINTF(2, 3);
/* A known rank must be `rank`; must be within [least, most]. */
pln_status pln_arg_expect_rank(const pln_infer *call, uint32_t i,
                               int32_t rank) PLN_CHECKED;
pln_status pln_arg_expect_rank_within(const pln_infer *call, uint32_t i,
                                      int32_t least, int32_t most) PLN_CHECKED;
/* The operands [first, end) that are present must have one dtype; *out is it,
 * or PLN_DTYPE_NONE when none is known. */
pln_status pln_args_one_dtype(const pln_infer *call, uint32_t first,
                              uint32_t end, pln_dtype *out) PLN_CHECKED;
/* Vectors among the operands [first, end) must be as long as an axis of operand
 * 0, where both are known. */
pln_status pln_args_channels(const pln_infer *call, uint32_t first,
                             uint32_t end, int64_t axis) PLN_CHECKED;
/* `axis` within [-rank, rank) as an index from 0; rank must be known. */
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
/* *dim becomes what both say: a constant wins over what is not known. An error
 * naming operand `i` when two constants differ. */
pln_status pln_infer_same_dim(const pln_infer *call, uint32_t i, pln_dim *dim,
                              pln_dim other) PLN_CHECKED;
/* What two extents broadcast to: equal stays, 1 gives the other, a constant
 * above 1 wins over a symbol, else unknown. Operand `i` gave `b`. */
pln_status pln_infer_broadcast_dim(const pln_infer *call, uint32_t i, pln_dim a,
                                   pln_dim b, pln_dim *out) PLN_CHECKED;
/* *shape becomes its broadcast with `other`, which operand `i` gave. */
pln_status pln_infer_broadcast_shape(const pln_infer *call, uint32_t i,
                                     pln_shape *shape,
                                     const pln_shape *other) PLN_CHECKED;
/* The broadcast of operands [first, end). */
pln_status pln_args_broadcast(const pln_infer *call, uint32_t first,
                              uint32_t end, pln_shape *out) PLN_CHECKED;

/* ----------------------------------------------------------------- results */

/* Sets result `i`; one that the call does not have is passed over. */
pln_status pln_result_tensor(pln_infer *call, uint32_t i, pln_dtype dtype,
                             const pln_shape *shape) PLN_CHECKED;
pln_status pln_result_scalar(pln_infer *call, uint32_t i,
                             pln_dtype dtype) PLN_CHECKED;
/* What the call says of operand `i`, for InferType; passed over when something
 * is known of the operand, or nobody asks. */
pln_status pln_set_operand_type(pln_infer *call, uint32_t i, pln_dtype dtype,
                                const pln_shape *shape) PLN_CHECKED;
/* The same of a vector of `extent` elements. */
pln_status pln_set_operand_vector(pln_infer *call, uint32_t i, pln_dtype dtype,
                                  pln_dim extent) PLN_CHECKED;
/* The same of operands [first, end): vectors as long as an axis of operand 0.
 */
pln_status pln_set_operand_channels(pln_infer *call, uint32_t first,
                                    uint32_t end, int64_t axis) PLN_CHECKED;
/* Result `i` has the type of operand `arg`. */
void pln_result_like(pln_infer *call, uint32_t i, uint32_t arg);
/* Result `i` has the shape of operand `arg` and that dtype. */
pln_status pln_result_shaped_like(pln_infer *call, uint32_t i, uint32_t arg,
                                  pln_dtype dtype) PLN_CHECKED;
/* How many results the call has: at least 1. */
uint32_t pln_call_n_results(const pln_infer *call);

/* --------------------------------------------------------- symbolic values */

/* Called when the result's type is set. Each sets call->value when the operands
 * are known well enough and the result is an integer tensor of rank 0 or 1 (a
 * boolean one for comparisons), else leaves it. */

/* Operands 0 and 1, element by element, with broadcasting. */
pln_status pln_infer_value_binary(pln_infer *call, pln_dim_op op) PLN_CHECKED;
/* All operands folded with `op`: add, minimum, maximum of any number. */
pln_status pln_infer_value_variadic(pln_infer *call, pln_dim_op op) PLN_CHECKED;
pln_status pln_infer_value_negative(pln_infer *call) PLN_CHECKED;
/* ONNX Mod: the divisor's sign, or with fmod=1 the dividend's. */
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
/* All elements of operand 0 folded into one with `op` (ADD, MUL, MIN, MAX). */
pln_status pln_infer_value_reduce(pln_infer *call, pln_dim_op op) PLN_CHECKED;
/* `count` elements of a result of that rank; a value when one is known and
 * count is not above PLN_VALUE_MAX. */
enum { PLN_VALUE_MAX = 64 };
pln_status pln_infer_set_value(pln_infer *call, uint32_t rank, uint32_t count,
                               const pln_dim *elements) PLN_CHECKED;

/* The inference functions of all rows. */
#define OP(ID, name, min, max, attrs, traits, infer, kernel, doc) \
  pln_status pln_infer_##infer(pln_infer *call);
#include "op/ops.def"

#endif
