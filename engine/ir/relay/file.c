/* relay/file.c: reads and writes files of Relay text and of TVMScript. Called
 * by the command line and the binding. */

#include "base/file/file.h"
#include "ir/graph/module.h"

static bool is_text(const char *kind) {
  return !strcmp(kind, PLN_FILE_RELAY) || !strcmp(kind, "text");
}

static bool ends_with(const char *path, const char *suffix) {
  size_t n = strlen(path), k = strlen(suffix);
  return n >= k && !strcmp(path + n - k, suffix);
}

static bool is_script(const char *path) {
  return ends_with(path, ".tir") || ends_with(path, ".tvmscript") ||
         ends_with(path, ".py");
}

pln_status pln_parse_file(pln_engine *engine, const char *path,
                          pln_module **out) {
  pln_file *file;
  PLN_TRY(pln_file_map(engine, path, &file));
  pln_slice text = {(const char *)pln_file_data(file),
                    (size_t)pln_file_size(file)};
  size_t mark = pln_diag_count(engine);
  pln_status status = is_script(path)
                          ? pln_parse_script(engine, text, path, out)
                          : pln_parse_module(engine, text, path, NULL, out);
  const char *kind = pln_file_kind(text);
  if (status == PLN_ERR_FORMAT && (!kind || !is_text(kind))) {
    pln_diag_drop(engine, mark);
    status = pln_diag_error(
        engine, PLN_ERR_FORMAT, NULL, "%s: this is not Relay text, but %s",
        path, kind ? kind : "binary data; an ONNX model is called NAME.onnx");
  }
  pln_file_release(file);
  return status;
}

typedef struct text_output {
  pln_output *file;
  char last; /* byte that was written */
} text_output;

static pln_status write(void *ud, const char *data, size_t size) {
  text_output *out = ud;
  if (size > 0)
    out->last = data[size - 1];
  return pln_output_write(out->file, data, size);
}

/* The last line of TVMScript ends like the others. Relay text is TVM's. */
static pln_status end_line(text_output *out) {
  return out->last == '\n' ? PLN_OK : write(out, "\n", 1);
}

pln_status pln_print_file(const pln_module *module, const char *path) {
  text_output out = {.last = '\n'};
  PLN_TRY(pln_output_open(module->engine, path, &out.file));
  pln_status status = pln_print_module(module, NULL, write, &out);
  if (status == PLN_OK && is_script(path))
    status = end_line(&out);
  if (status == PLN_OK)
    return pln_output_commit(out.file);
  pln_output_abort(out.file);
  return status;
}
