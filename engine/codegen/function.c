/* function.c: writes a PrimFunc: its C function, the function that tells the
 * size of its workspace, and its entry for a loader.
 *
 * Called by write.c. A function that uses vectors is written twice: with vector
 * types, and with scalars only, for compilers that do not have them. */

#include "codegen/writer.h"

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static const pln_scope_row *root_scope(const pln_cw *w) {
  return &w->g->scopes[w->g->nodes[w->g->root].data];
}

/* The Buffer that a parameter is seen as; PLN_NONE: none. */
static pln_ref buffer_of(const pln_cw *w, pln_ref param) {
  uint32_t bound = pln_idmap_get(w->bindings, w->g->nodes[param].data);
  return bound ? bound - 1 : PLN_NONE;
}

/* -------------------------------------------------------------- parameters */

/* The texts that declare and pass what a function takes. */
typedef struct signature {
  pln_buffer params; /* "const float *restrict A, int32_t n" */
  pln_buffer sizes;  /* of them what sizes depend on */
  pln_buffer names;  /* "A, n" */
  pln_buffer args;   /* of the entry: "a[0].data, ..." */
  pln_buffer size_args;
  pln_buffer entry; /* statements of the entry */
} signature;

static void append(pln_cw *w, pln_buffer *to, const char *text) {
  if (w->status == PLN_OK && to->size > 0)
    pln_c_fail(w, pln_buffer_text(to, ", "));
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_buffer_text(to, text));
}

static void add_buffer(pln_cw *w, signature *s, uint32_t i, pln_ref data,
                       pln_c_param *p) {
  uint32_t how = pln_idmap_get(w->access, w->g->nodes[data].data);
  const char *name = pln_c_fresh_name(w, pln_symbol_text(w->engine, p->name));
  const char *type = pln_c_memory_name(p->dtype);
  p->is_written = (how & PLN_C_WRITTEN) != 0;
  append(w, &s->params,
         pln_c_textf(w, PLN_C_NAME, "%s%s *%s%s", p->is_written ? "" : "const ",
                     type, w->restricts ? "restrict " : "", name)
             .data);
  append(w, &s->args, pln_c_textf(w, PLN_C_NAME, "args[%u].data", i).data);
  if (!how)
    pln_c_line(w, "(void)%s;", name);
  pln_c_bind_memory(w, data, pln_c_textf(w, PLN_C_NAME, "%s", name), p->dtype);
}

static void add_scalar(pln_cw *w, signature *s, uint32_t i, pln_ref param,
                       pln_c_param *p) {
  const char *name = pln_c_fresh_name(w, pln_symbol_text(w->engine, p->name));
  const char *type = pln_c_type_name(p->dtype);
  const char *declared = pln_c_textf(w, PLN_C_NAME, "%s %s", type, name).data;
  pln_c_text arg = pln_c_textf(w, PLN_C_NAME, "*(const %s *)args[%u].data",
                               pln_c_memory_name(p->dtype), i);
  if (pln_c_is_half(p->dtype)) {
    bool half = p->dtype == PLN_FLOAT16;
    pln_c_use(w, half ? PLN_C_HELPER_FROM_HALF : PLN_C_HELPER_FROM_BFLOAT,
              PLN_C_F32, 1);
    arg = pln_c_textf(w, PLN_C_NAME, "pl_from_%s(%s)", half ? "half" : "bfloat",
                      arg.data);
  }
  append(w, &s->params, declared);
  append(w, &s->sizes, declared);
  append(w, &s->args, arg.data);
  append(w, &s->size_args, arg.data);
  pln_c_line(w, "(void)%s;", name);
  pln_c_value value =
      pln_c_scalar(w, p->dtype, pln_c_textf(w, PLN_C_NAME, "%s", name));
  pln_c_bind(w, param, value);
  uint32_t kept = pln_c_keep(w, value);
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_idmap_set(w->top_vars, w->g->nodes[param].data, kept));
}

