/* merged_store.c: stores of neighbouring vectors that are of one form are
 * written as one.
 *
 *     C[0:14] = C[0:14] + A[x:x + 14] * Broadcast(v, 14)
 *     C[14:28] = C[14:28] + A[x + 14:x + 28] * Broadcast(v, 14)
 *
 * are 28 lanes, of which vectors of 8 lanes are 8 + 8 + 8 + 4, and 8 + 4 + 2
 * twice where each is written by itself. Called by stmt.c for stores in a row.
 *
 * All is read before the first lane is written. So the later stores read memory
 * that none of the stores writes, or the lanes that they write themselves. */

#include "codegen/writer.h"

enum { MOST_NODES = 64, MOST_LANES = 64 };

typedef struct pair {
  pln_ref a, b;
} pair;

/* Pairs of nodes that are still to be compared. */
typedef struct pairs {
  pair list[MOST_NODES];
  uint32_t n, seen;
} pairs;

/* A store that is compared with the first one; `distance`: how many elements it
 * lies behind that. */
typedef struct candidate {
  pln_ref first, store;
  uint32_t lanes;
  int64_t distance;
} candidate;

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static bool push(pairs *p, pln_ref a, pln_ref b) {
  if (p->n == MOST_NODES || ++p->seen > MOST_NODES)
    return false;
  p->list[p->n++] = (pair){a, b};
  return true;
}

static bool push_operands(const pln_cw *w, pairs *p, pln_ref a, pln_ref b) {
  for (uint32_t i = 0; i < w->g->nodes[a].count; i++)
    if (!push(p, refs_of(w, a)[i], refs_of(w, b)[i]))
      return false;
  return true;
}

/* Whether a load reads no memory that the store writes. */
static bool reads_other(const pln_cw *w, pln_ref load, pln_ref store) {
  return w->g->nodes[refs_of(w, load)[0]].kind == PLN_BUFFER &&
         pln_c_is_other_memory(w, pln_c_memory_of(w, load),
                               pln_c_memory_of(w, store));
}

/* ----------------------------------------------------------------- scalars */

/* Two nodes of a kind that have no operands. */
static bool same_terminal(const pln_cw *w, pln_ref a, pln_ref b) {
  const pln_node *x = &w->g->nodes[a], *y = &w->g->nodes[b];
  if (x->kind == PLN_VAR || x->kind == PLN_BUFFER)
    return a == b || (x->kind == PLN_VAR && x->data == y->data);
  return (x->kind == PLN_INT_IMM || x->kind == PLN_FLOAT_IMM) &&
         pln_imm_bits(x) == pln_imm_bits(y);
}

static bool same_scalar_node(const pln_cw *w, pairs *p, pair at,
                             pln_ref store) {
  const pln_node *x = &w->g->nodes[at.a], *y = &w->g->nodes[at.b];
  if (x->kind != y->kind || x->type != y->type)
    return false;
  bool is_load = x->kind == PLN_BUFFER_LOAD;
  if (!is_load && !pln_c_is_arithmetic(x) && x->kind != PLN_PRIM_CAST)
    return same_terminal(w, at.a, at.b);
  if (is_load && !reads_other(w, at.b, store))
    return false;
  return x->count == y->count && push_operands(w, p, at.a, at.b);
}

/* Whether two scalars are the same, whatever was stored between them. */
static bool same_scalar(const pln_cw *w, pln_ref a, pln_ref b, pln_ref store) {
  pairs p = {.list = {{a, b}}, .n = 1};
  while (p.n > 0)
    if (!same_scalar_node(w, &p, p.list[--p.n], store))
      return false;
  return true;
}

/* ----------------------------------------------------------------- indices */

/* The index of lane 0 as a sum of a node, or none, and a constant. A variable
 * of a let stands for its value. */
static pln_ref split_index(const pln_cw *w, pln_ref ref, uint64_t *constant) {
  *constant = 0;
  for (uint32_t i = 0; i < MOST_NODES; i++) {
    const pln_node *n = &w->g->nodes[ref];
    uint32_t let = n->kind == PLN_VAR ? pln_idmap_get(w->lets, n->data) : 0;
    if (n->kind == PLN_INT_IMM) {
      *constant += pln_imm_bits(n);
      return PLN_NONE;
    }
    if (let && !w->unsafe[let - 1]) {
      ref = let - 1;
      continue;
    }
    if (n->kind != PLN_PRIM_ADD ||
        w->g->nodes[refs_of(w, ref)[1]].kind != PLN_INT_IMM)
      break;
    *constant += pln_imm_bits(&w->g->nodes[refs_of(w, ref)[1]]);
    ref = refs_of(w, ref)[0];
  }
  return ref;
}

