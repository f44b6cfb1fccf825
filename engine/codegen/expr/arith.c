/* arith.c: writes arithmetic, comparisons, conversions and selections.
 *
 * Called by expr.c. Every operation has the result that the interpreter of
 * loops has: integers wrap, a division by zero gives 0, min and max are x < y ?
 * x : y, halves are rounded after each operation. */

#include "codegen/bounds.h"
#include "codegen/writer.h"

static const pln_ref *operands_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static pln_c_text with_reads(pln_c_text text, pln_c_text a, pln_c_text b) {
  text.reads = a.reads || b.reads;
  return text;
}

/* ---------------------------------------------------------------- scalars */

/* An operation of two operands while its chunks are written. */
typedef struct binary {
  pln_kind kind;
  pln_dtype dtype; /* of the operands */
  bool fits;       /* no result leaves the dtype */
  const pln_c_value *a, *b;
} binary;

static const char *symbol_of(pln_kind kind) {
  static const char *const symbols[] = {
      "+", "-",  "*",  "/", "%",  "/", "%", "",
      "",  "==", "!=", "<", "<=", ">", ">="};
  return symbols[kind - PLN_PRIM_ADD];
}

pln_c_text pln_c_rounded(pln_cw *w, pln_dtype dtype, pln_c_text text) {
  bool half = dtype == PLN_FLOAT16;
  if (!pln_c_is_half(dtype))
    return text;
  pln_c_use(w, half ? PLN_C_HELPER_ROUND_HALF : PLN_C_HELPER_ROUND_BFLOAT,
            PLN_C_F32, 1);
  pln_c_use(w, half ? PLN_C_HELPER_TO_HALF : PLN_C_HELPER_TO_BFLOAT, PLN_C_F32,
            1);
  pln_c_use(w, half ? PLN_C_HELPER_FROM_HALF : PLN_C_HELPER_FROM_BFLOAT,
            PLN_C_F32, 1);
  pln_c_text out = pln_c_textf(w, PLN_C_CALL, "pl_round_%s(%s)",
                               half ? "half" : "bfloat", text.data);
  out.reads = text.reads;
  return out;
}

static pln_c_text plain_op(pln_cw *w, pln_kind kind, pln_c_text a,
                           pln_c_text b) {
  return pln_c_textf(w, PLN_C_COMPOUND, "%s %s %s", pln_c_arg(w, a),
                     symbol_of(kind), pln_c_arg(w, b));
}

/* A helper of two operands of the type. */
static pln_c_text helper_op(pln_cw *w, pln_c_helper helper, const char *name,
                            pln_c_type type, pln_c_text a, pln_c_text b) {
  pln_c_use(w, helper, type, 1);
  return pln_c_textf(w, PLN_C_CALL, "pl_%s_%s(%s, %s)", name,
                     pln_c_short_name(type), a.data, b.data);
}

static pln_c_text float_op(pln_cw *w, const binary *op, pln_c_text a,
                           pln_c_text b) {
  bool twice = op->dtype == PLN_FLOAT64;
  pln_c_type type = twice ? PLN_C_F64 : PLN_C_F32;
  const char *f = twice ? "" : "f";
  switch ((int)op->kind) {
  case PLN_PRIM_MIN: return helper_op(w, PLN_C_HELPER_MIN, "min", type, a, b);
  case PLN_PRIM_MAX: return helper_op(w, PLN_C_HELPER_MAX, "max", type, a, b);
  case PLN_PRIM_MOD:
    return pln_c_textf(w, PLN_C_CALL, "fmod%s(%s, %s)", f, a.data, b.data);
  case PLN_PRIM_FLOORDIV:
    return pln_c_textf(w, PLN_C_CALL, "floor%s(%s / %s)", f, pln_c_arg(w, a),
                       pln_c_arg(w, b));
  case PLN_PRIM_FLOORMOD:
    return helper_op(
        w, twice ? PLN_C_HELPER_FLOORMOD_F64 : PLN_C_HELPER_FLOORMOD_F32,
        "floormod", type, a, b);
  default: return plain_op(w, op->kind, a, b);
  }
}

