/* call.h: builtins that are computed lane by lane. */

#ifndef PLN_CODEGEN_CALL_H
#define PLN_CODEGEN_CALL_H

#include "codegen/writer.h"

/* The text of a builtin's value in one lane, from those of its arguments. */
typedef pln_c_text (*pln_c_lane_fn)(pln_cw *w, pln_ref ref,
                                    const pln_c_text *args);

/* Whether C's library or a helper has a function of floats by that name, and
 * how many arguments it takes. */
bool pln_c_is_function(pln_slice name, uint32_t *n_args);
pln_c_text pln_c_call_function(pln_cw *w, pln_slice name, pln_dtype dtype,
                               uint32_t n, const pln_c_text *args);
pln_c_text pln_c_function_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
/* Whether a call of one argument is a function of whole vectors; its text for a
 * chunk of several lanes. */
bool pln_c_is_vector_function(pln_cw *w, pln_ref ref);
pln_c_text pln_c_vector_function(pln_cw *w, pln_ref ref, uint32_t lanes,
                                 pln_c_text arg);
pln_c_text pln_c_ldexp_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
pln_c_text pln_c_fma_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
pln_c_text pln_c_test_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
pln_c_text pln_c_bitwise_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
pln_c_text pln_c_shift_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
pln_c_text pln_c_count_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
pln_c_text pln_c_large_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
pln_c_text pln_c_q_lane(pln_cw *w, pln_ref ref, const pln_c_text *args);
pln_c_text pln_c_reinterpret_lane(pln_cw *w, pln_ref ref,
                                  const pln_c_text *args);

#endif
