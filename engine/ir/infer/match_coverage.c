/* infer/match_coverage.c: finds the values that no arm of a Match covers
 * (Maranget, Warnings for pattern matching, 2007), without matrices.
 *
 * Called by inference and scripts. A task is a set of values, described by
 * constructor choices along a path, together with the arms (rows) that may
 * still match some of them, each with its remaining requirements (wants). If
 * the first row has no wants, the values are covered. If no row is left, they
 * are an uncovered case. Otherwise the task is split by the first want of the
 * first row: one task per constructor that a row names there, and one for all
 * other constructors.
 *
 * Invariant: tasks are processed last in, first out, so the data of a task lies
 * on top of each array and a finished task leaves nothing behind. The number of
 * tasks may be exponential in the pattern size, so the work is counted and
 * limited. */

#include "ir/infer/match_coverage.h"
#include "ir/graph/module.h"

/* The limit of work beyond what is linear in the program. */
enum { MOST_WORK = 1 << 24 };

/* A requirement of an arm on the value at a place; a list, outer and left
 * places first. */
typedef struct constructor_choice_work {
  uint32_t place;
  pln_ref pattern; /* of a constructor or a tuple */
  uint32_t next;   /* index + 1 of the next want; 0: none */
} constructor_choice_work;

/* The constructor chosen at a place. Its fields are places as well. */
typedef struct constructor_choice {
  uint32_t place;
  uint32_t data;        /* index of the data type; PLN_NONE: a tuple */
  uint32_t constructor; /* PLN_NONE: any constructor that no row names */
  uint32_t n_fields, first_field;
  uint32_t first_named, n_named;  /* the constructors that rows name */
  uint32_t first_other, n_others; /* the remaining ones; filled when a case is
                                   * reported */
  uint32_t other;                 /* the current one of these */
} constructor_choice;

typedef struct task {
  uint32_t depth;                        /* number of choices before its own */
  constructor_choice constructor_choice; /* place PLN_NONE: none */
  uint32_t first_row, n_rows;            /* rows: the first want + 1, or 0 */
  uint32_t n_wants, n_places, n_named;   /* array sizes when the task was
                                          * made */
} task;

typedef struct array {
  void *items;
  uint32_t n, capacity;
} array;

typedef struct coverage_search {
  pln_engine *engine;
  const pln_graph *graph;
  const pln_module *module;
  pln_case_fn report_case;
  void *ud;
  bool enough;
  uint64_t work, most_work;
  array tasks, path, rows, wants, named;
  /* For the current split: the first and last row + 1 of each constructor; rows
   * without a want there are under `n_constructors`. */
  array first, last, next, at;
  array others, chosen, parts, todo; /* buffers for the case being reported */
} coverage_search;

/* ------------------------------------------------------------------ arrays */

/* Room for `n` items in all; new room is zeroed. */
static pln_status reserve(coverage_search *s, array *a, uint64_t n,
                          size_t item) {
  uint32_t had = a->capacity;
  PLN_TRY(pln_mem_grow(s->engine, &a->items, &a->capacity, (size_t)n, item));
  if (a->capacity > had)
    memset((char *)a->items + had * item, 0, (a->capacity - had) * item);
  return PLN_OK;
}

static pln_status push_search_item(coverage_search *s, array *a,
                                   uint32_t item) {
  PLN_TRY(reserve(s, a, (uint64_t)a->n + 1, sizeof item));
  ((uint32_t *)a->items)[a->n++] = item;
  return PLN_OK;
}

static uint32_t *words(const array *a) {
  return a->items;
}

static void free_search_array(coverage_search *s, array *a, size_t item) {
  pln_mem_free(s->engine, a->items, a->capacity * item);
}

static void tear_down(coverage_search *s) {
  free_search_array(s, &s->tasks, sizeof(task));
  free_search_array(s, &s->path, sizeof(constructor_choice));
  free_search_array(s, &s->wants, sizeof(constructor_choice_work));
  free_search_array(s, &s->parts, sizeof(pln_case_part));
  array *of_words[] = {&s->rows, &s->named,  &s->first,  &s->last, &s->next,
                       &s->at,   &s->others, &s->chosen, &s->todo};
  for (size_t i = 0; i < PLN_COUNT(of_words); i++)
    free_search_array(s, of_words[i], sizeof(uint32_t));
}

