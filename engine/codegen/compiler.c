/* compiler.c: compiles C sources by the system's compiler, links objects, and
 * keeps what it made.
 *
 * Called by hosts, and by lua/codegen. The cache is a folder of files named by
 * a hash of source, compiler, version and flags; files are made beside and
 * renamed, so that several processes may share it. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/codegen.h"

enum { MOST_FLAGS = 64, MOST_LOG = 8192 };

/* A compilation. */
typedef struct job {
  pln_engine *engine;
  const pln_cc_options *options;
  pln_cc_result *result;
  const char *cc;
  const char *version; /* of the compiler, where it is known */
  bool links;          /* objects, not a source */
  const char *argv[MOST_FLAGS + 16];
  uint32_t n;
  double seconds, cpu_seconds;
  uint64_t memory;
  char folder[PATH_MAX - 128]; /* of the cache, or a temporary one */
  char stem[PATH_MAX - 64];    /* files being made: .c, .out, .log */
} job;

const char *const *pln_cc_default_flags(void) {
  static const char *const flags[] = {"-O3",
                                      "-std=c11",
                                      "-march=native",
                                      "-ffp-contract=fast",
                                      "-fno-math-errno",
                                      "-fno-trapping-math",
                                      NULL};
  return flags;
}

static char *copy_text(pln_engine *e, const char *text) {
  size_t n = strlen(text) + 1;
  char *out = pln_mem_new(e, n);
  if (out)
    memcpy(out, text, n);
  return out;
}

static void free_text(pln_engine *e, char *text) {
  pln_mem_free(e, text, text ? strlen(text) + 1 : 0);
}

void pln_cc_result_free(pln_cc_result *result) {
  pln_engine *e = result->engine;
  if (!e)
    return;
  if (result->path && result->is_temporary)
    (void)unlink(result->path);
  free_text(e, result->path);
  free_text(e, result->command);
  free_text(e, result->version);
  *result = (pln_cc_result){0};
}

/* ------------------------------------------------------------------ folders */

static pln_status make_folder(job *j, const char *path) {
  char part[sizeof j->folder];
  size_t n = strlen(path);
  if (n + 1 > sizeof part)
    return pln_diag_error(j->engine, PLN_ERR_IO, NULL, "the path '%s' is long",
                          path);
  for (size_t i = 1; i <= n; i++) {
    if (path[i] != '/' && path[i] != 0)
      continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (mkdir(part, 0777) != 0 && errno != EEXIST)
      return pln_diag_error(j->engine, PLN_ERR_IO, NULL,
                            "folder '%s' cannot be made: %s", part,
                            strerror(errno));
  }
  memcpy(j->folder, path, n + 1);
  return PLN_OK;
}

static pln_status temporary_folder(job *j) {
  const char *base = getenv("TMPDIR");
  snprintf(j->folder, sizeof j->folder, "%s", base && *base ? base : "/tmp");
  j->result->is_temporary = true;
  return PLN_OK;
}

static pln_status find_folder(job *j) {
  char path[sizeof j->folder];
  const char *base = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");
  if (j->options->cache && !*j->options->cache)
    return temporary_folder(j);
  if (j->options->cache)
    return make_folder(j, j->options->cache);
  if (base && *base == '/')
    snprintf(path, sizeof path, "%s/perilune", base);
  else if (user && *user == '/')
    snprintf(path, sizeof path, "%s/.cache/perilune", user);
  else
    return temporary_folder(j);
  size_t mark = pln_diag_count(j->engine);
  if (make_folder(j, path) == PLN_OK)
    return PLN_OK;
  pln_diag_drop(j->engine, mark); /* a home that is not writable */
  return temporary_folder(j);
}

/* ----------------------------------------------------------------- messages */

/* What the compiler wrote, at most MOST_LOG bytes. */
static void read_log(int log, char *text) {
  ssize_t n = pread(log, text, MOST_LOG - 1, 0);
  text[n > 0 ? n : 0] = 0;
}

