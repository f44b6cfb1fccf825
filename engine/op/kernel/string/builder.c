/* builder.c: builds tensors of strings. Called by string kernels. The texts are
 * in one buffer, which may move while it grows. */

#include "op/kernel/string/builder.h"

pln_status pln_string_builder_begin(pln_engine *engine, size_t room,
                                    pln_string_builder *out) {
  *out = (pln_string_builder){.room = room};
  pln_buffer_init(&out->buffer, engine);
  if (room > SIZE_MAX / sizeof *out->slices)
    return pln_nomem(engine);
  out->slices = pln_mem_zeroed(engine, room * sizeof *out->slices);
  return out->slices || !room ? PLN_OK : pln_nomem(engine);
}

pln_status pln_string_builder_add(pln_string_builder *texts, const char *data,
                                  size_t size) {
  return size ? pln_buffer_add(&texts->buffer, data, size) : PLN_OK;
}

void pln_string_builder_next(pln_string_builder *texts) {
  texts->slices[texts->ended++].size = texts->buffer.size - texts->begin;
  texts->begin = texts->buffer.size;
}

pln_status pln_string_builder_result(pln_string_builder *texts,
                                     pln_kernel_call *call, uint32_t rank,
                                     const int64_t *dims) {
  const char *text = texts->buffer.data ? texts->buffer.data : "";
  for (size_t i = 0; i < texts->ended; i++) {
    texts->slices[i].data = text;
    text += texts->slices[i].size;
  }
  return pln_tensor_from_bytes(
      call->engine, PLN_STRING, rank, dims, texts->slices,
      texts->ended * sizeof *texts->slices, &call->results[0]);
}

void pln_string_builder_end(pln_string_builder *texts) {
  pln_mem_free(texts->buffer.engine, texts->slices,
               texts->room * sizeof *texts->slices);
  pln_buffer_free(&texts->buffer);
}
