/* How soon what works long in C ends when another thread asks for a stop:
 * reading and writing text and models, what looks at whole graphs, kernels of
 * all families.
 *
 * What is measured is the processor's time of the thread that works, from the
 * request to the return, so that a busy machine changes nothing. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

/* Sanitizers make the same work take several times as long. */
#if defined(__SANITIZE_ADDRESS__)
#define SLOWED_DOWN 10
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLOWED_DOWN 10
#endif
#endif
#ifndef SLOWED_DOWN
#define SLOWED_DOWN 1
#endif
enum { MOST_MS = 50 * SLOWED_DOWN, LINES = 60000 };

static pln_engine *engine;
static pthread_t worker;
static atomic_bool requested, ended_early;

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
  double after, requested;
} asking;

static void *ask(void *ud) {
  asking *a = ud;
  double begun = work_seconds();
  while (work_seconds() - begun < a->after && !atomic_load(&ended_early)) {
    struct timespec short_time = {0, 200000};
    nanosleep(&short_time, NULL);
  }
  a->requested = work_seconds();
  pln_engine_interrupt(engine);
  atomic_store(&requested, true);
  return NULL;
}

/* *ms: from the request to the return. Asks for a stop some milliseconds after
 * the work has begun. One that comes as the work ends stops nothing, and is
 * asked for once more. */
static void measure_once(const char *what, pln_status (*work)(void *ud),
                         void *ud, double *ms) {
  enum { MOST_TIMES = 50 };
  asking a = {.after = 0.004};
  pln_status status = PLN_OK;
  double ended = 0;
  worker = pthread_self();
  for (int i = 0; i < MOST_TIMES && status == PLN_OK; i++) {
    pthread_t thread;
    atomic_store(&ended_early, false);
    atomic_store(&requested, false);
    REQUIRE(pthread_create(&thread, NULL, ask, &a) == 0);
    do
      status = work(ud);
    while (status == PLN_OK && !atomic_load(&requested));
    ended = work_seconds();
    atomic_store(&ended_early, status != PLN_OK);
    pthread_join(thread, NULL);
    if (status == PLN_OK && pln_engine_interrupted(engine))
      status = work(ud);
  }
  *ms = 1e3 * (ended - a.requested);
  printf("# %s: %.1f ms\n", what, *ms);
  CHECK_STATUS(status, PLN_ERR_INTERRUPTED);
  pln_diag_clear(engine);
}

/* What takes long each time is too slow; once, a virtual machine may have stood
 * still, which counts as time of the processor. */
static void measure(const char *what, pln_status (*work)(void *ud), void *ud) {
  double ms = MOST_MS;
  for (int i = 0; i < 3 && ms >= MOST_MS; i++)
    measure_once(what, work, ud, &ms);
  CHECK(ms < MOST_MS);
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
      engine, (pln_slice){text->data, text->size}, NULL, NULL, &module);
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
                            NULL, &module));
  REQUIRE(module);
  measure("write an ONNX model", write_model, module);
  CHECK_OK(pln_onnx_write(module, NULL, append, &model));
  measure("read an ONNX model", read_model, &model);
  pln_module_release(module);
  free(text.data);
  free(model.data);
  pln_engine_free(engine);
}

/* ------------------------------------------------------------------- graphs */

enum { NODES = 2000000, OPEN_NODES = 500000 };

/* A function of one chain of n calls; `type` is its parameter's, 0: not known.
 */
static pln_status append_chain(pln_builder *b, int n, pln_type type,
                               pln_ref *root) {
  pln_scope body;
  pln_symbol name;
  pln_ref at = 0;
  pln_op tanh = pln_op_find(engine, (pln_slice){"tanh", 4});
  pln_status status = pln_symbol_intern(engine, (pln_slice){"x", 1}, &name);
  if (status == PLN_OK)
    status = pln_build_open(b, &body);
  if (status == PLN_OK)
    status = pln_build_param(b, name, type, 0, &at);
  for (int i = 0; i < n && status == PLN_OK; i++)
    status = pln_build_call(b, tanh, 0, 0, 1, &at, &at);
  if (status == PLN_OK)
    status = pln_build_end(b, body, at, 0);
  return status == PLN_OK ? pln_build_function(b, body, 0, 0, root) : status;
}