/* The type in which a dtype is divided. */
static pln_c_type divide_type(pln_dtype dtype) {
  if (dtype == PLN_INT32)
    return PLN_C_I32;
  if (dtype == PLN_UINT64 || dtype == PLN_UINT32)
    return pln_c_type_of(dtype);
  return pln_is_signed(dtype) && dtype != PLN_BOOL ? PLN_C_I64 : PLN_C_U32;
}

static bool divides_plainly(const binary *op) {
  bool floors = op->kind == PLN_PRIM_FLOORDIV || op->kind == PLN_PRIM_FLOORMOD;
  if (op->b->lo <= 0)
    return false;
  return floors ? op->a->lo >= 0 : true;
}

/* k if the divisor is 2^k, else -1. */
static int32_t power_of(const binary *op) {
  int64_t value;
  if (!pln_c_is_const(op->b, &value) || value <= 0 || (value & (value - 1)))
    return -1;
  return __builtin_ctzll((unsigned long long)value);
}

static void check_divisor(pln_cw *w, const binary *op, pln_c_text b) {
  if (w->options->asserts && op->b->lo <= 0 && op->b->hi >= 0) {
    pln_c_line(w, "if (%s == 0)", pln_c_arg(w, b));
    pln_c_line(w, "  return %d;", PLN_C_DIVISION);
  }
}

static pln_c_text divide_op(pln_cw *w, const binary *op, pln_c_text a,
                            pln_c_text b) {
  static const char *const names[] = {"div", "mod", "floordiv", "floormod"};
  static const pln_c_helper helpers[] = {PLN_C_HELPER_DIV, PLN_C_HELPER_MOD,
                                         PLN_C_HELPER_FLOORDIV,
                                         PLN_C_HELPER_FLOORMOD};
  uint32_t which = op->kind - PLN_PRIM_DIV;
  pln_c_type type = divide_type(op->dtype);
  int32_t power = power_of(op);
  if (divides_plainly(op))
    return plain_op(w, op->kind, a, b);
  if (which == 2 && power >= 0)
    return pln_c_textf(w, PLN_C_COMPOUND, "%s >> %d", pln_c_arg(w, a), power);
  if (which == 3 && power >= 0)
    return pln_c_textf(w, PLN_C_COMPOUND, "%s & %lld", pln_c_arg(w, a),
                       (long long)op->b->lo - 1);
  if (w->options->asserts)
    b = pln_c_name(w, pln_c_type_name(op->dtype), b);
  check_divisor(w, op, b);
  if (type == PLN_C_U32 || type == PLN_C_U64)
    return helper_op(w, which & 1 ? PLN_C_HELPER_MODU : PLN_C_HELPER_DIVU,
                     which & 1 ? "modu" : "divu", type, a, b);
  return helper_op(w, helpers[which], names[which], type, a, b);
}

static pln_c_text int_op(pln_cw *w, const binary *op, pln_c_text a,
                         pln_c_text b) {
  bool sums = op->kind <= PLN_PRIM_MUL;
  pln_c_text out;
  if (op->kind == PLN_PRIM_MIN)
    return helper_op(w, PLN_C_HELPER_MIN, "min", pln_c_type_of(op->dtype), a,
                     b);
  if (op->kind == PLN_PRIM_MAX)
    return helper_op(w, PLN_C_HELPER_MAX, "max", pln_c_type_of(op->dtype), a,
                     b);
  if (op->kind >= PLN_PRIM_EQ)
    return plain_op(w, op->kind, a, b);
  if (sums && !op->fits && op->dtype != PLN_BOOL) {
    const char *wide = pln_c_bytes(op->dtype) > 4 ? "uint64_t" : "uint32_t";
    return pln_c_textf(w, PLN_C_COMPOUND, "(%s)((%s)%s %s (%s)%s)",
                       pln_c_type_name(op->dtype), wide, pln_c_arg(w, a),
                       symbol_of(op->kind), wide, pln_c_arg(w, b));
  }
  out = sums ? plain_op(w, op->kind, a, b) : divide_op(w, op, a, b);
  if (op->fits)
    return out;
  if (op->dtype == PLN_BOOL)
    return pln_c_textf(w, PLN_C_COMPOUND, "(%s) != 0", out.data);
  return pln_c_bytes(op->dtype) < 4
             ? pln_c_textf(w, PLN_C_COMPOUND, "(%s)(%s)",
                           pln_c_type_name(op->dtype), out.data)
             : out;
}