static pln_status report(job *j, const pln_child_end *end, int log) {
  char text[MOST_LOG];
  const char *what = "failed";
  read_log(log, text);
  if (end->timed_out)
    what = "was stopped by its time limit";
  else if (end->signal)
    what = "crashed";
  else if (end->code == 127 && !text[0])
    what = "is not found or not a program";
  pln_status status =
      pln_diag_error(j->engine, end->timed_out ? PLN_ERR_LIMIT : PLN_ERR_IO,
                     NULL, "the C compiler '%s' %s", j->cc, what);
  pln_diag_note(j->engine, NULL, "command: %s", j->result->command);
  if (text[0])
    pln_diag_note(j->engine, NULL, "%s", text);
  return status;
}

static pln_status set_command(job *j) {
  pln_buffer text;
  pln_status status = PLN_OK;
  pln_buffer_init(&text, j->engine);
  for (uint32_t i = 0; i < j->n && status == PLN_OK; i++)
    status = pln_buffer_printf(&text, i ? " %s" : "%s", j->argv[i]);
  if (status == PLN_OK)
    status = pln_buffer_add(&text, "", 1);
  if (status == PLN_OK) {
    free_text(j->engine, j->result->command);
    j->result->command = copy_text(j->engine, text.data);
    status = j->result->command ? PLN_OK : pln_nomem(j->engine);
  }
  pln_buffer_free(&text);
  return status;
}

/* Runs the command that stands in argv. */
static pln_status run(job *j, int log, pln_child_end *end) {
  j->argv[j->n] = NULL;
  PLN_TRY(set_command(j));
  pln_status status = pln_process_run(j->engine, j->argv, log, j->seconds,
                                      j->cpu_seconds, j->memory, end);
  if (status == PLN_ERR_INTERRUPTED || status == PLN_ERR_LIMIT)
    pln_diag_note(j->engine, NULL,
                  "the C compiler was stopped with it; command: %s",
                  j->result->command);
  return status;
}

static int open_log(job *j) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s.log", j->stem);
  int log = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  (void)unlink(path);
  return log;
}

static pln_status no_file(job *j, const char *path) {
  return pln_diag_error(j->engine, PLN_ERR_IO, NULL,
                        "'%s' cannot be written: %s", path, strerror(errno));
}

/* ------------------------------------------------------------------ version */

static pln_status ask_version(job *j) {
  char text[MOST_LOG];
  pln_child_end end;
  int log = open_log(j);
  if (log < 0)
    return no_file(j, j->stem);
  j->argv[0] = j->cc;
  j->argv[1] = "--version";
  j->n = 2;
  pln_status status = run(j, log, &end);
  if (status == PLN_OK && (end.timed_out || end.signal || end.code == 127))
    status = report(j, &end, log);
  read_log(log, text);
  text[strcspn(text, "\n")] = 0;
  close(log);
  if (status != PLN_OK)
    return status;
  j->result->version = copy_text(j->engine, text);
  return j->result->version ? PLN_OK : pln_nomem(j->engine);
}

static pln_status find_version(job *j) {
  if (!j->version)
    return ask_version(j);
  j->result->version = copy_text(j->engine, j->version);
  return j->result->version ? PLN_OK : pln_nomem(j->engine);
}

/* tcc does not know most flags. */
static bool is_tcc(const job *j) {
  return strstr(j->result->version, "tcc") != NULL;
}

static pln_status set_flags(job *j, bool threads, pln_c_artifact artifact) {
  const char *const *flags = pln_cc_default_flags();
  j->n = 0;
  j->argv[j->n++] = j->cc;
  if (j->options->flags_given) {
    if (j->options->n_flags > MOST_FLAGS)
      return pln_diag_error(j->engine, PLN_ERR_LIMIT, NULL,
                            "more than %d flags for the compiler", MOST_FLAGS);
    for (uint32_t i = 0; i < j->options->n_flags; i++)
      j->argv[j->n++] = j->options->flags[i];
  } else if (!is_tcc(j)) {
    for (; *flags; flags++)
      j->argv[j->n++] = *flags;
  }
  if (threads)
    j->argv[j->n++] = "-pthread";
  j->argv[j->n++] = "-fPIC";
  j->argv[j->n++] = artifact == PLN_C_SHARED ? "-shared" : "-c";
  return PLN_OK;
}

