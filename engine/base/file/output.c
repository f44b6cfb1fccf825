/* output.c: atomic file replacement: writes a temporary file beside the target
 * and renames it. Used by export and by everything that writes text.
 *
 * Invariants: bytes before `written` are in the file or in a hole of it, the
 * next `pending` ones in the buffer. After a failed write only commit and abort
 * may follow, and commit fails as well. Where the system has unnamed files
 * (O_TMPFILE), the file gets a name only just before the rename. A named
 * temporary file is locked by its writer; an unlocked one was left by a killed
 * run, and the next run removes it. Data is synced to disk before the rename.
 * Devices and pipes (/dev/null, /dev/stdout) are written directly, in order. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/file_parts.h"

/* MAX_NAMES: concurrent writers of one target, where temporary files have
 * names. */
enum { BUFFER = 256 * 1024, COPY_AT_LEAST = 64 * 1024, MAX_NAMES = 16 };

/* Bytes written between two polls for a stop request. */
#define MAX_WRITE ((size_t)8 << 20)

struct pln_output {
  pln_engine *engine;
  int fd;
  int source_fd;          /* descriptor of `source`, or -1: copy from its
                           * mapping */
  const pln_file *source; /* the last file copied from; retained */
  uint64_t written;
  size_t pending;
  bool failed;
  bool finished;
  bool stream; /* a device or pipe: no temporary file, no holes */
  char target[PATH_MAX];
  char path[PATH_MAX]; /* of the temporary file */
  bool named;          /* the temporary file exists under `path` */
  char buffer[BUFFER];
};

static pln_status io_error(pln_engine *engine, const char *path,
                           const char *reason) {
  return pln_diag_error(engine, PLN_ERR_IO, NULL, "cannot write '%s': %s", path,
                        reason);
}

static pln_status fail_output(pln_output *o, const char *reason) {
  o->failed = true;
  return io_error(o->engine, o->target, reason);
}

/* -------------------------------------------------------------------- opening
 */

/* If the path is a symbolic link, replaces it by the link's target, relative to
 * the link's folder. */
static pln_status follow(pln_engine *engine, char *path, size_t size) {
  char link[PATH_MAX];
  ssize_t n = readlink(path, link, sizeof link);
  if (n < 0)
    return io_error(engine, path, strerror(errno));
  const char *slash = strrchr(path, '/');
  size_t folder = slash && link[0] != '/' ? (size_t)(slash - path) + 1 : 0;
  if (folder + (size_t)n + 1 > size)
    return io_error(engine, path, strerror(ENAMETOOLONG));
  memcpy(path + folder, link, (size_t)n);
  path[folder + (size_t)n] = 0;
  return PLN_OK;
}

static bool is_stream(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISREG(info.st_mode) &&
         !S_ISDIR(info.st_mode);
}

/* Stores the file that `path` leads to in o->target, and its mode in *mode (0:
 * it does not exist). */
static pln_status find_target(pln_output *o, const char *path, mode_t *mode) {
  enum { MAX_LINKS = 40 };
  if (strlen(path) >= sizeof o->target)
    return io_error(o->engine, path, strerror(ENAMETOOLONG));
  memcpy(o->target, path, strlen(path) + 1);
  o->stream = is_stream(path);
  for (int i = 0; !o->stream; i++) {
    struct stat info;
    *mode = 0;
    if (i == MAX_LINKS)
      return io_error(o->engine, path, strerror(ELOOP));
    if (lstat(o->target, &info) != 0)
      return errno == ENOENT ? PLN_OK
                             : io_error(o->engine, path, strerror(errno));
    *mode = info.st_mode;
    if (S_ISREG(info.st_mode))
      return PLN_OK;
    if (S_ISDIR(info.st_mode))
      return io_error(o->engine, path, "it is a directory");
    PLN_TRY(follow(o->engine, o->target, sizeof o->target));
  }
  return PLN_OK;
}

