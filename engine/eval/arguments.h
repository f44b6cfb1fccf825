/* arguments.h: checks arguments against a function's parameters. */

#ifndef PLN_EVAL_ARGUMENTS_H
#define PLN_EVAL_ARGUMENTS_H

#include "eval/eval.h"
#include "ir/tensor/runtime_value.h"

/* PLN_ERR_ARGUMENT for a wrong number of arguments. PLN_ERR_TYPE names the
 * parameter, the expected type and the actual one. */
pln_status pln_check_arguments(const pln_graph *function, uint32_t n,
                               const pln_runtime_value *args) PLN_CHECKED;

#endif
