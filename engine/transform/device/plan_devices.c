/* plan_devices.c: PlanDevices: finds the device of each value, and writes it
 * into the program.
 *
 * Run by the executor, on a module. Annotations (on_device), copies
 * (device_copy), devices of parameters and results, and some operators say
 * where values are; operators, lets, branches and calls carry that on. What
 * stays open is the default device's. A contradiction is an error that names
 * both nodes and devices, unless an annotation allows a copy there.
 *
 *     subtract(on_device(add(%a, %b), virtual_device=cpu), %c)   =>
 *     subtract(device_copy(on_device(add(%a, %b), cpu), cpu, gpu), %c)
 *
 * Semantics: TVM's PlanDevicesRewrite, PlanDevicesCheckConflicts, InferType and
 * PlanDevicesCore in one pass. Annotations of let-bound values and of function
 * results constrain these, too; a projection of an annotated tuple is annotated
 * instead of it; both without rewriting the program first. Functions are
 * visited in the module's order. */

#include "ir/graph/describe.h"
#include "ir/infer/check_uses.h"
#include "op/op.h"
#include "transform/device/lowered_functions.h"
#include "transform/functional/let.h"

/* --------------------------------------------------------------- expressions
 */

static bool is_op(const pln_node *n, pln_op op) {
  return n->kind == PLN_CALL && n->data == op;
}

static bool is_value(const pln_node *n) {
  return pln_kinds[n->kind].kind_class == PLN_CLASS_EXPR &&
         n->kind != PLN_LET && n->kind != PLN_OP &&
         n->kind != PLN_CONSTRUCTOR && n->kind != PLN_ABSENT;
}

/* Their devices are known where they are bound: on_device does not annotate
 * them. */
static bool is_bound_elsewhere(const pln_node *n) {
  return n->kind == PLN_VAR || n->kind == PLN_GLOBAL_VAR ||
         n->kind == PLN_FUNCTION || n->kind == PLN_CONSTRUCTOR ||
         n->kind == PLN_OP;
}

pln_status pln_read_on_device(pln_device_plan *plan, const pln_node *call,
                              pln_on_device *out) {
  pln_engine *e = plan->engine;
  out->body = pln_attrs_int(e, call->attrs, "constrain_body", 1) != 0;
  out->result = pln_attrs_int(e, call->attrs, "constrain_result", 0) != 0;
  return pln_device_read(&plan->compilation,
                         pln_attrs_find(e, call->attrs, "virtual_device"),
                         &out->device);
}

static bool is_marked_primitive(const pln_graph *g, const pln_node *n) {
  return n->kind == PLN_FUNCTION &&
         pln_attrs_int(g->engine, n->attrs, "Primitive", 0) != 0;
}

/* --------------------------------------------------------------- conflicts
 *
 * TVM's PlanDevicesCheckConflicts: annotations say down to the operands, in the
 * order of a traversal from users to operands, where these should be. */

typedef struct conflict_search {
  pln_device_plan *plan;
  pln_planned_function *f;
} conflict_search;

static pln_status around_call(pln_device_plan *plan, pln_planned_function *f,
                              pln_ref call) {
  const pln_node *n = &f->graph->nodes[call];
  pln_compilation *c = &plan->compilation;
  pln_device result = f->placed[call], both;
  pln_on_device on;
  f->around[call] = result;
  if (is_op(n, PLN_OP_ON_DEVICE)) {
    PLN_TRY(pln_read_on_device(plan, n, &on));
    f->around[call] = on.body ? on.device : result;
    result = on.result ? on.device : result;
  } else if (is_op(n, PLN_OP_DEVICE_COPY)) {
    PLN_TRY(pln_device_read(
        c, pln_attrs_find(plan->engine, n->attrs, "src_virtual_device"),
        &f->around[call]));
    PLN_TRY(pln_device_read(
        c, pln_attrs_find(plan->engine, n->attrs, "dst_virtual_device"),
        &result));
  }
  PLN_TRY(pln_device_join(c, f->placed[call], result, &both));
  if (both != PLN_NO_DEVICE)
    f->placed[call] = both;
  return PLN_OK;
}

static pln_status place_operand(pln_device_plan *plan, pln_planned_function *f,
                                pln_ref call, pln_ref operand) {
  pln_device both;
  PLN_TRY(pln_device_join(&plan->compilation, f->placed[operand],
                          f->around[call], &both));
  if (both != PLN_NO_DEVICE)
    f->placed[operand] = both;
  else if (!is_op(&f->graph->nodes[operand], PLN_OP_ON_DEVICE))
    f->flags[operand] |= PLN_DEVICE_CONFLICT;
  return PLN_OK;
}

