/* recurrent.h: what lstm, gru and rnn share: a layer, its directions, and the
 * run of one direction over all steps. A kind of layer adds what happens in one
 * step (lstm.c, gru.c, rnn.c). */

#ifndef PLN_OP_KERNEL_RNN_RECURRENT_H
#define PLN_OP_KERNEL_RNN_RECURRENT_H

#include "op/kernel/matmul/gemm.h"
#include "op/kernel/rnn/gate.h"

typedef struct pln_recurrence pln_recurrence;

/* A kind of layer. Its gates are one group or two, whose parts of R a step
 * multiplies apart. */
typedef struct pln_cell {
  uint32_t gates;     /* rows of W are so many times hidden */
  uint32_t split;     /* gates of the first group */
  uint32_t functions; /* of a direction, in the order of `activations` */
  const char *fallback[3];
  bool cells;     /* there is a second state, the cell, and peepholes */
  uint32_t bound; /* the first so many gates are given both biases, the others
                     that of W */
  void (*step)(pln_recurrence *run);
} pln_cell;

/* A layer as a call describes it. Extents are counted in elements. */
typedef struct pln_recurrent {
  pln_kernel_call *call;
  const pln_cell *cell;
  pln_dtype dtype;             /* FLOAT32 or FLOAT64 */
  size_t size;                 /* of an element */
  bool batch_first, backwards; /* backwards: its first direction */
  size_t directions, steps, batch, inputs, hidden, width; /* gates * hidden */
  const pln_tensor *x, *w, *r;
  const pln_tensor *bias, *lengths, *initial[2], *peepholes; /* or NULL */
  pln_gate functions[6];
} pln_recurrent;

/* W or R of a direction: `width` rows of k elements. */
typedef struct pln_weights {
  const char *data;
  char *panels; /* as tiles read them, group by group; NULL: in place */
  size_t k;
} pln_weights;

/* One direction while it runs. */
struct pln_recurrence {
  const pln_recurrent *layer;
  size_t direction;
  const pln_gate *functions;
  pln_gemm gemm;
  pln_weights w, r;
  const size_t *panel_rows; /* where the rows of a panel begin in it */
  size_t step;              /* the present one */
  /* Arguments of the gates, `width` elements a step and sequence, for the
   * steps of the block that begins at `block`. */
  char *rows;
  size_t block;
  const char *r_bias;    /* of this direction, or NULL */
  const char *peepholes; /* likewise */
  char *state[2];        /* hidden and cell: `hidden` elements a sequence */
  char *spare;           /* as much again, for the kind of layer */
};

/* Computes all results of the call. */
pln_status pln_recurrent_run(pln_kernel_call *call,
                             const pln_cell *cell) PLN_CHECKED;

/* For steps of a kind of layer. */

/* The gates of a sequence at the present step. */
char *pln_recurrent_row(const pln_recurrence *run, size_t sequence);
/* The sequence still lasts at the present step. */
bool pln_recurrent_lasts(const pln_recurrence *run, size_t sequence);
/* Adds left * R to what is at `to`, for the gates of a group (0 or 1): left has
 * `hidden` elements a sequence, `to` is `to_row` elements further for each. */
void pln_recurrent_multiply(const pln_recurrence *run, const char *left,
                            uint32_t group, char *to, size_t to_row);
/* The same where `to` are the gates of the present step. */
void pln_recurrent_add(const pln_recurrence *run, const char *left,
                       uint32_t group);
/* to[j] += a[j] * b[j], j < n. */
void pln_recurrent_scaled(pln_dtype dtype, void *to, const void *a,
                          const void *b, size_t n);

#endif
