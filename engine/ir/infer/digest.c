/* digest.c: a digest, stored per node, of the inputs of its type inference.
 * With it the verifier sees in a few nanoseconds that inference would give the
 * same type.
 *
 * The builder records it after inference, and copies of a node keep it. When it
 * no longer matches, because an operand, an attribute or the type itself was
 * changed without inference, the verifier infers the node again. Invariant: the
 * digest depends on interned types, values, attributes and operators, never on
 * node positions. Different inputs collide with probability 2^-32. */

#include "ir/infer/digest.h"
#include "ir/graph/describe.h"
#include "ir/infer/apply.h"

uint64_t pln_type_digest_scopes(const pln_graph *g, const pln_node *n,
                                uint64_t h) {
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
    const pln_scope_row *row = &g->scopes[s];
    uint32_t params = n->kind == PLN_FUNCTION && !n->count ? row->n_params : 0;
    if (row->result != PLN_NONE)
      h = pln_type_digest_mix(h, g->nodes[row->result].type);
    h = pln_type_digest_mix(h, row->type_params);
    for (uint32_t i = 0; i < params; i++)
      h = pln_type_digest_mix(h, (uint64_t)g->nodes[row->begin + i].type << 32);
  }
  return h;
}

void pln_type_digest_record(pln_graph *graph, pln_ref node) {
  graph->typed_from[node] = pln_type_digest(graph, &graph->nodes[node]);
}

/* ------------------------------------------------------------------- asking
 */

static pln_status contradicts(const pln_graph *g, pln_type inferred,
                              pln_type own) {
  pln_description a, b;
  return pln_diag_error(g->engine, PLN_ERR_TYPE, NULL,
                        "its operands give %s, but its type is %s",
                        pln_describe_type(g->engine, inferred, &a),
                        pln_describe_type(g->engine, own, &b));
}

static pln_status infer_again(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  pln_node again = *n;
  pln_value value = 0;
  pln_type both;
  bool fits;
  /* Read-only use; the type does not depend on scope effects. */
  pln_builder b = {
      .engine = g->engine, .graph = (pln_graph *)(uintptr_t)g, .in = PLN_NONE};
  if (n->kind == PLN_FUNCTION && n->type)
    again.type = pln_type_part_at(g->engine, n->type,
                                  pln_type_n_parts(g->engine, n->type) - 1);
  if (n->kind == PLN_MATCH && pln_owns(n))
    PLN_TRY(pln_check_patterns(g, n));
  PLN_TRY(pln_infer_type(&b, &again, &value));
  PLN_TRY(pln_type_unify(g->engine, again.type, n->type, &both, &fits));
  return fits ? PLN_OK : contradicts(g, again.type, n->type);
}

pln_status pln_graph_check_type(const pln_graph *graph, pln_ref node) {
  pln_status status = infer_again(graph, node);
  if (status == PLN_ERR_TYPE) {
    pln_annotate_node(graph, node);
    pln_note_node(graph, node);
  }
  return status;
}
