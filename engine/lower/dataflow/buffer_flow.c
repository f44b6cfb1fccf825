/* buffer_flow.c: finds what buffers hold, and which stores are overwritten
 * (dataflow.h).
 *
 * Called by tir.Simplify and tir.RemoveNoOp. One walk over the statements
 * forwards, with facts "these elements hold this value", which stores and
 * T.assume make and stores limit; one backwards, with facts "these elements
 * will be overwritten", which stores make and loads limit. In branches their
 * condition is known; behind them facts of one side hold under it. Loops:
 * flow_loop.c.
 *
 * Semantics: ControlFlowGraph of TVM's control_flow_graph.cc, which iterates
 * over the graph of basic blocks until nothing changes. */

#include "lower/dataflow/flow.h"
#include "lower/lower.h"

static pln_kind owner_kind(const pln_flow *x, pln_scope scope) {
  pln_ref owner = x->g->scopes[scope].owner;
  return owner == PLN_NONE ? PLN_N_KINDS : (pln_kind)x->g->nodes[owner].kind;
}

/* ------------------------------------------------------------------ reading
 */

/* What a load gives, if that is known. */
pln_status pln_flow_answer_load(pln_flow *x, pln_ref load) {
  flow_region region;
  bool exact;
  pln_term value = PLN_NO_TERM, t;
  const pln_node *n = &x->g->nodes[load];
  PLN_TRY(pln_flow_region_of(x, load, 1, &region, &exact));
  const flow_list list = *pln_flow_facts(x, region.memory);
  for (uint32_t i = 0; i < list.n && !value; i++)
    (void)pln_flow_covers(x, &x->facts[list.ids[i]], load, 1, &region, &value);
  PLN_TRY(x->a->status);
  if (!value)
    return PLN_OK;
  uint32_t lanes = pln_type_number(x->g->engine, n->type);
  if (pln_at(x->a, value)->dtype != pln_type_dtype(x->g->engine, n->type))
    return PLN_OK;
  if (lanes > 1 && pln_at(x->a, value)->lanes == 1)
    value = pln_term_broadcast(x->a, value, (uint16_t)lanes);
  PLN_TRY(x->a->status);
  if (pln_at(x->a, value)->lanes != lanes)
    return PLN_OK;
  x->out->value_of[load] = value;
  PLN_TRY(pln_analyzer_import_more(x->a, x->g, load, &t));
  return pln_flow_set_value(x, t, value);
}

static pln_status forget_load(pln_flow *x, pln_ref load) {
  flow_region region;
  bool exact;
  PLN_TRY(pln_flow_region_of(x, load, 1, &region, &exact));
  return pln_flow_forget(x, &region, PLN_NO_TERM);
}

/* Loads and calls of a statement's operands. `unused`: its loads do not count,
 * as the statement goes. */
static pln_status read_operands(pln_flow *x, pln_ref stmt, bool unused) {
  PLN_TRY(pln_flow_find_reads(x, stmt, 0));
  for (uint32_t i = 0; i < x->n_reads; i++) {
    pln_ref read = x->reads[i];
    if (x->g->nodes[read].kind != PLN_BUFFER_LOAD)
      continue;
    if (!x->backward)
      PLN_TRY(pln_flow_answer_load(x, read));
    else if (!unused)
      PLN_TRY(forget_load(x, read));
  }
  for (uint32_t i = 0; i < x->n_reads; i++)
    if (x->g->nodes[x->reads[i]].kind == PLN_PRIM_CALL &&
        pln_flow_forgets(x, x->reads[i]))
      pln_flow_forget_all(x);
  return PLN_OK;
}

/* The values of loads are those in front of the present statement. */
pln_status pln_flow_end_reading(pln_flow *x) {
  for (uint32_t i = 0; i < x->n_reads && !x->backward; i++) {
    pln_term t;
    if (x->out->value_of[x->reads[i]] == PLN_NO_TERM)
      continue;
    PLN_TRY(pln_analyzer_import_more(x->a, x->g, x->reads[i], &t));
    PLN_TRY(pln_flow_set_value(x, t, PLN_NO_TERM));
  }
  x->n_reads = 0;
  return PLN_OK;
}

/* ------------------------------------------------------------------- stores
 */

/* The value of each element of a store: of a vector that of the lane at the
 * axis variable. PLN_NO_TERM: it is not known. */
