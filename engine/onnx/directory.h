/* directory.h: the directory of a model file, which external data must lie
 * in. */

#ifndef PLN_ONNX_DIRECTORY_H
#define PLN_ONNX_DIRECTORY_H

#include "base/base.h"

/* "a/b.onnx" -> "a", "b.onnx" -> ".", "/b.onnx" -> "/". */
pln_status pln_onnx_directory(pln_engine *engine, const char *path,
                              pln_symbol *out) PLN_CHECKED;

#endif
