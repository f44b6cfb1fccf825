/* lowered_functions.c: PrimFuncs in the plan of devices: the memory scopes of
 * their buffers say where operands and results of call_lowered are, and get
 * the scopes that calls give.
 *
 * Called by plan_devices.c. A PrimFunc has one parameter for each tensor of its
 * operands, then one for each tensor of its results; the type of the GlobalVar
 * in Relay code says which of them are fields of one tuple.
 *
 *     call_lowered(@f, (%x,))  with  def f(a: T.Buffer(4, scope="A"), ...)
 *     =>   %x is in the memory A
 *
 * Semantics: GetPrimFuncArgAndResultConstraints and
 * ApplyPrimFuncArgAndResultConstraints of TVM's device_domains. */

#include "transform/device/lowered_functions.h"

/* The scope of a pointer; 0: none is given. "global" is the usual memory. */
static pln_symbol scope_of(const pln_graph *g, pln_ref data) {
  pln_symbol scope = pln_type_symbol(g->engine, g->nodes[data].type);
  pln_slice text = pln_symbol_text(g->engine, scope);
  return text.size == 0 || pln_slice_is(text, "global") ? 0 : scope;
}

/* A tensor of an operand or result: which part of the function's type it
 * belongs to, and the data pointer of its parameter. */
typedef pln_status (*tensor_fn)(void *ud, uint32_t part, pln_ref data);

typedef struct tensor_walk {
  const pln_graph *g;
  uint32_t param, n_params;
  pln_ref *data;   /* by parameter: the pointer of its buffer, or PLN_NONE */
  pln_type *stack; /* of types that are left */
  uint32_t n, cap;
} tensor_walk;

static pln_status push_type(tensor_walk *w, pln_type type) {
  PLN_TRY(pln_mem_grow(w->g->engine, (void **)&w->stack, &w->cap,
                       (size_t)w->n + 1, sizeof *w->stack));
  w->stack[w->n++] = type;
  return PLN_OK;
}

static pln_status each_of_part(tensor_walk *w, pln_type type, uint32_t part,
                               tensor_fn fn, void *ud) {
  const pln_engine *e = w->g->engine;
  PLN_TRY(push_type(w, type));
  while (w->n > 0) {
    type = w->stack[--w->n];
    if (type && pln_type_get_kind(e, type) == PLN_TYPE_TUPLE) {
      for (uint32_t i = pln_type_n_parts(e, type); i-- > 0;)
        PLN_TRY(push_type(w, pln_type_part_at(e, type, i)));
      continue;
    }
    if (w->param >= w->n_params) {
      w->n = 0;
      return PLN_OK;
    }
    pln_ref data = w->data[w->param++];
    if (data != PLN_NONE)
      PLN_TRY(fn(ud, part, data));
  }
  return PLN_OK;
}

static void find_pointers(tensor_walk *w) {
  const pln_graph *g = w->g;
  pln_ref first = g->scopes[g->nodes[g->root].data].begin;
  for (uint32_t i = 0; i < w->n_params; i++)
    w->data[i] = PLN_NONE;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_BUFFER_BIND)
      continue;
    pln_ref param = pln_operand(g, ref, 0), buffer = pln_operand(g, ref, 1);
    if (param >= first && param - first < w->n_params)
      w->data[param - first] = pln_operand(g, buffer, 0);
  }
}

static pln_status each_tensor(const pln_graph *g, pln_type function,
                              tensor_fn fn, void *ud) {
  pln_engine *e = g->engine;
  tensor_walk w = {.g = g,
                   .n_params = g->scopes[g->nodes[g->root].data].n_params};
  size_t size = ((size_t)w.n_params + 1) * sizeof *w.data;
  uint32_t n = pln_type_n_parts(e, function);
  if (!(w.data = pln_mem_new(e, size)))
    return pln_nomem(e);
  find_pointers(&w);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    status = each_of_part(&w, pln_type_part_at(e, function, i), i, fn, ud);
  pln_mem_free(e, w.stack, w.cap * sizeof *w.stack);
  pln_mem_free(e, w.data, size);
  return status;
}

/* -------------------------------------------------------------- from buffers
 */

