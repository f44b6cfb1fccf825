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
 * Semantics: TVM's tir.CommonSubexprElimTIR. With identify_equiv_terms
 * expressions that are equal by arithmetic get one form first
 * (equivalent_terms.c). */

#include <stdio.h>

#include "lower/common_subexpr/bindings.h"
#include "lower/common_subexpr/computation.h"
#include "lower/common_subexpr/equivalent_terms.h"
#include "lower/common_subexpr/let_uses.h"

/* The body of a statement that is open. */
typedef struct open_part {
  pln_ref stmt;
  uint32_t bindings; /* how many there were */
  uint32_t vars;
  uint32_t log;
  bool repeated;
} open_part;

typedef struct eliminator {
  const pln_graph *g;
  pln_analyzer *a;
  pln_computation_kinds kinds;
  pln_cse_bindings bindings;
  pln_term_list vars; /* that are defined here */
  bool *defined;      /* by term: variables; others, if they are marked */
  uint32_t cap_defined;
  pln_term_marks defined_known;
  open_part *parts;
  uint32_t n_parts, cap_parts;
  pln_let_uses uses;
  /* By scope: what a side of a branch computes, and 1 + how long the log was
   * when that was known; 0: it is not. */
  pln_computation_table *sides;
  uint32_t *side_known;
  pln_places *log; /* for each binding: where its value was */
  uint32_t n_log, cap_log;
  pln_computation *counted; /* what a part consists of (count_again) */
  uint32_t n_counted, cap_counted;
  pln_ref mapped; /* the statement whose Buffers have images (map_buffers) */
  bool repeated;  /* a variable replaces its value in the present part */
  uint32_t n_named;
  uint32_t first;    /* the first binding of the part or expression */
  uint32_t n_placed; /* the bindings before this round */
} eliminator;

/* ------------------------------------------------------------------ counting
 */

