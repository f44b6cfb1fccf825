/* arith/arith.h: shared declarations of the analyzer of integer expressions.
 *
 * An analyzer copies expressions into a pool of terms, where equal expressions
 * are one term (hash consing): equality is a comparison of numbers, and what is
 * known of a term is kept in an array by its number. An operand has a smaller
 * number than its users.
 *
 * A function that makes terms returns PLN_NO_TERM after a failure, of memory or
 * of its operands, and the analyzer keeps the first status; functions accept
 * PLN_NO_TERM, of which nothing is known. So only the public functions test the
 * status. */

#ifndef PLN_ARITH_ARITH_H
#define PLN_ARITH_ARITH_H

#include "ir/graph/graph.h"
#include "ir/tir/tir.h"
#include "perilune/arith.h"

enum { PLN_NO_TERM = 0 };

/* Kinds without a number of fixed operands of their own keep them in an
 * array. */
typedef struct pln_term_node {
  uint8_t kind;     /* pln_kind */
  uint8_t dtype;    /* pln_dtype of one lane */
  uint16_t lanes;   /* 1: a scalar */
  uint16_t n;       /* operands */
  uint16_t count;   /* pln_node.results of kinds with many operands; of a Var: 1
                     * if it is a SizeVar */
  pln_term a, b, c; /* operands if n <= 3, else a: the first in the array */
  pln_type type;    /* of Vars and kinds with many operands; else 0 */
  union {
    int64_t value; /* IntImm; Var: its identity */
    double number; /* FloatImm */
    uint64_t data; /* others: pln_node.data, and attrs in the upper half */
  } u;
  /* What is above makes the node; these follow from it. */
  uint32_t size; /* nodes of the expression as a tree, at most UINT32_MAX */
  bool linear;   /* see pln_is_linear */
  bool folded;   /* nothing becomes of it by folding */
} pln_term_node;

typedef struct pln_bound {
  int64_t min, max; /* -PLN_INF and PLN_INF: not bounded */
} pln_bound;
#define PLN_INF INT64_MAX

/* The integers coeff * k + base; coeff 0: base alone. 0 <= base < coeff. */
typedef struct pln_modular {
  int64_t coeff, base;
} pln_modular;

/* What is known of a term in the present context; a field is valid if its stamp
 * is the analyzer's epoch. */
typedef struct pln_term_facts {
  pln_bound bound;
  pln_modular modular;
  pln_term simple;    /* what the rules make of it */
  pln_term canonical; /* its normal form */
  uint32_t bound_at, modular_at, simple_at, canonical_at;
  uint32_t limit; /* 1 + the last constraint that bounds the term */
  uint32_t var;   /* 1 + the fact of a Var */
  uint32_t visit; /* mark of the present walk */
  uint8_t known;  /* a condition that a constraint decides: 1 true, 2 false */
  bool busy;      /* being rewritten */
} pln_term_facts;

/* What is known of a variable. */
typedef struct pln_var_fact {
  pln_term var, value; /* value: what it stands for, or PLN_NO_TERM */
  bool bounded, modular;
  pln_bound bound;
  pln_modular set;
  bool ranged; /* min and max: the ends of its range, as terms */
  pln_term min, max;
} pln_var_fact;

/* A consequence of a constraint: a condition is decided, or a term bounded. */
typedef struct pln_consequence {
  pln_term term;
  bool decides;
  pln_bound bound; /* by this constraint and those of the term before it */
  uint32_t before; /* what the term's facts said before: known or limit */
} pln_consequence;

/* Where the constraints of a scope begin. */
typedef struct pln_scope_mark {
  uint32_t n_known, n_divisible, n_relations, epoch;
} pln_scope_mark;

/* A known remainder of a term. */
typedef struct pln_divisible {
  pln_term term;
  pln_modular set;
} pln_divisible;

/* A known x <= y + c; x ~= y + c if `unequal`. */
typedef struct pln_relation_fact {
  pln_term x, y;
  int64_t c;
  bool unequal;
} pln_relation_fact;

