/* tensor.c: constants: dense arrays, splats, views of mapped files and of other
 * tensors, and external data that is opened when first read.
 *
 * Called by importers, folding, the parser and the binding. Invariants: `count`
 * and `bytes` match the dims and are far from overflow; `data` points to all
 * elements (for a splat to one) unless `external` is still set; a tensor with a
 * second reference is immutable. */

#include <stdio.h>

#include "ir/tensor/tensor.h"

enum { ALIGN = 64 };
#define MAX_BYTES (INT64_MAX / 16)

_Static_assert(sizeof(pln_slice) * 8 == 128, "the row STRING of PLN_DTYPES");

/* ----------------------------------------------------------------- making */

static bool is_packed(pln_dtype dtype) {
  return pln_dtype_bits(dtype) < 8;
}

size_t pln_splat_bytes(pln_dtype dtype) {
  return is_packed(dtype) ? 1 : pln_dtype_bits(dtype) / 8;
}

static size_t splat_bytes(const pln_tensor *t) {
  return pln_splat_bytes((pln_dtype)t->dtype);
}

pln_status pln_tensor_size(pln_dtype dtype, uint32_t rank, const int64_t *dims,
                           size_t *count, size_t *bytes) {
  uint32_t bits = pln_dtype_bits(dtype);
  if (bits == 0)
    return PLN_ERR_ARGUMENT;
  uint64_t limit = (uint64_t)MAX_BYTES * 8 / bits;
  uint64_t n = 1;
  bool empty = false, over = false;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] < 0)
      return PLN_ERR_ARGUMENT;
    empty |= dims[i] == 0;
    over |= dims[i] > 0 && n > limit / (uint64_t)dims[i];
    if (!empty && !over)
      n *= (uint64_t)dims[i];
  }
  if (over && !empty)
    return PLN_ERR_ARGUMENT;
  n = empty ? 0 : n;
  if (n > SIZE_MAX / 16)
    return PLN_ERR_ARGUMENT;
  *count = (size_t)n;
  *bytes = (size_t)((n * bits + 7) / 8);
  return PLN_OK;
}

/* "(2, 3, 4)", truncated with "..." when there is no room. */
static void dims_text(uint32_t rank, const int64_t *dims, char *text,
                      size_t size) {
  size_t n = 0;
  for (uint32_t i = 0; i < rank && n + 32 < size; i++)
    n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? ", " : "",
                          (long long)dims[i]);
  if (n + 32 >= size)
    n += (size_t)snprintf(text + n, size - n, ", ...");
  text[n] = 0;
}

static pln_status bad_size(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                           const int64_t *dims) {
  char text[160];
  if (pln_dtype_bits(dtype) == 0)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL, "%d is not a dtype",
                          (int)dtype);
  dims_text(rank, dims, text, sizeof text);
  return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                        "no %s tensor has dims (%s): a dim is negative, or "
                        "there are too many elements",
                        pln_dtype_name(dtype), text);
}

/* A tensor without data. */
static pln_status new_tensor(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                             const int64_t *dims, pln_tensor **out) {
  size_t count, bytes, size = rank * sizeof *dims;
  if (pln_tensor_size(dtype, rank, dims, &count, &bytes) != PLN_OK)
    return bad_size(engine, dtype, rank, dims);
  pln_tensor *t = pln_mem_new(engine, sizeof *t + size);
  if (!t)
    return pln_nomem(engine);
  *t = (pln_tensor){.engine = engine,
                    .refs = 1,
                    .dtype = (uint8_t)dtype,
                    .rank = rank,
                    .count = count,
                    .bytes = bytes};
  if (rank)
    memcpy(t->dims, dims, size);
  *out = t;
  return PLN_OK;
}

/* Allocates a 64-byte aligned block. The allocator guarantees less, so the
 * block is larger and the data begins at `offset`. */
static pln_status new_block(pln_tensor *t, size_t size) {
  char *block = pln_mem_new(t->engine, size + ALIGN);
  if (!block)
    return pln_nomem(t->engine);
  t->block = size + ALIGN;
  t->offset = ALIGN - (uintptr_t)block % ALIGN;
  t->data = block + t->offset;
  t->owned = true;
  return PLN_OK;
}

/* A tensor whose bytes the caller fills in. */
static pln_status new_dense(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                            const int64_t *dims, pln_tensor **out) {
  pln_tensor *t = NULL;
  PLN_TRY(new_tensor(engine, dtype, rank, dims, &t));
  pln_status status = new_block(t, t->bytes);
  if (status == PLN_OK)
    *out = t;
  else
    pln_tensor_release(t);
  return status;
}

