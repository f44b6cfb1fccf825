/* digest.h: the digest of what a node's type was inferred from; for the
 * verifier, which asks for it at each node, and for those who note it. */

#ifndef PLN_IR_INFER_DIGEST_H
#define PLN_IR_INFER_DIGEST_H

#include "ir/graph/graph.h"

/* One multiplication a word; the words wait for nothing but an addition. */
static inline uint64_t pln_type_digest_mix(uint64_t h, uint64_t x) {
  return (h << 13 | h >> 51) + x * UINT64_C(0x9e3779b97f4a7c15);
}

/* Of an owner: its scopes' results and parameters. Parameters of a free
 * Function are its operands; a scope that is still open has no result. */
uint64_t pln_type_digest_scopes(const pln_graph *graph, const pln_node *node,
                                uint64_t h);

/* What inference has a say in, but for calls of functions, which the verifier
 * looks at in each of its runs. */
static inline bool pln_typed_by_inference(const pln_node *n) {
  const uint64_t kinds =
      UINT64_C(1) << PLN_CALL | UINT64_C(1) << PLN_TUPLE |
      UINT64_C(1) << PLN_TUPLE_GET_ITEM | UINT64_C(1) << PLN_FUNCTION |
      UINT64_C(1) << PLN_LET | UINT64_C(1) << PLN_LET_BLOCK |
      UINT64_C(1) << PLN_IF | UINT64_C(1) << PLN_MATCH |
      UINT64_C(1) << PLN_REF_CREATE | UINT64_C(1) << PLN_REF_READ |
      UINT64_C(1) << PLN_REF_WRITE;
  return n->kind < 64 && kinds >> n->kind & 1 &&
         (n->kind != PLN_CALL || n->data);
}

static inline uint32_t pln_type_digest(const pln_graph *g, const pln_node *n) {
  const pln_ref *operands = pln_operands(g, n);
  uint64_t h = (uint64_t)n->type << 32 | (uint32_t)n->results << 8 | n->kind;
  if (n->kind == PLN_CALL)
    h = pln_type_digest_mix(h, (uint64_t)n->data << 32 | n->attrs);
  else if (n->kind == PLN_TUPLE_GET_ITEM)
    h = pln_type_digest_mix(h, n->data);
  else if (pln_owns(n))
    h = pln_type_digest_scopes(g, n, h);
  for (uint32_t i = 0; i < n->count; i++)
    h = pln_type_digest_mix(h, (uint64_t)g->nodes[operands[i]].type << 32 |
                                   g->values[operands[i]]);
  h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
  uint32_t high = (uint32_t)(h >> 32);
  return high < PLN_TYPED_FIRST ? PLN_TYPED_FIRST : high;
}

/* Whether nothing that the type was inferred from has changed since. What
 * inference has no say in never changes. */
static inline bool pln_type_digest_matches(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return !pln_typed_by_inference(n) ||
         g->typed_from[node] == pln_type_digest(g, n) ||
         g->typed_from[node] == PLN_TYPED_REFUSED;
}

#endif
