/* bindings.c: see bindings.h. Called by common_subexpr_elim.c.
 *
 * What always holds: the rows of one value are a list, the last one first; a
 * marked term has its form under the rows that are in such a list. */

#include "lower/common_subexpr/bindings.h"

/* ------------------------------------------------------------ rows by value
 */

static pln_status grow_latest(pln_cse_bindings *b) {
  uint32_t old = b->cap_latest;
  PLN_TRY(pln_mem_grow(b->a->engine, (void **)&b->latest, &b->cap_latest,
                       b->a->n, sizeof *b->latest));
  if (b->cap_latest > old)
    memset(b->latest + old, 0, (b->cap_latest - old) * sizeof *b->latest);
  return PLN_OK;
}

/* Where the number of a row is, or would be, in the list of its value. */
static uint32_t *place_of(pln_cse_bindings *b, uint32_t row) {
  uint32_t *at = &b->latest[b->rows[row].value];
  while (*at > row + 1)
    at = &b->rows[*at - 1].earlier;
  return at;
}

static pln_status list_row(pln_cse_bindings *b, uint32_t row) {
  PLN_TRY(grow_latest(b));
  uint32_t *at = place_of(b, row);
  b->rows[row].earlier = *at;
  *at = row + 1;
  return PLN_OK;
}

static void unlist_row(pln_cse_bindings *b, uint32_t row) {
  uint32_t *at = place_of(b, row);
  if (*at == row + 1)
    *at = b->rows[row].earlier;
}

/* The variable that is bound to a term, the latest first. */
static pln_term bound_var(const pln_cse_bindings *b, pln_term t) {
  uint32_t row = t < b->cap_latest ? b->latest[t] : 0;
  return row ? b->rows[row - 1].var : PLN_NO_TERM;
}

/* ------------------------------------------------------------- present forms
 */

static pln_status grow_images(pln_cse_bindings *b) {
  PLN_TRY(pln_mem_grow(b->a->engine, (void **)&b->image, &b->cap_image, b->a->n,
                       sizeof *b->image));
  return pln_term_marks_grow(b->a, &b->known);
}

static pln_term rebuilt(const pln_cse_bindings *b, pln_term t) {
  pln_term few[8] = {0}, *operands = few;
  uint32_t n = pln_at(b->a, t)->n;
  size_t size = n * sizeof *operands;
  bool same = true;
  if (n == 0 || pln_term_is_closed(b->a, t))
    return t;
  if (n > PLN_COUNT(few) && !(operands = pln_mem_new(b->a->engine, size)))
    return pln_arith_fail(b->a, pln_nomem(b->a->engine));
  for (uint32_t i = 0; i < n; i++) {
    pln_term operand = pln_term_operand(b->a, t, i);
    operands[i] = b->image[operand];
    same &= operands[i] == operand;
  }
  pln_term out = same ? t : pln_term_with(b->a, t, operands);
  if (operands != few)
    pln_mem_free(b->a->engine, operands, size);
  return out;
}

static pln_status set_image(pln_cse_bindings *b, pln_term t, pln_term form) {
  pln_ref only = b->kinds->only;
  b->image[t] = form;
  pln_term_mark(&b->known, t);
  return only && pln_innermost_var(b->kinds, t) == only &&
                 !pln_term_list_push(b->a, &b->new_marks, t)
             ? b->a->status
             : PLN_OK;
}

void pln_cse_forget(pln_cse_bindings *b) {
  if (!b->kinds->only)
    b->known.now++;
  while (b->new_marks.n > 0)
    b->known.stamp[b->new_marks.items[--b->new_marks.n]] = 0;
}

/* The operands are marked. */
static pln_status find_image(pln_cse_bindings *b, pln_term t) {
  pln_term form = rebuilt(b, t);
  PLN_TRY(b->a->status);
  PLN_TRY(grow_images(b));
  PLN_TRY(pln_kinds_grow(b->a, b->kinds));
  pln_kinds_note_form(b->kinds, t, form);
  pln_term var = bound_var(b, form);
  return set_image(b, t, var ? var : form);
}

pln_status pln_cse_present(pln_cse_bindings *b, pln_term t, pln_term *out) {
  pln_term_list order;
  *out = t;
  if (b->n == 0)
    return PLN_OK;
  PLN_TRY(grow_images(b));
  if (pln_term_is_marked(&b->known, t)) {
    *out = b->image[t];
    return PLN_OK;
  }
  if (!pln_term_order_unmarked(b->a, t, &b->known, &order))
    return b->a->status;
  pln_status status = PLN_OK;
  for (uint32_t i = 0; status == PLN_OK && i < order.n; i++)
    status = find_image(b, order.items[i]);
  if (status == PLN_OK)
    *out = b->image[t];
  pln_term_list_free(b->a, &order);
  return status;
}

/* -------------------------------------------------------------------- rows */