typedef struct scope_reading {
  pln_device_plan *plan;
  const pln_graph *g;
  uint32_t index;
  pln_domain domain;
} scope_reading;

static pln_status read_scope(void *ud, uint32_t part, pln_ref data) {
  const scope_reading *r = ud;
  pln_symbol scope = scope_of(r->g, data);
  pln_slice name = pln_symbol_text(
      r->plan->engine, pln_module_name_at(r->plan->module, r->index));
  pln_device device;
  pln_domain there;
  bool ok;
  if (!scope)
    return PLN_OK;
  PLN_TRY(pln_device_in_scope(&r->plan->compilation, scope, &device));
  PLN_TRY(pln_domain_new(&r->plan->domains, 0, device, &there));
  PLN_TRY(pln_domain_unify(&r->plan->domains,
                           pln_domain_part(&r->plan->domains, r->domain, part),
                           there, &ok));
  if (ok)
    return PLN_OK;
  return pln_diag_error(r->plan->engine, PLN_ERR_INVALID, NULL,
                        "the tensors of operand %u of @%.*s are in several "
                        "memories",
                        part, (int)name.size, name.data);
}

pln_status pln_plan_lowered(pln_device_plan *plan, uint32_t index,
                            pln_type type) {
  if (plan->globals[index] ||
      pln_type_get_kind(plan->engine, type) != PLN_TYPE_FUNC)
    return PLN_OK;
  const pln_graph *g = pln_module_function_at(plan->module, index);
  scope_reading r = {.plan = plan, .g = g, .index = index};
  PLN_TRY(pln_domain_new(&plan->domains, type, 0, &r.domain));
  plan->globals[index] = r.domain;
  plan->lowered_types[index] = type;
  return each_tensor(g, type, read_scope, &r);
}

/* ---------------------------------------------------------------- to buffers
 */

typedef struct scope_writing {
  pln_device_plan *plan;
  const pln_graph *g;
  pln_domain domain;
  pln_idmap *scopes; /* by variable: the new scope of a pointer */
  pln_idmap *vars;   /* by variable: the pointer that takes its place */
} scope_writing;

static pln_status note_scope(void *ud, uint32_t part, pln_ref data) {
  scope_writing *w = ud;
  pln_domain domain = pln_domain_part(&w->plan->domains, w->domain, part);
  pln_symbol scope =
      w->plan->compilation.devices[pln_plan_device(w->plan, domain)].scope;
  if (!scope || scope_of(w->g, data))
    return PLN_OK;
  return pln_idmap_set(w->scopes, w->g->nodes[data].data, scope);
}

static pln_status replace_pointer(void *ud, pln_rewrite *rw, pln_ref old,
                                  pln_ref *node) {
  scope_writing *w = ud;
  const pln_node *n = &w->g->nodes[old];
  pln_symbol scope = n->kind == PLN_VAR ? pln_idmap_get(w->scopes, n->data) : 0;
  if (!scope)
    return PLN_OK;
  pln_type type, element = pln_type_part_at(w->g->engine, n->type, 0);
  PLN_TRY(
      pln_type_make(w->g->engine, PLN_TYPE_POINTER, scope, 1, &element, &type));
  pln_builder *b = pln_rewrite_builder(rw);
  PLN_TRY(
      pln_build_var(b, n->attrs, type, pln_idmap_get(w->vars, n->data), node));
  return pln_idmap_set(w->vars, n->data, b->graph->nodes[*node].data);
}

pln_status pln_capture_scopes(pln_device_plan *plan, uint32_t index,
                              pln_graph **out) {
  const pln_graph *g = pln_module_function_at(plan->module, index);
  scope_writing w = {.plan = plan, .g = g, .domain = plan->globals[index]};
  pln_mutator m = {.ud = &w, .visit = replace_pointer};
  pln_status status = pln_idmap_new(plan->engine, &w.scopes);
  if (status == PLN_OK)
    status = pln_idmap_new(plan->engine, &w.vars);
  if (status == PLN_OK)
    status = each_tensor(g, plan->lowered_types[index], note_scope, &w);
  if (status == PLN_OK)
    status = pln_graph_rewrite(g, &m, out);
  pln_idmap_free(w.scopes);
  pln_idmap_free(w.vars);
  return status;
}
