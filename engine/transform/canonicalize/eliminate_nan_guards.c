/* eliminate_nan_guards.c: EliminateNaNGuards: leaves out replacements of NaN
 * and infinities where there are none.
 *
 * Run by the executor, once per function. Requires a verified graph. That there
 * are none is proven from the constants and dtypes that the tensor is computed
 * from (value_range.c); a parameter of floats may hold anything. PyTorch
 * exports guard each softmax of attention, whose rows may be masked as a whole
 * with -inf; with a mask of finite numbers the guard does nothing.
 *
 *     where(isnan(%p), 0f, %p)   =>   %p, where %p = nn.softmax(..) of numbers
 *
 * LLVM's counterpart is InstCombine with isKnownNeverNaN. */

#include "transform/canonicalize/value_range.h"
#include "transform/simplify/rule.h"

typedef struct guard_sweep {
  pln_value_ranges ranges;
  bool found;
  int64_t left_out;
} guard_sweep;

/* The tensor that a guard tests and returns; PLN_NONE: the node is no guard. */
static pln_ref guarded(const pln_graph *g, pln_ref node) {
  if (!pln_is_call(g, node, PLN_OP_WHERE))
    return PLN_NONE;
  pln_ref test = pln_operand(g, node, 0), x = pln_operand(g, node, 2);
  bool tests = pln_is_call(g, test, PLN_OP_IS_NAN) ||
               pln_is_call(g, test, PLN_OP_IS_INF);
  return tests && pln_operand(g, test, 0) == x &&
                 g->nodes[x].type == g->nodes[node].type
             ? x
             : PLN_NONE;
}

static void want_guarded(guard_sweep *s) {
  const pln_graph *g = s->ranges.graph;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    pln_ref x = guarded(g, i);
    if (x != PLN_NONE)
      s->ranges.wanted[x] = 1;
    s->found |= x != PLN_NONE;
  }
}

static pln_status visit(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  guard_sweep *s = ud;
  pln_ref x = guarded(s->ranges.graph, old);
  bool allowed;
  if (x == PLN_NONE || !pln_range_is_finite(s->ranges.of[x]))
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "nan_guard", &allowed));
  if (!allowed)
    return PLN_OK;
  *node = pln_operand(pln_rewrite_graph(rw), *node, 2);
  s->left_out++;
  return PLN_OK;
}

static pln_status sweep(guard_sweep *s, pln_graph **out) {
  pln_mutator m = {.ud = s, .visit = visit, .keeps_types = true};
  const pln_graph *g = s->ranges.graph;
  want_guarded(s);
  if (!s->found) {
    *out = pln_graph_retain(g);
    return PLN_OK;
  }
  pln_value_ranges_find(&s->ranges);
  return pln_graph_rewrite(g, &m, out);
}

pln_status pln_pass_eliminate_nan_guards(pln_pass_run *run) {
  guard_sweep s = {.found = false};
  pln_graph *out = NULL;
  pln_status status = pln_value_ranges_begin(&s.ranges, pln_run_function(run));
  if (status == PLN_OK)
    status = sweep(&s, &out);
  pln_value_ranges_end(&s.ranges);
  if (status == PLN_OK && s.left_out)
    status = pln_run_count(run, "nan_guard", s.left_out);
  if (status == PLN_OK)
    pln_run_set_function(run, out);
  else
    pln_graph_release(out);
  return status;
}
