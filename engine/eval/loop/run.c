/* run.c: loop programs for callers: made of a PrimFunc, run on tensors.
 *
 * The public functions are in run.h. A program is immutable once made; a run
 * has its own cells and memory, so that one program serves many runs. */

#include <stdio.h>

#include "eval/loop/number.h"
#include "eval/loop/program.h"

void pln_loop_program_free(pln_loop_program *p) {
  if (!p)
    return;
  pln_engine *e = p->engine;
  pln_mem_free(e, p->code, p->cap_code * sizeof *p->code);
  pln_mem_free(e, p->code_node, p->cap_code_node * sizeof *p->code_node);
  pln_mem_free(e, p->code_stmt, p->cap_code_stmt * sizeof *p->code_stmt);
  pln_mem_free(e, p->constants, p->cap_constants * sizeof *p->constants);
  pln_mem_free(e, p->params, p->cap_params * sizeof *p->params);
  pln_mem_free(e, p->storage_const, p->cap_storages * sizeof *p->storage_const);
  pln_mem_free(e, p->calls, p->cap_calls * sizeof *p->calls);
  pln_mem_free(e, p->call_dtypes, p->cap_call_dtypes * sizeof *p->call_dtypes);
  pln_graph_release(p->graph);
  pln_mem_free(e, p, sizeof *p);
}

static pln_status check_function(const pln_graph *function) {
  if (function->sealed && function->nodes[function->root].kind == PLN_PRIM_FUNC)
    return PLN_OK;
  return pln_diag_error(function->engine, PLN_ERR_ARGUMENT, NULL,
                        "a PrimFunc is expected");
}

pln_status pln_loop_program_new(const pln_graph *function,
                                const pln_loop_options *options,
                                pln_loop_program **out) {
  static const pln_loop_options none = {0};
  pln_engine *e = function->engine;
  *out = NULL;
  PLN_TRY(check_function(function));
  pln_loop_program *p = pln_mem_zeroed(e, sizeof *p);
  if (!p)
    return pln_nomem(e);
  p->engine = e;
  p->graph = pln_graph_retain(function);
  pln_stoppable_begin(e);
  pln_status status = pln_loop_translate(p, options ? options : &none);
  pln_stoppable_end(e);
  if (status == PLN_OK)
    *out = p;
  else
    pln_loop_program_free(p);
  return status;
}

uint32_t pln_loop_n_params(const pln_loop_program *program) {
  return program->n_params;
}

uint32_t pln_loop_n_results(const pln_loop_program *program) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < program->n_params; i++)
    n += program->params[i].is_buffer;
  return n;
}

pln_dtype pln_loop_param_dtype(const pln_loop_program *program,
                               uint32_t param) {
  return program->params[param].dtype;
}

/* --------------------------------------------------------------- arguments */

static pln_status wrong_argument(const pln_loop_run *run, uint32_t i,
                                 const char *wanted, const char *got) {
  const pln_loop_param *p = &run->program->params[i];
  return pln_diag_error(run->engine, PLN_ERR_TYPE, NULL,
                        "argument %u ('%s'): %s expected, got %s", i + 1,
                        pln_symbol_text(run->engine, p->name).data, wanted,
                        got);
}

static pln_status set_scalar(pln_loop_run *run, uint32_t i,
                             const pln_tensor *tensor) {
  const pln_loop_param *p = &run->program->params[i];
  const void *data;
  uint64_t bits = 0;
  if (tensor->count != 1)
    return wrong_argument(run, i, "a scalar", "a tensor");
  if (pln_dtype_bits(p->dtype) > 64)
    return wrong_argument(run, i, "a number of 64 bits or less",
                          pln_dtype_name(p->dtype));
  PLN_TRY(pln_tensor_data(tensor, &data));
  memcpy(&bits, data, (pln_dtype_bits(p->dtype) + 7) / 8);
  run->cells[p->cell].i = pln_loop_unpack(p->dtype, bits);
  return PLN_OK;
}

/* Dims, and the strides of a dense tensor. A vector element is one more
 * dimension of the tensor. */
static void set_dims(pln_loop_run *run, const pln_loop_param *p,
                     const pln_tensor *tensor) {
  int64_t stride = 1;
  for (int32_t d = p->rank; d-- > 0;) {
    run->cells[p->dims + d].i = tensor->dims[d];
    run->cells[p->dims + p->rank + d].i = stride;
    stride = (int64_t)((uint64_t)stride * (uint64_t)tensor->dims[d]);
  }
}