/* The dtype and lanes that a bare pointer points to. */
static void set_pointee(pln_cw *w, pln_ref param, pln_c_param *p) {
  pln_type type = w->g->nodes[param].type;
  if (pln_type_get_kind(w->engine, type) != PLN_TYPE_POINTER) {
    pln_c_refuse(w, "parameter '%s' is a handle of what is not known",
                 pln_symbol_text(w->engine, p->name).data);
    return;
  }
  type = pln_type_part_at(w->engine, type, 0);
  p->dtype = pln_type_dtype(w->engine, type);
  p->lanes = pln_type_get_kind(w->engine, type) == PLN_TYPE_PRIM
                 ? pln_type_number(w->engine, type)
                 : 1;
}

static void add_param(pln_cw *w, signature *s, uint32_t i, pln_ref param) {
  pln_ref buffer = buffer_of(w, param), data = param;
  pln_c_param *p = &w->fn->params[i];
  *p = (pln_c_param){.name = w->g->nodes[param].attrs,
                     .dtype = pln_prim_dtype(w->g, param),
                     .lanes = 1,
                     .rank = -1};
  if (buffer != PLN_NONE) {
    p->name = w->g->nodes[buffer].data;
    p->dtype = pln_prim_dtype(w->g, buffer);
    p->lanes = pln_prim_lanes(w->g, buffer);
    p->rank = w->g->nodes[buffer].results;
    data = refs_of(w, buffer)[0];
  } else if (!p->dtype) {
    set_pointee(w, param, p);
  }
  p->is_buffer = buffer != PLN_NONE || !pln_prim_dtype(w->g, param);
  if (w->status == PLN_OK && !pln_c_has_dtype(p->dtype))
    pln_c_refuse(w, "parameter '%s' of dtype %s is not written as C",
                 pln_symbol_text(w->engine, p->name).data,
                 pln_dtype_name(p->dtype));
  if (p->is_buffer)
    add_buffer(w, s, i, data, p);
  else
    add_scalar(w, s, i, param, p);
  if (buffer != PLN_NONE) /* the parameter itself has no value */
    pln_c_bind(w, param, pln_c_int_value(w, PLN_DTYPE_NONE, 0));
}

/* ------------------------------------------------------------------ shapes */

/* A variable that is a dimension: int64_t for the caller, its dtype inside. */
static void add_dim(pln_cw *w, signature *s, pln_ref var, uint32_t param,
                    uint32_t dim) {
  pln_dtype dtype = pln_prim_dtype(w->g, var);
  pln_slice hint = pln_symbol_text(w->engine, w->g->nodes[var].attrs);
  const char *given = pln_c_fresh_name(w, hint), *name = given;
  if (!pln_c_is_int(dtype)) {
    pln_c_refuse(w, "dimension '%s' is no integer", hint.data);
    return;
  }
  if (dtype != PLN_INT64) {
    name = pln_c_fresh_name(w, hint);
    pln_buffer *out = w->out;
    w->out = &w->dims;
    pln_c_line(w, "const %s %s = (%s)%s;", pln_c_type_name(dtype), name,
               pln_c_type_name(dtype), given);
    pln_c_line(w, "(void)%s;", name);
    w->out = out;
  }
  if (name == given)
    pln_c_line(w, "(void)%s;", name);
  const char *declared = pln_c_textf(w, PLN_C_NAME, "int64_t %s", given).data;
  append(w, &s->params, declared);
  append(w, &s->sizes, declared);
  w->n_dims++;
  const char *arg =
      pln_c_textf(w, PLN_C_NAME, "args[%u].shape[%u]", param, dim).data;
  append(w, &s->args, arg);
  append(w, &s->size_args, arg);
  pln_buffer *out = w->out;
  w->out = &s->entry;
  if (name != given)
    pln_c_line(w, "const int64_t %s = %s;", given, arg);
  pln_c_line(w, "const %s %s = (%s)%s;", pln_c_type_name(dtype), name,
             pln_c_type_name(dtype), arg);
  if (name != given)
    pln_c_line(w, "(void)%s;", given);
  pln_c_line(w, "if (%s < 0)", arg);
  pln_c_line(w, "  return %u;", PLN_C_SHAPE + 16 * param + (dim & 15));
  pln_c_line(w, "(void)%s;", name);
  w->out = out;
  pln_c_value value =
      pln_c_scalar(w, dtype, pln_c_textf(w, PLN_C_NAME, "%s", name));
  if (dtype != PLN_UINT64)
    value.lo = 0;
  pln_c_bind(w, var, value);
  uint32_t kept = pln_c_keep(w, value);
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_idmap_set(w->top_vars, w->g->nodes[var].data, kept));
}

