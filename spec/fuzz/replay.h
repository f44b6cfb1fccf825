/* replay.h: what fuzz targets do without libFuzzer: the whole input, its
 * prefixes, and changed copies of it, each in a block of its own size, so that
 * reading past the end is seen. */

#ifndef REPLAY_H
#define REPLAY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/file/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static inline void *fresh_block(size_t size) {
  void *block = malloc(size ? size : 1);
  if (!block) {
    fputs("out of memory\n", stderr);
    abort();
  }
  return block;
}

static inline void run_copy(const uint8_t *data, size_t size) {
  uint8_t *copy = fresh_block(size);
  memcpy(copy, data, size);
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

/* Puts a piece of the text somewhere else: over, or in front of, what is
 * there; or takes one out. */
static inline size_t move_piece(uint8_t *copy, size_t size, uint64_t *state) {
  size_t length = 1 + next_random(state) % 24;
  if (length >= size)
    return size;
  size_t from = next_random(state) % (size - length);
  size_t to = next_random(state) % (size - length);
  uint8_t piece[24];
  memcpy(piece, copy + from, length);
  switch (next_random(state) % 3) {
  case 0: memcpy(copy + to, piece, length); return size;
  case 1:
    memmove(copy + to + length, copy + to, size - to);
    memcpy(copy + to, piece, length);
    return size + length;
  default:
    memmove(copy + from, copy + from + length, size - from - length);
    return size - length;
  }
}

/* A few such pieces, or single bytes. */
static inline size_t change_text(uint8_t *copy, size_t size, uint64_t *state) {
  for (uint64_t n = 1 + next_random(state) % 4; n > 0; n--) {
    uint64_t r = next_random(state);
    if (r >> 62)
      size = move_piece(copy, size, state);
    else
      copy[r % size] = (uint8_t)(r >> 32);
  }
  return size;
}

/* A target's own way to change a copy, which has 100 bytes of room behind
 * `size`: the new size. */
typedef size_t (*change_fn)(uint8_t *copy, size_t size, uint64_t *state);

typedef struct replay_plan {
  change_fn change;
  size_t most_prefixes;
  long flips;
  uint64_t seed;
} replay_plan;

static inline void replay(const replay_plan *plan, const uint8_t *data,
                          size_t size) {
  uint64_t state = plan->seed * 0x9e3779b97f4a7c15u + 1;
  uint8_t *copy = fresh_block(size + 100);
  run_copy(data, size);
  for (size_t n = 0; n < size && n < plan->most_prefixes; n++)
    run_copy(data, n);
  for (long i = 0; i < plan->flips && size; i++) {
    memcpy(copy, data, size);
    run_copy(copy, plan->change(copy, size, &state));
  }
  free(copy);
}

static inline void replay_file(const replay_plan *plan, const char *path) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_file *file;
  if (!engine || pln_file_map(engine, path, &file) != PLN_OK) {
    fprintf(stderr, "%s: cannot be read\n", path);
    abort();
  }
  replay(plan, pln_file_data(file), (size_t)pln_file_size(file));
  pln_file_release(file);
  pln_engine_free(engine);
}

/* `TARGET [FLIPS [SEED]] [FILE...]`: false when no file is named. */
static inline bool replay_arguments(replay_plan *plan, int argc, char **argv) {
  if (argc > 1)
    plan->flips = atol(argv[1]);
  plan->seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  for (int i = 3; i < argc; i++)
    replay_file(plan, argv[i]);
  return argc > 3;
}

#endif
