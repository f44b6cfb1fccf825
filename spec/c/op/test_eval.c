/* test_eval.c: movement operators, shapes as values, and folding one call.
 *
 * Calls are built with constants as operands and folded: pln_eval_call also
 * checks the result against the inferred type, so each case tests both. */

#include "oom.h"
#include "op_table.h"

#include "op/op.h"

/* ----------------------------------------------------------------- building */

/* A constant from bytes. */
static pln_ref constant(pln_dtype dtype, uint32_t rank, const int64_t *dims,
                        const void *data) {
  size_t size = pln_dtype_bits(dtype) / 8;
  pln_tensor *t;
  pln_ref node = PLN_NONE;
  for (uint32_t i = 0; i < rank; i++)
    size *= (size_t)dims[i];
  CHECK_OK(pln_tensor_from_bytes(engine, dtype, rank, dims, data, size, &t));
  CHECK_OK(pln_build_constant(builder, t, &node));
  pln_tensor_release(t);
  return node;
}

/* A vector, and a tensor of `rank` dims, of int64. */
#define INTS(...)                                                        \
  constant(PLN_INT64, 1,                                                 \
           (int64_t[]){(int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8)}, \
           (int64_t[]){__VA_ARGS__})
#define SCALAR(x) constant(PLN_INT64, 0, NULL, (int64_t[]){x})

/* 0, 1, 2, ... as int64. */
static pln_ref iota(uint32_t rank, const int64_t *dims) {
  int64_t data[256], n = 1;
  for (uint32_t i = 0; i < rank; i++)
    n *= dims[i];
  for (int64_t i = 0; i < n; i++)
    data[i] = i;
  return constant(PLN_INT64, rank, dims, data);
}
#define DIMS(...)                                                 \
  (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]) { \
    __VA_ARGS__                                                   \
  }

static pln_attr ints_attr(const char *name, uint32_t count,
                          const int64_t *ints) {
  pln_attr attr = {.kind = PLN_ATTR_INTS, .count = count, .v.ints = ints};
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &attr.name));
  return attr;
}

static pln_attr int_attr(const char *name, int64_t value) {
  pln_attr attr = {.kind = PLN_ATTR_INT, .v.i = value};
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &attr.name));
  return attr;
}

static pln_attr text_attr(const char *name, const char *value) {
  pln_attr attr = {.kind = PLN_ATTR_STRING, .v.s = pln_text(value)};
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &attr.name));
  return attr;
}

static pln_attrs attrs(uint32_t n, const pln_attr *entries) {
  pln_attrs out = 0;
  CHECK_OK(pln_attrs_make(engine, n, entries, &out));
  return out;
}
#define ATTRS(...)                                                        \
  attrs((uint32_t)(sizeof((pln_attr[]){__VA_ARGS__}) / sizeof(pln_attr)), \
        (pln_attr[]){__VA_ARGS__})

static pln_status try_call(const char *op, pln_attrs dict, uint32_t results,
                           uint32_t n, const pln_ref *args, pln_ref *out) {
  pln_op found = pln_op_find(engine, pln_text(op));
  CHECK(found != 0);
  return pln_build_call(builder, found, dict, results, n, args, out);
}

static pln_ref call_n(const char *op, pln_attrs dict, uint32_t results,
                      uint32_t n, const pln_ref *args) {
  pln_ref node = PLN_NONE;
  CHECK_OK(try_call(op, dict, results, n, args, &node));
  return node;
}
#define ARGS(...)                                                 \
  (uint32_t)(sizeof((pln_ref[]){__VA_ARGS__}) / sizeof(pln_ref)), \
      (pln_ref[]) {                                               \
    __VA_ARGS__                                                   \
  }
#define CALL(op, dict, ...) call_n(op, dict, 0, ARGS(__VA_ARGS__))
#define CALL_K(op, dict, k, ...) call_n(op, dict, k, ARGS(__VA_ARGS__))

static pln_ref absent(void) {
  pln_ref node = PLN_NONE;
  CHECK_OK(pln_build_absent(builder, &node));
  return node;
}

static pln_dim named(const char *name) {
  pln_dim dim = 0;
  CHECK_OK(pln_dim_named(engine, pln_text(name), &dim));
  return dim;
}

static pln_ref variable(pln_dtype dtype, int32_t rank, const pln_dim *dims) {
  pln_type type = 0;
  pln_ref node = PLN_NONE;
  CHECK_OK(pln_type_tensor(engine, dtype, rank, dims, &type));
  CHECK_OK(pln_build_var(builder, 0, type, 0, &node));
  return node;
}

/* ----------------------------------------------------------------- checking */

static bool same_dims(const pln_tensor *t, uint32_t rank, const int64_t *dims) {
  if (t->rank != rank)
    return false;
  for (uint32_t i = 0; i < rank; i++)
    if (t->dims[i] != dims[i])
      return false;
  return true;
}

/* One result of int64 or bool has these dims and elements. */
static void check_tensor(int line, pln_tensor *t, uint32_t rank,
                         const int64_t *dims, uint32_t n,
                         const int64_t *wanted) {
  if (!t || !same_dims(t, rank, dims) || t->count != n) {
    check_true(false, __FILE__, line, "dims");
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    int64_t got = -1;
    CHECK(pln_tensor_int(t, i, &got));
    check_int(got, wanted[i], __FILE__, line, "element");
  }
}

static void folds(int line, pln_ref node, uint32_t rank, const int64_t *dims,
                  uint32_t n, const int64_t *wanted) {
  const pln_graph *g = pln_builder_graph(builder);
  pln_tensor *t = NULL;
  pln_refusal why;
  if (node == PLN_NONE ||
      !check_true(pln_eval_can_fold(g, node, &why), __FILE__, line, "fold"))
    return;
  if (check_true(pln_eval_call(g, node, &t) == PLN_OK, __FILE__, line, "eval"))
    check_tensor(line, t, rank, dims, n, wanted);
  pln_tensor_release(t);
}
#define LIST(...)                                                 \
  (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]) { \
    __VA_ARGS__                                                   \
  }
