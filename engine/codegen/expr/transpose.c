/* transpose.c: columns of a matrix that stores in a row read become vectors by
 * shuffles in registers.
 *
 *     B[0:16] = A[x:x + 16 * n:n]; B[m:m + 16] = A[x + 1:x + 1 + 16 * n:n]; ...
 *
 * loads 16 rows as vectors and transposes them, where lane by lane each of the
 * columns would load from all rows. Called by stmt.c before the statements of a
 * scope. The rows are read before the first store: none of the stores writes
 * the buffer, and memory does not overlap. */

#include <stdio.h>

#include "codegen/writer.h"

enum {
  MOST_STORES = 128, /* of a run */
  MOST_LOADS = 64,
  MOST_NODES = 64,
  MOST_GROUPS = 4,
  MOST_LANES = 64
};

/* Loads of neighbouring columns, in their order. */
typedef struct columns {
  pln_ref loads[MOST_LOADS];
  uint32_t n;
  int64_t stride;
} columns;

/* The loads by strided vectors among the values of the stores of a run. */
typedef struct run {
  pln_ref loads[MOST_LOADS];
  uint32_t n;
} run;

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

/* A statement that belongs to the run of stores, of which there are n before
 * it; else none. */
static pln_ref next_store(const pln_cw *w, pln_ref stmt, uint32_t n) {
  bool is_store = stmt != PLN_NONE && n < MOST_STORES &&
                  w->g->nodes[stmt].kind == PLN_BUFFER_STORE;
  return is_store ? stmt : PLN_NONE;
}

/* ---------------------------------------------------------------- analysis */

static uint32_t memory_of(const pln_cw *w, pln_ref buffer) {
  pln_buffer_fields v = pln_buffer_fields_of(w->g, buffer);
  return w->g->nodes[v.data].data;
}

static bool escapes(const pln_cw *w, uint32_t memory) {
  return (pln_idmap_get(w->access, memory) & PLN_C_ESCAPES) != 0;
}

/* Whether no store of the run writes what the load reads. */
static bool is_apart(const pln_cw *w, pln_ref first, pln_ref load) {
  uint32_t memory = memory_of(w, refs_of(w, load)[0]);
  if (!w->restricts || w->spills || escapes(w, memory))
    return false;
  uint32_t n = 0;
  for (pln_ref at = next_store(w, first, n); at != PLN_NONE;
       at = next_store(w, w->next_stmt[at], ++n)) {
    pln_ref buffer = refs_of(w, at)[0];
    if (w->g->nodes[buffer].kind != PLN_BUFFER ||
        memory_of(w, buffer) == memory || escapes(w, memory_of(w, buffer)))
      return false;
  }
  return true;
}

/* A load of whole chunks, whose lanes are a constant number of elements apart.
 */
static bool is_strided(const pln_cw *w, pln_ref load) {
  const pln_graph *g = w->g;
  const pln_ref *o = refs_of(w, load);
  if (g->nodes[o[0]].kind != PLN_BUFFER || g->nodes[load].count != 2)
    return false;
  pln_buffer_fields v = pln_buffer_fields_of(g, o[0]);
  const pln_node *index = &g->nodes[o[1]];
  uint32_t lanes = pln_prim_lanes(g, load);
  bool plain = v.rank == 1 && v.lanes == 1 && v.n_strides == 0 &&
               pln_is_int(g, v.elem_offset, 0) && pln_c_has_dtype(v.dtype) &&
               !pln_c_is_half(v.dtype) && pln_c_bytes(v.dtype) >= 4;
  if (!plain || index->kind != PLN_RAMP || lanes % w->width ||
      lanes > MOST_LANES)
    return false;
  const pln_node *step = &g->nodes[g->operands[index->first + 1]];
  return step->kind == PLN_INT_IMM && (int64_t)pln_imm_bits(step) > 1 &&
         (int64_t)pln_imm_bits(step) <= INT32_MAX;
}

static void add_load(const pln_cw *w, pln_ref load, run *out) {
  for (uint32_t i = 0; i < out->n; i++)
    if (out->loads[i] == load)
      return;
  if (out->n < MOST_LOADS && is_strided(w, load))
    out->loads[out->n++] = load;
}

/* Adds the loads that a value always reads: below arithmetic alone. */
static void add_loads(const pln_cw *w, pln_ref value, run *out) {
  pln_ref stack[MOST_NODES] = {value};
  for (uint32_t n = 1, seen = 0; n > 0 && ++seen < MOST_NODES;) {
    pln_ref ref = stack[--n];
    const pln_node *node = &w->g->nodes[ref];
    bool is_arithmetic =
        node->kind == PLN_PRIM_CAST ||
        (node->kind >= PLN_PRIM_ADD && node->kind <= PLN_PRIM_MAX);
    if (node->kind == PLN_BUFFER_LOAD)
      add_load(w, ref, out);
    for (uint32_t i = 0; is_arithmetic && i < node->count && n < MOST_NODES;
         i++)
      stack[n++] = refs_of(w, ref)[i];
  }
}

/* The index of lane 0 as a sum of a node, or none, and a constant. */
static pln_ref first_index(const pln_cw *w, pln_ref load, int64_t *constant) {
  const pln_graph *g = w->g;
  pln_ref base = refs_of(w, refs_of(w, load)[1])[0];
  const pln_node *n = &g->nodes[base];
  *constant = 0;
  if (n->kind == PLN_INT_IMM) {
    *constant = (int64_t)pln_imm_bits(n);
    return PLN_NONE;
  }
  if (n->kind != PLN_PRIM_ADD ||
      g->nodes[refs_of(w, base)[1]].kind != PLN_INT_IMM)
    return base;
  *constant = (int64_t)pln_imm_bits(&g->nodes[refs_of(w, base)[1]]);
  return refs_of(w, base)[0];
}

