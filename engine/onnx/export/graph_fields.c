/* graph_fields.c: the fields of a graph other than nodes.
 *
 * What the IR does not hold is copied from the graph's old message, in order of
 * field numbers. Entries about values that no longer exist are dropped; entries
 * about names that never were in the graph stay. */

#include <stdlib.h>

#include "onnx/export/export.h"

/* A field of the old message. */
typedef struct old_field {
  uint32_t tag;
  uint32_t order; /* position in the message */
  pln_message field;
  pln_message inside; /* contents of a PLN_BYTES field */
} old_field;

typedef struct old_fields {
  old_field *all; /* all except nodes, by number, then by position */
  uint32_t count, capacity;
  uint32_t n_nodes;       /* number of nodes in the old message */
  uint32_t n_kept;        /* number of fields copied unchanged */
  pln_scoped_names known; /* names defined by the old graph; filled on demand */
  bool requested;
} old_fields;

static const pln_export_frame *top_fields_frame(const pln_export *ex) {
  return &ex->frames[ex->n_frames - 1];
}

static int by_number(const void *a, const void *b) {
  const old_field *x = a, *y = b;
  uint32_t m = x->tag >> 3, n = y->tag >> 3;
  if (m != n)
    return m < n ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static pln_status read_old(pln_export *ex, old_fields *old) {
  const pln_export_frame *f = top_fields_frame(ex);
  uint32_t node = f->is_function ? FUNCTION_NODE : GRAPH_NODE;
  pln_wire w = pln_wire_open(f->source);
  pln_field field;
  bool sorted = true;
  *old = (old_fields){0};
  pln_scoped_names_init(&old->known, ex->engine);
  while (pln_wire_next(&w, &field)) {
    old->n_nodes += field.tag == node;
    if (field.tag == node)
      continue;
    PLN_TRY(pln_mem_grow(ex->engine, (void **)&old->all, &old->capacity,
                         (size_t)old->count + 1, sizeof *old->all));
    old->all[old->count] = (old_field){
        .tag = field.tag,
        .order = old->count,
        .field = {w.file, field.start, (size_t)(field.next - field.start)}};
    if ((field.tag & 7) == PLN_BYTES)
      old->all[old->count].inside = pln_wire_message(&w, &field);
    sorted &= !old->count ||
              by_number(&old->all[old->count - 1], &old->all[old->count]) < 0;
    old->count++;
  }
  if (!sorted)
    qsort(old->all, old->count, sizeof *old->all, by_number);
  return pln_wire_done(&w, ex->engine, "GraphProto");
}

static void free_old(pln_export *ex, old_fields *old) {
  pln_mem_free(ex->engine, old->all, old->capacity * sizeof *old->all);
  pln_scoped_names_free(&old->known);
}

static pln_status copy_old_field(pln_export *ex, old_fields *old,
                                 const old_field *f) {
  old->n_kept++;
  return pln_rope_fields(ex->rope, f->field);
}

/* ------------------------------------------------------------------- values */

static uint32_t live_row(const pln_export *ex, pln_slice name) {
  return pln_scoped_names_find(&ex->used, name, top_fields_frame(ex)->mark);
}

/* The component of `type`, the type of a node, that belongs to the name of the
 * row; 0 if none of the node's results has that name. */
static pln_type part_named(const pln_export *ex, uint32_t row, pln_type type) {
  const pln_scoped_name *r = &ex->used.rows[row];
  const pln_node *n = &ex->g->nodes[r->value];
  const pln_slice *names = &ex->names[ex->slots[r->value]];
  bool tuple = (n->kind == PLN_CALL || n->kind == PLN_IF) && n->results;
  if (!tuple)
    return pln_slice_equal(names[0], r->name) ? type : 0;
  for (uint32_t i = 0; i < n->results; i++)
    if (pln_slice_equal(names[i], r->name))
      return i < pln_type_n_parts(ex->engine, type)
                 ? pln_type_part_at(ex->engine, type, i)
                 : 0;
  return 0;
}

/* The type of the value with that name. */
static pln_type type_of(const pln_export *ex, uint32_t row) {
  return part_named(ex, row, ex->g->nodes[ex->used.rows[row].value].type);
}

/* The type that it had when the file was read; 0: unknown. */
static pln_type type_read(const pln_export *ex, uint32_t row) {
  pln_ref node = ex->used.rows[row].value;
  const pln_node *n = &ex->g->nodes[node];
  const pln_origin *o = pln_export_origin(ex, node);
  if (!o || !o->type)
    return 0;
  if (n->kind != PLN_TUPLE_GET_ITEM)
    return part_named(ex, row, o->type);
  return n->data < pln_type_n_parts(ex->engine, o->type)
             ? pln_type_part_at(ex->engine, o->type, n->data)
             : 0;
}

static pln_status note_outputs(pln_export *ex, old_fields *old) {
  const pln_export_frame *f = top_fields_frame(ex);
  uint32_t tag = f->is_function ? FUNCTION_NODE : GRAPH_NODE;
  pln_wire w = pln_wire_open(f->source);
  pln_field field;
  pln_onnx_node node;
  while (pln_wire_next(&w, &field)) {
    if (field.tag != tag)
      continue;
    PLN_TRY(pln_node_scan(ex->engine, &ex->lists, pln_wire_message(&w, &field),
                          &node));
    for (uint32_t i = 0; i < node.n_outputs; i++)
      PLN_TRY(pln_scoped_names_add(&old->known, ex->lists.outputs[i], 0));
  }
  return PLN_OK;
}

/* *out is true if the old graph defined a value of that name. */
static pln_status was_known(pln_export *ex, old_fields *old, pln_slice name,
                            bool *out) {
  const pln_decoder *d = &ex->decoder;
  if (!old->requested) {
    old->requested = true;
    PLN_TRY(note_outputs(ex, old));
    for (uint32_t i = 0; i < old->count; i++) {
      pln_slice text = {"", 0};
      if (top_fields_frame(ex)->is_function)
        continue;
      if (old->all[i].tag == GRAPH_INITIALIZER)
        PLN_TRY(pln_decode_string(d, old->all[i].inside, "TensorProto",
                                  TENSOR_NAME, &text));
      if (old->all[i].tag == GRAPH_INPUT)
        PLN_TRY(pln_decode_string(d, old->all[i].inside, "ValueInfoProto",
                                  VALUE_NAME, &text));
      if (text.size)
        PLN_TRY(pln_scoped_names_add(&old->known, text, 0));
    }
  }
  *out = pln_scoped_names_find(&old->known, name, 0) != PLN_NONE;
  return PLN_OK;
}

/* ------------------------------------------------------------- value infos */

/* Rewrites a ValueInfoProto of the file with another type. */
static pln_status write_changed_value_info(pln_export *ex, uint32_t tag,
                                           pln_message old, pln_type type) {
  pln_open_message nest;
  bool put = false;
  pln_wire w = pln_wire_open(old);
  pln_field f;
  PLN_TRY(pln_rope_begin(ex->rope, tag, &nest));
  while (pln_wire_next(&w, &f)) {
    if (!put && f.tag >= VALUE_TYPE)
      PLN_TRY(pln_encode_type(ex->rope, ex->engine, VALUE_TYPE, type));
    put |= f.tag >= VALUE_TYPE;
    if (f.tag != VALUE_TYPE)
      PLN_TRY(pln_rope_raw(ex->rope, f.start, (size_t)(f.next - f.start)));
  }
  if (!put)
    PLN_TRY(pln_encode_type(ex->rope, ex->engine, VALUE_TYPE, type));
  return pln_rope_end(ex->rope, nest);
}

/* Returns true if a TypeProto can express the type: at most dims are
 * unknown. */
static bool is_exportable_type(const pln_engine *e, pln_type type) {
  pln_type_kind kind = pln_type_get_kind(e, type);
  while (kind == PLN_TYPE_SEQUENCE || kind == PLN_TYPE_OPTIONAL ||
         kind == PLN_TYPE_MAP) {
    type = pln_type_part_at(e, type, kind == PLN_TYPE_MAP);
    kind = pln_type_get_kind(e, type);
  }
  return kind == PLN_TYPE_TENSOR && pln_type_dtype(e, type) != PLN_DTYPE_NONE;
}

/* *out is true if the entry is still right: the declared type is the value's
 * type now, or was its type when the entry was read. */
static pln_status is_true(pln_export *ex, pln_type declared, pln_type type,
                          pln_type read, bool *out) {
  pln_type met;
  bool clash;
  *out = declared == type;
  if (*out || type != read)
    return PLN_OK;
  PLN_TRY(pln_type_meet(ex->engine, declared, type, &met, &clash));
  *out =
      (!clash && met == type) || ex->changes == top_fields_frame(ex)->changes;
  return PLN_OK;
}

/* Returns true for a value that nested graphs write, not this one. */
static bool is_written_elsewhere(const pln_export *ex, uint32_t row) {
  return pln_export_is_nested_constant(ex, ex->used.rows[row].value);
}

/* Copies an entry of value_info if its value exists, with the value's type;
 * `exactly`: also if the entry said less. */
static pln_status put_value_info(pln_export *ex, old_fields *old,
                                 const old_field *f, bool exactly) {
  pln_slice name;
  pln_type declared, type;
  bool gone, kept;
  PLN_TRY(pln_decode_value_info(&ex->decoder, f->inside, &name, &declared));
  uint32_t row = live_row(ex, name);
  if (row == PLN_NONE) {
    PLN_TRY(was_known(ex, old, name, &gone));
    return gone ? PLN_OK : copy_old_field(ex, old, f);
  }
  if (is_written_elsewhere(ex, row))
    return PLN_OK;
  type = type_of(ex, row);
  PLN_TRY(is_true(ex, declared, type, type_read(ex, row), &kept));
  if (kept && (!exactly || declared == type))
    return copy_old_field(ex, old, f);
  return is_exportable_type(ex->engine, type)
             ? write_changed_value_info(ex, f->tag, f->inside, type)
             : PLN_OK;
}

/* Returns true if the graph written so far differs from the file's. Does not
 * consider the fields of a function before its nodes. */
static bool has_changed(const pln_export *ex, const old_fields *old,
                        uint32_t tag) {
  uint32_t before = 0;
  if (top_fields_frame(ex)->is_function)
    return ex->changes != top_fields_frame(ex)->changes ||
           old->n_nodes != top_fields_frame(ex)->n_nodes;
  while (before < old->count && old->all[before].tag < tag)
    before++;
  return ex->changes != top_fields_frame(ex)->changes ||
         old->n_nodes != top_fields_frame(ex)->n_nodes || old->n_kept < before;
}

/* Returns true if values without an entry get one. */
static bool wants_entries(const pln_export *ex, const old_fields *old,
                          uint32_t tag, bool changed) {
  enum { IR_WITH_FUNCTION_INFO = 10 };
  bool any = false;
  if (ex->value_info == PLN_VALUE_INFO_NONE ||
      (top_fields_frame(ex)->is_function &&
       ex->ir_version < IR_WITH_FUNCTION_INFO))
    return false;
  for (uint32_t i = 0; i < old->count && !any; i++)
    any = old->all[i].tag == tag;
  return ex->value_info == PLN_VALUE_INFO_ALL || (any && changed);
}

/* Lists names that need no entry: outputs, and names that have one. */
static pln_status list_described(pln_export *ex, const old_fields *old,
                                 uint32_t tag, pln_scoped_names *described) {
  const pln_export_frame *f = top_fields_frame(ex);
  for (uint32_t i = 0; i < f->n_outputs; i++)
    PLN_TRY(
        pln_scoped_names_add(described, ex->outputs[f->outputs + i].name, 0));
  for (uint32_t i = 0; i < old->count; i++) {
    pln_slice name;
    pln_type type;
    if (old->all[i].tag != tag)
      continue;
    PLN_TRY(
        pln_decode_value_info(&ex->decoder, old->all[i].inside, &name, &type));
    PLN_TRY(pln_scoped_names_add(described, name, 0));
  }
  return PLN_OK;
}

static pln_status put_new_entry(pln_export *ex, uint32_t tag, uint32_t row,
                                const pln_scoped_names *described) {
  pln_scoped_name r = ex->used.rows[row];
  if (ex->g->nodes[r.value].kind == PLN_VAR ||
      pln_export_is_entry(ex, r.value) || is_written_elsewhere(ex, row) ||
      pln_scoped_names_find(described, r.name, 0) != PLN_NONE)
    return PLN_OK;
  pln_type type = type_of(ex, row);
  if (!is_exportable_type(ex->engine, type))
    return PLN_OK;
  ex->changes++;
  return pln_encode_value_info(ex->rope, ex->engine, tag, r.name, type);
}

/* Writes the entries of value_info, those of the file first. */
static pln_status put_value_infos(pln_export *ex, old_fields *old) {
  uint32_t tag = top_fields_frame(ex)->is_function ? FUNCTION_VALUE_INFO
                                                   : GRAPH_VALUE_INFO;
  bool wanted = wants_entries(ex, old, tag, has_changed(ex, old, tag));
  for (uint32_t i = 0; i < old->count; i++)
    if (old->all[i].tag == tag)
      PLN_TRY(put_value_info(ex, old, &old->all[i], wanted));
  if (!wanted)
    return PLN_OK;
  pln_scoped_names described;
  pln_scoped_names_init(&described, ex->engine);
  pln_status status = list_described(ex, old, tag, &described);
  for (uint32_t row = top_fields_frame(ex)->mark;
       row < ex->used.count && status == PLN_OK; row++)
    status = put_new_entry(ex, tag, row, &described);
  pln_scoped_names_free(&described);
  return status;
}

static pln_status put_annotation(pln_export *ex, old_fields *old,
                                 const old_field *f) {
  pln_slice name;
  bool gone = false;
  PLN_TRY(pln_decode_string(&ex->decoder, f->inside, "TensorAnnotation",
                            ANNOTATION_TENSOR, &name));
  if (live_row(ex, name) == PLN_NONE)
    PLN_TRY(was_known(ex, old, name, &gone));
  return gone ? PLN_OK : copy_old_field(ex, old, f);
}

/* ------------------------------------------------------------- initializers */

/* A constant of this graph, and its position in the file. */
typedef struct constant {
  uint64_t offset;
  pln_ref node;
} constant;

typedef struct constants {
  constant *all; /* those of the file by offset, then new ones by node */
  uint32_t count, capacity, n_old;
} constants;

static int by_offset(const void *a, const void *b) {
  const constant *x = a, *y = b;
  if (x->offset != y->offset)
    return x->offset < y->offset ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

/* Returns true for the same tensor, or two tensors decoded from the same
 * bytes. */
static bool same_tensor(const pln_tensor *a, const pln_tensor *b) {
  if (pln_tensor_equal(a, b))
    return true;
  if (!a->owned || !b->owned || a->splat || b->splat || a->dtype != b->dtype ||
      a->rank != b->rank || a->bytes != b->bytes ||
      (a->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims)))
    return false;
  if (a->dtype != PLN_STRING)
    return !a->bytes || !memcmp(a->data, b->data, a->bytes);
  const pln_slice *x = a->data, *y = b->data;
  for (size_t i = 0; i < a->count; i++)
    if (!pln_slice_equal(x[i], y[i]))
      return false;
  return true;
}

/* *out is true if a Constant still is the initializer that it was read from;
 * *name is that one's name. */
static pln_status is_same_value(pln_export *ex, pln_ref node, pln_slice *name,
                                bool *out) {
  const pln_origin *o = pln_export_origin(ex, node);
  pln_tensor *old;
  *out = false;
  if (!o || pln_origin_is_node(o) || o->whole)
    return PLN_OK;
  PLN_TRY(pln_decode_tensor(&ex->decoder, pln_origin_message(o), name, &old));
  *out = old && same_tensor(old, pln_node_tensor(ex->g, node));
  pln_tensor_release(old);
  return PLN_OK;
}

static uint32_t entry_tag(const pln_export *ex, pln_ref node) {
  pln_slice op = pln_op_name(ex->engine, ex->g->nodes[node].data);
  return pln_slice_is(op, "ai.onnx::sparse_initializer")
             ? (uint32_t)GRAPH_SPARSE_INITIALIZER
             : (uint32_t)GRAPH_INITIALIZER;
}

/* The name in the file of an initializer that is no tensor; for a sparse one,
 * the name of its values. */
static pln_status entry_name(pln_export *ex, pln_ref node, pln_slice *out) {
  pln_message message = pln_origin_message(pln_export_origin(ex, node));
  pln_type type;
  if (entry_tag(ex, node) == GRAPH_SPARSE_INITIALIZER)
    return pln_decode_sparse(&ex->decoder, message, out, &type);
  return pln_decode_string(&ex->decoder, message, "TensorProto", TENSOR_NAME,
                           out);
}

/* The offset of the message that the node is an unchanged copy of, or
 * UINT64_MAX. */
static pln_status old_offset(pln_export *ex, pln_ref node, uint64_t *out) {
  const pln_origin *o = pln_export_origin(ex, node);
  const pln_node *n = &ex->g->nodes[node];
  pln_slice name;
  bool same;
  *out = UINT64_MAX;
  if (!pln_export_is_own(ex, o))
    return PLN_OK;
  if (n->kind == PLN_CALL)
    PLN_TRY(entry_name(ex, node, &name));
  if (n->kind == PLN_CALL && pln_slice_equal(name, pln_export_name(ex, node)))
    *out = o->offset;
  if (n->kind == PLN_CALL)
    return PLN_OK;
  PLN_TRY(is_same_value(ex, node, &name, &same));
  if (same && pln_slice_equal(name, pln_export_name(ex, node)))
    *out = o->offset;
  return PLN_OK;
}

static pln_status list_constants(pln_export *ex, constants *c) {
  pln_scope_walk w = pln_export_walk(ex, top_fields_frame(ex)->scope);
  pln_ref i;
  bool sorted = true;
  *c = (constants){0};
  while (pln_export_next(ex, &w, &i)) {
    if (!pln_export_is_entry(ex, i))
      continue;
    PLN_TRY(pln_mem_grow(ex->engine, (void **)&c->all, &c->capacity,
                         (size_t)c->count + 1, sizeof *c->all));
    constant *k = &c->all[c->count];
    k->node = i;
    PLN_TRY(old_offset(ex, i, &k->offset));
    sorted &= !c->count || by_offset(k - 1, k) < 0;
    c->count++;
  }
  if (!sorted)
    qsort(c->all, c->count, sizeof *c->all, by_offset);
  while (c->n_old < c->count && c->all[c->n_old].offset != UINT64_MAX)
    c->n_old++;
  return PLN_OK;
}

/* Copies an initializer that is the default of a parameter. */
static pln_status put_default(pln_export *ex, old_fields *old,
                              const old_field *f) {
  pln_slice name;
  pln_tensor *tensor;
  bool moves = false;
  uint32_t row;
  PLN_TRY(pln_decode_tensor(&ex->decoder, f->inside, &name, &tensor));
  pln_status status = PLN_OK;
  if (tensor)
    status = pln_export_must_rewrite_data(ex, tensor, &moves);
  row = live_row(ex, name);
  if (row == PLN_NONE || ex->g->nodes[ex->used.rows[row].value].kind != PLN_VAR)
    moves = false;
  else if (status == PLN_OK && !moves)
    status = copy_old_field(ex, old, f);
  if (status == PLN_OK && moves)
    status = pln_export_tensor(ex, f->tag, name, tensor, f->inside);
  pln_tensor_release(tensor);
  return status;
}

static pln_status write_kept_entry(pln_export *ex, old_fields *old,
                                   const old_field *f, pln_ref node) {
  bool moves = false;
  const pln_tensor *tensor = pln_node_tensor(ex->g, node);
  if (tensor)
    PLN_TRY(pln_export_must_rewrite_data(ex, tensor, &moves));
  if (!moves)
    return copy_old_field(ex, old, f);
  return pln_export_tensor(ex, f->tag, pln_export_name(ex, node), tensor,
                           f->inside);
}

/* Writes the remaining initializers of the file, in their order. */
static pln_status put_old_initializers(pln_export *ex, old_fields *old,
                                       const constants *c, uint32_t tag) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < old->count; i++) {
    const old_field *f = &old->all[i];
    if (f->tag != tag)
      continue;
    uint64_t offset = pln_message_offset(f->inside);
    while (k < c->n_old && c->all[k].offset < offset)
      k++;
    if (k < c->n_old && c->all[k].offset == offset)
      PLN_TRY(write_kept_entry(ex, old, f, c->all[k].node));
    else if (tag == GRAPH_INITIALIZER)
      PLN_TRY(put_default(ex, old, f));
  }
  return PLN_OK;
}

