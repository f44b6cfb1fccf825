/* normalize.c: a schedule before its bounds are inferred: inlined stages are
 * substituted, loops begin at 0, attachments are at leaves. Definition: TVM
 * 0.14, Schedule.normalize. Works on a state that only lowering uses. */

#include "te/te.h"

/* ------------------------------------------------------------------- inline */

/* An expression whose loads of inlined stages are being replaced. */
typedef struct open_body {
  pln_term load, body;       /* the load that it is the value of; none: 0 */
  pln_te_list loads, values; /* what is replaced, and by what */
} open_body;

/* Bodies are opened on a stack. The value of a load is made once; it has no
 * loads of inlined stages. */
typedef struct inliner {
  pln_te_state *s;
  pln_idmap *known; /* a load: its value */
  open_body *stack;
  uint32_t n, cap;
} inliner;

/* The body of an inlined stage at the indices of a load. */
static pln_status body_at(pln_te_state *s, pln_term load, pln_term *out) {
  uint32_t producer = s->tensors[pln_te_load_tensor(s, load)].stage;
  const pln_te_stage *g = &s->stages[producer];
  uint32_t n = g->axis.n;
  pln_term *from = pln_arena_new(&s->arena, n * sizeof *from);
  pln_term *to = pln_arena_new(&s->arena, n * sizeof *to);
  if (!from || !to)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n; i++) {
    from[i] = s->axes[g->axis.items[i]].var;
    to[i] = pln_fold_cast(s->a, pln_te_dtype(s, from[i]),
                          pln_term_operand(s->a, load, 1 + i));
  }
  *out = pln_te_substitute(s, g->body.items[0], n, from, to, false);
  return s->a->status;
}

static pln_status collect_load(void *ud, pln_te_state *s, pln_term load) {
  open_body *x = ud;
  uint32_t tensor = pln_te_load_tensor(s, load);
  if (tensor == PLN_NONE ||
      s->stages[s->tensors[tensor].stage].attach != PLN_ATTACH_INLINED)
    return PLN_OK;
  return pln_te_push(s, &x->loads, load);
}

static pln_status open_value(inliner *x, pln_term load, pln_term body) {
  pln_te_state *s = x->s;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&x->stack, &x->cap, (size_t)x->n + 1,
                       sizeof *x->stack));
  x->stack[x->n] = (open_body){.load = load, .body = body};
  PLN_TRY(pln_te_each_load(s, body, collect_load, &x->stack[x->n]));
  x->n++;
  return PLN_OK;
}

/* The next load, whose indices may have loads that have values. */
static pln_term next_load(pln_te_state *s, const open_body *top) {
  pln_term load = top->loads.items[top->values.n];
  return top->values.n
             ? pln_te_replace_loads(s, load, top->values.n, top->loads.items,
                                    top->values.items)
             : load;
}

/* All loads have values. */
static pln_status close_value(inliner *x, pln_term *out) {
  const open_body *top = &x->stack[--x->n];
  *out = top->loads.n
             ? pln_te_replace_loads(x->s, top->body, top->loads.n,
                                    top->loads.items, top->values.items)
             : top->body;
  PLN_TRY(x->s->a->status);
  if (!top->load)
    return PLN_OK;
  return pln_idmap_set(x->known, top->load, *out);
}

static pln_status inline_step(inliner *x, pln_term *out) {
  open_body *top = &x->stack[x->n - 1];
  pln_term load, body = PLN_NO_TERM;
  if (top->values.n == top->loads.n)
    return close_value(x, out);
  load = next_load(x->s, top);
  PLN_TRY(x->s->a->status);
  pln_term value = pln_idmap_get(x->known, load);
  if (value)
    return pln_te_push(x->s, &top->values, value);
  PLN_TRY(body_at(x->s, load, &body));
  return open_value(x, load, body);
}

static pln_status inline_into(inliner *x, uint32_t stage) {
  pln_te_list *bodies = &x->s->stages[stage].body;
  for (uint32_t i = 0; i < bodies->n; i++) {
    pln_term value = bodies->items[i];
    PLN_TRY(open_value(x, PLN_NO_TERM, value));
    while (x->n > 0)
      PLN_TRY(inline_step(x, &value));
    bodies->items[i] = value;
  }
  return PLN_OK;
}

/* A scan, an extern and the call of an intrinsic read memory, which an inlined
 * tensor does not have. */
