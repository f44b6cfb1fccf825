/* select.c: writes conversions, logic and selections.
 *
 * Called by expr.c and call.c. */

#include "codegen/writer.h"

static const pln_ref *operands_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

/* ------------------------------------------------------------- conversions */

static pln_c_text float_to_int(pln_cw *w, pln_dtype to, pln_c_text text) {
  pln_c_helper helper = to == PLN_UINT64 ? PLN_C_HELPER_TO_U64
                        : to == PLN_INT64 || to == PLN_UINT32
                            ? PLN_C_HELPER_TO_I64
                            : PLN_C_HELPER_TO_I32;
  const char *name = helper == PLN_C_HELPER_TO_U64   ? "u64"
                     : helper == PLN_C_HELPER_TO_I64 ? "i64"
                                                     : "i32";
  pln_c_use(w, helper, PLN_C_F64, 1);
  return pln_c_textf(w, PLN_C_COMPOUND, "(%s)pl_to_%s(%s)", pln_c_type_name(to),
                     name, text.data);
}

pln_c_text pln_c_cast_text(pln_cw *w, pln_dtype from, pln_dtype to,
                           pln_c_text text) {
  pln_c_text out = text;
  if (from == to)
    return text;
  if (to == PLN_BOOL)
    out = pln_c_textf(w, PLN_C_COMPOUND, "%s != 0", pln_c_arg(w, text));
  else if (pln_c_is_float(from) && !pln_c_is_float(to))
    out = float_to_int(w, to, text);
  else if (!pln_c_is_half(from) || to == PLN_FLOAT64)
    out = pln_c_textf(w, PLN_C_COMPOUND, "(%s)%s", pln_c_type_name(to),
                      pln_c_arg(w, text));
  if (pln_c_is_half(to))
    out = pln_c_rounded(w, to, out);
  out.reads = text.reads;
  return out;
}

static pln_c_text vector_cast(pln_cw *w, const pln_c_value *from, pln_dtype to,
                              uint32_t lanes, pln_c_text text) {
  pln_c_text out;
  if (to == PLN_BOOL) {
    const char *mask = pln_c_vector(
        w, pln_c_mask_type(pln_c_bytes((pln_dtype)from->dtype)), lanes, false);
    const char *zero =
        pln_c_vector(w, pln_c_type_of((pln_dtype)from->dtype), lanes, false);
    out = pln_c_textf(w, PLN_C_CALL, "((%s)(%s != (%s){0}))", mask,
                      pln_c_arg(w, text), zero);
  } else if (from->mask) {
    out = pln_c_textf(w, PLN_C_CALL, "__builtin_convertvector(%s & 1, %s)",
                      pln_c_arg(w, text),
                      pln_c_vector(w, pln_c_type_of(to), lanes, false));
  } else {
    out =
        pln_c_textf(w, PLN_C_CALL, "__builtin_convertvector(%s, %s)", text.data,
                    pln_c_vector(w, pln_c_type_of(to), lanes, false));
  }
  out.reads = text.reads;
  return out;
}

static pln_c_text cast_lanes(pln_cw *w, const pln_c_value *from, pln_dtype to,
                             uint32_t first, uint32_t lanes) {
  pln_c_text texts[64];
  for (uint32_t k = 0; k < lanes; k++)
    texts[k] = pln_c_cast_text(w, (pln_dtype)from->dtype, to,
                               pln_c_lane(w, from, first + k));
  return pln_c_chunk_from_lanes(w, to, 0, lanes, texts);
}

static void cast_chunks(pln_cw *w, pln_c_value from, pln_dtype to,
                        pln_c_value *out) {
  bool native = to == PLN_BOOL || !pln_c_is_float((pln_dtype)from.dtype) ||
                pln_c_is_float(to);
  uint32_t first = 0, n = pln_c_n_chunks(w, from.lanes);
  from = pln_c_plain(w, from);
  if (!native)
    from = pln_c_named(w, from);
  if (to == PLN_BOOL && w->width > 1)
    out->mask = (uint8_t)pln_c_bytes((pln_dtype)from.dtype);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t lanes = pln_c_chunk_lanes(w, from.lanes, i);
    pln_c_text text = pln_c_text_at(w, &from, i);
    pln_c_add_text(w, out,
                   lanes == 1
                       ? pln_c_cast_text(w, (pln_dtype)from.dtype, to, text)
                   : native ? vector_cast(w, &from, to, lanes, text)
                            : cast_lanes(w, &from, to, first, lanes));
    first += lanes;
  }
}

