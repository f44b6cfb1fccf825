/* arith/rules.h: the compiled form of rules.def; see rules.c.
 *
 * A left side is compiled to sets of bits, by the kinds of the operands and of
 * their operands, and to a list of steps for what the sets leave open. A kind
 * that no left side names is as good as another: kinds are taken together in
 * classes. */

#ifndef PLN_ARITH_RULES_H
#define PLN_ARITH_RULES_H

#include "arith/arith.h"

enum {
  PLN_MOST_VARIANTS = 256, /* of one root operator */
  PLN_RULE_WORDS = PLN_MOST_VARIANTS / 64,
  PLN_RULE_SLOTS = 12, /* x y z w v p q r c1 c2 c3 c4 */
  PLN_FIRST_CONST = 8,
  PLN_RULE_REGISTERS = 24, /* the slots, the root, operators below it */
  PLN_ROOT_REGISTER = PLN_RULE_SLOTS,
  PLN_MOST_PATTERNS = 8192,
  PLN_MOST_STEPS = 4096,
  PLN_KIND_CLASSES = 32
};

/* What a node of a pattern, right side or guard is, if it is no pln_kind. */
enum {
  PLN_PAT_SLOT = PLN_N_KINDS,
  PLN_PAT_NUMBER,
  PLN_PAT_TRUTH,
  PLN_PAT_RAMP,
  PLN_PAT_BROADCAST,
  PLN_PAT_NONNEG,
  PLN_PAT_ZERO,
  PLN_PAT_EXTREMUM,
  PLN_PAT_CONSTANT,
  PLN_PAT_ANY
};

typedef struct pln_pattern_node {
  uint8_t op;
  uint8_t slot;
  uint16_t a, b, c; /* indices of operands */
  int64_t value;
} pln_pattern_node;

/* What is asked of an operand. */
typedef enum pln_match_test {
  PLN_TEST_NOTHING, /* it is bound to a register */
  PLN_TEST_SAME,    /* the register has it */
  PLN_TEST_KIND,    /* its kind is `kind`; it is bound */
  PLN_TEST_NUMBER,  /* the integer `value` */
  PLN_TEST_TRUTH    /* the bool `value` */
} pln_match_test;

/* One step: an operand of the term in register `from`. */
typedef struct pln_match_step {
  uint8_t test, from, operand, to, kind;
  int64_t value;
} pln_match_step;

/* One alternative of the left side of a rule. */
typedef struct pln_rule_variant {
  uint16_t step, n_steps;
  uint16_t lhs, rhs, guard; /* guard 0: none */
  uint16_t rule;
  uint16_t equal; /* pairs of places that have one slot, as bits */
  uint8_t dtypes; /* 1: index scalars, 2: vectors, 4: others */
} pln_rule_variant;

/* An operand of the root, or one of its first two. */
typedef enum pln_operand_place {
  PLN_AT_FIRST,
  PLN_AT_SECOND,
  PLN_AT_FIRST_FIRST,
  PLN_AT_FIRST_SECOND,
  PLN_AT_SECOND_FIRST,
  PLN_AT_SECOND_SECOND,
  PLN_RULE_PLACES
} pln_operand_place;

/* Pairs of places where a term may be twice. */
#define PLN_RULE_PAIRS(X)                      \
  X(PLN_AT_FIRST, PLN_AT_SECOND)               \
  X(PLN_AT_FIRST, PLN_AT_SECOND_FIRST)         \
  X(PLN_AT_FIRST, PLN_AT_SECOND_SECOND)        \
  X(PLN_AT_SECOND, PLN_AT_FIRST_FIRST)         \
  X(PLN_AT_SECOND, PLN_AT_FIRST_SECOND)        \
  X(PLN_AT_FIRST_FIRST, PLN_AT_FIRST_SECOND)   \
  X(PLN_AT_FIRST_FIRST, PLN_AT_SECOND_FIRST)   \
  X(PLN_AT_FIRST_FIRST, PLN_AT_SECOND_SECOND)  \
  X(PLN_AT_FIRST_SECOND, PLN_AT_SECOND_FIRST)  \
  X(PLN_AT_FIRST_SECOND, PLN_AT_SECOND_SECOND) \
  X(PLN_AT_SECOND_FIRST, PLN_AT_SECOND_SECOND)

/* The decision: the variants of a root operator that may match are those in
 * the set of the class of each place, and in that of the dtype; of those that
 * have a slot twice, the ones whose pairs of places have one term each. Class 0
 * is of places where there is no term, and of kinds that no left side names. */
typedef struct pln_rule_root {
  uint16_t n;
  pln_rule_variant variants[PLN_MOST_VARIANTS];
  uint64_t by_dtype[3][PLN_RULE_WORDS];
  uint64_t repeating[PLN_RULE_WORDS]; /* the variants with pairs */
  uint64_t by_class[PLN_RULE_PLACES][PLN_KIND_CLASSES][PLN_RULE_WORDS];
} pln_rule_root;

enum { PLN_N_ROOTS = PLN_SELECT - PLN_PRIM_ADD + 1 };

struct pln_arith_rules {
  pln_pattern_node nodes[PLN_MOST_PATTERNS];
  uint32_t n_nodes;
  pln_match_step steps[PLN_MOST_STEPS];
  uint32_t n_steps;
  uint8_t class_of[PLN_N_KINDS];
  uint32_t n_classes;
  pln_rule_root roots[PLN_N_ROOTS];
};

/* parse_rules.c: compiles the table. An error for a table that it
 * cannot read; the tests compile all of it. */
pln_status pln_arith_rules_parse(pln_engine *engine,
                                 struct pln_arith_rules *rules) PLN_CHECKED;

#endif
