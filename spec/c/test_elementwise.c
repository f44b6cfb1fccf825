/* test_elementwise.c: operators that work element by element, reductions and
 * products, as tables: operator, attributes, operands, what comes out.
 *
 * A tensor is "dtype dims: elements" ("float32 2x2: 1 nan -0 inf"); results are
 * written in the same form, floats with six digits. pln_eval_call also compares
 * the result with the inferred type. The second table is about types only:
 * operands are Vars, capitals are named extents. */

#include "check.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "eval/eval.h"
#include "ir/tensor.h"

static pln_engine *engine;
static pln_builder *builder;

static void begin(void) {
  engine = pln_engine_new(NULL, NULL);
  CHECK_OK(pln_builder_new(engine, &builder));
}

static void end(void) {
  pln_builder_free(builder);
  pln_engine_free(engine);
}

/* ------------------------------------------------------------------ reading */

static const char *read_dtype(const char *s, pln_dtype *out) {
  size_t n = strcspn(s, " :");
  *out = pln_dtype_find((pln_slice){s, n});
  CHECK(*out != PLN_DTYPE_NONE);
  return s + n + strspn(s + n, " ");
}

/* "2x3", "Nx?x3", or nothing. */
static const char *read_dims(const char *s, int32_t *rank, pln_dim *dims) {
  *rank = 0;
  while (*s && *s != ':') {
    size_t n = strcspn(s, "x:");
    pln_dim *dim = &dims[(*rank)++];
    *dim = PLN_DIM_UNKNOWN;
    if (isdigit((unsigned char)*s))
      *dim = strtoll(s, NULL, 10);
    else if (*s != '?')
      CHECK_OK(pln_dim_named(engine, (pln_slice){s, n}, dim));
    s += n + (s[n] == 'x');
  }
  return s;
}

static void write_element(pln_dtype dtype, const char *word, char *out) {
  double d = strtod(word, NULL);
  float f = (float)d;
  int64_t i = *word == '-' ? strtoll(word, NULL, 10)
                           : (int64_t)strtoull(word, NULL, 10);
  uint16_t half =
      dtype == PLN_FLOAT16 ? pln_float_to_half(f) : pln_float_to_bfloat(f);
  if (dtype == PLN_FLOAT32)
    memcpy(out, &f, 4);
  else if (dtype == PLN_FLOAT64)
    memcpy(out, &d, 8);
  else if (dtype == PLN_FLOAT16 || dtype == PLN_BFLOAT16)
    memcpy(out, &half, 2);
  else
    memcpy(out, &i, pln_dtype_bits(dtype) / 8);
}

static pln_ref read_constant(const char *s) {
  pln_dtype dtype;
  int32_t rank;
  pln_dim dims[8];
  pln_tensor *t;
  pln_ref node = PLN_NONE;
  char data[4096];
  s = read_dims(read_dtype(s, &dtype), &rank, dims) + 1;
  size_t size = pln_dtype_bits(dtype) / 8, n = 0;
  for (s += strspn(s, " "); *s; s += strspn(s, " ")) {
    write_element(dtype, s, data + size * n++);
    s += strcspn(s, " ");
  }
  CHECK_OK(
      pln_tensor_from(engine, dtype, (uint32_t)rank, dims, data, n * size, &t));
  CHECK_OK(pln_build_constant(builder, t, &node));
  pln_tensor_release(t);
  return node;
}

static pln_ref read_var(const char *s) {
  pln_dtype dtype;
  int32_t rank;
  pln_dim dims[8];
  pln_type type;
  pln_ref node = PLN_NONE;
  s = read_dtype(s, &dtype);
  read_dims(s, &rank, dims);
  CHECK_OK(pln_type_tensor(engine, dtype, *s == '*' ? -1 : rank, dims, &type));
  CHECK_OK(pln_build_var(builder, 0, type, 0, &node));
  return node;
}

static pln_ref read_operand(const char *s) {
  pln_ref node = PLN_NONE;
  if (!strcmp(s, "-"))
    CHECK_OK(pln_build_absent(builder, &node));
  else
    node = strchr(s, ':') ? read_constant(s) : read_var(s);
  return node;
}

/* "axis=1 alpha=0.5 axes=0,1 mode=tanh": what is no number is a string, a point
 * makes a float, a trailing or inner comma a list. */
