/* tir/script/parse/assign.c: calls that declare something or open a body:
 * "A = T.Buffer(...)", "p = T.allocate(...)", "with T.block(...):".
 *
 * Called by the line parser (script/parse/stmt.c). Without `with`, the body is
 * the rest of the lines around the statement. */

#include "ir/tensor/tensor.h"
#include "ir/tir/script/parse/parse.h"

/* One statement being performed. */
typedef struct doing {
  const pln_script_value *call;
  pln_script_args args;
  uint32_t n;
  const pln_slice *names;
  bool with;
} doing;

static pln_status name_of(pln_script_parser *p, const doing *d,
                          pln_slice *out) {
  if (d->n != 1)
    return pln_script_refuse(p, d->call,
                             d->n == 0 ? "a name for this is expected"
                                       : "one name is expected");
  *out = d->names[0];
  return PLN_OK;
}

static pln_status no_name(pln_script_parser *p, const doing *d) {
  return d->n == 0 ? PLN_OK
                   : pln_script_refuse(p, d->call, "this gives no value");
}

/* Opens the frame of a body with `operands` and `params` on p->saved. */
static pln_status open_owner(pln_script_parser *p, const doing *d,
                             pln_kind kind, pln_attrs attrs, uint32_t operands,
                             uint32_t params) {
  const pln_open_frame *around = &p->frames[p->n_frames - 1];
  pln_open_frame f = {.what = PLN_F_OWNER,
                      .kind = (uint8_t)kind,
                      .attrs = attrs,
                      .operands = operands,
                      .params = params,
                      .header = around->indent,
                      .indent = around->indent + d->with,
                      .at = d->call->at,
                      .size = d->call->size};
  p->opened = p->opened || d->with;
  return pln_script_open_frame(p, f);
}

static pln_status hold_value(pln_script_parser *p,
                             const pln_script_value *value, pln_type hint) {
  pln_ref ref;
  PLN_TRY(pln_script_ref(p, value, hint, &ref));
  return pln_script_hold(p, ref);
}

static pln_status hold_true(pln_script_parser *p) {
  pln_ref ref;
  PLN_TRY(pln_build_int_imm(p->b, p->types[2], 1, &ref));
  return pln_script_hold(p, ref);
}

/* ------------------------------------------------------------------ buffers */

static pln_status declare_buffer(pln_script_parser *p, const doing *d) {
  pln_slice name;
  pln_ref buffer, data;
  PLN_TRY(name_of(p, d, &name));
  PLN_TRY(pln_script_make_buffer(p, d->call, name, &buffer, &data));
  return pln_script_bind_ref(p, name, PLN_V_BUFFER, buffer);
}

static pln_status match_region(pln_script_parser *p, const doing *d,
                               pln_ref buffer) {
  pln_ref region, ref;
  pln_script_value source = *d->args.at[0];
  if (source.kind == PLN_V_BUFFER)
    return pln_script_refuse(p, &source, "a region of a buffer is expected");
  PLN_TRY(pln_script_region(p, &source, &region));
  PLN_TRY(pln_script_push_ref(p, buffer));
  PLN_TRY(pln_script_push_ref(p, region));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_MATCH_BUFFER},
                          p->n_refs - 2, &ref));
  return pln_script_add_part(
      p, (pln_script_part){.what = PLN_PART_MATCH, .a = ref});
}

static pln_status bind_param(pln_script_parser *p, const doing *d,
                             pln_ref buffer) {
  pln_ref param, ref;
  PLN_TRY(pln_script_ref(p, d->args.at[0], 0, &param));
  if (p->b->graph->nodes[param].kind != PLN_VAR)
    return pln_script_refuse(p, d->args.at[0],
                             "a parameter of the function is expected");
  PLN_TRY(pln_script_push_ref(p, param));
  PLN_TRY(pln_script_push_ref(p, buffer));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_BUFFER_BIND}, p->n_refs - 2,
                          &ref));
  return pln_script_add_part(
      p, (pln_script_part){.what = PLN_PART_BIND, .a = ref});
}

static pln_status match_buffer(pln_script_parser *p, const doing *d) {
  pln_slice name;
  pln_ref buffer, data;
  const pln_open_frame *enclosing = pln_script_enclosing(p);
  PLN_TRY(name_of(p, d, &name));
  if (!enclosing)
    return pln_script_refuse(p, d->call,
                             "this is for functions and blocks only");
  PLN_TRY(pln_script_make_buffer(p, d->call, name, &buffer, &data));
  PLN_TRY(enclosing->what == PLN_F_BLOCK ? match_region(p, d, buffer)
                                         : bind_param(p, d, buffer));
  return pln_script_bind_ref(p, name, PLN_V_BUFFER, buffer);
}