/* Rewrites a TensorProto with another name. */
static pln_status put_renamed(pln_export *ex, uint32_t tag, pln_message tensor,
                              pln_slice name) {
  pln_wire w = pln_wire_open(tensor);
  pln_field f;
  pln_open_message nest;
  PLN_TRY(pln_rope_begin(ex->rope, tag, &nest));
  PLN_TRY(pln_rope_bytes(ex->rope, TENSOR_NAME, name));
  while (pln_wire_next(&w, &f))
    if (f.tag != TENSOR_NAME)
      PLN_TRY(
          pln_rope_fields(ex->rope, (pln_message){w.file, f.start,
                                                  (size_t)(f.next - f.start)}));
  return pln_rope_end(ex->rope, nest);
}

/* Rewrites a SparseTensorProto with another name. */
static pln_status put_renamed_sparse(pln_export *ex, pln_message sparse,
                                     pln_slice name) {
  pln_wire w = pln_wire_open(sparse);
  pln_field f;
  pln_open_message nest;
  PLN_TRY(pln_rope_begin(ex->rope, GRAPH_SPARSE_INITIALIZER, &nest));
  while (pln_wire_next(&w, &f))
    if (f.tag == SPARSE_VALUES)
      PLN_TRY(put_renamed(ex, f.tag, pln_wire_message(&w, &f), name));
    else
      PLN_TRY(
          pln_rope_fields(ex->rope, (pln_message){w.file, f.start,
                                                  (size_t)(f.next - f.start)}));
  return pln_rope_end(ex->rope, nest);
}

