/* terms.c: expressions of operations, as terms: substitution without folding,
 * the tensors that are read, and the parts of reductions.
 *
 * Used by the primitives that change operations, and by lowering. */

#include "te/te.h"

static bool make_room(pln_te_state *s, pln_term t) {
  uint32_t old = s->cap_image_at;
  pln_status status = pln_mem_grow(s->engine, (void **)&s->image, &s->cap_image,
                                   (size_t)t + 1, sizeof *s->image);
  if (status == PLN_OK)
    status = pln_mem_grow(s->engine, (void **)&s->image_at, &s->cap_image_at,
                          (size_t)t + 1, sizeof *s->image_at);
  if (status != PLN_OK) {
    pln_arith_fail(s->a, status);
    return false;
  }
  if (s->cap_image_at > old)
    memset(s->image_at + old, 0, (s->cap_image_at - old) * sizeof *s->image_at);
  return true;
}

static void set_image(pln_te_state *s, pln_term t, pln_term image) {
  s->image[t] = image;
  s->image_at[t] = s->image_stamp;
}

/* What was left out of a walk is its own image. */
static pln_term image_of(const pln_te_state *s, pln_term t) {
  return s->image_at[t] == s->image_stamp ? s->image[t] : t;
}

/* A node with the images of its operands. */
static pln_term rebuild(pln_te_state *s, pln_term t, bool lower) {
  pln_term few[16], *operands = few;
  pln_term_node n = *pln_at(s->a, t);
  bool changed = false;
  if (n.n > PLN_COUNT(few))
    operands = pln_mem_new(s->engine, n.n * sizeof *operands);
  if (!operands)
    return pln_arith_fail(s->a, pln_nomem(s->engine));
  for (uint32_t i = 0; i < n.n; i++) {
    pln_term old = pln_term_operand(s->a, t, i);
    operands[i] = image_of(s, old);
    changed |= operands[i] != old;
  }
  pln_term out = t;
  if (lower && n.kind == PLN_PRODUCER_LOAD) {
    n.kind = PLN_BUFFER_LOAD;
    n.a = n.n > 0 ? operands[0] : 0;
    n.b = n.n > 1 ? operands[1] : 0;
    n.c = n.n > 2 ? operands[2] : 0;
    out = pln_term_intern(s->a, &n, operands);
  } else if (changed) {
    out = pln_term_with(s->a, t, operands);
  }
  if (operands != few)
    pln_mem_free(s->engine, operands, n.n * sizeof *operands);
  return out;
}

static pln_term substitute(pln_te_state *s, pln_term t, uint32_t n,
                           const pln_term *from, const pln_term *to, bool lower,
                           const pln_term_marks *left_out) {
  pln_term_list order;
  if (!t || !make_room(s, t) ||
      !pln_term_order_unmarked(s->a, t, left_out, &order))
    return PLN_NO_TERM;
  s->image_stamp++;
  for (uint32_t i = 0; i < n; i++)
    if (from[i] <= t)
      set_image(s, from[i], to[i]);
  bool ok = true;
  for (uint32_t i = 0; ok && i < order.n; i++) {
    pln_term item = order.items[i];
    if (s->image_at[item] == s->image_stamp)
      continue;
    pln_term image = rebuild(s, item, lower);
    set_image(s, item, image);
    ok = image != PLN_NO_TERM;
  }
  pln_term_list_free(s->a, &order);
  return ok ? image_of(s, t) : PLN_NO_TERM;
}

pln_term pln_te_substitute(pln_te_state *s, pln_term t, uint32_t n,
                           const pln_term *from, const pln_term *to,
                           bool lower) {
  static const pln_term_marks none = {0};
  return substitute(s, t, n, from, to, lower, &none);
}

pln_term pln_te_replace_loads(pln_te_state *s, pln_term t, uint32_t n,
                              const pln_term *from, const pln_term *to) {
  return substitute(s, t, n, from, to, false, &s->loadless);
}

