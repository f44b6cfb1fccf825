/* file.c: read-only files behind a private mapping, and byte copies with the
 * same interface. Used by import, tensors and export.
 *
 * Invariant: `data` points to `size` bytes that stay valid as long as a
 * reference exists, unless someone truncates the mapped file in place, which
 * the public contract forbids. No descriptor is kept open. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/file_parts.h"

static size_t whole_size(const pln_file *file) {
  return sizeof *file + strlen(file->path) + 1;
}

/* A file object without bytes. */
static pln_status new_file(pln_engine *engine, const char *path,
                           pln_file **out) {
  size_t length = strlen(path) + 1;
  pln_file *file = pln_mem_zeroed(engine, sizeof *file + length);
  if (!file)
    return pln_nomem(engine);
  file->engine = engine;
  file->refs = 1;
  file->data = (const uint8_t *)"";
  memcpy(file->path, path, length);
  *out = file;
  return PLN_OK;
}

static pln_status io_error(pln_engine *engine, const char *path,
                           const char *reason) {
  return pln_diag_error(engine, PLN_ERR_IO, NULL, "cannot read '%s': %s", path,
                        reason);
}

/* All readers of a file share one mapping: a model may have thousands of
 * tensors in one file of many gigabytes, and address space is limited. */
static pln_file **chain(pln_engine *engine, ino_t inode) {
  return &engine->files[inode % PLN_FILE_CHAINS];
}

static pln_file *find_mapping(pln_engine *engine, const struct stat *info) {
  for (pln_file *f = *chain(engine, info->st_ino); f; f = f->next)
    if (f->inode == info->st_ino && f->device == info->st_dev &&
        f->size == (uint64_t)info->st_size &&
        f->changed.tv_sec == info->st_mtim.tv_sec &&
        f->changed.tv_nsec == info->st_mtim.tv_nsec)
      return f;
  return NULL;
}

static void link_in_chain(pln_file *file) {
  pln_file **first = chain(file->engine, file->inode);
  file->next = *first;
  *first = file;
}

static void link_mapping(pln_file *file, const struct stat *info) {
  file->mapped = true;
  file->device = info->st_dev;
  file->inode = info->st_ino;
  file->changed = info->st_mtim;
  link_in_chain(file);
}

static void unlink_mapping(pln_file *file) {
  pln_file **at = chain(file->engine, file->inode);
  while (*at != file)
    at = &(*at)->next;
  *at = file->next;
}

static pln_status check_kind(pln_engine *engine, const char *path,
                             const struct stat *info) {
  if (S_ISDIR(info->st_mode))
    return io_error(engine, path, "it is a directory");
  if (!S_ISREG(info->st_mode))
    return io_error(engine, path, "it is not a regular file");
  if ((uint64_t)info->st_size > SIZE_MAX)
    return io_error(engine, path, strerror(EFBIG));
  return PLN_OK;
}

static pln_status new_mapping(pln_engine *engine, const char *path, int fd,
                              const struct stat *info, pln_file **out) {
  pln_file *file = NULL;
  PLN_TRY(new_file(engine, path, &file));
  if (info->st_size) {
    void *data =
        mmap(NULL, (size_t)info->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      pln_status status = io_error(engine, path, strerror(errno));
      pln_file_release(file);
      return status;
    }
    file->data = data;
    file->size = (uint64_t)info->st_size;
  }
  link_mapping(file, info);
  *out = file;
  return PLN_OK;
}

static pln_status map_open(pln_engine *engine, const char *path, int fd,
                           pln_file **out) {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return io_error(engine, path, strerror(errno));
  PLN_TRY(check_kind(engine, path, &info));
  pln_file *known = find_mapping(engine, &info);
  if (!known)
    return new_mapping(engine, path, fd, &info, out);
  *out = pln_file_retain(known);
  return PLN_OK;
}