static pln_attrs read_attrs(const char *s) {
  pln_attr list[8];
  int64_t ints[8][8];
  pln_attrs out = 0;
  uint32_t n = 0;
  for (; *s; s += strspn(s, " ")) {
    size_t name = strcspn(s, "="), size = strcspn(s + name + 1, " ");
    const char *value = s + name + 1, *end = value + size;
    pln_attr *a = &list[n];
    *a = (pln_attr){0};
    CHECK_OK(pln_symbol_intern(engine, (pln_slice){s, name}, &a->name));
    if (!isdigit((unsigned char)*value) && *value != '-') {
      a->kind = PLN_ATTR_STRING;
      a->v.s = (pln_slice){value, size};
    } else if (memchr(value, ',', size)) {
      a->kind = PLN_ATTR_INTS;
      a->v.ints = ints[n];
      for (; value < end; value += strcspn(value, ", ") + 1)
        if (*value != ',')
          ints[n][a->count++] = strtoll(value, NULL, 10);
    } else if (memchr(value, '.', size)) {
      a->kind = PLN_ATTR_FLOAT;
      a->v.f = strtod(value, NULL);
    } else {
      a->kind = PLN_ATTR_INT;
      a->v.i = strtoll(value, NULL, 10);
    }
    n++;
    s = end;
  }
  CHECK_OK(pln_attrs_make(engine, n, list, &out));
  return out;
}

/* ------------------------------------------------------------------ writing */

static size_t put_number(char *out, double d) {
  if (d != d)
    return (size_t)sprintf(out, " nan");
  return (size_t)sprintf(out, " %.6g", d);
}

static size_t put_element(char *out, const pln_tensor *t, size_t i) {
  const char *data = t->data;
  float f;
  double d;
  uint16_t half;
  int64_t integer = 0;
  switch ((int)t->dtype) {
  case PLN_FLOAT32: memcpy(&f, data + 4 * i, 4); return put_number(out, f);
  case PLN_FLOAT64: memcpy(&d, data + 8 * i, 8); return put_number(out, d);
  case PLN_FLOAT16:
    memcpy(&half, data + 2 * i, 2);
    return put_number(out, pln_half_to_float(half));
  case PLN_BFLOAT16:
    memcpy(&half, data + 2 * i, 2);
    return put_number(out, pln_bfloat_to_float(half));
  }
  CHECK(pln_tensor_int(t, i, &integer));
  return (size_t)sprintf(out, " %lld", (long long)integer);
}

static void put_tensor(char *out, const pln_tensor *t) {
  pln_tensor *dense = NULL;
  out += sprintf(out, "%s", pln_dtype_name((pln_dtype)t->dtype));
  for (uint32_t i = 0; i < t->rank; i++)
    out += sprintf(out, "%s%lld", i ? "x" : " ", (long long)t->dims[i]);
  out += sprintf(out, ":");
  CHECK_OK(pln_tensor_dense(t, &dense));
  for (size_t i = 0; i < dense->count; i++)
    out += put_element(out, dense, i);
  pln_tensor_release(dense);
}

static void put_type(char *out, pln_type type) {
  out += sprintf(out, "%s", pln_dtype_name(pln_type_dtype(engine, type)));
  int32_t rank = pln_type_rank(engine, type);
  if (rank < 0)
    sprintf(out, " *");
  for (int32_t i = 0; i < rank; i++) {
    pln_dim dim = pln_type_dims(engine, type)[i];
    pln_symbol name = pln_dim_name(engine, dim);
    out += sprintf(out, i ? "x" : " ");
    if (PLN_DIM_IS_CONST(dim))
      out += sprintf(out, "%lld", (long long)dim);
    else if (dim == PLN_DIM_UNKNOWN)
      out += sprintf(out, "?");
    else
      out += sprintf(out, "%s",
                     name ? pln_symbol_text(engine, name).data : "(...)");
  }
}

/* ------------------------------------------------------------------ running */

typedef struct row {
  const char *op, *attrs, *args[4], *want;
} row;

static pln_status build(const row *r, uint32_t results, pln_ref *node) {
  pln_ref args[4];
  uint32_t n = 0;
  for (; n < 4 && r->args[n]; n++)
    args[n] = read_operand(r->args[n]);
  pln_op op = pln_op_find(engine, pln_text(r->op));
  CHECK(op != 0);
  return pln_build_call(builder, op, read_attrs(r->attrs), results, n, args,
                        node);
}

