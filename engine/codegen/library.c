/* library.c: calls functions of compiled sources, in a child process or in this
 * one.
 *
 * Called by hosts, and by lua/codegen. A child process is a fork: it reads the
 * arguments where they are, opens the library, and leaves what the function
 * wrote in memory that both share. A crash or a hang is an error that names the
 * function. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/huge_pages.h"
#include "codegen/codegen.h"
#include "ir/tensor/tensor.h"

typedef struct argument {
  void *data;
  const int64_t *shape;
} argument;

typedef int32_t (*entry_fn)(const argument *args, void *workspace);
typedef size_t (*size_fn)(const argument *args);

struct pln_c_library {
  pln_engine *engine;
  const pln_c_code *code;
  char *path;
  void *handle; /* opened in this process; NULL: not yet */
  /* Of the last call in this process: its pages are there for the next one. */
  void *workspace;
  size_t workspace_bytes;
};

/* What a child leaves. */
typedef struct outcome {
  int32_t finished; /* 1: `status` is the function's */
  int32_t status;
  int32_t loaded;
  double seconds;
  char message[256]; /* of the loader */
} outcome;

/* A call. */
typedef struct call {
  pln_c_library *library;
  const pln_c_function *fn;
  uint32_t n;
  pln_tensor **dense; /* retained: the arguments */
  pln_tensor **results;
  argument *args;
  char *shared; /* outcome, then the buffers that are written */
  size_t shared_bytes;
  double least;
  size_t evict;
} call;

enum { ALIGN = 64 };

static size_t aligned(size_t bytes) {
  return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static const char *name_of(const call *c) {
  return pln_symbol_text(c->library->engine, c->fn->name).data;
}

pln_status pln_c_library_new(pln_engine *engine, const pln_c_code *code,
                             const char *path, pln_c_library **out) {
  pln_c_library *l = pln_mem_zeroed(engine, sizeof *l);
  size_t n = strlen(path) + 1;
  *out = NULL;
  if (l)
    l->path = pln_mem_new(engine, n);
  if (!l || !l->path) {
    pln_mem_free(engine, l, sizeof *l);
    return pln_nomem(engine);
  }
  memcpy(l->path, path, n);
  l->engine = engine;
  l->code = code;
  *out = l;
  return PLN_OK;
}

void pln_c_library_free(pln_c_library *library) {
  if (!library)
    return;
  pln_engine *e = library->engine;
  if (library->handle)
    dlclose(library->handle);
  free(library->workspace);
  pln_mem_free(e, library->path, strlen(library->path) + 1);
  pln_mem_free(e, library, sizeof *library);
}

/* --------------------------------------------------------------- arguments */

static pln_status wrong(const call *c, uint32_t i, const char *wanted,
                        const char *got) {
  const pln_c_param *p = &c->fn->params[i];
  return pln_diag_error(c->library->engine, PLN_ERR_TYPE, NULL,
                        "argument %u ('%s') of '%s': %s expected, got %s",
                        i + 1,
                        pln_symbol_text(c->library->engine, p->name).data,
                        name_of(c), wanted, got);
}

static pln_status check_rank(const call *c, uint32_t i,
                             const pln_tensor *tensor) {
  const pln_c_param *p = &c->fn->params[i];
  uint32_t rank = (uint32_t)p->rank + (p->lanes > 1);
  char wanted[48], got[48];
  if (!p->is_buffer)
    return tensor->count == 1 ? PLN_OK : wrong(c, i, "a scalar", "a tensor");
  snprintf(wanted, sizeof wanted, "a tensor of rank %u", rank);
  snprintf(got, sizeof got, "rank %u", tensor->rank);
  if (p->rank >= 0 && tensor->rank != rank)
    return wrong(c, i, wanted, got);
  if (p->rank >= 0 && p->lanes > 1 &&
      tensor->dims[tensor->rank - 1] != (int64_t)p->lanes)
    return wrong(c, i, "a last dimension of the lanes", "another");
  return PLN_OK;
}

static pln_status take_argument(call *c, uint32_t i, const pln_tensor *tensor) {
  const void *data;
  if (!tensor)
    return wrong(c, i, "a tensor", "nothing");
  if (tensor->dtype != c->fn->params[i].dtype)
    return wrong(c, i, pln_dtype_name(c->fn->params[i].dtype),
                 pln_dtype_name((pln_dtype)tensor->dtype));
  PLN_TRY(check_rank(c, i, tensor));
  PLN_TRY(pln_tensor_dense(tensor, &c->dense[i]));
  PLN_TRY(pln_tensor_data(c->dense[i], &data));
  c->args[i] = (argument){(void *)(uintptr_t)data, c->dense[i]->dims};
  return PLN_OK;
}

/* A copy of an argument that the function may write. */
static pln_status copy_argument(call *c, uint32_t i) {
  pln_tensor *from = c->dense[i];
  PLN_TRY(pln_tensor_unset(c->library->engine, from->dtype, from->rank,
                           from->dims, &c->results[i]));
  return pln_copy_bytes(c->library->engine, pln_tensor_writable(c->results[i]),
                        c->args[i].data, pln_tensor_bytes(from));
}

static pln_status take_arguments(call *c, const pln_tensor *const *args) {
  for (uint32_t i = 0; i < c->n; i++)
    PLN_TRY(take_argument(c, i, args[i]));
  for (uint32_t i = 0; i < c->n; i++)
    if (c->fn->params[i].is_written)
      PLN_TRY(copy_argument(c, i));
  return PLN_OK;
}

/* ------------------------------------------------------------------- calls */

static bool find(const call *c, void *handle, const char *suffix, void *out) {
  char name[512];
  snprintf(name, sizeof name, "%s%s",
           pln_symbol_text(c->library->engine, c->fn->c_name).data, suffix);
  void *address = dlsym(handle, name);
  memcpy(out, &address, sizeof address);
  return address != NULL;
}

/* A moment of a measurement: the thread's own time beside the clock's, in
 * seconds, and how often another thread has taken the core from this one. */
typedef struct {
  double wall, thread;
  long preemptions;
} moment;

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long preemptions(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) ? -1 : usage.ru_nivcsw;
}

