/* call.c: writes calls of builtins, and of functions of other libraries.
 *
 * Called by expr.c. A builtin without a row here is refused by its name: those
 * of devices, of threads that wait for each other, of TVM's runtime. */

#include "codegen/writer.h"

typedef enum call_form {
  FORM_FUNCTION, /* of floats: of C's library, or a helper */
  FORM_LANES,    /* a function of this file for each lane */
  FORM_FIRST,    /* its first operand */
  FORM_BRANCH,
  FORM_OWN /* a function of this file */
} call_form;

typedef pln_c_text (*lane_fn)(pln_cw *w, pln_ref ref, const pln_c_text *args);
typedef void (*own_fn)(pln_cw *w, pln_ref ref);

typedef struct call_row {
  const char *name;
  uint8_t form;
  bool safe; /* it may be evaluated although its value is not needed */
  lane_fn lane;
  own_fn own;
} call_row;

static const pln_ref *args_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static const char *builtin_of(const pln_cw *w, pln_ref ref) {
  uint32_t builtin = w->g->nodes[ref].data;
  return builtin ? pln_builtin_row(builtin)->name : "";
}

static pln_dtype first_dtype(const pln_cw *w, pln_ref ref) {
  return pln_c_dtype(w, args_of(w, ref)[0]);
}

static pln_c_text refuse_dtype(pln_cw *w, pln_ref ref) {
  pln_c_refuse(w, "builtin '%s' has no value of dtype %s", builtin_of(w, ref),
               pln_dtype_name(first_dtype(w, ref)));
  return pln_c_textf(w, PLN_C_NAME, "0");
}

/* --------------------------------------------------------------- functions */

static const char *const functions1[] = {
    "exp",   "exp2",      "erf",   "tanh",    "sqrt",  "log",  "log2",  "log1p",
    "log10", "tan",       "cos",   "cosh",    "sin",   "sinh", "asin",  "acos",
    "atan",  "acosh",     "asinh", "atanh",   "floor", "ceil", "round", "trunc",
    "fabs",  "nearbyint", "exp10", "sigmoid", "rsqrt"};
static const char *const functions2[] = {"atan2",    "nextafter", "hypot",
                                         "copysign", "pow",       "fmod"};

static bool is_in(const char *const *list, size_t n, pln_slice name) {
  for (size_t i = 0; i < n; i++)
    if (pln_slice_is(name, list[i]))
      return true;
  return false;
}

static bool is_function(pln_slice name, uint32_t *n_args) {
  *n_args = is_in(functions1, PLN_COUNT(functions1), name) ? 1 : 2;
  return *n_args == 1 || is_in(functions2, PLN_COUNT(functions2), name);
}

/* exp10, sigmoid and rsqrt are helpers. */
static bool use_helper(pln_cw *w, pln_slice name, bool twice) {
  static const struct {
    const char *name;
    pln_c_helper single, twice;
  } helpers[] = {
      {"exp10", PLN_C_HELPER_EXP10_F32, PLN_C_HELPER_EXP10_F64},
      {"sigmoid", PLN_C_HELPER_SIGMOID_F32, PLN_C_HELPER_SIGMOID_F64},
      {"rsqrt", PLN_C_HELPER_RSQRT_F32, PLN_C_HELPER_RSQRT_F64}};
  for (size_t i = 0; i < PLN_COUNT(helpers); i++)
    if (pln_slice_is(name, helpers[i].name)) {
      pln_c_use(w, twice ? helpers[i].twice : helpers[i].single, PLN_C_F32, 1);
      return true;
    }
  return false;
}

static pln_c_text call_function(pln_cw *w, pln_slice name, pln_dtype dtype,
                                uint32_t n, const pln_c_text *args) {
  bool twice = dtype == PLN_FLOAT64, own = use_helper(w, name, twice);
  const char *before = own ? "pl_" : "";
  const char *after = own ? (twice ? "_f64" : "_f32") : (twice ? "" : "f");
  pln_c_text out =
      pln_c_textf(w, PLN_C_CALL, n == 1 ? "%s%.*s%s(%s)" : "%s%.*s%s(%s, %s)",
                  before, (int)name.size, name.data, after, args[0].data,
                  n == 1 ? "" : args[1].data);
  return pln_c_rounded(w, dtype, out);
}

