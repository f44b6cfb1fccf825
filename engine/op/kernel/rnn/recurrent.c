/* recurrent.c: recurrent layers: reads a call, and runs one direction over all
 * steps. Called by the kernels in lstm.c, gru.c, rnn.c.
 *
 * The input's contribution to the gates is computed for a block of steps at
 * once; a step then adds the state's contribution and applies the gates.
 * Weights that steps multiply are packed into panels once per direction. The
 * sequences of a batch run in lockstep: one that has ended, or, running
 * backwards, has not begun, keeps its state.
 *
 * Nothing is allocated while steps run. A sequence without steps gives zero
 * states, as in ONNX Runtime. */

#include "op/kernel/rnn/recurrent.h"

#include <math.h>

#include "op/kernel/multiversion.h"

/* ------------------------------------------------------------------ reading */

static bool has_dims(const pln_tensor *t, uint32_t rank, const size_t *dims) {
  if (t->rank != rank)
    return false;
  for (uint32_t i = 0; i < rank; i++)
    if ((size_t)t->dims[i] != dims[i])
      return false;
  return true;
}

/* An argument that is present must have exactly that dtype and those
 * extents. */
static pln_status check_arg(const pln_recurrent *l, uint32_t i, pln_dtype dtype,
                            uint32_t rank, size_t a, size_t b, size_t c) {
  const pln_tensor *t = pln_kernel_arg(l->call, i);
  const size_t dims[3] = {a, b, c};
  if (t && t->dtype != dtype)
    return pln_kernel_no_dtype(l->call, (pln_dtype)t->dtype);
  if (!t || has_dims(t, rank, dims))
    return PLN_OK;
  return pln_kernel_refuse(l->call, "operand %u does not match the others", i);
}

static pln_status check_args(const pln_recurrent *l) {
  size_t d = l->directions, n = l->hidden;
  size_t first = l->batch_first ? l->batch : d;
  size_t second = l->batch_first ? d : l->batch;
  PLN_TRY(check_arg(l, 0, l->dtype, 3, l->batch_first ? l->batch : l->steps,
                    l->batch_first ? l->steps : l->batch, l->inputs));
  PLN_TRY(check_arg(l, 1, l->dtype, 3, d, l->width, l->inputs));
  PLN_TRY(check_arg(l, 2, l->dtype, 3, d, l->width, n));
  PLN_TRY(check_arg(l, 3, l->dtype, 2, d, 2 * l->width, 0));
  PLN_TRY(check_arg(l, 4, PLN_INT32, 1, l->batch, 0, 0));
  PLN_TRY(check_arg(l, 5, l->dtype, 3, first, second, n));
  if (!l->cell->cells)
    return PLN_OK;
  PLN_TRY(check_arg(l, 6, l->dtype, 3, first, second, n));
  return check_arg(l, 7, l->dtype, 2, d, 3 * n, 0);
}

static pln_status check_lengths(const pln_recurrent *l) {
  const int32_t *lengths = l->lengths ? l->lengths->data : NULL;
  for (size_t i = 0; lengths && i < l->batch; i++)
    if (lengths[i] < 0 || (size_t)lengths[i] > l->steps)
      return pln_kernel_refuse(
          l->call, "sequence %zu has length %d, outside of [0, %zu]", i,
          lengths[i], l->steps);
  return PLN_OK;
}

static pln_status read_directions(pln_recurrent *l) {
  static const char *const names[] = {"forward", "reverse", "bidirectional"};
  uint32_t i = 0;
  while (i < 3 &&
         !pln_kernel_string_is(l->call, "direction", names[0], names[i]))
    i++;
  if (i == 3)
    return pln_kernel_refuse(
        l->call, "direction must be forward, reverse or bidirectional");
  l->backwards = i == 1;
  l->directions = i == 2 ? 2 : 1;
  return PLN_OK;
}

static pln_status read_functions(pln_recurrent *l) {
  const pln_cell *cell = l->cell;
  uint32_t n = (uint32_t)l->directions * cell->functions;
  double clip = pln_kernel_float(l->call, "clip", INFINITY);
  if (!(clip >= 0))
    return pln_kernel_refuse(l->call, "clip is %g", clip);
  PLN_TRY(pln_gates_read(l->call, n, cell->functions, cell->fallback,
                         l->functions));
  /* the function applied to the cell state is not clipped */
  for (uint32_t i = 0; i < n; i++)
    if (!cell->cells || i % 3 != 2)
      l->functions[i].clip = clip;
  return PLN_OK;
}

