/* tir/script/parse/value.c: turns parsed values into PrimExprs, and matches the
 * dtypes of operands as TVM's operators do.
 *
 * Called by the other files of the parser. Python numbers take the dtype of the
 * other operand. */

#include "ir/tir/script/parse/parse.h"

pln_status pln_script_push_ref(pln_script_parser *p, pln_ref ref) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->refs, &p->cap_refs,
                       (size_t)p->n_refs + 1, sizeof *p->refs));
  p->refs[p->n_refs++] = ref;
  return PLN_OK;
}

pln_status pln_script_node(pln_script_parser *p, pln_prim spec, uint32_t first,
                           pln_ref *out) {
  spec.n = p->n_refs - first;
  spec.operands = spec.n ? p->refs + first : NULL;
  p->n_refs = first;
  return pln_build_prim(p->b, &spec, out);
}

pln_status pln_script_int(pln_script_parser *p, pln_type type, int64_t value,
                          pln_ref *out) {
  return pln_build_int_imm(p->b, type, value, out);
}

/* --------------------------------------------------------------- immediates */

static bool is_float(pln_dtype dtype) {
  switch (dtype) {
  case PLN_FLOAT16:
  case PLN_FLOAT32:
  case PLN_FLOAT64:
  case PLN_BFLOAT16:
  case PLN_FLOAT8_E4M3FN:
  case PLN_FLOAT8_E5M2: return true;
  default: return false;
  }
}

static pln_dtype dtype_of(const pln_script_parser *p, pln_type type) {
  return pln_type_get_kind(p->engine, type) == PLN_TYPE_PRIM
             ? pln_type_dtype(p->engine, type)
             : PLN_DTYPE_NONE;
}

static uint32_t lanes_of(const pln_script_parser *p, pln_type type) {
  return pln_type_get_kind(p->engine, type) == PLN_TYPE_PRIM
             ? pln_type_number(p->engine, type)
             : 1;
}

static pln_status scalar_of(pln_script_parser *p, pln_type type,
                            pln_type *out) {
  *out = type;
  return lanes_of(p, type) == 1
             ? PLN_OK
             : pln_type_prim(p->engine, dtype_of(p, type), 1, out);
}

/* An integer of the dtype of `hint`, which may be 0. */
static pln_status integer(pln_script_parser *p, int64_t value, pln_type hint,
                          pln_ref *out) {
  pln_type type = p->types[0];
  if (hint && dtype_of(p, hint) != PLN_DTYPE_NONE)
    PLN_TRY(scalar_of(p, hint, &type));
  else if (!pln_holds_int(PLN_INT32, value))
    PLN_TRY(pln_type_prim(p->engine, PLN_INT64, 1, &type));
  if (is_float(dtype_of(p, type)))
    return pln_build_float_imm(p->b, type, (double)value, out);
  return pln_build_int_imm(p->b, type, value, out);
}

static pln_status number(pln_script_parser *p, double value, pln_type hint,
                         pln_ref *out) {
  pln_type type = p->types[1];
  if (hint && is_float(dtype_of(p, hint)))
    PLN_TRY(scalar_of(p, hint, &type));
  return pln_build_float_imm(p->b, type, value, out);
}

static pln_status string(pln_script_parser *p, pln_slice text, pln_ref *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(p->engine, text, &symbol));
  return pln_build_string_imm(p->b, symbol, out);
}

/* ------------------------------------------------------------------ indices */

/* True if max is min + x; *out is x. */
static bool is_sum_of(const pln_script_parser *p, pln_ref min, pln_ref max,
                      pln_ref *out) {
  const pln_graph *g = p->b->graph;
  const pln_node *n = &g->nodes[max];
  if (n->kind != PLN_PRIM_ADD)
    return false;
  *out = g->operands[n->first + 1];
  return pln_same_expr(g, g->operands[n->first], min);
}

