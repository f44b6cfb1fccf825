/* scan_fix_point.c: which axes of a scan depend on nothing but themselves.
 *
 * Called by infer_bound.c, and for pln_te_scan_fix_points. An axis of a scan's
 * state is a fix point when what its update computes at an index reads the
 * state at the same index only, in all steps: then a part of the axis can be
 * computed alone. A class is axes of different outputs that read each other at
 * the same index; they are computed for one range.
 *
 * The axes of states are followed through what the updates read, producers
 * first. An axis of a stage follows an axis of the state which it indexes; an
 * index that is anything but an axis, or two axes of one output that meet, are
 * no fix points. Definition: ScanFixPointAnalysis of TVM 0.14's
 * src/te/schedule/graph.cc, which knows no classes. */

#include "te/te.h"

typedef struct fix_points {
  pln_te_state *s;
  /* By axis: that of a scan which it follows (PLN_NONE: none), the class (a
   * forest of axes of scans), what is known of it. */
  uint32_t *follows, *class_of;
  bool *failed;
  bool *computed; /* a part of an index that is more than an axis */
  /* By tensor: the scan whose state it is, PLN_NONE; its first such axis. */
  uint32_t *scan_of, *first;
  uint32_t consumer;
} fix_points;

/* ------------------------------------------------------------------- classes
 */

static uint32_t root_of(fix_points *f, uint32_t axis) {
  while (f->class_of[axis] != axis) {
    f->class_of[axis] = f->class_of[f->class_of[axis]];
    axis = f->class_of[axis];
  }
  return axis;
}

static void fail_class(fix_points *f, uint32_t axis) {
  if (axis != PLN_NONE)
    f->failed[root_of(f, axis)] = true;
}

/* A class is within one scan. */
static void join(fix_points *f, uint32_t a, uint32_t b) {
  a = root_of(f, a);
  b = root_of(f, b);
  f->class_of[b] = a;
  f->failed[a] |= f->failed[b] || f->s->axes[a].stage != f->s->axes[b].stage;
}

static void follow(fix_points *f, uint32_t axis, uint32_t of_scan) {
  if (f->follows[axis] == PLN_NONE)
    f->follows[axis] = of_scan;
  else
    join(f, f->follows[axis], of_scan);
}

/* --------------------------------------------------------------------- reads
 */

/* The axis of a scan that a dimension of a tensor follows; PLN_NONE. */
static uint32_t followed_by(const fix_points *f, uint32_t tensor, uint32_t i) {
  const pln_te_state *s = f->s;
  const pln_te_stage *g = &s->stages[s->tensors[tensor].stage];
  if (f->scan_of[tensor] != PLN_NONE)
    return i == 0 ? PLN_NONE
                  : s->stages[f->scan_of[tensor]]
                        .axis.items[f->first[tensor] + i - 1];
  return g->kind == PLN_TE_COMPUTE && i < g->axis.n
             ? f->follows[g->axis.items[i]]
             : PLN_NONE;
}

/* The axis of the consumer's dimensions that an index is; PLN_NONE. */
static uint32_t own_axis(const fix_points *f, pln_term index) {
  const pln_te_state *s = f->s;
  const pln_term_node *node = pln_at(s->a, index);
  if (node->kind != PLN_VAR)
    return PLN_NONE;
  uint32_t at = pln_idmap_get(s->axis_of, (uint64_t)node->u.value);
  bool own = at > 0 && s->axes[at - 1].stage == f->consumer &&
             s->axes[at - 1].type != PLN_ITER_COMM_REDUCE;
  return own ? at - 1 : PLN_NONE;
}

/* The axes of the consumer in an index are not those that it reads at. */
static void fail_parts(fix_points *f, pln_term index) {
  const pln_te_list *axis = &f->s->stages[f->consumer].axis;
  for (uint32_t i = 0; i < axis->n; i++)
    if (pln_term_uses(f->s->a, index, f->s->axes[axis->items[i]].var))
      f->computed[axis->items[i]] = true;
}

