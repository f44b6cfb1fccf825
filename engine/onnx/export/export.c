/* export.c: writes a module as a ModelProto: pln_onnx_save and pln_onnx_write.
 *
 * The model is built as a rope that refers to slices of its source files; only
 * streaming reads them. Invariant: the target's name is replaced only when
 * everything is written, and OUT.data before OUT. */

#include <stdio.h>
#include <stdlib.h>

#include "onnx/export/export.h"
#include "onnx/export/file_pair.h"
#include "onnx/metadata.h"

/* The size limit of protobuf's own libraries. */
#define MAX_BYTES ((uint64_t)INT32_MAX)
enum { THRESHOLD = 1024, DEFAULT_IR = 8, IR_WITH_DEFAULTS = 4 };

/* -------------------------------------------------------------------- model */

static pln_message source_of(const pln_module *m) {
  if (!m->source)
    return (pln_message){0};
  return (pln_message){m->source, pln_file_data(m->source),
                       (size_t)pln_file_size(m->source)};
}

/* A field of the old model. Fields are written in order of their numbers. */
typedef struct model_field {
  uint32_t tag;
  uint32_t order;
  pln_message field;
} model_field;

typedef struct model_fields {
  model_field *all;
  uint32_t count, capacity;
} model_fields;

static int by_number(const void *a, const void *b) {
  const model_field *x = a, *y = b;
  uint32_t m = x->tag >> 3, n = y->tag >> 3;
  if (m != n)
    return m < n ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static pln_status read_model(pln_export *ex, model_fields *old) {
  pln_wire w = pln_wire_open(source_of(ex->module));
  pln_field f;
  while (pln_wire_next(&w, &f)) {
    PLN_TRY(pln_mem_grow(ex->engine, (void **)&old->all, &old->capacity,
                         (size_t)old->count + 1, sizeof *old->all));
    old->all[old->count] = (model_field){
        f.tag, old->count, {w.file, f.start, (size_t)(f.next - f.start)}};
    old->count++;
  }
  if (old->count)
    qsort(old->all, old->count, sizeof *old->all, by_number);
  return pln_wire_done(&w, ex->engine, "ModelProto");
}

static int64_t ir_version(const pln_export *ex) {
  return pln_attrs_int(ex->engine, ex->module->attrs, "ir_version", DEFAULT_IR);
}

static pln_status put_header(pln_export *ex) {
  PLN_TRY(pln_rope_int(ex->rope, MODEL_IR_VERSION, (uint64_t)ir_version(ex)));
  PLN_TRY(pln_rope_bytes(ex->rope, MODEL_PRODUCER_NAME, pln_text("perilune")));
  return pln_rope_bytes(ex->rope, MODEL_PRODUCER_VERSION,
                        pln_text(pln_version()));
}

/* Encodes the opsets again only if they differ from the file's, or if the main
 * graph uses domains that the file does not import. */
static pln_status put_opsets(pln_export *ex, const model_fields *old) {
  pln_attrs before = 0;
  PLN_TRY(pln_export_used_opsets(ex, ex->opsets, &ex->opsets));
  pln_message source = source_of(ex->module);
  if (source.data)
    PLN_TRY(
        pln_decode_opsets(&ex->decoder, source, MODEL_OPSET_IMPORT, &before));
  if (!source.data || before != ex->opsets)
    return pln_encode_opsets(ex->rope, ex->engine, MODEL_OPSET_IMPORT,
                             ex->opsets);
  for (uint32_t i = 0; i < old->count; i++)
    if (old->all[i].tag == MODEL_OPSET_IMPORT)
      PLN_TRY(pln_rope_fields(ex->rope, old->all[i].field));
  return PLN_OK;
}

/* Writes the schedules of the module in place of those of the file; an entry
 * that says the same is copied. Other metadata is copied, too. */
static pln_status write_metadata(pln_export *ex, const model_field *f,
                                 const pln_wire *w, const pln_field *field) {
  bool is_schedules;
  pln_slice value;
  PLN_TRY(pln_metadata_schedules(ex->engine, pln_wire_message(w, field),
                                 &is_schedules, &value));
  pln_slice own =
      pln_attrs_string(ex->engine, ex->module->attrs, "schedules", "");
  if (is_schedules && !pln_slice_equal(value, own))
    return pln_metadata_put_schedules(ex->rope, ex->engine, ex->module->attrs);
  return pln_rope_fields(ex->rope, f->field);
}

/* Copies a field of the file. The IR version may have changed. */
static pln_status write_model_field(pln_export *ex, const model_field *f) {
  pln_wire w = pln_wire_open(f->field);
  pln_field field;
  if (f->tag == MODEL_METADATA && pln_wire_next(&w, &field))
    return write_metadata(ex, f, &w, &field);
  if (f->tag == MODEL_IR_VERSION && pln_wire_next(&w, &field) &&
      (int64_t)field.value != ir_version(ex))
    return pln_rope_int(ex->rope, MODEL_IR_VERSION, (uint64_t)ir_version(ex));
  return pln_rope_fields(ex->rope, f->field);
}

/* Copies the old fields with a number in [from, to), except those that are
 * encoded here. */
static pln_status copy_range(pln_export *ex, const model_fields *old,
                             uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < old->count; i++) {
    const model_field *f = &old->all[i];
    uint32_t number = f->tag >> 3;
    if (number >= from && number < to && f->tag != MODEL_GRAPH &&
        f->tag != MODEL_OPSET_IMPORT && f->tag != MODEL_FUNCTIONS)
      PLN_TRY(write_model_field(ex, f));
  }
  return PLN_OK;
}

