/* simplify_expr.c: SimplifyExpr: removes operations without effect and merges
 * consecutive ones.
 *
 * Run by the executor, once per function. Requires a verified graph. One
 * bottom-up sweep: the rules of its operator are tried on each call after its
 * operands were simplified, and the result of a rule is simplified again.
 * Results keep shapes, dtypes and values, except for the sign of zero: x + 0
 * becomes x, although -0 + 0 is +0.
 *
 *     transpose(transpose(%x, axes=[1, 0]), axes=[1, 0])   =>   %x
 *
 * Semantics: TVM SimplifyExpr and ONNX's eliminate_nop_*,
 * fuse_consecutive_*. */

#include <stdio.h>

#include "transform/simplify/rule.h"

enum { RULES_PER_OP = 6, MAX_STEPS = 64 };

typedef struct rule_row {
  const char *name; /* shown in the report */
  pln_simplify_rule rule;
  uint32_t operands; /* the fewest operands of a call to try it on */
} rule_row;

#define RULE(name) RULE_OF(0, name) /* operands of every form */
#define RULE_OF(operands, name) \
  { #name, pln_simplify_##name, operands }
static const rule_row rules[PLN_N_OPS][RULES_PER_OP] = {
    [PLN_OP_IDENTITY] = {RULE(only_operand)},
    [PLN_OP_RESHAPE] = {RULE(same_reshape), RULE(merge_reshape),
                        RULE(fold_reshape_shape), RULE(factor_reshape),
                        RULE(sink_reshape), RULE(keep_axes)},
    [PLN_OP_FLATTEN] = {RULE(same_reshape), RULE(factor_reshape)},
    [PLN_OP_SQUEEZE] = {RULE(same_reshape), RULE(merge_squeeze), RULE(take_one),
                        RULE(factor_reshape)},
    [PLN_OP_UNSQUEEZE] = {RULE(same_reshape), RULE(merge_unsqueeze),
                          RULE(take_vector), RULE(keep_axes),
                          RULE(factor_reshape)},
    [PLN_OP_TRANSPOSE] = {RULE(same_transpose), RULE(merge_transpose)},
    [PLN_OP_PAD] = {RULE(no_pad)},
    [PLN_OP_SLICE] = {RULE(full_slice)},
    [PLN_OP_EXPAND] = {RULE(same_expand), RULE_OF(2, fold_broadcast_shape)},
    [PLN_OP_TILE] = {RULE(no_tile)},
    [PLN_OP_CONCAT] = {RULE(single_concat), RULE(merge_concat)},
    [PLN_OP_SPLIT] = {RULE(single_split)},
    [PLN_OP_GATHER] = {RULE(take_all), RULE(take_through_transpose)},
    [PLN_OP_CAST] = {RULE(same_cast), RULE(merge_cast)},
    [PLN_OP_CAST_LIKE] = {RULE(same_cast)},
    [PLN_OP_ADD] = {RULE(add_zero), RULE(drop_broadcast)},
    [PLN_OP_SUB] = {RULE(subtract_zero), RULE(drop_broadcast)},
    [PLN_OP_MUL] = {RULE(multiply_one), RULE(drop_broadcast)},
    [PLN_OP_DIV] = {RULE(divide_one), RULE(drop_broadcast)},
    [PLN_OP_POW] = {RULE(power_one), RULE(drop_broadcast)},
    [PLN_OP_AND] = {RULE(and_true), RULE(drop_broadcast)},
    [PLN_OP_OR] = {RULE(or_false), RULE(drop_broadcast)},
    [PLN_OP_SUM] = {RULE(only_operand)},
    [PLN_OP_MEAN] = {RULE(only_operand)},
    [PLN_OP_MAX] = {RULE(only_operand), RULE(drop_broadcast)},
    [PLN_OP_MIN] = {RULE(only_operand), RULE(drop_broadcast)},
    [PLN_OP_XOR] = {RULE(drop_broadcast)},
    [PLN_OP_MOD] = {RULE(drop_broadcast)},
    [PLN_OP_EQUAL] = {RULE(drop_broadcast)},
    [PLN_OP_GREATER] = {RULE(drop_broadcast)},
    [PLN_OP_GREATER_OR_EQUAL] = {RULE(drop_broadcast)},
    [PLN_OP_LESS] = {RULE(drop_broadcast)},
    [PLN_OP_LESS_OR_EQUAL] = {RULE(drop_broadcast)},
    [PLN_OP_WHERE] = {RULE(drop_broadcast)},
    [PLN_OP_REDUCE_SUM] = {RULE(reduce_single)},
    [PLN_OP_REDUCE_MEAN] = {RULE(reduce_single)},
    [PLN_OP_REDUCE_PROD] = {RULE(reduce_single)},
    [PLN_OP_REDUCE_MAX] = {RULE(reduce_single)},
    [PLN_OP_REDUCE_MIN] = {RULE(reduce_single)},
    [PLN_OP_DROPOUT] = {RULE(inference_dropout)},
    [PLN_OP_RNN] = {RULE(zero_state)},
    [PLN_OP_GRU] = {RULE(zero_state)},
    [PLN_OP_LSTM] = {RULE(zero_state)},
};

typedef struct simplify_run {
  pln_engine *engine;
  uint8_t *mask_used;  /* by old node; allocated at the first dropout */
  pln_use_counts uses; /* counted when the first rule asks */
  uint32_t fields;     /* number of replaced tuples' fields */
  bool watched;
  uint32_t counts[PLN_N_OPS][RULES_PER_OP];
  uint32_t tried[PLN_N_OPS][RULES_PER_OP]; /* only while observed */
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

static pln_status need_masks(simplify_run *s, const pln_graph *old) {
  if (s->mask_used)
    return PLN_OK;
  s->mask_used = pln_mem_zeroed(s->engine, old->n_nodes);
  if (!s->mask_used)
    return pln_nomem(s->engine);
  mark_masks(old, s->mask_used);
  return PLN_OK;
}

/* ---------------------------------------------------------------- the driver
 */

static pln_status try_rule(simplify_run *s, int i, pln_rewrite_context *ctx,
                           pln_ref *out) {
  pln_op op = ctx->call.op;
  double began = s->watched ? pln_rule_clock(s->engine) : 0;
  *out = PLN_NONE;
  PLN_TRY(rules[op][i].rule(ctx, out));
  if (*out == ctx->node)
    *out = PLN_NONE;
  if (!s->watched)
    return PLN_OK;
  s->tried[op][i]++;
  return began > 0 ? pln_rule_tried(s->engine, rules[op][i].name, 0, began)
                   : PLN_OK;
}

/* Asks the rule limits; keeps the call if they refuse. */
static pln_status use_rule_answer(simplify_run *s, pln_rewrite_context *ctx,
                                  int i, pln_ref found, pln_ref *out) {
  pln_op op = ctx->call.op;
  bool allowed;
  PLN_TRY(pln_rewrite_apply(ctx->rw, rules[op][i].name, &allowed));
  if (!allowed)
    return PLN_OK;
  s->counts[op][i]++;
  *out = found;
  return pln_keep_rank(ctx->rw, found, ctx->type);
}

/* *out is the simplified node, or the call itself. */
static pln_status apply_rules(simplify_run *s, pln_rewrite_context *ctx,
                              pln_ref *out) {
  pln_op op = ctx->call.op;
  *out = ctx->node;
  for (int i = 0; i < RULES_PER_OP && rules[op][i].rule; i++) {
    pln_ref found;
    if (ctx->call.n_args < rules[op][i].operands)
      continue;
    PLN_TRY(try_rule(s, i, ctx, &found));
    if (found != PLN_NONE)
      return use_rule_answer(s, ctx, i, found, out);
    /* a rule that built and gave up has moved the operands */
    pln_rule_set_call(ctx, ctx->node);
  }
  return PLN_OK;
}

/* The only operators with tuple results that rules handle. */
static bool may_give_tuple(pln_op op) {
  return op == PLN_OP_DROPOUT || op == PLN_OP_RNN || op == PLN_OP_GRU ||
         op == PLN_OP_LSTM;
}

static bool has_rules(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data > 0 && n->data < PLN_N_OPS &&
         rules[n->data][0].rule &&
         (n->results == 0 || may_give_tuple(n->data)) &&
         pln_op_is_onnx_form(g, node) && pln_call_is_valid(g, node);
}

static pln_status simplify_call(simplify_run *s, pln_rewrite *rw, pln_ref old,
                                pln_ref *node) {
  pln_rewrite_context ctx = {
      .engine = s->engine, .rw = rw, .old = old, .uses = &s->uses};
  const pln_node *call = &pln_rewrite_graph(rw)->nodes[*node];
  if (call->data == PLN_OP_DROPOUT && call->results > 0)
    PLN_TRY(need_masks(s, pln_rewrite_old(rw)));
  ctx.mask_used = s->mask_used;
  for (int step = 0; step < MAX_STEPS; step++) {
    pln_ref next;
    const pln_node *n = &pln_rewrite_graph(rw)->nodes[*node];
    /* only the original call has more than one result */
    if (!has_rules(pln_rewrite_graph(rw), *node) || (step > 0 && n->results))
      return PLN_OK;
    pln_rule_set_call(&ctx, *node);
    PLN_TRY(apply_rules(s, &ctx, &next));
    if (next == *node)
      return PLN_OK;
    *node = next;
  }
  return PLN_OK;
}

static pln_status simplify_field(simplify_run *s, pln_rewrite *rw,
                                 pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_ref tuple = pln_operand(g, *node, 0);
  uint32_t index = g->nodes[*node].data;
  pln_type type = g->nodes[*node].type;
  bool allowed;
  if (g->nodes[tuple].kind != PLN_TUPLE || index >= g->nodes[tuple].count)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "tuple_field", &allowed));
  if (!allowed)
    return PLN_OK;
  *node = pln_operand(g, tuple, index);
  s->fields++;
  return pln_keep_rank(rw, *node, type);
}