pln_status pln_script_extent(pln_script_parser *p, pln_ref min, pln_ref max,
                             pln_ref *out) {
  const pln_graph *g = p->b->graph;
  pln_script_value a = {.at = p->place}, b = {.at = p->place}, result = {0};
  if (pln_is_int(g, min, 0) && g->nodes[min].type == g->nodes[max].type) {
    *out = max;
    return PLN_OK;
  }
  if (is_sum_of(p, min, max, out))
    return PLN_OK;
  if (pln_same_expr(g, min, max))
    return integer(p, 0, g->nodes[min].type, out);
  pln_script_set_ref(&a, max);
  pln_script_set_ref(&b, min);
  PLN_TRY(pln_script_binary(p, PLN_PRIM_SUB, &a, &b, &result));
  *out = result.v.of.ref;
  return PLN_OK;
}

/* A slice as a Range. */
static pln_status slice_range(pln_script_parser *p,
                              const pln_script_value *slice, pln_ref *out) {
  const pln_script_value *part = &p->kept[slice->first];
  pln_ref min, max;
  if (part[2].kind != PLN_V_NONE)
    return pln_script_refuse(p, &part[2], "a region has no steps");
  if (part[1].kind == PLN_V_NONE)
    return pln_script_refuse(p, slice, "the end of this slice is missing");
  pln_script_value zero = {.kind = PLN_V_INT, .at = slice->at};
  const pln_script_value *low = part[0].kind == PLN_V_NONE ? &zero : &part[0];
  PLN_TRY(pln_script_match(p, low, &part[1], &min, &max));
  PLN_TRY(pln_script_extent(p, min, max, &max));
  PLN_TRY(pln_script_push_ref(p, min));
  PLN_TRY(pln_script_push_ref(p, max));
  return pln_script_node(p, (pln_prim){.kind = PLN_RANGE}, p->n_refs - 2, out);
}

/* An index as a Range. */
pln_status pln_script_index_range(pln_script_parser *p,
                                  const pln_script_value *part, pln_ref *out) {
  pln_ref min, one;
  if (part->kind == PLN_V_SLICE)
    return slice_range(p, part, out);
  PLN_TRY(pln_script_ref(p, part, 0, &min));
  PLN_TRY(integer(p, 1, pln_script_type_of(p, min), &one));
  PLN_TRY(pln_script_push_ref(p, min));
  PLN_TRY(pln_script_push_ref(p, one));
  return pln_script_node(p, (pln_prim){.kind = PLN_RANGE}, p->n_refs - 2, out);
}

pln_status pln_script_region(pln_script_parser *p,
                             const pln_script_value *value, pln_ref *out) {
  uint32_t first = p->n_refs;
  if (value->kind != PLN_V_INDEX || value->v.of.number)
    return pln_script_refuse(p, value, "a region of a buffer is expected");
  pln_script_value whole = *value;
  PLN_TRY(pln_script_push_ref(p, whole.v.of.ref));
  for (uint32_t i = 0; i < whole.n; i++) {
    pln_ref range;
    PLN_TRY(pln_script_index_range(p, &p->kept[whole.first + i], &range));
    PLN_TRY(pln_script_push_ref(p, range));
  }
  p->place = whole.at;
  p->place_size = whole.size;
  return pln_script_node(p, (pln_prim){.kind = PLN_BUFFER_REGION}, first, out);
}

/* a:b:step as a Ramp, which needs a constant number of lanes. */
static pln_status slice_ramp(pln_script_parser *p,
                             const pln_script_value *slice, pln_ref *out) {
  const pln_script_value *part = &p->kept[slice->first];
  const pln_graph *g = p->b->graph;
  pln_ref min, max, step, extent;
  pln_script_value zero = {.kind = PLN_V_INT, .at = slice->at};
  if (part[1].kind == PLN_V_NONE)
    return pln_script_refuse(p, slice, "the end of this slice is missing");
  PLN_TRY(pln_script_match(p, part[0].kind == PLN_V_NONE ? &zero : &part[0],
                           &part[1], &min, &max));
  pln_type type = g->nodes[min].type;
  if (part[2].kind == PLN_V_NONE)
    PLN_TRY(integer(p, 1, type, &step));
  else
    PLN_TRY(pln_script_ref(p, &part[2], type, &step));
  PLN_TRY(pln_script_extent(p, min, max, &extent));
  int64_t length =
      g->nodes[extent].kind == PLN_INT_IMM ? pln_node_int(g, extent) : 0;
  int64_t by = g->nodes[step].kind == PLN_INT_IMM ? pln_node_int(g, step) : 0;
  if (by == 0 || by == INT64_MIN || length == INT64_MIN || length / by < 1 ||
      length / by > UINT16_MAX)
    return pln_script_refuse(
        p, slice, "the number of elements of this slice must be a constant");
  uint32_t lanes = (uint32_t)(length / by + (length % by != 0));
  PLN_TRY(pln_script_push_ref(p, min));
  PLN_TRY(pln_script_push_ref(p, step));
  return pln_script_node(p, (pln_prim){.kind = PLN_RAMP, .data = lanes},
                         p->n_refs - 2, out);
}