static pln_c_text abs_lane(pln_cw *w, pln_dtype dtype, pln_c_text arg) {
  pln_c_use(w, PLN_C_HELPER_ABS, PLN_C_I64, 1);
  return pln_c_textf(w, PLN_C_COMPOUND, "(%s)pl_abs((int64_t)%s)",
                     pln_c_type_name(dtype), pln_c_arg(w, arg));
}

/* floor, ceil and others leave integers as they are; fabs does not. */
static pln_c_text function_lane(pln_cw *w, pln_ref ref,
                                const pln_c_text *args) {
  static const char *const same[] = {"floor", "ceil", "round", "nearbyint",
                                     "trunc"};
  pln_slice name = pln_text(builtin_of(w, ref));
  pln_dtype dtype = pln_c_dtype(w, ref);
  uint32_t n;
  (void)is_function(name, &n);
  if (pln_c_is_float(dtype))
    return call_function(w, name, dtype, n, args);
  if (pln_slice_is(name, "fabs"))
    return abs_lane(w, dtype, args[0]);
  return is_in(same, PLN_COUNT(same), name) ? args[0] : refuse_dtype(w, ref);
}

static pln_c_text ldexp_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  pln_dtype dtype = pln_c_dtype(w, ref);
  bool twice = dtype == PLN_FLOAT64;
  if (!pln_c_is_float(dtype))
    return refuse_dtype(w, ref);
  return pln_c_rounded(w, dtype,
                       pln_c_textf(w, PLN_C_COMPOUND, "%s * exp2%s((%s)%s)",
                                   pln_c_arg(w, args[0]), twice ? "" : "f",
                                   twice ? "double" : "float",
                                   pln_c_arg(w, args[1])));
}

static pln_c_text fma_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  pln_dtype dtype = pln_c_dtype(w, ref);
  if (!pln_c_is_float(dtype))
    return refuse_dtype(w, ref);
  return pln_c_rounded(w, dtype,
                       pln_c_textf(w, PLN_C_CALL, "fma%s(%s, %s, %s)",
                                   dtype == PLN_FLOAT64 ? "" : "f",
                                   args[0].data, args[1].data, args[2].data));
}

static pln_c_text test_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  const char *name = builtin_of(w, ref);
  if (!pln_c_is_float(first_dtype(w, ref)))
    return pln_c_textf(w, PLN_C_NAME, strcmp(name, "isfinite") ? "0" : "1");
  return pln_c_textf(w, PLN_C_CALL, "(%s(%s) != 0)", name, args[0].data);
}

/* -------------------------------------------------------------------- bits */

static bool is_bits(pln_cw *w, pln_ref ref) {
  if (pln_c_is_int(first_dtype(w, ref)))
    return true;
  (void)refuse_dtype(w, ref);
  return false;
}

static pln_c_text wrapped(pln_cw *w, pln_dtype dtype, pln_c_text text) {
  if (dtype == PLN_BOOL)
    return pln_c_textf(w, PLN_C_COMPOUND, "%s != 0", pln_c_arg(w, text));
  return pln_c_textf(w, PLN_C_COMPOUND, "(%s)%s", pln_c_type_name(dtype),
                     pln_c_arg(w, text));
}

static pln_c_text bitwise_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  const char *name = builtin_of(w, ref);
  pln_dtype dtype = pln_c_dtype(w, ref);
  const char *op = !strcmp(name, "bitwise_and")  ? "&"
                   : !strcmp(name, "bitwise_or") ? "|"
                                                 : "^";
  if (!is_bits(w, ref))
    return args[0];
  if (!strcmp(name, "bitwise_not"))
    return wrapped(
        w, dtype, pln_c_textf(w, PLN_C_COMPOUND, "~%s", pln_c_arg(w, args[0])));
  return wrapped(w, dtype,
                 pln_c_textf(w, PLN_C_COMPOUND, "%s %s %s",
                             pln_c_arg(w, args[0]), op, pln_c_arg(w, args[1])));
}

