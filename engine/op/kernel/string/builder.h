/* builder.h: a tensor of strings whose texts are made one after another. */

#ifndef PLN_OP_KERNEL_STRING_BUILDER_H
#define PLN_OP_KERNEL_STRING_BUILDER_H

#include "op/kernel/kernel.h"

typedef struct pln_string_builder {
  pln_buffer buffer;
  pln_slice *slices;  /* only sizes, until all are there */
  size_t room, ended; /* strings that there may be, that there are */
  size_t begin;       /* of the present one */
} pln_string_builder;

/* For up to `room` strings. Ended exactly once when begun well. */
pln_status pln_string_builder_begin(pln_engine *engine, size_t room,
                                    pln_string_builder *out) PLN_CHECKED;
/* More of the present string; then on to the next one. */
pln_status pln_string_builder_add(pln_string_builder *texts, const char *data,
                                  size_t size) PLN_CHECKED;
void pln_string_builder_next(pln_string_builder *texts);
/* Result 0: the strings so far, as many as dims say. */
pln_status pln_string_builder_result(pln_string_builder *texts,
                                     pln_kernel_call *call, uint32_t rank,
                                     const int64_t *dims) PLN_CHECKED;
void pln_string_builder_end(pln_string_builder *texts);

#endif