/* Whether the index of lane 0 of b is that of a and a distance. */
static bool is_apart_by(const pln_cw *w, pln_ref a, pln_ref b, int64_t distance,
                        pln_ref store) {
  uint64_t at_a, at_b;
  pln_ref base_a = split_index(w, refs_of(w, a)[0], &at_a);
  pln_ref base_b = split_index(w, refs_of(w, b)[0], &at_b);
  if (at_b - at_a != (uint64_t)distance)
    return false;
  if (base_a == PLN_NONE || base_b == PLN_NONE)
    return base_a == base_b;
  return same_scalar(w, base_a, base_b, store);
}

/* Whether a load or store with that index is one of neighbours. */
static bool is_row(const pln_cw *w, pln_ref access, pln_ref index,
                   uint32_t lanes) {
  const pln_node *n = &w->g->nodes[index];
  return pln_c_is_plain_buffer(w, refs_of(w, access)[0]) &&
         n->kind == PLN_RAMP && n->data == lanes &&
         pln_is_int(w->g, refs_of(w, index)[1], 1);
}

/* ----------------------------------------------------------------- vectors */

static bool same_load(const pln_cw *w, pair at, const candidate *c) {
  const pln_ref *x = refs_of(w, at.a), *y = refs_of(w, at.b);
  bool are_rows =
      w->g->nodes[at.a].count == 2 && w->g->nodes[at.b].count == 2 &&
      is_row(w, at.a, x[1], c->lanes) && is_row(w, at.b, y[1], c->lanes);
  if (!are_rows || pln_c_memory_of(w, at.a) != pln_c_memory_of(w, at.b) ||
      !is_apart_by(w, x[1], y[1], c->distance, c->store))
    return false;
  return reads_other(w, at.b, c->store) ||
         (pln_c_memory_of(w, at.b) == pln_c_memory_of(w, c->store) &&
          is_apart_by(w, y[1], refs_of(w, c->store)[2], 0, c->store));
}

static bool same_vector_node(const pln_cw *w, pairs *p, pair at,
                             const candidate *c) {
  const pln_node *x = &w->g->nodes[at.a], *y = &w->g->nodes[at.b];
  if (x->kind != y->kind || x->type != y->type ||
      pln_prim_lanes(w->g, at.a) != c->lanes)
    return false;
  if (x->kind == PLN_BUFFER_LOAD)
    return same_load(w, at, c);
  if (x->kind == PLN_BROADCAST)
    return same_scalar(w, refs_of(w, at.a)[0], refs_of(w, at.b)[0], c->store);
  return pln_c_is_arithmetic(x) && push_operands(w, p, at.a, at.b);
}

static bool same_value(const pln_cw *w, const candidate *c) {
  pairs p = {
      .list = {{refs_of(w, c->first)[1], refs_of(w, c->store)[1]}},
      .n = 1,
  };
  while (p.n > 0)
    if (!same_vector_node(w, &p, p.list[--p.n], c))
      return false;
  return true;
}

/* Lanes of a store of neighbours that fill no whole vectors; 0: another one. */
static uint32_t ragged_lanes(const pln_cw *w, pln_ref store) {
  const pln_node *n = &w->g->nodes[store];
  if (n->kind != PLN_BUFFER_STORE || n->count != 3)
    return 0;
  uint32_t lanes = pln_prim_lanes(w->g, refs_of(w, store)[1]);
  bool is_ragged = lanes > 1 && lanes % w->width != 0 &&
                   is_row(w, store, refs_of(w, store)[2], lanes);
  return is_ragged ? lanes : 0;
}

static bool is_next(const pln_cw *w, const candidate *c) {
  const pln_ref *x = refs_of(w, c->first), *y = refs_of(w, c->store);
  return ragged_lanes(w, c->store) == c->lanes &&
         pln_c_memory_of(w, c->first) == pln_c_memory_of(w, c->store) &&
         is_apart_by(w, x[2], y[2], c->distance, c->store) && same_value(w, c);
}

uint32_t pln_c_n_merged(const pln_cw *w, pln_ref first, uint32_t n_stores) {
  uint32_t lanes = ragged_lanes(w, first), n = 1, best = 1;
  uint32_t own = pln_c_n_chunks(w, lanes), least = own;
  candidate c = {.first = first, .store = first, .lanes = lanes};
  while (lanes > 0 && n < n_stores && (n + 1) * lanes <= MOST_LANES &&
         (best == 1 || best * lanes < 2 * w->width)) {
    c.store = w->next_stmt[c.store];
    c.distance += lanes;
    if (!is_next(w, &c))
      break;
    n++;
    /* Fewer vectors for each store than by the best number so far. */
    if (pln_c_n_chunks(w, n * lanes) * best < least * n) {
      best = n;
      least = pln_c_n_chunks(w, n * lanes);
    }
  }
  return best;
}
