/* rotary_embedding.c: RotaryEmbedding of com.microsoft, which has its operands
 * in another order than ONNX's and may count positions from an offset. Called
 * through ops.def; group_query_attention.c rotates with it too.
 *
 *     RotaryEmbedding(x, [3], cos, sin)
 *         =>   rotary_embedding(x, cos, sin, [[3, 4, 5, ...], ...])
 *
 * Semantics: ONNX Runtime's CPU kernel. */

#include "op/kernel/microsoft/rotary_embedding.h"

#include "op/kernel/half_as_float.h"

const pln_tensor *pln_compose_positions(pln_composition *s, int64_t batch,
                                        int64_t steps, const int64_t *first,
                                        int64_t stride) {
  int64_t dims[2] = {batch, steps};
  pln_tensor *t = NULL;
  if (s->status == PLN_OK)
    s->status = pln_tensor_new(s->call->engine, PLN_INT64, 2, dims, &t);
  const pln_tensor *kept = pln_compose_own(s, t);
  int64_t *out = kept ? pln_tensor_writable(t) : NULL;
  for (int64_t b = 0; kept && b < batch; b++)
    for (int64_t i = 0; i < steps; i++)
      *out++ = (int64_t)((uint64_t)first[b * stride] + (uint64_t)i);
  return kept;
}

/* One offset for all, or a position for each batch and step. */
static const pln_tensor *read_positions(pln_composition *s, int64_t batch,
                                        int64_t steps) {
  const pln_tensor *t = pln_kernel_arg(s->call, 1);
  if (t->dtype != PLN_INT64 || t->rank < 1 || t->rank > 2 ||
      (t->rank == 1 && t->count != 1))
    pln_composition_refuse(s, "the positions are neither one int64 nor one for "
                              "each batch and step");
  if (t->rank == 1 && s->status == PLN_OK)
    return pln_compose_positions(s, batch, steps, t->data, 0);
  return t;
}

/* Without num_heads, the tables tell the size of a head. */
static int64_t head_count(const pln_kernel_call *call, const pln_tensor *x,
                          const pln_tensor *table) {
  int64_t n = pln_kernel_int(call, "num_heads", 0);
  int64_t pairs = table->rank == 2 ? table->dims[1] : 0;
  return n == 0 && x->rank == 3 && pairs > 0 ? x->dims[2] / (2 * pairs) : n;
}

/* (x, positions, cosines, sines) */
static pln_status rotate(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0),
                   *table = pln_kernel_arg(call, 2);
  pln_composition s;
  pln_composition_begin(&s, call);
  if (x->rank != 3 && x->rank != 4)
    return pln_kernel_refuse(call, "the input has rank %u, not 3 or 4",
                             x->rank);
  const pln_tensor *args[4] = {
      x, table, pln_kernel_arg(call, 3),
      read_positions(&s, x->dims[0], x->dims[x->rank - 2])};
  pln_compose_int(&s, "num_heads", head_count(call, x, table));
  pln_compose_forward(&s, "interleaved");
  pln_compose_forward(&s, "rotary_embedding_dim");
  return pln_composition_finish(
      &s, pln_compose_call(&s, PLN_OP_ROTARY_EMBEDDING, 4, args));
}

pln_status pln_kernel_rotary_embedding_at(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", rotate);
}
