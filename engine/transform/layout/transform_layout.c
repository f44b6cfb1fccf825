/* transform_layout.c: one sweep that carries layouts from operator to operator.
 *
 * Called by ConvertLayout and AlterOpLayout. Requires a verified graph. For
 * each value whose layout is known, the sweep keeps the node that computes it
 * in its new layout. An operator takes it as it is if it can, else behind a
 * layout_transform; whatever else uses the value gets it in its old layout.
 *
 *     nn.relu(nn.conv2d(%x, %w))   =>
 *       %0 = layout_transform(%x, src_layout="NHWC", dst_layout="NCHW")
 *       %1 = layout_transform(%w, src_layout="HWIO", dst_layout="OIHW")
 *       %2 = nn.relu(nn.conv2d(%0, %1))
 *       layout_transform(%2, src_layout="NCHW", dst_layout="NHWC")
 *
 * A conversion that would lose or add elements is not made: the call stays.
 *
 * Semantics: TVM's LayoutRewriter, TransformMemorizer. */

#include "transform/layout/transform_layout.h"

#include "ir/rewrite/rewrite.h"
#include "transform/layout/layout_conversion.h"

/* A value with a known layout. */
typedef struct layout_state {
  pln_ref value; /* in the new graph, in layout `now`; PLN_NONE: a result that
                  * nobody took yet */
  pln_tensor_layout old, now;
} layout_state;

typedef struct layout_sweep {
  pln_engine *engine;
  const pln_graph *old;
  const pln_layout_alteration *alteration;
  pln_layout_conversions conversions;
  /* Per node of the old graph: its state + 1, or that of its first result. */
  uint32_t *state_of;
  uint8_t *whole; /* per node: used otherwise than by TupleGetItem */
  pln_ref *field; /* per TupleGetItem: the node that it projects, or PLN_NONE */
  layout_state *states;
  uint32_t n_states, cap_states;
  uint32_t *block; /* of `operands` */
  uint32_t cap_block;
} layout_sweep;

/* The operands of a call, with the fields of tuples one by one. A producer's
 * layouts are those that the operand has; the consumer's are those that the
 * call takes it in. */
typedef struct operands {
  uint32_t n, n_results;
  pln_ref *values;
  pln_type *types;
  pln_tensor_layout *old_producer, *now_producer;
  pln_tensor_layout *old_consumer, *now_consumer;
  pln_tensor_layout *old_in, *now_in; /* the producer's, or else consumer's */
  pln_tensor_layout *old_out, *now_out;
} operands;

/* ------------------------------------------------------------------ states */

/* The value of a state in its old layout. */
static pln_status realize(layout_sweep *s, pln_rewrite *rw,
                          const layout_state *state, pln_ref *out) {
  *out = state->value;
  return pln_layout_convert(&s->conversions, rw, state->now, state->old, out);
}

/* ---------------------------------------------------------------- operands */

/* Where the states of an argument's tensors are: those of a tuple's fields, of
 * a call's results, or its own. */
static uint32_t count_tensors(const layout_sweep *s, pln_ref arg) {
  const pln_node *n = &s->old->nodes[arg];
  if (n->kind == PLN_TUPLE)
    return n->count;
  bool results = n->kind == PLN_CALL && s->state_of[arg] &&
                 pln_type_get_kind(s->engine, n->type) == PLN_TYPE_TUPLE;
  return results ? pln_type_n_parts(s->engine, n->type) : 1;
}

static pln_status size_operands(layout_sweep *s, const pln_node *call,
                                operands *o) {
  *o = (operands){.n_results = call->results ? call->results : 1};
  for (uint32_t i = 0; i < call->count; i++)
    o->n += count_tensors(s, s->old->operands[call->first + i]);
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->block, &s->cap_block,
                       8 * (size_t)o->n + 2 * (size_t)o->n_results,
                       sizeof *s->block));
  uint32_t **lists[] = {&o->values,       &o->types,        &o->old_producer,
                        &o->now_producer, &o->old_consumer, &o->now_consumer,
                        &o->old_in,       &o->now_in};
  for (size_t i = 0; i < PLN_COUNT(lists); i++)
    *lists[i] = s->block + i * o->n;
  o->old_out = s->block + PLN_COUNT(lists) * (size_t)o->n;
  o->now_out = o->old_out + o->n_results;
  return PLN_OK;
}

