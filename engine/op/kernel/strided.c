/* strided.c: copies between strided views. Axes that are contiguous in both
 * views are merged first; then planes of two axes are copied row by row, or
 * transposed tile by tile if source and target are contiguous along different
 * axes. */

#include "op/kernel/strided.h"

#include "base/thread/thread_pool.h"
#include "op/kernel/multiversion.h"

/* elements copied between two polls for a stop */
enum { PART = 1 << 18 };
/* planes of at most this many short rows are copied without polling */
enum { SMALL_ROWS = 64 };

void pln_dense_strides(uint32_t rank, const int64_t *dims, int64_t *steps) {
  int64_t step = 1;
  for (uint32_t i = rank; i-- > 0;) {
    steps[i] = step;
    step *= dims[i] > 0 ? dims[i] : 1;
  }
}

#define FILL(type)                     \
  do {                                 \
    type one, *to = target;            \
    memcpy(&one, element, sizeof one); \
    for (size_t i = 0; i < count; i++) \
      to[i] = one;                     \
  } while (0)

typedef struct wide {
  uint64_t half[2];
} wide;

static void fill(void *target, size_t count, const void *element, size_t size) {
  switch (size) {
  case 1: FILL(uint8_t); break;
  case 2: FILL(uint16_t); break;
  case 4: FILL(uint32_t); break;
  case 8: FILL(uint64_t); break;
  default: FILL(wide); break;
  }
}

void pln_copy_run(const pln_engine *engine, void *to, const void *from,
                  size_t bytes) {
  enum { MOST = 4 << 20 };
  for (size_t at = 0; at < bytes; at += MOST) {
    if (at && pln_is_stopped(engine))
      return;
    memcpy((char *)to + at, (const char *)from + at,
           bytes - at < MOST ? bytes - at : MOST);
  }
}

void pln_fill(const pln_engine *engine, void *target, size_t count,
              const void *element, size_t size) {
  for (size_t at = 0; at < count; at += PART) {
    fill((char *)target + at * size, count - at < PART ? count - at : PART,
         element, size);
    if (pln_is_stopped(engine))
      return;
  }
}

/* ------------------------------------------------------------------- planes */

typedef struct strided_plane {
  int64_t rows, columns;
  int64_t to_row, to_column, from_row, from_column; /* strides in elements */
} strided_plane;

/* Copies a run of `n` elements of one size. */
#define RUN(type, n, to, to_step, from, from_step)                            \
  do {                                                                        \
    type *to_ = (type *)(void *)(to);                                         \
    const unsigned char *from_ = (from);                                      \
    for (int64_t k_ = 0; k_ < (n); k_++)                                      \
      memcpy(to_ + k_ * (to_step),                                            \
             from_ + k_ * (from_step) * (int64_t)sizeof(type), sizeof(type)); \
  } while (0)

static void copy_run(unsigned char *to, int64_t to_step,
                     const unsigned char *from, int64_t from_step, int64_t n,
                     size_t size) {
  if (to_step == 1 && from_step == 1) {
    memcpy(to, from, (size_t)n * size);
    return;
  }
  switch (size) {
  case 1: RUN(uint8_t, n, to, to_step, from, from_step); break;
  case 2: RUN(uint16_t, n, to, to_step, from, from_step); break;
  case 4: RUN(uint32_t, n, to, to_step, from, from_step); break;
  case 8: RUN(uint64_t, n, to, to_step, from, from_step); break;
  default: RUN(wide, n, to, to_step, from, from_step); break;
  }
}

static int64_t min_i64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* --------------------------------------------------------------- transposing
 */

/* A plane whose source is contiguous along the rows and whose target along the
 * columns is transposed tile by tile. A tile is read as a whole, so that lines
 * at distant addresses, which evict each other from the cache, are touched
 * once. */

enum { TILE = 16 };

/* to[r][c] = from[c][r] for h rows of w elements; rows of the tile are TILE
 * elements apart. */
typedef void (*transpose_fn)(void *to, int64_t to_row, const void *tile,
                             int64_t h, int64_t w);

#define TRANSPOSE(type)                                                        \
  static void transpose_##type(void *target, int64_t to_row, const void *tile, \
                               int64_t h, int64_t w) {                         \
    type *restrict to = target;                                                \
    const type *restrict from = tile;                                          \
    for (int64_t r = 0; r < h; r++)                                            \
      for (int64_t c = 0; c < w; c++)                                          \
        to[r * to_row + c] = from[c * TILE + r];                               \
  }
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)
TRANSPOSE(wide)

