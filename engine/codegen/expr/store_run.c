/* store_run.c: stores that stand in a row, and the vectors that their values
 * read.
 *
 * Called by transpose.c and shared_load.c, which load before the first of these
 * stores what several of them read. What they load is the same for all of them
 * if none of them writes its memory (pln_c_is_apart). */

#include "codegen/writer.h"

enum { MOST_STORES = 128, MOST_NODES = 64, MOST_LANES = 64 };

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

/* A statement that belongs to the run of stores, of which there are n before
 * it; else none. */
static pln_ref next_store(const pln_cw *w, pln_ref stmt, uint32_t n) {
  bool is_store = stmt != PLN_NONE && stmt != w->part.end && n < MOST_STORES &&
                  w->g->nodes[stmt].kind == PLN_BUFFER_STORE;
  return is_store ? stmt : PLN_NONE;
}

uint32_t pln_c_n_stores(const pln_cw *w, pln_ref first) {
  uint32_t n = 0;
  for (pln_ref at = next_store(w, first, n); at != PLN_NONE;
       at = next_store(w, w->next_stmt[at], ++n))
    continue;
  return n;
}

pln_ref pln_c_next_group(const pln_cw *w, pln_ref store, uint32_t *n_stores,
                         uint32_t *parts) {
  *parts = *n_stores > 1 ? pln_c_n_merged(w, store, *n_stores) : 1;
  *n_stores -= *parts;
  for (uint32_t i = 0; i < *parts; i++)
    store = w->next_stmt[store];
  return store;
}

uint32_t pln_c_memory_of(const pln_cw *w, pln_ref access) {
  pln_buffer_fields v = pln_buffer_fields_of(w->g, refs_of(w, access)[0]);
  return w->g->nodes[v.data].data;
}

static bool escapes(const pln_cw *w, uint32_t memory) {
  return (pln_idmap_get(w->access, memory) & PLN_C_ESCAPES) != 0;
}

bool pln_c_is_other_memory(const pln_cw *w, uint32_t read, uint32_t written) {
  return w->restricts && !w->spills && read != written && !escapes(w, read) &&
         !escapes(w, written);
}

bool pln_c_is_apart(const pln_cw *w, pln_ref first, pln_ref load) {
  uint32_t memory = pln_c_memory_of(w, load), n = 0;
  for (pln_ref at = next_store(w, first, n); at != PLN_NONE;
       at = next_store(w, w->next_stmt[at], ++n)) {
    if (w->g->nodes[refs_of(w, at)[0]].kind != PLN_BUFFER ||
        !pln_c_is_other_memory(w, memory, pln_c_memory_of(w, at)))
      return false;
  }
  return true;
}

/* ------------------------------------------------------------------- loads */

bool pln_c_is_plain_buffer(const pln_cw *w, pln_ref buffer) {
  if (w->g->nodes[buffer].kind != PLN_BUFFER)
    return false;
  pln_buffer_fields v = pln_buffer_fields_of(w->g, buffer);
  return v.rank == 1 && v.lanes == 1 && v.n_strides == 0 &&
         pln_is_int(w->g, v.elem_offset, 0) && pln_c_has_dtype(v.dtype) &&
         !pln_c_is_half(v.dtype) && pln_c_bytes(v.dtype) >= 4;
}

int64_t pln_c_load_stride(const pln_cw *w, pln_ref load) {
  const pln_graph *g = w->g;
  const pln_ref *o = refs_of(w, load);
  if (g->nodes[load].count != 2)
    return 0;
  const pln_node *index = &g->nodes[o[1]];
  uint32_t lanes = pln_prim_lanes(g, load);
  if (!pln_c_is_plain_buffer(w, o[0]) || index->kind != PLN_RAMP ||
      lanes > MOST_LANES)
    return 0;
  const pln_node *step = &g->nodes[g->operands[index->first + 1]];
  int64_t stride = step->kind == PLN_INT_IMM ? (int64_t)pln_imm_bits(step) : 0;
  return stride > 0 && stride <= INT32_MAX ? stride : 0;
}

pln_ref pln_c_row_base(const pln_cw *w, pln_ref ramp, int64_t *constant) {
  const pln_graph *g = w->g;
  pln_ref base = refs_of(w, ramp)[0];
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

pln_ref pln_c_first_index(const pln_cw *w, pln_ref load, int64_t *constant) {
  return pln_c_row_base(w, refs_of(w, load)[1], constant);
}

bool pln_c_same_index(const pln_cw *w, pln_ref a, pln_ref b) {
  if (a == b || a == PLN_NONE || b == PLN_NONE)
    return a == b;
  return w->g->nodes[a].kind == PLN_VAR && w->g->nodes[b].kind == PLN_VAR &&
         w->g->nodes[a].data == w->g->nodes[b].data;
}

static void add_load(pln_ref load, uint32_t parts, pln_c_loads *out) {
  uint32_t i = 0;
  while (i < out->n && out->loads[i] != load)
    i++;
  if (i == PLN_C_MOST_LOADS)
    return;
  if (i == out->n) {
    out->loads[out->n++] = load;
    out->uses[i] = 0;
    out->parts[i] = parts;
  }
  out->uses[i]++;
  if (out->parts[i] != parts)
    out->parts[i] = 0;
}

/* Adds the loads that a value always reads: below arithmetic alone. */
static void add_loads(const pln_cw *w, pln_ref value, uint32_t parts,
                      pln_c_takes_load takes, pln_c_loads *out) {
  pln_ref stack[MOST_NODES] = {value};
  for (uint32_t n = 1, seen = 0; n > 0 && ++seen < MOST_NODES;) {
    pln_ref ref = stack[--n];
    const pln_node *node = &w->g->nodes[ref];
    bool is_arithmetic =
        node->kind == PLN_PRIM_CAST || pln_c_is_arithmetic(node);
    if (node->kind == PLN_BUFFER_LOAD && takes(w, ref))
      add_load(ref, parts, out);
    for (uint32_t i = 0; is_arithmetic && i < node->count && n < MOST_NODES;
         i++)
      stack[n++] = refs_of(w, ref)[i];
  }
}

/* Removes loads whose value would have different lanes in different places. */
static void drop_ambiguous(const pln_cw *w, pln_c_loads *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < out->n; i++) {
    bool one_form =
        out->parts[i] == 1 || (out->parts[i] > 1 && out->uses[i] < 255 &&
                               out->uses[i] == w->uses[out->loads[i]]);
    if (!one_form)
      continue;
    out->loads[n] = out->loads[i];
    out->uses[n] = out->uses[i];
    out->parts[n++] = out->parts[i];
  }
  out->n = n;
}

void pln_c_find_loads(const pln_cw *w, pln_ref first, pln_c_takes_load takes,
                      pln_c_loads *out) {
  uint32_t left = pln_c_n_stores(w, first), parts;
  out->n = 0;
  for (pln_ref at = first, next; left > 0; at = next) {
    next = pln_c_next_group(w, at, &left, &parts);
    add_loads(w, refs_of(w, at)[1], parts, takes, out);
  }
  drop_ambiguous(w, out);
}