static pln_status put_main(pln_export *ex, pln_symbol main_name) {
  uint32_t i = pln_module_find(ex->module, main_name);
  if (i == PLN_NONE)
    return pln_diag_error(ex->engine, PLN_ERR_ARGUMENT, NULL,
                          "the module has no function @main to export");
  return pln_export_function(
      ex, main_name, pln_module_function_at(ex->module, i), MODEL_GRAPH);
}

/* A function of the module and its offset in the file. */
typedef struct ordered_function {
  uint64_t offset; /* UINT64_MAX: not from the file */
  uint32_t index;
} ordered_function;

static int by_place(const void *a, const void *b) {
  const ordered_function *x = a, *y = b;
  if (x->offset != y->offset)
    return x->offset < y->offset ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static uint64_t export_order_of(const pln_module *m, uint32_t index) {
  const pln_graph *g = pln_module_function_at(m, index);
  const pln_node *root = &g->nodes[g->root];
  if (root->kind != PLN_FUNCTION || !g->origins)
    return UINT64_MAX;
  const pln_origin *o =
      pln_origins_row(g->origins, g->scopes[root->data].origin);
  return o->file && o->file == m->source ? o->offset : UINT64_MAX;
}

/* Writes functions in the order of the file; new ones come last. */
static pln_status put_functions(pln_export *ex, pln_symbol main_name) {
  uint32_t n = pln_module_count(ex->module);
  ordered_function *all = pln_mem_new(ex->engine, n * sizeof *all);
  if (!all)
    return pln_nomem(ex->engine);
  for (uint32_t i = 0; i < n; i++)
    all[i] = (ordered_function){export_order_of(ex->module, i), i};
  qsort(all, n, sizeof *all, by_place);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    pln_symbol name = pln_module_name_at(ex->module, all[i].index);
    if (name != main_name)
      status = pln_export_function(
          ex, name, pln_module_function_at(ex->module, all[i].index),
          MODEL_FUNCTIONS);
  }
  pln_mem_free(ex->engine, all, n * sizeof *all);
  return status;
}

/* Whether the file has schedules, whose place those of the module take. */
static bool has_schedules(const pln_export *ex, const model_fields *old) {
  for (uint32_t i = 0; i < old->count; i++) {
    bool is_schedules = false;
    pln_slice value;
    pln_field field;
    pln_wire w = pln_wire_open(old->all[i].field);
    if (old->all[i].tag != MODEL_METADATA || !pln_wire_next(&w, &field))
      continue;
    if (pln_metadata_schedules(ex->engine, pln_wire_message(&w, &field),
                               &is_schedules, &value) == PLN_OK &&
        is_schedules)
      return true;
  }
  return false;
}