static pln_c_text shift_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  bool left = !strcmp(builtin_of(w, ref), "shift_left");
  bool is_u64 = !left && pln_c_dtype(w, ref) == PLN_UINT64;
  pln_c_helper helper = left     ? PLN_C_HELPER_SHL
                        : is_u64 ? PLN_C_HELPER_SHRU
                                 : PLN_C_HELPER_SHR;
  if (!is_bits(w, ref))
    return args[0];
  pln_c_use(w, helper, PLN_C_I64, 1);
  return wrapped(w, pln_c_dtype(w, ref),
                 pln_c_textf(w, PLN_C_CALL,
                             "pl_%s((%sint64_t)%s, (%sint64_t)%s)",
                             left     ? "shl"
                             : is_u64 ? "shru"
                                      : "shr",
                             is_u64 ? "u" : "", pln_c_arg(w, args[0]),
                             is_u64 ? "u" : "", pln_c_arg(w, args[1])));
}

static pln_c_text count_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  bool clz = !strcmp(builtin_of(w, ref), "clz");
  pln_dtype from = first_dtype(w, ref);
  if (!is_bits(w, ref))
    return args[0];
  pln_c_use(w, clz ? PLN_C_HELPER_CLZ : PLN_C_HELPER_POPCOUNT, PLN_C_I64, 1);
  const char *bits =
      pln_c_textf(w, PLN_C_CALL, "(%s)%s", pln_c_unsigned_name(from),
                  pln_c_arg(w, args[0]))
          .data;
  return wrapped(w, pln_c_dtype(w, ref),
                 clz ? pln_c_textf(w, PLN_C_CALL, "pl_clz(%s, %u)", bits,
                                   pln_dtype_bits(from))
                     : pln_c_textf(w, PLN_C_CALL, "pl_popcount(%s)", bits));
}

static pln_c_text large_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  return wrapped(w, pln_c_dtype(w, ref),
                 pln_c_textf(w, PLN_C_CALL,
                             "((uint64_t)%s << 32 | (uint32_t)%s)",
                             pln_c_arg(w, args[1]), pln_c_arg(w, args[0])));
}

static pln_c_text q_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  for (uint32_t i = 0; i < 4; i++)
    if (pln_c_dtype(w, args_of(w, ref)[i]) != PLN_INT32)
      return refuse_dtype(w, ref);
  pln_c_use(w, PLN_C_HELPER_Q_MULTIPLY_SHIFT, PLN_C_I32, 1);
  return pln_c_textf(w, PLN_C_CALL, "pl_q_multiply_shift(%s, %s, %s, %s)",
                     args[0].data, args[1].data, args[2].data, args[3].data);
}

/* The bits of a value as an unsigned integer. */
static pln_c_text bits_of(pln_cw *w, pln_dtype dtype, pln_c_text text) {
  bool twice = dtype == PLN_FLOAT64, half = dtype == PLN_FLOAT16;
  if (pln_c_is_half(dtype)) {
    pln_c_use(w, half ? PLN_C_HELPER_TO_HALF : PLN_C_HELPER_TO_BFLOAT,
              PLN_C_F32, 1);
    return pln_c_textf(w, PLN_C_CALL, "pl_to_%s(%s)", half ? "half" : "bfloat",
                       text.data);
  }
  if (!pln_c_is_float(dtype))
    return pln_c_textf(w, PLN_C_COMPOUND, "(%s)%s", pln_c_unsigned_name(dtype),
                       pln_c_arg(w, text));
  pln_c_use(w, twice ? PLN_C_HELPER_BITS_F64 : PLN_C_HELPER_BITS_F32, PLN_C_F32,
            1);
  return pln_c_textf(w, PLN_C_CALL, "pl_bits_%s(%s)", twice ? "f64" : "f32",
                     text.data);
}

