/* distribute.c: a loop whose stores need more registers than there are is
 * written several times, each time with a part of the stores.
 *
 *     for k: C[0:28] += A[k] * B[x:x + 28]; C[28:56] += ...; C[56:84] += ...
 *
 * Sums that find no register are loaded and stored in each round, or what they
 * share is loaded for each of them. With half of the sums in registers a round
 * loads what both halves share twice, which is less: four rows of 28 lanes by
 * vectors of 8 ran at 37 GFLOP/s in one loop, and run at 64 in two; eight rows
 * of 16 at 56 and 96. Called by stmt.c.
 *
 * The parts compute what the loop did: all stores write constant elements of
 * one array of constant size, each one its own, and read of that array no
 * others; nothing else in the loop reads it, and the loop has no other effect.
 */

#include "codegen/writer.h"

/* LEAST_STORED: vectors that hide the latency of their sums. MOST_ROUNDS: what
 * all parts read stays in a cache. */
enum {
  MOST_PARTS = 8,
  MOST_NESTED = 32,
  MOST_NODES = 64,
  LEAST_STORED = 4,
  LEAST_ROUNDS = 16,
  MOST_ROUNDS = 4096
};

/* Loads of the array of sums: by the values of stores, by all. */
typedef struct counts {
  uint64_t by_stores, by_all;
} counts;

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static bool is_elementwise(const pln_node *n) {
  return n->kind == PLN_PRIM_CAST || n->kind == PLN_BROADCAST ||
         n->kind == PLN_RAMP || pln_c_is_arithmetic(n);
}

/* ------------------------------------------------------------------- loops */

/* Whether a loop runs one round after the other; multiplies its rounds. */
static bool counts_rounds(const pln_cw *w, pln_ref loop, int64_t *rounds) {
  int64_t own = pln_c_rounds(w, loop);
  return own > 0 && !__builtin_mul_overflow(*rounds, own, rounds) &&
         *rounds <= MOST_ROUNDS;
}

/* The first of the stores that are all that a loop does: inside of loops, lets
 * and declarations alone; PLN_NONE: it does something else. */
static pln_ref only_stores(const pln_cw *w, pln_ref loop) {
  pln_ref at = loop;
  int64_t rounds = 1;
  for (uint32_t nested = 0; at != PLN_NONE && nested < MOST_NESTED; nested++) {
    const pln_node *n = &w->g->nodes[at];
    bool is_loop = n->kind == PLN_FOR;
    if (n->kind == PLN_BUFFER_STORE)
      return rounds >= LEAST_ROUNDS ? at : PLN_NONE;
    if (at != loop && w->next_stmt[at] != PLN_NONE)
      break;
    if (is_loop ? !counts_rounds(w, at, &rounds)
                : n->kind != PLN_LET_STMT && n->kind != PLN_SEQ_STMT &&
                      n->kind != PLN_DECL_BUFFER)
      break;
    at = w->first_stmt[n->data];
  }
  return PLN_NONE;
}

static bool ends_with_stores(const pln_cw *w, pln_ref row) {
  pln_ref at = row;
  for (uint32_t n = pln_c_n_stores(w, row); n-- > 0;)
    at = w->next_stmt[at];
  return at == PLN_NONE;
}

/* ------------------------------------------------------------ dependences */

/* The elements [*lo, *hi) of an access; false: they are not constant. */
static bool elements(const pln_cw *w, pln_ref access, pln_ref index,
                     int64_t *lo, int64_t *hi) {
  const pln_node *ramp = &w->g->nodes[index];
  if (!pln_c_is_plain_buffer(w, refs_of(w, access)[0]) ||
      ramp->kind != PLN_RAMP || !pln_is_int(w->g, refs_of(w, index)[1], 1) ||
      w->g->nodes[refs_of(w, index)[0]].kind != PLN_INT_IMM)
    return false;
  *lo = (int64_t)pln_imm_bits(&w->g->nodes[refs_of(w, index)[0]]);
  return !__builtin_add_overflow(*lo, (int64_t)ramp->data, hi);
}

static bool reads_sums(const pln_cw *w, pln_ref load, uint32_t sums) {
  return w->g->nodes[load].kind == PLN_BUFFER_LOAD &&
         pln_c_memory_of(w, load) == sums;
}

/* Whether a store's value reads of the sums only [lo, hi). */
static bool reads_own(const pln_cw *w, pln_ref value, uint32_t sums, int64_t lo,
                      int64_t hi, counts *c) {
  pln_ref stack[MOST_NODES] = {value};
  int64_t first, end;
  for (uint32_t n = 1, seen = 0; n > 0;) {
    pln_ref ref = stack[--n];
    const pln_node *node = &w->g->nodes[ref];
    if (++seen == MOST_NODES || n + node->count > MOST_NODES)
      return false;
    if (reads_sums(w, ref, sums)) {
      c->by_stores++;
      if (node->count != 2 ||
          !elements(w, ref, refs_of(w, ref)[1], &first, &end) || first < lo ||
          end > hi)
        return false;
    }
    for (uint32_t i = 0; is_elementwise(node) && i < node->count; i++)
      stack[n++] = refs_of(w, ref)[i];
  }
  return true;
}

