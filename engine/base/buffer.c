/* buffer.c: a growable byte buffer. `size` bytes are valid; a failed call
 * leaves them unchanged. */

#include <stdio.h>

#include "base/base.h"

void pln_buffer_init(pln_buffer *buffer, pln_engine *engine) {
  *buffer = (pln_buffer){.engine = engine};
}

void pln_buffer_free(pln_buffer *buffer) {
  pln_mem_free(buffer->engine, buffer->data, buffer->capacity);
  pln_buffer_init(buffer, buffer->engine);
}

/* Makes room for `more` bytes after the valid ones. */
static pln_status reserve(pln_buffer *buffer, size_t more) {
  if (more <= buffer->capacity - buffer->size)
    return PLN_OK;
  if (more > PTRDIFF_MAX / 2 || buffer->size > PTRDIFF_MAX / 2)
    return pln_nomem(buffer->engine);
  size_t wanted = buffer->size + more;
  if (wanted < 64)
    wanted = 64;
  if (wanted < buffer->capacity * 2)
    wanted = buffer->capacity * 2;
  char *data =
      pln_mem_resize(buffer->engine, buffer->data, buffer->capacity, wanted);
  if (!data)
    return pln_nomem(buffer->engine);
  buffer->data = data;
  buffer->capacity = wanted;
  return PLN_OK;
}

pln_status pln_buffer_add(pln_buffer *buffer, const void *bytes, size_t size) {
  PLN_TRY(reserve(buffer, size));
  if (size)
    memcpy(buffer->data + buffer->size, bytes, size);
  buffer->size += size;
  return PLN_OK;
}

pln_status pln_buffer_text(pln_buffer *buffer, const char *text) {
  return pln_buffer_add(buffer, text, strlen(text));
}

pln_status pln_buffer_printf(pln_buffer *buffer, const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, list);
  pln_status status =
      length < 0 ? PLN_ERR_ARGUMENT : reserve(buffer, (size_t)length + 1);
  if (status == PLN_OK) {
    vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, again);
    buffer->size += (size_t)length;
  }
  va_end(again);
  va_end(list);
  return status == PLN_ERR_ARGUMENT
             ? pln_diag_error(buffer->engine, status, NULL,
                              "text cannot be formatted")
             : status;
}

pln_status pln_buffer_write(void *buffer, const char *data, size_t size) {
  return pln_buffer_add(buffer, data, size);
}
