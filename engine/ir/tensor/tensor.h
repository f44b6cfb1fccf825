/* tensor.h: the struct of tensors; for ir, onnx and the evaluator. */

#ifndef PLN_IR_TENSOR_TENSOR_H
#define PLN_IR_TENSOR_TENSOR_H

#include "base/base.h"
#include "base/file/file.h"
#include "base/half.h"
#include "ir/tensor/dtype.h"

/* A constant up to this size (in bytes) is identified by content, a larger one
 * by location. */
#define PLN_TENSOR_BY_CONTENT 1024

/* Location of external data; opened by the first pln_tensor_data. */
typedef struct pln_external {
  pln_symbol directory; /* of the model */
  pln_symbol location;  /* as written in the model */
  uint64_t offset;
  uint64_t length; /* UINT64_MAX: not given, determined by the dims */
  uint64_t stamp;  /* pln_file_stamp when the model was read; 0: any version */
} pln_external;

struct pln_tensor {
  pln_engine *engine;
  uint32_t refs;
  uint8_t dtype; /* pln_dtype */
  bool splat;
  bool owned;    /* data is this tensor's own block */
  bool external; /* not opened yet: `where` is the location */
  uint32_t rank;
  size_t count; /* elements */
  size_t bytes; /* size of all elements, splats expanded */
  /* For a splat one element: a slice for strings, a full byte for packed
   * dtypes. */
  const void *data;
  pln_file *file; /* kept mapped by a view, or NULL */
  /* The tensor that owns the block of `data`, or NULL; never a view itself. */
  struct pln_tensor *view_of;
  const struct pln_tensor *parent_tensor; /* in a child: the parent's tensor */
  uint64_t offset; /* of a view: offset in its file; of an owned tensor:
                    * offset in its block */
  size_t block;    /* bytes allocated at data, when owned */
  pln_external where;
  int64_t dims[]; /* rank of them */
};

/* pln_tensor_new without zeroing, for callers that write every element. */
pln_status pln_tensor_unset(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                            const int64_t *dims, pln_tensor **out) PLN_CHECKED;
/* A view of `file` at `offset`; keeps the file mapped. PLN_ERR_FORMAT when the
 * dims do not match `size`, or the range is outside the file. Not for
 * strings. */
pln_status pln_tensor_view(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                           const int64_t *dims, pln_file *file, uint64_t offset,
                           uint64_t size, pln_tensor **out) PLN_CHECKED;
pln_status pln_tensor_external(pln_engine *engine, pln_dtype dtype,
                               uint32_t rank, const int64_t *dims,
                               const pln_external *where,
                               pln_tensor **out) PLN_CHECKED;
/* Opens the file of external data. PLN_ERR_IO when it is not the version that
 * was there when the model was read. */
pln_status pln_external_open(pln_engine *engine, const pln_external *where,
                             pln_file **out) PLN_CHECKED;
/* A view of the same elements with other dims of the same count. */
pln_status pln_tensor_reshaped(const pln_tensor *tensor, uint32_t rank,
                               const int64_t *dims,
                               pln_tensor **out) PLN_CHECKED;
/* Number and bytes of elements; PLN_ERR_ARGUMENT for a negative dim or overflow
 * (more than INT64_MAX / 16 bytes). Reports nothing. */
pln_status pln_tensor_size(pln_dtype dtype, uint32_t rank, const int64_t *dims,
                           size_t *count, size_t *bytes) PLN_CHECKED;
/* A dense copy of a splat; any other tensor itself, retained. */
pln_status pln_tensor_dense(const pln_tensor *tensor,
                            pln_tensor **out) PLN_CHECKED;
/* Bytes of the repeated unit of a splat: an element, or a byte of packed
 * ones. */
size_t pln_splat_bytes(pln_dtype dtype);
/* The last byte of an expanded packed splat; bits after the last element are
 * 0. */
uint8_t pln_splat_last_byte(const pln_tensor *splat);
/* Element `index` of an integer or bool tensor; false for other dtypes. The
 * tensor's data must be in memory, as small constants always are. */
bool pln_tensor_int(const pln_tensor *tensor, size_t index, int64_t *out);
/* number.c: element `index` of a tensor of floats of 16 bits and more, of
 * integers or bool; false for other dtypes and for integers that a double does
 * not hold. */
bool pln_tensor_number(const pln_tensor *tensor, size_t index, double *out);
/* Reads and writes an element, at any address, of a dtype of which
 * pln_dtype_is_float holds. A number is rounded, to 16 bits through float32. */
double pln_float_load(pln_dtype dtype, const char *at);
void pln_float_store(pln_dtype dtype, double number, char *at);
/* The greatest finite number of such a dtype. */
double pln_float_greatest(pln_dtype dtype);
/* A tensor whose elements are all `value`. *out is NULL if the dtype cannot
 * hold it: floats are rounded, integers are not. */
pln_status pln_tensor_full(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                           const int64_t *dims, double value,
                           pln_tensor **out) PLN_CHECKED;
/* The same of an exact integer. */
pln_status pln_tensor_full_int(pln_engine *engine, pln_dtype dtype,
                               uint32_t rank, const int64_t *dims,
                               int64_t value, pln_tensor **out) PLN_CHECKED;
/* True if every value of `from` is a value of `to`, among floats or among
 * integers. */
bool pln_dtype_contains(pln_dtype to, pln_dtype from);
/* True if the tensor is compared by content: it is small and readable. Opens
 * external data; nothing is reported. */
bool pln_tensor_by_content(const pln_tensor *tensor);
/* Same dtype, dims and elements, whatever the size: reads them unless both are
 * the same file range. False when one cannot be read. */
bool pln_tensor_same(const pln_tensor *a, const pln_tensor *b);
/* True if the tensor is consistent with the type, as far as that is known, or
 * is NULL. */
bool pln_tensor_fits(const pln_engine *engine, const pln_tensor *tensor,
                     pln_type type);
/* Its type; 0 for NULL. */
pln_status pln_tensor_type(pln_engine *engine, const pln_tensor *tensor,
                           pln_type *out) PLN_CHECKED;
/* Hash that agrees with pln_tensor_equal. */
uint64_t pln_tensor_hash(const pln_tensor *tensor);

#endif
