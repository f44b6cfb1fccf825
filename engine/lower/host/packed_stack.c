/* packed_stack.c: writes out calls of packed functions (packed_stack.h).
 *
 * Called by tir.LowerTVMBuiltin. What a call needs is stored by statements in
 * front of the one that it belongs to. What always holds: within a statement no
 * two calls share a part of a stack; a parallel loop's body has its own. */

#include "lower/host/packed_stack.h"

/* ------------------------------------------------------------------- sizes */

static bool is_packed_call(const pln_node *n) {
  return pln_is_call_of(n, "tvm_call_packed") ||
         pln_is_call_of(n, "tvm_call_cpacked");
}

static void add_sizes(pln_stack_sizes *sizes, const pln_node *n) {
  if (is_packed_call(n))
    sizes->values += n->count;
  if (pln_is_call_of(n, "tvm_stack_make_array"))
    sizes->arrays++;
  if (pln_is_call_of(n, "tvm_stack_make_shape"))
    sizes->shapes = (sizes->shapes < 0 ? 0 : sizes->shapes) + n->count;
}

static int32_t larger(int32_t x, int32_t y) {
  return x > y ? x : y;
}

static const pln_stack_sizes NO_SIZES = {.shapes = -1};

/* A statement ends: what it needs counts where its stacks are. */
static void end_statement(pln_builtin_lowering *x, pln_scope scope) {
  pln_stack_sizes *most = &x->stacks[x->stacks_of[scope]].most;
  pln_stack_sizes *own = &x->stacks[scope].inside;
  most->values = larger(most->values, own->values);
  most->arrays = larger(most->arrays, own->arrays);
  most->shapes = larger(most->shapes, own->shapes);
  *own = NO_SIZES;
}

static bool has_stacks(const pln_graph *g, pln_ref owner) {
  return g->nodes[owner].kind == PLN_PRIM_FUNC ||
         (g->nodes[owner].kind == PLN_FOR &&
          pln_for_kind_of(g, owner) == PLN_FOR_PARALLEL);
}

static void count_all(pln_builtin_lowering *x) {
  const pln_graph *g = x->g;
  pln_scope_cursor at = {.graph = g};
  for (pln_scope i = 0; i < g->n_scopes; i++) {
    pln_ref owner = g->scopes[i].owner;
    x->stacks[i].most = x->stacks[i].inside = NO_SIZES;
    x->stacks_of[i] =
        i == 0 || has_stacks(g, owner) ? i : x->stacks_of[g->scopes[i].parent];
  }
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_scope scope = pln_scope_cursor_at(&at, ref);
    add_sizes(&x->stacks[scope].inside, &g->nodes[ref]);
    if (pln_is_stmt(&g->nodes[ref]))
      end_statement(x, scope);
  }
}

pln_status pln_packed_stack_begin(pln_builtin_lowering *x) {
  pln_engine *e = x->g->engine;
  size_t n = x->g->n_scopes;
  x->stacks = pln_mem_zeroed(e, n * sizeof *x->stacks);
  x->stacks_of = pln_mem_zeroed(e, n * sizeof *x->stacks_of);
  x->first_prepared =
      pln_mem_zeroed(e, x->g->n_nodes * sizeof *x->first_prepared);
  if (!x->stacks || !x->stacks_of || !x->first_prepared)
    return pln_nomem(e);
  count_all(x);
  return PLN_OK;
}

void pln_packed_stack_end(pln_builtin_lowering *x) {
  pln_engine *e = x->g->engine;
  size_t n = x->g->n_scopes;
  pln_mem_free(e, x->stacks, n * sizeof *x->stacks);
  pln_mem_free(e, x->stacks_of, n * sizeof *x->stacks_of);
  pln_mem_free(e, x->first_prepared, x->g->n_nodes * sizeof *x->first_prepared);
  pln_mem_free(e, x->prepared, x->cap_prepared * sizeof *x->prepared);
}

/* ------------------------------------------------------------------- stacks */

static pln_ref sized_buffer(pln_emit *e, const char *name, pln_dtype element,
                            pln_dtype index, int32_t size) {
  pln_type type = pln_emit_type(e, element);
  pln_ref data = pln_emit_var(e, name, pln_emit_pointer(e, type, ""));
  return pln_emit_buffer(e, name, data, type, pln_emit_int(e, index, size));
}

static void make_stacks(pln_emit *e, pln_packed_stacks *st) {
  pln_type handle = pln_emit_type(e, PLN_DTYPE_NONE);
  if (st->most.values > 0) {
    st->value = pln_emit_var(e, "stack_value", handle);
    st->code =
        sized_buffer(e, "stack_tcode", PLN_INT32, PLN_UINT64, st->most.values);
  }
  if (st->most.arrays > 0)
    st->array = pln_emit_var(e, "stack_array", handle);
  if (st->most.shapes >= 0)
    st->shape =
        sized_buffer(e, "stack_shape", PLN_INT64, PLN_INT64, st->most.shapes);
}

