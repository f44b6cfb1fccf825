/* compile_expr.c: translates PrimExprs.
 *
 * Called by compile.c for each task of an expression. A node is evaluated once
 * in a statement; what a conditional value needs is evaluated in its branch,
 * once more if others need it too. */

#include "eval/loop/number.h"
#include "eval/loop/translate.h"

static const pln_ref *operands_of(const pln_translation *t, pln_ref ref) {
  return pln_operands(t->g, &t->g->nodes[ref]);
}

/* Ends a node whose value of so many lanes one instruction makes. */
static pln_status finish_value(pln_translation *t, pln_ref ref,
                               pln_loop_instr instr) {
  uint32_t lanes = pln_prim_lanes(t->g, ref);
  PLN_TRY(pln_loop_new_cells(t, lanes, &instr.to));
  instr.lanes = lanes;
  PLN_TRY(pln_loop_emit(t, ref, instr));
  return pln_loop_set(t, ref, instr.to);
}

/* -------------------------------------------------------------- arithmetic */

/* Opcodes by class: I32, I64, U64, F32, F64. `normal`: the result may leave the
 * range of a narrow dtype. */
typedef struct binary_row {
  uint16_t ops[5];
  bool normal, swaps;
} binary_row;

#define ROW(name, i32, u64, normal, swaps)                                    \
  {                                                                           \
    {PLN_LOOP_##name##_##i32, PLN_LOOP_##name##_I64, PLN_LOOP_##name##_##u64, \
     PLN_LOOP_##name##_F32, PLN_LOOP_##name##_F64},                           \
        normal, swaps                                                         \
  }

static bool find_binary(pln_kind kind, binary_row *out) {
  static const binary_row rows[] = {
      ROW(ADD, I32, I64, true, false),
      ROW(SUB, I32, I64, true, false),
      ROW(MUL, I32, I64, true, false),
      ROW(DIV, I32, U64, true, false),
      ROW(MOD, I32, U64, true, false),
      {{PLN_LOOP_FLOORDIV_I32, PLN_LOOP_FLOORDIV_I64, PLN_LOOP_DIV_U64,
        PLN_LOOP_FLOORDIV_F32, PLN_LOOP_FLOORDIV_F64},
       true,
       false},
      {{PLN_LOOP_FLOORMOD_I32, PLN_LOOP_FLOORMOD_I64, PLN_LOOP_MOD_U64,
        PLN_LOOP_FLOORMOD_F32, PLN_LOOP_FLOORMOD_F64},
       true,
       false},
      ROW(MIN, I64, U64, false, false),
      ROW(MAX, I64, U64, false, false),
      ROW(EQ, I64, I64, false, false),
      ROW(NE, I64, I64, false, false),
      ROW(LT, I64, U64, false, false),
      ROW(LE, I64, U64, false, false),
      ROW(LT, I64, U64, false, true),
      ROW(LE, I64, U64, false, true)};
  if (kind < PLN_PRIM_ADD || kind > PLN_PRIM_GE)
    return false;
  *out = rows[kind - PLN_PRIM_ADD];
  return true;
}

static pln_status emit_binary(pln_translation *t, pln_ref ref) {
  const pln_ref *o = operands_of(t, ref);
  const pln_node *n = &t->g->nodes[ref];
  pln_dtype dtype = pln_prim_dtype(t->g, o[0]);
  binary_row row;
  if (!find_binary((pln_kind)n->kind, &row))
    return pln_loop_refuse(t, "a %s has no value", pln_kinds[n->kind].name);
  if (!dtype && n->kind != PLN_PRIM_EQ && n->kind != PLN_PRIM_NE)
    return pln_loop_refuse(t, "handles have no arithmetic");
  pln_loop_instr in = {.op = row.ops[pln_loop_class(dtype)],
                       .a = pln_loop_cell_of(t, o[row.swaps]),
                       .b = pln_loop_cell_of(t, o[!row.swaps])};
  PLN_TRY(finish_value(t, ref, in));
  return row.normal
             ? pln_loop_normalise(t, ref, dtype, pln_prim_lanes(t->g, ref),
                                  pln_loop_cell_of(t, ref))
             : PLN_OK;
}

/* The opcode from the class of one dtype to another, before a WRAP or ROUND. */
static pln_loop_op cast_op(pln_dtype from, pln_dtype to) {
  uint32_t a = pln_loop_class(from), b = pln_loop_class(to);
  if (a < 3 && to == PLN_BOOL)
    return PLN_LOOP_I64_TO_BOOL;
  if (to == PLN_BOOL)
    return a == 3 ? PLN_LOOP_F32_TO_BOOL : PLN_LOOP_F64_TO_BOOL;
  if (a < 3 && b < 3)
    return PLN_LOOP_WRAP;
  if (a < 3 && b == 3)
    return a == 2 ? PLN_LOOP_U64_TO_F32 : PLN_LOOP_I64_TO_F32;
  if (a < 3)
    return a == 2 ? PLN_LOOP_U64_TO_F64 : PLN_LOOP_I64_TO_F64;
  if (b < 3)
    return a == 3 ? PLN_LOOP_F32_TO_INT : PLN_LOOP_F64_TO_INT;
  if (a == b)
    return PLN_LOOP_COPY;
  return a == 3 ? PLN_LOOP_F32_TO_F64 : PLN_LOOP_F64_TO_F32;
}

pln_status pln_loop_emit_cast(pln_translation *t, pln_ref ref) {
  pln_ref operand = operands_of(t, ref)[0];
  pln_dtype from = pln_prim_dtype(t->g, operand),
            to = pln_prim_dtype(t->g, ref);
  if (!from != !to)
    return pln_loop_refuse(t, "a handle is not converted to a number");
  if (from == to)
    return pln_loop_set(t, ref, pln_loop_cell_of(t, operand));
  pln_loop_instr in = {.op = (uint16_t)cast_op(from, to),
                       .aux = (uint16_t)to,
                       .a = pln_loop_cell_of(t, operand)};
  PLN_TRY(finish_value(t, ref, in));
  return pln_loop_is_float(to)
             ? pln_loop_normalise(t, ref, to, pln_prim_lanes(t->g, ref),
                                  pln_loop_cell_of(t, ref))
             : PLN_OK;
}

static pln_status emit_select(pln_translation *t, pln_ref ref) {
  const pln_ref *o = operands_of(t, ref);
  return finish_value(t, ref,
                      (pln_loop_instr){.op = PLN_LOOP_SELECT,
                                       .aux = pln_prim_lanes(t->g, o[0]) > 1,
                                       .a = pln_loop_cell_of(t, o[0]),
                                       .b = pln_loop_cell_of(t, o[1]),
                                       .c = pln_loop_cell_of(t, o[2])});
}

/* ----------------------------------------------------------------- vectors */

static pln_status emit_ramp(pln_translation *t, pln_ref ref) {
  const pln_ref *o = operands_of(t, ref);
  pln_dtype dtype = pln_prim_dtype(t->g, ref);
  if (pln_loop_class(dtype) > 2)
    return pln_loop_refuse(t, "a Ramp of %s", pln_dtype_name(dtype));
  PLN_TRY(finish_value(t, ref,
                       (pln_loop_instr){.op = PLN_LOOP_RAMP,
                                        .a = pln_loop_cell_of(t, o[0]),
                                        .b = pln_loop_cell_of(t, o[1])}));
  return pln_loop_emit(t, ref,
                       (pln_loop_instr){.op = PLN_LOOP_WRAP,
                                        .aux = (uint16_t)dtype,
                                        .lanes = pln_prim_lanes(t->g, ref),
                                        .to = pln_loop_cell_of(t, ref),
                                        .a = pln_loop_cell_of(t, ref)});
}

/* Copies the vectors behind each other, then takes lanes of that. */
static pln_status emit_shuffle(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = operands_of(t, ref);
  uint32_t total = 0, lanes = n->count - n->data;
  int32_t all, part, out;
  for (uint32_t i = 0; i < n->data; i++) {
    uint32_t count = pln_prim_lanes(t->g, o[i]);
    PLN_TRY(pln_loop_new_cells(t, count, &part));
    if (i == 0)
      all = part;
    PLN_TRY(pln_loop_emit(t, ref,
                          (pln_loop_instr){.op = PLN_LOOP_COPY,
                                           .lanes = count,
                                           .to = part,
                                           .a = pln_loop_cell_of(t, o[i])}));
    total += count;
  }
  PLN_TRY(pln_loop_new_cells(t, lanes, &out));
  for (uint32_t i = 0; i < lanes; i++)
    PLN_TRY(pln_loop_emit(
        t, ref,
        (pln_loop_instr){.op = PLN_LOOP_LANE,
                         .lanes = total,
                         .to = out + (int32_t)i,
                         .a = out - (int32_t)total,
                         .b = pln_loop_cell_of(t, o[n->data + i])}));
  (void)all;
  return pln_loop_set(t, ref, out);
}

/* ------------------------------------------------------ conditional values */

/* A value of which only one operand may be evaluated: `k` tells which of the
 * operands depend on operand 0. */
pln_status pln_loop_visit_branch(pln_translation *t, pln_ref ref) {
  PLN_TRY(
      pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_BRANCH, .ref = ref}));
  return pln_loop_push_expr(t, operands_of(t, ref)[0]);
}

