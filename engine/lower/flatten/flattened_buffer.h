/* flattened_buffer.h: Buffers with one dimension for each group of axes, and
 * the indices into them (TVM's Buffer.get_flattened_buffer and offset_of). */

#ifndef PLN_LOWER_FLATTEN_FLATTENED_BUFFER_H
#define PLN_LOWER_FLATTEN_FLATTENED_BUFFER_H

#include "arith/iter/index_map.h"
#include "ir/tir/tir.h"

/* Memory is bytes: bool is kept as int8. */
pln_type pln_storage_type(pln_engine *engine, pln_type element);

/* The product of extents, in the wider of their dtypes, as TVM's operators
 * make it. */
pln_status pln_multiply_extents(pln_builder *b, pln_ref x, pln_ref y,
                                pln_ref *out) PLN_CHECKED;

/* *out: the flattened Buffer over the same data; unless `always`, `buffer`
 * itself if it is flat already and its elements are stored as they are. */
pln_status pln_flatten_buffer(pln_builder *b, pln_ref buffer, bool always,
                              pln_ref *out) PLN_CHECKED;
/* out[0 .. *n_out): the indices into the flattened Buffer, simplified; room for
 * PLN_MOST_AXES. `n` indices into `buffer`; they may be vectors. */
pln_status pln_flatten_indices(pln_analyzer *a, pln_builder *b, pln_ref buffer,
                               uint32_t n, const pln_ref *indices, pln_ref *out,
                               uint32_t *n_out) PLN_CHECKED;

#endif
