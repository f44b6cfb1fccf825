/* extract_exact.c: the cheapest extraction of a small e-graph, by branch and
 * bound.
 *
 * Level k decides the choice of the k-th needed class; its operands become
 * needed. A partial sum that is not below the best one is not continued. After
 * MAX_STEPS choices the best one so far stands. Called by extract.c. */

#include "rule/egraph/extract.h"

enum { MAX_CHOICES = 256, MAX_CLASSES = 128, MAX_STEPS = 200000 };

typedef struct exact_search {
  pln_extraction *x;
  uint32_t needed[MAX_CLASSES]; /* classes, in order of discovery */
  uint32_t choice[MAX_CLASSES]; /* of level k: the next one to try */
  uint32_t before[MAX_CLASSES]; /* of level k: needed classes before it */
  double sum[MAX_CLASSES + 1];  /* of the levels before k */
  bool is_needed[MAX_CLASSES];
  uint32_t best[MAX_CLASSES]; /* by class */
  uint32_t n, steps;
  double cost;
} exact_search;

/* Undoes the decision of a level. */
static void undo(exact_search *s, uint32_t level) {
  while (s->n > s->before[level])
    s->is_needed[s->needed[--s->n]] = false;
}

static void need(exact_search *s, const pln_echoice *c) {
  for (uint32_t i = 0; i < c->count; i++) {
    uint32_t operand = s->x->operands[c->first + i];
    if (s->is_needed[operand])
      continue;
    s->is_needed[operand] = true;
    s->needed[s->n++] = operand;
  }
}

/* All needed classes have choices. */
static void finish(exact_search *s) {
  double cost = pln_extraction_cost(s->x);
  if (cost >= s->cost)
    return;
  s->cost = cost;
  memcpy(s->best, s->x->picked, s->x->n_classes * sizeof *s->best);
}

static void open_level(exact_search *s, uint32_t level) {
  s->choice[level] = s->x->first_choice[s->needed[level]];
  s->before[level] = s->n;
}

static void search(exact_search *s) {
  pln_extraction *x = s->x;
  uint32_t level = 0;
  s->needed[s->n++] = 0;
  s->is_needed[0] = true;
  open_level(s, 0);
  while (s->steps++ < MAX_STEPS) {
    uint32_t class_ = s->needed[level], c = s->choice[level]++;
    undo(s, level);
    if (c == x->first_choice[class_ + 1]) {
      if (level-- == 0)
        return;
      continue;
    }
    s->sum[level + 1] = s->sum[level] + x->choices[c].cost;
    if (s->sum[level + 1] >= s->cost * (1 - 1e-12))
      continue;
    x->picked[class_] = c;
    need(s, &x->choices[c]);
    if (level + 1 < s->n)
      open_level(s, ++level);
    else
      finish(s);
  }
}

pln_status pln_extraction_exact(pln_extraction *x, double *cost) {
  if (x->n_classes > MAX_CLASSES || x->n_choices > MAX_CHOICES)
    return PLN_OK;
  exact_search *s = pln_mem_zeroed(x->engine, sizeof *s);
  if (!s)
    return pln_nomem(x->engine);
  s->x = x;
  s->cost = *cost;
  memcpy(s->best, x->picked, x->n_classes * sizeof *s->best);
  search(s);
  memcpy(x->picked, s->best, x->n_classes * sizeof *s->best);
  *cost = s->cost;
  pln_mem_free(x->engine, s, sizeof *s);
  return PLN_OK;
}
