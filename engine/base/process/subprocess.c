/* subprocess.c: programs that run beside this one and talk with it by lines.
 *
 * Called by the binding for queues of tasks. What a program writes is read
 * whenever this process waits or sends, so that neither of the two can wait for
 * the other without end. A socket serves as standard input and output: writing
 * to a program that has ended is an error and no signal. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/subprocess.h"

enum { MOST_LINE = 64 << 20, POLL_MS = 50, MOST_POLLED = 1024 };

struct pln_subprocess {
  pln_engine *engine;
  pid_t pid; /* 0: it has been waited for */
  int fd;    /* -1: it has ended its output */
  pln_buffer output;
  size_t begin;   /* of the next line in the output */
  size_t scanned; /* no line ends between `begin` and here */
};

/* ----------------------------------------------------------------- starting */

static void run_program(const char *const *argv, int fd, pid_t parent) {
  pln_child_enter(parent, SIGTERM); /* it may end what it has started */
  (void)unsetenv("LD_PRELOAD");     /* as for pln_child_run */
  if (dup2(fd, 0) >= 0 && dup2(fd, 1) >= 0)
    execvp(argv[0], (char *const *)(uintptr_t)argv);
  _exit(127);
}

static pln_status cannot_start(pln_engine *engine) {
  return pln_diag_error(engine, PLN_ERR_IO, NULL,
                        "no process can be started: %s", strerror(errno));
}

/* The descriptors of both ends are closed in programs. */
static pln_status make_sockets(pln_engine *engine, int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
    return cannot_start(engine);
  for (int i = 0; i < 2; i++)
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return PLN_OK;
}

static pln_status start(pln_subprocess *p, const char *const *argv) {
  int ends[2];
  pid_t parent = getpid();
  PLN_TRY(make_sockets(p->engine, ends));
  (void)fflush(NULL);
  p->pid = fork();
  if (p->pid == 0)
    run_program(argv, ends[1], parent);
  pln_status status = p->pid < 0 ? cannot_start(p->engine) : PLN_OK;
  (void)close(ends[1]);
  if (p->pid > 0) {
    (void)setpgid(p->pid, p->pid);
    p->fd = ends[0];
  } else {
    p->pid = 0;
    (void)close(ends[0]);
  }
  return status;
}

pln_status pln_subprocess_start(pln_engine *engine, const char *const *argv,
                                pln_subprocess **out) {
  pln_subprocess *p = pln_mem_zeroed(engine, sizeof *p);
  *out = NULL;
  if (!p)
    return pln_nomem(engine);
  p->engine = engine;
  p->fd = -1;
  pln_buffer_init(&p->output, engine);
  pln_status status = start(p, argv);
  if (status == PLN_OK)
    *out = p;
  else
    pln_subprocess_free(p);
  return status;
}

static void close_socket(pln_subprocess *p) {
  if (p->fd >= 0)
    (void)close(p->fd);
  p->fd = -1;
}