#define FOLDS(node, ...) folds(__LINE__, node, __VA_ARGS__)

static void refuses(int line, pln_ref node) {
  pln_tensor *t = NULL;
  size_t mark = pln_diag_count(engine);
  if (node == PLN_NONE)
    return;
  check_int(pln_eval_call(pln_builder_graph(builder), node, &t),
            PLN_ERR_UNSUPPORTED, __FILE__, line, "status");
  check_int((int64_t)pln_diag_count(engine), (int64_t)mark, __FILE__, line,
            "diagnostics");
}
#define REFUSES(node) refuses(__LINE__, node)

static void typed(int line, pln_ref node, int32_t rank, const pln_dim *dims) {
  pln_type type = pln_node_type(pln_builder_graph(builder), node);
  check_int(pln_type_rank(engine, type), rank, __FILE__, line, "rank");
  if (pln_type_rank(engine, type) != rank)
    return;
  for (int32_t i = 0; i < rank; i++)
    check_int(pln_type_dims(engine, type)[i], dims[i], __FILE__, line, "dim");
}
#define TYPED(node, ...)                                                 \
  typed(__LINE__, node, (int32_t)(sizeof((pln_dim[]){__VA_ARGS__}) / 8), \
        (pln_dim[]){__VA_ARGS__})

static void valued(int line, pln_ref node, uint32_t n, const pln_dim *wanted) {
  pln_value value = pln_node_value(pln_builder_graph(builder), node);
  check_int(pln_value_count(engine, value), n, __FILE__, line, "value count");
  if (pln_value_count(engine, value) != n)
    return;
  for (uint32_t i = 0; i < n; i++)
    check_int(pln_value_elements(engine, value)[i], wanted[i], __FILE__, line,
              "value");
}
#define VALUED(node, ...)                                                  \
  valued(__LINE__, node, (uint32_t)(sizeof((pln_dim[]){__VA_ARGS__}) / 8), \
         (pln_dim[]){__VA_ARGS__})

static void ill_typed(int line, const char *op, pln_attrs dict, uint32_t n,
                      const pln_ref *args) {
  pln_ref node;
  check_int(try_call(op, dict, 0, n, args, &node), PLN_ERR_TYPE, __FILE__, line,
            op);
  pln_diag_clear(engine);
}
#define ILL_TYPED(op, dict, ...) \
  ill_typed(__LINE__, op, dict, ARGS(__VA_ARGS__))

/* -------------------------------------------------------------------- tests */

static void reshapes(void) {
  begin();
  pln_ref x = iota(DIMS(2, 3));
  FOLDS(CALL("reshape", 0, x, INTS(3, -1)), DIMS(3, 2), LIST(0, 1, 2, 3, 4, 5));
  FOLDS(CALL("reshape", 0, x, INTS(0, 1, -1)), DIMS(2, 1, 3),
        LIST(0, 1, 2, 3, 4, 5));
  FOLDS(CALL("reshape", 0, SCALAR(7), INTS(1, 1)), DIMS(1, 1), LIST(7));
  ILL_TYPED("reshape", 0, x, INTS(4, 2));
  ILL_TYPED("reshape", 0, x, INTS(-1, -1));
  ILL_TYPED("reshape", 0, x, INTS(6, 1, 0));
  FOLDS(CALL("flatten", ATTRS(int_attr("axis", 0)), x), DIMS(1, 6),
        LIST(0, 1, 2, 3, 4, 5));
  FOLDS(CALL("expand_dims", 0, x, INTS(0, -1)), DIMS(1, 2, 3, 1),
        LIST(0, 1, 2, 3, 4, 5));
  pln_ref one = iota(DIMS(1, 2, 1));
  FOLDS(CALL("squeeze", 0, one), DIMS(2), LIST(0, 1));
  FOLDS(CALL("squeeze", 0, one, INTS(-1)), DIMS(1, 2), LIST(0, 1));
  ILL_TYPED("squeeze", 0, one, INTS(1));
  ILL_TYPED("expand_dims", 0, x, INTS(0, 0));
  end();
}

static void transposes(void) {
  begin();
  pln_ref x = iota(DIMS(2, 3));
  FOLDS(CALL("transpose", 0, x), DIMS(3, 2), LIST(0, 3, 1, 4, 2, 5));
  static const int64_t perm[] = {1, 2, 0};
  pln_attrs dict = ATTRS(ints_attr("axes", 3, perm));
  FOLDS(CALL("transpose", dict, iota(DIMS(2, 1, 3))), DIMS(1, 3, 2),
        LIST(0, 3, 1, 4, 2, 5));
  ILL_TYPED("transpose", dict, x);
  FOLDS(CALL("nn.depth_to_space", ATTRS(int_attr("block_size", 2)),
             iota(DIMS(1, 4, 1, 2))),
        DIMS(1, 1, 2, 4), LIST(0, 2, 1, 3, 4, 6, 5, 7));
  FOLDS(CALL("nn.space_to_depth", ATTRS(int_attr("block_size", 2)),
             iota(DIMS(1, 1, 2, 4))),
        DIMS(1, 4, 1, 2), LIST(0, 2, 1, 3, 4, 6, 5, 7));
  end();
}

