/* infer/match_coverage.c: finds the values that no arm of a Match covers
 * (Maranget, Warnings for pattern matching, 2007), without matrices.
 *
 * Called by inference and scripts. A task is a set of values, described by
 * constructor choices along a path, together with the arms that may still match
 * some of them, each with its remaining tests. If the first arm has no tests,
 * the values are covered. If no arm is left, they are an uncovered case.
 * Otherwise the task is split by the first test of the first arm: one task per
 * constructor that an arm names there, and one for all other constructors.
 *
 * Invariant: tasks are processed last in, first out, so the data of a task lies
 * on top of each array and a finished task leaves nothing behind. The number of
 * tasks may be exponential in the pattern size, so the work is counted and
 * limited. */

#include "ir/infer/match_coverage.h"
#include "ir/graph/module.h"

/* The limit of work beyond what is linear in the program. */
enum { MAX_WORK = 1 << 24 };

/* A test of an arm: the value at an occurrence (a path into the matched value)
 * must have the form of `pattern`. The tests of an arm are a list, outer and
 * left occurrences first. */
typedef struct pattern_test {
  uint32_t occurrence;
  pln_ref pattern; /* of a constructor or a tuple */
  uint32_t next;   /* index + 1 of the next test; 0: none */
} pattern_test;

/* The constructor chosen at an occurrence. Its fields are occurrences as
 * well. */
typedef struct constructor_choice {
  uint32_t occurrence;
  uint32_t data;        /* index of the data type; PLN_NONE: a tuple */
  uint32_t constructor; /* PLN_NONE: any constructor that no arm names */
  uint32_t n_fields, first_field;
  uint32_t first_named, n_named;  /* the constructors that arms name */
  uint32_t first_other, n_others; /* the remaining ones; filled when a case is
                                   * reported */
  uint32_t other;                 /* the current one of these */
} constructor_choice;

typedef struct task {
  uint32_t depth;                        /* number of choices before its own */
  constructor_choice constructor_choice; /* occurrence PLN_NONE: none */
  uint32_t first_arm, n_arms;            /* arms: the first test + 1, or 0 */
  uint32_t n_tests, n_occurrences, n_named; /* array sizes when the task was
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
  bool stop;
  uint64_t work, most_work;
  array tasks, path, arms, tests, named;
  /* For the current split: the first and last arm + 1 of each constructor; arms
   * without a test there are under `n_constructors`. */
  array first, last, next, at;
  /* Buffers for the case being reported. */
  array others, choice_of, parts, stack;
} coverage_search;

/* ------------------------------------------------------------------ arrays */

/* Room for `n` items in all; new room is zeroed. */
static pln_status reserve(coverage_search *s, array *a, uint64_t n,
                          size_t item) {
  uint32_t old_capacity = a->capacity;
  PLN_TRY(pln_mem_grow(s->engine, &a->items, &a->capacity, (size_t)n, item));
  if (a->capacity > old_capacity)
    memset((char *)a->items + old_capacity * item, 0,
           (a->capacity - old_capacity) * item);
  return PLN_OK;
}

static pln_status push_search_item(coverage_search *s, array *a,
                                   uint32_t item) {
  PLN_TRY(reserve(s, a, (uint64_t)a->n + 1, sizeof item));
  ((uint32_t *)a->items)[a->n++] = item;
  return PLN_OK;
}

static uint32_t *uint32s(const array *a) {
  return a->items;
}

static void free_search_array(coverage_search *s, array *a, size_t item) {
  pln_mem_free(s->engine, a->items, a->capacity * item);
}

static void tear_down(coverage_search *s) {
  free_search_array(s, &s->tasks, sizeof(task));
  free_search_array(s, &s->path, sizeof(constructor_choice));
  free_search_array(s, &s->tests, sizeof(pattern_test));
  free_search_array(s, &s->parts, sizeof(pln_case_part));
  array *of_uint32s[] = {&s->arms,   &s->named,     &s->first,
                         &s->last,   &s->next,      &s->at,
                         &s->others, &s->choice_of, &s->stack};
  for (size_t i = 0; i < PLN_COUNT(of_uint32s); i++)
    free_search_array(s, of_uint32s[i], sizeof(uint32_t));
}

static pln_status charge(coverage_search *s, uint64_t work) {
  s->work += work;
  if (s->work <= s->most_work)
    return PLN_OK;
  return pln_diag_error(
      s->engine, PLN_ERR_LIMIT, NULL,
      "finding the cases that the arms do not cover takes more than %u steps",
      (unsigned)MAX_WORK);
}

static pattern_test *test_at(const coverage_search *s, uint32_t number) {
  return (pattern_test *)s->tests.items + (number - 1);
}

