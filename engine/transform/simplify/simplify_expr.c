/* simplify_expr.c: SimplifyExpr: removes operations without effect and merges
 * consecutive ones.
 *
 * Run by the executor, once per function. Requires a verified graph. Runs the
 * rules of lua/perilune/rules; those whose replacement is an algorithm are in
 * this folder. Results keep shapes, dtypes and values, except for the sign of
 * zero: x + 0 becomes x, although -0 + 0 is +0. In functions that came from no
 * ONNX model constants of floats are merged as TVM merges them, which moves a
 * rounding; config key rules.exact leaves that out.
 *
 *     transpose(transpose(%x, axes=[1, 0]), axes=[1, 0])   =>   %x
 *
 * Semantics: TVM SimplifyExpr and ONNX's eliminate_nop_*,
 * fuse_consecutive_*. */

#include "ir/provenance/rule_application.h"
#include "transform/shipped_rules.h"
#include "transform/simplify/rule.h"

typedef struct simplify_run {
  pln_pass_run *run;
  bool drops_fields; /* the rule tuple_field, which is no rule of the set, but
                      * may be left out like one, is on */
  uint32_t fields;   /* number of replaced tuples' fields */
} simplify_run;

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
  pln_rewrite *rw = pln_rule_driver_rewrite(driver);
  pln_rewrite_context ctx = {.engine = pln_rewrite_graph(rw)->engine,
                             .rw = rw,
                             .old = pln_rule_driver_old(driver),
                             .driver = driver};
  pln_rule_set_call(&ctx, node);
  *out = PLN_NONE;
  return row->rule(&ctx, out);
}

pln_rule_native pln_simplify_find_native(const char *name, const void **ud) {
  for (uint32_t i = 0; i < PLN_COUNT(natives); i++)
    if (!strcmp(natives[i].name, name)) {
      *ud = &natives[i];
      return run_native;
    }
  return NULL;
}

/* ------------------------------------------------------------------ the pass
 */

static pln_status read_options(simplify_run *s) {
  pln_rule_options options = {0};
  pln_attr only;
  PLN_TRY(pln_run_rule_options(s->run, &only, &options));
  s->drops_fields =
      pln_rule_is_enabled(&options, "tuple_field", PLN_PROOF_EXACT);
  return PLN_OK;
}

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
  if (!s->drops_fields || g->nodes[tuple].kind != PLN_TUPLE ||
      index >= g->nodes[tuple].count)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "tuple_field", &allowed));
  if (!allowed)
    return PLN_OK;
  *node = pln_operand(g, tuple, index);
  s->fields++;
  return pln_keep_rank(rw, *node, type);
}

pln_status pln_pass_simplify_expr(pln_pass_run *run) {
  simplify_run s = {.run = run};
  pln_rule_options options = {.visited = PLN_TUPLE_GET_ITEM,
                              .visit = simplify_field,
                              .ud = &s,
                              .lenient = true};
  pln_graph *out;
  if (pln_rules_watched(run->engine))
    PLN_TRY(pln_rule_tried(run->engine, "tuple_field", 0, 0));
  PLN_TRY(read_options(&s));
  PLN_TRY(pln_run_shipped_rules(run, "SimplifyExpr", pln_run_function(run),
                                &options, &out));
  pln_run_set_function(run, out);
  return s.fields ? pln_run_count(run, "tuple_field", s.fields) : PLN_OK;
}