static pln_status search_node(void *ud, const pln_graph *g, pln_ref node,
                              bool *skip) {
  conflict_search *s = ud;
  const pln_node *n = &g->nodes[node];
  *skip = is_marked_primitive(g, n);
  if (n->kind != PLN_CALL)
    return PLN_OK;
  PLN_TRY(around_call(s->plan, s->f, node));
  for (uint32_t i = pln_has_callee(n); i < n->count; i++)
    PLN_TRY(place_operand(s->plan, s->f, node, pln_operand(g, node, i)));
  return PLN_OK;
}

pln_device pln_plan_copy_for(const pln_planned_function *f, pln_ref call,
                             pln_ref operand) {
  pln_device from = f->placed[operand], to = f->around[call];
  return f->flags[operand] & PLN_DEVICE_CONFLICT && from && to && from != to
             ? to
             : 0;
}

/* ------------------------------------------------------------- unification */

static pln_status contradiction(pln_device_plan *plan,
                                const pln_planned_function *f, pln_ref node,
                                pln_domain here, pln_ref user,
                                pln_domain there) {
  pln_description a, b;
  char x[200], y[200];
  const pln_compilation *c = &plan->compilation;
  pln_device on = pln_domain_device(&plan->domains, here);
  pln_device wanted = pln_domain_device(&plan->domains, there);
  const char *who = f->graph->nodes[user].kind == PLN_FUNCTION
                        ? "its function"
                        : pln_describe_node(f->graph, user, &b);
  pln_status status = pln_diag_error(
      plan->engine, PLN_ERR_INVALID, NULL, "%s is on %s, but %s needs it on %s",
      pln_describe_node(f->graph, node, &a),
      pln_device_describe(c, on, x, sizeof x), who,
      pln_device_describe(c, wanted, y, sizeof y));
  PLN_TRY(pln_annotate_node_of(f->graph, node, f->name));
  return status;
}

/* `node` is where `user` wants it. */
static pln_status unify(pln_device_plan *plan, const pln_planned_function *f,
                        pln_ref node, pln_domain here, pln_ref user,
                        pln_domain there) {
  bool ok;
  if (!here || !there)
    return PLN_OK;
  PLN_TRY(pln_domain_unify(&plan->domains, here, there, &ok));
  return ok ? PLN_OK : contradiction(plan, f, node, here, user, there);
}

static pln_status collapse(pln_device_plan *plan, const pln_planned_function *f,
                           pln_ref node, pln_domain here, pln_ref user,
                           pln_domain there) {
  bool ok;
  if (!here || !there)
    return PLN_OK;
  PLN_TRY(pln_domain_collapse(&plan->domains, here, there, &ok));
  return ok ? PLN_OK : contradiction(plan, f, node, here, user, there);
}

static pln_status on_the(pln_device_plan *plan, const pln_planned_function *f,
                         pln_ref node, pln_device device, pln_domain *out) {
  return pln_domain_new(&plan->domains, f->graph->nodes[node].type, device,
                        out);
}

/* ---------------------------------------------------------- values by kind */

/* Where a let or a function finds its value: an annotation there holds for
 * both sides. */
static pln_status bound_domain(pln_device_plan *plan, pln_planned_function *f,
                               pln_ref value, pln_domain *out) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[value];
  *out = f->use[value];
  if (f->noted[value] == PLN_NO_DEVICE)
    return PLN_OK;
  if (n->kind == PLN_CALL &&
      is_bound_elsewhere(&g->nodes[pln_operand(g, value, 0)])) {
    *out = f->use[pln_operand(g, value, 0)];
    return PLN_OK;
  }
  return on_the(plan, f, value, f->noted[value], out);
}

static pln_status plan_on_device(pln_device_plan *plan, pln_planned_function *f,
                                 pln_ref call) {
  const pln_graph *g = f->graph;
  pln_ref body = pln_operand(g, call, 0);
  pln_on_device on;
  pln_domain there;
  PLN_TRY(pln_read_on_device(plan, &g->nodes[call], &on));
  f->value[call] = f->value[body];
  pln_device to = pln_plan_copy_for(f, call, body);
  if (to) {
    PLN_TRY(on_the(plan, f, call, to, &f->value[call]));
    PLN_TRY(on_the(plan, f, call, on.result ? on.device : 0, &f->use[call]));
    f->noted[call] = on.result ? PLN_NO_DEVICE : to;
    PLN_TRY(on_the(plan, f, body, f->placed[body], &there));
    return unify(plan, f, body, f->use[body], call, there);
  }
  PLN_TRY(on_the(plan, f, call, on.result ? on.device : 0, &f->use[call]));
  if (on.body && !on.result)
    f->noted[call] = on.device;
  if (!on.body || (!on.result && is_bound_elsewhere(&g->nodes[body]) &&
                   !(f->flags[call] & PLN_DEVICE_OPERAND)))
    return PLN_OK;
  PLN_TRY(on_the(plan, f, body, on.device, &there));
  return unify(plan, f, body, f->use[body], call, there);
}