static pln_status check_reader(pln_te_state *s, uint32_t stage) {
  pln_te_list producers = {0};
  PLN_TRY(pln_te_producers(s, stage, &producers));
  for (uint32_t i = 0; i < producers.n; i++)
    if (s->stages[producers.items[i]].attach == PLN_ATTACH_INLINED)
      return pln_diag_error(
          s->engine, PLN_ERR_ARGUMENT, NULL,
          "schedule: stage '%s' is inlined, but '%s' reads it from memory",
          pln_te_stage_name(s, producers.items[i]),
          pln_te_stage_name(s, stage));
  return PLN_OK;
}

static pln_status inline_all(inliner *x) {
  pln_te_state *s = x->s;
  for (uint32_t i = 0; i < s->order.n; i++) {
    pln_te_stage *g = &s->stages[s->order.items[i]];
    if (g->attach == PLN_ATTACH_INLINE)
      g->attach = PLN_ATTACH_INLINED;
  }
  for (uint32_t i = 0; i < s->order.n; i++) {
    const pln_te_stage *g = &s->stages[s->order.items[i]];
    bool is_compute = g->kind == PLN_TE_COMPUTE && !g->call;
    if (is_compute && g->attach != PLN_ATTACH_INLINED)
      PLN_TRY(inline_into(x, s->order.items[i]));
    else if (!is_compute && g->kind != PLN_TE_PLACEHOLDER)
      PLN_TRY(check_reader(s, s->order.items[i]));
  }
  return PLN_OK;
}

/* Bodies of inlined stages stay as they are. */
static pln_status inline_stages(pln_te_state *s) {
  inliner x = {.s = s};
  PLN_TRY(pln_idmap_new(s->engine, &x.known));
  pln_status status = inline_all(&x);
  pln_idmap_free(x.known);
  pln_mem_free(s->engine, x.stack, x.cap * sizeof *x.stack);
  return status;
}

/* ------------------------------------------------------------------- rebase */

static pln_status rebase_axis(pln_te_state *s, uint32_t stage, uint32_t axis,
                              uint32_t at) {
  pln_te_axis old = s->axes[axis];
  uint32_t rebased;
  PLN_TRY(pln_te_axis_new(s, stage, old.name, pln_te_dtype(s, old.var),
                          (pln_iter_type)old.type, PLN_NO_TERM, PLN_NO_TERM,
                          &rebased));
  pln_te_axis *x = &s->axes[rebased];
  x->loop = old.loop;
  x->intrin = old.intrin;
  x->pragmas = old.pragmas;
  x->prefetches = old.prefetches;
  s->axes[axis].rebased = rebased;
  PLN_TRY(pln_te_relate(
      s, stage,
      (pln_te_relation){
          .kind = PLN_TE_REBASE, .a = axis, .b = rebased, .c = rebased}));
  s->stages[stage].leaves.items[at] = rebased;
  if (s->stages[stage].call == 1 + axis)
    s->stages[stage].call = 1 + rebased;
  return pln_te_push(s, &s->stages[stage].all, rebased);
}

static pln_status rebase_list(pln_te_state *s, uint32_t stage,
                              const pln_te_list *axes) {
  for (uint32_t i = 0; i < axes->n; i++) {
    uint32_t at = pln_te_index(&s->stages[stage].leaves, axes->items[i]);
    if (at != PLN_NONE && s->axes[axes->items[i]].bind == PLN_NONE)
      PLN_TRY(rebase_axis(s, stage, axes->items[i], at));
  }
  return PLN_OK;
}