/* The clock is read next to the call that is measured. */
static moment before_call(void) {
  moment m = {.preemptions = preemptions()};
  m.thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  m.wall = seconds_of(CLOCK_MONOTONIC);
  return m;
}

static moment after_call(void) {
  moment m = {.wall = seconds_of(CLOCK_MONOTONIC)};
  m.thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  m.preemptions = preemptions();
  return m;
}

/* Where other threads ran on the core meanwhile, the time of this one; but not
 * else, because a virtual machine's kernel takes the time that its host stole
 * off later calls too, which then last no time at all. Nor where all of a
 * call's is taken off. */
static double time_between(const call *c, const moment *a, const moment *b,
                           bool *disturbed) {
  double thread = b->thread - a->thread;
  *disturbed = a->preemptions < 0 || a->preemptions != b->preemptions;
  return *disturbed && thread > 0 && !c->library->code->threads
             ? thread
             : b->wall - a->wall;
}

/* Calls until `least` seconds passed, twice at least when they are asked for;
 * keeps the shortest time of a call, of those alone that nothing disturbed if
 * there are any: what a thread's clock says may be too little. Before each one
 * the bytes of `evicted` are written, which leaves no operands in the cache. */
static int32_t repeat(const call *c, entry_fn entry, void *workspace,
                      char *evicted, double *shortest) {
  double begin = seconds_of(CLOCK_MONOTONIC), passed = 0;
  bool disturbed, all_disturbed = true;
  int32_t status = 0;
  *shortest = 0;
  for (uint64_t round = 0; round == 0 || passed < c->least; round++) {
    if (evicted) {
      memset(evicted, (int)round, c->evict);
      (void)*(volatile char *)evicted; /* reading keeps the stores */
    }
    moment start = before_call();
    status = entry(c->args, workspace);
    moment end = after_call();
    if (status)
      break;
    double seconds = time_between(c, &start, &end, &disturbed);
    if (round <= 1 || disturbed < all_disturbed ||
        (disturbed == all_disturbed && seconds < *shortest)) {
      *shortest = seconds;
      all_disturbed = disturbed;
    }
    passed = end.wall - begin;
  }
  return status;
}

/* At least that many bytes, which the library keeps; NULL without memory. */
static void *workspace_of(pln_c_library *library, size_t bytes) {
  bytes = aligned(bytes);
  if (bytes <= library->workspace_bytes)
    return library->workspace;
  free(library->workspace);
  library->workspace = bytes < PLN_HUGE_BLOCK ? aligned_alloc(ALIGN, bytes)
                                              : pln_huge_alloc(bytes);
  library->workspace_bytes = library->workspace ? bytes : 0;
  return library->workspace;
}

