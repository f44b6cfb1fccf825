/* tensor/ndarray.h: tensors in the JSON of a metadata section. */

#ifndef PLN_IR_TENSOR_NDARRAY_H
#define PLN_IR_TENSOR_NDARRAY_H

#include "base/text/json.h"

/* An entry of "b64ndarrays". PLN_ERR_FORMAT without a diagnostic when it is
 * malformed. The caller owns the tensor. */
pln_status pln_ndarray_read(pln_engine *engine, const pln_json *json,
                            const pln_json_value *value,
                            pln_tensor **out) PLN_CHECKED;

/* Decodes TVM's NDArray in base64. PLN_ERR_FORMAT
 * without a diagnostic when it is malformed. */
pln_status pln_ndarray_read_base64(pln_engine *engine, pln_slice text,
                                   pln_tensor **out) PLN_CHECKED;

#endif
