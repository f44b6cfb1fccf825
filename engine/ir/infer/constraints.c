/* infer/constraints.c: the type constraints of each node kind (Hindley-Milner:
 * this file generates constraints, type/unify.c solves them).
 *
 * Called by infer/inferencer.c for a node when its type or an operand's type is
 * not completely known. Invariants: a rule reads and unifies only the terms of
 * its node, its operands, and its scopes' results and parameters; it may run
 * several times. */

#include <stdio.h>

#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/infer/apply.h"
#include "ir/infer/check_calls.h"
#include "ir/infer/inferencer.h"
#include "ir/infer/relation.h"
#include "ir/infer/type_args.h"

/* The evaluation of one rule. */
typedef struct rule {
  pln_inferencer *t;
  pln_inferencer_graph *g;
  pln_ref ref;
  const pln_node *n;
} rule;

static pln_type term(const rule *r, pln_ref ref) {
  return r->g->terms[ref];
}

static pln_ref nth_operand_term(const rule *r, uint32_t i) {
  return r->g->old->operands[r->n->first + i];
}

static pln_type operand_term(const rule *r, uint32_t i) {
  return term(r, nth_operand_term(r, i));
}

static pln_type_kind resolved_type_kind(const rule *r, pln_type type) {
  return pln_type_get_kind(r->t->engine, type);
}

static pln_type known(const rule *r, pln_type type) {
  return pln_unifier_find(&r->t->u, type);
}

static pln_status wait_for(const rule *r, pln_type hole) {
  return pln_unifier_wait(&r->t->u, hole, r->g->base + r->ref);
}

/* For a file it was reported as a warning at import, and is accepted. */
static pln_status report_type_difference(const rule *r, const char *what,
                                         pln_type wanted, pln_type got) {
  pln_engine *e = r->t->engine;
  if (r->t->lenient)
    return PLN_OK;
  pln_description first, second;
  PLN_TRY(pln_unifier_resolve(&r->t->u, wanted, &wanted, NULL));
  PLN_TRY(pln_unifier_resolve(&r->t->u, got, &got, NULL));
  return pln_diag_error(e, PLN_ERR_TYPE, NULL, "%s: expected %s, got %s", what,
                        pln_describe_type(e, wanted, &first),
                        pln_describe_type(e, got, &second));
}

static pln_status equate(const rule *r, const char *what, pln_type wanted,
                         pln_type got) {
  bool fits;
  PLN_TRY(pln_unify(&r->t->u, wanted, got, &fits));
  return fits ? PLN_OK : report_type_difference(r, what, wanted, got);
}

static pln_status is_of(const rule *r, pln_type type) {
  return equate(r, "types do not match", term(r, r->ref), type);
}

static pln_status make_type_term(const rule *r, pln_type_kind kind, uint32_t n,
                                 const pln_type *parts, pln_type *out) {
  return pln_type_make(r->t->engine, kind, 0, n, parts, out);
}

/* ------------------------------------------------------------------ tuples */

/* The terms of the operands from `first` on, in new memory if `few` is too
 * small. */
static pln_status operand_terms(const rule *r, uint32_t first, pln_type *few,
                                uint32_t n_few, pln_type **out) {
  uint32_t n = r->n->count - first;
  *out = few;
  if (n > n_few && !(*out = pln_mem_new(r->t->engine, n * sizeof **out)))
    return pln_nomem(r->t->engine);
  for (uint32_t i = 0; i < n; i++)
    (*out)[i] = operand_term(r, first + i);
  return PLN_OK;
}

static void free_terms(const rule *r, pln_type *terms, const pln_type *few,
                       uint32_t first) {
  if (terms != few)
    pln_mem_free(r->t->engine, terms, (r->n->count - first) * sizeof *terms);
}

static pln_status tuple_rule(const rule *r) {
  pln_type few[16], *fields, type;
  PLN_TRY(operand_terms(r, 0, few, PLN_COUNT(few), &fields));
  pln_status status =
      make_type_term(r, PLN_TYPE_TUPLE, r->n->count, fields, &type);
  free_terms(r, fields, few, 0);
  return status == PLN_OK ? is_of(r, type) : status;
}