static pln_status charge(coverage_search *s, uint64_t work) {
  s->work += work;
  if (s->work <= s->most_work)
    return PLN_OK;
  return pln_diag_error(s->engine, PLN_ERR_LIMIT, NULL,
                        "which cases the arms do not cover takes more than %u "
                        "steps to tell",
                        (unsigned)MOST_WORK);
}

static constructor_choice_work *want_at(const coverage_search *s,
                                        uint32_t number) {
  return (constructor_choice_work *)s->wants.items + (number - 1);
}

static constructor_choice *step_at(const coverage_search *s, uint32_t depth) {
  return (constructor_choice *)s->path.items + depth;
}

/* ---------------------------------------------------------------- patterns */

static bool wants_something(const pln_node *pattern) {
  return pattern->kind == PLN_PATTERN_CONSTRUCTOR ||
         pattern->kind == PLN_PATTERN_TUPLE;
}

/* Appends a want after *last (0: it becomes the first, *first). */
static pln_status add_want(coverage_search *s, uint32_t place, pln_ref pattern,
                           uint32_t *first, uint32_t *last) {
  PLN_TRY(reserve(s, &s->wants, (uint64_t)s->wants.n + 1,
                  sizeof(constructor_choice_work)));
  uint32_t number = ++s->wants.n;
  *want_at(s, number) =
      (constructor_choice_work){.place = place, .pattern = pattern};
  if (*last)
    want_at(s, *last)->next = number;
  else
    *first = number;
  *last = number;
  return PLN_OK;
}

static pln_status refuse_constructor(const coverage_search *s,
                                     pln_symbol name) {
  return pln_diag_error(s->engine, PLN_ERR_TYPE, NULL,
                        "the module defines no constructor '%s'",
                        pln_symbol_text(s->engine, name).data);
}

static pln_status find_constructor(const coverage_search *s,
                                   const pln_node *pattern, uint32_t *data,
                                   uint32_t *index) {
  *data = PLN_NONE;
  *index = 0;
  if (pattern->kind == PLN_PATTERN_TUPLE)
    return PLN_OK;
  if (s->module)
    *data = pln_module_find_constructor(s->module, pattern->data, index);
  if (*data == PLN_NONE)
    return refuse_constructor(s, pattern->data);
  uint32_t n =
      pln_module_type_def_at(s->module, *data)->constructors[*index].n_inputs;
  if (n == pattern->count)
    return PLN_OK;
  return pln_diag_error(s->engine, PLN_ERR_TYPE, NULL,
                        "the constructor '%s' has %u field%s, the pattern %u",
                        pln_symbol_text(s->engine, pattern->data).data, n,
                        n == 1 ? "" : "s", pattern->count);
}

/* ------------------------------------------------------------------- split */

/* A split at a place, by the constructors of a data type or the fields of a
 * tuple. */
typedef struct constructor_split {
  uint32_t place, data;
  uint32_t n_constructors, n_fields; /* fields of the tuple */
  uint32_t first_named, n_named;
} constructor_split;

static void merge_choice_rows(coverage_search *s, uint32_t constructor,
                              uint32_t row) {
  uint32_t *first = words(&s->first), *last = words(&s->last);
  words(&s->next)[row] = 0;
  if (last[constructor])
    words(&s->next)[last[constructor] - 1] = row + 1;
  else
    first[constructor] = row + 1;
  last[constructor] = row + 1;
}

/* The arm's want at that place, or 0. */
static pln_status find_want(coverage_search *s, uint32_t row, uint32_t place,
                            uint32_t *out) {
  uint32_t number = row;
  while (number && want_at(s, number)->place != place) {
    number = want_at(s, number)->next;
    PLN_TRY(charge(s, 1));
  }
  *out = number;
  return charge(s, 1);
}

/* Assigns row i of the task to the list of its constructor. A pattern of
 * another type never matches and is in no list. */
static pln_status sort_row(coverage_search *s, constructor_split *by,
                           const task *t, uint32_t i) {
  uint32_t number, data, index;
  PLN_TRY(find_want(s, words(&s->rows)[t->first_row + i], by->place, &number));
  words(&s->at)[i] = number;
  if (!number) {
    merge_choice_rows(s, by->n_constructors, i);
    return PLN_OK;
  }
  const pln_node *pattern = &s->graph->nodes[want_at(s, number)->pattern];
  PLN_TRY(find_constructor(s, pattern, &data, &index));
  if (data != by->data || (data == PLN_NONE && pattern->count != by->n_fields))
    return PLN_OK;
  if (!words(&s->first)[index]) {
    PLN_TRY(push_search_item(s, &s->named, index));
    by->n_named++;
  }
  merge_choice_rows(s, index, i);
  return PLN_OK;
}

