/* lowered_call.c: calls of PrimFuncs from Relay code, in destination-passing
 * style: the operands, then one buffer for each result. Called by the
 * evaluator for call_lowered. */

#include "eval/lowered_call.h"
#include "eval/call.h"

typedef struct lowered_call {
  pln_engine *engine;
  const pln_loop_program *program;
  uint32_t n_args, n_results; /* operands, results */
  pln_tensor **args;          /* n_args + n_results; the last are made here */
  pln_tensor **buffers;       /* what each buffer is after the call */
} lowered_call;

static pln_status cannot(const lowered_call *c, const char *what) {
  return pln_diag_error(c->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "call_lowered cannot be evaluated: %s", what);
}

/* The fields of a tuple, or the value itself. */
static uint32_t n_fields(const pln_runtime_value *value) {
  return value->kind == PLN_RUNTIME_TUPLE ? value->of.cell->count : 1;
}

static const pln_runtime_value *field_at(const pln_runtime_value *value,
                                         uint32_t i) {
  return value->kind == PLN_RUNTIME_TUPLE ? &value->of.cell->items[i] : value;
}

static uint32_t count_tensors(const pln_ref_cell *args) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < args->count; i++)
    n += n_fields(&args->items[i]);
  return n;
}

static pln_status set_operands(lowered_call *c, const pln_ref_cell *args) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < args->count; i++)
    for (uint32_t k = 0; k < n_fields(&args->items[i]); k++) {
      const pln_runtime_value *field = field_at(&args->items[i], k);
      if (field->kind != PLN_RUNTIME_TENSOR)
        return cannot(c, "an operand is not a tensor");
      c->args[n++] = pln_tensor_retain(field->of.tensor);
    }
  return PLN_OK;
}

static pln_type result_type(const lowered_call *c, pln_type type, uint32_t i) {
  return pln_type_get_kind(c->engine, type) == PLN_TYPE_TUPLE
             ? pln_type_part_at(c->engine, type, i)
             : type;
}

static pln_status make_result(const lowered_call *c, pln_type type,
                              pln_tensor **out) {
  pln_engine *e = c->engine;
  if (pln_type_get_kind(e, type) != PLN_TYPE_TENSOR ||
      pln_type_dtype(e, type) == PLN_DTYPE_NONE || pln_type_rank(e, type) < 0)
    return cannot(c, "a result is not a tensor");
  const pln_dim *dims = pln_type_dims(e, type);
  int32_t rank = pln_type_rank(e, type);
  for (int32_t d = 0; d < rank; d++)
    if (!PLN_DIM_IS_CONST(dims[d]))
      return cannot(c, "the shape of a result is not known");
  return pln_tensor_new(e, pln_type_dtype(e, type), (uint32_t)rank, dims, out);
}

static pln_status make_results(const lowered_call *c, pln_type type) {
  for (uint32_t i = 0; i < c->n_results; i++)
    PLN_TRY(make_result(c, result_type(c, type, i), &c->args[c->n_args + i]));
  return PLN_OK;
}

/* The buffers of the results are the last ones. */
static pln_status run_loops(const lowered_call *c) {
  uint32_t n = c->n_args + c->n_results;
  if (pln_loop_n_params(c->program) != n || pln_loop_n_results(c->program) != n)
    return cannot(c, "the PrimFunc has other parameters than the call");
  return pln_loop_run_program(c->program, NULL, n,
                              (const pln_tensor *const *)c->args, c->buffers);
}

static pln_status take_outputs(const lowered_call *c, pln_type type,
                               pln_runtime_value *out) {
  pln_tensor **made = c->buffers + c->n_args;
  pln_ref_cell *cell;
  if (pln_type_get_kind(c->engine, type) != PLN_TYPE_TUPLE) {
    *out = pln_runtime_value_of_tensor(pln_tensor_retain(made[0]));
    return PLN_OK;
  }
  PLN_TRY(pln_ref_cell_new(c->engine, c->n_results, &cell));
  for (uint32_t i = 0; i < c->n_results; i++)
    cell->items[i] = pln_runtime_value_of_tensor(pln_tensor_retain(made[i]));
  *out = (pln_runtime_value){.kind = PLN_RUNTIME_TUPLE, .of.cell = cell};
  return PLN_OK;
}

pln_status pln_lowered_call(pln_engine *e, const pln_loop_program *program,
                            const pln_ref_cell *args, pln_type type,
                            pln_runtime_value *out) {
  bool tuple = pln_type_get_kind(e, type) == PLN_TYPE_TUPLE;
  lowered_call c = {.engine = e,
                    .program = program,
                    .n_args = count_tensors(args),
                    .n_results = tuple ? pln_type_n_parts(e, type) : 1};
  uint32_t n = c.n_args + c.n_results;
  size_t size = ((size_t)n + 1) * sizeof *c.args;
  c.args = pln_mem_zeroed(e, size);
  c.buffers = pln_mem_zeroed(e, size);
  pln_status status = c.args && c.buffers ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK)
    status = set_operands(&c, args);
  if (status == PLN_OK)
    status = make_results(&c, type);
  if (status == PLN_OK)
    status = run_loops(&c);
  if (status == PLN_OK)
    status = take_outputs(&c, type, out);
  if (c.args)
    pln_tensors_release(n, c.args);
  if (c.buffers)
    pln_tensors_release(n, c.buffers);
  pln_mem_free(e, c.args, c.args ? size : 0);
  pln_mem_free(e, c.buffers, c.buffers ? size : 0);
  return status;
}