/* T.tvm_stack_alloca(what, size) */
static pln_ref alloca_of(pln_emit *e, const char *what, int32_t size) {
  pln_ref args[2] = {pln_emit_string(e, pln_text(what)),
                     pln_emit_int(e, PLN_INT32, size)};
  return pln_emit_call(e, "tvm_stack_alloca", pln_emit_type(e, PLN_DTYPE_NONE),
                       2, args);
}

static pln_ref data_of(pln_emit *e, pln_ref buffer) {
  return e->status == PLN_OK ? pln_operand(e->b->graph, buffer, 0) : PLN_NONE;
}

static pln_ref declare(pln_emit *e, pln_ref buffer, const char *what,
                       int32_t size, pln_ref body) {
  body = pln_emit_decl_buffer(e, buffer, body);
  return pln_emit_let(e, data_of(e, buffer), alloca_of(e, what, size), body);
}

static pln_ref wrap_stacks(pln_emit *e, const pln_packed_stacks *st,
                           pln_ref body) {
  if (st->most.shapes >= 0)
    body = declare(e, st->shape, "shape", st->most.shapes, body);
  if (st->most.arrays > 0)
    body = pln_emit_let(e, st->array, alloca_of(e, "array", st->most.arrays),
                        body);
  if (st->most.values > 0) {
    body = pln_emit_let(e, st->value,
                        alloca_of(e, "arg_value", st->most.values), body);
    body = declare(e, st->code, "arg_tcode", st->most.values, body);
  }
  return body;
}

pln_status pln_packed_stack_enter_stmt(void *ud, pln_stmt_rewrite *s,
                                       pln_ref stmt, pln_ref *node) {
  pln_builtin_lowering *x = ud;
  (void)s;
  (void)node;
  x->first_prepared[stmt] = x->n_prepared;
  x->stacks[x->now].inside = (pln_stack_sizes){0};
  return PLN_OK;
}

pln_status pln_packed_stack_enter(pln_builtin_lowering *x, pln_stmt_rewrite *s,
                                  pln_ref stmt) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (!has_stacks(x->g, stmt))
    return PLN_OK;
  x->now = x->g->nodes[stmt].data;
  x->stacks[x->now].inside = (pln_stack_sizes){0};
  make_stacks(&e, &x->stacks[x->now]);
  return e.status;
}

pln_status pln_packed_stack_leave(pln_builtin_lowering *x, pln_stmt_rewrite *s,
                                  pln_ref stmt, pln_ref *body) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (!has_stacks(x->g, stmt))
    return PLN_OK;
  const pln_packed_stacks *st = &x->stacks[x->now];
  bool used =
      st->most.values > 0 || st->most.arrays > 0 || st->most.shapes >= 0;
  pln_ref rest;
  pln_scope parent = x->g->scopes[x->now].parent;
  x->now = parent == PLN_NONE ? 0 : x->stacks_of[parent];
  if (!used)
    return PLN_OK;
  if (x->g->nodes[stmt].kind != PLN_PRIM_FUNC) {
    *body = wrap_stacks(&e, st, *body);
    return e.status;
  }
  PLN_TRY(pln_stmt_split_binds(s, *body, &rest));
  rest = wrap_stacks(&e, st, rest);
  PLN_TRY(e.status);
  return pln_stmt_join_binds(s, *body, rest, body);
}

pln_status pln_packed_stack_leave_stmt(pln_builtin_lowering *x,
                                       pln_stmt_rewrite *s, pln_ref stmt,
                                       pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  uint32_t first = x->first_prepared[stmt], n = x->n_prepared - first;
  if (n == 0)
    return PLN_OK;
  if (*node == PLN_NONE)
    PLN_TRY(pln_stmt_rebuild(s, stmt, node));
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->prepared, &x->cap_prepared,
                       (size_t)x->n_prepared + 1, sizeof *x->prepared));
  x->prepared[x->n_prepared] = *node;
  *node = pln_emit_seq(&e, n + 1, x->prepared + first);
  x->n_prepared = first;
  return e.status;
}

/* -------------------------------------------------------------- expressions */

typedef struct prepare {
  pln_builtin_lowering *x;
  pln_emit e;
  pln_packed_stacks *st;
} prepare;

static void add_prepared(prepare *p, pln_ref stmt) {
  pln_builtin_lowering *x = p->x;
  if (p->e.status == PLN_OK)
    p->e.status =
        pln_mem_grow(x->g->engine, (void **)&x->prepared, &x->cap_prepared,
                     (size_t)x->n_prepared + 1, sizeof *x->prepared);
  if (p->e.status == PLN_OK)
    x->prepared[x->n_prepared++] = stmt;
}

