/* test_quantized_matmul.c: products and convolutions of quantised tensors:
 * small ones computed by hand and what is refused, as tables (op_table.h); long
 * sums beside those of integers; floats of 8 bits. */

#include "oom.h"

#include "op_table.h"

/* ------------------------------------------------------------------- tables */

static void sums_integers(void) {
  static const row rows[] = {
      {"matmul_integer",
       "",
       {"uint8 2x2: 1 2 3 255", "uint8 2x1: 10 200"},
       "int32 2x1: 410 51030",
       0},
      {"matmul_integer",
       "",
       {"uint8 1x2: 1 2", "int8 2x1: -128 127", "uint8: 1", "int8: -1"},
       "int32 1x1: 128",
       0},
      {"matmul_integer",
       "",
       {"uint8 2x1: 10 20", "uint8 1x2: 1 2", "uint8 2: 9 10", "uint8 2: 0 1"},
       "int32 2x2: 1 1 10 10",
       0},
      {"matmul_integer",
       "",
       {"int8 2x2x1: 1 2 3 4", "int8 2x1x1: 1 10", "int8 2x2x1: 1 0 0 1",
        "int8 2x1x1: 0 5"},
       "int32 2x2x1: 0 2 15 15",
       0},
      {"matmul_integer",
       "",
       {"uint8 3: 1 2 3", "uint8 3: 1 10 100", "-", "uint8 1: 1"},
       "int32: 315",
       0},
      {"matmul_integer", "", {"uint8 1x0:", "uint8 0x2:"}, "int32 1x2: 0 0", 0},
      {"conv_integer",
       "pads=1,1",
       {"uint8 1x1x3: 10 11 12", "uint8 1x1x3: 1 2 3", "uint8: 10"},
       "int32 1x1x3: 3 8 5",
       0},
      {"conv_integer",
       "group=2",
       {"uint8 1x2x1: 5 7", "int8 2x1x1: 1 2", "uint8 1: 5", "int8 2: 3 -1"},
       "int32 1x2x1: 0 6",
       0},
  };
  run_rows(ROWS(rows));
}

#define ONE "float32: 1"
#define HALF "float32: 0.5"

static void quantises_products(void) {
  static const row rows[] = {
      {"qlinear_matmul",
       "",
       {"uint8 1x2: 3 4", HALF, "uint8: 1", "uint8 2x1: 5 6", HALF, "uint8: 2",
        HALF, "uint8: 100"},
       "uint8 1x1: 109",
       0},
      /* Halves go to the even number before the zero point is added. */
      {"qlinear_matmul",
       "",
       {"uint8 3x1: 1 3 5", HALF, "uint8: 0", "uint8 1x1: 1", ONE, "uint8: 0",
        ONE, "uint8: 1"},
       "uint8 3x1: 1 3 3",
       0},
      {"qlinear_matmul",
       "",
       {"int8 3x1: 127 -128 1", ONE, "int8: 0", "int8 1x1: 127", ONE, "int8: 0",
        ONE, "int8: 5"},
       "int8 3x1: 127 -128 127",
       0},
      {"qlinear_matmul",
       "",
       {"uint8 2x1: 1 1", "float32 2: 1 10", "uint8 2: 0 0", "uint8 1x2: 1 1",
        "float32 2: 1 3", "uint8 2: 0 0", "float32 2: 1 2", "uint8 2: 0 100"},
       "uint8 2x2: 1 3 105 115",
       0},
      {"qlinear_matmul",
       "",
       {"int8 2x1x1: 3 4", "float16 2x1x1: 1 2", "int8 2x1x1: 1 2",
        "int8 1x1: 5", "float16: 1", "int8: 0", "float16: 1", "int8: 0"},
       "int8 2x1x1: 10 20",
       0},
      {"qlinear_matmul",
       "",
       {"uint8 2: 1 2", ONE, "uint8: 0", "uint8 2: 3 4", ONE, "uint8: 0", ONE,
        "uint8: 0"},
       "uint8: 11",
       0},
  };
  run_rows(ROWS(rows));
}

