/* arg_binder.c: binds parameters and buffers to what a caller passed
 * (arg_binder.h).
 *
 * Called by tir.MakePackedAPI. What always holds: a variable is bound once;
 * whatever else a caller says of it is asserted. */

#include <stdio.h>

#include "lower/host/arg_binder.h"

#include "lower/flatten/flattened_buffer.h"

pln_status pln_arg_binder_begin(pln_arg_binder *x, pln_builder *b) {
  *x = (pln_arg_binder){.e = {.b = b}};
  PLN_TRY(pln_idmap_new(b->engine, &x->bound));
  return pln_analyzer_new(b->engine, &x->a);
}

void pln_arg_binder_end(pln_arg_binder *x) {
  pln_nest_free(x->e.b->engine, &x->init);
  pln_nest_free(x->e.b->engine, &x->asserts);
  if (x->bound)
    pln_idmap_free(x->bound);
  if (x->a)
    pln_analyzer_free(x->a);
}

bool pln_arg_is_bound(const pln_arg_binder *x, pln_ref var) {
  return pln_idmap_get(x->bound, x->e.b->graph->nodes[var].data) != 0;
}

pln_ref pln_arg_field(pln_emit *e, pln_ref pointer, int32_t index,
                      int32_t field, pln_type type) {
  pln_ref args[3] = {pointer, pln_emit_int(e, PLN_INT32, index),
                     pln_emit_int(e, PLN_INT32, field)};
  return pln_emit_call(e, "tvm_struct_get", type, 3, args);
}

/* --------------------------------------------------------------- assertions
 */

/* The text of an expression, by itself in a graph that is sealed. */
static pln_status print_expr(pln_arg_binder *x, pln_ref expr,
                             pln_buffer *text) {
  pln_builder *b;
  pln_graph *g = NULL;
  pln_term term;
  pln_ref copy;
  PLN_TRY(pln_analyzer_import_built(x->a, x->e.b, expr, &term));
  PLN_TRY(pln_builder_new(x->e.b->engine, &b));
  pln_status status = pln_analyzer_export(x->a, b, term, &copy);
  if (status == PLN_OK)
    status = pln_builder_seal(b, copy, &g);
  if (status == PLN_OK)
    status = pln_print_script(g, g->root, false, 0, pln_buffer_write, text);
  pln_graph_release(g);
  pln_builder_free(b);
  return status;
}

/* The string "A.shape[0] has ...: " and the text of an expression. */
static pln_ref message(pln_arg_binder *x, const char *before, pln_ref expr) {
  pln_buffer text;
  pln_ref out = PLN_NONE;
  pln_buffer_init(&text, x->e.b->engine);
  if (x->e.status == PLN_OK)
    x->e.status = pln_buffer_text(&text, before);
  if (x->e.status == PLN_OK)
    x->e.status = print_expr(x, expr, &text);
  if (x->e.status == PLN_OK)
    out = pln_emit_string(&x->e, (pln_slice){text.data, text.size});
  pln_buffer_free(&text);
  return out;
}

static pln_ref simplified(pln_arg_binder *x, pln_ref node) {
  pln_term term;
  pln_emit *e = &x->e;
  if (e->status == PLN_OK)
    e->status = pln_analyzer_import_built(x->a, e->b, node, &term);
  if (e->status == PLN_OK)
    e->status = pln_analyzer_simplify(x->a, term, 2, &term);
  if (e->status == PLN_OK)
    e->status = pln_analyzer_export(x->a, e->b, term, &node);
  return e->status == PLN_OK ? node : PLN_NONE;
}

static void add_assert(pln_arg_binder *x, pln_ref condition, pln_ref text) {
  pln_nest_add(
      &x->e, &x->asserts,
      (pln_nest_item){.kind = PLN_ASSERT_STMT, .a = condition, .b = text});
}

static void refuse_condition(pln_arg_binder *x, const char *name) {
  x->e.status =
      pln_diag_error(x->e.b->engine, PLN_ERR_ARGUMENT, NULL,
                     "tir.MakePackedAPI: what is said of argument %s can "
                     "never hold",
                     name);
}

