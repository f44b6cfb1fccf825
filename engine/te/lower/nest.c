/* nest.c: the loops of a stage. Definition: TVM 0.14, MakeLoopNest in
 * src/te/operation/op_utils.cc.
 *
 * First the leaves get their values, from which those of the root axes follow;
 * then statements are wrapped from the innermost loop outwards. A axis of one
 * round has no loop: its value is the start of its range. */

#include "te/te.h"

/* ------------------------------------------------------------------- values */

static bool is_skipped(const pln_te_state *s, const pln_te_nest *nest,
                       uint32_t axis) {
  return s->axes[axis].type == PLN_ITER_OPAQUE ||
         (nest->skip && pln_te_index(nest->skip, axis) != PLN_NONE);
}

/* The axis whose variable counts the rounds: a thread, or itself. */
static uint32_t counter(const pln_te_state *s, uint32_t axis) {
  uint32_t bind = s->axes[axis].bind;
  return bind == PLN_NONE ? axis : bind;
}

static const char *tag_of(const pln_te_state *s, uint32_t axis) {
  pln_symbol tag = s->axes[axis].tag;
  return tag ? pln_symbol_text(s->engine, tag).data : "";
}

static bool is_virtual(const char *tag) {
  return strcmp(tag, "vthread") == 0 || strcmp(tag, "cthread") == 0;
}

static pln_status loop_variable(pln_te_state *s, const pln_te_nest *nest,
                                uint32_t axis, pln_term *out) {
  pln_symbol name = s->axes[axis].name;
  bool from_0 = pln_is_value(s->a, s->axes[axis].low, 0);
  *out = s->axes[axis].var;
  if (!nest->init && from_0)
    return PLN_OK;
  PLN_TRY(pln_te_name(s, name, nest->init ? ".init" : ".idx", &name));
  return pln_te_var_new(s, name, pln_te_dtype(s, *out), out);
}

static pln_status thread_value(pln_te_state *s, const pln_te_nest *nest,
                               uint32_t axis, uint32_t thread) {
  const pln_te_axis *x = &s->axes[axis];
  const char *tag = tag_of(s, thread);
  bool one = pln_is_value(s->a, x->count, 1) && !nest->keep_trivial;
  if (!pln_is_value(s->a, x->low, 0))
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "schedule: axis '%s' of stage '%s' is bound to '%s' "
                          "and must start at 0",
                          pln_te_axis_name(s, axis),
                          pln_te_stage_name(s, nest->stage), tag);
  if (is_virtual(tag) && !pln_is_const(s->a, x->count))
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "schedule: axis '%s' of stage '%s' is bound to a "
                          "virtual thread and needs a constant extent",
                          pln_te_axis_name(s, axis),
                          pln_te_stage_name(s, nest->stage));
  pln_te_set_value(s, axis,
                   one && !is_virtual(tag) ? x->low : s->axes[thread].var);
  return PLN_OK;
}

/* *var: the variable of the axis's loop; PLN_NO_TERM: it has none. */
static pln_status loop_value(pln_te_state *s, const pln_te_nest *nest,
                             uint32_t axis, pln_term *var) {
  const pln_te_axis *x = &s->axes[axis];
  uint32_t count = counter(s, axis);
  *var = PLN_NO_TERM;
  if (is_skipped(s, nest, axis)) {
    pln_te_set_value(s, axis, x->var);
    return PLN_OK;
  }
  if (s->axes[count].tag)
    return thread_value(s, nest, axis, count);
  if (pln_is_value(s->a, x->count, 1) && !nest->keep_trivial) {
    pln_te_set_value(s, axis, x->low);
    return PLN_OK;
  }
  PLN_TRY(loop_variable(s, nest, axis, var));
  pln_te_set_value(s, axis,
                   pln_is_value(s->a, s->axes[axis].low, 0)
                       ? *var
                       : pln_add(s->a, s->axes[axis].low, *var));
  return PLN_OK;
}

/* A domain may depend on axes before it, which have values. */
static pln_term value_of(pln_te_state *s, const pln_te_nest *nest,
                         const pln_te_axis *x) {
  if ((!x->low || pln_is_const(s->a, x->low)) &&
      (!x->count || pln_is_const(s->a, x->count)))
    return x->value;
  return pln_te_substitute(s, x->value, nest->from.n, nest->from.items,
                           nest->to.items, false);
}

/* Values of all axes, for substitution. A value that is the variable itself is
 * left out. */
static pln_status list_values(pln_te_state *s, pln_te_nest *nest) {
  pln_te_list all = s->stages[nest->stage].all;
  for (uint32_t i = 0; i < all.n; i++) {
    const pln_te_axis *x = &s->axes[all.items[i]];
    if (!pln_te_has_value(s, all.items[i]) || x->value == x->var)
      continue;
    bool depends = x->type == PLN_ITER_COMM_REDUCE || x->nest != 0;
    pln_term value = depends ? value_of(s, nest, x) : x->value;
    if (!value)
      return s->a->status;
    PLN_TRY(pln_te_push(s, &nest->from, x->var));
    PLN_TRY(pln_te_push(s, &nest->to, value));
  }
  return PLN_OK;
}

/* Leaves before `first` keep the values that they have. */
pln_status pln_te_nest_make(pln_te_state *s, pln_te_nest *nest) {
  pln_te_list leaves = s->stages[nest->stage].leaves;
  for (uint32_t i = 0; i < leaves.n; i++) {
    pln_term var = PLN_NO_TERM;
    if (i >= nest->first)
      PLN_TRY(loop_value(s, nest, leaves.items[i], &var));
    PLN_TRY(pln_te_push(s, &nest->vars, var));
  }
  pln_te_pass_up_index(s, nest->stage);
  return list_values(s, nest);
}

