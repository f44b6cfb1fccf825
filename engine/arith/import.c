/* arith/import.c: from nodes of a graph to terms, and back.
 *
 * Called by the public functions. A graph's operands come before their users,
 * so that both directions are loops. A Var is known by its identity; every
 * other PrimExpr by its content. */

#include "arith/arith.h"

/* ------------------------------------------------------------------- import */

typedef struct import_walk {
  pln_analyzer *a;
  const pln_graph *g;
  pln_ref *stack;
  uint32_t n, cap;
} import_walk;

static bool is_expression(const pln_node *n) {
  return pln_is_prim(n) || n->kind == PLN_VAR || n->kind == PLN_GLOBAL_VAR;
}

static pln_status refuse(const import_walk *w, const pln_node *n) {
  return pln_diag_error(w->a->engine, PLN_ERR_TYPE, NULL,
                        "arith: a %s is not a PrimExpr",
                        pln_kind_name((pln_kind)n->kind));
}

static pln_status push(import_walk *w, pln_ref ref) {
  PLN_TRY(pln_mem_grow(w->a->engine, (void **)&w->stack, &w->cap,
                       (size_t)w->n + 1, sizeof *w->stack));
  w->stack[w->n++] = ref;
  return PLN_OK;
}

static bool known(const import_walk *w, pln_ref ref) {
  return w->a->stamp_of[ref] == w->a->stamp;
}

static pln_term_node node_of(const import_walk *w, const pln_node *n) {
  const pln_engine *e = w->a->engine;
  pln_term_node out = {.kind = n->kind, .n = (uint16_t)n->count, .lanes = 1};
  if (pln_type_get_kind(e, n->type) == PLN_TYPE_PRIM) {
    out.dtype = (uint8_t)pln_type_dtype(e, n->type);
    out.lanes = (uint16_t)pln_type_number(e, n->type);
  }
  return out;
}

/* Kinds whose constructors in term.c need no more than dtype and operands. */
static bool is_plain(pln_kind kind) {
  return (kind >= PLN_PRIM_CAST && kind <= PLN_SELECT) || kind == PLN_RAMP ||
         kind == PLN_BROADCAST;
}

static void set_data(pln_term_node *out, const pln_node *n) {
  if (n->kind == PLN_INT_IMM || n->kind == PLN_FLOAT_IMM) {
    out->u.data = pln_imm_bits(n);
  } else if (n->kind == PLN_VAR) {
    out->u.value = n->data;
    out->b = n->attrs;
    out->count = n->results;
    out->type = n->type;
  } else if (!is_plain((pln_kind)n->kind)) {
    out->u.data = (uint64_t)n->attrs << 32 | n->data;
    out->count = n->results;
    out->type = n->type;
  }
}

static pln_status make(import_walk *w, pln_ref ref) {
  pln_analyzer *a = w->a;
  const pln_node *n = &w->g->nodes[ref];
  const pln_ref *from = pln_operands(w->g, n);
  pln_term few[8], *operands = few;
  pln_term_node node = node_of(w, n);
  if (n->count > UINT16_MAX)
    return refuse(w, n);
  if (n->count > PLN_COUNT(few))
    operands = pln_mem_new(a->engine, n->count * sizeof *operands);
  if (!operands)
    return pln_nomem(a->engine);
  for (uint32_t i = 0; i < n->count; i++)
    operands[i] = a->term_of[from[i]];
  set_data(&node, n);
  if (node.n > 0 && node.n <= 3) {
    node.a = operands[0];
    node.b = node.n > 1 ? operands[1] : 0;
    node.c = node.n > 2 ? operands[2] : 0;
  }
  a->term_of[ref] = pln_term_intern(a, &node, operands);
  a->stamp_of[ref] = a->stamp;
  if (operands != few)
    pln_mem_free(a->engine, operands, n->count * sizeof *operands);
  return a->status;
}

static pln_status enter(import_walk *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_ref *operands = pln_operands(w->g, n);
  bool ready = true;
  if (!is_expression(n))
    return refuse(w, n);
  for (uint32_t i = n->count; i-- > 0;)
    if (!known(w, operands[i])) {
      ready = false;
      PLN_TRY(push(w, operands[i]));
    }
  if (!ready)
    return PLN_OK;
  w->n--;
  return known(w, ref) ? PLN_OK : make(w, ref);
}

static pln_status make_room(pln_analyzer *a, const pln_graph *g) {
  uint32_t old = a->cap_stamp_of;
  if (g->n_nodes <= a->cap_stamp_of && g->n_nodes <= a->cap_term_of)
    return PLN_OK;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->term_of, &a->cap_term_of,
                       g->n_nodes, sizeof *a->term_of));
  PLN_TRY(pln_mem_grow(a->engine, (void **)&a->stamp_of, &a->cap_stamp_of,
                       g->n_nodes, sizeof *a->stamp_of));
  memset(a->stamp_of + old, 0, (a->cap_stamp_of - old) * sizeof *a->stamp_of);
  return PLN_OK;
}

/* Entering a node whose operands are known takes it from the stack; a node
 * stays below its operands until then. */
static pln_status run(import_walk *w, pln_ref ref) {
  pln_status status = push(w, ref);
  while (status == PLN_OK && w->n > 0)
    status = enter(w, w->stack[w->n - 1]);
  if (w->stack)
    pln_mem_free(w->a->engine, w->stack, w->cap * sizeof *w->stack);
  return status;
}