static pln_status alloc_buffer(pln_script_parser *p, const doing *d) {
  pln_slice name;
  pln_ref buffer, data;
  PLN_TRY(name_of(p, d, &name));
  if (!pln_script_enclosing(p))
    return pln_script_refuse(p, d->call,
                             "this is for functions and blocks only");
  PLN_TRY(pln_script_make_buffer(p, d->call, name, &buffer, &data));
  PLN_TRY(pln_script_add_part(
      p, (pln_script_part){.what = PLN_PART_ALLOC, .a = buffer}));
  return pln_script_bind_ref(p, name, PLN_V_BUFFER, buffer);
}

/* "float32x4", by the library's name of the dtype. */
static pln_status with_dtype(pln_script_parser *p, pln_type type,
                             pln_attrs *attrs) {
  pln_dtype dtype = pln_type_dtype(p->engine, type);
  uint32_t lanes = pln_type_get_kind(p->engine, type) == PLN_TYPE_PRIM
                       ? pln_type_number(p->engine, type)
                       : 1;
  p->word.size = 0;
  PLN_TRY(pln_buffer_printf(&p->word, "%s",
                            dtype ? pln_dtype_name(dtype) : "handle"));
  if (lanes > 1)
    PLN_TRY(pln_buffer_printf(&p->word, "x%u", (unsigned)lanes));
  return pln_script_with_string(p, "dtype",
                                (pln_slice){p->word.data, p->word.size}, attrs);
}

/* T.decl_buffer without data allocates the memory, too. */
static pln_status allocate_declared(pln_script_parser *p, const doing *d,
                                    pln_ref buffer, pln_ref data) {
  pln_attrs attrs = 0;
  uint32_t rank = p->b->graph->nodes[buffer].results;
  PLN_TRY(with_dtype(p, p->b->graph->nodes[buffer].type, &attrs));
  PLN_TRY(hold_true(p));
  for (uint32_t i = 0; i < rank; i++)
    PLN_TRY(pln_script_hold(
        p, p->b->graph->operands[p->b->graph->nodes[buffer].first + 1 + i]));
  PLN_TRY(pln_script_hold(p, data));
  return open_owner(p, d, PLN_ALLOCATE, attrs, 1 + rank, 1);
}

static pln_status decl_buffer(pln_script_parser *p, const doing *d) {
  pln_slice name;
  pln_ref buffer, data;
  PLN_TRY(name_of(p, d, &name));
  PLN_TRY(pln_script_make_buffer(p, d->call, name, &buffer, &data));
  PLN_TRY(pln_script_bind_ref(p, name, PLN_V_BUFFER, buffer));
  doing inner = *d;
  if (data != PLN_NONE) {
    PLN_TRY(allocate_declared(p, d, buffer, data));
    inner.with = false;
  }
  PLN_TRY(pln_script_hold(p, buffer));
  return open_owner(p, &inner, PLN_DECL_BUFFER, 0, 1, 0);
}

/* ------------------------------------------------------------------- memory */

static pln_status pointer_to(pln_script_parser *p, pln_slice name,
                             pln_type element, pln_slice scope, pln_ref *out) {
  pln_symbol symbol;
  pln_type type;
  PLN_TRY(pln_symbol_intern(p->engine, scope, &symbol));
  PLN_TRY(
      pln_type_make(p->engine, PLN_TYPE_POINTER, symbol, 1, &element, &type));
  PLN_TRY(pln_script_make_var(p, name, type, false, out));
  return pln_script_bind_ref(p, name, PLN_V_EXPR, *out);
}

static pln_status hold_list(pln_script_parser *p, const pln_script_value *list,
                            uint32_t *n) {
  uint32_t first = p->n_refs;
  PLN_TRY(pln_script_push_list(p, list, 0, n));
  for (uint32_t i = 0; i < *n; i++)
    PLN_TRY(pln_script_hold(p, p->refs[first + i]));
  p->n_refs = first;
  return PLN_OK;
}

