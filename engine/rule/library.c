/* library.c: the sets of shipped rules of an engine.
 *
 * Called by passes that run rules. A child engine has sets of its own, which
 * are read as its programs need them. */

#include "rule/library.h"

#include "rule/set.h"

enum { MAX_SETS = 8 };

struct pln_library_sets {
  uint32_t n;
  struct {
    const char *pass;
    pln_rule_set *set;
  } rows[MAX_SETS];
};

static pln_status add_rules(pln_rule_set *set, const char *pass,
                            pln_rule_find_native find) {
  for (uint32_t i = 0; i < pln_library_count; i++) {
    pln_rule_info info = pln_library[i].info;
    if (strcmp(pln_library[i].pass, pass))
      continue;
    info.file = pln_library[i].file;
    PLN_TRY(pln_library[i].heads
                ? pln_rule_set_add_later(set, &info, pln_library[i].heads, find)
                : pln_rule_set_add(set, &info, find));
  }
  return pln_rule_set_compile_later(set, find);
}

/* The name of the pass as the table has it, which outlives the caller's; NULL:
 * no rules are the pass's. */
static const char *name_of(const char *pass) {
  for (uint32_t i = 0; i < pln_library_count; i++)
    if (!strcmp(pln_library[i].pass, pass))
      return pln_library[i].pass;
  return NULL;
}

static pln_status need_sets(pln_engine *e) {
  if (e->rule_sets)
    return PLN_OK;
  e->rule_sets = pln_mem_zeroed(e, sizeof *e->rule_sets);
  return e->rule_sets ? PLN_OK : pln_nomem(e);
}

pln_status pln_library_rules(pln_engine *engine, const char *pass,
                             pln_rule_find_native find,
                             const pln_rule_set **out) {
  pln_rule_set *set;
  const char *name = name_of(pass);
  if (!name)
    return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                          "the pass '%s' has no rules", pass);
  PLN_TRY(need_sets(engine));
  struct pln_library_sets *s = engine->rule_sets;
  for (uint32_t i = 0; i < s->n; i++)
    if (!strcmp(s->rows[i].pass, pass)) {
      *out = s->rows[i].set;
      return PLN_OK;
    }
  if (s->n == MAX_SETS)
    return pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                          "too many passes have rules");
  PLN_TRY(pln_rule_set_new(engine, pass, &set));
  pln_status status = add_rules(set, pass, find);
  if (status != PLN_OK) {
    pln_rule_set_free(set);
    return status;
  }
  s->rows[s->n].pass = name;
  s->rows[s->n++].set = set;
  *out = set;
  return PLN_OK;
}

void pln_library_free(pln_engine *engine) {
  struct pln_library_sets *s = engine->rule_sets;
  if (!s)
    return;
  for (uint32_t i = 0; i < s->n; i++)
    pln_rule_set_free(s->rows[i].set);
  pln_mem_free(engine, s, sizeof *s);
  engine->rule_sets = NULL;
}