static void run_row(const row *r, char *got) {
  pln_ref node;
  pln_tensor *t = NULL;
  pln_status status = build(r, 0, &node);
  strcpy(got, "ill-typed");
  if (status != PLN_OK)
    return;
  status = pln_eval_call(pln_builder_graph(builder), node, &t);
  strcpy(got, status == PLN_ERR_UNSUPPORTED ? "refused" : "failed");
  if (status == PLN_OK)
    put_tensor(got, t);
  pln_tensor_release(t);
}

static void run_rows(size_t n, const row *rows) {
  begin();
  for (size_t i = 0; i < n; i++) {
    char got[4096], what[64];
    run_row(&rows[i], got);
    snprintf(what, sizeof what, "%s, row %zu", rows[i].op, i);
    check_str(got, rows[i].want, __FILE__, __LINE__, what);
  }
  end();
}

static void type_rows(size_t n, const row *rows) {
  begin();
  for (size_t i = 0; i < n; i++) {
    char got[1024] = "ill-typed", what[64];
    pln_ref node;
    if (build(&rows[i], 0, &node) == PLN_OK)
      put_type(got, pln_node_type(pln_builder_graph(builder), node));
    snprintf(what, sizeof what, "%s, row %zu", rows[i].op, i);
    check_str(got, rows[i].want, __FILE__, __LINE__, what);
  }
  end();
}
#define ROWS(rows) (sizeof(rows) / sizeof *(rows)), (rows)

/* ------------------------------------------------------------------- tables */

