/* partition_plan.c: finds the loops that tir.LoopPartition splits, and where
 * (partition_plan.h).
 *
 * Called by loop_partition.c. A loop is a candidate if a likely() condition
 * uses its variable; the interval in which all such conditions hold, else that
 * in which none does, is its middle part. TVM's LoopPartitioner. */

#include "lower/loop/partition_plan.h"

bool pln_is_partition_hint(const pln_graph *g, pln_ref stmt) {
  return g->nodes[stmt].kind == PLN_ATTR_STMT &&
         pln_slice_is(
             pln_attrs_string(g->engine, g->nodes[stmt].attrs, "attr_key", ""),
             "pragma_loop_partition_hint");
}

pln_ref pln_likely_argument(const pln_graph *g, pln_ref node) {
  pln_ref condition = pln_likely_condition(g, node);
  return condition == node ? PLN_NONE : condition;
}

/* --------------------------------------------------------------- candidates */

static bool is_allreduce(const pln_node *n) {
  return n->kind == PLN_PRIM_CALL && n->data != 0 &&
         strcmp(pln_builtin_name(n->data), "tvm_thread_allreduce") == 0;
}

/* Marks what stands inside of likely(): users come after operands. */
static void mark_likely(pln_partition_plan *p) {
  const pln_graph *g = p->graph;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    pln_ref argument = pln_likely_argument(g, ref);
    if (argument != PLN_NONE)
      p->in_likely[argument] = true;
    for (uint32_t i = 0; p->in_likely[ref] && i < n->count; i++)
      p->in_likely[pln_operands(g, n)[i]] = true;
  }
}

static bool is_split_loop(const pln_graph *g, pln_ref node) {
  return g->nodes[node].kind == PLN_FOR &&
         pln_attrs_find(g->engine, g->nodes[node].attrs, PLN_PARTITIONED_ATTR);
}

/* What surrounds each node: the owner of a scope comes after its nodes. */
static void mark_surroundings(pln_partition_plan *p) {
  const pln_graph *g = p->graph;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    pln_scope scope = p->scope_of[ref];
    pln_ref owner = scope == PLN_NONE ? PLN_NONE : g->scopes[scope].owner;
    bool inner = owner != PLN_NONE;
    p->hint_around[ref] = !inner ? PLN_NONE
                          : pln_is_partition_hint(g, owner)
                              ? owner
                              : p->hint_around[owner];
    p->final[ref] = (inner && p->final[owner]) || is_split_loop(g, ref);
  }
  for (pln_ref ref = 0; ref + 1 < g->n_nodes; ref++)
    p->allreduces[ref + 1] = p->allreduces[ref] + is_allreduce(&g->nodes[ref]);
}

static pln_ref var_of(const pln_graph *g, pln_ref loop) {
  return g->scopes[g->nodes[loop].data].begin;
}

/* A hint names the variable by another node of the same identity. */
static bool is_hinted(const pln_partition_plan *p, pln_ref loop) {
  const pln_graph *g = p->graph;
  uint32_t var = g->nodes[var_of(g, loop)].data;
  pln_slice name = pln_symbol_text(g->engine, g->nodes[var_of(g, loop)].attrs);
  for (pln_ref hint = p->hint_around[loop]; hint != PLN_NONE;
       hint = p->hint_around[hint]) {
    pln_ref what = pln_operand(g, hint, 0);
    if (g->nodes[what].kind == PLN_ITER_VAR)
      what = pln_operand(g, what, 0);
    if (g->nodes[what].data == var ||
        pln_slice_equal(pln_symbol_text(g->engine, g->nodes[what].attrs), name))
      return true;
  }
  const pln_attr *annotations =
      pln_attrs_find(g->engine, g->nodes[loop].attrs, "annotations");
  return annotations && annotations->kind == PLN_ATTR_DICT &&
         pln_attrs_find(g->engine, annotations->v.dict,
                        "pragma_loop_partition_hint");
}

