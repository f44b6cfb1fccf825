/* write.c: the public functions of the C writer: a source from several
 * PrimFuncs.
 *
 * Called by hosts, and by lua/codegen. The same functions and options give the
 * same bytes. */

#include "codegen/writer.h"

static pln_status name_functions(pln_cw *w, uint32_t n,
                                 const pln_symbol *names) {
  pln_c_code *code = w->code;
  for (uint32_t i = 0; i < n; i++) {
    const char *name = pln_c_unit_name(w, pln_symbol_text(w->engine, names[i]));
    PLN_TRY(w->status);
    code->functions[i].name = names[i];
    PLN_TRY(pln_symbol_intern(w->engine, pln_text(name),
                              &code->functions[i].c_name));
    PLN_TRY(pln_idmap_set(w->function_names, code->functions[i].c_name, i + 1));
  }
  return PLN_OK;
}

static pln_status new_params(pln_cw *w, const pln_graph *graph,
                             pln_c_function *fn) {
  if (graph->nodes[graph->root].kind != PLN_PRIM_FUNC)
    return pln_diag_error(w->engine, PLN_ERR_ARGUMENT, NULL,
                          "'%s' is no PrimFunc",
                          pln_symbol_text(w->engine, fn->name).data);
  fn->n_params = graph->scopes[graph->nodes[graph->root].data].n_params;
  fn->params =
      pln_mem_zeroed(w->engine, (fn->n_params + 1) * sizeof *fn->params);
  return fn->params ? PLN_OK : pln_nomem(w->engine);
}

/* Prototypes, from the header, in place of the functions so far. */
static pln_status declare_functions(pln_cw *w, size_t begin) {
  const pln_buffer *header = &w->code->header;
  w->functions.size = 0;
  return pln_buffer_add(&w->functions, header->data + begin,
                        header->size - begin);
}

static pln_status write_functions(pln_cw *w, uint32_t n,
                                  const pln_graph *const *graphs) {
  size_t begin = w->code->header.size;
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0 && i == w->options->n_declared)
      PLN_TRY(declare_functions(w, begin));
    pln_c_function *fn = &w->code->functions[i];
    PLN_TRY(new_params(w, graphs[i], fn));
    w->g = graphs[i];
    w->fn = fn;
    pln_c_function_write(w);
    PLN_TRY(w->status);
  }
  return PLN_OK;
}

static pln_status write_unit(pln_cw *w, uint32_t n,
                             const pln_graph *const *graphs,
                             const pln_symbol *names) {
  pln_c_code *code = w->code;
  PLN_TRY(pln_idmap_new(w->engine, &w->externs));
  PLN_TRY(pln_idmap_new(w->engine, &w->unit_names));
  PLN_TRY(pln_idmap_new(w->engine, &w->function_names));
  code->functions =
      pln_mem_zeroed(w->engine, (n + 1) * sizeof *code->functions);
  if (!code->functions)
    return pln_nomem(w->engine);
  code->n_functions = n;
  w->callees = pln_mem_zeroed(w->engine, (n + 1) * sizeof *w->callees);
  if (!w->callees)
    return pln_nomem(w->engine);
  PLN_TRY(name_functions(w, n, names));
  pln_c_header_begin(w);
  PLN_TRY(write_functions(w, n, graphs));
  pln_c_header_end(w);
  pln_c_prelude(w, &code->source);
  PLN_TRY(w->status);
  if (w->declarations.size)
    PLN_TRY(pln_buffer_add(&code->source, w->declarations.data,
                           w->declarations.size));
  code->threads = w->uses_pool;
  PLN_TRY(pln_buffer_add(&code->source, w->functions.data, w->functions.size));
  const char *text = w->options->text;
  return text ? pln_buffer_text(&code->source, text) : PLN_OK;
}

static void init_writer(pln_cw *w) {
  pln_arena_init(&w->arena, w->engine);
  pln_buffer_init(&w->functions, w->engine);
  pln_buffer_init(&w->declarations, w->engine);
  pln_buffer_init(&w->body, w->engine);
  pln_buffer_init(&w->sizes, w->engine);
  pln_buffer_init(&w->callee_sizes, w->engine);
  pln_buffer_init(&w->dims, w->engine);
  pln_buffer_init(&w->region.body, w->engine);
}