static pln_status allocate(pln_script_parser *p, const doing *d) {
  const pln_script_value *const *a = d->args.at;
  pln_slice name, scope = pln_text("global");
  pln_attrs attrs = 0;
  pln_type type;
  pln_ref var;
  uint32_t n;
  PLN_TRY(name_of(p, d, &name));
  PLN_TRY(pln_script_as_type(p, a[1], &type));
  if (a[2])
    PLN_TRY(pln_script_as_string(p, a[2], &scope));
  PLN_TRY(with_dtype(p, type, &attrs));
  if (a[4] && a[4]->kind != PLN_V_NONE)
    PLN_TRY(pln_script_with_dict(p, "annotations", a[4], &attrs));
  PLN_TRY(a[3] && a[3]->kind != PLN_V_NONE ? hold_value(p, a[3], p->types[2])
                                           : hold_true(p));
  PLN_TRY(hold_list(p, a[0], &n));
  PLN_TRY(pointer_to(p, name, type, scope, &var));
  PLN_TRY(pln_script_hold(p, var));
  return open_owner(p, d, PLN_ALLOCATE, attrs, 1 + n, 1);
}

static void *copy_number(const pln_script_value *item, pln_dtype dtype,
                         char *at) {
  double f = item->kind == PLN_V_FLOAT ? item->v.f : (double)item->v.i;
  float single = (float)f;
  int64_t i = item->kind == PLN_V_FLOAT ? (int64_t)item->v.f : item->v.i;
  uint16_t half;
  switch (dtype) {
  case PLN_FLOAT64: return memcpy(at, &f, sizeof f);
  case PLN_FLOAT32: return memcpy(at, &single, sizeof single);
  case PLN_FLOAT16:
  case PLN_BFLOAT16:
    half = dtype == PLN_FLOAT16 ? pln_float_to_half(single)
                                : pln_float_to_bfloat(single);
    return memcpy(at, &half, sizeof half);
  default: return memcpy(at, &i, pln_dtype_bits(dtype) / 8);
  }
}

/* The elements of a list, of whole bytes each. */
static pln_status list_tensor(pln_script_parser *p,
                              const pln_script_value *list, pln_dtype dtype,
                              pln_tensor **out) {
  size_t item = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype) / 8;
  int64_t dim = list->n;
  if (item == 0 || (dtype != PLN_BOOL && pln_dtype_bits(dtype) % 8))
    return pln_script_refuse(p, list, "a list of this dtype cannot be read");
  char *bytes = pln_arena_new(&p->arena, (list->n + 1) * item + 8);
  if (!bytes)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < list->n; i++) {
    const pln_script_value *v = &p->kept[list->first + i];
    if (v->kind == PLN_V_FLOAT && !(v->v.f > -9e18 && v->v.f < 9e18) &&
        dtype != PLN_FLOAT64 && dtype != PLN_FLOAT32)
      return pln_script_refuse(p, v, "this number does not fit in the dtype");
    if (v->kind != PLN_V_INT && v->kind != PLN_V_FLOAT && v->kind != PLN_V_BOOL)
      return pln_script_refuse(p, v, "a number is expected");
    copy_number(v, dtype == PLN_BOOL ? PLN_INT8 : dtype, bytes + i * item);
  }
  return pln_tensor_from_bytes(p->engine, dtype, 1, &dim, bytes, list->n * item,
                               out);
}

static pln_status with_tensor(pln_script_parser *p, pln_tensor *tensor,
                              pln_attrs *attrs) {
  pln_attr entry = {.kind = PLN_ATTR_TENSOR, .v.tensor = tensor};
  PLN_TRY(pln_symbol_intern(p->engine, pln_text("data"), &entry.name));
  return pln_attrs_with(p->engine, *attrs, &entry, attrs);
}

/* The tensor has the allocation's extents when they are constant. */
static pln_status shaped(pln_script_parser *p, uint32_t rank,
                         const pln_ref *extents, pln_dtype dtype,
                         pln_tensor **tensor) {
  int64_t dims[32], count = 1;
  const void *bytes;
  pln_tensor *out;
  if (rank == 1 || rank > PLN_COUNT(dims))
    return PLN_OK;
  for (uint32_t i = 0; i < rank; i++) {
    if (p->b->graph->nodes[extents[i]].kind != PLN_INT_IMM)
      return PLN_OK;
    dims[i] = pln_node_int(p->b->graph, extents[i]);
    if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count))
      return PLN_OK;
  }
  if ((uint64_t)count != pln_tensor_count(*tensor))
    return PLN_OK;
  PLN_TRY(pln_tensor_data(*tensor, &bytes));
  size_t item = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype) / 8;
  PLN_TRY(pln_tensor_from_bytes(p->engine, dtype, rank, dims, bytes,
                                (size_t)count * item, &out));
  pln_tensor_release(*tensor);
  *tensor = out;
  return PLN_OK;
}

