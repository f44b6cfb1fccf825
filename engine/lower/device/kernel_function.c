/* kernel_function.c: a function of its own of a part that runs on a device.
 *
 * Called by split_host_device.c. The part is copied out of its function, with
 * its free variables, and this copy is rewritten: the free variables become
 * parameters, and the buffers over them are declared.
 *
 *     T.attr(T.target({"kind": "cuda", ...}), "target", 0)
 *     A[n] = 0
 *         =>
 *     def kernel(A: T.handle("float32"), n: T.int32):
 *         A_1 = T.decl_buffer((16,), data=A)
 *         A_1[n] = 0
 *
 * What always holds: the parameters are new variables, so that no variable is
 * bound in two functions of a module. */

#include <stdlib.h>

#include "lower/device/kernel_function.h"

typedef struct free_var {
  pln_ref ref; /* the first node of it */
  uint32_t id;
  pln_slice name;
  bool pointer;
  uint32_t order; /* that of the first uses */
} free_var;

typedef struct kernel_builder {
  const pln_graph *g; /* the copy */
  pln_attrs target;   /* without its host */
  bool returns;
  free_var *vars; /* sorted */
  uint32_t n, cap;
  pln_idmap *bound;    /* variables */
  pln_idmap *place_of; /* free variable -> 1 + its place, while they are found;
                        * then 1 + that in `vars` */
  pln_ref *buffers;    /* to declare, in the order of their uses */
  uint32_t n_buffers, cap_buffers;
  bool *seen; /* by node */
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
  pln_ref *params; /* of the builder */
} kernel_builder;

/* -------------------------------------------------------------- the variables
 */

static pln_status note_bound(void *ud, const pln_graph *g, pln_ref var) {
  return pln_idmap_set(ud, g->nodes[var].data, 1);
}

static pln_status find_bound(kernel_builder *x) {
  const pln_graph *g = x->g;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    for (uint32_t k = 0; k < g->scopes[s].n_params; k++)
      PLN_TRY(note_bound(x->bound, g, g->scopes[s].begin + k));
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    PLN_TRY(pln_tir_bound_vars(g, ref, note_bound, x->bound));
  return PLN_OK;
}

static bool is_free(const kernel_builder *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  return n->kind == PLN_VAR && !pln_idmap_get(x->bound, n->data);
}

static pln_status add_var(kernel_builder *x, pln_ref ref) {
  const pln_node *n = &x->g->nodes[ref];
  if (!is_free(x, ref) || pln_idmap_get(x->place_of, n->data))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->vars, &x->cap,
                       (size_t)x->n + 1, sizeof *x->vars));
  bool handle = pln_type_get_kind(x->g->engine, n->type) == PLN_TYPE_POINTER ||
                pln_type_dtype(x->g->engine, n->type) == PLN_DTYPE_NONE;
  x->vars[x->n] = (free_var){.ref = ref,
                             .id = n->data,
                             .name = pln_symbol_text(x->g->engine, n->attrs),
                             .pointer = handle,
                             .order = x->n};
  return pln_idmap_set(x->place_of, n->data, ++x->n);
}

static int by_type_and_name(const void *a, const void *b) {
  const free_var *x = a, *y = b;
  size_t size = x->name.size < y->name.size ? x->name.size : y->name.size;
  if (x->pointer != y->pointer)
    return x->pointer ? -1 : 1;
  int order = memcmp(x->name.data, y->name.data, size);
  if (order == 0 && x->name.size != y->name.size)
    order = x->name.size < y->name.size ? -1 : 1;
  return order ? order : x->order < y->order ? -1 : 1;
}

static pln_status find_vars(kernel_builder *x) {
  PLN_TRY(find_bound(x));
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    PLN_TRY(add_var(x, ref));
  if (x->n > 1)
    qsort(x->vars, x->n, sizeof *x->vars, by_type_and_name);
  for (uint32_t i = 0; i < x->n; i++)
    PLN_TRY(pln_idmap_set(x->place_of, x->vars[i].id, i + 1));
  return PLN_OK;
}

/* ---------------------------------------------------------------- the buffers
 */

/* Whether the Buffer can be declared in front of everything. */
static bool is_outer(const kernel_builder *x, pln_ref buffer) {
  for (uint32_t i = 0; i < x->g->nodes[buffer].count; i++) {
    pln_ref part = pln_operand(x->g, buffer, i);
    if (x->g->nodes[part].kind != PLN_VAR ? i == 0 : !is_free(x, part))
      return false;
  }
  return true;
}