/* The indices of an element, pushed on p->refs. */
pln_status pln_script_push_indices(pln_script_parser *p,
                                   const pln_script_value *value) {
  for (uint32_t i = 0; i < value->n; i++) {
    const pln_script_value *part = &p->kept[value->first + i];
    pln_ref ref;
    PLN_TRY(part->kind == PLN_V_SLICE ? slice_ramp(p, part, &ref)
                                      : pln_script_ref(p, part, 0, &ref));
    PLN_TRY(pln_script_push_ref(p, ref));
  }
  return PLN_OK;
}

/* The dtype of a producer is that of its first use; float32 by default. */
static pln_status producer_type(pln_script_parser *p, pln_ref producer,
                                pln_type hint, pln_type *out) {
  const pln_node *n = &p->b->graph->nodes[producer];
  const pln_script_value *known = pln_script_lookup(p, n->attrs);
  pln_script_value value;
  if (known && known->kind == PLN_V_PRODUCER && known->v.of.ref == producer &&
      known->v.of.type) {
    *out = known->v.of.type;
    return PLN_OK;
  }
  *out = hint ? hint : p->types[1];
  value = (pln_script_value){.kind = PLN_V_PRODUCER, .at = p->place};
  value.v.of.ref = producer;
  value.v.of.type = *out;
  uint32_t row = pln_idmap_get(p->names, n->attrs);
  if (row)
    p->bindings[row - 1].value = value;
  return PLN_OK;
}

static pln_status load(pln_script_parser *p, const pln_script_value *value,
                       pln_type hint, pln_ref *out) {
  pln_script_value whole = *value;
  uint32_t first = p->n_refs;
  pln_prim spec = {.kind = PLN_BUFFER_LOAD};
  if (whole.v.of.number) {
    spec.kind = PLN_PRODUCER_LOAD;
    PLN_TRY(producer_type(p, whole.v.of.ref, hint, &spec.type));
  }
  PLN_TRY(pln_script_push_ref(p, whole.v.of.ref));
  PLN_TRY(pln_script_push_indices(p, &whole));
  p->place = whole.at;
  p->place_size = whole.size;
  return pln_script_node(p, spec, first, out);
}

pln_status pln_script_ref(pln_script_parser *p, const pln_script_value *value,
                          pln_type hint, pln_ref *out) {
  p->place = value->at ? value->at : p->place;
  p->place_size = value->at ? value->size : p->place_size;
  switch ((pln_script_value_kind)value->kind) {
  case PLN_V_ERROR: return PLN_ERR_FORMAT;
  case PLN_V_INT: return integer(p, value->v.i, hint, out);
  case PLN_V_BOOL: return pln_build_int_imm(p->b, p->types[2], value->v.i, out);
  case PLN_V_FLOAT: return number(p, value->v.f, hint, out);
  case PLN_V_STRING: return string(p, value->v.s, out);
  case PLN_V_EXPR:
  case PLN_V_THREAD: *out = value->v.of.ref; return PLN_OK;
  case PLN_V_INDEX: return load(p, value, hint, out);
  case PLN_V_BUFFER:
    return pln_script_refuse(p, value,
                             "a buffer is not an expression; its elements are");
  default: return pln_script_refuse(p, value, "an expression is expected");
  }
}

/* --------------------------------------------------------------- arithmetic */

static pln_status broadcast(pln_script_parser *p, uint32_t lanes, pln_ref value,
                            pln_ref *out) {
  PLN_TRY(pln_script_push_ref(p, value));
  return pln_script_node(p, (pln_prim){.kind = PLN_BROADCAST, .data = lanes},
                         p->n_refs - 1, out);
}

