/* hint.c: what the C asks gcc for a whole function. Called by function.c, for
 * functions that have no vectors of their own.
 *
 * Loops that read every second, third, fourth or eighth element:
 *
 *     for i: B[i] = A[i * 4] + A[i * 4 + 1] + A[i * 4 + 2] + A[i * 4 + 3]
 *
 * gcc makes vectors of such loops. Within 16 bytes it sorts the elements by
 * shuffles of two vectors; in vectors of 32 bytes by permutations across their
 * halves, of which it needs twice as many, each of two operations. So these
 * functions ask for vectors of 16 bytes: sums of four run in 1.7 us in place of
 * 3.2, maxima of 2 x 2 in 16 in place of 28. The loop that gcc makes vectors of
 * is the innermost one whose rounds it does not write out one after the other.
 *
 * Sums of products, one after the other:
 *
 *     for k: C[i] = C[i] + A[k] * B[k]
 *
 * Each round waits for the sum of the one before. A multiplication with an
 * addition takes 4 cycles, and an addition 3 or 2 on recent CPUs of x86; the
 * product by itself waits for nothing. So these functions ask for products of
 * their own: a padded convolution of 3 x 3 takes 28 ms in place of 40. */

#include "codegen/writer.h"

enum { FEW_ROUNDS = 8, MOST_NESTED = 16 };

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

/* Whether a loop has so few rounds that compilers write all of them out. */
static bool is_written_out(const pln_cw *w, pln_ref loop) {
  const pln_node *extent = &w->g->nodes[refs_of(w, loop)[1]];
  return extent->kind == PLN_INT_IMM &&
         (int64_t)pln_imm_bits(extent) <= FEW_ROUNDS;
}

/* The loop around a node that vectors are made of; PLN_NONE: none. */
static pln_ref vectorized_loop(const pln_cw *w, pln_ref ref) {
  pln_scope scope = w->scope_of[ref];
  for (uint32_t i = 0; i < MOST_NESTED && scope != 0; i++) {
    const pln_scope_row *row = &w->g->scopes[scope];
    pln_kind kind = (pln_kind)w->g->nodes[row->owner].kind;
    if (kind == PLN_FOR && !is_written_out(w, row->owner))
      return row->owner;
    if (kind != PLN_FOR && kind != PLN_LET_STMT && kind != PLN_SEQ_STMT &&
        kind != PLN_DECL_BUFFER)
      break;
    scope = row->parent;
  }
  return PLN_NONE;
}

/* How many elements lie between those that an access has in two rounds of the
 * loop; 0: it is not known. */
static int64_t distance(const pln_cw *w, pln_ref access, uint32_t first,
                        pln_ref loop) {
  pln_c_linear at;
  const pln_ref *o = refs_of(w, access);
  pln_ref var = pln_c_loop_var(w, loop);
  bool is_known = w->g->nodes[access].count == first + 1 &&
                  pln_c_is_plain_buffer(w, o[0]) &&
                  pln_c_linear_of(w, o[first], PLN_NONE, var, &at);
  return is_known && pln_c_bytes(pln_prim_dtype(w->g, o[0])) == 4 ? at.inner
                                                                  : 0;
}

static bool is_interleaving(int64_t n) {
  return (n >= 2 && n <= 4) || n == 8;
}

/* Functions with calls compute more than they read: whole vectors do that. */
bool pln_c_is_interleaved(const pln_cw *w) {
  pln_ref reading = PLN_NONE; /* the last loop that reads so */
  bool found = false;
  if (w->width > 1 || pln_c_vector_bytes(w) != 32)
    return false;
  for (pln_ref ref = 0; ref < w->g->n_nodes; ref++) {
    pln_kind kind = (pln_kind)w->g->nodes[ref].kind;
    if (kind == PLN_PRIM_CALL)
      return false;
    if (kind != PLN_BUFFER_LOAD && kind != PLN_BUFFER_STORE)
      continue;
    bool writes = kind == PLN_BUFFER_STORE;
    pln_ref loop = vectorized_loop(w, ref);
    if (loop == PLN_NONE)
      continue;
    int64_t n = distance(w, ref, writes ? 2 : 1, loop);
    if (!writes && is_interleaving(n))
      reading = loop;
    found |= writes && n == 1 && reading == loop;
  }
  return found;
}

/* ------------------------------------------------------------------ products
 */

static pln_ref innermost_loop(const pln_cw *w, pln_ref ref) {
  pln_scope scope = w->scope_of[ref];
  for (uint32_t i = 0; i < MOST_NESTED && scope != 0; i++) {
    const pln_scope_row *row = &w->g->scopes[scope];
    if (w->g->nodes[row->owner].kind == PLN_FOR)
      return row->owner;
    scope = row->parent;
  }
  return PLN_NONE;
}

static bool is_float_product(const pln_cw *w, pln_ref ref) {
  return w->g->nodes[ref].kind == PLN_PRIM_MUL &&
         pln_c_is_float(pln_prim_dtype(w->g, ref));
}

/* Whether a store adds a product to what it stored in the round before. */
static bool adds_product(const pln_cw *w, pln_ref store) {
  const pln_ref *o = refs_of(w, store);
  pln_c_linear at;
  pln_ref loop = innermost_loop(w, store);
  if (loop == PLN_NONE || w->g->nodes[store].count != 3 ||
      w->g->nodes[o[1]].kind != PLN_PRIM_ADD)
    return false;
  pln_ref load = refs_of(w, o[1])[0];
  pln_ref var = pln_c_loop_var(w, loop);
  return is_float_product(w, refs_of(w, o[1])[1]) &&
         w->g->nodes[load].kind == PLN_BUFFER_LOAD &&
         w->g->nodes[load].count == 2 && refs_of(w, load)[0] == o[0] &&
         pln_c_same_index(w, refs_of(w, load)[1], o[2]) &&
         pln_c_linear_of(w, o[2], PLN_NONE, var, &at) && at.inner == 0;
}

bool pln_c_sums_in_order(const pln_cw *w) {
  uint32_t products = 0, sums = 0;
  if (w->width > 1)
    return false;
  for (pln_ref ref = 0; ref < w->g->n_nodes; ref++) {
    products += is_float_product(w, ref);
    sums += w->g->nodes[ref].kind == PLN_BUFFER_STORE && adds_product(w, ref);
  }
  return sums > 0 && sums == products;
}