static bool reads_nothing(const pln_te_state *s, pln_term t) {
  if (pln_term_kind(s->a, t) == PLN_PRODUCER_LOAD)
    return false;
  for (uint32_t i = 0; i < pln_at(s->a, t)->n; i++)
    if (!pln_term_is_marked(&s->loadless, pln_term_operand(s->a, t, i)))
      return false;
  return true;
}

pln_status pln_te_each_load(pln_te_state *s, pln_term t, pln_te_load_fn fn,
                            void *ud) {
  pln_term_list order;
  pln_status status = PLN_OK;
  PLN_TRY(pln_term_marks_grow(s->a, &s->loadless));
  if (!pln_term_order_unmarked(s->a, t, &s->loadless, &order))
    return s->a->status;
  for (uint32_t i = 0; status == PLN_OK && i < order.n; i++) {
    pln_term item = order.items[i];
    if (reads_nothing(s, item))
      pln_term_mark(&s->loadless, item);
    else if (pln_term_kind(s->a, item) == PLN_PRODUCER_LOAD)
      status = fn(ud, s, item);
  }
  pln_term_list_free(s->a, &order);
  return status;
}

/* A node with `n` operands, whatever their number. */
static pln_term intern(pln_te_state *s, pln_term_node node, uint32_t n,
                       const pln_term *operands) {
  if (n > UINT16_MAX)
    return pln_arith_fail(
        s->a, pln_diag_error(s->engine, PLN_ERR_LIMIT, NULL,
                             "te: an expression has too many operands"));
  node.n = (uint16_t)n;
  for (uint32_t i = 0; i < n; i++)
    if (!operands[i])
      return PLN_NO_TERM;
  if (n <= 3) {
    node.a = n > 0 ? operands[0] : 0;
    node.b = n > 1 ? operands[1] : 0;
    node.c = n > 2 ? operands[2] : 0;
  }
  return pln_term_intern(s->a, &node, operands);
}

pln_term pln_te_load(pln_te_state *s, uint32_t tensor,
                     const pln_term *indices) {
  return pln_te_load_buffer(s, s->tensors[tensor].buffer, indices);
}

pln_term pln_te_load_buffer(pln_te_state *s, pln_term buffer,
                            const pln_term *indices) {
  pln_term few[17], *operands = few;
  uint32_t rank = pln_at(s->a, buffer)->count;
  pln_type type = pln_at(s->a, buffer)->type;
  pln_term_node node = {.kind = PLN_PRODUCER_LOAD,
                        .dtype = (uint8_t)pln_type_dtype(s->engine, type),
                        .lanes = (uint16_t)pln_type_number(s->engine, type),
                        .type = type};
  if (rank + 1 > PLN_COUNT(few))
    operands = pln_arena_new(&s->arena, (rank + 1) * sizeof *operands);
  if (!operands)
    return pln_arith_fail(s->a, pln_nomem(s->engine));
  operands[0] = buffer;
  memcpy(operands + 1, indices, rank * sizeof *operands);
  return intern(s, node, rank + 1, operands);
}

pln_term pln_te_iter_var(pln_te_state *s, uint32_t axis) {
  const pln_te_axis *x = &s->axes[axis];
  pln_term_node range = {.kind = PLN_RANGE}, node = {.kind = PLN_ITER_VAR};
  const pln_term_node *var = pln_at(s->a, x->var);
  range.dtype = node.dtype = var->dtype;
  range.lanes = node.lanes = 1;
  range.type = node.type = var->type;
  node.u.data = x->type;
  if (x->tag) {
    pln_symbol key;
    pln_attrs attrs;
    pln_status status =
        pln_symbol_intern(s->engine, (pln_slice){"thread_tag", 10}, &key);
    pln_attr entry = {.name = key, .kind = PLN_ATTR_STRING};
    entry.v.s = pln_symbol_text(s->engine, x->tag);
    if (status == PLN_OK)
      status = pln_attrs_make(s->engine, 1, &entry, &attrs);
    if (status != PLN_OK)
      return pln_arith_fail(s->a, status);
    node.u.data |= (uint64_t)attrs << 32;
  }
  pln_term operands[] = {x->var, PLN_NO_TERM};
  pln_term ends[] = {x->min, x->extent};
  if (x->extent)
    operands[1] = intern(s, range, 2, ends);
  return intern(s, node, x->extent ? 2 : 1, operands);
}

