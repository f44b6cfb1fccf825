/* gate.h: the functions that recurrent layers apply to their gates, and how a
 * call names them. */

#ifndef PLN_OP_KERNEL_RNN_GATE_H
#define PLN_OP_KERNEL_RNN_GATE_H

#include "op/kernel/kernel.h"

typedef struct pln_gate_kind pln_gate_kind;

typedef struct pln_gate {
  const pln_gate_kind *kind;
  double alpha, beta;
  double clip; /* arguments are held within -clip and clip; INFINITY: no */
} pln_gate;

/* x[0, n) becomes the function of it, in FLOAT32 or FLOAT64. */
void pln_gate_run(const pln_gate *gate, pln_dtype dtype, void *x, size_t n);
/* Reads `n` functions from the attributes activations, activation_alpha and
 * activation_beta; fallback[i % per] stands for what is not given. */
pln_status pln_gates_read(const pln_kernel_call *call, uint32_t n, uint32_t per,
                          const char *const *fallback,
                          pln_gate *out) PLN_CHECKED;

#endif
