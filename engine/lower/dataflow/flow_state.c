/* flow_state.c: the facts of each pointer, and how bodies change them
 * (flow.h).
 *
 * Called by the other files of this folder. Facts are changed in place; a body
 * whose changes are taken back or joined has a frame, which records the facts
 * of a pointer before their first change. */

#include "lower/dataflow/flow.h"

static const flow_list no_facts;

const flow_list *pln_flow_facts(const pln_flow *x, uint32_t memory) {
  const flow_list *list = &x->lists[memory];
  return list->epoch == x->epoch ? list : &no_facts;
}

void pln_flow_forget_all(pln_flow *x) {
  x->epoch = ++x->epochs;
}

/* A body that changes too much makes everything unknown, before it too, so that
 * nothing of it must be taken back. */
static void drop_changes(pln_flow *x, const flow_frame *f) {
  if (x->n_changes - f->first_change <= FLOW_MOST_CHANGES)
    return;
  pln_flow_forget_all(x);
  x->floor = x->epoch;
  x->n_changes = f->first_change;
}

pln_status pln_flow_change(pln_flow *x, uint32_t memory, flow_list **list) {
  flow_frame *f = &x->frames[x->n_frames - 1];
  if (x->recorded[memory] != f->serial) {
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->changes, &x->cap_changes,
                         (size_t)x->n_changes + 1, sizeof *x->changes));
    x->changes[x->n_changes++] =
        (flow_change){memory, x->recorded[memory], x->lists[memory]};
    x->recorded[memory] = f->serial;
    drop_changes(x, f);
  }
  *list = &x->lists[memory];
  if ((*list)->epoch != x->epoch)
    **list = (flow_list){.epoch = x->epoch};
  return PLN_OK;
}

static void insert(flow_list *list, uint32_t fact) {
  uint32_t n = list->n < FLOW_MOST_FACTS ? list->n++ : FLOW_MOST_FACTS - 1;
  memmove(list->ids + 1, list->ids, n * sizeof *list->ids);
  list->ids[0] = fact;
}

pln_status pln_flow_learn(pln_flow *x, const flow_fact *fact) {
  uint32_t id, memory = fact->region.memory;
  flow_list *list;
  if (x->wild[memory] || x->blind)
    return PLN_OK;
  PLN_TRY(pln_flow_add_fact(x, fact, &id));
  x->facts[id].root = id;
  PLN_TRY(pln_flow_change(x, memory, &list));
  insert(list, id);
  return PLN_OK;
}

pln_status pln_flow_forget(pln_flow *x, const flow_region *r, pln_term guard) {
  flow_list kept = {.epoch = x->epoch}, *list;
  const flow_list now = *pln_flow_facts(x, r->memory);
  if (x->wild[r->memory]) {
    pln_flow_forget_all(x);
    return PLN_OK;
  }
  if (now.n == 0)
    return PLN_OK;
  for (uint32_t i = 0; i < now.n; i++) {
    uint32_t fact;
    PLN_TRY(pln_flow_exclude(x, now.ids[i], r, guard, &fact));
    if (fact != PLN_NONE)
      kept.ids[kept.n++] = fact;
  }
  if (kept.n == now.n &&
      memcmp(kept.ids, now.ids, now.n * sizeof *now.ids) == 0)
    return PLN_OK;
  PLN_TRY(pln_flow_change(x, r->memory, &list));
  kept.epoch = x->epoch;
  *list = kept;
  return PLN_OK;
}

pln_status pln_flow_forget_memory(pln_flow *x, uint32_t memory) {
  flow_list *list;
  if (pln_flow_facts(x, memory)->n == 0)
    return PLN_OK;
  PLN_TRY(pln_flow_change(x, memory, &list));
  *list = (flow_list){.epoch = x->epoch};
  return PLN_OK;
}

/* ------------------------------------------------------------------- frames
 */

pln_status pln_flow_push(pln_flow *x) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->frames, &x->cap_frames,
                       (size_t)x->n_frames + 1, sizeof *x->frames));
  x->frames[x->n_frames++] = (flow_frame){.serial = ++x->serials,
                                          .first_change = x->n_changes,
                                          .first_outcome = x->n_outcomes,
                                          .first_fact = x->n_facts,
                                          .epoch = x->epoch,
                                          .mark = x->a->n_scopes,
                                          .known = -1};
  return PLN_OK;
}

