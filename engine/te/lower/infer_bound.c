/* infer_bound.c: the range of every axis, from what consumers read. Definition:
 * TVM 0.14, src/te/schedule/bound.cc. Works on a normalised state. */

#include "te/te.h"

/* -------------------------------------------------------------------- reads */

/* What a stage reads, listed at the stages that are read. */
static pln_status note_region(pln_te_state *s, uint32_t consumer,
                              uint32_t producer, pln_term first,
                              pln_term last) {
  pln_te_list *loads = &s->stages[producer].loads;
  PLN_TRY(pln_te_push(s, loads, consumer));
  PLN_TRY(pln_te_push(s, loads, first));
  return pln_te_push(s, loads, last);
}

static pln_status note_load(void *ud, pln_te_state *s, pln_term load) {
  uint32_t tensor = pln_te_load_tensor(s, load);
  if (tensor == PLN_NONE)
    return PLN_OK;
  return note_region(s, *(const uint32_t *)ud, s->tensors[tensor].stage, load,
                     load);
}

static pln_status note_listed(pln_te_state *s, uint32_t consumer) {
  pln_te_list producers = {0};
  PLN_TRY(pln_te_producers(s, consumer, &producers));
  for (uint32_t i = 0; i < producers.n; i++)
    PLN_TRY(
        note_region(s, consumer, producers.items[i], PLN_NO_TERM, PLN_NO_TERM));
  return PLN_OK;
}

/* A call of an intrinsic reads what it names. */
static pln_status note_call(pln_te_state *s, uint32_t consumer) {
  pln_te_list regions = s->stages[consumer].regions;
  for (uint32_t i = 0; i < regions.n; i += 2) {
    uint32_t tensor = pln_te_load_tensor(s, regions.items[i]);
    PLN_TRY(note_region(s, consumer, s->tensors[tensor].stage, regions.items[i],
                        regions.items[i + 1]));
  }
  return PLN_OK;
}

