/* infer/relation.c: solves type relations, see infer/relation.h. Called by
 * infer/apply.c and infer/constraints.c when a function type with constraints
 * is applied. */

#include "ir/infer/relation.h"
#include "ir/graph/describe.h"
#include "ir/graph/graph.h"

void pln_relations_install(pln_engine *engine, const pln_relation_row *rows,
                           uint32_t n) {
  engine->relations = rows;
  engine->n_relations = n;
}

static pln_status unknown_name(pln_engine *e, const char *name) {
  const char *names[256];
  char hint[80];
  uint32_t n = e->n_relations < PLN_COUNT(names) ? e->n_relations
                                                 : (uint32_t)PLN_COUNT(names);
  for (uint32_t i = 0; i < n; i++)
    names[i] = e->relations[i].name;
  pln_suggest(name, n, names, hint, sizeof hint);
  return pln_diag_error(e, PLN_ERR_NAME, NULL,
                        "there is no relation of types '%s'%s", name, hint);
}

static const char *relation_name_of(const pln_engine *e, pln_type relation) {
  return pln_symbol_text(e, pln_type_symbol(e, relation)).data;
}

static pln_status find_row(pln_engine *e, pln_type relation,
                           const pln_relation_row **out) {
  const char *name = relation_name_of(e, relation);
  for (uint32_t i = 0; i < e->n_relations; i++)
    if (strcmp(e->relations[i].name, name) == 0) {
      *out = &e->relations[i];
      return PLN_OK;
    }
  return unknown_name(e, name);
}

/* ------------------------------------------------------------------ solving */

/* Builds a call of the operator on variables of the input types. */
static pln_status build_inputs(pln_builder *b, pln_unifier *u,
                               pln_type relation, uint32_t n, pln_ref *args) {
  for (uint32_t i = 0; i < n; i++) {
    pln_type type = pln_type_part_at(u->engine, relation, i);
    PLN_TRY(pln_unifier_resolve(u, type, &type, NULL));
    PLN_TRY(pln_build_var(b, 0, type, 0, &args[i]));
  }
  return PLN_OK;
}

static pln_status build_call(pln_builder *b, pln_unifier *u, pln_type relation,
                             pln_op op, uint32_t n, pln_ref *args,
                             pln_type *out) {
  pln_engine *e = u->engine;
  pln_attrs relay = pln_type_attrs(e, relation), core = relay;
  const pln_relay_row *row = pln_relay_of(e, op);
  uint32_t n_results = 0;
  pln_ref call;
  PLN_TRY(build_inputs(b, u, relation, n, args));
  if (row) {
    PLN_TRY(pln_relay_read(e, row, relay, &core));
    n_results = pln_relay_n_results(e, row, relay, core);
  }
  PLN_TRY(pln_build_call(b, op, core, n_results, n, args, &call));
  *out = b->graph->nodes[call].type;
  return PLN_OK;
}

/* The operator's inferred output types for the inputs. */
static pln_status infer_outputs(pln_unifier *u, pln_type relation, pln_op op,
                                pln_type *out) {
  pln_engine *e = u->engine;
  uint32_t n = pln_type_number(e, relation);
  pln_ref few[16], *args = few;
  pln_builder *b;
  if (n > PLN_COUNT(few) && !(args = pln_mem_new(e, n * sizeof *args)))
    return pln_nomem(e);
  pln_status status = pln_builder_new(e, &b);
  if (status == PLN_OK) {
    status = build_call(b, u, relation, op, n, args, out);
    pln_builder_free(b);
  }
  if (args != few)
    pln_mem_free(e, args, n * sizeof *args);
  return status;
}

static pln_status equate(pln_unifier *u, pln_type relation, uint32_t i,
                         pln_type type) {
  pln_engine *e = u->engine;
  pln_type part = pln_type_part_at(e, relation, i);
  pln_description wanted, got;
  bool fits;
  PLN_TRY(pln_unifier_open(u, type, &type));
  PLN_TRY(pln_unify(u, part, type, &fits));
  if (fits)
    return PLN_OK;
  PLN_TRY(pln_unifier_resolve(u, part, &part, NULL));
  PLN_TRY(pln_unifier_resolve(u, type, &type, NULL));
  return pln_diag_error(e, PLN_ERR_TYPE, NULL, "argument %u must be %s, got %s",
                        i + 1, pln_describe_type(e, type, &wanted),
                        pln_describe_type(e, part, &got));
}

