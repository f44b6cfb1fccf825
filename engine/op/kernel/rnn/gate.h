/* gate.h: activation functions of the gates of recurrent layers, and how a call
 * names them. */

#ifndef PLN_OP_KERNEL_RNN_GATE_H
#define PLN_OP_KERNEL_RNN_GATE_H

#include "op/kernel/kernel.h"

typedef struct pln_gate_kind pln_gate_kind;

typedef struct pln_gate {
  const pln_gate_kind *kind;
  double alpha, beta;
  double clip; /* arguments are clamped to [-clip, clip]; INFINITY: not */
} pln_gate;

/* Applies the function in place to x[0, n), of FLOAT32 or FLOAT64. */
void pln_gate_run(const pln_gate *gate, pln_dtype dtype, void *x, size_t n);
/* Reads `n` functions from the attributes activations, activation_alpha and
 * activation_beta; the default of function i is fallback[i % per]. */
pln_status pln_gates_read(const pln_kernel_call *call, uint32_t n, uint32_t per,
                          const char *const *fallback,
                          pln_gate *out) PLN_CHECKED;

#endif
