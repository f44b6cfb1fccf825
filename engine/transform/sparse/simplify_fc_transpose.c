/* simplify_fc_transpose.c: SimplifyFCTranspose: takes the transposed weight of
 * a dense layer as a parameter, instead of transposing it.
 *
 * Run by the executor, once per function. `target_weight_name` lists
 * parameters. Each use becomes a parameter of its own, NAME.T.
 *
 *     fn (%x, %w) { nn.dense(%x, transpose(%w, axes=[1, 0])) }   =>
 *     fn (%x, %w.T) { nn.dense(%x, %w.T) }
 *
 * Semantics: TVM SimplifyFCTranspose. Weights that are not listed stay; TVM
 * aborts. */

#include "transform/sparse/weight_params.h"

typedef struct transpose_removal {
  pln_attr names;
  int64_t removed;
} transpose_removal;

/* The parameter that operand 1 transposes, or PLN_NONE. */
static pln_ref transposed_param(const transpose_removal *t, const pln_graph *g,
                                pln_ref dense) {
  pln_ref transpose = pln_operand(g, dense, 1);
  const pln_node *n = &g->nodes[transpose];
  if (n->kind != PLN_CALL || n->data != PLN_OP_TRANSPOSE || n->count != 1)
    return PLN_NONE;
  pln_ref weight = pln_operand(g, transpose, 0);
  const pln_attr *axes = pln_attrs_find(g->engine, n->attrs, "axes");
  bool swaps = !axes || (axes->kind == PLN_ATTR_INTS && axes->count == 2 &&
                         axes->v.ints[0] != axes->v.ints[1] &&
                         (axes->v.ints[0] == 1 || axes->v.ints[0] == -1));
  return swaps && pln_type_rank(g->engine, g->nodes[weight].type) == 2 &&
                 pln_weight_index(g, weight, &t->names) >= 0
             ? weight
             : PLN_NONE;
}

static pln_status take_transposed(void *ud, pln_rewrite *rw, pln_ref old,
                                  pln_ref *node) {
  transpose_removal *t = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_node n = g->nodes[old];
  pln_relay_builder r;
  if (n.kind != PLN_CALL || n.data != PLN_OP_DENSE || n.count != 2 ||
      n.flags & PLN_NODE_KEEP)
    return PLN_OK;
  pln_ref weight = transposed_param(t, g, old);
  if (weight == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&r, rw));
  pln_ref args[2] = {pln_operand(r.b->graph, *node, 0),
                     pln_weight_param(&r, weight, ".T",
                                      g->nodes[pln_operand(g, old, 1)].type)};
  pln_ref dense = pln_relay_call_core(&r, PLN_OP_DENSE, n.attrs, 2, args);
  PLN_TRY(pln_relay_status(&r));
  t->removed++;
  return pln_relay_finish(&r, "transpose", dense, node);
}

pln_status pln_pass_simplify_fc_transpose(pln_pass_run *run) {
  transpose_removal t = {0};
  const pln_mutator m = {
      .ud = &t, .visit = take_transposed, .keeps_types = true};
  (void)pln_run_option(run, "target_weight_name", &t.names);
  PLN_TRY(pln_rewrite_weights(run, &m));
  return t.removed ? pln_run_count(run, "removed", t.removed) : PLN_OK;
}
