/* codegen.h: what a C source consists of. */

#ifndef PLN_CODEGEN_CODEGEN_H
#define PLN_CODEGEN_CODEGEN_H

#include "base/process/process.h"

struct pln_c_code {
  pln_engine *engine;
  pln_buffer source, header;
  pln_c_function *functions;
  uint32_t n_functions;
  bool threads;
};

/* pln_cc_compile and pln_cc_link by a compiler of that version, which is not
 * asked for it; NULL: it is. */
pln_status pln_cc_compile_by(pln_engine *engine, pln_slice source, bool threads,
                             pln_c_artifact artifact,
                             const pln_cc_options *options, const char *version,
                             pln_cc_result *out) PLN_CHECKED;
pln_status pln_cc_link_by(pln_engine *engine, uint32_t n,
                          const char *const *objects,
                          const pln_cc_options *options, const char *version,
                          pln_cc_result *out) PLN_CHECKED;

#endif