static pln_status plan_copy(pln_device_plan *plan, pln_planned_function *f,
                            pln_ref call) {
  const pln_graph *g = f->graph;
  const pln_attrs attrs = g->nodes[call].attrs;
  pln_ref body = pln_operand(g, call, 0);
  pln_device from, to;
  pln_domain there;
  PLN_TRY(pln_device_read(
      &plan->compilation,
      pln_attrs_find(plan->engine, attrs, "src_virtual_device"), &from));
  PLN_TRY(pln_device_read(
      &plan->compilation,
      pln_attrs_find(plan->engine, attrs, "dst_virtual_device"), &to));
  PLN_TRY(on_the(plan, f, body, from, &there));
  PLN_TRY(unify(plan, f, body, f->use[body], call, there));
  PLN_TRY(on_the(plan, f, call, to, &f->value[call]));
  f->use[call] = f->value[call];
  return PLN_OK;
}

/* A copy of an operand for one call alone is made on both devices. */
static pln_status plan_operand(pln_device_plan *plan, pln_planned_function *f,
                               pln_ref call, pln_ref operand, pln_domain wanted,
                               bool exact) {
  pln_device to = pln_plan_copy_for(f, call, operand);
  pln_domain use = f->use[operand], there;
  if (to) {
    PLN_TRY(on_the(plan, f, operand, f->placed[operand], &there));
    PLN_TRY(unify(plan, f, operand, use, call, there));
    PLN_TRY(on_the(plan, f, operand, to, &use));
  }
  return exact ? unify(plan, f, operand, use, call, wanted)
               : collapse(plan, f, operand, use, call, wanted);
}

/* Operators whose operand `index` is on the host. */
static bool takes_host(pln_op op, uint32_t index) {
  switch (op) {
  case PLN_OP_MEMORY_ALLOC_STORAGE: return true;
  case PLN_OP_MEMORY_ALLOC_TENSOR:
  case PLN_OP_VM_RESHAPE_TENSOR: return index > 0;
  default: return false;
  }
}

/* Operators whose operand `index` may be anywhere. */
static bool takes_any(pln_op op, uint32_t index) {
  return op == PLN_OP_VM_SHAPE_OF ||
         (op == PLN_OP_VM_INVOKE_TVM_OP && index == 0);
}

static pln_status plan_result(pln_device_plan *plan, pln_planned_function *f,
                              pln_ref call) {
  const pln_node *n = &f->graph->nodes[call];
  pln_device device = 0;
  pln_domain there;
  if (n->data == PLN_OP_VM_SHAPE_OF)
    device = plan->compilation.host;
  else if (n->data == PLN_OP_MEMORY_ALLOC_STORAGE)
    PLN_TRY(pln_device_read(
        &plan->compilation,
        pln_attrs_find(plan->engine, n->attrs, "virtual_device"), &device));
  PLN_TRY(on_the(plan, f, call, device, &there));
  return unify(plan, f, call, f->use[call], call, there);
}

/* Operands, together a tuple, are where the PrimFunc has them, and so is the
 * result. The tuple of one call has the function's domain; one that others use
 * too is in one place. */
static pln_status plan_lowered_call(pln_device_plan *plan,
                                    pln_planned_function *f, pln_ref call) {
  const pln_graph *g = f->graph;
  pln_domains *d = &plan->domains;
  pln_ref callee = pln_operand(g, call, 0), tuple = pln_operand(g, call, 1);
  pln_domain function = f->use[callee];
  if (!(f->flags[tuple] & PLN_DEVICE_LOWERED))
    PLN_TRY(collapse(plan, f, tuple, f->use[tuple], call, function));
  return unify(plan, f, callee, pln_domain_part(d, function, UINT32_MAX), call,
               f->use[call]);
}

static bool is_lowered_call(const pln_graph *g, const pln_node *n) {
  return is_op(n, PLN_OP_CALL_LOWERED) && n->count == 2 &&
         g->nodes[g->operands[n->first]].kind == PLN_GLOBAL_VAR;
}

