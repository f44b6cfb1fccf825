/* type.c: C's types and literals for dtypes.
 *
 * Called by all parts of the writer. Halves are float in variables and uint16_t
 * in memory; bool is uint8_t; a vector of bool is a mask of integers that are 0
 * or -1. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codegen/writer.h"

typedef struct type_row {
  pln_dtype dtype;
  const char *name, *memory, *other; /* the unsigned type of its size */
  pln_c_type type;
} type_row;

static const type_row rows[] = {
    {PLN_INT8, "int8_t", "int8_t", "uint8_t", PLN_C_I8},
    {PLN_INT16, "int16_t", "int16_t", "uint16_t", PLN_C_I16},
    {PLN_INT32, "int32_t", "int32_t", "uint32_t", PLN_C_I32},
    {PLN_INT64, "int64_t", "int64_t", "uint64_t", PLN_C_I64},
    {PLN_UINT8, "uint8_t", "uint8_t", "uint8_t", PLN_C_U8},
    {PLN_UINT16, "uint16_t", "uint16_t", "uint16_t", PLN_C_U16},
    {PLN_UINT32, "uint32_t", "uint32_t", "uint32_t", PLN_C_U32},
    {PLN_UINT64, "uint64_t", "uint64_t", "uint64_t", PLN_C_U64},
    {PLN_BOOL, "uint8_t", "uint8_t", "uint8_t", PLN_C_U8},
    {PLN_FLOAT32, "float", "float", "uint32_t", PLN_C_F32},
    {PLN_FLOAT64, "double", "double", "uint64_t", PLN_C_F64},
    {PLN_FLOAT16, "float", "uint16_t", "uint16_t", PLN_C_U16},
    {PLN_BFLOAT16, "float", "uint16_t", "uint16_t", PLN_C_U16},
};

static const type_row *row_of(pln_dtype dtype) {
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (rows[i].dtype == dtype)
      return &rows[i];
  return NULL;
}

bool pln_c_has_dtype(pln_dtype dtype) {
  return row_of(dtype) != NULL;
}

bool pln_c_is_half(pln_dtype dtype) {
  return dtype == PLN_FLOAT16 || dtype == PLN_BFLOAT16;
}

bool pln_c_is_float(pln_dtype dtype) {
  return dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64 || pln_c_is_half(dtype);
}

bool pln_c_is_int(pln_dtype dtype) {
  return pln_c_has_dtype(dtype) && !pln_c_is_float(dtype);
}

const char *pln_c_type_name(pln_dtype dtype) {
  const type_row *row = row_of(dtype);
  return row ? row->name : "void *";
}

const char *pln_c_memory_name(pln_dtype dtype) {
  const type_row *row = row_of(dtype);
  return row ? row->memory : "void";
}

const char *pln_c_unsigned_name(pln_dtype dtype) {
  const type_row *row = row_of(dtype);
  return row ? row->other : "uint64_t";
}

pln_c_type pln_c_type_of(pln_dtype dtype) {
  const type_row *row = row_of(dtype);
  return row ? row->type : PLN_C_U64;
}

const char *pln_c_short_name(pln_c_type type) {
  static const char *const names[] = {"i8",  "i16", "i32", "i64", "u8",
                                      "u16", "u32", "u64", "f32", "f64"};
  return names[type];
}

uint32_t pln_c_bytes(pln_dtype dtype) {
  return pln_dtype_bits(dtype) / 8;
}

/* ----------------------------------------------------------------- vectors */

static uint32_t log2_of(uint32_t lanes) {
  uint32_t n = 0;
  while (lanes > 1) {
    lanes >>= 1;
    n++;
  }
  return n;
}

const char *pln_c_vector(pln_cw *w, pln_c_type type, uint32_t lanes,
                         bool in_memory) {
  w->used_vectors[type][log2_of(lanes)][0] = true;
  if (in_memory)
    w->used_vectors[type][log2_of(lanes)][1] = true;
  return pln_c_textf(w, PLN_C_NAME, "pl_%sx%u%s", pln_c_short_name(type), lanes,
                     in_memory ? "_u" : "")
      .data;
}