void pln_c_cast(pln_cw *w, pln_ref ref) {
  pln_c_value from = pln_c_value_of(w, operands_of(w, ref)[0]);
  pln_dtype to = pln_prim_dtype(w->g, ref);
  if (!from.dtype != !to) {
    pln_c_refuse(w, "a handle is not converted to a number");
    return;
  }
  if (from.dtype == to) {
    pln_c_set(w, ref, from);
    return;
  }
  bool scalar = from.lanes == 1 || from.form == PLN_C_SPLAT;
  pln_c_value out = pln_c_new_value(
      w, to, from.lanes, scalar && from.lanes > 1 ? PLN_C_SPLAT : PLN_C_PLAIN);
  if (scalar)
    pln_c_add_text(w, &out,
                   pln_c_cast_text(w, (pln_dtype)from.dtype, to,
                                   pln_c_text_at(w, &from, 0)));
  else
    cast_chunks(w, from, to, &out);
  if (pln_c_is_int(to) && pln_c_is_int((pln_dtype)from.dtype) &&
      from.dtype != PLN_UINT64 && from.lo >= out.lo && from.hi <= out.hi &&
      to != PLN_BOOL) {
    out.lo = from.lo;
    out.hi = from.hi;
  }
  pln_c_set(w, ref, out);
}

/* ------------------------------------------------------------------- masks */

pln_c_value pln_c_mask_as(pln_cw *w, pln_c_value value, uint32_t mask) {
  pln_c_value out = value;
  if (!value.mask || value.mask == mask)
    return value;
  out.count = 0;
  out.mask = (uint8_t)mask;
  for (uint32_t i = 0; i < value.count; i++) {
    uint32_t lanes = pln_c_chunk_lanes(w, value.lanes, i);
    pln_c_text text = pln_c_text_at(w, &value, i), as = text;
    if (lanes > 1) {
      as = pln_c_textf(w, PLN_C_CALL, "__builtin_convertvector(%s, %s)",
                       text.data,
                       pln_c_vector(w, pln_c_mask_type(mask), lanes, false));
      as.reads = text.reads;
    }
    pln_c_add_text(w, &out, as);
  }
  return out;
}

/* Both operands as masks of one size, or scalars. */
static uint32_t same_masks(pln_cw *w, pln_c_value *a, pln_c_value *b) {
  *a = pln_c_plain(w, *a);
  *b = pln_c_plain(w, *b);
  uint32_t mask = a->mask > b->mask ? a->mask : b->mask;
  *a = pln_c_mask_as(w, *a, mask);
  *b = pln_c_mask_as(w, *b, mask);
  return mask;
}

static bool is_one(const pln_c_value *value) {
  return value->lanes == 1 || value->form == PLN_C_SPLAT;
}

static void logic2(pln_cw *w, pln_ref ref, const char *scalar,
                   const char *vector) {
  const pln_ref *o = operands_of(w, ref);
  pln_c_value a = pln_c_value_of(w, o[0]), b = pln_c_value_of(w, o[1]);
  bool one = is_one(&a) && is_one(&b);
  pln_c_value out = pln_c_new_value(
      w, PLN_BOOL, a.lanes, one && a.lanes > 1 ? PLN_C_SPLAT : PLN_C_PLAIN);
  uint32_t mask = one ? 0 : same_masks(w, &a, &b);
  out.mask = (uint8_t)mask;
  for (uint32_t i = 0; i < (one ? 1 : a.count); i++) {
    pln_c_text x = pln_c_text_at(w, &a, i), y = pln_c_text_at(w, &b, i);
    bool is_vector = mask && pln_c_chunk_lanes(w, a.lanes, i) > 1;
    pln_c_text text =
        pln_c_textf(w, PLN_C_COMPOUND, "%s %s %s", pln_c_arg(w, x),
                    is_vector ? vector : scalar, pln_c_arg(w, y));
    text.reads = x.reads || y.reads;
    pln_c_add_text(w, &out, text);
  }
  pln_c_set(w, ref, out);
}

