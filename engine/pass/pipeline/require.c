/* require.c: runs the passes that an element of a sequential requires,
 * transitively, before the element.
 *
 * Called by sequential.c. Invariants: each required pass runs once per element,
 * after its own requirements; for a later element it runs again only if the
 * module has changed since. Passes come from the registry as it is now. */

#include <stdio.h>

#include "pass/pass.h"

/* A pass on the path of the depth-first search: its requirements before `next`
 * are done. */
typedef struct frame {
  pln_pass *pass; /* retained */
  uint32_t next;
} frame;

enum { ON_PATH = 1, DONE };

typedef struct plan {
  pln_execution *x;
  uint32_t n_path, cap_path;
  frame *path;      /* stack of the search, the element first */
  pln_idmap *state; /* symbol -> ON_PATH or DONE */
} plan;

static pln_status needs(plan *p, const frame *f, const char *name,
                        pln_status code, const char *what) {
  return pln_diag_error(p->x->engine, code, NULL,
                        "pass '%s' requires pass '%s', %s",
                        pln_pass_name(f->pass), name, what);
}

static pln_status check(plan *p, const frame *f, pln_symbol name) {
  pln_engine *engine = p->x->engine;
  char before[256];
  const char *text = pln_symbol_text(engine, name).data;
  if (pln_context_disables(p->x->context, name))
    return needs(p, f, text, PLN_ERR_ARGUMENT,
                 "which the context disables; disable both or none");
  if (pln_idmap_get(p->state, name) == ON_PATH)
    return needs(p, f, text, PLN_ERR_ARGUMENT,
                 "which in turn requires it: a cycle");
  if (pln_pass_lookup(engine, name))
    return PLN_OK;
  snprintf(before, sizeof before,
           "required by pass '%s': ", pln_pass_name(f->pass));
  return pln_pass_unknown(engine, NULL, before, text);
}

static pln_status push_required_pass(plan *p, const pln_pass *pass) {
  PLN_TRY(pln_mem_grow(p->x->engine, (void **)&p->path, &p->cap_path,
                       (size_t)p->n_path + 1, sizeof *p->path));
  PLN_TRY(pln_idmap_set(p->state, pass->name, ON_PATH));
  p->path[p->n_path++] = (frame){pln_pass_retain(pass), 0};
  return PLN_OK;
}

/* ------------------------------------------------------------------ freshness
 */

static struct pln_satisfied_requirement *fresh_row(pln_execution *x,
                                                   pln_symbol name) {
  for (uint32_t i = 0; i < x->n_fresh; i++)
    if (x->fresh[i].name == name)
      return &x->fresh[i];
  return NULL;
}

static pln_status mark_fresh(pln_execution *x, pln_symbol name) {
  struct pln_satisfied_requirement *row = fresh_row(x, name);
  if (!row) {
    PLN_TRY(pln_mem_grow(x->engine, (void **)&x->fresh, &x->cap_fresh,
                         (size_t)x->n_fresh + 1, sizeof *x->fresh));
    row = &x->fresh[x->n_fresh++];
  }
  *row = (struct pln_satisfied_requirement){name, x->version};
  return PLN_OK;
}

/* ------------------------------------------------------------------ running */

static pln_status run_required_pass(plan *p, const pln_pass *pass,
                                    pln_pass_target *s) {
  pln_execution *x = p->x;
  const struct pln_satisfied_requirement *row = fresh_row(x, pass->name);
  PLN_TRY(pln_idmap_set(p->state, pass->name, DONE));
  if (row && row->version == x->version)
    return PLN_OK;
  pln_position here = {.outer = x->position, .required = pass};
  pln_pass_target before = pln_pass_target_copy(s);
  x->position = &here;
  pln_status status = pln_execute(x, pass, s);
  if (status != PLN_OK)
    pln_position_note_failure(x, pass, &before);
  x->position = here.outer;
  pln_pass_target_release(&before);
  return status == PLN_OK ? mark_fresh(x, pass->name) : status;
}

/* Takes one step of the search: down to a requirement, or up after running a
 * pass. */
static pln_status advance_required_pass(plan *p, pln_pass_target *s) {
  frame *top = &p->path[p->n_path - 1];
  const pln_pass_def *def = top->pass->def;
  if (top->next < def->n_required) {
    pln_symbol name = def->required[top->next++];
    if (pln_idmap_get(p->state, name) == DONE)
      return PLN_OK;
    PLN_TRY(check(p, top, name));
    return push_required_pass(p, pln_pass_lookup(p->x->engine, name));
  }
  pln_pass *pass = top->pass;
  p->n_path--;
  pln_status status = p->n_path ? run_required_pass(p, pass, s) : PLN_OK;
  pln_pass_release(pass);
  return status;
}

pln_status pln_run_required(pln_execution *x, const pln_pass *pass,
                            pln_pass_target *s) {
  plan p = {.x = x};
  PLN_TRY(pln_idmap_new(x->engine, &p.state));
  pln_status status = push_required_pass(&p, pass);
  while (status == PLN_OK && p.n_path)
    status = advance_required_pass(&p, s);
  while (p.n_path)
    pln_pass_release(p.path[--p.n_path].pass);
  pln_mem_free(x->engine, p.path, p.cap_path * sizeof *p.path);
  pln_idmap_free(p.state);
  return status;
}
