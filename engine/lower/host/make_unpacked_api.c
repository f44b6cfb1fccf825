/* make_unpacked_api.c: tir.MakeUnpackedAPI: functions whose parameters are bare
 * pointers and numbers, without checks.
 *
 * Run by the executor. A function that is seen from outside and has a target
 * with a host takes the memory of its buffers and returns 0.
 *
 *     def main(A: T.Buffer((4,), "float32"))
 *         =>   def main(A: T.handle("float32", "global")) -> T.int32
 *
 * Semantics: TVM's tir.MakeUnpackedAPI. */

#include "lower/host/packed_call.h"

typedef struct unpacked_api {
  const pln_module *module;
  const pln_graph *g;
  pln_attrs target;
} unpacked_api;

/* The memory of a Buffer takes the place of its parameter. */
static pln_status map_params(const unpacked_api *x, pln_stmt_rewrite *s,
                             pln_ref first, uint32_t n, pln_ref *params,
                             bool *has_buffers) {
  const pln_graph *g = x->g;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_stmt_map(s, first + i, &params[i]));
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_ref buffer;
    if (g->nodes[ref].kind != PLN_BUFFER_BIND)
      continue;
    *has_buffers = true;
    PLN_TRY(pln_stmt_map(s, pln_operand(g, ref, 1), &buffer));
    params[pln_operand(g, ref, 0) - first] =
        pln_operand(pln_stmt_builder(s)->graph, buffer, 0);
  }
  return PLN_OK;
}

static pln_ref with_device(const unpacked_api *x, pln_emit *e, pln_ref body) {
  pln_ref node = pln_emit_string(e, pln_text("default"));
  int32_t type = pln_target_device_type(x->g->engine, x->target);
  body = pln_emit_attr(e, node, "device_type", pln_emit_int(e, PLN_INT32, type),
                       body);
  return pln_emit_attr(e, node, "device_id", pln_emit_int(e, PLN_INT32, 0),
                       body);
}

static pln_ref return_zero(pln_emit *e, pln_ref body) {
  pln_ref zero = pln_emit_int(e, PLN_INT32, 0);
  pln_ref both[2] = {
      body,
      pln_emit_evaluate(
          e, pln_emit_call(e, "ret", pln_emit_type(e, PLN_INT32), 1, &zero))};
  return pln_emit_seq(e, 2, both);
}

static pln_status build(const unpacked_api *x, pln_stmt_rewrite *s,
                        pln_ref stmt, uint32_t n, pln_ref *params,
                        pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  bool has_buffers = false;
  pln_ref body;
  pln_prim spec = {.kind = PLN_PRIM_FUNC, .type = pln_emit_type(&e, PLN_INT32)};
  PLN_TRY(pln_stmt_split_binds(s, pln_stmt_body(s, 0), &body));
  PLN_TRY(
      map_params(x, s, pln_stmt_param(s, stmt, 0, 0), n, params, &has_buffers));
  body = return_zero(&e, body);
  if (has_buffers)
    body = with_device(x, &e, body);
  PLN_TRY(e.status);
  PLN_TRY(pln_attrs_with_dict(x->g->engine, x->g->nodes[stmt].attrs, "target",
                              pln_target_host(x->g->engine, x->target),
                              &spec.attrs));
  return pln_build_floating_stmt(
      e.b, &spec, 1, &(pln_body){.n_params = n, .params = params, .stmt = body},
      node);
}

static pln_status leave_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  const unpacked_api *x = ud;
  pln_engine *e = x->g->engine;
  if (x->g->nodes[stmt].kind != PLN_PRIM_FUNC)
    return PLN_OK;
  uint32_t n = x->g->scopes[x->g->nodes[stmt].data].n_params;
  pln_ref *params = pln_mem_new(e, (n + 1) * sizeof *params);
  if (!params)
    return pln_nomem(e);
  pln_status status = build(x, s, stmt, n, params, node);
  pln_mem_free(e, params, (n + 1) * sizeof *params);
  return status;
}

static bool becomes_unpacked(const pln_graph *g) {
  return pln_is_packed_function(g) && pln_target_of(g) &&
         pln_target_host(g->engine, pln_target_of(g));
}

/* A call of a function that returns 0 from here on. */
static pln_status type_call(void *ud, pln_stmt_rewrite *s, pln_ref old,
                            pln_ref *node) {
  const unpacked_api *x = ud;
  const pln_node *n = &x->g->nodes[old];
  const pln_graph *callee = pln_called_function(x->module, x->g, old);
  pln_emit e = {.b = pln_stmt_builder(s)};
  if (!callee || !becomes_unpacked(callee))
    return PLN_OK;
  size_t size = n->count * sizeof(pln_ref);
  pln_ref *args = pln_mem_new(x->g->engine, size);
  if (!args)
    return pln_nomem(x->g->engine);
  for (uint32_t i = 0; i < n->count; i++)
    args[i] = pln_stmt_image(s, pln_operand(x->g, old, i));
  *node = pln_emit_prim(&e, &(pln_prim){.kind = PLN_PRIM_CALL,
                                        .type = pln_emit_type(&e, PLN_INT32),
                                        .attrs = n->attrs,
                                        .n = n->count,
                                        .operands = args});
  pln_mem_free(x->g->engine, args, size);
  return e.status;
}

static pln_status make_unpacked(void *ud, const pln_module *module,
                                uint32_t index, const pln_graph *g,
                                pln_graph **out) {
  unpacked_api x = {.module = module, .g = g, .target = pln_target_of(g)};
  pln_stmt_mutator mutator = {.ud = &x, .expr = type_call, .leave = leave_stmt};
  (void)ud;
  (void)index;
  if (pln_is_packed_function(g) && !x.target)
    return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                          "tir.MakeUnpackedAPI: a function has no attribute "
                          "'target'; tir.BindTarget gives it one");
  if (!becomes_unpacked(g)) {
    *out = pln_graph_retain(g);
    return PLN_OK;
  }
  return pln_stmt_rewrite_function(g, &mutator, out);
}

pln_status pln_pass_tir_make_unpacked_api(pln_pass_run *run) {
  return pln_rewrite_prim_funcs(run, make_unpacked, NULL);
}