static pln_status plan_operator(pln_device_plan *plan, pln_planned_function *f,
                                pln_ref call) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[call];
  pln_domain host;
  if (n->data == PLN_OP_ON_DEVICE && n->count == 1)
    return plan_on_device(plan, f, call);
  if (n->data == PLN_OP_DEVICE_COPY && n->count == 1)
    return plan_copy(plan, f, call);
  if (is_lowered_call(g, n))
    return plan_lowered_call(plan, f, call);
  PLN_TRY(plan_result(plan, f, call));
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref operand = pln_operand(g, call, i);
    if (takes_any(n->data, i))
      continue;
    if (!takes_host(n->data, i)) {
      PLN_TRY(plan_operand(plan, f, call, operand, f->use[call], false));
      continue;
    }
    PLN_TRY(on_the(plan, f, operand, plan->compilation.host, &host));
    PLN_TRY(plan_operand(plan, f, call, operand, host, true));
  }
  return PLN_OK;
}

static pln_status plan_call(pln_device_plan *plan, pln_planned_function *f,
                            pln_ref call) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[call];
  if (!pln_has_callee(n))
    return plan_operator(plan, f, call);
  pln_ref callee = pln_operand(g, call, 0);
  bool constructor = g->nodes[callee].kind == PLN_CONSTRUCTOR ||
                     g->nodes[callee].kind == PLN_OP;
  for (uint32_t i = 1; i < n->count; i++) {
    pln_domain wanted =
        constructor ? f->use[call]
                    : pln_domain_part(&plan->domains, f->use[callee], i - 1);
    PLN_TRY(plan_operand(plan, f, call, pln_operand(g, call, i), wanted,
                         !constructor));
  }
  if (constructor)
    return PLN_OK;
  return unify(plan, f, callee,
               pln_domain_part(&plan->domains, f->use[callee], UINT32_MAX),
               call, f->use[call]);
}

static const pln_attr *param_device(const pln_device_plan *plan,
                                    const pln_node *function, uint32_t index) {
  const pln_attr *list =
      pln_attrs_find(plan->engine, function->attrs, "param_virtual_devices");
  if (!list || list->kind != PLN_ATTR_LIST ||
      index >= pln_attrs_count(plan->engine, list->v.dict))
    return NULL;
  return pln_attrs_at(plan->engine, list->v.dict, index);
}

/* A value is on the device of an attribute, which may be missing. */
static pln_status plan_attribute(pln_device_plan *plan, pln_planned_function *f,
                                 pln_ref node, pln_domain domain,
                                 const pln_attr *attr, pln_ref function) {
  pln_device device;
  pln_domain there;
  PLN_TRY(pln_device_read(&plan->compilation, attr, &device));
  if (device == 0)
    return PLN_OK;
  PLN_TRY(on_the(plan, f, node, device, &there));
  return unify(plan, f, node, domain, function, there);
}

static pln_status plan_function(pln_device_plan *plan, pln_planned_function *f,
                                pln_ref function) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[function];
  const pln_scope_row *row = &g->scopes[n->data];
  bool primitive = is_marked_primitive(g, n);
  for (uint32_t i = 0; i < row->n_params; i++) {
    pln_ref param = row->begin + i;
    pln_domain part = pln_domain_part(&plan->domains, f->use[function], i);
    if (!primitive)
      PLN_TRY(unify(plan, f, param, f->use[param], function, part));
    PLN_TRY(plan_attribute(plan, f, param, part, param_device(plan, n, i),
                           function));
  }
  pln_domain result =
      pln_domain_part(&plan->domains, f->use[function], UINT32_MAX);
  pln_domain body = f->use[row->result];
  if (!(f->scopes[n->data] & PLN_SCOPE_LETS))
    PLN_TRY(bound_domain(plan, f, row->result, &body));
  PLN_TRY(unify(plan, f, row->result, body, function, result));
  return plan_attribute(
      plan, f, row->result, result,
      pln_attrs_find(plan->engine, n->attrs, "virtual_device"), function);
}

/* The results of branches, arms and blocks are the value of their owner. */
static pln_status plan_results(pln_device_plan *plan, pln_planned_function *f,
                               pln_ref owner) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[owner];
  for (pln_scope s = n->data; pln_owns(n) && s != PLN_NONE;
       s = g->scopes[s].next) {
    pln_ref result = g->scopes[s].result;
    PLN_TRY(unify(plan, f, result, f->use[result], owner, f->use[owner]));
  }
  return PLN_OK;
}