static void arithmetic(void) {
  static const row rows[] = {
      {"add",
       "",
       {"float32 2x2: 1 nan inf -0", "float32: -0"},
       "float32 2x2: 1 nan inf -0"},
      {"add", "", {"int32: 2147483647", "int32: 1"}, "int32: -2147483648"},
      {"add", "", {"uint8 2: 255 1", "uint8 1: 2"}, "uint8 2: 1 3"},
      {"add",
       "",
       {"float16 2: 1 65504", "float16: 65504"},
       "float16 2: 65504 inf"},
      {"add", "", {"bfloat16 2: 1 2", "bfloat16: 0.5"}, "bfloat16 2: 1.5 2.5"},
      {"add",
       "",
       {"float32 2x1x2: 1 2 3 4", "float32 3x1: 10 20 30"},
       "float32 2x3x2: 11 12 21 22 31 32 13 14 23 24 33 34"},
      {"add",
       "broadcast=1 axis=0",
       {"float32 2x3: 1 2 3 4 5 6", "float32 2: 10 20"},
       "float32 2x3: 11 12 13 24 25 26"},
      {"add",
       "broadcast=1 axis=-2",
       {"int32 2x2x1: 1 2 3 4", "int32 2: 10 20"},
       "int32 2x2x1: 11 22 13 24"},
      {"add",
       "broadcast=1 axis=-1",
       {"float32 2x2: 1 2 3 4", "float32 2: 10 20"},
       "float32 2x2: 11 22 13 24"},
      {"add",
       "broadcast=1 axis=1",
       {"float32 2x2: 1 2 3 4", "float32 1x1: 10"},
       "float32 2x2: 11 12 13 14"},
      {"add",
       "broadcast=1 axis=2",
       {"float32 2x2: 1 2 3 4", "float32 2: 10 20"},
       "refused"},
      {"greater",
       "broadcast=1 axis=0",
       {"float32 2x2: 1 2 3 4", "float32 2: 1 3"},
       "bool 2x2: 0 1 0 1"},
      {"arange",
       "",
       {"float16: 1", "float16: 5", "float16: 2"},
       "float16 2: 1 3"},
      {"arange",
       "",
       {"bfloat16: 10", "bfloat16: 6", "bfloat16: -3"},
       "bfloat16 2: 10 7"},
      {"subtract",
       "",
       {"float32 2x3: 1 2 3 4 5 6", "float32 3: 1 2 3"},
       "float32 2x3: 0 0 0 3 3 3"},
      {"subtract",
       "",
       {"float32 2x1: 1 2", "float32 1x3: 1 2 3"},
       "float32 2x3: 0 -1 -2 1 0 -1"},
      {"multiply",
       "",
       {"int64: -9223372036854775808", "int64: -1"},
       "int64: -9223372036854775808"},
      {"multiply", "", {"int16: 32767", "int16: 32767"}, "int16: 1"},
      {"multiply", "", {"float32 0x2:", "float32 2: 1 2"}, "float32 0x2:"},
      {"divide",
       "",
       {"int32 4: 7 -7 7 -7", "int32 4: 2 2 -2 -2"},
       "int32 4: 3 -3 -3 3"},
      {"divide", "", {"int32: 1", "int32: 0"}, "refused"},
      {"divide", "", {"int32: -2147483648", "int32: -1"}, "refused"},
      {"divide", "", {"int8: -128", "int8: -1"}, "refused"},
      {"divide",
       "",
       {"float32 3: 1 -1 0", "float32: 0"},
       "float32 3: inf -inf nan"},
      {"mod",
       "",
       {"int32 4: 7 -7 7 -7", "int32 4: 3 3 -3 -3"},
       "int32 4: 1 2 -2 -1"},
      {"mod",
       "fmod=1",
       {"int32 4: 7 -7 7 -7", "int32 4: 3 3 -3 -3"},
       "int32 4: 1 -1 1 -1"},
      {"mod",
       "fmod=1",
       {"float32 2: 5.5 -5.5", "float32: 2"},
       "float32 2: 1.5 -1.5"},
      {"mod", "", {"int64: -9223372036854775808", "int64: -1"}, "int64: 0"},
      {"mod", "", {"int64: 1", "int64: 0"}, "refused"},
      {"power",
       "",
       {"float32 3: 2 -3 0.5", "float32: 2"},
       "float32 3: 4 9 0.25"},
      {"power", "", {"float32 2: 2 4", "float32 2: 3 0.5"}, "float32 2: 8 2"},
      {"power",
       "",
       {"float32 2: -3 0.5", "float32: 3"},
       "float32 2: -27 0.125"},
      {"power", "", {"float32 2: 4 -inf", "float32: 0.5"}, "float32 2: 2 inf"},
      {"power", "", {"float64 2: 2 -1", "float64: 3"}, "float64 2: 8 -1"},
      {"power", "", {"int32 2: 2 -3", "int32: 3"}, "int32 2: 8 -27"},
      {"power", "", {"float32 2: 2 3", "int64 2: 3 2"}, "float32 2: 8 9"},
      {"power", "", {"int32 2: 2 3", "float32: 2"}, "int32 2: 4 9"},
      {"power", "", {"int32: 2", "int32: -1"}, "refused"},
      {"power", "", {"int32: 2", "float32: 0.5"}, "refused"},
      {"maximum",
       "",
       {"float32 3: 1 nan -inf", "float32 3: nan 1 -1"},
       "float32 3: nan nan -1"},
      {"minimum",
       "",
       {"float32 3: 1 nan -inf", "float32 3: nan 1 -1"},
       "float32 3: nan nan -inf"},
      {"maximum",
       "",
       {"uint64 1: 9223372036854775807", "uint64: 1", "uint64 2: 3 4"},
       "uint64 2: 9223372036854775807 9223372036854775807"},
      {"minimum", "", {"int8 2: -128 5"}, "int8 2: -128 5"},
      {"add_n",
       "",
       {"float32 2: 1 2", "float32: 3", "float32 2x1: 10 20"},
       "float32 2x2: 14 15 24 25"},
      {"mean_n", "", {"float32 2: 1 2", "float32 2: 3 4"}, "float32 2: 2 3"},
      {"bit_shift",
       "direction=LEFT",
       {"uint8 2: 255 1", "uint8: 7"},
       "uint8 2: 128 128"},
      {"bit_shift", "direction=RIGHT", {"uint8: 255", "uint8: 8"}, "refused"},
      {"bitwise_xor", "", {"int8 2: -1 5", "int8: 3"}, "int8 2: -4 6"},
      {"add", "", {"float32 2: 1 2", "float32 3: 1 2 3"}, "ill-typed"},
      {"add", "", {"float32: 1", "int32: 1"}, "ill-typed"},
  };
  run_rows(ROWS(rows));
}