static void add_operand(const layout_sweep *s, const pln_rewrite *rw,
                        pln_ref old, uint32_t i, operands *o) {
  uint32_t state = s->state_of[old];
  bool plain =
      pln_type_get_kind(s->engine, s->old->nodes[old].type) != PLN_TYPE_TUPLE;
  o->types[i] = s->old->nodes[old].type;
  o->values[i] = pln_rewrite_image(rw, old);
  o->old_producer[i] = o->now_producer[i] = PLN_LAYOUT_UNDEFINED;
  if (!state || !plain)
    return;
  o->values[i] = s->states[state - 1].value;
  o->old_producer[i] = s->states[state - 1].old;
  o->now_producer[i] = s->states[state - 1].now;
}

/* The results of a call that is an argument as a whole; its image is a tuple
 * of them. */
static void add_results(const layout_sweep *s, pln_ref old, uint32_t first,
                        uint32_t n, operands *o) {
  const layout_state *states = &s->states[s->state_of[old] - 1];
  for (uint32_t k = 0; k < n; k++) {
    o->types[first + k] =
        pln_type_part_at(s->engine, s->old->nodes[old].type, k);
    o->values[first + k] = states[k].value;
    o->old_producer[first + k] = states[k].old;
    o->now_producer[first + k] = states[k].now;
  }
}

static void read_operands(const layout_sweep *s, const pln_rewrite *rw,
                          const pln_node *call, operands *o) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < call->count; i++) {
    pln_ref arg = s->old->operands[call->first + i];
    const pln_node *n = &s->old->nodes[arg];
    uint32_t count = count_tensors(s, arg);
    for (uint32_t k = 0; k < count && n->kind == PLN_TUPLE; k++)
      add_operand(s, rw, s->old->operands[n->first + k], at + k, o);
    if (n->kind != PLN_TUPLE && count == 1)
      add_operand(s, rw, arg, at, o);
    else if (n->kind != PLN_TUPLE)
      add_results(s, arg, at, count, o);
    at += count;
  }
}

/* The arguments before conversion, in the layouts that they have now. */
static void plain_arguments(const layout_sweep *s, pln_rewrite *rw,
                            const pln_node *call, const operands *o,
                            pln_ref *args) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < call->count; i++) {
    pln_ref arg = s->old->operands[call->first + i];
    uint32_t count = count_tensors(s, arg);
    bool tuple = s->old->nodes[arg].kind == PLN_TUPLE || count > 1;
    args[i] = tuple ? pln_rewrite_image(rw, arg) : o->values[at];
    at += count;
  }
}

/* --------------------------------------------------------------- inference */

static pln_layout_call question(layout_sweep *s, const operands *o, pln_op op,
                                pln_attrs attrs) {
  return (pln_layout_call){.engine = s->engine,
                           .table = &s->conversions.table,
                           .op = op,
                           .n = o->n,
                           .types = o->types,
                           .n_results = o->n_results,
                           .attrs = attrs};
}

/* The layouts before any change. */
static pln_status infer_old(layout_sweep *s, const operands *o, pln_op op,
                            pln_attrs *attrs, bool *known) {
  pln_layout_call call = question(s, o, op, *attrs);
  call.old = o->old_producer;
  call.in = o->old_consumer;
  call.out = o->old_out;
  PLN_TRY(pln_layout_infer(&call, known));
  *attrs = call.attrs;
  return PLN_OK;
}

static void complete(const pln_tensor_layout *producer,
                     const pln_tensor_layout *consumer, uint32_t n,
                     pln_tensor_layout *out) {
  for (uint32_t i = 0; i < n; i++)
    out[i] = producer[i] ? producer[i] : consumer[i];
}

/* The layouts after the change. */
static pln_status infer_now(layout_sweep *s, const operands *o, pln_op op,
                            pln_attrs *attrs, bool *known) {
  pln_layout_call call = question(s, o, op, *attrs);
  complete(o->old_producer, o->old_consumer, o->n, o->old_in);
  complete(o->now_producer, o->old_consumer, o->n, o->now_in);
  call.old = o->old_in;
  call.now = o->now_in;
  call.in = o->now_consumer;
  call.out = o->now_out;
  PLN_TRY(pln_layout_infer(&call, known));
  *attrs = call.attrs;
  return PLN_OK;
}

/* ------------------------------------------------------------ the new call */