pln_status pln_tensor_unset(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                            const int64_t *dims, pln_tensor **out) {
  if (dtype == PLN_STRING) /* slices with invalid pointers must not exist */
    return pln_tensor_new(engine, dtype, rank, dims, out);
  return new_dense(engine, dtype, rank, dims, out);
}

pln_status pln_tensor_new(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                          const int64_t *dims, pln_tensor **out) {
  PLN_TRY(new_dense(engine, dtype, rank, dims, out));
  memset((void *)(*out)->data, 0, (*out)->bytes);
  return PLN_OK;
}

static pln_status wrong_bytes(pln_engine *engine, pln_status code,
                              const pln_tensor *t, uint64_t size) {
  char text[160];
  dims_text(t->rank, t->dims, text, sizeof text);
  return pln_diag_error(engine, code, NULL,
                        "a %s tensor of dims (%s) has %zu bytes, got %llu",
                        pln_dtype_name((pln_dtype)t->dtype), text, t->bytes,
                        (unsigned long long)size);
}

/* Bytes between two looks whether to stop. */
enum { POLLED_BYTES = 4 << 20 };

/* The slices, then their texts, in one block. */
static pln_status copy_strings(pln_tensor *t, const pln_slice *strings) {
  size_t size = t->bytes, done = 0;
  for (size_t i = 0; i < t->count; i++) {
    PLN_TRY(pln_poll_round(t->engine, i));
    if (strings[i].size > MAX_BYTES - size)
      return pln_nomem(t->engine);
    size += strings[i].size;
  }
  PLN_TRY(new_block(t, size));
  pln_slice *slices = (pln_slice *)t->data;
  char *text = (char *)t->data + t->bytes;
  for (size_t i = 0; i < t->count; i++) {
    if (strings[i].size)
      memcpy(text, strings[i].data, strings[i].size);
    done += 8 + strings[i].size;
    if (done >= POLLED_BYTES) {
      PLN_TRY(pln_poll_stoppable(t->engine));
      done = 0;
    }
    slices[i] = (pln_slice){text, strings[i].size};
    text += strings[i].size;
  }
  return PLN_OK;
}

static pln_status copy_bytes(pln_tensor *t, const void *data) {
  if (t->dtype == PLN_STRING)
    return copy_strings(t, data);
  PLN_TRY(new_block(t, t->bytes));
  return pln_copy_bytes(t->engine, (void *)t->data, data, t->bytes);
}

pln_status pln_tensor_from_bytes(pln_engine *engine, pln_dtype dtype,
                                 uint32_t rank, const int64_t *dims,
                                 const void *data, size_t size,
                                 pln_tensor **out) {
  pln_tensor *t = NULL;
  PLN_TRY(new_tensor(engine, dtype, rank, dims, &t));
  pln_status status = size == t->bytes
                          ? copy_bytes(t, data)
                          : wrong_bytes(engine, PLN_ERR_ARGUMENT, t, size);
  if (status == PLN_OK)
    *out = t;
  else
    pln_tensor_release(t);
  return status;
}

/* A byte filled with copies of a packed element, which `element` holds in its
 * low bits. */
static uint8_t full_byte(uint8_t element, uint32_t bits) {
  uint32_t byte = element & ((1u << bits) - 1);
  for (; bits < 8; bits *= 2)
    byte |= byte << bits;
  return (uint8_t)byte;
}

/* One slice, then its text. */
static pln_status splat_string(pln_tensor *t, pln_slice text) {
  PLN_TRY(new_block(t, sizeof text + text.size));
  char *copy = (char *)t->data + sizeof text;
  if (text.size)
    memcpy(copy, text.data, text.size);
  *(pln_slice *)t->data = (pln_slice){copy, text.size};
  return PLN_OK;
}

static pln_status splat_element(pln_tensor *t, const void *element) {
  uint32_t bits = pln_dtype_bits((pln_dtype)t->dtype);
  if (t->dtype == PLN_STRING)
    return splat_string(t, *(const pln_slice *)element);
  PLN_TRY(new_block(t, splat_bytes(t)));
  if (bits < 8)
    *(uint8_t *)t->data = full_byte(*(const uint8_t *)element, bits);
  else
    memcpy((void *)t->data, element, bits / 8);
  return PLN_OK;
}

