/* provide.c: the statements that compute a stage's tensors, in its loops, with
 * the stages that are attached to these. Definitions: TVM 0.14,
 * src/te/operation/compute_op.cc, scan_op.cc, extern_op.cc. */

#include "te/te.h"

/* ------------------------------------------------------------------- stores */

pln_term pln_te_in_program(pln_te_state *s, const pln_te_nest *nest,
                           pln_term t) {
  t = pln_te_substitute(s, t, nest->from.n, nest->from.items, nest->to.items,
                        true);
  if (s->from.n == 0)
    return t;
  return pln_te_substitute(s, t, s->from.n, s->from.items, s->to.items, true);
}

static pln_status store(pln_te_state *s, const pln_te_nest *nest, uint32_t i,
                        pln_term value, pln_ref *out) {
  const pln_te_stage *g = &s->stages[nest->stage];
  uint32_t rank = g->axis.n;
  pln_term *terms = pln_arena_new(&s->arena, (rank + 2) * sizeof *terms);
  if (!terms)
    return pln_nomem(s->engine);
  terms[0] = pln_te_buffer(s, g->first_tensor + i);
  terms[1] = pln_te_in_program(s, nest, value);
  for (uint32_t k = 0; k < rank; k++)
    terms[2 + k] = pln_te_in_program(s, nest, s->axes[g->axis.items[k]].var);
  pln_te_stmt stmt = {.kind = PLN_BUFFER_STORE,
                      .n = rank + 2,
                      .terms = terms,
                      .body = PLN_NONE};
  return pln_te_build(s, &stmt, out);
}

pln_status pln_te_stores(pln_te_state *s, const pln_te_nest *nest,
                         const pln_term *values, uint32_t n, pln_ref *out) {
  pln_ref *list = pln_arena_new(&s->arena, n * sizeof *list);
  if (!list)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(store(s, nest, i, values[i], &list[i]));
  if (n == 1) {
    *out = list[0];
    return PLN_OK;
  }
  return pln_build_seq(s->b, n, list, out);
}

/* --------------------------------------------------------------- reductions */

pln_status pln_te_find_init(pln_te_state *s, uint32_t stage, uint32_t *first,
                            pln_te_list *skip) {
  const pln_te_stage *g = &s->stages[stage];
  pln_te_mark_origins(s, stage);
  *first = g->leaves.n;
  for (uint32_t i = g->leaves.n; i-- > 0;)
    if (pln_te_mask_of(s, g->leaves.items[i]) & PLN_TE_OF_REDUCTION)
      *first = i;
  for (uint32_t i = 0; i < s->stages[stage].all.n; i++) {
    uint32_t axis = s->stages[stage].all.items[i];
    if (pln_te_mask_of(s, axis) == PLN_TE_OF_REDUCTION)
      PLN_TRY(pln_te_push(s, skip, axis));
  }
  return PLN_OK;
}

/* The tensor's element, as the left side of the combiner. */
static pln_term element(pln_te_state *s, uint32_t stage, uint32_t i) {
  const pln_te_stage *g = &s->stages[stage];
  pln_term *indices =
      pln_arena_new(&s->arena, (g->axis.n + 1u) * sizeof *indices);
  if (!indices)
    return pln_arith_fail(s->a, pln_nomem(s->engine));
  for (uint32_t k = 0; k < g->axis.n; k++)
    indices[k] = s->axes[g->axis.items[k]].var;
  return pln_te_load(s, g->first_tensor + i, indices);
}

/* The combiner's operands are lhs, rhs, results, identities, n of each. */
pln_term *pln_te_combine(pln_te_state *s, const pln_te_reduce *r,
                         pln_term reduce, const pln_term *lhs) {
  uint32_t n = r->n_sources;
  pln_term *from = pln_arena_new(&s->arena, 4 * n * sizeof *from);
  if (!from)
    return NULL;
  pln_term *to = from + 2 * n;
  for (uint32_t i = 0; i < n; i++) {
    from[i] = pln_term_operand(s->a, r->combiner, i);
    from[n + i] = pln_term_operand(s->a, r->combiner, n + i);
    to[i] = lhs[i];
    to[n + i] = pln_term_operand(s->a, reduce, r->source + i);
  }
  pln_term *out = pln_arena_new(&s->arena, n * sizeof *out);
  for (uint32_t i = 0; out && i < n; i++)
    out[i] =
        pln_te_substitute(s, pln_term_operand(s->a, r->combiner, 2 * n + i),
                          2 * n, from, to, false);
  return out;
}