static void joins_and_cuts(void) {
  begin();
  pln_ref x = iota(DIMS(2, 2)), y = iota(DIMS(2, 1));
  FOLDS(CALL("concatenate", ATTRS(int_attr("axis", -1)), x, y), DIMS(2, 3),
        LIST(0, 1, 0, 2, 3, 1));
  ILL_TYPED("concatenate", ATTRS(int_attr("axis", 0)), x, y);
  ILL_TYPED("concatenate", ATTRS(int_attr("axis", 2)), x, x);
  FOLDS(CALL("tile", 0, y, INTS(2, 2)), DIMS(4, 2),
        LIST(0, 0, 1, 1, 0, 0, 1, 1));
  FOLDS(CALL("broadcast_to", 0, y, INTS(3, 1, 2)), DIMS(3, 2, 2),
        LIST(0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1));
  ILL_TYPED("broadcast_to", 0, x, INTS(3, 2));
  const pln_graph *g = pln_builder_graph(builder);
  pln_ref parts = CALL_K("split", ATTRS(int_attr("axis", 1)), 2,
                         iota(DIMS(2, 3)), INTS(1, 2));
  pln_tensor *t[2] = {NULL, NULL};
  CHECK_OK(pln_eval_call(g, parts, t));
  check_tensor(__LINE__, t[0], DIMS(2, 1), LIST(0, 3));
  check_tensor(__LINE__, t[1], DIMS(2, 2), LIST(1, 2, 4, 5));
  pln_tensor_release(t[0]);
  pln_tensor_release(t[1]);
  parts = CALL_K("split", 0, 2, iota(DIMS(5)));
  CHECK_OK(pln_eval_call(g, parts, t));
  check_tensor(__LINE__, t[0], DIMS(3), LIST(0, 1, 2));
  check_tensor(__LINE__, t[1], DIMS(2), LIST(3, 4));
  pln_tensor_release(t[0]);
  pln_tensor_release(t[1]);
  end();
}

static void slices(void) {
  begin();
  pln_ref x = iota(DIMS(3, 4));
  FOLDS(CALL("strided_slice", 0, x, INTS(1), INTS(INT64_MAX), INTS(0)),
        DIMS(2, 4), LIST(4, 5, 6, 7, 8, 9, 10, 11));
  FOLDS(CALL("strided_slice", 0, x, INTS(-1, 0), INTS(INT64_MIN, 4), INTS(0, 1),
             INTS(-2, 3)),
        DIMS(2, 2), LIST(8, 11, 0, 3));
  FOLDS(CALL("strided_slice", 0, iota(DIMS(3)), INTS(2), INTS(1)), 1,
        ((int64_t[]){0}), 0, NULL);
  static const int64_t one[] = {1}, two[] = {2};
  FOLDS(CALL("strided_slice",
             ATTRS(ints_attr("starts", 1, one), ints_attr("ends", 1, two)),
             iota(DIMS(3))),
        DIMS(1), LIST(1));
  ILL_TYPED("strided_slice", 0, x, INTS(0), INTS(1), INTS(2));
  ILL_TYPED("strided_slice", 0, x, INTS(0), INTS(1), INTS(0), INTS(0));
  ILL_TYPED("strided_slice", 0, x, INTS(0, 0), INTS(1, 1), INTS(0, 0));
  end();
}

static void pads(void) {
  begin();
  pln_ref x = iota(DIMS(2, 2)), values = iota(DIMS(3));
  FOLDS(CALL("nn.pad", 0, x, INTS(0, 1, 1, -1), SCALAR(9)), DIMS(3, 2),
        LIST(9, 0, 9, 2, 9, 9));
  FOLDS(CALL("nn.pad", 0, x, INTS(1, 0), absent(), INTS(-1)), DIMS(2, 3),
        LIST(0, 0, 1, 0, 2, 3));
  FOLDS(CALL("nn.pad", ATTRS(text_attr("pad_mode", "reflect")), values,
             INTS(2, 2)),
        DIMS(7), LIST(2, 1, 0, 1, 2, 1, 0));
  FOLDS(
      CALL("nn.pad", ATTRS(text_attr("pad_mode", "edge")), values, INTS(1, 2)),
      DIMS(6), LIST(0, 0, 1, 2, 2, 2));
  FOLDS(
      CALL("nn.pad", ATTRS(text_attr("pad_mode", "wrap")), values, INTS(1, 2)),
      DIMS(6), LIST(2, 0, 1, 2, 0, 1));
  ILL_TYPED("nn.pad", 0, x, INTS(1, 1));
  ILL_TYPED("nn.pad", 0, values, INTS(-2, -2));
  FOLDS(CALL("center_crop_pad", 0, iota(DIMS(2, 3)), INTS(3, 1)), DIMS(3, 1),
        LIST(1, 4, 0));
  FOLDS(CALL("trilu", 0, iota(DIMS(2, 3)), SCALAR(1)), DIMS(2, 3),
        LIST(0, 1, 2, 0, 0, 5));
  FOLDS(CALL("trilu", ATTRS(int_attr("upper", 0)), iota(DIMS(2, 3)),
             SCALAR(INT64_MAX)),
        DIMS(2, 3), LIST(0, 1, 2, 3, 4, 5));
  FOLDS(CALL("reverse_sequence",
             ATTRS(int_attr("batch_axis", 0), int_attr("time_axis", 1)),
             iota(DIMS(2, 3)), INTS(2, 3)),
        DIMS(2, 3), LIST(1, 0, 2, 5, 4, 3));
  end();
}