static bool is_link_of(int fd, const char *path) {
  struct stat here, there;
  return fstat(fd, &here) == 0 && lstat(path, &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* The buffer is large enough: create has checked. */
static void temporary_name(pln_output *o, int try_name) {
  size_t n = strlen(o->target);
  memcpy(o->path, o->target, n);
  snprintf(o->path + n, sizeof o->path - n, ".perilune-tmp-%d", try_name);
}

/* Removes the file o->path unless another process is writing it. */
static void remove_stale(const pln_output *o) {
  int fd = open(o->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info;
  if (fd < 0)
    return;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      flock(fd, LOCK_EX | LOCK_NB) == 0 && is_link_of(fd, o->path))
    unlink(o->path);
  close(fd);
}

/* Removes temporary files left by killed runs. */
static void remove_all_stale(pln_output *o) {
  for (int i = 0; i < MAX_NAMES; i++) {
    temporary_name(o, i);
    if (access(o->path, F_OK) == 0)
      remove_stale(o);
  }
}

/* Creates a file called o->path by `try_name`, under the first free name: 0, or
 * -1. */
static int make_name(pln_output *o, int (*try_name)(pln_output *, mode_t),
                     mode_t mode) {
  for (int i = 0; i < MAX_NAMES; i++) {
    temporary_name(o, i);
    if (try_name(o, mode) == 0) {
      o->named = true;
      return 0;
    }
    if (errno != EEXIST)
      return -1;
  }
  return -1;
}

/* Another run may have removed it as stale before it was locked. */
static int open_named(pln_output *o, mode_t mode) {
  o->fd = open(o->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (o->fd < 0)
    return -1;
  flock(o->fd, LOCK_EX | LOCK_NB);
  if (is_link_of(o->fd, o->path))
    return 0;
  close(o->fd);
  o->fd = -1;
  errno = EEXIST;
  return -1;
}

#ifdef O_TMPFILE

enum { LINK_SIZE = 40 };

static const char *link_of(const pln_output *o, char link[LINK_SIZE]) {
  snprintf(link, LINK_SIZE, "/proc/self/fd/%d", o->fd);
  return link;
}

static int link_named(pln_output *o, mode_t mode) {
  char link[LINK_SIZE];
  (void)mode;
  return linkat(AT_FDCWD, link_of(o, link), AT_FDCWD, o->path,
                AT_SYMLINK_FOLLOW);
}

/* Opens an unnamed file in the target's folder that can be linked later; on
 * failure o->fd stays -1. */
static void open_nameless(pln_output *o, mode_t mode) {
  char folder[PATH_MAX], link[LINK_SIZE];
  const char *slash = strrchr(o->target, '/');
  size_t n = slash ? (size_t)(slash - o->target) + 1 : 0;
  memcpy(folder, o->target, n);
  memcpy(folder + n, ".", 2); /* fits, as o->path did */
  o->fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
  if (o->fd < 0)
    return;
  if (access(link_of(o, link), F_OK) == 0) {
    flock(o->fd, LOCK_EX | LOCK_NB);
  } else {
    close(o->fd);
    o->fd = -1;
  }
}

bool pln_output_link(pln_output *o, const char *path) {
  char own[LINK_SIZE];
  if (o->stream)
    return false;
  return linkat(AT_FDCWD, o->named ? o->path : link_of(o, own), AT_FDCWD, path,
                AT_SYMLINK_FOLLOW) == 0;
}

#else

bool pln_output_link(pln_output *o, const char *path) {
  return !o->stream && link(o->path, path) == 0;
}

static int link_named(pln_output *o, mode_t mode) {
  (void)o;
  (void)mode;
  return 0;
}

static void open_nameless(pln_output *o, mode_t mode) {
  (void)o;
  (void)mode;
}

#endif

static pln_status create(pln_output *o, mode_t mode) {
  mode_t access = mode ? mode & 0777 : 0666;
  if (strlen(o->target) + sizeof ".perilune-tmp-00" > sizeof o->path)
    return io_error(o->engine, o->target, strerror(ENAMETOOLONG));
  remove_all_stale(o);
  open_nameless(o, access);
  if (o->fd < 0 && make_name(o, open_named, access) != 0)
    return io_error(o->engine, o->target, strerror(errno));
  if (mode && fchmod(o->fd, mode & 07777) != 0)
    return io_error(o->engine, o->target, strerror(errno));
  return PLN_OK;
}

static pln_status open_target(pln_output *o, const char *path) {
  mode_t mode = 0;
  PLN_TRY(find_target(o, path, &mode));
  if (!o->stream)
    return create(o, mode);
  o->fd = open(o->target, O_WRONLY | O_CLOEXEC);
  return o->fd >= 0 ? PLN_OK : io_error(o->engine, path, strerror(errno));
}

/* Removes a temporary file that was not renamed. */
static void free_output(pln_output *o) {
  if (o->named)
    unlink(o->path);
  if (o->fd >= 0)
    close(o->fd);
  if (o->source_fd >= 0)
    close(o->source_fd);
  pln_file_release((pln_file *)o->source);
  pln_mem_free(o->engine, o, sizeof *o);
}

pln_status pln_output_open(pln_engine *engine, const char *path,
                           pln_output **out) {
  pln_output *o = pln_mem_new(engine, sizeof *o);
  if (!o)
    return pln_nomem(engine);
  o->engine = engine;
  o->fd = o->source_fd = -1;
  o->source = NULL;
  o->written = o->pending = 0;
  o->failed = o->finished = o->named = o->stream = false;
  pln_status status = open_target(o, path);
  if (status == PLN_OK)
    *out = o;
  else
    free_output(o);
  return status;
}

/* -------------------------------------------------------------------- writing
 */

/* A stop request makes the write fail. */
static pln_status check_stop(pln_output *o) {
  pln_status status = pln_poll_stoppable(o->engine);
  o->failed |= status != PLN_OK;
  return status;
}

static pln_status write_unbuffered(pln_output *o, const void *data,
                                   size_t size) {
  const char *at = data;
  while (size) {
    size_t chunk = size < MAX_WRITE ? size : MAX_WRITE;
    PLN_TRY(check_stop(o));
    ssize_t n = o->stream ? write(o->fd, at, chunk)
                          : pwrite(o->fd, at, chunk, (off_t)o->written);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fail_output(o, strerror(n < 0 ? errno : EIO));
    at += n;
    size -= (size_t)n;
    o->written += (uint64_t)n;
  }
  return PLN_OK;
}

static pln_status flush(pln_output *o) {
  size_t pending = o->pending;
  o->pending = 0;
  return write_unbuffered(o, o->buffer, pending);
}

/* A stream has no holes, so zeros are written. The buffer is empty. */
static pln_status put_zeros(pln_output *o, uint64_t position) {
  memset(o->buffer, 0, BUFFER);
  while (o->written < position) {
    uint64_t left = position - o->written;
    PLN_TRY(
        write_unbuffered(o, o->buffer, left < BUFFER ? (size_t)left : BUFFER));
  }
  return PLN_OK;
}

static pln_status check_room(pln_output *o, uint64_t size) {
  if (o->failed)
    return fail_output(o, "an earlier write failed");
  if (size > (uint64_t)INT64_MAX - pln_output_position(o))
    return fail_output(o, strerror(EFBIG));
  return PLN_OK;
}

pln_status pln_output_write(pln_output *o, const void *data, size_t size) {
  PLN_TRY(check_room(o, size));
  if (size > BUFFER - o->pending)
    PLN_TRY(flush(o));
  if (size >= BUFFER)
    return write_unbuffered(o, data, size);
  if (size)
    memcpy(o->buffer + o->pending, data, size);
  o->pending += size;
  return PLN_OK;
}

pln_status pln_output_pad(pln_output *o, uint64_t position) {
  uint64_t now = pln_output_position(o);
  if (position < now)
    return pln_diag_error(o->engine, PLN_ERR_ARGUMENT, NULL,
                          "'%s' is written to %llu already, not %llu",
                          o->target, (unsigned long long)now,
                          (unsigned long long)position);
  PLN_TRY(check_room(o, position - now));
  if (position - now <= BUFFER - o->pending) {
    memset(o->buffer + o->pending, 0, (size_t)(position - now));
    o->pending += (size_t)(position - now);
    return PLN_OK;
  }
  PLN_TRY(flush(o));
  if (o->stream)
    return put_zeros(o, position);
  o->written = position;
  return PLN_OK;
}

uint64_t pln_output_position(const pln_output *o) {
  return o->written + o->pending;
}

/* -------------------------------------------------------------------- copying
 */

/* Opens the path again, because a mapping keeps no descriptor. If the path
 * leads to another file by now, the mapping is read instead. */
static void open_source(pln_output *o, const pln_file *file) {
  if (o->source == file)
    return;
  if (o->source_fd >= 0)
    close(o->source_fd);
  pln_file_release((pln_file *)o->source);
  o->source = pln_file_retain(file);
  o->source_fd = -1;
  if (!file->mapped)
    return;
  int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return;
  struct stat info;
  if (fstat(fd, &info) == 0 && info.st_dev == file->device &&
      info.st_ino == file->inode)
    o->source_fd = fd;
  else
    close(fd);
}

/* Start or end of the data at or after `from` (SEEK_DATA, SEEK_HOLE); `end`
 * when unsupported or none. */
static uint64_t seek(int fd, uint64_t from, uint64_t end, int whence) {
  off_t found = lseek(fd, (off_t)from, whence);
  if (found < 0)
    return whence == SEEK_DATA && errno != ENXIO ? from : end;
  return (uint64_t)found < end ? (uint64_t)found : end;
}

/* Copies inside the kernel (copy_file_range) as far as that works; the caller
 * copies the rest. */
static uint64_t copy_in_kernel(pln_output *o, uint64_t from, uint64_t end) {
#ifdef __linux__
  while (from < end) {
    off_t in = (off_t)from, to = (off_t)o->written;
    uint64_t left = end - from;
    size_t chunk = left < MAX_WRITE ? (size_t)left : MAX_WRITE;
    if (pln_stop_reason(o->engine) != PLN_GO_ON)
      break;
    ssize_t n = copy_file_range(o->source_fd, &in, o->fd, &to, chunk, 0);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    from += (uint64_t)n;
    o->written += (uint64_t)n;
  }
#endif
  (void)o;
  (void)end;
  return from;
}

static pln_status copy_data(pln_output *o, uint64_t from, uint64_t end) {
  from = copy_in_kernel(o, from, end);
  return write_unbuffered(o, o->source->data + from, (size_t)(end - from));
}

/* Copies data segment by segment and skips holes. */
static pln_status copy_sparse(pln_output *o, uint64_t from, uint64_t end) {
  while (from < end) {
    uint64_t data = seek(o->source_fd, from, end, SEEK_DATA);
    o->written += data - from;
    if (data == end)
      break;
    from = seek(o->source_fd, data, end, SEEK_HOLE);
    from = from > data ? from : end; /* the file was truncated meanwhile */
    PLN_TRY(copy_data(o, data, from));
  }
  return PLN_OK;
}

pln_status pln_output_copy(pln_output *o, const pln_file *file, uint64_t offset,
                           uint64_t size) {
  if (offset > file->size || size > file->size - offset)
    return pln_diag_error(
        o->engine, PLN_ERR_ARGUMENT, NULL,
        "'%s' is %llu bytes long, [%llu, %llu + %llu) is not in it", file->path,
        (unsigned long long)file->size, (unsigned long long)offset,
        (unsigned long long)offset, (unsigned long long)size);
  if (size >= COPY_AT_LEAST && !o->stream)
    open_source(o, file);
  if (size < COPY_AT_LEAST || o->source_fd < 0)
    return pln_output_write(o, file->data + offset, (size_t)size);
  PLN_TRY(check_room(o, size));
  PLN_TRY(flush(o));
  return copy_sparse(o, offset, offset + size);
}

/* --------------------------------------------------------------------- ending
 */

pln_status pln_output_finish(pln_output *o) {
  if (o->finished)
    return PLN_OK;
  PLN_TRY(check_room(o, 0));
  PLN_TRY(flush(o));
  /* A trailing hole has no byte after it, so the size must be set. */
  if (!o->stream && (ftruncate(o->fd, (off_t)o->written) != 0 ||
                     (fsync(o->fd) != 0 && errno != EINVAL)))
    return fail_output(o, strerror(errno));
  o->finished = true;
  return PLN_OK;
}

/* Blocks terminating signals until the rename is done. The file stays locked
 * until then. */
static int put_in_place(pln_output *o) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int status = o->named ? 0 : make_name(o, link_named, 0);
  if (status == 0 && (status = rename(o->path, o->target)) == 0)
    o->named = false;
  int reason = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = reason;
  return status;
}

pln_status pln_output_commit(pln_output *o) {
  pln_status status = pln_output_finish(o);
  if (status == PLN_OK && !o->stream && put_in_place(o) != 0)
    status = fail_output(o, strerror(errno));
  free_output(o);
  return status;
}

const char *pln_output_target(const pln_output *o) {
  return o->target;
}

bool pln_output_stat(const pln_output *o, struct stat *out) {
  return !o->stream && fstat(o->fd, out) == 0;
}

int pln_output_lock(const pln_output *o) {
  char folder[PATH_MAX];
  const char *slash = strrchr(o->target, '/');
  size_t n = slash ? (size_t)(slash - o->target) + 1 : 0;
  memcpy(folder, o->target, n);
  memcpy(folder + n, ".", 2); /* fits, as o->path did */
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
    ;
  return fd;
}

void pln_output_unlock(int lock) {
  if (lock >= 0)
    close(lock);
}

void pln_output_abort(pln_output *o) {
  if (o)
    free_output(o);
}