static pln_status copy_value(pln_translation *t, pln_ref ref, pln_ref value,
                             int32_t to) {
  return pln_loop_emit(t, ref,
                       (pln_loop_instr){.op = PLN_LOOP_COPY,
                                        .lanes = pln_prim_lanes(t->g, ref),
                                        .to = to,
                                        .a = pln_loop_cell_of(t, value)});
}

static pln_status emit_jump(pln_translation *t, pln_ref ref, pln_loop_op op,
                            int32_t condition, int32_t *at) {
  *at = (int32_t)t->p->n_code;
  return pln_loop_emit(
      t, ref, (pln_loop_instr){.op = (uint16_t)op, .lanes = 1, .a = condition});
}

/* And, Or: the second operand is evaluated if the first does not decide. */
static pln_status branch_logic(pln_translation *t, pln_loop_task task) {
  const pln_ref *o = operands_of(t, task.ref);
  bool is_and = t->g->nodes[task.ref].kind == PLN_PRIM_AND;
  PLN_TRY(pln_loop_new_cells(t, 1, &task.y));
  PLN_TRY(copy_value(t, task.ref, o[0], task.y));
  PLN_TRY(emit_jump(t, task.ref,
                    is_and ? PLN_LOOP_JUMP_IF_FALSE : PLN_LOOP_JUMP_IF_TRUE,
                    task.y, &task.x));
  task.what = PLN_LOOP_JOIN;
  task.k = 1;
  task.mark = t->n_log;
  PLN_TRY(pln_loop_push(t, task));
  return pln_loop_push_expr(t, o[1]);
}