static pln_c_text scalar_op(pln_cw *w, const binary *op, pln_c_text a,
                            pln_c_text b) {
  pln_c_text out;
  if (!op->dtype) /* handles are compared */
    out = plain_op(w, op->kind, a, b);
  else if (!pln_c_is_float(op->dtype))
    out = int_op(w, op, a, b);
  else
    out = float_op(w, op, a, b);
  if (op->kind < PLN_PRIM_MIN)
    out = pln_c_rounded(w, op->dtype, out);
  return with_reads(out, a, b);
}

/* ---------------------------------------------------------------- vectors */

/* True of operations that C has for vectors. */
static bool is_native(const binary *op) {
  bool is_float = pln_c_is_float(op->dtype);
  switch ((int)op->kind) {
  case PLN_PRIM_DIV: return is_float;
  case PLN_PRIM_MOD: return false;
  case PLN_PRIM_FLOORDIV:
  case PLN_PRIM_FLOORMOD: return !is_float && power_of(op) >= 0;
  default: return op->dtype != PLN_BOOL;
  }
}

static pln_c_text vector_op(pln_cw *w, const binary *op, uint32_t lanes,
                            pln_c_text a, pln_c_text b) {
  pln_c_type type = pln_c_type_of(op->dtype);
  const char *v = pln_c_vector(w, type, lanes, false);
  bool is_min = op->kind == PLN_PRIM_MIN, is_float = pln_c_is_float(op->dtype);
  if (is_min || op->kind == PLN_PRIM_MAX) {
    pln_c_use(w, is_min ? PLN_C_HELPER_VECTOR_MIN : PLN_C_HELPER_VECTOR_MAX,
              type, lanes);
    return pln_c_textf(w, PLN_C_CALL, "pl_%s_%sx%u(%s, %s)",
                       is_min ? "min" : "max", pln_c_short_name(type), lanes,
                       a.data, b.data);
  }
  if (op->kind >= PLN_PRIM_EQ) {
    uint32_t bytes = pln_c_bytes(op->dtype);
    return pln_c_textf(w, PLN_C_CALL, "((%s)(%s %s %s))",
                       pln_c_vector(w, pln_c_mask_type(bytes), lanes, false),
                       pln_c_arg(w, a), symbol_of(op->kind), pln_c_arg(w, b));
  }
  if (op->kind == PLN_PRIM_FLOORDIV)
    return pln_c_textf(w, PLN_C_COMPOUND, "%s >> %d", pln_c_arg(w, a),
                       power_of(op));
  if (op->kind == PLN_PRIM_FLOORMOD) {
    pln_c_use(w, PLN_C_HELPER_VECTOR_SPLAT, type, lanes);
    return pln_c_textf(w, PLN_C_COMPOUND, "%s & pl_splat_%sx%u(%lld)",
                       pln_c_arg(w, a), pln_c_short_name(type), lanes,
                       (long long)op->b->lo - 1);
  }
  if (is_float || op->fits || !pln_is_signed(op->dtype))
    return plain_op(w, op->kind, a, b);
  const char *u =
      pln_c_vector(w, (pln_c_type)(type + (PLN_C_U8 - PLN_C_I8)), lanes, false);
  return pln_c_textf(w, PLN_C_COMPOUND, "(%s)((%s)%s %s (%s)%s)", v, u,
                     pln_c_arg(w, a), symbol_of(op->kind), u, pln_c_arg(w, b));
}