/* Converts operand `i` from what its producer made to what the call takes. Two
 * conversions are one if the call took what the producer made. */
static pln_status convert_operand(layout_sweep *s, pln_rewrite *rw,
                                  const operands *o, uint32_t i,
                                  pln_ref *node) {
  pln_layout_conversions *c = &s->conversions;
  if (o->old_consumer[i] == o->old_producer[i])
    return pln_layout_convert(c, rw, o->now_producer[i], o->now_consumer[i],
                              node);
  if (o->old_producer[i])
    PLN_TRY(pln_layout_convert(c, rw, o->now_producer[i], o->old_producer[i],
                               node));
  return pln_layout_convert(c, rw, o->old_consumer[i], o->now_consumer[i],
                            node);
}

static bool same_refs(const pln_ref *a, const pln_ref *b, uint32_t n) {
  return memcmp(a, b, n * sizeof *a) == 0;
}

/* A tuple of the fields: the node `tuple` if it has just these. */
static pln_status tuple_of(pln_rewrite *rw, pln_ref tuple, uint32_t n,
                           const pln_ref *fields, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *node = &g->nodes[tuple];
  *out = tuple;
  if (node->kind == PLN_TUPLE && node->count == n &&
      same_refs(g->operands + node->first, fields, n))
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  return b ? pln_build_tuple(b, n, fields, out) : PLN_ERR_NOMEM;
}

/* Converts the arguments. *fits: all of them can be. `values` has the fields of
 * tuples; it is overwritten. */
static pln_status convert_arguments(layout_sweep *s, pln_rewrite *rw,
                                    const pln_node *call, operands *o,
                                    pln_ref *args, bool *fits) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < call->count; i++) {
    pln_ref arg = s->old->operands[call->first + i];
    uint32_t count = count_tensors(s, arg);
    bool tuple = s->old->nodes[arg].kind == PLN_TUPLE || count > 1;
    if (!tuple)
      o->values[at] = args[i];
    for (uint32_t k = 0; k < count && *fits; k++) {
      PLN_TRY(convert_operand(s, rw, o, at + k, &o->values[at + k]));
      *fits = o->values[at + k] != PLN_NONE;
    }
    if (*fits && tuple)
      PLN_TRY(tuple_of(rw, args[i], count, o->values + at, &args[i]));
    else if (*fits)
      args[i] = o->values[at];
    at += count;
  }
  return PLN_OK;
}

/* True if *node already is that call. */
static pln_status is_call_alike(layout_sweep *s, pln_rewrite *rw, pln_ref node,
                                const pln_layout_change *c, bool *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[node];
  pln_attrs have, want;
  *out = n->data == c->op && n->count == c->n_args &&
         same_refs(g->operands + n->first, c->args, c->n_args);
  if (!*out || n->attrs == c->attrs)
    return PLN_OK;
  PLN_TRY(pln_relay_normal_attrs(s->engine, c->op, n->attrs, &have));
  PLN_TRY(pln_relay_normal_attrs(s->engine, c->op, c->attrs, &want));
  *out = have == want;
  return PLN_OK;
}

static pln_status build_changed_call(layout_sweep *s, pln_rewrite *rw,
                                     const pln_layout_change *c,
                                     pln_ref *node) {
  const pln_relay_row *row = pln_relay_of(s->engine, c->op);
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  const pln_node *old = &s->old->nodes[c->old];
  /* ONNX's form of an operator may have another number of results. */
  uint32_t results = row && c->op != old->data
                         ? pln_relay_n_results(s->engine, row, 0, c->attrs)
                         : old->results;
  return pln_build_call(b, c->op, c->attrs, results, c->n_args, c->args, node);
}

/* ----------------------------------------------------------------- results */

static pln_status append_states(layout_sweep *s, pln_ref old,
                                const operands *o) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->states, &s->cap_states,
                       (size_t)s->n_states + o->n_results, sizeof *s->states));
  s->state_of[old] = s->n_states + 1;
  for (uint32_t i = 0; i < o->n_results; i++)
    s->states[s->n_states++] = (layout_state){
        .value = PLN_NONE, .old = o->old_out[i], .now = o->now_out[i]};
  return PLN_OK;
}

