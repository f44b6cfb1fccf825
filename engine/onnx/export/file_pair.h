/* file_pair.h: replaces a model file and its external data file together. */

#ifndef PLN_ONNX_EXPORT_FILE_PAIR_H
#define PLN_ONNX_EXPORT_FILE_PAIR_H

#include <limits.h>

#include "base/file.h"

enum { PLN_PATH_ROOM = PATH_MAX };

/* Writes the model with its data in the file `data` of the same directory. */
typedef struct pln_temporary_model_writer {
  pln_status (*write)(void *ud, const char *data, pln_output *out);
  void *ud;
} pln_temporary_model_writer;

/* Commits the data and the model of `path`, or aborts both. At any time a
 * reader sees the old model with its old data or the new one with its own. */
pln_status pln_commit_model_and_data(
    pln_engine *engine, const char *path, pln_output *data, pln_output *model,
    const pln_temporary_model_writer *temporary) PLN_CHECKED;
/* Commits the model of `path`, which has no external data, or aborts it. */
pln_status pln_commit_model(const char *path, pln_output *model) PLN_CHECKED;
/* Returns true for the name of an interim data file, which the next save of its
 * model removes. */
bool pln_is_temporary_name(pln_slice location);

#endif
