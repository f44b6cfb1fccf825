/* arith/analyzer.c: the analyzer: its context of bound variables and known
 * conditions, and the public functions of simplification and proof.
 *
 * What is derived from the context is stamped with an epoch; a change of the
 * context begins a new epoch, and leaving a scope returns to the one before, if
 * no variable was bound in between. */

#include "arith/arith.h"

static void free_array(pln_analyzer *a, void *items, uint32_t cap,
                       size_t item) {
  if (items)
    pln_mem_free(a->engine, items, cap * item);
}

void pln_analyzer_free(pln_analyzer *a) {
  if (!a)
    return;
  for (uint32_t i = 0; i < a->n_spare; i++)
    free_array(a, a->spare[i].items, a->spare[i].cap, sizeof(pln_term));
  free_array(a, a->nodes, a->cap, sizeof *a->nodes);
  free_array(a, a->facts, a->cap_facts, sizeof *a->facts);
  free_array(a, a->operands, a->cap_operands, sizeof *a->operands);
  free_array(a, a->table, a->mask + 1, sizeof *a->table);
  free_array(a, a->term_of, a->cap_term_of, sizeof *a->term_of);
  free_array(a, a->stamp_of, a->cap_stamp_of, sizeof *a->stamp_of);
  free_array(a, a->ref_of, a->cap_ref_of, sizeof *a->ref_of);
  free_array(a, a->image_of, a->cap_image_of, sizeof *a->image_of);
  free_array(a, a->image_at, a->cap_image_at, sizeof *a->image_at);
  free_array(a, a->coef_of, a->cap_coef_of, sizeof *a->coef_of);
  free_array(a, a->coef_at, a->cap_coef_at, sizeof *a->coef_at);
  free_array(a, a->set_of, a->cap_set_of, sizeof *a->set_of);
  free_array(a, a->set_at, a->cap_set_at, sizeof *a->set_at);
  free_array(a, a->vars, a->cap_vars, sizeof *a->vars);
  free_array(a, a->known, a->cap_known, sizeof *a->known);
  free_array(a, a->divisible, a->cap_divisible, sizeof *a->divisible);
  free_array(a, a->relations, a->cap_relations, sizeof *a->relations);
  free_array(a, a->scopes, a->cap_scopes, sizeof *a->scopes);
  pln_arith_rules_free(a->engine, a->own_rules);
  pln_mem_free(a->engine, a, sizeof *a);
}

/* The table of rules belongs to the engine; a child engine uses its parent's,
 * or has one for each analyzer. */
static pln_status find_rules(pln_analyzer *a) {
  pln_engine *e = a->engine;
  const pln_engine *parent = e->parent;
  if (!e->arith_rules && parent && parent->arith_rules) {
    a->rules = parent->arith_rules;
    return PLN_OK;
  }
  if (!e->arith_rules && parent) {
    PLN_TRY(pln_arith_rules_compile(e, &a->own_rules));
    a->rules = a->own_rules;
    return PLN_OK;
  }
  if (!e->arith_rules)
    PLN_TRY(pln_arith_rules_compile(e, &e->arith_rules));
  a->rules = e->arith_rules;
  return PLN_OK;
}

/* Term 0 stands for what failed. */
static pln_status prepare(pln_analyzer *a) {
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->nodes, &a->cap, 64,
                       sizeof *a->nodes));
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->facts, &a->cap_facts, 64,
                       sizeof *a->facts));
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->operands, &a->cap_operands, 16,
                       sizeof *a->operands));
  a->nodes[0] = (pln_term_node){.kind = PLN_ANY, .lanes = 1, .size = 1};
  memset(&a->facts[0], 0, sizeof *a->facts);
  a->n = 1;
  a->epoch = a->epochs = 1;
  return find_rules(a);
}

pln_status pln_analyzer_new(pln_engine *engine, pln_analyzer **out) {
  pln_analyzer *a = pln_mem_zeroed(engine, sizeof *a);
  if (!a)
    return pln_nomem(engine);
  a->engine = engine;
  pln_status status = prepare(a);
  if (status != PLN_OK) {
    pln_analyzer_free(a);
    return status;
  }
  *out = a;
  return PLN_OK;
}

