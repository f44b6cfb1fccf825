/* farm.c: perilune-farm: gives tasks to workers of Work Queue.
 *
 *     perilune-farm [-a ADDRESS] [-p PORT] [-P PASSWORDFILE] [-k SECONDS]
 *
 * Started by perilune (lua/perilune/tune/queue/work_queue.lua), which sends
 * tasks as lines of standard input and gets results as lines of standard
 * output; README.md has their fields. The end of the input ends it. Work Queue
 * (coop-computing-tools) is GPL-2: this program is linked with it, and nothing
 * else of perilune is.
 *
 * It listens on ADDRESS (127.0.0.1) and PORT (0: any that is free). A worker
 * that says nothing for about SECONDS (60) is given up, and its task sent to
 * another one. Files are read and written by Work Queue. */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctools/list.h>
#include <cctools/work_queue.h>

enum {
  MOST_LINE = 1 << 20,
  BUSY_MS = 3,
  IDLE_MS = 100,
  MOST_AT_ONCE = 1000,
  MOST_POLLED = 4096
};

typedef struct farm {
  struct work_queue *queue;
  char *line; /* what was read of the next lines */
  size_t size, room;
  bool at_end; /* of the input */
  int workers, cores;
  /* Tasks without a feature that Work Queue does not have yet, in order: while
   * it has tasks that no worker is free for, it leaves results where they are
   * (9.9). */
  struct work_queue_task **waiting;
  size_t first, end, most;
  int sent; /* tasks without a feature that it has */
} farm;

/* What the calls of Work Queue are made to do, which have no argument of ours:
 * see below. */
static struct {
  struct in_addr address;
  int most_ms;
} calls = {.most_ms = BUSY_MS};

/* ------------------------------------------------------------------- output */

static void give_up(const char *what, const char *detail) {
  printf("error\t%s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
  exit(1);
}

static void put_field(const char *text) {
  putchar('\t');
  for (; text && *text; text++)
    if (*text == '\t' || *text == '\n' || *text == '\r' || *text == '%')
      printf("%%%02X", (unsigned char)*text);
    else
      putchar(*text);
}

/* ------------------------------------------------------------- system calls
 * The linker (--wrap) leads Work Queue's calls of bind and poll to here. */

int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

/* Work Queue has no way to say where to listen: it binds to every address. */
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size) {
  struct sockaddr_in one;
  if (address->sa_family != AF_INET || size < sizeof one)
    return __real_bind(fd, address, size);
  memcpy(&one, address, sizeof one);
  if (one.sin_addr.s_addr == htonl(INADDR_ANY))
    one.sin_addr = calls.address;
  return __real_bind(fd, (const struct sockaddr *)&one, sizeof one);
}

/* work_queue_wait(q, 0) waits a second for its workers, and gives what it has
 * got only then. It waits up to `most_ms` here, and not when there is input.
 * Longer limits are those of transfers, which are left alone. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms) {
  struct pollfd all[MOST_POLLED];
  if (ms <= calls.most_ms || ms > 1000 || n >= MOST_POLLED)
    return __real_poll(fds, n, ms);
  memcpy(all, fds, n * sizeof *fds);
  all[n] = (struct pollfd){.fd = 0, .events = POLLIN};
  int ready = __real_poll(all, n + 1, calls.most_ms);
  memcpy(fds, all, n * sizeof *fds);
  return ready > 0 && all[n].revents ? ready - 1 : ready;
}

/* -------------------------------------------------------------------- tasks */