static void takes(void) {
  begin();
  pln_ref x = iota(DIMS(3, 2));
  FOLDS(CALL("take", 0, x, INTS(-1, 0)), DIMS(2, 2), LIST(4, 5, 0, 1));
  FOLDS(CALL("take", ATTRS(int_attr("axis", 1)), x, SCALAR(1)), DIMS(3),
        LIST(1, 3, 5));
  REFUSES(CALL("take", 0, x, INTS(3)));
  FOLDS(CALL("gather", ATTRS(int_attr("axis", 1)), x,
             constant(PLN_INT64, 2, (int64_t[]){2, 1}, (int64_t[]){1, 0})),
        DIMS(2, 1), LIST(1, 2));
  FOLDS(
      CALL("gather_nd", 0, x,
           constant(PLN_INT64, 2, (int64_t[]){2, 2}, (int64_t[]){0, 1, -1, 0})),
      DIMS(2), LIST(1, 4));
  FOLDS(CALL("gather_nd", ATTRS(int_attr("batch_dims", 1)), x,
             constant(PLN_INT64, 2, (int64_t[]){3, 1}, (int64_t[]){1, 0, 1})),
        DIMS(3), LIST(1, 2, 5));
  FOLDS(CALL("scatter_nd", 0, iota(DIMS(3)),
             constant(PLN_INT64, 2, (int64_t[]){2, 1}, (int64_t[]){2, 0}),
             INTS(7, 8)),
        DIMS(3), LIST(8, 1, 7));
  FOLDS(CALL("scatter_elements", ATTRS(text_attr("reduction", "add")),
             iota(DIMS(3)), INTS(1, 1), INTS(5, INT64_MAX)),
        DIMS(3), LIST(0, INT64_MIN + 5, 2));
  REFUSES(CALL("scatter_elements", 0, iota(DIMS(3)), INTS(3), INTS(5)));
  end();
}

static void selects(void) {
  begin();
  static const uint8_t yes_no[] = {1, 0};
  pln_ref cond = constant(PLN_BOOL, 1, (int64_t[]){2}, yes_no);
  FOLDS(CALL("where", 0, cond,
             constant(PLN_INT64, 2, (int64_t[]){2, 1}, (int64_t[]){1, 2}),
             SCALAR(0)),
        DIMS(2, 2), LIST(1, 0, 2, 0));
  FOLDS(CALL("nonzero", 0, iota(DIMS(2, 2))), DIMS(2, 3),
        LIST(0, 1, 1, 1, 0, 1));
  FOLDS(CALL("compress", ATTRS(int_attr("axis", 1)), iota(DIMS(2, 2)), cond),
        DIMS(2, 1), LIST(0, 2));
  FOLDS(CALL("compress", 0, iota(DIMS(2, 2)), cond), DIMS(1), LIST(0));
  FOLDS(CALL("one_hot", 0, INTS(1, -1, 7), SCALAR(3), INTS(0, 5)), DIMS(3, 3),
        LIST(0, 5, 0, 0, 0, 5, 0, 0, 0));
  FOLDS(CALL("cumsum", ATTRS(int_attr("exclusive", 1), int_attr("reverse", 1)),
             iota(DIMS(4)), SCALAR(0)),
        DIMS(4), LIST(6, 5, 3, 0));
  FOLDS(CALL("cumsum", 0, iota(DIMS(2, 2)), SCALAR(0)), DIMS(2, 2),
        LIST(0, 1, 2, 4));
  pln_tensor *t[2] = {NULL, NULL};
  pln_ref top = CALL_K("topk", 0, 2, INTS(3, -1, 3, 2), INTS(3));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), top, t));
  check_tensor(__LINE__, t[0], DIMS(3), LIST(3, 3, 2));
  check_tensor(__LINE__, t[1], DIMS(3), LIST(0, 2, 3));
  pln_tensor_release(t[0]);
  pln_tensor_release(t[1]);
  end();
}

static void makes(void) {
  begin();
  FOLDS(CALL("shape_of", ATTRS(int_attr("start", -2)), iota(DIMS(2, 3, 4))),
        DIMS(2), LIST(3, 4));
  FOLDS(CALL("size", 0, iota(DIMS(2, 3))), 0, NULL, LIST(6));
  FOLDS(CALL("arange", 0, SCALAR(5), SCALAR(0), SCALAR(-2)), DIMS(3),
        LIST(5, 3, 1));
  FOLDS(CALL("arange", 0, SCALAR(5), SCALAR(0), SCALAR(1)), 1, ((int64_t[]){0}),
        0, NULL);
  ILL_TYPED("arange", 0, SCALAR(5), SCALAR(0), SCALAR(0));
  FOLDS(CALL("eye_like", ATTRS(int_attr("k", -1)), iota(DIMS(2, 2))),
        DIMS(2, 2), LIST(0, 0, 1, 0));
  pln_ref filled = CALL("constant_of_shape", 0, INTS(2, 3));
  pln_tensor *t = NULL;
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), filled, &t));
  CHECK(pln_tensor_is_splat(t));
  CHECK_EQ_INT(pln_tensor_count(t), 6);
  pln_tensor_release(t);
  end();
}

static void casts(void) {
  begin();
  static const float reals[] = {-1.9f, 2.5f};
  static const float huge[] = {3e9f}, nan[] = {NAN};
  int64_t two = 2, one = 1;
  pln_ref x = constant(PLN_FLOAT32, 1, &two, reals);
  FOLDS(CALL("cast", ATTRS(int_attr("to", PLN_INT64)), x), DIMS(2),
        LIST(-1, 2));
  FOLDS(CALL("cast", ATTRS(int_attr("to", PLN_BOOL)), x), DIMS(2), LIST(1, 1));
  FOLDS(CALL("cast", ATTRS(int_attr("to", PLN_UINT8)), INTS(-1, 257)), DIMS(2),
        LIST(255, 1));
  REFUSES(CALL("cast", ATTRS(int_attr("to", PLN_UINT8)), x));
  REFUSES(CALL("cast", ATTRS(int_attr("to", PLN_INT32)),
               constant(PLN_FLOAT32, 1, &one, huge)));
  REFUSES(CALL("cast", ATTRS(int_attr("to", PLN_INT64)),
               constant(PLN_FLOAT32, 1, &one, nan)));
  ILL_TYPED("cast", ATTRS(int_attr("to", 99)), x);
  pln_ref half = CALL("cast", ATTRS(int_attr("to", PLN_FLOAT16)), x);
  pln_tensor *t = NULL;
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), half, &t));
  CHECK_EQ_INT(((const uint16_t *)t->data)[1], 0x4100);
  pln_tensor_release(t);
  end();
}

