/* core.c: what the engine costs a node, measured through its public header: an
 * identity rewrite, folding a 16x16 operation, an empty pass. */

#include "bench.h"

static pln_type square(pln_engine *e) {
  pln_dim dims[2] = {16, 16};
  pln_type type;
  must(e, pln_type_tensor(e, PLN_FLOAT32, 2, dims, &type));
  return type;
}

static pln_ref constant(pln_engine *e, pln_builder *b) {
  const int64_t dims[2] = {16, 16};
  pln_tensor *tensor;
  must(e, pln_tensor_new(e, PLN_FLOAT32, 2, dims, &tensor));
  float *x = pln_tensor_writable(tensor);
  for (int i = 0; i < 256; i++)
    x[i] = (float)i / 256;
  pln_ref node;
  must(e, pln_build_constant(b, tensor, &node));
  pln_tensor_release(tensor);
  return node;
}

/* A function of n additions, one on the other; of constants when `closed`. */
static pln_module *chain(pln_engine *e, uint32_t n, bool closed) {
  pln_builder *b;
  pln_scope body;
  pln_ref x, node;
  must(e, pln_builder_new(e, &b));
  must(e, pln_build_open(b, &body));
  must(e, pln_build_param(b, 0, square(e), 0, &x));
  pln_ref c = constant(e, b);
  pln_op add = pln_op_find(e, pln_text("add"));
  node = closed ? c : x;
  for (uint32_t i = 0; i < n; i++) {
    pln_ref args[2] = {node, c};
    must(e, pln_build_call(b, add, 0, 0, 2, args, &node));
  }
  must(e, pln_build_end(b, body, node, 0));
  must(e, pln_build_function(b, body, 0, 0, &node));
  pln_graph *graph;
  must(e, pln_builder_seal(b, node, &graph));
  pln_builder_free(b);
  pln_module *empty, *module;
  pln_symbol name;
  must(e, pln_symbol_intern(e, pln_text("main"), &name));
  must(e, pln_module_new(e, &empty));
  must(e, pln_module_with(empty, name, graph, &module));
  pln_module_release(empty);
  pln_graph_release(graph);
  return module;
}

static pln_status leave(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  (void)ud, (void)rw, (void)old, (void)node;
  return PLN_OK;
}

static pln_status share(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  (void)ud, (void)old;
  return pln_rewrite_number_value(rw, *node, node);
}

static double rewrite(pln_engine *e, pln_module *module, const pln_mutator *m) {
  pln_graph *graph = pln_module_function_at(module, 0), *out;
  double start = now();
  must(e, pln_graph_rewrite(graph, m, &out));
  double seconds = now() - start;
  if (out != graph)
    fputs("bench: an identity rewrite made a new graph\n", stderr);
  pln_graph_release(out);
  return seconds;
}

static pln_status count(void *ud, const pln_graph *graph, pln_ref node) {
  (void)graph, (void)node;
  ++*(uint32_t *)ud;
  return PLN_OK;
}

static double walk(pln_engine *e, pln_module *module) {
  pln_graph *graph = pln_module_function_at(module, 0);
  uint32_t n = 0;
  double start = now();
  must(e, pln_walk_post_order(graph, pln_graph_root(graph), count, &n));
  double seconds = now() - start;
  if (n != pln_graph_size(graph))
    fputs("bench: a walk missed nodes\n", stderr);
  return seconds;
}

static double fold(pln_engine *e, pln_module *module) {
  pln_pass *pass;
  pln_module *out;
  must(e, pln_pass_make(e, "FoldConstant", 0, &pass));
  double start = now();
  must(e, pln_pass_apply(pass, module, &out));
  double seconds = now() - start;
  pln_module_release(out);
  pln_pass_release(pass);
  return seconds;
}

static pln_status nothing(pln_pass_run *run) {
  (void)run;
  return PLN_OK;
}

static double empty_passes(pln_engine *e, pln_module *module, uint32_t n) {
  pln_pass_spec spec = {
      .name = "Nothing", .kind = PLN_PASS_MODULE, .doc = "", .run = nothing};
  pln_pass *pass, *sequential, *passes[1000];
  must(e, pln_pass_new(e, &spec, &pass));
  for (uint32_t i = 0; i < n; i++)
    passes[i] = pass;
  must(e, pln_sequential_new(e, "all", 0, 0, NULL, n, passes, &sequential));
  pln_module *out;
  double start = now();
  must(e, pln_pass_apply(sequential, module, &out));
  double seconds = now() - start;
  pln_module_release(out);
  pln_pass_release(sequential);
  pln_pass_release(pass);
  return seconds;
}

/* The best of five, after one that warms up. */
#define BEST(expr)                            \
  do {                                        \
    best = 1e9;                               \
    for (int round = 0; round < 6; round++) { \
      double seconds = (expr);                \
      if (round > 0 && seconds < best)        \
        best = seconds;                       \
    }                                         \
  } while (0)

static void show(const char *what, double seconds, uint32_t n,
                 const char *wanted) {
  printf("%-34s %8.1f ns  (wanted: %s)\n", what, seconds / n * 1e9, wanted);
}

int main(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  if (!e)
    return 1;
  const uint32_t n = 1000000, small = 16000;
  const pln_mutator identity = {.visit = leave}, sharing = {.visit = share};
  double best;
  pln_module *module = chain(e, n, false);
  BEST(walk(e, module));
  show("a node walked in post-order", best, n, "10 ns");
  BEST(rewrite(e, module, &identity));
  show("a node through an identity rewrite", best, n, "50 ns");
  BEST(rewrite(e, module, &sharing));
  show("... with hash-consing", best, n, "-");
  pln_module *closed = chain(e, small, true);
  BEST(fold(e, closed));
  show("a 16x16 operation folded", best, small, "2 us");
  BEST(empty_passes(e, module, 1000));
  show("an empty pass in a sequential", best, 1000, "0.3 us");
  pln_module_release(closed);
  pln_module_release(module);
  pln_engine_free(e);
  return 0;
}
