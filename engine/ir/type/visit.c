/* type/visit.c: visits the parts of a type, each distinct type once, parts
 * before the whole; and rebuilds types from changed parts.
 *
 * Called by analyses, visitors and mutators. The stack is explicit, because
 * types nest to any depth. Visited types stay visited until the walker is
 * freed. */

#include "ir/type/type.h"

typedef struct frame {
  pln_type type;
  uint32_t done; /* parts */
} frame;

struct pln_type_walker {
  pln_engine *engine;
  pln_idmap *seen; /* type + 1 -> 1 */
  frame *stack;
  uint32_t top, capacity;
};

/* ------------------------------------------------------------------- walks */

static pln_status start_type_walk(pln_type_walker *w, pln_engine *engine) {
  *w = (pln_type_walker){.engine = engine};
  return pln_idmap_new(engine, &w->seen);
}

static void stop(pln_type_walker *w) {
  pln_idmap_free(w->seen);
  pln_mem_free(w->engine, w->stack, w->capacity * sizeof *w->stack);
}

pln_status pln_type_walker_new(pln_engine *engine, pln_type_walker **out) {
  pln_type_walker *w = pln_mem_new(engine, sizeof *w);
  if (!w)
    return pln_nomem(engine);
  pln_status status = start_type_walk(w, engine);
  if (status == PLN_OK)
    *out = w;
  else
    pln_mem_free(engine, w, sizeof *w);
  return status;
}

void pln_type_walker_free(pln_type_walker *w) {
  if (!w)
    return;
  stop(w);
  pln_mem_free(w->engine, w, sizeof *w);
}

pln_status pln_type_walker_add(pln_type_walker *w, pln_type type) {
  uint64_t key = (uint64_t)type + 1;
  if (pln_idmap_get(w->seen, key))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(w->engine, (void **)&w->stack, &w->capacity,
                       (size_t)w->top + 1, sizeof *w->stack));
  PLN_TRY(pln_idmap_set(w->seen, key, 1));
  w->stack[w->top++] = (frame){type, 0};
  return PLN_OK;
}

pln_status pln_type_walker_next(pln_type_walker *w, pln_type *type,
                                bool *done) {
  *done = w->top == 0;
  while (w->top > 0) {
    frame *f = &w->stack[w->top - 1];
    uint32_t n;
    const pln_type *parts = pln_type_all_parts(w->engine, f->type, &n);
    if (f->done == n) {
      *type = f->type;
      w->top--;
      return PLN_OK;
    }
    PLN_TRY(pln_type_walker_add(w, parts[f->done++]));
  }
  return PLN_OK;
}

static pln_status visit_all(pln_type_walker *w, pln_type_fn fn, void *ud) {
  pln_type type;
  bool done;
  for (;;) {
    PLN_TRY(pln_type_walker_next(w, &type, &done));
    if (done)
      return PLN_OK;
    PLN_TRY(fn(ud, w->engine, type));
  }
}

pln_status pln_type_post_order(pln_engine *engine, pln_type type,
                               pln_type_fn fn, void *ud) {
  pln_type_walker w;
  PLN_TRY(start_type_walk(&w, engine));
  pln_status status = pln_type_walker_add(&w, type);
  if (status == PLN_OK)
    status = visit_all(&w, fn, ud);
  stop(&w);
  return status;
}

/* ----------------------------------------------------------------- rebuilt */

struct pln_type_mutator {
  pln_type_walker walker;
  pln_idmap *images; /* type + 1 -> image + 1 */
  pln_type_rewrite_fn image;
  void *ud;
};

pln_status pln_type_mutator_new(pln_engine *engine, pln_type_rewrite_fn image,
                                void *ud, pln_type_mutator **out) {
  pln_type_mutator *m = pln_mem_zeroed(engine, sizeof *m);
  if (!m)
    return pln_nomem(engine);
  m->image = image;
  m->ud = ud;
  pln_status status = start_type_walk(&m->walker, engine);
  if (status == PLN_OK)
    status = pln_idmap_new(engine, &m->images);
  if (status == PLN_OK)
    *out = m;
  else
    pln_type_mutator_free(m);
  return status;
}

void pln_type_mutator_free(pln_type_mutator *m) {
  if (!m)
    return;
  pln_engine *e = m->walker.engine;
  stop(&m->walker);
  pln_idmap_free(m->images);
  pln_mem_free(e, m, sizeof *m);
}

/* The type rebuilt from the images of its parts. */
static pln_status with_images(pln_type_mutator *m, pln_type type,
                              pln_type *out) {
  pln_engine *e = m->walker.engine;
  uint32_t n;
  const pln_type *parts = pln_type_all_parts(e, type, &n);
  pln_type few[16], *images = few;
  *out = type;
  if (n == 0)
    return PLN_OK;
  if (n > 16 && !(images = pln_mem_new(e, n * sizeof *images)))
    return pln_nomem(e);
  bool changed = false;
  for (uint32_t i = 0; i < n; i++) {
    images[i] = pln_idmap_get(m->images, (uint64_t)parts[i] + 1) - 1;
    changed = changed || images[i] != parts[i];
  }
  pln_status status = changed ? pln_type_rebuild(e, type, images, out) : PLN_OK;
  if (images != few)
    pln_mem_free(e, images, n * sizeof *images);
  return status;
}

static pln_status take_image(pln_type_mutator *m, pln_type type) {
  pln_type image;
  PLN_TRY(with_images(m, type, &image));
  PLN_TRY(m->image(m->ud, m->walker.engine, type, &image));
  return pln_idmap_set(m->images, (uint64_t)type + 1, image + 1);
}

pln_status pln_type_mutate(pln_type_mutator *m, pln_type type, pln_type *out) {
  pln_type part;
  bool done;
  PLN_TRY(pln_type_walker_add(&m->walker, type));
  for (;;) {
    PLN_TRY(pln_type_walker_next(&m->walker, &part, &done));
    if (done)
      break;
    PLN_TRY(take_image(m, part));
  }
  *out = pln_idmap_get(m->images, (uint64_t)type + 1) - 1;
  return PLN_OK;
}
