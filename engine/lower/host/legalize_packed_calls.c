/* legalize_packed_calls.c: tir.LegalizePackedCalls: calls of packed functions
 * get tensors where they were given pointers.
 *
 * Run by the executor. The last argument, the context of the device, and
 * parameters of the calling function stay as they are. Shape and dtype are
 * those of the buffer that the called function of the module sees behind its
 * parameter; if it sees none, the tensor has rank 0 and no dtype.
 *
 *     T.tvm_call_cpacked("f", A, context)
 *         =>   T.tvm_call_cpacked("f", T.tvm_stack_make_array(A,
 *                  T.tvm_stack_make_shape(4), T.reinterpret("handle",
 *                  T.uint64(0)), T.uint32(1), T.Cast("float32", 0), 0),
 *                  context)
 *
 * Semantics: TVM's tir.LegalizePackedCalls. */

#include "ir/graph/module.h"
#include "lower/host/packed_call.h"

typedef struct call_legalizer {
  const pln_module *module;
  const pln_graph *g;
  const pln_graph *callee; /* of the present call; NULL: no PrimFunc */
} call_legalizer;

/* ------------------------------------------------------------- the arguments
 */

static bool is_param(const pln_graph *g, pln_ref ref) {
  const pln_scope_row *scope = &g->scopes[g->nodes[g->root].data];
  return ref >= scope->begin && ref < scope->begin + scope->n_params;
}

/* The buffers behind the first n parameters of the called function, PLN_NONE
 * for none. Its body begins with what binds them. */
static void find_buffers(const pln_graph *callee, uint32_t n,
                         pln_ref *buffers) {
  for (uint32_t i = 0; i < n; i++)
    buffers[i] = PLN_NONE;
  if (!callee)
    return;
  pln_ref first = callee->scopes[callee->nodes[callee->root].data].begin;
  for (pln_ref ref = first; ref < callee->n_nodes; ref++) {
    const pln_node *m = &callee->nodes[ref];
    if (pln_is_stmt(m) && m->kind != PLN_BUFFER_BIND)
      return;
    if (m->kind == PLN_BUFFER_BIND && pln_operand(callee, ref, 0) - first < n)
      buffers[pln_operand(callee, ref, 0) - first] =
          pln_operand(callee, ref, 1);
  }
}

/* An expression of the called function, with its variables. */
static pln_ref import(pln_emit *e, const pln_graph *g, pln_ref ref) {
  pln_ref out = PLN_NONE;
  if (e->status == PLN_OK)
    e->status = pln_build_import(e->b, g, ref, &out);
  return out;
}

static pln_ref make_shape(pln_emit *e, const pln_graph *callee,
                          const pln_buffer_fields *fields) {
  pln_engine *engine = e->b->engine;
  pln_type handle = pln_emit_type(e, PLN_DTYPE_NONE);
  if (!callee)
    return pln_emit_call(e, "tvm_stack_make_shape", handle, 0, NULL);
  size_t size = (fields->rank + 1) * sizeof(pln_ref);
  pln_ref *dims = pln_mem_new(engine, size);
  if (!dims) {
    e->status = pln_nomem(engine);
    return PLN_NONE;
  }
  for (uint32_t i = 0; i < fields->rank; i++)
    dims[i] = import(e, callee, fields->shape[i]);
  pln_ref shape =
      pln_emit_call(e, "tvm_stack_make_shape", handle, fields->rank, dims);
  pln_mem_free(engine, dims, size);
  return shape;
}

static pln_ref null_handle(pln_emit *e) {
  pln_ref zero = pln_emit_int(e, PLN_UINT64, 0);
  return pln_emit_call(e, "reinterpret", pln_emit_type(e, PLN_DTYPE_NONE), 1,
                       &zero);
}

static pln_ref typed_zero(pln_emit *e, const pln_buffer_fields *fields) {
  pln_type type = pln_emit_type(e, fields->dtype);
  if (e->status == PLN_OK && fields->lanes > 1)
    e->status =
        pln_type_prim(e->b->engine, fields->dtype, fields->lanes, &type);
  pln_ref zero = pln_emit_int(e, PLN_INT32, 0);
  return pln_emit_prim(
      e, &(pln_prim){
             .kind = PLN_PRIM_CAST, .type = type, .n = 1, .operands = &zero});
}