static int64_t stride_of(const pln_cw *w, pln_ref load) {
  pln_ref step = refs_of(w, refs_of(w, load)[1])[1];
  return (int64_t)pln_imm_bits(&w->g->nodes[step]);
}

static bool same_index(const pln_cw *w, pln_ref a, pln_ref b) {
  if (a == b || a == PLN_NONE || b == PLN_NONE)
    return a == b;
  return w->g->nodes[a].kind == PLN_VAR && w->g->nodes[b].kind == PLN_VAR &&
         w->g->nodes[a].data == w->g->nodes[b].data;
}

static bool same_rows(const pln_cw *w, pln_ref a, pln_ref b) {
  int64_t constant;
  return memory_of(w, refs_of(w, a)[0]) == memory_of(w, refs_of(w, b)[0]) &&
         pln_prim_dtype(w->g, a) == pln_prim_dtype(w->g, b) &&
         pln_prim_lanes(w->g, a) == pln_prim_lanes(w->g, b) &&
         stride_of(w, a) == stride_of(w, b) &&
         same_index(w, first_index(w, a, &constant),
                    first_index(w, b, &constant));
}

static void insert_by_column(const pln_cw *w, columns *out, pln_ref load) {
  int64_t column, other;
  uint32_t at = out->n++;
  (void)first_index(w, load, &column);
  for (; at > 0; at--) {
    (void)first_index(w, out->loads[at - 1], &other);
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
  (void)first_index(w, out->loads[0], &first);
  for (; n < out->n; n++) {
    (void)first_index(w, out->loads[n], &column);
    if (column - first != n)
      break;
  }
  out->n = n / w->width * w->width;
  return out->n > 0 && out->n <= (uint64_t)out->stride;
}

/* The k-th group of loads that a run of stores from `first` on transposes. */
static bool find_columns(const pln_cw *w, pln_ref first, uint32_t k,
                         columns *out) {
  run all = {.n = 0};
  bool taken[MOST_LOADS] = {false};
  uint32_t n = 0;
  for (pln_ref at = next_store(w, first, n); at != PLN_NONE;
       at = next_store(w, w->next_stmt[at], ++n))
    add_loads(w, refs_of(w, at)[1], &all);
  for (uint32_t i = 0; i < all.n; i++) {
    if (taken[i] || !is_apart(w, first, all.loads[i]))
      continue;
    *out = (columns){.stride = stride_of(w, all.loads[i])};
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
static const char *shuffled(pln_cw *w, pln_dtype dtype, const char *a,
                            const char *b, uint32_t stage, bool upper) {
  char list[4 * MOST_LANES + 1];
  uint32_t lanes = w->width, size = 0;
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
static void transpose(pln_cw *w, pln_dtype dtype, const char **rows) {
  for (uint32_t stage = 1; stage < w->width; stage *= 2)
    for (uint32_t i = 0; i < w->width; i++) {
      if (i & stage)
        continue;
      const char *a = rows[i], *b = rows[i | stage];
      rows[i] = shuffled(w, dtype, a, b, stage, false);
      rows[i | stage] = shuffled(w, dtype, a, b, stage, true);
    }
}

static void load_rows(pln_cw *w, const columns *c, uint32_t column,
                      uint32_t row, const char **rows) {
  pln_dtype dtype = pln_prim_dtype(w->g, c->loads[0]);
  for (uint32_t i = 0; i < w->width; i++) {
    pln_c_text text = pln_c_neighbours(
        w, c->loads[0], (int64_t)(row + i) * c->stride + column, w->width);
    rows[i] = pln_c_name(w, pln_c_chunk_type(w, dtype, 0, w->width), text).data;
  }
}

void pln_c_push_transposes(pln_cw *w, pln_ref first) {
  columns c;
  if (w->width < 2 || next_store(w, first, 0) == PLN_NONE)
    return;
  for (uint32_t k = 0; k < MOST_GROUPS && find_columns(w, first, k, &c); k++) {
    pln_c_push(w, (pln_c_task){.what = PLN_C_TRANSPOSE, .ref = first, .x = k});
    pln_c_push_access(w, c.loads[0], 1);
  }
}

void pln_c_transpose_task(pln_cw *w, pln_c_task task) {
  columns c;
  const char *rows[MOST_LANES];
  pln_c_value values[MOST_LOADS];
  if (!find_columns(w, task.ref, task.x, &c))
    return;
  pln_dtype dtype = pln_prim_dtype(w->g, c.loads[0]);
  uint32_t lanes = pln_prim_lanes(w->g, c.loads[0]);
  for (uint32_t i = 0; i < c.n; i++)
    values[i] = pln_c_new_value(w, dtype, lanes, PLN_C_PLAIN);
  for (uint32_t column = 0; column < c.n; column += w->width)
    for (uint32_t row = 0; row < lanes && w->status == PLN_OK;
         row += w->width) {
      load_rows(w, &c, column, row, rows);
      transpose(w, dtype, rows);
      for (uint32_t i = 0; i < w->width; i++)
        pln_c_add_text(w, &values[column + i],
                       pln_c_textf(w, PLN_C_NAME, "%s", rows[i]));
    }
  for (uint32_t i = 0; i < c.n; i++)
    pln_c_set(w, c.loads[i], values[i]);
}