static void comparisons(void) {
  static const row rows[] = {
      {"equal",
       "",
       {"float32 3: nan -0 1", "float32 3: nan 0 2"},
       "bool 3: 0 1 0"},
      {"less", "", {"float32 3: nan -inf 1", "float32: 0"}, "bool 3: 0 1 0"},
      {"greater_equal", "", {"uint8 2: 255 0", "uint8: 1"}, "bool 2: 1 0"},
      {"less_equal",
       "",
       {"int64 2x1: 1 2", "int64 2: 1 2"},
       "bool 2x2: 1 1 0 1"},
      {"greater", "", {"float16 2: 1 -1", "float16: 0"}, "bool 2: 1 0"},
      {"equal", "", {"bool 2: 1 0", "bool: 1"}, "bool 2: 1 0"},
      {"logical_and", "", {"bool 2: 1 0", "bool: 1"}, "bool 2: 1 0"},
      {"logical_xor", "", {"bool 2: 1 0", "bool: 1"}, "bool 2: 0 1"},
      {"logical_not", "", {"bool 2: 1 0"}, "bool 2: 0 1"},
      {"isnan", "", {"float32 3: nan inf 0"}, "bool 3: 1 0 0"},
      {"isinf", "", {"float32 3: -inf inf nan"}, "bool 3: 1 1 0"},
      {"isinf",
       "detect_negative=0",
       {"float64 3: -inf inf nan"},
       "bool 3: 0 1 0"},
      {"less", "", {"bool: 1", "bool: 0"}, "refused"},
  };
  run_rows(ROWS(rows));
}

static void functions(void) {
  static const row rows[] = {
      {"abs", "", {"int8 3: -128 -1 2"}, "int8 3: -128 1 2"},
      {"abs", "", {"float32 3: -0 -inf nan"}, "float32 3: 0 inf nan"},
      {"negative", "", {"int32: -2147483648"}, "int32: -2147483648"},
      {"negative", "", {"float32 2: 0 nan"}, "float32 2: -0 nan"},
      {"sign", "", {"float32 4: -2 0 3 nan"}, "float32 4: -1 0 1 nan"},
      {"sign", "", {"uint8 2: 0 200"}, "uint8 2: 0 1"},
      {"round",
       "",
       {"float32 6: 0.5 1.5 2.5 -0.5 -1.5 2.6"},
       "float32 6: 0 2 2 -0 -2 3"},
      {"floor", "", {"float64 2: -1.5 1.5"}, "float64 2: -2 1"},
      {"ceil", "", {"float16 2: -1.5 1.5"}, "float16 2: -1 2"},
      {"sin", "", {"float32 2: 1e10 -0.5"}, "float32 2: -0.487506 -0.479426"},
      {"cos", "", {"float32 2: 1e10 0"}, "float32 2: 0.87312 1"},
      {"sqrt", "", {"float32 3: 4 -1 inf"}, "float32 3: 2 nan inf"},
      {"reciprocal", "", {"float32 3: 4 0 -inf"}, "float32 3: 0.25 inf -0"},
      {"exp", "", {"float32 3: 0 -inf 1"}, "float32 3: 1 0 2.71828"},
      {"log", "", {"float32 3: 0 1 -1"}, "float32 3: -inf 0 nan"},
      {"erf", "", {"float32 3: 0 inf 0.5"}, "float32 3: 0 1 0.5205"},
      {"tanh", "", {"float32 2: inf 0.5"}, "float32 2: 1 0.462117"},
      {"bitwise_not", "", {"uint8 2: 0 255"}, "uint8 2: 255 0"},
      {"nn.relu", "", {"float32 4: -1 0 2 nan"}, "float32 4: 0 0 2 nan"},
      {"nn.relu", "", {"int32 2: -1 2"}, "int32 2: 0 2"},
      {"nn.leaky_relu", "alpha=0.5", {"float32 2: -1 2"}, "float32 2: -0.5 2"},
      {"nn.prelu",
       "",
       {"float32 2x2: -1 -2 3 -4", "float32 2: 0.5 2"},
       "float32 2x2: -0.5 -4 3 -8"},
      {"nn.elu", "", {"float32 2: -1 1"}, "float32 2: -0.632121 1"},
      {"nn.selu", "", {"float32 2: -1 1"}, "float32 2: -1.11133 1.0507"},
      {"nn.celu", "alpha=2.0", {"float32 2: -1 1"}, "float32 2: -0.786939 1"},
      {"nn.gelu", "", {"float32 2: 1 -1"}, "float32 2: 0.841345 -0.158655"},
      {"nn.gelu", "approximate=tanh", {"float32: 1"}, "float32: 0.841192"},
      {"nn.hard_sigmoid", "", {"float32 3: -9 0 9"}, "float32 3: 0 0.5 1"},
      {"nn.hard_swish", "", {"float32 3: -4 1 4"}, "float32 3: -0 0.666667 4"},
      {"nn.mish", "", {"float32: 1"}, "float32: 0.865098"},
      {"nn.softplus",
       "",
       {"float32 3: 0 1000 -1000"},
       "float32 3: 0.693147 1000 0"},
      {"nn.softsign", "", {"float32: -1"}, "float32: -0.5"},
      {"nn.shrink",
       "bias=0.5 lambd=1.5",
       {"float32 3: -2 1 2"},
       "float32 3: -1.5 0 1.5"},
      {"nn.silu", "", {"float32 2: 1 -1000"}, "float32 2: 0.731059 -0"},
      {"nn.thresholded_relu", "", {"float32 2: 1 1.5"}, "float32 2: 0 1.5"},
      {"clip",
       "min=-1.0 max=1.0",
       {"float32 3: -2 nan 2"},
       "float32 3: -1 nan 1"},
      {"clip",
       "",
       {"float32 3: -2 nan 2", "float32: -1"},
       "float32 3: -1 nan 2"},
      {"clip",
       "",
       {"float32 3: -2 nan 2", "float32: 1", "float32: -1"},
       "float32 3: -1 nan -1"},
      {"clip",
       "",
       {"float32 2: -2 2", "float32: nan", "float32: 1"},
       "float32 2: -2 1"},
      {"clip", "", {"int32 3: -2 0 2", "-", "int32: 1"}, "int32 3: -2 0 1"},
      {"clip", "", {"int32 2: 0 5", "int32: 3", "int32: 2"}, "int32 2: 2 2"},
  };
  run_rows(ROWS(rows));
}

