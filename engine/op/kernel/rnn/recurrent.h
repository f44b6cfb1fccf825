/* recurrent.h: shared by lstm, gru and rnn: reading a layer, and running one
 * direction over all steps. A cell type adds the computation of one step
 * (lstm.c, gru.c, rnn.c). */

#ifndef PLN_OP_KERNEL_RNN_RECURRENT_H
#define PLN_OP_KERNEL_RNN_RECURRENT_H

#include "op/kernel/matmul/gemm.h"
#include "op/kernel/rnn/gate.h"

typedef struct pln_recurrence pln_recurrence;

/* A cell type. Its gates form one or two groups, whose parts of R are
 * multiplied separately in a step. */
typedef struct pln_cell {
  uint32_t gates; /* W has gates * hidden rows */
  uint32_t split; /* gates of the first group */
  /* Functions per direction, in the order of `activations`. */
  uint32_t functions;
  const char *fallback[3];
  bool cells; /* has a cell state, and peepholes */
  /* The first `bound` gates add both biases, the others only W's. */
  uint32_t bound;
  void (*step)(pln_recurrence *run);
} pln_cell;

/* A layer as a call describes it. */
typedef struct pln_recurrent {
  pln_kernel_call *call;
  const pln_cell *cell;
  pln_dtype dtype;             /* FLOAT32 or FLOAT64 */
  size_t size;                 /* of an element */
  bool batch_first, backwards; /* the first direction runs backwards */
  size_t directions, steps, batch, inputs, hidden, width; /* gates * hidden */
  const pln_tensor *x, *w, *r;
  const pln_tensor *bias, *lengths, *initial[2], *peepholes; /* or NULL */
  pln_gate functions[6];
} pln_recurrent;

/* W or R of a direction: `width` rows of k elements. */
typedef struct pln_weights {
  const char *data;
  char *panels; /* packed for tiles, group by group; NULL: used in place */
  size_t k;
} pln_weights;

/* A direction while it runs. */
struct pln_recurrence {
  const pln_recurrent *layer;
  size_t direction;
  const pln_gate *functions;
  pln_gemm gemm;
  pln_weights w, r;
  const size_t *panel_rows; /* offsets of the rows of a panel */
  size_t step;              /* the current step */
  /* Arguments of the gates, `width` elements per step and sequence, for the
   * steps of the block that begins at `block`. */
  char *rows;
  size_t block;
  const char *r_bias;    /* of this direction, or NULL */
  const char *peepholes; /* likewise */
  char *state[2]; /* hidden and cell state: `hidden` elements per sequence */
  char *spare;    /* scratch of the same size for the cell type */
};

/* Computes all results of the call. */
pln_status pln_recurrent_run(pln_kernel_call *call,
                             const pln_cell *cell) PLN_CHECKED;

/* As lstm, whose operands are (x, w, r, ...) with the state rounded to 8 bits
 * in each step (lstm.c). */
pln_status pln_lstm_rounded_run(pln_kernel_call *call) PLN_CHECKED;
/* Rounds n floats to the 256 numbers that their range and 0 span, as
 * dynamic_quantize_linear and dequantize_linear do. */
void pln_round_to_bytes(const float *from, float *to, size_t n);

/* For the step functions of cell types. */

/* The gates of a sequence at the current step. */
char *pln_recurrent_row(const pln_recurrence *run, size_t sequence);
/* Returns true if the sequence has not ended at the current step. */
bool pln_recurrent_lasts(const pln_recurrence *run, size_t sequence);
/* Adds left * R for the gates of a group (0 or 1) to `to`. left has `hidden`
 * elements per sequence; `to` has stride `to_row`. */
void pln_recurrent_multiply(const pln_recurrence *run, const char *left,
                            uint32_t group, char *to, size_t to_row);
/* The same, added to the gates of the current step. */
void pln_recurrent_add(const pln_recurrence *run, const char *left,
                       uint32_t group);
/* to[j] += a[j] * b[j], j < n. */
void pln_recurrent_scaled(pln_dtype dtype, void *to, const void *a,
                          const void *b, size_t n);

#endif