static pln_status update(pln_te_state *s, const pln_te_nest *nest,
                         pln_term reduce, pln_ref *out) {
  pln_te_reduce r = pln_te_reduce_of(s, reduce);
  pln_term *old = pln_arena_new(&s->arena, r.n_sources * sizeof *old);
  for (uint32_t i = 0; old && i < r.n_sources; i++)
    old[i] = element(s, nest->stage, i);
  pln_term *values = old ? pln_te_combine(s, &r, reduce, old) : NULL;
  if (!values)
    return pln_nomem(s->engine);
  PLN_TRY(pln_te_stores(s, nest, values, r.n_sources, out));
  if (pln_is_value(s->a, r.condition, 1))
    return PLN_OK;
  pln_term condition = pln_te_in_program(s, nest, r.condition);
  pln_te_stmt test = {
      .kind = PLN_IF_THEN_ELSE, .n = 1, .terms = &condition, .body = *out};
  return pln_te_build(s, &test, out);
}

static pln_status initial(pln_te_state *s, const pln_te_nest *nest,
                          pln_term reduce, pln_ref *out) {
  pln_te_reduce r = pln_te_reduce_of(s, reduce);
  pln_term *values = pln_arena_new(&s->arena, r.n_sources * sizeof *values);
  if (!values)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < r.n_sources; i++)
    values[i] = r.n_inits
                    ? pln_term_operand(s->a, reduce, r.init + i)
                    : pln_term_operand(s->a, r.combiner, 3 * r.n_sources + i);
  return pln_te_stores(s, nest, values, r.n_sources, out);
}

/* The loops from the first that belongs to the reduction on, without those that
 * belong to it alone. */
pln_status pln_te_init_nest(pln_te_state *s, const pln_te_nest *main,
                            pln_te_nest *nest) {
  pln_te_list leaves = s->stages[main->stage].leaves;
  pln_te_list values = {0};
  nest->stage = main->stage;
  nest->init = true;
  nest->keep_trivial = main->keep_trivial;
  for (uint32_t i = 0; i < nest->first; i++)
    PLN_TRY(pln_te_push(s, &values, s->axes[leaves.items[i]].value));
  pln_te_begin_walk(s);
  for (uint32_t i = 0; i < nest->first; i++)
    pln_te_set_value(s, leaves.items[i], values.items[i]);
  PLN_TRY(pln_te_nest_make(s, nest));
  PLN_TRY(pln_te_bound_check(s, main->stage, true, nest->skip, &nest->guards));
  for (uint32_t i = 0; i < nest->guards.n; i++)
    nest->guards.items[i] = pln_te_likely(s, nest->guards.items[i]);
  return PLN_OK;
}

static pln_status provide_init(pln_te_state *s, const pln_te_nest *main,
                               uint32_t first, const pln_te_list *skip,
                               pln_term reduce, pln_ref *out) {
  pln_te_nest nest = {.first = first, .skip = skip};
  PLN_TRY(pln_te_init_nest(s, main, &nest));
  PLN_TRY(initial(s, &nest, reduce, out));
  PLN_TRY(pln_te_nest_guard(s, &nest, out));
  for (uint32_t i = s->stages[main->stage].leaves.n; i-- > first;)
    PLN_TRY(pln_te_nest_wrap(s, &nest, i, out));
  return PLN_OK;
}

/* ------------------------------------------------------------------ compute */

