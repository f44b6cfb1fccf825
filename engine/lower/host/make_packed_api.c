/* make_packed_api.c: tir.MakePackedAPI: functions as TVM's runtime calls them.
 *
 * Run by the executor. A function that is seen from outside and has a target
 * with a host gets six parameters (arguments, their type codes, their number,
 * where the result and its code go, a handle), reads its own parameters from
 * them, and checks what the caller passed. It returns 0. Calls of such
 * functions pass their arguments the same way.
 *
 *     def main(A: T.Buffer((1,), "float32"))
 *         =>   def main(args: T.handle, arg_type_ids, num_args: T.int32,
 *                       out_ret_value, out_ret_tcode, resource_handle) ->
 * T.int32
 *
 * Semantics: TVM's tir.MakePackedAPI. */

#include <stdio.h>

#include "lower/host/arg_binder.h"
#include "lower/host/packed_call.h"

typedef struct packed_api {
  const pln_graph *g;
  const pln_module *module;
  pln_attrs target;
  char name[256]; /* the attribute global_symbol */
  /* of the rewritten function */
  pln_arg_binder binder;
  pln_nest init, checks, buffers;
  pln_ref args, type_ids, n_args, out_value, out_code, resource;
  pln_ref codes; /* the Buffer over type_ids */
} packed_api;

/* ------------------------------------------------------------- parameters */

static void declare_params(packed_api *x) {
  pln_emit *e = &x->binder.e;
  pln_type handle = pln_emit_type(e, PLN_DTYPE_NONE);
  pln_type number = pln_emit_type(e, PLN_INT32), nothing = 0;
  if (e->status == PLN_OK)
    e->status =
        pln_type_make(e->b->engine, PLN_TYPE_TUPLE, 0, 0, NULL, &nothing);
  pln_type codes = pln_emit_pointer(e, number, "");
  x->args = pln_emit_var(e, "args", handle);
  x->type_ids = pln_emit_var(e, "arg_type_ids", codes);
  x->n_args = pln_emit_var(e, "num_args", number);
  x->out_value =
      pln_emit_var(e, "out_ret_value", pln_emit_pointer(e, nothing, ""));
  x->out_code = pln_emit_var(e, "out_ret_tcode", codes);
  x->resource = pln_emit_var(e, "resource_handle", handle);
}

static pln_ref text_with(packed_api *x, const char *format, uint32_t i) {
  char text[400];
  int n = snprintf(text, sizeof text, "%s", x->name);
  snprintf(text + n, sizeof text - (size_t)n, format, i);
  return pln_emit_string(&x->binder.e, pln_text(text));
}

/* How many arguments there are, and their type codes. */
static void check_count(packed_api *x, uint32_t n) {
  pln_emit *e = &x->binder.e;
  pln_ref count = pln_emit_int(e, PLN_INT32, n);
  pln_nest_add(
      e, &x->init,
      (pln_nest_item){.kind = PLN_ASSERT_STMT,
                      .a = pln_emit_binary(e, PLN_PRIM_EQ, x->n_args, count),
                      .b = text_with(x, ": num_args should be %u", n)});
  x->codes = pln_emit_buffer(e, "arg_type_ids", x->type_ids,
                             pln_emit_type(e, PLN_INT32), count);
  pln_nest_add(e, &x->init,
               (pln_nest_item){.kind = PLN_DECL_BUFFER, .a = x->codes});
}

/* code == a or code == b ... */
static pln_ref is_code(pln_emit *e, pln_ref code, uint32_t n,
                       const int32_t *codes) {
  pln_ref out = PLN_NONE;
  for (uint32_t i = 0; i < n; i++) {
    pln_ref is = pln_emit_binary(e, PLN_PRIM_EQ, code,
                                 pln_emit_int(e, PLN_INT32, codes[i]));
    out = i == 0 ? is : pln_emit_binary(e, PLN_PRIM_OR, out, is);
  }
  return out;
}

/* What a parameter of the dtype must have as its type code. */
static void check_code(packed_api *x, uint32_t i, pln_ref code,
                       pln_dtype dtype) {
  static const int32_t pointers[] = {3, 13, 7, 4}, ints[] = {0}, floats[] = {2};
  pln_emit *e = &x->binder.e;
  bool pointer = dtype == PLN_DTYPE_NONE;
  bool real = !pointer && pln_is_float_dtype(dtype);
  const char *what = pointer             ? ": Expect arg[%u] to be pointer"
                     : real              ? ": Expect arg[%u] to be float"
                     : dtype == PLN_BOOL ? ": Expect arg[%u] to be boolean"
                                         : ": Expect arg[%u] to be int";
  pln_ref holds = is_code(e, code, pointer ? 4 : 1,
                          pointer ? pointers
                          : real  ? floats
                                  : ints);
  pln_nest_add(e, &x->checks,
               (pln_nest_item){.kind = PLN_ASSERT_STMT,
                               .a = holds,
                               .b = text_with(x, what, i)});
}