static pln_status note_reads(pln_te_state *s) {
  for (uint32_t i = 0; i < s->order.n; i++) {
    uint32_t stage = s->order.items[i];
    const pln_te_stage *g = &s->stages[stage];
    if (g->attach == PLN_ATTACH_INLINED || g->kind == PLN_TE_PLACEHOLDER)
      continue;
    if (g->kind != PLN_TE_COMPUTE) {
      PLN_TRY(note_listed(s, stage));
      continue;
    }
    if (g->call) {
      PLN_TRY(note_call(s, stage));
      continue;
    }
    for (uint32_t k = 0; k < s->stages[stage].body.n; k++)
      PLN_TRY(pln_te_each_load(s, s->stages[stage].body.items[k], note_load,
                               &stage));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ threads */

typedef struct thread_scope {
  int rank, dim; /* dim -1: a virtual thread */
} thread_scope;

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static thread_scope scope_of_thread(const char *tag) {
  thread_scope t = {1, -1};
  if (begins(tag, "blockIdx."))
    t = (thread_scope){0, tag[9] - 'x'};
  else if (begins(tag, "threadIdx."))
    t = (thread_scope){1, tag[10] - 'x'};
  return t;
}

enum { GLOBAL = 0, SHARED = 1, WARP = 2, LOCAL = 3 };

static int rank_of_scope(const char *scope) {
  if (begins(scope, "shared"))
    return SHARED;
  if (begins(scope, "warp"))
    return WARP;
  return begins(scope, "local") ? LOCAL : begins(scope, "wmma") ? 4 : GLOBAL;
}

/* The tag of the thread that runs an axis, or NULL. */
static const char *tag_of(const pln_te_state *s, uint32_t axis) {
  const pln_te_axis *x = &s->axes[axis];
  if (x->bind != PLN_NONE)
    x = &s->axes[x->bind];
  return x->tag ? pln_symbol_text(s->engine, x->tag).data : NULL;
}

/* Without a scope: by the innermost kind of thread around the stage. */
static int storage_rank(const pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  int most = -1;
  if (g->scope && pln_symbol_text(s->engine, g->scope).size > 0)
    return rank_of_scope(pln_symbol_text(s->engine, g->scope).data);
  for (uint32_t i = 0; i < g->path.n; i++) {
    const char *tag = tag_of(s, g->path.items[i]);
    if (tag && strcmp(tag, "pipeline") != 0 && scope_of_thread(tag).rank > most)
      most = scope_of_thread(tag).rank;
  }
  return most < 0 ? GLOBAL : most == 0 ? SHARED : LOCAL;
}

bool pln_te_is_thread_memory(const pln_te_state *s, uint32_t stage) {
  return storage_rank(s, stage) != GLOBAL;
}

/* --------------------------------------------------------------- one reader */

/* What a producer's dimensions have to cover, while its readers are visited. */
typedef struct demand {
  pln_te_state *s;
  uint32_t producer, consumer;
  int rank; /* of the producer's storage */
  uint32_t n_dims;
  pln_interval *dims;  /* union of what is read; min PLN_NO_TERM: nothing yet */
  pln_te_list vars;    /* of the consumer's axes, and */
  pln_interval *sets;  /* the values that they have */
  pln_te_list relaxed; /* variables of loops around the consumer, and */
  pln_interval *relaxed_sets;
  pln_te_list outside; /* pairs: an axis of threads that are not around the
                        * producer, the stage that it belongs to */
} demand;

/* True if a loop of the producer runs over the same thread: then its threads
 * compute the region together, whatever its memory is. */
static bool shares_thread(const pln_te_state *s, uint32_t producer,
                          uint32_t axis) {
  const pln_te_list *leaves = &s->stages[producer].leaves;
  uint32_t thread = s->axes[axis].bind == PLN_NONE ? axis : s->axes[axis].bind;
  for (uint32_t i = 0; i < leaves->n; i++)
    if (s->axes[leaves->items[i]].bind == thread)
      return true;
  return false;
}

static bool needs_relaxation(const demand *d, uint32_t axis, bool found) {
  const pln_te_state *s = d->s;
  const char *tag = tag_of(s, axis);
  if (!tag || strcmp(tag, "pipeline") == 0)
    return !found;
  thread_scope t = scope_of_thread(tag);
  if (d->rank == WARP && t.rank == 1 && t.dim == 0)
    return true;
  return d->rank <= t.rank || shares_thread(s, d->producer, axis);
}

static pln_term thread_var(const pln_te_state *s, uint32_t axis) {
  const pln_te_axis *x = &s->axes[axis];
  return x->bind != PLN_NONE ? s->axes[x->bind].var : x->var;
}

/* Notes an axis whose thread the region is of, if it is not open there. */
static pln_status note_thread(demand *d, uint32_t axis, uint32_t stage) {
  const pln_te_state *s = d->s;
  const pln_te_list *path = &s->stages[d->producer].path;
  if (!tag_of(s, axis))
    return PLN_OK;
  for (uint32_t i = 0; i < path->n; i++)
    if (thread_var(s, path->items[i]) == thread_var(s, axis))
      return PLN_OK;
  PLN_TRY(pln_te_push(d->s, &d->outside, axis));
  return pln_te_push(d->s, &d->outside, stage);
}

static bool ends_use(pln_te_state *s, pln_interval set, pln_term var) {
  return (set.min && !pln_is_infinite(set.min) &&
          pln_term_uses(s->a, set.min, var)) ||
         (set.min && !pln_is_infinite(set.max) &&
          pln_term_uses(s->a, set.max, var));
}

/* A region that depends on a thread is computed within that thread. */
static pln_status check_threads(demand *d) {
  pln_te_state *s = d->s;
  for (uint32_t i = 0; i < d->outside.n; i += 2) {
    uint32_t axis = d->outside.items[i];
    for (uint32_t k = 0; k < d->n_dims; k++)
      if (ends_use(s, d->dims[k], thread_var(s, axis)))
        return pln_diag_error(
            s->engine, PLN_ERR_ARGUMENT, NULL,
            "schedule: the memory of stage '%s' belongs to a thread, but it is "
            "computed outside of '%s', to which axis '%s' of stage '%s' is "
            "bound: compute it at that axis",
            pln_te_stage_name(s, d->producer), tag_of(s, axis),
            pln_te_axis_name(s, axis),
            pln_te_stage_name(s, d->outside.items[i + 1]));
  }
  return s->a->status;
}

/* Extents are simplified at the end; (i + 1) - i is one round already. */
static bool is_one_round(pln_te_state *s, const pln_te_axis *x) {
  return pln_is_const(s->a, x->count)
             ? pln_is_value(s->a, x->count, 1)
             : pln_is_value(s->a, pln_simplify_term(s->a, x->count, 2), 1);
}

static pln_interval range_of(pln_te_state *s, uint32_t axis) {
  const pln_te_axis *x = &s->axes[axis];
  if (is_one_round(s, x))
    return (pln_interval){x->low, x->low};
  return (pln_interval){
      x->low, pln_add_const(s->a, pln_add(s->a, x->low, x->count), -1)};
}

static pln_status refuse_start(pln_te_state *s, uint32_t axis) {
  return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                        "schedule: the loop of '%s' must start at 0",
                        pln_te_axis_name(s, axis));
}

static pln_status set_loop_axis(demand *d, uint32_t axis, bool found) {
  pln_te_state *s = d->s;
  pln_te_axis *x = &s->axes[axis];
  if (!x->count)
    return pln_diag_error(s->engine, PLN_ERR_INVALID, NULL,
                          "schedule: the range of '%s' is unknown",
                          pln_te_axis_name(s, axis));
  bool point = is_one_round(s, x);
  pln_interval set = range_of(s, axis);
  if (!point && !needs_relaxation(d, axis, found)) {
    if (!pln_is_value(s->a, x->low, 0))
      return refuse_start(s, axis);
    PLN_TRY(note_thread(d, axis, d->consumer));
    x = &s->axes[axis];
    set = (pln_interval){thread_var(s, axis), thread_var(s, axis)};
  }
  x->set = set;
  x->set_at = s->stamp;
  return PLN_OK;
}

static bool is_around(const pln_te_state *s, uint32_t axis) {
  return s->axes[axis].path_at == s->path_stamp;
}

static pln_status set_leaves(demand *d, bool *found) {
  const pln_te_list *leaves = &d->s->stages[d->consumer].leaves;
  for (uint32_t i = leaves->n; i-- > 0;) {
    *found |= is_around(d->s, leaves->items[i]);
    PLN_TRY(set_loop_axis(d, leaves->items[i], *found));
  }
  return PLN_OK;
}

static pln_status relax_axis(demand *d, uint32_t axis) {
  pln_te_state *s = d->s;
  const pln_te_axis *x = &s->axes[axis];
  d->relaxed_sets[d->relaxed.n] = range_of(s, axis);
  PLN_TRY(pln_te_push(s, &d->relaxed, x->var));
  if (x->bind == PLN_NONE)
    return PLN_OK;
  d->relaxed_sets[d->relaxed.n] = range_of(s, axis);
  return pln_te_push(s, &d->relaxed, s->axes[x->bind].var);
}

/* The set while variables run over theirs. */
static pln_interval relax(demand *d, pln_interval set, const pln_te_list *vars,
                          const pln_interval *sets) {
  pln_analyzer *a = d->s->a;
  uint32_t n = vars->n;
  if (n == 0)
    return set;
  return (pln_interval){
      pln_interval_of(a, set.min, n, vars->items, sets, false).min,
      pln_interval_of(a, set.max, n, vars->items, sets, false).max};
}

/* The range of a loop may depend on loops around it, which follow it. */
static void relax_ranges(demand *d) {
  for (uint32_t i = d->relaxed.n; i-- > 0;) {
    pln_te_list outer = {.items = d->relaxed.items + i + 1,
                         .n = d->relaxed.n - i - 1};
    d->relaxed_sets[i] =
        relax(d, d->relaxed_sets[i], &outer, d->relaxed_sets + i + 1);
  }
}

/* Loops around the consumer that are inside of those around the producer. */
static pln_status relax_path(demand *d, bool *found) {
  pln_te_state *s = d->s;
  const pln_te_list *path = &s->stages[d->consumer].path;
  d->relaxed_sets =
      pln_arena_new(&s->arena, (2 * path->n + 1) * sizeof *d->relaxed_sets);
  if (!d->relaxed_sets)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < path->n; i++) {
    uint32_t axis = path->items[i];
    *found |= is_around(s, axis);
    if (!s->axes[axis].count || !pln_is_value(s->a, s->axes[axis].low, 0))
      return refuse_start(s, axis);
    if (needs_relaxation(d, axis, *found))
      PLN_TRY(relax_axis(d, axis));
    else
      PLN_TRY(note_thread(d, axis, s->axes[axis].stage));
  }
  relax_ranges(d);
  return PLN_OK;
}