typedef uint32_t four_bytes __attribute__((vector_size(16)));

/* Transposes 4 x 4 elements of 4 bytes. */
static void transpose_quads(uint32_t *to, int64_t to_row,
                            const uint32_t *from) {
  four_bytes a, b, c, d;
  memcpy(&a, from, sizeof a);
  memcpy(&b, from + TILE, sizeof b);
  memcpy(&c, from + 2 * TILE, sizeof c);
  memcpy(&d, from + 3 * TILE, sizeof d);
  four_bytes ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  four_bytes cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  four_bytes ef = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  four_bytes gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
  d = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
  memcpy(to, &a, sizeof a);
  memcpy(to + to_row, &b, sizeof b);
  memcpy(to + 2 * to_row, &c, sizeof c);
  memcpy(to + 3 * to_row, &d, sizeof d);
}

/* The rest of a tile, which is not a multiple of 4, goes element by element. */
static void transpose_words(void *target, int64_t to_row, const void *tile,
                            int64_t h, int64_t w) {
  uint32_t *to = target;
  const uint32_t *from = tile;
  int64_t high = h - h % 4, broad = w - w % 4;
  for (int64_t r = 0; r < high; r += 4)
    for (int64_t c = 0; c < broad; c += 4)
      transpose_quads(to + r * to_row + c, to_row, from + c * TILE + r);
  if (w > broad)
    transpose_uint32_t(to + broad, to_row, from + broad * TILE, high,
                       w - broad);
  if (h > high)
    transpose_uint32_t(to + high * to_row, to_row, from + high, h - high, w);
}

typedef uint8_t sixteen_bytes __attribute__((vector_size(16)));

/* Transposes 16 x 16 bytes: interleaving row i with row i + 8, four times. */
static void transpose_full_bytes(uint8_t *to, int64_t to_row,
                                 const uint8_t *from) {
  sixteen_bytes rows[TILE], mixed[TILE];
  memcpy(rows, from, sizeof rows);
#pragma GCC unroll 4
  for (int round = 0; round < 4; round++) {
#pragma GCC unroll 8
    for (int i = 0; i < TILE / 2; i++) {
      const sixteen_bytes a = rows[i], b = rows[i + TILE / 2];
      mixed[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19,
                                             4, 20, 5, 21, 6, 22, 7, 23);
      mixed[2 * i + 1] = __builtin_shufflevector(
          a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE; i++)
      rows[i] = mixed[i];
  }
  for (int i = 0; i < TILE; i++)
    memcpy(to + i * to_row, &rows[i], sizeof rows[i]);
}

static void transpose_bytes(void *target, int64_t to_row, const void *tile,
                            int64_t h, int64_t w) {
  if (h == TILE && w == TILE)
    transpose_full_bytes(target, to_row, tile);
  else
    transpose_uint8_t(target, to_row, tile, h, w);
}

static transpose_fn find_transpose(size_t size) {
  switch (size) {
  case 1: return transpose_bytes;
  case 2: return transpose_uint16_t;
  case 4: return transpose_words;
  case 8: return transpose_uint64_t;
  default: return transpose_wide;
  }
}

/* Reads w columns of n bytes each into a tile. */
#define READ_TILE(n)                 \
  for (int64_t k_ = 0; k_ < w; k_++) \
  memcpy((char *)tile + k_ * (int64_t)(n), from + k_ * from_step, (n))
static void read_tile(void *tile, const unsigned char *from, int64_t from_step,
                      size_t n, size_t size, int64_t w) {
  if (n != TILE * size)
    for (int64_t k = 0; k < w; k++)
      memcpy((char *)tile + k * TILE * (int64_t)size, from + k * from_step, n);
  else if (size == 1)
    READ_TILE(TILE);
  else if (size == 4)
    READ_TILE(4 * TILE);
  else
    READ_TILE(n);
}

static void transpose_plane(const pln_engine *engine, unsigned char *to,
                            const unsigned char *from, const strided_plane *p,
                            size_t size) {
  wide tile[TILE * TILE];
  transpose_fn transpose = find_transpose(size);
  int64_t bytes = (int64_t)size;
  size_t done = 0;
  for (int64_t r = 0; r < p->rows; r += TILE)
    for (int64_t c = 0; c < p->columns; c += TILE) {
      if (pln_is_stopped_after(engine, &done, TILE * TILE))
        return;
      int64_t h = min_i64(TILE, p->rows - r), w = min_i64(TILE, p->columns - c);
      const unsigned char *at = from + (r + c * p->from_column) * bytes;
      read_tile(tile, at, p->from_column * bytes, (size_t)(h * bytes), size, w);
      transpose(to + (r * p->to_row + c) * bytes, p->to_row, tile, h, w);
    }
}

/* -------------------------------------------------------------------- planes
 */

/* With fewer than SMALL rows or columns (the channels of an image) no tile
 * would be filled. The strided side is accessed once per row or column, from
 * the cache. */
enum { SMALL = 8, STRETCH = 1024 };

/* Elements of a source that may be unaligned. */
typedef uint8_t unaligned_uint8_t;
typedef uint32_t unaligned_uint32_t __attribute__((aligned(1), may_alias));

/* The three channels of an image: three lines from one, and one from three.
 * Loops over all three at once vectorise. */
#define THREE_LINES(T)                                                        \
  PLN_MULTIVERSION static void split_three_##T(void *to, int64_t to_line,     \
                                               const void *from, int64_t n) { \
    T *restrict a = to, *restrict b = a + to_line, *restrict c = b + to_line; \
    const unaligned_##T *restrict x = from;                                   \
    for (int64_t i = 0; i < n; i++) {                                         \
      a[i] = x[3 * i];                                                        \
      b[i] = x[3 * i + 1];                                                    \
      c[i] = x[3 * i + 2];                                                    \
    }                                                                         \
  }                                                                           \
  PLN_MULTIVERSION static void join_three_##T(void *target, const void *from, \
                                              int64_t from_line, int64_t n) { \
    T *restrict to = target;                                                  \
    const unaligned_##T *restrict a = from, *restrict b = a + from_line;      \
    const unaligned_##T *restrict c = b + from_line;                          \
    for (int64_t i = 0; i < n; i++) {                                         \
      to[3 * i] = a[i];                                                       \
      to[3 * i + 1] = b[i];                                                   \
      to[3 * i + 2] = c[i];                                                   \
    }                                                                         \
  }