/* An immediate of another dtype; *done false: it is none, or does not fit. */
static pln_status cast_imm(pln_script_parser *p, pln_type type, pln_ref value,
                           pln_ref *out, bool *done) {
  const pln_graph *g = p->b->graph;
  uint8_t kind = g->nodes[value].kind;
  bool floats = is_float(dtype_of(p, type));
  *done = kind == PLN_INT_IMM || (kind == PLN_FLOAT_IMM && floats);
  if (!*done)
    return PLN_OK;
  if (kind == PLN_FLOAT_IMM)
    return pln_build_float_imm(p->b, type, pln_node_float(g, value), out);
  int64_t i = pln_node_int(g, value);
  if (floats)
    return pln_build_float_imm(p->b, type, (double)i, out);
  *done = pln_holds_int(dtype_of(p, type), i);
  return *done ? pln_build_int_imm(p->b, type, i, out) : PLN_OK;
}

pln_status pln_script_cast(pln_script_parser *p, pln_type type, pln_ref value,
                           pln_ref *out) {
  pln_type from = pln_script_type_of(p, value), scalar;
  uint32_t lanes = lanes_of(p, type);
  bool done = false;
  *out = value;
  if (from == type)
    return PLN_OK;
  if (lanes > 1 && lanes_of(p, from) == 1) {
    PLN_TRY(scalar_of(p, type, &scalar));
    if (from != scalar)
      PLN_TRY(cast_imm(p, scalar, value, out, &done));
    if (from != scalar && !done) {
      PLN_TRY(pln_script_push_ref(p, value));
      PLN_TRY(pln_script_node(p,
                              (pln_prim){.kind = PLN_PRIM_CAST, .type = scalar},
                              p->n_refs - 1, out));
    }
    return broadcast(p, lanes, *out, out);
  }
  PLN_TRY(cast_imm(p, type, value, out, &done));
  if (done)
    return PLN_OK;
  PLN_TRY(pln_script_push_ref(p, value));
  return pln_script_node(p, (pln_prim){.kind = PLN_PRIM_CAST, .type = type},
                         p->n_refs - 1, out);
}

/* The dtype that values of two are brought to: a float's, else that of more
 * bits; of a signed and an unsigned one of as many bits the unsigned one. */
static pln_dtype common_dtype(pln_dtype a, pln_dtype b) {
  if (is_float(a) != is_float(b))
    return is_float(a) ? a : b;
  if (pln_dtype_bits(a) != pln_dtype_bits(b))
    return pln_dtype_bits(a) > pln_dtype_bits(b) ? a : b;
  return pln_is_signed(a) ? b : a;
}

static pln_status match_refs(pln_script_parser *p, pln_ref *x, pln_ref *y) {
  pln_type a = pln_script_type_of(p, *x), b = pln_script_type_of(p, *y), both;
  pln_dtype m = dtype_of(p, a), n = dtype_of(p, b);
  if (a == b || m == PLN_DTYPE_NONE || n == PLN_DTYPE_NONE)
    return PLN_OK;
  uint32_t lanes =
      lanes_of(p, a) > lanes_of(p, b) ? lanes_of(p, a) : lanes_of(p, b);
  PLN_TRY(
      pln_type_prim(p->engine, m == n ? m : common_dtype(m, n), lanes, &both));
  PLN_TRY(pln_script_cast(p, both, *x, x));
  return pln_script_cast(p, both, *y, y);
}

static bool is_literal(const pln_script_value *v) {
  return v->kind == PLN_V_INT || v->kind == PLN_V_FLOAT;
}

/* True for an element of a producer of unknown dtype. */
static bool is_untyped(const pln_script_value *v) {
  return v->kind == PLN_V_INDEX && v->v.of.number;
}