pln_status pln_tensor_splat(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                            const int64_t *dims, const void *element,
                            pln_tensor **out) {
  pln_tensor *t = NULL;
  PLN_TRY(new_tensor(engine, dtype, rank, dims, &t));
  t->splat = true;
  pln_status status = splat_element(t, element);
  if (status == PLN_OK)
    *out = t;
  else
    pln_tensor_release(t);
  return status;
}

/* Makes the tensor a view of another's elements. */
static void borrow(pln_tensor *t, const pln_tensor *from) {
  t->data = from->data;
  t->view_of = pln_tensor_retain(from->view_of ? from->view_of : from);
}

pln_status pln_tensor_reshaped(const pln_tensor *x, uint32_t rank,
                               const int64_t *dims, pln_tensor **out) {
  pln_tensor *t = NULL;
  PLN_TRY(new_tensor(x->engine, (pln_dtype)x->dtype, rank, dims, &t));
  if (t->count != x->count) {
    pln_status status = wrong_bytes(x->engine, PLN_ERR_ARGUMENT, t, x->bytes);
    pln_tensor_release(t);
    return status;
  }
  t->splat = x->splat;
  t->external = x->external;
  t->where = x->where;
  t->offset = x->file ? x->offset : 0;
  t->data = x->data;
  if (x->file)
    t->file = pln_file_retain(x->file);
  else if (!x->external)
    borrow(t, x);
  *out = t;
  return PLN_OK;
}

/* ------------------------------------------------------------ files behind */

static pln_status no_strings(pln_engine *engine, pln_dtype dtype,
                             const char *where) {
  if (dtype != PLN_STRING)
    return PLN_OK;
  return pln_diag_error(engine, PLN_ERR_FORMAT, NULL,
                        "a tensor of strings cannot lie in %s", where);
}

/* Makes the tensor a view of the file's bytes from `offset` on. */
static pln_status pin(pln_tensor *t, pln_file *file, uint64_t offset) {
  uint64_t size = pln_file_size(file);
  if (offset > size || t->bytes > size - offset)
    return pln_diag_error(t->engine, PLN_ERR_FORMAT, NULL,
                          "'%s' has %llu bytes, but a tensor of %zu bytes "
                          "should begin at byte %llu",
                          pln_file_path(file), (unsigned long long)size,
                          t->bytes, (unsigned long long)offset);
  t->file = pln_file_retain(file);
  t->offset = offset;
  t->data = pln_file_data(file) + offset;
  return PLN_OK;
}

pln_status pln_tensor_view(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                           const int64_t *dims, pln_file *file, uint64_t offset,
                           uint64_t size, pln_tensor **out) {
  pln_tensor *t = NULL;
  PLN_TRY(no_strings(engine, dtype, "raw bytes"));
  PLN_TRY(new_tensor(engine, dtype, rank, dims, &t));
  pln_status status = size == t->bytes
                          ? pin(t, file, offset)
                          : wrong_bytes(engine, PLN_ERR_FORMAT, t, size);
  if (status == PLN_OK)
    *out = t;
  else
    pln_tensor_release(t);
  return status;
}

pln_status pln_tensor_external(pln_engine *engine, pln_dtype dtype,
                               uint32_t rank, const int64_t *dims,
                               const pln_external *where, pln_tensor **out) {
  PLN_TRY(no_strings(engine, dtype, "external data"));
  PLN_TRY(new_tensor(engine, dtype, rank, dims, out));
  (*out)->where = *where;
  (*out)->external = true;
  return PLN_OK;
}

pln_status pln_external_open(pln_engine *engine, const pln_external *where,
                             pln_file **out) {
  pln_file *file;
  pln_slice name = pln_symbol_text(engine, where->location);
  PLN_TRY(pln_file_map_confined(
      engine, pln_symbol_text(engine, where->directory).data, name, &file));
  if (!where->stamp || where->stamp == pln_file_stamp(file)) {
    *out = file;
    return PLN_OK;
  }
  pln_file_release(file);
  return pln_diag_error(engine, PLN_ERR_IO, NULL,
                        "external data '%.*s' was replaced after the model was "
                        "read",
                        name.size > 200 ? 200 : (int)name.size, name.data);
}

