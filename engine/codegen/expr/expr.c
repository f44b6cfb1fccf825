/* expr.c: writes PrimExprs.
 *
 * Called by stmt.c for each task of an expression. A node is written once in a
 * statement; what a conditional value needs is written under its condition,
 * once more if others need it too. */

#include "codegen/writer.h"

static const pln_ref *operands_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

void pln_c_push(pln_cw *w, pln_c_task task) {
  if (w->status != PLN_OK)
    return;
  pln_c_fail(w, pln_mem_grow(w->engine, (void **)&w->tasks, &w->cap_tasks,
                             (size_t)w->n_tasks + 1, sizeof *w->tasks));
  if (w->status == PLN_OK)
    w->tasks[w->n_tasks++] = task;
}

void pln_c_push_expr(pln_cw *w, pln_ref ref) {
  pln_c_push(w, (pln_c_task){.what = PLN_C_EXPR, .ref = ref});
}

void pln_c_push_exprs(pln_cw *w, uint32_t n, const pln_ref *refs) {
  for (uint32_t i = n; i-- > 0;)
    pln_c_push_expr(w, refs[i]);
}

/* -------------------------------------------------------------- conditions */

const char *pln_c_label(pln_cw *w, uint32_t label) {
  return pln_c_textf(w, PLN_C_NAME, "L%u", label).data;
}

/* Compilers limit how deep blocks nest: clang to 256. Below that depth, control
 * flow is written with labels. */
void pln_c_open_if(pln_cw *w, pln_c_task *task, const char *condition) {
  task->flat = w->depth >= PLN_C_MOST_NEST;
  if (task->flat) {
    task->x = w->n_labels;
    w->n_labels += 2;
    pln_c_line(w, "if (!(%s))", condition);
    pln_c_line(w, "  goto L%u;", task->x);
  } else {
    pln_c_line(w, "if (%s) {", condition);
    w->depth++;
  }
}

void pln_c_else(pln_cw *w, pln_c_task *task) {
  if (task->flat) {
    pln_c_line(w, "goto L%u;", task->x + 1);
    pln_c_line(w, "L%u:;", task->x++);
  } else {
    w->depth--;
    pln_c_line(w, "} else {");
    w->depth++;
  }
}

void pln_c_close_if(pln_cw *w, pln_c_task *task) {
  if (task->flat) {
    pln_c_line(w, "L%u:;", task->x);
  } else {
    w->depth--;
    pln_c_line(w, "}");
  }
}

/* A value of which only one operand may be evaluated. It is written as an if
 * that assigns a variable; where the operands need no statements, that is taken
 * back and a conditional expression is written. */
void pln_c_visit_branch(pln_cw *w, pln_ref ref) {
  pln_c_push(w, (pln_c_task){.what = PLN_C_BRANCH, .ref = ref});
  pln_c_push_expr(w, operands_of(w, ref)[0]);
}

static bool is_logic(const pln_cw *w, pln_ref ref) {
  return w->g->nodes[ref].kind == PLN_PRIM_AND ||
         w->g->nodes[ref].kind == PLN_PRIM_OR;
}

static pln_c_text condition_of(pln_cw *w, pln_ref ref) {
  pln_c_value value = pln_c_value_of(w, ref);
  return pln_c_text_at(w, &value, 0);
}

/* Declares the variables of a result, one for each chunk from y on. */
static uint32_t declare_result(pln_cw *w, pln_ref ref) {
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  uint32_t lanes = pln_prim_lanes(w->g, ref), first = w->n_temps;
  uint32_t n = pln_c_n_chunks(w, lanes);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t part = pln_c_chunk_lanes(w, lanes, i);
    const char *type =
        pln_c_chunk_type(w, dtype, dtype == PLN_BOOL && part > 1, part);
    const char *end = type[strlen(type) - 1] == '*' ? "" : " ";
    pln_c_line(w, "%s%s%s;", type, end, pln_c_temp(w));
  }
  return first;
}

