/* loop.c: iterations of loop, scan, scan_batches and sequence_map. The
 * evaluator calls it between two calls of the nested function.
 *
 * Invariants: the carried values are those of the last iteration; each
 * collected result has one value per iteration. Collected tensors are joined at
 * the end, so that an iteration costs only its own computation. */

#include "eval/loop.h"

#include "eval/flex_attention.h"
#include "ir/tensor/tensor.h"
#include "op/kernel/shape/concat_split.h"
#include "op/op.h"

/* The values of one collected result. */
typedef struct collection {
  pln_runtime_value *items;
  uint32_t count, capacity;
} collection;

struct pln_loop_state {
  pln_engine *engine;
  const pln_graph *graph;
  pln_ref node;
  pln_op op;
  pln_attrs attrs; /* the node's attributes with references resolved */
  pln_ref_cell *args;
  pln_runtime_value given; /* result of the previous iteration */
  uint32_t first;          /* index of the first carried or scanned operand */
  uint32_t n_carried;      /* number of carried operands */
  uint32_t n_scanned;      /* number of scanned operands (scan, sequence_map) */
  uint32_t n_results;      /* number of results of the call */
  int64_t iteration, iterations; /* number of iterations; INT64_MAX when only
                                  * the condition ends the loop */
  bool goes_on;                  /* the value of loop's condition */
  bool started;                  /* the first iteration was started */
  pln_runtime_value *carried;
  collection *collected; /* results that are collected */
  int64_t batch, time;   /* scan_batches: indices of the next iteration */
  collection *ended;     /* collected results of finished batches */
};

static pln_kernel_call as_kernel(const pln_loop_state *c) {
  return (pln_kernel_call){.engine = c->engine, .op = c->op, .attrs = c->attrs};
}

static pln_status refuse_loop(const pln_loop_state *c, const char *what) {
  pln_kernel_call call = as_kernel(c);
  return pln_kernel_refuse(&call, "%s", what);
}

bool pln_is_loop_op(pln_op op) {
  return op == PLN_OP_LOOP || op == PLN_OP_SCAN || op == PLN_OP_SCAN_BATCHES ||
         op == PLN_OP_SEQUENCE_MAP;
}

bool pln_calls_operands(const pln_node *call) {
  return pln_is_loop_op(call->data) || pln_flex_attention_calls(call);
}

/* ------------------------------------------------------------------- start */

/* The value of a scalar operand of loop; `fallback` when omitted. */
static pln_status read_scalar(const pln_loop_state *c, uint32_t i,
                              pln_dtype dtype, int64_t fallback, int64_t *out) {
  const pln_runtime_value *value = &c->args->items[i];
  *out = fallback;
  if (value->kind == PLN_RUNTIME_ABSENT)
    return PLN_OK;
  const pln_tensor *t = value->of.tensor;
  if (value->kind != PLN_RUNTIME_TENSOR || t->count != 1 || t->dtype != dtype)
    return refuse_loop(c, dtype == PLN_BOOL
                              ? "the condition is not a boolean"
                              : "the trip count is not an integer");
  const void *data;
  PLN_TRY(pln_tensor_data(t, &data));
  *out = pln_tensor_int(t, 0, out) ? *out : fallback;
  return PLN_OK;
}

static pln_status start_loop(pln_loop_state *c) {
  int64_t cond;
  if (c->args->count < 2)
    return refuse_loop(c, "it has neither a trip count nor a condition");
  c->first = 2;
  c->n_carried = c->args->count - 2;
  PLN_TRY(read_scalar(c, 0, PLN_INT64, INT64_MAX, &c->iterations));
  PLN_TRY(read_scalar(c, 1, PLN_BOOL, 1, &cond));
  c->goes_on = cond != 0;
  return PLN_OK;
}

static int64_t attr_at(const pln_loop_state *c, const char *name, uint32_t i) {
  pln_kernel_call call = as_kernel(c);
  pln_list list = pln_kernel_list(&call, PLN_NONE, name);
  return list.ints && i < list.count ? list.ints[i] : 0;
}