/* Arguments are passed in 64 bits. */
static pln_dtype passed_dtype(pln_dtype dtype) {
  if (dtype == PLN_DTYPE_NONE)
    return dtype;
  if (pln_is_float_dtype(dtype))
    return PLN_FLOAT64;
  return pln_is_signed(dtype) || dtype == PLN_BOOL ? PLN_INT64 : PLN_UINT64;
}

static pln_dtype param_dtype(const pln_engine *e, pln_type type) {
  return pln_type_get_kind(e, type) == PLN_TYPE_PRIM ? pln_type_dtype(e, type)
                                                     : PLN_DTYPE_NONE;
}

static void read_code(packed_api *x, uint32_t i, pln_ref param,
                      const char *name) {
  pln_emit *e = &x->binder.e;
  char text[300];
  snprintf(text, sizeof text, "%.250s.code", name);
  pln_ref code = pln_emit_var(e, text, pln_emit_type(e, PLN_INT32));
  pln_ref value = pln_emit_load(e, x->codes, pln_emit_int(e, PLN_INT32, i));
  pln_nest_add(e, &x->init,
               (pln_nest_item){.kind = PLN_LET_STMT, .a = code, .b = value});
  check_code(x, i, code, param_dtype(x->g->engine, pln_emit_type_of(e, param)));
}

static const char *name_of(const pln_graph *g, pln_ref var) {
  return pln_symbol_text(g->engine, g->nodes[var].attrs).data;
}

static void bind_param(packed_api *x, uint32_t i, pln_ref param,
                       const char *name) {
  pln_emit *e = &x->binder.e;
  char text[600];
  pln_type type = pln_emit_type_of(e, param);
  pln_dtype dtype = param_dtype(x->g->engine, type);
  pln_ref value = pln_arg_field(e, x->args, (int32_t)i, PLN_VALUE_CONTENT,
                                pln_emit_type(e, passed_dtype(dtype)));
  if (dtype != PLN_DTYPE_NONE)
    value = pln_emit_cast(e, type, value);
  snprintf(text, sizeof text, "%s.%.250s", x->name, name);
  pln_arg_bind(&x->binder, param, value, text);
}

static bool is_resource(const pln_graph *g, pln_ref param) {
  return strcmp(name_of(g, param), "device_api_context") == 0;
}

/* The images of the function's own parameters. */
static pln_status map_params(const packed_api *x, pln_stmt_rewrite *s,
                             pln_ref stmt, uint32_t n, pln_ref *params) {
  (void)x;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_stmt_map(s, pln_stmt_param(s, stmt, 0, i), &params[i]));
  return PLN_OK;
}

static void bind_params(packed_api *x, pln_stmt_rewrite *s, pln_ref stmt,
                        uint32_t n, const pln_ref *params) {
  uint32_t passed = 0;
  for (uint32_t i = 0; i < n; i++)
    passed += !is_resource(x->g, pln_stmt_param(s, stmt, 0, i));
  check_count(x, passed);
  for (uint32_t i = 0; i < n && x->binder.e.status == PLN_OK; i++) {
    pln_ref old = pln_stmt_param(s, stmt, 0, i);
    if (is_resource(x->g, old))
      x->resource = params[i];
    else
      read_code(x, i, params[i], name_of(x->g, old));
  }
  for (uint32_t i = 0; i < n && x->binder.e.status == PLN_OK; i++) {
    pln_ref old = pln_stmt_param(s, stmt, 0, i);
    if (!is_resource(x->g, old))
      bind_param(x, i, params[i], name_of(x->g, old));
  }
}

/* ------------------------------------------------------------------ buffers */

/* By parameter: the old Buffer that it is seen as, or PLN_NONE. */
static void find_buffers(const pln_graph *g, pln_ref first, uint32_t n,
                         pln_ref *buffers) {
  for (uint32_t i = 0; i < n; i++)
    buffers[i] = PLN_NONE;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_BUFFER_BIND)
      continue;
    pln_ref param = pln_operand(g, ref, 0);
    if (param >= first && param - first < n)
      buffers[param - first] = pln_operand(g, ref, 1);
  }
}

