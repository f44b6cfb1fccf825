/* hoist_plan.c: finds the conditions and variables that do not depend on the
 * loops around them (hoist_plan.h).
 *
 * Called by hoist_expression.c. One walk in the order of execution keeps the
 * stack of open loops. The level of an expression is the number of open loops
 * up to the innermost one that it depends on, so that its destination is found
 * without another look at it. What always holds: only pure expressions that
 * cannot fail are moved; nothing moves across a loop whose body is several
 * statements. */

#include "lower/loop/hoist_plan.h"

/* More copies of a nest of loops are not made: 2^MOST_ELSE. */
enum { MOST_ELSE = 8 };

typedef struct open_loop {
  pln_ref stmt;
  bool is_block_var;
  uint32_t barrier; /* up to here loops cannot be left, counted from 1 */
  uint32_t others;  /* of the planner, where the loop begins */
} open_loop;

typedef struct planner {
  pln_hoist_plan *plan;
  const pln_graph *g;
  open_loop *loops;
  uint32_t n_loops, cap_loops;
  uint32_t *level;    /* by node, valid where stamp is now */
  uint32_t *stamp;    /* by node */
  uint32_t *visited;  /* by node: the statement that looked at it */
  bool *uses_block;   /* by node: depends on the variable of an attribute */
  uint32_t *elements; /* by scope: its statements */
  uint32_t now;
  uint32_t others; /* open statements that do something else otherwise */
  uint32_t n_else; /* conditions with an else of the outermost open loop */
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
} planner;

#define LEAVE_EXPR 0x40000000u
#define BIND_LET 0x80000000u
#define FIXED UINT32_MAX

static pln_status push(planner *p, pln_ref ref) {
  PLN_TRY(pln_mem_grow(p->g->engine, (void **)&p->stack, &p->cap_stack,
                       (size_t)p->n_stack + 1, sizeof *p->stack));
  p->stack[p->n_stack++] = ref;
  return PLN_OK;
}

/* ------------------------------------------------------------------- levels */

static void set_level(planner *p, pln_ref ref, uint32_t level, bool block) {
  p->level[ref] = level;
  p->uses_block[ref] = block;
  p->stamp[ref] = FIXED;
}

static bool has_level(const planner *p, pln_ref ref) {
  return p->stamp[ref] == FIXED || p->stamp[ref] == p->now;
}

static void combine_levels(planner *p, pln_ref ref) {
  uint32_t level = 0;
  bool block = false;
  for (uint32_t i = 0; i < p->g->nodes[ref].count; i++) {
    pln_ref operand = pln_operand(p->g, ref, i);
    level = level < p->level[operand] ? p->level[operand] : level;
    block |= p->uses_block[operand];
  }
  p->level[ref] = level;
  p->uses_block[ref] = block;
  p->stamp[ref] = p->now;
}

/* ------------------------------------------------------------- destinations */

/* A division by what is not known may fail where the condition around it does
 * not hold. */
static bool may_fail(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind < PLN_PRIM_DIV || n->kind > PLN_PRIM_FLOORMOD)
    return false;
  pln_ref divisor = pln_operand(g, ref, 1);
  return g->nodes[divisor].kind != PLN_INT_IMM || pln_is_int(g, divisor, 0);
}

/* The condition and its operands can be computed anywhere. */
static pln_status is_movable(planner *p, pln_ref root, bool *out) {
  uint32_t bottom = p->n_stack;
  *out = (p->g->nodes[root].flags & PLN_NODE_EFFECT) == PLN_EFFECT_NONE;
  PLN_TRY(push(p, root));
  for (uint32_t seen = 0; p->n_stack > bottom; seen++) {
    pln_ref ref = p->stack[--p->n_stack];
    *out = *out && !may_fail(p->g, ref) && seen < 4096 &&
           p->g->nodes[ref].kind != PLN_PRIM_LET;
    for (uint32_t i = 0; *out && i < p->g->nodes[ref].count; i++)
      PLN_TRY(push(p, pln_operand(p->g, ref, i)));
  }
  return PLN_OK;
}

/* The outermost loop that the expression can leave, counted from 0; n_loops:
 * none. */
static uint32_t destination(const planner *p, pln_ref expr) {
  if (p->n_loops == 0)
    return 0;
  uint32_t stop = p->loops[p->n_loops - 1].barrier;
  return stop > p->level[expr] ? stop : p->level[expr];
}

static pln_status add_entry(planner *p, const pln_hoisted *entry) {
  pln_hoist_plan *plan = p->plan;
  PLN_TRY(pln_mem_grow(p->g->engine, (void **)&plan->entries, &plan->cap,
                       (size_t)plan->n + 1, sizeof *plan->entries));
  plan->entries[plan->n++] = *entry;
  return PLN_OK;
}