static void quantises_convolutions(void) {
  static const row rows[] = {
      {"qlinear_conv",
       "",
       {"uint8 1x1x2: 7 9", ONE, "uint8: 5", "uint8 2x1x1: 1 2",
        "float32 2: 0.5 1", "uint8 2: 0 1", HALF, "uint8: 10",
        "int32 2: 1 -100"},
       "uint8 1x2x2: 13 15 0 0",
       0},
      {"qlinear_conv",
       "pads=1,0",
       {"uint8 1x1x2: 7 9", ONE, "uint8: 5", "uint8 1x1x2: 1 3", ONE,
        "uint8: 1", ONE, "uint8: 0"},
       "uint8 1x1x2: 4 8",
       0},
  };
  run_rows(ROWS(rows));
}

static void refuses(void) {
  static const row rows[] = {
      {"matmul_integer",
       "",
       {"uint8 2x1: 1 2", "uint8 1x1: 1", "uint8 3: 1 2 3"},
       "refused: 'matmul_integer': operand 2 does not match the tensor that it "
       "scales or shifts",
       0},
      {"matmul_integer",
       "",
       {"uint8 1x1: 1", "uint8 1x1: 1", "int8: 1"},
       "refused: 'matmul_integer': operand 0 is not quantised",
       0},
      {"matmul_integer",
       "",
       {"int32 1x1: 1", "uint8 1x1: 1"},
       "refused: 'matmul_integer': operands are not bytes",
       0},
      {"conv_integer",
       "",
       {"uint8 1x1x1: 1", "uint8 1x1x1: 1", "uint8 2: 1 2"},
       "refused: 'conv_integer': operands do not match each other",
       0},
      {"qlinear_matmul",
       "",
       {"uint8 1x1: 1", ONE, "uint8: 0", "uint8 1x1: 1", ONE, "uint8: 0",
        "uint8: 1", "uint8: 0"},
       "refused: 'qlinear_matmul': operand 6 is not a scale",
       0},
      {"qlinear_conv",
       "",
       {"uint8 1x1x1: 1", ONE, "uint8: 0", "uint8 1x1x1: 1", ONE, "uint8: 0",
        ONE, "uint8: 0", "int32 2: 1 2"},
       "refused: 'qlinear_conv': the bias must be an int32 for each filter",
       0},
      {"qlinear_matmul",
       "",
       {"uint8 1x1: 0", ONE, "uint8: 0", "uint8 1x1: 1", ONE, "uint8: 0",
        "float32: 0", "uint8: 0"},
       "refused: 'qlinear_matmul': an element has no defined result",
       0},
  };
  run_rows(ROWS(rows));
}

/* --------------------------------------------------------------- long sums */

static pln_ref add_constant(pln_dtype dtype, uint32_t rank, const int64_t *dims,
                            const void *data, size_t bytes) {
  pln_tensor *t;
  pln_ref node = PLN_NONE;
  CHECK_OK(pln_tensor_from_bytes(engine, dtype, rank, dims, data, bytes, &t));
  CHECK_OK(pln_build_constant(builder, t, &node));
  pln_tensor_release(t);
  return node;
}

static pln_tensor *call_of(const char *op, uint32_t n, const pln_ref *args) {
  pln_ref node;
  pln_tensor *out = NULL;
  CHECK_OK(pln_build_call(builder, pln_op_find(engine, pln_text(op)), 0, 0, n,
                          args, &node));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), node, &out));
  return out;
}

enum { LONG = 80000 };

static void check_sum(const char *op, uint32_t want, pln_ref a, pln_ref b) {
  pln_ref args[2] = {a, b};
  pln_tensor *out = call_of(op, 2, args);
  CHECK_EQ_INT(*(const int32_t *)out->data, (int32_t)want);
  pln_tensor_release(out);
}

