/* equal.c: what comparing, hashing and verifying cost a node; and sealing a
 * function of three nodes in a builder that holds a million. */

#include "bench.h"

enum { NODES = 1000000, FUNCTIONS = 10000 };

static pln_ref vector(pln_engine *e, pln_builder *b) {
  const int64_t dims[1] = {16};
  pln_type type;
  pln_ref x;
  must(e, pln_type_tensor(e, PLN_FLOAT32, 1, dims, &type));
  must(e, pln_build_var(b, 0, type, 0, &x));
  return x;
}

/* A chain of sums of x. */
static pln_ref chain(pln_engine *e, pln_builder *b, pln_ref x, uint32_t n) {
  pln_op add = pln_op_find(e, pln_text("add"));
  pln_ref node = x;
  for (uint32_t i = 0; i < n; i++)
    must(e, pln_build_call(b, add, 0, 0, 2, (pln_ref[]){node, x}, &node));
  return node;
}

static pln_graph *sealed(pln_engine *e) {
  pln_builder *b;
  pln_graph *g;
  must(e, pln_builder_new(e, &b));
  pln_ref x = vector(e, b), f;
  must(e, pln_build_bind(b, 1, &x, chain(e, b, x, NODES), 0, 0, &f));
  must(e, pln_builder_seal(b, f, &g));
  pln_builder_free(b);
  return g;
}

static void compare(pln_engine *e, const pln_graph *g, const pln_graph *h) {
  bool same = false;
  must(e, pln_graph_equal(g, pln_graph_root(g), h, pln_graph_root(h), false,
                          &same));
  if (!same)
    fputs("bench: equal graphs differ\n", stderr);
}

static void hash(pln_engine *e, const pln_graph *g, const pln_graph *h) {
  uint64_t value;
  (void)h;
  must(e, pln_graph_hash(g, pln_graph_root(g), false, &value));
}

static void verify(pln_engine *e, const pln_graph *g, const pln_graph *h) {
  (void)h;
  must(e, pln_graph_verify(g));
}

static void well_formed(pln_engine *e, const pln_graph *g, const pln_graph *h) {
  (void)h;
  must(e, pln_graph_well_formed(g));
}

/* The best of five, after one that warms up. */
static void show(pln_engine *e, const char *what, const char *wanted,
                 void (*body)(pln_engine *, const pln_graph *,
                              const pln_graph *),
                 const pln_graph *g, const pln_graph *h) {
  double best = 1e9;
  for (int round = 0; round < 6; round++) {
    double start = now();
    body(e, g, h);
    double seconds = now() - start;
    if (round > 0 && seconds < best)
      best = seconds;
  }
  printf("%-34s %8.1f ns  (wanted: %s)\n", what, best / NODES * 1e9, wanted);
}

static void seal_small(pln_engine *e) {
  pln_builder *b;
  must(e, pln_builder_new(e, &b));
  chain(e, b, vector(e, b), NODES);
  double start = 0;
  for (int i = 0; i <= FUNCTIONS; i++) {
    pln_graph *g;
    pln_ref x = vector(e, b), f;
    if (i == 1) /* the first one makes the builder's tables */
      start = now();
    must(e, pln_build_bind(b, 1, &x, chain(e, b, x, 1), 0, 0, &f));
    must(e, pln_builder_seal(b, f, &g));
    pln_graph_release(g);
  }
  printf("%-34s %8.1f us  (wanted: 5 us)\n",
         "a function sealed beside 1M nodes",
         (now() - start) / FUNCTIONS * 1e6);
  pln_builder_free(b);
}

int main(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  if (!e)
    return 1;
  pln_graph *g = sealed(e), *h = sealed(e);
  show(e, "a node compared with its equal", "30 ns", compare, g, h);
  show(e, "... hashed", "30 ns", hash, g, h);
  show(e, "... verified", "10 ns", verify, g, h);
  show(e, "... seen to be well-formed", "-", well_formed, g, h);
  seal_small(e);
  pln_graph_release(g);
  pln_graph_release(h);
  pln_engine_free(e);
  return 0;
}
