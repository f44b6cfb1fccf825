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
 * As many vectors are kept as find a register beside those that are stored:
 * what is spilled would be loaded again after all. The others stay operands in
 * memory: where 14 sums and one of two vectors of B have a register each, a
 * step of seven rows loads 15 vectors, and 21 if none is kept. gcc spills a sum
 * there nevertheless, if it carries the sums through an outer loop too. So
 * these are in memory before the inner loop begins: 60 becomes 70 GFLOP/s. */

#include <stdio.h>

#include "codegen/writer.h"

/* LEAST_KEPT: bytes of the least vector that has a register of its own;
 * LEAST_SPREAD: of vectors whose operands in memory may be spread scalars. */
enum { MOST_KEPT = 16, LEAST_KEPT = 16, LEAST_SPREAD = 64 };

/* The loads of a run of stores; those of equal groups read the same. */
typedef struct shared_loads {
  pln_c_loads all;
  uint32_t group[PLN_C_MOST_LOADS]; /* the first load of the same; MOST: none */
  uint32_t n_groups;
} shared_loads;

static bool is_row(const pln_cw *w, pln_ref load) {
  return pln_c_load_stride(w, load) == 1;
}

/* The lanes of the i-th load: those of stores that are written as one. */
static uint32_t lanes_of(const pln_cw *w, const pln_c_loads *all, uint32_t i) {
  return pln_prim_lanes(w->g, all->loads[i]) * all->parts[i];
}

static bool reads_same(const pln_cw *w, pln_ref a, pln_ref b) {
  int64_t at_a, at_b;
  return pln_c_memory_of(w, a) == pln_c_memory_of(w, b) &&
         pln_prim_dtype(w->g, a) == pln_prim_dtype(w->g, b) &&
         pln_c_same_index(w, pln_c_first_index(w, a, &at_a),
                          pln_c_first_index(w, b, &at_b)) &&
         at_a == at_b;
}