static pln_status push(kernel_builder *x, pln_ref ref) {
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->stack, &x->cap_stack,
                       (size_t)x->n_stack + 1, sizeof *x->stack));
  x->stack[x->n_stack++] = ref;
  return PLN_OK;
}

static pln_status visit_buffer(kernel_builder *x, pln_ref ref) {
  if (!is_outer(x, ref))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->buffers, &x->cap_buffers,
                       (size_t)x->n_buffers + 1, sizeof *x->buffers));
  x->buffers[x->n_buffers++] = ref;
  return PLN_OK;
}

/* The Buffers below a statement's operands, the first operand first. */
static pln_status visit_operands(kernel_builder *x, pln_ref stmt) {
  if (x->seen[stmt])
    return PLN_OK;
  x->seen[stmt] = true;
  PLN_TRY(push(x, stmt));
  while (x->n_stack > 0) {
    pln_ref ref = x->stack[--x->n_stack];
    const pln_node *n = &x->g->nodes[ref];
    if (ref != stmt && x->seen[ref])
      continue;
    x->seen[ref] = true;
    if (n->kind == PLN_BUFFER)
      PLN_TRY(visit_buffer(x, ref));
    for (uint32_t i = n->count; i-- > 0;)
      if (!pln_is_stmt(&x->g->nodes[pln_operand(x->g, ref, i)]))
        PLN_TRY(push(x, pln_operand(x->g, ref, i)));
  }
  return PLN_OK;
}

/* Declared Buffers need no other declaration. */
static void skip_declared(kernel_builder *x) {
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (x->g->nodes[ref].kind == PLN_DECL_BUFFER)
      x->seen[pln_operand(x->g, ref, 0)] = true;
}