void pln_analyzer_set_extensions(pln_analyzer *a, uint32_t mask) {
  a->extensions = mask & PLN_ARITH_EXTENSIONS;
  pln_new_epoch(a);
}

void pln_new_epoch(pln_analyzer *a) {
  a->epoch = ++a->epochs;
}

/* Begins a public function. */
static void begin(pln_analyzer *a) {
  a->status = PLN_OK;
  a->depth = 0;
  a->fuel = a->n < (1u << 26) ? 32 * a->n + 100000 : UINT32_MAX;
  a->branch_fuel = a->fuel;
}

pln_status pln_check_term(pln_analyzer *a, pln_term t) {
  begin(a);
  if (t && t < a->n)
    return PLN_OK;
  return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                        "arith: no such term");
}

pln_status pln_check_bool_term(pln_analyzer *a, pln_term t) {
  PLN_TRY(pln_check_term(a, t));
  if (pln_is_bool(a, t))
    return PLN_OK;
  return pln_diag_error(a->engine, PLN_ERR_TYPE, NULL,
                        "arith: a constraint is a condition, not of dtype %s",
                        pln_dtype_name((pln_dtype)pln_at(a, t)->dtype));
}

/* ---------------------------------------------------------------- variables
 */

pln_var_fact *pln_var_fact_of(pln_analyzer *a, pln_term var, bool make) {
  uint32_t i = a->facts[var].var;
  if (i)
    return &a->vars[i - 1];
  if (!make)
    return NULL;
  pln_status status = pln_mem_grow(a->engine, (void **)&a->vars, &a->cap_vars,
                                   (size_t)a->n_vars + 1, sizeof *a->vars);
  if (status != PLN_OK) {
    pln_arith_fail(a, status);
    return NULL;
  }
  a->vars[a->n_vars] = (pln_var_fact){.var = var};
  a->facts[var].var = ++a->n_vars;
  return &a->vars[a->n_vars - 1];
}

static pln_status check_var(pln_analyzer *a, pln_term var) {
  PLN_TRY(pln_check_term(a, var));
  if (pln_term_kind(a, var) == PLN_VAR)
    return PLN_OK;
  return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                        "arith: only a Var can be bound, not a %s",
                        pln_kind_name(pln_term_kind(a, var)));
}

static pln_status conflict(pln_analyzer *a, pln_term var) {
  pln_slice name = pln_symbol_text(a->engine, pln_at(a, var)->b);
  return pln_diag_error(
      a->engine, PLN_ERR_ARGUMENT, NULL,
      "arith: %.*s is bound to something else already (allow_override)",
      (int)name.size, name.data);
}

static bool same_bound(pln_bound x, pln_bound y) {
  return x.min == y.min && x.max == y.max;
}

static void context_changed(pln_analyzer *a) {
  pln_new_epoch(a);
  a->bound_at = a->epoch;
}

/* The last term is an operand of none: what is known of others does not depend
 * on it, and stays when it is bound. */
static bool has_users(const pln_analyzer *a, pln_term t) {
  return t + 1 < a->n;
}

static void forget_facts(pln_analyzer *a, pln_term t) {
  pln_term_facts *f = &a->facts[t];
  f->bound_at = f->modular_at = f->simple_at = f->canonical_at = 0;
}

static pln_status set_bound(pln_analyzer *a, pln_term var, pln_bound bound,
                            bool override) {
  pln_var_fact *fact = pln_var_fact_of(a, var, true);
  if (!fact)
    return a->status;
  if (fact->bounded && !same_bound(fact->bound, bound) && !override)
    return conflict(a, var);
  fact->bounded = true;
  fact->bound = bound;
  context_changed(a);
  return PLN_OK;
}

static pln_status set_modular(pln_analyzer *a, pln_term var, pln_modular set,
                              bool override) {
  pln_var_fact *fact = pln_var_fact_of(a, var, true);
  if (!fact)
    return a->status;
  if (fact->modular && !override &&
      (fact->set.coeff != set.coeff || fact->set.base != set.base))
    return conflict(a, var);
  fact->modular = true;
  fact->set = set;
  context_changed(a);
  return PLN_OK;
}