static pln_status read_extents(pln_recurrent *l) {
  int64_t hidden = pln_kernel_int(l->call, "hidden_size", -1);
  l->batch_first = pln_kernel_int(l->call, "layout", 0) != 0;
  if (l->x->rank != 3 || l->r->rank != 3)
    return pln_kernel_refuse(l->call, "operands must have 3 axes");
  l->steps = (size_t)l->x->dims[l->batch_first];
  l->batch = (size_t)l->x->dims[!l->batch_first];
  l->inputs = (size_t)l->x->dims[2];
  l->hidden = (size_t)l->r->dims[2];
  if (hidden >= 0 && (size_t)hidden != l->hidden)
    return pln_kernel_refuse(l->call,
                             "hidden_size is %lld, but that of R is %zu",
                             (long long)hidden, l->hidden);
  /* no tensor of such extents could exist */
  if (l->hidden > SIZE_MAX / 64)
    return pln_kernel_refuse(l->call, "hidden_size is too great");
  l->width = l->cell->gates * l->hidden;
  return PLN_OK;
}

static pln_status read_layer(pln_kernel_call *call, const pln_cell *cell,
                             pln_recurrent *l) {
  *l = (pln_recurrent){.call = call, .cell = cell};
  l->x = pln_kernel_arg(call, 0);
  l->w = pln_kernel_arg(call, 1);
  l->r = pln_kernel_arg(call, 2);
  l->bias = pln_kernel_arg(call, 3);
  l->lengths = pln_kernel_arg(call, 4);
  l->initial[0] = pln_kernel_arg(call, 5);
  l->initial[1] = cell->cells ? pln_kernel_arg(call, 6) : NULL;
  l->peepholes = cell->cells ? pln_kernel_arg(call, 7) : NULL;
  l->dtype = (pln_dtype)l->x->dtype;
  l->size = pln_element_size(l->dtype);
  if (l->dtype != PLN_FLOAT32 && l->dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, l->dtype);
  PLN_TRY(read_extents(l));
  PLN_TRY(read_directions(l));
  PLN_TRY(read_functions(l));
  PLN_TRY(check_args(l));
  return check_lengths(l);
}

/* ------------------------------------------------------------------ results */

/* Makes the results: all states, zeroed if sequences end early, and the last
 * ones. */
static pln_status make_results(const pln_recurrent *l) {
  int64_t t = (int64_t)l->steps, b = (int64_t)l->batch;
  int64_t d = (int64_t)l->directions, n = (int64_t)l->hidden;
  int64_t all[4] = {t, d, b, n}, last[3] = {d, b, n};
  void *data;
  if (l->batch_first) {
    memcpy(all, (int64_t[4]){b, t, d, n}, sizeof all);
    memcpy(last, (int64_t[3]){b, d, n}, sizeof last);
  }
  PLN_TRY((l->lengths ? pln_kernel_result
                      : pln_kernel_unset)(l->call, 0, l->dtype, 4, all, &data));
  for (uint32_t i = 1; i < l->call->n_results && i < 2u + l->cell->cells; i++)
    PLN_TRY(pln_kernel_unset(l->call, i, l->dtype, 3, last, &data));
  return PLN_OK;
}

/* The position of a sequence's last state in a result or an initial state. */
static size_t last_at(const pln_recurrence *run, size_t sequence) {
  const pln_recurrent *l = run->layer;
  size_t row = l->batch_first ? sequence * l->directions + run->direction
                              : run->direction * l->batch + sequence;
  return row * l->hidden * l->size;
}

static void write_last(const pln_recurrence *run) {
  const pln_recurrent *l = run->layer;
  const int32_t *lengths = l->lengths ? l->lengths->data : NULL;
  size_t bytes = l->hidden * l->size;
  for (uint32_t i = 1; i < l->call->n_results && i < 2u + l->cell->cells; i++) {
    char *to = pln_tensor_writable(l->call->results[i]);
    for (size_t b = 0; b < l->batch; b++)
      if (lengths ? lengths[b] == 0 : l->steps == 0)
        memset(to + last_at(run, b), 0, bytes);
      else
        memcpy(to + last_at(run, b), run->state[i - 1] + b * bytes, bytes);
  }
}

static void write_step(const pln_recurrence *run) {
  const pln_recurrent *l = run->layer;
  size_t bytes = l->hidden * l->size, t = run->step, d = run->direction;
  char *to = pln_tensor_writable(l->call->results[0]);
  for (size_t b = 0; b < l->batch; b++) {
    size_t row = l->batch_first ? (b * l->steps + t) * l->directions + d
                                : (t * l->directions + d) * l->batch + b;
    if (pln_recurrent_lasts(run, b))
      memcpy(to + row * bytes, run->state[0] + b * bytes, bytes);
  }
}