pln_c_type pln_c_mask_type(uint32_t bytes) {
  return bytes == 1   ? PLN_C_I8
         : bytes == 2 ? PLN_C_I16
         : bytes == 4 ? PLN_C_I32
                      : PLN_C_I64;
}

const char *pln_c_chunk_type(pln_cw *w, pln_dtype dtype, uint32_t mask,
                             uint32_t lanes) {
  if (lanes == 1)
    return pln_c_type_name(dtype);
  return pln_c_vector(w, mask ? pln_c_mask_type(mask) : pln_c_type_of(dtype),
                      lanes, false);
}

static uint32_t type_bytes(pln_c_type type) {
  static const uint8_t bytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
  return bytes[type];
}

void pln_c_use(pln_cw *w, pln_c_helper helper, pln_c_type type,
               uint32_t lanes) {
  w->used_helpers[helper][type][log2_of(lanes)] = true;
  if (lanes > 1) {
    (void)pln_c_vector(w, type, lanes, false);
    (void)pln_c_vector(w, pln_c_mask_type(type_bytes(type)), lanes, false);
  }
}

/* ---------------------------------------------------------------- literals */

int64_t pln_c_least(pln_dtype dtype) {
  uint32_t bits = pln_dtype_bits(dtype);
  if (dtype == PLN_BOOL || !pln_is_signed(dtype))
    return 0;
  return bits >= 64 ? INT64_MIN : -(INT64_C(1) << (bits - 1));
}

/* Of uint64 what int64 has: its values above are not bounded. */
int64_t pln_c_most(pln_dtype dtype) {
  uint32_t bits = pln_dtype_bits(dtype);
  if (dtype == PLN_BOOL)
    return 1;
  if (bits >= 64)
    return INT64_MAX;
  return (INT64_C(1) << (bits - pln_is_signed(dtype))) - 1;
}

pln_c_text pln_c_int(pln_cw *w, pln_dtype dtype, int64_t value) {
  switch ((int)dtype) {
  case PLN_UINT64:
    return pln_c_textf(w, PLN_C_NAME, "%lluull", (unsigned long long)value);
  case PLN_UINT32:
    return pln_c_textf(w, PLN_C_NAME, "%lluu", (unsigned long long)value);
  case PLN_INT64:
    if (value == INT64_MIN)
      return pln_c_textf(w, PLN_C_NAME, "INT64_MIN");
    if (value > INT32_MAX || value < -INT32_MAX)
      return pln_c_textf(w, value < 0 ? PLN_C_COMPOUND : PLN_C_NAME, "%lldll",
                         (long long)value);
    break;
  case PLN_INT32:
    if (value == INT32_MIN)
      return pln_c_textf(w, PLN_C_NAME, "INT32_MIN");
    break;
  default: break;
  }
  return pln_c_textf(w, PLN_C_NAME, value < 0 ? "(%lld)" : "%lld",
                     (long long)value);
}

pln_c_text pln_c_float(pln_cw *w, pln_dtype dtype, double value) {
  char text[64];
  bool twice = dtype == PLN_FLOAT64;
  const char *suffix = twice ? "" : "f";
  if (isnan(value))
    return pln_c_textf(w, PLN_C_CALL, signbit(value) ? "(-%sNAN)" : "(%sNAN)",
                       twice ? "(double)" : "");
  if (isinf(value))
    return pln_c_textf(w, PLN_C_CALL,
                       value < 0 ? "(-%sINFINITY)" : "(%sINFINITY)",
                       twice ? "(double)" : "");
  for (int digits = twice ? 15 : 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (twice ? strtod(text, NULL) == value
              : strtof(text, NULL) == (float)value)
      break;
  }
  if (!strpbrk(text, ".e"))
    strcat(text, ".0");
  return pln_c_textf(w, PLN_C_NAME, text[0] == '-' ? "(%s%s)" : "%s%s", text,
                     suffix);
}