/* Lane by lane, of operands that are names. */
static pln_c_text lanewise_op(pln_cw *w, const binary *op, uint32_t first,
                              uint32_t lanes, uint32_t mask) {
  pln_c_text texts[64];
  pln_dtype result = mask ? PLN_BOOL : op->dtype;
  for (uint32_t k = 0; k < lanes; k++)
    texts[k] = pln_c_textf(w, PLN_C_CALL, "(%s)",
                           scalar_op(w, op, pln_c_lane(w, op->a, first + k),
                                     pln_c_lane(w, op->b, first + k))
                               .data);
  return pln_c_chunk_from_lanes(w, result, mask, lanes, texts);
}

static void chunks_op(pln_cw *w, const binary *from, pln_c_value *out) {
  pln_c_value a = pln_c_plain(w, *from->a), b = pln_c_plain(w, *from->b);
  bool compares = from->kind >= PLN_PRIM_EQ, native = is_native(from);
  binary own = *from, *op = &own;
  uint32_t first = 0, n = pln_c_n_chunks(w, out->lanes);
  if (!native) {
    a = pln_c_named(w, a);
    b = pln_c_named(w, b);
  }
  op->a = &a;
  op->b = &b;
  if (compares && w->width > 1)
    out->mask = (uint8_t)(native ? pln_c_bytes(op->dtype) : 1);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t lanes = pln_c_chunk_lanes(w, out->lanes, i);
    pln_c_text x = pln_c_text_at(w, &a, i), y = pln_c_text_at(w, &b, i);
    pln_c_text text;
    if (lanes == 1)
      text = scalar_op(w, op, x, y);
    else if (native)
      text = with_reads(vector_op(w, op, lanes, x, y), x, y);
    else
      text = lanewise_op(w, op, first, lanes, out->mask);
    pln_c_add_text(w, out, text);
    first += lanes;
  }
}

bool pln_c_combine(pln_cw *w, pln_kind kind, pln_c_value a, pln_c_value b,
                   pln_dtype result, pln_c_value *out) {
  binary op = {.kind = kind, .dtype = (pln_dtype)a.dtype, .a = &a, .b = &b};
  bool compares = kind >= PLN_PRIM_EQ;
  bool simple = a.form != PLN_C_RAMP && b.form != PLN_C_RAMP &&
                (a.lanes == 1 || a.form == PLN_C_SPLAT) &&
                (b.lanes == 1 || b.form == PLN_C_SPLAT);
  int64_t lo = 0, hi = 1;
  if (pln_c_is_int(op.dtype) && !compares)
    op.fits = pln_c_bounds(kind, op.dtype, &a, &b, &lo, &hi);
  *out = pln_c_new_value(w, result, a.lanes > b.lanes ? a.lanes : b.lanes,
                         simple && a.lanes > 1 ? PLN_C_SPLAT : PLN_C_PLAIN);
  int known = simple && compares && pln_c_is_int(op.dtype)
                  ? pln_c_known(kind, &a, &b)
                  : -1;
  if (known >= 0)
    pln_c_add_text(w, out, pln_c_int(w, PLN_INT32, known));
  else if (simple)
    pln_c_add_text(
        w, out,
        scalar_op(w, &op, pln_c_text_at(w, &a, 0), pln_c_text_at(w, &b, 0)));
  else
    chunks_op(w, &op, out);
  if (pln_c_is_int(result)) {
    out->lo = known >= 0 ? known : lo;
    out->hi = known >= 0 ? known : hi;
  }
  return op.fits;
}

/* x + 0, x - 0, x * 1 of integers. */
static bool is_identity(pln_kind kind, pln_c_value a, pln_c_value b) {
  int64_t value;
  if (!pln_c_is_int((pln_dtype)a.dtype) || a.lanes != b.lanes ||
      !pln_c_is_const(&b, &value))
    return false;
  return ((kind == PLN_PRIM_ADD || kind == PLN_PRIM_SUB) && value == 0) ||
         ((kind == PLN_PRIM_MUL || kind == PLN_PRIM_FLOORDIV) && value == 1);
}