static pln_status sort_rows(coverage_search *s, constructor_split *by,
                            const task *t) {
  uint64_t n = (uint64_t)by->n_constructors + 1;
  PLN_TRY(reserve(s, &s->first, n, sizeof(uint32_t)));
  PLN_TRY(reserve(s, &s->last, n, sizeof(uint32_t)));
  PLN_TRY(reserve(s, &s->next, t->n_rows, sizeof(uint32_t)));
  PLN_TRY(reserve(s, &s->at, t->n_rows, sizeof(uint32_t)));
  for (uint32_t i = 0; i < t->n_rows; i++)
    PLN_TRY(sort_row(s, by, t, i));
  return PLN_OK;
}

/* Replaces the want at the place by wants for its fields. Wants before it are
 * copied, wants after it are shared. */
static pln_status open_row(coverage_search *s, uint32_t row, uint32_t number,
                           uint32_t first_field, uint32_t *out) {
  uint32_t first = 0, last = 0;
  for (uint32_t i = row; i != number; i = want_at(s, i)->next) {
    constructor_choice_work before = *want_at(s, i);
    PLN_TRY(add_want(s, before.place, before.pattern, &first, &last));
  }
  const pln_node *pattern = &s->graph->nodes[want_at(s, number)->pattern];
  for (uint32_t i = 0; i < pattern->count; i++) {
    pln_ref field = s->graph->operands[pattern->first + i];
    if (wants_something(&s->graph->nodes[field]))
      PLN_TRY(add_want(s, first_field + i, field, &first, &last));
  }
  uint32_t rest = want_at(s, number)->next;
  if (last)
    want_at(s, last)->next = rest;
  *out = last ? first : rest;
  return charge(s, pattern->count);
}

/* Merges the rows of one constructor (PLN_NONE: of none) with the rows without
 * a want there, in order, up to the first row that matches everything. */
static pln_status merge_rows(coverage_search *s, const constructor_split *by,
                             const task *t, uint32_t constructor,
                             uint32_t first_field) {
  const uint32_t *next = words(&s->next), *at = words(&s->at);
  uint32_t a = words(&s->first)[by->n_constructors], b = 0;
  if (constructor != PLN_NONE)
    b = words(&s->first)[constructor];
  for (uint32_t row = 1; (a || b) && row;) {
    bool here = !a || (b && b < a);
    uint32_t i = (here ? b : a) - 1;
    row = words(&s->rows)[t->first_row + i];
    if (here)
      PLN_TRY(open_row(s, row, at[i], first_field, &row));
    *(here ? &b : &a) = next[i];
    PLN_TRY(push_search_item(s, &s->rows, row));
    PLN_TRY(charge(s, 1));
  }
  return PLN_OK;
}

static pln_status push_task(coverage_search *s, const constructor_split *by,
                            const task *t, uint32_t constructor) {
  constructor_choice c = {.place = by->place,
                          .data = by->data,
                          .constructor = constructor,
                          .n_fields = by->n_fields,
                          .first_field = t->n_places,
                          .first_named = by->first_named,
                          .n_named = by->n_named};
  if (by->data != PLN_NONE)
    c.n_fields = constructor == PLN_NONE
                     ? 0
                     : pln_module_type_def_at(s->module, by->data)
                           ->constructors[constructor]
                           .n_inputs;
  task child = {.depth = t->depth + (t->constructor_choice.place != PLN_NONE),
                .constructor_choice = c,
                .first_row = s->rows.n,
                .n_places = t->n_places + c.n_fields};
  PLN_TRY(merge_rows(s, by, t, constructor, c.first_field));
  child.n_rows = s->rows.n - child.first_row;
  child.n_wants = s->wants.n;
  child.n_named = s->named.n;
  PLN_TRY(reserve(s, &s->tasks, (uint64_t)s->tasks.n + 1, sizeof(task)));
  ((task *)s->tasks.items)[s->tasks.n++] = child;
  return charge(s, (uint64_t)c.n_fields + 1);
}

