/* host.c: the module perilune.cli.host: clock, memory and files of the system,
 * which Lua's own library lacks.
 *
 * Used by lua/perilune/cli only. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "cli/host.h"
#include "lua/binding.h"

/* clock() -> seconds since some moment, monotonic */
static int host_clock(lua_State *L) {
  lua_pushnumber(L, pln_seconds_now());
  return 1;
}

/* The peak resident memory since the program was started, which Linux keeps
 * for it; 0: unknown. That of getrusage includes the process that started it.
 * proc(5), VmHWM */
static lua_Integer peak_of_program(void) {
  FILE *in = fopen("/proc/self/status", "r");
  char line[256];
  long long kib = 0;
  if (!in)
    return 0;
  while (!kib && fgets(line, sizeof line, in))
    sscanf(line, "VmHWM: %lld kB", &kib);
  fclose(in);
  return (lua_Integer)kib * 1024;
}

static lua_Integer peak_of_process(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
#ifdef __APPLE__
  return (lua_Integer)u.ru_maxrss;
#else
  return (lua_Integer)u.ru_maxrss * 1024;
#endif
}

/* peak_rss() -> peak resident memory of the process in bytes */
static int host_peak_rss(lua_State *L) {
  lua_Integer peak = peak_of_program();
  lua_pushinteger(L, peak ? peak : peak_of_process());
  return 1;
}

/* stat(path) -> "file", "directory" or "other", bytes, and when it was changed
 * (nanoseconds since 1970); nil, reason */
static int host_stat(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct stat s;
  if (stat(path, &s) != 0)
    return luaL_fileresult(L, 0, path);
  lua_pushstring(L, S_ISREG(s.st_mode)   ? "file"
                    : S_ISDIR(s.st_mode) ? "directory"
                                         : "other");
  lua_pushinteger(L, (lua_Integer)s.st_size);
  lua_pushinteger(L, (lua_Integer)s.st_mtim.tv_sec * 1000000000 +
                         s.st_mtim.tv_nsec);
  return 3;
}

static int names_gc(lua_State *L) {
  DIR **folder = lua_touserdata(L, 1);
  if (*folder)
    closedir(*folder);
  *folder = NULL;
  return 0;
}

/* list(path) -> { name, ... } of a directory, unordered; nil, reason */
static int host_list(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  const struct dirent *entry;
  DIR **folder = lua_newuserdatauv(L, sizeof *folder, 0);
  *folder = NULL;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, names_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  if (!(*folder = opendir(path)))
    return luaL_fileresult(L, 0, path);
  lua_newtable(L);
  for (lua_Integer n = 1; errno = 0, (entry = readdir(*folder)); n++) {
    lua_pushstring(L, entry->d_name);
    lua_rawseti(L, -2, n);
  }
  if (errno != 0)
    return luaL_fileresult(L, 0, path);
  closedir(*folder);
  *folder = NULL;
  return 1;
}

/* make_folder(path) -> true, also if it exists; nil, reason */
static int host_make_folder(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct stat s;
  bool there = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
  return luaL_fileresult(L, there || mkdir(path, 0777) == 0, path);
}

/* A locked file, which its owner removes when it is done. */
typedef struct file_lock {
  int fd; /* -1: it is closed */
  pid_t owner;
  char path[];
} file_lock;

/* Owners may remove the file between its opening and its locking so often. */
enum { MOST_LOCK_TRIES = 1000 };

/* Whether the path names the open file. */
static bool names_file(const char *path, int fd) {
  struct stat by_path, by_fd;
  return fstat(fd, &by_fd) == 0 && stat(path, &by_path) == 0 &&
         by_path.st_dev == by_fd.st_dev && by_path.st_ino == by_fd.st_ino;
}

/* The file is removed while it is locked: who has opened it sees then that its
 * path names another file, or none. A fork closes its descriptor alone. */
static int lock_close(lua_State *L) {
  file_lock *lock = lua_touserdata(L, 1);
  if (lock->fd < 0)
    return 0;
  if (lock->owner == getpid() && names_file(lock->path, lock->fd))
    unlink(lock->path);
  close(lock->fd);
  lock->fd = -1;
  return 0;
}

static file_lock *new_lock(lua_State *L, const char *path) {
  size_t size = strlen(path) + 1;
  file_lock *lock = lua_newuserdatauv(L, sizeof *lock + size, 0);
  lock->fd = -1;
  lock->owner = getpid();
  memcpy(lock->path, path, size);
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, lock_close);
  lua_setfield(L, -2, "__gc");
  lua_pushcfunction(L, lock_close);
  lua_setfield(L, -2, "__close");
  lua_setmetatable(L, -2);
  return lock;
}

/* lock(path) -> a value that keeps the file locked until it is closed, which
 * removes it; nil when another process has locked it; nil, reason. The file is
 * made if need be. The lock ends with the process, and is not that of programs
 * that it starts. */
static int host_lock(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  file_lock *lock = new_lock(L, path);
  for (int tries = 0; tries < MOST_LOCK_TRIES; tries++) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
      return luaL_fileresult(L, 0, path);
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    int reason = errno;
    if (locked && names_file(path, fd)) {
      lock->fd = fd;
      return 1;
    }
    close(fd);
    if (locked)
      continue; /* its owner has just removed it */
    errno = reason;
    if (reason != EWOULDBLOCK)
      return luaL_fileresult(L, 0, path);
    lua_pushnil(L);
    return 1;
  }
  errno = EBUSY;
  return luaL_fileresult(L, 0, path);
}

/* ----------------------------------------------------------------- progress
 */

/* A progress line on stderr, shown once the work has taken some time. */
typedef struct progress {
  double started, shown; /* seconds; 0: the line is not shown */
  char label[80];
} progress;

static const char progress_key = 0;

static void report_cli_progress(void *ud, uint32_t node, uint32_t n_nodes) {
  progress *p = ud;
  double now = pln_seconds_now();
  if (now - p->started < 1 || now - p->shown < 0.1)
    return;
  p->shown = now;
  fprintf(stderr, "\r\033[K%s: node %u of %u, %.0f s", p->label, node + 1,
          n_nodes, now - p->started);
  fflush(stderr);
}

/* show_progress(label): evaluations show their progress */
static int host_show_progress(lua_State *L) {
  const char *label = luaL_checkstring(L, 1);
  progress *p = lua_newuserdatauv(L, sizeof *p, 0);
  *p = (progress){.started = pln_seconds_now()};
  snprintf(p->label, sizeof p->label, "%s", label);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &progress_key);
  pln_eval_on_progress(pln_lua_engine(L), report_cli_progress, p);
  return 0;
}

/* end_progress(): removes the line */
static int host_end_progress(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &progress_key);
  const progress *p = lua_touserdata(L, -1);
  if (!p)
    return 0;
  pln_eval_on_progress(pln_lua_engine(L), NULL, NULL);
  if (p->shown > 0)
    fputs("\r\033[K", stderr);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &progress_key);
  return 0;
}

int pln_cli_host(lua_State *L) {
  static const luaL_Reg functions[] = {{"clock", host_clock},
                                       {"peak_rss", host_peak_rss},
                                       {"stat", host_stat},
                                       {"list", host_list},
                                       {"make_folder", host_make_folder},
                                       {"lock", host_lock},
                                       {"show_progress", host_show_progress},
                                       {"end_progress", host_end_progress},
                                       {NULL, NULL}};
  luaL_newlib(L, functions);
  luaL_setfuncs(L, pln_cli_stop_functions, 0);
  lua_pushstring(L, pln_version());
  lua_setfield(L, -2, "version");
  return 1;
}