static pln_status rebase_stages(pln_te_state *s) {
  for (uint32_t i = 0; i < s->n_axes; i++)
    s->axes[i].rebased = PLN_NONE;
  for (uint32_t i = 0; i < s->order.n; i++) {
    uint32_t stage = s->order.items[i];
    if (s->stages[stage].attach == PLN_ATTACH_INLINED ||
        s->stages[stage].kind == PLN_TE_EXTERN)
      continue;
    pln_te_list axis = s->stages[stage].axis;
    pln_te_list reduce = s->stages[stage].reduce;
    PLN_TRY(rebase_list(s, stage, &axis));
    PLN_TRY(rebase_list(s, stage, &reduce));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- attach */

/* The final for an axis that a later primitive used up: the inner part of what
 * was split; of what was fused, if it was the inner axis. */
static uint32_t loop_for(const pln_te_state *s, uint32_t stage, uint32_t axis) {
  const pln_te_stage *g = &s->stages[stage];
  for (uint32_t i = 0; i < g->n_relations; i++) {
    const pln_te_relation *r = &g->relations[i];
    if (r->kind == PLN_TE_SPLIT && r->a == axis)
      axis = r->c;
    else if (r->kind == PLN_TE_FUSE && r->c == axis)
      axis = r->a;
    else if (r->kind == PLN_TE_REBASE && r->a == axis)
      axis = r->b;
  }
  return axis;
}

static pln_status legalize(pln_te_state *s, uint32_t stage) {
  pln_te_stage *g = &s->stages[stage];
  if (g->attach != PLN_ATTACH_SCOPE)
    return PLN_OK;
  const pln_te_list *leaves = &s->stages[g->attach_stage].leaves;
  uint32_t final = loop_for(s, g->attach_stage, g->attach_axis);
  if (pln_te_index(leaves, final) == PLN_NONE)
    return pln_diag_error(
        s->engine, PLN_ERR_ARGUMENT, NULL,
        "schedule: did not find the attachment point of stage '%s': axis '%s' "
        "is no loop of '%s' any more",
        pln_te_stage_name(s, stage), pln_te_axis_name(s, g->attach_axis),
        pln_te_stage_name(s, g->attach_stage));
  if (s->stages[g->attach_stage].attach == PLN_ATTACH_INLINED)
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "schedule: stage '%s' is attached to '%s', which is "
                          "inlined",
                          pln_te_stage_name(s, stage),
                          pln_te_stage_name(s, g->attach_stage));
  g->attach_axis = final;
  return PLN_OK;
}

/* -------------------------------------------------------------------- scans */

static pln_status note_inits(pln_te_state *s, uint32_t scan) {
  const pln_te_stage *g = &s->stages[scan];
  for (uint32_t i = 0; i < g->n_tensors; i++) {
    uint32_t stage = s->tensors[g->body.items[i]].stage;
    if (s->stages[stage].scan != PLN_NONE && s->stages[stage].scan != scan)
      return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                            "schedule: '%s' is the init of two scans",
                            pln_te_stage_name(s, stage));
    s->stages[stage].scan = scan;
  }
  return PLN_OK;
}

static pln_status note_scans(pln_te_state *s) {
  for (uint32_t i = 0; i < s->n_stages; i++)
    s->stages[i].scan = PLN_NONE;
  for (uint32_t i = 0; i < s->order.n; i++)
    if (s->stages[s->order.items[i]].kind == PLN_TE_SCAN)
      PLN_TRY(note_inits(s, s->order.items[i]));
  return PLN_OK;
}

/* -------------------------------------------------------------------- paths */

/* An init is computed before the loop of its scan, where the scan is. */
static pln_status follow(pln_te_state *s, uint32_t stage, uint32_t *at,
                         bool *more) {
  const pln_te_stage *spec = &s->stages[pln_te_attach_spec(s, *at)];
  if (spec->attach == PLN_ATTACH_ROOT && s->stages[*at].scan != PLN_NONE) {
    *at = s->stages[*at].scan;
    return PLN_OK;
  }
  *more = spec->attach == PLN_ATTACH_SCOPE ||
          spec->attach == PLN_ATTACH_SCAN_UPDATE;
  if (!*more)
    return PLN_OK;
  bool inside = spec->attach == PLN_ATTACH_SCAN_UPDATE;
  uint32_t axis = spec->attach_axis;
  *at = spec->attach_stage;
  pln_te_list leaves = s->stages[*at].leaves;
  for (uint32_t i = leaves.n; i-- > 0;) {
    inside |= leaves.items[i] == axis;
    if (inside)
      PLN_TRY(pln_te_push(s, &s->stages[stage].path, leaves.items[i]));
  }
  return PLN_OK;
}

/* compute_at refuses cycles; a group may close one. */
static pln_status make_path(pln_te_state *s, uint32_t stage) {
  uint32_t at = stage;
  bool more = true;
  for (uint32_t n = 0; more; n++) {
    if (n > s->n_stages)
      return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                            "schedule: stage '%s' is attached in a loop of "
                            "groups",
                            pln_te_stage_name(s, stage));
    PLN_TRY(follow(s, stage, &at, &more));
  }
  return PLN_OK;
}

pln_status pln_te_normalize(pln_te_state *s) {
  PLN_TRY(inline_stages(s));
  PLN_TRY(rebase_stages(s));
  for (uint32_t i = 0; i < s->n_stages; i++)
    PLN_TRY(legalize(s, i));
  PLN_TRY(note_scans(s));
  for (uint32_t i = 0; i < s->order.n; i++)
    PLN_TRY(make_path(s, s->order.items[i]));
  return PLN_OK;
}