static void reductions(void) {
  static const row rows[] = {
      {"sum", "", {"int64 2x2: 1 2 3 4"}, "int64 1x1: 10"},
      {"sum", "keepdims=0", {"int64 2x2: 1 2 3 4"}, "int64: 10"},
      {"sum", "axes=0,", {"float32 2x3: 1 2 3 4 5 6"}, "float32 1x3: 5 7 9"},
      {"sum",
       "keepdims=0",
       {"float32 2x2x2: 1 2 3 4 5 6 7 8", "int64 2: 0 -1"},
       "float32 2: 14 22"},
      {"sum", "noop_with_empty_axes=1", {"float32 2: 1 2"}, "float32 2: 1 2"},
      {"sum", "axes=1,", {"float32 2x0:"}, "float32 2x1: 0 0"},
      {"sum", "", {"float32 4: 16777216 1 1 -16777216"}, "float32 1: 2"},
      {"sum", "", {"float16 2: 1 2"}, "float16 1: 3"},
      {"sum", "", {"int8 2: 127 1"}, "int8 1: -128"},
      {"sum", "axes=5,", {"float32 2: 1 2"}, "ill-typed"},
      {"prod", "axes=1,", {"int32 2x0:"}, "int32 2x1: 1 1"},
      {"prod", "keepdims=0", {"int64 3: 2 3 4"}, "int64: 24"},
      {"mean", "", {"float32 4: 1 2 3 4"}, "float32 1: 2.5"},
      {"mean", "", {"int32 2: -1 -2"}, "int32 1: -1"},
      {"mean", "", {"float32 0:"}, "float32 1: nan"},
      {"max", "", {"float32 3: 1 nan 3"}, "float32 1: nan"},
      {"max", "", {"int8 2: -128 -1"}, "int8 1: -1"},
      {"max", "", {"int32 0:"}, "refused"},
      {"max", "", {"bool 2: 0 1"}, "bool 1: 1"},
      {"min",
       "axes=1, keepdims=0",
       {"float32 2x2: 1 -inf 3 4"},
       "float32 2: -inf 3"},
      {"min", "", {"float32 0:"}, "float32 1: inf"},
      {"reduce_l1", "", {"float32 3: 1 -2 3"}, "float32 1: 6"},
      {"reduce_l2", "", {"float32 2: 3 4"}, "float32 1: 5"},
      {"reduce_log_sum", "", {"float32 2: 0.5 0.5"}, "float32 1: 0"},
      {"reduce_l2", "", {"int32 2: 3 -5"}, "int32 1: 5"},
      {"reduce_log_sum", "", {"int64 2: 3 6"}, "int64 1: 2"},
      {"reduce_log_sum", "", {"int64 2: 3 -3"}, "refused"},
      {"logsumexp", "", {"uint8 2: 3 3"}, "uint8 1: 3"},
      {"reduce_sum_square", "", {"int32 2: 3 4"}, "int32 1: 25"},
      {"logsumexp", "", {"float32 2: 1000 1000"}, "float32 1: 1000.69"},
      {"logsumexp", "", {"float32 1: -inf"}, "float32 1: -inf"},
      {"argmax", "axis=1", {"float32 2x3: 1 3 3 6 5 4"}, "int64 2x1: 1 0"},
      {"argmax",
       "axis=1 select_last_index=1 keepdims=0",
       {"int32 2x3: 1 3 3 6 5 4"},
       "int64 2: 2 0"},
      {"argmin", "", {"float32 3: 1 nan 0"}, "int64 1: 1"},
      {"argmin", "", {"float32 0:"}, "refused"},
      {"cumsum", "", {"float32 3: 1 2 3", "int64: 0"}, "float32 3: 1 3 6"},
      {"cumsum",
       "exclusive=1",
       {"float16 1x3: 1 2 3", "int64: 1"},
       "float16 1x3: 0 1 3"},
      {"cumsum",
       "reverse=1 exclusive=1",
       {"int32 2x2: 1 2 3 4", "int64: -1"},
       "int32 2x2: 2 0 4 0"},
      {"cumsum",
       "reverse=1",
       {"float64 2x2: 1 2 3 4", "int64: 0"},
       "float64 2x2: 4 6 3 4"},
      {"nn.softmax", "", {"float32 1x2: 20 0"}, "float32 1x2: 1 2.06115e-09"},
      {"nn.softmax", "", {"float32 1x2: 1000 1000"}, "float32 1x2: 0.5 0.5"},
      {"nn.softmax", "axis=0", {"float32 2x1: 0 0"}, "float32 2x1: 0.5 0.5"},
      {"nn.softmax",
       "axis=1 coerce_2d=1",
       {"float16 1x2x2: 1 1 1 1"},
       "float16 1x2x2: 0.25 0.25 0.25 0.25"},
      {"nn.log_softmax",
       "",
       {"float64 2: 0 0"},
       "float64 2: -0.693147 -0.693147"},
      {"nn.hardmax", "", {"float32 3: 1 3 3"}, "float32 3: 0 1 0"},
  };
  run_rows(ROWS(rows));
}

