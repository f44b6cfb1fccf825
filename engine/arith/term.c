/* arith/term.c: the pool of terms: constructors, interning.
 *
 * Called by everything here. Invariants: two terms of the same kind, type,
 * operands and data are one; operands have smaller numbers than their users;
 * term 0 is no term. An Any is never equal to another. */

#include "arith/arith.h"

pln_term pln_arith_fail(pln_analyzer *a, pln_status status) {
  if (a->status == PLN_OK)
    a->status = status;
  return PLN_NO_TERM;
}

pln_term pln_term_operand(const pln_analyzer *a, pln_term t, uint32_t i) {
  const pln_term_node *n = pln_at(a, t);
  if (n->n > 3)
    return a->operands[n->a + i];
  return i == 0 ? n->a : i == 1 ? n->b : n->c;
}

bool pln_is_int_dtype(pln_dtype dtype) {
  return pln_is_signed(dtype) || dtype == PLN_UINT8 || dtype == PLN_UINT16 ||
         dtype == PLN_UINT32 || dtype == PLN_UINT64 || dtype == PLN_UINT4 ||
         dtype == PLN_UINT2;
}

bool pln_is_float_dtype(pln_dtype dtype) {
  return dtype == PLN_FLOAT16 || dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64 ||
         dtype == PLN_BFLOAT16;
}

bool pln_is_integer(const pln_analyzer *a, pln_term t) {
  return pln_is_int_dtype((pln_dtype)pln_at(a, t)->dtype);
}

/* ---------------------------------------------------------------- interning */

/* What makes a node of at most three operands, as words. */
enum { NODE_WORDS = offsetof(pln_term_node, hash) / sizeof(uint64_t) };
_Static_assert(NODE_WORDS == 4, "a node is four words, its hash and its size");

/* Each word by a factor of its own: the products do not wait for each other. */
static inline uint32_t hash_small(const pln_term_node *n) {
  uint64_t w[NODE_WORDS];
  memcpy(w, n, sizeof w);
  uint64_t h = w[0] * 0x9e3779b97f4a7c15u + w[1] * 0xff51afd7ed558ccdu +
               w[2] * 0xc4ceb9fe1a85ec53u + w[3] * 0xd6e8feb86659fd93u;
  h = (h ^ h >> 32) * 0xff51afd7ed558ccdu;
  return (uint32_t)(h >> 32);
}

static uint32_t hash_node(const pln_term_node *n, const pln_term *operands) {
  if (n->n <= 3)
    return hash_small(n);
  uint64_t h = pln_hash_mix((uint64_t)n->kind | (uint64_t)n->dtype << 8 |
                                (uint64_t)n->lanes << 16 |
                                (uint64_t)n->n << 32 | (uint64_t)n->count << 48,
                            n->u.data);
  for (uint32_t i = 0; i < n->n; i++)
    h = pln_hash_mix(h, operands[i]);
  return (uint32_t)pln_hash_mix(h, n->type);
}

static inline bool same_small(const pln_term_node *m, const pln_term_node *n) {
  return m->hash == n->hash && memcmp(m, n, NODE_WORDS * sizeof(uint64_t)) == 0;
}

static bool same_node(const pln_analyzer *a, const pln_term_node *m,
                      const pln_term_node *n, const pln_term *operands) {
  if (n->n <= 3)
    return same_small(m, n);
  return m->hash == n->hash && m->kind == n->kind && m->dtype == n->dtype &&
         m->lanes == n->lanes && m->n == n->n && m->count == n->count &&
         m->u.data == n->u.data && m->type == n->type &&
         memcmp(a->operands + m->a, operands, m->n * sizeof *operands) == 0;
}

/* The table is read where it was read last, as far as can be: a node belongs
 * near its operand of the largest number, which was made a moment ago; when
 * NEAR places there are taken, to the place that its hash gives. */
enum { NEAR = 8, NEAR_SPAN = 64 };