static pln_status map(pln_engine *engine, const char *path, int flags,
                      pln_file **out) {
  /* Non-blocking: a pipe without a writer is refused instead of waited for. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
  if (fd < 0)
    return io_error(engine, path, strerror(errno));
  pln_status status = map_open(engine, path, fd, out);
  close(fd);
  return status;
}

pln_status pln_file_map(pln_engine *engine, const char *path, pln_file **out) {
  return map(engine, path, 0, out);
}

pln_status pln_file_copy(pln_engine *engine, pln_slice bytes, const char *name,
                         pln_file **out) {
  pln_file *file = NULL;
  PLN_TRY(new_file(engine, name, &file));
  void *data = pln_mem_new(engine, bytes.size);
  if (bytes.size && !data) {
    pln_file_release(file);
    return pln_nomem(engine);
  }
  if (bytes.size) {
    file->data = memcpy(data, bytes.data, bytes.size);
    file->size = bytes.size;
  }
  *out = file;
  return PLN_OK;
}

pln_file *pln_file_retain(const pln_file *file) {
  pln_file *shared = (pln_file *)file;
  shared->refs++;
  return shared;
}

void pln_file_release(pln_file *file) {
  if (!file || --file->refs)
    return;
  if (file->mapped)
    unlink_mapping(file);
  if (file->size && file->mapped)
    munmap((void *)file->data, (size_t)file->size);
  else if (file->size)
    pln_mem_free(file->engine, (void *)file->data, (size_t)file->size);
  pln_mem_free(file->engine, file, whole_size(file));
}

void pln_file_adopt(pln_engine *parent, pln_engine *child, pln_file *file) {
  if (!file || file->engine != child)
    return;
  if (file->mapped)
    unlink_mapping(file);
  else
    pln_mem_move_account(parent, child, (size_t)file->size);
  pln_mem_move_account(parent, child, whole_size(file));
  file->engine = parent;
  if (file->mapped)
    link_in_chain(file);
}

const uint8_t *pln_file_data(const pln_file *file) {
  return file->data;
}

uint64_t pln_file_size(const pln_file *file) {
  return file->size;
}

const char *pln_file_path(const pln_file *file) {
  return file->path;
}

bool pln_file_is_mapped(const pln_file *file) {
  return file->mapped;
}

/* ------------------------------------------------------------------ versions
 */

static uint64_t version_of(dev_t device, ino_t inode, uint64_t size,
                           struct timespec changed) {
  const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
  const uint64_t parts[] = {(uint64_t)device, (uint64_t)inode, size,
                            (uint64_t)changed.tv_sec,
                            (uint64_t)changed.tv_nsec};
  uint64_t h = 1;
  for (size_t i = 0; i < PLN_COUNT(parts); i++) {
    h = (h ^ parts[i]) * odd;
    h ^= h >> 29;
  }
  return h ? h : 1;
}

static uint64_t version_at(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0)
    return 0;
  return version_of(info.st_dev, info.st_ino, (uint64_t)info.st_size,
                    info.st_mtim);
}

uint64_t pln_file_stamp(const pln_file *file) {
  return version_of(file->device, file->inode, file->size, file->changed);
}

uint64_t pln_file_stamp_at(const char *directory, pln_slice name) {
  char path[PATH_MAX];
  int n = snprintf(path, sizeof path, "%s/%.*s", *directory ? directory : ".",
                   (int)(name.size & 0xffff), name.data);
  return n > 0 && (size_t)n < sizeof path ? version_at(path) : 0;
}

bool pln_file_is_current(const pln_file *file) {
  return !file->mapped || version_at(file->path) == pln_file_stamp(file);
}

/* --------------------------------------------------------------- confinement
 */

static pln_status outside(pln_engine *engine, pln_slice name,
                          const char *reason) {
  int length = name.size > 200 ? 200 : (int)name.size;
  return pln_diag_error(engine, PLN_ERR_FORMAT, NULL,
                        "external data '%.*s' %s; it must be a path inside of "
                        "the model's folder",
                        length, name.data, reason);
}

static bool has_parent_part(pln_slice name) {
  size_t start = 0;
  for (size_t i = 0; i <= name.size; i++) {
    if (i < name.size && name.data[i] != '/')
      continue;
    if (i - start == 2 && !memcmp(name.data + start, "..", 2))
      return true;
    start = i + 1;
  }
  return false;
}

static pln_status check_confined_name(pln_engine *engine, pln_slice name) {
  if (name.size == 0)
    return outside(engine, name, "has no name");
  if (memchr(name.data, 0, name.size))
    return outside(engine, name, "holds a zero byte");
  if (name.data[0] == '/')
    return outside(engine, name, "is an absolute path");
  if (has_parent_part(name))
    return outside(engine, name, "has a part '..'");
  return PLN_OK;
}

static bool lies_in(const char *path, const char *directory) {
  size_t n = strlen(directory);
  if (n == 1) /* the root */
    return true;
  return !strncmp(path, directory, n) && path[n] == '/';
}

pln_status pln_file_map_confined(pln_engine *engine, const char *directory,
                                 pln_slice name, pln_file **out) {
  PLN_TRY(check_confined_name(engine, name));
  char root[PATH_MAX], path[PATH_MAX], target[PATH_MAX];
  const char *folder = *directory ? directory : ".";
  size_t length = strlen(folder);
  if (length + name.size + 2 > sizeof path)
    return outside(engine, name, strerror(ENAMETOOLONG));
  memcpy(path, folder, length);
  path[length] = '/';
  memcpy(path + length + 1, name.data, name.size);
  path[length + 1 + name.size] = 0;
  if (!realpath(folder, root))
    return io_error(engine, folder, strerror(errno));
  if (!realpath(path, target))
    return io_error(engine, path, strerror(errno));
  if (!lies_in(target, root))
    return outside(engine, name, "leads out through a link");
  /* Links are resolved already; a link created since then is not followed. */
  return map(engine, target, O_NOFOLLOW, out);
}