static pln_status push_tasks(coverage_search *s, const constructor_split *by,
                             const task *t) {
  if (by->n_named < by->n_constructors)
    PLN_TRY(push_task(s, by, t, PLN_NONE));
  for (uint32_t i = by->n_named; i-- > 0;)
    PLN_TRY(push_task(s, by, t, words(&s->named)[by->first_named + i]));
  return PLN_OK;
}

/* Clears the lists for the next split. */
static void clear_lists(coverage_search *s, const constructor_split *by) {
  for (uint32_t i = 0; i <= by->n_named; i++) {
    uint32_t constructor = i < by->n_named
                               ? words(&s->named)[by->first_named + i]
                               : by->n_constructors;
    words(&s->first)[constructor] = words(&s->last)[constructor] = 0;
  }
}

/* Splits the task by the first want of its first row. */
static pln_status split_task(coverage_search *s, const task *t) {
  const constructor_choice_work *w = want_at(s, words(&s->rows)[t->first_row]);
  const pln_node *pattern = &s->graph->nodes[w->pattern];
  constructor_split by = {.place = w->place,
                          .n_constructors = 1,
                          .n_fields = pattern->count,
                          .first_named = s->named.n};
  uint32_t index;
  PLN_TRY(find_constructor(s, pattern, &by.data, &index));
  if (by.data != PLN_NONE)
    by.n_constructors =
        pln_module_type_def_at(s->module, by.data)->n_constructors;
  PLN_TRY(sort_rows(s, &by, t));
  PLN_TRY(push_tasks(s, &by, t));
  clear_lists(s, &by);
  return PLN_OK;
}

/* ------------------------------------------------------------------- cases */

static const pln_constructor *constructor_of(const coverage_search *s,
                                             const constructor_choice *c) {
  uint32_t index = c->constructor;
  if (index == PLN_NONE)
    index = words(&s->others)[c->first_other + c->other];
  return &pln_module_type_def_at(s->module, c->data)->constructors[index];
}

/* Lists the constructors that no row names. */
static pln_status list_others(coverage_search *s, constructor_choice *c) {
  uint32_t n = pln_module_type_def_at(s->module, c->data)->n_constructors;
  uint32_t *first = words(&s->first);
  const uint32_t *named = words(&s->named) + c->first_named;
  for (uint32_t i = 0; i < c->n_named; i++)
    first[named[i]] = 1;
  pln_status status = charge(s, n);
  c->first_other = s->others.n;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    if (!first[i])
      status = push_search_item(s, &s->others, i);
  for (uint32_t i = 0; i < c->n_named; i++)
    first[named[i]] = 0;
  c->n_others = s->others.n - c->first_other;
  c->other = 0;
  return status;
}

static pln_status add_part(coverage_search *s, pln_case_part part) {
  PLN_TRY(reserve(s, &s->parts, (uint64_t)s->parts.n + 1, sizeof part));
  ((pln_case_part *)s->parts.items)[s->parts.n++] = part;
  return PLN_OK;
}

/* Writes the part at a place (PLN_NONE: any value); its fields follow. */
static pln_status spell_place(coverage_search *s, uint32_t place) {
  uint32_t chosen = place == PLN_NONE ? 0 : words(&s->chosen)[place];
  if (!chosen)
    return add_part(s, (pln_case_part){.kind = PLN_CASE_ANY});
  const constructor_choice *c = step_at(s, chosen - 1);
  pln_case_part part = {.kind = PLN_CASE_TUPLE, .n_parts = c->n_fields};
  if (c->data != PLN_NONE) {
    const pln_constructor *constructor = constructor_of(s, c);
    part = (pln_case_part){PLN_CASE_CONSTRUCTOR, constructor->name,
                           constructor->n_inputs};
  }
  for (uint32_t i = part.n_parts; i-- > 0;)
    PLN_TRY(push_search_item(s, &s->todo,
                             c->constructor == PLN_NONE ? PLN_NONE
                                                        : c->first_field + i));
  PLN_TRY(add_part(s, part));
  return charge(s, (uint64_t)part.n_parts + 1);
}

