/* capture_devices.c: writes the devices of a function's values into it.
 *
 * Called by plan_devices.c, once per function. One sweep: annotations go, and
 * copies from a device to itself; a value is copied where its user wants it
 * elsewhere; an annotation of both sides says the device of a let's value and
 * of an operand that is elsewhere than its call. Functions get the devices of
 * their parameters and result as attributes. Invariant: running the pass on its
 * result gives an equal function.
 *
 * Semantics: TVM's DeviceCapturer. */

#include "op/op.h"
#include "transform/device/device_plan.h"
#include "transform/relay_builder.h"

typedef struct device_capture {
  pln_device_plan *plan;
  pln_planned_function *f;
  pln_rewrite *rw;
  pln_relay_builder r;
  pln_buffer text[2]; /* of attributes that are devices */
  uint32_t cap_operands;
  pln_ref *operands;
  pln_ref *wrapped; /* by node, an If or Match: its operand as it wants it */
  pln_ref *plain;   /* by node, also a Let: the image of that operand */
} device_capture;

/* True for nodes whose devices are planned. */
static bool is_planned(const device_capture *c, pln_ref node) {
  return c->f->use[node] != 0;
}

static pln_device device_of(const device_capture *c, pln_ref node) {
  return pln_plan_device(c->plan, c->f->value[node]);
}

static pln_device wanted_of(const device_capture *c, pln_ref node) {
  return pln_plan_device(c->plan, c->f->use[node]);
}

/* -------------------------------------------------------- copies, annotations
 */

static pln_relay_attr device_attr(device_capture *c, const char *name,
                                  pln_device device, int slot) {
  pln_relay_attr attr = {.name = name};
  if (c->r.status == PLN_OK)
    c->r.status = pln_device_write(&c->plan->compilation, device,
                                   &c->text[slot], &attr.value);
  return attr;
}

/* Values whose binding says the device, and functions, are not annotated. */
static bool needs_annotation(const device_capture *c, pln_ref node) {
  switch ((pln_kind)c->r.b->graph->nodes[node].kind) {
  case PLN_VAR:
  case PLN_GLOBAL_VAR:
  case PLN_FUNCTION:
  case PLN_CONSTRUCTOR:
  case PLN_OP:
  case PLN_ABSENT: return false;
  default: return true;
  }
}

static pln_ref annotate(device_capture *c, pln_ref node, pln_device device) {
  if (c->r.status != PLN_OK || !needs_annotation(c, node))
    return node;
  pln_relay_attr attrs[] = {device_attr(c, "virtual_device", device, 0),
                            pln_relay_int("constrain_result", 1)};
  return pln_relay_call_with(&c->r, PLN_OP_ON_DEVICE, 2, attrs, 1, &node);
}

static pln_ref copy(device_capture *c, pln_ref node, pln_device from,
                    pln_device to) {
  pln_ref annotated = annotate(c, node, from);
  pln_relay_attr attrs[] = {device_attr(c, "src_virtual_device", from, 0),
                            device_attr(c, "dst_virtual_device", to, 1)};
  return pln_relay_call_with(&c->r, PLN_OP_DEVICE_COPY, 2, attrs, 1,
                             &annotated);
}

/* The image of `node` on the device `wanted`; with an annotation if that is not
 * `around`, which the reader of the program assumes. */
static pln_ref reconcile(device_capture *c, pln_ref node, pln_device wanted,
                         pln_device around) {
  pln_ref image = pln_rewrite_image(c->rw, node);
  if (!is_planned(c, node))
    return image;
  pln_device from = device_of(c, node);
  if (from != wanted)
    image = copy(c, image, from, wanted);
  return wanted != around ? annotate(c, image, wanted) : image;
}

static pln_status begin(device_capture *c, pln_rewrite *rw) {
  c->rw = rw;
  return pln_relay_begin(&c->r, rw);
}

/* --------------------------------------------------------------- each kind */

/* True if reconcile would leave the operand as it is. */
static bool fits(const device_capture *c, pln_ref node, pln_device wanted,
                 pln_device around) {
  return !is_planned(c, node) ||
         (device_of(c, node) == wanted && wanted == around);
}

static pln_device operand_device(const device_capture *c, pln_ref node,
                                 uint32_t index) {
  const pln_node *n = &c->f->graph->nodes[node];
  if (c->f->flags[node] & PLN_DEVICE_LOWERED)
    return pln_plan_device(
        c->plan, pln_domain_part(&c->plan->domains, c->f->use[node], index));
  bool argument = n->kind == PLN_CALL && (index > 0 || !pln_has_callee(n));
  return argument ? pln_plan_device(
                        c->plan, pln_plan_operand(c->plan, c->f, node, index))
                  : wanted_of(c, node);
}

/* Where a node without scopes is: a projection, beside its tuple. */
static pln_device place_of(const device_capture *c, pln_ref node) {
  return c->f->graph->nodes[node].kind == PLN_TUPLE_GET_ITEM
             ? device_of(c, node)
             : wanted_of(c, node);
}