/* A bounded set as a range; else the declared one. */
static pln_interval cover(pln_te_state *s, uint32_t axis, pln_interval set) {
  const pln_te_axis *x = &s->axes[axis];
  if (!pln_is_infinite(set.min) && !pln_is_infinite(set.max))
    return set;
  return (pln_interval){
      x->min, pln_add_const(s->a, pln_add(s->a, x->min, x->extent), -1)};
}

/* The axes of a scan but the first have no loops: what they cover is known. */
static pln_status set_root(demand *d, uint32_t axis) {
  pln_te_state *s = d->s;
  const pln_te_axis *x = &s->axes[axis];
  static const pln_interval all = {PLN_TERM_NEG_INF, PLN_TERM_POS_INF};
  pln_interval set = x->set_at == s->stamp ? x->set
                     : x->type == PLN_ITER_OPAQUE && x->count
                         ? range_of(s, axis)
                         : all;
  /* The domain of a reduction may depend on the axes before it. */
  set = relax(d, cover(s, axis, set), &d->vars, d->sets);
  d->sets[d->vars.n] = relax(d, set, &d->relaxed, d->relaxed_sets);
  return pln_te_push(s, &d->vars, x->var);
}

static pln_status set_roots(demand *d) {
  pln_te_state *s = d->s;
  const pln_te_stage *g = &s->stages[d->consumer];
  pln_te_list axis = g->axis, reduce = g->reduce;
  d->sets =
      pln_arena_new(&s->arena, (axis.n + reduce.n + 1u) * sizeof *d->sets);
  if (!d->sets)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < axis.n; i++)
    PLN_TRY(set_root(d, axis.items[i]));
  for (uint32_t i = 0; i < reduce.n; i++)
    PLN_TRY(set_root(d, reduce.items[i]));
  return PLN_OK;
}