pln_term pln_te_call(pln_te_state *s, const char *builtin, uint32_t n,
                     const pln_term *args) {
  pln_term_node node = {.kind = PLN_PRIM_CALL, .lanes = 1};
  node.u.data = pln_builtin_find((pln_slice){builtin, strlen(builtin)});
  pln_status status = pln_type_prim(s->engine, PLN_DTYPE_NONE, 1, &node.type);
  return status == PLN_OK ? intern(s, node, n, args)
                          : pln_arith_fail(s->a, status);
}

pln_term pln_te_array(pln_te_state *s, uint32_t n, const pln_term *items) {
  pln_term_node node = {.kind = PLN_PRIM_ARRAY, .lanes = 1};
  return intern(s, node, n, items);
}

pln_term pln_te_likely(pln_te_state *s, pln_term condition) {
  pln_term_node node = {.kind = PLN_PRIM_CALL, .dtype = PLN_BOOL, .lanes = 1};
  if (!condition || pln_is_const(s->a, condition))
    return condition;
  node.type = 0;
  node.u.data = pln_builtin_find((pln_slice){"likely", 6});
  pln_status status = pln_type_prim(s->engine, PLN_BOOL, 1, &node.type);
  if (status != PLN_OK)
    return pln_arith_fail(s->a, status);
  return intern(s, node, 1, &condition);
}

/* -------------------------------------------------------------- reductions */

pln_te_reduce pln_te_reduce_of(const pln_te_state *s, pln_term t) {
  const pln_term_node *n = pln_at(s->a, t);
  pln_te_reduce r = {.combiner = pln_term_operand(s->a, t, 0),
                     .condition = pln_term_operand(s->a, t, 1),
                     .index = (uint32_t)n->u.data,
                     .n_inits = n->count};
  r.n_sources = pln_at(s->a, r.combiner)->n / 4;
  r.source = 2;
  r.init = r.source + r.n_sources;
  r.axis = r.init + r.n_inits;
  r.n_axes = n->n - r.axis;
  return r;
}

pln_term pln_te_reduce_new(pln_te_state *s, pln_term like, uint32_t n_sources,
                           const pln_term *sources, uint32_t n_inits,
                           const pln_term *inits, uint32_t n_axes,
                           const uint32_t *axes, pln_term condition,
                           uint32_t index) {
  pln_term_node node = *pln_at(s->a, like);
  uint32_t n = 2 + n_sources + n_inits + n_axes;
  pln_term *operands = pln_arena_new(&s->arena, n * sizeof *operands);
  if (!operands)
    return pln_arith_fail(s->a, pln_nomem(s->engine));
  operands[0] = pln_term_operand(s->a, like, 0);
  operands[1] = condition;
  memcpy(operands + 2, sources, n_sources * sizeof *operands);
  if (n_inits)
    memcpy(operands + 2 + n_sources, inits, n_inits * sizeof *operands);
  for (uint32_t i = 0; i < n_axes; i++)
    operands[2 + n_sources + n_inits + i] = pln_te_iter_var(s, axes[i]);
  node.count = (uint16_t)n_inits;
  node.u.data = (node.u.data >> 32 << 32) | index;
  /* The value's dtype is that of its source. */
  const pln_term_node *source = pln_at(s->a, sources[index]);
  node.dtype = source->dtype;
  pln_status status =
      pln_type_prim(s->engine, (pln_dtype)source->dtype, 1, &node.type);
  if (status != PLN_OK)
    return pln_arith_fail(s->a, status);
  return intern(s, node, n, operands);
}
