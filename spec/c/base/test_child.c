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

/* A grandchild of the child in a session of its own, which writes its number.
 */
static void leave_a_session(void *ud, int fd) {
  if (fork() != 0)
    return;
  (void)setsid();
  if (fork() != 0)
    _exit(0);
  pid_t own = getpid();
  if (write(fd, &own, sizeof own) == (ssize_t)sizeof own)
    sleep_long(ud, fd);
}

static void leave_a_session_and_hang(void *ud, int fd) {
  leave_a_session(ud, fd);
  sleep_long(ud, fd);
}

/* Its subreaper does not run. */
static void leave_a_session_and_stop(void *ud, int fd) {
  leave_a_session(ud, fd);
  (void)usleep(50000);
  (void)kill(getppid(), SIGSTOP);
  sleep_long(ud, fd);
}

static void check_session(void (*body)(void *, int)) {
  pln_engine *e = begin();
  pln_child_result r;
  pid_t left = 0;
  pln_child_limits brief = {.seconds = 0.3, .output = 100};
  CHECK_OK(pln_child_call(e, &brief, body, NULL, &r));
  if (r.output.size == sizeof left) {
    memcpy(&left, r.output.data, sizeof left);
    for (int i = 0; i < 200 && kill(left, 0) == 0; i++)
      (void)usleep(10000);
    CHECK(kill(left, 0) != 0);
  }
  CHECK(body == leave_a_session || left > 0);
  CHECK(r.end.timed_out == (body != leave_a_session));
  pln_buffer_free(&r.output);
  pln_base_free(e);
}

static void what_left_the_session_goes_with_it(void) {
#ifdef __linux__
  check_session(leave_a_session);
  check_session(leave_a_session_and_hang);
  check_session(leave_a_session_and_stop);
#endif
}

/* 64 MiB of this process, and what it counts against the program. */
static void memory_is_that_of_the_program(void) {
  pln_engine *e = begin();
  pln_child_result r;
  size_t size = (size_t)64 << 20;
  char *host = malloc(size);
  const char *quick[] = {"/bin/true", NULL};
  const char *slow[] = {"/bin/sleep", "0.05", NULL};
  CHECK(host);
  if (host)
    memset(host, 1, size);
  CHECK_OK(pln_child_run(e, &limits, quick, &r));
  CHECK(r.resident < size / 4);
  pln_buffer_free(&r.output);
  CHECK_OK(pln_child_run(e, &limits, slow, &r));
  CHECK(r.resident > 0 && r.resident < size / 4);
  CHECK(r.seconds >= 0.05);
  pln_buffer_free(&r.output);
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
    {"what left the session goes with it", what_left_the_session_goes_with_it},
    {"programs run", programs_run},
    {"memory is that of the program", memory_is_that_of_the_program},
    {"an engine that is stopped ends it", an_engine_that_is_stopped_ends_it},
    {"memory may be out", memory_may_be_out},
};
CHECK_MAIN(tests)