static pln_status plan_match(pln_device_plan *plan, pln_planned_function *f,
                             pln_ref match) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[match];
  pln_ref data = pln_operand(g, match, 0);
  PLN_TRY(collapse(plan, f, data, f->use[data], match, f->use[match]));
  for (pln_scope s = n->data; pln_owns(n) && s != PLN_NONE;
       s = g->scopes[s].next)
    for (pln_ref ref = g->scopes[s].begin; g->nodes[ref].kind != PLN_CLAUSE;
         ref++)
      if (g->nodes[ref].kind == PLN_PATTERN_VAR) {
        pln_ref var = pln_operand(g, ref, 0);
        PLN_TRY(collapse(plan, f, var, f->use[var], data, f->use[data]));
      }
  return plan_results(plan, f, match);
}

static pln_status plan_projection(pln_device_plan *plan,
                                  pln_planned_function *f, pln_ref node) {
  pln_ref tuple = pln_operand(f->graph, node, 0);
  pln_device noted = f->noted[tuple];
  if (noted != PLN_NO_DEVICE) {
    f->noted[node] = noted;
    PLN_TRY(on_the(plan, f, node, noted, &f->value[node]));
  }
  return collapse(plan, f, tuple, f->use[tuple], node, f->value[node]);
}

static pln_status plan_let(pln_device_plan *plan, pln_planned_function *f,
                           pln_ref let) {
  pln_ref var = pln_operand(f->graph, let, 0);
  pln_ref value = pln_operand(f->graph, let, 1);
  pln_domain bound;
  PLN_TRY(bound_domain(plan, f, value, &bound));
  return unify(plan, f, value, bound, var, f->use[var]);
}

/* The operands of a PrimFunc, one field each. */
static pln_status plan_arguments(pln_device_plan *plan, pln_planned_function *f,
                                 pln_ref tuple) {
  for (uint32_t i = 0; i < f->graph->nodes[tuple].count; i++) {
    pln_ref field = pln_operand(f->graph, tuple, i);
    PLN_TRY(collapse(plan, f, field, f->use[field], tuple,
                     pln_domain_part(&plan->domains, f->use[tuple], i)));
  }
  return PLN_OK;
}

/* All operands are with the node: of tuples and references. */
static pln_status plan_parts(pln_device_plan *plan, pln_planned_function *f,
                             pln_ref node) {
  const pln_node *n = &f->graph->nodes[node];
  if (f->flags[node] & PLN_DEVICE_LOWERED)
    return plan_arguments(plan, f, node);
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref part = pln_operand(f->graph, node, i);
    PLN_TRY(collapse(plan, f, part, f->use[part], node, f->use[node]));
  }
  return PLN_OK;
}

static pln_status plan_node(pln_device_plan *plan, pln_planned_function *f,
                            pln_ref node) {
  const pln_node *n = &f->graph->nodes[node];
  switch ((pln_kind)n->kind) {
  case PLN_CALL: return plan_call(plan, f, node);
  case PLN_FUNCTION: return plan_function(plan, f, node);
  case PLN_LET: return plan_let(plan, f, node);
  case PLN_LET_BLOCK: return plan_results(plan, f, node);
  case PLN_IF:
    PLN_TRY(plan_parts(plan, f, node));
    return plan_results(plan, f, node);
  case PLN_MATCH: return plan_match(plan, f, node);
  case PLN_TUPLE_GET_ITEM: return plan_projection(plan, f, node);
  case PLN_TUPLE:
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return plan_parts(plan, f, node);
  default: return PLN_OK;
  }
}

/* ------------------------------------------------------------- one function */

static void mark_operands(pln_planned_function *f) {
  const pln_graph *g = f->graph;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0;
         g->nodes[ref].kind != PLN_LET && i < g->nodes[ref].count; i++)
      f->flags[pln_operand(g, ref, i)] |= PLN_DEVICE_OPERAND;
  for (pln_scope s = 0; s < g->n_scopes; s++) {
    pln_ref owner = g->scopes[s].owner;
    if (owner != PLN_NONE &&
        (g->nodes[owner].kind != PLN_FUNCTION || f->scopes[s] & PLN_SCOPE_LETS))
      f->flags[g->scopes[s].result] |= PLN_DEVICE_OPERAND;
  }
}

static pln_domain *global_of(pln_device_plan *plan, const pln_node *n) {
  uint32_t i = n->kind == PLN_GLOBAL_VAR
                   ? pln_module_find(plan->module, n->data)
                   : PLN_NONE;
  return i != PLN_NONE ? &plan->globals[i] : NULL;
}

