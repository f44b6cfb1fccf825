/* call_lanes.c: builtins that are computed lane by lane: functions of floats,
 * and of bits.
 *
 * Called by call.c. A function gets the texts of its arguments in one lane. */

#include "codegen/expr/call.h"

static const pln_ref *args_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static const char *builtin_of(const pln_cw *w, pln_ref ref) {
  uint32_t builtin = w->g->nodes[ref].data;
  return builtin ? pln_builtin_row(builtin)->name : "";
}

static pln_dtype first_dtype(const pln_cw *w, pln_ref ref) {
  return pln_prim_dtype(w->g, args_of(w, ref)[0]);
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

bool pln_c_is_function(pln_slice name, uint32_t *n_args) {
  *n_args = is_in(functions1, PLN_COUNT(functions1), name) ? 1 : 2;
  return *n_args == 1 || is_in(functions2, PLN_COUNT(functions2), name);
}

/* Functions that are helpers, not C's library's. */
static bool use_helper(pln_cw *w, pln_slice name, bool twice) {
  enum { NONE = PLN_C_N_HELPERS };
  static const struct {
    const char *name;
    int single, needs, twice;
  } helpers[] = {
      {"exp", PLN_C_HELPER_EXP_F32, NONE, NONE},
      {"tanh", PLN_C_HELPER_TANH_F32, PLN_C_HELPER_EXP_F32, NONE},
      {"erf", PLN_C_HELPER_ERF_F32, PLN_C_HELPER_EXP_F32, NONE},
      {"exp10", PLN_C_HELPER_EXP10_F32, NONE, PLN_C_HELPER_EXP10_F64},
      {"sigmoid", PLN_C_HELPER_SIGMOID_F32, PLN_C_HELPER_EXP_F32,
       PLN_C_HELPER_SIGMOID_F64},
      {"rsqrt", PLN_C_HELPER_RSQRT_F32, NONE, PLN_C_HELPER_RSQRT_F64}};
  for (size_t i = 0; i < PLN_COUNT(helpers); i++) {
    int own = twice ? helpers[i].twice : helpers[i].single;
    if (!pln_slice_is(name, helpers[i].name) || own == NONE)
      continue;
    pln_c_use(w, (pln_c_helper)own, PLN_C_F32, 1);
    if (!twice && helpers[i].needs != NONE)
      pln_c_use(w, (pln_c_helper)helpers[i].needs, PLN_C_F32, 1);
    return true;
  }
  return false;
}

pln_c_text pln_c_call_function(pln_cw *w, pln_slice name, pln_dtype dtype,
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

/* ---------------------------------------------------- functions of vectors */

typedef struct vector_function {
  const char *name;
  uint8_t n_helpers;
  uint8_t helpers[5]; /* pln_c_helper: its own one and those that it calls */
} vector_function;

static const vector_function *find_vector_function(const char *name) {
  static const vector_function rows[] = {
      {"exp",
       5,
       {PLN_C_HELPER_VECTOR_EXP, PLN_C_HELPER_VECTOR_SPLAT,
        PLN_C_HELPER_VECTOR_MIN, PLN_C_HELPER_VECTOR_MAX,
        PLN_C_HELPER_VECTOR_SCALE}},
      {"sigmoid", 1, {PLN_C_HELPER_VECTOR_SIGMOID}},
      {"tanh", 2, {PLN_C_HELPER_VECTOR_TANH, PLN_C_HELPER_VECTOR_SELECT}},
      {"erf", 2, {PLN_C_HELPER_VECTOR_ERF, PLN_C_HELPER_VECTOR_SELECT}}};
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (!strcmp(name, rows[i].name))
      return &rows[i];
  return NULL;
}

bool pln_c_is_vector_function(pln_cw *w, pln_ref ref) {
  return w->width > 1 && pln_prim_dtype(w->g, ref) == PLN_FLOAT32 &&
         find_vector_function(builtin_of(w, ref)) != NULL;
}

static void use_helpers(pln_cw *w, const vector_function *row, uint32_t lanes) {
  for (uint32_t i = 0; i < row->n_helpers; i++)
    pln_c_use(w, (pln_c_helper)row->helpers[i], PLN_C_F32, lanes);
}

pln_c_text pln_c_vector_function(pln_cw *w, pln_ref ref, uint32_t lanes,
                                 pln_c_text arg) {
  const vector_function *row = find_vector_function(builtin_of(w, ref));
  use_helpers(w, find_vector_function("exp"), lanes);
  use_helpers(w, row, lanes);
  pln_c_text out = pln_c_textf(w, PLN_C_CALL, "pl_%s_f32x%u(%s)", row->name,
                               lanes, arg.data);
  out.reads = arg.reads;
  return out;
}

static pln_c_text abs_lane(pln_cw *w, pln_dtype dtype, pln_c_text arg) {
  pln_c_use(w, PLN_C_HELPER_ABS, PLN_C_I64, 1);
  return pln_c_textf(w, PLN_C_COMPOUND, "(%s)pl_abs((int64_t)%s)",
                     pln_c_type_name(dtype), pln_c_arg(w, arg));
}

/* floor, ceil and others leave integers as they are; fabs does not. */
pln_c_text pln_c_function_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  static const char *const same[] = {"floor", "ceil", "round", "nearbyint",
                                     "trunc"};
  pln_slice name = pln_text(builtin_of(w, ref));
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  uint32_t n;
  (void)pln_c_is_function(name, &n);
  if (pln_c_is_float(dtype))
    return pln_c_call_function(w, name, dtype, n, args);
  if (pln_slice_is(name, "fabs"))
    return abs_lane(w, dtype, args[0]);
  return is_in(same, PLN_COUNT(same), name) ? args[0] : refuse_dtype(w, ref);
}

pln_c_text pln_c_ldexp_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  bool twice = dtype == PLN_FLOAT64;
  if (!pln_c_is_float(dtype))
    return refuse_dtype(w, ref);
  return pln_c_rounded(w, dtype,
                       pln_c_textf(w, PLN_C_COMPOUND, "%s * exp2%s((%s)%s)",
                                   pln_c_arg(w, args[0]), twice ? "" : "f",
                                   twice ? "double" : "float",
                                   pln_c_arg(w, args[1])));
}