/* -------------------------------------------------------------------- steps */

/* The part of `direction` in an operand that has all directions. */
static const char *part_of(const pln_recurrence *run, const pln_tensor *t) {
  size_t bytes = t->count / run->layer->directions * run->layer->size;
  return (const char *)t->data + run->direction * bytes;
}

char *pln_recurrent_row(const pln_recurrence *run, size_t sequence) {
  const pln_recurrent *l = run->layer;
  size_t row = (run->step - run->block) * l->batch + sequence;
  return run->rows + row * l->width * l->size;
}

bool pln_recurrent_lasts(const pln_recurrence *run, size_t sequence) {
  const pln_tensor *lengths = run->layer->lengths;
  return !lengths ||
         run->step < (size_t)((const int32_t *)lengths->data)[sequence];
}

/* The first element of a group's gates, *at; returns how many there are. */
static size_t group_of(const pln_recurrent *l, uint32_t group, size_t *at) {
  size_t split = l->cell->split * l->hidden;
  *at = group ? split : 0;
  return group ? l->width - split : split;
}

static size_t round_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* c += left * weights, for m rows of left and the gates of a group. */
typedef struct gate_share {
  const pln_weights *by;
  uint32_t group;
  size_t m;
  const char *left;
  size_t left_row;
  char *c;
  size_t c_row;
} gate_share;

static void multiply_panels(const pln_recurrence *run, const gate_share *s,
                            size_t n) {
  const pln_recurrent *l = run->layer;
  const pln_tiles *tiles = run->gemm.tiles;
  size_t column = s->by->k * l->size, at;
  const char *b = s->by->panels;
  if (s->group)
    b += round_up(group_of(l, 0, &at), tiles->width) * column;
  for (size_t j = 0; j < n; j += tiles->width) {
    pln_tile tile = {.k = s->by->k,
                     .a = s->left,
                     .a_row = s->left_row,
                     .a_col = 1,
                     .b = b + j * column,
                     .b_at = run->panel_rows,
                     .c = s->c + j * l->size,
                     .c_row = s->c_row,
                     .add = true};
    size_t width = n - j < tiles->width ? n - j : tiles->width;
    if (s->m == 1 && width == tiles->width)
      tiles->panel_row(&tile);
    else
      pln_tiles_run(tiles, &tile, s->m, width);
  }
}

static void multiply_gates(const pln_recurrence *run, const gate_share *s) {
  const pln_recurrent *l = run->layer;
  size_t at, n = group_of(l, s->group, &at), k = s->by->k;
  if (s->by->panels) {
    multiply_panels(run, s, n);
    return;
  }
  pln_gemm_run(&run->gemm, &(pln_product){.m = s->m,
                                          .n = n,
                                          .k = k,
                                          .a = s->left,
                                          .a_row = s->left_row,
                                          .a_col = 1,
                                          .b = s->by->data + at * k * l->size,
                                          .b_row = 1,
                                          .b_col = k,
                                          .c = s->c,
                                          .c_row = s->c_row,
                                          .add = true});
}

void pln_recurrent_multiply(const pln_recurrence *run, const char *left,
                            uint32_t group, char *to, size_t to_row) {
  const pln_recurrent *l = run->layer;
  gate_share s = {&run->r, group, l->batch, left, l->hidden, to, to_row};
  multiply_gates(run, &s);
}

void pln_recurrent_add(const pln_recurrence *run, const char *left,
                       uint32_t group) {
  const pln_recurrent *l = run->layer;
  size_t at;
  (void)group_of(l, group, &at);
  pln_recurrent_multiply(run, left, group,
                         pln_recurrent_row(run, 0) + at * l->size, l->width);
}

/* Adds W times the input for m rows of gates from `to` on. */
static void add_inputs(const pln_recurrence *run, size_t m, size_t x_at,
                       size_t x_row, char *to) {
  const pln_recurrent *l = run->layer;
  const char *x = (const char *)l->x->data + x_at * l->inputs * l->size;
  for (uint32_t group = 0; group < 2; group++) {
    size_t at, n = group_of(l, group, &at);
    gate_share s = {&run->w, group, m, x, x_row, to + at * l->size, l->width};
    if (n > 0)
      multiply_gates(run, &s);
  }
}

#define SCALED(T, L)                                                  \
  PLN_MULTIVERSION static void scaled_##T(T *restrict to, const L *a, \
                                          const T *b, size_t n) {     \
    for (size_t j = 0; j < n; j++)                                    \
      to[j] += a[j] * b[j];                                           \
  }