/* The function's index if the node is the name of a PrimFunc; else PLN_NONE. */
static uint32_t lowered_function(const pln_device_plan *plan,
                                 const pln_node *n) {
  uint32_t i = n->kind == PLN_GLOBAL_VAR
                   ? pln_module_find(plan->module, n->data)
                   : PLN_NONE;
  const pln_graph *g =
      i == PLN_NONE ? NULL : pln_module_function_at(plan->module, i);
  return g && g->nodes[g->root].kind == PLN_PRIM_FUNC ? i : PLN_NONE;
}

/* Counts users; the tuple of operands that only one call of a PrimFunc uses is
 * planned with it. */
static pln_status share_lowered(pln_device_plan *plan,
                                pln_planned_function *f) {
  const pln_graph *g = f->graph;
  size_t size = g->n_nodes * sizeof(uint32_t);
  uint32_t *uses = pln_mem_zeroed(plan->engine, size);
  if (!uses)
    return pln_nomem(plan->engine);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      uses[pln_operand(g, ref, i)]++;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      uses[g->scopes[s].result]++;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (!is_lowered_call(g, n))
      continue;
    pln_ref tuple = pln_operand(g, ref, 1);
    pln_domain function = f->use[pln_operand(g, ref, 0)];
    if (uses[tuple] > 1 || g->nodes[tuple].kind != PLN_TUPLE ||
        !pln_domain_part(&plan->domains, function, g->nodes[tuple].count))
      continue;
    f->flags[tuple] |= PLN_DEVICE_LOWERED;
    f->use[tuple] = f->value[tuple] = function;
  }
  pln_mem_free(plan->engine, uses, size);
  return PLN_OK;
}

/* Domains that nothing is known of; the names of a function share one. */
static pln_status open_domains(pln_device_plan *plan, pln_planned_function *f,
                               const pln_scope *scope_of) {
  const pln_graph *g = f->graph;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    pln_domain *global = global_of(plan, n);
    uint32_t lowered = lowered_function(plan, n);
    f->noted[ref] = PLN_NO_DEVICE;
    if (!is_value(n) || f->scopes[scope_of[ref]] & PLN_SCOPE_PRIMITIVE)
      continue;
    if (lowered != PLN_NONE)
      PLN_TRY(pln_plan_lowered(plan, lowered, n->type));
    if (global && *global)
      f->value[ref] = *global;
    else
      PLN_TRY(pln_domain_new(&plan->domains, n->type, 0, &f->value[ref]));
    f->use[ref] = f->value[ref];
  }
  return PLN_OK;
}

static pln_status plan_nodes(pln_device_plan *plan, pln_planned_function *f,
                             uint32_t index, const pln_scope *scope_of) {
  const pln_graph *g = f->graph;
  conflict_search search = {plan, f};
  const pln_visitor visitor = {.ud = &search, .enter = search_node};
  pln_let_primitive_scopes(g, f->scopes);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_LET)
      f->scopes[scope_of[ref]] |= PLN_SCOPE_LETS;
  PLN_TRY(open_domains(plan, f, scope_of));
  PLN_TRY(share_lowered(plan, f));
  mark_operands(f);
  PLN_TRY(pln_walk(g, g->root, &visitor));
  PLN_TRY(
      unify(plan, f, g->root, f->use[g->root], g->root, plan->globals[index]));
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (!(f->scopes[scope_of[ref]] & PLN_SCOPE_PRIMITIVE))
      PLN_TRY(plan_node(plan, f, ref));
  return PLN_OK;
}

static pln_status plan_one(pln_device_plan *plan, uint32_t index) {
  pln_planned_function *f = &plan->functions[index];
  const pln_graph *g = pln_module_function_at(plan->module, index);
  size_t n = g->n_nodes, row = n * sizeof(uint32_t);
  if (!pln_pass_applies(g))
    return PLN_OK;
  f->graph = g;
  f->name = pln_module_name_at(plan->module, index);
  f->value = pln_mem_zeroed(plan->engine, row);
  f->use = pln_mem_zeroed(plan->engine, row);
  f->noted = pln_mem_zeroed(plan->engine, row);
  f->placed = pln_mem_zeroed(plan->engine, row);
  f->around = pln_mem_zeroed(plan->engine, row);
  f->flags = pln_mem_zeroed(plan->engine, n);
  f->scopes = pln_mem_zeroed(plan->engine, g->n_scopes);
  pln_scope *scope_of = pln_mem_new(plan->engine, row);
  pln_status status = PLN_OK;
  if (!f->value || !f->use || !f->noted || !f->placed || !f->around ||
      !f->flags || !f->scopes || !scope_of)
    status = pln_nomem(plan->engine);
  if (status == PLN_OK) {
    pln_graph_node_scopes(g, scope_of);
    status = plan_nodes(plan, f, index, scope_of);
  }
  pln_mem_free(plan->engine, scope_of, row);
  return status;
}