/* Shape -> Gather -> Unsqueeze -> Concat -> Reshape with a named axis. */
static void melts_shapes(void) {
  begin();
  pln_dim n = named("N"), s = named("S");
  pln_ref x = variable(PLN_FLOAT32, 3, (pln_dim[]){n, s, 768});
  pln_ref shape = CALL("shape_of", 0, x);
  VALUED(shape, n, s, 768);
  pln_ref batch = CALL("take", 0, shape, SCALAR(0));
  VALUED(batch, n);
  pln_ref length = CALL("strided_slice", 0, shape, INTS(1), INTS(2));
  VALUED(length, s);
  pln_ref wanted =
      CALL("concatenate", ATTRS(int_attr("axis", 0)),
           CALL("expand_dims", 0, batch, INTS(0)), length, INTS(12), INTS(64));
  VALUED(wanted, n, s, 12, 64);
  pln_ref heads = CALL("reshape", 0, x, wanted);
  TYPED(heads, n, s, 12, 64);
  pln_ref split = CALL("reshape", 0, x, INTS(0, -1, 12, 64));
  TYPED(split, n, s, 12, 64);
  TYPED(CALL("reshape", 0, heads, INTS(0, 0, -1)), n, s, 768);
  TYPED(CALL("constant_of_shape", 0, wanted), n, s, 12, 64);
  TYPED(CALL("broadcast_to", 0, x, shape), n, s, 768);
  TYPED(CALL("arange", 0, SCALAR(0), batch, SCALAR(1)), n);
  pln_dim flat;
  CHECK_OK(pln_dim_binary(engine, PLN_DIM_MUL, s, 768, &flat));
  TYPED(CALL("flatten", 0, heads), n, flat);
  end();
}

static void decides_on_symbols(void) {
  begin();
  pln_dim n = named("N");
  pln_ref x = variable(PLN_FLOAT32, 2, (pln_dim[]){n, 4});
  pln_ref shape = CALL("shape_of", 0, x);
  /* where(shape == -1, 1, shape), as exporters write Expand */
  pln_ref minus = CALL("equal", 0, shape, INTS(-1));
  VALUED(minus, 0, 0);
  VALUED(CALL("where", 0, minus, INTS(1), shape), n, 4);
  VALUED(CALL("multiply", 0, shape, INTS(1, 3)), n, 12);
  VALUED(CALL("cast", ATTRS(int_attr("to", PLN_INT32)), shape), n, 4);
  VALUED(CALL("prod", 0, CALL("strided_slice", 0, shape, INTS(1), INTS(2))), 4);
  pln_dim next;
  CHECK_OK(pln_dim_binary(engine, PLN_DIM_ADD, n, 1, &next));
  pln_ref more = CALL("add", 0, CALL("take", 0, shape, SCALAR(0)), SCALAR(1));
  VALUED(more, next);
  VALUED(CALL("subtract", 0, more, SCALAR(1)), n);
  TYPED(CALL("concatenate", ATTRS(int_attr("axis", 0)), x,
             variable(PLN_FLOAT32, 2, (pln_dim[]){1, 4})),
        next, 4);
  TYPED(CALL("strided_slice", 0, x, INTS(0), INTS(INT64_MAX), INTS(0)), n, 4);
  TYPED(CALL("strided_slice", 0, x, INTS(1), INTS(3), INTS(1)), n, 2);
  TYPED(CALL("nn.pad", 0, x, INTS(0, 0, 1, 0)), next, 4);
  end();
}

static void keeps_unknown_rank(void) {
  begin();
  pln_ref x = variable(PLN_FLOAT32, -1, NULL);
  pln_ref y = variable(PLN_INT64, 1, (pln_dim[]){2});
  typed(__LINE__, CALL("reshape", 0, x, y), 2,
        (pln_dim[]){PLN_DIM_UNKNOWN, PLN_DIM_UNKNOWN});
  typed(__LINE__, CALL("strided_slice", 0, x, INTS(0), INTS(1)), -1, NULL);
  typed(__LINE__, CALL("transpose", 0, x), -1, NULL);
  typed(__LINE__, CALL("concatenate", 0, x, x), -1, NULL);
  typed(__LINE__, CALL("nn.pad", 0, x, y), -1, NULL);
  typed(__LINE__, CALL("take", 0, x, y), -1, NULL);
  end();
}

static void keeps_splats(void) {
  begin();
  const pln_graph *g = pln_builder_graph(builder);
  int64_t dims[] = {4, 8};
  float half = 0.5f;
  pln_tensor *t = NULL;
  pln_ref x;
  CHECK_OK(pln_tensor_splat(engine, PLN_FLOAT32, 2, dims, &half, &t));
  CHECK_OK(pln_build_constant(builder, t, &x));
  pln_tensor_release(t);
  CHECK_OK(pln_eval_call(g, CALL("transpose", 0, x), &t));
  CHECK(pln_tensor_is_splat(t) && t->dims[0] == 8);
  pln_tensor_release(t);
  CHECK_OK(pln_eval_call(g, CALL("add", 0, x, x), &t));
  CHECK(pln_tensor_is_splat(t) && *(const float *)t->data == 1.0f);
  pln_tensor_release(t);
  end();
}