static pln_term element_value(pln_flow *x, pln_term value,
                              const flow_region *r) {
  pln_analyzer *a = x->a;
  if (!value || pln_at(a, value)->lanes == 1)
    return value;
  pln_term_node n = *pln_at(a, value);
  if (n.kind == PLN_BROADCAST)
    return n.a;
  for (uint32_t k = 0; k < r->rank && n.kind == PLN_RAMP; k++) {
    if (r->lo[k] == r->hi[k])
      continue;
    if (!r->lo[k] || r->dtype[k] != n.dtype)
      return PLN_NO_TERM;
    pln_term axis = pln_flow_axis(x, k, r->dtype[k]);
    return pln_add(a, n.a, pln_mul(a, pln_sub(a, axis, r->lo[k]), n.b));
  }
  return PLN_NO_TERM;
}

static bool is_within_size(const pln_flow *x, pln_term t) {
  return t && pln_at(x->a, t)->size <= FLOW_MOST_SIZE;
}

/* Whether the elements hold what is stored already. */
static pln_status find_redundant(pln_flow *x, pln_ref store,
                                 const flow_region *r, pln_term value) {
  const flow_list list = *pln_flow_facts(x, r->memory);
  for (uint32_t i = 0; i < list.n && value; i++) {
    pln_term there;
    if (!pln_flow_covers(x, &x->facts[list.ids[i]], store, 2, r, &there) ||
        !there || pln_at(x->a, there)->dtype != pln_at(x->a, value)->dtype ||
        pln_at(x->a, there)->lanes != pln_at(x->a, value)->lanes)
      continue;
    if (there == value ||
        (pln_is_integer(x->a, value) && pln_proves_equal(x->a, there, value))) {
      x->out->redundant[store] = true;
      return x->a->status;
    }
  }
  return x->a->status;
}

static pln_status store_forward(pln_flow *x, pln_ref store) {
  flow_fact f = {.access = store};
  bool exact;
  if (x->out->overwritten[store])
    return PLN_OK;
  pln_term value = pln_flow_term(x, pln_operand(x->g, store, 1));
  PLN_TRY(pln_flow_region_of(x, store, 2, &f.region, &exact));
  if (x->removing && exact)
    PLN_TRY(find_redundant(x, store, &f.region, value));
  if (x->out->redundant[store])
    return PLN_OK;
  PLN_TRY(pln_flow_forget(x, &f.region, PLN_NO_TERM));
  f.value = element_value(x, value, &f.region);
  if (f.value)
    f.value = pln_simplify_term(x->a, f.value, 2);
  PLN_TRY(x->a->status);
  return exact && is_within_size(x, f.value) ? pln_flow_learn(x, &f) : PLN_OK;
}

static pln_status store_backward(pln_flow *x, pln_ref store) {
  flow_fact f = {.access = store};
  bool exact;
  pln_term value;
  PLN_TRY(pln_flow_region_of(x, store, 2, &f.region, &exact));
  const flow_list list = *pln_flow_facts(x, f.region.memory);
  for (uint32_t i = 0; x->removing && exact && i < list.n; i++)
    if (pln_flow_covers(x, &x->facts[list.ids[i]], store, 2, &f.region, &value))
      x->out->overwritten[store] = true;
  PLN_TRY(x->a->status);
  return exact && !x->out->overwritten[store] ? pln_flow_learn(x, &f) : PLN_OK;
}

/* -------------------------------------------------------------- assumptions
 */

/* The operands of nested And or Or, at most `most` of them. */
static uint32_t list_parts(const pln_flow *x, pln_kind kind, pln_ref condition,
                           uint32_t most, pln_ref *parts) {
  uint32_t n = 1, done = 0;
  parts[0] = pln_likely_condition(x->g, condition);
  while (done < n) {
    const pln_node *node = &x->g->nodes[parts[done]];
    if (node->kind != kind) {
      done++;
      continue;
    }
    if (n == most)
      return 0;
    parts[n++] = x->g->operands[node->first + 1];
    parts[done] = x->g->operands[node->first];
  }
  return n;
}

/* "load == value", with the sides in either order; `equal`: PLN_PRIM_EQ or
 * PLN_PRIM_NE. */
static bool split_equation(const pln_flow *x, pln_ref ref, pln_kind equal,
                           pln_ref *load, pln_ref *value) {
  if (x->g->nodes[ref].kind != equal)
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    *load = pln_operand(x->g, ref, i);
    *value = pln_operand(x->g, ref, 1 - i);
    if (x->g->nodes[*load].kind == PLN_BUFFER_LOAD)
      return true;
  }
  return false;
}

