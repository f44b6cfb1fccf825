/* fixpoint.c: runs a list of passes until it changes nothing.
 *
 * Called by execute.c. What always holds: it ends after `rounds` rounds, and
 * earlier when a round gives what an earlier one gave: passes that undo each
 * other are named in a warning, and what was reached stands. */

#include <stdio.h>

#include "pass/pass.h"

typedef struct seen_round {
  uint64_t hash;   /* of the subject when the round began */
  uint32_t report; /* rows of the report at that time */
} seen_round;

typedef struct rounds {
  pln_execution *x;
  uint64_t hash;  /* of the subject after the newest round */
  uint32_t round; /* the newest, from 1 */
  uint32_t n, cap;
  seen_round *seen;
} rounds;

/* The round that began with this hash, or PLN_NONE. */
static uint32_t find(const rounds *r, uint64_t hash) {
  for (uint32_t i = 0; i < r->n; i++)
    if (r->seen[i].hash == hash)
      return i;
  return PLN_NONE;
}

static pln_status remember(rounds *r, uint64_t hash, uint32_t report) {
  PLN_TRY(pln_mem_grow(r->x->engine, (void **)&r->seen, &r->cap,
                       (size_t)r->n + 1, sizeof *r->seen));
  r->seen[r->n++] = (seen_round){hash, report};
  return PLN_OK;
}

static bool named_before(const pln_engine *e, uint32_t from, uint32_t row) {
  for (uint32_t i = from; i < row; i++)
    if (pln_report_get(e, i)->changed &&
        pln_report_get(e, i)->pass == pln_report_get(e, row)->pass)
      return true;
  return false;
}

/* The passes that changed something since row `from` of the report. */
static void warn(const rounds *r, uint32_t first) {
  const pln_engine *e = r->x->engine;
  char names[400] = "";
  size_t used = 0;
  for (uint32_t i = r->seen[first].report; i < pln_report_count(e); i++) {
    if (!pln_report_get(e, i)->changed ||
        named_before(e, r->seen[first].report, i))
      continue;
    int n = snprintf(names + used, sizeof names - used, "%s%s",
                     used ? ", " : "", pln_report_get(e, i)->pass);
    if (n < 0 || (size_t)n >= sizeof names - used)
      break;
    used += (size_t)n;
  }
  pln_diag_warn(r->x->engine, NULL,
                "fixpoint: round %u ends where round %u began; these passes "
                "undo each other: %s",
                (unsigned)r->n, (unsigned)first + 1, names);
}

/* After a round that changed something: *back when what it gives was there
 * before one of the rounds. */
static pln_status look_back(rounds *r, const pln_subject *before,
                            uint32_t report, const pln_subject *s, bool *back) {
  if (r->n == 0)
    PLN_TRY(pln_subject_hash(before, &r->hash));
  PLN_TRY(remember(r, r->hash, report));
  PLN_TRY(pln_subject_hash(s, &r->hash));
  uint32_t first = find(r, r->hash);
  *back = first != PLN_NONE;
  if (*back)
    warn(r, first);
  return PLN_OK;
}

/* One round; *done when it changed nothing, or came back to where it was. */
static pln_status round_once(rounds *r, const pln_pass *pass, pln_subject *s,
                             bool *done) {
  pln_subject before = pln_subject_copy(s);
  uint32_t report = pln_report_count(r->x->engine);
  r->x->round = ++r->round;
  pln_status status = pln_run_elements(r->x, pass, 0, pass->def->n_elements, s);
  *done = pln_subject_same(&before, s);
  if (status == PLN_OK && !*done)
    status = look_back(r, &before, report, s, done);
  pln_subject_drop(&before);
  return status;
}

pln_status pln_run_fixpoint(pln_execution *x, const pln_pass *pass,
                            pln_subject *s) {
  rounds r = {.x = x};
  bool done = false;
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < pass->def->rounds && !done && status == PLN_OK; i++)
    status = round_once(&r, pass, s, &done);
  pln_mem_free(x->engine, r.seen, r.cap * sizeof *r.seen);
  return status;
}