/* Writes an initializer that is no tensor, in another graph than the file's or
 * under another name. */
static pln_status write_relocated_entry(pln_export *ex, pln_ref node,
                                        uint32_t tag) {
  pln_message message = pln_origin_message(pln_export_origin(ex, node));
  pln_slice name = pln_export_name(ex, node);
  if (entry_tag(ex, node) != tag)
    return PLN_OK;
  return tag == GRAPH_INITIALIZER ? put_renamed(ex, tag, message, name)
                                  : put_renamed_sparse(ex, message, name);
}

static pln_status put_new_tensor(pln_export *ex, pln_ref node) {
  pln_message source = {0};
  pln_slice name;
  bool same;
  PLN_TRY(is_same_value(ex, node, &name, &same));
  if (same)
    source = pln_origin_message(pln_export_origin(ex, node));
  return pln_export_tensor(ex, GRAPH_INITIALIZER, pln_export_name(ex, node),
                           pln_node_tensor(ex->g, node), source);
}

static pln_status put_new_initializers(pln_export *ex, const constants *c,
                                       uint32_t tag) {
  for (uint32_t i = c->n_old; i < c->count; i++) {
    pln_ref node = c->all[i].node;
    ex->at = node;
    if (!pln_node_tensor(ex->g, node))
      PLN_TRY(write_relocated_entry(ex, node, tag));
    else if (tag == GRAPH_INITIALIZER)
      PLN_TRY(put_new_tensor(ex, node));
  }
  return PLN_OK;
}

