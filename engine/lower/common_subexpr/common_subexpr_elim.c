/* common_subexpr_elim.c: tir.CommonSubexprElimTIR: binds what is computed more
 * than once to a variable, as far out as its own variables allow.
 *
 * Run by the executor. The largest expressions come first; loads and calls are
 * left alone. The body of a loop is a part of its own: it may run no round. Of
 * a branch only what both of its sides compute counts outside of it.
 *
 *     A[i * 8 + j] = A[i * 8 + j] + 1
 *         =>   cse_var_1: T.int32 = i * 8 + j; A[cse_var_1] = A[cse_var_1] + 1
 *
 * Expressions are terms of an analyzer: equal ones are one number. An
 * expression in its present form has variables in the place of what was bound
 * before.
 *
 * Semantics: TVM's tir.CommonSubexprElimTIR without identify_equiv_terms. */

#include <stdio.h>

#include "lower/common_subexpr/computation.h"

/* A variable and what it stands for. */
typedef struct binding {
  pln_term var, value; /* value: in its present form */
  pln_ref ref;         /* the variable, of the builder; PLN_NONE: not ours */
} binding;

/* The body of a statement that is open. */
typedef struct open_part {
  pln_ref stmt;
  uint32_t bindings; /* how many there were */
  uint32_t vars;
} open_part;

typedef struct eliminator {
  const pln_graph *g;
  pln_analyzer *a;
  pln_computation_kinds kinds;
  binding *bindings;
  uint32_t n_bindings, cap_bindings;
  pln_term_list vars; /* that are defined here */
  bool *defined;      /* by term */
  uint32_t cap_defined;
  pln_term *image; /* by term: its present form, if the stamp fits */
  uint32_t *stamp;
  uint32_t cap_image, cap_stamp, now;
  open_part *parts;
  uint32_t n_parts, cap_parts;
  uint32_t n_named;
  uint32_t first;    /* the first binding of the part or expression */
  uint32_t n_placed; /* the bindings before this round */
} eliminator;

/* ------------------------------------------------------------- present forms
 */

/* The variable that is bound to a term, the latest first. */
static pln_term bound_var(const eliminator *x, pln_term t) {
  for (uint32_t i = x->n_bindings; i-- > 0;)
    if (x->bindings[i].value == t)
      return x->bindings[i].var;
  return PLN_NO_TERM;
}

static pln_status make_room(eliminator *x) {
  uint32_t old = x->cap_stamp;
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->image, &x->cap_image, x->a->n,
                       sizeof *x->image));
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->stamp, &x->cap_stamp, x->a->n,
                       sizeof *x->stamp));
  if (x->cap_stamp > old)
    memset(x->stamp + old, 0, (x->cap_stamp - old) * sizeof *x->stamp);
  return PLN_OK;
}

static bool is_closed(const pln_analyzer *a, pln_term t) {
  pln_kind kind = pln_term_kind(a, t);
  return kind == PLN_BUFFER || kind == PLN_PRIM_LET || kind == PLN_REDUCE;
}

static pln_term rebuilt(eliminator *x, pln_term t) {
  pln_term few[8] = {0}, *operands = few;
  uint32_t n = pln_at(x->a, t)->n;
  size_t size = n * sizeof *operands;
  bool same = true;
  if (n == 0 || is_closed(x->a, t))
    return t;
  if (n > PLN_COUNT(few) && !(operands = pln_mem_new(x->a->engine, size)))
    return pln_arith_fail(x->a, pln_nomem(x->a->engine));
  for (uint32_t i = 0; i < n; i++) {
    pln_term operand = pln_term_operand(x->a, t, i);
    operands[i] = x->image[operand];
    same &= operands[i] == operand;
  }
  pln_term out = same ? t : pln_term_with(x->a, t, operands);
  if (operands != few)
    pln_mem_free(x->a->engine, operands, size);
  return out;
}

/* The present form of a term; the bindings changed since the last call if `now`
 * did. */
