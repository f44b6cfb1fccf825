/* directory.h: the folder of a file, where its external data may lie. */

#ifndef PLN_ONNX_DIRECTORY_H
#define PLN_ONNX_DIRECTORY_H

#include "base/base.h"

/* "a/b.onnx" -> "a", "b.onnx" -> ".", "/b.onnx" -> "/". */
pln_status pln_onnx_directory(pln_engine *engine, const char *path,
                              pln_symbol *out) PLN_CHECKED;

#endif