static pln_status open_external(pln_tensor *t) {
  const pln_external *w = &t->where;
  pln_slice name = pln_symbol_text(t->engine, w->location);
  if (w->length != UINT64_MAX && w->length != t->bytes)
    return wrong_bytes(t->engine, PLN_ERR_FORMAT, t, w->length);
  if (!w->directory)
    return pln_diag_error(t->engine, PLN_ERR_IO, NULL,
                          "external data '%.*s' cannot be opened: the model "
                          "was not read from a folder",
                          name.size > 200 ? 200 : (int)name.size, name.data);
  pln_file *file;
  PLN_TRY(pln_external_open(t->engine, w, &file));
  pln_status status = pin(t, file, w->offset);
  pln_file_release(file);
  if (status == PLN_OK)
    t->external = false;
  return status;
}

pln_status pln_tensor_data(const pln_tensor *tensor, const void **out) {
  /* Opening changes where the elements are read from, not their values. */
  if (tensor->external)
    PLN_TRY(open_external((pln_tensor *)tensor));
  *out = tensor->data;
  return PLN_OK;
}

/* ------------------------------------------------------------------ reading */

pln_tensor *pln_tensor_retain(const pln_tensor *tensor) {
  pln_tensor *shared = (pln_tensor *)tensor;
  shared->refs++;
  return shared;
}

void pln_tensor_release(pln_tensor *t) {
  if (!t || --t->refs ||
      t->parent_tensor) /* a borrowed tensor is freed with the child */
    return;
  if (t->owned)
    pln_mem_free(t->engine, (char *)t->data - t->offset, t->block);
  pln_file_release(t->file);
  if (t->view_of) /* the owner is not a view itself, so this recurses once at
                   * most */
    pln_tensor_release(t->view_of);
  pln_mem_free(t->engine, t, sizeof *t + t->rank * sizeof *t->dims);
}

pln_dtype pln_tensor_dtype(const pln_tensor *t) {
  return (pln_dtype)t->dtype;
}

uint32_t pln_tensor_rank(const pln_tensor *t) {
  return t->rank;
}

const int64_t *pln_tensor_dims(const pln_tensor *t) {
  return t->dims;
}

size_t pln_tensor_count(const pln_tensor *t) {
  return t->count;
}

size_t pln_tensor_bytes(const pln_tensor *t) {
  return t->bytes;
}

bool pln_tensor_is_splat(const pln_tensor *t) {
  return t->splat;
}

void *pln_tensor_writable(pln_tensor *t) {
  bool mine = t->owned && !t->splat && t->refs == 1 && t->dtype != PLN_STRING;
  return mine ? (void *)t->data : NULL;
}

uint8_t pln_splat_last_byte(const pln_tensor *t) {
  uint32_t used =
      (uint32_t)(t->count % 8) * pln_dtype_bits((pln_dtype)t->dtype);
  uint8_t byte = *(const uint8_t *)t->data;
  return (uint8_t)(used % 8 ? byte & ((1u << used % 8) - 1) : byte);
}

/* Writes a splat's element over the bytes of the tensor, doubling up to
 * POLLED_BYTES. Bits after the last packed element are 0. */
static pln_status write_splat_elements(const pln_tensor *t, char *to) {
  size_t done = splat_bytes(t), size = t->bytes, part = done;
  if (size == 0)
    return PLN_OK;
  memcpy(to, t->data, done);
  while (done < size) {
    size_t chunk = part < size - done ? part : size - done;
    memcpy(to + done, to, chunk);
    done += chunk;
    if (part < POLLED_BYTES)
      part = done;
    else
      PLN_TRY(pln_poll_stoppable(t->engine));
  }
  if (is_packed((pln_dtype)t->dtype))
    to[size - 1] = (char)pln_splat_last_byte(t);
  return PLN_OK;
}

/* Writes `count` slices of one text. */
static pln_status spread_string(const pln_tensor *t, pln_tensor *to) {
  pln_slice text = *(const pln_slice *)t->data;
  PLN_TRY(new_block(to, t->bytes + text.size));
  char *copy = (char *)to->data + t->bytes;
  pln_slice *slices = (pln_slice *)to->data;
  if (text.size)
    memcpy(copy, text.data, text.size);
  for (size_t i = 0; i < t->count; i++)
    slices[i] = (pln_slice){copy, text.size};
  return PLN_OK;
}

static pln_status write_out(const pln_tensor *t, pln_tensor *to) {
  if (t->dtype == PLN_STRING)
    return spread_string(t, to);
  PLN_TRY(new_block(to, t->bytes));
  return write_splat_elements(t, (char *)to->data);
}