static void negation(pln_cw *w, pln_ref ref) {
  pln_c_value a = pln_c_value_of(w, operands_of(w, ref)[0]);
  pln_c_value out = a;
  out.count = 0;
  out.lo = 0;
  out.hi = 1;
  for (uint32_t i = 0; i < a.count; i++) {
    pln_c_text x = pln_c_text_at(w, &a, i);
    bool is_vector = a.mask && pln_c_chunk_lanes(w, a.lanes, i) > 1;
    pln_c_text text = pln_c_textf(w, PLN_C_COMPOUND, is_vector ? "~%s" : "!%s",
                                  pln_c_arg(w, x));
    text.reads = x.reads;
    pln_c_add_text(w, &out, text);
  }
  pln_c_set(w, ref, out);
}

void pln_c_logic(pln_cw *w, pln_ref ref) {
  switch ((int)w->g->nodes[ref].kind) {
  case PLN_PRIM_AND: logic2(w, ref, "&&", "&"); break;
  case PLN_PRIM_OR: logic2(w, ref, "||", "|"); break;
  default: negation(w, ref);
  }
}

/* --------------------------------------------------------------- selection */

static pln_c_text select_chunk(pln_cw *w, const pln_c_value *out,
                               uint32_t lanes, pln_c_text c, pln_c_text a,
                               pln_c_text b) {
  pln_c_text text;
  if (lanes == 1 || !c.size) {
    text = pln_c_textf(w, PLN_C_COMPOUND, "%s ? %s : %s", pln_c_arg(w, c),
                       pln_c_arg(w, a), pln_c_arg(w, b));
  } else {
    pln_c_type type = out->mask ? pln_c_mask_type(out->mask)
                                : pln_c_type_of((pln_dtype)out->dtype);
    pln_c_use(w, PLN_C_HELPER_VECTOR_SELECT, type, lanes);
    text = pln_c_textf(w, PLN_C_CALL, "pl_select_%sx%u(%s, %s, %s)",
                       pln_c_short_name(type), lanes, c.data, a.data, b.data);
  }
  text.reads = a.reads || b.reads || c.reads;
  return text;
}

/* A condition for all lanes. C wants operands of one type: a vector that is
 * loaded has that of vectors in memory. */
static pln_c_text one_condition(pln_cw *w, const pln_c_value *out,
                                uint32_t lanes, pln_c_text c, pln_c_text a,
                                pln_c_text b) {
  const char *type =
      pln_c_chunk_type(w, (pln_dtype)out->dtype, out->mask, lanes);
  pln_c_text text =
      lanes == 1
          ? pln_c_textf(w, PLN_C_COMPOUND, "%s ? %s : %s", pln_c_arg(w, c),
                        pln_c_arg(w, a), pln_c_arg(w, b))
          : pln_c_textf(w, PLN_C_COMPOUND, "%s ? (%s)%s : (%s)%s",
                        pln_c_arg(w, c), type, pln_c_arg(w, a), type,
                        pln_c_arg(w, b));
  text.reads = a.reads || b.reads || c.reads;
  return text;
}

static void select_chunks(pln_cw *w, pln_c_value c, pln_c_value a,
                          pln_c_value b, pln_c_value *out) {
  uint32_t mask = 0;
  bool one = is_one(&c);
  if (out->dtype == PLN_BOOL)
    mask = same_masks(w, &a, &b);
  a = pln_c_plain(w, a);
  b = pln_c_plain(w, b);
  out->mask = (uint8_t)mask;
  if (!one) {
    c = pln_c_plain(w, c);
    c = pln_c_mask_as(w, c, mask ? mask : pln_c_bytes((pln_dtype)out->dtype));
  }
  for (uint32_t i = 0; i < a.count; i++) {
    pln_c_text x = pln_c_text_at(w, &a, i), y = pln_c_text_at(w, &b, i);
    pln_c_text z = pln_c_text_at(w, &c, one ? 0 : i);
    uint32_t lanes = pln_c_chunk_lanes(w, out->lanes, i);
    pln_c_add_text(w, out,
                   one ? one_condition(w, out, lanes, z, x, y)
                       : select_chunk(w, out, lanes, z, x, y));
  }
}

