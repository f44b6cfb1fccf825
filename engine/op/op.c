/* op.c: the table of operators, generated from ops.def. Installed once per
 * engine. */

#include "ir/infer/relation.h"
#include "op/kernel/kernel.h"

/* The names of traits in ops.def. */
#define PURE PLN_TRAIT_PURE
#define COMMUTATIVE PLN_TRAIT_COMMUTATIVE
#define ASSOCIATIVE PLN_TRAIT_ASSOCIATIVE
#define IDEMPOTENT PLN_TRAIT_IDEMPOTENT
#define ELEMENTWISE PLN_TRAIT_ELEMENTWISE
#define BROADCAST PLN_TRAIT_BROADCAST
#define INJECTIVE PLN_TRAIT_INJECTIVE
#define REDUCE PLN_TRAIT_REDUCE
#define RANDOM PLN_TRAIT_RANDOM
#define DATA PLN_TRAIT_DATA
#define UNALIGNED PLN_TRAIT_UNALIGNED
#define PERMUTED PLN_TRAIT_PERMUTED
#define JOIN PLN_TRAIT_JOIN
#define BODY PLN_TRAIT_BODY
#define FUNCTIONS PLN_TRAIT_FUNCTIONS
#define ANY PLN_TRAIT_ANY
#define CONTAINER PLN_TRAIT_CONTAINER
#define INTEGERS(i) ((uint32_t)PLN_TRAIT_INTEGERS << (i))
#define pln_infer_none NULL
#define pln_kernel_none NULL

/* The attribute schemas of operators that only Relay has, from relay.def. */
static const struct {
#define RELAY(ID, name, results, attrs, type_key) char ID[sizeof attrs];
#include "op/relay/relay.def"
} relay = {
#define RELAY(ID, name, results, attrs, type_key) attrs,
#include "op/relay/relay.def"
};
#define RELAY_SCHEMA(ID) relay.ID

static const pln_op_info rows[] = {
#define OP(ID, name, min, max, attrs, traits, infer, kernel, doc)         \
  {name, min, max, traits, attrs, pln_infer_##infer, pln_kernel_##kernel, \
   doc,  NULL},
#include "op/ops.def"
};

static const pln_relay_row relay_rows[] = {
#define RELAY(ID, name, results, attrs, type_key) \
  {name, results, attrs, type_key, false, NULL},
#define RELAY_META(ID, name, results, attrs, type_key) \
  {name, results, attrs, type_key, true, NULL},
#define RELAY_COUNT(ID, name, count, attrs, type_key) \
  {name, -1, attrs, type_key, false, pln_relay_count_##count},
#include "op/relay/relay.def"
};

static const pln_relation_row relations[] = {
#define RELATION(name, op) {name, op},
#include "op/relations.def"
};

pln_status pln_op_install(pln_engine *engine) {
  pln_relations_install(engine, relations, (uint32_t)PLN_COUNT(relations));
  PLN_TRY(pln_ops_install(engine, rows, (uint32_t)PLN_COUNT(rows)));
  return pln_relay_install(engine, relay_rows, (uint32_t)PLN_COUNT(relay_rows));
}