static int hex_value(char c) {
  const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

/* Decodes %XX in place. */
static void decode(char *field) {
  char *to = field;
  for (const char *from = field; *from; from++) {
    int high = *from == '%' ? hex_value(from[1]) : -1;
    int low = high >= 0 ? hex_value(from[2]) : -1;
    *to++ = low >= 0 ? (char)(high * 16 + low) : *from;
    from += low >= 0 ? 2 : 0;
  }
  *to = 0;
}

/* The next field of a line; an error when there is none. */
static char *next_field(char **rest) {
  char *field = strsep(rest, "\t");
  if (!field)
    give_up("a task lacks fields", NULL);
  decode(field);
  return field;
}

static void add_file(struct work_queue_task *task, char **rest) {
  const char *kind = next_field(rest);
  const char *remote = next_field(rest), *local = next_field(rest);
  bool output = strcmp(kind, "output") == 0;
  bool cached = strcmp(kind, "cached") == 0;
  if (!output && !cached && strcmp(kind, "input") != 0)
    give_up("no kind of file", kind);
  if (!work_queue_task_specify_file(
          task, local, remote, output ? WORK_QUEUE_OUTPUT : WORK_QUEUE_INPUT,
          cached ? WORK_QUEUE_CACHE : WORK_QUEUE_NOCACHE))
    give_up("no name of a file", remote);
}

static void add_waiting(farm *f, struct work_queue_task *task) {
  if (f->end == f->most) {
    f->most = f->most ? 2 * f->most : 1024;
    f->waiting = realloc(f->waiting, f->most * sizeof(void *));
    if (!f->waiting)
      give_up("out of memory", NULL);
  }
  f->waiting[f->end++] = task;
}

/* One for each core of the workers. */
static void send_waiting(farm *f) {
  while (f->first < f->end && f->sent < f->cores) {
    work_queue_submit(f->queue, f->waiting[f->first++]);
    f->sent++;
  }
  if (f->first == f->end)
    f->first = f->end = 0;
}

static void add_task(farm *f, char *rest) {
  const char *id = next_field(&rest);
  int tries = atoi(next_field(&rest));
  const char *feature = next_field(&rest);
  struct work_queue_task *task = work_queue_task_create(next_field(&rest));
  if (!task)
    give_up("out of memory", NULL);
  work_queue_task_specify_tag(task, id);
  work_queue_task_specify_cores(task, 1);
  /* What may be repeated; 0 would be without end. */
  work_queue_task_specify_max_retries(task, tries > 2 ? tries - 1 : 1);
  if (*feature)
    work_queue_task_specify_feature(task, feature);
  while (rest)
    add_file(task, &rest);
  /* Those that come first are sent first. */
  work_queue_task_specify_priority(task, -atof(id));
  if (*feature)
    work_queue_submit(f->queue, task);
  else
    add_waiting(f, task);
}

static const char *name_of_result(work_queue_result_t result) {
  switch (result) {
  case WORK_QUEUE_RESULT_SUCCESS:
  case WORK_QUEUE_RESULT_STDOUT_MISSING: return "success";
  case WORK_QUEUE_RESULT_MAX_RETRIES: return "lost";
  case WORK_QUEUE_RESULT_INPUT_MISSING: return "an input file is missing";
  case WORK_QUEUE_RESULT_OUTPUT_MISSING: return "an output file is missing";
  case WORK_QUEUE_RESULT_SIGNAL: return "a signal ended it";
  case WORK_QUEUE_RESULT_RESOURCE_EXHAUSTION: return "its worker is too small";
  case WORK_QUEUE_RESULT_TASK_TIMEOUT:
  case WORK_QUEUE_RESULT_TASK_MAX_RUN_TIME: return "it took too long";
  case WORK_QUEUE_RESULT_UNKNOWN:
  case WORK_QUEUE_RESULT_FORSAKEN:
  case WORK_QUEUE_RESULT_DISK_ALLOC_FULL:
  case WORK_QUEUE_RESULT_RMONITOR_ERROR: break;
  }
  return "Work Queue cannot run it";
}

static void report(farm *f, struct work_queue_task *task) {
  f->sent -= !task->features || list_size(task->features) == 0;
  printf("done");
  put_field(task->tag);
  put_field(name_of_result(task->result));
  printf("\t%d\t%d\t%.6f", task->return_status, task->try_count,
         (double)task->time_workers_execute_last / 1e6);
  put_field(task->hostname);
  putchar('\n');
  work_queue_task_delete(task);
}

/* -------------------------------------------------------------------- input */

static void read_line(farm *f, char *line) {
  char *rest = line;
  const char *word = strsep(&rest, "\t");
  if (strcmp(word, "task") != 0)
    give_up("no line that is known", word);
  add_task(f, rest);
}

static void read_lines(farm *f) {
  char *begin = f->line, *end;
  while ((end = memchr(begin, '\n', f->size - (size_t)(begin - f->line)))) {
    *end = 0;
    read_line(f, begin);
    begin = end + 1;
  }
  f->size -= (size_t)(begin - f->line);
  memmove(f->line, begin, f->size);
}

static void make_room(farm *f) {
  if (f->room - f->size >= 65536)
    return;
  f->room = f->room ? 2 * f->room : 131072;
  char *line = f->room <= 2 * MOST_LINE ? realloc(f->line, f->room) : NULL;
  if (!line)
    give_up("a line is too long", NULL);
  f->line = line;
}

/* Reads what is there. */
static void read_input(farm *f) {
  struct pollfd one = {.fd = 0, .events = POLLIN};
  if (__real_poll(&one, 1, 0) <= 0)
    return;
  make_room(f);
  ssize_t n = read(0, f->line + f->size, f->room - f->size);
  if (n < 0 && errno == EINTR)
    return;
  if (n <= 0) {
    f->at_end = true;
    return;
  }
  f->size += (size_t)n;
  read_lines(f);
}

/* ------------------------------------------------------------------ running */

static void report_workers(farm *f) {
  struct work_queue_stats stats;
  work_queue_get_stats(f->queue, &stats);
  if (stats.workers_connected != f->workers)
    printf("workers\t%d\n", stats.workers_connected);
  f->workers = stats.workers_connected;
  f->cores = (int)stats.total_cores;
}

static void run(farm *f) {
  while (!f->at_end) {
    struct work_queue_task *task = NULL;
    calls.most_ms = work_queue_empty(f->queue) ? IDLE_MS : BUSY_MS;
    for (int n = 0; n < MOST_AT_ONCE && (task = work_queue_wait(f->queue, 0));
         n++)
      report(f, task);
    report_workers(f);
    send_waiting(f);
    if (fflush(stdout)) /* perilune has ended */
      return;
    read_input(f);
  }
}

static void usage(void) {
  fputs("Usage: perilune-farm [-a ADDRESS] [-p PORT] [-P PASSWORDFILE] "
        "[-k SECONDS]\n"
        "Gives tasks to workers of Work Queue; perilune starts it.\n",
        stderr);
  exit(2);
}

static void open_queue(farm *f, int port, const char *password,
                       double silence) {
  f->queue = work_queue_create(port);
  if (!f->queue)
    give_up("it cannot listen on this address and port", strerror(errno));
  if (password && !work_queue_specify_password_file(f->queue, password))
    give_up("the password file cannot be read", password);
  work_queue_tune(f->queue, "keepalive-interval", silence / 2);
  work_queue_tune(f->queue, "keepalive-timeout", silence / 2);
  work_queue_tune(f->queue, "short-timeout", silence > 4 ? silence / 2 : 2);
  work_queue_specify_algorithm(f->queue, WORK_QUEUE_SCHEDULE_FCFS);
}

/* One descriptor a worker. */
static void raise_limit(void) {
  struct rlimit most;
  if (getrlimit(RLIMIT_NOFILE, &most))
    return;
  most.rlim_cur = most.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &most);
}

int main(int argc, char **argv) {
  farm f = {.workers = 0};
  int port = 0, option;
  double silence = 60;
  const char *address = "127.0.0.1", *password = NULL;
  while ((option = getopt(argc, argv, "a:p:P:k:")) != -1) {
    switch (option) {
    case 'a': address = optarg; break;
    case 'p': port = atoi(optarg); break;
    case 'P': password = optarg; break;
    case 'k': silence = atof(optarg); break;
    default: usage();
    }
  }
  if (optind != argc || port < 0 || port > 65535 || !(silence >= 2))
    usage();
  if (!inet_aton(address, &calls.address))
    give_up("no address as 127.0.0.1", address);
  raise_limit();
  setenv("CATALOG_HOST", "127.0.0.1", 1); /* nobody else is told of it */
  open_queue(&f, port, password, silence);
  printf("listening\t%d\n", work_queue_port(f.queue));
  run(&f);
  work_queue_delete(f.queue);
  while (f.first < f.end)
    work_queue_task_delete(f.waiting[f.first++]);
  free(f.waiting);
  free(f.line);
  return 0;
}