static pln_status bind_buffers(packed_api *x, pln_stmt_rewrite *s, pln_ref stmt,
                               uint32_t n, const pln_ref *params,
                               const pln_ref *buffers, pln_ref device_id) {
  pln_emit *e = &x->binder.e;
  pln_ref device_type = pln_emit_int(
      e, PLN_INT32, pln_target_device_type(x->g->engine, x->target));
  for (uint32_t i = 0; i < n && e->status == PLN_OK; i++) {
    char text[600];
    pln_ref buffer;
    if (buffers[i] == PLN_NONE)
      continue;
    PLN_TRY(pln_stmt_map(s, buffers[i], &buffer));
    snprintf(text, sizeof text, "%s.%.250s", x->name,
             name_of(x->g, pln_stmt_param(s, stmt, 0, i)));
    pln_arg_bind_tensor(&x->binder, buffer, device_type, device_id, params[i],
                        text);
    pln_nest_add(e, &x->buffers,
                 (pln_nest_item){.kind = PLN_DECL_BUFFER, .a = buffer});
  }
  return e->status;
}

/* --------------------------------------------------------------------- body */

static void set_device(packed_api *x, pln_ref device_id) {
  pln_emit *e = &x->binder.e;
  pln_ref node = pln_emit_string(e, pln_text("default"));
  pln_ref type = pln_emit_int(e, PLN_INT32,
                              pln_target_device_type(x->g->engine, x->target));
  pln_nest_add(e, &x->checks,
               (pln_nest_item){.kind = PLN_ATTR_STMT,
                               .a = node,
                               .key = "device_id",
                               .value = device_id});
  pln_nest_add(e, &x->checks,
               (pln_nest_item){.kind = PLN_ATTR_STMT,
                               .a = node,
                               .key = "device_type",
                               .value = type});
}

/* A device other than the processor is chosen before the body runs. */
static pln_ref choose_device(packed_api *x, pln_ref device_id, pln_ref body) {
  pln_emit *e = &x->binder.e;
  int32_t type = pln_target_device_type(x->g->engine, x->target);
  pln_ref args[3] = {pln_emit_string(e, pln_text("__tvm_set_device")),
                     pln_emit_int(e, PLN_INT32, type), device_id};
  if (type == 1)
    return body;
  pln_ref both[2] = {
      pln_emit_evaluate(e, pln_emit_call(e, "tvm_call_packed",
                                         pln_emit_type(e, PLN_INT32), 3, args)),
      body};
  return pln_emit_seq(e, 2, both);
}

static pln_ref wrap_body(packed_api *x, pln_ref device_id, pln_ref body) {
  pln_emit *e = &x->binder.e;
  char scope[300];
  bool has_device =
      e->status == PLN_OK && pln_arg_is_bound(&x->binder, device_id);
  snprintf(scope, sizeof scope, "%s_compute_", x->name);
  body = pln_emit_attr(e, pln_emit_int(e, PLN_INT32, 0), "compute_scope",
                       pln_emit_string(e, pln_text(scope)), body);
  if (has_device) {
    set_device(x, device_id);
    body = choose_device(x, device_id, body);
  }
  pln_ref zero = pln_emit_int(e, PLN_INT32, 0);
  pln_ref both[2] = {
      body,
      pln_emit_evaluate(
          e, pln_emit_call(e, "ret", pln_emit_type(e, PLN_INT32), 1, &zero))};
  body = pln_emit_seq(e, 2, both);
  body = pln_nest_wrap(e, &x->buffers, body);
  body = pln_nest_wrap(e, &x->binder.asserts, body);
  body = pln_nest_wrap(e, &x->checks, body);
  body = pln_nest_wrap(e, &x->binder.init, body);
  return pln_nest_wrap(e, &x->init, body);
}

static pln_status packed_attrs(const packed_api *x, pln_attrs *attrs) {
  pln_engine *e = x->g->engine;
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("calling_conv"), &name));
  PLN_TRY(pln_attrs_with(
      e, *attrs, &(pln_attr){.name = name, .kind = PLN_ATTR_INT, .v.i = 1},
      attrs));
  return pln_attrs_with_dict(e, *attrs, "target", pln_target_host(e, x->target),
                             attrs);
}