static pln_status get_rule(const rule *r) {
  pln_engine *e = r->t->engine;
  pln_type tuple = known(r, operand_term(r, 0));
  if (resolved_type_kind(r, tuple) == PLN_TYPE_HOLE)
    return wait_for(r, tuple);
  if (!tuple)
    return PLN_OK;
  if (resolved_type_kind(r, tuple) != PLN_TYPE_TUPLE)
    return pln_diag_error(
        e, PLN_ERR_TYPE, NULL,
        "TupleGetItem: field %u of a value that is not a tuple", r->n->data);
  uint32_t n = pln_type_n_parts(e, tuple);
  if (r->n->data >= n)
    return pln_diag_error(e, PLN_ERR_TYPE, NULL, "field %u of a tuple of %u",
                          r->n->data, n);
  return is_of(r, pln_type_part_at(e, tuple, r->n->data));
}

/* ------------------------------------------------------------------- calls */

static pln_status settle_unknown_result(const rule *r, pln_ref ref,
                                        pln_type *unknown) {
  pln_type hole;
  if (!r->g->open[ref])
    return PLN_OK;
  PLN_TRY(pln_unifier_resolve(&r->t->u, term(r, ref),
                              &r->g->graph->nodes[ref].type, &hole));
  if (hole && !*unknown)
    *unknown = hole;
  return PLN_OK;
}

/* Writes the known operand types where operator inference reads them, including
 * the fields of an operand that is a tuple. *unknown: a hole in one of them, or
 * 0. */
static pln_status settle_operands(const rule *r, pln_type *unknown) {
  *unknown = 0;
  for (uint32_t i = 0; i < r->n->count; i++) {
    const pln_node *arg = &r->g->old->nodes[nth_operand_term(r, i)];
    PLN_TRY(settle_unknown_result(r, nth_operand_term(r, i), unknown));
    for (uint32_t k = 0; arg->kind == PLN_TUPLE && k < arg->count; k++)
      PLN_TRY(settle_unknown_result(r, r->g->old->operands[arg->first + k],
                                    unknown));
  }
  return PLN_OK;
}

/* True if dtype and rank are known. */
static bool gives_rank(const pln_engine *e, pln_type type) {
  return pln_type_get_kind(e, type) != PLN_TYPE_TENSOR ||
         (pln_type_dtype(e, type) && pln_type_rank(e, type) >= 0);
}

static pln_status infer_operands_back(const rule *r, const pln_type *inferred) {
  for (uint32_t i = 0; i < r->n->count; i++) {
    pln_type type;
    if (!inferred[i] || !r->g->open[nth_operand_term(r, i)])
      continue;
    PLN_TRY(pln_unifier_open(&r->t->u, inferred[i], &type));
    PLN_TRY(equate(r, "types do not match", type, operand_term(r, i)));
  }
  return PLN_OK;
}

/* The known part of the node's type, or 0. */
static pln_status known_result(const rule *r, pln_type *out) {
  pln_type unknown;
  PLN_TRY(pln_unifier_resolve(&r->t->u, term(r, r->ref), out, &unknown));
  if (unknown)
    *out = 0;
  return PLN_OK;
}

/* A call refused in a file was reported at import; its result is unknown. */
static pln_status infer_operator(const rule *r, pln_node *n, pln_type *inferred,
                                 pln_value *value) {
  size_t mark = pln_diag_count(r->t->engine);
  pln_status status = pln_infer_op_call(r->g->graph, n, inferred, value);
  if (status == PLN_OK || status == PLN_ERR_NOMEM || !r->t->lenient)
    return status;
  if (pln_diag_ran_out(r->t->engine, mark))
    return PLN_ERR_NOMEM;
  pln_diag_demote(r->t->engine, mark);
  n->type = 0;
  *value = 0;
  return PLN_OK;
}

/* What the call implies about operands of unknown type: the weight of a dense
 * layer follows from its input and units, the operand of a negation from its
 * result. */