/* -------------------------------------------------------- inputs and outputs
 */

/* ONNX requires the inputs and outputs of a model to have known rank. */
static void warn_of_rank(const pln_export *ex, const char *what, pln_slice name,
                         pln_type type) {
  pln_type_kind kind = pln_type_get_kind(ex->engine, type);
  bool is_ranked =
      kind == PLN_TYPE_TENSOR && pln_type_rank(ex->engine, type) >= 0;
  if (ex->n_frames > 1 || is_ranked || (type && kind != PLN_TYPE_TENSOR))
    return;
  pln_diag_warn(ex->engine, NULL,
                "the %s '%.*s' of the model has unknown rank, which ONNX "
                "requires (onnx.checker refuses it)",
                what, (int)(name.size & 0xff), name.data);
}

static pln_status put_new_value(pln_export *ex, uint32_t tag, pln_slice name,
                                pln_type type) {
  warn_of_rank(ex, tag == GRAPH_INPUT ? "input" : "output", name, type);
  return pln_encode_value_info(ex->rope, ex->engine, tag, name, type);
}

static pln_status put_retyped(pln_export *ex, uint32_t tag, pln_message old,
                              pln_slice name, pln_type type) {
  warn_of_rank(ex, tag == GRAPH_INPUT ? "input" : "output", name, type);
  return write_changed_value_info(ex, tag, old, type);
}