/* Ramp + Broadcast stays a ramp where no lane wraps. */
static bool shifts_ramp(pln_cw *w, pln_kind kind, pln_c_value a, pln_c_value b,
                        pln_c_value *out) {
  bool swapped = a.form == PLN_C_SPLAT && kind == PLN_PRIM_ADD;
  pln_c_value ramp = swapped ? b : a, by = swapped ? a : b, base, sum;
  if (ramp.form != PLN_C_RAMP || by.form != PLN_C_SPLAT ||
      (kind != PLN_PRIM_ADD && kind != PLN_PRIM_SUB) ||
      !pln_c_bounds(kind, (pln_dtype)a.dtype, &ramp, &by, &ramp.lo, &ramp.hi))
    return false;
  base = pln_c_scalar(w, (pln_dtype)a.dtype, pln_c_text_at(w, &ramp, 0));
  by.form = PLN_C_PLAIN;
  by.lanes = 1;
  base.lo = swapped ? b.lo : a.lo;
  base.hi = swapped ? b.hi : a.hi;
  pln_c_combine(w, kind, base, by, (pln_dtype)a.dtype, &sum);
  *out = ramp;
  out->count = 0;
  pln_c_text stride = pln_c_text_at(w, &ramp, 1);
  pln_c_add_text(w, out, pln_c_text_at(w, &sum, 0));
  pln_c_add_text(w, out, stride);
  return true;
}

/* A sum or product that only indices use is computed in int64 where its dtype
 * may be too narrow, so that no lane or round wraps. */
static bool is_wide(const pln_cw *w, pln_ref ref, const pln_c_value *a,
                    const pln_c_value *b) {
  pln_kind kind = (pln_kind)w->g->nodes[ref].kind;
  int64_t lo, hi;
  if (kind > PLN_PRIM_MUL || w->elsewhere[ref] || w->uses[ref] == 0 ||
      pln_prim_dtype(w->g, ref) != PLN_INT32 || a->lanes != 1 || b->lanes != 1)
    return false;
  return a->dtype == PLN_INT64 || b->dtype == PLN_INT64 ||
         !pln_c_bounds(kind, PLN_INT32, a, b, &lo, &hi);
}

void pln_c_binary(pln_cw *w, pln_ref ref) {
  const pln_ref *o = operands_of(w, ref);
  pln_kind kind = (pln_kind)w->g->nodes[ref].kind;
  pln_c_value a = pln_c_value_of(w, o[0]), b = pln_c_value_of(w, o[1]), out;
  if (kind < PLN_PRIM_ADD || kind > PLN_PRIM_GE) {
    pln_c_refuse(w, "a %s has no value in C", pln_kinds[kind].name);
    return;
  }
  if (!a.dtype && kind != PLN_PRIM_EQ && kind != PLN_PRIM_NE) {
    pln_c_refuse(w, "handles have no arithmetic");
    return;
  }
  if (kind == PLN_PRIM_MUL && a.form == PLN_C_PLAIN)
    b = pln_c_kept_splat(w, o[1], b);
  else if (kind == PLN_PRIM_MUL && b.form == PLN_C_PLAIN)
    a = pln_c_kept_splat(w, o[0], a);
  if (is_wide(w, ref, &a, &b))
    out = pln_c_offset(w, kind, a, b);
  else if (is_identity(kind, a, b))
    out = a;
  else if (is_identity(kind, b, a) && kind != PLN_PRIM_SUB &&
           kind != PLN_PRIM_FLOORDIV)
    out = b;
  else if (!shifts_ramp(w, kind, a, b, &out))
    pln_c_combine(w, kind, a, b, pln_prim_dtype(w->g, ref), &out);
  pln_c_set(w, ref, out);
}

/* ----------------------------------------------------------------- offsets */

static pln_c_value widened(pln_cw *w, pln_c_value value) {
  if (value.dtype == PLN_INT64 || value.dtype == PLN_UINT64)
    return value;
  pln_c_value out = value;
  pln_c_text text = pln_c_text_at(w, &value, 0);
  out.count = 0;
  out.dtype = PLN_INT64;
  pln_c_text wide =
      text.prec == PLN_C_NAME && value.lo == value.hi
          ? text
          : pln_c_textf(w, PLN_C_COMPOUND, "(int64_t)%s", pln_c_arg(w, text));
  wide.reads = text.reads;
  pln_c_add_text(w, &out, wide);
  return out;
}