static pln_status simplify_node(void *ud, pln_rewrite *rw, pln_ref old,
                                pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[*node];
  if (has_rules(g, *node))
    return simplify_call(ud, rw, old, node);
  return n->kind == PLN_TUPLE_GET_ITEM ? simplify_field(ud, rw, node) : PLN_OK;
}

/* While rules are observed, rules that never matched are reported too. */
static pln_status list_rules(const simplify_run *s) {
  PLN_TRY(pln_rule_tried(s->engine, "tuple_field", 0, 0));
  for (pln_op op = 0; op < PLN_N_OPS; op++)
    for (int i = 0; i < RULES_PER_OP && rules[op][i].rule; i++)
      PLN_TRY(pln_rule_tried(s->engine, rules[op][i].name, s->tried[op][i], 0));
  return PLN_OK;
}

static pln_status report_simplifications(const simplify_run *s,
                                         pln_pass_run *run) {
  if (s->watched)
    PLN_TRY(list_rules(s));
  if (s->fields)
    PLN_TRY(pln_run_count(run, "tuple_field", s->fields));
  for (pln_op op = 0; op < PLN_N_OPS; op++)
    for (int i = 0; i < RULES_PER_OP && rules[op][i].rule; i++)
      if (s->counts[op][i])
        PLN_TRY(pln_run_count(run, rules[op][i].name, s->counts[op][i]));
  return PLN_OK;
}

pln_status pln_pass_simplify_expr(pln_pass_run *run) {
  simplify_run s = {.engine = pln_run_engine(run)};
  s.uses.engine = s.engine;
  s.watched = pln_rules_watched(s.engine);
  pln_mutator m = {.ud = &s, .visit = simplify_node};
  const pln_graph *old = pln_run_function(run);
  pln_status status = pln_rewrite_function(run, &m);
  pln_mem_free(s.engine, s.mask_used, old->n_nodes);
  pln_use_counts_end(&s.uses);
  return status == PLN_OK ? report_simplifications(&s, run) : status;
}