static bool is_free_var(const pln_cw *w, pln_ref expr) {
  return w->g->nodes[expr].kind == PLN_VAR && !pln_c_is_bound(w, expr);
}

static void add_dims(pln_cw *w, signature *s, uint32_t i, pln_ref buffer) {
  const pln_node *n = &w->g->nodes[buffer];
  for (uint32_t d = 0; d < n->results; d++)
    if (is_free_var(w, refs_of(w, buffer)[1 + d]))
      add_dim(w, s, refs_of(w, buffer)[1 + d], i, d);
}

/* The stride, an int64, as a value of its variable's dtype: vectors are made of
 * it, whose elements have that. */
static pln_c_value stride_as(pln_cw *w, pln_ref var, pln_c_value stride) {
  pln_dtype dtype = pln_prim_dtype(w->g, var);
  if (dtype == stride.dtype || !pln_c_is_int(dtype))
    return stride;
  if (stride.lo == stride.hi)
    return pln_c_int_value(w, dtype, stride.lo);
  pln_c_value own = pln_c_scalar(
      w, dtype,
      pln_c_cast_text(w, PLN_INT64, dtype, pln_c_text_at(w, &stride, 0)));
  own.lo = stride.lo > own.lo ? stride.lo : own.lo;
  own.hi = stride.hi < own.hi ? stride.hi : own.hi;
  return own;
}

/* Strides that are variables are compact, offsets 0. */
static void add_strides(pln_cw *w, pln_ref buffer) {
  const pln_node *n = &w->g->nodes[buffer];
  const pln_ref *o = refs_of(w, buffer);
  uint32_t rank = n->results;
  pln_c_value stride = pln_c_int_value(w, PLN_INT64, 1);
  bool strided = n->count > 2u + rank;
  for (uint32_t d = rank; strided && d-- > 0;) {
    pln_ref var = o[1 + rank + d];
    if (is_free_var(w, var)) {
      stride = pln_c_named(w, stride);
      if (stride.lo != stride.hi)
        pln_c_line(w, "(void)%s;", pln_c_text_at(w, &stride, 0).data);
      pln_c_bind(w, var, stride_as(w, var, stride));
      uint32_t kept = pln_c_keep(w, stride);
      if (w->status == PLN_OK && stride.lo == stride.hi)
        pln_c_fail(w, pln_idmap_set(w->top_vars, w->g->nodes[var].data, kept));
    }
    if (w->g->nodes[o[1 + d]].kind == PLN_ANY)
      break;
    if (d > 0)
      stride =
          pln_c_offset(w, PLN_PRIM_MUL, stride, pln_c_top_expr(w, o[1 + d]));
  }
  if (is_free_var(w, o[n->count - 1])) {
    pln_c_value zero = pln_c_int_value(w, PLN_INT64, 0);
    pln_c_bind(w, o[n->count - 1], zero);
    uint32_t kept = pln_c_keep(w, zero);
    if (w->status == PLN_OK)
      pln_c_fail(w, pln_idmap_set(w->top_vars,
                                  w->g->nodes[o[n->count - 1]].data, kept));
  }
}

/* The entry compares the dimensions of its arguments. Scalar parameters are not
 * known there by name: dimensions that use them are not compared. */