static pln_status present(eliminator *x, pln_term t, pln_term *out) {
  pln_term_list order;
  *out = t;
  if (x->n_bindings == 0)
    return PLN_OK;
  if (!pln_term_order(x->a, t, NULL, &order))
    return x->a->status;
  pln_status status = make_room(x);
  for (uint32_t i = 0; status == PLN_OK && i < order.n; i++) {
    pln_term at = order.items[i], form;
    if (x->stamp[at] == x->now + 1)
      continue;
    form = rebuilt(x, at);
    pln_term var = form ? bound_var(x, form) : PLN_NO_TERM;
    status = x->a->status;
    if (status == PLN_OK)
      status = make_room(x);
    if (status != PLN_OK)
      continue;
    x->image[at] = var ? var : form;
    x->stamp[at] = x->now + 1;
  }
  if (status == PLN_OK)
    *out = x->image[t];
  pln_term_list_free(x->a, &order);
  return status;
}

/* ------------------------------------------------------------------ counting
 */

static pln_status count_operands(eliminator *x, pln_ref stmt,
                                 pln_computation_table *table) {
  const pln_node *n = &x->g->nodes[stmt];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operands(x->g, n)[i];
    pln_term term;
    if (!pln_is_prim(&x->g->nodes[operand]) ||
        x->g->nodes[operand].kind == PLN_BUFFER)
      continue;
    PLN_TRY(pln_analyzer_import(x->a, x->g, operand, &term));
    PLN_TRY(present(x, term, &term));
    PLN_TRY(pln_computations_of(x->a, &x->kinds, term, true, 1, table));
  }
  return PLN_OK;
}

/* The tables of branches that are being counted: one per open branch. */
typedef struct branch_stack {
  pln_computation_table *tables;
  uint32_t n, cap;
} branch_stack;

static pln_status push_branch(eliminator *x, branch_stack *s) {
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&s->tables, &s->cap,
                       (size_t)s->n + 1, sizeof *s->tables));
  s->tables[s->n++] = (pln_computation_table){0};
  return PLN_OK;
}

/* What both sides of a branch compute counts outside. */
static pln_status join_branches(eliminator *x, branch_stack *s,
                                uint32_t n_sides) {
  pln_status status = PLN_OK;
  pln_computation_table *then = &s->tables[s->n - n_sides], *other = then + 1,
                        *out = then - 1;
  for (uint32_t i = 0; n_sides == 2 && status == PLN_OK && i < then->n; i++) {
    uint32_t count = pln_computation_count(other, then->rows[i].term);
    if (count)
      status = pln_computation_add(x->a, out, then->rows[i].term,
                                   then->rows[i].count + count);
  }
  for (uint32_t i = 0; i < n_sides; i++)
    pln_computation_free(x->a->engine, &s->tables[--s->n]);
  return status;
}

static bool is_barrier(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_FOR || g->nodes[stmt].kind == PLN_WHILE;
}

static uint32_t n_sides(const pln_graph *g, pln_ref branch) {
  return g->scopes[g->nodes[branch].data].next == PLN_NONE ? 1 : 2;
}

static pln_status count_node(eliminator *x, branch_stack *s, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (!pln_is_stmt(n))
    return PLN_OK;
  /* A condition is a part of its own. */
  if (n->kind == PLN_IF_THEN_ELSE)
    return join_branches(x, s, n_sides(x->g, ref));
  return count_operands(x, ref, &s->tables[s->n - 1]);
}

/* Counts the computations of a scope into the lowest table of the stack. Rows
 * of scopes are sorted by begin. */