static pln_status put_param(pln_export *ex, old_fields *old, pln_ref node) {
  const pln_origin *o = pln_export_origin(ex, node);
  pln_slice name = pln_export_name(ex, node), old_name;
  pln_type type = ex->g->nodes[node].type, old_type;
  if (!o || !o->name)
    return put_new_value(ex, GRAPH_INPUT, name, type);
  pln_message message = pln_origin_message(o);
  PLN_TRY(pln_decode_value_info(&ex->decoder, message, &old_name, &old_type));
  if (!pln_slice_equal(old_name, name))
    return put_new_value(ex, GRAPH_INPUT, name, type);
  if (old_type != type)
    return put_retyped(ex, GRAPH_INPUT, message, name, type);
  old->n_kept++;
  return pln_rope_message(ex->rope, GRAPH_INPUT, message);
}

/* Inputs that are constants (before IR version 4) keep their positions. */
static bool is_constant_input(const pln_export *ex, pln_slice name) {
  uint32_t row = live_row(ex, name);
  return row != PLN_NONE &&
         ex->g->nodes[ex->used.rows[row].value].kind != PLN_VAR;
}

static pln_status was_initializer(pln_export *ex, old_fields *old,
                                  pln_scoped_names *names) {
  for (uint32_t i = 0; i < old->count; i++) {
    pln_slice name;
    if (old->all[i].tag != GRAPH_INITIALIZER)
      continue;
    PLN_TRY(pln_decode_string(&ex->decoder, old->all[i].inside, "TensorProto",
                              TENSOR_NAME, &name));
    PLN_TRY(pln_scoped_names_add(names, name, 0));
  }
  return PLN_OK;
}