static void set_field(prepare *p, pln_ref stack, int32_t index, int32_t field,
                      pln_ref value) {
  pln_emit *e = &p->e;
  pln_ref args[4] = {stack, pln_emit_int(e, PLN_INT32, index),
                     pln_emit_int(e, PLN_INT32, field), value};
  add_prepared(p, pln_emit_evaluate(
                      e, pln_emit_call(e, "tvm_struct_set",
                                       pln_emit_type(e, PLN_INT32), 4, args)));
}

/* The address of an element of the stack of shapes. */
static pln_ref make_shape(prepare *p, uint32_t n, const pln_ref *args) {
  pln_emit *e = &p->e;
  int32_t first = p->st->inside.shapes;
  pln_type wide = pln_emit_type(e, PLN_INT64);
  p->st->inside.shapes += (int32_t)n;
  for (uint32_t i = 0; i < n; i++)
    add_prepared(p,
                 pln_emit_store(e, p->st->shape,
                                pln_emit_int(e, PLN_INT32, first + (int32_t)i),
                                pln_emit_cast(e, wide, args[i])));
  pln_ref part = pln_emit_buffer(e, "stack_shape", data_of(e, p->st->shape),
                                 wide, pln_emit_int(e, PLN_INT32, first + 1));
  pln_ref element = pln_emit_load(e, part, pln_emit_int(e, PLN_INT32, first));
  return pln_emit_call(e, "address_of", pln_emit_type(e, PLN_DTYPE_NONE), 1,
                       &element);
}

static pln_ref null_pointer(pln_emit *e) {
  pln_ref zero = pln_emit_int(e, PLN_UINT64, 0);
  return pln_emit_call(e, "reinterpret", pln_emit_type(e, PLN_DTYPE_NONE), 1,
                       &zero);
}

static int64_t code_of(const pln_engine *e, pln_type type) {
  pln_dtype dtype = pln_type_get_kind(e, type) == PLN_TYPE_PRIM
                        ? pln_type_dtype(e, type)
                        : PLN_DTYPE_NONE;
  if (dtype == PLN_DTYPE_NONE)
    return 3;
  if (dtype == PLN_BFLOAT16)
    return 4;
  if (pln_is_float_dtype(dtype))
    return 2;
  return pln_is_signed(dtype) ? 0 : 1;
}

static void set_dtype(prepare *p, int32_t at, pln_type type) {
  pln_emit *e = &p->e;
  pln_engine *engine = p->x->g->engine;
  pln_dtype dtype = pln_type_dtype(engine, type);
  int64_t bits = dtype == PLN_BOOL ? 1 : pln_dtype_bits(dtype);
  set_field(p, p->st->array, at, PLN_ARRAY_TYPE_CODE,
            pln_emit_int(e, PLN_UINT8, code_of(engine, type)));
  set_field(p, p->st->array, at, PLN_ARRAY_TYPE_BITS,
            pln_emit_int(e, PLN_UINT8, bits));
  set_field(p, p->st->array, at, PLN_ARRAY_TYPE_LANES,
            pln_emit_int(e, PLN_UINT16, pln_type_number(engine, type)));
}

static pln_ref byte_offset(prepare *p, pln_ref offset, pln_type type) {
  pln_emit *e = &p->e;
  pln_engine *engine = p->x->g->engine;
  pln_dtype dtype = pln_type_dtype(engine, type);
  int64_t bytes =
      ((int64_t)pln_dtype_bits(dtype) * pln_type_number(engine, type) + 7) / 8;
  pln_type wide = pln_emit_type(e, PLN_UINT64);
  if (e->status == PLN_OK && e->b->graph->nodes[offset].kind == PLN_INT_IMM)
    return pln_emit_int_of(e, wide, pln_node_int(e->b->graph, offset) * bytes);
  pln_ref factor = pln_emit_int_of(e, pln_emit_type_of(e, offset), bytes);
  return pln_emit_cast(e, wide,
                       pln_emit_folded(e, PLN_PRIM_MUL, offset, factor));
}

/* args: data, shape, strides, rank, a value of the dtype, offset. */
static pln_ref make_array(prepare *p, const pln_ref *args) {
  pln_emit *e = &p->e;
  int32_t at = p->st->inside.arrays++;
  pln_ref stack = p->st->array, strides = args[2];
  pln_type type = pln_emit_type_of(e, args[4]);
  if (e->status == PLN_OK && pln_is_int(e->b->graph, strides, 0))
    strides = null_pointer(e);
  set_field(p, stack, at, PLN_ARRAY_DATA, args[0]);
  set_field(p, stack, at, PLN_ARRAY_SHAPE, args[1]);
  set_field(p, stack, at, PLN_ARRAY_STRIDES, strides);
  set_field(p, stack, at, PLN_ARRAY_NDIM, args[3]);
  set_dtype(p, at, type);
  set_field(p, stack, at, PLN_ARRAY_BYTE_OFFSET, byte_offset(p, args[5], type));
  set_field(p, stack, at, PLN_ARRAY_DEVICE_ID, p->x->device_id);
  set_field(p, stack, at, PLN_ARRAY_DEVICE_TYPE, p->x->device_type);
  return pln_arg_field(e, stack, at, 0, pln_emit_type(e, PLN_DTYPE_NONE));
}