pln_status pln_tensor_dense(const pln_tensor *t, pln_tensor **out) {
  pln_tensor *to = NULL;
  if (!t->splat) {
    *out = pln_tensor_retain(t);
    return PLN_OK;
  }
  PLN_TRY(new_tensor(t->engine, (pln_dtype)t->dtype, t->rank, t->dims, &to));
  pln_status status = write_out(t, to);
  if (status == PLN_OK)
    *out = to;
  else
    pln_tensor_release(to);
  return status;
}

#define READ(type)                                               \
  do {                                                           \
    type element;                                                \
    memcpy(&element, data + i * sizeof element, sizeof element); \
    *out = (int64_t)element;                                     \
    return true;                                                 \
  } while (0)

/* Element i of packed `bits`-bit integers, low bits first. */
static int64_t read_packed(const char *data, size_t i, uint32_t bits,
                           bool is_signed) {
  uint32_t per_byte = 8 / bits;
  uint32_t byte = (unsigned char)data[i / per_byte];
  int64_t value = byte >> (i % per_byte * bits) & ((1u << bits) - 1);
  return is_signed && value >> (bits - 1) ? value - (1 << bits) : value;
}

bool pln_tensor_int(const pln_tensor *t, size_t index, int64_t *out) {
  const char *data = t->data;
  if (!data || index >= t->count)
    return false;
  size_t i = t->splat ? 0 : index;
  uint64_t word;
  switch ((pln_dtype)t->dtype) {
  case PLN_INT8: READ(int8_t);
  case PLN_UINT8: READ(uint8_t);
  case PLN_INT16: READ(int16_t);
  case PLN_UINT16: READ(uint16_t);
  case PLN_INT32: READ(int32_t);
  case PLN_UINT32: READ(uint32_t);
  case PLN_INT64: READ(int64_t);
  case PLN_UINT64:
    memcpy(&word, data + i * sizeof word, sizeof word);
    *out = (int64_t)word;
    return word <= INT64_MAX;
  case PLN_BOOL: *out = data[i] != 0; return true;
  case PLN_INT4:
  case PLN_UINT4:
    *out = read_packed(data, i, 4, t->dtype == PLN_INT4);
    return true;
  case PLN_INT2:
  case PLN_UINT2:
    *out = read_packed(data, i, 2, t->dtype == PLN_INT2);
    return true;
  default: /* no integers */ return false;
  }
}

#undef READ

/* ----------------------------------------------------------------- identity */

/* Small constants are compared by content. External ones are opened for that,
 * and compared by location if that fails. Nothing is reported. */
bool pln_tensor_by_content(const pln_tensor *t) {
  const void *data;
  if (t->bytes > PLN_TENSOR_BY_CONTENT)
    return false;
  size_t mark = pln_diag_count(t->engine);
  if (pln_tensor_data(t, &data) == PLN_OK)
    return true;
  pln_diag_drop(t->engine, mark);
  return false;
}

/* The bytes of a small tensor; those of a splat are expanded into `room`. A
 * small one is written without a poll, so that nothing fails. */
static const char *content(const pln_tensor *t, char *room) {
  if (!t->splat)
    return t->data;
  (void)write_splat_elements(t, room);
  return room;
}

static bool equal_strings(const pln_tensor *a, const pln_tensor *b) {
  const pln_slice *x = a->data, *y = b->data;
  for (size_t i = 0; i < a->count; i++)
    if (!pln_slice_equal(x[a->splat ? 0 : i], y[b->splat ? 0 : i]))
      return false;
  return true;
}

static bool equal_content(const pln_tensor *a, const pln_tensor *b) {
  char x[PLN_TENSOR_BY_CONTENT], y[PLN_TENSOR_BY_CONTENT];
  if (a->dtype == PLN_STRING)
    return equal_strings(a, b);
  return a->bytes == 0 || !memcmp(content(a, x), content(b, y), a->bytes);
}

static bool equal_place(const pln_tensor *a, const pln_tensor *b) {
  const pln_external *x = &a->where, *y = &b->where;
  if (x->location || y->location)
    return x->location == y->location && x->directory == y->directory &&
           x->offset == y->offset &&
           (x->stamp == y->stamp || !x->stamp || !y->stamp);
  if (a->splat && b->splat && a->dtype == PLN_STRING)
    return pln_slice_equal(*(const pln_slice *)a->data,
                           *(const pln_slice *)b->data);
  if (a->splat && b->splat)
    return !memcmp(a->data, b->data, splat_bytes(a));
  if (a->file || b->file)
    return a->file == b->file && a->offset == b->offset;
  return !a->splat && !b->splat && a->data == b->data;
}