/* The operands of an owner are visited where its first scope begins. */
static pln_status find_buffers(kernel_builder *x) {
  const pln_graph *g = x->g;
  pln_scope next = 0;
  skip_declared(x);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    for (; next < g->n_scopes && g->scopes[next].begin <= ref; next++)
      if (g->scopes[next].owner != PLN_NONE)
        PLN_TRY(visit_operands(x, g->scopes[next].owner));
    if (pln_is_stmt(&g->nodes[ref]) && !pln_owns(&g->nodes[ref]))
      PLN_TRY(visit_operands(x, ref));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ rewriting
 */

static pln_status make_params(kernel_builder *x, pln_stmt_rewrite *s) {
  for (uint32_t i = 0; i < x->n; i++) {
    const pln_node *old = &x->g->nodes[x->vars[i].ref];
    PLN_TRY(pln_build_var(pln_stmt_builder(s), old->attrs, old->type, 0,
                          &x->params[i]));
  }
  for (pln_ref ref = 0; ref < x->g->n_nodes; ref++)
    if (is_free(x, ref))
      pln_stmt_bind(
          s, ref,
          x->params[pln_idmap_get(x->place_of, x->g->nodes[ref].data) - 1]);
  return PLN_OK;
}

static pln_status enter(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                        pln_ref *node) {
  kernel_builder *x = ud;
  (void)node;
  return stmt == x->g->root ? make_params(x, s) : PLN_OK;
}

static pln_status with_bool(pln_engine *e, const char *name, pln_attrs *attrs) {
  pln_attr value = {.kind = PLN_ATTR_BOOL, .v.i = 1};
  PLN_TRY(pln_symbol_intern(e, pln_text(name), &value.name));
  return pln_attrs_with(e, *attrs, &value, attrs);
}

static pln_status kernel_attrs(const kernel_builder *x, pln_attrs *attrs) {
  pln_engine *e = x->g->engine;
  PLN_TRY(pln_attrs_with_dict(e, 0, "target", x->target, attrs));
  PLN_TRY(with_bool(e, "tir.noalias", attrs));
  return with_bool(e, "tir.is_global_func", attrs);
}

static pln_ref returning(pln_emit *e, pln_ref body) {
  pln_ref zero = pln_emit_int(e, PLN_INT32, 0);
  pln_ref ret = pln_emit_call(e, "ret", pln_emit_type(e, PLN_INT32), 1, &zero);
  pln_ref both[] = {body, pln_emit_evaluate(e, ret)};
  return pln_emit_seq(e, 2, both);
}

static pln_status make_function(kernel_builder *x, pln_stmt_rewrite *s,
                                pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_prim spec = {.kind = PLN_PRIM_FUNC};
  pln_body body = {.n_params = x->n, .params = x->params};
  body.stmt = pln_stmt_body(s, 0);
  if (x->returns) {
    spec.type = pln_emit_type(&e, PLN_INT32);
    body.stmt = returning(&e, body.stmt);
  }
  for (uint32_t i = 0; i < x->n_buffers; i++) {
    pln_ref buffer;
    PLN_TRY(pln_stmt_map(s, x->buffers[i], &buffer));
    body.stmt = pln_emit_decl_buffer(&e, buffer, body.stmt);
  }
  PLN_TRY(e.status);
  PLN_TRY(kernel_attrs(x, &spec.attrs));
  return pln_build_floating_stmt(e.b, &spec, 1, &body, node);
}

/* The AttrStmt that marks the part is its body. */
static pln_status leave(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                        pln_ref *node) {
  kernel_builder *x = ud;
  if (stmt == x->g->root)
    return make_function(x, s, node);
  if (stmt == x->g->scopes[x->g->nodes[x->g->root].data].result)
    *node = pln_stmt_body(s, 0);
  return PLN_OK;
}

/* --------------------------------------------------------------------- making
 */

/* A function with nothing but the part; its variables are free. */
static pln_status copy_region(const pln_graph *g, pln_ref region,
                              pln_graph **out) {
  pln_builder *b;
  pln_prim spec = {.kind = PLN_PRIM_FUNC};
  pln_body body = {0};
  pln_ref function;
  PLN_TRY(pln_builder_new(g->engine, &b));
  pln_status status = pln_build_import(b, g, region, &body.stmt);
  if (status == PLN_OK)
    status = pln_build_floating_stmt(b, &spec, 1, &body, &function);
  if (status == PLN_OK)
    status = pln_builder_seal(b, function, out);
  pln_builder_free(b);
  return status;
}

static pln_status rewrite(kernel_builder *x, pln_kernel *out) {
  pln_stmt_mutator mutator = {.ud = x, .enter = enter, .leave = leave};
  pln_engine *e = x->g->engine;
  PLN_TRY(pln_idmap_new(e, &x->bound));
  PLN_TRY(pln_idmap_new(e, &x->place_of));
  PLN_TRY(find_vars(x));
  x->seen = pln_mem_zeroed(e, x->g->n_nodes * sizeof *x->seen);
  x->params = pln_mem_new(e, ((size_t)x->n + 1) * sizeof *x->params);
  out->params = pln_mem_new(e, ((size_t)x->n + 1) * sizeof *out->params);
  out->n_params = x->n;
  if (!x->seen || !x->params || !out->params)
    return pln_nomem(e);
  for (uint32_t i = 0; i < x->n; i++)
    out->params[i] = x->vars[i].id;
  PLN_TRY(find_buffers(x));
  return pln_stmt_rewrite_function(x->g, &mutator, &out->function);
}

static bool returns_errors(const pln_engine *e, pln_attrs target) {
  int32_t device = pln_target_device_type(e, target);
  return device == 1 || device == 12 || device == 16;
}

static void end(kernel_builder *x) {
  pln_engine *e = x->g->engine;
  pln_idmap_free(x->bound);
  pln_idmap_free(x->place_of);
  pln_mem_free(e, x->vars, x->cap * sizeof *x->vars);
  pln_mem_free(e, x->buffers, x->cap_buffers * sizeof *x->buffers);
  pln_mem_free(e, x->stack, x->cap_stack * sizeof *x->stack);
  pln_mem_free(e, x->seen, x->g->n_nodes * sizeof *x->seen);
  pln_mem_free(e, x->params, ((size_t)x->n + 1) * sizeof *x->params);
}

pln_status pln_kernel_make(const pln_graph *g, pln_ref region,
                           pln_kernel *out) {
  pln_graph *copy;
  kernel_builder x = {0};
  *out = (pln_kernel){0};
  PLN_TRY(pln_attrs_without(g->engine, pln_region_target(g, region), "host",
                            &x.target));
  x.returns = out->returns = returns_errors(g->engine, x.target);
  PLN_TRY(copy_region(g, region, &copy));
  x.g = copy;
  pln_status status = rewrite(&x, out);
  end(&x);
  pln_graph_release(copy);
  if (status != PLN_OK)
    pln_kernel_end(g->engine, out);
  return status;
}

void pln_kernel_end(pln_engine *e, pln_kernel *kernel) {
  pln_graph_release(kernel->function);
  pln_mem_free(e, kernel->params,
               ((size_t)kernel->n_params + 1) * sizeof *kernel->params);
  *kernel = (pln_kernel){0};
}