/* The innermost variable of the value is that of the variable, too. */
static pln_status set_row(pln_cse_bindings *b, uint32_t at,
                          pln_cse_binding row) {
  uint32_t old = b->cap_row_of;
  PLN_TRY(pln_mem_grow(b->a->engine, (void **)&b->row_of, &b->cap_row_of,
                       b->a->n, sizeof *b->row_of));
  if (b->cap_row_of > old)
    memset(b->row_of + old, 0, (b->cap_row_of - old) * sizeof *b->row_of);
  b->rows[at] = row;
  b->row_of[row.var] = at + 1;
  PLN_TRY(pln_kinds_grow(b->a, b->kinds));
  if (row.ref != PLN_NONE)
    b->kinds->innermost[row.var] = pln_innermost_var(b->kinds, row.value);
  return list_row(b, at);
}

pln_status pln_cse_push(pln_cse_bindings *b, pln_term var, pln_term value,
                        pln_ref ref) {
  PLN_TRY(pln_mem_grow(b->a->engine, (void **)&b->rows, &b->cap,
                       (size_t)b->n + 1, sizeof *b->rows));
  b->n++;
  if (ref != PLN_NONE)
    pln_cse_forget(b);
  return set_row(b, b->n - 1,
                 (pln_cse_binding){.var = var, .value = value, .ref = ref});
}

/* The row of a variable of the builder, or UINT32_MAX. */
static uint32_t row_of_var(const pln_cse_bindings *b, pln_term t) {
  uint32_t row = t < b->cap_row_of ? b->row_of[t] : 0;
  return row && row <= b->n && b->rows[row - 1].var == t &&
                 b->rows[row - 1].ref != PLN_NONE
             ? row - 1
             : UINT32_MAX;
}

/* Where a value goes among the rows from `first`. */
static pln_status find_place(pln_cse_bindings *b, uint32_t first, pln_term t,
                             uint32_t *out) {
  pln_term_list order;
  *out = b->n;
  if (!pln_term_order(b->a, t, NULL, &order))
    return b->a->status;
  for (uint32_t i = 0; i < order.n; i++) {
    uint32_t row = row_of_var(b, order.items[i]);
    if (row >= first && row < *out)
      *out = row;
  }
  pln_term_list_free(b->a, &order);
  return PLN_OK;
}

pln_status pln_cse_place(pln_cse_bindings *b, uint32_t first, pln_term var,
                         pln_term value, pln_ref ref) {
  uint32_t at;
  PLN_TRY(find_place(b, first, value, &at));
  PLN_TRY(pln_mem_grow(b->a->engine, (void **)&b->rows, &b->cap,
                       (size_t)b->n + 1, sizeof *b->rows));
  for (uint32_t i = b->n; i-- > at;)
    unlist_row(b, i);
  b->n++;
  pln_cse_forget(b);
  for (uint32_t i = b->n - 1; i > at; i--)
    b->rows[i] = b->rows[i - 1];
  b->rows[at] = (pln_cse_binding){.var = var, .value = value, .ref = ref};
  for (uint32_t i = at; i < b->n; i++)
    PLN_TRY(set_row(b, i, b->rows[i]));
  return PLN_OK;
}

/* What was marked for the rows behind does not contain the value, but it may be
 * the value. */
static pln_status update_row(pln_cse_bindings *b, uint32_t row) {
  pln_term value = b->rows[row].value, form;
  PLN_TRY(pln_cse_present(b, value, &form));
  b->rows[row].value = form;
  PLN_TRY(list_row(b, row));
  PLN_TRY(grow_images(b));
  PLN_TRY(set_image(b, value, b->rows[row].var));
  return set_image(b, form, b->rows[row].var);
}

pln_status pln_cse_update(pln_cse_bindings *b, uint32_t first) {
  for (uint32_t i = b->n; i-- > first;)
    unlist_row(b, i); /* a value is not in terms of itself */
  pln_cse_forget(b);
  for (uint32_t i = b->n; i-- > first;)
    PLN_TRY(update_row(b, i));
  pln_cse_forget(b);
  return PLN_OK;
}

void pln_cse_pop(pln_cse_bindings *b, uint32_t n) {
  while (b->n > n) {
    unlist_row(b, b->n - 1);
    b->n--;
  }
  b->known.now++;
}

void pln_cse_free(pln_cse_bindings *b) {
  pln_engine *e = b->a->engine;
  pln_mem_free(e, b->rows, b->cap * sizeof *b->rows);
  pln_mem_free(e, b->latest, b->cap_latest * sizeof *b->latest);
  pln_mem_free(e, b->row_of, b->cap_row_of * sizeof *b->row_of);
  pln_mem_free(e, b->image, b->cap_image * sizeof *b->image);
  pln_term_marks_free(b->a, &b->known);
  pln_term_list_free(b->a, &b->new_marks);
}
