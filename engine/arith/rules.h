/* arith/rules.h: the compiled form of rules.def; see rules.c. */

#ifndef PLN_ARITH_RULES_H
#define PLN_ARITH_RULES_H

#include "arith/arith.h"

enum {
  PLN_MOST_VARIANTS = 256, /* of one root operator */
  PLN_RULE_WORDS = PLN_MOST_VARIANTS / 64,
  PLN_RULE_SLOTS = 12, /* x y z w v p q r c1 c2 c3 c4 */
  PLN_FIRST_CONST = 8,
  PLN_MOST_PATTERNS = 8192
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

/* One alternative of the left side of a rule. */
typedef struct pln_rule_variant {
  uint16_t lhs, rhs, guard; /* guard 0: none */
  uint16_t rule;
  uint8_t dtypes; /* 1: index scalars, 2: vectors, 4: others */
} pln_rule_variant;

/* The decision: the variants of a root operator that may match are those in
 * the sets of the kind of its first and of its second operand. */
typedef struct pln_rule_root {
  uint16_t n;
  pln_rule_variant variants[PLN_MOST_VARIANTS];
  uint64_t by_first[PLN_N_KINDS][PLN_RULE_WORDS];
  uint64_t by_second[PLN_N_KINDS][PLN_RULE_WORDS];
} pln_rule_root;

enum { PLN_N_ROOTS = PLN_SELECT - PLN_PRIM_ADD + 1 };

struct pln_arith_rules {
  pln_pattern_node nodes[PLN_MOST_PATTERNS];
  uint32_t n_nodes;
  pln_rule_root roots[PLN_N_ROOTS];
};

/* parse_rules.c: compiles the table. An error for a table that it
 * cannot read; the tests compile all of it. */
pln_status pln_arith_rules_parse(pln_engine *engine,
                                 struct pln_arith_rules *rules) PLN_CHECKED;

#endif