struct pln_arith_rules;

/* A place of the table of terms; free if there is no term. */
typedef struct pln_term_entry {
  uint32_t hash;
  pln_term term;
} pln_term_entry;

/* The numbers that are found without the table, of int32 and of int64. */
enum { PLN_LEAST_SMALL_INT = -16, PLN_MOST_SMALL_INT = 64 };
enum { PLN_SMALL_INTS = PLN_MOST_SMALL_INT - PLN_LEAST_SMALL_INT + 1 };

typedef struct pln_term_list {
  pln_term *items;
  uint32_t n, cap;
} pln_term_list;

struct pln_analyzer {
  pln_engine *engine;
  pln_status status;
  pln_term_node *nodes;
  pln_term_facts *facts;
  uint32_t n, cap, cap_facts;
  uint32_t reserved; /* facts before this one are zero where they are new */
  pln_term *operands;
  uint32_t n_operands, cap_operands;
  pln_term_entry *table;
  uint32_t mask;
  pln_term small_ints[2][PLN_SMALL_INTS]; /* PLN_NO_TERM: not made yet */
  uint32_t epoch;                         /* of the facts */
  uint32_t epochs;                        /* used so far */
  uint32_t walk;                          /* marks */
  /* Import from a graph: the term of each node, by stamp. */
  pln_term *term_of;
  uint32_t *stamp_of;
  uint32_t cap_term_of, cap_stamp_of, stamp;
  const pln_graph *imported; /* pln_analyzer_import_more: its graph */
  pln_ref *ref_of;           /* export: the node of each term */
  uint32_t cap_ref_of;
  /* Substitution: the image of each term, by stamp. */
  pln_term *image_of;
  uint32_t *image_at;
  uint32_t cap_image_of, cap_image_at, image_stamp;
  /* Normal forms: the coefficient of each term, by stamp. */
  int64_t *coef_of;
  uint32_t *coef_at;
  uint32_t cap_coef_of, cap_coef_at, coef_stamp;
  /* Sets: that of each term, by stamp. */
  struct pln_interval *set_of;
  uint32_t *set_at;
  uint32_t cap_set_of, cap_set_at, set_stamp;
  pln_var_fact *vars;
  uint32_t n_vars, cap_vars;
  pln_consequence *known;
  uint32_t n_known, cap_known;
  pln_divisible *divisible;
  uint32_t n_divisible, cap_divisible;
  pln_relation_fact *relations;
  uint32_t n_relations, cap_relations;
  pln_scope_mark *scopes;
  uint32_t n_scopes, cap_scopes;
  uint32_t bound_at;    /* the first epoch after the last binding */
  uint32_t extensions;  /* PLN_ARITH_* */
  uint32_t depth;       /* nested proofs */
  bool canonical;       /* what runs is canonical_simplify */
  uint32_t fuel;        /* rewrites left in this call */
  uint32_t branches;    /* conditions of branches around what is rewritten */
  uint32_t branch_fuel; /* steps left in this call for what is in branches */
  const struct pln_arith_rules *rules;
  struct pln_arith_rules *own_rules; /* of a child engine's analyzer */
  pln_term_list spare[8];            /* for walks */
  uint32_t n_spare;
};

/* ------------------------------------------------------------------- term.c */

static inline const pln_term_node *pln_at(const pln_analyzer *a, pln_term t) {
  return &a->nodes[t];
}
static inline pln_kind pln_term_kind(const pln_analyzer *a, pln_term t) {
  return (pln_kind)a->nodes[t].kind;
}
static inline bool pln_is_const(const pln_analyzer *a, pln_term t) {
  return t != PLN_NO_TERM && a->nodes[t].kind == PLN_INT_IMM;
}
static inline int64_t pln_const(const pln_analyzer *a, pln_term t) {
  return a->nodes[t].u.value;
}
static inline bool pln_is_value(const pln_analyzer *a, pln_term t, int64_t v) {
  return pln_is_const(a, t) && pln_const(a, t) == v;
}