/* Writes such an input. A pass may have replaced its constant by one of another
 * type. */
static pln_status put_constant_input(pln_export *ex, old_fields *old,
                                     const old_field *f, pln_slice name) {
  pln_ref node = ex->used.rows[live_row(ex, name)].value;
  pln_type type = ex->g->nodes[node].type, old_type, met;
  bool conflict;
  PLN_TRY(pln_decode_value_info(&ex->decoder, f->inside, &name, &old_type));
  PLN_TRY(pln_type_meet(ex->engine, old_type, type, &met, &conflict));
  return conflict ? write_changed_value_info(ex, GRAPH_INPUT, f->inside, type)
                  : copy_old_field(ex, old, f);
}

/* Sets inits[value] = 1 for initializers that have an input. */
static pln_status put_old_inputs(pln_export *ex, old_fields *old,
                                 pln_scoped_names *inits, uint32_t *next) {
  const pln_scope_row *row = &ex->g->scopes[top_fields_frame(ex)->scope];
  for (uint32_t i = 0; i < old->count; i++) {
    pln_slice name;
    if (old->all[i].tag != GRAPH_INPUT)
      continue;
    PLN_TRY(pln_decode_string(&ex->decoder, old->all[i].inside,
                              "ValueInfoProto", VALUE_NAME, &name));
    uint32_t init = pln_scoped_names_find(inits, name, 0);
    bool was = init != PLN_NONE;
    if (was && is_constant_input(ex, name)) {
      inits->rows[init].value = 1;
      PLN_TRY(put_constant_input(ex, old, &old->all[i], name));
    } else if ((!was || live_row(ex, name) != PLN_NONE) &&
               *next < row->n_params)
      PLN_TRY(put_param(ex, old, row->begin + (*next)++));
  }
  return PLN_OK;
}

/* Adds inputs for constants that lack one, where each initializer must have
 * one. */
static pln_status put_new_inputs(pln_export *ex, const pln_scoped_names *inits,
                                 const constants *c) {
  for (uint32_t i = c->n_old; ex->constant_inputs && i < c->count; i++) {
    pln_slice name = pln_export_name(ex, c->all[i].node);
    uint32_t init = pln_scoped_names_find(inits, name, 0);
    if (init == PLN_NONE || !inits->rows[init].value)
      PLN_TRY(pln_encode_value_info(ex->rope, ex->engine, GRAPH_INPUT, name,
                                    ex->g->nodes[c->all[i].node].type));
  }
  return PLN_OK;
}

static pln_status put_inputs(pln_export *ex, old_fields *old,
                             const constants *c) {
  const pln_scope_row *row = &ex->g->scopes[top_fields_frame(ex)->scope];
  uint32_t next = 0;
  pln_scoped_names inits;
  pln_scoped_names_init(&inits, ex->engine);
  pln_status status = was_initializer(ex, old, &inits);
  if (status == PLN_OK)
    status = put_old_inputs(ex, old, &inits, &next);
  while (status == PLN_OK && next < row->n_params)
    status = put_param(ex, old, row->begin + next++);
  if (status == PLN_OK)
    status = put_new_inputs(ex, &inits, c);
  pln_scoped_names_free(&inits);
  return status;
}

/* The type of an output when the graph was imported; 0: unknown. */
static pln_type imported_type(const pln_export *ex, uint32_t index) {
  const pln_graph *g = ex->g;
  uint32_t row = g->scopes[top_fields_frame(ex)->scope].origin;
  if (!row || !g->origins)
    return 0;
  const pln_attr *a = pln_attrs_find(
      ex->engine, pln_origins_row(g->origins, row)->attrs, "output_types");
  return a && index < a->count ? a->v.types[index] : 0;
}

/* Writes an output that no pass changed: as the file declares it, or, where
 * all types are asked for, with the dims that inference found besides. */
static pln_status put_kept_output(pln_export *ex, old_fields *old,
                                  const old_field *f, pln_type declared,
                                  pln_type type) {
  pln_type met = declared;
  bool conflict = false;
  if (ex->value_info == PLN_VALUE_INFO_ALL && type)
    PLN_TRY(pln_type_meet(ex->engine, declared, type, &met, &conflict));
  if (conflict || met == declared)
    return copy_old_field(ex, old, f);
  return write_changed_value_info(ex, GRAPH_OUTPUT, f->inside, met);
}