/* The tuple of all results in their old layouts. */
static pln_status realize_results(layout_sweep *s, pln_rewrite *rw,
                                  layout_state *states, uint32_t n,
                                  pln_ref *node) {
  pln_ref call = *node;
  pln_builder *b = pln_rewrite_builder(rw);
  size_t size = n * sizeof(pln_ref);
  pln_ref *fields = b ? pln_mem_new(s->engine, size) : NULL;
  if (!fields)
    return pln_nomem(s->engine);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    status = pln_build_tuple_get_item(b, call, i, &states[i].value);
    if (status == PLN_OK)
      status = realize(s, rw, &states[i], &fields[i]);
  }
  if (status == PLN_OK)
    status = pln_build_tuple(b, n, fields, node);
  pln_mem_free(s->engine, fields, size);
  return status;
}

/* True if each result can be converted back. */
static bool results_convert(const layout_sweep *s, const pln_rewrite *rw,
                            pln_ref node, const operands *o) {
  pln_type type = pln_rewrite_graph(rw)->nodes[node].type;
  bool tuple = pln_type_get_kind(s->engine, type) == PLN_TYPE_TUPLE;
  for (uint32_t i = 0; i < o->n_results; i++) {
    pln_shape shape;
    pln_layout_shape(
        s->engine, tuple ? pln_type_part_at(s->engine, type, i) : type, &shape);
    if (o->old_out[i] != o->now_out[i] &&
        !pln_tensor_layout_converts(&s->conversions.table, &shape,
                                    o->now_out[i], o->old_out[i]))
      return false;
  }
  return true;
}

/* Keeps the states of the new call; *node becomes its image. The image of a
 * call of which only fields are taken is the call itself. */
static pln_status record_call(layout_sweep *s, pln_rewrite *rw, pln_ref old,
                              const operands *o, pln_ref *node) {
  PLN_TRY(append_states(s, old, o));
  layout_state *states = &s->states[s->state_of[old] - 1];
  if (pln_type_get_kind(s->engine, s->old->nodes[old].type) != PLN_TYPE_TUPLE) {
    states->value = *node;
    return realize(s, rw, states, node);
  }
  return s->whole[old] ? realize_results(s, rw, states, o->n_results, node)
                       : PLN_OK;
}

/* ----------------------------------------------------------------- visitors */

/* Asks before the first node is built. */
static pln_status change_call(layout_sweep *s, pln_rewrite *rw, operands *o,
                              pln_layout_change *c, pln_ref *node, bool *done) {
  bool allowed, alike, fits = true;
  pln_ref built = *node;
  PLN_TRY(pln_rewrite_apply(rw, "layout", &allowed));
  *done = false;
  if (!allowed)
    return PLN_OK;
  PLN_TRY(convert_arguments(s, rw, &s->old->nodes[c->old], o, c->args, &fits));
  if (!fits)
    return PLN_OK;
  PLN_TRY(is_call_alike(s, rw, *node, c, &alike));
  if (!alike)
    PLN_TRY(build_changed_call(s, rw, c, &built));
  if (!results_convert(s, rw, built, o))
    return PLN_OK;
  *node = built;
  *done = true;
  return PLN_OK;
}

/* True if the call takes every operand as it is and is what it was. */
static pln_status stays(layout_sweep *s, pln_rewrite *rw, const operands *o,
                        const pln_layout_change *c, pln_ref node, bool *out) {
  PLN_TRY(is_call_alike(s, rw, node, c, out));
  for (uint32_t i = 0; i < o->n && *out; i++)
    *out = o->now_consumer[i] == o->old_consumer[i] &&
           (o->old_producer[i] == o->now_producer[i]);
  return PLN_OK;
}

/* Tuples of the operands as they are now, for functions that look at them. */
static pln_status show_tuples(layout_sweep *s, pln_rewrite *rw,
                              const pln_node *call, const operands *o,
                              pln_ref *args) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < call->count; i++) {
    pln_ref arg = s->old->operands[call->first + i];
    uint32_t count = count_tensors(s, arg);
    if (s->old->nodes[arg].kind == PLN_TUPLE || count > 1)
      PLN_TRY(tuple_of(rw, args[i], count, o->values + at, &args[i]));
    at += count;
  }
  return PLN_OK;
}

/* Reads the fields of tuples that a function put in their place. False if one
 * is no such tuple. */