pln_status pln_te_bounded_nest(pln_te_state *s, pln_te_nest *nest) {
  pln_te_begin_walk(s);
  PLN_TRY(pln_te_nest_make(s, nest));
  PLN_TRY(pln_te_bound_check(s, nest->stage, false, NULL, &nest->guards));
  for (uint32_t i = 0; i < nest->guards.n; i++)
    nest->guards.items[i] = pln_te_likely(s, nest->guards.items[i]);
  return PLN_OK;
}

pln_status pln_te_main_nest(pln_te_state *s, pln_te_nest *nest) {
  pln_term predicate = s->stages[nest->stage].predicate;
  PLN_TRY(pln_te_bounded_nest(s, nest));
  if (!predicate)
    return PLN_OK;
  /* By the loops, as the other guards are. */
  predicate = pln_te_substitute(s, predicate, nest->from.n, nest->from.items,
                                nest->to.items, false);
  return pln_te_push(s, &nest->guards, predicate);
}

static pln_status wrap_all(pln_te_state *s, const pln_te_nest *nest,
                           uint32_t init_at, pln_ref init, pln_ref *stmt) {
  pln_te_list leaves = s->stages[nest->stage].leaves;
  for (uint32_t i = leaves.n; i-- > 0;) {
    if (i + 1 == init_at)
      PLN_TRY(pln_te_build_seq(s, init, *stmt, stmt));
    PLN_TRY(pln_te_attach_users(s, nest->stage, leaves.items[i], stmt));
    PLN_TRY(pln_te_nest_wrap(s, nest, i, stmt));
  }
  return init_at == 0 ? pln_te_build_seq(s, init, *stmt, stmt) : PLN_OK;
}

static pln_status provide_reduction(pln_te_state *s, pln_te_nest *nest) {
  pln_term reduce = s->stages[nest->stage].body.items[0];
  pln_te_list skip = {0};
  uint32_t first;
  pln_ref init, stmt;
  if (pln_te_reduces_across_threads(s, nest->stage))
    return pln_te_provide_across_threads(s, nest);
  PLN_TRY(pln_te_find_init(s, nest->stage, &first, &skip));
  PLN_TRY(pln_te_main_nest(s, nest));
  PLN_TRY(provide_init(s, nest, first, &skip, reduce, &init));
  PLN_TRY(update(s, nest, reduce, &stmt));
  PLN_TRY(pln_te_nest_guard(s, nest, &stmt));
  PLN_TRY(wrap_all(s, nest, first, init, &stmt));
  s->stages[nest->stage].stmt = stmt;
  return PLN_OK;
}

static pln_status provide_compute(pln_te_state *s, pln_te_nest *nest) {
  const pln_te_list *body = &s->stages[nest->stage].body;
  uint32_t tensorized = pln_te_tensorized_loop(s, nest->stage);
  pln_ref stmt;
  if (tensorized != PLN_NONE)
    return pln_te_provide_tensorized(s, tensorized, nest);
  if (pln_term_kind(s->a, body->items[0]) == PLN_REDUCE)
    return provide_reduction(s, nest);
  PLN_TRY(pln_te_main_nest(s, nest));
  PLN_TRY(pln_te_stores(s, nest, s->stages[nest->stage].body.items,
                        s->stages[nest->stage].body.n, &stmt));
  PLN_TRY(pln_te_nest_guard(s, nest, &stmt));
  PLN_TRY(wrap_all(s, nest, PLN_NONE, PLN_NONE, &stmt));
  s->stages[nest->stage].stmt = stmt;
  return PLN_OK;
}

/* --------------------------------------------------------------------- scan */

static pln_status pipelines(pln_te_state *s, const pln_te_list *stages,
                            pln_ref *stmt) {
  for (uint32_t i = stages->n; i-- > 0;)
    PLN_TRY(pln_te_pipeline(s, stages->items[i], *stmt, stmt));
  return PLN_OK;
}

static uint32_t count_threads(const pln_te_state *s, uint32_t stage) {
  const pln_te_list *leaves = &s->stages[stage].leaves;
  uint32_t n = 0;
  while (n < leaves->n &&
         s->axes[leaves->items[n]].type == PLN_ITER_THREAD_INDEX)
    n++;
  return n;
}