pln_c_text pln_c_fma_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  if (!pln_c_is_float(dtype))
    return refuse_dtype(w, ref);
  return pln_c_rounded(w, dtype,
                       pln_c_textf(w, PLN_C_CALL, "fma%s(%s, %s, %s)",
                                   dtype == PLN_FLOAT64 ? "" : "f",
                                   args[0].data, args[1].data, args[2].data));
}

pln_c_text pln_c_test_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
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

pln_c_text pln_c_bitwise_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  const char *name = builtin_of(w, ref);
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
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

pln_c_text pln_c_shift_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  bool left = !strcmp(builtin_of(w, ref), "shift_left");
  bool is_u64 = !left && pln_prim_dtype(w->g, ref) == PLN_UINT64;
  pln_c_helper helper = left     ? PLN_C_HELPER_SHL
                        : is_u64 ? PLN_C_HELPER_SHRU
                                 : PLN_C_HELPER_SHR;
  if (!is_bits(w, ref))
    return args[0];
  pln_c_use(w, helper, PLN_C_I64, 1);
  return wrapped(w, pln_prim_dtype(w->g, ref),
                 pln_c_textf(w, PLN_C_CALL,
                             "pl_%s((%sint64_t)%s, (%sint64_t)%s)",
                             left     ? "shl"
                             : is_u64 ? "shru"
                                      : "shr",
                             is_u64 ? "u" : "", pln_c_arg(w, args[0]),
                             is_u64 ? "u" : "", pln_c_arg(w, args[1])));
}

pln_c_text pln_c_count_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  bool clz = !strcmp(builtin_of(w, ref), "clz");
  pln_dtype from = first_dtype(w, ref);
  if (!is_bits(w, ref))
    return args[0];
  pln_c_use(w, clz ? PLN_C_HELPER_CLZ : PLN_C_HELPER_POPCOUNT, PLN_C_I64, 1);
  const char *bits =
      pln_c_textf(w, PLN_C_CALL, "(%s)%s", pln_c_unsigned_name(from),
                  pln_c_arg(w, args[0]))
          .data;
  return wrapped(w, pln_prim_dtype(w->g, ref),
                 clz ? pln_c_textf(w, PLN_C_CALL, "pl_clz(%s, %u)", bits,
                                   pln_dtype_bits(from))
                     : pln_c_textf(w, PLN_C_CALL, "pl_popcount(%s)", bits));
}

pln_c_text pln_c_large_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  return wrapped(w, pln_prim_dtype(w->g, ref),
                 pln_c_textf(w, PLN_C_CALL,
                             "((uint64_t)%s << 32 | (uint32_t)%s)",
                             pln_c_arg(w, args[1]), pln_c_arg(w, args[0])));
}

pln_c_text pln_c_q_lane(pln_cw *w, pln_ref ref, const pln_c_text *args) {
  for (uint32_t i = 0; i < 4; i++)
    if (pln_prim_dtype(w->g, args_of(w, ref)[i]) != PLN_INT32)
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

pln_c_text pln_c_reinterpret_lane(pln_cw *w, pln_ref ref,
                                  const pln_c_text *args) {
  pln_dtype from = first_dtype(w, ref), to = pln_prim_dtype(w->g, ref);
  if (!to && w->g->nodes[args_of(w, ref)[0]].kind == PLN_INT_IMM)
    return pln_c_textf(w, PLN_C_CALL, "((void *)0)");
  if (!from || !to || pln_dtype_bits(from) != pln_dtype_bits(to)) {
    pln_c_refuse(w, "reinterpret of %s as %s", pln_dtype_name(from),
                 pln_dtype_name(to));
    return args[0];
  }
  return from_bits(w, to, bits_of(w, from, args[0]));
}
