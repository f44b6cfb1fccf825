/* apply.c: inlines calls of known functions, and decides when to stop.
 *
 * Called for calls and for the bodies of functions that are written down. While
 * a function is being inlined, its fuel is what its arguments were: for each,
 * when it was made, and its value if it is a positive integer. A call inside is
 * inlined only if one of these gets smaller, which can happen finitely often.
 *
 * Semantics: TVM PartialEvaluate. */

#include "transform/partial_eval/partial_evaluate.h"

/* What is restored when an inlined call returns. */
typedef struct saved_call {
  pe_frame *frame;
  pe_fuel **place;
  pe_fuel *fuel;
} saved_call;

/* --------------------------------------------------------------------- fuel */

/* The value of a scalar of a signed integer dtype, if it is positive. */
static pln_status size_of(const pe_value *v, uint64_t *out) {
  *out = 0;
  if (v->kind != PE_TENSOR || v->of.tensor->rank != 0)
    return PLN_OK;
  const void *data;
  PLN_TRY(pln_tensor_data(v->of.tensor, &data));
  int64_t value = 0;
  if (v->of.tensor->dtype == PLN_INT64)
    memcpy(&value, data, sizeof value);
  if (v->of.tensor->dtype == PLN_INT32) {
    int32_t small;
    memcpy(&small, data, sizeof small);
    value = small;
  }
  *out = value > 0 ? (uint64_t)value : 0;
  return PLN_OK;
}

static pln_status fuel_of(pe_run *pe, uint32_t n, pe_value **args,
                          pe_fuel **out) {
  pe_fuel *f = pe_alloc(pe, sizeof *f);
  if (!f || !(f->times = pe_alloc(pe, 2 * n * sizeof *f->times)))
    return PLN_ERR_NOMEM;
  f->n = n;
  f->sizes = f->times + n;
  for (uint32_t i = 0; i < n; i++) {
    f->times[i] = args[i]->time;
    PLN_TRY(size_of(args[i], &f->sizes[i]));
  }
  *out = f;
  return PLN_OK;
}

/* Meets `now` with `before`, NULL if the function is not being inlined. Returns
 * true if that is less than `before`. */
static bool meet(const pe_fuel *before, pe_fuel *now) {
  bool progress = !before;
  for (uint32_t i = 0; before && i < 2 * now->n; i++) {
    progress |= now->times[i] < before->times[i];
    if (before->times[i] < now->times[i])
      now->times[i] = before->times[i];
  }
  return progress;
}

/* ------------------------------------------------------------------- frames */

static pln_type type_params(const pe_closure *c) {
  const pln_graph *g = c->source->graph;
  return g->scopes[g->nodes[c->function].data].type_params;
}

/* Adds types for the type parameters of the function, as far as the call gives
 * them. */
static pln_status bind_types(pe_run *pe, const pe_closure *c, pln_ref call,
                             pe_types *out) {
  pln_engine *e = pe->engine;
  pln_type vars = type_params(c), args = 0;
  *out = c->types;
  if (!vars || call == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_call_type_args(pe->frame->source->graph, call, &args));
  uint32_t n = pln_type_n_parts(e, vars);
  if (!args || pln_type_n_parts(e, args) != n)
    return PLN_OK;
  out->vars = pe_alloc(pe, 2 * (c->types.n + n) * sizeof *out->vars);
  if (!out->vars)
    return PLN_ERR_NOMEM;
  out->types = out->vars + c->types.n + n;
  if (c->types.n) {
    memcpy(out->vars, c->types.vars, c->types.n * sizeof *out->vars);
    memcpy(out->types, c->types.types, c->types.n * sizeof *out->types);
  }
  for (uint32_t i = 0; i < n; i++) {
    pln_type var = pln_type_part_at(e, vars, i), type;
    PLN_TRY(
        pe_type(pe, &pe->frame->types, pln_type_part_at(e, args, i), &type));
    out->vars[out->n] = var;
    out->types[out->n++] = type ? type : var;
  }
  return PLN_OK;
}

/* A frame with the captures and the function itself. */
static pln_status new_frame(pe_run *pe, const pe_value *function, pln_ref call,
                            pe_frame **out) {
  const pe_closure *c = function->of.closure;
  pe_source *s = c->source;
  pe_frame *f = pe_alloc(pe, sizeof *f);
  uint32_t k = 0, n = s->slot[c->function];
  if (!f || !(f->slots = pe_alloc(pe, n * sizeof *f->slots)))
    return PLN_ERR_NOMEM;
  f->source = s;
  f->function = c->function;
  PLN_TRY(bind_types(pe, c, call, &f->types));
  for (uint32_t i = s->captured[c->function]; i != PLN_NONE;
       i = s->list[i].next, k++)
    f->slots[s->list[i].slot] =
        s->list[i].var == c->self ? (pe_value *)function : c->captures[k];
  *out = f;
  return PLN_OK;
}