static pln_c_text from_bits(pln_cw *w, pln_dtype dtype, pln_c_text bits) {
  bool twice = dtype == PLN_FLOAT64, half = dtype == PLN_FLOAT16;
  if (pln_c_is_half(dtype)) {
    pln_c_use(w, half ? PLN_C_HELPER_FROM_HALF : PLN_C_HELPER_FROM_BFLOAT,
              PLN_C_F32, 1);
    return pln_c_textf(w, PLN_C_CALL, "pl_from_%s(%s)",
                       half ? "half" : "bfloat", bits.data);
  }
  if (!pln_c_is_float(dtype))
    return wrapped(w, dtype, bits);
  pln_c_use(w, twice ? PLN_C_HELPER_FROM_BITS_F64 : PLN_C_HELPER_FROM_BITS_F32,
            PLN_C_F32, 1);
  return pln_c_textf(w, PLN_C_CALL, "pl_from_bits_%s(%s)",
                     twice ? "f64" : "f32", bits.data);
}

static pln_c_text reinterpret_lane(pln_cw *w, pln_ref ref,
                                   const pln_c_text *args) {
  pln_dtype from = first_dtype(w, ref), to = pln_c_dtype(w, ref);
  if (!to && w->g->nodes[args_of(w, ref)[0]].kind == PLN_INT_IMM)
    return pln_c_textf(w, PLN_C_CALL, "((void *)0)");
  if (!from || !to || pln_dtype_bits(from) != pln_dtype_bits(to)) {
    pln_c_refuse(w, "reinterpret of %s as %s", pln_dtype_name(from),
                 pln_dtype_name(to));
    return args[0];
  }
  return from_bits(w, to, bits_of(w, from, args[0]));
}

/* ------------------------------------------------------------- lane by lane */

enum { MOST_LANE_ARGS = 4 };

static bool agrees(pln_cw *w, pln_ref ref, uint32_t lanes) {
  const pln_node *n = &w->g->nodes[ref];
  bool ok = n->count <= MOST_LANE_ARGS && n->count > 0;
  for (uint32_t i = 0; ok && i < n->count; i++)
    ok = pln_c_lanes(w, args_of(w, ref)[i]) == lanes;
  if (!ok)
    pln_c_refuse(w, "operands of '%s' are not of its lanes",
                 builtin_of(w, ref));
  return ok;
}

static void emit_lanes(pln_cw *w, pln_ref ref, lane_fn lane) {
  const pln_node *n = &w->g->nodes[ref];
  uint32_t lanes = pln_c_lanes(w, ref);
  pln_dtype dtype = pln_c_dtype(w, ref);
  pln_c_value args[MOST_LANE_ARGS] = {0};
  pln_c_text texts[64], lane_args[MOST_LANE_ARGS];
  bool splat = lanes > 1;
  if (!agrees(w, ref, lanes))
    return;
  for (uint32_t i = 0; i < n->count; i++) {
    args[i] = pln_c_value_of(w, args_of(w, ref)[i]);
    splat &= args[i].form == PLN_C_SPLAT;
  }
  pln_c_value out =
      pln_c_new_value(w, dtype, lanes, splat ? PLN_C_SPLAT : PLN_C_PLAIN);
  for (uint32_t i = 0; i < n->count && lanes > 1 && !splat; i++)
    args[i] = pln_c_named(w, pln_c_plain(w, args[i]));
  uint32_t chunks = splat ? 1 : pln_c_n_chunks(w, lanes);
  out.mask = dtype == PLN_BOOL && lanes > 1 && w->width > 1 && !splat;
  for (uint32_t c = 0, first = 0; c < chunks; c++) {
    uint32_t part = splat ? 1 : pln_c_chunk_lanes(w, lanes, c);
    for (uint32_t k = 0; k < part; k++) {
      bool reads = false;
      for (uint32_t i = 0; i < n->count; i++) {
        lane_args[i] = pln_c_lane(w, &args[i], first + k);
        reads |= lane_args[i].reads;
      }
      texts[k] = lane(w, ref, lane_args);
      if (part > 1)
        texts[k] = pln_c_textf(w, PLN_C_CALL, "%s", pln_c_arg(w, texts[k]));
      texts[k].reads = reads;
    }
    pln_c_add_text(
        w, &out,
        pln_c_chunk_from_lanes(w, dtype, out.mask && part > 1, part, texts));
    first += part;
  }
  pln_c_set(w, ref, out);
}