static pln_device operand_place(const device_capture *c, pln_ref node,
                                uint32_t i) {
  return c->f->graph->nodes[node].kind == PLN_CALL ||
                 c->f->flags[node] & PLN_DEVICE_LOWERED
             ? operand_device(c, node, i)
             : place_of(c, node);
}

static bool all_fit(const device_capture *c, pln_ref node) {
  const pln_node *n = &c->f->graph->nodes[node];
  for (uint32_t i = 0; i < n->count; i++)
    if (!fits(c, pln_operand(c->f->graph, node, i), operand_place(c, node, i),
              place_of(c, node)))
      return false;
  return true;
}

/* A call, tuple, projection or reference with operands where it wants them. */
static pln_status rebuild_node(device_capture *c, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  const pln_graph *g = c->f->graph;
  pln_node n = g->nodes[old];
  if (all_fit(c, old))
    return PLN_OK;
  PLN_TRY(begin(c, rw));
  PLN_TRY(pln_mem_grow(c->plan->engine, (void **)&c->operands, &c->cap_operands,
                       n.count, sizeof *c->operands));
  for (uint32_t i = 0; i < n.count; i++)
    c->operands[i] = reconcile(c, pln_operand(g, old, i),
                               operand_place(c, old, i), place_of(c, old));
  PLN_TRY(pln_relay_status(&c->r));
  n.flags = 0;
  return pln_builder_add(c->r.b, &n, n.count, c->operands, node);
}

/* An annotation or copy becomes what is in it, or a copy of that. */
static pln_status replace_mark(device_capture *c, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  pln_ref body = pln_operand(c->f->graph, old, 0);
  pln_device from = device_of(c, body), to = device_of(c, old);
  PLN_TRY(begin(c, rw));
  *node = pln_rewrite_image(rw, body);
  if (is_planned(c, body) && from != to)
    *node = copy(c, *node, from, to);
  return pln_relay_status(&c->r);
}

/* The operand of an owner of scopes, or the value of a let, is exchanged while
 * the node is copied. */
static pln_status exchange(device_capture *c, pln_rewrite *rw, pln_ref node,
                           pln_ref operand, pln_ref wrapped) {
  c->plain[node] = pln_rewrite_image(rw, operand);
  pln_rewrite_bind(rw, operand, wrapped);
  return PLN_OK;
}

static pln_status wrap_let(device_capture *c, pln_rewrite *rw, pln_ref let) {
  pln_ref value = pln_operand(c->f->graph, let, 1);
  if (!is_planned(c, value))
    return PLN_OK;
  PLN_TRY(begin(c, rw));
  pln_ref wrapped = reconcile(
      c, value, wanted_of(c, pln_operand(c->f->graph, let, 0)), PLN_NO_DEVICE);
  PLN_TRY(pln_relay_status(&c->r));
  return exchange(c, rw, let, value, wrapped);
}

static pln_status replace_node(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  device_capture *c = ud;
  const pln_node *n = &c->f->graph->nodes[old];
  if (n->kind == PLN_LET)
    return wrap_let(c, rw, old);
  if (!is_planned(c, old))
    return PLN_OK;
  if (n->kind == PLN_CALL && n->count == 1 &&
      (n->data == PLN_OP_ON_DEVICE || n->data == PLN_OP_DEVICE_COPY))
    return replace_mark(c, rw, old, node);
  switch ((pln_kind)n->kind) {
  case PLN_CALL:
  case PLN_TUPLE:
  case PLN_TUPLE_GET_ITEM:
  case PLN_REF_CREATE:
  case PLN_REF_READ:
  case PLN_REF_WRITE: return rebuild_node(c, rw, old, node);
  default: return PLN_OK;
  }
}

/* ---------------------------------------------------------------- functions */

static pln_status param_devices(device_capture *c, pln_ref function,
                                pln_attr *out) {
  pln_domains *d = &c->plan->domains;
  const pln_node *n = &c->f->graph->nodes[function];
  uint32_t k = c->f->graph->scopes[n->data].n_params;
  size_t size = ((size_t)k + 1) * sizeof(pln_attr);
  pln_engine *e = c->plan->engine;
  pln_attr *items = pln_mem_zeroed(e, size);
  pln_buffer *texts = pln_mem_zeroed(e, ((size_t)k + 1) * sizeof *texts);
  pln_status status = items && texts ? PLN_OK : pln_nomem(e);
  for (uint32_t i = 0; i < k && status == PLN_OK; i++) {
    pln_domain part = pln_domain_part(d, c->f->use[function], i);
    pln_buffer_init(&texts[i], e);
    status =
        pln_device_write(&c->plan->compilation, pln_plan_device(c->plan, part),
                         &texts[i], &items[i]);
  }
  *out = (pln_attr){.kind = PLN_ATTR_LIST};
  if (status == PLN_OK)
    status = pln_attrs_list(e, k, items, &out->v.dict);
  for (uint32_t i = 0; texts && i < k; i++)
    if (texts[i].engine)
      pln_buffer_free(&texts[i]);
  pln_mem_free(e, items, size);
  pln_mem_free(e, texts, ((size_t)k + 1) * sizeof *texts);
  return status;
}