static pln_status count_scope(eliminator *x, pln_scope scope, branch_stack *s) {
  const pln_graph *g = x->g;
  pln_scope next = scope + 1;
  for (pln_ref ref = g->scopes[scope].begin; ref < g->scopes[scope].end;
       ref++) {
    for (; next < g->n_scopes && g->scopes[next].begin == ref; next++) {
      pln_ref owner = g->scopes[next].owner;
      if (is_barrier(g, owner)) {
        ref = owner;
        while (next + 1 < g->n_scopes && g->scopes[next + 1].begin < owner)
          next++;
      } else if (g->nodes[owner].kind == PLN_IF_THEN_ELSE) {
        PLN_TRY(push_branch(x, s));
      }
    }
    PLN_TRY(count_node(x, s, ref));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- binding
 */

static bool is_defined(const eliminator *x, pln_term var) {
  return var < x->cap_defined && x->defined[var];
}

static pln_status define_var(eliminator *x, pln_term var) {
  uint32_t old = x->cap_defined;
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->defined, &x->cap_defined,
                       x->a->n, sizeof *x->defined));
  if (x->cap_defined > old)
    memset(x->defined + old, 0, (x->cap_defined - old) * sizeof *x->defined);
  if (!pln_term_list_push(x->a, &x->vars, var))
    return x->a->status;
  x->defined[var] = true;
  return PLN_OK;
}

/* True if all variables of the term are defined here. */
static pln_status has_defined_vars(eliminator *x, pln_term t, bool *out) {
  pln_term_list order;
  *out = true;
  if (!pln_term_order(x->a, t, NULL, &order))
    return x->a->status;
  for (uint32_t i = 0; i < order.n && *out; i++)
    *out = pln_term_kind(x->a, order.items[i]) != PLN_VAR ||
           is_defined(x, order.items[i]);
  pln_term_list_free(x->a, &order);
  return PLN_OK;
}

static pln_status push_binding(eliminator *x, binding b) {
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->bindings, &x->cap_bindings,
                       (size_t)x->n_bindings + 1, sizeof *x->bindings));
  x->bindings[x->n_bindings++] = b;
  x->now++;
  return PLN_OK;
}

/* Where a value goes among the bindings of the part, which are in order from
 * the innermost: inside of those whose variables it uses. What contains the
 * value is further in, as it uses these variables, too. */
static pln_status place_of(eliminator *x, pln_term t, uint32_t *out) {
  pln_term_list order;
  *out = x->n_bindings;
  if (!pln_term_order(x->a, t, NULL, &order))
    return x->a->status;
  for (uint32_t k = 0; k < order.n; k++)
    for (uint32_t i = x->first;
         i < *out && pln_term_kind(x->a, order.items[k]) == PLN_VAR; i++)
      if (x->bindings[i].var == order.items[k] &&
          x->bindings[i].ref != PLN_NONE)
        *out = i;
  pln_term_list_free(x->a, &order);
  return PLN_OK;
}

/* Moves the last binding to its place. */
static pln_status place_last(eliminator *x) {
  uint32_t at, n = x->n_bindings - 1;
  binding last = x->bindings[n];
  x->n_bindings = n;
  pln_status status = place_of(x, last.value, &at);
  x->n_bindings = n + 1;
  PLN_TRY(status);
  memmove(x->bindings + at + 1, x->bindings + at,
          (n - at) * sizeof *x->bindings);
  x->bindings[at] = last;
  return PLN_OK;
}

static pln_status bind_term(eliminator *x, pln_stmt_rewrite *s, pln_term t) {
  char text[32];
  binding b = {.value = t};
  pln_symbol name;
  pln_type type;
  int size = snprintf(text, sizeof text, "cse_var_%u", ++x->n_named);
  PLN_TRY(
      pln_symbol_intern(x->a->engine, (pln_slice){text, (size_t)size}, &name));
  PLN_TRY(pln_type_prim(x->a->engine, (pln_dtype)pln_at(x->a, t)->dtype,
                        pln_at(x->a, t)->lanes, &type));
  PLN_TRY(pln_build_var(pln_stmt_builder(s), name, type, 0, &b.ref));
  PLN_TRY(pln_analyzer_import_built(x->a, pln_stmt_builder(s), b.ref, &b.var));
  PLN_TRY(define_var(x, b.var));
  PLN_TRY(push_binding(x, b));
  return x->n_placed > x->first ? place_last(x) : PLN_OK;
}

/* ----------------------------------------------------------------- one part */