static pln_status note_read(void *ud, pln_te_state *s, pln_term load) {
  fix_points *f = ud;
  uint32_t tensor = pln_te_load_tensor(s, load);
  uint32_t rank = tensor == PLN_NONE ? 0 : pln_te_rank(s, tensor);
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t of_scan = followed_by(f, tensor, i);
    if (of_scan == PLN_NONE)
      continue;
    pln_term index = pln_term_operand(s->a, load, 1 + i);
    uint32_t own = own_axis(f, index);
    if (own != PLN_NONE) {
      follow(f, own, of_scan);
    } else {
      fail_class(f, of_scan);
      fail_parts(f, index);
    }
  }
  return s->a->status;
}

static pln_status visit_compute(fix_points *f) {
  pln_te_state *s = f->s;
  const pln_te_list body = s->stages[f->consumer].body;
  for (uint32_t i = 0; i < body.n; i++)
    PLN_TRY(pln_te_each_load(s, body.items[i], note_read, f));
  const pln_te_list *axis = &s->stages[f->consumer].axis;
  for (uint32_t i = 0; i < axis->n; i++)
    if (f->computed[axis->items[i]])
      fail_class(f, f->follows[axis->items[i]]);
  return PLN_OK;
}

/* A scan or an extern reads its tensors whole, a scan its own ones step by
 * step. */
