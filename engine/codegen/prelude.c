/* prelude.c: what stands before the functions of a source: includes, vector
 * types, helpers; only what the unit uses.
 *
 * Called by write.c when all functions are written. */

#include "codegen/writer.h"

static const char *type_name(pln_c_type type) {
  static const char *const names[] = {
      "int8_t",   "int16_t",  "int32_t",  "int64_t", "uint8_t",
      "uint16_t", "uint32_t", "uint64_t", "float",   "double"};
  return names[type];
}

static uint32_t type_size(pln_c_type type) {
  static const uint8_t sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
  return sizes[type];
}

static pln_c_type unsigned_of(pln_c_type type) {
  return type <= PLN_C_I64 ? (pln_c_type)(type + 4) : type;
}

static void put(pln_cw *w, const char *text) {
  pln_c_raw(w, "%s", text);
}

static void put_includes(pln_cw *w) {
  put(w, "/* Written by perilune. */\n\n");
  if (w->uses_pool)
    put(w, "#ifndef _POSIX_C_SOURCE\n#define _POSIX_C_SOURCE 200809L\n#endif\n"
           "#include <pthread.h>\n#include <unistd.h>\n");
  put(w, "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
         "#include <string.h>\n\n");
}

/* gcc 12 exchanges loops although one element is stored by several rounds:
 *
 *     for i: for j < 256: B[i * 16 + j] = A[j * 256 + i] */
static void put_no_interchange(pln_cw *w) {
  put(w, "#if defined(__GNUC__) && !defined(__clang__) && "
         "!defined(__TINYC__)\n"
         "#pragma GCC optimize(\"no-loop-interchange\")\n#endif\n\n");
}

static void put_inline(pln_cw *w) {
  /* A value that is used more than once gets a variable before it is known
   * that its users need only bounds of it. A program may compare a sum with
   * itself. */
  put(w, "#ifdef __GNUC__\n"
         "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
         "#pragma GCC diagnostic ignored \"-Wtautological-compare\"\n"
         "#define PL_INLINE static inline __attribute__((unused))\n"
         "#else\n#define PL_INLINE static inline\n#endif\n\n");
}

static void put_vector_types(pln_cw *w) {
  put(w, "#if defined(__GNUC__) && !defined(__TINYC__)\n"
         "#define PL_VECTORS\n"
         "#pragma GCC diagnostic ignored \"-Wpsabi\"\n");
  for (pln_c_type type = 0; type < PLN_C_N_TYPES; type++)
    for (uint32_t log = 1; log < PLN_C_LOG_LANES; log++) {
      uint32_t lanes = 1u << log, bytes = lanes * type_size(type);
      if (w->used_vectors[type][log][0])
        pln_c_raw(w, "typedef %s pl_%sx%u __attribute__((vector_size(%u)));\n",
                  type_name(type), pln_c_short_name(type), lanes, bytes);
      if (w->used_vectors[type][log][1])
        pln_c_raw(w,
                  "typedef %s pl_%sx%u_u\n    __attribute__((vector_size(%u), "
                  "aligned(%u), may_alias));\n",
                  type_name(type), pln_c_short_name(type), lanes, bytes,
                  type_size(type));
    }
  put(w, "#endif\n\n");
}

static void put_aliases(pln_cw *w) {
  bool any = false;
  for (pln_c_type type = 0; type < PLN_C_N_TYPES; type++)
    any |= w->used_alias[type];
  if (!any)
    return;
  put(w, "/* Elements of memory that is seen as several types. */\n"
         "#ifdef __GNUC__\n#define PL_ALIAS __attribute__((may_alias))\n"
         "#else\n#define PL_ALIAS\n#endif\n");
  for (pln_c_type type = 0; type < PLN_C_N_TYPES; type++)
    if (w->used_alias[type])
      pln_c_raw(w, "typedef %s PL_ALIAS pl_%s_alias;\n", type_name(type),
                pln_c_short_name(type));
  put(w, "\n");
}