/* Inserts behind all that are as large; rows before `from` are done. */
static pln_status insert_sorted(eliminator *x, pln_computation_table *t,
                                uint32_t from) {
  pln_computation row = t->rows[t->n - 1];
  uint32_t size = pln_at(x->a, row.term)->size, at = t->n - 1;
  while (at > from && pln_at(x->a, t->rows[at - 1].term)->size < size) {
    t->rows[at] = t->rows[at - 1];
    t->row_of[t->rows[at].term] = at + 1;
    at--;
  }
  t->rows[at] = row;
  t->row_of[row.term] = at + 1;
  return PLN_OK;
}

static pln_status sort_table(eliminator *x, pln_computation_table *t) {
  uint32_t n = t->n;
  for (t->n = 0; t->n < n;) {
    t->n++;
    PLN_TRY(insert_sorted(x, t, 0));
  }
  return PLN_OK;
}

/* What is not bound here is taken apart: its operands may be. */
static pln_status take_apart(eliminator *x, pln_computation_table *t,
                             uint32_t i) {
  pln_computation_table parts = {0};
  pln_status status = pln_computations_of(x->a, &x->kinds, t->rows[i].term,
                                          false, t->rows[i].count, &parts);
  for (uint32_t j = 0; status == PLN_OK && j < parts.n; j++) {
    uint32_t n = t->n;
    status =
        pln_computation_add(x->a, t, parts.rows[j].term, parts.rows[j].count);
    if (status == PLN_OK && t->n > n)
      status = insert_sorted(x, t, i + 1);
  }
  pln_computation_free(x->a->engine, &parts);
  return status;
}

static pln_status bind_rows(eliminator *x, pln_stmt_rewrite *s,
                            pln_computation_table *t, bool *bound) {
  PLN_TRY(sort_table(x, t));
  for (uint32_t i = 0; i < t->n; i++) {
    bool defined = false;
    if (t->rows[i].count >= 2)
      PLN_TRY(has_defined_vars(x, t->rows[i].term, &defined));
    if (defined)
      PLN_TRY(bind_term(x, s, t->rows[i].term));
    else
      PLN_TRY(take_apart(x, t, i));
    *bound |= defined;
  }
  return PLN_OK;
}

/* Values of the part's own variables, the latest (outermost) first, in terms of
 * those further out. A value does not contain what is bound further in. */
static pln_status update_values(eliminator *x, uint32_t first) {
  for (uint32_t i = x->n_bindings; i-- > first;) {
    pln_term value = x->bindings[i].value, form;
    x->bindings[i].value = PLN_NO_TERM; /* not itself */
    x->now++;
    PLN_TRY(present(x, value, &form));
    x->bindings[i].value = form;
  }
  x->now++;
  return PLN_OK;
}

static pln_status count_values(eliminator *x, uint32_t first,
                               pln_computation_table *table) {
  for (uint32_t i = first; i < x->n_bindings; i++)
    PLN_TRY(pln_computations_of(x->a, &x->kinds, x->bindings[i].value, true, 1,
                                table));
  return PLN_OK;
}

static void free_branches(eliminator *x, branch_stack *s) {
  while (s->n > 0)
    pln_computation_free(x->a->engine, &s->tables[--s->n]);
  pln_mem_free(x->a->engine, s->tables, s->cap * sizeof *s->tables);
}

/* One round over a part: *bound if a variable was made. */
static pln_status bind_round(eliminator *x, pln_stmt_rewrite *s,
                             pln_scope scope, uint32_t first, bool *bound) {
  branch_stack stack = {0};
  pln_status status = push_branch(x, &stack);
  x->first = first;
  x->n_placed = x->n_bindings;
  if (status == PLN_OK)
    status = count_scope(x, scope, &stack);
  if (status == PLN_OK)
    status = count_values(x, first, &stack.tables[0]);
  if (status == PLN_OK)
    status = bind_rows(x, s, &stack.tables[0], bound);
  free_branches(x, &stack);
  return status;
}