/* -------------------------------------------------------------------- union */

static pln_term end_of(pln_te_state *s, pln_kind kind, pln_term x, pln_term y,
                       pln_term infinite) {
  if (pln_is_infinite(x) || pln_is_infinite(y))
    return infinite;
  return pln_simplify_term(s->a, pln_fold(s->a, kind, x, y), 2);
}

void pln_te_unite(pln_te_state *s, pln_interval *u, pln_interval set) {
  if (!u->min) {
    *u = set;
    return;
  }
  u->min = end_of(s, PLN_PRIM_MIN, u->min, set.min, PLN_TERM_NEG_INF);
  u->max = end_of(s, PLN_PRIM_MAX, u->max, set.max, PLN_TERM_POS_INF);
}

static void add_set(demand *d, uint32_t dim, pln_interval set) {
  pln_te_unite(d->s, &d->dims[dim], set);
}

static bool proves(pln_te_state *s, pln_kind kind, pln_term x, pln_term y) {
  return !pln_is_infinite(x) && !pln_is_infinite(y) &&
         pln_prove(s->a, pln_fold(s->a, kind, x, y), 0);
}

/* An index is inside of the tensor: its shape is taken where that is known to
 * be tighter, at both ends. */
pln_interval pln_te_clamp(pln_te_state *s, pln_interval set, pln_term dim) {
  pln_interval shape = {pln_const_like(s->a, dim, 0),
                        pln_add_const(s->a, dim, -1)};
  bool open = set.min == PLN_TERM_NEG_INF && set.max == PLN_TERM_POS_INF;
  if (open || (proves(s, PLN_PRIM_GE, shape.min, set.min) &&
               proves(s, PLN_PRIM_LE, shape.max, set.max)))
    return shape;
  return set;
}