static bool same_shape(const pln_tensor *a, const pln_tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

/* Compares file ranges; the file may be mapped twice. */
static bool same_slice(const pln_tensor *a, const pln_tensor *b) {
  return a->file && b->file && a->offset == b->offset &&
         !strcmp(pln_file_path(a->file), pln_file_path(b->file));
}

static bool splat_contains(const pln_tensor *t, const pln_tensor *splat) {
  size_t size = splat_bytes(splat), last = t->bytes - size;
  bool is_full = !is_packed((pln_dtype)t->dtype);
  const char *data = t->data;
  if (t->bytes == 0)
    return true;
  for (size_t at = 0; at < last + is_full; at += size)
    if (memcmp(data + at, splat->data, size) != 0)
      return false;
  return is_full || (uint8_t)data[last] == pln_splat_last_byte(splat);
}

bool pln_tensor_same(const pln_tensor *a, const pln_tensor *b) {
  const void *data;
  if (pln_tensor_equal(a, b))
    return true;
  if (!same_shape(a, b) || a->dtype == PLN_STRING)
    return false;
  if (same_slice(a, b))
    return true;
  size_t mark = pln_diag_count(a->engine);
  if (pln_tensor_data(a, &data) != PLN_OK ||
      pln_tensor_data(b, &data) != PLN_OK) {
    pln_diag_drop(a->engine, mark);
    return false;
  }
  if (a->splat || b->splat)
    return a->splat ? !b->splat && splat_contains(b, a) : splat_contains(a, b);
  return !memcmp(a->data, b->data, a->bytes);
}

bool pln_tensor_equal(const pln_tensor *a, const pln_tensor *b) {
  if (a == b)
    return true;
  if (!same_shape(a, b))
    return false;
  bool by_content = pln_tensor_by_content(a);
  if (by_content != pln_tensor_by_content(b))
    return false;
  return by_content ? equal_content(a, b) : equal_place(a, b);
}

static uint64_t hash_string(pln_slice s, uint64_t hash) {
  return pln_hash_bytes(s.data, s.size, hash);
}

static uint64_t hash_content(const pln_tensor *t, uint64_t hash) {
  char room[PLN_TENSOR_BY_CONTENT];
  if (t->dtype != PLN_STRING)
    return pln_hash_bytes(content(t, room), t->bytes, hash);
  const pln_slice *strings = t->data;
  for (size_t i = 0; i < t->count; i++)
    hash = hash_string(strings[t->splat ? 0 : i], hash);
  return hash;
}

static uint64_t hash_place(const pln_tensor *t, uint64_t hash) {
  if (t->where.location)
    return pln_hash_mix(pln_hash_mix(hash, t->where.location), t->where.offset);
  if (t->splat && t->dtype == PLN_STRING)
    return hash_string(*(const pln_slice *)t->data, hash);
  if (t->splat)
    return pln_hash_bytes(t->data, splat_bytes(t), hash);
  if (t->file)
    return pln_hash_mix(pln_hash_mix(hash, pln_file_size(t->file)), t->offset);
  return pln_hash_mix(hash, (uint64_t)(uintptr_t)t->data);
}

uint64_t pln_tensor_hash(const pln_tensor *t) {
  uint64_t hash = pln_hash_bytes(t->dims, t->rank * sizeof *t->dims, t->dtype);
  return pln_tensor_by_content(t) ? hash_content(t, hash) : hash_place(t, hash);
}

/* -------------------------------------------------------------------- types */

bool pln_tensor_fits(const pln_engine *e, const pln_tensor *t, pln_type type) {
  if (!t || !type)
    return true;
  pln_dtype dtype = pln_type_dtype(e, type);
  int32_t rank = pln_type_rank(e, type);
  if ((dtype && dtype != t->dtype) || (rank >= 0 && rank != (int32_t)t->rank))
    return false;
  const pln_dim *dims = pln_type_dims(e, type);
  for (int32_t i = 0; i < rank; i++)
    if (PLN_DIM_IS_CONST(dims[i]) && dims[i] != t->dims[i])
      return false;
  return true;
}

pln_status pln_tensor_type(pln_engine *engine, const pln_tensor *tensor,
                           pln_type *out) {
  *out = 0;
  return tensor ? pln_type_tensor(engine, (pln_dtype)tensor->dtype,
                                  (int32_t)tensor->rank, tensor->dims, out)
                : PLN_OK;
}