/* threads { inits; loops { updates } } */
static pln_status provide_scan(pln_te_state *s, pln_te_nest *nest) {
  uint32_t stage = nest->stage, threads = count_threads(s, stage);
  pln_te_list leaves = s->stages[stage].leaves;
  pln_te_list inits = s->stages[stage].inits;
  pln_te_list updates = s->stages[stage].updates;
  pln_ref stmt = PLN_NONE;
  pln_te_begin_walk(s);
  PLN_TRY(pln_te_nest_make(s, nest));
  PLN_TRY(pln_te_bound_check(s, stage, false, NULL, &nest->guards));
  PLN_TRY(pipelines(s, &updates, &stmt));
  PLN_TRY(pln_te_nest_guard(s, nest, &stmt));
  for (uint32_t i = leaves.n; i-- > 0;) {
    if (i + 1 == threads)
      PLN_TRY(pipelines(s, &inits, &stmt));
    PLN_TRY(pln_te_attach_users(s, stage, leaves.items[i], &stmt));
    PLN_TRY(pln_te_nest_wrap(s, nest, i, &stmt));
  }
  if (threads == 0)
    PLN_TRY(pipelines(s, &inits, &stmt));
  s->stages[stage].stmt = stmt;
  return PLN_OK;
}

/* ------------------------------------------------------------------- extern */

/* Binds a Buffer of the statement to the whole of a tensor. */
static pln_status bind_buffer(pln_te_state *s, pln_term buffer, uint32_t tensor,
                              pln_ref *stmt) {
  uint32_t rank = pln_te_rank(s, tensor), n = 2 * rank;
  pln_term *bounds = pln_arena_new(&s->arena, (n + 1) * sizeof *bounds);
  pln_term both[2] = {buffer, pln_te_buffer(s, tensor)};
  if (!bounds)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < rank; i++) {
    bounds[2 * i + 1] = pln_te_dim(s, tensor, i);
    bounds[2 * i] = pln_term_int(s->a, PLN_INT32, 1, 0);
  }
  pln_term node = pln_te_array(s, 2, both);
  pln_term tuple = pln_te_call(s, "tvm_tuple", n, bounds);
  return pln_te_build_attr(s, node, "buffer_bind_scope", tuple, *stmt, stmt);
}

static pln_status provide_extern(pln_te_state *s, pln_te_nest *nest) {
  uint32_t stage = nest->stage;
  const pln_te_stage *g = &s->stages[stage];
  uint32_t n_outputs = g->n_tensors, n_inputs = (g->body.n - n_outputs) / 2;
  pln_term zero = pln_term_int(s->a, PLN_INT32, 1, 0);
  pln_ref stmt;
  PLN_TRY(pln_te_provide_loop_nests(s, nest, &stmt));
  PLN_TRY(pln_te_build_attr(s, zero, "extern_scope", zero, stmt, &stmt));
  for (uint32_t i = n_outputs; i-- > 0;)
    PLN_TRY(bind_buffer(s, s->stages[stage].body.items[n_inputs + i],
                        s->stages[stage].first_tensor + i, &stmt));
  for (uint32_t i = n_inputs; i-- > 0;) {
    pln_term read = s->stages[stage].body.items[n_inputs + n_outputs + i];
    PLN_TRY(bind_buffer(s, s->stages[stage].body.items[i],
                        pln_te_tensor_of(s, read), &stmt));
  }
  s->stages[stage].stmt = stmt;
  return PLN_OK;
}

pln_status pln_te_provide(pln_te_state *s, uint32_t stage, bool keep_trivial) {
  pln_te_nest nest = {.stage = stage, .keep_trivial = keep_trivial};
  switch (s->stages[stage].kind) {
  case PLN_TE_COMPUTE: return provide_compute(s, &nest);
  case PLN_TE_SCAN: return provide_scan(s, &nest);
  case PLN_TE_EXTERN: return provide_extern(s, &nest);
  default: return PLN_OK;
  }
}