static void free_function(pln_engine *e, pln_planned_function *f) {
  if (!f->graph)
    return;
  size_t n = f->graph->n_nodes, row = n * sizeof(uint32_t);
  pln_mem_free(e, f->value, row);
  pln_mem_free(e, f->use, row);
  pln_mem_free(e, f->noted, row);
  pln_mem_free(e, f->placed, row);
  pln_mem_free(e, f->around, row);
  pln_mem_free(e, f->flags, n);
  pln_mem_free(e, f->scopes, f->graph->n_scopes);
}

/* ------------------------------------------------------------- what is open */

/* Annotations that constrain neither side allow a copy, but avoid it. */
static pln_status settle_free(pln_device_plan *plan, pln_planned_function *f) {
  const pln_graph *g = f->graph;
  pln_on_device on;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (!is_op(&g->nodes[ref], PLN_OP_ON_DEVICE) || !f->use[ref])
      continue;
    PLN_TRY(pln_read_on_device(plan, &g->nodes[ref], &on));
    if (!on.body && !on.result)
      PLN_TRY(pln_domain_try_unify(&plan->domains, f->use[ref],
                                   f->use[pln_operand(g, ref, 0)]));
  }
  return PLN_OK;
}

static pln_status default_call(pln_device_plan *plan, pln_planned_function *f,
                               pln_ref call) {
  const pln_node *n = &f->graph->nodes[call];
  pln_domains *d = &plan->domains;
  bool function = pln_has_callee(n) && f->use[pln_operand(f->graph, call, 0)];
  PLN_TRY(
      pln_domain_default_result(d, f->use[call], plan->compilation.primitive));
  if (function)
    return pln_domain_default_result(d, f->use[pln_operand(f->graph, call, 0)],
                                     plan->compilation.primitive);
  pln_device device = pln_domain_device(d, f->use[call]);
  for (uint32_t i = 0; i < n->count; i++)
    if (f->use[pln_operand(f->graph, call, i)])
      PLN_TRY(pln_domain_default(d, f->use[pln_operand(f->graph, call, i)],
                                 device));
  return PLN_OK;
}

/* A let's variable is where the block is. */
static pln_status default_let(pln_device_plan *plan, pln_planned_function *f,
                              pln_ref let) {
  const pln_graph *g = f->graph;
  pln_ref result = g->scopes[pln_graph_scope_of(g, let)].result;
  pln_device device = pln_domain_device(&plan->domains, f->use[result]);
  return pln_domain_default(&plan->domains, f->use[pln_operand(g, let, 0)],
                            device ? device : plan->compilation.primitive);
}

static pln_status default_node(void *ud, const pln_graph *g, pln_ref node,
                               bool *skip) {
  conflict_search *s = ud;
  const pln_node *n = &g->nodes[node];
  *skip = is_marked_primitive(g, n);
  if (*skip || !s->f->use[n->kind == PLN_LET ? pln_operand(g, node, 0) : node])
    return PLN_OK;
  if (n->kind == PLN_FUNCTION)
    return pln_domain_default_result(&s->plan->domains, s->f->use[node],
                                     s->plan->compilation.primitive);
  if (n->kind == PLN_CALL)
    return default_call(s->plan, s->f, node);
  return n->kind == PLN_LET ? default_let(s->plan, s->f, node) : PLN_OK;
}

static pln_status settle(pln_device_plan *plan) {
  for (uint32_t i = 0; i < plan->n; i++)
    if (plan->functions[i].graph)
      PLN_TRY(settle_free(plan, &plan->functions[i]));
  for (uint32_t i = 0; i < plan->n; i++) {
    pln_planned_function *f = &plan->functions[i];
    conflict_search search = {plan, f};
    const pln_visitor visitor = {.ud = &search, .enter = default_node};
    if (f->graph)
      PLN_TRY(pln_walk(f->graph, f->graph->root, &visitor));
  }
  return PLN_OK;
}

pln_device pln_plan_device(const pln_device_plan *plan, pln_domain domain) {
  pln_device device = domain ? pln_domain_device(&plan->domains, domain) : 0;
  return device ? device : plan->compilation.primitive;
}

pln_domain pln_plan_operand(pln_device_plan *plan, pln_planned_function *f,
                            pln_ref call, uint32_t index) {
  const pln_node *n = &f->graph->nodes[call];
  pln_ref operand = pln_operand(f->graph, call, index);
  pln_ref callee = pln_operand(f->graph, call, 0);
  if (pln_has_callee(n) && f->use[callee])
    return pln_domain_part(&plan->domains, f->use[callee], index - 1);
  if (takes_any(n->data, index) || takes_host(n->data, index))
    return f->use[operand];
  return f->use[call];
}

