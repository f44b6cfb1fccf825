/* digest.h: a digest of the inputs of a node's type inference; for the
 * verifier, which checks it at each node, and for code that records it. */

#ifndef PLN_IR_INFER_DIGEST_H
#define PLN_IR_INFER_DIGEST_H

#include "ir/graph/graph.h"

/* One multiplication per word; consecutive words depend on each other only
 * through an addition. */
static inline uint64_t pln_type_digest_mix(uint64_t h, uint64_t x) {
  return (h << 13 | h >> 51) + x * UINT64_C(0x9e3779b97f4a7c15);
}

/* For an owner: digests the results and parameters of its scopes. The
 * parameters of a floating Function are its operands; an open scope has no
 * result. */
uint64_t pln_type_digest_scopes(const pln_graph *graph, const pln_node *node,
                                uint64_t h);

/* True for nodes whose type inference determines, except calls of functions,
 * which the verifier always checks. */
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

/* True if the inputs of the type's inference are unchanged, or inference does
 * not apply to the node. */
static inline bool pln_type_digest_matches(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return !pln_typed_by_inference(n) ||
         g->typed_from[node] == pln_type_digest(g, n) ||
         g->typed_from[node] == PLN_TYPED_REFUSED;
}

#endif
