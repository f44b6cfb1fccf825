/* same_shape.c: whether two tensor types are known to have the same shape. */

#include "ir/type/type.h"

/* Returns true for tensors of equal, known dtype and rank. */
static bool same_tensor_type(const pln_engine *e, pln_type a, pln_type b) {
  return pln_type_get_kind(e, a) == PLN_TYPE_TENSOR &&
         pln_type_get_kind(e, b) == PLN_TYPE_TENSOR && pln_type_dtype(e, a) &&
         pln_type_dtype(e, a) == pln_type_dtype(e, b) &&
         pln_type_rank(e, a) >= 0 && pln_type_rank(e, a) == pln_type_rank(e, b);
}

bool pln_same_shape(const pln_engine *engine, pln_type a, pln_type b) {
  if (!same_tensor_type(engine, a, b))
    return false;
  const pln_dim *x = pln_type_dims(engine, a), *y = pln_type_dims(engine, b);
  for (int32_t i = 0; i < pln_type_rank(engine, a); i++)
    if (x[i] != y[i] || x[i] == PLN_DIM_UNKNOWN)
      return false;
  return true;
}

/* With equal products, one dim is determined by the others unless one of those
 * is 0. */
bool pln_same_shape_by_count(const pln_engine *engine, pln_type a, pln_type b) {
  if (!same_tensor_type(engine, a, b))
    return false;
  const pln_dim *x = pln_type_dims(engine, a), *y = pln_type_dims(engine, b);
  int open = 0;
  bool positive = true;
  for (int32_t i = 0; i < pln_type_rank(engine, a); i++) {
    if (x[i] != y[i] || x[i] == PLN_DIM_UNKNOWN)
      open++;
    else
      positive &= pln_dim_lower_bound(engine, x[i]) > 0;
  }
  return open == 0 || (open == 1 && positive);
}

bool pln_same_extents(const pln_engine *e, pln_type a, pln_type b) {
  int32_t rank = pln_type_rank(e, a);
  if (rank < 0 || rank != pln_type_rank(e, b))
    return false;
  for (int32_t i = 0; i < rank; i++)
    if (pln_type_dims(e, a)[i] != pln_type_dims(e, b)[i] ||
        pln_type_dims(e, a)[i] == PLN_DIM_UNKNOWN)
      return false;
  return true;
}
