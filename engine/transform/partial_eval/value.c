/* value.c: values of the partial evaluator, its stacks, and the store of
 * references.
 *
 * Called by the other files of this folder. Values live until the pass ends.
 * What a cell contains is known until an unknown effect; a branch that may not
 * run at run time leaves the store as it was, by an undo log. */

#include "transform/partial_eval/partial_evaluate.h"

void *pe_alloc(pe_run *pe, size_t size) {
  void *out = pln_arena_new(&pe->arena, size ? size : 1);
  if (out)
    memset(out, 0, size);
  else
    (void)!pln_nomem(pe->engine);
  return out;
}

pln_status pe_value_new(pe_run *pe, pe_kind kind, pln_ref node,
                        pe_value **out) {
  pe_value *v = pe_alloc(pe, sizeof *v);
  if (!v)
    return PLN_ERR_NOMEM;
  v->kind = kind;
  v->node = node;
  v->time = pe->time++;
  *out = v;
  return PLN_OK;
}

pln_status pe_push(pe_run *pe, pe_value *value) {
  PLN_TRY(pln_mem_grow(pe->engine, (void **)&pe->values, &pe->cap_values,
                       (size_t)pe->n_values + 1, sizeof *pe->values));
  pe->values[pe->n_values++] = value;
  return PLN_OK;
}

pe_value *pe_pop(pe_run *pe) {
  return pe->values[--pe->n_values];
}

pln_status pe_later(pe_run *pe, pe_task_kind kind, uint32_t at, void *data) {
  PLN_TRY(pln_mem_grow(pe->engine, (void **)&pe->tasks, &pe->cap_tasks,
                       (size_t)pe->n_tasks + 1, sizeof *pe->tasks));
  pe->tasks[pe->n_tasks++] = (pe_task){kind, at, data};
  return PLN_OK;
}

/* -------------------------------------------------------------------- store */

pln_status pe_store_write(pe_run *pe, pe_cell *cell, pe_value *content) {
  PLN_TRY(pln_mem_grow(pe->engine, (void **)&pe->undo, &pe->cap_undo,
                       (size_t)pe->n_undo + 1, sizeof *pe->undo));
  pe->undo[pe->n_undo++] = (pe_undo){cell, *cell};
  *cell = (pe_cell){content, ++pe->stamp};
  return PLN_OK;
}

pe_value *pe_store_read(const pe_run *pe, const pe_cell *cell) {
  return cell->stamp > pe->barrier ? cell->content : NULL;
}

void pe_store_invalidate(pe_run *pe) {
  pe->barrier = ++pe->stamp;
}

pe_store_mark pe_store_begin(const pe_run *pe) {
  return (pe_store_mark){pe->n_undo, pe->barrier};
}

void pe_store_rollback(pe_run *pe, pe_store_mark mark) {
  while (pe->n_undo > mark.undo) {
    const pe_undo *u = &pe->undo[--pe->n_undo];
    *u->cell = u->before;
  }
  pe->barrier = mark.barrier;
}