/* A variable of int64, which terms of indices are where they are named. */
static bool is_wide_index(const pln_c_value *value) {
  return value->dtype == PLN_INT64 && value->lo != value->hi;
}

/* Sums of sums get a variable now and then: texts would grow with each let. */
enum { MOST_OF_PLACE = 64 };

/* Marks the sum of a variable, or of a place, and a constant. */
static void mark_place(pln_c_text *text, pln_c_text x, int64_t constant) {
  if ((x.prec != PLN_C_NAME && !x.place) || text->size > MOST_OF_PLACE ||
      __builtin_add_overflow(x.place ? x.addend : 0, constant, &text->addend))
    return;
  text->place = true;
  text->base = x.place ? x.base : x.data;
}

/* A place by a constant, without parentheses around a sum: compilers do not
 * multiply those out, and would not see that (x + 1) * 16 and x * 16 are apart.
 * false: it is none. */
static bool scaled_place(pln_cw *w, const pln_c_value *a, pln_c_value by,
                         pln_c_value *out) {
  pln_c_text text = pln_c_text_at(w, a, 0);
  pln_c_value base = *a;
  int64_t addend;
  if (!text.place || __builtin_mul_overflow(text.addend, by.lo, &addend) ||
      __builtin_sub_overflow(a->lo, text.addend, &base.lo) ||
      __builtin_sub_overflow(a->hi, text.addend, &base.hi))
    return false;
  pln_c_text name = {.data = text.base,
                     .size = (uint32_t)strlen(text.base),
                     .prec = PLN_C_NAME};
  base.count = 0;
  pln_c_add_text(w, &base, name);
  *out = pln_c_offset(w, PLN_PRIM_ADD, pln_c_offset(w, PLN_PRIM_MUL, base, by),
                      pln_c_int_value(w, PLN_INT64, addend));
  return true;
}

/* What is computed of such a variable stays an int64: were it cut to an int32,
 * compilers would not see that the elements of a tile are apart. */
pln_c_value pln_c_offset(pln_cw *w, pln_kind kind, pln_c_value a,
                         pln_c_value b) {
  pln_c_value out = {0};
  int64_t lo, hi;
  bool fits = pln_c_bounds(kind, PLN_INT64, &a, &b, &lo, &hi);
  if (fits && lo == hi)
    return pln_c_int_value(w, PLN_INT64, lo);
  if (kind == PLN_PRIM_ADD && a.lo == 0 && a.hi == 0)
    return b;
  if (kind == PLN_PRIM_ADD && b.lo == 0 && b.hi == 0)
    return a;
  if (kind == PLN_PRIM_MUL && b.lo == 1 && b.hi == 1)
    return a;
  if (kind == PLN_PRIM_MUL && a.lo == 1 && a.hi == 1)
    return b;
  if (kind == PLN_PRIM_MUL && fits && b.lo == b.hi &&
      scaled_place(w, &a, b, &out))
    return out;
  bool narrow = fits && lo >= INT32_MIN && hi <= INT32_MAX;
  if (!narrow || a.dtype == PLN_UINT32 || b.dtype == PLN_UINT32) {
    a = widened(w, a);
    b = widened(w, b);
  }
  bool wide = !narrow || is_wide_index(&a) || is_wide_index(&b);
  pln_c_text x = pln_c_text_at(w, &a, 0), y = pln_c_text_at(w, &b, 0);
  pln_c_text text = with_reads(plain_op(w, kind, x, y), x, y);
  if (kind == PLN_PRIM_ADD && wide && b.lo == b.hi && a.dtype == PLN_INT64)
    mark_place(&text, x, b.lo);
  out = pln_c_scalar(w, PLN_INT64, text);
  out.lo = lo;
  out.hi = hi;
  out.dtype = wide ? PLN_INT64 : PLN_INT32;
  return out;
}