static pln_status assume_value(pln_flow *x, pln_ref load, pln_ref value,
                               uint32_t n, const pln_term *excuses) {
  flow_fact f = {.access = load};
  bool exact;
  if (x->backward)
    return PLN_OK;
  f.value = pln_flow_term(x, value);
  PLN_TRY(pln_flow_region_of(x, load, 1, &f.region, &exact));
  if (!exact || !f.value || pln_at(x->a, f.value)->lanes > 1)
    return x->a->status;
  for (uint32_t i = 0; i < n; i++)
    f.conditions[f.n_conditions++] =
        pln_rewrite_term(x->a, pln_fold_not(x->a, excuses[i]));
  PLN_TRY(x->a->status);
  return pln_flow_learn(x, &f);
}

/* A condition, and no integer that is 0 or not. */
static pln_term condition_term(pln_flow *x, pln_ref condition) {
  pln_term t = pln_flow_term(x, condition);
  return t && pln_is_bool(x->a, t) ? t : PLN_NO_TERM;
}

static bool reads(const pln_flow *x, pln_ref ref) {
  return (x->g->nodes[ref].flags & PLN_NODE_EFFECT) != PLN_EFFECT_NONE;
}

/* One of conditions that all hold. What does not read memory holds until the
 * scope ends; an equation of a load is a fact, where the other sides of || do
 * not hold. */
static pln_status assume_part(pln_flow *x, pln_ref part) {
  pln_ref sides[FLOW_MOST_CONDITIONS], load, value, equation = PLN_NONE;
  pln_term excuses[FLOW_MOST_CONDITIONS], t;
  uint32_t n_excuses = 0, mark;
  if (!reads(x, part)) {
    t = condition_term(x, part);
    PLN_TRY(x->a->status);
    return t ? pln_analyzer_enter(x->a, t, &mark) : PLN_OK;
  }
  uint32_t n = list_parts(x, PLN_PRIM_OR, part, FLOW_MOST_CONDITIONS, sides);
  for (uint32_t i = 0; i < n; i++) {
    if (!reads(x, sides[i]) && (t = condition_term(x, sides[i])))
      excuses[n_excuses++] = t;
    else if (equation == PLN_NONE)
      equation = sides[i];
    else
      return x->a->status;
  }
  if (equation == PLN_NONE ||
      !split_equation(x, equation, PLN_PRIM_EQ, &load, &value))
    return x->a->status;
  return assume_value(x, load, value, n_excuses, excuses);
}

static pln_status assume(pln_flow *x, pln_ref condition) {
  pln_ref parts[32];
  uint32_t n = list_parts(x, PLN_PRIM_AND, condition, PLN_COUNT(parts), parts);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(assume_part(x, parts[i]));
  return PLN_OK;
}

/* The condition does not hold. */
static pln_status assume_not(pln_flow *x, pln_ref condition) {
  pln_ref load, value;
  uint32_t mark;
  condition = pln_likely_condition(x->g, condition);
  if (!reads(x, condition)) {
    pln_term t = condition_term(x, condition);
    if (t)
      t = pln_rewrite_term(x->a, pln_fold_not(x->a, t));
    PLN_TRY(x->a->status);
    return t ? pln_analyzer_enter(x->a, t, &mark) : PLN_OK;
  }
  if (split_equation(x, condition, PLN_PRIM_NE, &load, &value))
    return assume_value(x, load, value, 0, NULL);
  return PLN_OK;
}

/* --------------------------------------------------------------- statements
 */

static pln_status visit_simple(pln_flow *x, pln_ref stmt) {
  pln_kind kind = (pln_kind)x->g->nodes[stmt].kind;
  if (kind == PLN_BLOCK_READS || kind == PLN_BLOCK_WRITES)
    return PLN_OK;
  if (kind == PLN_BUFFER_STORE && x->backward) {
    PLN_TRY(store_backward(x, stmt));
    return read_operands(x, stmt, x->out->overwritten[stmt]);
  }
  PLN_TRY(read_operands(x, stmt, false));
  if (kind == PLN_BUFFER_STORE)
    PLN_TRY(store_forward(x, stmt));
  pln_ref call = kind == PLN_EVALUATE ? pln_operand(x->g, stmt, 0) : PLN_NONE;
  PLN_TRY(pln_flow_end_reading(x));
  if (call != PLN_NONE && !x->backward &&
      pln_is_call_of(&x->g->nodes[call], "assume"))
    return assume(x, pln_operand(x->g, call, 0));
  return PLN_OK;
}