static pln_status ask_operator(const rule *r) {
  pln_engine *e = r->t->engine;
  pln_type few[16] = {0}, *inferred = few;
  pln_node n = r->g->graph->nodes[r->ref];
  pln_value value;
  PLN_TRY(known_result(r, &n.type));
  size_t size = r->n->count * sizeof *inferred;
  if (size > sizeof few && !(inferred = pln_mem_zeroed(e, size)))
    return pln_nomem(e);
  pln_status status = infer_operator(r, &n, inferred, &value);
  if (status == PLN_OK)
    status = infer_operands_back(r, inferred);
  if (inferred != few)
    pln_mem_free(e, inferred, size);
  return status;
}

/* A function of which a parameter or the result is unknown counts as
 * unknown. */
static bool is_unknown_operand(const pln_engine *e, pln_type type) {
  return !type || (pln_type_get_kind(e, type) == PLN_TYPE_FUNC &&
                   pln_type_flags(e, type) & PLN_TYPE_HAS_HOLE);
}

/* True if the result or an operand is partly known and another operand is
 * unknown. */
static bool has_inferable_operand(const rule *r) {
  bool some = !r->g->open[r->ref], none = false;
  for (uint32_t i = 0; i < r->n->count; i++) {
    pln_type type = r->g->graph->nodes[nth_operand_term(r, i)].type;
    some |= type != 0;
    none |= is_unknown_operand(r->t->engine, type);
  }
  return some && none;
}

/* Infers only operands that wait for information. */
pln_status pln_inferencer_infer_operands(pln_inferencer *t,
                                         pln_inferencer_graph *g, pln_ref ref) {
  rule r = {t, g, ref, &g->old->nodes[ref]};
  pln_type unknown, type;
  PLN_TRY(known_result(&r, &type));
  if (!type)
    return PLN_OK;
  PLN_TRY(settle_operands(&r, &unknown));
  return unknown ? ask_operator(&r) : PLN_OK;
}

static pln_status operator_rule(const rule *r, bool last) {
  pln_type unknown, type;
  pln_value value = 0;
  PLN_TRY(settle_operands(r, &unknown));
  if (unknown && has_inferable_operand(r)) {
    PLN_TRY(ask_operator(r));
    PLN_TRY(settle_operands(r, &unknown));
  }
  if (unknown && !last)
    return wait_for(r, unknown);
  pln_node n = r->g->graph->nodes[r->ref];
  PLN_TRY(infer_operator(r, &n, NULL, &value));
  if (value)
    r->g->graph->values[r->ref] = value;
  if (unknown && !gives_rank(r->t->engine, n.type))
    return PLN_OK;
  PLN_TRY(pln_unifier_open(&r->t->u, n.type, &type));
  return is_of(r, type);
}

/* Solves the callee's relations. The rule is run again when a relation lacks an
 * input. */
static pln_status apply_relations(const rule *r, pln_type function) {
  pln_type unknown;
  PLN_TRY(pln_relations_solve(&r->t->u, function, &unknown));
  return unknown ? wait_for(r, unknown) : PLN_OK;
}

/* A generic function's type with the known parts filled in. They may contain
 * type parameters. */
static pln_status settle_parts(const rule *r, pln_type *function) {
  pln_engine *e = r->t->engine;
  uint32_t n = pln_type_n_parts(e, *function);
  if (pln_type_n_vars(e, *function) == 0 ||
      !(pln_type_flags(e, *function) & PLN_TYPE_HAS_HOLE))
    return PLN_OK;
  pln_type *parts = pln_mem_new(e, n * sizeof *parts);
  if (!parts)
    return pln_nomem(e);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    pln_type unknown = 0;
    status = pln_unifier_resolve(&r->t->u, pln_type_part_at(e, *function, i),
                                 &parts[i], &unknown);
    if (unknown)
      parts[i] = pln_type_part_at(e, *function, i);
  }
  if (status == PLN_OK)
    status = pln_type_with_parts(e, *function, parts, function);
  pln_mem_free(e, parts, n * sizeof *parts);
  return status;
}

/* The unknown result type of a generic function is not one type for all of its
 * calls, so the rule waits until it is known. */