static void free_writer(pln_cw *w) {
  pln_engine *e = w->engine;
  pln_arena_free(&w->arena);
  pln_buffer_free(&w->functions);
  pln_buffer_free(&w->declarations);
  pln_buffer_free(&w->body);
  pln_buffer_free(&w->sizes);
  pln_buffer_free(&w->callee_sizes);
  pln_buffer_free(&w->dims);
  pln_buffer_free(&w->region.body);
  pln_mem_free(e, w->callees,
               w->callees ? (w->code->n_functions + 1) * sizeof *w->callees
                          : 0);
  pln_mem_free(e, w->tasks, w->cap_tasks * sizeof *w->tasks);
  pln_mem_free(e, w->values, w->cap_values * sizeof *w->values);
  pln_mem_free(e, w->log, w->cap_log * sizeof *w->log);
  pln_mem_free(e, w->memories, w->cap_memories * sizeof *w->memories);
  if (w->externs)
    pln_idmap_free(w->externs);
  pln_idmap_free(w->unit_names);
  pln_idmap_free(w->function_names);
}

static pln_status check_options(pln_engine *engine, uint32_t n,
                                const pln_c_options *options) {
  uint32_t bytes = options->vector_bytes;
  if (options->n_declared > 0 && options->n_declared >= n)
    return pln_diag_error(
        engine, PLN_ERR_ARGUMENT, NULL,
        "%u of %u functions are declared only: fewer expected",
        options->n_declared, n);
  if (options->threads > 64)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "%u threads: 64 at the most", options->threads);
  if (bytes == 0 || bytes == 16 || bytes == 32 || bytes == 64)
    return PLN_OK;
  return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                        "vectors of %u bytes: 16, 32 or 64 expected", bytes);
}

static pln_status new_code(pln_engine *engine, pln_c_code **out) {
  pln_c_code *code = pln_mem_zeroed(engine, sizeof *code);
  if (!code)
    return pln_nomem(engine);
  code->engine = engine;
  pln_buffer_init(&code->source, engine);
  pln_buffer_init(&code->header, engine);
  *out = code;
  return PLN_OK;
}

pln_status pln_c_write(pln_engine *engine, uint32_t n,
                       const pln_graph *const *functions,
                       const pln_symbol *names, const pln_c_options *options,
                       pln_c_code **out) {
  static const pln_c_options none = {0};
  pln_c_code *code = NULL;
  *out = NULL;
  PLN_TRY(check_options(engine, n, options ? options : &none));
  PLN_TRY(new_code(engine, &code));
  pln_cw *w = pln_mem_zeroed(engine, sizeof *w);
  if (!w) {
    pln_c_code_free(code);
    return pln_nomem(engine);
  }
  w->engine = engine;
  w->options = options ? options : &none;
  w->code = code;
  init_writer(w);
  pln_stoppable_begin(engine);
  pln_status status = write_unit(w, n, functions, names);
  pln_stoppable_end(engine);
  free_writer(w);
  pln_mem_free(engine, w, sizeof *w);
  if (status == PLN_OK)
    *out = code;
  else
    pln_c_code_free(code);
  return status;
}

void pln_c_code_free(pln_c_code *code) {
  if (!code)
    return;
  pln_engine *e = code->engine;
  for (uint32_t i = 0; i < code->n_functions; i++) {
    pln_c_function *fn = &code->functions[i];
    pln_mem_free(e, fn->params,
                 fn->params ? (fn->n_params + 1) * sizeof *fn->params : 0);
    pln_mem_free(e, fn->asserts, fn->n_asserts * sizeof *fn->asserts);
  }
  pln_mem_free(
      e, code->functions,
      code->functions ? (code->n_functions + 1) * sizeof *code->functions : 0);
  pln_buffer_free(&code->source);
  pln_buffer_free(&code->header);
  pln_mem_free(e, code, sizeof *code);
}

pln_slice pln_c_code_source(const pln_c_code *code) {
  return (pln_slice){code->source.data, code->source.size};
}

pln_slice pln_c_code_header(const pln_c_code *code) {
  return (pln_slice){code->header.data, code->header.size};
}

uint32_t pln_c_code_n_functions(const pln_c_code *code) {
  return code->n_functions;
}

const pln_c_function *pln_c_code_function(const pln_c_code *code, uint32_t i) {
  return &code->functions[i];
}

bool pln_c_code_uses_threads(const pln_c_code *code) {
  return code->threads;
}

uint32_t pln_c_native_vector_bytes(void) {
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f"))
    return 64;
  if (__builtin_cpu_supports("avx2"))
    return 32;
#endif
  return 16;
}

uint32_t pln_c_vector_registers(uint32_t bytes) {
  return bytes >= 64 ? 32 : 16;
}
