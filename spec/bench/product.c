/* product.c: runs a model of one output on float32 inputs, for product.py.
 *
 *     product MODEL INPUTS OUTPUT SECONDS BLAS
 *
 * INPUTS holds the elements of all inputs one after another, OUTPUT gets those
 * of the output. Prints the shortest time of a run in milliseconds. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "bench.h"

enum { MOST_INPUTS = 16 };

static FILE *must_open(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  if (file)
    return file;
  perror(path);
  exit(1);
}

static pln_tensor *read_input(pln_engine *e, pln_type type, FILE *from) {
  pln_tensor *t;
  must(e, pln_tensor_new(e, PLN_FLOAT32, (uint32_t)pln_type_rank(e, type),
                         pln_type_dims(e, type), &t));
  if (fread(pln_tensor_writable(t), 4, pln_tensor_count(t), from) !=
      pln_tensor_count(t)) {
    fputs("bench: too few inputs\n", stderr);
    exit(1);
  }
  return t;
}

static void write_output(pln_engine *e, const pln_tensor *t, const char *path) {
  const void *data;
  FILE *to = must_open(path, "wb");
  must(e, pln_tensor_data(t, &data));
  fwrite(data, 4, pln_tensor_count(t), to);
  fclose(to);
}

static double shortest(pln_engine *e, const pln_module *mod,
                       const pln_graph *graph, uint32_t n,
                       const pln_tensor *const *inputs, const char *path,
                       double seconds) {
  double best = 1e30, end = now() + seconds;
  for (bool first = true; first || now() < end; first = false) {
    pln_tensor *out;
    double start = now();
    must(e, pln_eval_tensors(mod, graph, n, inputs, 1, &out));
    double took = (now() - start) * 1e3;
    best = took < best ? took : best;
    if (first)
      write_output(e, out, path);
    pln_tensor_release(out);
  }
  return best;
}

/* Memory that a run gives back stays with the process, as it does within a
 * model and with the peer: kernels are measured here, not pages. */
static void keep_memory(void) {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
#endif
}

int main(int argc, char **argv) {
  keep_memory();
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *mod;
  pln_symbol name;
  pln_blas_choice blas;
  pln_tensor *inputs[MOST_INPUTS];
  if (!e || argc != 6)
    return 2;
  must(e, pln_blas_find(e, pln_text(argv[5]), &blas));
  must(e, pln_blas_set_choice(e, blas));
  must(e, pln_onnx_load(e, argv[1], &mod));
  must(e, pln_symbol_intern(e, pln_text("main"), &name));
  const pln_graph *g = pln_module_function_at(mod, pln_module_find(mod, name));
  pln_scope body = pln_node_scope(g, pln_graph_root(g), 0);
  FILE *from = must_open(argv[2], "rb");
  uint32_t n = 0;
  for (; n < pln_scope_n_params(g, body) && n < MOST_INPUTS; n++)
    inputs[n] =
        read_input(e, pln_node_type(g, pln_scope_begin(g, body) + n), from);
  fclose(from);
  printf("%.4f\n", shortest(e, mod, g, n, (const pln_tensor *const *)inputs,
                            argv[3], atof(argv[4])));
  while (n > 0)
    pln_tensor_release(inputs[--n]);
  pln_module_release(mod);
  pln_engine_free(e);
  return 0;
}
