/* test_cast.c: casts between dtypes, byte by byte: what comes in, the dtype,
 * what comes out. Floats below 16 bits and integers below 8 too. */

#include "check.h"

#include <math.h>

#include "eval/call.h"
#include "eval/eval.h"
#include "ir/tensor/tensor.h"
#include "op/kernel/elementwise/elementwise.h"

enum { MOST = 16 };

/* The bytes of a row of elements; packed dtypes as they lie. */
typedef struct row {
  pln_dtype from, to;
  uint32_t count;
  const void *in, *want; /* want is NULL: refused */
  int saturate;          /* -1: not given */
  const char *rounding;  /* NULL: not given */
} row;

static pln_attrs make_attrs(pln_engine *e, const row *r) {
  pln_attr list[3] = {{0}};
  pln_attrs out = 0;
  uint32_t n = 0;
  CHECK_OK(pln_symbol_intern(e, pln_text("to"), &list[n].name));
  list[n].kind = PLN_ATTR_INT;
  list[n++].v.i = r->to;
  if (r->saturate >= 0) {
    CHECK_OK(pln_symbol_intern(e, pln_text("saturate"), &list[n].name));
    list[n].kind = PLN_ATTR_INT;
    list[n++].v.i = r->saturate;
  }
  if (r->rounding) {
    CHECK_OK(pln_symbol_intern(e, pln_text("round_mode"), &list[n].name));
    list[n].kind = PLN_ATTR_STRING;
    list[n++].v.s = pln_text(r->rounding);
  }
  CHECK_OK(pln_attrs_make(e, n, list, &out));
  return out;
}

static pln_status cast(pln_engine *e, const row *r, bool folding,
                       pln_tensor **out) {
  pln_builder *b;
  pln_tensor *in;
  pln_ref arg = PLN_NONE, node = PLN_NONE;
  int64_t dim = r->count;
  size_t size = (r->count * pln_dtype_bits(r->from) + 7) / 8;
  CHECK_OK(pln_builder_new(e, &b));
  CHECK_OK(pln_tensor_from_bytes(e, r->from, 1, &dim, r->in, size, &in));
  CHECK_OK(pln_build_constant(b, in, &arg));
  CHECK_OK(pln_build_call(b, pln_op_find(e, pln_text("cast")), make_attrs(e, r),
                          0, 1, &arg, &node));
  const pln_graph *g = pln_builder_graph(b);
  const pln_tensor *args[] = {in};
  *out = NULL;
  pln_status status = folding ? pln_eval_call(g, node, out)
                              : pln_compute(g, node, 1, args, out);
  pln_tensor_release(in);
  pln_builder_free(b);
  return status;
}

static void check_row(pln_engine *e, const row *r, bool folding, size_t i) {
  pln_tensor *t = NULL;
  char what[80];
  pln_status status = cast(e, r, folding, &t);
  snprintf(what, sizeof what, "row %zu: %s to %s", i, pln_dtype_name(r->from),
           pln_dtype_name(r->to));
  check_status(status, r->want ? PLN_OK : PLN_ERR_UNSUPPORTED, __FILE__,
               __LINE__, what);
  if (status == PLN_OK && r->want)
    check_true(!memcmp(t->data, r->want, t->bytes), __FILE__, __LINE__, what);
  pln_tensor_release(t);
}

static void check_all(size_t n, const row *rows, bool folding) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  for (size_t i = 0; i < n; i++)
    check_row(e, &rows[i], folding, i);
  pln_engine_free(e);
}

static void check_rows(size_t n, const row *rows) {
  check_all(n, rows, true);
}
#define ROWS(rows) (sizeof(rows) / sizeof *(rows)), (rows)
#define F32(...) ((const float[MOST]){__VA_ARGS__})
#define BYTES(...) ((const uint8_t[MOST]){__VA_ARGS__})