static pln_status bind_part(eliminator *x, pln_stmt_rewrite *s,
                            pln_scope scope) {
  uint32_t first = x->n_bindings;
  bool bound = true;
  while (bound) {
    bound = false;
    PLN_TRY(bind_round(x, s, scope, first, &bound));
    if (bound)
      PLN_TRY(update_values(x, first));
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- callbacks */

static bool is_part(const pln_graph *g, pln_ref stmt) {
  pln_kind kind = (pln_kind)g->nodes[stmt].kind;
  return kind == PLN_PRIM_FUNC || kind == PLN_FOR || kind == PLN_WHILE ||
         kind == PLN_IF_THEN_ELSE || kind == PLN_LET_STMT;
}

/* The variables that a body defines. */
static pln_status define_params(eliminator *x, pln_ref stmt, pln_scope scope) {
  const pln_graph *g = x->g;
  for (uint32_t i = 0; i < g->scopes[scope].n_params; i++) {
    pln_term var, value;
    PLN_TRY(pln_analyzer_import(x->a, g, g->scopes[scope].begin + i, &var));
    PLN_TRY(define_var(x, var));
    if (g->nodes[stmt].kind != PLN_LET_STMT)
      continue;
    bool computes;
    PLN_TRY(pln_analyzer_import(x->a, g, pln_operand(g, stmt, 0), &value));
    PLN_TRY(present(x, value, &value));
    PLN_TRY(pln_is_computation(x->a, &x->kinds, value, &computes));
    if (computes)
      PLN_TRY(push_binding(
          x, (binding){.var = var, .value = value, .ref = PLN_NONE}));
  }
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  eliminator *x = ud;
  pln_scope scope = x->g->nodes[stmt].data;
  (void)skip;
  if (!is_part(x->g, stmt))
    return PLN_OK;
  if (k == 1)
    scope = x->g->scopes[scope].next;
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->parts, &x->cap_parts,
                       (size_t)x->n_parts + 1, sizeof *x->parts));
  x->parts[x->n_parts++] =
      (open_part){.stmt = stmt, .bindings = x->n_bindings, .vars = x->vars.n};
  PLN_TRY(define_params(x, stmt, scope));
  return bind_part(x, s, scope);
}

/* The body in the part's variables, the latest outermost. */
static pln_status wrap_body(eliminator *x, pln_stmt_rewrite *s, uint32_t first,
                            pln_ref *body) {
  for (uint32_t i = first; i < x->n_bindings; i++) {
    pln_ref value;
    if (x->bindings[i].ref == PLN_NONE)
      continue;
    PLN_TRY(pln_analyzer_export(x->a, pln_stmt_builder(s), x->bindings[i].value,
                                &value));
    pln_prim spec = {.kind = PLN_LET_STMT, .n = 1, .operands = &value};
    pln_body inner = {
        .n_params = 1, .params = &x->bindings[i].ref, .stmt = *body};
    PLN_TRY(
        pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &inner, body));
  }
  return PLN_OK;
}

/* Forgets the bindings and variables of a part. */
static void forget_part(eliminator *x, uint32_t bindings, uint32_t vars) {
  x->n_bindings = bindings;
  x->now++;
  while (x->vars.n > vars)
    x->defined[x->vars.items[--x->vars.n]] = false;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  eliminator *x = ud;
  pln_ref rest = *body;
  (void)k;
  (void)again;
  if (!is_part(x->g, stmt))
    return PLN_OK;
  open_part part = x->parts[--x->n_parts];
  bool function = x->g->nodes[stmt].kind == PLN_PRIM_FUNC;
  if (function)
    PLN_TRY(pln_stmt_split_binds(s, *body, &rest));
  pln_ref before = rest;
  PLN_TRY(wrap_body(x, s, part.bindings, &rest));
  if (rest != before)
    PLN_TRY(function ? pln_stmt_join_binds(s, *body, rest, body) : PLN_OK);
  if (rest != before && !function)
    *body = rest;
  forget_part(x, part.bindings, part.vars);
  return PLN_OK;
}