static void asks_the_budget(void) {
  begin();
  pln_budget budget = {.all = false};
  CHECK(pln_budget_allows(&budget, PLN_BUDGET_FREE, 0));
  CHECK(!pln_budget_allows(&budget, PLN_BUDGET_FREE + 1, 0));
  CHECK(pln_budget_allows(&budget, PLN_BUDGET_FREE + 1, PLN_BUDGET_FREE + 1));
  CHECK_EQ_INT(budget.refused[PLN_REFUSED_OVER_BUDGET], 1);
  CHECK_STR(pln_refusal_name(PLN_REFUSED_OVER_BUDGET), "over_budget");
  const pln_graph *g = pln_builder_graph(builder);
  pln_ref x = iota(DIMS(4)), y = iota(DIMS(2));
  pln_ref node = CALL("concatenate", ATTRS(int_attr("axis", 0)), x, x, y);
  uint32_t uses[64] = {0};
  uses[x] = 2;
  uses[y] = 2; /* something else uses it too */
  CHECK_EQ_INT(pln_budget_freed(g, node, uses), 32);
  CHECK_EQ_INT(pln_budget_bytes(g, node), 80);
  end();
}

static void names_what_it_cannot(void) {
  begin();
  pln_refusal why;
  const pln_graph *g = pln_builder_graph(builder);
  pln_ref x = iota(DIMS(2, 2));
  pln_ref image = CALL("meta_schedule_layout_transform", 0, x);
  CHECK(!pln_eval_can_fold(g, image, &why));
  CHECK_EQ_INT(why, PLN_REFUSED_NO_KERNEL);
  pln_ref random = call_n("random_uniform_like", 0, 0, ARGS(x));
  CHECK(!pln_eval_can_fold(g, random, &why));
  CHECK_EQ_INT(why, PLN_REFUSED_EFFECT);
  end();
}

/* ------------------------------------------------------------- whole graphs */

static pln_ref int_var(void) {
  return variable(PLN_INT64, 1, (pln_dim[]){named("N")});
}

static pln_ref function(uint32_t n, const pln_ref *params, pln_ref body) {
  pln_ref node = PLN_NONE;
  CHECK_OK(pln_build_bind(builder, n, params, body, 0, 0, &node));
  return node;
}

static pln_graph *seal(pln_ref root) {
  pln_graph *g = NULL;
  CHECK_OK(pln_builder_seal(builder, root, &g));
  if (g)
    CHECK_OK(pln_graph_verify(g));
  return g;
}

static pln_tensor *vector(int64_t x, int64_t y) {
  int64_t two = 2, data[] = {x, y};
  pln_tensor *t = NULL;
  CHECK_OK(
      pln_tensor_from_bytes(engine, PLN_INT64, 1, &two, data, sizeof data, &t));
  return t;
}

/* Runs a graph of one argument, (1, 2), and one result; releases the graph. */
static void runs(int line, const pln_module *module, pln_graph *g, int64_t x,
                 int64_t y) {
  pln_tensor *arg = vector(1, 2), *result = NULL;
  const pln_tensor *args[] = {arg};
  pln_status status = pln_eval_tensors(module, g, 1, args, 1, &result);
  if (check_int(status, PLN_OK, __FILE__, line, "status"))
    check_tensor(line, result, DIMS(2), LIST(x, y));
  else
    print_diags(engine);
  pln_tensor_release(result);
  pln_tensor_release(arg);
  pln_graph_release(g);
}
#define RUNS(module, g, x, y) runs(__LINE__, module, g, x, y)

static void runs_functions(void) {
  begin();
  pln_ref x = int_var(), y = CALL("add", 0, x, INTS(10, 20));
  RUNS(NULL, seal(function(1, &x, CALL("multiply", 0, y, y))), 121, 484);
  RUNS(NULL, seal(function(1, &x, x)), 1, 2);
  pln_ref pair = PLN_NONE, item = PLN_NONE, fields[] = {x, y};
  CHECK_OK(pln_build_tuple(builder, 2, fields, &pair));
  CHECK_OK(pln_build_tuple_get_item(builder, pair, 1, &item));
  RUNS(NULL, seal(function(1, &x, item)), 11, 22);
  pln_tensor *result = NULL;
  pln_graph *g = seal(CALL("add", 0, INTS(1, 2), INTS(3, 4)));
  CHECK_OK(pln_eval_tensors(NULL, g, 0, NULL, 1, &result));
  check_tensor(__LINE__, result, DIMS(2), LIST(4, 6));
  pln_tensor_release(result);
  pln_graph_release(g);
  end();
}

static void enters_one_branch(void) {
  begin();
  pln_ref x = int_var(), node = PLN_NONE;
  pln_ref first = CALL("take", 0, x, SCALAR(0));
  pln_ref good = CALL("add", 0, x, x);
  pln_ref bad = CALL("divide", 0, x, SCALAR(0));
  for (int64_t least = 0; least < 2; least++) {
    pln_ref cond = CALL("greater", 0, first, SCALAR(least));
    CHECK_OK(pln_build_floating_if(builder, cond, least ? bad : good,
                                   least ? good : bad, &node));
    RUNS(NULL, seal(function(1, &x, node)), 2, 4);
  }
  end();
}

static void calls_closures(void) {
  begin();
  pln_ref x = int_var(), y = int_var(), out = PLN_NONE;
  pln_ref inner = function(1, &y, CALL("add", 0, x, y));
  pln_ref f = PLN_NONE, once = PLN_NONE, twice = PLN_NONE;
  CHECK_OK(pln_build_var(builder, 0, 0, 0, &f));
  CHECK_OK(pln_build_apply(builder, f, 0, 0, 1, &x, &once));
  CHECK_OK(pln_build_apply(builder, f, 0, 0, 1, &once, &twice));
  CHECK_OK(pln_build_floating_let(builder, f, inner, twice, &out));
  RUNS(NULL, seal(function(1, &x, out)), 3, 6);
  end();
}