/* Asserts a condition unless it always holds. */
static void assert_condition(pln_arg_binder *x, pln_ref condition,
                             const char *name) {
  char before[512];
  pln_ref simple = simplified(x, condition);
  if (x->e.status != PLN_OK)
    return;
  if (x->e.b->graph->nodes[simple].kind == PLN_INT_IMM) {
    if (pln_is_int(x->e.b->graph, simple, 0))
      refuse_condition(x, name);
    return;
  }
  snprintf(before, sizeof before,
           "Argument %s has an unsatisfied constraint: ", name);
  add_assert(x, simple, message(x, before, condition));
}

bool pln_arg_bind(pln_arg_binder *x, pln_ref arg, pln_ref value,
                  const char *name) {
  pln_emit *e = &x->e;
  if (e->status != PLN_OK)
    return false;
  if (e->b->graph->nodes[arg].kind != PLN_VAR || pln_arg_is_bound(x, arg)) {
    assert_condition(x, pln_emit_folded(e, PLN_PRIM_EQ, arg, value), name);
    return false;
  }
  e->status = pln_idmap_set(x->bound, e->b->graph->nodes[arg].data, 1);
  pln_nest_add(e, &x->init,
               (pln_nest_item){.kind = PLN_LET_STMT, .a = arg, .b = value});
  return true;
}

/* ------------------------------------------------------------------ tensors */

typedef struct tensor_binding {
  pln_arg_binder *x;
  pln_emit *e;
  pln_ref buffer, handle;
  const char *name;
  pln_type element;
  uint32_t rank, n_strides;
  pln_ref shape[PLN_MOST_AXES], strides[PLN_MOST_AXES], data, elem_offset;
  pln_ref shape_memory, stride_memory; /* Buffers over the tensor's arrays */
  pln_ref no_strides;                  /* the tensor has none */
} tensor_binding;

static pln_ref field(tensor_binding *t, int32_t number, pln_type type) {
  return pln_arg_field(t->e, t->handle, 0, number, type);
}

static pln_ref text_of(tensor_binding *t, const char *format, uint32_t n) {
  char text[512];
  size_t size = strlen(t->name);
  if (size > 400)
    size = 400;
  memcpy(text, t->name, size);
  snprintf(text + size, sizeof text - size, format, n);
  return pln_emit_string(t->e, pln_text(text));
}

static void bind_field(tensor_binding *t, pln_ref arg, pln_ref value,
                       const char *what, uint32_t k) {
  char name[512];
  int n = snprintf(name, sizeof name, "%.400s", t->name);
  snprintf(name + n, sizeof name - (size_t)n, what, k);
  pln_arg_bind(t->x, arg, value, name);
}

/* TVM's number of the kind of dtype. */
static int64_t type_code(pln_dtype dtype) {
  if (dtype == PLN_BFLOAT16)
    return 4;
  if (pln_is_float_dtype(dtype))
    return 2;
  return pln_is_signed(dtype) ? 0 : 1;
}

static pln_ref equals(tensor_binding *t, int32_t number, pln_dtype dtype,
                      int64_t value) {
  pln_ref get = field(t, number, pln_emit_type(t->e, dtype));
  return pln_emit_binary(t->e, PLN_PRIM_EQ, get,
                         pln_emit_int(t->e, dtype, value));
}

/* "float32x4" */
static void dtype_text(const tensor_binding *t, char *text, size_t size) {
  pln_engine *engine = t->e->b->engine;
  uint32_t lanes = pln_type_number(engine, t->element);
  const char *name = pln_dtype_name(pln_type_dtype(engine, t->element));
  if (lanes > 1)
    snprintf(text, size, ".dtype is expected to be %sx%u", name, lanes);
  else
    snprintf(text, size, ".dtype is expected to be %s", name);
}

