/* tile.c: two loops of which the inner one reads memory by columns run in
 * tiles: strip-mining and interchange (Wolfe).
 *
 *     for i: for j: B[i * n + j] = A[j * n + i]
 *         =>   for i in steps of 8: for j: for these i: the same
 *
 * A line of memory that a column touches holds elements of the next columns,
 * too. Where a column is larger than the nearest cache, the line is gone when
 * they are read: a transposition of 2048 x 2048 floats takes 30 to 40 ms, and
 * 12 ms in tiles. A tile has no more rows than a set of that cache has lines,
 * as rows may all be in one. Called by stmt.c and loop.c.
 *
 * The loops have constant bounds, and do nothing but one store, of arithmetic
 * on what is loaded from other memory; each round stores another element. So
 * the order of the rounds does not matter. */

#include "codegen/writer.h"

enum {
  MOST_NODES = 64,
  MOST_LETS = 8,
  LINE = 64,
  WAYS = 8,
  NEAREST_CACHE = 32768,
  LEAST_ROUNDS = 32
};

typedef struct term {
  pln_ref ref;
  int64_t factor;
} term;

typedef struct loop_pair {
  const pln_cw *w;
  pln_ref outer, inner; /* their variables */
  int64_t inner_rounds;
  pln_ref lets[MOST_LETS]; /* around the store, in the inner loop */
  uint32_t n_lets;
} loop_pair;

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

/* A variable of a let is what its value is. */
static pln_ref without_let(const pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  uint32_t let = n->kind == PLN_VAR ? pln_idmap_get(w->lets, n->data) : 0;
  return let ? let - 1 : ref;
}

/* ------------------------------------------------------------------ indices */

static bool int_of(const pln_cw *w, pln_ref ref, int64_t *out) {
  const pln_node *n = &w->g->nodes[ref];
  *out = n->kind == PLN_INT_IMM ? (int64_t)pln_imm_bits(n) : 0;
  return n->kind == PLN_INT_IMM;
}

static bool add_factor(int64_t *sum, int64_t factor) {
  return !__builtin_add_overflow(*sum, factor, sum);
}

/* Pushes the operands of a term; false: it is not linear. */
static bool push_operands(const pln_cw *w, term t, term *stack, uint32_t *n) {
  const pln_ref *o = refs_of(w, t.ref);
  int64_t c;
  switch ((int)w->g->nodes[t.ref].kind) {
  case PLN_PRIM_ADD:
    stack[(*n)++] = (term){o[0], t.factor};
    stack[(*n)++] = (term){o[1], t.factor};
    return true;
  case PLN_PRIM_SUB:
    stack[(*n)++] = (term){o[0], t.factor};
    stack[(*n)++] = (term){o[1], -t.factor};
    return true;
  case PLN_PRIM_MUL: {
    bool right = int_of(w, o[1], &c);
    if ((!right && !int_of(w, o[0], &c)) ||
        __builtin_mul_overflow(c, t.factor, &c))
      return false;
    stack[(*n)++] = (term){o[right ? 0 : 1], c};
    return true;
  }
  default: return false;
  }
}

bool pln_c_linear_of(const pln_cw *w, pln_ref index, pln_ref outer,
                     pln_ref inner, pln_c_linear *out) {
  term stack[MOST_NODES] = {{index, 1}};
  *out = (pln_c_linear){0, 0};
  for (uint32_t n = 1, seen = 0; n > 0;) {
    term t = stack[--n];
    t.ref = without_let(w, t.ref);
    pln_kind kind = (pln_kind)w->g->nodes[t.ref].kind;
    if (++seen == MOST_NODES || n + 2 > MOST_NODES || t.factor == INT64_MIN)
      return false;
    if (kind == PLN_VAR) {
      int64_t *sum = t.ref == outer   ? &out->outer
                     : t.ref == inner ? &out->inner
                                      : NULL;
      if (sum && !add_factor(sum, t.factor))
        return false;
    } else if (kind != PLN_INT_IMM && !push_operands(w, t, stack, &n)) {
      return false;
    }
  }
  return true;
}

/* The index of an access of one element. */
static bool access_of(const loop_pair *p, pln_ref access, uint32_t first,
                      pln_c_linear *out) {
  const pln_node *n = &p->w->g->nodes[access];
  return n->count == first + 1 &&
         pln_c_is_plain_buffer(p->w, refs_of(p->w, access)[0]) &&
         pln_c_linear_of(p->w, refs_of(p->w, access)[first], p->outer, p->inner,
                         out);
}

/* ------------------------------------------------------------------- values */

static bool is_arithmetic(pln_kind kind) {
  return kind == PLN_VAR || kind == PLN_INT_IMM || kind == PLN_FLOAT_IMM ||
         kind == PLN_PRIM_CAST || kind == PLN_PRIM_ADD ||
         kind == PLN_PRIM_SUB || kind == PLN_PRIM_MUL || kind == PLN_PRIM_MIN ||
         kind == PLN_PRIM_MAX;
}

/* Whether a column that is read is larger than the nearest cache, and its lines
 * hold the next ones. */
static bool reads_column(const loop_pair *p, pln_ref load, pln_c_linear at) {
  int64_t bytes = pln_c_bytes(pln_prim_dtype(p->w->g, load)), column;
  return at.outer == 1 && at.inner >= LINE / bytes &&
         !__builtin_mul_overflow(at.inner, p->inner_rounds * bytes, &column) &&
         column > NEAREST_CACHE;
}