pln_interval pln_te_region_dim(pln_te_state *s, pln_term first, pln_term last,
                               uint32_t i, const pln_te_list *vars,
                               const pln_interval *sets) {
  pln_interval at = pln_interval_of(s->a, pln_term_operand(s->a, first, 1 + i),
                                    vars->n, vars->items, sets, false);
  pln_interval end = pln_interval_of(s->a, pln_term_operand(s->a, last, 1 + i),
                                     vars->n, vars->items, sets, false);
  return (pln_interval){at.min, end.max};
}

/* From the first element of a region to its last one. */
static void add_region(demand *d, pln_term first, pln_term last) {
  pln_te_state *s = d->s;
  for (uint32_t i = 0; i < d->n_dims; i++) {
    pln_interval set = pln_te_region_dim(s, first, last, i, &d->vars, d->sets);
    add_set(d, i, set);
  }
}

static void add_load(demand *d, pln_term load) {
  pln_te_state *s = d->s;
  uint32_t tensor = pln_te_load_tensor(s, load);
  for (uint32_t i = 0; i < d->n_dims; i++) {
    pln_term index = pln_term_operand(s->a, load, 1 + i);
    pln_interval set =
        pln_interval_of(s->a, index, d->vars.n, d->vars.items, d->sets, false);
    add_set(d, i, pln_te_clamp(s, set, pln_te_dim(s, tensor, i)));
  }
}

static pln_interval whole_dim(pln_te_state *s, uint32_t tensor, uint32_t i) {
  pln_term dim = pln_te_dim(s, tensor, i);
  return (pln_interval){pln_const_like(s->a, dim, 0),
                        pln_add_const(s->a, dim, -1)};
}

/* The time of an update is the present one, that of an init its own. */
static void add_scan_tensor(demand *d, uint32_t k, uint32_t tensor,
                            uint32_t axis) {
  pln_te_state *s = d->s;
  for (uint32_t i = 0; i < d->n_dims; i++) {
    pln_interval set = i == 0 ? k == 0 ? whole_dim(s, tensor, 0) : d->sets[0]
                              : d->sets[axis + i - 1];
    add_set(d, i, set);
  }
}

static void add_scan(demand *d) {
  pln_te_state *s = d->s;
  const pln_te_stage *g = &s->stages[d->consumer];
  uint32_t n = g->n_tensors;
  for (uint32_t i = 0, axis = 1; i < n; i++) {
    for (uint32_t k = 0; k < 2; k++) {
      uint32_t tensor = g->body.items[k * n + i];
      if (s->tensors[tensor].stage == d->producer)
        add_scan_tensor(d, k, tensor, axis);
    }
    axis += pln_te_rank(s, g->first_tensor + i) - 1;
  }
  for (uint32_t i = 3 * n; i < g->body.n; i++)
    if (s->tensors[g->body.items[i]].stage == d->producer)
      for (uint32_t k = 0; k < d->n_dims; k++)
        add_set(d, k, whole_dim(s, g->body.items[i], k));
}

static void add_extern(demand *d) {
  pln_te_state *s = d->s;
  uint32_t tensor = s->stages[d->producer].first_tensor;
  for (uint32_t i = 0; i < d->n_dims; i++)
    add_set(d, i, whole_dim(s, tensor, i));
}

/* ------------------------------------------------------------- one producer */

/* Whether the consumer lies in the innermost loop around the producer: an outer
 * one alone is not enough. */
static bool is_inside(const pln_te_state *s, uint32_t producer,
                      uint32_t consumer) {
  const pln_te_list *path = &s->stages[producer].path;
  return path->n == 0 ||
         pln_te_index(&s->stages[consumer].leaves, path->items[0]) !=
             PLN_NONE ||
         pln_te_index(&s->stages[consumer].path, path->items[0]) != PLN_NONE;
}