static pln_status put_output(pln_export *ex, old_fields *old,
                             const old_field *f, uint32_t index) {
  const pln_export_output *o =
      &ex->outputs[top_fields_frame(ex)->outputs + index];
  pln_type type = ex->g->nodes[o->node].type, declared;
  pln_slice name = {"", 0};
  if (f)
    PLN_TRY(pln_decode_value_info(&ex->decoder, f->inside, &name, &declared));
  if (!f || !pln_slice_equal(name, o->name))
    return put_new_value(ex, GRAPH_OUTPUT, o->name, type);
  if (type == imported_type(ex, index) || !type)
    return put_kept_output(ex, old, f, declared, type);
  return put_retyped(ex, GRAPH_OUTPUT, f->inside, name, type);
}

static pln_status put_outputs(pln_export *ex, old_fields *old) {
  uint32_t next = 0, n = top_fields_frame(ex)->n_outputs;
  for (uint32_t i = 0; i < old->count && next < n; i++)
    if (old->all[i].tag == GRAPH_OUTPUT)
      PLN_TRY(put_output(ex, old, &old->all[i], next++));
  while (next < n)
    PLN_TRY(put_output(ex, old, NULL, next++));
  return PLN_OK;
}

static pln_status put_function_inputs(pln_export *ex) {
  const pln_scope_row *row = &ex->g->scopes[top_fields_frame(ex)->scope];
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(pln_rope_bytes(ex->rope, FUNCTION_INPUT,
                           pln_export_name(ex, row->begin + i)));
  return PLN_OK;
}

static pln_status put_function_outputs(pln_export *ex) {
  const pln_export_frame *f = top_fields_frame(ex);
  for (uint32_t i = 0; i < f->n_outputs; i++)
    PLN_TRY(pln_rope_bytes(ex->rope, FUNCTION_OUTPUT,
                           ex->outputs[f->outputs + i].name));
  return PLN_OK;
}

/* ------------------------------------------------------------------- fields */

static pln_status put_old_field(pln_export *ex, old_fields *old,
                                const old_field *f) {
  if (!top_fields_frame(ex)->is_function && f->tag == GRAPH_QUANTIZATION)
    return put_annotation(ex, old, f);
  return copy_old_field(ex, old, f);
}

/* Returns true for lists that are encoded here, not copied field by field. */
static bool is_made(const pln_export *ex, uint32_t tag) {
  if (top_fields_frame(ex)->is_function)
    return tag == FUNCTION_INPUT || tag == FUNCTION_OUTPUT ||
           tag == FUNCTION_OPSET_IMPORT || tag == FUNCTION_VALUE_INFO;
  return tag == GRAPH_INITIALIZER || tag == GRAPH_VALUE_INFO ||
         tag == GRAPH_INPUT || tag == GRAPH_OUTPUT ||
         tag == GRAPH_SPARSE_INITIALIZER;
}

/* Copies the old fields with a number in [from, to), one by one. */
static pln_status copy_range(pln_export *ex, old_fields *old, uint32_t from,
                             uint32_t to) {
  for (uint32_t i = 0; i < old->count; i++) {
    const old_field *f = &old->all[i];
    uint32_t number = f->tag >> 3;
    if (number >= from && number < to && !is_made(ex, f->tag))
      PLN_TRY(put_old_field(ex, old, f));
  }
  return PLN_OK;
}

static pln_status new_name(pln_export *ex) {
  pln_attrs attrs = ex->g->scopes[top_fields_frame(ex)->scope].attrs;
  if (top_fields_frame(ex)->source.data)
    return PLN_OK;
  pln_slice name = pln_attrs_string(ex->engine, attrs, "name",
                                    ex->n_frames == 1 ? "main" : "graph");
  return pln_rope_bytes(ex->rope, GRAPH_NAME, name);
}

static pln_status graph_tail(pln_export *ex, old_fields *old, constants *c) {
  enum { INIT = 5, INPUT = 11, VALUE_INFO = 13, SPARSE = 15 };
  PLN_TRY(list_constants(ex, c));
  PLN_TRY(new_name(ex));
  PLN_TRY(copy_range(ex, old, 1, INIT));
  PLN_TRY(put_old_initializers(ex, old, c, GRAPH_INITIALIZER));
  PLN_TRY(put_new_initializers(ex, c, GRAPH_INITIALIZER));
  PLN_TRY(copy_range(ex, old, INIT, INPUT));
  PLN_TRY(put_inputs(ex, old, c));
  PLN_TRY(put_outputs(ex, old));
  PLN_TRY(copy_range(ex, old, INPUT, VALUE_INFO));
  PLN_TRY(put_value_infos(ex, old));
  PLN_TRY(copy_range(ex, old, VALUE_INFO, SPARSE));
  PLN_TRY(put_old_initializers(ex, old, c, GRAPH_SPARSE_INITIALIZER));
  PLN_TRY(put_new_initializers(ex, c, GRAPH_SPARSE_INITIALIZER));
  return copy_range(ex, old, SPARSE, UINT32_MAX);
}

/* Writes the name fields of a function that comes from no file,
 * "domain::name:overload". */