/* Of elements around which float32 loses bits; the longest passes int32. */
static void sums_exactly(void) {
  static uint8_t a[LONG], b[LONG];
  for (int pattern = 0; pattern < 3; pattern++)
    for (int64_t n = 500; n <= LONG; n = n * 7 / 2) {
      uint32_t want = 0;
      for (int64_t i = 0; i < n; i++) {
        a[i] = (uint8_t)(pattern ? 255 - i * pattern % 5 : 255);
        b[i] = (uint8_t)(pattern ? i * i % 251 : 255);
        want += (uint32_t)a[i] * b[i];
      }
      begin();
      int64_t wide[2] = {1, n}, high[2] = {n, 1}, line[3] = {1, n, 1};
      size_t size = (size_t)n;
      check_sum("matmul_integer", want,
                add_constant(PLN_UINT8, 2, wide, a, size),
                add_constant(PLN_UINT8, 2, high, b, size));
      check_sum("conv_integer", want, add_constant(PLN_UINT8, 3, line, a, size),
                add_constant(PLN_UINT8, 3, line, b, size));
      end();
    }
}

/* 1.5 and -2 times 4 and 0.5 at a quarter of their size, in float8e4m3fn. */
static void multiplies_small_floats(void) {
  static const uint8_t a[2] = {0x3c, 0xc0}, b[2] = {0x48, 0x30}, zero = 0;
  static const int64_t wide[2] = {1, 2}, high[2] = {2, 1};
  const float one = 1, quarter = 0.25F;
  begin();
  pln_dtype dtype = PLN_FLOAT8_E4M3FN;
  pln_ref scale = add_constant(PLN_FLOAT32, 0, NULL, &one, 4);
  pln_ref none = add_constant(dtype, 0, NULL, &zero, 1);
  pln_ref args[8] = {add_constant(dtype, 2, wide, a, 2),
                     add_constant(PLN_FLOAT32, 0, NULL, &quarter, 4),
                     none,
                     add_constant(dtype, 2, high, b, 2),
                     scale,
                     none,
                     scale,
                     none};
  pln_tensor *out = call_of("qlinear_matmul", 8, args);
  CHECK_EQ_INT(out->dtype, dtype);
  CHECK_EQ_INT(*(const uint8_t *)out->data, 0x3a); /* 5 / 4 */
  pln_tensor_release(out);
  end();
}

/* ------------------------------------------------------------------- memory */

static pln_status convolve(pln_engine *e, void *ud) {
  static const int64_t dims[3] = {1, 1, 2};
  static const pln_dtype dtypes[8] = {PLN_UINT8,   PLN_FLOAT32, PLN_UINT8,
                                      PLN_UINT8,   PLN_FLOAT32, PLN_UINT8,
                                      PLN_FLOAT32, PLN_UINT8};
  pln_builder *b;
  pln_tensor *t, *out = NULL;
  pln_ref args[8], node;
  (void)ud;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < 8 && status == PLN_OK; i++) {
    bool scalar = i != 0 && i != 3;
    const float one = 1;
    status = pln_tensor_from_bytes(e, dtypes[i], scalar ? 0 : 3, dims, &one,
                                   dtypes[i] == PLN_FLOAT32 ? 4
                                   : scalar                 ? 1
                                                            : 2,
                                   &t);
    if (status == PLN_OK) {
      status = pln_build_constant(b, t, &args[i]);
      pln_tensor_release(t);
    }
  }
  if (status == PLN_OK)
    status = pln_build_call(b, PLN_OP_QLINEAR_CONV, 0, 0, 8, args, &node);
  if (status == PLN_OK)
    status = pln_eval_call(pln_builder_graph(b), node, &out);
  pln_tensor_release(out);
  pln_builder_free(b);
  return status;
}

static void hears_of_memory(void) {
  oom_sweep(convolve, NULL);
}

static const check_test tests[] = {
    {"sums of integers by hand", sums_integers},
    {"quantised products by hand", quantises_products},
    {"quantised convolutions by hand", quantises_convolutions},
    {"what is refused", refuses},
    {"long sums are those of integers", sums_exactly},
    {"floats of 8 bits", multiplies_small_floats},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