pln_status pln_script_match(pln_script_parser *p, const pln_script_value *a,
                            const pln_script_value *b, pln_ref *x, pln_ref *y) {
  pln_script_value second = *b;
  bool later = is_literal(a) || (is_untyped(a) && !is_untyped(b));
  if (later && !(is_literal(a) && is_literal(b))) {
    pln_script_value first = *a;
    PLN_TRY(pln_script_ref(
        p, b, is_untyped(b) && first.kind == PLN_V_INT ? p->types[0] : 0, y));
    PLN_TRY(pln_script_ref(p, &first, pln_script_type_of(p, *y), x));
    return match_refs(p, x, y);
  }
  pln_type hint = is_untyped(a) && b->kind == PLN_V_INT ? p->types[0] : 0;
  PLN_TRY(pln_script_ref(p, a, hint, x));
  PLN_TRY(pln_script_ref(p, &second, pln_script_type_of(p, *x), y));
  return match_refs(p, x, y);
}

/* Of two immediates, as TVM folds them; *done false: it does not. */
static pln_status fold_bits(pln_script_parser *p, const char *builtin,
                            pln_ref x, pln_ref y, pln_ref *out, bool *done) {
  const pln_graph *g = p->b->graph;
  *done = g->nodes[x].kind == PLN_INT_IMM && g->nodes[y].kind == PLN_INT_IMM;
  if (!*done)
    return PLN_OK;
  int64_t a = pln_node_int(g, x), b = pln_node_int(g, y), value = 0;
  bool shift = *builtin == 's';
  pln_dtype dtype = dtype_of(p, pln_script_type_of(p, x));
  if (shift && (b < 0 || b >= (int64_t)pln_dtype_bits(dtype)))
    return pln_script_fail_at(p, p->place, p->place_size,
                              "a shift by %lld of %u bits", (long long)b,
                              (unsigned)pln_dtype_bits(dtype));
  if (shift)
    value = builtin[6] == 'l' ? (int64_t)((uint64_t)a << b) : a >> b;
  else
    value = builtin[8] == 'a' ? (a & b) : builtin[8] == 'o' ? (a | b) : (a ^ b);
  *done = pln_holds_int(dtype, value);
  return *done ? pln_build_int_imm(p->b, pln_script_type_of(p, x), value, out)
               : PLN_OK;
}

pln_status pln_script_bitwise(pln_script_parser *p, const char *builtin,
                              const pln_script_value *a,
                              const pln_script_value *b,
                              pln_script_value *out) {
  const char *place = p->place;
  uint32_t size = p->place_size, first = p->n_refs;
  pln_ref x, y = PLN_NONE, ref;
  bool done = false;
  if (b)
    PLN_TRY(pln_script_match(p, a, b, &x, &y));
  else
    PLN_TRY(pln_script_ref(p, a, 0, &x));
  p->place = place;
  p->place_size = size;
  pln_dtype dtype = dtype_of(p, pln_script_type_of(p, x));
  if (is_float(dtype) || dtype == PLN_DTYPE_NONE)
    return pln_script_fail_at(p, place, size,
                              "T.%s is of integers and of bools", builtin);
  if (b)
    PLN_TRY(fold_bits(p, builtin, x, y, &ref, &done));
  pln_prim spec = {.kind = PLN_PRIM_CALL,
                   .data = pln_builtin_find(pln_text(builtin)),
                   .type = pln_script_type_of(p, x)};
  if (!done) {
    PLN_TRY(pln_script_push_ref(p, x));
    if (b)
      PLN_TRY(pln_script_push_ref(p, y));
    PLN_TRY(pln_script_node(p, spec, first, &ref));
  }
  pln_script_set_ref(out, ref);
  return PLN_OK;
}

pln_status pln_script_binary(pln_script_parser *p, pln_kind kind,
                             const pln_script_value *a,
                             const pln_script_value *b, pln_script_value *out) {
  const char *place = p->place;
  uint32_t size = p->place_size;
  pln_ref x, y, ref;
  PLN_TRY(pln_script_match(p, a, b, &x, &y));
  p->place = place;
  p->place_size = size;
  if (kind == PLN_PRIM_DIV && !is_float(dtype_of(p, pln_script_type_of(p, x))))
    return pln_script_fail_at(p, place, size,
                              "integers are divided by '//' or T.Div");
  PLN_TRY(pln_build_folded(p->b, kind, x, y, &ref));
  out->kind = PLN_V_EXPR;
  out->v.of.ref = ref;
  return PLN_OK;
}