/* vectorlow, vectorhigh, vectorcombine: lanes of the operands in a row. */
static void emit_parts(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  uint32_t lanes = pln_c_lanes(w, ref), total = 0, skip = 0;
  for (uint32_t i = 0; i < n->count; i++)
    total += pln_c_lanes(w, args_of(w, ref)[i]);
  pln_c_text *all = pln_arena_new(&w->arena, (total + 1) * sizeof *all);
  if (!all || total < lanes) {
    pln_c_refuse(w, "'%s' of too few lanes", builtin_of(w, ref));
    return;
  }
  for (uint32_t i = 0, at = 0; i < n->count; i++) {
    pln_c_value part =
        pln_c_named(w, pln_c_plain(w, pln_c_value_of(w, args_of(w, ref)[i])));
    for (uint32_t k = 0; k < pln_c_lanes(w, args_of(w, ref)[i]); k++)
      all[at++] = pln_c_lane(w, &part, k);
  }
  if (!strcmp(builtin_of(w, ref), "vectorhigh"))
    skip = pln_c_lanes(w, args_of(w, ref)[0]) - lanes;
  pln_dtype dtype = pln_c_dtype(w, ref);
  pln_c_value out = pln_c_new_value(w, dtype, lanes, PLN_C_PLAIN);
  out.mask = dtype == PLN_BOOL && lanes > 1 && w->width > 1;
  for (uint32_t i = 0, at = 0; at < lanes; i++) {
    uint32_t part = pln_c_chunk_lanes(w, lanes, i);
    pln_c_add_text(w, &out,
                   pln_c_chunk_from_lanes(w, dtype, out.mask && part > 1, part,
                                          all + skip + at));
    at += part;
  }
  pln_c_set(w, ref, out);
}

/* ---------------------------------------------------------------- pointers */

static void set_handle(pln_cw *w, pln_ref ref, pln_c_text text) {
  pln_c_set(w, ref, pln_c_scalar(w, PLN_DTYPE_NONE, text));
}

static void emit_address_of(pln_cw *w, pln_ref ref) {
  set_handle(w, ref, pln_c_address(w, args_of(w, ref)[0]));
}

/* tvm_access_ptr(type, data, offset, extent, rw). */
static void emit_access_ptr(pln_cw *w, pln_ref ref) {
  const pln_ref *o = args_of(w, ref);
  pln_dtype dtype = pln_c_dtype(w, o[0]);
  pln_c_value data = pln_c_value_of(w, o[1]), at = pln_c_value_of(w, o[2]);
  if (!pln_c_has_dtype(dtype) || data.dtype) {
    pln_c_refuse(w, "tvm_access_ptr without a dtype");
    return;
  }
  at = pln_c_offset(w, PLN_PRIM_MUL, at,
                    pln_c_int_value(w, PLN_INT64, pln_c_lanes(w, o[0])));
  set_handle(w, ref,
             pln_c_textf(w, PLN_C_COMPOUND, "(void *)((%s *)%s + %s)",
                         pln_c_memory_name(dtype),
                         pln_c_arg(w, pln_c_text_at(w, &data, 0)),
                         pln_c_arg(w, pln_c_text_at(w, &at, 0))));
}