static pln_c_value plain_masked(pln_cw *w, pln_ref ref) {
  return pln_c_mask_as(w, pln_c_plain(w, pln_c_value_of(w, ref)), 1);
}

static void assign_result(pln_cw *w, uint32_t first, pln_ref from) {
  pln_c_value value = plain_masked(w, from);
  for (uint32_t i = 0; i < value.count; i++)
    pln_c_line(w, "t%u = %s;", first + i, pln_c_text_at(w, &value, i).data);
}

static pln_c_value result_value(pln_cw *w, pln_ref ref, uint32_t first) {
  uint32_t lanes = pln_prim_lanes(w->g, ref);
  pln_c_value out =
      pln_c_new_value(w, pln_prim_dtype(w->g, ref), lanes, PLN_C_PLAIN);
  out.mask = out.dtype == PLN_BOOL && lanes > 1 && w->width > 1;
  for (uint32_t i = 0, n = pln_c_n_chunks(w, lanes); i < n; i++)
    pln_c_add_text(w, &out, pln_c_textf(w, PLN_C_NAME, "t%u", first + i));
  return out;
}

/* And, Or: the second operand is evaluated if the first does not decide. */
static void branch_logic(pln_cw *w, pln_c_task task) {
  bool is_and = w->g->nodes[task.ref].kind == PLN_PRIM_AND;
  pln_c_text first = condition_of(w, operands_of(w, task.ref)[0]);
  task.at = w->out->size;
  task.y = declare_result(w, task.ref);
  pln_c_line(w, "t%u = %s;", task.y, first.data);
  pln_c_open_if(
      w, &task,
      pln_c_textf(w, PLN_C_NAME, is_and ? "t%u" : "!t%u", task.y).data);
  task.end = w->out->size;
  task.what = PLN_C_JOIN;
  task.k = 1;
  task.mark = w->n_log;
  pln_c_push(w, task);
  pln_c_push_expr(w, operands_of(w, task.ref)[1]);
}

static void branch(pln_cw *w, pln_c_task task) {
  if (is_logic(w, task.ref)) {
    branch_logic(w, task);
    return;
  }
  pln_c_text condition = condition_of(w, operands_of(w, task.ref)[0]);
  task.at = w->out->size;
  task.y = declare_result(w, task.ref);
  pln_c_open_if(w, &task, condition.data);
  task.end = w->out->size;
  task.what = PLN_C_OTHERWISE;
  task.mark = w->n_log;
  pln_c_push(w, task);
  pln_c_push_expr(w, operands_of(w, task.ref)[1]);
}

/* k: 3 if the first operand needed no statements; `first`: its value, which a
 * conditional expression may need. */
static void otherwise(pln_cw *w, pln_c_task task) {
  pln_ref first = operands_of(w, task.ref)[1];
  bool plain = w->out->size == task.end;
  task.first = pln_c_keep(w, pln_c_value_of(w, first));
  assign_result(w, task.y, first);
  pln_c_forget(w, task.mark);
  pln_c_else(w, &task);
  task.what = PLN_C_JOIN;
  task.k = plain ? 3 : 2;
  task.end = w->out->size;
  pln_c_push(w, task);
  pln_c_push_expr(w, operands_of(w, task.ref)[2]);
}

/* Whether a value may be an operand of a conditional expression. */
static bool is_short(const pln_cw *w, const pln_c_value *value) {
  return value->lanes == 1 && pln_c_text_at(w, value, 0).size < 80;
}