static pln_status report_uncovered_case(coverage_search *s) {
  s->parts.n = s->todo.n = 0;
  PLN_TRY(push_search_item(s, &s->todo, 0));
  while (s->todo.n > 0)
    PLN_TRY(spell_place(s, words(&s->todo)[--s->todo.n]));
  PLN_TRY(charge(s, 1));
  return s->report_case(s->ud, s->parts.n, s->parts.items, &s->enough);
}

/* Advances to the next combination of unnamed constructors; false after the
 * last. */
static bool next_others(const coverage_search *s) {
  for (uint32_t i = s->path.n; i-- > 0;) {
    constructor_choice *c = step_at(s, i);
    if (c->constructor != PLN_NONE)
      continue;
    if (++c->other < c->n_others)
      return true;
    c->other = 0;
  }
  return false;
}

static pln_status report_uncovered_cases(coverage_search *s,
                                         uint32_t n_places) {
  s->others.n = 0;
  PLN_TRY(reserve(s, &s->chosen, n_places, sizeof(uint32_t)));
  PLN_TRY(charge(s, s->path.n));
  for (uint32_t i = 0; i < s->path.n; i++)
    if (step_at(s, i)->constructor == PLN_NONE)
      PLN_TRY(list_others(s, step_at(s, i)));
  for (uint32_t i = 0; i < s->path.n; i++)
    words(&s->chosen)[step_at(s, i)->place] = i + 1;
  pln_status status = PLN_OK;
  do
    status = report_uncovered_case(s);
  while (status == PLN_OK && !s->enough && next_others(s));
  for (uint32_t i = 0; i < s->path.n; i++)
    words(&s->chosen)[step_at(s, i)->place] = 0;
  return status;
}

/* ------------------------------------------------------------------ search */

static pln_status enter_path(coverage_search *s, const task *t) {
  s->path.n = t->depth;
  if (t->constructor_choice.place == PLN_NONE)
    return PLN_OK;
  PLN_TRY(
      reserve(s, &s->path, (uint64_t)t->depth + 1, sizeof(constructor_choice)));
  *step_at(s, s->path.n++) = t->constructor_choice;
  return PLN_OK;
}

static pln_status do_coverage_task(coverage_search *s) {
  task t = ((task *)s->tasks.items)[--s->tasks.n];
  PLN_TRY(enter_path(s, &t));
  s->rows.n = t.first_row + t.n_rows;
  s->wants.n = t.n_wants;
  s->named.n = t.n_named;
  if (t.n_rows == 0)
    return report_uncovered_cases(s, t.n_places);
  if (words(&s->rows)[t.first_row])
    return split_task(s, &t);
  return PLN_OK;
}

/* The first task: all values, and all arms up to the first that matches any
 * value. */
static pln_status begin_coverage_search(coverage_search *s, pln_ref match) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[match];
  pln_scope scope = pln_owns(n) ? n->data : PLN_NONE;
  bool any = false;
  for (; scope != PLN_NONE && !any; scope = g->scopes[scope].next) {
    pln_ref pattern = pln_arm_pattern(g, scope);
    uint32_t first = 0, last = 0;
    any = pattern == PLN_NONE || !wants_something(&g->nodes[pattern]);
    if (!any)
      PLN_TRY(add_want(s, 0, pattern, &first, &last));
    PLN_TRY(push_search_item(s, &s->rows, first));
  }
  task all = {.constructor_choice = {.place = PLN_NONE},
              .n_rows = s->rows.n,
              .n_wants = s->wants.n,
              .n_places = 1};
  PLN_TRY(reserve(s, &s->tasks, 1, sizeof(task)));
  ((task *)s->tasks.items)[s->tasks.n++] = all;
  return reserve(s, &s->first, 1, sizeof(uint32_t));
}

pln_status pln_match_each_uncovered(const pln_graph *graph, pln_ref match,
                                    const pln_module *module,
                                    pln_case_fn report_case, void *ud) {
  uint64_t most = MOST_WORK + 16 * (uint64_t)graph->n_nodes;
  coverage_search s = {.engine = graph->engine,
                       .graph = graph,
                       .module = module,
                       .report_case = report_case,
                       .ud = ud,
                       .most_work =
                           most < UINT32_MAX / 2 ? most : UINT32_MAX / 2};
  pln_status status = begin_coverage_search(&s, match);
  while (status == PLN_OK && s.tasks.n > 0 && !s.enough)
    status = do_coverage_task(&s);
  tear_down(&s);
  return status;
}
