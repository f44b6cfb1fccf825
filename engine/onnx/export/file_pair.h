/* file_pair.h: replaces a model file and its external data file together. */

#ifndef PLN_ONNX_EXPORT_FILE_PAIR_H
#define PLN_ONNX_EXPORT_FILE_PAIR_H

#include <limits.h>

#include "base/file/file.h"

enum { PLN_PATH_ROOM = PATH_MAX };

/* Writes the model with its data in the file `data` of the same directory. */
typedef struct pln_temporary_model_writer {
  pln_status (*write)(void *ud, const char *data, pln_output *out);
  void *ud;
} pln_temporary_model_writer;

/* A file of external data that the model refers to, or whose bytes it gets. */
typedef struct pln_data_source {
  pln_file *file;
  pln_symbol directory, location;
} pln_data_source;
typedef struct pln_data_sources {
  const pln_data_source *rows;
  uint32_t n;
} pln_data_sources;

/* Commits the data and the model of `path`, or aborts both. At any time a
 * reader sees the old model with its old data or the new one with its own.
 * PLN_ERR_IO when another process has replaced a source since. */
pln_status pln_commit_model_and_data(
    pln_engine *engine, const char *path, const pln_data_sources *sources,
    pln_output *data, pln_output *model,
    const pln_temporary_model_writer *temporary) PLN_CHECKED;
/* Commits the model of `path`, whose external data stays where it is, or aborts
 * it. */
pln_status pln_commit_model(pln_engine *engine, const char *path,
                            const pln_data_sources *sources,
                            pln_output *model) PLN_CHECKED;
/* Returns true for the name of an interim data file, which the next save of its
 * model removes. */
bool pln_is_temporary_name(pln_slice location);

#endif