static void put_unroll(pln_cw *w) {
  if (w->uses_unroll)
    put(w, "#if defined(__clang__)\n"
           "#define PL_PRAGMA(text) _Pragma(#text)\n"
           "#define PL_UNROLL(n) PL_PRAGMA(unroll n)\n"
           "#elif defined(__GNUC__) && !defined(__TINYC__) && __GNUC__ >= 8\n"
           "#define PL_PRAGMA(text) _Pragma(#text)\n"
           "#define PL_UNROLL(n) PL_PRAGMA(GCC unroll n)\n"
           "#else\n#define PL_UNROLL(n)\n#endif\n\n");
}

static void put_shuffle(pln_cw *w) {
  if (w->uses_shuffle)
    put(w, "#if defined(__clang__) || "
           "(defined(__GNUC__) && __GNUC__ >= 12 && !defined(__TINYC__))\n"
           "#define PL_SHUFFLE(mask, a, b, ...) "
           "__builtin_shufflevector(a, b, __VA_ARGS__)\n"
           "#else\n"
           "#define PL_SHUFFLE(mask, a, b, ...) "
           "__builtin_shuffle(a, b, (mask){__VA_ARGS__})\n"
           "#endif\n\n");
}

static void put_low(pln_cw *w) {
  if (w->uses_low)
    put(w, "#if defined(__clang__) || "
           "(defined(__GNUC__) && __GNUC__ >= 12 && !defined(__TINYC__))\n"
           "#define PL_LOW(vector, splat, ...) "
           "__builtin_shufflevector(vector, vector, __VA_ARGS__)\n"
           "#else\n#define PL_LOW(vector, splat, ...) (splat)\n#endif\n\n");
}

/* Variables that gcc for x86 is not told the origin of; others take no operand
 * of a multiplication from memory more often than is written. Nor does gcc
 * carry what one round of a loop loads to the next one in registers: those are
 * for sums, which it would spill. */
static void put_keep(pln_cw *w) {
  uint32_t bytes = pln_c_vector_bytes(w);
  if (w->uses_keep)
    pln_c_raw(w,
              "#if defined(__GNUC__) && !defined(__clang__) && "
              "defined(%s)\n"
              "#define PL_KEEP(vector) __asm__(\"\" : \"+v\"(vector))\n"
              "#define PL_IN_MEMORY(type, name, n) "
              "__asm__(\"\" : \"+m\"(*(type(*)[n])(name)))\n"
              "#if __GNUC__ >= 12\n"
              "#pragma GCC optimize(\"no-predictive-commoning\")\n#endif\n"
              "#else\n#define PL_KEEP(vector) ((void)0)\n"
              "#define PL_IN_MEMORY(type, name, n) ((void)0)\n#endif\n\n",
              bytes >= 64   ? "__AVX512F__"
              : bytes >= 32 ? "__AVX__"
                            : "__SSE2__");
}

/* For functions whose loops read interleaved elements, or add products one
 * after the other, see hint.c. */
static void put_hints(pln_cw *w) {
  if (w->uses_half)
    put(w, "#if defined(__GNUC__) && !defined(__clang__) && "
           "defined(__AVX2__) && __GNUC__ >= 8\n"
           "#define PL_HALF_VECTORS "
           "__attribute__((target(\"prefer-vector-width=128\")))\n"
           "#else\n#define PL_HALF_VECTORS\n#endif\n\n");
  if (w->uses_products)
    put(w, "#if defined(__GNUC__) && !defined(__clang__) && "
           "defined(__x86_64__)\n"
           "#define PL_PRODUCTS "
           "__attribute__((optimize(\"fp-contract=off\")))\n"
           "#else\n#define PL_PRODUCTS\n#endif\n\n");
}

/* ----------------------------------------------------------------- helpers */

