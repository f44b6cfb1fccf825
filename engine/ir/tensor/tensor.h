/* tensor.h: what tensors are made of; for ir, onnx and the evaluator. */

#ifndef PLN_IR_TENSOR_TENSOR_H
#define PLN_IR_TENSOR_TENSOR_H

#include "base/base.h"
#include "base/file.h"
#include "base/half.h"

/* A constant up to this size is identified by content, above it by place. */
#define PLN_TENSOR_BY_CONTENT 1024

/* Where external data lies; opened by the first pln_tensor_data. */
typedef struct pln_external {
  pln_symbol directory; /* of the model */
  pln_symbol location;  /* as the model gives it */
  uint64_t offset;
  uint64_t length; /* UINT64_MAX: not given, what dims ask for */
} pln_external;

struct pln_tensor {
  pln_engine *engine;
  uint32_t refs;
  uint8_t dtype; /* pln_dtype */
  bool splat;
  bool owned;    /* data is this tensor's own block */
  bool external; /* not opened yet: `where` says what to open */
  uint32_t rank;
  size_t count; /* elements */
  size_t bytes; /* as if written out */
  /* Of a splat one element: a string's slice, a byte full of packed ones. */
  const void *data;
  pln_file *file; /* pinned by a view, or NULL */
  /* Whose block it is that data points into, or NULL; borrows from nobody. */
  struct pln_tensor *lender;
  const struct pln_tensor
      *parent_tensor; /* of a child's view: the parent's tensor */
  uint64_t offset;    /* of a view in its file; of an owned one in its block */
  size_t block;       /* bytes allocated at data, when owned */
  pln_external where;
  int64_t dims[]; /* rank of them */
};

/* pln_tensor_new without the zeros, for those who write every element. */
pln_status pln_tensor_unset(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                            const int64_t *dims, pln_tensor **out) PLN_CHECKED;
/* A view of `file` at `offset`; pins the file. PLN_ERR_FORMAT when dims ask
 * for another size than `size`, or the slice lies outside of the file. Not for
 * strings. */
pln_status pln_tensor_view(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                           const int64_t *dims, pln_file *file, uint64_t offset,
                           uint64_t size, pln_tensor **out) PLN_CHECKED;
pln_status pln_tensor_external(pln_engine *engine, pln_dtype dtype,
                               uint32_t rank, const int64_t *dims,
                               const pln_external *where,
                               pln_tensor **out) PLN_CHECKED;
/* The same elements under other dims, as many; shared, never copied. */
pln_status pln_tensor_reshaped(const pln_tensor *tensor, uint32_t rank,
                               const int64_t *dims,
                               pln_tensor **out) PLN_CHECKED;
/* Elements and bytes of dims; PLN_ERR_ARGUMENT on a negative dim or overflow
 * (more than INT64_MAX / 16 bytes). Reports nothing. */
pln_status pln_tensor_size(pln_dtype dtype, uint32_t rank, const int64_t *dims,
                           size_t *count, size_t *bytes) PLN_CHECKED;
/* The same tensor written out when it is a splat; else itself, retained. */
pln_status pln_tensor_dense(const pln_tensor *tensor,
                            pln_tensor **out) PLN_CHECKED;
/* Bytes of what a splat of that dtype repeats: an element, or a byte full of
 * packed ones. */
size_t pln_splat_bytes(pln_dtype dtype);
/* The last byte of a packed splat written out: bits behind the last element are
 * 0. */
uint8_t pln_splat_last_byte(const pln_tensor *splat);
/* Element `index` of an integer or bool tensor; false for other dtypes. The
 * tensor's data must be at hand (small constants always are). */
bool pln_tensor_int(const pln_tensor *tensor, size_t index, int64_t *out);
/* Whether it is compared by what it holds: a small one that can be read. What
 * lies outside is opened for that; nothing is reported. */
bool pln_tensor_by_content(const pln_tensor *tensor);
/* Same dtype, dims and elements, however large they are: reads them, unless
 * both are the same slice of a file. False, too, when one cannot be read. */
bool pln_tensor_same(const pln_tensor *a, const pln_tensor *b);
/* Hash that agrees with pln_tensor_equal. */
uint64_t pln_tensor_hash(const pln_tensor *tensor);

#endif