static pln_status count_operands(eliminator *x, pln_ref stmt,
                                 pln_computation_table *table) {
  const pln_node *n = &x->g->nodes[stmt];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operands(x->g, n)[i];
    pln_term term;
    if (!pln_is_counted_operand(x->g, operand))
      continue;
    PLN_TRY(pln_cse_present(&x->bindings, x->uses.term[operand], &term));
    PLN_TRY(pln_computations_of(x->a, &x->kinds,
                                (pln_computation){term, 1, UINT32_MAX, 0}, true,
                                table));
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

static void keep_side(eliminator *x, pln_scope side,
                      pln_computation_table table) {
  pln_computation_free(x->a->engine, &x->sides[side]);
  x->sides[side] = table;
  x->side_known[side] = x->n_log + 1;
}

/* What a binding does not replace in a side stays known. What the side `part`
 * computes was known after a side in it. */
static bool is_known(const eliminator *x, pln_scope side, pln_scope part) {
  pln_ref begin = x->g->scopes[side].begin, end = x->g->scopes[side].end;
  uint32_t i = x->side_known[side];
  if (!i)
    return false;
  if (i < x->side_known[part])
    i = x->side_known[part];
  for (i--; i < x->n_log; i++)
    if (x->log[i].last && x->log[i].last >= begin && x->log[i].first < end)
      return false;
  return true;
}

/* Pushes what the side of a branch computes, if it is known with the present
 * bindings. */
static pln_status push_known_side(eliminator *x, branch_stack *s,
                                  pln_scope side, pln_scope part, bool *known) {
  *known = is_known(x, side, part);
  if (!*known)
    return PLN_OK;
  PLN_TRY(push_branch(x, s));
  s->tables[s->n - 1] = x->sides[side];
  x->sides[side] = (pln_computation_table){0};
  x->side_known[side] = 0;
  return PLN_OK;
}

/* What both sides of a branch compute counts outside. */
static pln_status join_sides(eliminator *x, const pln_computation_table *then,
                             const pln_computation_table *other,
                             pln_computation_table *out, bool outermost) {
  for (uint32_t i = 0; i < then->n; i++) {
    pln_computation row = then->rows[i];
    uint32_t count = pln_computation_count(other, &row);
    row.count += count;
    row.outer = outermost ? 0 : row.outer;
    if (count)
      PLN_TRY(pln_computation_add(x->a, out, row));
  }
  return PLN_OK;
}

/* What the condition and a side compute counts outside, too; *out has what both
 * sides compute. */
static pln_status join_condition(eliminator *x,
                                 const pln_computation_table *condition,
                                 const pln_computation_table *then,
                                 pln_computation_table *out) {
  for (uint32_t i = 0; i < condition->n; i++) {
    pln_computation row = condition->rows[i];
    uint32_t p = pln_computation_count(then, &row),
             q = pln_computation_count(then + 1, &row);
    if (!p && !q)
      continue;
    row.count += p && q ? 0 : p + q;
    PLN_TRY(pln_computation_add(x->a, out, row));
  }
  return PLN_OK;
}

static pln_status join_all(eliminator *x, pln_ref branch,
                           const pln_computation_table *then,
                           pln_computation_table *out) {
  pln_computation_table condition = {0};
  PLN_TRY(join_sides(x, then, then + 1, out, true));
  pln_status status = count_operands(x, branch, &condition);
  if (status == PLN_OK)
    status = join_condition(x, &condition, then, out);
  pln_computation_free(x->a->engine, &condition);
  return status;
}

static pln_status join_branches(eliminator *x, branch_stack *s,
                                pln_ref branch) {
  pln_computation_table *then = &s->tables[s->n - 2];
  pln_status status = join_all(x, branch, then, then - 1);
  pln_scope side = x->g->nodes[branch].data;
  keep_side(x, x->g->scopes[side].next, s->tables[--s->n]);
  keep_side(x, side, s->tables[--s->n]);
  return status;
}

/* A loop may run no round, and a branch without an other side may not be taken:
 * what is inside counts nowhere else. */
static bool is_barrier(const pln_graph *g, pln_ref stmt) {
  pln_kind kind = (pln_kind)g->nodes[stmt].kind;
  return kind == PLN_FOR || kind == PLN_WHILE ||
         (kind == PLN_IF_THEN_ELSE && pln_branch_sides(g, stmt) == 1);
}

static pln_status count_node(eliminator *x, branch_stack *s, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (!pln_is_stmt(n))
    return PLN_OK;
  /* A condition is a part of its own, but for what a side computes too. */
  if (n->kind == PLN_IF_THEN_ELSE)
    return pln_branch_sides(x->g, ref) == 2 ? join_branches(x, s, ref) : PLN_OK;
  return count_operands(x, ref, &s->tables[s->n - 1]);
}

/* Counts the computations of a scope into the lowest table of the stack. */
static pln_status count_scope(eliminator *x, pln_scope scope, branch_stack *s) {
  const pln_graph *g = x->g;
  pln_scope next = scope + 1;
  for (pln_ref ref = g->scopes[scope].begin; ref < g->scopes[scope].end;
       ref++) {
    for (; next < g->n_scopes && g->scopes[next].begin == ref; next++) {
      pln_ref owner = g->scopes[next].owner;
      if (is_barrier(g, owner)) {
        ref = owner;
        next = pln_graph_scope_from(g, next + 1, owner) - 1;
      } else if (g->nodes[owner].kind == PLN_IF_THEN_ELSE) {
        bool known;
        PLN_TRY(push_known_side(x, s, next, x->uses.part[scope], &known));
        if (known) {
          ref = g->scopes[next].end;
          next = pln_graph_scope_from(g, next + 1, ref) - 1;
        } else {
          PLN_TRY(push_branch(x, s));
        }
      }
    }
    PLN_TRY(count_node(x, s, ref));
  }
  return PLN_OK;
}

/* -------------------------------------------------- counting behind a LetStmt
 */

/* A branch around uses of a variable that is being counted: its sides have the
 * tables `then` and `then` + 1, what both compute goes to the table `out`. */
typedef struct open_branch {
  pln_ref branch;
  uint32_t out, then;
} open_branch;

/* The uses of the variable of a LetStmt, in order. Only branches with uses in
 * both of their sides are opened: there are fewer than uses. */
typedef struct let_count {
  eliminator *x;
  branch_stack *s;
  pln_scope part; /* of the LetStmt */
  open_branch *open;
  uint32_t n_open, cap_open;
  pln_scope *path; /* sides to be opened, from the innermost */
  uint32_t n_path, cap_path;
} let_count;

static pln_status close_branch(let_count *c) {
  open_branch top = c->open[--c->n_open];
  pln_computation_table *tables = c->s->tables;
  pln_status status = join_sides(c->x, &tables[top.then], &tables[top.then + 1],
                                 &tables[top.out], top.out == 0);
  while (c->s->n > top.then)
    pln_computation_free(c->x->a->engine, &tables[--c->s->n]);
  return status;
}

/* The table of a side of the innermost open branch. */
static uint32_t table_of_side(const let_count *c, pln_scope side) {
  if (c->n_open == 0)
    return 0;
  open_branch top = c->open[c->n_open - 1];
  return top.then + (c->x->g->nodes[top.branch].data != side);
}

static pln_status open_side(let_count *c, pln_scope side, uint32_t *table) {
  PLN_TRY(pln_mem_grow(c->x->a->engine, (void **)&c->open, &c->cap_open,
                       (size_t)c->n_open + 1, sizeof *c->open));
  c->open[c->n_open++] =
      (open_branch){c->x->g->scopes[side].owner, *table, c->s->n};
  PLN_TRY(push_branch(c->x, c->s));
  PLN_TRY(push_branch(c->x, c->s));
  *table = table_of_side(c, side);
  return PLN_OK;
}

/* True if what the part computes counts outside of it: it is a side of a branch
 * whose other side uses the variable, too. */
static bool may_join(const let_count *c, pln_scope part) {
  const pln_graph *g = c->x->g;
  pln_ref owner = g->scopes[part].owner;
  if (part == 0 || g->nodes[owner].kind != PLN_IF_THEN_ELSE ||
      pln_branch_sides(g, owner) == 1)
    return false;
  pln_scope then = g->nodes[owner].data;
  return pln_let_is_used(&c->x->uses, c->x->kinds.only,
                         part == then ? g->scopes[then].next : then);
}

/* The sides from that of a statement to the innermost open one; *last: the part
 * where this ends. */
static pln_status find_path(let_count *c, pln_ref stmt, pln_scope *last,
                            bool *found) {
  const pln_let_uses *u = &c->x->uses;
  const pln_graph *g = c->x->g;
  pln_ref branch = c->n_open ? c->open[c->n_open - 1].branch : PLN_NONE;
  c->n_path = 0;
  *last = u->part[u->scope[stmt]];
  for (;;) {
    *found =
        *last == c->part || (c->n_open && g->scopes[*last].owner == branch);
    if (*found || !may_join(c, *last))
      return PLN_OK;
    PLN_TRY(pln_mem_grow(c->x->a->engine, (void **)&c->path, &c->cap_path,
                         (size_t)c->n_path + 1, sizeof *c->path));
    c->path[c->n_path++] = *last;
    *last = u->part[g->scopes[*last].parent];
  }
}

/* Of two sides of a branch only the largest computations are compared. */
static pln_status count_expr(const let_count *c, const pln_let_use *use,
                             uint32_t table) {
  eliminator *x = c->x;
  pln_computation row = {.count = use->count,
                         .within = use->size,
                         .outer = table ? use->outer : 0};
  PLN_TRY(pln_cse_present(&x->bindings, use->term, &row.term));
  return pln_computations_of(x->a, &x->kinds, row, true, &c->s->tables[table]);
}

/* Counts an expression; *next: what is before it does not count. */
static pln_status count_use(let_count *c, const pln_let_use *use,
                            pln_ref *next) {
  pln_ref stmt = use->stmt;
  pln_scope last;
  bool found;
  while (c->n_open > 0 && c->open[c->n_open - 1].branch < stmt)
    PLN_TRY(close_branch(c));
  PLN_TRY(find_path(c, stmt, &last, &found));
  if (!found) {
    *next = c->x->g->scopes[last].end;
    return PLN_OK;
  }
  uint32_t table = table_of_side(c, last);
  while (c->n_path > 0)
    PLN_TRY(open_side(c, c->path[--c->n_path], &table));
  return count_expr(c, use, table);
}

/* The same of a part behind a LetStmt, for the uses of its variable. */
static pln_status count_let_uses(eliminator *x, pln_scope scope,
                                 branch_stack *s) {
  const pln_let_uses *u = &x->uses;
  let_count c = {.x = x, .s = s, .part = u->part[scope]};
  pln_ref next = 0, var = x->kinds.only;
  pln_status status = PLN_OK;
  for (uint32_t i = u->first[var]; status == PLN_OK && i < u->first[var + 1];
       i++)
    if (u->rows[i].stmt >= next)
      status = count_use(&c, &u->rows[i], &next);
  while (status == PLN_OK && c.n_open > 0)
    status = close_branch(&c);
  pln_mem_free(x->a->engine, c.open, c.cap_open * sizeof *c.open);
  pln_mem_free(x->a->engine, c.path, c.cap_path * sizeof *c.path);
  return status;
}

/* ------------------------------------------------------------------- binding
 */

static bool is_defined(const eliminator *x, pln_term var) {
  return var < x->cap_defined && x->defined[var];
}

static pln_status grow_defined(eliminator *x) {
  uint32_t old = x->cap_defined;
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->defined, &x->cap_defined,
                       x->a->n, sizeof *x->defined));
  if (x->cap_defined > old)
    memset(x->defined + old, 0, (x->cap_defined - old) * sizeof *x->defined);
  return pln_term_marks_grow(x->a, &x->defined_known);
}

