/* test_child.c: child processes whose output is read: what they write, how they
 * end, and that no memory stays behind. */

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process/process.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "oom.h"

static const pln_child_limits limits = {.seconds = 20, .output = 1 << 16};

static void write_text(void *ud, int fd) {
  const char *text = ud;
  if (write(fd, text, strlen(text)) < 0)
    _exit(1);
}

static void write_without_end(void *ud, int fd) {
  for (;;)
    write_text(ud, fd);
}

static void sleep_long(void *ud, int fd) {
  (void)ud;
  (void)fd;
  for (;;)
    pause();
}

static void crash(void *ud, int fd) {
  (void)ud;
  (void)fd;
  (void)raise(SIGKILL);
}

/* A child of the child keeps the pipe open. */
static void leave_a_child(void *ud, int fd) {
  write_text(ud, fd);
  if (fork() == 0)
    sleep_long(ud, fd);
}

static pln_engine *begin(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  if (!e)
    abort();
  return e;
}

static void a_function_writes(void) {
  pln_engine *e = begin();
  pln_child_result r;
  char text[] = "twelve bytes";
  CHECK_OK(pln_child_call(e, &limits, write_text, text, &r));
  CHECK_EQ_INT(r.output.size, 12);
  CHECK(!memcmp(r.output.data, text, 12));
  CHECK_EQ_INT(r.end.code, 0);
  CHECK_EQ_INT(r.end.signal, 0);
  CHECK(r.resident > 0 && r.seconds >= 0);
  pln_buffer_free(&r.output);
  pln_base_free(e);
}

static void output_is_limited(void) {
  pln_engine *e = begin();
  pln_child_result r;
  char text[] = "again and again ";
  CHECK_OK(pln_child_call(e, &limits, write_without_end, text, &r));
  CHECK(r.too_long);
  CHECK_EQ_INT(r.end.signal, SIGKILL);
  CHECK(r.output.size <= limits.output);
  pln_buffer_free(&r.output);
  pln_base_free(e);
}

static void time_is_limited(void) {
  pln_engine *e = begin();
  pln_child_result r;
  pln_child_limits brief = {.seconds = 0.05, .output = 10};
  CHECK_OK(pln_child_call(e, &brief, sleep_long, NULL, &r));
  CHECK(r.end.timed_out);
  CHECK(r.seconds < 10);
  pln_buffer_free(&r.output);
  pln_base_free(e);
}

static void a_crash_is_no_error(void) {
  pln_engine *e = begin();
  pln_child_result r;
  CHECK_OK(pln_child_call(e, &limits, crash, NULL, &r));
  CHECK_EQ_INT(r.end.signal, SIGKILL);
  CHECK(!r.end.timed_out && !r.too_long);
  pln_buffer_free(&r.output);
  pln_base_free(e);
}

static void what_a_child_started_goes_with_it(void) {
  pln_engine *e = begin();
  pln_child_result r;
  char text[] = "done";
  CHECK_OK(pln_child_call(e, &limits, leave_a_child, text, &r));
  CHECK_EQ_INT(r.output.size, 4);
  CHECK(!r.end.timed_out && r.seconds < 10);
  pln_buffer_free(&r.output);
  pln_base_free(e);
}

/* The number of a process that the program wrote, while it runs: 0 once it has
 * ended. */
static long still_runs(const pln_child_result *r) {
  long pid = 0;
  for (size_t i = 0; i < r->output.size && r->output.data[i] >= '0'; i++)
    pid = pid * 10 + (r->output.data[i] - '0');
  CHECK(pid > 1);
  return kill((pid_t)pid, 0) == 0 ? pid : 0;
}

/* Sessions of their own, and children of children whose parents have ended. */
static void what_a_program_started_goes_with_it(void) {
  static const char *const scripts[] = {
      "setsid sleep 1000 >/dev/null & echo $!",
      "setsid sh -c '(sleep 1000 >/dev/null & echo $!) &'; sleep 0.1",
      "setsid sleep 1000 >/dev/null & echo $!; sleep 1000"};
  pln_engine *e = begin();
  for (size_t i = 0; i < PLN_COUNT(scripts); i++) {
    pln_child_result r;
    pln_child_limits brief = {.seconds = i == 2 ? 0.3 : 20, .output = 100};
    const char *argv[] = {"/bin/sh", "-c", scripts[i], NULL};
    CHECK_OK(pln_child_run(e, &brief, argv, &r));
    CHECK_EQ_INT(r.end.timed_out, i == 2);
    CHECK_EQ_INT(still_runs(&r), 0);
    CHECK(r.seconds < 10);
    pln_buffer_free(&r.output);
  }
  pln_base_free(e);
}

static uint64_t resident_of(pln_engine *e, const char *script) {
  pln_child_result r;
  const char *argv[] = {"/bin/sh", "-c", script, NULL};
  CHECK_OK(pln_child_run(e, &limits, argv, &r));
  CHECK_EQ_INT(r.end.code, 0);
  pln_buffer_free(&r.output);
  return r.resident;
}

/* The memory of this process does not count for the program. */
static void memory_is_that_of_the_program(void) {
  pln_engine *e = begin();
  size_t size = (size_t)64 << 20;
  char *host = malloc(size);
  CHECK(host != NULL);
  if (host)
    memset(host, 1, size);
  uint64_t small = resident_of(e, "sleep 0.2");
  CHECK(small > 0 && small < size / 2);
  uint64_t large = resident_of(
      e, "exec dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null");
  CHECK(large > (uint64_t)200 << 20);
  free(host);
  pln_base_free(e);
}

static void programs_run(void) {
  pln_engine *e = begin();
  pln_child_result r;
  const char *echo[] = {"/bin/echo", "a word", NULL};
  const char *none[] = {"/nonexistent/program", NULL};
  CHECK_OK(pln_child_run(e, &limits, echo, &r));
  CHECK_EQ_INT(r.output.size, 7);
  pln_buffer_free(&r.output);
  CHECK_OK(pln_child_run(e, &limits, none, &r));
  CHECK_EQ_INT(r.end.code, 127);
  pln_buffer_free(&r.output);
  pln_base_free(e);
}

static void an_engine_that_is_stopped_ends_it(void) {
  pln_engine *e = begin();
  pln_child_result r;
  pln_stoppable_begin(e);
  pln_engine_interrupt(e);
  CHECK_STATUS(pln_child_call(e, &limits, sleep_long, NULL, &r),
               PLN_ERR_INTERRUPTED);
  pln_stoppable_end(e);
  pln_base_free(e);
}

static pln_status read_output(pln_engine *engine, void *ud) {
  pln_child_result r;
  PLN_TRY(pln_child_call(engine, &limits, write_text, ud, &r));
  pln_buffer_free(&r.output);
  return PLN_OK;
}

static void memory_may_be_out(void) {
  char text[] = "some bytes";
  oom_sweep(read_output, text);
}

static const check_test tests[] = {
    {"a function writes", a_function_writes},
    {"output is limited", output_is_limited},
    {"time is limited", time_is_limited},
    {"a crash is no error", a_crash_is_no_error},
    {"what a child started goes with it", what_a_child_started_goes_with_it},
    {"programs run", programs_run},
    {"what a program started goes with it",
     what_a_program_started_goes_with_it},
    {"memory is that of the program", memory_is_that_of_the_program},
    {"an engine that is stopped ends it", an_engine_that_is_stopped_ends_it},
    {"memory may be out", memory_may_be_out},
};
CHECK_MAIN(tests)