static pln_status constant_data(pln_script_parser *p,
                                const pln_script_value *data, pln_type type,
                                uint32_t rank, pln_attrs *attrs) {
  pln_dtype dtype = pln_type_dtype(p->engine, type);
  pln_tensor *tensor = NULL;
  if (data->kind == PLN_V_INT)
    return pln_script_with_int(p, "data", data->v.i, attrs);
  if (data->kind == PLN_V_TENSOR)
    return with_tensor(p, p->tensors[data->v.of.number], attrs);
  if (data->kind != PLN_V_LIST)
    return pln_script_refuse(p, data, "a list of numbers is expected");
  PLN_TRY(list_tensor(p, data, dtype, &tensor));
  const pln_ref *dims = pln_refs_at(p->saved, p->n_saved - rank);
  pln_status status = shaped(p, rank, dims, dtype, &tensor);
  if (status == PLN_OK)
    status = with_tensor(p, tensor, attrs);
  pln_tensor_release(tensor);
  return status;
}

static pln_status allocate_const(pln_script_parser *p, const doing *d) {
  const pln_script_value *const *a = d->args.at;
  pln_slice name;
  pln_attrs attrs = 0;
  pln_type type;
  pln_ref var;
  uint32_t n;
  PLN_TRY(name_of(p, d, &name));
  PLN_TRY(pln_script_as_type(p, a[1], &type));
  PLN_TRY(with_dtype(p, type, &attrs));
  if (a[3] && a[3]->kind != PLN_V_NONE)
    PLN_TRY(pln_script_with_dict(p, "annotations", a[3], &attrs));
  PLN_TRY(hold_list(p, a[2], &n));
  PLN_TRY(constant_data(p, a[0], type, n, &attrs));
  PLN_TRY(pointer_to(p, name, type, pln_text(""), &var));
  PLN_TRY(pln_script_hold(p, var));
  return open_owner(p, d, PLN_ALLOCATE_CONST, attrs, n, 1);
}

static pln_status hold_ranges(pln_script_parser *p, pln_ref region,
                              uint32_t *n) {
  const pln_graph *g = p->b->graph;
  *n = g->nodes[region].count - 1;
  for (uint32_t i = 0; i < *n; i++)
    PLN_TRY(pln_script_hold(p, g->operands[g->nodes[region].first + 1 + i]));
  return PLN_OK;
}

/* The storage scope is an attribute around the BufferRealize. */
static pln_status realize_scope(pln_script_parser *p, const doing *d,
                                pln_ref buffer) {
  pln_attrs attrs = 0;
  PLN_TRY(
      pln_script_with_string(p, "attr_key", pln_text("realize_scope"), &attrs));
  PLN_TRY(pln_script_hold(p, buffer));
  PLN_TRY(hold_value(p, d->args.at[1], 0));
  return open_owner(p, d, PLN_ATTR_STMT, attrs, 2, 0);
}

static pln_status realize(pln_script_parser *p, const doing *d) {
  pln_script_value whole = *d->args.at[0];
  doing inner = *d;
  pln_ref region;
  uint32_t n;
  PLN_TRY(no_name(p, d));
  PLN_TRY(pln_script_region(p, &whole, &region));
  if (d->args.at[1]) {
    PLN_TRY(realize_scope(p, d, whole.v.of.ref));
    inner.with = false;
  }
  PLN_TRY(pln_script_hold(p, whole.v.of.ref));
  PLN_TRY(d->args.at[2] ? hold_value(p, d->args.at[2], p->types[2])
                        : hold_true(p));
  PLN_TRY(hold_ranges(p, region, &n));
  return open_owner(p, &inner, PLN_BUFFER_REALIZE, 0, 2 + n, 0);
}

static pln_status producer_realize(pln_script_parser *p, const doing *d) {
  pln_script_value whole = *d->args.at[0];
  pln_attrs attrs = 0;
  pln_slice scope = {"", 0};
  PLN_TRY(no_name(p, d));
  if (whole.kind != PLN_V_INDEX)
    return pln_script_refuse(p, &whole, "a region of a producer is expected");
  if (d->args.at[2])
    PLN_TRY(pln_script_as_string(p, d->args.at[2], &scope));
  PLN_TRY(pln_script_with_string(p, "storage_scope", scope, &attrs));
  PLN_TRY(pln_script_hold(p, whole.v.of.ref));
  PLN_TRY(hold_value(p, d->args.at[1], p->types[2]));
  for (uint32_t i = 0; i < whole.n; i++) {
    pln_ref range;
    PLN_TRY(pln_script_index_range(p, &p->kept[whole.first + i], &range));
    PLN_TRY(pln_script_hold(p, range));
  }
  return open_owner(p, d, PLN_PRODUCER_REALIZE, attrs, 2 + whole.n, 0);
}