/* The variables that a condition needs move with it. */
static pln_status require_lets(planner *p, pln_ref condition) {
  uint32_t bottom = p->n_stack;
  pln_hoist_plan *plan = p->plan;
  PLN_TRY(push(p, condition));
  while (p->n_stack > bottom) {
    pln_ref ref = p->stack[--p->n_stack];
    pln_hoisted *let = NULL;
    if (plan->let_of[ref])
      let = &plan->entries[plan->let_of[ref] - 1];
    if (let && let->is_only_found) {
      let->is_only_found = false;
      PLN_TRY(push(p, let->expr));
    }
    for (uint32_t i = 0; i < p->g->nodes[ref].count; i++)
      PLN_TRY(push(p, pln_operand(p->g, ref, i)));
  }
  return PLN_OK;
}

static pln_status add_condition(planner *p, pln_ref expr, bool has_else,
                                uint32_t at) {
  pln_hoist_plan *plan = p->plan;
  pln_ref loop = p->loops[at].stmt;
  has_else |= p->others > p->loops[at].others;
  if (has_else && p->n_else++ >= MOST_ELSE)
    return PLN_OK;
  PLN_TRY(add_entry(p, &(pln_hoisted){.expr = expr,
                                      .var = PLN_NONE,
                                      .next = plan->first_condition[loop],
                                      .has_else = has_else}));
  plan->first_condition[loop] = plan->n;
  plan->n_used++;
  return plan->lets & PLN_HOIST_LET_REQUIRED ? require_lets(p, expr) : PLN_OK;
}

static pln_status try_condition(planner *p, pln_ref expr, int64_t from,
                                bool has_else) {
  bool movable;
  uint32_t at = destination(p, expr);
  if (at >= p->n_loops || !(p->plan->conditionals & from))
    return PLN_OK;
  if (p->uses_block[expr] &&
      !(p->plan->conditionals & PLN_HOIST_USING_BLOCK_VAR))
    return PLN_OK;
  PLN_TRY(is_movable(p, expr, &movable));
  return movable ? add_condition(p, expr, has_else, at) : PLN_OK;
}

/* A variable and its value. One that cannot move depends on all open loops. */
static pln_status try_let(planner *p, pln_ref var, pln_ref value,
                          int64_t from) {
  bool movable = false;
  pln_hoist_plan *plan = p->plan;
  uint32_t at = destination(p, value);
  if (plan->lets & (from | PLN_HOIST_LET_REQUIRED))
    PLN_TRY(is_movable(p, value, &movable));
  if (!movable || at >= p->n_loops) {
    set_level(p, var, p->n_loops, p->uses_block[value]);
    return PLN_OK;
  }
  pln_ref loop = p->loops[at].stmt;
  set_level(p, var, p->level[value], p->uses_block[value]);
  PLN_TRY(add_entry(p, &(pln_hoisted){.expr = value,
                                      .var = var,
                                      .next = plan->first_let[loop],
                                      .is_only_found = !(plan->lets & from)}));
  plan->first_let[loop] = plan->let_of[var] = plan->n;
  plan->n_used += (plan->lets & from) != 0;
  return PLN_OK;
}

/* -------------------------------------------------------------- expressions */

/* The variable of a PrimLet has a level before its body is looked at. */
static pln_status push_operands(planner *p, pln_ref ref) {
  PLN_TRY(push(p, ref | LEAVE_EXPR));
  if (p->g->nodes[ref].kind == PLN_PRIM_LET) {
    PLN_TRY(push(p, pln_operand(p->g, ref, 2)));
    PLN_TRY(push(p, ref | BIND_LET));
    return push(p, pln_operand(p->g, ref, 1));
  }
  for (uint32_t i = p->g->nodes[ref].count; i-- > 0;)
    PLN_TRY(push(p, pln_operand(p->g, ref, i)));
  return PLN_OK;
}

/* Levels of an expression's nodes, operands first. */
static pln_status find_levels(planner *p, pln_ref root) {
  uint32_t bottom = p->n_stack;
  PLN_TRY(push(p, root));
  while (p->n_stack > bottom) {
    pln_ref entry = p->stack[--p->n_stack],
            ref = entry & ~(LEAVE_EXPR | BIND_LET);
    if (has_level(p, ref))
      continue;
    if (entry & BIND_LET)
      PLN_TRY(try_let(p, pln_operand(p->g, ref, 0), pln_operand(p->g, ref, 1),
                      PLN_HOIST_LET_EXPR));
    else if (entry & LEAVE_EXPR)
      combine_levels(p, ref);
    else
      PLN_TRY(push_operands(p, ref));
  }
  return PLN_OK;
}

