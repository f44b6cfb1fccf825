/* transpose.c: columns of a matrix that stores in a row read become vectors by
 * shuffles in registers.
 *
 *     B[0:16] = A[x:x + 16 * n:n]; B[m:m + 16] = A[x + 1:x + 1 + 16 * n:n]; ...
 *
 * loads 16 rows as vectors and transposes them, where lane by lane each of the
 * columns would load from all rows. Called by stmt.c before stores in a row.
 * The rows are read before the first store: none of the stores writes the
 * buffer, and memory does not overlap. All of a row is read before the next
 * one: rows that are a power of two apart evict each other from the nearest
 * cache, where 16 of them share a set of 8 lines. 1024 x 1024 of 16 x 16: 372
 * for 486 us.
 *
 * Blocks of half a vector's lanes, in two loops that run in tiles (tile.c):
 *
 *     for i: for j: B[i * 8 * n + j * 8 + 0:8] = A[x:x + 8 * m:m]; ...
 *
 * are transposed two by two, so that each line of memory is read and written
 * once, whole. */

#include <stdio.h>

#include "codegen/writer.h"

enum { MOST_GROUPS = 4, MOST_LANES = 64, LEAST_LANES = 4 };

/* Loads of neighbouring columns, in their order. */
typedef struct columns {
  pln_ref loads[PLN_C_MOST_LOADS];
  uint32_t n;
  uint32_t block; /* so many rows and columns are transposed at once */
  int64_t stride;
} columns;

/* ---------------------------------------------------------------- analysis */

/* Lanes of the vectors that are transposed: those of a chunk, all of shorter
 * loads; 0: the load has other chunks. */
static uint32_t block_of(const pln_cw *w, pln_ref load) {
  uint32_t lanes = pln_prim_lanes(w->g, load);
  if (lanes >= w->width)
    return lanes % w->width == 0 ? w->width : 0;
  return lanes >= LEAST_LANES && (lanes & (lanes - 1)) == 0 ? lanes : 0;
}

static bool is_strided(const pln_cw *w, pln_ref load) {
  return pln_c_load_stride(w, load) > 1 && block_of(w, load) != 0;
}

static bool same_rows(const pln_cw *w, pln_ref a, pln_ref b) {
  int64_t constant;
  return pln_c_memory_of(w, a) == pln_c_memory_of(w, b) &&
         pln_prim_dtype(w->g, a) == pln_prim_dtype(w->g, b) &&
         pln_prim_lanes(w->g, a) == pln_prim_lanes(w->g, b) &&
         pln_c_load_stride(w, a) == pln_c_load_stride(w, b) &&
         pln_c_same_index(w, pln_c_first_index(w, a, &constant),
                          pln_c_first_index(w, b, &constant));
}

static void insert_by_column(const pln_cw *w, columns *out, pln_ref load) {
  int64_t column, other;
  uint32_t at = out->n++;
  (void)pln_c_first_index(w, load, &column);
  for (; at > 0; at--) {
    (void)pln_c_first_index(w, out->loads[at - 1], &other);
    if (other <= column)
      break;
    out->loads[at] = out->loads[at - 1];
  }
  out->loads[at] = load;
}

/* Keeps whole chunks of neighbouring columns from the first one on. */
static bool keep_neighbours(const pln_cw *w, columns *out) {
  int64_t first, column;
  uint32_t n = 0;
  (void)pln_c_first_index(w, out->loads[0], &first);
  for (; n < out->n; n++) {
    (void)pln_c_first_index(w, out->loads[n], &column);
    if (column - first != n)
      break;
  }
  out->n = n - n % out->block;
  return out->n > 0 && out->n <= (uint64_t)out->stride;
}