static bool is_candidate(const pln_partition_plan *p, pln_ref loop) {
  const pln_graph *g = p->graph;
  bool constant = g->nodes[pln_operand(g, loop, 0)].kind == PLN_INT_IMM &&
                  g->nodes[pln_operand(g, loop, 1)].kind == PLN_INT_IMM;
  if (p->final[loop] || pln_for_kind_of(g, loop) == PLN_FOR_THREAD_BINDING)
    return false;
  bool hinted = is_hinted(p, loop);
  if (constant && !p->config.constant_loops && !hinted)
    return false;
  if (!p->in_likely[var_of(g, loop)] && !hinted)
    return false;
  return p->allreduces[loop] == p->allreduces[var_of(g, loop)];
}

/* ------------------------------------------------------------------- domains
 */

enum { MOST_LOOPS = 256 };

typedef struct loop_domains {
  pln_term_domain hints[MOST_LOOPS], relaxed[MOST_LOOPS];
  uint32_t n_hints, n_relaxed;
} loop_domains;

/* The first and the last value of a loop's variable. */
static pln_status loop_domain(pln_partition_plan *p, pln_ref loop,
                              pln_term_domain *out) {
  const pln_graph *g = p->graph;
  pln_term extent;
  PLN_TRY(pln_analyzer_import(p->a, g, var_of(g, loop), &out->var));
  PLN_TRY(pln_analyzer_import(p->a, g, pln_operand(g, loop, 0), &out->min));
  PLN_TRY(pln_analyzer_import(p->a, g, pln_operand(g, loop, 1), &extent));
  out->max = pln_sub(p->a, pln_add(p->a, out->min, extent),
                     pln_const_like(p->a, extent, 1));
  return p->a->status;
}

static pln_status bind_loop(pln_partition_plan *p, pln_ref loop) {
  const pln_graph *g = p->graph;
  pln_term var, min, extent;
  PLN_TRY(pln_analyzer_import(p->a, g, var_of(g, loop), &var));
  PLN_TRY(pln_analyzer_import(p->a, g, pln_operand(g, loop, 0), &min));
  PLN_TRY(pln_analyzer_import(p->a, g, pln_operand(g, loop, 1), &extent));
  return pln_analyzer_bind_range(p->a, var, min, extent, true);
}

/* The values of the thread variable of an AttrStmt. */
static pln_status thread_domain(pln_partition_plan *p, pln_ref stmt,
                                pln_term_domain *out) {
  const pln_graph *g = p->graph;
  pln_ref thread = pln_operand(g, stmt, 0);
  pln_term extent;
  PLN_TRY(pln_analyzer_import(p->a, g, pln_operand(g, thread, 0), &out->var));
  PLN_TRY(pln_analyzer_import(p->a, g, pln_operand(g, stmt, 1), &extent));
  out->min = pln_const_like(p->a, extent, 0);
  out->max = pln_sub(p->a, extent, pln_const_like(p->a, extent, 1));
  PLN_TRY(p->a->status);
  return pln_analyzer_bind_range(p->a, out->var, out->min, extent, true);
}

/* The threads of a block: what they test differs. */
static bool is_block_thread(const pln_graph *g, pln_ref stmt) {
  pln_slice tag = pln_attrs_string(
      g->engine, g->nodes[pln_operand(g, stmt, 0)].attrs, "thread_tag", "");
  return !(tag.size >= 8 && memcmp(tag.data, "blockIdx", 8) == 0);
}

/* The domain of a loop, or of an AttrStmt of a thread. *found: false for other
 * statements. */
static pln_status stmt_domain(pln_partition_plan *p, pln_ref stmt,
                              pln_term_domain *out, bool *found, bool *thread) {
  const pln_node *n = &p->graph->nodes[stmt];
  *thread = n->kind == PLN_ATTR_STMT && pln_binds_thread(p->graph, n);
  *found = *thread || n->kind == PLN_FOR;
  if (*thread)
    return thread_domain(p, stmt, out);
  return *found ? loop_domain(p, stmt, out) : PLN_OK;
}