static pln_status new_function(pln_export *ex) {
  pln_slice text = pln_symbol_text(ex->engine, ex->function);
  size_t split = 0;
  while (split + 1 < text.size && memcmp(text.data + split, "::", 2))
    split++;
  bool found = split + 1 < text.size;
  pln_slice name =
      found ? (pln_slice){text.data + split + 2, text.size - split - 2} : text;
  pln_slice domain =
      found ? (pln_slice){text.data, split} : pln_text("perilune");
  PLN_TRY(pln_rope_bytes(ex->rope, FUNCTION_NAME, name));
  return pln_rope_bytes(ex->rope, FUNCTION_DOMAIN, domain);
}

/* The same for its attributes without default ... */
static pln_status new_attribute_names(pln_export *ex) {
  const pln_attr *a = pln_attrs_find(
      ex->engine, ex->g->scopes[top_fields_frame(ex)->scope].attrs,
      PLN_ATTRIBUTES_ATTR);
  uint32_t n = a && a->kind == PLN_ATTR_STRINGS ? a->count : 0;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_rope_bytes(ex->rope, FUNCTION_ATTRIBUTE, a->v.strings[i]));
  return PLN_OK;
}

/* ... and for those with a default. */
static pln_status new_attribute_defaults(pln_export *ex) {
  const pln_attr *a = pln_attrs_find(
      ex->engine, ex->g->scopes[top_fields_frame(ex)->scope].attrs,
      PLN_ATTRIBUTE_DEFAULTS_ATTR);
  uint32_t n = a && a->kind == PLN_ATTR_DICT
                   ? pln_attrs_count(ex->engine, a->v.dict)
                   : 0;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_export_attribute(ex, FUNCTION_ATTRIBUTE_PROTO,
                                 pln_attrs_at(ex->engine, a->v.dict, i)));
  return PLN_OK;
}

static pln_status with_old(pln_export *ex,
                           pln_status (*put)(pln_export *, old_fields *)) {
  old_fields old;
  pln_status status = read_old(ex, &old);
  if (status == PLN_OK)
    status = put(ex, &old);
  free_old(ex, &old);
  return status;
}

static pln_status function_head(pln_export *ex, old_fields *old) {
  enum { INPUT = 4, NODE = 7 };
  if (!top_fields_frame(ex)->source.data)
    PLN_TRY(new_function(ex));
  PLN_TRY(copy_range(ex, old, 1, INPUT));
  PLN_TRY(put_function_inputs(ex));
  PLN_TRY(put_function_outputs(ex));
  if (!top_fields_frame(ex)->source.data)
    return new_attribute_names(ex);
  return copy_range(ex, old, INPUT, NODE);
}

/* Writes the opsets of a function: the file's own, with another version of
 * ai.onnx if that changed and with additional domains. Copied if nothing
 * differs. */
static pln_status put_function_opsets(pln_export *ex, old_fields *old) {
  pln_attrs before = 0, now;
  pln_attr core = {.kind = PLN_ATTR_INT, .v.i = ex->opset};
  pln_message source = top_fields_frame(ex)->source;
  PLN_TRY(pln_symbol_intern(ex->engine, pln_text("ai.onnx"), &core.name));
  if (source.data)
    PLN_TRY(pln_decode_opsets(&ex->decoder, source, FUNCTION_OPSET_IMPORT,
                              &before));
  else
    PLN_TRY(pln_function_opsets(ex->module, ex->function, &before));
  PLN_TRY(pln_export_used_opsets(ex, before, &now));
  if (pln_onnx_opset(ex->engine, before, pln_text(""), 0))
    PLN_TRY(pln_attrs_with(ex->engine, now, &core, &now));
  if (!source.data || before != now)
    return pln_encode_opsets(ex->rope, ex->engine, FUNCTION_OPSET_IMPORT, now);
  for (uint32_t i = 0; i < old->count; i++)
    if (old->all[i].tag == FUNCTION_OPSET_IMPORT)
      PLN_TRY(copy_old_field(ex, old, &old->all[i]));
  return PLN_OK;
}

static pln_status function_tail(pln_export *ex, old_fields *old) {
  enum { NODE = 7, OPSETS = 9, VALUE_INFO = 12 };
  PLN_TRY(copy_range(ex, old, NODE, OPSETS));
  PLN_TRY(put_function_opsets(ex, old));
  if (!top_fields_frame(ex)->source.data)
    PLN_TRY(new_attribute_defaults(ex));
  PLN_TRY(copy_range(ex, old, OPSETS, VALUE_INFO));
  PLN_TRY(put_value_infos(ex, old));
  return copy_range(ex, old, VALUE_INFO, UINT32_MAX);
}

static pln_status any_tail(pln_export *ex, old_fields *old) {
  constants c = {0};
  if (top_fields_frame(ex)->is_function)
    return function_tail(ex, old);
  pln_status status = graph_tail(ex, old, &c);
  ex->changes += old->n_kept != old->count || c.n_old != c.count ||
                 old->n_nodes != top_fields_frame(ex)->n_nodes;
  pln_mem_free(ex->engine, c.all, c.capacity * sizeof *c.all);
  return status;
}

pln_status pln_export_head(pln_export *ex) {
  return top_fields_frame(ex)->is_function ? with_old(ex, function_head)
                                           : PLN_OK;
}

pln_status pln_export_tail(pln_export *ex) {
  ex->at = PLN_NONE;
  return with_old(ex, any_tail);
}