static pln_c_text conditional(pln_cw *w, pln_ref ref, const pln_c_value *first,
                              const pln_c_value *second) {
  const pln_ref *o = operands_of(w, ref);
  pln_c_text c = condition_of(w, o[0]), b = pln_c_text_at(w, second, 0), text;
  if (is_logic(w, ref)) {
    text = pln_c_textf(w, PLN_C_COMPOUND, "%s %s %s", pln_c_arg(w, c),
                       w->g->nodes[ref].kind == PLN_PRIM_AND ? "&&" : "||",
                       pln_c_arg(w, b));
  } else {
    pln_c_text a = pln_c_text_at(w, first, 0);
    text = pln_c_textf(w, PLN_C_COMPOUND, "%s ? %s : %s", pln_c_arg(w, c),
                       pln_c_arg(w, a), pln_c_arg(w, b));
  }
  text.reads = true;
  return text;
}

static void join(pln_cw *w, pln_c_task task, const pln_c_value *first) {
  uint32_t k = task.k == 1 ? 1 : 2;
  pln_ref last = operands_of(w, task.ref)[k];
  pln_c_value second = pln_c_value_of(w, last), out;
  bool plain = task.k != 2 && w->out->size == task.end &&
               is_short(w, &second) && (k == 1 || is_short(w, first));
  if (plain && w->status == PLN_OK) {
    w->depth -= !task.flat;
    w->out->size = task.at;
    out = pln_c_scalar(w, pln_prim_dtype(w->g, task.ref),
                       conditional(w, task.ref, first, &second));
  } else {
    assign_result(w, task.y, last);
    pln_c_close_if(w, &task);
    out = result_value(w, task.ref, task.y);
  }
  pln_c_forget(w, task.mark);
  pln_c_set(w, task.ref, out);
}

/* -------------------------------------------------------------------- lets */

static void let_body(pln_cw *w, pln_c_task task) {
  const pln_ref *o = operands_of(w, task.ref);
  pln_c_value value = pln_c_named(w, pln_c_value_of(w, o[1]));
  pln_c_bind(w, o[0], value);
  task.what = PLN_C_LET_END;
  task.mark = w->n_log;
  pln_c_push(w, task);
  pln_c_push_expr(w, o[2]);
}

/* What depends on the variable is forgotten: another let may bind it again. */
static void let_end(pln_cw *w, pln_c_task task) {
  const pln_ref *o = operands_of(w, task.ref);
  pln_c_value value = pln_c_value_of(w, o[2]);
  pln_c_forget(w, task.mark);
  pln_c_unbind(w, o[0]);
  pln_c_set(w, task.ref, value);
}

/* ----------------------------------------------------------------- vectors */

static void ramp(pln_cw *w, pln_ref ref) {
  const pln_ref *o = operands_of(w, ref);
  pln_c_value base = pln_c_value_of(w, o[0]), step = pln_c_value_of(w, o[1]);
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  if (base.dtype == PLN_INT64)
    dtype = PLN_INT64; /* a wide term of an index */
  pln_c_value out = pln_c_new_value(
      w, dtype, w->g->nodes[ref].data * w->n_merged, PLN_C_RAMP);
  if (!pln_c_is_int(dtype) || dtype == PLN_BOOL) {
    pln_c_refuse(w, "a Ramp of %s", pln_dtype_name(dtype));
    return;
  }
  int64_t last = (int64_t)out.lanes - 1, ends[2];
  bool fits =
      !__builtin_mul_overflow(step.lo, last, &ends[0]) &&
      !__builtin_mul_overflow(step.hi, last, &ends[1]) &&
      !__builtin_add_overflow(base.lo, ends[0] < 0 ? ends[0] : 0, &ends[0]) &&
      !__builtin_add_overflow(base.hi, ends[1] > 0 ? ends[1] : 0, &ends[1]);
  if (fits && ends[0] >= out.lo && ends[1] <= out.hi) {
    out.lo = ends[0];
    out.hi = ends[1];
  }
  out.step_lo = step.lo;
  out.step_hi = step.hi;
  pln_c_add_text(w, &out, pln_c_text_at(w, &base, 0));
  pln_c_add_text(w, &out, pln_c_text_at(w, &step, 0));
  pln_c_set(w, ref, out);
}

