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

/* What makes a node of at most three operands, as words: a node that is stored
 * field by field and read as words would have to wait for the stores. */
typedef struct node_words {
  uint64_t head, ab, c_type, data;
} node_words;
_Static_assert(offsetof(pln_term_node, size) == sizeof(node_words),
               "a node is four words, and what follows from them");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the first field of a word is its lower part");

static inline uint64_t head_word(uint32_t kind, uint32_t dtype, uint32_t lanes,
                                 uint32_t n) {
  return kind | (uint64_t)dtype << 8 | (uint64_t)lanes << 16 |
         (uint64_t)n << 32;
}

static inline uint64_t two_words(uint32_t low, uint32_t high) {
  return low | (uint64_t)high << 32;
}

static inline node_words words_of(const pln_term_node *n) {
  node_words w;
  memcpy(&w, n, sizeof w);
  return w;
}

/* Each word by a factor of its own: the products do not wait for each other. */
static inline uint32_t hash_words(node_words w) {
  uint64_t h = w.head * 0x9e3779b97f4a7c15u + w.ab * 0xff51afd7ed558ccdu +
               w.c_type * 0xc4ceb9fe1a85ec53u + w.data * 0xd6e8feb86659fd93u;
  h = (h ^ h >> 32) * 0xff51afd7ed558ccdu;
  return (uint32_t)(h >> 32);
}

static uint32_t hash_node(const pln_term_node *n, const pln_term *operands) {
  uint64_t h = pln_hash_mix((uint64_t)n->kind | (uint64_t)n->dtype << 8 |
                                (uint64_t)n->lanes << 16 |
                                (uint64_t)n->n << 32 | (uint64_t)n->count << 48,
                            n->u.data);
  for (uint32_t i = 0; i < n->n; i++)
    h = pln_hash_mix(h, operands[i]);
  return (uint32_t)pln_hash_mix(h, n->type);
}

static inline uint64_t word_at(const pln_term_node *n, size_t offset) {
  uint64_t word;
  memcpy(&word, (const char *)n + offset, sizeof word);
  return word;
}

static inline void set_word(pln_term_node *n, size_t offset, uint64_t word) {
  memcpy((char *)n + offset, &word, sizeof word);
}

static inline void set_words(pln_term_node *n, node_words w) {
  set_word(n, offsetof(node_words, head), w.head);
  set_word(n, offsetof(node_words, ab), w.ab);
  set_word(n, offsetof(node_words, c_type), w.c_type);
  set_word(n, offsetof(node_words, data), w.data);
}

static inline bool same_words(const pln_term_node *m, node_words w) {
  return word_at(m, offsetof(node_words, head)) == w.head &&
         word_at(m, offsetof(node_words, ab)) == w.ab &&
         word_at(m, offsetof(node_words, c_type)) == w.c_type &&
         word_at(m, offsetof(node_words, data)) == w.data;
}

static bool same_node(const pln_analyzer *a, const pln_term_node *m,
                      const pln_term_node *n, const pln_term *operands) {
  return m->kind == n->kind && m->dtype == n->dtype && m->lanes == n->lanes &&
         m->n == n->n && m->count == n->count && m->u.data == n->u.data &&
         m->type == n->type &&
         memcmp(a->operands + m->a, operands, m->n * sizeof *operands) == 0;
}

static uint32_t gap_of(const pln_term_entry *table, uint32_t mask,
                       uint32_t hash) {
  uint32_t at = hash & mask;
  while (table[at].term)
    at = (at + 1) & mask;
  return at;
}

static bool set_table(pln_analyzer *a, uint32_t mask) {
  pln_term_entry *table =
      pln_mem_zeroed(a->engine, (mask + (size_t)1) * sizeof *table);
  if (!table)
    return false;
  for (uint32_t i = 0; a->table && i <= a->mask; i++)
    if (a->table[i].term)
      table[gap_of(table, mask, a->table[i].hash)] = a->table[i];
  if (a->table)
    pln_mem_free(a->engine, a->table, (a->mask + (size_t)1) * sizeof *table);
  a->table = table;
  a->mask = mask;
  return true;
}

static bool grow_table(pln_analyzer *a) {
  return set_table(a, a->mask ? 2 * a->mask + 1 : 1023);
}

/* An entry has its hash, so that a term is looked at only if it is the one: the
 * table may be rather full. */
static inline bool table_holds(uint32_t mask, uint32_t n) {
  return (n + (size_t)1) * 8 <= (size_t)mask * 5;
}

/* The memory of facts is zero up to `reserved`: what is not looked at is never
 * touched. */