static pln_status visit_other(fix_points *f) {
  pln_te_state *s = f->s;
  pln_te_list producers = {0};
  PLN_TRY(pln_te_producers(s, f->consumer, &producers));
  for (uint32_t i = 0; i < producers.n; i++) {
    const pln_te_stage *g = &s->stages[producers.items[i]];
    for (uint32_t k = 0; k < g->n_tensors; k++) {
      uint32_t tensor = g->first_tensor + k;
      for (uint32_t d = 0; d < pln_te_rank(s, tensor); d++) {
        uint32_t of_scan = followed_by(f, tensor, d);
        if (of_scan != PLN_NONE && s->axes[of_scan].stage != f->consumer)
          fail_class(f, of_scan);
      }
    }
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- scans
 */

/* The tensor of the scan's output `i` that is its init, update or state. */
enum { UPDATE = 1, STATE = 2 };
static uint32_t tensor_of(const pln_te_stage *scan, uint32_t which,
                          uint32_t i) {
  return scan->body.items[which * scan->n_tensors + i];
}

static void note_states(fix_points *f, uint32_t scan) {
  const pln_te_state *s = f->s;
  const pln_te_stage *g = &s->stages[scan];
  for (uint32_t i = 0, axis = 1; i < g->n_tensors; i++) {
    uint32_t state = tensor_of(g, STATE, i);
    f->scan_of[state] = scan;
    f->first[state] = axis;
    axis += pln_te_rank(s, state) - 1;
  }
}

/* What an update computes at an index must follow the same axis of the
 * state. */
static void compare_update(fix_points *f, const pln_te_stage *scan,
                           uint32_t i) {
  const pln_te_state *s = f->s;
  uint32_t update = tensor_of(scan, UPDATE, i);
  uint32_t first = f->first[tensor_of(scan, STATE, i)];
  for (uint32_t k = 1; k < pln_te_rank(s, update); k++) {
    uint32_t axis = scan->axis.items[first + k - 1];
    uint32_t other = followed_by(f, update, k);
    if (other == PLN_NONE)
      fail_class(f, axis);
    else
      join(f, axis, other);
  }
}

static bool same_domain(const pln_te_state *s, uint32_t a, uint32_t b) {
  return s->axes[a].min == s->axes[b].min &&
         s->axes[a].extent == s->axes[b].extent;
}

/* No fix points are two axes of an output in one class, and axes whose domain
 * is not that of the class and of the same dimension of the first output: what
 * is read of the outputs is known by dimension. */
static void check_classes(fix_points *f, const pln_te_stage *scan,
                          uint32_t *seen) {
  const pln_te_state *s = f->s;
  uint32_t most = pln_te_rank(s, tensor_of(scan, STATE, 0));
  for (uint32_t i = 0; i < scan->n_tensors; i++) {
    uint32_t state = tensor_of(scan, STATE, i), first = f->first[state];
    for (uint32_t k = 1; k < pln_te_rank(s, state); k++) {
      uint32_t axis = scan->axis.items[first + k - 1], root = root_of(f, axis);
      if (seen[root] == state + 1 || !same_domain(s, axis, root) || k >= most ||
          !same_domain(s, axis, scan->axis.items[k]))
        f->failed[root] = true;
      seen[root] = state + 1;
    }
  }
}

static void set_classes(fix_points *f, const pln_te_list *axis) {
  for (uint32_t i = 1; i < axis->n; i++) {
    uint32_t root = root_of(f, axis->items[i]);
    f->s->axes[axis->items[i]].fix_point = f->failed[root] ? 0 : 1 + root;
  }
}

static pln_status visit_stages(fix_points *f) {
  pln_te_state *s = f->s;
  for (uint32_t i = 0; i < s->order.n; i++) {
    f->consumer = s->order.items[i];
    const pln_te_stage *g = &s->stages[f->consumer];
    if (g->kind == PLN_TE_COMPUTE && g->attach != PLN_ATTACH_INLINED)
      PLN_TRY(visit_compute(f));
    else if (g->kind == PLN_TE_SCAN || g->kind == PLN_TE_EXTERN)
      PLN_TRY(visit_other(f));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- public
 */

static pln_status begin(fix_points *f) {
  pln_te_state *s = f->s;
  uint32_t n = s->n_axes + 1, m = s->n_tensors + 1;
  uint32_t *words =
      pln_arena_new(&s->arena, (2 * (size_t)n + 2 * (size_t)m) * sizeof *words);
  bool *flags = pln_arena_new(&s->arena, 2 * (size_t)n * sizeof *flags);
  if (!words || !flags)
    return pln_nomem(s->engine);
  *f = (fix_points){.s = s,
                    .follows = words,
                    .class_of = words + n,
                    .scan_of = words + 2 * n,
                    .first = words + 2 * n + m,
                    .failed = flags,
                    .computed = flags + n};
  memset(flags, 0, 2 * (size_t)n * sizeof *flags);
  for (uint32_t i = 0; i < n; i++) {
    f->follows[i] = PLN_NONE;
    f->class_of[i] = i;
  }
  for (uint32_t i = 0; i < m; i++)
    f->scan_of[i] = PLN_NONE;
  return PLN_OK;
}

static bool is_scan(const pln_te_state *s, uint32_t i) {
  return s->stages[s->order.items[i]].kind == PLN_TE_SCAN;
}

pln_status pln_te_find_fix_points(pln_te_state *s) {
  fix_points f = {.s = s};
  bool any = false;
  for (uint32_t i = 0; i < s->order.n; i++)
    any |= is_scan(s, i);
  if (!any)
    return PLN_OK;
  PLN_TRY(begin(&f));
  uint32_t *seen = pln_arena_new(&s->arena, (s->n_axes + 1) * sizeof *seen);
  if (!seen)
    return pln_nomem(s->engine);
  memset(seen, 0, (s->n_axes + 1) * sizeof *seen);
  for (uint32_t i = 0; i < s->order.n; i++)
    if (is_scan(s, i))
      note_states(&f, s->order.items[i]);
  PLN_TRY(visit_stages(&f));
  for (uint32_t i = 0; i < s->order.n; i++)
    if (is_scan(s, i))
      for (uint32_t k = 0; k < s->stages[s->order.items[i]].n_tensors; k++)
        compare_update(&f, &s->stages[s->order.items[i]], k);
  for (uint32_t i = 0; i < s->order.n; i++)
    if (is_scan(s, i)) {
      check_classes(&f, &s->stages[s->order.items[i]], seen);
      set_classes(&f, &s->stages[s->order.items[i]].axis);
    }
  return PLN_OK;
}

pln_status pln_te_scan_fix_points(pln_engine *engine, pln_te_op *scan,
                                  bool *is_fixed) {
  pln_te_state *s;
  if (pln_te_op_kind(scan) != PLN_TE_SCAN)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "te.scan_fix_point_analysis: '%s' is no scan",
                          pln_symbol_text(engine, pln_te_op_name(scan)).data);
  PLN_TRY(pln_te_state_new(engine, 1, &scan, &s));
  pln_status status = pln_te_find_fix_points(s);
  for (uint32_t i = 0; status == PLN_OK && i < s->order.n; i++) {
    const pln_te_stage *g = &s->stages[s->order.items[i]];
    for (uint32_t k = 1; g->op == scan && k < g->axis.n; k++)
      is_fixed[k] = s->axes[g->axis.items[k]].fix_point != 0;
  }
  is_fixed[0] = false;
  pln_te_state_free(s);
  return status;
}
