/* memory.c: the memory of a run of a loop program: tensors that were given, and
 * what the program allocates.
 *
 * Called by run.c, and by execute.c for ALLOCATE and for the first store to a
 * tensor. A storage that is allocated again reuses its block. The caller's
 * tensors are never written to. */

#include "eval/loop/program.h"

static void release_block(pln_loop_run *run, pln_loop_storage *s) {
  if (s->tensor)
    pln_tensor_release(s->tensor);
  else
    pln_mem_free(run->engine, s->data, s->capacity);
  pln_mem_free(run->engine, s->written, s->written ? s->capacity : 0);
  *s = (pln_loop_storage){0};
}

void pln_loop_release_storages(pln_loop_run *run) {
  for (uint32_t i = 0; run->storages && i < run->program->n_storages; i++)
    release_block(run, &run->storages[i]);
  pln_mem_free(run->engine, run->storages,
               run->program->n_storages * sizeof *run->storages);
  run->storages = NULL;
}

static pln_status new_block(pln_loop_run *run, pln_loop_storage *s,
                            size_t bytes) {
  bool tracked = !run->options->zero_memory;
  release_block(run, s);
  s->data = pln_mem_new(run->engine, bytes);
  if (!s->data)
    return pln_nomem(run->engine);
  s->capacity = bytes;
  if (tracked && !(s->written = pln_mem_new(run->engine, bytes))) {
    release_block(run, s);
    return pln_nomem(run->engine);
  }
  return PLN_OK;
}

pln_status pln_loop_allocate(pln_loop_run *run, uint32_t id, size_t bytes) {
  pln_loop_storage *s = &run->storages[id];
  size_t wanted = bytes ? bytes : 1;
  if (wanted > s->capacity)
    PLN_TRY(new_block(run, s, wanted));
  s->bytes = bytes;
  s->writable = true;
  memset(s->data, 0, bytes);
  if (s->written)
    memset(s->written, 0, bytes);
  return PLN_OK;
}

pln_status pln_loop_bind_tensor(pln_loop_run *run, uint32_t id,
                                const pln_tensor *tensor) {
  pln_loop_storage *s = &run->storages[id];
  const void *data;
  PLN_TRY(pln_tensor_dense(tensor, &s->tensor));
  PLN_TRY(pln_tensor_data(s->tensor, &data));
  s->data = (char *)(uintptr_t)data; /* not written before it is copied */
  s->bytes = pln_tensor_bytes(s->tensor);
  return PLN_OK;
}

pln_status pln_loop_make_writable(pln_loop_run *run, uint32_t id) {
  pln_loop_storage *s = &run->storages[id];
  pln_tensor *copy = NULL;
  PLN_TRY(pln_tensor_unset(run->engine, s->tensor->dtype, s->tensor->rank,
                           s->tensor->dims, &copy));
  char *to = pln_tensor_writable(copy);
  pln_status status = pln_copy_bytes(run->engine, to, s->data, s->bytes);
  if (status != PLN_OK) {
    pln_tensor_release(copy);
    return status;
  }
  pln_tensor_release(s->tensor);
  s->tensor = copy;
  s->data = to;
  s->writable = true;
  return PLN_OK;
}
