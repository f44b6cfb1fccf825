/* file_pair.c: replaces OUT.data and OUT so that OUT never refers to data of
 * another model.
 *
 * Two renames are not atomic. So if OUT exists, the new data first gets a name
 * of its own (OUT.perilune-N.data) and OUT becomes the new model with that name
 * in it; then the data is linked to OUT.data, and OUT becomes the final model.
 * A process killed in between leaves a complete model, old or new, and at most
 * the interim data file, which the next save of OUT removes. Saves into one
 * directory take turns (flock). */

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/export/file_pair.h"

enum { MAX_TEMPORARY = 9 };

static bool is_there(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

static bool name_temporary(const char *out, int i, char *path, size_t size) {
  int n = snprintf(path, size, "%s.perilune-%d.data", out, i);
  return n > 0 && (size_t)n < size;
}

bool pln_is_temporary_name(pln_slice location) {
  static const char middle[] = ".perilune-", end[] = ".data";
  size_t tail = sizeof middle - 1 + 1 + sizeof end - 1;
  if (location.size <= tail)
    return false;
  const char *at = location.data + location.size - tail;
  char digit = at[sizeof middle - 1];
  return !memcmp(at, middle, sizeof middle - 1) && digit >= '1' &&
         digit <= '9' && !memcmp(at + sizeof middle, end, sizeof end - 1);
}

/* Returns true if the target is still the file that was written, not one that
 * another process has put there since. */
static bool is_own_model(const char *target, const struct stat *own) {
  struct stat info;
  return lstat(target, &info) == 0 && info.st_dev == own->st_dev &&
         info.st_ino == own->st_ino;
}

/* Removes interim files if the model at `target` is `ours`, which does not need
 * them. */
static void remove_temporaries(const char *out, const char *target,
                               const struct stat *own) {
  char path[PLN_PATH_ROOM];
  for (int i = 1; i <= MAX_TEMPORARY; i++)
    if (name_temporary(out, i, path, sizeof path) && is_there(path) &&
        is_own_model(target, own))
      unlink(path);
}

/* A source that is another file by now belongs to another model. */
static pln_status check_sources(pln_engine *engine,
                                const pln_data_sources *sources) {
  for (uint32_t i = 0; i < sources->n; i++) {
    const pln_data_source *s = &sources->rows[i];
    pln_slice name = pln_symbol_text(engine, s->location);
    uint64_t now =
        pln_file_stamp_at(pln_symbol_text(engine, s->directory).data, name);
    if (now != pln_file_stamp(s->file))
      return pln_diag_error(engine, PLN_ERR_IO, NULL,
                            "external data '%.*s' was replaced while the model "
                            "was written",
                            name.size > 200 ? 200 : (int)name.size, name.data);
  }
  return PLN_OK;
}

/* Commits the interim model, whose data is in the file `interim`. */
static pln_status put_temporary(pln_engine *engine, pln_output *data,
                                const char *path, const char *temporary,
                                const pln_temporary_model_writer *model) {
  pln_output *out;
  const char *slash = strrchr(temporary, '/');
  if (!pln_output_link(data, temporary))
    return PLN_OK; /* the file system has no hard links: commit with two renames
                    */
  PLN_TRY(pln_output_open(engine, path, &out));
  pln_status status =
      model->write(model->ud, slash ? slash + 1 : temporary, out);
  if (status == PLN_OK)
    return pln_output_commit(out);
  pln_output_abort(out);
  unlink(temporary);
  return status;
}

/* Runs with the directory locked; takes ownership of both outputs. */
static pln_status commit(pln_engine *engine, const char *out, pln_output *data,
                         pln_output *model,
                         const pln_temporary_model_writer *temporary) {
  char path[PLN_PATH_ROOM], target[PLN_PATH_ROOM];
  struct stat own;
  pln_status status = PLN_OK;
  snprintf(target, sizeof target, "%s", pln_output_target(model));
  int i = 1;
  while (i <= MAX_TEMPORARY && name_temporary(out, i, path, sizeof path) &&
         is_there(path))
    i++;
  if (is_there(target) && i <= MAX_TEMPORARY)
    status = put_temporary(engine, data, out, path, temporary);
  if (status != PLN_OK) {
    pln_output_abort(data);
    pln_output_abort(model);
    return status;
  }
  status = pln_output_commit(data);
  if (status != PLN_OK) {
    pln_output_abort(model);
    return status;
  }
  bool known = pln_output_stat(model, &own);
  status = pln_output_commit(model);
  if (status == PLN_OK && known)
    remove_temporaries(out, target, &own);
  return status;
}

pln_status
pln_commit_model_and_data(pln_engine *engine, const char *path,
                          const pln_data_sources *sources, pln_output *data,
                          pln_output *model,
                          const pln_temporary_model_writer *temporary) {
  pln_status status = pln_output_finish(data);
  if (status == PLN_OK)
    status = pln_output_finish(model);
  if (status != PLN_OK) {
    pln_output_abort(data);
    pln_output_abort(model);
    return status;
  }
  int lock = pln_output_lock(model);
  status = check_sources(engine, sources);
  if (status == PLN_OK) {
    status = commit(engine, path, data, model, temporary);
  } else {
    pln_output_abort(data);
    pln_output_abort(model);
  }
  pln_output_unlock(lock);
  return status;
}

static bool has_temporaries(const char *out) {
  char path[PLN_PATH_ROOM];
  for (int i = 1; i <= MAX_TEMPORARY; i++)
    if (name_temporary(out, i, path, sizeof path) && is_there(path))
      return true;
  return false;
}

pln_status pln_commit_model(pln_engine *engine, const char *path,
                            const pln_data_sources *sources,
                            pln_output *model) {
  char target[PLN_PATH_ROOM];
  struct stat own;
  pln_status status = pln_output_finish(model);
  if (status != PLN_OK) {
    pln_output_abort(model);
    return status;
  }
  snprintf(target, sizeof target, "%s", pln_output_target(model));
  bool temporaries = has_temporaries(path) && pln_output_stat(model, &own);
  if (!temporaries && sources->n == 0)
    return pln_output_commit(model);
  int lock = pln_output_lock(model);
  status = check_sources(engine, sources);
  if (status == PLN_OK)
    status = pln_output_commit(model);
  else
    pln_output_abort(model);
  if (status == PLN_OK && temporaries)
    remove_temporaries(path, target, &own);
  pln_output_unlock(lock);
  return status;
}