static pln_status define_var(eliminator *x, pln_term var) {
  PLN_TRY(grow_defined(x));
  if (!pln_term_list_push(x->a, &x->vars, var))
    return x->a->status;
  x->defined[var] = true;
  return PLN_OK;
}

static bool operands_are_defined(const eliminator *x, pln_term t) {
  for (uint32_t i = pln_at(x->a, t)->n; i-- > 0;)
    if (!is_defined(x, pln_term_operand(x->a, t, i)))
      return false;
  return true;
}

/* True if all variables of the term are defined here. */
static pln_status has_defined_vars(eliminator *x, pln_term t, bool *out) {
  pln_term_list order;
  PLN_TRY(grow_defined(x));
  if (!pln_term_order_unmarked(x->a, t, &x->defined_known, &order))
    return x->a->status;
  for (uint32_t i = 0; i < order.n; i++) {
    pln_term at = order.items[i];
    if (pln_term_kind(x->a, at) != PLN_VAR)
      x->defined[at] = operands_are_defined(x, at);
    pln_term_mark(&x->defined_known, at);
  }
  pln_term_list_free(x->a, &order);
  *out = is_defined(x, t);
  return PLN_OK;
}

/* What sides of branches compute is not known any more where the value is. */
static pln_status log_binding(eliminator *x, pln_term value) {
  PLN_TRY(pln_kinds_grow(x->a, &x->kinds));
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->log, &x->cap_log,
                       (size_t)x->n_log + 1, sizeof *x->log));
  x->log[x->n_log++] = x->kinds.places[value];
  return PLN_OK;
}