static pln_status branch(pln_translation *t, pln_loop_task task) {
  const pln_ref *o = operands_of(t, task.ref);
  if (t->g->nodes[task.ref].kind == PLN_PRIM_AND ||
      t->g->nodes[task.ref].kind == PLN_PRIM_OR)
    return branch_logic(t, task);
  PLN_TRY(pln_loop_new_cells(t, pln_prim_lanes(t->g, task.ref), &task.y));
  PLN_TRY(emit_jump(t, task.ref, PLN_LOOP_JUMP_IF_FALSE,
                    pln_loop_cell_of(t, o[0]), &task.x));
  task.what = PLN_LOOP_OTHERWISE;
  task.mark = t->n_log;
  PLN_TRY(pln_loop_push(t, task));
  return pln_loop_push_expr(t, o[1]);
}

static pln_status otherwise(pln_translation *t, pln_loop_task task) {
  const pln_ref *o = operands_of(t, task.ref);
  int32_t leave;
  PLN_TRY(copy_value(t, task.ref, o[1], task.y));
  PLN_TRY(emit_jump(t, task.ref, PLN_LOOP_JUMP, t->zero, &leave));
  pln_loop_land(t, task.x);
  pln_loop_forget(t, task.mark);
  task.what = PLN_LOOP_JOIN;
  task.k = 2;
  task.x = leave;
  PLN_TRY(pln_loop_push(t, task));
  return pln_loop_push_expr(t, o[2]);
}

static pln_status join(pln_translation *t, pln_loop_task task) {
  PLN_TRY(copy_value(t, task.ref, operands_of(t, task.ref)[task.k], task.y));
  pln_loop_land(t, task.x);
  pln_loop_forget(t, task.mark);
  return pln_loop_set(t, task.ref, task.y);
}

/* -------------------------------------------------------------------- lets */

static pln_status visit_let(pln_translation *t, pln_ref ref) {
  PLN_TRY(
      pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_LET_BODY, .ref = ref}));
  return pln_loop_push_expr(t, operands_of(t, ref)[1]);
}

/* What depends on the variable is forgotten at the end: another let may bind
 * it to another value. */