static void keeps_cells(void) {
  begin();
  pln_ref x = int_var(), cell = PLN_NONE, write = PLN_NONE, read = PLN_NONE;
  pln_ref c = PLN_NONE, w = PLN_NONE, inner = PLN_NONE, out = PLN_NONE;
  CHECK_OK(pln_build_ref_create(builder, x, &cell));
  pln_type type = pln_node_type(pln_builder_graph(builder), cell);
  CHECK_OK(pln_build_var(builder, 0, type, 0, &c));
  CHECK_OK(pln_build_var(builder, 0, 0, 0, &w));
  CHECK_OK(pln_build_ref_write(builder, c, CALL("add", 0, x, x), &write));
  CHECK_OK(pln_build_ref_read(builder, c, &read));
  CHECK_OK(pln_build_floating_let(builder, w, write, read, &inner));
  CHECK_OK(pln_build_floating_let(builder, c, cell, inner, &out));
  RUNS(NULL, seal(function(1, &x, out)), 2, 4);
  end();
}

static void calls_globals(void) {
  begin();
  pln_symbol name;
  pln_module *empty = NULL, *module = NULL;
  pln_ref x = int_var(), global = PLN_NONE, node = PLN_NONE;
  CHECK_OK(pln_symbol_intern(engine, pln_text("double"), &name));
  pln_graph *doubles = seal(function(1, &x, CALL("add", 0, x, x)));
  CHECK_OK(pln_module_new(engine, &empty));
  CHECK_OK(pln_module_with(empty, name, doubles, &module));
  CHECK_OK(pln_build_global_var(builder, name, 0, &global));
  CHECK_OK(pln_build_apply(builder, global, 0, 0, 1, &x, &node));
  CHECK_OK(pln_build_apply(builder, global, 0, 0, 1, &node, &node));
  pln_graph *g = seal(function(1, &x, node));
  pln_graph_retain(g);
  RUNS(module, g, 4, 8);
  pln_tensor *arg = vector(1, 2), *result = NULL;
  const pln_tensor *args[] = {arg};
  CHECK_STATUS(pln_eval_tensors(NULL, g, 1, args, 1, &result),
               PLN_ERR_UNSUPPORTED);
  pln_tensor_release(arg);
  pln_graph_release(g);
  pln_graph_release(doubles);
  pln_module_release(module);
  pln_module_release(empty);
  end();
}

static void skips_what_nobody_needs(void) {
  begin();
  pln_ref x = int_var(), pair = PLN_NONE, item = PLN_NONE;
  pln_ref fields[] = {x, CALL("meta_schedule_layout_transform", 0, x)};
  CHECK_OK(pln_build_tuple(builder, 2, fields, &pair));
  CHECK_OK(pln_build_tuple_get_item(builder, pair, 0, &item));
  pln_graph *g = seal(function(1, &x, item));
  pln_tensor *arg = vector(1, 2), *result = NULL;
  const pln_tensor *args[] = {arg};
  CHECK_STATUS(pln_eval_tensors(NULL, g, 1, args, 1, &result),
               PLN_ERR_UNSUPPORTED); /* the tuple needs both */
  CHECK_STR(pln_diag_at(engine, pln_diag_count(engine) - 1)->message,
            "operator 'meta_schedule_layout_transform' cannot be evaluated");
  CHECK_STATUS(pln_eval_tensors(NULL, g, 0, NULL, 1, &result),
               PLN_ERR_ARGUMENT);
  pln_tensor_release(arg);
  pln_graph_release(g);
  end();
}

static void runs_long_chains(void) {
  begin();
  pln_ref x = int_var(), node = x, one = INTS(1);
  for (int i = 0; i < 100000; i++)
    node = CALL("add", 0, node, one);
  RUNS(NULL, seal(function(1, &x, node)), 100001, 100002);
  end();
}

static void nests_deep(void) {
  begin();
  pln_ref x = int_var(), body = x;
  for (int i = 0; i < 2000; i++) {
    pln_ref y = int_var(), call = PLN_NONE;
    pln_ref f = function(1, &y, CALL("add", 0, y, body));
    CHECK_OK(pln_build_apply(builder, f, 0, 0, 1, &x, &call));
    body = call;
  }
  RUNS(NULL, seal(function(1, &x, body)), 2001, 4002);
  end();
}

/* --------------------------------------------------- operands that do not fit
 */

enum { N_DTYPES = 7, N_SHAPES = 8, TRIES = 400 };

/* Untyped variables pass inference, so kernels see whatever comes. */
typedef struct zoo {
  pln_tensor *tensors[N_DTYPES * N_SHAPES];
  uint32_t seed;
} zoo;

static void fill_zoo(zoo *z) {
  static const pln_dtype dtypes[N_DTYPES] = {
      PLN_FLOAT32, PLN_INT64,  PLN_BOOL, PLN_UINT8,
      PLN_FLOAT16, PLN_STRING, PLN_INT4};
  static const int64_t dims[N_SHAPES][4] = {
      {0}, {2}, {3}, {0}, {2, 3}, {3, 2}, {1, 2, 3, 4}, {0, 3}};
  static const uint32_t ranks[N_SHAPES] = {0, 1, 1, 1, 2, 2, 4, 2};
  for (int i = 0; i < N_DTYPES * N_SHAPES; i++)
    CHECK_OK(pln_tensor_new(engine, dtypes[i / N_SHAPES], ranks[i % N_SHAPES],
                            dims[i % N_SHAPES], &z->tensors[i]));
}

static uint32_t draw(zoo *z, uint32_t n) {
  z->seed = z->seed * 1664525u + 1013904223u;
  return (z->seed >> 8) % n;
}

/* Mostly of one dtype; sometimes left out. */
static void draw_args(zoo *z, uint32_t n, const pln_tensor **args) {
  uint32_t dtype = draw(z, N_DTYPES);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t own = draw(z, 3) ? dtype : draw(z, N_DTYPES);
    args[i] =
        draw(z, 30) ? z->tensors[own * N_SHAPES + draw(z, N_SHAPES)] : NULL;
  }
}