static pln_type float_type(void) {
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(engine, PLN_FLOAT32, 0, NULL, &type));
  return type;
}

static pln_graph *chain(int n, pln_type type) {
  pln_builder *b = NULL;
  pln_graph *graph = NULL;
  pln_ref root = 0;
  CHECK_OK(pln_builder_new(engine, &b));
  if (b && CHECK_OK(append_chain(b, n, type, &root)))
    CHECK_OK(pln_builder_seal(b, root, &graph));
  pln_builder_free(b);
  return graph;
}

typedef struct two_graphs {
  const pln_graph *a, *b;
  pln_ref root;
} two_graphs;

static pln_status verify(void *ud) {
  const two_graphs *two = ud;
  return pln_graph_verify(two->a);
}

static pln_status hash(void *ud) {
  const two_graphs *two = ud;
  uint64_t value;
  return pln_graph_hash(two->a, two->root, false, &value);
}

static pln_status compare(void *ud) {
  const two_graphs *two = ud;
  bool equal;
  return pln_graph_equal(two->a, two->root, two->b, two->root, false, &equal);
}

static pln_status find_difference(void *ud) {
  const two_graphs *two = ud;
  pln_mismatch found;
  return pln_graph_mismatch(two->a, two->root, two->b, two->root, false, false,
                            &found);
}

static pln_status infer(void *ud) {
  const two_graphs *two = ud;
  pln_graph *typed = NULL;
  pln_status status = pln_graph_infer(two->a, NULL, &typed);
  pln_graph_release(typed);
  return status;
}

/* What is freely built is laid out each time it is sealed. */
typedef struct sealing {
  pln_builder *builder;
  pln_ref root;
} sealing;

static pln_status seal(void *ud) {
  const sealing *s = ud;
  pln_graph *graph = NULL;
  pln_status status = pln_builder_seal(s->builder, s->root, &graph);
  pln_graph_release(graph);
  return status;
}

static void measure_sealing(void) {
  sealing s = {NULL, 0};
  pln_op tanh = pln_op_find(engine, (pln_slice){"tanh", 4});
  pln_symbol name;
  CHECK_OK(pln_builder_new(engine, &s.builder));
  REQUIRE(s.builder);
  CHECK_OK(pln_symbol_intern(engine, (pln_slice){"x", 1}, &name));
  CHECK_OK(pln_build_var(s.builder, name, float_type(), 0, &s.root));
  for (int i = 0; i < NODES; i++)
    CHECK_OK(pln_build_call(s.builder, tanh, 0, 0, 1, &s.root, &s.root));
  measure("seal a graph", seal, &s);
  pln_builder_free(s.builder);
}

static void graphs(void) {
  engine = pln_engine_new(NULL, NULL);
  REQUIRE(engine);
  pln_graph *a = chain(NODES, float_type()), *b = chain(NODES, float_type());
  REQUIRE(a && b);
  two_graphs two = {a, b, pln_graph_root(a)};
  measure("verify", verify, &two);
  measure("hash", hash, &two);
  measure("compare", compare, &two);
  measure("find a difference", find_difference, &two);
  pln_graph_release(a);
  pln_graph_release(b);
  pln_graph *open = chain(OPEN_NODES, 0);
  REQUIRE(open);
  measure("infer types", infer, &(two_graphs){.a = open});
  pln_graph_release(open);
  measure_sealing();
  pln_engine_free(engine);
}

/* --------------------------------------------------------------- evaluation */

enum { MOST_OPERANDS = 3, MOST_AXES = 4 };