static void check_type(tensor_binding *t) {
  char text[96];
  pln_emit *e = t->e;
  pln_dtype dtype = pln_type_dtype(e->b->engine, t->element);
  int64_t bits = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype);
  pln_ref rank = pln_emit_int(e, PLN_INT32, t->rank);
  pln_ref ndim =
      pln_emit_binary(e, PLN_PRIM_EQ, rank,
                      field(t, PLN_ARRAY_NDIM, pln_emit_type(e, PLN_INT32)));
  pln_ref kind = pln_emit_binary(
      e, PLN_PRIM_AND,
      equals(t, PLN_ARRAY_TYPE_CODE, PLN_UINT8, type_code(dtype)),
      equals(t, PLN_ARRAY_TYPE_BITS, PLN_UINT8, bits));
  pln_ref lanes = equals(t, PLN_ARRAY_TYPE_LANES, PLN_UINT16,
                         pln_type_number(e->b->engine, t->element));
  pln_ref text_ndim = text_of(t, ".ndim is expected to equal %u", t->rank);
  dtype_text(t, text, sizeof text);
  add_assert(t->x, ndim, text_ndim);
  add_assert(t->x, ndim, text_ndim);
  add_assert(t->x, pln_emit_binary(e, PLN_PRIM_AND, kind, lanes),
             text_of(t, text, 0));
}

static void bind_data(tensor_binding *t) {
  pln_emit *e = t->e;
  char name[512];
  pln_ref value = field(t, PLN_ARRAY_DATA, pln_emit_type(e, PLN_DTYPE_NONE));
  snprintf(name, sizeof name, "%.400s.data", t->name);
  if (!pln_arg_bind(t->x, t->data, value, name))
    return;
  int64_t alignment = pln_attrs_int(
      e->b->engine, e->b->graph->nodes[t->buffer].attrs, "data_alignment", 64);
  pln_nest_add(e, &t->x->init,
               (pln_nest_item){.kind = PLN_ATTR_STMT,
                               .a = t->data,
                               .key = "storage_alignment",
                               .value = pln_emit_int(e, PLN_INT32, alignment)});
}

/* A Buffer over one of the tensor's arrays of int64. */
static pln_ref bind_array(tensor_binding *t, int32_t number, const char *what,
                          uint32_t n) {
  pln_emit *e = t->e;
  char name[512];
  pln_type element = pln_emit_type(e, PLN_INT64);
  snprintf(name, sizeof name, "%.400s.%s", t->name, what);
  pln_ref data = pln_emit_var(e, name, pln_emit_pointer(e, element, ""));
  pln_ref buffer =
      pln_emit_buffer(e, name, data, element, pln_emit_int(e, PLN_INT32, n));
  pln_ref value = field(t, number, pln_emit_type(e, PLN_DTYPE_NONE));
  pln_nest_add(e, &t->x->init,
               (pln_nest_item){.kind = PLN_LET_STMT, .a = data, .b = value});
  pln_nest_add(e, &t->x->init,
               (pln_nest_item){.kind = PLN_DECL_BUFFER, .a = buffer});
  return buffer;
}

/* Element k of an array in the type of the expression. */
static pln_ref element_of(tensor_binding *t, pln_ref memory, uint32_t k,
                          pln_type type) {
  return pln_emit_cast(
      t->e, type,
      pln_emit_load(t->e, memory, pln_emit_int(t->e, PLN_INT32, k)));
}

static pln_type index_type(tensor_binding *t) {
  return t->rank ? pln_emit_type_of(t->e, t->shape[0])
                 : pln_emit_type(t->e, PLN_INT32);
}

static void bind_shape(tensor_binding *t) {
  t->shape_memory = bind_array(t, PLN_ARRAY_SHAPE, "shape", t->rank);
  for (uint32_t k = 0; k < t->rank && t->e->status == PLN_OK; k++)
    bind_field(
        t, t->shape[k],
        element_of(t, t->shape_memory, k, pln_emit_type_of(t->e, t->shape[k])),
        ".shape[%u]", k);
}

