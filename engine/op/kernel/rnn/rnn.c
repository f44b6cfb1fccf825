/* rnn.c: type inference of recurrent layers, and plain ones: h = f(W x + R h +
 * bias). Called through ops.def; recurrent.c runs the steps. */

#include "op/kernel/half_as_float.h"
#include "op/kernel/rnn/recurrent.h"

/* The extents of a recurrent layer. */
typedef struct layer {
  pln_dim time, batch, directions, hidden;
} layer;

static void read_layer(const pln_infer *call, bool batch_first, layer *l) {
  pln_shape x, r;
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 2, &r);
  l->time = x.rank == 3 ? x.dims[batch_first] : (pln_dim)PLN_DIM_UNKNOWN;
  l->batch = x.rank == 3 ? x.dims[!batch_first] : (pln_dim)PLN_DIM_UNKNOWN;
  bool both = pln_call_string_is(call, "direction", "forward", "bidirectional");
  l->directions = both ? 2 : 1;
  l->hidden = r.rank == 3 ? r.dims[2] : (pln_dim)PLN_DIM_UNKNOWN;
  int64_t hidden = pln_call_int(call, "hidden_size", -1);
  if (hidden >= 0)
    l->hidden = hidden;
}

/* Sets the types of the weights of input and state, and of the biases: one
 * block per gate. */
static pln_status set_rnn_weight_types(pln_infer *call, const layer *l) {
  int64_t gates = call->op == PLN_OP_LSTM ? 4 : call->op == PLN_OP_GRU ? 3 : 1;
  pln_dtype dtype = pln_arg_dtype(call, 0);
  pln_shape w = {3, {l->directions}}, r = w, b = {2, {l->directions}};
  if (!call->operands || pln_arg_rank(call, 0) != 3)
    return PLN_OK;
  PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, l->hidden, gates, &w.dims[1]));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, w.dims[1], 2, &b.dims[1]));
  w.dims[2] = pln_arg_dims(call, 0)[2];
  r.dims[1] = w.dims[1];
  r.dims[2] = l->hidden;
  PLN_TRY(pln_set_operand_type(call, 1, dtype, &w));
  PLN_TRY(pln_set_operand_type(call, 2, dtype, &r));
  return pln_set_operand_type(call, 3, dtype, &b);
}

/* Results: the states of all steps, the last state, and for LSTM the last cell
 * state. */
pln_status pln_infer_rnn(pln_infer *call) {
  bool batch_first = pln_call_int(call, "layout", 0) != 0;
  pln_dtype dtype;
  layer l;
  for (uint32_t i = 0; i < 3; i++)
    PLN_TRY(pln_arg_expect_rank(call, i, 3));
  PLN_TRY(pln_args_one_dtype(call, 0, 4, &dtype));
  read_layer(call, batch_first, &l);
  PLN_TRY(set_rnn_weight_types(call, &l));
  pln_shape all = {4, {l.time, l.directions, l.batch, l.hidden}};
  pln_shape last = {3, {l.directions, l.batch, l.hidden}};
  if (batch_first) {
    all = (pln_shape){4, {l.batch, l.time, l.directions, l.hidden}};
    last = (pln_shape){3, {l.batch, l.directions, l.hidden}};
  }
  PLN_TRY(pln_result_tensor(call, 0, dtype, &all));
  PLN_TRY(pln_result_tensor(call, 1, dtype, &last));
  return pln_result_tensor(call, 2, dtype, &last);
}

static void rnn_cell_step(pln_recurrence *run) {
  const pln_recurrent *l = run->layer;
  size_t bytes = l->hidden * l->size;
  pln_recurrent_add(run, run->state[0], 0);
  for (size_t b = 0; b < l->batch; b++) {
    char *row = pln_recurrent_row(run, b);
    if (!pln_recurrent_lasts(run, b))
      continue;
    pln_gate_run(&run->functions[0], l->dtype, row, l->hidden);
    memcpy(run->state[0] + b * bytes, row, bytes);
  }
}

static pln_status rnn(pln_kernel_call *call) {
  static const pln_cell cell = {.gates = 1,
                                .split = 1,
                                .functions = 1,
                                .fallback = {"Tanh"},
                                .bound = 1,
                                .step = rnn_cell_step};
  return pln_recurrent_run(call, &cell);
}

pln_status pln_kernel_rnn(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "00", rnn);
}