static bool has_branches(pln_kind kind) {
  return kind == PLN_IF_THEN_ELSE || kind == PLN_BLOCK_REALIZE ||
         kind == PLN_BLOCK_INIT;
}

/* What a branch's condition is, forwards with what is known of loads. */
static pln_status decide(pln_flow *x, pln_ref stmt, flow_frame *f) {
  pln_ref condition = pln_likely_condition(x->g, pln_operand(x->g, stmt, 0));
  pln_term t = pln_flow_reading_term(x, condition);
  f->condition = condition_term(x, condition);
  if (t && !x->backward)
    t = pln_simplify_term(x->a, t, 2);
  PLN_TRY(x->a->status);
  if (pln_is_const(x->a, t))
    f->known = pln_const(x->a, t) != 0;
  if (x->g->nodes[stmt].kind == PLN_IF_THEN_ELSE && !x->backward)
    x->out->decided[stmt] = (int8_t)f->known;
  return PLN_OK;
}

static pln_status begin_branches(pln_flow *x, pln_ref stmt) {
  flow_frame f = {.known = -1};
  if (x->g->nodes[stmt].count > 0)
    PLN_TRY(decide(x, stmt, &f));
  PLN_TRY(pln_flow_push(x));
  x->frames[x->n_frames - 1].condition = f.condition;
  x->frames[x->n_frames - 1].known = f.known;
  if (x->out->general[stmt] >= 0)
    x->frames[x->n_frames - 1].known = x->out->general[stmt] == 0;
  return PLN_OK;
}

/* What a branch means where there is no other one. */
static pln_status pass_by(pln_flow *x, pln_ref branching) {
  PLN_TRY(pln_flow_push(x));
  PLN_TRY(assume_not(x, pln_operand(x->g, branching, 0)));
  if (x->comparing)
    PLN_TRY(pln_flow_compare_branches(x, branching, 1));
  return pln_flow_pop_branch(x, 1);
}

static bool has_else(const pln_flow *x, pln_ref branching) {
  return x->g->scopes[x->g->nodes[branching].data].next != PLN_NONE;
}

/* In the order of the walk: in front of the bodies. */
static pln_status visit_before(pln_flow *x, pln_ref stmt) {
  pln_kind kind = (pln_kind)x->g->nodes[stmt].kind;
  if (!x->backward)
    PLN_TRY(read_operands(x, stmt, false));
  if (has_branches(kind))
    PLN_TRY(begin_branches(x, stmt));
  PLN_TRY(pln_flow_end_reading(x));
  return kind == PLN_IF_THEN_ELSE && !has_else(x, stmt) ? pass_by(x, stmt)
                                                        : PLN_OK;
}

static pln_status visit_after(pln_flow *x, pln_ref stmt) {
  if (has_branches((pln_kind)x->g->nodes[stmt].kind))
    PLN_TRY(pln_flow_join(x));
  return x->backward ? read_operands(x, stmt, false) : PLN_OK;
}

static pln_status enter_thread(pln_flow *x, pln_ref attr) {
  pln_term var, extent;
  PLN_TRY(pln_flow_push(x));
  PLN_TRY(pln_analyzer_import_more(
      x->a, x->g, pln_operand(x->g, pln_operand(x->g, attr, 0), 0), &var));
  extent = pln_flow_term(x, pln_operand(x->g, attr, 1));
  PLN_TRY(x->a->status);
  if (!extent)
    return PLN_OK;
  return pln_analyzer_bind_range(x->a, var, pln_const_like(x->a, extent, 0),
                                 extent, true);
}

static uint32_t branch_of(const pln_flow *x, pln_scope scope) {
  return x->g->nodes[x->g->scopes[scope].owner].data != scope;
}

/* Nothing is in new memory, even where its variable had memory before: a body
 * may stand several times, as that of an unrolled loop does. */
static pln_status enter_allocation(pln_flow *x, pln_scope scope) {
  uint32_t memory;
  if (x->backward)
    return PLN_OK;
  PLN_TRY(pln_flow_memory(x, x->g->scopes[scope].begin, &memory));
  return pln_flow_forget_memory(x, memory);
}

