/* builder.h: builds a tensor of strings, one string after the other. */

#ifndef PLN_OP_KERNEL_STRING_BUILDER_H
#define PLN_OP_KERNEL_STRING_BUILDER_H

#include "op/kernel/kernel.h"

typedef struct pln_string_builder {
  pln_buffer buffer;
  pln_slice *slices;  /* sizes only, until all strings are there */
  size_t room, ended; /* allocated strings, finished strings */
  size_t begin;       /* start of the current string */
} pln_string_builder;

/* For up to `room` strings. After success, end it exactly once. */
pln_status pln_string_builder_begin(pln_engine *engine, size_t room,
                                    pln_string_builder *out) PLN_CHECKED;
/* Appends to the current string; finishes it. */
pln_status pln_string_builder_add(pln_string_builder *texts, const char *data,
                                  size_t size) PLN_CHECKED;
void pln_string_builder_next(pln_string_builder *texts);
/* Makes result 0 of the finished strings, as many as dims say. */
pln_status pln_string_builder_result(pln_string_builder *texts,
                                     pln_kernel_call *call, uint32_t rank,
                                     const int64_t *dims) PLN_CHECKED;
void pln_string_builder_end(pln_string_builder *texts);

#endif