static pln_status function_attrs(device_capture *c, pln_ref function,
                                 pln_attrs *out) {
  pln_engine *e = c->plan->engine;
  const pln_node *n = &c->f->graph->nodes[function];
  pln_attr params, result;
  *out = n->attrs;
  if (c->f->graph->scopes[n->data].n_params > 0) {
    PLN_TRY(param_devices(c, function, &params));
    PLN_TRY(
        pln_symbol_intern(e, pln_text("param_virtual_devices"), &params.name));
    PLN_TRY(pln_attrs_with(e, *out, &params, out));
  }
  PLN_TRY(pln_device_write(&c->plan->compilation,
                           pln_plan_device(c->plan, c->f->use[function]),
                           &c->text[0], &result));
  PLN_TRY(pln_symbol_intern(e, pln_text("virtual_device"), &result.name));
  return pln_attrs_with(e, *out, &result, out);
}

static bool is_device_function(const device_capture *c, pln_ref node) {
  const pln_node *n = &c->f->graph->nodes[node];
  return n->kind == PLN_FUNCTION && is_planned(c, node) &&
         !pln_attrs_int(c->plan->engine, n->attrs, "Primitive", 0);
}

static pln_status visit_node(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  device_capture *c = ud;
  const pln_node *n = &c->f->graph->nodes[old];
  pln_attrs attrs;
  if (c->plain[old] != PLN_NONE)
    pln_rewrite_bind(rw,
                     pln_operand(c->f->graph, old, n->kind == PLN_LET ? 1 : 0),
                     c->plain[old]);
  if (!is_device_function(c, old))
    return PLN_OK;
  PLN_TRY(function_attrs(c, old, &attrs));
  if (attrs == n->attrs)
    return PLN_OK;
  PLN_TRY(begin(c, rw));
  c->r.b->graph->nodes[*node].attrs = attrs;
  pln_type_digest_record(c->r.b->graph, *node);
  return PLN_OK;
}

/* ------------------------------------------------------------------- scopes */

/* The condition or data of an owner is made before its scopes. */
static pln_status enter_scope(void *ud, pln_rewrite *rw, pln_scope s,
                              pln_scope_action *action) {
  device_capture *c = ud;
  const pln_graph *g = c->f->graph;
  pln_ref owner = g->scopes[s].owner;
  (void)action;
  if (owner == PLN_NONE || g->nodes[owner].data != s ||
      g->nodes[owner].count == 0 || !is_planned(c, owner))
    return PLN_OK;
  pln_ref operand = pln_operand(g, owner, 0);
  pln_device wanted = wanted_of(c, owner);
  if (fits(c, operand, wanted, wanted))
    return PLN_OK;
  PLN_TRY(begin(c, rw));
  c->wrapped[owner] = reconcile(c, operand, wanted, wanted);
  return pln_relay_status(&c->r);
}

static pln_status leave_scope(void *ud, pln_rewrite *rw, pln_scope s,
                              pln_ref *result) {
  device_capture *c = ud;
  const pln_graph *g = c->f->graph;
  pln_ref owner = g->scopes[s].owner, old = g->scopes[s].result;
  if (owner == PLN_NONE || !is_planned(c, owner))
    return PLN_OK;
  pln_device wanted = wanted_of(c, owner);
  if (!fits(c, old, wanted, wanted)) {
    PLN_TRY(begin(c, rw));
    *result = reconcile(c, old, wanted, wanted);
    PLN_TRY(pln_relay_status(&c->r));
  }
  return g->scopes[s].next == PLN_NONE && c->wrapped[owner] != PLN_NONE
             ? exchange(c, rw, owner, pln_operand(g, owner, 0),
                        c->wrapped[owner])
             : PLN_OK;
}

pln_status pln_capture_devices(pln_device_plan *plan, pln_planned_function *f,
                               pln_graph **out) {
  device_capture c = {.plan = plan, .f = f};
  pln_engine *e = plan->engine;
  size_t row = f->graph->n_nodes * sizeof(pln_ref);
  pln_mutator m = {.ud = &c,
                   .replace = replace_node,
                   .visit = visit_node,
                   .enter = enter_scope,
                   .leave = leave_scope};
  pln_buffer_init(&c.text[0], e);
  pln_buffer_init(&c.text[1], e);
  c.wrapped = pln_mem_new(e, row);
  c.plain = pln_mem_new(e, row);
  pln_status status = c.wrapped && c.plain ? PLN_OK : pln_nomem(e);
  if (status == PLN_OK) {
    memset(c.wrapped, 0xff, row);
    memset(c.plain, 0xff, row);
    status = pln_graph_rewrite(f->graph, &m, out);
  }
  pln_mem_free(e, c.wrapped, row);
  pln_mem_free(e, c.plain, row);
  pln_mem_free(e, c.operands, c.cap_operands * sizeof *c.operands);
  pln_buffer_free(&c.text[0]);
  pln_buffer_free(&c.text[1]);
  return status;
}