/* The axis along which the scanned operand `i` is sliced. */
static pln_status scan_axis(const pln_loop_state *c, uint32_t i,
                            uint32_t *axis) {
  const pln_runtime_value *value = &c->args->items[c->first + c->n_carried + i];
  if (value->kind != PLN_RUNTIME_TENSOR ||
      !pln_kernel_axis(attr_at(c, "scan_input_axes", i), value->of.tensor->rank,
                       axis))
    return refuse_loop(c, "a scanned operand lacks the scan axis");
  return PLN_OK;
}

static pln_status start_scan(pln_loop_state *c) {
  pln_kernel_call call = as_kernel(c);
  int64_t n = pln_kernel_int(&call, "num_scan_inputs", 0);
  if (n < 1 || n > (int64_t)c->args->count)
    return refuse_loop(c,
                       "num_scan_inputs does not match the number of operands");
  c->n_scanned = (uint32_t)n;
  c->n_carried = c->args->count - c->n_scanned;
  for (uint32_t i = 0; i < c->n_scanned; i++) {
    uint32_t axis;
    PLN_TRY(scan_axis(c, i, &axis));
    int64_t extent = c->args->items[c->n_carried + i].of.tensor->dims[axis];
    if (i > 0 && extent != c->iterations)
      return refuse_loop(c, "the scanned operands differ in length");
    c->iterations = extent;
  }
  return PLN_OK;
}

static pln_status start_map(pln_loop_state *c) {
  c->n_scanned = c->args->count;
  for (uint32_t i = 0; i < c->n_scanned; i++) {
    const pln_runtime_value *value = &c->args->items[i];
    if (i == 0 && value->kind != PLN_RUNTIME_SEQUENCE)
      return refuse_loop(c, "the first operand is not a sequence");
    if (i == 0)
      c->iterations = pln_runtime_value_count(value);
    else if (value->kind == PLN_RUNTIME_SEQUENCE &&
             pln_runtime_value_count(value) != (uint32_t)c->iterations)
      return refuse_loop(c, "the sequences differ in length");
  }
  return PLN_OK;
}

/* Number of iterations of batch `i`: the sequence length, unless operand 0 is
 * smaller. */
static int64_t length_of(const pln_loop_state *c, int64_t i) {
  int64_t length = c->args->items[c->first + c->n_carried].of.tensor->dims[1];
  if (c->args->items[0].kind == PLN_RUNTIME_TENSOR)
    pln_tensor_int(c->args->items[0].of.tensor, (size_t)i, &length);
  return length;
}

static int64_t n_batches(const pln_loop_state *c) {
  return c->args->items[c->first + c->n_carried].of.tensor->dims[0];
}

static pln_status check_batches(const pln_loop_state *c) {
  const pln_tensor *last = c->args->items[c->args->count - 1].of.tensor;
  for (uint32_t i = c->first; i < c->args->count; i++) {
    const pln_runtime_value *value = &c->args->items[i];
    uint32_t rank = i < c->first + c->n_carried ? 1 : 2;
    if (value->kind != PLN_RUNTIME_TENSOR || value->of.tensor->rank < rank)
      return refuse_loop(c, "an operand has no axis of a batch or sequence");
  }
  for (uint32_t i = c->first; i < c->args->count; i++) {
    const pln_tensor *t = c->args->items[i].of.tensor;
    if (t->dims[0] != last->dims[0] ||
        (i >= c->first + c->n_carried && t->dims[1] != last->dims[1]))
      return refuse_loop(c, "the operands differ in batch or length");
  }
  return PLN_OK;
}

static pln_status check_lengths(const pln_loop_state *c, int64_t most) {
  const pln_runtime_value *lengths = &c->args->items[0];
  const void *data;
  if (lengths->kind == PLN_RUNTIME_ABSENT)
    return PLN_OK;
  if (lengths->kind != PLN_RUNTIME_TENSOR || lengths->of.tensor->rank != 1 ||
      lengths->of.tensor->dtype != PLN_INT64 ||
      lengths->of.tensor->dims[0] != n_batches(c))
    return refuse_loop(c, "the lengths are not one integer for each batch");
  PLN_TRY(pln_tensor_data(lengths->of.tensor, &data));
  for (int64_t i = 0; i < n_batches(c); i++)
    if (length_of(c, i) < 1 || length_of(c, i) > most)
      return refuse_loop(c, "a length is not within the sequence");
  return PLN_OK;
}