static pln_status set_range(pln_analyzer *a, pln_term var, pln_term min,
                            pln_term max, bool override) {
  pln_var_fact *fact = pln_var_fact_of(a, var, true);
  if (!fact)
    return a->status;
  if (fact->ranged && !override && (fact->min != min || fact->max != max))
    return conflict(a, var);
  fact->ranged = true;
  fact->min = min;
  fact->max = max;
  context_changed(a);
  return PLN_OK;
}

static bool has_other_facts(const pln_var_fact *f, const pln_var_fact *g) {
  return (f->value && f->value != g->value) ||
         (f->bounded && !same_bound(f->bound, g->bound)) ||
         (f->modular &&
          (f->set.coeff != g->set.coeff || f->set.base != g->set.base)) ||
         (f->ranged && (f->min != g->min || f->max != g->max));
}

/* All that is known of a variable is that it is `simple`. */
static pln_status set_value(pln_analyzer *a, pln_term var, pln_term simple,
                            bool override, bool used) {
  pln_var_fact *fact = pln_var_fact_of(a, var, true);
  if (!fact || !simple)
    return a->status;
  pln_var_fact all = {.var = var,
                      .value = simple,
                      .bounded = true,
                      .bound = pln_bound_of(a, simple),
                      .modular = true,
                      .set = pln_modular_of(a, simple),
                      .ranged = true,
                      .min = simple,
                      .max = simple};
  PLN_TRY(a->status);
  if (!override && has_other_facts(fact, &all))
    return conflict(a, var);
  *fact = all;
  forget_facts(a, var);
  if (used)
    context_changed(a);
  return PLN_OK;
}

pln_status pln_analyzer_bind(pln_analyzer *a, pln_term var, pln_term value,
                             bool override) {
  PLN_TRY(check_var(a, var));
  PLN_TRY(pln_check_term(a, value));
  bool used = has_users(a, var);
  pln_term simple = pln_simplify_term(a, value, 2);
  if (!simple)
    return a->status;
  if (pln_at(a, simple)->dtype != pln_at(a, var)->dtype)
    simple = pln_fold_cast(a, (pln_dtype)pln_at(a, var)->dtype, simple);
  bool cyclic = simple && used && pln_term_uses(a, simple, var);
  PLN_TRY(a->status);
  if (cyclic)
    return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                          "arith: a Var cannot be bound to a value with "
                          "itself in it");
  return set_value(a, var, simple, override, used);
}

/* A variable that is bound again is not what it was. */
static void forget_value(pln_analyzer *a, pln_term var) {
  pln_var_fact *f = pln_var_fact_of(a, var, false);
  if (!f)
    return;
  f->value = PLN_NO_TERM;
  f->modular = false;
}

pln_status pln_analyzer_bind_range(pln_analyzer *a, pln_term var, pln_term min,
                                   pln_term extent, bool override) {
  PLN_TRY(check_var(a, var));
  PLN_TRY(pln_check_term(a, min));
  PLN_TRY(pln_check_term(a, extent));
  pln_dtype dtype = (pln_dtype)pln_at(a, var)->dtype;
  min = pln_fold_cast(a, dtype, min);
  extent = pln_fold_cast(a, dtype, extent);
  if (pln_is_value(a, extent, 1))
    return pln_analyzer_bind(a, var, min, override);
  if (override)
    forget_value(a, var);
  pln_bound low = pln_bound_of(a, min), n = pln_bound_of(a, extent);
  static const pln_bound minus_one = {-1, -1};
  pln_bound high = pln_bound_add(low, pln_bound_add(n, minus_one));
  pln_bound bound = {low.min, high.max};
  if (high.max < low.min)
    bound.max = low.min;
  pln_term max =
      pln_simplify_term(a, pln_add_const(a, pln_add(a, min, extent), -1), 2);
  PLN_TRY(a->status);
  PLN_TRY(set_bound(a, var, bound, override));
  return set_range(a, var, pln_simplify_term(a, min, 2), max, override);
}

pln_status pln_analyzer_update_bound(pln_analyzer *a, pln_term var, int64_t min,
                                     int64_t max, bool override) {
  PLN_TRY(check_var(a, var));
  if (min > max)
    return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                          "arith: a bound is empty: %lld > %lld",
                          (long long)min, (long long)max);
  pln_bound bound = {min < -PLN_INF ? -PLN_INF : min, max};
  return set_bound(a, var, bound, override);
}