static void products(void) {
  static const row rows[] = {
      {"nn.matmul",
       "",
       {"float32 2x2: 1 2 3 4", "float32 2x2: 5 6 7 8"},
       "float32 2x2: 19 22 43 50"},
      {"nn.matmul", "", {"int32 2: 1 2", "int32 2: 3 4"}, "int32: 11"},
      {"nn.matmul",
       "",
       {"float32 2x1x2: 1 2 3 4", "float32 2: 1 10"},
       "float32 2x1: 21 43"},
      {"nn.matmul",
       "",
       {"float32 2x1x1x2: 1 2 3 4", "float32 1x2x2x1: 1 1 2 2"},
       "float32 2x2x1x1: 3 6 7 14"},
      {"nn.matmul", "", {"float32 2x0:", "float32 0x1:"}, "float32 2x1: 0 0"},
      {"nn.matmul", "", {"float16 1x1: 2", "float16 1x1: 3"}, "float16 1x1: 6"},
      {"nn.gemm",
       "transA=1 transB=1",
       {"float32 2x1: 1 2", "float32 3x2: 1 2 3 4 5 6", "float32 3: 1 0 0"},
       "float32 1x3: 6 11 17"},
      {"nn.gemm",
       "alpha=2.0 beta=0.5",
       {"float32 1x1: 3", "float32 1x1: 4", "float32: 2"},
       "float32 1x1: 25"},
  };
  run_rows(ROWS(rows));
}