/* ------------------------------------------------------- attributes, threads
 */

/* A dictionary, such as a target, is an attribute of the AttrStmt: `node`. */
static pln_status attr_node(pln_script_parser *p, const pln_script_value *value,
                            pln_attrs *attrs, pln_ref *out) {
  uint32_t first = p->n_refs, n;
  if (value->kind == PLN_V_DICT || value->target) {
    PLN_TRY(pln_script_with_dict(p, "node", value, attrs));
    return pln_build_int_imm(p->b, p->types[0], 0, out);
  }
  if (value->kind == PLN_V_BUFFER || value->kind == PLN_V_PRODUCER) {
    *out = value->v.of.ref;
    return PLN_OK;
  }
  if (value->kind != PLN_V_LIST)
    return pln_script_ref(p, value, 0, out);
  PLN_TRY(pln_script_push_list(p, value, 0, &n));
  return pln_script_node(p, (pln_prim){.kind = PLN_PRIM_ARRAY}, first, out);
}

static pln_status attr(pln_script_parser *p, const doing *d) {
  pln_attrs attrs = 0;
  pln_slice key;
  pln_ref node;
  PLN_TRY(no_name(p, d));
  PLN_TRY(pln_script_as_string(p, d->args.at[1], &key));
  PLN_TRY(pln_script_with_string(p, "attr_key", key, &attrs));
  PLN_TRY(attr_node(p, d->args.at[0], &attrs, &node));
  PLN_TRY(pln_script_hold(p, node));
  PLN_TRY(hold_value(p, d->args.at[2], 0));
  return open_owner(p, d, PLN_ATTR_STMT, attrs, 2, 0);
}

static bool is_virtual(pln_slice tag) {
  return pln_slice_is(tag, "vthread") ||
         (tag.size > 8 && !memcmp(tag.data, "vthread.", 8)) ||
         (tag.size > 8 && !memcmp(tag.data, "cthread", 7));
}

/* A new thread variable named by the target, or that of T.env_thread. */
static pln_status thread_var(pln_script_parser *p, const doing *d,
                             pln_type type, pln_ref *var, pln_symbol *tag) {
  const pln_script_value *thread = d->args.at[0];
  pln_slice name;
  if (thread->kind == PLN_V_THREAD) {
    *var = thread->v.of.ref;
    *tag = thread->v.of.tag;
    return no_name(p, d);
  }
  if (thread->kind != PLN_V_STRING)
    return pln_script_refuse(p, thread, "a thread is expected");
  PLN_TRY(name_of(p, d, &name));
  PLN_TRY(pln_symbol_intern(p->engine, thread->v.s, tag));
  PLN_TRY(pln_script_make_var(p, name, type, false, var));
  pln_script_value value = {.kind = PLN_V_THREAD,
                            .v.of = {.ref = *var, .tag = *tag}};
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
  return pln_script_bind(p, symbol, &value);
}

static pln_status launch_thread(pln_script_parser *p, const doing *d) {
  pln_ref extent, var, iter;
  pln_symbol tag;
  pln_attrs attrs = 0;
  PLN_TRY(pln_script_ref(p, d->args.at[1], 0, &extent));
  PLN_TRY(thread_var(p, d, pln_script_type_of(p, extent), &var, &tag));
  PLN_TRY(pln_script_thread(p, var, tag, &iter));
  bool virtual_thread = is_virtual(pln_symbol_text(p->engine, tag));
  PLN_TRY(pln_script_with_string(
      p, "attr_key",
      pln_text(virtual_thread ? "virtual_thread" : "thread_extent"), &attrs));
  PLN_TRY(pln_script_hold(p, iter));
  PLN_TRY(pln_script_hold(p, extent));
  return open_owner(p, d, PLN_ATTR_STMT, attrs, 2, 0);
}

static pln_status env_thread(pln_script_parser *p, const doing *d) {
  pln_slice name, tag;
  pln_symbol symbol;
  pln_script_value value = {.kind = PLN_V_THREAD};
  PLN_TRY(name_of(p, d, &name));
  PLN_TRY(pln_script_as_string(p, d->args.at[0], &tag));
  PLN_TRY(pln_symbol_intern(p->engine, tag, &value.v.of.tag));
  PLN_TRY(pln_script_make_var(p, name, p->types[0], false, &value.v.of.ref));
  PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
  return pln_script_bind(p, symbol, &value);
}