static void broadcast(pln_cw *w, pln_ref ref) {
  pln_c_value value = pln_c_value_of(w, operands_of(w, ref)[0]);
  pln_c_value out = value;
  out.lanes = w->g->nodes[ref].data * w->n_merged;
  out.form = PLN_C_SPLAT;
  if (value.lanes > 1)
    pln_c_refuse(w, "a Broadcast of a vector");
  pln_c_set(w, ref, out);
}

/* Lanes of several vectors behind each other, by constant indices. */
static void shuffle(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_ref *o = operands_of(w, ref);
  uint32_t lanes = n->count - n->data, total = 0;
  pln_c_text *all;
  for (uint32_t i = 0; i < n->data; i++)
    total += pln_prim_lanes(w->g, o[i]);
  all = pln_arena_new(&w->arena, (total + lanes + 1) * sizeof *all);
  if (!all) {
    pln_c_fail(w, pln_nomem(w->engine));
    return;
  }
  for (uint32_t i = 0, at = 0; i < n->data; i++) {
    pln_c_value part = pln_c_named(w, pln_c_plain(w, pln_c_value_of(w, o[i])));
    for (uint32_t k = 0; k < pln_prim_lanes(w->g, o[i]); k++)
      all[at++] = pln_c_lane(w, &part, k);
  }
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  pln_c_value out = pln_c_new_value(w, dtype, lanes, PLN_C_PLAIN);
  out.mask = dtype == PLN_BOOL && lanes > 1 && w->width > 1;
  for (uint32_t i = 0; i < lanes; i++) {
    pln_c_value index = pln_c_value_of(w, o[n->data + i]);
    int64_t at;
    if (!pln_c_is_const(&index, &at) || at < 0 || at >= (int64_t)total) {
      pln_c_refuse(w, "a Shuffle by an index that is not known");
      return;
    }
    all[total + i] = all[at];
  }
  for (uint32_t i = 0, at = 0; at < lanes; i++) {
    uint32_t part = pln_c_chunk_lanes(w, lanes, i);
    pln_c_add_text(w, &out,
                   pln_c_chunk_from_lanes(w, dtype, out.mask && part > 1, part,
                                          all + total + at));
    at += part;
  }
  pln_c_set(w, ref, out);
}

/* ------------------------------------------------------------------- nodes */

static void immediate(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  pln_c_value value;
  if (n->kind == PLN_INT_IMM)
    value = pln_c_int_value(w, dtype, (int64_t)pln_imm_bits(n));
  else if (n->kind == PLN_FLOAT_IMM)
    value = pln_c_scalar(
        w, dtype,
        pln_c_rounded(w, dtype,
                      pln_c_float(w, dtype, pln_node_float(w->g, ref))));
  else
    value = pln_c_scalar(w, PLN_DTYPE_NONE, pln_c_textf(w, PLN_C_NAME, "0"));
  pln_c_set(w, ref, value);
}

static bool branches(const pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_ref *o = operands_of(w, ref);
  if (pln_prim_lanes(w->g, o[0]) != 1)
    return false;
  return n->kind == PLN_SELECT ? w->unsafe[o[1]] || w->unsafe[o[2]]
                               : w->unsafe[o[1]];
}

static void operands_first(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  pln_c_push(w, (pln_c_task){.what = PLN_C_EMIT, .ref = ref});
  pln_c_push_exprs(w, n->count, operands_of(w, ref));
}

static void refuse_node(pln_cw *w, pln_kind kind) {
  bool lowers = kind == PLN_REDUCE || kind == PLN_PRODUCER_LOAD;
  pln_c_refuse(w, "a %s is not written as C%s", pln_kinds[kind].name,
               lowers ? "; lower the function with pl.lower first" : "");
}