/* --------------------------------------------------------------------- wrap */

static pln_term with_values(pln_te_state *s, const pln_te_nest *nest,
                            pln_term t) {
  return pln_te_substitute(s, t, nest->from.n, nest->from.items, nest->to.items,
                           true);
}

static pln_status for_attrs(pln_te_state *s, uint8_t loop, pln_attrs *out) {
  static const uint8_t kinds[] = {[PLN_ITER_UNROLLED] = 3,
                                  [PLN_ITER_VECTORIZED] = 2,
                                  [PLN_ITER_PARALLELIZED] = 1};
  pln_attr entry = {.kind = PLN_ATTR_INT};
  uint8_t kind = loop < PLN_COUNT(kinds) ? kinds[loop] : 0;
  *out = 0;
  if (kind == 0)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){"kind", 4}, &entry.name));
  entry.v.i = kind;
  return pln_attrs_make(s->engine, 1, &entry, out);
}

static pln_status wrap_loop(pln_te_state *s, const pln_te_nest *nest,
                            uint32_t axis, pln_term var, pln_ref *stmt) {
  const pln_te_axis *x = &s->axes[axis];
  pln_term terms[2] = {pln_const_like(s->a, var, 0),
                       with_values(s, nest, x->count)};
  pln_te_stmt loop = {
      .kind = PLN_FOR, .n = 2, .terms = terms, .param = var, .body = *stmt};
  PLN_TRY(for_attrs(s, x->loop, &loop.attrs));
  return pln_te_build(s, &loop, stmt);
}

static pln_status wrap_pragmas(pln_te_state *s, const pln_te_nest *nest,
                               uint32_t axis, pln_ref *stmt) {
  pln_te_list pragmas = s->axes[axis].pragmas;
  for (uint32_t i = pragmas.n; i > 0; i -= 2) {
    pln_symbol key;
    pln_term value = with_values(s, nest, pragmas.items[i - 1]);
    PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){"pragma_", 7}, &key));
    PLN_TRY(pln_te_name(
        s, key, pln_symbol_text(s->engine, pragmas.items[i - 2]).data, &key));
    PLN_TRY(pln_te_build_attr(s, pln_te_iter_var(s, axis),
                              pln_symbol_text(s->engine, key).data, value,
                              *stmt, stmt));
  }
  return PLN_OK;
}

static pln_status wrap_prefetches(pln_te_state *s, const pln_te_nest *nest,
                                  uint32_t axis, pln_term var, pln_ref *stmt) {
  pln_te_list list = s->axes[axis].prefetches;
  if (list.n > 0 && !var)
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "schedule: cannot prefetch on '%s', a loop of extent "
                          "1",
                          pln_te_axis_name(s, axis));
  for (uint32_t i = list.n; i > 0; i -= 2)
    PLN_TRY(pln_te_build_attr(
        s, pln_te_buffer(s, list.items[i - 2]), "prefetch_scope",
        with_values(s, nest, list.items[i - 1]), *stmt, stmt));
  return PLN_OK;
}

/* An outer loop may have opened the thread already. */
static bool is_open(const pln_te_state *s, const pln_te_nest *nest, uint32_t i,
                    uint32_t thread) {
  const pln_te_stage *g = &s->stages[nest->stage];
  for (uint32_t k = 0; k < i; k++)
    if (counter(s, g->leaves.items[k]) == thread &&
        pln_te_is_in_nest(s, g->leaves.items[i], g->leaves.items[k]))
      return true;
  for (uint32_t k = 0; k < g->path.n; k++)
    if (counter(s, g->path.items[k]) == thread)
      return true;
  return false;
}

static pln_status wrap_thread(pln_te_state *s, const pln_te_nest *nest,
                              uint32_t i, uint32_t axis, uint32_t thread,
                              pln_ref *stmt) {
  const char *tag = tag_of(s, thread), *key = "thread_extent";
  pln_dtype dtype = pln_te_dtype(s, s->axes[thread].var);
  if (is_virtual(tag))
    key = "virtual_thread";
  else if (strcmp(tag, "pipeline") == 0)
    key = "pipeline_exec_scope";
  else if (is_open(s, nest, i, thread))
    return PLN_OK;
  pln_term extent =
      pln_fold_cast(s->a, dtype, with_values(s, nest, s->axes[axis].count));
  return pln_te_build_attr(s, pln_te_iter_var(s, thread), key, extent, *stmt,
                           stmt);
}

pln_status pln_te_nest_wrap(pln_te_state *s, const pln_te_nest *nest,
                            uint32_t i, pln_ref *stmt) {
  uint32_t axis = s->stages[nest->stage].leaves.items[i];
  uint32_t count = counter(s, axis);
  pln_term var = nest->vars.items[i];
  if (is_skipped(s, nest, axis))
    return PLN_OK;
  if (s->axes[count].tag)
    return wrap_thread(s, nest, i, axis, count, stmt);
  PLN_TRY(wrap_prefetches(s, nest, axis, var, stmt));
  if (var)
    PLN_TRY(wrap_loop(s, nest, axis, var, stmt));
  return wrap_pragmas(s, nest, axis, stmt);
}

pln_status pln_te_nest_guard(pln_te_state *s, const pln_te_nest *nest,
                             pln_ref *stmt) {
  for (uint32_t i = nest->guards.n; i-- > 0;) {
    pln_term condition = with_values(s, nest, nest->guards.items[i]);
    pln_te_stmt test = {
        .kind = PLN_IF_THEN_ELSE, .n = 1, .terms = &condition, .body = *stmt};
    PLN_TRY(pln_te_build(s, &test, stmt));
  }
  return PLN_OK;
}