static void select_values(pln_cw *w, pln_ref ref, pln_c_value c, pln_c_value a,
                          pln_c_value b) {
  bool one = is_one(&c) && is_one(&a) && is_one(&b);
  pln_c_value out =
      pln_c_new_value(w, pln_prim_dtype(w->g, ref), a.lanes,
                      one && a.lanes > 1 ? PLN_C_SPLAT : PLN_C_PLAIN);
  if (one && c.lanes > 1)
    c = pln_c_named(w, c);
  if (one)
    pln_c_add_text(w, &out,
                   one_condition(w, &out, 1, pln_c_text_at(w, &c, 0),
                                 pln_c_text_at(w, &a, 0),
                                 pln_c_text_at(w, &b, 0)));
  else
    select_chunks(w, is_one(&c) ? pln_c_named(w, c) : c, a, b, &out);
  if (pln_c_is_int((pln_dtype)out.dtype) && out.dtype != PLN_BOOL &&
      out.dtype != PLN_UINT64) {
    out.lo = a.lo < b.lo ? a.lo : b.lo;
    out.hi = a.hi > b.hi ? a.hi : b.hi;
  }
  pln_c_set(w, ref, out);
}

void pln_c_select(pln_cw *w, pln_ref ref, const pln_ref *o) {
  select_values(w, ref, pln_c_value_of(w, o[0]), pln_c_value_of(w, o[1]),
                pln_c_value_of(w, o[2]));
}

/* ---------------------------------------------------------- masked selection
 */

bool pln_c_is_masked(const pln_cw *w, pln_ref ref) {
  const pln_ref *o = operands_of(w, ref);
  return pln_prim_lanes(w->g, o[0]) > 1 && (w->unsafe[o[1]] || w->unsafe[o[2]]);
}

void pln_c_visit_masked(pln_cw *w, pln_ref ref) {
  pln_c_push(w, (pln_c_task){.what = PLN_C_MASKED, .ref = ref});
  pln_c_push_expr(w, operands_of(w, ref)[0]);
}

static void enter_condition(pln_cw *w, pln_c_value value, bool negated) {
  pln_c_condition *inner = pln_arena_new(&w->arena, sizeof *inner);
  if (!inner) {
    pln_c_fail(w, pln_nomem(w->engine));
    return;
  }
  *inner = (pln_c_condition){value, negated, w->condition};
  w->condition = inner;
}

static void leave_condition(pln_cw *w, uint32_t mark) {
  if (w->condition)
    w->condition = w->condition->outer;
  pln_c_forget(w, mark);
}

/* Operand k was written. What was computed for some lanes only is forgotten. */
void pln_c_masked_task(pln_cw *w, pln_c_task task) {
  const pln_ref *o = operands_of(w, task.ref);
  if (task.k == 0) {
    pln_c_value value = pln_c_value_of(w, o[0]);
    task.x = pln_c_keep(w, pln_c_named(w, pln_c_plain(w, value)));
    task.mark = w->n_log;
  } else {
    pln_c_value value = pln_c_value_of(w, o[task.k]);
    leave_condition(w, task.mark);
    if (task.k == 1)
      task.first = pln_c_keep(w, value);
    else if (w->status == PLN_OK)
      select_values(w, task.ref, w->values[task.x - 1],
                    w->values[task.first - 1], value);
  }
  if (++task.k > 2 || w->status != PLN_OK)
    return;
  enter_condition(w, w->values[task.x - 1], task.k == 2);
  pln_c_push(w, task);
  pln_c_push_expr(w, o[task.k]);
}