static pln_status apply_known(const rule *r, pln_type function) {
  pln_engine *e = r->t->engine;
  uint32_t n = pln_type_n_parts(e, function) - 1;
  pln_type result = known(r, pln_type_part_at(e, function, n));
  bool wait = pln_type_n_vars(e, function) > 0 &&
              resolved_type_kind(r, result) == PLN_TYPE_HOLE;
  if (n + 1 != r->n->count)
    return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                          "the function takes %u argument%s, got %u", n,
                          n == 1 ? "" : "s", r->n->count - 1);
  PLN_TRY(settle_parts(r, &function));
  PLN_TRY(pln_instantiate(&r->t->u, function,
                          pln_written_type_args(e, r->n->attrs), NULL,
                          &function));
  for (uint32_t i = 0; i < n; i++) {
    char what[40];
    bool fits;
    pln_type param = pln_type_part_at(e, function, i);
    PLN_TRY(pln_unify(&r->t->u, param, operand_term(r, i + 1), &fits));
    if (fits)
      continue;
    snprintf(what, sizeof what, "argument %u", i + 1);
    PLN_TRY(report_type_difference(r, what, param, operand_term(r, i + 1)));
  }
  if (wait)
    return wait_for(r, result);
  PLN_TRY(is_of(r, pln_type_part_at(e, function, n)));
  return apply_relations(r, function);
}

/* The callee is unified with a function type from the arguments to the
 * result. */
static pln_status apply_unknown(const rule *r, pln_type hole) {
  pln_type few[16], *params, type;
  uint32_t n = r->n->count - 1;
  PLN_TRY(operand_terms(r, 1, few, PLN_COUNT(few), &params));
  pln_status status = pln_type_func(r->t->engine, n, params, term(r, r->ref), 0,
                                    NULL, 0, NULL, &type);
  free_terms(r, params, few, 1);
  return status == PLN_OK ? equate(r, "the callee", hole, type) : status;
}

static pln_status apply_rule(const rule *r) {
  pln_type function = known(r, operand_term(r, 0));
  if (resolved_type_kind(r, function) == PLN_TYPE_FUNC)
    return apply_known(r, function);
  if (resolved_type_kind(r, function) == PLN_TYPE_HOLE)
    return apply_unknown(r, function);
  return pln_diag_error(r->t->engine, PLN_ERR_TYPE, NULL,
                        "the callee is not a function");
}

/* An operator used as a value has the function type that its known arguments
 * imply. */
static pln_status call_operator(const rule *r, pln_builder *b,
                                pln_type function, pln_type *ret) {
  pln_engine *e = r->t->engine;
  uint32_t n = pln_type_n_parts(e, function) - 1;
  pln_ref *args = pln_mem_new(e, n * sizeof *args), call;
  if (!args && n > 0)
    return pln_nomem(e);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = pln_build_var(b, 0, pln_type_part_at(e, function, i), 0, &args[i]);
  if (status == PLN_OK)
    status = pln_build_call(b, r->n->data, 0, 0, n, args, &call);
  if (status == PLN_OK)
    *ret = b->graph->nodes[call].type;
  pln_mem_free(e, args, n * sizeof *args);
  return status;
}

static pln_status op_rule(const rule *r) {
  pln_engine *e = r->t->engine;
  pln_type function = known(r, term(r, r->ref)), closed, unknown, ret = 0;
  if (resolved_type_kind(r, function) == PLN_TYPE_HOLE)
    return wait_for(r, function);
  if (resolved_type_kind(r, function) != PLN_TYPE_FUNC)
    return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                          "the type of an operator must be a function type");
  uint32_t n = pln_type_n_parts(e, function) - 1;
  for (uint32_t i = 0; i < n; i++) {
    pln_type param = pln_type_part_at(e, function, i);
    PLN_TRY(pln_unifier_resolve(&r->t->u, param, &closed, &unknown));
    if (unknown)
      return wait_for(r, unknown);
  }
  PLN_TRY(pln_unifier_resolve(&r->t->u, function, &closed, &unknown));
  pln_builder *b;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = call_operator(r, b, closed, &ret);
  pln_builder_free(b);
  PLN_TRY(status);
  PLN_TRY(pln_unifier_open(&r->t->u, ret, &ret));
  return equate(r, "the result", pln_type_part_at(e, function, n), ret);
}