THREE_LINES(uint8_t)
THREE_LINES(uint32_t)

/* Copies a plane of three rows or columns of 1 or 4 bytes; false if it is
 * another. */
static bool interleave_three(unsigned char *to, const unsigned char *from,
                             const strided_plane *p, size_t size, int64_t at,
                             int64_t n) {
  int64_t bytes = (int64_t)size;
  bool few_rows = p->rows < p->columns;
  if (size != 1 && size != 4)
    return false;
  if (few_rows && p->rows == 3 && p->from_row == 1 && p->from_column == 3)
    (size == 1 ? split_three_uint8_t : split_three_uint32_t)(
        to + at * bytes, p->to_row, from + 3 * at * bytes, n);
  else if (!few_rows && p->columns == 3 && p->to_column == 1 && p->to_row == 3)
    (size == 1 ? join_three_uint8_t : join_three_uint32_t)(
        to + 3 * at * bytes, from + at * bytes, p->from_column, n);
  else
    return false;
  return true;
}

static void interleave_plane(const pln_engine *engine, unsigned char *to,
                             const unsigned char *from, const strided_plane *p,
                             size_t size) {
  int64_t bytes = (int64_t)size;
  bool few_rows = p->rows < p->columns;
  int64_t length = few_rows ? p->columns : p->rows;
  int64_t to_step = few_rows ? p->to_column : p->to_row;
  int64_t from_step = few_rows ? p->from_column : p->from_row;
  int64_t to_line = few_rows ? p->to_row : p->to_column;
  int64_t from_line = few_rows ? p->from_row : p->from_column;
  int64_t lines = few_rows ? p->rows : p->columns;
  size_t done = 0;
  for (int64_t at = 0; at < length; at += STRETCH) {
    if (pln_is_stopped_after(engine, &done, (size_t)lines * STRETCH))
      return;
    if (interleave_three(to, from, p, size, at, min_i64(STRETCH, length - at)))
      continue;
    for (int64_t k = 0; k < lines; k++)
      copy_run(to + (at * to_step + k * to_line) * bytes, to_step,
               from + (at * from_step + k * from_line) * bytes, from_step,
               min_i64(STRETCH, length - at), size);
  }
}