static pln_status let_body(pln_translation *t, pln_loop_task task) {
  const pln_ref *o = operands_of(t, task.ref);
  PLN_TRY(pln_loop_bind_value(t, o[0], o[1]));
  task.what = PLN_LOOP_LET_END;
  task.mark = t->n_log;
  PLN_TRY(pln_loop_push(t, task));
  return pln_loop_push_expr(t, o[2]);
}

static pln_status let_end(pln_translation *t, pln_loop_task task) {
  const pln_ref *o = operands_of(t, task.ref);
  int32_t cell = pln_loop_cell_of(t, o[2]);
  pln_loop_forget(t, task.mark);
  PLN_TRY(pln_loop_unbind_var(t, o[0]));
  return pln_loop_set(t, task.ref, cell);
}

/* ---------------------------------------------------------------- reductions
 */

typedef struct reduce_view {
  const pln_ref *sources, *starts, *axes, *reducer;
  uint32_t values, n_starts, n_axes;
} reduce_view;

static reduce_view view_reduce(const pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = operands_of(t, ref);
  reduce_view v = {.sources = o + 2, .n_starts = n->results};
  v.values = t->g->nodes[o[0]].count / 4;
  v.starts = v.sources + v.values;
  v.axes = v.starts + v.n_starts;
  v.n_axes = n->count - 2 - v.values - v.n_starts;
  v.reducer = operands_of(t, o[0]);
  return v;
}

/* Cells of the accumulated values begin at x; y: the head of the loop being
 * opened, k: the axis. */
static pln_status visit_reduce(pln_translation *t, pln_ref ref) {
  reduce_view v = view_reduce(t, ref);
  pln_loop_task task = {.what = PLN_LOOP_REDUCE_AXIS, .ref = ref};
  for (uint32_t i = 0; i < v.values; i++)
    if (pln_prim_lanes(t->g, v.sources[i]) != 1)
      return pln_loop_refuse(t, "a Reduce of vectors");
  PLN_TRY(pln_loop_push(t, task));
  for (uint32_t i = 0; i < v.n_axes; i++) {
    const pln_node *axis = &t->g->nodes[v.axes[i]];
    if (axis->kind != PLN_ITER_VAR || axis->count < 2)
      return pln_loop_refuse(t, "an axis of a Reduce has no range");
    PLN_TRY(pln_loop_push_exprs(
        t, 2, operands_of(t, t->g->operands[axis->first + 1])));
  }
  return pln_loop_push_exprs(t, v.values,
                             v.n_starts ? v.starts : v.reducer + 3 * v.values);
}

static pln_status open_axis(pln_translation *t, pln_ref ref, pln_ref axis,
                            int32_t cells) {
  const pln_ref *range = operands_of(t, operands_of(t, axis)[1]);
  PLN_TRY(pln_loop_emit(t, ref,
                        (pln_loop_instr){.op = PLN_LOOP_LOOP_BEGIN,
                                         .lanes = 1,
                                         .to = cells + 1,
                                         .a = pln_loop_cell_of(t, range[1])}));
  PLN_TRY(pln_loop_emit(t, ref,
                        (pln_loop_instr){.op = PLN_LOOP_COPY,
                                         .lanes = 1,
                                         .to = cells,
                                         .a = pln_loop_cell_of(t, range[0])}));
  return pln_loop_bind_var(t, operands_of(t, axis)[0], cells);
}

/* Sets the accumulators and opens the loops. Cells from x: accumulators, then
 * two for each axis; z: the first instruction of the loops. */
static pln_status reduce_axes(pln_translation *t, pln_loop_task task) {
  reduce_view v = view_reduce(t, task.ref);
  const pln_ref *from = v.n_starts ? v.starts : v.reducer + 3 * v.values;
  PLN_TRY(pln_loop_new_cells(t, v.values + 2 * v.n_axes, &task.x));
  for (uint32_t i = 0; i < v.values; i++)
    PLN_TRY(pln_loop_emit(t, task.ref,
                          (pln_loop_instr){.op = PLN_LOOP_COPY,
                                           .lanes = 1,
                                           .to = task.x + (int32_t)i,
                                           .a = pln_loop_cell_of(t, from[i])}));
  task.z = (int32_t)t->p->n_code;
  for (uint32_t i = 0; i < v.n_axes; i++)
    PLN_TRY(open_axis(t, task.ref, v.axes[i],
                      task.x + (int32_t)(v.values + 2 * i)));
  task.mark = t->n_log;
  task.what = PLN_LOOP_REDUCE_STEP;
  PLN_TRY(pln_loop_push(t, task));
  return pln_loop_push_expr(t, operands_of(t, task.ref)[1]);
}