static bool read_tuples(const layout_sweep *s, const pln_rewrite *rw,
                        const pln_node *call, const pln_ref *args,
                        operands *o) {
  const pln_graph *g = pln_rewrite_graph(rw);
  uint32_t at = 0;
  for (uint32_t i = 0; i < call->count; i++) {
    pln_ref arg = s->old->operands[call->first + i];
    uint32_t count = count_tensors(s, arg);
    const pln_node *now = &g->nodes[args[i]];
    bool tuple = s->old->nodes[arg].kind == PLN_TUPLE || count > 1;
    if (tuple && (now->kind != PLN_TUPLE || now->count != count))
      return false;
    if (tuple && count)
      memcpy(o->values + at, g->operands + now->first,
             count * sizeof *o->values);
    at += count;
  }
  return true;
}

static bool may_replace(const layout_sweep *s, pln_op op) {
  const pln_layout_alteration *a = s->alteration;
  return a->replaces && a->replaces(a->ud, s->engine, op);
}

/* Lets the pass change the call. *fits: the arguments are as many tensors as
 * before. */
static pln_status alter_call(layout_sweep *s, pln_rewrite *rw, operands *o,
                             pln_layout_change *c, bool *fits) {
  const pln_node *call = &s->old->nodes[c->old];
  bool shown = may_replace(s, call->data);
  if (shown)
    PLN_TRY(show_tuples(s, rw, call, o, c->args));
  PLN_TRY(s->alteration->alter(s->alteration->ud, c));
  *fits = !shown || read_tuples(s, rw, call, c->args, o);
  return PLN_OK;
}

static pln_status visit_known_call(layout_sweep *s, pln_rewrite *rw,
                                   operands *o, pln_layout_change *c,
                                   pln_ref *node) {
  bool known, same;
  PLN_TRY(alter_call(s, rw, o, c, &known));
  if (known)
    PLN_TRY(infer_now(s, o, c->op, &c->attrs, &known));
  if (!known)
    return PLN_OK;
  PLN_TRY(stays(s, rw, o, c, *node, &same));
  if (!same)
    PLN_TRY(change_call(s, rw, o, c, node, &same));
  return same ? record_call(s, rw, c->old, o, node) : PLN_OK;
}

/* The pass may replace a call of whose layouts nothing is known. */
static pln_status visit_unknown_call(layout_sweep *s, pln_rewrite *rw,
                                     pln_layout_change *c, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  bool alike, allowed;
  if (c->n_args)
    memcpy(c->args, g->operands + g->nodes[*node].first,
           c->n_args * sizeof *c->args);
  PLN_TRY(s->alteration->alter(s->alteration->ud, c));
  PLN_TRY(is_call_alike(s, rw, *node, c, &alike));
  if (alike)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "layout", &allowed));
  return allowed ? build_changed_call(s, rw, c, node) : PLN_OK;
}

static pln_status visit_layout_call(layout_sweep *s, pln_rewrite *rw,
                                    pln_layout_change *c, pln_ref *node) {
  const pln_node *call = &s->old->nodes[c->old];
  operands o;
  bool known;
  if (!pln_layout_fn_of(call->data))
    return visit_unknown_call(s, rw, c, node);
  PLN_TRY(size_operands(s, call, &o));
  read_operands(s, rw, call, &o);
  PLN_TRY(infer_old(s, &o, c->op, &c->attrs, &known));
  if (!known)
    return PLN_OK;
  plain_arguments(s, rw, call, &o, c->args);
  return visit_known_call(s, rw, &o, c, node);
}

/* Returns true if the call is in ONNX's form of an operator whose layouts are
 * known of Relay's form only: its axis is fixed, or means several. */
static bool has_onnx_axis(const layout_sweep *s, pln_ref call) {
  static const pln_op ops[] = {
      PLN_OP_BATCH_NORMALIZATION, PLN_OP_INSTANCE_NORMALIZATION,
      PLN_OP_LAYER_NORMALIZATION, PLN_OP_ARG_MAX, PLN_OP_ARG_MIN};
  for (size_t i = 0; i < PLN_COUNT(ops); i++)
    if (s->old->nodes[call].data == ops[i])
      return !pln_op_is_relay_form(s->old, call);
  return false;
}

