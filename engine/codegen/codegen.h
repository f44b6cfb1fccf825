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

#endif