static pln_status begin_reader(demand *d, uint32_t consumer) {
  pln_te_state *s = d->s;
  bool found = false;
  d->consumer = consumer;
  d->vars.n = d->relaxed.n = 0;
  pln_te_begin_walk(s);
  PLN_TRY(set_leaves(d, &found));
  PLN_TRY(relax_path(d, &found));
  if (!is_inside(s, d->producer, consumer))
    return pln_diag_error(
        s->engine, PLN_ERR_ARGUMENT, NULL,
        "invalid schedule: cannot find the producer '%s' along the loop nest "
        "that compute_at specifies for its consumer '%s'",
        pln_te_stage_name(s, d->producer), pln_te_stage_name(s, consumer));
  PLN_TRY(pln_te_pass_up_domain(s, consumer));
  return set_roots(d);
}

static void mark_path(pln_te_state *s, uint32_t stage) {
  const pln_te_list *path = &s->stages[stage].path;
  s->path_stamp++;
  for (uint32_t i = 0; i < path->n; i++)
    s->axes[path->items[i]].path_at = s->path_stamp;
}

static pln_status visit_readers(demand *d) {
  pln_te_state *s = d->s;
  pln_te_list loads = s->stages[d->producer].loads;
  uint32_t last = PLN_NONE;
  for (uint32_t i = 0; i < loads.n; i += 3) {
    uint32_t consumer = loads.items[i];
    if (consumer != last)
      PLN_TRY(begin_reader(d, consumer));
    last = consumer;
    if (s->stages[consumer].call)
      add_region(d, loads.items[i + 1], loads.items[i + 2]);
    else if (s->stages[consumer].kind == PLN_TE_COMPUTE)
      add_load(d, loads.items[i + 1]);
    else if (s->stages[consumer].kind == PLN_TE_SCAN)
      add_scan(d);
    else
      add_extern(d);
    PLN_TRY(s->a->status);
  }
  return PLN_OK;
}

static void set_declared(pln_te_state *s, const pln_te_list *axes) {
  for (uint32_t i = 0; i < axes->n; i++) {
    pln_te_axis *x = &s->axes[axes->items[i]];
    x->low = x->min;
    x->count = x->extent;
  }
}

static void set_covered(pln_te_state *s, uint32_t axis, pln_interval set) {
  pln_te_axis *x = &s->axes[axis];
  x->low = x->min;
  x->count = x->extent;
  if (!set.min || pln_is_infinite(set.min) || pln_is_infinite(set.max))
    return;
  pln_dtype dtype = pln_te_dtype(s, x->var);
  pln_term after = pln_add_const(s->a, set.max, 1);
  x->low = pln_fold_cast(s->a, dtype, set.min);
  x->count = pln_fold_cast(
      s->a, dtype, pln_simplify_term(s->a, pln_sub(s->a, after, set.min), 2));
}

/* Adds what is read of an axis to the set of its class. */
static void unite_class(pln_te_state *s, uint32_t axis, pln_interval set) {
  pln_te_axis *root = &s->axes[s->axes[axis].fix_point - 1];
  if (root->set_at != s->stamp)
    root->set = (pln_interval){0};
  root->set_at = s->stamp;
  if (set.min)
    pln_te_unite(s, &root->set, set);
}

/* Of fix points what consumers read of all axes of their class; other
 * dimensions are kept whole. */
static void gather_fix_points(demand *d) {
  pln_te_state *s = d->s;
  const pln_te_stage *g = &s->stages[d->producer];
  pln_te_begin_walk(s);
  for (uint32_t i = 0, at = 1; i < g->n_tensors; i++)
    for (uint32_t k = 1; k < pln_te_rank(s, g->first_tensor + i); k++, at++)
      if (s->axes[g->axis.items[at]].fix_point)
        unite_class(s, g->axis.items[at], d->dims[k]);
  for (uint32_t at = 1; at < g->axis.n; at++) {
    const pln_te_axis *x = &s->axes[g->axis.items[at]];
    if (x->fix_point)
      set_covered(s, g->axis.items[at], s->axes[x->fix_point - 1].set);
  }
}