static pln_status reduce_step(pln_translation *t, pln_loop_task task) {
  reduce_view v = view_reduce(t, task.ref);
  int32_t condition = pln_loop_cell_of(t, operands_of(t, task.ref)[1]);
  PLN_TRY(emit_jump(t, task.ref, PLN_LOOP_JUMP_IF_FALSE, condition, &task.y));
  task.what = PLN_LOOP_REDUCE_COMBINE;
  PLN_TRY(pln_loop_push(t, task));
  return pln_loop_push_exprs(t, v.values, v.sources);
}

static pln_status reduce_combine(pln_translation *t, pln_loop_task task) {
  reduce_view v = view_reduce(t, task.ref);
  for (uint32_t i = 0; i < v.values; i++) {
    PLN_TRY(pln_loop_bind_var(t, v.reducer[i], task.x + (int32_t)i));
    PLN_TRY(pln_loop_bind_var(t, v.reducer[v.values + i],
                              pln_loop_cell_of(t, v.sources[i])));
  }
  task.what = PLN_LOOP_REDUCE_END;
  PLN_TRY(pln_loop_push(t, task));
  return pln_loop_push_exprs(t, v.values, v.reducer + 2 * v.values);
}

static pln_status close_axes(pln_translation *t, const pln_loop_task *task,
                             const reduce_view *v) {
  for (uint32_t i = v->n_axes; i-- > 0;) {
    int32_t cells = task->x + (int32_t)(v->values + 2 * i);
    int32_t begin = task->z + 2 * (int32_t)i;
    pln_ref axis = operands_of(t, v->axes[i])[0];
    PLN_TRY(pln_loop_emit(
        t, task->ref,
        (pln_loop_instr){.op = PLN_LOOP_LOOP_NEXT,
                         .aux = (uint16_t)pln_prim_dtype(t->g, axis),
                         .lanes = 1,
                         .to = cells,
                         .a = cells + 1,
                         .b = begin + 2}));
    pln_loop_land(t, begin);
    PLN_TRY(pln_loop_unbind_var(t, axis));
  }
  return PLN_OK;
}

/* New values are complete before the first accumulator is set. */
static pln_status reduce_end(pln_translation *t, pln_loop_task task) {
  reduce_view v = view_reduce(t, task.ref);
  int32_t fresh;
  PLN_TRY(pln_loop_new_cells(t, v.values, &fresh));
  for (uint32_t round = 0; round < 2; round++)
    for (uint32_t i = 0; i < v.values; i++) {
      int32_t result = pln_loop_cell_of(t, v.reducer[2 * v.values + i]);
      int32_t cell = fresh + (int32_t)i;
      PLN_TRY(pln_loop_emit(
          t, task.ref,
          (pln_loop_instr){.op = PLN_LOOP_COPY,
                           .lanes = 1,
                           .to = round ? task.x + (int32_t)i : cell,
                           .a = round ? cell : result}));
    }
  pln_loop_land(t, task.y);
  PLN_TRY(close_axes(t, &task, &v));
  pln_loop_forget(t, task.mark);
  return pln_loop_set(t, task.ref,
                      task.x + (int32_t)t->g->nodes[task.ref].data);
}

/* ------------------------------------------------------------------- nodes */

static pln_status visit_immediate(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  pln_dtype dtype = pln_prim_dtype(t->g, ref);
  int64_t bits = 0;
  int32_t cell;
  if (n->kind == PLN_INT_IMM)
    bits = pln_loop_wrap(dtype, pln_imm_bits(n));
  if (n->kind == PLN_FLOAT_IMM) {
    pln_loop_cell value = {.i = 0};
    if (dtype == PLN_FLOAT64)
      value.d = pln_node_float(t->g, ref);
    else
      value.f = (float)pln_node_float(t->g, ref);
    if (dtype != PLN_FLOAT64 && dtype != PLN_FLOAT32)
      value.f = pln_loop_round(dtype, value.f);
    bits = value.i;
  }
  PLN_TRY(pln_loop_constant(t, bits, &cell));
  t->memo[ref] = (uint32_t)cell + 0x80000000u; /* for good: not in the log */
  return PLN_OK;
}