static void narrow_integers_keep_the_low_bits(void) {
  const row rows[] = {
      {PLN_FLOAT32, PLN_INT4, 4, F32(-9, -8, 7.9f, 15), BYTES(0x87, 0xf7), -1,
       NULL},
      {PLN_FLOAT32, PLN_UINT4, 3, F32(-1, 15, 16), BYTES(0xff, 0x00), -1, NULL},
      {PLN_FLOAT32, PLN_INT2, 4, F32(-3, -2, 1, 2), BYTES(0x99), -1, NULL},
      {PLN_FLOAT32, PLN_UINT2, 4, F32(-1, 3, 4, 0), BYTES(0x0f), -1, NULL},
      {PLN_FLOAT32, PLN_UINT4, 1, F32(NAN), NULL, -1, NULL},
      {PLN_FLOAT32, PLN_INT2, 1, F32(1e20f), NULL, -1, NULL},
      {PLN_INT8, PLN_INT4, 2, BYTES(0x7f, 0x80), BYTES(0x0f), -1, NULL},
      {PLN_INT4, PLN_INT8, 2, BYTES(0x87), BYTES(0x07, 0xf8), -1, NULL},
      {PLN_UINT2, PLN_FLOAT32, 4, BYTES(0xe4), F32(0, 1, 2, 3), -1, NULL},
  };
  check_rows(ROWS(rows));
}

static void wider_integers_refuse_what_does_not_fit(void) {
  const row rows[] = {
      {PLN_FLOAT32, PLN_INT8, 2, F32(127.5f, -128.5f), BYTES(127, 128), -1,
       NULL},
      {PLN_FLOAT32, PLN_INT8, 1, F32(128), NULL, -1, NULL},
      {PLN_FLOAT32, PLN_UINT8, 2, F32(-0.5f, 255.5f), BYTES(0, 255), -1, NULL},
      {PLN_FLOAT32, PLN_UINT8, 1, F32(-1), NULL, -1, NULL},
      {PLN_FLOAT32, PLN_INT32, 1, F32(-2147483648.0f), BYTES(0, 0, 0, 0x80), -1,
       NULL},
      {PLN_FLOAT32, PLN_INT32, 1, F32(2147483648.0f), NULL, -1, NULL},
      {PLN_FLOAT32, PLN_INT64, 1, F32(-0x1p63f),
       BYTES(0, 0, 0, 0, 0, 0, 0, 0x80), -1, NULL},
      {PLN_FLOAT32, PLN_INT64, 1, F32(0x1p63f), NULL, -1, NULL},
      {PLN_FLOAT32, PLN_UINT64, 1, F32(0x1p63f),
       BYTES(0, 0, 0, 0, 0, 0, 0, 0x80), -1, NULL},
      {PLN_FLOAT32, PLN_UINT32, 1, F32(4294967040.0f), BYTES(0, 255, 255, 255),
       -1, NULL},
      {PLN_FLOAT32, PLN_INT64, 1, F32(INFINITY), NULL, -1, NULL},
      {PLN_FLOAT32, PLN_BOOL, 4, F32(0, -0.0f, NAN, 1e-45f), BYTES(0, 0, 1, 1),
       -1, NULL},
  };
  check_rows(ROWS(rows));
}

