/* axes.c: see axes.h. */

#include "op/kernel/reduce/axes.h"

int64_t pln_loop_nest_advance(const pln_loop_nest *nest, int64_t *at,
                              int64_t offset) {
  for (uint32_t k = nest->rank; k-- > 0;) {
    offset += nest->steps[k];
    if (++at[k] < nest->dims[k])
      return offset;
    offset -= nest->steps[k] * nest->dims[k];
    at[k] = 0;
  }
  return offset;
}

/* Multiplies extents. Products next to an empty axis may overflow, but such a
 * nest is never iterated. */
static int64_t times(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

static void add_axis(pln_loop_nest *n, int64_t dim, int64_t step, bool joins) {
  n->count *= (size_t)dim;
  if (joins) { /* the previous axis is contiguous with this one */
    n->dims[n->rank - 1] = times(n->dims[n->rank - 1], dim);
    n->steps[n->rank - 1] = step;
    return;
  }
  n->dims[n->rank] = dim;
  n->steps[n->rank++] = step;
}

void pln_reduction_plan(const pln_tensor *x, const bool *axes, bool keep,
                        pln_reduction *out) {
  int64_t step = 1, steps[PLN_MAX_RANK];
  const pln_loop_nest *last = NULL;
  *out = (pln_reduction){.kept.count = 1, .reduced.count = 1};
  for (uint32_t i = x->rank; i-- > 0; step = times(step, x->dims[i]))
    steps[i] = step;
  for (uint32_t i = 0; i < x->rank; i++) {
    pln_loop_nest *nest = axes[i] ? &out->reduced : &out->kept;
    if (!axes[i] || keep)
      out->dims[out->rank++] = axes[i] ? 1 : x->dims[i];
    if (x->dims[i] == 1)
      continue;
    add_axis(nest, x->dims[i], steps[i], nest == last);
    last = nest;
  }
}

void pln_loop_nest_pop(pln_loop_nest *nest, size_t *dim, size_t *step) {
  *dim = 1;
  *step = 1;
  if (nest->rank == 0)
    return;
  nest->rank--;
  *dim = (size_t)nest->dims[nest->rank];
  *step = (size_t)nest->steps[nest->rank];
  nest->count = *dim ? nest->count / *dim : 0;
}

int64_t pln_loop_nest_seek(const pln_loop_nest *nest, size_t i, int64_t *at) {
  int64_t offset = 0;
  for (uint32_t k = nest->rank; k-- > 0; i /= (size_t)nest->dims[k]) {
    at[k] = (int64_t)(i % (size_t)nest->dims[k]);
    offset += at[k] * nest->steps[k];
  }
  return offset;
}