static void check_dims(pln_cw *w, signature *s, uint32_t i, pln_ref buffer) {
  const pln_node *n = &w->g->nodes[buffer];
  pln_buffer *out = w->out;
  w->out = &s->entry;
  for (uint32_t d = 0; d < n->results && w->status == PLN_OK; d++) {
    pln_ref dim = refs_of(w, buffer)[1 + d];
    if (w->g->nodes[dim].kind == PLN_ANY)
      continue;
    uint32_t mark = w->n_log;
    pln_c_value value = pln_c_top_expr(w, dim);
    pln_c_line(w, "if (args[%u].shape[%u] != %s)", i, d,
               pln_c_arg(w, pln_c_text_at(w, &value, 0)));
    pln_c_line(w, "  return %u;", PLN_C_SHAPE + 16 * i + (d & 15));
    pln_c_forget(w, mark);
  }
  w->out = out;
}

static void declare_scalars(pln_cw *w, signature *s) {
  const pln_scope_row *row = root_scope(w);
  pln_buffer *out = w->out;
  w->out = &s->entry;
  for (uint32_t i = 0; i < row->n_params; i++) {
    const pln_c_param *p = &w->fn->params[i];
    if (p->is_buffer || !pln_c_is_int(p->dtype))
      continue;
    pln_c_value value = pln_c_value_of(w, row->begin + i);
    const char *name = pln_c_text_at(w, &value, 0).data;
    pln_c_line(w, "const %s %s = *(const %s *)args[%u].data;",
               pln_c_type_name(p->dtype), name, pln_c_type_name(p->dtype), i);
    pln_c_line(w, "(void)%s;", name);
  }
  w->out = out;
}

static void add_params(pln_cw *w, signature *s) {
  const pln_scope_row *row = root_scope(w);
  w->depth = 1;
  for (uint32_t i = 0; i < row->n_params; i++)
    add_param(w, s, i, row->begin + i);
  declare_scalars(w, s);
  for (uint32_t round = 0; round < 3; round++)
    for (uint32_t i = 0; i < row->n_params && w->status == PLN_OK; i++) {
      pln_ref buffer = buffer_of(w, row->begin + i);
      if (buffer == PLN_NONE)
        continue;
      if (round == 0)
        add_dims(w, s, i, buffer);
      else if (round == 1)
        add_strides(w, buffer);
      else
        check_dims(w, s, i, buffer);
    }
  pln_c_forget(w, 0);
}

/* --------------------------------------------------------------- functions */

static void write_function(pln_cw *w, signature *s) {
  const char *name = pln_symbol_text(w->engine, w->fn->c_name).data;
  w->out = &w->functions;
  w->depth = 0;
  if (w->uses_workspace)
    append(w, &s->params, "void *workspace");
  if (pln_c_is_interleaved(w)) {
    w->uses_half = true;
    pln_c_raw(w, "PL_HALF_VECTORS ");
  }
  if (pln_c_sums_in_order(w)) {
    w->uses_products = true;
    pln_c_raw(w, "PL_PRODUCTS ");
  }
  pln_c_raw(w, "int32_t %s(%.*s) {\n", name,
            s->params.size ? (int)s->params.size : 4,
            s->params.size ? s->params.data : "void");
  w->depth = 1;
  pln_c_raw(w, "%.*s", (int)w->dims.size, w->dims.size ? w->dims.data : "");
  if (w->n_sizes > 0 || w->has_sized) {
    pln_c_line(w, "size_t pl_end = %llu;",
               (unsigned long long)w->workspace_bytes);
    pln_c_raw(w, "%.*s", (int)w->sizes.size,
              w->sizes.size ? w->sizes.data : "");
    pln_c_line(w, "(void)pl_end;");
  }
  if (w->has_sized)
    pln_c_line(w, "const size_t pl_callees = pl_end;");
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_buffer_add(w->out, w->body.data, w->body.size));
  pln_c_line(w, "return %d;", PLN_C_OK);
  pln_c_raw(w, "}\n\n");
}

