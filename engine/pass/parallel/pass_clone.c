/* pass_clone.c: clones a primitive pass whose body belongs to one thread (a Lua
 * function) into a child engine.
 *
 * Called by parallel.c and, for each primitive pass that runs in a child, by
 * primitive.c. Invariant: a worker that runs has all clones. */

#include "pass/parallel/parallel.h"

const pln_pass *pln_pass_clone_of(const pln_engine *engine,
                                  const pln_pass *pass) {
  const pln_pass_clones *m = engine->passes->pass_clones;
  for (uint32_t i = 0; m && i < m->n; i++)
    if (m->list[i].pass->def == pass->def &&
        m->list[i].pass->options == pass->options)
      return m->own[i];
  return pass;
}

static pln_status open_all(pln_engine *child, pln_pass_clones *m, uint32_t n) {
  for (; m->n < n; m->n++) {
    const pln_pass *pass = m->list[m->n].pass;
    pln_pass *made;
    m->cloner = pass->def->cloner;
    PLN_TRY(
        m->cloner->open(child, m->list[m->n].packed, &m->worker_state, &made));
    pln_status status =
        pln_pass_of(child, pass->name, made->def, pass->options, &m->own[m->n]);
    pln_pass_release(made);
    PLN_TRY(status);
  }
  return PLN_OK;
}

pln_status pln_pass_clones_make(pln_engine *child, uint32_t n,
                                const pln_pass_clone *list) {
  struct pln_registry *r = child->passes;
  if (n == 0)
    return PLN_OK;
  pln_pass_clones *m = pln_mem_zeroed(child, sizeof *m);
  if (!m)
    return pln_nomem(child);
  r->pass_clones = m;
  m->list = list;
  m->own = pln_mem_zeroed(child, n * sizeof(pln_pass *));
  m->capacity = n;
  if (!m->own)
    return pln_nomem(child);
  const char *closed = r->closed;
  r->closed = "its file is being loaded for another thread; there it makes "
              "passes, and applies none";
  pln_status status = open_all(child, m, n);
  r->closed = closed;
  return status;
}

/* The owner of a clone outlives the passes made in it. Passes that the owner
 * holds are released while the registry still exists. */
void pln_pass_clones_release(pln_engine *child) {
  struct pln_registry *r = child->passes;
  pln_pass_clones *m = r ? r->pass_clones : NULL;
  if (!m)
    return;
  for (uint32_t i = 0; i < m->n; i++)
    pln_pass_release(m->own[i]);
  while (r->n_passes)
    pln_pass_release(r->passes[--r->n_passes].pass);
  if (m->worker_state)
    m->cloner->close(m->worker_state);
  pln_mem_free(child, m->own, m->capacity * sizeof(pln_pass *));
  pln_mem_free(child, m, sizeof *m);
  r->pass_clones = NULL;
}