typedef struct operand {
  pln_dtype dtype; /* PLN_DTYPE_NONE: there is none */
  int64_t dims[MOST_AXES];
} operand;

/* A call on operands %a, %b, %c, which takes long. */
typedef struct kernel_row {
  const char *what, *text;
  operand operands[MOST_OPERANDS];
} kernel_row;

#define F32(...)   \
  {                \
    PLN_FLOAT32, { \
      __VA_ARGS__  \
    }              \
  }
#define OF(D, ...) \
  {                \
    PLN_##D, {     \
      __VA_ARGS__  \
    }              \
  }

static const kernel_row kernel_rows[] = {
    {"a product", "nn.dense(%a, %b)", {F32(1500, 1500), F32(1500, 1500)}},
    {"a product of int32",
     "nn.matmul(%a, %b)",
     {OF(INT32, 800, 800), OF(INT32, 800, 800)}},
    {"a product of int8",
     "matmul_integer(%a, %b)",
     {OF(INT8, 2500, 2500), OF(INT8, 2500, 2500)}},
    {"many products",
     "nn.matmul(%a, %b)",
     {F32(300000, 8, 8), F32(300000, 8, 8)}},
    {"a convolution",
     "nn.conv2d(%a, %b, padding=[1, 1, 1, 1])",
     {F32(2, 64, 128, 128), F32(64, 64, 3, 3)}},
    {"a convolution of points",
     "nn.conv2d(%a, %b)",
     {F32(4, 256, 112, 112), F32(128, 256, 1, 1)}},
    {"a convolution of int8",
     "conv_integer(%a, %b)",
     {OF(INT8, 1, 64, 224, 224), OF(INT8, 64, 64, 3, 3)}},
    {"a deformable convolution",
     "nn.deformable_conv(%a, %b, %c)",
     {F32(2, 32, 128, 128), F32(32, 32, 3, 3), F32(2, 18, 126, 126)}},
    {"a transposed convolution",
     "nn.conv2d_transpose(%a, %b)",
     {F32(1, 64, 112, 112), F32(64, 64, 3, 3)}},
    {"one operand", "erf(%a)", {F32(16000000)}},
    {"one operand of float16", "tanh(%a)", {OF(FLOAT16, 16000000)}},
    {"two operands", "power(%a, %b)", {F32(8000000), F32(8000000)}},
    {"two operands of float16",
     "add(%a, %b)",
     {OF(FLOAT16, 16000000), OF(FLOAT16, 16000000)}},
    {"rows of float16",
     "add(%a, %b)",
     {OF(FLOAT16, 4000000, 8), OF(FLOAT16, 8)}},
    {"a choice", "where(less(%a, %b), %a, %b)", {F32(16000000), F32(1)}},
    {"a sum", "sum(%a)", {F32(64000000)}},
    {"sums of columns", "sum(%a, axis=[0])", {F32(8000, 8000)}},
    {"sums of short rows", "sum(%a, axis=[1])", {F32(8000000, 8)}},
    {"extremes of int8", "max(%a, axis=[1])", {OF(INT8, 8000, 8000)}},
    {"logarithms of sums", "logsumexp(%a, axis=[1])", {F32(4000, 4000)}},
    {"indices of extremes", "argmax(%a, axis=0)", {F32(8000, 8000)}},
    {"softmax", "nn.softmax(%a, axis=1)", {F32(8000, 4000)}},
    {"softmax of columns", "nn.softmax(%a, axis=0)", {F32(8000, 4000)}},
    {"a running sum", "cumsum(%a, axis=0)", {F32(64000000)}},
    {"running sums", "cumsum(%a, axis=0)", {F32(8000, 8000)}},
    {"one sort", "sort(%a, axis=0)", {F32(2000000)}},
    {"sorts", "argsort(%a, axis=1)", {F32(4000, 2000)}},
    {"the greatest", "topk(%a, k=400000, axis=0)", {F32(2000000)}},
    {"a transpose", "transpose(%a, axes=[1, 0])", {F32(8000, 8000)}},
    {"small planes",
     "transpose(%a, axes=[0, 2, 1, 3])",
     {F32(800000, 4, 4, 4)}},
    {"strides",
     "strided_slice(%a, begin=[0, 0], end=[8000, 8000], strides=[1, 2])",
     {F32(8000, 8000)}},
    {"a join", "concatenate((%a, %a), axis=1)", {F32(8000, 4000)}},
    {"repeats", "tile(%a, reps=[2, 3])", {F32(4000, 4000)}},
    {"a pad", "nn.pad(%a, 0f, pad_width=[[1, 1], [1, 1]])", {F32(8000, 8000)}},
    {"elements of indices",
     "take(%a, %b, axis=0)",
     {F32(100, 4), OF(INT32, 16000000)}},
    {"a conversion", "cast(%a, dtype=\"int64\")", {F32(32000000)}},
    {"a conversion to float16", "cast(%a, dtype=\"float16\")", {F32(32000000)}},
    {"places", "nonzero(%a)", {F32(16000000)}},
    {"greatest of windows",
     "nn.max_pool2d(%a, pool_size=[3, 3])",
     {F32(4, 64, 224, 224)}},
    {"means of windows of float16",
     "nn.avg_pool2d(%a, pool_size=[3, 3])",
     {OF(FLOAT16, 4, 64, 224, 224)}},
    {"an image, linear",
     "image.resize2d(%a, size=[1000, 1000])",
     {F32(1, 64, 224, 224)}},
    {"an image, nearest",
     "image.resize2d(%a, size=[1000, 1000], method=\"nearest_neighbor\")",
     {F32(1, 64, 224, 224)}},
    {"norms of rows",
     "nn.layer_norm(%a, %b, %c)",
     {F32(32000, 1000), F32(1000), F32(1000)}},
    {"norms of channels",
     "nn.instance_norm(%a, %b, %c)",
     {F32(8, 64, 224, 224), F32(64), F32(64)}},
    {"neighbouring channels", "nn.lrn(%a)", {F32(4, 64, 224, 224)}},
    {"quantised", "quantize_linear(%a, 0.1f, 0i8)", {F32(32000000)}},
    {"lstm",
     "lstm(%a, %b, %c, hidden_size=256)",
     {F32(200, 16, 256), F32(1, 1024, 256), F32(1, 1024, 256)}},
    {"gru",
     "gru(%a, %b, %c, hidden_size=256)",
     {F32(200, 16, 256), F32(1, 768, 256), F32(1, 768, 256)}},
    {"rnn",
     "rnn(%a, %b, %c, hidden_size=256)",
     {F32(600, 16, 256), F32(1, 256, 256), F32(1, 256, 256)}},
    {"attention", "attention(%a, %a, %a)", {F32(1, 8, 2000, 64)}},
    {"a determinant", "det(%a)", {F32(1000, 1000)}},
    {"random numbers", "random_normal(shape=[10000000])", {{0}}},
    {"a range", "arange(0f, 32000000f, 1f, dtype=\"float32\")", {{0}}},
    {"a transform", "dft(%a, relay=0)", {F32(1, 8388608, 1)}},
    {"a transform of a prime length", "dft(%a, relay=0)", {F32(1, 3000017, 1)}},
    {"a transform of thirds", "dft(%a, relay=0)", {F32(1, 4782969, 1)}},
    {"a transform backwards",
     "dft(%a, inverse=1, relay=0)",
     {F32(1, 8388608, 2)}},
    {"a plain join", "concatenate((%a, %a), axis=0)", {F32(64000000)}},
    {"plain parts",
     "split(%a, indices_or_sections=2, axis=0)",
     {F32(96000000)}},
    {"a plain part",
     "strided_slice(%a, begin=[1], end=[95000000])",
     {F32(96000000)}},
    {"a transpose of long rows",
     "transpose(%a, axes=[1, 0, 2])",
     {F32(2, 2, 24000000)}},
    {"a plain repeat", "tile(%a, reps=[2])", {F32(64000000)}},
    {"a long row of indices",
     "take(%a, %b, axis=0)",
     {F32(2, 48000000), OF(INT32, 2)}},
    {"one number repeated", "broadcast_to(%a, shape=[96000000])", {F32(1)}},
    {"a row repeated",
     "broadcast_to(%a, shape=[2, 48000000])",
     {F32(48000000)}},
    {"zeros", "zeros(shape=[96000000], dtype=\"float32\")", {{0}}},
    {"a plain pad", "nn.pad(%a, 0f, pad_width=[[1, 1]])", {F32(96000000)}},
    {"an update",
     "scatter_elements(%a, %b, %c, axis=0)",
     {F32(96000000), OF(INT32, 1), F32(1)}},
    {"parts of strings",
     "string_split(%a, delimiter=\"a\")",
     {OF(STRING, 1000000)}},
    {"parts of one string", "string_split(%a)", {OF(STRING, 1)}},
    {"joined strings", "string_concat(%a, %a)", {OF(STRING, 2000000)}},
    {"a reshape", "reshape(%a, newshape=[2, 48000000])", {F32(96000000)}},
    {"a product of 4096",
     "nn.dense(%a, %b)",
     {F32(4096, 4096), F32(4096, 4096)}},
    {"a product of long rows",
     "nn.dense(%a, %b)",
     {F32(512, 60000), F32(512, 60000)}},
    {"a product of few rows",
     "nn.dense(%a, %b)",
     {F32(400, 4096), F32(16000, 4096)}},
    {"a product of two rows",
     "nn.matmul(%a, %b)",
     {F32(2, 100000), F32(100000, 2000)}},
    {"a product with a column",
     "nn.dense(%a, %b)",
     {F32(100000, 2000), F32(1, 2000)}},
    {"a product of two long rows",
     "nn.dense(%a, %b)",
     {F32(8, 1000), F32(200000, 1000)}},
    {"a product of very long rows",
     "nn.dense(%a, %b)",
     {F32(40, 2000000), F32(40, 2000000)}},
};