static void call_loaded(const call *c, void *handle, outcome *out) {
  entry_fn entry;
  size_fn size;
  void *workspace = NULL;
  if (!find(c, handle, "_call", &entry) ||
      !find(c, handle, "_call_workspace", &size)) {
    snprintf(out->message, sizeof out->message, "it has no entry");
    return;
  }
  /* Shapes are compared by the entry, which does not use the workspace then. */
  size_t bytes = size(c->args);
  if (bytes > 0)
    workspace = workspace_of(c->library, bytes);
  char *evicted = c->evict ? malloc(c->evict) : NULL;
  if (evicted && workspace)
    memset(workspace, 0, bytes); /* its pages are there, as within a model */
  out->loaded = 1;
  out->status = repeat(c, entry, workspace, evicted, &out->seconds);
  out->finished = 1;
  free(evicted);
}

/* A crash ends the child by its signal: what the host does about its own
 * crashes is not for the child. */
static void reset_crash_handlers(void) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (size_t i = 0; i < PLN_COUNT(signals); i++)
    (void)signal(signals[i], SIG_DFL);
}

/* In a child. The library's own output is the child's. */
static void run_child(const call *c) {
  struct rlimit none = {0, 0};
  outcome *out = (outcome *)(void *)c->shared;
  reset_crash_handlers();
  (void)setrlimit(RLIMIT_CORE, &none);
  void *handle = dlopen(c->library->path, RTLD_NOW | RTLD_LOCAL);
  if (handle)
    call_loaded(c, handle, out);
  else
    snprintf(out->message, sizeof out->message, "%s", dlerror());
  _exit(0);
}

/* The buffers that are written lie behind the outcome. */
static pln_status share_buffers(call *c) {
  size_t bytes = aligned(sizeof(outcome));
  for (uint32_t i = 0; i < c->n; i++)
    if (c->results[i])
      bytes += aligned(pln_tensor_bytes(c->results[i]));
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return pln_nomem(c->library->engine);
  c->shared = memory;
  c->shared_bytes = bytes;
  char *at = c->shared + aligned(sizeof(outcome));
  for (uint32_t i = 0; i < c->n; i++)
    if (c->results[i]) {
      size_t size = pln_tensor_bytes(c->results[i]);
      memcpy(at, c->args[i].data, size);
      c->args[i].data = at;
      at += aligned(size);
    }
  return PLN_OK;
}

static void fetch_buffers(call *c) {
  for (uint32_t i = 0; i < c->n; i++)
    if (c->results[i])
      memcpy(pln_tensor_writable(c->results[i]), c->args[i].data,
             pln_tensor_bytes(c->results[i]));
}

static pln_status report_end(const call *c, const pln_child_end *end,
                             double seconds) {
  const outcome *out = (const outcome *)(const void *)c->shared;
  pln_engine *e = c->library->engine;
  if (end->timed_out)
    return pln_diag_error(e, PLN_ERR_LIMIT, NULL,
                          "'%s' was stopped after %g seconds", name_of(c),
                          seconds);
  if (end->signal)
    return pln_diag_error(e, PLN_ERR_IO, NULL,
                          "'%s' crashed in its child process: signal %d (%s)",
                          name_of(c), end->signal, strsignal(end->signal));
  if (!out->finished)
    return pln_diag_error(e, PLN_ERR_IO, NULL, "'%s' did not finish: %s",
                          name_of(c),
                          out->message[0] ? out->message : "its process ended");
  return PLN_OK;
}

static pln_status call_child(call *c, double seconds, outcome *out) {
  pln_child_end end;
  PLN_TRY(share_buffers(c));
  pid_t child = fork();
  if (child < 0)
    return pln_diag_error(c->library->engine, PLN_ERR_IO, NULL,
                          "no process can be started: %s", strerror(errno));
  if (child == 0)
    run_child(c);
  pln_status status =
      pln_process_wait(c->library->engine, child, seconds, &end);
  if (status != PLN_OK)
    pln_diag_note(c->library->engine, NULL, "'%s' was stopped with it",
                  name_of(c));
  PLN_TRY(status);
  PLN_TRY(report_end(c, &end, seconds));
  *out = *(const outcome *)(const void *)c->shared;
  fetch_buffers(c);
  return PLN_OK;
}

static pln_status call_here(call *c, outcome *out) {
  pln_c_library *l = c->library;
  if (!l->handle)
    l->handle = dlopen(l->path, RTLD_NOW | RTLD_LOCAL);
  if (!l->handle)
    return pln_diag_error(l->engine, PLN_ERR_IO, NULL,
                          "'%s' cannot be loaded: %s", l->path, dlerror());
  for (uint32_t i = 0; i < c->n; i++)
    if (c->results[i])
      c->args[i].data = pln_tensor_writable(c->results[i]);
  call_loaded(c, l->handle, out);
  return out->finished ? PLN_OK
                       : pln_diag_error(l->engine, PLN_ERR_IO, NULL,
                                        "'%s' cannot be called: %s", name_of(c),
                                        out->message);
}