static pln_status bind_term(eliminator *x, pln_stmt_rewrite *s, pln_term t) {
  char text[32];
  pln_symbol name;
  pln_term var;
  pln_ref ref;
  pln_type type;
  int size = snprintf(text, sizeof text, "cse_var_%u", ++x->n_named);
  PLN_TRY(
      pln_symbol_intern(x->a->engine, (pln_slice){text, (size_t)size}, &name));
  PLN_TRY(pln_type_prim(x->a->engine, (pln_dtype)pln_at(x->a, t)->dtype,
                        pln_at(x->a, t)->lanes, &type));
  PLN_TRY(pln_build_var(pln_stmt_builder(s), name, type, 0, &ref));
  PLN_TRY(pln_analyzer_import_built(x->a, pln_stmt_builder(s), ref, &var));
  PLN_TRY(define_var(x, var));
  PLN_TRY(log_binding(x, t));
  if (x->n_placed > x->first)
    return pln_cse_place(&x->bindings, x->first, var, t, ref);
  return pln_cse_push(&x->bindings, var, t, ref);
}

/* ----------------------------------------------------------------- one part */

/* What a round of binding did. Behind the one that bound no value with
 * computations inside there is nothing left to bind: every other computation
 * was counted wherever it is. */
typedef enum round_end { NOTHING_BOUND, LAST_BOUND, MORE_TO_BIND } round_end;