static void try_args(zoo *z, const pln_graph *g, uint32_t n, uint32_t k) {
  const pln_tensor *args[16];
  pln_tensor *results[2] = {NULL, NULL};
  for (int i = 0; i < TRIES; i++) {
    draw_args(z, n, args);
    pln_status status = pln_eval_tensors(NULL, g, n, args, k, results);
    CHECK(status == PLN_OK || status == PLN_ERR_UNSUPPORTED);
    for (uint32_t r = 0; r < k && status == PLN_OK; r++)
      pln_tensor_release(results[r]);
    pln_diag_clear(engine);
  }
}

static void try_operator(zoo *z, pln_op op, uint32_t n, uint32_t k) {
  pln_ref params[16], call;
  for (uint32_t i = 0; i < n; i++)
    CHECK_OK(pln_build_var(builder, 0, 0, 0, &params[i]));
  if (pln_build_call(builder, op, 0, k, n, params, &call) == PLN_OK) {
    pln_graph *g = seal(function(n, params, call));
    try_args(z, g, n, k ? k : 1);
    pln_graph_release(g);
  }
  pln_diag_clear(engine);
}

static void refuses_what_does_not_fit(void) {
  begin();
  zoo z = {.seed = 1};
  fill_zoo(&z);
  for (pln_op op = 1; op < PLN_N_OPS; op++) {
    const pln_op_info *info = pln_op_row(engine, op);
    uint32_t least = (uint32_t)info->min_args;
    uint32_t most = info->max_args < 0 || info->max_args > 3
                        ? least > 3 ? least : 3
                        : (uint32_t)info->max_args;
    for (uint32_t n = least; info->kernel && n <= most; n++)
      for (uint32_t k = 0; k < 3; k++)
        try_operator(&z, op, n, k);
  }
  for (size_t i = 0; i < PLN_COUNT(z.tensors); i++)
    pln_tensor_release(z.tensors[i]);
  end();
}

/* ------------------------------------------------------------ out of memory */

/* A vector constant; the tensor is the graph's afterwards. */
static pln_status add_vector(pln_builder *b, pln_engine *e, uint32_t n,
                             pln_ref *out) {
  int64_t dim = n, data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  pln_tensor *t;
  PLN_TRY(
      pln_tensor_from_bytes(e, PLN_INT64, 1, &dim, data, n * sizeof *data, &t));
  pln_status status = pln_build_constant(b, t, out);
  pln_tensor_release(t);
  return status;
}

static pln_status fold_and_drop(pln_builder *b, pln_op op, uint32_t results,
                                uint32_t n, const pln_ref *args) {
  pln_ref node;
  pln_tensor *t[2] = {NULL, NULL};
  PLN_TRY(pln_build_call(b, op, 0, results, n, args, &node));
  pln_status status = pln_eval_call(pln_builder_graph(b), node, t);
  pln_tensor_release(t[0]);
  pln_tensor_release(t[1]);
  return status;
}

static pln_status run_and_drop(pln_builder *b, pln_ref body) {
  pln_ref f;
  pln_graph *g;
  pln_tensor *result = NULL;
  PLN_TRY(pln_build_bind(b, 0, NULL, body, 0, 0, &f));
  PLN_TRY(pln_builder_seal(b, f, &g));
  pln_status status = pln_eval_tensors(NULL, g, 0, NULL, 1, &result);
  pln_tensor_release(result);
  pln_graph_release(g);
  return status;
}

static pln_status fold_some(pln_builder *b, pln_engine *e) {
  pln_ref x, one, pair[2], f, call;
  PLN_TRY(add_vector(b, e, 8, &x));
  PLN_TRY(add_vector(b, e, 1, &one));
  pair[0] = x;
  pair[1] = one;
  PLN_TRY(fold_and_drop(b, pln_op_find(e, pln_text("take")), 0, 2, pair));
  PLN_TRY(fold_and_drop(b, pln_op_find(e, pln_text("topk")), 2, 2, pair));
  PLN_TRY(fold_and_drop(b, pln_op_find(e, pln_text("tile")), 0, 2, pair));
  pln_op add = pln_op_find(e, pln_text("add"));
  PLN_TRY(pln_build_call(b, add, 0, 0, 2, pair, &call));
  PLN_TRY(pln_build_bind(b, 0, NULL, call, 0, 0, &f));
  PLN_TRY(pln_build_apply(b, f, 0, 0, 0, NULL, &call));
  return run_and_drop(b, call);
}

static pln_status work(pln_engine *e, void *ud) {
  (void)ud;
  pln_builder *b;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = fold_some(b, e);
  pln_builder_free(b);
  return status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"reshape, flatten, squeeze, expand_dims", reshapes},
    {"transpose, depth_to_space, space_to_depth", transposes},
    {"concatenate, tile, broadcast_to, split", joins_and_cuts},
    {"strided_slice", slices},
    {"pad, center_crop_pad, trilu, reverse_sequence", pads},
    {"take, gather, gather_nd, scatter", takes},
    {"where, nonzero, compress, one_hot, cumsum, topk", selects},
    {"shape_of, size, arange, eye_like, constant_of_shape", makes},
    {"cast", casts},
    {"shape chains with named axes melt", melts_shapes},
    {"comparisons and sums of names are decided", decides_on_symbols},
    {"what is unknown stays unknown", keeps_unknown_rank},
    {"splats stay splats", keeps_splats},
    {"the budget", asks_the_budget},
    {"refusals have reasons", names_what_it_cannot},
    {"functions run", runs_functions},
    {"only the taken branch runs", enters_one_branch},
    {"closures see where they were made", calls_closures},
    {"references hold what was written last", keeps_cells},
    {"global functions run", calls_globals},
    {"what cannot be run is named", skips_what_nobody_needs},
    {"a chain of 100,000 nodes runs", runs_long_chains},
    {"2,000 nested functions run", nests_deep},
    {"kernels refuse what does not match", refuses_what_does_not_fit},
    {"lack of memory is an error like others", survives_lack_of_memory},
};
CHECK_MAIN(tests)
