/* npy.c: NumPy's .npy files (numpy.lib.format, versions 1.0 to 3.0).
 *
 * Called through perilune.h. The elements of a little-endian, row-major array
 * stay in the mapped file; others are copied. Invariant: the file must have
 * exactly the bytes that its shape requires, and no value of the header is used
 * before that is checked. */

#include <inttypes.h>
#include <stdio.h>

#include "ir/tensor/tensor.h"

enum { MAX_DIMS = 64, MAGIC = 8, ALIGNED = 64 };

/* NumPy's names of element types, without byte order. */
static const struct npy_kind {
  char name[4];
  pln_dtype dtype;
} kinds[] = {{"f2", PLN_FLOAT16},   {"f4", PLN_FLOAT32},    {"f8", PLN_FLOAT64},
             {"i1", PLN_INT8},      {"i2", PLN_INT16},      {"i4", PLN_INT32},
             {"i8", PLN_INT64},     {"u1", PLN_UINT8},      {"u2", PLN_UINT16},
             {"u4", PLN_UINT32},    {"u8", PLN_UINT64},     {"b1", PLN_BOOL},
             {"c8", PLN_COMPLEX64}, {"c16", PLN_COMPLEX128}};

/* ----------------------------------------------------------- reading: header
 */

/* The header is a Python dictionary of three entries, in any order. */
typedef struct npy_reader {
  pln_engine *engine;
  pln_file *file;
  const char *at, *end; /* the rest of the header */
  uint64_t elements;    /* offset of the elements */
  pln_dtype dtype;
  bool swapped, fortran;
  bool has_dtype, has_order, has_shape;
  uint32_t rank;
  int64_t dims[MAX_DIMS];
} npy_reader;

static pln_status fail_npy(const npy_reader *r, const char *what) {
  return pln_diag_error(r->engine, PLN_ERR_FORMAT, NULL, "%s: %s",
                        pln_file_path(r->file), what);
}

static void skip_space(npy_reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t'))
    r->at++;
}

static bool accept_npy_char(npy_reader *r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c)
    return false;
  r->at++;
  return true;
}

static bool read_npy_word(npy_reader *r, const char *word) {
  size_t n = strlen(word);
  skip_space(r);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
    return false;
  r->at += n;
  return true;
}

static bool read_npy_string(npy_reader *r, pln_slice *out) {
  char quote = accept_npy_char(r, '\'')  ? '\''
               : accept_npy_char(r, '"') ? '"'
                                         : 0;
  const char *from = r->at;
  const char *to = quote ? memchr(from, quote, (size_t)(r->end - from)) : NULL;
  if (!to)
    return false;
  *out = (pln_slice){from, (size_t)(to - from)};
  r->at = to + 1;
  return true;
}

static bool read_npy_number(npy_reader *r, int64_t *out) {
  int64_t value = 0;
  int digits = 0;
  skip_space(r);
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
    if (++digits > 18)
      return false;
    value = value * 10 + (*r->at - '0');
  }
  if (r->at < r->end && *r->at == 'L') /* a Python 2 long */
    r->at++;
  *out = value;
  return digits > 0;
}

static pln_status read_kind(npy_reader *r) {
  pln_slice text;
  if (!read_npy_string(r, &text) || text.size == 0)
    return fail_npy(r, "its header has no element type that a tensor can have");
  pln_slice name = {text.data + 1, text.size - 1};
  for (size_t i = 0; i < PLN_COUNT(kinds); i++)
    if (pln_slice_is(name, kinds[i].name))
      r->dtype = kinds[i].dtype;
  if (!r->dtype || !strchr("<>|=", text.data[0]))
    return pln_diag_error(r->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "%s: no tensor has NumPy's element type '%.*s'",
                          pln_file_path(r->file),
                          (int)(text.size < 40 ? text.size : 40), text.data);
  r->swapped = text.data[0] == '>';
  r->has_dtype = true;
  return PLN_OK;
}

static pln_status read_order(npy_reader *r) {
  r->fortran = read_npy_word(r, "True");
  r->has_order = r->fortran || read_npy_word(r, "False");
  return r->has_order ? PLN_OK : fail_npy(r, "its header is malformed");
}

static pln_status read_shape(npy_reader *r) {
  bool more = accept_npy_char(r, '(');
  if (!more)
    return fail_npy(r, "its header is malformed");
  while (more && !accept_npy_char(r, ')')) {
    if (r->rank == MAX_DIMS)
      return fail_npy(r, "it has more than 64 dims");
    if (!read_npy_number(r, &r->dims[r->rank++]))
      return fail_npy(r, "its shape is malformed");
    more = accept_npy_char(r, ',');
    if (!more && !accept_npy_char(r, ')'))
      return fail_npy(r, "its shape is malformed");
  }
  r->has_shape = true;
  return PLN_OK;
}