static round_end end_with(const eliminator *x, pln_term value, round_end end) {
  for (uint32_t i = pln_at(x->a, value)->n; i-- > 0;)
    if (pln_at(x->a, pln_term_operand(x->a, value, i))->n > 0)
      return MORE_TO_BIND;
  return end == NOTHING_BOUND ? LAST_BOUND : end;
}

/* What is not bound here is taken apart: its operands may be. */
static pln_status bind_rows(eliminator *x, pln_stmt_rewrite *s,
                            pln_computation_table *t, round_end *end) {
  pln_computation row;
  bool found = true;
  for (;;) {
    bool defined = false;
    PLN_TRY(pln_computation_next(x->a, t, &row, &found));
    if (!found)
      return PLN_OK;
    if (row.count >= 2)
      PLN_TRY(has_defined_vars(x, row.term, &defined));
    if (defined) {
      PLN_TRY(bind_term(x, s, row.term));
      *end = end_with(x, row.term, *end);
    } else {
      PLN_TRY(pln_computations_of(x->a, &x->kinds, row, false, t));
    }
  }
}

static pln_status count_values(eliminator *x, uint32_t first,
                               pln_computation_table *table) {
  for (uint32_t i = first; i < x->bindings.n; i++)
    PLN_TRY(pln_computations_of(
        x->a, &x->kinds,
        (pln_computation){x->bindings.rows[i].value, 1, UINT32_MAX, 0}, true,
        table));
  return PLN_OK;
}

/* Without branches what the statements of a part consist of is what it was in
 * the round before, in its present form. */
static pln_status keep_counted(eliminator *x, const pln_computation_table *t) {
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->counted, &x->cap_counted,
                       (size_t)t->n + 1, sizeof *x->counted));
  if (t->n > 0)
    memcpy(x->counted, t->rows, t->n * sizeof *x->counted);
  x->n_counted = t->n;
  return PLN_OK;
}

static pln_status count_again(eliminator *x, pln_computation_table *t) {
  for (uint32_t i = 0; i < x->n_counted; i++) {
    pln_computation row = x->counted[i];
    PLN_TRY(pln_cse_present(&x->bindings, row.term, &row.term));
    PLN_TRY(pln_computations_of(x->a, &x->kinds, row, true, t));
  }
  return PLN_OK;
}

/* What a part computes, in the present form; `first`: its first binding. */
static pln_status count_part(eliminator *x, pln_scope scope, uint32_t first,
                             branch_stack *s) {
  if (x->kinds.only)
    return count_let_uses(x, scope, s);
  if (x->uses.has_lets_or_branches)
    return count_scope(x, scope, s);
  PLN_TRY(x->bindings.n > first ? count_again(x, &s->tables[0])
                                : count_scope(x, scope, s));
  return keep_counted(x, &s->tables[0]);
}

static void free_branches(eliminator *x, branch_stack *s) {
  while (s->n > 0)
    pln_computation_free(x->a->engine, &s->tables[--s->n]);
  pln_mem_free(x->a->engine, s->tables, s->cap * sizeof *s->tables);
}

/* One round over a part. */
static pln_status bind_round(eliminator *x, pln_stmt_rewrite *s,
                             pln_scope scope, uint32_t first, round_end *end) {
  branch_stack stack = {0};
  pln_status status = push_branch(x, &stack);
  *end = NOTHING_BOUND;
  x->first = first;
  x->n_placed = x->bindings.n;
  if (status == PLN_OK)
    status = count_part(x, scope, first, &stack);
  if (status == PLN_OK)
    status = count_values(x, first, &stack.tables[0]);
  if (status == PLN_OK)
    status = bind_rows(x, s, &stack.tables[0], end);
  free_branches(x, &stack);
  return status;
}