static constructor_choice *choice_at(const coverage_search *s, uint32_t depth) {
  return (constructor_choice *)s->path.items + depth;
}

/* ---------------------------------------------------------------- patterns */

static bool tests_value(const pln_node *pattern) {
  return pattern->kind == PLN_PATTERN_CONSTRUCTOR ||
         pattern->kind == PLN_PATTERN_TUPLE;
}

/* Appends a test after *last (0: it becomes the first, *first). */
static pln_status add_test(coverage_search *s, uint32_t occurrence,
                           pln_ref pattern, uint32_t *first, uint32_t *last) {
  PLN_TRY(
      reserve(s, &s->tests, (uint64_t)s->tests.n + 1, sizeof(pattern_test)));
  uint32_t number = ++s->tests.n;
  *test_at(s, number) =
      (pattern_test){.occurrence = occurrence, .pattern = pattern};
  if (*last)
    test_at(s, *last)->next = number;
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

/* A split at an occurrence, by the constructors of a data type or the fields of
 * a tuple. */
typedef struct constructor_split {
  uint32_t occurrence, data;
  uint32_t n_constructors, n_fields; /* fields of the tuple */
  uint32_t first_named, n_named;
} constructor_split;

static void append_to_list(coverage_search *s, uint32_t constructor,
                           uint32_t arm) {
  uint32_t *first = uint32s(&s->first), *last = uint32s(&s->last);
  uint32s(&s->next)[arm] = 0;
  if (last[constructor])
    uint32s(&s->next)[last[constructor] - 1] = arm + 1;
  else
    first[constructor] = arm + 1;
  last[constructor] = arm + 1;
}

/* The arm's test at that occurrence, or 0. */
static pln_status find_test(coverage_search *s, uint32_t arm,
                            uint32_t occurrence, uint32_t *out) {
  uint32_t number = arm;
  while (number && test_at(s, number)->occurrence != occurrence) {
    number = test_at(s, number)->next;
    PLN_TRY(charge(s, 1));
  }
  *out = number;
  return charge(s, 1);
}

/* Assigns arm i of the task to the list of its constructor. A pattern of
 * another type never matches and is in no list. */
static pln_status partition_arm(coverage_search *s, constructor_split *by,
                                const task *t, uint32_t i) {
  uint32_t number, data, index;
  PLN_TRY(find_test(s, uint32s(&s->arms)[t->first_arm + i], by->occurrence,
                    &number));
  uint32s(&s->at)[i] = number;
  if (!number) {
    append_to_list(s, by->n_constructors, i);
    return PLN_OK;
  }
  const pln_node *pattern = &s->graph->nodes[test_at(s, number)->pattern];
  PLN_TRY(find_constructor(s, pattern, &data, &index));
  if (data != by->data || (data == PLN_NONE && pattern->count != by->n_fields))
    return PLN_OK;
  if (!uint32s(&s->first)[index]) {
    PLN_TRY(push_search_item(s, &s->named, index));
    by->n_named++;
  }
  append_to_list(s, index, i);
  return PLN_OK;
}

static pln_status partition_arms(coverage_search *s, constructor_split *by,
                                 const task *t) {
  uint64_t n = (uint64_t)by->n_constructors + 1;
  PLN_TRY(reserve(s, &s->first, n, sizeof(uint32_t)));
  PLN_TRY(reserve(s, &s->last, n, sizeof(uint32_t)));
  PLN_TRY(reserve(s, &s->next, t->n_arms, sizeof(uint32_t)));
  PLN_TRY(reserve(s, &s->at, t->n_arms, sizeof(uint32_t)));
  for (uint32_t i = 0; i < t->n_arms; i++)
    PLN_TRY(partition_arm(s, by, t, i));
  return PLN_OK;
}

/* Replaces the test at the occurrence by tests for its fields. Tests before it
 * are copied, tests after it are shared. */
static pln_status expand_arm(coverage_search *s, uint32_t arm, uint32_t number,
                             uint32_t first_field, uint32_t *out) {
  uint32_t first = 0, last = 0;
  for (uint32_t i = arm; i != number; i = test_at(s, i)->next) {
    pattern_test before = *test_at(s, i);
    PLN_TRY(add_test(s, before.occurrence, before.pattern, &first, &last));
  }
  const pln_node *pattern = &s->graph->nodes[test_at(s, number)->pattern];
  for (uint32_t i = 0; i < pattern->count; i++) {
    pln_ref field = s->graph->operands[pattern->first + i];
    if (tests_value(&s->graph->nodes[field]))
      PLN_TRY(add_test(s, first_field + i, field, &first, &last));
  }
  uint32_t rest = test_at(s, number)->next;
  if (last)
    test_at(s, last)->next = rest;
  *out = last ? first : rest;
  return charge(s, pattern->count);
}

/* Merges the arms of one constructor (PLN_NONE: of none) with the arms without
 * a test there, in order, up to the first arm that matches everything. */
static pln_status merge_arms(coverage_search *s, const constructor_split *by,
                             const task *t, uint32_t constructor,
                             uint32_t first_field) {
  const uint32_t *next = uint32s(&s->next), *at = uint32s(&s->at);
  uint32_t a = uint32s(&s->first)[by->n_constructors], b = 0;
  if (constructor != PLN_NONE)
    b = uint32s(&s->first)[constructor];
  for (uint32_t arm = 1; (a || b) && arm;) {
    bool here = !a || (b && b < a);
    uint32_t i = (here ? b : a) - 1;
    arm = uint32s(&s->arms)[t->first_arm + i];
    if (here)
      PLN_TRY(expand_arm(s, arm, at[i], first_field, &arm));
    *(here ? &b : &a) = next[i];
    PLN_TRY(push_search_item(s, &s->arms, arm));
    PLN_TRY(charge(s, 1));
  }
  return PLN_OK;
}

static pln_status push_task(coverage_search *s, const constructor_split *by,
                            const task *t, uint32_t constructor) {
  constructor_choice c = {.occurrence = by->occurrence,
                          .data = by->data,
                          .constructor = constructor,
                          .n_fields = by->n_fields,
                          .first_field = t->n_occurrences,
                          .first_named = by->first_named,
                          .n_named = by->n_named};
  if (by->data != PLN_NONE)
    c.n_fields = constructor == PLN_NONE
                     ? 0
                     : pln_module_type_def_at(s->module, by->data)
                           ->constructors[constructor]
                           .n_inputs;
  task child = {.depth =
                    t->depth + (t->constructor_choice.occurrence != PLN_NONE),
                .constructor_choice = c,
                .first_arm = s->arms.n,
                .n_occurrences = t->n_occurrences + c.n_fields};
  PLN_TRY(merge_arms(s, by, t, constructor, c.first_field));
  child.n_arms = s->arms.n - child.first_arm;
  child.n_tests = s->tests.n;
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
    PLN_TRY(push_task(s, by, t, uint32s(&s->named)[by->first_named + i]));
  return PLN_OK;
}

/* Clears the lists for the next split. */
static void clear_lists(coverage_search *s, const constructor_split *by) {
  for (uint32_t i = 0; i <= by->n_named; i++) {
    uint32_t constructor = i < by->n_named
                               ? uint32s(&s->named)[by->first_named + i]
                               : by->n_constructors;
    uint32s(&s->first)[constructor] = uint32s(&s->last)[constructor] = 0;
  }
}

/* Splits the task by the first test of its first arm. */
static pln_status split_task(coverage_search *s, const task *t) {
  const pattern_test *w = test_at(s, uint32s(&s->arms)[t->first_arm]);
  const pln_node *pattern = &s->graph->nodes[w->pattern];
  constructor_split by = {.occurrence = w->occurrence,
                          .n_constructors = 1,
                          .n_fields = pattern->count,
                          .first_named = s->named.n};
  uint32_t index;
  PLN_TRY(find_constructor(s, pattern, &by.data, &index));
  if (by.data != PLN_NONE)
    by.n_constructors =
        pln_module_type_def_at(s->module, by.data)->n_constructors;
  PLN_TRY(partition_arms(s, &by, t));
  PLN_TRY(push_tasks(s, &by, t));
  clear_lists(s, &by);
  return PLN_OK;
}

/* ------------------------------------------------------------------- cases */

static const pln_constructor *constructor_of(const coverage_search *s,
                                             const constructor_choice *c) {
  uint32_t index = c->constructor;
  if (index == PLN_NONE)
    index = uint32s(&s->others)[c->first_other + c->other];
  return &pln_module_type_def_at(s->module, c->data)->constructors[index];
}

/* Lists the constructors that no arm names. */
static pln_status list_others(coverage_search *s, constructor_choice *c) {
  uint32_t n = pln_module_type_def_at(s->module, c->data)->n_constructors;
  uint32_t *first = uint32s(&s->first);
  const uint32_t *named = uint32s(&s->named) + c->first_named;
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

/* Writes the part at an occurrence (PLN_NONE: any value); its fields follow. */
static pln_status write_occurrence(coverage_search *s, uint32_t occurrence) {
  uint32_t choice_of =
      occurrence == PLN_NONE ? 0 : uint32s(&s->choice_of)[occurrence];
  if (!choice_of)
    return add_part(s, (pln_case_part){.kind = PLN_CASE_ANY});
  const constructor_choice *c = choice_at(s, choice_of - 1);
  pln_case_part part = {.kind = PLN_CASE_TUPLE, .n_parts = c->n_fields};
  if (c->data != PLN_NONE) {
    const pln_constructor *constructor = constructor_of(s, c);
    part = (pln_case_part){PLN_CASE_CONSTRUCTOR, constructor->name,
                           constructor->n_inputs};
  }
  for (uint32_t i = part.n_parts; i-- > 0;)
    PLN_TRY(push_search_item(s, &s->stack,
                             c->constructor == PLN_NONE ? PLN_NONE
                                                        : c->first_field + i));
  PLN_TRY(add_part(s, part));
  return charge(s, (uint64_t)part.n_parts + 1);
}

static pln_status report_uncovered_case(coverage_search *s) {
  s->parts.n = s->stack.n = 0;
  PLN_TRY(push_search_item(s, &s->stack, 0));
  while (s->stack.n > 0)
    PLN_TRY(write_occurrence(s, uint32s(&s->stack)[--s->stack.n]));
  PLN_TRY(charge(s, 1));
  return s->report_case(s->ud, s->parts.n, s->parts.items, &s->stop);
}

/* Advances to the next combination of unnamed constructors; false after the
 * last. */
static bool next_others(const coverage_search *s) {
  for (uint32_t i = s->path.n; i-- > 0;) {
    constructor_choice *c = choice_at(s, i);
    if (c->constructor != PLN_NONE)
      continue;
    if (++c->other < c->n_others)
      return true;
    c->other = 0;
  }
  return false;
}

static pln_status report_uncovered_cases(coverage_search *s,
                                         uint32_t n_occurrences) {
  s->others.n = 0;
  PLN_TRY(reserve(s, &s->choice_of, n_occurrences, sizeof(uint32_t)));
  PLN_TRY(charge(s, s->path.n));
  for (uint32_t i = 0; i < s->path.n; i++)
    if (choice_at(s, i)->constructor == PLN_NONE)
      PLN_TRY(list_others(s, choice_at(s, i)));
  for (uint32_t i = 0; i < s->path.n; i++)
    uint32s(&s->choice_of)[choice_at(s, i)->occurrence] = i + 1;
  pln_status status = PLN_OK;
  do
    status = report_uncovered_case(s);
  while (status == PLN_OK && !s->stop && next_others(s));
  for (uint32_t i = 0; i < s->path.n; i++)
    uint32s(&s->choice_of)[choice_at(s, i)->occurrence] = 0;
  return status;
}

/* ------------------------------------------------------------------ search */

static pln_status enter_path(coverage_search *s, const task *t) {
  s->path.n = t->depth;
  if (t->constructor_choice.occurrence == PLN_NONE)
    return PLN_OK;
  PLN_TRY(
      reserve(s, &s->path, (uint64_t)t->depth + 1, sizeof(constructor_choice)));
  *choice_at(s, s->path.n++) = t->constructor_choice;
  return PLN_OK;
}

static pln_status do_coverage_task(coverage_search *s) {
  task t = ((task *)s->tasks.items)[--s->tasks.n];
  PLN_TRY(enter_path(s, &t));
  s->arms.n = t.first_arm + t.n_arms;
  s->tests.n = t.n_tests;
  s->named.n = t.n_named;
  if (t.n_arms == 0)
    return report_uncovered_cases(s, t.n_occurrences);
  if (uint32s(&s->arms)[t.first_arm])
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
    any = pattern == PLN_NONE || !tests_value(&g->nodes[pattern]);
    if (!any)
      PLN_TRY(add_test(s, 0, pattern, &first, &last));
    PLN_TRY(push_search_item(s, &s->arms, first));
  }
  task all = {.constructor_choice = {.occurrence = PLN_NONE},
              .n_arms = s->arms.n,
              .n_tests = s->tests.n,
              .n_occurrences = 1};
  PLN_TRY(reserve(s, &s->tasks, 1, sizeof(task)));
  ((task *)s->tasks.items)[s->tasks.n++] = all;
  return reserve(s, &s->first, 1, sizeof(uint32_t));
}

pln_status pln_match_each_uncovered(const pln_graph *graph, pln_ref match,
                                    const pln_module *module,
                                    pln_case_fn report_case, void *ud) {
  uint64_t most = MAX_WORK + 16 * (uint64_t)graph->n_nodes;
  coverage_search s = {.engine = graph->engine,
                       .graph = graph,
                       .module = module,
                       .report_case = report_case,
                       .ud = ud,
                       .most_work =
                           most < UINT32_MAX / 2 ? most : UINT32_MAX / 2};
  pln_status status = begin_coverage_search(&s, match);
  while (status == PLN_OK && s.tasks.n > 0 && !s.stop)
    status = do_coverage_task(&s);
  tear_down(&s);
  return status;
}
