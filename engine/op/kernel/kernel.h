/* kernel.h: the interface of kernels: reading arguments and attributes, making
 * results, refusing.
 *
 * Arguments are dense tensors that inference accepted. Their values are not
 * trusted: what cannot be computed is refused with PLN_ERR_UNSUPPORTED. */

#ifndef PLN_OP_KERNEL_KERNEL_H
#define PLN_OP_KERNEL_KERNEL_H

#include "op/infer/infer.h"

/* Argument `i`; NULL if omitted. */
const pln_tensor *pln_kernel_arg(const pln_kernel_call *call, uint32_t i);
/* The elements of an argument that is present; the evaluator has opened its
 * data. */
static inline const void *pln_kernel_data(const pln_tensor *tensor) {
  return tensor->data;
}

/* The element type for kernels of PLN_TRAIT_UNALIGNED, whose operands may be
 * unaligned. */
typedef float pln_unaligned_float __attribute__((aligned(1), may_alias));
typedef double pln_unaligned_double __attribute__((aligned(1), may_alias));

/* Attributes of the call. */
int64_t pln_kernel_int(const pln_kernel_call *call, const char *name,
                       int64_t fallback);
double pln_kernel_float(const pln_kernel_call *call, const char *name,
                        double fallback);
bool pln_kernel_string_is(const pln_kernel_call *call, const char *name,
                          const char *fallback, const char *text);
/* Like pln_arg_list: the argument if present, else the attribute. */
pln_list pln_kernel_list(const pln_kernel_call *call, uint32_t arg,
                         const char *attr);

/* Makes result `i` with zeroed elements and returns them. Fails if a stop is
 * requested. */
pln_status pln_kernel_result(pln_kernel_call *call, uint32_t i, pln_dtype dtype,
                             uint32_t rank, const int64_t *dims,
                             void **data) PLN_CHECKED;
/* The same without zeroing, for kernels that write every element. */
pln_status pln_kernel_unset(pln_kernel_call *call, uint32_t i, pln_dtype dtype,
                            uint32_t rank, const int64_t *dims,
                            void **data) PLN_CHECKED;
/* Sets result `i` to that tensor, which is retained. */
void pln_kernel_same(pln_kernel_call *call, uint32_t i,
                     const pln_tensor *tensor);

/* Reports PLN_ERR_UNSUPPORTED: "'divide': division by zero". */
pln_status pln_kernel_refuse(const pln_kernel_call *call, const char *format,
                             ...) PLN_PRINTF(2, 3);
/* Refuses because an element has no defined result. */
pln_status pln_kernel_undefined(const pln_kernel_call *call);
/* Refuses because of the first of `indices`, from element `from` on, outside
 * [-extent, extent). */
pln_status pln_kernel_index_outside(const pln_kernel_call *call,
                                    const pln_tensor *indices, size_t from,
                                    int64_t extent);
/* Refuses: "'take' is not computed for string". */
pln_status pln_kernel_no_dtype(const pln_kernel_call *call, pln_dtype dtype);

/* Bytes of an element; 0 for dtypes smaller than a byte. */
static inline size_t pln_element_size(pln_dtype dtype) {
  uint32_t bits = pln_dtype_bits(dtype);
  return bits % 8 ? 0 : bits / 8;
}
/* Normalizes `axis` from [-rank, rank) to [0, rank); false if out of range. */
bool pln_kernel_axis(int64_t axis, uint32_t rank, uint32_t *out);
/* The product of dims [begin, end). */
size_t pln_dims_product(const int64_t *dims, uint32_t begin, uint32_t end);

/* The kernels of all operators. */
#define OP(ID, name, min, max, attrs, traits, infer, kernel, doc) \
  pln_status pln_kernel_##kernel(pln_kernel_call *call);
#include "op/ops.def"

#endif
