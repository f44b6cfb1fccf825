/* tensor/literal.h: scalars that Relay text writes as numbers. */

#ifndef PLN_IR_TENSOR_LITERAL_H
#define PLN_IR_TENSOR_LITERAL_H

#include "base/text/writer.h"
#include "ir/tensor/tensor.h"

/* True if the tensor is printed as a literal. */
bool pln_literal(const pln_tensor *tensor);
/* Prints such a tensor. */
void pln_put_literal(pln_writer *w, const pln_tensor *tensor);

#endif
