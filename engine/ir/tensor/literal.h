/* tensor/literal.h: scalars that text writes as numbers. */

#ifndef PLN_IR_TENSOR_LITERAL_H
#define PLN_IR_TENSOR_LITERAL_H

#include "base/writer.h"
#include "ir/tensor/tensor.h"

/* True of a scalar that is written as a literal. */
bool pln_literal(const pln_tensor *tensor);
/* Writes such a one. */
void pln_put_literal(pln_writer *w, const pln_tensor *tensor);

#endif