static pln_status set_tensor_argument(pln_loop_run *run, uint32_t i,
                                      const pln_tensor *tensor) {
  const pln_loop_param *p = &run->program->params[i];
  uint32_t rank = (uint32_t)p->rank + (p->lanes > 1);
  char wanted[48], got[48];
  snprintf(wanted, sizeof wanted, "a tensor of rank %u", rank);
  snprintf(got, sizeof got, "rank %u", tensor->rank);
  if (p->rank >= 0 && tensor->rank != rank)
    return wrong_argument(run, i, wanted, got);
  if (p->lanes > 1 && p->rank >= 0 &&
      tensor->dims[tensor->rank - 1] != (int64_t)p->lanes)
    return wrong_argument(run, i, "a last dimension of the lanes", "another");
  set_dims(run, p, tensor);
  return pln_loop_bind_tensor(run, p->storage, tensor);
}

static pln_status set_argument(pln_loop_run *run, uint32_t i,
                               const pln_tensor *tensor) {
  const pln_loop_param *p = &run->program->params[i];
  if (!tensor)
    return wrong_argument(run, i, "a tensor", "nothing");
  if (tensor->dtype != p->dtype)
    return wrong_argument(run, i, pln_dtype_name(p->dtype),
                          pln_dtype_name((pln_dtype)tensor->dtype));
  return p->is_buffer ? set_tensor_argument(run, i, tensor)
                      : set_scalar(run, i, tensor);
}

static pln_status set_constants(pln_loop_run *run) {
  const pln_loop_program *p = run->program;
  for (uint32_t i = 0; i < p->n_storages; i++) {
    if (p->storage_const[i] == PLN_NONE)
      continue;
    const pln_attr *data = pln_attrs_find(
        run->engine, p->graph->nodes[p->storage_const[i]].attrs, "data");
    PLN_TRY(pln_loop_bind_tensor(run, i, data->v.tensor));
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- runs */

static size_t block_bytes(const pln_loop_program *p) {
  return ((size_t)p->n_constants + p->n_cells) * sizeof(pln_loop_cell);
}

static pln_status begin_run(pln_loop_run *run, uint32_t n,
                            const pln_tensor *const *args) {
  const pln_loop_program *p = run->program;
  if (n != p->n_params)
    return pln_diag_error(run->engine, PLN_ERR_ARGUMENT, NULL,
                          "the function has %u parameters, but %u arguments "
                          "are given",
                          p->n_params, n);
  run->block = pln_mem_zeroed(run->engine, block_bytes(p));
  run->storages =
      pln_mem_zeroed(run->engine, p->n_storages * sizeof *run->storages);
  if (!run->block || !run->storages)
    return pln_nomem(run->engine);
  run->cells = run->block + p->n_constants;
  for (uint32_t k = 0; k < p->n_constants; k++)
    run->block[p->n_constants - 1 - k] = p->constants[k];
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(set_argument(run, i, args[i]));
  return set_constants(run);
}

/* A buffer that was not written is the very argument. */
static void take_results(pln_loop_run *run, const pln_tensor *const *args,
                         pln_tensor **results) {
  for (uint32_t i = 0; i < run->program->n_params; i++) {
    const pln_loop_param *p = &run->program->params[i];
    if (!p->is_buffer)
      continue;
    const pln_loop_storage *s = &run->storages[p->storage];
    *results++ = pln_tensor_retain(s->writable ? s->tensor : args[i]);
  }
}

static void end_run(pln_loop_run *run) {
  pln_loop_release_storages(run);
  pln_mem_free(run->engine, run->block,
               run->block ? block_bytes(run->program) : 0);
}

pln_status pln_loop_run_program(const pln_loop_program *program,
                                const pln_loop_options *options, uint32_t n,
                                const pln_tensor *const *args,
                                pln_tensor **results) {
  static const pln_loop_options none = {0};
  pln_loop_run run = {.program = program,
                      .options = options ? options : &none,
                      .engine = program->engine};
  pln_stoppable_begin(run.engine);
  pln_status status = begin_run(&run, n, args);
  if (status == PLN_OK) {
    pln_loop_execute(&run);
    status = pln_loop_report(&run);
  }
  if (status == PLN_OK)
    take_results(&run, args, results);
  end_run(&run);
  pln_stoppable_end(run.engine);
  return status;
}