static pln_status bind_part(eliminator *x, pln_stmt_rewrite *s,
                            pln_scope scope) {
  uint32_t first = x->bindings.n;
  pln_ref only = x->kinds.only;
  round_end end =
      !only || x->uses.may_bind[only] ? MORE_TO_BIND : NOTHING_BOUND;
  while (end == MORE_TO_BIND) {
    PLN_TRY(bind_round(x, s, scope, first, &end));
    if (end != NOTHING_BOUND)
      PLN_TRY(pln_cse_update(&x->bindings, first));
  }
  /* Forms of what is further in may be found in all parts but a LetStmt's. */
  if (!only)
    pln_cse_forget(&x->bindings);
  x->bindings.new_marks.n = 0;
  x->kinds.only = 0;
  return PLN_OK;
}

/* ---------------------------------------------------------------- callbacks */

/* The variable of a LetStmt replaces its value, in conditions too. */
static pln_status push_value(eliminator *x, pln_term var, pln_term whole,
                             pln_term value) {
  bool computes;
  PLN_TRY(pln_is_computation(x->a, &x->kinds, value, &computes));
  if (!computes)
    return PLN_OK;
  x->repeated |= x->uses.times[whole] > 1;
  PLN_TRY(log_binding(x, whole));
  PLN_TRY(pln_cse_push(&x->bindings, var, value, PLN_NONE));
  if (x->repeated || pln_let_is_tested(&x->uses, whole))
    pln_cse_forget(&x->bindings);
  return PLN_OK;
}

/* The variables that a body defines. */
static pln_status define_params(eliminator *x, pln_ref stmt, pln_scope scope) {
  const pln_graph *g = x->g;
  x->defined_known.now++;
  for (uint32_t i = 0; i < g->scopes[scope].n_params; i++) {
    pln_term var = x->uses.term[g->scopes[scope].begin + i], whole, value;
    PLN_TRY(define_var(x, var));
    if (g->nodes[stmt].kind != PLN_LET_STMT)
      continue;
    whole = x->uses.term[pln_operand(g, stmt, 0)];
    PLN_TRY(pln_cse_present(&x->bindings, whole, &value));
    PLN_TRY(push_value(x, var, whole, value));
    /* What is computed more than once behind the LetStmt, and could not be
     * bound in the part around it, contains its variable. The program has the
     * variable there, unless the variable replaces its value, which is there
     * again. */
    if (!x->repeated)
      x->kinds.only = g->scopes[scope].begin;
  }
  return PLN_OK;
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  eliminator *x = ud;
  pln_scope scope = x->g->nodes[stmt].data;
  (void)skip;
  if (!pln_let_is_part(x->g, stmt))
    return PLN_OK;
  if (k == 1)
    scope = x->g->scopes[scope].next;
  PLN_TRY(pln_mem_grow(x->a->engine, (void **)&x->parts, &x->cap_parts,
                       (size_t)x->n_parts + 1, sizeof *x->parts));
  x->parts[x->n_parts++] = (open_part){.stmt = stmt,
                                       .bindings = x->bindings.n,
                                       .vars = x->vars.n,
                                       .log = x->n_log,
                                       .repeated = x->repeated};
  PLN_TRY(define_params(x, stmt, scope));
  return bind_part(x, s, scope);
}

/* The body in the part's variables, the latest outermost. */
static pln_status wrap_body(eliminator *x, pln_stmt_rewrite *s, uint32_t first,
                            pln_ref *body) {
  for (uint32_t i = first; i < x->bindings.n; i++) {
    pln_ref value;
    if (x->bindings.rows[i].ref == PLN_NONE)
      continue;
    PLN_TRY(pln_analyzer_export(x->a, pln_stmt_builder(s),
                                x->bindings.rows[i].value, &value));
    pln_prim spec = {.kind = PLN_LET_STMT, .n = 1, .operands = &value};
    pln_body inner = {
        .n_params = 1, .params = &x->bindings.rows[i].ref, .stmt = *body};
    PLN_TRY(
        pln_build_floating_stmt(pln_stmt_builder(s), &spec, 1, &inner, body));
  }
  return PLN_OK;
}