/* ------------------------------------------------------ functions, globals */

static pln_status function_rule(const rule *r) {
  pln_engine *e = r->t->engine;
  pln_type function = term(r, r->ref);
  pln_ref result = r->g->old->scopes[r->n->data].result;
  uint32_t n = pln_type_n_parts(e, function);
  return equate(r, "the function's result",
                pln_type_part_at(e, function, n - 1), term(r, result));
}

/* The function's term if it is inferred in this run; else its type in the
 * module. */
static pln_type signature(const rule *r) {
  const pln_inferencer *t = r->t;
  uint32_t i = PLN_NONE;
  if (t->module)
    i = pln_module_find(t->module, r->n->data);
  if (i == PLN_NONE)
    return 0;
  uint32_t along = t->along ? t->along[i] : 0;
  if (along)
    return t->graphs[along - 1].terms[t->graphs[along - 1].old->root];
  const pln_graph *f = pln_module_function_at(t->module, i);
  if (pln_has_own_type(r->g->old, r->n, f))
    return r->n->type;
  return f->nodes[f->root].type;
}

static pln_status global_rule(const rule *r) {
  pln_type type;
  PLN_TRY(pln_unifier_open(&r->t->u, signature(r), &type));
  return is_of(r, type);
}

static pln_status constructor_type(const rule *r, pln_type *out) {
  uint32_t index, of;
  *out = 0;
  if (!r->t->module)
    return PLN_OK;
  of = pln_module_find_constructor(r->t->module, r->n->data, &index);
  if (of == PLN_NONE)
    return pln_diag_error(r->t->engine, PLN_ERR_TYPE, NULL,
                          "the module defines no constructor '%s'",
                          pln_symbol_text(r->t->engine, r->n->data).data);
  return pln_module_constructor_type(r->t->module, of, index, out);
}

static pln_status constructor_rule(const rule *r) {
  pln_type type;
  PLN_TRY(constructor_type(r, &type));
  return type ? is_of(r, type) : PLN_OK;
}

/* --------------------------------------------------------------- branching */

/* The branches of an If in a file may differ in shape; the differing dims are
 * then unknown. */
static pln_status join_known(const rule *r, pln_type a, pln_type b) {
  bool conflict;
  pln_type both;
  PLN_TRY(pln_type_join(r->t->engine, a, b, &both, &conflict));
  if (conflict)
    return report_type_difference(r, "the branches of an If", a, b);
  return is_of(r, both);
}

static pln_status if_rule(const rule *r) {
  pln_engine *e = r->t->engine;
  const pln_graph *g = r->g->old;
  const pln_scope_row *first = &g->scopes[r->n->data];
  pln_type a = term(r, first->result), b, cond = known(r, operand_term(r, 0));
  b = term(r, g->scopes[first->next].result);
  if (resolved_type_kind(r, cond) == PLN_TYPE_HOLE) {
    pln_type boolean;
    PLN_TRY(pln_type_tensor(e, PLN_BOOL, 0, NULL, &boolean));
    PLN_TRY(equate(r, "the condition", boolean, cond));
  } else if (!r->t->lenient) {
    PLN_TRY(pln_check_condition(e, cond));
  }
  PLN_TRY(pln_unifier_resolve(&r->t->u, a, &a, NULL));
  PLN_TRY(pln_unifier_resolve(&r->t->u, b, &b, NULL));
  if (!((pln_type_flags(e, a) | pln_type_flags(e, b)) & PLN_TYPE_HAS_HOLE))
    return join_known(r, a, b);
  a = term(r, first->result);
  b = term(r, g->scopes[first->next].result);
  PLN_TRY(equate(r, "the branches of an If", a, b));
  return is_of(r, pln_most_specific_type(e, known(r, a), known(r, b)));
}