static void emit_isnullptr(pln_cw *w, pln_ref ref) {
  pln_c_value value = pln_c_value_of(w, args_of(w, ref)[0]);
  pln_c_set(
      w, ref,
      pln_c_scalar(w, PLN_BOOL,
                   pln_c_textf(w, PLN_C_COMPOUND, "%s == 0",
                               pln_c_arg(w, pln_c_text_at(w, &value, 0)))));
}

static void emit_nothing(pln_cw *w, pln_ref ref) {
  pln_c_set(w, ref, pln_c_int_value(w, PLN_INT32, 0));
}

static void emit_throw(pln_cw *w, pln_ref ref) {
  pln_c_line(w, "return %d;", PLN_C_THROW);
  emit_nothing(w, ref);
}

static void emit_return(pln_cw *w, pln_ref ref) {
  if (w->region.outer)
    pln_c_refuse(w, "a return from inside of a parallel loop");
  pln_c_line(w, "return %d;", PLN_C_OK);
  emit_nothing(w, ref);
}

static void emit_assume(pln_cw *w, pln_ref ref) {
  pln_c_set(w, ref, pln_c_int_value(w, PLN_BOOL, 1));
}

/* --------------------------------------------------------------- externals */

/* "T name(T, T);" for the unit, once. */
static void declare_extern(pln_cw *w, pln_ref ref, pln_slice name,
                           const char *result) {
  const pln_node *n = &w->g->nodes[ref];
  pln_c_text list = pln_c_textf(w, PLN_C_NAME, n->count > 1 ? "" : "void");
  pln_symbol symbol = w->g->nodes[args_of(w, ref)[0]].data, text;
  for (uint32_t i = 1; i < n->count; i++) {
    pln_dtype dtype = pln_c_dtype(w, args_of(w, ref)[i]);
    if (dtype ? !pln_c_has_dtype(dtype) : false)
      pln_c_refuse(w, "an argument of '%s' of dtype %s", name.data,
                   pln_dtype_name(dtype));
    list = pln_c_textf(w, PLN_C_NAME, "%s%s%s", list.data, i > 1 ? ", " : "",
                       pln_c_type_name(dtype));
  }
  const char *line = pln_c_textf(w, PLN_C_NAME, "extern %s%s%s(%s);\n", result,
                                 result[strlen(result) - 1] == '*' ? "" : " ",
                                 name.data, list.data)
                         .data;
  if (w->status != PLN_OK)
    return;
  pln_c_fail(w, pln_symbol_intern(w->engine, pln_text(line), &text));
  uint32_t known = pln_idmap_get(w->externs, symbol);
  if (w->status != PLN_OK || known == text)
    return;
  if (known)
    pln_c_refuse(w, "external function '%s' is called with other types before",
                 name.data);
  pln_c_fail(w, pln_idmap_set(w->externs, symbol, text));
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_buffer_text(&w->declarations, line));
}

static bool is_word(pln_slice name) {
  bool ok = name.size > 0 && !(name.data[0] >= '0' && name.data[0] <= '9');
  for (size_t i = 0; i < name.size; i++) {
    char c = name.data[i];
    ok &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          (c >= '0' && c <= '9') || c == '_';
  }
  return ok;
}

static bool extern_name(pln_cw *w, pln_ref ref, pln_slice *name) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_node *callee = n->count ? &w->g->nodes[args_of(w, ref)[0]] : NULL;
  *name = callee && callee->kind == PLN_STRING_IMM
              ? pln_symbol_text(w->engine, callee->data)
              : pln_text("");
  if (is_word(*name))
    return true;
  pln_c_refuse(w, "a call of '%s' without a name that C has",
               builtin_of(w, ref));
  return false;
}