/* A tensor with strides is compact. */
static void check_compact(tensor_binding *t) {
  pln_emit *e = t->e;
  pln_type type = index_type(t);
  pln_ref stride = pln_emit_int_of(e, type, 1);
  pln_ref all = pln_emit_int(e, PLN_BOOL, 1);
  for (uint32_t k = t->rank; k-- > 0 && e->status == PLN_OK;) {
    pln_ref one = pln_emit_folded(e, PLN_PRIM_EQ, t->shape[k],
                                  pln_emit_int_of(e, type, 1));
    pln_ref same = pln_emit_folded(e, PLN_PRIM_EQ, stride,
                                   element_of(t, t->stride_memory, k, type));
    all = pln_emit_folded(e, PLN_PRIM_AND, all,
                          pln_emit_folded(e, PLN_PRIM_OR, one, same));
    stride = pln_emit_folded(e, PLN_PRIM_MUL, stride, t->shape[k]);
  }
  if (t->rank == 0)
    return;
  pln_ref nothing = pln_emit_evaluate(e, pln_emit_int(e, PLN_INT32, 0));
  pln_ref check = pln_emit_assert(
      e, all, text_of(t, ".strides: expected to be compact array", 0), nothing);
  check = pln_emit_if(e, pln_emit_not(e, t->no_strides), check, PLN_NONE);
  pln_nest_add(e, &t->x->asserts,
               (pln_nest_item){.kind = PLN_SEQ_STMT, .a = check});
}

static pln_ref if_then_else(pln_emit *e, pln_ref condition, pln_ref x,
                            pln_ref y) {
  pln_ref args[3] = {condition, x, y};
  return pln_emit_call(e, "if_then_else", pln_emit_type_of(e, x), 3, args);
}

/* An axis of extent 1 has the stride 0. */
static void bind_broadcast_strides(tensor_binding *t) {
  pln_emit *e = t->e;
  pln_ref stride = pln_emit_int_of(e, index_type(t), 1);
  for (uint32_t k = t->rank; k-- > 0 && e->status == PLN_OK;) {
    pln_type type = pln_emit_type_of(e, t->shape[k]);
    pln_ref one = pln_emit_folded(e, PLN_PRIM_EQ, t->shape[k],
                                  pln_emit_int_of(e, type, 1));
    pln_ref value = if_then_else(e, t->no_strides, stride,
                                 element_of(t, t->stride_memory, k, type));
    bind_field(t, t->strides[k],
               if_then_else(e, one, pln_emit_int_of(e, type, 0), value),
               ".strides[%u]", k);
    stride =
        simplified(t->x, pln_emit_folded(e, PLN_PRIM_MUL, stride, t->shape[k]));
  }
}

static void bind_own_strides(tensor_binding *t) {
  pln_emit *e = t->e;
  pln_ref stride = pln_emit_int(e, PLN_INT32, 1);
  for (uint32_t k = t->n_strides; k-- > 0 && e->status == PLN_OK;) {
    pln_type type = pln_emit_type_of(e, t->shape[k]);
    pln_ref value =
        if_then_else(e, t->no_strides, pln_emit_cast(e, type, stride),
                     element_of(t, t->stride_memory, k, type));
    bind_field(t, t->strides[k], value, ".strides[%u]", k);
    stride = pln_emit_folded(e, PLN_PRIM_MUL, pln_emit_cast(e, type, stride),
                             element_of(t, t->shape_memory, k, type));
  }
}

static void bind_strides(tensor_binding *t) {
  pln_emit *e = t->e;
  t->stride_memory = bind_array(t, PLN_ARRAY_STRIDES, "strides", t->n_strides);
  if (e->status != PLN_OK)
    return;
  pln_ref data = pln_operand(e->b->graph, t->stride_memory, 0);
  t->no_strides =
      pln_emit_call(e, "isnullptr", pln_emit_type(e, PLN_BOOL), 1, &data);
  if (t->n_strides == 0)
    check_compact(t);
  else if (pln_attrs_find(e->b->engine, e->b->graph->nodes[t->buffer].attrs,
                          "buffer_type"))
    bind_broadcast_strides(t);
  else
    bind_own_strides(t);
}