/* ------------------------------------------------------------------ the pass
 */

/* *out: NULL if the PrimFunc stays as it is. */
static pln_status capture_lowered(pln_device_plan *plan, uint32_t index,
                                  pln_graph **out) {
  PLN_TRY(pln_capture_scopes(plan, index, out));
  if (*out == pln_module_function_at(plan->module, index)) {
    pln_graph_release(*out);
    *out = NULL;
  }
  return PLN_OK;
}

static pln_status capture_all(pln_device_plan *plan, pln_graph **results,
                              bool *changed) {
  for (uint32_t i = 0; i < plan->n; i++) {
    const pln_graph *old = plan->functions[i].graph;
    bool equal = false;
    if (plan->lowered_types[i]) {
      PLN_TRY(capture_lowered(plan, i, &results[i]));
      *changed |= results[i] != NULL;
    }
    if (!old)
      continue;
    PLN_TRY(pln_capture_devices(plan, &plan->functions[i], &results[i]));
    PLN_TRY(pln_graph_equal(old, old->root, results[i], results[i]->root, false,
                            &equal));
    if (equal) {
      pln_graph_release(results[i]);
      results[i] = NULL;
    }
    *changed |= results[i] != NULL;
  }
  return PLN_OK;
}

static pln_status capture_module(pln_pass_run *run, pln_device_plan *plan) {
  size_t size = ((size_t)plan->n + 1) * sizeof(pln_graph *);
  pln_graph **results = pln_mem_zeroed(plan->engine, size);
  pln_module *out;
  bool changed = false;
  if (!results)
    return pln_nomem(plan->engine);
  pln_status status = capture_all(plan, results, &changed);
  if (status == PLN_OK && changed)
    status = pln_module_replace(plan->module, results, &out);
  if (status == PLN_OK && changed)
    pln_run_set_module(run, out);
  for (uint32_t i = 0; i < plan->n; i++)
    pln_graph_release(results[i]);
  pln_mem_free(plan->engine, results, size);
  return status;
}

static pln_status make_plan(pln_device_plan *plan) {
  const pln_module *m = plan->module;
  PLN_TRY(pln_domains_begin(&plan->domains, &plan->compilation));
  plan->functions =
      pln_mem_zeroed(plan->engine, (plan->n + 1) * sizeof *plan->functions);
  plan->globals =
      pln_mem_zeroed(plan->engine, (plan->n + 1) * sizeof *plan->globals);
  plan->lowered_types =
      pln_mem_zeroed(plan->engine, (plan->n + 1) * sizeof(pln_type));
  if (!plan->functions || !plan->globals || !plan->lowered_types)
    return pln_nomem(plan->engine);
  for (uint32_t i = 0; i < plan->n; i++) {
    const pln_graph *g = pln_module_function_at(m, i);
    if (g->nodes[g->root].kind == PLN_PRIM_FUNC)
      continue;
    PLN_TRY(pln_domain_new(&plan->domains, g->nodes[g->root].type, 0,
                           &plan->globals[i]));
  }
  for (uint32_t i = 0; i < plan->n; i++)
    PLN_TRY(plan_one(plan, i));
  return settle(plan);
}

static void free_plan(pln_device_plan *plan) {
  for (uint32_t i = 0; plan->functions && i < plan->n; i++)
    free_function(plan->engine, &plan->functions[i]);
  pln_mem_free(plan->engine, plan->functions,
               (plan->n + 1) * sizeof *plan->functions);
  pln_mem_free(plan->engine, plan->globals,
               (plan->n + 1) * sizeof *plan->globals);
  pln_mem_free(plan->engine, plan->lowered_types,
               (plan->n + 1) * sizeof(pln_type));
  if (plan->domains.compilation)
    pln_domains_free(&plan->domains);
  pln_compilation_free(&plan->compilation);
}

pln_status pln_pass_plan_devices(pln_pass_run *run) {
  pln_module *typed;
  PLN_TRY(pln_module_infer(pln_run_module(run), &typed));
  pln_device_plan plan = {.engine = pln_run_engine(run),
                          .module = typed,
                          .n = pln_module_count(typed)};
  pln_status status = pln_compilation_begin(&plan.compilation, run);
  if (status == PLN_OK)
    status = make_plan(&plan);
  if (status == PLN_OK)
    status = capture_module(run, &plan);
  free_plan(&plan);
  pln_module_release(typed);
  return status;
}