/* Whether the stores write ascending elements, each its own. */
static bool stores_are_apart(const pln_cw *w, pln_ref row, counts *c) {
  int64_t lo, hi, end = 0;
  uint32_t sums = pln_c_memory_of(w, row);
  pln_ref at = row;
  for (uint32_t n = pln_c_n_stores(w, row); n-- > 0; at = w->next_stmt[at]) {
    const pln_ref *o = refs_of(w, at);
    if (w->g->nodes[at].count != 3 || !elements(w, at, o[2], &lo, &hi) ||
        lo < end || !reads_own(w, o[1], sums, lo, hi, c))
      return false;
    end = hi;
  }
  return true;
}

/* Whether a node of the loop has no effect but that of the stores, and reads no
 * memory that they write; loads of the sums are counted. */
static bool is_harmless(const pln_cw *w, pln_ref ref, uint32_t sums,
                        counts *c) {
  const pln_node *n = &w->g->nodes[ref];
  switch ((int)n->kind) {
  case PLN_VAR:
  case PLN_INT_IMM:
  case PLN_FLOAT_IMM:
  case PLN_BUFFER:
  case PLN_BUFFER_STORE:
  case PLN_LET_STMT:
  case PLN_SEQ_STMT:
  case PLN_DECL_BUFFER:
  case PLN_FOR: return true;
  case PLN_BUFFER_LOAD: break;
  default: return is_elementwise(n);
  }
  if (w->g->nodes[refs_of(w, ref)[0]].kind != PLN_BUFFER)
    return false;
  if (!reads_sums(w, ref, sums))
    return pln_c_is_other_memory(w, pln_c_memory_of(w, ref), sums);
  c->by_all += w->uses[ref];
  return w->uses[ref] < 255;
}

static bool may_distribute(const pln_cw *w, pln_ref loop, pln_ref row) {
  const pln_scope_row *body = &w->g->scopes[w->g->nodes[loop].data];
  counts c = {0, 0};
  if (!ends_with_stores(w, row) || pln_c_n_sums(w, row) == 0 ||
      !stores_are_apart(w, row, &c))
    return false;
  uint32_t sums = pln_c_memory_of(w, row);
  for (pln_ref ref = body->begin; ref < body->end; ref++)
    if (!is_harmless(w, ref, sums, &c))
      return false;
  return c.by_stores == c.by_all;
}

/* ------------------------------------------------------------------- parts */

static uint32_t n_groups(const pln_cw *w, pln_ref row) {
  uint32_t left = pln_c_n_stores(w, row), n = 0, parts;
  for (; left > 0; n++)
    row = pln_c_next_group(w, row, &left, &parts);
  return n;
}

/* The store where a part begins; stores that are written as one stay
 * together. */
static pln_ref part_begin(const pln_cw *w, pln_ref row, uint32_t n,
                          uint32_t part) {
  uint32_t left = pln_c_n_stores(w, row), parts;
  for (uint32_t k = n_groups(w, row) * part / n; k-- > 0;)
    row = pln_c_next_group(w, row, &left, &parts);
  return row;
}

static void no_part(pln_cw *w) {
  w->part = (pln_c_part){PLN_NONE, PLN_NONE, PLN_NONE};
}

static void set_part(pln_cw *w, pln_ref row, uint32_t n, uint32_t part) {
  no_part(w);
  pln_ref first = part_begin(w, row, n, part);
  pln_ref end = part_begin(w, row, n, part + 1);
  w->part = (pln_c_part){row, first, end};
}

/* Whether each of n parts has the registers that it needs, and some part loads
 * once what several of its stores read. Without that, what the parts read from
 * a cache that it does not fit would be read by all of them for nothing. */
static bool parts_fit(pln_cw *w, pln_ref row, uint32_t n) {
  bool fit = true, shares = false;
  for (uint32_t part = 0; fit && part < n; part++) {
    set_part(w, row, n, part);
    fit = pln_c_fits_registers(w, w->part.first, &shares) &&
          pln_c_n_stored(w, w->part.first) >= LEAST_STORED;
  }
  no_part(w);
  return fit && shares;
}

uint32_t pln_c_n_parts(pln_cw *w, pln_ref loop) {
  if (w->width < 2 || w->part.row != PLN_NONE || w->options->asserts)
    return 1;
  pln_ref row = only_stores(w, loop);
  uint32_t registers = pln_c_vector_registers(pln_c_vector_bytes(w));
  if (row == PLN_NONE || pln_c_n_stored(w, row) + 1 < registers ||
      !may_distribute(w, loop, row))
    return 1;
  for (uint32_t n = 2; n <= MOST_PARTS && n <= n_groups(w, row); n++)
    if (parts_fit(w, row, n))
      return n;
  return 1;
}

void pln_c_begin_part(pln_cw *w, pln_ref loop, uint32_t n, uint32_t part) {
  no_part(w);
  if (part < n)
    set_part(w, only_stores(w, loop), n, part);
}