/* Forgets the bindings and variables of a part. */
static void forget_part(eliminator *x, uint32_t bindings, uint32_t vars) {
  pln_cse_pop(&x->bindings, bindings);
  x->defined_known.now++;
  while (x->vars.n > vars)
    x->defined[x->vars.items[--x->vars.n]] = false;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  eliminator *x = ud;
  pln_ref rest = *body;
  (void)k;
  (void)again;
  if (!pln_let_is_part(x->g, stmt))
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
  x->n_log = part.log;
  x->repeated = part.repeated;
  return PLN_OK;
}

/* Binds what an expression computes more than once. */
static pln_status bind_expr(eliminator *x, pln_stmt_rewrite *s,
                            pln_term *form) {
  uint32_t first = x->bindings.n;
  round_end end = MORE_TO_BIND;
  while (end == MORE_TO_BIND) {
    pln_computation_table table = {0};
    end = NOTHING_BOUND;
    x->first = first;
    x->n_placed = x->bindings.n;
    pln_status status = pln_computations_of(
        x->a, &x->kinds, (pln_computation){*form, 1, UINT32_MAX, 0}, true,
        &table);
    if (status == PLN_OK)
      status = count_values(x, first, &table);
    if (status == PLN_OK)
      status = bind_rows(x, s, &table, &end);
    pln_computation_free(x->a->engine, &table);
    PLN_TRY(status);
    if (end != NOTHING_BOUND)
      PLN_TRY(pln_cse_update(&x->bindings, first));
    PLN_TRY(pln_cse_present(&x->bindings, *form, form));
  }
  return PLN_OK;
}

/* The expression in the part's variables, as Lets. */
static pln_status wrap_expr(eliminator *x, pln_stmt_rewrite *s, uint32_t first,
                            pln_ref *node) {
  for (uint32_t i = first; i < x->bindings.n; i++) {
    pln_ref operands[3] = {x->bindings.rows[i].ref, PLN_NONE, *node};
    PLN_TRY(pln_analyzer_export(x->a, pln_stmt_builder(s),
                                x->bindings.rows[i].value, &operands[1]));
    pln_prim spec = {.kind = PLN_PRIM_LET, .n = 3, .operands = operands};
    PLN_TRY(pln_build_prim(pln_stmt_builder(s), &spec, node));
  }
  return PLN_OK;
}

static pln_status replace_condition(eliminator *x, pln_stmt_rewrite *s,
                                    pln_term term, pln_ref *node) {
  uint32_t first = x->bindings.n, vars = x->vars.n, log = x->n_log;
  pln_term form = term;
  PLN_TRY(pln_cse_present(&x->bindings, term, &form));
  PLN_TRY(bind_expr(x, s, &form));
  if (form != term)
    PLN_TRY(pln_analyzer_export(x->a, pln_stmt_builder(s), form, node));
  PLN_TRY(wrap_expr(x, s, first, node));
  forget_part(x, first, vars);
  x->n_log = log;
  return PLN_OK;
}

/* Gives the Buffers that a statement without bodies loads from their images,
 * which what is exported finds. Its expressions lie before it. */
static pln_status map_buffers(eliminator *x, pln_stmt_rewrite *s,
                              pln_ref stmt) {
  const pln_node *nodes = x->g->nodes;
  pln_ref ref = x->mapped == stmt ? 0 : stmt, image;
  x->mapped = stmt;
  while (ref-- > 0 && pln_is_prim(&nodes[ref]))
    if (nodes[ref].kind == PLN_BUFFER_LOAD)
      PLN_TRY(pln_stmt_map(s, pln_operand(x->g, ref, 0), &image));
  return PLN_OK;
}

static pln_status replace_value(eliminator *x, pln_stmt_rewrite *s,
                                pln_ref stmt, pln_ref old, pln_ref *node) {
  pln_term term = x->uses.term[old], form;
  PLN_TRY(pln_cse_present(&x->bindings, term, &form));
  if (form == term)
    return PLN_OK;
  if (!pln_owns(&x->g->nodes[stmt]))
    PLN_TRY(map_buffers(x, s, stmt));
  return pln_analyzer_export(x->a, pln_stmt_builder(s), form, node);
}

