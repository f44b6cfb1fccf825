/* directory.c: the directory of a model file, which external data must lie in.
 * Called by everything that reads model files. */

#include "onnx/directory.h"

pln_status pln_onnx_directory(pln_engine *engine, const char *path,
                              pln_symbol *out) {
  const char *slash = strrchr(path, '/');
  pln_slice folder = {path, slash ? (size_t)(slash - path) : 0};
  if (!slash)
    folder = pln_text(".");
  else if (slash == path)
    folder.size = 1;
  return pln_symbol_intern(engine, folder, out);
}