pln_status pln_analyzer_update_modular(pln_analyzer *a, pln_term var,
                                       int64_t coeff, int64_t base,
                                       bool override) {
  PLN_TRY(check_var(a, var));
  return set_modular(a, var, pln_modular_make(coeff, base), override);
}

/* -------------------------------------------------------------- constraints
 */

static bool add_consequence(pln_analyzer *a, pln_consequence c) {
  pln_status status = pln_mem_grow(a->engine, (void **)&a->known, &a->cap_known,
                                   (size_t)a->n_known + 1, sizeof *a->known);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    a->known[a->n_known++] = c;
  return status == PLN_OK;
}

static void decide(pln_analyzer *a, pln_term t, bool holds) {
  if (!t || pln_is_const(a, t))
    return;
  pln_term_facts *f = &a->facts[t];
  if (add_consequence(
          a, (pln_consequence){.term = t, .decides = true, .before = f->known}))
    f->known = holds ? 1 : 2;
}

static void limit(pln_analyzer *a, pln_term t, int64_t min, int64_t max) {
  pln_term_facts *f = &a->facts[t];
  pln_bound bound = {min < -PLN_INF ? -PLN_INF : min, max};
  if (pln_is_const(a, t))
    return;
  if (f->limit)
    bound = pln_bound_meet(bound, a->known[f->limit - 1].bound);
  if (add_consequence(
          a, (pln_consequence){.term = t, .bound = bound, .before = f->limit}))
    f->limit = a->n_known;
}

static void relate(pln_analyzer *a, pln_relation_fact fact) {
  pln_status status =
      pln_mem_grow(a->engine, (void **)&a->relations, &a->cap_relations,
                   (size_t)a->n_relations + 1, sizeof *a->relations);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    a->relations[a->n_relations++] = fact;
}

/* x < y or, with `equal`, x <= y. */
static void know_order(pln_analyzer *a, pln_term x, pln_term y, bool equal) {
  if (!pln_is_integer(a, x) || pln_at(a, x)->lanes > 1)
    return;
  if (pln_is_const(a, y) && (equal || pln_const(a, y) > INT64_MIN))
    limit(a, x, -PLN_INF, pln_const(a, y) - !equal);
  else if (pln_is_const(a, x) && (equal || pln_const(a, x) < INT64_MAX))
    limit(a, y, pln_const(a, x) + !equal, PLN_INF);
  else
    relate(a, (pln_relation_fact){x, y, equal ? 0 : -1, false});
}

static void know_divisible(pln_analyzer *a, pln_term t, int64_t base) {
  const pln_term_node *n = pln_at(a, t);
  if ((n->kind != PLN_PRIM_MOD && n->kind != PLN_PRIM_FLOORMOD) ||
      !pln_is_const(a, n->b) || pln_const(a, n->b) <= 0)
    return;
  pln_divisible d = {n->a, pln_modular_make(pln_const(a, n->b), base)};
  pln_status status =
      pln_mem_grow(a->engine, (void **)&a->divisible, &a->cap_divisible,
                   (size_t)a->n_divisible + 1, sizeof *a->divisible);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    a->divisible[a->n_divisible++] = d;
}

static void know_equal(pln_analyzer *a, pln_term x, pln_term y) {
  if (!pln_is_integer(a, x) || pln_at(a, x)->lanes > 1)
    return;
  if (pln_is_const(a, x)) {
    pln_term z = x;
    x = y;
    y = z;
  }
  if (pln_is_const(a, y)) {
    limit(a, x, pln_const(a, y), pln_const(a, y));
    know_divisible(a, x, pln_const(a, y));
  } else {
    relate(a, (pln_relation_fact){x, y, 0, false});
    relate(a, (pln_relation_fact){y, x, 0, false});
  }
}