/* All arguments have one type. */
static pln_status solve_equal(pln_unifier *u, pln_type relation) {
  uint32_t n = pln_type_n_parts(u->engine, relation);
  for (uint32_t i = 1; i < n; i++)
    PLN_TRY(equate(u, relation, i, pln_type_part_at(u->engine, relation, 0)));
  return PLN_OK;
}

/* A single output is the result; several are the fields of the result. */
static pln_status solve(pln_unifier *u, pln_type relation, const char *name) {
  pln_engine *e = u->engine;
  uint32_t first = pln_type_number(e, relation);
  uint32_t n = pln_type_n_parts(e, relation);
  pln_type result = 0;
  pln_op op = pln_op_find(e, pln_text(name));
  PLN_TRY(infer_outputs(u, relation, op, &result));
  if (n == first + 1)
    return equate(u, relation, first, result);
  if (n > first && (pln_type_get_kind(e, result) != PLN_TYPE_TUPLE ||
                    pln_type_n_parts(e, result) != n - first))
    return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                          "the relation does not have %u results", n - first);
  for (uint32_t i = first; i < n; i++)
    PLN_TRY(equate(u, relation, i, pln_type_part_at(e, result, i - first)));
  return PLN_OK;
}

/* A hole in the inputs, or 0. */
static pln_status find_unknown(pln_unifier *u, pln_type relation,
                               pln_type *unknown) {
  uint32_t n = pln_type_number(u->engine, relation);
  *unknown = 0;
  for (uint32_t i = 0; i < n && !*unknown; i++) {
    pln_type type = pln_type_part_at(u->engine, relation, i);
    PLN_TRY(pln_unifier_resolve(u, type, &type, unknown));
  }
  return PLN_OK;
}

/* *unknown: the hole that it waits for, or 0 when it is solved. */
static pln_status solve_named(pln_unifier *u, pln_type relation,
                              pln_type *unknown) {
  const pln_relation_row *row = NULL;
  PLN_TRY(find_row(u->engine, relation, &row));
  *unknown = 0;
  if (row->op)
    PLN_TRY(find_unknown(u, relation, unknown));
  if (*unknown)
    return PLN_OK;
  pln_status status =
      row->op ? solve(u, relation, row->op) : solve_equal(u, relation);
  if (status == PLN_ERR_TYPE)
    pln_diag_extend(u->engine, " in relation ", row->name);
  return status;
}

/* Tries each constraint once; *solved: one was solved. */
static pln_status one_round(pln_unifier *u, pln_type function, bool *solved,
                            bool *given, pln_type *unknown) {
  uint32_t n = pln_type_n_constraints(u->engine, function);
  *given = false;
  *unknown = 0;
  for (uint32_t i = 0; i < n; i++) {
    pln_type relation = pln_type_constraint_at(u->engine, function, i), hole;
    if (solved[i] ||
        pln_type_get_kind(u->engine, relation) != PLN_TYPE_RELATION)
      continue;
    PLN_TRY(solve_named(u, relation, &hole));
    if (hole && !*unknown)
      *unknown = hole;
    if (!hole)
      solved[i] = *given = true;
  }
  return PLN_OK;
}

/* Relations usually come in dependency order; this many rounds are made
 * otherwise. */
enum { MAX_ROUNDS = 64 };

pln_status pln_relations_solve(pln_unifier *u, pln_type function,
                               pln_type *unknown) {
  uint32_t n = pln_type_n_constraints(u->engine, function);
  bool given = true;
  *unknown = 0;
  if (n == 0)
    return PLN_OK;
  bool *solved = pln_mem_zeroed(u->engine, n * sizeof *solved);
  if (!solved)
    return pln_nomem(u->engine);
  pln_status status = PLN_OK;
  for (int i = 0; i < MAX_ROUNDS && given && status == PLN_OK; i++) {
    status = one_round(u, function, solved, &given, unknown);
    given = given && *unknown;
  }
  pln_mem_free(u->engine, solved, n * sizeof *solved);
  return status;
}