/* What the innermost frame recorded is a change in the one around it. */
void pln_flow_pop(pln_flow *x) {
  flow_frame *f = &x->frames[--x->n_frames];
  uint32_t outer = x->n_frames > 0 ? x->frames[x->n_frames - 1].serial : 0;
  uint32_t kept = f->first_change;
  pln_analyzer_leave(x->a, f->mark);
  for (uint32_t i = f->first_change; i < x->n_changes; i++) {
    flow_change c = x->changes[i];
    x->recorded[c.memory] = outer;
    if (c.recorded_by != outer)
      x->changes[kept++] = c;
  }
  x->n_changes = kept;
  x->n_outcomes = f->first_outcome;
  if (x->n_frames > 0)
    drop_changes(x, &x->frames[x->n_frames - 1]);
}

static pln_status add_outcome(pln_flow *x, const flow_change *c, uint32_t k) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->outcomes, &x->cap_outcomes,
                       (size_t)x->n_outcomes + 1, sizeof *x->outcomes));
  x->outcomes[x->n_outcomes++] =
      (flow_outcome){c->memory, k, c->before, *pln_flow_facts(x, c->memory)};
  return PLN_OK;
}

pln_status pln_flow_pop_branch(pln_flow *x, uint32_t k) {
  flow_frame f = x->frames[--x->n_frames];
  bool cleared = x->epoch != f.epoch;
  pln_analyzer_leave(x->a, f.mark);
  x->n_outcomes = f.first_outcome;
  for (uint32_t i = f.first_change; i < x->n_changes; i++) {
    flow_change c = x->changes[i];
    PLN_TRY(add_outcome(x, &c, k));
    x->lists[c.memory] = c.before;
    x->recorded[c.memory] = c.recorded_by;
  }
  x->n_changes = f.first_change;
  x->epoch = f.epoch < x->floor ? ++x->epochs : f.epoch;
  if (cleared)
    x->frames[x->n_frames - 1].cleared = true;
  return PLN_OK;
}

pln_status pln_flow_forget_var(pln_flow *x, pln_term var) {
  const flow_frame *f = &x->frames[x->n_frames - 1];
  for (uint32_t i = f->first_change; i < x->n_changes; i++) {
    flow_list *list = &x->lists[x->changes[i].memory];
    uint32_t n = 0;
    for (uint32_t k = 0; k < list->n; k++)
      if (!pln_flow_fact_uses(x, &x->facts[list->ids[k]], var))
        list->ids[n++] = list->ids[k];
    list->n = n;
  }
  return x->a->status;
}

/* -------------------------------------------------------------------- joins
 */

static uint32_t find_root(const pln_flow *x, const flow_list *list,
                          uint32_t root) {
  for (uint32_t i = 0; i < list->n; i++)
    if (x->facts[list->ids[i]].root == root)
      return list->ids[i];
  return PLN_NONE;
}

/* A fact of another root with the same contents. */
static uint32_t find_equal(const pln_flow *x, const flow_list *list,
                           uint32_t fact) {
  const flow_fact *f = &x->facts[fact];
  for (uint32_t i = 0; i < list->n; i++) {
    const flow_fact *h = &x->facts[list->ids[i]];
    if (memcmp(&f->region, &h->region, sizeof f->region) == 0 &&
        f->value == h->value && f->n_conditions == h->n_conditions &&
        memcmp(f->conditions, h->conditions,
               f->n_conditions * sizeof *f->conditions) == 0)
      return list->ids[i];
  }
  return PLN_NONE;
}

/* *fact with the conditions of `other` from the first on that differs, each of
 * them unless `excuse` holds (PLN_NO_TERM: always). */
static pln_status add_conditions(pln_flow *x, uint32_t *fact, uint32_t shared,
                                 uint32_t other, pln_term excuse) {
  uint32_t n = x->facts[other].n_conditions;
  for (uint32_t i = shared; i < n && *fact != PLN_NONE; i++) {
    pln_term c = x->facts[other].conditions[i];
    if (excuse)
      c = pln_fold(x->a, PLN_PRIM_OR, excuse, c);
    PLN_TRY(x->a->status);
    PLN_TRY(pln_flow_limit(x, *fact, c, fact));
  }
  return PLN_OK;
}