static pln_status enter(pe_run *pe, pe_value *function, pln_ref call,
                        uint32_t n, pe_value **args, pe_fuel *fuel) {
  const pe_closure *c = function->of.closure;
  const pln_graph *g = c->source->graph;
  const pln_scope_row *row = &g->scopes[g->nodes[c->function].data];
  saved_call *saved = pe_alloc(pe, sizeof *saved);
  pe_frame *frame;
  if (!saved)
    return PLN_ERR_NOMEM;
  PLN_TRY(new_frame(pe, function, call, &frame));
  *saved = (saved_call){pe->frame, &c->source->fuel[c->function], NULL};
  saved->fuel = *saved->place;
  PLN_TRY(pe_later(pe, PE_RETURN, 0, saved));
  *saved->place = fuel;
  pe->frame = frame;
  for (uint32_t i = 0; i < n; i++)
    *pe_slot(pe, row->begin + i) = args[i];
  pln_ref first = c->source->tree.first[g->nodes[c->function].data];
  return first != PLN_NONE ? pe_later(pe, PE_STATEMENT, first, NULL)
                           : pe_later(pe, PE_VISIT, row->result, NULL);
}

pln_status pe_return(pe_run *pe, void *data) {
  saved_call *saved = data;
  pe->frame = saved->frame;
  *saved->place = saved->fuel;
  return PLN_OK;
}

/* ------------------------------------------------------------------ calling */

static bool is_primitive(const pe_closure *c) {
  const pln_graph *g = c->source->graph;
  const pln_attr *mark =
      pln_attrs_find(g->engine, g->nodes[c->function].attrs, "Primitive");
  return mark && mark->v.i;
}

static bool has_effect(const pe_closure *c) {
  const pln_graph *g = c->source->graph;
  return pln_node_call_effect(&g->nodes[c->function]) != PLN_EFFECT_NONE;
}

/* A primitive function is one operator: it is called as it is. */
static pln_status call_primitive(pe_run *pe, pln_ref call, pe_value *callee,
                                 uint32_t n, pe_value **args, pe_value **out) {
  const pe_closure *c = callee->of.closure;
  pe_value literal = *callee;
  if (callee->global)
    return pe_residual_call(pe, call, callee, n, args, out);
  PLN_TRY(
      pln_build_import(pe->b, c->source->graph, c->function, &literal.node));
  return pe_residual_call(pe, call, &literal, n, args, out);
}

pln_status pe_apply(pe_run *pe, pln_ref call, pe_value *callee, uint32_t n,
                    pe_value **args) {
  const pe_closure *c = callee->of.closure;
  pe_value *out;
  pe_fuel *fuel;
  if (is_primitive(c)) {
    PLN_TRY(call_primitive(pe, call, callee, n, args, &out));
    return pe_push(pe, out);
  }
  PLN_TRY(fuel_of(pe, n, args, &fuel));
  if (meet(c->source->fuel[c->function], fuel))
    return enter(pe, callee, call, n, args, fuel);
  if (has_effect(c))
    pe_store_invalidate(pe);
  PLN_TRY(pe_residual_call(pe, call, callee, n, args, &out));
  return pe_push(pe, out);
}

static pln_status add_params(pe_run *pe, const pe_closure *c, uint32_t n,
                             pe_value **out) {
  const pln_graph *g = c->source->graph;
  pln_ref first = g->scopes[g->nodes[c->function].data].begin;
  for (uint32_t i = 0; i < n; i++) {
    const pln_node *old = &g->nodes[first + i];
    pln_type type;
    pln_ref param;
    PLN_TRY(pe_type(pe, &c->types, old->type, &type));
    PLN_TRY(pln_builder_derive(pe->b, g, first + i));
    PLN_TRY(pln_build_param(pe->b, old->attrs, type, 0, &param));
    PLN_TRY(pe_value_new(pe, PE_UNKNOWN, param, &out[i]));
  }
  return PLN_OK;
}

/* The body is evaluated even if the function is being inlined: its arguments
 * are newer, so that recursive calls inside are written down. */
pln_status pe_apply_unknown(pe_run *pe, pe_value *closure) {
  const pe_closure *c = closure->of.closure;
  const pln_graph *g = c->source->graph;
  uint32_t n = g->scopes[g->nodes[c->function].data].n_params;
  pe_value **params = pe_alloc(pe, n * sizeof *params), *self;
  pe_fuel *fuel;
  if (!params)
    return PLN_ERR_NOMEM;
  PLN_TRY(add_params(pe, c, n, params));
  PLN_TRY(pe_value_new(pe, PE_CLOSURE, closure->node, &self));
  self->global = closure->global;
  self->of.closure = closure->of.closure;
  PLN_TRY(fuel_of(pe, n, params, &fuel));
  (void)meet(c->source->fuel[c->function], fuel);
  return enter(pe, self, PLN_NONE, n, params, fuel);
}
