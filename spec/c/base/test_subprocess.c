/* test_subprocess.c: programs that are talked to by lines: what they say, how
 * they end, and that neither side waits for the other without end. */

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/subprocess.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "oom.h"

static pln_engine *begin(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  if (!e)
    abort();
  return e;
}

static pln_subprocess *start(pln_engine *e, const char *script) {
  const char *argv[] = {"/bin/sh", "-c", script, NULL};
  pln_subprocess *p;
  if (pln_subprocess_start(e, argv, &p) != PLN_OK)
    abort();
  return p;
}

static pln_slice slice(const char *text) {
  return (pln_slice){text, strlen(text)};
}

/* The next line; it is borrowed. */
static pln_slice next_line(pln_engine *e, pln_subprocess *p) {
  pln_slice line = {"", 0};
  size_t ready;
  CHECK_OK(pln_subprocess_wait(e, &p, 1, 20, &ready));
  CHECK_EQ_INT(ready, 0);
  CHECK(pln_subprocess_line(p, &line));
  return line;
}

static void lines_go_both_ways(void) {
  pln_engine *e = begin();
  pln_subprocess *p = start(e, "while read x; do echo got $x; done; exit 3");
  pln_child_end end;
  pln_slice line;
  CHECK(pln_subprocess_id(p) > 0);
  CHECK(!pln_subprocess_line(p, &line));
  CHECK_OK(pln_subprocess_send(p, slice("one\ntwo\nthr")));
  CHECK(pln_slice_equal(next_line(e, p), slice("got one")));
  CHECK(pln_slice_equal(next_line(e, p), slice("got two")));
  CHECK_OK(pln_subprocess_send(p, slice("ee\n")));
  CHECK(pln_slice_equal(next_line(e, p), slice("got three")));
  CHECK(!pln_subprocess_at_end(p));
  pln_subprocess_end_input(p);
  CHECK_OK(pln_subprocess_finish(p, 20, &end));
  CHECK_EQ_INT(end.code, 3);
  CHECK_EQ_INT(end.signal, 0);
  pln_subprocess_free(p);
  pln_base_free(e);
}

/* More than a socket holds in both directions, while nobody reads. */
static void neither_waits_for_the_other(void) {
  enum { SIZE = 4 << 20 };
  pln_engine *e = begin();
  pln_subprocess *p = start(e, "cat");
  char *text = malloc(SIZE);
  pln_child_end end;
  REQUIRE(text);
  memset(text, 'x', SIZE);
  text[SIZE - 1] = '\n';
  CHECK_OK(pln_subprocess_send(p, (pln_slice){text, SIZE}));
  pln_slice line = next_line(e, p);
  CHECK_EQ_INT(line.size, SIZE - 1);
  CHECK(!memcmp(line.data, text, SIZE - 1));
  pln_subprocess_end_input(p);
  CHECK_OK(pln_subprocess_finish(p, 20, &end));
  free(text);
  pln_subprocess_free(p);
  pln_base_free(e);
}

static void the_first_that_is_ready_is_told(void) {
  pln_engine *e = begin();
  pln_subprocess *list[] = {start(e, "read x"), start(e, "echo a; read x"),
                            start(e, "read x")};
  size_t ready;
  CHECK_OK(pln_subprocess_wait(e, list, 3, 20, &ready));
  CHECK_EQ_INT(ready, 1);
  CHECK_OK(pln_subprocess_wait(e, list, 1, 0.02, &ready));
  CHECK_EQ_INT(ready, 1); /* none */
  for (size_t i = 0; i < 3; i++)
    pln_subprocess_free(list[i]);
  pln_base_free(e);
}