static void expand(pln_cw *w, const char *text, pln_c_type type,
                   uint32_t lanes) {
  const char *s = pln_c_short_name(type);
  const char *mask = pln_c_short_name(type_size(type) == 1   ? PLN_C_I8
                                      : type_size(type) == 2 ? PLN_C_I16
                                      : type_size(type) == 4 ? PLN_C_I32
                                                             : PLN_C_I64);
  for (const char *at = text; *at;) {
    size_t n = strcspn(at, "$");
    if (n > 0)
      pln_c_raw(w, "%.*s", (int)n, at);
    at += n;
    if (!*at)
      break;
    switch (at[1]) {
    case 'T': put(w, type_name(type)); break;
    case 'U': put(w, type_name(unsigned_of(type))); break;
    case 'S': put(w, s); break;
    case 'V': pln_c_raw(w, "pl_%sx%u", s, lanes); break;
    case 'L': pln_c_raw(w, "%sx%u", s, lanes); break;
    default: pln_c_raw(w, "pl_%sx%u", mask, lanes); break;
    }
    at += 2;
  }
}

static const char *const helper_texts[] = {
#define HELPER(name, text) text,
#include "codegen/prelude.def"
};

/* A helper that is an instruction of x86. */
typedef struct instruction {
  uint8_t helper, type; /* pln_c_helper, pln_c_type */
  uint8_t bytes;        /* of a vector */
  const char *name, *condition, *call;
} instruction;

/* Minimum and maximum of vectors are `a < b ? a : b` and `a > b ? a : b` of
 * their lanes, NaN and zeros included. From the operators of vectors gcc makes
 * a comparison and a blend, and loads an operand in memory twice: a softmax of
 * 64 x 1024 took 54 us, and takes 46. Of 64 bytes, clang has them by other
 * names, and finds them by itself. */
static const instruction instructions[] = {
    {PLN_C_HELPER_VECTOR_MIN, PLN_C_F32, 16, "min", "defined(__SSE2__)",
     "minps(a, b)"},
    {PLN_C_HELPER_VECTOR_MIN, PLN_C_F32, 32, "min", "defined(__AVX__)",
     "minps256(a, b)"},
    {PLN_C_HELPER_VECTOR_MIN, PLN_C_F32, 64, "min",
     "defined(__AVX512F__) && !defined(__clang__)",
     "minps512_mask(a, b, a, -1, 4)"},
    {PLN_C_HELPER_VECTOR_MIN, PLN_C_F64, 16, "min", "defined(__SSE2__)",
     "minpd(a, b)"},
    {PLN_C_HELPER_VECTOR_MIN, PLN_C_F64, 32, "min", "defined(__AVX__)",
     "minpd256(a, b)"},
    {PLN_C_HELPER_VECTOR_MIN, PLN_C_F64, 64, "min",
     "defined(__AVX512F__) && !defined(__clang__)",
     "minpd512_mask(a, b, a, -1, 4)"},
    {PLN_C_HELPER_VECTOR_MAX, PLN_C_F32, 16, "max", "defined(__SSE2__)",
     "maxps(a, b)"},
    {PLN_C_HELPER_VECTOR_MAX, PLN_C_F32, 32, "max", "defined(__AVX__)",
     "maxps256(a, b)"},
    {PLN_C_HELPER_VECTOR_MAX, PLN_C_F32, 64, "max",
     "defined(__AVX512F__) && !defined(__clang__)",
     "maxps512_mask(a, b, a, -1, 4)"},
    {PLN_C_HELPER_VECTOR_MAX, PLN_C_F64, 16, "max", "defined(__SSE2__)",
     "maxpd(a, b)"},
    {PLN_C_HELPER_VECTOR_MAX, PLN_C_F64, 32, "max", "defined(__AVX__)",
     "maxpd256(a, b)"},
    {PLN_C_HELPER_VECTOR_MAX, PLN_C_F64, 64, "max",
     "defined(__AVX512F__) && !defined(__clang__)",
     "maxpd512_mask(a, b, a, -1, 4)"},
    {PLN_C_HELPER_VECTOR_SCALE, PLN_C_F32, 16, "scale", "defined(__AVX512VL__)",
     "scalefps128_mask(a, b, a, (uint8_t)-1)"},
    {PLN_C_HELPER_VECTOR_SCALE, PLN_C_F32, 32, "scale", "defined(__AVX512VL__)",
     "scalefps256_mask(a, b, a, (uint8_t)-1)"},
    {PLN_C_HELPER_VECTOR_SCALE, PLN_C_F32, 64, "scale", "defined(__AVX512F__)",
     "scalefps512_mask(a, b, a, (uint16_t)-1, 4)"}};