/* TVM's type codes of arguments. */
enum { CODE_TENSOR = 7, CODE_STRING = 11 };

static bool is_tensor(const pln_graph *g, pln_ref arg) {
  return pln_is_call_of(&g->nodes[arg], "tvm_struct_get") &&
         pln_is_int(g, pln_operand(g, arg, 2), 0);
}

static void pass_argument(prepare *p, int32_t at, pln_ref arg) {
  pln_emit *e = &p->e;
  pln_engine *engine = p->x->g->engine;
  if (e->status != PLN_OK)
    return;
  const pln_graph *g = e->b->graph;
  pln_type type = g->nodes[arg].type;
  int64_t code = g->nodes[arg].kind == PLN_STRING_IMM ? CODE_STRING
                 : is_tensor(g, arg)                  ? CODE_TENSOR
                                                      : code_of(engine, type);
  if (code < 3) {
    pln_dtype dtype = pln_type_dtype(engine, type);
    arg = pln_emit_cast(e,
                        pln_emit_type(e, code == 2 ? PLN_FLOAT64
                                         : code == 0 || dtype == PLN_BOOL
                                             ? PLN_INT64
                                             : PLN_UINT64),
                        arg);
    code = dtype == PLN_BOOL ? 0 : code;
  }
  set_field(p, p->st->value, at, PLN_VALUE_CONTENT, arg);
  add_prepared(p, pln_emit_store(e, p->st->code, pln_emit_int(e, PLN_INT32, at),
                                 pln_emit_int(e, PLN_INT32, code)));
}

/* The name, the stacks, and which part of them is passed. */
static pln_ref call_packed(prepare *p, bool direct, pln_type type, uint32_t n,
                           const pln_ref *args) {
  pln_emit *e = &p->e;
  int32_t first = p->st->inside.values;
  uint32_t passed = direct ? n - 2 : n - 1;
  p->st->inside.values += (int32_t)n;
  for (uint32_t i = 0; i < passed; i++)
    pass_argument(p, first + (int32_t)i, args[1 + i]);
  pln_ref all[6] = {args[0],
                    p->st->value,
                    data_of(e, p->st->code),
                    pln_emit_int(e, PLN_INT32, first),
                    pln_emit_int(e, PLN_INT32, first + (int32_t)passed),
                    args[n - 1]};
  return pln_emit_call(
      e, direct ? "tvm_call_cpacked_lowered" : "tvm_call_packed_lowered", type,
      direct ? 6 : 5, all);
}

static pln_status check_device(const pln_builtin_lowering *x) {
  if (x->device_type != PLN_NONE && x->device_id != PLN_NONE)
    return PLN_OK;
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.LowerTVMBuiltin: a tensor is passed where no "
                        "attribute device_type and device_id say on which "
                        "device it is");
}

static pln_status lower_images(prepare *p, const pln_node *n,
                               const pln_ref *args, pln_ref *node) {
  bool direct = pln_is_call_of(n, "tvm_call_cpacked");
  if (pln_is_call_of(n, "tvm_stack_make_shape")) {
    *node = make_shape(p, n->count, args);
  } else if (pln_is_call_of(n, "tvm_stack_make_array")) {
    PLN_TRY(check_device(p->x));
    *node = make_array(p, args);
  } else if (n->count > (direct ? 1u : 0u)) {
    *node = call_packed(p, direct, n->type, n->count, args);
  }
  return p->e.status;
}

pln_status pln_packed_stack_lower(pln_builtin_lowering *x, pln_stmt_rewrite *s,
                                  pln_ref old, pln_ref *node) {
  const pln_node *n = &x->g->nodes[old];
  pln_engine *e = x->g->engine;
  if (!is_packed_call(n) && !pln_is_call_of(n, "tvm_stack_make_shape") &&
      !pln_is_call_of(n, "tvm_stack_make_array"))
    return PLN_OK;
  size_t size = (n->count + (size_t)1) * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(e, size);
  if (!args)
    return pln_nomem(e);
  for (uint32_t i = 0; i < n->count; i++)
    args[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  prepare p = {
      .x = x, .e = {.b = pln_stmt_builder(s)}, .st = &x->stacks[x->now]};
  pln_status status = lower_images(&p, n, args, node);
  pln_mem_free(e, args, size);
  return status;
}