/* base + c; base is PLN_NO_TERM only for an operand that is. */
typedef struct pln_offset {
  pln_term base;
  int64_t c;
} pln_offset;
/* Splits x + c and x - c of a constant c; any other term is itself + 0. */
pln_offset pln_split_offset(const pln_analyzer *a, pln_term t);
pln_term pln_term_operand(const pln_analyzer *a, pln_term t, uint32_t i);
/* A scalar of dtype int32 or int64. */
static inline bool pln_is_index(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  return (n->dtype == PLN_INT32 || n->dtype == PLN_INT64) && n->lanes == 1;
}
bool pln_is_int_dtype(pln_dtype dtype);
bool pln_is_float_dtype(pln_dtype dtype);
/* Signed or unsigned integers, not bool; any lanes. */
bool pln_is_integer(const pln_analyzer *a, pln_term t);
static inline bool pln_is_bool(const pln_analyzer *a, pln_term t) {
  return pln_at(a, t)->dtype == PLN_BOOL;
}

/* The first failure stands. Returns PLN_NO_TERM. */
pln_term pln_arith_fail(pln_analyzer *a, pln_status status);
pln_term pln_term_int(pln_analyzer *a, pln_dtype dtype, uint16_t lanes,
                      int64_t value);
/* A constant of the dtype (and lanes: a Broadcast) of `like`. */
pln_term pln_const_like(pln_analyzer *a, pln_term like, int64_t value);
pln_term pln_term_float(pln_analyzer *a, pln_dtype dtype, double value);
pln_term pln_term_bool(pln_analyzer *a, bool value);
/* The node itself; nothing is computed. */
pln_term pln_term_unary(pln_analyzer *a, pln_kind kind, pln_term x);
pln_term pln_term_binary(pln_analyzer *a, pln_kind kind, pln_term x,
                         pln_term y);
pln_term pln_term_select(pln_analyzer *a, pln_term condition, pln_term x,
                         pln_term y);
pln_term pln_term_cast(pln_analyzer *a, pln_dtype dtype, pln_term x);
pln_term pln_term_ramp(pln_analyzer *a, pln_term base, pln_term stride,
                       uint16_t lanes);
pln_term pln_term_broadcast(pln_analyzer *a, pln_term value, uint16_t lanes);
/* A node like `t` with other operands of the same types. */
pln_term pln_term_with(pln_analyzer *a, pln_term t, const pln_term *operands);
/* A new variable of the dtype of `like`. */
pln_term pln_term_fresh(pln_analyzer *a, pln_term like, const char *name);
/* Makes room for n terms before the first one is made. */
pln_status pln_analyzer_reserve(pln_analyzer *a, uint32_t n) PLN_CHECKED;
/* Interns a node; `operands`: n of them if n > 3. */
pln_term pln_term_intern(pln_analyzer *a, pln_term_node *node,
                         const pln_term *operands);

/* ------------------------------------------------------------------- fold.c */

/* As pln_term_binary, with constant folding as TVM's operators do it. A result
 * that does not fit in the dtype, and a division by zero, are not folded. */
pln_term pln_fold(pln_analyzer *a, pln_kind kind, pln_term x, pln_term y);
/* `t`, folded if it was made without that. */
pln_term pln_fold_again(pln_analyzer *a, pln_term t);
pln_term pln_fold_not(pln_analyzer *a, pln_term x);
pln_term pln_fold_select(pln_analyzer *a, pln_term condition, pln_term x,
                         pln_term y);