static inline uint32_t near_of(const pln_term_node *n,
                               const pln_term *operands) {
  uint32_t most = n->kind == PLN_INT_IMM ? (uint32_t)n->u.value : n->hash;
  if (n->n > 3) {
    most = operands[0];
    for (uint32_t i = 1; i < n->n; i++)
      most = operands[i] > most ? operands[i] : most;
  } else if (n->n > 0) {
    most = n->a;
    most = n->n > 1 && n->b > most ? n->b : most;
    most = n->n > 2 && n->c > most ? n->c : most;
  }
  return 2 * most;
}

static inline uint32_t place(uint32_t mask, uint32_t hash, uint32_t near,
                             uint32_t probe) {
  if (probe >= NEAR)
    return (hash + probe) & mask;
  return ((near & ~(NEAR_SPAN - 1u)) | ((hash + probe) & (NEAR_SPAN - 1u))) &
         mask;
}

static bool set_table(pln_analyzer *a, uint32_t mask) {
  pln_term *table =
      pln_mem_zeroed(a->engine, (mask + (size_t)1) * sizeof *table);
  if (!table)
    return false;
  for (pln_term t = 1; t < a->n; t++) {
    const pln_term_node *n = &a->nodes[t];
    uint32_t near = near_of(n, a->operands + (n->n > 3 ? n->a : 0));
    uint32_t probe = 0;
    while (table[place(mask, n->hash, near, probe)])
      probe++;
    table[place(mask, n->hash, near, probe)] = t;
  }
  if (a->table)
    pln_mem_free(a->engine, a->table, (a->mask + (size_t)1) * sizeof *table);
  a->table = table;
  a->mask = mask;
  return true;
}

static bool grow_table(pln_analyzer *a) {
  return set_table(a, a->mask ? 2 * a->mask + 1 : 1023);
}

/* The memory of facts is zero up to `reserved`: what is not looked at is never
 * touched. */
pln_status pln_analyzer_reserve(pln_analyzer *a, uint32_t n) {
  uint32_t mask = 1023;
  if (a->table || n < 1024 || n > UINT32_MAX / 8)
    return PLN_OK;
  while (mask < 2 * (n + 1))
    mask = 2 * mask + 1;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->nodes, &a->cap, n,
                       sizeof *a->nodes));
  if (!set_table(a, mask))
    return pln_nomem(a->engine);
  pln_term_facts *facts = pln_mem_zeroed(a->engine, n * sizeof *facts);
  if (!facts)
    return pln_nomem(a->engine);
  memcpy(facts, a->facts, a->n * sizeof *facts);
  pln_mem_free(a->engine, a->facts, a->cap_facts * sizeof *facts);
  a->facts = facts;
  a->cap_facts = a->reserved = n;
  return PLN_OK;
}