/* Copies n columns of `rows` rows from the positions `to` and `from`. */
static void copy_part(unsigned char *to, const unsigned char *from,
                      const strided_plane *p, int64_t rows, int64_t n,
                      size_t size) {
  int64_t to_row = p->to_row * (int64_t)size;
  int64_t from_row = p->from_row * (int64_t)size;
  for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row)
    if (p->from_column == 0 && p->to_column == 1)
      fill(to, (size_t)n, from, size);
    else
      copy_run(to, p->to_column, from, p->from_column, n, size);
}

/* Copies in parts, because rows may be long, or many. */
static void copy_rows(const pln_engine *engine, unsigned char *to,
                      const unsigned char *from, const strided_plane *p,
                      size_t size) {
  if (p->rows < SMALL_ROWS && p->columns < PART / SMALL_ROWS) {
    copy_part(to, from, p, p->rows, p->columns, size);
    return;
  }
  int64_t bytes = (int64_t)size, high = 1 + PART / (p->columns + 1);
  for (int64_t c = 0; c < p->columns; c += PART)
    for (int64_t r = 0; r < p->rows; r += high) {
      copy_part(to + (r * p->to_row + c * p->to_column) * bytes,
                from + (r * p->from_row + c * p->from_column) * bytes, p,
                min_i64(high, p->rows - r), min_i64(PART, p->columns - c),
                size);
      if (pln_is_stopped(engine))
        return;
    }
}

static void copy_plane(const pln_engine *engine, unsigned char *to,
                       const unsigned char *from, const strided_plane *p,
                       size_t size) {
  bool across = p->from_column != 0 && p->from_column != 1;
  bool small = p->rows < SMALL || p->columns < SMALL;
  if (!across || p->from_row != 1 || p->to_column != 1)
    copy_rows(engine, to, from, p, size);
  else
    (small ? interleave_plane : transpose_plane)(engine, to, from, p, size);
}

/* -------------------------------------------------------------------- views */

/* Drops axes of extent 1 and merges axes that are contiguous in both views.
 * False if there is nothing to copy. */
static bool merge_axes(pln_strided *v) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < v->rank; i++) {
    if (v->dims[i] == 0)
      return false;
    if (v->dims[i] == 1)
      continue;
    bool runs_on = n && v->to[n - 1] == v->to[i] * v->dims[i] &&
                   v->from[n - 1] == v->from[i] * v->dims[i];
    n -= runs_on;
    v->dims[n] = runs_on ? v->dims[n] * v->dims[i] : v->dims[i];
    v->to[n] = v->to[i];
    v->from[n] = v->from[i];
    n++;
  }
  v->rank = n;
  return true;
}

/* Removes axis `i` and returns its extent and strides; extent 1 past the
 * end. */
static void merge_next_axis(pln_strided *v, uint32_t i, int64_t *n, int64_t *to,
                            int64_t *from) {
  *n = 1;
  *to = *from = 0;
  if (i >= v->rank)
    return;
  *n = v->dims[i];
  *to = v->to[i];
  *from = v->from[i];
  v->rank--;
  for (; i < v->rank; i++) {
    v->dims[i] = v->dims[i + 1];
    v->to[i] = v->to[i + 1];
    v->from[i] = v->from[i + 1];
  }
}

/* The columns are the last axis. The rows are the axis along which the source
 * is contiguous, if the columns are not. */
static strided_plane copy_strided_plane(pln_strided *v) {
  strided_plane p;
  merge_next_axis(v, v->rank - 1, &p.columns, &p.to_column, &p.from_column);
  uint32_t rows = v->rank - 1;
  if (p.from_column != 1)
    for (uint32_t i = 0; i < v->rank; i++)
      if (v->from[i] == 1)
        rows = i;
  merge_next_axis(v, rows, &p.rows, &p.to_row, &p.from_row);
  return p;
}

/* Advances to the next position of the outer axes; false past the last one. */
static bool advance_strided_index(const pln_strided *v, int64_t *at,
                                  int64_t *to, int64_t *from) {
  for (uint32_t i = v->rank; i-- > 0;) {
    *to += v->to[i];
    *from += v->from[i];
    if (++at[i] < v->dims[i])
      return true;
    *to -= v->to[i] * v->dims[i];
    *from -= v->from[i] * v->dims[i];
    at[i] = 0;
  }
  return false;
}