/* A scan begins at its first step. */
static void gather_scan(demand *d) {
  pln_te_state *s = d->s;
  const pln_te_list *axis = &s->stages[d->producer].axis;
  set_declared(s, axis);
  gather_fix_points(d);
  pln_te_axis *x = &s->axes[axis->items[0]];
  pln_interval set = d->dims[0];
  if (!set.min || pln_is_infinite(set.max))
    return;
  pln_term after = pln_add_const(s->a, set.max, 1);
  x->count = pln_simplify_term(s->a, pln_sub(s->a, after, x->min), 2);
}

static pln_status gather(demand *d) {
  pln_te_state *s = d->s;
  const pln_te_stage *g = &s->stages[d->producer];
  if (g->kind == PLN_TE_SCAN)
    gather_scan(d);
  else if (g->kind == PLN_TE_COMPUTE)
    for (uint32_t i = 0; i < g->axis.n; i++)
      set_covered(s, g->axis.items[i], d->dims[i]);
  else
    set_declared(s, &g->axis);
  set_declared(s, &g->reduce);
  return s->a->status;
}

static pln_status infer_root(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  demand d = {.s = s, .producer = stage};
  if (g->is_output &&
      s->stages[pln_te_attach_spec(s, stage)].attach != PLN_ATTACH_ROOT)
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "schedule: output '%s' must be attached at root",
                          pln_te_stage_name(s, stage));
  if (g->is_output || g->kind == PLN_TE_PLACEHOLDER) {
    set_declared(s, &g->axis);
    set_declared(s, &g->reduce);
    return PLN_OK;
  }
  d.n_dims = pln_te_rank(s, g->first_tensor);
  d.dims = pln_arena_new(&s->arena, (d.n_dims + 1) * sizeof *d.dims);
  if (!d.dims)
    return pln_nomem(s->engine);
  memset(d.dims, 0, (d.n_dims + 1) * sizeof *d.dims);
  d.rank = storage_rank(s, stage);
  mark_path(s, stage);
  PLN_TRY(visit_readers(&d));
  PLN_TRY(check_threads(&d));
  return gather(&d);
}

/* -------------------------------------------------------------------- stages
 */

static pln_status bind_roots(pln_te_state *s, const pln_te_list *axes) {
  for (uint32_t i = 0; i < axes->n; i++) {
    const pln_te_axis *x = &s->axes[axes->items[i]];
    if (x->count)
      PLN_TRY(pln_analyzer_bind_range(s->a, x->var, x->low, x->count, true));
  }
  return PLN_OK;
}

static pln_status infer_stage(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  if (g->attach == PLN_ATTACH_INLINED)
    return PLN_OK;
  PLN_TRY(infer_root(s, stage));
  PLN_TRY(bind_roots(s, &s->stages[stage].axis));
  PLN_TRY(bind_roots(s, &s->stages[stage].reduce));
  const pln_te_list *threads = &s->stages[stage].threads;
  for (uint32_t i = 0; i < threads->n; i++)
    if (!s->axes[threads->items[i]].extent)
      return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                            "schedule: thread '%s' around stage '%s' needs an "
                            "extent",
                            pln_te_axis_name(s, threads->items[i]),
                            pln_te_stage_name(s, stage));
  set_declared(s, threads);
  return pln_te_pass_down_domain(s, stage, false);
}

static pln_status simplify_ranges(pln_te_state *s) {
  for (uint32_t i = 0; i < s->n_axes; i++) {
    pln_te_axis *x = &s->axes[i];
    if (!x->count)
      continue;
    pln_dtype dtype = pln_te_dtype(s, x->var);
    x->low = pln_fold_cast(s->a, dtype, pln_simplify_term(s->a, x->low, 2));
    x->count = pln_fold_cast(s->a, dtype, pln_simplify_term(s->a, x->count, 2));
  }
  return s->a->status;
}

pln_status pln_te_infer_bound(pln_te_state *s) {
  PLN_TRY(note_reads(s));
  PLN_TRY(pln_te_find_fix_points(s));
  for (uint32_t i = s->order.n; i-- > 0;)
    PLN_TRY(infer_stage(s, s->order.items[i]));
  return simplify_ranges(s);
}