static bool check_dtype(pln_cw *w, pln_ref ref) {
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  if (!dtype || pln_c_has_dtype(dtype))
    return true;
  pln_c_refuse(w, "values of dtype %s are not written as C",
               pln_dtype_name(dtype));
  return false;
}

static void visit_expr(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  if (n->kind == PLN_VAR && w->at_top) {
    pln_c_visit_top_var(w, ref);
    return;
  }
  if (n->kind == PLN_VAR) {
    if (!pln_c_is_bound(w, ref))
      pln_c_refuse(w, "variable '%s' has no value",
                   pln_symbol_text(w->engine, n->attrs).data);
    return;
  }
  if (w->memo[ref] || !check_dtype(w, ref))
    return;
  if (w->assumed[ref]) {
    pln_c_set(w, ref, pln_c_int_value(w, PLN_BOOL, 1));
    return;
  }
  switch ((int)n->kind) {
  case PLN_INT_IMM:
  case PLN_FLOAT_IMM:
  case PLN_STRING_IMM: immediate(w, ref); break;
  case PLN_PRIM_AND:
  case PLN_PRIM_OR:
  case PLN_SELECT:
    if (branches(w, ref))
      pln_c_visit_branch(w, ref);
    else if (n->kind == PLN_SELECT && pln_c_is_masked(w, ref))
      pln_c_visit_masked(w, ref);
    else
      operands_first(w, ref);
    break;
  case PLN_PRIM_LET:
    pln_c_push(w, (pln_c_task){.what = PLN_C_LET_BODY, .ref = ref});
    pln_c_push_expr(w, operands_of(w, ref)[1]);
    break;
  case PLN_PRIM_CALL: pln_c_visit_call(w, ref); break;
  case PLN_BUFFER_LOAD:
    pln_c_push(w, (pln_c_task){.what = PLN_C_EMIT, .ref = ref});
    pln_c_push_access(w, ref, 1);
    break;
  case PLN_REDUCE:
  case PLN_PRODUCER_LOAD:
  case PLN_ANY: refuse_node(w, (pln_kind)n->kind); break;
  default: operands_first(w, ref);
  }
}

static void emit_expr(pln_cw *w, pln_ref ref) {
  const pln_ref *o = operands_of(w, ref);
  if (w->memo[ref])
    return;
  switch ((int)w->g->nodes[ref].kind) {
  case PLN_PRIM_CAST: pln_c_cast(w, ref); break;
  case PLN_PRIM_AND:
  case PLN_PRIM_OR:
  case PLN_PRIM_NOT: pln_c_logic(w, ref); break;
  case PLN_SELECT: pln_c_select(w, ref, o); break;
  case PLN_RAMP: ramp(w, ref); break;
  case PLN_BROADCAST: broadcast(w, ref); break;
  case PLN_SHUFFLE: shuffle(w, ref); break;
  case PLN_PRIM_CALL: pln_c_emit_call(w, ref); break;
  case PLN_BUFFER_LOAD: pln_c_load(w, ref); break;
  default: pln_c_binary(w, ref);
  }
}

/* Runs a task of an expression. */
void pln_c_expr_task(pln_cw *w, pln_c_task task) {
  switch ((pln_c_task_kind)task.what) {
  case PLN_C_EXPR: visit_expr(w, task.ref); break;
  case PLN_C_EMIT: emit_expr(w, task.ref); break;
  case PLN_C_BRANCH: branch(w, task); break;
  case PLN_C_OTHERWISE: otherwise(w, task); break;
  case PLN_C_MASKED: pln_c_masked_task(w, task); break;
  case PLN_C_LET_BODY: let_body(w, task); break;
  case PLN_C_LET_END: let_end(w, task); break;
  case PLN_C_TOP_VAR: pln_c_set_top_var(w, task.ref); break;
  default: {
    pln_c_value none = {0};
    pln_c_value first = task.first ? w->values[task.first - 1] : none;
    join(w, task, &first);
  }
  }
}
