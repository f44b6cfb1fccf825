/* group.c: groups of stages, which are attached together. Definition: TVM 0.14,
 * Schedule.create_group. */

#include "te/te.h"

/* ---------------------------------------------------------------- producers */

typedef struct producer_walk {
  pln_te_list *out;
} producer_walk;

static pln_status add_producer(pln_te_state *s, pln_te_list *out,
                               uint32_t stage) {
  return pln_te_index(out, stage) == PLN_NONE ? pln_te_push(s, out, stage)
                                              : PLN_OK;
}

static pln_status visit_load(void *ud, pln_te_state *s, pln_term load) {
  const producer_walk *w = ud;
  uint32_t tensor = pln_te_load_tensor(s, load);
  return tensor == PLN_NONE ? PLN_OK
                            : add_producer(s, w->out, s->tensors[tensor].stage);
}

/* The tensors of a scan and an extern, behind those that are not read. */
static pln_status listed_producers(pln_te_state *s, uint32_t stage,
                                   pln_te_list *out) {
  const pln_te_stage *g = &s->stages[stage];
  uint32_t n = g->n_tensors;
  uint32_t first = g->kind == PLN_TE_EXTERN ? (g->body.n - n) / 2 + n : 0;
  for (uint32_t i = first; i < g->body.n; i++) {
    uint32_t tensor = g->body.items[i];
    if (g->kind == PLN_TE_EXTERN)
      tensor = pln_te_tensor_of(s, tensor);
    PLN_TRY(add_producer(s, out, s->tensors[tensor].stage));
  }
  return PLN_OK;
}

pln_status pln_te_producers(pln_te_state *s, uint32_t stage, pln_te_list *out) {
  producer_walk w = {out};
  out->n = 0;
  if (s->stages[stage].kind != PLN_TE_COMPUTE)
    return listed_producers(s, stage, out);
  for (uint32_t i = 0; i < s->stages[stage].body.n; i++)
    PLN_TRY(
        pln_te_each_load(s, s->stages[stage].body.items[i], visit_load, &w));
  return PLN_OK;
}

/* ----------------------------------------------------------------- subgraph */

enum { NEEDED = 1, BOUNDARY = 2, REACHES = 4 };

typedef struct subgraph {
  pln_te_state *s;
  uint8_t *mark; /* by stage */
  pln_te_list *producers;
} subgraph;

static pln_status mark_needed(subgraph *x) {
  pln_te_state *s = x->s;
  for (uint32_t i = s->order.n; i-- > 0;) {
    uint32_t stage = s->order.items[i];
    pln_te_list *list = &x->producers[stage];
    if (!(x->mark[stage] & NEEDED) || (x->mark[stage] & BOUNDARY))
      continue;
    PLN_TRY(pln_te_producers(s, stage, list));
    for (uint32_t k = 0; k < list->n; k++)
      x->mark[list->items[k]] |= NEEDED;
  }
  return PLN_OK;
}

/* Stages from which the boundary is reached, in order. */
static pln_status collect(subgraph *x, bool include, pln_te_list *out) {
  pln_te_state *s = x->s;
  for (uint32_t i = 0; i < s->order.n; i++) {
    uint32_t stage = s->order.items[i];
    if (!(x->mark[stage] & NEEDED))
      continue;
    bool reaches = x->mark[stage] & BOUNDARY;
    for (uint32_t k = 0; k < x->producers[stage].n; k++)
      reaches |= (x->mark[x->producers[stage].items[k]] & REACHES) != 0;
    if (!reaches)
      continue;
    x->mark[stage] |= REACHES;
    if (!(x->mark[stage] & BOUNDARY) || include)
      PLN_TRY(pln_te_push(s, out, stage));
  }
  return PLN_OK;
}

static pln_status find_subgraph(pln_te_state *s, uint32_t n_outputs,
                                const uint32_t *outputs, uint32_t n_inputs,
                                const uint32_t *inputs, bool include,
                                pln_te_list *out) {
  subgraph x = {.s = s};
  x.mark = pln_arena_new(&s->arena, s->n_stages);
  x.producers = pln_arena_new(&s->arena, s->n_stages * sizeof *x.producers);
  if (!x.mark || !x.producers)
    return pln_nomem(s->engine);
  memset(x.mark, 0, s->n_stages);
  memset(x.producers, 0, s->n_stages * sizeof *x.producers);
  for (uint32_t i = 0; i < n_outputs; i++)
    x.mark[s->tensors[outputs[i]].stage] |= NEEDED;
  for (uint32_t i = 0; i < n_inputs; i++)
    x.mark[s->tensors[inputs[i]].stage] |= BOUNDARY;
  PLN_TRY(mark_needed(&x));
  return collect(&x, include, out);
}

/* ------------------------------------------------------------------ regroup */

static uint32_t depth_of(const pln_te_state *s, uint32_t group) {
  uint32_t depth = 0;
  for (; group != PLN_NONE; group = s->stages[group].group)
    depth++;
  return depth;
}