SCALED(float, pln_unaligned_float)
SCALED(double, pln_unaligned_double)

void pln_recurrent_scaled(pln_dtype dtype, void *to, const void *a,
                          const void *b, size_t n) {
  if (dtype == PLN_FLOAT32)
    scaled_float(to, a, b, n);
  else
    scaled_double(to, a, b, n);
}

/* ------------------------------------------------------------ one direction */

/* Scratch tensors of the directions. */
enum { ROWS, BIAS, PANELS, R_PANELS, PANEL_ROWS, HIDDEN, CELL, SPARE, SCRATCH };
/* With fewer steps packing weights does not pay off. */
enum { FEW_STEPS = 4 };
/* Bytes of a block of gates, unless one step needs more. */
enum { BLOCK = 2 << 20 };

static pln_status new_scratch(const pln_recurrent *l, size_t rows, size_t row,
                              pln_tensor **out) {
  int64_t dims[2] = {(int64_t)rows, (int64_t)row};
  return pln_tensor_unset(l->call->engine, l->dtype, 2, dims, out);
}

/* True if the inputs of one step after the other are multiplied by W, because
 * their rows are not evenly spaced; else one product takes a block of steps. */
static bool multiplies_steps(const pln_recurrent *l) {
  return l->batch_first && l->batch > 1;
}

/* Allocates the panels of R, and of W where each step multiplies it, and the
 * offsets of their rows. */
static pln_status new_panels(const pln_recurrent *l, pln_tensor **scratch) {
  size_t at, unit = pln_tiles_for(l->dtype)->width;
  size_t n =
      round_up(group_of(l, 0, &at), unit) + round_up(group_of(l, 1, &at), unit);
  int64_t rows = (int64_t)(l->hidden > l->inputs ? l->hidden : l->inputs);
  if (multiplies_steps(l))
    PLN_TRY(new_scratch(l, n, l->inputs, &scratch[PANELS]));
  PLN_TRY(new_scratch(l, n, l->hidden, &scratch[R_PANELS]));
  PLN_TRY(pln_tensor_unset(l->call->engine, PLN_INT64, 1, &rows,
                           &scratch[PANEL_ROWS]));
  size_t *begin = pln_tensor_writable(scratch[PANEL_ROWS]);
  for (size_t p = 0; p < (size_t)rows; p++)
    begin[p] = p * unit;
  return PLN_OK;
}

/* The number of steps of a block. */
static size_t block_of(const pln_recurrent *l) {
  size_t step = l->batch * l->width * l->size, n = step ? BLOCK / step : 1;
  return n < 1 ? 1 : n < l->steps ? n : l->steps;
}

static pln_status make_scratch(const pln_recurrent *l, pln_tensor **scratch) {
  PLN_TRY(new_scratch(l, block_of(l) * l->batch, l->width, &scratch[ROWS]));
  PLN_TRY(new_scratch(l, 1, l->width, &scratch[BIAS]));
  if (l->steps >= FEW_STEPS)
    PLN_TRY(new_panels(l, scratch));
  for (uint32_t i = HIDDEN; i <= SPARE; i++)
    PLN_TRY(new_scratch(l, l->batch, l->hidden, &scratch[i]));
  return PLN_OK;
}

#define ADD_TO(T, L)                                             \
  static void add_to_##T(void *to, const void *from, size_t n) { \
    T *a = to;                                                   \
    const L *b = from;                                           \
    for (size_t i = 0; i < n; i++)                               \
      a[i] += b[i];                                              \
  }
ADD_TO(float, pln_unaligned_float)
ADD_TO(double, pln_unaligned_double)

/* The biases that gates begin with. */
static void begin_bias(pln_recurrence *run, char *sums) {
  const pln_recurrent *l = run->layer;
  size_t bytes = l->width * l->size;
  memset(sums, 0, bytes);
  if (!l->bias)
    return;
  const char *bias = part_of(run, l->bias);
  run->r_bias = bias + bytes;
  memcpy(sums, bias, bytes);
  (l->dtype == PLN_FLOAT32 ? add_to_float : add_to_double)(
      sums, run->r_bias, l->cell->bound * l->hidden);
}

/* Sets the gates of the block of `n` steps from `first` on to biases and
 * inputs. */
static void begin_block(pln_recurrence *run, size_t first, size_t n,
                        const char *bias) {
  const pln_recurrent *l = run->layer;
  size_t bytes = l->width * l->size;
  run->block = first;
  for (size_t i = 0; i < n * l->batch; i++)
    memcpy(run->rows + i * bytes, bias, bytes);
  if (!multiplies_steps(l))
    add_inputs(run, n * l->batch, first * l->batch, l->inputs, run->rows);
  else
    for (size_t t = 0; t < n; t++)
      add_inputs(run, l->batch, first + t, l->steps * l->inputs,
                 run->rows + t * l->batch * bytes);
}