void pln_subprocess_free(pln_subprocess *p) {
  if (!p)
    return;
  if (p->pid) {
    (void)kill(-p->pid, SIGKILL);
    (void)kill(p->pid, SIGKILL);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  close_socket(p);
  pln_buffer_free(&p->output);
  pln_mem_free(p->engine, p, sizeof *p);
}

int pln_subprocess_id(const pln_subprocess *p) {
  return p->pid;
}

/* ------------------------------------------------------------------ reading */

/* Lines that were taken make room. */
static void compact(pln_subprocess *p) {
  size_t rest = p->output.size - p->begin;
  if (rest > 0 && p->begin < p->output.size / 2)
    return;
  if (rest > 0)
    memmove(p->output.data, p->output.data + p->begin, rest);
  p->output.size = rest;
  p->scanned -= p->begin;
  p->begin = 0;
}

/* Reads what is there. */
static pln_status read_output(pln_subprocess *p) {
  char bytes[16384];
  while (p->fd >= 0) {
    ssize_t n = read(p->fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return PLN_OK;
    if (n <= 0) {
      close_socket(p);
      return PLN_OK;
    }
    compact(p);
    if (p->output.size + (size_t)n > MOST_LINE)
      return pln_diag_error(p->engine, PLN_ERR_LIMIT, NULL,
                            "a program wrote a line of more than %d MiB",
                            MOST_LINE >> 20);
    PLN_TRY(pln_buffer_add(&p->output, bytes, (size_t)n));
    if (memchr(bytes, '\n', (size_t)n))
      return PLN_OK;
  }
  return PLN_OK;
}

static bool has_line(pln_subprocess *p) {
  size_t n = p->output.size - p->scanned;
  const char *from = n > 0 ? p->output.data + p->scanned : NULL;
  const char *end = n > 0 ? memchr(from, '\n', n) : NULL;
  p->scanned = end ? (size_t)(end - p->output.data) : p->output.size;
  return end != NULL;
}

bool pln_subprocess_line(pln_subprocess *p, pln_slice *line) {
  if (!has_line(p))
    return false;
  *line = (pln_slice){p->output.data + p->begin, p->scanned - p->begin};
  p->begin = ++p->scanned;
  return true;
}

bool pln_subprocess_at_end(pln_subprocess *p) {
  return p->fd < 0 && !has_line(p);
}

/* ------------------------------------------------------------------ waiting */

static bool is_ready(pln_subprocess *p) {
  return has_line(p) || p->fd < 0;
}

/* Index of the first program that is ready; `n`: none. */
static size_t find_ready(pln_subprocess *const *list, size_t n) {
  size_t i = 0;
  while (i < n && !is_ready(list[i]))
    i++;
  return i;
}

/* Waits some milliseconds for output of the programs. */
static void poll_all(pln_subprocess *const *list, size_t n, double seconds) {
  struct pollfd fds[MOST_POLLED];
  size_t most = n < MOST_POLLED ? n : MOST_POLLED;
  int ms = seconds * 1000 < POLL_MS ? (int)(seconds * 1000) + 1 : POLL_MS;
  for (size_t i = 0; i < most; i++)
    fds[i] = (struct pollfd){.fd = list[i]->fd, .events = POLLIN};
  (void)poll(fds, (nfds_t)most, n > most ? 1 : ms);
}

static pln_status wait_for_one(pln_engine *engine, pln_subprocess *const *list,
                               size_t n, double seconds, size_t *ready) {
  double end = pln_seconds_now() + seconds;
  for (;;) {
    for (size_t i = 0; i < n; i++)
      if (!has_line(list[i]))
        PLN_TRY(read_output(list[i]));
    *ready = find_ready(list, n);
    double left = end - pln_seconds_now();
    if (*ready < n || left <= 0)
      return PLN_OK;
    if (pln_is_stopped(engine))
      return pln_stopped(engine);
    poll_all(list, n, left);
  }
}

pln_status pln_subprocess_wait(pln_engine *engine, pln_subprocess *const *list,
                               size_t n, double seconds, size_t *ready) {
  pln_stoppable_begin(engine);
  pln_status status = wait_for_one(engine, list, n, seconds, ready);
  if (status == PLN_OK && pln_is_stopped(engine))
    status = pln_stopped(engine);
  pln_stoppable_end(engine);
  return status;
}

/* ------------------------------------------------------------------ sending */

static pln_status does_not_read(const pln_subprocess *p) {
  return pln_diag_error(p->engine, PLN_ERR_IO, NULL,
                        "a program that was started has ended");
}

/* Sends what can be sent now; how much it was is in *n. */
static pln_status send_some(pln_subprocess *p, pln_slice bytes, size_t *n) {
  struct pollfd one = {.fd = p->fd, .events = POLLIN | POLLOUT};
  *n = 0;
  if (p->fd < 0)
    return does_not_read(p);
  ssize_t sent = send(p->fd, bytes.data, bytes.size, MSG_NOSIGNAL);
  if (sent > 0)
    *n = (size_t)sent;
  if (sent >= 0 || errno == EINTR)
    return PLN_OK;
  if (errno != EAGAIN && errno != EWOULDBLOCK)
    return does_not_read(p);
  (void)poll(&one, 1, POLL_MS);
  return read_output(p);
}

static pln_status send_all(pln_subprocess *p, pln_slice bytes) {
  while (bytes.size > 0) {
    size_t n;
    PLN_TRY(send_some(p, bytes, &n));
    bytes = (pln_slice){bytes.data + n, bytes.size - n};
    if (pln_is_stopped(p->engine))
      return pln_stopped(p->engine);
  }
  return PLN_OK;
}

pln_status pln_subprocess_send(pln_subprocess *p, pln_slice bytes) {
  pln_stoppable_begin(p->engine);
  pln_status status = send_all(p, bytes);
  pln_stoppable_end(p->engine);
  return status;
}

void pln_subprocess_end_input(pln_subprocess *p) {
  if (p->fd >= 0)
    (void)shutdown(p->fd, SHUT_WR);
}

pln_status pln_subprocess_finish(pln_subprocess *p, double seconds,
                                 pln_child_end *out) {
  *out = (pln_child_end){0};
  if (!p->pid)
    return PLN_OK;
  pid_t pid = p->pid;
  p->pid = 0;
  pln_status status = pln_process_wait(p->engine, pid, seconds, out);
  (void)kill(-pid, SIGKILL); /* what it started */
  return status;
}