pln_term pln_fold_cast(pln_analyzer *a, pln_dtype dtype, pln_term x);
static inline pln_term pln_add(pln_analyzer *a, pln_term x, pln_term y) {
  return pln_fold(a, PLN_PRIM_ADD, x, y);
}
static inline pln_term pln_sub(pln_analyzer *a, pln_term x, pln_term y) {
  return pln_fold(a, PLN_PRIM_SUB, x, y);
}
static inline pln_term pln_mul(pln_analyzer *a, pln_term x, pln_term y) {
  return pln_fold(a, PLN_PRIM_MUL, x, y);
}
static inline pln_term pln_add_const(pln_analyzer *a, pln_term x, int64_t c) {
  return pln_add(a, x, pln_const_like(a, x, c));
}
static inline pln_term pln_mul_const(pln_analyzer *a, pln_term x, int64_t c) {
  return pln_mul(a, x, pln_const_like(a, x, c));
}
/* Rounds towards minus infinity; b is not 0, and not -1 with INT64_MIN. */
static inline int64_t pln_floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t pln_floor_mod(int64_t a, int64_t b) {
  int64_t r = b == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/* The non-negative greatest common divisor; gcd(0, 0) = 0. */
int64_t pln_gcd(int64_t a, int64_t b);
/* All of -x, x + y, x - y, x * y: false if it does not fit. */
static inline bool pln_add_fits(int64_t x, int64_t y, int64_t *out) {
  return !__builtin_add_overflow(x, y, out);
}
static inline bool pln_sub_fits(int64_t x, int64_t y, int64_t *out) {
  return !__builtin_sub_overflow(x, y, out);
}
static inline bool pln_mul_fits(int64_t x, int64_t y, int64_t *out) {
  return !__builtin_mul_overflow(x, y, out);
}

/* ------------------------------------------------------------------- walk.c */

/* Lists the terms that `t` consists of for which `done` is false, each once,
 * operands first. The list is valid until the next call; free with
 * pln_term_list_free. */
typedef bool (*pln_done_fn)(const pln_analyzer *a, pln_term t);
bool pln_term_order(pln_analyzer *a, pln_term t, pln_done_fn done,
                    pln_term_list *out);
/* Marks by term, which are all taken back at once. Terms that are made after
 * pln_term_marks_grow are not marked, and cannot be. */
typedef struct pln_term_marks {
  uint32_t *stamp;
  uint32_t cap, now;
} pln_term_marks;
static inline bool pln_term_is_marked(const pln_term_marks *m, pln_term t) {
  return t < m->cap && m->stamp[t] == m->now + 1;
}
static inline void pln_term_mark(pln_term_marks *m, pln_term t) {
  m->stamp[t] = m->now + 1;
}
pln_status pln_term_marks_grow(pln_analyzer *a, pln_term_marks *m) PLN_CHECKED;
void pln_term_marks_free(pln_analyzer *a, pln_term_marks *m);
/* The same as pln_term_order, for the terms that are not marked. */
bool pln_term_order_unmarked(pln_analyzer *a, pln_term t,
                             const pln_term_marks *marks, pln_term_list *out);
bool pln_term_list_grow(pln_analyzer *a, pln_term_list *list, pln_term t);
static inline bool pln_term_list_push(pln_analyzer *a, pln_term_list *list,
                                      pln_term t) {
  if (list->n == list->cap)
    return pln_term_list_grow(a, list, t);
  list->items[list->n++] = t;
  return true;
}
void pln_term_list_free(pln_analyzer *a, pln_term_list *order);
/* True if `t` contains the term `part`. */
bool pln_term_uses(pln_analyzer *a, pln_term t, pln_term part);
/* Lists `t` and what it consists of, each term once and before its operands;
 * Buffers are not entered. */
bool pln_term_preorder(pln_analyzer *a, pln_term t, pln_term_list *out);
/* `t` with each term from[i] replaced by to[i]; nothing is folded. */
pln_term pln_term_replace(pln_analyzer *a, pln_term t, uint32_t n,
                          const pln_term *from, const pln_term *to);
/* `t` with each vars[i] replaced by values[i], and folded. */
pln_term pln_term_substitute(pln_analyzer *a, pln_term t, uint32_t n,
                             const pln_term *vars, const pln_term *values);

/* ----------------------------------------------- const_int_bound, modular_set
 */

pln_bound pln_bound_of(pln_analyzer *a, pln_term t);
pln_bound pln_bound_all(pln_dtype dtype);
pln_bound pln_bound_meet(pln_bound x, pln_bound y);
pln_bound pln_bound_add(pln_bound x, pln_bound y);
pln_bound pln_bound_mul(pln_bound x, pln_bound y);
pln_modular pln_modular_of(pln_analyzer *a, pln_term t);
pln_modular pln_modular_meet(pln_modular x, pln_modular y);
/* coeff and base of any integers, brought into the form above. */
pln_modular pln_modular_make(int64_t coeff, int64_t base);

/* ------------------------------------------------------- rules.c, rewrite.c */

typedef enum pln_order_relation {
  PLN_REL_UNKNOWN = 7, /* bit 1: less, 2: equal, 4: greater are possible */
  PLN_REL_LT = 1,
  PLN_REL_EQ = 2,
  PLN_REL_LE = 3,
  PLN_REL_GT = 4,
  PLN_REL_NE = 5,
  PLN_REL_GE = 6
} pln_order_relation;

pln_term pln_rewrite_term(pln_analyzer *a, pln_term t);
/* What is known of the condition `t` itself: 1 true, 0 false, -1 nothing. */
static inline int pln_known_condition(const pln_analyzer *a, pln_term t) {
  uint8_t known = t ? a->facts[t].known : 0;
  return known == 0 ? -1 : known == 1;
}
/* A rewriting of a node whose operands are simplified, by algorithms instead of
 * rules: before the rules are tried, and after them. PLN_NO_TERM: none. */
pln_term pln_native_before(pln_analyzer *a, pln_term t);
pln_term pln_native_after(pln_analyzer *a, pln_term t);
/* How x compares with y, as far as bounds, remainders and constraints tell. */
int pln_compare_terms(pln_analyzer *a, pln_term x, pln_term y);
bool pln_proves_ge(pln_analyzer *a, pln_term x, int64_t value);
bool pln_proves_lt(pln_analyzer *a, pln_term x, int64_t value);
bool pln_proves_equal(pln_analyzer *a, pln_term x, pln_term y);
/* Applies one rule of the table to `t`, whose operands are simplified; returns
 * PLN_NO_TERM if none fits. */
pln_term pln_rules_apply_to(pln_analyzer *a, pln_term t);
/* rules.c: the compiled table. engine.c frees the one of the engine. */
pln_status pln_arith_rules_compile(pln_engine *engine,
                                   struct pln_arith_rules **out) PLN_CHECKED;
void pln_arith_rules_free(pln_engine *engine, struct pln_arith_rules *rules);

/* What known inequalities say, as pln_compare_terms: each by itself, or, with
 * the extension transitive, combined. */
int pln_transitive_compare(pln_analyzer *a, pln_term x, pln_term y);

/* -------------------------------------------------------------- canonical.c */

pln_term pln_canonical_term(pln_analyzer *a, pln_term t);
/* True if canonical_simplify makes a sum of the node: an index that is a sum, a
 * difference, or a product with a number. */
static inline bool pln_is_linear(const pln_analyzer *a, pln_term t) {
  return a->nodes[t].linear;
}
/* A small tree of sums as a linear form: its leaves, in the order of first use,
 * and their coefficients. False: it is not small, or a number does not fit. */
enum { PLN_SMALL_FORM = 16 };
typedef struct pln_small_form {
  uint32_t n;
  pln_term leaves[PLN_SMALL_FORM];
  int64_t coefficients[PLN_SMALL_FORM];
} pln_small_form;
bool pln_small_linear_form(const pln_analyzer *a, pln_term t,
                           pln_small_form *out);
/* The operands that must be in normal form before pln_canonical_sum. */
bool pln_linear_leaves(pln_analyzer *a, pln_term t, pln_term_list *out);
/* The normal form of a node of integer arithmetic whose leaves, or operands,
 * have one. PLN_NO_TERM: it has none of its own. `form`: the linear form of a
 * sum that is small, else NULL. */
pln_term pln_canonical_sum(pln_analyzer *a, pln_term t,
                           const pln_small_form *form);
pln_term pln_canonical_division(pln_analyzer *a, pln_term t);
pln_term pln_canonical_less(pln_analyzer *a, pln_term t);

/* ------------------------------------------------------------------- sets.c */

/* A set of integers [min, max]; an end may be an infinity. */
typedef struct pln_interval {
  pln_term min, max;
} pln_interval;

static inline bool pln_is_infinite(pln_term t) {
  return t == PLN_TERM_POS_INF || t == PLN_TERM_NEG_INF;
}
static inline bool pln_is_everything(pln_interval i) {
  return i.min == PLN_TERM_NEG_INF && i.max == PLN_TERM_POS_INF;
}
static inline bool pln_is_empty(pln_interval i) {
  return i.min == PLN_TERM_POS_INF || i.max == PLN_TERM_NEG_INF;
}
/* The values of `t` when vars[i] runs over sets[i]; other variables stand for
 * themselves, or, with `bound`, run over their ranges. */
pln_interval pln_interval_of(pln_analyzer *a, pln_term t, uint32_t n,
                             const pln_term *vars, const pln_interval *sets,
                             bool bound);

bool pln_begin_sets(pln_analyzer *a, pln_term t);
/* t = out[0] * vars[0] + ... + out[n]; false if it is not linear. */
bool pln_detect_linear(pln_analyzer *a, pln_term t, uint32_t n,
                       const pln_term *vars, pln_term *out);
/* Copies of the domains of a public function. */
pln_status pln_read_domains(pln_analyzer *a, uint32_t n,
                            const pln_term_domain *domains, pln_term **vars,
                            pln_interval **sets) PLN_CHECKED;
void pln_free_domains(pln_analyzer *a, uint32_t n, pln_term *vars,
                      pln_interval *sets);

/* --------------------------------------------------------------- import.c */

/* As pln_analyzer_import, of one graph that outlives the analyzer's use of it
 * and is only appended to: what was imported is known. */
pln_status pln_analyzer_import_more(pln_analyzer *a, const pln_graph *graph,
                                    pln_ref ref, pln_term *out) PLN_CHECKED;

/* --------------------------------------------------------------- analyzer.c */

/* reduce.c: a Reduce whose combiner has what its result depends on. */
pln_term pln_canonical_reduce(pln_analyzer *a, pln_term t);
/* and_of_ors.c: a condition in conjunctive normal form, if the analyzer is
 * asked for that; other terms, and too large ones, as they are. */
pln_term pln_and_of_ors(pln_analyzer *a, pln_term t);

pln_term pln_simplify_term(pln_analyzer *a, pln_term t, uint32_t steps);
bool pln_prove(pln_analyzer *a, pln_term condition, uint32_t strength);
/* Begins a public function: tests one of its terms. */
pln_status pln_check_term(pln_analyzer *a, pln_term t) PLN_CHECKED;
/* A term whose dtype is bool. */
pln_status pln_check_bool_term(pln_analyzer *a, pln_term t) PLN_CHECKED;
/* The fact of a Var, made if there is none; NULL: out of memory. */
pln_var_fact *pln_var_fact_of(pln_analyzer *a, pln_term var, bool make);
/* Forgets what was derived from the context. */
void pln_new_epoch(pln_analyzer *a);
/* Polls: true if the engine is to stop, which is the analyzer's status then. */
static inline bool pln_analyzer_stopped(pln_analyzer *a) {
  if (!a->engine->stoppable_depth || !pln_is_stopped(a->engine))
    return false;
  if (a->status == PLN_OK)
    a->status = pln_stopped(a->engine);
  return true;
}
/* A point to which the constraints return. */
uint32_t pln_enter(pln_analyzer *a, pln_term constraint);
void pln_leave(pln_analyzer *a, uint32_t mark);

#endif
