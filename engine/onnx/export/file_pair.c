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

enum { MOST_INTERIM = 9 };

static bool is_there(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

static bool name_interim(const char *out, int i, char *path, size_t size) {
  int n = snprintf(path, size, "%s.perilune-%d.data", out, i);
  return n > 0 && (size_t)n < size;
}

bool pln_is_interim_name(pln_slice location) {
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
static bool is_ours(const char *target, const struct stat *ours) {
  struct stat info;
  return lstat(target, &info) == 0 && info.st_dev == ours->st_dev &&
         info.st_ino == ours->st_ino;
}

/* Removes interim files if the model at `target` is `ours`, which does not need
 * them. */
static void remove_interims(const char *out, const char *target,
                            const struct stat *ours) {
  char path[PLN_PATH_ROOM];
  for (int i = 1; i <= MOST_INTERIM; i++)
    if (name_interim(out, i, path, sizeof path) && is_there(path) &&
        is_ours(target, ours))
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
static pln_status put_interim(pln_engine *engine, pln_output *data,
                              const char *path, const char *interim,
                              const pln_interim_model_writer *model) {
  pln_output *out;
  const char *slash = strrchr(interim, '/');
  if (!pln_output_link(data, interim))
    return PLN_OK; /* the file system has no hard links: commit with two renames
                    */
  PLN_TRY(pln_output_open(engine, path, &out));
  pln_status status = model->write(model->ud, slash ? slash + 1 : interim, out);
  if (status == PLN_OK)
    return pln_output_commit(out);
  pln_output_abort(out);
  unlink(interim);
  return status;
}

/* Runs with the directory locked; takes ownership of both outputs. */
static pln_status commit(pln_engine *engine, const char *out, pln_output *data,
                         pln_output *model,
                         const pln_interim_model_writer *interim) {
  char path[PLN_PATH_ROOM], target[PLN_PATH_ROOM];
  struct stat ours;
  pln_status status = PLN_OK;
  snprintf(target, sizeof target, "%s", pln_output_target(model));
  int i = 1;
  while (i <= MOST_INTERIM && name_interim(out, i, path, sizeof path) &&
         is_there(path))
    i++;
  if (is_there(target) && i <= MOST_INTERIM)
    status = put_interim(engine, data, out, path, interim);
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
  bool known = pln_output_stat(model, &ours);
  status = pln_output_commit(model);
  if (status == PLN_OK && known)
    remove_interims(out, target, &ours);
  return status;
}

pln_status pln_commit_model_and_data(pln_engine *engine, const char *path,
                                     const pln_data_sources *sources,
                                     pln_output *data, pln_output *model,
                                     const pln_interim_model_writer *interim) {
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
    status = commit(engine, path, data, model, interim);
  } else {
    pln_output_abort(data);
    pln_output_abort(model);
  }
  pln_output_unlock(lock);
  return status;
}

static bool has_interims(const char *out) {
  char path[PLN_PATH_ROOM];
  for (int i = 1; i <= MOST_INTERIM; i++)
    if (name_interim(out, i, path, sizeof path) && is_there(path))
      return true;
  return false;
}

pln_status pln_commit_model(pln_engine *engine, const char *path,
                            const pln_data_sources *sources,
                            pln_output *model) {
  char target[PLN_PATH_ROOM];
  struct stat ours;
  pln_status status = pln_output_finish(model);
  if (status != PLN_OK) {
    pln_output_abort(model);
    return status;
  }
  snprintf(target, sizeof target, "%s", pln_output_target(model));
  bool interims = has_interims(path) && pln_output_stat(model, &ours);
  if (!interims && sources->n == 0)
    return pln_output_commit(model);
  int lock = pln_output_lock(model);
  status = check_sources(engine, sources);
  if (status == PLN_OK)
    status = pln_output_commit(model);
  else
    pln_output_abort(model);
  if (status == PLN_OK && interims)
    remove_interims(path, target, &ours);
  pln_output_unlock(lock);
  return status;
}