static pln_status start_batches(pln_loop_state *c) {
  pln_kernel_call call = as_kernel(c);
  int64_t n = pln_kernel_int(&call, "num_scan_inputs", 0);
  if (n < 1 || n >= (int64_t)c->args->count)
    return refuse_loop(c,
                       "num_scan_inputs does not match the number of operands");
  c->first = 1;
  c->n_scanned = (uint32_t)n;
  c->n_carried = c->args->count - 1 - c->n_scanned;
  PLN_TRY(check_batches(c));
  PLN_TRY(
      check_lengths(c, c->args->items[c->args->count - 1].of.tensor->dims[1]));
  for (int64_t i = 0; i < n_batches(c); i++)
    if (__builtin_add_overflow(c->iterations, length_of(c, i), &c->iterations))
      return refuse_loop(c, "there are too many iterations");
  c->ended = pln_mem_zeroed(c->engine, c->n_results * sizeof *c->ended);
  return c->ended ? PLN_OK : pln_nomem(c->engine);
}

static pln_status start_kind(pln_loop_state *c) {
  if (c->op == PLN_OP_LOOP)
    return start_loop(c);
  if (c->op == PLN_OP_SCAN)
    return start_scan(c);
  return c->op == PLN_OP_SCAN_BATCHES ? start_batches(c) : start_map(c);
}

static pln_status start_loop_state(pln_loop_state *c) {
  c->goes_on = true;
  PLN_TRY(start_kind(c));
  if (c->n_results < c->n_carried)
    return refuse_loop(c, "it has fewer results than carried values");
  c->carried = pln_mem_zeroed(c->engine, c->n_carried * sizeof *c->carried);
  c->collected = pln_mem_zeroed(c->engine, c->n_results * sizeof *c->collected);
  if ((!c->carried && c->n_carried) || !c->collected)
    return pln_nomem(c->engine);
  for (uint32_t i = 0; i < c->n_carried; i++)
    c->carried[i] = pln_runtime_value_copy(c->args->items[c->first + i]);
  return PLN_OK;
}

pln_status pln_loop_state_new(const pln_graph *graph, pln_ref node,
                              pln_attrs attrs, pln_ref_cell *args,
                              pln_loop_state **out) {
  const pln_node *n = &graph->nodes[node];
  pln_loop_state *c = pln_mem_zeroed(graph->engine, sizeof *c);
  if (!c) {
    pln_ref_cell_release(graph->engine, args);
    return pln_nomem(graph->engine);
  }
  *c = (pln_loop_state){.engine = graph->engine,
                        .graph = graph,
                        .node = node,
                        .op = n->data,
                        .attrs = attrs,
                        .args = args,
                        .n_results = n->results ? n->results : 1};
  pln_status status = start_loop_state(c);
  if (status != PLN_OK)
    pln_loop_state_free(c);
  else
    *out = c;
  return status;
}

/* -------------------------------------------------------------- iterations */

pln_runtime_value *pln_loop_state_result(pln_loop_state *loop) {
  return &loop->given;
}

/* Field `i` of an iteration's result; a value that is not a tuple is its own
 * only field. */
static pln_runtime_value *field_of(pln_loop_state *c, uint32_t i) {
  if (c->given.kind != PLN_RUNTIME_TUPLE)
    return i == 0 ? &c->given : NULL;
  return i < c->given.of.cell->count ? &c->given.of.cell->items[i] : NULL;
}

static pln_status read_condition(pln_loop_state *c) {
  const pln_runtime_value *cond = field_of(c, 0);
  const void *data;
  if (!cond || cond->kind != PLN_RUNTIME_TENSOR ||
      cond->of.tensor->count != 1 || cond->of.tensor->dtype != PLN_BOOL)
    return refuse_loop(c, "an iteration does not give a boolean condition");
  PLN_TRY(pln_tensor_data(cond->of.tensor, &data));
  c->goes_on = *(const uint8_t *)data != 0;
  return PLN_OK;
}