static void group_loads(const pln_cw *w, pln_ref first, shared_loads *s) {
  uint32_t uses[PLN_C_MOST_LOADS];
  for (uint32_t i = 0; i < s->all.n; i++) {
    uint32_t k = 0;
    while (k < i && (s->group[k] != k ||
                     lanes_of(w, &s->all, k) != lanes_of(w, &s->all, i) ||
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

uint32_t pln_c_n_stored(const pln_cw *w, pln_ref first) {
  uint32_t left = pln_c_n_stores(w, first), chunks = 0, parts;
  for (pln_ref at = first, next; left > 0; at = next) {
    pln_ref value = pln_operands(w->g, &w->g->nodes[at])[1];
    next = pln_c_next_group(w, at, &left, &parts);
    chunks += pln_c_n_chunks(w, pln_prim_lanes(w->g, value) * parts);
  }
  return chunks;
}

/* How many vectors can be kept: beside those that are stored and one for the
 * other operand. */
static uint32_t n_free(const pln_cw *w, pln_ref first) {
  uint32_t registers = pln_c_vector_registers(pln_c_vector_bytes(w));
  uint32_t taken = pln_c_n_stored(w, first) + 1;
  return taken < registers ? registers - taken : 0;
}

static uint32_t n_shared(const pln_cw *w, const shared_loads *s) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->all.n; i++)
    if (s->group[i] == i)
      n += pln_c_n_chunks(w, lanes_of(w, &s->all, i));
  return n;
}

/* How many vectors that the stores share are kept; 0: there are none, or no
 * register is left for them. */
static uint32_t find_shared(const pln_cw *w, pln_ref first, shared_loads *s) {
  s->n_groups = 0;
  pln_c_find_loads(w, first, is_row, &s->all);
  group_loads(w, first, s);
  if (s->n_groups == 0 || s->n_groups > MOST_KEPT)
    return 0;
  uint32_t most = n_free(w, first), n = n_shared(w, s);
  return n < most ? n : most;
}

/* Whether the stores from `first` on have registers for all that they share, or
 * the sums of their loop are in memory before it. */
static bool has_registers(const pln_cw *w, pln_ref first, const shared_loads *s,
                          uint32_t n_kept) {
  return n_kept > 0 && (n_kept == n_shared(w, s) || w->sums_first == first);
}

bool pln_c_fits_registers(const pln_cw *w, pln_ref first, bool *shares) {
  shared_loads s;
  uint32_t registers = pln_c_vector_registers(pln_c_vector_bytes(w));
  uint32_t n_kept = find_shared(w, first, &s);
  *shares |= n_kept > 0;
  return pln_c_n_stored(w, first) < registers && n_kept == n_shared(w, &s);
}

/* A variable for each vector of the load; those that find one of the `free`
 * registers are kept there. */
static pln_c_value keep_load(pln_cw *w, pln_ref load, uint32_t lanes,
                             uint32_t *free) {
  pln_dtype dtype = pln_prim_dtype(w->g, load);
  pln_c_value out = pln_c_new_value(w, dtype, lanes, PLN_C_PLAIN);
  for (uint32_t at = 0, i = 0; at < lanes; i++) {
    uint32_t width = pln_c_chunk_lanes(w, lanes, i);
    uint32_t bytes = width * pln_c_bytes(dtype);
    pln_c_text text = pln_c_neighbours(w, load, at, width);
    const char *name = pln_c_temp(w);
    pln_c_line(w, "%s %s = %s;", pln_c_chunk_type(w, dtype, 0, width), name,
               text.data);
    if (bytes >= LEAST_KEPT && bytes <= pln_c_vector_bytes(w) && *free > 0) {
      pln_c_line(w, "PL_KEEP(%s);", name);
      w->uses_keep = true;
      --*free;
    }
    pln_c_add_text(w, &out, pln_c_textf(w, PLN_C_NAME, "%s", name));
    at += width;
  }
  return out;
}

void pln_c_push_shared_loads(pln_cw *w, pln_ref first) {
  shared_loads s;
  w->n_free = 0;
  if (w->width < 2 || pln_c_n_stores(w, first) < 2)
    return;
  w->n_free = n_free(w, first);
  uint32_t n_kept = find_shared(w, first, &s);
  if (!has_registers(w, first, &s, n_kept))
    return;
  w->n_free -= n_kept;
  pln_c_push(w, (pln_c_task){.what = PLN_C_SHARED_LOADS, .ref = first});
  for (uint32_t i = 0; i < s.all.n; i++)
    if (s.group[i] == i)
      pln_c_push_access(w, s.all.loads[i], 1);
}

void pln_c_shared_loads_task(pln_cw *w, pln_ref first) {
  shared_loads s;
  pln_c_value values[PLN_C_MOST_LOADS];
  uint32_t free = find_shared(w, first, &s);
  for (uint32_t i = 0; i < s.all.n; i++) {
    if (s.group[i] == PLN_C_MOST_LOADS)
      continue;
    if (s.group[i] == i)
      values[i] = keep_load(w, s.all.loads[i], lanes_of(w, &s.all, i), &free);
    pln_c_set(w, s.all.loads[i], values[s.group[i]]);
  }
}

/* ------------------------------------------------------------------ splats */

static bool is_loaded_splat(const pln_cw *w, pln_ref ref,
                            const pln_c_value *value) {
  const pln_node *n = &w->g->nodes[ref];
  return value->form == PLN_C_SPLAT && n->kind == PLN_BROADCAST &&
         w->g->nodes[pln_operands(w->g, n)[0]].kind == PLN_BUFFER_LOAD &&
         pln_c_is_float((pln_dtype)value->dtype);
}

/* The first lanes of a vector; `splat` for compilers that have no such
 * shuffle. */
static pln_c_text low_lanes(pln_cw *w, const char *vector, pln_c_text splat,
                            uint32_t lanes) {
  char list[4 * 64 + 1];
  uint32_t size = 0;
  for (uint32_t i = 0; i < lanes; i++)
    size += (uint32_t)snprintf(list + size, sizeof list - size, ", %u", i);
  w->uses_low = true;
  return pln_c_textf(w, PLN_C_CALL, "PL_LOW(%s, %s%s)", vector, splat.data,
                     list);
}

/* gcc for AVX-512 gives each multiplication by a scalar in memory an operand
 * that is loaded and spread anew: a convolution of four rows of 28 lanes loads
 * 15 times a round, and 7 times if a register keeps each scalar: 583 us in
 * place of 661. A store alone stays as it is: gcc unrolls loops around it, and
 * keeps the sums of several rounds in registers, if it sees all of it. */
pln_c_value pln_c_kept_splat(pln_cw *w, pln_ref ref, pln_c_value value) {
  pln_dtype dtype = (pln_dtype)value.dtype;
  uint32_t lanes = pln_c_chunk_lanes(w, value.lanes, 0);
  if (!is_loaded_splat(w, ref, &value) || w->n_free == 0 ||
      lanes * pln_c_bytes(dtype) != LEAST_SPREAD ||
      pln_c_n_chunks(w, value.lanes) < 2)
    return value;
  pln_c_value from = pln_c_plain(w, value), out = from;
  const char *name = pln_c_temp(w);
  pln_c_line(w, "%s %s = %s;", pln_c_chunk_type(w, dtype, 0, lanes), name,
             pln_c_text_at(w, &from, 0).data);
  pln_c_line(w, "PL_KEEP(%s);", name);
  w->uses_keep = true;
  out.count = 0;
  for (uint32_t i = 0; i < from.count; i++) {
    uint32_t n = pln_c_chunk_lanes(w, value.lanes, i);
    pln_c_text text = pln_c_text_at(w, &from, i);
    if (n == lanes)
      text = pln_c_textf(w, PLN_C_NAME, "%s", name);
    else if (n > 1)
      text = low_lanes(w, name, text, n);
    pln_c_add_text(w, &out, text);
  }
  return out;
}

/* ---------------------------------------------------------- sums of a loop */

pln_ref pln_c_first_store(const pln_cw *w, pln_scope body) {
  pln_ref at = w->first_stmt[body];
  while (at != PLN_NONE) {
    const pln_node *n = &w->g->nodes[at];
    if (n->kind == PLN_BUFFER_STORE)
      return at == w->part.row ? w->part.first : at;
    if (n->kind == PLN_EVALUATE)
      at = w->next_stmt[at];
    else if (n->kind == PLN_LET_STMT || n->kind == PLN_SEQ_STMT ||
             n->kind == PLN_DECL_BUFFER)
      at = w->first_stmt[n->data];
    else
      break;
  }
  return PLN_NONE;
}

int64_t pln_c_n_sums(const pln_cw *w, pln_ref first) {
  const pln_graph *g = w->g;
  pln_ref buffer = pln_operands(g, &g->nodes[first])[0], at = first;
  if (g->nodes[buffer].kind != PLN_BUFFER)
    return 0;
  pln_buffer_fields v = pln_buffer_fields_of(g, buffer);
  const pln_c_memory *memory = pln_c_find_memory(w, v.data);
  for (uint32_t n = pln_c_n_stores(w, first); n-- > 0; at = w->next_stmt[at])
    if (pln_c_memory_of(w, at) != pln_c_memory_of(w, first))
      return 0;
  if (!memory || memory->dtype != v.dtype)
    return 0;
  int64_t n = v.lanes;
  for (uint32_t d = 0; d < v.rank; d++) {
    const pln_node *extent = &g->nodes[v.shape[d]];
    if (extent->kind != PLN_INT_IMM ||
        __builtin_mul_overflow(n, (int64_t)pln_imm_bits(extent), &n))
      return 0;
  }
  return n > 0 && n <= INT32_MAX ? n : 0;
}

void pln_c_begin_sums(pln_cw *w, pln_scope body) {
  shared_loads s;
  pln_ref first = w->width < 2 ? PLN_NONE : pln_c_first_store(w, body);
  if (first == PLN_NONE || pln_c_n_stores(w, first) < 2)
    return;
  uint32_t n_kept = find_shared(w, first, &s);
  if (n_kept == 0 || n_kept == n_shared(w, &s) || pln_c_n_sums(w, first) <= 0)
    return;
  pln_buffer_fields v =
      pln_buffer_fields_of(w->g, pln_operands(w->g, &w->g->nodes[first])[0]);
  pln_c_line(w, "PL_IN_MEMORY(%s, %s, %lld);", pln_c_type_name(v.dtype),
             pln_c_find_memory(w, v.data)->name.data,
             (long long)pln_c_n_sums(w, first));
  w->uses_keep = true;
  w->sums_first = first;
}