static pln_status put_model(pln_export *ex, const model_fields *old) {
  enum { GRAPH = 7, OPSETS = 8, FUNCTIONS = 25 };
  pln_symbol main_name;
  PLN_TRY(pln_symbol_intern(ex->engine, pln_text("main"), &main_name));
  PLN_TRY(pln_model_opsets(ex->module, &ex->opsets));
  ex->ir_version = ir_version(ex);
  ex->constant_inputs = ex->ir_version < IR_WITH_DEFAULTS;
  if (!ex->module->source)
    PLN_TRY(put_header(ex));
  PLN_TRY(copy_range(ex, old, 1, GRAPH));
  PLN_TRY(put_main(ex, main_name));
  PLN_TRY(put_opsets(ex, old));
  PLN_TRY(copy_range(ex, old, GRAPH, FUNCTIONS));
  if (!has_schedules(ex, old))
    PLN_TRY(
        pln_metadata_put_schedules(ex->rope, ex->engine, ex->module->attrs));
  PLN_TRY(put_functions(ex, main_name));
  return copy_range(ex, old, FUNCTIONS, UINT32_MAX);
}

/* Converts the module to the operators of its opset. */
static pln_status make_conforming(pln_export *ex) {
  model_fields old = {0};
  ex->decoder =
      (pln_decoder){.engine = ex->engine, .directory = ex->module->directory};
  pln_scoped_names_init(&ex->used, ex->engine);
  pln_scoped_names_init(&ex->node_names, ex->engine);
  pln_arena_init(&ex->names_arena, ex->engine);
  pln_status status = read_model(ex, &old);
  if (status == PLN_OK)
    status = put_model(ex, &old);
  pln_mem_free(ex->engine, old.all, old.capacity * sizeof *old.all);
  return status;
}

/* Builds the whole model in ex->rope, after conversion. */
static pln_status make_model(pln_export *ex) {
  if (ex->wanted_opset)
    PLN_TRY(
        pln_onnx_convert_opset(ex->module, ex->wanted_opset, &ex->conforming));
  else
    PLN_TRY(pln_model_convert_for_export(ex->module, &ex->conforming));
  ex->module = ex->conforming;
  return make_conforming(ex);
}

/* -------------------------------------------------------------------- files */

typedef struct save_run {
  pln_engine *engine;
  const pln_module *module;
  const char *path;
  char *folder;
  char *data_path; /* PATH.data */
  size_t room;     /* allocated bytes of each */
  size_t threshold;
  int64_t opset; /* 0: the model's own */
  pln_value_info value_info;
  bool embeds;
} save_run;

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static pln_status stream(const save_run *s, const pln_data_sources *sources,
                         pln_rope *rope) {
  pln_output *out;
  PLN_TRY(pln_output_open(s->engine, s->path, &out));
  pln_status status = pln_rope_output(rope, out);
  if (status == PLN_OK)
    return pln_commit_model(s->engine, s->path, sources, out);
  pln_output_abort(out);
  return status;
}

/* A pln_temporary_model_writer. Builds the model again, because its data has
 * another location. */
static pln_status write_temporary_model(void *ud, const char *name,
                                        pln_output *out) {
  const save_run *s = ud;
  pln_rope rope;
  pln_data_file data = {.name = name, .threshold = s->threshold};
  pln_rope_init(&rope, s->engine);
  pln_rope_init(&data.rope, s->engine);
  pln_export ex = {.engine = s->engine,
                   .module = s->module,
                   .rope = &rope,
                   .data = &data,
                   .directory = s->folder};
  pln_status status = make_model(&ex);
  if (status == PLN_OK)
    status = pln_rope_output(&rope, out);
  pln_export_free(&ex);
  pln_rope_free(&data.rope);
  pln_rope_free(&rope);
  return status;
}