/* The loops around `loop` and the loop itself. */
static pln_status outer_domains(pln_partition_plan *p, pln_ref loop,
                                loop_domains *d) {
  d->n_hints = d->n_relaxed = 0;
  PLN_TRY(bind_loop(p, loop));
  PLN_TRY(loop_domain(p, loop, &d->hints[d->n_hints++]));
  for (pln_scope at = p->scope_of[loop]; at != PLN_NONE;
       at = p->graph->scopes[at].parent) {
    pln_ref owner = p->graph->scopes[at].owner;
    pln_term_domain domain;
    bool found, thread;
    if (owner == PLN_NONE || d->n_hints + d->n_relaxed >= MOST_LOOPS / 2)
      continue;
    PLN_TRY(stmt_domain(p, owner, &domain, &found, &thread));
    if (found && !thread)
      PLN_TRY(bind_loop(p, owner));
    if (thread && is_block_thread(p->graph, owner))
      d->relaxed[d->n_relaxed++] = domain;
    else if (found)
      d->hints[d->n_hints++] = domain;
  }
  return PLN_OK;
}

/* True if the bounds of an inner loop depend on a variable of `d`. */
static pln_status depends(pln_partition_plan *p, const pln_term_domain *inner,
                          const loop_domains *d, bool *out) {
  *out = false;
  for (uint32_t i = 0; i < d->n_hints && !*out; i++)
    *out = pln_term_uses(p->a, inner->min, d->hints[i].var) ||
           pln_term_uses(p->a, inner->max, d->hints[i].var);
  return p->a->status;
}

/* Adds the loops between `loop` and a condition; *visible: false if one of them
 * hides the condition. */
static pln_status inner_domains(pln_partition_plan *p, pln_ref loop,
                                pln_ref condition, loop_domains *d,
                                bool *visible) {
  const pln_graph *g = p->graph;
  *visible = true;
  for (pln_scope at = p->scope_of[condition];
       at != PLN_NONE && g->scopes[at].owner != loop;
       at = g->scopes[at].parent) {
    pln_ref owner = g->scopes[at].owner;
    pln_term_domain domain;
    bool hidden, found = false, thread;
    if (owner != PLN_NONE)
      PLN_TRY(stmt_domain(p, owner, &domain, &found, &thread));
    if (!found)
      continue;
    PLN_TRY(depends(p, &domain, d, &hidden));
    if (hidden || d->n_hints == MOST_LOOPS || d->n_relaxed == MOST_LOOPS) {
      *visible = false;
      return PLN_OK;
    }
    d->hints[d->n_hints++] = domain;
    d->relaxed[d->n_relaxed++] = domain;
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- conditions
 */

/* The interval of the variable in which a condition is known. */
typedef struct known_interval {
  pln_term condition, min, max;
  bool value;
} known_interval;

typedef struct known_list {
  known_interval *items;
  uint32_t n, cap;
} known_list;

static pln_term inverse_of(pln_analyzer *a, pln_term condition) {
  pln_term_node n = *pln_at(a, condition);
  switch (n.kind) {
  case PLN_PRIM_LT: return pln_fold(a, PLN_PRIM_GE, n.a, n.b);
  case PLN_PRIM_GT: return pln_fold(a, PLN_PRIM_LE, n.a, n.b);
  case PLN_PRIM_LE: return pln_fold(a, PLN_PRIM_GT, n.a, n.b);
  case PLN_PRIM_GE: return pln_fold(a, PLN_PRIM_LT, n.a, n.b);
  case PLN_PRIM_EQ: return pln_fold(a, PLN_PRIM_NE, n.a, n.b);
  case PLN_PRIM_NE: return pln_fold(a, PLN_PRIM_EQ, n.a, n.b);
  default: return PLN_NO_TERM;
  }
}

static pln_status mark_inner(pln_partition_plan *p, pln_ref var) {
  uint32_t old = p->cap_inner;
  pln_term term;
  PLN_TRY(pln_analyzer_import(p->a, p->graph, var, &term));
  PLN_TRY(pln_mem_grow(p->a->engine, (void **)&p->inner, &p->cap_inner, p->a->n,
                       sizeof *p->inner));
  if (p->cap_inner > old)
    memset(p->inner + old, 0, (p->cap_inner - old) * sizeof *p->inner);
  p->inner[term] = p->stamp;
  return PLN_OK;
}

/* Marks the variables that the body of the loop binds. */
static pln_status mark_inner_vars(pln_partition_plan *p, pln_ref loop) {
  p->stamp++;
  for (pln_ref ref = var_of(p->graph, loop); ref < loop; ref++)
    if (p->graph->nodes[ref].kind == PLN_VAR &&
        p->graph->nodes[ref].flags & PLN_NODE_PARAM)
      PLN_TRY(mark_inner(p, ref));
  return PLN_OK;
}

/* True if an end of an interval can be computed in front of the loop. */
static pln_status is_known_outside(pln_partition_plan *p, pln_term end,
                                   bool *out) {
  pln_term_list order;
  *out = true;
  if (pln_is_infinite(end))
    return PLN_OK;
  if (!pln_term_order(p->a, end, NULL, &order))
    return p->a->status;
  for (uint32_t i = 0; i < order.n && *out; i++)
    *out =
        order.items[i] >= p->cap_inner || p->inner[order.items[i]] != p->stamp;
  pln_term_list_free(p->a, &order);
  return PLN_OK;
}

static pln_status deduce(pln_partition_plan *p, const loop_domains *d,
                         pln_term condition, pln_term holds, bool value,
                         known_list *out) {
  known_interval k = {.condition = condition, .value = value};
  if (!holds || pln_is_const(p->a, holds))
    return p->a->status;
  PLN_TRY(pln_analyzer_deduce_bound(p->a, d->hints[0].var, holds, d->n_hints,
                                    d->hints, d->n_relaxed, d->relaxed, &k.min,
                                    &k.max));
  if (k.min == PLN_TERM_POS_INF || k.max == PLN_TERM_NEG_INF)
    return PLN_OK;
  bool min_known, max_known;
  PLN_TRY(is_known_outside(p, k.min, &min_known));
  PLN_TRY(is_known_outside(p, k.max, &max_known));
  if (!min_known || !max_known)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(p->a->engine, (void **)&out->items, &out->cap,
                       (size_t)out->n + 1, sizeof *out->items));
  out->items[out->n++] = k;
  return PLN_OK;
}

static bool is_listed(const known_list *list, pln_term condition) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->items[i].condition == condition)
      return true;
  return false;
}