static uint32_t size_of(const pln_analyzer *a, const pln_term_node *n,
                        const pln_term *operands) {
  uint64_t size = 1;
  if (n->n > 3)
    for (uint32_t i = 0; i < n->n; i++)
      size += pln_at(a, operands[i])->size;
  else
    size += (n->n > 0 ? (uint64_t)pln_at(a, n->a)->size : 0) +
            (n->n > 1 ? pln_at(a, n->b)->size : 0) +
            (n->n > 2 ? pln_at(a, n->c)->size : 0);
  return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

static bool has_room(const pln_analyzer *a, uint32_t operands) {
  return a->n < a->cap && a->n < a->cap_facts &&
         a->n_operands + (size_t)operands <= a->cap_operands &&
         (a->n + (size_t)1) * 2 <= a->mask;
}

static bool make_room(pln_analyzer *a, uint32_t operands) {
  pln_status status = pln_mem_grow(a->engine, (void **)&a->nodes, &a->cap,
                                   (size_t)a->n + 1, sizeof *a->nodes);
  if (status == PLN_OK)
    status = pln_mem_grow(a->engine, (void **)&a->facts, &a->cap_facts,
                          (size_t)a->n + 1, sizeof *a->facts);
  if (status == PLN_OK)
    status =
        pln_mem_grow(a->engine, (void **)&a->operands, &a->cap_operands,
                     (size_t)a->n_operands + operands, sizeof *a->operands);
  if (status == PLN_OK && (a->n + (size_t)1) * 2 > a->mask && !grow_table(a))
    status = pln_nomem(a->engine);
  pln_arith_fail(a, status);
  return status == PLN_OK;
}

static pln_term append(pln_analyzer *a, uint32_t at, pln_term_node *node,
                       const pln_term *operands) {
  pln_term t = a->n;
  node->size = size_of(a, node, operands);
  if (node->n > 3) {
    node->a = a->n_operands;
    memcpy(a->operands + a->n_operands, operands, node->n * sizeof *operands);
    a->n_operands += node->n;
  }
  a->nodes[t] = *node;
  if (t >= a->reserved)
    a->facts[t] = (pln_term_facts){0};
  a->table[at] = t;
  a->n++;
  return t;
}

/* The place of a term like the node, or of the gap where it belongs. */
static uint32_t place_of(const pln_analyzer *a, const pln_term_node *node,
                         const pln_term *operands) {
  uint32_t near = near_of(node, operands), probe = 0;
  uint32_t at = place(a->mask, node->hash, near, 0);
  while (a->table[at] && !same_node(a, &a->nodes[a->table[at]], node, operands))
    at = place(a->mask, node->hash, near, ++probe);
  return at;
}

/* A node that no term is like. */
static pln_term intern_new(pln_analyzer *a, pln_term_node *node,
                           const pln_term *operands) {
  uint32_t more = node->n > 3 ? node->n : 0;
  if (pln_analyzer_stopped(a) || (!has_room(a, more) && !make_room(a, more)))
    return PLN_NO_TERM;
  return append(a, place_of(a, node, operands), node, operands);
}

/* A node of at most three operands that is no Any. */
static inline pln_term intern_small(pln_analyzer *a, pln_term_node *node) {
  node->hash = hash_small(node);
  if (!a->table)
    return intern_new(a, node, NULL);
  uint32_t at = place_of(a, node, NULL);
  return a->table[at] ? a->table[at] : intern_new(a, node, NULL);
}

/* Most terms are there already: then nothing is made ready for a new one. */
pln_term pln_term_intern(pln_analyzer *a, pln_term_node *node,
                         const pln_term *operands) {
  if (node->kind == PLN_ANY)
    node->u.data = a->n;
  node->hash = hash_node(node, operands);
  uint32_t at = a->table ? place_of(a, node, operands) : 0;
  if (a->table && a->table[at])
    return a->table[at];
  return intern_new(a, node, operands);
}

/* ------------------------------------------------------------- constructors */

pln_term pln_term_int(pln_analyzer *a, pln_dtype dtype, uint16_t lanes,
                      int64_t value) {
  pln_term_node n = {.kind = PLN_INT_IMM,
                     .dtype = (uint8_t)dtype,
                     .lanes = 1,
                     .u.value = value};
  pln_term t = intern_small(a, &n);
  return lanes > 1 ? pln_term_broadcast(a, t, lanes) : t;
}

pln_term pln_term_float(pln_analyzer *a, pln_dtype dtype, double value) {
  pln_term_node n = {.kind = PLN_FLOAT_IMM,
                     .dtype = (uint8_t)dtype,
                     .lanes = 1,
                     .u.number = value};
  return intern_small(a, &n);
}

pln_term pln_const_like(pln_analyzer *a, pln_term like, int64_t value) {
  if (!like)
    return PLN_NO_TERM;
  pln_dtype dtype = (pln_dtype)pln_at(a, like)->dtype;
  uint16_t lanes = pln_at(a, like)->lanes;
  if (!pln_is_float_dtype(dtype))
    return pln_term_int(a, dtype, lanes, value);
  pln_term t = pln_term_float(a, dtype, (double)value);
  return lanes > 1 ? pln_term_broadcast(a, t, lanes) : t;
}

pln_term pln_term_bool(pln_analyzer *a, bool value) {
  return pln_term_int(a, PLN_BOOL, 1, value);
}

static bool gives_bool(pln_kind kind) {
  return kind >= PLN_PRIM_EQ && kind <= PLN_PRIM_NOT;
}

pln_term pln_term_unary(pln_analyzer *a, pln_kind kind, pln_term x) {
  if (!x)
    return PLN_NO_TERM;
  pln_term_node n = {.kind = (uint8_t)kind,
                     .dtype = pln_at(a, x)->dtype,
                     .lanes = pln_at(a, x)->lanes,
                     .n = 1,
                     .a = x};
  return intern_small(a, &n);
}

pln_term pln_term_binary(pln_analyzer *a, pln_kind kind, pln_term x,
                         pln_term y) {
  if (!x || !y)
    return PLN_NO_TERM;
  pln_term_node n = {.kind = (uint8_t)kind,
                     .dtype = gives_bool(kind) ? PLN_BOOL : pln_at(a, x)->dtype,
                     .lanes = pln_at(a, x)->lanes,
                     .n = 2,
                     .a = x,
                     .b = y};
  return intern_small(a, &n);
}

pln_term pln_term_select(pln_analyzer *a, pln_term condition, pln_term x,
                         pln_term y) {
  if (!condition || !x || !y)
    return PLN_NO_TERM;
  pln_term_node n = {.kind = PLN_SELECT,
                     .dtype = pln_at(a, x)->dtype,
                     .lanes = pln_at(a, x)->lanes,
                     .n = 3,
                     .a = condition,
                     .b = x,
                     .c = y};
  return intern_small(a, &n);
}

pln_term pln_term_cast(pln_analyzer *a, pln_dtype dtype, pln_term x) {
  if (!x)
    return PLN_NO_TERM;
  pln_term_node n = {.kind = PLN_PRIM_CAST,
                     .dtype = (uint8_t)dtype,
                     .lanes = pln_at(a, x)->lanes,
                     .n = 1,
                     .a = x};
  return intern_small(a, &n);
}

pln_term pln_term_ramp(pln_analyzer *a, pln_term base, pln_term stride,
                       uint16_t lanes) {
  if (!base || !stride)
    return PLN_NO_TERM;
  pln_term_node n = {.kind = PLN_RAMP,
                     .dtype = pln_at(a, base)->dtype,
                     .lanes = lanes,
                     .n = 2,
                     .a = base,
                     .b = stride};
  return intern_small(a, &n);
}

pln_term pln_term_broadcast(pln_analyzer *a, pln_term value, uint16_t lanes) {
  if (!value)
    return PLN_NO_TERM;
  pln_term_node n = {.kind = PLN_BROADCAST,
                     .dtype = pln_at(a, value)->dtype,
                     .lanes = lanes,
                     .n = 1,
                     .a = value};
  return intern_small(a, &n);
}

pln_term pln_term_with(pln_analyzer *a, pln_term t, const pln_term *operands) {
  pln_term_node n = *pln_at(a, t);
  for (uint32_t i = 0; i < n.n; i++)
    if (!operands[i])
      return PLN_NO_TERM;
  if (n.n <= 3) {
    n.a = n.n > 0 ? operands[0] : 0;
    n.b = n.n > 1 ? operands[1] : 0;
    n.c = n.n > 2 ? operands[2] : 0;
  }
  if (n.n == 0)
    return t;
  return pln_term_intern(a, &n, operands);
}

pln_offset pln_split_offset(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  bool add = n->kind == PLN_PRIM_ADD, sub = n->kind == PLN_PRIM_SUB;
  if ((!add && !sub) || !pln_is_const(a, n->b))
    return (pln_offset){t, 0};
  int64_t c = pln_const(a, n->b);
  if (sub && c == INT64_MIN)
    return (pln_offset){t, 0};
  return (pln_offset){n->a, add ? c : -c};
}

pln_term pln_term_fresh(pln_analyzer *a, pln_term like, const char *name) {
  pln_symbol symbol;
  pln_type type;
  if (!like)
    return PLN_NO_TERM;
  pln_dtype dtype = (pln_dtype)pln_at(a, like)->dtype;
  pln_status status =
      pln_symbol_intern(a->engine, (pln_slice){name, strlen(name)}, &symbol);
  if (status == PLN_OK)
    status = pln_type_prim(a->engine, dtype, 1, &type);
  if (status != PLN_OK)
    return pln_arith_fail(a, status);
  pln_term_node n = {.kind = PLN_VAR,
                     .dtype = (uint8_t)dtype,
                     .lanes = 1,
                     .b = symbol,
                     .type = type};
  n.u.value = ++a->engine->n_vars;
  return intern_small(a, &n);
}