static pln_status try_node(planner *p, pln_ref ref) {
  const pln_graph *g = p->g;
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_PRIM_AND || n->kind == PLN_PRIM_OR) {
    PLN_TRY(try_condition(p, pln_operand(g, ref, 0), PLN_HOIST_BOOLEAN, true));
    return try_condition(p, pln_operand(g, ref, 1), PLN_HOIST_BOOLEAN, true);
  }
  if (n->kind == PLN_SELECT || pln_is_call_of(n, "if_then_else"))
    return try_condition(p, pln_operand(g, ref, 0), PLN_HOIST_IF_EXPR, true);
  return PLN_OK;
}

/* Looks at each node before its operands, once per statement. */
static pln_status visit_expr(planner *p, pln_ref root) {
  uint32_t bottom = p->n_stack;
  PLN_TRY(find_levels(p, root));
  PLN_TRY(push(p, root));
  while (p->n_stack > bottom) {
    pln_ref ref = p->stack[--p->n_stack];
    if (p->visited[ref] == p->now)
      continue;
    p->visited[ref] = p->now;
    PLN_TRY(try_node(p, ref));
    for (uint32_t i = p->g->nodes[ref].count; i-- > 0;)
      PLN_TRY(push(p, pln_operand(p->g, ref, i)));
  }
  return PLN_OK;
}

/* --------------------------------------------------------------- statements
 */

static pln_ref attr_var(const pln_graph *g, pln_ref stmt) {
  pln_ref node = pln_operand(g, stmt, 0);
  if (g->nodes[node].kind == PLN_ITER_VAR)
    return pln_operand(g, node, 0);
  return g->nodes[node].kind == PLN_VAR ? node : PLN_NONE;
}

static pln_status open(planner *p, pln_ref stmt, pln_ref var, bool block) {
  uint32_t outer = p->n_loops ? p->loops[p->n_loops - 1].barrier : 0;
  bool stays = block && !(p->plan->conditionals & PLN_HOIST_USING_BLOCK_VAR);
  PLN_TRY(pln_mem_grow(p->g->engine, (void **)&p->loops, &p->cap_loops,
                       (size_t)p->n_loops + 1, sizeof *p->loops));
  if (p->n_loops == 0)
    p->n_else = 0;
  p->loops[p->n_loops] = (open_loop){.stmt = stmt,
                                     .is_block_var = block,
                                     .barrier = stays ? p->n_loops + 1 : outer,
                                     .others = p->others};
  set_level(p, var, ++p->n_loops, block);
  return PLN_OK;
}

/* True of a statement that does something whatever a condition inside of it
 * is. */
static bool does_more(const pln_graph *g, pln_ref stmt) {
  const pln_node *n = &g->nodes[stmt];
  if (n->kind == PLN_IF_THEN_ELSE)
    return g->scopes[n->data].next != PLN_NONE;
  if (n->kind == PLN_LET_STMT)
    return (g->nodes[pln_operand(g, stmt, 0)].flags & PLN_NODE_EFFECT) >
           PLN_EFFECT_READS;
  return n->kind == PLN_ASSERT_STMT || n->kind == PLN_WHILE ||
         n->kind == PLN_BLOCK || n->kind == PLN_BUFFER_REALIZE ||
         n->kind == PLN_PRODUCER_REALIZE;
}

static pln_status enter_special(planner *p, pln_ref stmt) {
  const pln_graph *g = p->g;
  switch (g->nodes[stmt].kind) {
  case PLN_FOR:
    return open(p, stmt, g->scopes[g->nodes[stmt].data].begin, false);
  case PLN_ATTR_STMT: {
    pln_ref var = attr_var(g, stmt);
    return var == PLN_NONE ? PLN_OK : open(p, stmt, var, true);
  }
  case PLN_LET_STMT:
    PLN_TRY(find_levels(p, pln_operand(g, stmt, 0)));
    return try_let(p, g->scopes[g->nodes[stmt].data].begin,
                   pln_operand(g, stmt, 0), PLN_HOIST_LET_STMT);
  case PLN_IF_THEN_ELSE:
    PLN_TRY(find_levels(p, pln_operand(g, stmt, 0)));
    return try_condition(p, pln_operand(g, stmt, 0), PLN_HOIST_IF_STMT,
                         does_more(g, stmt));
  default: return PLN_OK;
  }
}