static uint32_t rank_of(const operand *o) {
  uint32_t n = 0;
  while (n < MOST_AXES && o->dims[n])
    n++;
  return n;
}

/* "%a: Tensor[(2, 3), float32]" */
static int put_param(const operand *o, char name, char *to, size_t size) {
  size_t n = (size_t)snprintf(to, size, "%s%%%c: Tensor[(",
                              name == 'a' ? "" : ", ", name);
  for (uint32_t i = 0; i < rank_of(o); i++)
    n += (size_t)snprintf(to + n, size - n, "%s%lld", i ? ", " : "",
                          (long long)o->dims[i]);
  n += (size_t)snprintf(to + n, size - n, "), %s]", pln_dtype_name(o->dtype));
  return (int)n;
}

/* Short texts, or a long one. */
static pln_tensor *texts(const operand *o) {
  static const char part[] = "a bc def ";
  enum { LONGEST = 16000000 };
  pln_tensor *t = NULL;
  size_t n = (size_t)o->dims[0], size = n == 1 ? LONGEST : sizeof part - 1;
  char *text = malloc(LONGEST);
  pln_slice *all = malloc(n * sizeof *all);
  for (size_t i = 0; i < LONGEST; i++)
    text[i] = part[i % (sizeof part - 1)];
  for (size_t i = 0; i < n; i++)
    all[i] = (pln_slice){text, size};
  CHECK_OK(pln_tensor_from_bytes(engine, PLN_STRING, 1, o->dims, all,
                                 n * sizeof *all, &t));
  free(all);
  free(text);
  return t;
}