/* The fact that holds after either of two forms of one fact. */
static pln_status join_forms(pln_flow *x, uint32_t then, uint32_t other,
                             pln_term condition, pln_term negated,
                             uint32_t *out) {
  uint32_t shared = 0;
  const flow_fact *f = &x->facts[then], *h = &x->facts[other];
  while (shared < f->n_conditions && shared < h->n_conditions &&
         f->conditions[shared] == h->conditions[shared])
    shared++;
  if (then == other) {
    *out = then;
    return PLN_OK;
  }
  flow_fact both = *f;
  both.n_conditions = shared;
  PLN_TRY(pln_flow_add_fact(x, &both, out));
  PLN_TRY(add_conditions(x, out, shared, then, negated));
  return *out == PLN_NONE ? PLN_OK
                          : add_conditions(x, out, shared, other, condition);
}

typedef struct joined {
  flow_list list;
  pln_term condition, negated; /* PLN_NO_TERM: not known */
} joined;

static pln_status join_one(pln_flow *x, joined *j, uint32_t fact,
                           const flow_list *other, bool is_then) {
  uint32_t match = find_root(x, other, x->facts[fact].root), out = PLN_NONE;
  pln_term condition = is_then ? j->condition : j->negated;
  if (match != PLN_NONE) {
    if (is_then)
      PLN_TRY(join_forms(x, fact, match, j->condition, j->negated, &out));
  } else if (find_equal(x, other, fact) != PLN_NONE) {
    out = is_then ? fact : PLN_NONE;
  } else if (condition) {
    PLN_TRY(pln_flow_limit(x, fact, condition, &out));
  }
  if (out != PLN_NONE && j->list.n < FLOW_MOST_FACTS)
    j->list.ids[j->list.n++] = out;
  return PLN_OK;
}

static pln_status join_lists(pln_flow *x, joined *j, const flow_list *then,
                             const flow_list *other) {
  for (uint32_t i = 0; i < then->n; i++)
    PLN_TRY(join_one(x, j, then->ids[i], other, true));
  for (uint32_t i = 0; i < other->n; i++)
    PLN_TRY(join_one(x, j, other->ids[i], then, false));
  return PLN_OK;
}

static flow_list valid(const pln_flow *x, flow_list list) {
  return list.epoch == x->epoch ? list : no_facts;
}

/* The outcome of the other branch for the same pointer, or NULL. */
static const flow_outcome *other_outcome(const pln_flow *x, uint32_t first,
                                         uint32_t i) {
  for (uint32_t k = first; k < x->n_outcomes; k++)
    if (k != i && x->outcomes[k].memory == x->outcomes[i].memory)
      return &x->outcomes[k];
  return NULL;
}

static pln_status join_outcome(pln_flow *x, uint32_t first, uint32_t i,
                               pln_term condition, pln_term negated,
                               int known) {
  const flow_outcome o = x->outcomes[i];
  const flow_outcome *other = other_outcome(x, first, i);
  joined j = {.condition = condition, .negated = negated};
  flow_list side[2], *list;
  if (other && other < &x->outcomes[i])
    return PLN_OK; /* joined with that */
  side[0] = side[1] = valid(x, o.before);
  side[o.branch] = valid(x, o.after);
  if (other)
    side[other->branch] = valid(x, other->after);
  if (known >= 0)
    j.list = side[known ? 0 : 1];
  else
    PLN_TRY(join_lists(x, &j, &side[0], &side[1]));
  PLN_TRY(pln_flow_change(x, o.memory, &list));
  j.list.epoch = x->epoch;
  *list = j.list;
  return PLN_OK;
}

pln_status pln_flow_join(pln_flow *x) {
  flow_frame f = x->frames[x->n_frames - 1];
  pln_term negated = PLN_NO_TERM;
  uint32_t n = f.cleared ? f.first_outcome : x->n_outcomes;
  if (f.cleared)
    pln_flow_forget_all(x);
  if (f.condition)
    negated = pln_rewrite_term(x->a, pln_fold_not(x->a, f.condition));
  PLN_TRY(x->a->status);
  for (uint32_t i = f.first_outcome; i < n; i++)
    PLN_TRY(join_outcome(x, f.first_outcome, i, f.condition, negated, f.known));
  pln_flow_pop(x);
  return PLN_OK;
}