static void write_size(pln_cw *w, const signature *s) {
  const char *name = pln_symbol_text(w->engine, w->fn->c_name).data;
  pln_c_raw(w, "size_t %s_workspace_size(%.*s) {\n", name,
            s->sizes.size ? (int)s->sizes.size : 4,
            s->sizes.size ? s->sizes.data : "void");
  const pln_scope_row *row = root_scope(w);
  w->depth = 1;
  pln_c_line(w, "size_t pl_end = %llu;",
             (unsigned long long)w->workspace_bytes);
  for (uint32_t i = 0; i < row->n_params; i++)
    if (!w->fn->params[i].is_buffer) {
      pln_c_value value = pln_c_value_of(w, row->begin + i);
      pln_c_line(w, "(void)%s;", pln_c_text_at(w, &value, 0).data);
    }
  pln_c_raw(w, "%.*s", (int)w->dims.size, w->dims.size ? w->dims.data : "");
  pln_c_raw(w, "%.*s", (int)w->sizes.size, w->sizes.size ? w->sizes.data : "");
  if (w->has_sized) {
    pln_c_line(w, "size_t pl_most = 0;");
    pln_c_raw(w, "%.*s", (int)w->callee_sizes.size, w->callee_sizes.data);
    pln_c_line(w, "pl_end += (pl_most + 63) / 64 * 64;");
  }
  pln_c_line(w, "return pl_end;");
  pln_c_raw(w, "}\n\n");
}

static void write_entry(pln_cw *w, const signature *s) {
  const char *name = pln_symbol_text(w->engine, w->fn->c_name).data;
  pln_c_raw(w,
            "int32_t %s_call(const perilune_argument *args, void *workspace) "
            "{\n  (void)args;\n",
            name);
  pln_c_raw(w, "%.*s", (int)s->entry.size, s->entry.size ? s->entry.data : "");
  w->depth = 1;
  if (w->uses_workspace) {
    pln_c_line(w, "if (!workspace && %s_workspace_size(%.*s) > 0)", name,
               (int)s->size_args.size,
               s->size_args.size ? s->size_args.data : "");
    pln_c_line(w, "  return %d;", PLN_C_WORKSPACE);
  } else {
    pln_c_line(w, "(void)workspace;");
  }
  pln_c_line(w, "return %s(%.*s%s);", name, (int)s->args.size,
             s->args.size ? s->args.data : "",
             !w->uses_workspace ? ""
             : s->args.size     ? ", workspace"
                                : "workspace");
  pln_c_raw(w, "}\n\n");
  pln_c_raw(w,
            "size_t %s_call_workspace(const perilune_argument *args) {\n"
            "  (void)args;\n",
            name);
  pln_c_line(w, "return %s_workspace_size(%.*s);", name, (int)s->size_args.size,
             s->size_args.size ? s->size_args.data : "");
  pln_c_raw(w, "}\n\n");
}

static void write_header(pln_cw *w, const signature *s) {
  const char *name = pln_symbol_text(w->engine, w->fn->c_name).data;
  w->out = &w->code->header;
  pln_c_raw(w,
            "int32_t %s(%.*s);\n"
            "size_t %s_workspace_size(%.*s);\n"
            "int32_t %s_call(const perilune_argument *args, void *workspace);\n"
            "size_t %s_call_workspace(const perilune_argument *args);\n\n",
            name, s->params.size ? (int)s->params.size : 4,
            s->params.size ? s->params.data : "void", name,
            s->sizes.size ? (int)s->sizes.size : 4,
            s->sizes.size ? s->sizes.data : "void", name, name);
  w->out = &w->functions;
}

/* ---------------------------------------------------------------- variants */