/* ------------------------------------------------------------------- cache */

static void hash_key(const job *j, pln_slice source, pln_c_artifact artifact,
                     char *out, size_t size) {
  uint64_t parts[2];
  for (uint32_t k = 0; k < 2; k++) {
    uint64_t h =
        pln_hash_bytes(source.data, source.size, k ? 0x9e3779b97f4a7c15u : 1);
    for (uint32_t i = 0; i < j->n; i++)
      h = pln_hash_mix(h, pln_hash_bytes(j->argv[i], strlen(j->argv[i]), k));
    h = pln_hash_mix(
        h, pln_hash_bytes(j->result->version, strlen(j->result->version), k));
    parts[k] = pln_hash_mix(h, artifact);
  }
  snprintf(out, size, "%016llx%016llx.%s", (unsigned long long)parts[0],
           (unsigned long long)parts[1], artifact == PLN_C_SHARED ? "so" : "o");
}

static pln_status write_source(job *j, const char *path, pln_slice source) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return no_file(j, path);
  for (size_t at = 0; at < source.size;) {
    ssize_t n = write(file, source.data + at, source.size - at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      close(file);
      return no_file(j, path);
    }
    at += (size_t)n;
  }
  close(file);
  return PLN_OK;
}

/* The output, the source, and the library that what is linked needs: tcc takes
 * none for an object. */
static void add_files(job *j, pln_c_artifact artifact, const char *to,
                      const char *from) {
  j->argv[j->n++] = "-o";
  j->argv[j->n++] = to;
  j->argv[j->n++] = from;
  if (artifact == PLN_C_SHARED)
    j->argv[j->n++] = "-lm";
}

/* Runs the command in argv, which writes `to`, and gives that its name. */
static pln_status make_target(job *j, const char *to, const char *target) {
  pln_child_end end;
  int log = open_log(j);
  if (log < 0)
    return no_file(j, j->stem);
  pln_status status = run(j, log, &end);
  if (status == PLN_OK && (end.timed_out || end.signal || end.code))
    status = report(j, &end, log);
  close(log);
  if (status == PLN_OK && rename(to, target) != 0)
    status = no_file(j, target);
  if (status != PLN_OK)
    (void)unlink(to);
  return status;
}

/* Compiles a source, or links the objects that a file of arguments lists. */
static pln_status make_from(job *j, pln_slice text, pln_c_artifact artifact,
                            const char *target) {
  char file[PATH_MAX], argument[PATH_MAX + 1], to[PATH_MAX];
  snprintf(file, sizeof file, "%s.%s", j->stem, j->links ? "list" : "c");
  snprintf(argument, sizeof argument, "%s%s", j->links ? "@" : "", file);
  snprintf(to, sizeof to, "%s.out", j->stem);
  PLN_TRY(write_source(j, file, text));
  add_files(j, artifact, to, argument);
  pln_status status = make_target(j, to, target);
  (void)unlink(file);
  return status;
}

static pln_status make_stem(job *j) {
  snprintf(j->stem, sizeof j->stem, "%s/build-XXXXXX", j->folder);
  int file = mkstemp(j->stem);
  if (file < 0)
    return no_file(j, j->folder);
  close(file);
  return PLN_OK;
}

/* The path of the artifact, by a hash of what it is made of; whether it is
 * there. */
static pln_status find_target(job *j, pln_slice source, pln_c_artifact artifact,
                              char *target, size_t size) {
  char name[64];
  hash_key(j, source, artifact, name, sizeof name);
  if (j->result->is_temporary)
    snprintf(target, size, "%s.%s", j->stem,
             artifact == PLN_C_SHARED ? "so" : "o");
  else
    snprintf(target, size, "%s/%s", j->folder, name);
  j->result->path = copy_text(j->engine, target);
  if (!j->result->path)
    return pln_nomem(j->engine);
  j->result->cached = !j->result->is_temporary && access(target, R_OK) == 0;
  return PLN_OK;
}

