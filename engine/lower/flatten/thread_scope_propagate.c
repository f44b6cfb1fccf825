/* thread_scope_propagate.c: tir.ThreadScopePropagate: memory without a storage
 * scope gets that of the thread axis around it.
 *
 * A step of tir.StorageFlatten. Inside of threadIdx memory is local, inside of
 * blockIdx shared, elsewhere global.
 *
 *     T.launch_thread("threadIdx.x", 4); T.realize(B[0:1])
 *         =>   B is in scope "local"
 *
 * Semantics: TVM's ThreadScopePropagate. */

#include "lower/flatten/flatten.h"

typedef struct propagator {
  const pln_graph *g;
  pln_idmap *external;
  const char **scopes; /* of the open thread axes */
  uint32_t n, cap;
} propagator;

static const char *scope_of_tag(pln_slice tag) {
  if (tag.size >= 8 && memcmp(tag.data, "blockIdx", 8) == 0)
    return "shared";
  return "local";
}

static bool is_axis(const pln_graph *g, pln_ref stmt) {
  return pln_slice_is(pln_attr_key(g, stmt), "thread_extent");
}

static pln_status enter_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, bool *skip) {
  propagator *x = ud;
  (void)s, (void)k, (void)skip;
  if (!is_axis(x->g, stmt))
    return PLN_OK;
  pln_ref thread = pln_operand(x->g, stmt, 0);
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->scopes, &x->cap,
                       (size_t)x->n + 1, sizeof *x->scopes));
  x->scopes[x->n++] = scope_of_tag(pln_attrs_string(
      x->g->engine, x->g->nodes[thread].attrs, "thread_tag", ""));
  return PLN_OK;
}

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  propagator *x = ud;
  (void)s, (void)k, (void)body, (void)again;
  x->n -= is_axis(x->g, stmt);
  return PLN_OK;
}

/* A realised Buffer of memory without a scope gets a new data pointer. */
static pln_status enter_stmt(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             pln_ref *node) {
  propagator *x = ud;
  pln_engine *e = x->g->engine;
  pln_symbol scope;
  pln_type type;
  pln_ref var;
  (void)node;
  if (x->g->nodes[stmt].kind != PLN_BUFFER_REALIZE)
    return PLN_OK;
  pln_ref buffer = pln_operand(x->g, stmt, 0);
  pln_ref data = pln_operand(x->g, buffer, 0);
  const pln_node *n = &x->g->nodes[data];
  if (pln_type_get_kind(e, n->type) != PLN_TYPE_POINTER ||
      pln_symbol_text(e, pln_type_symbol(e, n->type)).size > 0 ||
      pln_is_external_buffer(x->external, x->g, buffer))
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(
      e, pln_text(x->n > 0 ? x->scopes[x->n - 1] : "global"), &scope));
  pln_type element = pln_type_part_at(e, n->type, 0);
  PLN_TRY(pln_type_make(e, PLN_TYPE_POINTER, scope, 1, &element, &type));
  PLN_TRY(pln_build_var(pln_stmt_builder(s), n->attrs, type, 0, &var));
  pln_stmt_bind(s, data, var);
  return PLN_OK;
}

pln_status pln_thread_scope_propagate(const pln_graph *function,
                                      pln_graph **out) {
  propagator x = {.g = function};
  pln_stmt_mutator mutator = {.ud = &x,
                              .enter = enter_stmt,
                              .enter_body = enter_body,
                              .leave_body = leave_body};
  PLN_TRY(pln_external_buffers(function, &x.external));
  pln_status status = pln_stmt_rewrite_function(function, &mutator, out);
  pln_idmap_free(x.external);
  pln_mem_free(function->engine, x.scopes, x.cap * sizeof *x.scopes);
  return status;
}