static void reset(pln_cw *w, signature *s) {
  pln_buffer *parts[] = {&s->params, &s->sizes,     &s->names,
                         &s->args,   &s->size_args, &s->entry};
  for (size_t i = 0; i < PLN_COUNT(parts); i++)
    pln_buffer_init(parts[i], w->engine);
  w->body.size = 0;
  w->sizes.size = w->dims.size = w->callee_sizes.size = 0;
  w->n_temps = w->n_labels = w->n_asserts = w->n_regions = 0;
  w->n_sizes = w->n_iters = w->n_log = w->n_tasks = 0;
  w->n_values = w->n_memories = 0;
  w->stack_bytes = w->workspace_bytes = 0;
  w->uses_workspace = w->at_top = w->has_callees = w->has_sized = false;
  w->n_dims = 0;
  w->region.outer = NULL;
  w->stmt = PLN_NONE;
  w->sums_first = PLN_NONE;
  w->n_merged = 1;
  w->part = (pln_c_part){PLN_NONE, PLN_NONE, PLN_NONE};
  w->out = &w->body;
}

static void free_signature(signature *s) {
  pln_buffer *parts[] = {&s->params, &s->sizes,     &s->names,
                         &s->args,   &s->size_args, &s->entry};
  for (size_t i = 0; i < PLN_COUNT(parts); i++)
    pln_buffer_free(parts[i]);
}

/* Writes one variant; `scalar`: without vectors. Returns whether it has
 * vectors. */
static bool write_variant(pln_cw *w, bool scalar, signature *s) {
  reset(w, s);
  pln_c_analyse(w);
  if (w->status != PLN_OK)
    return false;
  bool vectors = w->width > 1 && !scalar;
  if (scalar)
    w->width = 1;
  w->restricts = pln_attrs_int(w->engine, w->g->nodes[w->g->root].attrs,
                               "tir.noalias", 1) != 0;
  w->keeps_asserts = pln_attrs_int(w->engine, w->g->nodes[w->g->root].attrs,
                                   "keep_asserts", 0) != 0;
  w->uses_vectors |= vectors;
  if (vectors)
    pln_c_fail(w, pln_buffer_text(&w->functions, "#ifdef PL_VECTORS\n\n"));
  add_params(w, s);
  pln_c_push_body(w, w->g->nodes[w->g->root].data);
  pln_c_run_tasks(w, 0);
  write_function(w, s);
  pln_c_note_callee(w);
  return vectors;
}

static void note_statement(pln_cw *w) {
  char text[160];
  pln_buffer buffer;
  size_t mark = pln_diag_count(w->engine);
  if (w->stmt == PLN_NONE || w->status == PLN_ERR_NOMEM ||
      w->status == PLN_ERR_INTERRUPTED)
    return;
  pln_buffer_init(&buffer, w->engine);
  pln_status status =
      pln_print_script(w->g, w->stmt, false, 640, pln_buffer_write, &buffer);
  size_t n = 0;
  while (n < buffer.size && buffer.data[n] != '\n' && n < sizeof text - 1)
    n++;
  if (n > 0)
    memcpy(text, buffer.data, n);
  text[n] = 0;
  pln_buffer_free(&buffer);
  if (status != PLN_OK)
    pln_diag_drop(w->engine, mark);
  else
    pln_diag_note(w->engine, NULL, "in the statement: %s", text);
}

void pln_c_function_write(pln_cw *w) {
  signature s;
  bool vectors = write_variant(w, false, &s);
  if (vectors && w->status == PLN_OK) {
    pln_c_free_analysis(w);
    free_signature(&s);
    pln_c_fail(w, pln_buffer_text(&w->functions, "#else\n\n"));
    (void)write_variant(w, true, &s);
    if (w->status == PLN_OK)
      pln_c_fail(w, pln_buffer_text(&w->functions, "#endif\n\n"));
  }
  if (w->status == PLN_OK) {
    w->depth = 0;
    write_size(w, &s);
    write_entry(w, &s);
    write_header(w, &s);
  } else {
    note_statement(w);
  }
  pln_c_free_analysis(w);
  free_signature(&s);
}