/* Of a statement without bodies: what is replaced is not copied first, as only
 * its Buffers need that. */
static pln_status enter_operand(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                uint32_t i, pln_ref *node) {
  eliminator *x = ud;
  pln_ref old = pln_operand(x->g, stmt, i);
  if (pln_owns(&x->g->nodes[stmt]) || !pln_is_counted_operand(x->g, old))
    return PLN_OK;
  return replace_value(x, s, stmt, old, node);
}

/* Of a statement with bodies. */
static pln_status replace_operand(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                                  uint32_t i, pln_ref *node) {
  eliminator *x = ud;
  pln_ref old = pln_operand(x->g, stmt, i);
  if (!pln_owns(&x->g->nodes[stmt]) || !pln_is_counted_operand(x->g, old))
    return PLN_OK;
  return x->g->nodes[stmt].kind == PLN_IF_THEN_ELSE
             ? replace_condition(x, s, x->uses.term[old], node)
             : replace_value(x, s, stmt, old, node);
}

/* ------------------------------------------------------------------- the pass
 */

static pln_status begin_sides(eliminator *x) {
  pln_engine *e = x->a->engine;
  size_t n = x->g->n_scopes;
  x->sides = pln_mem_zeroed(e, n * sizeof *x->sides);
  x->side_known = pln_mem_zeroed(e, n * sizeof *x->side_known);
  return x->sides && x->side_known ? PLN_OK : pln_nomem(e);
}

static void free_sides(eliminator *x) {
  pln_engine *e = x->a->engine;
  size_t n = x->g->n_scopes;
  for (size_t i = 0; x->sides && i < n; i++)
    pln_computation_free(e, &x->sides[i]);
  pln_mem_free(e, x->sides, n * sizeof *x->sides);
  pln_mem_free(e, x->side_known, n * sizeof *x->side_known);
  pln_mem_free(e, x->log, x->cap_log * sizeof *x->log);
}

static pln_status eliminate(pln_pass_run *run) {
  eliminator x = {.g = pln_run_function(run)};
  pln_engine *e = pln_run_engine(run);
  pln_stmt_mutator mutator = {.ud = &x,
                              .enter_operand = enter_operand,
                              .operand = replace_operand,
                              .enter_body = enter_body,
                              .leave_body = leave_body};
  PLN_TRY(pln_analyzer_new(e, &x.a));
  x.bindings.a = x.a;
  x.bindings.kinds = &x.kinds;
  pln_status status = pln_let_uses_find(&x.uses, x.g, x.a, &x.kinds);
  if (status == PLN_OK)
    status = begin_sides(&x);
  if (status == PLN_OK)
    status = pln_lower_function(run, &mutator);
  pln_let_uses_free(&x.uses);
  free_sides(&x);
  pln_computation_kinds_free(x.a, &x.kinds);
  pln_cse_free(&x.bindings);
  pln_mem_free(e, x.defined, x.cap_defined * sizeof *x.defined);
  pln_term_marks_free(x.a, &x.defined_known);
  pln_mem_free(e, x.parts, x.cap_parts * sizeof *x.parts);
  pln_mem_free(e, x.counted, x.cap_counted * sizeof *x.counted);
  pln_term_list_free(x.a, &x.vars);
  pln_analyzer_free(x.a);
  return status;
}

/* Expressions that are equal by arithmetic count as one. */
static pln_status eliminate_equivalent(pln_pass_run *run) {
  pln_graph *function;
  PLN_TRY(pln_unify_equivalent_terms(pln_run_function(run), &function));
  pln_status status = pln_lower_step(run, eliminate, &function);
  if (status == PLN_OK)
    pln_run_set_function(run, function);
  else
    pln_graph_release(function);
  return status;
}

pln_status pln_pass_tir_common_subexpr_elim(pln_pass_run *run) {
  if (!pln_run_int(run, "enable_cse_tir"))
    return PLN_OK;
  return pln_run_int(run, "identify_equiv_terms") ? eliminate_equivalent(run)
                                                  : eliminate(run);
}