/* A pointer as a tensor like a buffer of the called function. */
static pln_ref make_tensor(const call_legalizer *x, pln_emit *e, pln_ref buffer,
                           pln_ref pointer) {
  const pln_graph *callee = buffer == PLN_NONE ? NULL : x->callee;
  pln_buffer_fields fields = {.dtype = PLN_DTYPE_NONE, .lanes = 1};
  if (callee)
    fields = pln_buffer_fields_of(callee, buffer);
  pln_ref args[] = {pointer,
                    make_shape(e, callee, &fields),
                    null_handle(e),
                    pln_emit_int(e, PLN_UINT32, fields.rank),
                    typed_zero(e, &fields),
                    callee ? import(e, callee, fields.elem_offset)
                           : pln_emit_int(e, PLN_UINT64, 0)};
  return pln_emit_call(e, "tvm_stack_make_array",
                       pln_emit_type(e, PLN_DTYPE_NONE), PLN_COUNT(args), args);
}

/* ------------------------------------------------------------------ the calls
 */

/* The function of the module that the call names. */
static pln_status find_callee(call_legalizer *x, pln_ref call) {
  const pln_node *name = &x->g->nodes[pln_operand(x->g, call, 0)];
  uint32_t at = name->kind == PLN_STRING_IMM
                    ? pln_module_find(x->module, name->data)
                    : PLN_NONE;
  if (at >= pln_module_count(x->module))
    return pln_diag_error(
        x->g->engine, PLN_ERR_ARGUMENT, NULL,
        "tir.LegalizePackedCalls: the module has no function '%s'",
        name->kind == PLN_STRING_IMM
            ? pln_symbol_text(x->g->engine, name->data).data
            : "?");
  x->callee = pln_module_function_at(x->module, at);
  if (x->callee->nodes[x->callee->root].kind != PLN_PRIM_FUNC)
    x->callee = NULL;
  return PLN_OK;
}

static pln_status check_count(const call_legalizer *x, uint32_t n) {
  const pln_graph *g = x->callee;
  if (!g || n - 2 <= g->scopes[g->nodes[g->root].data].n_params)
    return PLN_OK;
  return pln_diag_error(x->g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.LegalizePackedCalls: a call passes %u arguments "
                        "to a function of %u",
                        n - 2, g->scopes[g->nodes[g->root].data].n_params);
}

static pln_status build_call(const call_legalizer *x, pln_stmt_rewrite *s,
                             pln_ref call, pln_ref *args, pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  uint32_t n = x->g->nodes[call].count;
  pln_ref *buffers = args + n;
  find_buffers(x->callee, n - 2, buffers);
  for (uint32_t i = 0; i < n; i++) {
    pln_ref old = pln_operand(x->g, call, i);
    args[i] = pln_stmt_image(s, old);
    if (i > 0 && i < n - 1 && !is_param(x->g, old))
      args[i] = make_tensor(x, &e, buffers[i - 1], args[i]);
  }
  *node =
      pln_emit_call(&e, "tvm_call_cpacked", x->g->nodes[call].type, n, args);
  return e.status;
}

/* Only calls that are statements of their own are looked at. */
static pln_status legalize(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                           uint32_t i, pln_ref *node) {
  call_legalizer *x = ud;
  pln_ref call = pln_operand(x->g, stmt, i);
  const pln_node *n = &x->g->nodes[call];
  if (x->g->nodes[stmt].kind != PLN_EVALUATE ||
      !pln_is_call_of(n, "tvm_call_cpacked") || n->count < 2)
    return PLN_OK;
  PLN_TRY(find_callee(x, call));
  PLN_TRY(check_count(x, n->count));
  /* The arguments, and the buffers behind their parameters. */
  pln_ref *args =
      pln_mem_new(x->g->engine, 2 * (size_t)n->count * sizeof *args);
  if (!args)
    return pln_nomem(x->g->engine);
  pln_status status = build_call(x, s, call, args, node);
  pln_mem_free(x->g->engine, args, 2 * (size_t)n->count * sizeof *args);
  return status;
}

static pln_status legalize_function(void *ud, const pln_module *module,
                                    uint32_t index, const pln_graph *g,
                                    pln_graph **out) {
  call_legalizer x = {.module = module, .g = g};
  pln_stmt_mutator mutator = {.ud = &x, .operand = legalize};
  (void)ud;
  (void)index;
  return pln_stmt_rewrite_function(g, &mutator, out);
}

pln_status pln_pass_tir_legalize_packed_calls(pln_pass_run *run) {
  return pln_rewrite_prim_funcs(run, legalize_function, NULL);
}
