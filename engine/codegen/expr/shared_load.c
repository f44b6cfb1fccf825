/* shared_load.c: a vector that several stores in a row read is loaded once.
 *
 *     C[0:8] += A[i] * B[k:k + 8]; C[8:16] += A[i + n] * B[k:k + 8]; ...
 *
 * gcc knows that the loads of B are one, and yet gives each multiplication an
 * operand in memory. Two loads a cycle are then what binds a tile of sums in
 * registers: 63 in place of 97 GFLOP/s, where four rows of two vectors are
 * summed. PL_KEEP hides from it where the variable comes from. Called by stmt.c
 * before stores in a row.
 *
 * A vector is kept only where the vectors that are stored and those that are
 * kept fit the registers: what is spilled would be loaded again after all. */

#include "codegen/writer.h"

enum { MOST_KEPT = 16 };

/* The loads of a run of stores; those of equal groups read the same. */
typedef struct shared_loads {
  pln_c_loads all;
  uint32_t group[PLN_C_MOST_LOADS]; /* the first load of the same; MOST: none */
  uint32_t n_groups;
} shared_loads;

static bool is_row(const pln_cw *w, pln_ref load) {
  return pln_c_load_stride(w, load) == 1;
}

static bool reads_same(const pln_cw *w, pln_ref a, pln_ref b) {
  int64_t at_a, at_b;
  return pln_c_memory_of(w, a) == pln_c_memory_of(w, b) &&
         pln_prim_dtype(w->g, a) == pln_prim_dtype(w->g, b) &&
         pln_prim_lanes(w->g, a) == pln_prim_lanes(w->g, b) &&
         pln_c_same_index(w, pln_c_first_index(w, a, &at_a),
                          pln_c_first_index(w, b, &at_b)) &&
         at_a == at_b;
}

static void group_loads(const pln_cw *w, pln_ref first, shared_loads *s) {
  uint32_t uses[PLN_C_MOST_LOADS];
  for (uint32_t i = 0; i < s->all.n; i++) {
    uint32_t k = 0;
    while (k < i && (s->group[k] != k ||
                     !reads_same(w, s->all.loads[k], s->all.loads[i])))
      k++;
    s->group[i] = k;
    uses[i] = 0;
    uses[k] += s->all.uses[i];
  }
  for (uint32_t i = 0; i < s->all.n; i++) {
    uint32_t k = s->group[i];
    if (k == i && (uses[k] < 2 || !pln_c_is_apart(w, first, s->all.loads[k])))
      s->group[i] = PLN_C_MOST_LOADS;
    else if (k != i)
      s->group[i] = s->group[k];
    s->n_groups += s->group[i] == i;
  }
}

/* How many vectors the run of stores writes. */
static uint32_t n_stored(const pln_cw *w, pln_ref first) {
  uint32_t n = pln_c_n_stores(w, first), chunks = 0;
  for (pln_ref at = first; n-- > 0; at = w->next_stmt[at]) {
    pln_ref value = pln_operands(w->g, &w->g->nodes[at])[1];
    chunks += pln_c_n_chunks(w, pln_prim_lanes(w->g, value));
  }
  return chunks;
}

/* Whether all that is kept fits: beside one vector for the other operand. */
static bool fits_registers(const pln_cw *w, pln_ref first,
                           const shared_loads *s) {
  uint32_t registers = pln_c_vector_registers(pln_c_vector_bytes(w));
  uint32_t chunks = n_stored(w, first) + 1;
  for (uint32_t i = 0; i < s->all.n; i++)
    if (s->group[i] == i)
      chunks += pln_c_n_chunks(w, pln_prim_lanes(w->g, s->all.loads[i]));
  return chunks <= registers;
}

static bool find_shared(const pln_cw *w, pln_ref first, shared_loads *s) {
  s->n_groups = 0;
  pln_c_find_loads(w, first, is_row, &s->all);
  group_loads(w, first, s);
  return s->n_groups > 0 && s->n_groups <= MOST_KEPT &&
         fits_registers(w, first, s);
}

/* A variable for each vector of the load. */
static pln_c_value keep_load(pln_cw *w, pln_ref load) {
  pln_dtype dtype = pln_prim_dtype(w->g, load);
  uint32_t lanes = pln_prim_lanes(w->g, load), width = w->width;
  bool keeps = width * pln_c_bytes(dtype) == pln_c_vector_bytes(w);
  pln_c_value out = pln_c_new_value(w, dtype, lanes, PLN_C_PLAIN);
  for (uint32_t at = 0; at < lanes; at += width) {
    pln_c_text text = pln_c_neighbours(w, load, at, width);
    const char *name = pln_c_temp(w);
    pln_c_line(w, "%s %s = %s;", pln_c_chunk_type(w, dtype, 0, width), name,
               text.data);
    if (keeps)
      pln_c_line(w, "PL_KEEP(%s);", name);
    w->uses_keep |= keeps;
    pln_c_add_text(w, &out, pln_c_textf(w, PLN_C_NAME, "%s", name));
  }
  return out;
}

void pln_c_push_shared_loads(pln_cw *w, pln_ref first) {
  shared_loads s;
  if (w->width < 2 || pln_c_n_stores(w, first) < 2 ||
      !find_shared(w, first, &s))
    return;
  pln_c_push(w, (pln_c_task){.what = PLN_C_SHARED_LOADS, .ref = first});
  for (uint32_t i = 0; i < s.all.n; i++)
    if (s.group[i] == i)
      pln_c_push_access(w, s.all.loads[i], 1);
}

void pln_c_shared_loads_task(pln_cw *w, pln_ref first) {
  shared_loads s;
  pln_c_value values[PLN_C_MOST_LOADS];
  if (!find_shared(w, first, &s))
    return;
  for (uint32_t i = 0; i < s.all.n; i++) {
    if (s.group[i] == PLN_C_MOST_LOADS)
      continue;
    if (s.group[i] == i)
      values[i] = keep_load(w, s.all.loads[i]);
    pln_c_set(w, s.all.loads[i], values[s.group[i]]);
  }
}
