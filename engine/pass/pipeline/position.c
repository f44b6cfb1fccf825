/* position.c: reports the position in a pipeline at which a run failed, as a
 * note of the diagnostic.
 *
 *     note: in pipeline 'deploy', element 2 of 3, fixpoint(4) round 2,
 *     element 1 of 2: FoldConstant
 *         sequential(deploy){SimplifyExpr,fixpoint(4){FoldConstant,DeadCode...
 *                                                     ^~~~~~~~~~~~
 *
 * Called on the error paths of the functions that run elements. Invariant: a
 * failure gets one note, for its innermost position; if memory is out there is
 * no note. */

#include "pass/pass.h"

enum { MAX_POSITIONS = 1024 };

/* The positions from the outermost on. Returns their number, or 0 if there are
 * more than a run can have. */
static uint32_t unwind(const pln_position *at, const pln_position **out) {
  uint32_t n = 0;
  for (const pln_position *p = at; p; p = p->outer)
    n++;
  if (n > MAX_POSITIONS)
    return 0;
  for (uint32_t i = n; i > 0; at = at->outer)
    out[--i] = at;
  return n;
}

/* "pipeline 'deploy'", "fixpoint(4) round 2", "else" */
static pln_status write_list_position(pln_buffer *out, const pln_position *p) {
  const char *name = pln_pass_name(p->list);
  const pln_pass_def *def = p->list->def;
  switch ((pln_combinator)def->form) {
  case PLN_COMBINATOR_FIXPOINT:
    return pln_buffer_printf(out, "fixpoint(%u) round %u",
                             (unsigned)def->iterations, (unsigned)p->iteration);
  case PLN_COMBINATOR_TRY:
    return pln_buffer_text(out, p->index < def->n_body ? "try" : "else");
  case PLN_COMBINATOR_IF_CHANGED: return pln_buffer_text(out, "if changed");
  case PLN_COMBINATOR_PER_FUNCTION: return pln_buffer_text(out, "functions");
  case PLN_COMBINATOR_NONE:
  case PLN_COMBINATOR_SEQUENTIAL: break;
  }
  if (!strcmp(name, "sequential"))
    return pln_buffer_text(out, "pipeline");
  return pln_buffer_printf(out, "pipeline '%s'", name);
}

static pln_status write_position(pln_buffer *out, const pln_position *p) {
  const pln_pass_def *def = p->list->def;
  bool otherwise = def->form == PLN_COMBINATOR_TRY && p->index >= def->n_body;
  uint32_t first = otherwise ? def->n_body : 0;
  uint32_t n = def->form == PLN_COMBINATOR_TRY && !otherwise ? def->n_body
                                                             : def->n_elements;
  PLN_TRY(write_list_position(out, p));
  return pln_buffer_printf(out, ", element %u of %u",
                           (unsigned)(p->index - first + 1),
                           (unsigned)(n - first));
}

/* A combinator is named by its kind, because all of one kind share a name. */
static const char *short_name(const pln_pass *pass) {
  static const char *const names[] = {
      [PLN_COMBINATOR_NONE] = NULL,
      [PLN_COMBINATOR_SEQUENTIAL] = NULL,
      [PLN_COMBINATOR_FIXPOINT] = "fixpoint",
      [PLN_COMBINATOR_TRY] = "try",
      [PLN_COMBINATOR_IF_CHANGED] = "if changed",
      [PLN_COMBINATOR_PER_FUNCTION] = "functions"};
  const char *name = names[pass->def->form];
  return name ? name : pln_pass_name(pass);
}

static pln_status put_positions(pln_buffer *out, const pln_position **rows,
                                uint32_t n) {
  PLN_TRY(pln_buffer_text(out, "in "));
  for (uint32_t i = 0; i < n; i++) {
    const pln_position *p = rows[i];
    PLN_TRY(pln_buffer_text(out, i == 0 ? "" : p->list ? ", " : ": "));
    if (p->list) {
      PLN_TRY(write_position(out, p));
      continue;
    }
    PLN_TRY(pln_buffer_text(
        out,
        short_name(rows[i - 1]->list
                       ? rows[i - 1]->list->def->elements[rows[i - 1]->index]
                       : rows[i - 1]->required)));
    PLN_TRY(pln_buffer_printf(out, ", which requires %s",
                              pln_pass_name(p->required)));
  }
  const pln_position *last = rows[n - 1];
  if (!last->list)
    return PLN_OK;
  return pln_buffer_printf(out, ": %s",
                           short_name(last->list->def->elements[last->index]));
}

/* Prints the pipeline's text and marks the element at the position. */
static pln_status put_pipeline(const pln_position **rows, uint32_t n,
                               pln_buffer *text, pln_span *span) {
  uint32_t path[PLN_PASS_MAX_DEPTH + 1], depth = 0;
  size_t begin = 0, end = 0;
  while (depth < n && depth <= PLN_PASS_MAX_DEPTH && rows[depth]->list) {
    path[depth] = rows[depth]->index;
    depth++;
  }
  PLN_TRY(
      pln_pipeline_print_at(rows[0]->list, path, depth, text, &begin, &end));
  PLN_TRY(pln_buffer_add(text, "", 1));
  span->line = text->data;
  span->column = (uint32_t)begin + 1;
  span->end_column = (uint32_t)end + 1;
  return PLN_OK;
}

static void note(pln_engine *engine, const pln_position *at) {
  const pln_position *rows[MAX_POSITIONS];
  uint32_t n = unwind(at, rows);
  pln_buffer place, text;
  pln_span span = {0};
  if (!n || !rows[0]->list)
    return;
  pln_buffer_init(&place, engine);
  pln_buffer_init(&text, engine);
  size_t mark = pln_diag_count(engine);
  if (put_positions(&place, rows, n) == PLN_OK &&
      pln_buffer_add(&place, "", 1) == PLN_OK &&
      put_pipeline(rows, n, &text, &span) == PLN_OK)
    pln_diag_note(engine, &span, "%s", place.data);
  else
    pln_diag_drop(engine, mark);
  pln_buffer_free(&place);
  pln_buffer_free(&text);
}

void pln_position_note_failure(pln_execution *x, const pln_pass *pass,
                               const pln_pass_target *before) {
  /* A child's failure is repeated in the parent, which reports it. */
  if (x->failure_noted || x->engine->parent)
    return;
  x->failure_noted = true;
  note(x->engine, x->position);
  pln_failure_record(x, pass, before);
}
