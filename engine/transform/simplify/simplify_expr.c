/* simplify_expr.c: SimplifyExpr: removes operations without effect and merges
 * consecutive ones.
 *
 * Run by the executor, once per function. Requires a verified graph. Runs the
 * rules of lua/perilune/rules; those whose replacement is an algorithm are in
 * this folder. Results keep shapes, dtypes and values, except for the sign of
 * zero: x + 0 becomes x, although -0 + 0 is +0.
 *
 *     transpose(transpose(%x, axes=[1, 0]), axes=[1, 0])   =>   %x
 *
 * Semantics: TVM SimplifyExpr and ONNX's eliminate_nop_*,
 * fuse_consecutive_*. */

#include "ir/provenance/rule_application.h"
#include "rule/library.h"
#include "transform/rule_options.h"
#include "transform/simplify/rule.h"

typedef struct simplify_run {
  pln_engine *engine;
  uint32_t masks_of;  /* the sweep whose old graph mask_used describes */
  uint8_t *mask_used; /* by old node; allocated at the first dropout */
  size_t n_masks;
  uint32_t fields; /* number of replaced tuples' fields */
} simplify_run;

/* -------------------------------------------------------------- result masks
 */

/* Marks calls with a use of a result other than the first. */
static void mark_masks(const pln_graph *g, uint8_t *used) {
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    if (n->kind == PLN_TUPLE_GET_ITEM && n->data == 0)
      continue;
    for (uint32_t k = 0; k < n->count; k++)
      used[g->operands[n->first + k]] = 1;
  }
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      used[g->scopes[s].result] = 1;
}

static pln_status need_masks(simplify_run *s, pln_rule_driver *driver) {
  const pln_graph *old = pln_rewrite_old(pln_rule_driver_rewrite(driver));
  if (s->masks_of == pln_rule_driver_sweep(driver))
    return PLN_OK;
  pln_mem_free(s->engine, s->mask_used, s->n_masks);
  s->n_masks = old->n_nodes;
  s->mask_used = pln_mem_zeroed(s->engine, s->n_masks);
  if (!s->mask_used)
    return pln_nomem(s->engine);
  s->masks_of = pln_rule_driver_sweep(driver);
  mark_masks(old, s->mask_used);
  return PLN_OK;
}

/* ---------------------------------------------------------- replacements in C
 */

typedef struct native_row {
  const char *name;
  pln_simplify_rule rule;
} native_row;

static const native_row natives[] = {
#define PLN_ROW(name) {#name, pln_simplify_##name},
    PLN_SIMPLIFY_RULES(PLN_ROW)
#undef PLN_ROW
};

static pln_status run_native(const void *ud, pln_rule_driver *driver,
                             pln_ref node, pln_ref *out) {
  const native_row *row = ud;
  simplify_run *s = pln_rule_driver_ud(driver);
  pln_rewrite_context ctx = {.engine = s->engine,
                             .rw = pln_rule_driver_rewrite(driver),
                             .old = pln_rule_driver_old(driver),
                             .driver = driver};
  const pln_node *call = &pln_rewrite_graph(ctx.rw)->nodes[node];
  if (call->data == PLN_OP_DROPOUT && call->results > 0)
    PLN_TRY(need_masks(s, driver));
  ctx.mask_used = s->mask_used;
  pln_rule_set_call(&ctx, node);
  *out = PLN_NONE;
  return row->rule(&ctx, out);
}

static pln_rule_native find_native(const char *name, const void **ud) {
  for (uint32_t i = 0; i < PLN_COUNT(natives); i++)
    if (!strcmp(natives[i].name, name)) {
      *ud = &natives[i];
      return run_native;
    }
  return NULL;
}

/* ------------------------------------------------------------------ the pass
 */

/* A field of a tuple that is built here is what the tuple was built of. */
static pln_status simplify_field(void *ud, pln_rewrite *rw, pln_ref old,
                                 pln_ref *node) {
  simplify_run *s = ud;
  const pln_graph *g = pln_rewrite_graph(rw);
  bool allowed;
  (void)old;
  pln_ref tuple = pln_operand(g, *node, 0);
  uint32_t index = g->nodes[*node].data;
  pln_type type = g->nodes[*node].type;
  if (g->nodes[tuple].kind != PLN_TUPLE || index >= g->nodes[tuple].count)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "tuple_field", &allowed));
  if (!allowed)
    return PLN_OK;
  *node = pln_operand(g, tuple, index);
  s->fields++;
  return pln_keep_rank(rw, *node, type);
}

/* While rules are observed, rules that never matched are reported too. */
static pln_status list_rules(const simplify_run *s, const pln_rule_set *set) {
  PLN_TRY(pln_rule_tried(s->engine, "tuple_field", 0, 0));
  for (uint32_t i = 0; i < pln_rule_set_count(set); i++)
    PLN_TRY(pln_rule_tried(s->engine, pln_rule_set_at(set, i)->name, 0, 0));
  return PLN_OK;
}

static pln_status report_simplifications(const simplify_run *s,
                                         const pln_rule_set *set,
                                         const pln_rule_counter *counts,
                                         pln_pass_run *run) {
  if (pln_rules_watched(s->engine))
    PLN_TRY(list_rules(s, set));
  if (s->fields)
    PLN_TRY(pln_run_count(run, "tuple_field", s->fields));
  for (uint32_t i = 0; i < pln_rule_set_count(set); i++)
    if (counts[i].applied)
      PLN_TRY(
          pln_run_count(run, pln_rule_set_at(set, i)->name, counts[i].applied));
  return PLN_OK;
}

/* tuple_field is no rule of the set, but may be left out like one. */
static pln_status read_options(const pln_pass_run *run, pln_attr *only,
                               pln_rule_options *options) {
  PLN_TRY(pln_run_rule_options(run, only, options));
  if (!pln_rule_is_enabled(options, "tuple_field", PLN_PROOF_EXACT))
    options->visit = NULL;
  return PLN_OK;
}

static pln_status simplify(simplify_run *s, const pln_rule_set *set,
                           pln_rule_counter *counts, pln_pass_run *run) {
  pln_rule_options options = {.visited = PLN_TUPLE_GET_ITEM,
                              .visit = simplify_field,
                              .ud = s,
                              .counts = counts,
                              .lenient = true};
  pln_attr only;
  pln_graph *out;
  PLN_TRY(read_options(run, &only, &options));
  PLN_TRY(pln_rules_apply(set, pln_run_function(run), &options, &out));
  pln_run_set_function(run, out);
  return report_simplifications(s, set, counts, run);
}

pln_status pln_pass_simplify_expr(pln_pass_run *run) {
  simplify_run s = {.engine = pln_run_engine(run)};
  const pln_rule_set *set;
  PLN_TRY(pln_library_rules(s.engine, "SimplifyExpr", find_native, &set));
  size_t size = (pln_rule_set_count(set) + 1) * sizeof(pln_rule_counter);
  pln_rule_counter *counts = pln_mem_zeroed(s.engine, size);
  if (!counts)
    return pln_nomem(s.engine);
  pln_status status = simplify(&s, set, counts, run);
  pln_mem_free(s.engine, counts, size);
  pln_mem_free(s.engine, s.mask_used, s.n_masks);
  return status;
}