/* Binds what an expression computes more than once. */
static pln_status bind_expr(eliminator *x, pln_stmt_rewrite *s,
                            pln_term *form) {
  uint32_t first = x->n_bindings;
  bool bound = true;
  while (bound) {
    pln_computation_table table = {0};
    bound = false;
    x->first = first;
    x->n_placed = x->n_bindings;
    pln_status status =
        pln_computations_of(x->a, &x->kinds, *form, true, 1, &table);
    if (status == PLN_OK)
      status = count_values(x, first, &table);
    if (status == PLN_OK)
      status = bind_rows(x, s, &table, &bound);
    pln_computation_free(x->a->engine, &table);
    PLN_TRY(status);
    if (bound)
      PLN_TRY(update_values(x, first));
    PLN_TRY(present(x, *form, form));
  }
  return PLN_OK;
}

/* The expression in the part's variables, as Lets. */
static pln_status wrap_expr(eliminator *x, pln_stmt_rewrite *s, uint32_t first,
                            pln_ref *node) {
  for (uint32_t i = first; i < x->n_bindings; i++) {
    pln_ref operands[3] = {x->bindings[i].ref, PLN_NONE, *node};
    PLN_TRY(pln_analyzer_export(x->a, pln_stmt_builder(s), x->bindings[i].value,
                                &operands[1]));
    pln_prim spec = {.kind = PLN_PRIM_LET, .n = 3, .operands = operands};
    PLN_TRY(pln_build_prim(pln_stmt_builder(s), &spec, node));
  }
  return PLN_OK;
}

static pln_status replace_condition(eliminator *x, pln_stmt_rewrite *s,
                                    pln_term term, pln_ref *node) {
  uint32_t first = x->n_bindings, vars = x->vars.n;
  pln_term form = term;
  PLN_TRY(present(x, term, &form));
  PLN_TRY(bind_expr(x, s, &form));
  if (form != term)
    PLN_TRY(pln_analyzer_export(x->a, pln_stmt_builder(s), form, node));
  PLN_TRY(wrap_expr(x, s, first, node));
  forget_part(x, first, vars);
  return PLN_OK;
}

static pln_status replace_operand(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                  uint32_t i, pln_ref *node) {
  eliminator *x = ud;
  pln_ref old = pln_operand(x->g, stmt, i);
  pln_term term, form;
  if (!pln_is_prim(&x->g->nodes[old]) || x->g->nodes[old].kind == PLN_BUFFER)
    return PLN_OK;
  PLN_TRY(pln_analyzer_import(x->a, x->g, old, &term));
  if (x->g->nodes[stmt].kind == PLN_IF_THEN_ELSE)
    return replace_condition(x, s, term, node);
  PLN_TRY(present(x, term, &form));
  return form == term
             ? PLN_OK
             : pln_analyzer_export(x->a, pln_stmt_builder(s), form, node);
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status eliminate(pln_pass_run *run) {
  eliminator x = {.g = pln_run_function(run)};
  pln_engine *e = pln_run_engine(run);
  pln_stmt_mutator mutator = {.ud = &x,
                              .operand = replace_operand,
                              .enter_body = enter_body,
                              .leave_body = leave_body};
  PLN_TRY(pln_analyzer_new(e, &x.a));
  pln_status status = pln_lower_function(run, &mutator);
  pln_mem_free(e, x.kinds.kind, x.kinds.cap * sizeof *x.kinds.kind);
  pln_mem_free(e, x.bindings, x.cap_bindings * sizeof *x.bindings);
  pln_mem_free(e, x.defined, x.cap_defined * sizeof *x.defined);
  pln_mem_free(e, x.image, x.cap_image * sizeof *x.image);
  pln_mem_free(e, x.stamp, x.cap_stamp * sizeof *x.stamp);
  pln_mem_free(e, x.parts, x.cap_parts * sizeof *x.parts);
  pln_term_list_free(x.a, &x.vars);
  pln_analyzer_free(x.a);
  return status;
}

pln_status pln_pass_tir_common_subexpr_elim(pln_pass_run *run) {
  if (!pln_run_int(run, "enable_cse_tir"))
    return PLN_OK;
  if (pln_run_int(run, "identify_equiv_terms"))
    return pln_diag_error(pln_run_engine(run), PLN_ERR_ARGUMENT, NULL,
                          "tir.CommonSubexprElimTIR: terms that are equal by "
                          "arithmetic are not identified: "
                          "identify_equiv_terms must be false");
  return eliminate(run);
}