static pln_status collect(pln_loop_state *c, collection *to,
                          const pln_runtime_value *item) {
  PLN_TRY(pln_mem_grow(c->engine, (void **)&to->items, &to->capacity,
                       to->count + 1u, sizeof *to->items));
  to->items[to->count++] = pln_runtime_value_copy(*item);
  return PLN_OK;
}

/* Pads shorter sequences with zeros. */
static pln_status fill_up(pln_loop_state *c, collection *all) {
  int64_t most = c->args->items[c->args->count - 1].of.tensor->dims[1];
  pln_runtime_value last = all->items[all->count - 1];
  if (last.kind != PLN_RUNTIME_TENSOR)
    return refuse_loop(c, "an iteration gives a value that is not a tensor");
  for (int64_t i = all->count; i < most; i++) {
    const pln_tensor *like = last.of.tensor;
    pln_tensor *zeros;
    PLN_TRY(pln_tensor_new(c->engine, (pln_dtype)like->dtype, like->rank,
                           like->dims, &zeros));
    pln_runtime_value item = pln_runtime_value_of_tensor(zeros);
    pln_status status = collect(c, all, &item);
    pln_runtime_value_release(c->engine, &item);
    PLN_TRY(status);
  }
  return PLN_OK;
}

static void clear_collection(const pln_loop_state *c, collection *all) {
  for (uint32_t k = 0; k < all->count; k++)
    pln_runtime_value_release(c->engine, &all->items[k]);
  all->count = 0;
}

/* Joins the results of the finished batch. */
static pln_status end_batch(pln_loop_state *c) {
  pln_kernel_call call = as_kernel(c);
  for (uint32_t i = 0; i < c->n_carried; i++)
    PLN_TRY(collect(c, &c->ended[i], &c->carried[i]));
  for (uint32_t i = c->n_carried; i < c->n_results; i++) {
    collection *all = &c->collected[i - c->n_carried];
    pln_tensor *stacked;
    PLN_TRY(fill_up(c, all));
    PLN_TRY(pln_stack_parts(&call, all->count, all->items, 0, false, &stacked));
    pln_runtime_value item = pln_runtime_value_of_tensor(stacked);
    pln_status status = collect(c, &c->ended[i], &item);
    pln_runtime_value_release(c->engine, &item);
    PLN_TRY(status);
    clear_collection(c, all);
  }
  c->batch++;
  c->time = 0;
  return PLN_OK;
}

/* Each batch starts from its own initial carried values. */
static pln_status begin_batch(pln_loop_state *c) {
  pln_kernel_call call = as_kernel(c);
  for (uint32_t i = 0; i < c->n_carried; i++) {
    pln_tensor *slice;
    PLN_TRY(pln_split_part_at(&call, c->args->items[c->first + i].of.tensor, 0,
                              c->batch, &slice));
    pln_runtime_value_release(c->engine, &c->carried[i]);
    c->carried[i] = pln_runtime_value_of_tensor(slice);
  }
  return PLN_OK;
}

static pln_status collect_iteration(pln_loop_state *c) {
  uint32_t from = c->op == PLN_OP_LOOP;
  if (from)
    PLN_TRY(read_condition(c));
  for (uint32_t i = 0; i < c->n_results; i++) {
    const pln_runtime_value *field = field_of(c, from + i);
    if (!field)
      return refuse_loop(c, "an iteration gives too few results");
    if (i >= c->n_carried) {
      PLN_TRY(collect(c, &c->collected[i - c->n_carried], field));
      continue;
    }
    pln_runtime_value_release(c->engine, &c->carried[i]);
    c->carried[i] = pln_runtime_value_copy(*field);
  }
  pln_runtime_value_release(c->engine, &c->given);
  c->iteration++;
  if (c->op == PLN_OP_SCAN_BATCHES && ++c->time == length_of(c, c->batch))
    return end_batch(c);
  return PLN_OK;
}