pln_status pln_analyzer_reserve(pln_analyzer *a, uint32_t n) {
  uint32_t mask = 1023;
  if (a->table || n < 1024 || n > UINT32_MAX / 8)
    return PLN_OK;
  while (!table_holds(mask, n))
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

static uint32_t tree_size(uint64_t size) {
  return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

static uint32_t size_of(const pln_analyzer *a, const pln_term_node *n) {
  uint64_t size = 1;
  for (uint32_t i = 0; i < n->n; i++)
    size += pln_at(a, a->operands[n->a + i])->size;
  return tree_size(size);
}

static uint32_t size_of_small(const pln_analyzer *a, const pln_term_node *n) {
  return tree_size(1 + (n->n > 0 ? (uint64_t)pln_at(a, n->a)->size : 0) +
                   (n->n > 1 ? pln_at(a, n->b)->size : 0) +
                   (n->n > 2 ? pln_at(a, n->c)->size : 0));
}

static bool is_linear(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  if (!pln_is_index(a, t))
    return false;
  if (n->kind == PLN_PRIM_MUL)
    return pln_is_const(a, n->a) || pln_is_const(a, n->b);
  return n->kind == PLN_PRIM_ADD || n->kind == PLN_PRIM_SUB;
}

static inline bool has_room(const pln_analyzer *a, uint32_t operands) {
  return a->n < a->cap && a->n < a->cap_facts &&
         a->n_operands + (size_t)operands <= a->cap_operands &&
         table_holds(a->mask, a->n);
}

enum { FEW_TERMS = 8192 };

/* Room for terms: small pools are moved less often. */
static pln_status grow_pool(pln_analyzer *a) {
  size_t need = a->n < FEW_TERMS ? (size_t)a->n * 4 : (size_t)a->n + 1;
  if (a->n < a->cap && a->n < a->cap_facts)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->nodes, &a->cap, need,
                       sizeof *a->nodes));
  return pln_mem_grow(a->engine, (void **)&a->facts, &a->cap_facts, need,
                      sizeof *a->facts);
}

static bool make_room(pln_analyzer *a, uint32_t operands) {
  pln_status status = grow_pool(a);
  if (status == PLN_OK)
    status =
        pln_mem_grow(a->engine, (void **)&a->operands, &a->cap_operands,
                     (size_t)a->n_operands + operands, sizeof *a->operands);
  if (status == PLN_OK && !table_holds(a->mask, a->n) && !grow_table(a))
    status = pln_nomem(a->engine);
  pln_arith_fail(a, status);
  return status == PLN_OK;
}

/* A new term, of which the caller stores the node; `at`: the gap where it
 * belongs. */
static pln_term new_term(pln_analyzer *a, uint32_t at, uint32_t hash,
                         uint32_t operands) {
  if (pln_analyzer_stopped(a))
    return PLN_NO_TERM;
  if (!has_room(a, operands)) {
    if (!make_room(a, operands))
      return PLN_NO_TERM;
    at = gap_of(a->table, a->mask, hash);
  }
  pln_term t = a->n++;
  if (t >= a->reserved)
    a->facts[t] = (pln_term_facts){0};
  a->table[at] = (pln_term_entry){hash, t};
  return t;
}

/* Stores what follows from a node of at most three operands. */
static void complete(pln_analyzer *a, pln_term t) {
  pln_term_node *n = &a->nodes[t];
  n->size = size_of_small(a, n);
  n->linear = is_linear(a, t);
  n->folded = false;
}

/* A node of at most three operands that is no Any. */
static inline pln_term intern_words(pln_analyzer *a, node_words w) {
  uint32_t hash = hash_words(w), at = hash & a->mask;
  const pln_term_entry *table = a->table;
  for (; table && table[at].term; at = (at + 1) & a->mask)
    if (table[at].hash == hash && same_words(&a->nodes[table[at].term], w))
      return table[at].term;
  pln_term t = new_term(a, at, hash, 0);
  if (!t)
    return PLN_NO_TERM;
  set_words(&a->nodes[t], w);
  complete(a, t);
  return t;
}

/* A node of more operands. */
static pln_term intern_many(pln_analyzer *a, const pln_term_node *node,
                            const pln_term *operands) {
  uint32_t hash = hash_node(node, operands), at = hash & a->mask;
  const pln_term_entry *table = a->table;
  for (; table && table[at].term; at = (at + 1) & a->mask)
    if (table[at].hash == hash &&
        same_node(a, &a->nodes[table[at].term], node, operands))
      return table[at].term;
  pln_term t = new_term(a, at, hash, node->n);
  if (!t)
    return PLN_NO_TERM;
  pln_term_node *n = &a->nodes[t];
  *n = *node;
  n->a = a->n_operands;
  memcpy(a->operands + n->a, operands, n->n * sizeof *operands);
  a->n_operands += n->n;
  n->size = size_of(a, n);
  n->linear = n->folded = false;
  return t;
}

/* Most terms are there already: then nothing is made ready for a new one. */
pln_term pln_term_intern(pln_analyzer *a, pln_term_node *node,
                         const pln_term *operands) {
  if (node->kind == PLN_ANY)
    node->u.data = a->n;
  return node->n <= 3 ? intern_words(a, words_of(node))
                      : intern_many(a, node, operands);
}