static pln_status visit_enter(pln_flow *x, pln_scope scope) {
  const pln_graph *g = x->g;
  pln_kind kind = owner_kind(x, scope);
  pln_ref owner = g->scopes[scope].owner;
  PLN_TRY(pln_flow_bind_params(x, scope));
  if (kind == PLN_FOR || kind == PLN_WHILE)
    return pln_flow_enter_loop(x, scope);
  if (kind == PLN_ALLOCATE)
    return enter_allocation(x, scope);
  if (kind == PLN_ATTR_STMT && pln_binds_thread(g, &g->nodes[owner]))
    return enter_thread(x, owner);
  if (kind == PLN_ASSERT_STMT || has_branches(kind))
    PLN_TRY(pln_flow_push(x));
  if (kind == PLN_IF_THEN_ELSE && x->out->general[owner] >= 0)
    return PLN_OK; /* it runs in any case, or never */
  if (kind == PLN_ASSERT_STMT || kind == PLN_IF_THEN_ELSE ||
      kind == PLN_BLOCK_REALIZE)
    PLN_TRY(branch_of(x, scope) ? assume_not(x, pln_operand(g, owner, 0))
                                : assume(x, pln_operand(g, owner, 0)));
  return kind == PLN_IF_THEN_ELSE && x->comparing
             ? pln_flow_compare_branches(x, owner, branch_of(x, scope))
             : PLN_OK;
}

static pln_status leave_thread(pln_flow *x, pln_ref attr) {
  pln_term var;
  PLN_TRY(pln_analyzer_import_more(
      x->a, x->g, pln_operand(x->g, pln_operand(x->g, attr, 0), 0), &var));
  PLN_TRY(pln_flow_forget_var(x, var));
  pln_flow_pop(x);
  return PLN_OK;
}

static pln_status visit_leave(pln_flow *x, pln_scope scope) {
  const pln_graph *g = x->g;
  pln_kind kind = owner_kind(x, scope);
  pln_ref owner = g->scopes[scope].owner;
  if (kind == PLN_FOR || kind == PLN_WHILE)
    return pln_flow_leave_loop(x, scope);
  if (kind == PLN_ATTR_STMT && pln_binds_thread(g, &g->nodes[owner]))
    return leave_thread(x, owner);
  if (has_branches(kind))
    return pln_flow_pop_branch(x, branch_of(x, scope));
  if (kind == PLN_ASSERT_STMT)
    pln_flow_pop(x);
  return PLN_OK;
}

static pln_status visit(pln_flow *x, const flow_event *event) {
  static const uint8_t mirrored[] = {FLOW_CLOSE, FLOW_LEAVE, FLOW_ENTER,
                                     FLOW_OPEN, FLOW_SIMPLE};
  switch (x->backward ? mirrored[event->kind] : event->kind) {
  case FLOW_OPEN: return visit_before(x, event->at);
  case FLOW_ENTER: return visit_enter(x, event->at);
  case FLOW_LEAVE: return visit_leave(x, event->at);
  case FLOW_CLOSE: return visit_after(x, event->at);
  default: return visit_simple(x, event->at);
  }
}

static pln_status visit_event(pln_flow *x, uint32_t i) {
  PLN_TRY(visit(x, &x->events[i]));
  return x->status;
}

/* ---------------------------------------------------------------- the walks
 */

/* Pointers that may point into memory of others, and whether calls have
 * pointers. */
static pln_status find_aliases(pln_flow *x) {
  const pln_graph *g = x->g;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    uint32_t memory;
    pln_ref pointer = PLN_NONE;
    if (n->kind == PLN_PRIM_CALL &&
        pln_flags_effect(n->flags) > PLN_EFFECT_READS)
      x->escapes = x->escapes || pln_flow_takes_pointer(x, ref);
    if (n->kind == PLN_MATCH_BUFFER)
      pointer = pln_operand(g, pln_operand(g, ref, 0), 0);
    if (n->kind == PLN_LET_STMT)
      pointer = g->scopes[n->data].begin;
    if (pointer == PLN_NONE)
      continue;
    PLN_TRY(pln_flow_memory(x, pointer, &memory));
    x->wild[memory] = true;
  }
  return PLN_OK;
}

static pln_status walk(pln_flow *x, bool backward) {
  size_t n = x->g->n_scopes * sizeof *x->accesses_of;
  x->backward = backward;
  x->n_accesses = 0;
  memset(x->accesses_of, 0, n);
  PLN_TRY(pln_flow_find_accesses(x));
  pln_flow_forget_all(x);
  PLN_TRY(pln_flow_push(x));
  for (uint32_t i = 0; i < x->n_events; i++)
    PLN_TRY(visit_event(x, backward ? x->n_events - 1 - i : i));
  pln_flow_pop(x);
  return PLN_OK;
}