/* T.LetStmt(value, var=x) binds a variable that exists. */
static pln_status let_again(pln_script_parser *p, const doing *d) {
  pln_ref value, var;
  PLN_TRY(no_name(p, d));
  PLN_TRY(pln_script_ref(p, d->args.at[2], 0, &var));
  PLN_TRY(pln_script_ref(p, d->args.at[0], pln_script_type_of(p, var), &value));
  PLN_TRY(pln_script_hold(p, value));
  PLN_TRY(pln_script_hold(p, var));
  return open_owner(p, d, PLN_LET_STMT, 0, 1, 1);
}

static pln_status let_stmt(pln_script_parser *p, const doing *d) {
  pln_slice name;
  pln_ref value, var;
  pln_type type = 0;
  if (d->args.at[2])
    return let_again(p, d);
  PLN_TRY(name_of(p, d, &name));
  if (d->args.at[1])
    PLN_TRY(pln_script_as_type(p, d->args.at[1], &type));
  PLN_TRY(pln_script_ref(p, d->args.at[0], type, &value));
  PLN_TRY(pln_script_make_var(
      p, name, type ? type : pln_script_type_of(p, value), false, &var));
  PLN_TRY(pln_script_bind_ref(p, name, PLN_V_EXPR, var));
  PLN_TRY(pln_script_hold(p, value));
  PLN_TRY(pln_script_hold(p, var));
  return open_owner(p, d, PLN_LET_STMT, 0, 1, 1);
}

static pln_status assert_stmt(pln_script_parser *p, const doing *d) {
  PLN_TRY(no_name(p, d));
  PLN_TRY(hold_value(p, d->args.at[0], p->types[2]));
  PLN_TRY(hold_value(p, d->args.at[1], 0));
  return open_owner(p, d, PLN_ASSERT_STMT, 0, 2, 0);
}

/* ------------------------------------------------------------------- blocks */

static pln_open_frame *block_of(pln_script_parser *p, const doing *d,
                                pln_status *status) {
  pln_open_frame *f = pln_script_enclosing(p);
  bool found = f && f->what == PLN_F_BLOCK;
  *status =
      found ? PLN_OK : pln_script_refuse(p, d->call, "this is for blocks only");
  return f;
}

static pln_status block(pln_script_parser *p, const doing *d) {
  pln_slice name = {"", 0};
  pln_attrs attrs = 0;
  const pln_script_value *bare = d->args.at[1];
  PLN_TRY(no_name(p, d));
  if (!d->with)
    return pln_script_refuse(p, d->call, "a block needs 'with'");
  if (d->args.at[0])
    PLN_TRY(pln_script_as_string(p, d->args.at[0], &name));
  PLN_TRY(pln_script_with_string(p, "name_hint", name, &attrs));
  PLN_TRY(open_owner(p, d, PLN_BLOCK, attrs, 0, 0));
  pln_open_frame *f = &p->frames[p->n_frames - 1];
  f->what = PLN_F_BLOCK;
  f->realized = !(bare && bare->kind == PLN_V_BOOL && bare->v.i);
  f->ref = PLN_NONE;
  return PLN_OK;
}

static pln_status init(pln_script_parser *p, const doing *d) {
  pln_status status;
  PLN_TRY(no_name(p, d));
  (void)block_of(p, d, &status);
  PLN_TRY(status);
  PLN_TRY(open_owner(p, d, PLN_BLOCK_INIT, 0, 0, 0));
  p->frames[p->n_frames - 1].what = PLN_F_INIT;
  return PLN_OK;
}

static pln_status regions(pln_script_parser *p, const doing *d) {
  pln_script_value list = *d->call;
  pln_status status;
  bool reads = d->call->v.of.number == PLN_METHOD_READS;
  pln_open_frame *f = block_of(p, d, &status);
  PLN_TRY(status);
  f->given |= reads ? 1 : 2;
  if (list.n == 1 && p->kept[list.first].kind == PLN_V_LIST)
    list = p->kept[list.first];
  for (uint32_t i = 0; i < list.n; i++) {
    pln_script_part part = {.what = reads ? PLN_PART_READS : PLN_PART_WRITES};
    PLN_TRY(pln_script_region(p, &p->kept[list.first + i], &part.a));
    PLN_TRY(pln_script_add_part(p, part));
  }
  return PLN_OK;
}

static pln_status where(pln_script_parser *p, const doing *d) {
  pln_status status;
  pln_ref ref;
  pln_open_frame *f = block_of(p, d, &status);
  PLN_TRY(status);
  PLN_TRY(pln_script_ref(p, d->args.at[0], p->types[2], &ref));
  f->ref = ref;
  return PLN_OK;
}