static pln_status import(pln_analyzer *a, const pln_graph *g, pln_ref ref,
                         pln_term *out) {
  import_walk w = {.a = a, .g = g};
  *out = PLN_NO_TERM;
  if (ref >= g->n_nodes)
    return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                          "arith: the graph has no such node");
  a->status = PLN_OK;
  if (pln_analyzer_stopped(a)) /* terms that are there make no others */
    return a->status;
  PLN_TRY(make_room(a, g));
  PLN_TRY(run(&w, ref));
  *out = a->term_of[ref];
  return PLN_OK;
}

pln_status pln_analyzer_import(pln_analyzer *a, const pln_graph *g, pln_ref ref,
                               pln_term *out) {
  a->stamp++;
  a->imported = NULL;
  return import(a, g, ref, out);
}

pln_status pln_analyzer_import_built(pln_analyzer *a, const pln_builder *b,
                                     pln_ref ref, pln_term *out) {
  return pln_analyzer_import(a, b->graph, ref, out);
}

pln_status pln_analyzer_import_more(pln_analyzer *a, const pln_graph *g,
                                    pln_ref ref, pln_term *out) {
  if (a->imported != g)
    a->stamp++;
  a->imported = g;
  return import(a, g, ref, out);
}

/* ------------------------------------------------------------------- export */

static pln_status build_number(pln_analyzer *a, pln_builder *b,
                               const pln_term_node *n, pln_ref *out) {
  pln_type type;
  PLN_TRY(pln_type_prim(a->engine, (pln_dtype)n->dtype, n->lanes, &type));
  return n->kind == PLN_INT_IMM
             ? pln_build_int_imm(b, type, n->u.value, out)
             : pln_build_float_imm(b, type, n->u.number, out);
}

static pln_status build_node(pln_analyzer *a, pln_builder *b,
                             const pln_term_node *n, const pln_ref *operands,
                             pln_ref *out) {
  pln_prim spec = {.kind = (pln_kind)n->kind,
                   .count = n->count,
                   .n = n->n,
                   .operands = operands,
                   .type = n->type};
  if (n->kind == PLN_RAMP || n->kind == PLN_BROADCAST)
    spec.data = n->lanes;
  else if (!is_plain((pln_kind)n->kind)) {
    spec.data = (uint32_t)n->u.data;
    spec.attrs = (pln_attrs)(n->u.data >> 32);
  }
  if (n->kind == PLN_PRIM_CAST)
    PLN_TRY(
        pln_type_prim(a->engine, (pln_dtype)n->dtype, n->lanes, &spec.type));
  if (n->kind == PLN_BUFFER) {
    pln_node same = {.kind = n->kind,
                     .results = n->count,
                     .data = spec.data,
                     .attrs = spec.attrs,
                     .count = n->n,
                     .type = n->type};
    *out = pln_buffer_find(b, &same, operands);
    if (*out != PLN_NONE)
      return PLN_OK;
  }
  return pln_build_prim(b, &spec, out);
}

static pln_status build(pln_analyzer *a, pln_builder *b, pln_term t,
                        const pln_ref *refs, pln_ref *out) {
  const pln_term_node *n = pln_at(a, t);
  pln_ref few[8], *operands = few;
  switch (n->kind) {
  case PLN_INT_IMM:
  case PLN_FLOAT_IMM: return build_number(a, b, n, out);
  case PLN_STRING_IMM:
    return pln_build_string_imm(b, (pln_symbol)n->u.data, out);
  case PLN_GLOBAL_VAR:
    return pln_build_global_var(b, (pln_symbol)n->u.data, n->type, out);
  case PLN_VAR:
    return n->count
               ? pln_build_size_var(b, n->b, n->type, (uint32_t)n->u.value, out)
               : pln_build_var(b, n->b, n->type, (uint32_t)n->u.value, out);
  default: break;
  }
  if (n->n > PLN_COUNT(few))
    operands = pln_mem_new(a->engine, n->n * sizeof *operands);
  if (!operands)
    return pln_nomem(a->engine);
  for (uint32_t i = 0; i < n->n; i++)
    operands[i] = refs[pln_term_operand(a, t, i)];
  pln_status status = build_node(a, b, n, operands, out);
  if (operands != few)
    pln_mem_free(a->engine, operands, n->n * sizeof *operands);
  return status;
}

pln_status pln_analyzer_export(pln_analyzer *a, pln_builder *b, pln_term t,
                               pln_ref *out) {
  pln_term_list order;
  a->status = PLN_OK;
  if (!t || t >= a->n)
    return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                          "arith: no such term");
  if (!pln_term_order(a, t, NULL, &order))
    return a->status;
  pln_status status =
      pln_mem_grow(a->engine, (void **)&a->ref_of, &a->cap_ref_of,
                   (size_t)t + 1, sizeof *a->ref_of);
  for (uint32_t i = 0; status == PLN_OK && i < order.n; i++) {
    pln_term item = order.items[i];
    status = build(a, b, item, a->ref_of, &a->ref_of[item]);
  }
  if (status == PLN_OK)
    *out = a->ref_of[t];
  pln_term_list_free(a, &order);
  return status;
}