/* One condition that is no conjunction. */
static void know(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  decide(a, t, true);
  switch (n.kind) {
  case PLN_PRIM_NOT: decide(a, n.a, false); return;
  case PLN_PRIM_LT:
    decide(a, pln_term_binary(a, PLN_PRIM_LE, n.b, n.a), false);
    know_order(a, n.a, n.b, false);
    return;
  case PLN_PRIM_LE:
    decide(a, pln_term_binary(a, PLN_PRIM_LT, n.b, n.a), false);
    know_order(a, n.a, n.b, true);
    return;
  case PLN_PRIM_GT: know_order(a, n.b, n.a, false); return;
  case PLN_PRIM_GE: know_order(a, n.b, n.a, true); return;
  case PLN_PRIM_EQ:
    decide(a, pln_term_binary(a, PLN_PRIM_NE, n.a, n.b), false);
    know_equal(a, n.a, n.b);
    return;
  case PLN_PRIM_NE:
    decide(a, pln_term_binary(a, PLN_PRIM_EQ, n.a, n.b), false);
    if (pln_is_index(a, n.a))
      relate(a, (pln_relation_fact){n.a, n.b, 0, true});
    return;
  default: decide(a, pln_term_unary(a, PLN_PRIM_NOT, t), false);
  }
}

static bool is_likely(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  return n->kind == PLN_PRIM_CALL && n->n == 1 && (uint32_t)n->u.data != 0 &&
         strcmp(pln_builtin_name((uint32_t)n->u.data), "likely") == 0;
}

/* The parts of a conjunction, left to right. */
static void know_all(pln_analyzer *a, pln_term t) {
  pln_term few[64];
  uint32_t n = 0;
  few[n++] = t;
  while (n > 0 && a->status == PLN_OK) {
    t = few[--n];
    pln_term_node node = *pln_at(a, t);
    if (node.kind == PLN_PRIM_AND && n + 2 <= PLN_COUNT(few)) {
      few[n++] = node.b;
      few[n++] = node.a;
    } else if (is_likely(a, t)) {
      few[n++] = node.a;
    } else {
      know(a, t);
    }
  }
}

uint32_t pln_enter(pln_analyzer *a, pln_term constraint) {
  pln_scope_mark mark = {a->n_known, a->n_divisible, a->n_relations, a->epoch};
  pln_status status =
      pln_mem_grow(a->engine, (void **)&a->scopes, &a->cap_scopes,
                   (size_t)a->n_scopes + 1, sizeof *a->scopes);
  if (status != PLN_OK) {
    pln_arith_fail(a, status);
    return UINT32_MAX;
  }
  pln_term simple = pln_rewrite_term(a, constraint);
  a->scopes[a->n_scopes++] = mark;
  if (!constraint || !simple || pln_is_const(a, simple))
    return a->n_scopes - 1;
  if (simple != constraint)
    know_all(a, constraint);
  know_all(a, simple);
  pln_new_epoch(a);
  return a->n_scopes - 1;
}

static void forget(pln_analyzer *a, const pln_consequence *c) {
  pln_term_facts *f = &a->facts[c->term];
  if (c->decides)
    f->known = (uint8_t)c->before;
  else
    f->limit = c->before;
}

void pln_leave(pln_analyzer *a, uint32_t mark) {
  if (mark >= a->n_scopes)
    return;
  pln_scope_mark m = a->scopes[mark];
  while (a->n_known > m.n_known)
    forget(a, &a->known[--a->n_known]);
  a->n_divisible = m.n_divisible;
  a->n_relations = m.n_relations;
  a->n_scopes = mark;
  a->epoch = m.epoch;
  if (a->bound_at > m.epoch)
    pln_new_epoch(a);
}

pln_status pln_analyzer_enter(pln_analyzer *a, pln_term condition,
                              uint32_t *mark) {
  PLN_TRY(pln_check_bool_term(a, condition));
  *mark = pln_enter(a, condition);
  if (a->status != PLN_OK)
    pln_leave(a, *mark);
  return a->status;
}

void pln_analyzer_leave(pln_analyzer *a, uint32_t mark) {
  pln_leave(a, mark);
}

/* ----------------------------------------------------------- public analyses
 */

pln_term pln_simplify_term(pln_analyzer *a, pln_term t, uint32_t steps) {
  t = pln_canonical_term(a, t);
  for (uint32_t i = 0; i < steps && t && !pln_is_const(a, t); i++)
    t = i % 2 == 0 ? pln_rewrite_term(a, t) : pln_canonical_term(a, t);
  return t;
}