static pln_status block_attr(pln_script_parser *p, const doing *d) {
  pln_status status;
  pln_open_frame *f = block_of(p, d, &status);
  PLN_TRY(status);
  return pln_script_with_dict(p, "annotations", d->args.at[0], &f->attrs);
}

static pln_status add_axis(pln_script_parser *p, pln_slice name, pln_ref min,
                           pln_ref extent, pln_ref value, int64_t type) {
  pln_script_part part = {.what = PLN_PART_AXIS, .c = value, .number = type};
  PLN_TRY(pln_script_push_ref(p, min));
  PLN_TRY(pln_script_push_ref(p, extent));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_RANGE}, p->n_refs - 2,
                          &part.b));
  PLN_TRY(pln_script_make_var(p, name, pln_script_type_of(p, extent), false,
                              &part.a));
  PLN_TRY(pln_script_add_part(p, part));
  return pln_script_bind_ref(p, name, PLN_V_EXPR, part.a);
}

/* T.axis.spatial(16, i), T.axis.reduce((2, 6), k) */
static pln_status axis(pln_script_parser *p, const doing *d, int64_t type) {
  const pln_script_value *dom = d->args.at[0];
  pln_script_value zero = {.kind = PLN_V_INT, .at = dom->at, .size = dom->size};
  const pln_script_value *low = &zero;
  pln_slice name;
  pln_status status;
  pln_ref min, extent, value = PLN_NONE;
  const pln_open_frame *f = block_of(p, d, &status);
  PLN_TRY(status);
  PLN_TRY(name_of(p, d, &name));
  bool pair = dom->kind == PLN_V_TUPLE || dom->kind == PLN_V_LIST;
  if (pair && dom->n != 2)
    return pln_script_refuse(p, dom, "(begin, end) is expected");
  if (pair) {
    low = &p->kept[dom->first];
    dom = low + 1;
  }
  if (f->realized && !d->args.at[1])
    return pln_script_refuse(p, d->call, "the value of this axis is missing");
  PLN_TRY(pln_script_match(p, low, dom, &min, &extent));
  PLN_TRY(pln_script_extent(p, min, extent, &extent));
  if (d->args.at[1])
    PLN_TRY(pln_script_ref(p, d->args.at[1], pln_script_type_of(p, extent),
                           &value));
  else
    value = extent; /* of a block that is not realized; unused */
  return add_axis(p, name, min, extent, value, type);
}

static pln_status remap_one(pln_script_parser *p, const doing *d,
                            const pln_script_value *value, char kind,
                            pln_slice name) {
  pln_ref ref;
  PLN_TRY(pln_script_ref(p, value, 0, &ref));
  uint32_t row = pln_idmap_get(p->ranges, ref);
  if (!row)
    return pln_script_refuse(p, value, "a loop variable is expected");
  if (kind != 'S' && kind != 'R')
    return pln_script_refuse(p, d->args.at[0],
                             "the kinds of axes are 'S' and 'R'");
  const pln_script_range *r = &p->loop_ranges[row - 1];
  return add_axis(p, name, r->min, r->extent, ref, kind == 'S' ? 0 : 2);
}

static pln_status remap(pln_script_parser *p, const doing *d) {
  pln_slice kinds;
  pln_status status;
  pln_script_value list = *d->args.at[1];
  (void)block_of(p, d, &status);
  PLN_TRY(status);
  PLN_TRY(pln_script_as_string(p, d->args.at[0], &kinds));
  if ((list.kind != PLN_V_LIST && list.kind != PLN_V_TUPLE) ||
      list.n != kinds.size || list.n != d->n)
    return pln_script_refuse(
        p, d->call, "T.axis.remap needs as many names, kinds and variables");
  for (uint32_t i = 0; i < list.n; i++)
    PLN_TRY(
        remap_one(p, d, &p->kept[list.first + i], kinds.data[i], d->names[i]));
  return PLN_OK;
}

/* ----------------------------------------------------- statements of a line */

static pln_status func_attr(pln_script_parser *p, const doing *d) {
  pln_attrs attrs = 0;
  pln_script_value dict = *d->args.at[0];
  for (uint32_t i = p->n_frames; i-- > 0;) {
    pln_open_frame *f = &p->frames[i];
    if (f->what != PLN_F_FUNCTION)
      continue;
    PLN_TRY(pln_script_layout_transforms(p, &dict));
    PLN_TRY(pln_script_attrs_of(p, &dict, &attrs));
    for (uint32_t k = 0; k < pln_attrs_count(p->engine, attrs); k++) {
      pln_attr entry = *pln_attrs_at(p->engine, attrs, k);
      PLN_TRY(pln_attrs_with(p->engine, f->attrs, &entry, &f->attrs));
    }
    return PLN_OK;
  }
  return pln_script_refuse(p, d->call, "this is for functions only");
}