static int64_t element_bytes(const tensor_binding *t) {
  pln_engine *engine = t->e->b->engine;
  int64_t bits = pln_dtype_bits(pln_type_dtype(engine, t->element)) *
                 (int64_t)pln_type_number(engine, t->element);
  return (bits + 7) / 8;
}

static void bind_symbolic_offset(tensor_binding *t, pln_ref bytes) {
  pln_emit *e = t->e;
  pln_type type = pln_emit_type_of(e, t->elem_offset);
  pln_ref count = pln_emit_binary(
      e, PLN_PRIM_DIV, bytes, pln_emit_int(e, PLN_UINT64, element_bytes(t)));
  char name[512];
  int64_t factor =
      e->status == PLN_OK
          ? pln_attrs_int(e->b->engine, e->b->graph->nodes[t->buffer].attrs,
                          "offset_factor", 1)
          : 1;
  snprintf(name, sizeof name, "%.400s.elem_offset", t->name);
  if (!pln_arg_bind(t->x, t->elem_offset, pln_emit_cast(e, type, count),
                    name) ||
      factor <= 1)
    return;
  pln_ref rest = pln_emit_binary(e, PLN_PRIM_MOD, t->elem_offset,
                                 pln_emit_int_of(e, type, factor));
  assert_condition(
      t->x, pln_emit_binary(e, PLN_PRIM_EQ, rest, pln_emit_int_of(e, type, 0)),
      name);
}

static void bind_offset(tensor_binding *t) {
  pln_emit *e = t->e;
  pln_ref bytes = field(t, PLN_ARRAY_BYTE_OFFSET, pln_emit_type(e, PLN_UINT64));
  if (e->status != PLN_OK)
    return;
  if (e->b->graph->nodes[t->elem_offset].kind != PLN_INT_IMM) {
    bind_symbolic_offset(t, bytes);
    return;
  }
  int64_t offset = pln_node_int(e->b->graph, t->elem_offset);
  bind_field(t, pln_emit_int(e, PLN_UINT64, offset * element_bytes(t)), bytes,
             ".byte_offset", 0);
}

static tensor_binding tensor_of(pln_arg_binder *x, pln_ref buffer,
                                pln_ref handle, const char *name) {
  const pln_graph *g = x->e.b->graph;
  pln_buffer_fields f = pln_buffer_fields_of(g, buffer);
  tensor_binding t = {.x = x,
                      .e = &x->e,
                      .buffer = buffer,
                      .handle = handle,
                      .name = name,
                      .element = g->nodes[buffer].type,
                      .rank = f.rank,
                      .n_strides = f.n_strides,
                      .data = f.data,
                      .elem_offset = f.elem_offset};
  memcpy(t.shape, f.shape, f.rank * sizeof *f.shape);
  memcpy(t.strides, f.strides, f.n_strides * sizeof *f.strides);
  return t;
}

void pln_arg_bind_tensor(pln_arg_binder *x, pln_ref buffer, pln_ref device_type,
                         pln_ref device_id, pln_ref handle, const char *name) {
  pln_emit *e = &x->e;
  if (e->status != PLN_OK)
    return;
  if (pln_buffer_fields_of(e->b->graph, buffer).rank > PLN_MOST_AXES) {
    e->status = pln_diag_error(e->b->engine, PLN_ERR_LIMIT, NULL,
                               "tir.MakePackedAPI: %s has more than %d "
                               "dimensions",
                               name, PLN_MOST_AXES);
    return;
  }
  tensor_binding t = tensor_of(x, buffer, handle, name);
  pln_type number = pln_emit_type(e, PLN_INT32);
  check_type(&t);
  bind_data(&t);
  bind_shape(&t);
  bind_strides(&t);
  bind_offset(&t);
  bind_field(&t, device_type, field(&t, PLN_ARRAY_DEVICE_TYPE, number),
             ".device_type", 0);
  bind_field(&t, device_id, field(&t, PLN_ARRAY_DEVICE_ID, number),
             ".device_id", 0);
}