/* The k-th group of loads that a run of stores from `first` on transposes. */
static bool find_columns(const pln_cw *w, pln_ref first, uint32_t k,
                         columns *out) {
  pln_c_loads all;
  bool taken[PLN_C_MOST_LOADS] = {false};
  pln_c_find_loads(w, first, is_strided, &all);
  for (uint32_t i = 0; i < all.n; i++) {
    if (taken[i] || !pln_c_is_apart(w, first, all.loads[i]))
      continue;
    *out = (columns){.block = block_of(w, all.loads[i]),
                     .stride = pln_c_load_stride(w, all.loads[i])};
    for (uint32_t j = i; j < all.n; j++)
      if (!taken[j] && same_rows(w, all.loads[i], all.loads[j])) {
        taken[j] = true;
        insert_by_column(w, out, all.loads[j]);
      }
    if (keep_neighbours(w, out) && k-- == 0)
      return true;
  }
  return false;
}

/* ----------------------------------------------------------------- writing */

/* One of the two results of exchanging lanes: those of `a` whose number has the
 * bit `stage` or not, beside those of `b`. */
static const char *shuffled(pln_cw *w, pln_dtype dtype, uint32_t lanes,
                            const char *a, const char *b, uint32_t stage,
                            bool upper) {
  char list[4 * MOST_LANES + 1];
  uint32_t size = 0;
  const char *type = pln_c_chunk_type(w, dtype, 0, lanes);
  const char *mask =
      pln_c_vector(w, pln_c_mask_type(pln_c_bytes(dtype)), lanes, false);
  const char *name = pln_c_temp(w);
  for (uint32_t j = 0; j < lanes; j++) {
    uint32_t from =
        j & stage ? lanes + (upper ? j : j ^ stage) : (upper ? j | stage : j);
    size += (uint32_t)snprintf(list + size, sizeof list - size, ", %u", from);
  }
  w->uses_shuffle = true;
  pln_c_line(w, "const %s %s = PL_SHUFFLE(%s, %s, %s%s);", type, name, mask, a,
             b, list);
  return name;
}

/* Rows become columns: in each stage pairs of rows exchange half of their
 * lanes. */
static void transpose(pln_cw *w, pln_dtype dtype, uint32_t block,
                      const char **rows) {
  for (uint32_t stage = 1; stage < block; stage *= 2)
    for (uint32_t i = 0; i < block; i++) {
      if (i & stage)
        continue;
      const char *a = rows[i], *b = rows[i | stage];
      rows[i] = shuffled(w, dtype, block, a, b, stage, false);
      rows[i | stage] = shuffled(w, dtype, block, a, b, stage, true);
    }
}

static void load_rows(pln_cw *w, const columns *c, uint32_t column,
                      uint32_t row, const char **rows) {
  pln_dtype dtype = pln_prim_dtype(w->g, c->loads[0]);
  for (uint32_t i = 0; i < c->block; i++) {
    pln_c_text text = pln_c_neighbours(
        w, c->loads[0], (int64_t)(row + i) * c->stride + column, c->block);
    rows[i] = pln_c_name(w, pln_c_chunk_type(w, dtype, 0, c->block), text).data;
  }
}

void pln_c_push_transposes(pln_cw *w, pln_ref first) {
  columns c;
  if (w->width < 2 || pln_c_n_stores(w, first) == 0)
    return;
  for (uint32_t k = 0; k < MOST_GROUPS && find_columns(w, first, k, &c); k++) {
    pln_c_push(w, (pln_c_task){.what = PLN_C_TRANSPOSE, .ref = first, .x = k});
    pln_c_push_access(w, c.loads[0], 1);
  }
}

void pln_c_transpose_task(pln_cw *w, pln_c_task task) {
  columns c;
  const char *rows[MOST_LANES];
  pln_c_value values[PLN_C_MOST_LOADS];
  if (!find_columns(w, task.ref, task.x, &c))
    return;
  pln_dtype dtype = pln_prim_dtype(w->g, c.loads[0]);
  uint32_t lanes = pln_prim_lanes(w->g, c.loads[0]);
  for (uint32_t i = 0; i < c.n; i++)
    values[i] = pln_c_new_value(w, dtype, lanes, PLN_C_PLAIN);
  for (uint32_t row = 0; row < lanes; row += c.block)
    for (uint32_t column = 0; column < c.n && w->status == PLN_OK;
         column += c.block) {
      load_rows(w, &c, column, row, rows);
      transpose(w, dtype, c.block, rows);
      for (uint32_t i = 0; i < c.block; i++)
        pln_c_add_text(w, &values[column + i],
                       pln_c_textf(w, PLN_C_NAME, "%s", rows[i]));
    }
  for (uint32_t i = 0; i < c.n; i++)
    pln_c_set(w, c.loads[i], values[i]);
}