static pln_status evaluate_value(pln_script_parser *p,
                                 const pln_script_value *value) {
  pln_ref ref;
  PLN_TRY(pln_script_ref(p, value, 0, &ref));
  PLN_TRY(pln_script_push_ref(p, ref));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_EVALUATE}, p->n_refs - 1,
                          &ref));
  return pln_script_push_stmt(p, ref);
}

/* T.prefetch(buffer, [ranges]), or the builtin of the same name. */
static pln_status prefetch(pln_script_parser *p, const doing *d) {
  pln_script_value call = *d->call, value = call;
  uint32_t first = p->n_refs, n;
  pln_ref ref;
  if (call.n != 2 || p->kept[call.first].kind != PLN_V_BUFFER) {
    PLN_TRY(pln_script_builtin(p, pln_builtin_find(pln_text("prefetch")), &call,
                               &value));
    return evaluate_value(p, &value);
  }
  PLN_TRY(pln_script_push_ref(p, p->kept[call.first].v.of.ref));
  PLN_TRY(pln_script_push_list(p, &p->kept[call.first + 1], 0, &n));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_PREFETCH}, first, &ref));
  return pln_script_push_stmt(p, ref);
}

static pln_status perform(pln_script_parser *p, const doing *d) {
  switch ((pln_script_method)d->call->v.of.number) {
  case PLN_METHOD_BUFFER: return declare_buffer(p, d);
  case PLN_METHOD_MATCH_BUFFER: return match_buffer(p, d);
  case PLN_METHOD_DECL_BUFFER: return decl_buffer(p, d);
  case PLN_METHOD_ALLOC_BUFFER: return alloc_buffer(p, d);
  case PLN_METHOD_ALLOCATE: return allocate(p, d);
  case PLN_METHOD_ALLOCATE_CONST: return allocate_const(p, d);
  case PLN_METHOD_ATTR: return attr(p, d);
  case PLN_METHOD_LAUNCH_THREAD: return launch_thread(p, d);
  case PLN_METHOD_ENV_THREAD: return env_thread(p, d);
  case PLN_METHOD_LET_STMT: return let_stmt(p, d);
  case PLN_METHOD_ASSERT: return assert_stmt(p, d);
  case PLN_METHOD_REALIZE: return realize(p, d);
  case PLN_METHOD_PRODUCER_REALIZE: return producer_realize(p, d);
  case PLN_METHOD_BLOCK: return block(p, d);
  case PLN_METHOD_INIT: return init(p, d);
  case PLN_METHOD_READS:
  case PLN_METHOD_WRITES: return regions(p, d);
  case PLN_METHOD_WHERE: return where(p, d);
  case PLN_METHOD_BLOCK_ATTR: return block_attr(p, d);
  case PLN_METHOD_FUNC_ATTR: return func_attr(p, d);
  case PLN_METHOD_MODULE_ATTRS:
    return pln_script_attrs_of(p, d->args.at[0], &p->module_attrs);
  case PLN_METHOD_EVALUATE: return evaluate_value(p, d->args.at[0]);
  case PLN_METHOD_PREFETCH: return prefetch(p, d);
  case PLN_METHOD_SPATIAL: return axis(p, d, 0);
  case PLN_METHOD_REDUCTION: return axis(p, d, 2);
  case PLN_METHOD_SCAN: return axis(p, d, 3);
  case PLN_METHOD_OPAQUE: return axis(p, d, 4);
  case PLN_METHOD_REMAP: return remap(p, d);
  default:
    return pln_script_refuse(p, d->call, "this stands in a for statement");
  }
}

static bool takes_rest(uint32_t method) {
  return method == PLN_METHOD_READS || method == PLN_METHOD_WRITES ||
         method == PLN_METHOD_PREFETCH || method == PLN_METHOD_GRID;
}

pln_status pln_script_perform(pln_script_parser *p,
                              const pln_script_value *call, uint32_t n,
                              const pln_slice *names, bool with) {
  doing d = {.call = call, .n = n, .names = names, .with = with};
  p->place = call->at;
  p->place_size = call->size;
  if (p->outside && call->v.of.number != PLN_METHOD_MODULE_ATTRS)
    return pln_script_refuse(p, call, "this is for functions only");
  if (!takes_rest(call->v.of.number))
    PLN_TRY(pln_script_bind_args(p, call, &d.args));
  return perform(p, &d);
}