/* ------------------------------------------------------------- constructors */

static pln_term intern_int(pln_analyzer *a, pln_dtype dtype, int64_t value) {
  return intern_words(a,
                      (node_words){.head = head_word(PLN_INT_IMM, dtype, 1, 0),
                                   .data = (uint64_t)value});
}

static inline pln_term int_of(pln_analyzer *a, pln_dtype dtype, int64_t value) {
  if ((dtype != PLN_INT32 && dtype != PLN_INT64) ||
      value < PLN_LEAST_SMALL_INT || value > PLN_MOST_SMALL_INT)
    return intern_int(a, dtype, value);
  pln_term *known =
      &a->small_ints[dtype == PLN_INT64][value - PLN_LEAST_SMALL_INT];
  if (!*known)
    *known = intern_int(a, dtype, value);
  return *known;
}

pln_term pln_term_int(pln_analyzer *a, pln_dtype dtype, uint16_t lanes,
                      int64_t value) {
  pln_term t = int_of(a, dtype, value);
  return lanes > 1 ? pln_term_broadcast(a, t, lanes) : t;
}

pln_term pln_term_float(pln_analyzer *a, pln_dtype dtype, double value) {
  pln_term_node n = {.kind = PLN_FLOAT_IMM,
                     .dtype = (uint8_t)dtype,
                     .lanes = 1,
                     .u.number = value};
  return intern_words(a, words_of(&n));
}

pln_term pln_const_like(pln_analyzer *a, pln_term like, int64_t value) {
  if (!like)
    return PLN_NO_TERM;
  pln_dtype dtype = (pln_dtype)pln_at(a, like)->dtype;
  uint16_t lanes = pln_at(a, like)->lanes;
  if (pln_is_index(a, like))
    return int_of(a, dtype, value);
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
  const pln_term_node *m = pln_at(a, x);
  return intern_words(
      a, (node_words){.head = head_word(kind, m->dtype, m->lanes, 1), .ab = x});
}

pln_term pln_term_binary(pln_analyzer *a, pln_kind kind, pln_term x,
                         pln_term y) {
  if (!x || !y)
    return PLN_NO_TERM;
  const pln_term_node *m = pln_at(a, x);
  uint32_t dtype = gives_bool(kind) ? PLN_BOOL : m->dtype;
  return intern_words(a,
                      (node_words){.head = head_word(kind, dtype, m->lanes, 2),
                                   .ab = two_words(x, y)});
}

pln_term pln_term_select(pln_analyzer *a, pln_term condition, pln_term x,
                         pln_term y) {
  if (!condition || !x || !y)
    return PLN_NO_TERM;
  const pln_term_node *m = pln_at(a, x);
  return intern_words(
      a, (node_words){.head = head_word(PLN_SELECT, m->dtype, m->lanes, 3),
                      .ab = two_words(condition, x),
                      .c_type = y});
}

pln_term pln_term_cast(pln_analyzer *a, pln_dtype dtype, pln_term x) {
  if (!x)
    return PLN_NO_TERM;
  uint32_t lanes = pln_at(a, x)->lanes;
  return intern_words(
      a,
      (node_words){.head = head_word(PLN_PRIM_CAST, dtype, lanes, 1), .ab = x});
}

pln_term pln_term_ramp(pln_analyzer *a, pln_term base, pln_term stride,
                       uint16_t lanes) {
  if (!base || !stride)
    return PLN_NO_TERM;
  uint32_t dtype = pln_at(a, base)->dtype;
  return intern_words(a,
                      (node_words){.head = head_word(PLN_RAMP, dtype, lanes, 2),
                                   .ab = two_words(base, stride)});
}

pln_term pln_term_broadcast(pln_analyzer *a, pln_term value, uint16_t lanes) {
  if (!value)
    return PLN_NO_TERM;
  uint32_t dtype = pln_at(a, value)->dtype;
  return intern_words(
      a, (node_words){.head = head_word(PLN_BROADCAST, dtype, lanes, 1),
                      .ab = value});
}

pln_term pln_term_with(pln_analyzer *a, pln_term t, const pln_term *operands) {
  pln_term_node n = *pln_at(a, t);
  for (uint32_t i = 0; i < n.n; i++)
    if (!operands[i])
      return PLN_NO_TERM;
  if (n.n == 0)
    return t;
  if (n.n > 3 || n.kind == PLN_ANY)
    return pln_term_intern(a, &n, operands);
  node_words w = words_of(pln_at(a, t));
  w.ab = two_words(operands[0], n.n > 1 ? operands[1] : 0);
  w.c_type = two_words(n.n > 2 ? operands[2] : 0, n.type);
  return intern_words(a, w);
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
  return intern_words(a, words_of(&n));
}