static pln_status visit_operands(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  PLN_TRY(pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_EMIT, .ref = ref}));
  return pln_loop_push_exprs(t, n->count, operands_of(t, ref));
}

static bool branches(const pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = operands_of(t, ref);
  if (pln_prim_lanes(t->g, o[0]) != 1)
    return false;
  return n->kind == PLN_SELECT ? t->unsafe[o[1]] || t->unsafe[o[2]]
                               : t->unsafe[o[1]];
}

static pln_status visit_var(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  if (pln_loop_is_bound(t, ref))
    return PLN_OK;
  return pln_diag_error(t->engine, PLN_ERR_TYPE, NULL,
                        "variable '%s' has no value",
                        pln_symbol_text(t->engine, n->attrs).data);
}

static pln_status visit_expr(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  if (t->memo[ref])
    return PLN_OK;
  switch ((int)n->kind) {
  case PLN_VAR: return visit_var(t, ref);
  case PLN_INT_IMM:
  case PLN_FLOAT_IMM:
  case PLN_STRING_IMM: return visit_immediate(t, ref);
  case PLN_PRIM_AND:
  case PLN_PRIM_OR:
  case PLN_SELECT:
    return branches(t, ref) ? pln_loop_visit_branch(t, ref)
                            : visit_operands(t, ref);
  case PLN_PRIM_LET: return visit_let(t, ref);
  case PLN_REDUCE: return visit_reduce(t, ref);
  case PLN_PRIM_CALL: return pln_loop_visit_call(t, ref);
  case PLN_BUFFER_LOAD:
    PLN_TRY(
        pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_EMIT, .ref = ref}));
    return pln_loop_push_access(t, ref, 1);
  default: return visit_operands(t, ref);
  }
}

static pln_status emit_unary(pln_translation *t, pln_ref ref, pln_loop_op op) {
  pln_ref operand = operands_of(t, ref)[0];
  return finish_value(
      t, ref,
      (pln_loop_instr){.op = (uint16_t)op, .a = pln_loop_cell_of(t, operand)});
}

static pln_status emit_logic(pln_translation *t, pln_ref ref, pln_loop_op op) {
  const pln_ref *o = operands_of(t, ref);
  return finish_value(t, ref,
                      (pln_loop_instr){.op = (uint16_t)op,
                                       .a = pln_loop_cell_of(t, o[0]),
                                       .b = pln_loop_cell_of(t, o[1])});
}

static pln_status emit_expr(pln_translation *t, pln_ref ref) {
  if (t->memo[ref])
    return PLN_OK;
  switch ((int)t->g->nodes[ref].kind) {
  case PLN_PRIM_CAST: return pln_loop_emit_cast(t, ref);
  case PLN_PRIM_AND: return emit_logic(t, ref, PLN_LOOP_BIT_AND);
  case PLN_PRIM_OR: return emit_logic(t, ref, PLN_LOOP_BIT_OR);
  case PLN_PRIM_NOT: return emit_unary(t, ref, PLN_LOOP_NOT);
  case PLN_SELECT: return emit_select(t, ref);
  case PLN_RAMP: return emit_ramp(t, ref);
  case PLN_BROADCAST: return emit_unary(t, ref, PLN_LOOP_BROADCAST);
  case PLN_SHUFFLE: return emit_shuffle(t, ref);
  case PLN_PRIM_CALL: return pln_loop_emit_call(t, ref);
  case PLN_BUFFER_LOAD: return pln_loop_emit_load(t, ref);
  default: return emit_binary(t, ref);
  }
}

pln_status pln_loop_expr_task(pln_translation *t, pln_loop_task task) {
  switch (task.what) {
  case PLN_LOOP_EXPR: return visit_expr(t, task.ref);
  case PLN_LOOP_EMIT: return emit_expr(t, task.ref);
  case PLN_LOOP_BRANCH: return branch(t, task);
  case PLN_LOOP_OTHERWISE: return otherwise(t, task);
  case PLN_LOOP_JOIN: return join(t, task);
  case PLN_LOOP_LET_BODY: return let_body(t, task);
  case PLN_LOOP_LET_END: return let_end(t, task);
  case PLN_LOOP_REDUCE_AXIS: return reduce_axes(t, task);
  case PLN_LOOP_REDUCE_STEP: return reduce_step(t, task);
  case PLN_LOOP_REDUCE_COMBINE: return reduce_combine(t, task);
  default: return reduce_end(t, task);
  }
}