static pln_status match_rule(const rule *r) {
  const pln_graph *g = r->g->old;
  for (pln_scope s = r->n->data; s != PLN_NONE; s = g->scopes[s].next)
    PLN_TRY(equate(r, "the arms of a Match", term(r, r->ref),
                   term(r, g->scopes[s].result)));
  return PLN_OK;
}

/* The data of a Match precedes its arms. */
pln_ref pln_clause_data(const pln_inferencer_graph *g, pln_ref clause) {
  pln_ref owner = g->old->scopes[g->node_scope[clause]].owner;
  if (owner == PLN_NONE || g->old->nodes[owner].kind != PLN_MATCH)
    return PLN_NONE;
  return pln_operand(g->old, owner, 0);
}

static pln_status clause_rule(const rule *r) {
  pln_ref data = pln_clause_data(r->g, r->ref);
  if (data == PLN_NONE)
    return PLN_OK;
  return equate(r, "the pattern", term(r, data), operand_term(r, 0));
}

static pln_status pattern_rule(const rule *r) {
  pln_engine *e = r->t->engine;
  pln_type type;
  PLN_TRY(constructor_type(r, &type));
  if (!type)
    return PLN_OK;
  uint32_t n = pln_type_n_parts(e, type) - 1;
  if (n != r->n->count)
    return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                          "the constructor '%s' has %u field%s, the pattern %u",
                          pln_symbol_text(e, r->n->data).data, n,
                          n == 1 ? "" : "s", r->n->count);
  PLN_TRY(pln_unifier_instantiate(&r->t->u, type, &type));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(equate(r, "a field of the pattern", pln_type_part_at(e, type, i),
                   operand_term(r, i)));
  return is_of(r, pln_type_part_at(e, type, n));
}

/* -------------------------------------------------------------- references */

static pln_status ref_rule(const rule *r) {
  pln_type cell, content;
  if (r->n->kind == PLN_REF_CREATE)
    content = operand_term(r, 0);
  else
    content = r->n->kind == PLN_REF_READ ? term(r, r->ref) : operand_term(r, 1);
  PLN_TRY(make_type_term(r, PLN_TYPE_REF, 1, &content, &cell));
  if (r->n->kind == PLN_REF_CREATE)
    return is_of(r, cell);
  PLN_TRY(equate(r, "the reference", cell, operand_term(r, 0)));
  if (r->n->kind == PLN_REF_READ)
    return PLN_OK;
  PLN_TRY(make_type_term(r, PLN_TYPE_TUPLE, 0, NULL, &content));
  return is_of(r, content);
}

pln_status pln_constraint_rule(pln_inferencer *t, pln_inferencer_graph *g,
                               pln_ref ref, bool last) {
  rule r = {t, g, ref, &g->old->nodes[ref]};
  PLN_TRY(pln_poll(t->engine));
  switch ((pln_kind)r.n->kind) {
  case PLN_OP: return op_rule(&r);
  case PLN_GLOBAL_VAR: return global_rule(&r);
  case PLN_CONSTRUCTOR: return constructor_rule(&r);
  case PLN_PATTERN_TUPLE:
  case PLN_TUPLE: return tuple_rule(&r);
  case PLN_TUPLE_GET_ITEM: return get_rule(&r);
  case PLN_CALL: return r.n->data ? operator_rule(&r, last) : apply_rule(&r);
  case PLN_FUNCTION: return function_rule(&r);
  case PLN_LET:
    return equate(&r, "the variable of a let", operand_term(&r, 0),
                  operand_term(&r, 1));
  case PLN_LET_BLOCK:
    return is_of(&r, term(&r, g->old->scopes[r.n->data].result));
  case PLN_IF: return if_rule(&r);
  case PLN_MATCH: return match_rule(&r);
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return ref_rule(&r);
  case PLN_PATTERN_VAR: return is_of(&r, operand_term(&r, 0));
  case PLN_PATTERN_CONSTRUCTOR: return pattern_rule(&r);
  case PLN_CLAUSE: return clause_rule(&r);
  default:
    return PLN_OK; /* TIR nodes, and nodes without operands, have their
                    * types */
  }
}