/* The slice of the scanned operand `i` for the next iteration of a batch. */
static pln_status slice_batch_operand(const pln_loop_state *c, uint32_t i,
                                      pln_runtime_value *out) {
  const pln_runtime_value *value = &c->args->items[c->first + c->n_carried + i];
  pln_kernel_call call = as_kernel(c);
  bool backwards = attr_at(c, "directions", i) == 1;
  int64_t at = backwards ? length_of(c, c->batch) - 1 - c->time : c->time;
  pln_tensor *column, *slice;
  PLN_TRY(pln_split_part_at(&call, value->of.tensor, 1, at, &column));
  pln_status status = pln_split_part_at(&call, column, 0, c->batch, &slice);
  pln_tensor_release(column);
  if (status == PLN_OK)
    *out = pln_runtime_value_of_tensor(slice);
  return status;
}

/* The slice of operand `i` for an iteration of scan or sequence_map. */
static pln_status slice_scanned_operand(const pln_loop_state *c, uint32_t i,
                                        pln_runtime_value *out) {
  if (c->op == PLN_OP_SCAN_BATCHES)
    return slice_batch_operand(c, i, out);
  const pln_runtime_value *value = &c->args->items[c->n_carried + i];
  pln_kernel_call call = as_kernel(c);
  pln_tensor *slice;
  uint32_t axis;
  if (c->op == PLN_OP_SEQUENCE_MAP) {
    *out = pln_runtime_value_copy(
        value->kind == PLN_RUNTIME_SEQUENCE
            ? *pln_runtime_value_at(value, (uint32_t)c->iteration)
            : *value);
    return PLN_OK;
  }
  PLN_TRY(scan_axis(c, i, &axis));
  bool backwards = attr_at(c, "scan_input_directions", i) == 1;
  PLN_TRY(pln_split_part_at(
      &call, value->of.tensor, axis,
      backwards ? c->iterations - 1 - c->iteration : c->iteration, &slice));
  *out = pln_runtime_value_of_tensor(slice);
  return PLN_OK;
}

static pln_status give_scalar(const pln_loop_state *c, pln_dtype dtype,
                              int64_t value, pln_runtime_value *out) {
  pln_tensor *t;
  PLN_TRY(pln_tensor_from_bytes(c->engine, dtype, 0, NULL, &value,
                                pln_dtype_bits(dtype) / 8, &t));
  *out = pln_runtime_value_of_tensor(t);
  return PLN_OK;
}

/* Carried values are moved into the arguments, so that the body may overwrite
 * tensors that nothing else refers to. */
static pln_status fill_arguments(pln_loop_state *c, pln_ref_cell *args) {
  uint32_t at = 0;
  if (c->op == PLN_OP_LOOP) {
    PLN_TRY(give_scalar(c, PLN_INT64, c->iteration, &args->items[at++]));
    PLN_TRY(give_scalar(c, PLN_BOOL, 1, &args->items[at++]));
  }
  for (uint32_t i = 0; i < c->n_carried; i++) {
    args->items[at++] = c->carried[i];
    c->carried[i].kind = PLN_RUNTIME_NONE;
  }
  for (uint32_t i = 0; i < c->n_scanned; i++)
    PLN_TRY(slice_scanned_operand(c, i, &args->items[at++]));
  return PLN_OK;
}

pln_status pln_loop_state_next(pln_loop_state *c, pln_ref_cell **args) {
  *args = NULL;
  if (c->started)
    PLN_TRY(collect_iteration(c));
  if (!c->goes_on || c->iteration >= c->iterations)
    return PLN_OK;
  c->started = true;
  if (c->op == PLN_OP_SCAN_BATCHES && c->time == 0)
    PLN_TRY(begin_batch(c));
  uint32_t own = c->op == PLN_OP_LOOP ? 2 : 0;
  PLN_TRY(pln_ref_cell_new(c->engine, own + c->n_carried + c->n_scanned, args));
  pln_status status = fill_arguments(c, *args);
  if (status == PLN_OK)
    return PLN_OK;
  pln_ref_cell_release(c->engine, *args);
  *args = NULL;
  return status;
}

/* ------------------------------------------------------------------ result */

/* The type of result `i` of the call; 0 when unknown. */
static pln_type type_of(const pln_loop_state *c, uint32_t i) {
  const pln_node *n = &c->graph->nodes[c->node];
  if (!n->results)
    return n->type;
  if (i >= pln_type_n_parts(c->engine, n->type))
    return 0;
  return pln_type_part_at(c->engine, n->type, i);
}

/* Without iterations the rest of the shape comes from the type; unknown dims
 * become 0. */
