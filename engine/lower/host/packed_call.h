/* packed_call.h: functions of a module that are called as TVM's runtime calls
 * them, and passes that rewrite all PrimFuncs of a module together. */

#ifndef PLN_LOWER_HOST_PACKED_CALL_H
#define PLN_LOWER_HOST_PACKED_CALL_H

#include "lower/host/host.h"

/* A function that is seen from outside and has the default calling convention.
 */
bool pln_is_packed_function(const pln_graph *function);
/* The function of the module that an expression calls; NULL: it calls none. */
const pln_graph *pln_called_function(const pln_module *module,
                                     const pln_graph *g, pln_ref call);
/* A call of such a function of the module, as T.call_cpacked. *node is left as
 * it is for other expressions. */
pln_status pln_packed_call_lower(const pln_module *module, const pln_graph *g,
                                 pln_stmt_rewrite *s, pln_ref old,
                                 pln_ref *node) PLN_CHECKED;
/* Every PrimFunc of the run's module by `rewrite`, which may answer with the
 * function itself. Sets the result. */
typedef pln_status (*pln_prim_func_rewriter)(void *ud, const pln_module *module,
                                             uint32_t index,
                                             const pln_graph *function,
                                             pln_graph **out);
pln_status pln_rewrite_prim_funcs(pln_pass_run *run,
                                  pln_prim_func_rewriter rewrite,
                                  void *ud) PLN_CHECKED;

#endif