static pln_status visit_call(layout_sweep *s, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  const pln_node *call = &s->old->nodes[old];
  pln_layout_change c = {.rw = rw,
                         .old = old,
                         .image = *node,
                         .op = call->data,
                         .attrs = call->attrs,
                         .n_args = call->count};
  if (!call->data || call->count == 0 ||
      (!pln_layout_fn_of(call->data) && !may_replace(s, call->data)) ||
      !pln_relay_of(s->engine, call->data) || has_onnx_axis(s, old) ||
      pln_attrs_has_refs(s->engine, call->attrs))
    return PLN_OK;
  size_t size = call->count * sizeof *c.args;
  c.args = pln_mem_new(s->engine, size);
  if (!c.args)
    return pln_nomem(s->engine);
  pln_status status = visit_layout_call(s, rw, &c, node);
  pln_mem_free(s->engine, c.args, size);
  return status;
}

static pln_ref projected(const layout_sweep *s, pln_ref old) {
  return s->field[old] == PLN_NONE ? old : s->field[old];
}

/* A field of a tuple that stands there, or is such a field itself, is the
 * field; a result of a call that changed is taken once. */
static pln_status visit_field(layout_sweep *s, pln_rewrite *rw, pln_ref old,
                              pln_ref *node) {
  const pln_node *n = &s->old->nodes[old];
  pln_ref tuple = projected(s, s->old->operands[n->first]);
  const pln_node *from = &s->old->nodes[tuple];
  if (from->kind == PLN_TUPLE) {
    pln_ref field = s->old->operands[from->first + n->data];
    s->field[old] = projected(s, field);
    s->state_of[old] = s->state_of[field];
    *node = pln_rewrite_image(rw, field);
    return PLN_OK;
  }
  if (!s->state_of[tuple] || from->kind != PLN_CALL)
    return PLN_OK;
  s->state_of[old] = s->state_of[tuple] + n->data;
  layout_state *state = &s->states[s->state_of[old] - 1];
  if (state->value == PLN_NONE || pln_rewrite_has_left(rw, state->value))
    state->value = *node;
  return realize(s, rw, state, node);
}

static pln_status visit(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  layout_sweep *s = ud;
  switch (s->old->nodes[old].kind) {
  case PLN_CALL: return visit_call(s, rw, old, node);
  case PLN_TUPLE_GET_ITEM: return visit_field(s, rw, old, node);
  default: return PLN_OK;
  }
}

/* ------------------------------------------------------------------- sweep */

static void mark_whole_uses(layout_sweep *s) {
  const pln_graph *g = s->old;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = 0; i < n->count && n->kind != PLN_TUPLE_GET_ITEM; i++)
      s->whole[g->operands[n->first + i]] = 1;
  }
  for (pln_scope scope = 0; scope < g->n_scopes; scope++)
    if (g->scopes[scope].result != PLN_NONE)
      s->whole[g->scopes[scope].result] = 1;
  s->whole[g->root] = 1;
}

static pln_status begin_sweep(layout_sweep *s) {
  size_t n = s->old->n_nodes;
  PLN_TRY(pln_layout_conversions_new(s->engine, &s->conversions));
  s->state_of = pln_mem_zeroed(s->engine, n * sizeof *s->state_of);
  s->whole = pln_mem_zeroed(s->engine, n);
  s->field = pln_mem_new(s->engine, n * sizeof *s->field);
  if (!s->state_of || !s->whole || !s->field)
    return pln_nomem(s->engine);
  memset(s->field, 0xff, n * sizeof *s->field);
  mark_whole_uses(s);
  return PLN_OK;
}

static void end_sweep(layout_sweep *s) {
  size_t n = s->old->n_nodes;
  pln_layout_conversions_free(&s->conversions);
  pln_mem_free(s->engine, s->state_of, n * sizeof *s->state_of);
  pln_mem_free(s->engine, s->whole, n);
  pln_mem_free(s->engine, s->field, n * sizeof *s->field);
  pln_mem_free(s->engine, s->states, s->cap_states * sizeof *s->states);
  pln_mem_free(s->engine, s->block, s->cap_block * sizeof *s->block);
}

pln_status pln_transform_layouts(const pln_graph *function,
                                 const pln_layout_alteration *alteration,
                                 pln_graph **out) {
  layout_sweep s = {.engine = function->engine,
                    .old = function,
                    .alteration = alteration,
                    .conversions = {.engine = function->engine}};
  pln_mutator m = {.ud = &s, .visit = visit};
  pln_status status = begin_sweep(&s);
  if (status == PLN_OK)
    status = pln_graph_rewrite(function, &m, out);
  end_sweep(&s);
  return status;
}