static void types(void) {
  static const row rows[] = {
      {"add", "", {"float32 Nx3", "float32 3"}, "float32 Nx3"},
      {"add", "", {"float32 NxM", "float32 *"}, "float32 *"},
      {"equal", "", {"int64 N", "int64 1"}, "bool N"},
      {"sum", "axes=1, keepdims=0", {"float32 Nx3xM"}, "float32 NxM"},
      {"sum", "keepdims=0", {"float32 *"}, "float32"},
      {"argmax", "axis=-1 keepdims=0", {"float32 Nx5"}, "int64 N"},
      {"nn.matmul",
       "",
       {"float32 Nx12xSx64", "float32 Nx12x64xS"},
       "float32 Nx12xSxS"},
      {"nn.matmul", "", {"float32 2x3", "float32 4x5"}, "ill-typed"},
      {"nn.gemm", "transB=1", {"float32 Nx8", "float32 4x8"}, "float32 Nx4"},
      {"nn.conv",
       "pads=3,3,3,3 strides=2,2",
       {"float32 Nx3x224x224", "float32 64x3x7x7"},
       "float32 Nx64x112x112"},
      {"nn.conv",
       "pads=1,1,1,1",
       {"float32 1x3xHxW", "float32 8x3x3x3"},
       "float32 1x8xHxW"},
      {"nn.conv",
       "group=3",
       {"float32 1x3x5", "float32 6x1x3"},
       "float32 1x6x3"},
      {"nn.conv", "", {"float32 1x3x5", "float32 6x2x3"}, "ill-typed"},
      {"nn.conv",
       "auto_pad=SAME_UPPER strides=2,2",
       {"float32 1x3x5x5", "float32 8x3x3x3"},
       "float32 1x8x3x3"},
      {"nn.conv",
       "dilations=2,2",
       {"float32 1x1x7x7", "float32 1x1x3x3"},
       "float32 1x1x3x3"},
      {"nn.conv_transpose",
       "strides=2,2",
       {"float32 1x4x3x3", "float32 4x2x2x2"},
       "float32 1x2x6x6"},
      {"nn.max_pool",
       "kernel_shape=3,3 strides=2,2 ceil_mode=1",
       {"float32 1x8x6x6"},
       "float32 1x8x3x3"},
      {"nn.max_pool",
       "kernel_shape=1,1 strides=2,2 ceil_mode=1",
       {"float32 1x8x2x2"},
       "float32 1x8x1x1"},
      {"nn.avg_pool",
       "kernel_shape=2,2 strides=2,2",
       {"float32 1x8x7x7"},
       "float32 1x8x3x3"},
      {"nn.global_avg_pool", "", {"float32 Nx8xHxW"}, "float32 Nx8x1x1"},
      {"image.resize",
       "",
       {"float32 Nx3x4x5", "-", "float32 4: 1 1 2 2"},
       "float32 Nx3x8x10"},
      {"image.resize",
       "",
       {"float32 Nx3x4x5", "-", "-", "int64 4: 1 3 7 9"},
       "float32 1x3x7x9"},
      {"einsum",
       "equation=bij,bjk->bik",
       {"float32 Nx2x3", "float32 Nx3x4"},
       "float32 Nx2x4"},
      {"einsum", "equation=...ii->...i", {"float32 Nx3x3"}, "float32 Nx3"},
      {"quantize_linear", "", {"float32 Nx3", "float32", "int8"}, "int8 Nx3"},
      {"dequantize_linear", "", {"uint8 Nx3", "float16"}, "float16 Nx3"},
      {"lstm",
       "hidden_size=5",
       {"float32 TxBx3", "float32 1x20x3", "float32 1x20x5"},
       "float32 Tx1xBx5"},
      {"random_normal_like", "", {"float16 Nx3"}, "float16 Nx3"},
      {"ml.array_feature_extractor",
       "",
       {"float32 NxM", "int64 1"},
       "float32 Nx1"},
  };
  type_rows(ROWS(rows));
}

/* ----------------------------------------------------------------- overhead */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Printed, not judged: machines differ. */
static void overhead(void) {
  enum { TIMES = 20000 };
  int64_t dims[2] = {16, 16};
  pln_tensor *t, *sum;
  pln_ref x = PLN_NONE, node = PLN_NONE;
  begin();
  CHECK_OK(pln_tensor_new(engine, PLN_FLOAT32, 2, dims, &t));
  CHECK_OK(pln_build_constant(builder, t, &x));
  pln_ref args[2] = {x, x};
  pln_op add = pln_op_find(engine, pln_text("add"));
  CHECK_OK(pln_build_call(builder, add, 0, 0, 2, args, &node));
  double start = now();
  for (int i = 0; i < TIMES; i++) {
    if (!CHECK_OK(pln_eval_call(pln_builder_graph(builder), node, &sum)))
      break;
    pln_tensor_release(sum);
  }
  printf("# add of 16x16: %.0f ns\n", (now() - start) / TIMES * 1e9);
  pln_tensor_release(t);
  end();
}

static const check_test tests[] = {
    {"arithmetic broadcasts and wraps", arithmetic},
    {"comparisons follow IEEE 754", comparisons},
    {"functions of one element", functions},
    {"reductions over axes", reductions},
    {"products of matrices", products},
    {"types with named extents", types},
    {"the cost of a small call", overhead},
};
CHECK_MAIN(tests)