static pln_status deduce_condition(pln_partition_plan *p, pln_ref loop,
                                   pln_ref condition, loop_domains *d,
                                   known_list *out) {
  uint32_t n_hints = d->n_hints, n_relaxed = d->n_relaxed;
  pln_term term;
  bool visible;
  PLN_TRY(pln_analyzer_import(p->a, p->graph, condition, &term));
  if (!pln_term_uses(p->a, term, d->hints[0].var) || is_listed(out, term))
    return p->a->status;
  PLN_TRY(inner_domains(p, loop, condition, d, &visible));
  if (visible) {
    PLN_TRY(deduce(p, d, term, term, true, out));
    PLN_TRY(deduce(p, d, term, inverse_of(p->a, term), false, out));
  }
  d->n_hints = n_hints;
  d->n_relaxed = n_relaxed;
  return PLN_OK;
}

static bool is_comparison(const pln_node *n) {
  return n->kind >= PLN_PRIM_EQ && n->kind <= PLN_PRIM_GE;
}

static pln_status find_conditions(pln_partition_plan *p, pln_ref loop,
                                  loop_domains *d, known_list *out) {
  const pln_graph *g = p->graph;
  bool hinted = is_hinted(p, loop);
  for (pln_ref ref = var_of(g, loop); ref < loop; ref++) {
    pln_ref condition = pln_likely_argument(g, ref);
    if (condition == PLN_NONE && hinted && is_comparison(&g->nodes[ref]) &&
        !p->in_likely[ref])
      condition = ref;
    if (condition != PLN_NONE)
      PLN_TRY(deduce_condition(p, loop, condition, d, out));
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- the parts
 */

static pln_term extremum(pln_analyzer *a, pln_kind kind, pln_term x,
                         pln_term y) {
  if (pln_is_infinite(x) || pln_is_infinite(y))
    return pln_is_infinite(x) ? y : x;
  return pln_fold(a, kind, x, y);
}

static pln_status proves(pln_analyzer *a, pln_kind kind, pln_term x, pln_term y,
                         bool *out) {
  pln_term condition = pln_fold(a, kind, x, y);
  PLN_TRY(a->status);
  return pln_analyzer_can_prove(a, condition, 0, out);
}

/* True if the interval has no value of the loop. */
static pln_status is_outside(pln_analyzer *a, const known_interval *k,
                             const pln_term_domain *loop, bool *out) {
  pln_term min = extremum(a, PLN_PRIM_MAX, k->min, loop->min);
  pln_term max = extremum(a, PLN_PRIM_MIN, k->max, loop->max);
  return proves(a, PLN_PRIM_LT, max, min, out);
}

/* The interval in which all conditions that can have the value have it. */
static pln_status find_middle(pln_partition_plan *p, const known_list *known,
                              const pln_term_domain *loop, bool value,
                              known_interval *middle, pln_loop_plan *plan) {
  *middle = (known_interval){.min = PLN_TERM_NEG_INF, .max = PLN_TERM_POS_INF};
  for (uint32_t i = 0; i < known->n; i++) {
    const known_interval *k = &known->items[i];
    bool outside;
    if (k->value != value)
      continue;
    PLN_TRY(is_outside(p->a, k, loop, &outside));
    if (outside)
      continue;
    middle->min = extremum(p->a, PLN_PRIM_MAX, middle->min, k->min);
    middle->max = extremum(p->a, PLN_PRIM_MIN, middle->max, k->max);
    if (!pln_term_list_push(p->a, &plan->decided, k->condition))
      return p->a->status;
  }
  plan->value = value;
  return p->a->status;
}

static pln_status add_part(pln_partition_plan *p, pln_loop_plan *plan,
                           pln_loop_part part, pln_term begin, pln_term extent,
                           bool final) {
  pln_part_plan *row = &plan->parts[plan->n_parts++];
  bool one;
  *row = (pln_part_plan){
      .part = part, .begin = begin, .extent = extent, .final = final};
  PLN_TRY(
      proves(p->a, PLN_PRIM_EQ, extent, pln_const_like(p->a, extent, 1), &one));
  row->once = one && !p->config.keep_unit_loops;
  return PLN_OK;
}

/* How many rounds there are: proved to be some, or none. */
static pln_status sign_of(pln_analyzer *a, pln_term extent, bool *positive,
                          bool *empty) {
  pln_term zero = pln_const_like(a, extent, 0);
  PLN_TRY(proves(a, PLN_PRIM_GT, extent, zero, positive));
  return proves(a, PLN_PRIM_LE, extent, zero, empty);
}

/* *at is not above `most`. */
static pln_status keep_below(pln_analyzer *a, pln_term most, pln_term *at) {
  bool below;
  PLN_TRY(proves(a, PLN_PRIM_LE, *at, most, &below));
  if (!below)
    *at = pln_fold(a, PLN_PRIM_MIN, *at, most);
  return a->status;
}

/* The rounds before the middle; *begin: where that begins. It lies in the loop
 * also where the interval does not, which TVM does not see to. */
static pln_status plan_before(pln_partition_plan *p, pln_loop_plan *plan,
                              const known_interval *middle,
                              const pln_term_domain *loop, pln_term *begin) {
  pln_analyzer *a = p->a;
  pln_term extent;
  bool same, positive, empty;
  *begin = loop->min;
  if (pln_is_infinite(middle->min))
    return PLN_OK;
  PLN_TRY(pln_analyzer_simplify(a, middle->min, 2, begin));
  PLN_TRY(proves(a, PLN_PRIM_EQ, *begin, loop->min, &same));
  if (same)
    return PLN_OK;
  PLN_TRY(pln_analyzer_simplify(a, pln_sub(a, *begin, loop->min), 2, &extent));
  PLN_TRY(sign_of(a, extent, &positive, &empty));
  if (!positive)
    *begin = pln_fold(a, PLN_PRIM_MAX, *begin, loop->min);
  PLN_TRY(keep_below(a, pln_add_const(a, loop->max, 1), begin));
  if (empty)
    return a->status;
  return add_part(p, plan, PLN_PART_BEFORE, loop->min,
                  pln_sub(a, *begin, loop->min), !positive);
}

/* The rounds after the middle; *end: where those begin, not before `begin`. */
static pln_status plan_after(pln_partition_plan *p, pln_term begin,
                             const known_interval *middle,
                             const pln_term_domain *loop, pln_term *end,
                             pln_part_plan *after, bool *needed) {
  pln_analyzer *a = p->a;
  pln_term behind = pln_add_const(a, loop->max, 1), extent;
  bool same, positive, empty, behind_begin;
  *needed = false;
  *end = behind;
  if (pln_is_infinite(middle->max))
    return PLN_OK;
  PLN_TRY(pln_analyzer_simplify(a, pln_add_const(a, middle->max, 1), 2, end));
  PLN_TRY(proves(a, PLN_PRIM_EQ, middle->max, loop->max, &same));
  if (same)
    return PLN_OK;
  PLN_TRY(pln_analyzer_simplify(
      a, pln_add_const(a, pln_sub(a, loop->max, *end), 1), 2, &extent));
  PLN_TRY(sign_of(a, extent, &positive, &empty));
  if (!positive)
    *end = pln_fold(a, PLN_PRIM_MIN, *end, behind);
  PLN_TRY(proves(a, PLN_PRIM_GE, *end, begin, &behind_begin));
  if (!behind_begin) {
    *end = pln_fold(a, PLN_PRIM_MAX, *end, begin);
    extent = pln_sub(a, behind, *end);
  }
  *needed = !empty || !behind_begin;
  *after = (pln_part_plan){.begin = *end, .extent = extent, .final = !positive};
  return a->status;
}

static pln_status plan_parts(pln_partition_plan *p, pln_loop_plan *plan,
                             const known_interval *middle,
                             const pln_term_domain *loop) {
  pln_term begin, end;
  pln_part_plan after;
  bool needed, empty;
  PLN_TRY(plan_before(p, plan, middle, loop, &begin));
  PLN_TRY(plan_after(p, begin, middle, loop, &end, &after, &needed));
  PLN_TRY(proves(p->a, PLN_PRIM_GE, begin, end, &empty));
  if (!empty)
    PLN_TRY(add_part(p, plan, PLN_PART_MIDDLE, begin, pln_sub(p->a, end, begin),
                     false));
  return needed ? add_part(p, plan, PLN_PART_AFTER, after.begin, after.extent,
                           after.final)
                : p->a->status;
}

static pln_status plan_known(pln_partition_plan *p, const known_list *known,
                             const pln_term_domain *loop, pln_loop_plan *plan) {
  known_interval middle;
  if (known->n == 0)
    return PLN_OK;
  PLN_TRY(find_middle(p, known, loop, true, &middle, plan));
  if (plan->decided.n == 0)
    PLN_TRY(find_middle(p, known, loop, false, &middle, plan));
  return plan->decided.n > 0 ? plan_parts(p, plan, &middle, loop) : PLN_OK;
}

/* A loop that becomes vectors or is written out must keep a constant extent. */
static void keep_constant_extents(const pln_partition_plan *p,
                                  pln_loop_plan *plan) {
  pln_for_kind kind = pln_for_kind_of(p->graph, plan->loop);
  if (kind != PLN_FOR_VECTORIZED && kind != PLN_FOR_UNROLLED)
    return;
  for (uint32_t i = 0; i < plan->n_parts; i++)
    if (!pln_is_const(p->a, plan->parts[i].extent))
      plan->n_parts = 0;
}

static pln_status plan_loop(pln_partition_plan *p, pln_ref loop,
                            loop_domains *d) {
  pln_loop_plan plan = {.loop = loop};
  known_list known = {0};
  pln_status status = outer_domains(p, loop, d);
  if (status == PLN_OK)
    status = mark_inner_vars(p, loop);
  if (status == PLN_OK)
    status = find_conditions(p, loop, d, &known);
  if (status == PLN_OK)
    status = plan_known(p, &known, &d->hints[0], &plan);
  keep_constant_extents(p, &plan);
  pln_mem_free(p->a->engine, known.items, known.cap * sizeof *known.items);
  if (status == PLN_OK && plan.n_parts > 0)
    status = pln_mem_grow(p->a->engine, (void **)&p->plans, &p->cap,
                          (size_t)p->n + 1, sizeof *p->plans);
  if (status != PLN_OK || plan.n_parts == 0) {
    pln_term_list_free(p->a, &plan.decided);
    return status;
  }
  p->plans[p->n++] = plan;
  p->plan_of[loop] = p->n;
  return PLN_OK;
}

/* Outer loops come after inner ones in the array; inside of a loop that is
 * split, none is planned. */
static pln_status plan_all(pln_partition_plan *p) {
  loop_domains *d = pln_mem_new(p->a->engine, sizeof *d);
  pln_status status = d ? PLN_OK : pln_nomem(p->a->engine);
  for (pln_ref ref = p->graph->n_nodes; status == PLN_OK && ref-- > 0;) {
    if (p->graph->nodes[ref].kind != PLN_FOR || !is_candidate(p, ref))
      continue;
    status = plan_loop(p, ref, d);
    if (p->plan_of[ref])
      ref = var_of(p->graph, ref);
  }
  pln_mem_free(p->a->engine, d, sizeof *d);
  return status;
}

pln_status pln_partition_plan_make(pln_partition_plan *p,
                                   const pln_graph *function,
                                   const pln_partition_config *config) {
  pln_engine *e = function->engine;
  size_t n = function->n_nodes;
  *p = (pln_partition_plan){.graph = function, .config = *config};
  p->scope_of = pln_mem_new(e, n * sizeof *p->scope_of);
  p->plan_of = pln_mem_zeroed(e, n * sizeof *p->plan_of);
  p->in_likely = pln_mem_zeroed(e, n);
  p->hint_around = pln_mem_new(e, n * sizeof *p->hint_around);
  p->final = pln_mem_zeroed(e, n);
  p->allreduces = pln_mem_zeroed(e, n * sizeof *p->allreduces);
  pln_status status = PLN_OK;
  if (!p->scope_of || !p->plan_of || !p->in_likely || !p->hint_around ||
      !p->final || !p->allreduces)
    status = pln_nomem(e);
  if (status == PLN_OK)
    status = pln_analyzer_scopes_begin(&p->scopes, function);
  p->a = p->scopes.a;
  if (status == PLN_OK) {
    pln_graph_node_scopes(function, p->scope_of);
    mark_likely(p);
    mark_surroundings(p);
    status = plan_all(p);
  }
  if (status != PLN_OK)
    pln_partition_plan_free(p);
  return status;
}

void pln_partition_plan_free(pln_partition_plan *p) {
  if (!p->graph)
    return;
  pln_engine *e = p->graph->engine;
  size_t n = p->graph->n_nodes;
  for (uint32_t i = 0; i < p->n; i++)
    pln_term_list_free(p->a, &p->plans[i].decided);
  pln_mem_free(e, p->plans, p->cap * sizeof *p->plans);
  pln_mem_free(e, p->inner, p->cap_inner * sizeof *p->inner);
  pln_mem_free(e, p->scope_of, n * sizeof *p->scope_of);
  pln_mem_free(e, p->plan_of, n * sizeof *p->plan_of);
  pln_mem_free(e, p->in_likely, n);
  pln_mem_free(e, p->hint_around, n * sizeof *p->hint_around);
  pln_mem_free(e, p->final, n);
  pln_mem_free(e, p->allreduces, n * sizeof *p->allreduces);
  pln_analyzer_scopes_end(&p->scopes);
  p->graph = NULL;
}
