/* tensor/literal.c: prints scalars that Relay text writes as numbers: int16,
 * int32, int64, float16, float32, float64 and bool, as in TVM. All other
 * constants are entries of the metadata section. */

#include "ir/tensor/literal.h"

bool pln_literal(const pln_tensor *tensor) {
  if (pln_tensor_rank(tensor) != 0 || tensor->external)
    return false;
  switch (pln_tensor_dtype(tensor)) {
  case PLN_INT16:
  case PLN_INT32:
  case PLN_INT64:
  case PLN_FLOAT16:
  case PLN_FLOAT32:
  case PLN_FLOAT64:
  case PLN_BOOL: return true;
  default: return false;
  }
}

static void put_integer(pln_writer *w, const pln_tensor *tensor) {
  int64_t value = 0;
  pln_dtype dtype = pln_tensor_dtype(tensor);
  pln_tensor_int(tensor, 0, &value);
  if (dtype == PLN_BOOL) {
    pln_put_text(w, value ? "True" : "False");
    return;
  }
  pln_put_int(w, value);
  pln_put_text(w, dtype == PLN_INT16 ? "i16" : dtype == PLN_INT64 ? "i64" : "");
}

void pln_put_literal(pln_writer *w, const pln_tensor *tensor) {
  const void *data;
  double wide;
  float narrow;
  uint16_t half;
  pln_dtype dtype = pln_tensor_dtype(tensor);
  if (dtype != PLN_FLOAT16 && dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64) {
    put_integer(w, tensor);
    return;
  }
  pln_status status = pln_tensor_data(tensor, &data);
  if (status != PLN_OK) {
    w->status = status;
    return;
  }
  if (dtype == PLN_FLOAT64) {
    memcpy(&wide, data, sizeof wide);
  } else if (dtype == PLN_FLOAT32) {
    memcpy(&narrow, data, sizeof narrow);
    wide = (double)narrow;
  } else {
    memcpy(&half, data, sizeof half);
    wide = (double)pln_half_to_float(half);
  }
  pln_put_float(w, wide, dtype);
}
