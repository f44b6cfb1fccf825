/* arena.c: an arena: blocks that are freed together.
 *
 * Used by tables whose records never move. Chunk sizes double up to 256 KiB. A
 * block over a quarter of a chunk gets its own chunk, so that little space is
 * wasted at the ends. */

#include "base/base.h"

enum { ALIGN = 16, FIRST_CHUNK = 1024, LAST_CHUNK = 256 * 1024 };

typedef struct pln_arena_chunk chunk;
struct pln_arena_chunk {
  chunk *next;
  size_t size; /* of the whole allocation, in bytes */
  size_t used; /* offset of the first free byte */
};

void pln_arena_init(pln_arena *arena, pln_engine *engine) {
  arena->engine = engine;
  arena->chunks = NULL;
}

/* The next aligned block in the chunk, or NULL. */
static void *alloc_from_chunk(chunk *c, size_t size) {
  size_t skew = (size_t)((uintptr_t)((char *)c + c->used) % ALIGN);
  size_t gap = skew ? ALIGN - skew : 0;
  if (size > c->size - c->used || gap > c->size - c->used - size)
    return NULL;
  char *block = (char *)c + c->used + gap;
  c->used += gap + size;
  return block;
}

static chunk *new_chunk(pln_arena *arena, size_t size) {
  chunk *c = pln_mem_new(arena->engine, size);
  if (c)
    *c = (chunk){.size = size, .used = sizeof *c};
  return c;
}

/* The newest chunk stays first in the list, except after a block that got its
 * own chunk. */
static void *new_block(pln_arena *arena, size_t size) {
  chunk *head = arena->chunks;
  size_t usual = head ? head->size * 2 : FIRST_CHUNK;
  if (usual > LAST_CHUNK)
    usual = LAST_CHUNK;
  size_t exact = sizeof *head + ALIGN + size;
  bool own = size > usual / 4;
  chunk *c = new_chunk(arena, own ? exact : usual);
  if (!c)
    return NULL;
  if (own && head) {
    c->next = head->next;
    head->next = c;
  } else {
    c->next = head;
    arena->chunks = c;
  }
  return alloc_from_chunk(c, size);
}

void *pln_arena_new(pln_arena *arena, size_t size) {
  if (size == 0)
    size = 1; /* a zero-size block still needs its own address */
  if (size > PTRDIFF_MAX / 2)
    return NULL;
  void *block = arena->chunks ? alloc_from_chunk(arena->chunks, size) : NULL;
  return block ? block : new_block(arena, size);
}

void pln_arena_free(pln_arena *arena) {
  while (arena->chunks) {
    chunk *c = arena->chunks;
    arena->chunks = c->next;
    pln_mem_free(arena->engine, c, c->size);
  }
}