static uint32_t common_group(const pln_te_state *s, uint32_t x, uint32_t y) {
  uint32_t m = depth_of(s, x), n = depth_of(s, y);
  for (; m > n; m--)
    x = s->stages[x].group;
  for (; n > m; n--)
    y = s->stages[y].group;
  while (x != y) {
    x = s->stages[x].group;
    y = s->stages[y].group;
  }
  return x;
}

/* counts[g]: members of group g in the subgraph. Full groups count in their
 * own; what is not full would be cut in two. Groups are made after their
 * members' groups or before them, so that the counts settle in rounds. */
static pln_status check_groups(pln_te_state *s, const pln_schedule_step *step,
                               uint32_t parent, uint32_t *counts,
                               uint8_t *full) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t g = 0; g < s->n_stages; g++) {
      if (!s->stages[g].is_group || g == parent || full[g] || !counts[g] ||
          counts[g] != s->stages[g].n_children)
        continue;
      full[g] = 1;
      changed = true;
      if (s->stages[g].group != PLN_NONE && s->stages[g].group != parent)
        counts[s->stages[g].group]++;
    }
  }
  for (uint32_t g = 0; g < s->n_stages; g++)
    if (g != parent && counts[g] && !full[g])
      return pln_te_refuse(
          s, step, "the region intersects with a group that there is already");
  return PLN_OK;
}

static void move_to(pln_te_state *s, uint32_t stage, uint32_t parent,
                    uint32_t group) {
  s->stages[stage].group = group;
  s->stages[group].n_children++;
  if (parent != PLN_NONE)
    s->stages[parent].n_children--;
}

/* compute_at out of the group is dropped. */
static void correct_attachment(pln_te_state *s, uint32_t stage) {
  pln_te_stage *g = &s->stages[stage];
  if (g->attach != PLN_ATTACH_SCOPE)
    return;
  uint32_t common = common_group(s, s->stages[g->attach_stage].group, g->group);
  if (common == g->group)
    return;
  g->attach = PLN_ATTACH_ROOT;
  g->attach_stage = g->attach_axis = PLN_NONE;
  pln_diag_warn(s->engine, NULL,
                "schedule step %u: the group drops compute_at of "
                "stage '%s', which left it",
                s->step, pln_te_stage_name(s, stage));
}

static uint32_t parent_of(pln_te_state *s, const pln_te_list *members,
                          uint32_t *counts) {
  uint32_t parent = PLN_NONE;
  for (uint32_t i = 0; i < members->n; i++) {
    uint32_t group = s->stages[members->items[i]].group;
    parent = i == 0 ? group : common_group(s, parent, group);
    if (group != PLN_NONE)
      counts[group]++;
  }
  return parent;
}

static pln_status make_group(pln_te_state *s, uint32_t parent,
                             const pln_te_list *members, const uint8_t *full,
                             uint32_t *out) {
  pln_symbol name;
  uint32_t n = s->n_stages;
  PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){"group", 5}, &name));
  PLN_TRY(pln_te_stage_new(s, PLN_TE_COMPUTE, name, out));
  s->stages[*out].is_group = true;
  s->stages[*out].group = parent;
  if (parent != PLN_NONE)
    s->stages[parent].n_children++;
  for (uint32_t g = 0; g < n; g++)
    if (full[g] && s->stages[g].group == parent)
      move_to(s, g, parent, *out);
  for (uint32_t i = 0; i < members->n; i++)
    if (s->stages[members->items[i]].group == parent)
      move_to(s, members->items[i], parent, *out);
  for (uint32_t i = 0; i < members->n; i++)
    correct_attachment(s, members->items[i]);
  return PLN_OK;
}

pln_status pln_te_group(pln_te_state *s, const pln_schedule_step *step,
                        uint32_t n_outputs, const uint32_t *outputs,
                        uint32_t n_inputs, const uint32_t *inputs,
                        bool include_inputs, uint32_t *out) {
  pln_te_list members = {0};
  uint32_t n = s->n_stages;
  PLN_TRY(find_subgraph(s, n_outputs, outputs, n_inputs, inputs, include_inputs,
                        &members));
  uint32_t *counts = pln_arena_new(&s->arena, n * sizeof *counts);
  uint8_t *full = pln_arena_new(&s->arena, n);
  if (!counts || !full)
    return pln_nomem(s->engine);
  memset(counts, 0, n * sizeof *counts);
  memset(full, 0, n);
  if (members.n == 0)
    return pln_te_refuse(s, step, "no stage lies between the tensors");
  uint32_t parent = parent_of(s, &members, counts);
  PLN_TRY(check_groups(s, step, parent, counts, full));
  return make_group(s, parent, &members, full, out);
}

/* values: how many of the tensors are outputs; whether the inputs belong to
 * it. */
pln_status pln_te_create_group(pln_te_state *s, const pln_schedule_step *step) {
  uint32_t group;
  if (step->n_values != 2 || step->values[0].number < 1 ||
      step->values[0].number > step->n_tensors)
    return pln_te_refuse(s, step, "it needs tensors between which it lies");
  uint32_t n = (uint32_t)step->values[0].number;
  return pln_te_group(s, step, n, step->tensors, step->n_tensors - n,
                      step->tensors + n, step->values[1].number != 0, &group);
}