/* Whether a value is arithmetic on loads from other memory than `written`;
 * *columns: the bytes of an element of a column that is read, if one is. */
static bool is_movable(const loop_pair *p, pln_ref value, uint32_t written,
                       uint32_t *columns) {
  const pln_cw *w = p->w;
  pln_ref stack[MOST_NODES] = {value};
  for (uint32_t n = 1, seen = 0; n > 0;) {
    pln_ref ref = without_let(w, stack[--n]);
    const pln_node *node = &w->g->nodes[ref];
    pln_c_linear at;
    if (++seen == MOST_NODES || n + node->count > MOST_NODES)
      return false;
    if (node->kind == PLN_BUFFER_LOAD) {
      if (!access_of(p, ref, 1, &at) ||
          !pln_c_is_other_memory(w, pln_c_memory_of(w, ref), written))
        return false;
      if (reads_column(p, ref, at))
        *columns = (uint32_t)pln_c_bytes(pln_prim_dtype(w->g, ref));
      continue;
    }
    if (!is_arithmetic((pln_kind)node->kind))
      return false;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = refs_of(w, ref)[i];
  }
  return true;
}

/* What is stored, and what lets say beside it. */
static bool all_movable(const loop_pair *p, pln_ref store, uint32_t *columns) {
  uint32_t written = pln_c_memory_of(p->w, store);
  *columns = 0;
  for (uint32_t i = 0; i < p->n_lets; i++)
    if (!is_movable(p, refs_of(p->w, p->lets[i])[0], written, columns))
      return false;
  return is_movable(p, refs_of(p->w, store)[1], written, columns);
}

/* -------------------------------------------------------------------- loops */

/* A serial loop from 0 on of a constant number of rounds. */
static bool counts(const pln_cw *w, pln_ref loop, int64_t *rounds) {
  const pln_node *n = &w->g->nodes[loop];
  int64_t min;
  return n->kind == PLN_FOR && n->count == 2 &&
         pln_attrs_int(w->engine, n->attrs, "kind", 0) == 0 &&
         int_of(w, refs_of(w, loop)[0], &min) && min == 0 &&
         int_of(w, refs_of(w, loop)[1], rounds) && *rounds >= LEAST_ROUNDS &&
         *rounds <= INT32_MAX / 2;
}

/* The only statement in the body of a loop. */
static pln_ref only_stmt(const pln_cw *w, pln_ref loop) {
  pln_ref at = w->first_stmt[w->g->nodes[loop].data];
  return at != PLN_NONE && w->next_stmt[at] == PLN_NONE ? at : PLN_NONE;
}

/* The store that is all that the inner loop does, in lets; PLN_NONE: it does
 * something else. */
static pln_ref find_store(loop_pair *p, pln_ref inner) {
  const pln_cw *w = p->w;
  pln_ref at = only_stmt(w, inner);
  while (at != PLN_NONE && w->g->nodes[at].kind == PLN_LET_STMT) {
    if (p->n_lets == MOST_LETS)
      return PLN_NONE;
    p->lets[p->n_lets++] = at;
    at = only_stmt(w, at);
  }
  return at != PLN_NONE && w->g->nodes[at].kind == PLN_BUFFER_STORE ? at
                                                                    : PLN_NONE;
}

static pln_ref var_of(const pln_cw *w, pln_ref loop) {
  return w->g->scopes[w->g->nodes[loop].data].begin;
}

void pln_c_find_tile(pln_cw *w, pln_ref loop) {
  int64_t rounds;
  uint32_t bytes;
  pln_c_linear at;
  if (w->tile.rounds || w->options->asserts || !counts(w, loop, &rounds) ||
      w->depth + 4 > PLN_C_MOST_NEST)
    return;
  pln_ref inner = only_stmt(w, loop);
  loop_pair p = {.w = w, .outer = var_of(w, loop)};
  if (inner == PLN_NONE || !counts(w, inner, &p.inner_rounds))
    return;
  p.inner = var_of(w, inner);
  pln_ref store = find_store(&p, inner);
  if (store == PLN_NONE || !access_of(&p, store, 2, &at) || at.inner != 1 ||
      at.outer < p.inner_rounds || !all_movable(&p, store, &bytes) || !bytes)
    return;
  w->tile = (pln_c_tile){.outer = loop,
                         .inner = inner,
                         .rounds = LINE / bytes < WAYS ? LINE / bytes : WAYS,
                         .all = rounds};
}

void pln_c_open_tiles(pln_cw *w, const char *type, const char *name) {
  w->tile.name = name;
  w->tile.type = type;
  w->tile.first = pln_c_temp(w);
  pln_c_line(w, "for (%s %s = 0; %s < %lld; %s += %u) {", type, w->tile.first,
             w->tile.first, (long long)w->tile.all, w->tile.first,
             w->tile.rounds);
  w->depth++;
}

void pln_c_open_tile(pln_cw *w) {
  const pln_c_tile *t = &w->tile;
  pln_c_text rest = {.data = ""};
  if (t->all % t->rounds != 0)
    rest = pln_c_textf(w, PLN_C_COMPOUND, " && %s < %lld", t->name,
                       (long long)t->all);
  pln_c_line(w, "for (%s %s = %s; %s < %s + %u%s; %s++) {", t->type, t->name,
             t->first, t->name, t->first, t->rounds, rest.data, t->name);
  w->depth++;
}
