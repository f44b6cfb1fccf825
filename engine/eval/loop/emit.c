/* emit.c: appends code to a loop program, and gives out cells.
 *
 * Called by the other parts of the translation. */

#include <stdio.h>

#include "eval/loop/number.h"
#include "eval/loop/translate.h"

/* A cell as a number that is never 0. */
#define BIAS 0x80000000u

pln_status pln_loop_push(pln_translation *t, pln_loop_task task) {
  PLN_TRY(pln_mem_grow(t->engine, (void **)&t->tasks, &t->cap_tasks,
                       (size_t)t->n_tasks + 1, sizeof *t->tasks));
  t->tasks[t->n_tasks++] = task;
  return PLN_OK;
}

pln_status pln_loop_push_expr(pln_translation *t, pln_ref ref) {
  return pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_EXPR, .ref = ref});
}

pln_status pln_loop_push_exprs(pln_translation *t, uint32_t n,
                               const pln_ref *refs) {
  for (uint32_t i = n; i-- > 0;)
    PLN_TRY(pln_loop_push_expr(t, refs[i]));
  return PLN_OK;
}

pln_status pln_loop_emit(pln_translation *t, pln_ref node,
                         pln_loop_instr instr) {
  pln_loop_program *p = t->p;
  size_t need = (size_t)p->n_code + 1;
  if (need > t->most_code)
    return pln_diag_error(t->engine, PLN_ERR_LIMIT, NULL,
                          "the program is too large: it shares expressions "
                          "between too many conditional values");
  PLN_TRY(pln_mem_grow(t->engine, (void **)&p->code, &p->cap_code, need,
                       sizeof *p->code));
  PLN_TRY(pln_mem_grow(t->engine, (void **)&p->code_node, &p->cap_code_node,
                       need, sizeof *p->code_node));
  PLN_TRY(pln_mem_grow(t->engine, (void **)&p->code_stmt, &p->cap_code_stmt,
                       need, sizeof *p->code_stmt));
  p->code_node[p->n_code] = node;
  p->code_stmt[p->n_code] = t->stmt;
  p->code[p->n_code++] = instr;
  return PLN_OK;
}

pln_status pln_loop_new_cells(pln_translation *t, uint32_t n, int32_t *out) {
  *out = t->top;
  if (n > (uint32_t)(INT32_MAX - 1 - t->top))
    return pln_diag_error(t->engine, PLN_ERR_LIMIT, NULL,
                          "the program needs too many values at once");
  t->top += (int32_t)n;
  if ((uint32_t)t->top > t->p->n_cells)
    t->p->n_cells = (uint32_t)t->top;
  return PLN_OK;
}

pln_status pln_loop_constant(pln_translation *t, int64_t bits, int32_t *out) {
  pln_loop_program *p = t->p;
  if (p->n_constants >= (uint32_t)INT32_MAX)
    return pln_diag_error(t->engine, PLN_ERR_LIMIT, NULL,
                          "the program has too many constants");
  PLN_TRY(pln_mem_grow(t->engine, (void **)&p->constants, &p->cap_constants,
                       (size_t)p->n_constants + 1, sizeof *p->constants));
  p->constants[p->n_constants].i = bits;
  *out = -1 - (int32_t)p->n_constants++;
  return PLN_OK;
}

pln_status pln_loop_integer(pln_translation *t, int64_t value, int32_t *out) {
  if (value != 0 && value != 1)
    return pln_loop_constant(t, value, out);
  *out = value ? t->one : t->zero;
  return PLN_OK;
}

static uint32_t biased(int32_t cell) {
  return (uint32_t)cell + BIAS;
}

pln_status pln_loop_set(pln_translation *t, pln_ref ref, int32_t cell) {
  PLN_TRY(pln_mem_grow(t->engine, (void **)&t->log, &t->cap_log,
                       (size_t)t->n_log + 1, sizeof *t->log));
  t->log[t->n_log++] = ref;
  t->memo[ref] = biased(cell);
  return PLN_OK;
}

int32_t pln_loop_cell_of(const pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  uint32_t cell =
      n->kind == PLN_VAR ? pln_idmap_get(t->vars, n->data) : t->memo[ref];
  return cell ? (int32_t)(cell - BIAS) : t->zero;
}

void pln_loop_forget(pln_translation *t, uint32_t mark) {
  while (t->n_log > mark)
    t->memo[t->log[--t->n_log]] = 0;
}

pln_status pln_loop_bind_var(pln_translation *t, pln_ref var, int32_t cell) {
  if (pln_prim_lanes(t->g, var) != 1)
    return pln_loop_refuse(t, "a variable of a loop or block is a vector");
  return pln_idmap_set(t->vars, t->g->nodes[var].data, biased(cell));
}

pln_status pln_loop_bind_value(pln_translation *t, pln_ref var, pln_ref value) {
  if (pln_prim_lanes(t->g, var) != pln_prim_lanes(t->g, value))
    return pln_loop_refuse(t, "a variable and its value differ in lanes");
  return pln_idmap_set(t->vars, t->g->nodes[var].data,
                       biased(pln_loop_cell_of(t, value)));
}

pln_status pln_loop_unbind_var(pln_translation *t, pln_ref var) {
  return pln_idmap_set(t->vars, t->g->nodes[var].data, 0);
}

bool pln_loop_is_bound(const pln_translation *t, pln_ref var) {
  return pln_idmap_get(t->vars, t->g->nodes[var].data) != 0;
}

void pln_loop_land(pln_translation *t, int32_t at) {
  t->p->code[at].b = (int32_t)t->p->n_code;
}

pln_status pln_loop_refuse(pln_translation *t, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return pln_diag_error(t->engine, PLN_ERR_UNSUPPORTED, NULL, "%s", text);
}

uint32_t pln_loop_class(pln_dtype dtype) {
  if (dtype == PLN_INT32)
    return 0;
  if (dtype == PLN_UINT64)
    return 2;
  if (dtype == PLN_FLOAT64)
    return 4;
  return pln_loop_is_float(dtype) ? 3 : 1;
}

pln_status pln_loop_normalise(pln_translation *t, pln_ref node, pln_dtype dtype,
                              uint32_t lanes, int32_t cell) {
  bool is_float = pln_loop_is_float(dtype);
  uint32_t bits = pln_dtype_bits(dtype);
  if (dtype == PLN_DTYPE_NONE || dtype == PLN_INT32 || bits >= 64 ||
      dtype == PLN_FLOAT32)
    return PLN_OK;
  return pln_loop_emit(
      t, node,
      (pln_loop_instr){.op = is_float ? PLN_LOOP_ROUND : PLN_LOOP_WRAP,
                       .aux = (uint16_t)dtype,
                       .lanes = lanes,
                       .to = cell,
                       .a = cell});
}

pln_status pln_loop_op2(pln_translation *t, pln_ref node, pln_loop_op op,
                        int32_t a, int32_t b, int32_t *out) {
  PLN_TRY(pln_loop_new_cells(t, 1, out));
  return pln_loop_emit(
      t, node,
      (pln_loop_instr){
          .op = (uint16_t)op, .lanes = 1, .to = *out, .a = a, .b = b});
}
