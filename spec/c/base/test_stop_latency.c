/* How soon what works long in C ends when another thread asks for a stop:
 * reading and writing text and models, products, convolutions, elementwise
 * kernels.
 *
 * What is measured is the processor's time of the thread that works, from the
 * request to the return, so that a busy machine changes nothing. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

enum { MOST_MS = 50, LINES = 60000 };

static pln_engine *engine;
static pthread_t worker;
static atomic_bool asked;

static double seconds_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double work_seconds(void) {
  clockid_t clock;
  return pthread_getcpuclockid(worker, &clock) == 0 ? seconds_of(clock) : 0;
}

/* When the thread had worked so long the stop was asked for. */
typedef struct asking {
  double after, asked;
} asking;

static void *ask(void *ud) {
  asking *a = ud;
  double begun = work_seconds();
  while (work_seconds() - begun < a->after) {
    struct timespec short_time = {0, 200000};
    nanosleep(&short_time, NULL);
  }
  a->asked = work_seconds();
  pln_engine_interrupt(engine);
  atomic_store(&asked, true);
  return NULL;
}

/* Asks for a stop some milliseconds after the work has begun. One that comes as
 * the work ends stops nothing, and is asked for once more. */
static void measure(const char *what, pln_status (*work)(void *ud), void *ud) {
  enum { MOST_TIMES = 50 };
  asking a = {.after = 0.004};
  pln_status status = PLN_OK;
  double ended = 0;
  worker = pthread_self();
  for (int i = 0; i < MOST_TIMES && status == PLN_OK; i++) {
    pthread_t thread;
    atomic_store(&asked, false);
    REQUIRE(pthread_create(&thread, NULL, ask, &a) == 0);
    do
      status = work(ud);
    while (status == PLN_OK && !atomic_load(&asked));
    ended = work_seconds();
    pthread_join(thread, NULL);
    if (status == PLN_OK && pln_engine_interrupted(engine))
      status = work(ud);
  }
  double ms = 1e3 * (ended - a.asked);
  printf("# %s: %.1f ms\n", what, ms);
  CHECK_STATUS(status, PLN_ERR_INTERRUPTED);
  CHECK(ms < MOST_MS);
  pln_diag_clear(engine);
}

/* --------------------------------------------------------------------- text */

typedef struct bytes {
  char *data;
  size_t size, room;
} bytes;

static pln_status append(void *ud, const char *data, size_t size) {
  bytes *b = ud;
  if (b->size + size > b->room) {
    b->room = 2 * (b->size + size);
    b->data = realloc(b->data, b->room);
  }
  memcpy(b->data + b->size, data, size);
  b->size += size;
  return PLN_OK;
}

static bytes long_text(void) {
  bytes text = {0};
  char line[64];
  const char head[] = "#[version = \"0.0.5\"]\n"
                      "def @main(%x: Tensor[(4), float32]) {\n";
  append(&text, head, sizeof head - 1);
  for (int i = 0; i < LINES; i++) {
    int n = i ? snprintf(line, sizeof line, "%%%d = nn.relu(%%%d);\n", i, i - 1)
              : snprintf(line, sizeof line, "%%0 = nn.relu(%%x);\n");
    append(&text, line, (size_t)n);
  }
  int n = snprintf(line, sizeof line, "%%%d\n}\n", LINES - 1);
  append(&text, line, (size_t)n);
  return text;
}

static pln_status parse(void *ud) {
  const bytes *text = ud;
  pln_module *module = NULL;
  pln_status status = pln_parse_module(
      engine, (pln_slice){text->data, text->size}, NULL, &module);
  pln_module_release(module);
  return status;
}

static pln_status write_model(void *ud) {
  bytes out = {0};
  pln_status status = pln_onnx_write(ud, NULL, append, &out);
  free(out.data);
  return status;
}

static pln_status read_model(void *ud) {
  const bytes *model = ud;
  pln_module *module = NULL;
  pln_status status = pln_onnx_parse(
      engine, (pln_slice){model->data, model->size}, NULL, &module);
  pln_module_release(module);
  return status;
}

static void files_and_texts(void) {
  engine = pln_engine_new(NULL, NULL);
  REQUIRE(engine);
  bytes text = long_text(), model = {0};
  pln_module *module = NULL;
  measure("read Relay text", parse, &text);
  CHECK_OK(pln_parse_module(engine, (pln_slice){text.data, text.size}, NULL,
                            &module));
  REQUIRE(module);
  measure("write an ONNX model", write_model, module);
  CHECK_OK(pln_onnx_write(module, NULL, append, &model));
  measure("read an ONNX model", read_model, &model);
  pln_module_release(module);
  free(text.data);
  free(model.data);
  pln_engine_free(engine);
}

/* --------------------------------------------------------------- evaluation */

static pln_status run(void *ud) {
  pln_datum result = {.kind = PLN_DATUM_NONE};
  pln_status status = pln_eval_data(NULL, ud, 0, NULL, 1, &result);
  pln_datum_release(engine, &result);
  return status;
}

static void kernels(void) {
  static const struct {
    const char *what, *text;
  } rows[] = {
      {"a product", "nn.dense(ones(shape=[1500, 1500], dtype=\"float32\"), "
                    "ones(shape=[1500, 1500], dtype=\"float32\"))"},
      {"a convolution",
       "nn.conv2d(ones(shape=[1, 64, 128, 128], dtype=\"float32\"), "
       "ones(shape=[64, 64, 3, 3], dtype=\"float32\"), padding=[1, 1, 1, 1])"},
      {"one operand", "erf(ones(shape=[8000000], dtype=\"float32\"))"},
      {"two operands", "power(ones(shape=[8000000], dtype=\"float32\"), "
                       "ones(shape=[8000000], dtype=\"float32\"))"},
  };
  engine = pln_engine_new(NULL, NULL);
  REQUIRE(engine);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    pln_graph *graph = NULL;
    char text[400];
    int n =
        snprintf(text, sizeof text, "#[version = \"0.0.5\"]\n%s", rows[i].text);
    CHECK_OK(
        pln_parse_expr(engine, (pln_slice){text, (size_t)n}, NULL, &graph));
    if (graph)
      measure(rows[i].what, run, graph);
    pln_graph_release(graph);
  }
  pln_engine_free(engine);
}

static const check_test tests[] = {
    {"texts and models", files_and_texts},
    {"kernels", kernels},
};

CHECK_MAIN(tests)