/* --------------------------------------------------------------- what it said
 */

static pln_status report_shape(const call *c, uint32_t code) {
  uint32_t param = (code - PLN_C_SHAPE) / 16, dim = (code - PLN_C_SHAPE) % 16;
  const pln_c_param *p = &c->fn->params[param < c->n ? param : 0];
  pln_engine *e = c->library->engine;
  return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                        "argument %u ('%s') of '%s': dimension %u is not the "
                        "declared one",
                        param + 1, pln_symbol_text(e, p->name).data, name_of(c),
                        dim);
}

static pln_status report_status(const call *c, int32_t status) {
  pln_engine *e = c->library->engine;
  uint32_t code = (uint32_t)status;
  if (code == 0)
    return PLN_OK;
  if (code >= PLN_C_ASSERT && code - PLN_C_ASSERT < c->fn->n_asserts) {
    pln_symbol text = c->fn->asserts[code - PLN_C_ASSERT];
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "'%s': assertion failed: %s", name_of(c),
                          text ? pln_symbol_text(e, text).data : "no message");
  }
  if (code >= PLN_C_SHAPE && code < PLN_C_ASSERT)
    return report_shape(c, code);
  return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL, "'%s' %s (code %u)",
                        name_of(c),
                        code == PLN_C_DIVISION    ? "divides by zero"
                        : code == PLN_C_THROW     ? "reports an error"
                        : code == PLN_C_WORKSPACE ? "has no workspace"
                                                  : "failed",
                        code);
}

static pln_status run_call(call *c, const pln_c_run_options *options,
                           const pln_tensor *const *args, double *seconds) {
  outcome out = {0};
  double limit = options->seconds > 0 ? options->seconds : 60;
  PLN_TRY(take_arguments(c, args));
  PLN_TRY(options->in_process ? call_here(c, &out)
                              : call_child(c, limit, &out));
  if (seconds)
    *seconds = out.seconds;
  return report_status(c, out.status);
}

/* Buffers that are never written are the arguments themselves; scalars give
 * nothing. */
static void give_results(call *c, const pln_tensor *const *args,
                         pln_tensor **results) {
  for (uint32_t i = 0; i < c->n; i++) {
    if (!c->fn->params[i].is_buffer)
      continue;
    *results++ = c->results[i] ? c->results[i] : pln_tensor_retain(args[i]);
    c->results[i] = NULL;
  }
}

static void free_call(call *c) {
  pln_engine *e = c->library->engine;
  for (uint32_t i = 0; c->dense && i < c->n; i++)
    if (c->dense[i])
      pln_tensor_release(c->dense[i]);
  for (uint32_t i = 0; c->results && i < c->n; i++)
    if (c->results[i])
      pln_tensor_release(c->results[i]);
  size_t n = c->n + 1;
  pln_mem_free(e, c->dense, c->dense ? n * sizeof *c->dense : 0);
  pln_mem_free(e, c->results, c->results ? n * sizeof *c->results : 0);
  pln_mem_free(e, c->args, c->args ? n * sizeof *c->args : 0);
  if (c->shared)
    munmap(c->shared, c->shared_bytes);
}

pln_status pln_c_library_call(pln_c_library *library, uint32_t index,
                              const pln_c_run_options *options, uint32_t n_args,
                              const pln_tensor *const *args,
                              pln_tensor **results, double least,
                              double *seconds_each) {
  static const pln_c_run_options none = {0};
  pln_engine *e = library->engine;
  call c = {.library = library,
            .fn = &library->code->functions[index],
            .n = n_args,
            .least = least,
            .evict = options ? options->evict : 0};
  if (n_args != c.fn->n_params)
    return pln_diag_error(e, PLN_ERR_ARGUMENT, NULL,
                          "'%s' has %u parameters, but %u arguments are given",
                          name_of(&c), c.fn->n_params, n_args);
  c.dense = pln_mem_zeroed(e, (n_args + 1) * sizeof(pln_tensor *));
  c.results = pln_mem_zeroed(e, (n_args + 1) * sizeof(pln_tensor *));
  c.args = pln_mem_zeroed(e, (n_args + 1) * sizeof(argument));
  pln_status status = PLN_OK;
  if (!c.dense || !c.results || !c.args)
    status = pln_nomem(e);
  pln_stoppable_begin(e);
  if (status == PLN_OK)
    status = run_call(&c, options ? options : &none, args, seconds_each);
  pln_stoppable_end(e);
  if (status == PLN_OK)
    give_results(&c, args, results);
  free_call(&c);
  return status;
}