/* ---------------------------------------------------------- doubled blocks */

/* The column of A that a store writes, from the first one on; -1: its value is
 * none of them. */
static int64_t column_of(const pln_cw *w, const columns *c, pln_ref store) {
  pln_ref value = pln_operands(w->g, &w->g->nodes[store])[1];
  for (uint32_t i = 0; i < c->n; i++)
    if (c->loads[i] == value)
      return i;
  return -1;
}

/* The factors of two loops' variables in the first index of a vector. */
static bool factors_of(const pln_cw *w, pln_ref ramp, pln_ref outer,
                       pln_ref inner, pln_c_linear *at) {
  return w->g->nodes[ramp].kind == PLN_RAMP &&
         pln_c_linear_of(w, pln_operands(w->g, &w->g->nodes[ramp])[0], outer,
                         inner, at);
}

static pln_ref index_of(const pln_cw *w, pln_ref access, uint32_t operand) {
  return pln_operands(w->g, &w->g->nodes[access])[operand];
}

bool pln_c_doubles_blocks(const pln_cw *w, pln_ref first, pln_ref outer,
                          pln_ref inner) {
  columns c;
  pln_c_linear at;
  uint32_t n = pln_c_n_stores(w, first);
  if (w->width < 2 || !find_columns(w, first, 0, &c) ||
      2 * c.block != w->width || c.n != c.block || n != c.n ||
      pln_prim_lanes(w->g, c.loads[0]) != c.block ||
      !factors_of(w, index_of(w, c.loads[0], 1), outer, inner, &at) ||
      at.outer != c.block || at.inner != c.block * c.stride)
    return false;
  for (pln_ref store = first; n-- > 0; store = w->next_stmt[store])
    if (column_of(w, &c, store) < 0 ||
        !factors_of(w, index_of(w, store, 2), outer, inner, &at) ||
        at.inner != c.block)
      return false;
  return true;
}

void pln_c_push_doubled(pln_cw *w, pln_ref first) {
  columns c;
  uint32_t n = pln_c_n_stores(w, first);
  if (!find_columns(w, first, 0, &c))
    return;
  pln_c_push(w, (pln_c_task){.what = PLN_C_DOUBLED, .ref = first});
  pln_c_push_access(w, c.loads[0], 1);
  for (pln_ref store = first; n-- > 0; store = w->next_stmt[store])
    pln_c_push_access(w, store, 2);
}

void pln_c_doubled_task(pln_cw *w, pln_ref first) {
  columns c;
  const char *rows[MOST_LANES];
  pln_c_linear at;
  uint32_t n = pln_c_n_stores(w, first);
  if (!find_columns(w, first, 0, &c))
    return;
  uint32_t half = c.block;
  c.block *= 2;
  load_rows(w, &c, 0, 0, rows);
  transpose(w, pln_prim_dtype(w->g, c.loads[0]), c.block, rows);
  for (pln_ref store = first; n-- > 0; store = w->next_stmt[store]) {
    int64_t column = column_of(w, &c, store);
    if (column < 0 ||
        !factors_of(w, index_of(w, store, 2), pln_c_loop_var(w, w->tile.outer),
                    pln_c_loop_var(w, w->tile.inner), &at))
      return;
    pln_c_store_neighbours(w, store, 0, c.block, rows[column]);
    pln_c_store_neighbours(w, store, at.outer, c.block, rows[column + half]);
  }
}
