/* relay/print/literal.h: scalars that text writes as numbers. */

#ifndef PLN_IR_RELAY_PRINT_LITERAL_H
#define PLN_IR_RELAY_PRINT_LITERAL_H

#include "ir/tensor/tensor.h"
#include "ir/relay/print/writer.h"

/* True of a scalar that is written as a literal. */
bool pln_literal(const pln_tensor *tensor);
/* Writes such a one. */
void pln_put_literal(pln_writer *w, const pln_tensor *tensor);

#endif