static pln_status build_function(packed_api *x, pln_ref body, pln_ref *node) {
  pln_emit *e = &x->binder.e;
  pln_ref params[6] = {x->args,      x->type_ids, x->n_args,
                       x->out_value, x->out_code, x->resource};
  pln_prim spec = {.kind = PLN_PRIM_FUNC,
                   .type = pln_emit_type(e, PLN_INT32),
                   .attrs = x->g->nodes[x->g->root].attrs};
  pln_body one = {.n_params = 6, .params = params, .stmt = body};
  PLN_TRY(e->status);
  PLN_TRY(packed_attrs(x, &spec.attrs));
  return pln_build_floating_stmt(e->b, &spec, 1, &one, node);
}

static pln_status rewrite_params(packed_api *x, pln_stmt_rewrite *s,
                                 pln_ref stmt, uint32_t n, pln_ref *params,
                                 pln_ref *node) {
  pln_emit *e = &x->binder.e;
  pln_ref body = pln_stmt_body(s, 0), *buffers = params + n;
  PLN_TRY(pln_stmt_split_binds(s, body, &body));
  find_buffers(x->g, pln_stmt_param(s, stmt, 0, 0), n, buffers);
  PLN_TRY(map_params(x, s, stmt, n, params));
  declare_params(x);
  pln_ref device_id = pln_emit_var(e, "dev_id", pln_emit_type(e, PLN_INT32));
  bind_params(x, s, stmt, n, params);
  PLN_TRY(e->status);
  PLN_TRY(bind_buffers(x, s, stmt, n, params, buffers, device_id));
  return build_function(x, wrap_body(x, device_id, body), node);
}

static pln_status leave_function(packed_api *x, pln_stmt_rewrite *s,
                                 pln_ref stmt, pln_ref *node) {
  pln_engine *e = x->g->engine;
  uint32_t n = x->g->scopes[x->g->nodes[stmt].data].n_params;
  size_t size = (2 * (size_t)n + 1) * sizeof(pln_ref);
  pln_ref *params = pln_mem_new(e, size);
  if (!params)
    return pln_nomem(e);
  pln_status status = pln_arg_binder_begin(&x->binder, pln_stmt_builder(s));
  if (status == PLN_OK)
    status = rewrite_params(x, s, stmt, n, params, node);
  pln_arg_binder_end(&x->binder);
  pln_nest_free(e, &x->init);
  pln_nest_free(e, &x->checks);
  pln_nest_free(e, &x->buffers);
  pln_mem_free(e, params, size);
  return status;
}

/* ---------------------------------------------------------------- the walk */

/* T.ret(value) stores the value where the caller wants it. */
static pln_status leave_return(packed_api *x, pln_stmt_rewrite *s, pln_ref stmt,
                               pln_ref *node) {
  pln_ref call = pln_operand(x->g, stmt, 0);
  (void)s;
  (void)node;
  if (!pln_is_call_of(&x->g->nodes[call], "ret"))
    return PLN_OK;
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.MakePackedAPI: function '%s' returns a value, "
                        "which is not passed on",
                        x->name);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  packed_api *x = ud;
  if (!x->target)
    return PLN_OK;
  switch (x->g->nodes[stmt].kind) {
  case PLN_PRIM_FUNC: return leave_function(x, s, stmt, node);
  case PLN_EVALUATE: return leave_return(x, s, stmt, node);
  default: return PLN_OK;
  }
}

/* Calls of functions that get the packed interface too. */
static pln_status lower_call(void *ud, pln_stmt_rewrite *s, pln_ref old,
                             pln_ref *node) {
  packed_api *x = ud;
  return pln_packed_call_lower(x->module, x->g, s, old, node);
}

static pln_status make_packed(void *ud, const pln_module *module,
                              uint32_t index, const pln_graph *g,
                              pln_graph **out) {
  packed_api x = {.g = g, .module = module};
  pln_stmt_mutator mutator = {
      .ud = &x, .expr = lower_call, .leave = leave_stmt};
  pln_attrs target = pln_target_of(g);
  (void)ud;
  (void)index;
  if (pln_is_packed_function(g) && !target)
    return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.MakePackedAPI: a function has no attribute "
                          "'target'; tir.BindTarget gives it one");
  if (pln_is_packed_function(g) && pln_target_host(g->engine, target))
    x.target = target;
  pln_slice name =
      pln_attrs_string(g->engine, g->nodes[g->root].attrs, "global_symbol", "");
  snprintf(x.name, sizeof x.name, "%.*s", (int)name.size, name.data);
  return pln_stmt_rewrite_function(g, &mutator, out);
}

pln_status pln_pass_tir_make_packed_api(pln_pass_run *run) {
  return pln_rewrite_prim_funcs(run, make_packed, NULL);
}
