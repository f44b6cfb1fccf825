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
 * Where a round of both loops transposes a block itself, by stores of vectors
 * in a row (expr/transpose.c), tiles are some rounds wide and high: caches
 * fetch lines in pairs, and both are used before others of their set evict
 * them. Of 8 x 8, 512 x 512 floats take 57 us in place of 75, 2048 x 2048 5.6
 * ms in place of 7.7. Blocks as wide as a line use it up by themselves: their
 * rounds stay in order, 2048 x 2048 by 16 take 1.6 ms in place of 2.8. Where
 * blocks are half as wide as a vector, two rounds of each loop are one, and
 * four blocks one.
 *
 *     for i in steps of 4: for j in steps of 2: for these i: for these j: ...
 *
 * The loops have constant bounds, and do nothing but such stores, of arithmetic
 * on what is loaded from other memory; each round stores other elements. So the
 * order of the rounds does not matter. */

#include "codegen/writer.h"

enum {
  MOST_NODES = 64,
  MOST_LETS = 8,
  LINE = 64,
  TWO_LINES = 128,
  BLOCKS_IN_ROW = 2,
  LEAST_BLOCKS = 4,
  WAYS = 8,
  NEAREST_CACHE = 32768,
  FAR_CACHE = 131072,
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

/* The index of lane 0 of an access, and how far apart its lanes are. */
static bool access_of(const loop_pair *p, pln_ref access, uint32_t first,
                      pln_c_linear *out, int64_t *step) {
  const pln_node *n = &p->w->g->nodes[access];
  if (n->count != first + 1 ||
      !pln_c_is_plain_buffer(p->w, refs_of(p->w, access)[0]))
    return false;
  pln_ref index = refs_of(p->w, access)[first];
  bool is_ramp = p->w->g->nodes[index].kind == PLN_RAMP;
  *step = 0;
  if (is_ramp && !int_of(p->w, refs_of(p->w, index)[1], step))
    return false;
  if (is_ramp)
    index = refs_of(p->w, index)[0];
  return pln_c_linear_of(p->w, index, p->outer, p->inner, out);
}

/* ------------------------------------------------------------------- values */

/* Values that cost little beside of a load. */
static bool is_cheap(const pln_node *n) {
  switch (n->kind) {
  case PLN_VAR:
  case PLN_INT_IMM:
  case PLN_FLOAT_IMM:
  case PLN_PRIM_CAST:
  case PLN_BROADCAST: return true;
  case PLN_PRIM_DIV:
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORDIV:
  case PLN_PRIM_FLOORMOD: return false;
  default: return pln_c_is_arithmetic(n);
  }
}

/* Whether a column that is read is larger than the nearest cache, and its lines
 * hold the next ones. Columns in blocks: a few times larger, as blocks use most
 * of their lines by themselves. */
static bool reads_column(const loop_pair *p, pln_ref load, pln_c_linear at,
                         int64_t step) {
  int64_t bytes = pln_c_bytes(pln_prim_dtype(p->w->g, load)), column;
  bool is_column = step ? step >= LINE / bytes && at.outer > 0 &&
                              at.outer <= TWO_LINES / 2 / bytes
                        : at.outer == 1;
  return is_column && at.inner >= LINE / bytes &&
         !__builtin_mul_overflow(at.inner, p->inner_rounds * bytes, &column) &&
         column > (step ? FAR_CACHE : NEAREST_CACHE);
}

/* Whether a value is arithmetic on loads from other memory than `written`;
 * *columns: the bytes of the columns that a round reads, if it reads some. */
static bool is_movable(const loop_pair *p, pln_ref value, uint32_t written,
                       uint32_t *columns) {
  const pln_cw *w = p->w;
  pln_ref stack[MOST_NODES] = {value};
  for (uint32_t n = 1, seen = 0; n > 0;) {
    pln_ref ref = without_let(w, stack[--n]);
    const pln_node *node = &w->g->nodes[ref];
    pln_c_linear at;
    int64_t step;
    if (++seen == MOST_NODES || n + node->count > MOST_NODES)
      return false;
    if (node->kind == PLN_BUFFER_LOAD) {
      if (!access_of(p, ref, 1, &at, &step) ||
          !pln_c_is_other_memory(w, pln_c_memory_of(w, ref), written))
        return false;
      if (reads_column(p, ref, at, step))
        *columns = (uint32_t)pln_c_bytes(pln_prim_dtype(w->g, ref)) *
                   (uint32_t)at.outer;
      continue;
    }
    if (!is_cheap(node))
      return false;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = refs_of(w, ref)[i];
  }
  return true;
}

/* What is stored from the first store on, and what lets say beside it. */
static bool all_movable(const loop_pair *p, pln_ref store, uint32_t *columns) {
  uint32_t written = pln_c_memory_of(p->w, store);
  *columns = 0;
  for (uint32_t i = 0; i < p->n_lets; i++)
    if (!is_movable(p, refs_of(p->w, p->lets[i])[0], written, columns))
      return false;
  for (; store != PLN_NONE; store = p->w->next_stmt[store])
    if (!is_movable(p, refs_of(p->w, store)[1], written, columns))
      return false;
  return true;
}

/* Whether a store writes neighbours; *base, *constant: their first index. */
static bool writes_row(const loop_pair *p, pln_ref store, pln_c_linear *at,
                       pln_ref *base, int64_t *constant) {
  const pln_cw *w = p->w;
  int64_t step;
  if (w->g->nodes[store].kind != PLN_BUFFER_STORE ||
      !access_of(p, store, 2, at, &step) || step != 1)
    return false;
  *base = pln_c_row_base(w, refs_of(w, store)[2], constant);
  return true;
}

/* Whether stores of vectors write elements of one array, and in each round of
 * the loops others: rows, each with the vectors of all inner rounds, and behind
 * them those of the next outer round. */
static bool writes_blocks(const loop_pair *p, pln_ref first) {
  const pln_cw *w = p->w;
  pln_c_linear at, next;
  pln_ref base, other;
  int64_t begin, last, constant, row;
  if (!writes_row(p, first, &at, &base, &begin) || at.inner <= 0 ||
      __builtin_mul_overflow(at.inner, p->inner_rounds, &row))
    return false;
  last = begin;
  for (pln_ref store = first; store != PLN_NONE; store = w->next_stmt[store]) {
    if (!writes_row(p, store, &next, &other, &constant) ||
        pln_c_memory_of(w, store) != pln_c_memory_of(w, first) ||
        !pln_c_same_index(w, base, other) ||
        pln_prim_lanes(w->g, refs_of(w, store)[1]) > at.inner || constant < 0 ||
        constant > INT32_MAX || (store != first && constant - row < last))
      return false;
    last = constant;
  }
  return at.outer >= row && at.outer - row >= last - begin;
}

/* -------------------------------------------------------------------- loops */

/* A serial loop from 0 on of a constant number of rounds, of `least` or more.
 */
static bool counts(const pln_cw *w, pln_ref loop, int64_t least,
                   int64_t *rounds) {
  if (w->g->nodes[loop].kind != PLN_FOR ||
      !pln_is_int(w->g, refs_of(w, loop)[0], 0))
    return false;
  *rounds = pln_c_rounds(w, loop);
  return *rounds >= least && *rounds <= INT32_MAX / 2;
}

static pln_ref first_stmt(const pln_cw *w, pln_ref ref) {
  return w->first_stmt[w->g->nodes[ref].data];
}

/* The only statement in the body of a loop. */
static pln_ref only_stmt(const pln_cw *w, pln_ref loop) {
  pln_ref at = first_stmt(w, loop);
  return at != PLN_NONE && w->next_stmt[at] == PLN_NONE ? at : PLN_NONE;
}

/* The first of the stores that are all that the inner loop does, in lets;
 * PLN_NONE: it does something else. */
static pln_ref find_store(loop_pair *p, pln_ref inner) {
  const pln_cw *w = p->w;
  pln_ref at = first_stmt(w, inner);
  while (at != PLN_NONE && w->g->nodes[at].kind == PLN_LET_STMT) {
    if (p->n_lets == MOST_LETS || w->next_stmt[at] != PLN_NONE)
      return PLN_NONE;
    p->lets[p->n_lets++] = at;
    at = first_stmt(w, at);
  }
  return at != PLN_NONE && w->g->nodes[at].kind == PLN_BUFFER_STORE ? at
                                                                    : PLN_NONE;
}

/* Whether the rounds of a store of one element may change their order. */
static bool writes_elements(const loop_pair *p, pln_ref store) {
  pln_c_linear at;
  int64_t step;
  return p->w->next_stmt[store] == PLN_NONE &&
         access_of(p, store, 2, &at, &step) && step == 0 && at.inner == 1 &&
         at.outer >= p->inner_rounds;
}

static void set_tile(pln_cw *w, pln_c_tile tile, const loop_pair *p,
                     pln_ref store) {
  uint32_t bytes;
  if (!all_movable(p, store, &bytes) || !bytes)
    return;
  bool blocks = pln_prim_lanes(w->g, refs_of(w, store)[1]) > 1;
  uint32_t rounds = (blocks ? TWO_LINES : LINE) / bytes;
  if (blocks && bytes >= LINE)
    return;
  tile.rounds = rounds < WAYS ? rounds : WAYS;
  tile.columns = blocks ? BLOCKS_IN_ROW : 0;
  bool is_even = tile.all % 2 == 0 && tile.all_inner % 2 == 0;
  bool doubles = blocks && is_even && tile.rounds % 2 == 0 &&
                 pln_c_doubles_blocks(w, store, p->outer, p->inner);
  if (doubles) {
    tile.doubled = store;
    tile.rounds = 2;
    tile.columns = (uint32_t)tile.all_inner;
  }
  w->tile = tile;
}

void pln_c_find_tile(pln_cw *w, pln_ref loop) {
  pln_c_tile tile = {.outer = loop, .doubled = PLN_NONE};
  if (w->tile.rounds || w->options->asserts ||
      !counts(w, loop, LEAST_BLOCKS, &tile.all) ||
      w->depth + 4 > PLN_C_MOST_NEST)
    return;
  tile.inner = only_stmt(w, loop);
  loop_pair p = {.w = w, .outer = pln_c_loop_var(w, loop)};
  if (tile.inner == PLN_NONE ||
      !counts(w, tile.inner, LEAST_BLOCKS, &p.inner_rounds))
    return;
  p.inner = pln_c_loop_var(w, tile.inner);
  tile.all_inner = p.inner_rounds;
  pln_ref store = find_store(&p, tile.inner);
  if (store == PLN_NONE)
    return;
  bool is_long = tile.all >= LEAST_ROUNDS && p.inner_rounds >= LEAST_ROUNDS;
  if (writes_blocks(&p, store) || (is_long && writes_elements(&p, store)))
    set_tile(w, tile, &p, store);
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

/* The header of a loop over the rounds of a tile: from `first` on, `n` of all.
 */
static void open_rounds(pln_cw *w, const char *type, const char *name,
                        const char *first, uint32_t n, int64_t all) {
  pln_c_text rest = {.data = ""};
  const char *step = w->tile.doubled == PLN_NONE ? "++" : " += 2";
  if (all % n != 0)
    rest =
        pln_c_textf(w, PLN_C_COMPOUND, " && %s < %lld", name, (long long)all);
  pln_c_line(w, "for (%s %s = %s; %s < %s + %u%s; %s%s) {", type, name, first,
             name, first, n, rest.data, name, step);
  w->depth++;
}

void pln_c_open_tile(pln_cw *w, const char *type, const char *name,
                     const char *end) {
  const pln_c_tile *t = &w->tile;
  const char *first = t->columns ? pln_c_temp(w) : name;
  pln_c_line(w, "for (%s %s = 0; %s < %s; %s += %u) {", type, first, first, end,
             first, t->columns ? t->columns : 1);
  w->depth++;
  open_rounds(w, t->type, t->name, t->first, t->rounds, t->all);
  if (t->columns)
    open_rounds(w, type, name, first, t->columns, t->all_inner);
}