static const instruction *find_instruction(pln_c_helper helper, pln_c_type type,
                                           uint32_t lanes) {
  for (size_t i = 0; i < PLN_COUNT(instructions); i++) {
    const instruction *row = &instructions[i];
    if (row->helper == helper && row->type == type &&
        row->bytes == lanes * type_size(type))
      return row;
  }
  return NULL;
}

static void put_helper(pln_cw *w, pln_c_helper helper, pln_c_type type,
                       uint32_t lanes) {
  const instruction *row = find_instruction(helper, type, lanes);
  if (row) {
    pln_c_raw(w, "#if %s\nPL_INLINE ", row->condition);
    expand(w, "$V", type, lanes);
    pln_c_raw(w, " pl_%s_", row->name);
    expand(w, "$L($V a, $V b) {\n", type, lanes);
    pln_c_raw(w, "  return __builtin_ia32_%s;\n}\n#else\n", row->call);
  }
  expand(w, helper_texts[helper], type, lanes);
  if (row)
    put(w, "#endif\n");
}

static void put_helpers(pln_cw *w, bool vectors) {
  for (uint32_t h = 0; h < PLN_C_N_HELPERS; h++)
    for (pln_c_type type = 0; type < PLN_C_N_TYPES; type++)
      for (uint32_t log = vectors; log < (vectors ? PLN_C_LOG_LANES : 1); log++)
        if (w->used_helpers[h][type][log])
          put_helper(w, (pln_c_helper)h, type, 1u << log);
}

static void put_vector_helpers(pln_cw *w) {
  if (!w->uses_vectors)
    return;
  put(w, "#ifdef PL_VECTORS\n");
  put_helpers(w, true);
  put(w, "#endif\n");
}

static const char argument_text[] =
    "#ifndef PERILUNE_ARGUMENT\n"
    "#define PERILUNE_ARGUMENT\n"
    "/* An argument of NAME_call: a buffer with its shape, or a scalar. */\n"
    "typedef struct perilune_argument {\n"
    "  void *data;\n"
    "  const int64_t *shape;\n"
    "} perilune_argument;\n"
    "#endif\n\n";

void pln_c_prelude(pln_cw *w, pln_buffer *out) {
  w->out = out;
  put_includes(w);
  put_no_interchange(w);
  put(w, argument_text);
  if (w->uses_vectors)
    put_vector_types(w);
  put_aliases(w);
  put_unroll(w);
  put_shuffle(w);
  put_low(w);
  put_keep(w);
  put_hints(w);
  put_inline(w);
  put_helpers(w, false);
  put_vector_helpers(w);
  put(w, "\n");
  if (w->uses_pool)
    put(w, pln_c_pool_text);
}

void pln_c_header_begin(pln_cw *w) {
  w->out = &w->code->header;
  put(w, "/* Written by perilune. Functions return 0, or why they stopped:\n"
         " * 1 division by zero, 2 an error of the program, 4 no workspace,\n"
         " * 0x1000 + 16 * parameter + dimension: a shape, 0x10000 + n: an\n"
         " * assertion. A workspace is 64-byte aligned, its size is that of\n"
         " * NAME_workspace_size; NAME_call takes arguments as an array. */\n\n"
         "#pragma once\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
         "#ifdef __cplusplus\nextern \"C\" {\n#define restrict __restrict\n"
         "#endif\n\n");
  put(w, argument_text);
}

void pln_c_header_end(pln_cw *w) {
  w->out = &w->code->header;
  put(w, "#ifdef __cplusplus\n#undef restrict\n}\n#endif\n");
}