/* Both files are complete before either is visible. */
static pln_status stream_both(const save_run *s,
                              const pln_data_sources *sources, pln_rope *model,
                              pln_rope *data) {
  pln_output *first, *second;
  PLN_TRY(pln_output_open(s->engine, s->data_path, &first));
  pln_status status = pln_rope_output(data, first);
  if (status != PLN_OK ||
      (status = pln_output_open(s->engine, s->path, &second)) != PLN_OK) {
    pln_output_abort(first);
    return status;
  }
  status = pln_rope_output(model, second);
  if (status != PLN_OK) {
    pln_output_abort(first);
    pln_output_abort(second);
    return status;
  }
  pln_temporary_model_writer temporary = {write_temporary_model, (void *)s};
  return pln_commit_model_and_data(s->engine, s->path, sources, first, second,
                                   &temporary);
}

/* Writes once. *again is true if the model needs external data and must be
 * written again. */
static pln_status try_write(const save_run *s, bool external, bool *again) {
  pln_rope rope;
  pln_data_file data = {.name = base_of(s->data_path),
                        .threshold = s->threshold};
  pln_rope_init(&rope, s->engine);
  pln_rope_init(&data.rope, s->engine);
  pln_export ex = {.engine = s->engine,
                   .module = s->module,
                   .rope = &rope,
                   .data = external ? &data : NULL,
                   .embeds = s->embeds,
                   .directory = s->folder,
                   .wanted_opset = s->opset,
                   .value_info = s->value_info};
  pln_status status = make_model(&ex);
  *again = !external && (ex.moved || rope.size > MAX_BYTES);
  pln_data_sources sources = {ex.files, ex.n_files};
  if (status == PLN_OK && !*again)
    status = external && data.rope.size
                 ? stream_both(s, &sources, &rope, &data.rope)
                 : stream(s, &sources, &rope);
  pln_export_free(&ex);
  pln_rope_free(&data.rope);
  pln_rope_free(&rope);
  return status;
}

static pln_status name_files(save_run *s) {
  s->room = strlen(s->path) + sizeof ".data";
  s->folder = pln_mem_new(s->engine, s->room);
  s->data_path = pln_mem_new(s->engine, s->room);
  if (!s->folder || !s->data_path)
    return pln_nomem(s->engine);
  snprintf(s->data_path, s->room, "%s.data", s->path);
  snprintf(s->folder, s->room, "%s", s->path);
  char *slash = strrchr(s->folder, '/');
  if (!slash)
    memcpy(s->folder, ".", 2);
  else
    slash[slash == s->folder] = '\0';
  return PLN_OK;
}

pln_status pln_onnx_save(const pln_module *module, const char *path,
                         const pln_onnx_save_options *options) {
  save_run s = {.engine = pln_module_engine(module),
                .module = module,
                .path = path,
                .opset = options ? options->opset : 0,
                .threshold = options && options->external_threshold
                                 ? options->external_threshold
                                 : THRESHOLD,
                .value_info =
                    options ? options->value_info : PLN_VALUE_INFO_AUTO,
                .embeds = options && options->embed_data};
  bool again = false;
  pln_status status = name_files(&s);
  pln_stoppable_begin(s.engine);
  if (status == PLN_OK)
    status = try_write(&s, options && options->external_data, &again);
  if (status == PLN_OK && again)
    status = try_write(&s, true, &again);
  pln_stoppable_end(s.engine);
  pln_mem_free(s.engine, s.folder, s.room);
  pln_mem_free(s.engine, s.data_path, s.room);
  return status;
}

pln_status pln_onnx_write(const pln_module *module,
                          const pln_onnx_save_options *options,
                          pln_write_fn write, void *ud) {
  pln_rope rope;
  pln_engine *engine = pln_module_engine(module);
  pln_rope_init(&rope, engine);
  pln_export ex = {.engine = engine,
                   .module = module,
                   .rope = &rope,
                   .embeds = options && options->embed_data};
  if (options) {
    ex.value_info = options->value_info;
    ex.wanted_opset = options->opset;
  }
  pln_stoppable_begin(engine);
  pln_status status = make_model(&ex);
  if (status == PLN_OK && ex.embeds && rope.size > MAX_BYTES)
    status = pln_diag_error(engine, PLN_ERR_LIMIT, NULL,
                            "with its data the model is over 2 GB, which needs "
                            "a file beside it");
  if (status == PLN_OK)
    status = pln_rope_write(&rope, write, ud);
  pln_stoppable_end(engine);
  pln_export_free(&ex);
  pln_rope_free(&rope);
  return status;
}