static void free_flow(pln_flow *x) {
  pln_engine *e = x->g->engine;
#define FREE(field, cap) pln_mem_free(e, x->field, (cap) * sizeof *x->field)
  FREE(events, x->cap_events);
  FREE(value_now, x->cap_value_now);
  FREE(memory_of, x->cap_memory_of);
  FREE(lists, x->cap_lists);
  FREE(recorded, x->cap_recorded);
  FREE(wild, x->cap_wild);
  FREE(facts, x->cap_facts);
  FREE(changes, x->cap_changes);
  FREE(outcomes, x->cap_outcomes);
  FREE(frames, x->cap_frames);
  FREE(accesses_of, x->g->n_scopes);
  FREE(accesses, x->cap_accesses);
  FREE(reads, x->cap_reads);
  FREE(stack, x->cap_stack);
  FREE(visited, x->g->n_nodes);
  FREE(enter_of, x->g->n_scopes);
  FREE(leave_of, x->g->n_scopes);
#undef FREE
}

static pln_status begin(pln_flow *x, uint32_t extensions) {
  pln_engine *e = x->g->engine;
  pln_buffer_flow *out = x->out;
  size_t n = x->g->n_nodes;
  x->accesses_of = pln_mem_zeroed(e, x->g->n_scopes * sizeof *x->accesses_of);
  x->visited = pln_mem_zeroed(e, n * sizeof *x->visited);
  x->enter_of = pln_mem_zeroed(e, x->g->n_scopes * sizeof *x->enter_of);
  x->leave_of = pln_mem_zeroed(e, x->g->n_scopes * sizeof *x->leave_of);
  out->value_of = pln_mem_zeroed(e, n * sizeof *out->value_of);
  out->overwritten = pln_mem_zeroed(e, n * sizeof *out->overwritten);
  out->redundant = pln_mem_zeroed(e, n * sizeof *out->redundant);
  out->decided = pln_mem_new(e, n * sizeof *out->decided);
  out->general = pln_mem_new(e, n * sizeof *out->general);
  if (!x->accesses_of || !x->visited || !x->enter_of || !x->leave_of ||
      !out->general || !out->value_of || !out->overwritten || !out->redundant ||
      !out->decided)
    return pln_nomem(e);
  memset(out->decided, -1, n * sizeof *out->decided);
  memset(out->general, -1, n * sizeof *out->general);
  PLN_TRY(pln_analyzer_new(e, &out->a));
  pln_analyzer_set_extensions(out->a, extensions);
  x->a = out->a;
  PLN_TRY(find_aliases(x));
  return pln_flow_list_events(x);
}

static pln_status find(pln_flow *x, uint32_t extensions, bool backward) {
  *x->out = (pln_buffer_flow){.g = x->g};
  pln_status status = begin(x, extensions);
  if (status == PLN_OK && backward)
    status = walk(x, true);
  if (status == PLN_OK)
    status = walk(x, false);
  free_flow(x);
  if (status != PLN_OK)
    pln_buffer_flow_free(x->out);
  return status;
}

pln_status pln_buffer_flow_find(const pln_graph *function, uint32_t extensions,
                                bool removing, pln_buffer_flow *out) {
  pln_flow x = {.g = function, .out = out, .removing = removing};
  return find(&x, extensions, removing);
}

/* Backwards branches are found whose stores are overwritten; forwards, in the
 * program that has these, those that store what is there. */
pln_status pln_buffer_flow_find_general(const pln_graph *function,
                                        bool dataflow, pln_buffer_flow *out) {
  pln_flow x = {
      .g = function, .out = out, .comparing = true, .blind = !dataflow};
  return find(&x, 0, dataflow);
}

void pln_buffer_flow_free(pln_buffer_flow *flow) {
  if (!flow->g)
    return;
  pln_engine *e = flow->g->engine;
  size_t n = flow->g->n_nodes;
  pln_mem_free(e, flow->value_of, n * sizeof *flow->value_of);
  pln_mem_free(e, flow->overwritten, n * sizeof *flow->overwritten);
  pln_mem_free(e, flow->redundant, n * sizeof *flow->redundant);
  pln_mem_free(e, flow->decided, n * sizeof *flow->decided);
  pln_mem_free(e, flow->general, n * sizeof *flow->general);
  if (flow->a)
    pln_analyzer_free(flow->a);
  *flow = (pln_buffer_flow){0};
}