static pln_status read_npy_header_entry(npy_reader *r) {
  pln_slice key;
  if (!read_npy_string(r, &key) || !accept_npy_char(r, ':'))
    return fail_npy(r, "its header is malformed");
  if (pln_slice_is(key, "descr") && !r->has_dtype)
    return read_kind(r);
  if (pln_slice_is(key, "fortran_order") && !r->has_order)
    return read_order(r);
  if (pln_slice_is(key, "shape") && !r->has_shape)
    return read_shape(r);
  return fail_npy(r, "its header is malformed");
}

static pln_status read_header(npy_reader *r) {
  if (!accept_npy_char(r, '{'))
    return fail_npy(r, "its header is malformed");
  while (!accept_npy_char(r, '}')) {
    PLN_TRY(read_npy_header_entry(r));
    accept_npy_char(r, ',');
  }
  if (r->has_dtype && r->has_order && r->has_shape)
    return PLN_OK;
  return fail_npy(r,
                  "its header lacks the element type, the order or the shape");
}

/* Finds the header and the offset of the elements. */
static pln_status find_header(npy_reader *r) {
  const uint8_t *bytes = pln_file_data(r->file);
  uint64_t size = pln_file_size(r->file);
  if (size < MAGIC + 4 || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return fail_npy(r, "is no .npy file");
  if (bytes[6] < 1 || bytes[6] > 3)
    return fail_npy(r, "its version of the .npy format is unknown");
  uint64_t width = bytes[6] == 1 ? 2 : 4, length = 0;
  for (uint64_t i = width; i-- > 0;)
    length = length << 8 | bytes[MAGIC + i];
  r->elements = MAGIC + width + length;
  if (r->elements > size)
    return fail_npy(r, "its header is cut off");
  r->at = (const char *)bytes + MAGIC + width;
  r->end = r->at + length;
  return PLN_OK;
}

/* --------------------------------------------------------- reading: elements
 */

/* Copies one element of `size` bytes, reversing each part of `width` bytes. */
static void copy_swapped(uint8_t *to, const uint8_t *from, size_t size,
                         size_t width) {
  for (size_t part = 0; part < size; part += width)
    for (size_t i = 0; i < width; i++)
      to[part + i] = from[part + width - 1 - i];
}

/* Copies the array row by row; `strides` locate its elements, in units of
 * elements. */
static void copy_elements(const npy_reader *r, const int64_t *strides,
                          size_t count, uint8_t *to) {
  size_t size = pln_dtype_bits(r->dtype) / 8;
  bool complex = r->dtype == PLN_COMPLEX64 || r->dtype == PLN_COMPLEX128;
  size_t width = !r->swapped ? size : complex ? size / 2 : size;
  const uint8_t *from = pln_file_data(r->file) + r->elements;
  int64_t index[MAX_DIMS] = {0}, at = 0;
  for (size_t k = 0; k < count; k++) {
    const uint8_t *element = from + (size_t)at * size;
    if (r->swapped)
      copy_swapped(to + k * size, element, size, width);
    else
      memcpy(to + k * size, element, size);
    for (uint32_t d = r->rank; d-- > 0;) {
      at += strides[d];
      if (++index[d] < r->dims[d])
        break;
      at -= index[d] * strides[d];
      index[d] = 0;
    }
  }
}

static pln_status copy_npy_array(const npy_reader *r, pln_tensor **out) {
  int64_t strides[MAX_DIMS], stride = 1;
  PLN_TRY(pln_tensor_unset(r->engine, r->dtype, r->rank, r->dims, out));
  if ((*out)->count == 0)
    return PLN_OK; /* an empty array: the other extents are not limited */
  for (uint32_t i = 0; i < r->rank; i++) {
    uint32_t d = r->fortran ? i : r->rank - 1 - i;
    strides[d] = stride;
    stride *= r->dims[d];
  }
  copy_elements(r, strides, (*out)->count, pln_tensor_writable(*out));
  return PLN_OK;
}

/* In a file any nonzero byte is true; kernels require 1. */
static bool is_clean_bool(const uint8_t *bytes, uint64_t n) {
  for (uint64_t i = 0; i < n; i++)
    if (bytes[i] > 1)
      return false;
  return true;
}

static pln_status read_elements(const npy_reader *r, pln_tensor **out) {
  size_t count, bytes;
  uint64_t there = pln_file_size(r->file) - r->elements;
  if (pln_tensor_size(r->dtype, r->rank, r->dims, &count, &bytes) != PLN_OK)
    return fail_npy(r, "its shape overflows");
  if (bytes != there)
    return pln_diag_error(r->engine, PLN_ERR_FORMAT, NULL,
                          "%s: it holds %" PRIu64
                          " bytes of elements, its shape asks for %zu",
                          pln_file_path(r->file), there, bytes);
  if (r->dtype == PLN_BOOL &&
      !is_clean_bool(pln_file_data(r->file) + r->elements, there))
    return fail_npy(r, "a bool is neither 0 nor 1");
  if (r->swapped || (r->fortran && r->rank > 1))
    return copy_npy_array(r, out);
  return pln_tensor_view(r->engine, r->dtype, r->rank, r->dims, r->file,
                         bytes ? r->elements : 0, bytes, out);
}

static pln_status read_file(pln_engine *engine, pln_file *file,
                            pln_tensor **out) {
  npy_reader r = {.engine = engine, .file = file};
  PLN_TRY(find_header(&r));
  PLN_TRY(read_header(&r));
  return read_elements(&r, out);
}

pln_status pln_npy_load(pln_engine *engine, const char *path,
                        pln_tensor **out) {
  pln_file *file;
  PLN_TRY(pln_file_map(engine, path, &file));
  pln_status status = read_file(engine, file, out);
  pln_file_release(file);
  return status;
}

pln_status pln_npy_parse(pln_engine *engine, pln_slice bytes, const char *name,
                         pln_tensor **out) {
  pln_file *file;
  PLN_TRY(pln_file_copy(engine, bytes, name ? name : "(memory)", &file));
  pln_status status = read_file(engine, file, out);
  pln_file_release(file);
  return status;
}

/* ----------------------------------------------------------------- writing */

static const char *npy_kind_of_dtype(pln_dtype dtype) {
  for (size_t i = 0; i < PLN_COUNT(kinds); i++)
    if (kinds[i].dtype == dtype)
      return kinds[i].name;
  return NULL;
}

static pln_status put_dictionary(const pln_tensor *t, const char *kind,
                                 pln_buffer *text) {
  char order = pln_dtype_bits((pln_dtype)t->dtype) == 8 ? '|' : '<';
  PLN_TRY(pln_buffer_printf(text,
                            "{'descr': '%c%s', 'fortran_order': False, "
                            "'shape': (",
                            order, kind));
  for (uint32_t i = 0; i < t->rank; i++)
    PLN_TRY(
        pln_buffer_printf(text, i ? ", %lld" : "%lld", (long long)t->dims[i]));
  return pln_buffer_text(text, t->rank == 1 ? ",), }" : "), }");
}

/* The bytes before the elements, padded to a multiple of 64 as NumPy does. */
static pln_status put_header(const pln_tensor *t, const char *kind,
                             pln_buffer *head) {
  pln_buffer text;
  pln_buffer_init(&text, t->engine);
  pln_status status = put_dictionary(t, kind, &text);
  while (status == PLN_OK && (MAGIC + 2 + text.size + 1) % ALIGNED)
    status = pln_buffer_text(&text, " ");
  if (status == PLN_OK)
    status = pln_buffer_text(&text, "\n");
  char start[MAGIC + 2] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
  start[MAGIC] = (char)(text.size & 0xff);
  start[MAGIC + 1] = (char)(text.size >> 8);
  if (status == PLN_OK)
    status = pln_buffer_add(head, start, sizeof start);
  if (status == PLN_OK)
    status = pln_buffer_add(head, text.data, text.size);
  pln_buffer_free(&text);
  return status;
}

static pln_status write_npy_elements(const pln_tensor *tensor,
                                     pln_write_fn write, void *ud) {
  pln_tensor *dense;
  const void *data;
  PLN_TRY(pln_tensor_dense(tensor, &dense));
  pln_status status = pln_tensor_data(dense, &data);
  if (status == PLN_OK && dense->bytes)
    status = write(ud, data, dense->bytes);
  pln_tensor_release(dense);
  return status;
}

pln_status pln_npy_write(const pln_tensor *tensor, pln_write_fn write,
                         void *ud) {
  const char *kind = npy_kind_of_dtype((pln_dtype)tensor->dtype);
  if (!kind || tensor->rank > MAX_DIMS)
    return pln_diag_error(tensor->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "NumPy has no array of dtype %s and rank %u",
                          pln_dtype_name((pln_dtype)tensor->dtype),
                          tensor->rank);
  pln_buffer head;
  pln_buffer_init(&head, tensor->engine);
  pln_status status = put_header(tensor, kind, &head);
  if (status == PLN_OK)
    status = write(ud, head.data, head.size);
  pln_buffer_free(&head);
  return status == PLN_OK ? write_npy_elements(tensor, write, ud) : status;
}

static pln_status write_npy_bytes(void *output, const char *data, size_t size) {
  return pln_output_write(output, data, size);
}

pln_status pln_npy_save(const pln_tensor *tensor, const char *path) {
  pln_output *output;
  PLN_TRY(pln_output_open(tensor->engine, path, &output));
  pln_status status = pln_npy_write(tensor, write_npy_bytes, output);
  if (status == PLN_OK)
    return pln_output_commit(output);
  pln_output_abort(output);
  return status;
}