/* Copies a view whose axes are merged, at least one. */
static void copy_merged(const pln_engine *engine, void *target,
                        const void *source, size_t size, pln_strided *view) {
  strided_plane p = copy_strided_plane(view);
  int64_t at[PLN_STRIDED_RANK] = {0};
  int64_t to = 0, from = 0;
  size_t done = 0, elements = (size_t)(p.rows * p.columns);
  do
    copy_plane(engine, (unsigned char *)target + to * (int64_t)size,
               (const unsigned char *)source + from * (int64_t)size, &p, size);
  while (!pln_is_stopped_after(engine, &done, elements) &&
         advance_strided_index(view, at, &to, &from));
}

/* A copy that threads share along an axis. */
typedef struct shared_copy {
  const pln_engine *engine;
  char *target;
  const char *source;
  size_t size;
  uint32_t axis;
  const pln_strided *view;
} shared_copy;

static void copy_range(void *ud, size_t begin, size_t end) {
  const shared_copy *s = ud;
  pln_strided view = *s->view;
  int64_t at = (int64_t)begin, size = (int64_t)s->size;
  view.dims[s->axis] = (int64_t)(end - begin);
  copy_merged(s->engine, s->target + at * view.to[s->axis] * size,
              s->source + at * view.from[s->axis] * size, s->size, &view);
}

/* The bytes that pay for another thread. */
enum { SHARED_WORK = 1 << 18 };

/* The outermost axis is shared, or the longest one if that is short. */
void pln_strided_copy(pln_engine *engine, void *target, const void *source,
                      size_t size, pln_strided *view) {
  if (!merge_axes(view))
    return;
  if (view->rank == 0) {
    memcpy(target, source, size);
    return;
  }
  shared_copy s = {engine, target, source, size, 0, view};
  int64_t enough = 4 * (int64_t)pln_parallel_workers(engine);
  size_t bytes = size;
  for (uint32_t i = 0; i < view->rank; i++) {
    if (view->dims[s.axis] < enough && view->dims[i] > view->dims[s.axis])
      s.axis = i;
    bytes *= (size_t)view->dims[i];
  }
  size_t n = (size_t)view->dims[s.axis];
  pln_parallel_ranges(engine, n, 1 + SHARED_WORK / (bytes / n), copy_range, &s);
}

/* ------------------------------------------------------------ moved results */

pln_status pln_strided_result_begin(pln_kernel_call *call, uint32_t index,
                                    pln_dtype dtype, uint32_t rank,
                                    const int64_t *dims,
                                    pln_strided_result *out) {
  size_t bytes;
  *out = (pln_strided_result){.call = call,
                              .index = index,
                              .dtype = dtype,
                              .rank = rank,
                              .dims = dims,
                              .size = pln_element_size(dtype)};
  if (out->size == 0)
    return pln_kernel_no_dtype(call, dtype);
  if (rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "a result of %u axes", rank);
  if (pln_tensor_size(dtype, rank, dims, &out->count, &bytes) != PLN_OK)
    return pln_kernel_refuse(call, "the result is too large");
  if (dtype != PLN_STRING)
    return pln_kernel_unset(call, index, dtype, rank, dims, &out->data);
  out->data = pln_mem_zeroed(call->engine, bytes);
  return out->data || bytes == 0 ? PLN_OK : pln_nomem(call->engine);
}

pln_status pln_strided_result_end(pln_strided_result *moved,
                                  pln_status status) {
  if (moved->dtype != PLN_STRING)
    return status;
  pln_kernel_call *call = moved->call;
  size_t bytes = moved->count * moved->size;
  if (status == PLN_OK)
    status = pln_tensor_from_bytes(call->engine, moved->dtype, moved->rank,
                                   moved->dims, moved->data, bytes,
                                   &call->results[moved->index]);
  pln_mem_free(call->engine, moved->data, bytes);
  return status;
}

pln_status pln_strided_result_copy(pln_kernel_call *call, uint32_t index,
                                   const pln_tensor *tensor, const void *source,
                                   uint32_t rank, const int64_t *dims,
                                   pln_strided *view) {
  pln_strided_result moved;
  PLN_TRY(pln_strided_result_begin(call, index, (pln_dtype)tensor->dtype, rank,
                                   dims, &moved));
  view->rank = rank;
  memcpy(view->dims, dims, rank * sizeof *dims);
  pln_dense_strides(rank, dims, view->to);
  if (moved.count)
    pln_strided_copy(call->engine, moved.data, source, moved.size, view);
  return pln_strided_result_end(&moved, PLN_OK);
}