static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  planner *p = ud;
  (void)s;
  (void)node;
  p->now++;
  PLN_TRY(enter_special(p, stmt));
  p->others += does_more(p->g, stmt);
  for (uint32_t i = 0; i < p->g->nodes[stmt].count; i++)
    PLN_TRY(visit_expr(p, pln_operand(p->g, stmt, i)));
  return PLN_OK;
}

/* What else a body binds, a Block's variables for example, stays in it. */
static void fix_params(planner *p, pln_scope scope) {
  const pln_scope_row *row = &p->g->scopes[scope];
  for (pln_ref param = row->begin; param < row->begin + row->n_params; param++)
    if (p->stamp[param] != FIXED)
      set_level(p, param, p->n_loops, false);
}

/* Nothing leaves a loop whose body is several statements. */
static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  planner *p = ud;
  pln_scope scope = p->g->nodes[stmt].data;
  (void)s;
  (void)skip;
  while (k-- > 0)
    scope = p->g->scopes[scope].next;
  fix_params(p, scope);
  if (p->elements[scope] > 1 && p->n_loops > 0)
    p->loops[p->n_loops - 1].barrier = p->n_loops;
  return PLN_OK;
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  planner *p = ud;
  (void)s;
  (void)node;
  if (p->n_loops > 0 && p->loops[p->n_loops - 1].stmt == stmt)
    p->n_loops--;
  p->others -= does_more(p->g, stmt);
  return PLN_OK;
}

/* --------------------------------------------------------------------- make */

static void count_elements(planner *p) {
  pln_scope_cursor at = {.graph = p->g};
  for (pln_ref ref = 0; ref < p->g->n_nodes; ref++) {
    pln_scope scope = pln_scope_cursor_at(&at, ref);
    if (pln_is_stmt(&p->g->nodes[ref]))
      p->elements[scope] += pln_is_seq_element((pln_kind)p->g->nodes[ref].kind);
  }
}

static pln_status begin(planner *p) {
  pln_engine *e = p->g->engine;
  pln_hoist_plan *plan = p->plan;
  size_t n = p->g->n_nodes;
  plan->first_condition = pln_mem_zeroed(e, n * sizeof(uint32_t));
  plan->first_let = pln_mem_zeroed(e, n * sizeof(uint32_t));
  plan->let_of = pln_mem_zeroed(e, n * sizeof(uint32_t));
  p->level = pln_mem_zeroed(e, n * sizeof *p->level);
  p->stamp = pln_mem_zeroed(e, n * sizeof *p->stamp);
  p->visited = pln_mem_zeroed(e, n * sizeof *p->visited);
  p->uses_block = pln_mem_zeroed(e, n * sizeof *p->uses_block);
  p->elements = pln_mem_zeroed(e, p->g->n_scopes * sizeof *p->elements);
  if (!plan->first_condition || !plan->first_let || !plan->let_of ||
      !p->level || !p->stamp || !p->visited || !p->uses_block || !p->elements)
    return pln_nomem(e);
  count_elements(p);
  return PLN_OK;
}

static void end(planner *p) {
  pln_engine *e = p->g->engine;
  size_t n = p->g->n_nodes;
  pln_mem_free(e, p->level, n * sizeof *p->level);
  pln_mem_free(e, p->stamp, n * sizeof *p->stamp);
  pln_mem_free(e, p->visited, n * sizeof *p->visited);
  pln_mem_free(e, p->uses_block, n * sizeof *p->uses_block);
  pln_mem_free(e, p->elements, p->g->n_scopes * sizeof *p->elements);
  pln_mem_free(e, p->loops, p->cap_loops * sizeof *p->loops);
  pln_mem_free(e, p->stack, p->cap_stack * sizeof *p->stack);
}

pln_status pln_hoist_plan_make(pln_hoist_plan *plan) {
  planner p = {.plan = plan, .g = plan->g};
  pln_graph *same = NULL;
  pln_stmt_mutator walk = {.ud = &p,
                           .enter = enter_stmt,
                           .enter_body = enter_body,
                           .leave = leave_stmt};
  pln_status status = begin(&p);
  if (status == PLN_OK)
    status = pln_stmt_rewrite_function(p.g, &walk, &same);
  pln_graph_release(same);
  end(&p);
  return status;
}

void pln_hoist_plan_free(pln_hoist_plan *plan) {
  pln_engine *e = plan->g->engine;
  size_t n = plan->g->n_nodes;
  pln_mem_free(e, plan->entries, plan->cap * sizeof *plan->entries);
  pln_mem_free(e, plan->first_condition, n * sizeof(uint32_t));
  pln_mem_free(e, plan->first_let, n * sizeof(uint32_t));
  pln_mem_free(e, plan->let_of, n * sizeof(uint32_t));
}