/* A function of C's library by its name, such as expf. */
static bool library_call(pln_cw *w, pln_ref ref, pln_slice name) {
  const pln_node *n = &w->g->nodes[ref];
  pln_dtype dtype = pln_c_dtype(w, ref);
  pln_c_text args[2];
  uint32_t wanted;
  if (!is_function(name, &wanted) && name.size > 1 &&
      name.data[name.size - 1] == 'f')
    name.size--;
  if (!is_function(name, &wanted) || !pln_c_is_float(dtype) ||
      n->count - 1 != wanted || pln_c_lanes(w, ref) != 1)
    return false;
  for (uint32_t i = 0; i < wanted; i++) {
    pln_c_value value = pln_c_value_of(w, args_of(w, ref)[1 + i]);
    args[i] = pln_c_text_at(w, &value, 0);
  }
  pln_c_set(
      w, ref,
      pln_c_scalar(w, dtype, call_function(w, name, dtype, wanted, args)));
  return true;
}

static void emit_extern(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  pln_dtype dtype = pln_c_dtype(w, ref);
  bool nothing = pln_type_get_kind(w->engine, n->type) == PLN_TYPE_PRIM &&
                 dtype == PLN_DTYPE_NONE;
  pln_slice name;
  if (!extern_name(w, ref, &name) || library_call(w, ref, name))
    return;
  if (pln_c_is_reserved(name.data))
    pln_c_refuse(w, "external function '%s' has a name that is taken",
                 name.data);
  declare_extern(w, ref, name, nothing ? "void" : pln_c_type_name(dtype));
  pln_c_text list = pln_c_textf(w, PLN_C_NAME, "%s", "");
  for (uint32_t i = 1; i < n->count; i++) {
    pln_c_value arg = pln_c_value_of(w, args_of(w, ref)[i]);
    if (arg.lanes != 1)
      pln_c_refuse(w, "external function '%s' takes a vector", name.data);
    list = pln_c_textf(w, PLN_C_NAME, "%s%s%s%s", list.data, i > 1 ? ", " : "",
                       arg.dtype ? "" : "(void *)",
                       pln_c_arg(w, pln_c_text_at(w, &arg, 0)));
  }
  pln_c_text call = pln_c_textf(w, PLN_C_CALL, "%s(%s)", name.data, list.data);
  if (nothing) {
    pln_c_line(w, "%s;", call.data);
    emit_nothing(w, ref);
    return;
  }
  pln_c_set(
      w, ref,
      pln_c_scalar(w, dtype, pln_c_name(w, pln_c_type_name(dtype), call)));
}

/* ------------------------------------------------------------------- table */

static const call_row rows[] = {
    {"ldexp", FORM_LANES, false, ldexp_lane, NULL},
    {"fma", FORM_LANES, true, fma_lane, NULL},
    {"isnan", FORM_LANES, true, test_lane, NULL},
    {"isinf", FORM_LANES, true, test_lane, NULL},
    {"isfinite", FORM_LANES, true, test_lane, NULL},
    {"popcount", FORM_LANES, true, count_lane, NULL},
    {"clz", FORM_LANES, true, count_lane, NULL},
    {"bitwise_and", FORM_LANES, true, bitwise_lane, NULL},
    {"bitwise_or", FORM_LANES, true, bitwise_lane, NULL},
    {"bitwise_xor", FORM_LANES, true, bitwise_lane, NULL},
    {"bitwise_not", FORM_LANES, true, bitwise_lane, NULL},
    {"shift_left", FORM_LANES, true, shift_lane, NULL},
    {"shift_right", FORM_LANES, true, shift_lane, NULL},
    {"large_uint_imm", FORM_LANES, true, large_lane, NULL},
    {"q_multiply_shift", FORM_LANES, false, q_lane, NULL},
    {"reinterpret", FORM_LANES, true, reinterpret_lane, NULL},
    {"vectorhigh", FORM_OWN, false, NULL, emit_parts},
    {"vectorlow", FORM_OWN, false, NULL, emit_parts},
    {"vectorcombine", FORM_OWN, false, NULL, emit_parts},
    {"type_annotation", FORM_OWN, false, NULL, emit_nothing},
    {"likely", FORM_FIRST, true, NULL, NULL},
    {"tvm_thread_invariant", FORM_FIRST, true, NULL, NULL},
    {"if_then_else", FORM_BRANCH, true, NULL, NULL},
    {"address_of", FORM_OWN, false, NULL, emit_address_of},
    {"tvm_access_ptr", FORM_OWN, false, NULL, emit_access_ptr},
    {"isnullptr", FORM_OWN, false, NULL, emit_isnullptr},
    {"tvm_throw_last_error", FORM_OWN, false, NULL, emit_throw},
    {"ret", FORM_OWN, false, NULL, emit_return},
    {"assume", FORM_OWN, false, NULL, emit_assume},
    {"prefetch", FORM_OWN, false, NULL, emit_nothing},
    {"start_profile_intrinsic", FORM_OWN, false, NULL, emit_nothing},
    {"end_profile_intrinsic", FORM_OWN, false, NULL, emit_nothing},
    {"call_extern", FORM_OWN, false, NULL, emit_extern},
    {"call_pure_extern", FORM_OWN, false, NULL, emit_extern}};