/* Small numbers of the dtype, of no order. */
static pln_tensor *numbers(const operand *o) {
  pln_tensor *t = NULL;
  if (o->dtype == PLN_STRING)
    return texts(o);
  CHECK_OK(pln_tensor_new(engine, o->dtype, rank_of(o), o->dims, &t));
  if (!t)
    return NULL;
  size_t count = pln_tensor_count(t);
  uint32_t random = 1;
  void *to = pln_tensor_writable(t);
  for (size_t i = 0; i < count; i++) {
    random = random * 1664525u + 1013904223u;
    uint32_t small = random >> 26;
    if (o->dtype == PLN_FLOAT32)
      ((float *)to)[i] = (float)(random >> 8) / 16777216.0f;
    else if (o->dtype == PLN_INT32)
      ((int32_t *)to)[i] = (int32_t)small;
    else if (o->dtype == PLN_FLOAT16)
      ((uint16_t *)to)[i] = (uint16_t)(0x3c00 + small);
    else
      ((int8_t *)to)[i] = (int8_t)small;
  }
  return t;
}

typedef struct running {
  pln_graph *graph;
  pln_runtime_value args[MOST_OPERANDS];
  uint32_t n;
} running;

static pln_status run(void *ud) {
  const running *r = ud;
  pln_runtime_value result = {.kind = PLN_RUNTIME_NONE};
  pln_status status = pln_eval_run(NULL, r->graph, r->n, r->args, 1, &result);
  pln_runtime_value_release(engine, &result);
  return status;
}