static void a_run_gives_what_x86_gives(void) {
  const uint8_t least[] = {0, 0, 0, 0, 0, 0, 0, 0x80};
  const row rows[] = {
      {PLN_FLOAT32, PLN_INT64, 1, F32(-INFINITY), least, -1, NULL},
      {PLN_FLOAT32, PLN_INT64, 1, F32(0x1p63f), least, -1, NULL},
      {PLN_FLOAT64, PLN_INT64, 1, (const double[]){1e300}, least, -1, NULL},
      {PLN_FLOAT16, PLN_INT64, 1, BYTES(0, 0xfc), least, -1, NULL},
      {PLN_FLOAT32, PLN_INT32, 2, F32(1e10f, -INFINITY),
       BYTES(0, 0, 0, 0x80, 0, 0, 0, 0x80), -1, NULL},
      {PLN_FLOAT64, PLN_INT32, 2, (const double[]){-2147483648.9, 2147483647.9},
       BYTES(0, 0, 0, 0x80, 255, 255, 255, 0x7f), -1, NULL},
      {PLN_FLOAT32, PLN_UINT8, 4, F32(300, -1, 1e10f, 255),
       BYTES(44, 255, 0, 255), -1, NULL},
      {PLN_FLOAT32, PLN_INT16, 2, F32(65537, INFINITY), BYTES(1, 0, 0, 0), -1,
       NULL},
      {PLN_FLOAT32, PLN_UINT32, 2, F32(-1, 0x1p33f),
       BYTES(255, 255, 255, 255, 0, 0, 0, 0), -1, NULL},
      {PLN_FLOAT32, PLN_UINT64, 1, F32(0x1p65f), BYTES(0), -1, NULL},
      {PLN_FLOAT32, PLN_INT64, 1, F32(NAN), least, -1, NULL},
      {PLN_FLOAT64, PLN_UINT8, 1, (const double[]){NAN}, BYTES(0), -1, NULL},
  };
  const row refused[] = {
      {PLN_FLOAT32, PLN_INT64, 1, F32(NAN), NULL, -1, NULL},
      {PLN_FLOAT64, PLN_UINT8, 1, (const double[]){NAN}, NULL, -1, NULL},
  };
  check_all(ROWS(rows), false);
  check_all(ROWS(refused), true);
}

/* Blocks of the conversion meet in the middle of a tensor. */
static void long_runs(void) {
  enum { N = 1300 };
  static float in[N];
  static int32_t narrow[N];
  static int64_t whole[N];
  for (int i = 0; i < N; i++) {
    in[i] = (float)i * 1000.75f;
    narrow[i] = (int32_t)in[i];
    whole[i] = (int64_t)in[i];
  }
  const row rows[] = {
      {PLN_FLOAT32, PLN_INT32, N, in, narrow, -1, NULL},
      {PLN_FLOAT32, PLN_INT64, N, in, whole, -1, NULL},
      {PLN_INT32, PLN_INT64, N, narrow, whole, -1, NULL},
      {PLN_INT64, PLN_INT32, N, whole, narrow, -1, NULL},
  };
  check_rows(ROWS(rows));
}

/* The loops' own arithmetic is that of one element. */
static void halves(void) {
  static uint16_t half[1 << 16], back[1 << 16];
  static float wide[1 << 16];
  for (uint32_t i = 0; i < 1 << 16; i++)
    half[i] = (uint16_t)i;
  bool same = true;
  pln_widen(PLN_FLOAT16, half, wide, 1 << 16);
  for (uint32_t i = 0; i < 1 << 16; i++) {
    float one = pln_half_to_float(half[i]);
    same = same && !memcmp(&one, &wide[i], sizeof one);
  }
  CHECK(same);
  for (uint64_t start = 0; start <= UINT32_MAX; start += 997 << 16) {
    for (uint32_t i = 0; i < 1 << 16; i++) {
      uint32_t bits = (uint32_t)start + i * 997;
      memcpy(&wide[i], &bits, sizeof bits);
    }
    pln_narrow(PLN_FLOAT16, wide, half, 1 << 16);
    pln_narrow(PLN_BFLOAT16, wide, back, 1 << 16);
    for (uint32_t i = 0; i < 1 << 16; i++)
      same = same && half[i] == pln_float_to_half(wide[i]) &&
             back[i] == pln_float_to_bfloat(wide[i]);
  }
  CHECK(same);
}