static void pack_gate_weights(const pln_recurrence *run, pln_weights *w,
                              pln_tensor *panels) {
  const pln_recurrent *l = run->layer;
  const pln_tiles *tiles = run->gemm.tiles;
  if (!panels)
    return;
  char *to = w->panels = pln_tensor_writable(panels);
  for (uint32_t group = 0; group < 2; group++) {
    size_t at, n = group_of(l, group, &at);
    for (size_t j = 0; j < n; j += tiles->width) {
      tiles->pack_transposed(to, w->data + (at + j) * w->k * l->size, w->k,
                             w->k, n - j < tiles->width ? n - j : tiles->width);
      to += tiles->width * w->k * l->size;
    }
  }
}

static void begin_weights(pln_recurrence *run, pln_tensor **scratch) {
  const pln_recurrent *l = run->layer;
  run->w = (pln_weights){.data = part_of(run, l->w), .k = l->inputs};
  run->r = (pln_weights){.data = part_of(run, l->r), .k = l->hidden};
  if (scratch[PANEL_ROWS])
    run->panel_rows = scratch[PANEL_ROWS]->data;
  pack_gate_weights(run, &run->w, scratch[PANELS]);
  pack_gate_weights(run, &run->r, scratch[R_PANELS]);
}

static void begin_states(pln_recurrence *run) {
  const pln_recurrent *l = run->layer;
  size_t bytes = l->hidden * l->size;
  for (uint32_t i = 0; i < 2; i++)
    for (size_t b = 0; b < l->batch; b++)
      if (l->initial[i])
        memcpy(run->state[i] + b * bytes,
               (const char *)l->initial[i]->data + last_at(run, b), bytes);
      else
        memset(run->state[i] + b * bytes, 0, bytes);
}

static void run_steps(pln_recurrence *run, bool backwards, const char *bias) {
  const pln_recurrent *l = run->layer;
  size_t block = block_of(l);
  for (size_t done = 0; done < l->steps; done += block) {
    size_t n = l->steps - done < block ? l->steps - done : block;
    begin_block(run, backwards ? l->steps - done - n : done, n, bias);
    for (size_t i = 0; i < n; i++) {
      if (pln_is_stopped(l->call->engine))
        return;
      run->step = run->block + (backwards ? n - 1 - i : i);
      l->cell->step(run);
      write_step(run);
    }
  }
}

static void run_direction(const pln_recurrent *l, size_t direction,
                          const pln_gemm *gemm, pln_tensor **scratch) {
  pln_recurrence run = {.layer = l, .direction = direction, .gemm = *gemm};
  char *bias = pln_tensor_writable(scratch[BIAS]);
  run.functions = l->functions + direction * l->cell->functions;
  run.rows = pln_tensor_writable(scratch[ROWS]);
  run.state[0] = pln_tensor_writable(scratch[HIDDEN]);
  run.state[1] = pln_tensor_writable(scratch[CELL]);
  run.spare = pln_tensor_writable(scratch[SPARE]);
  run.peepholes = l->peepholes ? part_of(&run, l->peepholes) : NULL;
  begin_bias(&run, bias);
  begin_weights(&run, scratch);
  begin_states(&run);
  run_steps(&run, direction == 1 || l->backwards, bias);
  write_last(&run);
}

static pln_status run_layer(const pln_recurrent *l) {
  pln_tensor *scratch[SCRATCH] = {NULL};
  pln_gemm gemm;
  size_t k = l->hidden > l->inputs ? l->hidden : l->inputs;
  PLN_TRY(pln_gemm_begin(l->call->engine, l->dtype, l->width, k, &gemm));
  pln_status status = make_scratch(l, scratch);
  for (size_t d = 0; d < l->directions && status == PLN_OK; d++)
    run_direction(l, d, &gemm, scratch);
  for (uint32_t i = 0; i < SCRATCH; i++)
    pln_tensor_release(scratch[i]);
  pln_gemm_end(&gemm);
  return status;
}

pln_status pln_recurrent_run(pln_kernel_call *call, const pln_cell *cell) {
  pln_recurrent layer;
  PLN_TRY(read_layer(call, cell, &layer));
  PLN_TRY(make_results(&layer));
  if (layer.batch == 0 || layer.hidden == 0)
    return PLN_OK;
  return run_layer(&layer);
}