static void measure_kernel(const kernel_row *row) {
  char text[600];
  running r = {.n = 0};
  size_t n =
      (size_t)snprintf(text, sizeof text, "#[version = \"0.0.5\"]\nfn (");
  for (; r.n < MOST_OPERANDS && row->operands[r.n].dtype; r.n++) {
    const operand *o = &row->operands[r.n];
    n += (size_t)put_param(o, (char)('a' + r.n), text + n, sizeof text - n);
    r.args[r.n] = (pln_runtime_value){.kind = PLN_RUNTIME_TENSOR,
                                      .of.tensor = numbers(o)};
  }
  n += (size_t)snprintf(text + n, sizeof text - n, ") { %s }", row->text);
  CHECK_OK(pln_parse_expr(engine, (pln_slice){text, n}, NULL, NULL, &r.graph));
  print_diags(engine);
  if (r.graph)
    measure(row->what, run, &r);
  pln_graph_release(r.graph);
  for (uint32_t i = 0; i < r.n; i++)
    pln_tensor_release(r.args[i].of.tensor);
}

static void kernels(void) {
  engine = pln_engine_new(NULL, NULL);
  REQUIRE(engine);
  for (size_t i = 0; i < sizeof kernel_rows / sizeof *kernel_rows; i++)
    measure_kernel(&kernel_rows[i]);
  pln_engine_free(engine);
}

/* A library does not look whether to stop: it gets parts. */
static void library(void) {
  static const kernel_row products[] = {
      {"a product by OpenBLAS",
       "nn.dense(%a, %b)",
       {F32(4096, 4096), F32(4096, 4096)}},
      {"one of long rows",
       "nn.dense(%a, %b)",
       {F32(40, 2000000), F32(40, 2000000)}},
      {"one of few rows",
       "nn.dense(%a, %b)",
       {F32(100, 4096), F32(16000, 4096)}},
  };
  engine = pln_engine_new(NULL, NULL);
  REQUIRE(engine);
  bool there = pln_blas_set_choice(engine, PLN_BLAS_OPENBLAS) == PLN_OK;
  pln_diag_clear(engine);
  for (size_t i = 0; there && i < sizeof products / sizeof *products; i++)
    measure_kernel(&products[i]);
  pln_engine_free(engine);
}

static const check_test tests[] = {
    {"texts and models", files_and_texts},
    {"graphs", graphs},
    {"kernels", kernels},
    {"products by a library", library},
};

CHECK_MAIN(tests)