static void a_program_that_ends_is_heard_of(void) {
  pln_engine *e = begin();
  pln_subprocess *p = start(e, "echo last; printf rest; kill -KILL $$");
  pln_child_end end;
  size_t ready;
  pln_slice line;
  CHECK(pln_slice_equal(next_line(e, p), slice("last")));
  CHECK_OK(pln_subprocess_wait(e, &p, 1, 20, &ready));
  CHECK_EQ_INT(ready, 0);
  CHECK(!pln_subprocess_line(p, &line));
  CHECK(pln_subprocess_at_end(p));
  CHECK_STATUS(pln_subprocess_send(p, slice("a\n")), PLN_ERR_IO);
  CHECK_OK(pln_subprocess_finish(p, 20, &end));
  CHECK_EQ_INT(end.signal, SIGKILL);
  pln_subprocess_free(p);
  pln_base_free(e);
}

static void what_it_started_goes_with_it(void) {
  pln_engine *e = begin();
  pln_subprocess *p = start(e, "sleep 1000 & echo $!; read x");
  pln_slice line = next_line(e, p);
  pid_t id = (pid_t)atoi(line.data);
  CHECK(kill(id, 0) == 0);
  pln_subprocess_free(p);
  for (int i = 0; i < 2000 && kill(id, 0) == 0; i++) {
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)id);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d %*s %c", &state) != 1)
      state = 'Z';
    if (file)
      fclose(file);
    if (state == 'Z') { /* nobody waits for it */
      pln_base_free(e);
      return;
    }
    usleep(5000);
  }
  CHECK(kill(id, 0) != 0);
  pln_base_free(e);
}

static void it_ends_with_this_process(void) {
  int ends[2];
  pid_t id = 0;
  CHECK(pipe(ends) == 0);
  pid_t host = fork();
  if (host == 0) {
    pln_engine *e = begin();
    id = pln_subprocess_id(start(e, "exec sleep 1000"));
    if (write(ends[1], &id, sizeof id) < 0)
      _exit(1);
    pause();
  }
  CHECK_EQ_INT(read(ends[0], &id, sizeof id), sizeof id);
  (void)kill(host, SIGKILL);
  (void)waitpid(host, NULL, 0);
  char path[64];
  FILE *file = NULL;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)id);
  for (int i = 0; i < 2000; i++) {
    char state = 'Z';
    file = fopen(path, "r");
    if (!file || fscanf(file, "%*d %*s %c", &state) != 1 || state == 'Z')
      break;
    fclose(file);
    file = NULL;
    usleep(5000);
    CHECK(i < 1999);
  }
  if (file)
    fclose(file);
  (void)close(ends[0]);
  (void)close(ends[1]);
}

static void no_program_is_there(void) {
  pln_engine *e = begin();
  const char *argv[] = {"/nonexistent/program", NULL};
  pln_subprocess *p;
  pln_child_end end;
  CHECK_OK(pln_subprocess_start(e, argv, &p));
  CHECK_OK(pln_subprocess_finish(p, 20, &end));
  CHECK_EQ_INT(end.code, 127);
  pln_subprocess_free(p);
  pln_subprocess_free(NULL);
  pln_base_free(e);
}

static pln_status talk(pln_engine *e, void *ud) {
  const char *argv[] = {"/bin/cat", NULL};
  pln_subprocess *p;
  size_t ready;
  (void)ud;
  PLN_TRY(pln_subprocess_start(e, argv, &p));
  pln_status status = pln_subprocess_send(p, slice("a line\n"));
  if (status == PLN_OK)
    status = pln_subprocess_wait(e, &p, 1, 20, &ready);
  pln_subprocess_free(p);
  return status;
}

static void memory_may_be_short(void) {
  oom_sweep(talk, NULL);
}

static const check_test tests[] = {
    {"lines go both ways", lines_go_both_ways},
    {"neither waits for the other", neither_waits_for_the_other},
    {"the first that is ready is told", the_first_that_is_ready_is_told},
    {"a program that ends is heard of", a_program_that_ends_is_heard_of},
    {"what it started goes with it", what_it_started_goes_with_it},
    {"it ends with this process", it_ends_with_this_process},
    {"no program is there", no_program_is_there},
    {"memory may be short", memory_may_be_short},
};
CHECK_MAIN(tests)