pln_status pln_analyzer_const_int_bound(pln_analyzer *a, pln_term t,
                                        int64_t *min, int64_t *max) {
  PLN_TRY(pln_check_term(a, t));
  pln_bound bound = pln_bound_of(a, t);
  *min = bound.min;
  *max = bound.max;
  return a->status;
}

pln_status pln_analyzer_modular_set(pln_analyzer *a, pln_term t, int64_t *coeff,
                                    int64_t *base) {
  PLN_TRY(pln_check_term(a, t));
  pln_modular set = pln_modular_of(a, t);
  *coeff = set.coeff;
  *base = set.base;
  return a->status;
}

static pln_status give(const pln_analyzer *a, pln_term t, pln_term *out) {
  *out = t;
  return a->status;
}

pln_status pln_analyzer_rewrite_simplify(pln_analyzer *a, pln_term t,
                                         pln_term *out) {
  PLN_TRY(pln_check_term(a, t));
  return give(a, pln_and_of_ors(a, pln_rewrite_term(a, t)), out);
}

pln_status pln_analyzer_canonical_simplify(pln_analyzer *a, pln_term t,
                                           pln_term *out) {
  PLN_TRY(pln_check_term(a, t));
  return give(a, pln_canonical_term(a, t), out);
}

pln_status pln_analyzer_simplify(pln_analyzer *a, pln_term t, uint32_t steps,
                                 pln_term *out) {
  PLN_TRY(pln_check_term(a, t));
  return give(a, pln_and_of_ors(a, pln_simplify_term(a, t, steps)), out);
}

/* An ordering of integers: the sign of the difference of its sides. */
static bool prove_by_difference(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (n.kind < PLN_PRIM_EQ || n.kind > PLN_PRIM_GE || !pln_is_index(a, n.a))
    return false;
  pln_term diff = pln_simplify_term(a, pln_sub(a, n.a, n.b), 2);
  pln_term zero = pln_const_like(a, diff, 0);
  pln_term again = pln_fold(a, (pln_kind)n.kind, diff, zero);
  return pln_is_value(a, pln_rewrite_term(a, again), 1);
}

/* x < y, x <= y, x > y, x >= y: the least value of the difference, when bound
 * variables run over their symbolic ranges. */
static bool prove_by_set(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  bool less = n.kind == PLN_PRIM_LT || n.kind == PLN_PRIM_LE;
  bool strict = n.kind == PLN_PRIM_LT || n.kind == PLN_PRIM_GT;
  if (n.kind < PLN_PRIM_LT || n.kind > PLN_PRIM_GE || !pln_is_index(a, n.a))
    return false;
  pln_term diff = less ? pln_sub(a, n.b, n.a) : pln_sub(a, n.a, n.b);
  diff = pln_simplify_term(a, diff, 2);
  pln_interval set = pln_interval_of(a, diff, 0, NULL, NULL, true);
  return !pln_is_infinite(set.min) &&
         pln_proves_ge(a, pln_simplify_term(a, set.min, 2), strict);
}

bool pln_prove(pln_analyzer *a, pln_term t, uint32_t strength) {
  pln_term simple = pln_simplify_term(a, t, 2);
  if (!simple || pln_is_const(a, simple))
    return simple && pln_const(a, simple) != 0;
  return prove_by_difference(a, t) || (strength > 0 && prove_by_set(a, t));
}

pln_status pln_analyzer_can_prove(pln_analyzer *a, pln_term condition,
                                  uint32_t strength, bool *proved) {
  PLN_TRY(pln_check_term(a, condition));
  *proved = pln_prove(a, condition, strength);
  return a->status;
}

pln_status pln_analyzer_can_prove_equal(pln_analyzer *a, pln_term x, pln_term y,
                                        bool *proved) {
  PLN_TRY(pln_check_term(a, x));
  PLN_TRY(pln_check_term(a, y));
  *proved = x == y;
  if (!*proved && pln_at(a, x)->dtype != pln_at(a, y)->dtype)
    return PLN_OK;
  if (!*proved)
    *proved = pln_prove(a, pln_fold(a, PLN_PRIM_EQ, x, y), 0);
  return a->status;
}