static void floats_of_8_bits(void) {
  const row rows[] = {
      {PLN_FLOAT32, PLN_FLOAT8_E4M3FN, 5, F32(1, -448, 1000, INFINITY, NAN),
       BYTES(0x38, 0xfe, 0x7e, 0x7e, 0x7f), -1, NULL},
      {PLN_FLOAT32, PLN_FLOAT8_E4M3FN, 3, F32(1000, -INFINITY, 464),
       BYTES(0x7f, 0xff, 0x7e), 0, NULL},
      {PLN_FLOAT32, PLN_FLOAT8_E4M3FNUZ, 3, F32(-0.0f, 1000, NAN),
       BYTES(0x00, 0x7f, 0x80), -1, NULL},
      {PLN_FLOAT32, PLN_FLOAT8_E5M2, 3, F32(1e9f, -1e9f, 1),
       BYTES(0x7b, 0xfb, 0x3c), -1, NULL},
      {PLN_FLOAT32, PLN_FLOAT8_E5M2, 2, F32(1e9f, -1e9f), BYTES(0x7c, 0xfc), 0,
       NULL},
      {PLN_FLOAT32, PLN_FLOAT8_E5M2FNUZ, 2, F32(1e9f, -0.0f), BYTES(0x80, 0), 0,
       NULL},
      {PLN_FLOAT8_E4M3FN, PLN_FLOAT32, 3, BYTES(0x38, 0x80, 0x01),
       F32(1, -0.0f, 0x1p-9f), -1, NULL},
  };
  check_rows(ROWS(rows));
}

static void floats_of_4_bits_saturate(void) {
  const row rows[] = {
      {PLN_FLOAT32, PLN_FLOAT4_E2M1FN, 6,
       F32(0.48f, 0.25f, -3.5f, 9, NAN, -0.0f), BYTES(0x01, 0x7e, 0x88), -1,
       NULL},
      {PLN_FLOAT32, PLN_FLOAT4_E2M1FN, 2, F32(INFINITY, -INFINITY), BYTES(0xf7),
       0, NULL},
      {PLN_FLOAT4_E2M1FN, PLN_FLOAT32, 4, BYTES(0x21, 0xf8),
       F32(0.5f, 1, -0.0f, -6), -1, NULL},
  };
  check_rows(ROWS(rows));
}

static void powers_of_two(void) {
  const row rows[] = {
      {PLN_FLOAT32, PLN_FLOAT8_E8M0FNU, 7,
       F32(0, 0.124f, 1.1f, 8, NAN, INFINITY, 0x1.8p127f),
       BYTES(0, 124, 128, 130, 255, 254, 254), -1, NULL},
      {PLN_FLOAT32, PLN_FLOAT8_E8M0FNU, 3, F32(1.99f, 0x1p-149f, 1),
       BYTES(127, 0, 127), -1, "down"},
      {PLN_FLOAT32, PLN_FLOAT8_E8M0FNU, 3, F32(1.49f, 1.5f, 3),
       BYTES(127, 128, 129), -1, "nearest"},
      {PLN_FLOAT32, PLN_FLOAT8_E8M0FNU, 3, F32(0, INFINITY, 0x1p-140f),
       BYTES(255, 255, 255), 0, "nearest"},
      {PLN_FLOAT32, PLN_FLOAT8_E8M0FNU, 1, F32(-1), NULL, -1, NULL},
      {PLN_FLOAT8_E8M0FNU, PLN_FLOAT32, 3, BYTES(0, 127, 254),
       F32(0x1p-127f, 1, 0x1p127f), -1, NULL},
      {PLN_FLOAT8_E8M0FNU, PLN_BOOL, 2, BYTES(0, 255), BYTES(1, 1), -1, NULL},
  };
  check_rows(ROWS(rows));
}

static const check_test tests[] = {
    {"integers below a byte keep the low bits",
     narrow_integers_keep_the_low_bits},
    {"wider integers refuse what does not match",
     wider_integers_refuse_what_does_not_fit},
    {"a run gives what x86 gives", a_run_gives_what_x86_gives},
    {"long runs", long_runs},
    {"halves", halves},
    {"floats of 8 bits", floats_of_8_bits},
    {"floats of 4 bits saturate", floats_of_4_bits_saturate},
    {"floats that are powers of two", powers_of_two},
};
CHECK_MAIN(tests)