static const call_row *find_row(const pln_node *n) {
  static const call_row function = {"", FORM_FUNCTION, true, function_lane,
                                    NULL};
  const char *name = n->data ? pln_builtin_row(n->data)->name : "";
  uint32_t n_args;
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (!strcmp(name, rows[i].name))
      return &rows[i];
  return is_function(pln_text(name), &n_args) ? &function : NULL;
}

bool pln_c_call_is_safe(const pln_node *n) {
  const call_row *row = find_row(n);
  return row && row->safe;
}

static void refuse_call(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  if (n->data) {
    pln_c_refuse(w, "builtin '%s' is not written as C", builtin_of(w, ref));
    return;
  }
  pln_symbol name = w->g->nodes[args_of(w, ref)[0]].data;
  pln_c_refuse(w, "the call of function '%s' is not written as C",
               pln_symbol_text(w->engine, name).data);
}

static void push_arguments(pln_cw *w, pln_ref ref, const call_row *row) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_ref *o = args_of(w, ref);
  bool is_extern = row->own == emit_extern;
  if (row->own == emit_address_of) {
    if (n->count == 1 && w->g->nodes[o[0]].kind == PLN_BUFFER_LOAD)
      pln_c_push_access(w, o[0], 1);
    else
      pln_c_refuse(w, "address_of of what is no element");
  } else if (row->own == emit_access_ptr) {
    pln_c_push_exprs(w, 2, o + 1);
  } else if (row->own != emit_nothing && row->own != emit_return &&
             row->own != emit_assume) {
    pln_c_push_exprs(w, n->count - (is_extern && n->count > 0), o + is_extern);
  }
}

void pln_c_visit_call(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  const call_row *row = find_row(n);
  int32_t args = n->data ? pln_builtin_row(n->data)->args : 0;
  if (!row) {
    refuse_call(w, ref);
    return;
  }
  if (args >= 0 && (uint32_t)args != n->count) {
    pln_c_refuse(w, "builtin '%s' takes %d arguments, not %u",
                 builtin_of(w, ref), (int)args, n->count);
    return;
  }
  if (row->form == FORM_BRANCH && pln_c_lanes(w, args_of(w, ref)[0]) == 1) {
    pln_c_visit_branch(w, ref);
    return;
  }
  pln_c_push(w, (pln_c_task){.what = PLN_C_EMIT, .ref = ref});
  push_arguments(w, ref, row);
}

void pln_c_emit_call(pln_cw *w, pln_ref ref) {
  const call_row *row = find_row(&w->g->nodes[ref]);
  switch ((call_form)row->form) {
  case FORM_FUNCTION:
  case FORM_LANES: emit_lanes(w, ref, row->lane); break;
  case FORM_FIRST:
    pln_c_set(w, ref, pln_c_value_of(w, args_of(w, ref)[0]));
    break;
  case FORM_BRANCH: pln_c_select(w, ref, args_of(w, ref)); break;
  case FORM_OWN: row->own(w, ref);
  }
}