static pln_status make_cached(job *j, pln_slice text, bool threads,
                              pln_c_artifact artifact) {
  char target[PATH_MAX];
  PLN_TRY(find_version(j));
  PLN_TRY(set_flags(j, threads, artifact));
  PLN_TRY(find_target(j, text, artifact, target, sizeof target));
  if (!j->result->cached)
    return make_from(j, text, artifact, target);
  return set_command(j);
}

/* A job whose limits and folder are set. */
static pln_status begin_job(job *j, pln_engine *engine,
                            const pln_cc_options *options, const char *version,
                            pln_cc_result *out) {
  static const pln_cc_options none = {0};
  const char *given = options ? options->cc : NULL;
  const char *environment = getenv("CC");
  *j = (job){.engine = engine,
             .options = options ? options : &none,
             .version = version,
             .result = out};
  *out = (pln_cc_result){.engine = engine};
  j->cc = given ? given : environment && *environment ? environment : "cc";
  /* Without a given limit a compiler that has to wait for a busy machine is
   * not stopped. */
  j->seconds = j->options->seconds > 0 ? j->options->seconds : 600;
  j->cpu_seconds = j->options->seconds > 0 ? j->options->seconds : 60;
  j->memory = j->options->memory ? j->options->memory : UINT64_C(4) << 30;
  return find_folder(j);
}

pln_status pln_cc_compile_by(pln_engine *engine, pln_slice source, bool threads,
                             pln_c_artifact artifact,
                             const pln_cc_options *options, const char *version,
                             pln_cc_result *out) {
  job j;
  PLN_TRY(begin_job(&j, engine, options, version, out));
  pln_stoppable_begin(engine);
  pln_status status = make_stem(&j);
  if (status == PLN_OK) {
    status = make_cached(&j, source, threads, artifact);
    (void)unlink(j.stem);
  }
  pln_stoppable_end(engine);
  if (status != PLN_OK)
    pln_cc_result_free(out);
  return status;
}

pln_status pln_cc_compile(pln_engine *engine, pln_slice source, bool threads,
                          pln_c_artifact artifact,
                          const pln_cc_options *options, pln_cc_result *out) {
  return pln_cc_compile_by(engine, source, threads, artifact, options, NULL,
                           out);
}

/* ----------------------------------------------------------------- linking */

/* The paths of objects, a line each: a file of arguments, in which a backslash
 * stands before what is not to end a word. */
static pln_status list_objects(pln_buffer *list, uint32_t n,
                               const char *const *objects) {
  for (uint32_t i = 0; i < n; i++) {
    for (const char *c = objects[i]; *c; c++) {
      if (strchr(" \t\n\"'\\", *c))
        PLN_TRY(pln_buffer_add(list, "\\", 1));
      PLN_TRY(pln_buffer_add(list, c, 1));
    }
    PLN_TRY(pln_buffer_add(list, "\n", 1));
  }
  return PLN_OK;
}

pln_status pln_cc_link_by(pln_engine *engine, uint32_t n,
                          const char *const *objects,
                          const pln_cc_options *options, const char *version,
                          pln_cc_result *out) {
  job j;
  pln_buffer list;
  PLN_TRY(begin_job(&j, engine, options, version, out));
  j.links = true;
  pln_buffer_init(&list, engine);
  pln_stoppable_begin(engine);
  pln_status status = list_objects(&list, n, objects);
  if (status == PLN_OK)
    status = make_stem(&j);
  if (status == PLN_OK) {
    status =
        make_cached(&j, (pln_slice){list.data, list.size}, false, PLN_C_SHARED);
    (void)unlink(j.stem);
  }
  pln_stoppable_end(engine);
  pln_buffer_free(&list);
  if (status != PLN_OK)
    pln_cc_result_free(out);
  return status;
}

pln_status pln_cc_link(pln_engine *engine, uint32_t n,
                       const char *const *objects,
                       const pln_cc_options *options, pln_cc_result *out) {
  return pln_cc_link_by(engine, n, objects, options, NULL, out);
}
