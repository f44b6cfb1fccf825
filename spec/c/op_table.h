/* op_table.h: operators tested as tables: operator, attributes, operands, what
 * comes out.
 *
 * A tensor is "dtype dims: elements" ("float32 2x2: 1 nan -0 inf"; floats of 8
 * and 4 bits as their bits; in strings "_" stands for a space, "~" for the
 * empty string), an omitted operand "-"; results are written in the same form,
 * floats with six digits, one after the other with " | " between. pln_eval_call
 * also compares each result with the inferred type. An operand without elements
 * ("float32 Nx?") is a Var, for tables that are about types only.
 *
 * What an operator refuses is "refused: " and the message; what has no type
 * "ill-typed: " and the message. */

#ifndef OP_TABLE_H
#define OP_TABLE_H

#include "check.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "eval/call.h"
#include "eval/eval.h"
#include "ir/tensor/tensor.h"

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

/* A word of a string tensor; its text goes to *room. */
static pln_slice read_word(const char *word, char **room) {
  size_t n = *word == '~' ? 0 : strcspn(word, " ");
  pln_slice out = {*room, n};
  for (size_t i = 0; i < n; i++)
    *(*room)++ = word[i] == '_' ? ' ' : word[i];
  return out;
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

/* Below a byte; low bits come first. */
static void pack_element(char *data, size_t at, size_t bits, const char *word) {
  int element = atoi(word) & ((1 << bits) - 1);
  data[at / 8] = (char)(data[at / 8] | element << at % 8);
}

static pln_ref read_constant(const char *s) {
  pln_dtype dtype;
  int32_t rank;
  pln_dim dims[8];
  pln_tensor *t;
  pln_ref node = PLN_NONE;
  char data[4096], texts[1024], *room = texts;
  s = read_dims(read_dtype(s, &dtype), &rank, dims) + 1;
  size_t bits = pln_dtype_bits(dtype), n = 0;
  memset(data, 0, sizeof data);
  for (s += strspn(s, " "); *s; s += strspn(s, " ")) {
    pln_slice word;
    if (bits < 8) {
      pack_element(data, n++ * bits, bits, s);
    } else if (dtype == PLN_STRING) {
      word = read_word(s, &room);
      memcpy(data + bits / 8 * n++, &word, sizeof word);
    } else {
      write_element(dtype, s, data + bits / 8 * n++);
    }
    s += strcspn(s, " ");
  }
  CHECK_OK(pln_tensor_from_bytes(engine, dtype, (uint32_t)rank, dims, data,
                                 (n * bits + 7) / 8, &t));
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
 * makes a float, a trailing or inner comma a list of either. "[a,b]" is a list
 * of strings. */
static pln_attrs read_attrs(const char *s) {
  pln_attr list[8];
  int64_t ints[8][8];
  double floats[8][8];
  pln_slice strings[8][8];
  pln_attrs out = 0;
  uint32_t n = 0;
  for (; *s; s += strspn(s, " ")) {
    size_t name = strcspn(s, "="), size = strcspn(s + name + 1, " ");
    const char *value = s + name + 1, *end = value + size;
    pln_attr *a = &list[n];
    *a = (pln_attr){0};
    CHECK_OK(pln_symbol_intern(engine, (pln_slice){s, name}, &a->name));
    if (*value == '[') {
      a->kind = PLN_ATTR_STRINGS;
      a->v.strings = strings[n];
      for (value++; value < end; value += strcspn(value, ",]") + 1)
        strings[n][a->count++] = (pln_slice){value, strcspn(value, ",]")};
    } else if (!isdigit((unsigned char)*value) && *value != '-') {
      a->kind = PLN_ATTR_STRING;
      a->v.s = (pln_slice){value, size};
    } else if (memchr(value, ',', size)) {
      bool points = memchr(value, '.', size) != NULL;
      a->kind = points ? PLN_ATTR_FLOATS : PLN_ATTR_INTS;
      if (points)
        a->v.floats = floats[n];
      else
        a->v.ints = ints[n];
      for (; value < end; value += strcspn(value, ", ") + 1)
        if (*value != ',' && points)
          floats[n][a->count++] = strtod(value, NULL);
        else if (*value != ',')
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

static size_t put_word(char *out, pln_slice word) {
  char *to = out;
  *to++ = ' ';
  if (word.size == 0)
    *to++ = '~';
  for (size_t i = 0; i < word.size; i++)
    *to++ = word.data[i] == ' ' ? '_' : word.data[i];
  *to = 0;
  return (size_t)(to - out);
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
  if (t->dtype == PLN_STRING)
    return put_word(out, ((const pln_slice *)t->data)[i]);
  if (!pln_tensor_int(t, i, &integer)) {
    size_t bits = pln_dtype_bits((pln_dtype)t->dtype), at = i * bits;
    integer = (uint8_t)data[at / 8] >> at % 8 & ((1 << bits) - 1);
    CHECK(bits <= 8);
  }
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

enum { ROW_ARGS = 9, ROW_RESULTS = 5, ROW_TEXT = 8192 };

typedef struct row {
  const char *op, *attrs, *args[ROW_ARGS], *want;
  uint32_t results; /* 0: one */
} row;

static pln_status build(const row *r, pln_ref *node) {
  pln_ref args[ROW_ARGS];
  uint32_t n = 0;
  for (; n < ROW_ARGS && r->args[n]; n++)
    args[n] = read_operand(r->args[n]);
  pln_op op = pln_op_find(engine, pln_text(r->op));
  CHECK(op != 0);
  return pln_build_call(builder, op, read_attrs(r->attrs), r->results, n, args,
                        node);
}

/* "refused: 'nn.max_pool': strides has 0" */
static void put_diag(char *got, const char *what) {
  size_t n = pln_diag_count(engine);
  const char *text = n ? pln_diag_at(engine, n - 1)->message : "";
  snprintf(got, ROW_TEXT, "%s: %s", what, text);
}

/* The message ends with the call, which stands in the row already. */
static void put_ill_typed(char *got) {
  put_diag(got, "ill-typed");
  char *call = strstr(got, ": in ");
  CHECK(call);
  if (call)
    *call = 0;
}

static void put_results(char *got, uint32_t n, pln_tensor **t) {
  for (uint32_t i = 0; i < n; i++) {
    if (i > 0)
      strcat(got, " | ");
    put_tensor(got + strlen(got), t[i]);
    pln_tensor_release(t[i]);
  }
}

/* Folding drops the message; computing the call again tells it, or gives "not
 * folded: " and the results, where a run goes on. What it was given stands in
 * the row already. */
static void put_refusal(char *got, pln_ref node) {
  const pln_graph *g = pln_builder_graph(builder);
  const pln_node *n = &g->nodes[node];
  const pln_tensor *args[ROW_ARGS] = {NULL};
  pln_tensor *results[ROW_RESULTS] = {NULL};
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_node *arg = &g->nodes[g->operands[n->first + i]];
    args[i] = arg->kind == PLN_CONSTANT ? g->tensors[arg->data] : NULL;
  }
  if (pln_compute(g, node, n->count, args, results) == PLN_OK) {
    strcpy(got, "not folded: ");
    put_results(got, n->results ? n->results : 1, results);
    return;
  }
  put_diag(got, "refused");
  char *given = strstr(got, " (given ");
  if (given)
    *given = 0;
}

static void run_row(const row *r, char *got) {
  pln_ref node;
  pln_tensor *t[ROW_RESULTS] = {NULL};
  uint32_t n = r->results ? r->results : 1;
  if (build(r, &node) != PLN_OK) {
    put_ill_typed(got);
    return;
  }
  pln_status status = pln_eval_call(pln_builder_graph(builder), node, t);
  if (status != PLN_OK) {
    put_refusal(got, node);
    return;
  }
  *got = 0;
  put_results(got, n, t);
}

static inline void run_rows(size_t n, const row *rows) {
  begin();
  for (size_t i = 0; i < n; i++) {
    char got[ROW_TEXT], what[64];
    run_row(&rows[i], got);
    snprintf(what, sizeof what, "%s, row %zu", rows[i].op, i);
    check_str(got, rows[i].want, __FILE__, __LINE__, what);
  }
  end();
}

static inline void type_rows(size_t n, const row *rows) {
  begin();
  for (size_t i = 0; i < n; i++) {
    char got[ROW_TEXT], what[64];
    pln_ref node;
    if (build(&rows[i], &node) == PLN_OK)
      put_type(got, pln_node_type(pln_builder_graph(builder), node));
    else
      put_ill_typed(got);
    snprintf(what, sizeof what, "%s, row %zu", rows[i].op, i);
    check_str(got, rows[i].want, __FILE__, __LINE__, what);
  }
  end();
}
#define ROWS(rows) (sizeof(rows) / sizeof *(rows)), (rows)

#endif