static pln_status stack_nothing(const pln_loop_state *c, uint32_t i,
                                uint32_t axis, pln_tensor **out) {
  pln_type type = type_of(c, i);
  pln_dtype dtype = pln_type_dtype(c->engine, type);
  int32_t rank = pln_type_rank(c->engine, type);
  int64_t dims[PLN_MAX_RANK];
  if (!dtype || rank < 1 || rank > (int32_t)PLN_MAX_RANK ||
      axis >= (uint32_t)rank)
    return refuse_loop(c, "without iterations the type of a result is unknown");
  for (int32_t k = 0; k < rank; k++) {
    pln_dim dim = pln_type_dims(c->engine, type)[k];
    dims[k] = PLN_DIM_IS_CONST(dim) && k != (int32_t)axis ? dim : 0;
  }
  return pln_tensor_new(c->engine, dtype, (uint32_t)rank, dims, out);
}

static int64_t result_axis(const pln_loop_state *c, uint32_t i) {
  return c->op == PLN_OP_SCAN ? attr_at(c, "scan_output_axes", i) : 0;
}

static pln_status stack(const pln_loop_state *c, uint32_t i, pln_tensor **out) {
  const collection *all = &c->collected[i];
  pln_kernel_call call = as_kernel(c);
  int64_t axis = result_axis(c, i);
  bool backwards =
      c->op == PLN_OP_SCAN && attr_at(c, "scan_output_directions", i) == 1;
  if (all->count == 0)
    return stack_nothing(c, c->n_carried + i, axis < 0 ? 0 : (uint32_t)axis,
                         out);
  return pln_stack_parts(&call, all->count, all->items, axis, backwards, out);
}

static pln_status finish_one(pln_loop_state *c, uint32_t i,
                             pln_runtime_value *out) {
  pln_tensor *stacked;
  if (c->ended && c->ended[i].count) {
    pln_kernel_call call = as_kernel(c);
    PLN_TRY(pln_stack_parts(&call, c->ended[i].count, c->ended[i].items, 0,
                            false, &stacked));
    *out = pln_runtime_value_of_tensor(stacked);
    return PLN_OK;
  }
  if (i < c->n_carried) {
    *out = pln_runtime_value_copy(c->carried[i]);
    return PLN_OK;
  }
  i -= c->n_carried;
  if (c->op == PLN_OP_SEQUENCE_MAP)
    return pln_runtime_value_sequence(c->engine, c->collected[i].count,
                                      c->collected[i].items, out);
  PLN_TRY(stack(c, i, &stacked));
  *out = pln_runtime_value_of_tensor(stacked);
  return PLN_OK;
}

pln_status pln_loop_state_finish(pln_loop_state *c, pln_runtime_value *out) {
  pln_ref_cell *cell;
  if (!c->graph->nodes[c->node].results)
    return finish_one(c, 0, out);
  PLN_TRY(pln_ref_cell_new(c->engine, c->n_results, &cell));
  *out = (pln_runtime_value){.kind = PLN_RUNTIME_TUPLE, .of.cell = cell};
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < c->n_results && status == PLN_OK; i++)
    status = finish_one(c, i, &cell->items[i]);
  if (status != PLN_OK)
    pln_runtime_value_release(c->engine, out);
  return status;
}

static void free_collections(const pln_loop_state *c, collection *all) {
  for (uint32_t i = 0; all && i < c->n_results; i++) {
    clear_collection(c, &all[i]);
    pln_mem_free(c->engine, all[i].items,
                 all[i].capacity * sizeof *all[i].items);
  }
  pln_mem_free(c->engine, all, c->n_results * sizeof *all);
}

void pln_loop_state_free(pln_loop_state *c) {
  pln_engine *e = c->engine;
  for (uint32_t i = 0; c->carried && i < c->n_carried; i++)
    pln_runtime_value_release(e, &c->carried[i]);
  free_collections(c, c->collected);
  free_collections(c, c->ended);
  pln_mem_free(e, c->carried, c->n_carried * sizeof *c->carried);
  pln_runtime_value_release(e, &c->given);
  pln_ref_cell_release(e, c->args);
  pln_mem_free(e, c, sizeof *c);
}
